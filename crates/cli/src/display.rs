//! Presentation of the library's events to the user.

use everett::{
    Comparison, DifferenceEntry, Ending, Event, Finding, Observer, Outcome, Progress, Repeats,
    Summary, Verdict, WorldFigures, WorldProgress,
};
use std::io::{IsTerminal, Write};
use std::num::NonZeroU32;
use std::path::Path;
use std::time::{Duration, Instant};

/// Output mode.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Text for people.
    Text,
    /// Findings only.
    Quiet,
    /// A line of JSON for each event.
    Json,
}

/// How to show the events of a native replay.
#[derive(Copy, Clone, Debug, Default)]
pub struct Steps {
    /// Whether to print them.
    pub are_printed: bool,
    /// Paces the replay by its virtual clock, counted from this instant.
    pub since: Option<Instant>,
}

/// Writes events to the terminal.
pub struct Display {
    mode: Mode,
    line_shown: bool,
    live: bool,
    steps: Steps,
}

const INTERVAL: Duration = Duration::from_millis(200);
/// Most names of a list that are shown.
const MOST_SHOWN: usize = 10;

impl Display {
    /// A display with this output mode.
    pub fn new(mode: Mode) -> Display {
        let live = mode == Mode::Text && std::io::stderr().is_terminal();
        Display {
            mode,
            line_shown: false,
            live,
            steps: Steps::default(),
        }
    }

    /// A display for native replays that shows events this way.
    pub fn of_replay(steps: Steps) -> Display {
        Display {
            live: false,
            steps,
            ..Display::new(Mode::Text)
        }
    }

    fn clear_line(&mut self) {
        if self.line_shown {
            eprint!("\r\x1b[K");
            self.line_shown = false;
        }
    }

    fn progress(&mut self, progress: &Progress) {
        if self.mode == Mode::Json {
            return print(&progress_json(progress).to_string());
        }
        self.show_line(&progress_text(progress));
    }

    /// Shows a line that the next one takes the place of.
    fn show_line(&mut self, text: &str) {
        eprint!("\r\x1b[K{text}");
        let _ = std::io::stderr().flush();
        self.line_shown = true;
    }

    fn finding(&mut self, finding: &Finding, number: u64) {
        self.clear_line();
        let place = everett::principal(&finding.stack);
        let (file, line) = place.map_or(("?", 0), |place| (place.file.as_str(), place.line));
        match self.mode {
            Mode::Json => print_json(&serde_json::json!({
                "event": "finding", "number": number, "kind": finding.kind.name(),
                "message": finding.message, "file": file, "line": line,
            })),
            _ => {
                let function = place.map_or("?", |place| place.function.as_str());
                print(&format!("{}: {}", finding.kind.name(), finding.message));
                print(&format!(
                    "    in {function} at {file}:{line}    findings/{number:04}"
                ));
            }
        }
    }

    fn difference(&mut self, entry: &DifferenceEntry) {
        self.clear_line();
        match self.mode {
            Mode::Json => print_json(&serde_json::json!({
                "event": "difference", "aspects": entry.aspects, "new": entry.new, "old": entry.old,
                "dir": entry.dir,
            })),
            _ => print(&format!("difference: {}\n    {}", entry.text(), entry.dir)),
        }
    }

    /// Prints a message.
    pub fn say(&mut self, text: &str) {
        self.clear_line();
        if self.mode == Mode::Text {
            print(text);
        }
    }

    fn warn(&mut self, text: &str) {
        self.clear_line();
        match self.mode {
            Mode::Json => {
                print_json(&serde_json::json!({ "event": "warning", "message": text }));
            }
            _ => eprintln!("everett: {text}"),
        }
    }

    fn finished(&mut self, summary: &Summary, folder: &Path) {
        let limits = summary.limits_hit.join(", ");
        if self.mode == Mode::Json {
            print(&end_json(summary));
        }
        self.say(&summary_text(summary));
        if let Some(against) = &summary.against {
            self.say(&comparison_text(against));
        }
        if !limits.is_empty() {
            self.say(&format!("limits reached: {limits}"));
        }
        if !summary.unsupported.is_empty() {
            self.say(&format!(
                "unsupported: {} requests that Linux would fulfil were refused or ignored (summary.json lists them)",
                summary.unsupported.len()
            ));
        }
        if let Some(stalled) = summary.world.as_ref().and_then(stalled_text) {
            self.say(&stalled);
        }
        if !summary.faults_never_fired.is_empty() {
            let never = &summary.faults_never_fired;
            let shown = never[..never.len().min(MOST_SHOWN)].join(", ");
            let more = never.len().saturating_sub(MOST_SHOWN);
            let more = (more > 0).then(|| format!(" and {more} more"));
            let more = more.unwrap_or_default();
            self.say(&format!("faults that never fired: {shown}{more}"));
        }
        let pending = summary.program.as_ref().map_or(0, |it| it.states_pending);
        if pending > 0 {
            self.say(&format!(
                "{pending} states are left; continue with: everett resume {}",
                folder.display()
            ));
        }
        self.say(&format!("results in {}", folder.display()));
    }

    fn step(&self, host: Option<&str>, number: usize, line: &str, clock_ns: u64) {
        if let Some(since) = self.steps.since {
            let due = Duration::from_nanos(clock_ns);
            std::thread::sleep(due.saturating_sub(since.elapsed()));
        }
        if self.steps.are_printed {
            let line = match host {
                Some(host) => format!("{host} {line}"),
                None => line.to_owned(),
            };
            eprintln!("{}", numbered(number, &line));
        }
    }
}

impl Observer for Display {
    fn event(&mut self, event: &Event<'_>) {
        crate::session::note_event(event);
        match event {
            Event::Progress(progress) => self.progress(progress),
            Event::Finding {
                number, finding, ..
            } => self.finding(finding, *number),
            Event::Difference { entry, .. } | Event::WorldsDiffer { entry } => {
                self.difference(entry)
            }
            Event::Compared { comparison } => self.say(&comparison_text(comparison)),
            Event::DifferenceReplayed { entry, verdict } => {
                let why = verdict.reason().map(|why| format!(": {why}"));
                let why = why.unwrap_or_default();
                self.say(&format!("{}: {}{why}", entry.dir, verdict.name()));
            }
            Event::Confirming { entry, findings } if self.live => {
                self.show_line(&format!("confirming {} of {findings} natively", entry.dir));
            }
            Event::FindingReplayed { entry, verdict } => {
                if let Some(why) = verdict.reason() {
                    self.say(&format!("{}: {}: {why}", entry.dir, verdict.name()));
                }
            }
            Event::FindingsReplayed {
                confirmed,
                findings,
            } => self.say(&format!(
                "{confirmed} of {findings} findings confirmed natively"
            )),
            Event::Warning(text) => self.warn(text),
            Event::Finished { summary, folder } => self.finished(summary, folder),
            Event::Followed { path, ending } => followed(path, ending),
            Event::Calls { path, of, lines } => {
                if *of > 1 {
                    print(&format!("{}:", path.display()));
                }
                lines.iter().for_each(|line| print(line));
            }
            Event::Step {
                host,
                number,
                line,
                clock_ns,
            } => self.step(*host, *number, line, *clock_ns),
            Event::Repeated {
                path,
                times,
                repeats,
            } => repeated(path, *times, repeats),
            Event::Captured {
                host: None,
                file,
                packets,
            } => print(&format!("{packets} packets are in {}", file.display())),
            Event::Captured {
                host: Some(host),
                file,
                ..
            } => print(&format!("packets of {host} are in {}", file.display())),
            Event::Output { host, streams } => show_output(*host, streams),
            Event::Replayed { path, verdict } => replayed(path, verdict),
            Event::Tested { path, outcome } => tested(path, outcome),
            _ => {}
        }
    }

    fn progress_interval(&self) -> Option<Duration> {
        (self.live || self.mode == Mode::Json).then_some(INTERVAL)
    }
}

/// The last event of a run. A JSON value holds no number of worlds above 64 bits, but JSON text does.
fn end_json(summary: &Summary) -> String {
    let summary = serde_json::to_string(summary).unwrap_or_else(|_| "null".to_owned());
    format!("{{\"event\":\"end\",\"summary\":{summary}}}")
}

fn progress_json(progress: &Progress) -> serde_json::Value {
    let seconds = progress.elapsed.as_secs_f64();
    let Progress {
        states,
        findings,
        instructions,
        ..
    } = progress;
    match &progress.world {
        None => serde_json::json!({
            "event": "progress", "seconds": seconds, "paths": progress.paths,
            "states": states, "findings": findings, "instructions": instructions,
        }),
        Some(WorldProgress {
            virtual_ns,
            dstates,
        }) => serde_json::json!({
            "event": "progress", "seconds": seconds, "virtual_seconds": *virtual_ns as f64 / 1e9,
            "states": states, "dstates": dstates, "findings": findings,
            "instructions": instructions,
        }),
    }
}

fn progress_text(progress: &Progress) -> String {
    let seconds = progress.elapsed.as_secs_f64();
    let rate = short(progress.instructions_per_second);
    let Progress {
        states, findings, ..
    } = progress;
    match &progress.world {
        None => {
            let (covered, all) = (progress.segments_covered, progress.segments.max(1));
            format!(
                "{seconds:>6.1} s  {} paths  {states} states  {:.1} % covered  {findings} findings  {rate}/s  solver {:.0} %",
                progress.paths,
                100.0 * covered as f64 / all as f64,
                100.0 * progress.solver_time.as_secs_f64() / seconds.max(1e-9),
            )
        }
        Some(world) => format!(
            "{seconds:>6.1} s  virtual time {:.3} s  {states} states  {} dstates  {findings} findings  {rate}/s",
            world.virtual_ns as f64 / 1e9,
            world.dstates,
        ),
    }
}

fn completeness(complete: bool) -> &'static str {
    match complete {
        true => "complete",
        false => "not complete",
    }
}

fn summary_text(summary: &Summary) -> String {
    let complete = completeness(summary.complete);
    let findings = summary.findings.len();
    let rate = short(summary.instructions as f64 / summary.wall_seconds.max(1e-9));
    let ran = format!(
        "{} instructions ({rate}/s), {:.2} s",
        summary.instructions, summary.wall_seconds
    );
    match &summary.world {
        None => format!(
            "{complete}: {} paths ({} partial), {findings} findings, {ran}, {} of {} lines covered",
            summary.paths.completed + summary.paths.partial,
            summary.paths.partial,
            summary.coverage.lines_covered,
            summary.coverage.lines,
        ),
        Some(world) => format!(
            "{complete}: {} worlds of {} states ({}), {findings} findings, {} packets, {ran}",
            world.worlds, world.states_total, world.mapping, world.packets,
        ),
    }
}

/// What the comparison of two builds comes to.
fn comparison_text(against: &Comparison) -> String {
    match (against.equivalent, against.pairs_different) {
        (true, _) => "equivalent: the builds do the same on all inputs".to_owned(),
        (false, 0) => {
            "no difference of the builds was found, but not all inputs were explored".to_owned()
        }
        (false, pairs) => format!(
            "{} differences of the builds, on {pairs} pairs of paths",
            against.differences.len()
        ),
    }
}

/// Worlds at whose end hosts wait for ever that end in others, or all hosts do. A server that only waits is none.
fn stalled_text(world: &WorldFigures) -> Option<String> {
    let WorldFigures {
        worlds,
        worlds_stalled,
        worlds_deadlocked,
        hosts_stalled,
        ..
    } = world;
    if hosts_stalled.is_empty() && *worlds_deadlocked == 0 {
        return None;
    }
    let hosts = match hosts_stalled.join(", ") {
        hosts if hosts.is_empty() => String::new(),
        hosts => format!("; hosts that end in other worlds: {hosts}"),
    };
    Some(format!(
        "stalled: a host waits for ever in {worlds_stalled} of {worlds} worlds, all hosts in {worlds_deadlocked}{hosts} \
         (--check-deadlocks makes that a finding)"
    ))
}

fn followed(path: &Path, ending: &Ending) {
    let path = path.display();
    match ending {
        Ending::Path { expected, seen } => {
            print(&format!("{path}: expected {expected:?}, seen {seen:?}"));
        }
        Ending::Finding { expected, seen } => {
            print(&format!("{path}: it ends differently"));
            print(&format!("    expected {expected:?}, seen {seen:?}"));
        }
        Ending::World {
            expected,
            seen,
            wrong,
        } => {
            print(&format!("{path}: it ends differently"));
            print(&format!(
                "    expected {expected:?}, seen {seen:?} {wrong:?}"
            ));
        }
        _ => {}
    }
}

fn repeated(path: &Path, times: NonZeroU32, repeats: &Repeats) {
    let path = path.display();
    print(&format!(
        "{path}: {times} runs, {} with another log than the first, which has {} events",
        repeats.others, repeats.events
    ));
    if let Some(difference) = &repeats.difference {
        print(&format!("{path}: {difference}"));
    }
}

fn replayed(path: &Path, verdict: &Verdict) {
    let (path, name) = (path.display(), verdict.name());
    match verdict.reason() {
        None => print(&format!("{path}: {name}")),
        Some(why) => print(&format!("{path}: {name}: {why}")),
    }
}

fn tested(path: &Path, outcome: &Outcome) {
    let path = path.display();
    print(&match outcome {
        Outcome::Passed => format!("ok        {path}"),
        Outcome::Failed(why) => format!("FAILED    {path}: {why}"),
        Outcome::Error(why) => format!("DIVERGED  {path}: {why}"),
        Outcome::Skipped(why) => format!("skipped   {path}: {why}"),
    });
}

/// Passes on the output of a native program; prefixes each line with the host's name if there are several hosts.
pub fn show_output(host: Option<&str>, [stdout, stderr]: &[Vec<u8>; 2]) {
    let named = |bytes: &Vec<u8>| match host {
        None => bytes.clone(),
        Some(host) => prefixed(host, bytes),
    };
    let _ = std::io::stdout().write_all(&named(stdout));
    let _ = std::io::stderr().write_all(&named(stderr));
}

fn prefixed(name: &str, output: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for line in output.split_inclusive(|byte| *byte == b'\n') {
        text.extend_from_slice(format!("{name}: ").as_bytes());
        text.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            text.push(b'\n');
        }
    }
    text
}

/// The line of an event with its number.
pub fn numbered(number: usize, line: &str) -> String {
    format!("{number:>6} {line}")
}

/// Prints a line to standard output. Ignores errors: the reader may be gone, but the run and its files still matter.
pub fn print(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn print_json(event: &serde_json::Value) {
    print(&event.to_string());
}

/// A number with a unit.
fn short(number: f64) -> String {
    match number {
        n if n >= 1e9 => format!("{:.1} G", n / 1e9),
        n if n >= 1e6 => format!("{:.1} M", n / 1e6),
        n if n >= 1e3 => format!("{:.1} k", n / 1e3),
        n => format!("{n:.0}"),
    }
}
