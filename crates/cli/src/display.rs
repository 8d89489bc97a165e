//! What the user sees while a run goes on.

use everett_engine::{Explorer, Finding, Worlds, principal};
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// How to talk.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Mode {
    /// For people.
    Text,
    /// Findings only.
    Quiet,
    /// A line of JSON for each event.
    Json,
}

/// The terminal.
pub struct Display {
    mode: Mode,
    clock: fn() -> Duration,
    next_update: Duration,
    last: (Duration, u64),
    line_shown: bool,
    live: bool,
}

const INTERVAL: Duration = Duration::from_millis(200);

impl Display {
    /// A display that shows time by this clock.
    pub fn new(mode: Mode, clock: fn() -> Duration) -> Display {
        let live = mode == Mode::Text && std::io::stderr().is_terminal();
        Display {
            mode,
            clock,
            next_update: INTERVAL,
            last: (Duration::ZERO, 0),
            line_shown: false,
            live,
        }
    }

    /// How it talks.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    fn clear_line(&mut self) {
        if self.line_shown {
            eprint!("\r\x1b[K");
            self.line_shown = false;
        }
    }

    /// Shows progress, now and then.
    pub fn tick(&mut self, explorer: &Explorer<'_>) {
        if !self.live && self.mode != Mode::Json {
            return;
        }
        let now = (self.clock)();
        if now < self.next_update {
            return;
        }
        self.next_update = now + INTERVAL;
        let statistics = explorer.statistics();
        let instructions = statistics.instructions + statistics.replayed;
        let seconds = (now - self.last.0).as_secs_f64().max(1e-9);
        let rate = (instructions - self.last.1) as f64 / seconds;
        self.last = (now, instructions);
        let solver = explorer.solver_statistics();
        let solver_time = (solver.sat_time + solver.smt_time).as_secs_f64();
        let share = 100.0 * solver_time / now.as_secs_f64().max(1e-9);
        let covered = explorer
            .coverage()
            .segments
            .iter()
            .filter(|mark| **mark != 0)
            .count();
        let segments = explorer.coverage().segments.len().max(1);
        let paths = statistics.paths_completed + statistics.paths_partial;
        if self.mode == Mode::Json {
            self.event(&serde_json::json!({
                "event": "progress", "seconds": now.as_secs_f64(), "paths": paths,
                "states": explorer.states(), "findings": explorer.findings().len(),
                "instructions": instructions,
            }));
            return;
        }
        eprint!(
            "\r\x1b[K{:>6.1} s  {} paths  {} states  {:.1} % covered  {} findings  {}/s  solver {:.0} %",
            now.as_secs_f64(),
            paths,
            explorer.states(),
            100.0 * covered as f64 / segments as f64,
            explorer.findings().len(),
            short(rate),
            share,
        );
        let _ = std::io::stderr().flush();
        self.line_shown = true;
    }

    /// The same for worlds of several hosts.
    pub fn tick_worlds(&mut self, worlds: &Worlds<'_>) {
        let now = (self.clock)();
        if !self.live && self.mode != Mode::Json || now < self.next_update {
            return;
        }
        self.next_update = now + INTERVAL;
        let instructions = worlds.statistics().instructions;
        let seconds = (now - self.last.0).as_secs_f64().max(1e-9);
        let rate = (instructions - self.last.1) as f64 / seconds;
        self.last = (now, instructions);
        let virtual_s = worlds.virtual_ns().unwrap_or(0) as f64 / 1e9;
        let (states, dstates) = (worlds.states(), worlds.table().len());
        let findings = worlds.findings().len();
        if self.mode == Mode::Json {
            return self.event(&serde_json::json!({
                "event": "progress", "seconds": now.as_secs_f64(), "virtual_seconds": virtual_s,
                "states": states, "dstates": dstates, "findings": findings,
                "instructions": instructions,
            }));
        }
        eprint!(
            "\r\x1b[K{:>6.1} s  {virtual_s:.3} s of the worlds  {states} states  {dstates} dstates  \
             {findings} findings  {}/s",
            now.as_secs_f64(),
            short(rate),
        );
        let _ = std::io::stderr().flush();
        self.line_shown = true;
    }

    /// Shows a finding as it comes.
    pub fn finding(&mut self, finding: &Finding, number: u64) {
        self.clear_line();
        let place = principal(&finding.stack);
        let (file, line) = place.map_or(("?", 0), |place| (place.file.as_str(), place.line));
        match self.mode {
            Mode::Json => self.event(&serde_json::json!({
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

    /// Says something.
    pub fn say(&mut self, text: &str) {
        self.clear_line();
        if self.mode == Mode::Text {
            print(text);
        }
    }

    /// Prints an event as a line of JSON.
    pub fn event(&self, event: &serde_json::Value) {
        print(&event.to_string());
    }

    /// Says a warning.
    pub fn warn(&mut self, text: &str) {
        self.clear_line();
        match self.mode {
            Mode::Json => self.event(&serde_json::json!({ "event": "warning", "message": text })),
            _ => eprintln!("everett: {text}"),
        }
    }
}

/// A line on standard output. Nobody may be listening any more; the run and its files matter all the same.
fn print(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// A number with a unit.
pub fn short(number: f64) -> String {
    match number {
        n if n >= 1e9 => format!("{:.1} G", n / 1e9),
        n if n >= 1e6 => format!("{:.1} M", n / 1e6),
        n if n >= 1e3 => format!("{:.1} k", n / 1e3),
        n => format!("{n:.0}"),
    }
}
