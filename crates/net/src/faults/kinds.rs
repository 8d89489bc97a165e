//! The table of fault kinds. A row has a name, parameters with their defaults, and an
//! implementation. The scenario reader, filters and reports derive from it, so a new fault is one
//! row and one function.

use super::{DeliveryOutcome, Fault, HostFaultEffect, HostSet};
use crate::packet::{Packet, Protocol};

/// The type of a parameter, with its default.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParameterKind {
    /// A number.
    Count(u64),
    /// A duration in nanoseconds.
    Duration(u64),
    /// An optional duration; unlimited by default.
    Forever,
    /// A boolean.
    Flag(bool),
    /// A set of hosts; all by default.
    Hosts,
    /// A set of hosts that must be given.
    NamedHosts,
    /// One of these words; the first is the default.
    Word(&'static [&'static str]),
    /// A list of words; empty means any.
    Words,
}

/// The value of a parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// A number.
    Count(u64),
    /// A duration in nanoseconds.
    Duration(u64),
    /// A boolean.
    Flag(bool),
    /// A set of hosts.
    Hosts(HostSet),
    /// One of the words of the row.
    Word(&'static str),
    /// A list of words.
    Words(Vec<String>),
}

/// A parameter of a fault kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// The key in a scenario.
    pub name: &'static str,
    /// The type of the parameter, with its default.
    pub kind: ParameterKind,
    /// Help text for users.
    pub help: &'static str,
}

impl Parameter {
    /// Returns the default value.
    pub fn default(&self) -> Value {
        match self.kind {
            ParameterKind::Count(number) => Value::Count(number),
            ParameterKind::Duration(ns) => Value::Duration(ns),
            ParameterKind::Forever => Value::Duration(u64::MAX),
            ParameterKind::Flag(flag) => Value::Flag(flag),
            ParameterKind::Hosts | ParameterKind::NamedHosts => Value::Hosts(HostSet::ALL),
            ParameterKind::Word(words) => Value::Word(words.first().copied().unwrap_or_default()),
            ParameterKind::Words => Value::Words(Vec::new()),
        }
    }
}

/// What a fault applies to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultTarget {
    /// The delivery of a packet.
    Packet,
    /// The bytes of a packet.
    Bytes,
    /// A host.
    Host,
}

/// A kind of fault.
#[derive(Debug)]
pub struct Kind {
    /// The name in scenario files.
    pub name: &'static str,
    /// Help text for users.
    pub help: &'static str,
    /// What the fault applies to.
    pub target: FaultTarget,
    /// The parameters of the fault.
    pub parameters: &'static [Parameter],
    /// The default protocols of the fault's filter. TCP hides most packet faults, so it is often
    /// excluded.
    pub protocols: &'static [Protocol],
    /// The default for [`Fault::always`].
    pub always: bool,
    /// Whether the fault is decided once per world, for all hosts alike.
    pub per_world: bool,
    /// Whether the fault puts a window of packets into all orders, which is a choice at each
    /// packet.
    pub permutes: bool,
    /// The outcome for a packet; `None` if the fault does not apply.
    pub(super) packet: fn(&Fault, &Packet) -> Option<DeliveryOutcome>,
    /// The effect on a host.
    pub(super) host: fn(&Fault) -> HostFaultEffect,
}

impl PartialEq for Kind {
    fn eq(&self, other: &Kind) -> bool {
        self.name == other.name
    }
}

impl Eq for Kind {}

/// Finds a kind by name.
pub fn kind(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

const UDP: &[Protocol] = &[Protocol::Udp];

const PACKET: Kind = Kind {
    name: "",
    help: "",
    target: FaultTarget::Packet,
    parameters: &[],
    protocols: &[],
    always: false,
    per_world: false,
    permutes: false,
    packet: |_, _| None,
    host: |_| HostFaultEffect::Continue,
};

const HOST: Kind = Kind {
    target: FaultTarget::Host,
    ..PACKET
};

const fn parameter(name: &'static str, kind: ParameterKind, help: &'static str) -> Parameter {
    Parameter { name, kind, help }
}

const OFFSET: Parameter = parameter("offset", ParameterKind::Count(0), "first byte");
const LENGTH: Parameter = parameter("length", ParameterKind::Count(1), "how many bytes");
const HOSTS: Parameter = parameter("hosts", ParameterKind::Hosts, "which hosts");
const ON: Parameter = parameter(
    "on",
    ParameterKind::Word(&["message", "call", "time"]),
    "at which points: when a message arrives, before a system call, at a time",
);
const CALLS: Parameter = parameter(
    "calls",
    ParameterKind::Words,
    "before which system calls, with on = \"call\"",
);
const AT: Parameter = parameter("at", ParameterKind::Duration(0), "when, with on = \"time\"");

/// All kinds.
pub const KINDS: &[Kind] = &[
    Kind {
        name: "loss",
        help: "a packet is lost",
        protocols: UDP,
        packet: |_, _| Some(DeliveryOutcome::Drop),
        ..PACKET
    },
    Kind {
        name: "duplication",
        help: "a packet arrives twice",
        parameters: &[parameter(
            "after",
            ParameterKind::Duration(1_000),
            "how much later the second time",
        )],
        protocols: UDP,
        packet: |fault, _| {
            let after_ns = fault.number("after");
            Some(DeliveryOutcome::Duplicate { after_ns })
        },
        ..PACKET
    },
    Kind {
        name: "reordering",
        help: "a packet arrives after later ones",
        parameters: &[parameter(
            "window",
            ParameterKind::Count(1),
            "after how many of the next packets to the same host",
        )],
        protocols: UDP,
        packet: |fault, _| {
            let packets = fault.number("window").min(u32::MAX.into()) as u32;
            (packets > 0).then_some(DeliveryOutcome::HoldBack { packets })
        },
        ..PACKET
    },
    Kind {
        name: "permutation",
        help: "packets that follow each other arrive in any order",
        parameters: &[parameter(
            "window",
            ParameterKind::Count(2),
            "how many packets",
        )],
        protocols: UDP,
        permutes: true,
        ..PACKET
    },
    Kind {
        name: "corruption",
        help: "bytes of a packet become any others",
        parameters: &[OFFSET, LENGTH],
        protocols: UDP,
        packet: |fault, packet| {
            let (offset, length) = bytes(fault, packet);
            (length > 0).then_some(DeliveryOutcome::Corrupt { offset, length })
        },
        ..PACKET
    },
    Kind {
        name: "delay",
        help: "a packet takes longer",
        parameters: &[parameter(
            "by",
            ParameterKind::Duration(10_000_000),
            "how much longer",
        )],
        packet: |fault, _| {
            let by_ns = fault.number("by");
            (by_ns > 0).then_some(DeliveryOutcome::Delay { by_ns })
        },
        ..PACKET
    },
    Kind {
        name: "late",
        help: "a packet arrives just as its receiver times out: the timeout fires, or does not",
        packet: |_, packet| {
            let by_ns = packet.misses_by_ns?;
            Some(DeliveryOutcome::Delay { by_ns })
        },
        ..PACKET
    },
    Kind {
        name: "partition",
        help: "nothing gets from one group of hosts to the other, in either direction",
        parameters: &[
            parameter("between", ParameterKind::NamedHosts, "one group of hosts"),
            parameter(
                "and",
                ParameterKind::Hosts,
                "the other; all others where it is not given",
            ),
            parameter("at", ParameterKind::Duration(0), "when it begins"),
            parameter("heal", ParameterKind::Forever, "how long it lasts"),
        ],
        per_world: true,
        packet: partition,
        ..PACKET
    },
    Kind {
        name: "automark",
        help: "bytes of a packet become symbolic",
        target: FaultTarget::Bytes,
        parameters: &[
            OFFSET,
            LENGTH,
            parameter(
                "printable",
                ParameterKind::Flag(false),
                "only values that can be printed",
            ),
        ],
        always: true,
        ..PACKET
    },
    Kind {
        name: "crash",
        help: "a host is gone for good",
        parameters: &[HOSTS, ON, CALLS, AT],
        host: |_| HostFaultEffect::Crash,
        ..HOST
    },
    Kind {
        name: "restart",
        help: "a host loses its memory and starts again with the disk that it had",
        parameters: &[
            HOSTS,
            ON,
            CALLS,
            AT,
            parameter(
                "after",
                ParameterKind::Duration(1_000_000),
                "how much later it starts again",
            ),
            parameter(
                "unsynced",
                ParameterKind::Flag(true),
                "what was written and not synchronised can be lost",
            ),
        ],
        host: |fault| HostFaultEffect::Restart {
            after_ns: fault.number("after"),
            loses_unsynced: fault.flag("unsynced"),
        },
        ..HOST
    },
    Kind {
        name: "pause",
        help: "a host does nothing for some time",
        parameters: &[
            HOSTS,
            ON,
            CALLS,
            AT,
            parameter("for", ParameterKind::Duration(100_000_000), "for how long"),
        ],
        host: |fault| HostFaultEffect::Pause {
            for_ns: fault.number("for"),
        },
        ..HOST
    },
];

/// Returns the bytes of a packet that a fault applies to: offset and length, clipped to the packet.
pub(super) fn bytes(fault: &Fault, packet: &Packet) -> (u32, u32) {
    let size = u64::from(packet.size);
    let offset = fault.number("offset").min(size);
    let length = fault.number("length").min(size - offset);
    (offset as u32, length as u32)
}

/// Returns the outcome of a partition for a packet: dropped, if it is between the two groups at
/// that time.
fn partition(fault: &Fault, packet: &Packet) -> Option<DeliveryOutcome> {
    let begin = fault.number("at");
    let end = begin.saturating_add(fault.number("heal"));
    let others_are_all =
        matches!(fault.value("and"), Some(Value::Hosts(all)) if *all == HostSet::ALL);
    let on_one_side = |host| fault.concerns("between", host);
    let on_other_side = |host| match others_are_all {
        true => !on_one_side(host),
        false => fault.concerns("and", host),
    };
    let is_cut = (on_one_side(packet.from) && on_other_side(packet.to))
        || (on_one_side(packet.to) && on_other_side(packet.from));
    let is_now = begin <= packet.sent_ns && packet.sent_ns < end;
    (is_cut && is_now).then_some(DeliveryOutcome::Drop)
}
