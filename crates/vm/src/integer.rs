//! Integer arithmetic on registers: concrete, symbolic, and wider than 64 bits.

use everett_expr::{BinaryOp, CompareOp, ExprId, limbs};
use everett_ir::code::{IntFlags, IntOp, IntPredicate};
use smallvec::SmallVec;

use crate::bug::{Bug, BugKind, SIGFPE};
use crate::value::{Value, mask, signed};
use crate::vm::{Interrupt, Vm};

/// The registers of a wide value, least significant first.
pub type Wide = SmallVec<[Value; 4]>;

/// Returns the term operator of an integer operation.
pub fn term_op(op: IntOp) -> BinaryOp {
    match op {
        IntOp::Add => BinaryOp::Add,
        IntOp::Sub => BinaryOp::Sub,
        IntOp::Mul => BinaryOp::Mul,
        IntOp::UDiv => BinaryOp::UDiv,
        IntOp::SDiv => BinaryOp::SDiv,
        IntOp::URem => BinaryOp::URem,
        IntOp::SRem => BinaryOp::SRem,
        IntOp::And => BinaryOp::And,
        IntOp::Or => BinaryOp::Or,
        IntOp::Xor => BinaryOp::Xor,
        IntOp::Shl => BinaryOp::Shl,
        IntOp::LShr => BinaryOp::LShr,
        IntOp::AShr => BinaryOp::AShr,
    }
}

/// Computes the result on concrete operands. `None` where it may be undefined (division by zero,
/// shift amount not below the width); the slow path decides these cases.
#[inline(always)]
pub fn concrete(op: IntOp, width: u32, a: u64, b: u64) -> Option<u64> {
    let result = match op {
        IntOp::Add => a.wrapping_add(b),
        IntOp::Sub => a.wrapping_sub(b),
        IntOp::Mul => a.wrapping_mul(b),
        IntOp::And => return Some(a & b),
        IntOp::Or => return Some(a | b),
        IntOp::Xor => return Some(a ^ b),
        IntOp::Shl if b < u64::from(width) => a << b,
        IntOp::LShr if b < u64::from(width) => return Some(a >> b),
        IntOp::AShr if b < u64::from(width) => (signed(a, width) >> b) as u64,
        IntOp::UDiv if b != 0 => return Some(a / b),
        IntOp::URem if b != 0 => return Some(a % b),
        IntOp::SDiv | IntOp::SRem if b != 0 => {
            let (x, y) = (signed(a, width), signed(b, width));
            if y == -1 && x == signed(1 << (width - 1), width) {
                return None;
            }
            if op == IntOp::SDiv {
                (x / y) as u64
            } else {
                (x % y) as u64
            }
        }
        _ => return None,
    };
    Some(result & mask(width))
}

/// Returns whether a comparison of concrete values holds.
#[inline(always)]
pub fn compare(pred: IntPredicate, width: u32, a: u64, b: u64) -> bool {
    match pred {
        IntPredicate::Eq => a == b,
        IntPredicate::Ne => a != b,
        IntPredicate::Ugt => a > b,
        IntPredicate::Uge => a >= b,
        IntPredicate::Ult => a < b,
        IntPredicate::Ule => a <= b,
        IntPredicate::Sgt => signed(a, width) > signed(b, width),
        IntPredicate::Sge => signed(a, width) >= signed(b, width),
        IntPredicate::Slt => signed(a, width) < signed(b, width),
        IntPredicate::Sle => signed(a, width) <= signed(b, width),
    }
}

impl Vm<'_> {
    /// Computes `a op b` where an operand is symbolic or the result may be undefined.
    #[cold]
    #[inline(never)]
    pub(crate) fn int_slow(
        &mut self,
        op: IntOp,
        width: u32,
        flags: IntFlags,
        a: Value,
        b: Value,
    ) -> Result<Value, Interrupt> {
        let x = a.to_term(self.arena, width);
        let y = b.to_term(self.arena, width);
        match op {
            IntOp::UDiv | IntOp::SDiv | IntOp::URem | IntOp::SRem => {
                let zero = self.arena.zero(width);
                let by_zero = self.arena.eq(y, zero);
                self.forbid(by_zero, || {
                    Bug::new(BugKind::DivisionByZero, "division by zero")
                })?;
                if matches!(op, IntOp::SDiv | IntOp::SRem) {
                    self.forbid_quotient_overflow(width, x, y)?;
                }
            }
            IntOp::Shl | IntOp::LShr | IntOp::AShr => return self.shift(op, width, x, y),
            _ if self.options.check_overflow => self.forbid_overflow(op, width, flags, x, y)?,
            _ => {}
        }
        let result = self.arena.binary(term_op(op), x, y);
        Ok(Value::of_term(self.arena, result))
    }

    fn forbid_quotient_overflow(
        &mut self,
        width: u32,
        x: ExprId,
        y: ExprId,
    ) -> Result<(), Interrupt> {
        let least = self.arena.constant(width, 1 << (width - 1));
        let minus_one = self.arena.all_ones(width);
        let is_least = self.arena.eq(x, least);
        let is_minus_one = self.arena.eq(y, minus_one);
        let overflow = self.arena.and(is_least, is_minus_one);
        self.forbid(overflow, || Bug {
            signal: Some(SIGFPE),
            ..Bug::new(
                BugKind::Overflow,
                "the least integer divided by -1 overflows",
            )
        })
    }

    /// Shifts. An amount of at least the width is undefined. Optimised code speculates such shifts
    /// and discards the result, so the vm reports them only in unoptimised code, and where wanted.
    /// Otherwise it takes the amount modulo the width, as the processor does.
    fn shift(&mut self, op: IntOp, width: u32, x: ExprId, y: ExprId) -> Result<Value, Interrupt> {
        let limit = self.arena.constant(width, u64::from(width));
        let mut amount = y;
        // The width does not fit in its own type (i1): any amount except 0 is too large.
        let too_large = if u64::from(width) > mask(width) {
            let zero = self.arena.zero(width);
            self.arena.ne(y, zero)
        } else {
            self.arena.uge(y, limit)
        };
        if self.options.check_shifts && self.is_unoptimised() {
            self.forbid(too_large, || {
                let message = format!("a shift of a {width}-bit integer by {width} or more bits");
                Bug::new(BugKind::UndefinedShift, message)
            })?;
        } else if width.is_power_of_two() && width > 1 && !self.arena.is_false(too_large) {
            let wrap = self.arena.constant(width, u64::from(width - 1));
            amount = self.arena.and(y, wrap);
        }
        let result = self.arena.binary(term_op(op), x, amount);
        Ok(Value::of_term(self.arena, result))
    }

    fn is_unoptimised(&self) -> bool {
        let frame = self.thread.top();
        frame
            .and_then(|frame| self.image.code(frame.function))
            .is_some_and(|code| !code.optimised)
    }

    fn forbid_overflow(
        &mut self,
        op: IntOp,
        width: u32,
        flags: IntFlags,
        x: ExprId,
        y: ExprId,
    ) -> Result<(), Interrupt> {
        if !self.is_unoptimised() || !matches!(op, IntOp::Add | IntOp::Sub | IntOp::Mul) {
            return Ok(());
        }
        for is_signed in [true, false] {
            if (is_signed && !flags.nsw) || (!is_signed && !flags.nuw) {
                continue;
            }
            let condition = self.overflows(op, width, is_signed, x, y);
            self.forbid(condition, || {
                let sign = if is_signed { "signed" } else { "unsigned" };
                let name = format!("{op:?}").to_lowercase();
                Bug::new(
                    BugKind::Overflow,
                    format!("{sign} {width}-bit {name} overflows"),
                )
            })?;
        }
        Ok(())
    }

    /// Returns the condition that the exact result does not fit in `width` bits.
    pub(crate) fn overflows(
        &mut self,
        op: IntOp,
        width: u32,
        is_signed: bool,
        x: ExprId,
        y: ExprId,
    ) -> ExprId {
        let wide = if op == IntOp::Mul {
            2 * width
        } else {
            width + 1
        };
        let extend = |vm: &mut Vm<'_>, e| {
            if is_signed {
                vm.arena.sext(e, wide)
            } else {
                vm.arena.zext(e, wide)
            }
        };
        let (a, b) = (extend(self, x), extend(self, y));
        let exact = self.arena.binary(term_op(op), a, b);
        let low = self.arena.extract(exact, 0, width);
        let back = extend(self, low);
        self.arena.ne(exact, back)
    }

    /// Compares values of which at least one is symbolic.
    #[cold]
    #[inline(never)]
    pub(crate) fn compare_slow(
        &mut self,
        pred: IntPredicate,
        width: u32,
        a: Value,
        b: Value,
    ) -> Value {
        let x = a.to_term(self.arena, width);
        let y = b.to_term(self.arena, width);
        let term = self.compare_terms(pred, x, y);
        Value::of_term(self.arena, term)
    }

    /// Compares terms of any width.
    pub(crate) fn compare_terms(&mut self, pred: IntPredicate, x: ExprId, y: ExprId) -> ExprId {
        let arena = &mut *self.arena;
        match pred {
            IntPredicate::Eq => arena.compare(CompareOp::Eq, x, y),
            IntPredicate::Ne => arena.ne(x, y),
            IntPredicate::Ugt => arena.compare(CompareOp::Ult, y, x),
            IntPredicate::Uge => arena.compare(CompareOp::Ule, y, x),
            IntPredicate::Ult => arena.compare(CompareOp::Ult, x, y),
            IntPredicate::Ule => arena.compare(CompareOp::Ule, x, y),
            IntPredicate::Sgt => arena.compare(CompareOp::Slt, y, x),
            IntPredicate::Sge => arena.compare(CompareOp::Sle, y, x),
            IntPredicate::Slt => arena.compare(CompareOp::Slt, x, y),
            IntPredicate::Sle => arena.compare(CompareOp::Sle, x, y),
        }
    }

    /// Joins registers into one term of any width.
    pub fn wide_term(&mut self, registers: &[Value], width: u32) -> ExprId {
        if registers.iter().all(|value| value.term.is_none()) {
            let bits: SmallVec<[u64; 4]> = registers.iter().map(|value| value.bits).collect();
            return self.arena.constant_limbs(width, &bits);
        }
        let mut term = registers[0].to_term(self.arena, width.min(64));
        for (at, value) in registers.iter().enumerate().skip(1) {
            let high = value.to_term(self.arena, (width - 64 * at as u32).min(64));
            term = self.arena.concat(high, term);
        }
        term
    }

    /// Splits a term of any width into registers.
    pub fn wide_value(&mut self, term: ExprId) -> Wide {
        let width = self.arena.width(term);
        let register = |vm: &mut Vm<'_>, low: u32| {
            let part = vm.arena.extract(term, low, (width - low).min(64));
            Value::of_term(vm.arena, part)
        };
        (0..width)
            .step_by(64)
            .map(|low| register(self, low))
            .collect()
    }

    /// Computes `a op b` on values of more than 64 bits.
    #[cold]
    #[inline(never)]
    pub(crate) fn wide_int(
        &mut self,
        op: IntOp,
        width: u32,
        a: &[Value],
        b: &[Value],
    ) -> Result<Wide, Interrupt> {
        let divides = matches!(op, IntOp::UDiv | IntOp::SDiv | IntOp::URem | IntOp::SRem);
        if let (false, Some(x), Some(y)) = (divides, concrete_limbs(a), concrete_limbs(b)) {
            let result = limbs::binary(term_op(op), width, &x, &y);
            return Ok(result.into_iter().map(Value::concrete).collect());
        }
        let x = self.wide_term(a, width);
        let y = self.wide_term(b, width);
        if divides {
            let zero = self.arena.zero(width);
            let by_zero = self.arena.eq(y, zero);
            self.forbid(by_zero, || {
                Bug::new(BugKind::DivisionByZero, "division by zero")
            })?;
        }
        let result = self.arena.binary(term_op(op), x, y);
        Ok(self.wide_value(result))
    }

    /// Compares values of more than 64 bits.
    #[cold]
    #[inline(never)]
    pub(crate) fn wide_compare(
        &mut self,
        pred: IntPredicate,
        width: u32,
        a: &[Value],
        b: &[Value],
    ) -> Value {
        let x = self.wide_term(a, width);
        let y = self.wide_term(b, width);
        let result = self.compare_terms(pred, x, y);
        Value::of_term(self.arena, result)
    }
}

/// Returns the limbs, if all are concrete.
pub fn concrete_limbs(registers: &[Value]) -> Option<SmallVec<[u64; 4]>> {
    registers.iter().map(|value| value.as_concrete()).collect()
}
