//! Queries with few combinations of values.

use super::Terms;
use crate::{Constraints, Model, Solver, SolverConfig, SolverStatistics, Verdict};
use everett_expr::{Arena, ExprId};

/// Asks one question about the bytes of a path; what was counted comes back.
fn ask(
    bytes: u32,
    path: impl Fn(&mut Arena, &[ExprId]) -> Vec<ExprId>,
    condition: impl Fn(&mut Arena, &[ExprId]) -> ExprId,
    expected: bool,
) -> SolverStatistics {
    let Terms {
        mut arena, array, ..
    } = Terms::new(bytes);
    let reads: Vec<ExprId> = (0..bytes).map(|at| arena.read(array, at)).collect();
    let mut constraints = Constraints::new();
    for e in path(&mut arena, &reads) {
        constraints.add(&mut arena, e);
    }
    let condition = condition(&mut arena, &reads);
    let mut solver = Solver::new(SolverConfig::default()).expect("no directory to make");
    let verdict = solver.check(&mut arena, &constraints, &Model::new(), condition);
    // That a model fits is checked where it is found.
    assert_eq!(matches!(verdict, Verdict::Sat(_)), expected, "{verdict:?}");
    solver.statistics().clone()
}

fn number(arena: &mut Arena, reads: &[ExprId]) -> ExprId {
    let (first, rest) = reads.split_first().expect("a byte");
    let joined = rest.iter().fold(*first, |lo, &hi| arena.concat(hi, lo));
    arena.zext(joined, 32)
}

/// `x * x % 1009 == k`; squares leave half of all remainders.
fn square(k: u64) -> impl Fn(&mut Arena, &[ExprId]) -> ExprId {
    move |arena, reads| {
        let x = number(arena, reads);
        let product = arena.mul(x, x);
        let modulus = arena.constant(32, 1009);
        let rest = arena.urem(product, modulus);
        let k = arena.constant(32, k);
        arena.eq(rest, k)
    }
}

#[test]
fn two_bytes_need_no_search() {
    let none = |_: &mut Arena, _: &[ExprId]| vec![];
    let counted = ask(2, none, square(11), false);
    assert_eq!((counted.by_enumeration, counted.cadical_queries), (1, 0));
    let counted = ask(2, none, square(300 * 300 % 1009), true);
    assert_eq!(counted.cadical_queries, 0);
}

#[test]
fn bounds_leave_few_values_of_wide_numbers() {
    let below = |arena: &mut Arena, reads: &[ExprId]| {
        let (x, bound) = (number(arena, reads), arena.constant(32, 3000));
        vec![arena.ult(x, bound)]
    };
    let counted = ask(4, below, square(11), false);
    assert_eq!((counted.by_enumeration, counted.cadical_queries), (1, 0));
}

#[test]
fn bounds_of_signed_numbers_count_where_the_sign_is_known() {
    let below = |arena: &mut Arena, reads: &[ExprId]| {
        let (x, bound) = (number(arena, reads), arena.constant(32, 3000));
        let (zero, sign) = (arena.constant(8, 0), arena.constant(8, 128));
        let sign = arena.and(reads[3], sign);
        vec![arena.eq(sign, zero), arena.slt(x, bound)]
    };
    let counted = ask(4, below, square(11), false);
    assert_eq!((counted.by_enumeration, counted.cadical_queries), (1, 0));
}
