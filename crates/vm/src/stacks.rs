//! Interned call stacks: each is a small number, so that every allocation can record its stack.
//!
//! The table belongs to a worker, like the term arena; states contain only the numbers.

use everett_ir::code::{FunctionId, Pc};
use rustc_hash::FxHashMap;
use std::num::NonZeroU32;

/// An interned call stack.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StackId(NonZeroU32);

/// One frame of a call stack: the running instruction or the call in progress.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallSite {
    /// The program.
    pub image: ImageId,
    /// The function.
    pub function: FunctionId,
    /// The instruction.
    pub pc: Pc,
}

/// The table of interned call stacks; each entry is a site and the stack below it.
#[derive(Default, Debug)]
pub struct StackTable {
    entries: Vec<(Option<StackId>, CallSite)>,
    known: FxHashMap<(Option<StackId>, CallSite), StackId>,
}

impl StackTable {
    /// Interns the stack with `site` on top of `below`.
    pub fn push(&mut self, below: Option<StackId>, site: CallSite) -> StackId {
        *self.known.entry((below, site)).or_insert_with(|| {
            self.entries.push((below, site));
            StackId(NonZeroU32::MIN.saturating_add(self.entries.len() as u32 - 1))
        })
    }

    /// Returns the sites of a stack, innermost first.
    pub fn sites(&self, stack: StackId) -> Vec<CallSite> {
        let mut sites = Vec::new();
        let mut next = Some(stack);
        while let Some(id) = next {
            let (below, site) = self.entries[id.0.get() as usize - 1];
            sites.push(site);
            next = below;
        }
        sites
    }
}

/// Index of a program among the programs of a run.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ImageId(pub u16);
