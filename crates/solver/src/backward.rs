//! Solves equations of words backwards, as rounds of ciphers and finalisers of hashes are inverted.
//!
//! The terms of the equations are divided into *variables*: words of input bytes, sums that other
//! operations use, and the results of other operations. Each variable that is not a word has an
//! equation of its own: a linear one modulo a power of two, one that is affine over bits (shifts,
//! rotations, exclusive ors), or one that only computes it. A variable in one equation alone that
//! determines it is put aside with that equation; linear equations are first solved for a variable
//! that no other operation uses. If no equation is left, the variables put aside follow, last one
//! first, from those left over, which may have any values. Answers only `Sat`: the values are
//! evaluated on the query.

use everett_expr::{Arena, BinaryOp, CompareOp, ExprId, Node, Support, Variable, scalar};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::affine::preimage;
use crate::cache::Query;
use crate::chain::{Solver, solution, with_solution};
use crate::lanes;
use crate::model::Model;
use crate::verdict::Verdict;

/// Maximum number of subterms of the equations, and of variables.
const MAX_NODES: usize = 2048;
const MAX_VARIABLES: usize = 512;
/// Maximum number of summands that are put in place of the sums that they are in.
const MAX_SUMMANDS: usize = 8192;
/// Number of times that the variables left over get other values.
const ATTEMPTS: u64 = 4;

/// What an operation is to this layer.
#[derive(Clone, Copy, PartialEq)]
enum Class {
    Constant,
    /// A word of input bytes, or one of its bytes.
    Input,
    /// A sum or a multiple.
    Linear,
    /// Affine over bits.
    Affine,
    Other,
}

/// The terms of other classes that an affine term depends on.
#[derive(Clone, Copy, PartialEq)]
enum Sources {
    None,
    One(ExprId),
    Several,
}

impl Sources {
    fn and(self, other: Sources) -> Sources {
        match (self, other) {
            (Sources::None, one) | (one, Sources::None) => one,
            (one, other) if one == other => one,
            _ => Sources::Several,
        }
    }
}

/// `sum of factor * variable + constant = 0` modulo `2^width`.
#[derive(Clone)]
struct Linear {
    factors: Vec<(usize, u64)>,
    constant: u64,
    width: u32,
}

/// The operation that computes a variable from others.
#[derive(Clone)]
struct Definition {
    output: usize,
    inputs: Vec<usize>,
    is_affine: bool,
}

/// How a variable that was put aside follows from others.
enum Step {
    Computed(Definition),
    Inverted(usize, Definition),
    Solved(usize, Linear),
}

/// The equations of a query.
struct System<'a> {
    arena: &'a Arena,
    /// The term of each variable.
    variables: Vec<ExprId>,
    number: FxHashMap<ExprId, usize>,
    /// The first variables are words: how many.
    words: usize,
    /// Subterms with several uses.
    shared: FxHashSet<ExprId>,
    /// What each subterm depends on.
    sources: FxHashMap<ExprId, Sources>,
    /// The word that each byte is in, and its position there.
    places: FxHashMap<Variable, (usize, u32)>,
    linear: Vec<Linear>,
    definitions: Vec<Definition>,
    fixed: Vec<Option<u64>>,
    /// The number of summands that may still be put in place of a sum.
    summands: usize,
}

impl Solver {
    /// Searches for a solution by solving the equations of the query backwards.
    pub(crate) fn solve_backwards(
        &mut self,
        arena: &mut Arena,
        query: &Query<'_>,
        support: &Support,
        model: &Model,
    ) -> Option<Verdict> {
        let terms: Vec<ExprId> = query.terms().collect();
        for seed in 0..ATTEMPTS {
            let mut system = System::of(arena, &terms)?;
            let mut numbers = Numbers(seed);
            let Some(steps) = system.put_aside(&mut numbers) else {
                continue;
            };
            let Some(found) = system.values(&steps, &mut numbers) else {
                continue;
            };
            let places = system.places.iter();
            let bytes = places.map(|(one, &(word, at))| {
                let value = (found[word] >> (8 * at)) as u8;
                (one.array, one.index, value)
            });
            let found = model.with(bytes);
            if !self.holds(arena, query, &found) {
                continue;
            }
            let solution = solution(query, support, |variable| found.value(variable));
            let found = with_solution(model, &solution);
            self.statistics.by_inversion += 1;
            self.cache.remember_sat(query, solution, &found);
            return Some(Verdict::Sat(found));
        }
        None
    }
}

/// A generator with a fixed seed.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }
}

impl<'a> System<'a> {
    /// Returns the equations of the terms; `None` if there are none, or if they are too large or
    /// contain wide terms or floats.
    fn of(arena: &'a Arena, terms: &[ExprId]) -> Option<System<'a>> {
        let equations: Vec<(ExprId, ExprId)> = terms
            .iter()
            .filter_map(|&e| match arena.node(e) {
                Node::Compare {
                    op: CompareOp::Eq,
                    a,
                    b,
                } if arena.width(a) > 1 => Some((a, b)),
                _ => None,
            })
            .collect();
        if equations.is_empty() {
            return None;
        }
        let mut system = System {
            arena,
            variables: Vec::new(),
            number: FxHashMap::default(),
            words: 0,
            shared: FxHashSet::default(),
            sources: FxHashMap::default(),
            places: FxHashMap::default(),
            linear: Vec::new(),
            definitions: Vec::new(),
            fixed: Vec::new(),
            summands: MAX_SUMMANDS,
        };
        system.find_words(&equations)?;
        let mut pending = Vec::new();
        for (a, b) in equations {
            let width = arena.width(a);
            let mut equation = Linear {
                factors: Vec::new(),
                constant: 0,
                width,
            };
            system.add(&mut equation, a, 1, &mut pending);
            system.add(&mut equation, b, u64::MAX, &mut pending);
            system.linear.push(equation);
        }
        while let Some(variable) = pending.pop() {
            system.define(variable, &mut pending)?;
        }
        (system.variables.len() <= MAX_VARIABLES).then_some(system)
    }

    /// Finds the words that the equations read: the widest ones first, each byte in one word.
    fn find_words(&mut self, equations: &[(ExprId, ExprId)]) -> Option<()> {
        let (mut seen, mut order) = (FxHashSet::default(), Vec::new());
        let mut words = Vec::new();
        let sides = equations.iter().flat_map(|&(a, b)| [a, b]);
        let mut stack: Vec<(ExprId, bool)> = sides.map(|e| (e, false)).collect();
        while let Some((e, is_done)) = stack.pop() {
            if is_done {
                order.push(e);
                continue;
            }
            if !seen.insert(e) {
                self.shared.insert(e);
                continue;
            }
            if seen.len() > MAX_NODES || self.arena.width(e) > 64 {
                return None;
            }
            if let Some(bytes) = bytes_of(self.arena, e) {
                words.push((e, bytes));
            }
            stack.push((e, true));
            let children = self.arena.node(e).children();
            stack.extend(children.map(|child| (child, false)));
        }
        words.sort_by_key(|(_, bytes)| std::cmp::Reverse(bytes.len()));
        for (e, bytes) in words {
            if bytes.iter().all(|byte| !self.places.contains_key(byte)) {
                let word = self.variable(e, &mut Vec::new());
                let bytes = (0..).zip(bytes);
                self.places
                    .extend(bytes.map(|(at, byte)| (byte, (word, at))));
            }
        }
        self.words = self.variables.len();
        self.find_sources(&order);
        Some(())
    }

    /// Returns the number of a variable; a new one is added to `pending`, to be defined.
    fn variable(&mut self, e: ExprId, pending: &mut Vec<usize>) -> usize {
        let next = self.variables.len();
        let number = *self.number.entry(e).or_insert(next);
        if number == next {
            self.variables.push(e);
            self.fixed.push(None);
            pending.push(number);
        }
        number
    }

    fn class(&self, e: ExprId) -> Class {
        use BinaryOp::{Add, And, LShr, Mul, Or, Shl, Sub, Xor};
        if self.number.get(&e).is_some_and(|&one| one < self.words) {
            return Class::Input;
        }
        match self.arena.node(e) {
            Node::Constant { .. } => Class::Constant,
            Node::Read { .. } => Class::Input,
            Node::Binary { op: Add | Sub, .. } => Class::Linear,
            Node::Binary { op: Mul, b, .. } if self.arena.is_const(b) => Class::Linear,
            Node::Binary { op: Xor, .. }
            | Node::Not { .. }
            | Node::Extract { .. }
            | Node::Concat { .. }
            | Node::ZeroExtend { .. }
            | Node::SignExtend { .. } => Class::Affine,
            Node::Binary {
                op: And | Or | Shl | LShr,
                b,
                ..
            } if self.arena.is_const(b) => Class::Affine,
            _ => Class::Other,
        }
    }

    /// Returns whether an affine operation computes this operand with it. If not, the operand is a
    /// variable: parts of several operations that depend on several variables would leave each of
    /// these in several equations.
    fn is_part(&self, e: ExprId) -> bool {
        let computes = matches!(self.arena.node(e), Node::Binary { .. } | Node::Not { .. });
        self.class(e) == Class::Affine
            && !(computes && self.shared.contains(&e) && self.sources[&e] == Sources::Several)
    }

    /// Finds out what each subterm depends on. Operands come before the terms that use them.
    fn find_sources(&mut self, terms: &[ExprId]) {
        for &e in terms {
            let sources = match (self.class(e), self.arena.as_variable(e)) {
                (Class::Constant, _) => Sources::None,
                (_, Some(byte)) => Sources::One(self.variables[self.places[&byte].0]),
                (Class::Affine, _) => {
                    let children = self.arena.node(e).children();
                    children.fold(Sources::None, |all, child| all.and(self.sources[&child]))
                }
                _ => Sources::One(e),
            };
            self.sources.insert(e, sources);
        }
    }

    /// Adds a multiple of a term to an equation.
    fn add(&mut self, equation: &mut Linear, e: ExprId, factor: u64, pending: &mut Vec<usize>) {
        self.summands = self.summands.saturating_sub(1);
        match (self.class(e), self.arena.node(e)) {
            (Class::Constant, _) => {
                let value = self.arena.as_const(e).unwrap_or(0);
                equation.constant = equation.constant.wrapping_add(factor.wrapping_mul(value));
            }
            (Class::Linear, Node::Binary { op, a, b }) if self.summands > 0 => match op {
                BinaryOp::Mul => {
                    let value = self.arena.as_const(b).unwrap_or(0);
                    self.add(equation, a, factor.wrapping_mul(value), pending);
                }
                op => {
                    let sign = if op == BinaryOp::Sub { u64::MAX } else { 1 };
                    self.add(equation, a, factor, pending);
                    self.add(equation, b, factor.wrapping_mul(sign), pending);
                }
            },
            _ => {
                let variable = self.variable(e, pending);
                equation.add(variable, factor);
            }
        }
    }

    /// Adds the equation that defines a variable which is no word.
    fn define(&mut self, output: usize, pending: &mut Vec<usize>) -> Option<()> {
        let e = self.variables[output];
        let class = self.class(e);
        if let (Class::Linear, Node::Binary { .. }) = (class, self.arena.node(e)) {
            let mut equation = Linear {
                factors: vec![(output, u64::MAX)],
                constant: 0,
                width: self.arena.width(e),
            };
            self.add(&mut equation, e, 1, pending);
            self.linear.push(equation);
            return (self.summands > 0).then_some(());
        }
        let node = self.arena.node(e);
        let last = node
            .children()
            .last()
            .map_or(0, |last| self.arena.width(last));
        let is_known = matches!(node, Node::Select { .. } | Node::Read { .. });
        if !is_known && lanes::apply(node, self.arena.width(e), last, [&[0]; 3]).is_none() {
            return None;
        }
        let mut inputs = Vec::new();
        let mut stack: Vec<ExprId> = match self.arena.as_variable(e) {
            Some(_) => vec![e],
            None => self.arena.node(e).children().collect(),
        };
        let mut seen = FxHashSet::default();
        while let Some(child) = stack.pop() {
            if !seen.insert(child) {
                continue;
            }
            let input = match (self.class(child), self.arena.as_variable(child)) {
                (Class::Constant, _) => continue,
                (_, Some(byte)) => self.places[&byte].0,
                _ if class == Class::Affine && self.is_part(child) => {
                    stack.extend(self.arena.node(child).children());
                    continue;
                }
                _ => self.variable(child, pending),
            };
            if !inputs.contains(&input) {
                inputs.push(input);
            }
        }
        self.definitions.push(Definition {
            output,
            inputs,
            is_affine: matches!(class, Class::Affine | Class::Input),
        });
        Some(())
    }

    /// Puts all equations aside; `None` if some are left that contradict the values of variables
    /// that had to be fixed.
    fn put_aside(&mut self, numbers: &mut Numbers) -> Option<Vec<Step>> {
        let mut steps = Vec::new();
        loop {
            self.fix_known()?;
            if self.linear.is_empty() && self.definitions.is_empty() {
                return Some(steps);
            }
            let mut all = 0..self.variables.len();
            let step = all.find_map(|one| self.put_one_aside(one));
            match step {
                Some(step) => steps.push(step),
                None => {
                    let word = (0..self.words).find(|&word| self.occurs(word))?;
                    self.fixed[word] = Some(numbers.next() & self.mask(word));
                }
            }
        }
    }

    fn mask(&self, variable: usize) -> u64 {
        scalar::mask(self.arena.width(self.variables[variable]))
    }

    fn occurs(&self, one: usize) -> bool {
        self.fixed[one].is_none()
            && (self.linear.iter().any(|equation| equation.factor(one) != 0)
                || self.definitions.iter().any(|it| it.inputs.contains(&one)))
    }

    /// Puts the fixed values in place, until no equation has only one variable. `None` for a
    /// contradiction.
    fn fix_known(&mut self) -> Option<()> {
        loop {
            let mut has_changed = false;
            for equation in &mut self.linear {
                equation.place(&self.fixed);
                if let &[(one, factor)] = equation.factors.as_slice()
                    && let Some(inverse) = inverse(factor)
                {
                    let value = equation.constant.wrapping_neg().wrapping_mul(inverse);
                    self.fixed[one] = Some(value & scalar::mask(equation.width));
                    equation.factors.clear();
                    equation.constant = 0;
                    has_changed = true;
                }
                let is_left = equation.constant & scalar::mask(equation.width) != 0;
                if equation.factors.is_empty() && is_left {
                    return None;
                }
            }
            self.linear.retain(|equation| !equation.factors.is_empty());
            let definitions = std::mem::take(&mut self.definitions);
            for definition in definitions {
                if !definition
                    .inputs
                    .iter()
                    .all(|&one| self.fixed[one].is_some())
                {
                    self.definitions.push(definition);
                    continue;
                }
                let value = self.compute(&definition, &|one| self.fixed[one])?;
                if self.fixed[definition.output].is_some_and(|known| known != value) {
                    return None;
                }
                self.fixed[definition.output] = Some(value);
                has_changed = true;
            }
            if !has_changed {
                return Some(());
            }
        }
    }

    /// Puts a variable aside with the one equation that it is in, if that determines it.
    fn put_one_aside(&mut self, one: usize) -> Option<Step> {
        if self.fixed[one].is_some() {
            return None;
        }
        let is_summed = self.linear.iter().any(|equation| equation.factor(one) != 0);
        let defined = self.definitions.iter().position(|it| it.output == one);
        let mut uses = (0..).zip(&self.definitions);
        let mut uses = uses.by_ref().filter(|(_, it)| it.inputs.contains(&one));
        match (is_summed, defined, uses.next(), uses.next()) {
            (false, Some(at), None, _) => Some(Step::Computed(self.definitions.swap_remove(at))),
            (false, None, Some((at, definition)), None) if definition.is_affine => {
                Some(Step::Inverted(one, self.definitions.swap_remove(at)))
            }
            (true, None, None, _) => {
                let has_unit = |equation: &Linear| equation.factor(one) & 1 == 1;
                let at = self.linear.iter().position(has_unit)?;
                let pivot = self.linear.swap_remove(at);
                for equation in &mut self.linear {
                    equation.eliminate(one, &pivot);
                }
                Some(Step::Solved(one, pivot))
            }
            _ => None,
        }
    }

    /// Returns the values of all variables: the steps in reverse, from any values of the others.
    fn values(&self, steps: &[Step], numbers: &mut Numbers) -> Option<Vec<u64>> {
        let free = |one| numbers.next() & self.mask(one);
        let mut values: Vec<u64> = (0..self.variables.len()).map(free).collect();
        for (value, fixed) in values.iter_mut().zip(&self.fixed) {
            *value = fixed.unwrap_or(*value);
        }
        for step in steps.iter().rev() {
            let (one, value) = match step {
                Step::Computed(it) => (it.output, self.compute(it, &|one| Some(values[one]))?),
                Step::Solved(one, equation) => (*one, equation.solved(*one, &values)?),
                Step::Inverted(one, it) => {
                    let width = self.arena.width(self.variables[*one]);
                    let image = |x| {
                        let value = |other| Some(if other == *one { x } else { values[other] });
                        self.compute(it, &value)
                    };
                    let value = preimage(width, image, values[it.output], numbers.next())?;
                    (*one, value)
                }
            };
            values[one] = value;
        }
        Some(values)
    }

    /// Computes the output of a definition from the values of its inputs.
    fn compute(
        &self,
        definition: &Definition,
        value: &impl Fn(usize) -> Option<u64>,
    ) -> Option<u64> {
        let e = self.variables[definition.output];
        match self.arena.as_variable(e) {
            Some(_) => self.operand(e, value),
            None => self.result(e, value, &mut FxHashMap::default()),
        }
    }

    /// Computes an operation on variables and on parts of its own class, which `known` has.
    fn result(
        &self,
        e: ExprId,
        value: &impl Fn(usize) -> Option<u64>,
        known: &mut FxHashMap<ExprId, u64>,
    ) -> Option<u64> {
        if let Some(&result) = known.get(&e) {
            return Some(result);
        }
        let node = self.arena.node(e);
        let class = self.class(e);
        let (mut operands, mut last) = ([[0u64]; 3], 0);
        for (operand, child) in operands.iter_mut().zip(node.children()) {
            let is_part = class == Class::Affine && self.is_part(child);
            operand[0] = match is_part {
                true => self.result(child, value, known)?,
                false => self.operand(child, value)?,
            };
            last = self.arena.width(child);
        }
        let result = match node {
            Node::Select { table, .. } => {
                lanes::look_up(&self.arena.table(table).1, &operands[0])[0]
            }
            _ => {
                let operands = [&operands[0], &operands[1], &operands[2]];
                lanes::apply(node, self.arena.width(e), last, operands)?[0]
            }
        };
        known.insert(e, result);
        Some(result)
    }

    fn operand(&self, e: ExprId, value: &impl Fn(usize) -> Option<u64>) -> Option<u64> {
        if let Some(constant) = self.arena.as_const(e) {
            return Some(constant);
        }
        match self.arena.as_variable(e) {
            Some(byte) => {
                let (word, at) = self.places[&byte];
                Some(value(word)? >> (8 * at) & 0xff)
            }
            None => value(self.number[&e]),
        }
    }
}

impl Linear {
    fn factor(&self, one: usize) -> u64 {
        let found = self.factors.iter().find(|&&(other, _)| other == one);
        found.map_or(0, |&(_, factor)| factor)
    }

    fn add(&mut self, one: usize, factor: u64) {
        let mask = scalar::mask(self.width);
        match self.factors.iter_mut().find(|(other, _)| *other == one) {
            Some((_, known)) => *known = known.wrapping_add(factor) & mask,
            None => self.factors.push((one, factor & mask)),
        }
        self.factors.retain(|&(_, factor)| factor != 0);
    }

    /// Puts the values of fixed variables in place.
    fn place(&mut self, fixed: &[Option<u64>]) {
        for &(one, factor) in &self.factors {
            let value = fixed[one].unwrap_or(0);
            self.constant = self.constant.wrapping_add(factor.wrapping_mul(value));
        }
        self.factors.retain(|&(one, _)| fixed[one].is_none());
    }

    /// Adds a multiple of an equation so that a variable, whose factor there is odd, vanishes.
    fn eliminate(&mut self, one: usize, pivot: &Linear) {
        let Some(unit) = inverse(pivot.factor(one)) else {
            return;
        };
        let times = self.factor(one).wrapping_mul(unit).wrapping_neg();
        if times & scalar::mask(self.width) == 0 {
            return;
        }
        for &(other, factor) in &pivot.factors {
            self.add(other, factor.wrapping_mul(times));
        }
        self.constant = self
            .constant
            .wrapping_add(pivot.constant.wrapping_mul(times));
    }

    /// Returns the value of a variable, whose factor is odd.
    fn solved(&self, one: usize, values: &[u64]) -> Option<u64> {
        let others = self.factors.iter().filter(|&&(other, _)| other != one);
        let sum = others.fold(self.constant, |sum, &(other, factor)| {
            sum.wrapping_add(factor.wrapping_mul(values[other]))
        });
        let value = sum.wrapping_neg().wrapping_mul(inverse(self.factor(one))?);
        Some(value & scalar::mask(self.width))
    }
}

/// Returns the inverse of an odd number modulo `2^64`.
fn inverse(factor: u64) -> Option<u64> {
    // Each round doubles the number of correct bits, of which three are at first.
    let round = |x: u64, _| x.wrapping_mul(2u64.wrapping_sub(factor.wrapping_mul(x)));
    (factor & 1 == 1).then(|| (0..5).fold(factor, round))
}

/// Returns the bytes that a term consists of, the least significant first, each once; `None` if it
/// has other parts.
fn bytes_of(arena: &Arena, e: ExprId) -> Option<Vec<Variable>> {
    let (mut bytes, mut pending) = (Vec::new(), vec![e]);
    while let Some(e) = pending.pop() {
        match (arena.node(e), arena.as_variable(e)) {
            (_, Some(byte)) if !bytes.contains(&byte) => bytes.push(byte),
            (Node::Concat { hi, lo }, None) => pending.extend([hi, lo]),
            _ => return None,
        }
    }
    Some(bytes)
}
