//! Patterns of replies: a subset of regular expressions that can be decided on symbolic bytes.

use everett_expr::{Arena, ExprId};

/// A pattern: at the beginning, or anywhere, bytes of certain sets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    is_anchored: bool,
    /// The bytes that are allowed at each place, as intervals.
    places: Vec<Vec<(u8, u8)>>,
}

/// Why a text is no pattern.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{0:?} cannot be used here: a pattern has bytes, `.`, classes such as [0-9], escapes such as \\n or \\x00, \
     and `^` at its beginning"
)]
pub struct PatternError(String);

impl Pattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<Pattern, PatternError> {
        let wrong = || PatternError(text.to_owned());
        let (is_anchored, mut rest) = match text.strip_prefix('^') {
            Some(rest) => (true, rest.as_bytes()),
            None => (false, text.as_bytes()),
        };
        let mut places = Vec::new();
        while let Some((first, after)) = rest.split_first() {
            rest = after;
            places.push(match first {
                b'.' => vec![(0, u8::MAX)],
                b'\\' => vec![one(escaped(&mut rest).ok_or_else(wrong)?)],
                b'[' => class(&mut rest).ok_or_else(wrong)?,
                b'*' | b'+' | b'?' | b'(' | b')' | b'{' | b'|' | b'$' => return Err(wrong()),
                byte => vec![one(*byte)],
            });
        }
        match places.is_empty() {
            true => Err(wrong()),
            false => Ok(Pattern {
                is_anchored,
                places,
            }),
        }
    }

    /// That bytes match.
    pub fn matches(&self, arena: &mut Arena, bytes: &[ExprId]) -> ExprId {
        let starts = match self.is_anchored {
            true => 0..1,
            false => 0..bytes.len().max(1),
        };
        let mut cases = Vec::new();
        for start in starts {
            if let Some(here) = bytes.get(start..start + self.places.len()) {
                let places = here.iter().zip(&self.places);
                let parts: Vec<ExprId> = places
                    .map(|(byte, allowed)| is_in(arena, *byte, allowed))
                    .collect();
                cases.push(arena.all(&parts));
            }
        }
        arena.any(&cases)
    }
}

fn one(byte: u8) -> (u8, u8) {
    (byte, byte)
}

fn is_in(arena: &mut Arena, byte: ExprId, allowed: &[(u8, u8)]) -> ExprId {
    let mut cases = Vec::new();
    for (first, last) in allowed {
        let first = arena.constant(8, u64::from(*first));
        let last = arena.constant(8, u64::from(*last));
        let (above, below) = (arena.ule(first, byte), arena.ule(byte, last));
        cases.push(arena.and(above, below));
    }
    arena.any(&cases)
}

fn escaped(rest: &mut &[u8]) -> Option<u8> {
    let (first, after) = rest.split_first()?;
    *rest = after;
    Some(match first {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'0' => 0,
        b'x' => {
            let (digits, after) = rest.split_at_checked(2)?;
            *rest = after;
            u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?
        }
        byte if !byte.is_ascii_alphanumeric() => *byte,
        _ => return None,
    })
}

fn class(rest: &mut &[u8]) -> Option<Vec<(u8, u8)>> {
    let mut all = Vec::new();
    loop {
        let (first, after) = rest.split_first()?;
        *rest = after;
        let low = match first {
            b']' if !all.is_empty() => return Some(all),
            b'^' if all.is_empty() => return None,
            b'\\' => escaped(rest)?,
            byte => *byte,
        };
        let high = match rest {
            [b'-', b'\\', ..] => {
                *rest = &rest[2..];
                escaped(rest)?
            }
            [b'-', next, ..] if *next != b']' => {
                *rest = &rest[2..];
                *next
            }
            _ => low,
        };
        if high < low {
            return None;
        }
        all.push((low, high));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_match(pattern: &str, text: &[u8]) -> bool {
        let mut arena = Arena::new();
        let bytes: Vec<ExprId> = text
            .iter()
            .map(|byte| arena.constant(8, u64::from(*byte)))
            .collect();
        let pattern = Pattern::parse(pattern).expect("a pattern");
        let matches = pattern.matches(&mut arena, &bytes);
        arena.is_true(matches)
    }

    #[test]
    fn patterns_match_as_regular_expressions_do() {
        assert!(is_match("^HTTP/1.. 4", b"HTTP/1.1 404 Not Found"));
        assert!(!is_match("^HTTP/1.. 4", b"HTTP/1.1 200 OK"));
        assert!(is_match("error", b"an error"));
        assert!(!is_match("^error", b"an error"));
        assert!(is_match("^\\x00[0-9]", b"\x007"));
        assert!(!is_match("^abc", b"ab"));
        assert!(is_match("^[\\x80-\\xff]", b"\x9c"));
        assert!(!is_match("^[\\x80-\\xff]", b"x"));
        for bad in ["", "^", "a*", "(a)", "[", "[^a]", "\\q", "[b-a]", "[a-\\"] {
            assert!(Pattern::parse(bad).is_err(), "{bad}");
        }
    }
}
