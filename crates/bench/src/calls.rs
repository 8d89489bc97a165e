//! Speed of the model's system calls on concrete data.

use anyhow::Result;
use std::fmt::Write;
use std::process::{Command, Stdio};

use crate::{Bench, RUNS, seconds_of, succeed};

/// Number of round trips of the ping-pong; each side reads and writes once.
const ROUNDS: u32 = 100_000;
const CALLS_A_ROUND: u32 = 4;
const MIB: usize = 256;

impl Bench {
    pub fn calls(&self, text: &mut String) -> Result<()> {
        for (kind, what) in [("tcp", "a TCP connection"), ("pipe", "pipes")] {
            let rate = self.ping_pong(kind)?;
            writeln!(
                text,
                "ping-pong of two processes over {what}: {rate:.0} system calls a second (wanted: over 300000)"
            )?;
        }
        let reading = self.reading()?;
        writeln!(
            text,
            "reading a file of the disk in pieces of 4 KiB: {reading:.0} MiB/s (wanted: over 500)"
        )?;
        Ok(())
    }

    fn ping_pong(&self, kind: &str) -> Result<f64> {
        self.build("ping_pong", "-O2")?;
        let program = self.work.join("ping_pong");
        let time = |rounds: u32| {
            let mut exec = Command::new(&self.everett);
            exec.arg("exec").arg(&program).arg(kind);
            seconds_of(exec.arg(rounds.to_string()))
        };
        let mut best = f64::MAX;
        for _ in 0..RUNS {
            best = best.min(time(ROUNDS)? - time(0)?);
        }
        Ok(f64::from(ROUNDS * CALLS_A_ROUND) / best.max(1e-9))
    }

    /// Returns the throughput in MiB/s of a program that reads a file of the disk in pieces of 4
    /// KiB.
    pub fn reading(&self) -> Result<f64> {
        self.build("read_file", "-O2")?;
        let program = self.work.join("read_file");
        let data = self.work.join("data");
        std::fs::write(&data, vec![b'x'; MIB << 20])?;
        let time = |path: &str| {
            let mut exec = Command::new(&self.everett);
            exec.arg("exec").arg("--ro");
            exec.arg(format!("{}=/data", data.display()));
            seconds_of(exec.arg(&program).arg(path).stdout(Stdio::null()))
        };
        let mut best = f64::MAX;
        for _ in 0..RUNS {
            // Subtract the start-up time, measured by reading an empty file.
            best = best.min(time("/data")? - time("/dev/null")?);
        }
        succeed(Command::new("rm").arg(&data))?;
        Ok(MIB as f64 / best.max(1e-9))
    }
}
