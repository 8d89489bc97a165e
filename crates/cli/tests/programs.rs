//! Runs every program under `tests/programs/` natively and symbolically; each build of each program
//! is a test.
//!
//! A program declares its expectations in comments at its head:
//!
//! ```text
//! // build: -O2                    more flags for the compiler; one line for each build
//! // exec: ARGS                    run natively, with `everett exec` and with `everett native`: same output, same exit code
//! // options: OPTIONS              options of `everett exec`, before the program
//! // stdin: TEXT                   standard input of the `exec` runs (escapes \n \t \\ \0)
//! // run: OPTIONS                  options of `everett run`, before the program
//! // args: WORDS                   the program's arguments for `everett run` (--sym-arg 3 …)
//! // paths: 12                     completed paths; if they differ, one number for each build
//! // complete: yes|no              whether the exploration is complete (default: yes)
//! // finding: KIND LINE            a finding; without such lines, none are expected
//! // survives: KIND REASON          native programs do not end in findings of this kind, and why
//! // not-replayable: REASON         finished paths cannot be tried natively; the replay says these words
//! // not on -O3: KIND REASON        findings of this kind do not happen on another build (-O0, -O3, checked), and why
//! // alone: REASON                 a Rust program that cannot share its build with others, and why
//! ```
//!
//! Every test that a run writes is followed and must end as recorded. It is also replayed on the
//! native program (for memory errors that native code survives, on its checked build), which must
//! end the same way. A line that excuses a program from this fails the test if it is no longer
//! needed. Findings of the first build are also confirmed on other builds of the same source:
//! without optimisation, with full optimisation, and the checked one (for C and C++, a sixth of the
//! programs; `./test --targets all` takes all). Rust programs, whose edition is 2024, share their
//! builds.

#[path = "common/bundle.rs"]
mod bundle;
#[path = "common/threads.rs"]
mod threads;

use bundle::Bundle;
use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The number of native runs that must differ from the model before a difference counts.
const NATIVE_RUNS: usize = 3;
/// The time after which a program counts as endless.
const RUNS_AT_MOST: Duration = Duration::from_secs(300);
/// The same for Everett, which may have many paths to follow.
const EVERETT_RUNS_AT_MOST: Duration = Duration::from_secs(1200);
/// A path without a finding, among the kinds of findings.
const FINISHED_PATH: &str = "path";

/// If this variable is set, other builds of all programs are tested.
const ALL: &str = "EVERETT_TEST_ALL_TARGETS";
/// If this variable is set (`./test fast`), one in so many programs is tested.
const FAST: &str = "EVERETT_TEST_FAST";
const FAST_PART: usize = 10;
/// Builds that must also have the findings of the first one.
const OTHER_BUILDS: [&str; 3] = ["-O0", "-O3", CHECKED];
const CHECKED: &str = "checked";

fn main() {
    let arguments = threads::arguments();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs");
    let mut programs = Vec::new();
    collect(&root, &mut programs);
    programs.sort();
    if std::env::var_os(FAST).is_some() {
        programs = programs.into_iter().step_by(FAST_PART).collect();
    }
    let bundle = Arc::new(bundled(&programs));
    let trials = programs
        .iter()
        .flat_map(|path| trials(&root, path, &bundle));
    libtest_mimic::run(&arguments, trials.collect()).exit();
}

/// Returns all Rust programs that can share their builds.
fn bundled(programs: &[PathBuf]) -> Bundle {
    let is_bundled = |path: &&PathBuf| {
        is_rust(path)
            && fs::read_to_string(path)
                .is_ok_and(|source| Header::parse(&source).is_ok_and(|header| !header.alone))
    };
    let sources = programs.iter().filter(is_bundled);
    let sources = sources.filter_map(|path| path.canonicalize().ok());
    Bundle::new(folder_of("bundle"), sources.collect())
}

fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "rs")
}

fn folder_of(stem: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR"));
    root.join("programs").join(stem)
}

/// Returns a test for each build of a program; if there are several, their names contain the flags.
fn trials(root: &Path, path: &Path, bundle: &Arc<Bundle>) -> Vec<Trial> {
    let name = path.strip_prefix(root).unwrap_or(path);
    let name = name.display().to_string();
    let source = fs::read_to_string(path).map_err(Failed::from);
    let header = match source.and_then(|source| Header::parse(&source)) {
        Ok(header) => Arc::new(header),
        Err(error) => return vec![Trial::test(name, || Err(error))],
    };
    let several = header.builds.len() > 1;
    let builds = header.builds.iter().enumerate();
    builds
        .map(|(build, flags)| {
            let stem = format!("{}_{build}", name.replace(['/', '.'], "_"));
            let name = match flags.join(" ") {
                flags if several && !flags.is_empty() => format!("{name} {flags}"),
                _ => name.clone(),
            };
            let (header, path, bundle) = (header.clone(), path.to_owned(), bundle.clone());
            Trial::test(name, move || {
                Case::new(header, build, &path, &stem, bundle)?.check()
            })
        })
        .collect()
}

fn collect(folder: &Path, programs: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, programs);
        } else if path
            .extension()
            .is_some_and(|e| e == "c" || e == "cc" || e == "rs")
        {
            programs.push(path);
        }
    }
}

#[derive(Default)]
struct Header {
    builds: Vec<Vec<String>>,
    exec: Vec<Vec<String>>,
    options: Vec<String>,
    stdin: Vec<u8>,
    run: Option<Vec<String>>,
    args: Vec<String>,
    paths: Vec<u64>,
    incomplete: bool,
    findings: Vec<(String, u64)>,
    survives: Vec<String>,
    not_replayable: Option<String>,
    /// Other builds, and the kinds of findings that do not happen on them.
    not_on: Vec<(String, String)>,
    /// Whether it does not share its builds.
    alone: bool,
}

impl Header {
    /// Returns the exit code of `everett run`: limits of Everett do not count as findings about the
    /// program.
    fn exit_code(&self) -> i32 {
        let is_about_us = |kind: &str| matches!(kind, "unsupported" | "solver-gave-up");
        match self.findings.as_slice() {
            [] => 0,
            all if all.iter().all(|(kind, _)| is_about_us(kind)) => 2,
            _ => 1,
        }
    }

    fn parse(source: &str) -> Result<Header, Failed> {
        let mut header = Header::default();
        for line in source.lines().take_while(|line| line.starts_with("//")) {
            let Some((key, value)) = line.trim_start_matches('/').trim().split_once(':') else {
                continue;
            };
            let words = || {
                value
                    .split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            match key {
                "build" => header.builds.push(words()),
                "exec" => header.exec.push(words()),
                "options" => header.options = words(),
                "stdin" => header.stdin = unescape(value.trim_start()),
                "run" => header.run = Some(words()),
                "args" => header.args = words(),
                "paths" => {
                    let counts = value.split_whitespace().map(str::parse);
                    header.paths = counts.collect::<Result<_, _>>()?;
                }
                "complete" => header.incomplete = value.trim() == "no",
                "finding" => match words().as_slice() {
                    [kind, line] => header.findings.push((kind.clone(), line.parse()?)),
                    _ => return Err(format!("bad header line: {line}").into()),
                },
                "survives" => match words().as_slice() {
                    [kind, _, ..] => header.survives.push(kind.clone()),
                    _ => return Err(format!("no reason is given: {line}").into()),
                },
                "alone" => header.alone = true,
                "not-replayable" => header.not_replayable = Some(value.trim().to_owned()),
                _ => match (key.strip_prefix("not on "), words().as_slice()) {
                    (None, _) => {}
                    (Some(build), [kind, _, ..]) if OTHER_BUILDS.contains(&build) => {
                        header.not_on.push((build.to_owned(), kind.clone()));
                    }
                    _ => return Err(format!("bad header line: {line}").into()),
                },
            }
        }
        header.findings.sort();
        if header.builds.is_empty() {
            header.builds.push(Vec::new());
        }
        if header.paths.len() > 1 && header.paths.len() != header.builds.len() {
            return Err("there are neither one number of paths nor as many as builds".into());
        }
        Ok(header)
    }

    /// Returns the number of paths of a build.
    fn paths_of(&self, build: usize) -> Option<u64> {
        match self.paths[..] {
            [all] => Some(all),
            _ => self.paths.get(build).copied(),
        }
    }
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match (byte, byte == b'\\') {
            (_, true) => bytes.push(match rest.next() {
                Some(b'n') => b'\n',
                Some(b't') => b'\t',
                Some(b'0') => 0,
                Some(other) => other,
                None => b'\\',
            }),
            (byte, _) => bytes.push(byte),
        }
    }
    bytes
}

struct Case {
    header: Arc<Header>,
    /// The index of the build.
    build: usize,
    source: PathBuf,
    folder: PathBuf,
    program: PathBuf,
    bundle: Arc<Bundle>,
}

fn everett() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_everett"));
    // Cases already run in parallel.
    command.env("EVERETT_WORKERS", "1");
    command
}

/// Returns the output and status of a command, if it ends in time.
fn output_of(command: &mut Command, at_most: Duration) -> Result<Output, Failed> {
    const PAUSE: Duration = Duration::from_millis(5);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let read = |stream: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = stream.map(|mut stream| stream.read_to_end(&mut bytes));
            read.transpose().map(|_| bytes)
        })
    };
    let stdout = read(child.stdout.take().map(|out| Box::new(out) as _));
    let stderr = read(child.stderr.take().map(|err| Box::new(err) as _));
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if start.elapsed() > at_most {
            child.kill()?;
            child.wait()?;
            return Err(format!("{command:?} did not end within {at_most:?}").into());
        }
        std::thread::sleep(PAUSE);
    };
    let bytes = |reader: JoinHandle<std::io::Result<Vec<u8>>>| match reader.join() {
        Ok(bytes) => bytes.map_err(Failed::from),
        Err(_) => Err(Failed::from("what a command writes could not be read")),
    };
    Ok(Output {
        status,
        stdout: bytes(stdout)?,
        stderr: bytes(stderr)?,
    })
}

fn succeed(command: &mut Command) -> Result<Output, Failed> {
    let output = output_of(command, EVERETT_RUNS_AT_MOST)?;
    if !output.status.success() {
        return Err(format!("{command:?} failed:\n{}", text(&output)).into());
    }
    Ok(output)
}

fn text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!(
        "{}{}",
        String::from_utf8_lossy(out),
        String::from_utf8_lossy(err)
    )
}

/// Checks that a run ended as that of the model.
fn expect_same(args: &[String], other: (&str, &Output), model: &Output) -> Result<(), Failed> {
    let code = |output: &Output| {
        use std::os::unix::process::ExitStatusExt;
        let signal = output.status.signal().map(|signal| 128 + signal);
        output.status.code().or(signal)
    };
    let (name, other) = other;
    if other.stdout == model.stdout && code(other) == code(model) {
        return Ok(());
    }
    let (this, that) = (code(other), code(model));
    let (said, modelled) = (text(other), text(model));
    Err(format!(
        "exec {args:?} differs\n--- {name} {this:?}\n{said}\n--- everett exec {that:?}\n{modelled}"
    )
    .into())
}

/// Returns traces that were not confirmed, why, and the lines that say so.
fn other_verdicts(lines: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    const VERDICTS: [&str; 2] = [": not-reproduced: ", ": not-replayable: "];
    lines.lines().filter_map(|line| {
        let parts = VERDICTS.iter().find_map(|verdict| line.split_once(verdict));
        parts.map(|(path, why)| (path, why, line))
    })
}

impl Case {
    fn new(
        header: Arc<Header>,
        build: usize,
        source: &Path,
        stem: &str,
        bundle: Arc<Bundle>,
    ) -> Result<Case, Failed> {
        let folder = folder_of(stem);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        let name = match is_rust(source) && !header.alone {
            // A program that shares its build is found by its name.
            true => source.file_stem().unwrap_or_default(),
            false => OsStr::new("program"),
        };
        let program = folder.join(name);
        Ok(Case {
            header,
            build,
            source: source.canonicalize()?,
            folder,
            program,
            bundle,
        })
    }

    fn check(&self) -> Result<(), Failed> {
        self.make(&[], &self.program)?;
        for args in &self.header.exec {
            self.compare_exec(args)?;
        }
        match &self.header.run {
            Some(options) => self.explore(options),
            None => Ok(()),
        }
    }

    /// Builds the program with these flags after its own.
    fn make(&self, flags: &[&str], program: &Path) -> Result<(), Failed> {
        let own = &self.header.builds[self.build];
        if is_rust(&self.source) && !self.header.alone {
            let flags = flags.iter().map(|flag| (*flag).to_owned());
            let all: Vec<String> = own.iter().cloned().chain(flags).collect();
            return self.bundle.link(&all, program);
        }
        let tool: &[&str] = match self.source.extension().and_then(|e| e.to_str()) {
            Some("cc") => &["c++"],
            Some("rs") => &["rustc", "--edition", "2024"],
            _ => &["cc"],
        };
        let mut build = everett();
        build.args(tool).args(own);
        build.args(flags).arg("-o").arg(program).arg(&self.source);
        succeed(build.current_dir(&self.folder)).map(drop)
    }

    fn feed(&self, command: &mut Command, at_most: Duration) -> Result<Output, Failed> {
        let input = self.folder.join("stdin");
        fs::write(&input, &self.header.stdin)?;
        command.stdin(Stdio::from(fs::File::open(input)?));
        command.env_clear().current_dir(&self.folder);
        output_of(command, at_most)
    }

    /// Compares the model with the machine, and the machine's code under the model with both.
    /// Parallel processes may overtake each other on a busy machine, so a difference counts only if
    /// several runs on the machine all show it.
    fn compare_exec(&self, args: &[String]) -> Result<(), Failed> {
        let model = self.under_everett("exec", args)?;
        let native = self.under_everett("native", args)?;
        expect_same(args, ("everett native", &native), &model)?;
        let mut same = Ok(());
        for _ in 0..NATIVE_RUNS {
            let machine = self.feed(Command::new(&self.program).args(args), RUNS_AT_MOST)?;
            same = expect_same(args, ("the machine", &machine), &model);
            if same.is_ok() {
                break;
            }
        }
        same
    }

    fn under_everett(&self, command: &str, args: &[String]) -> Result<Output, Failed> {
        let mut run = everett();
        run.arg(command).args(&self.header.options);
        self.feed(run.arg(&self.program).args(args), EVERETT_RUNS_AT_MOST)
    }

    fn explore(&self, options: &[String]) -> Result<(), Failed> {
        let out = self.folder.join("out");
        let mut run = everett();
        run.args(["run", "--all-tests", "--max-time", "1000s", "--out"])
            .arg(&out)
            .args(options);
        run.arg(&self.program)
            .args(&self.header.args)
            .current_dir(&self.folder);
        let output = output_of(&mut run, EVERETT_RUNS_AT_MOST)?;
        let expected = self.header.exit_code();
        if output.status.code() != Some(expected) {
            let said = text(&output);
            return Err(format!("{run:?} ends not with {expected}:\n{said}").into());
        }
        let summary: Value = serde_json::from_slice(&fs::read(out.join("summary.json"))?)?;
        self.check_summary(&summary).map_err(|error| {
            Failed::from(format!(
                "{}\n{}",
                error.message().unwrap_or(""),
                text(&output)
            ))
        })?;
        succeed(everett().arg("follow").arg(&out).current_dir(&self.folder))?;
        self.check_natively(&out)?;
        if self.build == 0 && !self.header.findings.is_empty() && self.is_built_again() {
            for other in OTHER_BUILDS {
                self.check_on(other, &out)?;
            }
        }
        Ok(())
    }

    fn check_summary(&self, summary: &Value) -> Result<(), Failed> {
        let empty = Vec::new();
        let findings = summary["findings"].as_array().unwrap_or(&empty);
        let mut found: Vec<(String, u64)> = findings
            .iter()
            .map(|finding| {
                let kind = finding["kind"].as_str().unwrap_or("").to_owned();
                (kind, finding["line"].as_u64().unwrap_or(0))
            })
            .collect();
        found.sort();
        let expected = &self.header.findings;
        if &found != expected {
            return Err(format!("expected findings {expected:?}, found {found:?}").into());
        }
        let complete = summary["complete"].as_bool();
        if complete != Some(!self.header.incomplete) {
            return Err(format!("complete is {complete:?}").into());
        }
        let weight = |part: &str| summary["weight"][part].as_f64().unwrap_or(f64::NAN);
        // Only programs that switch forks off have pruned weight.
        let pruned = summary["weight"]["pruned"].as_f64().unwrap_or(0.0);
        let sum = weight("finished") + weight("pending") + weight("unknown") + pruned;
        if (sum - 1.0).abs() > 1e-9 {
            return Err(format!("the weights sum to {sum}").into());
        }
        let completed = summary["paths"]["completed"].as_u64();
        match self.header.paths_of(self.build) {
            Some(paths) if completed != Some(paths) => {
                Err(format!("expected {paths} paths, completed {completed:?}").into())
            }
            _ => Ok(()),
        }
    }

    /// Checks that every path is reproduced on the native program, under the same kernel model.
    fn check_natively(&self, out: &Path) -> Result<(), Failed> {
        let mut replay = everett();
        replay.arg("replay").arg(out).current_dir(&self.folder);
        let output = output_of(&mut replay, EVERETT_RUNS_AT_MOST)?;
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        if !lines.contains("traces confirmed") {
            return Err(format!("replay failed:\n{}", text(&output)).into());
        }
        let mut excused = BTreeSet::new();
        for (path, why, line) in other_verdicts(&lines) {
            let trace: Value = serde_json::from_slice(&fs::read(self.folder.join(path))?)?;
            let kind = trace["end"]["finding"].as_str();
            let tried = line.contains(": not-reproduced: ");
            let is_excused = match kind {
                Some(kind) => self.survives(kind),
                None => {
                    let reason = self.header.not_replayable.as_ref();
                    !tried && reason.is_some_and(|reason| why.contains(reason))
                }
            };
            if !is_excused {
                return Err(format!("{} natively: {line}", kind.unwrap_or("path")).into());
            }
            excused.insert(kind.unwrap_or(FINISHED_PATH).to_owned());
        }
        self.check_excuses(&excused)
    }

    /// Checks that every excuse of the program is needed. Builds may differ.
    fn check_excuses(&self, excused: &BTreeSet<String>) -> Result<(), Failed> {
        let kinds = self.header.survives.iter().map(String::as_str);
        let paths = self.header.not_replayable.as_ref().map(|_| FINISHED_PATH);
        let needless = kinds.chain(paths).find(|kind| !excused.contains(*kind));
        match needless {
            Some(kind) if self.header.builds.len() == 1 => {
                Err(format!("needs no excuse, it is confirmed natively: {kind}").into())
            }
            _ => Ok(()),
        }
    }

    /// Returns whether other builds of it are tested. Unless they are shared, they take long: then
    /// a sixth of them is tested every time, and all of them if all targets are.
    fn is_built_again(&self) -> bool {
        let is_shared = is_rust(&self.source) && !self.header.alone;
        let name = self.source.file_name().unwrap_or_default();
        let sum: usize = name
            .as_encoded_bytes()
            .iter()
            .map(|byte| usize::from(*byte))
            .sum();
        is_shared || sum.is_multiple_of(6) || std::env::var_os(ALL).is_some()
    }

    /// Checks that findings happen on another build of the same source.
    fn check_on(&self, other: &str, out: &Path) -> Result<(), Failed> {
        let mut confirm = everett();
        confirm.args(["confirm", "--jobs", "1"]);
        match other {
            CHECKED => confirm.arg("--checked"),
            _ => match self.other_build(other)? {
                Some(program) => confirm.arg("--on").arg(program),
                None => return Ok(()),
            },
        };
        let output = confirm.arg(out).current_dir(&self.folder).output()?;
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        if !lines.contains("traces confirmed") {
            return Err(format!("{confirm:?} failed:\n{}", text(&output)).into());
        }
        for (path, _, line) in other_verdicts(&lines) {
            let trace: Value = serde_json::from_slice(&fs::read(self.folder.join(path))?)?;
            let kind = trace["end"]["finding"].as_str().unwrap_or_default();
            let mut excepted = self.header.not_on.iter();
            if !self.survives(kind) && !excepted.any(|it| it.0 == other && it.1 == kind) {
                return Err(format!("{kind} on the build {other}: {line}").into());
            }
        }
        Ok(())
    }

    /// Builds the program in another way; none if that is the same as the first build.
    fn other_build(&self, other: &str) -> Result<Option<PathBuf>, Failed> {
        let own = &self.header.builds[self.build];
        let is_optimised = own
            .iter()
            .any(|flag| flag.starts_with("-O") || flag.starts_with("opt-level"));
        let mut name = self.program.clone().into_os_string();
        name.push(other);
        let program = PathBuf::from(name);
        let flags: &[&str] = match (other, is_rust(&self.source), is_optimised) {
            ("-O0", _, false) | ("-O3", true, true) => return Ok(None),
            ("-O0", true, true) => &["-C", "opt-level=0", "-C", "debug-assertions=off"],
            ("-O3", true, false) => &["-C", "opt-level=3", "-C", "debug-assertions=on"],
            (flag, ..) => &[flag],
        };
        self.make(flags, &program)?;
        Ok(Some(program))
    }

    /// Returns whether findings of this kind need not happen natively: the program says why, or
    /// they are limits of Everett.
    fn survives(&self, kind: &str) -> bool {
        matches!(kind, "unsupported" | "solver-gave-up")
            || self.header.survives.iter().any(|named| named == kind)
    }
}
