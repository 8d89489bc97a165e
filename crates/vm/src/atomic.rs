//! Atomic read-modify-write operations. Only one thread runs at a time, so a plain load and store
//! in one step is atomic.

use everett_expr::{BinaryOp, ExprId, FloatOp as TermFloatOp};
use everett_ir::code::{AtomicOp, FloatKind, IntPredicate};
use smallvec::{SmallVec, smallvec};

use crate::floating;
use crate::integer::Wide;
use crate::value::Value;
use crate::vm::{Interrupt, Vm};

impl Vm<'_> {
    /// `atomicrmw`: returns the old value.
    pub(crate) fn atomic_update(
        &mut self,
        op: AtomicOp,
        bytes: u8,
        pointer: Value,
        value: Value,
    ) -> Result<Value, Interrupt> {
        let width = 8 * u32::from(bytes);
        let old = self.load(pointer, usize::from(bytes))?;
        let x = old.to_term(self.arena, width);
        let y = value.to_term(self.arena, width);
        let new = self.combine(op, width, x, y)?;
        let new = Value::of_term(self.arena, new);
        self.store(pointer, usize::from(bytes), new)?;
        Ok(old)
    }

    fn combine(
        &mut self,
        op: AtomicOp,
        width: u32,
        x: ExprId,
        y: ExprId,
    ) -> Result<ExprId, Interrupt> {
        let pick = |vm: &mut Self, pred| {
            let first = vm.compare_terms(pred, x, y);
            vm.arena.ite(first, x, y)
        };
        Ok(match op {
            AtomicOp::Exchange => y,
            AtomicOp::Add => self.arena.binary(BinaryOp::Add, x, y),
            AtomicOp::Sub => self.arena.binary(BinaryOp::Sub, x, y),
            AtomicOp::And => self.arena.binary(BinaryOp::And, x, y),
            AtomicOp::Nand => {
                let both = self.arena.binary(BinaryOp::And, x, y);
                self.arena.not(both)
            }
            AtomicOp::Or => self.arena.binary(BinaryOp::Or, x, y),
            AtomicOp::Xor => self.arena.binary(BinaryOp::Xor, x, y),
            AtomicOp::Max => pick(self, IntPredicate::Sgt),
            AtomicOp::Min => pick(self, IntPredicate::Slt),
            AtomicOp::UMax => pick(self, IntPredicate::Ugt),
            AtomicOp::UMin => pick(self, IntPredicate::Ult),
            AtomicOp::UIncWrap => {
                let one = self.arena.constant(width, 1);
                let zero = self.arena.zero(width);
                let next = self.arena.add(x, one);
                let wraps = self.arena.uge(x, y);
                self.arena.ite(wraps, zero, next)
            }
            AtomicOp::UDecWrap => {
                let one = self.arena.constant(width, 1);
                let zero = self.arena.zero(width);
                let next = self.arena.sub(x, one);
                let at_zero = self.arena.eq(x, zero);
                let above = self.arena.ugt(x, y);
                let wraps = self.arena.or(at_zero, above);
                self.arena.ite(wraps, y, next)
            }
            AtomicOp::USubCond | AtomicOp::USubSat => {
                let fits = self.arena.uge(x, y);
                let less = self.arena.sub(x, y);
                let zero = self.arena.zero(width);
                let other = if op == AtomicOp::USubCond { x } else { zero };
                self.arena.ite(fits, less, other)
            }
            AtomicOp::FAdd | AtomicOp::FSub | AtomicOp::FMax | AtomicOp::FMin => {
                let kind = if width == 32 {
                    FloatKind::Single
                } else {
                    FloatKind::Double
                };
                self.combine_floats(op, kind, x, y)?
            }
        })
    }

    fn combine_floats(
        &mut self,
        op: AtomicOp,
        kind: FloatKind,
        x: ExprId,
        y: ExprId,
    ) -> Result<ExprId, Interrupt> {
        let format = floating::format(kind)?;
        Ok(match op {
            AtomicOp::FAdd => self.arena.float_binary(TermFloatOp::Add, format, x, y),
            AtomicOp::FSub => self.arena.float_binary(TermFloatOp::Sub, format, x, y),
            _ => {
                let less =
                    self.arena
                        .float_compare(everett_expr::FloatCompareOp::Olt, format, x, y);
                let (yes, no) = if op == AtomicOp::FMin { (x, y) } else { (y, x) };
                self.arena.ite(less, yes, no)
            }
        })
    }

    /// `cmpxchg`: returns the old value and the success bit.
    pub(crate) fn compare_exchange(
        &mut self,
        bytes: u8,
        pointer: Value,
        expected: &[Value],
        new: &[Value],
    ) -> Result<Wide, Interrupt> {
        let bytes = usize::from(bytes);
        let width = 8 * bytes as u32;
        let old: SmallVec<[Value; 4]> = if bytes <= 8 {
            smallvec![self.load(pointer, bytes)?]
        } else {
            self.load_wide(pointer, bytes)?.into()
        };
        let x = self.wide_term(&old, width);
        let y = self.wide_term(expected, width);
        let same = self.arena.eq(x, y);
        let same = self.decide_term(same)?;
        if same {
            let mut places = SmallVec::<[_; 2]>::new();
            for at in (0..bytes).step_by(8) {
                let len = (bytes - at).min(8);
                let pointer = self.offset_pointer(pointer, at as u64);
                places.push((self.resolve_access(pointer, len as u64, true)?, len));
            }
            for ((place, len), value) in places.into_iter().zip(new) {
                self.store_at(place, len, *value)?;
            }
        }
        let mut result = old;
        result.push(Value::concrete(u64::from(same)));
        Ok(result)
    }
}
