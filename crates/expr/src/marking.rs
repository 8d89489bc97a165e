//! Marks the terms that are still referred to, so that the arena can free all others.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;

use crate::arena::Arena;
use crate::hash::FastHasher;
use crate::node::ExprId;

/// A visitor of the terms of a data structure whose parts may be shared.
pub trait VisitTerms {
    /// Visits a term.
    fn term(&mut self, term: ExprId);

    /// Returns whether the terms of the part at this address are not visited yet. States share most
    /// of their parts, so each part is visited once: visiting all of every state would touch a
    /// multiple of their memory.
    fn is_new(&mut self, address: usize) -> bool {
        let _ = address;
        true
    }
}

impl<F: FnMut(ExprId)> VisitTerms for F {
    fn term(&mut self, term: ExprId) {
        self(term);
    }
}

/// A marking in progress. Visited data must not move meanwhile: its parts are identified by their
/// addresses.
pub struct Marking<'a> {
    arena: &'a Arena,
    marked: Vec<bool>,
    /// Marked terms whose children are not marked yet.
    stack: Vec<ExprId>,
    visited: HashSet<usize, BuildHasherDefault<FastHasher>>,
}

/// A set of terms of an arena that are referred to.
pub struct Marks(Vec<bool>);

impl Arena {
    /// Frees all terms that are not reachable from the live ones. Ids of live terms do not change;
    /// freed ids are reused. Returns the number of freed terms.
    pub fn sweep(&mut self, live: impl Iterator<Item = ExprId>) -> usize {
        let mut marking = Marking::new(self);
        live.for_each(|term| marking.term(term));
        let marks = marking.finish();
        self.sweep_unmarked(&marks)
    }

    /// Like [`Arena::sweep`], for live terms that are marked already.
    pub fn sweep_unmarked(&mut self, Marks(marked): &Marks) -> usize {
        self.free_unmarked(marked)
    }
}

impl<'a> Marking<'a> {
    /// Starts a marking in which no term is marked.
    pub fn new(arena: &'a Arena) -> Marking<'a> {
        Marking {
            arena,
            marked: vec![false; arena.bound()],
            stack: Vec::new(),
            visited: HashSet::default(),
        }
    }

    /// Returns the marked terms.
    pub fn finish(self) -> Marks {
        Marks(self.marked)
    }
}

impl VisitTerms for Marking<'_> {
    fn term(&mut self, term: ExprId) {
        if self.marked[term.index()] {
            return;
        }
        self.stack.push(term);
        while let Some(term) = self.stack.pop() {
            if !std::mem::replace(&mut self.marked[term.index()], true) {
                self.stack.extend(self.arena.node(term).children());
            }
        }
    }

    fn is_new(&mut self, address: usize) -> bool {
        self.visited.insert(address)
    }
}
