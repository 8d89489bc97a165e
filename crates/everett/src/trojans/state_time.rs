//! The times at which the unconstrained message is sent: the time that the scenario says, or the
//! times at which worlds reach the event that it names.

use everett_engine::{Explorer, Start};
use everett_scenario::{StateEvent, Trojans};
use everett_trojans::{Point, PointTime, PointTimes};
use std::collections::BTreeSet;

use super::{Analysis, Origin, SENDER_PORT, incomplete, quiet};
use crate::error::{Error, Result};
use crate::explore::prepare;

/// Maximum number of different times of an event: the server is explored for each of them.
const MOST_TIMES: usize = 64;

/// When the unconstrained message is sent.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) enum SentAt {
    /// At once.
    #[default]
    Start,
    /// At this virtual time.
    Time(u64),
    /// When the event of the scenario happens, in worlds in which it happens at this virtual time.
    Event(u64),
    /// Never.
    Never,
}

impl SentAt {
    /// Returns the virtual time, if the world runs before.
    pub(super) fn time_ns(self) -> Option<u64> {
        match self {
            SentAt::Time(at_ns) => Some(at_ns),
            // What the hosts do at the time of the event comes first.
            SentAt::Event(at_ns) => Some(at_ns.saturating_add(1)),
            SentAt::Start | SentAt::Never => None,
        }
    }

    /// Returns the time of the server state, if an event gives it.
    pub(super) fn point_time(self, setup: &Trojans) -> Option<PointTime> {
        let (SentAt::Event(at_ns), Some((event, _))) = (self, &setup.state_event) else {
            return None;
        };
        let point = point(event, setup);
        Some(PointTime { point, at_ns })
    }
}

fn point(event: &StateEvent, setup: &Trojans) -> Point {
    match event {
        StateEvent::Message(number) => Point::Received(setup.server, setup.port, *number),
        StateEvent::Mark(name) => Point::Marked(name.clone()),
    }
}

/// All senders of the unconstrained message, each with its time.
pub(super) struct Senders {
    pub(super) all: Vec<Origin>,
    /// Why the server may also be in other states, or accept the message from others, if so.
    pub(super) cut_off: Option<String>,
}

impl Analysis<'_> {
    /// Returns the senders with the times at which they send.
    pub(super) fn senders(&self, origins: &[Origin]) -> Result<Senders> {
        let mut own_ports = origins.iter().filter_map(|origin| origin.own_port);
        let own_port = own_ports.next().filter(|_| self.setup.has_state());
        let other_port = own_port
            .map(|port| format!("the message comes from port {SENDER_PORT}, not from {port}"));
        let Some((event, place)) = &self.setup.state_event else {
            let sent_at = self.setup.state_ns.map_or(SentAt::Start, SentAt::Time);
            return Ok(Senders {
                all: origins.iter().map(|one| one.at(sent_at)).collect(),
                cut_off: other_port,
            });
        };
        let (mut all, mut cut_off) = (Vec::new(), None);
        for origin in origins {
            let (times, why) = self.times(origin, point(event, &self.setup))?;
            cut_off = cut_off.or(why);
            if times.len() > MOST_TIMES {
                let count = times.len();
                cut_off.get_or_insert(format!("the first {MOST_TIMES} of {count} times"));
            }
            let times = times.into_iter().take(MOST_TIMES);
            all.extend(times.map(|at_ns| origin.at(SentAt::Event(at_ns))));
        }
        let cut_off = cut_off.map(|why| format!("when its state is reached: {why}"));
        if !all.is_empty() {
            let cut_off = cut_off.or(other_port);
            return Ok(Senders { all, cut_off });
        }
        let what = match event {
            StateEvent::Message(number) => format!("the server has received message {number}"),
            StateEvent::Mark(name) => format!("a host has marked {name:?}"),
        };
        let help = match cut_off {
            Some(why) => format!("not all was explored: {why}"),
            None => "on no path does that happen".to_owned(),
        };
        let problems = place.wrong(format!("it never happens that {what}"), help);
        Err(Error::Scenario { problems })
    }

    /// Returns the times at which worlds reach a point, and why there may be others, if so. The
    /// sender is there, because it takes time on its host.
    fn times(&self, origin: &Origin, point: Point) -> Result<(BTreeSet<u64>, Option<String>)> {
        let mut run = self.with_sender(&origin.at(SentAt::Never))?;
        run.max_virtual_time = self.spec.run.max_virtual_time;
        let (config, images) = prepare(&run, self.session)?;
        let mut reached = PointTimes::new(point);
        let mut explorer = Explorer::new(&images, quiet(&config), Start::Beginning)?;
        let stopped = explorer.run(&self.session.stop, &mut reached);
        let why = incomplete(&explorer, stopped);
        Ok((reached.times_ns, why))
    }
}
