//! When hosts of a world start.

/// When a host starts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum StartTime {
    /// At this virtual time.
    At(u64),
    /// As soon as this many hosts, the first ones of the world, are blocked at the same time.
    Blocked(usize),
}

impl StartTime {
    /// Returns whether the start has to wait for the host of this number to be blocked.
    pub fn awaits(self, host: usize) -> bool {
        matches!(self, StartTime::Blocked(hosts) if host < hosts)
    }
}
