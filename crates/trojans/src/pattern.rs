//! Patterns of replies: regular expressions over bytes, whose match on symbolic bytes is a
//! condition.

use everett_expr::{Arena, ExprId};

/// The bytes that are allowed at a place, as intervals.
type Set = Vec<(u8, u8)>;

/// A pattern, as a nondeterministic automaton. It may match anywhere unless it contains `^`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    /// The automaton's states. A match begins in the first and ends in the second.
    states: Vec<State>,
}

/// The transitions out of an automaton state.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct State {
    /// Transitions without a byte.
    free: Vec<(When, usize)>,
    /// The transition with one of these bytes.
    with: Option<(Set, usize)>,
}

/// Where a transition without a byte is possible.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum When {
    Always,
    AtBeginning,
    AtEnd,
}

/// The error for a text that is not a pattern.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{0:?} cannot be used here: a pattern is a regular expression of bytes, `.`, classes such as [0-9], escapes such \
     as \\n, \\x00 or \\d, groups, `|`, `*`, `+`, `?`, {{2,4}}, `^` and `$`"
)]
pub struct PatternError(String);

/// A part of a pattern.
#[derive(Clone)]
enum Part {
    One(Set),
    Here(When),
    Sequence(Vec<Part>),
    Either(Vec<Part>),
    /// Minimum and maximum number of repetitions.
    Repeated(Box<Part>, u32, Option<u32>),
}

/// Maximum number in a repetition.
const MOST_REPEATS: u32 = 255;
/// Maximum number of states of the automaton.
const MOST_STATES: usize = 4096;
/// Maximum nesting depth of groups.
const MOST_DEPTH: u32 = 64;

const BEGIN: usize = 0;
const END: usize = 1;

impl Pattern {
    /// Parses a pattern.
    pub fn parse(text: &str) -> Result<Pattern, PatternError> {
        let wrong = || PatternError(text.to_owned());
        let mut rest = text.as_bytes();
        let part = either(&mut rest, 0).filter(|_| rest.is_empty());
        let part = part.ok_or_else(wrong)?;
        if matches!(text, "" | "^" | "$") {
            return Err(wrong());
        }
        let mut pattern = Pattern {
            states: vec![State::default(); 2],
        };
        pattern.add(&part, BEGIN, END).ok_or_else(wrong)?;
        Ok(pattern)
    }

    fn new_state(&mut self) -> Option<usize> {
        self.states.push(State::default());
        Some(self.states.len() - 1).filter(|state| *state < MOST_STATES)
    }

    fn join(&mut self, from: usize, to: usize) {
        self.states[from].free.push((When::Always, to));
    }

    /// Adds a part between two states; `None` if there are too many states.
    fn add(&mut self, part: &Part, from: usize, to: usize) -> Option<()> {
        match part {
            Part::One(set) => {
                let state = self.new_state()?;
                self.join(from, state);
                self.states[state].with = Some((set.clone(), to));
            }
            Part::Here(when) => self.states[from].free.push((*when, to)),
            Part::Sequence(parts) => {
                let mut here = from;
                for part in parts {
                    let next = self.new_state()?;
                    self.add(part, here, next)?;
                    here = next;
                }
                self.join(here, to);
            }
            Part::Either(parts) => {
                for part in parts {
                    self.add(part, from, to)?;
                }
            }
            Part::Repeated(part, least, most) => {
                let mut here = from;
                for _ in 0..*least {
                    let next = self.new_state()?;
                    self.add(part, here, next)?;
                    here = next;
                }
                for _ in *least..most.unwrap_or(*least) {
                    let next = self.new_state()?;
                    self.join(here, to);
                    self.add(part, here, next)?;
                    here = next;
                }
                if most.is_none() {
                    // A separate state, so that what comes before is not repeated.
                    let again = self.new_state()?;
                    self.join(here, again);
                    self.add(part, again, again)?;
                    here = again;
                }
                self.join(here, to);
            }
        }
        Some(())
    }

    /// Returns the states that can be reached from one without a byte.
    fn reached(&self, from: usize, is_beginning: bool, is_end: bool) -> Vec<usize> {
        let mut all = vec![from];
        let mut at = 0;
        while let Some(state) = all.get(at) {
            for (when, to) in &self.states[*state].free {
                let is_possible = match when {
                    When::Always => true,
                    When::AtBeginning => is_beginning,
                    When::AtEnd => is_end,
                };
                if is_possible && !all.contains(to) {
                    all.push(*to);
                }
            }
            at += 1;
        }
        all
    }

    /// Returns the condition that bytes match.
    pub fn matches(&self, arena: &mut Arena, bytes: &[ExprId]) -> ExprId {
        // For each state, the condition under which the bytes so far can lead to it.
        let mut now: Vec<Option<ExprId>> = vec![None; self.states.len()];
        let mut cases = Vec::new();
        for at in 0..=bytes.len() {
            now[BEGIN] = Some(arena.bool_constant(true));
            let mut here: Vec<Option<ExprId>> = vec![None; self.states.len()];
            for (state, when) in now.iter().enumerate() {
                let Some(when) = when else { continue };
                for to in self.reached(state, at == 0, at == bytes.len()) {
                    or(arena, &mut here[to], *when);
                }
            }
            cases.extend(here[END]);
            now = vec![None; self.states.len()];
            let Some(byte) = bytes.get(at) else { break };
            for (state, when) in self.states.iter().zip(&here) {
                if let (Some((set, to)), Some(when)) = (&state.with, when) {
                    let is_allowed = is_in(arena, *byte, set);
                    let goes_on = arena.and(*when, is_allowed);
                    if !arena.is_false(goes_on) {
                        or(arena, &mut now[*to], goes_on);
                    }
                }
            }
        }
        arena.any(&cases)
    }
}

fn or(arena: &mut Arena, all: &mut Option<ExprId>, case: ExprId) {
    *all = Some(match all {
        Some(others) => arena.any(&[*others, case]),
        None => case,
    });
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

/// Parses alternatives, up to the end of the text or of a group.
fn either(rest: &mut &[u8], depth: u32) -> Option<Part> {
    let mut all = vec![sequence(rest, depth)?];
    while let [b'|', after @ ..] = rest {
        *rest = after;
        all.push(sequence(rest, depth)?);
    }
    Some(match all.len() {
        1 => all.remove(0),
        _ => Part::Either(all),
    })
}

fn sequence(rest: &mut &[u8], depth: u32) -> Option<Part> {
    let mut parts = Vec::new();
    while let Some((first, after)) = rest.split_first() {
        if matches!(first, b'|' | b')') {
            break;
        }
        *rest = after;
        let part = match first {
            b'^' => Part::Here(When::AtBeginning),
            b'$' => Part::Here(When::AtEnd),
            b'.' => Part::One(vec![(0, u8::MAX)]),
            b'\\' => Part::One(escaped(rest)?),
            b'[' => Part::One(class(rest)?),
            b'(' => group(rest, depth)?,
            b'*' | b'+' | b'?' | b'{' => return None,
            byte => Part::One(one(*byte)),
        };
        parts.push(repeated(part, rest)?);
    }
    Some(Part::Sequence(parts))
}

fn group(rest: &mut &[u8], depth: u32) -> Option<Part> {
    if let [b'?', b':', after @ ..] = rest {
        *rest = after;
    }
    if depth >= MOST_DEPTH {
        return None;
    }
    let part = either(rest, depth + 1)?;
    *rest = rest.strip_prefix(b")")?;
    Some(part)
}

/// Parses the repetition that follows a part.
fn repeated(part: Part, rest: &mut &[u8]) -> Option<Part> {
    let (least, most, after) = match rest {
        [b'*', after @ ..] => (0, None, after),
        [b'+', after @ ..] => (1, None, after),
        [b'?', after @ ..] => (0, Some(1), after),
        [b'{', after @ ..] => {
            let end = after.iter().position(|byte| *byte == b'}')?;
            let said = std::str::from_utf8(&after[..end]).ok()?;
            let number = |text: &str| {
                let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                let number = text.parse().ok().filter(|_| is_number);
                number.filter(|number| *number <= MOST_REPEATS)
            };
            let (least, most) = match said.split_once(',') {
                None => (number(said)?, Some(number(said)?)),
                Some((least, "")) => (number(least)?, None),
                Some((least, most)) => (number(least)?, Some(number(most)?)),
            };
            (least, most, &after[end + 1..])
        }
        _ => return Some(part),
    };
    *rest = after;
    let is_again = matches!(rest.first(), Some(b'*' | b'+' | b'?' | b'{'));
    let is_range = most.is_none_or(|most| least <= most);
    (is_range && !is_again).then(|| Part::Repeated(Box::new(part), least, most))
}

fn one(byte: u8) -> Set {
    vec![(byte, byte)]
}

fn all_but(set: &[(u8, u8)]) -> Set {
    let mut others: Set = Vec::new();
    for byte in 0..=u8::MAX {
        if set.iter().any(|(low, high)| (*low..=*high).contains(&byte)) {
            continue;
        }
        match others.last_mut() {
            Some((_, high)) if *high + 1 == byte => *high = byte,
            _ => others.push((byte, byte)),
        }
    }
    others
}

fn escaped(rest: &mut &[u8]) -> Option<Set> {
    let (first, after) = rest.split_first()?;
    *rest = after;
    let digits = || vec![(b'0', b'9')];
    let letters = || vec![(b'0', b'9'), (b'A', b'Z'), (b'_', b'_'), (b'a', b'z')];
    let spaces = || vec![(b'\t', b'\r'), (b' ', b' ')];
    Some(match first {
        b'n' => one(b'\n'),
        b'r' => one(b'\r'),
        b't' => one(b'\t'),
        b'0' => one(0),
        b'd' => digits(),
        b'D' => all_but(&digits()),
        b'w' => letters(),
        b'W' => all_but(&letters()),
        b's' => spaces(),
        b'S' => all_but(&spaces()),
        b'x' => {
            let (digits, after) = rest.split_at_checked(2)?;
            *rest = after;
            one(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?)
        }
        byte if !byte.is_ascii_alphanumeric() => one(*byte),
        _ => return None,
    })
}

fn class(rest: &mut &[u8]) -> Option<Set> {
    let is_negated = rest.first() == Some(&b'^');
    if is_negated {
        *rest = &rest[1..];
    }
    let mut all = Set::new();
    loop {
        let (first, after) = rest.split_first()?;
        *rest = after;
        let low = match first {
            b']' if !all.is_empty() => break,
            b'\\' => escaped(rest)?,
            byte => one(*byte),
        };
        let high = match rest {
            [b'-', b'\\', ..] => {
                *rest = &rest[2..];
                escaped(rest)?
            }
            [b'-', next, ..] if *next != b']' => {
                let next = *next;
                *rest = &rest[2..];
                one(next)
            }
            _ => {
                all.extend(low);
                continue;
            }
        };
        match (&low[..], &high[..]) {
            ([(low, last)], [(high, other)]) if low == last && high == other && low <= high => {
                all.push((*low, *high));
            }
            _ => return None,
        }
    }
    Some(if is_negated { all_but(&all) } else { all })
}

#[cfg(test)]
mod tests {
    use super::*;
    use everett_solver::{Constraints, Model, Solver, SolverConfig, Verdict};

    fn is_match(pattern: &str, text: &[u8]) -> bool {
        let mut arena = Arena::new();
        let bytes: Vec<ExprId> = text
            .iter()
            .map(|byte| arena.constant(8, u64::from(*byte)))
            .collect();
        let pattern = Pattern::parse(pattern).expect("a pattern");
        let matches = pattern.matches(&mut arena, &bytes);
        assert!(arena.is_true(matches) || arena.is_false(matches));
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
        for bad in [
            "", "^", "*", "a**", "(a", "a)", "[", "\\q", "[b-a]", "[a-\\", "a{2,1}", "a{x}",
            "a{300}",
        ] {
            assert!(Pattern::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn parts_are_repeated_and_alternatives_tried() {
        for (pattern, yes, no) in [
            ("^(ERR|NO)", &["ERR 1", "NOT"][..], &["OK", "xERR", "N"][..]),
            ("^OK$", &["OK"], &["OK!", "O", ""]),
            ("^2\\d\\d ", &["200 ok", "299 "], &["20 ", "2x0 ", "300 "]),
            ("^a*b+c?$", &["b", "aabbc"], &["a", "aac", "bcc", "bca"]),
            (
                "^(ab){2,3}$",
                &["abab", "ababab"],
                &["ab", "abababab", "aba"],
            ),
            ("x{2}|^$", &["axxb", ""], &["x", "xax"]),
            ("^[^+-]", &["ok"], &["+", "-", ""]),
            ("^(?:a|b(c|d)*)e", &["ae", "be", "bcdce"], &["ace", "e"]),
            (
                "error.*code",
                &["error: code", "an errorcode"],
                &["code error"],
            ),
        ] {
            for text in yes {
                assert!(is_match(pattern, text.as_bytes()), "{pattern} {text}");
            }
            for text in no {
                assert!(!is_match(pattern, text.as_bytes()), "{pattern} {text}");
            }
        }
    }

    /// On an unconstrained byte, the condition says which values match.
    #[test]
    fn unknown_bytes_are_decided_by_a_condition() {
        let mut arena = Arena::new();
        let array = arena.array(0, "m", 1);
        let unknown = arena.read(array, 0);
        let letter = arena.constant(8, u64::from(b'A'));
        let pattern = Pattern::parse("^A(B|C+)$").expect("a pattern");
        let matches = pattern.matches(&mut arena, &[letter, unknown]);
        let mut solver = Solver::new(SolverConfig::default()).expect("a solver");
        for byte in 0..=u8::MAX {
            let value = arena.constant(8, u64::from(byte));
            let is_value = arena.eq(unknown, value);
            let both = arena.and(matches, is_value);
            let verdict = solver.check(&mut arena, &Constraints::new(), &Model::new(), both);
            let is_sat = matches!(verdict, Verdict::Sat(_));
            assert_eq!(is_sat, byte == b'B' || byte == b'C', "{byte}");
        }
    }
}
