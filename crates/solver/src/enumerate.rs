//! Decides queries with few combinations of values by evaluating all of them. Terms are compiled to
//! a list of operations; each operation computes 64 combinations at once.

use everett_expr::{Arena, ExprId, Support, Variable};

use crate::cache::Query;
use crate::chain::{Solver, solution, with_solution};
use crate::domains::Domains;
use crate::model::Model;
use crate::program::{Byte, HARD_ARITHMETIC, Program};
use crate::verdict::{Effort, Verdict};

/// Maximum number of combinations; queries with more are left to the other layers.
const MAX_COMBINATIONS: u64 = 1 << 16;
/// Like [`MAX_COMBINATIONS`], for queries on which the small SAT solver gave up. The work for all
/// combinations is bounded, too.
const MAX_COMBINATIONS_HARD: u64 = 1 << 26;
/// Maximum number of bytes of a query.
const MAX_VARIABLES: usize = 256;
/// Number of combinations that are evaluated together.
const LANES: usize = 64;
/// Up to this number, combinations are evaluated one by one.
const FEW_LANES: u64 = 8;
/// Number of operations on 64 values that cost less than building a SAT instance.
const MAX_WORK_FIRST: u64 = 1 << 11;
/// Like [`MAX_WORK_FIRST`], for terms with so much arithmetic that a SAT solver would have to
/// search.
const MAX_WORK_ARITHMETIC: u64 = 1 << 15;
/// Number of combinations that cost less than a SAT instance, however large the terms are: the
/// instance grows with them, too.
const FEW_COMBINATIONS: u64 = 256;
/// Maximum work where the small SAT solver gave up, and where CaDiCaL did not decide the query at
/// once: CaDiCaL and the SMT solver are expected to take longer.
const MAX_WORK_HARD: u64 = 1 << 18;
const MAX_WORK: u64 = 1 << 23;
/// Number of evaluations of a term that cost as much as an operation on 64 values.
const EVALUATIONS_A_WORK: u64 = 4;
/// Maximum ratio of a program's operations to the evaluations for one combination: where terms
/// select from tables, most operations are not needed.
const MAX_WASTE: u64 = 8;
/// Maximum number of combinations that are evaluated to learn what one costs.
const MAX_COSTED: u64 = 8;
/// Maximum number of solutions over the condition's own bytes that are tried on the other
/// constraints.
const MAX_TRIALS: usize = 8;
/// Maximum number of bytes of a condition that is enumerated without the other constraints' bytes.
const MAX_OWN_VARIABLES: usize = 16;

impl Solver {
    /// Decides a query with few combinations of values; `None` if it has too many, or too much to
    /// evaluate.
    pub(crate) fn solve_by_enumeration(
        &mut self,
        arena: &mut Arena,
        query: &Query<'_>,
        support: &Support,
        model: &Model,
        effort: Effort,
    ) -> Option<Verdict> {
        let alone = if support.len() <= MAX_OWN_VARIABLES {
            let domains = Domains::of(arena, &mut self.tables, query.terms(), support, false);
            if !domains.partial {
                return self.enumerate_all(arena, query, support, model, domains, effort);
            }
            self.enumerate_own(arena, query, support, model, &domains, effort)
        } else {
            None
        };
        if alone.is_some() {
            return alone;
        }
        let grouped = query.groups.iter().map(|group| group.variables.len());
        if grouped.sum::<usize>() > MAX_VARIABLES {
            return None;
        }
        let mut variables = support.variables().to_vec();
        variables.extend(query.groups.iter().flat_map(|group| &group.variables));
        let all = Support::from_variables(variables);
        let domains = Domains::of(arena, &mut self.tables, query.terms(), &all, true);
        self.enumerate_all(arena, query, support, model, domains, effort)
    }

    /// Decides a query by evaluating all combinations of the values of all its bytes.
    fn enumerate_all(
        &mut self,
        arena: &Arena,
        query: &Query<'_>,
        support: &Support,
        model: &Model,
        domains: Domains,
        effort: Effort,
    ) -> Option<Verdict> {
        let found = self.solutions(arena, query, &domains, effort, 1)?;
        self.statistics.by_enumeration += 1;
        let Some(values) = found.first() else {
            self.cache.remember_unsat(query, None);
            return Some(Verdict::Unsat);
        };
        Some(self.enumerated(query, support, model, &domains, values))
    }

    /// Enumerates the bytes of the condition alone. If these have no solution, the query has none.
    /// A solution that agrees with the rest of the model is a solution of the query.
    fn enumerate_own(
        &mut self,
        arena: &Arena,
        query: &Query<'_>,
        support: &Support,
        model: &Model,
        domains: &Domains,
        effort: Effort,
    ) -> Option<Verdict> {
        let found = self.solutions(arena, query, domains, effort, MAX_TRIALS)?;
        if found.is_empty() {
            self.statistics.by_enumeration += 1;
            let own = domains.inner.iter().copied();
            let core = own.filter(|&e| e != query.condition).collect();
            self.cache.remember_unsat(query, Some(core));
            return Some(Verdict::Unsat);
        }
        let fitting = found.iter().find(|values| {
            let bytes = domains.variables.iter().zip(*values);
            let trial = model.with(bytes.map(|(one, &value)| (one.array, one.index, value)));
            let touched = query
                .terms()
                .filter(|&e| arena.support_mask(e) & support.mask() != 0);
            let mut holds = |e: ExprId| arena.eval_bool(e, &trial, &mut self.scratch);
            touched.into_iter().all(&mut holds)
        })?;
        self.statistics.by_enumeration += 1;
        Some(self.enumerated(query, support, model, domains, fitting))
    }

    /// Returns the answer `Sat` with these values of the bytes.
    fn enumerated(
        &mut self,
        query: &Query<'_>,
        support: &Support,
        model: &Model,
        domains: &Domains,
        values: &[u8],
    ) -> Verdict {
        let value = |variable: Variable| {
            let at = domains.number(variable);
            at.map_or_else(|| model.value(variable), |at| values[at])
        };
        let solution = solution(query, support, value);
        let found = with_solution(model, &solution);
        self.cache.remember_sat(query, solution, &found);
        Verdict::Sat(found)
    }

    /// Returns the first combinations, at most `count`, under which the open terms hold. `None` if
    /// that is too much work.
    fn solutions(
        &mut self,
        arena: &Arena,
        query: &Query<'_>,
        domains: &Domains,
        effort: Effort,
        count: usize,
    ) -> Option<Vec<Vec<u8>>> {
        let most = match effort {
            Effort::First => MAX_COMBINATIONS,
            Effort::Hard | Effort::Last => MAX_COMBINATIONS_HARD,
        };
        if domains.combinations > most {
            return None;
        }
        if domains.combinations == 0 {
            return Some(Vec::new());
        }
        let rounds = domains.combinations.div_ceil(LANES as u64);
        let work = match effort {
            Effort::First if domains.combinations <= FEW_COMBINATIONS => MAX_WORK,
            Effort::First => MAX_WORK_ARITHMETIC,
            Effort::Hard => MAX_WORK_HARD,
            Effort::Last => MAX_WORK,
        };
        let is_first = work == MAX_WORK_ARITHMETIC;
        // The condition first: most combinations end with it.
        let (mut terms, others): (Vec<ExprId>, Vec<ExprId>) =
            domains.open.iter().partition(|&&e| e == query.condition);
        terms.extend(others);
        let one = self.cost_of_one(arena, &terms, domains);
        if domains.combinations > FEW_LANES {
            let byte = |variable| match domains.number(variable) {
                Some(number) => Byte::Varies(number),
                None => unreachable!("open terms have no other bytes"),
            };
            let most = (work / rounds).min(one.saturating_mul(MAX_WASTE));
            if let Some(program) = Program::compile(arena, terms.iter().copied(), &byte, most) {
                let is_cheap = program.len() * rounds <= MAX_WORK_FIRST;
                if is_first && !is_cheap && program.arithmetic() < HARD_ARITHMETIC {
                    return None;
                }
                return Some(by_lanes(&program, domains, count));
            }
        }
        let evaluations = match is_first {
            true => MAX_WORK_FIRST * EVALUATIONS_A_WORK,
            false => work * EVALUATIONS_A_WORK,
        };
        if one.saturating_mul(domains.combinations) > evaluations {
            return None;
        }
        self.by_evaluation(arena, &terms, domains, count, evaluations)
    }

    /// Returns the number of evaluations that a combination takes if all terms hold: the mean of
    /// some, drawn at random, because choices in the terms skip more in one than in others.
    fn cost_of_one(&mut self, arena: &Arena, terms: &[ExprId], domains: &Domains) -> u64 {
        let before = self.scratch.evaluated();
        let count = (domains.combinations / LANES as u64).clamp(1, MAX_COSTED);
        let mut values = vec![0; domains.variables.len()];
        for sample in 1..=count {
            let drawn = sample.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            domains.decode(drawn % domains.combinations, &mut values);
            let byte = |array, index| match domains.number(Variable { array, index }) {
                Some(number) => values[number],
                None => unreachable!("open terms have no other bytes"),
            };
            for &e in terms {
                arena.eval(e, &byte, &mut self.scratch);
            }
        }
        ((self.scratch.evaluated() - before) / count).max(1)
    }

    /// Returns the first combinations, at most `most`, under which all terms hold, evaluated one by
    /// one. `None` if that takes too many evaluations.
    fn by_evaluation(
        &mut self,
        arena: &Arena,
        terms: &[ExprId],
        domains: &Domains,
        most: usize,
        evaluations: u64,
    ) -> Option<Vec<Vec<u8>>> {
        let before = self.scratch.evaluated();
        let mut values = vec![0; domains.variables.len()];
        let mut found = Vec::new();
        for combination in 0..domains.combinations {
            domains.decode(combination, &mut values);
            let byte = |array, index| match domains.number(Variable { array, index }) {
                Some(number) => values[number],
                None => unreachable!("open terms have no other bytes"),
            };
            let mut holds = |&e: &ExprId| arena.eval(e, &byte, &mut self.scratch) & 1 == 1;
            if terms.iter().all(&mut holds) {
                found.push(values.clone());
                if found.len() == most {
                    break;
                }
            }
            if self.scratch.evaluated() - before > evaluations {
                return None;
            }
        }
        Some(found)
    }
}

/// Returns combinations under which all terms hold, at most `most`: the first one of each round.
fn by_lanes(program: &Program, domains: &Domains, most: usize) -> Vec<Vec<u8>> {
    let mut bytes = vec![[0u64; LANES]; domains.variables.len()];
    let mut columns = Vec::new();
    let mut digits = vec![0; domains.variables.len()];
    let mut values = vec![0; domains.variables.len()];
    let mut found = Vec::new();
    let mut first = 0;
    while first < domains.combinations && found.len() < most {
        for lane in 0..LANES as u64 {
            for ((column, all), &digit) in bytes.iter_mut().zip(domains.values()).zip(&digits) {
                column[lane as usize] = u64::from(all[digit]);
            }
            // Beyond the end the last combination is evaluated again.
            if first + lane + 1 < domains.combinations {
                domains.count_up(&mut digits);
            }
        }
        if let Some(lane) = program.first_lane(&bytes, &mut columns) {
            domains.decode(first + lane as u64, &mut values);
            found.push(values.clone());
        }
        first += LANES as u64;
    }
    found
}
