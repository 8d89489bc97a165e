//! Removes a run from its broker, with the objects that no other run needs.

use everett::States;
use serde_json::Value;
use std::collections::BTreeSet;

use crate::broker::{Broker, Key, Kind, RunId};
use crate::error::{Error, Result};
use crate::hash::Hash;
use crate::run::cancel;
use crate::states::pack_states;
use crate::status::status;

/// What was removed with a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Removed {
    /// The run, and this number of objects.
    Objects(u64),
    /// The run, but no objects, because these runs may be going on. The next removal takes them.
    NoObjects(Vec<RunId>),
}

/// Removes a run: its records and jobs, and all objects that no remaining run names. Workers that
/// explore jobs of it drop them. What is in the folder of the run stays.
pub fn remove(broker: &mut dyn Broker, run: &RunId) -> Result<Removed> {
    cancel(broker, run)?;
    broker.remove_run(run)?;
    // Objects are shared. A worker that finds one at the broker does not send it again, and names
    // it only afterwards, so nothing is removed while a worker may be at work.
    let mut busy = Vec::new();
    let others = broker.runs()?;
    for other in &others {
        if may_be_explored(broker, other) {
            busy.push(other.clone());
        }
    }
    if !busy.is_empty() {
        return Ok(Removed::NoObjects(busy));
    }
    // They are listed before the runs, so that objects of a run that is submitted meanwhile stay.
    let mut objects = broker.objects()?;
    let mut named = BTreeSet::new();
    for is_world in [false, true] {
        named.insert(Hash::of(&pack_states(&States::beginning(is_world))?));
    }
    for other in broker.runs()? {
        let manifest = broker.look_up(&Key::of_run(Kind::Run, &other))?;
        let outcomes = broker.list(Kind::Outcome, &other)?.into_iter();
        for record in manifest
            .into_iter()
            .chain(outcomes.map(|(_, outcome)| outcome))
        {
            // A broker may have a large record as an object.
            named.insert(Hash::of(&record));
            add_hashes(
                &serde_json::from_slice(&record).map_err(Error::damaged)?,
                &mut named,
            );
        }
    }
    objects.retain(|hash| !named.contains(hash));
    broker.remove_objects(&objects)?;
    Ok(Removed::Objects(objects.len() as u64))
}

/// Returns whether a worker may be exploring a job of a run. A run that cannot be read may belong
/// to another version.
fn may_be_explored(broker: &mut dyn Broker, run: &RunId) -> bool {
    status(broker, run).map_or(true, |status| {
        !(status.is_over() || status.is_cancelled && status.jobs_leased == 0)
    })
}

/// Adds all hashes in a record. The meaning of its fields does not matter, so records of other
/// versions can be read.
fn add_hashes(value: &Value, hashes: &mut BTreeSet<Hash>) {
    match value {
        Value::String(text) => hashes.extend(Hash::parse(text)),
        Value::Array(values) => values.iter().for_each(|value| add_hashes(value, hashes)),
        Value::Object(fields) => fields.values().for_each(|value| add_hashes(value, hashes)),
        _ => {}
    }
}
