//! `everett pause` and `everett unpause`: a run on a cluster that waits for a while.

use anyhow::Result;
use everett_cluster::{pause, unpause};

use crate::EXIT_CLEAN;
use crate::commands::Subcommand;
use crate::commands::submit::TargetArgs;

/// Arguments of `everett pause`.
#[derive(clap::Args)]
pub struct PauseArgs {
    #[command(flatten)]
    target: TargetArgs,
}

impl Subcommand for PauseArgs {
    fn run(&self) -> Result<u8> {
        let (mut broker, run) = (self.target.connect()?, self.target.id()?);
        pause(&mut *broker, &run)?;
        Ok(EXIT_CLEAN)
    }
}

/// Arguments of `everett unpause`.
#[derive(clap::Args)]
pub struct UnpauseArgs {
    #[command(flatten)]
    target: TargetArgs,
}

impl Subcommand for UnpauseArgs {
    fn run(&self) -> Result<u8> {
        let (mut broker, run) = (self.target.connect()?, self.target.id()?);
        unpause(&mut *broker, &run)?;
        Ok(EXIT_CLEAN)
    }
}
