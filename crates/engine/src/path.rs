//! The path of a state: its path condition, a model of that condition, its inputs and its choices.

use everett_expr::{Arena, ArrayId, ExprId};
use everett_sim::SharedList;
use everett_solver::{Constraints, Model};
use everett_vm::ChoiceSite;
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;

use crate::input::Input;
use crate::names::Names;
use crate::second::Second;
use crate::trace::{Pending, Trace, TraceAnswer, TraceChoice, TraceInput};
use crate::weight::Weight;

/// An answer to the current instruction.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// To `branch` and `assume`.
    Bool(bool),
    /// To `concretize`.
    Value(u64),
    /// To `narrow`, where it was no value.
    Range(u64, u64),
    /// To `choose`.
    Choice(u32),
    /// To `input`.
    Input(ArrayId),
    /// To `outside`, by its number.
    Outside(usize),
    /// To `open_merge` and `close_merge`: a digest of the paths that were merged, if some were.
    Merge(u64),
}

impl Answer {
    /// The digest of the answers before and of this one.
    fn mixed_into(self, digest: u64) -> u64 {
        let (kind, value) = match self {
            Answer::Bool(value) => (1, u64::from(value)),
            Answer::Value(value) => (2, value),
            // It follows from the condition.
            Answer::Range(least, _) => (6, least),
            Answer::Choice(picked) => (3, u64::from(picked)),
            // Its number is the arena's.
            Answer::Input(_) => (4, 0),
            // What it is follows from the answers before: the same question has the same answer.
            Answer::Outside(number) => (5, number as u64),
            Answer::Merge(paths) => (7, paths),
        };
        let mix = |digest: u64, word: u64| {
            let mixed = (digest ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed ^ mixed >> 29
        };
        mix(mix(digest.wrapping_add(1), kind), value)
    }
}

/// An end of a region whose paths are to be merged.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum MergePoint {
    /// The program opens the region.
    Open,
    /// It closes the region.
    Close,
}

/// A trace that is being followed.
#[derive(Clone, Debug)]
pub struct Follow {
    /// The trace.
    pub trace: Arc<Trace>,
    /// Choices used so far.
    pub choices_used: usize,
    /// Choices that are left, by what was asked, where the trace is followed loosely.
    pub loose: Option<BTreeMap<ChoiceSite, VecDeque<u32>>>,
}

/// A trace that was followed to its end.
pub struct Origin {
    trace: Arc<Trace>,
    /// As it was then: holding it keeps its storage from being changed in place.
    model: Model,
}

impl Origin {
    /// A block of the trace's inputs, if it still has the values that they have under a model.
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
    /// Inputs, in the order of their making.
    pub inputs: SharedList<Input>,
    /// Names that they have.
    pub names: Names,
    /// The host, where there are several: inputs of different hosts may have the same name.
    pub owner: Option<Arc<str>>,
    /// Which of them are given again to a host that sets itself up again: it is the same machine.
    pub again: std::ops::Range<usize>,
    /// Choices, in order.
    pub choices: SharedList<TraceChoice>,
    /// Answers of the live peer that the host stands for, in order.
    pub answers: SharedList<TraceAnswer>,
    /// Faults among the choices.
    pub faults: u32,
    /// Preemptions among them.
    pub preemptions: u32,
    /// Conditions that tests should fulfil if possible.
    pub preferences: Arc<Vec<ExprId>>,
    /// Whether the program has disabled forks on data
    /// (`klee_set_forking`): other sides are then pruned.
    pub takes_one_side: bool,
    /// Answers to the current instruction.
    pub tape: SmallVec<[Answer; 2]>,
    /// Values of the next question that other states have taken.
    pub excluded: SmallVec<[u64; 1]>,
    /// They come from a trace, so that the condition does not exclude them yet.
    pub excluded_anew: bool,
    /// Questions answered since the start.
    pub answered: u64,
    /// A digest of the answers: the same on every machine and in every run,
    /// unlike a model of the path condition.
    pub digest: u64,
    /// Its weight.
    pub weight: Weight,
    /// Forks on the way.
    pub depth: u32,
    /// Instructions that are counted; more than were executed while the state is rematerialised.
    pub counted: u64,
    /// While the state is rematerialised: the number of answered questions at which it stops.
    pub pause_at: Option<u64>,
    /// The trace that it follows, until the end of the trace.
    pub follow: Option<Box<Follow>>,
    /// The trace that it has followed to its end.
    pub origin: Option<Arc<Origin>>,
    /// What the first build did, while the second of two builds runs.
    pub second: Option<Box<Second>>,
    /// Where paths were merged into it: numbers of the questions answered when
    /// the program opened the regions.
    pub merges: SmallVec<[u64; 2]>,
    /// It is explored between the opening and the close of such a region: how many are open.
    pub open_regions: Option<u32>,
    /// Whether it is at the opening or the close of such a region.
    pub at_merge: Option<MergePoint>,
    /// How it diverged from the trace: what was expected, and what was seen.
    pub diverged: Option<String>,
}

impl Path {
    /// The start of a path that follows a trace.
    pub fn following(trace: Arc<Trace>) -> Path {
        let mut path = Path::default();
        if let Some(pending) = &trace.pending {
            path.weight = Weight {
                halvings: pending.halvings,
            };
            path.depth = pending.depth;
            path.counted = pending.instructions;
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
            path.follow = Some(Box::new(Follow {
                trace,
                choices_used: 0,
                loose: None,
            }));
        }
        path
    }

    /// The start of a path that follows a trace loosely: inputs by name, choices by site, defaults
    /// for all else. The solver is not asked.
    pub fn following_loosely(trace: Arc<Trace>) -> Path {
        let mut left: BTreeMap<ChoiceSite, VecDeque<u32>> = BTreeMap::new();
        for choice in trace.choices.iter() {
            let queue = left.entry(choice.site.clone()).or_default();
            queue.push_back(choice.picked);
        }
        Path {
            follow: Some(Box::new(Follow {
                trace,
                choices_used: 0,
                loose: Some(left),
            })),
            ..Path::default()
        }
    }

    /// Whether it follows a trace loosely.
    pub fn is_loose(&self) -> bool {
        let follow = self.follow.as_ref();
        follow.is_some_and(|follow| follow.loose.is_some())
    }

    /// Whether its paths are merged from here on. One that follows a trace does what the trace did.
    pub fn merges_here(&self) -> bool {
        match &self.follow {
            None => !self.takes_one_side && self.second.is_none(),
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

    /// Starts it with a choice that is made before the host boots.
    pub fn begin_with(&mut self, choice: TraceChoice) {
        self.weight = self.weight.half();
        self.depth += 1;
        self.faults += u32::from(choice.picked > 0);
        self.choices.push(choice);
    }

    /// Adds a condition to the path condition.
    pub fn constrain(&mut self, arena: &mut Arena, condition: ExprId) {
        // The condition of a path whose inputs are given is not needed, and a
        // rematerialised one gets what it had.
        if self.is_loose() || self.pause_at.is_some() {
            return;
        }
        self.constraints.add(arena, condition);
    }

    /// The trace of a finished path under a model of its condition.
    pub fn trace_under(&self, model: &Model) -> Trace {
        let made = |input| made_under(input, model);
        Trace {
            inputs: self.inputs.iter().map(made).collect(),
            choices: self.choices.clone(),
            answers: self.answers.clone(),
            ..Trace::default()
        }
    }

    /// The pending trace that leads to its current position.
    pub fn pending_trace<'p>(&'p self, sharing: &mut Sharing<'p>) -> Trace {
        // One that is still following an earlier trace stands where that one ends.
        if let Some(follow) = &self.follow {
            return (*follow.trace).clone();
        }
        let pending = Pending {
            answered: self.answered,
            excluded: self.excluded.to_vec(),
            halvings: self.weight.halvings,
            depth: self.depth,
            instructions: self.counted,
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

/// The arrays of inputs, one of each group that shares storage in a model.
fn apart(inputs: &[Input]) -> impl Iterator<Item = ArrayId> {
    let mut last = None;
    let arrays = inputs.iter().map(|input| input.array);
    arrays.filter(move |array| {
        let before = last.replace(*array);
        !before.is_some_and(|before| Model::share_storage(before, *array))
    })
}

/// Lets the traces of paths that have inputs and their values in common share them.
///
/// Parts are known by where they lie in memory, which is why the paths must not change meanwhile.
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

/// Where a model keeps the values of a block of inputs.
type Storages = SmallVec<[usize; 2]>;

impl<'p> Sharing<'p> {
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
