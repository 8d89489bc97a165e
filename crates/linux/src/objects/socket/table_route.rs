//! A route of the routing table, as netlink shows and changes it.

use std::net::IpAddr;

use crate::config::RouteSpec;

/// Numbers of routing tables.
pub const MAIN: u32 = 254;
pub const LOCAL: u32 = 255;

/// `rtm_type`.
pub mod route_type {
    pub const UNICAST: u8 = 1;
    pub const LOCAL: u8 = 2;
    pub const BROADCAST: u8 = 3;
    pub const BLACKHOLE: u8 = 6;
    pub const UNREACHABLE: u8 = 7;
    pub const PROHIBIT: u8 = 8;
}

/// A route of the table.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct TableRoute {
    pub network: IpAddr,
    pub prefix_len: u8,
    pub table: u32,
    /// The origin of the route (`RTPROT_`).
    pub protocol: u8,
    pub scope: u8,
    /// What it does with packets ([`route_type`]).
    pub kind: u8,
    pub tos: u8,
    pub priority: u32,
    pub gateway: Option<IpAddr>,
    /// Index of its interface; 0 for none.
    pub interface: u32,
    /// Source address of sockets that are not bound to one.
    pub source: Option<IpAddr>,
}

impl TableRoute {
    pub fn leads_to(&self, to: IpAddr) -> bool {
        let network = RouteSpec {
            network: self.network,
            prefix_len: self.prefix_len,
            source: self.network,
            gateway: None,
        };
        network.leads_to(to)
    }

    /// Whether both have the same key in the routing table.
    pub fn has_place_of(&self, other: &TableRoute) -> bool {
        let place = |one: &TableRoute| {
            let network = (one.network, one.prefix_len);
            (network, one.table, one.tos, one.priority)
        };
        place(self) == place(other)
    }

    /// Whether a request to delete matches it; omitted attributes match every route.
    pub fn is_meant_by(&self, request: &TableRoute) -> bool {
        const ANYWHERE: u8 = 255;
        let network = (self.network, self.prefix_len, self.table);
        network == (request.network, request.prefix_len, request.table)
            && (request.tos == 0 || request.tos == self.tos)
            && (request.kind == 0 || request.kind == self.kind)
            && (request.scope == ANYWHERE || request.scope == self.scope)
            && (request.protocol == 0 || request.protocol == self.protocol)
            && (request.priority == 0 || request.priority == self.priority)
            && (request.gateway.is_none() || request.gateway == self.gateway)
            && (request.interface == 0 || request.interface == self.interface)
    }
}

/// How a request to add a route handles an existing route with the same key.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct IfPresent {
    pub replaces: bool,
    pub fails: bool,
    pub creates: bool,
    pub appends: bool,
}
