//! `follow` and `strace`: follows traces again in the engine, asking the solver nothing, and compares how they end.
//! Owns how traces are found below a folder; must not know native programs.

use everett_engine::{
    Explorer, ExplorerConfig, Finding, Limits, Listener, PathEnd, SourceFrame, Start, Trace,
    TraceEnd, WorldFinding,
};
use everett_linux::PreemptionPoint;
use everett_vm::Image;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::error::{Context, Error, Result, bail};
use crate::events::{Event, Observer};
use crate::explore::explorer_config;
use crate::record::ORIGINAL;
use crate::session::Session;
use crate::spec::RunSpec;
use crate::world::trace::Wrong;

/// How a trace ended that was followed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Ending {
    /// As it did.
    Same,
    /// The path of a program ended otherwise.
    Path {
        /// As the trace says.
        expected: TraceEnd,
        /// As it was now; nothing where the trace could not be followed.
        seen: Option<TraceEnd>,
    },
    /// Something else is wrong with a world.
    Finding {
        /// What the trace says.
        expected: Wrong,
        /// What is wrong now.
        seen: Vec<Wrong>,
    },
    /// The hosts of a world ended otherwise.
    World {
        /// Choices and ends, as the traces say.
        expected: BTreeMap<String, HostEnd>,
        /// As they were now, in each world that there was.
        seen: Vec<BTreeMap<String, HostEnd>>,
        /// What is wrong now.
        wrong: Vec<Wrong>,
    },
}

/// What a host of a world chose, and how it ended.
pub type HostEnd = (
    everett_sim::SharedList<everett_engine::TraceChoice>,
    Option<TraceEnd>,
);

/// What came of following traces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FollowResult {
    /// How many there are.
    pub traces: usize,
    /// How many of them end otherwise than they did.
    pub different: usize,
}

/// Follows all traces below a folder of a run, or one trace.
pub fn follow(path: &Path, session: &Session, observer: &mut dyn Observer) -> Result<FollowResult> {
    let (folder, traces) = traces_of(path)?;
    let spec = RunSpec::of(&folder)?;
    if spec.is_scenario() {
        return crate::world::follow::follow(&spec, &traces, session, observer);
    }
    let images = spec.load()?;
    let mut different = 0;
    for path in &traces {
        let trace = read_trace(path)?;
        let Some(expected) = trace.end.clone() else {
            continue;
        };
        let seen = follow_one(&spec, session, &images, trace)?.trace;
        let ending = match seen {
            Some(seen) if seen.end.as_ref() == Some(&expected) => Ending::Same,
            seen => {
                different += 1;
                let seen = seen.and_then(|seen| seen.end);
                Ending::Path { expected, seen }
            }
        };
        let ending = &ending;
        observer.event(&Event::Followed { path, ending });
    }
    Ok(FollowResult {
        traces: traces.len(),
        different,
    })
}

/// Follows traces and tells their system calls, in the form of strace.
pub fn strace(path: &Path, session: &Session, observer: &mut dyn Observer) -> Result<()> {
    let (folder, traces) = traces_of(path)?;
    let mut spec = RunSpec::of(&folder)?;
    if spec.is_scenario() {
        return crate::world::follow::strace(&spec, &traces, session, observer);
    }
    spec.host.logs_calls = true;
    let images = spec.load()?;
    for path in &traces {
        let lines = follow_one(&spec, session, &images, read_trace(path)?)?.calls;
        observer.event(&Event::Calls {
            path,
            of: traces.len(),
            lines: &lines,
        });
    }
    Ok(())
}

/// Reads the trace of a path.
pub(crate) fn read_trace(path: &Path) -> Result<Trace> {
    let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("{} is no trace", path.display()))
}

/// The folder of the run and the traces that are meant.
pub(crate) fn traces_of(path: &Path) -> Result<(PathBuf, Vec<PathBuf>)> {
    Ok((run_of(path)?, traces_below(path)?))
}

/// The folder of the run that something belongs to.
pub(crate) fn run_of(path: &Path) -> Result<PathBuf> {
    if path.join("args.json").exists() {
        return Ok(path.to_owned());
    }
    let absolute = std::path::absolute(path)?;
    let mut folders = absolute.ancestors();
    let folder = folders.find(|folder| folder.join("args.json").exists());
    match folder {
        Some(folder) => Ok(folder.to_owned()),
        None if path.is_file() => Err(Error::InNoRun(path.to_owned())),
        None => Err(Error::NotARun {
            path: path.to_owned(),
            source: None,
        }),
    }
}

/// The trace itself, or the only one that lies below a folder.
pub(crate) fn one_trace(path: &Path) -> Result<PathBuf> {
    match traces_below(path)?.as_slice() {
        [one] => Ok(one.clone()),
        [] => bail!(Trace, "there is no trace in {}", path.display()),
        _ => bail!(
            Trace,
            "{} has several traces; name one of them",
            path.display()
        ),
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
fn follow_one(run: &RunSpec, session: &Session, images: &[Image], trace: Trace) -> Result<Last> {
    follow_with(following_config(run, session)?, images, Start::Trace(trace))
}

/// What the engine is told where it follows one trace.
pub(crate) fn following_config(run: &RunSpec, session: &Session) -> Result<ExplorerConfig> {
    let mut config = explorer_config(run, session, None)?;
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
pub(crate) fn follow_with(config: ExplorerConfig, images: &[Image], start: Start) -> Result<Last> {
    let mut explorer = Explorer::new(images, config, start)?;
    let mut last = Last::default();
    explorer.run(&AtomicBool::new(false), &mut last);
    Ok(last)
}

/// Keeps the end of the only path.
#[derive(Default)]
pub(crate) struct Last {
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

    fn finding(&mut self, found: &WorldFinding) {
        self.finding = Some(found.finding.clone());
    }

    fn tick(&mut self, _: &Explorer<'_>) {}
}
