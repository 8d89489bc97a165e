//! The connection between the vm and data race detection: which accesses are recorded, and how a
//! race is reported.

use std::ops::RangeInclusive;
use triomphe::Arc;

use crate::bug::{Bug, BugKind, bytes};
use crate::memory::ObjectKind;
use crate::preemption::Access;
use crate::races::{GRANULE, MAX_GRANULES, RecordedAccess};
use crate::stacks::StackId;
use crate::vm::{Interrupt, Vm};

/// Granule numbers of kernel objects begin here; no address has such a high granule.
const KERNEL_OBJECTS: u64 = 1 << 62;
/// The granule number that represents all kernel objects.
const ALL_OBJECTS: u64 = KERNEL_OBJECTS - 1;

/// The granules of a nonempty range of bytes that are checked: at most [`MAX_GRANULES`].
fn checked_granules(address: u64, end: u64) -> RangeInclusive<u64> {
    let first = address / GRANULE;
    first..=((end - 1) / GRANULE).min(first + (MAX_GRANULES - 1))
}

impl Vm<'_> {
    /// Returns whether race detection is on and the process has more than one thread.
    pub fn checks_races(&self) -> bool {
        self.options.check_races && !self.alone
    }

    /// Records that the running thread creates another one: everything that it has done so far
    /// happens before the new thread.
    pub fn record_thread_start(&mut self, child: u32) {
        if self.options.check_races {
            let parent = self.thread.number;
            Arc::make_mut(&mut self.memory.races).fork(parent, child);
        }
    }

    /// Orders the running thread after all earlier users of a kernel object, and before all later
    /// ones.
    pub fn order_by_object(&mut self, object: u64) {
        if self.checks_races() {
            let thread = self.thread.number;
            let races = Arc::make_mut(&mut self.memory.races);
            races.synchronise(thread, KERNEL_OBJECTS + object, true);
            races.release(thread, ALL_OBJECTS);
        }
    }

    /// Orders the running thread after all earlier users of any kernel object. `releases` says
    /// whether later calls of this function are ordered after the thread.
    pub fn order_by_all_objects(&mut self, releases: bool) {
        if self.checks_races() {
            let thread = self.thread.number;
            let races = Arc::make_mut(&mut self.memory.races);
            races.synchronise(thread, ALL_OBJECTS, releases);
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
        // A kernel access concerns memory that the program passed to the library, so it does not
        // belong to the library.
        let is_library = !access.by_kernel && self.is_in_library();
        let is_constant = |object: &crate::memory::Object| object.kind == ObjectKind::Constant;
        if self.memory.near(address).is_none_or(is_constant) {
            return Ok(());
        }
        let mut stack = None;
        for granule in checked_granules(address, end) {
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

    /// Returns whether the running instruction belongs to the C library.
    pub(crate) fn is_in_library(&self) -> bool {
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

    #[test]
    fn at_most_so_many_granules_are_checked() {
        assert_eq!(checked_granules(7, 9), 0..=1);
        assert_eq!(checked_granules(8, 16), 1..=1);
        let most = MAX_GRANULES * GRANULE;
        assert_eq!(checked_granules(0, most), 0..=MAX_GRANULES - 1);
        assert_eq!(checked_granules(0, most + 1), 0..=MAX_GRANULES - 1);
        assert_eq!(checked_granules(u64::MAX - 1, u64::MAX).count(), 1);
    }
}
