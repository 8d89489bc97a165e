//! The memory check before large writes: an instruction on a large range checks that there is
//! memory for its result before it allocates any, and is suspended if there is none.

use std::cell::Cell;

use crate::memory::{MEMORY_OF_SYMBOLIC, Object, PAGE, made_bytes};
use crate::vm::{Interrupt, Vm};

thread_local! {
    /// What the last instruction needed that was suspended on this thread.
    static NEEDED: Cell<u64> = const { Cell::new(0) };
}

/// Returns how many bytes the last instruction needed that was suspended on this thread, once.
pub fn take_needed_bytes() -> u64 {
    NEEDED.take()
}

/// Memory that a term of an input takes in the arena, with its place in a list.
const MEMORY_OF_INPUT: u64 = 64;

/// Returns an upper bound of the symbolic bytes in a range: all bytes of a page that has a symbolic
/// one.
fn symbolic_bytes(object: &Object, address: u64, len: u64) -> u64 {
    let mut symbolic = 0;
    object.for_each_piece(address - object.start, len, |piece, len| {
        if piece.is_some_and(|(buffer, _)| !buffer.is_concrete()) {
            symbolic += len as u64;
        }
    });
    symbolic
}

impl Vm<'_> {
    /// Suspends an instruction that needs this many bytes of memory if the limit does not allow
    /// them.
    pub fn need_room(&self, bytes: u64) -> Result<(), Interrupt> {
        if made_bytes().saturating_add(bytes) <= self.options.most_made {
            return Ok(());
        }
        NEEDED.set(bytes);
        Err(Interrupt::Suspend)
    }

    /// Checks the memory for an instruction that makes a range symbolic.
    pub(crate) fn need_room_for_input(&self, len: u64) -> Result<(), Interrupt> {
        if len <= PAGE as u64 {
            return Ok(());
        }
        self.need_room(len.saturating_mul(MEMORY_OF_SYMBOLIC + MEMORY_OF_INPUT))
    }

    /// Checks the memory for an instruction that fills a range with zeros: pages that do not exist
    /// are zero anyway.
    pub(crate) fn need_room_to_clear(&mut self, address: u64, len: u64) -> Result<(), Interrupt> {
        self.need_room_for_pages(address, len, Object::shared)
    }

    /// Checks the memory for an instruction that writes a range. Pages that no other state shares
    /// already exist. As long as states share the object itself, its pages have one owner.
    pub(crate) fn need_room_to_write(&mut self, address: u64, len: u64) -> Result<(), Interrupt> {
        self.need_room_for_pages(address, len, Object::unowned)
    }

    /// Checks the memory for an instruction that writes a range of an object. `made` returns the
    /// size of the pages that it makes or copies for a range, given by its offset and its length.
    fn need_room_for_pages(
        &mut self,
        address: u64,
        len: u64,
        made: fn(&Object, u64, u64) -> u64,
    ) -> Result<(), Interrupt> {
        if len <= PAGE as u64 || self.need_room(len).is_ok() {
            return Ok(());
        }
        let object = self.memory.object_at_mut(address, len);
        let bytes = object.map(|object| made(object, address - object.start, len));
        self.need_room(bytes.unwrap_or(0))
    }

    /// Checks the memory for an instruction that fills a range with a symbolic byte.
    pub(crate) fn need_room_to_fill(&mut self, address: u64, len: u64) -> Result<(), Interrupt> {
        if len <= PAGE as u64
            || self
                .need_room(len.saturating_mul(MEMORY_OF_SYMBOLIC))
                .is_ok()
        {
            return Ok(());
        }
        let Some(object) = self.memory.object_at_mut(address, len) else {
            return Ok(());
        };
        // Bytes that are already symbolic need no more memory.
        let concrete = len - symbolic_bytes(object, address, len);
        let more = concrete.saturating_mul(MEMORY_OF_SYMBOLIC);
        let more = more.max(object.unowned(address - object.start, len));
        self.need_room(more)
    }

    /// Checks the memory for an instruction that copies a range, including symbolic bytes. Pages
    /// with the same alignment are shared, not copied, except those of mappings. Within an object,
    /// the range is copied twice.
    pub(crate) fn need_room_to_copy(
        &mut self,
        to: u64,
        from: u64,
        len: u64,
    ) -> Result<(), Interrupt> {
        let (target, source) = (self.memory.near(to), self.memory.object_at(from, len));
        let (Some(target), Some(source)) = (target, source) else {
            return Ok(());
        };
        let page = PAGE as u64;
        let is_same = target.start == source.start;
        let are_mappings = target.region().is_some() || source.region().is_some();
        let is_aligned = (to - target.start) % page == (from - source.start) % page;
        let is_shared = is_aligned && !are_mappings && !is_same;
        let most = len.saturating_mul(2 * MEMORY_OF_SYMBOLIC);
        if is_shared || len <= page || self.need_room(most).is_ok() {
            return Ok(());
        }
        match symbolic_bytes(source, from, len) {
            0 if is_same => self.need_room(len.saturating_mul(2)),
            0 => self.need_room_to_write(to, len),
            many => {
                let copy = len + many.saturating_mul(MEMORY_OF_SYMBOLIC);
                self.need_room(copy.saturating_mul(1 + u64::from(is_same)))
            }
        }
    }
}
