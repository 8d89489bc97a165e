//! The runs that a worker accepts. Each manifest is checked when it is read, so that a record that is
//! exchanged later has no effect.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::broker::{Broker, Key, Kind, RunId};
use crate::error::{Error, Result};
use crate::sign::Submitters;

/// The time for which a worker leaves a job that it does not accept to others.
pub(crate) const PAUSE: Duration = Duration::from_secs(1);

/// Why a worker does not accept a run, as recorded for whoever submitted it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Refusal {
    /// The name of the worker.
    pub worker: String,
    /// The reason.
    pub why: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (worker, why) = (&self.worker, &self.why);
        write!(f, "worker {worker} does not accept the run: {why}")
    }
}

/// The runs that a worker accepts: all, or those that certain submitters have signed.
pub(crate) struct Gate {
    accept: Option<Submitters>,
    /// The runs that were checked, and whether they are accepted.
    checked: BTreeMap<RunId, bool>,
}

impl Gate {
    pub fn new(accept: Option<Submitters>) -> Gate {
        Gate {
            accept,
            checked: BTreeMap::new(),
        }
    }

    /// Returns the manifest of a run that is accepted.
    pub fn manifest(&mut self, broker: &mut dyn Broker, run: &RunId) -> Result<Vec<u8>> {
        let manifest = broker.look_up(&Key::of_run(Kind::Run, run))?;
        let manifest = manifest.ok_or_else(|| Error::NoRun(run.to_string()))?;
        if let Some(accept) = &self.accept {
            let checked = accept.expect_signed(broker, run, &manifest);
            if let Ok(()) | Err(Error::NotAccepted(_)) = checked {
                self.checked.insert(run.clone(), checked.is_ok());
            }
            checked?;
        }
        Ok(manifest)
    }

    /// Returns whether the worker has nothing to do with a run, not even to balance its load.
    pub fn is_closed(&mut self, broker: &mut dyn Broker, run: &RunId) -> Result<bool> {
        if self.accept.is_none() {
            return Ok(false);
        }
        if let Some(is_accepted) = self.checked.get(run) {
            return Ok(!is_accepted);
        }
        match self.manifest(broker, run) {
            Ok(_) => Ok(false),
            Err(Error::NotAccepted(_) | Error::NoRun(_)) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Forgets runs that are not there any more.
    pub fn retain(&mut self, is_there: impl Fn(&RunId) -> bool) {
        self.checked.retain(|run, _| is_there(run));
    }
}

/// Records that a worker does not accept a run.
pub(crate) fn note_refused(
    broker: &mut dyn Broker,
    run: &RunId,
    (worker, why): (&str, &str),
) -> Result<()> {
    let refusal = Refusal {
        worker: worker.to_owned(),
        why: why.to_owned(),
    };
    let refusal = serde_json::to_vec(&refusal).map_err(everett::Error::from)?;
    broker.note(&Key::of_run(Kind::Refused, run), &refusal)
}
