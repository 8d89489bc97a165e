//! `everett run` and `everett resume`.

use anyhow::Result;
use everett::RunResult;

use crate::args::{ResumeArgs, RunArgs};
use crate::commands::{Subcommand, exit_code};
use crate::display::Display;
use crate::session::{session, stop_flag};

fn searched(result: &RunResult) -> u8 {
    exit_code(result.summary.findings.is_empty())
}

/// `everett run`.
impl Subcommand for RunArgs {
    fn run(&self) -> Result<u8> {
        let mut session = session();
        session.stop = stop_flag()?;
        let mut display = Display::new(self.mode);
        Ok(searched(&everett::explore(
            &self.spec,
            &session,
            &mut display,
        )?))
    }
}

/// `everett resume`.
impl Subcommand for ResumeArgs {
    fn run(&self) -> Result<u8> {
        let mut session = session();
        session.stop = stop_flag()?;
        let mut display = Display::new(self.mode());
        Ok(searched(&everett::resume(
            &self.spec(),
            &session,
            &mut display,
        )?))
    }
}
