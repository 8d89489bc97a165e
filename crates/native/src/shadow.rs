//! The shadow memory of a checked build, which writes of the kernel must respect, too.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::gate;

/// Start of the shadow.
pub const SHADOW_START: u64 = 0x7fff_8000;
/// Size of the shadow.
pub const SHADOW_SIZE: u64 = 1 << 44;
/// The part of the shadow that would shadow itself: start and size.
pub const SHADOW_GAP: (u64, u64) = ((SHADOW_START >> 3) + SHADOW_START, SHADOW_SIZE >> 3);
const HEAP_FREED: u8 = 0xfd;
const AFTER_RETURN: u8 = 0xf5;
const AFTER_SCOPE: u8 = 0xf8;

/// Returns the first poisoned address of a range, and the kind of error. Before the shadow exists,
/// nothing is poisoned.
pub fn first_poisoned(memory: &File, address: u64, size: usize) -> Option<(u64, &'static str)> {
    let end = address.checked_add(size as u64)?;
    let first = address >> 3;
    let count = ((end + 7) >> 3).checked_sub(first)? as usize;
    // One more byte of the shadow shows what follows a partly used granule.
    let mut shadow = vec![0; count + 1];
    memory
        .read_exact_at(&mut shadow, first + SHADOW_START)
        .ok()?;
    let bad = (address..end).find(|at| {
        let value = shadow[((at >> 3) - first) as usize];
        value != 0 && (value > 7 || (at & 7) as u8 >= value)
    })?;
    let at = ((bad >> 3) - first) as usize;
    let why = if shadow[at] < 8 {
        shadow[at + 1]
    } else {
        shadow[at]
    };
    let kind = match why {
        HEAP_FREED => "use-after-free",
        AFTER_RETURN => "use-after-return",
        AFTER_SCOPE => "use-after-scope",
        _ => "out-of-bounds",
    };
    Some((bad, kind))
}

/// Base of the shadow of builds that track initialisation: a set bit marks an uninitialised bit.
const INITIALISATION_SHADOW: u64 = 0x5000_0000_0000;

/// Marks memory that the kernel writes as initialised.
pub fn mark_initialised(memory: &File, address: u64, size: usize) {
    let shadow = address ^ INITIALISATION_SHADOW;
    if gate::overlaps(shadow, size as u64) {
        return;
    }
    // Before the shadow exists, everything counts as initialised.
    let _ = memory.write_all_at(&vec![0; size], shadow);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_behind_a_block_are_found() {
        let file = tempfile::tempfile().unwrap();
        let block = 0x1000;
        // 12 bytes, then a gap.
        file.write_all_at(&[0, 4, 0xfa, 0xfa], SHADOW_START + (block >> 3))
            .unwrap();
        assert_eq!(first_poisoned(&file, block, 12), None);
        assert_eq!(
            first_poisoned(&file, block, 13),
            Some((block + 12, "out-of-bounds"))
        );
        assert_eq!(first_poisoned(&file, block + 8, 4), None);
        assert_eq!(
            first_poisoned(&file, block + 16, 1),
            Some((block + 16, "out-of-bounds"))
        );
    }
}
