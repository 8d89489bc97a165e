//! `everett follow`: follows traces again, asking the solver nothing, and compares how they end.

use anyhow::{Context, Result, bail};
use everett_engine::{
    Explorer, ExplorerConfig, Finding, Limits, Listener, PathEnd, SourceFrame, Start, Trace,
};
use everett_linux::PreemptionPoint;
use everett_vm::Image;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::output::ORIGINAL;
use crate::run::{RunArgs, explorer_config};
use crate::world::is_scenario;
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
    if is_scenario(run.program()) {
        return crate::world_follow::follow(&run, &traces);
    }
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
    Ok(said(traces.len(), different))
}

/// Says how many traces were followed; the exit code.
pub fn said(followed: usize, different: usize) -> u8 {
    println!("{followed} traces followed, {different} end otherwise");
    if different == 0 {
        EXIT_CLEAN
    } else {
        EXIT_FINDINGS
    }
}

/// Follows one trace and prints its system calls, in the form of strace.
pub fn strace(args: &FollowArgs) -> Result<u8> {
    let (folder, traces) = traces_of(&args.path)?;
    let mut run = RunArgs::of(&folder)?;
    if is_scenario(run.program()) {
        return crate::world_follow::strace(&run, &traces);
    }
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
    Ok((run_of(path)?, traces_below(path)?))
}

/// The folder of the run that something belongs to.
pub fn run_of(path: &Path) -> Result<PathBuf> {
    if path.join("args.json").exists() {
        return Ok(path.to_owned());
    }
    let absolute = std::path::absolute(path)?;
    let mut folders = absolute.ancestors();
    let folder = folders.find(|folder| folder.join("args.json").exists());
    match folder {
        Some(folder) => Ok(folder.to_owned()),
        None if path.is_file() => bail!("{} is in no run's folder", path.display()),
        None => bail!("{} is not the folder of a run", path.display()),
    }
}

/// The trace itself, or the only one that lies below a folder.
pub fn one_trace(path: &Path) -> Result<PathBuf> {
    match traces_below(path)?.as_slice() {
        [one] => Ok(one.clone()),
        [] => bail!("there is no trace in {}", path.display()),
        _ => bail!("{} has several traces; name one of them", path.display()),
    }
}

/// The trace itself, or all that lie below a folder, without those that were made simpler.
pub fn traces_below(path: &Path) -> Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut traces = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder)
            .with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in entries.flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if path.is_dir() {
                // Files that a path of the guest left behind may have any name.
                if name != "fs" && !name.ends_with(".fs") {
                    folders.push(path);
                }
            } else if is_trace(&name) {
                traces.push(path);
            }
        }
    }
    traces.sort();
    Ok(traces)
}

/// The name of a trace of a program or of a world that was not made simpler.
fn is_trace(name: &str) -> bool {
    let ends = [".trace", ".world"];
    let is_original = name.ends_with(ORIGINAL) || name.ends_with(".original.world");
    ends.iter().any(|end| name.ends_with(end)) && !is_original
}

/// Follows a trace in the engine.
fn follow_one(run: &RunArgs, images: &[Image], trace: Trace) -> Result<Last> {
    follow_with(following_config(run)?, images, Start::Trace(trace))
}

/// What the engine is told where it follows one trace.
pub fn following_config(run: &RunArgs) -> Result<ExplorerConfig> {
    let mut config = explorer_config(run, None)?;
    config.all_tests = true;
    config.all_findings = true;
    // The limits of the run are not those of following it; only the one that made hangs is part of the paths.
    config.limits = Limits {
        max_memory: config.limits.max_memory,
        max_instructions: config.limits.max_instructions,
        ..Limits::default()
    };
    Ok(config)
}

/// Follows a trace in the engine, as told.
pub fn follow_with(config: ExplorerConfig, images: &[Image], start: Start) -> Result<Last> {
    let mut explorer = Explorer::new(images, config, start)?;
    let mut last = Last::default();
    explorer.run(&AtomicBool::new(false), &mut last);
    Ok(last)
}

/// Keeps the end of the only path.
#[derive(Default)]
pub struct Last {
    /// The trace of the path that was followed, and how it ended.
    pub trace: Option<Trace>,
    /// System calls, where they are logged.
    pub calls: Vec<String>,
    /// Points between system calls, where they are logged.
    pub points: Vec<(PreemptionPoint, SourceFrame)>,
    /// What it ended in, if that is a finding.
    pub finding: Option<Finding>,
    /// Instructions on it.
    pub instructions: u64,
}

impl Listener for Last {
    fn path(&mut self, end: &PathEnd) {
        self.trace = end.trace.clone();
        self.calls = end.calls.clone();
        self.points = end.points.clone();
        self.instructions = end.instructions;
    }

    fn finding(&mut self, finding: &Finding) {
        self.finding = Some(finding.clone());
    }

    fn tick(&mut self, _: &Explorer<'_>) {}
}
