//! Source locations, and errors that show one: line, column, the line itself and a caret.

use std::fmt;

/// A byte range of a text.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset past the last byte.
    pub end: usize,
}

impl Span {
    /// Returns the span from the start of this one to the end of another.
    pub(crate) fn to(self, other: Span) -> Span {
        Span {
            start: self.start,
            end: other.end,
        }
    }
}

/// A location in a text, with the line to show.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceLocation {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Number of characters to mark, at least 1.
    pub length: usize,
    /// The text of the line.
    pub text: String,
}

impl SourceLocation {
    /// Returns the location of a span. A span of several lines is shown to the end of its first
    /// line.
    pub(crate) fn of(source: &str, span: Span) -> SourceLocation {
        let start = floor(source, span.start);
        let end = floor(source, span.end).max(start);
        let line_start = source[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = source[start..].find('\n');
        let line_end = line_end.map_or(source.len(), |length| start + length);
        let text = source[line_start..line_end].trim_end_matches('\r');
        SourceLocation {
            line: source[..start].matches('\n').count() + 1,
            column: source[line_start..start].chars().count() + 1,
            length: source[start..end.min(line_end)].chars().count().max(1),
            text: text.to_owned(),
        }
    }
}

/// Returns the last character boundary that is not past an offset.
fn floor(source: &str, offset: usize) -> usize {
    let mut offset = offset.min(source.len());
    while !source.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

impl fmt::Display for SourceLocation {
    /// Shows the line with its number, and carets below it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        writeln!(f, "{number} | {}", self.text)?;
        // Tabs are kept, so that the caret stays aligned.
        let before = self.text.chars().take(self.column - 1);
        let before: String = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        write!(f, "{margin} | {before}{}", "^".repeat(self.length))
    }
}

/// Why a text is not a valid file of invariants.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}:{}: {message}\n{place}", place.line, place.column)]
pub struct ParseError {
    /// What is wrong, and what was expected.
    pub message: String,
    /// The location.
    pub place: SourceLocation,
}

impl ParseError {
    pub(crate) fn new(source: &str, span: Span, message: impl Into<String>) -> ParseError {
        ParseError {
            message: message.into(),
            place: SourceLocation::of(source, span),
        }
    }
}

/// An error as a span, without the text of the source.
#[derive(Debug)]
pub(crate) struct SourceError {
    pub span: Span,
    pub message: String,
}

impl SourceError {
    pub fn new(span: Span, message: impl Into<String>) -> SourceError {
        SourceError {
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
        let place = SourceLocation::of(
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
        let place = SourceLocation::of("ab", Span { start: 9, end: 12 });
        assert_eq!((place.line, place.column, place.length), (1, 3, 1));
        let place = SourceLocation::of("ab\ncd", Span { start: 1, end: 5 });
        assert_eq!((place.line, place.column, place.length), (1, 2, 1));
    }
}
