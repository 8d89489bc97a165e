//! The kernel model of one host: the Linux system-call interface that a guest program runs on.
//!
//! A [`Host`] is a value: cloning it forks it. It never calls a solver, draws a random number or reads a real
//! clock; it asks the oracle for everything that is not determined. A guest cannot reach the real machine:
//! output is collected, input is supplied by the caller.
//!
//! Layers, from the floor up: data types of the kernel (`process`, `files`, `objects`, `wait`, `signals`,
//! `timers`, `ipc`), the tables of a host (`host`), the context of a system call (`kernel`), the handlers
//! (`syscalls`, with their table in `table`), and the drivers that run threads (`dispatch`, `schedule`, and
//! `native` for native processes).

mod boot;
mod bytes;
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
mod host;
mod ipc;
mod kernel;
mod layers;
mod limits;
mod native;
mod native_files;
mod numbers;
mod objects;
mod packets;
mod process;
mod queue;
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
    Argument, Contents, FileSpec, HostConfig, HostOptions, ProcessConfig, ProgramSpec, RouteSpec,
    Stdin,
};
pub use documentation::documentation;
pub use errno::Errno;
pub use faults::{FaultFilter, FaultOptions};
pub use files::{ChangedFile, Disk, FileChange, InodeId};
pub use host::{Ending, ExposedData, Host, HostExit, Stream, split_mix};
pub use native::{CallOutcome, Guest, Injected, TaskName};
pub use native_files::{MappedFile, MemoryChange};
pub use packets::{Packet, PacketKind};
pub use process::Execution;
pub use schedule::{PreemptAt, PreemptionPoint, SchedulerKind};
pub use setup::{Begin, Boot, Interface, Machine, Route, Setup, Subnet};
pub use table::{ArgKind, Row, row, rows};
pub use watches::Watch;
