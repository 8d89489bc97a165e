//! Native programs under the kernel model. Ptrace stops their system calls, and the crate `linux`
//! answers them, one thread at a time. So a trace that the search found is replayed on the real
//! machine code.

#![deny(missing_docs)]

mod accesses;
mod activity;
mod allocations;
mod arithmetic;
mod call_numbers;
mod call_stack;
mod channel;
mod entries;
mod error;
mod events;
mod failing;
mod gate;
mod hosts;
mod instructions;
mod jumps;
mod known;
mod leaks;
mod libraries;
mod line_coverage;
mod machine;
mod memory_account;
mod namespace;
mod operands;
mod oracle;
mod panics;
mod points;
mod priorities;
mod proc_reads;
mod races;
mod replacements;
mod revealing;
mod sandbox;
mod shadow;
mod shared_files;
mod shared_memory;
mod structs;
mod tracee;
mod unwind;
mod variables;
mod watch;
mod watchdog;
mod zygote;

pub use accesses::{RandomSchedule, Survey};
pub use allocations::is_checked_build;
pub use call_stack::{CallOrigin, NativeFrame, NativeStack};
pub use error::NativeError;
pub use events::{Event, EventKind};
pub use hosts::{
    CheckTrigger, Checks, Deed, Guide, NativeHost, NativeNetwork, WorldRun, run_world,
};
pub use known::KnownPrograms;
pub use libraries::libraries;
pub use line_coverage::SourceLine;
pub use machine::{
    Deadline, NativeConfig, NativeEnd, NativeLimit, NativeRun, SentPacket, run, run_watched,
};
pub use oracle::{IsAt, Source};
pub use points::{Script, ScriptPoint};
pub use priorities::Order;
pub use revealing::revealing_instructions;
pub use sandbox::MAX_MEMORY;
pub use structs::{LayoutError, StructMember, struct_members};
pub use unwind::{Caller, FrameRegisters, UnwindTables};
pub use watch::{DetachedProcess, NoWatcher, StoppedRun, Watcher};
