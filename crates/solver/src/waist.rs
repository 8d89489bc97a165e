//! Decides a condition that depends on input only through one of its parts, the *waist*, which has few values, such as
//! the days of a time in seconds, from which a date follows by a dozen divisions. The condition is evaluated for each
//! value of the waist. What is left to solve is that the waist lies in a run of values under which the condition holds.

use everett_expr::{Arena, ExprId, Node, Support};
use rustc_hash::FxHashSet;

use crate::cache::Query;
use crate::chain::{Solver, solution};
use crate::config::Layer;
use crate::domains::Domains;
use crate::intervals::Intervals;
use crate::model::Model;
use crate::program::Program;
use crate::verdict::Verdict;

/// Maximum number of values of a waist.
const MAX_VALUES: u64 = 1 << 20;
/// Maximum number of operations on 64 values.
const MAX_WORK: u64 = 1 << 20;
/// Maximum number of runs of values that are solved for.
const MAX_RUNS: usize = 8;
/// Maximum number of parts of a condition, and of parts that may be its waist.
const MAX_PARTS: usize = 512;
const MAX_CANDIDATES: usize = 64;
/// Maximum number of bytes of a condition.
const MAX_VARIABLES: usize = 64;
/// Number of values that are evaluated together.
const LANES: usize = 64;

/// A part of a condition that has the only input of the condition, and its values.
struct Waist {
    part: ExprId,
    least: u64,
    most: u64,
}

/// Runs of values, each from its first to its last one.
struct Runs {
    first: Vec<(u64, u64)>,
    /// Whether there are no others.
    is_all: bool,
}

impl Solver {
    /// Decides a query by all values of the waist of its condition; `None` if the condition has no waist, or if the
    /// waist depends on too much.
    pub(crate) fn solve_by_waist(
        &mut self,
        arena: &mut Arena,
        query: &Query<'_>,
        support: &Support,
        model: &Model,
    ) -> Option<(Verdict, Layer)> {
        if self.is_at_waist || support.len() > MAX_VARIABLES {
            return None;
        }
        let domains = Domains::of(arena, &mut self.tables, query.terms(), support, false);
        if domains.combinations == 0 {
            return None;
        }
        let candidates = candidates(arena, &domains, query.condition);
        let (waist, above, runs) = candidates.into_iter().find_map(|waist| {
            if !depends_through(arena, query.condition, waist.part) {
                return None;
            }
            let above = terms_above(arena, query, support, &waist);
            let runs = waist.runs(arena, &above)?;
            Some((waist, above, runs))
        })?;
        self.statistics.by_waist += 1;
        if runs.first.is_empty() {
            let core = above.into_iter().filter(|&e| e != query.condition);
            self.cache.remember_unsat(query, Some(core.collect()));
            return Some((Verdict::Unsat, Layer::Waist));
        }
        self.is_at_waist = true;
        let verdict = self.solve_runs(arena, query, support, model, &waist, &runs);
        self.is_at_waist = false;
        Some((verdict?, Layer::Waist))
    }

    /// Searches for a solution with the waist in one of the runs.
    fn solve_runs(
        &mut self,
        arena: &mut Arena,
        query: &Query<'_>,
        support: &Support,
        model: &Model,
        waist: &Waist,
        runs: &Runs,
    ) -> Option<Verdict> {
        for &run in &runs.first {
            let condition = waist.is_within(arena, run);
            if arena.is_false(condition) {
                continue;
            }
            let case = Query {
                condition,
                ..*query
            };
            match self.decide(arena, &case, support, model).0 {
                Verdict::Sat(found) if self.holds(arena, query, &found) => {
                    let solution = solution(query, support, |variable| found.value(variable));
                    self.cache.remember_sat(query, solution, &found);
                    return Some(Verdict::Sat(found));
                }
                Verdict::Unsat => {}
                _ => return None,
            }
        }
        runs.is_all.then(|| {
            self.cache.remember_unsat(query, None);
            Verdict::Unsat
        })
    }
}

impl Waist {
    /// Evaluates the terms for all values; `None` if that is too much work.
    fn runs(&self, arena: &Arena, terms: &[ExprId]) -> Option<Runs> {
        let rounds = (self.most - self.least) / LANES as u64 + 1;
        let terms = terms.iter().copied();
        let program = Program::compile_above(arena, terms, self.part, MAX_WORK / rounds)?;
        let mut runs = Runs {
            first: Vec::new(),
            is_all: true,
        };
        let mut columns = Vec::new();
        for round in 0..rounds {
            let first = self.least + round * LANES as u64;
            let values = std::array::from_fn(|lane| (first + lane as u64).min(self.most));
            let Some(truths) = program.truths::<LANES>(&[values], &mut columns) else {
                continue;
            };
            let held = values.iter().zip(truths).filter(|(_, truth)| *truth != 0);
            for (&value, _) in held {
                // Beyond the end, the last value is evaluated again.
                if let Some((_, last)) = runs.first.last_mut()
                    && value - *last <= 1
                {
                    *last = value;
                    continue;
                }
                if runs.first.len() == MAX_RUNS {
                    runs.is_all = false;
                    return Some(runs);
                }
                runs.first.push((value, value));
            }
        }
        Some(runs)
    }

    /// Returns the condition that the waist lies in a run of values.
    fn is_within(&self, arena: &mut Arena, (first, last): (u64, u64)) -> ExprId {
        let width = arena.width(self.part);
        let first = arena.constant(width, first);
        if arena.as_const(first) == Some(last) {
            return arena.eq(self.part, first);
        }
        let last = arena.constant(width, last);
        let (above, below) = (arena.ule(first, self.part), arena.ule(self.part, last));
        arena.and(above, below)
    }
}

/// Returns the parts of a condition with few values, those nearest to the input first.
fn candidates(arena: &Arena, domains: &Domains, condition: ExprId) -> Vec<Waist> {
    let (mut seen, mut found) = (FxHashSet::default(), Vec::new());
    let mut intervals = Intervals::new(arena, domains);
    let mut stack = vec![(condition, false)];
    while let Some((e, is_done)) = stack.pop() {
        if !is_done {
            if seen.insert(e) {
                stack.push((e, true));
                stack.extend(arena.node(e).children().map(|child| (child, false)));
            }
            if seen.len() > MAX_PARTS {
                return Vec::new();
            }
            continue;
        }
        let width = arena.width(e);
        let is_input = matches!(arena.node(e), Node::Read { .. });
        if is_input || arena.is_const(e) || !(2..=64).contains(&width) {
            continue;
        }
        let (mut least, mut most) = arena.unsigned_range(e);
        if most - least >= MAX_VALUES
            && let Some(interval) = intervals.of(e)
        {
            let interval = interval.unsigned(width);
            let bound = |value: i128| u64::try_from(value).unwrap_or(u64::MAX);
            least = least.max(bound(interval.low));
            most = most.min(bound(interval.high));
        }
        if most
            .checked_sub(least)
            .is_some_and(|count| count < MAX_VALUES)
        {
            let part = e;
            found.push(Waist { part, least, most });
        }
        if found.len() == MAX_CANDIDATES {
            break;
        }
    }
    found
}

/// Returns the condition and the constraints that depend on input through the waist alone.
fn terms_above(arena: &Arena, query: &Query<'_>, support: &Support, waist: &Waist) -> Vec<ExprId> {
    let is_above = |e: &ExprId| {
        *e != query.condition
            && arena.support_mask(*e) & !support.mask() == 0
            && depends_through(arena, *e, waist.part)
    };
    let others = query.terms().filter(is_above);
    std::iter::once(query.condition).chain(others).collect()
}

/// Returns whether a term has no input but that of one of its parts.
fn depends_through(arena: &Arena, e: ExprId, part: ExprId) -> bool {
    let (mut seen, mut stack) = (FxHashSet::default(), vec![e]);
    while let Some(e) = stack.pop() {
        if e == part || !seen.insert(e) {
            continue;
        }
        if matches!(arena.node(e), Node::Read { .. }) || seen.len() > MAX_PARTS {
            return false;
        }
        stack.extend(arena.node(e).children());
    }
    true
}
