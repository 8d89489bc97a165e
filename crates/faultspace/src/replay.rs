//! Replays a scenario of a search and reports whether it ends as recorded.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::impact::{Measured, measure};
use crate::manager::Seen;
use crate::results::ScenarioResult;
use crate::settings::SearchConfig;
use crate::space::Scenario;
use crate::system::System;

/// The scenario to replay.
#[derive(Clone, Debug, Default)]
pub struct ReplaySpec {
    /// The folder of the scenario: `DIR/scenarios/NAME`, or `DIR/NAME`.
    pub folder: PathBuf,
    /// The number of replays.
    pub times: u32,
    /// The command that starts a manager.
    pub manager: Vec<OsString>,
}

/// The result of a replay.
pub struct ReplayResult {
    /// The recorded result.
    pub recorded: ScenarioResult,
    /// The measurements of each run.
    pub shown: Vec<Measured>,
    /// The last run.
    pub seen: Option<Seen>,
}

impl ReplayResult {
    /// Returns whether all runs ended as recorded.
    pub fn is_same(&self) -> bool {
        self.shown
            .iter()
            .all(|one| one.outcome == self.recorded.outcome)
    }
}

/// Reads a file of results.
pub(crate) fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let bytes = everett_report::read_file(path).map_err(Error::reading(path))?;
    serde_json::from_slice(&bytes).map_err(|source| Error::Damaged {
        path: path.to_owned(),
        source,
    })
}

/// Returns the folder of results that contains a scenario, and the folder of the scenario.
fn places(folder: &Path) -> Result<(PathBuf, PathBuf)> {
    let absolute = |path: &Path| path.canonicalize().map_err(Error::reading(path));
    let named = match (folder.parent(), folder.file_name()) {
        (Some(parent), Some(name)) if !folder.exists() => parent.join("scenarios").join(name),
        _ => folder.to_owned(),
    };
    let scenario = absolute(&named)?;
    match scenario.parent().and_then(Path::parent) {
        Some(results) if results.join("search.json").exists() => Ok((results.to_owned(), scenario)),
        _ => Err(Error::Usage(format!(
            "{} is not a scenario of a fault search: expected DIR/scenarios/NAME",
            folder.display()
        ))),
    }
}

/// Replays a scenario.
pub fn replay(spec: &ReplaySpec) -> Result<ReplayResult> {
    let (results, folder) = places(&spec.folder)?;
    let config: SearchConfig = read(&results.join("search.json"))?;
    let recorded: ScenarioResult = read(&folder.join("result.json"))?;
    let scenario = Scenario::parse(&recorded.scenario).map_err(Error::Usage)?;
    let work = std::env::temp_dir().join(format!("everett-faults-{}", std::process::id()));
    std::fs::create_dir_all(&work).map_err(Error::writing(&work))?;
    for file in ["preload.c", "preload.so"] {
        // Copy the library of the search to save time; if that fails, it is built.
        let _ = std::fs::copy(results.join(file), work.join(file));
    }
    let outcome = replay_in(&config, &scenario, recorded, spec, &work);
    let _ = std::fs::remove_dir_all(&work);
    outcome
}

fn replay_in(
    config: &SearchConfig,
    scenario: &Scenario,
    recorded: ScenarioResult,
    spec: &ReplaySpec,
    work: &Path,
) -> Result<ReplayResult> {
    let system = System::new(config, &spec.manager, work)?;
    let without = system.without_faults(scenario)?;
    let mut result = ReplayResult {
        recorded,
        shown: Vec::new(),
        seen: None,
    };
    for _ in 0..spec.times.max(1) {
        let seen = system.run(scenario)?;
        let covered = seen.coverage.iter().cloned().collect();
        result
            .shown
            .push(measure(&config.impact, &seen, Some(&without), &covered));
        result.seen = Some(seen);
    }
    Ok(result)
}
