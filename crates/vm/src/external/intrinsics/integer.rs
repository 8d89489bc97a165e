//! Intrinsics on integers of any width. Each is implemented twice, on numbers and on terms; a test
//! compares the two.

use everett_expr::{Arena, BinaryOp, ExprId};
use everett_ir::code::IntOp;
use smallvec::smallvec;

use super::super::{Operation, supplied};
use super::done;
use crate::bug::{ABS_OF_LEAST, Bug, BugKind};
use crate::floating::bits128;
use crate::integer::{Wide, term_op};
use crate::value::Value;
use crate::vm::{Arguments, Done, Interrupt, Vm};

/// The operations of this family.
pub const OPERATIONS: &[Operation] = &[
    supplied("llvm.abs", abs),
    supplied("llvm.smax", smax),
    supplied("llvm.smin", smin),
    supplied("llvm.umax", umax),
    supplied("llvm.umin", umin),
    supplied("llvm.ctpop", ctpop),
    supplied("llvm.ctlz", ctlz),
    supplied("llvm.cttz", cttz),
    supplied("llvm.bswap", bswap),
    supplied("llvm.bitreverse", bitreverse),
    supplied("llvm.fshl", fshl),
    supplied("llvm.fshr", fshr),
    supplied("llvm.sadd.sat", sadd_sat),
    supplied("llvm.ssub.sat", ssub_sat),
    supplied("llvm.uadd.sat", uadd_sat),
    supplied("llvm.usub.sat", usub_sat),
    supplied("llvm.sshl.sat", sshl_sat),
    supplied("llvm.ushl.sat", ushl_sat),
    supplied("llvm.sadd.with.overflow", sadd_with_overflow),
    supplied("llvm.ssub.with.overflow", ssub_with_overflow),
    supplied("llvm.smul.with.overflow", smul_with_overflow),
    supplied("llvm.uadd.with.overflow", uadd_with_overflow),
    supplied("llvm.usub.with.overflow", usub_with_overflow),
    supplied("llvm.umul.with.overflow", umul_with_overflow),
    supplied("llvm.scmp", scmp),
    supplied("llvm.ucmp", ucmp),
    supplied("llvm.ptrmask", ptrmask),
];

/// Maximum width of the implementation on numbers; wider integers are always terms.
const WIDEST_NUMBER: u32 = 128;

fn mask(width: u32) -> u128 {
    u128::MAX >> (WIDEST_NUMBER - width)
}

fn signed(width: u32, bits: u128) -> i128 {
    let shift = WIDEST_NUMBER - width;
    ((bits << shift) as i128) >> shift
}

fn signed_range(width: u32) -> std::ops::RangeInclusive<i128> {
    let shift = WIDEST_NUMBER - width;
    i128::MIN >> shift..=i128::MAX >> shift
}

fn registers(width: u32, bits: u128) -> Wide {
    if width <= 64 {
        return smallvec![Value::concrete(bits as u64)];
    }
    smallvec![
        Value::concrete(bits as u64),
        Value::concrete((bits >> 64) as u64)
    ]
}

/// Returns the values of the first `N` arguments, if all are concrete.
fn numbers<const N: usize>(args: &Arguments<'_>, width: u32) -> Option<[u128; N]> {
    if width > WIDEST_NUMBER {
        return None;
    }
    let mut numbers = [0; N];
    for (index, number) in numbers.iter_mut().enumerate() {
        *number = if width <= 64 {
            u128::from(args.get(index).as_concrete()?)
        } else {
            bits128(&args.operand(index))?
        };
    }
    Some(numbers)
}

fn terms<const N: usize>(vm: &mut Vm<'_>, args: &Arguments<'_>, width: u32) -> [ExprId; N] {
    std::array::from_fn(|index| vm.operand_term(args, index, width))
}

/// Computes a result as wide as the first `N` arguments, which have the same width.
fn compute<const N: usize>(
    vm: &mut Vm<'_>,
    args: &Arguments<'_>,
    number: fn(u32, [u128; N]) -> u128,
    term: fn(&mut Arena, u32, [ExprId; N]) -> ExprId,
) -> Result<Done, Interrupt> {
    let width = args.width(0);
    if let Some(operands) = numbers::<N>(args, width) {
        return Ok(done(registers(width, number(width, operands))));
    }
    let operands = terms::<N>(vm, args, width);
    let result = term(vm.arena, width, operands);
    Ok(vm.done(result))
}

fn ptrmask(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    compute(
        vm,
        args,
        |_, [x, y]| x & y,
        |arena, _, [x, y]| arena.and(x, y),
    )
}

fn abs(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    // As in KLEE, a number that is not known is no error.
    if vm.options.as_klee && args.get(1).as_concrete() == Some(1) {
        let width = args.width(0);
        let known = numbers::<1>(args, width);
        if known.is_some_and(|[x]| signed(width, x) == *signed_range(width).start()) {
            return Err(Bug::new(BugKind::Overflow, ABS_OF_LEAST).into());
        }
    }
    compute(
        vm,
        args,
        |w, [x]| signed(w, x).unsigned_abs() & mask(w),
        |arena, w, [x]| {
            let zero = arena.zero(w);
            let negative = arena.slt(x, zero);
            let negated = arena.neg(x);
            arena.ite(negative, negated, x)
        },
    )
}

fn smax(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    compute(
        vm,
        args,
        |w, [x, y]| if signed(w, x) > signed(w, y) { x } else { y },
        |arena, _, [x, y]| {
            let first = arena.sgt(x, y);
            arena.ite(first, x, y)
        },
    )
}

fn smin(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    compute(
        vm,
        args,
        |w, [x, y]| if signed(w, x) < signed(w, y) { x } else { y },
        |arena, _, [x, y]| {
            let first = arena.slt(x, y);
            arena.ite(first, x, y)
        },
    )
}

fn umax(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    compute(
        vm,
        args,
        |_, [x, y]| x.max(y),
        |arena, _, [x, y]| {
            let first = arena.ugt(x, y);
            arena.ite(first, x, y)
        },
    )
}

fn umin(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    compute(
        vm,
        args,
        |_, [x, y]| x.min(y),
        |arena, _, [x, y]| {
            let first = arena.ult(x, y);
            arena.ite(first, x, y)
        },
    )
}

/// Computes the population count by adding halves.
pub fn count_ones(arena: &mut Arena, e: ExprId) -> ExprId {
    let width = arena.width(e);
    if width == 1 {
        return e;
    }
    let low = arena.extract(e, 0, width / 2);
    let high = arena.extract(e, width / 2, width - width / 2);
    let (low, high) = (count_ones(arena, low), count_ones(arena, high));
    let wide = arena.width(low).max(arena.width(high)) + 1;
    let (low, high) = (arena.zext(low, wide), arena.zext(high, wide));
    arena.add(low, high)
}

/// Returns the position that `at` gives for the last set bit in `order`; `none` if no bit is set.
fn last_set(
    arena: &mut Arena,
    e: ExprId,
    order: impl Iterator<Item = u32>,
    none: u32,
    at: impl Fn(u32) -> u32,
) -> ExprId {
    let width = arena.width(e);
    let mut result = arena.constant_u128(width, u128::from(none));
    for bit in order {
        let here = arena.extract(e, bit, 1);
        let position = arena.constant_u128(width, u128::from(at(bit)));
        result = arena.ite(here, position, result);
    }
    result
}

/// Counts the zeros above the highest set bit.
pub fn leading_zeros(arena: &mut Arena, e: ExprId) -> ExprId {
    let width = arena.width(e);
    last_set(arena, e, 0..width, width, |bit| width - 1 - bit)
}

/// Counts the zeros below the lowest set bit.
pub fn trailing_zeros(arena: &mut Arena, e: ExprId) -> ExprId {
    let width = arena.width(e);
    last_set(arena, e, (0..width).rev(), width, |bit| bit)
}

/// Reverses the order of pieces of `size` bits.
pub fn reverse(arena: &mut Arena, e: ExprId, size: u32) -> ExprId {
    let width = arena.width(e);
    let mut result = arena.extract(e, 0, size);
    for low in (size..width).step_by(size as usize) {
        let piece = arena.extract(e, low, size);
        result = arena.concat(result, piece);
    }
    result
}

fn ctpop(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    compute(
        vm,
        args,
        |_, [x]| u128::from(x.count_ones()),
        |arena, w, [x]| {
            let count = count_ones(arena, x);
            arena.zext_or_trunc(count, w)
        },
    )
}

fn ctlz(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    compute(
        vm,
        args,
        |w, [x]| u128::from(x.leading_zeros() - (WIDEST_NUMBER - w)),
        |arena, _, [x]| leading_zeros(arena, x),
    )
}

fn cttz(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    compute(
        vm,
        args,
        |w, [x]| u128::from(x.trailing_zeros().min(w)),
        |arena, _, [x]| trailing_zeros(arena, x),
    )
}

fn bswap(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    if !args.width(0).is_multiple_of(8) {
        return Err(args.unsupported("at this width"));
    }
    compute(
        vm,
        args,
        |w, [x]| x.swap_bytes() >> (WIDEST_NUMBER - w),
        |arena, _, [x]| reverse(arena, x, 8),
    )
}

fn bitreverse(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    compute(
        vm,
        args,
        |w, [x]| x.reverse_bits() >> (WIDEST_NUMBER - w),
        |arena, _, [x]| reverse(arena, x, 1),
    )
}

/// Returns the concatenation of `x` and `y`, and the shift amount.
fn funnel(arena: &mut Arena, w: u32, x: ExprId, y: ExprId, by: ExprId) -> (ExprId, ExprId) {
    let both = arena.concat(x, y);
    // The width of i1 does not fit in its own type.
    let by = arena.zext(by, 2 * w);
    let width = arena.constant_u128(2 * w, u128::from(w));
    (both, arena.urem(by, width))
}

fn fshl(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    compute(
        vm,
        args,
        |w, [x, y, by]| match (by % u128::from(w)) as u32 {
            0 => x,
            by => (x << by | y >> (w - by)) & mask(w),
        },
        |arena, w, [x, y, by]| {
            let (both, by) = funnel(arena, w, x, y, by);
            let shifted = arena.shl(both, by);
            arena.extract(shifted, w, w)
        },
    )
}

fn fshr(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    compute(
        vm,
        args,
        |w, [x, y, by]| match (by % u128::from(w)) as u32 {
            0 => y,
            by => (x << (w - by) | y >> by) & mask(w),
        },
        |arena, w, [x, y, by]| {
            let (both, by) = funnel(arena, w, x, y, by);
            let shifted = arena.lshr(both, by);
            arena.extract(shifted, 0, w)
        },
    )
}

/// Returns the result if it fits in the width, and otherwise the nearest number that does.
fn clamp(width: u32, exact: Option<i128>, negative: bool) -> u128 {
    let range = signed_range(width);
    let nearest = if negative {
        *range.start()
    } else {
        *range.end()
    };
    let result = exact.map_or(nearest, |exact| exact.clamp(*range.start(), *range.end()));
    result as u128 & mask(width)
}

/// Returns the greatest or least signed number, depending on the sign of a term.
fn limit_by_sign(arena: &mut Arena, width: u32, x: ExprId) -> ExprId {
    let ones = arena.all_ones(width);
    let one = arena.constant(width, 1);
    let greatest = arena.lshr(ones, one);
    let least = arena.not(greatest);
    let zero = arena.zero(width);
    let negative = arena.slt(x, zero);
    arena.ite(negative, least, greatest)
}

fn saturated(arena: &mut Arena, op: BinaryOp, w: u32, x: ExprId, y: ExprId) -> ExprId {
    let (wide_x, wide_y) = (arena.sext(x, w + 1), arena.sext(y, w + 1));
    let exact = arena.binary(op, wide_x, wide_y);
    let low = arena.extract(exact, 0, w);
    let back = arena.sext(low, w + 1);
    let fits = arena.eq(exact, back);
    let limit = limit_by_sign(arena, w, x);
    arena.ite(fits, low, limit)
}

fn sadd_sat(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    compute(
        vm,
        args,
        |w, [x, y]| clamp(w, signed(w, x).checked_add(signed(w, y)), signed(w, x) < 0),
        |arena, w, [x, y]| saturated(arena, BinaryOp::Add, w, x, y),
    )
}

fn ssub_sat(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    compute(
        vm,
        args,
        |w, [x, y]| clamp(w, signed(w, x).checked_sub(signed(w, y)), signed(w, x) < 0),
        |arena, w, [x, y]| saturated(arena, BinaryOp::Sub, w, x, y),
    )
}

fn uadd_sat(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    compute(
        vm,
        args,
        |w, [x, y]| x.saturating_add(y).min(mask(w)),
        |arena, w, [x, y]| {
            let sum = arena.add(x, y);
            let wraps = arena.ult(sum, x);
            let ones = arena.all_ones(w);
            arena.ite(wraps, ones, sum)
        },
    )
}

fn usub_sat(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    compute(
        vm,
        args,
        |_, [x, y]| x.saturating_sub(y),
        |arena, w, [x, y]| {
            let wraps = arena.ult(x, y);
            let difference = arena.sub(x, y);
            let zero = arena.zero(w);
            arena.ite(wraps, zero, difference)
        },
    )
}

fn sshl_sat(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    compute(
        vm,
        args,
        |w, [x, by]| {
            let by = by.min(u128::from(w - 1)) as u32;
            let shifted = (x << by) & mask(w);
            let fits = signed(w, shifted) >> by == signed(w, x);
            clamp(w, fits.then_some(signed(w, shifted)), signed(w, x) < 0)
        },
        |arena, w, [x, by]| {
            let shifted = arena.shl(x, by);
            let back = arena.ashr(shifted, by);
            let fits = arena.eq(back, x);
            let limit = limit_by_sign(arena, w, x);
            arena.ite(fits, shifted, limit)
        },
    )
}

fn ushl_sat(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    compute(
        vm,
        args,
        |w, [x, by]| {
            let by = by.min(u128::from(w - 1)) as u32;
            let shifted = (x << by) & mask(w);
            if shifted >> by == x { shifted } else { mask(w) }
        },
        |arena, w, [x, by]| {
            let shifted = arena.shl(x, by);
            let back = arena.lshr(shifted, by);
            let fits = arena.eq(back, x);
            let ones = arena.all_ones(w);
            arena.ite(fits, shifted, ones)
        },
    )
}

/// Returns the result truncated to the width, and the overflow bit.
fn with_overflow(
    vm: &mut Vm<'_>,
    args: &Arguments<'_>,
    op: IntOp,
    is_signed: bool,
    number: fn(u32, u128, u128) -> (u128, bool),
) -> Result<Done, Interrupt> {
    let width = args.width(0);
    if let Some([x, y]) = numbers::<2>(args, width) {
        let (bits, overflow) = number(width, x, y);
        let mut results = registers(width, bits & mask(width));
        results.push(Value::concrete(u64::from(overflow)));
        return Ok(Done::Values(results));
    }
    let [x, y] = terms::<2>(vm, args, width);
    let overflow = vm.overflows(op, width, is_signed, x, y);
    let result = vm.arena.binary(term_op(op), x, y);
    let mut results = vm.wide_value(result);
    results.push(Value::of_term(vm.arena, overflow));
    Ok(Done::Values(results))
}

fn signed_overflow(width: u32, (result, overflow): (i128, bool)) -> (u128, bool) {
    let outside = !signed_range(width).contains(&result);
    (result as u128, overflow || outside)
}

fn unsigned_overflow(width: u32, (result, overflow): (u128, bool)) -> (u128, bool) {
    (result, overflow || result > mask(width))
}

fn sadd_with_overflow(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    with_overflow(vm, args, IntOp::Add, true, |w, x, y| {
        signed_overflow(w, signed(w, x).overflowing_add(signed(w, y)))
    })
}

fn ssub_with_overflow(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    with_overflow(vm, args, IntOp::Sub, true, |w, x, y| {
        signed_overflow(w, signed(w, x).overflowing_sub(signed(w, y)))
    })
}

fn smul_with_overflow(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    with_overflow(vm, args, IntOp::Mul, true, |w, x, y| {
        signed_overflow(w, signed(w, x).overflowing_mul(signed(w, y)))
    })
}

fn uadd_with_overflow(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    with_overflow(vm, args, IntOp::Add, false, |w, x, y| {
        unsigned_overflow(w, x.overflowing_add(y))
    })
}

fn usub_with_overflow(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    with_overflow(vm, args, IntOp::Sub, false, |w, x, y| {
        unsigned_overflow(w, x.overflowing_sub(y))
    })
}

fn umul_with_overflow(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    with_overflow(vm, args, IntOp::Mul, false, |w, x, y| {
        unsigned_overflow(w, x.overflowing_mul(y))
    })
}

/// Returns -1, 0 or 1, in the width of the result.
fn three_way(
    vm: &mut Vm<'_>,
    args: &Arguments<'_>,
    less: fn(&mut Arena, ExprId, ExprId) -> ExprId,
    number: fn(u32, u128, u128) -> std::cmp::Ordering,
) -> Result<Done, Interrupt> {
    let width = args.width(0);
    let result_width = args.result_width();
    if let Some([x, y]) = numbers::<2>(args, width) {
        let order = number(width, x, y) as i8;
        let bits = i128::from(order) as u128 & mask(result_width.min(WIDEST_NUMBER));
        return Ok(done(registers(result_width, bits)));
    }
    let [x, y] = terms::<2>(vm, args, width);
    let (is_less, is_greater) = (less(vm.arena, x, y), less(vm.arena, y, x));
    let minus_one = vm.arena.all_ones(result_width);
    let zero = vm.arena.zero(result_width);
    let one = vm.arena.constant(result_width, 1);
    let other = vm.arena.ite(is_greater, one, zero);
    let result = vm.arena.ite(is_less, minus_one, other);
    Ok(vm.done(result))
}

fn scmp(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    three_way(vm, args, Arena::slt, |w, x, y| {
        signed(w, x).cmp(&signed(w, y))
    })
}

fn ucmp(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    three_way(vm, args, Arena::ult, |_, x, y| x.cmp(&y))
}

#[cfg(test)]
mod tests;
