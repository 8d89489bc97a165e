//! Refutes conditions on floats by ranges: a constraint such as `x <= 100` bounds a term, operations that are rounded to
//! nearest are monotonic, so the ends of their operands' ranges give the ends of theirs. The SAT instances leave most
//! float operations unconstrained, and an SMT solver needs minutes for a few of them.

use everett_expr::{
    Arena, BinaryOp, CompareOp, ExprId, FloatCompareOp, FloatFormat, FloatOp, FloatUnaryOp, Node,
    Support, float,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::cache::Query;
use crate::chain::Solver;
use crate::domains::Domains;
use crate::intervals::{Interval, Intervals};

/// Maximum number of terms whose ranges are computed, and of parts of conditions.
const MAX_TERMS: usize = 512;
/// Maximum number of bytes of the condition.
const MAX_VARIABLES: usize = 256;

impl Solver {
    /// Returns whether ranges of floats exclude the condition.
    pub(crate) fn is_refuted_by_ranges(
        &mut self,
        arena: &mut Arena,
        query: &Query<'_>,
        support: &Support,
    ) -> bool {
        if support.len() > MAX_VARIABLES || !has_floats(arena, query.condition) {
            return false;
        }
        let domains = Domains::of(arena, &mut self.tables, query.terms(), support, false);
        if domains.combinations == 0 {
            return false;
        }
        let mut ranges = Ranges {
            arena,
            integers: Intervals::new(arena, &domains),
            bounds: FxHashMap::default(),
            known: FxHashMap::default(),
        };
        for constraint in query.terms().filter(|&e| e != query.condition) {
            ranges.assume(constraint, true);
        }
        let is_refuted = ranges.truth(query.condition) == Some(false);
        if is_refuted {
            self.statistics.by_ranges += 1;
            self.cache.remember_unsat(query, None);
        }
        is_refuted
    }
}

/// Returns whether a term contains a float operation; `false` if it has too many parts, which also
/// bounds the depth of the recursion below.
fn has_floats(arena: &Arena, root: ExprId) -> bool {
    let mut seen = FxHashSet::default();
    let mut stack = vec![root];
    let mut has_floats = false;
    while let Some(e) = stack.pop() {
        let node = arena.node(e);
        has_floats |= matches!(node, Node::FloatCompare { .. } | Node::FloatToInt { .. });
        if seen.insert(e) {
            stack.extend(node.children());
        }
        if seen.len() > MAX_TERMS {
            return false;
        }
    }
    has_floats
}

/// The values that a float may have: those between two numbers, and perhaps NaN. The ends are bits
/// of the format; a zero stands for both zeros.
#[derive(Clone, Copy)]
struct Range {
    low: u128,
    high: u128,
    may_be_nan: bool,
}

fn sign(format: FloatFormat) -> u128 {
    1 << (format.width() - 1)
}

fn is_less(format: FloatFormat, a: u128, b: u128) -> bool {
    float::compare(FloatCompareOp::Olt, format, a, b)
}

fn is_at_most(format: FloatFormat, a: u128, b: u128) -> bool {
    float::compare(FloatCompareOp::Ole, format, a, b)
}

fn infinity(format: FloatFormat) -> u128 {
    float::convert(FloatFormat::Double, format, f64::INFINITY.to_bits().into())
}

/// Returns the neighbour of a finite number in the direction of positive infinity, or of negative
/// infinity.
fn neighbour(format: FloatFormat, bits: u128, upwards: bool) -> u128 {
    let is_negative = bits & sign(format) != 0;
    let magnitude = bits & !sign(format);
    match (magnitude, is_negative == upwards) {
        (0, _) if upwards => 1,
        (0, _) => sign(format) | 1,
        (_, true) => bits - 1,
        (_, false) if magnitude == infinity(format) => bits,
        (_, false) => bits + 1,
    }
}

impl Range {
    fn all(format: FloatFormat) -> Range {
        Range {
            low: infinity(format) | sign(format),
            high: infinity(format),
            may_be_nan: true,
        }
    }

    /// The least range with these values; `None` if one is NaN.
    fn around(format: FloatFormat, values: &[u128], may_be_nan: bool) -> Option<Range> {
        let (first, rest) = values.split_first()?;
        let mut range = Range {
            low: *first,
            high: *first,
            may_be_nan,
        };
        for &value in rest {
            if is_less(format, value, range.low) {
                range.low = value;
            }
            if is_less(format, range.high, value) {
                range.high = value;
            }
        }
        let mut values = values.iter();
        (!values.any(|&value| float::is_nan(format, value))).then_some(range)
    }

    fn contains_zero(self, format: FloatFormat) -> bool {
        is_at_most(format, self.low, 0) && is_at_most(format, 0, self.high)
    }

    fn has_infinity(self, format: FloatFormat) -> bool {
        let is_infinite = |bits: u128| bits & !sign(format) == infinity(format);
        is_infinite(self.low) || is_infinite(self.high)
    }
}

struct Ranges<'a> {
    arena: &'a Arena,
    integers: Intervals<'a>,
    /// Bounds by constraints.
    bounds: FxHashMap<ExprId, Range>,
    known: FxHashMap<ExprId, Range>,
}

impl Ranges<'_> {
    /// Takes the bounds from a constraint that is true, or false.
    fn assume(&mut self, constraint: ExprId, is_true: bool) {
        let mut stack = vec![(constraint, is_true)];
        while let Some((e, is_true)) = stack.pop() {
            match self.arena.node(e) {
                Node::Not { e } => stack.push((e, !is_true)),
                Node::Binary {
                    op: BinaryOp::And,
                    a,
                    b,
                } if is_true && self.arena.width(e) == 1 => stack.extend([(a, true), (b, true)]),
                Node::Binary {
                    op: BinaryOp::Or,
                    a,
                    b,
                } if !is_true && self.arena.width(e) == 1 => stack.extend([(a, false), (b, false)]),
                Node::FloatCompare { op, format, a, b } if format != FloatFormat::X87 => {
                    self.bound(op, format, (a, b), is_true);
                }
                _ => {}
            }
        }
    }

    /// Takes the bounds of both sides from a comparison.
    fn bound(
        &mut self,
        op: FloatCompareOp,
        format: FloatFormat,
        (a, b): (ExprId, ExprId),
        is_true: bool,
    ) {
        // A comparison that is false is the reverse one, or a side is NaN.
        let (op, a, b) = match (op, is_true) {
            (_, true) => (op, a, b),
            (FloatCompareOp::Olt, false) => (FloatCompareOp::Ole, b, a),
            (FloatCompareOp::Ole, false) => (FloatCompareOp::Olt, b, a),
            (FloatCompareOp::Uno, false) => {
                self.narrow(
                    a,
                    Range {
                        may_be_nan: false,
                        ..Range::all(format)
                    },
                    format,
                );
                self.narrow(
                    b,
                    Range {
                        may_be_nan: false,
                        ..Range::all(format)
                    },
                    format,
                );
                return;
            }
            (FloatCompareOp::Oeq, false) => return,
        };
        let open = op == FloatCompareOp::Olt;
        let (lesser, greater) = (self.constant(a, format), self.constant(b, format));
        let all = Range {
            // If the other side is NaN, nothing is known of this one.
            may_be_nan: !is_true,
            ..Range::all(format)
        };
        match op {
            FloatCompareOp::Uno => {}
            FloatCompareOp::Oeq => {
                for (side, other) in [(a, greater), (b, lesser)] {
                    let (low, high) = other.map_or((all.low, all.high), |value| (value, value));
                    self.narrow(side, Range { low, high, ..all }, format);
                }
            }
            FloatCompareOp::Olt | FloatCompareOp::Ole => {
                let next = |value, upwards| match open {
                    true => neighbour(format, value, upwards),
                    false => value,
                };
                if is_true || greater.is_some() {
                    let high = greater.map_or(all.high, |value| next(value, false));
                    self.narrow(a, Range { high, ..all }, format);
                }
                if is_true || lesser.is_some() {
                    let low = lesser.map_or(all.low, |value| next(value, true));
                    self.narrow(b, Range { low, ..all }, format);
                }
            }
        }
    }

    /// Returns the value of a constant that is a number.
    fn constant(&self, e: ExprId, format: FloatFormat) -> Option<u128> {
        let bits = self.arena.as_const(e).map(u128::from)?;
        (!float::is_nan(format, bits)).then_some(bits)
    }

    fn narrow(&mut self, e: ExprId, range: Range, format: FloatFormat) {
        let bounds = self.bounds.entry(e).or_insert(Range::all(format));
        if is_less(format, bounds.low, range.low) {
            bounds.low = range.low;
        }
        if is_less(format, range.high, bounds.high) {
            bounds.high = range.high;
        }
        bounds.may_be_nan &= range.may_be_nan;
    }

    /// Returns the range of a term.
    fn of(&mut self, e: ExprId, format: FloatFormat) -> Range {
        if let Some(&range) = self.known.get(&e) {
            return range;
        }
        if self.known.len() > MAX_TERMS || format == FloatFormat::X87 {
            return Range::all(format);
        }
        let computed = self.computed(e, format);
        let mut range = computed.unwrap_or(Range::all(format));
        if let Some(&bounds) = self.bounds.get(&e) {
            if is_less(format, range.low, bounds.low) {
                range.low = bounds.low;
            }
            if is_less(format, bounds.high, range.high) {
                range.high = bounds.high;
            }
            range.may_be_nan &= bounds.may_be_nan;
        }
        self.known.insert(e, range);
        range
    }

    /// Returns the range of a term by its operands; `None` if it can have any value.
    fn computed(&mut self, e: ExprId, format: FloatFormat) -> Option<Range> {
        match self.arena.node(e) {
            Node::Constant { .. } => Range::around(format, &[self.constant(e, format)?], false),
            Node::FloatBinary { op, a, b, .. } => {
                let (a, b) = (self.of(a, format), self.of(b, format));
                binary(op, format, a, b)
            }
            Node::FloatUnary { op, e, .. } => {
                let operand = self.of(e, format);
                let is_root = op == FloatUnaryOp::Sqrt;
                let can_be_negative = is_root && is_less(format, operand.low, 0);
                let low = if can_be_negative { 0 } else { operand.low };
                let ends = [low, operand.high].map(|end| float::unary(op, format, end));
                Range::around(format, &ends, operand.may_be_nan || can_be_negative)
            }
            Node::FloatConvert { from, to, e } if from != FloatFormat::X87 => {
                let operand = self.of(e, from);
                let ends = [operand.low, operand.high].map(|end| float::convert(from, to, end));
                Range::around(format, &ends, operand.may_be_nan)
            }
            Node::FloatFromInt { signed, e, .. } if self.arena.width(e) <= 64 => {
                let width = self.arena.width(e);
                let operand = self.integers.of(e)?;
                let operand = match signed {
                    true => operand.signed(width),
                    false => operand.unsigned(width),
                };
                let ends = [operand.low, operand.high].map(|end| {
                    let limbs = [end as u64, (end >> 64) as u64];
                    float::from_int(true, format, 128, &limbs)
                });
                Range::around(format, &ends, false)
            }
            Node::Ite { a, b, .. } => {
                let (a, b) = (self.of(a, format), self.of(b, format));
                let ends = [a.low, a.high, b.low, b.high];
                Range::around(format, &ends, a.may_be_nan || b.may_be_nan)
            }
            // The sign is flipped, or cleared.
            Node::Binary { op, a, b } => {
                let constant = self.arena.as_const(b).map(u128::from)?;
                let operand = self.of(a, format);
                match op {
                    BinaryOp::Xor if constant == sign(format) => {
                        let ends = [operand.low, operand.high].map(|end| end ^ sign(format));
                        Range::around(format, &ends, operand.may_be_nan)
                    }
                    BinaryOp::And if constant == sign(format) - 1 => {
                        let ends = [operand.low, operand.high].map(|end| end & !sign(format));
                        let zero = operand.contains_zero(format).then_some(0);
                        let ends: Vec<u128> = ends.into_iter().chain(zero).collect();
                        Range::around(format, &ends, operand.may_be_nan)
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Returns whether a condition is true or false for all values in the ranges.
    fn truth(&mut self, e: ExprId) -> Option<bool> {
        match self.arena.node(e) {
            Node::Constant { bits } => Some(bits != 0),
            Node::Not { e } => self.truth(e).map(|is_true| !is_true),
            Node::Binary { op, a, b } => {
                let (a, b) = (self.truth(a), self.truth(b));
                match (op, a, b) {
                    (BinaryOp::And, Some(false), _) | (BinaryOp::And, _, Some(false)) => {
                        Some(false)
                    }
                    (BinaryOp::Or, Some(true), _) | (BinaryOp::Or, _, Some(true)) => Some(true),
                    (BinaryOp::And, Some(a), Some(b)) => Some(a && b),
                    (BinaryOp::Or, Some(a), Some(b)) => Some(a || b),
                    (BinaryOp::Xor, Some(a), Some(b)) => Some(a != b),
                    _ => None,
                }
            }
            Node::FloatCompare { op, format, a, b } => {
                let (a, b) = (self.of(a, format), self.of(b, format));
                compare(op, format, a, b)
            }
            Node::Compare { op, a, b } => self.compare_integers(op, (a, b)),
            _ => None,
        }
    }

    /// Compares integers, which floats may have been converted to.
    fn compare_integers(&mut self, op: CompareOp, (a, b): (ExprId, ExprId)) -> Option<bool> {
        let width = self.arena.width(a);
        if width > 64 {
            return None;
        }
        let (mut stack, mut seen) = (vec![a, b], 0);
        while let Some(e) = stack.pop() {
            seen += 1;
            if seen > MAX_TERMS {
                return None;
            }
            if let Node::FloatToInt {
                signed,
                format,
                e: operand,
            } = self.arena.node(e)
            {
                if let Some(interval) = self.truncated(signed, format, operand, self.arena.width(e))
                {
                    self.integers.set(e, interval);
                }
            } else {
                stack.extend(self.arena.node(e).children());
            }
        }
        let (a, b) = (self.integers.of(a)?, self.integers.of(b)?);
        let (a, b) = match op {
            CompareOp::Slt | CompareOp::Sle => (a.signed(width), b.signed(width)),
            _ => (a.unsigned(width), b.unsigned(width)),
        };
        match op {
            CompareOp::Eq if a.high < b.low || b.high < a.low => Some(false),
            CompareOp::Ult | CompareOp::Slt if a.low >= b.high => Some(false),
            CompareOp::Ult | CompareOp::Slt if a.high < b.low => Some(true),
            CompareOp::Ule | CompareOp::Sle if a.low > b.high => Some(false),
            CompareOp::Ule | CompareOp::Sle if a.high <= b.low => Some(true),
            _ => None,
        }
    }

    /// Returns the values of a float that is converted to an integer, if none is out of range.
    fn truncated(
        &mut self,
        signed: bool,
        format: FloatFormat,
        operand: ExprId,
        width: u32,
    ) -> Option<Interval> {
        let range = self.of(operand, format);
        if range.may_be_nan || range.has_infinity(format) || width > 64 {
            return None;
        }
        let exact = |end: u128| {
            let limbs = float::to_int(true, format, end, 128);
            let value = i128::from(limbs[0]) | i128::from(limbs[1] as i64) << 64;
            let (low, high) = match signed {
                true => (-(1 << (width - 1)), (1 << (width - 1)) - 1),
                false => (0, (1i128 << width) - 1),
            };
            (low..=high).contains(&value).then_some(value)
        };
        Some(Interval {
            low: exact(range.low)?,
            high: exact(range.high)?,
        })
    }
}

fn binary(op: FloatOp, format: FloatFormat, a: Range, b: Range) -> Option<Range> {
    // An infinity may give NaN, as may a division by zero.
    let is_finite = !a.has_infinity(format) && !b.has_infinity(format);
    if !is_finite || op == FloatOp::Rem || op == FloatOp::Div && b.contains_zero(format) {
        return None;
    }
    let pairs = match op {
        FloatOp::Add => vec![(a.low, b.low), (a.high, b.high)],
        FloatOp::Sub => vec![(a.low, b.high), (a.high, b.low)],
        _ => vec![
            (a.low, b.low),
            (a.low, b.high),
            (a.high, b.low),
            (a.high, b.high),
        ],
    };
    let ends = pairs
        .into_iter()
        .map(|(a, b)| float::binary(op, format, a, b));
    let ends: Vec<u128> = ends.collect();
    Range::around(format, &ends, a.may_be_nan || b.may_be_nan)
}

fn compare(op: FloatCompareOp, format: FloatFormat, a: Range, b: Range) -> Option<bool> {
    let (may_be_nan, less) = (a.may_be_nan || b.may_be_nan, is_less);
    let is_false = match op {
        FloatCompareOp::Uno => !may_be_nan,
        FloatCompareOp::Oeq => less(format, a.high, b.low) || less(format, b.high, a.low),
        FloatCompareOp::Olt => is_at_most(format, b.high, a.low),
        FloatCompareOp::Ole => less(format, b.high, a.low),
    };
    let is_true = !may_be_nan
        && match op {
            FloatCompareOp::Uno => false,
            FloatCompareOp::Oeq => {
                is_at_most(format, a.high, b.low) && is_at_most(format, b.high, a.low)
            }
            FloatCompareOp::Olt => less(format, a.high, b.low),
            FloatCompareOp::Ole => is_at_most(format, a.high, b.low),
        };
    match (is_false, is_true) {
        (true, _) => Some(false),
        (_, true) => Some(true),
        _ => None,
    }
}
