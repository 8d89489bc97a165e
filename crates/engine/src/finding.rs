//! What the explorer reports: how a path ended, and findings with their stacks and worlds.

use everett_linux::{ChangedFile, PreemptionPoint};
use everett_sim::Message;
use everett_vm::{Bug, BugKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::source::{SourceFrame, principal};
use crate::trace::Trace;
use crate::weight::Weight;

/// How a path ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PathEnding {
    /// The program ended with this status.
    Exit(i32),
    /// A signal ended it.
    Signal(i32),
    /// Something is wrong.
    Bug(BugKind),
    /// All threads wait for what only the outside could send.
    Idle,
    /// The host was switched off.
    Off,
    /// The program asked that the path ends silently, or an assumption does not hold.
    Silent,
    /// A limit of the search cut it off.
    Cut(&'static str),
}

/// A path that ended.
#[derive(Clone, Debug)]
pub struct PathEnd {
    /// How.
    pub ending: PathEnding,
    /// Inputs and choices that lead there. Only where a test is wanted.
    pub trace: Option<Trace>,
    /// It executed something that no path before it did.
    pub covered_new: bool,
    /// A digest of the answers that led there: the same wherever and whenever the path is explored.
    pub digest: u64,
    /// Its weight.
    pub weight: Weight,
    /// Forks on the path.
    pub depth: u32,
    /// Instructions on the path.
    pub instructions: u64,
    /// The log of system calls, where it was asked for.
    pub calls: Vec<String>,
    /// Points between system calls at which another thread could have run, where they were asked for, with their
    /// places in the source.
    pub points: Vec<(PreemptionPoint, SourceFrame)>,
    /// What it wrote to standard output and standard error, under the inputs of the trace.
    pub output: [Vec<u8>; 2],
    /// Files that it changed, with their contents, where they are asked for.
    pub files: Vec<(ChangedFile, Vec<u8>)>,
}

/// A finding: a path that ended in something wrong.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What kind.
    pub kind: BugKind,
    /// One line for people.
    pub message: String,
    /// Where, innermost first.
    pub stack: Vec<SourceFrame>,
    /// Where there are several threads: name, activity and stack of each.
    pub threads: Vec<(String, Vec<SourceFrame>)>,
    /// Where the memory concerned was allocated.
    pub allocated: Vec<SourceFrame>,
    /// Where it was freed.
    pub freed: Vec<SourceFrame>,
    /// Failures that were injected since the host was started last: what failed, and where.
    pub failures: Vec<(String, Vec<SourceFrame>)>,
    /// The exposed data that a broken invariant has read.
    pub values: Vec<ShownValue>,
    /// Inputs and choices that lead there.
    pub trace: Trace,
    /// Virtual time at the host.
    pub clock_ns: u64,
    /// Instructions on the path.
    pub instructions: u64,
    /// What the path wrote to standard output and standard error.
    pub output: [Vec<u8>; 2],
    /// Files that the path changed, with their contents.
    pub files: Vec<(ChangedFile, Vec<u8>)>,
}

/// Data that a host exposes and that an invariant has read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ShownValue {
    /// The host.
    pub host: String,
    /// The state that it is exposed under.
    pub state: String,
    /// Its key there.
    pub key: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The stacks of the writes that set it, if they are known.
    pub written: Vec<Vec<SourceFrame>>,
    /// The stack at which it was exposed or sampled, if that is known.
    pub observed: Vec<SourceFrame>,
}

/// Something that a program asked for and that the kernel model refused or ignored, although Linux would do it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Unsupported {
    /// The system call.
    pub call: String,
    /// What was asked for.
    pub what: String,
    /// The function that asked.
    pub function: String,
    /// Its file.
    pub file: String,
    /// The line there.
    pub line: u32,
    /// How often, at most, on one path.
    pub count: u64,
}

impl Unsupported {
    /// They are the same but for how often.
    pub fn is_same(&self, other: &Unsupported) -> bool {
        let key = |one: &Unsupported| {
            (
                one.call.clone(),
                one.what.clone(),
                one.file.clone(),
                one.line,
            )
        };
        key(self) == key(other)
    }
}

/// The finding of an uncaught signal.
pub fn uncaught_signal(signal: i32) -> Bug {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => "a signal",
    };
    let message = format!("{name} (signal {signal}) ended the program");
    Bug::new(BugKind::Signal, message)
}

/// The key of a finding: name of the kind, file, line and function.
pub type FindingKey = (String, String, u32, String);

/// Findings that were reported, and how many paths ended in each. Clones share them: workers of one search report a
/// finding once.
#[derive(Clone, Debug, Default)]
pub struct FindingIndex {
    counts: Arc<Mutex<BTreeMap<FindingKey, u64>>>,
}

impl FindingIndex {
    /// Counts a path; `true` if it is the first of its finding.
    pub fn count(&mut self, key: FindingKey) -> bool {
        let mut counts = self.counts();
        let count = counts.entry(key).or_insert(0);
        *count += 1;
        *count == 1
    }

    /// Adds how often it was counted in another search, or in another part of it.
    pub(crate) fn add(&mut self, key: FindingKey, count: u64) {
        *self.counts().entry(key).or_default() += count;
    }

    /// It was counted before.
    pub fn contains(&self, key: &FindingKey) -> bool {
        self.counts().contains_key(key)
    }

    /// How many different findings there are.
    pub fn len(&self) -> usize {
        self.counts().len()
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.counts().is_empty()
    }

    /// All, with the number of paths that ended in each.
    pub fn all(&self) -> Vec<(FindingKey, u64)> {
        let counts = self.counts();
        let all = counts.iter().map(|(key, count)| (key.clone(), *count));
        all.collect()
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<FindingKey, u64>> {
        // Every change is a single one, so what a panic leaves is whole.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Files that programs of hosts want to have written down, and what they hold.
pub type SavedFiles = BTreeMap<String, Vec<(ChangedFile, Vec<u8>)>>;

/// A finding in a world.
#[derive(Clone, Debug)]
pub struct WorldFinding {
    /// The finding itself.
    pub finding: Finding,
    /// What is the same finding: kind, file, line and function, with what else tells findings of a world apart.
    pub key: FindingKey,
    /// The host that it is on.
    pub host: String,
    /// What leads there: inputs and choices of every host.
    pub traces: BTreeMap<String, Trace>,
    /// What each host was doing then, where one world is followed.
    pub host_status: Vec<HostStatus>,
    /// What hosts had sent each other, where one world is followed.
    pub messages: Vec<Message>,
}

impl WorldFinding {
    /// A finding of a program on its own.
    pub fn alone(finding: Finding, host: &str) -> WorldFinding {
        let place = principal(&finding.stack).cloned().unwrap_or_default();
        let kind = finding.kind.name().to_owned();
        WorldFinding {
            key: (kind, place.file, place.line, place.function),
            traces: BTreeMap::from([(host.to_owned(), finding.trace.clone())]),
            finding,
            host: host.to_owned(),
            host_status: Vec::new(),
            messages: Vec::new(),
        }
    }
}

/// What a host was doing.
#[derive(Clone, Debug)]
pub struct HostStatus {
    /// Its name.
    pub name: String,
    /// Its clock.
    pub clock_ns: u64,
    /// What it was doing, for people.
    pub doing: String,
    /// Its threads: name, activity and stack.
    pub threads: Vec<(String, Vec<SourceFrame>)>,
    /// Failures that were injected since it was started last: what failed, and where.
    pub failures: Vec<(String, Vec<SourceFrame>)>,
    /// The log of its system calls, where it keeps one.
    pub calls: Vec<String>,
    /// Files that are kept, with their contents.
    pub files: Vec<(ChangedFile, Vec<u8>)>,
    /// Points between system calls that it has passed since it was started last, where they are logged.
    pub points: Vec<(PreemptionPoint, SourceFrame)>,
    /// How often it was started before.
    pub restarts: u32,
}
