//! `everett shrink`.

use anyhow::Result;
use everett::counted;
use everett::{ShrinkSpec, TraceSize, parse_time};
use std::path::PathBuf;
use std::time::Duration;

use crate::EXIT_CLEAN;
use crate::commands::Subcommand;
use crate::display::print;
use crate::session::session;

/// Arguments of `everett shrink`.
#[derive(clap::Args)]
pub struct ShrinkArgs {
    /// A trace, or the folder of a finding.
    path: PathBuf,
    /// Write the simpler trace to this file; default: in place, with the original
    /// kept beside it (.original.trace).
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Stop after this time and keep the best trace so far.
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "60s")]
    max_time: Duration,
}

impl Subcommand for ShrinkArgs {
    fn run(&self) -> Result<u8> {
        let spec = ShrinkSpec {
            path: self.path.clone(),
            out: self.out.clone(),
            max_time: self.max_time,
        };
        let result = everett::shrink(&spec, &session()?)?;
        print(&format!("before: {}", size_text(&result.before)));
        let Some(shrunk) = result.shrunk else {
            print("nothing simpler ends the same");
            return Ok(EXIT_CLEAN);
        };
        print(&format!("after:  {}", size_text(&shrunk.after)));
        print(&format!("followed: {}", counted(shrunk.tries, "candidate")));
        print(&format!("written to {}", shrunk.file.display()));
        Ok(EXIT_CLEAN)
    }
}

/// Describes the size of a trace.
fn size_text(size: &TraceSize) -> String {
    let verb = if size.deviations == 1 { "is" } else { "are" };
    format!(
        "{} that {verb} not as usual, {} of {} not zero",
        counted(size.deviations, "choice"),
        size.nonzero,
        counted(size.bytes, "byte"),
    )
}
