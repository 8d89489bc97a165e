//! Calls: callee, arguments, and unwind edges.

use super::FunctionRole;
use super::body::{Body, Ops};
use crate::address;
use crate::code::{
    Assembly, ByValue, Call, Callee, Clause, ExternalId, FunctionId, Inst, LandingPad, Operand,
    ValueType,
};
use crate::module::{self, BlockId, CallId, InstructionKind, Type, Value};

impl Body<'_, '_> {
    /// Lowers a call or, with a landing pad, an `invoke`.
    pub fn call(&mut self, id: CallId, unwind: Option<u32>) -> Ops {
        let function = self.function;
        let call = &function.calls[id.index()];
        let args = function.operand_list(call.args);
        let callee = self.callee(call.callee);
        if let Resolved::Intrinsic(name) = callee {
            return self.intrinsic(name, call, args);
        }
        let target = match callee {
            Resolved::Callee(callee) => callee,
            Resolved::Assembly(id) => Callee::Assembly(self.assembly(id)),
            Resolved::Intrinsic(_) | Resolved::Unknown => Callee::Pointer(self.single(call.callee)),
        };
        let copies = self.copies(target, args);
        let ops = self.emit_call(target, call, args, &copies, unwind);
        if unwind.is_none() {
            self.start_segment();
        }
        ops
    }

    /// Emits a call without changes.
    pub fn emit_call(
        &mut self,
        callee: Callee,
        call: &module::Call,
        args: &[Value],
        copies: &[(usize, Operand)],
        unwind: Option<u32>,
    ) -> Ops {
        let mut flat = Vec::new();
        let mut arg_types = Vec::with_capacity(args.len());
        for (position, &arg) in args.iter().enumerate() {
            if let Some((_, address)) = copies.iter().find(|(index, _)| *index == position) {
                flat.push(*address);
                arg_types.push(ValueType::Pointer);
                continue;
            }
            let ops = self.operands(arg);
            let ty = self.argument_type(arg, ops);
            for index in 0..ty.registers() {
                flat.push(self.at(ops, index));
            }
            arg_types.push(ty);
        }
        let (result, fixed) = self.signature_of(call, args.len());
        let mut by_value = self.by_value(call);
        // Only malformed modules pass non-pointers by value.
        by_value.retain(|copy| arg_types.get(copy.argument as usize) == Some(&ValueType::Pointer));
        let dst = if result.registers() > 0 {
            self.fresh(result.registers())
        } else {
            0
        };
        let index = self.code.calls.len() as u32;
        self.code.calls.push(Call {
            callee,
            args: flat,
            arg_types,
            fixed,
            by_value,
            dst,
            result,
            unwind,
        });
        self.emit(Inst::Call { call: index });
        self.run(dst, result.registers())
    }

    /// Emits a call of a built-in operation on scalars.
    pub fn emit_scalar_call(
        &mut self,
        name: &str,
        args: Vec<Operand>,
        arg_types: Vec<ValueType>,
        result: ValueType,
    ) -> Ops {
        let external = self.cx.external(name);
        let fixed = arg_types.len() as u32;
        let dst = if result.registers() > 0 {
            self.fresh(result.registers())
        } else {
            0
        };
        let index = self.code.calls.len() as u32;
        self.code.calls.push(Call {
            callee: Callee::External(external),
            args,
            arg_types,
            fixed,
            by_value: Vec::new(),
            dst,
            result,
            unwind: None,
        });
        self.emit(Inst::Call { call: index });
        self.run(dst, result.registers())
    }

    /// Spills values to stack slots where the callee expects a pointer to a copy (`byval`).
    /// Compilers differ in whether a long double is passed by value or as such a pointer, which is
    /// the same in machine code. Returns those arguments with the addresses of their slots.
    fn copies(&mut self, callee: Callee, args: &[Value]) -> Vec<(usize, Operand)> {
        let Callee::Function(id) = callee else {
            return Vec::new();
        };
        let module = self.cx.module;
        let attributes = module.functions[id.0 as usize].attributes;
        let params = module
            .attributes(attributes)
            .map_or(&[][..], |list| &list.params);
        let mut copies = Vec::new();
        for (index, (&arg, param)) in args.iter().zip(params).enumerate() {
            let Some(ty) = param.byval else { continue };
            let Some(shape) = self.shape_of(arg) else {
                continue;
            };
            let size = module.types.size_of(ty);
            let fits = shape
                .parts
                .iter()
                .all(|part| part.offset + part.bytes() <= size);
            if shape.value == ValueType::Pointer || shape.registers == 0 || !fits {
                continue;
            }
            let align = param.align.max(module.types.abi_align(ty)).min(1 << 31) as u32;
            let slot = Operand::register(self.entry_slot(size, align));
            let ops = self.operands(arg);
            self.store_parts(&shape, ops, slot);
            copies.push((index, slot));
        }
        copies
    }

    fn argument_type(&mut self, arg: Value, ops: Ops) -> ValueType {
        match arg {
            Value::Metadata(_) | Value::Block(_) | Value::InlineAsm(_) => ValueType::Ignored,
            _ => match self.shape_of(arg) {
                Some(shape) => shape.value,
                None if ops.len() == 1 => ValueType::Pointer,
                None => {
                    self.unsupported("argument of a type that cannot be held in registers");
                    ValueType::Ignored
                }
            },
        }
    }

    /// Returns the type of the result and the number of fixed arguments, as the caller sees them.
    pub fn signature_of(&mut self, call: &module::Call, args: usize) -> (ValueType, u32) {
        let Type::Function {
            result,
            params,
            varargs,
        } = &self.cx.module.types[call.signature]
        else {
            return (ValueType::Void, args as u32);
        };
        let fixed = if *varargs {
            params.len().min(args)
        } else {
            args
        };
        let value = match self.shape(*result) {
            Some(shape) => shape.value,
            None => {
                self.unsupported("result of a type that cannot be held in registers");
                ValueType::Void
            }
        };
        (value, fixed as u32)
    }

    fn by_value(&mut self, call: &module::Call) -> Vec<ByValue> {
        let module = self.cx.module;
        let Some(attributes) = module.attributes(call.attributes) else {
            return Vec::new();
        };
        let args = call.args.len;
        attributes
            .params
            .iter()
            .zip(0..args)
            .filter_map(|(attributes, argument)| {
                let ty = attributes.byval?;
                let align = attributes
                    .align
                    .max(module.types.abi_align(ty))
                    .min(1 << 31) as u32;
                Some(ByValue {
                    argument,
                    size: module.types.size_of(ty),
                    align,
                })
            })
            .collect()
    }

    /// Resolves the callee, looking through aliases and casts.
    fn callee(&mut self, callee: Value) -> Resolved {
        let function = match callee {
            Value::InlineAsm(id) => return Resolved::Assembly(id),
            Value::Function(id) => Some(id.index() as u32),
            Value::Instruction(_) | Value::Argument(_) => None,
            _ => self
                .cx
                .folder
                .word(callee)
                .ok()
                .and_then(address::function_at),
        };
        let Some(index) = function else {
            return Resolved::Unknown;
        };
        match self.cx.roles.get(index as usize) {
            Some(FunctionRole::Defined) => Resolved::Callee(Callee::Function(FunctionId(index))),
            Some(FunctionRole::External(id)) => {
                let id = *id;
                if self.cx.externals[id.0 as usize].starts_with("llvm.") {
                    Resolved::Intrinsic(id)
                } else {
                    Resolved::Callee(Callee::External(id))
                }
            }
            // A call of an undefined weak function jumps to address zero.
            Some(FunctionRole::Missing | FunctionRole::Intercepted(_)) | None => Resolved::Unknown,
        }
    }

    fn assembly(&mut self, id: module::InlineAsmId) -> u32 {
        let module = self.cx.module;
        let asm = &module.inline_asms[id.index()];
        let mut types = Vec::new();
        if let Type::Function { result, .. } = &module.types[asm.signature] {
            match &module.types[*result] {
                Type::Struct(body) => types.extend_from_slice(&body.fields),
                _ => types.push(*result),
            }
        }
        let results = types
            .into_iter()
            .filter_map(|ty| self.shape(ty).map(|shape| shape.value))
            .collect();
        self.cx.assembly(Assembly {
            template: asm.text.to_string(),
            constraints: asm.constraints.to_string(),
            results,
            intel: asm.intel_dialect,
        })
    }

    /// Emits `asm goto`. The assembly has one result more than its outputs: the number of the
    /// target to which it goes, from 1; 0 if it ends without a jump. Returns the outputs and the
    /// register of that number.
    pub fn branching_assembly(&mut self, id: CallId) -> Option<(Ops, Operand)> {
        let function = self.function;
        let call = &function.calls[id.index()];
        let Resolved::Assembly(assembly) = self.callee(call.callee) else {
            return None;
        };
        let target = Callee::Assembly(self.assembly(assembly));
        let args = function.operand_list(call.args);
        self.emit_call(target, call, args, &[], None);
        let site = self.code.calls.last_mut()?;
        let outputs = site.result.registers();
        let registers = u16::try_from(outputs + 1).ok()?;
        site.result = ValueType::Aggregate { registers };
        let first = self.fresh(outputs + 1);
        self.code.calls.last_mut()?.dst = first;
        Some((self.run(first, outputs), Operand::register(first + outputs)))
    }

    /// Creates the landing pad of an unwind edge, and returns its index.
    pub fn landing_pad(&mut self, unwind: BlockId) -> u32 {
        let function = self.function;
        let target = self.edge(unwind).0;
        let pad = function
            .block(unwind)
            .find_map(|(_, instruction)| match instruction.kind {
                InstructionKind::LandingPad { cleanup, clauses } => Some((cleanup, clauses)),
                _ => None,
            });
        let (cleanup, clauses) = pad.unwrap_or((true, module::Span::default()));
        let clauses = function.clauses[clauses.range()]
            .iter()
            .map(|clause| {
                if clause.filter {
                    let types = self.cx.folder.words(clause.value);
                    Clause::Filter(types.map(<[u64]>::to_vec).unwrap_or_default())
                } else {
                    Clause::Catch(self.cx.folder.word(clause.value).unwrap_or(0))
                }
            })
            .collect();
        self.code.landing_pads.push(LandingPad {
            target,
            cleanup,
            clauses,
        });
        self.code.landing_pads.len() as u32 - 1
    }
}

/// The result of resolving a callee.
#[derive(Copy, Clone)]
enum Resolved {
    /// A callee that a call can name directly.
    Callee(Callee),
    /// An LLVM intrinsic.
    Intrinsic(ExternalId),
    /// Inline assembly.
    Assembly(module::InlineAsmId),
    /// An unknown function at an address.
    Unknown,
}
