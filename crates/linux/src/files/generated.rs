//! Files in `/proc` whose contents are generated when they are opened.

/// Per-process files in `/proc/PID`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum About {
    /// `cmdline`.
    Arguments,
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
    /// `stat`.
    Numbers,
    /// `statm`.
    Sizes,
    /// `status`.
    Status,
}

impl About {
    /// All of them: name, kind and permission bits.
    pub const ALL: [(&'static str, About, u32); 10] = [
        ("cgroup", About::ControlGroup, 0o444),
        ("cmdline", About::Arguments, 0o444),
        ("comm", About::Name, 0o644),
        ("environ", About::Environment, 0o400),
        ("io", About::Transfers, 0o400),
        ("limits", About::Limits, 0o444),
        ("maps", About::Mappings, 0o444),
        ("stat", About::Numbers, 0o444),
        ("statm", About::Sizes, 0o444),
        ("status", About::Status, 0o444),
    ];
}

/// A generated file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Generated {
    /// A constant text.
    Text(&'static str),
    /// `/proc/loadavg`.
    Load,
    /// `/proc/uptime`.
    Uptime,
    /// `/proc/stat`.
    Counters,
    /// A per-process file.
    Process(u32, About),
}
