//! The oracle of a native run: answers come from a trace, or at random from a seed.

use everett_engine::{
    NativePoint, SourceFrame, Trace, TraceAnswer, TraceChoice, TraceInput, input_of, is_named,
};
use everett_expr::{Arena, ArrayId, Assignment, EvalScratch, ExprId, Variable};
use everett_linux::{Bytes, split_mix};
use everett_sim::{Plan, PlannedSite};
use everett_solver::{Constraints, Model, Solver, SolverConfig, Verdict};
use everett_vm::{
    Buffer, BugKind, ChoiceSite, Oracle, Outside, OutsideAnswer, OutsideQuestion, Suspend,
};
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::call_stack::CallOrigin;
use crate::priorities::{Order, Priorities};

/// The source of answers.
#[derive(Clone)]
pub enum Source {
    /// A trace.
    Trace(Box<Trace>),
    /// Random choices; inputs are random bytes.
    Random(u64),
    /// A trace as far as it goes, then random answers from a seed.
    Begun(Box<Trace>, u64),
    /// A trace, then inputs from a seed. Behind the trace, all choices take their default except
    /// planned faults.
    Planned(Box<Trace>, u64, Plan),
}

/// Inputs with their bytes. Inputs that were not created read as 0.
#[derive(Default)]
pub struct Inputs(Vec<(ArrayId, Vec<u8>)>);

impl Inputs {
    /// Evaluates bytes under these inputs.
    pub fn bytes(&self, buffer: &Buffer, arena: &mut Arena) -> Vec<u8> {
        let mut bytes = Bytes::default();
        bytes.append(buffer);
        bytes.evaluate(arena, self)
    }

    /// Evaluates a string, which ends at its first NUL, even if that is a symbolic byte.
    pub fn string(&self, string: &Buffer, arena: &mut Arena) -> Vec<u8> {
        let mut bytes = self.bytes(string, arena);
        let end = bytes.iter().position(|byte| *byte == 0);
        bytes.truncate(end.unwrap_or(bytes.len()));
        bytes
    }
}

impl Assignment for Inputs {
    fn byte(&self, array: ArrayId, index: u32) -> u8 {
        let input = self.0.iter().find(|input| input.0 == array);
        let byte = input.and_then(|input| input.1.get(index as usize));
        byte.copied().unwrap_or(0)
    }
}

/// The oracle of a native run.
pub struct NativeOracle {
    source: Source,
    /// Inputs created so far.
    pub inputs: Inputs,
    /// The trace so far: inputs and choices.
    made: Trace,
    /// Inputs that are reused when a restarted host sets itself up again: it is the same machine.
    pub again: std::ops::Range<usize>,
    inputs_used: usize,
    choices_used: usize,
    scratch: EvalScratch,
    /// Whether the run has left the schedule of the trace on purpose: choices that the trace lacks
    /// take their default.
    pub is_free: bool,
    /// Whether the oracle is asked if allocations fail, as in the model.
    pub sees_allocations: bool,
    /// Picks threads in random runs. Without it, all threads are equally likely.
    pub priorities: Option<Priorities>,
    /// The seed of random schedules.
    pub schedule_seed: u64,
    /// The threads among which the next choice picks.
    offered: Vec<u32>,
    /// Number of points of the trace at which a thread was chosen.
    points_used: usize,
    /// Names of faults that have happened as often as they may in a world. Hosts are still asked
    /// about these, as in a search, where a host knows its causal past only.
    pub used_up: Vec<String>,
    /// Why the run diverged from the trace.
    pub diverged: Option<String>,
    /// The operation that the trace demands and that cannot be done natively.
    pub beyond: Option<String>,
    /// Answers for a live peer, instead of the trace.
    pub outside: Option<Arc<dyn Outside>>,
    /// Whether a planned fault of a call or an allocation happened since this was set to `false`.
    pub has_injected: bool,
    /// The call of the thread that may be asked about, as far as plans or profiles need it.
    pub origin: Option<CallOrigin>,
    /// Returns whether a call comes from a planned call site.
    pub is_at: Option<IsAt>,
    /// The calls of choices about failures of calls, by the number of the choice, if they are kept.
    pub asked_from: Option<BTreeMap<usize, CallOrigin>>,
}

/// A function that returns whether a call comes from a call site.
pub type IsAt = Arc<dyn Fn(&PlannedSite, &CallOrigin) -> bool + Send + Sync>;

impl NativeOracle {
    /// Creates an oracle with this source of answers.
    pub fn new(source: Source) -> NativeOracle {
        let mut drawn = match source {
            Source::Trace(_) => 0,
            Source::Random(seed) | Source::Begun(_, seed) | Source::Planned(_, seed, _) => seed,
        };
        NativeOracle {
            // Schedules must not depend on inputs, which are drawn from the seed itself.
            schedule_seed: split_mix(&mut drawn),
            priorities: None,
            offered: Vec::new(),
            points_used: 0,
            source,
            inputs: Inputs::default(),
            made: Trace::default(),
            again: 0..0,
            inputs_used: 0,
            choices_used: 0,
            scratch: EvalScratch::new(),
            is_free: false,
            sees_allocations: false,
            used_up: Vec::new(),
            diverged: None,
            beyond: None,
            outside: None,
            has_injected: false,
            origin: None,
            is_at: None,
            asked_from: None,
        }
    }

    /// Returns whether choices about failures of calls depend on where calls come from; if so,
    /// whether their stacks matter.
    pub fn needs_origin(&self) -> Option<bool> {
        let plan = match &self.source {
            Source::Planned(_, _, plan) => Some(plan),
            _ => None,
        };
        let mut sites = plan.into_iter().flat_map(Plan::sites).peekable();
        match self.asked_from.is_some() {
            true => Some(true),
            false => {
                sites.peek()?;
                Some(sites.any(PlannedSite::has_stack))
            }
        }
    }

    fn diverge(&mut self, message: String) {
        self.diverged.get_or_insert(message);
    }

    fn eval(&mut self, arena: &Arena, term: ExprId) -> u64 {
        arena.eval(term, &self.inputs, &mut self.scratch)
    }

    /// Returns the bytes of the next input.
    fn next_input(&mut self, name: &str, size: u32) -> Vec<u8> {
        let number = self.inputs_used;
        self.inputs_used += 1;
        let bytes = match &mut self.source {
            Source::Random(state) => return random_bytes(state, size),
            Source::Begun(trace, state) | Source::Planned(trace, state, _)
                if number >= trace.inputs.len() =>
            {
                return random_bytes(state, size);
            }
            Source::Begun(trace, _) | Source::Planned(trace, ..) | Source::Trace(trace) => {
                trace.inputs.get(number)
            }
        };
        let problem = match bytes {
            Some(input) if input.bytes.len() == size as usize && is_named(&input.name, name) => {
                return input.bytes.clone();
            }
            Some(input) => format!(
                "the trace has {}, the program asks for {}",
                input_of(&input.name, input.bytes.len()),
                input_of(name, size as usize)
            ),
            None => format!("the trace has no more inputs, the program asks for {name}"),
        };
        self.diverge(problem);
        vec![0; size as usize]
    }

    /// Returns an input that exists already, for a restarted host that sets itself up again.
    fn input_again(&mut self, name: &str, size: u32) -> Option<usize> {
        let range = self.again.clone();
        let mut known = self.made.inputs.iter().zip(0..).skip(range.start);
        let (_, at) = known.find(|(input, at)| {
            *at < range.end && input.bytes.len() == size as usize && is_named(&input.name, name)
        })?;
        self.again.start = at + 1;
        Some(at)
    }

    /// Returns the concrete bytes of an input, for native code.
    pub fn input_bytes(&mut self, arena: &mut Arena, name: &str, size: u32) -> Vec<u8> {
        let at = self.take_input(arena, name, size);
        self.inputs.0[at].1.clone()
    }

    /// Returns the index of an input, and creates the input unless it exists.
    fn take_input(&mut self, arena: &mut Arena, name: &str, size: u32) -> usize {
        if let Some(at) = self.input_again(name, size) {
            return at;
        }
        let ordinal = self.inputs.0.len() as u32;
        let array = arena.array(ordinal, &format!("{name}#{ordinal}"), size);
        let bytes = self.next_input(name, size);
        self.made.inputs.push(TraceInput {
            name: name.into(),
            bytes: bytes.clone(),
        });
        self.inputs.0.push((array, bytes));
        self.inputs.0.len() - 1
    }

    /// Skips choices about allocations that are not intercepted natively, if the allocation did not
    /// fail in the trace.
    fn skip_allocations(&mut self, asked: Option<&ChoiceSite>) {
        if self.sees_allocations || asked == Some(&ChoiceSite::AllocationFault) {
            return;
        }
        let (Source::Trace(trace) | Source::Begun(trace, _) | Source::Planned(trace, ..)) =
            &self.source
        else {
            return;
        };
        let rest = trace.choices.iter().skip(self.choices_used);
        let skipped = rest.take_while(|choice| choice.site == ChoiceSite::AllocationFault);
        for choice in skipped {
            self.choices_used += 1;
            if choice.picked != 0 {
                self.beyond
                    .get_or_insert("the allocator of the native program was not found".to_owned());
            }
        }
    }

    /// Returns whether an alternative is a fault that may not happen any more in this world.
    fn is_used_up(&self, site: &ChoiceSite, picked: u32) -> bool {
        let fault = (picked as usize).checked_sub(1);
        let fault = fault.and_then(|at| site.faults().nth(at));
        let is_bounded = matches!(
            site,
            ChoiceSite::PacketFault { .. } | ChoiceSite::HostFault { .. }
        );
        is_bounded && fault.is_some_and(|fault| self.used_up.iter().any(|name| name == fault))
    }

    /// Picks an alternative within the fault limits of the world.
    fn pick_within(&mut self, site: &ChoiceSite, alternatives: u32) -> u32 {
        let picked = self.pick(site, alternatives);
        if !self.is_used_up(site, picked) {
            return picked;
        }
        if let Source::Trace(_) = self.source {
            self.diverge(
                "the trace has more faults than the scenario allows in a world".to_owned(),
            );
        }
        0
    }

    fn pick(&mut self, site: &ChoiceSite, alternatives: u32) -> u32 {
        self.skip_allocations(Some(site));
        let number = self.choices_used;
        self.choices_used += 1;
        let choice = match &mut self.source {
            Source::Random(_) => return self.draw(site, alternatives),
            Source::Begun(trace, _) | Source::Planned(trace, ..) => {
                let choice = trace.choices.get(number);
                if let Some(choice) = choice.filter(|choice| choice.site == *site) {
                    return choice.picked.min(alternatives.saturating_sub(1));
                }
                // This choice does not belong to the setup of the host.
                self.choices_used = number;
                return self.draw(site, alternatives);
            }
            Source::Trace(trace) => trace.choices.get(number),
        };
        let problem = match choice {
            Some(choice) if choice.site == *site && choice.picked < alternatives => {
                return choice.picked;
            }
            Some(choice) => format!(
                "choice {number} of the trace is {}, the program asks {site}",
                choice.site
            ),
            None => format!("the trace has no more choices, the program asks {site}"),
        };
        if !self.is_free {
            self.diverge(problem);
        }
        0
    }

    /// Draws a random choice; among threads by their priorities, if they have any.
    fn draw(&mut self, site: &ChoiceSite, alternatives: u32) -> u32 {
        let is_of_threads = matches!(site, ChoiceSite::Schedule | ChoiceSite::Preemption);
        if let Some(priorities) = &mut self.priorities
            && is_of_threads
            && self.offered.len() == alternatives as usize
        {
            return priorities.pick(&self.offered);
        }
        match &mut self.source {
            Source::Random(state) | Source::Begun(_, state) => at_random(state, site, alternatives),
            Source::Planned(_, _, plan) => {
                let (is_at, origin) = (self.is_at.as_ref(), self.origin.as_ref());
                let is_from = |from: &PlannedSite| match (is_at, origin) {
                    (Some(is_at), Some(origin)) => is_at(from, origin),
                    _ => false,
                };
                let picked = plan.pick(site, is_from).min(alternatives.saturating_sub(1));
                self.has_injected |= picked > 0 && site.is_of_call();
                picked
            }
            Source::Trace(_) => 0,
        }
    }

    /// Draws random bytes again until a condition holds. Returns `false` if it never does.
    fn redraw_inputs(&mut self, arena: &mut Arena, condition: ExprId) -> bool {
        const MAX_DRAWS: u32 = 100;
        let (mut state, fixed) = match &self.source {
            // What a trace begins with may be changed at random.
            Source::Random(state) | Source::Begun(_, state) => (*state, 0),
            Source::Planned(trace, state, _) => (*state, trace.inputs.len()),
            Source::Trace(_) => return false,
        };
        let support = arena.support(condition);
        let places = support.variables().iter().filter_map(|variable| {
            let mut inputs = self.inputs.0.iter();
            let input = inputs.position(|input| input.0 == variable.array);
            Some((input.filter(|input| *input >= fixed)?, *variable))
        });
        let places: Vec<(usize, Variable)> = places.collect();
        let mut holds = false;
        for _ in 0..MAX_DRAWS {
            for (input, variable) in &places {
                self.set_byte(*input, *variable, split_mix(&mut state) as u8);
            }
            holds = self.eval(arena, condition) != 0;
            if holds {
                break;
            }
        }
        holds = holds || self.solve_inputs(arena, condition, &places, &mut state);
        if let Source::Random(drawn) | Source::Begun(_, drawn) | Source::Planned(_, drawn, _) =
            &mut self.source
        {
            *drawn = state;
        }
        holds
    }

    fn set_byte(&mut self, input: usize, variable: Variable, byte: u8) {
        let known = &mut self.inputs.0[input].1;
        if let Some(known) = known.get_mut(variable.index as usize) {
            *known = byte;
        }
    }

    /// Sets bytes so that a condition holds, with random bits where it leaves them open: few numbers
    /// of a word are in a small range, so drawing does not find them. Returns `false` if there are
    /// no such bytes.
    fn solve_inputs(
        &mut self,
        arena: &mut Arena,
        condition: ExprId,
        places: &[(usize, Variable)],
        state: &mut u64,
    ) -> bool {
        let Ok(mut solver) = Solver::new(SolverConfig::default()) else {
            return false;
        };
        let (mut constraints, mut model) = (Constraints::new(), Model::new());
        let mut add = |arena: &mut Arena, condition: ExprId| {
            let Verdict::Sat(found) = solver.check(arena, &constraints, &model, condition) else {
                return None;
            };
            model = found;
            constraints.add(arena, condition);
            Some(model.clone())
        };
        for variable in arena.support(condition).variables() {
            if places.iter().any(|(_, free)| free == variable) {
                continue;
            }
            let byte = self.inputs.byte(variable.array, variable.index);
            let (read, byte) = (
                arena.read(variable.array, variable.index),
                arena.constant(8, u64::from(byte)),
            );
            let is_fixed = arena.eq(read, byte);
            if add(arena, is_fixed).is_none() {
                return false;
            }
        }
        let Some(mut found) = add(arena, condition) else {
            return false;
        };
        let mut bits: Vec<(Variable, u32)> = places
            .iter()
            .flat_map(|(_, variable)| (0..8).map(|bit| (*variable, bit)))
            .collect();
        while !bits.is_empty() {
            let at = split_mix(state) as usize % bits.len();
            let (variable, bit) = bits.swap_remove(at);
            let read = arena.read(variable.array, variable.index);
            let (value, wanted) = (
                arena.extract(read, bit, 1),
                arena.constant(1, split_mix(state) & 1),
            );
            let is_wanted = arena.eq(value, wanted);
            found = add(arena, is_wanted).unwrap_or(found);
        }
        for (input, variable) in places {
            self.set_byte(*input, *variable, found.get(variable.array, variable.index));
        }
        true
    }

    /// Returns the inputs and choices so far, as a trace.
    pub fn trace(&self) -> Trace {
        let made = self.made.inputs.iter().zip(&self.inputs.0);
        let inputs = made.map(|(input, (_, bytes))| TraceInput {
            name: input.name.clone(),
            bytes: bytes.clone(),
        });
        Trace {
            inputs: inputs.collect(),
            ..self.made.clone()
        }
    }

    /// Returns the undefined arithmetic that the trace ends with: kind, file and line.
    pub fn expected_arithmetic(&self) -> Option<(BugKind, String, u32)> {
        let kinds = [BugKind::Overflow, BugKind::UndefinedShift];
        let kind = kinds.into_iter().find(|kind| self.expects(*kind))?;
        let Source::Trace(trace) = &self.source else {
            return None;
        };
        let place = trace
            .end
            .as_ref()?
            .stack
            .iter()
            .find(|frame| frame.line != 0)?;
        Some((kind, place.file.clone(), place.line))
    }

    /// Returns the stack of a panic that the trace ends with.
    pub fn expected_panic(&self) -> Option<&[SourceFrame]> {
        let Source::Trace(trace) = &self.source else {
            return None;
        };
        let end = trace.end.as_ref();
        end.filter(|_| self.expects(BugKind::Panic))
            .map(|end| end.stack.as_slice())
    }

    /// Returns the two lines of a race that the trace ends with.
    pub fn expected_race(&self) -> Option<[(String, u32); 2]> {
        let Source::Trace(trace) = &self.source else {
            return None;
        };
        let end = trace
            .end
            .as_ref()
            .filter(|_| self.expects(BugKind::DataRace))?;
        let line = |stack: &[SourceFrame]| {
            let frame = stack.iter().find(|frame| frame.line != 0)?;
            Some((frame.file.clone(), frame.line))
        };
        Some([line(&end.stack)?, line(&end.races_with)?])
    }

    /// Returns whether the trace ends with a finding of this kind.
    pub fn expects(&self, kind: BugKind) -> bool {
        match &self.source {
            Source::Trace(trace) => ends_in(trace, kind),
            Source::Random(_) | Source::Begun(..) | Source::Planned(..) => false,
        }
    }

    /// Returns the source of answers.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Picks threads by priorities, unless the answers come from a trace.
    pub fn schedule_by_priorities(&mut self, order: Order) {
        let is_random = matches!(self.source, Source::Random(_) | Source::Begun(..));
        if is_random && self.priorities.is_none() {
            self.priorities = Some(Priorities::new(self.schedule_seed, order));
        }
    }

    /// Records a point between system calls at which a thread is chosen.
    pub fn note_point(&mut self, point: NativePoint) {
        self.made.native_points.push(point);
    }

    /// Returns whether the trace chooses a thread at this point.
    pub fn take_point(&mut self, point: &NativePoint) -> bool {
        let Source::Trace(trace) = &self.source else {
            return false;
        };
        let is_it = trace.native_points.get(self.points_used) == Some(point);
        if is_it {
            self.points_used += 1;
            self.note_point(*point);
        }
        is_it
    }

    /// Checks the choices of the trace that were not asked for yet.
    pub fn check_remaining_choices(&mut self) {
        self.skip_allocations(None);
    }
}

/// Calls that native allocators make as well: allocators must be watched to distinguish them.
const SHARED_WITH_ALLOCATORS: [&str; 3] = ["mmap", "mremap", "mprotect"];

/// Returns whether a trace depends on allocations: one fails, or is the finding, or could be
/// confused with another choice.
pub fn depends_on_allocations(trace: &Trace) -> bool {
    let fails = |choice: &TraceChoice| {
        let is_shared = |call| SHARED_WITH_ALLOCATORS.contains(&call);
        (choice.site == ChoiceSite::AllocationFault && choice.picked != 0)
            || choice.site.failing_call().is_some_and(is_shared)
    };
    let kinds = [BugKind::HugeAllocation, BugKind::Leak];
    kinds.iter().any(|kind| ends_in(trace, *kind)) || trace.choices.iter().any(fails)
}

fn ends_in(trace: &Trace, kind: BugKind) -> bool {
    let end = trace.end.as_ref();
    end.is_some_and(|end| end.finding.as_deref() == Some(kind.name()))
}

fn random_bytes(state: &mut u64, size: u32) -> Vec<u8> {
    (0..size).map(|_| split_mix(state) as u8).collect()
}

/// Draws a random choice. Failures are rare, so that runs get beyond them.
fn at_random(state: &mut u64, site: &ChoiceSite, alternatives: u32) -> u32 {
    const ONE_IN: u64 = 16;
    if site.is_fault() && !split_mix(state).is_multiple_of(ONE_IN) {
        return 0;
    }
    (split_mix(state) % u64::from(alternatives.max(1))) as u32
}

impl Oracle for NativeOracle {
    fn branch(&mut self, arena: &mut Arena, condition: ExprId) -> Result<bool, Suspend> {
        Ok(self.eval(arena, condition) != 0)
    }

    fn concretize(&mut self, arena: &mut Arena, term: ExprId) -> Result<u64, Suspend> {
        Ok(self.eval(arena, term))
    }

    fn choose(&mut self, site: &ChoiceSite, alternatives: u32) -> Result<u32, Suspend> {
        let picked = self.pick_within(site, alternatives);
        if let (Some(asked), Some(origin)) = (&mut self.asked_from, &self.origin)
            && site.is_of_call()
        {
            asked.insert(self.made.choices.len(), origin.clone());
        }
        self.made.choices.push(TraceChoice {
            site: site.clone(),
            alternatives,
            picked,
        });
        Ok(picked)
    }

    fn offer_threads(&mut self, threads: &[u32]) {
        self.offered.clear();
        self.offered.extend_from_slice(threads);
    }

    fn assume(&mut self, arena: &mut Arena, condition: ExprId) -> Result<bool, Suspend> {
        Ok(self.eval(arena, condition) != 0 || self.redraw_inputs(arena, condition))
    }

    fn input(&mut self, arena: &mut Arena, name: &str, size: u32) -> Result<ArrayId, Suspend> {
        let at = self.take_input(arena, name, size);
        Ok(self.inputs.0[at].0)
    }

    fn outside(&mut self, question: &OutsideQuestion<'_>) -> Result<OutsideAnswer, Suspend> {
        let answer = match (&self.outside, &self.source) {
            (Some(live), _) => live.answer(question),
            (None, Source::Trace(trace) | Source::Begun(trace, _)) => {
                let answer = trace.answer(question.id, self.made.answers.len());
                let missing = "the trace has no answer to what the hosts send to it";
                answer.cloned().ok_or_else(|| missing.to_owned())
            }
            (None, Source::Random(_) | Source::Planned(..)) => {
                Err("it has no recording".to_owned())
            }
        };
        if let Ok(bytes) = &answer {
            self.made.answers.push(TraceAnswer {
                question: question.id,
                bytes: bytes.clone(),
            });
        }
        Ok(answer)
    }

    fn prefer(&mut self, _: &mut Arena, _: ExprId) {}

    fn commit(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet_fault() -> ChoiceSite {
        ChoiceSite::PacketFault {
            faults: ["loss", "delay"].into_iter().collect(),
        }
    }

    #[test]
    fn faults_that_are_used_up_do_not_happen_at_random() {
        let mut oracle = NativeOracle::new(Source::Random(1));
        let mut picked = |used_up: &[&str]| {
            oracle.used_up = used_up.iter().map(|name| (*name).to_owned()).collect();
            let picked = (0..1000).map(|_| oracle.choose(&packet_fault(), 3).ok());
            let mut picked: Vec<u32> = picked.flatten().collect();
            picked.sort_unstable();
            picked.dedup();
            picked
        };
        assert_eq!(picked(&[]), [0, 1, 2]);
        assert_eq!(picked(&["loss"]), [0, 2]);
        assert_eq!(picked(&["loss", "delay"]), [0]);
        // The recorded trace contains the choices that were made.
        let mut recorded = oracle.made.choices.iter().skip(2000);
        assert!(recorded.all(|choice| choice.picked == 0));
    }

    /// Few of all numbers are in a small range, and a trace that was changed may be outside of it.
    #[test]
    fn numbers_of_a_small_range_are_drawn() {
        let input = TraceInput {
            name: "number".into(),
            bytes: vec![9; 4],
        };
        let begun = Trace {
            inputs: [input].into_iter().collect(),
            ..Trace::default()
        };
        let mut drawn = std::collections::BTreeSet::new();
        for seed in 0..30 {
            let begun = Source::Begun(Box::new(begun.clone()), seed);
            for source in [Source::Random(seed), begun] {
                let (mut oracle, mut arena) = (NativeOracle::new(source), Arena::new());
                let input = oracle.input(&mut arena, "number", 4).ok();
                let input = input.expect("an input");
                let bytes: Vec<_> = (0..4).map(|at| arena.read(input, at)).collect();
                let number = arena.concat_bytes(&bytes);
                let is_within = everett_vm::is_within(&mut arena, number, (700, 702));
                assert_eq!(oracle.assume(&mut arena, is_within).ok(), Some(true));
                drawn.insert(oracle.eval(&arena, number));
            }
        }
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [700, 701, 702]);
    }

    #[test]
    fn a_trace_with_too_many_faults_is_not_followed() {
        let lost = TraceChoice {
            site: packet_fault(),
            alternatives: 3,
            picked: 1,
        };
        let trace = Trace {
            choices: [lost.clone(), lost].into_iter().collect(),
            ..Trace::default()
        };
        let mut oracle = NativeOracle::new(Source::Trace(Box::new(trace)));
        assert_eq!(oracle.choose(&packet_fault(), 3), Ok(1));
        assert_eq!(oracle.diverged, None);
        oracle.used_up = vec!["loss".to_owned()];
        assert_eq!(oracle.choose(&packet_fault(), 3), Ok(0));
        assert!(oracle.diverged.is_some());
    }
}
