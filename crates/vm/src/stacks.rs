//! Call stacks as small numbers, so that every allocation can say where it came from.
//!
//! The table belongs to a worker, like the arena of terms: states hold only the numbers.

use crate::image::ImageId;
use everett_ir::code::{FunctionId, Pc};
use std::collections::HashMap;
use std::num::NonZeroU32;

/// A call stack.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StackId(NonZeroU32);

/// One frame of a stack: the instruction that is executed or that called.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallSite {
    /// The program.
    pub image: ImageId,
    /// The function.
    pub function: FunctionId,
    /// The instruction.
    pub pc: Pc,
}

/// All call stacks that were asked for, each a site and the stack below it.
#[derive(Default, Debug)]
pub struct StackTable {
    entries: Vec<(Option<StackId>, CallSite)>,
    known: HashMap<(Option<StackId>, CallSite), StackId>,
}

impl StackTable {
    /// The stack that has `site` on top of `below`.
    pub fn push(&mut self, below: Option<StackId>, site: CallSite) -> StackId {
        *self.known.entry((below, site)).or_insert_with(|| {
            self.entries.push((below, site));
            StackId(NonZeroU32::MIN.saturating_add(self.entries.len() as u32 - 1))
        })
    }

    /// The sites of a stack, innermost first.
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
