//! The kernel model of one host: the Linux system-call interface that a guest program runs on.
//!
//! A [`Host`] is a value: cloning it forks it. It never calls a solver, draws a random number or reads a real
//! clock; it asks the oracle for everything that is not determined. A guest cannot reach the real machine:
//! output is collected, input is supplied by the caller.
//!
//! Where to start reading, from the floor up:
//! - plain data without knowledge of the kernel: `config`, `guest`, `errno`, `numbers`, `bytes`, `queue`, `slots`;
//! - the tables: `host` ([`Host`] and `HostState`), with `process`, `files`, `objects`, `wait`, `signals`, `timers`
//!   and `ipc`, each of which adds the operations on its tables as methods of `HostState`;
//! - the context of a system call: `kernel`, with `delivery`, `clone`, `exit` and `faults`;
//! - the handlers: `syscalls`, one row of `table` each;
//! - the drivers, which run threads: `dispatch` and `schedule`, and `native` for native processes.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod boot;
mod bytes;
mod capabilities;
mod clone;
mod config;
mod delivery;
mod dispatch;
mod documentation;
mod errno;
mod exec;
mod exit;
mod faults;
mod file_mappings;
mod files;
mod frames;
mod guest;
mod host;
mod ipc;
mod kernel;
mod layers;
mod limits;
mod native;
mod native_files;
mod numbers;
mod objects;
mod owners;
mod packets;
mod process;
mod queue;
mod quota;
mod refusals;
mod schedule;
mod setup;
mod signals;
mod slots;
mod strace;
mod symbolic_paths;
mod syscalls;
mod table;
mod timers;
mod wait;
mod watches;
mod wire;

#[cfg(test)]
mod tests;

pub use bytes::{ByteSource, Bytes, Output};
pub use config::{
    Argument, Contents, FaultFilter, FaultOptions, FileSpec, GuestLimits, HostConfig, HostOptions,
    PreemptAt, ProcessConfig, ProgramSpec, RouteSpec, Stdin,
};
pub use documentation::documentation;
pub use errno::Errno;
pub use faults::InjectedFailure;
pub use files::{ChangedFile, Disk, FileChange, InodeId};
pub use frames::{Frame, HardwareAddress, IpHeader, protocol};
pub use guest::{Guest, Injected, MappedFile, MemoryChange};
pub use host::{Ending, ExposedData, Host, HostExit, Origin, Origins, Stream, split_mix};
pub use native::CallOutcome;
pub use packets::{Packet, PacketKind};
pub use process::{Execution, TaskName};
pub use refusals::Refusal;
pub use schedule::{Policy, PreemptionPoint, SCHEDULERS, Scheduler};
pub use setup::{Boot, HostStart, Interface, Machine, Route, Setup, Subnet};
pub use syscalls::{row, rows};
pub use table::{ArgKind, Row};
pub use watches::Watch;
