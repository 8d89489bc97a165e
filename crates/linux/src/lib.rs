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
mod calls;
mod config;
mod delivery;
mod dispatch;
mod documentation;
mod errno;
mod faults;
mod files;
mod host;
mod ipc;
mod kernel;
mod layers;
mod life;
mod limits;
mod names;
mod native;
mod native_files;
mod numbers;
mod objects;
mod packets;
mod process;
mod queue;
mod schedule;
mod setup;
mod shared;
mod signals;
mod slots;
mod syscalls;
mod table;
mod timers;
mod wait;
mod watched;
mod wire;

#[cfg(test)]
mod tests;

pub use bytes::{Bytes, Output, Source};
pub use config::{
    Argument, Contents, FileSpec, HostConfig, HostOptions, ProcessConfig, ProgramSpec, RouteSpec,
    Stdin,
};
pub use documentation::documentation;
pub use errno::Errno;
pub use faults::{FaultFilter, FaultOptions};
pub use files::{Disk, InodeId, Left, LeftFile};
pub use host::{Ending, ExposedData, Host, HostExit, Stream, split_mix};
pub use life::Execution;
pub use native::{Guest, Injected, Served, TaskName};
pub use native_files::{MappedFile, MemoryChange};
pub use packets::{Packet, PacketKind};
pub use schedule::{Passed, PreemptAt, SchedulerKind};
pub use setup::{Begin, Boot, Interface, Machine, Route, Setup, Subnet};
pub use table::{ArgKind, Row, row, rows};
pub use watched::Watch;
