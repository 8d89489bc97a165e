//! The bytecode that modules are lowered to and that the vm executes.
//!
//! A function's frame is an array of registers of 64 bits. Values wider than that (i128, long double, vectors,
//! aggregates) take several consecutive registers: integers in limbs from the lowest, vectors lane by lane,
//! aggregates field by field, each lane and field starting a new register. Narrow values are
//! zero-extended in their register. Nothing here knows how a program is executed.

use std::collections::BTreeMap;

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

/// A stretch of code that is executed from its first to its last instruction unless something stops it
/// inside: the unit of counting and of coverage. Numbered through the whole program.
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
    /// The operand that reads a register.
    pub fn register(register: Register) -> Operand {
        debug_assert!(register & CONSTANT_BIT == 0);
        Operand(register)
    }

    /// The operand that reads entry `index` of [`Code::constants`].
    pub fn constant(index: u32) -> Operand {
        debug_assert!(index & CONSTANT_BIT == 0);
        Operand(index | CONSTANT_BIT)
    }

    /// The register, if it is one.
    #[inline(always)]
    pub fn as_register(self) -> Option<Register> {
        (self.0 & CONSTANT_BIT == 0).then_some(self.0)
    }

    /// Position among the constants, if it is one.
    #[inline(always)]
    pub fn as_constant(self) -> Option<u32> {
        (self.0 & CONSTANT_BIT != 0).then_some(self.0 & !CONSTANT_BIT)
    }
}

/// Integer operations on two values of one width.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum IntOp {
    Add,
    Sub,
    Mul,
    UDiv,
    SDiv,
    URem,
    SRem,
    And,
    Or,
    Xor,
    Shl,
    LShr,
    AShr,
}

/// Integer comparisons.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum IntPredicate {
    Eq,
    Ne,
    Ugt,
    Uge,
    Ult,
    Ule,
    Sgt,
    Sge,
    Slt,
    Sle,
}

/// Formats of floating-point values. `Half` to `Double` take one register, the others two.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum FloatKind {
    Half,
    BFloat,
    Single,
    Double,
    X87,
    Quad,
}

impl FloatKind {
    /// Width of the format in bits.
    pub fn bits(self) -> u32 {
        match self {
            FloatKind::Half | FloatKind::BFloat => 16,
            FloatKind::Single => 32,
            FloatKind::Double => 64,
            FloatKind::X87 => 80,
            FloatKind::Quad => 128,
        }
    }

    /// Bits of the significand, with the leading one.
    pub fn precision(self) -> u32 {
        match self {
            FloatKind::Half => 11,
            FloatKind::BFloat => 8,
            FloatKind::Single => 24,
            FloatKind::Double => 53,
            FloatKind::X87 => 64,
            FloatKind::Quad => 113,
        }
    }

    /// Registers that a value takes.
    pub fn registers(self) -> u32 {
        self.bits().div_ceil(64)
    }
}

/// Floating-point operations on two values.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum FloatOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
}

/// Floating-point comparisons (LLVM's sixteen).
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum FloatPredicate {
    False,
    Oeq,
    Ogt,
    Oge,
    Olt,
    Ole,
    One,
    Ord,
    Uno,
    Ueq,
    Ugt,
    Uge,
    Ult,
    Ule,
    Une,
    True,
}

/// Conversions from or to floating point.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum FloatCast {
    /// Between formats.
    Format { from: FloatKind, to: FloatKind },
    /// `fptosi`, `fptoui`.
    ToInt {
        from: FloatKind,
        width: u16,
        signed: bool,
    },
    /// `sitofp`, `uitofp`.
    FromInt {
        width: u16,
        signed: bool,
        to: FloatKind,
    },
}

impl FloatCast {
    /// Registers that the operand takes.
    pub fn source_registers(self) -> u32 {
        match self {
            FloatCast::Format { from, .. } | FloatCast::ToInt { from, .. } => from.registers(),
            FloatCast::FromInt { width, .. } => u32::from(width).div_ceil(64),
        }
    }
}

/// Read-modify-write operations of `atomicrmw`.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum AtomicOp {
    Exchange,
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
}

/// What `nsw`, `nuw` and `exact` promised; broken promises are reported where the user asks for it.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct IntFlags {
    /// No signed wrap.
    pub nsw: bool,
    /// No unsigned wrap.
    pub nuw: bool,
}

/// One instruction. Widths are in bits and at most 64 unless the name says `Wide`.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Inst {
    /// Starts a segment of `count` LLVM instructions.
    Segment { count: u32, id: SegmentId },
    /// `dst = src`.
    Move { dst: Register, src: Operand },
    /// `dst = a op b`.
    Int {
        op: IntOp,
        width: u8,
        flags: IntFlags,
        dst: Register,
        a: Operand,
        b: Operand,
    },
    /// The same on `width.div_ceil(64)` registers each; operands are consecutive registers or constants.
    WideInt {
        op: IntOp,
        width: u16,
        dst: Register,
        a: Operand,
        b: Operand,
    },
    /// `dst = a pred b`, one bit.
    Compare {
        pred: IntPredicate,
        width: u8,
        dst: Register,
        a: Operand,
        b: Operand,
    },
    /// The same on wide operands.
    WideCompare {
        pred: IntPredicate,
        width: u16,
        dst: Register,
        a: Operand,
        b: Operand,
    },
    /// Keeps the low `width` bits.
    Truncate {
        width: u8,
        dst: Register,
        a: Operand,
    },
    /// Sign-extends from `from` to `to` bits.
    SignExtend {
        from: u8,
        to: u8,
        dst: Register,
        a: Operand,
    },
    /// Sign-extends from `from` bits (any) to `to` bits (over 64).
    WideSignExtend {
        from: u16,
        to: u16,
        dst: Register,
        a: Operand,
    },
    /// Keeps `width` bits of a wide value of `from` bits, counted from bit `low`.
    WideExtract {
        from: u16,
        low: u16,
        width: u16,
        dst: Register,
        a: Operand,
    },
    /// `dst = if cond { a } else { b }`, one register.
    Select {
        width: u8,
        dst: Register,
        cond: Operand,
        a: Operand,
        b: Operand,
    },
    /// `dst = base + sext(index) * scale`, 64 bits.
    Index {
        index_width: u8,
        dst: Register,
        base: Operand,
        index: Operand,
        scale: i32,
    },
    /// Reads `bytes` (1 to 8) at `ptr + offset` and keeps `width` bits.
    Load {
        bytes: u8,
        width: u8,
        atomic: bool,
        dst: Register,
        ptr: Operand,
        offset: i32,
    },
    /// Writes `bytes` (1 to 8) at `ptr + offset`. The value is `width` bits wide, zero-extended.
    Store {
        bytes: u8,
        width: u8,
        atomic: bool,
        src: Operand,
        ptr: Operand,
        offset: i32,
    },
    /// A stack slot of constant size; dies with the frame.
    Alloca {
        dst: Register,
        size: u64,
        align: u32,
    },
    /// A stack slot of `count * size` bytes; dies with the frame or at `llvm.stackrestore`.
    AllocaDynamic {
        count_width: u8,
        dst: Register,
        count: Operand,
        size: u32,
        align: u32,
    },
    /// Address of a thread-local global of the running thread.
    ThreadLocal { dst: Register, global: GlobalId },
    /// `dst = a op b`; consecutive registers where the format takes two.
    Float {
        op: FloatOp,
        kind: FloatKind,
        dst: Register,
        a: Operand,
        b: Operand,
    },
    /// `dst = -a`.
    FloatNegate {
        kind: FloatKind,
        dst: Register,
        a: Operand,
    },
    /// `dst = a pred b`, one bit.
    FloatCompare {
        pred: FloatPredicate,
        kind: FloatKind,
        dst: Register,
        a: Operand,
        b: Operand,
    },
    /// Conversion from or to floating point.
    FloatCast {
        cast: FloatCast,
        dst: Register,
        a: Operand,
    },
    /// Atomically reads, combines and writes `bytes`; `dst` gets the old value.
    AtomicUpdate {
        op: AtomicOp,
        bytes: u8,
        dst: Register,
        ptr: Operand,
        value: Operand,
    },
    /// `dst` gets the old value (`registers` of them), the register after it whether it was exchanged. `bytes` may be 16.
    CompareExchange {
        bytes: u8,
        dst: Register,
        ptr: Operand,
        expected: Operand,
        new: Operand,
    },
    /// A barrier; a place where threads may switch.
    Fence,
    /// Goes on at `target`.
    Jump { target: Pc },
    /// Goes on at `then` if the bit is set, else at `other`.
    Branch { cond: Operand, then: Pc, other: Pc },
    /// Compare and branch in one.
    CompareBranch {
        pred: IntPredicate,
        width: u8,
        a: Operand,
        b: Operand,
        target: u32,
    },
    /// Goes on where [`Code::switches`]`[table]` says.
    Switch {
        width: u8,
        value: Operand,
        table: u32,
    },
    /// Goes on at the block whose address it is; [`Code::block_addresses`] maps addresses to code.
    IndirectBranch { address: Operand },
    /// Calls as [`Code::calls`]`[call]` says, then goes on with the next instruction.
    Call { call: u32 },
    /// Returns the operands `values.0 .. values.0 + values.1` of [`Code::operands`].
    Return { values: (u32, u32) },
    /// Moves the exception (pointer and selector) that the unwinder left in the frame to `dst` and `dst + 1`.
    LandingPad { dst: Register },
    /// Goes on unwinding with this exception object.
    Resume { exception: Operand },
    /// Control cannot come here; if it does, that is a finding.
    Unreachable,
    /// An instruction that cannot be executed; [`Code::unsupported`]`[what]` names it.
    Unsupported { what: u32 },
}

/// Targets of a fused compare and branch (kept apart so that instructions stay small).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct BranchTargets {
    /// Where to go if the comparison holds.
    pub then: Pc,
    /// Where to go if not.
    pub other: Pc,
}

/// A lowered `switch`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SwitchTable {
    /// Cases by ascending value.
    pub cases: Vec<(u64, Pc)>,
    /// Where to go if no case matches.
    pub default: Pc,
    /// Where the cases lie densely: `dense[value - dense_base]`; gaps hold the default. Empty if not dense.
    pub dense: Vec<Pc>,
    /// Value of the first entry of `dense`.
    pub dense_base: u64,
}

impl SwitchTable {
    /// Where a value goes.
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

/// Who is called.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Callee {
    /// A function of the program, defined in bitcode.
    Function(FunctionId),
    /// An operation of the vm: a libc function that it takes over, an LLVM intrinsic, an undefined symbol.
    External(ExternalId),
    /// Inline assembly, entry of [`Program::assembly`].
    Assembly(u32),
    /// The function at an address.
    Pointer(Operand),
}

/// Type of one argument or result as far as calls need it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ValueType {
    /// An integer of this width (one register for each 64 bits begun).
    Int(u16),
    /// A pointer.
    Pointer,
    /// A floating-point value.
    Float(FloatKind),
    /// A vector; lanes take their registers one after the other.
    Vector {
        /// Number of lanes.
        lanes: u16,
        /// What a lane is.
        lane: Lane,
    },
    /// An aggregate of this many registers.
    Aggregate {
        /// How many.
        registers: u16,
    },
    /// Nothing (a void result).
    Void,
    /// Metadata or a token: takes no register.
    Ignored,
}

/// Lane of a vector.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Lane {
    /// An integer of this width.
    Int(u16),
    /// A pointer.
    Pointer,
    /// A floating-point value.
    Float(FloatKind),
}

impl Lane {
    /// Registers of one lane.
    pub fn registers(self) -> u32 {
        match self {
            Lane::Int(width) => u32::from(width).div_ceil(64),
            Lane::Pointer => 1,
            Lane::Float(kind) => kind.registers(),
        }
    }

    /// Width of one lane in bits.
    pub fn bits(self) -> u32 {
        match self {
            Lane::Int(width) => u32::from(width),
            Lane::Pointer => 64,
            Lane::Float(kind) => kind.bits(),
        }
    }
}

impl ValueType {
    /// Registers that a value of this type takes.
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

/// An argument that is passed as a copy of the memory that it points to (`byval`).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ByValue {
    /// Which argument (counted as in the source, not in registers).
    pub argument: u32,
    /// Size of the copy.
    pub size: u64,
    /// Its alignment.
    pub align: u32,
}

/// Everything about one call site.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// Who is called.
    pub callee: Callee,
    /// Arguments, flattened into registers.
    pub args: Vec<Operand>,
    /// Types of the arguments, one for each argument as the caller wrote it.
    pub arg_types: Vec<ValueType>,
    /// Arguments before this one (in `arg_types`) are fixed; the rest is variadic.
    pub fixed: u32,
    /// Arguments passed as copies.
    pub by_value: Vec<ByValue>,
    /// First register of the result.
    pub dst: Register,
    /// Type of the result.
    pub result: ValueType,
    /// Entry of [`Code::landing_pads`] if an exception that comes out of the call is handled here (`invoke`).
    pub unwind: Option<u32>,
}

/// What a landing pad does with exceptions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LandingPad {
    /// Where to go on.
    pub target: Pc,
    /// It wants to run for any exception, to clean up.
    pub cleanup: bool,
    /// Its clauses in order.
    pub clauses: Vec<Clause>,
}

/// A clause of a landing pad.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Clause {
    /// Catches exceptions of this type (address of the type info; 0 catches all).
    Catch(u64),
    /// Lets only these types pass.
    Filter(Vec<u64>),
}

/// The code of one function.
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// Instructions. Execution starts at 0.
    pub instructions: Vec<Inst>,
    /// Location of each instruction.
    pub locations: Vec<Option<LocationId>>,
    /// Constants that operands name.
    pub constants: Vec<u64>,
    /// Operands of returns.
    pub operands: Vec<Operand>,
    /// Call sites.
    pub calls: Vec<Call>,
    /// Switches.
    pub switches: Vec<SwitchTable>,
    /// Targets of fused compares.
    pub branches: Vec<BranchTargets>,
    /// Landing pads.
    pub landing_pads: Vec<LandingPad>,
    /// Where `blockaddress`es of this function lead.
    pub block_addresses: BTreeMap<u64, Pc>,
    /// Names of instructions that cannot be executed.
    pub unsupported: Vec<String>,
    /// Registers of a frame. The parameters come first.
    pub registers: u32,
    /// Registers that the parameters take.
    pub parameter_registers: u32,
    /// Parameters that point to a copy made by the caller (`byval`): a caller may also pass such an argument as
    /// the value itself, which is the same in machine code.
    pub by_value: Vec<ByValue>,
    /// It takes more arguments than it names.
    pub variadic: bool,
    /// Type of the result.
    pub result: Option<ValueType>,
    /// The compiler was free to compute values that are not used (the function is not `optnone`).
    pub optimised: bool,
}

/// A function as the program sees it.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its symbol.
    pub name: String,
    /// What a call does.
    pub body: Body,
    /// Where it is defined.
    pub location: Option<LocationId>,
}

/// What a call of a function does.
#[derive(Clone, Debug)]
pub enum Body {
    /// It executes this code.
    Code(Box<Code>),
    /// It is an operation of the vm.
    External(ExternalId),
}

/// A global variable.
#[derive(Clone, Debug)]
pub struct Global {
    /// Its symbol.
    pub name: String,
    /// Its address; for thread-local ones the address of the initial image, which no thread uses itself.
    pub address: u64,
    /// Its size.
    pub size: u64,
    /// Its alignment.
    pub align: u64,
    /// Initial bytes; shorter than `size` means zeros follow.
    pub bytes: Vec<u8>,
    /// It cannot be written.
    pub constant: bool,
    /// Each thread has its own.
    pub thread_local: bool,
}

/// Inline assembly.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Assembly {
    /// The template.
    pub template: String,
    /// The constraints.
    pub constraints: String,
}

/// A place in the source.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Location {
    /// Path of the file as the compiler was given it, joined with its directory.
    pub file: u32,
    /// Line, from 1; 0 if unknown.
    pub line: u32,
    /// Column, from 1; 0 if unknown.
    pub column: u32,
    /// Name of the function (as the user writes it), index into [`Program::strings`].
    pub function: u32,
    /// Where the code was inlined.
    pub inlined_at: Option<LocationId>,
}

/// A program, ready to be executed.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Its name, for messages.
    pub name: String,
    /// Functions, defined and not.
    pub functions: Vec<Function>,
    /// Globals. Each lies in a slot of its own.
    pub globals: Vec<Global>,
    /// Names of the operations of the vm that it needs.
    pub externals: Vec<String>,
    /// Inline assembly that it contains.
    pub assembly: Vec<Assembly>,
    /// Source locations.
    pub locations: Vec<Location>,
    /// File and function names that locations refer to.
    pub strings: Vec<String>,
    /// Function and first instruction of each segment.
    pub segments: Vec<(FunctionId, Pc)>,
    /// Slots that globals take, by class: the vm hands out slots from here on.
    pub slots_used: Vec<u32>,
    /// Addresses by symbol: functions, globals, symbols that a linker would make.
    pub symbols: BTreeMap<String, u64>,
}

impl Program {
    /// The function with this symbol.
    pub fn function(&self, name: &str) -> Option<FunctionId> {
        let address = *self.symbols.get(name)?;
        let id = crate::address::function_at(address)?;
        ((id as usize) < self.functions.len()).then_some(FunctionId(id))
    }

    /// A string of the table.
    pub fn string(&self, index: u32) -> &str {
        self.strings.get(index as usize).map_or("", String::as_str)
    }

    /// A location.
    pub fn location(&self, id: LocationId) -> &Location {
        &self.locations[id.0 as usize]
    }
}
