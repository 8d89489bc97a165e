//! Data race detection by happens-before, enabled on request.
//!
//! Each thread has a vector clock. Atomic accesses order threads, and are treated as sequentially
//! consistent. Once memory was accessed atomically, plain accesses to it also order threads,
//! because libraries read their lock words with plain loads. Two accesses to the same bytes race if
//! neither happens before the other and at least one of them is a write.

use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

use crate::stacks::StackId;

/// Granularity of the access history in bytes.
pub(crate) const GRANULE: u64 = 8;
/// Maximum number of accesses that are remembered per granule.
const REMEMBERED: usize = 16;
/// Maximum number of granules that are checked per access.
pub(crate) const MAX_GRANULES: u64 = 4096;

/// A vector clock: the time of each thread, by thread number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock(BTreeMap<u32, u32>);

impl Clock {
    pub(crate) fn get(&self, thread: u32) -> u32 {
        self.0.get(&thread).copied().unwrap_or(0)
    }

    fn join(&mut self, other: &Clock) {
        for (thread, time) in &other.0 {
            let own = self.0.entry(*thread).or_default();
            *own = (*own).max(*time);
        }
    }

    fn advance(&mut self, thread: u32) {
        *self.0.entry(thread).or_default() += 1;
    }
}

/// An access in the history.
#[derive(Copy, Clone, Debug)]
pub(crate) struct RecordedAccess {
    pub(crate) thread: u32,
    pub(crate) time: u32,
    /// The bytes of the granule that the access covers.
    pub(crate) mask: u8,
    pub(crate) write: bool,
    pub(crate) stack: Option<StackId>,
}

/// The access history of a process.
#[derive(Clone, Debug, Default)]
pub struct Races {
    pub(crate) clocks: BTreeMap<u32, Clock>,
    /// For each granule, the joined clocks of the threads that wrote it atomically.
    released: BTreeMap<u64, Clock>,
    /// Granules that were accessed atomically.
    pub(crate) atomic: BTreeSet<u64>,
    past: BTreeMap<u64, SmallVec<[RecordedAccess; 2]>>,
}

impl Races {
    /// Records that a thread creates another.
    pub fn fork(&mut self, parent: u32, child: u32) {
        let known = self.clocks.entry(parent).or_default().clone();
        let before = self.clocks.remove(&child).unwrap_or_default();
        let mut clock = known;
        let own = clock.0.entry(child).or_default();
        *own = (*own).max(before.get(child));
        clock.advance(child);
        self.clocks.insert(child, clock);
        self.clocks.entry(parent).or_default().advance(parent);
    }

    /// Records that a thread continues after it has joined another one.
    pub fn join(&mut self, thread: u32, ended: u32) {
        if let Some(clock) = self.clocks.get(&ended).cloned() {
            self.clocks.entry(thread).or_default().join(&clock);
        }
    }

    /// Records an access that orders threads.
    pub(crate) fn synchronise(&mut self, thread: u32, granule: u64, write: bool) {
        self.atomic.insert(granule);
        let clock = self.clocks.entry(thread).or_default();
        if let Some(released) = self.released.get(&granule) {
            clock.join(released);
        }
        if write {
            let released = self.released.entry(granule).or_default();
            released.join(clock);
            clock.advance(thread);
        }
    }

    /// Records an operation that orders later threads, but not this one.
    pub(crate) fn release(&mut self, thread: u32, granule: u64) {
        let clock = self.clocks.entry(thread).or_default();
        self.released.entry(granule).or_default().join(clock);
        clock.advance(thread);
    }

    /// Records a plain access and returns an earlier access that it races with.
    pub(crate) fn access(&mut self, granule: u64, new: RecordedAccess) -> Option<RecordedAccess> {
        let clock = self.clocks.entry(new.thread).or_default();
        let past = self.past.entry(granule).or_default();
        let races = past.iter().find(|old| {
            old.thread != new.thread
                && old.mask & new.mask != 0
                && (old.write || new.write)
                && old.time > clock.get(old.thread)
        });
        if let Some(old) = races {
            return Some(*old);
        }
        past.retain(|old| {
            let covered = old.mask & !new.mask == 0 && (new.write || !old.write);
            !(covered && old.time <= clock.get(old.thread))
        });
        if past.len() >= REMEMBERED {
            past.remove(0);
        }
        past.push(new);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(races: &mut Races, thread: u32, write: bool) -> RecordedAccess {
        let time = races.clocks.entry(thread).or_default().get(thread);
        RecordedAccess {
            thread,
            time,
            mask: 0xf,
            write,
            stack: None,
        }
    }

    fn plain(races: &mut Races, thread: u32, write: bool) -> bool {
        let new = past(races, thread, write);
        races.access(1, new).is_some()
    }

    #[test]
    fn what_is_not_ordered_races() {
        let mut races = Races::default();
        assert!(!plain(&mut races, 0, true));
        races.fork(0, 1);
        // Everything that the parent did before happens before the child.
        assert!(!plain(&mut races, 1, true));
        assert!(plain(&mut races, 0, false));
    }

    #[test]
    fn a_lock_orders() {
        let mut races = Races::default();
        races.fork(0, 1);
        races.synchronise(0, 9, true);
        assert!(!plain(&mut races, 0, true));
        races.synchronise(0, 9, true);
        races.synchronise(1, 9, true);
        assert!(!plain(&mut races, 1, true));
        assert!(plain(&mut races, 0, true));
    }

    #[test]
    fn reads_do_not_race_with_each_other() {
        let mut races = Races::default();
        races.fork(0, 1);
        assert!(!plain(&mut races, 0, false));
        assert!(!plain(&mut races, 1, false));
        assert!(plain(&mut races, 1, true));
    }
}
