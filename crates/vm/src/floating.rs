//! Floating-point arithmetic on registers.

use everett_expr::{FloatCompareOp, FloatFormat, FloatOp as TermOp, float};
use everett_ir::code::{FloatCast, FloatKind, FloatOp, FloatPredicate};
use smallvec::smallvec;
use std::cmp::Ordering;

use crate::bug::{Bug, BugKind};
use crate::integer::{Wide, concrete_limbs};
use crate::rare_floats;
use crate::value::Value;
use crate::vm::{Interrupt, Vm};

/// The term format of a float kind, for kinds that have one.
pub fn format(kind: FloatKind) -> Result<FloatFormat, Interrupt> {
    match kind {
        FloatKind::Half => Ok(FloatFormat::Half),
        FloatKind::Single => Ok(FloatFormat::Single),
        FloatKind::Double => Ok(FloatFormat::Double),
        FloatKind::X87 => Ok(FloatFormat::X87),
        FloatKind::BFloat | FloatKind::Quad => {
            let message = format!("symbolic floating-point values of the format {kind:?}");
            Err(Bug::new(BugKind::Unsupported, message).into())
        }
    }
}

fn term_op(op: FloatOp) -> TermOp {
    match op {
        FloatOp::Add => TermOp::Add,
        FloatOp::Sub => TermOp::Sub,
        FloatOp::Mul => TermOp::Mul,
        FloatOp::Div => TermOp::Div,
        FloatOp::Rem => TermOp::Rem,
    }
}

/// The bits of a concrete float of at most 128 bits.
pub fn bits128(registers: &[Value]) -> Option<u128> {
    let limbs = concrete_limbs(registers)?;
    Some(
        limbs
            .iter()
            .rev()
            .fold(0, |bits, limb| bits << 64 | u128::from(*limb)),
    )
}

/// The registers of a concrete float.
pub fn registers128(kind: FloatKind, bits: u128) -> Wide {
    match kind.registers() {
        1 => smallvec![Value::concrete(bits as u64)],
        _ => smallvec![
            Value::concrete(bits as u64),
            Value::concrete((bits >> 64) as u64)
        ],
    }
}

impl Vm<'_> {
    /// `a op b`.
    pub(crate) fn float(
        &mut self,
        op: FloatOp,
        kind: FloatKind,
        a: &[Value],
        b: &[Value],
    ) -> Result<Wide, Interrupt> {
        let operands = bits128(a).zip(bits128(b));
        if let Some((x, y)) = operands.filter(|_| rare_floats::is_rare(kind)) {
            return Ok(registers128(kind, rare_floats::binary(op, kind, x, y)));
        }
        let format = format(kind)?;
        if let Some((x, y)) = operands {
            return Ok(registers128(kind, float::binary(term_op(op), format, x, y)));
        }
        let x = self.wide_term(a, kind.bits());
        let y = self.wide_term(b, kind.bits());
        let result = self.arena.float_binary(term_op(op), format, x, y);
        Ok(self.wide_value(result))
    }

    /// `-a`: flips the sign bit, whatever the value is.
    pub(crate) fn float_negate(&mut self, kind: FloatKind, a: &[Value]) -> Wide {
        let mut result: Wide = a.iter().copied().collect();
        let last = result.len() - 1;
        let bit = (kind.bits() - 1) % 64;
        let width = kind.bits() - 64 * last as u32;
        result[last] = match a[last].term {
            None => Value::concrete(a[last].bits ^ 1 << bit),
            Some(_) => {
                let term = a[last].to_term(self.arena, width);
                let sign = self.arena.constant(width, 1 << bit);
                let flipped = self.arena.xor(term, sign);
                Value::of_term(self.arena, flipped)
            }
        };
        result
    }

    /// `a pred b`, one bit.
    pub(crate) fn float_compare(
        &mut self,
        pred: FloatPredicate,
        kind: FloatKind,
        a: &[Value],
        b: &[Value],
    ) -> Result<Value, Interrupt> {
        use FloatCompareOp::{Oeq, Ole, Olt, Uno};
        let (swap, op, negate) = match pred {
            FloatPredicate::False => return Ok(Value::ZERO),
            FloatPredicate::True => return Ok(Value::concrete(1)),
            FloatPredicate::Oeq => (false, Oeq, false),
            FloatPredicate::Ogt => (true, Olt, false),
            FloatPredicate::Oge => (true, Ole, false),
            FloatPredicate::Olt => (false, Olt, false),
            FloatPredicate::Ole => (false, Ole, false),
            FloatPredicate::Ord => (false, Uno, true),
            FloatPredicate::Uno => (false, Uno, false),
            FloatPredicate::Ugt => (false, Ole, true),
            FloatPredicate::Uge => (false, Olt, true),
            FloatPredicate::Ult => (true, Ole, true),
            FloatPredicate::Ule => (true, Olt, true),
            FloatPredicate::Une => (false, Oeq, true),
            FloatPredicate::One | FloatPredicate::Ueq => {
                return self.float_compare_both(pred, kind, a, b);
            }
        };
        let (a, b) = if swap { (b, a) } else { (a, b) };
        let operands = bits128(a).zip(bits128(b));
        if let Some((x, y)) = operands.filter(|_| rare_floats::is_rare(kind)) {
            let order = rare_floats::compare(kind, x, y);
            let holds = match op {
                Oeq => order == Some(Ordering::Equal),
                Olt => order == Some(Ordering::Less),
                Ole => order.is_some_and(Ordering::is_le),
                Uno => order.is_none(),
            };
            return Ok(Value::concrete(u64::from(holds != negate)));
        }
        let format = format(kind)?;
        if let Some((x, y)) = operands {
            let holds = float::compare(op, format, x, y) != negate;
            return Ok(Value::concrete(u64::from(holds)));
        }
        let x = self.wide_term(a, kind.bits());
        let y = self.wide_term(b, kind.bits());
        let mut result = self.arena.float_compare(op, format, x, y);
        if negate {
            result = self.arena.not(result);
        }
        Ok(Value::of_term(self.arena, result))
    }

    /// `one` and `ueq` each combine two comparisons.
    fn float_compare_both(
        &mut self,
        pred: FloatPredicate,
        kind: FloatKind,
        a: &[Value],
        b: &[Value],
    ) -> Result<Value, Interrupt> {
        let less = self.float_compare(FloatPredicate::Olt, kind, a, b)?;
        let greater = self.float_compare(FloatPredicate::Ogt, kind, a, b)?;
        let x = less.to_term(self.arena, 1);
        let y = greater.to_term(self.arena, 1);
        let mut either = self.arena.or(x, y);
        if pred == FloatPredicate::Ueq {
            either = self.arena.not(either);
        }
        Ok(Value::of_term(self.arena, either))
    }

    /// Conversion from or to floating point.
    pub(crate) fn float_cast(&mut self, cast: FloatCast, a: &[Value]) -> Result<Wide, Interrupt> {
        match cast {
            FloatCast::Format { from, to } => {
                let is_rare = rare_floats::is_rare(from) || rare_floats::is_rare(to);
                if let Some(x) = bits128(a).filter(|_| is_rare) {
                    return Ok(registers128(to, rare_floats::convert(from, to, x)));
                }
                let (from_format, to_format) = (format(from)?, format(to)?);
                if let Some(x) = bits128(a) {
                    return Ok(registers128(to, float::convert(from_format, to_format, x)));
                }
                let x = self.wide_term(a, from.bits());
                let result = self.arena.float_convert(from_format, to_format, x);
                Ok(self.wide_value(result))
            }
            FloatCast::FromInt { width, signed, to } => {
                let width = u32::from(width);
                if let Some(x) = bits128(a).filter(|_| rare_floats::is_rare(to) && width <= 128) {
                    let bits = rare_floats::from_int(signed, to, width, x);
                    return Ok(registers128(to, bits));
                }
                let format = format(to)?;
                if let Some(x) = concrete_limbs(a) {
                    return Ok(registers128(to, float::from_int(signed, format, width, &x)));
                }
                let x = self.wide_term(a, width);
                let result = self.arena.float_from_int(signed, format, x);
                Ok(self.wide_value(result))
            }
            FloatCast::ToInt {
                from,
                width,
                signed,
            } => {
                let width = u32::from(width);
                if let Some(x) = bits128(a).filter(|_| rare_floats::is_rare(from) && width <= 128) {
                    let bits = rare_floats::to_int(signed, from, x, width);
                    let limbs = [bits as u64, (bits >> 64) as u64];
                    let limbs = limbs.into_iter().take(width.div_ceil(64) as usize);
                    return Ok(limbs.map(Value::concrete).collect());
                }
                let format = format(from)?;
                if let Some(x) = bits128(a) {
                    let result = float::to_int(signed, format, x, width);
                    return Ok(result.into_iter().map(Value::concrete).collect());
                }
                let x = self.wide_term(a, from.bits());
                let result = self.arena.float_to_int(signed, format, x, width);
                Ok(self.wide_value(result))
            }
        }
    }
}
