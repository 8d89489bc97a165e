//! Seeds of a search: tests in KLEE's format, whose inputs are followed first. Must not know how the
//! search follows them.

use everett_engine::{Seed, TraceInput};
use everett_report::KTest;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Context, Result, bail};

/// The file of a seed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeedFile {
    /// The path.
    pub path: PathBuf,
    /// The bytes of its inputs.
    pub bytes: usize,
    /// Its number among all seeds, from 1.
    pub number: usize,
    /// The number of seeds.
    pub count: usize,
}

/// Reads all seeds: files, and those below folders in the order of their names. `in_order`: inputs
/// with other names get their values in order.
pub(crate) fn read_seeds(paths: &[PathBuf], in_order: bool) -> Result<Vec<Seed>> {
    let files = files(paths)?;
    let seeds = files.iter().map(|file| {
        let inputs = read_seed(file)?;
        Ok(Seed { inputs, in_order })
    });
    seeds.collect()
}

/// Returns the files of seeds, in the order of [`read_seeds`].
pub(crate) fn seed_files(paths: &[PathBuf]) -> Result<Vec<SeedFile>> {
    let files = files(paths)?;
    let count = files.len();
    let numbered = files.into_iter().zip(1..);
    let described = numbered.map(|(path, number)| {
        let inputs = read_seed(&path)?;
        Ok(SeedFile {
            path,
            bytes: inputs.iter().map(|input| input.bytes.len()).sum(),
            number,
            count,
        })
    });
    described.collect()
}

fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        match path.is_dir() {
            true => files.extend(tests_in(path)?),
            false => files.push(path.clone()),
        }
    }
    Ok(files)
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

fn read_seed(file: &Path) -> Result<Arc<[TraceInput]>> {
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
