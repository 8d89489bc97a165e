//! Marks of a run that say whether its jobs are to be explored now.

use serde::{Deserialize, Serialize};
use std::time::Duration;

use crate::broker::{Broker, Key, Kind, RunId};
use crate::error::Result;
use crate::run::RunKind;

/// The mark of a run that was paused at least once.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Pause {
    /// Whether the run is paused.
    pub paused: bool,
    /// The time at the broker when it was paused the last time.
    #[serde(default)]
    since: Duration,
    /// The duration of all pauses before.
    #[serde(default)]
    before: Duration,
    /// The reason why a worker has paused it; `None` if somebody wanted that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Pause {
    /// Reads the mark of a run. One that is missing or damaged says that the run goes on: a job is
    /// explored too early then, which does no harm.
    pub fn of(broker: &mut dyn Broker, run: &RunId) -> Result<Pause> {
        let mark = broker.look_up(&Key::of_run(Kind::Paused, run))?;
        let mark = mark.and_then(|mark| serde_json::from_slice(&mark).ok());
        Ok(mark.unwrap_or_default())
    }

    /// Returns the mark of the same run when it is paused, or goes on, at a time.
    pub fn changed(&self, paused: bool, now: Duration) -> Pause {
        Pause {
            paused,
            since: now,
            before: self.until(now),
            why: None,
        }
    }

    /// Returns the duration of all pauses until a time.
    fn until(&self, now: Duration) -> Duration {
        match self.paused {
            true => {
                let last = now.saturating_sub(self.since);
                self.before.saturating_add(last)
            }
            false => self.before,
        }
    }

    /// Replaces the mark of a run.
    pub fn note(&self, broker: &mut dyn Broker, run: &RunId) -> Result<()> {
        let mark = serde_json::to_vec(self).map_err(everett::Error::from)?;
        broker.note(&Key::of_run(Kind::Paused, run), &mark)
    }
}

/// Returns how long a run may still be explored: without its pauses, all of its time since the first
/// worker began. `None` if it has no time limit.
pub(crate) fn time_left(
    broker: &mut dyn Broker,
    run: &RunId,
    kind: &RunKind,
    pause: &Pause,
) -> Result<Option<Duration>> {
    let Some(most) = kind.max_time else {
        return Ok(None);
    };
    // A damaged record limits nothing: a run must not end the workers of all others.
    let began = broker.look_up(&Key::of_run(Kind::Began, run))?;
    let began = began.and_then(|began| serde_json::from_slice::<Duration>(&began).ok());
    let Some(began) = began else {
        return Ok(Some(most));
    };
    let now = broker.now()?;
    let spent = now.saturating_sub(pause.until(now)).saturating_sub(began);
    Ok(Some(most.saturating_sub(spent)))
}

/// Starts the time of a run that has a time limit, unless another worker has.
pub(crate) fn begin(
    broker: &mut dyn Broker,
    run: &RunId,
    kind: &RunKind,
    pause: &Pause,
) -> Result<()> {
    let key = Key::of_run(Kind::Began, run);
    if kind.max_time.is_some() && broker.look_up(&key)?.is_none() {
        // Pauses before that do not count, either.
        let now = broker.now()?;
        let began = now.saturating_sub(pause.until(now));
        let began = serde_json::to_vec(&began).map_err(everett::Error::from)?;
        broker.record(&key, &began)?;
    }
    Ok(())
}
