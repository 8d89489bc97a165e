//! The expression parser, by operator precedence.

use crate::lexer::Token;
use crate::parser::Parser;
use crate::source::{SourceError, Span};
use crate::syntax::{Expr, ExprKind, Type};

/// Maximum height of an expression tree. It bounds the stack of everything that walks the tree.
const MAX_HEIGHT: u32 = 100;

/// Operators by precedence, weakest first.
const OPERATORS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["==", "!="],
    &["<", "<=", ">", ">="],
    &["|"],
    &["^"],
    &["&"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl Parser {
    /// Parses an expression of any kind.
    pub fn expression(&mut self) -> Result<Expr, SourceError> {
        self.nested(|parser| {
            let lambda = matches!(parser.peek(), Token::Word(_))
                && *parser.peek_second() == Token::Sign("=>");
            if lambda {
                let parameter = parser.name("the parameter of a function")?;
                parser.advance();
                let body = Box::new(parser.expression()?);
                let span = parameter.span.to(body.span);
                return node(ExprKind::Lambda { parameter, body }, span);
            }
            let condition = parser.implication()?;
            if !parser.accept("?") {
                return Ok(condition);
            }
            let yes = parser.expression()?;
            parser.expect(":", "between the two values of `?`")?;
            let no = parser.expression()?;
            let span = condition.span.to(no.span);
            let kind = ExprKind::Choose(Box::new(condition), Box::new(yes), Box::new(no));
            node(kind, span)
        })
    }

    /// Parses an implication: `a implies b implies c` is `a implies (b implies c)`.
    fn implication(&mut self) -> Result<Expr, SourceError> {
        let left = self.operators(0)?;
        if !self.is_word("implies") {
            return Ok(left);
        }
        self.advance();
        let right = self.nested(Parser::implication)?;
        binary("implies", left, right)
    }

    /// Parses operators of at least this precedence.
    fn operators(&mut self, weakest: usize) -> Result<Expr, SourceError> {
        let mut left = self.unary()?;
        loop {
            let Some((level, operator)) = self.operator() else {
                return Ok(left);
            };
            if level < weakest {
                return Ok(left);
            }
            self.advance();
            let right = self.nested(|parser| parser.operators(level + 1))?;
            left = binary(operator, left, right)?;
        }
    }

    fn operator(&self) -> Option<(usize, &'static str)> {
        let Token::Sign(sign) = self.peek() else {
            return None;
        };
        let level = OPERATORS.iter().position(|level| level.contains(sign))?;
        Some((level, sign))
    }

    fn unary(&mut self) -> Result<Expr, SourceError> {
        let start = self.span();
        if self.accept("!") {
            let operand = self.nested(Parser::unary)?;
            let span = start.to(operand.span);
            return node(ExprKind::Not(Box::new(operand)), span);
        }
        if self.accept("-") {
            let operand = self.nested(Parser::unary)?;
            let span = start.to(operand.span);
            return node(ExprKind::Negate(Box::new(operand)), span);
        }
        self.postfix()
    }

    fn postfix(&mut self) -> Result<Expr, SourceError> {
        let mut object = self.primary()?;
        loop {
            let start = object.span;
            if self.accept(".") {
                let name = self.any_word("the name of an operation after `.`")?;
                self.expect("(", "after the name of an operation")?;
                let arguments = self.list(")", "an argument")?;
                let span = start.to(self.previous());
                let kind = ExprKind::Method {
                    object: Box::new(object),
                    name,
                    arguments,
                };
                object = node(kind, span)?;
            } else if self.accept("[") {
                let index = self.expression()?;
                let end = self.expect("]", "after the index")?;
                let kind = ExprKind::Index(Box::new(object), Box::new(index));
                object = node(kind, start.to(end))?;
            } else {
                return Ok(object);
            }
        }
    }

    /// Parses comma-separated expressions up to a closing sign.
    fn list(&mut self, close: &str, what: &str) -> Result<Vec<Expr>, SourceError> {
        let mut items = Vec::new();
        if self.accept(close) {
            return Ok(items);
        }
        loop {
            items.push(self.expression()?);
            if self.accept(close) {
                return Ok(items);
            }
            self.expect(",", &format!("or `{close}` after {what}"))?;
        }
    }

    fn primary(&mut self) -> Result<Expr, SourceError> {
        let span = self.span();
        let kind = match self.peek().clone() {
            Token::Integer(value) => ExprKind::Int(value),
            Token::Text(bytes) => ExprKind::Text(bytes),
            Token::Word(word) => match word.as_str() {
                "true" => ExprKind::Bool(true),
                "false" => ExprKind::Bool(false),
                "sys" => ExprKind::Name(word),
                _ => return self.word(),
            },
            Token::Sign("(") => {
                self.advance();
                let mut inner = self.expression()?;
                let end = self.expect(")", "after the expression")?;
                inner.span = span.to(end);
                return Ok(inner);
            }
            _ => return Err(self.unexpected("a value")),
        };
        self.advance();
        node(kind, span)
    }

    /// Parses an array of a type, a call or a name.
    fn word(&mut self) -> Result<Expr, SourceError> {
        let start = self.span();
        if let Some(kind) = self.type_word() {
            self.advance();
            return self.array(start, kind);
        }
        let name = self.name("a value")?;
        if !self.accept("(") {
            return node(ExprKind::Name(name.text), start);
        }
        let arguments = self.list(")", "an argument")?;
        let span = start.to(self.previous());
        node(ExprKind::Call { name, arguments }, span)
    }

    /// Parses an array: `int[1, 2]`; `int[]` is empty; `int[][int[1]]` has arrays as elements.
    fn array(&mut self, start: Span, mut element: Type) -> Result<Expr, SourceError> {
        if !self.is_sign("[") {
            return Err(self.unexpected("`[` and the elements of an array after the type"));
        }
        let mut pairs = 0;
        while self.is_sign("[") && *self.peek_second() == Token::Sign("]") {
            self.advance();
            self.advance();
            pairs += 1;
        }
        if pairs > MAX_HEIGHT {
            return Err(SourceError::new(
                start.to(self.previous()),
                "this is nested too deep",
            ));
        }
        let filled = self.accept("[");
        let items = match filled {
            true => self.list("]", "an element")?,
            false => Vec::new(),
        };
        // Without elements the last pair of brackets is the empty array itself.
        let inner = if filled { pairs } else { pairs - 1 };
        for _ in 0..inner {
            element = element.array();
        }
        node(
            ExprKind::Array { element, items },
            start.to(self.previous()),
        )
    }
}

fn binary(operator: &'static str, left: Expr, right: Expr) -> Result<Expr, SourceError> {
    let span = left.span.to(right.span);
    let kind = ExprKind::Binary(operator, Box::new(left), Box::new(right));
    node(kind, span)
}

/// Creates a node unless its tree is too high.
fn node(kind: ExprKind, span: Span) -> Result<Expr, SourceError> {
    use ExprKind::*;
    let one = |a: &Expr| a.height;
    let many = |items: &[Expr]| items.iter().map(one).max().unwrap_or(0);
    let below = match &kind {
        Bool(_) | Int(_) | Text(_) | Name(_) => 0,
        Array { items, .. } => many(items),
        Not(a) | Negate(a) => one(a),
        Binary(_, a, b) | Index(a, b) => one(a).max(one(b)),
        Choose(a, b, c) => one(a).max(one(b)).max(one(c)),
        Call { arguments, .. } => many(arguments),
        Method {
            object, arguments, ..
        } => one(object).max(many(arguments)),
        Lambda { body, .. } => one(body),
    };
    if below >= MAX_HEIGHT {
        return Err(SourceError::new(
            span,
            "this expression is too large: give its parts names",
        ));
    }
    Ok(Expr {
        kind,
        span,
        height: below + 1,
    })
}
