//! The run options: one table row defines name, meaning, help text and scope of an option. Command lines, the
//! documentation and the validation of specs derive from the table. Must not know any command line.

use std::ffi::OsStr;
use std::fmt::Write;
use std::path::PathBuf;
use std::str::FromStr;

use crate::host::{parse_fault, parse_preempt, parse_scheduler};
use crate::layers::Mount;
use crate::load::GuestProgram;
use crate::scenario::parse_setting;
use crate::spec::{RunSpec, parse_size, parse_time, parse_variable};

/// Sets an option of a run to a value, or adds a value to it. A switch ignores the value.
pub type Setter = fn(&mut RunSpec, &OsStr) -> Result<(), String>;

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

/// The scope of an option.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Scope {
    /// The run, whether of a program or a scenario.
    Run,
    /// Runs of one program; if it boots a world, the search until its hosts are set up.
    Booting,
    /// The host of one program, including native and concrete runs.
    Host,
}

/// One option of a run.
#[derive(Debug)]
pub struct RunOption {
    /// Its name, with dashes.
    pub name: &'static str,
    /// The field of [`RunSpec`] that it sets, as named in `args.json`.
    pub field: &'static str,
    /// The help text.
    pub help: &'static str,
    /// The kind of argument it takes.
    pub takes: Takes,
    /// The default value, if it is worth showing.
    pub default: Option<&'static str>,
    /// Another option that this one requires.
    pub requires: Option<&'static str>,
    /// The scope of the option.
    pub scope: Scope,
    /// The equivalent key of a scenario.
    pub scenario_key: Option<&'static str>,
    /// Sets the option in a spec.
    pub set: Setter,
}

impl RunOption {
    const fn new(name: &'static str, field: &'static str, takes: Takes, set: Setter) -> RunOption {
        RunOption {
            name,
            field,
            help: "",
            takes,
            default: None,
            requires: None,
            scope: Scope::Run,
            scenario_key: None,
            set,
        }
    }

    const fn help(self, help: &'static str) -> RunOption {
        RunOption { help, ..self }
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

    const fn key(self, key: &'static str) -> RunOption {
        let scenario_key = Some(key);
        RunOption {
            scenario_key,
            ..self
        }
    }
}

fn text(value: &OsStr) -> Result<&str, String> {
    value
        .to_str()
        .ok_or_else(|| format!("{} is no text in UTF-8", value.display()))
}

fn number<N: FromStr<Err = std::num::ParseIntError>>(value: &OsStr) -> Result<N, String> {
    text(value)?
        .parse()
        .map_err(|error: std::num::ParseIntError| error.to_string())
}

fn positive(value: &OsStr) -> Result<u64, String> {
    match number(value)? {
        0 => Err("0 is not in 1..".to_owned()),
        number => Ok(number),
    }
}

/// A row for a switch.
macro_rules! switch {
    ($name:literal, $($field:ident).+) => {
        RunOption::new($name, last!($($field).+), Takes::Nothing, |spec, _| {
            spec.$($field).+ = true;
            Ok(())
        })
    };
}

/// A row for an option with a value, which an expression parses.
macro_rules! value {
    ($name:literal, $($field:ident).+, $value:literal, $parse:expr) => {
        RunOption::new($name, last!($($field).+), Takes::Value($value), |spec, value| {
            spec.$($field).+ = ($parse)(value)?;
            Ok(())
        })
    };
}

/// A row for an option with a value whose field is an `Option`.
macro_rules! maybe {
    ($name:literal, $($field:ident).+, $value:literal, $parse:expr) => {
        RunOption::new($name, last!($($field).+), Takes::Value($value), |spec, value| {
            spec.$($field).+ = Some(($parse)(value)?);
            Ok(())
        })
    };
}

/// A row for an option with a path.
macro_rules! path {
    ($name:literal, $($field:ident).+, $value:literal) => {
        RunOption::new($name, last!($($field).+), Takes::Path($value), |spec, value| {
            spec.$($field).+ = Some(PathBuf::from(value));
            Ok(())
        })
    };
}

/// A row for an option with several values.
macro_rules! values {
    ($name:literal, $($field:ident).+, $takes:expr, $parse:expr) => {
        RunOption::new($name, last!($($field).+), $takes, |spec, value| {
            spec.$($field).+.push(($parse)(text(value)?)?);
            Ok(())
        })
    };
}

/// The last name of a dotted path, as text.
macro_rules! last {
    ($field:ident) => { stringify!($field) };
    ($first:ident . $($field:ident).+) => { last!($($field).+) };
}

fn owned(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// All run options, in display order.
pub const OPTIONS: &[RunOption] = &[
    path!("out", out, "DIR").help("Folder for the results; default: the next number below everett-out/."),
    maybe!("max-time", max_time, "TIME", |value| parse_time(text(value)?))
        .help("Be done after this time, with the results written, e.g. 90s, 10m, 2h.")
        .key("limits.time"),
    value!("max-memory", max_memory, "SIZE", |value| parse_size(text(value)?))
        .help("Spill states to disk when the process needs more memory than this, e.g. 4G; a search of worlds stops there.")
        .default("4G")
        .key("limits.memory"),
    maybe!("max-paths", max_paths, "N", number)
        .help("Stop when this many paths have ended.")
        .key("limits.paths"),
    maybe!("max-forks", max_forks, "N", number)
        .help("Stop after this many forks.")
        .key("limits.forks"),
    maybe!("max-depth", max_depth, "N", number)
        .help("Cut off paths with more forks than this.")
        .key("limits.depth"),
    maybe!("max-instructions", max_instructions, "N", number)
        .help("Report paths with more instructions than this as hangs.")
        .key("limits.instructions"),
    value!("max-symbolic-size", max_symbolic_size, "BYTES", number)
        .help("Largest block that malloc of a symbolic size keeps symbolic.")
        .default("4096"),
    value!("seed", seed, "N", number)
        .help("Seed of everything random.")
        .default("0")
        .key("search.seed"),
    values!("search", search, Takes::List("NAMES"), owned)
        .help(
            "Searchers that take turns: dfs, bfs, random-path, random-state, coverage, fewest-faults, \
             fewest-preemptions, shallowest; random-path,coverage where nothing is said. Where a scenario is \
             explored and nothing is said, the state with the least clock goes on.",
        )
        .key("search.order"),
    value!("batch", batch, "N", positive)
        .help("Instructions before another state is picked.")
        .default("10000"),
    switch!("all-tests", all_tests)
        .help("Write a test for every path, not only for those that cover something new."),
    switch!("no-tests", no_tests)
        .help("Write no tests."),
    switch!("save-fs", save_fs)
        .help("Write the files that a path made or changed beside its test or finding."),
    switch!("no-confirm", no_confirm)
        .help("Do not let findings happen again on the native program."),
    switch!("no-shrink", no_shrink).help("Do not look for simpler inputs of findings."),
    switch!("all-findings", all_findings)
        .help("Report every path that ends in a finding, not only the first at a place."),
    switch!("check-leaks", check_leaks)
        .help("Report memory that nobody can free any more when the program exits."),
    switch!("check-overflow", check_overflow)
        .help("Report signed and unsigned overflow that the compiler was promised not to happen."),
    switch!("check-uninitialised", check_uninitialised)
        .help("Report decisions on memory that was never written."),
    switch!("check-races", check_races)
        .help("Report accesses of several threads to the same memory that nothing orders."),
    path!("smt-solver", smt_solver, "PROGRAM").help(
        "Solver for what exceeds the first tier: path of z3, bitwuzla or cvc5; `none` for no such solver.",
    ),
    value!("solver-time", solver_time, "TIME", |value| parse_time(text(value)?))
        .help("Time for one query of that solver.")
        .default("30s"),
    value!("solver-conflicts", solver_conflicts, "N", number)
        .help("Conflicts that the first tier may have in one query.")
        .default("20000"),
    path!("solver-log", solver_log, "DIR").help("Folder for slow queries, as SMT-LIB files."),
    values!("env", env, Takes::Values("NAME=VALUE"), parse_variable)
        .help("Environment variables of the program, NAME=VALUE. It has no others.")
        .scope(Scope::Booting)
        .key("host.NAME.env"),
    values!("program", host.program, Takes::Values("[PATH=]PROGRAM"), GuestProgram::parse)
        .help("Another program that can be started by execve, at the path where it is here or at PATH.")
        .scope(Scope::Host)
        .key("host.NAME.programs"),
    values!("ro", host.ro, Takes::Values("PATH[=GUESTPATH]"), Mount::parse)
        .help(
            "A file or folder of this disk that the program sees, at the same path or at GUESTPATH. What it writes \
             there reaches only its own copy.",
        )
        .scope(Scope::Host)
        .key("host.NAME.ro"),
    values!("files", host.files, Takes::Values("DIR"), Mount::parse_folder)
        .help(
            "Copies what lies in this folder into the program's working directory. Nothing is written back.",
        )
        .scope(Scope::Host)
        .key("host.NAME.files"),
    values!("file", host.file, Takes::Values("GUESTPATH=FILE"), Mount::parse_file)
        .help("A file of this disk that the program finds at GUESTPATH.")
        .scope(Scope::Host)
        .key("host.NAME.file"),
    path!("cwd", host.cwd, "DIR")
        .help("The directory that the program starts in; made if it is not there.")
        .scope(Scope::Host)
        .key("host.NAME.cwd"),
    maybe!("scheduler", host.scheduler, "NAME", |value| parse_scheduler(text(value)?))
        .help(
            "Which thread runs next: round-robin, exhaustive (all orders), bounded:N (all orders with at most N \
             preemptions), random:SEED.",
        )
        .scope(Scope::Host)
        .key("host.NAME.scheduler"),
    maybe!("preempt", host.preempt, "WHERE", |value| parse_preempt(text(value)?))
        .help("Where threads can be preempted: quantum, syscalls, atomics, memory.")
        .scope(Scope::Host)
        .key("host.NAME.preempt"),
    value!("faults", host.faults, "N", number)
        .help(
            "Let at most N system calls and allocations on a path fail, each in every way that its \
             caller can tell apart.",
        )
        .default("0")
        .scope(Scope::Host)
        .key("host.NAME.faults"),
    values!("fault", host.fault, Takes::List("CALL[:ERRNO]"), parse_fault)
        .help("Only these failures: CALL, CALL:ERRNO, CALL:short, CALL:spurious, malloc.")
        .requires("faults")
        .scope(Scope::Host)
        .key("host.NAME.fault_calls"),
    switch!("fault-regions", host.fault_regions)
        .help("Failures only between everett_faults_enable and everett_faults_disable.")
        .requires("faults")
        .scope(Scope::Host)
        .key("host.NAME.fault_regions"),
    values!("fault-program", host.fault_program, Takes::List("NAME"), owned)
        .help("Failures only in processes that execute a program of this name.")
        .requires("faults")
        .scope(Scope::Host)
        .key("host.NAME.fault_programs"),
    value!("fragment", host.fragment, "N", number)
        .help("Let bytes of pipes and streams arrive in up to N pieces, in all ways.")
        .default("0")
        .scope(Scope::Host)
        .key("host.NAME.fragment"),
    switch!("wait-all", host.wait_all)
        .help("Go on after the end of the first process until all processes have ended.")
        .scope(Scope::Host)
        .key("host.NAME.wait_all"),
    switch!("trust-handlers", host.trust_handlers)
        .help(
            "Let handlers of SIGSEGV, SIGFPE and their like deal with faults; otherwise faults are \
             findings though there is a handler.",
        )
        .scope(Scope::Host)
        .key("host.NAME.trust_handlers"),
    maybe!("mapping", mapping, "NAME", |value| owned(text(value)?))
        .help(
            "Where a scenario is explored: how states of different hosts are kept together: sds, cow or cob.",
        )
        .key("search.mapping"),
    maybe!("orders", orders, "N", number)
        .help(
            "Where a scenario is explored: how often on a path something arrives before what would \
             have arrived earlier.",
        )
        .key("search.orders"),
    values!("set", settings, Takes::Values("KEY=VALUE"), parse_setting).help(
        "Where a scenario is explored: a key of it and its value, such as host.server.args='[\"-p\", \"80\"]'.",
    ),
    path!("world", world, "FILE")
        .help(
            "Where a program boots a world (netklee.h): a scenario without hosts, with what else there \
             is to say of it, such as faults, checks and limits.",
        )
        .scope(Scope::Booting),
    switch!("dtest", dtest).help(
        "Where a scenario is explored: write findings and tests as .dtest too, each with a .ktest for every host.",
    ),
];

/// The option with a name.
pub fn option(name: &str) -> Option<&'static RunOption> {
    OPTIONS.iter().find(|option| option.name == name)
}

/// All options as a Markdown table, for `docs/options.md`.
pub fn options_table() -> String {
    let mut table = String::from("| option | key of a scenario | what it does |\n|---|---|---|\n");
    let escaped = |text: &str| text.replace('|', "\\|");
    for option in OPTIONS {
        let takes = match option.takes {
            Takes::Nothing => String::new(),
            Takes::Value(name) | Takes::Values(name) | Takes::List(name) | Takes::Path(name) => {
                format!(" {name}")
            }
        };
        let key = option
            .scenario_key
            .map_or_else(String::new, |key| format!("`{key}`"));
        let default = option
            .default
            .map_or_else(String::new, |default| format!(" Default: {default}."));
        let _ = writeln!(
            table,
            "| `--{}{}` | {key} | {}{default} |",
            option.name,
            escaped(&takes),
            escaped(option.help),
        );
    }
    table
}
