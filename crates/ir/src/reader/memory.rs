//! Instructions on memory: stack slots, loads, stores, address arithmetic and atomics.

use super::Reader;
use super::codes::function as code;
use super::function::{Body, span};
use super::instructions::{Decoded, gep_flags};
use crate::bitstream::ReadError;
use crate::module::*;

impl Reader<'_> {
    fn ordering(&self, number: u64) -> Result<Ordering, ReadError> {
        Ok(match number {
            0 => Ordering::NotAtomic,
            1 => Ordering::Unordered,
            2 => Ordering::Monotonic,
            3 => Ordering::Acquire,
            4 => Ordering::Release,
            5 => Ordering::AcquireRelease,
            6 => Ordering::SequentiallyConsistent,
            _ => return Err(self.bits.error(format!("unknown ordering {number}"))),
        })
    }

    fn sync_scope(&self, number: u64) -> SyncScope {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        match (self.sync_scopes.get(index).map(|name| &**name), number) {
            (Some("singlethread"), _) | (None, 0) => SyncScope::SingleThread,
            (Some(""), _) | (None, 1) => SyncScope::System,
            _ => SyncScope::Other,
        }
    }

    fn pointer_operand(&mut self, body: &mut Body, at: &mut usize) -> Result<Value, ReadError> {
        let (value, ty) = self.operand_and_type(body, at)?;
        if !self.module.types.is_pointer(ty) {
            return Err(self.bits.error("an access through a non-pointer"));
        }
        Ok(value)
    }

    /// Reads `[type, size type, absolute size, alignment and flags, addrspace?]`.
    pub(super) fn read_alloca(&mut self, body: &mut Body) -> Decoded {
        let bits = self.op(3)?;
        let allocated = if bits & (1 << 6) != 0 {
            self.type_at(self.op(0)?)?
        } else {
            self.pointee_or_self(self.op(0)?)?
        };
        let count_ty = self.type_at(self.op(1)?)?;
        let number = usize::try_from(self.op(2)?).unwrap_or(usize::MAX);
        let count = self.value_at(body, number, count_ty)?;
        // The alignment has five low bits and, separately, three high ones.
        let align = self.align(bits & 31 | (bits >> 8 & 7) << 5)?;
        let ty = match self.op_or_zero(4) {
            0 => self.common().pointer,
            space => self.module.types.intern(Type::Pointer {
                address_space: space as u32,
            }),
        };
        let inalloca = bits & (1 << 5) != 0;
        Ok((
            InstructionKind::Alloca {
                allocated,
                count,
                align,
                inalloca,
            },
            ty,
        ))
    }

    /// Reads `[pointer, type, alignment, volatile, ordering?, scope?]`.
    pub(super) fn read_load(&mut self, body: &mut Body, record: u32) -> Decoded {
        let mut at = 0;
        let pointer = self.pointer_operand(body, &mut at)?;
        let ty = self.type_at(self.op(at)?)?;
        let access = self.access(at + 1, record == code::LOAD_ATOMIC)?;
        Ok((InstructionKind::Load { pointer, access }, ty))
    }

    /// Reads `[pointer, value, alignment, volatile, ordering?, scope?]`.
    pub(super) fn read_store(&mut self, body: &mut Body, record: u32) -> Decoded {
        let mut at = 0;
        let pointer = self.pointer_operand(body, &mut at)?;
        let (value, _) = self.operand_and_type(body, &mut at)?;
        let access = self.access(at, record == code::STORE_ATOMIC)?;
        Ok((
            InstructionKind::Store {
                pointer,
                value,
                access,
            },
            self.common().void,
        ))
    }

    /// Decodes `alignment, volatile` and, if atomic, `ordering, scope` from operand `at` on.
    fn access(&self, at: usize, atomic: bool) -> Result<Access, ReadError> {
        let (ordering, scope) = if atomic {
            (
                self.ordering(self.op(at + 2)?)?,
                self.sync_scope(self.op(at + 3)?),
            )
        } else {
            (Ordering::NotAtomic, SyncScope::System)
        };
        let align = self.align(self.op(at)?)?;
        Ok(Access {
            align,
            volatile: self.op(at + 1)? != 0,
            ordering,
            scope,
        })
    }

    /// Reads `[flags, type, base, indices…]`.
    pub(super) fn read_gep(&mut self, body: &mut Body) -> Decoded {
        let flags = gep_flags(self.op(0)?);
        let source = self.type_at(self.op(1)?)?;
        let mut at = 2;
        let (base, base_ty) = self.operand_and_type(body, &mut at)?;
        let scalar = self.module.types.scalar(base_ty);
        if !self.module.types.is_pointer(scalar) {
            return Err(self.bits.error("address arithmetic on a non-pointer"));
        }
        let mut lanes = match self.module.types[base_ty] {
            Type::Vector {
                count, scalable, ..
            } => Some((count, scalable)),
            _ => None,
        };
        let start = body.function.operands.len();
        while at < self.bits.ops.len() {
            let (index, index_ty) = self.operand_and_type(body, &mut at)?;
            if let Type::Vector {
                count, scalable, ..
            } = self.module.types[index_ty]
            {
                lanes = Some((count, scalable));
            }
            body.function.operands.push(index);
        }
        let indices = span(start, body.function.operands.len());
        let ty = match lanes {
            Some((count, scalable)) => self.module.types.intern(Type::Vector {
                element: scalar,
                count,
                scalable,
            }),
            None => scalar,
        };
        Ok((
            InstructionKind::Gep {
                source,
                base,
                indices,
                flags,
            },
            ty,
        ))
    }

    /// Reads `[pointer, expected, new, volatile, success, scope, failure, weak, alignment?]`.
    pub(super) fn read_cmpxchg(&mut self, body: &mut Body) -> Decoded {
        let mut at = 0;
        let pointer = self.pointer_operand(body, &mut at)?;
        let (expected, ty) = self.operand_and_type(body, &mut at)?;
        let new = self.typed_operand(body, at, ty)?;
        let access = Access {
            volatile: self.op(at + 1)? != 0,
            ordering: self.ordering(self.op(at + 2)?)?,
            scope: self.sync_scope(self.op(at + 3)?),
            align: self.align(self.op_or_zero(at + 6))?,
        };
        let failure = self.ordering(self.op(at + 4)?)?;
        let weak = self.op_or_zero(at + 5) != 0;
        let fields = Box::new([ty, self.common().bit]);
        let body_ty = StructType {
            name: None,
            fields,
            packed: false,
            opaque: false,
        };
        let result = self.module.types.intern(Type::Struct(body_ty));
        let kind = InstructionKind::CmpXchg {
            pointer,
            expected,
            new,
            access,
            failure,
            weak,
        };
        Ok((kind, result))
    }

    /// Reads `[pointer, value, operation, volatile, ordering, scope, alignment?]`.
    pub(super) fn read_atomic_rmw(&mut self, body: &mut Body) -> Decoded {
        let mut at = 0;
        let pointer = self.pointer_operand(body, &mut at)?;
        let (value, ty) = self.operand_and_type(body, &mut at)?;
        let number = self.op(at)?;
        let Some(op) = atomic_op(number) else {
            return Err(self
                .bits
                .error(format!("unknown atomic operation {number}")));
        };
        let access = Access {
            volatile: self.op(at + 1)? != 0,
            ordering: self.ordering(self.op(at + 2)?)?,
            scope: self.sync_scope(self.op(at + 3)?),
            align: self.align(self.op_or_zero(at + 4))?,
        };
        Ok((
            InstructionKind::AtomicRmw {
                op,
                pointer,
                value,
                access,
            },
            ty,
        ))
    }

    /// Reads `[ordering, scope]`.
    pub(super) fn read_fence(&mut self) -> Decoded {
        let ordering = self.ordering(self.op(0)?)?;
        let scope = self.sync_scope(self.op(1)?);
        Ok((
            InstructionKind::Fence { ordering, scope },
            self.common().void,
        ))
    }

    /// Reads `[list type, list, type]`.
    pub(super) fn read_va_arg(&mut self, body: &mut Body) -> Decoded {
        let list_ty = self.type_at(self.op(0)?)?;
        let list = self.typed_operand(body, 1, list_ty)?;
        let ty = self.type_at(self.op(2)?)?;
        Ok((InstructionKind::VaArg { list }, ty))
    }
}

fn atomic_op(number: u64) -> Option<AtomicOp> {
    use AtomicOp::*;
    const OPS: [AtomicOp; 23] = [
        Xchg,
        Add,
        Sub,
        And,
        Nand,
        Or,
        Xor,
        Max,
        Min,
        UMax,
        UMin,
        FAdd,
        FSub,
        FMax,
        FMin,
        UIncWrap,
        UDecWrap,
        USubCond,
        USubSat,
        FMaximum,
        FMinimum,
        FMaximumNum,
        FMinimumNum,
    ];
    OPS.get(usize::try_from(number).ok()?).copied()
}
