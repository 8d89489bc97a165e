//! Operands, instructions, and the pools of their lists.

use super::ids::*;

/// An operand. Eight bytes, and compared by identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// Result of an instruction of the same function.
    Instruction(InstId),
    /// Parameter of the function, by position.
    Argument(u32),
    /// A constant of the module.
    Constant(ConstId),
    /// Address of a global variable.
    Global(GlobalId),
    /// Address of a function.
    Function(FunctionId),
    /// Address of an alias.
    Alias(AliasId),
    /// Address of an indirect function.
    Ifunc(IfuncId),
    /// A basic block of the same function (operand of a label type).
    Block(BlockId),
    /// Inline assembly as the callee of a call.
    InlineAsm(InlineAsmId),
    /// Metadata as an argument of an intrinsic. Strings, such as rounding modes, are kept in
    /// [`Module::metadata_strings`](super::Module::metadata_strings) by this index; [`NO_METADATA`]
    /// denotes all other metadata.
    Metadata(u32),
}

/// Index in [`Value::Metadata`] for metadata that is not a string.
pub const NO_METADATA: u32 = u32::MAX;

/// A run of entries in one of the pools of a [`Function`](super::Function).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First entry.
    pub start: u32,
    /// Number of entries.
    pub len: u32,
}

impl Span {
    /// Returns the entries as a range of the pool.
    #[inline]
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }

    /// Returns whether there is no entry.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// One instruction.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    /// Type of the result; void if there is none.
    pub ty: TypeId,
    /// The source location of the instruction.
    pub loc: Option<LocId>,
    /// The operation and its operands.
    pub kind: InstructionKind,
}

/// The operation of an instruction, with its operands. Lists are spans of the function's pools.
#[derive(Clone, Copy, Debug)]
pub enum InstructionKind {
    /// `fneg`.
    FNeg {
        /// The operand.
        value: Value,
        /// LLVM's fast-math flags.
        fast_math: u8,
    },
    /// Arithmetic, bit operations and shifts on integers, floats or vectors of them.
    Binary {
        /// The operation.
        op: BinaryOp,
        /// Left operand.
        lhs: Value,
        /// Right operand.
        rhs: Value,
        /// The flags.
        flags: ArithmeticFlags,
    },
    /// Conversion to the type of the instruction.
    Cast {
        /// The operation.
        op: CastOp,
        /// The operand.
        value: Value,
        /// The flags.
        flags: ArithmeticFlags,
    },
    /// Integer or pointer comparison.
    ICmp {
        /// The predicate.
        predicate: IntPredicate,
        /// Left operand.
        lhs: Value,
        /// Right operand.
        rhs: Value,
        /// Whether both operands have the same sign (`samesign`).
        same_sign: bool,
    },
    /// Float comparison.
    FCmp {
        /// The predicate.
        predicate: FloatPredicate,
        /// Left operand.
        lhs: Value,
        /// Right operand.
        rhs: Value,
        /// LLVM's fast-math flags.
        fast_math: u8,
    },
    /// `condition ? then : otherwise`, lane by lane if the condition is a vector.
    Select {
        /// The condition.
        condition: Value,
        /// The value if the condition holds.
        then: Value,
        /// The value otherwise.
        otherwise: Value,
    },
    /// Merge of values by predecessor; a span of [`Function::phi_edges`](super::Function).
    Phi {
        /// The incoming edges.
        edges: Span,
    },
    /// Stack slot of `count` times `allocated`.
    Alloca {
        /// The allocated type.
        allocated: TypeId,
        /// Number of elements.
        count: Value,
        /// Alignment in bytes.
        align: u64,
        /// Whether the slot is an `inalloca` argument.
        inalloca: bool,
    },
    /// Read of the instruction's type.
    Load {
        /// The address.
        pointer: Value,
        /// How memory is accessed.
        access: Access,
    },
    /// Write.
    Store {
        /// The address.
        pointer: Value,
        /// The value to store.
        value: Value,
        /// How memory is accessed.
        access: Access,
    },
    /// Address arithmetic over `source`; a span of [`Function::operands`](super::Function).
    Gep {
        /// The source element type.
        source: TypeId,
        /// The base address.
        base: Value,
        /// The indices.
        indices: Span,
        /// The flags.
        flags: GepFlags,
    },
    /// Call.
    Call {
        /// Index of the call site.
        call: CallId,
    },
    /// A call that continues at `normal` or, on an exception, at `unwind`.
    Invoke {
        /// The call.
        call: CallId,
        /// Target if the callee returns.
        normal: BlockId,
        /// Target if the callee unwinds.
        unwind: BlockId,
    },
    /// `asm goto`; `indirect` is a span of [`Function::targets`](super::Function).
    CallBr {
        /// The call.
        call: CallId,
        /// The default target.
        fallthrough: BlockId,
        /// The indirect targets.
        indirect: Span,
    },
    /// Return.
    Return {
        /// The result.
        value: Option<Value>,
    },
    /// Unconditional branch.
    Branch {
        /// The target.
        target: BlockId,
    },
    /// Conditional branch.
    CondBranch {
        /// The condition.
        condition: Value,
        /// Target if the condition holds.
        then: BlockId,
        /// Target otherwise.
        otherwise: BlockId,
    },
    /// Multi-way branch; a span of [`Function::switch_cases`](super::Function).
    Switch {
        /// The operand.
        value: Value,
        /// Target if no case matches.
        default: BlockId,
        /// The cases.
        cases: Span,
    },
    /// Computed goto; a span of [`Function::targets`](super::Function).
    IndirectBranch {
        /// The address.
        address: Value,
        /// The possible targets.
        targets: Span,
    },
    /// Code that is never reached.
    Unreachable,
    /// Continues unwinding with an exception.
    Resume {
        /// The operand.
        value: Value,
    },
    /// Start of an exception handler; a span of [`Function::clauses`](super::Function).
    LandingPad {
        /// Whether the pad is entered for cleanup, too.
        cleanup: bool,
        /// The clauses.
        clauses: Span,
    },
    /// A lane of a vector.
    ExtractElement {
        /// The vector.
        vector: Value,
        /// The index.
        index: Value,
    },
    /// A vector with one lane replaced.
    InsertElement {
        /// The vector.
        vector: Value,
        /// The new lane.
        element: Value,
        /// The index.
        index: Value,
    },
    /// Lanes of two vectors selected by a constant mask, a span of
    /// [`Function::masks`](super::Function); -1 leaves the lane undefined.
    ShuffleVector {
        /// Left operand.
        lhs: Value,
        /// Right operand.
        rhs: Value,
        /// The mask.
        mask: Span,
    },
    /// A member of an aggregate; the path is a span of [`Function::paths`](super::Function).
    ExtractValue {
        /// The aggregate.
        aggregate: Value,
        /// The member path.
        path: Span,
    },
    /// An aggregate with one member replaced.
    InsertValue {
        /// The aggregate.
        aggregate: Value,
        /// The new member.
        element: Value,
        /// The member path.
        path: Span,
    },
    /// A value with undef and poison replaced by an arbitrary value.
    Freeze {
        /// The operand.
        value: Value,
    },
    /// Memory fence.
    Fence {
        /// The ordering.
        ordering: Ordering,
        /// The synchronisation scope.
        scope: SyncScope,
    },
    /// Compare and exchange; yields `{ old value, i1 success }`.
    CmpXchg {
        /// The address.
        pointer: Value,
        /// The expected value.
        expected: Value,
        /// The new value.
        new: Value,
        /// How memory is accessed.
        access: Access,
        /// The ordering on failure.
        failure: Ordering,
        /// Whether the exchange may fail spuriously.
        weak: bool,
    },
    /// Atomic read-modify-write; yields the old value.
    AtomicRmw {
        /// The operation.
        op: AtomicOp,
        /// The address.
        pointer: Value,
        /// The second operand.
        value: Value,
        /// How memory is accessed.
        access: Access,
    },
    /// The next variadic argument, of the instruction's type, from the list at `list`.
    VaArg {
        /// The `va_list`.
        list: Value,
    },
    /// An instruction that is read but cannot be executed, by its LLVM name.
    Unsupported {
        /// The LLVM name.
        name: &'static str,
    },
}

impl InstructionKind {
    /// Returns whether the instruction ends its block.
    pub fn is_terminator(&self) -> bool {
        use InstructionKind::*;
        match self {
            Invoke { .. } | CallBr { .. } | Return { .. } | Branch { .. } | CondBranch { .. } => {
                true
            }
            Switch { .. } | IndirectBranch { .. } | Unreachable | Resume { .. } => true,
            Unsupported { name } => matches!(*name, "cleanupret" | "catchret" | "catchswitch"),
            _ => false,
        }
    }
}

/// How memory is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Known alignment in bytes, a power of two; 0 if the record contains none.
    pub align: u64,
    /// Whether the access must not be removed or repeated.
    pub volatile: bool,
    /// Atomic ordering.
    pub ordering: Ordering,
    /// The threads to which the ordering applies.
    pub scope: SyncScope,
}

/// Atomic ordering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ordering {
    /// A plain access.
    NotAtomic,
    /// Never torn (Java).
    Unordered,
    /// `memory_order_relaxed`.
    Monotonic,
    /// `memory_order_acquire`.
    Acquire,
    /// `memory_order_release`.
    Release,
    /// `memory_order_acq_rel`.
    AcquireRelease,
    /// `memory_order_seq_cst`.
    SequentiallyConsistent,
}

/// The threads to which an atomic operation's ordering applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyncScope {
    /// Only signal handlers of the same thread.
    SingleThread,
    /// All threads.
    System,
    /// A target's own scope.
    Other,
}

/// Flags of arithmetic and of casts. The meaningful bits depend on the operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ArithmeticFlags {
    /// No unsigned wrap (add, sub, mul, shl, trunc).
    pub nuw: bool,
    /// No signed wrap (add, sub, mul, shl, trunc).
    pub nsw: bool,
    /// No remainder or shifted-out bits (udiv, sdiv, lshr, ashr).
    pub exact: bool,
    /// No common bits (or).
    pub disjoint: bool,
    /// The operand is not negative (zext, uitofp).
    pub nneg: bool,
    /// LLVM's fast-math bits, as in the bitcode.
    pub fast_math: u8,
}

/// Flags of address arithmetic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct GepFlags {
    /// Whether the result stays within the object.
    pub inbounds: bool,
    /// No signed-unsigned wrap of the address (implied by `inbounds`).
    pub nusw: bool,
    /// No unsigned wrap.
    pub nuw: bool,
}

/// Two-operand operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Named exactly as in LLVM.
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    UDiv,
    SDiv,
    URem,
    SRem,
    Shl,
    LShr,
    AShr,
    And,
    Or,
    Xor,
    FAdd,
    FSub,
    FMul,
    FDiv,
    FRem,
}

/// Conversions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Named exactly as in LLVM.
pub enum CastOp {
    Trunc,
    ZExt,
    SExt,
    FpToUi,
    FpToSi,
    UiToFp,
    SiToFp,
    FpTrunc,
    FpExt,
    PtrToInt,
    IntToPtr,
    BitCast,
    AddrSpaceCast,
    PtrToAddr,
}

/// Integer and pointer comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Named exactly as in LLVM.
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

/// Float comparisons: ordered (`O…`: false on NaN) and unordered (`U…`: true on NaN).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Named exactly as in LLVM.
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

/// The operation of an `atomicrmw` on the old and the given value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Named exactly as in LLVM.
pub enum AtomicOp {
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
}

/// An incoming edge of a phi.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhiEdge {
    /// The predecessor.
    pub block: BlockId,
    /// The value of the phi if control comes from there.
    pub value: Value,
}

/// One case of a switch; the constant has the type of the switched value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchCase {
    /// The value of the case.
    pub value: ConstId,
    /// The target of the case.
    pub target: BlockId,
}

/// One clause of a landing pad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clause {
    /// Whether the clause is a filter (exception specification) instead of a catch.
    pub filter: bool,
    /// Type info, or an array of type infos for a filter.
    pub value: Value,
}

/// A call, of any instruction.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The callee.
    pub callee: Value,
    /// The signature of the call.
    pub signature: TypeId,
    /// Arguments, fixed then variadic; a span of [`Function::operands`](super::Function).
    pub args: Span,
    /// Attributes at the call site.
    pub attributes: Option<AttributesId>,
    /// LLVM calling convention number (0 = C).
    pub calling_convention: u32,
    /// Tail call marker.
    pub tail: TailKind,
    /// LLVM's fast-math bits.
    pub fast_math: u8,
    /// Operand bundles; a span of [`Function::bundles`](super::Function).
    pub bundles: Span,
}

/// Tail call markers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Named exactly as in LLVM.
pub enum TailKind {
    None,
    Tail,
    MustTail,
    NoTail,
}

/// An operand bundle of a call.
#[derive(Clone, Copy, Debug)]
pub struct Bundle {
    /// Index of the bundle's tag in [`Module::bundle_tags`](super::Module::bundle_tags).
    pub tag: u32,
    /// The bundle's operands; a span of [`Function::operands`](super::Function).
    pub operands: Span,
}
