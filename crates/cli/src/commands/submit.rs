//! `everett submit`, `status`, `watch`, `results` and `cancel`: runs on a cluster.

use anyhow::{Context, Result};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use everett_cluster::{
    Broker, Build, Error, Removed, RunId, SigningKey, Submission, Submitted, cancel, remove,
    results, run_named, status,
};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

use crate::args::RunArgs;
use crate::broker::BrokerArgs;
use crate::commands::{Subcommand, code_of};
use crate::display::{Display, Mode, print};
use crate::session::{notice, stoppable_session};
use crate::{EXIT_CLEAN, EXIT_INTERRUPTED};

/// The polling interval of `watch`.
const PAUSE: Duration = Duration::from_millis(500);
/// How often `watch` tries in vain to reach its broker before it gives up: for two minutes at least.
const MOST_FAILURES: u32 = 240;

/// Arguments of `everett submit`: those of `everett run`, and the broker.
pub struct SubmitArgs {
    run: RunArgs,
    broker: BrokerArgs,
    sizes: SizeArgs,
}

#[derive(clap::Args)]
struct SizeArgs {
    /// Instructions that a job executes before it is divided, if a
    /// worker is idle; default: 20000000.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    job_work: Option<u64>,
    /// Total instruction limit of all workers, not counting rematerialisation of states.
    #[arg(long, value_name = "N")]
    max_work: Option<u64>,
}

impl Args for SubmitArgs {
    fn augment_args(command: Command) -> Command {
        RunArgs::augment_args(SizeArgs::augment_args(BrokerArgs::augment_args(command)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        SubmitArgs::augment_args(command)
    }
}

impl FromArgMatches for SubmitArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<SubmitArgs, clap::Error> {
        Ok(SubmitArgs {
            run: RunArgs::from_arg_matches(matches)?,
            broker: BrokerArgs::from_arg_matches(matches)?,
            sizes: SizeArgs::from_arg_matches(matches)?,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = SubmitArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for SubmitArgs {
    fn run(&self) -> Result<u8> {
        let session = stoppable_session()?;
        let submission = Submission {
            spec: self.run.spec.clone(),
            build: Build::of_this_program(env!("CARGO_PKG_VERSION"))?,
            work: self.sizes.job_work,
            max_work: self.sizes.max_work,
            nonce: Submission::fresh_nonce(),
            key: SigningKey::from_environment()?,
        };
        let mut broker = self.broker.connect()?;
        let (dir, submitted) = Submitted::submit(&mut *broker, submission, &session)?;
        tell_submitted(&submitted.run, &dir, self.run.mode);
        Ok(EXIT_CLEAN)
    }
}

/// Prints the name of a submitted run.
pub fn tell_submitted(run: &RunId, dir: &Path, mode: Mode) {
    match mode {
        Mode::Quiet => {}
        Mode::Json => print(&json!({"run": run, "folder": dir}).to_string()),
        Mode::Text => print(&format!("run {run}, results will be in {}", dir.display())),
    }
}

/// A run that was submitted.
#[derive(clap::Args)]
pub struct TargetArgs {
    /// The folder that `everett submit` made, or the name of the run.
    run: PathBuf,
    #[command(flatten)]
    broker: BrokerArgs,
}

impl TargetArgs {
    /// Connects to the broker.
    pub fn connect(&self) -> Result<Box<dyn Broker>> {
        self.broker.connect()
    }

    /// Returns the name of the run.
    pub fn id(&self) -> Result<RunId> {
        Ok(run_named(&self.run)?)
    }
}

/// Arguments of `everett status`.
#[derive(clap::Args)]
pub struct StatusArgs {
    /// The folder that `everett submit` made, or the name of the run; default: all runs of the
    /// broker, a line each.
    run: Option<PathBuf>,
    #[command(flatten)]
    broker: BrokerArgs,
    /// Print the status as JSON.
    #[arg(long)]
    json: bool,
}

impl StatusArgs {
    /// Prints a line for each run.
    fn list(&self, broker: &mut dyn Broker) -> Result<u8> {
        for run in broker.runs()? {
            let found = status(broker, &run);
            let line = match (self.json, found) {
                (true, Ok(status)) => {
                    let mut status = status.to_json();
                    status["run"] = json!(run);
                    status.to_string()
                }
                (true, Err(error)) => json!({"run": run, "error": error.to_string()}).to_string(),
                (false, Ok(status)) => format!("{run} {}: {}", status.state(), status.progress()),
                (false, Err(error)) => format!("{run} {error}"),
            };
            print(&line);
        }
        Ok(EXIT_CLEAN)
    }
}

impl Subcommand for StatusArgs {
    fn run(&self) -> Result<u8> {
        let run = self.run.as_deref().map(run_named).transpose()?;
        let mut broker = self.broker.connect()?;
        let Some(run) = run else {
            return self.list(&mut *broker);
        };
        let status = status(&mut *broker, &run)?;
        print(&match self.json {
            true => status.to_json().to_string(),
            false => status.to_string(),
        });
        Ok(EXIT_CLEAN)
    }
}

/// Arguments of `everett watch`.
#[derive(clap::Args)]
pub struct WatchArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Print nothing.
    #[arg(long, short)]
    quiet: bool,
}

impl Subcommand for WatchArgs {
    fn run(&self) -> Result<u8> {
        let session = stoppable_session()?;
        let (mut broker, run) = (self.target.connect()?, self.target.id()?);
        let (mut last, mut refused, mut failures) = (String::new(), None, 0);
        while !session.stop.load(Ordering::SeqCst) {
            let status = match status(&mut *broker, &run) {
                Err(Error::Broker(why)) if failures < MOST_FAILURES => {
                    if failures == 0 {
                        notice(&format!(
                            "the broker cannot be reached, trying again: {why}"
                        ));
                    }
                    failures += 1;
                    sleep(PAUSE);
                    continue;
                }
                status => status?,
            };
            failures = 0;
            let line = status.progress();
            if !self.quiet && line != last {
                print(&line);
            }
            last = line;
            if status.is_over() || status.is_cancelled {
                return Ok(EXIT_CLEAN);
            }
            if let Some(refusal) = status.refusal.filter(|new| refused.as_ref() != Some(new)) {
                notice(&refusal.to_string());
                refused = Some(refusal);
            }
            if let Some(why) = status.paused_because {
                notice(&format!("a worker has paused the run: {why}"));
                return Ok(EXIT_INTERRUPTED);
            }
            sleep(PAUSE);
        }
        Ok(EXIT_INTERRUPTED)
    }
}

/// Arguments of `everett results`.
#[derive(clap::Args)]
pub struct ResultsArgs {
    /// The folder that `everett submit` made.
    dir: PathBuf,
    #[command(flatten)]
    broker: BrokerArgs,
    /// Print nothing but findings and errors.
    #[arg(long, short)]
    quiet: bool,
}

impl Subcommand for ResultsArgs {
    fn run(&self) -> Result<u8> {
        let session = stoppable_session()?;
        let mode = if self.quiet { Mode::Quiet } else { Mode::Text };
        let mut broker = self.broker.connect()?;
        let dir: &Path = &self.dir;
        let result = results(&mut *broker, dir, &session, &mut Display::new(mode));
        let result = result.with_context(|| format!("no results for {}", dir.display()))?;
        if !result.summary.complete && !self.quiet {
            let run = run_named(dir)?;
            let status = status(&mut *broker, &run)?;
            if !status.is_over() && !status.is_cancelled {
                notice(match status.is_paused {
                    true => {
                        "note: the run is only paused; `everett cancel` it before you resume it here"
                    }
                    false => {
                        "note: workers of the cluster go on with the run; `everett cancel` it before you resume it here"
                    }
                });
            }
        }
        Ok(code_of(result.summary.conclusion()))
    }
}

/// Arguments of `everett cancel`.
#[derive(clap::Args)]
pub struct CancelArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Remove the run from the broker, finished or not. Its folder stays, but `results` has
    /// nothing more to write into it.
    #[arg(long)]
    remove: bool,
}

impl Subcommand for CancelArgs {
    fn run(&self) -> Result<u8> {
        let (mut broker, run) = (self.target.connect()?, self.target.id()?);
        if !self.remove {
            cancel(&mut *broker, &run)?;
            return Ok(EXIT_CLEAN);
        }
        if let Removed::NoObjects(busy) = remove(&mut *broker, &run)? {
            let busy: Vec<&str> = busy.iter().map(RunId::as_str).collect();
            notice(&format!(
                "note: its programs and results stay at the broker while other runs may need them ({}); the next \
                 removal takes them",
                busy.join(", ")
            ));
        }
        Ok(EXIT_CLEAN)
    }
}
