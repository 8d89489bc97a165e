//! Congruences of hashes and tables.

use everett_expr::{Arena, EvalScratch, ExprId};
use proptest::prelude::*;

use super::{Terms, steps};
use crate::blast::{Blaster, Sat, SatAnswer};
use crate::congruence::congruences;
use crate::{Constraints, Model, Solver, SolverConfig, Verdict, cadical_alone};

/// Returns the upper six bits of a product, as hash functions do, after some mixing.
fn hash(arena: &mut Arena, key: ExprId) -> ExprId {
    let shift = arena.constant(32, 15);
    let factor = arena.constant(32, 2_654_435_761);
    let high = arena.binary(everett_expr::BinaryOp::LShr, key, shift);
    let mixed = arena.xor(key, high);
    let product = arena.mul(mixed, factor);
    arena.extract(product, 26, 6)
}

/// A key in the slot after its own is not equal to the key in its own slot, whose hash is the same:
/// a lookup in a table with open addressing.
#[test]
fn equal_keys_have_equal_slots() {
    let mut terms = Terms::new(12);
    let bytes = terms.all.clone();
    let arena = &mut terms.arena;
    let keys: Vec<ExprId> = bytes.chunks(4).map(|key| arena.concat_bytes(key)).collect();
    let slots: Vec<ExprId> = keys.iter().map(|&key| hash(arena, key)).collect();
    let (one, zero) = (arena.constant(6, 1), arena.constant(32, 0));
    let next = arena.add(slots[2], one);
    let content = |arena: &mut Arena, slot| {
        let [hit, other] = [0, 1].map(|at| arena.eq(slots[at], slot));
        let first = arena.ite(hit, keys[0], zero);
        let content = arena.ite(other, keys[1], first);
        (arena.or(hit, other), content)
    };
    let (own_taken, own) = content(arena, slots[2]);
    let (next_taken, after) = content(arena, next);
    let path = [
        arena.ne(slots[0], slots[1]),
        own_taken,
        arena.ne(keys[2], own),
        next_taken,
    ];
    let condition = arena.eq(keys[2], after);
    let mut constraints = Constraints::new();
    let mut model = Model::new();
    let config = SolverConfig {
        conflict_budget: 4000,
        ..SolverConfig::default()
    };
    let mut solver = Solver::new(config).expect("no directory to make");
    for e in path {
        match solver.check(arena, &constraints, &model, e) {
            Verdict::Sat(found) => model = found,
            other => panic!("{other:?}"),
        }
        constraints.add(arena, e);
    }
    let verdict = solver.check(arena, &constraints, &model, condition);
    assert_eq!(verdict, Verdict::Unsat);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Congruences hold under all values.
    #[test]
    fn congruences_hold(all in steps(6..40, 24), values in any::<[[u8; 4]; 16]>()) {
        let mut terms = Terms::new(4);
        for step in &all {
            terms.build(step);
        }
        let found = congruences(&terms.arena, &terms.all);
        let mut scratch = EvalScratch::new();
        // Values that are the same in several bytes make parts equal.
        let same = |value: [u8; 4], at: u32| value[at as usize % (1 + value[0] as usize % 4)] & 3;
        for value in values {
            let byte = |_, at: u32| same(value, at);
            for congruence in &found {
                let mut equal = |x, y| {
                    let arena = &terms.arena;
                    arena.eval_limbs(x, &byte, &mut scratch) == arena.eval_limbs(y, &byte, &mut scratch)
                };
                let parts = congruence.parts.iter().all(|&(x, y)| equal(x, y));
                prop_assert!(!parts || equal(congruence.one, congruence.other));
            }
        }
    }

    /// An instance that was told of congruences gives the answers of one that was not.
    #[test]
    fn agrees_with_the_plain_back_end(all in steps(6..30, 16), last in steps(1..4, 16)) {
        let mut terms = Terms::new(4);
        for step in &all {
            terms.build(step);
        }
        let conditions: Vec<ExprId> = last.iter().map(|step| terms.condition(step)).collect();
        let Some(expected) = cadical_alone(&terms.arena, &conditions, 20_000) else {
            return Ok(());
        };
        let mut blaster = Blaster::<Sat>::new();
        for congruence in congruences(&terms.arena, &conditions) {
            blaster.add_congruence(&terms.arena, &congruence);
        }
        let every = conditions.iter().copied();
        let answer = blaster.solve(&terms.arena, every, std::iter::empty(), &mut { u32::MAX });
        prop_assert_eq!(answer == SatAnswer::Sat, expected);
    }
}
