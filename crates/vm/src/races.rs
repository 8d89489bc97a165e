//! Data race detection by happens-before, enabled on request.
//!
//! Each thread has a vector clock. Atomic accesses order threads, and are treated as sequentially
//! consistent. Memory that was accessed atomically once orders threads from then on, by plain
//! accesses too, because libraries read their lock words with plain loads. Two accesses to the same
//! bytes race if neither happens before the other and one of them is a write.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;
use triomphe::Arc;

use crate::bug::{Bug, BugKind, bytes};
use crate::memory::ObjectKind;
use crate::preemption::Access;
use crate::stacks::StackId;
use crate::vm::{Interrupt, Vm};

/// Granularity of the access history in bytes.
const GRANULE: u64 = 8;
/// Number of accesses remembered per granule.
const REMEMBERED: usize = 16;
/// Number of granules that are checked per access.
const MAX_GRANULES: u64 = 4096;

/// A vector clock: the time of each thread, by thread number.
#[derive(Clone, Debug, Default)]
struct Clock(BTreeMap<u32, u32>);

impl Clock {
    fn get(&self, thread: u32) -> u32 {
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
struct RecordedAccess {
    thread: u32,
    time: u32,
    /// The bytes of the granule that it covers.
    mask: u8,
    write: bool,
    stack: Option<StackId>,
}

/// The access history of a process.
#[derive(Clone, Debug, Default)]
pub struct Races {
    clocks: BTreeMap<u32, Clock>,
    /// For each granule, the joined clocks of the threads that wrote it atomically.
    released: BTreeMap<u64, Clock>,
    /// Granules that were accessed atomically.
    atomic: BTreeSet<u64>,
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

    /// Records an access that orders threads.
    fn synchronise(&mut self, thread: u32, granule: u64, write: bool) {
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

    /// Records a plain access and returns an earlier access that it races with.
    fn access(&mut self, granule: u64, new: RecordedAccess) -> Option<RecordedAccess> {
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

impl Vm<'_> {
    /// Whether race detection is on and the process has more than one thread.
    pub(crate) fn races_enabled(&self) -> bool {
        self.options.check_races && !self.alone
    }

    /// Records that the running thread creates another: everything it did so far happens before.
    pub fn record_thread_start(&mut self, child: u32) {
        if self.options.check_races {
            let parent = self.thread.number;
            Arc::make_mut(&mut self.memory.races).fork(parent, child);
        }
    }

    /// Reports an access that races with an earlier one.
    #[cold]
    pub(crate) fn check_race(&mut self, access: Access) -> Result<(), Interrupt> {
        if access.pointer.term.is_some() || access.len == 0 {
            return Ok(());
        }
        let address = access.pointer.bits;
        let thread = self.thread.number;
        let end = address.saturating_add(access.len);
        let last = ((end - 1) / GRANULE).min(address / GRANULE + MAX_GRANULES);
        let is_library = self.is_in_library();
        let is_constant = |object: &crate::memory::Object| object.kind == ObjectKind::Constant;
        if self.memory.near(address).is_none_or(is_constant) {
            return Ok(());
        }
        let mut stack = None;
        for granule in address / GRANULE..=last {
            let races = Arc::make_mut(&mut self.memory.races);
            if access.atomic || races.atomic.contains(&granule) {
                races.synchronise(thread, granule, access.write);
                continue;
            }
            if is_library {
                continue;
            }
            let (from, to) = (granule * GRANULE, (granule + 1) * GRANULE);
            let mask = (from..to).enumerate().fold(0, |mask, (bit, byte)| {
                let hit = (address..end).contains(&byte);
                mask | u8::from(hit) << bit
            });
            let time = races.clocks.entry(thread).or_default().get(thread);
            stack = stack.or_else(|| self.stack());
            let new = RecordedAccess {
                thread,
                time,
                mask,
                write: access.write,
                stack,
            };
            let races = Arc::make_mut(&mut self.memory.races);
            if let Some(old) = races.access(granule, new) {
                return Err(self.race(access, old).into());
            }
        }
        Ok(())
    }

    /// Whether the running instruction belongs to the C library.
    fn is_in_library(&self) -> bool {
        let program = self.image.program();
        let file = self.thread.top().and_then(|frame| {
            let code = self.image.code(frame.function)?;
            let location = (*code.locations.get(frame.pc as usize)?)?;
            let location = program.locations.get(location.0 as usize)?;
            program.strings.get(location.file as usize)
        });
        // The C library uses plain accesses for words that it treats as atomic.
        file.is_none_or(|file| program.library.is_runtime(file))
    }

    fn race(&mut self, access: Access, old: RecordedAccess) -> Bug {
        let verb = |write: bool| if write { "write" } else { "read" };
        let place = old.stack.and_then(|stack| self.describe_top(stack));
        let place = place.map_or_else(String::new, |place| format!(" {place}"));
        let message = format!(
            "{} of {} races with a {} of another thread{place}",
            verb(access.write),
            bytes(access.len),
            verb(old.write)
        );
        let object = self.memory.near(access.pointer.bits);
        Bug {
            allocated: object.and_then(|object| object.allocated),
            other: old.stack,
            ..Bug::new(BugKind::DataRace, message)
        }
    }

    /// Function, file and line of the top of a stack, for messages.
    fn describe_top(&self, stack: StackId) -> Option<String> {
        let site = *self.stacks.sites(stack).first()?;
        let program = self.image.program();
        let code = self.image.code(site.function)?;
        let location = (*code.locations.get(site.pc as usize)?)?;
        let location = program.locations.get(location.0 as usize)?;
        let file = program.strings.get(location.file as usize)?;
        let file = file.rsplit('/').next().unwrap_or(file);
        let function = program.strings.get(location.function as usize)?;
        Some(format!("in {function} at {file}:{}", location.line))
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
        // What the parent did before happens before the child.
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
