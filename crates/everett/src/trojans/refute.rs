//! Compares what clients send with what the server accepts. If limits have cut clients off, their
//! further messages may refute classes. First, clients are explored with their inputs pinned to
//! what may give a message of a class; then, the exploration of all remaining states continues.

use everett_solver::SolverConfig;
use everett_trojans::{Answer, Negation, Pin};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use super::clients::{Client, Prepared, Sent};
use super::summary::TrojanPhases;
use super::{Accepts, Analysis, Class};
use crate::error::{Error, Result};
use crate::events::{Event, Observer};
use crate::explore::prepare;

/// Rounds of pinning for each raise of the limits: new messages show how further bytes are
/// computed.
const MOST_PINNED: u32 = 4;

/// The factor by which limits rise each time.
const RAISED_BY: u64 = 4;

impl Analysis<'_> {
    /// Compares what clients send with what the server accepts.
    pub(super) fn compared(&self, observer: &mut dyn Observer) -> Result<(Sent, Accepts)> {
        let mut phases = TrojanPhases::default();
        let start = self.session.now();
        observer.event(&Event::Phase("what clients send"));
        let (config, images) = prepare(&self.spec.run, self.session)?;
        let world = (config, &images[..]);
        let mut clients = self.clients(&world)?;
        let mut round = self.until_heard(&mut clients, &world)?;
        let mut sent = self.sent(&clients);
        phases.clients = (self.session.now() - start).as_secs_f64();
        let has_rounds = |sent: &Sent, round| sent.is_limited && round < self.spec.refute;
        if has_rounds(&sent, round) {
            observer.event(&Event::Phase("what the server accepts"));
            let before = self.session.now();
            let accepts = self.accepts(&sent, false, observer)?;
            let after_server = self.session.now();
            phases.server = (after_server - before).as_secs_f64();
            observer.event(&Event::Phase("whether clients that were cut off refute it"));
            let mut open = self.open(accepts.classes, &sent)?;
            while !open.is_empty() && has_rounds(&sent, round) && !self.is_stopped() {
                round += 1;
                let factor = RAISED_BY.saturating_pow(round);
                for _ in 0..MOST_PINNED {
                    let known = sent.predicates.len();
                    self.pin(&mut clients, &open, &world, factor / RAISED_BY)?;
                    sent = self.sent(&clients);
                    if sent.predicates.len() == known {
                        break;
                    }
                    open = self.open(open, &sent)?;
                }
                if open.is_empty() {
                    break;
                }
                for client in clients.iter_mut().filter(|client| client.is_limited()) {
                    self.explore_further(client, &world, factor)?;
                }
                sent = self.sent(&clients);
                open = self.open(open, &sent)?;
            }
            phases.clients += (self.session.now() - after_server).as_secs_f64();
        }
        drop(clients);
        let before = self.session.now();
        observer.event(&Event::Phase("what the server accepts"));
        let mut accepts = self.accepts(&sent, true, observer)?;
        let both = (self.session.now() - before).as_secs_f64();
        let summary = &mut accepts.summary;
        phases.afterwards = summary.phases.afterwards;
        phases.server += both - phases.afterwards;
        phases.found = std::mem::take(&mut summary.phases.found);
        summary.phases = phases;
        // Nothing is left that further client messages could refute.
        let has_no_others = summary.trojans.is_empty()
            && summary.undecided.is_empty()
            && summary.lengths.iter().all(|of| of.explored);
        summary.complete |= has_no_others && self.spec.search.negation == Negation::Exact;
        Ok((sent, accepts))
    }

    fn is_stopped(&self) -> bool {
        self.session.stop.load(Ordering::SeqCst)
    }

    /// Explores clients further until each has sent something. Returns how often limits were
    /// raised.
    fn until_heard<'i>(&self, clients: &mut [Client<'i>], world: &Prepared<'i>) -> Result<u32> {
        let mut round = 0;
        loop {
            let sent = self.sent(clients);
            let is_last = round >= self.spec.refute || !sent.is_limited;
            if !self.is_silent(&sent, is_last)? {
                return Ok(round);
            }
            round += 1;
            for client in clients.iter_mut().filter(|client| client.is_limited()) {
                self.explore_further(client, world, RAISED_BY.saturating_pow(round))?;
            }
        }
    }

    /// Returns the classes with messages that are not sent, or may have some.
    fn open(&self, classes: Vec<Class>, sent: &Sent) -> Result<Vec<Class>> {
        let mut open = Vec::new();
        let mut of_length = None;
        for class in classes {
            let search = match of_length.take() {
                Some((length, search)) if length == class.length => search,
                _ => self.search(class.length, &sent.predicates, &SolverConfig::default())?,
            };
            let (_, search) = of_length.insert((class.length, search));
            let paths = class.also.iter().chain([&class.accepted.path]);
            let mut is_open = false;
            for path in paths {
                let terms = search.stored(path).map_err(unreadable)?;
                is_open = is_open || search.decide(&terms) != Answer::None;
            }
            if is_open {
                open.push(class);
            }
        }
        Ok(open)
    }

    /// Explores clients that were cut off with pinned inputs.
    fn pin<'i>(
        &self,
        clients: &mut [Client<'i>],
        classes: &[Class],
        world: &Prepared<'i>,
        factor: u64,
    ) -> Result<()> {
        for client in clients.iter_mut().filter(|client| client.is_limited()) {
            let pins = self.pins(client, classes)?;
            if !pins.is_empty() {
                self.explore_pinned(client, pins, world, factor)?;
            }
        }
        Ok(())
    }

    /// Returns the pins of a client for the classes.
    fn pins(&self, client: &Client<'_>, classes: &[Class]) -> Result<Vec<Pin>> {
        let (mut pins, sent) = (BTreeSet::new(), client.sent());
        for class in classes {
            for path in class.also.iter().chain([&class.accepted.path]) {
                pins.extend(Pin::of(path, &sent, &self.layout).map_err(unreadable)?);
            }
        }
        Ok(pins.into_iter().collect())
    }
}

fn unreadable(error: everett_expr::codec::DecodeError) -> Error {
    Error::Invalid(format!("terms cannot be read: {error}"))
}
