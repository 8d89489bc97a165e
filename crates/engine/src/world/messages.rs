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

impl Message {
    /// What became of it, and the bytes that arrived where they are not those that were sent, for people.
    pub fn note(&self) -> Option<String> {
        let Some(received) = &self.received else {
            return self.fate.clone();
        };
        let sent = self.packet.as_ref().and_then(carried);
        let sent = sent.map_or(&[][..], Buffer::bytes);
        let mut pairs = sent.iter().zip(received);
        let differs = pairs.position(|(sent, received)| sent != received);
        // What is different has to be seen, however far behind it is.
        let here = match differs.unwrap_or(0) {
            from if from < MOST_SHOWN => format!("here {}", quoted(received)),
            from => format!("here from byte {from} on {}", quoted(&received[from..])),
        };
        Some(match &self.fate {
            Some(fate) => format!("{fate}; {here}"),
            None => here,
        })
    }
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
            PacketKind::Syn { .. } => "connection wanted".to_owned(),
            PacketKind::SynAck { .. } | PacketKind::Established => "connection accepted".to_owned(),
            PacketKind::Refused => "connection refused".to_owned(),
            PacketKind::WindowUpdate { bytes: more } => format!("room for {more} more bytes"),
            PacketKind::Fin => "end of the stream".to_owned(),
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
        let fate = fault.map(|(fault, fate)| {
            message.is_lost |= fate == Fate::Drop;
            format!("{}: {}", named(fate), faults.get(fault).name)
        });
        let marked = (!fated.marks.is_empty()).then(|| "may be anything".to_owned());
        for new in [fate, marked].into_iter().flatten() {
            message.fate = match message.fate.take() {
                // What is sent again can be lost again, which says nothing new.
                Some(known) if known.contains(&new) => Some(known),
                Some(known) => Some(format!("{known}; {new}")),
                None => Some(new),
            };
        }
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

#[cfg(test)]
mod tests {
    use super::*;

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
                kind: PacketKind::Datagram(Buffer::with_bytes(bytes, bytes.len())),
            }),
            decided: false,
            behind: 0,
            again: 0,
            met: false,
            known: Arc::default(),
            leads: false,
        }
    }

    /// What is told of a packet that is marked and, where that is so, arrives only the second time.
    fn told(sent: &[u8], received: &[u8], is_late: bool) -> Option<String> {
        let mut messages = Messages::between(vec!["a".to_owned(), "b".to_owned()]);
        let (arrival, to) = (arrival(sent), HostIndex(1));
        messages.sent(&arrival, to, Some(sent.to_vec()));
        let faults = Faults::default();
        let mut fated = Fated {
            now: Some(arrival.packet.clone()).filter(|_| !is_late),
            later: None,
            back: None,
            taken: None,
            marks: vec![FaultIndex(0)],
        };
        let bytes = Some(received.to_vec());
        messages.arrives(
            &arrival,
            to,
            &fated,
            &faults,
            bytes.clone().filter(|_| !is_late),
        );
        if is_late {
            (fated.now, fated.marks) = (Some(arrival.packet.clone()), Vec::new());
            messages.arrives(&arrival, to, &fated, &faults, bytes);
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
