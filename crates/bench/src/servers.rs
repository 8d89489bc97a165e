//! Real programs: the time to explore their state spaces, and the memory of one of their states.

use anyhow::{Context, Result, bail};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Bench, Measured, RUNS, seconds_of};

/// An exploration of a real program.
struct Exploration {
    target: &'static str,
    what: &'static str,
    /// The script in `benches/servers` that drives the program, if any.
    script: Option<&'static str>,
    /// The program to start, by the script or directly, with its arguments.
    program: &'static str,
    options: &'static [&'static str],
    wanted: &'static str,
}

const EXPLORATIONS: &[Exploration] = &[
    Exploration {
        target: "memcached",
        what: "one symbolic binary command",
        script: Some("memcached.script"),
        program: "memcached",
        options: &[],
        wanted: "to the end",
    },
    Exploration {
        target: "memcached",
        what: "two symbolic binary commands",
        script: Some("memcached-two.script"),
        program: "memcached",
        options: &[],
        wanted: "to the end (Cloud9: 74,503 paths, over 10 h on one machine)",
    },
    Exploration {
        target: "lighttpd",
        what: "28-byte request, all fragmentations into up to 4 pieces",
        script: Some("lighttpd.script"),
        program: "lighttpd",
        options: &["--fragment", "4"],
        wanted: "to the end",
    },
    Exploration {
        target: "mini-httpd",
        what: "request with 3 symbolic characters",
        script: Some("mini-httpd.script"),
        program: "mini_httpd",
        options: &[],
        wanted: "to the end, under 60 s",
    },
    Exploration {
        target: "mini-httpd",
        what: "request, 1 failing system call",
        script: Some("mini-httpd-plain.script"),
        program: "mini_httpd",
        options: &["--faults", "1", "--fault-program", "mini_httpd"],
        wanted: "",
    },
    Exploration {
        target: "mini-httpd",
        what: "request, 2 failing system calls",
        script: Some("mini-httpd-plain.script"),
        program: "mini_httpd",
        options: &["--faults", "2", "--fault-program", "mini_httpd"],
        wanted: "under 30 s, 500 MiB",
    },
    Exploration {
        target: "coreutils",
        what: "two symbolic arguments of 4",
        script: None,
        program: "printf --sym-arg 4 --sym-arg 4",
        options: &[],
        wanted: "",
    },
    Exploration {
        target: "coreutils",
        what: "two symbolic arguments of 4",
        script: None,
        program: "test --sym-arg 4 --sym-arg 4",
        options: &[],
        wanted: "",
    },
];

/// Time limit of one exploration.
const LONGEST: &str = "120s";
/// Number of states to fork from idle memcached.
const WORLDS: u64 = 2000;

impl Bench {
    pub fn servers(&self, text: &mut String) -> Result<()> {
        text.push_str(
            "\n| program | what | paths | complete | seconds | peak MiB | lines covered | wanted |\n\
             |---|---|---|---|---|---|---|---|\n",
        );
        for exploration in EXPLORATIONS {
            let run = self.explore_target(exploration)?;
            let (summary, peak) = (&run.summary, run.peak_kib / 1024);
            // Every program here has many paths, unless it did not find its files.
            let complete = match summary["paths"]["completed"].as_u64() {
                Some(2..) => summary["complete"].to_string(),
                _ => "did not start".to_owned(),
            };
            let row = format!(
                "| {} | {} | {} | {} | {:.2} | {peak} | {} of {} | {} |",
                exploration.program,
                exploration.what,
                summary["paths"]["completed"],
                complete,
                run.seconds,
                summary["coverage"]["lines_covered"],
                summary["coverage"]["lines"],
                exploration.wanted,
            );
            // Each exploration takes long, so the row is printed at once.
            eprintln!("{row}");
            writeln!(text, "{row}")?;
        }
        let (start, each) = (self.set_and_get()?, self.idle_state()?);
        writeln!(
            text,
            "\nmemcached: start, set, get and stop under `everett exec`: {start:.2} s (wanted: under 1)\n\
             a forked state of idle memcached: {each:.1} KiB (wanted: under 64)"
        )?;
        Ok(())
    }

    fn explore_target(&self, exploration: &Exploration) -> Result<Measured> {
        let work = self.prepare(exploration.target, exploration.script)?;
        let program = format!("./{}", exploration.program);
        let started = match exploration.script {
            Some(script) => vec!["--program", &program, "./driver", script],
            None => program.split(' ').collect(),
        };
        let limits = ["--max-time", LONGEST, "--no-tests", "--no-confirm"];
        let words = [&limits, exploration.options, &started].concat();
        self.explore_in(&work, &words)
    }

    /// Creates a folder with a target's programs and files and a script.
    pub(crate) fn prepare(&self, target: &str, script: Option<&str>) -> Result<PathBuf> {
        let built = self.target(target)?;
        let work = self.work.join(format!("target-{}", self.number()));
        std::fs::create_dir_all(work.join("files"))?;
        let described = self.root.join("tests/targets").join(target);
        for files in [described.join("files"), built.join("files")] {
            if files.exists() {
                copy(&files, &work)?;
                copy(&files, &work.join("files"))?;
            }
        }
        if let Some(script) = script {
            for folder in [&work, &work.join("files")] {
                let from = self.root.join("benches/servers").join(script);
                std::fs::copy(from, folder.join(script))?;
            }
        }
        self.put_programs(&built, &work)?;
        Ok(work)
    }

    /// Returns the folder with a target's programs; builds them if necessary.
    pub fn target(&self, name: &str) -> Result<PathBuf> {
        let make = self.root.join("tests/targets/make");
        let output = Command::new(&make)
            .arg(name)
            .env("EVERETT", &self.everett)
            .output()?;
        if !output.status.success() {
            bail!("{name}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
    }

    /// Copies a target's programs into a folder if they are missing.
    pub fn put_programs(&self, built: &Path, work: &Path) -> Result<()> {
        for entry in std::fs::read_dir(built)? {
            let name = entry?.file_name();
            let is_bitcode = Path::new(&name).extension().is_some_and(|it| it == "bc");
            if is_bitcode && !work.join(&name).exists() {
                let program = Path::new(&name).with_extension("");
                std::os::unix::fs::symlink(built.join(&program), work.join(&program))?;
                std::os::unix::fs::symlink(built.join(&name), work.join(&name))?;
            }
        }
        Ok(())
    }

    /// Returns the time of starting memcached, storing a value, getting it back and stopping, in
    /// seconds.
    fn set_and_get(&self) -> Result<f64> {
        let script = "memcached-set-get.script";
        let work = self.prepare("memcached", Some(script))?;
        let mut best = f64::MAX;
        for _ in 0..RUNS {
            let mut exec = Command::new(&self.everett);
            exec.current_dir(&work).args(["exec", "--files", "files"]);
            exec.args(["--program", "./memcached", "./driver", script]);
            best = best.min(seconds_of(&mut exec)?);
        }
        Ok(best)
    }

    /// Returns the memory per state forked from memcached while it waits for commands, in KiB.
    fn idle_state(&self) -> Result<f64> {
        let peak = |worlds: u64| {
            let script = "memcached-idle.script";
            let work = self.prepare("memcached", Some(script))?;
            for folder in [&work, &work.join("files")] {
                let text = std::fs::read_to_string(folder.join(script))?;
                let text = text.replace("WORLDS", &worlds.to_string());
                std::fs::write(folder.join(script), text)?;
            }
            let words = "--search bfs --no-tests --no-confirm --program ./memcached ./driver";
            let words: Vec<&str> = words.split(' ').chain([script]).collect();
            let run = self.explore_in(&work, &words)?;
            let paths = run.summary["paths"]["completed"].as_u64();
            if paths != Some(worlds) {
                bail!("{paths:?} worlds of idle memcached instead of {worlds}");
            }
            Ok(run.peak_kib)
        };
        let (one, many) = (peak(1)?, peak(WORLDS)?);
        Ok(many.saturating_sub(one) as f64 / (WORLDS - 1) as f64)
    }

    pub(crate) fn explore_in(&self, work: &Path, words: &[&str]) -> Result<Measured> {
        let mut run = Command::new(&self.everett);
        run.current_dir(work).args(["run", "--quiet", "--out"]);
        let out = self.work.join(format!("out-{}", self.number()));
        run.arg(&out).args(["--files", "files"]).args(words);
        self.measure(&mut run, &out).context("exploring a target")
    }
}

/// Copies the contents of a folder into another.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            std::fs::create_dir_all(&target)?;
            copy(&path, &target)?;
        } else {
            std::fs::copy(&path, &target)?;
        }
    }
    Ok(())
}
