//! What the explorer reports: how a path ended, and findings with their stacks and worlds.

use everett_linux::{ChangedFile, PreemptionPoint};
use everett_sim::Message;
use everett_vm::{Bug, BugKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::source::SourceFrame;
use crate::trace::Trace;
use crate::weight::Weight;

/// How a path ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PathEnding {
    /// The program ended with this status.
    Exit(i32),
    /// A signal ended the program.
    Signal(i32),
    /// The path ended in a finding of this kind.
    Bug(BugKind),
    /// All threads are blocked on events from outside.
    Idle,
    /// The host was powered off.
    Off,
    /// The program ended its path silently, or an assumption does not hold.
    Silent,
    /// A limit of the search cut the path off.
    Cut(&'static str),
}

/// A path that ended.
#[derive(Clone, Debug)]
pub struct PathEnd {
    /// How the path ended.
    pub ending: PathEnding,
    /// The inputs and choices that determine the path, if a test is wanted.
    pub trace: Option<Trace>,
    /// Whether the path was the first to execute some code.
    pub covered_new: bool,
    /// A digest of the answers on the path. It is the same on every machine and in every run.
    pub digest: u64,
    /// The weight of the path.
    pub weight: Weight,
    /// The number of forks on the path.
    pub depth: u32,
    /// The number of instructions on the path.
    pub instructions: u64,
    /// The log of system calls, if it is kept.
    pub calls: Vec<String>,
    /// Points between system calls at which another thread could have run, with their source
    /// locations, if they are logged.
    pub points: Vec<(PreemptionPoint, SourceFrame)>,
    /// The standard output and standard error, under the inputs of the trace.
    pub output: [Vec<u8>; 2],
    /// The files that the path changed, with their contents, if they are kept.
    pub files: Vec<(ChangedFile, Vec<u8>)>,
}

/// An argument of a function that a thread is in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrameArgument {
    /// The name of the parameter; empty if the compiler did not keep it.
    pub name: Box<str>,
    /// The value, unless it is symbolic.
    pub value: Option<u64>,
}

/// A finding: a path that ended in a bug.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The kind of the finding.
    pub kind: BugKind,
    /// A one-line description.
    pub message: String,
    /// The stack of the thread, innermost frame first.
    pub stack: Vec<SourceFrame>,
    /// Functions that the thread was in and their arguments, innermost first, inlined ones without.
    pub arguments: Vec<(String, Vec<FrameArgument>)>,
    /// Name, activity and stack of each thread, if there are several.
    pub threads: Vec<(String, Vec<SourceFrame>)>,
    /// The stack at which the memory concerned was allocated.
    pub allocated: Vec<SourceFrame>,
    /// The stack at which that memory was freed.
    pub freed: Vec<SourceFrame>,
    /// Failures that were injected since the last start of the host: what failed, and where.
    pub failures: Vec<(String, Vec<SourceFrame>)>,
    /// The exposed data that a broken invariant has read.
    pub values: Vec<ShownValue>,
    /// The inputs and choices that determine the path.
    pub trace: Trace,
    /// A digest of the answers on the path of the host with the finding. Unlike inputs, which are
    /// one solution of many, it is the same on every machine and in every run.
    pub digest: u64,
    /// The virtual time at the host.
    pub clock_ns: u64,
    /// The number of instructions on the path.
    pub instructions: u64,
    /// Standard output and standard error of the path.
    pub output: [Vec<u8>; 2],
    /// Files that the path changed, with their contents.
    pub files: Vec<(ChangedFile, Vec<u8>)>,
}

/// Data that a host exposes and that an invariant has read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ShownValue {
    /// The name of the host.
    pub host: String,
    /// The name of the state under which the data is exposed.
    pub state: String,
    /// The key of the data in that state.
    pub key: String,
    /// The bytes of the data.
    pub bytes: Vec<u8>,
    /// The stacks of the writes that set the data, if they are known.
    pub written: Vec<Vec<SourceFrame>>,
    /// The stack at which the data was exposed or sampled, if that is known.
    pub observed: Vec<SourceFrame>,
}

/// A request of a program that the kernel model refused or ignored, although Linux would fulfil it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Unsupported {
    /// The system call.
    pub call: String,
    /// The request.
    pub what: String,
    /// The function that made the request.
    pub function: String,
    /// The file of that function.
    pub file: String,
    /// The line in that file.
    pub line: u32,
    /// The largest number of such requests on one path.
    pub count: u64,
}

impl Unsupported {
    /// Returns whether both are the same request, apart from their counts.
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

/// Creates the finding for an uncaught signal.
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

/// The key of a finding: name of the kind, file, line and function, for panics with its column.
pub type FindingKey = (String, String, u32, String);

/// The findings that were reported, and how many paths ended in each. Clones share the index, so
/// that workers of one search report a finding once.
#[derive(Clone, Debug, Default)]
pub struct FindingIndex {
    counts: Arc<Mutex<BTreeMap<FindingKey, u64>>>,
}

impl FindingIndex {
    /// Counts a path. Returns `true` if it is the first with this finding.
    pub fn count(&mut self, key: FindingKey) -> bool {
        match self.counts().entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(1);
                true
            }
            Entry::Occupied(mut entry) => {
                *entry.get_mut() += 1;
                false
            }
        }
    }

    /// Takes and resets the counts. Reported findings stay known.
    pub(crate) fn take_counts(&mut self) -> Vec<(FindingKey, u64)> {
        let mut counts = self.counts();
        let taken = counts.iter_mut();
        let taken = taken.map(|(key, count)| (key.clone(), std::mem::take(count)));
        taken.filter(|(_, count)| *count > 0).collect()
    }

    /// Adds the count of a finding in another search, or in another part of this one.
    pub(crate) fn add(&mut self, key: FindingKey, count: u64) {
        *self.counts().entry(key).or_default() += count;
    }

    /// Returns whether the finding was reported before.
    pub fn contains(&self, key: &FindingKey) -> bool {
        self.counts().contains_key(key)
    }

    /// Returns the number of distinct findings.
    pub fn len(&self) -> usize {
        self.counts().len()
    }

    /// Returns whether there is no finding.
    pub fn is_empty(&self) -> bool {
        self.counts().is_empty()
    }

    /// Returns all findings, with the number of paths that ended in each.
    pub fn all(&self) -> Vec<(FindingKey, u64)> {
        let counts = self.counts();
        let all = counts.iter().map(|(key, count)| (key.clone(), *count));
        all.collect()
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<FindingKey, u64>> {
        // Every change is a single operation, so a panic leaves the map consistent.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The changed files of each host, with their contents.
pub type SavedFiles = BTreeMap<String, Vec<(ChangedFile, Vec<u8>)>>;

/// A finding in a world.
#[derive(Clone, Debug)]
pub struct WorldFinding {
    /// The finding itself.
    pub finding: Finding,
    /// The key of the finding: findings with equal keys count as the same.
    pub key: FindingKey,
    /// The name of the host with the finding.
    pub host: String,
    /// The inputs and choices that determine the path of every host.
    pub traces: BTreeMap<String, Trace>,
    /// The status of each host at that time, if one world is followed.
    pub host_status: Vec<HostStatus>,
    /// The messages between hosts up to that time, if one world is followed.
    pub messages: Vec<Message>,
}

impl WorldFinding {
    /// Creates the finding of a single program.
    pub fn alone(finding: Finding, host: &str, key: FindingKey) -> WorldFinding {
        WorldFinding {
            key,
            traces: BTreeMap::from([(host.to_owned(), finding.trace.clone())]),
            finding,
            host: host.to_owned(),
            host_status: Vec::new(),
            messages: Vec::new(),
        }
    }
}

/// The status of a host.
#[derive(Clone, Debug)]
pub struct HostStatus {
    /// The name of the host.
    pub name: String,
    /// The clock of the host.
    pub clock_ns: u64,
    /// The activity of the host, as text.
    pub doing: String,
    /// Whether the host is switched off: its threads and its log are gone.
    pub is_off: bool,
    /// The threads of the host: name, activity and stack.
    pub threads: Vec<(String, Vec<SourceFrame>)>,
    /// Failures that were injected since the last start of the host: what failed, and where.
    pub failures: Vec<(String, Vec<SourceFrame>)>,
    /// The log of system calls, if it is kept.
    pub calls: Vec<String>,
    /// Files that are kept, with their contents.
    pub files: Vec<(ChangedFile, Vec<u8>)>,
    /// Points between system calls that the host has passed since its last start, if they are
    /// logged.
    pub points: Vec<(PreemptionPoint, SourceFrame)>,
    /// How often the host was started before.
    pub restarts: u32,
}
