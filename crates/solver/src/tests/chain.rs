//! The whole chain against the plain back end, and its guarantees about models.

use super::{Step, Terms, steps};
use crate::{Constraints, Model, Solver, SolverConfig, Verdict, cadical_alone};
use everett_expr::{Arena, EvalScratch, ExprId};
use proptest::prelude::*;
use std::time::Duration;

fn solver() -> Solver {
    let config = SolverConfig {
        conflict_budget: u32::MAX,
        ..SolverConfig::default()
    };
    Solver::new(config).expect("no directory to make")
}

/// Solves from scratch: no simplification, no cache.
pub fn plain(arena: &Arena, added: &[ExprId], condition: ExprId) -> bool {
    let terms = [added, &[condition]].concat();
    cadical_alone(arena, &terms, u32::MAX).expect("there is no budget")
}

/// A state in the form in which the engine keeps it.
#[derive(Clone)]
struct Path {
    constraints: Constraints,
    added: Vec<ExprId>,
    model: Model,
}

fn explore(steps: &[Step], bytes: u32, check_plain: bool) -> Vec<Verdict> {
    let mut terms = Terms::new(bytes);
    let mut solver = solver();
    let mut scratch = EvalScratch::new();
    let first = Path {
        constraints: Constraints::new(),
        added: vec![],
        model: Model::new(),
    };
    let mut paths = vec![first];
    let mut verdicts = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let condition = terms.condition(step);
        let path = paths[at * 7 % paths.len()].clone();
        let arena = &mut terms.arena;
        let taken = arena.eval_bool(condition, &path.model, &mut scratch);
        let opposite = arena.not(condition);
        let (holds, other) = if taken {
            (condition, opposite)
        } else {
            (opposite, condition)
        };
        let verdict = solver.check(arena, &path.constraints, &path.model, other);
        if check_plain {
            let expected = plain(arena, &path.added, other);
            assert_eq!(matches!(verdict, Verdict::Sat(_)), expected, "step {at}");
        }
        let mut extend = |path: &Path, e: ExprId, model: &Model| {
            let mut path = Path {
                model: model.clone(),
                ..path.clone()
            };
            path.constraints.add(&mut terms.arena, e);
            path.added.push(e);
            let holds = |&e: &ExprId| terms.arena.eval_bool(e, &path.model, &mut scratch);
            assert!(
                path.added.iter().all(holds),
                "the model does not satisfy the path"
            );
            path
        };
        let index = at * 7 % paths.len();
        paths[index] = extend(&path, holds, &path.model);
        if let Verdict::Sat(model) = &verdict {
            let fork = extend(&path, other, model);
            paths.push(fork);
        }
        verdicts.push(verdict);
    }
    verdicts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn the_chain_agrees_with_the_plain_back_end(steps in steps(1..24, 16)) {
        explore(&steps, 4, true);
    }

    #[test]
    fn the_byte_layers_agree_with_the_plain_back_end(steps in steps(1..30, 9)) {
        explore(&steps, 2, true);
    }

    #[test]
    fn wide_words_agree_with_the_plain_back_end(steps in steps(1..8, 64)) {
        // Products of wide words are infeasible for a search without a budget.
        let hard = |step: &Step| matches!(step.operation % 28, 2..=6) && step.width > 10;
        prop_assume!(!steps.iter().any(hard));
        explore(&steps, 8, true);
    }

    #[test]
    fn the_same_questions_have_the_same_answers(steps in steps(1..16, 12)) {
        prop_assert_eq!(explore(&steps, 3, false), explore(&steps, 3, false));
    }

    /// Bytes that are independent of the condition keep their values.
    #[test]
    fn models_change_only_where_they_must(
        limit in 1u64..255,
        values in any::<[u8; 4]>(),
        tie in any::<bool>(),
    ) {
        let mut terms = Terms::new(4);
        let model = terms.model(&values);
        let arena = &mut terms.arena;
        let bytes: Vec<ExprId> = (0..4).map(|i| arena.read(terms.array, i)).collect();
        let mut constraints = Constraints::new();
        if tie {
            // The tie must hold under the model.
            let (a, b) = (u64::from(values[0]), u64::from(values[1]));
            let difference = arena.sub(bytes[0], bytes[1]);
            let constant = arena.constant(8, a.wrapping_sub(b));
            let tied = arena.eq(difference, constant);
            constraints.add(arena, tied);
        }
        let bound = arena.constant(8, limit);
        let condition = arena.ult(bytes[0], bound);
        let Verdict::Sat(found) = solver().check(arena, &constraints, &model, condition) else {
            return Err(TestCaseError::fail("a byte can be small"));
        };
        for index in [2, 3] {
            prop_assert_eq!(found.get(terms.array, index), values[index as usize]);
        }
        if !tie {
            prop_assert_eq!(found.get(terms.array, 1), values[1]);
        }
    }

    #[test]
    fn least_greatest_and_all_values(steps in steps(1..8, 12), limit in 1usize..20) {
        let mut terms = Terms::new(1);
        for step in &steps {
            terms.build(step);
        }
        let e = *terms.all.last().expect("there are bytes");
        let condition = terms.condition(&steps[0]);
        prop_assume!(terms.arena.width(e) <= 64);
        let mut scratch = EvalScratch::new();
        let allowed: Vec<u8> = (0..=255u8)
            .filter(|&value| terms.arena.eval_bool(condition, &|_, _| value, &mut scratch))
            .collect();
        prop_assume!(!allowed.is_empty());
        let mut expected: Vec<u64> = allowed
            .iter()
            .map(|&value| terms.arena.eval(e, &|_, _| value, &mut scratch))
            .collect();
        expected.sort_unstable();
        expected.dedup();
        let model = terms.model(&allowed[..1]);
        let arena = &mut terms.arena;
        let mut constraints = Constraints::new();
        constraints.add(arena, condition);
        let mut solver = solver();
        let least = solver.unsigned_min(arena, &constraints, &model, e).expect("no budget").0;
        let greatest = solver.unsigned_max(arena, &constraints, &model, e).expect("no budget").0;
        prop_assert_eq!(Some(&least), expected.first());
        prop_assert_eq!(Some(&greatest), expected.last());
        let (values, complete) = solver.values(arena, &constraints, &model, e, limit);
        prop_assert_eq!(complete, expected.len() <= limit);
        prop_assert_eq!(values.len(), expected.len().min(limit));
        let mut distinct: Vec<u64> = values.iter().map(|(value, _)| *value).collect();
        distinct.sort_unstable();
        distinct.dedup();
        prop_assert_eq!(distinct.len(), values.len());
        prop_assert!(distinct.iter().all(|value| expected.binary_search(value).is_ok()));
        for (value, model) in &values {
            prop_assert_eq!(terms.arena.eval(e, model, &mut scratch), *value);
        }
    }
}

/// A sum over 100,000 nodes goes through evaluation, slicing, translation and substitution.
#[test]
fn deep_terms_do_not_exhaust_the_stack() {
    let mut terms = Terms::new(2);
    let arena = &mut terms.arena;
    let (a, b) = (arena.read(terms.array, 0), arena.read(terms.array, 1));
    let mut e = a;
    for i in 0..50_000u64 {
        let constant = arena.constant(8, i * 7 + 1);
        e = arena.xor(e, constant);
        e = arena.and(e, b);
        e = arena.or(e, a);
    }
    let witness = Model::new().with([(terms.array, 0, 1), (terms.array, 1, 0x5a)]);
    let value = arena.eval(e, &witness, &mut EvalScratch::new());
    let value = arena.constant(8, value);
    let condition = arena.eq(e, value);
    let mut constraints = Constraints::new();
    let mut solver = solver();
    let verdict = solver.check(arena, &constraints, &Model::new(), condition);
    assert!(matches!(verdict, Verdict::Sat(_)));
    let one = arena.constant(8, 1);
    let fixed = arena.eq(a, one);
    constraints.add(arena, fixed);
    let model = Model::new().with([(terms.array, 0, 1)]);
    let verdict = solver.check(arena, &constraints, &model, condition);
    assert!(matches!(verdict, Verdict::Sat(_)), "{verdict:?}");
}

fn words(arena: &mut Arena, width: u32) -> [ExprId; 3] {
    let array = arena.array(0, "words", 3 * width / 8);
    std::array::from_fn(|word| {
        let first = word as u32 * width / 8;
        let bytes: Vec<ExprId> = (first..first + width / 8)
            .map(|index| arena.read(array, index))
            .collect();
        arena.concat_bytes(&bytes)
    })
}

/// Identities of multiplication that plain bit-blasting cannot decide.
#[test]
fn multiplication_identities_are_settled() {
    for width in [32, 64] {
        let mut arena = Arena::new();
        let [a, b, c] = words(&mut arena, width);
        let (ab, ba) = (arena.mul(a, b), arena.mul(b, a));
        let sum = arena.add(b, c);
        let (factored, ac) = (arena.mul(a, sum), arena.mul(a, c));
        let spread = arena.add(ab, ac);
        let bc = arena.mul(b, c);
        let (left, right) = (arena.mul(ab, c), arena.mul(a, bc));
        for (x, y) in [(ab, ba), (factored, spread), (left, right)] {
            let differ = arena.ne(x, y);
            let config = SolverConfig {
                conflict_budget: 1000,
                ..SolverConfig::default()
            };
            let mut solver = Solver::new(config).expect("no directory to make");
            let verdict = solver.check(&mut arena, &Constraints::new(), &Model::new(), differ);
            assert_eq!(verdict, Verdict::Unsat, "width {width}");
        }
    }
}

/// A query alone may need more clauses than the limit; subsequent queries use its instance
/// nevertheless.
#[test]
fn a_large_query_does_not_cost_the_instance() {
    let mut terms = Terms::new(8);
    let config = SolverConfig {
        clause_limit: 100,
        ..SolverConfig::default()
    };
    let mut solver = Solver::new(config).expect("no directory to make");
    let arena = &mut terms.arena;
    let reads: Vec<ExprId> = (0..8).map(|at| arena.read(terms.array, at)).collect();
    let word = |arena: &mut Arena, reads: &[ExprId]| {
        reads[1..]
            .iter()
            .fold(reads[0], |lo, &hi| arena.concat(hi, lo))
    };
    let (a, b) = (word(arena, &reads[..4]), word(arena, &reads[4..]));
    let product = arena.mul(a, b);
    for odd in [0x1_2345u64, 0x2_3457, 0x4_5679] {
        let wanted = arena.constant(32, odd);
        let condition = arena.eq(product, wanted);
        let verdict = solver.check(arena, &Constraints::new(), &Model::new(), condition);
        assert!(matches!(verdict, Verdict::Sat(_)), "{verdict:?}");
    }
    assert!(solver.statistics().sat_queries > 1);
    assert_eq!(solver.statistics().sat_restarts, 0);
}

/// A query that a new instance decides within the budget has an answer, whatever was asked before.
#[test]
fn a_query_that_a_used_instance_gives_up_is_tried_afresh() {
    let mut decided = 0;
    for budget in [100, 200, 400, 800] {
        let config = SolverConfig {
            light_conflict_budget: 0,
            conflict_budget: budget,
            ..SolverConfig::default()
        };
        let mut solver = Solver::new(config).expect("no directory to make");
        let mut terms = Terms::new(6);
        let bytes = terms.all.clone();
        let arena = &mut terms.arena;
        for number in 0..12u64 {
            // Four bytes are too many to try all of their values.
            let at = |shift: u64| bytes[((number * 5 + shift) % 6) as usize];
            let [a, b] = [0, 2].map(|shift| arena.concat_bytes(&[at(shift), at(shift + 1)]));
            let [a, b] = [a, b].map(|e| arena.zext(e, 20));
            let (product, sum) = (arena.mul(a, b), arena.add(a, b));
            let mixed = arena.xor(product, sum);
            let target = arena.constant(20, (number * 0x5bd1e9) & 0xf_ffff);
            let condition = arena.eq(mixed, target);
            let alone = cadical_alone(arena, &[condition], budget);
            let verdict = solver.check(arena, &Constraints::new(), &Model::new(), condition);
            if alone.is_some() {
                let known = !matches!(verdict, Verdict::Unknown(_));
                assert!(known, "query {number}, {budget} conflicts");
                decided += 1;
            }
        }
    }
    assert!(decided > 0);
}

/// The limit holds for the search of the SAT solver, which would take hours.
#[test]
fn a_query_has_a_time_limit() {
    let config = SolverConfig {
        light_conflict_budget: 0,
        conflict_budget: u32::MAX,
        query_time: Some(Duration::ZERO),
        ..SolverConfig::default()
    };
    let mut solver = Solver::new(config).expect("no directory to make");
    let mut terms = Terms::new(12);
    let bytes = terms.all.clone();
    let arena = &mut terms.arena;
    let [a, b] = [&bytes[..6], &bytes[6..]].map(|bytes| arena.concat_bytes(bytes));
    let [a, b] = [a, b].map(|e| arena.zext(e, 64));
    let (product, sum) = (arena.mul(a, b), arena.add(a, b));
    let (square, mixed) = (arena.mul(sum, sum), arena.xor(product, sum));
    let mixed = arena.xor(mixed, square);
    let target = arena.constant(64, 0x5bd1_e995_1234_5677);
    let condition = arena.eq(mixed, target);
    let verdict = solver.check(arena, &Constraints::new(), &Model::new(), condition);
    let Verdict::Unknown(reason) = verdict else {
        panic!("{verdict:?}")
    };
    assert!(reason.contains("longer than a query may"), "{reason}");
    assert!(!solver.is_interrupted(), "the run goes on");
}
