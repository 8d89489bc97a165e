//! Notifies hosts that start when the hosts before them are blocked (`start = "blocked"`), through the mapping like a packet.

use super::member::Member;
use super::*;

impl Worlds<'_> {
    /// Hosts behind one that start when the hosts before them are blocked.
    fn starting_after(&self, host: HostIndex) -> impl Iterator<Item = HostIndex> + '_ {
        let all = self.starting.iter().copied();
        all.filter(move |other| *other > host)
    }

    /// A host has not started in some world of a state.
    fn is_awaited(&self, id: MemberId, host: HostIndex) -> bool {
        let worlds = self.table.places(id);
        let worlds = worlds.filter_map(|place| self.table.dstate(place));
        let mut states = worlds.flat_map(|dstate| dstate.of_host(host));
        states.any(|state| {
            let state = self.members.get(&state);
            state.is_some_and(|state| state.sim.start.is_awaiting())
        })
    }

    /// A host that has not started wants to know when a state blocks.
    pub(super) fn is_waited_for(&self, id: MemberId) -> bool {
        let host = self.table.host(id);
        let mut starting = self.starting_after(host);
        starting.any(|other| self.is_awaited(id, other))
    }

    /// Notifies the hosts that have not started if a state has blocked or goes on. Returns `false` if the state turns out to be
    /// in no world.
    pub(super) fn notify_blocked(
        &mut self,
        id: MemberId,
        member: &mut Member,
        now_ns: u64,
        listener: &mut dyn WorldListener,
    ) -> bool {
        if self.starting.is_empty() {
            return true;
        }
        let (sim, kernel) = (&mut member.sim, member.state.host.as_ref());
        let Some(is_blocked) = sim.start.notification(sim.run_state, kernel) else {
            return true;
        };
        let host = self.table.host(id);
        let starting: Vec<HostIndex> = self.starting_after(host).collect();
        let known = member.sim.counters.clone();
        for target in starting {
            if !self.is_awaited(id, target) {
                continue;
            }
            let notify = |other: &mut Member, faults: &Faults| {
                other.sim.notify(host, is_blocked, now_ns, &known, faults);
                let event = (host, is_blocked, now_ns, &known);
                other.history = other.history.then(&event);
            };
            let has_not_started = |other: &Member| other.sim.start.is_awaiting();
            if !self.reach((id, member), target, has_not_started, notify, listener) {
                return false;
            }
        }
        true
    }

    /// The first time at which a host may still start: until it has, no other host goes beyond that.
    pub(super) fn next_start_ns(&self) -> Option<u64> {
        if self.starting.is_empty() {
            return None;
        }
        let mut next = self.queue.iter();
        let (start_ns, _, _) = next.find(|(_, host, id)| {
            let member = self
                .members
                .get(id)
                .filter(|_| self.starting.contains(host));
            member.is_some_and(|member| member.sim.start.is_awaiting())
        })?;
        Some(*start_ns)
    }
}
