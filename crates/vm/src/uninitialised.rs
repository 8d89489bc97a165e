//! Decisions on memory that was never written, where the user asks for them to be found.
//!
//! What a new stack slot or heap block holds is then a symbolic input that belongs to no trace. It may be copied and
//! computed with, as programs do with padding; a question about it is a finding.

use everett_expr::ExprId;

use crate::bug::{Bug, BugKind};
use crate::value::Value;
use crate::vm::{Interrupt, Vm};

/// Stands apart from all inputs of paths, which are numbered from 0.
const ORDINAL: u32 = u32::MAX;
const NAME: &str = "uninitialised";
/// Larger objects are tracked up to here.
const MAX_TRACKED: u64 = 1 << 16;

impl Vm<'_> {
    /// Marks the bytes of a new object from `from` on as never written.
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

    /// Refuses a question whose answer depends on memory that was never written.
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
        let message = "the program decides on memory that was never written";
        Err(Bug::new(BugKind::Uninitialised, message).into())
    }
}
