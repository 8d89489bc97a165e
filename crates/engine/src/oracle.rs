//! The oracle of the search: answers the questions of a state from the answers already given to the
//! current instruction, from the trace that it follows, from the model of its path, or from the
//! solver. If two answers are possible, it suspends the instruction and the explorer forks.

use everett_expr::{Arena, ArrayId, EvalScratch, ExprId};
use everett_sim::{Plan, PlannedSite};
use everett_solver::{Model, Solver, Verdict};
use everett_vm::{
    CallSite, ChoiceSite, Image, Narrowed, Note, Oracle, Outside, OutsideAnswer, OutsideQuestion,
    Suspend,
};
use std::sync::Arc;

use crate::input::Input;
use crate::path::{Answer, Companion, MergePoint, Path};
use crate::seeds::Seed;
use crate::shares::Shares;
use crate::source::{Called, IsCallAt, describe};
use crate::trace::{TraceAnswer, TraceChoice, TraceInput, input_of, is_named};

/// Why a state was suspended.
#[derive(Clone, Debug)]
pub enum Fork {
    /// A condition can be true or false. The state's model takes `side`; `other` is a model for the
    /// other side, or the reason why the solver found none.
    Branch {
        condition: ExprId,
        side: bool,
        other: Result<Model, String>,
    },
    /// A term can have this value or others.
    Value {
        term: ExprId,
        value: u64,
        other: Result<Model, String>,
    },
    /// A choice with several alternatives that no state has taken yet.
    Choice {
        site: ChoiceSite,
        alternatives: u32,
        picked: u32,
    },
}

impl Fork {
    /// Returns whether the fork is about data, and not about a schedule or a fault.
    pub fn is_of_data(&self) -> bool {
        !matches!(self, Fork::Choice { .. })
    }
}

/// The oracle for one state while it runs.
pub struct PathOracle<'a> {
    path: &'a mut Path,
    solver: &'a mut Solver,
    scratch: &'a mut EvalScratch,
    /// The index of the next answer on the tape.
    next: usize,
    /// The fork to make after a suspension, if there is one.
    pub fork: Option<Fork>,
    /// The source of answers for live peers.
    outside: Option<&'a dyn Outside>,
    /// Whether paths can be merged.
    merges: bool,
    /// The planned faults of the host, if faults are planned.
    plan: Option<&'a Plan>,
    /// The programs, and what tells whether a call comes from the place of a planned fault.
    call_sites: Option<(&'a [Image], &'a IsCallAt)>,
    /// The call of the next choice, as far as plans need it.
    origin: Option<Called>,
    /// The seeds of the search.
    seeds: &'a [Seed],
    /// Whether somebody hears what programs say to their user.
    keeps_notes: bool,
    /// What the current instruction says.
    notes: Vec<Note>,
    /// The forks and queries so far, if their shares are limited.
    shares: Option<&'a mut Shares>,
}

impl<'a> PathOracle<'a> {
    /// Creates the oracle for a state with this path.
    pub fn new(path: &'a mut Path, solver: &'a mut Solver, scratch: &'a mut EvalScratch) -> Self {
        PathOracle {
            path,
            solver,
            scratch,
            next: 0,
            fork: None,
            outside: None,
            merges: false,
            plan: None,
            call_sites: None,
            origin: None,
            seeds: &[],
            keeps_notes: false,
            notes: Vec::new(),
            shares: None,
        }
    }

    /// Counts questions by place.
    pub fn with_shares(self, shares: Option<&'a mut Shares>) -> Self {
        PathOracle { shares, ..self }
    }

    /// Sets whether the search merges paths.
    pub fn with_merging(self, merges: bool) -> Self {
        PathOracle { merges, ..self }
    }

    /// Sets the seeds of the search.
    pub fn with_seeds(self, seeds: &'a [Seed]) -> Self {
        PathOracle { seeds, ..self }
    }

    /// Sets whether somebody hears what programs say to their user.
    pub fn with_notes(self, keeps_notes: bool) -> Self {
        PathOracle {
            keeps_notes,
            ..self
        }
    }

    /// Sets what answers for live peers.
    pub fn with_outside(self, outside: Option<&'a dyn Outside>) -> Self {
        PathOracle { outside, ..self }
    }

    /// The same, for a host whose faults are planned.
    pub fn with_plan(self, plan: Option<&'a Plan>) -> Self {
        PathOracle { plan, ..self }
    }

    /// The same, where planned faults of calls have call sites.
    pub fn with_call_sites(self, images: &'a [Image], is_at: Option<&'a IsCallAt>) -> Self {
        PathOracle {
            call_sites: is_at.map(|is_at| (images, is_at)),
            ..self
        }
    }

    /// Returns whether the run ends, at its deadline or on request: unanswered queries then stay
    /// open.
    fn is_late(&self) -> bool {
        self.solver.is_interrupted()
    }

    /// Returns the next answer that was already given to the current instruction.
    fn recall(&mut self) -> Option<Answer> {
        let answer = self.path.tape.get(self.next).copied()?;
        self.next += 1;
        Some(answer)
    }

    /// Records an answer to the current instruction.
    fn answer(&mut self, answer: Answer) {
        self.path.answer(answer);
        self.next = self.path.tape.len();
    }

    /// Returns an answer, or suspends a state that is being rematerialised: with its last answer,
    /// the state has reached its position.
    fn pausing<T>(&self, answer: T) -> Result<T, Suspend> {
        match self.path.pause_at {
            Some(at) if at == self.path.answered => Err(Suspend),
            _ => Ok(answer),
        }
    }

    /// Returns whether a state that is being rematerialised has reached its position, so that the
    /// question stays open.
    fn is_open(&self) -> bool {
        let at = self.path.pause_at;
        at.is_some_and(|at| self.path.answered >= at)
    }

    fn follows(&self) -> bool {
        self.path.follow.is_some()
    }

    fn eval(&mut self, arena: &Arena, term: ExprId) -> u64 {
        arena.eval(term, &self.path.model, self.scratch)
    }

    /// Suspends a state that follows several traces if one of them gives another answer than this
    /// one, or ends at this question: it continues with a state of its own, which asks again.
    fn part_unless(&mut self, agrees: impl FnMut(&Companion) -> bool) -> Result<(), Suspend> {
        let answered = self.path.answered;
        let Some(follow) = &mut self.path.follow else {
            return Ok(());
        };
        if follow.companions.is_empty() || !follow.part(answered, agrees) {
            return Ok(());
        }
        Err(Suspend)
    }

    /// The same, for the value of a term.
    fn part_by(&mut self, arena: &Arena, term: ExprId, value: u64) -> Result<(), Suspend> {
        let mut scratch = std::mem::take(self.scratch);
        let agrees = |other: &Companion| arena.eval(term, &other.model, &mut scratch) == value;
        let parted = self.part_unless(agrees);
        *self.scratch = scratch;
        parted
    }

    /// Checks whether a term can have another value, which `condition` says. If a seed has one, the
    /// other side gets its values, and the solver is not asked.
    fn check_other(
        &mut self,
        arena: &mut Arena,
        (term, value): (ExprId, u64),
        condition: ExprId,
    ) -> Verdict {
        if !self.path.seeds.is_empty() {
            self.path.seeds.give(self.seeds, &self.path.inputs);
            let other = self.path.seeds.other(arena, (term, value), self.scratch);
            if let Some(model) = other {
                return Verdict::Sat(model);
            }
        }
        let (constraints, model) = (&self.path.constraints, &self.path.model);
        self.solver.check(arena, constraints, model, condition)
    }

    /// Lets the path go the way of the first seed that it has left.
    fn follow_seeds(&mut self) {
        if !self.path.seeds.is_empty() && !self.follows() {
            self.path.seeds.give(self.seeds, &self.path.inputs);
            self.path.model = self.path.seeds.model().cloned().unwrap_or_default();
        }
    }

    /// Stops following the trace, and records how the program diverged from it.
    fn diverge(&mut self, message: String) {
        self.path.follow = None;
        self.path.diverged.get_or_insert(message);
    }

    fn equal(arena: &mut Arena, term: ExprId, value: u64) -> ExprId {
        let width = arena.width(term);
        let constant = arena.constant(width, value);
        arena.eq(term, constant)
    }

    /// Adds constraints that exclude the values that other states took before this one was spilled.
    fn exclude(&mut self, arena: &mut Arena, term: ExprId) {
        if !std::mem::take(&mut self.path.excluded_anew) {
            return;
        }
        for value in self.path.excluded.clone() {
            let same = Self::equal(arena, term, value);
            let different = arena.not(same);
            self.path.constrain(arena, different);
        }
    }

    /// Returns the least and the greatest value of a term. The solver determines them also for a
    /// state that follows a trace: its condition has more terms but the same solutions, and its
    /// questions must be the same.
    fn range(&mut self, arena: &mut Arena, term: ExprId) -> Option<(u64, u64)> {
        let (constraints, model) = (&self.path.constraints, &self.path.model);
        let least = self.solver.unsigned_min(arena, constraints, model, term);
        let (least, _) = least.ok()?;
        let greatest = self.solver.unsigned_max(arena, constraints, model, term);
        Some((least, greatest.ok()?.0))
    }

    /// Returns an input that was already made, for a host that sets itself up again.
    fn input_again(&mut self, name: &str, size: u32) -> Option<ArrayId> {
        let range = self.path.again.clone();
        let mut known = self.path.inputs.iter().zip(0..).skip(range.start);
        let (input, at) = known.find(|(input, at)| {
            *at < range.end && input.size == size && is_named(&input.name, name)
        })?;
        let array = input.array;
        self.path.again.start = at + 1;
        Some(array)
    }

    /// Returns the input of this name that the first of two builds made, and its size.
    fn shared_input(&self, name: &str) -> Option<(ArrayId, u32)> {
        let second = self.path.second.as_ref()?;
        let input = second.input(&self.path.inputs, name)?;
        Some((input.array, input.size))
    }

    /// Records an input that the second of two builds requests.
    fn note_asked(&mut self, name: &str, array: ArrayId, size: u32) {
        if let Some(second) = &mut self.path.second {
            second.add_asked(name, array, size);
        }
    }

    /// Makes inputs of the same name of two builds have the same bytes, up to the shorter size.
    fn equate(&mut self, arena: &mut Arena, first: ArrayId, second: ArrayId, size: u32) {
        let bytes = self.path.model.bytes(first, size);
        let bytes = (0..).zip(bytes).map(|(at, byte)| (second, at, byte));
        self.path.model = self.path.model.with(bytes);
        for at in 0..size {
            let (one, other) = (arena.read(first, at), arena.read(second, at));
            let equal = arena.eq(one, other);
            self.path.constrain(arena, equal);
        }
    }

    /// Whether a planned fault happens here, if faults are planned.
    fn planned_choice(&mut self, site: &ChoiceSite, alternatives: u32) -> Option<u32> {
        let plan = self.plan.filter(|_| site.is_fault())?;
        let before = self.path.choices.iter().map(|choice| &choice.site);
        let picked = plan.pick_after(before, site, &self.path.asked_at);
        Some(picked.min(alternatives.saturating_sub(1)))
    }

    /// Counts a choice for the planned faults of calls from where the call comes.
    fn count_call_site(&mut self, site: &ChoiceSite) {
        let (Some(plan), Some((_, is_at))) = (self.plan, self.call_sites) else {
            return;
        };
        let Some(called) = self.origin.take() else {
            return;
        };
        let is_from = |from: &PlannedSite| is_at(from, &called);
        plan.count(site, is_from, &mut self.path.asked_at);
    }

    /// Returns the choice that the followed trace made here.
    fn followed_choice(&mut self, site: &ChoiceSite, alternatives: u32) -> Option<u32> {
        let follow = self.path.follow.as_mut()?;
        if let Some(left) = &mut follow.loose {
            let picked = left.get_mut(site).and_then(|queue| queue.pop_front());
            return Some(picked.filter(|picked| *picked < alternatives).unwrap_or(0));
        }
        let choice = follow.trace.choices.get(follow.choices_used);
        follow.choices_used += 1;
        match choice {
            Some(choice) if choice.site == *site && choice.picked < alternatives => {
                Some(choice.picked)
            }
            expected => {
                let expected =
                    expected.map_or("no choice".to_owned(), |choice| choice.site.to_string());
                self.diverge(format!("the trace has {expected}, the program asks {site}"));
                None
            }
        }
    }
}

impl Oracle for PathOracle<'_> {
    fn asks_from(&mut self, site: CallSite) {
        self.solver
            .set_asker([site.image.0.into(), site.function.0, site.pc]);
    }

    fn wants_origin(&self, site: &ChoiceSite) -> bool {
        self.call_sites.is_some() && self.plan.is_some_and(|plan| plan.has_sites_of(site))
    }

    fn called_from(&mut self, sites: Vec<CallSite>, arguments: Vec<String>) {
        self.origin = self.call_sites.map(|(images, _)| Called {
            stack: describe(images, &sites),
            arguments,
        });
    }

    fn wants_call_path(&self) -> bool {
        self.shares.is_some()
    }

    fn asks_along(&mut self, site: CallSite, path: u64) {
        if let Some(shares) = &mut self.shares {
            shares.asks_from(site, path, self.solver.asked());
        }
    }

    fn branch(&mut self, arena: &mut Arena, condition: ExprId) -> Result<bool, Suspend> {
        if let Some(Answer::Bool(answer)) = self.recall() {
            return Ok(answer);
        }
        if self.is_open() {
            return Err(Suspend);
        }
        let side = self.eval(arena, condition) != 0;
        let negated = arena.not(condition);
        if self.follows() {
            self.part_by(arena, condition, u64::from(side))?;
            self.path
                .constrain(arena, if side { condition } else { negated });
            self.answer(Answer::Bool(side));
            return self.pausing(side);
        }
        if self.is_late() {
            return Err(Suspend);
        }
        let other = if side { negated } else { condition };
        let other = self.check_other(arena, (condition, u64::from(side)), other);
        let other = match other {
            Verdict::Unsat => {
                self.answer(Answer::Bool(side));
                return Ok(side);
            }
            Verdict::Sat(model) => Ok(model),
            Verdict::Unknown(_) if self.is_late() => return Err(Suspend),
            Verdict::Unknown(reason) => Err(reason),
        };
        self.fork = Some(Fork::Branch {
            condition,
            side,
            other,
        });
        Err(Suspend)
    }

    fn concretize(&mut self, arena: &mut Arena, term: ExprId) -> Result<u64, Suspend> {
        if let Some(Answer::Value(answer)) = self.recall() {
            return Ok(answer);
        }
        if self.is_open() {
            return Err(Suspend);
        }
        self.exclude(arena, term);
        let value = self.eval(arena, term);
        let same = Self::equal(arena, term, value);
        if self.follows() {
            self.part_by(arena, term, value)?;
            self.path.constrain(arena, same);
            self.answer(Answer::Value(value));
            return self.pausing(value);
        }
        if self.is_late() {
            return Err(Suspend);
        }
        let different = arena.not(same);
        let other = self.check_other(arena, (term, value), different);
        let other = match other {
            Verdict::Unsat => {
                self.answer(Answer::Value(value));
                return Ok(value);
            }
            Verdict::Sat(model) => Ok(model),
            Verdict::Unknown(_) if self.is_late() => return Err(Suspend),
            Verdict::Unknown(reason) => Err(reason),
        };
        self.fork = Some(Fork::Value { term, value, other });
        Err(Suspend)
    }

    fn narrow(
        &mut self,
        arena: &mut Arena,
        term: ExprId,
        few: &dyn Fn((u64, u64)) -> bool,
    ) -> Result<Narrowed, Suspend> {
        let known = self.path.tape.get(self.next).copied();
        if let Some(Answer::Range(least, greatest)) = known {
            self.next += 1;
            return Ok(Narrowed::Range(least, greatest));
        }
        if known.is_none() && !self.is_open() {
            self.exclude(arena, term);
            // The range follows from the path condition, which companions have in common.
            self.part_unless(|_| true)?;
            if let Some((least, greatest)) = self.range(arena, term).filter(|&range| few(range)) {
                self.answer(Answer::Range(least, greatest));
                return self.pausing(Narrowed::Range(least, greatest));
            }
        }
        self.concretize(arena, term).map(Narrowed::Value)
    }

    fn choose(&mut self, site: &ChoiceSite, alternatives: u32) -> Result<u32, Suspend> {
        if let Some(Answer::Choice(answer)) = self.recall() {
            return Ok(answer);
        }
        if self.is_open() {
            return Err(Suspend);
        }
        let mut left = (0..alternatives)
            .filter(|alternative| !self.path.excluded.contains(&u64::from(*alternative)));
        let first = left.next().unwrap_or(0);
        let last_one = left.next().is_none();
        if let Some(follow) = &self.path.follow {
            let (trace, used) = (follow.trace.clone(), follow.choices_used);
            let next = trace.choices.get(used);
            self.part_unless(|other| other.trace.choices.get(used) == next)?;
        }
        let second = self.path.second.as_ref();
        let shared = second.and_then(|second| second.choice(site, alternatives));
        self.count_call_site(site);
        let picked = self.followed_choice(site, alternatives).or(shared);
        let picked = picked.or_else(|| self.planned_choice(site, alternatives));
        if !last_one && picked.is_none() {
            self.fork = Some(Fork::Choice {
                site: site.clone(),
                alternatives,
                picked: first,
            });
            return Err(Suspend);
        }
        let picked = picked.unwrap_or(first);
        let choice = TraceChoice {
            site: site.clone(),
            alternatives,
            picked,
        };
        self.path.choose(choice);
        self.next = self.path.tape.len();
        self.pausing(picked)
    }

    fn assume(&mut self, arena: &mut Arena, condition: ExprId) -> Result<bool, Suspend> {
        if let Some(Answer::Bool(answer)) = self.recall() {
            return Ok(answer);
        }
        if self.is_open() {
            return Err(Suspend);
        }
        if !self.path.seeds.is_empty() && !self.follows() {
            self.path.seeds.give(self.seeds, &self.path.inputs);
            self.path.seeds.keep(arena, condition, self.scratch);
            self.follow_seeds();
        }
        let mut holds = self.eval(arena, condition) != 0;
        self.part_by(arena, condition, u64::from(holds))?;
        if !holds && !self.follows() {
            match self
                .solver
                .check(arena, &self.path.constraints, &self.path.model, condition)
            {
                Verdict::Sat(model) => {
                    self.path.model = model;
                    holds = true;
                }
                Verdict::Unsat => {}
                Verdict::Unknown(_) if self.is_late() => return Err(Suspend),
                Verdict::Unknown(reason) => {
                    let side = false;
                    self.fork = Some(Fork::Branch {
                        condition,
                        side,
                        other: Err(reason),
                    });
                    return Err(Suspend);
                }
            }
        }
        if holds {
            self.path.constrain(arena, condition);
        }
        self.answer(Answer::Bool(holds));
        self.pausing(holds)
    }

    fn is_excluded(&mut self, arena: &mut Arena, condition: ExprId) -> bool {
        let (constraints, model) = (&self.path.constraints, &self.path.model);
        let verdict = self.solver.check(arena, constraints, model, condition);
        matches!(verdict, Verdict::Unsat)
    }

    fn input(&mut self, arena: &mut Arena, name: &str, size: u32) -> Result<ArrayId, Suspend> {
        if let Some(Answer::Input(array)) = self.recall() {
            return Ok(array);
        }
        if self.is_open() {
            return Err(Suspend);
        }
        if let Some(array) = self.input_again(name, size) {
            self.answer(Answer::Input(array));
            return self.pausing(array);
        }
        let ordinal = self.path.inputs.len();
        let has_same =
            |given: &TraceInput| is_named(&given.name, name) && given.bytes.len() == size as usize;
        self.part_unless(|other| other.trace.inputs.get(ordinal).is_some_and(has_same))?;
        let name = self.path.names.take(name);
        let shared = self.shared_input(&name);
        if let Some((array, made)) = shared
            && made == size
        {
            self.note_asked(&name, array, size);
            self.answer(Answer::Input(array));
            return self.pausing(array);
        }
        let array = match &self.path.owner {
            Some(owner) => arena.array(ordinal as u32, &format!("{owner}:{name}"), size),
            None => arena.array(ordinal as u32, &name, size),
        };
        if let Some(follow) = &mut self.path.follow {
            for companion in &mut follow.companions {
                if let Some(given) = companion.trace.inputs.get(ordinal) {
                    companion.model = companion.model.with(values_of(array, &given.bytes));
                }
            }
            let mut given = follow.trace.inputs.get(ordinal);
            if follow.loose.is_some() && given.is_none_or(|given| *given.name != *name) {
                let mut all = follow.trace.inputs.iter();
                given = all.find(|given| *given.name == *name);
            }
            match given {
                given if follow.loose.is_some() => {
                    let bytes = given.map_or(&[][..], |given| &given.bytes);
                    let bytes = &bytes[..bytes.len().min(size as usize)];
                    self.path.model = self.path.model.with(values_of(array, bytes));
                }
                Some(given) if *given.name == *name && given.bytes.len() == size as usize => {
                    self.path.model = self.path.model.with(values_of(array, &given.bytes));
                }
                other => {
                    let other = other.map_or("no input".to_owned(), |other| {
                        input_of(&other.name, other.bytes.len())
                    });
                    self.diverge(format!(
                        "the trace has {other}, the program asks for {}",
                        input_of(&name, size as usize)
                    ));
                }
            }
        }
        self.note_asked(&name, array, size);
        if let Some((first, made)) = shared {
            self.equate(arena, first, array, size.min(made));
        }
        let input = Input {
            name: name.into(),
            array,
            size,
        };
        self.path.inputs.push(input);
        self.follow_seeds();
        self.answer(Answer::Input(array));
        self.pausing(array)
    }

    fn outside(&mut self, question: &OutsideQuestion<'_>) -> Result<OutsideAnswer, Suspend> {
        if let Some(Answer::Outside(number)) = self.recall() {
            let known = self.path.answers.get(number);
            let known = known.map(|answer| answer.bytes.clone());
            return Ok(known.ok_or_else(|| "an answer is lost".to_owned()));
        }
        if self.is_open() || !self.follows() && self.is_late() {
            return Err(Suspend);
        }
        let number = self.path.answers.len();
        let follow = self.path.follow.as_ref();
        let followed = follow.and_then(|follow| follow.trace.answer(question.id, number));
        let bytes = match (followed.cloned(), self.outside) {
            (Some(bytes), outside) => {
                if let Some(outside) = outside {
                    outside.learn(question, &bytes);
                }
                bytes
            }
            (None, Some(outside)) => match outside.answer(question) {
                Ok(bytes) => bytes,
                Err(message) => return Ok(Err(message)),
            },
            (None, None) => return Ok(Err(format!("nothing answers for peer {}", question.peer))),
        };
        self.path.answers.push(TraceAnswer {
            question: question.id,
            bytes: bytes.clone(),
        });
        self.answer(Answer::Outside(number));
        self.pausing(Ok(bytes))
    }

    fn prefer(&mut self, _arena: &mut Arena, condition: ExprId) {
        if !self.path.is_loose() && !self.path.preferences.contains(&condition) {
            Arc::make_mut(&mut self.path.preferences).push(condition);
        }
    }

    fn keeps_notes(&self) -> bool {
        self.keeps_notes
    }

    fn note(&mut self, note: Note) {
        if self.keeps_notes {
            self.notes.push(note);
        }
    }

    fn set_forking(&mut self, on: bool) {
        self.path.takes_one_side = !on;
    }

    fn set_forking_on_floats(&mut self, on: bool) {
        self.path.fixes_floats = !on;
    }

    fn open_merge(&mut self) -> Result<(), Suspend> {
        if let Some(Answer::Merge(_)) = self.recall() {
            return Ok(());
        }
        if self.is_open() {
            return Err(Suspend);
        }
        let is_within = self.path.open_regions.is_some();
        if let Some(regions) = &mut self.path.open_regions {
            // The paths of an inner region are merged with those of the outer one.
            *regions += 1;
        }
        if is_within || !self.merges || !self.path.merges_here() {
            self.path.unmerged_regions += u32::from(!is_within);
            self.answer(Answer::Merge(0));
            return self.pausing(());
        }
        if !self.is_late() {
            self.path.at_merge = Some(MergePoint::Open);
        }
        Err(Suspend)
    }

    fn close_merge(&mut self) -> Result<(), Suspend> {
        if let Some(Answer::Merge(_)) = self.recall() {
            return Ok(());
        }
        if self.is_open() {
            return Err(Suspend);
        }
        match &mut self.path.open_regions {
            Some(1) => {
                self.path.at_merge = Some(MergePoint::Close);
                return Err(Suspend);
            }
            Some(regions) => *regions -= 1,
            None if self.path.unmerged_regions > 0 => self.path.unmerged_regions -= 1,
            None => {
                let text = "a path ran into a close at klee_close_merge() without a preceding open";
                self.note(Note::Warning(text.to_owned()));
            }
        }
        self.answer(Answer::Merge(0));
        self.pausing(())
    }

    fn commit(&mut self) {
        self.path.tape.clear();
        self.next = 0;
        for note in self.notes.drain(..) {
            self.path.note(note);
        }
    }
}

/// Returns the values of an input, byte by byte, for a model.
fn values_of(array: ArrayId, bytes: &[u8]) -> impl Iterator<Item = (ArrayId, u32, u8)> {
    bytes
        .iter()
        .zip(0..)
        .map(move |(byte, at)| (array, at, *byte))
}
