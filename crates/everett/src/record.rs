//! The listener of a search: writes tests and findings as they occur, reports them to the
//! observer, and works on findings after the search. Owns the files of findings and tests;
//! must not know how the search works.

mod findings;

use everett_engine::{
    Difference, Explorer, ExplorerConfig, Listener, PathEnd, SavedFiles, Stopped, Trace,
    WorldFinding,
};
use everett_linux::Setup;
use everett_report::{Folder, NamedFile, Writer};
use everett_vm::{Image, Note};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use findings::AFTER_TIME;

use crate::bootstrap::SetUp;
use crate::checkpoint::{
    Checkpoint, Checkpoints, early_deadline, is_late, last_deadline, may_go_on,
};
use crate::conclusion::Conclusion;
use crate::error::{Context, Error, Result};
use crate::events::{Event, Meter, Observer, Progress, WorldProgress};
use crate::finding::{FindingEntry, finding_files, ktest, written_files};
use crate::follow::Model;
use crate::klee::KleeFiles;
use crate::seeds::{SeedFile, seed_files};
use crate::session::Session;
use crate::spec::RunSpec;
use crate::summary::{DifferenceEntry, Summary};
use crate::trace::{Differing, HOST, WorldTrace};
use crate::verdict::Natively;
use crate::world::dtest::Tests;
use crate::world::samples::Samples;
use crate::world::topology;

/// Writes tests and findings into the folder of a run.
pub(crate) struct Recorder<'o> {
    pub(crate) spec: &'o RunSpec,
    pub(crate) session: &'o Session,
    pub(crate) observer: &'o mut dyn Observer,
    meter: Meter,
    writer: Writer,
    format: TestFormat,
    /// Number of tests written so far.
    pub tests: u64,
    /// Findings so far.
    pub findings: Vec<FindingEntry>,
    /// Paths that set up a host of the world to be explored.
    pub hosts: Vec<SetUp>,
    /// The findings of this run, with their indices in `findings`.
    found: Vec<(usize, WorldFinding)>,
    /// Differences of two builds so far.
    pub differences: Vec<DifferenceEntry>,
    /// Differences that must be replayed natively, with their indices in `differences` and their
    /// descriptions.
    pub(crate) differing: Vec<(usize, Differing, String)>,
    /// Whether writing a result failed. The search continues, and findings are still reported.
    pub(crate) failed: bool,
    pub(crate) folder: Folder,
    /// Files that replace earlier ones; they are written after all others.
    replacing: Vec<NamedFile>,
    /// The number of states over time, if worlds are explored.
    samples: Option<Samples>,
    /// Upper bound of the time that the run reserves for work after the search.
    kept_time: Duration,
    /// Writes checkpoints, if the run can be resumed.
    pub(crate) checkpoints: Option<Checkpoints>,
    /// The announcement to the explorer whether the next tick writes a checkpoint.
    is_saving: Option<bool>,
    /// Number of calls of `tick`.
    ticks: u64,
    /// The files that KLEE would write for a program's run, if these are wanted.
    klee: Option<KleeFiles>,
    /// The files of seeds whose own paths have not begun yet.
    seeds: Vec<Option<SeedFile>>,
}

/// The formats of tests and findings for other tools: `.ktest` for a program, `.dtest` for a world
/// if wanted.
#[derive(Clone)]
struct TestFormat {
    command: Arc<[String]>,
    is_program: bool,
    dtests: Option<Tests>,
}

/// A function that returns files of a test or finding, with a common prefix of their names.
type TraceFiles = fn(&TestFormat, stem: &str, &WorldTrace) -> Vec<NamedFile>;

/// The formats of tests and findings, one row each.
const TRACE_FILES: &[TraceFiles] = &[
    |_, stem, trace| vec![(trace.file(stem), trace.to_json())],
    |format, stem, trace| match format.is_program {
        true => {
            let test = ktest(&format.command, &trace.host(HOST));
            vec![(format!("{stem}.ktest"), test)]
        }
        false => Vec::new(),
    },
    |format, stem, trace| {
        let tests = format.dtests.iter();
        tests
            .flat_map(|tests| tests.files(stem, &trace.hosts))
            .collect()
    },
];

impl TestFormat {
    /// Returns the files of a trace.
    fn files(&self, stem: &str, trace: &WorldTrace) -> Vec<NamedFile> {
        let formats = TRACE_FILES.iter();
        formats.flat_map(|files| files(self, stem, trace)).collect()
    }
}

impl<'o> Recorder<'o> {
    /// Creates a recorder that writes to a folder.
    pub(crate) fn new(
        folder: Folder,
        spec: &'o RunSpec,
        session: &'o Session,
        observer: &'o mut dyn Observer,
        config: &ExplorerConfig,
    ) -> Recorder<'o> {
        let is_program = config.world.is_none();
        let format = TestFormat {
            command: spec.words().into(),
            is_program,
            dtests: (spec.dtest && !is_program)
                .then(|| Tests::of(&topology(config), &config.hosts)),
        };
        let limit = config.limits.max_time.filter(|_| !spec.no_confirm);
        let klee = (spec.klee_messages && is_program).then(|| KleeFiles::of(folder.path()));
        let seeds = spec.seeds_apart.then(|| seed_files(&spec.seeds).ok());
        let seeds = seeds.flatten().unwrap_or_default();
        Recorder {
            klee,
            seeds: seeds.into_iter().map(Some).collect(),
            spec,
            session,
            meter: Meter::of(observer),
            observer,
            writer: Writer::new(folder.clone()),
            format,
            tests: 0,
            findings: Vec::new(),
            hosts: Vec::new(),
            found: Vec::new(),
            differences: Vec::new(),
            differing: Vec::new(),
            failed: false,
            folder,
            replacing: Vec::new(),
            samples: (!is_program).then(Samples::new),
            kept_time: limit.map_or(Duration::ZERO, |limit| (limit / 10).min(AFTER_TIME)),
            checkpoints: None,
            is_saving: None,
            ticks: 0,
        }
    }

    /// Ends recording and returns the observer.
    pub(crate) fn into_observer(self) -> &'o mut dyn Observer {
        self.observer
    }

    /// Returns the peak memory of the run so far.
    pub(crate) fn memory_peak(&self) -> u64 {
        self.session.memory.peak()
    }

    /// Continues the numbering of a stopped run, and loads its findings that were not processed
    /// yet.
    pub fn continue_from(
        &mut self,
        checkpoint: &Checkpoint,
        (config, images): (&ExplorerConfig, &[Image]),
    ) {
        self.tests = checkpoint.tests;
        self.findings = checkpoint.findings.clone();
        self.take_up_differences(&checkpoint.differences);
        for (number, entry) in self.findings.iter().enumerate() {
            if entry.confirmed.is_some() {
                continue;
            }
            let stem = format!("{}/finding", entry.dir);
            let name = match self.format.is_program {
                true => format!("{stem}.trace"),
                false => format!("{stem}.world"),
            };
            let path = self.folder.path().join(name);
            let Ok(trace) = WorldTrace::read(&path, self.format.is_program) else {
                continue;
            };
            let seen = Model::new(config.clone(), images).follow(&trace);
            let found = seen.ok().and_then(|seen| {
                let found = match trace.is_program {
                    true => seen.finding_of_kind(&entry.kind),
                    false => seen.finding_of(&trace),
                };
                found.cloned()
            });
            self.found.extend(found.map(|found| (number, found)));
        }
    }

    /// Writes a checkpoint while the search continues. If the search must stop meanwhile, it is
    /// abandoned. All results that it counts are written before.
    fn write_checkpoint(&mut self, explorer: &Explorer<'_>) -> Result<()> {
        let Some(checkpoints) = &mut self.checkpoints else {
            return Ok(());
        };
        self.writer.flush();
        let results = (&*self.findings, &*self.differences, self.tests);
        let limits = &explorer.config().limits;
        let until = early_deadline(self.session.now(), limits.max_time);
        let is_within = may_go_on(self.session, limits, until);
        let go_on = || is_within() && !self.session.stop.load(Ordering::Relaxed);
        let save = |path: &Path| explorer.save(path, true, &go_on);
        let written = checkpoints.write(save, results, || self.session.now(), true);
        written.map(|_| ())
    }

    /// Writes KLEE's tests of the states that a limit has left.
    pub(crate) fn write_pending_tests(&mut self, explorer: &Explorer<'_>) {
        let (Some(klee), false) = (&mut self.klee, self.spec.no_tests) else {
            return;
        };
        let (writer, command) = (&mut self.writer, &self.format.command);
        explorer.for_each_pending(&mut |trace| {
            for (name, bytes) in klee.halted(ktest(command, &trace)) {
                writer.write(name, bytes);
            }
        });
    }

    /// Writes the checkpoint of a search that has stopped, as far as the time limit allows. Returns
    /// whether there is one.
    pub(crate) fn write_last_checkpoint(&mut self, explorer: &mut Explorer<'_>) -> Result<bool> {
        let Some(checkpoints) = &mut self.checkpoints else {
            return Ok(false);
        };
        self.writer.flush();
        let results = (&*self.findings, &*self.differences, self.tests);
        let limits = explorer.config().limits.clone();
        let until = last_deadline(self.session.now(), limits.max_time);
        let go_on = may_go_on(self.session, &limits, until);
        let save = |path: &Path| explorer.save_last(path, &go_on);
        // If there is time left, the checkpoint is durable, like all others.
        let sync = !is_late(self.session.now(), limits.max_time);
        checkpoints.write(save, results, || self.session.now(), sync)
    }

    /// Returns the wall-clock time of the run, including the time before it was resumed.
    pub(crate) fn wall(&self) -> Duration {
        let earlier = self.checkpoints.as_ref().map(|it| it.earlier);
        self.session.now() + earlier.unwrap_or_default()
    }

    /// Returns whether the next tick writes a checkpoint. A bootstrap search has none: it would not
    /// contain the hosts that were set up.
    fn is_checkpoint_due(&self) -> bool {
        const TICKS_BETWEEN_CHECKS: u64 = 16;
        let is_checked = (self.ticks + 1).is_multiple_of(TICKS_BETWEEN_CHECKS);
        let is_due = || {
            let now = self.session.now();
            self.checkpoints.as_ref().is_some_and(|it| it.is_due(now))
        };
        is_checked && self.hosts.is_empty() && is_due()
    }

    /// Writes a checkpoint if one is due.
    fn mind_checkpoint(&mut self, explorer: &Explorer<'_>) {
        let is_due = match self.is_saving.take() {
            Some(is_due) => is_due,
            None => self.is_checkpoint_due(),
        };
        self.ticks += 1;
        if !is_due {
            return;
        }
        if let Err(error) = self.write_checkpoint(explorer) {
            let message = error.chain();
            self.warn(&format!("{message}; the run continues without checkpoints"));
            self.checkpoints = None;
        }
    }

    /// Reports a warning to the observer.
    pub fn warn(&mut self, warning: &str) {
        self.observer.event(&Event::Warning(warning));
    }

    pub(crate) fn write(&mut self, files: impl FnOnce() -> Vec<NamedFile> + Send + 'static) {
        if !self.writer.write_made(files) && !self.failed {
            self.failed = true;
            self.warn("results cannot be written any more; the search continues");
        }
    }

    /// Waits until all results of the search are written. Returns `false` if one could not be
    /// written.
    pub(crate) fn flush(&mut self) -> bool {
        self.writer.flush();
        self.failed |= self.writer.has_failed();
        !self.failed
    }

    /// Queues the files of a test. The writer creates those of its trace.
    fn write_test(&mut self, trace: WorldTrace, files: Vec<NamedFile>, stem: &str) {
        let (format, name) = (self.format.clone(), stem.to_owned());
        self.write(move || {
            let mut all = files;
            all.extend(format.files(&name, &trace));
            all
        });
        self.observer.event(&Event::Test { name: stem });
    }

    /// Returns the name of the next test.
    fn next_test(&mut self) -> String {
        self.tests += 1;
        format!("tests/{:06}", self.tests)
    }

    /// Estimates the time that the kernel takes to free the memory of the process at exit.
    fn freeing_time(&self) -> Duration {
        const PER_GIB: Duration = Duration::from_millis(80);
        PER_GIB.mul_f64(self.session.memory.used() as f64 / f64::from(1 << 30))
    }

    /// Writes the number of states over time, if worlds are explored.
    pub(crate) fn write_samples(&mut self, explorer: &Explorer<'_>) -> Result<()> {
        match &mut self.samples {
            Some(samples) if !self.spec.deterministic => {
                samples.write(explorer, self.session, &self.folder)
            }
            _ => Ok(()),
        }
    }

    /// Writes the findings and then the tests for which there was no disk space, as far as there is
    /// some now. Returns the number of missing files.
    pub(crate) fn write_again(&mut self) -> u64 {
        // The original files of findings are replaced by simpler ones at the end, if there are any.
        let unwritten = self.writer.take_unwritten();
        let (findings, tests): (Vec<_>, Vec<_>) = unwritten
            .files
            .iter()
            .partition(|(name, _)| name.starts_with("findings/"));
        let mut missing = unwritten.dropped;
        for (name, bytes) in findings.into_iter().chain(tests) {
            if self.folder.write(name, bytes).is_err() {
                missing += 1;
            }
        }
        missing
    }

    /// Reports the end of the run and writes the remaining files. Fails if a file could not be
    /// written and there is no finding: a finding is reported in any case.
    pub(crate) fn finish(mut self, summary: &Summary, written: Result<()>) -> Result<()> {
        for warning in &summary.warnings {
            self.observer.event(&Event::Warning(warning));
        }
        for limit in &summary.limits_hit {
            self.observer.event(&Event::LimitHit(limit));
        }
        let folder = self.folder.path();
        self.observer.event(&Event::Finished { summary, folder });
        if let Some(klee) = self.klee.take() {
            self.replacing
                .extend(klee.finish(summary, &self.format.command));
        }
        // Findings are written again even if writing has failed, because there is the reserve.
        let mut written = written.and(self.writer.finish().map_err(Error::from));
        for (name, bytes) in &self.replacing {
            written = written.and(self.folder.write(name, bytes).map_err(Error::from));
        }
        let written =
            written.context("not all results could be written; the summary lists what was found");
        match written {
            Err(error) if summary.conclusion() == Conclusion::Findings => {
                self.observer.event(&Event::Warning(&error.chain()));
                Ok(())
            }
            other => other,
        }
    }
}

/// Prepends a folder to the names of files.
pub(crate) fn in_folder(folder: &str, files: Vec<NamedFile>) -> Vec<NamedFile> {
    let files = files.into_iter();
    files
        .map(|(name, bytes)| (format!("{folder}/{name}"), bytes))
        .collect()
}

impl Listener for Recorder<'_> {
    fn printed(&mut self, output: &[Vec<u8>; 2]) {
        self.observer.event(&Event::Printed { output });
    }

    fn noted(&mut self, notes: &[Note]) {
        self.observer.event(&Event::Noted { notes });
        if let Some(klee) = &mut self.klee {
            klee.note(notes);
        }
    }

    fn seed(&mut self, number: u32) {
        // A path that moves to another worker at once begins twice.
        let file = self.seeds.get_mut(number as usize);
        if let Some(file) = file.and_then(Option::take) {
            self.observer.event(&Event::Seed(&file));
        }
    }

    fn path(&mut self, end: &PathEnd) {
        self.observer.event(&Event::PathDone(end));
        let error = self.klee.as_mut().and_then(|klee| klee.count(end));
        let Some(trace) = end.trace.as_ref().filter(|_| !self.spec.no_tests) else {
            return;
        };
        let stem = self.next_test();
        let mut files = written_files(&format!("{stem}.fs"), &end.files);
        if let Some(klee) = &mut self.klee {
            files.extend(klee.path(end, error, ktest(&self.format.command, trace)));
        }
        self.write_test(WorldTrace::of_program(trace.clone()), files, &stem);
    }

    fn world(&mut self, traces: &BTreeMap<String, Trace>, files: &SavedFiles) {
        self.observer.event(&Event::WorldDone(traces));
        let stem = self.next_test();
        let files = files.iter();
        let files =
            files.flat_map(|(host, files)| written_files(&format!("{stem}-{host}.fs"), files));
        self.write_test(WorldTrace::of_hosts(traces.clone()), files.collect(), &stem);
    }

    fn finding(&mut self, found: &WorldFinding) {
        let number = self.findings.len();
        let dir = format!("findings/{:04}", number + 1);
        let mut files = finding_files(
            found,
            None,
            Natively::NotTried("the search is still running"),
        );
        files.extend(written_files("fs", &found.finding.files));
        let (format, folder) = (self.format.clone(), dir.clone());
        let trace = WorldTrace::of(found, format.is_program);
        self.write(move || {
            files.extend(format.files("finding", &trace));
            in_folder(&folder, files)
        });
        if let Some(klee) = &mut self.klee {
            klee.finding(&found.finding);
        }
        let entry = FindingEntry::of(found, dir);
        self.observer.event(&Event::Finding {
            number: number as u64 + 1,
            entry: &entry,
            finding: &found.finding,
        });
        let mut kept = found.clone();
        kept.finding.files.clear();
        self.found.push((number, kept));
        self.findings.push(entry);
    }

    fn difference(&mut self, difference: &Difference) {
        self.record_difference(difference);
    }

    fn set_up(&mut self, setup: &Setup, trace: &Trace) {
        self.hosts.push(SetUp {
            setup: setup.clone(),
            trace: trace.clone(),
        });
    }

    fn is_saving_due(&mut self) -> bool {
        *self.is_saving.insert(self.is_checkpoint_due())
    }

    fn tick(&mut self, explorer: &Explorer<'_>) {
        self.mind_checkpoint(explorer);
        if let Some(samples) = &mut self.samples {
            samples.tick(explorer, self.session);
        }
        let Some(now) = self.meter.due(|| self.session.now()) else {
            return;
        };
        let world = self.samples.as_ref().map(|_| WorldProgress {
            virtual_ns: explorer.virtual_ns().unwrap_or(0),
            dstates: explorer.table().len(),
        });
        let progress = progress(explorer, now, &mut self.meter, world);
        self.observer.event(&Event::Progress(&progress));
    }

    /// Estimates the time by computing the summary and the coverage once, without writing them.
    fn closing_time(&mut self, explorer: &Explorer<'_>) -> Duration {
        let start = self.session.now();
        let summary = Summary::new(explorer, self, Stopped::Asked, start);
        let _ = summary.line_coverage.to_lcov();
        self.session.now().saturating_sub(start) + self.freeing_time()
    }

    /// Estimates the time after the search, with a fixed time for the native replay of each
    /// finding.
    fn time_after(&self) -> Duration {
        const EACH: Duration = Duration::from_millis(500);
        let findings = u32::try_from(self.found.len()).unwrap_or(u32::MAX);
        EACH.saturating_mul(findings).min(self.kept_time)
    }
}

/// Returns the progress of a search.
fn progress(
    explorer: &Explorer<'_>,
    now: Duration,
    meter: &mut Meter,
    world: Option<WorldProgress>,
) -> Progress {
    let statistics = explorer.statistics();
    let instructions = statistics.instructions + statistics.replayed;
    let solver = explorer.solver_statistics();
    let segments = explorer.coverage().blocks();
    Progress {
        elapsed: now,
        paths: statistics.paths_completed + statistics.paths_partial,
        states: explorer.states(),
        findings: explorer.findings().len(),
        instructions,
        instructions_per_second: meter.rate(now, instructions),
        solver_time: solver.sat_time + solver.smt_time,
        segments_covered: segments.iter().filter(|mark| **mark != 0).count(),
        segments: segments.len(),
        world,
    }
}
