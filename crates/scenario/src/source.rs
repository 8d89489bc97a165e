//! Source texts (the scenario file and the settings that override its keys) and diagnostics about
//! them.

use std::fmt::{self, Write as _};

/// A span of a source text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct SourceSpan {
    /// Index of the text: 0 is the file, the others are settings.
    pub source: u32,
    /// Offset of the first byte.
    pub start: usize,
    /// Offset past the last byte.
    pub end: usize,
}

/// A source text.
#[derive(Clone, Debug)]
pub(crate) struct SourceText {
    /// The name in error messages.
    pub name: String,
    /// The text.
    pub text: String,
    /// Whether the text is a setting, which has no lines and columns.
    pub is_setting: bool,
}

/// An error in a scenario, with its location and a way to fix it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The file, or `settings`.
    pub source: String,
    /// Line from 1; 0 for settings.
    pub line: usize,
    /// Column in characters from 1; 0 for settings.
    pub column: usize,
    /// The error message.
    pub message: String,
    /// The way to fix it.
    pub help: Option<String>,
    /// The source line, and the range of the carets (in characters).
    excerpt: Option<(String, usize, usize)>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = match self.line {
            0 => String::new(),
            line => line.to_string(),
        };
        match self.line {
            0 => writeln!(f, "{}: {}", self.source, self.message)?,
            line => writeln!(
                f,
                "{}:{line}:{}: {}",
                self.source, self.column, self.message
            )?,
        }
        let margin = " ".repeat(number.len());
        if let Some((line, from, width)) = &self.excerpt {
            // Tabs are kept, so that the carets stay aligned.
            let lead: String = line
                .chars()
                .take(*from)
                .map(|c| if c == '\t' { c } else { ' ' })
                .collect();
            writeln!(f, "{margin} |")?;
            writeln!(f, "{number} | {line}")?;
            writeln!(f, "{margin} | {lead}{}", "^".repeat((*width).max(1)))?;
        }
        if let Some(help) = &self.help {
            writeln!(f, "{margin} = {help}")?;
        }
        Ok(())
    }
}

/// All errors in a scenario; never empty.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct Problems {
    /// The errors, in source order.
    pub list: Vec<Problem>,
}

/// Maximum number of errors that are printed.
const MAX_PRINTED: usize = 20;

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for problem in self.list.iter().take(MAX_PRINTED) {
            write!(text, "{problem}")?;
        }
        let further = self.list.len().saturating_sub(MAX_PRINTED);
        if further > 0 {
            writeln!(text, "and {further} more")?;
        }
        f.write_str(text.trim_end())
    }
}

/// A place in a scenario, for errors that are found after the scenario was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScenarioLocation(Problem);

impl ScenarioLocation {
    /// Creates an error at this place, with a way to fix it.
    pub fn wrong(&self, message: String, help: String) -> Problems {
        Problems {
            list: vec![Problem {
                message,
                help: Some(help),
                ..self.0.clone()
            }],
        }
    }
}

/// Collects errors while a scenario is read.
#[derive(Debug)]
pub(crate) struct Diagnostics {
    pub sources: Vec<SourceText>,
    found: Vec<(SourceSpan, String, Option<String>)>,
}

impl Diagnostics {
    pub fn new(name: &str, text: &str) -> Diagnostics {
        let file = SourceText {
            name: name.to_owned(),
            text: text.to_owned(),
            is_setting: false,
        };
        Diagnostics {
            sources: vec![file],
            found: Vec::new(),
        }
    }

    /// Adds a setting as a source text; returns its index.
    pub fn add_setting(&mut self, name: String, text: String) -> u32 {
        self.sources.push(SourceText {
            name,
            text,
            is_setting: true,
        });
        self.sources.len() as u32 - 1
    }

    pub fn add(&mut self, span: SourceSpan, message: impl Into<String>, help: Option<String>) {
        let message = message.into();
        // All hosts of one `count` have the same errors; each is reported once.
        let is_known =
            |known: &(SourceSpan, String, Option<String>)| known.0 == span && known.1 == message;
        if !self.found.iter().any(is_known) {
            self.found.push((span, message, help));
        }
    }

    pub fn error(&mut self, span: SourceSpan, message: impl Into<String>) {
        self.add(span, message, None);
    }

    pub fn help(&mut self, span: SourceSpan, message: impl Into<String>, help: impl Into<String>) {
        self.add(span, message, Some(help.into()));
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns the place of a span.
    pub fn place(&self, span: SourceSpan) -> ScenarioLocation {
        let source = &self.sources[span.source as usize];
        ScenarioLocation(problem(source, span, String::new(), None))
    }

    /// Returns the line of a span, from 1.
    pub fn line(&self, span: SourceSpan) -> u32 {
        let text = &self.sources[span.source as usize].text;
        let before = text.get(..span.start).unwrap_or(text);
        before.matches('\n').count() as u32 + 1
    }

    pub fn into_problems(mut self) -> Problems {
        self.found.sort_by_key(|(span, _, _)| *span);
        let sources = self.sources;
        let problem = |(span, message, help): (SourceSpan, String, Option<String>)| {
            problem(&sources[span.source as usize], span, message, help)
        };
        Problems {
            list: self.found.into_iter().map(problem).collect(),
        }
    }
}

/// Maximum length of a line; longer ones are truncated.
const MAX_LINE_LENGTH: usize = 160;

fn problem(
    source: &SourceText,
    span: SourceSpan,
    message: String,
    help: Option<String>,
) -> Problem {
    let text = &source.text;
    let floor = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (start, end) = (floor(span.start), floor(span.end.max(span.start)));
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let before = text[line_start..start].chars().count();
    let width = text[start..end.min(line_end)].chars().count();
    let line = text[line_start..line_end].trim_end();
    let excerpt = (!line.is_empty()).then(|| {
        let skipped = before.saturating_sub(MAX_LINE_LENGTH / 2);
        let shown: String = line.chars().skip(skipped).take(MAX_LINE_LENGTH).collect();
        let shown: String = shown
            .chars()
            .map(|c| if c.is_control() && c != '\t' { '?' } else { c })
            .collect();
        let room = shown.chars().count().saturating_sub(before - skipped);
        (shown, before - skipped, width.min(room))
    });
    let is_file = !source.is_setting;
    Problem {
        source: source.name.clone(),
        line: if is_file {
            text[..start].matches('\n').count() + 1
        } else {
            0
        },
        column: if is_file { before + 1 } else { 0 },
        message,
        help,
        excerpt,
    }
}

/// Returns the known word that is closest to an unknown one.
pub fn nearest<'w>(word: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let lower = word.to_lowercase().replace('-', "_");
    let most = (word.chars().count() / 3).clamp(1, 3);
    let distances = known
        .into_iter()
        .map(|other| (distance(&lower, &other.to_lowercase()), other));
    let best = distances.min_by_key(|(distance, _)| *distance)?;
    (best.0 <= most).then_some(best.1)
}

/// Returns the edit distance with transpositions.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) =
        (a.chars().take(64).collect(), b.chars().take(64).collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            let mut least = (rows[i - 1][j] + 1)
                .min(row[j - 1] + 1)
                .min(rows[i - 1][j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_guessed_where_they_are_near() {
        let known = ["program", "args", "address", "wait_all"];
        assert_eq!(nearest("progam", known), Some("program"));
        assert_eq!(nearest("wait-all", known), Some("wait_all"));
        assert_eq!(nearest("agrs", known), Some("args"));
        assert_eq!(nearest("colour", known), None);
    }

    #[test]
    fn carets_stand_below_what_they_mean() {
        let mut diagnostics = Diagnostics::new("s.toml", "first\n\tkey = 1\n");
        let (source, start, end) = (0, 7, 10);
        diagnostics.help(
            SourceSpan { source, start, end },
            "it is wrong",
            "do it right",
        );
        let problems = diagnostics.into_problems();
        assert_eq!(
            problems.to_string(),
            "s.toml:2:2: it is wrong\n  |\n2 | \tkey = 1\n  | \t^^^\n  = do it right"
        );
    }
}
