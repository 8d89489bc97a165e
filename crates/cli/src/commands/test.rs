//! `everett test`.

use anyhow::Result;
use everett::TestSpec;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use crate::EXIT_ERROR;
use crate::commands::{BuildArgs, Subcommand, exit_code};
use crate::display::{Display, Mode, print};
use crate::session::session;

/// Arguments of `everett test`.
#[derive(clap::Args)]
pub struct TestArgs {
    /// Folders of runs or parts of them, or traces.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    build: BuildArgs,
    /// Expect that no finding is reproduced any more.
    #[arg(long)]
    fixed: bool,
    /// Also write the results in JUnit's format.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Number of parallel replays; default: one per processor.
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

impl Subcommand for TestArgs {
    fn run(&self) -> Result<u8> {
        let spec = TestSpec {
            paths: self.paths.clone(),
            build: self.build.spec(),
            fixed: self.fixed,
            junit: self.junit.clone(),
            jobs: self.jobs,
        };
        let mut display = Display::new(Mode::Text);
        let result = everett::test(&spec, &session()?, &mut display)?;
        print(&format!(
            "{} passed, {} failed, {} diverged, {} skipped",
            result.passed, result.failed, result.diverged, result.skipped
        ));
        let is_wrong = result.failed + result.diverged > 0;
        Ok(
            match result.passed == 0 && result.skipped > 0 && !is_wrong {
                // Nothing was tested at all.
                true => EXIT_ERROR,
                false => exit_code(!is_wrong),
            },
        )
    }
}
