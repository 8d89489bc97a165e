//! The parser for files, functions and statements; `expressions` parses expressions. Recursive
//! descent with one token of lookahead.

use crate::lexer::{Token, tokens};
use crate::source::{SourceError, Span};
use crate::syntax::{File, Function, InvariantItem, Name, Parameter, Statement, Type, When};

/// Maximum nesting of blocks and expressions. It bounds the parser's stack.
const MAX_NESTING: usize = 64;

/// Words that cannot be names.
const RESERVED: [&str; 13] = [
    "bool",
    "int",
    "string",
    "data",
    "true",
    "false",
    "return",
    "if",
    "else",
    "for",
    "invariant",
    "sys",
    "implies",
];

pub(crate) struct Parser {
    tokens: Vec<(Token, Span)>,
    at: usize,
    nesting: usize,
}

/// Parses a whole file.
pub(crate) fn file(source: &str) -> Result<File, SourceError> {
    let mut parser = Parser::new(source)?;
    let mut file = File::default();
    while *parser.peek() != Token::End {
        parser.item(&mut file)?;
    }
    Ok(file)
}

impl Parser {
    pub fn new(source: &str) -> Result<Parser, SourceError> {
        Ok(Parser {
            tokens: tokens(source)?,
            at: 0,
            nesting: 0,
        })
    }

    // The last token is `End` and is never consumed.
    pub fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    pub fn peek_second(&self) -> &Token {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)].0
    }

    pub fn span(&self) -> Span {
        self.tokens[self.at].1
    }

    /// Returns the span of the last consumed token.
    pub fn previous(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].1
    }

    pub fn advance(&mut self) -> Span {
        let span = self.span();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        span
    }

    pub fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Token::Sign(found) if *found == sign)
    }

    pub fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Word(found) if found == word)
    }

    pub fn accept(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        if found {
            self.advance();
        }
        found
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }

    pub fn unexpected(&self, expected: &str) -> SourceError {
        let found = self.peek().describe();
        SourceError::new(self.span(), format!("expected {expected}, found {found}"))
    }

    /// Consumes a sign; `after` says in messages what it follows.
    pub fn expect(&mut self, sign: &str, after: &str) -> Result<Span, SourceError> {
        if self.is_sign(sign) {
            return Ok(self.advance());
        }
        let found = self.peek().describe();
        let message = format!("expected `{sign}` {after}, found {found}");
        // A sign missing at the end of a line is reported there, not at the start of the next line.
        let end = self.previous().end;
        let span = match sign {
            ";" if self.at > 0 => Span { start: end, end },
            _ => self.span(),
        };
        Err(SourceError::new(span, message))
    }

    /// Parses a name that is not reserved; `what` describes it in messages.
    pub fn name(&mut self, what: &str) -> Result<Name, SourceError> {
        let Token::Word(word) = self.peek() else {
            return Err(self.unexpected(what));
        };
        let text = word.clone();
        if RESERVED.contains(&text.as_str()) {
            let message = format!("expected {what}, but `{text}` is a word of the language");
            return Err(SourceError::new(self.span(), message));
        }
        let span = self.advance();
        Ok(Name { text, span })
    }

    /// Parses any word, even a reserved one: nothing else can follow a dot.
    pub fn any_word(&mut self, what: &str) -> Result<Name, SourceError> {
        let Token::Word(word) = self.peek() else {
            return Err(self.unexpected(what));
        };
        let text = word.clone();
        let span = self.advance();
        Ok(Name { text, span })
    }

    /// Returns the type that the current word names, if any.
    pub fn type_word(&self) -> Option<Type> {
        match self.peek() {
            Token::Word(word) => Type::named(word),
            _ => None,
        }
    }

    /// Counts one level of nesting around `read`.
    pub fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Parser) -> Result<T, SourceError>,
    ) -> Result<T, SourceError> {
        if self.nesting >= MAX_NESTING {
            return Err(SourceError::new(self.span(), "this is nested too deep"));
        }
        self.nesting += 1;
        let result = read(self);
        self.nesting -= 1;
        result
    }

    fn item(&mut self, file: &mut File) -> Result<(), SourceError> {
        if self.type_word().is_some() {
            let result = self.type_name("the type of a function")?;
            let name = self.name("the name of the function")?;
            file.functions.push(self.function(result, name)?);
            return Ok(());
        }
        let start = self.span();
        let when = self.annotations()?;
        if !self.is_word("invariant") {
            let expected = match when.is_empty() {
                true => {
                    "`invariant`, an annotation (`at end`, `at 5s`, `eventually`, `on change`) or the type of a function"
                }
                false => "`invariant` or `,` after the annotation",
            };
            return Err(self.unexpected(expected));
        }
        self.advance();
        let name = self.name("the name of the invariant")?;
        let parameters = self.parameters()?;
        let collect = match self.accept(":") {
            true => Some(self.collect()?),
            false => None,
        };
        let (body, end) = self.block("the body of the invariant")?;
        file.invariants.push(InvariantItem {
            when,
            function: Function {
                name,
                result: Type::Bool,
                parameters,
                body,
                end,
            },
            collect,
            span: start.to(end),
        });
        Ok(())
    }

    fn annotations(&mut self) -> Result<Vec<When>, SourceError> {
        let mut all = Vec::new();
        loop {
            let when = if self.accept_word("eventually") {
                When::Eventually
            } else if self.accept_word("on") {
                if !self.accept_word("change") {
                    return Err(self.unexpected("`change` after `on`"));
                }
                When::OnChange
            } else if self.accept_word("at") {
                self.time()?
            } else if all.is_empty() {
                return Ok(all);
            } else {
                return Err(self.unexpected("another annotation after `,`"));
            };
            all.push(when);
            if !self.accept(",") {
                return Ok(all);
            }
        }
    }

    fn time(&mut self) -> Result<When, SourceError> {
        if self.accept_word("end") {
            return Ok(When::AtEnd);
        }
        let Token::Quantity(number, unit) = self.peek().clone() else {
            return Err(self.unexpected("`end` or a time with its unit, as `5s` or `200ms`"));
        };
        let span = self.advance();
        let unit_ns = match unit.as_str() {
            "ns" => 1,
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "min" => 60_000_000_000,
            _ => {
                let message =
                    format!("`{unit}` is not a unit of time; there are ns, us, ms, s, min");
                return Err(SourceError::new(span, message));
            }
        };
        let time_ns = u64::try_from(number)
            .ok()
            .and_then(|n| n.checked_mul(unit_ns));
        let time_ns = time_ns.ok_or_else(|| SourceError::new(span, "this time is too long"))?;
        Ok(When::At { time_ns })
    }

    fn collect(&mut self) -> Result<[Name; 3], SourceError> {
        let nodes = self.name("the name of the function that gives the nodes")?;
        self.expect(",", "and the functions that give states and keys")?;
        let states = self.name("the name of the function that gives the states of a node")?;
        self.expect(",", "and the function that gives keys")?;
        let keys = self.name("the name of the function that gives the keys of a state")?;
        Ok([nodes, states, keys])
    }

    fn function(&mut self, result: Type, name: Name) -> Result<Function, SourceError> {
        let parameters = self.parameters()?;
        let (body, end) = self.block("the body of the function")?;
        Ok(Function {
            name,
            result,
            parameters,
            body,
            end,
        })
    }

    fn parameters(&mut self) -> Result<Vec<Parameter>, SourceError> {
        self.expect("(", "before the parameters")?;
        let mut parameters = Vec::new();
        if self.accept(")") {
            return Ok(parameters);
        }
        loop {
            let kind = self.type_name("the type of a parameter")?;
            let name = self.name("the name of the parameter")?;
            parameters.push(Parameter { kind, name });
            if self.accept(")") {
                return Ok(parameters);
            }
            self.expect(",", "or `)` after a parameter")?;
        }
    }

    pub fn type_name(&mut self, what: &str) -> Result<Type, SourceError> {
        let Some(mut kind) = self.type_word() else {
            return Err(self.unexpected(&format!(
                "{what} (bool, int, string, data, or arrays of them)"
            )));
        };
        self.advance();
        let mut depth = 0;
        while self.is_sign("[") {
            self.advance();
            self.expect("]", "after `[` of an array type")?;
            kind = kind.array();
            depth += 1;
            if depth > MAX_NESTING {
                return Err(SourceError::new(self.previous(), "this is nested too deep"));
            }
        }
        Ok(kind)
    }

    /// Parses statements in braces. Returns them and the span of the closing brace.
    fn block(&mut self, what: &str) -> Result<(Vec<Statement>, Span), SourceError> {
        self.expect("{", &format!("before {what}"))?;
        self.nested(|parser| {
            let mut body = Vec::new();
            while !parser.is_sign("}") {
                if *parser.peek() == Token::End {
                    return Err(parser.unexpected("`}`"));
                }
                body.push(parser.statement()?);
            }
            Ok((body, parser.advance()))
        })
    }

    fn statement(&mut self) -> Result<Statement, SourceError> {
        if self.accept_word("return") {
            let value = self.expression()?;
            self.expect(";", "after the value")?;
            return Ok(Statement::Return(value));
        }
        if self.accept_word("if") {
            return self.if_statement();
        }
        if self.accept_word("for") {
            return self.for_statement();
        }
        let declared = self.type_word().is_some();
        if declared {
            let kind = self.type_name("the type of a variable")?;
            let name = self.name("the name of the variable")?;
            let value = self.assigned()?;
            return Ok(Statement::Declare { kind, name, value });
        }
        if !matches!(self.peek(), Token::Word(_)) {
            return Err(
                self.unexpected("a statement (return, if, for, a declaration or an assignment)")
            );
        }
        let name = self.name("a statement")?;
        let value = self.assigned()?;
        Ok(Statement::Assign { name, value })
    }

    fn assigned(&mut self) -> Result<crate::syntax::Expr, SourceError> {
        self.expect("=", "after the name of a variable")?;
        let value = self.expression()?;
        self.expect(";", "after the value")?;
        Ok(value)
    }

    fn if_statement(&mut self) -> Result<Statement, SourceError> {
        self.expect("(", "after `if`")?;
        let condition = self.expression()?;
        self.expect(")", "after the condition")?;
        let (yes, _) = self.block("what is done if the condition holds")?;
        let mut no = Vec::new();
        if self.accept_word("else") {
            if self.accept_word("if") {
                no.push(self.nested(Parser::if_statement)?);
            } else {
                (no, _) = self.block("what is done else")?;
            }
        }
        Ok(Statement::If { condition, yes, no })
    }

    fn for_statement(&mut self) -> Result<Statement, SourceError> {
        self.expect("(", "after `for`")?;
        let kind = self.type_name("the type of the variable")?;
        let name = self.name("the name of the variable")?;
        self.expect(":", "before the array")?;
        let array = self.expression()?;
        self.expect(")", "after the array")?;
        let (body, _) = self.block("what is done for each element")?;
        Ok(Statement::For {
            kind,
            name,
            array,
            body,
        })
    }
}
