//! What a host is started with.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use everett_vm::ImageId;

use crate::bytes::Source;
use crate::faults::FaultOptions;
use crate::schedule::{PreemptAt, SchedulerKind};

/// What a host is started with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostConfig {
    /// The program that it is started with.
    pub image: ImageId,
    /// Arguments, the name of the program first.
    pub args: Vec<Argument>,
    /// Environment, each `NAME=value`.
    pub env: Vec<Argument>,
    /// What is read from descriptor 0.
    pub stdin: Stdin,
    /// Files that exist at the start, with the directories that lead to them.
    pub files: Vec<FileSpec>,
    /// Programs that `execve` can start.
    pub programs: Vec<ProgramSpec>,
    /// How the host behaves.
    pub options: HostOptions,
    /// The directory that the program is started in; made if it is not there.
    pub cwd: Vec<u8>,
    /// Addresses of the host, besides those of the loopback.
    pub addresses: Vec<IpAddr>,
    /// Addresses of other hosts that can be reached, and from which of its own. None, where it is the only host.
    pub routes: Vec<RouteSpec>,
    /// Where the bytes of `getrandom`, `/dev/urandom` and `AT_RANDOM` begin.
    pub random_seed: u64,
    /// Time of the wall clock at the start, in nanoseconds since 1970.
    pub start_time_ns: u64,
    /// Further processes that are there from the start.
    pub others: Vec<ProcessConfig>,
    /// Data of its programs that checks look at though nobody shows it.
    pub watches: Vec<crate::Watch>,
    /// What becomes of a program that sets it up itself.
    pub boot: crate::Boot,
}

/// A further process that a host starts with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessConfig {
    /// Its program.
    pub image: ImageId,
    /// Arguments, the name of the program first.
    pub args: Vec<Argument>,
    /// Environment, each `NAME=value`.
    pub env: Vec<Argument>,
    /// What it reads from descriptor 0.
    pub stdin: Stdin,
    /// The directory that it starts in; made if it is not there.
    pub cwd: Vec<u8>,
}

impl Default for HostConfig {
    fn default() -> HostConfig {
        HostConfig {
            image: ImageId::default(),
            args: vec![Argument::Concrete(b"program".to_vec())],
            env: Vec::new(),
            stdin: Stdin::Empty,
            files: Vec::new(),
            programs: Vec::new(),
            options: HostOptions::default(),
            cwd: b"/".to_vec(),
            addresses: vec![IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))],
            routes: Vec::new(),
            random_seed: 0,
            // 2020-01-01 00:00:00 UTC: any fixed day will do.
            start_time_ns: 1_577_836_800_000_000_000,
            others: Vec::new(),
            watches: Vec::new(),
            boot: crate::Boot::default(),
        }
    }
}

impl HostConfig {
    /// There are other hosts.
    pub fn is_networked(&self) -> bool {
        !self.routes.is_empty()
    }
}

/// Addresses of other hosts that can be reached.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RouteSpec {
    /// They begin like this one.
    pub network: IpAddr,
    /// With so many bits.
    pub prefix_len: u8,
    /// The address that sockets have there which have none.
    pub source: IpAddr,
}

impl RouteSpec {
    /// It is the way to this address.
    pub fn leads_to(&self, to: IpAddr) -> bool {
        let bits = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => u128::from(u32::from(ip)) << 96,
            IpAddr::V6(ip) => u128::from(ip),
        };
        let differ = bits(self.network) ^ bits(to);
        self.network.is_ipv4() == to.is_ipv4()
            && differ.leading_zeros() >= u32::from(self.prefix_len)
    }
}

/// How a host behaves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostOptions {
    /// Which threads run next.
    pub scheduler: SchedulerKind,
    /// Where a thread can be made to wait although it could go on.
    pub preempt_at: PreemptAt,
    /// A process that crashes ends the host; otherwise only the first one does.
    pub crashes_end_all: bool,
    /// What can be made to fail.
    pub faults: FaultOptions,
    /// System calls are written to a log.
    pub logs_calls: bool,
    /// So are packets.
    pub logs_packets: bool,
    /// So are the points between system calls at which another thread could have run.
    pub logs_points: bool,
    /// The host goes on after the end of its first process as long as there are others.
    pub waits_for_all: bool,
    /// A fault for which the process has a handler is the handler's affair; otherwise it is a finding.
    pub faults_to_handlers: bool,
    /// Whoever runs the host is asked before each system call whether it is made.
    pub stops_at_calls: bool,
}

impl Default for HostOptions {
    fn default() -> HostOptions {
        HostOptions {
            scheduler: SchedulerKind::default(),
            preempt_at: PreemptAt::default(),
            crashes_end_all: true,
            faults: FaultOptions::default(),
            logs_calls: false,
            logs_packets: false,
            logs_points: false,
            waits_for_all: false,
            faults_to_handlers: false,
            stops_at_calls: false,
        }
    }
}

/// A program that `execve` can start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramSpec {
    /// Where it lies; relative paths start at [`HostConfig::cwd`].
    pub path: Vec<u8>,
    /// Which it is.
    pub image: ImageId,
}

/// One or several strings of the command line or of the environment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Argument {
    /// These bytes (without the NUL at their end).
    Concrete(Vec<u8>),
    /// `--sym-arg N`: that many symbolic bytes, then NUL.
    Symbolic {
        /// How many.
        max_len: u32,
    },
    /// `--sym-args MIN MAX N`: between MIN and MAX of them.
    SymbolicMany {
        /// At least so many.
        min: u32,
        /// At most so many.
        max: u32,
        /// Symbolic bytes of each.
        max_len: u32,
    },
    /// Concrete bytes, then symbolic ones, then NUL: an environment variable with a symbolic value.
    Prefixed {
        /// The concrete bytes.
        prefix: Vec<u8>,
        /// Name of the symbolic input.
        name: String,
        /// How many symbolic bytes.
        max_len: u32,
    },
}

/// What is read from descriptor 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stdin {
    /// Nothing.
    Empty,
    /// These bytes, then the end.
    Concrete(Arc<[u8]>),
    /// That many symbolic bytes, then the end.
    Symbolic {
        /// How many.
        size: u32,
    },
    /// What the caller supplies when asked with [`crate::HostExit::NeedsInput`].
    Live,
}

/// What a file holds at the start.
#[derive(Clone, Debug)]
pub enum Contents {
    /// These bytes.
    Concrete(Arc<[u8]>),
    /// Bytes that are had when they are first asked for.
    Shared(Arc<dyn Source>),
    /// That many symbolic bytes.
    Symbolic {
        /// How many.
        size: u32,
    },
    /// Symbolic bytes of any number between these.
    SymbolicBetween {
        /// At least so many.
        least: u32,
        /// At most so many.
        most: u32,
    },
    /// It is a directory.
    Directory,
    /// It is a symbolic link.
    Link(Vec<u8>),
}

impl PartialEq for Contents {
    fn eq(&self, other: &Contents) -> bool {
        match (self, other) {
            (Contents::Concrete(own), Contents::Concrete(other)) => own == other,
            (Contents::Shared(own), Contents::Shared(other)) => Arc::ptr_eq(own, other),
            (Contents::Symbolic { size: own }, Contents::Symbolic { size: other }) => own == other,
            (
                Contents::SymbolicBetween { least, most },
                Contents::SymbolicBetween {
                    least: other_least,
                    most: other_most,
                },
            ) => (least, most) == (other_least, other_most),
            (Contents::Directory, Contents::Directory) => true,
            (Contents::Link(own), Contents::Link(other)) => own == other,
            _ => false,
        }
    }
}

impl Eq for Contents {}

/// A file that exists at the start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileSpec {
    /// Its path; relative ones start at [`HostConfig::cwd`].
    pub path: Vec<u8>,
    /// What it holds. The input of a symbolic file is named after it: `A-data`.
    pub contents: Contents,
    /// Permission bits, usually 0o644.
    pub mode: u32,
    /// User and group.
    pub owner: (u32, u32),
    /// When it was last written, in nanoseconds since 1970; the start of the host where it is not said.
    pub modified_ns: Option<u64>,
}

impl FileSpec {
    /// A file with these bytes.
    pub fn concrete(path: impl Into<Vec<u8>>, bytes: impl Into<Arc<[u8]>>) -> FileSpec {
        FileSpec::new(path, Contents::Concrete(bytes.into()), 0o644)
    }

    /// A file of root's.
    pub fn new(path: impl Into<Vec<u8>>, contents: Contents, mode: u32) -> FileSpec {
        FileSpec {
            path: path.into(),
            contents,
            mode,
            owner: (0, 0),
            modified_ns: None,
        }
    }

    /// A file of symbolic bytes.
    pub fn symbolic(path: impl Into<Vec<u8>>, size: u32) -> FileSpec {
        FileSpec::new(path, Contents::Symbolic { size }, 0o644)
    }
}
