//! The text of a scenario as a tree that knows where each part was said, with what the command line says put into it.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::source::{Findings, Spot};

/// A value and where it was said.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub spot: Spot,
    pub value: Value,
}

/// What was said.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Float,
    Flag(bool),
    Time,
    List(Vec<Node>),
    Table(Vec<Entry>),
    /// It was wrong, and that was told.
    Broken,
}

/// A key with its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub key: String,
    pub key_spot: Spot,
    pub node: Node,
}

impl Value {
    /// For people.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "a string",
            Value::Integer(_) => "an integer",
            Value::Float => "a float",
            Value::Flag(_) => "a boolean",
            Value::Time => "a date",
            Value::List(_) => "an array",
            Value::Table(_) => "a table",
            Value::Broken => "nothing that can be read",
        }
    }
}

/// Reads a text. What cannot be read is told and left out.
pub(crate) fn parse(source: u32, findings: &mut Findings) -> Node {
    let text = findings.sources[source as usize].text.clone();
    let (table, errors) = DeTable::parse_recoverable(&text);
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        let spot = spot(source, span);
        findings.error(spot, format!("this is no TOML: {}", error.message()));
    }
    convert_table(source, table, findings)
}

fn spot(source: u32, span: std::ops::Range<usize>) -> Spot {
    Spot {
        source,
        start: span.start,
        end: span.end,
    }
}

fn convert_table(source: u32, table: Spanned<DeTable<'_>>, findings: &mut Findings) -> Node {
    let own = spot(source, table.span());
    let mut entries: Vec<Entry> = table
        .into_inner()
        .into_iter()
        .map(|(key, value)| Entry {
            key_spot: spot(source, key.span()),
            key: key.into_inner().into_owned(),
            node: convert(source, value, findings),
        })
        .collect();
    // In the order of the text: the order of hosts means something.
    entries.sort_by_key(|entry| entry.key_spot);
    Node {
        spot: own,
        value: Value::Table(entries),
    }
}

fn convert(source: u32, value: Spanned<DeValue<'_>>, findings: &mut Findings) -> Node {
    let own = spot(source, value.span());
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::Integer(number),
            Err(_) => {
                findings.error(own, format!("{number} is too large"));
                Value::Broken
            }
        },
        DeValue::Float(_) => Value::Float,
        DeValue::Boolean(flag) => Value::Flag(flag),
        DeValue::Datetime(_) => Value::Time,
        DeValue::Array(list) => {
            let nodes = list.into_iter();
            Value::List(nodes.map(|node| convert(source, node, findings)).collect())
        }
        DeValue::Table(table) => {
            return convert_table(source, Spanned::new(own.start..own.end, table), findings);
        }
    };
    Node { spot: own, value }
}

/// Puts `KEY=VALUE` of the command line into the tree. A value that is no TOML is a string.
pub(crate) fn set(root: &mut Node, key: &str, value: &str, findings: &mut Findings) {
    let shown = format!("--set {key}={value}");
    let key_start = "--set ".len();
    let source = findings.add_flag("--set".to_owned(), shown);
    let Some(keys) = split_key(key) else {
        let spot = spot(source, key_start..key_start + key.len());
        let help = "write --set TABLE.NAME.KEY=VALUE, such as --set host.server.count=3";
        return findings.help(spot, format!("{key:?} is no key"), help);
    };
    let value_start = key_start + key.len() + 1;
    let mut node = parse_value(value, source, value_start, findings);
    // Carets of a flag are below the whole of its key or value.
    place_all(
        &mut node,
        spot(source, value_start..value_start + value.len()),
    );
    let key_spot = spot(source, key_start..key_start + key.len());
    let mut at = root;
    for (number, part) in keys.iter().enumerate() {
        let kind = at.value.kind();
        let Value::Table(entries) = &mut at.value else {
            let above = keys[..number].join(".");
            return findings.error(key_spot, format!("{above} is {kind}, not a table"));
        };
        let found = entries.iter().position(|entry| entry.key == *part);
        let index = found.unwrap_or_else(|| {
            entries.push(Entry {
                key: part.clone(),
                key_spot,
                node: Node {
                    spot: key_spot,
                    value: Value::Table(Vec::new()),
                },
            });
            entries.len() - 1
        });
        if number + 1 == keys.len() {
            entries[index].key_spot = key_spot;
        }
        at = &mut entries[index].node;
    }
    *at = node;
}

fn place_all(node: &mut Node, spot: Spot) {
    node.spot = spot;
    match &mut node.value {
        Value::List(nodes) => nodes.iter_mut().for_each(|node| place_all(node, spot)),
        Value::Table(entries) => {
            for entry in entries {
                entry.key_spot = spot;
                place_all(&mut entry.node, spot);
            }
        }
        _ => {}
    }
}

fn parse_value(value: &str, source: u32, start: usize, findings: &mut Findings) -> Node {
    let spot = spot(source, start..start + value.len());
    let text = format!("v = {value}");
    let single = match DeTable::parse(&text) {
        Ok(table) if table.get_ref().len() == 1 => table.into_inner().into_iter().next(),
        _ => None,
    };
    match single {
        Some((_, parsed)) => convert(source, parsed, findings),
        None if value.starts_with(['[', '{', '"', '\'']) => {
            findings.error(spot, format!("{value} is no value of TOML"));
            Node {
                spot,
                value: Value::Broken,
            }
        }
        None => Node {
            spot,
            value: Value::Text(value.to_owned()),
        },
    }
}

/// `a.b."c.d"` as its parts.
fn split_key(key: &str) -> Option<Vec<String>> {
    let mut parts = vec![String::new()];
    let mut quote = None;
    for c in key.chars() {
        let last = parts.last_mut()?;
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '.') => parts.push(String::new()),
            _ => last.push(c),
        }
    }
    let is_whole = quote.is_none() && parts.iter().all(|part| !part.is_empty());
    is_whole.then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_parts() {
        let parts = |key| split_key(key).unwrap_or_default().join("|");
        assert_eq!(parts("host.server.args"), "host|server|args");
        assert_eq!(parts("host.\"a.b\".args"), "host|a.b|args");
        assert_eq!(split_key("host..args"), None);
        assert_eq!(split_key("host.\"a"), None);
        assert_eq!(split_key(""), None);
    }
}
