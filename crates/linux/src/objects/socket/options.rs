//! Socket options: their values, defaults and accepted ranges.

use std::collections::BTreeMap;
use std::net::IpAddr;

use triomphe::Arc;

use super::SocketType;
use super::address::Domain;
use crate::capabilities::{NET_ADMIN, NET_RAW};
use crate::errno::Errno;

/// Levels of socket options.
pub mod level {
    pub const SOCKET: u32 = 1;
    pub const IP: u32 = 0;
    pub const TCP: u32 = 6;
    pub const UDP: u32 = 17;
    pub const IPV6: u32 = 41;
    pub const RAW: u32 = 255;
    pub const PACKET: u32 = 263;
    pub const NETLINK: u32 = 270;
}

/// Socket options: those with an effect, and the rest, which is only stored.
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
    /// `SO_RCVBUF`, as `getsockopt` reports it.
    pub receive_buffer: u32,
    /// `SO_SNDBUF`, as `getsockopt` reports it.
    pub send_buffer: u32,
    /// `SO_RCVLOWAT`.
    pub receive_low_water: u32,
    /// `SO_RCVTIMEO`.
    pub receive_timeout_ns: Option<u64>,
    /// `SO_SNDTIMEO`.
    pub send_timeout_ns: Option<u64>,
    /// `SO_BINDTODEVICE`: index of an interface, or 0.
    pub device: u32,
    /// `IP_HDRINCL`.
    pub header_included: bool,
    /// `ICMP_FILTER`: types of ICMP messages that a raw socket does not see, as bits.
    pub icmp_filter: u32,
    /// `IP_MULTICAST_IF`, `IPV6_MULTICAST_IF`: interface and source address for messages to
    /// multicast groups.
    pub group_interface: (u32, Option<IpAddr>),
    /// Multicast groups that it has joined, with interface indices.
    pub groups: Vec<(IpAddr, u32)>,
    /// `SO_PEEK_OFF`: where the next receive with `MSG_PEEK` begins.
    pub peek_offset: Option<u64>,
    /// Values of options without effect, by level and name.
    others: Option<Arc<BTreeMap<(u32, u32), i32>>>,
}

/// Values that an option without effect accepts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum AcceptedValues {
    /// A boolean.
    Flag,
    /// A number in this range.
    Number(i32, i32),
    /// A number of which the lowest byte counts.
    Byte,
    /// A number in this range, or -1 for the default.
    NumberOrDefault(i32, i32),
    /// Anything; it cannot be read back.
    Command,
    /// Flags of `SO_TIMESTAMPING`, but for those about messages that are sent.
    ArrivalTimes,
    /// Only the default: the rest is not modelled, as on kernels without the feature.
    Default,
}

/// Options without effect: level, name, default, accepted values.
#[rustfmt::skip]
const STORED: &[(u32, u32, i32, AcceptedValues)] = &[
    (level::SOCKET, 1, 0, AcceptedValues::Flag), // SO_DEBUG
    (level::SOCKET, 5, 0, AcceptedValues::Flag), // SO_DONTROUTE
    (level::SOCKET, 9, 0, AcceptedValues::Flag), // SO_KEEPALIVE
    (level::SOCKET, 10, 0, AcceptedValues::Flag), // SO_OOBINLINE
    (level::SOCKET, 11, 0, AcceptedValues::Flag), // SO_NO_CHECK
    (level::SOCKET, 12, 0, AcceptedValues::Number(i32::MIN, i32::MAX)), // SO_PRIORITY
    (level::SOCKET, 14, 0, AcceptedValues::Flag), // SO_BSDCOMPAT
    (level::SOCKET, 29, 0, AcceptedValues::Flag), // SO_TIMESTAMP
    (level::SOCKET, 34, 0, AcceptedValues::Flag), // SO_PASSSEC
    (level::SOCKET, 35, 0, AcceptedValues::Flag), // SO_TIMESTAMPNS
    (level::SOCKET, 36, 0, AcceptedValues::Number(i32::MIN, i32::MAX)), // SO_MARK
    (level::SOCKET, 37, 0, AcceptedValues::ArrivalTimes), // SO_TIMESTAMPING
    (level::SOCKET, 40, 0, AcceptedValues::Flag), // SO_RXQ_OVFL
    (level::SOCKET, 41, 0, AcceptedValues::Flag), // SO_WIFI_STATUS
    (level::SOCKET, 43, 0, AcceptedValues::Flag), // SO_NOFCS
    (level::SOCKET, 44, 0, AcceptedValues::Flag), // SO_LOCK_FILTER
    (level::SOCKET, 45, 0, AcceptedValues::Flag), // SO_SELECT_ERR_QUEUE
    (level::SOCKET, 46, 0, AcceptedValues::Number(0, i32::MAX)), // SO_BUSY_POLL
    (level::SOCKET, 49, 0, AcceptedValues::Number(i32::MIN, i32::MAX)), // SO_INCOMING_CPU
    (level::SOCKET, 60, 0, AcceptedValues::Default), // SO_ZEROCOPY
    (level::SOCKET, 69, 0, AcceptedValues::Flag), // SO_PREFER_BUSY_POLL
    (level::SOCKET, 72, 0, AcceptedValues::Number(0, 3)), // SO_BUF_LOCK
    (level::SOCKET, 74, 1, AcceptedValues::Number(-1, 1)), // SO_TXREHASH
    (level::SOCKET, 75, 0, AcceptedValues::Default), // SO_RCVMARK
    (level::IP, 1, 0, AcceptedValues::Byte), // IP_TOS
    (level::IP, 2, 64, AcceptedValues::NumberOrDefault(1, 255)), // IP_TTL
    (level::IP, 6, 0, AcceptedValues::Flag), // IP_RECVOPTS
    (level::IP, 7, 0, AcceptedValues::Default), // IP_RETOPTS
    (level::IP, 8, 0, AcceptedValues::Flag), // IP_PKTINFO
    (level::IP, 10, 1, AcceptedValues::Number(0, 5)), // IP_MTU_DISCOVER
    (level::IP, 11, 0, AcceptedValues::Flag), // IP_RECVERR
    (level::IP, 12, 0, AcceptedValues::Flag), // IP_RECVTTL
    (level::IP, 13, 0, AcceptedValues::Flag), // IP_RECVTOS
    (level::IP, 15, 0, AcceptedValues::Flag), // IP_FREEBIND
    (level::IP, 18, 0, AcceptedValues::Default), // IP_PASSSEC
    (level::IP, 19, 0, AcceptedValues::Flag), // IP_TRANSPARENT
    (level::IP, 20, 0, AcceptedValues::Default), // IP_ORIGDSTADDR
    (level::IP, 21, 0, AcceptedValues::Number(0, 255)), // IP_MINTTL
    (level::IP, 22, 0, AcceptedValues::Default), // IP_NODEFRAG
    (level::IP, 23, 0, AcceptedValues::Default), // IP_CHECKSUM
    (level::IP, 24, 0, AcceptedValues::Flag), // IP_BIND_ADDRESS_NO_PORT
    (level::IP, 33, 1, AcceptedValues::NumberOrDefault(0, 255)), // IP_MULTICAST_TTL
    (level::IP, 34, 1, AcceptedValues::Flag), // IP_MULTICAST_LOOP
    (level::IP, 49, 1, AcceptedValues::Flag), // IP_MULTICAST_ALL
    (level::IPV6, 16, 64, AcceptedValues::NumberOrDefault(0, 255)), // IPV6_UNICAST_HOPS
    (level::IPV6, 18, 1, AcceptedValues::NumberOrDefault(0, 255)), // IPV6_MULTICAST_HOPS
    (level::IPV6, 19, 1, AcceptedValues::Number(0, 1)), // IPV6_MULTICAST_LOOP
    (level::IPV6, 23, 1, AcceptedValues::Number(0, 5)), // IPV6_MTU_DISCOVER
    (level::IPV6, 25, 0, AcceptedValues::Flag), // IPV6_RECVERR
    (level::IPV6, 29, 1, AcceptedValues::Flag), // IPV6_MULTICAST_ALL
    (level::IPV6, 33, 0, AcceptedValues::Default), // IPV6_FLOWINFO_SEND
    (level::IPV6, 49, 0, AcceptedValues::Flag), // IPV6_RECVPKTINFO
    (level::IPV6, 51, 0, AcceptedValues::Flag), // IPV6_RECVHOPLIMIT
    (level::IPV6, 60, 0, AcceptedValues::Flag), // IPV6_RECVPATHMTU
    (level::IPV6, 62, 0, AcceptedValues::Flag), // IPV6_DONTFRAG
    (level::IPV6, 66, 0, AcceptedValues::Flag), // IPV6_RECVTCLASS
    (level::IPV6, 67, 0, AcceptedValues::NumberOrDefault(0, 255)), // IPV6_TCLASS
    (level::IPV6, 70, 1, AcceptedValues::Flag), // IPV6_AUTOFLOWLABEL
    (level::IPV6, 73, 0, AcceptedValues::Number(0, 255)), // IPV6_MINHOPCOUNT
    (level::IPV6, 74, 0, AcceptedValues::Default), // IPV6_ORIGDSTADDR
    (level::IPV6, 75, 0, AcceptedValues::Flag), // IPV6_TRANSPARENT
    (level::IPV6, 78, 0, AcceptedValues::Flag), // IPV6_FREEBIND
    (level::TCP, 1, 0, AcceptedValues::Flag), // TCP_NODELAY
    (level::TCP, 2, 536, AcceptedValues::Number(0, 32767)), // TCP_MAXSEG
    (level::TCP, 3, 0, AcceptedValues::Flag), // TCP_CORK
    (level::TCP, 4, 7200, AcceptedValues::Number(1, 32767)), // TCP_KEEPIDLE
    (level::TCP, 5, 75, AcceptedValues::Number(1, 32767)), // TCP_KEEPINTVL
    (level::TCP, 6, 9, AcceptedValues::Number(1, 127)), // TCP_KEEPCNT
    (level::TCP, 7, 6, AcceptedValues::Number(1, 127)), // TCP_SYNCNT
    (level::TCP, 8, 60, AcceptedValues::Number(i32::MIN, i32::MAX)), // TCP_LINGER2
    (level::TCP, 9, 0, AcceptedValues::Number(i32::MIN, i32::MAX)), // TCP_DEFER_ACCEPT
    (level::TCP, 10, 0, AcceptedValues::Number(0, i32::MAX)), // TCP_WINDOW_CLAMP
    (level::TCP, 12, 1, AcceptedValues::Flag), // TCP_QUICKACK
    (level::TCP, 16, 0, AcceptedValues::Flag), // TCP_THIN_LINEAR_TIMEOUTS
    (level::TCP, 17, 0, AcceptedValues::Flag), // TCP_THIN_DUPACK
    (level::TCP, 18, 0, AcceptedValues::Number(0, i32::MAX)), // TCP_USER_TIMEOUT
    (level::TCP, 19, 0, AcceptedValues::Default), // TCP_REPAIR
    (level::TCP, 23, 0, AcceptedValues::Number(0, i32::MAX)), // TCP_FASTOPEN
    (level::TCP, 25, 0, AcceptedValues::Number(i32::MIN, i32::MAX)), // TCP_NOTSENT_LOWAT
    (level::TCP, 27, 0, AcceptedValues::Default), // TCP_SAVE_SYN
    (level::TCP, 30, 0, AcceptedValues::Flag), // TCP_FASTOPEN_CONNECT
    (level::TCP, 36, 0, AcceptedValues::Number(0, 1)), // TCP_INQ
    (level::UDP, 1, 0, AcceptedValues::Flag), // UDP_CORK
    (level::UDP, 100, 0, AcceptedValues::Default), // UDP_ENCAP
    (level::UDP, 101, 0, AcceptedValues::Flag), // UDP_NO_CHECK6_TX
    (level::UDP, 102, 0, AcceptedValues::Flag), // UDP_NO_CHECK6_RX
    (level::UDP, 103, 0, AcceptedValues::Default), // UDP_SEGMENT
    (level::UDP, 104, 0, AcceptedValues::Flag), // UDP_GRO
    (level::PACKET, 1, 0, AcceptedValues::Command), // PACKET_ADD_MEMBERSHIP
    (level::PACKET, 2, 0, AcceptedValues::Command), // PACKET_DROP_MEMBERSHIP
    (level::PACKET, 8, 0, AcceptedValues::Flag), // PACKET_AUXDATA
    (level::PACKET, 9, 0, AcceptedValues::Flag), // PACKET_ORIGDEV
    (level::NETLINK, 10, 0, AcceptedValues::Flag), // NETLINK_CAP_ACK
    (level::NETLINK, 11, 0, AcceptedValues::Flag), // NETLINK_EXT_ACK
    (level::NETLINK, 12, 0, AcceptedValues::Flag), // NETLINK_GET_STRICT_CHK
];

/// Options that are stored, but whose missing effect a program may notice: some ancillary data of
/// messages, foreign addresses, routes, hops and sizes of packets, connections that time out.
const MISSED: &[(u32, u32)] = &[
    (level::SOCKET, 9),  // SO_KEEPALIVE
    (level::SOCKET, 25), // SO_BINDTODEVICE
    (level::SOCKET, 29), // SO_TIMESTAMP
    (level::SOCKET, 34), // SO_PASSSEC
    (level::SOCKET, 35), // SO_TIMESTAMPNS
    (level::SOCKET, 36), // SO_MARK
    (level::SOCKET, 37), // SO_TIMESTAMPING
    (level::SOCKET, 40), // SO_RXQ_OVFL
    (level::IP, 2),      // IP_TTL
    (level::IP, 6),      // IP_RECVOPTS
    (level::IP, 10),     // IP_MTU_DISCOVER
    (level::IP, 11),     // IP_RECVERR
    (level::IP, 19),     // IP_TRANSPARENT
    (level::IP, 21),     // IP_MINTTL
    (level::IPV6, 16),   // IPV6_UNICAST_HOPS
    (level::IPV6, 23),   // IPV6_MTU_DISCOVER
    (level::IPV6, 25),   // IPV6_RECVERR
    (level::IPV6, 60),   // IPV6_RECVPATHMTU
    (level::IPV6, 73),   // IPV6_MINHOPCOUNT
    (level::IPV6, 75),   // IPV6_TRANSPARENT
    (level::TCP, 7),     // TCP_SYNCNT
    (level::TCP, 9),     // TCP_DEFER_ACCEPT
    (level::TCP, 18),    // TCP_USER_TIMEOUT
    (level::TCP, 30),    // TCP_FASTOPEN_CONNECT
    (level::UDP, 104),   // UDP_GRO
];

/// Whether the model lacks an effect of this option that a program may rely on.
pub fn has_missing_effect(level: u32, name: u32) -> bool {
    MISSED.contains(&(level, name))
}

/// The type of service, which sets the priority.
const IP_TOS: (u32, u32) = (level::IP, 1);
const SO_PRIORITY: (u32, u32) = (level::SOCKET, 12);
const SO_DEBUG: (u32, u32) = (level::SOCKET, 1);
const SO_SNDBUFFORCE: (u32, u32) = (level::SOCKET, 32);
const SO_RCVBUFFORCE: (u32, u32) = (level::SOCKET, 33);
const SO_MARK: (u32, u32) = (level::SOCKET, 36);
const IP_TRANSPARENT: (u32, u32) = (level::IP, 19);
const IPV6_TRANSPARENT: (u32, u32) = (level::IPV6, 75);

/// The capabilities of which a process needs one to set an option to this value, and the errno
/// without them.
pub fn capabilities_for(level: u32, name: u32, value: i32) -> Option<(&'static [u32], Errno)> {
    /// Priorities that every user may set.
    const PRIORITIES: std::ops::RangeInclusive<i32> = 0..=6;
    const EITHER: &[u32] = &[NET_RAW, NET_ADMIN];
    match (level, name) {
        SO_DEBUG if value != 0 => Some((&[NET_ADMIN], Errno::EACCES)),
        SO_PRIORITY if !PRIORITIES.contains(&value) => Some((EITHER, Errno::EPERM)),
        SO_SNDBUFFORCE | SO_RCVBUFFORCE => Some((&[NET_ADMIN], Errno::EPERM)),
        SO_MARK => Some((EITHER, Errno::EPERM)),
        IP_TRANSPARENT | IPV6_TRANSPARENT if value != 0 => Some((EITHER, Errno::EPERM)),
        _ => None,
    }
}

/// Datagrams are kept until it is cleared.
pub const UDP_CORK: u32 = 1;

/// Arrival times as `struct timeval` or `struct timespec`: at most one of them is on.
pub const SO_TIMESTAMP: u32 = 29;
pub const SO_TIMESTAMPNS: u32 = 35;
/// Arrival times as three `struct timespec`, of which the first is that of the kernel.
pub const SO_TIMESTAMPING: u32 = 37;

/// Flags of `SO_TIMESTAMPING`.
mod timestamping {
    /// `SOF_TIMESTAMPING_TX_HARDWARE`, `TX_SOFTWARE`, `TX_SCHED`, `TX_ACK` and `TX_COMPLETION`.
    pub const SENDING: i32 = 0x4_0303;
    /// `SOF_TIMESTAMPING_RX_SOFTWARE`: messages get the time at which they arrive.
    pub const ARRIVAL: i32 = 1 << 3;
    /// `SOF_TIMESTAMPING_SOFTWARE`: the times of the kernel are reported.
    pub const REPORTED: i32 = 1 << 4;
    pub const KNOWN: i32 = 0x7_ffff;
}

/// Bounds of buffer sizes.
const MAX_BUFFER: u32 = 4_194_304;
const MIN_RECEIVE_BUFFER: u32 = 2304;
const MIN_SEND_BUFFER: u32 = 4608;

fn stored(level: u32, name: u32) -> Option<(i32, AcceptedValues)> {
    let mut all = STORED.iter();
    let found = all.find(|option| (option.0, option.1) == (level, name))?;
    Some((found.2, found.3))
}

impl Options {
    /// The default options.
    pub fn new(domain: Domain, kind: SocketType) -> Options {
        let (receive_buffer, send_buffer) = match (domain, kind) {
            (Domain::Inet | Domain::Inet6, SocketType::Stream) => (131_072, 16_384),
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
            receive_low_water: 1,
            receive_timeout_ns: None,
            send_timeout_ns: None,
            device: 0,
            header_included: false,
            icmp_filter: 0,
            group_interface: (0, None),
            groups: Vec::new(),
            peek_offset: None,
            others: None,
        }
    }

    /// Whether the program asks for the arrival times of messages.
    pub fn wants_times(&self) -> bool {
        let wants = |name: u32| self.other(level::SOCKET, name) == Some(1);
        wants(SO_TIMESTAMP) || wants(SO_TIMESTAMPNS)
    }

    /// Whether it asks for them by `SO_TIMESTAMPING`.
    pub fn wants_timestamping(&self) -> bool {
        let wanted = timestamping::ARRIVAL | timestamping::REPORTED;
        let flags = self.other(level::SOCKET, SO_TIMESTAMPING);
        flags.is_some_and(|flags| flags & wanted == wanted)
    }

    /// Whether datagrams are kept until the option is cleared.
    pub fn is_corked(&self) -> bool {
        self.other(level::UDP, UDP_CORK) == Some(1)
    }

    /// Whether the socket can be bound to an address that the host does not have.
    pub fn binds_anywhere(&self) -> bool {
        const IP_FREEBIND: u32 = 15;
        const IPV6_FREEBIND: u32 = 78;
        self.other(level::IP, IP_FREEBIND) == Some(1)
            || self.other(level::IPV6, IPV6_FREEBIND) == Some(1)
    }

    /// The value of an option without effect; `None` if there is no such option.
    pub fn other(&self, level: u32, name: u32) -> Option<i32> {
        let (default, takes) = stored(level, name)?;
        if takes == AcceptedValues::Command && level != level::IP {
            return None;
        }
        let set = self.others.as_ref().and_then(|set| set.get(&(level, name)));
        Some(set.copied().unwrap_or(default))
    }

    /// Sets an option without effect.
    pub fn set_other(&mut self, level: u32, name: u32, value: i32) -> Result<(), Errno> {
        let (default, takes) = stored(level, name).ok_or(Errno::ENOPROTOOPT)?;
        let value = match takes {
            AcceptedValues::Flag => i32::from(value != 0),
            AcceptedValues::NumberOrDefault(..) if value == -1 => default,
            AcceptedValues::Number(least, most) | AcceptedValues::NumberOrDefault(least, most) => {
                if !(least..=most).contains(&value) {
                    return Err(Errno::EINVAL);
                }
                value
            }
            AcceptedValues::Byte => value & 0xff,
            AcceptedValues::Command => return Ok(()),
            AcceptedValues::ArrivalTimes if value & !timestamping::KNOWN != 0 => {
                return Err(Errno::EINVAL);
            }
            AcceptedValues::ArrivalTimes if value & timestamping::SENDING == 0 => value,
            AcceptedValues::ArrivalTimes => return Err(Errno::ENOPROTOOPT),
            AcceptedValues::Default if value == default => value,
            AcceptedValues::Default => return Err(Errno::ENOPROTOOPT),
        };
        let others = self.others.get_or_insert_with(Default::default);
        let others = Arc::make_mut(others);
        others.insert((level, name), value);
        match (level, name) {
            (level::SOCKET, SO_TIMESTAMP) => _ = others.insert((level, SO_TIMESTAMPNS), 0),
            (level::SOCKET, SO_TIMESTAMPNS) => _ = others.insert((level, SO_TIMESTAMP), 0),
            _ => {}
        }
        if (level, name) == IP_TOS {
            /// Priorities of the types of service: normal, throughput, low delay, both.
            const PRIORITIES: [i32; 4] = [0, 2, 6, 4];
            others.insert(SO_PRIORITY, PRIORITIES[value as usize >> 3 & 3]);
        }
        Ok(())
    }

    /// `SO_RCVBUF`: doubled, to account for the kernel's overhead.
    pub fn set_receive_buffer(&mut self, wanted: u32, force: bool) {
        let most = if force { u32::MAX / 4 } else { MAX_BUFFER };
        self.receive_buffer = (wanted.min(most) * 2).max(MIN_RECEIVE_BUFFER);
    }

    /// `SO_SNDBUF`: doubled as well.
    pub fn set_send_buffer(&mut self, wanted: u32, force: bool) {
        let most = if force { u32::MAX / 4 } else { MAX_BUFFER };
        self.send_buffer = (wanted.min(most) * 2).max(MIN_SEND_BUFFER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembered_options_keep_to_their_range() {
        let mut options = Options::new(Domain::Inet, SocketType::Stream);
        assert_eq!(options.other(level::TCP, 4), Some(7200));
        assert_eq!(options.set_other(level::TCP, 4, 30), Ok(()));
        assert_eq!(options.other(level::TCP, 4), Some(30));
        assert_eq!(options.set_other(level::TCP, 4, 0), Err(Errno::EINVAL));
        assert_eq!(options.set_other(level::IP, 2, 3), Ok(()));
        assert_eq!(options.set_other(level::IP, 2, -1), Ok(()));
        assert_eq!(options.other(level::IP, 2), Some(64));
        assert_eq!(options.other(level::SOCKET, 999), None);
    }

    #[test]
    fn buffers_are_doubled_and_bounded() {
        let mut options = Options::new(Domain::Unix, SocketType::Stream);
        options.set_receive_buffer(0, false);
        options.set_send_buffer(50_000, false);
        assert_eq!(
            (options.receive_buffer, options.send_buffer),
            (2304, 100_000)
        );
        options.set_send_buffer(u32::MAX, false);
        assert_eq!(options.send_buffer, 8_388_608);
    }
}
