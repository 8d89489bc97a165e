//! Paths to watched data by source names: `server.table.count`, `queue[3]->next`.

use crate::lexer::Token;
use crate::parser::Parser;
use crate::source::{ParseError, SourceError};
use std::fmt;

/// A global variable and a path from it to a field. Another crate resolves it with debug
/// information.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FieldPath {
    /// The global variable, qualified by its scope if given: `function::name`.
    pub root: String,
    /// The steps from the variable.
    pub steps: Vec<FieldStep>,
}

/// One step of a path.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum FieldStep {
    /// `.name`: a field of a structure.
    Field(String),
    /// `->name`: a field of the structure behind a pointer.
    Pointed(String),
    /// `[index]`: an element of an array.
    Index(u64),
}

impl FieldPath {
    /// Parses a path.
    pub fn parse(text: &str) -> Result<FieldPath, ParseError> {
        let show = |mistake: SourceError| ParseError::new(text, mistake.span, mistake.message);
        path(text).map_err(show)
    }
}

fn path(text: &str) -> Result<FieldPath, SourceError> {
    let mut parser = Parser::new(text)?;
    let mut root = parser.any_word("the name of a global variable")?.text;
    while parser.accept("::") {
        let name = parser.any_word("a name after `::`")?;
        root = format!("{root}::{}", name.text);
    }
    let mut steps = Vec::new();
    loop {
        if parser.accept(".") {
            let name = parser.any_word("the name of a field after `.`")?;
            steps.push(FieldStep::Field(name.text));
        } else if parser.accept("->") {
            let name = parser.any_word("the name of a field after `->`")?;
            steps.push(FieldStep::Pointed(name.text));
        } else if parser.accept("[") {
            let Token::Integer(index) = *parser.peek() else {
                return Err(parser.unexpected("a number after `[`"));
            };
            parser.advance();
            parser.expect("]", "after the index")?;
            // Literals have no sign.
            steps.push(FieldStep::Index(index.unsigned_abs()));
        } else if *parser.peek() == Token::End {
            return Ok(FieldPath { root, steps });
        } else {
            return Err(parser.unexpected("`.`, `->`, `[` or the end of the path"));
        }
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.root)?;
        for step in &self.steps {
            match step {
                FieldStep::Field(name) => write!(f, ".{name}")?,
                FieldStep::Pointed(name) => write!(f, "->{name}")?,
                FieldStep::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_and_written() {
        for text in [
            "count",
            "server.table.count",
            "queue[3]->next.data[0][12]",
            "main::a::count.x",
        ] {
            let path = FieldPath::parse(text).expect(text);
            assert_eq!(path.to_string(), text);
        }
        let path = FieldPath::parse("a . b [ 0x10 ]").expect("blanks");
        assert_eq!(path.to_string(), "a.b[16]");
    }

    #[test]
    fn mistakes_show_their_place() {
        let cases = [
            ("", 1, "the name of a global variable"),
            ("a.", 3, "after `.`"),
            ("a[x]", 3, "a number"),
            ("a[-1]", 3, "a number"),
            ("a[1", 4, "`]`"),
            ("a b", 3, "`.`, `->`"),
            ("a$", 2, "no meaning"),
        ];
        for (text, column, part) in cases {
            let error = FieldPath::parse(text).expect_err(text);
            assert_eq!(error.place.column, column, "{error}");
            assert!(error.message.contains(part), "{error}");
        }
    }
}
