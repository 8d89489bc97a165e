//! Planned faults: which faults hit a host is decided before the run. Other faults do not happen.

use everett_vm::ChoiceSite;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// The failure of a call whose plan names none: the first that is possible and that programs do not
/// simply try again.
pub const USUAL: &str = "usual";

/// Failures after which programs try again, or go on with the rest.
const PASSING: &[&str] = &["EINTR", "EAGAIN", "short", "spurious"];

/// What a planned fault is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum PlannedKind {
    /// A system call fails in a way: with an errno, or `short`.
    Call {
        /// Name of the call.
        call: String,
        /// Name of the failure, or [`USUAL`].
        failure: String,
    },
    /// An allocation fails.
    Allocation,
    /// A fault of the scenario, of packets, hosts or worlds, by its name.
    Scenario(String),
}

impl PlannedKind {
    /// The alternative of a choice that is this fault; `None` if the
    /// choice is about something else.
    pub fn alternative(&self, site: &ChoiceSite) -> Option<u32> {
        let named = |name: &str| site.faults().position(|fault| fault == name);
        let at = match (self, site) {
            (
                PlannedKind::Call { call, failure },
                ChoiceSite::CallFault {
                    call: asked,
                    failures,
                },
            ) if call == asked && failure == USUAL => {
                let lasting = failures.iter().position(|name| !PASSING.contains(&name));
                lasting.or(failures.iter().next().map(|_| 0))
            }
            (
                PlannedKind::Call { call, failure },
                ChoiceSite::CallFault {
                    call: asked,
                    failures,
                },
            ) if call == asked => failures.iter().position(|name| name == failure),
            (PlannedKind::Allocation, ChoiceSite::AllocationFault) => Some(0),
            (
                PlannedKind::Scenario(name),
                ChoiceSite::PacketFault { .. } | ChoiceSite::HostFault { .. },
            ) => named(name),
            (PlannedKind::Scenario(name), ChoiceSite::WorldFault { fault }) => {
                (**fault == **name).then_some(0)
            }
            _ => None,
        };
        at.map(|at| at as u32 + 1)
    }
}

/// From where a call must come, and with what, to fail or to count.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PlannedSite {
    /// A source line, a function or a frame, which must be on the stack.
    pub callsite: Option<String>,
    /// The name of the whole stack.
    pub stack: Option<String>,
    /// The arguments of the call, or one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
}

impl PlannedSite {
    /// Returns whether it depends on the call stack.
    pub fn has_stack(&self) -> bool {
        self.callsite.is_some() || self.stack.is_some()
    }
}

/// A fault to inject into a host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PlannedFault {
    /// What it is.
    pub kind: PlannedKind,
    /// The first time that it happens, of all that it could; 0 if it never does.
    pub first: u64,
    /// The last time.
    pub last: u64,
    /// Where it happens; calls from elsewhere do not count. Anywhere if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<PlannedSite>,
    /// How often it could have happened so far.
    #[serde(skip)]
    asked: u64,
}

impl PlannedFault {
    /// A fault that happens from a first to a last time.
    pub fn new(kind: PlannedKind, first: u64, last: u64) -> PlannedFault {
        PlannedFault {
            kind,
            first,
            last,
            from: None,
            asked: 0,
        }
    }

    /// The same, of calls from one place.
    pub fn from(self, from: Option<PlannedSite>) -> PlannedFault {
        PlannedFault { from, ..self }
    }
}

/// The faults of a host.
#[derive(Clone, Debug, Default)]
pub struct Plan(pub Vec<PlannedFault>);

impl Plan {
    /// Returns where faults happen that happen only at calls from one place.
    pub fn sites(&self) -> impl Iterator<Item = &PlannedSite> {
        self.0.iter().filter_map(|fault| fault.from.as_ref())
    }

    /// The alternative of a choice: 0 unless a fault is due. `is_from` says whether the call comes
    /// from a place.
    pub fn pick(&mut self, site: &ChoiceSite, is_from: impl Fn(&PlannedSite) -> bool) -> u32 {
        self.pick_where(site, |_, fault| fault.from.as_ref().is_none_or(&is_from))
    }

    /// The same; `counts` says of which faults, by their indices, the choice is one.
    fn pick_where(
        &mut self,
        site: &ChoiceSite,
        counts: impl Fn(usize, &PlannedFault) -> bool,
    ) -> u32 {
        let mut picked = 0;
        for (at, fault) in self.0.iter_mut().enumerate() {
            let Some(alternative) = fault.kind.alternative(site) else {
                continue;
            };
            if !counts(at, fault) {
                continue;
            }
            fault.asked += 1;
            let is_due = fault.first > 0 && (fault.first..=fault.last).contains(&fault.asked);
            if is_due && picked == 0 {
                picked = alternative;
            }
        }
        picked
    }

    /// Returns whether a fault of this choice happens only at calls from one place.
    pub fn has_sites_of(&self, site: &ChoiceSite) -> bool {
        let has_site = |fault: &PlannedFault| fault.from.is_some();
        let mut due = self.0.iter().filter(|fault| has_site(fault));
        due.any(|fault| fault.kind.alternative(site).is_some())
    }

    /// Counts a choice for the faults that happen only at calls from the place of the call. `asked`
    /// has a number for each fault.
    pub fn count(
        &self,
        site: &ChoiceSite,
        is_from: impl Fn(&PlannedSite) -> bool,
        asked: &mut SmallVec<[Asked; 1]>,
    ) {
        asked.resize(self.0.len(), Asked::default());
        for (fault, asked) in self.0.iter().zip(asked) {
            let counts = fault.kind.alternative(site).is_some();
            let from = fault.from.as_ref().filter(|_| counts);
            asked.is_now = from.is_some_and(&is_from);
            asked.times += u64::from(asked.is_now);
        }
    }

    /// The alternative of a choice on a path that has made these choices before. `asked` is what
    /// [`Plan::count`] has counted, this choice included.
    pub fn pick_after<'s>(
        &self,
        before: impl IntoIterator<Item = &'s ChoiceSite>,
        site: &ChoiceSite,
        asked: &[Asked],
    ) -> u32 {
        let due = |(fault, _): &(&PlannedFault, Asked)| fault.kind.alternative(site).is_some();
        let asked = asked
            .iter()
            .copied()
            .chain(std::iter::repeat(Asked::default()));
        let due: Vec<(&PlannedFault, Asked)> = self.0.iter().zip(asked).filter(due).collect();
        let mut anywhere = Plan(
            due.iter()
                .map(|(fault, _)| PlannedFault::clone(fault))
                .collect(),
        );
        if anywhere.0.is_empty() {
            return 0;
        }
        for (fault, (_, asked)) in anywhere.0.iter_mut().zip(&due) {
            // What the path has counted, without this choice.
            fault.asked = asked.times - u64::from(asked.is_now);
        }
        let now: Vec<bool> = due.iter().map(|(_, asked)| asked.is_now).collect();
        for earlier in before {
            anywhere.pick_where(earlier, |_, fault| fault.from.is_none());
        }
        anywhere.pick_where(site, |at, fault| fault.from.is_none() || now[at])
    }
}

/// How often a fault of calls from one place could have happened on a path.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Asked {
    /// How often so far.
    pub times: u64,
    /// Whether the choice that was counted last is one of them.
    pub is_now: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_happen_when_they_are_due() {
        let site = |call: &'static str| ChoiceSite::CallFault {
            call: call.into(),
            failures: ["EINTR", "EIO"].into_iter().collect(),
        };
        let read = |failure: &str| PlannedKind::Call {
            call: "read".to_owned(),
            failure: failure.to_owned(),
        };
        let mut plan = Plan(vec![
            PlannedFault::new(read("EIO"), 2, 3),
            PlannedFault::new(read("ENOSPC"), 1, u64::MAX),
            PlannedFault::new(PlannedKind::Allocation, 0, 0),
        ]);
        let picked: Vec<u32> = (0..4)
            .map(|_| plan.pick(&site("read"), |_| false))
            .collect();
        assert_eq!(picked, [0, 2, 2, 0]);
        assert_eq!(plan.pick(&site("write"), |_| false), 0);
        let mut usual = Plan(vec![PlannedFault::new(read(USUAL), 1, 1)]);
        assert_eq!(usual.pick(&site("read"), |_| false), 2);
        assert_eq!(plan.pick(&ChoiceSite::AllocationFault, |_| false), 0);
        assert_eq!(plan.pick(&ChoiceSite::Schedule, |_| false), 0);
    }

    #[test]
    fn only_calls_from_the_place_of_a_fault_count() {
        let from = PlannedSite {
            callsite: Some("put".to_owned()),
            ..PlannedSite::default()
        };
        let fault = PlannedFault::new(PlannedKind::Allocation, 2, 2).from(Some(from));
        let mut plan = Plan(vec![fault]);
        assert!(plan.sites().all(PlannedSite::has_stack));
        let asked = ["put", "main", "main", "put", "put"];
        let picked = asked.map(|at| {
            let is_from = |from: &PlannedSite| from.callsite.as_deref() == Some(at);
            plan.pick(&ChoiceSite::AllocationFault, is_from)
        });
        assert_eq!(picked, [0, 0, 0, 1, 0]);
    }

    #[test]
    fn choices_that_were_made_before_count() {
        let plan = Plan(vec![PlannedFault::new(PlannedKind::Allocation, 3, 3)]);
        let before = [
            ChoiceSite::AllocationFault,
            ChoiceSite::Schedule,
            ChoiceSite::AllocationFault,
        ];
        for (number, picked) in [(0, 0), (1, 0), (2, 0), (3, 1)] {
            let site = ChoiceSite::AllocationFault;
            assert_eq!(
                plan.pick_after(&before[..number], &site, &[]),
                picked,
                "{number}"
            );
        }
        assert_eq!(plan.pick_after(&before, &ChoiceSite::Schedule, &[]), 0);
    }

    #[test]
    fn paths_count_calls_from_the_place_of_a_fault() {
        let from = PlannedSite {
            callsite: Some("put".to_owned()),
            ..PlannedSite::default()
        };
        let fault = PlannedFault::new(PlannedKind::Allocation, 2, 2);
        let plan = Plan(vec![
            PlannedFault::new(PlannedKind::Allocation, 9, 9),
            fault.from(Some(from)),
        ]);
        let site = ChoiceSite::AllocationFault;
        assert!(plan.has_sites_of(&site) && !plan.has_sites_of(&ChoiceSite::Schedule));
        let (mut before, mut asked) = (Vec::new(), SmallVec::new());
        let picked = ["put", "main", "put", "main", "put"].map(|at| {
            let is_from = |from: &PlannedSite| from.callsite.as_deref() == Some(at);
            plan.count(&site, is_from, &mut asked);
            let picked = plan.pick_after(&before, &site, &asked);
            before.push(site.clone());
            picked
        });
        assert_eq!(picked, [0, 0, 1, 0, 0]);
    }
}
