//! Limits on the share of all forks, and of all queries, that one instruction or one call path may
//! have (KLEE's `--max-static-fork-pct` and its siblings). Beyond a limit, a fork there takes one
//! side. Must not know what becomes of the other one.

use everett_vm::CallSite;
use std::collections::HashMap;

/// The largest shares, from 0 to 1; `None` is no limit. Queries stand for the time of the solver:
/// they are the same on every machine.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct ShareLimits {
    /// Forks at one instruction.
    pub forks: Option<f64>,
    /// Forks in one function, called by one sequence of callers.
    pub path_forks: Option<f64>,
    /// Queries of one instruction that no cheap layer of the solver answered.
    pub queries: Option<f64>,
    /// Such queries in one function, called by one sequence of callers.
    pub path_queries: Option<f64>,
    /// The number of forks before which there is no limit.
    pub delay: u64,
}

impl ShareLimits {
    /// Returns whether there is a limit.
    pub fn is_any(&self) -> bool {
        let all = [self.forks, self.path_forks, self.queries, self.path_queries];
        all.iter().any(Option::is_some)
    }
}

/// The names of the limits, which are those of the options.
pub(crate) const SHARES: [&str; 4] = [
    "max-static-fork-pct",
    "max-static-cpfork-pct",
    "max-static-solve-pct",
    "max-static-cpsolve-pct",
];

/// Counts of one kind, by place.
#[derive(Default)]
struct Counts {
    all: u64,
    sites: HashMap<CallSite, u64>,
    paths: HashMap<u64, u64>,
}

impl Counts {
    fn add(&mut self, (site, path): (CallSite, u64), count: u64) {
        self.all += count;
        *self.sites.entry(site).or_default() += count;
        *self.paths.entry(path).or_default() += count;
    }

    fn exceeds(&self, count: Option<&u64>, share: Option<f64>) -> bool {
        let count = count.copied().unwrap_or(0) as f64;
        share.is_some_and(|share| count > self.all as f64 * share)
    }
}

/// The forks and queries of a worker so far, by place.
pub(crate) struct Shares {
    limits: ShareLimits,
    forks: Counts,
    queries: Counts,
    /// Where the last question was asked: the instruction, and a digest of the call path.
    place: Option<(CallSite, u64)>,
    /// The number of queries that are counted.
    counted: u64,
}

impl Shares {
    /// Creates the counts, if there are limits.
    pub fn new(limits: ShareLimits) -> Option<Shares> {
        let shares = Shares {
            limits,
            forks: Counts::default(),
            queries: Counts::default(),
            place: None,
            counted: 0,
        };
        limits.is_any().then_some(shares)
    }

    /// Notes where the next question is asked; the solver has answered this many queries before.
    pub fn asks_from(&mut self, site: CallSite, path: u64, queries: u64) {
        self.settle(queries);
        self.place = Some((site, path));
    }

    /// Counts the queries since the last call for the place of the last question.
    fn settle(&mut self, queries: u64) {
        let new = queries.saturating_sub(self.counted);
        self.counted = queries;
        if let (Some(place), true) = (self.place, new > 0) {
            self.queries.add(place, new);
        }
    }

    /// Returns the limit that the place of the last question exceeds, and that place.
    pub fn exceeded(&mut self, queries: u64) -> Option<(&'static str, CallSite)> {
        self.settle(queries);
        let (site, path) = self.place?;
        if self.forks.all < self.limits.delay {
            return None;
        }
        let (limits, forks, queries) = (&self.limits, &self.forks, &self.queries);
        let exceeds = [
            forks.exceeds(forks.sites.get(&site), limits.forks),
            forks.exceeds(forks.paths.get(&path), limits.path_forks),
            queries.exceeds(queries.sites.get(&site), limits.queries),
            queries.exceeds(queries.paths.get(&path), limits.path_queries),
        ];
        let at = exceeds.iter().position(|exceeds| *exceeds)?;
        Some((SHARES[at], site))
    }

    /// Counts a fork at the place of the last question.
    pub fn forked(&mut self) {
        if let Some(place) = self.place {
            self.forks.add(place, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everett_ir::code::FunctionId;
    use everett_vm::ImageId;

    fn at(pc: u32) -> CallSite {
        CallSite {
            image: ImageId(0),
            function: FunctionId(0),
            pc,
        }
    }

    #[test]
    fn a_place_beyond_its_share_of_forks_is_told_after_the_delay() {
        let limits = ShareLimits {
            forks: Some(0.5),
            delay: 2,
            ..ShareLimits::default()
        };
        let mut shares = Shares::new(limits).expect("there is a limit");
        shares.asks_from(at(1), 7, 0);
        for _ in 0..2 {
            assert_eq!(shares.exceeded(0), None);
            shares.forked();
        }
        assert_eq!(shares.exceeded(0), Some(("max-static-fork-pct", at(1))));
        shares.asks_from(at(2), 7, 0);
        assert_eq!(shares.exceeded(0), None);
        for _ in 0..2 {
            shares.forked();
        }
        // Half of the forks is not more than half of them.
        shares.asks_from(at(1), 7, 0);
        assert_eq!(shares.exceeded(0), None);
    }

    #[test]
    fn queries_count_for_the_place_that_asked() {
        let limits = ShareLimits {
            path_queries: Some(0.5),
            ..ShareLimits::default()
        };
        let mut shares = Shares::new(limits).expect("there is a limit");
        shares.asks_from(at(1), 7, 5);
        shares.asks_from(at(2), 8, 8);
        assert_eq!(shares.exceeded(9), None, "3 of 4 were asked before");
        shares.asks_from(at(3), 7, 9);
        assert_eq!(shares.exceeded(9), Some(("max-static-cpsolve-pct", at(3))));
    }

    #[test]
    fn without_limits_nothing_is_counted() {
        assert!(Shares::new(ShareLimits::default()).is_none());
    }
}
