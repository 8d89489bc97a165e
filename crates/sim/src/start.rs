//! When a host starts: at a fixed time, or (`start = "blocked"`) as soon as the hosts before it are
//! blocked.
//!
//! A host that blocks or continues notifies the hosts after it that have not started. A
//! notification is delivered like a packet, so the initial state of the host depends on the paths
//! on which the earlier hosts blocked.

use everett_linux::Host;
use everett_net::{HostIndex, StartTime};
use std::sync::Arc;

use crate::inbox::RunState;

/// An interval of time, half open.
type Interval = (u64, u64);

/// What a host that has not started knows about the hosts before it. Cloning is O(1).
#[derive(Clone, Debug)]
struct Awaited {
    /// The intervals in which each of these hosts was blocked.
    hosts: Arc<Vec<Vec<Interval>>>,
}

impl Awaited {
    /// The initial knowledge: none of the hosts is blocked.
    fn new(hosts: usize) -> Awaited {
        Awaited {
            hosts: Arc::new(vec![Vec::new(); hosts]),
        }
    }

    /// Records that an earlier host blocks or continues at a time.
    fn note(&mut self, host: HostIndex, waits: bool, at_ns: u64) {
        let hosts = Arc::make_mut(&mut self.hosts);
        let Some(intervals) = hosts.get_mut(host.index()) else {
            return;
        };
        match (waits, intervals.last_mut()) {
            (true, _) => intervals.push((at_ns, u64::MAX)),
            (false, Some(last)) => last.1 = at_ns,
            (false, None) => {}
        }
        // The host cannot start before each of them has blocked once; earlier intervals do not
        // matter.
        let firsts = hosts.iter().map(|intervals| intervals.first());
        let firsts: Option<Vec<u64>> = firsts.map(|first| Some(first?.0)).collect();
        let earliest = firsts.and_then(|firsts| firsts.into_iter().max());
        for intervals in hosts.iter_mut() {
            intervals.retain(|(from, to)| from < to && earliest.is_none_or(|start| *to > start));
        }
    }

    /// Returns the first time at which all of these hosts are blocked, as far as is known;
    /// `u64::MAX` for never.
    fn start_ns(&self) -> u64 {
        let waits = |at_ns: u64| {
            self.hosts.iter().all(|intervals| {
                let mut intervals = intervals.iter();
                intervals.any(|(from, to)| (*from..*to).contains(&at_ns))
            })
        };
        // At that time, one of the hosts begins to be blocked.
        let begins = self.hosts.iter().flatten().map(|(from, _)| *from);
        if self.hosts.is_empty() {
            return 0;
        }
        begins
            .filter(|at_ns| waits(*at_ns))
            .min()
            .unwrap_or(u64::MAX)
    }
}

/// When a host starts, and whether the hosts after it know that it is blocked.
#[derive(Clone, Debug)]
pub struct Start {
    /// When the host boots or reboots next, as far as is known.
    pub at_ns: u64,
    /// What the host knows about the hosts that it waits for, until it has started.
    awaited: Option<Awaited>,
    /// Whether the last notification said that the host is blocked.
    is_blocked: bool,
}

impl Start {
    /// Creates the start of a host: at a fixed time, or when the hosts before it are blocked.
    pub fn new(start: StartTime) -> Start {
        let (at_ns, awaited) = match start {
            StartTime::At(at_ns) => (at_ns, None),
            StartTime::Blocked(hosts) => {
                let awaited = Awaited::new(hosts);
                (awaited.start_ns(), Some(awaited))
            }
        };
        Start {
            at_ns,
            awaited,
            is_blocked: false,
        }
    }

    /// Returns whether the host has not started, and waits for the hosts before it to block.
    pub fn is_awaiting(&self) -> bool {
        self.awaited.is_some()
    }

    /// Returns whether the host has not started, and waits for this host, among others, to block.
    pub fn awaits(&self, host: HostIndex) -> bool {
        let awaited = self.awaited.as_ref();
        awaited.is_some_and(|awaited| host.index() < awaited.hosts.len())
    }

    /// Marks the host as started.
    pub fn begin(&mut self) {
        self.awaited = None;
    }

    /// Records that an earlier host blocks or continues at a time.
    pub fn notify(&mut self, host: HostIndex, waits: bool, now_ns: u64) {
        if let Some(awaited) = &mut self.awaited {
            awaited.note(host, waits, now_ns);
            self.at_ns = awaited.start_ns();
        }
    }

    /// Returns whether the host is blocked now, if that has changed since the last call.
    pub fn notification(&mut self, run_state: RunState, host: Option<&Host>) -> Option<bool> {
        let waits = is_blocked(run_state, host);
        let was = std::mem::replace(&mut self.is_blocked, waits);
        (was != waits).then_some(waits)
    }
}

/// Returns whether a host is blocked: it waits for others, or does nothing any more. A host that
/// merely sleeps is not blocked.
fn is_blocked(run_state: RunState, host: Option<&Host>) -> bool {
    match run_state {
        RunState::Running => false,
        RunState::Waiting(None) | RunState::Ended | RunState::Off(_) => true,
        RunState::Waiting(Some(_)) => host.is_some_and(Host::awaits_others),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_starts_when_all_before_it_wait_at_once() {
        let (one, other) = (HostIndex(0), HostIndex(1));
        let mut awaited = Awaited::new(2);
        assert_eq!(awaited.start_ns(), u64::MAX);
        awaited.note(one, true, 5);
        assert_eq!(awaited.start_ns(), u64::MAX);
        awaited.note(other, true, 9);
        assert_eq!(awaited.start_ns(), 9);
        // The first host continued before, so it has to block again.
        awaited.note(one, false, 9);
        assert_eq!(awaited.start_ns(), u64::MAX);
        awaited.note(one, true, 12);
        assert_eq!(awaited.start_ns(), 12);
        // Later events change nothing.
        awaited.note(other, false, 13);
        assert_eq!(awaited.start_ns(), 12);
        assert_eq!(Awaited::new(0).start_ns(), 0);
    }

    #[test]
    fn who_is_told_late_finds_the_time_that_was() {
        let mut awaited = Awaited::new(2);
        awaited.note(HostIndex(1), true, 3);
        awaited.note(HostIndex(1), false, 8);
        awaited.note(HostIndex(0), true, 7);
        assert_eq!(awaited.start_ns(), 7);
    }
}
