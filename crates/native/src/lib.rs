//! Native programs under the kernel model. Ptrace traps their system calls, and crate `linux` answers them,
//! one thread at a time, so that a trace found symbolically is replayed on the real machine code.

mod allocations;
mod arithmetic;
mod channel;
mod events;
mod hosts;
mod instructions;
mod jumps;
mod leaks;
mod libraries;
mod nursery;
mod oracle;
mod place;
mod points;
mod races;
mod sandbox;
mod shadow;
mod shared_files;
mod tracee;
mod variables;
mod watch;
mod watchdog;
mod world;

pub use allocations::is_checked_build;
pub use events::{Event, Kind};
pub use hosts::{Checks, Guide, Moment, NativeHost, NativeNetwork, WorldRun, run_world};
pub use libraries::libraries;
pub use oracle::Source;
pub use place::{NativeFrame, NativeStack};
pub use points::{Point, Script, ScriptFinder};
pub use watch::{HandedOver, Nobody, Standing, Watcher};
pub use world::{NativeConfig, NativeEnd, NativeError, NativeRun, SentPacket, run, run_watched};
