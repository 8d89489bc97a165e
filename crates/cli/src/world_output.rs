//! What a run of worlds writes: findings and tests as they come, states over time, and the summary.

use anyhow::{Context, Result};
use everett_engine::{
    SavedFiles, Stopped, Trace, WorldConfig, WorldFinding, WorldListener, Worlds,
};
use everett_report::{Curve, Folder, Panel, plot};
use everett_vm::Image;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::display::{Display, short};
use crate::output::{FindingEntry, SHRINK_TIME, finding_files, readable, written_files};
use crate::run::{RunArgs, clock, memory_peak, memory_used};
use crate::summary::{CoverageTotals, Paths, Weights, line_coverage};
use crate::world_dtest::Tests;
use crate::world_replay::NativeWorld;
use crate::world_shrink::simpler;
use crate::world_trace::WorldTrace;

/// Writes findings and tests as they come.
pub struct Recorder {
    display: Display,
    folder: Folder,
    findings: Vec<FindingEntry>,
    /// Folders of findings and what leads to them.
    traces: Vec<(String, WorldTrace)>,
    tests: u64,
    /// Tests are written as `.dtest`, too.
    dtests: Option<Tests>,
    error: Option<anyhow::Error>,
    /// Rows of `mapping.csv`, and when the next is due.
    samples: String,
    next_sample: Duration,
}

/// Columns of `mapping.csv`.
const COLUMNS: &str = "seconds,virtual_seconds,states,virtual_states,dstates,states_total,forks,copied,united,memory_bytes\n";
/// Most time between its rows; at first they are nearer to each other.
const BETWEEN_SAMPLES: Duration = Duration::from_millis(100);
const LEAST_BETWEEN_SAMPLES: Duration = Duration::from_millis(1);

/// The curves of `mapping.csv`.
fn picture(samples: &str) -> String {
    let column = |name: &str| -> Vec<f64> {
        let at = COLUMNS
            .trim_end()
            .split(',')
            .position(|other| other == name);
        let cell = |line: &str| line.split(',').nth(at?)?.parse().ok();
        samples.lines().skip(1).filter_map(cell).collect()
    };
    let panel = |title: &str, names: &[&str]| Panel {
        title: title.to_owned(),
        curves: names
            .iter()
            .map(|name| Curve {
                name: name.replace('_', " "),
                values: column(name),
            })
            .collect(),
    };
    let panels = [
        panel("states at a time", &["states", "virtual_states"]),
        panel("dstates at a time", &["dstates"]),
        panel(
            "states so far",
            &["states_total", "forks", "copied", "united"],
        ),
        panel("memory (bytes)", &["memory_bytes"]),
    ];
    plot(&column("seconds"), &panels)
}

impl Recorder {
    /// One that has recorded nothing yet.
    pub fn new(args: &RunArgs, config: &WorldConfig, folder: Folder) -> Recorder {
        let dtests = args.writes_dtests();
        Recorder {
            display: Display::new(args.mode(), clock),
            folder,
            findings: Vec::new(),
            traces: Vec::new(),
            tests: 0,
            dtests: dtests.then(|| Tests::of(&config.topology, &config.hosts)),
            error: None,
            samples: COLUMNS.to_owned(),
            next_sample: Duration::ZERO,
        }
    }

    /// Folders of findings and what leads to them.
    pub fn traces(&self) -> &[(String, WorldTrace)] {
        &self.traces
    }

    /// Writes how many states there were when. An error if something could not be written before.
    pub fn write_samples(&mut self, worlds: &Worlds<'_>) -> Result<()> {
        self.sample(worlds);
        if let Some(error) = self.error.take() {
            return Err(error).context("cannot write the results");
        }
        self.folder.write("mapping.csv", self.samples.as_bytes())?;
        let picture = picture(&self.samples);
        self.folder.write("mapping.svg", picture.as_bytes())?;
        Ok(())
    }

    /// Adds to what is told of a finding.
    pub fn add_text(&self, dir: &str, text: &str) -> Result<()> {
        let name = format!("{dir}/finding.txt");
        let path = self.folder.path().join(&name);
        let before = std::fs::read(&path).with_context(|| format!("cannot read {name}"))?;
        let all = [before.as_slice(), text.as_bytes()].concat();
        self.folder.write(&name, &all)?;
        Ok(())
    }

    /// One more row of `mapping.csv`.
    fn sample(&mut self, worlds: &Worlds<'_>) {
        let counted = worlds.world_statistics();
        self.samples.push_str(&format!(
            "{:.3},{:.6},{},{},{},{},{},{},{},{}\n",
            clock().as_secs_f64(),
            worlds.virtual_ns().unwrap_or(0) as f64 / 1e9,
            worlds.states(),
            worlds.table().virtual_states(),
            worlds.table().len(),
            counted.states_total,
            worlds.statistics().forks,
            counted.copies,
            counted.merged,
            memory_used(),
        ));
    }

    fn note(&mut self, written: Result<()>) {
        if let Err(error) = written {
            self.error.get_or_insert(error);
        }
    }

    /// Makes findings simpler, in the time that there is.
    pub fn simplify(
        &mut self,
        config: &WorldConfig,
        images: &[Image],
        until: Duration,
    ) -> Result<()> {
        for at in 0..self.traces.len() {
            let (dir, trace) = &self.traces[at];
            let until = until.min(clock() + SHRINK_TIME);
            if let Some(found) = simpler(config, images, trace, until)? {
                self.write_finding(dir, &found)?;
                self.traces[at].1 = WorldTrace::of(&found);
            }
        }
        Ok(())
    }

    /// Lets findings happen again natively.
    pub fn confirm(&mut self, world: &NativeWorld) -> Result<()> {
        let mut confirmed = 0;
        for (entry, (_, trace)) in self.findings.iter_mut().zip(&self.traces) {
            let verdict = world.confirm(trace)?;
            entry.confirmed = Some(verdict.name().to_owned());
            entry.confirmed_reason = verdict.reason().map(str::to_owned);
            match verdict.reason() {
                None => confirmed += 1,
                Some(why) => {
                    let (dir, name) = (&entry.dir, verdict.name());
                    self.display.say(&format!("{dir}: {name}: {why}"));
                }
            }
        }
        let all = self.findings.len();
        self.display
            .say(&format!("{confirmed} of {all} findings confirmed natively"));
        Ok(())
    }

    /// Writes the files of hosts that are to be written down.
    pub fn write_files(&self, stem: &str, files: &SavedFiles) -> Result<()> {
        for (name, files) in files {
            for (name, bytes) in written_files(&format!("{stem}{name}.fs"), files) {
                self.folder.write(&name, &bytes)?;
            }
        }
        Ok(())
    }

    fn write_dtest(&self, stem: &str, traces: &BTreeMap<String, Trace>) -> Result<()> {
        let files = self
            .dtests
            .iter()
            .flat_map(|tests| tests.files(stem, traces));
        for (name, bytes) in files {
            self.folder.write(&name, &bytes)?;
        }
        Ok(())
    }

    fn write_finding(&self, dir: &str, found: &WorldFinding) -> Result<()> {
        for (name, bytes) in finding_files(&found.finding, &found.host, false) {
            let bytes = match name.as_str() {
                "finding.txt" => [bytes, others(&found.traces, &found.host).into_bytes()].concat(),
                _ => bytes,
            };
            self.folder.write(&format!("{dir}/{name}"), &bytes)?;
        }
        let trace = serde_json::to_vec(&WorldTrace::of(found))?;
        self.folder.write(&format!("{dir}/finding.world"), &trace)?;
        self.write_dtest(&format!("{dir}/finding"), &found.traces)?;
        Ok(())
    }

    pub fn finish(&mut self, summary: &WorldSummary, folder: &Folder) {
        for warning in &summary.warnings {
            self.display.warn(warning);
        }
        let rate = summary.instructions as f64 / summary.wall_seconds.max(1e-9);
        self.display.say(&format!(
            "{}: {} worlds of {} states ({}), {} findings, {} packets, {} instructions ({}/s), {:.2} s",
            if summary.complete { "complete" } else { "not complete" },
            summary.worlds,
            summary.states_total,
            summary.mapping,
            summary.findings.len(),
            summary.packets,
            summary.instructions,
            short(rate),
            summary.wall_seconds,
        ));
        if !summary.limits_hit.is_empty() {
            let limits = summary.limits_hit.join(", ");
            self.display.say(&format!("limits reached: {limits}"));
        }
        let path = folder.path().display();
        self.display.say(&format!("results in {path}"));
    }
}

/// What hosts got and chose, but the one that something is wrong on.
pub fn others(traces: &BTreeMap<String, Trace>, but: &str) -> String {
    let mut text = String::new();
    for (name, trace) in traces {
        if name == but {
            continue;
        }
        let inputs = trace.inputs.iter();
        let mut lines: Vec<String> = inputs
            .map(|input| format!("{} = {}", input.name, readable(&input.bytes)))
            .collect();
        let choices = trace.choices.iter().filter(|choice| choice.picked > 0);
        lines.extend(choices.map(|choice| choice.describe()));
        if !lines.is_empty() {
            text.push_str(&format!("\nhost {name}:\n    {}\n", lines.join("\n    ")));
        }
    }
    text
}

impl WorldListener for Recorder {
    fn finding(&mut self, found: &WorldFinding) {
        let number = self.findings.len() as u64 + 1;
        let dir = format!("findings/{number:04}");
        let written = self.write_finding(&dir, found);
        self.note(written);
        self.display.finding(&found.finding, number);
        self.traces.push((dir.clone(), WorldTrace::of(found)));
        self.findings
            .push(FindingEntry::of(&found.finding, &found.host, dir));
    }

    fn world(&mut self, traces: &BTreeMap<String, Trace>, files: &SavedFiles) {
        self.tests += 1;
        let trace = WorldTrace {
            hosts: traces.clone(),
            finding: None,
            random_seed: None,
        };
        let name = format!("tests/{:06}.world", self.tests);
        let written = serde_json::to_vec(&trace)
            .map_err(anyhow::Error::from)
            .and_then(|bytes| Ok(self.folder.write(&name, &bytes)?))
            .and_then(|()| self.write_dtest(&format!("tests/{:06}", self.tests), traces))
            .and_then(|()| self.write_files(&format!("tests/{:06}-", self.tests), files));
        self.note(written);
    }

    fn tick(&mut self, worlds: &Worlds<'_>) {
        self.display.tick_worlds(worlds);
        let now = clock();
        if now >= self.next_sample {
            let between = now / 100;
            self.next_sample = now + between.clamp(LEAST_BETWEEN_SAMPLES, BETWEEN_SAMPLES);
            self.sample(worlds);
        }
    }
}

/// What a run of a scenario found, counted and covered.
#[derive(Serialize)]
pub struct WorldSummary {
    /// Everything was explored.
    complete: bool,
    stopped: String,
    mapping: String,
    paths: Paths,
    worlds: u128,
    states_total: u64,
    states_peak: u64,
    states_copied: u64,
    states_united: u64,
    dstates: usize,
    virtual_states: usize,
    packets: u64,
    deliveries_impossible: u64,
    instructions: u64,
    forks: u64,
    queries: u64,
    solver_seconds: f64,
    invariant_seconds: f64,
    wall_seconds: f64,
    memory_peak_bytes: u64,
    weight: Weights,
    coverage: CoverageTotals,
    limits_hit: Vec<String>,
    tests: u64,
    faults_never_fired: Vec<String>,
    warnings: Vec<String>,
    /// What is wrong.
    pub findings: Vec<FindingEntry>,
}

/// What a run found, counted and covered.
pub fn summary(
    worlds: &Worlds<'_>,
    recorder: &Recorder,
    stopped: Stopped,
    mapping: &str,
) -> WorldSummary {
    let statistics = worlds.statistics();
    let counted = worlds.world_statistics();
    let solver = worlds.solver_statistics();
    let lines = line_coverage(worlds.images(), &worlds.coverage().segments);
    WorldSummary {
        complete: stopped == Stopped::Finished
            && statistics.finished.is_one()
            && worlds.limits_hit().is_empty(),
        stopped: stopped.name().to_owned(),
        mapping: mapping.to_owned(),
        paths: Paths {
            completed: statistics.paths_completed,
            partial: statistics.paths_partial,
        },
        worlds: counted.worlds,
        states_total: counted.states_total,
        states_peak: statistics.states_peak,
        states_copied: counted.copies,
        states_united: counted.merged,
        dstates: counted.dstates_peak,
        virtual_states: worlds.table().virtual_states(),
        packets: counted.packets,
        deliveries_impossible: counted.impossible,
        instructions: statistics.instructions,
        forks: statistics.forks,
        queries: solver.queries,
        solver_seconds: (solver.sat_time + solver.smt_time).as_secs_f64(),
        invariant_seconds: counted.in_invariants.as_secs_f64(),
        wall_seconds: clock().as_secs_f64(),
        memory_peak_bytes: memory_peak(),
        weight: Weights {
            finished: statistics.finished.to_f64(),
            pending: worlds.pending_weight().to_f64(),
            unknown: statistics.unknown.to_f64(),
        },
        coverage: CoverageTotals::of(&lines, &worlds.coverage().segments),
        limits_hit: worlds
            .limits_hit()
            .iter()
            .map(|limit| (*limit).to_owned())
            .collect(),
        tests: recorder.tests,
        faults_never_fired: worlds.faults_never_fired(),
        warnings: worlds.warnings().to_vec(),
        findings: recorder.findings.clone(),
    }
}
