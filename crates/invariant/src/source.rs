//! Places in a text, and the error that shows one: line, column, the line itself and a caret.

use std::fmt;

/// Bytes of a text, from the first to behind the last.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// Behind the last byte.
    pub end: usize,
}

impl Span {
    /// From the start of one to the end of another.
    pub(crate) fn to(self, other: Span) -> Span {
        Span {
            start: self.start,
            end: other.end,
        }
    }
}

/// A place in a text as people look it up, with its line to show.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// How many characters of the line are meant, at least 1.
    pub length: usize,
    /// The text of the line.
    pub text: String,
}

impl Place {
    /// The place of a span of a text. Spans of several lines are shown to the end of their first.
    pub(crate) fn of(source: &str, span: Span) -> Place {
        let start = floor(source, span.start);
        let end = floor(source, span.end).max(start);
        let line_start = source[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = source[start..].find('\n');
        let line_end = line_end.map_or(source.len(), |length| start + length);
        let text = source[line_start..line_end].trim_end_matches('\r');
        Place {
            line: source[..start].matches('\n').count() + 1,
            column: source[line_start..start].chars().count() + 1,
            length: source[start..end.min(line_end)].chars().count().max(1),
            text: text.to_owned(),
        }
    }
}

/// The last border of characters that is not behind an offset.
fn floor(source: &str, offset: usize) -> usize {
    let mut offset = offset.min(source.len());
    while !source.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

impl fmt::Display for Place {
    /// The line with its number, and below it carets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        writeln!(f, "{number} | {}", self.text)?;
        // Tabs stay tabs, so that the caret stands below its character however wide they are.
        let before = self.text.chars().take(self.column - 1);
        let before: String = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        write!(f, "{margin} | {before}{}", "^".repeat(self.length))
    }
}

/// Why a text is not a file of invariants.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}:{}: {message}\n{place}", place.line, place.column)]
pub struct ParseError {
    /// What is wrong, and what was expected.
    pub message: String,
    /// Where.
    pub place: Place,
}

impl ParseError {
    pub(crate) fn new(source: &str, span: Span, message: impl Into<String>) -> ParseError {
        ParseError {
            message: message.into(),
            place: Place::of(source, span),
        }
    }
}

/// An error before its text is at hand.
#[derive(Debug)]
pub(crate) struct Mistake {
    pub span: Span,
    pub message: String,
}

impl Mistake {
    pub fn new(span: Span, message: impl Into<String>) -> Mistake {
        Mistake {
            span,
            message: message.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_and_keep_tabs() {
        let source = "one\n\tä = b c\nthree";
        let start = source.find('b').expect("a letter");
        let place = Place::of(
            source,
            Span {
                start,
                end: start + 1,
            },
        );
        assert_eq!((place.line, place.column, place.length), (2, 6, 1));
        assert_eq!(place.to_string(), "2 | \tä = b c\n  | \t    ^");
    }

    #[test]
    fn spans_past_the_end_and_over_lines_are_shown() {
        let place = Place::of("ab", Span { start: 9, end: 12 });
        assert_eq!((place.line, place.column, place.length), (1, 3, 1));
        let place = Place::of("ab\ncd", Span { start: 1, end: 5 });
        assert_eq!((place.line, place.column, place.length), (1, 2, 1));
    }
}
