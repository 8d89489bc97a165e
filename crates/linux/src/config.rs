//! The configuration of a host.

use everett_vm::{FailingFunction, ImageId};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

use crate::bytes::ByteSource;
use crate::errno::Errno;
use crate::files::Files;
use crate::function_arguments::shown_arguments_of_function;
use crate::functions::{self, CALLED, FUNCTIONS, STREAMS, called};
use crate::schedule::Scheduler;

/// The configuration of a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostConfig {
    /// The program of its first process.
    pub image: ImageId,
    /// Command line, program name first.
    pub args: Vec<Argument>,
    /// Environment, each `NAME=value`.
    pub env: Vec<Argument>,
    /// Contents of descriptor 0.
    pub stdin: Stdin,
    /// Files that exist at boot. Missing parent directories are created.
    pub files: Vec<FileSpec>,
    /// Programs that `execve` can start.
    pub programs: Vec<ProgramSpec>,
    /// What the guest reads in the files of programs, by image. A program that has none here is a
    /// file with the first bytes of ELF.
    pub program_contents: Vec<Option<Contents>>,
    /// Options of the host.
    pub options: HostOptions,
    /// The working directory of the first process; created if it does not exist.
    pub cwd: Vec<u8>,
    /// IP addresses of the host, besides the loopback addresses.
    pub addresses: Vec<IpAddr>,
    /// Routes to other hosts; none if there is no other host.
    pub routes: Vec<RouteSpec>,
    /// Seed of `getrandom`, `/dev/urandom` and `AT_RANDOM`.
    pub random_seed: u64,
    /// Wall-clock time at the start, in nanoseconds since 1970.
    pub start_time_ns: u64,
    /// Further processes that exist at boot.
    pub others: Vec<ProcessConfig>,
    /// Variables that invariants read although no program exposes them.
    pub watches: Vec<Watch>,
    /// Variables of the first program that are symbolic when it starts.
    pub variables: Vec<SymbolicVariable>,
    /// What happens when a program declares itself to be a host.
    pub boot: Boot,
    /// The files that every host has, made at the first boot.
    pub base: BaseFiles,
}

/// The files that every host has, shared by all boots of a host: states that are rematerialised
/// begin with a boot. It says nothing about the host, so all are equal.
#[derive(Clone, Default)]
pub struct BaseFiles(Arc<OnceLock<(u64, Files)>>);

impl BaseFiles {
    /// Returns the files at a time.
    pub(crate) fn at(&self, now_ns: u64) -> Result<Files, Errno> {
        if let Some((at, files)) = self.0.get()
            && *at == now_ns
        {
            return Ok(files.clone());
        }
        let files = Files::new(now_ns)?;
        let _ = self.0.set((now_ns, files.clone()));
        Ok(files)
    }
}

impl PartialEq for BaseFiles {
    fn eq(&self, _: &BaseFiles) -> bool {
        true
    }
}

impl Eq for BaseFiles {}

impl std::fmt::Debug for BaseFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BaseFiles")
    }
}

/// A further process that a host boots with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessConfig {
    /// Its program.
    pub image: ImageId,
    /// Command line, program name first.
    pub args: Vec<Argument>,
    /// Environment, each `NAME=value`.
    pub env: Vec<Argument>,
    /// Contents of its descriptor 0.
    pub stdin: Stdin,
    /// Its working directory; created if it does not exist.
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
            program_contents: Vec::new(),
            options: HostOptions::default(),
            cwd: b"/".to_vec(),
            addresses: vec![IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))],
            routes: Vec::new(),
            random_seed: 0,
            // 2020-01-01 00:00:00 UTC: an arbitrary fixed date.
            start_time_ns: 1_577_836_800_000_000_000,
            others: Vec::new(),
            watches: Vec::new(),
            variables: Vec::new(),
            boot: Boot::default(),
            base: BaseFiles::default(),
        }
    }
}

impl HostConfig {
    /// Whether there are other hosts.
    pub fn is_networked(&self) -> bool {
        !self.routes.is_empty()
    }
}

/// A route to other hosts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RouteSpec {
    /// Network address.
    pub network: IpAddr,
    /// Prefix length, in bits.
    pub prefix_len: u8,
    /// Source address of sockets that are not bound to one.
    pub source: IpAddr,
    /// The router that leads there; `None` for a network of the host itself.
    pub gateway: Option<IpAddr>,
}

impl RouteSpec {
    /// Whether an address matches this route.
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

/// Options of a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostOptions {
    /// The scheduling policy.
    pub scheduler: Scheduler,
    /// Where a runnable thread can be preempted.
    pub preempt_at: PreemptAt,
    /// A crash of any process ends the host; otherwise only a crash of the first process does.
    pub crashes_end_all: bool,
    /// Which failures can be injected.
    pub faults: FaultOptions,
    /// Log system calls.
    pub logs_calls: bool,
    /// Log packets.
    pub logs_packets: bool,
    /// Log preemption points between system calls.
    pub logs_points: bool,
    /// The host continues after its first process has exited, as long as there are others.
    pub waits_for_all: bool,
    /// A fault for which the process has a signal handler is not a finding.
    pub faults_to_handlers: bool,
    /// Stop before each system call, so that the driver of the host can decide whether the call is
    /// made.
    pub stops_at_calls: bool,
    /// Random bytes and the wall clock are symbolic: programs may read any value.
    pub symbolic_draws: bool,
    /// The times of unchanged files fork the state: as configured, old, or in the future.
    pub symbolic_file_times: bool,
    /// The modes of symbolic files and streams are symbolic.
    pub symbolic_file_modes: bool,
    /// Standard output is one of these streams.
    pub symbolic_stdout: bool,
    /// Limits on what its programs use.
    pub limits: GuestLimits,
    /// How long the host has been up at the start, which the monotonic clocks include.
    pub uptime_ns: u64,
    /// The process id of the first program.
    pub first_pid: u32,
    /// How many thousands of ephemeral ports are already used up.
    pub skipped_ports: u32,
    /// Paths of Unix sockets that lead to live peers, and the addresses of these peers.
    pub peer_paths: Arc<Vec<(Vec<u8>, SocketAddr)>>,
}

/// Limits that keep the programs of a host from exhausting Everett's memory.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct GuestLimits {
    /// Maximum bytes of output; a program that prints more is ended.
    pub output: u64,
    /// Maximum bytes that files hold; writes beyond that fail.
    pub files: u64,
    /// Maximum number of threads of all processes.
    pub tasks: usize,
    /// Maximum number of system calls of a native run; a run that makes more counts as endless.
    pub calls: u64,
}

impl Default for GuestLimits {
    fn default() -> GuestLimits {
        GuestLimits {
            output: 256 << 20,
            files: 1 << 30,
            tasks: 1024,
            calls: 1_000_000,
        }
    }
}

impl Default for HostOptions {
    fn default() -> HostOptions {
        HostOptions {
            scheduler: Scheduler::default(),
            preempt_at: PreemptAt::default(),
            crashes_end_all: true,
            faults: FaultOptions::default(),
            logs_calls: false,
            logs_packets: false,
            logs_points: false,
            waits_for_all: false,
            faults_to_handlers: false,
            stops_at_calls: false,
            symbolic_draws: false,
            symbolic_file_times: false,
            symbolic_file_modes: false,
            symbolic_stdout: false,
            limits: GuestLimits::default(),
            uptime_ns: 100_000_000_000,
            first_pid: 1000,
            skipped_ports: 0,
            peer_paths: Arc::default(),
        }
    }
}

/// A program that `execve` can start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramSpec {
    /// Its path; relative paths start at [`HostConfig::cwd`].
    pub path: Vec<u8>,
    /// The program.
    pub image: ImageId,
}

/// One or several strings of the command line or of the environment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Argument {
    /// These bytes, without the terminating NUL.
    Concrete(Vec<u8>),
    /// `--sym-arg N`: this many symbolic bytes, then NUL.
    Symbolic {
        /// Number of symbolic bytes.
        max_len: u32,
    },
    /// `--sym-args MIN MAX N`: between MIN and MAX symbolic arguments.
    SymbolicMany {
        /// The least number of arguments.
        min: u32,
        /// The largest number of arguments.
        max: u32,
        /// Symbolic bytes of each argument.
        max_len: u32,
    },
    /// Concrete bytes, then symbolic ones, then NUL: an environment variable with a symbolic value.
    Prefixed {
        /// The concrete bytes.
        prefix: Vec<u8>,
        /// Name of the symbolic input.
        name: String,
        /// Number of symbolic bytes.
        max_len: u32,
    },
}

/// Contents of descriptor 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stdin {
    /// Nothing.
    Empty,
    /// These bytes, then end of file.
    Concrete(Arc<[u8]>),
    /// This many symbolic bytes, then end of file.
    Symbolic {
        /// Number of symbolic bytes.
        size: u32,
    },
    /// Bytes that the caller supplies when it gets [`crate::HostExit::NeedsInput`].
    Live,
}

/// Contents of a file at boot.
#[derive(Clone, Debug)]
pub enum Contents {
    /// These bytes.
    Concrete(Arc<[u8]>),
    /// Bytes that are loaded when they are first read.
    Shared(Arc<dyn ByteSource>),
    /// This many symbolic bytes.
    Symbolic {
        /// Number of symbolic bytes.
        size: u32,
    },
    /// Symbolic bytes, with a size between these bounds.
    SymbolicBetween {
        /// The smallest size.
        least: u32,
        /// The largest size.
        most: u32,
    },
    /// A directory.
    Directory,
    /// A symbolic link with this target.
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

/// A file that exists at boot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileSpec {
    /// Its path; relative paths start at [`HostConfig::cwd`].
    pub path: Vec<u8>,
    /// Its contents. The input array of a symbolic file is named after it: `A-data`.
    pub contents: Contents,
    /// Permission bits, usually 0o644.
    pub mode: u32,
    /// User and group ids.
    pub owner: (u32, u32),
    /// Modification time, in nanoseconds since 1970; boot time if `None`.
    pub modified_ns: Option<u64>,
}

impl FileSpec {
    /// A file with these bytes.
    pub fn concrete(path: impl Into<Vec<u8>>, bytes: impl Into<Arc<[u8]>>) -> FileSpec {
        FileSpec::new(path, Contents::Concrete(bytes.into()), 0o644)
    }

    /// A file that belongs to root.
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

/// Where a runnable thread can be preempted. Each level includes the ones before it.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum PreemptAt {
    /// Only when its time slice is over.
    #[default]
    Quantum,
    /// Before system calls.
    SystemCalls,
    /// Before atomic accesses.
    Atomics,
    /// Before every access to memory that several threads can reach.
    Memory,
}

impl PreemptAt {
    /// All levels, by name.
    pub const ALL: [(&'static str, PreemptAt); 4] = [
        ("quantum", PreemptAt::Quantum),
        ("syscalls", PreemptAt::SystemCalls),
        ("atomics", PreemptAt::Atomics),
        ("memory", PreemptAt::Memory),
    ];
}

/// Which failures can be injected.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FaultOptions {
    /// Maximum number of failures on a path.
    pub most: u32,
    /// The filters that select failures: those that some filter includes (all if no filter includes
    /// any), minus those that some filter excludes.
    pub only: Arc<[FaultFilter]>,
    /// The libc functions that filters let fail.
    pub functions: Arc<[FailingFunction]>,
    /// Inject only between `everett_faults_enable` and `everett_faults_disable`.
    pub in_regions: bool,
    /// Inject only into processes that execute one of these programs; into all if empty.
    pub programs: Arc<[String]>,
    /// Deliver the bytes of a stream in at most this many pieces; 0 does not fragment.
    pub fragments: u32,
    /// Every n-th send of a non-blocking socket fails with `EAGAIN`; 0 for none.
    pub block_interval: u32,
    /// Every n-th `select` fails, with `EINTR` and `ENOMEM` in turn; 0 for none.
    pub select_interval: u32,
}

impl FaultOptions {
    /// The filters that include failures.
    fn wanted(&self) -> impl Iterator<Item = &FaultFilter> {
        let filters = self.only.iter().filter(|_| self.most > 0);
        filters.filter(|filter| !filter.excludes)
    }
}

/// The failures that were requested (`--fault`, `fault_calls`) and that no host had. Each host
/// comes with the set of its failures, in the words of [`InjectedFailure`](crate::InjectedFailure).
pub fn never_injected<'h>(
    hosts: impl IntoIterator<Item = (&'h FaultOptions, Option<&'h BTreeSet<String>>)>,
) -> Vec<String> {
    let mut all: Vec<(&FaultFilter, bool)> = Vec::new();
    for (options, injected) in hosts {
        for filter in options.wanted() {
            let happens = |what: &String| match what.split_once(" fails: ") {
                Some((call, failure)) => filter.matches(call, failure),
                None => false,
            };
            let happened = injected.is_some_and(|all| all.iter().any(happens));
            match all.iter_mut().find(|(known, _)| *known == filter) {
                Some((_, known)) => *known |= happened,
                None => all.push((filter, happened)),
            }
        }
    }
    let never = all.into_iter().filter(|(_, happened)| !happened);
    never.map(|(filter, _)| filter.to_string()).collect()
}

/// A filter for failures.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FaultFilter {
    /// The filter excludes failures.
    pub excludes: bool,
    /// Name of a system call, or `malloc`, or `*` for all of them; or name of a libc function,
    /// followed by `()`.
    pub call: String,
    /// Name of an errno, `short` or `spurious`, or a failure of a libc function; all failures of the
    /// call if `None`.
    pub failure: Option<String>,
}

impl FaultFilter {
    /// The name that matches every call.
    pub const ANY: &str = "*";

    /// Parses `CALL` or `CALL:FAILURE`, either of them after an optional `!`.
    pub fn parse(text: &str) -> FaultFilter {
        let (excludes, text) = match text.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (call, failure) = match text.split_once(':') {
            Some((call, failure)) => (call, Some(failure.to_owned())),
            None => (text, None),
        };
        FaultFilter {
            excludes,
            call: call.to_owned(),
            failure,
        }
    }

    /// Whether the filter matches this failure of a call.
    pub fn matches(&self, call: &str, failure: &str) -> bool {
        let is_function = call.ends_with(CALLED);
        let is_call = self.call == Self::ANY && !is_function || self.call == call;
        is_call && self.failure.as_deref().is_none_or(|name| name == failure)
    }
}

impl std::fmt::Display for FaultFilter {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let not = if self.excludes { "!" } else { "" };
        match &self.failure {
            Some(failure) => write!(to, "{not}{}:{failure}", self.call),
            None => write!(to, "{not}{}", self.call),
        }
    }
}

impl FaultOptions {
    /// Whether allocations can be made to fail.
    pub fn allocations_may_fail(&self) -> bool {
        self.most > 0 && self.wants("malloc", "ENOMEM")
    }

    /// Sets the filters.
    pub fn with_filters(self, only: Arc<[FaultFilter]>) -> FaultOptions {
        let functions = failing_functions(&only);
        FaultOptions {
            only,
            functions,
            ..self
        }
    }

    pub(crate) fn wants(&self, call: &str, failure: &str) -> bool {
        let (mut names_some, mut is_named) = (false, false);
        for filter in self.only.iter() {
            let matches = filter.matches(call, failure);
            if filter.excludes && matches {
                return false;
            }
            names_some |= !filter.excludes;
            is_named |= !filter.excludes && matches;
        }
        is_named || !names_some
    }

    /// Whether faults apply to a program, given by its path or by its file name.
    pub(crate) fn applies_to(&self, path: &[u8]) -> bool {
        let last = path.rsplit(|byte| *byte == b'/').next();
        let is_meant = |name: &String| [Some(path), last].contains(&Some(name.as_bytes()));
        self.programs.is_empty() || self.programs.iter().any(is_meant)
    }
}

/// Returns the functions that filters let fail.
fn failing_functions(filters: &[FaultFilter]) -> Arc<[FailingFunction]> {
    let all = FUNCTIONS.iter().filter_map(|function| {
        let name = format!("{}{CALLED}", function.name);
        let means = |filter: &FaultFilter| {
            filter.call == functions::ANY || called(&filter.call) == Some(function)
        };
        let mut names: Vec<String> = Vec::new();
        for filter in filters
            .iter()
            .filter(|filter| !filter.excludes && means(filter))
        {
            let wanted = match &filter.failure {
                Some(failure) => vec![failure.clone()],
                None => function.failures(),
            };
            let new = wanted.into_iter().filter(|name| !names.contains(name));
            let new: Vec<String> = new.collect();
            names.extend(new);
        }
        let is_excluded = |failure: &str| {
            let mut excluding = filters
                .iter()
                .filter(|filter| filter.excludes && means(filter));
            excluding.any(|filter| filter.failure.as_deref().is_none_or(|name| name == failure))
        };
        names.retain(|failure| !is_excluded(failure));
        let failures: Vec<_> = names
            .iter()
            .filter_map(|name| function.failure(name))
            .collect();
        let stream = STREAMS.iter().find(|(name, _)| *name == function.name);
        let symbols = std::iter::once(&function.name).chain(function.aliases);
        (!failures.is_empty()).then(|| FailingFunction {
            name,
            symbols: symbols.map(|symbol| (*symbol).to_owned()).collect(),
            failures,
            stream: stream.map(|(_, argument)| *argument),
            is_done: function.is_done,
            arguments: shown_arguments_of_function(function.name),
        })
    });
    all.collect()
}

/// A watched variable, or a part of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Watch {
    /// The state and key under which it is exposed.
    pub name: (String, String),
    /// The program that contains it.
    pub image: ImageId,
    /// The symbol of its variable.
    pub symbol: String,
    /// Address of the variable, once known.
    pub address: u64,
    /// Offsets of the pointers to follow: the first is an offset in the variable, each further one
    /// in the target of the pointer before it.
    pub through: Vec<u64>,
    /// Offset of the data in the target of the last pointer, or in the
    /// variable if there is no pointer.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
}

/// A variable, or a part of one, whose value at the start of the program is symbolic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SymbolicVariable {
    /// The location of the variable. The key of its name is the name of the input; there are no
    /// pointers to follow.
    pub data: Watch,
    /// The smallest and the largest value of a number; without it, all bytes are unconstrained.
    pub range: Option<(i64, i64)>,
}

/// What happens when a path declares itself to be a host.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Boot {
    /// The path continues: no world is being built.
    #[default]
    Standalone,
    /// The path stops until all other hosts are declared.
    StopAtSetup,
    /// The path is this host of the world that was built.
    Start(HostStart),
}

/// A host of a world that was built from declarations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostStart {
    /// Its name.
    pub name: String,
    /// When it starts, in nanoseconds of virtual time.
    pub at_ns: u64,
    /// Offset of its random seed from those of the other hosts.
    pub random: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_named_or_left_out() {
        let wanted = |filters: &[&str], call, failure| {
            let only = filters.iter().map(|text| FaultFilter::parse(text));
            let options = FaultOptions {
                only: only.collect(),
                ..FaultOptions::default()
            };
            options.wants(call, failure)
        };
        assert!(wanted(&[], "malloc", "ENOMEM"));
        for filters in [
            &["*", "!malloc"][..],
            &["!malloc"],
            &["!malloc:ENOMEM", "*"],
        ] {
            assert!(!wanted(filters, "malloc", "ENOMEM"), "{filters:?}");
            assert!(wanted(filters, "read", "EIO"), "{filters:?}");
        }
        let filters = ["read", "!read:EINTR", "!*:short"];
        assert!(wanted(&filters, "read", "EIO"));
        assert!(!wanted(&filters, "read", "EINTR"));
        assert!(!wanted(&filters, "read", "short"));
        assert!(!wanted(&filters, "write", "EIO"));
        assert!(wanted(&["*:EIO"], "write", "EIO"));
        assert!(!wanted(&["*:EIO"], "write", "ENOSPC"));
    }

    #[test]
    fn filters_name_functions_and_their_failures() {
        let filters = |texts: &[&str]| -> Vec<FaultFilter> {
            texts.iter().map(|text| FaultFilter::parse(text)).collect()
        };
        let failing = |texts: &[&str]| -> Vec<(String, Vec<String>)> {
            let all = failing_functions(&filters(texts));
            let names = |function: &FailingFunction| {
                let failures = function.failures.iter();
                failures.map(|failure| failure.name.clone()).collect()
            };
            let named = all.iter().map(|one| (one.name.clone(), names(one)));
            named.collect()
        };
        assert!(failing(&[]).is_empty() && failing(&["*", "read", "malloc"]).is_empty());
        assert_eq!(failing(&["*()"]).len(), FUNCTIONS.len());
        assert_eq!(failing(&["*()", "!fopen()"]).len(), FUNCTIONS.len() - 1);
        let of = |name: &str, failures: &[&str]| {
            let failures = failures.iter().map(|name| (*name).to_owned());
            (name.to_owned(), failures.collect::<Vec<_>>())
        };
        let both = failing(&[
            "strdup()",
            "fopen64():EIO",
            "fopen():ENOENT=5",
            "fopen():EIO",
        ]);
        let expected = [
            of("strdup()", &["ENOMEM"]),
            of("fopen()", &["EIO", "ENOENT=5"]),
        ];
        assert_eq!(both, expected);
        assert_eq!(
            failing(&["pthread_create()"]),
            [of("pthread_create()", &["EAGAIN"])]
        );
        assert_eq!(failing(&["getenv()"]), [of("getenv()", &["=0"])]);
        let closed = failing_functions(&filters(&["fclose()", "fread()"]));
        assert!(closed[0].is_done && closed[0].stream.is_none());
        assert_eq!(closed[1].stream, Some(3));
    }

    #[test]
    fn programs_are_meant_by_path_or_name() {
        let mut options = FaultOptions::default();
        assert!(options.applies_to(b"/bin/server"));
        options.programs = ["server".to_owned()].into();
        assert!(options.applies_to(b"/bin/server"));
        assert!(options.applies_to(b"server"));
        assert!(!options.applies_to(b"/server/client"));
        options.programs = ["/bin/server".to_owned()].into();
        assert!(options.applies_to(b"/bin/server"));
        assert!(!options.applies_to(b"/sbin/server"));
    }
}
