//! `summary.json`: what a run found, counted and covered.

use everett_engine::{Explorer, Stopped};
use everett_ir::code::{Body, Inst, Program};
use everett_report::LineCoverage;
use everett_vm::Image;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::Result;
use crate::record::{FindingEntry, Recorder};
use crate::world::record::WorldSummary;

/// What a search found, counted and covered: of a program or of worlds.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum RunSummary {
    /// Of a program.
    Program(Box<Summary>),
    /// Of a scenario, or of the world that a program boots.
    World(Box<WorldSummary>),
}

impl RunSummary {
    /// What is wrong.
    pub fn findings(&self) -> &[FindingEntry] {
        match self {
            RunSummary::Program(summary) => &summary.findings,
            RunSummary::World(summary) => &summary.findings,
        }
    }

    /// Everything was explored.
    pub fn is_complete(&self) -> bool {
        match self {
            RunSummary::Program(summary) => summary.complete,
            RunSummary::World(summary) => summary.complete,
        }
    }

    /// Paths that ended.
    pub fn paths(&self) -> &Paths {
        match self {
            RunSummary::Program(summary) => &summary.paths,
            RunSummary::World(summary) => &summary.paths,
        }
    }

    /// Tests that were written.
    pub fn tests(&self) -> u64 {
        match self {
            RunSummary::Program(summary) => summary.tests,
            RunSummary::World(summary) => summary.tests,
        }
    }

    /// What the user should know.
    pub fn warnings(&self) -> &[String] {
        match self {
            RunSummary::Program(summary) => &summary.warnings,
            RunSummary::World(summary) => &summary.warnings,
        }
    }

    /// Limits that cut something off.
    pub fn limits_hit(&self) -> &[String] {
        match self {
            RunSummary::Program(summary) => &summary.limits_hit,
            RunSummary::World(summary) => &summary.limits_hit,
        }
    }
}

/// What a run found, counted and covered.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// Everything was explored.
    pub complete: bool,
    /// Why the search stopped.
    pub stopped: String,
    /// Paths that ended.
    pub paths: Paths,
    /// Instructions executed, each step of a path once.
    pub instructions: u64,
    /// Instructions executed to take states up again.
    pub instructions_replayed: u64,
    /// Forks.
    pub forks: u64,
    /// Most states at a time.
    pub states_peak: u64,
    /// States that are left to explore.
    pub states_pending: usize,
    /// States that were spilled.
    pub states_spilled: u64,
    /// Questions to the solver.
    pub queries: u64,
    /// Those that reached a SAT solver.
    pub queries_sat: u64,
    /// Those that reached the SMT solver.
    pub queries_smt: u64,
    /// Time in solvers.
    pub solver_seconds: f64,
    /// Time of the run.
    pub wall_seconds: f64,
    /// Most memory that the process had.
    pub memory_peak_bytes: u64,
    /// Parts of the search.
    pub weight: Weights,
    /// How much of the program was executed.
    pub coverage: CoverageTotals,
    /// Limits that cut something off.
    pub limits_hit: Vec<String>,
    /// Tests that were written.
    pub tests: u64,
    /// Failures that could be injected, and on how many paths each was.
    pub faults: BTreeMap<String, u64>,
    /// Those that never were.
    pub faults_never_fired: Vec<String>,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// What is wrong.
    pub findings: Vec<FindingEntry>,
    /// Lines that were executed or not.
    #[serde(skip)]
    pub line_coverage: LineCoverage,
}

/// Paths that ended.
#[derive(Debug, Serialize)]
pub struct Paths {
    /// By the program.
    pub completed: u64,
    /// Otherwise.
    pub partial: u64,
}

/// Parts of the search; they sum to 1.
#[derive(Debug, Serialize)]
pub struct Weights {
    /// Explored.
    pub finished: f64,
    /// Left to explore.
    pub pending: f64,
    /// Given up.
    pub unknown: f64,
}

/// How much of the program was executed.
#[derive(Debug, Serialize)]
pub struct CoverageTotals {
    /// Lines of code.
    pub lines: usize,
    /// Those that were executed.
    pub lines_covered: usize,
    /// Segments of code.
    pub segments: usize,
    /// Those that were executed.
    pub segments_covered: usize,
}

impl CoverageTotals {
    /// Of lines, and of marks of segments.
    pub fn of(line_coverage: &LineCoverage, segments: &[u8]) -> CoverageTotals {
        let (lines_covered, lines) = line_coverage.totals();
        CoverageTotals {
            lines,
            lines_covered,
            segments: segments.len(),
            segments_covered: segments.iter().filter(|mark| **mark != 0).count(),
        }
    }
}

fn never_fired(faults: &BTreeMap<String, u64>) -> Vec<String> {
    let never = faults.iter().filter(|(_, fired)| **fired == 0);
    never.map(|(name, _)| name.clone()).collect()
}

impl Summary {
    /// The summary of a run that stopped.
    pub(crate) fn new(
        explorer: &Explorer<'_>,
        recorder: &Recorder<'_>,
        stopped: Stopped,
        wall: Duration,
    ) -> Summary {
        let pending = explorer.pending_weight();
        let line_coverage = line_coverage(explorer.images(), &explorer.coverage().segments);
        let statistics = explorer.statistics().clone();
        let solver = explorer.solver_statistics();
        Summary {
            complete: statistics.finished.is_one(),
            stopped: stopped.name().to_owned(),
            paths: Paths {
                completed: statistics.paths_completed,
                partial: statistics.paths_partial,
            },
            instructions: statistics.instructions,
            instructions_replayed: statistics.replayed,
            forks: statistics.forks,
            states_peak: statistics.states_peak.max(1),
            states_pending: explorer.states(),
            states_spilled: statistics.spilled,
            queries: solver.queries,
            queries_sat: solver.sat_queries,
            queries_smt: solver.smt_queries,
            solver_seconds: (solver.sat_time + solver.smt_time).as_secs_f64(),
            wall_seconds: wall.as_secs_f64(),
            memory_peak_bytes: recorder.memory_peak(),
            weight: Weights {
                finished: statistics.finished.to_f64(),
                pending: pending.to_f64(),
                unknown: statistics.unknown.to_f64(),
            },
            coverage: CoverageTotals::of(&line_coverage, &explorer.coverage().segments),
            limits_hit: explorer
                .limits_hit()
                .iter()
                .map(|limit| (*limit).to_owned())
                .collect(),
            tests: recorder.tests,
            faults_never_fired: never_fired(&statistics.faults),
            faults: statistics.faults,
            warnings: explorer.warnings().to_vec(),
            findings: recorder.findings.clone(),
            line_coverage,
        }
    }

    /// The text of the file.
    pub(crate) fn to_json(&self) -> Result<Vec<u8>> {
        Ok(serde_json::to_vec_pretty(self)?)
    }
}

/// Lines of what the user wrote, executed or not.
pub(crate) fn line_coverage(images: &[Image], segments: &[u8]) -> LineCoverage {
    let mut coverage = LineCoverage::default();
    for image in images {
        let first = image.first_segment() as usize;
        add_lines(image.program(), &segments[first..], &mut coverage);
    }
    coverage
}

fn add_lines(program: &Program, segments: &[u8], coverage: &mut LineCoverage) {
    for function in &program.functions {
        let Body::Code(code) = &function.body else {
            continue;
        };
        let mut executed = false;
        let mut last = None;
        for (inst, location) in code.instructions.iter().zip(&code.locations) {
            if let Inst::Segment { id, .. } = inst {
                executed = segments[id.0 as usize] != 0;
                last = None;
            }
            if *location == last {
                continue;
            }
            last = *location;
            let Some(location) = location else { continue };
            let place = program.location(*location);
            let frame = everett_engine::SourceFrame {
                function: String::new(),
                file: program.string(place.file).to_owned(),
                line: place.line,
                column: 0,
            };
            if place.line > 0 && !frame.is_library() {
                coverage.add(&frame.file, place.line, executed);
            }
        }
    }
}
