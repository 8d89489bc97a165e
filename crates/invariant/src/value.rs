//! Values of the evaluator. The length of a string and the presence of an element can be symbolic,
//! so that two values of the same type can always be merged under a condition.

use crate::terms::{Byte, Int, Truth};
use everett_expr::Arena;
use std::rc::Rc;

/// A value of any type; strings and data are both bytes.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Value {
    Bool(Truth),
    Int(Int),
    Bytes(Bytes),
    Array(Rc<Vec<Element>>),
}

/// An element that is present if the condition holds. Present elements keep their order.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Element {
    pub present: Truth,
    pub value: Value,
}

/// A string or data. Bytes past the length are zero; a known length is the number of bytes.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Bytes {
    pub bytes: Rc<[Byte]>,
    pub length: Int,
}

impl Bytes {
    pub fn new(bytes: impl Into<Rc<[Byte]>>) -> Bytes {
        let bytes = bytes.into();
        let length = Int::Known(bytes.len() as i64);
        Bytes { bytes, length }
    }

    pub fn text(text: &[u8]) -> Bytes {
        let bytes: Vec<Byte> = text.iter().map(|byte| Byte::Known(*byte)).collect();
        Bytes::new(bytes)
    }

    /// Creates bytes whose length may be a term.
    pub fn with_length(mut bytes: Vec<Byte>, length: Int) -> Bytes {
        if let Int::Known(known) = length {
            bytes.truncate(usize::try_from(known).unwrap_or(0));
        }
        let bytes = bytes.into();
        Bytes { bytes, length }
    }

    /// Returns the text, if all of it is known and valid.
    pub fn known(&self) -> Option<String> {
        let Int::Known(_) = self.length else {
            return None;
        };
        let bytes = self.bytes.iter().map(|byte| match byte {
            Byte::Known(value) => Some(*value),
            Byte::Term(_) => None,
        });
        String::from_utf8(bytes.collect::<Option<_>>()?).ok()
    }

    fn at(&self, index: usize) -> Byte {
        self.bytes.get(index).copied().unwrap_or(Byte::Known(0))
    }

    pub fn equals(&self, other: &Bytes, arena: &mut Arena) -> Truth {
        let mut equal = self.length.equals(other.length, arena);
        // If the lengths are equal, bytes past the end are zero in both.
        for (a, b) in self.bytes.iter().zip(other.bytes.iter()) {
            if equal == Truth::Known(false) {
                break;
            }
            let same = a.equals(*b, arena);
            equal = equal.and(same, arena);
        }
        equal
    }

    pub fn merge(&self, condition: Truth, other: &Bytes, arena: &mut Arena) -> Bytes {
        let length = self.length.merge(condition, other.length, arena);
        let capacity = self.bytes.len().max(other.bytes.len());
        let bytes = (0..capacity).map(|i| self.at(i).merge(condition, other.at(i), arena));
        let bytes = bytes.collect();
        Bytes::with_length(bytes, length)
    }

    /// Returns whether the bytes of another value occur at an index.
    pub fn has_at(&self, index: usize, other: &Bytes, arena: &mut Arena) -> Truth {
        let (end, _) = other.length.add(Int::Known(index as i64), arena);
        let mut all = end.less_or_equal(self.length, arena);
        for (i, wanted) in other.bytes.iter().enumerate() {
            if all == Truth::Known(false) {
                break;
            }
            let needed = Int::Known(i as i64).less(other.length, arena);
            let same = self.at(index + i).equals(*wanted, arena);
            let fine = needed.implies(same, arena);
            all = all.and(fine, arena);
        }
        all
    }
}

impl Value {
    pub fn text(text: &str) -> Value {
        Value::Bytes(Bytes::text(text.as_bytes()))
    }

    pub fn array(elements: Vec<Element>) -> Value {
        Value::Array(Rc::new(elements))
    }

    /// Returns the cost of traversing the value once.
    pub fn size(&self) -> u64 {
        match self {
            Value::Bool(_) | Value::Int(_) => 1,
            Value::Bytes(bytes) => 1 + bytes.bytes.len() as u64,
            Value::Array(elements) => 1 + elements.iter().map(|e| e.value.size()).sum::<u64>(),
        }
    }

    /// Returns `self` if the condition holds, else `other`, which has the same type.
    pub fn merge(&self, condition: Truth, other: &Value, arena: &mut Arena) -> Value {
        match condition {
            Truth::Known(true) => return self.clone(),
            Truth::Known(false) => return other.clone(),
            Truth::Term(_) if self == other => return self.clone(),
            Truth::Term(_) => {}
        }
        match (self, other) {
            (Value::Bool(a), Value::Bool(b)) => Value::Bool(a.merge(condition, *b, arena)),
            (Value::Int(a), Value::Int(b)) => Value::Int(a.merge(condition, *b, arena)),
            (Value::Bytes(a), Value::Bytes(b)) => Value::Bytes(a.merge(condition, b, arena)),
            (Value::Array(a), Value::Array(b)) => merge_arrays(a, condition, b, arena),
            _ => unreachable!("values of one type were checked to meet"),
        }
    }
}

fn merge_arrays(a: &[Element], condition: Truth, b: &[Element], arena: &mut Arena) -> Value {
    let aligned = a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.present == y.present);
    if aligned {
        let pairs = a.iter().zip(b).map(|(x, y)| Element {
            present: x.present,
            value: x.value.merge(condition, &y.value, arena),
        });
        return Value::array(pairs.collect());
    }
    let mut elements = Vec::with_capacity(a.len() + b.len());
    let otherwise = condition.not(arena);
    for (condition, side) in [(condition, a), (otherwise, b)] {
        for element in side {
            elements.push(Element {
                present: element.present.and(condition, arena),
                value: element.value.clone(),
            });
        }
    }
    elements.retain(|element| element.present != Truth::Known(false));
    Value::array(elements)
}
