//! The write log: the last write to each part of memory, kept on request. Reports use it
//! to show which line set a value.

use std::collections::BTreeMap;

use crate::stacks::StackId;

/// Granularity of the log in bytes.
const GRANULE: u64 = 8;
/// Granules of one write that are remembered.
const MAX_GRANULES: u64 = 4096;
/// Granules that are remembered in all. What was forgotten is not said; nothing wrong is.
const MAX_REMEMBERED: usize = 1 << 20;

/// Where the memory of a process was written last, for each granule the stacks
/// of the last writes to its bytes.
#[derive(Clone, Debug, Default)]
pub struct WriteLog {
    last: BTreeMap<u64, [Option<StackId>; GRANULE as usize]>,
    /// It is full: a later write would be missing, so nothing is said any more.
    is_full: bool,
}

impl WriteLog {
    pub(crate) fn record(&mut self, address: u64, len: u64, stack: Option<StackId>) {
        if self.is_full {
            return;
        }
        let end = address.saturating_add(len.min(MAX_GRANULES * GRANULE));
        for byte in address..end {
            let granule = self.last.entry(byte / GRANULE).or_default();
            granule[(byte % GRANULE) as usize] = stack;
        }
        if self.last.len() > MAX_REMEMBERED {
            self.last = BTreeMap::new();
            self.is_full = true;
        }
    }

    /// The stacks of the last writes to these bytes, each once, in the order of addresses.
    pub fn of(&self, address: u64, len: u64) -> Vec<StackId> {
        let end = address.saturating_add(len.min(MAX_GRANULES * GRANULE));
        let mut stacks = Vec::new();
        for byte in address..end {
            let granule = self.last.get(&(byte / GRANULE));
            let stack = granule.and_then(|granule| granule[(byte % GRANULE) as usize]);
            stacks.extend(stack.filter(|stack| !stacks.contains(stack)));
        }
        stacks
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
}
