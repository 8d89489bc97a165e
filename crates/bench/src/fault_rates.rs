//! How fast fault searches are: runs of worlds and tests of real programs a second, with one and two
//! jobs or nodes; and a replicated service with faults of packets, hosts and calls in one space.

use anyhow::{Context, Result, ensure};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use crate::Bench;

/// Runs a second in worlds of the example with two hosts that are aimed at, on two cores.
const AIM: u64 = 900;
/// The space whose worlds are run: most of these faults never happen, but all worlds run to their end.
const WORLDS: &str =
    "host : { client, server } function : { sendto, recvfrom } number : [0, 499] ;";
/// A world of two hosts.
const SCENARIO: &str = r#"
[host.server]
program = "./server"
args = ["7000"]
[host.client]
program = "./client"
args = ["10.0.0.1", "7000", "3", "8"]
"#;
/// The tests of managers do nothing.
const TESTS: u64 = 400;
/// The impact of a violated invariant.
const WORST: u64 = 20;

impl Bench {
    /// Worlds and tests a second.
    pub fn fault_rates(&self, text: &mut String) -> Result<()> {
        let folder = self.work.join("fault-rates");
        std::fs::create_dir_all(&folder)?;
        let echo = self.root.join("examples/echo");
        for file in ["client.c", "server.c"] {
            std::fs::copy(echo.join(file), folder.join(file))?;
        }
        std::fs::write(folder.join("world.toml"), SCENARIO)?;
        self.build_world(&folder, &["client", "server"])?;
        let worlds = format!(
            "space = \"{WORLDS}\"\ninjector = \"model\"\nscenario = \"world.toml\"\nrepetitions = 1\n"
        );
        let tests = format!(
            "space = \"n : [1, {TESTS}] ;\"\ninjector = \"script\"\ntest = 'true $@'\nrepetitions = 1\n"
        );
        writeln!(
            text,
            "Runs a second, from the start of the search to its end (aim in worlds: over {AIM} with two jobs):\n\n\
             | system | 1 job | 2 jobs |\n|---|---|---|"
        )?;
        for (what, search) in [("a world of two hosts", worlds), ("an empty test", tests)] {
            let file = folder.join("search.toml");
            std::fs::write(&file, search)?;
            let rates = [self.rate(&file, "1")?, self.rate(&file, "2")?];
            writeln!(text, "| {what} | {:.0} | {:.0} |", rates[0], rates[1])?;
        }
        writeln!(text)?;
        Ok(())
    }

    fn rate(&self, file: &Path, jobs: &str) -> Result<f64> {
        let out = self.work.join(format!("rate-{}", self.number()));
        let mut command = Command::new(&self.everett);
        command.args(["faults", "run"]).arg(file);
        command.args(["--search", "exhaustive", "--jobs", jobs, "--out"]);
        let output = command.arg(&out).output()?;
        let said = || String::from_utf8_lossy(&output.stderr).into_owned();
        let summary = std::fs::read(out.join("summary.json")).with_context(said)?;
        std::fs::remove_dir_all(&out)?;
        let summary: serde_json::Value = serde_json::from_slice(&summary)?;
        let figure = |name: &str| summary[name].as_f64().context("no figure");
        Ok((figure("scenarios_run")? + figure("other_runs")?) / figure("wall_seconds")?)
    }

    /// Runs until a search finds a scenario that breaks the replicated service of `examples/raft`.
    pub fn replicated_service(&self, text: &mut String) -> Result<()> {
        let folder = self.work.join("fault-raft");
        std::fs::create_dir_all(&folder)?;
        let from = self.root.join("examples/raft");
        for file in ["raft.c", "scenario.toml", "elections.minv", "search.toml"] {
            std::fs::copy(from.join(file), folder.join(file))?;
        }
        self.build_world(&folder, &["raft"])?;
        let search = std::fs::read_to_string(folder.join("search.toml"))?;
        let file = folder.join("until.toml");
        std::fs::write(&file, format!("{search}\n[stop]\nimpact = {WORST}\n"))?;
        writeln!(
            text,
            "Raft in a world, with faults of packets, hosts and calls in one space: runs until two leaders of one term or \
             a crash, mean and deviation:\n\n| search | runs | deviation |\n|---|---|---|"
        )?;
        for name in ["guided", "adaptive", "random"] {
            let (mean, deviation) = self.runs_until_stopped(&file, name, u64::MAX)?;
            writeln!(text, "| {name} | {mean:.1} | {deviation:.1} |")?;
        }
        writeln!(text)?;
        Ok(())
    }

    /// Builds programs of one source file each.
    pub(crate) fn build_world(&self, folder: &Path, programs: &[&str]) -> Result<()> {
        for program in programs {
            let mut build = Command::new(&self.everett);
            build.args(["cc", "-g", "-w", "-o", program, &format!("{program}.c")]);
            let built = build.current_dir(folder).status()?;
            ensure!(built.success(), "{program}.c cannot be built");
        }
        Ok(())
    }
}
