//! `summary.json`: findings, counters and coverage of a run.

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

/// The summary of a search of a program or of worlds.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum RunSummary {
    /// The search of a program.
    Program(Box<Summary>),
    /// The search of a scenario, or of the world that a program boots.
    World(Box<WorldSummary>),
}

impl RunSummary {
    /// The findings.
    pub fn findings(&self) -> &[FindingEntry] {
        match self {
            RunSummary::Program(summary) => &summary.findings,
            RunSummary::World(summary) => &summary.findings,
        }
    }

    /// Whether the search explored everything.
    pub fn is_complete(&self) -> bool {
        match self {
            RunSummary::Program(summary) => summary.complete,
            RunSummary::World(summary) => summary.complete,
        }
    }

    /// The number of paths that ended.
    pub fn paths(&self) -> &Paths {
        match self {
            RunSummary::Program(summary) => &summary.paths,
            RunSummary::World(summary) => &summary.paths,
        }
    }

    /// The number of tests written.
    pub fn tests(&self) -> u64 {
        match self {
            RunSummary::Program(summary) => summary.tests,
            RunSummary::World(summary) => summary.tests,
        }
    }

    /// Warnings for the user.
    pub fn warnings(&self) -> &[String] {
        match self {
            RunSummary::Program(summary) => &summary.warnings,
            RunSummary::World(summary) => &summary.warnings,
        }
    }

    /// The limits that truncated the search.
    pub fn limits_hit(&self) -> &[String] {
        match self {
            RunSummary::Program(summary) => &summary.limits_hit,
            RunSummary::World(summary) => &summary.limits_hit,
        }
    }
}

/// The summary of a search of one program.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// Whether the search explored everything.
    pub complete: bool,
    /// Why the search stopped.
    pub stopped: String,
    /// Number of paths that ended.
    pub paths: Paths,
    /// Instructions executed by paths, without those that rematerialise states.
    pub instructions: u64,
    /// Instructions executed to rematerialise states.
    pub instructions_replayed: u64,
    /// Number of forks.
    pub forks: u64,
    /// Peak number of states.
    pub states_peak: u64,
    /// States still to be explored.
    pub states_pending: usize,
    /// Number of states spilled to disk.
    pub states_spilled: u64,
    /// Number of solver queries.
    pub queries: u64,
    /// Queries that reached the SAT solver.
    pub queries_sat: u64,
    /// Queries that reached the SMT solver.
    pub queries_smt: u64,
    /// Time spent in solvers.
    pub solver_seconds: f64,
    /// Wall-clock time of the run.
    pub wall_seconds: f64,
    /// Peak memory of the process.
    pub memory_peak_bytes: u64,
    /// Shares of the search space.
    pub weight: Weights,
    /// Coverage of the program.
    pub coverage: CoverageTotals,
    /// The limits that truncated the search.
    pub limits_hit: Vec<String>,
    /// Number of tests written.
    pub tests: u64,
    /// Injectable faults, with the number of paths on which each was injected.
    pub faults: BTreeMap<String, u64>,
    /// Faults that were never injected.
    pub faults_never_fired: Vec<String>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// The findings.
    pub findings: Vec<FindingEntry>,
    /// Coverage by source line.
    #[serde(skip)]
    pub line_coverage: LineCoverage,
}

/// Number of paths that ended.
#[derive(Debug, Serialize)]
pub struct Paths {
    /// Ended by the program.
    pub completed: u64,
    /// Ended for another reason, such as a limit.
    pub partial: u64,
}

/// Shares of the search space; they sum to 1.
#[derive(Debug, Serialize)]
pub struct Weights {
    /// Explored.
    pub finished: f64,
    /// Still to be explored.
    pub pending: f64,
    /// Given up.
    pub unknown: f64,
}

/// Coverage of the program.
#[derive(Debug, Serialize)]
pub struct CoverageTotals {
    /// Source lines with code.
    pub lines: usize,
    /// Source lines executed.
    pub lines_covered: usize,
    /// Code segments.
    pub segments: usize,
    /// Code segments executed.
    pub segments_covered: usize,
}

impl CoverageTotals {
    /// The totals of line coverage and of segment marks.
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
    /// The summary of a stopped run.
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

    /// The contents of `summary.json`.
    pub(crate) fn to_json(&self) -> Result<Vec<u8>> {
        Ok(serde_json::to_vec_pretty(self)?)
    }
}

/// Line coverage of the user's code, without libraries.
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
