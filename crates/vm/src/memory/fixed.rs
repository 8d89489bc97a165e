//! Memory objects at addresses that the program chose (`klee_define_fixed_object`), such as device
//! registers.
//!
//! They are outside of all slots, so the slot of an address still identifies its object. They may
//! also be in the null page, where nothing can be mapped.

use everett_ir::address::FUNCTION_BASE;
use triomphe::Arc;

use super::object::{Object, ObjectKind};
use super::{Memory, Tables, mapping};
use crate::stacks::StackId;

impl Tables {
    fn fixed_index(&self, address: u64) -> Option<usize> {
        let behind = self.fixed.partition_point(|object| object.start <= address);
        let at = behind.checked_sub(1)?;
        (address - self.fixed[at].start < self.fixed[at].size).then_some(at)
    }

    /// Returns the fixed object that contains this address.
    pub(super) fn fixed_at(&self, address: u64) -> Option<&Object> {
        self.fixed_index(address).map(|at| &self.fixed[at])
    }

    /// Returns the fixed object that contains this address, for writing.
    pub(super) fn fixed_at_mut(&mut self, address: u64) -> Option<&mut Object> {
        let at = self.fixed_index(address)?;
        self.fixed.get_mut(at)
    }

    /// Returns whether a fixed object has bytes in this range.
    pub(super) fn has_fixed(&self, start: u64, len: u64) -> bool {
        let mut all = self.fixed.iter();
        all.any(|object| {
            object.start < start.saturating_add(len) && start < object.start + object.size
        })
    }
}

impl Memory {
    /// Places an object of zeros at this address. The error is the reason why this is impossible.
    pub fn place(
        &mut self,
        start: u64,
        size: u64,
        by: Option<StackId>,
    ) -> Result<(), &'static str> {
        let end = start.checked_add(size).filter(|_| start > 0 && size > 0);
        let end = end.ok_or("no object can be there")?;
        if end > FUNCTION_BASE && (start < mapping::HIGH_START || end > mapping::HIGH_END) {
            return Err("the addresses belong to Everett's own objects");
        }
        if self.tables.has_fixed(start, size) {
            return Err("another fixed object is there");
        }
        // The null page cannot be mapped, so nothing else is there.
        let mapped = self.mappings_in(start.max(mapping::LOW_START), size);
        if end > mapping::LOW_START && mapped.is_none_or(|all| !all.is_empty()) {
            return Err("a mapping is there");
        }
        let mut object = Object::zeroed(start, size, ObjectKind::Fixed);
        object.allocated = by;
        let fixed = &mut Arc::make_mut(&mut self.tables).fixed;
        let at = fixed.partition_point(|other| other.start < start);
        fixed.insert(at, object);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;
    use everett_expr::Arena;

    #[test]
    fn fixed_objects_are_found_by_address_and_have_bounds() {
        let (mut memory, mut arena) = (Memory::empty(), Arena::new());
        memory.place(0x80, 4, None).unwrap();
        memory.place(0x4000_0000, 8192, None).unwrap();
        for (address, written) in [(0x80, 10), (0x4000_1ffc, 11)] {
            let stored = memory.store(&mut arena, address, 4, Value::concrete(written));
            stored.unwrap();
            let read = memory.load(&mut arena, address, 4).unwrap();
            assert_eq!(read.as_concrete(), Some(written));
            assert!(memory.load(&mut arena, address + 1, 4).is_err());
        }
        assert!(memory.load(&mut arena, 0x7f, 1).is_err());
        assert_eq!(memory.live_between(0, 0x1000, 1), [(0x80, 4)]);
        assert!(
            !memory.is_free(0x4000_1000, 4096),
            "nothing is mapped over it"
        );
    }

    #[test]
    fn an_object_that_cannot_be_placed_is_refused() {
        let mut memory = Memory::empty();
        memory.place(0x2000_0000, 16, None).unwrap();
        for (start, size) in [
            (0, 4),
            (0x80, 0),
            (u64::MAX - 2, 8),
            (0x2000_000f, 4),
            (0x1fff_fffe, 4),
            (everett_ir::address::FUNCTION_BASE - 1, 2),
            (0x1800_0000_0000, 4),
        ] {
            assert!(
                memory.place(start, size, None).is_err(),
                "{start:#x}, {size}"
            );
        }
    }
}
