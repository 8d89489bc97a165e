//! The search order of worlds. By default, the state with the least clock runs next. With a
//! searcher, the searcher picks a state, and one dstate of that state runs to its end: before each
//! of its states, those that may still send to it run. Near the memory limit, if the mapping does
//! not share states between dstates, one dstate after the other runs to its end.

use everett_net::HostIndex;

use crate::frontier::StateId;
use crate::mapping::DstateId;

/// What decides which state is next.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum By {
    /// The clocks of all states.
    Clock,
    /// A searcher picks a state, and one of its dstates is brought to its end.
    Searcher,
    /// One dstate is brought to its end after the other, the newest first, so that
    /// few states are needed at a time.
    Dstate,
}

/// The search order.
pub struct SearchOrder {
    pub(super) by: By,
    /// The dstate that is brought to its end, and for how many steps.
    pub(super) under_way: Option<(DstateId, u32)>,
    /// Dstates that were made meanwhile, the newest last.
    pub(super) newer: Vec<DstateId>,
}

impl SearchOrder {
    /// By a searcher, or by the clock.
    pub fn by(by_searcher: bool) -> SearchOrder {
        SearchOrder {
            by: if by_searcher { By::Searcher } else { By::Clock },
            under_way: None,
            newer: Vec::new(),
        }
    }

    /// A state runs for a batch at most.
    pub fn is_by_searcher(&self) -> bool {
        self.by == By::Searcher
    }

    /// From now on one dstate after the other, unless a searcher decides.
    pub fn save_memory(&mut self) {
        if self.by == By::Clock {
            self.by = By::Dstate;
        }
    }

    /// Notes a new dstate.
    pub fn note_new(&mut self, dstate: Option<DstateId>) {
        if self.by == By::Dstate && self.newer.last() != dstate.as_ref() {
            self.newer.extend(dstate);
        }
    }
}

/// The position of a state in the queue.
pub(super) type QueuePlace = (u64, HostIndex, StateId);
