//! Ranges of floats: what they refute cannot happen.

use everett_expr::{
    Arena, EvalScratch, ExprId, FloatCompareOp, FloatFormat, FloatOp, FloatUnaryOp, RoundingMode,
};
use proptest::prelude::*;

use super::Terms;
use crate::cache::Query;
use crate::{Constraints, Model, Solver, SolverConfig};

const NUMBERS: u32 = 3;

/// A step that builds a term from earlier ones.
type Step = (u8, usize, usize);

struct Case {
    arena: Arena,
    format: FloatFormat,
    numbers: Vec<ExprId>,
    constraints: Constraints,
    model: Model,
}

impl Case {
    /// Numbers with these values, each between bounds that are as far away as given.
    fn new(format: FloatFormat, values: &[(f64, f64, f64)]) -> Case {
        let size = format.width() / 8;
        let terms = Terms::new(NUMBERS * size);
        let bits = |value: f64| match format {
            FloatFormat::Single => u64::from((value as f32).to_bits()),
            _ => value.to_bits(),
        };
        let bytes = values
            .iter()
            .flat_map(|(value, ..)| bits(*value).to_le_bytes().into_iter().take(size as usize));
        let bytes: Vec<u8> = bytes.collect();
        let model = terms.model(&bytes);
        let Terms {
            mut arena, array, ..
        } = terms;
        let mut constraints = Constraints::new();
        let numbers = (0..NUMBERS).map(|number| {
            let reads = (0..size).map(|at| arena.read(array, number * size + at));
            let reads: Vec<ExprId> = reads.collect();
            arena.concat_bytes(&reads)
        });
        let numbers: Vec<ExprId> = numbers.collect();
        for (&number, (value, below, above)) in numbers.iter().zip(values) {
            let low = arena.constant(format.width(), bits(value - below));
            let high = arena.constant(format.width(), bits(value + above));
            let at_least = arena.float_compare(FloatCompareOp::Ole, format, low, number);
            // The opposite of a comparison, which does not exclude NaN.
            let beyond = arena.float_compare(FloatCompareOp::Olt, format, high, number);
            let at_most = arena.not(beyond);
            constraints.add(&mut arena, at_least);
            constraints.add(&mut arena, at_most);
        }
        Case {
            arena,
            format,
            numbers,
            constraints,
            model,
        }
    }

    fn build(&mut self, steps: &[Step]) -> ExprId {
        let (arena, format) = (&mut self.arena, self.format);
        let mut terms = self.numbers.clone();
        for &(op, a, b) in steps {
            let (a, b) = (terms[a % terms.len()], terms[b % terms.len()]);
            let other = match format {
                FloatFormat::Single => FloatFormat::Double,
                _ => FloatFormat::Single,
            };
            let floor = FloatUnaryOp::RoundToIntegral(RoundingMode::TowardNegative);
            terms.push(match op % 10 {
                0 => arena.float_binary(FloatOp::Add, format, a, b),
                1 => arena.float_binary(FloatOp::Sub, format, a, b),
                2 => arena.float_binary(FloatOp::Mul, format, a, b),
                3 => arena.float_binary(FloatOp::Div, format, a, b),
                4 => arena.float_unary(FloatUnaryOp::Sqrt, format, a),
                5 => arena.float_unary(floor, format, a),
                6 => arena.float_neg(format, a),
                7 => arena.float_abs(format, a),
                8 => {
                    let narrow = arena.float_convert(format, other, a);
                    arena.float_convert(other, format, narrow)
                }
                _ => {
                    let integer = arena.float_to_int(true, format, a, 32);
                    arena.float_from_int(true, format, integer)
                }
            });
        }
        terms[terms.len() - 1]
    }

    fn is_refuted(&mut self, condition: ExprId) -> bool {
        let support = self.arena.support(condition);
        let mut groups = Vec::new();
        self.constraints
            .groups_for(support.variables(), &mut groups);
        let query = Query {
            groups: &groups,
            condition,
        };
        let mut solver = Solver::new(SolverConfig::default()).expect("no directory to make");
        solver.is_refuted_by_ranges(&mut self.arena, &query, &support)
    }
}

fn value() -> impl Strategy<Value = (f64, f64, f64)> {
    let edges = prop::sample::select(vec![0.0, -0.0, 1.0, -1.0, 0.5, 1e300, 1e-310, 3e38]);
    let number = prop_oneof![edges, -100.0..100.0];
    let distance = || prop_oneof![Just(0.0), 0.0..10.0, Just(f64::INFINITY)];
    (number, distance(), distance())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// A condition that is true for some values within the bounds is never refuted.
    #[test]
    fn what_can_happen_is_not_refuted(
        is_single in any::<bool>(),
        values in prop::collection::vec(value(), NUMBERS as usize),
        steps in prop::collection::vec((any::<u8>(), any::<usize>(), any::<usize>()), 1..6),
        (op, shift) in (0..4usize, -2i64..3),
    ) {
        let format = if is_single { FloatFormat::Single } else { FloatFormat::Double };
        let mut case = Case::new(format, &values);
        let term = case.build(&steps);
        // A bound near the value, where mistakes by one unit show.
        let bits = case.arena.eval_limbs(term, &case.model, &mut EvalScratch::new())[0];
        let bits = bits.saturating_add_signed(shift) & (u64::MAX >> (64 - format.width()));
        let bound = case.arena.constant(format.width(), bits);
        let op = FloatCompareOp::ALL[op];
        for (a, b) in [(term, bound), (bound, term)] {
            let condition = case.arena.float_compare(op, format, a, b);
            let is_true = case.arena.eval_bool(condition, &case.model, &mut EvalScratch::new());
            let condition = if is_true { condition } else { case.arena.not(condition) };
            prop_assert!(!case.is_refuted(condition), "{:?} {:?}", values, steps);
        }
    }
}

/// The mean of three numbers between 0 and 100 is not above 100, nor is its integral part.
#[test]
fn a_mean_outside_of_its_range_is_refuted() {
    let format = FloatFormat::Double;
    let mut case = Case::new(format, &[(50.0, 50.0, 50.0); 3]);
    let sum = case.build(&[(0, 0, 1), (0, 3, 2)]);
    let arena = &mut case.arena;
    let three = arena.constant(64, 3f64.to_bits());
    let mean = arena.float_binary(FloatOp::Div, format, sum, three);
    let hundred = arena.constant(64, 100f64.to_bits());
    let above = arena.float_compare(FloatCompareOp::Olt, format, hundred, mean);
    let integral = arena.float_to_int(true, format, mean, 32);
    let limit = arena.constant(32, 100);
    let integral_above = arena.slt(limit, integral);
    let is_nan = arena.float_compare(FloatCompareOp::Uno, format, mean, mean);
    let at_least = arena.float_compare(FloatCompareOp::Ole, format, hundred, mean);
    assert!(case.is_refuted(above));
    assert!(case.is_refuted(integral_above));
    assert!(case.is_refuted(is_nan));
    assert!(!case.is_refuted(at_least));
}
