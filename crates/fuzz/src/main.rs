//! `everett-fuzz TARGET`: tries damaged input for some time; exit code
//! 1 and a file if something broke.

#![allow(clippy::print_stderr, clippy::print_stdout)]
#![forbid(unsafe_code)]

use anyhow::{Context, Result, bail};
use clap::Parser;
use everett_fuzz::{TARGETS, Target, fuzz, target, try_input};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Throws damaged input at what reads bytes.
#[derive(Parser)]
#[command(name = "everett-fuzz")]
struct Arguments {
    /// What to throw it at: reader, codec, ktest, trace, invariant, path or scenario.
    target: String,
    /// How long.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Seed of everything random.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Folder with more inputs to start from; inputs that break
    /// something are written there, else here.
    #[arg(long)]
    corpus: Option<PathBuf>,
    /// Try this file only.
    #[arg(long)]
    file: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("everett-fuzz: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Some(target) = target(&arguments.target) else {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        let names = names.join(", ");
        bail!(
            "there is no target {:?}; there are: {names}",
            arguments.target
        );
    };
    if let Some(path) = &arguments.file {
        return try_file(target, path);
    }
    let mut seeds = (target.seeds)();
    if let Some(folder) = &arguments.corpus {
        seeds.extend(inputs_of(folder)?);
    }
    let time = Duration::from_secs(arguments.seconds);
    match fuzz(target, &seeds, arguments.seed, time) {
        Ok(tally) => {
            let (name, what) = (target.name, target.what);
            let (accepted, refused) = (tally.accepted, tally.refused);
            println!("{name} ({what}): {accepted} inputs accepted, {refused} refused");
            Ok(ExitCode::SUCCESS)
        }
        Err(failure) => {
            let folder = arguments.corpus.as_deref().unwrap_or(Path::new("."));
            let path = folder.join(format!("failed-{}-{}", target.name, arguments.seed));
            std::fs::write(&path, &failure.input)
                .with_context(|| format!("cannot write {}", path.display()))?;
            println!(
                "{}: {}\ninput in {}",
                target.name,
                failure.reason,
                path.display()
            );
            Ok(ExitCode::FAILURE)
        }
    }
}

fn inputs_of(folder: &Path) -> Result<Vec<Vec<u8>>> {
    let entries = std::fs::read_dir(folder);
    let entries = entries.with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.context("cannot list the corpus")?.path();
        if path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    let read = |path: PathBuf| {
        std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    paths.into_iter().map(read).collect()
}

fn try_file(target: &Target, path: &Path) -> Result<ExitCode> {
    let input = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    match try_input(target, &input) {
        Ok(accepted) => {
            println!("{}", if accepted { "accepted" } else { "refused" });
            Ok(ExitCode::SUCCESS)
        }
        Err(failure) => {
            println!("{}: {}", target.name, failure.reason);
            Ok(ExitCode::FAILURE)
        }
    }
}
