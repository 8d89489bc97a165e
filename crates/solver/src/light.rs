//! Easy queries by lazy constraints: solve the condition alone, change the model accordingly, evaluate the
//! constraints, and take in only those that are broken. Most conditions clash with few constraints of their
//! slice, and evaluating a constraint costs far less than searching with it.

use crate::blast::{Blaster, SatAnswer};
use crate::cache::Query;
use crate::chain::{Solver, Verdict, solution, with_solution};
use crate::model::Model;
use everett_expr::{Arena, ExprId, Support, Variable};

/// After so many rounds all constraints are taken in at once.
const MAX_ROUNDS: usize = 12;
/// So many constraints over the condition's own bytes are taken in from the start.
const MAX_AT_START: usize = 16;
/// So many broken constraints are taken in in one round.
const MAX_A_ROUND: usize = 8;

impl Solver {
    /// `None` where the query is not easy.
    pub(crate) fn ask_light(
        &mut self,
        arena: &mut Arena,
        query: &Query<'_>,
        support: &Support,
        model: &Model,
    ) -> Option<Verdict> {
        if self.light.clauses() > self.config.clause_limit {
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
                    let needed = (0..active.len()).filter(|&at| self.light.was_needed(at));
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
            self.take_in_broken(arena, affected, &candidate, limit, &mut active);
            if active.len() > before {
                continue;
            }
            // Floats are free values to the SAT solver, so what it found may be wrong.
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

    /// The model with the values that were just found.
    fn candidate(&mut self, model: &Model, variables: &[Variable]) -> Model {
        let light = &mut self.light;
        model.with(variables.iter().filter_map(|&variable| {
            light
                .value(variable)
                .map(|value| (variable.array, variable.index, value))
        }))
    }

    /// Adds up to `limit` constraints that do not hold under the candidate to `active`.
    fn take_in_broken(
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

/// The constraints that speak of the condition's bytes only, by their masks: most likely to matter.
fn first_constraints(arena: &Arena, all: &[ExprId], condition: ExprId) -> Vec<ExprId> {
    let mask = arena.support_mask(condition);
    let near = all
        .iter()
        .copied()
        .filter(|&e| arena.support_mask(e) & !mask == 0);
    near.take(MAX_AT_START).collect()
}

/// The bytes that differ, as a mask like that of a term's support: constraints without a bit of it still hold.
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

/// All variables of the condition and of the active constraints, each once, in an order that no other path influences.
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
