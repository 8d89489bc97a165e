//! Budgets: the remaining work of a run on several machines, or of one of its jobs. Owns how a
//! budget is divided; the parts sum to the whole.

use serde::{Deserialize, Serialize};

/// The remaining work of a run or a job; `None` for any amount.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Budget {
    /// Number of paths or worlds that may end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<u64>,
    /// Number of forks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forks: Option<u64>,
    /// Number of instructions, without those that rematerialise states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<u64>,
}

/// The work that was done.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Work {
    /// Number of paths or worlds that ended.
    pub paths: u64,
    /// Number of forks.
    pub forks: u64,
    /// Number of instructions, without those that rematerialised states.
    pub instructions: u64,
}

impl Work {
    /// Adds further work.
    pub fn add(&mut self, work: &Work) {
        self.paths = self.paths.saturating_add(work.paths);
        self.forks = self.forks.saturating_add(work.forks);
        self.instructions = self.instructions.saturating_add(work.instructions);
    }
}

impl Budget {
    fn map(self, map: impl Fn(u64, fn(&Work) -> u64) -> u64) -> Budget {
        Budget {
            paths: self.paths.map(|all| map(all, |work| work.paths)),
            forks: self.forks.map(|all| map(all, |work| work.forks)),
            instructions: self
                .instructions
                .map(|all| map(all, |work| work.instructions)),
        }
    }

    /// Returns whether there is a limit.
    pub fn is_limited(&self) -> bool {
        *self != Budget::default()
    }

    /// Returns the limit that is reached, by the name of its option.
    pub fn spent(&self) -> Option<&'static str> {
        let limits = [
            (self.paths, "max-paths"),
            (self.forks, "max-forks"),
            (self.instructions, "max-work"),
        ];
        let mut spent = limits.into_iter().filter(|(left, _)| *left == Some(0));
        spent.next().map(|(_, name)| name)
    }

    /// Returns the budget after some work. A step of a search may exceed the budget.
    #[must_use]
    pub fn after(self, work: &Work) -> Budget {
        self.map(|all, of| all.saturating_sub(of(work)))
    }

    /// Returns the budget without the budgets of others.
    #[must_use]
    pub fn without(self, others: &Budget) -> Budget {
        self.after(&Work {
            paths: others.paths.unwrap_or(0),
            forks: others.forks.unwrap_or(0),
            instructions: others.instructions.unwrap_or(0),
        })
    }

    /// Returns the part of one of several jobs; the parts sum to the whole.
    #[must_use]
    pub fn part(self, number: u64, of: u64) -> Budget {
        self.map(|all, _| all / of + u64::from(number < all % of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_sum_to_the_whole() {
        let budget = Budget {
            paths: Some(10),
            forks: None,
            instructions: Some(3),
        };
        for count in 1..13 {
            let parts: Vec<Budget> = (0..count).map(|at| budget.part(at, count)).collect();
            assert_eq!(parts.iter().filter_map(|part| part.paths).sum::<u64>(), 10);
            let instructions = parts.iter().filter_map(|part| part.instructions);
            assert_eq!(instructions.sum::<u64>(), 3);
            assert!(parts.iter().all(|part| part.forks.is_none()));
        }
    }

    #[test]
    fn work_is_spent() {
        let budget = Budget {
            paths: Some(10),
            ..Budget::default()
        };
        let work = Work {
            paths: 4,
            forks: 9,
            instructions: 9,
        };
        assert_eq!(budget.after(&work).paths, Some(6));
        assert_eq!((budget.spent(), budget.after(&work).spent()), (None, None));
        let spent = budget.after(&work).after(&work).after(&work);
        assert_eq!((spent.paths, spent.spent()), (Some(0), Some("max-paths")));
        assert!(budget.is_limited() && !Budget::default().is_limited());
        assert_eq!(Budget::default().after(&work).spent(), None);
    }
}
