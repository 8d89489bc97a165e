//! Worlds of several hosts: the tables of Dzhumerov's thesis and of SDE beside ours, from
//! the scenarios under `examples/`.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::servers::copy;
use crate::{Bench, Measured, RUNS, succeed};

/// Maximum duration of a run that is repeated.
const SHORT_SECONDS: f64 = 3.0;
/// Time limit of one run; runs of the thesis took up to half an hour.
const LONGEST: &str = "120s";
/// Time limit of a grid; SDE's was ten hours.
const LONGEST_GRID: &str = "60s";
const MOST_MEMORY: &str = "3G";

/// Number of clients, and the thesis's seconds and MiB.
const NETWORK_SIZES: [(u32, f64, f64); 8] = [
    (1, 4.5, 24.5),
    (2, 5.1, 24.8),
    (4, 5.0, 24.8),
    (8, 5.0, 25.3),
    (16, 5.4, 26.0),
    (32, 6.6, 27.3),
    (64, 12.0, 30.4),
    (128, 33.5, 36.6),
];
const PACKETS: u32 = 128;

/// The thesis's figures for a run.
struct Reported {
    processes: u32,
    seconds: f64,
    memory: f64,
}

const fn reported(processes: u32, seconds: f64, memory: f64) -> Reported {
    Reported {
        processes,
        seconds,
        memory,
    }
}

impl Reported {
    fn cells(&self) -> String {
        format!("{} | {} | {}", self.processes, self.seconds, self.memory)
    }
}

/// Number of clients, and the thesis's figures for 0, 1, 2 and 3 lost packets.
const LOSSES: [(u32, [Reported; 4]); 4] = [
    (
        1,
        [
            reported(2, 0.3, 23.7),
            reported(8, 0.3, 23.7),
            reported(8, 0.3, 23.7),
            reported(8, 0.4, 27.7),
        ],
    ),
    (
        2,
        [
            reported(3, 0.5, 23.9),
            reported(59, 1.17, 24.7),
            reported(68, 1.2, 24.7),
            reported(68, 1.3, 24.7),
        ],
    ),
    (
        3,
        [
            reported(4, 0.6, 23.9),
            reported(344, 6.9, 27.8),
            reported(469, 8.3, 28.1),
            reported(500, 9.2, 27.8),
        ],
    ),
    (
        5,
        [
            reported(6, 0.9, 24.2),
            reported(9940, 401.0, 93.1),
            reported(18917, 801.7, 138.3),
            reported(24510, 1010.8, 161.6),
        ],
    ),
];

/// Number of further clients with 3 lost packets, and the target in seconds; the thesis has no
/// figures.
const MORE_LOSSES: [(u32, f64); 2] = [(6, 4.0), (7, 20.0)];

/// Number of clients, and the thesis's figures with concrete and with symbolic packets.
const SYMBOLIC: [(u32, [Reported; 2]); 6] = [
    (1, [reported(2, 0.32, 23.5), reported(36, 2.0, 25.3)]),
    (2, [reported(3, 0.4, 23.7), reported(54, 4.1, 26.8)]),
    (5, [reported(6, 0.8, 24.0), reported(108, 10.4, 30.4)]),
    (10, [reported(11, 1.57, 24.8), reported(198, 21.62, 35.8)]),
    (20, [reported(21, 3.06, 26.0), reported(378, 44.4, 46.9)]),
    (50, [reported(51, 10.1, 29.7), reported(918, 123.9, 81.8)]),
];

/// Transferred MiB, and the thesis's KiB per second.
const TRANSFERS: [(u32, f64); 3] = [(1, 7.3), (2, 7.2), (4, 7.6)];

/// The thesis's processes and seconds for 0 to 3 symbolic characters.
const CHARACTERS: [(u32, f64); 4] = [(2, 1.2), (35, 158.0), (442, 1658.0), (618, 1814.0)];

/// The thesis's coverage, processes, seconds and MiB for 0 to 2 failing system calls.
const FAILURES: [(f64, u32, f64, u32); 3] = [
    (40.8, 2, 1.2, 31),
    (45.7, 177, 11.6, 38),
    (45.7, 2792, 733.0, 1144),
];

/// Nodes per side of the largest grid, and the target in seconds for it under SDS.
const LARGEST_GRID: (u32, f64) = (14, 3.0);

/// SDE's figures for 10x10 nodes: mapping, states, time, memory.
const GRID: [(&str, &str); 3] = [
    ("sds", "4,159 states, 19 min, 1.6 GB"),
    ("cow", "30,464 states, 1 h 38, 3.4 GB"),
    ("cob", "1,025,700 states, aborted after 9 h 39, 38.1 GB"),
];

/// Grids that are also explored under a memory limit that makes them spill: nodes per side, mapping,
/// limit, and the number of states without a limit.
const SPILLED_GRIDS: [(u32, &str, &str, u64); 2] =
    [(5, "cob", "300M", 102_400), (10, "sds", "64M", 1_536)];

impl Bench {
    /// Measures all tables.
    pub fn worlds(&self, text: &mut String) -> Result<()> {
        self.network_sizes(text)?;
        self.losses(text)?;
        self.symbolic_packets(text)?;
        self.two_phase_commit(text)?;
        self.transfers(text)?;
        self.characters(text)?;
        self.failures(text)?;
        self.grids(text)?;
        self.spilled_grids(text)
    }

    fn network_sizes(&self, text: &mut String) -> Result<()> {
        let folder = self.example("echo")?;
        text.push_str(
            "\n### Echo server, 32 KiB each way in packets of 256 bytes\n\n\
             | clients | seconds | MiB | Dzhumerov: s | MiB |\n|---|---|---|---|---|\n",
        );
        for (clients, seconds, memory) in NETWORK_SIZES {
            let packets = (PACKETS / clients).to_string();
            let run = self.world(
                &folder,
                "size.toml",
                &[
                    format!("host.client.count={clients}"),
                    arguments("client", &["10.0.0.1", "7000", &packets, "256"]),
                ],
                &[],
            )?;
            self.row(
                text,
                &format!(
                    "| {clients} | {} | {seconds} | {memory} |",
                    time_and_memory(&run)
                ),
            )?;
        }
        Ok(())
    }

    fn losses(&self, text: &mut String) -> Result<()> {
        let folder = self.example("echo")?;
        text.push_str(
            "\n### Echo server, three packets a client, packets lost\n\n\
             | clients | most lost | worlds | states | seconds | MiB | wanted: s | Dzhumerov: processes | s | MiB |\n\
             |---|---|---|---|---|---|---|---|---|---|\n",
        );
        for (clients, reported) in LOSSES {
            for (most, reported) in (0..).zip(reported) {
                let cells = format!("– | {}", reported.cells());
                self.loss(text, &folder, clients, most, &cells)?;
            }
        }
        for (clients, wanted) in MORE_LOSSES {
            let cells = format!("{wanted} | – | – | –");
            self.loss(text, &folder, clients, 3, &cells)?;
        }
        Ok(())
    }

    /// Writes a row of the table of losses, including the cells that are not measured.
    fn loss(
        &self,
        text: &mut String,
        folder: &Path,
        clients: u32,
        most: u32,
        cells: &str,
    ) -> Result<()> {
        let settings = [
            format!("host.client.count={clients}"),
            format!("fault.lost.most={most}"),
            "fault.lost.per=causal".to_owned(),
        ];
        let run = self.world(folder, "losses.toml", &settings, &[])?;
        let (counts, measured) = (counts(&run), time_and_memory(&run));
        self.row(
            text,
            &format!("| {clients} | {most} | {counts} | {measured} | {cells} |"),
        )
    }

    fn symbolic_packets(&self, text: &mut String) -> Result<()> {
        let folder = self.example("echo")?;
        text.push_str(
            "\n### Echo server that compares three symbolic packets with fixed strings\n\n\
             | clients | strings | worlds | states | seconds | MiB | Dzhumerov: processes | s | MiB |\n\
             |---|---|---|---|---|---|---|---|---|\n",
        );
        for (clients, [concrete, symbolic]) in &SYMBOLIC {
            for words in ["concrete", "1", "2"] {
                let (marked, match_words) = match words {
                    "concrete" => ("0", "2"),
                    _ => ("{(n-i)/n*3}", words),
                };
                let settings = [
                    format!("host.client.count={clients}"),
                    arguments("client", &["10.0.0.1", "7000", "3", "8", marked]),
                    arguments("server", &["7000", "--match", match_words]),
                ];
                let run = self.world(&folder, "symbolic.toml", &settings, &[])?;
                let reported = match words {
                    "concrete" => concrete.cells(),
                    _ => symbolic.cells(),
                };
                let (counts, measured) = (counts(&run), time_and_memory(&run));
                self.row(
                    text,
                    &format!("| {clients} | {words} | {counts} | {measured} | {reported} |"),
                )?;
            }
        }
        Ok(())
    }

    fn two_phase_commit(&self, text: &mut String) -> Result<()> {
        let folder = self.example("two-phase-commit")?;
        let all = self.world(&folder, "symbolic.toml", &[], &["--no-confirm"])?;
        let broken = all.summary["findings"].as_array().map_or(0, Vec::len);
        let in_invariants = all.summary["invariant_seconds"].as_f64().unwrap_or(0.0);
        // The same scenario without invariants.
        let checked = std::fs::read_to_string(folder.join("symbolic.toml"))?;
        let unchecked = checked.split("[check.").next().unwrap_or_default();
        std::fs::write(folder.join("unchecked.toml"), unchecked)?;
        let without = self.world(&folder, "unchecked.toml", &[], &["--no-confirm"])?;
        let found = self.world(&folder, "scenario.toml", &[], &[])?;
        let confirmed = found.summary["findings"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one["confirmed"] == "confirmed"));
        write!(
            text,
            "\n### Two-phase commit\n\n| what | measured | Dzhumerov |\n|---|---|---|\n\
             | 5 committers, all symbolic, invariants on | {} worlds, {} states, {broken} places with violations, {:.3} s, {} MiB | 3,472 processes, 1,675 violations, 17 s, 135 MiB |\n\
             | … time in invariants | {:.1} %; {:.3} s with them and what is told of them, {:.3} s without | 5.8 % |\n\
             | invariant broken by a failed send | found{}, {:.2} s | found, no replay |\n",
            count(&all, "worlds"),
            count(&all, "states_total"),
            all.seconds,
            all.peak_kib / 1024,
            100.0 * in_invariants / all.seconds,
            all.seconds,
            without.seconds,
            if confirmed {
                " and confirmed natively"
            } else {
                ", not confirmed"
            },
            found.seconds,
        )?;
        Ok(())
    }

    fn transfers(&self, text: &mut String) -> Result<()> {
        let folder = self.example("echo")?;
        text.push_str(
            "\n### Rates\n\n| what | measured | wanted | Dzhumerov |\n|---|---|---|---|\n",
        );
        let reading = self.reading()?;
        let row = format!(
            "| reading a file of the disk, 4 KiB a read | {reading:.0} MiB/s | 500 MiB/s | 2.2 MiB/s |"
        );
        self.row(text, &row)?;
        for (size, rate) in TRANSFERS {
            // As many packets as in the thesis's table; every second one is an echo.
            let packets = (size * 2048).to_string();
            let settings = [
                "host.client.count=1".to_owned(),
                arguments("client", &["10.0.0.1", "7000", &packets, "256"]),
            ];
            let run = self.world(&folder, "size.toml", &settings, &[])?;
            let row = format!(
                "| {size} MiB over the network in {} packets of 256 bytes | {:.1} MiB/s | 20 MiB/s | {rate} KiB/s |",
                size * 4096,
                f64::from(size) / run.seconds
            );
            self.row(text, &row)?;
        }
        Ok(())
    }

    fn characters(&self, text: &mut String) -> Result<()> {
        text.push_str(
            "\n### Web servers, one request with symbolic characters (his: Boa)\n\n\
             | server | characters | worlds | states | forks | seconds | MiB | lines covered | Dzhumerov: processes | s |\n\
             |---|---|---|---|---|---|---|---|---|---|\n",
        );
        for server in ["mini-httpd", "lighttpd"] {
            let folder = self.example(server)?;
            for (characters, (processes, seconds)) in CHARACTERS.into_iter().enumerate() {
                let settings = match characters {
                    0 => vec!["fault.any-name.most=0".to_owned()],
                    _ => vec![format!("fault.any-name.length={characters}")],
                };
                let row = self.request(&folder, &settings)?;
                self.row(
                    text,
                    &format!("| {server} | {characters} | {row} | {processes} | {seconds} |"),
                )?;
                if characters > 0 {
                    let printable = "fault.any-name.printable=true".to_owned();
                    let settings = [settings, vec![printable]].concat();
                    let row = self.request(&folder, &settings)?;
                    self.row(
                        text,
                        &format!("| {server} | {characters}, printable | {row} | – | – |"),
                    )?;
                }
            }
        }
        Ok(())
    }

    fn request(&self, folder: &Path, settings: &[String]) -> Result<String> {
        let run = self.world(folder, "scenario.toml", settings, &["--no-confirm"])?;
        Ok(format!(
            "{} | {} | {} | {} of {}",
            counts(&run),
            count(&run, "forks"),
            time_and_memory(&run),
            run.summary["coverage"]["lines_covered"],
            run.summary["coverage"]["lines"],
        ))
    }

    fn failures(&self, text: &mut String) -> Result<()> {
        text.push_str(
            "\n### Web servers, one request, system calls that fail (his: Boa)\n\n\
             | server | most failing | worlds | states | forks | seconds | MiB | lines covered | Dzhumerov: processes | s | MiB | coverage |\n\
             |---|---|---|---|---|---|---|---|---|---|---|---|\n",
        );
        for server in ["mini-httpd", "lighttpd"] {
            let folder = self.example(server)?;
            for (most, (coverage, processes, seconds, memory)) in FAILURES.into_iter().enumerate() {
                let settings = [format!("host.server.faults={most}")];
                let run =
                    self.world(&folder, "failing-calls.toml", &settings, &["--no-confirm"])?;
                let row = format!(
                    "| {server} | {most} | {} | {} | {} | {} of {} | {processes} | {seconds} | {memory} | {coverage} % |",
                    counts(&run),
                    count(&run, "forks"),
                    time_and_memory(&run),
                    run.summary["coverage"]["lines_covered"],
                    run.summary["coverage"]["lines"],
                );
                self.row(text, &row)?;
            }
        }
        Ok(())
    }

    fn grids(&self, text: &mut String) -> Result<()> {
        let folder = self.example("sde-grid")?;
        text.push_str(
            "\n### Grids of radios; nodes on the way and beside it may miss the first packet that reaches them (SDE)\n\n\
             | grid | mapping | worlds | states | most at once | dstates | seconds | MiB | wanted: s | SDE |\n\
             |---|---|---|---|---|---|---|---|---|---|\n",
        );
        // With `all`, every node that hears a packet may miss it, not only those on the route and
        // directly beside it.
        let (largest, wanted) = LARGEST_GRID;
        for (size, who) in [(5, ""), (7, ""), (10, ""), (10, "all"), (largest, "")] {
            let name = grid(&folder, size, who)?;
            // The other mappings take long and show nothing new.
            let mappings = if size == largest { &GRID[..1] } else { &GRID };
            for (mapping, reported) in mappings {
                let options = [
                    "--mapping",
                    mapping,
                    "--max-time",
                    LONGEST_GRID,
                    "--max-memory",
                    MOST_MEMORY,
                ];
                let run = self.world(&folder, &format!("{name}.toml"), &[], &options)?;
                let worlds = match run.summary["complete"] == true {
                    true => count(&run, "worlds"),
                    false => format!(
                        "stopped: {}",
                        run.summary["limits_hit"][0].as_str().unwrap_or("?")
                    ),
                };
                let row = format!(
                    "| {size}x{size} {who} | {mapping} | {worlds} | {} | {} | {} | {} | {} | {} |",
                    count(&run, "states_total"),
                    count(&run, "states_peak"),
                    count(&run, "dstates"),
                    time_and_memory(&run),
                    match size == largest {
                        true => wanted.to_string(),
                        false => "–".to_owned(),
                    },
                    if name == "10x10" { reported } else { "–" },
                );
                self.row(text, &row)?;
                self.keep_curve(&run.out, &format!("{name}-{mapping}"))?;
            }
        }
        Ok(())
    }

    /// Explores grids under a memory limit. Fails if a limit costs a state.
    fn spilled_grids(&self, text: &mut String) -> Result<()> {
        let folder = self.example("sde-grid")?;
        text.push_str(
            "\n### Grids of radios under a memory limit; states are spilled to disk\n\n\
             | grid | mapping | limit | worlds | states | seconds | MiB | wanted: states |\n\
             |---|---|---|---|---|---|---|---|\n",
        );
        for (size, mapping, limit, wanted) in SPILLED_GRIDS {
            let name = grid(&folder, size, "")?;
            let options = ["--mapping", mapping, "--max-memory", limit];
            let run = self.world(&folder, &format!("{name}.toml"), &[], &options)?;
            let (is_complete, states) =
                (run.summary["complete"] == true, count(&run, "states_total"));
            anyhow::ensure!(
                is_complete && states == wanted.to_string(),
                "{name}, {mapping}, {limit}: {states} states of {wanted}"
            );
            let row = format!(
                "| {size}x{size} | {mapping} | {limit} | {} | {states} | {} | {wanted} |",
                count(&run, "worlds"),
                time_and_memory(&run),
            );
            self.row(text, &row)?;
        }
        Ok(())
    }

    /// Keeps states and memory over time for a plot.
    fn keep_curve(&self, out: &Path, name: &str) -> Result<()> {
        let curves = self.root.join("benches/curves");
        std::fs::create_dir_all(&curves)?;
        let to = curves.join(format!("{name}.csv"));
        std::fs::copy(out.join("mapping.csv"), &to)
            .with_context(|| format!("cannot write {}", to.display()))?;
        Ok(())
    }

    /// Writes a row and shows it at once: some take minutes.
    fn row(&self, text: &mut String, row: &str) -> Result<()> {
        eprintln!("{row}");
        writeln!(text, "{row}")?;
        Ok(())
    }

    /// Returns a copy of an example with its programs, and the programs of the servers that its
    /// scenarios need.
    pub(crate) fn example(&self, name: &str) -> Result<PathBuf> {
        let folder = self.work.join(format!("example-{name}"));
        if folder.exists() {
            return Ok(folder);
        }
        std::fs::create_dir_all(&folder)?;
        copy(&self.root.join("examples").join(name), &folder)?;
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("c") => {
                    let mut build = Command::new(&self.everett);
                    build.args(["cc", "-g", "-O1", "-I"]);
                    build.arg(self.root.join("include")).arg("-o");
                    succeed(build.arg(path.with_extension("")).arg(&path))?;
                }
                Some("toml") => {
                    let text = std::fs::read_to_string(&path)?;
                    let mut needs = text
                        .lines()
                        .filter_map(|line| line.strip_prefix("# needs:"));
                    if let Some(target) = needs.next() {
                        self.put_programs(&self.target(target.trim())?, &folder)?;
                    }
                }
                _ => {}
            }
        }
        Ok(folder)
    }

    /// Explores a scenario. Repeats short runs and keeps the fastest.
    fn world(
        &self,
        folder: &Path,
        scenario: &str,
        settings: &[String],
        options: &[&str],
    ) -> Result<Measured> {
        let mut best: Option<Measured> = None;
        for _ in 0..RUNS {
            let out = self.work.join(format!("out-{}", self.number()));
            let mut run = Command::new(&self.everett);
            run.current_dir(folder).args(["run", "--quiet", "--out"]);
            run.arg(&out).args(options);
            if !options.contains(&"--max-time") {
                run.args(["--max-time", LONGEST]);
            }
            for setting in settings {
                run.args(["--set", setting]);
            }
            let run = self.measure(run.arg(scenario), &out)?;
            let is_long = run.seconds > SHORT_SECONDS;
            if count(&run, "states_total") == "0" {
                bail!("{scenario}: nothing was explored");
            }
            if best.as_ref().is_none_or(|best| run.seconds < best.seconds) {
                best = Some(run);
            }
            if is_long {
                break;
            }
        }
        best.context("no run")
    }
}

/// Writes the scenario of a grid with this many nodes a side into the folder of the example, if it
/// is not there. Returns its name.
pub(crate) fn grid(folder: &Path, size: u32, who: &str) -> Result<String> {
    let name = format!("{size}x{size}{who}");
    let path = folder.join(format!("{name}.toml"));
    if !path.exists() {
        let mut generate = Command::new(folder.join("generate"));
        generate.arg(size.to_string());
        generate.args(Some(who).filter(|who| !who.is_empty()));
        std::fs::write(path, generate.output()?.stdout)?;
    }
    Ok(name)
}

fn arguments(host: &str, words: &[&str]) -> String {
    format!("host.{host}.args={}", Value::from(words))
}

fn time_and_memory(run: &Measured) -> String {
    format!("{:.2} | {}", run.seconds, run.peak_kib / 1024)
}

fn counts(run: &Measured) -> String {
    let worlds = match run.summary["complete"] == true {
        true => count(run, "worlds"),
        false => "stopped".to_owned(),
    };
    format!("{worlds} | {}", count(run, "states_total"))
}

fn count(run: &Measured, key: &str) -> String {
    run.summary[key].to_string()
}
