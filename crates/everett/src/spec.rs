//! The spec of a run: a plain value that is stored as `args.json` in the folder of the run. Owns names, defaults and
//! meanings of run options; must not know any command line.

use everett_report::Folder;
use everett_vm::Image;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Result, bail};
use crate::host::HostSpec;
use crate::load::OtherBuild;
use crate::options::{OPTIONS, Scope};
use crate::scenario::ScenarioSpec;

/// The current version of [`RunSpec`]. Earlier versions can be read; fields that they lack take their defaults.
pub const VERSION: u32 = 1;

/// The spec of a run of a program or a scenario.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct RunSpec {
    /// The version of the format.
    pub version: u32,
    /// Folder for the results; by default the next number below everett-out/.
    pub out: Option<PathBuf>,
    /// The time limit of the run, which includes writing the results.
    pub max_time: Option<Duration>,
    /// The memory limit, above which states are spilled.
    pub max_memory: u64,
    /// Stop when this many paths have ended.
    pub max_paths: Option<u64>,
    /// Stop after this many forks.
    pub max_forks: Option<u64>,
    /// Cut off paths with more forks than this.
    pub max_depth: Option<u32>,
    /// Report paths with more instructions than this as hangs.
    pub max_instructions: Option<u64>,
    /// Largest block that malloc of a symbolic size keeps symbolic.
    pub max_symbolic_size: u64,
    /// The seed of all random choices.
    pub seed: u64,
    /// Searchers that take turns; empty for the default ones.
    pub search: Vec<String>,
    /// Instructions before another state is selected.
    pub batch: u64,
    /// Write a test for every path, not only for those that cover something new.
    pub all_tests: bool,
    /// Write no tests.
    pub no_tests: bool,
    /// Write the files that a path created or modified beside its test or finding.
    pub save_fs: bool,
    /// Do not confirm findings natively.
    pub no_confirm: bool,
    /// Do not shrink findings.
    pub no_shrink: bool,
    /// Report every path that ends in a finding, not only the first at a location.
    pub all_findings: bool,
    /// Report memory that is leaked when the program exits.
    pub check_leaks: bool,
    /// Report integer overflow where the compiler assumes that there is none (`nsw`, `nuw`).
    pub check_overflow: bool,
    /// Report decisions on uninitialised memory.
    pub check_uninitialised: bool,
    /// Report data races: unordered accesses of several threads to the same memory.
    pub check_races: bool,
    /// The SMT solver for queries that exceed the first tier; `none` to disable it.
    pub smt_solver: Option<PathBuf>,
    /// Time limit for one query of the SMT solver.
    pub solver_time: Duration,
    /// Conflict budget of the first tier for one query.
    pub solver_conflicts: u32,
    /// Folder for slow queries, as SMT-LIB files.
    pub solver_log: Option<PathBuf>,
    /// The complete environment of the program, as `NAME=VALUE`.
    pub env: Vec<String>,
    /// The host that the program runs on.
    #[serde(flatten)]
    pub host: HostSpec,
    /// The state mapping of a scenario, which groups states of different hosts: sds, cow or cob.
    pub mapping: Option<String>,
    /// Maximum number of reorderings on a path of a scenario: deliveries that overtake an earlier one.
    pub orders: Option<u32>,
    /// Keys of the scenario to override, with their values.
    pub settings: Vec<(String, String)>,
    /// A scenario file without hosts, which configures the world that a program boots.
    pub world: Option<PathBuf>,
    /// Write findings and tests of a scenario as `.dtest`, too.
    pub dtest: bool,
    /// The program and its arguments, or a scenario.
    pub command: Vec<OsString>,
}

impl Default for RunSpec {
    fn default() -> RunSpec {
        RunSpec {
            version: VERSION,
            out: None,
            max_time: None,
            max_memory: 4 << 30,
            max_paths: None,
            max_forks: None,
            max_depth: None,
            max_instructions: None,
            max_symbolic_size: 4096,
            seed: 0,
            search: Vec::new(),
            batch: 10_000,
            all_tests: false,
            no_tests: false,
            save_fs: false,
            no_confirm: false,
            no_shrink: false,
            all_findings: false,
            check_leaks: false,
            check_overflow: false,
            check_uninitialised: false,
            check_races: false,
            smt_solver: None,
            solver_time: Duration::from_secs(30),
            solver_conflicts: 20_000,
            solver_log: None,
            env: Vec::new(),
            host: HostSpec::default(),
            mapping: None,
            orders: None,
            settings: Vec::new(),
            world: None,
            dtest: false,
            command: Vec::new(),
        }
    }
}

/// The file that stores the spec of a run.
const FILE: &str = "args.json";

impl RunSpec {
    /// A run of a program with its arguments, or of a scenario, with default options.
    pub fn new<W: Into<OsString>>(command: impl IntoIterator<Item = W>) -> RunSpec {
        RunSpec {
            command: command.into_iter().map(Into::into).collect(),
            ..RunSpec::default()
        }
    }

    /// Reads the spec of an earlier run.
    pub fn of(dir: &Path) -> Result<RunSpec> {
        let path = dir.join(FILE);
        let text = std::fs::read(&path).map_err(|source| Error::NotARun {
            path: dir.to_owned(),
            source: Some(source),
        })?;
        let damaged = |source: Error| Error::Damaged {
            path: path.clone(),
            source: Box::new(source),
        };
        let spec: RunSpec = serde_json::from_slice(&text).map_err(|error| damaged(error.into()))?;
        if spec.version > VERSION {
            return Err(Error::TooNew(path));
        }
        if spec.command.is_empty() {
            return Err(damaged(Error::Invalid("it names no program".to_owned())));
        }
        Ok(spec)
    }

    /// Reads the spec of an earlier run, which must be a run of one program.
    pub(crate) fn of_program(dir: &Path) -> Result<RunSpec> {
        let spec = RunSpec::of(dir)?;
        if spec.is_scenario() {
            bail!(
                Usage,
                "{} has worlds of several hosts, for which this is not possible yet",
                dir.display()
            );
        }
        Ok(spec)
    }

    /// Writes the spec to the folder of the run.
    pub(crate) fn write(&self, folder: &Folder) -> Result<()> {
        Ok(folder.write(FILE, &serde_json::to_vec(self)?)?)
    }

    /// The program, or the scenario.
    pub fn program(&self) -> &Path {
        Path::new(
            self.command
                .first()
                .map_or("".as_ref(), OsString::as_os_str),
        )
    }

    /// Whether the run explores a scenario rather than a program.
    pub fn is_scenario(&self) -> bool {
        is_scenario(self.program())
    }

    /// The arguments of the program.
    pub(crate) fn arguments(&self) -> &[OsString] {
        self.command.get(1..).unwrap_or_default()
    }

    /// The program and its arguments, as text.
    pub(crate) fn words(&self) -> Vec<String> {
        let words = self.command.iter();
        words
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }

    /// Fails if no program is named.
    pub(crate) fn expect_command(&self) -> Result<()> {
        if self.command.is_empty() {
            bail!(Usage, "the run names no program");
        }
        Ok(())
    }

    /// Refuses options for single programs. A scenario sets them per host; those that it cannot set are not supported
    /// for worlds yet.
    pub(crate) fn refuse_what_scenarios_say(&self) -> Result<()> {
        if self.command.len() > 1 {
            bail!(
                Usage,
                "a scenario has no arguments; those of its programs stand in it (--set host.NAME.args=...)"
            );
        }
        let usual = serde_json::to_value(RunSpec::default())?;
        let said = serde_json::to_value(self)?;
        for option in OPTIONS.iter().filter(|option| option.scope != Scope::Run) {
            if said.get(option.field) != usual.get(option.field) {
                bail!(
                    Usage,
                    "--{} is for single programs; a scenario says such things for each of its hosts, where it can",
                    option.name
                );
            }
        }
        Ok(())
    }

    /// The spec for exploring the scenario of a world that the program boots. Host options are left out, since the
    /// scenario contains them.
    pub(crate) fn for_world(&self, scenario: &Path) -> Result<RunSpec> {
        let said = serde_json::to_value(self)?;
        let mut world = serde_json::to_value(RunSpec::new([scenario]))?;
        for option in OPTIONS {
            match option.scope {
                Scope::Run => world[option.field] = said[option.field].clone(),
                Scope::Booting | Scope::Host => {}
            }
        }
        Ok(serde_json::from_value(world)?)
    }

    /// Whether stack slots may be promoted to registers. Checks for uninitialised memory need the slots.
    pub(crate) fn promotes(&self) -> bool {
        !self.check_uninitialised
    }

    /// Loads the programs.
    pub(crate) fn load(&self) -> Result<Vec<Image>> {
        self.host.load(self.program(), self.promotes())
    }

    /// The native programs, the main program first.
    pub(crate) fn native_programs(&self) -> Vec<PathBuf> {
        self.host.native_programs(self.program())
    }

    /// The same spec with other builds of some programs.
    pub(crate) fn on(&self, builds: &[OtherBuild]) -> Result<RunSpec> {
        let mut spec = self.clone();
        for build in builds {
            match &build.path {
                Some(path) => spec.host.replace(path, &build.file)?,
                None => spec.command[0] = build.file.as_os_str().to_owned(),
            }
        }
        Ok(spec)
    }

    /// The scenario and the keys that the run overrides.
    pub(crate) fn scenario(&self) -> ScenarioSpec {
        let orders = self
            .orders
            .map(|most| ("search.orders".to_owned(), most.to_string()));
        let names = self.search.join("\", \"");
        let order = || ("search.order".to_owned(), format!("[\"{names}\"]"));
        let order = (!self.search.is_empty()).then(order);
        let above = orders.into_iter().chain(order);
        ScenarioSpec {
            file: self.program().to_owned(),
            settings: self.settings.iter().cloned().chain(above).collect(),
        }
    }

    /// Creates the folder for the results.
    pub(crate) fn folder(&self) -> Result<Folder> {
        results_folder(self.out.as_deref())
    }
}

/// Creates a folder for results: the given one, or the next number below everett-out/.
pub(crate) fn results_folder(out: Option<&Path>) -> Result<Folder> {
    Ok(match out {
        Some(path) => Folder::create(path)?,
        None => Folder::next(Path::new("everett-out"))?,
    })
}

/// Whether a path denotes a scenario rather than a program.
pub fn is_scenario(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "toml")
}

/// Which stopped run to resume, and its new limits.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ResumeSpec {
    /// The folder of the run.
    pub dir: PathBuf,
    /// The time limit, counted from now.
    pub max_time: Option<Duration>,
    /// Stop when this many paths have ended, counted from the first start.
    pub max_paths: Option<u64>,
    /// Stop after this many forks, counted from the first start.
    pub max_forks: Option<u64>,
}

/// Parses a duration such as `90s`, `10m` or `2h`.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        unit => return Err(format!("{unit:?} is no unit of time; use ms, s, m or h")),
    };
    match digits.parse::<f64>() {
        Ok(number) => Duration::try_from_secs_f64(number * factor)
            .map_err(|_| format!("{text} is no time that can pass")),
        _ => Err(format!("{digits:?} is no number")),
    }
}

/// Parses an environment variable, `NAME=VALUE`.
pub fn parse_variable(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((name, _)) if !name.is_empty() => Ok(text.to_owned()),
        _ => Err(format!("{text:?} is no variable; write NAME=VALUE")),
    }
}

/// Parses a size such as `512M` or `4G`.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..]
        .to_ascii_lowercase()
        .trim_end_matches("ib")
    {
        "" => 0,
        "k" | "kb" => 10,
        "m" | "mb" => 20,
        "g" | "gb" => 30,
        unit => return Err(format!("{unit:?} is no unit of size; use K, M or G")),
    };
    let number = digits
        .parse::<u64>()
        .map_err(|_| format!("{digits:?} is no number"))?;
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| format!("{text} is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields that are not options.
    const NO_OPTIONS: &[&str] = &["version", "command"];

    #[test]
    fn every_field_is_an_option_and_every_option_a_field() {
        let spec = serde_json::to_value(RunSpec::default()).unwrap();
        let fields: Vec<&str> = spec
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        for field in &fields {
            let is_option = OPTIONS.iter().any(|option| option.field == *field);
            assert_ne!(is_option, NO_OPTIONS.contains(field), "{field}");
        }
        for option in OPTIONS {
            assert!(fields.contains(&option.field), "{}", option.name);
        }
    }

    #[test]
    fn defaults_that_are_told_are_the_defaults() {
        let usual = serde_json::to_value(RunSpec::default()).unwrap();
        for option in OPTIONS {
            if let Some(default) = option.default {
                let mut spec = RunSpec::default();
                (option.set)(&mut spec, default.as_ref()).unwrap();
                assert_eq!(
                    serde_json::to_value(&spec).unwrap(),
                    usual,
                    "{}",
                    option.name
                );
            }
        }
    }

    #[test]
    fn specs_of_earlier_versions_are_read() {
        let earlier =
            r#"{"max_memory": 5, "quiet": true, "faults": 2, "command": [{"Unix": [97]}]}"#;
        let spec: RunSpec = serde_json::from_str(earlier).unwrap();
        assert_eq!(
            (spec.max_memory, spec.host.faults, spec.batch),
            (5, 2, 10_000)
        );
        assert_eq!(spec.program(), Path::new("a"));
    }
}
