//! A small incremental CDCL solver for easy queries over large instances.
//!
//! CaDiCaL assigns every variable of an instance before it answers `Sat`, so its time grows with
//! everything ever translated. This solver decides only the inputs it is given. All gates between
//! them and the assumptions follow by propagation, and the rest of the instance can always be
//! completed, because every clause defines a gate. So clauses of gates on which the query does not
//! depend are not visited: most of an instance comes from other queries. Inputs are first tried with
//! given phases, those of a model that nearly satisfies the query.

use super::heap::ActivityHeap;
use super::sat::{Backend, Division, Lit, SatAnswer};

/// A literal as an index: twice the variable, plus one where negated.
type Code = u32;
type ClauseRef = u32;

const NO_REASON: ClauseRef = ClauseRef::MAX;
/// Header in front of the literals of a clause: its length, and for learned clauses the LBD.
const HEADER: usize = 2;
const RESTART_UNIT: u32 = 50;
/// This many watch visits consume as much of the budget as one conflict: if conflicts are
/// expensive, because each one undoes and repeats nearly everything, the query is not easy.
const VISITS_PER_CONFLICT: usize = 3000;
const FIRST_LEARNED_LIMIT: usize = 3000;

fn code(lit: Lit) -> Code {
    lit.unsigned_abs() << 1 | u32::from(lit < 0)
}

#[derive(Clone, Copy)]
struct Watch {
    clause: ClauseRef,
    /// Another literal of the clause: if it is true, the clause need not be visited.
    blocker: Code,
    /// The variable of the gate that the clause defines: if the query does not depend on it, the
    /// clause need not be visited. 0 if the clause is visited in any case.
    gate: u32,
}

/// The position at which the search for the next decision starts; everything before it is assigned.
#[derive(Default)]
struct DecisionCursor {
    input: usize,
    division: usize,
}

/// The circuit of a division. Its results depend on all of it, and on the operands.
struct Circuit {
    first: u32,
    last: u32,
    /// The number of the division.
    division: usize,
    /// Whether the query depends on it.
    is_needed: bool,
}

#[derive(Default)]
pub struct Cdcl {
    /// The value of each literal: 1 true, -1 false, 0 unassigned.
    values: Vec<i8>,
    watches: Vec<Vec<Watch>>,
    reasons: Vec<ClauseRef>,
    levels: Vec<u32>,
    preferred: Vec<bool>,
    seen: Vec<bool>,
    trail: Vec<Code>,
    level_starts: Vec<usize>,
    head: usize,
    clauses: Vec<u32>,
    learned: Vec<ClauseRef>,
    learned_limit: usize,
    heap: ActivityHeap,
    failed: Vec<Code>,
    /// The assumptions of the last query. The decision level of each is its position plus one.
    assumed: Vec<Lit>,
    divisions: Vec<Division>,
    circuits: Vec<Circuit>,
    /// The largest variable of any clause so far. A gate has a larger variable than its operands.
    newest: u32,
    /// The clauses that define each variable: where they begin and end.
    definitions: Vec<(ClauseRef, ClauseRef)>,
    /// Whether the query depends on a variable, and all variables on which it does.
    is_needed: Vec<bool>,
    needed: Vec<u32>,
    contradictory: bool,
    visits: usize,
    learnt: Vec<Code>,
    marked: Vec<u32>,
}

impl Backend for Cdcl {
    const MAX_FLOAT_PRODUCT: usize = 1 << 10;

    fn new() -> Cdcl {
        Cdcl {
            learned_limit: FIRST_LEARNED_LIMIT,
            ..Cdcl::default()
        }
    }

    fn add_clause(&mut self, clause: &[Lit]) {
        self.backtrack(0);
        let gate = self.gate_of(clause);
        let mut literals = std::mem::take(&mut self.learnt);
        literals.clear();
        let mut satisfied = false;
        for &lit in clause {
            self.make_room(lit.unsigned_abs());
            let literal = code(lit);
            match self.values[literal as usize] {
                0 if literals.contains(&(literal ^ 1)) => satisfied = true,
                0 if literals.contains(&literal) => {}
                0 => literals.push(literal),
                1 => satisfied = true,
                _ => {}
            }
        }
        if !satisfied {
            match *literals.as_slice() {
                [] => self.contradictory = true,
                [unit] => self.assign(unit, NO_REASON),
                _ => {
                    let start = self.store(&literals, 0, gate);
                    let (first, end) = &mut self.definitions[gate as usize];
                    if *end == 0 {
                        *first = start;
                    }
                    *end = self.clauses.len() as ClauseRef;
                }
            }
        }
        self.learnt = literals;
    }

    fn add_division(&mut self, division: Division) {
        let results = division.quotient.iter().chain(&division.remainder);
        if let Some(first) = results.map(|lit| lit.unsigned_abs()).min() {
            self.circuits.push(Circuit {
                first,
                last: self.newest,
                division: self.divisions.len(),
                is_needed: false,
            });
        }
        self.divisions.push(division);
    }

    fn solve(&mut self, assumptions: &[Lit], inputs: &[Lit], conflicts: &mut u32) -> SatAnswer {
        // Levels of assumptions that the last query began with as well are kept, if no clause was
        // added since.
        let same = self.assumed.iter().zip(assumptions);
        let common = same.take_while(|(one, other)| one == other).count();
        // Before variables are unassigned, which would put each of them back.
        self.heap.clear();
        for &lit in inputs.iter().chain(assumptions) {
            self.make_room(lit.unsigned_abs());
        }
        match self.need(inputs.iter().chain(assumptions)) {
            // Clauses that were not visited may have to be.
            true => self.backtrack(0),
            false => self.backtrack(common as u32),
        }
        self.assumed.clear();
        self.assumed.extend_from_slice(assumptions);
        self.failed.clear();
        for &lit in inputs {
            self.preferred[lit.unsigned_abs() as usize] = lit > 0;
        }
        for round in 1.. {
            let burst = luby(round) * RESTART_UNIT;
            if let Some(answer) = self.search(assumptions, inputs, burst, conflicts) {
                return answer;
            }
            if *conflicts == 0 {
                break;
            }
            if self.learned.len() > self.learned_limit {
                self.backtrack(0);
                self.forget_half();
            } else {
                self.backtrack(assumptions.len() as u32);
            }
        }
        self.backtrack(0);
        SatAnswer::OverBudget
    }

    fn value(&mut self, lit: Lit) -> bool {
        self.values.get(code(lit) as usize) == Some(&1)
    }

    fn failed(&mut self, lit: Lit) -> bool {
        self.failed.contains(&code(lit))
    }
}

impl Cdcl {
    fn make_room(&mut self, variable: u32) {
        let variables = variable as usize + 1;
        if self.levels.len() < variables {
            self.values.resize(2 * variables, 0);
            self.watches.resize_with(2 * variables, Vec::new);
            self.reasons.resize(variables, NO_REASON);
            self.levels.resize(variables, 0);
            self.preferred.resize(variables, false);
            self.seen.resize(variables, false);
            self.definitions.resize(variables, (0, 0));
            self.is_needed.resize(variables, false);
            self.heap.make_room(variables);
        }
    }

    /// Returns the variable of the gate that a clause defines; 0 if the clause was not added
    /// together with a new gate, but says something about older ones.
    fn gate_of(&mut self, clause: &[Lit]) -> u32 {
        let largest = clause.iter().map(|lit| lit.unsigned_abs()).max();
        match largest {
            Some(largest) if largest >= self.newest => {
                self.newest = largest;
                largest
            }
            _ => 0,
        }
    }

    /// Determines on which variables a query depends, if these are not known from the last one:
    /// those of its literals, and the operands of gates among them. Returns whether they changed.
    fn need<'l>(&mut self, literals: impl Iterator<Item = &'l Lit> + Clone) -> bool {
        if literals
            .clone()
            .all(|lit| self.is_needed[lit.unsigned_abs() as usize])
        {
            return false;
        }
        for variable in self.needed.drain(..) {
            self.is_needed[variable as usize] = false;
        }
        for circuit in &mut self.circuits {
            circuit.is_needed = false;
        }
        literals.for_each(|lit| self.need_variable(lit.unsigned_abs()));
        let mut next = 0;
        while let Some(&variable) = self.needed.get(next) {
            next += 1;
            let (mut clause, end) = self.definitions[variable as usize];
            while clause < end {
                let literals = self.literals(clause);
                clause = literals.end as ClauseRef;
                for at in literals {
                    self.need_variable(self.clauses[at] >> 1);
                }
            }
            self.need_circuit(variable);
        }
        true
    }

    /// Notes that the query depends on a division if a variable belongs to it.
    fn need_circuit(&mut self, variable: u32) {
        let at = self.circuits.partition_point(|it| it.first <= variable);
        let circuit = at.checked_sub(1).map(|at| &mut self.circuits[at]);
        let is_new = |it: &&mut Circuit| variable <= it.last && !it.is_needed;
        let Some(circuit) = circuit.filter(is_new) else {
            return;
        };
        circuit.is_needed = true;
        let (own, division) = (
            circuit.first..=circuit.last,
            &self.divisions[circuit.division],
        );
        let operands = division.dividend.iter().chain(&division.divisor);
        let operands = operands.map(|lit| lit.unsigned_abs());
        let all: Vec<u32> = own.chain(operands).collect();
        all.into_iter()
            .for_each(|variable| self.need_variable(variable));
    }

    fn need_variable(&mut self, variable: u32) {
        if !std::mem::replace(&mut self.is_needed[variable as usize], true) {
            self.needed.push(variable);
        }
    }

    fn level(&self) -> u32 {
        self.level_starts.len() as u32
    }

    fn literals(&self, clause: ClauseRef) -> std::ops::Range<usize> {
        let start = clause as usize + HEADER;
        start..start + self.clauses[clause as usize] as usize
    }

    /// Stores a clause of at least two literals and watches the first two. `gate` is the variable of
    /// the gate that it defines, or 0.
    fn store(&mut self, literals: &[Code], levels: u32, gate: u32) -> ClauseRef {
        let clause = self.clauses.len() as ClauseRef;
        self.clauses.extend([literals.len() as u32, levels]);
        self.clauses.extend_from_slice(literals);
        for (watched, blocker) in [(literals[0], literals[1]), (literals[1], literals[0])] {
            let watch = Watch {
                clause,
                blocker,
                gate,
            };
            self.watches[watched as usize].push(watch);
        }
        clause
    }

    fn assign(&mut self, literal: Code, reason: ClauseRef) {
        let variable = (literal >> 1) as usize;
        self.values[literal as usize] = 1;
        self.values[(literal ^ 1) as usize] = -1;
        self.reasons[variable] = reason;
        self.levels[variable] = self.level();
        self.trail.push(literal);
    }

    fn decide(&mut self, literal: Code) {
        self.level_starts.push(self.trail.len());
        self.assign(literal, NO_REASON);
    }

    fn backtrack(&mut self, level: u32) {
        if self.level() <= level {
            return;
        }
        let start = self.level_starts[level as usize];
        for &literal in &self.trail[start..] {
            let variable = literal >> 1;
            self.values[literal as usize] = 0;
            self.values[(literal ^ 1) as usize] = 0;
            self.preferred[variable as usize] = literal & 1 == 0;
            self.heap.put_back(variable);
        }
        self.trail.truncate(start);
        self.level_starts.truncate(level as usize);
        self.head = self.head.min(start);
    }

    /// Performs unit propagation. Returns the conflicting clause, if any.
    fn propagate(&mut self) -> Option<ClauseRef> {
        while let Some(&literal) = self.trail.get(self.head) {
            self.head += 1;
            let broken = self.visit_watches(literal ^ 1);
            if broken.is_some() {
                return broken;
            }
        }
        None
    }

    /// Visits all clauses that watch a literal that became false, except those that the query does
    /// not need. What is assigned at level 0 stays so in all queries, so that all of its clauses are
    /// visited.
    fn visit_watches(&mut self, falsified: Code) -> Option<ClauseRef> {
        let mut watches = std::mem::take(&mut self.watches[falsified as usize]);
        let all = self.level() == 0;
        let mut broken = None;
        let (mut read, mut write) = (0, 0);
        while let Some(&watch) = watches.get(read) {
            read += 1;
            let is_needed = all || watch.gate == 0 || self.is_needed[watch.gate as usize];
            self.visits += usize::from(is_needed);
            if !is_needed || self.values[watch.blocker as usize] == 1 {
                watches[write] = watch;
                write += 1;
                continue;
            }
            let range = self.literals(watch.clause);
            let [first, second, others @ ..] = &mut self.clauses[range] else {
                unreachable!("a stored clause has at least two literals")
            };
            if *first == falsified {
                std::mem::swap(first, second);
            }
            let first = *first;
            let kept = Watch {
                blocker: first,
                ..watch
            };
            let value = self.values[first as usize];
            if value != 1 {
                let values = &self.values;
                let other = others.iter_mut().find(|it| values[**it as usize] != -1);
                if let Some(other) = other {
                    std::mem::swap(second, other);
                    self.watches[*second as usize].push(kept);
                    continue;
                }
            }
            watches[write] = kept;
            write += 1;
            match value {
                1 => {}
                0 => self.assign(first, watch.clause),
                _ => {
                    broken = Some(watch.clause);
                    break;
                }
            }
        }
        if read < watches.len() {
            watches.copy_within(read.., write);
        }
        watches.truncate(write + watches.len() - read);
        self.watches[falsified as usize] = watches;
        broken
    }

    /// Searches until `burst` conflicts have happened or the budget is exhausted; returns `None`
    /// then.
    fn search(
        &mut self,
        assumptions: &[Lit],
        inputs: &[Lit],
        burst: u32,
        budget: &mut u32,
    ) -> Option<SatAnswer> {
        let mut left = burst;
        let mut next = DecisionCursor::default();
        loop {
            if let Some(broken) = self.propagate() {
                if self.level() == 0 {
                    self.contradictory = true;
                }
                if self.contradictory {
                    return Some(SatAnswer::Unsat);
                }
                self.learn_from(broken);
                next = DecisionCursor::default();
                left = left.saturating_sub(1);
                let visits = self.visits / VISITS_PER_CONFLICT;
                self.visits %= VISITS_PER_CONFLICT;
                *budget = budget.saturating_sub(1 + u32::try_from(visits).unwrap_or(u32::MAX - 1));
                if left == 0 || *budget == 0 {
                    return None;
                }
                continue;
            }
            if self.contradictory {
                return Some(SatAnswer::Unsat);
            }
            if let Some(&lit) = assumptions.get(self.level() as usize) {
                match self.values[code(lit) as usize] {
                    0 => self.decide(code(lit)),
                    1 => self.level_starts.push(self.trail.len()),
                    _ => {
                        self.explain_failure(code(lit));
                        return Some(SatAnswer::Unsat);
                    }
                }
                continue;
            }
            match self.next_decision(inputs, &mut next) {
                Some(literal) => self.decide(literal),
                None => return Some(SatAnswer::Sat),
            }
        }
    }

    /// Returns the next decision: variables of recent conflicts by activity, then the inputs in
    /// order, then the results of divisions.
    fn next_decision(&mut self, inputs: &[Lit], next: &mut DecisionCursor) -> Option<Code> {
        while let Some(variable) = self.heap.pop() {
            if self.values[variable as usize * 2] == 0 {
                return Some(variable << 1 | u32::from(!self.preferred[variable as usize]));
            }
        }
        while let Some(&lit) = inputs.get(next.input) {
            let variable = lit.unsigned_abs();
            if self.values[variable as usize * 2] == 0 {
                return Some(variable << 1 | u32::from(!self.preferred[variable as usize]));
            }
            next.input += 1;
        }
        // A division that uses the results of another comes after it, so one pass is enough.
        while let Some(division) = self.divisions.get(next.division) {
            let value = |lit: Lit| match self.values[code(lit) as usize] {
                0 => None,
                value => Some(value == 1),
            };
            if let Some(lit) = division.next_result(value) {
                return Some(code(lit));
            }
            next.division += 1;
        }
        None
    }

    /// Learns the first-UIP clause and backjumps to where it becomes unit.
    fn learn_from(&mut self, broken: ClauseRef) {
        let mut learnt = std::mem::take(&mut self.learnt);
        learnt.clear();
        learnt.push(0);
        let mut open = 0;
        let mut reason = broken;
        let mut at = self.trail.len();
        loop {
            for i in self.literals(reason) {
                let literal = self.clauses[i];
                let variable = literal >> 1;
                let level = self.levels[variable as usize];
                if self.seen[variable as usize] || level == 0 || self.values[literal as usize] == 1
                {
                    continue;
                }
                self.seen[variable as usize] = true;
                self.marked.push(variable);
                self.heap.bump(variable);
                if level == self.level() {
                    open += 1;
                } else {
                    learnt.push(literal);
                }
            }
            loop {
                at -= 1;
                if self.seen[(self.trail[at] >> 1) as usize] {
                    break;
                }
            }
            let literal = self.trail[at];
            open -= 1;
            if open == 0 {
                learnt[0] = literal ^ 1;
                break;
            }
            reason = self.reasons[(literal >> 1) as usize];
        }
        self.minimize(&mut learnt);
        for variable in self.marked.drain(..) {
            self.seen[variable as usize] = false;
        }
        self.heap.decay();
        self.use_learnt(&mut learnt);
        self.learnt = learnt;
    }

    /// Removes literals that are implied by others of the clause.
    fn minimize(&self, learnt: &mut Vec<Code>) {
        let implied = |&literal: &Code| {
            let reason = self.reasons[(literal >> 1) as usize];
            reason != NO_REASON
                && self.clauses[self.literals(reason)].iter().all(|&other| {
                    let variable = (other >> 1) as usize;
                    other >> 1 == literal >> 1 || self.seen[variable] || self.levels[variable] == 0
                })
        };
        let mut at = 0;
        learnt.retain(|literal| {
            at += 1;
            at == 1 || !implied(literal)
        });
    }

    fn use_learnt(&mut self, learnt: &mut [Code]) {
        let level_of = |literal: Code| self.levels[(literal >> 1) as usize];
        if let [unit] = *learnt {
            self.backtrack(0);
            self.assign(unit, NO_REASON);
            return;
        }
        // The second watch must be the last one to be unassigned.
        if let Some(deepest) = (1..learnt.len()).max_by_key(|&i| level_of(learnt[i])) {
            learnt.swap(1, deepest);
        }
        let mut levels: Vec<u32> = learnt.iter().map(|&literal| level_of(literal)).collect();
        let target = levels[1];
        levels.sort_unstable();
        levels.dedup();
        self.backtrack(target);
        let clause = self.store(learnt, levels.len() as u32, 0);
        self.learned.push(clause);
        self.assign(learnt[0], clause);
    }

    /// Computes the assumptions that contradict a false assumption.
    fn explain_failure(&mut self, assumption: Code) {
        self.failed.push(assumption);
        let first = self
            .level_starts
            .first()
            .copied()
            .unwrap_or(self.trail.len());
        self.seen[(assumption >> 1) as usize] = self.levels[(assumption >> 1) as usize] > 0;
        for at in (first..self.trail.len()).rev() {
            let literal = self.trail[at];
            let variable = (literal >> 1) as usize;
            if !std::mem::take(&mut self.seen[variable]) {
                continue;
            }
            let reason = self.reasons[variable];
            if reason == NO_REASON {
                self.failed.push(literal);
                continue;
            }
            for i in self.literals(reason) {
                let other = (self.clauses[i] >> 1) as usize;
                if other != variable && self.levels[other] > 0 {
                    self.seen[other] = true;
                }
            }
        }
    }

    /// Deletes the half of the learned clauses with the highest LBD, older ones first; only at
    /// level 0.
    fn forget_half(&mut self) {
        // Assignments at level 0 are never explained, so no reason is lost.
        for &literal in &self.trail {
            self.reasons[(literal >> 1) as usize] = NO_REASON;
        }
        let mut by_worth: Vec<(u32, std::cmp::Reverse<ClauseRef>)> = self
            .learned
            .iter()
            .map(|&clause| (self.clauses[clause as usize + 1], std::cmp::Reverse(clause)))
            .collect();
        by_worth.sort_unstable();
        let mut forgotten: Vec<ClauseRef> = by_worth[by_worth.len() / 2..]
            .iter()
            .filter(|(levels, _)| *levels > 2)
            .map(|(_, clause)| clause.0)
            .collect();
        forgotten.sort_unstable();
        let is_forgotten = |clause: ClauseRef| forgotten.binary_search(&clause).is_ok();
        self.learned.retain(|&clause| !is_forgotten(clause));
        for watches in &mut self.watches {
            watches.retain(|watch| !is_forgotten(watch.clause));
        }
        self.learned_limit = self.learned.len() + FIRST_LEARNED_LIMIT;
    }
}

/// Returns the Luby sequence 1 1 2 1 1 2 4 …, from index 1.
fn luby(index: u32) -> u32 {
    let mut index = index;
    loop {
        let power = u32::BITS - index.leading_zeros();
        if index == (1 << power) - 1 {
            return 1 << (power - 1);
        }
        index -= (1 << (power - 1)) - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::sat::Sat;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn restarts_follow_the_sequence() {
        let first: Vec<u32> = (1..=15).map(luby).collect();
        assert_eq!(first, [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        /// On random formulas in which all variables are inputs, both solvers agree in every round,
        /// models satisfy the formula, and cores are unsatisfiable.
        #[test]
        fn agrees_with_cadical(
            rounds in prop::collection::vec(
                (
                    prop::collection::vec(prop::collection::vec((1..24i32, any::<bool>()), 1..4), 1..40),
                    prop::collection::vec((1..24i32, any::<bool>()), 0..5),
                ),
                1..5,
            ),
        ) {
            let signed = |&(variable, negated): &(i32, bool)| if negated { -variable } else { variable };
            let (mut ours, mut theirs) = (<Cdcl as Backend>::new(), <Sat as Backend>::new());
            let inputs: Vec<Lit> = (1..24).collect();
            let mut all: Vec<Vec<Lit>> = Vec::new();
            for (clauses, assumptions) in &rounds {
                for clause in clauses {
                    let clause: Vec<Lit> = clause.iter().map(signed).collect();
                    ours.add_clause(&clause);
                    theirs.add_clause(&clause);
                    all.push(clause);
                }
                let assumptions: Vec<Lit> = assumptions.iter().map(signed).collect();
                let answer = ours.solve(&assumptions, &inputs, &mut { u32::MAX });
                prop_assert_eq!(answer, theirs.solve(&assumptions, &inputs, &mut { u32::MAX }));
                if answer == SatAnswer::Sat {
                    prop_assert!(all.iter().all(|c| c.iter().any(|&lit| ours.value(lit))));
                    prop_assert!(assumptions.iter().all(|&lit| ours.value(lit)));
                } else {
                    let core: Vec<Lit> =
                        assumptions.iter().copied().filter(|&lit| ours.failed(lit)).collect();
                    prop_assert_eq!(theirs.solve(&core, &inputs, &mut { u32::MAX }), SatAnswer::Unsat);
                }
            }
        }
    }

    #[test]
    fn gates_of_other_queries_stay_unassigned() {
        let mut solver = <Cdcl as Backend>::new();
        let mut and = |out: Lit, a: Lit, b: Lit| {
            [&[-out, a][..], &[-out, b], &[out, -a, -b]]
                .iter()
                .for_each(|clause| solver.add_clause(clause));
        };
        (3..100).for_each(|out| and(out, out - 1, 1));
        and(100, 1, -2);
        let mut ask = |assumptions: &[Lit]| {
            let answer = solver.solve(assumptions, &[1, 2], &mut { u32::MAX });
            (answer, solver.trail.len())
        };
        assert_eq!(ask(&[100]), (SatAnswer::Sat, 3));
        assert_eq!(ask(&[99]), (SatAnswer::Sat, 99));
        assert_eq!(ask(&[-100]), (SatAnswer::Sat, 3));
        assert_eq!(ask(&[99, 100]).0, SatAnswer::Unsat);
        assert_eq!(ask(&[5, -4]).0, SatAnswer::Unsat);
    }

    /// Requires restarts and clause deletion.
    #[test]
    fn pigeons_do_not_fit() {
        let mut solver = <Cdcl as Backend>::new();
        let holes = 7;
        let at = |pigeon: i32, hole: i32| pigeon * holes + hole + 1;
        for pigeon in 0..=holes {
            solver.add_clause(&(0..holes).map(|hole| at(pigeon, hole)).collect::<Vec<_>>());
        }
        for hole in 0..holes {
            for one in 0..=holes {
                for other in 0..one {
                    solver.add_clause(&[-at(one, hole), -at(other, hole)]);
                }
            }
        }
        let inputs: Vec<Lit> = (1..=holes * (holes + 1)).collect();
        assert_eq!(solver.solve(&[], &inputs, &mut 3), SatAnswer::OverBudget);
        assert_eq!(
            solver.solve(&[], &inputs, &mut { u32::MAX }),
            SatAnswer::Unsat
        );
    }
}
