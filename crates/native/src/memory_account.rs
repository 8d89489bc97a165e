//! The memory that the hosts of a native world take together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Resident memory of the processes of each host of a world, which share one limit. A host notes
/// its own; while it runs, that of the others does not change, since one host runs at a time.
#[derive(Clone)]
pub struct MemoryAccount {
    hosts: Arc<[AtomicU64]>,
    own: usize,
}

impl MemoryAccount {
    /// The account of a host that is alone.
    pub fn alone() -> MemoryAccount {
        MemoryAccount::of_host(&MemoryAccount::hosts(1), 0)
    }

    /// What hosts of one world share.
    pub fn hosts(count: usize) -> Arc<[AtomicU64]> {
        (0..count).map(|_| AtomicU64::new(0)).collect()
    }

    /// The account of one host of a world.
    pub fn of_host(hosts: &Arc<[AtomicU64]>, own: usize) -> MemoryAccount {
        MemoryAccount {
            hosts: hosts.clone(),
            own,
        }
    }

    /// Notes what the host takes.
    pub fn note(&self, bytes: u64) {
        self.hosts[self.own].store(bytes, Ordering::Relaxed);
    }

    /// Notes that the host takes so much or more.
    pub fn note_least(&self, bytes: u64) {
        self.hosts[self.own].fetch_max(bytes, Ordering::Relaxed);
    }

    /// What all hosts take.
    pub fn all(&self) -> u64 {
        let hosts = self.hosts.iter();
        hosts
            .map(|bytes| bytes.load(Ordering::Relaxed))
            .fold(0, u64::saturating_add)
    }

    /// What the other hosts take.
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
