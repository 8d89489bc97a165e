//! `summary.json`: findings, counters and coverage of a run.

use everett_engine::{SolverLine, Unsupported};
use everett_report::{Folder, LineCoverage, counted};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::error::Result;
use crate::finding::FindingEntry;

/// The name of its file.
pub(crate) const SUMMARY: &str = "summary.json";
/// The name of the file with the coverage.
pub(crate) const COVERAGE: &str = "coverage.lcov";

/// The summary of a search of a program or of worlds.
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
    /// Number of forks.
    pub forks: u64,
    /// Peak number of states.
    pub states_peak: u64,
    /// Number of solver queries.
    pub queries: u64,
    /// Time spent in solvers.
    pub solver_seconds: f64,
    /// The lines whose queries took longest, of those that no cheap layer answered; longest first.
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
    /// What programs asked for and the kernel model refused or ignored although Linux would do it.
    /// `complete` does not speak of what lies behind that.
    pub unsupported: Vec<Unsupported>,
    /// Number of tests written.
    pub tests: u64,
    /// States that could not be saved: there was no time, memory or disk left. If `resume_from` is
    /// the last checkpoint, a resumed run lacks them.
    pub states_unsaved: u64,
    /// Where `resume` goes on, if states are left.
    pub resume_from: Option<ResumeFrom>,
    /// Faults that were never injected or happened in no world.
    pub faults_never_fired: Vec<String>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// The findings.
    pub findings: Vec<FindingEntry>,
    /// What two builds differ in, where a run compares two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<Comparison>,
    /// Figures that only searches of programs have.
    #[serde(flatten)]
    pub program: Option<ProgramFigures>,
    /// Figures that only searches of worlds have.
    #[serde(flatten)]
    pub world: Option<WorldFigures>,
    /// Figures of a search on several machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterFigures>,
    /// Coverage by source line.
    #[serde(skip)]
    pub line_coverage: LineCoverage,
}

/// Where `resume` goes on with a run that has states left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResumeFrom {
    /// Where the run stopped.
    LastCheckpoint,
    /// Before that: the last checkpoint could not be written, but an earlier one was.
    EarlierCheckpoint,
    /// At the beginning: no checkpoint could be written.
    Beginning,
}

impl ResumeFrom {
    /// For a run whose last checkpoint was written or not, and whose folder has one.
    pub(crate) fn of(is_saved: bool, has_checkpoint: bool) -> ResumeFrom {
        match (is_saved, has_checkpoint) {
            (true, _) => ResumeFrom::LastCheckpoint,
            (false, true) => ResumeFrom::EarlierCheckpoint,
            (false, false) => ResumeFrom::Beginning,
        }
    }

    /// The warning about states that are not in the last checkpoint, if there are some.
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

/// Figures of a search on several machines.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ClusterFigures {
    /// Jobs that were explored.
    pub jobs: u64,
    /// Jobs that are left.
    pub jobs_left: u64,
    /// States that moved from one job to another.
    pub states_moved: u64,
    /// How often a worker gave states to others and went on with the rest.
    pub transfers: u64,
    /// Bytes of jobs and results that workers sent.
    pub bytes_sent: u64,
    /// Those of the states that moved.
    pub bytes_moved: u64,
    /// The share of all instructions that rematerialised states.
    pub replay_share: f64,
    /// How long each worker has waited for jobs.
    pub idle_seconds: BTreeMap<String, f64>,
    /// Jobs by the worker that explored them.
    pub workers: BTreeMap<String, u64>,
}

/// The comparison of two builds.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// The builds do the same on all inputs: both explorations are
    /// complete, and there is no difference.
    pub equivalent: bool,
    /// Pairs of paths, one of each build, that have been found to differ.
    pub pairs_different: u64,
    /// The first of each kind.
    pub differences: Vec<DifferenceEntry>,
}

/// Figures of the search of a program.
#[derive(Debug, Serialize)]
pub struct ProgramFigures {
    /// Instructions executed to rematerialise states.
    pub instructions_replayed: u64,
    /// States still to be explored.
    pub states_pending: usize,
    /// Number of states spilled to disk.
    pub states_spilled: u64,
    /// Number of states that moved from one worker to another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub states_moved: Option<u64>,
    /// Queries that reached the SAT solver.
    pub queries_sat: u64,
    /// Queries that reached the SMT solver.
    pub queries_smt: u64,
    /// Injectable faults, with the number of paths on which each was injected.
    pub faults: BTreeMap<String, u64>,
}

/// Figures of a search of worlds.
#[derive(Debug, Serialize)]
pub struct WorldFigures {
    /// The algorithm that maps states of different hosts to dstates.
    pub mapping: String,
    /// Worlds that ended.
    pub worlds: u128,
    /// Worlds in which a host is blocked forever.
    pub worlds_stalled: u128,
    /// Worlds in which all hosts are blocked forever.
    pub worlds_deadlocked: u128,
    /// Hosts that end in some worlds and are blocked forever in others.
    pub hosts_stalled: Vec<String>,
    /// States created during the run.
    pub states_total: u64,
    /// States that the mapping algorithm copied.
    pub states_copied: u64,
    /// States that were merged with others.
    pub states_united: u64,
    /// Largest number of dstates at a time.
    pub dstates: usize,
    /// Members of dstates at the end.
    pub virtual_states: usize,
    /// Number of states that moved from one worker to another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub states_moved: Option<u64>,
    /// Instructions executed to rematerialise states.
    pub instructions_replayed: u64,
    /// Packets sent.
    pub packets: u64,
    /// Deliveries between states whose path conditions contradict each other.
    pub deliveries_impossible: u64,
    /// Seconds spent on invariants.
    pub invariant_seconds: f64,
    /// Live peers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<PeerFigures>,
    /// Symbolic bytes that got one value because they were sent to live peers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_concretised: Option<u64>,
}

/// Figures of a live peer.
#[derive(Debug, Serialize)]
pub struct PeerFigures {
    /// Its name.
    pub name: String,
    /// Answers in its recording.
    pub recorded: u64,
    /// Questions that the recording answered.
    pub from_recording: u64,
    /// Questions that a live instance answered.
    pub live: u64,
    /// Fresh instances that were made.
    pub instances: u64,
    /// Answers that were played again to bring them to where others stood.
    pub played_again: u64,
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
    /// Not explored because an analysis did not want it.
    #[serde(skip_serializing_if = "is_zero")]
    pub pruned: f64,
    /// Combinations of states that are no worlds: more faults happen in them than may in a world.
    #[serde(skip_serializing_if = "is_zero")]
    pub excluded: f64,
}

fn is_zero(weight: &f64) -> bool {
    *weight == 0.0
}

/// Coverage of the program.
#[derive(Debug, Serialize)]
pub struct CoverageTotals {
    /// Source lines with code.
    pub lines: usize,
    /// Source lines executed.
    pub lines_covered: usize,
    /// Functions with code.
    pub functions: usize,
    /// Functions executed, in part at least.
    pub functions_covered: usize,
    /// Instructions of the user's code.
    pub instructions: u64,
    /// Those that were executed.
    pub instructions_covered: u64,
    /// Code segments.
    pub segments: usize,
    /// Code segments executed.
    pub segments_covered: usize,
}

impl CoverageTotals {
    /// The totals of line coverage and of segment marks.
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
    // The most important one comes first: the disk may be full.
    (SUMMARY, |summary| Ok(serde_json::to_vec_pretty(summary)?)),
    (COVERAGE, |summary| {
        Ok(summary.line_coverage.to_lcov().into_bytes())
    }),
];

/// A difference of two builds as `summary.json` lists it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DifferenceEntry {
    /// What differs: the end, the exit status, standard output, standard error, files.
    pub aspects: Vec<String>,
    /// How the build under test ends.
    pub new: String,
    /// How the other build ends.
    pub old: String,
    /// Its folder, relative to the folder of the run.
    pub dir: String,
    /// The verdict of the native replay on both builds; `null` if it was not replayed.
    pub confirmed: Option<String>,
    /// Why it was not confirmed.
    pub confirmed_reason: Option<String>,
}

impl DifferenceEntry {
    /// One line for people.
    pub fn text(&self) -> String {
        let aspects = self.aspects.join(", ");
        format!("{aspects}: this build {}, the other {}", self.new, self.old)
    }

    /// The builds are seen to differ by their ends or output.
    pub(crate) fn is_seen_at_end(&self) -> bool {
        self.aspects
            .iter()
            .any(|aspect| !aspect.starts_with("the file "))
    }
}
