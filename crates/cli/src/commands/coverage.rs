//! `everett coverage`.

use anyhow::{Context, Result};
use everett::{CoverageSpec, coverage_text};
use std::path::PathBuf;

use crate::EXIT_CLEAN;
use crate::commands::Subcommand;
use crate::display::print;

/// Arguments of `everett coverage`.
#[derive(clap::Args)]
pub struct CoverageArgs {
    /// Folders of runs, or their lcov files.
    #[arg(required = true, value_name = "DIR")]
    runs: Vec<PathBuf>,
    /// Only files whose paths end so, separated by commas.
    #[arg(long, value_name = "FILES", value_delimiter = ',')]
    files: Vec<String>,
    /// Only these functions, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    functions: Vec<String>,
    /// Write the coverage of all runs together to this file, in lcov's format.
    #[arg(long, value_name = "FILE")]
    lcov: Option<PathBuf>,
}

impl Subcommand for CoverageArgs {
    fn run(&self) -> Result<u8> {
        let coverage = everett::coverage(&CoverageSpec {
            runs: self.runs.clone(),
            files: self.files.clone(),
            functions: self.functions.clone(),
        })?;
        print(&coverage_text(&coverage));
        if let Some(path) = &self.lcov {
            let written = std::fs::write(path, coverage.to_lcov());
            written.with_context(|| format!("{} cannot be written", path.display()))?;
        }
        Ok(EXIT_CLEAN)
    }
}
