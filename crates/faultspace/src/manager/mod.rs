//! The manager of a test: a separate process that runs the commands of one scenario, injects its
//! faults, and records what happens.
//!
//! The search starts a manager for each test and gets one answer from it. The system under test can
//! harm its manager at most, and a manager that dies costs only its test. If the machine has
//! namespaces, the commands see no other processes, and their writes are discarded after the test.

mod call_arguments;
mod child;
pub(crate) mod core;
mod coverage;
mod files;
mod memory;
mod proxy;
mod sandbox;
mod sites;
mod stack;
mod steps;
mod streams;
mod supervise;
mod tracer;
mod virtual_files;

use everett::PlannedRun;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use crate::injector::Injection;
use crate::results::Isolation;
use crate::settings::Limits;

/// The job of a manager.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The working folder of the commands.
    pub folder: PathBuf,
    /// An empty folder for this job only.
    pub scratch: PathBuf,
    /// The command before the test.
    pub start: Option<Vec<String>>,
    /// The test command.
    pub test: Vec<String>,
    /// The command after the test and before cleanup, which prints the impact.
    pub measure: Option<Vec<String>>,
    /// The command after the test.
    pub cleanup: Option<Vec<String>>,
    /// The environment of the commands, in addition to the manager's.
    pub env: Vec<(String, String)>,
    /// The faults to inject.
    pub injection: Injection,
    /// The programs to inject into; all except shells if empty.
    pub programs: Vec<String>,
    /// Folders in which writes persist.
    pub writable: Vec<PathBuf>,
    /// Whether the commands use the machine's network instead of a separate one.
    #[serde(default)]
    pub shares_network: bool,
    /// The resource limits of the commands.
    pub limits: Limits,
    /// Whether to collect the lines that programs built with `--coverage` executed.
    pub sees_coverage: bool,
    /// Whether to collect the files that were changed.
    pub sees_files: bool,
}

/// A fault that happened.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Injected {
    /// The program.
    pub program: String,
    /// The function or system call.
    pub function: String,
    /// The number of the call.
    pub number: u64,
    /// The stack at the injection point, innermost frame first.
    pub stack: Vec<String>,
    /// The arguments of the call, without addresses.
    #[serde(default)]
    pub arguments: String,
}

/// A process that a crash signal ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Crash {
    /// The program.
    pub program: String,
    /// The signal.
    pub signal: i32,
    /// The stack at the crash, innermost frame first.
    pub stack: Vec<String>,
}

/// A call and where it comes from.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct SiteOfCall {
    /// The function or system call.
    pub function: String,
    /// The source line or the frame that it is called from.
    pub site: String,
    /// The digest of the whole stack.
    pub stack: String,
    /// The arguments of the call, without addresses.
    #[serde(default)]
    pub arguments: String,
}

/// How a command ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// With this exit code.
    Exit(i32),
    /// By a signal.
    Signal(i32),
    /// By the time limit.
    Timeout,
    /// By another limit.
    Limit(String),
    /// It could not be started.
    NotStarted(String),
}

impl Ended {
    /// Returns whether it exited with code 0.
    pub fn is_success(&self) -> bool {
        *self == Ended::Exit(0)
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ended::Exit(code) => write!(to, "exit {code}"),
            Ended::Signal(signal) => write!(to, "signal {signal}"),
            Ended::Timeout => to.write_str("no end in its time"),
            Ended::Limit(what) => write!(to, "limit of {what}"),
            Ended::NotStarted(why) => write!(to, "not started: {why}"),
        }
    }
}

/// The output of commands on a stream.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Output {
    /// The beginning, as text.
    pub text: String,
    /// The total number of bytes.
    pub bytes: u64,
    /// A digest of the beginning that is kept.
    pub digest: u64,
}

/// What a manager observed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Seen {
    /// How `start` failed, if it did.
    pub start_failure: Option<String>,
    /// How the test ended.
    pub test: Ended,
    /// How `cleanup` failed, if it did.
    pub cleanup_failure: Option<String>,
    /// Standard output and error output of the test.
    pub output: [Output; 2],
    /// Faults that happened.
    pub injected: Vec<Injected>,
    /// Processes that crashed.
    pub crashes: Vec<Crash>,
    /// Files below the folder that were created, changed or removed, with a digest of their
    /// content.
    pub files: BTreeMap<String, String>,
    /// Covered lines.
    pub coverage: Vec<String>,
    /// The output of the measuring command.
    pub measured: Option<String>,
    /// How the test was isolated from the machine.
    pub isolation: Isolation,
    /// The duration of the test.
    pub seconds: f64,
    /// How often programs called functions, if that was requested.
    pub calls: BTreeMap<String, u64>,
    /// How often a process called functions from each site at most, if that was requested.
    #[serde(default)]
    pub sites: Vec<(SiteOfCall, u64)>,
    /// The core file of the first crash, packed.
    #[serde(default)]
    pub core: Option<String>,
    /// What is wrong in a world besides crashes and hangs: an invariant, an expectation.
    #[serde(default)]
    pub wrong: Option<String>,
    /// Hosts of a world that do not end, and are not expected to wait.
    #[serde(default)]
    pub stuck: BTreeSet<String>,
    /// The run of a world in this process, from which a trace can be written.
    #[serde(skip)]
    pub(crate) world: WorldRun,
}

/// A run of a world, if there is one.
#[derive(Clone, Default)]
pub(crate) struct WorldRun(pub(crate) Option<Arc<PlannedRun>>);

impl PartialEq for WorldRun {
    fn eq(&self, _: &WorldRun) -> bool {
        // What was observed of it is in the other fields.
        true
    }
}

impl std::fmt::Debug for WorldRun {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "WorldRun({})", self.0.is_some())
    }
}

impl Seen {
    /// What was seen of a test that has not begun.
    fn nothing(isolation: Isolation) -> Seen {
        Seen {
            start_failure: None,
            test: Ended::Exit(0),
            cleanup_failure: None,
            output: Default::default(),
            injected: Vec::new(),
            crashes: Vec::new(),
            files: Default::default(),
            coverage: Vec::new(),
            measured: None,
            isolation,
            seconds: 0.0,
            calls: Default::default(),
            sites: Vec::new(),
            core: None,
            wrong: None,
            stuck: Default::default(),
            world: Default::default(),
        }
    }
}

/// Runs a manager: reads a [`Job`] as JSON, and writes its observations. Returns the exit code.
pub fn manage() -> i32 {
    let job: Job = match serde_json::from_reader(std::io::stdin().lock()) {
        Ok(job) => job,
        Err(error) => return answer(&Err(format!("its job is damaged: {error}"))),
    };
    sandbox::end_with_parent();
    match sandbox::enter(&job) {
        Ok(sandbox::Role::Outside(code)) => code,
        Ok(sandbox::Role::Inside(place)) => answer(&supervise::run(&job, &place)),
        Err(why) => answer(&Err(why)),
    }
}

/// Writes an answer.
fn answer(seen: &Result<Seen, String>) -> i32 {
    let bytes = serde_json::to_vec(seen).unwrap_or_default();
    match std::io::stdout()
        .write_all(&bytes)
        .and_then(|()| std::io::stdout().flush())
    {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

/// Returns a digest of bytes (FNV-1a).
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
        (digest ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}
