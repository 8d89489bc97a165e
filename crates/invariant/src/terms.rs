//! Truth values, numbers and bytes that are known or symbolic. Known ones are computed without
//! creating terms, and a constant term becomes known.

use everett_expr::{Arena, ExprId};

/// A byte of exposed data.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Byte {
    /// A known byte.
    Known(u8),
    /// A term of width 8.
    Term(ExprId),
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Truth {
    Known(bool),
    /// A term of width 1, not constant.
    Term(ExprId),
}

/// A signed 64-bit number.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Int {
    Known(i64),
    /// A term of width 64, not constant.
    Term(ExprId),
}

impl Byte {
    pub(crate) fn of(arena: &Arena, term: ExprId) -> Byte {
        match arena.as_const(term) {
            Some(value) => Byte::Known(value as u8),
            None => Byte::Term(term),
        }
    }

    pub(crate) fn term(self, arena: &mut Arena) -> ExprId {
        match self {
            Byte::Known(value) => arena.constant(8, u64::from(value)),
            Byte::Term(term) => term,
        }
    }

    pub(crate) fn equals(self, other: Byte, arena: &mut Arena) -> Truth {
        match (self, other) {
            (Byte::Known(a), Byte::Known(b)) => Truth::Known(a == b),
            (a, b) if a == b => Truth::Known(true),
            (a, b) => {
                let (a, b) = (a.term(arena), b.term(arena));
                let equal = arena.eq(a, b);
                Truth::of(arena, equal)
            }
        }
    }

    /// Returns `self` if the condition holds, else `other`.
    pub(crate) fn merge(self, condition: Truth, other: Byte, arena: &mut Arena) -> Byte {
        match condition {
            Truth::Known(true) => self,
            Truth::Known(false) => other,
            Truth::Term(_) if self == other => self,
            Truth::Term(condition) => {
                let (a, b) = (self.term(arena), other.term(arena));
                let merged = arena.ite(condition, a, b);
                Byte::of(arena, merged)
            }
        }
    }
}

impl Truth {
    pub fn of(arena: &Arena, term: ExprId) -> Truth {
        match arena.as_const(term) {
            Some(value) => Truth::Known(value != 0),
            None => Truth::Term(term),
        }
    }

    pub fn term(self, arena: &mut Arena) -> ExprId {
        match self {
            Truth::Known(value) => arena.bool_constant(value),
            Truth::Term(term) => term,
        }
    }

    pub fn not(self, arena: &mut Arena) -> Truth {
        match self {
            Truth::Known(value) => Truth::Known(!value),
            Truth::Term(term) => {
                let opposite = arena.not(term);
                Truth::of(arena, opposite)
            }
        }
    }

    pub fn and(self, other: Truth, arena: &mut Arena) -> Truth {
        match (self, other) {
            (Truth::Known(true), rest) | (rest, Truth::Known(true)) => rest,
            (Truth::Known(false), _) | (_, Truth::Known(false)) => Truth::Known(false),
            (Truth::Term(a), Truth::Term(b)) => {
                let both = arena.and(a, b);
                Truth::of(arena, both)
            }
        }
    }

    pub fn or(self, other: Truth, arena: &mut Arena) -> Truth {
        match (self, other) {
            (Truth::Known(false), rest) | (rest, Truth::Known(false)) => rest,
            (Truth::Known(true), _) | (_, Truth::Known(true)) => Truth::Known(true),
            (Truth::Term(a), Truth::Term(b)) => {
                let either = arena.or(a, b);
                Truth::of(arena, either)
            }
        }
    }

    pub fn implies(self, other: Truth, arena: &mut Arena) -> Truth {
        self.not(arena).or(other, arena)
    }

    pub fn equals(self, other: Truth, arena: &mut Arena) -> Truth {
        match (self, other) {
            (Truth::Known(true), rest) | (rest, Truth::Known(true)) => rest,
            (Truth::Known(false), rest) | (rest, Truth::Known(false)) => rest.not(arena),
            (Truth::Term(a), Truth::Term(b)) => {
                let equal = arena.eq(a, b);
                Truth::of(arena, equal)
            }
        }
    }

    pub fn merge(self, condition: Truth, other: Truth, arena: &mut Arena) -> Truth {
        match condition {
            Truth::Known(true) => self,
            Truth::Known(false) => other,
            Truth::Term(_) if self == other => self,
            Truth::Term(condition) => {
                let (a, b) = (self.term(arena), other.term(arena));
                let merged = arena.ite(condition, a, b);
                Truth::of(arena, merged)
            }
        }
    }

    /// Returns 1 if the condition holds, else 0.
    pub fn widen(self, arena: &mut Arena) -> Int {
        match self {
            Truth::Known(value) => Int::Known(i64::from(value)),
            Truth::Term(term) => {
                let wide = arena.zext(term, 64);
                Int::of(arena, wide)
            }
        }
    }
}

impl Int {
    pub fn of(arena: &Arena, term: ExprId) -> Int {
        match arena.as_const(term) {
            Some(value) => Int::Known(value as i64),
            None => Int::Term(term),
        }
    }

    pub fn term(self, arena: &mut Arena) -> ExprId {
        match self {
            Int::Known(value) => arena.constant(64, value as u64),
            Int::Term(term) => term,
        }
    }

    pub fn equals(self, other: Int, arena: &mut Arena) -> Truth {
        match (self, other) {
            (Int::Known(a), Int::Known(b)) => Truth::Known(a == b),
            (a, b) => {
                let (a, b) = (a.term(arena), b.term(arena));
                let equal = arena.eq(a, b);
                Truth::of(arena, equal)
            }
        }
    }

    pub fn less(self, other: Int, arena: &mut Arena) -> Truth {
        match (self, other) {
            (Int::Known(a), Int::Known(b)) => Truth::Known(a < b),
            (a, b) => {
                let (a, b) = (a.term(arena), b.term(arena));
                let less = arena.slt(a, b);
                Truth::of(arena, less)
            }
        }
    }

    pub fn less_or_equal(self, other: Int, arena: &mut Arena) -> Truth {
        other.less(self, arena).not(arena)
    }

    pub fn merge(self, condition: Truth, other: Int, arena: &mut Arena) -> Int {
        match condition {
            Truth::Known(true) => self,
            Truth::Known(false) => other,
            Truth::Term(_) if self == other => self,
            Truth::Term(condition) => {
                let (a, b) = (self.term(arena), other.term(arena));
                let merged = arena.ite(condition, a, b);
                Int::of(arena, merged)
            }
        }
    }

    /// Returns the sum, and whether it overflows.
    pub fn add(self, other: Int, arena: &mut Arena) -> (Int, Truth) {
        if let (Int::Known(a), Int::Known(b)) = (self, other) {
            let (sum, overflow) = a.overflowing_add(b);
            return (Int::Known(sum), Truth::Known(overflow));
        }
        let (a, b) = (self.term(arena), other.term(arena));
        let sum = arena.add(a, b);
        let fits = u128::from(most(arena, a)) + u128::from(most(arena, b)) <= i64::MAX as u128;
        if fits {
            return (Int::of(arena, sum), Truth::Known(false));
        }
        // It overflows if both operands have the sign that the sum does not have.
        let (x, y) = (arena.xor(a, sum), arena.xor(b, sum));
        let signs = arena.and(x, y);
        (Int::of(arena, sum), is_negative(arena, signs))
    }

    /// Returns the difference, and whether it overflows.
    pub fn subtract(self, other: Int, arena: &mut Arena) -> (Int, Truth) {
        if let (Int::Known(a), Int::Known(b)) = (self, other) {
            let (difference, overflow) = a.overflowing_sub(b);
            return (Int::Known(difference), Truth::Known(overflow));
        }
        let (a, b) = (self.term(arena), other.term(arena));
        let difference = arena.sub(a, b);
        if most(arena, a) <= i64::MAX as u64 && most(arena, b) <= i64::MAX as u64 {
            return (Int::of(arena, difference), Truth::Known(false));
        }
        let (x, y) = (arena.xor(a, b), arena.xor(a, difference));
        let signs = arena.and(x, y);
        (Int::of(arena, difference), is_negative(arena, signs))
    }

    /// Returns the product, and whether it overflows.
    pub fn multiply(self, other: Int, arena: &mut Arena) -> (Int, Truth) {
        if let (Int::Known(a), Int::Known(b)) = (self, other) {
            let (product, overflow) = a.overflowing_mul(b);
            return (Int::Known(product), Truth::Known(overflow));
        }
        let (a, b) = (self.term(arena), other.term(arena));
        let product = arena.mul(a, b);
        let fits = u128::from(most(arena, a)) * u128::from(most(arena, b)) <= i64::MAX as u128;
        if fits {
            return (Int::of(arena, product), Truth::Known(false));
        }
        let (wide_a, wide_b) = (arena.sext(a, 128), arena.sext(b, 128));
        let wide = arena.mul(wide_a, wide_b);
        let again = arena.sext(product, 128);
        let overflow = arena.ne(wide, again);
        (Int::of(arena, product), Truth::of(arena, overflow))
    }

    /// Returns the quotient or the remainder, rounded towards zero. The caller ensures that it is
    /// defined.
    pub fn divide(self, other: Int, remainder: bool, arena: &mut Arena) -> Int {
        if let (Int::Known(a), Int::Known(b)) = (self, other) {
            let result = match remainder {
                true => a.checked_rem(b),
                false => a.checked_div(b),
            };
            return Int::Known(result.unwrap_or(0));
        }
        let (a, b) = (self.term(arena), other.term(arena));
        let result = match remainder {
            true => arena.srem(a, b),
            false => arena.sdiv(a, b),
        };
        Int::of(arena, result)
    }

    /// Applies an operation to the bits.
    pub fn bitwise(
        self,
        other: Int,
        arena: &mut Arena,
        known: fn(i64, i64) -> i64,
        term: fn(&mut Arena, ExprId, ExprId) -> ExprId,
    ) -> Int {
        if let (Int::Known(a), Int::Known(b)) = (self, other) {
            return Int::Known(known(a, b));
        }
        let (a, b) = (self.term(arena), other.term(arena));
        let result = term(arena, a, b);
        Int::of(arena, result)
    }
}

/// Returns the maximal unsigned value of a term.
fn most(arena: &Arena, term: ExprId) -> u64 {
    arena.unsigned_range(term).1
}

fn is_negative(arena: &mut Arena, term: ExprId) -> Truth {
    let zero = arena.zero(64);
    let negative = arena.slt(term, zero);
    Truth::of(arena, negative)
}

/// Returns the number in at most 8 bytes, least significant first.
pub(crate) fn number(bytes: &[Byte], signed: bool, arena: &mut Arena) -> Int {
    let width = 8 * bytes.len() as u32;
    let mut value = 0;
    let mut known = true;
    for byte in bytes.iter().rev() {
        match byte {
            Byte::Known(byte) => value = value << 8 | u64::from(*byte),
            Byte::Term(_) => known = false,
        }
    }
    if known {
        let unused = 64 - width.clamp(1, 64);
        return Int::Known(match signed {
            true => (value << unused) as i64 >> unused,
            false => value as i64,
        });
    }
    let terms: Vec<ExprId> = bytes.iter().map(|byte| byte.term(arena)).collect();
    let all = arena.concat_bytes(&terms);
    let wide = match signed {
        true => arena.sext(all, 64),
        false => arena.zext(all, 64),
    };
    Int::of(arena, wide)
}
