//! `summary.json`: findings, counters and coverage of a run.

use everett_engine::{SolverLine, Unsupported};
use everett_report::{Folder, LineCoverage, counted};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::error::Result;
use crate::finding::FindingEntry;

/// The name of the summary's file.
pub(crate) const SUMMARY: &str = "summary.json";
/// The name of the file with the coverage.
pub(crate) const COVERAGE: &str = "coverage.lcov";

/// The summary of a search of a program or of worlds.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Whether the search explored everything.
    pub complete: bool,
    /// Why the search stopped.
    pub stopped: String,
    /// Number of paths that ended.
    pub paths: Paths,
    /// Instructions executed by paths, without those that rematerialise states.
    pub instructions: u64,
    /// Number of forks.
    pub forks: u64,
    /// Peak number of states.
    pub states_peak: u64,
    /// Number of solver queries.
    pub queries: u64,
    /// Time spent in solvers.
    pub solver_seconds: f64,
    /// The lines whose queries took longest, among queries that no cheap layer answered; longest
    /// first.
    pub solver_lines: Vec<SolverLine>,
    /// Wall-clock time of the run.
    pub wall_seconds: f64,
    /// Peak memory of the process.
    pub memory_peak_bytes: u64,
    /// Shares of the search space.
    pub weight: Weights,
    /// Coverage of the programs.
    pub coverage: CoverageTotals,
    /// The limits that truncated the search.
    pub limits_hit: Vec<String>,
    /// Operations of programs that the kernel model refused or ignored although Linux would do
    /// them. `complete` does not cover behaviour that depends on these.
    pub unsupported: Vec<Unsupported>,
    /// Number of tests written.
    pub tests: u64,
    /// Number of states that could not be saved, because there was no time, memory or disk space
    /// left. If `resume_from` is the last checkpoint, a resumed run lacks them.
    pub states_unsaved: u64,
    /// Where `resume` continues, if states are left.
    pub resume_from: Option<ResumeFrom>,
    /// Faults that were never injected or occurred in no world.
    pub faults_never_fired: Vec<String>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// The findings, ordered by kind, location, host and digest.
    pub findings: Vec<FindingEntry>,
    /// The comparison of two builds, if the run compares them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<Comparison>,
    /// Figures that only searches of programs have.
    #[serde(flatten)]
    pub program: Option<ProgramFigures>,
    /// Figures that only searches of worlds have.
    #[serde(flatten)]
    pub world: Option<WorldFigures>,
    /// Figures about the workers of a search on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team: Option<TeamFigures>,
    /// Figures of a search on several machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterFigures>,
    /// Coverage by source line.
    #[serde(skip)]
    pub line_coverage: LineCoverage,
}

/// Where `resume` continues a run that has states left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResumeFrom {
    /// The point where the run stopped.
    LastCheckpoint,
    /// An earlier point: the last checkpoint could not be written, but an earlier one was.
    EarlierCheckpoint,
    /// The beginning: no checkpoint could be written.
    Beginning,
}

impl ResumeFrom {
    /// Determines where a run continues, from whether its last checkpoint was written and whether
    /// its folder has one.
    pub(crate) fn of(is_saved: bool, has_checkpoint: bool) -> ResumeFrom {
        match (is_saved, has_checkpoint) {
            (true, _) => ResumeFrom::LastCheckpoint,
            (false, true) => ResumeFrom::EarlierCheckpoint,
            (false, false) => ResumeFrom::Beginning,
        }
    }

    /// Returns the warning about states that are not in the last checkpoint, if there are any.
    pub(crate) fn warning(self, unsaved: u64) -> Option<String> {
        let consequence = match self {
            ResumeFrom::LastCheckpoint => "lacks them",
            ResumeFrom::EarlierCheckpoint => "goes on from an earlier checkpoint",
            ResumeFrom::Beginning => "starts again from the beginning",
        };
        (unsaved > 0).then(|| {
            format!(
                "{} could not be saved, because no time, memory or disk was left for them: a resumed run \
                 {consequence}",
                counted(unsaved, "state")
            )
        })
    }
}

/// Figures about the workers of a search on this machine, since it was started or resumed.
#[derive(Clone, Debug, Serialize)]
pub struct TeamFigures {
    /// Number of workers.
    pub workers: usize,
    /// Number of jobs (sets of states) that moved from one worker to another.
    pub jobs_moved: u64,
    /// The time that each worker has waited for jobs, in seconds.
    pub idle_seconds: Vec<f64>,
    /// The share of all instructions that rematerialised states.
    pub replay_share: f64,
}

/// Figures of a search on several machines.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ClusterFigures {
    /// Number of explored jobs.
    pub jobs: u64,
    /// Number of remaining jobs.
    pub jobs_left: u64,
    /// Number of states that moved from one job to another.
    pub states_moved: u64,
    /// Number of times that a worker gave states to others and continued with the rest.
    pub transfers: u64,
    /// Size of jobs and results that workers sent, in bytes.
    pub bytes_sent: u64,
    /// Size of the states that moved, in bytes.
    pub bytes_moved: u64,
    /// The share of all instructions that rematerialised states.
    pub replay_share: f64,
    /// The time that each worker has waited for jobs, in seconds.
    pub idle_seconds: BTreeMap<String, f64>,
    /// Number of jobs by the worker that explored them.
    pub workers: BTreeMap<String, u64>,
}

/// The comparison of two builds.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Whether the builds behave the same on all inputs: both explorations are complete, and there
    /// is no difference.
    pub equivalent: bool,
    /// Number of pairs of paths, one of each build, that were found to differ.
    pub pairs_different: u64,
    /// The first difference of each kind, ordered by what differs.
    pub differences: Vec<DifferenceEntry>,
}

/// Figures of the search of a program.
#[derive(Clone, Debug, Serialize)]
pub struct ProgramFigures {
    /// Number of instructions executed to rematerialise states.
    pub instructions_replayed: u64,
    /// Number of states still to be explored.
    pub states_pending: usize,
    /// Number of states spilled to disk.
    pub states_spilled: u64,
    /// Number of paths that the program's merge regions merged into others.
    #[serde(skip_serializing_if = "is_none")]
    pub paths_merged: u64,
    /// Number of states that moved from one worker to another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub states_moved: Option<u64>,
    /// Number of queries that an earlier answer or its model decided.
    pub queries_cached: u64,
    /// Number of queries that reached the SAT solver.
    pub queries_sat: u64,
    /// Number of queries that reached the SMT solver.
    pub queries_smt: u64,
    /// Injectable faults, with the number of paths on which each was injected.
    pub faults: BTreeMap<String, u64>,
}

/// Figures of a search of worlds.
#[derive(Clone, Debug, Serialize)]
pub struct WorldFigures {
    /// The algorithm that maps states of different hosts to dstates.
    pub mapping: String,
    /// Number of worlds that ended.
    pub worlds: u128,
    /// Number of worlds in which a host is blocked forever.
    pub worlds_stalled: u128,
    /// Number of worlds in which all hosts are blocked forever.
    pub worlds_deadlocked: u128,
    /// Whether every host has to end as it is expected to, so that one that waits is a finding.
    pub ends_checked: bool,
    /// Hosts that end in some worlds and are blocked forever in others.
    pub hosts_stalled: Vec<String>,
    /// Number of states created during the run.
    pub states_total: u64,
    /// Number of states that the mapping algorithm copied.
    pub states_copied: u64,
    /// Number of states that were merged with others.
    pub states_united: u64,
    /// Peak number of dstates.
    pub dstates: usize,
    /// Number of members of dstates at the end.
    pub virtual_states: usize,
    /// Number of states that moved from one worker to another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub states_moved: Option<u64>,
    /// Number of instructions executed to rematerialise states.
    pub instructions_replayed: u64,
    /// Number of packets sent.
    pub packets: u64,
    /// Number of deliveries between states whose path conditions contradict each other.
    pub deliveries_impossible: u64,
    /// Time spent on invariants, in seconds.
    pub invariant_seconds: f64,
    /// Figures of live peers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<PeerFigures>,
    /// Number of symbolic bytes that were concretised because they were sent to live peers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_concretised: Option<u64>,
}

/// Figures of a live peer.
#[derive(Clone, Debug, Serialize)]
pub struct PeerFigures {
    /// The name of the peer.
    pub name: String,
    /// Number of answers in the recording.
    pub recorded: u64,
    /// Number of questions that the recording answered.
    pub from_recording: u64,
    /// Number of questions that a live instance answered.
    pub live: u64,
    /// Number of fresh instances that were created.
    pub instances: u64,
    /// Number of answers that were replayed to bring fresh instances to a position.
    pub played_again: u64,
}

/// Number of paths that ended.
#[derive(Clone, Debug, Serialize)]
pub struct Paths {
    /// Number of paths that the program ended.
    pub completed: u64,
    /// Number of paths that ended for another reason, such as a limit.
    pub partial: u64,
}

/// Shares of the search space; they sum to 1.
#[derive(Clone, Debug, Serialize)]
pub struct Weights {
    /// The explored share.
    pub finished: f64,
    /// The share still to be explored.
    pub pending: f64,
    /// The share that was given up.
    pub unknown: f64,
    /// The share that was not explored because an analysis pruned it.
    #[serde(skip_serializing_if = "is_zero")]
    pub pruned: f64,
    /// The share of combinations of states that are no worlds, because they contain more faults
    /// than a world may.
    #[serde(skip_serializing_if = "is_zero")]
    pub excluded: f64,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

fn is_zero(weight: &f64) -> bool {
    *weight == 0.0
}

/// Coverage of the program.
#[derive(Clone, Debug, Serialize)]
pub struct CoverageTotals {
    /// Number of source lines with code.
    pub lines: usize,
    /// Number of executed source lines.
    pub lines_covered: usize,
    /// Number of functions with code.
    pub functions: usize,
    /// Number of functions that were at least partly executed.
    pub functions_covered: usize,
    /// Number of instructions of the user's code.
    pub instructions: u64,
    /// Number of these instructions that were executed.
    pub instructions_covered: u64,
    /// Number of code segments.
    pub segments: usize,
    /// Number of executed code segments.
    pub segments_covered: usize,
}

impl CoverageTotals {
    /// Computes the totals of line coverage and of segment marks.
    pub fn of(line_coverage: &LineCoverage, segments: &[u8]) -> CoverageTotals {
        let (lines_covered, lines) = line_coverage.totals();
        let (functions_covered, functions) = line_coverage.function_totals();
        CoverageTotals {
            lines,
            lines_covered,
            functions,
            functions_covered,
            instructions: line_coverage.instructions,
            instructions_covered: line_coverage.instructions_covered,
            segments: segments.len(),
            segments_covered: segments.iter().filter(|mark| **mark != 0).count(),
        }
    }
}

impl Summary {
    /// Returns the summary without what differs between runs that are otherwise the same: times,
    /// memory, and which lines took most time.
    pub(crate) fn without_measurements(&self) -> Summary {
        let mut summary = self.clone();
        (summary.wall_seconds, summary.solver_seconds) = (0.0, 0.0);
        summary.memory_peak_bytes = 0;
        summary.solver_lines.clear();
        if let Some(team) = &mut summary.team {
            team.idle_seconds.fill(0.0);
        }
        if let Some(world) = &mut summary.world {
            world.invariant_seconds = 0.0;
        }
        summary
    }

    /// Writes the files of the run.
    pub(crate) fn write(&self, folder: &Folder) -> Result<()> {
        let mut written = Ok(());
        for (name, contents) in RUN_FILES {
            let one = contents(self).and_then(|bytes| Ok(folder.write(name, &bytes)?));
            written = written.and(one);
        }
        written
    }
}

/// The name of a file, and its contents for a run.
type RunFile = (&'static str, fn(&Summary) -> Result<Vec<u8>>);

/// The formats of a run's results, one row each, in the order of writing.
const RUN_FILES: &[RunFile] = &[
    // The most important file comes first, because the disk may be full.
    (SUMMARY, |summary| Ok(serde_json::to_vec_pretty(summary)?)),
    (COVERAGE, |summary| {
        Ok(summary.line_coverage.to_lcov().into_bytes())
    }),
];

/// A difference of two builds in the form in which `summary.json` lists it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DifferenceEntry {
    /// The aspects that differ: the end, the exit status, standard output, standard error, files.
    pub aspects: Vec<String>,
    /// How the build under test ends.
    pub new: String,
    /// How the other build ends.
    pub old: String,
    /// The folder of the difference, relative to the folder of the run.
    pub dir: String,
    /// The verdict of the native replay on both builds; `null` if it was not replayed.
    pub confirmed: Option<String>,
    /// The reason why the difference was not confirmed.
    pub confirmed_reason: Option<String>,
}

impl DifferenceEntry {
    /// Returns what differences are ordered by in lists: their contents.
    pub(crate) fn order(&self) -> impl Ord + use<> {
        (self.aspects.clone(), self.new.clone(), self.old.clone())
    }

    /// Returns one line for people.
    pub fn text(&self) -> String {
        let aspects = self.aspects.join(", ");
        format!("{aspects}: this build {}, the other {}", self.new, self.old)
    }

    /// Returns whether the builds differ visibly, in their ends or output.
    pub(crate) fn is_seen_at_end(&self) -> bool {
        self.aspects
            .iter()
            .any(|aspect| !aspect.starts_with("the file "))
    }
}
