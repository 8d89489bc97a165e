//! When hosts of a world start.

/// When a host starts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum StartTime {
    /// At this virtual time.
    At(u64),
    /// As soon as that many hosts, the first ones of the world, are blocked at once.
    Blocked(usize),
}

impl StartTime {
    /// Whether it starts only once the host of this number is blocked.
    pub fn awaits(self, host: usize) -> bool {
        matches!(self, StartTime::Blocked(hosts) if host < hosts)
    }
}
