//! Bounds on the values of terms, computed from the values that each byte may still have.

use everett_expr::{Arena, BinaryOp, ExprId, Node, Variable, scalar};
use rustc_hash::FxHashMap;

use crate::domains::Domains;

/// Maximum number of parts of a term that are visited.
const MAX_WALKED: usize = 1 << 10;

/// Integers from `low` to `high`. A term of width `w` has such an interval if each of its values is equal to one of
/// these integers modulo 2^w: sums, differences and products of intervals are then intervals, too, whatever signs the
/// program gives to the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    pub low: i128,
    pub high: i128,
}

impl Interval {
    pub fn contains(self, value: i128) -> bool {
        self.low <= value && value <= self.high
    }

    /// Returns the integers of `width` bits without a sign.
    fn all(width: u32) -> Interval {
        Interval {
            low: 0,
            high: (1 << width) - 1,
        }
    }

    /// Returns the interval, or all integers of this width if there are not fewer in it.
    fn bounded(low: i128, high: i128, width: u32) -> Interval {
        if high - low < (1 << width) - 1 {
            Interval { low, high }
        } else {
            Interval::all(width)
        }
    }

    /// Returns an interval of the same values that has no negative integers and none above the width.
    pub fn unsigned(self, width: u32) -> Interval {
        let all = Interval::all(width);
        if all.contains(self.low) && all.contains(self.high) {
            self
        } else {
            all
        }
    }

    /// Returns an interval of the same values as integers of this width with a sign.
    pub fn signed(self, width: u32) -> Interval {
        let all = Interval {
            low: -(1 << (width - 1)),
            high: (1 << (width - 1)) - 1,
        };
        if all.contains(self.low) && all.contains(self.high) {
            self
        } else {
            all
        }
    }

    /// Returns the interval of all products, which may be wider than any word. `None` if a product does not fit.
    pub fn product(self, other: Interval) -> Option<Interval> {
        let ends = [self.low, self.high];
        let mut products = [0; 4];
        for (at, product) in products.iter_mut().enumerate() {
            let factor = if at < 2 { other.low } else { other.high };
            *product = ends[at % 2].checked_mul(factor)?;
        }
        Some(Interval {
            low: products.into_iter().min()?,
            high: products.into_iter().max()?,
        })
    }
}

/// Computes intervals of terms under the values of `domains`.
pub struct Intervals<'a> {
    arena: &'a Arena,
    domains: &'a Domains,
    known: FxHashMap<ExprId, Interval>,
}

impl<'a> Intervals<'a> {
    pub fn new(arena: &'a Arena, domains: &'a Domains) -> Intervals<'a> {
        Intervals {
            arena,
            domains,
            known: FxHashMap::default(),
        }
    }

    /// Sets the interval of a term, which is not computed from its parts then.
    pub fn set(&mut self, e: ExprId, interval: Interval) {
        self.known.insert(e, interval);
    }

    /// Returns the interval of a term of at most 64 bits; `None` if it has too many parts.
    pub fn of(&mut self, root: ExprId) -> Option<Interval> {
        if let Some(&interval) = self.known.get(&root) {
            return Some(interval);
        }
        let mut stack = vec![root];
        while let Some(&e) = stack.last() {
            let before = stack.len();
            // Parts of wider terms are bounded without the domains.
            let parts = self.arena.node(e).children();
            let parts = parts.filter(|&part| self.arena.width(part) <= 64);
            stack.extend(parts.filter(|part| !self.known.contains_key(part)));
            if stack.len() > before {
                continue;
            }
            stack.pop();
            if self.known.len() > MAX_WALKED {
                return None;
            }
            let interval = self.node(e);
            self.known.insert(e, interval);
        }
        self.known.get(&root).copied()
    }

    fn node(&self, e: ExprId) -> Interval {
        let width = self.arena.width(e);
        self.exact(e, width).unwrap_or_else(|| {
            let (low, high) = self.arena.unsigned_range(e);
            Interval {
                low: low.into(),
                high: high.into(),
            }
        })
    }

    /// Returns the interval of a node that is computed from its parts.
    fn exact(&self, e: ExprId, width: u32) -> Option<Interval> {
        let known = |part: ExprId| self.known.get(&part).copied();
        match self.arena.node(e) {
            Node::Constant { .. } => {
                let value = i128::from(self.arena.as_const(e)?);
                let sign = 1 << (width - 1);
                let low = if value & sign == 0 {
                    value
                } else {
                    value - 2 * sign
                };
                Some(Interval { low, high: low })
            }
            Node::Read { array, index } => self.byte(Variable { array, index }),
            Node::ZeroExtend { e } => Some(known(e)?.unsigned(self.arena.width(e))),
            Node::SignExtend { e } => Some(known(e)?.signed(self.arena.width(e))),
            Node::Concat { hi, lo } => {
                let shift = self.arena.width(lo);
                let (hi, lo) = (
                    known(hi)?.unsigned(width - shift),
                    known(lo)?.unsigned(shift),
                );
                let (low, high) = ((hi.low << shift) + lo.low, (hi.high << shift) + lo.high);
                Some(Interval { low, high })
            }
            Node::Extract { e, low: 0 } => {
                let whole = known(e)?;
                Some(Interval::bounded(whole.low, whole.high, width))
            }
            Node::Ite { a, b, .. } => {
                let (a, b) = (known(a)?, known(b)?);
                Some(Interval::bounded(
                    a.low.min(b.low),
                    a.high.max(b.high),
                    width,
                ))
            }
            Node::Binary { op, a, b } => binary(op, known(a)?, known(b)?, width),
            _ => None,
        }
    }

    fn byte(&self, variable: Variable) -> Option<Interval> {
        let values = &self.domains.values()[self.domains.number(variable)?];
        Some(Interval {
            low: (*values.first()?).into(),
            high: (*values.last()?).into(),
        })
    }
}

fn binary(op: BinaryOp, a: Interval, b: Interval, width: u32) -> Option<Interval> {
    let (low, high) = match op {
        BinaryOp::Add => (a.low + b.low, a.high + b.high),
        BinaryOp::Sub => (a.low - b.high, a.high - b.low),
        BinaryOp::Mul => {
            let product = a.product(b)?;
            (product.low, product.high)
        }
        BinaryOp::Shl if b.low == b.high && (0..i128::from(width)).contains(&b.low) => {
            let product = a.product(Interval {
                low: 1 << b.low,
                high: 1 << b.low,
            })?;
            (product.low, product.high)
        }
        _ => return None,
    };
    Some(Interval::bounded(low, high, width))
}

/// Returns the bits of an integer as a word of this width.
pub fn bits(value: i128, width: u32) -> u64 {
    value as u64 & scalar::mask(width)
}
