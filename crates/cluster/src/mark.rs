//! Marks of a run that say whether its jobs are to be explored now.

use serde::{Deserialize, Serialize};

use crate::broker::{Broker, Key, Kind, RunId};
use crate::error::Result;

/// The mark of a run that was paused at least once.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Pause {
    /// Whether the run is paused.
    pub paused: bool,
}

impl Pause {
    /// Reads the mark of a run. One that is missing or damaged says that the run goes on: a job is
    /// explored too early then, which does no harm.
    pub fn of(broker: &mut dyn Broker, run: &RunId) -> Result<Pause> {
        let mark = broker.look_up(&Key::of_run(Kind::Paused, run))?;
        let mark = mark.and_then(|mark| serde_json::from_slice(&mark).ok());
        Ok(mark.unwrap_or_default())
    }

    /// Replaces the mark of a run.
    pub fn note(&self, broker: &mut dyn Broker, run: &RunId) -> Result<()> {
        let mark = serde_json::to_vec(self).map_err(everett::Error::from)?;
        broker.note(&Key::of_run(Kind::Paused, run), &mark)
    }
}
