//! Speed of native programs under the model.

use anyhow::{Context, Result};
use serde_json::Value;
use std::fmt::Write;
use std::process::Command;

use crate::{Bench, RUNS, seconds_of, succeed};

/// Number of system calls of one run.
const CALLS: u32 = 100_000;
/// Number of runs of a client and a server.
const PAIRS: u32 = 500;
/// Number of system calls of the replayed trace.
const EVENTS: u32 = 10_000;

impl Bench {
    pub fn native(&self, text: &mut String) -> Result<()> {
        self.build("native_calls", "-O2")?;
        self.build("client_server", "-O2")?;
        let mut best = f64::MAX;
        for _ in 0..RUNS {
            best = best.min(self.native_calls(CALLS)? - self.native_calls(0)?);
        }
        let rate = f64::from(CALLS) / best.max(1e-9);
        writeln!(
            text,
            "native system calls under the model: {rate:.0} a second (wanted: over 100000)"
        )?;
        let rate = self.pairs()?;
        writeln!(
            text,
            "native runs of a client and a server on one core: {rate:.0} a second (wanted: over 200)"
        )?;
        let seconds = self.replay_of_many_events()?;
        writeln!(
            text,
            "replay of a trace of {EVENTS} events: {seconds:.2} s (wanted: under 2)"
        )?;
        Ok(())
    }

    fn native_calls(&self, count: u32) -> Result<f64> {
        let mut native = Command::new(&self.everett);
        native.arg("native").arg(self.work.join("native_calls"));
        seconds_of(native.arg(count.to_string()))
    }

    fn pairs(&self) -> Result<f64> {
        let mut best = 0.0f64;
        for round in 0..RUNS {
            let out = self.work.join(format!("pairs-{round}"));
            let mut native = Command::new(&self.everett);
            native.args(["native", "--runs", &PAIRS.to_string(), "--out"]);
            succeed(native.arg(&out).arg(self.work.join("client_server")))?;
            let summary: Value = serde_json::from_slice(&std::fs::read(out.join("summary.json"))?)?;
            let seconds = summary["wall_seconds"].as_f64().context("a time")?;
            best = best.max(f64::from(PAIRS) / seconds);
        }
        Ok(best)
    }

    fn replay_of_many_events(&self) -> Result<f64> {
        let out = self.work.join("events");
        let mut run = Command::new(&self.everett);
        run.args(["run", "--all-tests", "--out"]).arg(&out);
        run.arg(self.work.join("native_calls"));
        succeed(run.arg(EVENTS.to_string()))?;
        let mut best = f64::MAX;
        for _ in 0..RUNS {
            let mut replay = Command::new(&self.everett);
            best = best.min(seconds_of(replay.arg("replay").arg(&out))?);
        }
        Ok(best)
    }
}
