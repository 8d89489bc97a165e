//! Calls: `call`, `invoke` and `callbr`.

use super::Reader;
use super::function::{Body, span};
use super::instructions::Decoded;
use crate::bitstream::ReadError;
use crate::module::*;

/// The part of a call before its callee and arguments.
struct CallHead {
    attributes: Option<AttributesId>,
    calling_convention: u32,
    tail: TailKind,
    fast_math: u8,
    /// Whether the record contains the signature before the callee.
    explicit_type: bool,
}

impl Reader<'_> {
    /// Reads `[attributes, flags, fast-math?, signature, callee, arguments…]`.
    pub(super) fn read_call(&mut self, body: &mut Body) -> Decoded {
        let flags = self.op(1)?;
        let has_fast_math = flags & (1 << 17) != 0;
        let tail = match (
            flags & 1 != 0,
            flags & (1 << 14) != 0,
            flags & (1 << 16) != 0,
        ) {
            (_, true, _) => TailKind::MustTail,
            (_, _, true) => TailKind::NoTail,
            (true, ..) => TailKind::Tail,
            _ => TailKind::None,
        };
        let head = CallHead {
            attributes: self.attributes_at(self.op(0)?)?,
            calling_convention: (flags >> 1 & 0x3FF) as u32,
            tail,
            fast_math: if has_fast_math { self.op(2)? as u8 } else { 0 },
            explicit_type: flags & (1 << 15) != 0,
        };
        let at = 2 + usize::from(has_fast_math);
        let (call, ty) = self.read_callee(body, head, at)?;
        Ok((InstructionKind::Call { call }, ty))
    }

    /// Reads `[attributes, flags, normal, unwind, signature, callee, arguments…]`.
    pub(super) fn read_invoke(&mut self, body: &mut Body) -> Decoded {
        let flags = self.op(1)?;
        let head = CallHead {
            attributes: self.attributes_at(self.op(0)?)?,
            calling_convention: (flags & 0x3FF) as u32,
            tail: TailKind::None,
            fast_math: 0,
            explicit_type: flags & (1 << 13) != 0,
        };
        let normal = self.block_at(body, self.op(2)?)?;
        let unwind = self.block_at(body, self.op(3)?)?;
        let (call, ty) = self.read_callee(body, head, 4)?;
        Ok((
            InstructionKind::Invoke {
                call,
                normal,
                unwind,
            },
            ty,
        ))
    }

    /// Reads `[attributes, flags, fallthrough, count, blocks…, signature, callee, arguments…]`.
    pub(super) fn read_call_branch(&mut self, body: &mut Body) -> Decoded {
        let flags = self.op(1)?;
        let head = CallHead {
            attributes: self.attributes_at(self.op(0)?)?,
            calling_convention: (flags >> 1 & 0x3FF) as u32,
            tail: TailKind::None,
            fast_math: 0,
            explicit_type: flags & (1 << 15) != 0,
        };
        let fallthrough = self.block_at(body, self.op(2)?)?;
        let count = usize::try_from(self.op(3)?).unwrap_or(usize::MAX);
        let end = count.saturating_add(4);
        if end > self.bits.ops.len() {
            return Err(self.bits.error("the record has fewer targets than it says"));
        }
        let start = body.function.targets.len();
        for at in 4..end {
            let target = self.block_at(body, self.op(at)?)?;
            body.function.targets.push(target);
        }
        let indirect = span(start, body.function.targets.len());
        let (call, ty) = self.read_callee(body, head, end)?;
        Ok((
            InstructionKind::CallBr {
                call,
                fallthrough,
                indirect,
            },
            ty,
        ))
    }

    /// Reads signature, callee and arguments from operand `at` on; returns the result's type.
    fn read_callee(
        &mut self,
        body: &mut Body,
        head: CallHead,
        mut at: usize,
    ) -> Result<(CallId, TypeId), ReadError> {
        if !head.explicit_type {
            return Err(self
                .bits
                .error("a call without its signature (before LLVM 3.7)"));
        }
        let signature = self.type_at(self.op(at)?)?;
        at += 1;
        let (callee, _) = self.operand_and_type(body, &mut at)?;
        let Type::Function {
            result,
            ref params,
            varargs,
        } = self.module.types[signature]
        else {
            return Err(self
                .bits
                .error("a call whose signature is not a function type"));
        };
        if let Value::Function(id) = callee
            && self.debug_intrinsics[id.index()]
        {
            // The call describes a variable and computes nothing.
            body.dropped = true;
            body.function.bundles.truncate(body.bundle_start);
            return Ok((CallId::new(0), result));
        }
        let params = params.clone();
        let start = body.function.operands.len();
        for &param in &params {
            let value = if matches!(self.module.types[param], Type::Label) {
                Value::Block(self.block_at(body, self.op(at)?)?)
            } else {
                self.typed_operand(body, at, param)?
            };
            at += 1;
            body.function.operands.push(value);
        }
        while varargs && at < self.bits.ops.len() {
            let (value, _) = self.operand_and_type(body, &mut at)?;
            body.function.operands.push(value);
        }
        if at != self.bits.ops.len() {
            return Err(self
                .bits
                .error("a call with more arguments than its signature"));
        }
        let bundles = span(body.bundle_start, body.function.bundles.len());
        body.bundle_start = body.function.bundles.len();
        body.function.calls.push(Call {
            callee,
            signature,
            args: span(start, body.function.operands.len()),
            attributes: head.attributes,
            calling_convention: head.calling_convention,
            tail: head.tail,
            fast_math: head.fast_math,
            bundles,
        });
        Ok((CallId::new(body.function.calls.len() - 1), result))
    }
}
