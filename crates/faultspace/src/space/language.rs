//! The parser of the fault space language of AFEX, extended with sets of one element, negative
//! numbers, quoted words, comments, steps, Gray code, holes and multiple faults. Errors have line
//! and column.

use super::values::{Interval, ranges};
use super::{Axis, Hole, Space, Subspace, Value, Values};

/// An error in the description of a space.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct SpaceError {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// The description of the error.
    pub message: String,
}

#[derive(Clone, PartialEq, Debug)]
enum Token {
    Word(String),
    Quoted(String),
    Number(i64),
    Mark(char),
    End,
}

impl Token {
    fn describe(&self) -> String {
        match self {
            Token::Word(word) => format!("`{word}`"),
            Token::Quoted(word) => format!("\"{word}\""),
            Token::Number(number) => format!("`{number}`"),
            Token::Mark(mark) => format!("`{mark}`"),
            Token::End => "the end".to_owned(),
        }
    }
}

/// Line and column.
type TextPosition = (usize, usize);

fn fail<T>((line, column): TextPosition, message: impl Into<String>) -> Result<T, SpaceError> {
    let message = message.into();
    Err(SpaceError {
        line,
        column,
        message,
    })
}

/// Characters that are tokens on their own.
const MARKS: &str = "{}[]<>(),:;";

fn tokens(text: &str) -> Result<Vec<(Token, TextPosition)>, SpaceError> {
    let mut tokens = Vec::new();
    let (mut line, mut column) = (1, 1);
    let mut rest = text.chars().peekable();
    let mut end = (1, 1);
    while let Some(first) = rest.next() {
        let place = (line, column);
        column += 1;
        if first == '\n' {
            (line, column) = (line + 1, 1);
        } else if first == '#' {
            while rest.next_if(|next| *next != '\n').is_some() {}
        } else if MARKS.contains(first) {
            tokens.push((Token::Mark(first), place));
        } else if first == '"' {
            let mut word = String::new();
            loop {
                column += 1;
                match rest.next() {
                    Some('\\') => {
                        column += 1;
                        word.extend(rest.next());
                    }
                    Some('"') => break,
                    None | Some('\n') => return fail(place, "this quoted word has no end"),
                    Some(other) => word.push(other),
                }
            }
            tokens.push((Token::Quoted(word), place));
        } else if first.is_alphanumeric() || "_-+".contains(first) {
            let mut word = String::from(first);
            let is_part = |next: &char| next.is_alphanumeric() || "_-./+".contains(*next);
            while let Some(next) = rest.next_if(is_part) {
                word.push(next);
                column += 1;
            }
            tokens.push((word_or_number(word, place)?, place));
        } else if !first.is_whitespace() {
            return fail(
                place,
                format!("`{first}` is not expected; words with it need quotes"),
            );
        }
        end = (line, column);
    }
    tokens.push((Token::End, end));
    Ok(tokens)
}

fn word_or_number(word: String, place: TextPosition) -> Result<Token, SpaceError> {
    if let Ok(number) = word.parse() {
        return Ok(Token::Number(number));
    }
    let digits = word.strip_prefix(['-', '+']).unwrap_or(&word);
    if digits.chars().all(|c| c.is_ascii_digit()) {
        return match digits.is_empty() {
            true => fail(place, format!("`{word}` is not a number")),
            false => fail(place, format!("{word} is too large; numbers have 64 bits")),
        };
    }
    if word.starts_with(['-', '+']) {
        return fail(
            place,
            format!("`{word}` is not a word; words that begin so need quotes"),
        );
    }
    Ok(Token::Word(word))
}

struct Parser {
    tokens: Vec<(Token, TextPosition)>,
    at: usize,
}

/// Parses a space.
pub(super) fn parse(text: &str) -> Result<Space, SpaceError> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
    };
    let mut subspaces = Vec::new();
    while *parser.peek() != Token::End {
        subspaces.push(parser.subspace()?);
    }
    if subspaces.is_empty() {
        return fail(parser.place(), "the space has no axis");
    }
    let too_large = || SpaceError {
        line: 1,
        column: 1,
        message: "the space has more than 2^62 points".to_owned(),
    };
    let space = Space::new(subspaces).ok_or_else(too_large)?;
    match space.size() {
        0 => fail((1, 1), "the space has no scenario: its holes leave nothing"),
        _ => Ok(space),
    }
}

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    fn place(&self) -> TextPosition {
        self.tokens[self.at].1
    }

    fn next(&mut self) -> (Token, TextPosition) {
        let token = self.tokens[self.at].clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn takes(&mut self, mark: char) -> bool {
        let is_it = *self.peek() == Token::Mark(mark);
        self.at += usize::from(is_it);
        is_it
    }

    fn expect(&mut self, mark: char, what: &str) -> Result<(), SpaceError> {
        match self.takes(mark) {
            true => Ok(()),
            false => fail(
                self.place(),
                format!("expected `{mark}` {what}, not {}", self.peek().describe()),
            ),
        }
    }

    /// Consumes a keyword: a word that is not the name of a parameter.
    fn takes_word(&mut self, keyword: &str) -> bool {
        let is_word = matches!(self.peek(), Token::Word(word) if word == keyword);
        let is_name = self
            .tokens
            .get(self.at + 1)
            .is_some_and(|next| next.0 == Token::Mark(':'));
        let is_it = is_word && !is_name;
        self.at += usize::from(is_it);
        is_it
    }

    fn subspace(&mut self) -> Result<Subspace, SpaceError> {
        let mut subspace = Subspace::default();
        let mut holes = Vec::new();
        let mut fault = 0;
        let begin = self.place();
        loop {
            if self.takes(';') {
                break;
            }
            if *self.peek() == Token::End {
                return fail(self.place(), "expected `;` after the subspace, not the end");
            }
            if self.takes_word("without") {
                holes.push(self.hole()?);
                continue;
            }
            if self.takes_word("and") {
                if !subspace.axes.iter().any(|axis| axis.fault == fault) {
                    return fail(self.place(), "there is no fault before this `and`");
                }
                fault += 1;
                continue;
            }
            let (token, place) = self.next();
            let Token::Word(name) = token else {
                let found = token.describe();
                return fail(place, format!("expected the name of an axis, not {found}"));
            };
            if !self.takes(':') {
                subspace.subtypes.push(name);
                continue;
            }
            let is_known = |axis: &Axis| axis.fault == fault && axis.name == name;
            if subspace.axes.iter().any(is_known) {
                let hint = "is a `;` missing before it?";
                return fail(
                    place,
                    format!("the subspace has an axis {name} already; {hint}"),
                );
            }
            let values = self.values()?;
            subspace.axes.push(Axis {
                fault,
                name,
                values,
            });
        }
        if subspace.axes.is_empty() {
            return fail(begin, "this subspace has no axis");
        }
        for hole in holes {
            subspace.holes.push(hole.resolve(&subspace)?);
        }
        Ok(subspace)
    }

    /// Parses `without ( NAME : VALUES ... )`.
    fn hole(&mut self) -> Result<UnresolvedHole, SpaceError> {
        self.expect('(', "after `without`")?;
        let mut sides = Vec::new();
        while !self.takes(')') {
            let (token, place) = self.next();
            let Token::Word(name) = token else {
                let found = token.describe();
                return fail(
                    place,
                    format!("expected the name of an axis or `)`, not {found}"),
                );
            };
            self.expect(':', "after the name of an axis")?;
            sides.push((name, place, self.values()?));
        }
        match sides.is_empty() {
            true => fail(self.place(), "a hole names at least one axis"),
            false => Ok(UnresolvedHole(sides)),
        }
    }

    fn values(&mut self) -> Result<Values, SpaceError> {
        let (token, place) = self.next();
        match token {
            Token::Mark('{') => self.set(),
            Token::Mark('[') => {
                let (first, last) = self.bounds(']')?;
                let step = self.step()?;
                let interval = interval(place, first, last, step)?;
                if !self.takes_word("gray") {
                    return Ok(Values::Numbers(interval));
                }
                match interval.count.is_power_of_two() {
                    true => Ok(Values::Gray(interval)),
                    false => fail(
                        place,
                        format!(
                            "a Gray code needs 2, 4, 8, ... numbers; these are {}",
                            interval.count
                        ),
                    ),
                }
            }
            Token::Mark('<') => {
                let (first, last) = self.bounds('>')?;
                let step = self.step()?;
                let interval = interval(place, first, last, step)?;
                match ranges(interval.count) {
                    Some(_) => Ok(Values::Ranges(interval)),
                    None => fail(place, "this interval has too many sub-intervals"),
                }
            }
            other => {
                let found = other.describe();
                let forms = "`{a, b}`, `[1, 9]` or `<1, 9>`";
                fail(place, format!("expected values, {forms}, not {found}"))
            }
        }
    }

    fn set(&mut self) -> Result<Values, SpaceError> {
        let mut values: Vec<Value> = Vec::new();
        loop {
            let (token, place) = self.next();
            let value = match token {
                Token::Word(word) | Token::Quoted(word) => Value::Word(word),
                Token::Number(number) => Value::Number(number),
                other => {
                    let found = other.describe();
                    return fail(place, format!("expected a value of the set, not {found}"));
                }
            };
            if values.contains(&value) {
                return fail(place, format!("{value} is in this set twice"));
            }
            values.push(value);
            if self.takes('}') {
                return Ok(Values::Set(values));
            }
            self.expect(',', "or `}` after a value")?;
        }
    }

    fn bounds(&mut self, close: char) -> Result<(i64, i64), SpaceError> {
        let first = self.number()?;
        self.expect(',', "between the ends of an interval")?;
        let last = self.number()?;
        self.expect(close, "after an interval")?;
        Ok((first, last))
    }

    fn number(&mut self) -> Result<i64, SpaceError> {
        match self.next() {
            (Token::Number(number), _) => Ok(number),
            (other, place) => fail(
                place,
                format!("expected a number, not {}", other.describe()),
            ),
        }
    }

    fn step(&mut self) -> Result<u64, SpaceError> {
        if !self.takes_word("step") {
            return Ok(1);
        }
        let place = self.place();
        match u64::try_from(self.number()?) {
            Ok(step) if step > 0 => Ok(step),
            _ => fail(place, "a step is at least 1"),
        }
    }
}

fn interval(place: TextPosition, first: i64, last: i64, step: u64) -> Result<Interval, SpaceError> {
    match Interval::new(first, last, step) {
        Some(interval) => Ok(interval),
        None => fail(place, format!("there is no number from {first} to {last}")),
    }
}

/// A hole as written: names, their places, and values.
struct UnresolvedHole(Vec<(String, TextPosition, Values)>);

impl UnresolvedHole {
    fn resolve(self, subspace: &Subspace) -> Result<Hole, SpaceError> {
        let mut sides: Vec<(usize, Values)> = Vec::new();
        for (name, place, values) in self.0 {
            let Some(axis) = subspace.axes.iter().position(|axis| axis.name == name) else {
                return fail(place, format!("the subspace has no axis {name}"));
            };
            if sides.iter().any(|(other, _)| *other == axis) {
                return fail(place, format!("this hole names {name} twice"));
            }
            sides.push((axis, values));
        }
        Ok(Hole { sides })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Scenario;

    /// Fig. 3.4, verbatim.
    const FIGURE: &str = "function : { malloc, calloc, realloc }\nerrno : { ENOMEM }\nretval : { 0 }\n\
                          callNumber : [ 1 , 100 ] ;\nfunction : { read }\nerrno : { EINTR }\n\
                          retVal : { -1 }\ncallNumber : [ 1 , 50 ] ;\n";

    fn error(text: &str) -> String {
        Space::parse(text).unwrap_err().to_string()
    }

    /// Counts the scenarios one by one.
    fn counted(space: &Space) -> u64 {
        let mut seen = std::collections::BTreeSet::new();
        for position in 0..space.positions() {
            let point = space.point(position);
            assert_eq!(space.position(&point), position);
            if space.is_scenario(&point) {
                let scenario = space.scenario(&point);
                assert!(
                    seen.insert(scenario.to_string()),
                    "{scenario} is there twice"
                );
                assert_eq!(space.find(&scenario), Some(point));
            }
        }
        seen.len() as u64
    }

    #[test]
    fn the_space_of_figure_3_4_parses_verbatim_and_has_350_points() {
        let space = Space::parse(FIGURE).unwrap();
        assert_eq!(space.size(), 350);
        assert_eq!(counted(&space), 350);
        let scenario =
            Scenario::parse("function malloc errno ENOMEM retval 0 callNumber 23").unwrap();
        let point = space.find(&scenario).unwrap();
        assert_eq!(space.scenario(&point), scenario);
        let other = Scenario::parse("function read errno EINTR retVal -1 callNumber 51").unwrap();
        assert_eq!(space.find(&other), None);
    }

    #[test]
    fn all_forms_of_values_are_read() {
        let text = "disk mask : [0,4095] gray clients : [10,250] step 10 bad : [1,2]; # a comment\n\
                    net window : <1,50> name : { \"a b\", 3, x-1.c/2 } and step : { gray } gray : [-3,-1];";
        let space = Space::parse(text).unwrap();
        assert_eq!(space.subspaces()[0].subtypes, ["disk"]);
        assert_eq!(space.size(), 204_800 + 1275 * 3 * 3);
        assert_eq!(space.subspaces()[1].axes[3].fault, 1);
        let last = space
            .scenario(&space.point(space.positions() - 1))
            .to_string();
        assert_eq!(
            last,
            "subtype net window <50,50> name x-1.c/2 and step gray gray -1"
        );
    }

    #[test]
    fn holes_and_repetitions_do_not_count() {
        for (text, size) in [
            (
                "a : [1,10] b : [1,10] without ( a : [1,3] b : {1, 2} );",
                94,
            ),
            (
                "a : [1,10] b : [1,10] without (a : [1,3]) without (b : {1,2}) without (a : {3,77});",
                56,
            ),
            ("a : [1,10]; a : [5,14];", 14),
            ("a : [1,10] without (a : [5,6]); a : [5,14];", 14),
            (
                "a : [1,4] b : [1,4]; b : [3,6] a : [3,6] without (a : {6});",
                16 + 12 - 4,
            ),
            ("a : <1,5>; a : <3,8>; a : [1,5];", 15 + 21 - 6 + 5),
            ("x a : [1,5]; y a : [1,5]; a : [1,5];", 15),
        ] {
            let space = Space::parse(text).unwrap();
            assert_eq!(space.size(), size, "{text}");
            assert_eq!(counted(&space), size, "{text}");
        }
        let large = "a : [1,1000000000] b : [1,1000000000] without (a : {1, 2} b : [1,1000]);";
        assert_eq!(
            Space::parse(large).unwrap().size(),
            1_000_000_000_000_000_000 - 2000
        );
    }

    #[test]
    fn mistakes_are_told_with_their_places() {
        for (text, message) in [
            ("", "1:1: the space has no axis"),
            ("a : { }", "1:7: expected a value of the set, not `}`"),
            (
                "a : { x y }",
                "1:9: expected `,` or `}` after a value, not `y`",
            ),
            (
                "a : {x}\n  b : [5, 1];",
                "2:7: there is no number from 5 to 1",
            ),
            ("a : [1,]", "1:8: expected a number, not `]`"),
            (
                "a : [1,2",
                "1:9: expected `]` after an interval, not the end",
            ),
            ("a : {x, x}", "1:9: x is in this set twice"),
            (
                "a : {x} a : {y}",
                "1:9: the subspace has an axis a already; is a `;` missing before it?",
            ),
            (
                "a : {x}\n b : {y}\n",
                "3:1: expected `;` after the subspace, not the end",
            ),
            (
                "a : 5",
                "1:5: expected values, `{a, b}`, `[1, 9]` or `<1, 9>`, not `5`",
            ),
            (
                "a : [0,9] gray",
                "1:5: a Gray code needs 2, 4, 8, ... numbers; these are 10",
            ),
            ("a : [0,9] step 0", "1:16: a step is at least 1"),
            ("disk;", "1:1: this subspace has no axis"),
            (
                "a:{x} without (c : {1});",
                "1:16: the subspace has no axis c",
            ),
            (
                "a:{x} without (a : {x});",
                "1:1: the space has no scenario: its holes leave nothing",
            ),
            (
                "a : { ! }",
                "1:7: `!` is not expected; words with it need quotes",
            ),
            ("a : { \"x }", "1:7: this quoted word has no end"),
            (
                "a : [1,99999999999999999999]",
                "1:8: 99999999999999999999 is too large; numbers have 64 bits",
            ),
            (
                "a : [1,4000000000] b : [1,4000000000];",
                "1:1: the space has more than 2^62 points",
            ),
            ("{", "1:1: expected the name of an axis, not `{`"),
        ] {
            assert_eq!(error(text), message, "{text}");
        }
    }
}
