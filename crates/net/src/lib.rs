//! The simulated network between hosts: topology, routing, links, network and host faults.
//!
//! Plain data and pure functions. This crate knows nothing of processes, sockets or solvers.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod address;
mod automatic;
mod faults;
mod link;
mod packet;
mod picture;
mod routing;
mod start;
mod topology;

pub use address::{Prefix, PrefixError, is_loopback, is_multicast_or_broadcast, is_unspecified};
pub use faults::{
    Alternative, DeliveryOutcome, Fault, FaultCounters, FaultIndex, FaultTarget, Faults, Filter,
    HostEvent, HostFaultEffect, HostFaultPoint, HostSet, KINDS, Kind, Numbers, Parameter,
    ParameterKind, Ports, Scope, Sizes, SymbolicRange, Times, Value, kind,
};
pub use link::{Arrival, LinkState};
pub use packet::{Packet, Protocol};
pub use picture::{dot, svg};
pub use routing::Route;
pub use start::StartTime;
pub use topology::{
    Hop, Host, HostIndex, Interface, MAX_HOSTS, Network, NetworkIndex, Path, Port, PortIndex,
    Router, RouterIndex, StaticRoute, Topology, TopologyError, TopologyErrorKind, TopologyNode,
    Unreachable,
};
