//! Decides queries that many combinations of values satisfy, such as that a hash falls into a
//! bucket, by evaluating random combinations. A SAT solver has to invert the arithmetic; a sample
//! only has to compute it.

use everett_expr::{Arena, ExprId, Support, Variable};

use crate::bisect::Bisection;
use crate::cache::Query;
use crate::chain::{Solver, solution, with_solution};
use crate::domains::Domains;
use crate::model::Model;
use crate::program::{Byte, HARD_ARITHMETIC, Program};
use crate::verdict::{Effort, Verdict};

/// Number of samples that are evaluated together.
const LANES: usize = 64;
/// Maximum number of operations on 64 values, before a SAT solver is asked and after the small one
/// gave up.
const MAX_WORK_FIRST: u64 = 1 << 12;
const MAX_WORK: u64 = 1 << 15;
/// Like [`MAX_WORK`], for trying all values of two adjacent bytes.
const MAX_WORK_NEIGHBOURS: u64 = 1 << 17;
/// Maximum number of bytes and of constraints of a query.
const MAX_VARIABLES: usize = 64;
const MAX_CONSTRAINTS: usize = 64;
/// Maximum number of samples, and of evaluations, for terms that are evaluated one by one: floats,
/// wide terms and tables.
const MAX_SAMPLES_EVALUATED: usize = 512;
const MAX_EVALUATIONS: u64 = 1 << 18;

/// A generator with a fixed seed for each query: an answer depends on nothing but the query.
struct Numbers(u64);

impl Numbers {
    /// Returns the next number, which is below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) % bound as u64) as usize
    }

    /// Creates a sample: the values of the model with one, two, some or all bytes changed, in turn.
    fn sample(&mut self, turn: usize, before: &[u8], domains: &Domains, values: &mut [u8]) {
        values.copy_from_slice(before);
        let count = before.len();
        let changes = match turn % 4 {
            0 => 1,
            1 => 2,
            2 => 1 + self.below(count),
            _ => count,
        };
        for change in 0..changes {
            let at = if changes == count {
                change
            } else {
                self.below(count)
            };
            values[at] = domains.values()[at][self.below(domains.values()[at].len())];
        }
    }
}

impl Solver {
    /// Searches for a solution that differs from the model in bytes of the condition only.
    pub(crate) fn solve_by_samples(
        &mut self,
        arena: &mut Arena,
        query: &Query<'_>,
        support: &Support,
        model: &Model,
        effort: Effort,
    ) -> Option<Verdict> {
        // With as much work as before, the same samples would be taken again.
        if support.len() > MAX_VARIABLES || effort == Effort::Last {
            return None;
        }
        if effort == Effort::First {
            let condition = [query.condition].into_iter();
            let alone = Program::compile(arena, condition, &|_| Byte::Is(0), MAX_WORK_FIRST)?;
            if alone.arithmetic() < HARD_ARITHMETIC {
                return None;
            }
        }
        let domains = Domains::of(arena, &mut self.tables, query.terms(), support, false);
        if domains.combinations == 0 {
            return None;
        }
        let mut terms = vec![query.condition];
        let touched = query.terms().filter(|&e| {
            e != query.condition
                && arena.support_mask(e) & support.mask() != 0
                && (arena.single_byte_support(e).is_none() || domains.open.contains(&e))
        });
        terms.extend(touched.take(MAX_CONSTRAINTS + 1));
        if terms.len() > MAX_CONSTRAINTS + 1 {
            return None;
        }
        let values = self.bisected(arena, &terms, &domains, model, effort);
        let values = match values {
            Some(values) => values,
            None => self.sampled(arena, &terms, &domains, model, effort)?,
        };
        let value = |variable: Variable| {
            let at = domains.number(variable);
            at.map_or_else(|| model.value(variable), |at| values[at])
        };
        let solution = solution(query, support, value);
        let found = with_solution(model, &solution);
        self.statistics.by_samples += 1;
        self.cache.remember_sat(query, solution, &found);
        Some(Verdict::Sat(found))
    }

    /// Searches for values of the bytes by bisection, if the small SAT solver gave up.
    fn bisected(
        &mut self,
        arena: &Arena,
        terms: &[ExprId],
        domains: &Domains,
        model: &Model,
        effort: Effort,
    ) -> Option<Vec<u8>> {
        if effort == Effort::First {
            return None;
        }
        Bisection::new(arena, terms, domains, model, &mut self.scratch).run()
    }

    /// Searches for values of the bytes under which the terms hold, by samples.
    fn sampled(
        &mut self,
        arena: &Arena,
        terms: &[ExprId],
        domains: &Domains,
        model: &Model,
        effort: Effort,
    ) -> Option<Vec<u8>> {
        let byte = |variable| match domains.number(variable) {
            Some(number) => Byte::Varies(number),
            None => Byte::Is(model.value(variable)),
        };
        let work = match effort {
            Effort::First => MAX_WORK_FIRST,
            Effort::Hard | Effort::Last => MAX_WORK,
        };
        let before: Vec<u8> = domains
            .variables
            .iter()
            .map(|&one| model.value(one))
            .collect();
        match Program::compile(arena, terms.iter().copied(), &byte, work) {
            // With little arithmetic, a SAT solver would have found a solution if there were many.
            Some(program) if program.arithmetic() < HARD_ARITHMETIC => None,
            Some(program) => by_lanes(&program, domains, &before, work).or_else(|| {
                let near = effort == Effort::Hard;
                let small = || by_small_numbers(&program, domains, work);
                near.then(|| by_neighbours(&program, domains, &before).or_else(small))?
            }),
            None if effort == Effort::First => None,
            None => self.one_by_one(arena, terms, domains, model, &before),
        }
    }

    /// Evaluates samples one by one, and returns the first under which the terms hold.
    fn one_by_one(
        &mut self,
        arena: &Arena,
        terms: &[ExprId],
        domains: &Domains,
        model: &Model,
        before: &[u8],
    ) -> Option<Vec<u8>> {
        let end = self.scratch.evaluated() + MAX_EVALUATIONS;
        let mut numbers = Numbers(0);
        let mut values = vec![0; before.len()];
        for turn in 0..MAX_SAMPLES_EVALUATED {
            numbers.sample(turn, before, domains, &mut values);
            let byte = |array, index| {
                let variable = Variable { array, index };
                let at = domains.number(variable);
                at.map_or_else(|| model.value(variable), |at| values[at])
            };
            let mut holds = |&e: &ExprId| arena.eval_bool(e, &byte, &mut self.scratch);
            if terms.iter().all(&mut holds) {
                return Some(values);
            }
            if self.scratch.evaluated() > end {
                break;
            }
        }
        None
    }
}

fn by_lanes(program: &Program, domains: &Domains, before: &[u8], work: u64) -> Option<Vec<u8>> {
    let mut numbers = Numbers(0);
    let mut bytes = vec![[0u64; LANES]; before.len()];
    let mut columns = Vec::new();
    let mut values = vec![0; before.len()];
    for _ in 0..(work / program.len().max(1)).max(1) {
        for lane in 0..LANES {
            numbers.sample(lane, before, domains, &mut values);
            for (column, &value) in bytes.iter_mut().zip(&values) {
                column[lane] = u64::from(value);
            }
        }
        if let Some(lane) = program.first_lane(&bytes, &mut columns) {
            return Some(bytes.iter().map(|column| column[lane] as u8).collect());
        }
    }
    None
}

/// Evaluates random values of a few bytes, with the least possible values of the others: small
/// numbers divide others more often than large ones do.
fn by_small_numbers(program: &Program, domains: &Domains, work: u64) -> Option<Vec<u8>> {
    let least: Vec<u8> = (0..domains.variables.len())
        .map(|at| domains.least(at))
        .collect();
    let mut numbers = Numbers(1);
    let mut bytes = vec![[0u64; LANES]; least.len()];
    let mut columns = Vec::new();
    for _ in 0..(work / program.len().max(1)).max(1) {
        for lane in 0..LANES {
            for (column, &value) in bytes.iter_mut().zip(&least) {
                column[lane] = u64::from(value);
            }
            for _ in 0..=numbers.below(3) {
                let at = numbers.below(least.len());
                let all = &domains.values()[at];
                bytes[at][lane] = u64::from(all[numbers.below(all.len())]);
            }
        }
        if let Some(lane) = program.first_lane(&bytes, &mut columns) {
            return Some(bytes.iter().map(|column| column[lane] as u8).collect());
        }
    }
    None
}

/// Evaluates all values of two adjacent bytes, with the values of the model for the others.
/// Programs compare and divide numbers, and a path leaves only one or two bytes of most numbers
/// undetermined.
fn by_neighbours(program: &Program, domains: &Domains, before: &[u8]) -> Option<Vec<u8>> {
    let mut work = MAX_WORK_NEIGHBOURS;
    let mut columns = Vec::new();
    for first in 0..before.len().saturating_sub(1) {
        let mut bytes: Vec<[u64; LANES]> = before
            .iter()
            .map(|&value| [u64::from(value); LANES])
            .collect();
        let (low, high) = (&domains.values()[first], &domains.values()[first + 1]);
        let count = low.len() * high.len();
        for start in (0..count).step_by(LANES) {
            work = work.checked_sub(program.len().max(1))?;
            let pair = |lane: usize| (start + lane).min(count - 1);
            bytes[first] = std::array::from_fn(|lane| low[pair(lane) % low.len()].into());
            bytes[first + 1] = std::array::from_fn(|lane| high[pair(lane) / low.len()].into());
            if let Some(lane) = program.first_lane(&bytes, &mut columns) {
                return Some(bytes.iter().map(|column| column[lane] as u8).collect());
            }
        }
    }
    None
}
