//! `everett faults`.

use anyhow::{Context, Result, bail};
use everett::counted;
use everett_faultspace::{
    Nodes, ProfileBy, ProfileSpec, Progress, ReplaySpec, RunSpec, profile, replay, run, show,
};
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;

use crate::EXIT_CLEAN;
use crate::commands::fault_nodes::{BrokerNodes, NodeArgs, run_node};
use crate::commands::{Subcommand, code_of, exit_code};
use crate::display::print;
use crate::session::{notice, session, stoppable_session};

/// Arguments of `everett faults`.
#[derive(clap::Args)]
pub struct FaultsArgs {
    #[command(subcommand)]
    command: FaultsCommand,
}

#[derive(clap::Subcommand)]
enum FaultsCommand {
    /// Runs a search that a file describes. If the folder has results
    /// of the same search, continues it.
    Run(RunArgs),
    /// Runs tests once, counts the calls of their programs, and writes the
    /// space of faults that can hit them.
    Profile(ProfileArgs),
    /// Shows the size, axes and holes of a space, and after a search its structure.
    Show(ShowArgs),
    /// Replays a scenario of a search and reports whether it ends the same.
    Replay(ReplayArgs),
    /// Runs tests of a search for another machine, over a broker, until it is interrupted.
    Node(NodeArgs),
    /// Runs one test for the search. Reads its job from standard input.
    #[command(hide = true)]
    Manager,
}

#[derive(clap::Args)]
struct RunArgs {
    /// The file that describes the search.
    #[arg(value_name = "SEARCH.toml")]
    file: PathBuf,
    /// Folder for the results; default: the next number below everett-out/.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Maximum number of scenarios to run; default: all, or the limit in the file.
    #[arg(long, value_name = "N")]
    runs: Option<u64>,
    /// The seed of the search.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How to search: guided, adaptive, random, exhaustive.
    #[arg(long, value_name = "NAME")]
    search: Option<String>,
    /// Tests at a time; default: one for each processor. Results do not depend on it.
    #[arg(long, value_name = "N", default_value_t = 0)]
    jobs: usize,
    /// Explore the N worst scenarios with symbolic inputs afterwards (injector model).
    #[arg(long, value_name = "N")]
    explore: Option<usize>,
    /// Let the nodes at this broker run the tests (everett faults node), not this machine:
    /// nats://HOST:PORT, tls://HOST:PORT or postgres://USER@HOST/DATABASE.
    #[arg(long, value_name = "URL", conflicts_with = "jobs")]
    broker: Option<String>,
    /// The file with the credentials of a user of NATS; default: EVERETT_BROKER_CREDS.
    #[arg(long, value_name = "FILE", requires = "broker")]
    nats_creds: Option<PathBuf>,
}

#[derive(clap::Args)]
struct ProfileArgs {
    /// Write the space to this file; default: standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Count system calls (for injector ptrace) instead of libc functions (for preload).
    #[arg(long)]
    syscalls: bool,
    /// Count only the calls of programs of this name; default: of all but shells.
    #[arg(long, value_name = "NAME")]
    program: Vec<String>,
    /// How calls are named: by their number in a process, by their call site, by their whole stack, or by
    /// stack and arguments (failure).
    #[arg(long, value_name = "WHAT", default_value = "number", value_parser = ["number", "callsite", "stack", "failure"])]
    by: String,
    /// The most calls of a function in the space.
    #[arg(long, value_name = "N", default_value_t = 100)]
    most_calls: u64,
    /// The tests: a shell command each; or the scenario of a world (for injector model).
    #[arg(required = true, last = true, value_name = "TEST")]
    tests: Vec<String>,
}

#[derive(clap::Args)]
struct ShowArgs {
    /// A space, a file of a search, or the folder of its results.
    path: PathBuf,
    /// The distance of vicinities.
    #[arg(long, value_name = "D", default_value_t = 4)]
    vicinity: u64,
}

#[derive(clap::Args)]
struct ReplayArgs {
    /// The scenario: DIR/NAME, where DIR is the folder of results.
    #[arg(value_name = "DIR/NAME")]
    folder: PathBuf,
    /// How often to replay it.
    #[arg(long, value_name = "N", default_value_t = 1)]
    times: u32,
}

/// Returns whether an error is in the content of a search or space file.
pub fn is_about_a_search_file(error: &anyhow::Error) -> bool {
    use everett_faultspace::Error;
    let error = error.downcast_ref::<Error>();
    matches!(error, Some(Error::Config { .. } | Error::Space { .. }))
}

/// Returns the command that starts a manager: this program.
fn manager() -> Result<Vec<OsString>> {
    let own = std::env::current_exe().context("the path of this program is not known")?;
    Ok(vec![own.into(), "faults".into(), "manager".into()])
}

impl Subcommand for FaultsArgs {
    fn run(&self) -> Result<u8> {
        match &self.command {
            FaultsCommand::Run(args) => run_search(args),
            FaultsCommand::Profile(args) => run_profile(args),
            FaultsCommand::Show(args) => {
                print(&show(&args.path, args.vicinity)?.text());
                Ok(EXIT_CLEAN)
            }
            FaultsCommand::Replay(args) => run_replay(args),
            FaultsCommand::Node(args) => run_node(args, manager()?),
            FaultsCommand::Manager => Ok(everett_faultspace::manager::manage() as u8),
        }
    }
}

fn run_search(args: &RunArgs) -> Result<u8> {
    let session = stoppable_session()?;
    let credentials = args.nats_creds.as_ref();
    let connect = |url: &String| BrokerNodes::connect(url, credentials, session.stop.clone());
    let nodes = args.broker.as_ref().map(connect).transpose()?;
    let spec = RunSpec {
        file: args.file.clone(),
        out: args.out.clone(),
        runs: args.runs,
        seed: args.seed,
        search: args.search.clone(),
        jobs: args.jobs,
        explore: args.explore,
        manager: manager()?,
        nodes: nodes.map(|nodes| Arc::new(nodes) as Arc<dyn Nodes>),
        session,
    };
    let is_terminal = std::io::stderr().is_terminal();
    let mut tell = |progress: &Progress<'_>| {
        if is_terminal {
            eprint!(
                "\r{} of {} scenarios, {} ",
                progress.run,
                progress.most,
                counted(progress.failures, "failure")
            );
            let _ = std::io::stderr().flush();
        } else if progress.last.outcome.is_failure() {
            let last = progress.last;
            let (run, most) = (progress.run, progress.most);
            eprintln!("{run}/{most} {}: {}", last.outcome, last.scenario);
        }
    };
    let result = run(&spec, &mut tell)?;
    if is_terminal {
        eprintln!();
    }
    print(&result.summary.text());
    result.summary.notes().iter().for_each(|note| notice(note));
    print(&format!("results: {}", result.folder.display()));
    Ok(code_of(result.summary.conclusion()))
}

fn run_profile(args: &ProfileArgs) -> Result<u8> {
    let _session = session()?;
    let spec = ProfileSpec {
        tests: args.tests.clone(),
        system_calls: args.syscalls,
        programs: args.program.clone(),
        by: ProfileBy::named(&args.by).unwrap_or_default(),
        most_calls: args.most_calls,
        folder: PathBuf::from("."),
        manager: manager()?,
    };
    let made = profile(&spec)?;
    match &args.out {
        Some(file) => {
            std::fs::write(file, &made.space)
                .with_context(|| format!("cannot write {}", file.display()))?;
            let (size, count) = (made.size, made.calls.len());
            print(&format!(
                "{}: {}, {}",
                file.display(),
                counted(size, "scenario"),
                counted(count, "function")
            ));
        }
        None => print(made.space.trim_end()),
    }
    Ok(EXIT_CLEAN)
}

fn run_replay(args: &ReplayArgs) -> Result<u8> {
    let _session = session()?;
    let spec = ReplaySpec {
        folder: args.folder.clone(),
        times: args.times,
        manager: manager()?,
    };
    let result = replay(&spec)?;
    let recorded = &result.recorded;
    print(&format!("scenario: {}", recorded.scenario));
    print(&format!(
        "recorded: {} ({})",
        recorded.outcome,
        recorded.why.join(", ")
    ));
    for shown in &result.shown {
        print(&format!(
            "replayed: {} ({})",
            shown.outcome,
            shown.why.join(", ")
        ));
    }
    if result.shown.is_empty() {
        bail!("nothing was replayed");
    }
    Ok(exit_code(result.is_same()))
}
