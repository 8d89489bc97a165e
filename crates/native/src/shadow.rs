//! The shadow of a checked build, as its runtime keeps it: what the kernel writes for a program has to fit too.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Where it begins.
pub const SHADOW_START: u64 = 0x7fff_8000;
/// Addresses that it takes.
pub const SHADOW_SIZE: u64 = 1 << 44;
/// The part of it that would be about itself: where it starts and how long it is.
pub const SHADOW_GAP: (u64, u64) = ((SHADOW_START >> 3) + SHADOW_START, SHADOW_SIZE >> 3);
const HEAP_FREED: u8 = 0xfd;
const AFTER_RETURN: u8 = 0xf5;
const AFTER_SCOPE: u8 = 0xf8;

/// The first address of a range that the program may not use, and the kind of the error. Where there is no shadow
/// yet, all may be used.
pub fn first_bad(memory: &File, address: u64, size: usize) -> Option<(u64, &'static str)> {
    let end = address.checked_add(size as u64)?;
    let first = address >> 3;
    let count = ((end + 7) >> 3).checked_sub(first)? as usize;
    // One more says what a partly used byte of the shadow is followed by.
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
        AFTER_RETURN | AFTER_SCOPE => "use-after-return",
        _ => "out-of-bounds",
    };
    Some((bad, kind))
}

/// Where builds that know what was written keep it: a bit of the shadow is set where a bit is not known.
const WRITTEN: u64 = 0x5000_0000_0000;

/// The kernel writes to memory of a program that knows what was written.
pub fn mark_written(memory: &File, address: u64, size: usize) {
    // Before it has a shadow, all counts as written.
    let _ = memory.write_all_at(&vec![0; size], address ^ WRITTEN);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_behind_a_block_are_found() {
        let file = tempfile::tempfile().unwrap();
        let block = 0x1000;
        // 12 bytes, and then a gap.
        file.write_all_at(&[0, 4, 0xfa, 0xfa], SHADOW_START + (block >> 3))
            .unwrap();
        assert_eq!(first_bad(&file, block, 12), None);
        assert_eq!(
            first_bad(&file, block, 13),
            Some((block + 12, "out-of-bounds"))
        );
        assert_eq!(first_bad(&file, block + 8, 4), None);
        assert_eq!(
            first_bad(&file, block + 16, 1),
            Some((block + 16, "out-of-bounds"))
        );
    }
}
