//! Traces of worlds as files. A program is a world of one host, [`HOST`]; its file contains the
//! trace of that host alone. Owns the lookup of traces below a folder.

use everett_engine::{Trace, TraceEnd, TraceInput, WorldFinding};
use everett_report::{KTest, dtest_files};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::{Context, Error, Result, bail};

/// The host name in runs of a single program.
pub const HOST: &str = "host";
/// The kind of findings that are violated invariants.
pub(crate) const INVARIANT: &str = "invariant";
/// The part of a file name that marks a trace as it was before shrinking.
const ORIGINAL: &str = "original";

/// The file of the other build's trace, for a difference of two builds.
pub(crate) const AGAINST: &str = "against.trace";

/// A trace of a world: inputs and choices of every host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorldTrace {
    /// Traces of hosts, by host name.
    pub hosts: BTreeMap<String, Trace>,
    /// The finding that the trace leads to, if any. The trace of a program has its finding in its
    /// end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<Wrong>,
    /// The seed of the hosts' random bytes, if the scenario does not fix it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub random_seed: Option<u64>,
    /// Whether the world is a single program without a network.
    #[serde(skip)]
    pub is_program: bool,
}

/// A finding in a world.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Wrong {
    /// The host of the finding.
    pub host: String,
    /// The kind of the finding.
    pub kind: String,
    /// A description for the user.
    pub message: String,
}

impl WorldTrace {
    /// Creates the trace of a program.
    pub fn of_program(trace: Trace) -> WorldTrace {
        WorldTrace {
            is_program: true,
            ..WorldTrace::of_hosts(BTreeMap::from([(HOST.to_owned(), trace)]))
        }
    }

    /// Creates the trace of a world without a finding from the traces of its hosts.
    pub fn of_hosts(hosts: BTreeMap<String, Trace>) -> WorldTrace {
        WorldTrace {
            hosts,
            finding: None,
            random_seed: None,
            is_program: false,
        }
    }

    /// Creates the trace of a finding.
    pub fn of(found: &WorldFinding, is_program: bool) -> WorldTrace {
        WorldTrace {
            finding: (!is_program).then(|| Wrong::of(found)),
            is_program,
            ..WorldTrace::of_hosts(found.traces.clone())
        }
    }

    /// Reads the trace of a program or a world.
    pub(crate) fn read(path: &Path, is_program: bool) -> Result<WorldTrace> {
        if is_program {
            return Ok(WorldTrace::of_program(read_trace(path)?));
        }
        let text = everett_report::read_file(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        if is_dtest(path) {
            return of_dtest(path, &String::from_utf8_lossy(&text));
        }
        serde_json::from_slice(&text)
            .with_context(|| format!("{} is not a trace of a world", path.display()))
    }

    /// Returns the contents of the trace's file.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        match self.hosts.get(HOST).filter(|_| self.is_program) {
            Some(trace) => serde_json::to_vec(trace),
            None => serde_json::to_vec(self),
        }
        .unwrap_or_default()
    }

    /// Returns the name of the trace's file, without folders.
    pub(crate) fn file(&self, stem: &str) -> String {
        let extension = if self.is_program { "trace" } else { "world" };
        format!("{stem}.{extension}")
    }

    /// Returns the name of the file that keeps the trace beside the shrunk one.
    pub(crate) fn original_file(&self, stem: &str) -> String {
        self.file(&format!("{stem}.{ORIGINAL}"))
    }

    /// Returns the trace of a host; empty if there is none.
    pub(crate) fn host(&self, name: &str) -> Trace {
        self.hosts.get(name).cloned().unwrap_or_default()
    }

    /// Returns the end of the host of the finding, or of a program.
    pub(crate) fn end(&self) -> Option<&TraceEnd> {
        let host = match &self.finding {
            Some(wrong) => &wrong.host,
            None => HOST,
        };
        self.hosts.get(host)?.end.as_ref()
    }

    /// Returns whether the trace records how it ends.
    pub(crate) fn has_end(&self) -> bool {
        !self.is_program || self.end().is_some()
    }

    /// Returns the kind of the finding in which the trace ends.
    pub(crate) fn kind(&self) -> Option<&str> {
        match &self.finding {
            Some(wrong) => Some(&wrong.kind),
            None if self.is_program => self.end()?.finding.as_deref(),
            None => None,
        }
    }

    /// Returns whether the trace ends in a finding, or in a signal that a program does not expect.
    pub(crate) fn is_finding(&self) -> bool {
        let is_killed = || self.end().is_some_and(|end| end.signal.is_some());
        self.kind().is_some() || (self.is_program && is_killed())
    }
}

impl Wrong {
    /// Returns whether the finding has this kind and message.
    pub fn is(&self, kind: &str, message: &str) -> bool {
        self.kind == kind && self.message == message
    }

    /// Creates the description of a search's finding.
    pub fn of(found: &WorldFinding) -> Wrong {
        Wrong {
            host: found.host.clone(),
            kind: found.finding.kind.name().to_owned(),
            message: found.finding.message.clone(),
        }
    }
}

/// Returns whether a file is a distributed test, which contains the inputs of its hosts and no
/// other choices.
pub(crate) fn is_dtest(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "dtest")
}

/// Reads the inputs of the hosts of a `.dtest`, which are in files beside it.
fn of_dtest(path: &Path, text: &str) -> Result<WorldTrace> {
    let mut hosts = BTreeMap::new();
    for (host, name) in dtest_files(text) {
        let file = path.with_file_name(&name);
        let bytes = everett_report::read_file(&file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        let Ok(test) = KTest::from_bytes(&bytes) else {
            bail!(Trace, "{} is not a test in KLEE's format", file.display());
        };
        let inputs = test.objects.into_iter();
        let inputs = inputs.map(|(name, bytes)| TraceInput {
            name: name.into(),
            bytes,
        });
        let trace = Trace {
            inputs: inputs.collect(),
            ..Trace::default()
        };
        hosts.insert(host, trace);
    }
    if hosts.is_empty() {
        bail!(Trace, "{} names no hosts", path.display());
    }
    Ok(WorldTrace::of_hosts(hosts))
}

/// Reads the trace of a path.
pub(crate) fn read_trace(path: &Path) -> Result<Trace> {
    let text = everett_report::read_file(path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("{} is not a trace", path.display()))
}

/// Returns the folder of the run and the traces that `path` denotes.
pub(crate) fn traces_of(path: &Path) -> Result<(PathBuf, Vec<PathBuf>)> {
    Ok((run_of(path)?, traces_below(path)?))
}

/// Returns the folder of the run that contains `path`.
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

/// Returns the trace itself, or the only trace below a folder.
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

/// Returns the trace itself, or all traces below a folder, without the originals of shrunk traces.
pub(crate) fn traces_below(path: &Path) -> Result<Vec<PathBuf>> {
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
                // These folders contain files of the guest, which may have any name.
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

/// Returns whether a file name is that of a trace of a program or a world, and not that of the
/// original of a shrunk trace.
fn is_trace(name: &str) -> bool {
    match name.rsplit_once('.') {
        // This is the trace of another build.
        Some(_) if name == AGAINST => false,
        Some((stem, "trace" | "world")) => !stem.ends_with(&format!(".{ORIGINAL}")),
        _ => false,
    }
}

/// How a followed trace ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum Ending {
    /// The trace ended as it records.
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

/// The traces of a difference: of the build under test, and of the other one.
pub(crate) type Differing = [Trace; 2];
