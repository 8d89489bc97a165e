//! The fields of a message, and which of its bytes are masked. Where fields lie can depend on what
//! other fields say: then a message has one of several shapes.

use everett_expr::{Arena, ExprId};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Where a field begins. In a group, bytes count from the beginning of the group.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Start {
    /// Behind the field before it, or at the beginning.
    #[default]
    Next,
    /// At this byte.
    At(u32),
    /// So many bytes before the end of the message.
    BeforeEnd(u32),
    /// Behind this field.
    After(String),
    /// Where this field says.
    Said(String),
}

/// How many bytes or elements there are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Count {
    /// So many.
    Fixed(u32),
    /// All up to the end of the message.
    Rest,
    /// As many as this field says.
    Said(String),
}

/// A field of a message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Where it begins.
    pub start: Start,
    /// Its bytes; those of a group are the bytes of its fields.
    pub size: Count,
    /// How often it is there, one behind the other; `None` for a field that is there once.
    pub repeat: Option<Count>,
    /// The fields of a group.
    pub fields: Vec<Field>,
    /// It is a number with its least significant byte first.
    pub little_endian: bool,
    /// The field whose length it says.
    pub length_of: Option<String>,
    /// It is a string, which ends at its first NUL.
    pub is_string: bool,
    /// Whether clients and server may differ in it.
    pub masked: bool,
}

impl Field {
    /// A field of a name and a size behind the one before it.
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

/// A field in a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed<'l> {
    /// Its name, with those of its groups and its number where it is repeated: `option[1].kind`.
    pub name: String,
    /// Its bytes.
    pub range: Range<usize>,
    /// What it is.
    pub field: &'l Field,
    /// It, or a group that it is in, is masked.
    pub masked: bool,
}

impl Placed<'_> {
    /// Its value in a message, if it is short enough for a number.
    pub fn number(&self, message: &[u8]) -> Option<u64> {
        number(&message[self.range.clone()], self.field.little_endian)
    }
}

/// Bytes as a number, if there are few enough.
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

/// What a field says in messages of a shape.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Said {
    range: Range<usize>,
    little_endian: bool,
    number: u64,
    /// Or more, which is the same.
    is_most: bool,
}

/// Messages of a length whose fields lie in the same places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Which bytes are masked.
    pub masked: Vec<bool>,
    said: Vec<Said>,
}

impl Shape {
    /// That a message of these bytes has this shape.
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

/// More shapes of messages of one length are too many.
const MOST_SHAPES: usize = 4096;

/// The fields of a message. Bytes of no field are fields of their own.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Layout {
    /// The fields that have names.
    pub fields: Vec<Field>,
}

impl Layout {
    /// The fields of a message.
    pub fn place(&self, message: &[u8]) -> Vec<Placed<'_>> {
        let mut say = |range: Range<usize>, little_endian: bool, most: u64| {
            let said = number(&message[range], little_endian);
            said.unwrap_or_default().min(most)
        };
        Placing::all(&self.fields, message.len(), &mut say)
    }

    /// The fields that lie in the same place in all messages of a length.
    pub fn fixed(&self, length: u32) -> Vec<Placed<'_>> {
        // The more fields say, the further away lies what depends on them.
        let (mut first, last) = self.outermost(length);
        first.retain(|placed| last.contains(placed));
        first
    }

    /// The fields where others say as little, and as much, as they can.
    fn outermost(&self, length: u32) -> (Vec<Placed<'_>>, Vec<Placed<'_>>) {
        let length = length as usize;
        (
            Placing::all(&self.fields, length, &mut |_, _, _| 0),
            Placing::all(&self.fields, length, &mut |_, _, most| most),
        )
    }

    /// The shapes of messages of a length, as far as what is masked depends on them; `None` if they
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
            // The next answer to the last question that has another one.
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

/// Which bytes of a message are masked.
pub(crate) fn masked(placed: &[Placed<'_>], length: u32) -> Vec<bool> {
    let mut masked = vec![false; length as usize];
    for field in placed.iter().filter(|field| field.masked) {
        masked[field.range.clone()].fill(true);
    }
    masked
}

/// All parts of a message that are not masked: fields, and bytes of no field.
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

/// What the number in a range says, which matters up to a bound.
type Say<'a> = &'a mut dyn FnMut(Range<usize>, bool, u64) -> u64;

/// Fields on their way to their places.
struct Placing<'l, 'a> {
    length: usize,
    say: Say<'a>,
    placed: Vec<Placed<'l>>,
    /// Fields and groups by name, without numbers: the last one of each.
    known: Vec<(String, Range<usize>, bool)>,
}

impl<'l, 'a> Placing<'l, 'a> {
    /// All fields that have bytes in a message of a length.
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

    /// Places a field, as often as it is there, and returns where it ends.
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

    /// Where a field of bytes ends.
    fn bytes(&mut self, field: &Field, at: usize, prefix: &str) -> usize {
        let most = self.length - at;
        at + match &field.size {
            Count::Fixed(size) => (*size as usize).min(most),
            Count::Rest => most,
            Count::Said(name) => self.said(prefix, name, most),
        }
    }

    /// What a field says, which matters up to a bound.
    fn said(&mut self, prefix: &str, name: &str, most: usize) -> usize {
        match self.find(prefix, name) {
            Some((range, little_endian)) if most > 0 && (1..=8).contains(&range.len()) => {
                (self.say)(range, little_endian, most as u64) as usize
            }
            _ => 0,
        }
    }

    /// The field of a name, in the group of a prefix or around it.
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

    /// A header, options (kind, length, value), and a trailer behind them.
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
        // A length that says more than there is.
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
