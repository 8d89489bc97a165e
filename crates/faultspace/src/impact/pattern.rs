//! A small pattern language for logs: that of `grep -E` without repetition counts and back
//! references.

/// A pattern.
#[derive(Clone, PartialEq, Debug)]
pub struct Pattern(Vec<Vec<Piece>>);

#[derive(Clone, PartialEq, Debug)]
struct Piece {
    what: What,
    least: u32,
    is_repeated: bool,
}

#[derive(Clone, PartialEq, Debug)]
enum What {
    Any,
    Is(char),
    /// Ranges of characters, and whether they are excluded.
    Class(Vec<(char, char)>, bool),
    Group(Vec<Vec<Piece>>),
    Begin,
    End,
}

type Characters<'t> = std::iter::Peekable<std::str::Chars<'t>>;

impl Pattern {
    /// Parses a pattern.
    pub fn parse(text: &str) -> Result<Pattern, String> {
        let mut rest = text.chars().peekable();
        let pattern = alternatives(&mut rest)?;
        match rest.next() {
            None => Ok(Pattern(pattern)),
            Some(other) => Err(format!("`{other}` has no begin")),
        }
    }

    /// Returns whether it matches somewhere in a line.
    pub fn is_in(&self, line: &str) -> bool {
        let line: Vec<char> = line.chars().collect();
        // The work is bounded, so that no pattern and no line can hang a search.
        let mut steps = 1_000_000;
        (0..=line.len()).any(|at| any(&self.0, &line, at, &mut steps, &mut |_| true))
    }
}

fn alternatives(rest: &mut Characters<'_>) -> Result<Vec<Vec<Piece>>, String> {
    let mut all = vec![Vec::new()];
    loop {
        match rest.peek() {
            None | Some(')') => return Ok(all),
            Some('|') => {
                rest.next();
                all.push(Vec::new());
            }
            Some(_) => {
                let piece = piece(rest)?;
                if let Some(last) = all.last_mut() {
                    last.push(piece);
                }
            }
        }
    }
}

fn piece(rest: &mut Characters<'_>) -> Result<Piece, String> {
    let what = match rest.next() {
        Some('.') => What::Any,
        Some('^') => What::Begin,
        Some('$') => What::End,
        Some('[') => class(rest)?,
        Some('(') => {
            let group = alternatives(rest)?;
            match rest.next() {
                Some(')') => What::Group(group),
                _ => return Err("`(` has no end".to_owned()),
            }
        }
        Some('\\') => match rest.next() {
            Some('d') => What::Class(vec![('0', '9')], false),
            Some('s') => What::Class(vec![(' ', ' '), ('\t', '\r')], false),
            Some('w') => What::Class(vec![('a', 'z'), ('A', 'Z'), ('0', '9'), ('_', '_')], false),
            Some(other) if !other.is_alphanumeric() => What::Is(other),
            other => return Err(format!("`\\{}` means nothing", other.unwrap_or(' '))),
        },
        Some(other) if "*+?".contains(other) => return Err(format!("`{other}` repeats nothing")),
        Some(other) => What::Is(other),
        None => return Err("it is empty".to_owned()),
    };
    let (least, is_repeated) = match rest.peek() {
        Some('*') => (0, true),
        Some('+') => (1, true),
        Some('?') => (0, false),
        _ => {
            return Ok(Piece {
                what,
                least: 1,
                is_repeated: false,
            });
        }
    };
    rest.next();
    Ok(Piece {
        what,
        least,
        is_repeated,
    })
}

fn class(rest: &mut Characters<'_>) -> Result<What, String> {
    let is_excluded = rest.next_if_eq(&'^').is_some();
    let mut ranges = Vec::new();
    loop {
        let first = match rest.next() {
            None => return Err("`[` has no end".to_owned()),
            Some(']') if !ranges.is_empty() => return Ok(What::Class(ranges, is_excluded)),
            Some('\\') => rest.next().ok_or("`[` has no end")?,
            Some(other) => other,
        };
        let mut last = first;
        if rest.peek() == Some(&'-') {
            rest.next();
            match rest.peek() {
                Some(']') | None => ranges.push(('-', '-')),
                Some(other) => {
                    last = *other;
                    rest.next();
                }
            }
        }
        ranges.push((first, last));
    }
}

type Then<'t> = &'t mut dyn FnMut(usize) -> bool;

fn any(all: &[Vec<Piece>], line: &[char], at: usize, steps: &mut u32, then: Then<'_>) -> bool {
    all.iter().any(|one| sequence(one, line, at, steps, then))
}

fn sequence(pieces: &[Piece], line: &[char], at: usize, steps: &mut u32, then: Then<'_>) -> bool {
    let Some((first, rest)) = pieces.split_first() else {
        return then(at);
    };
    repeated(first, 0, rest, line, at, steps, then)
}

fn repeated(
    piece: &Piece,
    count: u32,
    rest: &[Piece],
    line: &[char],
    at: usize,
    steps: &mut u32,
    then: Then<'_>,
) -> bool {
    if *steps == 0 {
        return false;
    }
    *steps -= 1;
    let may_more = count == 0 || piece.is_repeated;
    if may_more {
        let found = match &piece.what {
            What::Group(all) => {
                let left = std::cell::Cell::new(*steps);
                let mut inner = left.get();
                let found = any(all, line, at, &mut inner, &mut |end| {
                    let mut own = left.get();
                    // An empty repetition would never end.
                    let found = (end > at || count == 0)
                        && repeated(piece, count + 1, rest, line, end, &mut own, then);
                    left.set(own);
                    found
                });
                *steps = inner.min(left.get());
                found
            }
            what => match matches(what, line, at) {
                Some(end) => repeated(piece, count + 1, rest, line, end, steps, then),
                None => false,
            },
        };
        if found {
            return true;
        }
    }
    count >= piece.least && sequence(rest, line, at, steps, then)
}

fn matches(what: &What, line: &[char], at: usize) -> Option<usize> {
    let next = line.get(at);
    let is_it = match what {
        What::Begin => return (at == 0).then_some(at),
        What::End => return (at == line.len()).then_some(at),
        What::Any => next.is_some(),
        What::Is(character) => next == Some(character),
        What::Class(ranges, is_excluded) => next.is_some_and(|next| {
            ranges
                .iter()
                .any(|(first, last)| (first..=last).contains(&next))
                != *is_excluded
        }),
        What::Group(_) => false,
    };
    is_it.then_some(at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_those_of_grep() {
        for (pattern, line, expected) in [
            ("ab", "xaby", true),
            ("^ab", "xab", false),
            ("a.c$", "xabc", true),
            ("a*b", "b", true),
            ("a+b", "b", false),
            ("(ab|cd)+e", "xabcde", true),
            ("(ab|cd)+e", "xabce", false),
            ("colou?r", "my color", true),
            ("[0-9]+ ms", "took 12 ms", true),
            ("[^a-c]x", "bx", false),
            ("\\d\\.\\d", "v1.2", true),
            ("error|panic", "thread panicked", true),
            ("(a*)*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", false),
            ("", "anything", true),
            ("[]-]", "x]", true),
        ] {
            let parsed = Pattern::parse(pattern).unwrap();
            assert_eq!(parsed.is_in(line), expected, "{pattern} in {line}");
        }
        for wrong in ["(", ")", "*a", "[a", "\\q"] {
            assert!(Pattern::parse(wrong).is_err(), "{wrong}");
        }
    }
}
