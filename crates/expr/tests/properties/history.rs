//! Terms do not depend on earlier contents of the arena: neither their digests nor their shapes.

use crate::common::{Step, program, run, run_wide};
use everett_expr::{Arena, ExprId, codec};
use proptest::prelude::*;

/// Terms in an arena without other terms.
fn alone(steps: &[Step]) -> (Arena, Vec<ExprId>) {
    let mut arena = Arena::new();
    let terms = run(&mut arena, steps);
    (arena, terms)
}

/// Equal digests, and equal encodings.
fn expect_same(one: (&Arena, &[ExprId]), other: (&Arena, &[ExprId])) -> Result<(), TestCaseError> {
    for (&a, &b) in one.1.iter().zip(other.1) {
        prop_assert_eq!(
            one.0.digest(a),
            other.0.digest(b),
            "{} and {}",
            one.0.display(a),
            other.0.display(b)
        );
    }
    prop_assert_eq!(codec::encode(one.0, one.1), codec::encode(other.0, other.1));
    Ok(())
}

fn cases() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig {
        cases: usual.cases.max(2000),
        ..usual
    }
}

proptest! {
    #![proptest_config(cases())]

    /// Unrelated terms were created before and some of them were swept, so that ids are reused in
    /// any order.
    #[test]
    fn unrelated_terms_make_no_difference(
        steps in program(24),
        unrelated in prop::collection::vec((0u32..3, 0u32..40, any::<u8>()), 0..60),
        kept in any::<u64>(),
    ) {
        let (fresh, expected) = alone(&steps);
        let mut arena = Arena::new();
        let mut terms = Vec::new();
        for &(ordinal, index, value) in &unrelated {
            let array = arena.array(ordinal, "other", 40);
            let byte = arena.read(array, index);
            let value = arena.constant(8, u64::from(value));
            let sum = arena.add(byte, value);
            terms.extend([byte, value, sum, arena.mul(sum, byte)]);
        }
        let live = terms.iter().enumerate().filter(|(at, _)| kept.rotate_right(*at as u32) & 1 == 1);
        let live: Vec<ExprId> = live.map(|(_, &e)| e).collect();
        arena.sweep(live.into_iter());
        let built = run(&mut arena, &steps);
        expect_same((&fresh, &expected), (&arena, &built))?;
    }

    /// Terms over the same bytes were created before; some of them are kept and some were swept.
    #[test]
    fn related_terms_make_no_difference(steps in program(24), before in program(40), kept in any::<u64>()) {
        let (fresh, expected) = alone(&steps);
        let (mut arena, terms) = alone(&before);
        let built = run(&mut arena, &steps);
        expect_same((&fresh, &expected), (&arena, &built))?;
        let live = terms.iter().enumerate().filter(|(at, _)| kept >> (at % 64) & 1 == 1);
        arena.sweep(live.map(|(_, &e)| e));
        let built = run(&mut arena, &steps);
        expect_same((&fresh, &expected), (&arena, &built))?;
        let wide = (run_wide(&mut arena, &built, 200), arena);
        let mut fresh = fresh;
        let expected = run_wide(&mut fresh, &expected, 200);
        expect_same((&fresh, &expected), (&wide.1, &wide.0))?;
    }

    /// Nearly the same program ran before, so that nearly the same terms exist, also inner ones. If
    /// rules run out of fuel, they do so at the same point, whether or not results are remembered.
    #[test]
    fn similar_terms_make_no_difference(
        steps in program(32),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0u8..5, any::<u8>()), 1..6),
        limit in prop_oneof![Just(256u32), 1u32..12],
    ) {
        let mut before = steps.clone();
        for (at, change, value) in changes {
            let at = at.index(before.len());
            let step = &mut before[at];
            match change {
                0 => step.op = value,
                1 => std::mem::swap(&mut step.a, &mut step.b),
                2 => step.b = value,
                3 => step.bits = step.bits.rotate_left(1),
                _ => before.swap(0, at),
            }
        }
        let [mut fresh, mut arena] = [(); 2].map(|()| {
            let mut arena = Arena::new();
            arena.set_rule_limit(limit);
            arena
        });
        let expected = run(&mut fresh, &steps);
        run(&mut arena, &before);
        let built = run(&mut arena, &steps);
        expect_same((&fresh, &expected), (&arena, &built))?;
    }

    /// Programs that run in either order create the same terms.
    #[test]
    fn the_order_of_building_makes_no_difference(one in program(24), other in program(24)) {
        let (mut first, ones) = alone(&one);
        let others = run(&mut first, &other);
        let (mut second, others_first) = alone(&other);
        let ones_second = run(&mut second, &one);
        expect_same((&first, &ones), (&second, &ones_second))?;
        expect_same((&first, &others), (&second, &others_first))?;
    }

    /// Decoded terms equal the encoded ones.
    #[test]
    fn terms_read_from_bytes_are_the_same(steps in program(32), before in program(24)) {
        let (sender, terms) = alone(&steps);
        let bytes = codec::encode(&sender, &terms);
        for mut receiver in [Arena::new(), alone(&before).0] {
            let read = codec::decode(&mut receiver, &bytes).expect("they were written by us");
            expect_same((&sender, &terms), (&receiver, &read))?;
        }
    }
}
