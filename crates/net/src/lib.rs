//! The network between hosts: topology, routing, links, and what can go wrong on the way of a packet. Plain data and
//! pure functions; knows nothing of processes, sockets or solvers.

mod address;
mod automatic;
mod faults;
mod link;
mod packet;
mod picture;
mod routing;
mod topology;

pub use address::{Prefix, PrefixError, is_loopback, is_many, is_unspecified};
pub use faults::{
    Alternative, Fate, Fault, FaultCounters, FaultIndex, Faults, Filter, HostEvent, HostFate,
    HostMoment, HostSet, KINDS, Kind, Mark, Numbers, Parameter, ParameterKind, Place, Ports, Scope,
    Sizes, Times, Value, kind,
};
pub use link::{Arrival, LinkState};
pub use packet::{Packet, Protocol};
pub use picture::{dot, svg};
pub use routing::{Hop, Path, Route, Unreachable};
pub use topology::{
    Host, HostIndex, Interface, MOST_HOSTS, Network, NetworkIndex, Node, Port, PortIndex, Router,
    RouterIndex, StaticRoute, Topology, TopologyError, Trouble,
};
