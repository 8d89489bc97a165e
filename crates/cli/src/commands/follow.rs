//! `everett follow` and `everett strace`.

use anyhow::Result;
use everett::counted;
use std::path::PathBuf;

use crate::EXIT_CLEAN;
use crate::commands::{Subcommand, exit_code};
use crate::display::{Display, Mode, print};
use crate::session::session;

/// Arguments of `everett follow`.
#[derive(clap::Args)]
pub struct FollowArgs {
    /// Folder of a run (all its tests and findings), or one trace inside it.
    path: PathBuf,
}

/// Arguments of `everett strace`.
#[derive(clap::Args)]
pub struct StraceArgs {
    #[command(flatten)]
    traces: FollowArgs,
}

impl Subcommand for FollowArgs {
    fn run(&self) -> Result<u8> {
        let mut display = Display::new(Mode::Text);
        let result = everett::follow(&self.path, &session()?, &mut display)?;
        print(&format!(
            "{} followed, {} end otherwise",
            counted(result.traces, "trace"),
            result.different
        ));
        Ok(exit_code(result.different == 0))
    }
}

impl Subcommand for StraceArgs {
    fn run(&self) -> Result<u8> {
        everett::strace(
            &self.traces.path,
            &session()?,
            &mut Display::new(Mode::Text),
        )?;
        Ok(EXIT_CLEAN)
    }
}
