//! Seeds of a search: tests in KLEE's format, whose inputs are followed first. Must not know how the
//! search follows them.

use everett_engine::{Seed, TraceInput};
use everett_report::KTest;
use std::path::{Path, PathBuf};

use crate::error::{Context, Result, bail};

/// Reads all seeds: files, and those below folders in the order of their names.
pub(crate) fn read_seeds(paths: &[PathBuf]) -> Result<Vec<Seed>> {
    let mut seeds = Vec::new();
    for path in paths {
        if !path.is_dir() {
            seeds.push(read_seed(path)?);
            continue;
        }
        for file in tests_in(path)? {
            seeds.push(read_seed(&file)?);
        }
    }
    Ok(seeds)
}

/// Returns the tests of a folder, in the order of their names.
fn tests_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let files = entries.flatten().map(|entry| entry.path());
    let is_test = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "ktest");
    let mut files: Vec<PathBuf> = files.filter(is_test).collect();
    files.sort();
    Ok(files)
}

fn read_seed(file: &Path) -> Result<Seed> {
    let bytes = everett_report::read_file(file)
        .with_context(|| format!("cannot read {}", file.display()))?;
    let test = match KTest::from_bytes(&bytes) {
        Ok(test) => test,
        Err(error) => bail!(Trace, "{}: {error}", file.display()),
    };
    let inputs = test.objects.into_iter();
    let inputs = inputs.map(|(name, bytes)| TraceInput {
        name: name.into(),
        bytes,
    });
    Ok(inputs.collect())
}
