//! The fields of a message, and which of its bytes are masked. The places of fields can depend on
//! the values of other fields; then a message has one of several shapes.

use everett_expr::{Arena, ExprId};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Where a field begins. In a group, offsets count from the beginning of the group.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Start {
    /// After the previous field, or at the beginning.
    #[default]
    Next,
    /// At this byte.
    At(u32),
    /// This many bytes before the end of the message.
    BeforeEnd(u32),
    /// After this field.
    After(String),
    /// At the offset that this field contains.
    Said(String),
}

/// A number of bytes or elements.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Count {
    /// This number.
    Fixed(u32),
    /// All up to the end of the message.
    Rest,
    /// The value of this field.
    Said(String),
}

/// A field of a message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Field {
    /// The name of the field.
    pub name: String,
    /// Where it begins.
    pub start: Start,
    /// The size in bytes; the size of a group is that of its fields.
    pub size: Count,
    /// The number of consecutive occurrences; `None` for a field that occurs once.
    pub repeat: Option<Count>,
    /// The fields of a group.
    pub fields: Vec<Field>,
    /// Whether the field is a number with its least significant byte first.
    pub little_endian: bool,
    /// The field whose length this field contains.
    pub length_of: Option<String>,
    /// Whether the field is a string that ends at its first NUL.
    pub is_string: bool,
    /// Whether the comparison of client messages with the server's message ignores the field.
    pub masked: bool,
}

impl Field {
    /// Creates a field that follows the previous one.
    pub fn new(name: &str, size: Count) -> Field {
        Field {
            name: name.to_owned(),
            start: Start::Next,
            size,
            repeat: None,
            fields: Vec::new(),
            little_endian: false,
            length_of: None,
            is_string: false,
            masked: false,
        }
    }
}

/// A field with its place in a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed<'l> {
    /// The name, with those of its groups and its index where it is repeated: `option[1].kind`.
    pub name: String,
    /// The bytes of the message that the field occupies.
    pub range: Range<usize>,
    /// The definition of the field.
    pub field: &'l Field,
    /// Whether the field, or a group that contains it, is masked.
    pub masked: bool,
}

impl Placed<'_> {
    /// Returns the value of the field in a message, if it fits a number.
    pub fn number(&self, message: &[u8]) -> Option<u64> {
        number(&message[self.range.clone()], self.field.little_endian)
    }
}

/// Returns bytes as a number, if they fit one.
fn number(bytes: &[u8], little_endian: bool) -> Option<u64> {
    if bytes.is_empty() || bytes.len() > 8 {
        return None;
    }
    let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    Some(match little_endian {
        true => bytes.iter().rev().fold(0, join),
        false => bytes.iter().fold(0, join),
    })
}

/// The value of a field in all messages of a shape.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Said {
    range: Range<usize>,
    little_endian: bool,
    number: u64,
    /// Whether larger values are included, because they have the same effect.
    is_most: bool,
}

/// All messages of one length whose fields have the same places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Which bytes are masked.
    pub masked: Vec<bool>,
    said: Vec<Said>,
}

impl Shape {
    /// Returns the conditions under which a message of these bytes has this shape.
    pub fn conditions(&self, arena: &mut Arena, bytes: &[ExprId]) -> Vec<ExprId> {
        let mut conditions = Vec::new();
        for said in &self.said {
            let mut parts = bytes[said.range.clone()].to_vec();
            if !said.little_endian {
                parts.reverse();
            }
            let whole = arena.concat_bytes(&parts);
            let whole = arena.zext(whole, u64::BITS);
            let number = arena.constant(u64::BITS, said.number);
            conditions.push(match said.is_most {
                true => arena.ule(number, whole),
                false => arena.eq(number, whole),
            });
        }
        conditions
    }
}

/// Maximum number of shapes of messages of one length.
const MOST_SHAPES: usize = 4096;

/// The fields of a message. Bytes outside of all fields are fields of their own.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Layout {
    /// The fields that have names.
    pub fields: Vec<Field>,
}

impl Layout {
    /// Returns the fields of a message.
    pub fn place(&self, message: &[u8]) -> Vec<Placed<'_>> {
        let mut say = |range: Range<usize>, little_endian: bool, most: u64| {
            let said = number(&message[range], little_endian);
            said.unwrap_or_default().min(most)
        };
        Placing::all(&self.fields, message.len(), &mut say)
    }

    /// Returns the fields that have the same place in all messages of a length.
    pub fn fixed(&self, length: u32) -> Vec<Placed<'_>> {
        // Places grow with the values that they depend on, so the two extremes suffice.
        let (mut first, last) = self.outermost(length);
        first.retain(|placed| last.contains(placed));
        first
    }

    /// Returns the fields for the smallest and for the largest values of fields that others depend
    /// on.
    fn outermost(&self, length: u32) -> (Vec<Placed<'_>>, Vec<Placed<'_>>) {
        let length = length as usize;
        (
            Placing::all(&self.fields, length, &mut |_, _, _| 0),
            Placing::all(&self.fields, length, &mut |_, _, most| most),
        )
    }

    /// Returns the shapes of messages of a length, as far as masks depend on them; `None` if there
    /// are too many.
    pub fn shapes(&self, length: u32) -> Option<Vec<Shape>> {
        let (first, last) = self.outermost(length);
        let mut all = first.iter().chain(&last);
        if !all.any(|placed| placed.masked && !(first.contains(placed) && last.contains(placed))) {
            return Some(vec![Shape {
                masked: masked(&first, length),
                said: Vec::new(),
            }]);
        }
        let (mut shapes, mut answers) = (Vec::new(), Vec::new());
        loop {
            let mut said: Vec<Said> = Vec::new();
            let mut say = |range: Range<usize>, little_endian: bool, most: u64| {
                let number = answers.get(said.len()).copied().unwrap_or(0);
                said.push(Said {
                    range,
                    little_endian,
                    number,
                    is_most: number == most,
                });
                number
            };
            let placed = Placing::all(&self.fields, length as usize, &mut say);
            shapes.push(Shape {
                masked: masked(&placed, length),
                said: said.clone(),
            });
            if shapes.len() > MOST_SHAPES {
                return None;
            }
            // Enumerate the next combination: increment the last value that can still grow.
            while said.last().is_some_and(|last| last.is_most) {
                said.pop();
            }
            let Some(last) = said.last_mut() else {
                return Some(shapes);
            };
            last.number += 1;
            answers = said.iter().map(|said| said.number).collect();
        }
    }
}

/// Returns which bytes of a message are masked.
pub(crate) fn masked(placed: &[Placed<'_>], length: u32) -> Vec<bool> {
    let mut masked = vec![false; length as usize];
    for field in placed.iter().filter(|field| field.masked) {
        masked[field.range.clone()].fill(true);
    }
    masked
}

/// Returns all parts of a message that are not masked: fields, and bytes outside of all fields.
pub fn unmasked(placed: &[Placed<'_>], length: u32) -> Vec<(String, Range<usize>)> {
    let mut all = Vec::new();
    let mut covered = vec![false; length as usize];
    for field in placed {
        covered[field.range.clone()].fill(true);
        if !field.masked {
            all.push((field.name.clone(), field.range.clone()));
        }
    }
    for (at, _) in covered.iter().enumerate().filter(|(_, covered)| !**covered) {
        all.push((format!("byte {at}"), at..at + 1));
    }
    all.sort_by_key(|(_, range)| range.start);
    all
}

/// Returns the number in a range of bytes, capped at a bound: larger values have the same effect.
type Say<'a> = &'a mut dyn FnMut(Range<usize>, bool, u64) -> u64;

/// The state of assigning places to fields.
struct Placing<'l, 'a> {
    length: usize,
    say: Say<'a>,
    placed: Vec<Placed<'l>>,
    /// Fields and groups by name without index: the last occurrence of each.
    known: Vec<(String, Range<usize>, bool)>,
}

impl<'l, 'a> Placing<'l, 'a> {
    /// Returns all fields that have bytes in a message of a length.
    fn all(fields: &'l [Field], length: usize, say: Say<'a>) -> Vec<Placed<'l>> {
        let mut placing = Placing {
            length,
            say,
            placed: Vec::new(),
            known: Vec::new(),
        };
        placing.fields(fields, 0, "", false);
        placing.placed.retain(|placed| !placed.range.is_empty());
        placing.placed
    }

    /// Places the fields of a message or group, and returns where they end.
    fn fields(&mut self, fields: &'l [Field], base: usize, prefix: &str, masked: bool) -> usize {
        let (mut next, mut end) = (base, base);
        for field in fields {
            let start = match &field.start {
                Start::Next => next,
                Start::At(at) => base + *at as usize,
                Start::BeforeEnd(bytes) => self.length.saturating_sub(*bytes as usize),
                Start::After(name) => self.find(prefix, name).map_or(next, |found| found.0.end),
                Start::Said(name) => self.said(prefix, name, self.length),
            };
            next = self.field(field, start.min(self.length), prefix, masked);
            end = end.max(next);
        }
        end
    }

    /// Places all occurrences of a field, and returns where the last one ends.
    fn field(&mut self, field: &'l Field, start: usize, prefix: &str, masked: bool) -> usize {
        let (masked, most) = (masked || field.masked, self.length - start);
        let times = match &field.repeat {
            None => 1,
            Some(Count::Fixed(times)) => *times as usize,
            Some(Count::Rest) => most,
            Some(Count::Said(name)) => self.said(prefix, name, most),
        };
        let mut at = start;
        for number in 0..times {
            let mut name = format!("{prefix}{}", field.name);
            if field.repeat.is_some() {
                name = format!("{name}[{number}]");
            }
            let end = match field.fields.is_empty() {
                true => self.bytes(field, at, prefix),
                false => self.fields(&field.fields, at, &format!("{name}."), masked),
            };
            if field.fields.is_empty() {
                let range = at..end;
                self.placed.push(Placed {
                    name,
                    range,
                    field,
                    masked,
                });
            }
            let plain = format!("{prefix}{}", field.name);
            self.known.push((plain, at..end, field.little_endian));
            if end == at {
                break;
            }
            at = end;
        }
        at
    }

    /// Returns where a field of bytes ends.
    fn bytes(&mut self, field: &Field, at: usize, prefix: &str) -> usize {
        let most = self.length - at;
        at + match &field.size {
            Count::Fixed(size) => (*size as usize).min(most),
            Count::Rest => most,
            Count::Said(name) => self.said(prefix, name, most),
        }
    }

    /// Returns the value of a field, capped at a bound.
    fn said(&mut self, prefix: &str, name: &str, most: usize) -> usize {
        match self.find(prefix, name) {
            Some((range, little_endian)) if most > 0 && (1..=8).contains(&range.len()) => {
                (self.say)(range, little_endian, most as u64) as usize
            }
            _ => 0,
        }
    }

    /// Returns the field with a name, in the group of a prefix or in an enclosing one.
    fn find(&self, prefix: &str, name: &str) -> Option<(Range<usize>, bool)> {
        let mut prefix = prefix;
        loop {
            let full = format!("{prefix}{name}");
            let mut known = self.known.iter().rev();
            if let Some((_, range, little_endian)) = known.find(|known| known.0 == full) {
                return Some((range.clone(), *little_endian));
            }
            let inner = prefix.strip_suffix('.')?;
            prefix = inner.rfind('.').map_or("", |at| &inner[..=at]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(layout: &Layout, message: &[u8]) -> Vec<(String, Vec<u8>)> {
        let placed = layout.place(message).into_iter();
        let bytes = placed.map(|field| (field.name, message[field.range].to_vec()));
        bytes.collect()
    }

    /// A header, options (kind, length, value), and a trailer after them.
    fn options() -> Layout {
        let said = |name: &str| Count::Said(name.to_owned());
        let option = Field {
            repeat: Some(said("count")),
            fields: vec![
                Field::new("kind", Count::Fixed(1)),
                Field::new("len", Count::Fixed(1)),
                Field::new("value", said("len")),
            ],
            ..Field::new("option", Count::Fixed(0))
        };
        let sum = Field {
            masked: true,
            ..Field::new("sum", Count::Fixed(1))
        };
        Layout {
            fields: vec![Field::new("count", Count::Fixed(1)), option, sum],
        }
    }

    #[test]
    fn fields_lie_where_others_say() {
        let expected = [
            ("count", vec![2]),
            ("option[0].kind", vec![7]),
            ("option[0].len", vec![1]),
            ("option[0].value", vec![9]),
            ("option[1].kind", vec![8]),
            ("option[1].len", vec![0]),
            ("sum", vec![5]),
        ];
        let expected = expected.map(|(name, bytes)| (name.to_owned(), bytes));
        assert_eq!(names(&options(), &[2, 7, 1, 9, 8, 0, 5]), expected);
        // A length that is larger than the rest of the message.
        let clipped = names(&options(), &[1, 7, 200, 9]);
        assert_eq!(clipped[3], ("option[0].value".to_owned(), vec![9]));
        assert_eq!(clipped.len(), 4);
        let layout = options();
        let fixed = layout.fixed(7);
        let fixed: Vec<&str> = fixed.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(fixed, ["count"]);
    }

    #[test]
    fn offsets_count_from_the_end_or_are_said() {
        let pointer = Field::new("pointer", Count::Fixed(1));
        let there = Field {
            start: Start::Said("pointer".to_owned()),
            ..Field::new("there", Count::Fixed(1))
        };
        let last = Field {
            start: Start::BeforeEnd(2),
            ..Field::new("last", Count::Rest)
        };
        let layout = Layout {
            fields: vec![pointer, there, last],
        };
        let expected = [
            ("pointer", vec![2]),
            ("there", vec![4]),
            ("last", vec![5, 6]),
        ];
        let expected = expected.map(|(name, bytes)| (name.to_owned(), bytes));
        assert_eq!(names(&layout, &[2, 3, 4, 5, 6]), expected);
    }

    /// Each message has exactly one shape, whose mask is that of its fields.
    #[test]
    fn shapes_are_all_messages() {
        let layout = options();
        let shapes = layout.shapes(4).expect("few shapes");
        assert!(shapes.len() > 4);
        for code in 0..4u32.pow(4) {
            let message: Vec<u8> = (0..4).map(|at| (code >> (2 * at) & 3) as u8).collect();
            let mut arena = Arena::new();
            let bytes: Vec<ExprId> = message
                .iter()
                .map(|byte| arena.constant(8, u64::from(*byte)))
                .collect();
            let is_its = |shape: &&Shape| {
                let conditions = shape.conditions(&mut arena, &bytes);
                conditions.iter().all(|one| arena.is_true(*one))
            };
            let found: Vec<&Shape> = shapes.iter().filter(is_its).collect();
            assert_eq!(found.len(), 1, "{message:?}");
            assert_eq!(
                found[0].masked,
                masked(&layout.place(&message), 4),
                "{message:?}"
            );
        }
    }
}
