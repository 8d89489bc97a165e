//! Files in `/proc` whose contents are generated when they are opened.

use crate::objects::socket::Domain;

/// Per-process files in `/proc/PID`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum About {
    /// `cmdline`.
    Arguments,
    /// `auxv`.
    Auxiliary,
    /// A constant text: what no program of the model changes.
    Constant(&'static str),
    /// `cgroup`.
    ControlGroup,
    /// `comm`.
    Name,
    /// `environ`.
    Environment,
    /// `io`, with all counters 0.
    Transfers,
    /// `limits`.
    Limits,
    /// `maps`.
    Mappings,
    /// `smaps`.
    DetailedMappings,
    /// `stat`.
    Numbers,
    /// `oom_score_adj`, which can be written.
    OutOfMemory,
    /// `statm`.
    Sizes,
    /// `status`.
    Status,
}

impl About {
    /// All of them: name, kind and permission bits.
    pub const ALL: [(&'static str, About, u32); 29] = [
        ("auxv", About::Auxiliary, 0o400),
        ("autogroup", About::Constant("/autogroup-1 nice 0\n"), 0o644),
        ("cgroup", About::ControlGroup, 0o444),
        ("cmdline", About::Arguments, 0o444),
        ("comm", About::Name, 0o644),
        ("coredump_filter", About::Constant("00000033\n"), 0o644),
        ("cpuset", About::Constant("/\n"), 0o444),
        ("environ", About::Environment, 0o400),
        (
            "gid_map",
            About::Constant("         0          0 4294967295\n"),
            0o644,
        ),
        ("io", About::Transfers, 0o400),
        ("limits", About::Limits, 0o444),
        ("loginuid", About::Constant("4294967295"), 0o644),
        ("maps", About::Mappings, 0o444),
        ("oom_adj", About::Constant("0\n"), 0o644),
        ("oom_score", About::Constant("0\n"), 0o444),
        ("oom_score_adj", About::OutOfMemory, 0o644),
        ("personality", About::Constant("00000000\n"), 0o400),
        (
            "projid_map",
            About::Constant("         0          0 4294967295\n"),
            0o644,
        ),
        ("schedstat", About::Constant("0 0 1\n"), 0o444),
        ("sessionid", About::Constant("4294967295"), 0o444),
        ("setgroups", About::Constant("allow\n"), 0o644),
        ("smaps", About::DetailedMappings, 0o444),
        ("stat", About::Numbers, 0o444),
        ("statm", About::Sizes, 0o444),
        ("status", About::Status, 0o444),
        (
            "timens_offsets",
            About::Constant("monotonic           0         0\nboottime            0         0\n"),
            0o644,
        ),
        ("timerslack_ns", About::Constant("50000\n"), 0o666),
        (
            "uid_map",
            About::Constant("         0          0 4294967295\n"),
            0o644,
        ),
        ("wchan", About::Constant("0"), 0o444),
    ];
}

/// A generated file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Generated {
    /// A constant text.
    Text(&'static str),
    /// A file of `/sys` with a constant text.
    System(&'static str),
    /// `/proc/sys/kernel/random/uuid`: drawn whenever it is opened.
    Uuid,
    /// `/proc/loadavg`.
    Load,
    /// `/proc/uptime`.
    Uptime,
    /// `/proc/stat`.
    Counters,
    /// `/proc/net/dev`.
    Interfaces,
    /// A list of sockets in `/proc/net`.
    Sockets(SocketList),
    /// Another list in `/proc/net`.
    Network(NetworkList),
    /// A list in `/proc/sysvipc`.
    Ipc(IpcList),
    /// A per-process file.
    Process(u32, About),
    /// A file in `/proc/PID/fdinfo`: pid and descriptor.
    Descriptor(u32, i32),
}

impl Generated {
    /// Whether nobody may open it for writing, whatever its permission bits are.
    pub fn is_read_only(self) -> bool {
        matches!(
            self,
            Generated::System(_)
                | Generated::Interfaces
                | Generated::Sockets(_)
                | Generated::Network(_)
                | Generated::Ipc(_)
                | Generated::Process(_, About::Constant(_))
        )
    }

    /// Whether a write to the file changes something.
    pub fn is_setting(self) -> bool {
        matches!(
            self,
            Generated::Process(_, About::OutOfMemory | About::Name)
        )
    }
}

/// Lists of sockets in `/proc/net`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SocketList {
    /// `tcp` and `tcp6`.
    Tcp(Domain),
    /// `udp` and `udp6`.
    Udp(Domain),
    /// `raw`.
    Raw,
    /// `unix`.
    Unix,
}

/// Lists in `/proc/net` besides those of sockets.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum NetworkList {
    /// `route`: routes of IPv4.
    Routes,
    /// `if_inet6`: addresses of IPv6.
    Addresses6,
}

/// Lists of System V objects in `/proc/sysvipc`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum IpcList {
    /// `shm`.
    Segments,
    /// `sem`.
    Semaphores,
    /// `msg`.
    Messages,
}
