//! A builder for modules.

use crate::code::Program;
use crate::lower::{LowerOptions, lower, verify};
use crate::module::*;

/// A module under construction.
pub struct Build {
    pub module: Module,
}

impl Build {
    pub fn new() -> Self {
        let mut module = Module::default();
        module.types.intern(Type::Pointer { address_space: 0 });
        Self { module }
    }

    pub fn ty(&mut self, ty: Type) -> TypeId {
        self.module.types.intern(ty)
    }

    pub fn int(&mut self, width: u32) -> TypeId {
        self.ty(Type::Integer(width))
    }

    pub fn pointer(&mut self) -> TypeId {
        self.ty(Type::Pointer { address_space: 0 })
    }

    pub fn vector(&mut self, lanes: u32, width: u32) -> TypeId {
        let element = self.int(width);
        self.ty(Type::Vector {
            element,
            count: lanes,
            scalable: false,
        })
    }

    pub fn structure(&mut self, fields: &[TypeId]) -> TypeId {
        self.ty(Type::Struct(StructType {
            name: None,
            fields: fields.into(),
            packed: false,
            opaque: false,
        }))
    }

    pub fn add(&mut self, ty: TypeId, kind: ConstantKind) -> Value {
        self.module.constants.push(Constant { ty, kind });
        Value::Constant(ConstId::new(self.module.constants.len() - 1))
    }

    pub fn number(&mut self, width: u32, value: u64) -> Value {
        let ty = self.int(width);
        self.add(ty, ConstantKind::Integer(value))
    }

    pub fn wide(&mut self, width: u32, value: u128) -> Value {
        let ty = self.int(width);
        let words = [value as u64, (value >> 64) as u64];
        self.add(ty, ConstantKind::WideInteger(words.into()))
    }

    pub fn global(&mut self, name: &str, ty: TypeId, initializer: Option<Value>) -> GlobalId {
        self.module.globals.push(Global {
            name: name.into(),
            ty,
            initializer,
            constant: false,
            thread_local: false,
            linkage: Linkage::External,
            visibility: Visibility::Default,
            align: 0,
            section: None,
            comdat: None,
            address_space: 0,
            unnamed_addr: false,
            externally_initialized: false,
        });
        let id = GlobalId::new(self.module.globals.len() - 1);
        self.module.symbols.insert(name.into(), Symbol::Global(id));
        id
    }

    /// Adds a function whose blocks `fill` creates.
    pub fn function(
        &mut self,
        name: &str,
        params: &[TypeId],
        result: TypeId,
        fill: impl FnOnce(&mut Build, &mut Body),
    ) -> FunctionId {
        let ty = self.ty(Type::Function {
            result,
            params: params.into(),
            varargs: false,
        });
        let void = self.ty(Type::Void);
        let mut body = Body {
            function: empty_function(name, ty, params),
            void,
        };
        fill(self, &mut body);
        self.module.functions.push(body.function);
        let id = FunctionId::new(self.module.functions.len() - 1);
        self.module
            .symbols
            .insert(name.into(), Symbol::Function(id));
        id
    }

    /// Lowers and verifies the module.
    pub fn lower(&mut self, promote: bool) -> Program {
        self.module.types.compute_layouts().unwrap();
        let options = LowerOptions {
            is_vm_operation: &|name| name == "taken",
            is_intercepted: &|name| name == "met",
            promote,
            check_subobjects: false,
        };
        let program = lower(&self.module, &options).unwrap();
        verify(&program).unwrap();
        program
    }
}

/// A function under construction.
pub struct Body {
    pub function: Function,
    void: TypeId,
}

impl Body {
    /// Starts the next block.
    pub fn block(&mut self) -> BlockId {
        let at = self.function.instructions.len() as u32;
        self.function.blocks.push(Block { start: at, end: at });
        BlockId::new(self.function.blocks.len() - 1)
    }

    /// Appends an instruction to the last block.
    pub fn push(&mut self, ty: TypeId, kind: InstructionKind) -> Value {
        self.function.instructions.push(Instruction {
            ty,
            loc: None,
            kind,
        });
        let end = self.function.instructions.len() as u32;
        self.function.blocks.last_mut().unwrap().end = end;
        Value::Instruction(InstId::new(end as usize - 1))
    }

    pub fn effect(&mut self, kind: InstructionKind) {
        self.push(self.void, kind);
    }

    pub fn binary(&mut self, ty: TypeId, op: BinaryOp, lhs: Value, rhs: Value) -> Value {
        let flags = ArithmeticFlags::default();
        self.push(
            ty,
            InstructionKind::Binary {
                op,
                lhs,
                rhs,
                flags,
            },
        )
    }

    pub fn cast(&mut self, ty: TypeId, op: CastOp, value: Value) -> Value {
        let flags = ArithmeticFlags::default();
        self.push(ty, InstructionKind::Cast { op, value, flags })
    }

    pub fn alloca(&mut self, build: &mut Build, allocated: TypeId) -> Value {
        let (pointer, count) = (build.pointer(), build.number(32, 1));
        self.push(
            pointer,
            InstructionKind::Alloca {
                allocated,
                count,
                align: 0,
                inalloca: false,
            },
        )
    }

    pub fn load(&mut self, ty: TypeId, pointer: Value) -> Value {
        self.push(
            ty,
            InstructionKind::Load {
                pointer,
                access: plain(),
            },
        )
    }

    pub fn store(&mut self, pointer: Value, value: Value) {
        self.effect(InstructionKind::Store {
            pointer,
            value,
            access: plain(),
        });
    }

    pub fn gep(&mut self, ty: TypeId, source: TypeId, base: Value, indices: &[Value]) -> Value {
        let start = self.function.operands.len() as u32;
        self.function.operands.extend_from_slice(indices);
        self.push(
            ty,
            InstructionKind::Gep {
                source,
                base,
                indices: Span {
                    start,
                    len: indices.len() as u32,
                },
                flags: GepFlags::default(),
            },
        )
    }

    /// Returns a phi; [`edges`](Self::edges) sets its edges when the values exist.
    pub fn phi(&mut self, ty: TypeId) -> Value {
        self.push(
            ty,
            InstructionKind::Phi {
                edges: Span::default(),
            },
        )
    }

    pub fn edges(&mut self, phi: Value, list: &[(BlockId, Value)]) {
        let Value::Instruction(id) = phi else {
            unreachable!()
        };
        let start = self.function.phi_edges.len() as u32;
        let len = list.len() as u32;
        let edges = list.iter().map(|&(block, value)| PhiEdge { block, value });
        self.function.phi_edges.extend(edges);
        self.function.instructions[id.index()].kind = InstructionKind::Phi {
            edges: Span { start, len },
        };
    }

    pub fn ret(&mut self, value: Value) {
        self.effect(InstructionKind::Return { value: Some(value) });
    }
}

fn plain() -> Access {
    Access {
        align: 0,
        volatile: false,
        ordering: Ordering::NotAtomic,
        scope: SyncScope::System,
    }
}

fn empty_function(name: &str, ty: TypeId, params: &[TypeId]) -> Function {
    Function {
        name: name.into(),
        ty,
        params: params.into(),
        param_names: Box::default(),
        linkage: Linkage::External,
        visibility: Visibility::Default,
        calling_convention: 0,
        attributes: None,
        align: 0,
        section: None,
        comdat: None,
        gc: None,
        personality: None,
        unnamed_addr: false,
        address_space: 0,
        subprogram: None,
        signature: None,
        blocks: Vec::new(),
        instructions: Vec::new(),
        calls: Vec::new(),
        operands: Vec::new(),
        phi_edges: Vec::new(),
        switch_cases: Vec::new(),
        targets: Vec::new(),
        clauses: Vec::new(),
        masks: Vec::new(),
        paths: Vec::new(),
        bundles: Vec::new(),
    }
}
