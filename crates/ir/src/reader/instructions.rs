//! Value instructions: arithmetic, comparisons, conversions, vectors, aggregates and control flow.
//! Memory and calls have files of their own.

use super::Reader;
use super::codes::function as code;
use super::function::{Body, span};
use crate::bitstream::{ReadError, decode_signed};
use crate::module::*;

/// An instruction with the type of its result.
pub(super) type Decoded = Result<(InstructionKind, TypeId), ReadError>;

impl Reader<'_> {
    /// Decodes the instruction in the current record.
    pub(super) fn read_instruction(&mut self, body: &mut Body, record: u32) -> Decoded {
        match record {
            code::BINARY => self.read_binary(body),
            code::UNARY => self.read_unary(body),
            code::CAST => self.read_cast(body),
            code::COMPARE | code::COMPARE2 => self.read_compare(body),
            code::SELECT | code::SELECT_OLD => self.read_select(body, record),
            code::EXTRACT_ELEMENT => self.read_extract_element(body),
            code::INSERT_ELEMENT => self.read_insert_element(body),
            code::SHUFFLE => self.read_shuffle(body),
            code::EXTRACT_VALUE => self.read_extract_value(body),
            code::INSERT_VALUE => self.read_insert_value(body),
            code::FREEZE => {
                let (value, ty) = self.operand_and_type(body, &mut 0)?;
                Ok((InstructionKind::Freeze { value }, ty))
            }
            code::PHI => self.read_phi(body),
            code::RETURN => self.read_return(body),
            code::BRANCH => self.read_branch(body),
            code::SWITCH => self.read_switch(body),
            code::INDIRECT_BRANCH => self.read_indirect_branch(body),
            code::UNREACHABLE => Ok((InstructionKind::Unreachable, self.common().void)),
            code::RESUME => {
                let (value, _) = self.operand_and_type(body, &mut 0)?;
                Ok((InstructionKind::Resume { value }, self.common().void))
            }
            code::LANDING_PAD => self.read_landing_pad(body),
            code::ALLOCA => self.read_alloca(body),
            code::LOAD | code::LOAD_ATOMIC => self.read_load(body, record),
            code::STORE | code::STORE_ATOMIC => self.read_store(body, record),
            code::GEP => self.read_gep(body),
            code::CMPXCHG => self.read_cmpxchg(body),
            code::ATOMIC_RMW | code::ATOMIC_RMW_OLD => self.read_atomic_rmw(body),
            code::FENCE => self.read_fence(),
            code::VA_ARG => self.read_va_arg(body),
            code::CALL => self.read_call(body),
            code::INVOKE => self.read_invoke(body),
            code::CALL_BRANCH => self.read_call_branch(body),
            code::CLEANUP_RET => self.unsupported("cleanupret"),
            code::CATCH_RET => self.unsupported("catchret"),
            code::CATCH_SWITCH => self.unsupported("catchswitch"),
            code::CATCH_PAD => self.unsupported("catchpad"),
            code::CLEANUP_PAD => self.unsupported("cleanuppad"),
            _ => Err(self
                .bits
                .error(format!("unknown instruction record {record}"))),
        }
    }

    /// Decodes an instruction of Windows exception handling, which is skipped and not executable.
    fn unsupported(&mut self, name: &'static str) -> Decoded {
        let common = self.common();
        let pad = matches!(name, "catchpad" | "cleanuppad" | "catchswitch");
        let ty = if pad { common.token } else { common.void };
        Ok((InstructionKind::Unsupported { name }, ty))
    }

    /// Returns the operation with number `number` on operands of type `ty`.
    pub(super) fn binary_op(&self, number: u64, ty: TypeId) -> Result<BinaryOp, ReadError> {
        let float = self.module.types.is_float(self.module.types.scalar(ty));
        let op = match (number, float) {
            (0, false) => BinaryOp::Add,
            (1, false) => BinaryOp::Sub,
            (2, false) => BinaryOp::Mul,
            (3, false) => BinaryOp::UDiv,
            (4, false) => BinaryOp::SDiv,
            (5, false) => BinaryOp::URem,
            (6, false) => BinaryOp::SRem,
            (7, false) => BinaryOp::Shl,
            (8, false) => BinaryOp::LShr,
            (9, false) => BinaryOp::AShr,
            (10, false) => BinaryOp::And,
            (11, false) => BinaryOp::Or,
            (12, false) => BinaryOp::Xor,
            (0, true) => BinaryOp::FAdd,
            (1, true) => BinaryOp::FSub,
            (2, true) => BinaryOp::FMul,
            (4, true) => BinaryOp::FDiv,
            (6, true) => BinaryOp::FRem,
            _ => return Err(self.bits.error(format!("unknown operation {number}"))),
        };
        Ok(op)
    }

    /// Reads `[lhs, rhs, operation, flags?]`.
    fn read_binary(&mut self, body: &mut Body) -> Decoded {
        let mut at = 0;
        let (lhs, ty) = self.operand_and_type(body, &mut at)?;
        let rhs = self.typed_operand(body, at, ty)?;
        let op = self.binary_op(self.op(at + 1)?, ty)?;
        let bits = self.op_or_zero(at + 2);
        let mut flags = ArithmeticFlags::default();
        match op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Shl => {
                flags.nuw = bits & 1 != 0;
                flags.nsw = bits & 2 != 0;
            }
            BinaryOp::UDiv | BinaryOp::SDiv | BinaryOp::LShr | BinaryOp::AShr => {
                flags.exact = bits & 1 != 0;
            }
            BinaryOp::Or => flags.disjoint = bits & 1 != 0,
            BinaryOp::FAdd | BinaryOp::FSub | BinaryOp::FMul | BinaryOp::FDiv | BinaryOp::FRem => {
                flags.fast_math = bits as u8;
            }
            BinaryOp::URem | BinaryOp::SRem | BinaryOp::And | BinaryOp::Xor => {}
        }
        Ok((
            InstructionKind::Binary {
                op,
                lhs,
                rhs,
                flags,
            },
            ty,
        ))
    }

    /// Reads `[value, operation, flags?]`.
    fn read_unary(&mut self, body: &mut Body) -> Decoded {
        let mut at = 0;
        let (value, ty) = self.operand_and_type(body, &mut at)?;
        if self.op(at)? != 0 {
            return Err(self.bits.error("unknown unary operation"));
        }
        let fast_math = self.op_or_zero(at + 1) as u8;
        Ok((InstructionKind::FNeg { value, fast_math }, ty))
    }

    /// Reads `[value, type, operation, flags?]`.
    fn read_cast(&mut self, body: &mut Body) -> Decoded {
        let mut at = 0;
        let (value, _) = self.operand_and_type(body, &mut at)?;
        let ty = self.type_at(self.op(at)?)?;
        let number = self.op(at + 1)?;
        let Some(op) = cast_op(number) else {
            return Err(self.bits.error(format!("unknown conversion {number}")));
        };
        let bits = self.op_or_zero(at + 2);
        let mut flags = ArithmeticFlags::default();
        match op {
            CastOp::Trunc => {
                flags.nuw = bits & 1 != 0;
                flags.nsw = bits & 2 != 0;
            }
            CastOp::ZExt => flags.nneg = bits & 1 != 0,
            // LLVM 22 stores fast-math flags above the flag of uitofp.
            CastOp::UiToFp => flags.nneg = bits & 1 != 0,
            CastOp::FpTrunc | CastOp::FpExt => flags.fast_math = bits as u8,
            _ => {}
        }
        Ok((InstructionKind::Cast { op, value, flags }, ty))
    }

    /// Returns `i1`, or a vector of as many lanes as `ty` has.
    fn comparison_type(&mut self, ty: TypeId) -> TypeId {
        let bit = self.common().bit;
        match self.module.types[ty] {
            Type::Vector {
                count, scalable, ..
            } => self.module.types.intern(Type::Vector {
                element: bit,
                count,
                scalable,
            }),
            _ => bit,
        }
    }

    /// Reads `[lhs, rhs, predicate, flags?]`.
    fn read_compare(&mut self, body: &mut Body) -> Decoded {
        let mut at = 0;
        let (lhs, ty) = self.operand_and_type(body, &mut at)?;
        let rhs = self.typed_operand(body, at, ty)?;
        let number = self.op(at + 1)?;
        let flags = self.op_or_zero(at + 2);
        let result = self.comparison_type(ty);
        let float = self.module.types.is_float(self.module.types.scalar(ty));
        if let (Some(predicate), true) = (float_predicate(number), float) {
            let fast_math = flags as u8;
            return Ok((
                InstructionKind::FCmp {
                    predicate,
                    lhs,
                    rhs,
                    fast_math,
                },
                result,
            ));
        }
        match (int_predicate(number), float) {
            (Some(predicate), false) => {
                let same_sign = flags & 1 != 0;
                Ok((
                    InstructionKind::ICmp {
                        predicate,
                        lhs,
                        rhs,
                        same_sign,
                    },
                    result,
                ))
            }
            _ => Err(self.bits.error(format!("unknown comparison {number}"))),
        }
    }

    /// Reads `[then, otherwise, condition]`.
    fn read_select(&mut self, body: &mut Body, record: u32) -> Decoded {
        let mut at = 0;
        let (then, ty) = self.operand_and_type(body, &mut at)?;
        let otherwise = self.typed_operand(body, at, ty)?;
        at += 1;
        let condition = if record == code::SELECT {
            let (condition, condition_ty) = self.operand_and_type(body, &mut at)?;
            let bit = self.common().bit;
            if self.module.types.scalar(condition_ty) != bit {
                return Err(self.bits.error("a select whose condition is not i1"));
            }
            condition
        } else {
            let bit = self.common().bit;
            self.typed_operand(body, at, bit)?
        };
        Ok((
            InstructionKind::Select {
                condition,
                then,
                otherwise,
            },
            ty,
        ))
    }

    fn vector_element(&self, ty: TypeId) -> Result<TypeId, ReadError> {
        match self.module.types[ty] {
            Type::Vector { element, .. } => Ok(element),
            _ => Err(self.bits.error("a vector operation on a non-vector")),
        }
    }

    fn read_extract_element(&mut self, body: &mut Body) -> Decoded {
        let mut at = 0;
        let (vector, ty) = self.operand_and_type(body, &mut at)?;
        let (index, _) = self.operand_and_type(body, &mut at)?;
        Ok((
            InstructionKind::ExtractElement { vector, index },
            self.vector_element(ty)?,
        ))
    }

    fn read_insert_element(&mut self, body: &mut Body) -> Decoded {
        let mut at = 0;
        let (vector, ty) = self.operand_and_type(body, &mut at)?;
        let element_ty = self.vector_element(ty)?;
        let element = self.typed_operand(body, at, element_ty)?;
        at += 1;
        let (index, _) = self.operand_and_type(body, &mut at)?;
        Ok((
            InstructionKind::InsertElement {
                vector,
                element,
                index,
            },
            ty,
        ))
    }

    fn read_shuffle(&mut self, body: &mut Body) -> Decoded {
        let mut at = 0;
        let (lhs, ty) = self.operand_and_type(body, &mut at)?;
        let element = self.vector_element(ty)?;
        let rhs = self.typed_operand(body, at, ty)?;
        at += 1;
        let (mask, mask_ty) = self.operand_and_type(body, &mut at)?;
        let Type::Vector {
            count, scalable, ..
        } = self.module.types[mask_ty]
        else {
            return Err(self.bits.error("a shuffle whose mask is not a vector"));
        };
        self.charge(count as usize)?;
        let start = body.function.masks.len();
        self.push_mask(&mut body.function.masks, mask, count as usize)?;
        let mask = span(start, body.function.masks.len());
        let result = self.module.types.intern(Type::Vector {
            element,
            count,
            scalable,
        });
        Ok((InstructionKind::ShuffleVector { lhs, rhs, mask }, result))
    }

    /// Appends the lanes of a constant mask.
    fn push_mask(&self, masks: &mut Vec<i32>, mask: Value, count: usize) -> Result<(), ReadError> {
        let Value::Constant(id) = mask else {
            return Err(self.bits.error("a shuffle whose mask is not constant"));
        };
        match &self.module.constant(id).kind {
            ConstantKind::Null => masks.resize(masks.len() + count, 0),
            ConstantKind::Undef | ConstantKind::Poison => masks.resize(masks.len() + count, -1),
            ConstantKind::Data(bytes) => {
                let lanes = bytes.chunks_exact(4);
                masks.extend(lanes.map(|lane| lane.try_into().map_or(-1, i32::from_le_bytes)));
            }
            ConstantKind::Aggregate(members) => masks.extend(members.iter().map(|member| {
                let Value::Constant(id) = member else {
                    return -1;
                };
                match self.module.constant(*id).kind {
                    ConstantKind::Integer(lane) => lane as i32,
                    ConstantKind::Null => 0,
                    _ => -1,
                }
            })),
            _ => return Err(self.bits.error("a shuffle whose mask is an expression")),
        }
        Ok(())
    }

    /// Appends the member path that starts at operand `at`; returns it and the member's type.
    fn read_path(
        &mut self,
        body: &mut Body,
        at: usize,
        mut ty: TypeId,
    ) -> Result<(Span, TypeId), ReadError> {
        let start = body.function.paths.len();
        for &index in self.bits.ops.get(at..).unwrap_or(&[]) {
            let count = match self.module.types[ty] {
                Type::Vector { .. } => None,
                _ => self.module.types.element_count(ty),
            };
            match (self.module.types.element(ty, index), count) {
                (Some(member), Some(count)) if index < count && index <= u64::from(u32::MAX) => {
                    body.function.paths.push(index as u32);
                    ty = member;
                }
                _ => return Err(self.bits.error("a path to a member that does not exist")),
            }
        }
        let path = span(start, body.function.paths.len());
        if path.is_empty() {
            return Err(self.bits.error("an empty path to a member"));
        }
        Ok((path, ty))
    }

    fn read_extract_value(&mut self, body: &mut Body) -> Decoded {
        let mut at = 0;
        let (aggregate, ty) = self.operand_and_type(body, &mut at)?;
        let (path, member) = self.read_path(body, at, ty)?;
        Ok((InstructionKind::ExtractValue { aggregate, path }, member))
    }

    fn read_insert_value(&mut self, body: &mut Body) -> Decoded {
        let mut at = 0;
        let (aggregate, ty) = self.operand_and_type(body, &mut at)?;
        let (element, element_ty) = self.operand_and_type(body, &mut at)?;
        let (path, member) = self.read_path(body, at, ty)?;
        if member != element_ty {
            return Err(self.bits.error("insertvalue of a value of another type"));
        }
        Ok((
            InstructionKind::InsertValue {
                aggregate,
                element,
                path,
            },
            ty,
        ))
    }

    /// Reads `[type, (signed relative value, block)…, flags?]`.
    fn read_phi(&mut self, body: &mut Body) -> Decoded {
        let ty = self.type_at(self.op(0)?)?;
        let start = body.function.phi_edges.len();
        for pair in 0..(self.bits.ops.len() - 1) / 2 {
            let relative = decode_signed(self.op(1 + pair * 2)?);
            let number = (self.values.len() as i64).wrapping_sub(relative);
            let number = usize::try_from(number).unwrap_or(usize::MAX);
            let block = self.block_at(body, self.op(2 + pair * 2)?)?;
            let value = self.value_at(body, number, ty)?;
            body.function.phi_edges.push(PhiEdge { block, value });
        }
        let edges = span(start, body.function.phi_edges.len());
        Ok((InstructionKind::Phi { edges }, ty))
    }

    fn read_return(&mut self, body: &mut Body) -> Decoded {
        let void = self.common().void;
        let Type::Function { result, .. } = self.module.types[body.function.ty] else {
            return Err(self.bits.error("a function without a function type"));
        };
        let (value, ty) = if self.bits.ops.is_empty() {
            (None, void)
        } else {
            let (value, ty) = self.operand_and_type(body, &mut 0)?;
            (Some(value), ty)
        };
        if ty != result {
            return Err(self
                .bits
                .error("a return of another type than the function's"));
        }
        Ok((InstructionKind::Return { value }, void))
    }

    /// Reads `[then, otherwise, condition]` or `[target]`.
    fn read_branch(&mut self, body: &mut Body) -> Decoded {
        let common = self.common();
        let then = self.block_at(body, self.op(0)?)?;
        if self.bits.ops.len() == 1 {
            return Ok((InstructionKind::Branch { target: then }, common.void));
        }
        let otherwise = self.block_at(body, self.op(1)?)?;
        let condition = self.typed_operand(body, 2, common.bit)?;
        Ok((
            InstructionKind::CondBranch {
                condition,
                then,
                otherwise,
            },
            common.void,
        ))
    }

    /// Reads `[type, value, default, (absolute constant, block)…]`.
    fn read_switch(&mut self, body: &mut Body) -> Decoded {
        /// Marks a form that one old LLVM version wrote.
        const OLD_FORM: u64 = 0x4B5;
        if self.op(0)? >> 16 == OLD_FORM {
            return Err(self.bits.error("a switch with case ranges (LLVM 3.1)"));
        }
        let ty = self.type_at(self.op(0)?)?;
        let value = self.typed_operand(body, 1, ty)?;
        let default = self.block_at(body, self.op(2)?)?;
        let start = body.function.switch_cases.len();
        for pair in 0..(self.bits.ops.len() - 3) / 2 {
            let number = usize::try_from(self.op(3 + pair * 2)?).unwrap_or(usize::MAX);
            let known = self.values.get(number).copied();
            let (Some(Value::Constant(value)), true) =
                (known, self.value_types.get(number) == Some(&ty))
            else {
                return Err(self
                    .bits
                    .error("a case that is not a constant of the switch's type"));
            };
            let target = self.block_at(body, self.op(4 + pair * 2)?)?;
            body.function
                .switch_cases
                .push(SwitchCase { value, target });
        }
        let cases = span(start, body.function.switch_cases.len());
        Ok((
            InstructionKind::Switch {
                value,
                default,
                cases,
            },
            self.common().void,
        ))
    }

    /// Reads `[type, address, blocks…]`.
    fn read_indirect_branch(&mut self, body: &mut Body) -> Decoded {
        let ty = self.type_at(self.op(0)?)?;
        let address = self.typed_operand(body, 1, ty)?;
        let start = body.function.targets.len();
        for index in 2..self.bits.ops.len() {
            let target = self.block_at(body, self.op(index)?)?;
            body.function.targets.push(target);
        }
        let targets = span(start, body.function.targets.len());
        Ok((
            InstructionKind::IndirectBranch { address, targets },
            self.common().void,
        ))
    }

    /// Reads `[type, cleanup, count, (kind, value)…]`.
    fn read_landing_pad(&mut self, body: &mut Body) -> Decoded {
        let ty = self.type_at(self.op(0)?)?;
        let cleanup = self.op(1)? != 0;
        let count = self.op(2)?;
        let start = body.function.clauses.len();
        let mut at = 3;
        for _ in 0..count {
            let filter = self.op(at)? != 0;
            at += 1;
            let (value, _) = self.operand_and_type(body, &mut at)?;
            body.function.clauses.push(Clause { filter, value });
        }
        let clauses = span(start, body.function.clauses.len());
        Ok((InstructionKind::LandingPad { cleanup, clauses }, ty))
    }
}

/// Returns the conversion with this number.
pub(super) fn cast_op(number: u64) -> Option<CastOp> {
    const CASTS: [CastOp; 14] = [
        CastOp::Trunc,
        CastOp::ZExt,
        CastOp::SExt,
        CastOp::FpToUi,
        CastOp::FpToSi,
        CastOp::UiToFp,
        CastOp::SiToFp,
        CastOp::FpTrunc,
        CastOp::FpExt,
        CastOp::PtrToInt,
        CastOp::IntToPtr,
        CastOp::BitCast,
        CastOp::AddrSpaceCast,
        CastOp::PtrToAddr,
    ];
    CASTS.get(usize::try_from(number).ok()?).copied()
}

/// Returns the float comparison with this number.
pub(super) fn float_predicate(number: u64) -> Option<FloatPredicate> {
    use FloatPredicate::*;
    const PREDICATES: [FloatPredicate; 16] = [
        False, Oeq, Ogt, Oge, Olt, Ole, One, Ord, Uno, Ueq, Ugt, Uge, Ult, Ule, Une, True,
    ];
    PREDICATES.get(usize::try_from(number).ok()?).copied()
}

/// Returns the integer comparison with this number.
pub(super) fn int_predicate(number: u64) -> Option<IntPredicate> {
    use IntPredicate::*;
    const PREDICATES: [IntPredicate; 10] = [Eq, Ne, Ugt, Uge, Ult, Ule, Sgt, Sge, Slt, Sle];
    PREDICATES
        .get(usize::try_from(number.checked_sub(32)?).ok()?)
        .copied()
}

/// Returns the flags of address arithmetic from their bits.
pub(super) fn gep_flags(bits: u64) -> GepFlags {
    let inbounds = bits & 1 != 0;
    GepFlags {
        inbounds,
        nusw: inbounds || bits & 2 != 0,
        nuw: bits & 4 != 0,
    }
}
