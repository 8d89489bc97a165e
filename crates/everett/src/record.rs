//! The listener of a search of one program: writes tests and findings as they occur and reports them to the observer.
//! Owns the files of findings and tests; must not know how the search works.

use everett_engine::{
    Explorer, Finding, Listener, PathEnd, SourceFrame, Stopped, Trace, WorldFinding, principal,
};
use everett_linux::{ChangedFile, FileChange, Setup};
use everett_native::NativeConfig;
use everett_report::{Folder, KTest, NamedFile, Writer};
use everett_vm::Image;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::bootstrap::SetUp;
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::events::{Event, Meter, Observer, Progress};
use crate::replay::{BuildSpec, Verdict, confirm_one, native_config};
use crate::session::Session;
use crate::shrink::{Goal, Shrunk, shrink_trace};
use crate::spec::RunSpec;
use crate::summary::{RunSummary, Summary};

/// The host name in runs of a single program.
pub const HOST: &str = "host";
/// Time budget for shrinking one finding.
pub const SHRINK_TIME: Duration = Duration::from_secs(3);
/// The suffix of the file that keeps a trace as it was before shrinking.
pub const ORIGINAL: &str = ".original.trace";
/// Longest guest path whose file is written.
const MAX_PATH: usize = 1000;

/// A finding as `summary.json` lists it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FindingEntry {
    /// The kind of the finding.
    pub kind: String,
    /// A one-line description.
    pub message: String,
    /// The source file.
    pub file: String,
    /// The source line.
    pub line: u32,
    /// The function.
    pub function: String,
    /// The host on which it occurred.
    pub host: String,
    /// Its folder, relative to the folder of the run.
    pub dir: String,
    /// The verdict of the native replay: `confirmed`, `not-reproduced` or `not-replayable`; `null` if it was not
    /// replayed.
    #[serde(default)]
    pub confirmed: Option<String>,
    /// Why it was not confirmed.
    #[serde(default)]
    pub confirmed_reason: Option<String>,
}

impl FindingEntry {
    /// An entry for a finding that was not replayed yet.
    pub fn of(finding: &Finding, host: &str, dir: String) -> FindingEntry {
        let place = principal(&finding.stack)
            .cloned()
            .unwrap_or_else(unknown_place);
        FindingEntry {
            kind: finding.kind.name().to_owned(),
            message: finding.message.clone(),
            file: place.file,
            line: place.line,
            function: place.function,
            host: host.to_owned(),
            dir,
            confirmed: None,
            confirmed_reason: None,
        }
    }
}

/// Deadlines for the work on findings after a run; `None` disables a step.
#[derive(Copy, Clone, Debug)]
pub struct AfterRun {
    /// Deadline for shrinking their traces.
    pub shrink: Option<Duration>,
    /// Deadline for confirming them natively.
    pub confirm: Option<Duration>,
}

/// Writes tests and findings into the folder of a run.
pub(crate) struct Recorder<'o> {
    spec: &'o RunSpec,
    session: &'o Session,
    observer: &'o mut dyn Observer,
    meter: Meter,
    writer: Writer,
    command: Arc<[String]>,
    write_tests: bool,
    /// Tests written so far.
    pub tests: u64,
    /// Findings so far.
    pub findings: Vec<FindingEntry>,
    /// Paths that set up a host of the world to be explored.
    pub hosts: Vec<SetUp>,
    /// The findings of this run, as indices into `findings`, with their traces.
    traces: Vec<(usize, Trace)>,
    /// Writing a result failed. The search continues, and findings are still reported.
    failed: bool,
    folder: Folder,
    /// Files that replace earlier ones; they are written after all others.
    replacing: Vec<NamedFile>,
    /// Upper bound of the time that the run reserves for work after the search.
    pub kept_time: Duration,
}

impl<'o> Recorder<'o> {
    /// A recorder that writes to a folder.
    pub(crate) fn new(
        folder: Folder,
        spec: &'o RunSpec,
        session: &'o Session,
        observer: &'o mut dyn Observer,
    ) -> Recorder<'o> {
        Recorder {
            spec,
            session,
            meter: Meter::of(observer),
            observer,
            writer: Writer::new(folder.clone()),
            command: spec.words().into(),
            write_tests: !spec.no_tests,
            tests: 0,
            findings: Vec::new(),
            hosts: Vec::new(),
            traces: Vec::new(),
            failed: false,
            folder,
            replacing: Vec::new(),
            kept_time: Duration::ZERO,
        }
    }

    /// Ends recording and returns the observer.
    pub(crate) fn into_observer(self) -> &'o mut dyn Observer {
        self.observer
    }

    /// Peak memory of the run so far.
    pub(crate) fn memory_peak(&self) -> u64 {
        self.session.memory.peak()
    }

    /// Continues the numbering of a stopped run.
    pub fn continue_from(&mut self, checkpoint: &Checkpoint) {
        self.tests = checkpoint.tests;
        self.findings = checkpoint.findings.clone();
    }

    /// Reports a warning to the observer.
    pub fn warn(&mut self, warning: &str) {
        self.observer.event(&Event::Warning(warning));
    }

    fn write(&mut self, name: String, bytes: Vec<u8>) {
        self.note(self.writer.write(name, bytes));
    }

    fn note(&mut self, written: bool) {
        if !written && !self.failed {
            self.failed = true;
            self.warn("results cannot be written any more; the search goes on");
        }
    }

    fn write_trace(&mut self, stem: String, trace: &Trace) {
        let (trace, command) = (trace.clone(), self.command.clone());
        let written = self.writer.write_made(move || {
            let text = serde_json::to_vec(&trace).unwrap_or_default();
            vec![
                (format!("{stem}.ktest"), ktest(&command, &trace)),
                (format!("{stem}.trace"), text),
            ]
        });
        self.note(written);
    }

    fn write_files(&mut self, folder: String, files: &[(ChangedFile, Vec<u8>)]) {
        for (name, bytes) in written_files(&folder, files) {
            self.write(name, bytes);
        }
    }

    /// Shrinks the findings of this run and confirms them natively, until the deadlines.
    pub(crate) fn confirm(&mut self, images: &[Image], until: AfterRun) {
        if self.traces.is_empty() {
            return;
        }
        let config = match native_config(self.spec, &BuildSpec::default(), self.session) {
            _ if until.confirm.is_none() => None,
            Ok(config) => Some(config),
            Err(error) => {
                self.warn(&format!("nothing is confirmed: {}", error.chain()));
                None
            }
        };
        let mut late = false;
        let mut confirmed = 0;
        for (number, trace) in std::mem::take(&mut self.traces) {
            let shrunk = self.shrunk(images, number, &trace, until.shrink);
            let Some(config) = &config else {
                self.replace(number, &trace, shrunk);
                continue;
            };
            if until
                .confirm
                .is_none_or(|until| self.session.now() >= until)
            {
                late = true;
                self.replace(number, &trace, shrunk);
                continue;
            }
            let verdict = self.confirm_finding(config, number, trace, shrunk);
            confirmed += usize::from(verdict == Verdict::Confirmed);
            let entry = &mut self.findings[number];
            entry.confirmed = Some(verdict.name().to_owned());
            entry.confirmed_reason = verdict.reason().map(str::to_owned);
            self.observer.event(&Event::FindingReplayed {
                entry,
                verdict: &verdict,
            });
        }
        if late {
            self.warn("there is no time to confirm all findings");
        }
        if config.is_some() {
            self.observer.event(&Event::FindingsReplayed {
                confirmed,
                findings: self.findings.len(),
            });
        }
    }

    /// Shrinks the trace of a finding. `None` if there is no simpler trace or no time left.
    fn shrunk(
        &self,
        images: &[Image],
        number: usize,
        trace: &Trace,
        until: Option<Duration>,
    ) -> Option<Shrunk> {
        let until = until?.min(self.session.now() + SHRINK_TIME);
        if self.session.now() >= until {
            return None;
        }
        let goal = Goal::of_entry(&self.findings[number]);
        // If shrinking fails, the original trace stays.
        shrink_trace(self.spec, self.session, images, trace, &goal, until).ok()?
    }

    /// Confirms a finding natively. The shrunk trace is kept unless only the original trace is confirmed.
    fn confirm_finding(
        &mut self,
        config: &NativeConfig,
        number: usize,
        trace: Trace,
        shrunk: Option<Shrunk>,
    ) -> Verdict {
        let notices = &self.session.notices;
        let Some(shrunk) = shrunk else {
            return confirm_one(config, trace, notices);
        };
        let verdict = confirm_one(config, shrunk.trace.clone(), notices);
        if verdict != Verdict::Confirmed
            && confirm_one(config, trace.clone(), notices) == Verdict::Confirmed
        {
            return Verdict::Confirmed;
        }
        self.replace(number, &trace, Some(shrunk));
        verdict
    }

    /// Estimated time that the kernel takes to free the memory of the process at exit.
    fn freeing_time(&self) -> Duration {
        const PER_GIB: Duration = Duration::from_millis(80);
        PER_GIB.mul_f64(self.session.memory.used() as f64 / f64::from(1 << 30))
    }

    /// Replaces the trace of a finding with the shrunk one and keeps the original beside it.
    fn replace(&mut self, number: usize, trace: &Trace, shrunk: Option<Shrunk>) {
        let Some(Shrunk {
            finding: Some(finding),
            trace: simpler,
            ..
        }) = shrunk
        else {
            return;
        };
        let entry = &mut self.findings[number];
        entry.message = finding.message.clone();
        let file = |name: &str| format!("{}/finding{name}", entry.dir);
        let json = |trace: &Trace| serde_json::to_vec(trace).unwrap_or_default();
        self.replacing.push((file(ORIGINAL), json(trace)));
        self.replacing.push((file(".trace"), json(&simpler)));
        let test = ktest(&self.command, &simpler);
        self.replacing.push((file(".ktest"), test));
        for (name, bytes) in finding_files(&finding, HOST, true) {
            self.replacing
                .push((format!("{}/{name}", entry.dir), bytes));
        }
    }

    /// Reports the end of the run and writes the remaining files. Fails if a file could not be written.
    pub(crate) fn finish(self, summary: &RunSummary) -> Result<()> {
        tell_end(summary, self.folder.path(), self.observer);
        self.writer.finish()?;
        for (name, bytes) in &self.replacing {
            self.folder.write(name, bytes)?;
        }
        Ok(())
    }
}

impl Listener for Recorder<'_> {
    fn path(&mut self, end: &PathEnd) {
        self.observer.event(&Event::PathDone(end));
        let Some(trace) = end.trace.as_ref().filter(|_| self.write_tests) else {
            return;
        };
        self.tests += 1;
        let stem = format!("tests/{:06}", self.tests);
        self.write_files(format!("{stem}.fs"), &end.files);
        self.write_trace(stem.clone(), trace);
        self.observer.event(&Event::Test { name: &stem });
    }

    fn finding(&mut self, found: &WorldFinding) {
        let finding = &found.finding;
        let number = self.findings.len() as u64 + 1;
        let dir = format!("findings/{number:04}");
        for (name, bytes) in finding_files(finding, HOST, false) {
            self.write(format!("{dir}/{name}"), bytes);
        }
        self.write_trace(format!("{dir}/finding"), &finding.trace);
        self.write_files(format!("{dir}/fs"), &finding.files);
        let entry = FindingEntry::of(finding, HOST, dir);
        self.traces
            .push((self.findings.len(), finding.trace.clone()));
        self.observer.event(&Event::Finding {
            number,
            entry: &entry,
            finding,
        });
        self.findings.push(entry);
    }

    fn set_up(&mut self, setup: &Setup, trace: &Trace) {
        self.hosts.push(SetUp {
            setup: setup.clone(),
            trace: trace.clone(),
        });
    }

    fn tick(&mut self, explorer: &Explorer<'_>) {
        let Some(now) = self.meter.due(|| self.session.now()) else {
            return;
        };
        let progress = progress(explorer, now, &mut self.meter);
        self.observer.event(&Event::Progress(&progress));
    }

    /// Estimates the time by computing the summary and the coverage once, without writing them.
    fn closing_time(&mut self, explorer: &Explorer<'_>) -> Duration {
        let start = self.session.now();
        let summary = Summary::new(explorer, self, Stopped::Asked, start);
        let _ = summary.line_coverage.to_lcov();
        self.session.now().saturating_sub(start) + self.freeing_time()
    }

    /// Assumes a fixed time for the native replay of each finding.
    fn time_after(&self) -> Duration {
        const EACH: Duration = Duration::from_millis(500);
        let findings = u32::try_from(self.traces.len()).unwrap_or(u32::MAX);
        EACH.saturating_mul(findings).min(self.kept_time)
    }
}

/// The progress of a search.
fn progress(explorer: &Explorer<'_>, now: Duration, meter: &mut Meter) -> Progress {
    let statistics = explorer.statistics();
    let instructions = statistics.instructions + statistics.replayed;
    let solver = explorer.solver_statistics();
    let segments = &explorer.coverage().segments;
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
        world: None,
    }
}

/// Reports warnings, limits and the end of a run to the observer.
pub(crate) fn tell_end(summary: &RunSummary, folder: &Path, observer: &mut dyn Observer) {
    for warning in summary.warnings() {
        observer.event(&Event::Warning(warning));
    }
    for limit in summary.limits_hit() {
        observer.event(&Event::LimitHit(limit));
    }
    observer.event(&Event::Finished { summary, folder });
}

/// The files that describe a finding, besides its trace.
pub fn finding_files(finding: &Finding, host: &str, made_simpler: bool) -> [NamedFile; 2] {
    let place = principal(&finding.stack)
        .cloned()
        .unwrap_or_else(unknown_place);
    let json = serde_json::json!({
        "kind": finding.kind.name(), "message": finding.message, "file": place.file, "line": place.line,
        "function": place.function, "host": host, "stack": finding.stack,
        "allocated": finding.allocated, "freed": finding.freed, "threads": finding.threads,
        "instructions": finding.instructions, "clock_ns": finding.clock_ns,
    });
    let json = serde_json::to_vec_pretty(&json).unwrap_or_default();
    let text = describe(finding, made_simpler).into_bytes();
    [
        ("finding.txt".to_owned(), text),
        ("finding.json".to_owned(), json),
    ]
}

/// A test in the `.ktest` format of KLEE.
pub fn ktest(command: &[String], trace: &Trace) -> Vec<u8> {
    let inputs = trace.inputs.iter();
    let objects = inputs.map(|input| (input.name.to_string(), input.bytes.clone()));
    KTest {
        args: command.to_vec(),
        objects: objects.collect(),
    }
    .to_bytes()
}

/// The files that a path changed: a list of all changes, and below `folder` the contents of created or modified files.
pub fn written_files(folder: &str, files: &[(ChangedFile, Vec<u8>)]) -> Vec<NamedFile> {
    if files.is_empty() {
        return Vec::new();
    }
    let (mut list, mut written) = (String::new(), Vec::new());
    for (file, bytes) in files {
        let (path, mode) = (readable_path(&file.path), file.mode);
        let _ = match &file.what {
            FileChange::File(_) => writeln!(list, "file {mode:04o} {path} ({} bytes)", bytes.len()),
            FileChange::Directory => writeln!(list, "directory {mode:04o} {path}"),
            FileChange::Link(target) => writeln!(list, "link {path} -> {}", readable_path(target)),
            FileChange::Special => writeln!(list, "special {mode:04o} {path}"),
            FileChange::Removed => writeln!(list, "removed {path}"),
        };
        // The file system of the machine does not allow longer paths; such files are only listed.
        if let FileChange::File(_) = file.what
            && path.len() < MAX_PATH
        {
            written.push((format!("{folder}{path}"), bytes.clone()));
        }
    }
    written.push((format!("{folder}.txt"), list.into_bytes()));
    written
}

/// A guest path as a path on this machine, with non-printable bytes escaped.
fn readable_path(path: &[u8]) -> String {
    let escaped = path.iter().map(|byte| match byte {
        b'%' | 0..=0x20 | 0x7f.. => format!("%{byte:02X}"),
        _ => char::from(*byte).to_string(),
    });
    escaped.collect()
}

fn unknown_place() -> SourceFrame {
    SourceFrame {
        function: String::new(),
        file: String::new(),
        line: 0,
        column: 0,
    }
}

/// A finding as text: kind, location with source, stacks and inputs.
fn describe(finding: &Finding, made_simpler: bool) -> String {
    let mut text = format!("{}: {}\n", finding.kind.name(), finding.message);
    if let Some(place) = principal(&finding.stack) {
        let _ = writeln!(
            text,
            "in {} at {}:{}\n",
            place.function, place.file, place.line
        );
        text.push_str(&excerpt(place));
    }
    let mut stack = |title: &str, frames: &[SourceFrame]| {
        if frames.is_empty() {
            return;
        }
        let _ = writeln!(text, "{title}:");
        for (number, frame) in frames.iter().enumerate() {
            let place = match frame.line {
                0 => String::new(),
                line => format!(" at {}:{line}", frame.file),
            };
            let _ = writeln!(text, "    #{number} {}{place}", frame.function);
        }
        text.push('\n');
    };
    stack("stack", &finding.stack);
    stack("allocated", &finding.allocated);
    stack("freed", &finding.freed);
    for (who, frames) in &finding.threads {
        stack(who, frames);
    }
    if !finding.trace.inputs.is_empty() || made_simpler {
        text.push_str("inputs:\n");
    }
    for input in finding.trace.inputs.iter() {
        let _ = writeln!(text, "    {} = {}", input.name, readable(&input.bytes));
    }
    for choice in finding.trace.choices.iter() {
        // Default choices are not worth mentioning.
        if choice.picked > 0 {
            let _ = writeln!(text, "    {}", choice.describe());
        }
    }
    if made_simpler {
        text.push_str("    (made simpler; as it was found: finding.original.trace)\n");
    }
    for (name, bytes) in ["stdout", "stderr"].iter().zip(&finding.output) {
        if !bytes.is_empty() {
            let _ = writeln!(text, "\n{name}:\n{}", String::from_utf8_lossy(bytes));
        }
    }
    text
}

/// The source lines around a location; empty if the file cannot be read.
fn excerpt(place: &SourceFrame) -> String {
    let Ok(source) = std::fs::read_to_string(&place.file) else {
        return String::new();
    };
    let line = place.line as usize;
    let first = line.saturating_sub(3).max(1);
    let mut text = String::new();
    for (number, content) in source
        .lines()
        .enumerate()
        .skip(first - 1)
        .take(line + 3 - first)
    {
        let mark = if number + 1 == line { '>' } else { ' ' };
        let _ = writeln!(text, "  {mark} {:>5} | {content}", number + 1);
    }
    text.push('\n');
    text
}

/// Bytes in human-readable form: as a string and in hexadecimal, and as an integer if the length allows.
pub fn readable(bytes: &[u8]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x} ")).collect();
    let string: String = bytes
        .iter()
        .flat_map(|byte| std::ascii::escape_default(*byte))
        .map(char::from)
        .collect();
    let mut text = format!("\"{string}\"");
    let number = match bytes.len() {
        1 => Some(i64::from(bytes[0] as i8)),
        2 => Some(i64::from(i16::from_le_bytes([bytes[0], bytes[1]]))),
        4 => Some(i64::from(i32::from_le_bytes([
            bytes[0], bytes[1], bytes[2], bytes[3],
        ]))),
        8 => bytes.try_into().ok().map(i64::from_le_bytes),
        _ => None,
    };
    let _ = write!(text, "  hex {}", hex.trim_end());
    if let Some(number) = number {
        let _ = write!(text, "  integer {number}");
    }
    text
}
