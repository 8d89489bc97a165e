//! The instructions of the bytecode, and their operations and predicates.

use super::{GlobalId, Operand, Pc, Register, SegmentId};

/// Integer operations on two values of the same width.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)] // Named as in LLVM.
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
#[allow(missing_docs)] // Named as in LLVM.
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
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[allow(missing_docs)] // Named as in LLVM.
pub enum FloatKind {
    Half,
    BFloat,
    Single,
    Double,
    X87,
    Quad,
}

impl FloatKind {
    /// Returns the width of the format in bits.
    pub fn bits(self) -> u32 {
        match self {
            FloatKind::Half | FloatKind::BFloat => 16,
            FloatKind::Single => 32,
            FloatKind::Double => 64,
            FloatKind::X87 => 80,
            FloatKind::Quad => 128,
        }
    }

    /// Returns the precision: bits of the significand, including the leading one.
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

    /// Returns the number of registers of a value.
    pub fn registers(self) -> u32 {
        self.bits().div_ceil(64)
    }
}

/// Floating-point operations on two values.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)] // Named as in LLVM.
pub enum FloatOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
}

/// Floating-point comparisons (LLVM's sixteen).
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)] // Named as in LLVM.
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
    Format {
        /// Source format.
        from: FloatKind,
        /// Destination format.
        to: FloatKind,
    },
    /// `fptosi`, `fptoui`.
    ToInt {
        /// Source format.
        from: FloatKind,
        /// Width in bits.
        width: u16,
        /// Whether the integer is signed.
        signed: bool,
    },
    /// `sitofp`, `uitofp`.
    FromInt {
        /// Width in bits.
        width: u16,
        /// Whether the integer is signed.
        signed: bool,
        /// Destination format.
        to: FloatKind,
    },
}

impl FloatCast {
    /// Returns the number of registers of the operand.
    pub fn source_registers(self) -> u32 {
        match self {
            FloatCast::Format { from, .. } | FloatCast::ToInt { from, .. } => from.registers(),
            FloatCast::FromInt { width, .. } => u32::from(width).div_ceil(64),
        }
    }
}

/// Read-modify-write operations of `atomicrmw`.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)] // Named as in LLVM.
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

/// The `nsw` and `nuw` flags; violations are reported on request.
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
    Segment {
        /// Number of LLVM instructions.
        count: u32,
        /// The segment.
        id: SegmentId,
    },
    /// `dst = src`.
    Move {
        /// Destination register.
        dst: Register,
        /// Source operand.
        src: Operand,
    },
    /// `dst = a op b`.
    Int {
        /// The operation.
        op: IntOp,
        /// Width in bits.
        width: u8,
        /// The flags.
        flags: IntFlags,
        /// Destination register.
        dst: Register,
        /// First operand.
        a: Operand,
        /// Second operand.
        b: Operand,
    },
    /// Like `Int`, on `width.div_ceil(64)` registers each; operands are consecutive registers or
    /// constants.
    WideInt {
        /// The operation.
        op: IntOp,
        /// Width in bits.
        width: u16,
        /// Destination register.
        dst: Register,
        /// First operand.
        a: Operand,
        /// Second operand.
        b: Operand,
    },
    /// `dst = a pred b`, one bit.
    Compare {
        /// The predicate.
        pred: IntPredicate,
        /// Width in bits.
        width: u8,
        /// Destination register.
        dst: Register,
        /// First operand.
        a: Operand,
        /// Second operand.
        b: Operand,
    },
    /// Like `Compare`, on wide operands.
    WideCompare {
        /// The predicate.
        pred: IntPredicate,
        /// Width in bits.
        width: u16,
        /// Destination register.
        dst: Register,
        /// First operand.
        a: Operand,
        /// Second operand.
        b: Operand,
    },
    /// Keeps the low `width` bits.
    Truncate {
        /// Width in bits.
        width: u8,
        /// Destination register.
        dst: Register,
        /// The operand.
        a: Operand,
    },
    /// Sign-extends from `from` to `to` bits.
    SignExtend {
        /// Source width in bits.
        from: u8,
        /// Destination width in bits.
        to: u8,
        /// Destination register.
        dst: Register,
        /// The operand.
        a: Operand,
    },
    /// Sign-extends from `from` bits (any) to `to` bits (over 64).
    WideSignExtend {
        /// Source width in bits.
        from: u16,
        /// Destination width in bits.
        to: u16,
        /// Destination register.
        dst: Register,
        /// The operand.
        a: Operand,
    },
    /// Keeps `width` bits of a wide value of `from` bits, counted from bit `low`.
    WideExtract {
        /// Source width in bits.
        from: u16,
        /// Lowest bit.
        low: u16,
        /// Width in bits.
        width: u16,
        /// Destination register.
        dst: Register,
        /// The operand.
        a: Operand,
    },
    /// `dst = if cond { a } else { b }`, one register.
    Select {
        /// Width in bits.
        width: u8,
        /// Destination register.
        dst: Register,
        /// The condition, one bit.
        cond: Operand,
        /// First operand.
        a: Operand,
        /// Second operand.
        b: Operand,
    },
    /// `dst = base + sext(index) * scale`, 64 bits.
    Index {
        /// Width of the index in bits.
        index_width: u8,
        /// Destination register.
        dst: Register,
        /// The base address.
        base: Operand,
        /// The index.
        index: Operand,
        /// Bytes per index.
        scale: i32,
    },
    /// Reads `bytes` (1 to 8) at `ptr + offset` and keeps `width` bits.
    Load {
        /// Number of bytes.
        bytes: u8,
        /// Width in bits.
        width: u8,
        /// Whether the access is atomic.
        atomic: bool,
        /// Destination register.
        dst: Register,
        /// The address.
        ptr: Operand,
        /// Constant offset in bytes.
        offset: i32,
    },
    /// Writes `bytes` (1 to 8) at `ptr + offset`. The value is `width` bits wide, zero-extended.
    Store {
        /// Number of bytes.
        bytes: u8,
        /// Width in bits.
        width: u8,
        /// Whether the access is atomic.
        atomic: bool,
        /// Source operand.
        src: Operand,
        /// The address.
        ptr: Operand,
        /// Constant offset in bytes.
        offset: i32,
    },
    /// A stack slot of constant size; dies with the frame.
    Alloca {
        /// Destination register.
        dst: Register,
        /// Size in bytes.
        size: u64,
        /// Alignment in bytes.
        align: u32,
    },
    /// A stack slot of `count * size` bytes; dies with the frame or at `llvm.stackrestore`.
    AllocaDynamic {
        /// Width of the count in bits.
        count_width: u8,
        /// Destination register.
        dst: Register,
        /// Number of elements.
        count: Operand,
        /// Size in bytes.
        size: u32,
        /// Alignment in bytes.
        align: u32,
    },
    /// The address of a thread-local global of the running thread.
    ThreadLocal {
        /// Destination register.
        dst: Register,
        /// The global.
        global: GlobalId,
    },
    /// `dst = a op b`; consecutive registers if the format takes two.
    Float {
        /// The operation.
        op: FloatOp,
        /// The format.
        kind: FloatKind,
        /// Destination register.
        dst: Register,
        /// First operand.
        a: Operand,
        /// Second operand.
        b: Operand,
    },
    /// `dst = -a`.
    FloatNegate {
        /// The format.
        kind: FloatKind,
        /// Destination register.
        dst: Register,
        /// The operand.
        a: Operand,
    },
    /// `dst = a pred b`, one bit.
    FloatCompare {
        /// The predicate.
        pred: FloatPredicate,
        /// Whether a quiet NaN raises the invalid flag, too.
        signals: bool,
        /// The format.
        kind: FloatKind,
        /// Destination register.
        dst: Register,
        /// First operand.
        a: Operand,
        /// Second operand.
        b: Operand,
    },
    /// A conversion from or to floating point.
    FloatCast {
        /// The conversion.
        cast: FloatCast,
        /// Destination register.
        dst: Register,
        /// The operand.
        a: Operand,
    },
    /// Atomically reads, combines and writes `bytes`; `dst` gets the old value.
    AtomicUpdate {
        /// The operation.
        op: AtomicOp,
        /// Number of bytes.
        bytes: u8,
        /// Destination register.
        dst: Register,
        /// The address.
        ptr: Operand,
        /// The second operand.
        value: Operand,
    },
    /// Compare and exchange: `dst` gets the old value (in one or two registers), the next register
    /// the success bit. `bytes` may be 16.
    CompareExchange {
        /// Number of bytes.
        bytes: u8,
        /// Destination register.
        dst: Register,
        /// The address.
        ptr: Operand,
        /// The expected value.
        expected: Operand,
        /// The new value.
        new: Operand,
    },
    /// A memory fence; a preemption point.
    Fence,
    /// The begin or end of the scope of the variable in a stack slot.
    Scope {
        /// Whether the scope begins.
        begins: bool,
        /// The slot.
        slot: Operand,
    },
    /// Jumps to `target`.
    Jump {
        /// The target.
        target: Pc,
    },
    /// Jumps to the targets in [`super::Code::branches`]`[target]`.
    Branch {
        /// The condition, one bit.
        cond: Operand,
        /// Index in [`super::Code::branches`].
        target: u32,
    },
    /// Compare and branch in one.
    CompareBranch {
        /// The predicate.
        pred: IntPredicate,
        /// Width in bits.
        width: u8,
        /// First operand.
        a: Operand,
        /// Second operand.
        b: Operand,
        /// Index in [`super::Code::branches`].
        target: u32,
    },
    /// Jumps to a target of [`super::Code::switches`]`[table]`.
    Switch {
        /// Width in bits.
        width: u8,
        /// The operand.
        value: Operand,
        /// Index in [`super::Code::switches`].
        table: u32,
    },
    /// Jumps to the block at this address; [`super::Code::block_addresses`] maps addresses to code.
    IndirectBranch {
        /// The address.
        address: Operand,
    },
    /// Performs the call [`super::Code::calls`]`[call]`, then continues with the next instruction.
    Call {
        /// Index of the call site.
        call: u32,
    },
    /// Returns the operands `values.0 .. values.0 + values.1` of [`super::Code::operands`].
    Return {
        /// Start and number of the operands.
        values: (u32, u32),
    },
    /// Moves the exception (pointer and selector) that the unwinder left in
    /// the frame to `dst` and `dst + 1`.
    LandingPad {
        /// Destination register.
        dst: Register,
    },
    /// Resumes unwinding with this exception object.
    Resume {
        /// The exception object.
        exception: Operand,
    },
    /// Unreachable code; executing it is a finding.
    Unreachable,
    /// An unsupported instruction; [`super::Code::unsupported`]`[what]` names it.
    Unsupported {
        /// Index in [`super::Code::unsupported`].
        what: u32,
    },
}
