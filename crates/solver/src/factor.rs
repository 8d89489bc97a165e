//! Decides whether a product can have a given value. A SAT solver has to try factors bit by bit, also where nothing can
//! overflow: then the factors are divisors of the value, which are few, and each pair of them is an easy query. Whether a
//! sum with products can have a value is often refuted by the bounds of both sides.

use everett_expr::{Arena, BinaryOp, CompareOp, ExprId, Node, Support};

use crate::cache::Query;
use crate::chain::{Solver, solution};
use crate::config::Layer;
use crate::domains::Domains;
use crate::intervals::{Intervals, bits};
use crate::model::Model;
use crate::verdict::Verdict;

/// Maximum number of pairs of factors.
const MAX_PAIRS: usize = 64;
/// Maximum number of divisors that are tried on the value.
const MAX_DIVISORS: i128 = 1 << 16;
/// Maximum number of parts of a conjunction.
const MAX_PARTS: usize = 16;
/// Maximum number of parts of a sum.
const MAX_SUMMANDS: usize = 64;
/// Maximum number of bytes of the condition.
const MAX_VARIABLES: usize = 64;

impl Solver {
    /// Decides whether a product is equal to a constant, if it cannot overflow with the values that the bytes may have;
    /// `None` if the condition is another one, or if the value has too many divisors.
    pub(crate) fn solve_by_factors(
        &mut self,
        arena: &mut Arena,
        query: &Query<'_>,
        support: &Support,
        model: &Model,
    ) -> Option<(Verdict, Layer)> {
        let sides = equation_with_product(arena, query.condition);
        let product = find_product(arena, query.condition);
        if support.len() > MAX_VARIABLES || sides.is_none() && product.is_none() {
            return None;
        }
        let domains = Domains::of(arena, &mut self.tables, query.terms(), support, false);
        if domains.combinations == 0 {
            return None;
        }
        if sides.is_some_and(|sides| are_apart(arena, &domains, sides)) {
            self.statistics.by_factors += 1;
            self.cache.remember_unsat(query, None);
            return Some((Verdict::Unsat, Layer::Factors));
        }
        let (Product { a, b, value }, rest) = product?;
        let pairs = pairs(arena, &domains, (a, b), value)?;
        self.statistics.by_factors += 1;
        let mut unknown = None;
        for (first, second) in pairs {
            let condition = both(arena, (a, first), (b, second));
            let condition = rest.iter().fold(condition, |all, &e| arena.and(all, e));
            if arena.as_const(condition) == Some(0) {
                continue;
            }
            let case = Query {
                condition,
                ..*query
            };
            match self.decide(arena, &case, support, model) {
                (Verdict::Sat(found), _) => {
                    let solution = solution(query, support, |variable| found.value(variable));
                    self.cache.remember_sat(query, solution, &found);
                    return Some((Verdict::Sat(found), Layer::Factors));
                }
                (Verdict::Unsat, _) => {}
                (Verdict::Unknown(reason), layer) => {
                    unknown.get_or_insert((Verdict::Unknown(reason), layer));
                }
            }
        }
        if unknown.is_some() {
            return unknown;
        }
        self.cache.remember_unsat(query, None);
        Some((Verdict::Unsat, Layer::Factors))
    }
}

impl Solver {
    /// Returns whether the bounds of both sides refute an equation. A SAT solver proves that for a
    /// sum of digits only by search.
    pub(crate) fn is_refuted_by_bounds(
        &mut self,
        arena: &mut Arena,
        query: &Query<'_>,
        support: &Support,
    ) -> bool {
        let Node::Compare {
            op: CompareOp::Eq,
            a,
            b,
        } = arena.node(query.condition)
        else {
            return false;
        };
        if support.len() > MAX_VARIABLES || arena.width(a) > 64 {
            return false;
        }
        let domains = Domains::of(arena, &mut self.tables, query.terms(), support, false);
        let is_refuted = domains.combinations > 0 && are_apart(arena, &domains, (a, b));
        if is_refuted {
            self.statistics.by_factors += 1;
            self.cache.remember_unsat(query, None);
        }
        is_refuted
    }
}

/// Returns the sides of an equation with a product of two unknown terms under sums.
fn equation_with_product(arena: &Arena, condition: ExprId) -> Option<(ExprId, ExprId)> {
    let Node::Compare {
        op: CompareOp::Eq,
        a,
        b,
    } = arena.node(condition)
    else {
        return None;
    };
    let (mut stack, mut seen) = (vec![a, b], 0);
    while let Some(e) = stack.pop() {
        seen += 1;
        match arena.node(e) {
            Node::Binary {
                op: BinaryOp::Mul,
                a: first,
                b: second,
            } if !arena.is_const(first) && !arena.is_const(second) => {
                return (arena.width(a) <= 64).then_some((a, b));
            }
            Node::Binary {
                op: BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul,
                a,
                b,
            } if seen < MAX_SUMMANDS => stack.extend([a, b]),
            _ => {}
        }
    }
    None
}

/// Returns whether the sides of an equation have different values, whatever values the bytes have.
fn are_apart(arena: &Arena, domains: &Domains, (a, b): (ExprId, ExprId)) -> bool {
    let mut intervals = Intervals::new(arena, domains);
    let Some((a_values, b_values)) = intervals.of(a).zip(intervals.of(b)) else {
        return false;
    };
    // Equal words differ by a multiple of 2^width.
    let modulus = 1i128 << arena.width(a);
    let (least, most) = (a_values.low - b_values.high, a_values.high - b_values.low);
    least.rem_euclid(modulus) != 0 && least.div_euclid(modulus) == most.div_euclid(modulus)
}

/// Returns the condition that two terms have these values. A term without a value may have any.
fn both(arena: &mut Arena, a: (ExprId, Option<i128>), b: (ExprId, Option<i128>)) -> ExprId {
    let [a, b] = [a, b].map(|(e, value)| match value {
        Some(value) => {
            let width = arena.width(e);
            let value = arena.constant(width, bits(value, width));
            arena.eq(e, value)
        }
        None => arena.constant(1, 1),
    });
    arena.and(a, b)
}

/// The condition that the product of two unknown terms has a value.
struct Product {
    a: ExprId,
    b: ExprId,
    value: u64,
}

/// Returns the first product among the parts of a conjunction, and the other parts.
fn find_product(arena: &Arena, condition: ExprId) -> Option<(Product, Vec<ExprId>)> {
    let (mut found, mut rest) = (None, Vec::new());
    let mut stack = vec![condition];
    while let Some(e) = stack.pop() {
        match arena.node(e) {
            Node::Binary {
                op: BinaryOp::And,
                a,
                b,
            } => stack.extend([b, a]),
            _ if found.is_none() => match product_of(arena, e) {
                Some(product) => found = Some(product),
                None => rest.push(e),
            },
            _ => rest.push(e),
        }
        if rest.len() > MAX_PARTS {
            return None;
        }
    }
    Some((found?, rest))
}

fn product_of(arena: &Arena, condition: ExprId) -> Option<Product> {
    let Node::Compare {
        op: CompareOp::Eq,
        a,
        b,
    } = arena.node(condition)
    else {
        return None;
    };
    let (product, value) = match (arena.as_const(a), arena.as_const(b)) {
        (None, Some(value)) => (a, value),
        (Some(value), None) => (b, value),
        _ => return None,
    };
    let Node::Binary {
        op: BinaryOp::Mul,
        a,
        b,
    } = arena.node(product)
    else {
        return None;
    };
    let is_unknown = arena.width(product) <= 64 && !arena.is_const(a) && !arena.is_const(b);
    is_unknown.then_some(Product { a, b, value })
}

/// Two factors; `None` is any integer.
type Pair = (Option<i128>, Option<i128>);

/// Returns all pairs of factors with this product. `None` if the product may overflow, or if there are too many pairs.
fn pairs(
    arena: &Arena,
    domains: &Domains,
    (a, b): (ExprId, ExprId),
    value: u64,
) -> Option<Vec<Pair>> {
    let mut intervals = Intervals::new(arena, domains);
    let (x, y) = (intervals.of(a)?, intervals.of(b)?);
    let products = x.product(y)?;
    let modulus = 1i128 << arena.width(a);
    if products.high.checked_sub(products.low)? >= modulus {
        return None;
    }
    // The one integer among all products that is equal to the value modulo 2^width.
    let product = products.low + (i128::from(value) - products.low).rem_euclid(modulus);
    if !products.contains(product) {
        return Some(Vec::new());
    }
    if product == 0 {
        return Some(vec![(Some(0), None), (None, Some(0))]);
    }
    let mut pairs = Vec::new();
    let mut divisor = 1;
    while divisor * divisor <= product.abs() {
        if divisor > MAX_DIVISORS || pairs.len() > MAX_PAIRS {
            return None;
        }
        if product % divisor == 0 {
            let other = product / divisor;
            let candidates = [
                (divisor, other),
                (other, divisor),
                (-divisor, -other),
                (-other, -divisor),
            ];
            for (first, second) in candidates {
                let pair = (Some(first), Some(second));
                if x.contains(first) && y.contains(second) && !pairs.contains(&pair) {
                    pairs.push(pair);
                }
            }
        }
        divisor += 1;
    }
    (pairs.len() <= MAX_PAIRS).then_some(pairs)
}
