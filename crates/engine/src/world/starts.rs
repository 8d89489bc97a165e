//! Notifies hosts that start when all hosts before them are blocked (`start = "blocked"`). A
//! notification passes through the mapping like a packet.

use everett_sim::Incoming;

use super::*;

impl Explorer<'_> {
    /// Returns the hosts that start when this host, among others, is blocked.
    fn starting_after(&self, host: HostIndex) -> impl Iterator<Item = HostIndex> + '_ {
        let all = self.world.starting.iter().copied();
        all.filter(move |other| self.host(*other).start.awaits(host.index()))
    }

    /// Returns whether a host has not started in some world of a state.
    fn is_awaited(&self, id: StateId, host: HostIndex) -> bool {
        if self.world.not_started.is_empty() {
            return false;
        }
        let table = &self.world.table;
        table.any_beside(id, host, |other| self.has_not_started(other))
    }

    /// Returns whether a state waits for the hosts before it to block.
    fn has_not_started(&self, id: StateId) -> bool {
        let place = self.queued(id);
        place.is_some_and(|(_, _, is_awaiting)| is_awaiting)
    }

    /// Returns whether a host that has not started waits for this state to block.
    pub(super) fn is_waited_for(&self, id: StateId) -> bool {
        let host = self.world.table.host(id);
        let mut starting = self.starting_after(host);
        starting.any(|other| self.is_awaited(id, other))
    }

    /// Notifies the hosts that have not started that a state has blocked or continues. Returns
    /// `false` if the state turns out to be in no world.
    pub(super) fn notify_blocked(
        &mut self,
        id: StateId,
        state: &mut State,
        now_ns: u64,
        listener: &mut dyn Listener,
    ) -> bool {
        if self.world.starting.is_empty() {
            return true;
        }
        let State {
            host: kernel, net, ..
        } = &mut *state;
        let Some(sim) = net.as_mut().map(|net| &mut net.sim) else {
            return true;
        };
        let Some(is_blocked) = sim.start.notification(sim.run_state, kernel.as_ref()) else {
            return true;
        };
        let host = self.world.table.host(id);
        let starting: Vec<HostIndex> = self.starting_after(host).collect();
        let known = Arc::new(state.sim().counters.clone());
        for target in starting {
            if !self.is_awaited(id, target) {
                continue;
            }
            let notify = |other: &mut State, faults: &Faults| {
                let incoming = Incoming::Blocking {
                    from: host,
                    is_blocked,
                    now_ns,
                    known: known.clone(),
                };
                let event = (host, is_blocked, now_ns, &*known);
                other.net_mut().receive(incoming, &event, faults);
            };
            let has_not_started = |worlds: &Self, other| worlds.has_not_started(other);
            if !self.reach((id, state), target, has_not_started, notify, listener) {
                return false;
            }
        }
        true
    }

    /// Returns the first time at which a host may still start. Until it has started, no other host
    /// passes that time.
    pub(super) fn next_start_ns(&self) -> Option<u64> {
        let mut next = self.world.not_started.iter();
        // The state that is being executed does not wait for itself.
        let (start_ns, _, _) = next.find(|(_, _, id)| !self.frontier.is_running(*id))?;
        Some(*start_ns)
    }
}
