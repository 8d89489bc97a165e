//! The kernel model of one host: what lies under a program at the Linux system-call interface.
//!
//! A [`Host`] is a value: cloning it forks it. It never asks a solver, never draws a random number and never
//! looks at a real clock; what is not determined it asks of the oracle. Nothing that a guest does reaches the
//! real machine: output is collected, input is supplied by the caller.

mod boot;
mod bytes;
mod config;
mod documentation;
mod errno;
mod files;
mod host;
mod kernel;
mod names;
mod numbers;
mod process;
mod syscalls;
mod table;

#[cfg(test)]
mod tests;

pub use bytes::{Bytes, Output};
pub use config::{Argument, Contents, FileSpec, HostConfig, Stdin};
pub use documentation::documentation;
pub use errno::Errno;
pub use host::{Ending, Host, HostExit, Stream};
pub use process::{Process, Task};
pub use table::{ArgKind, Row, rows};
