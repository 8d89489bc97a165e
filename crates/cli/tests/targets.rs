//! Builds the real programs under `tests/targets/` and compares `everett exec` with native runs of
//! them.
//!
//! A target is a folder. `build` makes its programs (see `tests/targets/make`), `files/` (and what
//! `build` puts into `$out/files`) is in the working directory, and `cases` lists the commands to
//! run:
//!
//! ```text
//! everywhere                       first line: part of `./test`; other targets need `./test --targets all`
//! other builds everywhere          so are its other builds, if it is explored
//! # a comment
//! $ ./sort -n 'a file'             a command; words can be put in single quotes
//! < TEXT                           a line of its standard input
//! ? 2                              its exit code, if it is not 0
//! ! OPTIONS                        it is explored with these options of `everett run` instead
//! ```
//!
//! Standard output and exit code must be the same natively and on the model. A command or a script
//! of the driver (`*.script`, see `tests/targets/driver.c`) can start every program of the target
//! by its name `./NAME`. Every path and every finding of an exploration is replayed natively: on
//! the programs, on their checked builds, and on builds without optimisation and with full
//! optimisation.

#[path = "common/threads.rs"]
mod threads;

use libtest_mimic::{Failed, Trial};
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// If this variable is set, targets that are not part of every test run are tested.
const ALL: &str = "EVERETT_TEST_ALL_TARGETS";
/// The line of a target whose other builds are also part of every test run.
const OTHER_BUILDS_EVERYWHERE: &str = "other builds everywhere";
/// Optimisation levels of the other builds on which explored paths are replayed.
const LEVELS: [&str; 2] = ["-O0", "-O3"];
/// Minimum number of paths of an exploration; fewer would prove nothing.
const FEWEST_PATHS: usize = 10;
/// Seconds after which a run counts as one without an end. A busy machine takes much longer than a quiet one.
const PATIENCE: &str = "3000";

fn main() {
    let arguments = threads::arguments();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/targets");
    let mut folders: Vec<PathBuf> = fs::read_dir(&root)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    folders.sort();
    let all = std::env::var_os(ALL).is_some();
    let mut trials = Vec::new();
    for folder in folders {
        let Ok(text) = fs::read_to_string(folder.join("cases")) else {
            continue;
        };
        let name = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if all || text.starts_with("everywhere\n") {
            let levels = match all || text.lines().any(|line| line == OTHER_BUILDS_EVERYWHERE) {
                true => LEVELS.as_slice(),
                false => &[],
            };
            trials.push(Trial::test(name.clone(), move || {
                Target::new(name, folder, levels)?.check(&parse(&text)?)
            }));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

#[derive(Debug, Default)]
struct Case {
    words: Vec<String>,
    stdin: String,
    code: i32,
    /// The options of the exploration, if it is one.
    explored: Option<Vec<String>>,
}

fn parse(text: &str) -> Result<Vec<Case>, Failed> {
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines() {
        let (mark, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (mark, cases.last_mut()) {
            ("$", _) => cases.push(Case {
                words: split(rest),
                ..Case::default()
            }),
            ("<", Some(case)) => {
                case.stdin.push_str(rest);
                case.stdin.push('\n');
            }
            ("?", Some(case)) => case.code = rest.trim().parse()?,
            ("!", Some(case)) => case.explored = Some(split(rest)),
            ("" | "#" | "everywhere", _) => {}
            _ if line == OTHER_BUILDS_EVERYWHERE => {}
            _ => return Err(format!("not understood: {line}").into()),
        }
    }
    Ok(cases)
}

fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix('\'') {
            Some(quoted) => quoted.split_once('\'').unwrap_or((quoted, "")),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    words
}

struct Target {
    /// The folder with the description.
    folder: PathBuf,
    /// The folder with the programs.
    built: PathBuf,
    /// The folders with other builds.
    other_builds: Vec<PathBuf>,
    /// The working directory.
    work: PathBuf,
}

impl Target {
    fn new(name: String, folder: PathBuf, levels: &[&str]) -> Result<Target, Failed> {
        let build = |level: Option<&str>| -> Result<PathBuf, Failed> {
            let mut make = Command::new(folder.with_file_name("make"));
            make.args(level).arg(&name);
            make.env("EVERETT", env!("CARGO_BIN_EXE_everett"));
            let output = make.output()?;
            if !output.status.success() {
                return Err(format!("{make:?} failed:\n{}", text(&output, 0)).into());
            }
            Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
        };
        let built = build(None)?;
        let recipe = fs::read_to_string(folder.join("build"))?;
        let levels = levels.iter().filter(|_| recipe.contains("$level"));
        let other_builds = levels.map(|level| build(Some(level)));
        let other_builds = other_builds.collect::<Result<_, _>>()?;
        let work = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("targets")
            .join(name);
        Ok(Target {
            folder,
            built,
            other_builds,
            work,
        })
    }

    fn check(&self, cases: &[Case]) -> Result<(), Failed> {
        if cases.is_empty() {
            return Err("there are no cases".into());
        }
        let mut different = String::new();
        for case in cases {
            let checked = match &case.explored {
                Some(options) => self.explore(case, options),
                None => self.compare(case),
            };
            if let Err(failed) = checked {
                different.push_str(failed.message().unwrap_or("failed"));
            }
        }
        match different.is_empty() {
            true => Ok(()),
            false => Err(different.into()),
        }
    }

    fn compare(&self, case: &Case) -> Result<(), Failed> {
        self.prepare()?;
        let mut command = patiently();
        let native = feed(command.args(&case.words), case, &self.work)?;
        // Restore the files that the native run has changed.
        self.prepare()?;
        let mut command = self.everett("exec", case)?;
        let model = feed(command.args(&case.words), case, &self.work)?;
        let expected = Some(case.code);
        if native.status.code() == expected
            && model.status.code() == expected
            && native.stdout == model.stdout
        {
            return Ok(());
        }
        let same = native
            .stdout
            .iter()
            .zip(&model.stdout)
            .take_while(|(native, model)| native == model)
            .count();
        // Whole lines are easier to read.
        let lines = native.stdout[..same].split_inclusive(|byte| *byte == b'\n');
        let same: usize = lines
            .filter(|line| line.ends_with(b"\n"))
            .map(<[u8]>::len)
            .sum();
        Err(format!(
            "\n=== {:?}, exit code {}; the same for {same} bytes, then\n--- native {:?}\n{}--- everett {:?}\n{}",
            case.words,
            case.code,
            native.status.code(),
            text(&native, same),
            model.status.code(),
            text(&model, same)
        )
        .into())
    }

    /// Returns a command of Everett with the files and programs of a case.
    fn everett(&self, command: &str, case: &Case) -> Result<Command, Failed> {
        let mut everett = patiently();
        everett.arg(env!("CARGO_BIN_EXE_everett")).arg(command);
        for files in self.files() {
            everett.arg("--files").arg(files);
        }
        for program in self.programs(case)? {
            everett.arg("--program").arg(program);
        }
        Ok(everett)
    }

    /// Explores a command, and replays every path and every finding natively.
    fn explore(&self, case: &Case, options: &[String]) -> Result<(), Failed> {
        self.prepare()?;
        let mut run = self.everett("run", case)?;
        run.args(["--out", "out", "--all-tests", "--no-confirm", "--no-shrink"]);
        run.args(options).args(&case.words).current_dir(&self.work);
        let output = run.stdin(Stdio::null()).output()?;
        if !matches!(output.status.code(), Some(0 | 1)) {
            return Err(format!("{run:?} failed:\n{}", text(&output, 0)).into());
        }
        self.confirm(&[])?;
        self.confirm(&["--checked".to_owned()])?;
        for folder in &self.other_builds {
            let build_of = |program: &str| {
                let name = program.trim_start_matches("./");
                folder.join(name).display().to_string()
            };
            let mut builds = vec!["--on".to_owned(), build_of(&case.words[0])];
            for program in self.programs(case)? {
                let build = build_of(&program);
                builds.extend(["--on".to_owned(), format!("{program}={build}")]);
            }
            self.confirm(&builds)?;
        }
        self.keep_checked_builds()
    }

    /// Checks that every path and every finding is reproduced on the builds that the options name.
    fn confirm(&self, builds: &[String]) -> Result<(), Failed> {
        let mut confirm = patiently();
        confirm
            .arg(env!("CARGO_BIN_EXE_everett"))
            .args(["confirm", "--tests", "out"]);
        let output = confirm.args(builds).current_dir(&self.work).output()?;
        let lines = String::from_utf8_lossy(&output.stdout);
        let (confirmed, others): (Vec<&str>, Vec<&str>) = lines
            .lines()
            .partition(|line| line.ends_with(": confirmed"));
        if output.status.code() != Some(0) || confirmed.len() < FEWEST_PATHS {
            let told = String::from_utf8_lossy(&output.stderr);
            return Err(format!("\n=== {confirm:?}\n{}\n{told}", others.join("\n")).into());
        }
        Ok(())
    }

    /// Keeps the checked builds, which take long to link, like the programs.
    fn keep_checked_builds(&self) -> Result<(), Failed> {
        for name in self.names()? {
            let checked = format!("{name}.asan");
            let (made, kept) = (self.work.join(&checked), self.built.join(&checked));
            if made.exists() && !made.is_symlink() {
                let unfinished = self.built.join(format!("{checked}.unfinished"));
                fs::copy(&made, &unfinished)?;
                fs::rename(&unfinished, &kept)?;
            }
        }
        Ok(())
    }

    /// Creates a fresh working directory with the files of the target and its programs.
    fn prepare(&self) -> Result<(), Failed> {
        if self.work.exists() {
            fs::remove_dir_all(&self.work)?;
        }
        fs::create_dir_all(&self.work)?;
        for files in self.files() {
            copy(&files, &self.work)?;
        }
        for name in self.names()? {
            symlink(self.built.join(&name), self.work.join(&name))?;
            for suffix in ["bc", "asan"] {
                let part = format!("{name}.{suffix}");
                if self.built.join(&part).exists() {
                    symlink(self.built.join(&part), self.work.join(&part))?;
                }
            }
        }
        Ok(())
    }

    /// Returns the folders whose files are in the working directory.
    fn files(&self) -> impl Iterator<Item = PathBuf> {
        let folders = [self.folder.join("files"), self.built.join("files")];
        folders.into_iter().filter(|folder| folder.exists())
    }

    /// Returns the names of all programs of the target.
    fn names(&self) -> Result<Vec<String>, Failed> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.built)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            names.extend(name.strip_suffix(".bc").map(str::to_owned));
        }
        names.sort();
        Ok(names)
    }

    /// Returns the programs that a case may start: those named by it or by its script.
    fn programs(&self, case: &Case) -> Result<Vec<String>, Failed> {
        let mut named = case.words[1..].join(" ");
        for word in &case.words {
            if word.ends_with(".script") {
                named.push('\n');
                named.push_str(&fs::read_to_string(self.work.join(word))?);
            }
        }
        let is_named = |name: &String| {
            let path = format!("./{name}");
            named
                .split([' ', '\n', '\'', ';', '|', '('])
                .any(|word| word == path)
        };
        let names = self.names()?.into_iter().filter(is_named);
        Ok(names.map(|name| format!("./{name}")).collect())
    }
}

/// Returns a command that is killed if it does not end by itself.
fn patiently() -> Command {
    let mut command = Command::new("/usr/bin/timeout");
    command.args(["--kill-after=5", PATIENCE]);
    // Tests of one run are compared with those of another.
    command.env("EVERETT_WORKERS", "1");
    command
}

fn feed(command: &mut Command, case: &Case, folder: &Path) -> Result<Output, Failed> {
    let mut child = command
        .env_clear()
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program need not read its input.
        let _ = stdin.write_all(case.stdin.as_bytes());
    }
    Ok(child.wait_with_output()?)
}

fn copy(from: &Path, to: &Path) -> Result<(), Failed> {
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            fs::create_dir_all(&target)?;
            copy(&path, &target)?;
        } else {
            fs::copy(&path, &target)?;
        }
    }
    Ok(())
}

/// Returns the output from a byte on, shortened for reading.
fn text(output: &Output, from: usize) -> String {
    const ENOUGH: usize = 4000;
    let rest = &output.stdout[from..];
    let out = String::from_utf8_lossy(&rest[..rest.len().min(ENOUGH)]);
    let err = String::from_utf8_lossy(&output.stderr);
    format!("{out}\n(standard error)\n{err}")
}
