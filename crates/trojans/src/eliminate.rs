//! Eliminates the inputs of a client from the messages that it sends. The condition "inputs
//! exist that produce these bytes under this path condition" becomes, as far as possible, a
//! condition on the message alone.
//!
//! If a byte of the message is an input, or an invertible function of one, the input is a function
//! of the message. The same holds for a checksum over other bytes of the message: these bytes are
//! replaced by those of the message. Remaining inputs with few values are enumerated. All others
//! stay open: they are decided for each candidate message.

use everett_expr::{Arena, ArrayId, BinaryOp, ExprId, Node, Variable};
use everett_solver::Solver;
use std::collections::{BTreeMap, HashMap};

use crate::domain;
use crate::formula::{Component, Formula};

/// Eliminates inputs. `bytes` are the terms that the client sends; `None` at masked places.
pub fn eliminate(
    arena: &mut Arena,
    solver: &mut Solver,
    message: ArrayId,
    bytes: &[Option<ExprId>],
    conditions: &[ExprId],
) -> Formula {
    let mut elimination = Elimination {
        arena,
        message,
        inputs: HashMap::new(),
        pending: Vec::new(),
        facts: Vec::new(),
        fresh: 0,
    };
    elimination.pending = elimination.equations(bytes);
    elimination.solve_all();
    elimination.finish(solver, conditions)
}

struct Elimination<'a> {
    arena: &'a mut Arena,
    message: ArrayId,
    /// Each eliminated input, in terms of the message.
    inputs: HashMap<ExprId, ExprId>,
    /// Terms over inputs, and what they are equal to in terms of the message.
    pending: Vec<(ExprId, ExprId)>,
    /// Conditions on the message alone.
    facts: Vec<ExprId>,
    /// The number of fresh inputs, made for bits that the message does not determine.
    fresh: u32,
}

impl Elimination<'_> {
    /// Returns the equations between the client's bytes and the message. Adjacent bytes of one
    /// number are joined again.
    fn equations(&mut self, bytes: &[Option<ExprId>]) -> Vec<(ExprId, ExprId)> {
        let mut equations = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let Some(term) = bytes[at] else {
                at += 1;
                continue;
            };
            let count = self.run_of(&bytes[at..]);
            let here: Vec<ExprId> = (at..at + count)
                .map(|index| self.arena.read(self.message, index as u32))
                .collect();
            equations.push(match (count, self.arena.node(term)) {
                (2.., Node::Extract { e, low }) => {
                    let last = bytes[at + count - 1].unwrap_or(term);
                    let is_little = matches!(self.arena.node(last),
                        Node::Extract { low: other, .. } if other > low);
                    let low = if is_little {
                        low
                    } else {
                        low - 8 * (count as u32 - 1)
                    };
                    let number = self.arena.extract(e, low, 8 * count as u32);
                    (number, self.joined(&here, is_little))
                }
                _ => (term, here[0]),
            });
            at += count;
        }
        equations
    }

    /// Returns bytes as one number.
    fn joined(&mut self, bytes: &[ExprId], is_little: bool) -> ExprId {
        let mut number = None;
        for byte in bytes {
            number = Some(match (number, is_little) {
                (None, _) => *byte,
                (Some(low), true) => self.arena.concat(*byte, low),
                (Some(high), false) => self.arena.concat(high, *byte),
            });
        }
        number.unwrap_or(bytes[0])
    }

    /// Returns how many of the first bytes are adjacent bytes of one number, in either order.
    fn run_of(&self, bytes: &[Option<ExprId>]) -> usize {
        let part = |term: Option<ExprId>| match self.arena.node(term?) {
            Node::Extract { e, low } => Some((e, i64::from(low))),
            _ => None,
        };
        let Some((number, first)) = part(bytes[0]) else {
            return 1;
        };
        for step in [8, -8] {
            let follows = |(at, term): &(usize, &Option<ExprId>)| {
                part(**term) == Some((number, first + step * *at as i64))
            };
            let count = bytes.iter().enumerate().take_while(follows).count();
            if count > 1 {
                return count;
            }
        }
        1
    }

    /// Returns whether a term depends on inputs.
    fn is_open(&mut self, term: ExprId) -> bool {
        let support = self.arena.support(term);
        let mut variables = support.variables().iter();
        variables.any(|variable| variable.array != self.message)
    }

    fn solve_all(&mut self) {
        loop {
            let mut has_solved = false;
            for (term, value) in std::mem::take(&mut self.pending) {
                let term = self.arena.substitute(term, &self.inputs);
                has_solved |= self.solve(term, value);
            }
            if !has_solved {
                return;
            }
        }
    }

    /// Records the value of an input in terms of the message and of other inputs. The recorded
    /// values of other inputs never refer to it.
    fn know(&mut self, input: ExprId, value: ExprId) {
        let this = HashMap::from([(input, value)]);
        for known in self.inputs.values_mut() {
            *known = self.arena.substitute(*known, &this);
        }
        self.inputs.insert(input, value);
    }

    /// Solves an equation for its inputs. Returns `false` if that is not possible; the equation is
    /// pending then.
    fn solve(&mut self, term: ExprId, value: ExprId) -> bool {
        if !self.is_open(term) {
            let same = self.arena.eq(term, value);
            self.facts.push(same);
            return true;
        }
        let width = self.arena.width(term);
        match self.arena.node(term) {
            Node::Read { .. } => {
                self.know(term, value);
            }
            Node::Concat { hi, lo } => {
                let (high, low) = (self.arena.width(hi), self.arena.width(lo));
                let of_high = self.arena.extract(value, low, high);
                let of_low = self.arena.extract(value, 0, low);
                self.pending.extend([(hi, of_high), (lo, of_low)]);
            }
            Node::ZeroExtend { e } | Node::SignExtend { e } => {
                let low = self.arena.extract(value, 0, self.arena.width(e));
                let whole = match self.arena.node(term) {
                    Node::ZeroExtend { .. } => self.arena.zext(low, width),
                    _ => self.arena.sext(low, width),
                };
                let fits = self.arena.eq(whole, value);
                self.facts.push(fits);
                self.pending.push((e, low));
            }
            Node::Not { e } => {
                let value = self.arena.not(value);
                self.pending.push((e, value));
            }
            Node::Binary { op, a, b } => return self.solve_binary(term, op, (a, b), value),
            Node::Extract { e, low } => return self.solve_part(term, (e, low), value),
            _ => {
                self.pending.push((term, value));
                return false;
            }
        }
        true
    }

    fn solve_binary(
        &mut self,
        term: ExprId,
        op: BinaryOp,
        (a, b): (ExprId, ExprId),
        value: ExprId,
    ) -> bool {
        let (is_open_a, is_open_b) = (self.is_open(a), self.is_open(b));
        let (open, known) = if is_open_a { (a, b) } else { (b, a) };
        if is_open_a && is_open_b {
            self.pending.push((term, value));
            return false;
        }
        let arena = &mut *self.arena;
        let solved = match op {
            BinaryOp::Add => arena.sub(value, known),
            BinaryOp::Xor => arena.xor(value, known),
            BinaryOp::Sub if is_open_a => arena.add(value, known),
            BinaryOp::Sub => arena.sub(known, value),
            BinaryOp::Mul => return self.solve_product(term, (open, known), value),
            BinaryOp::Shl if is_open_a => match arena.as_const(known) {
                Some(bits) if bits < u64::from(arena.width(term)).min(64) => {
                    let factor = arena.constant(arena.width(term), 1 << bits);
                    return self.solve_product(term, (open, factor), value);
                }
                _ => {
                    self.pending.push((term, value));
                    return false;
                }
            },
            _ => {
                self.pending.push((term, value));
                return false;
            }
        };
        self.pending.push((open, solved));
        true
    }

    /// Solves a product: an odd factor has an inverse, a power of two leaves high bits open.
    fn solve_product(
        &mut self,
        term: ExprId,
        (open, factor): (ExprId, ExprId),
        value: ExprId,
    ) -> bool {
        let width = self.arena.width(term);
        let factor = self.arena.as_const(factor).filter(|factor| *factor != 0);
        let Some(factor) = factor.filter(|_| width <= 64) else {
            self.pending.push((term, value));
            return false;
        };
        let shift = factor.trailing_zeros();
        let rest = width - shift;
        let inverse = inverse(factor >> shift);
        let arena = &mut *self.arena;
        if shift > 0 {
            let low = arena.extract(value, 0, shift);
            let zero = arena.zero(shift);
            let fits = arena.eq(low, zero);
            self.facts.push(fits);
        }
        let quotient = arena.extract(value, shift, rest);
        let inverse = arena.constant(rest, inverse);
        let solved = arena.mul(quotient, inverse);
        let part = arena.extract(open, 0, rest);
        self.pending.push((part, solved));
        true
    }

    /// Solves an extraction: bits of an input leave its other bits open; low bits of a sum are a
    /// sum of low bits.
    fn solve_part(&mut self, term: ExprId, (e, low): (ExprId, u32), value: ExprId) -> bool {
        let (width, whole) = (self.arena.width(term), self.arena.width(e));
        match self.arena.node(e) {
            Node::Read { .. } => {
                let name = format!("bits {}", self.fresh);
                self.fresh += 1;
                let array = self.arena.array(0, &name, 1);
                let other = self.arena.read(array, 0);
                let mut byte = value;
                if low > 0 {
                    let below = self.arena.extract(other, 0, low);
                    byte = self.arena.concat(byte, below);
                }
                if low + width < whole {
                    let above = self.arena.extract(other, low + width, whole - low - width);
                    byte = self.arena.concat(above, byte);
                }
                self.know(e, byte);
                true
            }
            Node::Binary { op, a, b }
                if low == 0
                    && matches!(
                        op,
                        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Xor | BinaryOp::Mul
                    ) =>
            {
                let parts = (
                    self.arena.extract(a, 0, width),
                    self.arena.extract(b, 0, width),
                );
                self.solve_binary(term, op, parts, value)
            }
            _ => {
                self.pending.push((term, value));
                false
            }
        }
    }

    /// Splits what is left into components that share no inputs.
    fn finish(mut self, solver: &mut Solver, conditions: &[ExprId]) -> Formula {
        let mut terms: HashMap<ExprId, ExprId> = HashMap::new();
        let mut equations: Vec<(ExprId, ExprId)> = Vec::new();
        for (term, value) in std::mem::take(&mut self.pending) {
            let term = self.arena.substitute(term, &self.inputs);
            match terms.get(&term) {
                Some(other) => {
                    let same = self.arena.eq(*other, value);
                    self.facts.push(same);
                }
                None => {
                    terms.insert(term, value);
                    equations.push((term, value));
                }
            }
        }
        // A checksum may contain other equated terms: there, they become parts of the message.
        let whole: Vec<(ExprId, ExprId)> = std::mem::take(&mut equations);
        for (term, value) in whole {
            let inside = self.arena.substitute_with(term, |part| match part == term {
                true => None,
                false => terms.get(&part).copied(),
            });
            match self.is_open(inside) {
                // The original equation has only inputs on its left side, which can be enumerated.
                true => equations.push((term, value)),
                false => {
                    let same = self.arena.eq(inside, value);
                    self.facts.push(same);
                }
            }
        }
        let mut open = Vec::new();
        for condition in conditions {
            let condition = self.arena.substitute(*condition, &self.inputs);
            let closed = self.arena.substitute(condition, &terms);
            match self.is_open(closed) {
                true => open.push(condition),
                false => self.facts.push(closed),
            }
        }
        let mut formula = Formula {
            exact: self.facts.clone(),
            open: Vec::new(),
        };
        for component in self.components(equations, open) {
            domain::settle(self.arena, solver, self.message, component, &mut formula);
        }
        formula
    }

    /// Groups equations and conditions that share inputs.
    fn components(
        &mut self,
        equations: Vec<(ExprId, ExprId)>,
        conditions: Vec<ExprId>,
    ) -> Vec<Component> {
        let mut groups: BTreeMap<Variable, usize> = BTreeMap::new();
        let mut all: Vec<Component> = Vec::new();
        let parts = equations
            .into_iter()
            .map(|(term, value)| (term, Some(value)));
        let parts = parts.chain(conditions.into_iter().map(|condition| (condition, None)));
        for (term, value) in parts.collect::<Vec<_>>() {
            let support = self.arena.support(term);
            let variables = support.variables().iter().copied();
            let inputs: Vec<Variable> = variables
                .filter(|variable| variable.array != self.message)
                .collect();
            let mut component = Component {
                inputs,
                ..Component::default()
            };
            match value {
                Some(value) => component.equations.push((term, value)),
                None => component.conditions.push(term),
            }
            for input in component.inputs.clone() {
                if let Some(other) = groups.get(&input) {
                    let other = std::mem::take(&mut all[*other]);
                    component.inputs.extend(other.inputs);
                    component.equations.extend(other.equations);
                    component.conditions.extend(other.conditions);
                }
                component.inputs.sort_unstable();
                component.inputs.dedup();
            }
            for input in &component.inputs {
                groups.insert(*input, all.len());
            }
            all.push(component);
        }
        all.retain(|component| !component.inputs.is_empty());
        all
    }
}

/// The inverse of an odd number, modulo 2^64.
fn inverse(odd: u64) -> u64 {
    let mut inverse = odd;
    for _ in 0..5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_numbers_have_inverses() {
        for odd in [1u64, 3, 5, 10_007, u64::MAX] {
            assert_eq!(odd.wrapping_mul(inverse(odd)), 1);
        }
    }
}
