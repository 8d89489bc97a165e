//! The message log of one world: what hosts sent each other and which faults happened, for message
//! sequence charts.

use everett_linux::{Packet, PacketKind};
use everett_net::{DeliveryOutcome, Faults, HostIndex};
use everett_vm::Buffer;

use crate::arrival::Arrival;
use crate::host::Step;
use crate::host_faults::{HostFault, HostFaultOutcome};
use crate::transit::Delivery;

/// Maximum number of bytes of a message that are shown.
const MAX_SHOWN: usize = 32;

/// A packet that one host sent to another, or a fault that happened to a host.
#[derive(Clone, Debug)]
pub struct Message {
    /// The send time, on the sender's clock.
    pub sent_ns: u64,
    /// The name of the sender.
    pub from: String,
    /// The name of the receiver; the same host for a host fault.
    pub to: String,
    /// The packet as it was sent, with concrete bytes; `None` for a host fault.
    pub packet: Option<Packet>,
    /// A description of the packet or fault, for people.
    pub what: String,
    /// The fault that happened to the packet, if any.
    pub outcome: Option<String>,
    /// Whether the packet was lost at least once.
    pub is_lost: bool,
    /// The times of its arrivals: none, one or several.
    pub arrived_ns: Vec<u64>,
    /// The bytes that arrived, if they differ from those sent.
    pub received: Option<Vec<u8>>,
    /// The sequence number of the packet at its sender.
    number: u64,
}

impl Message {
    /// Describes the fault, and the bytes that arrived if they differ, for people.
    pub fn note(&self) -> Option<String> {
        let Some(received) = &self.received else {
            return self.outcome.clone();
        };
        let sent = self.packet.as_ref().and_then(|packet| packet.payload());
        let sent = sent.map_or(&[][..], Buffer::bytes);
        let mut pairs = sent.iter().zip(received);
        let differs = pairs.position(|(sent, received)| sent != received);
        // The difference must be visible, however far behind it is.
        let here = match differs.unwrap_or(0) {
            from if from < MAX_SHOWN => format!("here {}", quoted(received)),
            from => format!("here from byte {from} on {}", quoted(&received[from..])),
        };
        Some(match &self.outcome {
            Some(outcome) => format!("{outcome}; {here}"),
            None => here,
        })
    }
}

/// The message log of one world.
#[derive(Clone, Debug, Default)]
pub struct MessageLog {
    names: Vec<String>,
    list: Vec<Message>,
}

impl MessageLog {
    /// Creates an empty log between hosts of these names.
    pub fn between(names: Vec<String>) -> MessageLog {
        MessageLog {
            names,
            list: Vec::new(),
        }
    }

    /// Returns all messages, in the order of their senders' clocks.
    pub fn in_order(&self) -> Vec<Message> {
        let mut messages = self.list.clone();
        messages.sort_by_key(|message| message.sent_ns);
        messages
    }

    fn name(&self, host: HostIndex) -> String {
        self.names.get(host.index()).cloned().unwrap_or_default()
    }

    /// Logs a packet that is sent with these concrete bytes.
    pub fn log_sent(&mut self, arrival: &Arrival, to: HostIndex, bytes: Option<Vec<u8>>) {
        let mut packet = (*arrival.packet).clone();
        if let (Some(carried), Some(bytes)) = (packet.payload_mut(), &bytes) {
            *carried = Buffer::with_bytes(bytes, bytes.len());
        }
        let bytes = bytes.unwrap_or_default();
        let what = match &packet.kind {
            PacketKind::Datagram(_) => counted("datagram", &bytes),
            PacketKind::Data(_) => counted("data", &bytes),
            PacketKind::Syn { .. } => "connection wanted".to_owned(),
            PacketKind::SynAck { .. } | PacketKind::Established => "connection accepted".to_owned(),
            PacketKind::Refused => "connection refused".to_owned(),
            PacketKind::WindowUpdate { bytes } => format!("room for {bytes} more bytes"),
            PacketKind::Urgent { .. } => "urgent data announced".to_owned(),
            PacketKind::Fin => "end of the stream".to_owned(),
            PacketKind::Reset => "connection broken off".to_owned(),
            PacketKind::Frame(frame) => counted(&frame.describe(), &bytes),
            PacketKind::Unreachable { errno, .. } => format!("unreachable: {}", errno.name()),
        };
        self.list.push(Message {
            sent_ns: packet.clock_ns,
            from: self.name(arrival.from),
            to: self.name(to),
            packet: Some(packet),
            what,
            outcome: None,
            is_lost: false,
            arrived_ns: Vec::new(),
            received: None,
            number: arrival.number,
        });
    }

    /// Logs what a step of a host did; `bytes` are the concrete bytes of a packet that it received.
    pub fn log_step<S>(
        &mut self,
        host: HostIndex,
        step: &Step<S>,
        faults: &Faults,
        bytes: Option<Vec<u8>>,
    ) {
        match step {
            Step::Delivered(arrival, delivery) => {
                self.log_delivery(arrival, host, delivery, faults, bytes);
            }
            Step::FoundOff(arrival) => self.log_off(arrival, host),
            Step::Faulted(hit, now_ns) => self.log_host_fault(host, hit, faults, *now_ns),
            Step::Blocked
            | Step::Ran
            | Step::Exposed
            | Step::Called(_)
            | Step::Livelock(_)
            | Step::Asked(_)
            | Step::Unanswered(_)
            | Step::Stopped(_) => {}
        }
    }

    /// Logs the outcome of an arrival; `bytes` are the concrete bytes that arrive.
    fn log_delivery(
        &mut self,
        arrival: &Arrival,
        to: HostIndex,
        delivery: &Delivery,
        faults: &Faults,
        bytes: Option<Vec<u8>>,
    ) {
        let Some(message) = self.find(arrival, to) else {
            return;
        };
        if delivery.delivered.is_some() {
            message.arrived_ns.push(arrival.at_ns);
            let sent = message.packet.as_ref().and_then(|packet| packet.payload());
            let sent = sent.map(|sent| sent.bytes().to_vec());
            message.received = bytes.filter(|bytes| sent.as_ref() != Some(bytes));
        }
        let fault = delivery
            .taken
            .and_then(|taken| Some((taken.fault?, taken.effect)));
        let outcome = fault.map(|(fault, outcome)| {
            message.is_lost |= outcome == DeliveryOutcome::Drop;
            format!("{}: {}", named(outcome), faults.get(fault).name)
        });
        let marked = (!delivery.marks.is_empty()).then(|| "may be anything".to_owned());
        for new in [outcome, marked].into_iter().flatten() {
            message.outcome = match message.outcome.take() {
                // A retransmission can be lost again, which is not logged twice.
                Some(known) if known.contains(&new) => Some(known),
                Some(known) => Some(format!("{known}; {new}")),
                None => Some(new),
            };
        }
    }

    /// Returns the logged message of an arrival.
    fn find(&mut self, arrival: &Arrival, to: HostIndex) -> Option<&mut Message> {
        let (from, to) = (self.name(arrival.from), self.name(to));
        let is_it =
            |one: &&mut Message| one.number == arrival.number && one.from == from && one.to == to;
        self.list.iter_mut().rev().find(is_it)
    }

    /// Logs an arrival at a host that is powered off.
    fn log_off(&mut self, arrival: &Arrival, to: HostIndex) {
        if let Some(message) = self.find(arrival, to) {
            message.is_lost = true;
            message.outcome = Some("finds the host switched off".to_owned());
        }
    }

    /// Logs a host fault.
    fn log_host_fault(&mut self, host: HostIndex, hit: &HostFault, faults: &Faults, now_ns: u64) {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let mut what = match &hit.effect {
            HostFaultOutcome::None => return,
            HostFaultOutcome::Pause(until) => {
                format!("does nothing until {:.6} s", seconds(*until))
            }
            HostFaultOutcome::Off => "is switched off".to_owned(),
            HostFaultOutcome::Restart(at, _) => {
                format!("is switched off and starts again at {:.6} s", seconds(*at))
            }
        };
        for path in &hit.lost {
            let path = String::from_utf8_lossy(path);
            what.push_str(&format!("; {path} loses what was not synchronised"));
        }
        let fault = hit.fault.map(|fault| faults.get(fault));
        self.list.push(Message {
            sent_ns: now_ns,
            from: self.name(host),
            to: self.name(host),
            packet: None,
            what,
            outcome: fault.map(|fault| fault.name.clone()),
            is_lost: false,
            arrived_ns: vec![now_ns],
            received: None,
            number: u64::MAX,
        });
    }
}

fn named(outcome: DeliveryOutcome) -> &'static str {
    match outcome {
        DeliveryOutcome::Drop => "is lost",
        DeliveryOutcome::Duplicate { .. } => "arrives twice",
        DeliveryOutcome::Delay { .. } => "is late",
        DeliveryOutcome::Corrupt { .. } => "is damaged",
        DeliveryOutcome::HoldBack { .. } => "is held back",
        DeliveryOutcome::Deliver => "arrives",
    }
}

fn counted(what: &str, bytes: &[u8]) -> String {
    let size = everett_vm::bytes(bytes.len() as u64);
    format!("{what} of {size}: {}", quoted(bytes))
}

fn quoted(bytes: &[u8]) -> String {
    let shown = bytes.iter().take(MAX_SHOWN).copied();
    let text: String = shown
        .flat_map(std::ascii::escape_default)
        .map(char::from)
        .collect();
    let more = if bytes.len() > MAX_SHOWN { "…" } else { "" };
    format!("\"{text}\"{more}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use everett_net::FaultIndex;
    use std::sync::Arc;

    fn arrival(bytes: &[u8]) -> Arrival {
        let address = "10.0.0.1:7".parse().expect("an address");
        Arrival {
            at_ns: 5,
            from: HostIndex(0),
            number: 1,
            packet: Arc::new(Packet {
                clock_ns: 0,
                from: address,
                to: address,
                kind: PacketKind::Datagram(Buffer::with_bytes(bytes, bytes.len()).into()),
            }),
            decided: false,
            held_behind: 0,
            held_since: None,
            retransmissions: 0,
            host_faults_decided: false,
            known: Arc::default(),
            wins_race: false,
        }
    }

    /// Returns the note on a packet with symbolic bytes; with `is_late`, it arrives only the second
    /// time.
    fn told(sent: &[u8], received: &[u8], is_late: bool) -> Option<String> {
        let mut messages = MessageLog::between(vec!["a".to_owned(), "b".to_owned()]);
        let (arrival, to) = (arrival(sent), HostIndex(1));
        messages.log_sent(&arrival, to, Some(sent.to_vec()));
        let faults = Faults::default();
        let mut delivery = Delivery {
            delivered: Some(arrival.packet.clone()).filter(|_| !is_late),
            later: None,
            bounce: None,
            taken: None,
            marks: vec![FaultIndex(0)],
        };
        let bytes = Some(received.to_vec());
        messages.log_delivery(
            &arrival,
            to,
            &delivery,
            &faults,
            bytes.clone().filter(|_| !is_late),
        );
        if is_late {
            (delivery.delivered, delivery.marks) = (Some(arrival.packet.clone()), Vec::new());
            messages.log_delivery(&arrival, to, &delivery, &faults, bytes);
        }
        messages.in_order()[0].note()
    }

    #[test]
    fn the_bytes_that_arrived_are_shown() {
        let told_at_once = told(b"hello", b"jello", false);
        assert_eq!(
            told_at_once.as_deref(),
            Some("may be anything; here \"jello\"")
        );
        assert_eq!(
            told(b"hello", b"hello", false).as_deref(),
            Some("may be anything")
        );
    }

    #[test]
    fn they_are_shown_where_they_arrive_later_and_far_behind_too() {
        assert_eq!(
            told(b"hello", b"jello", true).as_deref(),
            Some("may be anything; here \"jello\"")
        );
        let (sent, mut received) = ([b'x'; 50], [b'x'; 50]);
        received[48] = b'y';
        assert_eq!(
            told(&sent, &received, false).as_deref(),
            Some("may be anything; here from byte 48 on \"yx\"")
        );
    }
}
