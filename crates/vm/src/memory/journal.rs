//! The journal of an object: its last writes at symbolic offsets, and its content before them.
//!
//! A write at a symbolic offset changes each byte that it may hit. A read at a symbolic
//! offset would have to choose among all of these; with the journal it chooses among the
//! writes, and the content before them. Bytes that were changed in any other way since the
//! journal began are *dirty*: there a read takes what the object holds. The journal shares the
//! content that the last of its writes left, so any other write makes a copy first, and the bytes
//! that differ are the dirty ones.

use everett_expr::ExprId;
use std::collections::BTreeSet;

/// More writes than this begin a new journal.
const MAX_WRITES: usize = 64;
/// A journal with more dirty bytes says too little.
pub(super) const MAX_DIRTY: usize = 256;

/// A write of bytes at a symbolic offset.
#[derive(Copy, Clone, Debug)]
pub struct SymbolicWrite {
    /// The offset in the object, a 64-bit term.
    pub offset: ExprId,
    /// The bytes, as one term.
    pub value: ExprId,
    /// Number of bytes.
    pub len: usize,
}

/// Writes at symbolic offsets, with the content before and after them.
#[derive(Clone, Debug)]
pub struct Journal<C> {
    pub(super) before: C,
    pub(super) writes: Vec<SymbolicWrite>,
    /// `None` before the first write.
    pub(super) after: Option<C>,
    /// Offsets of bytes that other writes changed before the last one.
    pub(super) dirty: BTreeSet<u64>,
}

/// What a journal says about an object.
pub struct JournaledWrites<O> {
    /// The object before the writes.
    pub before: O,
    /// The writes, in their order.
    pub writes: Vec<SymbolicWrite>,
    /// Offsets of bytes that were changed otherwise.
    pub dirty: BTreeSet<u64>,
}

impl<C> Journal<C> {
    /// An empty journal.
    pub(super) fn new(before: C) -> Journal<C> {
        Journal {
            before,
            writes: Vec::new(),
            after: None,
            dirty: BTreeSet::new(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.writes.len() >= MAX_WRITES
    }
}
