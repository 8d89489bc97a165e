//! Detection of decisions on uninitialised memory, enabled on request.
//!
//! The content of a new stack slot or heap block is then a symbolic input that belongs to no trace.
//! A program may copy it and compute with it, as with padding; a branch or address that depends on
//! it is a finding.

use std::collections::HashMap;

use everett_expr::{Arena, ArrayId, BinaryOp, CompareOp, ExprId, Node, Variable};

use crate::bug::{Bug, BugKind};
use crate::options::VmOptions;
use crate::value::Value;
use crate::vm::{Interrupt, Vm};

/// Ordinal of these inputs, distinct from the inputs of paths, which count from 0.
const ORDINAL: u32 = u32::MAX;
/// Ordinal of the inputs that are the content of new memory when decisions on it are not checked.
const ANY_ORDINAL: u32 = u32::MAX - 1;
const NAME: &str = "uninitialised";
/// Maximum number of bytes of an object that are tracked.
const MAX_TRACKED: u64 = 1 << 16;
/// Maximum number of distinct contents of memory at one address. The limit keeps a program that
/// calls functions forever from creating ever more arrays.
const MAX_ARRAYS: u32 = 256;

impl Vm<'_> {
    /// Marks the bytes of a new object from offset `from` on as uninitialised.
    pub(crate) fn mark_uninitialised(&mut self, start: u64, from: u64) {
        let VmOptions {
            check_uninitialised: is_checked,
            symbolic_memory: is_symbolic,
            ..
        } = self.options;
        if !is_checked && !is_symbolic {
            return;
        }
        let size = MAX_TRACKED as u32;
        let array = match is_checked {
            true => self.arena.array(ORDINAL, NAME, size),
            // Objects are independent of each other, also of later objects at the same address.
            false => {
                let count = &mut self.memory.unwritten;
                *count = (*count + 1) % MAX_ARRAYS;
                let name = format!("memory {start:x}.{count}");
                self.arena.array(ANY_ORDINAL, &name, size)
            }
        };
        let Some(object) = self.memory.object_at_mut(start, 0) else {
            return;
        };
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

    /// Returns a value with zeros for uninitialised bytes, for a reader that may ignore or copy
    /// them.
    pub fn zero_uninitialised(&mut self, value: Value) -> Value {
        match value.term {
            Some(term) if self.options.check_uninitialised => {
                let shadow = shadow(self.arena, term);
                Value::of_term(self.arena, shadow.value)
            }
            _ => value,
        }
    }

    /// Returns the lowest bits of a value, for a reader that ignores the bits above.
    pub fn low_bits(&mut self, value: Value, bits: u32) -> Value {
        match value.term {
            Some(term) if self.arena.width(term) > bits => {
                let term = self.arena.extract(term, 0, bits);
                Value::of_term(self.arena, term)
            }
            _ => value,
        }
    }

    /// Reports a term that a decision depends on if it depends on uninitialised memory; returns the
    /// term without uninitialised bytes.
    ///
    /// Whether the term depends on uninitialised memory may itself be symbolic: `memset` of a
    /// symbolic length writes each byte or does not. The path on which it does ends with the
    /// finding.
    pub(crate) fn initialised(&mut self, term: ExprId) -> Result<ExprId, Interrupt> {
        if !self.options.check_uninitialised {
            return Ok(term);
        }
        let support = self.arena.support(term);
        let is_unwritten =
            |variable: &Variable| self.arena.array_info(variable.array).ordinal == ORDINAL;
        if !support.variables().iter().any(is_unwritten) {
            return Ok(term);
        }
        let Shadow { value, unknown } = shadow(self.arena, term);
        let depends = self.arena.is_nonzero(unknown);
        let depends = match self.arena.as_const(depends) {
            Some(bit) => bit != 0,
            None => {
                self.asks();
                self.oracle.branch(self.arena, depends)?
            }
        };
        if depends {
            let message = "a decision depends on uninitialised memory";
            return Err(Bug::new(BugKind::Uninitialised, message).into());
        }
        Ok(value)
    }
}

/// The shadow of a term. Neither part refers to uninitialised memory.
#[derive(Copy, Clone)]
struct Shadow {
    /// The term, with zeros for uninitialised bytes.
    value: ExprId,
    /// The bits of the term that depend on uninitialised bytes; of the same width.
    unknown: ExprId,
}

/// Computes the shadow of a term, with operands before the terms that use them.
fn shadow(arena: &mut Arena, root: ExprId) -> Shadow {
    let mut done: HashMap<ExprId, Shadow> = HashMap::new();
    let mut stack = vec![root];
    while let Some(&term) = stack.last() {
        let node = arena.node(term);
        let before = stack.len();
        stack.extend(node.children().filter(|child| !done.contains_key(child)));
        if stack.len() > before {
            continue;
        }
        stack.pop();
        if done.contains_key(&term) {
            continue;
        }
        let of = |operand: ExprId| done[&operand];
        let new = shadow_of_node(arena, term, node, of);
        done.insert(term, new);
    }
    done[&root]
}

/// Returns the shadow of a byte of an array: unknown if the array stands for uninitialised memory.
fn shadow_of_read(arena: &mut Arena, term: ExprId, array: ArrayId) -> Shadow {
    let width = arena.width(term);
    let zero = arena.zero(width);
    match arena.array_info(array).ordinal != ORDINAL {
        true => Shadow {
            value: term,
            unknown: zero,
        },
        false => Shadow {
            value: zero,
            unknown: arena.all_ones(width),
        },
    }
}

fn shadow_of_node(
    arena: &mut Arena,
    term: ExprId,
    node: Node,
    of: impl Fn(ExprId) -> Shadow,
) -> Shadow {
    let width = arena.width(term);
    if let Node::Read { array, .. } = node {
        return shadow_of_read(arena, term, array);
    }
    let is_known = |arena: &Arena, operand: ExprId| {
        arena
            .as_const_limbs(of(operand).unknown)
            .is_some_and(|limbs| limbs.iter().all(|limb| *limb == 0))
    };
    if node.children().all(|operand| is_known(arena, operand)) {
        let value = match node.children().all(|operand| of(operand).value == operand) {
            true => term,
            false => arena.rebuild(node, width, |operand| of(operand).value),
        };
        return Shadow {
            value,
            unknown: arena.zero(width),
        };
    }
    let value = arena.rebuild(node, width, |operand| of(operand).value);
    let unknown = match node {
        Node::Not { e } => of(e).unknown,
        Node::Ite { c, a, b } => {
            let arm = arena.ite(of(c).value, of(a).unknown, of(b).unknown);
            let all = arena.all_ones(width);
            let zero = arena.zero(width);
            let other = arena.ite(of(c).unknown, all, zero);
            arena.or(arm, other)
        }
        Node::Extract { .. }
        | Node::Concat { .. }
        | Node::ZeroExtend { .. }
        | Node::SignExtend { .. } => arena.rebuild(node, width, |operand| of(operand).unknown),
        Node::Binary {
            op: BinaryOp::And,
            a,
            b,
        } => unknown_of_and(arena, of(a), of(b), false),
        Node::Binary {
            op: BinaryOp::Or,
            a,
            b,
        } => unknown_of_and(arena, of(a), of(b), true),
        Node::Binary {
            op: BinaryOp::Xor,
            a,
            b,
        } => arena.or(of(a).unknown, of(b).unknown),
        // Unknown bits move with the others.
        Node::Binary {
            op: op @ (BinaryOp::Shl | BinaryOp::LShr | BinaryOp::AShr),
            a,
            b,
        } if is_known(arena, b) => arena.binary(op, of(a).unknown, of(b).value),
        Node::Compare {
            op: CompareOp::Eq,
            a,
            b,
        } => unknown_of_equal(arena, of(a), of(b)),
        _ => {
            let mut any = arena.bool_constant(false);
            for operand in node.children() {
                let part = arena.is_nonzero(of(operand).unknown);
                any = arena.or(any, part);
            }
            arena.sext(any, width)
        }
    };
    Shadow { value, unknown }
}

/// Returns the unknown bits of a conjunction or disjunction. A bit of a conjunction is known if it
/// is known in both operands, or is known to be 0 in one; for a disjunction, to be 1.
fn unknown_of_and(arena: &mut Arena, a: Shadow, b: Shadow, is_or: bool) -> ExprId {
    let mut unknown = arena.or(a.unknown, b.unknown);
    for side in [a, b] {
        let decides = if is_or {
            side.value
        } else {
            arena.not(side.value)
        };
        let known = arena.not(side.unknown);
        let decided = arena.and(known, decides);
        let open = arena.not(decided);
        unknown = arena.and(unknown, open);
    }
    unknown
}

/// Returns whether the equality of two terms is unknown: it is known if a bit that is known in both
/// differs.
fn unknown_of_equal(arena: &mut Arena, a: Shadow, b: Shadow) -> ExprId {
    let unknown = arena.or(a.unknown, b.unknown);
    let known = arena.not(unknown);
    let differs = arena.binary(BinaryOp::Xor, a.value, b.value);
    let differs = arena.and(differs, known);
    let differs = arena.is_nonzero(differs);
    let unknown = arena.is_nonzero(unknown);
    let same = arena.not(differs);
    arena.and(unknown, same)
}
