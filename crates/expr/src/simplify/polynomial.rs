//! Equality of polynomials by expanding both sides to a canonical form. Decides commutativity,
//! associativity and distributivity of multiplication, which bit-blasting does not. Terms are not
//! stored in expanded form, because that makes chains such as hashes expensive to solve.

use super::linear::mask;
use crate::arena::Arena;
use crate::node::{BinaryOp, ExprId, Node};
use std::collections::BTreeMap;

const MAX_MONOMIALS: usize = 48;
const MAX_DEGREE: usize = 8;
const MAX_DEPTH: u32 = 24;
/// Maximum number of nodes that one comparison may visit.
const MAX_VISITS: u32 = 200;

/// Coefficients of products; a product is its sorted factors, the empty product is the constant.
type Polynomial = BTreeMap<Vec<ExprId>, u128>;

struct Expansion<'a> {
    arena: &'a Arena,
    mask: u128,
    visits: u32,
}

impl Expansion<'_> {
    fn single(&self, monomial: Vec<ExprId>, coefficient: u128) -> Polynomial {
        let coefficient = coefficient & self.mask;
        let entry = (coefficient != 0).then_some((monomial, coefficient));
        entry.into_iter().collect()
    }

    fn add(&self, mut a: Polynomial, b: Polynomial, factor: u128) -> Option<Polynomial> {
        for (monomial, coefficient) in b {
            let entry = a.entry(monomial).or_insert(0);
            *entry = entry.wrapping_add(coefficient.wrapping_mul(factor)) & self.mask;
        }
        a.retain(|_, coefficient| *coefficient != 0);
        (a.len() <= MAX_MONOMIALS).then_some(a)
    }

    fn multiply(&self, a: &Polynomial, b: &Polynomial) -> Option<Polynomial> {
        let mut product = Polynomial::new();
        if a.len() * b.len() > 4 * MAX_MONOMIALS {
            return None;
        }
        for (x, p) in a {
            for (y, q) in b {
                let mut monomial = [&x[..], &y[..]].concat();
                if monomial.len() > MAX_DEGREE {
                    return None;
                }
                monomial.sort_unstable();
                let entry = product.entry(monomial).or_insert(0);
                *entry = entry.wrapping_add(p.wrapping_mul(*q)) & self.mask;
            }
        }
        product.retain(|_, coefficient| *coefficient != 0);
        (product.len() <= MAX_MONOMIALS).then_some(product)
    }

    fn of(&mut self, e: ExprId, depth: u32) -> Option<Polynomial> {
        self.visits += 1;
        if self.visits > MAX_VISITS {
            return None;
        }
        if let Some(bits) = self.arena.as_const_u128(e) {
            return Some(self.single(Vec::new(), bits));
        }
        if depth == MAX_DEPTH {
            return Some(self.single(vec![e], 1));
        }
        match self.arena.node(e) {
            Node::Binary {
                op: BinaryOp::Add,
                a,
                b,
            } => {
                let (a, b) = (self.of(a, depth + 1)?, self.of(b, depth + 1)?);
                self.add(a, b, 1)
            }
            Node::Binary {
                op: BinaryOp::Sub,
                a,
                b,
            } => {
                let (a, b) = (self.of(a, depth + 1)?, self.of(b, depth + 1)?);
                self.add(a, b, u128::MAX)
            }
            Node::Binary {
                op: BinaryOp::Mul,
                a,
                b,
            } => {
                let (a, b) = (self.of(a, depth + 1)?, self.of(b, depth + 1)?);
                self.multiply(&a, &b)
            }
            Node::Not { e } => {
                let inner = self.of(e, depth + 1)?;
                self.add(self.single(Vec::new(), u128::MAX), inner, u128::MAX)
            }
            _ => match self.arena.as_shifted(e) {
                Some((x, shift)) => {
                    let inner = self.of(x, depth + 1)?;
                    self.add(Polynomial::new(), inner, 1 << shift)
                }
                None => Some(self.single(vec![e], 1)),
            },
        }
    }
}

impl Arena {
    /// Returns whether there is a product of two unknowns near the root of a term.
    fn has_product(&self, e: ExprId, depth: u32) -> bool {
        match self.node(e) {
            Node::Binary {
                op: BinaryOp::Mul, ..
            } => true,
            Node::Binary {
                op: BinaryOp::Add | BinaryOp::Sub,
                a,
                b,
            } => depth > 0 && (self.has_product(a, depth - 1) || self.has_product(b, depth - 1)),
            Node::Not { e } => depth > 0 && self.has_product(e, depth - 1),
            _ => match self.as_shifted(e) {
                Some((x, _)) => depth > 0 && self.has_product(x, depth - 1),
                None => false,
            },
        }
    }

    /// Returns whether the terms always differ (`true`) or are always equal (`false`) as
    /// polynomials, if that can be decided.
    pub(super) fn polynomials_differ(&self, a: ExprId, b: ExprId) -> Option<bool> {
        let width = self.width(a);
        if width > 128 || !(self.has_product(a, 4) || self.has_product(b, 4)) {
            return None;
        }
        let mut expansion = Expansion {
            arena: self,
            mask: mask(width),
            visits: 0,
        };
        let (a, b) = (expansion.of(a, 0)?, expansion.of(b, 0)?);
        let difference = expansion.add(a, b, u128::MAX)?;
        match difference.first_key_value() {
            None => Some(false),
            Some((monomial, _)) if monomial.is_empty() && difference.len() == 1 => Some(true),
            _ => None,
        }
    }
}
