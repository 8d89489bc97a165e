//! The value of a register.

use everett_expr::{Arena, ExprId};

/// A value of at most 64 bits: concrete bits, or a term. Concrete values are zero-extended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Value {
    /// The bits; 0 for a symbolic value.
    pub bits: u64,
    /// The term, if the value is symbolic.
    pub term: Option<ExprId>,
}

impl Value {
    /// Concrete zero.
    pub const ZERO: Value = Value {
        bits: 0,
        term: None,
    };

    /// Creates a concrete value.
    #[inline(always)]
    pub const fn concrete(bits: u64) -> Value {
        Value { bits, term: None }
    }

    /// Creates the value of a term; concrete if the term is a constant.
    pub fn of_term(arena: &Arena, term: ExprId) -> Value {
        match arena.as_const(term) {
            Some(bits) => Value::concrete(bits),
            None => Value {
                bits: 0,
                term: Some(term),
            },
        }
    }

    /// Returns the bits, if the value is concrete.
    #[inline(always)]
    pub fn as_concrete(self) -> Option<u64> {
        if self.term.is_none() {
            Some(self.bits)
        } else {
            None
        }
    }

    /// Converts to a term of this width. A term of another width is truncated or zero-extended,
    /// like the bits of a register.
    pub fn to_term(self, arena: &mut Arena, width: u32) -> ExprId {
        match self.term {
            None => arena.constant(width, self.bits),
            Some(term) => resize(arena, term, width),
        }
    }
}

/// Truncates or zero-extends a term.
pub fn resize(arena: &mut Arena, term: ExprId, width: u32) -> ExprId {
    let has = arena.width(term);
    match has.cmp(&width) {
        std::cmp::Ordering::Equal => term,
        std::cmp::Ordering::Less => arena.zext(term, width),
        std::cmp::Ordering::Greater => arena.extract(term, 0, width),
    }
}

/// Returns a mask of the low `width` bits.
#[inline(always)]
pub fn mask(width: u32) -> u64 {
    u64::MAX >> (64 - width)
}

/// Returns the bits of a register as a signed integer of this width.
#[inline(always)]
pub fn signed(bits: u64, width: u32) -> i64 {
    ((bits << (64 - width)) as i64) >> (64 - width)
}
