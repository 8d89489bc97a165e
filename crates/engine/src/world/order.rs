//! The search order of worlds. By default, the state with the least clock runs next. With a
//! searcher, the searcher picks a state, and one dstate of that state runs to its end. Before each
//! of its states, those that may still send to it run. Near the memory limit, if the mapping does
//! not share states between dstates, one dstate after the other runs to its end.

use everett_net::HostIndex;

use crate::frontier::StateId;
use crate::mapping::DstateId;

/// What determines the next state.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum By {
    /// The clocks of all states.
    Clock,
    /// A searcher picks a state, and one of its dstates runs to its end.
    Searcher,
    /// One dstate after the other runs to its end, the newest first, so that few states are needed
    /// at a time.
    Dstate,
}

/// The search order.
pub struct SearchOrder {
    /// What determines the next state.
    pub(super) by: By,
    /// The dstate that runs to its end, and the number of steps that are left for it.
    pub(super) under_way: Option<(DstateId, u32)>,
    /// Dstates that were created meanwhile, the newest last.
    pub(super) newer: Vec<DstateId>,
}

impl SearchOrder {
    /// Creates the order by a searcher or by clocks.
    pub fn by(by_searcher: bool) -> SearchOrder {
        SearchOrder {
            by: if by_searcher { By::Searcher } else { By::Clock },
            under_way: None,
            newer: Vec::new(),
        }
    }

    /// Returns whether a searcher picks states, so that a state runs for at most a batch.
    pub fn is_by_searcher(&self) -> bool {
        self.by == By::Searcher
    }

    /// Runs one dstate after the other from now on, unless a searcher picks states.
    pub fn save_memory(&mut self) {
        if self.by == By::Clock {
            self.by = By::Dstate;
        }
    }

    /// Records a new dstate.
    pub fn note_new(&mut self, dstate: Option<DstateId>) {
        if self.by == By::Dstate && self.newer.last() != dstate.as_ref() {
            self.newer.extend(dstate);
        }
    }
}

/// The position of a state in the queue.
pub(super) type QueuePlace = (u64, HostIndex, StateId);
