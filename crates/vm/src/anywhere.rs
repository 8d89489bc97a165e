//! Unconstrained pointers: pointers without a constant part, which may point to any object, any
//! function, or nowhere.
//!
//! All addresses that hit no object are one finding. Each object that the pointer may hit is a path
//! of its own.

use everett_expr::ExprId;
use everett_ir::address;

use crate::access::AccessTarget;
use crate::bug::{Bug, BugKind};
use crate::memory::AccessFault;
use crate::value::Value;
use crate::vm::{Interrupt, Vm};

/// Pointers with more candidate objects than this are concretised instead, because the query would
/// be too large.
const MAX_OBJECTS: usize = 4096;
/// Addresses below this are null pointers, possibly with a small offset.
const NULL_END: u64 = 0x10000;

impl Vm<'_> {
    /// Resolves an access whose pointer has no constant part that identifies the object.
    pub(crate) fn resolve_anywhere(
        &mut self,
        term: ExprId,
        len: u64,
        write: bool,
    ) -> Result<AccessTarget, Interrupt> {
        let (min, max) = self.arena.unsigned_range(term);
        let objects = self.memory.live_between(min, max, len);
        if max - min <= self.options.max_positions || objects.len() > MAX_OBJECTS {
            let value = Value {
                bits: 0,
                term: Some(term),
            };
            let address = self.concretize(value)?;
            self.check_range(address, len, write)?;
            return Ok(AccessTarget::At(address));
        }
        self.forbid_null(term, len, write)?;
        let mut any = self.arena.bool_constant(false);
        for &(start, size) in &objects {
            let inside = self.inside(term, start, size - len);
            any = self.arena.or(any, inside);
        }
        if !self.decide_term(any)? {
            let verb = if write { "write" } else { "read" };
            let message = format!(
                "{verb} of {} at a symbolic address, where nothing is",
                crate::bug::bytes(len)
            );
            return Err(Bug::new(BugKind::WildPointer, message).into());
        }
        let (mut first, mut end) = (0, objects.len());
        while end - first > 1 {
            let middle = first + (end - first) / 2;
            let border = self.arena.constant(64, objects[middle].0);
            let below = self.arena.ult(term, border);
            if self.decide_term(below)? {
                end = middle;
            } else {
                first = middle;
            }
        }
        let (start, size) = objects[first];
        self.resolve_within(term, start, size, len, write)
    }

    fn forbid_null(&mut self, term: ExprId, len: u64, write: bool) -> Result<(), Interrupt> {
        let end = self.arena.constant(64, NULL_END);
        let is_null = self.arena.ult(term, end);
        if !self.decide_term(is_null)? {
            return Ok(());
        }
        let fault = AccessFault {
            address: 0,
            len,
            write,
        };
        Err(self.memory.explain(fault).into())
    }

    /// `start <= term <= start + last`.
    fn inside(&mut self, term: ExprId, start: u64, last: u64) -> ExprId {
        let base = self.arena.constant(64, start);
        let offset = self.arena.sub(term, base);
        let last = self.arena.constant(64, last);
        self.arena.ule(offset, last)
    }

    /// Concretises a function pointer, one path per function. All other addresses are one finding.
    pub(crate) fn concretize_function(&mut self, pointer: Value) -> Result<u64, Interrupt> {
        let Some(term) = pointer.term else {
            return Ok(pointer.bits);
        };
        let (min, max) = self.arena.unsigned_range(term);
        let count = self.image.program().functions.len() as u64;
        if max - min > count * address::FUNCTION_STRIDE && count > 0 {
            let last = (count - 1) * address::FUNCTION_STRIDE;
            let among = self.inside(term, address::FUNCTION_BASE, last);
            let low = self.arena.constant(64, address::FUNCTION_STRIDE - 1);
            let rest = self.arena.and(term, low);
            let beside = self.arena.is_nonzero(rest);
            let aligned = self.arena.not(beside);
            let is_function = self.arena.and(among, aligned);
            if !self.decide_term(is_function)? {
                let message = "call of a symbolic address, which is no function";
                return Err(Bug::new(BugKind::InvalidCall, message).into());
            }
        }
        self.concretize(pointer)
    }
}
