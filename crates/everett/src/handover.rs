//! Hands a run that was stopped on this machine over to others: its results become the result of a
//! first job, and its pending states are the remaining states of that job.

use everett_engine::{Explorer, ExplorerConfig};
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::Path;

use everett_report::Folder;

use crate::checkpoint::{Checkpoint, SPILL_FILE};
use crate::error::{Context, Error, Result};
use crate::finding::FindingEntry;
use crate::follow::Model;
use crate::job::{JobFinding, JobResult, JobTest, Prepared};
use crate::spec::RunSpec;
use crate::trace::WorldTrace;

impl Prepared {
    /// Returns the results of the run in a folder as the result of a job, with the remaining states
    /// in up to this number of parts. The folder keeps its checkpoint.
    pub fn hand_over(&self, spec: &RunSpec, dir: &Path, parts: usize) -> Result<JobResult> {
        let folder = Folder::open(dir)?;
        let checkpoint = Checkpoint::read(dir)?.ok_or_else(|| Error::NothingToResume {
            path: dir.to_owned(),
        })?;
        if checkpoint.segments() != self.segments() {
            return Err(Error::ProgramChanged);
        }
        checkpoint.remove_later_results(dir)?;
        let config = ExplorerConfig {
            spill: Some(dir.join(SPILL_FILE)),
            ..self.config.clone()
        };
        let mut explorer = Explorer::new(&self.images, config, checkpoint.start())?;
        let left = self.left_of(&mut explorer, parts);
        let result = JobResult {
            part: explorer.part(),
            tests: tests_in(dir, spec)?,
            findings: self.findings_of(&checkpoint, dir, spec)?,
            left,
            ..JobResult::default()
        };
        spec.write(&folder)?;
        Ok(result)
    }

    /// Returns the findings so far, in the form in which a job reports them.
    fn findings_of(
        &self,
        checkpoint: &Checkpoint,
        dir: &Path,
        spec: &RunSpec,
    ) -> Result<Vec<JobFinding>> {
        let is_program = !spec.is_scenario();
        let extension = if is_program { "trace" } else { "world" };
        let mut all = Vec::new();
        for entry in &checkpoint.findings {
            let path = dir.join(format!("{}/finding.{extension}", entry.dir));
            let trace = WorldTrace::read(&path, is_program)?;
            let seen = Model::new(self.config.clone(), &self.images).follow(&trace)?;
            let found = match is_program {
                true => seen.finding_of_kind(&entry.kind),
                false => seen.finding_of(&trace),
            };
            let lost = || format!("the finding of {} is not found again", path.display());
            let found = found.ok_or_else(|| Error::Invalid(lost()))?;
            all.push(JobFinding {
                key: found.key.clone(),
                entry: FindingEntry::of(found, String::new()),
                trace: WorldTrace::of(found, false),
            });
        }
        Ok(all)
    }
}

/// Returns the tests in the folder of a run. Digests of their answers are not known; digests of
/// their contents distinguish them.
fn tests_in(dir: &Path, spec: &RunSpec) -> Result<Vec<JobTest>> {
    let is_program = !spec.is_scenario();
    let extension = if is_program { "trace" } else { "world" };
    let Ok(entries) = fs::read_dir(dir.join("tests")) else {
        return Ok(Vec::new());
    };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|it| it == extension))
        .collect();
    paths.sort();
    let tests = paths.iter().map(|path| {
        let trace = WorldTrace::read(path, is_program)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let mut hasher = DefaultHasher::new();
        serde_json::to_string(&trace)?.hash(&mut hasher);
        Ok(JobTest {
            digest: hasher.finish(),
            trace,
            has_files: spec.save_fs,
        })
    });
    tests.collect()
}
