//! The run options: one table row defines name, meaning, help text and scope of an option.
//! Command lines, scenario keys and the documentation derive from the table, which also
//! parses values. Must not know clap.

use everett_engine::{MAPPINGS, SEARCHERS};
use everett_linux::{PreemptAt, SCHEDULERS};
use everett_scenario::{OptionKey, OptionKind, OptionSetting, bytes as parse_bytes};
use std::ffi::OsStr;
use std::fmt::{self, Write};
use std::path::PathBuf;
use std::str::FromStr;

use crate::check::{self, Checked, all, some};
use crate::error::Result;
use crate::layers::Mount;
use crate::load::GuestProgram;
use crate::spec::{RunSpec, parse_setting, parse_time, parse_variable};

/// Parses a value and writes it to a spec, or adds it there. A switch ignores the value.
type Setter = fn(&mut RunSpec, &OsStr) -> Result<(), String>;

/// The kind of argument that an option takes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Takes {
    /// No argument: the option is a switch.
    Nothing,
    /// One value, with its name in help texts.
    Value(&'static str),
    /// One value per occurrence; the option may be repeated.
    Values(&'static str),
    /// A comma-separated list of values.
    List(&'static str),
    /// One path.
    Path(&'static str),
}

/// The scope of an option: the runs in which it has an effect. Other runs refuse it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Scope {
    /// The run, whether of a program or a scenario.
    Run,
    /// Worlds: of a scenario, or of a program that boots one.
    Worlds,
    /// Runs of one program that boots no world.
    Program,
    /// Runs of one program; if it boots a world, the search until its hosts are set up.
    Booting,
    /// The host of one program, including native and concrete runs.
    Host,
}

impl Scope {
    /// Returns why a scenario has no option of this scope, if it has none.
    pub(crate) fn refusal_by_scenarios(self) -> Option<&'static str> {
        match self {
            Scope::Run | Scope::Worlds => None,
            Scope::Program | Scope::Booting => Some("is for programs, and this is a scenario"),
            Scope::Host => Some(
                "is for single programs; a scenario sets such options per host, if it has them",
            ),
        }
    }

    /// Returns why a program has no option of this scope, if it has none.
    pub(crate) fn refusal_by_programs(self, boots: bool) -> Option<&'static str> {
        match self {
            Scope::Worlds if !boots => Some("is for scenarios, and this is a program"),
            Scope::Program if boots => Some("is for single programs; this one boots a world"),
            _ => None,
        }
    }

    /// Returns whether an option of this scope of a program that boots a world holds in that world.
    pub(crate) fn is_of_booted_world(self) -> bool {
        matches!(self, Scope::Run | Scope::Worlds)
    }
}

/// The key of a scenario that means the same as an option.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ScenarioKey {
    /// The table: `limits`, `search`, or `host` for the tables of hosts.
    pub table: &'static str,
    /// The key.
    pub name: &'static str,
    /// The kind of its value; `None` if the reader of scenarios interprets it itself, as it does
    /// for paths.
    pub kind: Option<OptionKind>,
}

impl fmt::Display for ScenarioKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.table {
            "host" => write!(f, "host.NAME.{}", self.name),
            table => write!(f, "{table}.{}", self.name),
        }
    }
}

/// The kinds of numbers in scenarios.
const NUMBER: OptionKind = OptionKind::Number { most: u64::MAX };
const SMALL: OptionKind = OptionKind::Number {
    most: u32::MAX as u64,
};

/// One option of a run.
#[derive(Debug)]
pub struct RunOption {
    /// The name of the option, with dashes.
    pub name: &'static str,
    /// The field of [`RunSpec`] that the option sets, as named in `args.json`.
    pub field: &'static str,
    /// The help text; see [`RunOption::text`].
    help: &'static str,
    /// The names that the option can take, for the help text.
    names: Option<fn() -> Vec<String>>,
    /// The kind of argument that the option takes.
    pub takes: Takes,
    /// The default value, if it is worth showing. It takes effect if the field of the spec is
    /// empty.
    pub default: Option<&'static str>,
    /// Another option that this one requires.
    pub requires: Option<&'static str>,
    /// The scope of the option.
    pub scope: Scope,
    /// The equivalent key of a scenario.
    pub scenario_key: Option<ScenarioKey>,
    /// Writes a value to a spec; see [`RunOption::set`].
    write: Setter,
    /// Checks the value of a spec; see [`RunOption::check`].
    checks: Option<fn(&RunSpec) -> Checked>,
}

impl RunOption {
    const fn new(
        name: &'static str,
        field: &'static str,
        takes: Takes,
        write: Setter,
    ) -> RunOption {
        RunOption {
            name,
            field,
            help: "",
            names: None,
            takes,
            default: None,
            requires: None,
            scope: Scope::Run,
            scenario_key: None,
            write,
            checks: None,
        }
    }

    /// Sets the option of a run to a value, or adds a value to it, and checks the result. A switch
    /// ignores the value.
    pub fn set(&self, spec: &mut RunSpec, value: &OsStr) -> Result<(), String> {
        (self.write)(spec, value)?;
        self.check(spec)
    }

    /// Checks the value that a spec has for this option.
    pub fn check(&self, spec: &RunSpec) -> Result<(), String> {
        self.checks.map_or(Ok(()), |check| check(spec))
    }

    const fn checked(self, checks: fn(&RunSpec) -> Checked) -> RunOption {
        let checks = Some(checks);
        RunOption { checks, ..self }
    }

    const fn help(self, help: &'static str) -> RunOption {
        RunOption { help, ..self }
    }

    /// Sets the names that replace `{names}` in the help text.
    const fn names(self, names: fn() -> Vec<String>) -> RunOption {
        let names = Some(names);
        RunOption { names, ..self }
    }

    /// Returns the help text.
    pub fn text(&self) -> String {
        let names = self.names.map_or_else(Vec::new, |names| names());
        self.help.replace("{names}", &names.join(", "))
    }

    const fn default(self, default: &'static str) -> RunOption {
        let default = Some(default);
        RunOption { default, ..self }
    }

    const fn requires(self, other: &'static str) -> RunOption {
        let requires = Some(other);
        RunOption { requires, ..self }
    }

    const fn scope(self, scope: Scope) -> RunOption {
        RunOption { scope, ..self }
    }

    /// Sets the scenario key, whose value has the same syntax as that of the flag.
    const fn key(self, table: &'static str, name: &'static str, kind: OptionKind) -> RunOption {
        RunOption {
            scenario_key: Some(ScenarioKey {
                table,
                name,
                kind: Some(kind),
            }),
            ..self
        }
    }

    /// Sets a key of hosts that the reader of scenarios interprets itself.
    const fn own_key(self, name: &'static str) -> RunOption {
        RunOption {
            scenario_key: Some(ScenarioKey {
                table: "host",
                name,
                kind: None,
            }),
            ..self
        }
    }
}

/// Returns the keys of scenarios that the options define.
pub(crate) fn option_keys() -> Vec<OptionKey> {
    let key = |option: &RunOption| {
        let ScenarioKey { table, name, kind } = option.scenario_key?;
        Some(OptionKey {
            table,
            name,
            kind: kind?,
            default: option.default,
        })
    };
    OPTIONS.iter().filter_map(key).collect()
}

/// Returns the option that a key of a scenario sets.
pub(crate) fn option_of(key: &OptionKey) -> Option<&'static RunOption> {
    OPTIONS.iter().find(|option| {
        let of = option.scenario_key.as_ref();
        of.is_some_and(|of| (of.table, of.name) == (key.table, key.name))
    })
}

/// Sets the options that a scenario contains, where `is_open` allows it.
pub(crate) fn set_options(
    spec: &mut RunSpec,
    settings: &[OptionSetting],
    is_open: impl Fn(&RunOption) -> bool,
) -> Result<(), String> {
    for setting in settings {
        let Some(option) = option_of(&setting.key).filter(|option| is_open(option)) else {
            continue;
        };
        for argument in setting.value.iter().flat_map(|value| value.arguments()) {
            option.set(spec, argument.as_ref())?;
        }
    }
    Ok(())
}

fn text(value: &OsStr) -> Result<&str, String> {
    value
        .to_str()
        .ok_or_else(|| format!("{} is not valid UTF-8", value.display()))
}

fn number<N: FromStr<Err = std::num::ParseIntError>>(value: &OsStr) -> Result<N, String> {
    text(value)?
        .parse()
        .map_err(|error: std::num::ParseIntError| error.to_string())
}

/// A share of a whole; KLEE's is a number from 0 to 1.
fn share(value: &OsStr) -> Result<f64, String> {
    text(value)?
        .parse()
        .map_err(|error: std::num::ParseFloatError| error.to_string())
}

/// Creates a row for a switch.
macro_rules! switch {
    ($name:literal, $($field:ident).+) => {
        RunOption::new($name, last!($($field).+), Takes::Nothing, |spec, _| {
            spec.$($field).+ = true;
            Ok(())
        })
    };
}

/// Creates a row for an option with a value, which an expression parses.
macro_rules! value {
    ($name:literal, $($field:ident).+, $value:literal, $parse:expr) => {
        RunOption::new($name, last!($($field).+), Takes::Value($value), |spec, value| {
            spec.$($field).+ = ($parse)(value)?;
            Ok(())
        })
    };
}

/// Creates a row for an option with a value whose field is an `Option`.
macro_rules! maybe {
    ($name:literal, $($field:ident).+, $value:literal, $parse:expr) => {
        maybe!($name, $($field).+, Takes::Value($value), $parse)
    };
    ($name:literal, $($field:ident).+, $takes:expr, $parse:expr) => {
        RunOption::new($name, last!($($field).+), $takes, |spec, value| {
            spec.$($field).+ = Some(($parse)(value)?);
            Ok(())
        })
    };
}

/// Creates a row for an option with several values.
macro_rules! values {
    ($name:literal, $($field:ident).+, $takes:expr, $parse:expr) => {
        RunOption::new($name, last!($($field).+), $takes, |spec, value| {
            spec.$($field).+.push(($parse)(text(value)?)?);
            Ok(())
        })
    };
}

/// Returns the last name of a dotted path, as text.
macro_rules! last {
    ($field:ident) => { stringify!($field) };
    ($first:ident . $($field:ident).+) => { last!($($field).+) };
}

fn path(value: &OsStr) -> Result<PathBuf, String> {
    Ok(PathBuf::from(value))
}

/// Parses a name, which must not be empty: only a spec without the field has the default.
fn named(value: &OsStr) -> Result<String, String> {
    match text(value)? {
        "" => Err("a name is missing".to_owned()),
        text => Ok(text.to_owned()),
    }
}

fn seed_path(text: &str) -> Result<PathBuf, String> {
    Ok(PathBuf::from(text))
}

fn owned(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// All run options, in display order.
pub const OPTIONS: &[RunOption] = &[
    maybe!("out", out, Takes::Path("DIR"), path)
        .help(
            "Folder for the results; default: the next number below everett-out/, with messages of KLEE the next \
             klee-out-N beside the program.",
        ),
    maybe!("max-time", max_time, "TIME", |value| parse_time(text(value)?))
        .checked(|spec| some(&spec.max_time, check::time))
        .help("Finish within this time, including writing the results, e.g. 90s, 10m, 2h.")
        .default("24h")
        .key("limits", "time", OptionKind::Duration),
    maybe!("max-memory", max_memory, "SIZE", |value| parse_bytes(text(value)?))
        .help("Spill states to disk when the process needs more memory than this, e.g. 4G.")
        .default("4G")
        .key("limits", "memory", OptionKind::Size),
    maybe!("checkpoint", checkpoint, "TIME", |value| parse_time(text(value)?))
        .checked(|spec| some(&spec.checkpoint, check::time))
        .help(
            "Minimum time between two checkpoints, from which a killed run is resumed. They take at most 2 % of \
             the time; with 0s, half of it.",
        )
        .default("1s"),
    maybe!("max-paths", max_paths, "N", number)
        .help("Stop when this many paths have ended.")
        .key("limits", "paths", NUMBER),
    maybe!("max-forks", max_forks, "N", number)
        .help("Stop after this many forks.")
        .key("limits", "forks", NUMBER),
    maybe!("max-depth", max_depth, "N", number)
        .help("Cut off paths with more forks than this.")
        .key("limits", "depth", SMALL),
    maybe!("max-stack-frames", max_stack_frames, "N", number)
        .help(
            "Cut off paths with more nested calls than this; 0 is no limit. Default: none, with messages of KLEE 8192.",
        ),
    maybe!("max-static-fork-pct", max_static_fork_pct, "SHARE", share)
        .checked(|spec| some(&spec.max_static_fork_pct, check::share))
        .help(
            "Programs only: where one instruction has more than this share of all forks (0 to 1), its forks take one \
             side only. This limit and the next four options are KLEE's.",
        )
        .scope(Scope::Booting),
    maybe!("max-static-cpfork-pct", max_static_cpfork_pct, "SHARE", share)
        .checked(|spec| some(&spec.max_static_cpfork_pct, check::share))
        .help("The same for one function, called by one sequence of callers.")
        .scope(Scope::Booting),
    maybe!("max-static-solve-pct", max_static_solve_pct, "SHARE", share)
        .checked(|spec| some(&spec.max_static_solve_pct, check::share))
        .help("The same for the queries of one instruction that no cheap layer of the solver answers.")
        .scope(Scope::Booting),
    maybe!("max-static-cpsolve-pct", max_static_cpsolve_pct, "SHARE", share)
        .checked(|spec| some(&spec.max_static_cpsolve_pct, check::share))
        .help("The same for such queries in one function, called by one sequence of callers.")
        .scope(Scope::Booting),
    maybe!("max-static-pct-check-delay", max_static_pct_check_delay, "N", number)
        .help("Number of forks before which these shares are not limited.")
        .default("1000")
        .scope(Scope::Booting),
    maybe!("max-total-instructions", max_total_instructions, "N", number)
        .help("Programs only: stop after this many instructions of all paths together.")
        .scope(Scope::Booting),
    maybe!("max-instructions", max_instructions, "N", number)
        .help("Report paths with more instructions than this as hangs.")
        .key("limits", "instructions", NUMBER),
    maybe!("max-events", max_events, "N", number)
        .help("Scenarios only: report hosts with more messages and timers than this as hangs.")
        .scope(Scope::Worlds)
        .key("limits", "events", NUMBER),
    maybe!("max-virtual-time", max_virtual_time, "TIME", |value| parse_time(text(value)?))
        .checked(|spec| some(&spec.max_virtual_time, check::time))
        .help("Scenarios only: end worlds at this virtual time.")
        .scope(Scope::Worlds)
        .key("limits", "virtual_time", OptionKind::Duration),
    maybe!("max-symbolic-size", max_symbolic_size, "BYTES", number)
        .help("Largest block that malloc of a symbolic size keeps symbolic.")
        .default("4096"),
    switch!("fork-conditions", fork_conditions)
        .help(
            "Fork where a condition on symbolic data is computed, not only where the program branches on it: \
             optimised code selects values instead of branching. A `klee_assume` that is false then ends the path \
             silently.",
        ),
    maybe!("seed", seed, "N", number)
        .help("Seed of all random choices.")
        .default("0")
        .key("search", "seed", NUMBER),
    values!("seeds", seeds, Takes::Values("PATH"), seed_path)
        .checked(|spec| all(&spec.seeds, check::path))
        .help(
            "Programs only: follow the inputs of this test in KLEE's format (.ktest), or of all in this folder, before \
             everything else. Inputs are matched by name.",
        )
        .scope(Scope::Program),
    switch!("only-seeds", only_seeds)
        .requires("seeds")
        .help("Explore only the paths that seeds take.")
        .scope(Scope::Program),
    switch!("seeds-apart", seeds_apart)
        .requires("only-seeds")
        .help("Follow each seed on its own from the beginning, also where several take the same path.")
        .scope(Scope::Program),
    values!("stop-at", stop_at, Takes::List("KINDS"), owned)
        .checked(|spec| all(&spec.stop_at, check::finding))
        .help("Programs only: stop at the first finding of one of these kinds, or of `all`.")
        .scope(Scope::Program),
    values!("search", search, Takes::List("NAMES"), owned)
        .checked(|spec| all(&spec.search, check::searcher))
        .help(
            "Searchers that take turns: {names}. Default: random-path,coverage for a program; for a scenario, the \
             state with the least clock runs next.",
        )
        .names(|| SEARCHERS.iter().map(|row| row.name.to_owned()).collect())
        .key("search", "order", OptionKind::Texts),
    maybe!("batch", batch, "N", number)
        .checked(|spec| some(&spec.batch, check::positive))
        .help("Instructions that a state executes before the searcher picks the next state.")
        .default("10000"),
    maybe!("workers", workers, "N", number)
        .checked(|spec| some(&spec.workers, check::positive))
        .help(
            "Number of worker threads. Default for a program, and for a scenario with mapping {names}: \
             EVERETT_WORKERS, or one per processor; for other scenarios: 1, because workers share no states of \
             worlds. A complete run reaches the same paths or worlds and the same findings with any number.",
        )
        .names(|| {
            let rows = MAPPINGS.iter().filter(|row| row.separates_worlds);
            rows.map(|row| row.name.to_owned()).collect()
        }),
    switch!("deterministic", deterministic)
        .help("Explore in one order, with one worker: the same arguments give the same files."),
    switch!("all-tests", all_tests)
        .help("Write a test for every path, not only for those that cover something new."),
    switch!("no-tests", no_tests)
        .help("Write no tests."),
    switch!("klee-messages", klee_messages)
        .help(
            "Programs only: print KLEE's messages, and write its files beside Everett's: a test for every path \
             (test000001.ktest), errors (test000001.ptr.err), info, run.stats, messages.txt, warnings.txt.",
        ),
    switch!("only-new-tests", only_new_tests)
        .requires("klee-messages")
        .help("Write KLEE's tests only for paths that cover something new."),
    switch!("silent-klee-assume", silent_klee_assume)
        .help("Let a `klee_assume` that no input of a path fulfils end the path silently; it is no finding."),
    switch!("concretize-floats", concretize_floats)
        .help(
            "As in KLEE, give symbolic operands of operations on floats one value; others are not explored. With \
             messages of KLEE, seeds imply it.",
        ),
    switch!("save-fs", save_fs)
        .help("Write the files that a path created or changed beside its test or finding."),
    switch!("no-confirm", no_confirm)
        .help("Do not replay findings on the native program."),
    switch!("no-shrink", no_shrink).help("Do not search for simpler inputs of findings."),
    switch!("all-findings", all_findings)
        .help("Report every path that ends in a finding, not only the first at each location."),
    switch!("check-leaks", check_leaks)
        .help("Report heap blocks that are unreachable when the program exits."),
    switch!("check-deadlocks", check_deadlocks)
        .help(
            "Scenarios only: report hosts that are still blocked at the end of a world. Hosts with an `expect` \
             key, such as servers that must be running, are exempt.",
        )
        .scope(Scope::Worlds)
        .key("search", "deadlocks", OptionKind::Flag),
    switch!("no-check-shifts", no_check_shifts)
        .help(
            "Do not report shifts by the width or more; the amount then counts modulo the width, as on the processor.",
        ),
    switch!("check-overflow", check_overflow)
        .help(
            "Report signed and unsigned overflow of operations that the bitcode marks nsw or nuw, in unoptimised \
             code.",
        ),
    switch!("check-uninitialised", check_uninitialised)
        .help("Report branches and addresses that depend on uninitialised memory."),
    switch!("check-subobjects", check_subobjects)
        .help("Report indices that leave an array inside a larger object (a field of a struct), in unoptimised code."),
    switch!("check-races", check_races)
        .help(
            "Report data races: conflicting accesses of several threads to the same memory that nothing orders.",
        ),
    value!("panics", panics, "WHICH", named)
        .checked(|spec| check::panics(&spec.panics))
        .help(
            "Rust panics that are findings: `all` (in every thread and task, caught ones too) or `main` (only \
             those that end the program).",
        )
        .default("all"),
    maybe!("smt-solver", smt_solver, Takes::Path("PROGRAM"), path).help(
            "SMT solver (second tier) for queries that the SAT solver (first tier) does not decide: path of z3, \
             bitwuzla or cvc5, or `none`.",
        ),
    maybe!("solver-work", solver_work, "N", number)
        .help(
            "Work limit of the SMT solver per query, in its own units (rlimit of z3 and cvc5), which are the same \
             on every machine.",
        )
        .default("100000000"),
    maybe!("solver-time", solver_time, "TIME", |value| parse_time(text(value)?))
        .checked(|spec| some(&spec.solver_time, check::time))
        .help("Time limit of the SAT and SMT solvers per query; results then depend on the load of the machine."),
    maybe!("solver-conflicts", solver_conflicts, "N", number)
        .help("Conflict limit of the SAT solver per query.")
        .default("20000"),
    maybe!("solver-log", solver_log, Takes::Path("DIR"), path).help("Folder for slow queries, as SMT-LIB files."),
    maybe!("log-queries", log_queries, Takes::Path("DIR"), path)
        .help("Folder for all queries that reach enumeration, SAT or SMT, as SMT-LIB files."),
    values!("env", host.env, Takes::Values("NAME=VALUE"), parse_variable)
        .checked(|spec| all(&spec.host.env, check::variable))
        .help("Environment variables of the program, NAME=VALUE. It has no others.")
        .scope(Scope::Host)
        .own_key("env"),
    values!("program", host.program, Takes::Values("[PATH=]PROGRAM"), GuestProgram::parse)
        .checked(|spec| all(&spec.host.program, check::program))
        .help("Another program that the guest can execve, at its path on this machine or at PATH.")
        .scope(Scope::Host)
        .own_key("programs"),
    values!("ro", host.ro, Takes::Values("PATH[=GUESTPATH]"), Mount::parse)
        .checked(|spec| all(&spec.host.ro, check::mount))
        .help(
            "Mount a file or folder of this disk in the guest, at the same path or at GUESTPATH. The guest writes \
             to its own copy.",
        )
        .scope(Scope::Host)
        .own_key("ro"),
    values!("files", host.files, Takes::Values("DIR"), Mount::parse_folder)
        .checked(|spec| all(&spec.host.files, check::contents))
        .help(
            "Copy the contents of this folder into the program's working directory. Nothing is written back.",
        )
        .scope(Scope::Host)
        .own_key("files"),
    values!("file", host.file, Takes::Values("GUESTPATH=FILE"), Mount::parse_file)
        .checked(|spec| all(&spec.host.file, check::mount))
        .help("Mount a file or folder of this disk in the guest at GUESTPATH.")
        .scope(Scope::Host)
        .own_key("file"),
    maybe!("cwd", host.cwd, Takes::Path("DIR"), path)
        .checked(|spec| some(&spec.host.cwd, check::path))
        .help("Working directory of the program; created if it does not exist.")
        .scope(Scope::Host)
        .own_key("cwd"),
    maybe!("scheduler", host.scheduler, "NAME", named)
        .checked(|spec| some(&spec.host.scheduler, check::scheduler))
        .help(
            "Which thread runs next: {names}.",
        )
        .names(|| {
            let policies = SCHEDULERS.iter();
            policies
                .map(|policy| format!("{} ({})", policy.usage(), policy.what))
                .collect()
        })
        .scope(Scope::Host)
        .key("host", "scheduler", OptionKind::Text),
    maybe!("preempt", host.preempt, "WHERE", named)
        .checked(|spec| some(&spec.host.preempt, check::preempt))
        .help("Where threads can be preempted: {names}.")
        .names(|| PreemptAt::ALL.map(|(name, _)| name.to_owned()).to_vec())
        .scope(Scope::Host)
        .key("host", "preempt", OptionKind::Text),
    value!("faults", host.faults, "N", number)
        .help(
            "Inject at most N failures of system calls and allocations per path, each with every result that its \
             caller can distinguish.",
        )
        .default("0")
        .scope(Scope::Host)
        .key("host", "faults", SMALL),
    values!("fault", host.fault, Takes::List("CALL[:ERRNO]"), owned)
        .checked(|spec| all(&spec.host.fault, check::fault))
        .help(
            "Inject only these failures: CALL, CALL:ERRNO, CALL:short, CALL:spurious, malloc; * matches all \
             calls. FUNCTION() and FUNCTION():ERRNO mean calls of a libc function by the program, *() of all. A \
             leading ! excludes them instead.",
        )
        .requires("faults")
        .scope(Scope::Host)
        .key("host", "fault_calls", OptionKind::Texts),
    switch!("fault-regions", host.fault_regions)
        .help("Inject failures only between everett_faults_enable and everett_faults_disable.")
        .requires("faults")
        .scope(Scope::Host)
        .key("host", "fault_regions", OptionKind::Flag),
    values!("fault-program", host.fault_program, Takes::List("NAME"), owned)
        .checked(|spec| all(&spec.host.fault_program, |name: &str| check::path(name.as_ref())))
        .help("Inject failures only in processes that execute a program of this name.")
        .requires("faults")
        .scope(Scope::Host)
        .key("host", "fault_programs", OptionKind::Texts),
    value!("socket-block-interval", host.socket_block_interval, "N", number)
        .help("Fail every N-th send of non-blocking sockets with EAGAIN; 0: none.")
        .default("0")
        .scope(Scope::Host)
        .key("host", "socket_block_interval", SMALL),
    value!("select-fail-interval", host.select_fail_interval, "N", number)
        .help("Fail every N-th select, alternately with EINTR and ENOMEM; 0: none.")
        .default("0")
        .scope(Scope::Host)
        .key("host", "select_fail_interval", SMALL),
    switch!("sym-file-times", host.sym_file_times)
        .help(
            "Let programs find each regular file that they have not modified with its own times, with times far \
             in the past, and with times far in the future.",
        )
        .scope(Scope::Host)
        .key("host", "symbolic_file_times", OptionKind::Flag),
    switch!("sym-file-modes", host.sym_file_modes)
        .help(
            "As in KLEE, let symbolic files and standard input be of any kind (`st_mode`, terminals), and let nobody \
             have the permission to open a symbolic file for writing.",
        )
        .scope(Scope::Host)
        .key("host", "symbolic_file_modes", OptionKind::Flag),
    value!("fragment", host.fragment, "N", number)
        .help("Deliver the bytes of pipes and streams in up to N pieces, split in all ways.")
        .default("0")
        .scope(Scope::Host)
        .key("host", "fragment", SMALL),
    switch!("wait-all", host.wait_all)
        .help("Continue after the first process has exited, until all processes have.")
        .scope(Scope::Host)
        .key("host", "wait_all", OptionKind::Flag),
    switch!("trust-handlers", host.trust_handlers)
        .help(
            "Let handlers of SIGSEGV, SIGFPE and similar signals handle faults. By default, a fault is a finding \
             even if there is a handler.",
        )
        .scope(Scope::Host)
        .key("host", "trust_handlers", OptionKind::Flag),
    maybe!("max-output", host.max_output, "SIZE", |value| parse_bytes(text(value)?))
        .help("Terminate programs that print more than this.")
        .default("256M")
        .scope(Scope::Host)
        .key("host", "max_output", OptionKind::Size),
    maybe!("max-files", host.max_files, "SIZE", |value| parse_bytes(text(value)?))
        .help("Fail writes to files with ENOSPC when all files together exceed this size.")
        .default("1G")
        .scope(Scope::Host)
        .key("host", "max_files", OptionKind::Size),
    maybe!("max-processes", host.max_processes, "N", number)
        .help("Fail fork and clone with EAGAIN at this number of processes and threads.")
        .default("1024")
        .scope(Scope::Host)
        .key("host", "max_processes", SMALL),
    maybe!("max-calls", host.max_calls, "N", number)
        .checked(|spec| some(&spec.host.max_calls, check::positive))
        .help("Report native runs with more system calls than this as hangs.")
        .default("1000000")
        .scope(Scope::Host)
        .key("host", "max_calls", NUMBER),
    maybe!("uptime", host.uptime, "TIME", |value| parse_time(text(value)?))
        .checked(|spec| some(&spec.host.uptime, check::uptime))
        .help("Uptime of the host when it starts, as its monotonic clocks show it.")
        .default("100s")
        .scope(Scope::Host)
        .key("host", "uptime", OptionKind::Duration),
    maybe!("mapping", mapping, "NAME", named)
        .checked(|spec| some(&spec.mapping, check::mapping))
        .help(
            "Scenarios only: the state mapping, which tracks the states of different hosts that form worlds: \
             {names}.",
        )
        .names(|| MAPPINGS.iter().map(|row| row.name.to_owned()).collect())
        .default(MAPPINGS[0].name)
        .scope(Scope::Worlds)
        .key("search", "mapping", OptionKind::Text),
    maybe!("orders", orders, "N", number)
        .help("Scenarios only: how often on a path a packet may overtake earlier packets to the same host.")
        .default("0")
        .scope(Scope::Worlds)
        .key("search", "orders", SMALL),
    values!("set", settings, Takes::Values("KEY=VALUE"), parse_setting).help("Scenarios only: override a key of the scenario, such as host.server.args='[\"-p\", \"80\"]'.")
        .scope(Scope::Worlds),
    maybe!("world", world, Takes::Path("FILE"), path)
        .help(
            "For programs that boot a world (netklee.h): a scenario without hosts, which adds faults, checks, \
             limits and the like.",
        )
        .scope(Scope::Booting),
    maybe!("against", against, Takes::Path("OLD"), path)
        .help(
            "Explore another build of the program on the same input, and report where the two differ: in how they end, in \
             output, or in files (differences/). Of a scenario: another scenario with the same hosts.",
        )
        .scope(Scope::Program),
    switch!("dtest", dtest).help("Scenarios only: also write findings and tests as .dtest, each with a .ktest for every host.")
        .scope(Scope::Worlds),
    switch!("allow-live", allow_live)
        .help(
            "Allow live peers of a scenario ([peer.NAME]) to be started and contacted. Nothing else outside is.",
        ),
    maybe!("offline", offline, Takes::Path("RUN"), path)
        .help("Answer for live peers from the recording of this earlier run, and do not contact them.")
        .scope(Scope::Worlds),
];

/// Returns the option with a name.
pub fn option(name: &str) -> Option<&'static RunOption> {
    OPTIONS.iter().find(|option| option.name == name)
}

/// Returns all options as a Markdown list, for `docs/options.md`.
pub fn options_list() -> String {
    let mut list = String::new();
    for option in OPTIONS {
        let takes = match option.takes {
            Takes::Nothing => String::new(),
            Takes::Value(name) | Takes::Values(name) | Takes::List(name) | Takes::Path(name) => {
                format!(" {name}")
            }
        };
        let key = option.scenario_key.map(|key| format!(" (`{key}`)"));
        let default = option.default.map(|value| format!(" Default: {value}."));
        let (key, default) = (key.unwrap_or_default(), default.unwrap_or_default());
        let text = format!(
            "`--{}{takes}`{key}: {}{default}",
            option.name,
            option.text()
        );
        let mut line = String::from("-");
        for word in text.split(' ') {
            if line.len() + 1 + word.len() > COLUMNS {
                let _ = writeln!(list, "{line}");
                line = String::from(" ");
            }
            line.push(' ');
            line.push_str(word);
        }
        let _ = writeln!(list, "{line}");
    }
    list
}

/// The width of documents.
const COLUMNS: usize = 120;
