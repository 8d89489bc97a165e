//! Detection of decisions on uninitialised memory, enabled on request.
//!
//! The content of a new stack slot or heap block is then a symbolic input that belongs to no trace.
//! A program may copy it and compute with it, as with padding; a branch or address that depends on
//! it is a finding.

use everett_expr::ExprId;

use crate::bug::{Bug, BugKind};
use crate::value::Value;
use crate::vm::{Interrupt, Vm};

/// Ordinal of these inputs, distinct from the inputs of paths, which count from 0.
const ORDINAL: u32 = u32::MAX;
const NAME: &str = "uninitialised";
/// Only this many bytes of a larger object are tracked.
const MAX_TRACKED: u64 = 1 << 16;

impl Vm<'_> {
    /// Marks the bytes of a new object from offset `from` on as uninitialised.
    pub(crate) fn mark_uninitialised(&mut self, start: u64, from: u64) {
        if !self.options.check_uninitialised {
            return;
        }
        let Some(object) = self.memory.object_at_mut(start, 0) else {
            return;
        };
        let array = self.arena.array(ORDINAL, NAME, MAX_TRACKED as u32);
        for at in from..object.size.min(MAX_TRACKED) {
            let byte = self.arena.read(array, at as u32);
            object.store(
                self.arena,
                at,
                1,
                Value {
                    bits: 0,
                    term: Some(byte),
                },
            );
        }
    }

    /// Reports a question whose answer depends on uninitialised memory.
    pub(crate) fn forbid_uninitialised(&mut self, term: ExprId) -> Result<(), Interrupt> {
        if !self.options.check_uninitialised {
            return Ok(());
        }
        let support = self.arena.support(term);
        let unwritten = support
            .variables()
            .iter()
            .any(|variable| self.arena.array_info(variable.array).ordinal == ORDINAL);
        if !unwritten {
            return Ok(());
        }
        let message = "a decision depends on uninitialised memory";
        Err(Bug::new(BugKind::Uninitialised, message).into())
    }
}
