//! Limits of the whole search: what is counted for all workers together, and when they stop.

use super::*;

/// The limit of a search that a finding has stopped.
pub(super) const STOP_AT: &str = "stop-at";

impl Explorer<'_> {
    /// Returns the limit that the search has reached, if any.
    pub(super) fn limit_reached(&self) -> Option<&'static str> {
        if self.is_late() {
            Some("max-time")
        } else if self.is_at_limit(Counted::Paths) {
            Some("max-paths")
        } else if self.out_of_forks() {
            Some("max-forks")
        } else if self.is_at_limit(Counted::Instructions) {
            Some("max-total-instructions")
        } else if self.is_at_limit(Counted::Stops) {
            Some(STOP_AT)
        } else {
            None
        }
    }

    fn limit_of(&self, counted: Counted) -> Option<u64> {
        match counted {
            Counted::Paths => self.config.limits.max_paths,
            Counted::Forks => self.config.limits.max_forks,
            Counted::Instructions => self.config.limits.max_total_instructions,
            Counted::Stops => (!self.config.stop_at.is_empty()).then_some(1),
        }
    }

    /// Returns whether all workers together have reached a limit.
    pub(super) fn is_at_limit(&self, counted: Counted) -> bool {
        let Some(limit) = self.limit_of(counted) else {
            return false;
        };
        let count = match (&self.member, counted) {
            (Some(member), _) => member.counter(counted).load(Ordering::Relaxed),
            (None, Counted::Paths) => self.paths_ended(),
            (None, Counted::Forks) => self.statistics.forks,
            (None, Counted::Instructions) => self.statistics.instructions,
            (None, Counted::Stops) => u64::from(self.limits_hit.contains(&STOP_AT)),
        };
        count >= limit
    }

    /// Returns the number of instructions that all workers together may still execute.
    pub(super) fn instructions_left(&self) -> u64 {
        let Some(limit) = self.config.limits.max_total_instructions else {
            return u64::MAX;
        };
        let executed = match &self.member {
            Some(member) => {
                let counter = member.counter(Counted::Instructions);
                counter.load(Ordering::Relaxed)
            }
            None => self.statistics.instructions,
        };
        limit.saturating_sub(executed)
    }

    /// Counts one more path or fork for all workers. Returns `false` if the limit is reached.
    pub(super) fn reserve(&self, counted: Counted) -> bool {
        match (&self.member, self.limit_of(counted)) {
            (Some(member), Some(limit)) => {
                let next = |count: u64| (count < limit).then_some(count + 1);
                let counter = member.counter(counted);
                counter
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
                    .is_ok()
            }
            (None, Some(_)) => !self.is_at_limit(counted),
            (_, None) => true,
        }
    }

    /// Counts something for all workers.
    pub(crate) fn count(&self, counted: Counted, more: u64) {
        if let Some(member) = &self.member {
            let counter = member.counter(counted);
            counter.fetch_add(more, Ordering::Relaxed);
        }
    }
}
