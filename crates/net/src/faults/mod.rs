//! What can go wrong, as one list: which faults there are ([`KINDS`]), what a scenario says of each ([`Fault`]), and which
//! of them are possible for a packet or a host at a moment ([`Faults`]). Whether one happens is not decided
//! here: the possibilities are handed out as alternatives, and whoever explores picks.

mod counters;
mod filter;
mod kinds;

pub use counters::FaultCounters;
pub use filter::{Filter, HostSet, Numbers, Ports, Sizes, Times};
pub use kinds::{FaultTarget, KINDS, Kind, Parameter, ParameterKind, Value, kind};

use crate::packet::Packet;
use crate::topology::HostIndex;

/// A fault, by its place in the list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FaultIndex(pub u16);

impl FaultIndex {
    /// As an index of a list.
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// Over what the number of a fault is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Scope {
    /// All that happened before, on all hosts.
    #[default]
    Path,
    /// What happened on this host.
    Host,
}

/// One fault of a scenario.
#[derive(Clone, PartialEq, Debug)]
pub struct Fault {
    /// Its name.
    pub name: String,
    /// What it does.
    pub kind: &'static Kind,
    /// What the kind needs to know, one for each of its parameters.
    pub values: Vec<Value>,
    /// When it is possible.
    pub filter: Filter,
    /// How often.
    pub most: u32,
    /// Over what that is counted.
    pub scope: Scope,
    /// It happens wherever it can: it is no alternative, but what is.
    pub always: bool,
}

impl Fault {
    /// A fault of this kind that is possible everywhere, once.
    pub fn new(name: impl Into<String>, kind: &'static Kind) -> Fault {
        let protocols = kind.protocols.to_vec();
        Fault {
            name: name.into(),
            kind,
            values: kind.parameters.iter().map(Parameter::default).collect(),
            filter: Filter {
                protocols,
                ..Filter::default()
            },
            most: 1,
            scope: Scope::default(),
            always: kind.always,
        }
    }

    /// The value of a parameter.
    pub fn value(&self, name: &str) -> Option<&Value> {
        let mut names = self.kind.parameters.iter();
        let at = names.position(|parameter| parameter.name == name)?;
        self.values.get(at)
    }

    /// Sets a parameter; `false` if the kind has none of this name.
    pub fn set(&mut self, name: &str, value: Value) -> bool {
        let mut names = self.kind.parameters.iter();
        let at = names.position(|parameter| parameter.name == name);
        let slot = at.and_then(|at| self.values.get_mut(at));
        slot.map(|slot| *slot = value).is_some()
    }

    pub(crate) fn number(&self, name: &str) -> u64 {
        match self.value(name) {
            Some(Value::Count(number) | Value::Duration(number)) => *number,
            _ => 0,
        }
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        matches!(self.value(name), Some(Value::Flag(true)))
    }

    /// The host is one that the fault is about.
    pub(crate) fn concerns(&self, name: &str, host: HostIndex) -> bool {
        matches!(self.value(name), Some(Value::Hosts(hosts)) if hosts.contains(host))
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeliveryOutcome {
    /// It arrives as it is.
    Deliver,
    /// It is lost.
    Drop,
    /// It arrives, and once more so much later.
    Duplicate {
        /// How much later.
        after_ns: u64,
    },
    /// It takes so much longer.
    Delay {
        /// How much.
        by_ns: u64,
    },
    /// These bytes become any others.
    Corrupt {
        /// The first.
        offset: u32,
        /// How many, all of them within the packet.
        length: u32,
    },
    /// It arrives only behind so many of the next packets to the same host.
    HoldBack {
        /// How many.
        packets: u32,
    },
}

/// What becomes of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostFaultEffect {
    /// Nothing.
    Continue,
    /// It is gone for good.
    Crash,
    /// It is gone, and starts again so much later with the disk that it had.
    Restart {
        /// How much later.
        after_ns: u64,
        /// What was not synchronised with the disk can be lost.
        loses_unsynced: bool,
    },
    /// It does nothing for so long.
    Pause {
        /// How long.
        for_ns: u64,
    },
}

/// Bytes of a packet that become symbolic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SymbolicRange {
    /// Why.
    pub fault: FaultIndex,
    /// The first.
    pub offset: u32,
    /// How many, all of them within the packet.
    pub length: u32,
    /// Only values that can be printed.
    pub printable: bool,
}

/// One of the things that can happen; `fault` is what makes it happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alternative<F> {
    /// `None` where it is what happens without any fault.
    pub fault: Option<FaultIndex>,
    /// What happens.
    pub fate: F,
}

/// What a host is about to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostFaultPoint<'a> {
    /// Execute the system call of this name.
    Call(&'a str),
    /// Receive this packet.
    Message(&'a Packet),
    /// Something happens at this time, one of [`Faults::times`].
    Time,
}

/// What a host is about to do, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostEvent<'a> {
    /// The host.
    pub host: HostIndex,
    /// What it is about to do.
    pub moment: HostFaultPoint<'a>,
    /// When.
    pub now_ns: u64,
}

/// All faults of a world.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Faults {
    list: Vec<Fault>,
}

impl Faults {
    /// These faults; at most 65,535.
    pub fn new(mut list: Vec<Fault>) -> Faults {
        list.truncate(u16::MAX.into());
        Faults { list }
    }

    /// All of them.
    pub fn list(&self) -> &[Fault] {
        &self.list
    }

    /// One of them.
    pub fn get(&self, fault: FaultIndex) -> &Fault {
        &self.list[fault.index()]
    }

    /// Nothing can go wrong.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    fn of(&self, target: FaultTarget) -> impl Iterator<Item = (FaultIndex, &Fault)> {
        let numbered = self.list.iter().enumerate();
        let numbered = numbered.map(|(at, fault)| (FaultIndex(at as u16), fault));
        numbered.filter(move |(_, fault)| fault.kind.target == target)
    }

    /// What can become of a packet. The first alternative is what happens if nobody decides otherwise; where it is the only
    /// one there is nothing to decide. `at` is the host on which it is asked, and whose counters these are.
    ///
    /// Call [`Faults::note_packet`] with the alternative that was taken.
    pub fn delivery_outcomes(
        &self,
        packet: &Packet,
        at: HostIndex,
        counters: &FaultCounters,
    ) -> Vec<Alternative<DeliveryOutcome>> {
        let mut all = vec![Alternative {
            fault: None,
            fate: DeliveryOutcome::Deliver,
        }];
        for (index, fault) in self.of(FaultTarget::Packet) {
            if !self.is_possible(index, fault, packet, at, counters) {
                continue;
            }
            let Some(fate) = (fault.kind.packet)(fault, packet) else {
                continue;
            };
            let alternative = Alternative {
                fault: Some(index),
                fate,
            };
            if fault.always {
                return vec![alternative];
            }
            if fault.kind.per_world {
                match counters.decided(index) {
                    Some(true) => return vec![alternative],
                    _ => continue,
                }
            }
            // The same again, by another name, would be explored twice.
            if !all.iter().any(|other| other.fate == fate) {
                all.push(alternative);
            }
        }
        all
    }

    /// Which bytes of a packet become symbolic. This is no alternative: the bytes that were sent are among the values.
    pub fn symbolic_ranges(
        &self,
        packet: &Packet,
        at: HostIndex,
        counters: &FaultCounters,
    ) -> Vec<SymbolicRange> {
        let mut marks = Vec::new();
        for (index, fault) in self.of(FaultTarget::SymbolicRange) {
            let (offset, length) = kinds::bytes(fault, packet);
            if length > 0 && self.is_possible(index, fault, packet, at, counters) {
                marks.push(SymbolicRange {
                    fault: index,
                    offset,
                    length,
                    printable: fault.flag("printable"),
                });
            }
        }
        marks
    }

    fn is_possible(
        &self,
        index: FaultIndex,
        fault: &Fault,
        packet: &Packet,
        at: HostIndex,
        counters: &FaultCounters,
    ) -> bool {
        let number = counters.seen(index, at) + 1;
        // What is decided for the whole world is decided once, however many packets it costs.
        let is_left = fault.kind.per_world || counters.used(index, fault.scope, at) < fault.most;
        is_left && fault.filter.fits(packet) && fault.filter.numbers.contains(number)
    }

    /// Counts a packet with what became of it (one of the alternatives that there were) and what was marked.
    pub fn record_packet(
        &self,
        packet: &Packet,
        at: HostIndex,
        alternatives: &[Alternative<DeliveryOutcome>],
        picked: usize,
        marks: &[SymbolicRange],
        counters: &mut FaultCounters,
    ) {
        for (number, fault) in self.list.iter().enumerate() {
            if fault.kind.target != FaultTarget::Host && fault.filter.fits(packet) {
                counters.count_seen(FaultIndex(number as u16), at);
            }
        }
        let taken = alternatives.get(picked).and_then(|taken| taken.fault);
        let marked = marks.iter().map(|mark| mark.fault);
        for fault in taken.into_iter().chain(marked) {
            counters.count_used(fault, at);
        }
    }

    /// Faults of which it is decided once, when a world begins, whether they happen in it; hosts are told by [`FaultCounters::decide`].
    pub fn world_faults(&self) -> Vec<FaultIndex> {
        let packets = self.of(FaultTarget::Packet);
        let undecided = packets.filter(|(_, fault)| fault.kind.per_world && !fault.always);
        undecided.map(|(index, _)| index).collect()
    }

    /// A message arrives: its receiver learns what had happened when it was sent. Not before: what a host knows must not depend on the
    /// order in which hosts are looked at.
    pub fn learn(&self, receiver: &mut FaultCounters, sender: &FaultCounters) {
        // How often something happened on another host matters only where all of it is counted together.
        receiver.learn(sender, |fault| self.get(fault).scope == Scope::Path);
    }

    /// What can become of a host at a moment; the first alternative is what happens if nobody decides otherwise.
    ///
    /// Call [`Faults::note_host`] with the alternative that was taken.
    pub fn host_fault_effects(
        &self,
        event: &HostEvent<'_>,
        counters: &FaultCounters,
    ) -> Vec<Alternative<HostFaultEffect>> {
        let mut all = vec![Alternative {
            fault: None,
            fate: HostFaultEffect::Continue,
        }];
        for (index, fault) in self.of(FaultTarget::Host) {
            let number = counters.seen(index, event.host) + 1;
            if !concerns(fault, event)
                || !fault.filter.numbers.contains(number)
                || counters.used(index, fault.scope, event.host) >= fault.most
            {
                continue;
            }
            let alternative = Alternative {
                fault: Some(index),
                fate: (fault.kind.host)(fault),
            };
            if fault.always {
                return vec![alternative];
            }
            if !all.iter().any(|other| other.fate == alternative.fate) {
                all.push(alternative);
            }
        }
        all
    }

    /// Counts a moment of a host with what became of it.
    pub fn record_host_fault(
        &self,
        event: &HostEvent<'_>,
        taken: &Alternative<HostFaultEffect>,
        counters: &mut FaultCounters,
    ) {
        for (index, fault) in self.of(FaultTarget::Host) {
            if concerns(fault, event) {
                counters.count_seen(index, event.host);
            }
        }
        if let Some(fault) = taken.fault {
            counters.count_used(fault, event.host);
        }
    }

    /// Some system call of a host can be a moment of a fault: where this is `false` nothing need be asked at calls.
    pub fn has_call_faults(&self, host: HostIndex) -> bool {
        self.of(FaultTarget::Host)
            .any(|(_, fault)| fault.concerns("hosts", host) && happens_at(fault, "call"))
    }

    /// The same of packets that arrive.
    pub fn has_message_faults(&self, host: HostIndex) -> bool {
        self.of(FaultTarget::Host)
            .any(|(_, fault)| fault.concerns("hosts", host) && happens_at(fault, "message"))
    }

    /// Times at which something can become of a host, in order.
    pub fn times(&self, host: HostIndex) -> Vec<u64> {
        let concerned = self.of(FaultTarget::Host);
        let mut times: Vec<u64> = concerned
            .filter(|(_, fault)| fault.concerns("hosts", host) && happens_at(fault, "time"))
            .map(|(_, fault)| fault.number("at"))
            .collect();
        times.sort_unstable();
        times.dedup();
        times
    }
}

fn happens_at(fault: &Fault, moment: &str) -> bool {
    matches!(fault.value("on"), Some(Value::Word(word)) if *word == moment)
}

fn concerns(fault: &Fault, event: &HostEvent<'_>) -> bool {
    let fits = match event.moment {
        HostFaultPoint::Call(name) => {
            let called = match fault.value("calls") {
                Some(Value::Words(calls)) => calls.is_empty() || calls.iter().any(|c| c == name),
                _ => true,
            };
            happens_at(fault, "call") && called && fault.filter.times.contains(event.now_ns)
        }
        HostFaultPoint::Message(packet) => {
            happens_at(fault, "message") && fault.filter.fits(packet)
        }
        HostFaultPoint::Time => happens_at(fault, "time") && fault.number("at") == event.now_ns,
    };
    fits && fault.concerns("hosts", event.host)
}
