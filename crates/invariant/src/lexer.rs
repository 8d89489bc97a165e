//! The lexer: splits a text into words, numbers, strings and signs.

use crate::source::{SourceError, Span};

/// A token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Token {
    Word(String),
    Integer(i64),
    /// A number with an adjacent unit, as in `10ms`.
    Quantity(i64, String),
    Text(Vec<u8>),
    Sign(&'static str),
    End,
}

impl Token {
    /// Returns a description for messages.
    pub fn describe(&self) -> String {
        match self {
            Token::Word(word) => format!("`{word}`"),
            Token::Integer(value) => format!("`{value}`"),
            Token::Quantity(value, unit) => format!("`{value}{unit}`"),
            Token::Text(_) => "a string".to_owned(),
            Token::Sign(sign) => format!("`{sign}`"),
            Token::End => "the end of the text".to_owned(),
        }
    }
}

/// All signs, longer ones first.
const SIGNS: [&str; 35] = [
    "=>", "==", "!=", "<=", ">=", "&&", "||", "<<", ">>", "->", "::", "(", ")", "[", "]", "{", "}",
    ",", ";", ":", ".", "?", "!", "=", "<", ">", "+", "-", "*", "/", "%", "&", "|", "^", "~",
];

struct Lexer<'a> {
    source: &'a str,
    at: usize,
}

/// Returns all tokens of a text; the last one is `End`.
pub(crate) fn tokens(source: &str) -> Result<Vec<(Token, Span)>, SourceError> {
    let mut lexer = Lexer { source, at: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blanks()?;
        let start = lexer.at;
        let token = lexer.token()?;
        let last = token == Token::End;
        tokens.push((token, lexer.since(start)));
        if last {
            return Ok(tokens);
        }
    }
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.source[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn since(&self, start: usize) -> Span {
        Span {
            start,
            end: self.at,
        }
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> String {
        let rest = self.rest();
        let length = rest.find(|c| !accept(c)).unwrap_or(rest.len());
        let taken = rest[..length].to_owned();
        self.at += length;
        taken
    }

    fn skip_blanks(&mut self) -> Result<(), SourceError> {
        loop {
            self.take_while(char::is_whitespace);
            if self.rest().starts_with("//") {
                self.take_while(|c| c != '\n');
            } else if self.rest().starts_with("/*") {
                let Some(length) = self.rest().find("*/") else {
                    let span = Span {
                        start: self.at,
                        end: self.at + 2,
                    };
                    return Err(SourceError::new(span, "this comment has no end `*/`"));
                };
                self.at += length + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn token(&mut self) -> Result<Token, SourceError> {
        let Some(first) = self.peek() else {
            return Ok(Token::End);
        };
        if first.is_ascii_digit() {
            return self.number();
        }
        if is_word(first) {
            return Ok(Token::Word(self.take_while(is_word)));
        }
        if first == '"' {
            return self.text();
        }
        let sign = SIGNS.iter().find(|sign| self.rest().starts_with(**sign));
        if let Some(sign) = sign {
            self.at += sign.len();
            return Ok(Token::Sign(sign));
        }
        let start = self.at;
        self.at += first.len_utf8();
        let message = format!("{first:?} has no meaning here");
        Err(SourceError::new(self.since(start), message))
    }

    fn number(&mut self) -> Result<Token, SourceError> {
        let start = self.at;
        let hexadecimal = self.rest().starts_with("0x");
        let (radix, digits) = if hexadecimal {
            self.at += 2;
            (16, self.take_while(|c| c.is_ascii_hexdigit() || c == '_'))
        } else {
            (10, self.take_while(|c| c.is_ascii_digit() || c == '_'))
        };
        let digits = digits.replace('_', "");
        let unit = self.take_while(is_word);
        if digits.is_empty() || (hexadecimal && !unit.is_empty()) {
            return Err(SourceError::new(self.since(start), "this is not a number"));
        }
        let Ok(value) = i64::from_str_radix(&digits, radix) else {
            let message = "this number does not fit in 64 bits with a sign";
            return Err(SourceError::new(self.since(start), message));
        };
        Ok(match unit.is_empty() {
            true => Token::Integer(value),
            false => Token::Quantity(value, unit),
        })
    }

    fn text(&mut self) -> Result<Token, SourceError> {
        let start = self.at;
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            match self.peek() {
                None | Some('\n') => {
                    return Err(SourceError::new(
                        self.since(start),
                        "this string has no closing `\"` on its line",
                    ));
                }
                Some('"') => {
                    self.at += 1;
                    return Ok(Token::Text(bytes));
                }
                Some('\\') => bytes.push(self.escape()?),
                Some(other) => {
                    self.at += other.len_utf8();
                    bytes.extend(other.encode_utf8(&mut [0; 4]).bytes());
                }
            }
        }
    }

    fn escape(&mut self) -> Result<u8, SourceError> {
        let start = self.at;
        self.at += 1;
        let letter = self.peek();
        self.at += letter.map_or(0, char::len_utf8);
        match letter {
            Some('n') => Ok(b'\n'),
            Some('r') => Ok(b'\r'),
            Some('t') => Ok(b'\t'),
            Some('0') => Ok(0),
            Some('\\') => Ok(b'\\'),
            Some('"') => Ok(b'"'),
            Some('x') => {
                let digits = self.rest().get(..2).map(str::to_owned);
                let byte = digits.filter(|text| text.bytes().all(|c| c.is_ascii_hexdigit()));
                let byte = byte.and_then(|text| u8::from_str_radix(&text, 16).ok());
                let message = "two hexadecimal digits must follow `\\x`";
                let byte = byte.ok_or_else(|| SourceError::new(self.since(start), message))?;
                self.at += 2;
                Ok(byte)
            }
            _ => Err(SourceError::new(
                self.since(start),
                "there is no such escape; there are \\n \\r \\t \\0 \\\\ \\\" and \\xHH",
            )),
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> Vec<Token> {
        let tokens = tokens(source).expect("tokens");
        tokens.into_iter().map(|(token, _)| token).collect()
    }

    #[test]
    fn words_numbers_strings_and_signs() {
        let word = |text: &str| Token::Word(text.to_owned());
        assert_eq!(
            kinds("a1 /* x */ 0x1F 1_000 10ms \"a\\x41\\n\" => = // end\n=="),
            [
                word("a1"),
                Token::Integer(31),
                Token::Integer(1000),
                Token::Quantity(10, "ms".to_owned()),
                Token::Text(b"aA\n".to_vec()),
                Token::Sign("=>"),
                Token::Sign("="),
                Token::Sign("=="),
                Token::End,
            ]
        );
    }

    #[test]
    fn mistakes_have_their_place() {
        let cases = [
            ("a $", 2, "no meaning"),
            ("\"ab", 0, "closing"),
            ("/* x", 0, "no end"),
            ("9223372036854775808", 0, "64 bits"),
            ("0x", 0, "not a number"),
            ("\"\\q\"", 1, "escape"),
            ("\"\\x4\"", 1, "hexadecimal"),
            ("\"\\x+1\"", 1, "hexadecimal"),
        ];
        for (source, start, part) in cases {
            let mistake = tokens(source).expect_err(source);
            assert_eq!(mistake.span.start, start, "{source}");
            assert!(mistake.message.contains(part), "{}", mistake.message);
        }
    }
}
