//! Replays a scenario of a search and says whether it ends as it did.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::impact::{Measured, measure};
use crate::manager::Seen;
use crate::results::ScenarioResult;
use crate::settings::SearchConfig;
use crate::space::Scenario;
use crate::system::System;

/// Which scenario to replay.
#[derive(Clone, Debug, Default)]
pub struct ReplaySpec {
    /// Its folder: `DIR/scenarios/NAME`, or `DIR/NAME`.
    pub folder: PathBuf,
    /// How often.
    pub times: u32,
    /// The command that starts a manager.
    pub manager: Vec<OsString>,
}

/// A replay.
pub struct ReplayResult {
    /// What was recorded.
    pub recorded: ScenarioResult,
    /// What each run shows.
    pub shown: Vec<Measured>,
    /// The last run.
    pub seen: Option<Seen>,
}

impl ReplayResult {
    /// Whether all runs ended as the recorded one.
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

/// The folder of results that a scenario is in, and the folder of the scenario.
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
        // The library of the search saves building it; without it, it is built.
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
