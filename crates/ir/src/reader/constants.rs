//! Constants blocks, of the module and of functions.

use std::collections::HashMap;

use super::codes::constants as code;
use super::instructions::{cast_op, float_predicate, gep_flags, int_predicate};
use super::{Reader, text};
use crate::bitstream::{ReadError, decode_signed};
use crate::module::*;

/// Interns small constants, and tracks forward references to constants.
#[derive(Default)]
pub(super) struct ConstantPool {
    /// Integers, nulls, undefs and poisons that exist already; never iterated.
    interned: HashMap<(TypeId, SmallConstant), ConstId>,
    /// Constants referred to before they were read, by value number.
    pending: HashMap<usize, ConstId>,
    /// Blocks whose addresses are taken; checked when all bodies are known.
    block_addresses: Vec<(FunctionId, BlockId)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum SmallConstant {
    Null,
    Undef,
    Poison,
    Integer(u64),
}

/// Maximum nesting depth, more than any program uses; it allows recursion over constants.
const MAX_DEPTH: u32 = 2048;

impl Reader<'_> {
    /// Reads a constants block, which has been entered.
    pub(super) fn read_constants(&mut self) -> Result<(), ReadError> {
        // The type of the following constants; LLVM's initial type is i32, but files always set it.
        let mut ty = self.common().bit;
        let mut file_type = 0;
        while let Some(record) = self.bits.next_record()? {
            if record == code::SET_TYPE {
                file_type = self.op(0)?;
                ty = self.type_at(file_type)?;
                if matches!(
                    self.module.types[ty],
                    Type::Void | Type::Label | Type::Metadata
                ) {
                    return Err(self.bits.error("constants of a type that has no values"));
                }
                continue;
            }
            let ops = std::mem::take(&mut self.bits.ops);
            let result = self.read_constant(record, &ops, ty, file_type);
            self.bits.ops = ops;
            result?;
        }
        if !self.constants.pending.is_empty() {
            return Err(self
                .bits
                .error("a constant refers to one that does not exist"));
        }
        Ok(())
    }

    fn read_constant(
        &mut self,
        record: u32,
        ops: &[u64],
        ty: TypeId,
        file_type: u64,
    ) -> Result<(), ReadError> {
        let small = match record {
            code::NULL => Some(SmallConstant::Null),
            code::UNDEF => Some(SmallConstant::Undef),
            code::POISON => Some(SmallConstant::Poison),
            code::INTEGER => self.small_integer(ty, ops)?,
            _ => None,
        };
        if let Some(small) = small {
            let id = self.intern_constant(ty, small);
            self.push_value(Value::Constant(id), ty);
            return Ok(());
        }
        match record {
            code::INLINE_ASM => {
                let [signature, rest @ ..] = ops else {
                    return Err(self.short());
                };
                let signature = self.type_at(*signature)?;
                return self.read_inline_asm(rest, signature, ty);
            }
            code::INLINE_ASM_OLD2 | code::INLINE_ASM_OLD3 => {
                let signature = self.pointee_or_self(file_type)?;
                return self.read_inline_asm(ops, signature, ty);
            }
            code::CAST => {
                // A conversion between equal types is left over from typed pointers.
                let (value, from) = self.operand(ops, 2)?;
                let forward = self
                    .constants
                    .pending
                    .contains_key(&(self.index_of(ops, 2)?));
                let pending = self.constants.pending.contains_key(&self.values.len());
                if from == Some(ty)
                    && !forward
                    && !pending
                    && cast_op(self.at(ops, 0)?) == Some(CastOp::BitCast)
                {
                    self.push_value(value, ty);
                    return Ok(());
                }
            }
            _ => {}
        }
        let kind = self.constant_kind(record, ops, ty)?;
        self.push_constant(ty, kind);
        Ok(())
    }

    fn short(&self) -> ReadError {
        self.bits.error("the record is too short")
    }

    fn at(&self, ops: &[u64], index: usize) -> Result<u64, ReadError> {
        ops.get(index).copied().ok_or_else(|| self.short())
    }

    fn index_of(&self, ops: &[u64], index: usize) -> Result<usize, ReadError> {
        Ok(usize::try_from(self.at(ops, index)?).unwrap_or(usize::MAX))
    }

    /// Returns the constant `small` of type `ty`, and adds it if it is new.
    fn intern_constant(&mut self, ty: TypeId, small: SmallConstant) -> ConstId {
        let kind = match small {
            SmallConstant::Null => ConstantKind::Null,
            SmallConstant::Undef => ConstantKind::Undef,
            SmallConstant::Poison => ConstantKind::Poison,
            SmallConstant::Integer(value) => ConstantKind::Integer(value),
        };
        if let Some(id) = self.constants.pending.remove(&self.values.len()) {
            self.module.constants[id.index()] = Constant { ty, kind };
            return id;
        }
        let constants = &mut self.module.constants;
        *self
            .constants
            .interned
            .entry((ty, small))
            .or_insert_with(|| {
                constants.push(Constant { ty, kind });
                ConstId::new(constants.len() - 1)
            })
    }

    fn push_constant(&mut self, ty: TypeId, kind: ConstantKind) {
        let id = match self.constants.pending.remove(&self.values.len()) {
            Some(id) => {
                self.module.constants[id.index()] = Constant { ty, kind };
                id
            }
            None => {
                self.module.constants.push(Constant { ty, kind });
                ConstId::new(self.module.constants.len() - 1)
            }
        };
        self.push_value(Value::Constant(id), ty);
    }

    /// Returns the constant that operand `index` refers to, with its type if already known.
    fn operand(&mut self, ops: &[u64], index: usize) -> Result<(Value, Option<TypeId>), ReadError> {
        let number = self.index_of(ops, index)?;
        if let Some(&value) = self.values.get(number) {
            if matches!(
                value,
                Value::Instruction(_) | Value::Argument(_) | Value::InlineAsm(_)
            ) {
                return Err(self
                    .bits
                    .error("a constant refers to something that varies"));
            }
            return Ok((value, Some(self.value_types[number])));
        }
        // Each value takes a record of at least a few bits, so anything farther ahead does not
        // exist.
        let ahead = (number - self.values.len()) as u64;
        if ahead > self.bits.remaining_bits() {
            return Err(self.bits.error(format!("value {number} does not exist")));
        }
        let unknown = Constant {
            ty: self.common().void,
            kind: ConstantKind::Undef,
        };
        let constants = &mut self.module.constants;
        let id = *self.constants.pending.entry(number).or_insert_with(|| {
            constants.push(unknown);
            ConstId::new(constants.len() - 1)
        });
        Ok((Value::Constant(id), None))
    }

    fn value(&mut self, ops: &[u64], index: usize) -> Result<Value, ReadError> {
        Ok(self.operand(ops, index)?.0)
    }

    /// Returns an integer of at most 64 bits; the record can have other types, which are not small.
    fn small_integer(&self, ty: TypeId, ops: &[u64]) -> Result<Option<SmallConstant>, ReadError> {
        match self.module.types[ty] {
            Type::Integer(width @ 1..=64) => {
                let value = decode_signed(self.at(ops, 0)?) as u64;
                Ok(Some(SmallConstant::Integer(
                    value & (u64::MAX >> (64 - width)),
                )))
            }
            _ => Ok(None),
        }
    }

    fn constant_kind(
        &mut self,
        record: u32,
        ops: &[u64],
        ty: TypeId,
    ) -> Result<ConstantKind, ReadError> {
        Ok(match record {
            code::INTEGER | code::WIDE_INTEGER => self.wide_integer(ops, ty)?,
            code::FLOAT => self.float(ops, ty)?,
            code::AGGREGATE => self.aggregate(ops, ty)?,
            code::STRING | code::CSTRING | code::DATA => self.data(record, ops, ty)?,
            code::BINARY => ConstantKind::Binary {
                op: self.binary_op(self.at(ops, 0)?, ty)?,
                lhs: self.value(ops, 1)?,
                rhs: self.value(ops, 2)?,
            },
            code::UNARY => ConstantKind::FNeg {
                value: self.value(ops, 1)?,
            },
            code::CAST => match cast_op(self.at(ops, 0)?) {
                Some(op) => ConstantKind::Cast {
                    op,
                    value: self.value(ops, 2)?,
                },
                None => return Err(self.bits.error("unknown conversion")),
            },
            code::GEP_OLD | code::GEP_INBOUNDS | code::GEP_INRANGE_INDEX => {
                self.constant_gep(record, ops)?
            }
            code::GEP_INRANGE | code::GEP => self.constant_gep(record, ops)?,
            code::SELECT => ConstantKind::Select {
                condition: self.value(ops, 0)?,
                then: self.value(ops, 1)?,
                otherwise: self.value(ops, 2)?,
            },
            code::EXTRACT_ELEMENT => ConstantKind::ExtractElement {
                vector: self.value(ops, 1)?,
                index: self.value(ops, ops.len().max(3) - 1)?,
            },
            code::INSERT_ELEMENT => ConstantKind::InsertElement {
                vector: self.value(ops, 0)?,
                element: self.value(ops, 1)?,
                index: self.value(ops, ops.len().max(3) - 1)?,
            },
            code::SHUFFLE | code::SHUFFLE_EX => {
                let from = usize::from(record == code::SHUFFLE_EX);
                ConstantKind::ShuffleVector {
                    lhs: self.value(ops, from)?,
                    rhs: self.value(ops, from + 1)?,
                    mask: self.value(ops, from + 2)?,
                }
            }
            code::COMPARE => self.constant_compare(ops)?,
            code::BLOCK_ADDRESS => self.block_address(ops)?,
            code::DSO_LOCAL_EQUIVALENT => ConstantKind::DsoLocalEquivalent(self.value(ops, 1)?),
            code::NO_CFI => ConstantKind::NoCfi(self.value(ops, 1)?),
            code::PTRAUTH | code::PTRAUTH2 => ConstantKind::Unsupported("ptrauth"),
            _ => return Err(self.bits.error(format!("unknown constant record {record}"))),
        })
    }

    fn wide_integer(&mut self, ops: &[u64], ty: TypeId) -> Result<ConstantKind, ReadError> {
        let scalar = self.module.types.scalar(ty);
        let Type::Integer(width) = self.module.types[scalar] else {
            return Err(self.bits.error("an integer constant of another type"));
        };
        let used = (width as usize).div_ceil(64);
        if ops.is_empty() || ops.len() > used {
            return Err(self.bits.error("an integer constant of the wrong length"));
        }
        let mut words: Vec<u64> = ops.iter().map(|&word| decode_signed(word) as u64).collect();
        // Zero words at the top are omitted.
        self.charge(used)?;
        words.resize(used, 0);
        if width % 64 != 0
            && let Some(last) = words.last_mut()
        {
            *last &= u64::MAX >> (64 - width % 64);
        }
        let kind = match &words[..] {
            [word] => ConstantKind::Integer(*word),
            _ => ConstantKind::WideInteger(words.into()),
        };
        if scalar == ty {
            return Ok(kind);
        }
        // One integer is given for all lanes of a vector.
        let count = self.module.types.element_count(ty).unwrap_or(0) as usize;
        self.charge(count)?;
        self.module.constants.push(Constant { ty: scalar, kind });
        let lane = Value::Constant(ConstId::new(self.module.constants.len() - 1));
        Ok(ConstantKind::Aggregate(vec![lane; count].into()))
    }

    fn float(&mut self, ops: &[u64], ty: TypeId) -> Result<ConstantKind, ReadError> {
        let first = self.at(ops, 0)?;
        Ok(match self.module.types[self.module.types.scalar(ty)] {
            Type::Half | Type::BFloat => ConstantKind::Float(first & 0xFFFF),
            Type::Float => ConstantKind::Float(first & 0xFFFF_FFFF),
            Type::Double => ConstantKind::Float(first),
            // The file stores the 80 bits from the top: 64, then the lowest 16.
            Type::X86Fp80 => {
                let low = self.at(ops, 1)? & 0xFFFF;
                ConstantKind::WideFloat([low | first << 16, first >> 48])
            }
            Type::Fp128 | Type::PpcFp128 => ConstantKind::WideFloat([first, self.at(ops, 1)?]),
            _ => return Err(self.bits.error("a float constant of another type")),
        })
    }

    fn aggregate(&mut self, ops: &[u64], ty: TypeId) -> Result<ConstantKind, ReadError> {
        if self.module.types.element_count(ty) != Some(ops.len() as u64) {
            return Err(self
                .bits
                .error("an aggregate whose length is not that of its type"));
        }
        let members: Result<Box<[Value]>, ReadError> =
            (0..ops.len()).map(|index| self.value(ops, index)).collect();
        Ok(ConstantKind::Aggregate(members?))
    }

    /// Decodes arrays and vectors whose elements are in the record.
    fn data(&mut self, record: u32, ops: &[u64], ty: TypeId) -> Result<ConstantKind, ReadError> {
        let types = &self.module.types;
        let (Some(element), Some(count)) = (types.element(ty, 0), types.element_count(ty)) else {
            return Err(self.bits.error("a data constant that is not an array"));
        };
        let size = match types[element] {
            Type::Integer(width @ (8 | 16 | 32 | 64)) => width as usize / 8,
            Type::Half | Type::BFloat => 2,
            Type::Float => 4,
            Type::Double => 8,
            _ => return Err(self.bits.error("a data constant of a type without data")),
        };
        let terminator = u64::from(record == code::CSTRING);
        let strings = record != code::DATA;
        if count != ops.len() as u64 + terminator || (strings && size != 1) {
            return Err(self
                .bits
                .error("a data constant whose length is not that of its type"));
        }
        let mut bytes = Vec::with_capacity((ops.len() + 1) * size);
        for op in ops {
            bytes.extend_from_slice(&op.to_le_bytes()[..size]);
        }
        if terminator != 0 {
            bytes.push(0);
        }
        Ok(ConstantKind::Data(bytes.into()))
    }

    /// Reads `[type?, flags or range?, (type, value)…]`, depending on the code.
    fn constant_gep(&mut self, record: u32, ops: &[u64]) -> Result<ConstantKind, ReadError> {
        let explicit = !matches!(record, code::GEP_OLD | code::GEP_INBOUNDS) || ops.len() % 2 == 1;
        if !explicit {
            return Err(self
                .bits
                .error("an address constant without its element type"));
        }
        let source = self.type_at(self.at(ops, 0)?)?;
        let mut next = 1;
        let flags = match record {
            code::GEP_INBOUNDS => 1,
            code::GEP_OLD => 0,
            _ => {
                next = 2;
                self.at(ops, 1)?
            }
        };
        let flags = match record {
            // The rest of the number is an index with a known range.
            code::GEP_INRANGE_INDEX => flags & 1,
            code::GEP_INRANGE => {
                let width = self.at(ops, 2)?;
                // The bounds are in the record that was moved out of the reader.
                next = if width <= 64 {
                    5
                } else {
                    let words = self.at(ops, 3)?;
                    4 + (words & 0xFFFF_FFFF) as usize + (words >> 32) as usize
                };
                flags
            }
            _ => flags,
        };
        let operands = ops.get(next..).unwrap_or(&[]);
        if operands.is_empty() || operands.len() % 2 != 0 {
            return Err(self.short());
        }
        let base = self.value(operands, 1)?;
        let indices: Result<Box<[Value]>, ReadError> = (1..operands.len() / 2)
            .map(|pair| self.value(operands, pair * 2 + 1))
            .collect();
        Ok(ConstantKind::Gep {
            source,
            base,
            indices: indices?,
            flags: gep_flags(flags),
        })
    }

    fn constant_compare(&mut self, ops: &[u64]) -> Result<ConstantKind, ReadError> {
        let (lhs, rhs) = (self.value(ops, 1)?, self.value(ops, 2)?);
        let number = self.at(ops, 3)?;
        if let Some(predicate) = float_predicate(number) {
            return Ok(ConstantKind::FCmp {
                predicate,
                lhs,
                rhs,
            });
        }
        match int_predicate(number) {
            Some(predicate) => Ok(ConstantKind::ICmp {
                predicate,
                lhs,
                rhs,
            }),
            None => Err(self.bits.error(format!("unknown comparison {number}"))),
        }
    }

    fn block_address(&mut self, ops: &[u64]) -> Result<ConstantKind, ReadError> {
        let Value::Function(function) = self.value(ops, 1)? else {
            return Err(self
                .bits
                .error("a block address in something that is not a function"));
        };
        let block = BlockId::new(self.index_of(ops, 2)?);
        self.constants.block_addresses.push((function, block));
        Ok(ConstantKind::BlockAddress { function, block })
    }

    /// Reads `[flags, size of text, text…, size of constraints, constraints…]`.
    fn read_inline_asm(
        &mut self,
        ops: &[u64],
        signature: TypeId,
        ty: TypeId,
    ) -> Result<(), ReadError> {
        if !matches!(self.module.types[signature], Type::Function { .. }) {
            return Err(self
                .bits
                .error("assembly whose type is not a function type"));
        }
        let flags = self.at(ops, 0)?;
        let text_end = 2usize.saturating_add(self.index_of(ops, 1)?);
        let text_ops = ops.get(2..text_end).ok_or_else(|| self.short())?;
        let size = self.index_of(ops, text_end)?;
        let start = text_end + 1;
        let constraints = ops
            .get(start..start.saturating_add(size))
            .ok_or_else(|| self.short())?;
        self.module.inline_asms.push(InlineAsm {
            signature,
            text: text(text_ops),
            constraints: text(constraints),
            side_effects: flags & 1 != 0,
            align_stack: flags & 2 != 0,
            intel_dialect: flags & 4 != 0,
            can_throw: flags & 8 != 0,
        });
        let id = InlineAsmId::new(self.module.inline_asms.len() - 1);
        self.push_value(Value::InlineAsm(id), ty);
        Ok(())
    }

    /// Rejects constants that contain themselves or are nested too deeply, members whose type
    /// differs from that of their aggregate, and addresses of missing blocks.
    pub(super) fn check_constants(&self) -> Result<(), ReadError> {
        for &(function, block) in &self.constants.block_addresses {
            let known = &self.module.functions[function.index()].blocks;
            if block.index() >= known.len() {
                return Err(self
                    .bits
                    .error("the address of a block that does not exist"));
            }
        }
        self.check_constant_depth()?;
        for constant in &self.module.constants {
            if let ConstantKind::Aggregate(members) = &constant.kind {
                for (index, &member) in members.iter().enumerate() {
                    let expected = self.module.types.element(constant.ty, index as u64);
                    if self.module.constant_type(member) != expected {
                        return Err(self.bits.error("a member of a constant has another type"));
                    }
                }
            }
        }
        Ok(())
    }

    fn check_constant_depth(&self) -> Result<(), ReadError> {
        let constants = &self.module.constants;
        // 0: not seen; u32::MAX: being visited; else the depth.
        let mut depths = vec![0u32; constants.len()];
        let mut stack = Vec::new();
        for start in 0..constants.len() {
            stack.push(start);
            while let Some(&index) = stack.last() {
                if depths[index] != 0 && depths[index] != u32::MAX {
                    stack.pop();
                    continue;
                }
                let first_visit = depths[index] == 0;
                depths[index] = u32::MAX;
                let mut deepest = 0;
                let mut cycle = false;
                constants[index].kind.for_each_operand(|operand| {
                    let Value::Constant(id) = operand else { return };
                    match depths[id.index()] {
                        0 => stack.push(id.index()),
                        u32::MAX => cycle = true,
                        depth => deepest = deepest.max(depth),
                    }
                });
                if cycle || deepest >= MAX_DEPTH {
                    let message = "a constant contains itself or is nested too deeply";
                    return Err(self.bits.error(message));
                }
                if !first_visit || stack.last() == Some(&index) {
                    depths[index] = deepest + 1;
                    stack.pop();
                }
            }
        }
        Ok(())
    }
}
