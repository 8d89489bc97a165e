//! The sequence of messages of a world that is followed or that runs natively, for people.

use everett_linux::{Packet, PacketKind};
use everett_net::{Fate, Faults, HostIndex};
use everett_vm::Buffer;

use super::member::Member;
use super::moments::{Befallen, Befalls};
use super::post::{Arrival, Fated};
use super::*;

/// Bytes of a message that are shown.
const MOST_SHOWN: usize = 32;

/// Something that one host sent to another, or that became of a host.
#[derive(Clone, Debug)]
pub struct Message {
    /// When, on the clock of the sender.
    pub sent_ns: u64,
    /// Who.
    pub from: String,
    /// To whom; the same where something became of the host.
    pub to: String,
    /// The packet as it was sent, with bytes that are known; none where something became of the host.
    pub packet: Option<Packet>,
    /// What, for people.
    pub what: String,
    /// What became of it, where it did not simply arrive.
    pub fate: Option<String>,
    /// It was lost, at least once.
    pub is_lost: bool,
    /// When it arrived: never, once, or several times.
    pub arrived_ns: Vec<u64>,
    /// The bytes that arrived, where they are not those that were sent.
    pub received: Option<Vec<u8>>,
    /// Its number among what the sender sent.
    number: u64,
}

/// What hosts sent each other.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    names: Vec<String>,
    list: Vec<Message>,
}

/// What a packet carries, if anything.
pub fn carried(packet: &Packet) -> Option<&Buffer> {
    match &packet.kind {
        PacketKind::Datagram(bytes) | PacketKind::Data(bytes) => Some(bytes),
        _ => None,
    }
}

impl Messages {
    /// None yet, between hosts of these names.
    pub fn between(names: Vec<String>) -> Messages {
        Messages {
            names,
            list: Vec::new(),
        }
    }

    /// All, in the order of the clocks of their senders.
    pub fn in_order(&self) -> Vec<Message> {
        let mut messages = self.list.clone();
        messages.sort_by_key(|message| message.sent_ns);
        messages
    }

    fn name(&self, host: HostIndex) -> String {
        self.names.get(host.index()).cloned().unwrap_or_default()
    }

    /// Something is sent, with bytes that are these.
    pub fn sent(&mut self, arrival: &Arrival, to: HostIndex, bytes: Option<Vec<u8>>) {
        let mut packet = (*arrival.packet).clone();
        if let (PacketKind::Datagram(carried) | PacketKind::Data(carried), Some(bytes)) =
            (&mut packet.kind, &bytes)
        {
            *carried = Buffer::with_bytes(bytes, bytes.len());
        }
        let bytes = bytes.unwrap_or_default();
        let what = match &packet.kind {
            PacketKind::Datagram(_) => counted("datagram", &bytes),
            PacketKind::Data(_) => counted("data", &bytes),
            PacketKind::Request { .. } => "connection wanted".to_owned(),
            PacketKind::Accepted { .. } | PacketKind::Opened => "connection accepted".to_owned(),
            PacketKind::Refused => "connection refused".to_owned(),
            PacketKind::Room { more } => format!("room for {more} more bytes"),
            PacketKind::End => "end of the stream".to_owned(),
            PacketKind::Reset => "connection broken off".to_owned(),
            PacketKind::Unreachable(errno) => format!("unreachable: {}", errno.name()),
        };
        self.list.push(Message {
            sent_ns: packet.clock_ns,
            from: self.name(arrival.from),
            to: self.name(to),
            packet: Some(packet),
            what,
            fate: None,
            is_lost: false,
            arrived_ns: Vec::new(),
            received: None,
            number: arrival.number,
        });
    }

    /// Something arrives, or does not; `bytes` are those that do.
    pub fn arrives(
        &mut self,
        arrival: &Arrival,
        to: HostIndex,
        fated: &Fated,
        faults: &Faults,
        bytes: Option<Vec<u8>>,
    ) {
        let Some(message) = self.find(arrival, to) else {
            return;
        };
        if fated.now.is_some() {
            message.arrived_ns.push(arrival.at_ns);
            let sent = message.packet.as_ref().and_then(carried);
            let sent = sent.map(|sent| sent.bytes().to_vec());
            message.received = bytes.filter(|bytes| sent.as_ref() != Some(bytes));
        }
        let fault = fated
            .taken
            .and_then(|taken| Some((taken.fault?, taken.fate)));
        let mut fate = fault.map(|(fault, fate)| {
            message.is_lost |= fate == Fate::Drop;
            format!("{}: {}", named(fate), faults.get(fault).name)
        });
        if !fated.marks.is_empty() && fate.is_none() {
            fate = Some("may be anything".to_owned());
        }
        if let (Some(fate), Some(received)) = (&mut fate, &message.received) {
            fate.push_str(&format!("; here {}", quoted(received)));
        }
        message.fate = fate.or(message.fate.take());
    }

    fn find(&mut self, arrival: &Arrival, to: HostIndex) -> Option<&mut Message> {
        let (from, to) = (self.name(arrival.from), self.name(to));
        let is_it =
            |one: &&mut Message| one.number == arrival.number && one.from == from && one.to == to;
        self.list.iter_mut().rev().find(is_it)
    }

    /// Something arrives at a host that is off.
    pub fn finds_nobody(&mut self, arrival: &Arrival, to: HostIndex) {
        if let Some(message) = self.find(arrival, to) {
            message.is_lost = true;
            message.fate = Some("finds the host switched off".to_owned());
        }
    }

    /// Something becomes of a host.
    pub fn befalls(&mut self, host: HostIndex, befallen: &Befallen, faults: &Faults, now_ns: u64) {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let mut what = match &befallen.what {
            Befalls::Nothing => return,
            Befalls::Pauses(until) => format!("does nothing until {:.6} s", seconds(*until)),
            Befalls::Off => "is switched off".to_owned(),
            Befalls::Restarts(at, _) => {
                format!("is switched off and starts again at {:.6} s", seconds(*at))
            }
        };
        for path in &befallen.lost {
            let path = String::from_utf8_lossy(path);
            what.push_str(&format!("; {path} loses what was not synchronised"));
        }
        let fault = befallen.fault.map(|fault| faults.get(fault));
        self.list.push(Message {
            sent_ns: now_ns,
            from: self.name(host),
            to: self.name(host),
            packet: None,
            what,
            fate: fault.map(|fault| fault.name.clone()),
            is_lost: false,
            arrived_ns: vec![now_ns],
            received: None,
            number: u64::MAX,
        });
    }
}

fn named(fate: Fate) -> &'static str {
    match fate {
        Fate::Drop => "is lost",
        Fate::Twice { .. } => "arrives twice",
        Fate::Delay { .. } => "is late",
        Fate::Corrupt { .. } => "is damaged",
        Fate::HoldBack { .. } => "is held back",
        Fate::Deliver => "arrives",
    }
}

fn counted(what: &str, bytes: &[u8]) -> String {
    format!("{what} of {} bytes: {}", bytes.len(), quoted(bytes))
}

fn quoted(bytes: &[u8]) -> String {
    let shown = bytes.iter().take(MOST_SHOWN).copied();
    let text: String = shown
        .flat_map(std::ascii::escape_default)
        .map(char::from)
        .collect();
    let more = if bytes.len() > MOST_SHOWN { "…" } else { "" };
    format!("\"{text}\"{more}")
}

impl Worlds<'_> {
    /// What hosts sent each other, in the order of their clocks, where traces are followed.
    pub fn messages(&self) -> Vec<Message> {
        let messages = self.messages.as_ref();
        messages.map_or_else(Vec::new, Messages::in_order)
    }

    /// What a packet carries, under the model of a state.
    fn bytes_of(&mut self, packet: &Packet, member: &Member) -> Option<Vec<u8>> {
        let bytes = carried(packet)?;
        let mut known = Vec::with_capacity(bytes.len());
        for at in 0..bytes.len() {
            let value = bytes.byte(&mut self.worker.arena, at);
            known.push(self.worker.value(&member.state, value) as u8);
        }
        Some(known)
    }

    /// Notes that something arrives at a host that is off.
    pub(super) fn note_nobody(&mut self, arrival: &Arrival, to: HostIndex) {
        if let Some(messages) = &mut self.messages {
            messages.finds_nobody(arrival, to);
        }
    }

    /// Notes what becomes of a host.
    pub(super) fn note_befallen(&mut self, host: HostIndex, befallen: &Befallen, now_ns: u64) {
        if let Some(messages) = &mut self.messages {
            messages.befalls(host, befallen, &self.config.faults, now_ns);
        }
    }

    /// Notes that something is sent.
    pub(super) fn note_sent(&mut self, arrival: &Arrival, to: HostIndex, sender: &Member) {
        if self.messages.is_none() {
            return;
        }
        let bytes = self.bytes_of(&arrival.packet, sender);
        if let Some(messages) = &mut self.messages {
            messages.sent(arrival, to, bytes);
        }
    }

    /// Notes what becomes of something that was sent.
    pub(super) fn note_fate(
        &mut self,
        arrival: &Arrival,
        to: HostIndex,
        fated: &Fated,
        receiver: &Member,
    ) {
        if self.messages.is_none() {
            return;
        }
        let bytes = match &fated.now {
            Some(packet) => self.bytes_of(packet, receiver),
            None => None,
        };
        let faults = &self.config.faults;
        if let Some(messages) = &mut self.messages {
            messages.arrives(arrival, to, fated, faults, bytes);
        }
    }
}
