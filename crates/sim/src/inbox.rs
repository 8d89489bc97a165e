//! The inbox of a host: packets in transit to it and times at which host faults can hit it, in the
//! order of their times. Also decides races between packets.

use everett_vm::{ChoiceSite, Interrupt, Oracle};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use crate::arrival::Arrival;

/// The run state of a host.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum RunState {
    /// The host is runnable, or will boot at its start time.
    Running,
    /// All threads are blocked until this time or until a packet arrives.
    Waiting(Option<u64>),
    /// The programs have ended; the kernel still answers packets.
    Ended,
    /// The host is powered off until this time, or for good.
    Off(Option<u64>),
}

/// The inbox of a host: arrivals in order, and the times at which host faults can happen to it.
/// Cloning is O(1).
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    /// Packets in transit, in the order of their arrival.
    arriving: Arc<Vec<Arrival>>,
    /// Times at which host faults can happen, in order.
    times: Arc<Vec<u64>>,
    /// The number of these times that have passed.
    times_passed: usize,
    /// The position of the inbox.
    clock: InboxClock,
    /// The number of timeouts that the host waited for, as counted by its driver.
    waits: u64,
}

/// The position of an inbox: the number of its own events so far. The order of pushes between two
/// of its events does not matter.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct InboxClock {
    /// The number of events that were removed: arrivals and fault times.
    pub removed: u64,
    /// The number of races that were decided.
    pub races: u64,
}

/// The next event of an inbox.
pub enum NextEvent {
    /// A time at which host faults can happen.
    Time(u64),
    /// A packet arrives.
    Packet(Arrival),
}

impl Inbox {
    /// Creates an empty inbox; host faults can happen at these times, in order.
    pub fn new(times: Vec<u64>) -> Inbox {
        Inbox {
            times: Arc::new(times),
            ..Inbox::default()
        }
    }

    /// Adds a packet in transit. Segments of one TCP stream never overtake each other.
    pub fn push(&mut self, mut arrival: Arrival) {
        let list = Arc::make_mut(&mut self.arriving);
        if !arrival.is_connectionless() {
            let same = list.iter().filter(|other| other.is_same_stream(&arrival));
            let before = same.filter(|other| other.number < arrival.number);
            let last = before.map(|other| other.at_ns).max().unwrap_or(0);
            arrival.at_ns = arrival.at_ns.max(last);
            for other in list.iter_mut() {
                if other.is_same_stream(&arrival) && other.number > arrival.number {
                    other.at_ns = other.at_ns.max(arrival.at_ns);
                }
            }
            list.sort_by_key(Arrival::order);
        }
        let at = list.partition_point(|other| other.order() <= arrival.order());
        list.insert(at, arrival);
    }

    fn next_time(&self) -> Option<u64> {
        self.times.get(self.times_passed).copied()
    }

    /// Returns the next event.
    pub fn next(&self) -> Option<NextEvent> {
        let arrival = self.arriving.first();
        match (self.next_time(), arrival) {
            (Some(time), Some(arrival)) if arrival.at_ns < time => {
                Some(NextEvent::Packet(arrival.clone()))
            }
            (Some(time), _) => Some(NextEvent::Time(time)),
            (None, arrival) => arrival.cloned().map(NextEvent::Packet),
        }
    }

    /// Returns the time of the next event; `u64::MAX` if there is none.
    pub fn next_ns(&self) -> u64 {
        let arrival = self.arriving.first().map(|next| next.at_ns);
        let time = self.next_time();
        let next = [arrival, time].into_iter().flatten().min();
        next.unwrap_or(u64::MAX)
    }

    /// Returns the number of events so far: arrivals, fault times and timeouts that the host waited
    /// for.
    pub fn events(&self) -> u64 {
        self.clock.removed + self.waits
    }

    /// Returns the position of the inbox.
    pub fn clock(&self) -> InboxClock {
        self.clock
    }

    /// Counts timeouts that the host waited for.
    pub fn count_waits(&mut self, waits: u64) {
        self.waits += waits;
    }

    /// Returns the number of timeouts that the host waited for.
    pub fn waits(&self) -> u64 {
        self.waits
    }

    /// Sets the number of timeouts that the host waited for.
    pub fn set_waits(&mut self, waits: u64) {
        self.waits = waits;
    }

    /// Returns the packets in transit.
    pub fn arrivals(&self) -> &[Arrival] {
        &self.arriving
    }

    /// Removes the next event and counts it.
    pub fn pop(&mut self) {
        self.clock.removed += 1;
        match self.next() {
            Some(NextEvent::Time(_)) => self.times_passed += 1,
            Some(NextEvent::Packet(_)) => {
                Arc::make_mut(&mut self.arriving).remove(0);
            }
            None => {}
        }
    }

    /// Returns the packets that race with the next one: the first of each other sender that was
    /// sent before the next one arrives. Packets that are held back do not race, and nothing
    /// overtakes the winner of an earlier race.
    fn racing(&self) -> Vec<usize> {
        let Some(first) = self.arriving.first() else {
            return Vec::new();
        };
        let mut senders = vec![first.from];
        let mut racing = Vec::new();
        for (at, other) in self.arriving.iter().enumerate() {
            if !senders.contains(&other.from) {
                senders.push(other.from);
                if other.packet.clock_ns < first.at_ns && other.held_behind == 0 {
                    racing.push(at);
                }
            }
            if other.wins_race {
                break;
            }
        }
        racing
    }

    /// Decides which of the racing packets arrives first. Returns `true` if that is not the next
    /// one by time: the winner keeps its time, and those that it overtakes arrive after it, so
    /// another event may come first. Changes nothing while the question is open.
    pub fn race(&mut self, oracle: &mut dyn Oracle) -> Result<bool, Interrupt> {
        let racing = match self.arriving.first() {
            Some(first) if !first.wins_race => self.racing(),
            _ => return Ok(false),
        };
        if racing.is_empty() {
            return Ok(false);
        }
        let alternatives = 1 + racing.len() as u32;
        let picked = oracle.choose(&ChoiceSite::PacketOrder, alternatives)? as usize;
        oracle.commit();
        self.clock.races += 1;
        let list = Arc::make_mut(&mut self.arriving);
        if picked == 0 {
            list[0].wins_race = true;
            return Ok(false);
        }
        let mut winner = list.remove(racing[picked - 1]);
        winner.wins_race = true;
        for other in list.iter_mut() {
            if other.at_ns <= winner.at_ns {
                other.at_ns = winner.at_ns.saturating_add(1);
            }
        }
        list.insert(0, winner);
        list.sort_by_key(Arrival::order);
        Ok(true)
    }

    /// Marks the host faults at the next arrival as decided.
    pub fn mark_host_faults_decided(&mut self) {
        if let Some(first) = Arc::make_mut(&mut self.arriving).first_mut() {
            first.host_faults_decided = true;
        }
    }

    /// Releases packets that were held back behind one that has arrived; `came_at` is the event at
    /// which that one was pushed or held back.
    pub fn release_held(&mut self, now_ns: u64, came_at: u64) {
        if self.arriving.iter().all(|arrival| arrival.held_behind == 0) {
            return;
        }
        let list = Arc::make_mut(&mut self.arriving);
        let is_behind = |arrival: &Arrival| {
            arrival.held_behind > 0 && arrival.held_since.is_none_or(|since| since < came_at)
        };
        for arrival in list.iter_mut().filter(|arrival| is_behind(arrival)) {
            arrival.held_behind -= 1;
            if arrival.held_behind == 0 {
                arrival.at_ns = arrival.at_ns.min(now_ns);
            }
        }
        list.sort_by_key(Arrival::order);
    }

    /// Returns whether the next event is due before the host itself acts, given its clock.
    pub fn is_due(&self, run_state: RunState, clock_ns: u64, horizon_ns: u64) -> bool {
        let next_ns = self.next_ns();
        if next_ns == u64::MAX {
            return false;
        }
        match run_state {
            RunState::Running => next_ns <= clock_ns,
            RunState::Waiting(until) | RunState::Off(until) => {
                next_ns <= until.unwrap_or(u64::MAX) && next_ns <= horizon_ns
            }
            RunState::Ended => next_ns <= horizon_ns,
        }
    }

    /// Returns the time of the next event of the host or its inbox; `u64::MAX` for never.
    pub fn next_event_ns(&self, run_state: RunState, clock_ns: u64) -> u64 {
        match run_state {
            RunState::Running => clock_ns,
            RunState::Waiting(until) | RunState::Off(until) => {
                until.unwrap_or(u64::MAX).min(self.next_ns())
            }
            RunState::Ended => self.next_ns(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everett_expr::{Arena, ArrayId, ExprId};
    use everett_linux::{Packet, PacketKind};
    use everett_net::HostIndex;
    use everett_vm::{Buffer, Suspend};

    /// An oracle that answers every choice with the same number, and counts them.
    struct Picks(u32, u32);

    impl Oracle for Picks {
        fn branch(&mut self, _: &mut Arena, _: ExprId) -> Result<bool, Suspend> {
            Err(Suspend)
        }
        fn concretize(&mut self, _: &mut Arena, _: ExprId) -> Result<u64, Suspend> {
            Err(Suspend)
        }
        fn choose(&mut self, _: &ChoiceSite, _: u32) -> Result<u32, Suspend> {
            self.1 += 1;
            Ok(self.0)
        }
        fn assume(&mut self, _: &mut Arena, _: ExprId) -> Result<bool, Suspend> {
            Err(Suspend)
        }
        fn input(&mut self, _: &mut Arena, _: &str, _: u32) -> Result<ArrayId, Suspend> {
            Err(Suspend)
        }
        fn prefer(&mut self, _: &mut Arena, _: ExprId) {}
        fn commit(&mut self) {}
    }

    /// Returns a datagram of a host, sent and due at these times.
    fn datagram(from: u32, sent_ns: u64, at_ns: u64) -> Arrival {
        let address = |host: u32| ([10, 0, 0, host as u8], 7000).into();
        let packet = Packet {
            clock_ns: sent_ns,
            from: address(from),
            to: address(9),
            kind: PacketKind::Datagram(Buffer::with_bytes(&[from as u8], 1).into()),
        };
        Arrival {
            at_ns,
            from: HostIndex(from),
            number: sent_ns,
            packet: Arc::new(packet),
            decided: false,
            held_behind: 0,
            held_since: None,
            retransmissions: 0,
            host_faults_decided: false,
            known: Arc::default(),
            wins_race: false,
        }
    }

    fn inbox(arrivals: impl IntoIterator<Item = Arrival>) -> Inbox {
        let mut inbox = Inbox::default();
        arrivals.into_iter().for_each(|one| inbox.push(one));
        inbox
    }

    /// Lets packets race, and this one win. Returns `None` if there is no race.
    fn race(inbox: &mut Inbox, picked: u32) -> Option<bool> {
        let mut oracle = Picks(picked, 0);
        let overtaken = inbox.race(&mut oracle).expect("it is answered");
        (oracle.1 == 1).then_some(overtaken)
    }

    /// Returns the sender and the time of each arrival, in order.
    fn order(mut inbox: Inbox) -> Vec<(u32, u64)> {
        let mut all = Vec::new();
        while let Some(NextEvent::Packet(arrival)) = inbox.next() {
            all.push((arrival.from.0, arrival.at_ns));
            inbox.pop();
        }
        all
    }

    #[test]
    fn what_overtakes_arrives_when_it_is_due() {
        let all = [
            datagram(1, 0, 10),
            datagram(1, 5, 15),
            datagram(2, 8, 18),
            datagram(3, 8, 30),
        ];
        let mut box_of_two = inbox(all.clone());
        assert_eq!(race(&mut box_of_two, 1), Some(true));
        assert_eq!(
            order(box_of_two.clone()),
            [(2, 18), (1, 19), (1, 19), (3, 30)]
        );
        // It is already decided that this packet is the first.
        assert_eq!(race(&mut box_of_two, 1), None);
        let mut by_time = inbox(all);
        assert_eq!(race(&mut by_time, 0), Some(false));
        assert_eq!(order(by_time), [(1, 10), (1, 15), (2, 18), (3, 30)]);
    }

    #[test]
    fn nothing_overtakes_that_was_sent_later_or_is_held_back() {
        let held = Arrival {
            held_behind: 1,
            ..datagram(3, 0, 30)
        };
        let mut none = inbox([datagram(1, 0, 10), datagram(2, 10, 20), held]);
        assert_eq!(race(&mut none, 1), None);
    }

    #[test]
    fn an_order_that_was_decided_stays() {
        let mut all = inbox([datagram(1, 0, 10), datagram(2, 8, 18)]);
        assert_eq!(race(&mut all, 1), Some(true));
        // A packet that is due before both may be overtaken by the winner, but not by the loser.
        all.push(datagram(3, 9, 12));
        assert_eq!(all.racing().len(), 1);
        assert_eq!(race(&mut all, 1), Some(true));
        assert_eq!(order(all), [(2, 18), (1, 19), (3, 19)]);
    }

    #[test]
    fn events_are_what_has_happened() {
        let mut all = inbox([datagram(1, 0, 10)]);
        assert_eq!(all.events(), 0);
        all.mark_host_faults_decided();
        assert_eq!(all.events(), 0);
        all.pop();
        all.count_waits(1);
        assert_eq!(all.events(), 2);
    }

    /// Returns the order in which four packets arrive, each of which is held back behind this
    /// number of later ones.
    fn permuted(behind: [u32; 4]) -> Vec<u64> {
        let mut inbox =
            inbox((0..4).map(|number| datagram(1 + number as u32 % 2, number, 10 * number)));
        let mut order = Vec::new();
        while let Some(NextEvent::Packet(arrival)) = inbox.next() {
            let came_at = arrival.held_since.unwrap_or(inbox.clock().removed);
            inbox.pop();
            let held_behind = behind[arrival.number as usize];
            if !arrival.decided && held_behind > 0 {
                inbox.push(Arrival {
                    at_ns: arrival.at_ns + 1_000,
                    decided: true,
                    held_behind,
                    held_since: Some(came_at),
                    ..arrival
                });
                continue;
            }
            order.push(arrival.number);
            inbox.release_held(arrival.at_ns, came_at);
        }
        order
    }

    #[test]
    fn packets_held_behind_later_ones_in_all_ways_come_in_all_orders_once() {
        let mut orders = std::collections::BTreeSet::new();
        for (first, second) in (0..4).flat_map(|first| (0..3).map(move |second| (first, second))) {
            for third in 0..2 {
                orders.insert(permuted([first, second, third, 0]));
            }
        }
        assert_eq!(orders.len(), 24);
        assert!(orders.iter().all(|order| order.len() == 4));
        assert_eq!(permuted([2, 2, 0, 0]), [2, 3, 0, 1]);
    }
}
