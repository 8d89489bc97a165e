//! Flags of runs, and the specs that they mean.

use anyhow::Result;
use everett::{GuestProgram, HostSpec, Mount, ResumeSpec, RunSpec};
use serde::Serialize;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::display::Mode;

/// What `everett run` is told.
#[derive(clap::Args, Clone, Debug, Serialize)]
pub struct RunArgs {
    /// Folder for the results; default: the next number below everett-out/.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Be done after this time, with the results written, e.g. 90s, 10m, 2h.
    #[arg(long, value_name = "TIME", value_parser = everett::parse_time)]
    max_time: Option<Duration>,
    /// Put states away when the process needs more memory than this, e.g. 4G.
    #[arg(long, value_name = "SIZE", value_parser = everett::parse_size, default_value = "4G")]
    max_memory: u64,
    /// Stop when this many paths have ended.
    #[arg(long, value_name = "N")]
    max_paths: Option<u64>,
    /// Stop after this many forks.
    #[arg(long, value_name = "N")]
    max_forks: Option<u64>,
    /// Cut off paths with more forks than this.
    #[arg(long, value_name = "N")]
    max_depth: Option<u32>,
    /// Report paths with more instructions than this as hangs.
    #[arg(long, value_name = "N")]
    max_instructions: Option<u64>,
    /// Largest block that malloc of a symbolic size keeps symbolic.
    #[arg(long, value_name = "BYTES", default_value_t = 4096)]
    max_symbolic_size: u64,
    /// Seed of everything random.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Searchers that take turns: dfs, bfs, random-path, random-state, coverage, fewest-faults,
    /// fewest-preemptions, shallowest; random-path,coverage where nothing is said. Where a scenario is explored and
    /// nothing is said, the state with the least clock goes on.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    search: Vec<String>,
    /// Instructions before another state is picked.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,
    /// Write a test for every path, not only for those that cover something new.
    #[arg(long)]
    all_tests: bool,
    /// Write no tests.
    #[arg(long)]
    no_tests: bool,
    /// Write the files that a path made or changed beside its test or finding.
    #[arg(long)]
    save_fs: bool,
    /// Do not let findings happen again on the native program.
    #[arg(long)]
    no_confirm: bool,
    /// Do not look for simpler inputs of findings.
    #[arg(long)]
    no_shrink: bool,
    /// Report every path that ends in a finding, not only the first at a place.
    #[arg(long)]
    all_findings: bool,
    /// Report memory that nobody can free any more when the program exits.
    #[arg(long)]
    check_leaks: bool,
    /// Report signed and unsigned overflow that the compiler was promised not to happen.
    #[arg(long)]
    check_overflow: bool,
    /// Report decisions on memory that was never written.
    #[arg(long)]
    check_uninitialised: bool,
    /// Report accesses of several threads to the same memory that nothing orders.
    #[arg(long)]
    check_races: bool,
    /// Solver for what exceeds the first tier: path of z3, bitwuzla or cvc5; `none` for no such solver.
    #[arg(long, value_name = "PROGRAM")]
    smt_solver: Option<PathBuf>,
    /// Time for one query of that solver.
    #[arg(long, value_name = "TIME", value_parser = everett::parse_time, default_value = "30s")]
    solver_time: Duration,
    /// Conflicts that the first tier may have in one query.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    solver_conflicts: u32,
    /// Folder for slow queries, as SMT-LIB files.
    #[arg(long, value_name = "DIR")]
    solver_log: Option<PathBuf>,
    /// Environment variables of the program, NAME=VALUE. It has no others.
    #[arg(long, value_name = "NAME=VALUE", value_parser = everett::parse_variable)]
    env: Vec<String>,
    #[command(flatten)]
    #[serde(flatten)]
    host: HostArgs,
    /// Where a scenario is explored: how states of different hosts are kept together: sds, cow or cob.
    #[arg(long, value_name = "NAME")]
    mapping: Option<String>,
    /// Where a scenario is explored: how often on a path something arrives before what would have arrived earlier.
    #[arg(long, value_name = "N")]
    orders: Option<u32>,
    /// Where a scenario is explored: a key of it and its value, such as host.server.args='["-p", "80"]'.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = everett::parse_setting)]
    settings: Vec<(String, String)>,
    /// Where a program boots a world (netklee.h): a scenario without hosts, with what else there is to say of it, such as
    /// faults, checks and limits.
    #[arg(long, value_name = "FILE")]
    world: Option<PathBuf>,
    /// Where a scenario is explored: write findings and tests as .dtest too, each with a .ktest for every host.
    #[arg(long)]
    dtest: bool,
    /// Print nothing but findings and errors.
    #[arg(long, short)]
    #[serde(skip)]
    quiet: bool,
    /// Print events as lines of JSON.
    #[arg(long, conflicts_with = "quiet")]
    #[serde(skip)]
    json: bool,
    /// The program that `everett cc` made (or its bitcode), then its arguments. Symbolic ones:
    /// --sym-arg N, --sym-args MIN MAX N, --sym-stdin N, --sym-files COUNT N, --sym-file NAME N or MIN-MAX,
    /// --sym-env NAME N.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    command: Vec<OsString>,
}

impl RunArgs {
    /// The program and its arguments, or a scenario.
    pub fn command(&self) -> &[OsString] {
        &self.command
    }

    /// How to talk.
    pub fn mode(&self) -> Mode {
        mode(self.quiet, self.json)
    }

    /// The run that they mean.
    pub fn spec(&self) -> Result<RunSpec> {
        Ok(serde_json::from_value(serde_json::to_value(self)?)?)
    }
}

fn mode(quiet: bool, json: bool) -> Mode {
    match (quiet, json) {
        (true, _) => Mode::Quiet,
        (_, true) => Mode::Json,
        _ => Mode::Text,
    }
}

/// What `everett resume` is told.
#[derive(clap::Args)]
pub struct ResumeArgs {
    /// Folder of the run that was stopped.
    dir: PathBuf,
    /// Be done after this time, counted from now, with the results written.
    #[arg(long, value_name = "TIME", value_parser = everett::parse_time)]
    max_time: Option<Duration>,
    /// Stop when this many paths have ended, counted from the first start.
    #[arg(long, value_name = "N")]
    max_paths: Option<u64>,
    /// Stop after this many forks, counted from the first start.
    #[arg(long, value_name = "N")]
    max_forks: Option<u64>,
    /// Print nothing but findings and errors.
    #[arg(long, short)]
    quiet: bool,
    /// Print events as lines of JSON.
    #[arg(long, conflicts_with = "quiet")]
    json: bool,
}

impl ResumeArgs {
    /// How to talk.
    pub fn mode(&self) -> Mode {
        mode(self.quiet, self.json)
    }

    /// The run that they mean.
    pub fn spec(&self) -> ResumeSpec {
        ResumeSpec {
            dir: self.dir.clone(),
            max_time: self.max_time,
            max_paths: self.max_paths,
            max_forks: self.max_forks,
        }
    }
}

/// What a host is told.
#[derive(clap::Args, Clone, Debug, Default, Serialize)]
pub struct HostArgs {
    /// Another program that can be started by execve, at the path where it is here or at PATH.
    #[arg(long, value_name = "[PATH=]PROGRAM", value_parser = GuestProgram::parse)]
    program: Vec<GuestProgram>,
    /// A file or folder of this disk that the program sees, at the same path or at GUESTPATH. What it writes
    /// there reaches only its own copy.
    #[arg(long, value_name = "PATH[=GUESTPATH]", value_parser = Mount::parse)]
    ro: Vec<Mount>,
    /// Copies what lies in this folder into the program's working directory. Nothing is written back.
    #[arg(long, value_name = "DIR", value_parser = Mount::parse_folder)]
    files: Vec<Mount>,
    /// A file of this disk that the program finds at GUESTPATH.
    #[arg(long, value_name = "GUESTPATH=FILE", value_parser = Mount::parse_file)]
    file: Vec<Mount>,
    /// The directory that the program starts in; made if it is not there.
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Which thread runs next: round-robin, exhaustive (all orders), bounded:N (all orders with at most N
    /// preemptions), random:SEED.
    #[arg(long, value_name = "NAME", value_parser = everett::parse_scheduler)]
    scheduler: Option<String>,
    /// Where threads can be preempted: quantum, syscalls, atomics, memory.
    #[arg(long, value_name = "WHERE", value_parser = everett::parse_preempt)]
    preempt: Option<String>,
    /// Let at most N system calls and allocations on a path fail, each in every way that its caller can tell apart.
    #[arg(long, value_name = "N", default_value_t = 0)]
    faults: u32,
    /// Only these failures: CALL, CALL:ERRNO, CALL:short, CALL:spurious, malloc.
    #[arg(long, value_name = "CALL[:ERRNO]", value_delimiter = ',', requires = "faults", value_parser = everett::parse_fault)]
    fault: Vec<String>,
    /// Failures only between everett_faults_enable and everett_faults_disable.
    #[arg(long, requires = "faults")]
    fault_regions: bool,
    /// Failures only in processes that execute a program of this name.
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "faults")]
    fault_program: Vec<String>,
    /// Let bytes of pipes and streams arrive in up to N pieces, in all ways.
    #[arg(long, value_name = "N", default_value_t = 0)]
    fragment: u32,
    /// Go on after the end of the first process until all processes have ended.
    #[arg(long)]
    wait_all: bool,
    /// Let handlers of SIGSEGV, SIGFPE and their like deal with faults; otherwise faults are findings though there
    /// is a handler.
    #[arg(long)]
    trust_handlers: bool,
}

impl HostArgs {
    /// The host that they mean.
    pub fn spec(&self) -> Result<HostSpec> {
        Ok(serde_json::from_value(serde_json::to_value(self)?)?)
    }
}
