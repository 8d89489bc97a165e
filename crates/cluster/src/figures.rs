//! The status of a run as JSON, for other programs.

use serde_json::{Map, Value, json};

use crate::balance::spread;
use crate::status::Status;

impl Status {
    /// Returns the weights by name. They sum to 1, which [`crate::status()`] has checked.
    pub fn weights(&self) -> [(&'static str, f64); 6] {
        [
            ("finished", &self.finished),
            ("unknown", &self.unknown),
            ("pruned", &self.pruned),
            ("excluded", &self.excluded),
            ("leased", &self.leased),
            ("pending", &self.pending),
        ]
        .map(|(name, weight)| (name, weight.to_f64()))
    }

    /// Returns all figures in the form in which `everett status --json` prints them.
    pub fn to_json(&self) -> Value {
        let weights = self.weights().into_iter();
        let weights: Map<String, Value> = weights
            .map(|(name, weight)| (name.to_owned(), weight.into()))
            .collect();
        let (mean, deviation) = spread(&self.lengths());
        json!({
            "over": self.is_over(), "complete": self.is_complete(), "cancelled": self.is_cancelled,
            "paused": self.is_paused, "paused_because": self.paused_because,
            "refused": self.refusal,
            "limit": self.limit(),
            "jobs": {
                "explored": self.jobs, "leased": self.jobs_leased, "pending": self.jobs_pending,
                "stopped": self.jobs_stopped, "redelivered": self.redelivered,
                "again": self.jobs_again,
            },
            "weight": weights, "paths": self.work.paths, "forks": self.work.forks, "findings": self.findings,
            "states_moved": self.states_moved, "bytes_sent": self.bytes,
            "instructions": self.work.instructions, "replay_share": self.replay_share(),
            "bytes_moved": self.bytes_moved, "segments_covered": self.covered,
            "balance": {
                "mean": mean, "deviation": deviation, "transfers": self.transfers,
                "workers": self.loads, "round": self.round,
            },
            "workers": self.workers, "failures": self.failures,
        })
    }
}
