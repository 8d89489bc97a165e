//! The guest's address space: the addresses of globals, functions, stack slots and heap blocks.
//!
//! Every object has a slot of its own. The size of a slot is a power of two that leaves a gap
//! around the object. The size class and index of the slot are bits of every address inside it, so
//! finding the object of an address takes two shifts. Slots are only numbers: gaps cost no memory.

/// Position of the class in an address: each class has 2 TiB.
pub const CLASS_SHIFT: u32 = 41;
/// The smallest slot is 4 KiB, so that an index that is off by less hits no other object.
pub const MIN_CLASS: u32 = 12;
/// The largest slot is 1 TiB.
pub const MAX_CLASS: u32 = 40;
/// Number of entries of a table that is indexed by class.
pub const CLASS_COUNT: usize = MAX_CLASS as usize + 1;
/// Addresses of functions: `FUNCTION_BASE + id * FUNCTION_STRIDE`.
pub const FUNCTION_BASE: u64 = 1 << CLASS_SHIFT;
/// Distance of two function addresses.
pub const FUNCTION_STRIDE: u64 = 16;
/// Addresses of basic blocks (`blockaddress`).
pub const BLOCK_BASE: u64 = 2 << CLASS_SHIFT;

/// Minimum number of free bytes before and after an object in its slot.
const GAP: u64 = 64;
/// Number of start offsets of objects in their slots. They vary, so that a program that hashes
/// pointers does not see the same low bits everywhere.
const JITTER_STEPS: u64 = 32;

/// A slot: size class (log2 of its size) and index within the class.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slot {
    /// Log2 of the slot's size.
    pub class: u32,
    /// Index among the slots of this class.
    pub index: u32,
}

impl Slot {
    /// Returns the slot that contains `address`, whether or not there is an object. `None` for
    /// addresses that no object can have: the null page, functions, non-canonical addresses.
    #[inline(always)]
    pub fn of(address: u64) -> Option<Slot> {
        let class = (address >> CLASS_SHIFT) as u32;
        if !(MIN_CLASS..=MAX_CLASS).contains(&class) {
            return None;
        }
        let index = (address & ((1 << CLASS_SHIFT) - 1)) >> class;
        Some(Slot {
            class,
            index: index as u32,
        })
    }

    /// Returns the first address of the slot.
    pub fn base(self) -> u64 {
        (u64::from(self.class) << CLASS_SHIFT) | (u64::from(self.index) << self.class)
    }

    /// Returns the start address of an object with this alignment in the slot.
    pub fn start(self, align: u64) -> u64 {
        self.base() + offset_in_slot(u64::from(self.index), align)
    }
}

/// Returns the number of slots in a class.
pub fn slots_in(class: u32) -> u64 {
    // An index has 32 bits; in practice no class needs more.
    1u64 << (CLASS_SHIFT - class).min(31)
}

fn offset_in_slot(index: u64, align: u64) -> u64 {
    (GAP + 16 * (index.wrapping_mul(5) % JITTER_STEPS)).next_multiple_of(align.max(16))
}

/// Returns the class whose slots hold an object of this size and alignment with gaps around it;
/// `None` if it is larger than any slot.
pub fn class_for(size: u64, align: u64) -> Option<u32> {
    let worst_offset = (GAP + 16 * (JITTER_STEPS - 1)).checked_next_multiple_of(align.max(16))?;
    // The gap after a large object grows with it: an index that is wrong by a factor of two still
    // falls into the gap.
    let needed = worst_offset
        .checked_add(size)?
        .checked_add((size / 2).max(GAP))?;
    let class = needed
        .checked_next_power_of_two()?
        .trailing_zeros()
        .max(MIN_CLASS);
    (class <= MAX_CLASS).then_some(class)
}

/// Returns the address of a function.
pub fn function_address(function: u32) -> u64 {
    FUNCTION_BASE + u64::from(function) * FUNCTION_STRIDE
}

/// Returns the function at this address.
pub fn function_at(address: u64) -> Option<u32> {
    let offset = address.checked_sub(FUNCTION_BASE)?;
    (offset < (1 << 36) && offset % FUNCTION_STRIDE == 0)
        .then_some((offset / FUNCTION_STRIDE) as u32)
}

/// Returns the function before whose code an address is, and which of the two words there it is the
/// address of.
pub fn before_function(address: u64) -> Option<(u32, usize)> {
    let offset = address.checked_add(8)?.checked_sub(FUNCTION_BASE)?;
    let word = match offset % FUNCTION_STRIDE {
        0 => 0,
        4 => 1,
        _ => return None,
    };
    (offset < (1 << 36)).then_some(((offset / FUNCTION_STRIDE) as u32, word))
}

/// Returns the address of a basic block, for `blockaddress` and `indirectbr`.
pub fn block_address(function: u32, block: u32) -> u64 {
    BLOCK_BASE + (u64::from(function) << 20) + u64::from(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_inside_an_object_names_its_slot() {
        for (size, align) in [
            (1, 1),
            (16, 16),
            (4096, 4096),
            (100_000, 64),
            (1 << 30, 1 << 21),
        ] {
            let class = class_for(size, align).unwrap();
            for index in [0, 1, 7, 1000] {
                let slot = Slot { class, index };
                let start = slot.start(align);
                assert_eq!(start % align, 0);
                assert_eq!(Slot::of(start), Some(slot));
                assert_eq!(Slot::of(start + size + 63), Some(slot));
                assert_eq!(Slot::of(start - 64), Some(slot));
            }
        }
    }

    #[test]
    fn null_and_functions_are_in_no_slot() {
        assert_eq!(Slot::of(0), None);
        assert_eq!(Slot::of(4096), None);
        assert_eq!(Slot::of(function_address(12)), None);
        assert_eq!(function_at(function_address(12)), Some(12));
        assert_eq!(function_at(function_address(12) + 1), None);
        assert_eq!(before_function(function_address(12) - 8), Some((12, 0)));
        assert_eq!(before_function(function_address(12) - 4), Some((12, 1)));
        assert_eq!(before_function(function_address(12)), None);
        assert_eq!(Slot::of(u64::MAX), None);
    }

    #[test]
    fn too_large_is_said() {
        assert_eq!(class_for(1 << 50, 16), None);
        assert_eq!(class_for(u64::MAX, 16), None);
    }
}
