//! `everett run SCENARIO.toml`: explores worlds of several hosts.

use anyhow::{Context, Result, bail};
use everett_engine::{Stopped, Trace, WorldConfig, WorldFinding, WorldListener, Worlds};
use everett_report::Folder;
use everett_scenario::Scenario;
use everett_vm::Image;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::display::{Display, short};
use crate::follow::said;
use crate::output::{FindingEntry, chosen, finding_files, readable};
use crate::run::{RunArgs, clock, explorer_config, memory_peak, memory_used, stop_flag};
use crate::scenario::load;
use crate::summary::{CoverageTotals, Paths, Weights, line_coverage};
use crate::watched;
use crate::world_checks::invariants;
use crate::world_hosts::{Programs, hosts};
use crate::world_replay::NativeWorld;
use crate::{EXIT_CLEAN, EXIT_FINDINGS};

/// What leads to a world: inputs and choices of every host.
#[derive(Serialize, Deserialize)]
pub struct WorldTrace {
    /// By the names of hosts.
    pub hosts: BTreeMap<String, Trace>,
    /// What is wrong with it, if it is a finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<Wrong>,
}

/// What is wrong with a world.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Wrong {
    /// The host.
    pub host: String,
    /// What kind.
    pub kind: String,
    /// For people.
    pub message: String,
}

impl WorldTrace {
    fn of(found: &WorldFinding) -> WorldTrace {
        WorldTrace {
            hosts: found.traces.clone(),
            finding: Some(Wrong::of(found)),
        }
    }
}

impl Wrong {
    fn of(found: &WorldFinding) -> Wrong {
        Wrong {
            host: found.host.clone(),
            kind: found.finding.kind.name().to_owned(),
            message: found.finding.message.clone(),
        }
    }
}

/// What a run of a scenario found, counted and covered.
#[derive(Serialize)]
struct WorldSummary {
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
    wall_seconds: f64,
    memory_peak_bytes: u64,
    weight: Weights,
    coverage: CoverageTotals,
    limits_hit: Vec<String>,
    tests: u64,
    faults_never_fired: Vec<String>,
    warnings: Vec<String>,
    findings: Vec<FindingEntry>,
}

/// It is a scenario, not a program.
pub fn is_scenario(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "toml")
}

/// Refuses what scenarios can say and what is not explored yet: leaving it out silently would be wrong.
fn refuse_the_impossible(scenario: &Scenario) -> Result<()> {
    let limits = &scenario.limits;
    if limits.paths.is_some() || limits.depth.is_some() || limits.events.is_some() {
        bail!("[limits]: paths, depth and events are not possible yet for worlds");
    }
    if scenario.search.orders > 0 {
        bail!("[search]: orders of messages are not possible yet");
    }
    Ok(())
}

/// What is explored, and the programs.
fn prepare(args: &RunArgs) -> Result<(WorldConfig, Vec<Image>)> {
    args.refuse_what_scenarios_say()?;
    let scenario = load(&args.scenario())?;
    refuse_the_impossible(&scenario)?;
    let invariants = invariants(&scenario)?;
    let mut programs = Programs::default();
    let mut hosts = hosts(&scenario, &mut programs)?;
    let images = programs.load(args.promotes())?;
    watched::place(&mut hosts, &images)?;
    let general = explorer_config(args, None)?;
    let mapping = args.mapping().unwrap_or(scenario.search.mapping.name());
    let mut limits = general.limits.clone();
    limits.max_time = limits
        .max_time
        .or(scenario.limits.time_ns.map(Duration::from_nanos));
    limits.max_instructions = limits.max_instructions.or(scenario.limits.instructions);
    limits.max_forks = limits.max_forks.or(scenario.limits.forks);
    if let Some(memory) = scenario.limits.memory_bytes {
        limits.max_memory = Some(memory);
    }
    if limits.max_paths.is_some() || limits.max_depth.is_some() {
        bail!(
            "worlds have no limits on paths and depth; there are those on time, memory and forks"
        );
    }
    let config = WorldConfig {
        hosts,
        topology: scenario.topology.clone(),
        faults: scenario.faults.clone(),
        invariants,
        mapping: mapping.to_owned(),
        vm: general.vm,
        solver: general.solver,
        limits,
        orders: scenario.search.orders,
        max_virtual_ns: scenario.limits.virtual_time_ns,
        all_tests: general.all_tests,
        clock,
        memory_used,
    };
    Ok((config, images))
}

/// Explores a scenario.
pub fn run(args: &RunArgs) -> Result<u8> {
    let (config, images) = prepare(args)?;
    let mapping = config.mapping.clone();
    let mut worlds = Worlds::new(&images, config.clone(), None)?;
    let folder = args.folder()?;
    folder.write("args.json", &serde_json::to_vec(args)?)?;
    let mut recorder = Recorder {
        display: Display::new(args.mode(), clock),
        folder: folder.clone(),
        findings: Vec::new(),
        traces: Vec::new(),
        tests: 0,
        error: None,
        samples: COLUMNS.to_owned(),
        next_sample: Duration::ZERO,
    };
    let stopped = worlds.run(&*stop_flag()?, &mut recorder);
    if let Some(error) = recorder.error.take() {
        return Err(error).context("cannot write the results");
    }
    folder.write("mapping.csv", recorder.samples.as_bytes())?;
    for (dir, found) in &recorder.traces {
        let chart = chart(&config, &images, &found.hosts)?;
        folder.write(&format!("{dir}/messages.txt"), chart.as_bytes())?;
    }
    if args.confirms() && !recorder.traces.is_empty() {
        recorder.confirm(&NativeWorld::of(args)?)?;
    }
    let summary = summary(&worlds, &recorder, stopped, &mapping);
    folder.write("summary.json", &serde_json::to_vec_pretty(&summary)?)?;
    let lines = line_coverage(worlds.images(), &worlds.coverage().segments);
    folder.write("coverage.lcov", lines.to_lcov().as_bytes())?;
    recorder.finish(&summary, &folder);
    Ok(if summary.findings.is_empty() {
        EXIT_CLEAN
    } else {
        EXIT_FINDINGS
    })
}

/// Reads the trace of a world.
pub fn read_world(path: &Path) -> Result<WorldTrace> {
    let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text)
        .with_context(|| format!("{} is no trace of a world", path.display()))
}

/// Follows traces of worlds again, each in a world of its own; exit code 1 if one of them ends otherwise than it did.
pub fn follow(args: &RunArgs, traces: &[PathBuf]) -> Result<u8> {
    let (config, images) = prepare(args)?;
    let config = WorldConfig {
        all_tests: true,
        ..config
    };
    let mut different = 0;
    for path in traces {
        let trace = read_world(path)?;
        let mut worlds = Worlds::new(&images, config.clone(), Some(&trace.hosts))?;
        let mut seen = Seen::default();
        worlds.run(&AtomicBool::new(false), &mut seen);
        let ends = |hosts: &BTreeMap<String, Trace>| -> BTreeMap<String, _> {
            let ends = hosts.iter();
            ends.map(|(name, trace)| (name.clone(), (trace.choices.clone(), trace.end.clone())))
                .collect()
        };
        let is_same = match &trace.finding {
            Some(wrong) => seen.findings.contains(wrong),
            None => seen.ends.iter().any(|end| ends(end) == ends(&trace.hosts)),
        };
        if !is_same {
            different += 1;
            println!("{}: it ends otherwise", path.display());
            match &trace.finding {
                Some(wrong) => println!("    expected {wrong:?}, seen {:?}", seen.findings),
                None => println!(
                    "    expected {:?}, seen {:?} {:?}",
                    ends(&trace.hosts),
                    seen.ends.iter().map(ends).collect::<Vec<_>>(),
                    seen.findings
                ),
            }
        }
    }
    Ok(said(traces.len(), different))
}

/// What hosts sent each other on the way to a finding, a line each.
fn chart(
    config: &WorldConfig,
    images: &[Image],
    found: &BTreeMap<String, Trace>,
) -> Result<String> {
    let config = WorldConfig {
        invariants: Vec::new(),
        ..config.clone()
    };
    let mut worlds = Worlds::new(images, config, Some(found))?;
    worlds.run(&AtomicBool::new(false), &mut Seen::default());
    let messages = worlds.messages();
    let mut text = String::new();
    let width = messages
        .iter()
        .map(|one| one.from.len().max(one.to.len()))
        .max();
    let width = width.unwrap_or(0);
    for message in messages {
        text.push_str(&format!(
            "{:>12.6} s  {:>width$} → {:<width$}  {}{}\n",
            message.sent_ns as f64 / 1e9,
            message.from,
            message.to,
            message.what,
            message
                .fate
                .as_ref()
                .map_or_else(String::new, |fate| format!("  ({fate})")),
        ));
    }
    Ok(text)
}

/// What came of a world.
#[derive(Default)]
struct Seen {
    findings: Vec<Wrong>,
    ends: Vec<BTreeMap<String, Trace>>,
}

impl WorldListener for Seen {
    fn finding(&mut self, found: &WorldFinding) {
        self.findings.push(Wrong::of(found));
    }

    fn world(&mut self, traces: &BTreeMap<String, Trace>) {
        self.ends.push(traces.clone());
    }

    fn tick(&mut self, _: &Worlds<'_>) {}
}

/// Writes findings and tests as they come.
struct Recorder {
    display: Display,
    folder: Folder,
    findings: Vec<FindingEntry>,
    /// Folders of findings and what leads to them.
    traces: Vec<(String, WorldTrace)>,
    tests: u64,
    error: Option<anyhow::Error>,
    /// Rows of `mapping.csv`, and when the next is due.
    samples: String,
    next_sample: Duration,
}

/// Columns of `mapping.csv`.
const COLUMNS: &str = "seconds,virtual_seconds,states,virtual_states,dstates,states_total,forks,copied,united,memory_bytes\n";
/// Time between its rows.
const BETWEEN_SAMPLES: Duration = Duration::from_millis(100);

impl Recorder {
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

    /// Lets findings happen again natively.
    fn confirm(&mut self, world: &NativeWorld) -> Result<()> {
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

    fn write_finding(&self, dir: &str, found: &WorldFinding) -> Result<()> {
        for (name, bytes) in finding_files(&found.finding, &found.host, false) {
            let bytes = match name.as_str() {
                "finding.txt" => [bytes, others(found).into_bytes()].concat(),
                _ => bytes,
            };
            self.folder.write(&format!("{dir}/{name}"), &bytes)?;
        }
        let trace = serde_json::to_vec(&WorldTrace::of(found))?;
        self.folder.write(&format!("{dir}/finding.world"), &trace)?;
        Ok(())
    }

    fn finish(&mut self, summary: &WorldSummary, folder: &Folder) {
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

/// What other hosts got and chose.
fn others(found: &WorldFinding) -> String {
    let mut text = String::new();
    for (name, trace) in &found.traces {
        if *name == found.host {
            continue;
        }
        let inputs = trace.inputs.iter();
        let mut lines: Vec<String> = inputs
            .map(|input| format!("{} = {}", input.name, readable(&input.bytes)))
            .collect();
        let choices = trace.choices.iter().filter(|choice| choice.picked > 0);
        lines.extend(choices.map(chosen));
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

    fn world(&mut self, traces: &BTreeMap<String, Trace>) {
        self.tests += 1;
        let trace = WorldTrace {
            hosts: traces.clone(),
            finding: None,
        };
        let name = format!("tests/{:06}.world", self.tests);
        let written = serde_json::to_vec(&trace)
            .map_err(anyhow::Error::from)
            .and_then(|bytes| Ok(self.folder.write(&name, &bytes)?));
        self.note(written);
    }

    fn tick(&mut self, worlds: &Worlds<'_>) {
        self.display.tick_worlds(worlds);
        let now = clock();
        if now >= self.next_sample {
            self.next_sample = now + BETWEEN_SAMPLES;
            self.sample(worlds);
        }
    }
}

fn summary(
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
