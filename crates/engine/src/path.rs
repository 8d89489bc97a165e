//! The path of a state: its path condition, a model of that condition, its inputs and its choices.

use everett_expr::{Arena, ArrayId, ExprId};
use everett_sim::{Asked, SharedList};
use everett_solver::{Constraints, Model};
use everett_vm::{ChoiceSite, Note};
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;

use crate::input::Input;
use crate::names::Names;
use crate::second::Second;
use crate::seeds::Seeds;
use crate::trace::{Pending, Trace, TraceAnswer, TraceChoice, TraceInput};
use crate::weight::Weight;

/// An answer to a question of the current instruction.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The answer to `branch` and `assume`.
    Bool(bool),
    /// The answer to `concretize`.
    Value(u64),
    /// The answer to `narrow`, if it is a range of values.
    Range(u64, u64),
    /// The answer to `choose`: the picked alternative.
    Choice(u32),
    /// The answer to `input`.
    Input(ArrayId),
    /// The answer to `outside`, by its index among the path's answers of the live peer.
    Outside(usize),
    /// The answer to `open_merge` and `close_merge`: a digest of the merged paths, or 0 if none
    /// were merged.
    Merge(u64),
}

impl Answer {
    /// Returns a digest of the earlier answers, which `digest` stands for, and of this one.
    fn mixed_into(self, digest: u64) -> u64 {
        let (kind, value) = match self {
            Answer::Bool(value) => (1, u64::from(value)),
            Answer::Value(value) => (2, value),
            // The range follows from the path condition.
            Answer::Range(least, _) => (6, least),
            Answer::Choice(picked) => (3, u64::from(picked)),
            // The array's number depends on the arena.
            Answer::Input(_) => (4, 0),
            // The bytes follow from the earlier answers: the same question has the same answer.
            Answer::Outside(number) => (5, number as u64),
            Answer::Merge(paths) => (7, paths),
        };
        mix(mix(digest, kind), value)
    }
}

/// Returns a digest of the words that `digest` stands for, and of one more. A word of 0 changes the
/// digest, too: in worlds, the answers of one state can be the beginning of those of another.
pub fn mix(digest: u64, word: u64) -> u64 {
    // The finaliser of SplitMix64.
    let mut mixed = (digest.rotate_left(17) ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// An end of a region whose paths are merged.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum MergePoint {
    /// The program opens the region.
    Open,
    /// The program closes the region.
    Close,
}

/// A trace that is being followed.
#[derive(Clone, Debug)]
pub struct Follow {
    /// The trace.
    pub trace: Arc<Trace>,
    /// The number of choices that were used so far.
    pub choices_used: usize,
    /// The choices that are left, by site, if the trace is followed loosely.
    pub loose: Option<BTreeMap<ChoiceSite, VecDeque<u32>>>,
    /// Other traces with the same answers so far: one state follows the common part of all.
    pub companions: Vec<Companion>,
    /// Companions that part from the state at the current question.
    pub leaving: Vec<Companion>,
}

/// A trace that a state follows together with its own one.
#[derive(Clone, Debug)]
pub struct Companion {
    /// The trace.
    pub trace: Arc<Trace>,
    /// The values of the inputs so far.
    pub model: Model,
}

impl Companion {
    /// Returns the number of questions that the trace answers.
    fn answered(&self) -> u64 {
        let pending = self.trace.pending.as_ref();
        pending.map_or(0, |pending| pending.answered)
    }
}

impl Follow {
    /// Creates the start of following a trace exactly.
    fn new(trace: Arc<Trace>) -> Follow {
        Follow {
            trace,
            choices_used: 0,
            loose: None,
            companions: Vec::new(),
            leaving: Vec::new(),
        }
    }

    /// Lets companions leave that end at this question, or do not give the same answer to it.
    /// Returns whether there are any: then the state must be suspended.
    pub fn part(&mut self, answered: u64, mut agrees: impl FnMut(&Companion) -> bool) -> bool {
        let all = std::mem::take(&mut self.companions);
        let stays = |companion: &Companion| companion.answered() > answered && agrees(companion);
        (self.companions, self.leaving) = all.into_iter().partition(stays);
        !self.leaving.is_empty()
    }
}

/// A trace that was followed to its end.
pub struct Origin {
    trace: Arc<Trace>,
    /// The model at that time. Holding it prevents changes of its storage in place.
    model: Model,
}

impl Origin {
    /// Returns a block of the trace's inputs, if the inputs still have these values under a model.
    fn block(&self, at: usize, inputs: &[Input], model: &Model) -> Option<&Arc<Vec<TraceInput>>> {
        let is_same = |array| self.model.storage_of(array) == model.storage_of(array);
        let block = self.trace.inputs.block(at)?;
        (block.len() == inputs.len() && apart(inputs).all(is_same)).then_some(block)
    }
}

/// The path that led to a state.
#[derive(Clone, Default)]
pub struct Path {
    /// The path condition.
    pub constraints: Constraints,
    /// A model of the path condition.
    pub model: Model,
    /// The inputs, in the order in which they were made.
    pub inputs: SharedList<Input>,
    /// The names of the inputs.
    pub names: Names,
    /// The name of the host, if there are several: inputs of different hosts may have the same
    /// name.
    pub owner: Option<Arc<str>>,
    /// The range of inputs that are given again to a host that sets itself up again, because it is
    /// the same machine.
    pub again: std::ops::Range<usize>,
    /// Choices, in order.
    pub choices: SharedList<TraceChoice>,
    /// The answers of the live peer that the host represents, in order.
    pub answers: SharedList<TraceAnswer>,
    /// The number of faults among the choices.
    pub faults: u32,
    /// How often each planned fault of calls from one place could have happened.
    pub asked_at: SmallVec<[Asked; 1]>,
    /// The number of preemptions among the choices.
    pub preemptions: u32,
    /// Conditions that tests should fulfil if possible.
    pub preferences: Arc<Vec<ExprId>>,
    /// Whether the program has disabled forks on data (`klee_set_forking`): other sides are then
    /// pruned.
    pub takes_one_side: bool,
    /// Whether the current instruction is an operation on floats whose operands get one value.
    pub fixes_floats: bool,
    /// Answers to the current instruction.
    pub tape: SmallVec<[Answer; 2]>,
    /// Answers to the next question that other states have taken.
    pub excluded: SmallVec<[u64; 1]>,
    /// Whether `excluded` comes from a trace, so that the path condition does not exclude these
    /// values yet.
    pub excluded_anew: bool,
    /// The number of questions that were answered since the start.
    pub answered: u64,
    /// A digest of the answers. Unlike a model of the path condition, it is the same on every
    /// machine and in every run.
    pub digest: u64,
    /// The weight of the path.
    pub weight: Weight,
    /// The number of forks on the path.
    pub depth: u32,
    /// The number of instructions that are counted. While the state is rematerialised, more than
    /// were executed.
    pub counted: u64,
    /// The number of bytes of standard output and standard error that the listener has heard of;
    /// more than there are while the state is rematerialised.
    pub printed: [u64; 2],
    /// What the program had to say to its user (`klee_warning`) since the listener has heard of it.
    pub notes: Vec<Note>,
    /// The number of notes that the program has made, and of those that the listener has heard of:
    /// more while the state is rematerialised.
    pub noted: u64,
    /// See `noted`.
    pub notes_heard: u64,
    /// The seeds that take this way.
    pub seeds: Seeds,
    /// While the state is rematerialised: the number of answered questions at which it stops.
    pub pause_at: Option<u64>,
    /// The trace that the state follows, until the end of the trace.
    pub follow: Option<Box<Follow>>,
    /// The trace that the state has followed to its end.
    pub origin: Option<Arc<Origin>>,
    /// What the first build did, while the second of two builds runs.
    pub second: Option<Box<Second>>,
    /// Where paths were merged into this one: for each region, the number of questions that were
    /// answered when the program opened it.
    pub merges: SmallVec<[u64; 2]>,
    /// The number of open regions, while the state is explored between the opening and the close of
    /// one.
    pub open_regions: Option<u32>,
    /// The number of open regions whose paths are not merged.
    pub unmerged_regions: u32,
    /// Whether the state is at the opening or the close of such a region.
    pub at_merge: Option<MergePoint>,
    /// How the program diverged from the trace: what was expected, and what was seen.
    pub diverged: Option<String>,
}

impl Path {
    /// Creates a start for each of the seeds, which share the weight of the whole.
    pub fn of_each_seed(seeds: u32) -> Vec<Path> {
        let path = |seed: u32| Path {
            seeds: Seeds::new([seed]),
            weight: Weight {
                halvings: (seed + 1).min(seeds - 1),
            },
            ..Path::default()
        };
        (0..seeds).map(path).collect()
    }

    /// Creates the start of a path that follows a trace.
    pub fn following(trace: Arc<Trace>) -> Path {
        let mut path = Path::default();
        if let Some(pending) = &trace.pending {
            path.take_position(pending);
        }
        let at_its_end = trace
            .pending
            .as_ref()
            .is_some_and(|pending| pending.answered == 0);
        if at_its_end {
            path.excluded = trace
                .pending
                .iter()
                .flat_map(|pending| pending.excluded.iter().copied())
                .collect();
            path.excluded_anew = true;
        } else {
            path.follow = Some(Box::new(Follow::new(trace)));
        }
        path
    }

    /// Takes over what a pending trace says about the path at its end.
    fn take_position(&mut self, pending: &Pending) {
        self.weight.halvings = pending.halvings;
        self.depth = pending.depth;
        self.counted = pending.instructions;
        self.printed = pending.printed;
        self.notes_heard = pending.notes;
        self.seeds = Seeds::new(pending.seeds.iter().copied());
    }

    /// Creates the start of a path that follows several pending traces as long as their answers are
    /// the same.
    pub fn following_together(traces: &[Arc<Trace>]) -> Path {
        let model = Model::default();
        let companion = |trace: &Arc<Trace>| Companion {
            trace: trace.clone(),
            model: model.clone(),
        };
        let mut path = Path::default();
        path.lead(traces.iter().map(companion).collect(), 0);
        path
    }

    /// Continues the path with these companions: follows the longest trace, and the others as long
    /// as they agree with it.
    fn lead(&mut self, mut companions: Vec<Companion>, choices_used: usize) {
        let longest = companions
            .iter()
            .enumerate()
            .max_by_key(|(_, c)| c.answered());
        let Some((longest, _)) = longest else { return };
        let Companion { trace, model } = companions.swap_remove(longest);
        if let Some(pending) = &trace.pending {
            self.take_position(pending);
        }
        self.model = model;
        let mut follow = Follow::new(trace);
        (follow.choices_used, follow.companions) = (choices_used, companions);
        self.follow = Some(Box::new(follow));
        self.end_following();
    }

    /// Removes the companions that part from this path, and returns the path on which they continue.
    pub fn take_leaving(&mut self) -> Option<Path> {
        let follow = self.follow.as_mut()?;
        let (leaving, used) = (std::mem::take(&mut follow.leaving), follow.choices_used);
        if leaving.is_empty() {
            return None;
        }
        let mut path = self.clone();
        path.lead(leaving, used);
        Some(path)
    }

    /// Returns the trace that the path follows, or has followed to its end.
    pub fn followed(&self) -> Option<Arc<Trace>> {
        let follow = self.follow.as_ref().map(|follow| &follow.trace);
        let followed = follow.or_else(|| Some(&self.origin.as_ref()?.trace));
        followed.cloned()
    }

    /// Returns whether the path follows several traces.
    pub fn has_companions(&self) -> bool {
        let follow = self.follow.as_ref();
        follow.is_some_and(|follow| !follow.companions.is_empty())
    }

    /// Creates the start of a path that follows a trace loosely: inputs are matched by name,
    /// choices by site, and everything else takes its default. The solver is not queried.
    pub fn following_loosely(trace: Arc<Trace>) -> Path {
        let mut left: BTreeMap<ChoiceSite, VecDeque<u32>> = BTreeMap::new();
        for choice in trace.choices.iter() {
            let queue = left.entry(choice.site.clone()).or_default();
            queue.push_back(choice.picked);
        }
        Path {
            follow: Some(Box::new(Follow {
                loose: Some(left),
                ..Follow::new(trace)
            })),
            ..Path::default()
        }
    }

    /// Returns whether the path follows a trace loosely.
    pub fn is_loose(&self) -> bool {
        let follow = self.follow.as_ref();
        follow.is_some_and(|follow| follow.loose.is_some())
    }

    /// Returns whether the paths of a region that opens here are merged. A path that follows a
    /// trace merges where the trace did.
    pub fn merges_here(&self) -> bool {
        match &self.follow {
            None => !self.takes_one_side && self.second.is_none() && self.seeds.is_empty(),
            Some(follow) => {
                let pending = follow.trace.pending.as_ref();
                pending.is_some_and(|pending| pending.merges.contains(&self.answered))
            }
        }
    }

    /// Records an answer.
    pub fn answer(&mut self, answer: Answer) {
        self.tape.push(answer);
        self.answered += 1;
        self.digest = answer.mixed_into(self.digest);
        self.excluded.clear();
        self.end_following();
    }

    /// Stops following a trace whose questions are all answered.
    fn end_following(&mut self) {
        let Some(follow) = &self.follow else { return };
        let Some(pending) = &follow.trace.pending else {
            return;
        };
        if self.answered >= pending.answered {
            self.excluded = pending.excluded.iter().copied().collect();
            self.excluded_anew = true;
            self.origin = Some(Arc::new(Origin {
                trace: follow.trace.clone(),
                model: self.model.clone(),
            }));
            self.follow = None;
        }
    }

    /// Records a choice, which is also an answer.
    pub fn choose(&mut self, choice: TraceChoice) {
        let picked = choice.picked;
        if picked > 0 {
            self.faults += u32::from(choice.site.is_fault());
            self.preemptions += u32::from(choice.site.is_preemption());
        }
        if let Some(second) = &mut self.second {
            second.mark_chosen(&choice.site);
        }
        self.choices.push(choice);
        self.answer(Answer::Choice(picked));
    }

    /// Records what the program says to its user.
    pub fn note(&mut self, note: Note) {
        self.noted += 1;
        if self.noted > self.notes_heard {
            self.notes.push(note);
        }
    }

    /// Takes the notes that the listener has not heard of.
    pub fn take_notes(&mut self) -> Vec<Note> {
        self.notes_heard = self.notes_heard.max(self.noted);
        std::mem::take(&mut self.notes)
    }

    /// Starts the path with a choice that is made before the host boots.
    pub fn begin_with(&mut self, choice: TraceChoice) {
        self.weight = self.weight.half();
        self.depth += 1;
        self.faults += u32::from(choice.picked > 0);
        self.choices.push(choice);
    }

    /// Adds a condition to the path condition.
    pub fn constrain(&mut self, arena: &mut Arena, condition: ExprId) {
        // Not needed for a path with given inputs; a rematerialised state gets its stored
        // condition.
        if self.is_loose() || self.pause_at.is_some() {
            return;
        }
        self.constraints.add(arena, condition);
    }

    /// Returns the trace of a finished path under a model of its condition.
    pub fn trace_under(&self, model: &Model) -> Trace {
        let made = |input| made_under(input, model);
        Trace {
            inputs: self.inputs.iter().map(made).collect(),
            choices: self.choices.clone(),
            answers: self.answers.clone(),
            ..Trace::default()
        }
    }

    /// Returns the pending trace that leads to the current position.
    pub fn pending_trace<'p>(&'p self, sharing: &mut Sharing<'p>) -> Trace {
        // A path that still follows a trace is taken to be at the end of that trace.
        if let Some(follow) = &self.follow {
            return (*follow.trace).clone();
        }
        let pending = Pending {
            answered: self.answered,
            excluded: self.excluded.to_vec(),
            halvings: self.weight.halvings,
            depth: self.depth,
            instructions: self.counted,
            printed: self.printed,
            notes: self.notes_heard,
            seeds: self.seeds.numbers().collect(),
            merges: self.merges.to_vec(),
        };
        Trace {
            inputs: sharing.inputs(self),
            choices: self.choices.clone(),
            answers: self.answers.clone(),
            pending: Some(pending),
            ..Trace::default()
        }
    }
}

fn made_under(input: &Input, model: &Model) -> TraceInput {
    TraceInput {
        name: input.name.clone(),
        bytes: model.bytes(input.array, input.size),
    }
}

/// Returns the arrays of inputs, one of each group that shares storage in a model.
fn apart(inputs: &[Input]) -> impl Iterator<Item = ArrayId> {
    let mut last = None;
    let arrays = inputs.iter().map(|input| input.array);
    arrays.filter(move |array| {
        let before = last.replace(*array);
        !before.is_some_and(|before| Model::share_storage(before, *array))
    })
}

/// Lets traces share blocks of inputs and values that their paths have in common.
///
/// Blocks are identified by their address in memory, so the paths must not change meanwhile.
#[derive(Default)]
pub struct Sharing<'p> {
    made: HashMap<(usize, Storages), Arc<Vec<TraceInput>>, BuildHasherDefault<PlaceHasher>>,
    paths: PhantomData<&'p Path>,
}

/// A fast hasher for addresses, which are not chosen by an adversary.
#[derive(Default)]
struct PlaceHasher(u64);

impl Hasher for PlaceHasher {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        for word in bytes.chunks(8) {
            let mut padded = [0; 8];
            padded[..word.len()].copy_from_slice(word);
            self.write_u64(u64::from_le_bytes(padded));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

/// The addresses at which a model stores the values of a block of inputs.
type Storages = SmallVec<[usize; 2]>;

impl<'p> Sharing<'p> {
    /// Returns the inputs of a path with their values, block by block; known blocks are shared.
    fn inputs(&mut self, path: &'p Path) -> SharedList<TraceInput> {
        let blocks = path.inputs.blocks().enumerate().map(|(at, block)| {
            let origin = path.origin.as_ref();
            if let Some(made) = origin.and_then(|origin| origin.block(at, block, &path.model)) {
                return made.clone();
            }
            let storages = apart(block).map(|array| path.model.storage_of(array));
            let key = (Arc::as_ptr(block) as usize, storages.collect());
            let made = self.made.entry(key).or_insert_with(|| {
                let made = block.iter().map(|input| made_under(input, &path.model));
                Arc::new(made.collect())
            });
            made.clone()
        });
        SharedList::from_blocks(blocks.collect()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_changes_the_digest() {
        let digest =
            |answers: &[Answer]| answers.iter().fold(0, |digest, one| one.mixed_into(digest));
        let (no, yes) = (Answer::Bool(false), Answer::Bool(true));
        let all = [
            digest(&[]),
            digest(&[no]),
            digest(&[no, no]),
            digest(&[yes]),
            digest(&[no, yes]),
            digest(&[Answer::Choice(0)]),
            digest(&[Answer::Value(0)]),
        ];
        let different: std::collections::BTreeSet<u64> = all.into_iter().collect();
        assert_eq!(different.len(), all.len());
    }

    #[test]
    fn traces_of_forked_paths_share_what_the_paths_share() {
        let mut arena = Arena::new();
        let mut path = Path::default();
        for ordinal in 0..1000 {
            let name = path.names.take("x");
            let array = arena.array(ordinal, &name, 4);
            path.model.set(array, 1, ordinal as u8);
            path.inputs.push(Input {
                name: name.into(),
                array,
                size: 4,
            });
        }
        let mut forked = path.clone();
        let array = forked.inputs.get(500).map(|input| input.array);
        forked.model.set(array.expect("it is there"), 2, 77);
        let mut sharing = Sharing::default();
        let traces = [&path, &forked].map(|path| path.pending_trace(&mut sharing).inputs);
        for (path, inputs) in [&path, &forked].into_iter().zip(&traces) {
            assert_eq!(*inputs, path.trace_under(&path.model).inputs);
        }
        assert_ne!(traces[0], traces[1]);
        let pairs = traces[0].blocks().zip(traces[1].blocks());
        let different = pairs.filter(|(a, b)| !Arc::ptr_eq(a, b)).count();
        assert!((1..=2).contains(&different), "{different} blocks differ");
    }
}
