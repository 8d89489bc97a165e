//! The listener of a search of one program: writes tests and findings as they come, and tells of them. Owns the files
//! of findings and tests; must not know how the search goes.

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

/// The name of the only host.
pub const HOST: &str = "host";
/// Time for making one finding simpler.
pub const SHRINK_TIME: Duration = Duration::from_secs(3);
/// How the name of a trace ends that was made simpler: what it was before.
pub const ORIGINAL: &str = ".original.trace";
/// Longest path of a guest's file that is written.
const MAX_PATH: usize = 1000;

/// A finding as `summary.json` lists it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FindingEntry {
    /// What kind.
    pub kind: String,
    /// One line for people.
    pub message: String,
    /// File of the place.
    pub file: String,
    /// Line of the place.
    pub line: u32,
    /// Function of the place.
    pub function: String,
    /// The host on which it happened.
    pub host: String,
    /// Folder below the run's.
    pub dir: String,
    /// Whether it happened again on the native program: `confirmed`, `not-reproduced`, `not-replayable`; `null` where
    /// that was not tried.
    #[serde(default)]
    pub confirmed: Option<String>,
    /// Why it did not.
    #[serde(default)]
    pub confirmed_reason: Option<String>,
}

impl FindingEntry {
    /// One that was not tried natively yet.
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

/// Until when findings are worked on after a run; nothing where that is not wanted.
#[derive(Copy, Clone, Debug)]
pub struct AfterRun {
    /// Their inputs are made simpler.
    pub shrink: Option<Duration>,
    /// They are replayed natively.
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
    /// Paths that are hosts of a world that is to be made.
    pub hosts: Vec<SetUp>,
    /// Their numbers and traces, for those of this run.
    traces: Vec<(usize, Trace)>,
    /// Something could not be written; the run goes on, what is found is still shown.
    failed: bool,
    folder: Folder,
    /// Files that replace earlier ones, when all others are written.
    replacing: Vec<NamedFile>,
    /// Most of the run's time that is kept for what comes after the search.
    pub kept_time: Duration,
}

impl<'o> Recorder<'o> {
    /// A recorder for a run into a folder.
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

    /// Who listens, where nothing more is recorded.
    pub(crate) fn into_observer(self) -> &'o mut dyn Observer {
        self.observer
    }

    /// Most memory that the run took so far.
    pub(crate) fn memory_peak(&self) -> u64 {
        self.session.memory.peak()
    }

    /// Goes on numbering where an earlier run stopped.
    pub fn continue_from(&mut self, checkpoint: &Checkpoint) {
        self.tests = checkpoint.tests;
        self.findings = checkpoint.findings.clone();
    }

    /// Says what the user should know.
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

    /// Makes the inputs of this run's findings simpler and lets them happen again natively, as long as there is time.
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

    /// A simpler trace of a finding, if there is one and time to look for it.
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
        // What cannot be made simpler stays as it is.
        shrink_trace(self.spec, self.session, images, trace, &goal, until).ok()?
    }

    /// What becomes of a finding natively. The simpler trace is kept only if it does as well as the first one.
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

    /// How long the system takes to free the memory of the process when it ends.
    fn freeing_time(&self) -> Duration {
        const PER_GIB: Duration = Duration::from_millis(80);
        PER_GIB.mul_f64(self.session.memory.used() as f64 / f64::from(1 << 30))
    }

    /// The simpler trace takes the place of the first one, which is kept beside it.
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

    /// Tells how the run ended, and writes what is left to write. An error if something could not be written.
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

    /// Does it all but for the files, and looks at the clock.
    fn closing_time(&mut self, explorer: &Explorer<'_>) -> Duration {
        let start = self.session.now();
        let summary = Summary::new(explorer, self, Stopped::Asked, start);
        let _ = summary.line_coverage.to_lcov();
        self.session.now().saturating_sub(start) + self.freeing_time()
    }

    /// Replaying a finding takes about as long.
    fn time_after(&self) -> Duration {
        const EACH: Duration = Duration::from_millis(500);
        let findings = u32::try_from(self.traces.len()).unwrap_or(u32::MAX);
        EACH.saturating_mul(findings).min(self.kept_time)
    }
}

/// How far a search is.
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

/// Tells how a run ended.
pub(crate) fn tell_end(summary: &RunSummary, folder: &Path, observer: &mut dyn Observer) {
    for warning in summary.warnings() {
        observer.event(&Event::Warning(warning));
    }
    for limit in summary.limits_hit() {
        observer.event(&Event::LimitHit(limit));
    }
    observer.event(&Event::Finished { summary, folder });
}

/// What is written about a finding beside its trace.
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

/// A test in KLEE's format.
pub fn ktest(command: &[String], trace: &Trace) -> Vec<u8> {
    let inputs = trace.inputs.iter();
    let objects = inputs.map(|input| (input.name.to_string(), input.bytes.clone()));
    KTest {
        args: command.to_vec(),
        objects: objects.collect(),
    }
    .to_bytes()
}

/// Files that a path left behind: a list, and below a folder what those hold that it made or changed.
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
        // Longer paths than this cannot be made here; their files are listed only.
        if let FileChange::File(_) = file.what
            && path.len() < MAX_PATH
        {
            written.push((format!("{folder}{path}"), bytes.clone()));
        }
    }
    written.push((format!("{folder}.txt"), list.into_bytes()));
    written
}

/// A path of the guest as a path here: bytes that are not printable are escaped.
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

/// A finding as text: what, where with the source, stacks, inputs.
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
        // What went as usual says nothing.
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

/// The lines around a place, if the file can be read.
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

/// Bytes as people read them: a string where printable, numbers where short, else hexadecimal.
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
