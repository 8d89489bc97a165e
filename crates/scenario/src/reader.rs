//! Typed access to the TOML tree. Each getter reports a value of the wrong type, and
//! [`Table::finish`] reports unknown keys.

use everett_net::Prefix;

use crate::source::{Diagnostics, SourceSpan, nearest};
use crate::template::{Numbering, expand};
use crate::toml_tree::{TomlEntry, TomlNode, TomlValue};
use crate::units;

/// A table that is being read. It records the requested keys.
pub(crate) struct Table<'t> {
    /// The path in errors, such as `host.server`.
    pub path: String,
    /// The span of the key that names the table.
    pub span: SourceSpan,
    entries: &'t [TomlEntry],
    /// Entries that apply if the table has no such key.
    defaults: &'t [TomlEntry],
    asked: Vec<&'static str>,
}

impl<'t> Table<'t> {
    /// Creates a table reader; `None` (and a diagnostic) if the node is not a table.
    pub fn new(
        path: String,
        span: SourceSpan,
        node: &'t TomlNode,
        diagnostics: &mut Diagnostics,
    ) -> Option<Self> {
        match &node.value {
            TomlValue::Table(entries) => Some(Table {
                path,
                span,
                entries,
                defaults: &[],
                asked: Vec::new(),
            }),
            other => {
                wrong(node, "a table", other, diagnostics);
                None
            }
        }
    }

    /// Sets the table that missing keys are taken from.
    pub fn with_defaults(mut self, defaults: &'t [TomlEntry]) -> Table<'t> {
        self.defaults = defaults;
        self
    }

    pub fn get(&mut self, key: &'static str) -> Option<&'t TomlNode> {
        self.entry(key).map(|entry| &entry.node)
    }

    /// Returns the value together with its key.
    pub fn entry(&mut self, key: &'static str) -> Option<&'t TomlEntry> {
        self.note(key);
        let mut all = self.entries.iter().chain(self.defaults);
        all.find(|entry| entry.key == key)
    }

    /// Returns the value under either of two spellings, such as `address` and `addresses`.
    pub fn either(
        &mut self,
        one: &'static str,
        many: &'static str,
        diagnostics: &mut Diagnostics,
    ) -> Option<&'t TomlNode> {
        self.note(one);
        self.note(many);
        let find =
            |entries: &'t [TomlEntry], key: &str| entries.iter().find(|entry| entry.key == key);
        let own = (find(self.entries, one), find(self.entries, many));
        if let (Some(_), Some(second)) = own {
            let message = format!("both {one:?} and {many:?} are given; they mean the same");
            diagnostics.help(second.key_span, message, "leave one of them out");
        }
        let defaults = self.defaults;
        let found = own.0.or(own.1).or_else(|| find(defaults, one));
        let found = found.or_else(|| find(defaults, many));
        found.map(|entry| &entry.node)
    }

    fn note(&mut self, key: &'static str) {
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
    }

    /// Returns the entries of a nested table.
    pub fn below(&mut self, key: &'static str, diagnostics: &mut Diagnostics) -> &'t [TomlEntry] {
        match self.get(key) {
            None => &[],
            Some(node) => match &node.value {
                TomlValue::Table(entries) => entries,
                other => {
                    wrong(node, "a table", other, diagnostics);
                    &[]
                }
            },
        }
    }

    /// Reports keys that were never requested.
    pub fn finish(self, diagnostics: &mut Diagnostics) {
        let own = self.entries.iter().map(|entry| (self.path.as_str(), entry));
        let defaults = self.defaults.iter().map(|entry| ("defaults", entry));
        for (path, entry) in own.chain(defaults) {
            if self.asked.contains(&entry.key.as_str()) {
                continue;
            }
            let place = match path {
                "" => "a scenario".to_owned(),
                path => format!("[{path}]"),
            };
            let message = format!("{place} has no key {:?}", entry.key);
            let help = match nearest(&entry.key, self.asked.iter().copied()) {
                Some(meant) => format!("did you mean {meant:?}?"),
                None => format!("it can have: {}", self.asked.join(", ")),
            };
            diagnostics.help(entry.key_span, message, help);
        }
    }
}

pub(crate) fn wrong(
    node: &TomlNode,
    wanted: &str,
    found: &TomlValue,
    diagnostics: &mut Diagnostics,
) {
    if !matches!(found, TomlValue::Broken) {
        let message = format!("expected {wanted}, found {}", found.kind());
        diagnostics.error(node.span, message);
    }
}

/// Reads single values. Texts are templates that are expanded with the number of the host.
#[derive(Clone, Copy, Default)]
pub(crate) struct ValueReader {
    pub numbering: Option<Numbering>,
}

impl ValueReader {
    pub fn fill(
        self,
        text: &str,
        span: SourceSpan,
        diagnostics: &mut Diagnostics,
    ) -> Option<String> {
        let Some(numbering) = self.numbering else {
            return Some(text.to_owned());
        };
        match expand(text, numbering) {
            Ok(text) => Some(text),
            Err(message) => {
                diagnostics.error(span, message);
                None
            }
        }
    }

    pub fn text(self, node: &TomlNode, diagnostics: &mut Diagnostics) -> Option<String> {
        match &node.value {
            TomlValue::Text(text) => self.fill(text, node.span, diagnostics),
            other => {
                wrong(node, "a string", other, diagnostics);
                None
            }
        }
    }

    /// Reads a text and converts it with a function.
    pub fn parsed<T>(
        self,
        node: &TomlNode,
        diagnostics: &mut Diagnostics,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.text(node, diagnostics)?;
        match parse(&text) {
            Ok(value) => Some(value),
            Err(message) => {
                diagnostics.error(node.span, message);
                None
            }
        }
    }

    pub fn flag(self, node: &TomlNode, diagnostics: &mut Diagnostics) -> Option<bool> {
        match &node.value {
            TomlValue::Flag(flag) => Some(*flag),
            other => {
                wrong(node, "true or false", other, diagnostics);
                None
            }
        }
    }

    /// Reads a number from 0 to `most`.
    pub fn number(self, node: &TomlNode, most: u64, diagnostics: &mut Diagnostics) -> Option<u64> {
        match &node.value {
            TomlValue::Integer(number) => match u64::try_from(*number) {
                Ok(number) if number <= most => Some(number),
                _ => {
                    diagnostics.error(node.span, format!("{number} is not between 0 and {most}"));
                    None
                }
            },
            other => {
                wrong(node, "an integer", other, diagnostics);
                None
            }
        }
    }

    pub fn small(self, node: &TomlNode, diagnostics: &mut Diagnostics) -> Option<u32> {
        let number = self.number(node, u32::MAX.into(), diagnostics)?;
        u32::try_from(number).ok()
    }

    pub fn duration_ns(self, node: &TomlNode, diagnostics: &mut Diagnostics) -> Option<u64> {
        if let TomlValue::Integer(number) = node.value
            && number != 0
        {
            let message = format!("{number} is not a duration: it has no unit");
            diagnostics.help(
                node.span,
                message,
                format!("write \"{number}ms\" or \"{number}s\""),
            );
            return None;
        }
        if let TomlValue::Integer(_) = node.value {
            return Some(0);
        }
        self.parsed(node, diagnostics, units::duration_ns)
    }

    /// Reads a size such as `"64K"`, or a number of bytes.
    pub fn size(self, node: &TomlNode, diagnostics: &mut Diagnostics) -> Option<u64> {
        match node.value {
            TomlValue::Integer(_) => self.number(node, u64::MAX, diagnostics),
            _ => self.parsed(node, diagnostics, units::bytes),
        }
    }

    pub fn prefix(self, node: &TomlNode, diagnostics: &mut Diagnostics) -> Option<Prefix> {
        self.parsed(node, diagnostics, |text| {
            text.parse().map_err(|error| format!("{error}"))
        })
    }

    /// Reads an array; a single value counts as an array of one.
    pub fn list<T>(
        self,
        node: &TomlNode,
        diagnostics: &mut Diagnostics,
        mut each: impl FnMut(ValueReader, &TomlNode, &mut Diagnostics) -> Option<T>,
    ) -> Vec<T> {
        match &node.value {
            TomlValue::List(nodes) => nodes
                .iter()
                .filter_map(|node| each(self, node, diagnostics))
                .collect(),
            TomlValue::Broken => Vec::new(),
            _ => each(self, node, diagnostics).into_iter().collect(),
        }
    }

    pub fn texts(self, node: &TomlNode, diagnostics: &mut Diagnostics) -> Vec<String> {
        self.list(node, diagnostics, ValueReader::text)
    }

    /// Reads one of several words.
    pub fn word<T: Copy>(
        self,
        node: &TomlNode,
        words: &[(&'static str, T)],
        diagnostics: &mut Diagnostics,
    ) -> Option<T> {
        let text = self.text(node, diagnostics)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            unknown(node.span, "word", &text, &known, diagnostics);
        }
        found.map(|(_, value)| *value)
    }
}

/// Reports an unknown word.
pub(crate) fn unknown(
    span: SourceSpan,
    what: &str,
    word: &str,
    known: &[&str],
    diagnostics: &mut Diagnostics,
) {
    let help = match nearest(word, known.iter().copied()) {
        Some(meant) => format!("did you mean {meant:?}?"),
        None if known.is_empty() => "there is none".to_owned(),
        None => {
            let most = 12;
            let shown = known.iter().take(most).copied().collect::<Vec<_>>();
            let more = if known.len() > most { ", ..." } else { "" };
            format!("use one of: {}{more}", shown.join(", "))
        }
    };
    diagnostics.help(span, format!("unknown {what} {word:?}"), help);
}

/// Returns a value that is required in a table, which `what` names.
pub(crate) fn needed<'t>(
    table: &mut Table<'t>,
    what: &str,
    key: &'static str,
    example: &str,
    diagnostics: &mut Diagnostics,
) -> Option<&'t TomlNode> {
    let node = table.get(key);
    if node.is_none() {
        let message = format!("{what} has no {key}");
        diagnostics.help(table.span, message, format!("write {example}"));
    }
    node
}

/// Reads a number, or the least and the greatest of several.
pub(crate) fn bounds(node: &TomlNode, diagnostics: &mut Diagnostics) -> Option<(i64, i64)> {
    const WANTED: &str = "a number, or the least and the greatest one, such as [0, 255]";
    let number = |node: &TomlNode, diagnostics: &mut Diagnostics| match node.value {
        TomlValue::Integer(number) => Some(number),
        TomlValue::Flag(flag) => Some(flag.into()),
        ref other => {
            wrong(node, WANTED, other, diagnostics);
            None
        }
    };
    let TomlValue::List(nodes) = &node.value else {
        let number = number(node, diagnostics)?;
        return Some((number, number));
    };
    let [low, high] = &nodes[..] else {
        let message = format!("expected {WANTED}, found {} of them", nodes.len());
        diagnostics.error(node.span, message);
        return None;
    };
    let (low, high) = (number(low, diagnostics)?, number(high, diagnostics)?);
    if low > high {
        let message = format!("there is no number from {low} to {high}");
        diagnostics.help(node.span, message, "the first is the least one");
        return None;
    }
    Some((low, high))
}
