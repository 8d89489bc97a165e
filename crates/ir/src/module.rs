//! The in-memory representation of LLVM IR: types, constants, globals, functions and instructions
//! in flat tables with typed ids. The reader and the linker fill it, the lowering reads it. It
//! knows nothing of the file format.

mod constant;
mod ids;
mod instruction;
mod types;
mod visit;

use std::collections::HashMap;

use crate::debug::{DebugInfo, FileId};

pub use constant::{Constant, ConstantKind, InlineAsm};
pub use ids::*;
pub use instruction::*;
pub use types::{DataLayout, LayoutProblem, StructType, Type, TypeTable};

/// A program or a part of one.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// Name of the source file, as the compiler noted it.
    pub name: String,
    /// The compiler that wrote the module, for example `LLVM22.1.0`.
    pub producer: String,
    /// The target, for example `x86_64-unknown-linux-musl`.
    pub target_triple: String,
    /// LLVM's data layout string.
    pub data_layout: String,
    /// Assembly outside of functions.
    pub module_asm: String,
    /// All types.
    pub types: TypeTable,
    /// All constants of the module and of all functions.
    pub constants: Vec<Constant>,
    /// All inline assembly.
    pub inline_asms: Vec<InlineAsm>,
    /// Global variables.
    pub globals: Vec<Global>,
    /// Functions, defined and declared.
    pub functions: Vec<Function>,
    /// Aliases.
    pub aliases: Vec<Alias>,
    /// Indirect functions.
    pub ifuncs: Vec<Ifunc>,
    /// Comdat groups.
    pub comdats: Vec<Comdat>,
    /// Attribute lists of functions and calls.
    pub attributes: Vec<AttributeList>,
    /// Tags of operand bundles.
    pub bundle_tags: Vec<Box<str>>,
    /// Strings that are metadata arguments of intrinsics (see [`Value::Metadata`]).
    pub metadata_strings: Vec<Box<str>>,
    /// Source locations, subprograms, variables and their types.
    pub debug: DebugInfo,
    /// Symbols by name; never iterated.
    pub symbols: HashMap<Box<str>, Symbol>,
}

/// The entity that a name refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Each names its table.
pub enum Symbol {
    Global(GlobalId),
    Function(FunctionId),
    Alias(AliasId),
    Ifunc(IfuncId),
}

impl Symbol {
    /// Returns the symbol as an operand.
    pub fn value(self) -> Value {
        match self {
            Symbol::Global(id) => Value::Global(id),
            Symbol::Function(id) => Value::Function(id),
            Symbol::Alias(id) => Value::Alias(id),
            Symbol::Ifunc(id) => Value::Ifunc(id),
        }
    }
}

/// How a symbol takes part in linking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[allow(missing_docs)] // Named exactly as in LLVM.
pub enum Linkage {
    #[default]
    External,
    AvailableExternally,
    LinkOnceAny,
    LinkOnceOdr,
    WeakAny,
    WeakOdr,
    Appending,
    Internal,
    Private,
    ExternalWeak,
    Common,
}

impl Linkage {
    /// Returns whether the name is invisible outside of its module.
    pub fn is_local(self) -> bool {
        matches!(self, Linkage::Internal | Linkage::Private)
    }

    /// Returns whether a strong definition overrides this one.
    pub fn is_weak_definition(self) -> bool {
        matches!(
            self,
            Linkage::LinkOnceAny | Linkage::LinkOnceOdr | Linkage::WeakAny | Linkage::WeakOdr
        )
    }
}

/// ELF visibility.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[allow(missing_docs)] // Named exactly as in LLVM.
pub enum Visibility {
    #[default]
    Default,
    Hidden,
    Protected,
}

/// A global variable.
#[derive(Clone, Debug)]
pub struct Global {
    /// Symbol name; empty if it has none.
    pub name: Box<str>,
    /// Type of the contents.
    pub ty: TypeId,
    /// Initial content; `None` for a declaration.
    pub initializer: Option<Value>,
    /// Whether the global is read-only.
    pub constant: bool,
    /// Whether each thread has its own copy.
    pub thread_local: bool,
    /// Linkage.
    pub linkage: Linkage,
    /// Visibility.
    pub visibility: Visibility,
    /// Alignment in bytes; 0 if none is given, so that the ABI alignment applies.
    pub align: u64,
    /// Section name.
    pub section: Option<Box<str>>,
    /// Comdat group.
    pub comdat: Option<ComdatId>,
    /// Address space.
    pub address_space: u32,
    /// Whether the address is not significant.
    pub unnamed_addr: bool,
    /// Whether the global may be initialised elsewhere, before the program starts.
    pub externally_initialized: bool,
}

/// Another name for a symbol or for an address within it.
#[derive(Clone, Debug)]
pub struct Alias {
    /// Symbol name.
    pub name: Box<str>,
    /// Type of the data at the address.
    pub ty: TypeId,
    /// The address.
    pub target: Value,
    /// Linkage.
    pub linkage: Linkage,
    /// Visibility.
    pub visibility: Visibility,
    /// Whether each thread has its own copy.
    pub thread_local: bool,
    /// Address space.
    pub address_space: u32,
}

/// A function whose address a resolver picks at load time.
#[derive(Clone, Debug)]
pub struct Ifunc {
    /// Symbol name.
    pub name: Box<str>,
    /// Type of the function.
    pub ty: TypeId,
    /// The resolver.
    pub resolver: Value,
    /// Linkage.
    pub linkage: Linkage,
    /// Visibility.
    pub visibility: Visibility,
    /// Address space.
    pub address_space: u32,
}

/// A comdat group: a set of symbols that is taken from one module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comdat {
    /// Name of the group.
    pub name: Box<str>,
    /// Which module's members are taken.
    pub selection: ComdatSelection,
}

/// Which module's members of a comdat group are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Named exactly as in LLVM.
pub enum ComdatSelection {
    Any,
    ExactMatch,
    Largest,
    NoDeduplicate,
    SameSize,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Symbol name; empty if it has none.
    pub name: Box<str>,
    /// Signature, a [`Type::Function`].
    pub ty: TypeId,
    /// Types of the fixed parameters, as in the signature.
    pub params: Box<[TypeId]>,
    /// Names of the fixed parameters, if the compiler kept them; otherwise empty.
    pub param_names: Box<[Box<str>]>,
    /// Linkage.
    pub linkage: Linkage,
    /// Visibility.
    pub visibility: Visibility,
    /// LLVM calling convention number (0 = C).
    pub calling_convention: u32,
    /// Attributes.
    pub attributes: Option<AttributesId>,
    /// Alignment of the code in bytes; 0 if none is given.
    pub align: u64,
    /// Section name.
    pub section: Option<Box<str>>,
    /// Comdat group.
    pub comdat: Option<ComdatId>,
    /// Garbage collector name.
    pub gc: Option<Box<str>>,
    /// Routine that handles exceptions (`__gxx_personality_v0`, `rust_eh_personality`).
    pub personality: Option<Value>,
    /// Whether the address is not significant.
    pub unnamed_addr: bool,
    /// Address space.
    pub address_space: u32,
    /// The function in the source, if debug information names it.
    pub subprogram: Option<crate::debug::SubprogramId>,
    /// The words before the code by which `-fsanitize=function` knows the type.
    pub signature: Option<[u32; 2]>,
    /// Basic blocks, the entry first; none for a declaration.
    pub blocks: Vec<Block>,
    /// Instructions, block by block.
    pub instructions: Vec<Instruction>,
    /// Calls.
    pub calls: Vec<Call>,
    /// Pool of operands.
    pub operands: Vec<Value>,
    /// Pool of incoming edges of phis.
    pub phi_edges: Vec<PhiEdge>,
    /// Pool of switch cases.
    pub switch_cases: Vec<SwitchCase>,
    /// Pool of branch targets.
    pub targets: Vec<BlockId>,
    /// Pool of landing pad clauses.
    pub clauses: Vec<Clause>,
    /// Pool of shuffle masks.
    pub masks: Vec<i32>,
    /// Pool of member paths.
    pub paths: Vec<u32>,
    /// Pool of operand bundles.
    pub bundles: Vec<Bundle>,
}

/// A basic block: a run of the function's instructions, of which the last is a terminator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Index of the first instruction.
    pub start: u32,
    /// Index after the last instruction.
    pub end: u32,
}

impl Function {
    /// Creates a declaration with a name and signature, without other properties.
    pub fn declaration(name: Box<str>, ty: TypeId) -> Self {
        Self {
            name,
            ty,
            params: Box::default(),
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

    /// Returns whether the function has no body here.
    pub fn is_declaration(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns the instructions of a block, with their ids.
    pub fn block(&self, id: BlockId) -> impl Iterator<Item = (InstId, &Instruction)> {
        let Block { start, end } = self.blocks[id.index()];
        let range = start as usize..end as usize;
        let ids = range.clone().map(InstId::new);
        ids.zip(&self.instructions[range])
    }

    /// Returns all block ids, in order.
    pub fn block_ids(&self) -> impl Iterator<Item = BlockId> + use<> {
        (0..self.blocks.len()).map(BlockId::new)
    }

    /// Returns a list of operands.
    #[inline]
    pub fn operand_list(&self, span: Span) -> &[Value] {
        &self.operands[span.range()]
    }

    /// Returns the arguments of a call.
    #[inline]
    pub fn call_args(&self, call: CallId) -> &[Value] {
        self.operand_list(self.calls[call.index()].args)
    }
}

/// Attributes of a function or call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttributeList {
    /// Attributes of the function.
    pub function: FunctionAttributes,
    /// Attributes of the result.
    pub result: ParamAttributes,
    /// Attributes of the parameters; missing ones at the end have none.
    pub params: Vec<ParamAttributes>,
}

/// Attributes of a function that matter for execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // Named exactly as in LLVM.
pub struct FunctionAttributes {
    pub noreturn: bool,
    pub nounwind: bool,
    pub returns_twice: bool,
    pub naked: bool,
    pub noinline: bool,
    /// Unoptimised code: nothing is computed that the source does not request.
    pub optnone: bool,
    pub minsize: bool,
    pub strictfp: bool,
    pub willreturn: bool,
    pub cold: bool,
}

/// Attributes of a parameter or result that matter for execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParamAttributes {
    /// The type that is passed by copying.
    pub byval: Option<TypeId>,
    /// The type of the result that is stored where the parameter points.
    pub sret: Option<TypeId>,
    /// The type that is passed in the caller's frame (Windows).
    pub inalloca: Option<TypeId>,
    /// The type that is passed by reference.
    pub byref: Option<TypeId>,
    /// The type to which a pointer operand of an intrinsic or of assembly refers.
    pub elementtype: Option<TypeId>,
    /// Alignment in bytes; 0 if none is given.
    pub align: u64,
    /// Stack alignment in bytes; 0 if none is given.
    pub stack_align: u64,
    /// Number of bytes that are known to be readable.
    pub dereferenceable: u64,
    /// Whether the caller zero-extends the value.
    pub zeroext: bool,
    /// Whether the caller sign-extends the value.
    pub signext: bool,
    /// Whether the value is never null.
    pub nonnull: bool,
    /// Whether undefined values are an error.
    pub noundef: bool,
    /// Whether no other pointer reaches the memory.
    pub noalias: bool,
    /// Whether the parameter is the static chain of a nested function.
    pub nest: bool,
    /// Whether the function returns this parameter.
    pub returned: bool,
}

impl Module {
    /// Returns the constant with this id.
    #[inline]
    pub fn constant(&self, id: ConstId) -> &Constant {
        &self.constants[id.index()]
    }

    /// Returns the type of an operand of `function`; `None` if it has none (blocks, metadata) or
    /// the table lacks the type.
    pub fn value_type(&self, function: &Function, value: Value) -> Option<TypeId> {
        match value {
            Value::Instruction(id) => Some(function.instructions[id.index()].ty),
            Value::Argument(index) => function.params.get(index as usize).copied(),
            Value::Block(_) | Value::Metadata(_) => None,
            _ => self.constant_type(value),
        }
    }

    /// Returns the type of a constant, global or function as an operand.
    pub fn constant_type(&self, value: Value) -> Option<TypeId> {
        match value {
            Value::Constant(id) => Some(self.constants[id.index()].ty),
            Value::Global(id) => self.types.pointer(self.globals[id.index()].address_space),
            Value::Function(id) => self.types.pointer(self.functions[id.index()].address_space),
            Value::Alias(id) => self.types.pointer(self.aliases[id.index()].address_space),
            Value::Ifunc(id) => self.types.pointer(self.ifuncs[id.index()].address_space),
            Value::InlineAsm(_) => self.types.pointer(0),
            _ => None,
        }
    }

    /// Returns the function with this name.
    pub fn function_named(&self, name: &str) -> Option<FunctionId> {
        match self.symbols.get(name) {
            Some(&Symbol::Function(id)) => Some(id),
            _ => None,
        }
    }

    /// Returns the global variable with this name.
    pub fn global_named(&self, name: &str) -> Option<GlobalId> {
        match self.symbols.get(name) {
            Some(&Symbol::Global(id)) => Some(id),
            _ => None,
        }
    }

    /// Returns all functions with their ids, in order.
    pub fn functions(&self) -> impl Iterator<Item = (FunctionId, &Function)> {
        self.functions
            .iter()
            .enumerate()
            .map(|(index, f)| (FunctionId::new(index), f))
    }

    /// Returns all global variables with their ids, in order.
    pub fn globals(&self) -> impl Iterator<Item = (GlobalId, &Global)> {
        self.globals
            .iter()
            .enumerate()
            .map(|(index, g)| (GlobalId::new(index), g))
    }

    /// Returns the source file of a function, if debug information names it.
    pub fn file_of(&self, function: &Function) -> Option<FileId> {
        let subprogram = self.debug.subprograms.get(function.subprogram?.index())?;
        subprogram.file
    }

    /// Returns the path of the source file of a function.
    pub fn path_of(&self, function: &Function) -> Option<String> {
        self.debug.path(self.file_of(function)?)
    }

    /// Returns the attributes of a function.
    pub fn attributes(&self, id: Option<AttributesId>) -> Option<&AttributeList> {
        id.and_then(|id| self.attributes.get(id.index()))
    }
}
