//! Network and host faults: the kinds ([`KINDS`]), the faults of a scenario ([`Fault`]), and which
//! of them are possible for a packet or a host at some point ([`Faults`]).
//!
//! Whether a fault happens is not decided here. The possibilities are returned as alternatives, and
//! the explorer chooses.

mod counters;
mod filter;
mod kinds;

pub use counters::FaultCounters;
pub use filter::{Filter, HostSet, Numbers, Ports, Sizes, Times};
pub use kinds::{FaultTarget, KINDS, Kind, Parameter, ParameterKind, Value, kind};

use serde::{Deserialize, Serialize};

use crate::packet::Packet;
use crate::topology::HostIndex;

/// Index of a fault in the list of a world.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct FaultIndex(pub u16);

impl FaultIndex {
    /// Returns the number as an index into the list.
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// The scope over which a fault is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Scope {
    /// The whole world, on all hosts. A host knows only its causal past, so it may use a fault once
    /// too often: such a combination of states is not a world of the scenario
    /// ([`Faults::world_bounds`]).
    #[default]
    World,
    /// The causal past, on all hosts.
    Causal,
    /// This host only.
    Host,
}

/// A fault of a scenario.
#[derive(Clone, PartialEq, Debug)]
pub struct Fault {
    /// The name of the fault.
    pub name: String,
    /// The kind of the fault.
    pub kind: &'static Kind,
    /// The values of the kind's parameters, in order.
    pub values: Vec<Value>,
    /// The packets, or points of a host, at which the fault is possible.
    pub filter: Filter,
    /// The maximum number of occurrences.
    pub max_count: u32,
    /// The scope of `max_count`.
    pub scope: Scope,
    /// Whether the fault happens whenever possible, instead of being an alternative.
    pub always: bool,
}

impl Fault {
    /// Creates a fault of this kind that is possible everywhere, once.
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
            max_count: 1,
            scope: Scope::default(),
            always: kind.always,
        }
    }

    /// Returns the value of a parameter.
    pub fn value(&self, name: &str) -> Option<&Value> {
        let mut names = self.kind.parameters.iter();
        let at = names.position(|parameter| parameter.name == name)?;
        self.values.get(at)
    }

    /// Sets a parameter. Returns `false` if the kind has no such parameter.
    pub fn set(&mut self, name: &str, value: Value) -> bool {
        let mut names = self.kind.parameters.iter();
        let at = names.position(|parameter| parameter.name == name);
        let slot = at.and_then(|at| self.values.get_mut(at));
        slot.map(|slot| *slot = value).is_some()
    }

    /// Returns whether the fault is a choice at each packet or point of a host. Other faults happen
    /// wherever they can, or are decided once for a world.
    pub fn is_choice(&self) -> bool {
        !self.always && !self.kind.per_world && self.kind.target != FaultTarget::Bytes
    }

    /// Returns whether the fault can happen on a host.
    fn can_hit(&self, host: HostIndex) -> bool {
        match self.kind.target {
            FaultTarget::Host => self.concerns("hosts", host),
            FaultTarget::Packet | FaultTarget::Bytes => self.filter.to.contains(host),
        }
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

    /// Returns whether the parameter `name` is a set of hosts that contains a host.
    pub(crate) fn concerns(&self, name: &str, host: HostIndex) -> bool {
        matches!(self.value(name), Some(Value::Hosts(hosts)) if hosts.contains(host))
    }
}

/// The outcome of a delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeliveryOutcome {
    /// The packet arrives unchanged.
    Deliver,
    /// The packet is lost.
    Drop,
    /// The packet arrives twice.
    Duplicate {
        /// Delay of the second arrival.
        after_ns: u64,
    },
    /// The packet is delayed.
    Delay {
        /// Additional latency.
        by_ns: u64,
    },
    /// These bytes become arbitrary.
    Corrupt {
        /// Offset of the first byte.
        offset: u32,
        /// Number of bytes, all of them inside the packet.
        length: u32,
    },
    /// The packet is reordered: it arrives after this many of the next packets to the same host.
    HoldBack {
        /// Number of packets.
        packets: u32,
    },
}

/// The effect of a host fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostFaultEffect {
    /// No effect: the host continues.
    Continue,
    /// The host crashes and stays down.
    Crash,
    /// The host restarts later with the disk that it had.
    Restart {
        /// Downtime.
        after_ns: u64,
        /// Whether data that was not synchronised to disk may be lost.
        loses_unsynced: bool,
    },
    /// The host does nothing for a while.
    Pause {
        /// Duration.
        for_ns: u64,
    },
}

/// A range of bytes of a packet that become symbolic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SymbolicRange {
    /// The fault that makes them symbolic.
    pub fault: FaultIndex,
    /// Offset of the first byte.
    pub offset: u32,
    /// Number of bytes, all of them inside the packet.
    pub length: u32,
    /// Whether only printable values are allowed.
    pub printable: bool,
}

/// An alternative: what may happen, and the fault that causes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alternative<F> {
    /// The cause; `None` for the normal case.
    pub fault: Option<FaultIndex>,
    /// What happens.
    pub effect: F,
}

/// A point at which a host fault may happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostFaultPoint<'a> {
    /// Before the system call of this name.
    Call(&'a str),
    /// Before this packet is received.
    Message(&'a Packet),
    /// At a time, one of [`Faults::times`].
    Time,
}

/// A point in the execution of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostEvent<'a> {
    /// The host.
    pub host: HostIndex,
    /// The point.
    pub point: HostFaultPoint<'a>,
    /// The virtual time.
    pub now_ns: u64,
}

/// All faults of a world.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Faults {
    list: Vec<Fault>,
}

impl Faults {
    /// Creates the list; at most 65,535 faults.
    pub fn new(mut list: Vec<Fault>) -> Faults {
        list.truncate(u16::MAX.into());
        Faults { list }
    }

    /// Returns all faults.
    pub fn list(&self) -> &[Fault] {
        &self.list
    }

    /// Returns a fault by its index.
    pub fn get(&self, fault: FaultIndex) -> &Fault {
        &self.list[fault.index()]
    }

    /// Returns whether there are no faults.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    fn of(&self, target: FaultTarget) -> impl Iterator<Item = (FaultIndex, &Fault)> {
        let numbered = self.list.iter().enumerate();
        let numbered = numbered.map(|(at, fault)| (FaultIndex(at as u16), fault));
        numbered.filter(move |(_, fault)| fault.kind.target == target)
    }

    /// Returns the possible outcomes of a delivery. The first alternative is the default; if it is
    /// the only one, there is nothing to choose. `at` is the host that asks, whose counters are
    /// given.
    ///
    /// Call [`Faults::record_packet`] with the alternative that was chosen.
    pub fn delivery_outcomes(
        &self,
        packet: &Packet,
        at: HostIndex,
        counters: &FaultCounters,
    ) -> Vec<Alternative<DeliveryOutcome>> {
        let mut all = vec![Alternative {
            fault: None,
            effect: DeliveryOutcome::Deliver,
        }];
        for (index, fault) in self.of(FaultTarget::Packet) {
            if !self.is_possible(index, fault, packet, at, counters) {
                continue;
            }
            if fault.kind.permutes {
                let behind = 1..=self.window(index, fault, at, counters).1;
                let held = behind.map(|packets| DeliveryOutcome::HoldBack { packets });
                let alternatives = held.map(|effect| Alternative {
                    fault: Some(index),
                    effect,
                });
                all.extend(alternatives);
                continue;
            }
            let Some(effect) = (fault.kind.packet)(fault, packet) else {
                continue;
            };
            let alternative = Alternative {
                fault: Some(index),
                effect,
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
            self.add_alternative(&mut all, alternative);
        }
        all
    }

    /// Adds an alternative. Of faults with an equal effect, one without a bound is enough, because
    /// counting it uses up nothing. Faults with a bound are all alternatives, because each of them
    /// leaves other faults for later.
    fn add_alternative<E: PartialEq>(
        &self,
        all: &mut Vec<Alternative<E>>,
        alternative: Alternative<E>,
    ) {
        let is_unbounded = |one: &Alternative<E>| {
            let fault = one.fault.map(|fault| self.get(fault));
            fault.is_none_or(|fault| fault.max_count == u32::MAX)
        };
        let is_equal = |one: &Alternative<E>| one.effect == alternative.effect;
        if all.iter().any(|one| is_equal(one) && is_unbounded(one)) {
            return;
        }
        if is_unbounded(&alternative) {
            all.retain(|one| !is_equal(one));
        }
        all.push(alternative);
    }

    /// Returns the ranges of a packet that become symbolic. This is not a choice: the bytes that
    /// were sent are among the values.
    pub fn symbolic_ranges(
        &self,
        packet: &Packet,
        at: HostIndex,
        counters: &FaultCounters,
    ) -> Vec<SymbolicRange> {
        let mut marks = Vec::new();
        for (index, fault) in self.of(FaultTarget::Bytes) {
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

    /// Returns whether a fault can happen to a packet on a host with these counters.
    fn is_possible(
        &self,
        index: FaultIndex,
        fault: &Fault,
        packet: &Packet,
        at: HostIndex,
        counters: &FaultCounters,
    ) -> bool {
        let number = counters.seen(index, at) + 1;
        if fault.kind.permutes {
            let is_left = self.window(index, fault, at, counters).0 < fault.max_count;
            return is_left && fault.filter.fits(packet) && fault.filter.numbers.contains(number);
        }
        // A per-world fault is decided once, however many packets it applies to.
        let used = match fault.kind.per_world {
            true => 0,
            false => counters.used(index, fault.scope, at),
        };
        let is_left = used < fault.max_count;
        is_left && fault.filter.fits(packet) && fault.filter.numbers.contains(number)
    }

    /// Returns, for the next packet that a permutation applies to, the number of its window on this
    /// host, and how many packets of the window follow it. Holding each packet back behind any
    /// number of the following ones gives every order exactly once.
    fn window(
        &self,
        index: FaultIndex,
        fault: &Fault,
        at: HostIndex,
        counters: &FaultCounters,
    ) -> (u32, u32) {
        let size = u32::try_from(fault.number("window"))
            .unwrap_or(u32::MAX)
            .max(1);
        let skipped = fault.filter.numbers.0.start().saturating_sub(1);
        let position = counters.seen(index, at).saturating_sub(skipped);
        (position / size, size - 1 - position % size)
    }

    /// Counts a packet with the alternative that was chosen and the ranges that became symbolic.
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

    /// Returns the per-world faults: whether they happen is decided once, when a world starts.
    /// [`FaultCounters::decide`] records the decision on each host.
    pub fn world_faults(&self) -> Vec<FaultIndex> {
        let packets = self.of(FaultTarget::Packet);
        let undecided = packets
            .filter(|(_, fault)| fault.kind.per_world && !fault.always && fault.max_count > 0);
        undecided.map(|(index, _)| index).collect()
    }

    /// Returns the bounds that hosts cannot keep by themselves: how often a fault may happen in a
    /// world of this number of hosts, if it can happen on several of them. A combination of states
    /// is a world of the scenario only if its hosts together keep the bounds.
    pub fn world_bounds(&self, hosts: usize) -> Vec<(FaultIndex, u32)> {
        let all = self.list.iter().zip((0..).map(FaultIndex));
        let bounded = all.filter(|(fault, _)| {
            let is_bounded =
                fault.scope == Scope::World && fault.max_count < u32::MAX && !fault.kind.permutes;
            let can_hit = (0..hosts as u32).filter(|host| fault.can_hit(HostIndex(*host)));
            is_bounded && fault.is_choice() && can_hit.take(2).count() > 1
        });
        bounded
            .map(|(fault, index)| (index, fault.max_count))
            .collect()
    }

    /// Merges the sender's counters into the receiver's when a message arrives. Not earlier,
    /// because what a host knows must not depend on the order in which hosts run.
    pub fn learn(&self, receiver: &mut FaultCounters, sender: &FaultCounters) {
        // Occurrences on other hosts matter only if the fault is not counted on each host
        // separately.
        receiver.learn(sender, |fault| self.get(fault).scope != Scope::Host);
    }

    /// Returns the possible effects at a point of a host. The first alternative is the default.
    ///
    /// Call [`Faults::record_host_fault`] with the alternative that was chosen.
    pub fn host_fault_effects(
        &self,
        event: &HostEvent<'_>,
        counters: &FaultCounters,
    ) -> Vec<Alternative<HostFaultEffect>> {
        let mut all = vec![Alternative {
            fault: None,
            effect: HostFaultEffect::Continue,
        }];
        for (index, fault) in self.of(FaultTarget::Host) {
            let number = counters.seen(index, event.host) + 1;
            if !concerns(fault, event)
                || !fault.filter.numbers.contains(number)
                || counters.used(index, fault.scope, event.host) >= fault.max_count
            {
                continue;
            }
            let alternative = Alternative {
                fault: Some(index),
                effect: (fault.kind.host)(fault),
            };
            if fault.always {
                return vec![alternative];
            }
            self.add_alternative(&mut all, alternative);
        }
        all
    }

    /// Counts a point of a host with the alternative that was chosen.
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

    /// Returns whether a host fault may happen at some system call of a host. If not, there is
    /// nothing to ask at calls.
    pub fn has_call_faults(&self, host: HostIndex) -> bool {
        self.of(FaultTarget::Host)
            .any(|(_, fault)| fault.concerns("hosts", host) && happens_at(fault, "call"))
    }

    /// Returns whether a host fault may happen at some message to a host.
    pub fn has_message_faults(&self, host: HostIndex) -> bool {
        self.of(FaultTarget::Host)
            .any(|(_, fault)| fault.concerns("hosts", host) && happens_at(fault, "message"))
    }

    /// Returns the times at which a host fault may happen on a host, in order.
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

/// Returns whether a host fault happens at this kind of point.
fn happens_at(fault: &Fault, point: &str) -> bool {
    matches!(fault.value("on"), Some(Value::Word(word)) if *word == point)
}

/// Returns whether a host fault can happen at this event, apart from its counters.
fn concerns(fault: &Fault, event: &HostEvent<'_>) -> bool {
    let fits = match event.point {
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
