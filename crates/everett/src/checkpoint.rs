//! The checkpoint of a stopped run, from which `everett resume` continues.

use everett_engine::{Bundle, Explorer, Start, WeightSum};
use everett_report::Folder;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::error::{Context, Error, Result, bail};
use crate::record::{FindingEntry, Recorder};

const FILE: &str = "checkpoint.json";
/// The name of the spill file, which lies beside the checkpoint.
pub(crate) const SPILL_FILE: &str = "spill";

/// The checkpoint of a stopped run.
#[derive(Serialize, Deserialize)]
pub struct Checkpoint {
    /// States still to be explored; their contents are in the spill file.
    left: Vec<Bundle>,
    /// Findings so far.
    pub findings: Vec<FindingEntry>,
    /// Tests written so far.
    pub tests: u64,
    /// Wall-clock time used so far.
    pub wall_seconds: f64,
    finished: String,
    unknown: String,
    instructions: u64,
    replayed: u64,
    forks: u64,
    paths_completed: u64,
    paths_partial: u64,
    states_peak: u64,
    spilled: u64,
    #[serde(default)]
    faults: BTreeMap<String, u64>,
    /// Coverage of segments: one digit per segment, `1` if it was executed.
    covered: String,
}

impl Checkpoint {
    /// The checkpoint of a run whose remaining states are `left`.
    pub fn of(
        explorer: &Explorer<'_>,
        left: Vec<Bundle>,
        recorder: &Recorder<'_>,
        wall: Duration,
    ) -> Checkpoint {
        let statistics = explorer.statistics();
        Checkpoint {
            left,
            findings: recorder.findings.clone(),
            tests: recorder.tests,
            wall_seconds: wall.as_secs_f64(),
            finished: statistics.finished.to_hex(),
            unknown: statistics.unknown.to_hex(),
            instructions: statistics.instructions,
            replayed: statistics.replayed,
            forks: statistics.forks,
            paths_completed: statistics.paths_completed,
            paths_partial: statistics.paths_partial,
            states_peak: statistics.states_peak,
            spilled: statistics.spilled,
            faults: statistics.faults.clone(),
            covered: explorer
                .coverage()
                .segments
                .iter()
                .map(|mark| if *mark == 0 { '0' } else { '1' })
                .collect(),
        }
    }

    /// The number of segments of the program.
    pub fn segments(&self) -> usize {
        self.covered.len()
    }

    /// Writes the checkpoint to the folder of the run.
    pub fn write(&self, folder: &Folder) -> Result<()> {
        Ok(folder.write(FILE, &serde_json::to_vec(self)?)?)
    }

    /// The starting point of the resumed search.
    pub fn start(&self) -> Start {
        Start::Left(self.left.clone())
    }

    /// Reads and validates the checkpoint in a folder.
    pub fn read(dir: &Path) -> Result<Checkpoint> {
        let path = dir.join(FILE);
        let text = std::fs::read(&path).map_err(|source| Error::NothingToResume {
            path: dir.to_owned(),
            source,
        })?;
        let damaged = |source: Error| Error::Damaged {
            path: path.clone(),
            source: Box::new(source),
        };
        let checkpoint: Checkpoint =
            serde_json::from_slice(&text).map_err(|error| damaged(error.into()))?;
        checkpoint.check().map_err(damaged)?;
        Ok(checkpoint)
    }

    /// Rejects values that no run can produce.
    fn check(&self) -> Result<()> {
        for weight in [&self.finished, &self.unknown] {
            if WeightSum::from_hex(weight).is_none() {
                bail!(Invalid, "a weight is no number");
            }
        }
        if let Err(error) = Duration::try_from_secs_f64(self.wall_seconds) {
            bail!(Invalid, "the time is no time: {error}");
        }
        if self.left.iter().any(|bundle| bundle.weight().is_none()) {
            bail!(Invalid, "the weight of a state is no number");
        }
        Ok(())
    }

    /// Removes the checkpoint and its spill file, since the run is complete.
    pub fn remove(dir: &Path) -> Result<()> {
        for name in [FILE, SPILL_FILE] {
            match std::fs::remove_file(dir.join(name)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error).context(format!("cannot remove {name}"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Restores counters, coverage and known findings of the stopped run into an explorer.
    pub fn restore(&self, explorer: &mut Explorer<'_>) {
        for (mark, digit) in explorer
            .coverage_mut()
            .segments
            .iter_mut()
            .zip(self.covered.chars())
        {
            *mark = u8::from(digit == '1');
        }
        for finding in &self.findings {
            let (kind, file) = (finding.kind.clone(), finding.file.clone());
            explorer
                .findings_mut()
                .count((kind, file, finding.line, finding.function.clone()));
        }
        let statistics = explorer.statistics_mut();
        statistics.finished = WeightSum::from_hex(&self.finished).unwrap_or_default();
        statistics.unknown = WeightSum::from_hex(&self.unknown).unwrap_or_default();
        statistics.instructions = self.instructions;
        statistics.replayed = self.replayed;
        statistics.forks = self.forks;
        statistics.paths_completed = self.paths_completed;
        statistics.paths_partial = self.paths_partial;
        statistics.states_peak = self.states_peak;
        statistics.spilled = self.spilled;
        statistics.faults = self.faults.clone();
    }
}
