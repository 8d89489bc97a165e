//! Fault searches on a real server with its own client: `examples/faults-memcached`, beside AFEX's
//! figures for Apache httpd (Tables 3.2 and 3.5), and on two versions of it (§3.6.7).

use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use crate::Bench;

/// Number of runs of each search, as in the paper.
const RUNS: &str = "1000";
/// The variable with the path of another version of memcached.
const OTHER: &str = "EVERETT_BENCH_MEMCACHED";

/// A search: its name here, that of its algorithm, whether it has feedback, and AFEX's figures.
const SEARCHES: [(&str, &str, bool, &str); 4] = [
    (
        "guided",
        "guided",
        false,
        "736 failed, 246 crashes, 249 and 4 unique",
    ),
    (
        "guided with feedback",
        "guided",
        true,
        "512 failed, 348 and 7 unique",
    ),
    ("adaptive with feedback", "adaptive", true, "-"),
    (
        "random",
        "random",
        true,
        "238 failed, 21 crashes, 190 and 2 unique",
    ),
];

impl Bench {
    pub fn fault_servers(&self, text: &mut String) -> Result<()> {
        writeln!(
            text,
            "memcached with its own client, {RUNS} runs, beside Apache httpd:\n"
        )?;
        self.faults_of_memcached(Path::new("memcached"), text)?;
        match std::env::var_os(OTHER) {
            Some(other) => self.faults_of_memcached(Path::new(&other), text),
            None => {
                writeln!(text, "Another version: skipped, {OTHER} names none.\n")?;
                Ok(())
            }
        }
    }

    fn faults_of_memcached(&self, program: &Path, text: &mut String) -> Result<()> {
        let version = Command::new(program).arg("-V").output();
        let Some(version) = version.ok().filter(|output| output.status.success()) else {
            writeln!(
                text,
                "{}: skipped, it cannot be run (apt-get install memcached).\n",
                program.display()
            )?;
            return Ok(());
        };
        let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
        writeln!(
            text,
            "| {version} | failed tests | crashes | unique failures | unique crashes | AFEX |\n|---|---|---|---|---|---|"
        )?;
        for (name, algorithm, has_feedback, paper) in SEARCHES {
            let summary = self.search_memcached(program, algorithm, has_feedback)?;
            let results = summary["results"].as_array().map_or(&[][..], Vec::as_slice);
            let failing = |result: &&Value| result["cluster"].is_number();
            let failed: Vec<&Value> = results.iter().filter(failing).collect();
            let crashed = failed
                .iter()
                .filter(|result| result["outcome"] == "crashed");
            let crashed: Vec<&Value> = crashed.copied().collect();
            writeln!(
                text,
                "| {name} | {} | {} | {} | {} | {paper} |",
                failed.len(),
                crashed.len(),
                stacks(&failed),
                stacks(&crashed)
            )?;
        }
        writeln!(text)?;
        Ok(())
    }

    fn search_memcached(
        &self,
        program: &Path,
        algorithm: &str,
        has_feedback: bool,
    ) -> Result<Value> {
        let (from, folder) = (
            self.root.join("examples/faults-memcached"),
            self.work.join("memcached"),
        );
        std::fs::create_dir_all(&folder)?;
        std::fs::copy(from.join("run"), folder.join("run"))?;
        let search = std::fs::read_to_string(from.join("search.toml"))?;
        let more = format!("\n[guided]\nfeedback = {has_feedback}\n");
        std::fs::write(folder.join("search.toml"), search + &more)?;
        let out = self.work.join(format!("out-{}", self.number()));
        let mut command = Command::new(&self.everett);
        command
            .args(["faults", "run"])
            .arg(folder.join("search.toml"));
        command.args([
            "--search", algorithm, "--seed", "1", "--runs", RUNS, "--out",
        ]);
        command.arg(&out).env("MEMCACHED", program);
        let output = command.output()?;
        let said = || String::from_utf8_lossy(&output.stderr).into_owned();
        let summary = std::fs::read(out.join("summary.json")).with_context(said)?;
        std::fs::remove_dir_all(&out)?;
        Ok(serde_json::from_slice(&summary)?)
    }
}

/// Returns the number of different stacks at the injection point.
fn stacks(results: &[&Value]) -> usize {
    let all = results.iter().map(|result| result["stack"].to_string());
    all.collect::<BTreeSet<String>>().len()
}
