//! Intrinsics across the lanes of vectors of any size.

use everett_expr::{Arena, BinaryOp, ExprId, FloatFormat, FloatOp};
use everett_ir::code::{IntPredicate, Lane};

use super::intrinsics::done;
use super::{Operation, math, supplied};
use crate::floating::format;
use crate::integer::Wide;
use crate::value::Value;
use crate::vm::{Arguments, Done, Interrupt, Vm};

/// The operations of this family.
pub const OPERATIONS: &[Operation] = &[
    supplied("llvm.vector.reduce.add", reduce_add),
    supplied("llvm.vector.reduce.mul", reduce_mul),
    supplied("llvm.vector.reduce.and", reduce_and),
    supplied("llvm.vector.reduce.or", reduce_or),
    supplied("llvm.vector.reduce.xor", reduce_xor),
    supplied("llvm.vector.reduce.smax", reduce_smax),
    supplied("llvm.vector.reduce.smin", reduce_smin),
    supplied("llvm.vector.reduce.umax", reduce_umax),
    supplied("llvm.vector.reduce.umin", reduce_umin),
    supplied("llvm.vector.reduce.fadd", reduce_fadd),
    supplied("llvm.vector.reduce.fmul", reduce_fmul),
    supplied("llvm.vector.reduce.fmax", reduce_fmax),
    supplied("llvm.vector.reduce.fmin", reduce_fmin),
    supplied("llvm.vector.insert", insert),
    supplied("llvm.vector.extract", extract),
    supplied("llvm.vector.splice", splice),
    supplied("llvm.vector.reverse", reverse),
    supplied("llvm.vector.interleave2", interleave2),
    supplied("llvm.vector.deinterleave2", deinterleave2),
    supplied("llvm.stepvector", stepvector),
];

impl Vm<'_> {
    /// Returns the lanes of an argument as terms.
    pub(crate) fn lane_terms(
        &mut self,
        args: &Arguments<'_>,
        index: usize,
    ) -> Result<(Lane, Vec<ExprId>), Interrupt> {
        let (lane, _) = args.lanes(index)?;
        let registers = args.operand(index);
        let lanes = registers
            .chunks(lane.registers() as usize)
            .map(|limbs| self.wide_term(limbs, lane.bits()))
            .collect();
        Ok((lane, lanes))
    }

    /// Joins lanes to the result.
    pub(crate) fn done_lanes(&mut self, lanes: impl IntoIterator<Item = ExprId>) -> Done {
        let mut registers = Wide::new();
        for lane in lanes {
            registers.extend(self.wide_value(lane));
        }
        done(registers)
    }
}

/// Combines all lanes in order.
fn reduce(
    vm: &mut Vm<'_>,
    args: &Arguments<'_>,
    combine: impl Fn(&mut Vm<'_>, ExprId, ExprId) -> ExprId,
) -> Result<Done, Interrupt> {
    let (_, lanes) = vm.lane_terms(args, 0)?;
    let combined = lanes
        .into_iter()
        .reduce(|all, lane| combine(vm, all, lane))
        .ok_or_else(|| args.unsupported("without lanes"))?;
    Ok(vm.done(combined))
}

fn reduce_binary(vm: &mut Vm<'_>, args: &Arguments<'_>, op: BinaryOp) -> Result<Done, Interrupt> {
    reduce(vm, args, |vm, x, y| vm.arena.binary(op, x, y))
}

fn reduce_choice(
    vm: &mut Vm<'_>,
    args: &Arguments<'_>,
    first_if: IntPredicate,
) -> Result<Done, Interrupt> {
    reduce(vm, args, |vm, x, y| {
        let first = vm.compare_terms(first_if, x, y);
        vm.arena.ite(first, x, y)
    })
}

fn reduce_add(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    reduce_binary(vm, args, BinaryOp::Add)
}

fn reduce_mul(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    reduce_binary(vm, args, BinaryOp::Mul)
}

fn reduce_and(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    reduce_binary(vm, args, BinaryOp::And)
}

fn reduce_or(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    reduce_binary(vm, args, BinaryOp::Or)
}

fn reduce_xor(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    reduce_binary(vm, args, BinaryOp::Xor)
}

fn reduce_smax(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    reduce_choice(vm, args, IntPredicate::Sgt)
}

fn reduce_smin(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    reduce_choice(vm, args, IntPredicate::Slt)
}

fn reduce_umax(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    reduce_choice(vm, args, IntPredicate::Ugt)
}

fn reduce_umin(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    reduce_choice(vm, args, IntPredicate::Ult)
}

/// Returns the lane format of a float vector.
fn lane_format(args: &Arguments<'_>, index: usize) -> Result<FloatFormat, Interrupt> {
    match args.lanes(index)?.0 {
        Lane::Float(kind) => format(kind),
        _ => Err(args.unsupported("for lanes that are not floating-point values")),
    }
}

/// Computes `start op lane op lane ...` in order.
fn reduce_ordered(vm: &mut Vm<'_>, args: &Arguments<'_>, op: FloatOp) -> Result<Done, Interrupt> {
    let format = lane_format(args, 1)?;
    let start = vm.operand_term(args, 0, format.width());
    let (_, lanes) = vm.lane_terms(args, 1)?;
    let result = lanes.into_iter().fold(start, |all, lane| {
        vm.arena.float_binary(op, format, all, lane)
    });
    Ok(vm.done(result))
}

fn reduce_fadd(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    reduce_ordered(vm, args, FloatOp::Add)
}

fn reduce_fmul(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    reduce_ordered(vm, args, FloatOp::Mul)
}

fn reduce_floats(
    vm: &mut Vm<'_>,
    args: &Arguments<'_>,
    combine: fn(&mut Arena, FloatFormat, ExprId, ExprId) -> ExprId,
) -> Result<Done, Interrupt> {
    let format = lane_format(args, 0)?;
    reduce(vm, args, |vm, x, y| combine(vm.arena, format, x, y))
}

fn reduce_fmax(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    reduce_floats(vm, args, math::greater)
}

fn reduce_fmin(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    reduce_floats(vm, args, math::lesser)
}

/// Returns the number of registers of a lane of the result.
fn limbs(args: &Arguments<'_>, index: usize) -> Result<usize, Interrupt> {
    Ok(args.lanes(index)?.0.registers() as usize)
}

fn insert(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let limbs = limbs(args, 0)?;
    let mut result = args.operand(0);
    let part = args.operand(1);
    let at = args.operand(2)[0];
    let first = (vm.concretize(at)? as usize).saturating_mul(limbs);
    for (offset, value) in part.into_iter().enumerate() {
        if let Some(place) = result.get_mut(first.saturating_add(offset)) {
            *place = value;
        }
    }
    Ok(done(result))
}

fn extract(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let limbs = limbs(args, 0)?;
    let at = args.operand(1)[0];
    let first = (vm.concretize(at)? as usize).saturating_mul(limbs);
    let wanted = args.call.result.registers() as usize;
    let values = args.operand(0);
    let mut result: Wide = values.into_iter().skip(first).take(wanted).collect();
    result.resize(wanted, Value::ZERO);
    Ok(done(result))
}

/// Returns lanes of the concatenation of two vectors from a position on; a negative position counts
/// from the end of the first.
fn splice(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let limbs = limbs(args, 0)?;
    let first = args.operand(0);
    let at = args.operand(2)[0];
    let at = vm.concretize(at)? as u32 as i32;
    let lanes = (first.len() / limbs) as i32;
    let from = if at < 0 {
        lanes.saturating_add(at).max(0)
    } else {
        at
    } as usize;
    let count = first.len();
    let both = first.into_iter().chain(args.operand(1));
    let mut result: Wide = both.skip(from * limbs).take(count).collect();
    result.resize(count, Value::ZERO);
    Ok(done(result))
}

fn reverse(_: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let limbs = limbs(args, 0)?;
    let values = args.operand(0);
    Ok(done(
        values.chunks(limbs).rev().flatten().copied().collect(),
    ))
}

fn interleave2(_: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let limbs = limbs(args, 0)?;
    let (first, second) = (args.operand(0), args.operand(1));
    let pairs = first.chunks(limbs).zip(second.chunks(limbs));
    let result = pairs.flat_map(|(a, b)| a.iter().chain(b).copied());
    Ok(done(result.collect()))
}

fn deinterleave2(_: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let limbs = limbs(args, 0)?;
    let values = args.operand(0);
    let even = values.chunks(limbs).step_by(2).flatten();
    let odd = values.chunks(limbs).skip(1).step_by(2).flatten();
    Ok(done(even.chain(odd).copied().collect()))
}

fn stepvector(_: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let count = u64::from(args.call.result.registers());
    let mask = crate::value::mask(args.result_width().min(64));
    Ok(done(
        (0..count).map(|at| Value::concrete(at & mask)).collect(),
    ))
}

#[cfg(test)]
mod tests {
    use everett_ir::code::{FloatKind, Lane, ValueType};

    use crate::testing::{Argument, Harness, bits, int};
    use crate::value::Value;

    fn vector(width: u16, lanes: &[u64]) -> Argument {
        let ty = ValueType::Vector {
            lanes: lanes.len() as u16,
            lane: Lane::Int(width),
        };
        (
            ty,
            lanes.iter().map(|lane| Value::concrete(*lane)).collect(),
        )
    }

    fn call(name: &str, args: &[Argument], result: ValueType) -> Vec<u64> {
        bits(&Harness::new().compute(name, args, result))
    }

    #[test]
    fn reductions() {
        let lanes = [vector(8, &[200, 100, 3, 255])];
        let reduce = |name: &str| {
            let name = format!("llvm.vector.reduce.{name}.v4i8");
            call(&name, &lanes, ValueType::Int(8))[0]
        };
        assert_eq!(reduce("add"), (200 + 100 + 3 + 255) & 255);
        assert_eq!(reduce("mul"), (200 * 100 * 3 * 255) & 255);
        assert_eq!(reduce("and"), 200 & 100 & 3);
        assert_eq!(reduce("or"), 255);
        assert_eq!(reduce("xor"), 200 ^ 100 ^ 3 ^ 255);
        assert_eq!(reduce("smax"), 100);
        assert_eq!(reduce("smin"), 200);
        assert_eq!(reduce("umax"), 255);
        assert_eq!(reduce("umin"), 3);
    }

    #[test]
    fn float_sums_start_at_the_first_operand() {
        let float = |x: f64| Value::concrete(x.to_bits());
        let double = ValueType::Float(FloatKind::Double);
        let vector = ValueType::Vector {
            lanes: 2,
            lane: Lane::Float(FloatKind::Double),
        };
        let args = [
            (double, vec![float(0.5)]),
            (vector, vec![float(1.0), float(2.0)]),
        ];
        let sum = call("llvm.vector.reduce.fadd.v2f64", &args, double);
        assert_eq!(sum, [3.5f64.to_bits()]);
    }

    #[test]
    fn lanes_move() {
        let four = vector(32, &[0, 1, 2, 3]);
        let ty = four.0;
        let two = vector(32, &[8, 9]);
        let other = vector(32, &[4, 5, 6, 7]);
        let args = [four.clone(), two.clone(), int(64, 2)];
        assert_eq!(
            call("llvm.vector.insert.v4i32.v2i32", &args, ty),
            [0, 1, 8, 9]
        );
        let args = [four.clone(), int(64, 2)];
        assert_eq!(
            call("llvm.vector.extract.v2i32.v4i32", &args, two.0),
            [2, 3]
        );
        let args = [four.clone(), other.clone(), int(32, 3)];
        assert_eq!(call("llvm.vector.splice.v4i32", &args, ty), [3, 4, 5, 6]);
        let minus_one = int(32, u128::from(u32::MAX));
        let args = [four.clone(), other, minus_one];
        assert_eq!(call("llvm.vector.splice.v4i32", &args, ty), [3, 4, 5, 6]);
        assert_eq!(
            call("llvm.vector.reverse.v4i32", std::slice::from_ref(&four), ty),
            [3, 2, 1, 0]
        );
        assert_eq!(call("llvm.stepvector.v4i32", &[], ty), [0, 1, 2, 3]);
        let pair = ValueType::Aggregate { registers: 4 };
        assert_eq!(
            call("llvm.vector.deinterleave2.v4i32", &[four], pair),
            [0, 2, 1, 3]
        );
    }
}
