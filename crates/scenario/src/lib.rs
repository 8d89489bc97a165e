//! Scenario files: hosts with their programs, the network between them, what can go wrong, what must hold, where to stop.
//! Text in, plain data out; errors have the place and the way out. Runs nothing.

mod faults;
mod hosts;
mod model;
mod placement;
mod read;
mod reader;
mod show;
mod source;
mod template;
mod toml_tree;
mod units;

pub use model::{
    Argument, BETWEEN_STARTS_NS, CallFaults, Check, CheckTime, EnvValue, Expectation, FileSource,
    HostSetup, Limits, Mapping, OtherProgram, Process, Scenario, Search, Start, Stdin, Watch,
};
pub use read::{load, parse};
pub use show::show;
pub use source::{Problem, Problems};

use std::path::Path;

/// Names that others know better.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NameKind {
    /// A searcher.
    Searcher,
    /// A scheduler of threads.
    Scheduler,
    /// Where threads can be preempted.
    Preempt,
    /// A failure of a system call, `CALL` or `CALL:ERRNO`.
    Failure,
    /// A system call.
    Call,
    /// A path to data of a program.
    Watched,
    /// The text of an invariant.
    Invariant,
}

/// What scenarios refer to.
pub trait NameContext {
    /// There is such a file.
    fn is_file(&self, path: &Path) -> bool;
    /// There is such a folder.
    fn is_folder(&self, path: &Path) -> bool;
    /// Says what is wrong with a name.
    fn check(&self, kind: NameKind, name: &str) -> Result<(), String> {
        let _ = (kind, name);
        Ok(())
    }
}

/// The real disk; any name will do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl NameContext for Disk {
    fn is_file(&self, path: &Path) -> bool {
        path.is_file()
    }

    fn is_folder(&self, path: &Path) -> bool {
        path.is_dir()
    }
}
