//! The commands: each turns flags into a spec, calls the library, and returns an exit code.

use anyhow::{Context, Result, bail};
use everett::{
    BugKind, BuildSpec, ConfirmSpec, Console, ExecEnding, ExecSpec, ExportSpec, NativeEnd,
    NativeResult, NativeRun, NativeSpec, NativeSummary, OtherBuild, OutputStream, ReplaySpec,
    RunResult, ScenarioSpec, ShrinkSpec, TestSpec, TraceSize, Watcher, parse_setting, parse_time,
};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::args::{HostArgs, ResumeArgs, RunArgs};
use crate::display::{Display, Mode, Steps, numbered, print, show_output};
use crate::session::{session, stop_flag};
use crate::step::{LookArgs, look};
use crate::{EXIT_CLEAN, EXIT_ERROR, EXIT_FINDINGS};

/// The exit code for a run with or without findings.
fn exit_code(is_clean: bool) -> u8 {
    match is_clean {
        true => EXIT_CLEAN,
        false => EXIT_FINDINGS,
    }
}

fn searched(result: &RunResult) -> u8 {
    exit_code(result.summary.findings().is_empty())
}

/// `everett run`.
pub fn run(args: &RunArgs) -> Result<u8> {
    let mut session = session();
    session.stop = stop_flag()?;
    let mut display = Display::new(args.mode);
    Ok(searched(&everett::explore(
        &args.spec,
        &session,
        &mut display,
    )?))
}

/// `everett resume`.
pub fn resume(args: &ResumeArgs) -> Result<u8> {
    let mut session = session();
    session.stop = stop_flag()?;
    let mut display = Display::new(args.mode());
    Ok(searched(&everett::resume(
        &args.spec(),
        &session,
        &mut display,
    )?))
}

/// Arguments of `everett follow` and `everett strace`.
#[derive(clap::Args)]
pub struct FollowArgs {
    /// Folder of a run (all its tests and findings), or one trace inside it.
    path: PathBuf,
}

/// `everett follow`.
pub fn follow(args: &FollowArgs) -> Result<u8> {
    let mut display = Display::new(Mode::Text);
    let result = everett::follow(&args.path, &session(), &mut display)?;
    print(&format!(
        "{} traces followed, {} end otherwise",
        result.traces, result.different
    ));
    Ok(exit_code(result.different == 0))
}

/// `everett strace`.
pub fn strace(args: &FollowArgs) -> Result<u8> {
    everett::strace(&args.path, &session(), &mut Display::new(Mode::Text))?;
    Ok(EXIT_CLEAN)
}

/// Selects the build of the program to replay traces on.
#[derive(clap::Args)]
pub struct BuildArgs {
    /// Replay on this native program instead of the one that was explored: another build of the same source, or a
    /// newer one. With PATH, instead of the one that the run has there (`--program`); of a world, instead of that of
    /// a host or group of hosts.
    #[arg(long, value_name = "[PATH=]PROGRAM", value_parser = OtherBuild::parse)]
    on: Vec<OtherBuild>,
    /// Replay on the builds that check every access to memory, not only where a finding needs them.
    #[arg(long)]
    checked: bool,
}

impl BuildArgs {
    fn spec(&self) -> BuildSpec {
        BuildSpec {
            on: self.on.clone(),
            checked: self.checked,
        }
    }
}

/// Arguments of `everett replay`.
#[derive(clap::Args)]
pub struct ReplayArgs {
    /// A trace, the folder of a finding, or the folder of a run.
    path: PathBuf,
    /// How it is looked at.
    #[command(flatten)]
    look: LookArgs,
    /// On which build.
    #[command(flatten)]
    build: BuildArgs,
    /// Replay each trace so many times and compare everything that happens, event by event.
    #[arg(long, value_name = "N")]
    times: Option<NonZeroU32>,
}

/// `everett replay`.
pub fn replay(args: &ReplayArgs) -> Result<u8> {
    let (session, build) = (session(), args.build.spec());
    if args.look.is_interactive() {
        look(&args.look, &args.path, &build, &session)?;
        return Ok(EXIT_CLEAN);
    }
    let spec = ReplaySpec {
        path: args.path.clone(),
        build,
        one: args.look.is_about_one(),
        steps: args.look.needs_log(),
        pcap: args.look.pcap.clone(),
        times: args.times,
    };
    let mut display = Display::of_replay(Steps {
        are_printed: args.look.strace,
        since: args.look.speed.as_ref().map(|_| Instant::now()),
    });
    let result = everett::replay(&spec, &session, &mut display)?;
    let what = if result.are_worlds {
        "worlds"
    } else {
        "traces"
    };
    print(&format!(
        "{} of {} {what} confirmed",
        result.confirmed, result.traces
    ));
    Ok(exit_code(result.confirmed == result.traces))
}

/// Arguments of `everett confirm`.
#[derive(clap::Args)]
pub struct ConfirmArgs {
    /// Folder of a run, or a part of it.
    path: PathBuf,
    /// All tests too, not only findings.
    #[arg(long)]
    tests: bool,
    #[command(flatten)]
    build: BuildArgs,
    /// How many are replayed at a time; default: one for each processor.
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

/// `everett confirm`.
pub fn confirm(args: &ConfirmArgs) -> Result<u8> {
    let spec = ConfirmSpec {
        path: args.path.clone(),
        tests: args.tests,
        build: args.build.spec(),
        jobs: args.jobs,
    };
    let mut display = Display::new(Mode::Text);
    let result = everett::confirm(&spec, &session(), &mut display)?;
    print(&format!(
        "{} of {} traces confirmed",
        result.confirmed, result.traces
    ));
    Ok(exit_code(result.confirmed == result.traces))
}

/// Arguments of `everett test`.
#[derive(clap::Args)]
pub struct TestArgs {
    /// Folders of runs or parts of them, or traces.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    build: BuildArgs,
    /// Findings must not happen any more.
    #[arg(long)]
    fixed: bool,
    /// Write the results in JUnit's form too.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// How many are replayed at a time; default: one for each processor.
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

/// `everett test`.
pub fn test(args: &TestArgs) -> Result<u8> {
    let spec = TestSpec {
        paths: args.paths.clone(),
        build: args.build.spec(),
        fixed: args.fixed,
        junit: args.junit.clone(),
        jobs: args.jobs,
    };
    let mut display = Display::new(Mode::Text);
    let result = everett::test(&spec, &session(), &mut display)?;
    print(&format!(
        "{} passed, {} failed, {} diverged, {} skipped",
        result.passed, result.failed, result.diverged, result.skipped
    ));
    Ok(exit_code(result.failed + result.diverged == 0))
}

/// Arguments of `everett shrink`.
#[derive(clap::Args)]
pub struct ShrinkArgs {
    /// A trace, or the folder of a finding.
    path: PathBuf,
    /// Write the simpler trace to this file; default: in place, with what was there beside it (.original.trace).
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Be content with what was found after this time.
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "60s")]
    max_time: Duration,
}

/// `everett shrink`.
pub fn shrink(args: &ShrinkArgs) -> Result<u8> {
    let spec = ShrinkSpec {
        path: args.path.clone(),
        out: args.out.clone(),
        max_time: args.max_time,
    };
    let result = everett::shrink(&spec, &session())?;
    print(&format!("before: {}", size_text(&result.before)));
    let Some(shrunk) = result.shrunk else {
        print("nothing simpler ends the same");
        return Ok(EXIT_CLEAN);
    };
    print(&format!("after:  {}", size_text(&shrunk.after)));
    if let Some(tries) = shrunk.tries {
        print(&format!("{tries} candidates were followed"));
    }
    print(&format!("written to {}", shrunk.file.display()));
    Ok(EXIT_CLEAN)
}

/// A description of a trace's size.
fn size_text(size: &TraceSize) -> String {
    let things = |count: usize, one: &str, many: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    };
    match size.bytes {
        Some(bytes) => format!(
            "{}, {} of {} not zero",
            things(
                size.deviations,
                "choice that is not as usual",
                "choices that are not as usual"
            ),
            size.nonzero,
            things(bytes, "byte", "bytes"),
        ),
        None => format!(
            "{} choices that are not as usual, {} bytes that are not zero",
            size.deviations, size.nonzero
        ),
    }
}

/// Arguments of `everett export`.
#[derive(clap::Args)]
pub struct ExportArgs {
    /// The folder of a finding, or a trace. A world of several hosts becomes a script that builds their network with
    /// namespaces; the word `netns` may stand before it.
    #[arg(required = true, num_args = 1..=2, value_names = ["[netns] FINDING"])]
    words: Vec<PathBuf>,
    /// Write the script to this file; default: to standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// `everett export`.
pub fn export(args: &ExportArgs) -> Result<u8> {
    let (netns, path) = match args.words.as_slice() {
        [form, path] if form.as_os_str() == "netns" => (true, path),
        [path] => (false, path),
        _ => bail!("say what to export: FINDING, or netns FINDING"),
    };
    let spec = ExportSpec {
        path: path.clone(),
        netns,
    };
    let script = everett::export(&spec, &session())?;
    match &args.out {
        None => print!("{}", script.text),
        Some(file) => script.write(file)?,
    }
    Ok(EXIT_CLEAN)
}

/// Arguments of `everett native`.
#[derive(clap::Args)]
pub struct NativeArgs {
    /// Seed of all choices: schedules and failures.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Run so many times, with this seed and those that follow, and report how the runs ended. Unless told otherwise,
    /// threads are scheduled at random before system calls.
    #[arg(long, value_name = "N")]
    runs: Option<NonZeroU32>,
    /// Folder for what many runs find; default: the next number below everett-out/.
    #[arg(long, value_name = "DIR", requires = "runs")]
    out: Option<PathBuf>,
    /// Print system calls to stderr, as strace does.
    #[arg(long)]
    strace: bool,
    /// Where it is a scenario: a key of it and its value, such as host.server.args='["-p", "80"]'.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_setting)]
    settings: Vec<(String, String)>,
    /// The host of a single program.
    #[command(flatten)]
    host: HostArgs,
    /// The program and its arguments, or a scenario: a file that ends in .toml.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<OsString>,
}

/// Passes the standard input of this process to the program.
struct OurInput;

impl Watcher for OurInput {
    fn input(&mut self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; 65536];
        // A read error counts as end of file.
        let count = std::io::stdin().read(&mut bytes).unwrap_or(0);
        bytes.truncate(count);
        Some(bytes)
    }
}

/// `everett native`: one run determines the exit code; many runs give 1 if something was found.
pub fn native(args: &NativeArgs) -> Result<u8> {
    let spec = NativeSpec {
        seed: args.seed,
        runs: args.runs,
        out: args.out.clone(),
        logs_calls: args.strace,
        settings: args.settings.clone(),
        host: args.host.spec.clone(),
        command: args.command.clone(),
    };
    Ok(match everett::native(&spec, &session(), &mut OurInput)? {
        NativeResult::Program(run) => native_ended(&run),
        NativeResult::World(run, wrong) => {
            for (name, run) in &run.hosts {
                for line in &run.log {
                    eprintln!("{name} {line}");
                }
            }
            for (name, run) in &run.hosts {
                show_output(Some(name), &run.output);
            }
            if let Some(wrong) = &wrong {
                eprintln!(
                    "everett: host {}: {}: {}",
                    wrong.host, wrong.kind, wrong.message
                );
            }
            exit_code(wrong.is_none())
        }
        NativeResult::Many {
            folder,
            summary,
            findings,
            is_world,
        } => {
            let who = if is_world { "" } else { "the program " };
            native_summary(&summary, &folder, findings, who);
            exit_code(findings == 0)
        }
    })
}

/// The exit status by which shells report SIGABRT.
const ABORTED: u8 = 128 + 6;

fn native_ended(run: &NativeRun) -> u8 {
    for (number, line) in (1..).zip(&run.log) {
        eprintln!("{}", numbered(number, line));
    }
    show_output(None, &run.output);
    let describe = || eprintln!("everett: the program {}", everett::describe_end(run));
    match &run.end {
        NativeEnd::Exit(status) => *status as u8,
        NativeEnd::Signal { signal, .. } => {
            describe();
            128 + *signal as u8
        }
        NativeEnd::Idle => EXIT_CLEAN,
        // The model reports an abort as a finding; the caller expects the exit status of a signal.
        NativeEnd::Finding { kind, .. } if *kind == BugKind::Abort.name() => {
            describe();
            ABORTED
        }
        _ => {
            describe();
            EXIT_ERROR
        }
    }
}

/// Prints how many runs ended in which way; `who` names what ends.
fn native_summary(summary: &NativeSummary, folder: &Path, findings: u32, who: &str) {
    print(&format!(
        "{} runs, {} distinct ends, {findings} findings, {:.2} s, {:.0} runs/s, {:.0} system calls/s",
        summary.runs,
        summary.ends.len(),
        summary.wall_seconds,
        f64::from(summary.runs) / summary.wall_seconds,
        summary.calls as f64 / summary.wall_seconds,
    ));
    for ended in &summary.ends {
        let place = match &ended.finding {
            Some(place) => format!(": {}", folder.join(place).display()),
            None => String::new(),
        };
        print(&format!(
            "{:>8} {who}{} (first with seed {}){place}",
            ended.runs, ended.end, ended.seed
        ));
    }
}

/// Arguments of `everett exec`.
#[derive(clap::Args)]
pub struct ExecArgs {
    /// Print system calls to stderr, as strace does: virtual time, thread, call, result.
    #[arg(long)]
    strace: bool,
    #[command(flatten)]
    host: HostArgs,
    /// The program that `everett cc` made, or its bitcode, and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Connects the program to the standard streams of this process.
struct OurConsole;

impl Console for OurConsole {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        std::io::stdin().read(buffer)
    }

    fn write(&mut self, stream: OutputStream, bytes: &[u8]) -> std::io::Result<()> {
        match stream {
            OutputStream::Stdout => {
                std::io::stdout().write_all(bytes)?;
                std::io::stdout().flush()
            }
            OutputStream::Stderr => std::io::stderr().write_all(bytes),
        }
    }

    fn call(&mut self, line: &str) {
        eprintln!("{line}");
    }
}

/// `everett exec`: exits with the exit code of the program.
pub fn exec(args: &ExecArgs) -> Result<u8> {
    let spec = ExecSpec {
        logs_calls: args.strace,
        host: args.host.spec.clone(),
        env: std::env::vars_os().collect(),
        command: args.command.clone(),
    };
    let result = everett::exec(&spec, &session(), &mut OurConsole)?;
    for warning in &result.warnings {
        eprintln!("everett: {warning}");
    }
    Ok(match result.ending {
        ExecEnding::Exit(status) => status as u8,
        // The exit status by which shells report signals.
        ExecEnding::Signal(signal) => 128 + signal as u8,
        ExecEnding::Idle => {
            eprintln!("everett: all threads wait for what nobody will send");
            0
        }
        ExecEnding::NotStarted { kind, message } => {
            eprintln!("everett: {}: {message}", kind.name());
            EXIT_ERROR
        }
        ExecEnding::Bug {
            kind,
            message,
            stack,
        } => {
            eprintln!("everett: {}: {message}", kind.name());
            for frame in &stack {
                eprintln!("    in {} at {}:{}", frame.function, frame.file, frame.line);
            }
            match kind {
                BugKind::Abort | BugKind::Assertion => 134,
                kind if kind.is_tool_limit() => EXIT_ERROR,
                _ => 139,
            }
        }
        _ => 0,
    })
}

/// What `everett scenario` does.
#[derive(clap::Subcommand)]
pub enum ScenarioCommand {
    /// Says whether a scenario is in order, and what is wrong with it.
    Check(ScenarioArgs),
    /// Prints a scenario with everything that it leaves out: addresses, routes, defaults.
    Show(ShowArgs),
}

/// Selects a scenario.
#[derive(clap::Args)]
pub struct ScenarioArgs {
    /// The scenario's file.
    file: PathBuf,
    /// Stands above what the file says, e.g. host.server.args='["-p","80"]'.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_setting)]
    settings: Vec<(String, String)>,
}

impl ScenarioArgs {
    fn spec(&self) -> ScenarioSpec {
        ScenarioSpec {
            file: self.file.clone(),
            settings: self.settings.clone(),
        }
    }
}

/// Arguments of `everett scenario show`.
#[derive(clap::Args)]
pub struct ShowArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Write a picture of the network for Graphviz.
    #[arg(long, value_name = "FILE")]
    dot: Option<PathBuf>,
    /// Write a picture of the network that browsers show.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// `everett scenario`.
pub fn scenario(command: &ScenarioCommand) -> Result<u8> {
    match command {
        ScenarioCommand::Check(args) => check(args),
        ScenarioCommand::Show(args) => show(args),
    }
}

fn check(args: &ScenarioArgs) -> Result<u8> {
    let scenario = everett::load_scenario(&args.spec())?;
    let topology = &scenario.topology;
    let counted = [
        (topology.hosts().len(), "host"),
        (topology.networks().len(), "network"),
        (topology.routers().len(), "router"),
        (scenario.faults.list().len(), "fault"),
        (scenario.checks.len(), "check"),
    ];
    let parts = counted.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts
        .map(|(count, name)| format!("{count} {name}{}", if *count == 1 { "" } else { "s" }))
        .collect();
    print(&format!(
        "{}: in order, {}",
        args.file.display(),
        parts.join(", ")
    ));
    Ok(EXIT_CLEAN)
}

fn show(args: &ShowArgs) -> Result<u8> {
    let scenario = everett::load_scenario(&args.scenario.spec())?;
    let pictures = [
        (&args.dot, everett_net::dot as fn(&_) -> String),
        (&args.svg, everett_net::svg),
    ];
    for (file, draw) in pictures {
        if let Some(file) = file {
            std::fs::write(file, draw(&scenario.topology))
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
    }
    print!("{}", everett_scenario::show(&scenario));
    Ok(EXIT_CLEAN)
}
