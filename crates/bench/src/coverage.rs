//! Line coverage and useful work in the same time with one and with two workers, as in Figures 8 to
//! 11 of Cloud9.

use anyhow::Result;
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;

use crate::{Bench, Measured};

/// The utilities of coreutils, with their symbolic inputs.
const UTILITIES: [(&str, &str); 20] = [
    ("base64", "--sym-args 0 2 4 --sym-stdin 8"),
    ("basename", "--sym-args 0 3 4"),
    ("cat", "--sym-args 0 2 4 --sym-stdin 8"),
    ("cksum", "--sym-args 0 2 4 --sym-stdin 8"),
    ("comm", "--sym-args 0 3 4 --sym-stdin 8"),
    ("cut", "--sym-args 0 3 4 --sym-stdin 8"),
    ("expr", "--sym-args 0 3 4"),
    ("factor", "--sym-args 0 2 4"),
    ("fold", "--sym-args 0 2 4 --sym-stdin 8"),
    ("head", "--sym-args 0 2 4 --sym-stdin 8"),
    ("join", "--sym-args 0 3 4 --sym-stdin 8"),
    ("ls", "--sym-args 0 2 4"),
    ("nl", "--sym-args 0 2 4 --sym-stdin 8"),
    ("od", "--sym-args 0 3 4 --sym-stdin 8"),
    ("paste", "--sym-args 0 2 4 --sym-stdin 8"),
    ("seq", "--sym-args 0 3 4"),
    ("sort", "--sym-args 0 2 4 --sym-stdin 8"),
    ("tail", "--sym-args 0 2 4 --sym-stdin 8"),
    ("tr", "--sym-args 0 2 4 --sym-stdin 8"),
    ("wc", "--sym-args 0 2 4 --sym-stdin 8"),
];
/// Time of each exploration of a utility, in seconds.
const SECONDS: u32 = 10;

/// Programs of which useful work over time is measured: a target, its script if it has one, and the
/// words of the command.
const WORKING: [(&str, Option<&str>, &str); 3] = [
    (
        "memcached",
        Some("memcached-two.script"),
        "--program ./memcached ./driver memcached-two.script",
    ),
    ("coreutils", None, "printf --sym-arg 8 --sym-arg 8"),
    (
        "coreutils",
        None,
        "test --sym-arg 4 --sym-arg 4 --sym-arg 4",
    ),
];
/// The times after which it is measured, in seconds: each in a run of its own.
const TIMES: [u32; 3] = [5, 10, 20];

impl Bench {
    pub fn coverage(&self, text: &mut String) -> Result<()> {
        let load = std::fs::read_to_string("/proc/loadavg")?;
        let load = load.split(' ').next().unwrap_or_default();
        writeln!(
            text,
            "Load of the machine at the beginning: {load}. Where others use it, two workers have less than two\n\
             processors, so each row has the processor time, too.\n\n\
             ## Line coverage of coreutils in the same time (Cloud9, Figure 11)\n\n\
             {SECONDS} s each, default searchers, no tests written. Columns: lines of the program; covered with one and\n\
             with two workers, and how many more as a part of the program; ended paths; useful (not replayed)\n\
             instructions in millions; processor seconds.\n\n\
             | program | lines | covered | more | paths | instructions | processor |\n|---|---|---|---|---|---|---|"
        )?;
        let work = self.prepare("coreutils", None)?;
        let (mut more, mut useful) = (0.0, 1.0);
        for (program, inputs) in UTILITIES {
            let words = format!("{program} {inputs}");
            let runs = [1, 2].map(|workers| self.for_seconds(&work, &words, workers, SECONDS));
            let [one, two] = runs;
            let pair = Pair(one?, two?);
            let lines = pair.0.summary["coverage"]["lines"].as_f64().unwrap_or(1.0);
            let covered = pair.of("/coverage/lines_covered");
            let gained = 100.0 * (covered[1] - covered[0]) / lines;
            more += gained / UTILITIES.len() as f64;
            let row = format!(
                "| {program} | {lines} | {}, {} | {gained:.1} % | {} | {} | {:.1}, {:.1} |",
                covered[0],
                covered[1],
                pair.told("/paths/completed", 1.0),
                pair.told("/instructions", 1e6),
                pair.0.processor,
                pair.1.processor,
            );
            let instructions = pair.of("/instructions");
            useful *=
                (instructions[1] / instructions[0].max(1.0)).powf(1.0 / UTILITIES.len() as f64);
            eprintln!("{row}");
            writeln!(text, "{row}")?;
        }
        writeln!(
            text,
            "\nIn the mean, two workers cover {more:.1} % more of a program, and execute {useful:.2} times the\n\
             instructions (geometric mean)."
        )?;
        self.useful_work(text)
    }

    /// Measures useful work and coverage after several times.
    fn useful_work(&self, text: &mut String) -> Result<()> {
        text.push_str(
            "\n## Useful work over time (Cloud9, Figures 8 to 10)\n\n\
             Each row is a run of its own with one and one with two workers: useful instructions in millions, and\n\
             those of two workers as a multiple; the same for each processor second; covered lines.\n\n\
             | program | s | instructions | times | a processor second | times | covered |\n\
             |---|---|---|---|---|---|---|\n",
        );
        for (target, script, words) in WORKING {
            let work = self.prepare(target, script)?;
            for seconds in TIMES {
                let runs = [1, 2].map(|workers| self.for_seconds(&work, words, workers, seconds));
                let [one, two] = runs;
                let pair = Pair(one?, two?);
                let done = pair.of("/instructions");
                let processor = [pair.0.processor, pair.1.processor];
                let rate = [0, 1].map(|at| done[at] / processor[at].max(0.01));
                let row = format!(
                    "| {words} | {seconds} | {} | {:.2} | {:.1}, {:.1} | {:.2} | {} |",
                    pair.told("/instructions", 1e6),
                    done[1] / done[0].max(1.0),
                    rate[0] / 1e6,
                    rate[1] / 1e6,
                    rate[1] / rate[0],
                    pair.told("/coverage/lines_covered", 1.0),
                );
                eprintln!("{row}");
                writeln!(text, "{row}")?;
            }
        }
        Ok(())
    }

    /// Explores a program of a target for a time, with a number of workers.
    fn for_seconds(
        &self,
        work: &Path,
        words: &str,
        workers: u32,
        seconds: u32,
    ) -> Result<Measured> {
        let (workers, time) = (workers.to_string(), format!("{seconds}s"));
        let mut all = vec!["--max-time", &time, "--workers", &workers];
        all.extend(["--no-tests", "--no-confirm"]);
        all.extend(words.split(' '));
        self.explore_in(work, &all)
    }
}

/// The same exploration with one and with two workers.
struct Pair(Measured, Measured);

impl Pair {
    /// Returns a number of both summaries.
    fn of(&self, pointer: &str) -> [f64; 2] {
        let number = |run: &Measured| run.summary.pointer(pointer).and_then(Value::as_f64);
        [&self.0, &self.1].map(|run| number(run).unwrap_or(0.0))
    }

    /// Returns a number of both summaries as text, in a unit.
    fn told(&self, pointer: &str, unit: f64) -> String {
        let [one, two] = self.of(pointer);
        match unit > 1.0 {
            true => format!("{:.1}, {:.1}", one / unit, two / unit),
            false => format!("{one:.0}, {two:.0}"),
        }
    }
}
