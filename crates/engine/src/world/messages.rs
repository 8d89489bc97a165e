//! The sequence of messages of a world that is followed, for people.

use everett_linux::PacketKind;
use everett_net::{Alternative, Fate};

use super::member::Member;
use super::moments::{Befallen, Befalls};
use super::post::Arrival;
use super::*;

/// Bytes of a message that are shown.
const MOST_SHOWN: usize = 32;

/// Something that one host sent to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// When, on the clock of the sender.
    pub sent_ns: u64,
    /// Who.
    pub from: String,
    /// To whom.
    pub to: String,
    /// What.
    pub what: String,
    /// What became of it, where it did not simply arrive.
    pub fate: Option<String>,
    /// Its number among what the sender sent.
    number: u64,
}

impl Worlds<'_> {
    /// What hosts sent each other, in the order of their clocks, where traces are followed.
    pub fn messages(&self) -> Vec<Message> {
        let mut messages = self.messages.clone().unwrap_or_default();
        messages.sort_by_key(|message| message.sent_ns);
        messages
    }

    /// Notes that something is sent.
    pub(super) fn note_sent(&mut self, arrival: &Arrival, to: HostIndex, sender: &Member) {
        if self.messages.is_none() {
            return;
        }
        let what = match &arrival.packet.kind {
            PacketKind::Datagram(bytes) => self.shown("datagram", bytes, sender),
            PacketKind::Data(bytes) => self.shown("data", bytes, sender),
            PacketKind::Request { .. } => "connection wanted".to_owned(),
            PacketKind::Accepted { .. } | PacketKind::Opened => "connection accepted".to_owned(),
            PacketKind::Refused => "connection refused".to_owned(),
            PacketKind::Room { more } => format!("room for {more} more bytes"),
            PacketKind::End => "end of the stream".to_owned(),
            PacketKind::Reset => "connection broken off".to_owned(),
            PacketKind::Unreachable(errno) => format!("unreachable: {}", errno.name()),
        };
        let name = |host: HostIndex| self.host(host).name.clone();
        let message = Message {
            sent_ns: arrival.packet.clock_ns,
            from: name(arrival.from),
            to: name(to),
            what,
            fate: None,
            number: arrival.number,
        };
        if let Some(messages) = &mut self.messages {
            messages.push(message);
        }
    }

    fn shown(&mut self, what: &str, bytes: &everett_vm::Buffer, sender: &Member) -> String {
        let mut text = format!("{what} of {} bytes: \"", bytes.len());
        for at in 0..bytes.len().min(MOST_SHOWN) {
            let value = bytes.byte(&mut self.worker.arena, at);
            let byte = self.worker.value(&sender.state, value) as u8;
            text.extend(std::ascii::escape_default(byte).map(char::from));
        }
        text.push_str(if bytes.len() > MOST_SHOWN {
            "\"…"
        } else {
            "\""
        });
        text
    }

    /// Notes that something arrives at a host that is off.
    pub(super) fn note_nobody(&mut self, arrival: &Arrival, to: HostIndex) {
        self.note(arrival, to, "finds the host switched off".to_owned());
    }

    /// Notes what becomes of a host.
    pub(super) fn note_befallen(&mut self, host: HostIndex, befallen: &Befallen, now_ns: u64) {
        if self.messages.is_none() {
            return;
        }
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
        let name = self.host(host).name.clone();
        let fault = befallen.fault.map(|fault| self.config.faults.get(fault));
        let message = Message {
            sent_ns: now_ns,
            from: name.clone(),
            to: name,
            what,
            fate: fault.map(|fault| fault.name.clone()),
            number: u64::MAX,
        };
        self.messages
            .iter_mut()
            .for_each(|all| all.push(message.clone()));
    }

    /// Notes what becomes of something that was sent.
    pub(super) fn note_fate(
        &mut self,
        arrival: &Arrival,
        to: HostIndex,
        fate: Option<&Alternative<Fate>>,
        is_marked: bool,
    ) {
        if self.messages.is_none() {
            return;
        }
        let fault = fate.and_then(|fate| Some((fate.fault?, fate.fate)));
        let mut text = fault.map(|(fault, fate)| {
            let what = match fate {
                Fate::Drop => "is lost",
                Fate::Twice { .. } => "arrives twice",
                Fate::Delay { .. } => "is late",
                Fate::Corrupt { .. } => "is damaged",
                Fate::HoldBack { .. } => "is held back",
                Fate::Deliver => "arrives",
            };
            format!("{what}: {}", self.config.faults.get(fault).name)
        });
        if is_marked && text.is_none() {
            text = Some("may be anything".to_owned());
        }
        if let Some(text) = text {
            self.note(arrival, to, text);
        }
    }

    fn note(&mut self, arrival: &Arrival, to: HostIndex, fate: String) {
        let name = |host: HostIndex| self.host(host).name.clone();
        let (from, to) = (name(arrival.from), name(to));
        let messages = self.messages.iter_mut().flatten();
        let is_it =
            |one: &&mut Message| one.number == arrival.number && one.from == from && one.to == to;
        if let Some(message) = messages.rev().find(is_it) {
            message.fate = Some(fate);
        }
    }
}
