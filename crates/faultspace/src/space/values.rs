//! The values of an axis and their order.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A value of an axis.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A number.
    Number(i64),
    /// A sub-interval: its first and last number.
    Range(i64, i64),
    /// A word.
    Word(String),
}

impl Value {
    /// Returns the value of a word: a number if it is one.
    pub fn of_word(word: &str) -> Value {
        let range = word
            .strip_prefix('<')
            .and_then(|rest| rest.strip_suffix('>'));
        let ends = range.and_then(|range| range.split_once(','));
        if let Some((from, to)) = ends
            && let (Ok(from), Ok(to)) = (from.trim().parse(), to.trim().parse())
        {
            return Value::Range(from, to);
        }
        match word.parse() {
            Ok(number) => Value::Number(number),
            Err(_) => Value::Word(word.to_owned()),
        }
    }

    /// Returns the first and last number of a number or sub-interval.
    pub fn numbers(&self) -> Option<(i64, i64)> {
        match self {
            Value::Number(number) => Some((*number, *number)),
            Value::Range(from, to) => Some((*from, *to)),
            Value::Word(_) => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => write!(to, "{number}"),
            Value::Range(first, last) => write!(to, "<{first},{last}>"),
            Value::Word(word) => to.write_str(word),
        }
    }
}

/// Numbers at equal distances.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Interval {
    /// The first number.
    pub first: i64,
    /// The distance, at least 1.
    pub step: u64,
    /// The number of numbers, at least 1.
    pub count: u64,
}

impl Interval {
    /// Returns the numbers from `first` to at most `last`. `None` if there are none.
    pub fn new(first: i64, last: i64, step: u64) -> Option<Interval> {
        let distance = u64::try_from(i128::from(last) - i128::from(first)).ok()?;
        let count = (distance / step).checked_add(1)?;
        Some(Interval { first, step, count })
    }

    fn get(&self, index: u64) -> i64 {
        (i128::from(self.first) + i128::from(index) * i128::from(self.step)) as i64
    }

    fn index_of(&self, number: i64) -> Option<u64> {
        let distance = u64::try_from(i128::from(number) - i128::from(self.first)).ok()?;
        let index = distance / self.step;
        (distance % self.step == 0 && index < self.count).then_some(index)
    }
}

/// The values of an axis, in order.
#[derive(Clone, PartialEq, Debug)]
pub enum Values {
    /// Listed values.
    Set(Vec<Value>),
    /// Numbers.
    Numbers(Interval),
    /// Numbers in Gray code order: neighbours differ in one bit.
    Gray(Interval),
    /// Sub-intervals. Neighbours differ by one step at one end, or by one step at both.
    Ranges(Interval),
}

impl Values {
    /// Returns the number of values.
    pub fn len(&self) -> u64 {
        match self {
            Values::Set(values) => values.len() as u64,
            Values::Numbers(interval) | Values::Gray(interval) => interval.count,
            Values::Ranges(interval) => ranges(interval.count).unwrap_or(u64::MAX),
        }
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value at an index.
    pub fn get(&self, index: u64) -> Value {
        match self {
            Values::Set(values) => values[index as usize].clone(),
            Values::Numbers(interval) => Value::Number(interval.get(index)),
            Values::Gray(interval) => Value::Number(interval.get(index ^ (index >> 1))),
            Values::Ranges(interval) => {
                let (from, to) = range_at(interval.count, index);
                Value::Range(interval.get(from), interval.get(to))
            }
        }
    }

    /// Returns the index of a value.
    pub fn index_of(&self, value: &Value) -> Option<u64> {
        match (self, value) {
            (Values::Set(values), value) => {
                let at = values.iter().position(|own| own == value)?;
                Some(at as u64)
            }
            (Values::Numbers(interval), Value::Number(number)) => interval.index_of(*number),
            (Values::Gray(interval), Value::Number(number)) => {
                let mut index = interval.index_of(*number)?;
                for shift in [1, 2, 4, 8, 16, 32] {
                    index ^= index >> shift;
                }
                Some(index)
            }
            (Values::Ranges(interval), Value::Range(from, to)) => {
                let (from, to) = (interval.index_of(*from)?, interval.index_of(*to)?);
                (from <= to).then(|| index_of_range(interval.count, from, to))
            }
            _ => None,
        }
    }
}

/// Returns the number of sub-intervals of an interval with this many numbers.
pub fn ranges(count: u64) -> Option<u64> {
    let product = u128::from(count) * (u128::from(count) + 1) / 2;
    u64::try_from(product).ok()
}

/// Returns the number of sub-intervals that begin before the number at an index.
fn before(count: u64, from: u64) -> u64 {
    let (count, from) = (u128::from(count), u128::from(from));
    (from * count - from * from.saturating_sub(1) / 2) as u64
}

/// Returns the sub-interval at an index. Sub-intervals are ordered by their beginning; their ends
/// alternately ascend and descend.
fn range_at(count: u64, index: u64) -> (u64, u64) {
    let (mut low, mut high) = (0, count);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match before(count, middle) <= index {
            true => low = middle,
            false => high = middle,
        }
    }
    let within = index - before(count, low);
    let end = match low % 2 {
        0 => low + within,
        _ => count - 1 - within,
    };
    (low, end)
}

fn index_of_range(count: u64, from: u64, to: u64) -> u64 {
    before(count, from)
        + match from % 2 {
            0 => to - from,
            _ => count - 1 - to,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(first: i64, last: i64, step: u64) -> Interval {
        Interval::new(first, last, step).unwrap()
    }

    #[test]
    fn every_value_has_one_index() {
        let all = [
            Values::Set(vec![Value::Number(-1), Value::Word("a".to_owned())]),
            Values::Numbers(interval(-5, 9, 3)),
            Values::Gray(interval(16, 31, 1)),
            Values::Ranges(interval(1, 7, 1)),
            Values::Ranges(interval(10, 60, 10)),
        ];
        for values in all {
            let mut seen = std::collections::BTreeSet::new();
            for index in 0..values.len() {
                let value = values.get(index);
                assert_eq!(values.index_of(&value), Some(index), "{value}");
                assert_eq!(Value::of_word(&value.to_string()), value);
                assert!(seen.insert(value));
            }
        }
        assert_eq!(
            Values::Numbers(interval(0, 9, 3)).index_of(&Value::Number(4)),
            None
        );
        assert_eq!(Values::Ranges(interval(1, 50, 1)).len(), 1275);
        assert_eq!(Interval::new(5, 4, 1), None);
        assert_eq!(interval(i64::MIN, i64::MAX, u64::MAX).count, 2);
    }

    #[test]
    fn neighbours_in_gray_code_differ_in_one_bit() {
        let gray = Values::Gray(interval(0, 4095, 1));
        for index in 1..4096 {
            let (Value::Number(a), Value::Number(b)) = (gray.get(index - 1), gray.get(index))
            else {
                unreachable!()
            };
            assert_eq!((a ^ b).count_ones(), 1);
        }
    }

    #[test]
    fn neighbouring_sub_intervals_are_similar() {
        let ranges = Values::Ranges(interval(1, 20, 1));
        for index in 1..ranges.len() {
            let (Value::Range(a, b), Value::Range(c, d)) =
                (ranges.get(index - 1), ranges.get(index))
            else {
                unreachable!()
            };
            assert!((a - c).abs() + (b - d).abs() <= 2);
        }
    }
}
