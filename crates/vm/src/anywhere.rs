//! Resolution of unconstrained pointers: pointers without a constant part, which may point to any
//! object, any function, or nowhere.
//!
//! All addresses that hit no object are one finding. The vm forks one path for each object that the
//! pointer may hit.

use everett_expr::{ExprId, Node};
use everett_ir::address;
use everett_ir::code::{Code, FunctionId};

use crate::access::AccessTarget;
use crate::bug::{Bug, BugKind};
use crate::memory::AccessFault;
use crate::value::Value;
use crate::vm::{Interrupt, Vm};

/// Pointers with more candidate objects than this are concretised instead, because the query would
/// be too large.
const MAX_OBJECTS: usize = 4096;
/// Terms with more nodes than this are not searched for constants.
const MAX_LEAVES: usize = 4096;
/// A pointer with at most this many values is concretised.
const MAX_VALUES: u64 = 1024;
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
        if max - min <= MAX_VALUES || objects.len() > MAX_OBJECTS {
            let value = Value {
                bits: 0,
                term: Some(term),
            };
            let address = self.concretize(value)?;
            self.check_range(address, len, write)?;
            return Ok(AccessTarget::At(address));
        }
        // If the program placed an object there, it is not a null page.
        if objects.first().is_none_or(|(start, _)| *start >= NULL_END) {
            self.forbid_null(term, len, write)?;
        }
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

    /// Concretises a function pointer, one path per function that it can legally point to. All
    /// other addresses are one finding.
    pub(crate) fn concretize_function(
        &mut self,
        pointer: Value,
        arguments: usize,
    ) -> Result<u64, Interrupt> {
        let Some(term) = pointer.term else {
            return Ok(pointer.bits);
        };
        let image = self.image;
        let takes = |address: &u64| {
            let code = address::function_at(*address).and_then(|id| image.code(FunctionId(id)));
            code.is_none_or(|code| code.parameter_registers as usize <= arguments)
        };
        let functions: Vec<u64> = image.pointed_to().iter().copied().filter(takes).collect();
        let message = "call of a symbolic address, which is not a function";
        self.concretize_among(term, &functions, BugKind::InvalidCall, message)
    }

    /// Concretises the target of a computed jump, one path per label. All other addresses are one
    /// finding.
    pub(crate) fn concretize_label(
        &mut self,
        address: Value,
        code: &Code,
    ) -> Result<u64, Interrupt> {
        let Some(term) = address.term else {
            return Ok(address.bits);
        };
        let labels: Vec<u64> = code.block_addresses.keys().copied().collect();
        let message = "jump to a symbolic address, which is not a label";
        self.concretize_among(term, &labels, BugKind::BadJump, message)
    }

    /// Concretises an address to one of these targets, which are sorted. All other addresses are
    /// one finding.
    fn concretize_among(
        &mut self,
        term: ExprId,
        targets: &[u64],
        kind: BugKind,
        message: &str,
    ) -> Result<u64, Interrupt> {
        let (zeros, ones) = self.arena.known_bits(term);
        let (min, max) = self.arena.unsigned_range(term);
        let leaves = self.constant_leaves(term);
        let possible = |target: &u64| {
            target & zeros == 0
                && target & ones == ones
                && (min..=max).contains(target)
                && leaves.as_ref().is_none_or(|leaves| leaves.contains(target))
        };
        let targets: Vec<u64> = targets.iter().copied().filter(possible).collect();
        let mut legal = self.arena.bool_constant(false);
        for target in &targets {
            let target = self.arena.constant(64, *target);
            let hit = self.arena.eq(term, target);
            legal = self.arena.or(legal, hit);
        }
        if !self.decide_term(legal)? {
            return Err(Bug::new(kind, message).into());
        }
        let (mut first, mut end) = (0, targets.len());
        while end - first > 1 {
            let middle = first + (end - first) / 2;
            let border = self.arena.constant(64, targets[middle]);
            let below = self.arena.ult(term, border);
            if self.decide_term(below)? {
                end = middle;
            } else {
                first = middle;
            }
        }
        targets.get(first).copied().ok_or(Interrupt::EndPath)
    }

    /// Returns the values of a term that selects among a few constants.
    fn constant_leaves(&self, term: ExprId) -> Option<Vec<u64>> {
        let mut leaves = Vec::new();
        let mut open = vec![term];
        let mut visited = 0;
        while let Some(term) = open.pop() {
            visited += 1;
            match self.arena.node(term) {
                Node::Constant { bits } => leaves.push(bits),
                Node::Ite { a, b, .. } if visited < MAX_LEAVES => open.extend([a, b]),
                _ => return None,
            }
        }
        Some(leaves)
    }
}
