//! Conditions that depend on input through one part.

use everett_expr::{Arena, BinaryOp, EvalScratch, ExprId};
use proptest::prelude::*;

use super::{Terms, steps};
use crate::cache::Query;
use crate::{Constraints, Model, Solver, SolverConfig, Verdict};

/// The year, month and day of a number of days since 1970, by the usual arithmetic.
fn date(arena: &mut Arena, days: ExprId) -> [ExprId; 3] {
    let mut of = |op, a, value| {
        let value = arena.constant(32, value);
        arena.binary(op, a, value)
    };
    use BinaryOp::{Add, Mul, UDiv, URem};
    let shifted = of(Add, days, 719_468);
    let (era, rest) = (of(UDiv, shifted, 146_097), of(URem, shifted, 146_097));
    let leaps = [1460, 36_524, 146_096].map(|part| of(UDiv, rest, part));
    let eras = of(Mul, era, 400);
    let by_leaps = arena.sub(rest, leaps[0]);
    let by_leaps = arena.add(by_leaps, leaps[1]);
    let by_leaps = arena.sub(by_leaps, leaps[2]);
    let mut of = |op, a, value| {
        let value = arena.constant(32, value);
        arena.binary(op, a, value)
    };
    let year = of(UDiv, by_leaps, 365);
    let (whole, fourth, hundredth) = (of(Mul, year, 365), of(UDiv, year, 4), of(UDiv, year, 100));
    let before = arena.add(whole, fourth);
    let before = arena.sub(before, hundredth);
    let day = arena.sub(rest, before);
    let mut of = |op, a, value| {
        let value = arena.constant(32, value);
        arena.binary(op, a, value)
    };
    let (fives, two) = (of(Mul, day, 5), 2);
    let month = of(Add, fives, two);
    let month = of(UDiv, month, 153);
    let start = of(Mul, month, 153);
    let start = of(Add, start, two);
    let start = of(UDiv, start, 5);
    let day = arena.sub(day, start);
    [arena.add(year, eras), month, day]
}

/// Dates follow from the days of a time: a dozen divisions, which a SAT solver has to invert.
#[test]
fn dates_are_solved_by_their_days() {
    let Terms {
        mut arena, array, ..
    } = Terms::new(4);
    let bytes: Vec<ExprId> = (0..4).map(|at| arena.read(array, at)).collect();
    let time = arena.concat_bytes(&bytes);
    let seconds = arena.constant(32, 86_400);
    let days = arena.binary(BinaryOp::UDiv, time, seconds);
    let [year, month, day] = date(&mut arena, days);
    let mut is = |e, value| {
        let value = arena.constant(32, value);
        arena.eq(e, value)
    };
    let (in_2000, in_february) = (is(year, 2000 - 1), is(month, 11));
    // Days of months count from 0, and the year begins in March.
    let (last, none) = (is(day, 28), is(day, 31));
    let february = arena.and(in_2000, in_february);
    let mut solver = Solver::new(SolverConfig::default()).expect("no directory to make");
    let mut constraints = Constraints::new();
    let verdict = solver.check(&mut arena, &constraints, &Model::new(), february);
    let Verdict::Sat(model) = verdict else {
        panic!("{verdict:?}");
    };
    constraints.add(&mut arena, february);
    let verdict = solver.check(&mut arena, &constraints, &model, last);
    let Verdict::Sat(model) = verdict else {
        panic!("{verdict:?}");
    };
    let mut scratch = EvalScratch::new();
    let found = arena.eval(days, &model, &mut scratch);
    assert_eq!(found, 11_016, "2000-02-29");
    let verdict = solver.check(&mut arena, &Constraints::new(), &model, none);
    assert!(matches!(verdict, Verdict::Unsat), "{verdict:?}");
    let counted = solver.statistics();
    assert!(counted.by_waist > 0, "{counted:?}");
    assert_eq!((counted.cadical_queries, counted.unknown), (0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// The layer says what the values of two bytes say, all of which are tried.
    #[test]
    fn waists_decide_as_all_values_do(
        steps in steps(2..12, 24),
        divisor in 1u64..2000,
        is_remainder: bool,
    ) {
        let mut terms = Terms::new(2);
        let bytes = [0, 1].map(|at| terms.arena.read(terms.array, at));
        let word = terms.arena.concat_bytes(&bytes);
        let divisor = terms.arena.constant(16, divisor);
        let op = if is_remainder { BinaryOp::URem } else { BinaryOp::UDiv };
        terms.all = vec![terms.arena.binary(op, word, divisor)];
        let (last, rest) = steps.split_last().expect("at least two");
        let mut constraints = Constraints::new();
        for (at, step) in rest.iter().enumerate() {
            match at % 4 {
                3 => {
                    let condition = terms.condition(step);
                    constraints.add(&mut terms.arena, condition);
                }
                _ => drop(terms.build(step)),
            }
        }
        let condition = terms.condition(last);
        let support = terms.arena.support(condition);
        let mut groups = Vec::new();
        constraints.groups_for(support.variables(), &mut groups);
        let query = Query { groups: &groups, condition };
        let mut scratch = EvalScratch::new();
        let all: Vec<ExprId> = query.terms().collect();
        let is_possible = (0..=u16::MAX).any(|word| {
            let model = terms.model(&word.to_le_bytes());
            all.iter().all(|&e| terms.arena.eval_bool(e, &model, &mut scratch))
        });
        let mut solver = Solver::new(SolverConfig::default()).expect("no directory to make");
        let model = terms.model(&[0, 0]);
        let answer = solver.solve_by_waist(&mut terms.arena, &query, &support, &model);
        match answer {
            Some((Verdict::Sat(found), _)) => {
                prop_assert!(all.iter().all(|&e| terms.arena.eval_bool(e, &found, &mut scratch)));
            }
            Some((Verdict::Unsat, _)) => prop_assert!(!is_possible),
            Some((Verdict::Unknown(reason), _)) => prop_assert!(false, "{reason}"),
            None => {}
        }
    }
}
