//! Measures `everett` on the programs under `benches/programs` and
//! prints the figures beside KLEE's.
//!
//! KLEE's figures (3.3-pre, STP, the fastest settings found: solver in process, depth first) come
//! from a machine on which `benches/calibrate.c` takes 0.30 s; they are scaled by its time on this
//! machine. Ours are the best of three runs, depth first, once with a test for every path and once
//! without tests. Worlds (`worlds`) are the scenarios under `examples/`.

#![allow(clippy::print_stderr, clippy::print_stdout)]
#![forbid(unsafe_code)]

mod calls;
mod cluster;
mod coreutils;
mod coverage;
mod explorer;
mod fault_rates;
mod fault_servers;
mod faults;
mod harden;
mod native;
mod parallel;
mod peers;
mod servers;
mod solver;
mod trojans;
mod worlds;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::cell::Cell;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Seconds that `calibrate.c` took on the machine where KLEE was measured.
const KLEE_CALIBRATION: f64 = 0.30;
const RUNS: usize = 3;

/// A program and KLEE's figures for it.
struct Row {
    program: &'static str,
    paths: u64,
    klee_seconds: f64,
    klee_without_tests: Option<f64>,
    /// The target speed-up over KLEE.
    target: f64,
}

const ROWS: &[Row] = &[
    Row {
        program: "01_concrete_loop",
        paths: 2,
        klee_seconds: 19.2,
        klee_without_tests: None,
        target: 20.0,
    },
    Row {
        program: "02_branch_tree",
        paths: 65_536,
        klee_seconds: 11.4,
        klee_without_tests: Some(2.2),
        target: 5.0,
    },
    Row {
        program: "03_branch_tree_dep",
        paths: 4_096,
        klee_seconds: 7.0,
        klee_without_tests: None,
        target: 5.0,
    },
    Row {
        program: "05_bubble_sort",
        paths: 720,
        klee_seconds: 13.9,
        klee_without_tests: None,
        target: 2.0,
    },
    Row {
        program: "07_expr_parser",
        paths: 3_046,
        klee_seconds: 5.1,
        klee_without_tests: None,
        target: 2.0,
    },
    Row {
        program: "08_strings",
        paths: 211,
        klee_seconds: 1.0,
        klee_without_tests: None,
        target: 1.0,
    },
    Row {
        program: "10_linked_list",
        paths: 720,
        klee_seconds: 4.0,
        klee_without_tests: None,
        target: 2.0,
    },
];

struct Measured {
    seconds: f64,
    /// CPU time in seconds. Unlike time, it hardly depends on what else the machine does.
    processor: f64,
    summary: Value,
    peak_kib: u64,
    /// The folder that the run wrote.
    out: PathBuf,
}

struct Bench {
    everett: PathBuf,
    root: PathBuf,
    work: PathBuf,
    /// Number of runs so far.
    runs: Cell<u32>,
}

/// A function that measures and writes a table.
type Measure = fn(&Bench, &mut String) -> Result<()>;

/// Parts of the benchmark with a file of their own.
const PARTS: &[(&str, Measure)] = &[
    ("solver", Bench::solver),
    ("coreutils", Bench::coreutils),
    ("worlds", Bench::worlds),
    ("peers", Bench::peers),
    ("harden", Bench::harden),
    ("trojans", Bench::trojans),
    ("faults", Bench::faults),
    ("parallel", Bench::parallel),
    ("cluster", Bench::cluster),
    ("kills", Bench::kills),
    ("simulation", Bench::simulation),
    ("coverage", Bench::coverage),
];

/// Clock ticks of the kernel in a second.
const TICKS: f64 = 100.0;

/// Returns the sum of two fields of `/proc/PROCESS/stat`, times in ticks, in seconds. The first
/// field after the name is 0.
fn times(process: &str, fields: [usize; 2]) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let all = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let all: Vec<&str> = all.split_whitespace().collect();
    let ticks = |at: usize| all.get(at).and_then(|it| it.parse::<f64>().ok());
    let ticks = fields.map(|at| ticks(at).unwrap_or(0.0));
    ticks.into_iter().sum::<f64>() / TICKS
}

/// Returns the CPU time of all processes that were started and have ended, in seconds.
fn children_time() -> f64 {
    times("self", [13, 14])
}

fn main() -> Result<()> {
    let everett = std::env::args_os().nth(1).map(PathBuf::from).context(
        "usage: everett-bench EVERETT [engine] [calls] [native] [servers] [solver] [coreutils] [worlds] [peers] [harden] \
         [trojans] [faults] [parallel] [cluster] [kills] [simulation] [coverage]",
    )?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let work = std::env::temp_dir().join(format!("everett-bench-{}", std::process::id()));
    std::fs::create_dir_all(&work)?;
    let bench = Bench {
        everett: everett.canonicalize()?,
        root,
        work,
        runs: Cell::new(0),
    };
    let parts: Vec<String> = std::env::args().skip(2).collect();
    let is_wanted = |part: &str| parts.is_empty() || parts.iter().any(|it| it == part);
    let table = bench.table(is_wanted)?;
    if !table.is_empty() {
        println!("{table}");
        std::fs::write(bench.root.join("benches/results.md"), &table)?;
    }
    for (part, measure) in PARTS {
        if is_wanted(part) {
            let mut table = String::new();
            measure(&bench, &mut table)?;
            println!("{table}");
            std::fs::write(bench.root.join(format!("benches/{part}.md")), &table)?;
        }
    }
    std::fs::remove_dir_all(&bench.work)?;
    Ok(())
}

impl Bench {
    fn table(&self, is_wanted: impl Fn(&str) -> bool) -> Result<String> {
        let mut text = String::new();
        if is_wanted("engine") {
            self.engine(&mut text)?;
        }
        if is_wanted("calls") {
            self.calls(&mut text)?;
        }
        if is_wanted("native") {
            self.native(&mut text)?;
        }
        if is_wanted("servers") {
            self.servers(&mut text)?;
        }
        Ok(text)
    }

    /// Compares the engine with KLEE.
    fn engine(&self, text: &mut String) -> Result<()> {
        let calibration = self.calibrate()?;
        let scale = calibration / KLEE_CALIBRATION;
        writeln!(
            text,
            "calibrate.c: {calibration:.2} s; KLEE's times are multiplied by {scale:.2}\n\n\
             | program | paths | instructions | KLEE s | everett s | times faster | without tests | wanted | instructions/s | KiB a state |\n\
             |---|---|---|---|---|---|---|---|---|---|"
        )?;
        for row in ROWS {
            self.build(row.program, "-O0")?;
            let with_tests = self.best(row, &["--search", "dfs", "--all-tests"])?;
            let without = self.best(row, &["--search", "dfs", "--no-tests"])?;
            let klee = row.klee_seconds * scale;
            let klee_without = row.klee_without_tests.unwrap_or(row.klee_seconds) * scale;
            let instructions = without.summary["instructions"].as_u64().unwrap_or(0);
            // Depth first keeps few states, the default searchers keep many: the difference is the
            // memory of the states.
            let wide = self.explore(row.program, &["--no-tests"])?;
            let states = wide.summary["states_peak"].as_u64().unwrap_or(1).max(1);
            let few = without.summary["states_peak"].as_u64().unwrap_or(1);
            let more = states.saturating_sub(few);
            let per_state =
                wide.peak_kib.saturating_sub(without.peak_kib) as f64 / more.max(1) as f64;
            writeln!(
                text,
                "| {} | {} | {instructions} | {klee:.2} | {:.3} | {:.1} | {:.3} s, {:.1} times | {} | {:.1} M | {} |",
                row.program,
                row.paths,
                with_tests.seconds,
                klee / with_tests.seconds,
                without.seconds,
                klee_without / without.seconds,
                row.target,
                instructions as f64 / without.seconds / 1e6,
                if more >= 1000 {
                    format!("{per_state:.1}")
                } else {
                    "–".to_owned()
                },
            )?;
        }
        let hello = self.hello()?;
        writeln!(
            text,
            "\n`everett run` of hello world from a warm cache: {hello:.3} s (wanted: under 0.15)"
        )?;
        let (megabytes, seconds) = self.large()?;
        writeln!(
            text,
            "reading, lowering and starting a program of {megabytes:.1} MB of bitcode: {seconds:.2} s (wanted: under 2 for 10 MB)"
        )?;
        Ok(())
    }

    /// Returns the size of the bitcode of a large generated program, and the time from start to end
    /// of `everett exec` on it.
    fn large(&self) -> Result<(f64, f64)> {
        let mut source = String::from("#include <stdio.h>\nint table[64];\n");
        for number in 0..9000 {
            writeln!(
                source,
                "int f{number}(int a, int b) {{ int s = a; for (int i = 0; i < b; i++) {{ \
                 if ((s ^ i) & {mask}) s += table[(s + i) & 63] * {number}; \
                 else s = s / (i + 1) - {number}; table[i & 63] ^= s; }} return s; }}",
                mask = number % 31 + 1
            )?;
        }
        source.push_str("int (*all[])(int, int) = {");
        for number in 0..9000 {
            write!(source, "f{number},")?;
        }
        source.push_str(
            "};\nint main(int c, char **v) { printf(\"%d\\n\", all[c](c, 9)); return 0; }\n",
        );
        let path = self.work.join("large.c");
        std::fs::write(&path, source)?;
        let program = self.work.join("large");
        succeed(
            Command::new(&self.everett)
                .arg("cc")
                .arg("-o")
                .arg(&program)
                .arg(&path),
        )?;
        let size = std::fs::metadata(self.work.join("large.bc"))?.len();
        let mut best = f64::MAX;
        for _ in 0..RUNS {
            let start = Instant::now();
            succeed(Command::new(&self.everett).arg("exec").arg(&program))?;
            best = best.min(start.elapsed().as_secs_f64());
        }
        Ok((size as f64 / 1e6, best))
    }

    fn calibrate(&self) -> Result<f64> {
        let program = self.work.join("calibrate");
        let source = self.root.join("benches/calibrate.c");
        succeed(
            Command::new("gcc")
                .arg("-O1")
                .arg(source)
                .arg("-o")
                .arg(&program),
        )?;
        let mut best = f64::MAX;
        for _ in 0..RUNS {
            let start = Instant::now();
            succeed(&mut Command::new(&program))?;
            best = best.min(start.elapsed().as_secs_f64());
        }
        Ok(best)
    }

    fn build(&self, name: &str, level: &str) -> Result<()> {
        let source = self.root.join("benches/programs").join(format!("{name}.c"));
        let mut build = Command::new(&self.everett);
        succeed(
            build
                .arg("cc")
                .arg(level)
                .arg("-o")
                .arg(self.work.join(name))
                .arg(source),
        )
    }

    fn best(&self, row: &Row, options: &[&str]) -> Result<Measured> {
        let mut best: Option<Measured> = None;
        for _ in 0..RUNS {
            let run = self.explore(row.program, options)?;
            let paths = run.summary["paths"]["completed"].as_u64();
            if paths != Some(row.paths) || run.summary["complete"] != true {
                bail!("{}: {paths:?} paths instead of {}", row.program, row.paths);
            }
            if best.as_ref().is_none_or(|best| run.seconds < best.seconds) {
                best = Some(run);
            }
        }
        best.context("no run")
    }

    fn explore(&self, name: &str, options: &[&str]) -> Result<Measured> {
        // Nothing is removed before the end: after many deletions, ext4 searches long for free
        // inodes.
        let out = self.work.join(format!("out-{}", self.number()));
        let mut run = Command::new(&self.everett);
        run.args(["run", "--quiet", "--out"]).arg(&out);
        run.args(options).arg(self.work.join(name));
        self.measure(&mut run, &out)
    }

    /// Returns the next unused folder number.
    fn number(&self) -> u32 {
        self.runs.replace(self.runs.get() + 1)
    }

    fn measure(&self, run: &mut Command, out: &Path) -> Result<Measured> {
        let (start, before) = (Instant::now(), children_time());
        let output = run.output()?;
        let (seconds, processor) = (start.elapsed().as_secs_f64(), children_time() - before);
        if output.status.code() == Some(2) {
            bail!("{run:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        let summary: Value = serde_json::from_slice(&std::fs::read(out.join("summary.json"))?)?;
        let peak_kib = summary["memory_peak_bytes"].as_u64().unwrap_or(0) / 1024;
        Ok(Measured {
            seconds,
            processor,
            summary,
            peak_kib,
            out: out.to_owned(),
        })
    }

    fn hello(&self) -> Result<f64> {
        let source = self.work.join("hello.c");
        std::fs::write(
            &source,
            "#include <stdio.h>\nint main(void) { printf(\"hello, %d\\n\", 42); return 0; }\n",
        )?;
        let mut build = Command::new(&self.everett);
        succeed(
            build
                .arg("cc")
                .arg("-o")
                .arg(self.work.join("hello"))
                .arg(&source),
        )?;
        let mut best = f64::MAX;
        for _ in 0..RUNS {
            best = best.min(self.explore("hello", &[])?.seconds);
        }
        Ok(best)
    }
}

/// Returns the time that a command takes, in seconds; the command must succeed.
fn seconds_of(command: &mut Command) -> Result<f64> {
    let start = Instant::now();
    succeed(command)?;
    Ok(start.elapsed().as_secs_f64())
}

fn succeed(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!(
            "{command:?} failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}
