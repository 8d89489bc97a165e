//! Sums, differences and products with the flags that they set, for all families of assembly
//! instructions.

use everett_expr::{BinaryOp, ExprId};

use super::machine::Machine;
use super::step::set_result_flags;

/// Computes the exact result of an operation, one bit wider, with its flags.
pub fn exact(
    m: &mut Machine<'_, '_, '_>,
    op: BinaryOp,
    x: ExprId,
    y: ExprId,
    carry: Option<ExprId>,
) -> ExprId {
    let arena = &mut *m.vm.arena;
    let width = arena.width(x);
    let (wide_x, wide_y) = (arena.zext(x, width + 1), arena.zext(y, width + 1));
    let mut wide = arena.binary(op, wide_x, wide_y);
    if let Some(carry) = carry {
        let carry = arena.zext(carry, width + 1);
        wide = arena.binary(op, wide, carry);
    }
    let result = arena.extract(wide, 0, width);
    let carry = arena.extract(wide, width, 1);
    // Overflow: both summands have the same sign, and the result has the other.
    let summand = if op == BinaryOp::Sub { arena.not(y) } else { y };
    let a = arena.xor(x, result);
    let b = arena.xor(summand, result);
    let both = arena.and(a, b);
    let overflow = arena.extract(both, width - 1, 1);
    m.flags.carry = carry;
    m.flags.overflow = overflow;
    set_result_flags(m, result);
    result
}

/// Adds, with the flags of the result.
pub fn sum(m: &mut Machine<'_, '_, '_>, x: ExprId, y: ExprId, carry: Option<ExprId>) -> ExprId {
    exact(m, BinaryOp::Add, x, y, carry)
}

/// Subtracts, with the flags of the result.
pub fn difference(
    m: &mut Machine<'_, '_, '_>,
    x: ExprId,
    y: ExprId,
    carry: Option<ExprId>,
) -> ExprId {
    exact(m, BinaryOp::Sub, x, y, carry)
}

/// Computes the double-width product; carry and overflow are set if its upper half is significant.
pub fn product(m: &mut Machine<'_, '_, '_>, x: ExprId, y: ExprId, signed: bool) -> ExprId {
    let arena = &mut *m.vm.arena;
    let width = arena.width(x);
    let mut extend = |e| {
        if signed {
            arena.sext(e, 2 * width)
        } else {
            arena.zext(e, 2 * width)
        }
    };
    let (wide_x, wide_y) = (extend(x), extend(y));
    let product = m.vm.arena.mul(wide_x, wide_y);
    let low = m.vm.arena.extract(product, 0, width);
    let back = if signed {
        m.vm.arena.sext(low, 2 * width)
    } else {
        m.vm.arena.zext(low, 2 * width)
    };
    m.flags.carry = m.vm.arena.ne(product, back);
    m.flags.overflow = m.flags.carry;
    product
}
