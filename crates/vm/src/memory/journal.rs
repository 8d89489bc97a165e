//! The journal of an object: its last writes at symbolic offsets, and its content before them.
//!
//! A write at a symbolic offset changes each byte that it may hit. A later read at a symbolic
//! offset would have to select among all of these bytes; with the journal it selects among the
//! writes and the content before them. Bytes that any other write changed after the journal began
//! are *dirty*: for these a read takes the current content of the object. The journal shares the
//! content after its last write, so any other write copies it first (copy on write), and the bytes
//! that differ are the dirty ones.

use everett_expr::ExprId;
use std::collections::BTreeSet;

/// Maximum number of writes; the next write begins a new journal.
const MAX_WRITES: usize = 64;
/// Maximum number of dirty bytes; with more, the journal saves too little and is not used.
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

/// The writes at symbolic offsets, with the content before and after them.
#[derive(Clone, Debug)]
pub struct Journal<C> {
    pub(super) before: C,
    pub(super) writes: Vec<SymbolicWrite>,
    /// The content after the last write; `None` before the first one.
    pub(super) after: Option<C>,
    /// Offsets of bytes that other writes changed before the last one.
    pub(super) dirty: BTreeSet<u64>,
}

/// The journal of an object, as a read uses it.
pub struct JournaledWrites<O> {
    /// The object before the writes.
    pub before: O,
    /// The writes, in their order.
    pub writes: Vec<SymbolicWrite>,
    /// Offsets of bytes that other writes changed.
    pub dirty: BTreeSet<u64>,
}

impl<C> Journal<C> {
    /// Creates an empty journal.
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
