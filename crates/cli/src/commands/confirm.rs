//! `everett confirm`.

use anyhow::Result;
use everett::ConfirmSpec;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use crate::commands::{BuildArgs, Subcommand, exit_code};
use crate::display::{Display, Mode, print};
use crate::session::session;

/// Arguments of `everett confirm`.
#[derive(clap::Args)]
pub struct ConfirmArgs {
    /// Folder of a run, or a part of it.
    path: PathBuf,
    /// Also replay all tests, not only findings.
    #[arg(long)]
    tests: bool,
    #[command(flatten)]
    build: BuildArgs,
    /// Number of parallel replays; default: one per processor.
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

impl Subcommand for ConfirmArgs {
    fn run(&self) -> Result<u8> {
        let spec = ConfirmSpec {
            path: self.path.clone(),
            tests: self.tests,
            build: self.build.spec(),
            jobs: self.jobs,
        };
        let mut display = Display::new(Mode::Text);
        let result = everett::confirm(&spec, &session()?, &mut display)?;
        print(&format!(
            "{} of {} traces confirmed",
            result.confirmed, result.traces
        ));
        Ok(exit_code(result.confirmed == result.traces))
    }
}
