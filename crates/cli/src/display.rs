//! Shows the library's events to the user.

use everett::{Event, Observer, Summary, event_text, json_line, progress_text, summary_text};
use std::io::{IsTerminal, Write};
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

    /// Shows the text of an event, if it has one.
    fn text(&mut self, event: &Event<'_>) {
        let Some(text) = event_text(event, with_flags) else {
            return;
        };
        self.clear_line();
        match event {
            Event::Confirming { .. } => self.show_line(&text),
            // Remarks about findings and differences that were shown.
            Event::Compared { .. }
            | Event::DifferenceReplayed { .. }
            | Event::FindingReplayed { .. }
            | Event::FindingsReplayed { .. }
                if self.mode != Mode::Text => {}
            _ => print(&text),
        }
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

    /// Shows an event of a native replay when it is due.
    fn step(&self, event: &Event<'_>, clock_ns: u64) {
        if let Some(since) = self.steps.since {
            let due = Duration::from_nanos(clock_ns);
            std::thread::sleep(due.saturating_sub(since.elapsed()));
        }
        if self.steps.are_printed
            && let Some(text) = event_text(event, with_flags)
        {
            eprintln!("{text}");
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
            Event::Warning(text) => self.warn(text),
            Event::Finished { summary, folder } => self.finished(summary, folder),
            Event::Step { clock_ns, .. } => self.step(event, *clock_ns),
            Event::Output { host, streams } => show_output(*host, streams),
            Event::Confirming { .. } if !self.live => {}
            _ => self.text(event),
        }
    }

    fn progress_interval(&self) -> Option<Duration> {
        (self.live || self.mode == Mode::Json).then_some(INTERVAL)
    }
}

/// Forwards the output of a native program; prefixes each line with the host's name if there are
/// several hosts.
pub fn show_output(host: Option<&str>, [stdout, stderr]: &[Vec<u8>; 2]) {
    let named = |bytes: &Vec<u8>| match host {
        None => bytes.clone(),
        Some(host) => everett::prefixed(host, bytes),
    };
    let _ = std::io::stdout().write_all(&named(stdout));
    let _ = std::io::stderr().write_all(&named(stderr));
}

/// Prints a line to standard output. Ignores errors: the reader may be gone, but the run and its
/// files still matter.
pub fn print(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
