//! Keys of a scenario that are options of a run or of a host. The caller declares them and
//! interprets their values; this module reads the values according to their kinds.

use std::fmt;

use crate::NameContext;
use crate::reader::{Table, ValueReader};
use crate::source::{Diagnostics, SourceSpan};
use crate::units::show_ns;

/// A key that is an option of the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionKey {
    /// The table that the key is in: `limits`, `search`, or `host` for the tables of all hosts.
    pub table: &'static str,
    /// The key.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: OptionKind,
    /// The default value, for people.
    pub default: Option<&'static str>,
}

/// The kind of an option's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionKind {
    /// True or false.
    Flag,
    /// A number of at least 0.
    Number {
        /// The largest number.
        most: u64,
    },
    /// A duration with its unit.
    Duration,
    /// A number of bytes.
    Size,
    /// A text.
    Text,
    /// One or several texts.
    Texts,
}

/// The value of an option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OptionValue {
    /// True or false.
    Flag(bool),
    /// A number.
    Number(u64),
    /// A duration in nanoseconds.
    Duration(u64),
    /// A number of bytes.
    Size(u64),
    /// Texts.
    Texts(Vec<String>),
}

impl OptionValue {
    /// Returns the value as command line arguments: one text for each occurrence of a flag.
    pub fn arguments(&self) -> Vec<String> {
        match self {
            OptionValue::Flag(true) => vec![String::new()],
            OptionValue::Flag(false) => Vec::new(),
            OptionValue::Number(number) | OptionValue::Size(number) => vec![number.to_string()],
            OptionValue::Duration(ns) => vec![format!("{ns}ns")],
            OptionValue::Texts(texts) => texts.clone(),
        }
    }
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionValue::Flag(flag) => write!(f, "{flag}"),
            OptionValue::Number(number) => write!(f, "{number}"),
            OptionValue::Duration(ns) => f.write_str(&show_ns(*ns)),
            OptionValue::Size(bytes) => write!(f, "{bytes} bytes"),
            OptionValue::Texts(texts) => f.write_str(&texts.join(", ")),
        }
    }
}

/// An option with its setting in the scenario.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OptionSetting {
    /// The option.
    pub key: OptionKey,
    /// The value; `None` if the scenario omits it.
    pub value: Option<OptionValue>,
}

impl OptionSetting {
    /// Formats the name and the value or default for people; `None` if there is neither.
    pub(crate) fn shown(&self) -> Option<String> {
        let default = || self.key.default.map(str::to_owned);
        let value = self.value.as_ref().map(OptionValue::to_string);
        let value = value.or_else(default)?;
        Some(format!("{} {value}", self.key.name.replace('_', " ")))
    }
}

/// Reads the options that the caller declares for a kind of table.
pub(crate) fn read_options(
    name: &str,
    table: &mut Table<'_>,
    values: ValueReader,
    context: &dyn NameContext,
    diagnostics: &mut Diagnostics,
) -> Vec<OptionSetting> {
    let keys = context.options().into_iter();
    keys.filter(|key| key.table == name)
        .map(|key| OptionSetting {
            value: read_option(&key, table, values, context, diagnostics),
            key,
        })
        .collect()
}

fn read_option(
    key: &OptionKey,
    table: &mut Table<'_>,
    values: ValueReader,
    context: &dyn NameContext,
    diagnostics: &mut Diagnostics,
) -> Option<OptionValue> {
    let node = table.get(key.name)?;
    let check = |argument: &str, span: SourceSpan, diagnostics: &mut Diagnostics| {
        if let Err(message) = context.check_option(key, argument) {
            diagnostics.error(span, message);
        }
    };
    let value = match key.kind {
        OptionKind::Flag => OptionValue::Flag(values.flag(node, diagnostics)?),
        OptionKind::Number { most } => {
            OptionValue::Number(values.number(node, most, diagnostics)?)
        }
        OptionKind::Duration => OptionValue::Duration(values.duration_ns(node, diagnostics)?),
        OptionKind::Size => OptionValue::Size(values.size(node, diagnostics)?),
        OptionKind::Text => OptionValue::Texts(vec![values.text(node, diagnostics)?]),
        OptionKind::Texts => {
            let texts = values.list(node, diagnostics, |values, node, diagnostics| {
                let text = values.text(node, diagnostics)?;
                check(&text, node.span, diagnostics);
                Some(text)
            });
            return Some(OptionValue::Texts(texts));
        }
    };
    for argument in value.arguments() {
        check(&argument, node.span, diagnostics);
    }
    Some(value)
}
