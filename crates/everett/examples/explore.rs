//! Explores a scenario, reports its findings, and replays the first one on the native programs:
//! `cargo run -p everett --example explore -- SCENARIO.toml FOLDER`

#![allow(clippy::print_stdout)]

use everett::{Event, ReplaySpec, RunSpec, Session, Silent, explore, replay};
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [scenario, folder] = words.as_slice() else {
        return Err("name a scenario and a folder for the results".into());
    };
    println!("{} confirmed", explore_and_replay(scenario, folder)?);
    Ok(())
}

/// Explores a scenario and replays its first finding. Returns the number of confirmed traces.
pub fn explore_and_replay(scenario: &Path, folder: &Path) -> everett::Result<usize> {
    let mut spec = RunSpec::new([scenario]);
    spec.out = Some(folder.to_owned());
    let mut tell = |event: &Event<'_>| {
        if let Event::Finding { entry, .. } = event {
            println!("{} on {}: {}", entry.kind, entry.host, entry.message);
        }
    };
    let run = explore(&spec, &Session::new(), &mut tell)?;
    let Some(first) = run.summary.findings.first() else {
        return Ok(0);
    };
    let finding = ReplaySpec::new(run.folder.join(&first.dir));
    Ok(replay(&finding, &Session::new(), &mut Silent)?.confirmed)
}
