//! Boolean gates over SAT literals: constants are propagated, equal gates are shared (structural
//! hashing), and each new gate is added to the SAT instance as clauses (Tseitin) immediately.

use super::sat::{Backend, Lit};
use rustc_hash::FxHashMap;

/// The literal that is always true: variable 1, fixed by a unit clause.
pub const TRUE: Lit = 1;
pub const FALSE: Lit = -1;

/// A gate after normalisation: the key for structural hashing.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Gate {
    And(Lit, Lit),
    Xor(Lit, Lit),
    Mux(Lit, Lit, Lit),
    Majority(Lit, Lit, Lit),
}

/// A SAT instance together with its gates.
pub struct Gates<B> {
    pub sat: B,
    shared: FxHashMap<Gate, Lit>,
    /// Conjunctions of more than two inputs.
    conjunctions: FxHashMap<Box<[Lit]>, Lit>,
    last_variable: Lit,
    clauses: usize,
}

impl<B: Backend> Gates<B> {
    pub fn new() -> Gates<B> {
        let mut sat = B::new();
        sat.add_clause(&[TRUE]);
        Gates {
            sat,
            shared: FxHashMap::default(),
            conjunctions: FxHashMap::default(),
            last_variable: TRUE,
            clauses: 1,
        }
    }

    /// Returns the number of clauses added; decides when to start a new instance.
    pub fn clauses(&self) -> usize {
        self.clauses
    }

    pub fn fresh(&mut self) -> Lit {
        self.last_variable += 1;
        self.last_variable
    }

    pub fn clause(&mut self, clause: &[Lit]) {
        self.clauses += 1;
        self.sat.add_clause(clause);
    }

    pub fn and(&mut self, a: Lit, b: Lit) -> Lit {
        if a == FALSE || b == FALSE || a == -b {
            return FALSE;
        }
        if a == TRUE || a == b {
            return b;
        }
        if b == TRUE {
            return a;
        }
        let (a, b) = (a.min(b), a.max(b));
        let gate = Gate::And(a, b);
        if let Some(&out) = self.shared.get(&gate) {
            return out;
        }
        let out = self.fresh();
        self.clause(&[-out, a]);
        self.clause(&[-out, b]);
        self.clause(&[out, -a, -b]);
        self.shared.insert(gate, out);
        out
    }

    pub fn or(&mut self, a: Lit, b: Lit) -> Lit {
        -self.and(-a, -b)
    }

    pub fn xor(&mut self, a: Lit, b: Lit) -> Lit {
        if a.abs() == b.abs() {
            return if a == b { FALSE } else { TRUE };
        }
        if a.abs() == TRUE {
            return if a == TRUE { -b } else { b };
        }
        if b.abs() == TRUE {
            return if b == TRUE { -a } else { a };
        }
        // Signs move to the output, so that all four polarities share one gate.
        let negate = (a < 0) != (b < 0);
        let (a, b) = (a.abs().min(b.abs()), a.abs().max(b.abs()));
        let gate = Gate::Xor(a, b);
        let out = match self.shared.get(&gate) {
            Some(&out) => out,
            None => {
                let out = self.fresh();
                self.clause(&[-out, a, b]);
                self.clause(&[-out, -a, -b]);
                self.clause(&[out, -a, b]);
                self.clause(&[out, a, -b]);
                self.shared.insert(gate, out);
                out
            }
        };
        if negate { -out } else { out }
    }

    /// Returns `if condition then yes else no`.
    pub fn mux(&mut self, condition: Lit, yes: Lit, no: Lit) -> Lit {
        if condition < 0 {
            return self.mux(-condition, no, yes);
        }
        if condition == TRUE || yes == no {
            return yes;
        }
        if yes == -no {
            return self.xor(-condition, yes);
        }
        if yes == TRUE || yes == condition {
            return self.or(condition, no);
        }
        if yes == FALSE || yes == -condition {
            return self.and(-condition, no);
        }
        if no == TRUE || no == -condition {
            return self.or(-condition, yes);
        }
        if no == FALSE || no == condition {
            return self.and(condition, yes);
        }
        let negate = yes < 0;
        let (yes, no) = if negate { (-yes, -no) } else { (yes, no) };
        let gate = Gate::Mux(condition, yes, no);
        let out = match self.shared.get(&gate) {
            Some(&out) => out,
            None => {
                let out = self.fresh();
                self.clause(&[-condition, -yes, out]);
                self.clause(&[-condition, yes, -out]);
                self.clause(&[condition, -no, out]);
                self.clause(&[condition, no, -out]);
                // Redundant, but they propagate when both branches are equal.
                self.clause(&[-yes, -no, out]);
                self.clause(&[yes, no, -out]);
                self.shared.insert(gate, out);
                out
            }
        };
        if negate { -out } else { out }
    }

    /// Returns whether at least two of three inputs are true: the carry of a full adder.
    pub fn majority(&mut self, a: Lit, b: Lit, c: Lit) -> Lit {
        let mut inputs = [a, b, c];
        inputs.sort_unstable_by_key(|lit| (lit.abs(), *lit));
        let [a, b, c] = inputs;
        if a.abs() == TRUE {
            return if a == TRUE {
                self.or(b, c)
            } else {
                self.and(b, c)
            };
        }
        if a == b || b == c {
            return b;
        }
        if a == -b {
            return c;
        }
        if b == -c {
            return a;
        }
        let negate = a < 0;
        let (a, b, c) = if negate { (-a, -b, -c) } else { (a, b, c) };
        let gate = Gate::Majority(a, b, c);
        let out = match self.shared.get(&gate) {
            Some(&out) => out,
            None => {
                let out = self.fresh();
                for (x, y) in [(a, b), (a, c), (b, c)] {
                    self.clause(&[-x, -y, out]);
                    self.clause(&[x, y, -out]);
                }
                self.shared.insert(gate, out);
                out
            }
        };
        if negate { -out } else { out }
    }

    /// Returns the conjunction of `inputs` (which is reordered) as one gate.
    pub fn and_all(&mut self, inputs: &mut Vec<Lit>) -> Lit {
        inputs.sort_unstable_by_key(|lit| (lit.abs(), *lit));
        inputs.dedup();
        inputs.retain(|&lit| lit != TRUE);
        if inputs.contains(&FALSE) || inputs.windows(2).any(|pair| pair[0] == -pair[1]) {
            return FALSE;
        }
        match inputs.as_slice() {
            [] => TRUE,
            [one] => *one,
            [one, other] => self.and(*one, *other),
            _ => {
                if let Some(&out) = self.conjunctions.get(inputs.as_slice()) {
                    return out;
                }
                let out = self.fresh();
                self.conjunctions.insert(inputs.as_slice().into(), out);
                for &input in inputs.iter() {
                    self.clause(&[-out, input]);
                }
                for input in inputs.iter_mut() {
                    *input = -*input;
                }
                inputs.push(out);
                self.clause(inputs);
                out
            }
        }
    }
}
