//! `follow` and `strace`: re-execute traces in the engine, without solver queries, and compare how they end. Owns the
//! lookup of traces below a folder; must not know native programs.

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

/// How a followed trace ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum Ending {
    /// As the trace says.
    Same,
    /// The path of a program ended differently.
    Path {
        /// The end that the trace records.
        expected: TraceEnd,
        /// The end that was observed; `None` if the trace could not be followed.
        seen: Option<TraceEnd>,
    },
    /// The world has other findings.
    Finding {
        /// The finding that the trace records.
        expected: Wrong,
        /// The findings that were observed.
        seen: Vec<Wrong>,
    },
    /// The hosts of a world ended differently.
    World {
        /// The choices and ends that the traces record.
        expected: BTreeMap<String, HostEnd>,
        /// The choices and ends that were observed, for each world.
        seen: Vec<BTreeMap<String, HostEnd>>,
        /// The findings that were observed.
        wrong: Vec<Wrong>,
    },
}

/// The choices of a host of a world, and how it ended.
pub type HostEnd = (
    everett_sim::SharedList<everett_engine::TraceChoice>,
    Option<TraceEnd>,
);

/// The result of following traces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FollowResult {
    /// Number of traces.
    pub traces: usize,
    /// Number of traces that ended differently.
    pub different: usize,
}

/// Follows one trace, or all traces below the folder of a run.
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

/// Follows traces and reports their system calls in the format of strace.
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

/// The folder of the run and the traces that `path` denotes.
pub(crate) fn traces_of(path: &Path) -> Result<(PathBuf, Vec<PathBuf>)> {
    Ok((run_of(path)?, traces_below(path)?))
}

/// The folder of the run that contains `path`.
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

/// The trace itself, or the only trace below a folder.
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

/// The trace itself, or all traces below a folder, without the originals of shrunk traces.
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
                // These folders hold files of the guest, which may have any name.
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

/// Whether a file name is that of a trace of a program or a world, and not that of the original of a shrunk trace.
fn is_trace(name: &str) -> bool {
    let ends = [".trace", ".world"];
    let is_original = name.ends_with(ORIGINAL) || name.ends_with(".original.world");
    ends.iter().any(|end| name.ends_with(end)) && !is_original
}

/// Follows a trace in the engine.
fn follow_one(run: &RunSpec, session: &Session, images: &[Image], trace: Trace) -> Result<Last> {
    follow_with(following_config(run, session)?, images, Start::Trace(trace))
}

/// The configuration of the engine for following one trace.
pub(crate) fn following_config(run: &RunSpec, session: &Session) -> Result<ExplorerConfig> {
    let mut config = explorer_config(run, session, None)?;
    config.all_tests = true;
    config.all_findings = true;
    // The other limits of the run do not apply here. The instruction limit does: it decides which paths are hangs.
    config.limits = Limits {
        max_memory: config.limits.max_memory,
        max_instructions: config.limits.max_instructions,
        ..Limits::default()
    };
    Ok(config)
}

/// Follows a trace in the engine, with a configuration.
pub(crate) fn follow_with(config: ExplorerConfig, images: &[Image], start: Start) -> Result<Last> {
    let mut explorer = Explorer::new(images, config, start)?;
    let mut last = Last::default();
    explorer.run(&AtomicBool::new(false), &mut last);
    Ok(last)
}

/// A listener that keeps the end of the only path.
#[derive(Default)]
pub(crate) struct Last {
    /// The trace of the followed path, including its end.
    pub trace: Option<Trace>,
    /// System calls, if logging is enabled.
    pub calls: Vec<String>,
    /// Preemption points between system calls, if logging is enabled.
    pub points: Vec<(PreemptionPoint, SourceFrame)>,
    /// The finding that the path ended in, if any.
    pub finding: Option<Finding>,
    /// Number of instructions on the path.
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
