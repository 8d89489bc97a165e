//! `everett coverage`: the coverage of several runs together, by file and function.

use everett_report::LineCoverage;
use std::path::PathBuf;

use crate::error::{Result, bail};
use crate::summary::COVERAGE;

/// The selection of coverage.
#[derive(Clone, Debug, Default)]
pub struct CoverageSpec {
    /// Folders of runs, or lcov files.
    pub runs: Vec<PathBuf>,
    /// Suffixes of the paths of files; all files if empty.
    pub files: Vec<String>,
    /// Names of functions; all functions if empty.
    pub functions: Vec<String>,
}

/// Returns the coverage of several runs together: code that one of them executed is covered.
pub fn coverage(spec: &CoverageSpec) -> Result<LineCoverage> {
    let mut all = LineCoverage::default();
    for run in &spec.runs {
        let path = match run.is_dir() {
            true => run.join(COVERAGE),
            false => run.clone(),
        };
        let text = match everett_report::read_file(&path) {
            Ok(text) => String::from_utf8_lossy(&text).into_owned(),
            Err(error) => bail!(Usage, "{} cannot be read: {error}", path.display()),
        };
        match LineCoverage::from_lcov(&text) {
            Ok(coverage) if coverage.files().next().is_none() => bail!(
                Usage,
                "{} names no source files; programs without debug information have no coverage",
                path.display()
            ),
            Ok(coverage) => all.merge(&coverage),
            Err(error) => bail!(Usage, "{}: {error}", path.display()),
        }
    }
    let known: Vec<&String> = all
        .files()
        .flat_map(|(_, file)| file.functions.keys())
        .collect();
    if let Some(unknown) = spec.functions.iter().find(|name| !known.contains(name)) {
        bail!(Usage, "there is no function {unknown} in these runs");
    }
    let is_unknown = |end: &&String| !all.files().any(|(name, _)| name.ends_with(end.as_str()));
    if let Some(unknown) = spec.files.iter().find(is_unknown) {
        bail!(
            Usage,
            "there is no file that ends in {unknown} in these runs"
        );
    }
    all.choose(&spec.files, &spec.functions);
    Ok(all)
}
