//! What can be set about a socket.

use std::collections::BTreeMap;

use triomphe::Arc;

use super::Kind;
use super::address::Domain;

/// What can be set about a socket and changes what it does; and the rest, which is only remembered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// `SO_REUSEADDR`.
    pub reuse_address: bool,
    /// `SO_REUSEPORT`.
    pub reuse_port: bool,
    /// `IPV6_V6ONLY`.
    pub only_v6: bool,
    /// `SO_BROADCAST`.
    pub broadcast: bool,
    /// `SO_PASSCRED`.
    pub pass_credentials: bool,
    /// `SO_LINGER`: seconds that `close` waits at most.
    pub linger_s: Option<u32>,
    /// `SO_RCVBUF`, as it is told.
    pub receive_buffer: u32,
    /// `SO_SNDBUF`, as it is told.
    pub send_buffer: u32,
    /// `SO_RCVTIMEO`.
    pub receive_timeout_ns: Option<u64>,
    /// `SO_SNDTIMEO`.
    pub send_timeout_ns: Option<u64>,
    /// Level, name and value of what changes nothing here.
    pub others: Option<Arc<BTreeMap<(u32, u32), i32>>>,
}

impl Options {
    /// As they are in the beginning.
    pub fn new(domain: Domain, kind: Kind) -> Options {
        let (receive_buffer, send_buffer) = match (domain, kind) {
            (Domain::Inet | Domain::Inet6, Kind::Stream) => (131_072, 16_384),
            _ => (212_992, 212_992),
        };
        Options {
            reuse_address: false,
            reuse_port: false,
            only_v6: false,
            broadcast: false,
            pass_credentials: false,
            linger_s: None,
            receive_buffer,
            send_buffer,
            receive_timeout_ns: None,
            send_timeout_ns: None,
            others: None,
        }
    }
}
