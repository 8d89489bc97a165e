//! Floating-point arithmetic on registers.

use everett_expr::{
    ExprId, FloatCompareOp, FloatFormat, FloatOp as TermOp, FloatUnaryOp, RoundingMode,
    environment, float,
};
use everett_ir::code::{FloatCast, FloatKind, FloatOp, FloatPredicate};
use smallvec::smallvec;
use std::cmp::Ordering;

use crate::bug::{Bug, BugKind};
use crate::integer::{Wide, concrete_limbs};
use crate::oracle::Note;
use crate::rare_floats;
use crate::value::Value;
use crate::vm::{Interrupt, Vm};

/// Returns the term format of a float kind, for kinds that have one.
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

/// Returns the bits of a concrete float of at most 128 bits.
pub fn bits128(registers: &[Value]) -> Option<u128> {
    let limbs = concrete_limbs(registers)?;
    Some(
        limbs
            .iter()
            .rev()
            .fold(0, |bits, limb| bits << 64 | u128::from(*limb)),
    )
}

/// Returns the registers of a concrete float.
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
    /// Returns the rounding mode of operations in a format.
    pub(crate) fn float_rounding(&self, format: FloatFormat) -> RoundingMode {
        self.thread.floats.rounding(format)
    }

    /// Checks that an operation on terms is supported, and records that its exception flags are
    /// unknown. Terms round to nearest and have no exception flags.
    pub(crate) fn float_on_terms(&mut self, format: FloatFormat) -> Result<(), Interrupt> {
        if self.image.tracks_floats() && self.float_rounding(format) != RoundingMode::NearestEven {
            let message = "floating-point arithmetic on symbolic values, with another rounding mode than to nearest";
            return Err(Bug::new(BugKind::Unsupported, message).into());
        }
        self.float_flags_unknown();
        Ok(())
    }

    /// Computes `a op b` on terms, which may be numbers, in the thread's environment.
    pub(crate) fn float_term(
        &mut self,
        op: TermOp,
        format: FloatFormat,
        a: ExprId,
        b: ExprId,
    ) -> Result<ExprId, Interrupt> {
        let numbers = [a, b].map(|term| self.arena.as_const_u128(term));
        if let [Some(a), Some(b)] = numbers {
            let result = self.float_number(op, format, a, b);
            return Ok(self.arena.constant_u128(format.width(), result));
        }
        self.float_on_terms(format)?;
        Ok(self.arena.float_binary(op, format, a, b))
    }

    /// Records that an operation on terms may have raised flags.
    pub(crate) fn float_flags_unknown(&mut self) {
        self.thread.floats.unknown |= self.image.tracks_floats();
    }

    /// Computes `a op b` on numbers, in the thread's environment.
    pub(crate) fn float_number(
        &mut self,
        op: TermOp,
        format: FloatFormat,
        a: u128,
        b: u128,
    ) -> u128 {
        if !self.image.tracks_floats() {
            return float::binary(op, format, a, b);
        }
        let (bits, flags) = environment::binary(op, format, self.float_rounding(format), a, b);
        self.thread.floats.raise(format, flags);
        bits
    }

    /// Computes the square root or integral value of a number, in the thread's environment.
    pub(crate) fn float_unary_number(
        &mut self,
        op: FloatUnaryOp,
        format: FloatFormat,
        x: u128,
    ) -> u128 {
        if !self.image.tracks_floats() {
            return float::unary(op, format, x);
        }
        let (bits, flags) = match op {
            FloatUnaryOp::Sqrt => environment::sqrt(format, self.float_rounding(format), x),
            FloatUnaryOp::RoundToIntegral(_) => {
                let result = float::unary(op, format, x);
                (result, environment::integral_flags(format, x, result))
            }
        };
        self.thread.floats.raise(format, flags);
        bits
    }

    /// Computes the square root or integral value of a term, which may be a number.
    pub(crate) fn float_unary_term(
        &mut self,
        op: FloatUnaryOp,
        format: FloatFormat,
        x: ExprId,
    ) -> Result<ExprId, Interrupt> {
        if let Some(bits) = self.arena.as_const_u128(x) {
            let result = self.float_unary_number(op, format, bits);
            return Ok(self.arena.constant_u128(format.width(), result));
        }
        match op {
            FloatUnaryOp::Sqrt => self.float_on_terms(format)?,
            FloatUnaryOp::RoundToIntegral(_) => self.float_flags_unknown(),
        }
        Ok(self.arena.float_unary(op, format, x))
    }

    /// Rounds a number to an integer of this width, towards zero unless `mode` says otherwise.
    pub(crate) fn float_to_int_number(
        &mut self,
        format: FloatFormat,
        mode: Option<RoundingMode>,
        x: u128,
        width: u32,
    ) -> Vec<u64> {
        let whole = match mode {
            Some(mode) => float::unary(FloatUnaryOp::RoundToIntegral(mode), format, x),
            None => x,
        };
        if self.image.tracks_floats() {
            // An out-of-range conversion is invalid, but does not raise the inexact flag.
            let mut flags = environment::to_int_flags(format, whole, width);
            if flags == 0 {
                flags = environment::integral_flags(format, x, whole);
            }
            self.thread.floats.raise(format, flags);
        }
        float::to_int(true, format, whole, width)
    }

    /// Rounds like [`Vm::float_to_int_number`], but a term, which may be a number.
    pub(crate) fn float_to_int_term(
        &mut self,
        format: FloatFormat,
        mode: Option<RoundingMode>,
        x: ExprId,
        width: u32,
    ) -> ExprId {
        if let Some(bits) = self.arena.as_const_u128(x) {
            let limbs = self.float_to_int_number(format, mode, bits, width);
            return self.arena.constant_limbs(width, &limbs);
        }
        self.float_flags_unknown();
        let x = match mode {
            Some(mode) => self
                .arena
                .float_unary(FloatUnaryOp::RoundToIntegral(mode), format, x),
            None => x,
        };
        self.arena.float_to_int(true, format, x, width)
    }

    /// Returns whether an operation on floats has symbolic operands that are to have one value.
    fn fixes_floats(&self, operands: &[&[Value]]) -> bool {
        let mut values = operands.iter().copied().flatten();
        self.options.concretize_floats && values.any(|value| value.term.is_some())
    }

    /// Gives the operands of an operation on floats one value.
    fn fixed<const N: usize>(&mut self, operands: [&[Value]; N]) -> Result<[Wide; N], Interrupt> {
        let mut fixed = operands.map(Wide::from_slice);
        // If the operation is suspended here, it starts again.
        self.oracle.set_forking_on_floats(false);
        for value in fixed.iter_mut().flatten() {
            *value = Value::concrete(self.concretize(*value)?);
        }
        self.oracle.set_forking_on_floats(true);
        let note = "silently concretizing (reason: floating point)";
        self.note(Note::WarningOnce(note.to_owned()));
        Ok(fixed)
    }

    /// Computes `a op b`.
    pub(crate) fn float(
        &mut self,
        op: FloatOp,
        kind: FloatKind,
        a: &[Value],
        b: &[Value],
    ) -> Result<Wide, Interrupt> {
        if self.fixes_floats(&[a, b]) {
            let [a, b] = self.fixed([a, b])?;
            return self.float(op, kind, &a, &b);
        }
        let operands = bits128(a).zip(bits128(b));
        if let Some((x, y)) = operands.filter(|_| rare_floats::is_rare(kind)) {
            return Ok(registers128(kind, rare_floats::binary(op, kind, x, y)));
        }
        let format = format(kind)?;
        if let Some((x, y)) = operands {
            let result = self.float_number(term_op(op), format, x, y);
            return Ok(registers128(kind, result));
        }
        self.float_on_terms(format)?;
        let x = self.wide_term(a, kind.bits());
        let y = self.wide_term(b, kind.bits());
        let result = self.arena.float_binary(term_op(op), format, x, y);
        Ok(self.wide_value(result))
    }

    /// Computes `-a`: flips the sign bit, whatever the value is.
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

    /// Computes `a pred b`, one bit.
    pub(crate) fn float_compare(
        &mut self,
        pred: FloatPredicate,
        signals: bool,
        kind: FloatKind,
        a: &[Value],
        b: &[Value],
    ) -> Result<Value, Interrupt> {
        use FloatCompareOp::{Oeq, Ole, Olt, Uno};
        if self.fixes_floats(&[a, b]) {
            let [a, b] = self.fixed([a, b])?;
            return self.float_compare(pred, signals, kind, &a, &b);
        }
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
                return self.float_compare_both(pred, signals, kind, a, b);
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
            if self.image.tracks_floats() {
                let flags = environment::compare_flags(format, x, y, signals);
                self.thread.floats.raise(format, flags);
            }
            let holds = float::compare(op, format, x, y) != negate;
            return Ok(Value::concrete(u64::from(holds)));
        }
        self.float_flags_unknown();
        let x = self.wide_term(a, kind.bits());
        let y = self.wide_term(b, kind.bits());
        let mut result = self.arena.float_compare(op, format, x, y);
        if negate {
            result = self.arena.not(result);
        }
        Ok(Value::of_term(self.arena, result))
    }

    /// Compares with `one` or `ueq`, which each combine two comparisons.
    fn float_compare_both(
        &mut self,
        pred: FloatPredicate,
        signals: bool,
        kind: FloatKind,
        a: &[Value],
        b: &[Value],
    ) -> Result<Value, Interrupt> {
        let less = self.float_compare(FloatPredicate::Olt, signals, kind, a, b)?;
        let greater = self.float_compare(FloatPredicate::Ogt, signals, kind, a, b)?;
        let x = less.to_term(self.arena, 1);
        let y = greater.to_term(self.arena, 1);
        let mut either = self.arena.or(x, y);
        if pred == FloatPredicate::Ueq {
            either = self.arena.not(either);
        }
        Ok(Value::of_term(self.arena, either))
    }

    /// Converts a number between formats, in the thread's environment.
    fn convert_number(&mut self, from: FloatFormat, to: FloatFormat, x: u128) -> u128 {
        if !self.image.tracks_floats() {
            return float::convert(from, to, x);
        }
        // Only loads and stores of the x87 convert from or to its format.
        let unit = match from {
            FloatFormat::X87 => from,
            _ => to,
        };
        let (bits, flags) = environment::convert(from, to, self.float_rounding(unit), x);
        self.thread.floats.raise(unit, flags);
        bits
    }

    /// Converts an integer, in the thread's environment.
    fn number_from_int(
        &mut self,
        signed: bool,
        format: FloatFormat,
        width: u32,
        x: &[u64],
    ) -> u128 {
        // The compiler's runtime converts larger integers without regard to the environment.
        if !self.image.tracks_floats() || width > 64 {
            return float::from_int(signed, format, width, x);
        }
        let negative = signed && x[0] >> (width - 1) & 1 == 1;
        let magnitude = match negative {
            true => (1u128 << width) - u128::from(x[0]),
            false => u128::from(x[0]),
        };
        let mode = self.float_rounding(format);
        let (bits, flags) = environment::from_int(format, mode, negative, magnitude);
        self.thread.floats.raise(format, flags);
        bits
    }

    /// Converts from or to floating point.
    pub(crate) fn float_cast(&mut self, cast: FloatCast, a: &[Value]) -> Result<Wide, Interrupt> {
        if self.fixes_floats(&[a]) {
            let [a] = self.fixed([a])?;
            return self.float_cast(cast, &a);
        }
        match cast {
            FloatCast::Format { from, to } => {
                let is_rare = rare_floats::is_rare(from) || rare_floats::is_rare(to);
                if let Some(x) = bits128(a).filter(|_| is_rare) {
                    return Ok(registers128(to, rare_floats::convert(from, to, x)));
                }
                let (from_format, to_format) = (format(from)?, format(to)?);
                if let Some(x) = bits128(a) {
                    let result = self.convert_number(from_format, to_format, x);
                    return Ok(registers128(to, result));
                }
                self.float_on_terms(to_format)?;
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
                    return Ok(registers128(
                        to,
                        self.number_from_int(signed, format, width, &x),
                    ));
                }
                self.float_on_terms(format)?;
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
                    if self.image.tracks_floats() {
                        let flags = to_int_flags(signed, format, x, width);
                        self.thread.floats.raise(format, flags);
                    }
                    let result = float::to_int(signed, format, x, width);
                    return Ok(result.into_iter().map(Value::concrete).collect());
                }
                self.float_flags_unknown();
                let x = self.wide_term(a, from.bits());
                let result = self.arena.float_to_int(signed, format, x, width);
                Ok(self.wide_value(result))
            }
        }
    }
}

/// Returns the exception flags of a conversion to an integer, as compilers implement it: the
/// processor has instructions for signed integers of 32 and 64 bits, and the compiler's runtime
/// converts to larger ones without flags.
fn to_int_flags(signed: bool, format: FloatFormat, x: u128, width: u32) -> u16 {
    match (signed, width) {
        (_, 65..) => 0,
        (false, 64) => {
            // Compiled code first subtracts 2^63 from numbers in the upper half of the range.
            let half = float::from_int(false, format, 64, &[1 << 63]);
            let rest = float::binary(TermOp::Sub, format, x, half);
            match float::compare(FloatCompareOp::Ole, format, half, x) {
                true => environment::to_int_flags(format, rest, 64),
                false => environment::to_int_flags(format, x, 64),
            }
        }
        (true, 33..) | (false, 32..) => environment::to_int_flags(format, x, 64),
        _ => environment::to_int_flags(format, x, 32),
    }
}
