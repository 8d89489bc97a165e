//! File locks: record locks of processes and of open file descriptions (`fcntl`), and
//! locks on whole files (`flock`).

use triomphe::Arc;

use crate::ids::{DescriptionId, InodeId};

/// Owner of a record lock.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LockOwner {
    /// A process: it loses all its locks on a file when it closes any descriptor of it.
    Process(u32),
    /// An open file description.
    Description(DescriptionId),
}

/// A byte range of a file, `end` excluded; [`u64::MAX`] is the end of any file.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LockRange {
    /// The first byte.
    pub start: u64,
    /// The first byte after the range.
    pub end: u64,
}

impl LockRange {
    fn meets(self, other: LockRange) -> bool {
        self.start < other.end && other.start < self.end
    }
}

/// A record lock that is held or requested.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Conflict {
    /// The locked range.
    pub range: LockRange,
    /// Its owner.
    pub owner: LockOwner,
    /// A write lock, which excludes all others.
    pub exclusive: bool,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct RangeLock {
    inode: InodeId,
    lock: Conflict,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct WholeLock {
    inode: InodeId,
    owner: DescriptionId,
    exclusive: bool,
}

/// A thread that waits for a record lock of its process.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Waiting {
    tid: u32,
    inode: InodeId,
    wanted: Conflict,
}

/// All file locks of a host.
#[derive(Clone, Debug, Default)]
pub struct Locks {
    ranges: Arc<Vec<RangeLock>>,
    whole: Arc<Vec<WholeLock>>,
    waiting: Arc<Vec<Waiting>>,
}

impl Locks {
    /// The first lock of another owner that conflicts with a requested lock.
    pub fn conflict(&self, inode: InodeId, wanted: Conflict) -> Option<Conflict> {
        let others = self.ranges.iter().filter(|held| {
            held.inode == inode
                && held.lock.owner != wanted.owner
                && (held.lock.exclusive || wanted.exclusive)
                && held.lock.range.meets(wanted.range)
        });
        others.map(|held| held.lock).min()
    }

    /// Sets a lock, which replaces the owner's locks in the range; there must be no conflict.
    /// `None` unlocks the range. Returns whether a waiting thread may now succeed.
    pub fn set(
        &mut self,
        inode: InodeId,
        owner: LockOwner,
        range: LockRange,
        exclusive: Option<bool>,
    ) -> bool {
        let mut kept = Vec::with_capacity(self.ranges.len() + 2);
        let mut new = range;
        let mut released = false;
        for held in self.ranges.iter() {
            let own = held.inode == inode && held.lock.owner == owner;
            let touches = held.lock.range.start <= new.end && new.start <= held.lock.range.end;
            if own && Some(held.lock.exclusive) == exclusive && touches {
                new.start = new.start.min(held.lock.range.start);
                new.end = new.end.max(held.lock.range.end);
                continue;
            }
            if !own || !held.lock.range.meets(range) {
                kept.push(*held);
                continue;
            }
            released |= held.lock.exclusive || exclusive.is_none();
            let old = held.lock.range;
            for (start, end) in [(old.start, range.start), (range.end, old.end)] {
                if start < end {
                    let range = LockRange { start, end };
                    let lock = Conflict { range, ..held.lock };
                    kept.push(RangeLock { lock, ..*held });
                }
            }
        }
        if let Some(exclusive) = exclusive {
            let lock = Conflict {
                range: new,
                owner,
                exclusive,
            };
            kept.push(RangeLock { inode, lock });
        }
        self.ranges = Arc::new(kept);
        released
    }

    /// Whether a `flock` lock of another open file conflicts.
    pub fn is_taken(&self, inode: InodeId, owner: DescriptionId, exclusive: bool) -> bool {
        self.whole
            .iter()
            .any(|held| held.inode == inode && held.owner != owner && (held.exclusive || exclusive))
    }

    /// Whether an open file holds a `flock` lock, and whether it is exclusive.
    pub fn holds(&self, inode: InodeId, owner: DescriptionId) -> Option<bool> {
        let mut all = self.whole.iter();
        all.find(|held| held.inode == inode && held.owner == owner)
            .map(|held| held.exclusive)
    }

    /// Sets or removes the `flock` lock of an open file. Returns whether it had one.
    pub fn set_whole(
        &mut self,
        inode: InodeId,
        owner: DescriptionId,
        exclusive: Option<bool>,
    ) -> bool {
        let had = self.holds(inode, owner).is_some();
        if had || exclusive.is_some() {
            let all = Arc::make_mut(&mut self.whole);
            all.retain(|held| held.inode != inode || held.owner != owner);
            all.extend(exclusive.map(|exclusive| WholeLock {
                inode,
                owner,
                exclusive,
            }));
        }
        had
    }

    /// Releases the record locks of a process on a file that it closes, or on all files when it
    /// exits. Returns whether it had any.
    pub fn release_process(&mut self, pid: u32, inode: Option<InodeId>) -> bool {
        let owner = LockOwner::Process(pid);
        self.release(|held| held.lock.owner == owner && inode.is_none_or(|id| id == held.inode))
    }

    /// Releases the locks of an open file description at its last
    /// close. Returns whether it had any.
    pub fn release_description(&mut self, id: DescriptionId) -> bool {
        let had_whole = self.whole.iter().any(|held| held.owner == id);
        if had_whole {
            Arc::make_mut(&mut self.whole).retain(|held| held.owner != id);
        }
        self.release(|held| held.lock.owner == LockOwner::Description(id)) || had_whole
    }

    fn release(&mut self, goes: impl Fn(&RangeLock) -> bool) -> bool {
        let any = self.ranges.iter().any(&goes);
        if any {
            Arc::make_mut(&mut self.ranges).retain(|held| !goes(held));
        }
        any
    }

    /// Records that a thread is about to wait for a record lock.
    pub fn wait(&mut self, tid: u32, inode: InodeId, wanted: Conflict) {
        self.stop_waiting(tid);
        let all = Arc::make_mut(&mut self.waiting);
        all.push(Waiting { tid, inode, wanted });
    }

    /// Records that a thread no longer waits.
    pub fn stop_waiting(&mut self, tid: u32) {
        if self.waiting.iter().any(|waiting| waiting.tid == tid) {
            Arc::make_mut(&mut self.waiting).retain(|waiting| waiting.tid != tid);
        }
    }

    /// Whether waiting for this lock would deadlock the processes involved. `waits`
    /// says which threads are blocked.
    pub fn would_deadlock(
        &self,
        inode: InodeId,
        wanted: Conflict,
        waits: impl Fn(u32) -> bool,
    ) -> bool {
        let mut blocker = self.conflict(inode, wanted);
        // The number of waiting threads bounds the length of every chain.
        for _ in 0..=self.waiting.len() {
            let Some(held) = blocker else { return false };
            if !matches!(held.owner, LockOwner::Process(_)) {
                return false;
            }
            if held.owner == wanted.owner {
                return true;
            }
            let mut all = self.waiting.iter();
            let next = all.find(|next| next.wanted.owner == held.owner && waits(next.tid));
            blocker = next.and_then(|next| {
                let own = self.ranges.iter().find(|lock| {
                    lock.inode == next.inode
                        && lock.lock.owner == wanted.owner
                        && lock.lock.range.meets(next.wanted.range)
                        && (lock.lock.exclusive || next.wanted.exclusive)
                });
                let own = own.map(|lock| lock.lock);
                own.or_else(|| self.conflict(next.inode, next.wanted))
            });
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: InodeId = InodeId(7);

    fn range(start: u64, end: u64) -> LockRange {
        LockRange { start, end }
    }

    fn wanted(pid: u32, start: u64, end: u64, exclusive: bool) -> Conflict {
        Conflict {
            range: range(start, end),
            owner: LockOwner::Process(pid),
            exclusive,
        }
    }

    #[test]
    fn ranges_split_and_merge() {
        let mut locks = Locks::default();
        let own = LockOwner::Process(1);
        locks.set(FILE, own, range(0, 100), Some(true));
        assert!(locks.set(FILE, own, range(40, 60), None));
        assert_eq!(locks.conflict(FILE, wanted(2, 45, 50, true)), None);
        let found = locks.conflict(FILE, wanted(2, 0, u64::MAX, false)).unwrap();
        assert_eq!(found.range, range(0, 40));
        locks.set(FILE, own, range(40, 60), Some(true));
        let found = locks.conflict(FILE, wanted(2, 99, 100, false)).unwrap();
        assert_eq!(found.range, range(0, 100));
        locks.set(FILE, own, range(10, 20), Some(false));
        assert_eq!(locks.conflict(FILE, wanted(2, 10, 20, false)), None);
        assert!(locks.conflict(FILE, wanted(2, 10, 20, true)).is_some());
        assert!(locks.release_process(1, Some(FILE)));
        assert!(!locks.release_process(1, None));
        assert_eq!(locks.conflict(FILE, wanted(2, 0, 100, true)), None);
    }

    #[test]
    fn a_ring_of_waiting_processes_is_noticed() {
        let mut locks = Locks::default();
        for pid in 1..=3 {
            let held = range(u64::from(pid), u64::from(pid) + 1);
            locks.set(FILE, LockOwner::Process(pid), held, Some(true));
        }
        locks.wait(1, FILE, wanted(1, 2, 3, true));
        locks.wait(2, FILE, wanted(2, 3, 4, true));
        assert!(!locks.would_deadlock(FILE, wanted(3, 9, 10, true), |_| true));
        assert!(locks.would_deadlock(FILE, wanted(3, 1, 2, true), |_| true));
        assert!(!locks.would_deadlock(FILE, wanted(3, 1, 2, true), |tid| tid != 2));
    }

    #[test]
    fn whole_files_are_locked_apart_from_ranges() {
        let mut locks = Locks::default();
        let (one, two) = (DescriptionId(1), DescriptionId(2));
        locks.set_whole(FILE, one, Some(false));
        assert!(!locks.is_taken(FILE, two, false));
        assert!(locks.is_taken(FILE, two, true) && !locks.is_taken(FILE, one, true));
        assert_eq!(locks.conflict(FILE, wanted(2, 0, 100, true)), None);
        assert!(locks.release_description(one));
        assert!(!locks.is_taken(FILE, two, true));
    }
}
