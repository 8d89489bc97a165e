//! What is on its way to a host, in the order in which it happens; who comes first of what races. The same for hosts that are explored
//! and for native ones.

use everett_vm::{ChoiceSite, Interrupt, Oracle};
use std::sync::Arc;

use super::post::Arrival;

/// What a host does.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Doing {
    /// It can go on, when its time comes.
    Runs,
    /// It waits until this time, or for what arrives.
    Waits(Option<u64>),
    /// Its programs have ended; its kernel answers what arrives.
    Over,
    /// It is switched off until this time, or for good.
    Off(Option<u64>),
}

/// What is on its way to a host, the next first, and times at which something can become of it. Cloning is O(1).
#[derive(Clone, Debug, Default)]
pub struct Mailbox {
    arriving: Arc<Vec<Arrival>>,
    times: Arc<Vec<u64>>,
    times_passed: usize,
    events: u64,
}

/// What happens to a host next.
pub enum Next {
    /// This time comes.
    Time(u64),
    /// Something arrives.
    Packet(Arrival),
}

impl Mailbox {
    /// Nothing is on its way; something can become of the host at these times, in order.
    pub fn new(times: Vec<u64>) -> Mailbox {
        Mailbox {
            times: Arc::new(times),
            ..Mailbox::default()
        }
    }

    /// Something will arrive. What belongs to a stream overtakes nothing of the same stream that was sent before it, however
    /// late that is.
    pub fn expect(&mut self, mut arrival: Arrival) {
        let list = Arc::make_mut(&mut self.arriving);
        if !arrival.is_alone() {
            let same = list.iter().filter(|other| other.is_of_stream(&arrival));
            let before = same.filter(|other| other.number < arrival.number);
            let last = before.map(|other| other.at_ns).max().unwrap_or(0);
            arrival.at_ns = arrival.at_ns.max(last);
            for other in list.iter_mut() {
                if other.is_of_stream(&arrival) && other.number > arrival.number {
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

    /// What happens next.
    pub fn next(&self) -> Option<Next> {
        let arrival = self.arriving.first();
        match (self.next_time(), arrival) {
            (Some(time), Some(arrival)) if arrival.at_ns < time => {
                Some(Next::Packet(arrival.clone()))
            }
            (Some(time), _) => Some(Next::Time(time)),
            (None, arrival) => arrival.cloned().map(Next::Packet),
        }
    }

    /// When that is; `u64::MAX` where nothing will.
    pub fn next_ns(&self) -> u64 {
        let arrival = self.arriving.first().map(|next| next.at_ns);
        let time = self.next_time();
        let next = [arrival, time].into_iter().flatten().min();
        next.unwrap_or(u64::MAX)
    }

    /// What has happened so far: what arrived, times that came, and times that the host waited for.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// A time has come that the host waited for.
    pub fn has_waited(&mut self) {
        self.events += 1;
    }

    /// What happens next is behind us.
    pub fn take(&mut self) {
        self.events += 1;
        match self.next() {
            Some(Next::Time(_)) => self.times_passed += 1,
            Some(Next::Packet(_)) => {
                Arc::make_mut(&mut self.arriving).remove(0);
            }
            None => {}
        }
    }

    /// Others that could arrive before the next packet: the first of each other sender that had sent it by then. What is held back
    /// has been decided to come later, and nothing comes before what was decided to lead.
    fn racing(&self) -> Vec<usize> {
        let Some(first) = self.arriving.first() else {
            return Vec::new();
        };
        let mut senders = vec![first.from];
        let mut racing = Vec::new();
        for (at, other) in self.arriving.iter().enumerate() {
            if !senders.contains(&other.from) {
                senders.push(other.from);
                if other.packet.clock_ns < first.at_ns && other.behind == 0 {
                    racing.push(at);
                }
            }
            if other.leads {
                break;
            }
        }
        racing
    }

    /// Asks which of the packets that race for the host arrives first, where that can still be another one than by time. `true`
    /// if it is: it arrives when it is due, and what it overtakes arrives after it, so something else may happen before. Nothing is
    /// changed where the question has several answers.
    pub fn race(&mut self, oracle: &mut dyn Oracle) -> Result<bool, Interrupt> {
        let racing = match self.arriving.first() {
            Some(first) if !first.leads => self.racing(),
            _ => return Ok(false),
        };
        if racing.is_empty() {
            return Ok(false);
        }
        let alternatives = 1 + racing.len() as u32;
        let picked = oracle.choose(&ChoiceSite::PacketOrder, alternatives)? as usize;
        oracle.commit();
        let list = Arc::make_mut(&mut self.arriving);
        if picked == 0 {
            list[0].leads = true;
            return Ok(false);
        }
        let mut winner = list.remove(racing[picked - 1]);
        winner.leads = true;
        for other in list.iter_mut() {
            if other.at_ns <= winner.at_ns {
                other.at_ns = winner.at_ns.saturating_add(1);
            }
        }
        list.insert(0, winner);
        list.sort_by_key(Arrival::order);
        Ok(true)
    }

    /// What becomes of the host when the next packet arrives is decided.
    pub fn is_met(&mut self) {
        if let Some(first) = Arc::make_mut(&mut self.arriving).first_mut() {
            first.met = true;
        }
    }

    /// Something has arrived: what is held back for others may be due before its time.
    pub fn let_others_follow(&mut self, now_ns: u64) {
        if self.arriving.iter().all(|arrival| arrival.behind == 0) {
            return;
        }
        let list = Arc::make_mut(&mut self.arriving);
        for arrival in list.iter_mut().filter(|arrival| arrival.behind > 0) {
            arrival.behind -= 1;
            if arrival.behind == 0 {
                arrival.at_ns = arrival.at_ns.min(now_ns);
            }
        }
        list.sort_by_key(Arrival::order);
    }

    /// The next arrival is due before anything else happens at a host whose clock shows this.
    pub fn is_due(&self, doing: Doing, clock_ns: u64, horizon_ns: u64) -> bool {
        let next_ns = self.next_ns();
        if next_ns == u64::MAX {
            return false;
        }
        match doing {
            Doing::Runs => next_ns <= clock_ns,
            Doing::Waits(until) | Doing::Off(until) => {
                next_ns <= until.unwrap_or(u64::MAX) && next_ns <= horizon_ns
            }
            Doing::Over => next_ns <= horizon_ns,
        }
    }

    /// When a host does something next; `u64::MAX` where nothing will happen.
    pub fn next_event_ns(&self, doing: Doing, clock_ns: u64) -> u64 {
        match doing {
            Doing::Runs => clock_ns,
            Doing::Waits(until) | Doing::Off(until) => {
                until.unwrap_or(u64::MAX).min(self.next_ns())
            }
            Doing::Over => self.next_ns(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::PathOracle;
    use crate::path::Path;
    use crate::trace::{Trace, TraceChoice};
    use everett_expr::EvalScratch;
    use everett_linux::{Packet, PacketKind};
    use everett_net::HostIndex;
    use everett_solver::{Solver, SolverConfig};
    use everett_vm::Buffer;

    /// A datagram of a host, sent and due at these times.
    fn datagram(from: u32, sent_ns: u64, at_ns: u64) -> Arrival {
        let address = |host: u32| ([10, 0, 0, host as u8], 7000).into();
        let packet = Packet {
            clock_ns: sent_ns,
            from: address(from),
            to: address(9),
            kind: PacketKind::Datagram(Buffer::with_bytes(&[from as u8], 1)),
        };
        Arrival {
            at_ns,
            from: HostIndex(from),
            number: sent_ns,
            packet: Arc::new(packet),
            decided: false,
            behind: 0,
            again: 0,
            met: false,
            known: Arc::default(),
            leads: false,
        }
    }

    fn mailbox(arrivals: impl IntoIterator<Item = Arrival>) -> Mailbox {
        let mut mailbox = Mailbox::default();
        arrivals.into_iter().for_each(|one| mailbox.expect(one));
        mailbox
    }

    /// Lets packets race; this one wins. Nothing if there is no race.
    fn race(mailbox: &mut Mailbox, picked: u32) -> Option<bool> {
        let choice = TraceChoice {
            site: ChoiceSite::PacketOrder,
            alternatives: 9,
            picked,
        };
        let trace = Trace {
            choices: [choice].into_iter().collect(),
            ..Trace::default()
        };
        let mut path = Path::following_loosely(Arc::new(trace));
        let mut solver = Solver::new(SolverConfig::default()).expect("a solver");
        let mut scratch = EvalScratch::new();
        let mut oracle = PathOracle::new(&mut path, &mut solver, &mut scratch, None);
        let overtaken = mailbox.race(&mut oracle).expect("a trace answers");
        (path.choices.len() == 1).then_some(overtaken)
    }

    /// Senders of what arrives and when.
    fn order(mut mailbox: Mailbox) -> Vec<(u32, u64)> {
        let mut all = Vec::new();
        while let Some(Next::Packet(arrival)) = mailbox.next() {
            all.push((arrival.from.0, arrival.at_ns));
            mailbox.take();
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
        let mut box_of_two = mailbox(all.clone());
        assert_eq!(race(&mut box_of_two, 1), Some(true));
        assert_eq!(
            order(box_of_two.clone()),
            [(2, 18), (1, 19), (1, 19), (3, 30)]
        );
        // It is decided that it is the first.
        assert_eq!(race(&mut box_of_two, 1), None);
        let mut by_time = mailbox(all);
        assert_eq!(race(&mut by_time, 0), Some(false));
        assert_eq!(order(by_time), [(1, 10), (1, 15), (2, 18), (3, 30)]);
    }

    #[test]
    fn nothing_overtakes_that_was_sent_later_or_is_held_back() {
        let held = Arrival {
            behind: 1,
            ..datagram(3, 0, 30)
        };
        let mut none = mailbox([datagram(1, 0, 10), datagram(2, 10, 20), held]);
        assert_eq!(race(&mut none, 1), None);
    }

    #[test]
    fn an_order_that_was_decided_stays() {
        let mut all = mailbox([datagram(1, 0, 10), datagram(2, 8, 18)]);
        assert_eq!(race(&mut all, 1), Some(true));
        // What comes before both may be overtaken by the winner, and not by the loser.
        all.expect(datagram(3, 9, 12));
        assert_eq!(all.racing().len(), 1);
        assert_eq!(race(&mut all, 1), Some(true));
        assert_eq!(order(all), [(2, 18), (1, 19), (3, 19)]);
    }

    #[test]
    fn events_are_what_has_happened() {
        let mut all = mailbox([datagram(1, 0, 10)]);
        assert_eq!(all.events(), 0);
        all.is_met();
        assert_eq!(all.events(), 0);
        all.take();
        all.has_waited();
        assert_eq!(all.events(), 2);
    }
}
