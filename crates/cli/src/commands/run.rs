//! `everett run` and `everett resume`.

use anyhow::Result;
use everett_cluster::{Build, SigningKey, Submitted};

use crate::EXIT_CLEAN;
use crate::args::{ResumeArgs, RunArgs};
use crate::commands::submit::tell_submitted;
use crate::commands::{Subcommand, code_of};
use crate::display::Display;
use crate::klee::KleeDisplay;
use crate::session::stoppable_session;

impl Subcommand for RunArgs {
    fn run(&self) -> Result<u8> {
        let session = stoppable_session()?;
        let result = match self.spec.klee_messages {
            true => everett::explore(&self.spec, &session, &mut KleeDisplay::default())?,
            false => everett::explore(&self.spec, &session, &mut Display::new(self.mode))?,
        };
        Ok(code_of(result.summary.conclusion()))
    }
}

impl Subcommand for ResumeArgs {
    fn run(&self) -> Result<u8> {
        let session = stoppable_session()?;
        if self.is_for_cluster() {
            let (mut broker, resume) = (self.broker.connect()?, self.spec());
            let build = Build::of_this_program(env!("CARGO_PKG_VERSION"))?;
            let by = (build, SigningKey::from_environment()?);
            let submitted = Submitted::resume(&mut *broker, &resume, by, &session)?;
            tell_submitted(&submitted.run, &resume.dir, self.mode());
            return Ok(EXIT_CLEAN);
        }
        let mut display = Display::new(self.mode());
        let result = everett::resume(&self.spec(), &session, &mut display)?;
        Ok(code_of(result.summary.conclusion()))
    }
}
