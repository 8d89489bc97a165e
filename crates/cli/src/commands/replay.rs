//! `everett replay`.

use anyhow::Result;
use everett::ReplaySpec;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Instant;

use crate::EXIT_CLEAN;
use crate::commands::{BuildArgs, Subcommand, exit_code};
use crate::display::{Display, Steps, print};
use crate::session::session;
use crate::step::{InspectArgs, inspect};

/// Arguments of `everett replay`.
#[derive(clap::Args)]
pub struct ReplayArgs {
    /// A trace, the folder of a finding, or the folder of a run.
    path: PathBuf,
    /// How it is looked at.
    #[command(flatten)]
    inspect: InspectArgs,
    /// On which build.
    #[command(flatten)]
    build: BuildArgs,
    /// Replay each trace this many times and compare the runs event by event.
    #[arg(long, value_name = "N")]
    times: Option<NonZeroU32>,
    /// Start and contact the live peers of the scenario instead of using their recording.
    #[arg(long)]
    live: bool,
}

impl Subcommand for ReplayArgs {
    fn run(&self) -> Result<u8> {
        let (session, build) = (session()?, self.build.spec());
        if self.inspect.is_interactive() {
            inspect(&self.inspect, &self.path, &build, &session)?;
            return Ok(EXIT_CLEAN);
        }
        let spec = ReplaySpec {
            path: self.path.clone(),
            build,
            one: self.inspect.is_about_one(),
            steps: self.inspect.needs_log(),
            pcap: self.inspect.pcap.clone(),
            times: self.times,
            live: self.live,
        };
        let mut display = Display::of_replay(Steps {
            are_printed: self.inspect.strace,
            since: self.inspect.speed.as_ref().map(|_| Instant::now()),
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
}
