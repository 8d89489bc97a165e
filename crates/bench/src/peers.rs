//! Live peers: the time that a program takes to send much to a peer whose communication is
//! recorded, beside the same peer as a host of the world.

use anyhow::{Result, bail};
use std::fmt::Write;
use std::process::Command;

use crate::{Bench, RUNS, succeed};

const BYTES: u32 = 100_000_000;
/// Number of bytes per operation, and the slowdown by the cache of the paper over the plain virtual
/// machine.
const ROWS: [(u32, f64); 3] = [(100, 6.7), (1000, 2.2), (10_000, 1.6)];

impl Bench {
    pub fn peers(&self, text: &mut String) -> Result<()> {
        self.build("peer_sender", "-O2")?;
        self.build("peer_sink", "-O2")?;
        let source = self.root.join("benches/programs/peer_sink.c");
        let live = self.work.join("live_sink");
        succeed(
            Command::new("gcc")
                .arg("-O2")
                .arg("-o")
                .arg(&live)
                .arg(source),
        )?;
        writeln!(
            text,
            "100 MB to a peer, seconds:\n\n\
             | bytes an operation | explored peer | live and recorded | times slower | paper | wanted |\n\
             |---|---|---|---|---|---|"
        )?;
        for (size, paper) in ROWS {
            let explored = self.sending(size, "[host.sink]\nprogram = \"./peer_sink\"\n")?;
            let live = self.sending(
                size,
                "[peer.sink]\ncommand = [\"./live_sink\", \"{port}\"]\nlisten = \"127.0.0.1:0\"\n\
                 port = 7000\nmax_bytes = \"1G\"\n",
            )?;
            writeln!(
                text,
                "| {size} | {explored:.2} | {live:.2} | {:.2} | {paper} | 1.5 |",
                live / explored
            )?;
        }
        Ok(())
    }

    fn sending(&self, size: u32, peer: &str) -> Result<f64> {
        let scenario = format!(
            "[host.sender]\nprogram = \"./peer_sender\"\nargs = [\"{BYTES}\", \"{size}\"]\n\
             start = \"10ms\"\nexpect = \"exit 0\"\n{peer}address = \"10.0.0.7\"\n"
        );
        let file = self.work.join("peer.toml");
        std::fs::write(&file, scenario)?;
        let mut best = f64::MAX;
        for _ in 0..RUNS {
            let out = self.work.join(format!("out-{}", self.number()));
            let mut run = Command::new(&self.everett);
            run.args(["run", "--quiet", "--allow-live", "--no-confirm", "--out"]);
            let run = self.measure(run.arg(&out).arg(&file), &out)?;
            if run.summary["complete"] != true || run.summary["findings"] != serde_json::json!([]) {
                bail!("the peer does not get all: {}", run.summary["findings"]);
            }
            best = best.min(run.seconds);
        }
        Ok(best)
    }
}
