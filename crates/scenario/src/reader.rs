//! Typed reading of the tree: each getter says what it expected where it finds something else, and keys that nobody asked for
//! are told.

use everett_net::Prefix;

use crate::source::{Findings, Spot, nearest};
use crate::template::{Numbering, expand};
use crate::tree::{Entry, Node, Value};
use crate::units;

/// A table that is being read. It remembers which keys were asked for.
pub(crate) struct Table<'t> {
    /// As in errors: `host.server`.
    pub path: String,
    /// Where it begins: the key that names it.
    pub spot: Spot,
    entries: &'t [Entry],
    /// Keys that it has from elsewhere where it does not have them itself.
    defaults: &'t [Entry],
    asked: Vec<&'static str>,
}

impl<'t> Table<'t> {
    /// `None` (and a finding) if it is no table.
    pub fn new(path: String, spot: Spot, node: &'t Node, findings: &mut Findings) -> Option<Self> {
        match &node.value {
            Value::Table(entries) => Some(Table {
                path,
                spot,
                entries,
                defaults: &[],
                asked: Vec::new(),
            }),
            other => {
                wrong(node, "a table", other, findings);
                None
            }
        }
    }

    /// Keys that are not there come from this table.
    pub fn with_defaults(mut self, defaults: &'t [Entry]) -> Table<'t> {
        self.defaults = defaults;
        self
    }

    pub fn get(&mut self, key: &'static str) -> Option<&'t Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    /// The value with its key.
    pub fn entry(&mut self, key: &'static str) -> Option<&'t Entry> {
        self.note(key);
        let mut all = self.entries.iter().chain(self.defaults);
        all.find(|entry| entry.key == key)
    }

    /// The value of whichever of two spellings is there: `address` and `addresses`.
    pub fn either(
        &mut self,
        one: &'static str,
        many: &'static str,
        findings: &mut Findings,
    ) -> Option<&'t Node> {
        self.note(one);
        self.note(many);
        let find = |entries: &'t [Entry], key: &str| entries.iter().find(|entry| entry.key == key);
        let own = (find(self.entries, one), find(self.entries, many));
        if let (Some(_), Some(second)) = own {
            let message = format!("both {one:?} and {many:?} are given; they mean the same");
            findings.help(second.key_spot, message, "leave one of them out");
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

    /// The entries of a table below this one.
    pub fn below(&mut self, key: &'static str, findings: &mut Findings) -> &'t [Entry] {
        match self.get(key) {
            None => &[],
            Some(node) => match &node.value {
                Value::Table(entries) => entries,
                other => {
                    wrong(node, "a table", other, findings);
                    &[]
                }
            },
        }
    }

    /// Tells keys that nobody asked for.
    pub fn finish(self, findings: &mut Findings) {
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
            findings.help(entry.key_spot, message, help);
        }
    }
}

pub(crate) fn wrong(node: &Node, wanted: &str, found: &Value, findings: &mut Findings) {
    if !matches!(found, Value::Broken) {
        let message = format!("expected {wanted}, found {}", found.kind());
        findings.error(node.spot, message);
    }
}

/// Reads single values; texts are filled in with the number of the host.
#[derive(Clone, Copy, Default)]
pub(crate) struct Scope {
    pub numbering: Option<Numbering>,
}

impl Scope {
    pub fn fill(self, text: &str, spot: Spot, findings: &mut Findings) -> Option<String> {
        let Some(numbering) = self.numbering else {
            return Some(text.to_owned());
        };
        match expand(text, numbering) {
            Ok(text) => Some(text),
            Err(message) => {
                findings.error(spot, message);
                None
            }
        }
    }

    pub fn text(self, node: &Node, findings: &mut Findings) -> Option<String> {
        match &node.value {
            Value::Text(text) => self.fill(text, node.spot, findings),
            other => {
                wrong(node, "a string", other, findings);
                None
            }
        }
    }

    /// A text that a function understands.
    pub fn parsed<T>(
        self,
        node: &Node,
        findings: &mut Findings,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.text(node, findings)?;
        match parse(&text) {
            Ok(value) => Some(value),
            Err(message) => {
                findings.error(node.spot, message);
                None
            }
        }
    }

    pub fn flag(self, node: &Node, findings: &mut Findings) -> Option<bool> {
        match &node.value {
            Value::Flag(flag) => Some(*flag),
            other => {
                wrong(node, "true or false", other, findings);
                None
            }
        }
    }

    /// A number from 0 to `most`.
    pub fn number(self, node: &Node, most: u64, findings: &mut Findings) -> Option<u64> {
        match &node.value {
            Value::Integer(number) => match u64::try_from(*number) {
                Ok(number) if number <= most => Some(number),
                _ => {
                    findings.error(node.spot, format!("{number} is not between 0 and {most}"));
                    None
                }
            },
            other => {
                wrong(node, "an integer", other, findings);
                None
            }
        }
    }

    pub fn small(self, node: &Node, findings: &mut Findings) -> Option<u32> {
        let number = self.number(node, u32::MAX.into(), findings)?;
        u32::try_from(number).ok()
    }

    pub fn duration_ns(self, node: &Node, findings: &mut Findings) -> Option<u64> {
        if let Value::Integer(number) = node.value
            && number != 0
        {
            let message = format!("{number} is no time: it has no unit");
            findings.help(
                node.spot,
                message,
                format!("write \"{number}ms\" or \"{number}s\""),
            );
            return None;
        }
        if let Value::Integer(_) = node.value {
            return Some(0);
        }
        self.parsed(node, findings, units::duration_ns)
    }

    /// A size such as `"64K"`, or a number of bytes.
    pub fn size(self, node: &Node, findings: &mut Findings) -> Option<u64> {
        match node.value {
            Value::Integer(_) => self.number(node, u64::MAX, findings),
            _ => self.parsed(node, findings, units::bytes),
        }
    }

    pub fn prefix(self, node: &Node, findings: &mut Findings) -> Option<Prefix> {
        self.parsed(node, findings, |text| {
            text.parse().map_err(|error| format!("{error}"))
        })
    }

    /// An array, or one value that counts as an array of one.
    pub fn list<T>(
        self,
        node: &Node,
        findings: &mut Findings,
        mut each: impl FnMut(Scope, &Node, &mut Findings) -> Option<T>,
    ) -> Vec<T> {
        match &node.value {
            Value::List(nodes) => nodes
                .iter()
                .filter_map(|node| each(self, node, findings))
                .collect(),
            Value::Broken => Vec::new(),
            _ => each(self, node, findings).into_iter().collect(),
        }
    }

    pub fn texts(self, node: &Node, findings: &mut Findings) -> Vec<String> {
        self.list(node, findings, Scope::text)
    }

    /// One of some words.
    pub fn word<T: Copy>(
        self,
        node: &Node,
        words: &[(&'static str, T)],
        findings: &mut Findings,
    ) -> Option<T> {
        let text = self.text(node, findings)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            unknown(node.spot, "word", &text, &known, findings);
        }
        found.map(|(_, value)| *value)
    }
}

/// Tells that a word is none of those that are known here.
pub(crate) fn unknown(spot: Spot, what: &str, word: &str, known: &[&str], findings: &mut Findings) {
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
    findings.help(
        spot,
        format!("{word:?} is no {what} that is known here"),
        help,
    );
}
