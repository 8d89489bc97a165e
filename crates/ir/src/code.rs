//! The bytecode that modules are lowered to and that the vm executes.
//!
//! A frame is an array of 64-bit registers. Wider values (i128, long double, vectors, aggregates)
//! take several consecutive registers: integers as limbs, least significant first, vectors lane by
//! lane, aggregates field by field; each lane and field starts a new register. Narrow values are
//! zero-extended in their register. Nothing here knows how a program is executed.

mod inst;

pub use inst::{
    AtomicOp, FloatCast, FloatKind, FloatOp, FloatPredicate, Inst, IntFlags, IntOp, IntPredicate,
};

use std::collections::BTreeMap;

use crate::library::LibraryFolders;

/// Index of a function of the program.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FunctionId(pub u32);

/// Index into [`Program::externals`].
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ExternalId(pub u32);

/// Index into [`Program::globals`].
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GlobalId(pub u32);

/// Index into [`Program::locations`].
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LocationId(pub u32);

/// A segment: code that is executed from its first to its last instruction unless something stops
/// it inside. It is the unit of counting and coverage. Segments are numbered over the whole
/// program.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SegmentId(pub u32);

/// A register of the running frame.
pub type Register = u32;

/// Index of an instruction within its function.
pub type Pc = u32;

/// A register or a constant of the function.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Operand(u32);

const CONSTANT_BIT: u32 = 1 << 31;

impl Operand {
    /// Creates an operand that reads a register.
    pub fn register(register: Register) -> Operand {
        debug_assert!(register & CONSTANT_BIT == 0);
        Operand(register)
    }

    /// Creates an operand that reads entry `index` of [`Code::constants`].
    pub fn constant(index: u32) -> Operand {
        debug_assert!(index & CONSTANT_BIT == 0);
        Operand(index | CONSTANT_BIT)
    }

    /// Returns the register, if the operand is one.
    #[inline(always)]
    pub fn as_register(self) -> Option<Register> {
        (self.0 & CONSTANT_BIT == 0).then_some(self.0)
    }

    /// Returns the index among the constants, if the operand is one.
    #[inline(always)]
    pub fn as_constant(self) -> Option<u32> {
        (self.0 & CONSTANT_BIT != 0).then_some(self.0 & !CONSTANT_BIT)
    }
}

/// Targets of a fused compare and branch (stored separately so that instructions stay small).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct BranchTargets {
    /// Target if the comparison holds.
    pub then: Pc,
    /// Target if the comparison does not hold.
    pub other: Pc,
}

/// A lowered `switch`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SwitchTable {
    /// Cases, sorted by value.
    pub cases: Vec<(u64, Pc)>,
    /// Target if no case matches.
    pub default: Pc,
    /// A dense table: `dense[value - dense_base]`, with the default in gaps. Empty if the cases are
    /// sparse.
    pub dense: Vec<Pc>,
    /// Value of the first entry of `dense`.
    pub dense_base: u64,
    /// The sides of the switch: all targets, each once, in the order of the code.
    pub sides: Vec<Pc>,
    /// Number of the first side of the switch among the sides of all branches of the function.
    pub first_side: u32,
}

impl SwitchTable {
    /// Returns the number of the side that goes to a target, among the sides of all branches of the
    /// function.
    #[inline]
    pub fn side(&self, target: Pc) -> u32 {
        self.first_side + self.sides.partition_point(|side| *side < target) as u32
    }

    /// Returns the target for a value.
    #[inline]
    pub fn target(&self, value: u64) -> Pc {
        if !self.dense.is_empty() {
            let at = value.wrapping_sub(self.dense_base);
            return usize::try_from(at)
                .ok()
                .and_then(|at| self.dense.get(at))
                .copied()
                .unwrap_or(self.default);
        }
        match self.cases.binary_search_by_key(&value, |case| case.0) {
            Ok(at) => self.cases[at].1,
            Err(_) => self.default,
        }
    }
}

/// The callee of a call.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Callee {
    /// A function of the program, defined in bitcode.
    Function(FunctionId),
    /// A built-in operation of the vm: a replaced libc function, an LLVM intrinsic, or an undefined
    /// symbol.
    External(ExternalId),
    /// Inline assembly, entry of [`Program::assembly`].
    Assembly(u32),
    /// The function at an address.
    Pointer(Operand),
}

/// Type of an argument or result, as far as calls need it.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ValueType {
    /// An integer of this width (one register per 64 bits or part of it).
    Int(u16),
    /// A pointer.
    Pointer,
    /// A floating-point value.
    Float(FloatKind),
    /// A vector; lanes are in consecutive registers.
    Vector {
        /// Number of lanes.
        lanes: u16,
        /// The lane type.
        lane: Lane,
    },
    /// An aggregate of this many registers.
    Aggregate {
        /// Number of registers.
        registers: u16,
    },
    /// No value (a void result).
    Void,
    /// Metadata or a token: takes no register.
    Ignored,
}

/// Lane of a vector.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Lane {
    /// An integer of this width.
    Int(u16),
    /// A pointer.
    Pointer,
    /// A floating-point value.
    Float(FloatKind),
}

impl Lane {
    /// Returns the number of registers of one lane.
    pub fn registers(self) -> u32 {
        match self {
            Lane::Int(width) => u32::from(width).div_ceil(64),
            Lane::Pointer => 1,
            Lane::Float(kind) => kind.registers(),
        }
    }

    /// Returns the width of one lane in bits.
    pub fn bits(self) -> u32 {
        match self {
            Lane::Int(width) => u32::from(width),
            Lane::Pointer => 64,
            Lane::Float(kind) => kind.bits(),
        }
    }
}

impl ValueType {
    /// Returns the number of registers of a value of this type.
    pub fn registers(self) -> u32 {
        match self {
            ValueType::Int(width) => u32::from(width).div_ceil(64),
            ValueType::Pointer => 1,
            ValueType::Float(kind) => kind.registers(),
            ValueType::Vector { lanes, lane } => u32::from(lanes) * lane.registers(),
            ValueType::Aggregate { registers } => u32::from(registers),
            ValueType::Void | ValueType::Ignored => 0,
        }
    }
}

/// An argument passed as a copy of the memory it points to (`byval`).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ByValue {
    /// Index of the argument at the call site, not of a register.
    pub argument: u32,
    /// Size of the copy in bytes.
    pub size: u64,
    /// Alignment of the copy.
    pub align: u32,
}

/// A call site.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// The callee.
    pub callee: Callee,
    /// Arguments, flattened into registers.
    pub args: Vec<Operand>,
    /// Types of the arguments, one per argument at the call site.
    pub arg_types: Vec<ValueType>,
    /// Arguments before this index (in `arg_types`) are fixed; the rest is variadic.
    pub fixed: u32,
    /// Arguments passed by value in memory.
    pub by_value: Vec<ByValue>,
    /// First register of the result.
    pub dst: Register,
    /// Type of the result.
    pub result: ValueType,
    /// Index in [`Code::landing_pads`] if an exception from the call is handled here (`invoke`).
    pub unwind: Option<u32>,
}

/// A landing pad.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LandingPad {
    /// The position at which execution continues.
    pub target: Pc,
    /// Whether the pad is entered for any exception, for cleanup.
    pub cleanup: bool,
    /// The clauses, in order.
    pub clauses: Vec<Clause>,
}

/// A clause of a landing pad.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Clause {
    /// Catches exceptions of this type (address of the type info; 0 catches all).
    Catch(u64),
    /// Allows only exceptions of these types to pass.
    Filter(Vec<u64>),
}

/// The code of one function.
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// Instructions. Execution starts at 0.
    pub instructions: Vec<Inst>,
    /// Location of each instruction.
    pub locations: Vec<Option<LocationId>>,
    /// Constants that operands refer to.
    pub constants: Vec<u64>,
    /// Operands of returns.
    pub operands: Vec<Operand>,
    /// Call sites.
    pub calls: Vec<Call>,
    /// Switches.
    pub switches: Vec<SwitchTable>,
    /// Targets of conditional branches.
    pub branches: Vec<BranchTargets>,
    /// Half the number of sides of branches and switches in all earlier functions.
    pub first_branch: u32,
    /// Landing pads.
    pub landing_pads: Vec<LandingPad>,
    /// Targets of the `blockaddress`es of this function.
    pub block_addresses: BTreeMap<u64, Pc>,
    /// Names of unsupported instructions.
    pub unsupported: Vec<String>,
    /// Number of registers of a frame. The parameters come first.
    pub registers: u32,
    /// Number of registers of the parameters.
    pub parameter_registers: u32,
    /// Parameters that point to a copy made by the caller (`byval`). A caller may also pass the
    /// value itself, which is the same in machine code.
    pub by_value: Vec<ByValue>,
    /// Whether the function is variadic.
    pub variadic: bool,
    /// Type of the result.
    pub result: Option<ValueType>,
    /// Whether the compiler may have speculated unused computations (the function is not
    /// `optnone`).
    pub optimised: bool,
}

/// A function of the program.
#[derive(Clone, Debug)]
pub struct Function {
    /// The symbol of the function.
    pub name: String,
    /// The names of the parameters, if the compiler kept them; otherwise empty.
    pub parameters: Box<[Box<str>]>,
    /// The implementation of the function.
    pub body: Body,
    /// The location of the definition.
    pub location: Option<LocationId>,
}

/// The implementation of a function.
#[derive(Clone, Debug)]
pub enum Body {
    /// Bytecode.
    Code(Box<Code>),
    /// A built-in operation of the vm.
    External(ExternalId),
}

/// A global variable.
#[derive(Clone, Debug)]
pub struct Global {
    /// The symbol of the global.
    pub name: String,
    /// The address; for thread-local globals the address of the initial image, which no thread
    /// accesses.
    pub address: u64,
    /// The size in bytes.
    pub size: u64,
    /// The alignment in bytes.
    pub align: u64,
    /// Initial bytes; zeros follow up to `size`.
    pub bytes: Vec<u8>,
    /// Whether the global is read-only.
    pub constant: bool,
    /// Whether each thread has its own copy.
    pub thread_local: bool,
}

/// Inline assembly.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Assembly {
    /// The template.
    pub template: String,
    /// The constraints.
    pub constraints: String,
    /// The types of the outputs that are results, in the order of the constraints.
    pub results: Vec<ValueType>,
    /// Whether the syntax is Intel's: destinations come first.
    pub intel: bool,
}

/// A source location.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Location {
    /// Path of the file as given to the compiler, joined with its directory; index into
    /// [`Program::strings`].
    pub file: u32,
    /// Line, from 1; 0 if unknown.
    pub line: u32,
    /// Column, from 1; 0 if unknown.
    pub column: u32,
    /// Source name of the function, index into [`Program::strings`].
    pub function: u32,
    /// The call site into which the code was inlined.
    pub inlined_at: Option<LocationId>,
}

/// A program, ready to be executed.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The name of the program, for messages.
    pub name: String,
    /// All functions, defined or not.
    pub functions: Vec<Function>,
    /// Globals. Each has a slot of its own.
    pub globals: Vec<Global>,
    /// Names of the built-in operations that the program needs.
    pub externals: Vec<String>,
    /// Inline assembly of the program.
    pub assembly: Vec<Assembly>,
    /// Source locations.
    pub locations: Vec<Location>,
    /// File and function names that locations refer to.
    pub strings: Vec<String>,
    /// The folders of source files that belong to libraries.
    pub library: LibraryFolders,
    /// A file of the user that the compiler optimised, if there is one: errors in it may be
    /// missing.
    pub optimised_file: Option<String>,
    /// Function and first instruction of each segment.
    pub segments: Vec<(FunctionId, Pc)>,
    /// Half the number of sides of branches and switches in all functions. The sides of a switch
    /// take an even number of entries.
    pub branches: u32,
    /// Number of slots that globals use, by class: the vm allocates the slots after these.
    pub slots_used: Vec<u32>,
    /// Addresses by symbol: functions, globals, linker-defined symbols.
    pub symbols: BTreeMap<String, u64>,
    /// The words before the code of functions by which `-fsanitize=function` knows their types.
    pub signatures: BTreeMap<FunctionId, [u32; 2]>,
}

impl Program {
    /// Returns the function with this symbol.
    pub fn function(&self, name: &str) -> Option<FunctionId> {
        let address = *self.symbols.get(name)?;
        let id = crate::address::function_at(address)?;
        ((id as usize) < self.functions.len()).then_some(FunctionId(id))
    }

    /// Returns a string of the table.
    pub fn string(&self, index: u32) -> &str {
        self.strings.get(index as usize).map_or("", String::as_str)
    }

    /// Returns a location.
    pub fn location(&self, id: LocationId) -> &Location {
        &self.locations[id.0 as usize]
    }
}
