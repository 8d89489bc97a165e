//! The kernel model of one host: the Linux system-call interface that a guest program runs on.
//!
//! A [`Host`] is a value: cloning it forks it. It never calls a solver, draws a random number or
//! reads a real clock; it asks the oracle for everything that is not determined. A guest cannot
//! reach the real machine: the host collects the output, and the caller supplies the input.
//!
//! Reading order, bottom up:
//! - plain data without knowledge of the host: `config`, `guest`, `errno`, `numbers`, `ids`,
//!   `bytes`, `queue`, `slots`, `outcome`, then the contents of the tables: `files`, `signals`,
//!   `wait`, `timers`, `ipc`, `packets`, `schedule`, `faults`, `process`;
//! - the tables together: `host` ([`Host`] and `HostState`), with `objects`. Modules above add
//!   methods to `HostState` that act on a table: `signal_sending`, `readiness`, `timer_expiry`,
//!   `owners`, `wire`, `generated_files`;
//! - the context of a system call: `kernel`, with `delivery`, `clone`, `exit` and `injection`;
//! - the handlers: `syscalls`, one row of `table` each;
//! - the drivers, which run threads: `dispatch` and `turns`, and `native` for native processes.
//!
//! `host`, `kernel` and `objects` use each other: an object is a part of the host's tables, and its
//! operations take the kernel, which borrows the host.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod boot;
mod bytes;
mod call_arguments;
mod capabilities;
mod clock_rate;
mod clone;
mod config;
mod delivery;
mod dispatch;
mod documentation;
mod errno;
mod event;
mod exec;
mod exit;
mod faults;
mod file_mappings;
mod files;
mod frames;
mod function_arguments;
pub mod functions;
mod generated_descriptors;
mod generated_files;
mod generated_ipc;
mod generated_mappings;
mod generated_network;
mod guest;
mod host;
mod ids;
mod injection;
mod ipc;
mod job_control;
mod kernel;
mod layers;
mod limits;
mod merging;
mod native;
mod native_files;
mod numbers;
mod objects;
mod ordering;
mod outcome;
mod owners;
mod packets;
mod process;
mod queue;
mod quota;
mod readiness;
mod refusals;
mod schedule;
mod setup;
mod signal_sending;
mod signals;
mod slots;
mod spinning;
mod strace;
mod symbolic_modes;
mod symbolic_paths;
mod syscalls;
mod table;
mod timer_expiry;
mod timers;
mod transfers;
mod turns;
mod wait;
mod watches;
mod wire;

#[cfg(test)]
mod tests;

pub use boot::StartValue;
pub use bytes::{ByteSource, Bytes, Output};
pub use call_arguments::shown_arguments_of;
pub use config::{
    Argument, BaseFiles, Boot, Contents, FaultFilter, FaultOptions, FileSpec, GuestLimits,
    HostConfig, HostOptions, HostStart, PreemptAt, ProcessConfig, ProgramSpec, RouteSpec, Stdin,
    SymbolicVariable, Watch, never_injected,
};
pub use documentation::documentation;
pub use errno::Errno;
pub use everett_vm::{ShownArgument, shown_arguments};
pub use faults::InjectedFailure;
pub use files::{ChangedFile, Disk, FileChange};
pub use frames::{Datagram, Frame, HardwareAddress, Hops, IpHeader, protocol};
pub use function_arguments::shown_arguments_of_function;
pub use guest::{Guest, GuestMapping, Injected, MappedFile, MemoryChange};
pub use host::{ExposedData, Host, Origin, Origins, Refusal, split_mix};
pub use ids::InodeId;
pub use injection::failures;
pub use native::{AuxiliaryValues, CallOutcome, MemoryRequest};
pub use outcome::{Ending, HostExit, Stream};
pub use packets::{Packet, PacketKind};
pub use process::{Execution, TaskName};
pub use schedule::{Policy, PreemptionPoint, SCHEDULERS, Scheduler};
pub use setup::{Interface, Machine, Route, Setup, Subnet};
pub use symbolic_modes::{is_mode, is_unusual_mode};
pub use syscalls::{row, rows};
pub use table::{ArgKind, Row, property};
