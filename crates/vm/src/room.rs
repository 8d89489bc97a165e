//! The memory check before large writes: an instruction on a large range checks that there is
//! memory for its result before it allocates any, and is suspended if there is none.

use crate::memory::{MEMORY_OF_SYMBOLIC, Object, PAGE, made_bytes};
use crate::vm::{Interrupt, Vm};

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
        match made_bytes().saturating_add(bytes) > self.options.most_made {
            true => Err(Interrupt::Suspend),
            false => Ok(()),
        }
    }

    /// Checks the memory for an instruction that writes a range. Pages that no other state shares
    /// already exist. As long as states share the object itself, its pages have one owner.
    pub(crate) fn need_room_to_write(&mut self, address: u64, len: u64) -> Result<(), Interrupt> {
        if len <= PAGE as u64 || self.need_room(len).is_ok() {
            return Ok(());
        }
        let object = self.memory.object_at_mut(address, len);
        let missing = object.map(|object| object.unowned(address - object.start, len));
        self.need_room(missing.unwrap_or(0))
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
    /// with the same alignment are shared, not copied.
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
        let is_shared = (to - target.start) % page == (from - source.start) % page;
        let most = len.saturating_mul(MEMORY_OF_SYMBOLIC);
        if is_shared || len <= page || self.need_room(most).is_ok() {
            return Ok(());
        }
        match symbolic_bytes(source, from, len) {
            0 => self.need_room_to_write(to, len),
            many => self.need_room(len + many.saturating_mul(MEMORY_OF_SYMBOLIC)),
        }
    }
}
