//! Stack slots, address arithmetic, loads, stores and atomic operations.

use super::analysis::register_lane;
use super::body::{Body, Ops, ValueHome};
use super::fold::{GepStep, GepWalk};
use super::shape::{Part, PartKind, Shape, limb_widths, sign_extend};
use crate::code::{AtomicOp, Inst, IntOp, Lane, Operand, ValueType};
use crate::module::{self, Access, InstId, Ordering, TypeId, Value};

/// The operation that checks that an index of a width is below a limit.
const CHECK_INDEX: &str = "everett.check_index";

impl Body<'_, '_> {
    /// Lowers `alloca`.
    pub fn alloca(&mut self, id: InstId, allocated: TypeId, count: Value, align: u64) {
        if self.analysis.promoted[id.index()] {
            return;
        }
        let types = &self.cx.module.types;
        let size = types.size_of(allocated);
        let align = align.max(types.abi_align(allocated)).min(1 << 31) as u32;
        let (count_lane, count) = (self.lanes_of(count), self.single(count));
        let dst = self.register();
        let fixed = self
            .constant_value(count)
            .and_then(|count| count.checked_mul(size));
        match fixed {
            Some(size) => self.emit(Inst::Alloca { dst, size, align }),
            None => {
                let count_width = count_lane.map_or(64, |lane| lane.0.bits().min(64)) as u8;
                match u32::try_from(size) {
                    Ok(size) => {
                        self.emit(Inst::AllocaDynamic {
                            count_width,
                            dst,
                            count,
                            size,
                            align,
                        });
                    }
                    Err(_) => self.unsupported("variable number of huge stack slots"),
                }
            }
        }
        let ops = self.run(dst, 1);
        self.define(id, ops);
    }

    /// Lowers `load`.
    pub fn load(&mut self, id: InstId, pointer: Value, access: Access, ty: TypeId) {
        if let Some(slot) = self.promoted_slot(pointer) {
            let count = register_lane(self.cx, ty).map_or(1, |lane| lane.registers());
            let ops = if self.analysis.aliased[id.index()] {
                self.run(slot, count)
            } else {
                let dst = self.fresh(count);
                for index in 0..count {
                    let src = Operand::register(slot + index);
                    self.emit(Inst::Move {
                        dst: dst + index,
                        src,
                    });
                }
                self.run(dst, count)
            };
            self.define(id, ops);
            return;
        }
        let (base, offset) = self.address(pointer);
        let Some(shape) = self.shape(ty) else {
            let ops = self.no_lanes("load", ty);
            self.define(id, ops);
            return;
        };
        let mut atomic = access.ordering != Ordering::NotAtomic;
        let mut parts = Vec::with_capacity(shape.parts.len());
        for part in &shape.parts {
            parts.push(self.load_part(part, base, offset, atomic));
            atomic = false;
        }
        let ops = if let [only] = parts[..] {
            only
        } else {
            self.concat(&parts)
        };
        self.define(id, ops);
    }

    fn load_part(&mut self, part: &Part, base: Operand, offset: i64, atomic: bool) -> Ops {
        let offset = offset.wrapping_add(part.offset as i64);
        match part.kind {
            PartKind::Scalar(lane) => {
                let dst = self.fresh(lane.registers());
                self.load_words(dst, lane.bits(), base, offset, atomic);
                self.run(dst, lane.registers())
            }
            PartKind::Packed { lanes, width } => {
                let bits = lanes * u32::from(width);
                let words = bits.div_ceil(64);
                let dst = self.fresh(words);
                self.load_words(dst, bits, base, offset, atomic);
                let packed: Vec<_> = (0..words)
                    .map(|word| (Operand::register(dst + word), 64))
                    .collect();
                let mut results = Vec::new();
                for lane in 0..lanes {
                    let mut low = lane * u32::from(width);
                    for limb in limb_widths(Lane::Int(width)) {
                        results.push(self.gather(&packed, low, limb));
                        low += limb;
                    }
                }
                self.ops(results)
            }
        }
    }

    /// Loads `bits` bits, 64 at a time.
    fn load_words(&mut self, dst: u32, bits: u32, base: Operand, offset: i64, atomic: bool) {
        for word in 0..bits.div_ceil(64) {
            let width = (bits - word * 64).min(64);
            let (ptr, offset) = self.reach(base, offset.wrapping_add(i64::from(word) * 8));
            self.emit(Inst::Load {
                bytes: width.div_ceil(8) as u8,
                width: width as u8,
                atomic: atomic && word == 0,
                dst: dst + word,
                ptr,
                offset,
            });
        }
    }

    /// Lowers `store`.
    pub fn store(&mut self, pointer: Value, value: Value, access: Access) {
        let ops = self.operands(value);
        if let Some(slot) = self.promoted_slot(pointer) {
            let list = self.list(ops).to_vec();
            let moves: Vec<_> = list
                .into_iter()
                .zip(slot..)
                .map(|(src, dst)| (dst, src))
                .collect();
            self.move_all(&moves);
            return;
        }
        let shape = match self.shape_of(value) {
            Some(shape) => shape,
            None => match (self.lanes_of(value), self.cx.pointer_shape.clone()) {
                (Some(_), shape) => shape,
                (None, _) => {
                    self.unsupported("store of a type that cannot be held in registers");
                    return;
                }
            },
        };
        let (base, offset) = self.address(pointer);
        let mut atomic = access.ordering != Ordering::NotAtomic;
        for part in &shape.parts {
            self.store_part(part, ops, base, offset, atomic);
            atomic = false;
        }
    }

    /// Stores all parts of a value at an address.
    pub fn store_parts(&mut self, shape: &Shape, ops: Ops, base: Operand) {
        for part in &shape.parts {
            self.store_part(part, ops, base, 0, false);
        }
    }

    fn store_part(&mut self, part: &Part, ops: Ops, base: Operand, offset: i64, atomic: bool) {
        let offset = offset.wrapping_add(part.offset as i64);
        match part.kind {
            PartKind::Scalar(lane) => {
                let words: Vec<Operand> = (0..lane.registers())
                    .map(|at| self.at(ops, part.register + at))
                    .collect();
                self.store_words(&words, lane.bits(), base, offset, atomic);
            }
            PartKind::Packed { lanes, width } => {
                let limbs: Vec<u32> = limb_widths(Lane::Int(width)).collect();
                let registers = lanes * limbs.len() as u32;
                let mut source = Vec::with_capacity(registers as usize);
                for index in 0..registers {
                    let operand = self.at(ops, part.register + index);
                    source.push((operand, limbs[index as usize % limbs.len()]));
                }
                let bits = lanes * u32::from(width);
                let mut words = Vec::new();
                for word in 0..bits.div_ceil(64) {
                    words.push(self.gather(&source, word * 64, (bits - word * 64).min(64)));
                }
                self.store_words(&words, bits, base, offset, atomic);
            }
        }
    }

    fn store_words(
        &mut self,
        words: &[Operand],
        bits: u32,
        base: Operand,
        offset: i64,
        atomic: bool,
    ) {
        for (word, &src) in words.iter().enumerate() {
            let width = (bits - word as u32 * 64).min(64);
            let (ptr, offset) = self.reach(base, offset.wrapping_add(word as i64 * 8));
            self.emit(Inst::Store {
                bytes: width.div_ceil(8) as u8,
                width: width as u8,
                atomic: atomic && word == 0,
                src,
                ptr,
                offset,
            });
        }
    }

    /// Returns the registers of a stack slot, if the address is that of a promoted one.
    fn promoted_slot(&self, pointer: Value) -> Option<u32> {
        match pointer {
            Value::Instruction(id) => match self.values[id.index()] {
                ValueHome::Slot(register) => Some(register),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns an address as a base and a constant offset.
    fn address(&mut self, pointer: Value) -> (Operand, i64) {
        if let Value::Instruction(id) = pointer
            && let ValueHome::Address { base, offset } = self.values[id.index()]
        {
            return (base, offset);
        }
        (self.single(pointer), 0)
    }

    /// Returns a base and an offset in the range that instructions can encode.
    fn reach(&mut self, base: Operand, offset: i64) -> (Operand, i32) {
        match i32::try_from(offset) {
            Ok(offset) => (base, offset),
            Err(_) => (self.add_offset(base, offset), 0),
        }
    }

    /// Lowers `getelementptr`. If only loads and stores use the address, they add the constant
    /// part.
    pub fn gep(&mut self, id: InstId, source: TypeId, base: Value, indices: &[Value], ty: TypeId) {
        let plain = matches!(self.lanes_of_type(ty), Some((Lane::Pointer, 1)))
            && !self.shape(ty).is_some_and(|shape| shape.is_vector());
        if !plain {
            let ops = self.gep_value(source, base, indices, ty);
            self.define(id, ops);
            return;
        }
        let index = id.index();
        let only_addresses = self.analysis.uses[index] == self.analysis.address_uses[index];
        if self.cx.check_subobjects && !self.code.optimised {
            self.check_indices(source, indices, only_addresses);
        }
        let (base, before) = self.address(base);
        let Some((base, offset)) = self.gep_lane(source, base, before, indices, 0) else {
            let ops = self.no_lanes("getelementptr", ty);
            self.define(id, ops);
            return;
        };
        if only_addresses && i32::try_from(offset).is_ok() {
            self.values[index] = ValueHome::Address { base, offset };
        } else {
            let sum = self.add_offset(base, offset);
            let ops = self.one(sum);
            self.define(id, ops);
        }
    }

    /// Emits checks that indices stay in the arrays that they index. The index behind the last
    /// element is allowed for an address, but not for a load or store. An array of one element may
    /// represent an array of any length.
    fn check_indices(&mut self, source: TypeId, indices: &[Value], accessed: bool) {
        let mut walk = GepWalk::new(source);
        for &value in indices {
            let Some((index, width)) = self.gep_index(value, 0) else {
                return;
            };
            let count = walk.array_length(self.cx.module);
            let constant = self
                .constant_value(index)
                .map(|word| sign_extend(word, width));
            if walk.step(self.cx.module, constant).is_none() {
                return;
            }
            if let Some(count) = count.filter(|count| *count > 1) {
                let limit = self.constant(count + u64::from(!accessed));
                let width = self.constant(u64::from(width));
                let types = vec![ValueType::Int(64); 3];
                let args = vec![index, width, limit];
                self.emit_scalar_call(CHECK_INDEX, args, types, ValueType::Void);
            }
        }
    }

    /// Lowers `getelementptr` as a value, also of vectors.
    pub fn gep_value(&mut self, source: TypeId, base: Value, indices: &[Value], ty: TypeId) -> Ops {
        let Some((_, lanes)) = self.lanes_of_type(ty) else {
            return self.no_lanes("getelementptr", ty);
        };
        let bases = self.operands(base);
        let mut results = Vec::with_capacity(lanes as usize);
        for lane in 0..lanes {
            let base = self.at(bases, if bases.len() > 1 { lane } else { 0 });
            match self.gep_lane(source, base, 0, indices, lane) {
                Some((base, offset)) => results.push(self.add_offset(base, offset)),
                None => return self.no_lanes("getelementptr", ty),
            }
        }
        self.ops(results)
    }

    /// Emits the address arithmetic of one lane: a base plus all variable parts, and the constant
    /// part.
    fn gep_lane(
        &mut self,
        source: TypeId,
        base: Operand,
        mut offset: i64,
        indices: &[Value],
        lane: u32,
    ) -> Option<(Operand, i64)> {
        let mut base = base;
        let mut walk = GepWalk::new(source);
        for &value in indices {
            let (index, width) = self.gep_index(value, lane)?;
            let constant = self
                .constant_value(index)
                .map(|word| sign_extend(word, width));
            match (walk.step(self.cx.module, constant)?, constant) {
                (GepStep::Offset(step), _) => offset = offset.wrapping_add(step as i64),
                (GepStep::Scale(scale), Some(index)) => {
                    offset = offset.wrapping_add(scale.wrapping_mul(index) as i64);
                }
                (GepStep::Scale(0), None) => {}
                (GepStep::Scale(scale), None) => base = self.index(base, index, width, scale),
            }
        }
        Some((base, offset))
    }

    /// Returns an index of address arithmetic and its width.
    fn gep_index(&mut self, value: Value, lane: u32) -> Option<(Operand, u32)> {
        if let Value::Instruction(id) = value
            && let ValueHome::Extended { source, width } = self.values[id.index()]
        {
            return Some((source, u32::from(width)));
        }
        let ops = self.operands(value);
        let (index_lane, lanes) = self.lanes_of(value)?;
        let first = if lanes > 1 {
            lane * index_lane.registers()
        } else {
            0
        };
        Some((self.at(ops, first), index_lane.bits().min(64)))
    }

    /// Defers the sign extension of an index to the address arithmetic that is its only user.
    /// Returns whether that is possible.
    pub fn extend_at_use(&mut self, id: InstId, value: Value, ty: TypeId) -> bool {
        let index = id.index();
        let scalar = |lanes: Option<(Lane, u32)>| match lanes {
            Some((Lane::Int(width), 1)) if width <= 64 => Some(width as u8),
            _ => None,
        };
        let (from, to) = (scalar(self.lanes_of(value)), scalar(self.lanes_of_type(ty)));
        let (Some(width), Some(64)) = (from, to) else {
            return false;
        };
        let uses = self.analysis.uses[index];
        if uses == 0 || uses != self.analysis.index_uses[index] {
            return false;
        }
        let source = self.single(value);
        self.values[index] = ValueHome::Extended { source, width };
        true
    }

    fn index(&mut self, base: Operand, index: Operand, width: u32, scale: u64) -> Operand {
        if let Ok(scale) = i32::try_from(scale) {
            let dst = self.register();
            self.emit(Inst::Index {
                index_width: width as u8,
                dst,
                base,
                index,
                scale,
            });
            return Operand::register(dst);
        }
        let mut wide = index;
        if width < 64 {
            let dst = self.register();
            self.emit(Inst::SignExtend {
                from: width as u8,
                to: 64,
                dst,
                a: index,
            });
            wide = Operand::register(dst);
        }
        let scale = self.constant(scale);
        let product = self.int(IntOp::Mul, 64, wide, scale);
        self.int(IntOp::Add, 64, base, product)
    }

    /// Lowers `atomicrmw`.
    pub fn atomic_update(&mut self, op: module::AtomicOp, pointer: Value, value: Value) -> Ops {
        let ptr = self.single(pointer);
        let ops = self.operands(value);
        let lane = self
            .lanes_of(value)
            .filter(|(lane, lanes)| *lanes == 1 && lane.registers() == 1);
        let (Some((lane, _)), Some(op)) = (lane, atomic_op(op)) else {
            self.unsupported(&format!("atomicrmw {op:?} of {} registers", ops.len()));
            return self.zeros(ops.len());
        };
        let (bytes, value) = (lane.bits().div_ceil(8) as u8, self.at(ops, 0));
        let dst = self.register();
        self.emit(Inst::AtomicUpdate {
            op,
            bytes,
            dst,
            ptr,
            value,
        });
        self.run(dst, 1)
    }

    /// Lowers `cmpxchg`.
    pub fn compare_exchange(&mut self, pointer: Value, expected: Value, new: Value) -> Ops {
        let ptr = self.single(pointer);
        let (expected_ops, new_ops) = (self.operands(expected), self.operands(new));
        let lane = self
            .lanes_of(expected)
            .filter(|(lane, _)| lane.bits() <= 128);
        let Some((lane, 1)) = lane else {
            self.unsupported("cmpxchg of a wide value");
            return self.zeros(expected_ops.len() + 1);
        };
        let registers = lane.registers();
        let expected = self.contiguous_exact(expected_ops, registers);
        let new = self.contiguous_exact(new_ops, registers);
        let dst = self.fresh(registers + 1);
        let bytes = lane.bits().div_ceil(8) as u8;
        self.emit(Inst::CompareExchange {
            bytes,
            dst,
            ptr,
            expected,
            new,
        });
        self.run(dst, registers + 1)
    }
}

fn atomic_op(op: module::AtomicOp) -> Option<AtomicOp> {
    Some(match op {
        module::AtomicOp::Xchg => AtomicOp::Exchange,
        module::AtomicOp::Add => AtomicOp::Add,
        module::AtomicOp::Sub => AtomicOp::Sub,
        module::AtomicOp::And => AtomicOp::And,
        module::AtomicOp::Nand => AtomicOp::Nand,
        module::AtomicOp::Or => AtomicOp::Or,
        module::AtomicOp::Xor => AtomicOp::Xor,
        module::AtomicOp::Max => AtomicOp::Max,
        module::AtomicOp::Min => AtomicOp::Min,
        module::AtomicOp::UMax => AtomicOp::UMax,
        module::AtomicOp::UMin => AtomicOp::UMin,
        module::AtomicOp::FAdd => AtomicOp::FAdd,
        module::AtomicOp::FSub => AtomicOp::FSub,
        module::AtomicOp::FMax => AtomicOp::FMax,
        module::AtomicOp::FMin => AtomicOp::FMin,
        module::AtomicOp::UIncWrap => AtomicOp::UIncWrap,
        module::AtomicOp::UDecWrap => AtomicOp::UDecWrap,
        module::AtomicOp::USubCond => AtomicOp::USubCond,
        module::AtomicOp::USubSat => AtomicOp::USubSat,
        module::AtomicOp::FMaximum
        | module::AtomicOp::FMinimum
        | module::AtomicOp::FMaximumNum
        | module::AtomicOp::FMinimumNum => return None,
    })
}
