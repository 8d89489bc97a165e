//! `everett follow`: follows traces again, asking the solver nothing, and compares how they end.

use anyhow::{Context, Result, bail};
use everett_engine::{Explorer, Finding, Limits, Listener, PathEnd, Start, Trace};
use everett_vm::Image;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::run::{RunArgs, explorer_config};
use crate::{EXIT_CLEAN, EXIT_FINDINGS};

/// What `everett follow` is told.
#[derive(clap::Args)]
pub struct FollowArgs {
    /// Folder of a run (all its tests and findings), or one trace inside it.
    path: PathBuf,
}

/// Follows traces; exit code 1 if one of them ends otherwise than it did.
pub fn follow(args: &FollowArgs) -> Result<u8> {
    let (folder, traces) = traces_of(&args.path)?;
    let run = RunArgs::of(&folder)?;
    let images = run.load()?;
    let mut different = 0;
    for path in &traces {
        let trace = read_trace(path)?;
        let Some(expected) = trace.end.clone() else {
            continue;
        };
        let seen = follow_one(&run, &images, trace)?.trace;
        match seen {
            Some(seen) if seen.end.as_ref() == Some(&expected) => {}
            seen => {
                different += 1;
                let seen = seen.and_then(|seen| seen.end);
                println!("{}: expected {expected:?}, seen {seen:?}", path.display());
            }
        }
    }
    println!(
        "{} traces followed, {different} end otherwise",
        traces.len()
    );
    Ok(if different == 0 {
        EXIT_CLEAN
    } else {
        EXIT_FINDINGS
    })
}

/// Follows one trace and prints its system calls, in the form of strace.
pub fn strace(args: &FollowArgs) -> Result<u8> {
    let (folder, traces) = traces_of(&args.path)?;
    let mut run = RunArgs::of(&folder)?;
    run.log_calls();
    let images = run.load()?;
    for path in &traces {
        if traces.len() > 1 {
            println!("{}:", path.display());
        }
        for line in follow_one(&run, &images, read_trace(path)?)?.calls {
            println!("{line}");
        }
    }
    Ok(EXIT_CLEAN)
}

pub fn read_trace(path: &Path) -> Result<Trace> {
    let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("{} is no trace", path.display()))
}

/// The folder of the run and the traces that are meant.
pub fn traces_of(path: &Path) -> Result<(PathBuf, Vec<PathBuf>)> {
    if path.is_file() {
        let folder = path
            .ancestors()
            .find(|folder| folder.join("args.json").exists());
        let folder = folder.with_context(|| format!("{} is in no run's folder", path.display()))?;
        return Ok((folder.to_owned(), vec![path.to_owned()]));
    }
    if path.join("finding.trace").exists() {
        return traces_of(&path.join("finding.trace"));
    }
    if !path.join("args.json").exists() {
        bail!("{} is not the folder of a run", path.display());
    }
    let mut traces = Vec::new();
    let mut folders = vec![path.join("tests")];
    for entry in std::fs::read_dir(path.join("findings"))
        .into_iter()
        .flatten()
        .flatten()
    {
        folders.push(entry.path());
    }
    for folder in folders {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry
                .path()
                .extension()
                .is_some_and(|extension| extension == "trace")
            {
                traces.push(entry.path());
            }
        }
    }
    traces.sort();
    Ok((path.to_owned(), traces))
}

fn follow_one(run: &RunArgs, images: &[Image], trace: Trace) -> Result<Last> {
    let mut config = explorer_config(run, None)?;
    config.all_tests = true;
    config.all_findings = true;
    // The limits of the run are not those of following it; only the one that made hangs is part of the paths.
    config.limits = Limits {
        max_memory: config.limits.max_memory,
        max_instructions: config.limits.max_instructions,
        ..Limits::default()
    };
    let mut explorer = Explorer::new(images, config, Start::Trace(trace))?;
    let mut last = Last::default();
    explorer.run(&AtomicBool::new(false), &mut last);
    Ok(last)
}

/// Keeps the end of the only path.
#[derive(Default)]
struct Last {
    trace: Option<Trace>,
    calls: Vec<String>,
}

impl Listener for Last {
    fn path(&mut self, end: &PathEnd) {
        self.trace = end.trace.clone();
        self.calls = end.calls.clone();
    }

    fn finding(&mut self, _: &Finding) {}

    fn tick(&mut self, _: &Explorer<'_>) {}
}
