//! The write log: the last write to each byte of memory, kept on request. Reports use it to show
//! which line set a value.

use std::collections::BTreeMap;

use crate::stacks::StackId;

/// Granularity of the log in bytes.
const GRANULE: u64 = 8;
/// Maximum number of granules of one write that are logged. The bytes of a larger write beyond it
/// keep their earlier entries.
const MAX_GRANULES: u64 = 4096;
/// Maximum number of granules in the log. A log that would exceed it is dropped, because it would
/// miss later writes.
const MAX_REMEMBERED: usize = 1 << 20;

/// The last writes to the memory of a process: for each granule the call stacks of the last writes
/// to its bytes.
#[derive(Clone, Debug, Default)]
pub struct WriteLog {
    last: BTreeMap<u64, [Option<StackId>; GRANULE as usize]>,
    /// Whether the log exceeded its limit. Later writes would be missing, so the log stays empty.
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

    /// Returns the stacks of the last writes to these bytes, each once, in the order of addresses.
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
