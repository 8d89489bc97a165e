//! Eliminates client inputs that have few possible values, by enumerating them.

use everett_expr::{Arena, ArrayId, EvalScratch, ExprId, Variable};
use everett_solver::{Constraints, Model, Solver, Verdict};
use std::collections::{BTreeSet, HashMap};

use crate::formula::{Component, Formula, Open};

/// Maximum number of input combinations for which a condition is written out. Many of them may give
/// the same condition.
const MOST_CASES: u64 = 256;
/// Maximum number of input combinations that are evaluated.
const MOST_EVALUATED: u64 = 1 << 17;
/// Maximum number of values that the solver is asked for one by one.
const MOST_ASKED: usize = 300;
/// Maximum number of intervals of values, or of tuples of values, in a condition.
const MOST_INTERVALS: usize = 64;

/// Adds the constraints of a component on the message to a formula.
pub(crate) fn settle(
    arena: &mut Arena,
    solver: &mut Solver,
    message: ArrayId,
    component: Component,
    formula: &mut Formula,
) {
    let is_about_message = |arena: &mut Arena, term: ExprId| {
        let support = arena.support(term);
        let mut variables = support.variables().iter();
        variables.any(|variable| variable.array == message)
    };
    let Component {
        equations,
        conditions,
        inputs,
    } = component;
    let has_mixed = conditions.iter().any(|term| is_about_message(arena, *term));
    if equations.is_empty() && !has_mixed {
        // The component is part of a satisfiable condition, and nothing else depends on its inputs.
        return;
    }
    let mut all = conditions.clone();
    for (term, value) in &equations {
        all.push(arena.eq(*term, *value));
    }
    let domains = domains(arena, &inputs, &all);
    let combinations = domains.iter().fold(1u64, |product, domain| {
        product.saturating_mul(domain.len() as u64)
    });
    if combinations <= MOST_CASES
        && let Some(cases) = write_out(arena, &inputs, &domains, &all)
    {
        formula.exact.push(cases);
        return;
    }
    let terms: Vec<ExprId> = equations.iter().map(|(term, _)| *term).collect();
    let is_plain = !has_mixed
        && terms.iter().all(|term| arena.width(*term) <= 64)
        && !terms.iter().any(|term| is_about_message(arena, *term));
    if is_plain {
        let values = match combinations <= MOST_EVALUATED {
            true => Some(evaluate(arena, &inputs, &domains, &conditions, &terms)),
            false => ask(arena, solver, &conditions, &terms),
        };
        let parts: Vec<ExprId> = equations.iter().map(|(_, value)| *value).collect();
        if let Some(condition) = values.and_then(|values| one_of(arena, &parts, &values)) {
            formula.exact.push(condition);
            return;
        }
    }
    formula.open.push(Open {
        conditions: all,
        inputs,
        known: Vec::new(),
    });
}

/// Returns the values that each input can have under the conditions on it alone.
pub(crate) fn domains(
    arena: &mut Arena,
    inputs: &[Variable],
    conditions: &[ExprId],
) -> Vec<Vec<u8>> {
    let mut scratch = EvalScratch::new();
    let mut domains = Vec::new();
    for input in inputs {
        let alone: Vec<ExprId> = conditions
            .iter()
            .copied()
            .filter(|condition| arena.support(*condition).variables() == [*input])
            .collect();
        let mut model = Model::new();
        let allowed = (0..=u8::MAX).filter(|value| {
            model.set(input.array, input.index, *value);
            alone
                .iter()
                .all(|condition| arena.eval_bool(*condition, &model, &mut scratch))
        });
        domains.push(allowed.collect());
    }
    domains
}

/// Visits all combinations of values.
fn combine(inputs: &[Variable], domains: &[Vec<u8>], mut visit: impl FnMut(&Model)) {
    if domains.iter().any(Vec::is_empty) {
        return;
    }
    let mut at = vec![0; inputs.len()];
    let mut model = Model::new();
    for (input, domain) in inputs.iter().zip(domains) {
        model.set(input.array, input.index, domain[0]);
    }
    loop {
        visit(&model);
        let mut digit = 0;
        loop {
            if digit == at.len() {
                return;
            }
            at[digit] = (at[digit] + 1) % domains[digit].len();
            let (input, value) = (inputs[digit], domains[digit][at[digit]]);
            model.set(input.array, input.index, value);
            if at[digit] > 0 {
                break;
            }
            digit += 1;
        }
    }
}

/// Returns the condition that `conditions` hold for one of the combinations; `None` if it would be
/// too long.
fn write_out(
    arena: &mut Arena,
    inputs: &[Variable],
    domains: &[Vec<u8>],
    conditions: &[ExprId],
) -> Option<ExprId> {
    let mut models = Vec::new();
    combine(inputs, domains, |model| models.push(model.clone()));
    let mut cases = Vec::new();
    for model in models {
        let map = values_of(arena, inputs, &model);
        let case: Vec<ExprId> = conditions
            .iter()
            .map(|condition| arena.substitute(*condition, &map))
            .collect();
        cases.push(arena.all(&case));
    }
    cases.sort_unstable();
    cases.dedup();
    (cases.len() <= MOST_INTERVALS).then(|| arena.any(&cases))
}

/// Returns the values of inputs under a model, for substitution.
pub(crate) fn values_of(
    arena: &mut Arena,
    inputs: &[Variable],
    model: &Model,
) -> HashMap<ExprId, ExprId> {
    let value = |input: &Variable| {
        let read = arena.read(input.array, input.index);
        let value = model.get(input.array, input.index);
        (read, arena.constant(8, u64::from(value)))
    };
    inputs.iter().map(value).collect()
}

/// Returns all tuples of values that terms can have under conditions, by evaluation.
fn evaluate(
    arena: &mut Arena,
    inputs: &[Variable],
    domains: &[Vec<u8>],
    conditions: &[ExprId],
    terms: &[ExprId],
) -> BTreeSet<Vec<u64>> {
    let mut scratch = EvalScratch::new();
    let mut values = BTreeSet::new();
    combine(inputs, domains, |model| {
        let mut conditions = conditions.iter();
        if conditions.all(|condition| arena.eval_bool(*condition, model, &mut scratch)) {
            let terms = terms.iter();
            values.insert(
                terms
                    .map(|term| arena.eval(*term, model, &mut scratch))
                    .collect(),
            );
        }
    });
    values
}

/// Returns all values of one term under conditions, if the solver finds them all and they are few.
fn ask(
    arena: &mut Arena,
    solver: &mut Solver,
    conditions: &[ExprId],
    terms: &[ExprId],
) -> Option<BTreeSet<Vec<u64>>> {
    let [term] = terms else { return None };
    let (mut constraints, mut model) = (Constraints::new(), Model::new());
    for condition in conditions {
        match solver.check(arena, &constraints, &model, *condition) {
            Verdict::Sat(found) => model = found,
            _ => return None,
        }
        constraints.add(arena, *condition);
    }
    let (found, is_all) = solver.values(arena, &constraints, &model, *term, MOST_ASKED);
    is_all.then(|| found.into_iter().map(|(value, _)| vec![value]).collect())
}

/// Returns the condition that parts of the message have one of these tuples of values; `None` if it
/// would be too long.
fn one_of(arena: &mut Arena, parts: &[ExprId], values: &BTreeSet<Vec<u64>>) -> Option<ExprId> {
    if let [part] = parts {
        let values: Vec<u64> = values.iter().map(|tuple| tuple[0]).collect();
        return among(arena, *part, &values);
    }
    if values.len() > MOST_INTERVALS {
        return None;
    }
    let mut cases = Vec::new();
    for tuple in values {
        let mut same = Vec::new();
        for (part, value) in parts.iter().zip(tuple) {
            let value = arena.constant(arena.width(*part), *value);
            same.push(arena.eq(*part, value));
        }
        cases.push(arena.all(&same));
    }
    Some(arena.any(&cases))
}

/// Returns the condition that a number is one of these sorted values: as intervals, or as an
/// interval of multiples.
fn among(arena: &mut Arena, number: ExprId, values: &[u64]) -> Option<ExprId> {
    let width = arena.width(number);
    let mut intervals: Vec<(u64, u64)> = Vec::new();
    for value in values {
        match intervals.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*value) => *last = *value,
            _ => intervals.push((*value, *value)),
        }
    }
    if intervals.len() <= MOST_INTERVALS {
        let mut cases = Vec::new();
        for (first, last) in intervals {
            let (first, last) = (arena.constant(width, first), arena.constant(width, last));
            let (above, below) = (arena.ule(first, number), arena.ule(number, last));
            cases.push(arena.and(above, below));
        }
        return Some(arena.any(&cases));
    }
    let (first, last) = (*values.first()?, *values.last()?);
    let step = values.get(1)? - first;
    let is_even = values.windows(2).all(|pair| pair[1] - pair[0] == step);
    if !is_even {
        return None;
    }
    let (low, range) = (
        arena.constant(width, first),
        arena.constant(width, last - first),
    );
    let step = arena.constant(width, step);
    let distance = arena.sub(number, low);
    let rest = arena.urem(distance, step);
    let zero = arena.zero(width);
    let (within, is_multiple) = (arena.ule(distance, range), arena.eq(rest, zero));
    Some(arena.and(within, is_multiple))
}
