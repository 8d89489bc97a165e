//! Hosts that start when those before them wait. A host that begins to wait, or goes on, tells those after it that have not started, as
//! if it sent them something: so the state that starts knows by which paths those before it came to wait, and belongs to these.

use everett_linux::Host;
use std::sync::Arc;

use super::mailbox::Doing;
use super::member::Member;
use super::*;

/// A stretch of time: from here, until before there.
type Stretch = (u64, u64);

/// What a host that has not started knows of those before it. Cloning is O(1).
#[derive(Clone, Debug)]
struct Awaited {
    /// When each of them waited.
    hosts: Arc<Vec<Vec<Stretch>>>,
}

impl Awaited {
    /// So many hosts are before it, and none waits yet.
    fn new(hosts: usize) -> Awaited {
        Awaited {
            hosts: Arc::new(vec![Vec::new(); hosts]),
        }
    }

    /// A host before it waits from a time on, or goes on from then.
    fn note(&mut self, host: HostIndex, waits: bool, at_ns: u64) {
        let hosts = Arc::make_mut(&mut self.hosts);
        let Some(stretches) = hosts.get_mut(host.index()) else {
            return;
        };
        match (waits, stretches.last_mut()) {
            (true, _) => stretches.push((at_ns, u64::MAX)),
            (false, Some(last)) => last.1 = at_ns,
            (false, None) => {}
        }
        // It cannot start before each of them has waited once.
        let firsts = hosts.iter().map(|stretches| stretches.first());
        let firsts: Option<Vec<u64>> = firsts.map(|first| Some(first?.0)).collect();
        let earliest = firsts.and_then(|firsts| firsts.into_iter().max());
        for stretches in hosts.iter_mut() {
            stretches.retain(|(from, to)| from < to && earliest.is_none_or(|start| *to > start));
        }
    }

    /// When all of them wait for the first time, as far as is known; `u64::MAX` where they do not.
    fn start_ns(&self) -> u64 {
        let waits = |at_ns: u64| {
            self.hosts.iter().all(|stretches| {
                let mut stretches = stretches.iter();
                stretches.any(|(from, to)| (*from..*to).contains(&at_ns))
            })
        };
        // Somebody begins to wait then.
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

/// When a host starts, and whether it waits for others then. The same for hosts that are explored and for native ones.
#[derive(Clone, Debug)]
pub struct Starting {
    /// When it is started, for the first time or again, as far as is known.
    pub at_ns: u64,
    /// What it knows of those that it waits for to start, until it has.
    awaited: Option<Awaited>,
    /// It waits, and whoever wants to start then was told.
    is_waiting: bool,
}

impl Starting {
    /// That of the host of this number, which starts at a time or when those before it wait.
    pub fn new(number: usize, start_ns: Option<u64>) -> Starting {
        let awaited = match start_ns {
            Some(_) => None,
            None => Some(Awaited::new(number)),
        };
        let at_ns = awaited.as_ref().map_or(0, Awaited::start_ns);
        Starting {
            at_ns: start_ns.unwrap_or(at_ns),
            awaited,
            is_waiting: false,
        }
    }

    /// It has not started, and wants to know when those before it wait.
    pub fn listens(&self) -> bool {
        self.awaited.is_some()
    }

    /// It starts. `true` if it had waited for that.
    pub fn begins(&mut self) -> bool {
        self.awaited.take().is_some()
    }

    /// A host before it waits from a time on, or goes on from then.
    pub fn hears(&mut self, host: HostIndex, waits: bool, now_ns: u64) {
        if let Some(awaited) = &mut self.awaited {
            awaited.note(host, waits, now_ns);
            self.at_ns = awaited.start_ns();
        }
    }

    /// Whether the host waits now, where nobody was told yet.
    pub fn news(&mut self, doing: Doing, host: Option<&Host>) -> Option<bool> {
        let waits = waits(doing, host);
        let was = std::mem::replace(&mut self.is_waiting, waits);
        (was != waits).then_some(waits)
    }
}

/// A host waits for others, or does nothing any more. Who merely sleeps does not wait for anybody.
fn waits(doing: Doing, host: Option<&Host>) -> bool {
    match doing {
        Doing::Runs => false,
        Doing::Waits(None) | Doing::Over | Doing::Off(_) => true,
        Doing::Waits(Some(_)) => host.is_some_and(Host::awaits_others),
    }
}

impl Worlds<'_> {
    /// Hosts after one that start when those before them wait.
    fn starting_after(&self, host: HostIndex) -> impl Iterator<Item = HostIndex> + '_ {
        let all = self.starting.iter().copied();
        all.filter(move |other| *other > host)
    }

    /// A host has not started in some world that a state is in.
    fn is_awaited(&self, id: MemberId, host: HostIndex) -> bool {
        if self.not_started.is_empty() {
            return false;
        }
        self.table.any_beside(id, host, |state| {
            let state = self.members.get(&state);
            state.is_some_and(|state| state.starting.listens())
        })
    }

    /// Somebody wants to know when a state waits.
    pub(super) fn is_waited_for(&self, id: MemberId) -> bool {
        let host = self.table.host(id);
        let mut starting = self.starting_after(host);
        starting.any(|other| self.is_awaited(id, other))
    }

    /// Tells those that have not started whether a state waits, if that has changed. `false` if it turns out to be in no world.
    pub(super) fn tell_waiting(
        &mut self,
        id: MemberId,
        member: &mut Member,
        now_ns: u64,
        listener: &mut dyn WorldListener,
    ) -> bool {
        if self.starting.is_empty() {
            return true;
        }
        let running = member.state.host.as_ref();
        let Some(waits) = member.starting.news(member.doing, running) else {
            return true;
        };
        let host = self.table.host(id);
        let starting: Vec<HostIndex> = self.starting_after(host).collect();
        let known = member.counters.clone();
        for target in starting {
            if !self.is_awaited(id, target) {
                continue;
            }
            let tell = |other: &mut Member, faults: &Faults| {
                other.starting.hears(host, waits, now_ns);
                other.past = other.past.then(&(host, waits, now_ns, &known));
                faults.learn(&mut other.counters, &known);
            };
            let has_not_started = |other: &Member| other.starting.listens();
            if !self.reach((id, member), target, has_not_started, tell, listener) {
                return false;
            }
        }
        true
    }

    /// The first time at which a host may start that has not: until it has, nobody goes beyond that.
    pub(super) fn next_start_ns(&self) -> Option<u64> {
        // Who runs at the moment is not among the members.
        let mut next = self.not_started.iter();
        let (start_ns, _, _) = next.find(|(_, _, id)| self.members.contains_key(id))?;
        Some(*start_ns)
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
        // The first one went on before: it has to wait again.
        awaited.note(one, false, 9);
        assert_eq!(awaited.start_ns(), u64::MAX);
        awaited.note(one, true, 12);
        assert_eq!(awaited.start_ns(), 12);
        // What happens later changes nothing.
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
