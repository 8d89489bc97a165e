//! Equations that are solved backwards.

use everett_expr::{Arena, BinaryOp, EvalScratch, ExprId};
use proptest::prelude::*;

use super::chain::plain;
use super::{Terms, steps};
use crate::cache::Query;
use crate::{Constraints, Model, Solver, SolverConfig, Verdict};

/// Asserts that values under which all conditions hold are found without search.
fn expect_found(bytes: u32, conditions: impl Fn(&mut Arena, &[ExprId]) -> Vec<ExprId>) {
    let mut terms = Terms::new(bytes);
    let all = terms.all.clone();
    let arena = &mut terms.arena;
    let conditions = conditions(arena, &all);
    let (&condition, path) = conditions.split_last().expect("a condition");
    let mut constraints = Constraints::new();
    for &e in path {
        constraints.add(arena, e);
    }
    let support = arena.support(condition);
    let mut groups = Vec::new();
    constraints.groups_for(support.variables(), &mut groups);
    let query = Query {
        groups: &groups,
        condition,
    };
    let mut solver = Solver::new(SolverConfig::default()).expect("no directory to make");
    let verdict = solver.solve_backwards(arena, &query, &support, &Model::new());
    let Some(Verdict::Sat(found)) = verdict else {
        panic!("{verdict:?}");
    };
    let mut scratch = EvalScratch::new();
    for e in conditions {
        assert!(arena.eval_bool(e, &found, &mut scratch));
    }
}

fn shift(arena: &mut Arena, op: BinaryOp, e: ExprId, by: u64) -> ExprId {
    let by = arena.constant(arena.width(e), by);
    arena.binary(op, e, by)
}

fn is(arena: &mut Arena, e: ExprId, value: u64) -> ExprId {
    let value = arena.constant(arena.width(e), value);
    arena.eq(e, value)
}

/// Returns what four rounds of XTEA make of two words.
fn xtea(arena: &mut Arena, bytes: &[ExprId]) -> (ExprId, ExprId) {
    let key = [0x0123_4567u32, 0x89ab_cdef, 0xfedc_ba98, 0x7654_3210];
    let mixed = |arena: &mut Arena, e, key: u32| {
        let left = shift(arena, BinaryOp::Shl, e, 4);
        let right = shift(arena, BinaryOp::LShr, e, 5);
        let both = arena.xor(left, right);
        let both = arena.add(both, e);
        let key = arena.constant(32, key.into());
        arena.xor(both, key)
    };
    let (mut x, mut y) = (
        arena.concat_bytes(&bytes[..4]),
        arena.concat_bytes(&bytes[4..]),
    );
    let mut sum = 0u32;
    for _ in 0..4 {
        let add = mixed(arena, y, sum.wrapping_add(key[sum as usize & 3]));
        x = arena.add(x, add);
        sum = sum.wrapping_add(0x9e37_79b9);
        let add = mixed(arena, x, sum.wrapping_add(key[(sum >> 11) as usize & 3]));
        y = arena.add(y, add);
    }
    (x, y)
}

#[test]
fn rounds_of_xtea_are_inverted() {
    expect_found(8, |arena, bytes| {
        let (x, y) = xtea(arena, bytes);
        vec![is(arena, x, 0xdead_beef), is(arena, y, 0xcafe_babe)]
    });
}

/// The chain asks this layer before it searches with CaDiCaL.
#[test]
fn a_query_that_the_small_solver_leaves_is_solved_backwards() {
    let mut terms = Terms::new(8);
    let bytes = terms.all.clone();
    let arena = &mut terms.arena;
    let (x, _) = xtea(arena, &bytes);
    let condition = is(arena, x, 0xdead_beef);
    let mut solver = Solver::new(SolverConfig::default()).expect("no directory to make");
    let verdict = solver.check(arena, &Constraints::new(), &Model::new(), condition);
    assert!(matches!(verdict, Verdict::Sat(_)));
    let counted = solver.statistics();
    assert_eq!((counted.by_inversion, counted.cadical_queries), (1, 0));
}

#[test]
fn finalisers_of_hashes_are_inverted() {
    expect_found(8, |arena, bytes| {
        let mut hash = arena.concat_bytes(bytes);
        for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
            let high = shift(arena, BinaryOp::LShr, hash, 33);
            hash = arena.xor(hash, high);
            let factor = arena.constant(64, factor);
            hash = arena.mul(hash, factor);
        }
        let high = shift(arena, BinaryOp::LShr, hash, 33);
        hash = arena.xor(hash, high);
        vec![is(arena, hash, 0x0123_4567_89ab_cdef)]
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// What is found is a solution, and is found only where the plain back end has one.
    #[test]
    fn agrees_with_the_plain_back_end(all in steps(3..24, 32), value: u64) {
        let mut terms = Terms::new(4);
        let arena = &mut terms.arena;
        let word = arena.concat_bytes(&terms.all);
        terms.all.push(word);
        all.iter().for_each(|step| { terms.build(step); });
        let last = *terms.all.last().expect("a term");
        prop_assume!(terms.arena.width(last) <= 64);
        let mask = u64::MAX >> (64 - terms.arena.width(last));
        let condition = is(&mut terms.arena, last, value & mask);
        prop_assume!(!terms.arena.is_const(condition));
        let support = terms.arena.support(condition);
        let query = Query { groups: &[], condition };
        let mut solver = Solver::new(SolverConfig::default()).expect("no directory to make");
        let arena = &mut terms.arena;
        let verdict = solver.solve_backwards(arena, &query, &support, &Model::new());
        if let Some(verdict) = verdict {
            let Verdict::Sat(found) = verdict else {
                panic!("{verdict:?}");
            };
            let mut scratch = EvalScratch::new();
            prop_assert!(arena.eval_bool(condition, &found, &mut scratch));
            prop_assert!(plain(arena, &[], condition));
        }
    }
}
