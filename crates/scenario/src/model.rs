//! What a scenario says, with everything filled in: plain data.

use std::path::PathBuf;

use everett_net::{Faults, HostIndex, Topology};

/// A world to explore.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// Name of its file, without the ending.
    pub name: String,
    /// The folder that relative paths start from, but those of `begin`.
    pub folder: PathBuf,
    /// What runs on the hosts, in the order of [`Topology::hosts`].
    pub hosts: Vec<HostSetup>,
    /// Where they are.
    pub topology: Topology,
    /// What can go wrong between them and to them.
    pub faults: Faults,
    /// What must hold.
    pub checks: Vec<Check>,
    /// Where to stop.
    pub limits: Limits,
    /// How to explore.
    pub search: Search,
}

/// Time between the starts of hosts that do not say when they begin.
pub const BETWEEN_STARTS_NS: u64 = 10_000_000;

impl Scenario {
    /// When each host begins; `None` where that is when those before it wait.
    pub fn start_times(&self) -> Vec<Option<u64>> {
        let mut next_ns = 0;
        let start = |setup: &HostSetup| match setup.start {
            Start::At(time) => Some(time),
            Start::Blocked => None,
            Start::InTurn => {
                next_ns += BETWEEN_STARTS_NS;
                Some(next_ns - BETWEEN_STARTS_NS)
            }
        };
        self.hosts.iter().map(start).collect()
    }
}

/// What runs on a host.
#[derive(Clone, PartialEq, Debug)]
pub struct HostSetup {
    /// Which host.
    pub index: HostIndex,
    /// Its name.
    pub name: String,
    /// Its key in the scenario, the same for all hosts of one `count`.
    pub group: String,
    /// Its number among those.
    pub number: u32,
    /// What it executes, the first one first.
    pub processes: Vec<Process>,
    /// Further programs that `execve` can start.
    pub programs: Vec<OtherProgram>,
    /// What is on its disk.
    pub files: Vec<FileSource>,
    /// When it begins.
    pub start: Start,
    /// The trace that leads its program to where it begins, where the program sets up the host itself.
    pub begin: Option<PathBuf>,
    /// When it is switched off.
    pub stop_ns: Option<u64>,
    /// By how much its clock is ahead of the world's.
    pub clock_skew_ns: i64,
    /// What its clock says is not determined, beyond that it goes forward.
    pub symbolic_clock: bool,
    /// Which thread runs next, as `--scheduler` says it.
    pub scheduler: Option<String>,
    /// Where threads can be preempted, as `--preempt` says it.
    pub preempt: Option<String>,
    /// System calls that fail.
    pub call_faults: CallFaults,
    /// It is at its end when all processes are.
    pub wait_all: bool,
    /// Handlers of signals deal with faults.
    pub trust_handlers: bool,
    /// What is looked at for checks.
    pub watches: Vec<Watch>,
}

/// A program that runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Process {
    /// Its name.
    pub name: String,
    /// The program, as built.
    pub program: PathBuf,
    /// Its arguments, without its own name.
    pub args: Vec<Argument>,
    /// Its environment; it has no other.
    pub env: Vec<(String, EnvValue)>,
    /// What it reads from descriptor 0.
    pub stdin: Stdin,
    /// The directory that it starts in.
    pub cwd: Option<String>,
    /// How it has to end.
    pub expect: Option<Expectation>,
}

/// A program that `execve` can start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OtherProgram {
    /// Where it is on this disk.
    pub program: PathBuf,
    /// Where the guest finds it, if not there.
    pub guest_path: Option<String>,
}

/// One or several arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Argument {
    /// This one.
    Text(String),
    /// One of at most so many symbolic bytes.
    Symbolic {
        /// Most bytes.
        length: u32,
    },
    /// Several such.
    SymbolicMany {
        /// At least so many arguments.
        least: u32,
        /// At most so many.
        most: u32,
        /// Most bytes of each.
        length: u32,
    },
}

/// The value of a variable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EnvValue {
    /// This one.
    Text(String),
    /// At most so many symbolic bytes.
    Symbolic {
        /// Most bytes.
        length: u32,
    },
}

/// What is read from descriptor 0.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Stdin {
    /// Nothing.
    #[default]
    Empty,
    /// This.
    Text(String),
    /// What is in this file.
    File(PathBuf),
    /// So many symbolic bytes.
    Symbolic {
        /// How many.
        size: u32,
    },
}

/// Something on the disk of a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileSource {
    /// What is in this folder, in the directory that the program starts in (`--files`).
    Folder(PathBuf),
    /// A file or folder of this disk (`--ro`).
    Mount {
        /// Where it is here.
        from: PathBuf,
        /// Where the guest finds it.
        to: String,
    },
    /// A file of this disk (`--file`).
    File {
        /// Where the guest finds it.
        to: String,
        /// Where it is here.
        from: PathBuf,
    },
    /// A file with this text.
    Text {
        /// Where the guest finds it.
        to: String,
        /// What is in it.
        text: String,
    },
    /// A file of symbolic bytes (`--sym-file`).
    Symbolic {
        /// Where the guest finds it.
        to: String,
        /// At least so many bytes.
        least: u32,
        /// At most so many.
        most: u32,
    },
}

/// When a host begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Start {
    /// A little after the host before it that does not say when either.
    #[default]
    InTurn,
    /// When all hosts before it wait for something or have ended.
    Blocked,
    /// At this time.
    At(u64),
}

/// System calls that fail, as with `--faults` and its like.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CallFaults {
    /// Most failures on a path.
    pub most: u32,
    /// Only these: `CALL` or `CALL:ERRNO`.
    pub only: Vec<String>,
    /// Only in processes that execute a program of one of these names.
    pub programs: Vec<String>,
    /// Only where the program asks for it.
    pub in_regions: bool,
    /// Bytes of streams arrive in up to so many pieces.
    pub fragments: u32,
}

/// How a process has to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expectation {
    /// It exits, with this code or any.
    Exit(Option<u8>),
    /// A signal ends it, this or any.
    Signal(Option<u8>),
    /// It is still there when the world ends.
    Running,
}

/// Data of a program that checks look at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Watch {
    /// As checks name it.
    pub key: String,
    /// The state that it belongs to, as checks name it.
    pub state: String,
    /// A global variable or a part of one, such as `server.table.count`.
    pub path: String,
}

/// An invariant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// Its name.
    pub name: String,
    /// The file that it is in; `None` where the scenario has the text itself.
    pub file: Option<PathBuf>,
    /// Its text, where the scenario has it.
    pub text: Option<String>,
    /// Line and column of the scenario where that text begins, for errors in it.
    pub line: u32,
    /// When it is looked at.
    pub when: Vec<CheckTime>,
}

/// When an invariant is looked at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CheckTime {
    /// When what it looks at changes.
    Change,
    /// At the end of a world.
    End,
    /// Once before the end of a world it must have held.
    Eventually,
    /// At this time.
    At(u64),
}

/// Where to stop.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// Time of the whole command.
    pub time_ns: Option<u64>,
    /// Memory above which states are put away.
    pub memory_bytes: Option<u64>,
    /// Paths that have ended.
    pub paths: Option<u64>,
    /// Forks.
    pub forks: Option<u64>,
    /// Forks of one path.
    pub depth: Option<u64>,
    /// Instructions of one path.
    pub instructions: Option<u64>,
    /// Messages and timers of one world.
    pub events: Option<u64>,
    /// Time that goes by in a world.
    pub virtual_time_ns: Option<u64>,
}

/// How states of hosts are combined into worlds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mapping {
    /// Copy on branch.
    Cob,
    /// Copy on write.
    Cow,
    /// Super distributed states.
    #[default]
    Sds,
}

impl Mapping {
    /// All, by name.
    pub const ALL: [(&'static str, Mapping); 3] = [
        ("cob", Mapping::Cob),
        ("cow", Mapping::Cow),
        ("sds", Mapping::Sds),
    ];

    /// As in scenarios and on the command line.
    pub fn name(self) -> &'static str {
        let found = Mapping::ALL.iter().find(|(_, mapping)| *mapping == self);
        found.map_or("", |(name, _)| name)
    }
}

/// How to explore.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Search {
    /// Searchers that take turns; the usual ones where there are none.
    pub searchers: Vec<String>,
    /// How states are combined.
    pub mapping: Mapping,
    /// How many deviations from the order of arrival are explored.
    pub orders: u32,
    /// Seed of everything random.
    pub seed: u64,
}
