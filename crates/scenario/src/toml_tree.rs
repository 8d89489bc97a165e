//! The TOML tree of a scenario with source spans, and command line overrides applied to it.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::source::{Diagnostics, SourceSpan};

/// A value with its source span.
#[derive(Clone, Debug)]
pub(crate) struct TomlNode {
    pub span: SourceSpan,
    pub value: TomlValue,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub(crate) enum TomlValue {
    Text(String),
    Integer(i64),
    Float,
    Flag(bool),
    Time,
    List(Vec<TomlNode>),
    Table(Vec<TomlEntry>),
    /// An erroneous value that was already reported.
    Broken,
}

/// A key with its value.
#[derive(Clone, Debug)]
pub(crate) struct TomlEntry {
    pub key: String,
    pub key_span: SourceSpan,
    pub node: TomlNode,
}

impl TomlValue {
    /// Returns the name of the type in messages.
    pub fn kind(&self) -> &'static str {
        match self {
            TomlValue::Text(_) => "a string",
            TomlValue::Integer(_) => "an integer",
            TomlValue::Float => "a float",
            TomlValue::Flag(_) => "a boolean",
            TomlValue::Time => "a date",
            TomlValue::List(_) => "an array",
            TomlValue::Table(_) => "a table",
            TomlValue::Broken => "nothing that can be read",
        }
    }
}

/// Parses a text. Reports syntax errors and omits the erroneous parts.
pub(crate) fn parse(source: u32, diagnostics: &mut Diagnostics) -> TomlNode {
    let text = diagnostics.sources[source as usize].text.clone();
    let (table, errors) = DeTable::parse_recoverable(&text);
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        let span = source_span(source, span);
        diagnostics.error(span, format!("this is not TOML: {}", error.message()));
    }
    convert_table(source, table, diagnostics)
}

fn source_span(source: u32, span: std::ops::Range<usize>) -> SourceSpan {
    SourceSpan {
        source,
        start: span.start,
        end: span.end,
    }
}

fn convert_table(
    source: u32,
    table: Spanned<DeTable<'_>>,
    diagnostics: &mut Diagnostics,
) -> TomlNode {
    let own = source_span(source, table.span());
    let mut entries: Vec<TomlEntry> = table
        .into_inner()
        .into_iter()
        .map(|(key, value)| TomlEntry {
            key_span: source_span(source, key.span()),
            key: key.into_inner().into_owned(),
            node: convert(source, value, diagnostics),
        })
        .collect();
    // Keep the source order, because the order of hosts is significant.
    entries.sort_by_key(|entry| entry.key_span);
    TomlNode {
        span: own,
        value: TomlValue::Table(entries),
    }
}

fn convert(source: u32, value: Spanned<DeValue<'_>>, diagnostics: &mut Diagnostics) -> TomlNode {
    let own = source_span(source, value.span());
    let value = match value.into_inner() {
        DeValue::String(text) => TomlValue::Text(text.into_owned()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => TomlValue::Integer(number),
            Err(_) => {
                diagnostics.error(own, format!("{number} is too large"));
                TomlValue::Broken
            }
        },
        DeValue::Float(_) => TomlValue::Float,
        DeValue::Boolean(flag) => TomlValue::Flag(flag),
        DeValue::Datetime(_) => TomlValue::Time,
        DeValue::Array(list) => {
            let nodes = list.into_iter();
            TomlValue::List(
                nodes
                    .map(|node| convert(source, node, diagnostics))
                    .collect(),
            )
        }
        DeValue::Table(table) => {
            return convert_table(source, Spanned::new(own.start..own.end, table), diagnostics);
        }
    };
    TomlNode { span: own, value }
}

/// Applies an override `KEY=VALUE`. A value that is not TOML is a string.
pub(crate) fn set(root: &mut TomlNode, key: &str, value: &str, diagnostics: &mut Diagnostics) {
    let shown = format!("{key}={value}");
    let source = diagnostics.add_setting("`settings`".to_owned(), shown);
    let Some(keys) = split_key(key) else {
        let span = source_span(source, 0..key.len());
        let help = "write TABLE.NAME.KEY=VALUE, such as host.server.count=3";
        return diagnostics.help(span, format!("{key:?} is not a key"), help);
    };
    let value_start = key.len() + 1;
    let mut node = parse_value(value, source, value_start, diagnostics);
    // The carets of a setting cover its whole key or value.
    place_all(
        &mut node,
        source_span(source, value_start..value_start + value.len()),
    );
    let key_span = source_span(source, 0..key.len());
    let mut at = root;
    for (number, part) in keys.iter().enumerate() {
        let kind = at.value.kind();
        let TomlValue::Table(entries) = &mut at.value else {
            let above = keys[..number].join(".");
            return diagnostics.error(key_span, format!("{above} is {kind}, not a table"));
        };
        let found = entries.iter().position(|entry| entry.key == *part);
        let index = found.unwrap_or_else(|| {
            entries.push(TomlEntry {
                key: part.clone(),
                key_span,
                node: TomlNode {
                    span: key_span,
                    value: TomlValue::Table(Vec::new()),
                },
            });
            entries.len() - 1
        });
        if number + 1 == keys.len() {
            entries[index].key_span = key_span;
        }
        at = &mut entries[index].node;
    }
    *at = node;
}

fn place_all(node: &mut TomlNode, span: SourceSpan) {
    node.span = span;
    match &mut node.value {
        TomlValue::List(nodes) => nodes.iter_mut().for_each(|node| place_all(node, span)),
        TomlValue::Table(entries) => {
            for entry in entries {
                entry.key_span = span;
                place_all(&mut entry.node, span);
            }
        }
        _ => {}
    }
}

fn parse_value(value: &str, source: u32, start: usize, diagnostics: &mut Diagnostics) -> TomlNode {
    let span = source_span(source, start..start + value.len());
    let text = format!("v = {value}");
    let single = match DeTable::parse(&text) {
        Ok(table) if table.get_ref().len() == 1 => table.into_inner().into_iter().next(),
        _ => None,
    };
    match single {
        Some((_, parsed)) => convert(source, parsed, diagnostics),
        None if value.starts_with(['[', '{', '"', '\'']) => {
            diagnostics.error(span, format!("{value} is not a TOML value"));
            TomlNode {
                span,
                value: TomlValue::Broken,
            }
        }
        None => TomlNode {
            span,
            value: TomlValue::Text(value.to_owned()),
        },
    }
}

/// Splits `a.b."c.d"` into its parts.
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
