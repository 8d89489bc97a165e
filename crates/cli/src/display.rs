//! Shows the library's events to the user.

use everett::counted;
use everett::{
    DifferenceEntry, Ending, Event, Finding, Observer, Outcome, Repeats, Summary, Verdict,
    comparison_text, json_line, progress_text, summary_text,
};
use std::io::{IsTerminal, Write};
use std::num::NonZeroU32;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::flags::with_flags;
use crate::session::notice;

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
    /// The start of the replay, if virtual time is to pass in real time.
    pub since: Option<Instant>,
}

/// An observer that writes events to the terminal.
pub struct Display {
    mode: Mode,
    line_shown: bool,
    live: bool,
    steps: Steps,
}

const INTERVAL: Duration = Duration::from_millis(200);

impl Display {
    /// Creates a display with this output mode.
    pub fn new(mode: Mode) -> Display {
        let live = mode == Mode::Text && std::io::stderr().is_terminal();
        Display {
            mode,
            line_shown: false,
            live,
            steps: Steps::default(),
        }
    }

    /// Creates a display for native replays.
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

    /// Shows a line that the next one overwrites.
    fn show_line(&mut self, text: &str) {
        eprint!("\r\x1b[K{text}");
        let _ = std::io::stderr().flush();
        self.line_shown = true;
    }

    fn finding(&mut self, finding: &Finding, number: u64) {
        self.clear_line();
        // Messages of all other kinds can quote the program, and must stay unchanged.
        let message = match finding.kind.name() == everett::BugKind::Unsupported.name() {
            true => with_flags(&finding.message),
            false => finding.message.clone(),
        };
        print(&format!("{}: {message}", finding.kind.name()));
        let place = everett::principal(&finding.stack);
        // If all hosts are off, there is no place.
        let place = place.map_or(String::new(), |place| {
            let (function, file, line) = (&place.function, &place.file, place.line);
            format!("in {function} at {file}:{line}    ")
        });
        print(&format!("    {place}findings/{number:04}"));
    }

    fn difference(&mut self, entry: &DifferenceEntry) {
        self.clear_line();
        print(&format!("difference: {}\n    {}", entry.text(), entry.dir));
    }

    pub fn say(&mut self, text: &str) {
        self.clear_line();
        if self.mode == Mode::Text {
            print(&with_flags(text));
        }
    }

    fn warn(&mut self, text: &str) {
        self.clear_line();
        notice(text);
    }

    fn finished(&mut self, summary: &Summary, folder: &Path) {
        self.say(&summary_text(summary, folder));
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
        if self.mode == Mode::Json
            && let Some(line) = json_line(event)
        {
            return print(&line);
        }
        match event {
            Event::Progress(progress) => self.show_line(&progress_text(progress)),
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
            } => print(&format!(
                "{} in {}",
                counted(packets, "packet"),
                file.display()
            )),
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
        "{path}: {}, {} with another log than the first, which has {}",
        counted(times, "run"),
        repeats.others,
        counted(repeats.events, "event")
    ));
    if let Some(difference) = &repeats.difference {
        print(&format!("{path}: {difference}"));
    }
}

fn replayed(path: &Path, verdict: &Verdict) {
    let (path, name) = (path.display(), verdict.name());
    match verdict.reason() {
        None => print(&format!("{path}: {name}")),
        Some(why) => print(&format!("{path}: {name}: {}", with_flags(why))),
    }
}

fn tested(path: &Path, outcome: &Outcome) {
    let path = path.display();
    print(&with_flags(&match outcome {
        Outcome::Passed => format!("ok        {path}"),
        Outcome::Failed(why) => format!("FAILED    {path}: {why}"),
        Outcome::Error(why) => format!("DIVERGED  {path}: {why}"),
        Outcome::Skipped(why) => format!("skipped   {path}: {why}"),
    }));
}

/// Forwards the output of a native program; prefixes each line with the host's name if there are
/// several hosts.
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

/// Formats an event with its number.
pub fn numbered(number: usize, line: &str) -> String {
    format!("{number:>6} {line}")
}

/// Prints a line to standard output. Ignores errors: the reader may be gone, but the run and its
/// files still matter.
pub fn print(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
