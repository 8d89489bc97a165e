//! Hardened builds: a memcached under load without checks, with all and with selected ones. For
//! each build: what it costs, which bugs of memcached's past it stops, and how many of the checks
//! it has where bugs were fixed.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Bench, succeed};

/// Requests of one run of the workload.
const REQUESTS: u32 = 400_000;
/// Runs of the workload with each build; builds take turns.
const ROUNDS: &str = "7";
/// The share of the full overhead that the selected build may take, as in the paper (7 % of 28 %).
const SHARE: f64 = 0.25;
/// Further selections if the build takes more than that.
const TRIES: usize = 3;

/// Functions in which bugs of memcached were fixed.
const KNOWN: [&str; 10] = [
    "process_bin_append_prepend",
    "process_bin_update",
    "process_bin_sasl_auth",
    "try_read_command_binary",
    "dispatch_bin_command",
    "authfile_load",
    "get_conn_text",
    "conn_to_str",
    "process_lru_command",
    "process_stat",
];

/// A bug: its name, and how it is triggered.
struct Bug {
    name: &'static str,
    /// What the client sends; nothing for a bug at the start.
    sends: Option<&'static str>,
    /// A long path of the socket is part of it.
    has_long_path: bool,
}

const BUGS: [Bug; 3] = [
    Bug {
        name: "CVE-2020-10931: extras of a binary header, stack overflow",
        sends: Some("extras"),
        has_long_path: false,
    },
    Bug {
        name: "CVE-2019-15026: `stats conns` reads behind an address",
        sends: Some("connections"),
        has_long_path: true,
    },
    Bug {
        name: "after CVE-2021-37519: a file with too many passwords, stack overflow",
        sends: None,
        has_long_path: false,
    },
];

/// Whether a build has an atom.
type IsKept = fn(&Value) -> bool;

/// The files of the benchmark.
struct Files {
    /// The folder with memcached and its builds.
    folder: PathBuf,
    /// The client.
    load: PathBuf,
    /// The folder in which memcached was built, which its messages name.
    sources: String,
}

impl Bench {
    pub fn harden(&self, text: &mut String) -> Result<()> {
        let files = self.memcached()?;
        let step = |words: &[&str]| {
            let mut command = Command::new(&self.everett);
            command.current_dir(&files.folder).arg("harden").args(words);
            // 1 is a build that exceeds its budget.
            let output = command.output()?;
            match output.status.code() {
                Some(0 | 1) => Ok(()),
                _ => bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)),
            }
        };
        step(&["instrument", "memcached"])?;
        step(&["atoms", "memcached"])?;
        let workload = ["--workload", "./bench.sh", "--rounds", ROUNDS, "memcached"];
        step(&[&["estimate"], &workload[..]].concat())?;
        let estimates = files.read("memcached.harden/estimates.json")?;
        let full = number(&estimates, "overhead_full")?;
        let residual = number(&estimates, "residual_overhead")?;
        let mut wanted = full * SHARE;
        let mut made = Value::Null;
        for _ in 0..TRIES {
            let budget = format!("{:.3}%", wanted.max(0.0) * 100.0);
            step(&["select", "--budget", &budget, "memcached"])?;
            step(&[&["activate"], &workload[..]].concat())?;
            made = files.read("memcached.hard.json")?;
            let seen = number(&made, "overhead_selected")?;
            if seen <= full * SHARE {
                break;
            }
            wanted -= seen - full * SHARE;
        }
        let elastic = number(&made, "overhead_selected")?;
        writeln!(
            text,
            "memcached under load ({REQUESTS} requests, {ROUNDS} runs of each build in turns): processor time of the\n\
             server over that of the program without checks.\n\n\
             | build | overhead | checks | in functions with past bugs | bugs stopped |\n|---|---|---|---|---|"
        )?;
        let atoms = made["atoms"].as_array().context("atoms")?;
        let builds: [(&str, &str, f64, IsKept); 3] = [
            ("no checks", "memcached.harden/none", residual, |_| false),
            ("all checks", "memcached.harden/full", full, |_| true),
            ("selected", "memcached.hard", elastic, |atom| {
                atom["kept"] == true
            }),
        ];
        let mut details = String::new();
        for (name, program, overhead, is_kept) in builds {
            let (kept, known, all_known) = counts(atoms, is_kept);
            let stopped = files.stopped(program, &mut details)?;
            writeln!(
                text,
                "| {name} | {:.1} % | {kept} of {} | {known} of {all_known} | {stopped} of {} |",
                overhead * 100.0,
                atoms.len(),
                BUGS.len()
            )?;
        }
        writeln!(
            text,
            "\nThe selected build takes {:.2} of the overhead of the full one (wanted: at most {SHARE}; the paper:\n7 % of \
             28 %).\n\n{details}",
            elastic.max(0.0) / full
        )?;
        Ok(())
    }

    /// Builds memcached with its bugs, the client and the workload.
    fn memcached(&self) -> Result<Files> {
        let folder = self.work.join("harden");
        std::fs::create_dir_all(&folder)?;
        let built = self.target("memcached-bugs")?;
        for name in ["memcached", "memcached.bc"] {
            std::fs::copy(built.join(name), folder.join(name))?;
        }
        let load = self.work.join("memcached_load");
        let source = self.root.join("benches/programs/memcached_load.c");
        let mut gcc = Command::new("gcc");
        succeed(gcc.arg("-O2").arg("-o").arg(&load).arg(source))?;
        let script = format!(
            "#!/bin/sh\n\"$1\" -u root -s load.socket -t 2 -m 64 & server=$!\n\
             {} load.socket {REQUESTS}; status=$?\nkill $server; wait $server\nexit $status\n",
            load.display()
        );
        let path = folder.join("bench.sh");
        std::fs::write(&path, script)?;
        succeed(Command::new("chmod").arg("+x").arg(&path))?;
        let passwords: String = (0..20)
            .map(|at| format!("user{at}:password{at}\n"))
            .collect();
        std::fs::write(folder.join("passwords"), passwords)?;
        Ok(Files {
            folder,
            load,
            sources: format!("{}/work/memcached/", built.display()),
        })
    }
}

impl Files {
    fn read(&self, name: &str) -> Result<Value> {
        Ok(serde_json::from_slice(&std::fs::read(
            self.folder.join(name),
        )?)?)
    }

    /// Returns the number of bugs that a build stops, and appends what it says.
    fn stopped(&self, program: &str, details: &mut String) -> Result<usize> {
        let mut count = 0;
        for bug in &BUGS {
            let said = self.trigger(program, bug)?;
            let line = said.lines().find(|line| line.starts_with("everett: "));
            count += usize::from(line.is_some());
            if let Some(line) = line.filter(|_| program.ends_with(".hard")) {
                let line = line.replace(&self.sources, "");
                let line = line.split(", address").next().unwrap_or_default();
                writeln!(details, "- {}:\n  `{line}`", bug.name)?;
            }
        }
        Ok(count)
    }

    /// Triggers a bug, and returns what the server prints.
    fn trigger(&self, program: &str, bug: &Bug) -> Result<String> {
        let socket = match bug.has_long_path {
            true => "a-long-path-of-a-socket-that-fills-more-than-an-address-of-the-internet",
            false => "bug.socket",
        };
        let _ = std::fs::remove_file(self.folder.join(socket));
        let mut server = Command::new(self.folder.join(program));
        server.current_dir(&self.folder).stderr(Stdio::piped());
        server.args(["-u", "root", "-s", socket, "-t", "1"]);
        if bug.sends.is_none() {
            server.args(["-Y", "passwords"]);
        }
        let mut server = server.spawn()?;
        if let Some(sends) = bug.sends {
            // It fails if the server is stopped.
            let mut client = Command::new(&self.load);
            client.current_dir(&self.folder).args([socket, sends]);
            client.stderr(Stdio::null()).status()?;
        }
        let until = Instant::now() + Duration::from_secs(2);
        while server.try_wait()?.is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        // One that has ended cannot be killed.
        let _ = server.kill();
        let output = server.wait_with_output()?;
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn number(value: &Value, key: &str) -> Result<f64> {
    value[key]
        .as_f64()
        .with_context(|| format!("{key} is missing"))
}

/// Returns the number of checks that are kept, and of those in functions with past bugs the number
/// that is kept and of all.
fn counts(atoms: &[Value], is_kept: IsKept) -> (usize, usize, usize) {
    let is_known = |atom: &&Value| {
        let function = atom["function"].as_str().unwrap_or_default();
        KNOWN.contains(&function)
    };
    let kept = atoms.iter().filter(|atom| is_kept(atom)).count();
    let known: Vec<&Value> = atoms.iter().filter(is_known).collect();
    let known_kept = known.iter().filter(|atom| is_kept(atom)).count();
    (kept, known_kept, known.len())
}
