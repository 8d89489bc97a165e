//! Limits of the vm, and what it reports.

/// Options of the vm.
#[derive(Clone, Debug)]
pub struct VmOptions {
    /// Maximum call depth; a deeper call is a stack overflow.
    pub max_frames: usize,
    /// Number of nested calls beyond which a path is cut off, although the program can make more.
    pub most_frames: usize,
    /// Maximum stack size in bytes, counting slots and minimal frames; beyond it is a stack
    /// overflow.
    pub max_stack_bytes: u64,
    /// Upper bound for allocations of symbolic size.
    pub max_symbolic_size: u64,
    /// Maximum size of a single allocation; a larger one is reported.
    pub max_allocation: u64,
    /// Maximum number of positions that a write through a symbolic pointer may cover in one
    /// expression.
    pub max_positions: u64,
    /// Maximum number of positions that a read may cover; larger, because a read creates one term,
    /// and a write one per position.
    pub max_positions_read: u64,
    /// Report shifts by the width or more, in unoptimised code.
    pub check_shifts: bool,
    /// Report results that `nsw` and `nuw` exclude, in unoptimised code.
    pub check_overflow: bool,
    /// malloc and its family return null when this many bytes are live.
    pub max_heap: u64,
    /// Limit of [`made_bytes`](crate::made_bytes): an instruction that would exceed it is
    /// suspended.
    pub most_made: u64,
    /// The content of new stack slots and heap blocks is symbolic, and decisions on it are not
    /// reported.
    pub symbolic_memory: bool,
    /// Report decisions on uninitialised memory. Programs must be lowered without promotion of
    /// stack slots.
    pub check_uninitialised: bool,
    /// Report data races.
    pub check_races: bool,
    /// A `klee_assume` that no input fulfils ends the path without a finding.
    pub silent_assume: bool,
    /// Report what KLEE reports and a native program survives: a part of an object that is made
    /// symbolic, and `llvm.abs` of the least integer where its result is poison.
    pub as_klee: bool,
    /// Symbolic operands of operations on floats get one value; others are not explored.
    pub concretize_floats: bool,
    /// A condition is decided where it is computed, not only where the program branches on it.
    pub fork_conditions: bool,
    /// Log the last write to each byte, for reports about one path.
    pub log_writes: bool,
    /// Report uncaught exceptions and panics where they are thrown. Otherwise the program runs to
    /// its own end.
    pub report_uncaught: bool,
    /// Also report panics that the program or its libraries catch.
    pub report_caught_panics: bool,
}

impl Default for VmOptions {
    fn default() -> VmOptions {
        VmOptions {
            max_frames: 250_000,
            most_frames: usize::MAX,
            max_stack_bytes: 8 << 20,
            max_symbolic_size: 4096,
            max_allocation: 8 << 30,
            max_positions: 65_536,
            max_positions_read: 65_536,
            check_shifts: true,
            check_overflow: false,
            max_heap: 8 << 30,
            most_made: u64::MAX,
            symbolic_memory: false,
            check_uninitialised: false,
            check_races: false,
            silent_assume: false,
            as_klee: false,
            concretize_floats: false,
            fork_conditions: false,
            log_writes: false,
            report_uncaught: false,
            report_caught_panics: false,
        }
    }
}
