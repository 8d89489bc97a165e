//! Congruences: terms of the same shape are equal where their parts are equal.
//!
//! Two hashes of two keys are equal if the keys are. A circuit does not say so: a SAT solver has to
//! prove it bit by bit, through both multipliers. So it is told.

use everett_expr::{Arena, BinaryOp, ExprId, Node, TableId};
use rustc_hash::{FxHashMap, FxHashSet};

/// Maximum number of terms of one kind that are compared with one another.
const MAX_OF_KIND: usize = 12;
/// Maximum number of congruences.
const MAX_CONGRUENCES: usize = 128;
/// Maximum number of subterms that are walked, of pairs of subterms that are compared, and of pairs
/// of parts in which two terms differ.
const MAX_WALKED: usize = 1 << 14;
const MAX_COMPARED: usize = 256;
const MAX_PARTS: usize = 16;

/// Two terms that are equal if their parts are, pair by pair.
pub struct Congruence {
    pub one: ExprId,
    pub other: ExprId,
    pub parts: Vec<(ExprId, ExprId)>,
}

/// What is the same in all terms of a kind: the operator, the width, and the table or the constant
/// operand, if any.
type Kind = (Option<BinaryOp>, Option<TableId>, u32, u64);

/// Returns congruences of those parts of the terms whose circuits are large.
pub fn congruences(arena: &Arena, terms: &[ExprId]) -> Vec<Congruence> {
    let mut found = Vec::new();
    for kind in large_parts(arena, terms) {
        for (at, &one) in kind.iter().enumerate() {
            for &other in &kind[..at] {
                if found.len() == MAX_CONGRUENCES {
                    return found;
                }
                let parts = differences(arena, one, other);
                found.extend(parts.map(|parts| Congruence { one, other, parts }));
            }
        }
    }
    found
}

/// Returns products, quotients, remainders and entries of tables in the terms, by kind.
fn large_parts(arena: &Arena, terms: &[ExprId]) -> Vec<Vec<ExprId>> {
    let mut number: FxHashMap<Kind, usize> = FxHashMap::default();
    let mut kinds: Vec<Vec<ExprId>> = Vec::new();
    let mut seen = FxHashSet::default();
    let mut stack = terms.to_vec();
    while let Some(e) = stack.pop() {
        if !seen.insert(e) {
            continue;
        }
        if seen.len() > MAX_WALKED {
            break;
        }
        let node = arena.node(e);
        stack.extend(node.children());
        let Some(kind) = kind_of(arena, e) else {
            continue;
        };
        let at = *number.entry(kind).or_insert(kinds.len());
        if at == kinds.len() {
            kinds.push(Vec::new());
        }
        if kinds[at].len() < MAX_OF_KIND {
            kinds[at].push(e);
        }
    }
    kinds
}

fn kind_of(arena: &Arena, e: ExprId) -> Option<Kind> {
    use BinaryOp::{Mul, SDiv, SRem, UDiv, URem};
    let width = arena.width(e);
    match arena.node(e) {
        Node::Binary { op, b, .. } if matches!(op, Mul | UDiv | URem | SDiv | SRem) => {
            Some((Some(op), None, width, arena.as_const(b).unwrap_or(0)))
        }
        Node::Select { table, .. } => Some((None, Some(table), width, 0)),
        _ => None,
    }
}

/// Returns the pairs of parts in which two terms of the same width differ; `None` if there are too
/// many, or if nothing else is in both.
fn differences(arena: &Arena, one: ExprId, other: ExprId) -> Option<Vec<(ExprId, ExprId)>> {
    let mut parts = Vec::new();
    let mut seen = FxHashSet::default();
    let mut stack = vec![(one, other)];
    while let Some((x, y)) = stack.pop() {
        if x == y || !seen.insert((x, y)) {
            continue;
        }
        if seen.len() > MAX_COMPARED {
            return None;
        }
        if is_same_operation(arena, x, y) {
            stack.extend(arena.node(x).children().zip(arena.node(y).children()));
            continue;
        }
        // Different constants are never equal.
        if arena.is_const(x) && arena.is_const(y) || parts.len() == MAX_PARTS {
            return None;
        }
        parts.push((x, y));
    }
    (!parts.contains(&(one, other))).then_some(parts)
}

/// Returns whether two terms are equal if their operands are.
fn is_same_operation(arena: &Arena, x: ExprId, y: ExprId) -> bool {
    let same = match (arena.node(x), arena.node(y)) {
        (Node::Binary { op: one, .. }, Node::Binary { op: other, .. }) => one == other,
        (Node::Compare { op: one, .. }, Node::Compare { op: other, .. }) => one == other,
        (Node::Extract { low: one, .. }, Node::Extract { low: other, .. }) => one == other,
        (Node::Select { table: one, .. }, Node::Select { table: other, .. }) => one == other,
        (Node::Not { .. }, Node::Not { .. })
        | (Node::Ite { .. }, Node::Ite { .. })
        | (Node::Concat { .. }, Node::Concat { .. })
        | (Node::ZeroExtend { .. }, Node::ZeroExtend { .. })
        | (Node::SignExtend { .. }, Node::SignExtend { .. }) => true,
        _ => false,
    };
    let widths = |e: ExprId| arena.node(e).children().map(|child| arena.width(child));
    same && widths(x).eq(widths(y))
}
