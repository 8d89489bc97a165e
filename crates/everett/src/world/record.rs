//! The files that a run of worlds writes: findings and tests as they are found, states over time, and the summary.

use everett_engine::{
    Explorer, ExplorerConfig, Listener, SavedFiles, Stopped, Trace, WorldFinding,
};
use everett_report::{Curve, Folder, Panel, plot};
use everett_vm::Image;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::{Context, Error, Result};
use crate::events::{Event, Meter, Observer, Progress, WorldProgress};
use crate::record::{FindingEntry, SHRINK_TIME, finding_files, readable, tell_end, written_files};
use crate::replay::Verdict;
use crate::session::Session;
use crate::spec::RunSpec;
use crate::summary::{CoverageTotals, Paths, RunSummary, Weights, line_coverage};
use crate::world::dtest::Tests;
use crate::world::replay::NativeWorld;
use crate::world::shrink::simpler;
use crate::world::topology;
use crate::world::trace::WorldTrace;

/// Writes findings and tests as they are found.
pub(crate) struct Recorder<'o> {
    session: &'o Session,
    observer: &'o mut dyn Observer,
    meter: Meter,
    folder: Folder,
    findings: Vec<FindingEntry>,
    /// Folders of findings, and the traces that lead there.
    traces: Vec<(String, WorldTrace)>,
    tests: u64,
    /// Also writes tests as `.dtest` if set.
    dtests: Option<Tests>,
    error: Option<Error>,
    /// Rows of `mapping.csv`, and when the next is due.
    samples: String,
    next_sample: Duration,
}

/// Columns of `mapping.csv`.
const COLUMNS: &str = "seconds,virtual_seconds,states,virtual_states,dstates,states_total,forks,copied,united,memory_bytes\n";
/// The longest interval between its rows; at the beginning they are denser.
const BETWEEN_SAMPLES: Duration = Duration::from_millis(100);
const LEAST_BETWEEN_SAMPLES: Duration = Duration::from_millis(1);

/// A chart of `mapping.csv`.
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

impl<'o> Recorder<'o> {
    /// A recorder that has written nothing yet.
    pub(crate) fn new(
        spec: &RunSpec,
        session: &'o Session,
        observer: &'o mut dyn Observer,
        config: &ExplorerConfig,
        folder: Folder,
    ) -> Recorder<'o> {
        Recorder {
            session,
            meter: Meter::of(observer),
            observer,
            folder,
            findings: Vec::new(),
            traces: Vec::new(),
            tests: 0,
            dtests: spec
                .dtest
                .then(|| Tests::of(&topology(config), &config.hosts)),
            error: None,
            samples: COLUMNS.to_owned(),
            next_sample: Duration::ZERO,
        }
    }

    /// Folders of findings, and the traces that lead there.
    pub(crate) fn traces(&self) -> &[(String, WorldTrace)] {
        &self.traces
    }

    /// Writes the number of states over time. Returns the error of an earlier write, if one failed.
    pub(crate) fn write_samples(&mut self, worlds: &Explorer<'_>) -> Result<()> {
        self.sample(worlds);
        if let Some(error) = self.error.take() {
            return Err(error).context("cannot write the results");
        }
        self.folder.write("mapping.csv", self.samples.as_bytes())?;
        let picture = picture(&self.samples);
        self.folder.write("mapping.svg", picture.as_bytes())?;
        Ok(())
    }

    /// Appends to the text of a finding.
    pub(crate) fn add_text(&self, dir: &str, text: &str) -> Result<()> {
        let name = format!("{dir}/finding.txt");
        let path = self.folder.path().join(&name);
        let before = std::fs::read(&path).with_context(|| format!("cannot read {name}"))?;
        let all = [before.as_slice(), text.as_bytes()].concat();
        self.folder.write(&name, &all)?;
        Ok(())
    }

    /// Adds a row to `mapping.csv`.
    fn sample(&mut self, worlds: &Explorer<'_>) {
        let counted = worlds.world_statistics();
        self.samples.push_str(&format!(
            "{:.3},{:.6},{},{},{},{},{},{},{},{}\n",
            self.session.now().as_secs_f64(),
            worlds.virtual_ns().unwrap_or(0) as f64 / 1e9,
            worlds.states(),
            worlds.table().virtual_states(),
            worlds.table().len(),
            counted.states_total,
            worlds.statistics().forks,
            counted.copies,
            counted.merged,
            self.session.memory.used(),
        ));
    }

    fn note(&mut self, written: Result<()>) {
        if let Err(error) = written {
            self.error.get_or_insert(error);
        }
    }

    /// Simplifies findings until the time is up.
    pub(crate) fn simplify(
        &mut self,
        config: &ExplorerConfig,
        images: &[Image],
        until: Duration,
    ) -> Result<()> {
        for at in 0..self.traces.len() {
            let (dir, trace) = &self.traces[at];
            let until = until.min(self.session.now() + SHRINK_TIME);
            if let Some(found) = simpler(config, images, trace, until)? {
                self.write_finding(dir, &found)?;
                self.traces[at].1 = WorldTrace::of(&found);
            }
        }
        Ok(())
    }

    /// Confirms findings natively.
    pub(crate) fn confirm(&mut self, world: &NativeWorld) -> Result<()> {
        let mut confirmed = 0;
        for (entry, (_, trace)) in self.findings.iter_mut().zip(&self.traces) {
            let verdict = world.confirm(trace)?;
            entry.confirmed = Some(verdict.name().to_owned());
            entry.confirmed_reason = verdict.reason().map(str::to_owned);
            confirmed += usize::from(verdict == Verdict::Confirmed);
            self.observer.event(&Event::FindingReplayed {
                entry,
                verdict: &verdict,
            });
        }
        self.observer.event(&Event::FindingsReplayed {
            confirmed,
            findings: self.findings.len(),
        });
        Ok(())
    }

    /// Writes the saved files of hosts.
    pub(crate) fn write_files(&self, stem: &str, files: &SavedFiles) -> Result<()> {
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

    /// Reports how the run ended.
    pub(crate) fn finish(self, summary: &RunSummary) {
        tell_end(summary, self.folder.path(), self.observer);
    }
}

/// The progress of a search.
fn progress(worlds: &Explorer<'_>, now: Duration, meter: &mut Meter) -> Progress {
    let statistics = worlds.statistics();
    let solver = worlds.solver_statistics();
    let segments = &worlds.coverage().segments;
    Progress {
        elapsed: now,
        paths: statistics.paths_completed + statistics.paths_partial,
        states: worlds.states(),
        findings: worlds.findings().len(),
        instructions: statistics.instructions,
        instructions_per_second: meter.rate(now, statistics.instructions),
        solver_time: solver.sat_time + solver.smt_time,
        segments_covered: segments.iter().filter(|mark| **mark != 0).count(),
        segments: segments.len(),
        world: Some(WorldProgress {
            virtual_ns: worlds.virtual_ns().unwrap_or(0),
            dstates: worlds.table().len(),
        }),
    }
}

/// The inputs and choices of all hosts except the one that the finding is on.
pub(crate) fn others(traces: &BTreeMap<String, Trace>, but: &str) -> String {
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

impl Listener for Recorder<'_> {
    fn finding(&mut self, found: &WorldFinding) {
        let number = self.findings.len() as u64 + 1;
        let dir = format!("findings/{number:04}");
        let written = self.write_finding(&dir, found);
        self.note(written);
        self.traces.push((dir.clone(), WorldTrace::of(found)));
        let entry = FindingEntry::of(&found.finding, &found.host, dir);
        self.observer.event(&Event::Finding {
            number,
            entry: &entry,
            finding: &found.finding,
        });
        self.findings.push(entry);
    }

    fn world(&mut self, traces: &BTreeMap<String, Trace>, files: &SavedFiles) {
        self.observer.event(&Event::WorldDone(traces));
        self.tests += 1;
        let trace = WorldTrace {
            hosts: traces.clone(),
            finding: None,
            random_seed: None,
        };
        let stem = format!("tests/{:06}", self.tests);
        let name = format!("{stem}.world");
        let written = serde_json::to_vec(&trace)
            .map_err(Error::from)
            .and_then(|bytes| Ok(self.folder.write(&name, &bytes)?))
            .and_then(|()| self.write_dtest(&stem, traces))
            .and_then(|()| self.write_files(&format!("{stem}-"), files));
        self.note(written);
        self.observer.event(&Event::Test { name: &stem });
    }

    fn tick(&mut self, worlds: &Explorer<'_>) {
        if let Some(now) = self.meter.due(|| self.session.now()) {
            let progress = progress(worlds, now, &mut self.meter);
            self.observer.event(&Event::Progress(&progress));
        }
        let now = self.session.now();
        if now >= self.next_sample {
            let between = now / 100;
            self.next_sample = now + between.clamp(LEAST_BETWEEN_SAMPLES, BETWEEN_SAMPLES);
            self.sample(worlds);
        }
    }
}

/// The results of a scenario's run: findings, statistics and coverage.
#[derive(Debug, Serialize)]
pub struct WorldSummary {
    /// Whether the whole state space was explored.
    pub complete: bool,
    /// Why the search stopped.
    pub stopped: String,
    /// The algorithm that maps states of different hosts to dstates.
    pub mapping: String,
    /// Ended paths of hosts.
    pub paths: Paths,
    /// Worlds that ended.
    pub worlds: u128,
    /// States created during the run.
    pub states_total: u64,
    /// Largest number of states at a time.
    pub states_peak: u64,
    /// States that the mapping algorithm copied.
    pub states_copied: u64,
    /// States that were merged with others.
    pub states_united: u64,
    /// Largest number of dstates at a time.
    pub dstates: usize,
    /// Members of dstates at the end.
    pub virtual_states: usize,
    /// Packets sent.
    pub packets: u64,
    /// Deliveries between states whose path conditions contradict each other.
    pub deliveries_impossible: u64,
    /// Instructions executed.
    pub instructions: u64,
    /// Forks.
    pub forks: u64,
    /// Solver queries.
    pub queries: u64,
    /// Seconds spent in solvers.
    pub solver_seconds: f64,
    /// Seconds spent on invariants.
    pub invariant_seconds: f64,
    /// Wall-clock time of the run.
    pub wall_seconds: f64,
    /// Peak memory of the run.
    pub memory_peak_bytes: u64,
    /// Shares of the search space: explored, pending, given up.
    pub weight: Weights,
    /// How much of the programs was executed.
    pub coverage: CoverageTotals,
    /// Limits that cut paths off.
    pub limits_hit: Vec<String>,
    /// Tests written.
    pub tests: u64,
    /// Faults that happened in no world.
    pub faults_never_fired: Vec<String>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// The findings.
    pub findings: Vec<FindingEntry>,
}

/// The summary of a run.
pub(crate) fn summary(
    worlds: &Explorer<'_>,
    recorder: &Recorder<'_>,
    stopped: Stopped,
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
        mapping: worlds.mapping_name().to_owned(),
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
        wall_seconds: recorder.session.now().as_secs_f64(),
        memory_peak_bytes: recorder.session.memory.peak(),
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
