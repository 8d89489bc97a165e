//! The counts, findings and coverage of a part of a search, as plain data. A checkpoint stores the
//! part explored so far; a search on several machines is the sum of the parts of its jobs.

use everett_net::FaultIndex;
use everett_solver::SolverStatistics;
use serde::{Deserialize, Serialize};

use crate::error::SavedError;
use crate::explorer::Explorer;
use crate::finding::{FindingKey, Unsupported};
use crate::statistics::{
    ExploredWork, KEPT_LIMITS, LOST, SolverFigures, Statistics, WorldStatistics,
};

/// Counters, findings and coverage of a part of a search.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Part {
    /// The counters of the search.
    pub statistics: Statistics,
    /// The coverage of segments: one digit each, `1` if it was executed.
    pub covered: String,
    /// Findings, with the number of paths that ended in each.
    pub findings: Vec<(FindingKey, u64)>,
    /// Names of limits that say what is missing from the results.
    pub limits: Vec<String>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// Requests of programs that the kernel model refused.
    pub unsupported: Vec<Unsupported>,
    /// Counters of the solver.
    #[serde(default)]
    pub solver: SolverFigures,
    /// Counters of worlds.
    #[serde(default)]
    pub worlds: WorldCounts,
}

/// Counters of worlds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WorldCounts {
    /// The counters.
    pub counted: WorldStatistics,
    /// Faults that have happened in some world.
    pub fired: Vec<FaultIndex>,
}

impl Explorer<'_> {
    /// Returns the results of this search so far.
    pub fn part(&self) -> Part {
        let segments = self.worker.coverage.segments.iter();
        let lost = (self.unsaved > 0).then_some(&LOST);
        let limits = self.limits_hit().iter().chain(lost);
        let limits = limits.filter(|limit| KEPT_LIMITS.contains(limit));
        let solver = self.solver_statistics();
        Part {
            statistics: self.statistics.clone(),
            covered: segments
                .map(|mark| if *mark == 0 { '0' } else { '1' })
                .collect(),
            findings: self.findings.all(),
            limits: limits.map(|limit| (*limit).to_owned()).collect(),
            warnings: self.warnings().to_vec(),
            unsupported: self.unsupported(),
            solver: SolverFigures {
                queries: solver.queries,
                sat_queries: solver.sat_queries,
                smt_queries: solver.smt_queries,
                time: solver.sat_time + solver.smt_time,
            },
            worlds: WorldCounts {
                counted: self.world.counted.clone(),
                fired: self.world.times_and_fired().1,
            },
        }
    }

    /// Takes the results since the last call, so that what follows is another part. Coverage,
    /// limits and warnings are those of all parts. Results of worlds cannot be divided.
    pub fn take_part(&mut self) -> Part {
        let part = self.part();
        self.parted_work = self.explored();
        let findings = self.findings.take_counts();
        let solver = part.solver;
        let before = std::mem::replace(&mut self.parted_solver, solver);
        Part {
            statistics: self.take_statistics(),
            findings,
            solver: SolverFigures {
                queries: solver.queries - before.queries,
                sat_queries: solver.sat_queries - before.sat_queries,
                smt_queries: solver.smt_queries - before.smt_queries,
                time: solver.time.saturating_sub(before.time),
            },
            ..part
        }
    }

    /// Returns the work explored so far, including parts that were taken.
    pub(crate) fn explored(&self) -> ExploredWork {
        let (before, statistics) = (self.parted_work, &self.statistics);
        ExploredWork {
            instructions: before.instructions + statistics.instructions,
            forks: before.forks + statistics.forks,
            finished: before.finished + statistics.finished.to_f64(),
        }
    }

    /// Adds the results of another part to those of this search.
    pub fn add_part(&mut self, part: &Part) -> Result<(), SavedError> {
        let segments = &mut self.worker.coverage.segments;
        if segments.len() != part.covered.len() {
            return Err(SavedError::Other);
        }
        for (mark, digit) in segments.iter_mut().zip(part.covered.chars()) {
            *mark |= u8::from(digit == '1');
        }
        self.statistics.add(&part.statistics);
        let peak = &mut self.statistics.states_peak;
        *peak = (*peak).max(part.statistics.states_peak);
        self.world.counted.add(&part.worlds.counted);
        self.world.note_fired(part.worlds.fired.clone());
        for (key, count) in &part.findings {
            self.findings.add(key.clone(), *count);
        }
        for limit in KEPT_LIMITS {
            if part.limits.iter().any(|known| known == limit) {
                self.note_limit(limit);
            }
        }
        for new in &part.unsupported {
            let mut known = self.earlier_refusals.iter_mut();
            match known.find(|known| known.is_same(new)) {
                Some(known) => known.count = known.count.max(new.count),
                None => self.earlier_refusals.push(new.clone()),
            }
        }
        part.warnings
            .iter()
            .for_each(|text| self.warn(text.clone()));
        self.others_solver.add(&SolverStatistics {
            queries: part.solver.queries,
            sat_queries: part.solver.sat_queries,
            smt_queries: part.solver.smt_queries,
            sat_time: part.solver.time,
            ..SolverStatistics::default()
        });
        Ok(())
    }
}
