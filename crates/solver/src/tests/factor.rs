//! Products that must have a given value.

use everett_expr::{Arena, ExprId};
use proptest::prelude::*;

use super::Terms;
use crate::{Constraints, Model, Solver, SolverConfig, SolverStatistics, Verdict};

/// A product of numbers with some decimal digits each, whose bytes are independent.
fn product(arena: &mut Arena, reads: &[ExprId], digits: usize, width: u32) -> ExprId {
    let zero = arena.constant(width, 48);
    let ten = arena.constant(width, 10);
    let one = arena.constant(width, 1);
    let numbers: Vec<ExprId> = reads
        .chunks(digits)
        .map(|number| {
            let start = arena.constant(width, 0);
            number.iter().fold(start, |value, &byte| {
                let byte = arena.sext(byte, width);
                let digit = arena.sub(byte, zero);
                let shifted = arena.mul(value, ten);
                arena.add(shifted, digit)
            })
        })
        .collect();
    numbers
        .iter()
        .fold(one, |all, &number| arena.mul(all, number))
}

/// Asks whether a product of numbers, read from bytes between `low` and `high`, can be `value`.
fn ask(
    count: u32,
    digits: usize,
    (low, high): (u64, u64),
    width: u32,
    value: u64,
) -> (Verdict, SolverStatistics) {
    let Terms {
        mut arena, array, ..
    } = Terms::new(count);
    let reads: Vec<ExprId> = (0..count).map(|at| arena.read(array, at)).collect();
    let mut constraints = Constraints::new();
    for &read in &reads {
        let bounds = (arena.constant(8, low), arena.constant(8, high));
        let above = arena.ule(bounds.0, read);
        constraints.add(&mut arena, above);
        let below = arena.ule(read, bounds.1);
        constraints.add(&mut arena, below);
    }
    let product = product(&mut arena, &reads, digits, width);
    let wanted = arena.constant(width, value);
    let condition = arena.eq(product, wanted);
    let mut solver = Solver::new(SolverConfig::default()).expect("no directory to make");
    let model = Model::new().with((0..count).map(|at| (array, at, low as u8)));
    let verdict = solver.check(&mut arena, &constraints, &model, condition);
    (verdict, solver.statistics().clone())
}

/// Returns whether the same can be true of four bytes, by trying all values.
fn try_all(digits: usize, (low, high): (u64, u64), width: u32, value: u64) -> bool {
    let range = || low as i32..=high as i32;
    let number = |bytes: &[i32]| bytes.iter().fold(0, |value, byte| value * 10 + byte - 48);
    let mask = (1 << width) - 1;
    for (a, b) in range().flat_map(|a| range().map(move |b| (a, b))) {
        for (c, d) in range().flat_map(|c| range().map(move |d| (c, d))) {
            let product = [a, b, c, d]
                .chunks(digits)
                .map(number)
                .fold(1, i32::wrapping_mul);
            if i64::from(product) & mask == value as i64 {
                return true;
            }
        }
    }
    false
}

#[test]
fn divisors_need_no_search_for_factors() {
    let digits = (48, 57);
    let (verdict, counted) = ask(8, 4, digits, 32, 9999 * 9998);
    assert!(matches!(verdict, Verdict::Sat(_)), "{verdict:?}");
    assert!(counted.by_factors >= 1 && counted.cadical_queries == 0);
    let (verdict, counted) = ask(8, 4, digits, 32, 10_007 * 3);
    assert_eq!(verdict, Verdict::Unsat);
    assert!(counted.by_factors >= 1 && counted.cadical_queries == 0);
    // Three numbers, and a value above all products.
    let (verdict, counted) = ask(6, 2, digits, 32, 97 * 89 * 83);
    assert!(matches!(verdict, Verdict::Sat(_)), "{verdict:?}");
    assert!(counted.by_factors >= 1 && counted.cadical_queries == 0);
    let (verdict, _) = ask(6, 2, digits, 32, 99 * 99 * 99 + 1);
    assert_eq!(verdict, Verdict::Unsat);
}

/// Asks whether the number of one digit is the product of two others of four digits each, and `less`.
fn ask_difference(less: u64) -> (Verdict, SolverStatistics) {
    let Terms {
        mut arena, array, ..
    } = Terms::new(9);
    let reads: Vec<ExprId> = (0..9).map(|at| arena.read(array, at)).collect();
    let mut constraints = Constraints::new();
    for &read in &reads {
        let bounds = (arena.constant(8, 48), arena.constant(8, 57));
        let above = arena.ule(bounds.0, read);
        constraints.add(&mut arena, above);
        let below = arena.ule(read, bounds.1);
        constraints.add(&mut arena, below);
    }
    let product = product(&mut arena, &reads[1..], 4, 32);
    let first = arena.sext(reads[0], 32);
    let less = arena.constant(32, 48 + less);
    let sum = arena.add(product, less);
    let condition = arena.eq(first, sum);
    let mut solver = Solver::new(SolverConfig::default()).expect("no directory to make");
    let model = Model::new().with((0..9).map(|at| (array, at, 53)));
    let verdict = solver.check(&mut arena, &constraints, &model, condition);
    (verdict, solver.statistics().clone())
}

#[test]
fn sums_with_products_are_refuted_by_bounds() {
    let (verdict, counted) = ask_difference(42);
    assert_eq!(verdict, Verdict::Unsat);
    assert_eq!((counted.by_factors, counted.sat_queries), (1, 0));
    let (verdict, _) = ask_difference(9);
    assert!(matches!(verdict, Verdict::Sat(_)), "{verdict:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// The answer is exact with factors of any sign, and where products do not fit into a word.
    #[test]
    fn a_product_is_decided_exactly(
        low in 0u64..80,
        size in 16u64..40,
        digits in 1usize..4,
        width in prop_oneof![Just(12u32), Just(16), Just(31)],
        value in prop_oneof![0i64..2000, -2000i64..0, any::<i64>()],
    ) {
        let (bytes, value) = ((low, low + size), value as u64 & ((1 << width) - 1));
        let (verdict, _) = ask(4, digits, bytes, width, value);
        prop_assert_eq!(matches!(verdict, Verdict::Sat(_)), try_all(digits, bytes, width, value));
    }
}

/// A digit less a number of six digits is never 42. Where the small SAT solver gives up, bounds
/// refute that, instead of the evaluation of all digits.
#[test]
fn bounds_refute_a_difference_of_numbers() {
    let Terms {
        mut arena, array, ..
    } = Terms::new(7);
    let reads: Vec<ExprId> = (0..7).map(|at| arena.read(array, at)).collect();
    let mut constraints = Constraints::new();
    for &read in &reads {
        let bounds = (arena.constant(8, 48), arena.constant(8, 57));
        let above = arena.ule(bounds.0, read);
        constraints.add(&mut arena, above);
        let below = arena.ule(read, bounds.1);
        constraints.add(&mut arena, below);
    }
    let digit = product(&mut arena, &reads[..1], 1, 32);
    let number = product(&mut arena, &reads[1..], 6, 32);
    let difference = arena.sub(digit, number);
    let model = Model::new().with((0..7).map(|at| (array, at, 48)));
    for (wanted, is_possible) in [(42, false), (9, true), ((-999_999i32) as u32, true)] {
        let config = SolverConfig {
            light_conflict_budget: 0,
            ..SolverConfig::default()
        };
        let mut solver = Solver::new(config).expect("no directory to make");
        let wanted = arena.constant(32, u64::from(wanted));
        let condition = arena.eq(difference, wanted);
        let verdict = solver.check(&mut arena, &constraints, &model, condition);
        assert_eq!(matches!(verdict, Verdict::Sat(_)), is_possible);
        let counted = solver.statistics();
        let by_bounds = counted.by_factors == 1 && counted.by_enumeration == 0;
        assert_eq!(by_bounds, !is_possible, "{counted:?}");
    }
}
