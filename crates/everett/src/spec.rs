//! The spec of a run: a plain value that is stored as `args.json` in the folder of the run. Owns
//! names, defaults and meanings of run options; must not know any command line.

use everett_report::{Folder, Series};
use everett_scenario::Accept;
use everett_vm::Image;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::host::HostSpec;
use crate::load::{Lowering, OtherBuild};
use crate::plans::HostPlans;

/// The current version of [`RunSpec`]. Earlier versions can be read; missing fields take their
/// defaults.
pub const VERSION: u32 = 2;

/// The spec of a run of a program or a scenario. Empty fields take the defaults that [`OPTIONS`](crate::OPTIONS)
/// defines.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunSpec {
    /// The version of the format; `None` for the current one, [`VERSION`]. No other is accepted;
    /// [`RunSpec::of`] converts files of earlier versions.
    pub version: Option<u32>,
    /// The folder to which paths are relative; `None` for the current one.
    pub started_in: Option<PathBuf>,
    /// Folder for the results; by default the next number below everett-out/, with `klee_messages`
    /// the next klee-out-N beside the program.
    pub out: Option<PathBuf>,
    /// The time limit of the run, which includes writing the results.
    pub max_time: Option<Duration>,
    /// Minimum time between two checkpoints.
    pub checkpoint: Option<Duration>,
    /// The memory limit, above which states are spilled.
    pub max_memory: Option<u64>,
    /// Number of ended paths after which the run stops.
    pub max_paths: Option<u64>,
    /// Number of forks after which the run stops.
    pub max_forks: Option<u64>,
    /// Maximum number of forks on a path; paths with more are cut off.
    pub max_depth: Option<u32>,
    /// Number of nested calls beyond which a path is cut off; 0 for none.
    pub max_stack_frames: Option<u64>,
    /// The largest share of all forks at one instruction, from 0 to 1.
    pub max_static_fork_pct: Option<f64>,
    /// The largest share of all forks in a function, called by one sequence of callers.
    pub max_static_cpfork_pct: Option<f64>,
    /// The largest share of all queries of one instruction.
    pub max_static_solve_pct: Option<f64>,
    /// The largest share of all queries in a function, called by one sequence of callers.
    pub max_static_cpsolve_pct: Option<f64>,
    /// The number of forks before which these shares are not limited.
    pub max_static_pct_check_delay: Option<u64>,
    /// Number of instructions of all paths after which the run stops.
    pub max_total_instructions: Option<u64>,
    /// Maximum number of instructions on a path; paths with more are reported as hangs.
    pub max_instructions: Option<u64>,
    /// Maximum number of messages and timers of a scenario's host; hosts with more are reported as
    /// hangs.
    pub max_events: Option<u64>,
    /// The virtual time at which worlds end.
    pub max_virtual_time: Option<Duration>,
    /// Maximum size of a block that malloc of a symbolic size keeps symbolic.
    pub max_symbolic_size: Option<u64>,
    /// Whether the search forks where a condition is computed, not only where the program branches
    /// on it.
    pub fork_conditions: bool,
    /// The seed of all random choices.
    pub seed: Option<u64>,
    /// Tests in KLEE's format, or folders of such tests, whose inputs are followed first.
    pub seeds: Vec<PathBuf>,
    /// Whether only the ways of the seeds are explored.
    pub only_seeds: bool,
    /// Whether each seed is followed on its own, from the beginning.
    pub seeds_apart: bool,
    /// Kinds of findings at the first of which the run stops; `all` for every kind.
    pub stop_at: Vec<String>,
    /// Searchers that take turns; empty for the default ones.
    pub search: Vec<String>,
    /// Number of instructions before another state is selected.
    pub batch: Option<u64>,
    /// Number of workers, which explore concurrently.
    pub workers: Option<u64>,
    /// Whether every run writes the same files.
    pub deterministic: bool,
    /// Whether a test is written for every path, not only for those that cover something new.
    pub all_tests: bool,
    /// Whether no tests are written.
    pub no_tests: bool,
    /// Whether KLEE's files are written, too, with its texts and suffixes, and a test for every
    /// path.
    pub klee_messages: bool,
    /// Whether KLEE's tests are written only for paths that cover something new.
    pub only_new_tests: bool,
    /// Whether a `klee_assume` that no input of the path fulfils ends the path without a finding.
    pub silent_klee_assume: bool,
    /// Operands of operations on floats that depend on symbolic data get one value, as in KLEE.
    pub concretize_floats: bool,
    /// Whether the files that a path created or modified are written beside its test or finding.
    pub save_fs: bool,
    /// Whether findings are not confirmed natively.
    pub no_confirm: bool,
    /// Whether findings are not shrunk.
    pub no_shrink: bool,
    /// Whether every path that ends in a finding is reported, not only the first at a location.
    pub all_findings: bool,
    /// Whether memory is reported that is leaked when the program exits.
    pub check_leaks: bool,
    /// Whether hosts are reported that are blocked forever at the end of a world, unless the
    /// scenario says how they end.
    pub check_deadlocks: bool,
    /// Whether shifts by the width or more are not reported.
    pub no_check_shifts: bool,
    /// Whether integer overflow is reported where the compiler assumes that there is none (`nsw`,
    /// `nuw`).
    pub check_overflow: bool,
    /// Whether decisions on uninitialised memory are reported.
    pub check_uninitialised: bool,
    /// Whether indices are reported that leave an array inside a larger object, in unoptimised
    /// code.
    pub check_subobjects: bool,
    /// Whether data races are reported: unordered accesses of several threads to the same memory.
    pub check_races: bool,
    /// The panics of Rust programs that are findings: `all`, or `main` for those that end the
    /// program.
    pub panics: String,
    /// The SMT solver for queries that exceed the first tier; `none` to disable it.
    pub smt_solver: Option<PathBuf>,
    /// Work limit for one query of the SMT solver, in its own units (z3's and cvc5's `rlimit`).
    pub solver_work: Option<u64>,
    /// Time limit for one query of the SAT and SMT solvers. Results then depend on the machine and
    /// its load.
    pub solver_time: Option<Duration>,
    /// Conflict budget of the first tier for one query.
    pub solver_conflicts: Option<u32>,
    /// Folder for slow queries, as SMT-LIB files.
    pub solver_log: Option<PathBuf>,
    /// Folder for all queries that no cheap layer answers, as SMT-LIB files and as encoded terms.
    pub log_queries: Option<PathBuf>,
    /// The host on which the program runs.
    #[serde(flatten)]
    pub host: HostSpec,
    /// The state mapping of a scenario, which groups states of different hosts: sds, cow or cob.
    pub mapping: Option<String>,
    /// Maximum number of reorderings on a path of a scenario: deliveries that overtake an earlier
    /// one.
    pub orders: Option<u32>,
    /// Keys of the scenario to override, with their values.
    pub settings: Vec<(String, String)>,
    /// A scenario file without hosts, which configures the world that a program boots.
    pub world: Option<PathBuf>,
    /// Another build of the program, whose behaviour is compared with that of each path.
    pub against: Option<PathBuf>,
    /// Whether findings and tests of a scenario are written as `.dtest`, too.
    pub dtest: bool,
    /// Whether the live peers of a scenario may be started and contacted.
    pub allow_live: bool,
    /// The folder of an earlier run whose recording answers for live peers.
    pub offline: Option<PathBuf>,
    /// The folder of this run, with the recording of its live peers.
    #[serde(skip)]
    pub recorded_in: Option<PathBuf>,
    /// The program that replaces a client, if the messages of a server are analysed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<Sender>,
    /// Whether the functions that `[trojans]` of a scenario names are replaced.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub replaces: bool,
    /// The faults of the hosts of a scenario: these occur, and no others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned: Option<HostPlans>,
    /// The program and its arguments, or a scenario.
    pub command: Vec<OsString>,
}

/// The file that stores the spec of a run.
pub(crate) const FILE: &str = "args.json";

impl RunSpec {
    /// Creates the spec of a program with its arguments, or of a scenario, with default options.
    pub fn new<W: Into<OsString>>(command: impl IntoIterator<Item = W>) -> RunSpec {
        RunSpec {
            command: command.into_iter().map(Into::into).collect(),
            ..RunSpec::default()
        }
    }

    /// Reads the spec of an earlier run.
    pub fn of(dir: &Path) -> Result<RunSpec> {
        let path = dir.join(FILE);
        let text = everett_report::read_file(&path).map_err(|source| Error::NotARun {
            path: dir.to_owned(),
            source: Some(source),
        })?;
        let damaged = |source: Error| Error::Damaged {
            path: path.clone(),
            source: Box::new(source),
        };
        let mut spec: RunSpec =
            serde_json::from_slice(&text).map_err(|error| damaged(error.into()))?;
        let version = spec.version.unwrap_or(VERSION);
        if version > VERSION {
            return Err(Error::TooNew(path));
        }
        if version < 2 {
            // Version 1 could not omit these: a scenario took precedence over 0 and over any memory
            // limit.
            spec.seed = spec.seed.filter(|seed| *seed != 0);
            spec.max_memory = spec.max_memory.filter(|_| !spec.is_scenario());
        }
        if spec.command.is_empty() {
            return Err(damaged(Error::Invalid("it names no program".to_owned())));
        }
        let spec = RunSpec {
            version: Some(VERSION),
            world: spec.world.as_deref().map(|world| spec.file(world)),
            against: spec.against.as_deref().map(|other| spec.file(other)),
            seeds: spec.seeds.iter().map(|seed| spec.file(seed)).collect(),
            // A permission must be given anew with each command.
            allow_live: false,
            recorded_in: Some(dir.to_owned()),
            offline: spec.offline.as_deref().map(|run| spec.file(run)),
            ..spec
        };
        Ok(spec)
    }

    /// Returns the path of a file of the run, whatever the current folder is. If it does not exist
    /// any more, the run may have been moved together with its programs; the path is relative to
    /// the current folder then.
    fn file(&self, path: &Path) -> PathBuf {
        let started_in = self.started_in.as_deref();
        let file = started_in.map(|folder| folder.join(path));
        let file = file.filter(|file| file.exists() || file.with_extension("bc").exists());
        file.unwrap_or_else(|| path.to_owned())
    }

    /// Returns the spec of a run that is resumed, with its new limits.
    pub fn resumed(resume: &ResumeSpec) -> Result<RunSpec> {
        Ok(RunSpec {
            max_time: resume.max_time,
            max_paths: resume.max_paths,
            max_forks: resume.max_forks,
            allow_live: resume.allow_live,
            ..RunSpec::of(&resume.dir)?
        })
    }

    /// Writes the spec to the folder of the run.
    pub(crate) fn write(&self, folder: &Folder) -> Result<()> {
        let spec = RunSpec {
            version: Some(VERSION),
            started_in: match &self.started_in {
                Some(folder) => Some(folder.clone()),
                None => std::env::current_dir().ok(),
            },
            ..self.clone()
        };
        Ok(folder.write(FILE, &serde_json::to_vec(&spec)?)?)
    }

    /// Returns the program, or the scenario.
    pub fn program(&self) -> &Path {
        Path::new(
            self.command
                .first()
                .map_or("".as_ref(), OsString::as_os_str),
        )
    }

    /// Returns whether the run explores a scenario rather than a program.
    pub fn is_scenario(&self) -> bool {
        is_scenario(self.program())
    }

    /// Returns the arguments of the program.
    pub(crate) fn arguments(&self) -> &[OsString] {
        self.command.get(1..).unwrap_or_default()
    }

    /// Returns the program and its arguments, as text.
    pub(crate) fn words(&self) -> Vec<String> {
        let words = self.command.iter();
        words
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }

    /// Returns the time at which worlds end, in nanoseconds.
    pub(crate) fn max_virtual_ns(&self) -> Option<u64> {
        let time = self.max_virtual_time?;
        Some(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Returns how the programs are lowered. Checks for uninitialised memory need the stack slots.
    pub(crate) fn lowering(&self) -> Lowering {
        Lowering {
            promote: !self.check_uninitialised,
            check_subobjects: self.check_subobjects,
            intercepts: self.host.fails_functions(),
        }
    }

    /// Returns the host, with the actual paths of its programs.
    fn host_with_files(&self) -> HostSpec {
        let mut host = self.host.clone();
        for program in &mut host.program {
            program.file = self.file(&program.file);
        }
        host
    }

    /// Loads the programs.
    pub(crate) fn load(&self) -> Result<Vec<Image>> {
        self.host_with_files()
            .load(&self.file(self.program()), self.lowering())
    }

    /// Returns the native programs, the main program first.
    pub(crate) fn native_programs(&self) -> Vec<PathBuf> {
        self.host_with_files()
            .native_programs(&self.file(self.program()))
    }

    /// Returns the spec with other builds of some programs.
    pub(crate) fn on(&self, builds: &[OtherBuild]) -> Result<RunSpec> {
        let mut spec = self.clone();
        for build in builds {
            // These paths are relative to the current folder, not to that of the run.
            let file = std::path::absolute(&build.file)?;
            match &build.path {
                Some(path) => spec.host.replace(path, &file)?,
                None => spec.command[0] = file.into_os_string(),
            }
        }
        Ok(spec)
    }

    /// Returns the scenario, and the keys that the run overrides by name.
    pub(crate) fn scenario(&self) -> ScenarioSpec {
        ScenarioSpec {
            file: self.file(self.program()),
            settings: self.settings.clone(),
            sender: self.sender.clone(),
        }
    }

    /// Creates the folder for the results.
    pub(crate) fn folder(&self) -> Result<Folder> {
        if self.klee_messages && self.out.is_none() && !self.is_scenario() {
            let beside = Path::new(self.program()).parent();
            let beside = beside.filter(|folder| !folder.as_os_str().is_empty());
            return Ok(Folder::next(
                beside.unwrap_or(Path::new(".")),
                Series::KLEE,
            )?);
        }
        results_folder(self.out.as_deref())
    }
}

/// Creates a folder for results: the given one, or the next number below everett-out/.
pub(crate) fn results_folder(out: Option<&Path>) -> Result<Folder> {
    Ok(match out {
        Some(path) => Folder::create(path)?,
        None => Folder::next(Path::new("everett-out"), Series::RUNS)?,
    })
}

/// Returns whether a path denotes a scenario rather than a program.
pub fn is_scenario(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "toml")
}

/// The stopped run to resume, and its new limits.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ResumeSpec {
    /// The folder of the run.
    pub dir: PathBuf,
    /// The time limit, counted from now.
    pub max_time: Option<Duration>,
    /// Number of ended paths after which the run stops, counted from the first start.
    pub max_paths: Option<u64>,
    /// Number of forks after which the run stops, counted from the first start.
    pub max_forks: Option<u64>,
    /// Whether the live peers of a scenario may be started and contacted.
    pub allow_live: bool,
}

impl ResumeSpec {
    /// Creates a spec that continues a run without a limit.
    pub fn new(dir: impl Into<PathBuf>) -> ResumeSpec {
        ResumeSpec {
            dir: dir.into(),
            ..ResumeSpec::default()
        }
    }
}

/// Parses a duration such as `90s`, `10m` or `2h`; a number without a unit counts seconds.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let has_unit = text.contains(|c: char| c.is_ascii_alphabetic());
    let unit = if has_unit { "" } else { "s" };
    everett_scenario::duration_ns(&format!("{text}{unit}")).map(Duration::from_nanos)
}

/// Parses an environment variable, `NAME=VALUE`.
pub fn parse_variable(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((name, _)) if !name.is_empty() => Ok(text.to_owned()),
        _ => Err(format!("{text:?} is not a variable; write NAME=VALUE")),
    }
}

/// The build of the program on which traces are replayed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BuildSpec {
    /// Native programs to use instead of those that were explored.
    pub on: Vec<OtherBuild>,
    /// Whether the builds that check memory accesses are always used, not only if a finding needs
    /// them.
    pub checked: bool,
}

impl BuildSpec {
    /// Returns whether this is the build that was explored.
    pub fn is_own(&self) -> bool {
        self.on.is_empty() && !self.checked
    }
}

/// A scenario file, and settings that override its keys.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ScenarioSpec {
    /// The scenario's file.
    pub file: PathBuf,
    /// Keys and values that override those of the file.
    pub settings: Vec<(String, String)>,
    /// The program that replaces a client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<Sender>,
}

/// A program that replaces a client and sends one message.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Sender {
    /// The client.
    pub host: String,
    /// The program.
    pub program: PathBuf,
    /// The arguments of the program.
    pub args: Vec<String>,
    /// Other clients, which do nothing.
    pub idle: Vec<String>,
    /// Whether the client runs, too: the message is sent later, from the same host.
    pub beside: bool,
    /// When the server accepts the message; unknown in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<AcceptedBy>,
}

/// When a server accepts the message of a sender.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AcceptedBy {
    /// The server.
    pub server: String,
    /// The port that the message comes from.
    pub port: u16,
    /// What accepts it.
    pub rule: Accept,
}

/// Parses `KEY=VALUE`, where the key may have quoted parts.
pub fn parse_setting(text: &str) -> Result<(String, String), String> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '=') if at > 0 => {
                return Ok((text[..at].to_owned(), text[at + 1..].to_owned()));
            }
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
    }
    Err("a setting is given as KEY=VALUE, such as host.server.count=3".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_of_earlier_versions_are_read() {
        let earlier =
            r#"{"max_memory": 5, "quiet": true, "faults": 2, "command": [{"Unix": [97]}]}"#;
        let spec: RunSpec = serde_json::from_str(earlier).unwrap();
        assert_eq!((spec.max_memory, spec.host.faults), (Some(5), 2));
        assert_eq!(spec.program(), Path::new("a"));
    }

    #[test]
    fn times_have_a_unit_or_count_seconds() {
        assert_eq!(parse_time("1.5"), parse_time("1500ms"));
        assert!(parse_time("-1").is_err() && parse_time("").is_err());
    }

    #[test]
    fn settings_have_a_key_and_a_value() {
        let is = |text: &str, key: &str, value: &str| {
            let wanted = Ok((key.to_owned(), value.to_owned()));
            assert_eq!(parse_setting(text), wanted);
        };
        is("a.b=1", "a.b", "1");
        is("a.b=x=y", "a.b", "x=y");
        is("a.\"b=c\".d=", "a.\"b=c\".d", "");
        for bad in ["", "a", "=1", "\"a=1"] {
            assert!(parse_setting(bad).is_err(), "{bad}");
        }
    }
}
