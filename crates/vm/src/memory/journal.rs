//! The journal of an object: its last writes at symbolic offsets, and its content before them.
//!
//! A write at a symbolic offset changes each byte that it may hit. A read at a symbolic
//! offset would have to choose among all of these; with the journal it chooses among the
//! writes, and the content before them. The journal is valid while the object has the
//! content that the last of the writes left. It shares that content, so any other write
//! makes a copy first, by which it is known.

use everett_expr::ExprId;

/// More writes than this begin a new journal.
const MAX_WRITES: usize = 64;

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
}

impl<C> Journal<C> {
    /// An empty journal.
    pub(super) fn new(before: C) -> Journal<C> {
        Journal {
            before,
            writes: Vec::new(),
            after: None,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.writes.len() >= MAX_WRITES
    }
}
