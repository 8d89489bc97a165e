//! Easy queries by lazy constraints (a CEGAR loop): solve the condition alone, update the model,
//! evaluate the constraints, and add only the violated ones. Most conditions conflict with few
//! constraints of their slice, and evaluating a constraint is far cheaper than searching with it.

use everett_expr::{Arena, ExprId, Support, Variable};

use crate::blast::{Blaster, SatAnswer};
use crate::cache::Query;
use crate::chain::{Solver, solution, with_solution};
use crate::model::Model;
use crate::verdict::Verdict;

/// Maximum number of rounds; after them all constraints are added at once.
const MAX_ROUNDS: usize = 12;
/// Maximum number of constraints over the condition's own bytes that are added at the start.
const MAX_AT_START: usize = 16;
/// Maximum number of violated constraints that are added per round.
const MAX_A_ROUND: usize = 8;

impl Solver {
    /// Solves an easy query; `None` if it is not easy.
    pub(crate) fn solve_light(
        &mut self,
        arena: &mut Arena,
        query: &Query<'_>,
        support: &Support,
        model: &Model,
    ) -> Option<Verdict> {
        if self.light.is_outgrown(self.config.clause_limit) {
            self.light = Blaster::new();
            self.statistics.sat_restarts += 1;
        }
        let all: Vec<ExprId> = query.terms().take(query.terms().count() - 1).collect();
        let mut active = first_constraints(arena, &all, query.condition);
        let mut budget = self.config.light_conflict_budget;
        for round in 0..=MAX_ROUNDS {
            let variables = variables_of(arena, &active, support);
            let guesses = variables
                .iter()
                .map(|&variable| (variable, model.value(variable)));
            let terms = active.iter().copied().chain([query.condition]);
            match self.light.solve(arena, terms, guesses, &mut budget) {
                SatAnswer::OverBudget => return None,
                SatAnswer::Unsat => {
                    let needed = (0..active.len()).filter(|&at| self.light.is_in_core(at));
                    let core = needed.map(|at| active[at]).collect();
                    self.cache.remember_unsat(query, Some(core));
                    return Some(Verdict::Unsat);
                }
                SatAnswer::Sat => {}
            }
            let candidate = self.candidate(model, &variables);
            let limit = if round + 1 >= MAX_ROUNDS {
                usize::MAX
            } else {
                MAX_A_ROUND
            };
            let before = active.len();
            let changed = changed_mask(arena, &variables, model, &candidate);
            let affected = all
                .iter()
                .copied()
                .filter(|&e| arena.support_mask(e) & changed != 0);
            self.add_violated(arena, affected, &candidate, limit, &mut active);
            if active.len() > before {
                continue;
            }
            // Floats are unconstrained in the SAT instance, so the model may be wrong.
            let terms = active.iter().chain([&query.condition]);
            if !terms
                .copied()
                .all(|e| arena.eval_bool(e, &candidate, &mut self.scratch))
            {
                return None;
            }
            let solution = solution(query, support, |variable| candidate.value(variable));
            let found = with_solution(model, &solution);
            self.cache.remember_sat(query, solution, &found);
            return Some(Verdict::Sat(found));
        }
        None
    }

    /// Returns the model with the values just found.
    fn candidate(&mut self, model: &Model, variables: &[Variable]) -> Model {
        let light = &mut self.light;
        model.with(variables.iter().filter_map(|&variable| {
            light
                .value(variable)
                .map(|value| (variable.array, variable.index, value))
        }))
    }

    /// Adds up to `limit` constraints that are violated by the candidate to `active`.
    fn add_violated(
        &mut self,
        arena: &Arena,
        constraints: impl Iterator<Item = ExprId>,
        candidate: &Model,
        limit: usize,
        active: &mut Vec<ExprId>,
    ) {
        let known = active.len();
        for e in constraints {
            if active.len() - known >= limit {
                return;
            }
            if !arena.eval_bool(e, candidate, &mut self.scratch) && !active[..known].contains(&e) {
                active.push(e);
            }
        }
    }
}

/// Returns the constraints over the condition's bytes only, by support mask: the ones most likely
/// to matter.
fn first_constraints(arena: &Arena, all: &[ExprId], condition: ExprId) -> Vec<ExprId> {
    let mask = arena.support_mask(condition);
    let near = all
        .iter()
        .copied()
        .filter(|&e| arena.support_mask(e) & !mask == 0);
    near.take(MAX_AT_START).collect()
}

/// Returns the changed bytes as a support mask: constraints whose masks are disjoint from it still
/// hold.
fn changed_mask(
    arena: &mut Arena,
    variables: &[Variable],
    model: &Model,
    candidate: &Model,
) -> u64 {
    let differs = |variable: &&Variable| model.value(**variable) != candidate.value(**variable);
    variables.iter().filter(differs).fold(0, |mask, variable| {
        let byte = arena.read(variable.array, variable.index);
        mask | arena.support_mask(byte)
    })
}

/// Returns all variables of the condition and of the active constraints, each once, in an order
/// that no other path influences.
fn variables_of(arena: &mut Arena, active: &[ExprId], support: &Support) -> Vec<Variable> {
    let mut variables = support.variables().to_vec();
    for &e in active {
        variables.extend_from_slice(arena.support(e).variables());
    }
    variables.sort_unstable();
    variables.dedup();
    let order = |variable: &Variable| arena.variable_order(*variable);
    if !variables.is_sorted_by_key(order) {
        variables.sort_unstable_by_key(order);
    }
    variables
}
