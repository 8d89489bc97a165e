//! Programs of coreutils with symbolic arguments, beside KLEE's recorded figures.

use anyhow::Result;
use std::fmt::Write;

use crate::{Bench, KLEE_CALIBRATION};

/// A program with what is unknown to it.
struct Tool {
    program: &'static str,
    /// Arguments after the program.
    inputs: &'static [&'static str],
    /// KLEE's paths, and the seconds that they took: depth first, its fastest for all of them. Its
    /// libc is another one, so the number of all paths need not be equal.
    klee: Option<(u64, f64)>,
}

/// Two arguments of up to four characters, and options as in KLEE's documentation.
const ARGUMENTS: &[&str] = &["--sym-args", "0", "2", "4"];
/// The same, and a file of eight unknown bytes.
const WITH_FILE: &[&str] = &["--sym-args", "0", "2", "4", "--sym-files", "1", "8"];

const fn tool(program: &'static str, klee: Option<(u64, f64)>) -> Tool {
    Tool {
        program,
        inputs: ARGUMENTS,
        klee,
    }
}

const TOOLS: &[Tool] = &[
    tool("echo", Some((10_894, 12.4))),
    tool("printf", Some((7_746, 60.0))),
    tool("test", Some((4_692, 60.0))),
    Tool {
        inputs: WITH_FILE,
        ..tool("wc", Some((32_678, 60.0)))
    },
    tool("base64", None),
    tool("cat", None),
    tool("tr", None),
    tool("cut", None),
    tool("expr", None),
    tool("seq", None),
    tool("od", None),
];

/// Time limit of one exploration.
const LONGEST: &str = "60s";

impl Bench {
    /// Explores the programs for a minute each, depth first and with the default searchers.
    pub(crate) fn coreutils(&self, text: &mut String) -> Result<()> {
        let scale = self.calibrate()? / KLEE_CALIBRATION;
        writeln!(
            text,
            "Paths a second of processor time; KLEE's times are multiplied by {scale:.2}. \
             Built at -O1, no tests, {LONGEST} each.\n\n\
             | program | KLEE | depth first | times faster | default | times faster | complete | lines covered: depth first, default |\n\
             |---|---|---|---|---|---|---|---|"
        )?;
        for tool in TOOLS {
            let row = self.tool_row(tool, scale)?;
            eprintln!("{row}");
            writeln!(text, "{row}")?;
        }
        Ok(())
    }

    fn tool_row(&self, tool: &Tool, scale: f64) -> Result<String> {
        let klee = tool.klee.map(|(paths, time)| paths as f64 / (time * scale));
        let work = self.prepare("coreutils", None)?;
        let program = format!("./{}", tool.program);
        let (mut rates, mut lines, mut complete) = (Vec::new(), Vec::new(), Vec::new());
        for search in [&["--search", "dfs"][..], &[]] {
            let limits = ["--max-time", LONGEST, "--no-tests", "--no-confirm"];
            let words = [&limits, search, &[&program], tool.inputs].concat();
            let run = self.explore_in(&work, &words)?;
            let paths = run.summary["paths"]["completed"].as_u64().unwrap_or(0);
            let rate = paths as f64 / run.processor.max(0.01);
            let faster = klee.map_or("–".to_owned(), |klee| format!("{:.1}", rate / klee));
            rates.push(format!("{paths} paths, {rate:.0} | {faster}"));
            lines.push(run.summary["coverage"]["lines_covered"].to_string());
            complete.push(if run.summary["complete"] == true {
                "yes"
            } else {
                "no"
            });
        }
        let klee = klee.map_or("–".to_owned(), |klee| format!("{klee:.0}"));
        Ok(format!(
            "| {} | {klee} | {} | {} | {} |",
            tool.program,
            rates.join(" | "),
            complete.join(", "),
            lines.join(", "),
        ))
    }
}
