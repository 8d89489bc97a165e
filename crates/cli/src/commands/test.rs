//! `everett test`.

use anyhow::Result;
use everett::TestSpec;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use crate::commands::{BuildArgs, Subcommand, code_of};
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
        Ok(code_of(result.conclusion()))
    }
}
