//! The write log: the last write to each byte of memory, kept on request. Reports use it to show
//! which line set a value.

use std::collections::{BTreeMap, BTreeSet};

use crate::stacks::StackId;

/// Maximum number of ranges in the log. A log that would exceed it is dropped, because it would miss
/// later writes.
const MAX_RANGES: usize = 1 << 20;

/// The last writes to the memory of a process: disjoint ranges of bytes, each with the call stack of
/// the last write to it.
#[derive(Clone, Debug, Default)]
pub struct WriteLog {
    /// By the first byte: the end, and the stack.
    last: BTreeMap<u64, (u64, StackId)>,
    /// Whether the log exceeded its limit. Later writes would be missing, so the log stays empty.
    is_full: bool,
}

impl WriteLog {
    pub(crate) fn record(&mut self, address: u64, len: u64, stack: Option<StackId>) {
        if self.is_full || len == 0 {
            return;
        }
        let (mut from, mut end) = (address, address.saturating_add(len));
        self.forget(from, end);
        let Some(stack) = stack else { return };
        // Neighbours with the same writer become one range, so that a loop over an array needs one.
        let before = self.last.range(..from).next_back();
        if let Some((start, _)) = before.filter(|(_, range)| **range == (from, stack)) {
            from = *start;
        }
        if self.last.get(&end).is_some_and(|range| range.1 == stack)
            && let Some(after) = self.last.remove(&end)
        {
            end = after.0;
        }
        self.last.insert(from, (end, stack));
        if self.last.len() > MAX_RANGES {
            self.last = BTreeMap::new();
            self.is_full = true;
        }
    }

    /// Removes what is known about these bytes.
    fn forget(&mut self, from: u64, end: u64) {
        let before = self.last.range(..from).next_back();
        let reaching = before.filter(|(_, range)| range.0 > from);
        if let Some((start, (until, stack))) = reaching.map(|(start, range)| (*start, *range)) {
            self.last.insert(start, (from, stack));
            self.last.insert(from, (until, stack));
        }
        while let Some((start, _)) = self.last.range(from..end).next() {
            let start = *start;
            let Some((until, stack)) = self.last.remove(&start) else {
                return;
            };
            if until > end {
                self.last.insert(end, (until, stack));
            }
        }
    }

    /// Returns the stacks of the last writes to these bytes, each once, in the order of addresses.
    pub fn of(&self, address: u64, len: u64) -> Vec<StackId> {
        let end = address.saturating_add(len);
        let before = self.last.range(..address).next_back();
        let before = before.filter(|(_, range)| range.0 > address && len > 0);
        let ranges = before.into_iter().chain(self.last.range(address..end));
        let mut seen = BTreeSet::new();
        let stacks = ranges.map(|(_, range)| range.1);
        stacks.filter(|stack| seen.insert(*stack)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::ImageId;
    use crate::stacks::{CallSite, StackTable};
    use everett_ir::code::FunctionId;

    #[test]
    fn the_last_write_of_each_byte_is_known() {
        let mut stacks = StackTable::default();
        let mut at = |pc| {
            let (image, function) = (ImageId(0), FunctionId(0));
            stacks.push(
                None,
                CallSite {
                    image,
                    function,
                    pc,
                },
            )
        };
        let (first, second) = (at(1), at(2));
        let mut log = WriteLog::default();
        log.record(14, 8, Some(first));
        assert_eq!(log.of(14, 8), [first]);
        log.record(16, 2, Some(second));
        assert_eq!(log.of(14, 8), [first, second]);
        assert_eq!(log.of(16, 2), [second]);
        assert_eq!(log.of(22, 8), []);
    }
    #[test]
    fn a_large_write_replaces_all_earlier_ones() {
        const LARGE: u64 = 1 << 20;
        let mut stacks = StackTable::default();
        let [first, second, third] = [1, 2, 3].map(|pc| {
            let (image, function) = (ImageId(0), FunctionId(0));
            let site = CallSite {
                image,
                function,
                pc,
            };
            stacks.push(None, site)
        });
        let mut log = WriteLog::default();
        for at in [0, LARGE / 2, LARGE - 4] {
            log.record(at, 8, Some(first));
        }
        log.record(0, LARGE, Some(second));
        assert_eq!(log.of(0, LARGE), [second]);
        assert_eq!(log.of(LARGE / 2, 8), [second]);
        assert_eq!(log.of(LARGE - 4, 8), [second, first]);
        // A write in the middle leaves both sides; one by an unknown line is the last one, too.
        log.record(100, 4, Some(third));
        log.record(200, 4, None);
        assert_eq!(log.of(96, 12), [second, third]);
        assert_eq!(log.of(200, 4), []);
        assert_eq!(log.of(199, 6), [second]);
        assert_eq!(log.of(100, 0), []);
        // Bytes that one line writes one after the other take one range.
        let ranges = log.last.len();
        for at in 300..400 {
            log.record(at, 1, Some(third));
        }
        assert_eq!(log.last.len(), ranges + 2);
        assert_eq!(log.of(300, 100), [third]);
    }
}
