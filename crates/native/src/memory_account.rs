//! The memory that the hosts of a native world use together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Resident memory of the processes of each host of a world, which share one limit. A host records
/// its own. While it runs, the memory of the others does not change, since one host runs at a time.
#[derive(Clone)]
pub struct MemoryAccount {
    hosts: Arc<[AtomicU64]>,
    own: usize,
}

impl MemoryAccount {
    /// Creates the account of a host without others.
    pub fn alone() -> MemoryAccount {
        MemoryAccount::of_host(&MemoryAccount::hosts(1), 0)
    }

    /// Creates the memory counters of the hosts of a world.
    pub fn hosts(count: usize) -> Arc<[AtomicU64]> {
        (0..count).map(|_| AtomicU64::new(0)).collect()
    }

    /// Creates the account of one host of a world.
    pub fn of_host(hosts: &Arc<[AtomicU64]>, own: usize) -> MemoryAccount {
        MemoryAccount {
            hosts: hosts.clone(),
            own,
        }
    }

    /// Records the memory of the host.
    pub fn note(&self, bytes: u64) {
        self.hosts[self.own].store(bytes, Ordering::Relaxed);
    }

    /// Records that the host uses at least this much memory.
    pub fn note_least(&self, bytes: u64) {
        self.hosts[self.own].fetch_max(bytes, Ordering::Relaxed);
    }

    /// Returns the memory of all hosts.
    pub fn all(&self) -> u64 {
        let hosts = self.hosts.iter();
        hosts
            .map(|bytes| bytes.load(Ordering::Relaxed))
            .fold(0, u64::saturating_add)
    }

    /// Returns the memory of the other hosts.
    pub fn others(&self) -> u64 {
        let own = self.hosts[self.own].load(Ordering::Relaxed);
        self.all().saturating_sub(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_count_what_others_take() {
        let hosts = MemoryAccount::hosts(3);
        let [first, second, third] = [0, 1, 2].map(|host| MemoryAccount::of_host(&hosts, host));
        first.note(10);
        second.note(5);
        second.note_least(7);
        second.note_least(6);
        assert_eq!([first.others(), second.others()], [7, 10]);
        assert_eq!(third.others(), 17);
        second.note(1);
        assert_eq!(third.others(), 11);
        assert_eq!(MemoryAccount::alone().others(), 0);
    }
}
