//! Queries with few combinations of values.

use everett_expr::{Arena, EvalScratch, ExprId, Variable};
use proptest::prelude::*;

use super::chain::plain;
use super::{Terms, steps};
use crate::bytes::{ByteSet, ByteTables};
use crate::cache::Query;
use crate::verdict::Effort;
use crate::{Constraints, Model, Solver, SolverConfig, SolverStatistics, Verdict};

/// Asks one query about the bytes of a path. Returns the statistics.
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
    // Models are checked where they are found.
    assert_eq!(matches!(verdict, Verdict::Sat(_)), expected, "{verdict:?}");
    solver.statistics().clone()
}

fn number(arena: &mut Arena, reads: &[ExprId]) -> ExprId {
    let (first, rest) = reads.split_first().expect("a byte");
    let joined = rest.iter().fold(*first, |lo, &hi| arena.concat(hi, lo));
    arena.zext(joined, 32)
}

/// Builds `x * x % 1009 == k`; half of all remainders are squares.
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

/// Five bytes have 2^40 combinations of values, but terms distinguish only the remainders.
#[test]
fn values_that_no_term_distinguishes_are_one() {
    let none = |_: &mut Arena, _: &[ExprId]| vec![];
    let remainders = |arena: &mut Arena, reads: &[ExprId]| {
        let (modulus, one) = (arena.constant(8, 5), arena.constant(32, 1));
        let product = reads.iter().fold(one, |product, &byte| {
            let rest = arena.urem(byte, modulus);
            let rest = arena.zext(rest, 32);
            arena.mul(product, rest)
        });
        let prime = arena.constant(32, 7 * 4);
        arena.eq(product, prime)
    };
    let counted = ask(5, none, remainders, false);
    assert_eq!((counted.by_enumeration, counted.sat_queries), (1, 0));
}

/// Returns a hash of a byte that is too large to be tabulated.
fn large_hash(arena: &mut Arena, byte: ExprId) -> ExprId {
    let byte = arena.zext(byte, 32);
    let (factor, shift) = (arena.constant(32, 0x0100_0193), arena.constant(32, 7));
    (0..400u64).fold(byte, |hash, round| {
        let salted = arena.constant(32, round * 0x9e37_79b9);
        let sum = arena.add(hash, salted);
        let product = arena.mul(sum, factor);
        let high = arena.binary(everett_expr::BinaryOp::LShr, product, shift);
        let mixed = arena.xor(product, high);
        arena.add(mixed, byte)
    })
}

#[test]
fn a_byte_with_two_values_needs_no_search_however_large_the_term_is() {
    let either = |arena: &mut Arena, reads: &[ExprId]| {
        let (upper, lower) = (arena.constant(8, 0x48), arena.constant(8, 0x68));
        let (upper, lower) = (arena.eq(reads[0], upper), arena.eq(reads[0], lower));
        vec![arena.or(upper, lower)]
    };
    let odd = |arena: &mut Arena, reads: &[ExprId]| {
        let hash = large_hash(arena, reads[0]);
        let (modulus, rest) = (arena.constant(32, 7), arena.constant(32, 3));
        let hash = arena.urem(hash, modulus);
        arena.eq(hash, rest)
    };
    let mut arena = Arena::new();
    let array = arena.array(0, "input", 1);
    let reads = [arena.read(array, 0)];
    let condition = odd(&mut arena, &reads);
    let holds = |value| arena.eval_bool(condition, &|_, _| value, &mut EvalScratch::new());
    let counted = ask(1, either, odd, holds(0x48) || holds(0x68));
    assert_eq!((counted.by_bytes, counted.sat_queries), (1, 0));
}

#[test]
fn the_bytes_of_a_condition_are_looked_at_alone() {
    // The byte of the condition is tied to seven other bytes.
    let sum = |arena: &mut Arena, reads: &[ExprId]| {
        let words: Vec<ExprId> = reads.iter().map(|&byte| arena.zext(byte, 16)).collect();
        let sum = words[1..]
            .iter()
            .fold(words[0], |sum, &word| arena.add(sum, word));
        let bound = arena.constant(16, 2000);
        vec![arena.ult(sum, bound)]
    };
    let pair = |k: u64| move |arena: &mut Arena, reads: &[ExprId]| square(k)(arena, &reads[..2]);
    let counted = ask(8, sum, pair(11), false);
    assert_eq!((counted.by_enumeration, counted.cadical_queries), (1, 0));
    let counted = ask(8, sum, pair(300 * 300 % 1009), true);
    assert_eq!(counted.cadical_queries, 0);
}

#[test]
fn a_hash_falls_into_each_bucket() {
    let none = |_: &mut Arena, _: &[ExprId]| vec![];
    for bucket in 0..13 {
        let fnv = |arena: &mut Arena, reads: &[ExprId]| {
            let start = arena.constant(32, 2_166_136_261);
            let hash = reads.iter().fold(start, |hash, &byte| {
                let byte = arena.zext(byte, 32);
                let mixed = arena.xor(hash, byte);
                let prime = arena.constant(32, 16_777_619);
                arena.mul(mixed, prime)
            });
            let (count, bucket) = (arena.constant(32, 13), arena.constant(32, bucket));
            let hash = arena.urem(hash, count);
            arena.eq(hash, bucket)
        };
        let counted = ask(8, none, fnv, true);
        assert_eq!(counted.sat_queries, 0);
    }
}

#[test]
fn three_bytes_are_enumerated_where_the_small_solver_gives_up() {
    let below = |arena: &mut Arena, reads: &[ExprId]| {
        let (x, bound) = (number(arena, reads), arena.constant(32, 1 << 17));
        vec![arena.ult(x, bound)]
    };
    // 17 is not a square modulo 1009, either.
    let no_square = |arena: &mut Arena, reads: &[ExprId]| {
        let x = number(arena, reads);
        let x = arena.zext(x, 64);
        let (product, modulus) = (arena.mul(x, x), arena.constant(64, 1009));
        let (rest, k) = (arena.urem(product, modulus), arena.constant(64, 17));
        arena.eq(rest, k)
    };
    let counted = ask(4, below, no_square, false);
    assert_eq!((counted.by_enumeration, counted.cadical_queries), (1, 0));
}

/// Returns the sum of entries of a table of 1,024 numbers at two indices, which use a part of their
/// bytes.
fn sum_of_entries(arena: &mut Arena, reads: &[ExprId]) -> ExprId {
    let entry = |at: u64| (at * 2_654_435_761) >> 7 & 0xffff_ffff;
    let entries: Vec<u64> = (0..1024).map(entry).collect();
    let words = [(0, 1), (2, 3)].map(|(low, high)| {
        let index = arena.concat(reads[high], reads[low]);
        let index = arena.extract(index, 0, 10);
        arena.select(32, &entries, index)
    });
    arena.add(words[0], words[1])
}

#[test]
fn sums_of_entries_of_tables_are_enumerated() {
    let none = |_: &mut Arena, _: &[ExprId]| vec![];
    let sum_is = |value: u64| {
        move |arena: &mut Arena, reads: &[ExprId]| {
            let (sum, value) = (sum_of_entries(arena, reads), arena.constant(32, value));
            arena.eq(sum, value)
        }
    };
    let counted = ask(4, none, sum_is(3), false);
    assert_eq!((counted.by_enumeration, counted.cadical_queries), (1, 0));
}

/// Conditions on floats whose circuits are large, and a number for which bisection finds a
/// solution.
#[test]
fn floats_are_found_by_bisection() {
    use everett_expr::{FloatCompareOp, FloatFormat, FloatOp};
    let none = |_: &mut Arena, _: &[ExprId]| vec![];
    let format = FloatFormat::Double;
    let double = |arena: &mut Arena, value: f64| arena.constant(64, value.to_bits());
    let square_is = |arena: &mut Arena, reads: &[ExprId]| {
        let x = arena.concat_bytes(reads);
        let square = arena.float_binary(FloatOp::Mul, format, x, x);
        let value = double(arena, 2.25);
        arena.float_compare(FloatCompareOp::Oeq, format, square, value)
    };
    let counted = ask(8, none, square_is, true);
    assert_eq!((counted.by_samples, counted.cadical_queries), (1, 0));
    let scaled_is = |arena: &mut Arena, reads: &[ExprId]| {
        let x = arena.concat_bytes(reads);
        let x = arena.float_from_int(true, format, x);
        let (factor, offset) = (double(arena, 1.8), double(arena, 32.0));
        let scaled = arena.float_binary(FloatOp::Mul, format, x, factor);
        let sum = arena.float_binary(FloatOp::Add, format, scaled, offset);
        let value = double(arena, -1_799_968.0);
        arena.float_compare(FloatCompareOp::Oeq, format, sum, value)
    };
    let counted = ask(4, none, scaled_is, true);
    assert_eq!((counted.by_samples, counted.cadical_queries), (1, 0));
    // The circuit of a quotient by a small number is small.
    let third_is = |arena: &mut Arena, reads: &[ExprId]| {
        let x = arena.concat_bytes(reads);
        let x = arena.float_from_int(true, format, x);
        let three = double(arena, 3.0);
        let third = arena.float_binary(FloatOp::Div, format, x, three);
        let third = arena.float_to_int(true, format, third, 32);
        let value = arena.constant(32, -11i64 as u64);
        arena.eq(third, value)
    };
    let counted = ask(4, none, third_is, true);
    assert_eq!((counted.by_samples, counted.cadical_queries), (0, 0));
    // No value of a single number is a solution.
    let mean_is_above = |arena: &mut Arena, reads: &[ExprId]| {
        let words = [0, 2, 4].map(|at| {
            let word = arena.concat_bytes(&reads[at..at + 2]);
            arena.sext(word, 32)
        });
        let sum = arena.add(words[0], words[1]);
        let sum = arena.add(sum, words[2]);
        let (sum, three) = (arena.float_from_int(true, format, sum), double(arena, 3.0));
        let mean = arena.float_binary(FloatOp::Div, format, sum, three);
        let bound = double(arena, 32000.5);
        arena.float_compare(FloatCompareOp::Olt, format, bound, mean)
    };
    let counted = ask(6, none, mean_is_above, true);
    assert_eq!((counted.by_samples, counted.cadical_queries), (1, 0));
}

/// The numbers have bounds, so that one or two of them are not enough, and the ends of their ranges
/// are not allowed.
#[test]
fn sums_of_floats_with_bounds_are_found_by_bisection() {
    use everett_expr::{FloatCompareOp, FloatFormat, FloatOp};
    let format = FloatFormat::Double;
    let double = |arena: &mut Arena, value: f64| arena.constant(64, value.to_bits());
    let numbers = |arena: &mut Arena, reads: &[ExprId]| {
        [0, 8, 16].map(|at| arena.concat_bytes(&reads[at..at + 8]))
    };
    let bounds = |arena: &mut Arena, reads: &[ExprId]| {
        let (zero, hundred) = (double(arena, 0.0), double(arena, 100.0));
        let numbers = numbers(arena, reads).into_iter();
        let bounds = numbers.flat_map(|x| {
            let least = arena.float_compare(FloatCompareOp::Ole, format, zero, x);
            [
                least,
                arena.float_compare(FloatCompareOp::Ole, format, x, hundred),
            ]
        });
        bounds.collect::<Vec<_>>()
    };
    for bound in [50.0, 99.75] {
        let mean_is_above = |arena: &mut Arena, reads: &[ExprId]| {
            let [a, b, c] = numbers(arena, reads);
            let sum = arena.float_binary(FloatOp::Add, format, a, b);
            let sum = arena.float_binary(FloatOp::Add, format, sum, c);
            let three = double(arena, 3.0);
            let mean = arena.float_binary(FloatOp::Div, format, sum, three);
            let bound = double(arena, bound);
            arena.float_compare(FloatCompareOp::Olt, format, bound, mean)
        };
        let counted = ask(24, bounds, mean_is_above, true);
        assert_eq!((counted.by_samples, counted.cadical_queries), (1, 0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Each layer that evaluates agrees with the plain back end, or has no answer.
    #[test]
    fn evaluation_agrees_with_the_plain_back_end(steps in steps(2..14, 12), values in any::<[u8; 3]>()) {
        let mut terms = Terms::new(3);
        let model = terms.model(&values);
        let mut scratch = EvalScratch::new();
        let mut constraints = Constraints::new();
        let mut added = Vec::new();
        let (last, path) = steps.split_last().expect("two steps");
        for step in path {
            let e = terms.condition(step);
            let holds = terms.arena.eval_bool(e, &model, &mut scratch);
            let e = if holds { e } else { terms.arena.not(e) };
            constraints.add(&mut terms.arena, e);
            added.push(e);
        }
        let condition = terms.condition(last);
        let condition = constraints.simplify(&mut terms.arena, condition);
        prop_assume!(!terms.arena.is_const(condition));
        let expected = plain(&terms.arena, &added, condition);
        let support = terms.arena.support(condition);
        let mut groups = Vec::new();
        constraints.groups_for(support.variables(), &mut groups);
        let query = Query { groups: &groups, condition };
        let mut solver = Solver::new(SolverConfig::default()).expect("no directory to make");
        for effort in [Effort::First, Effort::Hard] {
            let arena = &mut terms.arena;
            let verdicts = [
                solver.solve_by_enumeration(arena, &query, &support, &model, effort),
                solver.solve_by_samples(arena, &query, &support, &model, effort),
            ];
            for verdict in verdicts.into_iter().flatten() {
                prop_assert_eq!(matches!(verdict, Verdict::Sat(_)), expected);
                if let Verdict::Sat(found) = verdict {
                    let all = added.iter().chain([&condition]);
                    for &e in all {
                        prop_assert!(terms.arena.eval_bool(e, &found, &mut scratch));
                    }
                }
            }
        }
    }

    /// Terms whose parts distinguish few values of each byte are decided as the plain back end does.
    #[test]
    fn classes_of_values_agree_with_the_plain_back_end(
        parts in prop::collection::vec(steps(1..6, 12), 4), joins in steps(4..10, 10),
    ) {
        let mut terms = Terms::new(4);
        let mut all = Vec::new();
        for (index, steps) in (0..).zip(&parts) {
            terms.all = vec![terms.arena.read(terms.array, index)];
            steps.iter().for_each(|step| { terms.build(step); });
            let last = *terms.all.last().expect("a byte");
            let modulus = terms.arena.constant(terms.arena.width(last), 5);
            let rest = terms.arena.urem(last, modulus);
            all.push(rest);
        }
        terms.all = all;
        joins.iter().for_each(|step| { terms.build(step); });
        let condition = terms.condition(&joins[0]);
        prop_assume!(!terms.arena.is_const(condition));
        let expected = plain(&terms.arena, &[], condition);
        let support = terms.arena.support(condition);
        let query = Query { groups: &[], condition };
        let mut solver = Solver::new(SolverConfig::default()).expect("no directory to make");
        let arena = &mut terms.arena;
        let model = Model::new();
        let verdict = solver.solve_by_enumeration(arena, &query, &support, &model, Effort::Last);
        if let Some(verdict) = verdict {
            prop_assert_eq!(matches!(verdict, Verdict::Sat(_)), expected);
            if let Verdict::Sat(found) = verdict {
                prop_assert!(terms.arena.eval_bool(condition, &found, &mut EvalScratch::new()));
            }
        }
    }

    /// For a byte with few values left, a term has the values that its table says.
    #[test]
    fn few_values_agree_with_the_table(steps in steps(1..14, 64), low in 0u8..248, mask in 1u8..) {
        let mut terms = Terms::new(1);
        for step in &steps {
            terms.build(step);
        }
        let condition = terms.condition(&steps[0]);
        let variable = Variable { array: terms.array, index: 0 };
        let allowed = ByteSet::up_to(255).iter().filter(|&value| {
            value >= low && value - low < 8 && mask >> (value - low) & 1 == 1
        });
        let allowed: ByteSet = allowed.collect();
        let among = ByteTables::default().few_among(&terms.arena, condition, variable, allowed);
        let mut scratch = EvalScratch::new();
        let expected: ByteSet = allowed
            .iter()
            .filter(|&value| terms.arena.eval_bool(condition, &|_, _| value, &mut scratch))
            .collect();
        prop_assert_eq!(among, expected);
    }
}

#[test]
fn the_value_of_each_rank_is_found() {
    let sets: [fn(u8) -> bool; 5] = [
        |_| true,
        |value| value % 3 == 1,
        |value| value >= 190,
        |value| value == 255,
        |value| (60..70).contains(&value),
    ];
    for is_in in sets {
        let set: ByteSet = (0..=255).filter(|&value| is_in(value)).collect();
        for (rank, value) in set.iter().enumerate() {
            assert_eq!(set.nth(rank as u64), value);
        }
        assert_eq!(set.nth(set.len()), 0);
    }
}
