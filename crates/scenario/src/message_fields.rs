//! Reads the message fields of `[trojans]`: their positions, lengths and repetitions, and which of
//! them are masked.

use crate::model::{FieldCount, FieldStart, MessageField};
use crate::reader::{Table, ValueReader, needed, unknown, wrong};
use crate::source::{Diagnostics, SourceSpan};
use crate::toml_tree::{TomlNode, TomlValue};

/// Maximum size of a field that contains the position, length or count of another field.
const MOST_NUMBER: u32 = 8;

/// Reads the fields of messages of at most this length.
pub(crate) fn read(node: &TomlNode, most: u32, diagnostics: &mut Diagnostics) -> Vec<MessageField> {
    let reader = FieldReader {
        most,
        is_group: false,
    };
    reader.fields(node, &[], diagnostics)
}

/// Reads the fields of a message or of a group.
struct FieldReader {
    /// The length of the longest message.
    most: u32,
    is_group: bool,
}

impl FieldReader {
    /// Reads fields. The fields around a group precede its own fields.
    fn fields(
        &self,
        node: &TomlNode,
        around: &[MessageField],
        diagnostics: &mut Diagnostics,
    ) -> Vec<MessageField> {
        let TomlValue::List(nodes) = &node.value else {
            let wanted = "an array of { name = \"cmd\", offset = 0, size = 1 }, or \"struct NAME\"";
            wrong(node, wanted, &node.value, diagnostics);
            return Vec::new();
        };
        let (mut fields, mut spans) = (Vec::new(), Vec::new());
        for node in nodes {
            if let Some(field) = self.field(node, (around, &fields), diagnostics) {
                fields.push(field);
                spans.push(node.span);
            }
        }
        for (at, field) in fields.iter().enumerate() {
            let named = |name: &str| fields.iter().any(|other| other.name == name);
            if fields[..at].iter().any(|other| other.name == field.name) {
                let message = format!("there are two fields {:?}", field.name);
                diagnostics.error(spans[at], message);
            }
            if let Some(of) = field.length_of.as_ref().filter(|of| !named(of)) {
                let message = format!("there is no field {of:?} whose length it could be");
                diagnostics.error(spans[at], message);
            }
        }
        fields
    }

    fn field(
        &self,
        node: &TomlNode,
        (around, before): (&[MessageField], &[MessageField]),
        diagnostics: &mut Diagnostics,
    ) -> Option<MessageField> {
        let values = ValueReader::default();
        let known = [around, before].concat();
        let mut table = Table::new("trojans.fields".to_owned(), node.span, node, diagnostics)?;
        let name = needed(
            &mut table,
            "the field",
            "name",
            "name = \"cmd\"",
            diagnostics,
        );
        let name = name.and_then(|node| values.text(node, diagnostics));
        let start = self.start(node, &mut table, (&known, before), diagnostics);
        let repeat = table.get("repeat");
        let repeat = repeat.map(|node| count(node, &known, diagnostics));
        let (group, size) = (table.get("fields"), table.get("size"));
        let size = match (group, size) {
            (None, None) => {
                needed(
                    &mut table,
                    "the field",
                    "size",
                    "size = 1, or \"rest\"",
                    diagnostics,
                );
                None
            }
            (None, Some(node)) => count(node, &known, diagnostics),
            (Some(_), None) => Some(FieldCount::Fixed(0)),
            (Some(_), Some(node)) => {
                let help = "leave it out: its fields say how long it is";
                diagnostics.help(node.span, "both \"fields\" and \"size\" are given", help);
                None
            }
        };
        let fields = group.map(|node| {
            let inside = FieldReader {
                is_group: true,
                ..*self
            };
            inside.fields(node, &known, diagnostics)
        });
        let length_of = table.get("length_of");
        let length_of = length_of.and_then(|node| values.text(node, diagnostics));
        let orders = [("big", false), ("little", true)];
        let little_endian = table.get("endian").is_some_and(|node| {
            let word = values.word(node, &orders, diagnostics);
            word.unwrap_or_default()
        });
        let is_string = table.get("string").is_some_and(|node| {
            let said = values.flag(node, diagnostics);
            said.unwrap_or_default()
        });
        table.finish(diagnostics);
        let field = MessageField {
            start: start?,
            repeat: match repeat {
                Some(repeat) => Some(repeat?),
                None => None,
            },
            fields: fields.unwrap_or_default(),
            little_endian,
            length_of,
            is_string,
            ..MessageField::new(&name?, size?)
        };
        self.expect_within(&field, before, node.span, diagnostics);
        Some(field)
    }

    /// Reads the start of a field.
    fn start(
        &self,
        node: &TomlNode,
        table: &mut Table<'_>,
        (known, before): (&[MessageField], &[MessageField]),
        diagnostics: &mut Diagnostics,
    ) -> Option<FieldStart> {
        match (table.get("offset"), table.get("after")) {
            (Some(_), Some(after)) => {
                let message = "both \"offset\" and \"after\" are given";
                diagnostics.help(after.span, message, "leave one of them out");
                None
            }
            (Some(node), None) => self.offset(node, known, diagnostics),
            (None, Some(node)) => behind(node, known, diagnostics),
            (None, None) => {
                let last = before.last().filter(|last| takes_rest(last));
                if let Some(MessageField { name, .. }) = last {
                    let message = format!("field {name:?} before it takes the rest of the message");
                    let help = "say where this one begins: offset = 4, or offset = -2 from the end";
                    diagnostics.help(node.span, message, help);
                    return None;
                }
                Some(FieldStart::Next)
            }
        }
    }

    /// Reads an offset from the beginning or the end, or the name of a field that contains it.
    fn offset(
        &self,
        node: &TomlNode,
        known: &[MessageField],
        diagnostics: &mut Diagnostics,
    ) -> Option<FieldStart> {
        match &node.value {
            TomlValue::Text(_) => number_field(node, known, diagnostics).map(FieldStart::Said),
            TomlValue::Integer(at) if *at < 0 && !self.is_group => {
                let bytes = u32::try_from(at.unsigned_abs()).unwrap_or(u32::MAX);
                if bytes > self.most {
                    let message = format!("messages have no {bytes} bytes");
                    let help = "a negative offset counts from the end of the message";
                    diagnostics.help(node.span, message, help);
                }
                Some(FieldStart::BeforeEnd(bytes))
            }
            _ => {
                let at = ValueReader::default().small(node, diagnostics)?;
                Some(FieldStart::At(at))
            }
        }
    }

    /// Reports a field that is not within the longest message.
    fn expect_within(
        &self,
        field: &MessageField,
        before: &[MessageField],
        span: SourceSpan,
        diagnostics: &mut Diagnostics,
    ) {
        let name = &field.name;
        let is_empty = field.size == FieldCount::Fixed(0) && field.fields.is_empty();
        if is_empty || field.repeat == Some(FieldCount::Fixed(0)) {
            diagnostics.error(span, format!("field {name:?} has no bytes"));
            return;
        }
        let all = [before, std::slice::from_ref(field)].concat();
        let Some(Some((start, end))) = places(&all).pop() else {
            return;
        };
        let end = if end == u32::MAX { start + 1 } else { end };
        if end > self.most {
            let most = self.most;
            let message =
                format!("field {name:?} ends at byte {end}, behind the message of {most}");
            let help = "bytes are counted from 0; `length` sets the length of longer messages";
            diagnostics.help(span, message, help);
        }
    }
}

fn takes_rest(field: &MessageField) -> bool {
    let repeat = field.repeat.as_ref();
    (field.size == FieldCount::Rest && field.fields.is_empty()) || repeat == Some(&FieldCount::Rest)
}

/// Reads a number of bytes or elements: a number, all that follow, or the name of a field that
/// contains it.
fn count(
    node: &TomlNode,
    known: &[MessageField],
    diagnostics: &mut Diagnostics,
) -> Option<FieldCount> {
    match &node.value {
        TomlValue::Text(text) if text == "rest" => Some(FieldCount::Rest),
        TomlValue::Text(_) => number_field(node, known, diagnostics).map(FieldCount::Said),
        _ => {
            let count = ValueReader::default().small(node, diagnostics)?;
            Some(FieldCount::Fixed(count))
        }
    }
}

/// Returns the earlier field with this name. If there are several, the innermost one.
fn named<'f>(
    node: &TomlNode,
    known: &'f [MessageField],
    diagnostics: &mut Diagnostics,
) -> Option<&'f MessageField> {
    let name = ValueReader::default().text(node, diagnostics)?;
    let found = known.iter().rev().find(|field| field.name == name);
    if found.is_none() {
        let names: Vec<&str> = known.iter().map(|field| field.name.as_str()).collect();
        unknown(node.span, "earlier field", &name, &names, diagnostics);
    }
    found
}

/// Reads the name of an earlier field that is a number.
fn number_field(
    node: &TomlNode,
    known: &[MessageField],
    diagnostics: &mut Diagnostics,
) -> Option<String> {
    let field = named(node, known, diagnostics)?;
    let is_number = matches!(field.size, FieldCount::Fixed(1..=MOST_NUMBER));
    if !is_number || !field.fields.is_empty() {
        let message = format!("field {:?} is not a number", field.name);
        let help = format!("a number has 1 to {MOST_NUMBER} bytes: size = 2");
        diagnostics.help(node.span, message, help);
        return None;
    }
    Some(field.name.clone())
}

/// Reads the name of the field after which a field starts.
fn behind(
    node: &TomlNode,
    known: &[MessageField],
    diagnostics: &mut Diagnostics,
) -> Option<FieldStart> {
    let field = named(node, known, diagnostics)?;
    if takes_rest(field) {
        let message = format!("field {:?} takes the rest of the message", field.name);
        diagnostics.error(node.span, message);
        return None;
    }
    Some(FieldStart::After(field.name.clone()))
}

/// Returns the first byte and the end of each field with a fixed position; the end of a field that
/// takes the rest of the message is the greatest number.
fn places(fields: &[MessageField]) -> Vec<Option<(u32, u32)>> {
    let mut all: Vec<Option<(u32, u32)>> = Vec::new();
    for field in fields {
        let end = |place: &Option<(u32, u32)>| place.map(|(_, end)| end);
        let start = match &field.start {
            FieldStart::Next => all.last().map_or(Some(0), end),
            FieldStart::At(at) => Some(*at),
            FieldStart::After(name) => {
                let mut before = fields.iter().zip(&all).rev();
                let found = before.find(|(field, _)| field.name == *name);
                found.and_then(|(_, place)| end(place))
            }
            FieldStart::BeforeEnd(_) | FieldStart::Said(_) => None,
        };
        let size = bytes(field);
        all.push(
            start
                .zip(size)
                .map(|(start, size)| (start, start.saturating_add(size))),
        );
    }
    all
}

/// Returns the number of bytes of a field, if it is known; the greatest number for a field that
/// takes the rest.
fn bytes(field: &MessageField) -> Option<u32> {
    let one = match (&field.size, field.fields.is_empty()) {
        (FieldCount::Fixed(size), true) => *size,
        (FieldCount::Rest, true) => u32::MAX,
        (FieldCount::Said(_), true) => return None,
        (_, false) => {
            let places = places(&field.fields).into_iter();
            let ends = places.map(|place| place.map(|(_, end)| end));
            ends.collect::<Option<Vec<u32>>>()?.into_iter().max()?
        }
    };
    match &field.repeat {
        None => Some(one),
        Some(FieldCount::Fixed(times)) => Some(one.saturating_mul(*times)),
        Some(FieldCount::Rest) => Some(u32::MAX),
        Some(FieldCount::Said(_)) => None,
    }
}

/// Reads the names of masked fields, with their spans.
pub(crate) fn mask_names(
    node: &TomlNode,
    diagnostics: &mut Diagnostics,
) -> Vec<(SourceSpan, String)> {
    let each = |values: ValueReader, node: &TomlNode, diagnostics: &mut Diagnostics| {
        Some((node.span, values.text(node, diagnostics)?))
    };
    ValueReader::default().list(node, diagnostics, each)
}

/// Marks the masked fields. The fields of a group have its name as a prefix: `option.value`.
pub(crate) fn mask(node: &TomlNode, fields: &mut [MessageField], diagnostics: &mut Diagnostics) {
    for (span, name) in mask_names(node, diagnostics) {
        if !set_masked(fields, &name) {
            let known = all_names(fields);
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            unknown(span, "field", &name, &known, diagnostics);
        }
    }
}

fn set_masked(fields: &mut [MessageField], name: &str) -> bool {
    for field in fields {
        if field.name == name {
            field.masked = true;
            return true;
        }
        let inner = name.strip_prefix(&field.name);
        let inner = inner.and_then(|rest| rest.strip_prefix('.'));
        if inner.is_some_and(|inner| set_masked(&mut field.fields, inner)) {
            return true;
        }
    }
    false
}

fn all_names(fields: &[MessageField]) -> Vec<String> {
    let mut all = Vec::new();
    for field in fields {
        all.push(field.name.clone());
        let inner = all_names(&field.fields).into_iter();
        all.extend(inner.map(|inner| format!("{}.{inner}", field.name)));
    }
    all
}

/// Checks the masks. A byte that is in a masked and in an unmasked field is probably a mistake, and
/// a message that is masked as a whole cannot differ from the messages of clients.
pub(crate) fn expect_unmasked(
    fields: &[MessageField],
    longest: Option<u32>,
) -> Result<(), (String, &'static str)> {
    let places = places(fields);
    let placed = || {
        let placed = fields.iter().zip(&places);
        placed.filter_map(|(field, place)| Some((field, (*place)?)))
    };
    for (masked, one) in placed().filter(|(field, _)| field.masked) {
        let mut others = placed().filter(|(other, _)| !other.masked);
        if let Some((other, _)) = others.find(|(_, two)| one.0 < two.1 && two.0 < one.1) {
            let (one, two) = (&masked.name, &other.name);
            let message =
                format!("field {one:?} is masked, and field {two:?} with bytes of it is not");
            return Err((message, "mask both, or divide the fields"));
        }
    }
    let is_masked = |at: u32| {
        let mut masked = placed().filter(|(field, _)| field.masked);
        masked.any(|(_, (start, end))| (start..end).contains(&at))
    };
    // If the longest message is masked as a whole, so are all shorter ones.
    if longest.is_some_and(|longest| longest > 0 && (0..longest).all(is_masked)) {
        let help = "leave something that clients and server must agree in";
        return Err(("all bytes of the message are masked".to_owned(), help));
    }
    // The position of a masked field must be the same for client and server.
    let mut moving = fields.iter().zip(&places);
    let is_moving = |field: &MessageField| !matches!(field.start, FieldStart::BeforeEnd(_));
    if moving.any(|(field, place)| has_masked(field) && place.is_none() && is_moving(field))
        && let Some(name) = masked_number(fields, fields)
    {
        let message = format!("field {name:?} is masked, and says where others lie");
        return Err((
            message,
            "leave it unmasked: masked fields lie where it says",
        ));
    }
    Ok(())
}

fn has_masked(field: &MessageField) -> bool {
    field.masked || field.fields.iter().any(has_masked)
}

/// Returns a masked field that contains the position, length or count of another field.
fn masked_number(all: &[MessageField], fields: &[MessageField]) -> Option<String> {
    let mut said = Vec::new();
    numbers(all, &mut said);
    fields.iter().find_map(|field| {
        let is_meant = field.masked && said.contains(&field.name);
        match is_meant {
            true => Some(field.name.clone()),
            false => masked_number(all, &field.fields),
        }
    })
}

/// Collects the names of fields that contain the position, length or count of other fields.
fn numbers(fields: &[MessageField], said: &mut Vec<String>) {
    for field in fields {
        if let FieldStart::Said(name) = &field.start {
            said.push(name.clone());
        }
        for count in std::iter::once(&field.size).chain(&field.repeat) {
            if let FieldCount::Said(name) = count {
                said.push(name.clone());
            }
        }
        numbers(&field.fields, said);
    }
}

/// Describes the fields for people, one line per field.
pub(crate) fn lines(fields: &[MessageField]) -> Vec<String> {
    let mut lines = Vec::new();
    for (field, place) in fields.iter().zip(places(fields)) {
        let mut words = vec![match place {
            Some((start, u32::MAX)) => format!("bytes {start} to the end"),
            Some((start, end)) => format!("bytes {start} to {}", end.saturating_sub(1)),
            None => moving_words(field),
        }];
        match &field.repeat {
            Some(FieldCount::Fixed(times)) => words.push(format!("{times} times")),
            Some(FieldCount::Rest) => words.push("repeated up to the end".to_owned()),
            Some(FieldCount::Said(name)) => words.push(format!("as often as {name} says")),
            None => {}
        }
        let length_of = field.length_of.as_ref();
        words.extend(
            [
                field.little_endian.then(|| "little endian".to_owned()),
                field.is_string.then(|| "a string".to_owned()),
                length_of.map(|of| format!("the length of {of}")),
                field.masked.then(|| "masked".to_owned()),
            ]
            .into_iter()
            .flatten(),
        );
        lines.push(format!("field {}: {}", field.name, words.join(", ")));
        let inner = crate::message_fields::lines(&field.fields);
        lines.extend(inner.iter().map(|line| format!("  {line}")));
    }
    lines
}

/// Describes a field whose position or size depends on the message.
fn moving_words(field: &MessageField) -> String {
    let size = match (&field.size, field.fields.is_empty()) {
        (_, false) => "a group".to_owned(),
        (FieldCount::Fixed(size), _) => match size {
            1 => "1 byte".to_owned(),
            size => format!("{size} bytes"),
        },
        (FieldCount::Rest, _) => "all bytes".to_owned(),
        (FieldCount::Said(name), _) => format!("as many bytes as {name} says"),
    };
    let start = match &field.start {
        FieldStart::Next => " behind the field before it".to_owned(),
        FieldStart::At(at) => format!(" from byte {at}"),
        FieldStart::BeforeEnd(bytes) => format!(" from {bytes} before the end"),
        FieldStart::After(name) => format!(" behind {name}"),
        FieldStart::Said(name) => format!(" from the byte that {name} says"),
    };
    format!("{size}{start}")
}
