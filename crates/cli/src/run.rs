//! `everett run` and `everett resume`.

use anyhow::{Context, Result, bail};
use everett_engine::{Explorer, ExplorerConfig, Limits, Start, Stopped};
use everett_linux::Boot;
use everett_report::Folder;
use everett_solver::{SmtConfig, SolverConfig};
use everett_vm::{Image, VmOptions};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::bootstrap::{self, Booted, boots};
use crate::checkpoint::Checkpoint;
use crate::display::{Display, Mode};
use crate::host_args::HostArgs;
use crate::input::host_config;
use crate::load::OtherBuild;
use crate::output::{AfterRun, Recorder};
use crate::scenario::{ScenarioArgs, parse_setting};
use crate::summary::Summary;
use crate::world::is_scenario;
use crate::{EXIT_CLEAN, EXIT_FINDINGS};

/// What `everett run` is told.
#[derive(clap::Args, Clone, Debug, Serialize, Deserialize)]
pub struct RunArgs {
    /// Folder for the results; default: the next number below everett-out/.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Be done after this time, with the results written, e.g. 90s, 10m, 2h.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    max_time: Option<Duration>,
    /// Put states away when the process needs more memory than this, e.g. 4G.
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "4G")]
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
    #[serde(default)]
    save_fs: bool,
    /// Do not let findings happen again on the native program.
    #[arg(long)]
    #[serde(default)]
    no_confirm: bool,
    /// Do not look for simpler inputs of findings.
    #[arg(long)]
    #[serde(default)]
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
    #[serde(default)]
    check_races: bool,
    /// Solver for what exceeds the first tier: path of z3, bitwuzla or cvc5; `none` for no such solver.
    #[arg(long, value_name = "PROGRAM")]
    smt_solver: Option<PathBuf>,
    /// Time for one query of that solver.
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "30s")]
    solver_time: Duration,
    /// Conflicts that the first tier may have in one query.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    solver_conflicts: u32,
    /// Folder for slow queries, as SMT-LIB files.
    #[arg(long, value_name = "DIR")]
    solver_log: Option<PathBuf>,
    /// Environment variables of the program, NAME=VALUE. It has no others.
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_variable)]
    env: Vec<String>,
    #[command(flatten)]
    #[serde(flatten)]
    host: HostArgs,
    /// Where a scenario is explored: how states of different hosts are kept together: sds, cow or cob.
    #[arg(long, value_name = "NAME")]
    #[serde(default)]
    mapping: Option<String>,
    /// Where a scenario is explored: how often on a path something arrives before what would have arrived earlier.
    #[arg(long, value_name = "N")]
    #[serde(default)]
    orders: Option<u32>,
    /// Where a scenario is explored: a key of it and its value, such as host.server.args='["-p", "80"]'.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_setting)]
    #[serde(default)]
    settings: Vec<(String, String)>,
    /// Where a program boots a world (netklee.h): a scenario without hosts, with what else there is to say of it, such as
    /// faults, checks and limits.
    #[arg(long, value_name = "FILE")]
    #[serde(default)]
    world: Option<PathBuf>,
    /// Where a scenario is explored: write findings and tests as .dtest too, each with a .ktest for every host.
    #[arg(long)]
    #[serde(default)]
    dtest: bool,
    /// Print nothing but findings and errors.
    #[arg(long, short)]
    quiet: bool,
    /// Print events as lines of JSON.
    #[arg(long, conflicts_with = "quiet")]
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
    /// What an earlier run was told.
    pub fn of(dir: &Path) -> Result<RunArgs> {
        let text = std::fs::read(dir.join("args.json"))
            .with_context(|| format!("{} is not the folder of a run", dir.display()))?;
        let args: RunArgs = serde_json::from_slice(&text)
            .with_context(|| format!("{}/args.json is damaged", dir.display()))?;
        if args.command.is_empty() {
            bail!(
                "{}/args.json is damaged: it names no program",
                dir.display()
            );
        }
        Ok(args)
    }

    /// The same where it must have been a run of one program.
    pub fn of_program(dir: &Path) -> Result<RunArgs> {
        let args = RunArgs::of(dir)?;
        if is_scenario(args.program()) {
            bail!(
                "{} has worlds of several hosts, for which this is not possible yet",
                dir.display()
            );
        }
        Ok(args)
    }

    /// A run with these words alone.
    fn of_words(words: &[OsString]) -> Result<RunArgs> {
        #[derive(clap::Parser)]
        struct Alone {
            #[command(flatten)]
            run: RunArgs,
        }
        let words = std::iter::once(OsString::from("run")).chain(words.iter().cloned());
        Ok(<Alone as clap::Parser>::try_parse_from(words)?.run)
    }

    /// A run of a native program on a host.
    pub fn of_native(host: HostArgs, command: &[OsString]) -> Result<RunArgs> {
        let run = RunArgs::of_words(command)?;
        Ok(RunArgs { host, ..run })
    }

    /// Keys of a scenario that stand above those that it has.
    pub fn set(&mut self, settings: &[(String, String)]) {
        self.settings.extend_from_slice(settings);
    }

    /// Options that are about one program: a scenario says the same host by host, and what it does not say cannot be
    /// had yet.
    pub fn refuse_what_scenarios_say(&self) -> Result<()> {
        let scenario = &self.command[..1];
        if self.command.len() > 1 {
            bail!(
                "a scenario has no arguments; those of its programs stand in it (--set host.NAME.args=...)"
            );
        }
        let usual = serde_json::to_value(RunArgs::of_words(scenario)?)?;
        let said = serde_json::to_value(self)?;
        let said = said.as_object().into_iter().flatten();
        for (name, value) in said {
            if !FOR_SCENARIOS.contains(&name.as_str()) && usual.get(name) != Some(value) {
                let option = name.replace('_', "-");
                bail!(
                    "--{option} is for single programs; a scenario says such things for each of its hosts, where it can"
                );
            }
        }
        Ok(())
    }

    /// Stack slots may become registers unless it matters that they were never written.
    pub fn promotes(&self) -> bool {
        !self.check_uninitialised
    }

    /// The programs.
    pub fn load(&self) -> Result<Vec<Image>> {
        self.host.load(self.program(), self.promotes())
    }

    /// The native programs, the first one first.
    pub fn native_programs(&self) -> Vec<PathBuf> {
        self.host.native_programs(self.program())
    }

    /// The same with other builds of some of the programs.
    pub fn on(&self, builds: &[OtherBuild]) -> Result<RunArgs> {
        let mut args = self.clone();
        for build in builds {
            match &build.path {
                Some(path) => args.host.replace(path, &build.file)?,
                None => args.command[0] = build.file.as_os_str().to_owned(),
            }
        }
        Ok(args)
    }

    /// A scenario with what is to be said of the world that a program boots.
    pub fn world(&self) -> Option<&Path> {
        self.world.as_deref()
    }

    /// Environment variables of the program.
    pub fn environment(&self) -> &[String] {
        &self.env
    }

    /// What a scenario says of a host that is told the same.
    pub fn host_keys(&self) -> Result<String> {
        self.host.scenario_keys()
    }

    /// The same run of the scenario of a world that the program boots. What hosts are told stands in it.
    pub fn for_world(&self, scenario: &Path) -> Result<RunArgs> {
        let mut usual = serde_json::to_value(RunArgs::of_words(&[scenario.into()])?)?;
        let said = serde_json::to_value(self)?;
        let in_scenario = serde_json::to_value(HostArgs::default())?;
        for (name, value) in said.as_object().into_iter().flatten() {
            if FOR_SCENARIOS.contains(&name.as_str()) {
                usual[name] = value.clone();
            } else if usual.get(name) != Some(value)
                && in_scenario.get(name).is_none()
                && !FOR_BOOTING.contains(&name.as_str())
            {
                let option = name.replace('_', "-");
                bail!(
                    "--{option} is for single programs; {} boots a world of several hosts",
                    self.program().display()
                );
            }
        }
        let mut args: RunArgs = serde_json::from_value(usual)?;
        if self.seed != 0 {
            args.set(&[("search.seed".to_owned(), self.seed.to_string())]);
        }
        Ok(args)
    }

    /// The program and its arguments, or a scenario.
    pub fn command(&self) -> &[OsString] {
        &self.command
    }

    /// The program and its arguments.
    pub fn words(&self) -> Vec<String> {
        let words = self.command.iter();
        words
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }

    /// The scenario, and what stands above its keys.
    pub fn scenario(&self) -> ScenarioArgs {
        let orders = self
            .orders
            .map(|most| ("search.orders".to_owned(), most.to_string()));
        let names = self.search.join("\", \"");
        let order = || ("search.order".to_owned(), format!("[\"{names}\"]"));
        let order = (!self.search.is_empty()).then(order);
        let above = orders.into_iter().chain(order);
        ScenarioArgs {
            file: self.program().to_owned(),
            settings: self.settings.iter().cloned().chain(above).collect(),
        }
    }

    /// How states of different hosts are kept together, where that is said.
    pub fn mapping(&self) -> Option<&str> {
        self.mapping.as_deref()
    }

    /// Tests of worlds are to be written as `.dtest`, too.
    pub fn writes_dtests(&self) -> bool {
        self.dtest
    }

    /// Where the results go.
    pub fn folder(&self) -> Result<Folder> {
        Ok(match &self.out {
            Some(path) => Folder::create(path)?,
            None => Folder::next(Path::new("everett-out"))?,
        })
    }

    /// Until when findings may be made simpler, where they are.
    pub fn shrinks_until(&self) -> Option<Duration> {
        let until = self.max_time.unwrap_or(Duration::MAX);
        let until = until.min(clock() + AFTER_TIME);
        (!self.no_shrink).then_some(until)
    }

    /// Findings are to happen again natively.
    pub fn confirms(&self) -> bool {
        !self.no_confirm
    }

    /// How to talk.
    pub fn mode(&self) -> Mode {
        match (self.quiet, self.json) {
            (true, _) => Mode::Quiet,
            (_, true) => Mode::Json,
            _ => Mode::Text,
        }
    }

    /// System calls are to be logged.
    pub fn log_calls(&mut self) {
        self.host.log_calls();
    }

    /// The program.
    pub fn program(&self) -> &Path {
        Path::new(&self.command[0])
    }
}

/// Options that mean the same where a scenario is explored.
const FOR_SCENARIOS: &[&str] = &[
    "out",
    "max_time",
    "max_memory",
    "max_forks",
    "max_paths",
    "max_depth",
    "max_instructions",
    "max_symbolic_size",
    "all_tests",
    "no_confirm",
    "no_shrink",
    "check_overflow",
    "check_uninitialised",
    "check_races",
    "smt_solver",
    "solver_time",
    "solver_conflicts",
    "solver_log",
    "search",
    "mapping",
    "orders",
    "settings",
    "dtest",
    "quiet",
    "json",
];

/// Options that a program that boots a world is set up with; of no meaning behind that.
const FOR_BOOTING: &[&str] = &["command", "env", "world", "search", "batch", "seed"];

/// What `everett resume` is told.
#[derive(clap::Args)]
pub struct ResumeArgs {
    /// Folder of the run that was stopped.
    dir: PathBuf,
    /// Be done after this time, counted from now, with the results written.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
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

fn parse_variable(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((name, _)) if !name.is_empty() => Ok(text.to_owned()),
        _ => Err(format!("{text:?} is no variable; write NAME=VALUE")),
    }
}

fn parse_size(text: &str) -> Result<u64, String> {
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

/// Time for making findings simpler and letting them happen again.
const AFTER_TIME: Duration = Duration::from_secs(20);

static START: OnceLock<Instant> = OnceLock::new();

/// Time since the start of the program.
pub fn clock() -> Duration {
    START.get_or_init(Instant::now).elapsed()
}

/// Gives memory that was freed back to the system: the allocator keeps it for a while otherwise.
fn release_memory() {
    // SAFETY: it may be called at any time, from any thread.
    unsafe { libmimalloc_sys::mi_collect(true) };
}

/// Memory that the process takes, from the kernel.
pub fn memory_used() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

/// Most memory that the process had so far.
pub fn memory_peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Explores a program.
pub fn run(args: &RunArgs) -> Result<u8> {
    clock();
    if is_scenario(args.program()) {
        return crate::world::run(args);
    }
    let images = args.load()?;
    if args.dtest && !boots(&images) {
        bail!("--dtest is for scenarios; the tests of one program are .ktest");
    }
    if args.world.is_some() && !boots(&images) {
        bail!("--world is for programs that boot worlds; this one never calls klee_net_host_setup");
    }
    let folder = args.folder()?;
    folder.write("args.json", &serde_json::to_vec(args)?)?;
    explore(args, &images, &folder, None)
}

/// Goes on with a run that was stopped.
pub fn resume(resume: &ResumeArgs) -> Result<u8> {
    clock();
    let mut args = RunArgs::of_program(&resume.dir)?;
    let checkpoint = Checkpoint::read(&resume.dir)?;
    args.max_time = resume.max_time;
    args.max_paths = resume.max_paths;
    args.max_forks = resume.max_forks;
    args.quiet = resume.quiet;
    args.json = resume.json;
    let images = args.load()?;
    if checkpoint.segments() != everett_vm::Coverage::of(&images).segments.len() {
        bail!("the program has changed since the run was stopped; start a new run");
    }
    let folder = Folder::open(&resume.dir)?;
    explore(&args, &images, &folder, Some(checkpoint))
}

fn explore(
    args: &RunArgs,
    images: &[Image],
    folder: &Folder,
    checkpoint: Option<Checkpoint>,
) -> Result<u8> {
    let mut config = explorer_config(args, Some(folder.path().join("shelf")))?;
    config.host.boot = Boot::StopAtSetup;
    let start = checkpoint
        .as_ref()
        .map_or(Start::Beginning, Checkpoint::start);
    // Leaving it to the end of the process is faster than taking it apart.
    let mut explorer = ManuallyDrop::new(Explorer::new(images, config, start)?);
    let display = Display::new(args.mode(), clock);
    let mut recorder = Recorder::new(folder.clone(), display, args.words(), !args.no_tests);
    if let Some(limit) = args.max_time.filter(|_| !args.no_confirm) {
        recorder.kept_time = (limit / 10).min(AFTER_TIME);
    }
    let mut earlier = Duration::ZERO;
    if let Some(checkpoint) = &checkpoint {
        checkpoint.restore(&mut explorer);
        recorder.continue_from(checkpoint);
        earlier = Duration::from_secs_f64(checkpoint.wall_seconds);
    }
    let stop = stop_flag()?;
    let stopped = explorer.run(&stop, &mut recorder);
    let hosts = std::mem::take(&mut recorder.hosts);
    let booted = Booted {
        others: explorer.statistics().paths_completed - hosts.len() as u64,
        hosts,
        stopped,
    };
    let boots_world = !booted.hosts.is_empty();
    if boots_world && recorder.findings.is_empty() {
        // Nothing of it can be taken up again without the hosts that are set up.
        Checkpoint::remove(folder.path())?;
        return bootstrap::explore(args, folder, &booted, &stop);
    }
    if stopped == Stopped::Finished {
        Checkpoint::remove(folder.path())?;
    } else {
        let left = explorer
            .leave()
            .context("cannot write down what is left to explore")?;
        Checkpoint::of(&explorer, left, &recorder, clock() + earlier).write(folder)?;
    }
    let until = |time: Duration| {
        let longest = clock() + time;
        args.max_time.map_or(longest, |limit| limit.min(longest))
    };
    let after = AfterRun {
        // The other half is for confirming.
        shrink: (!args.no_shrink).then(|| clock() + until(AFTER_TIME).saturating_sub(clock()) / 2),
        confirm: (!args.no_confirm).then(|| until(AFTER_TIME)),
    };
    recorder.confirm(args, images, after);
    let summary = Summary::new(&explorer, &recorder, stopped, clock() + earlier);
    folder.write("coverage.lcov", summary.line_coverage.to_lcov().as_bytes())?;
    folder.write("summary.json", &summary.to_json()?)?;
    if boots_world {
        recorder.warn(&booted.after_findings());
    }
    recorder.finish(&summary, folder.path())?;
    Ok(if summary.findings.is_empty() {
        EXIT_CLEAN
    } else {
        EXIT_FINDINGS
    })
}

pub fn explorer_config(args: &RunArgs, shelf: Option<PathBuf>) -> Result<ExplorerConfig> {
    let program = Path::new(&args.command[0]);
    let smt = match &args.smt_solver {
        Some(path) if path.as_os_str() == "none" => None,
        Some(path) if !is_program(path) => bail!("there is no solver {}", path.display()),
        Some(path) => Some(SmtConfig::for_program(path.clone(), args.solver_time)),
        None => Some(SmtConfig::z3_found_by(find_z3, args.solver_time)),
    };
    let mut host = host_config(program, &args.command[1..], &args.env)?;
    args.host.apply(&mut host)?;
    Ok(ExplorerConfig {
        host,
        vm: VmOptions {
            max_symbolic_size: args.max_symbolic_size,
            check_overflow: args.check_overflow,
            check_uninitialised: args.check_uninitialised,
            check_races: args.check_races,
            report_uncaught: true,
            ..VmOptions::default()
        },
        solver: SolverConfig {
            clock,
            smt,
            conflict_budget: args.solver_conflicts,
            solver_log: args.solver_log.clone(),
            ..SolverConfig::default()
        },
        search: match args.search.as_slice() {
            [] => ["random-path", "coverage"].map(str::to_owned).to_vec(),
            named => named.to_vec(),
        },
        batch_instructions: args.batch,
        seed: args.seed,
        limits: Limits {
            max_time: args.max_time,
            max_memory: Some(args.max_memory),
            max_paths: args.max_paths,
            max_forks: args.max_forks,
            max_depth: args.max_depth,
            max_instructions: args.max_instructions,
        },
        all_tests: args.all_tests,
        all_findings: args.all_findings,
        check_leaks: args.check_leaks,
        keep_output: false,
        keep_files: args.save_fs,
        clock,
        memory_used,
        release_memory,
        shelf,
    })
}

/// Set when the user asks to stop; asked twice, the process ends at once.
pub fn stop_flag() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    })?;
    Ok(stop)
}

/// Whether a program is there, by its path or by the name that a shell would find.
fn is_program(path: &Path) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&folders);
    path.is_file()
        || (path.components().count() == 1 && folders.any(|dir| dir.join(path).is_file()))
}

/// z3 where it is there already; else the pinned one, installed now.
fn find_z3() -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed = std::env::split_paths(&path)
        .map(|dir| dir.join("z3"))
        .find(|candidate| candidate.is_file());
    match installed {
        Some(path) if std::env::var_os("EVERETT_Z3").is_none() => Ok(path),
        _ => everett_toolchain::ensure_z3().map_err(|error| error.to_string()),
    }
}
