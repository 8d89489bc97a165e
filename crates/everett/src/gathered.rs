//! Combines the results of a run's jobs into the results of an ordinary run. Owns how the tests and
//! findings of several machines become one list.

use everett_engine::{
    Explorer, ExplorerConfig, Finding, FindingKey, Listener, Part, PathEnd, PathEnding, SavedFiles,
    SourceFrame, Start, Stopped, Trace, Weight, WeightSum, WorldFinding, Worlds,
};
use everett_report::Folder;
use everett_vm::{BugKind, Image};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::checkpoint::{Checkpoint, Checkpoints, SPILL_FILE};
use crate::conclusion::is_tool_limit;
use crate::error::{Error, Result};
use crate::events::{Event, Observer};
use crate::explore::{RunResult, SearchEnd, close, prepare};
use crate::follow::{Model, Seen};
use crate::job::{JobFinding, JobResult, JobTest, States};
use crate::parcel::NEVER;
use crate::record::Recorder;
use crate::session::Session;
use crate::spec::RunSpec;
use crate::summary::ClusterFigures;
use crate::trace::{HOST, INVARIANT, WorldTrace};

/// The results of the jobs of a run.
pub struct Gathered {
    /// The jobs that were explored.
    pub jobs: Vec<JobResult>,
    /// The remaining states.
    pub left: Vec<States>,
    /// The weight of the remaining states.
    pub left_weight: WeightSum,
    /// The limit of the whole run because of which states remain.
    pub limit: Option<&'static str>,
    /// The weight of everything that was given up, including jobs that could not be explored.
    pub unknown: WeightSum,
    /// The reasons why jobs could not be explored.
    pub failures: Vec<String>,
    /// Further warnings for the user.
    pub warnings: Vec<String>,
    /// The figures of the cluster.
    pub figures: ClusterFigures,
}

/// Creates the folder of a run that is explored elsewhere, with its spec.
pub fn new_folder(spec: &RunSpec) -> Result<PathBuf> {
    let folder = spec.folder()?;
    spec.write(&folder)?;
    Ok(folder.path().to_owned())
}

/// Removes what [`new_folder`] created, for a run that did not come about.
pub fn remove_new_folder(dir: &Path) {
    let _ = std::fs::remove_file(dir.join(crate::spec::FILE));
    // Only folders that are empty go.
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let _ = std::fs::remove_dir(entry.path());
    }
    let _ = std::fs::remove_dir(dir);
}

/// Writes the results of jobs as the results of a run, into its folder. Tests and findings are in
/// the order of their contents, not of the jobs. Findings are followed again, shrunk and confirmed
/// natively here. A run that is not complete has a checkpoint, from which `resume` continues.
pub fn conclude(
    dir: &Path,
    mut gathered: Gathered,
    session: &Session,
    observer: &mut dyn Observer,
) -> Result<RunResult> {
    let spec = &RunSpec::of(dir)?;
    // The time of the run is that of its workers. Whoever asks for results waits for them.
    let untimed = RunSpec {
        max_time: Some(NEVER),
        ..spec.clone()
    };
    let (mut config, images) = prepare(&untimed, session)?;
    config.limits.max_time = None;
    let folder = Folder::open(dir)?;
    Checkpoint::remove(dir)?;
    Checkpoint::remove_all_results(dir)?;
    let searched = ExplorerConfig {
        spill: Some(dir.join(SPILL_FILE)),
        ..config.clone()
    };
    let (mut explorer, stopped) = explorer_of(&mut gathered, &images, searched)?;
    observer.event(&Event::Started { folder: dir });
    let mut recorder = Recorder::new(folder.clone(), spec, session, observer, &config);
    let interval = spec.with_defaults()?.checkpoint.unwrap_or_default();
    recorder.checkpoints = Some(Checkpoints::new(folder.clone(), interval, None));
    let model = Model::new(config.clone(), &images);
    match explorer.is_world() {
        true => record_worlds(&mut recorder, &model, spec, &gathered.jobs)?,
        false => record_tests(&mut recorder, &model, spec, &gathered.jobs)?,
    }
    if !record_findings(&mut recorder, &model, spec, &gathered.jobs)? {
        let warning = "a finding of a worker could not be followed here; it is left out";
        note(&mut explorer, "diverged", warning.to_owned())?;
    }
    let end = SearchEnd {
        stopped,
        written: Ok(()),
        last_words: None,
        cluster: Some(gathered.figures),
    };
    close(recorder, (&config, &mut explorer, &images), &folder, end)
}

/// Returns an explorer with the remaining states and the figures of the jobs, and why the search
/// stopped.
fn explorer_of<'i>(
    gathered: &mut Gathered,
    images: &'i [Image],
    config: ExplorerConfig,
) -> Result<(Explorer<'i>, Stopped)> {
    let has_left = !gathered.left.is_empty();
    let start = start_with(std::mem::take(&mut gathered.left));
    let is_lost = has_left && matches!(start, Start::Nothing);
    let mut explorer = Explorer::new(images, config, start)?;
    for job in &gathered.jobs {
        let added = explorer.add_part(&job.part);
        added.map_err(|_| Error::ProgramChanged)?;
    }
    explorer.statistics_mut().unknown = std::mem::take(&mut gathered.unknown);
    if is_lost {
        let unknown = &mut explorer.statistics_mut().unknown;
        unknown.add_sum(&gathered.left_weight);
        let warning = "what is left has no checkpoint, since its worlds have passed different times of invariants: only \
                       the cluster can go on with it";
        note(&mut explorer, "lost-state", warning.to_owned())?;
    }
    for failure in &gathered.failures {
        let warning = format!("a job could not be explored: {failure}");
        note(&mut explorer, "lost-state", warning)?;
    }
    for warning in std::mem::take(&mut gathered.warnings) {
        let part = Part {
            warnings: vec![warning],
            ..Part::default()
        };
        add_part(&mut explorer, part)?;
    }
    let stopped = match gathered.limit {
        Some(limit) => {
            explorer.note_limit_of_all(limit);
            Stopped::Limit(limit)
        }
        None if has_left => Stopped::Asked,
        None => explorer.stopped_by_virtual_time(),
    };
    Ok((explorer, stopped))
}

/// Returns the start of a search that continues with the remaining states; without states if none
/// can continue.
fn start_with(left: Vec<States>) -> Start {
    let (mut traces, mut worlds): (Vec<Trace>, Vec<Worlds>) = (Vec::new(), Vec::new());
    for states in left {
        match states {
            States::Program(states) => traces.extend(states),
            States::Worlds(some) => worlds.push(*some),
        }
    }
    match worlds.is_empty() {
        true => Start::States(traces),
        false if Worlds::can_be_together(&worlds) => Start::Worlds(worlds),
        false => Start::Nothing,
    }
}

/// Records that results are missing, and why.
fn note(explorer: &mut Explorer<'_>, limit: &str, warning: String) -> Result<()> {
    let part = Part {
        limits: vec![limit.to_owned()],
        warnings: vec![warning],
        ..Part::default()
    };
    add_part(explorer, part)
}

/// Adds a part that has covered nothing.
fn add_part(explorer: &mut Explorer<'_>, part: Part) -> Result<()> {
    let added = explorer.add_part(&Part {
        covered: "0".repeat(explorer.coverage().segments.len()),
        ..part
    });
    added.map_err(|_| Error::ProgramChanged)
}

/// Records the tests of all jobs. Unless all paths are wanted, records only those that execute code
/// that no earlier test does, and those of findings that are reported: a job does not know what
/// others have executed and found.
fn record_tests(
    recorder: &mut Recorder<'_>,
    model: &Model<'_>,
    spec: &RunSpec,
    jobs: &[JobResult],
) -> Result<()> {
    let tests = jobs.iter().flat_map(|job| &job.tests);
    let tests: BTreeMap<u64, &JobTest> = tests.map(|test| (test.digest, test)).collect();
    let (mut covered, mut seen) = (Vec::new(), BTreeSet::new());
    for test in tests.values() {
        let trace = test.trace.host(HOST);
        if spec.all_tests && !test.has_files {
            recorder.path(&ended_by(test.digest, trace));
            continue;
        }
        let Some(mut end) = model.follow_covering(&trace, &mut covered)? else {
            continue;
        };
        let is_finding = trace.end.as_ref().is_some_and(|end| {
            let found = end.finding.is_some() || end.signal.is_some();
            let place = (end.finding.clone(), end.signal, end.stack.first().cloned());
            // A run that reports every path with a finding has a test of each.
            found && (seen.insert(format!("{place:?}")) || spec.all_findings)
        });
        if spec.all_tests || end.covered_new || is_finding {
            end.trace = Some(trace);
            recorder.path(&end);
        }
    }
    Ok(())
}

/// Records the tests of all jobs, like [`record_tests`], for worlds.
fn record_worlds(
    recorder: &mut Recorder<'_>,
    model: &Model<'_>,
    spec: &RunSpec,
    jobs: &[JobResult],
) -> Result<()> {
    let mut tests: BTreeMap<String, &JobTest> = BTreeMap::new();
    for test in jobs.iter().flat_map(|job| &job.tests) {
        tests.insert(serde_json::to_string(&test.trace)?, test);
    }
    let mut covered = Vec::new();
    for test in tests.values() {
        let hosts = &test.trace.hosts;
        if spec.all_tests && !test.has_files {
            recorder.world(hosts, &SavedFiles::new());
            continue;
        }
        let (grew, files) = model.follow_world_covering(hosts, &mut covered)?;
        if spec.all_tests || grew {
            recorder.world(hosts, &files);
        }
    }
    Ok(())
}

/// Returns the end of a path that is not followed again.
fn ended_by(digest: u64, trace: Trace) -> PathEnd {
    let end = trace.end.as_ref();
    let exit = end.and_then(|end| end.exit);
    PathEnd {
        ending: exit.map_or(PathEnding::Idle, PathEnding::Exit),
        trace: Some(trace),
        covered_new: false,
        digest,
        weight: Weight::default(),
        depth: 0,
        instructions: 0,
        calls: Vec::new(),
        points: Vec::new(),
        output: [Vec::new(), Vec::new()],
        files: Vec::new(),
    }
}

/// Returns the findings of all jobs, one at each location unless all are wanted: the first by its
/// contents, since workers finish in any order.
fn findings_of<'j>(jobs: &'j [JobResult], spec: &RunSpec) -> Result<Vec<&'j JobFinding>> {
    type Contents = (String, String);
    let mut places: BTreeMap<(&FindingKey, Contents), &JobFinding> = BTreeMap::new();
    for found in jobs.iter().flat_map(|job| &job.findings) {
        let text = serde_json::to_string(&found.trace)?;
        let (place, text) = (&found.key, (found.entry.digest.clone(), text));
        let known = places.range((place, Contents::default())..).next();
        let known = known.filter(|((at, _), _)| *at == place && !spec.all_findings);
        match known.map(|((_, known), _)| known.clone()) {
            Some(known) if known <= text => continue,
            Some(known) => places.remove(&(place, known)),
            None => None,
        };
        places.insert((place, text), found);
    }
    // An invariant that was found broken after a change is not reported again at the end. The job
    // that reaches the end may not know about the change.
    let changes: BTreeSet<_> = places
        .keys()
        .filter_map(|(key, _)| change_of(key))
        .collect();
    let is_new = |key: &FindingKey| end_of(key).is_none_or(|end| !changes.contains(&end));
    let kept = places.iter().filter(|((key, _), _)| is_new(key));
    let mut kept: Vec<&JobFinding> = kept.map(|(_, found)| *found).collect();
    kept.sort_by_cached_key(|found| found.entry.order());
    Ok(kept)
}

/// The invariant of a finding after a change, or at the end: its file, line and name.
type Broken<'k> = (&'k str, u32, &'k str);

fn change_of(key: &FindingKey) -> Option<Broken<'_>> {
    broken_on(key).and_then(|(host, broken)| (!host.is_empty()).then_some(broken))
}

fn end_of(key: &FindingKey) -> Option<Broken<'_>> {
    broken_on(key).and_then(|(host, broken)| host.is_empty().then_some(broken))
}

fn broken_on(key: &FindingKey) -> Option<(&str, Broken<'_>)> {
    let (kind, place, line, name) = key;
    let (file, host) = place.split_once(": on ").filter(|_| kind == INVARIANT)?;
    Some((host, (file, *line, name)))
}

/// Records the findings of all jobs. Returns `false` if one of them does not occur again.
fn record_findings(
    recorder: &mut Recorder<'_>,
    model: &Model<'_>,
    spec: &RunSpec,
    jobs: &[JobResult],
) -> Result<bool> {
    let mut all_followed = true;
    for found in findings_of(jobs, spec)? {
        let mut trace = found.trace.clone();
        if model.config.world.is_none() {
            trace = WorldTrace::of_program(trace.host(HOST));
        }
        let seen = model.follow(&trace)?;
        match again(&seen, found, &trace) {
            Some(found) => recorder.finding(found),
            None if is_tool_limit(&found.entry.kind) => recorder.finding(&as_told(found)),
            None => all_followed = false,
        }
    }
    Ok(all_followed)
}

/// Returns the finding of a job among those of its followed trace.
fn again<'s>(seen: &'s Seen, found: &JobFinding, trace: &WorldTrace) -> Option<&'s WorldFinding> {
    if trace.is_program {
        return seen.finding_of_kind(&found.entry.kind);
    }
    let is_it = |one: &&WorldFinding| {
        one.host == found.entry.host && one.finding.kind.name() == found.entry.kind
    };
    let other = || seen.findings.iter().find(is_it);
    seen.finding_of(trace).or_else(other)
}

/// Creates a finding about Everett itself, which may not occur again when its trace is followed.
fn as_told(found: &JobFinding) -> WorldFinding {
    let entry = &found.entry;
    let finding = Finding {
        kind: BugKind::from_name(&entry.kind).unwrap_or(BugKind::Unsupported),
        message: entry.message.clone(),
        stack: vec![SourceFrame {
            file: entry.file.clone(),
            line: entry.line,
            function: entry.function.clone(),
            ..SourceFrame::default()
        }],
        threads: Vec::new(),
        allocated: Vec::new(),
        freed: Vec::new(),
        arguments: Vec::new(),
        failures: Vec::new(),
        values: Vec::new(),
        trace: found.trace.host(&entry.host),
        digest: u64::from_str_radix(&entry.digest, 16).unwrap_or(0),
        clock_ns: 0,
        instructions: 0,
        output: [Vec::new(), Vec::new()],
        files: Vec::new(),
    };
    WorldFinding {
        traces: found.trace.hosts.clone(),
        ..WorldFinding::alone(finding, &entry.host, found.key.clone())
    }
}
