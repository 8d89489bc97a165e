//! `everett coverage`.

use anyhow::{Context, Result};
use everett::{CoverageSpec, LineCoverage};
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
        show(&coverage);
        if let Some(path) = &self.lcov {
            let written = std::fs::write(path, coverage.to_lcov());
            written.with_context(|| format!("{} cannot be written", path.display()))?;
        }
        Ok(EXIT_CLEAN)
    }
}

fn show(coverage: &LineCoverage) {
    let share = |(hit, all): (usize, usize)| {
        let percent = 100.0 * hit as f64 / all.max(1) as f64;
        format!("{hit} of {all} ({percent:.1} %)")
    };
    for (name, file) in coverage.files() {
        let (lines, functions) = (share(file.totals()), share(file.function_totals()));
        let branches = share(file.branch_totals());
        print(&format!(
            "{name}: lines {lines}, functions {functions}, branches {branches}"
        ));
        let mut functions: Vec<_> = file.functions.iter().collect();
        functions.sort_by_key(|(_, function)| function.line);
        for (name, function) in functions {
            let lines = share(file.lines_of(name));
            let line = function.line;
            match function.executed {
                true => print(&format!("    {line:>6} {name}: {lines}")),
                false => print(&format!("    {line:>6} {name}: not executed")),
            }
        }
    }
    let (lines, functions) = (share(coverage.totals()), share(coverage.function_totals()));
    let branches = share(coverage.branch_totals());
    print(&format!(
        "all: lines {lines}, functions {functions}, branches {branches}"
    ));
}
