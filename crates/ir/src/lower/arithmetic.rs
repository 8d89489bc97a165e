//! Arithmetic, conversions, comparisons and selects, lane by lane.

use super::body::{Body, Ops};
use super::shape::{limb_widths, mask};
use crate::code::{
    FloatCast, FloatOp, FloatPredicate, Inst, IntFlags, IntOp, IntPredicate, Lane, Operand,
};
use crate::module::{self, BinaryOp, CastOp, TypeId, Value};

impl Body<'_, '_> {
    /// Lowers a two-operand operation.
    pub fn binary(
        &mut self,
        op: BinaryOp,
        lhs: Value,
        rhs: Value,
        flags: IntFlags,
        ty: TypeId,
    ) -> Ops {
        let Some((lane, lanes)) = self.lanes_of_type(ty) else {
            return self.no_lanes("arithmetic", ty);
        };
        let (a, b) = (self.operands(lhs), self.operands(rhs));
        let limbs = lane.registers();
        if lanes == 1 {
            return self.binary_lane(op, a, b, flags, lane);
        }
        let mut results = Vec::with_capacity(lanes as usize);
        for index in 0..lanes {
            let (a, b) = (a.slice(index * limbs, limbs), b.slice(index * limbs, limbs));
            results.push(self.binary_lane(op, a, b, flags, lane));
        }
        self.concat(&results)
    }

    fn binary_lane(&mut self, op: BinaryOp, a: Ops, b: Ops, flags: IntFlags, lane: Lane) -> Ops {
        match (lane, float_op(op), int_op(op)) {
            (Lane::Float(kind), Some(op), _) => {
                let a = self.contiguous_exact(a, kind.registers());
                let b = self.contiguous_exact(b, kind.registers());
                let dst = self.fresh(kind.registers());
                self.emit(Inst::Float {
                    op,
                    kind,
                    dst,
                    a,
                    b,
                });
                self.run(dst, kind.registers())
            }
            (Lane::Int(width), _, Some(op)) if width <= 64 => {
                let (a, b) = (self.at(a, 0), self.at(b, 0));
                let dst = self.register();
                self.emit(Inst::Int {
                    op,
                    width: width as u8,
                    flags,
                    dst,
                    a,
                    b,
                });
                self.run(dst, 1)
            }
            (Lane::Int(width), _, Some(op)) => self.wide_binary(op, a, b, width),
            _ => {
                self.unsupported("arithmetic on operands of the wrong type");
                self.zeros(lane.registers())
            }
        }
    }

    fn wide_binary(&mut self, op: IntOp, a: Ops, b: Ops, width: u16) -> Ops {
        let limbs = Lane::Int(width).registers();
        if matches!(op, IntOp::And | IntOp::Or | IntOp::Xor) {
            let results: Vec<Operand> = (0..limbs)
                .map(|index| {
                    let (a, b) = (self.at(a, index), self.at(b, index));
                    self.bitwise_limb(op, a, b)
                })
                .collect();
            return self.ops(results);
        }
        if let (IntOp::Shl | IntOp::LShr, Some(amount)) = (op, self.small_constant(b))
            && amount < u64::from(width)
        {
            return self.wide_shift(op, a, amount as u32, width);
        }
        let a = self.contiguous_exact(a, limbs);
        let b = self.contiguous_exact(b, limbs);
        let dst = self.fresh(limbs);
        self.emit(Inst::WideInt {
            op,
            width,
            dst,
            a,
            b,
        });
        self.run(dst, limbs)
    }

    /// Emits a bit operation on a limb. Operations with zero need no code; wide values are often
    /// assembled with them.
    fn bitwise_limb(&mut self, op: IntOp, a: Operand, b: Operand) -> Operand {
        match (op, self.constant_value(a), self.constant_value(b)) {
            (IntOp::Or | IntOp::Xor, Some(0), _) => b,
            (IntOp::Or | IntOp::Xor, _, Some(0)) => a,
            (IntOp::And, Some(0), _) | (IntOp::And, _, Some(0)) => self.constant(0),
            _ => self.int(op, 64, a, b),
        }
    }

    /// Returns the value of a wide constant that fits in one word.
    fn small_constant(&self, ops: Ops) -> Option<u64> {
        let list = self.list(ops);
        let low = self.constant_value(*list.first()?)?;
        let high = list[1..]
            .iter()
            .all(|operand| self.constant_value(*operand) == Some(0));
        high.then_some(low)
    }

    /// Shifts a wide value by a constant: each limb is assembled from the limbs that contribute
    /// bits.
    fn wide_shift(&mut self, op: IntOp, a: Ops, amount: u32, width: u16) -> Ops {
        let zero = self.constant(0);
        let limbs = self
            .list(a)
            .iter()
            .copied()
            .zip(limb_widths(Lane::Int(width)));
        let limbs: Vec<_> = limbs.collect();
        let mut source = Vec::new();
        let mut low = 0;
        if op == IntOp::Shl {
            source.extend((0..amount / 64).map(|_| (zero, 64)));
            source.push((zero, amount % 64));
        } else {
            low = amount;
        }
        source.extend(limbs);
        let mut results = Vec::new();
        for bits in limb_widths(Lane::Int(width)) {
            results.push(self.gather(&source, low, bits));
            low += bits;
        }
        self.ops(results)
    }

    /// Lowers `fneg`.
    pub fn float_negate(&mut self, value: Value) -> Ops {
        let a = self.operands(value);
        let Some((Lane::Float(kind), lanes)) = self.lanes_of(value) else {
            self.unsupported("fneg of the wrong type");
            return self.zeros(a.len());
        };
        let dst = self.fresh(lanes * kind.registers());
        for index in 0..lanes {
            let limbs = kind.registers();
            let a = self.contiguous_exact(a.slice(index * limbs, limbs), limbs);
            self.emit(Inst::FloatNegate {
                kind,
                dst: dst + index * limbs,
                a,
            });
        }
        self.run(dst, lanes * kind.registers())
    }

    /// Lowers `icmp`.
    pub fn integer_compare(
        &mut self,
        predicate: module::IntPredicate,
        lhs: Value,
        rhs: Value,
    ) -> Ops {
        let (a, b) = (self.operands(lhs), self.operands(rhs));
        let Some((lane, lanes)) = self.lanes_of(lhs) else {
            self.unsupported("icmp of the wrong type");
            return self.zeros(1);
        };
        let (pred, limbs) = (int_predicate(predicate), lane.registers());
        let dst = self.fresh(lanes);
        for index in 0..lanes {
            let dst = dst + index;
            if limbs == 1 {
                let (a, b) = (self.at(a, index), self.at(b, index));
                self.emit(Inst::Compare {
                    pred,
                    width: lane.bits() as u8,
                    dst,
                    a,
                    b,
                });
            } else {
                let a = self.contiguous_exact(a.slice(index * limbs, limbs), limbs);
                let b = self.contiguous_exact(b.slice(index * limbs, limbs), limbs);
                self.emit(Inst::WideCompare {
                    pred,
                    width: lane.bits() as u16,
                    dst,
                    a,
                    b,
                });
            }
        }
        self.run(dst, lanes)
    }

    /// Lowers `fcmp`, which by itself is invalid for signalling NaNs only.
    pub fn float_compare(
        &mut self,
        predicate: module::FloatPredicate,
        signals: bool,
        lhs: Value,
        rhs: Value,
    ) -> Ops {
        let (a, b) = (self.operands(lhs), self.operands(rhs));
        let Some((Lane::Float(kind), lanes)) = self.lanes_of(lhs) else {
            self.unsupported("fcmp of the wrong type");
            return self.zeros(1);
        };
        let (pred, limbs) = (float_predicate(predicate), kind.registers());
        let dst = self.fresh(lanes);
        for index in 0..lanes {
            let a = self.contiguous_exact(a.slice(index * limbs, limbs), limbs);
            let b = self.contiguous_exact(b.slice(index * limbs, limbs), limbs);
            self.emit(Inst::FloatCompare {
                pred,
                signals,
                kind,
                dst: dst + index,
                a,
                b,
            });
        }
        self.run(dst, lanes)
    }

    /// Lowers `select`.
    pub fn select(&mut self, condition: Value, then: Value, otherwise: Value, ty: TypeId) -> Ops {
        let condition = self.operands(condition);
        let (a, b) = (self.operands(then), self.operands(otherwise));
        let Some(shape) = self.shape(ty) else {
            return self.no_lanes("select", ty);
        };
        let widths: Vec<u32> = shape
            .parts
            .iter()
            .flat_map(|part| match part.kind {
                super::shape::PartKind::Scalar(lane) => limb_widths(lane).collect::<Vec<_>>(),
                super::shape::PartKind::Packed { lanes, width } => {
                    let limbs: Vec<_> = limb_widths(Lane::Int(width)).collect();
                    limbs.repeat(lanes as usize)
                }
            })
            .collect();
        let by_lane = condition.len() > 1 && shape.lanes == condition.len();
        let limbs = if by_lane {
            shape.registers / shape.lanes
        } else {
            shape.registers.max(1)
        };
        let dst = self.fresh(shape.registers);
        for (index, width) in (0..shape.registers).zip(widths) {
            let cond = self.at(condition, index / limbs);
            let (a, b) = (self.at(a, index), self.at(b, index));
            self.emit(Inst::Select {
                width: width as u8,
                dst: dst + index,
                cond,
                a,
                b,
            });
        }
        self.run(dst, shape.registers)
    }

    /// Lowers a conversion.
    pub fn cast(&mut self, op: CastOp, value: Value, ty: TypeId) -> Ops {
        let source = self.operands(value);
        let from = self.lanes_of(value).or_else(|| self.address_lane(value));
        let (Some((from, lanes)), Some((to, to_lanes))) = (from, self.lanes_of_type(ty)) else {
            return self.no_lanes("conversion", ty);
        };
        if op == CastOp::BitCast {
            return self.bitcast(source, (from, lanes), (to, to_lanes));
        }
        let limbs = from.registers();
        if lanes == 1 {
            return self.cast_lane(op, source, from, to);
        }
        let mut results = Vec::with_capacity(lanes as usize);
        for index in 0..lanes.min(to_lanes) {
            results.push(self.cast_lane(op, source.slice(index * limbs, limbs), from, to));
        }
        self.concat(&results)
    }

    fn cast_lane(&mut self, op: CastOp, source: Ops, from: Lane, to: Lane) -> Ops {
        match op {
            CastOp::Trunc
            | CastOp::ZExt
            | CastOp::PtrToInt
            | CastOp::IntToPtr
            | CastOp::AddrSpaceCast
            | CastOp::PtrToAddr => self.resize(source, from, to),
            CastOp::SExt => self.sign_extend(source, from, to),
            CastOp::BitCast => self.bitcast(source, (from, 1), (to, 1)),
            CastOp::FpToUi
            | CastOp::FpToSi
            | CastOp::UiToFp
            | CastOp::SiToFp
            | CastOp::FpTrunc
            | CastOp::FpExt => {
                let signed = matches!(op, CastOp::FpToSi | CastOp::SiToFp);
                let cast = match (from, to) {
                    (Lane::Float(from), Lane::Float(to)) => FloatCast::Format { from, to },
                    (Lane::Float(from), Lane::Int(width)) => FloatCast::ToInt {
                        from,
                        width,
                        signed,
                    },
                    (Lane::Int(width), Lane::Float(to)) => FloatCast::FromInt { width, signed, to },
                    _ => {
                        self.unsupported("conversion between the wrong types");
                        return self.zeros(to.registers());
                    }
                };
                let a = self.contiguous_exact(source, from.registers());
                let dst = self.fresh(to.registers());
                self.emit(Inst::FloatCast { cast, dst, a });
                self.run(dst, to.registers())
            }
        }
    }

    /// Zero-extends or truncates: existing limbs are kept, new ones are zero, the last one may be
    /// truncated.
    fn resize(&mut self, source: Ops, from: Lane, to: Lane) -> Ops {
        let mut results = Vec::with_capacity(to.registers() as usize);
        let mut left = from.bits();
        for (index, width) in limb_widths(to).enumerate() {
            let limb = self.at(source, index as u32);
            results.push(if left.min(64) > width {
                self.truncate(limb, width)
            } else {
                limb
            });
            left = left.saturating_sub(64);
        }
        self.ops(results)
    }

    /// Returns the low bits of an operand.
    pub fn truncate(&mut self, a: Operand, width: u32) -> Operand {
        if let Some(word) = self.constant_value(a) {
            return self.constant(word & mask(width));
        }
        let dst = self.register();
        self.emit(Inst::Truncate {
            width: width as u8,
            dst,
            a,
        });
        Operand::register(dst)
    }

    fn sign_extend(&mut self, source: Ops, from: Lane, to: Lane) -> Ops {
        if to.bits() <= from.bits() {
            return self.resize(source, from, to);
        }
        if from.bits() > 64 {
            let a = self.contiguous_exact(source, from.registers());
            let dst = self.fresh(to.registers());
            let (from, width) = (from.bits() as u16, to.bits() as u16);
            self.emit(Inst::WideSignExtend {
                from,
                to: width,
                dst,
                a,
            });
            return self.run(dst, to.registers());
        }
        let a = self.at(source, 0);
        let low = if from.bits() == 64 {
            a
        } else {
            let dst = self.register();
            let width = to.bits().min(64) as u8;
            self.emit(Inst::SignExtend {
                from: from.bits() as u8,
                to: width,
                dst,
                a,
            });
            Operand::register(dst)
        };
        if to.bits() <= 64 {
            return self.one(low);
        }
        let sixty_three = self.constant(63);
        let high = self.int(IntOp::AShr, 64, low, sixty_three);
        let mut results = vec![low];
        for width in limb_widths(to).skip(1) {
            results.push(if width < 64 {
                self.truncate(high, width)
            } else {
                high
            });
        }
        self.ops(results)
    }

    /// Reinterprets the bits as another type.
    pub fn bitcast(&mut self, source: Ops, from: (Lane, u32), to: (Lane, u32)) -> Ops {
        if from.0.bits() == to.0.bits() {
            return source;
        }
        let widths: Vec<u32> = limb_widths(from.0).collect();
        let list: Vec<_> = self
            .list(source)
            .iter()
            .copied()
            .zip(widths.into_iter().cycle())
            .collect();
        let mut results = Vec::with_capacity((to.1 * to.0.registers()) as usize);
        for lane in 0..to.1 {
            let mut low = lane * to.0.bits();
            for width in limb_widths(to.0) {
                results.push(self.gather(&list, low, width));
                low += width;
            }
        }
        self.ops(results)
    }

    /// Returns `width` bits (at most 64) from bit `low` of concatenated operands, each with its
    /// width. Bits past the end are zero.
    pub fn gather(&mut self, source: &[(Operand, u32)], low: u32, width: u32) -> Operand {
        let mut result: Option<Operand> = None;
        // If all operands have the same width, the first needed one is found directly.
        let uniform = source.first().map_or(0, |first| first.1);
        let alike = uniform > 0 && source.iter().all(|part| part.1 == uniform);
        let skip = if alike { (low / uniform) as usize } else { 0 };
        let mut start = skip as u32 * uniform;
        for &(operand, bits) in source.get(skip..).unwrap_or_default() {
            if start >= low + width {
                break;
            }
            let (from, to) = (low.max(start), (low + width).min(start + bits));
            if from < to {
                let piece = self.piece(operand, bits, from - start, to - from, from - low);
                result = Some(match result {
                    Some(before) => self.bitwise_limb(IntOp::Or, before, piece),
                    None => piece,
                });
            }
            start += bits;
        }
        result.unwrap_or_else(|| self.constant(0))
    }

    /// Returns `count` bits of an operand of `bits` bits from bit `from`, moved to bit `to`.
    fn piece(&mut self, operand: Operand, bits: u32, from: u32, count: u32, to: u32) -> Operand {
        if let Some(word) = self.constant_value(operand) {
            return self.constant((word >> from & mask(count)) << to);
        }
        let mut piece = operand;
        if from > 0 {
            let amount = self.constant(u64::from(from));
            piece = self.int(IntOp::LShr, 64, piece, amount);
        }
        // Unwanted high bits are removed if they are shifted out of the register.
        if from + count < bits && count + to < 64 {
            piece = self.truncate(piece, count);
        }
        if to > 0 {
            let amount = self.constant(u64::from(to));
            piece = self.int(IntOp::Shl, 64, piece, amount);
        }
        piece
    }

    /// Returns the lane and number of lanes of a type that is a scalar or vector.
    pub fn lanes_of_type(&mut self, ty: TypeId) -> Option<(Lane, u32)> {
        let shape = self.shape(ty)?;
        Some((shape.lane?, shape.lanes))
    }

    /// Returns the lane and number of lanes of an operand.
    pub fn lanes_of(&mut self, value: Value) -> Option<(Lane, u32)> {
        match self.cx.module.value_type(self.function, value) {
            Some(ty) => self.lanes_of_type(ty),
            None => self.address_lane(value),
        }
    }

    /// Returns the lane of a symbol: symbols are pointers even if the module contains no pointer
    /// type.
    fn address_lane(&self, value: Value) -> Option<(Lane, u32)> {
        match value {
            Value::Global(_) | Value::Function(_) | Value::Alias(_) | Value::Ifunc(_) => {
                Some((Lane::Pointer, 1))
            }
            _ => None,
        }
    }

    /// Emits an unsupported instruction for operands without lanes. Returns zeros.
    pub fn no_lanes(&mut self, what: &str, ty: TypeId) -> Ops {
        self.unsupported(&format!(
            "{what} on a type that cannot be held in registers"
        ));
        let registers = self.shape(ty).map_or(0, |shape| shape.registers);
        self.zeros(registers)
    }
}

fn int_op(op: BinaryOp) -> Option<IntOp> {
    Some(match op {
        BinaryOp::Add => IntOp::Add,
        BinaryOp::Sub => IntOp::Sub,
        BinaryOp::Mul => IntOp::Mul,
        BinaryOp::UDiv => IntOp::UDiv,
        BinaryOp::SDiv => IntOp::SDiv,
        BinaryOp::URem => IntOp::URem,
        BinaryOp::SRem => IntOp::SRem,
        BinaryOp::Shl => IntOp::Shl,
        BinaryOp::LShr => IntOp::LShr,
        BinaryOp::AShr => IntOp::AShr,
        BinaryOp::And => IntOp::And,
        BinaryOp::Or => IntOp::Or,
        BinaryOp::Xor => IntOp::Xor,
        _ => return None,
    })
}

fn float_op(op: BinaryOp) -> Option<FloatOp> {
    Some(match op {
        BinaryOp::FAdd => FloatOp::Add,
        BinaryOp::FSub => FloatOp::Sub,
        BinaryOp::FMul => FloatOp::Mul,
        BinaryOp::FDiv => FloatOp::Div,
        BinaryOp::FRem => FloatOp::Rem,
        _ => return None,
    })
}

/// Returns the predicate in the bytecode.
pub(super) fn int_predicate(predicate: module::IntPredicate) -> IntPredicate {
    match predicate {
        module::IntPredicate::Eq => IntPredicate::Eq,
        module::IntPredicate::Ne => IntPredicate::Ne,
        module::IntPredicate::Ugt => IntPredicate::Ugt,
        module::IntPredicate::Uge => IntPredicate::Uge,
        module::IntPredicate::Ult => IntPredicate::Ult,
        module::IntPredicate::Ule => IntPredicate::Ule,
        module::IntPredicate::Sgt => IntPredicate::Sgt,
        module::IntPredicate::Sge => IntPredicate::Sge,
        module::IntPredicate::Slt => IntPredicate::Slt,
        module::IntPredicate::Sle => IntPredicate::Sle,
    }
}

fn float_predicate(predicate: module::FloatPredicate) -> FloatPredicate {
    match predicate {
        module::FloatPredicate::False => FloatPredicate::False,
        module::FloatPredicate::Oeq => FloatPredicate::Oeq,
        module::FloatPredicate::Ogt => FloatPredicate::Ogt,
        module::FloatPredicate::Oge => FloatPredicate::Oge,
        module::FloatPredicate::Olt => FloatPredicate::Olt,
        module::FloatPredicate::Ole => FloatPredicate::Ole,
        module::FloatPredicate::One => FloatPredicate::One,
        module::FloatPredicate::Ord => FloatPredicate::Ord,
        module::FloatPredicate::Uno => FloatPredicate::Uno,
        module::FloatPredicate::Ueq => FloatPredicate::Ueq,
        module::FloatPredicate::Ugt => FloatPredicate::Ugt,
        module::FloatPredicate::Uge => FloatPredicate::Uge,
        module::FloatPredicate::Ult => FloatPredicate::Ult,
        module::FloatPredicate::Ule => FloatPredicate::Ule,
        module::FloatPredicate::Une => FloatPredicate::Une,
        module::FloatPredicate::True => FloatPredicate::True,
    }
}
