//! Minvariant, the language of invariants over all nodes of a world: a parser with located errors,
//! and an evaluator on data whose bytes are known or terms.
//!
//! This crate knows nothing of worlds except what a [`View`] exposes, and calls no solver: the
//! verdict is a term. `docs/invariants.md` describes the language.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod arrays;
mod bytes;
mod check;
mod code;
mod evaluate;
mod expressions;
mod lexer;
mod operations;
mod parser;
mod path;
mod source;
mod syntax;
mod terms;
mod value;
mod view;

pub use evaluate::{EvalError, EvalErrorKind, Failure, Verdict, evaluate};
pub use path::{FieldPath, FieldStep};
pub use source::{ParseError, SourceLocation, Span};
pub use syntax::When;
pub use terms::Byte;
pub use view::{Exposed, View};

use check::Collect;
use code::{FunctionId, Program};
use source::SourceError;
use std::sync::Arc;

/// The invariants of a file, in order.
#[derive(Debug)]
pub struct Invariants {
    all: Vec<Invariant>,
}

/// One invariant, with the functions of its file.
#[derive(Debug)]
pub struct Invariant {
    name: String,
    when: Vec<When>,
    says_when: bool,
    span: Span,
    function: FunctionId,
    collect: Option<Collect>,
    program: Arc<Program>,
}

/// Parses a file of invariants and checks names and types.
pub fn parse(source: &str) -> Result<Invariants, ParseError> {
    read(source).map_err(|mistake| ParseError::new(source, mistake.span, mistake.message))
}

fn read(source: &str) -> Result<Invariants, SourceError> {
    let file = parser::file(source)?;
    let checked = check::check(source, &file)?;
    let program = Arc::new(checked.program);
    let pairs = file.invariants.into_iter().zip(checked.invariants);
    let all = pairs.map(|(item, (function, collect))| Invariant {
        name: item.function.name.text,
        says_when: !item.when.is_empty(),
        when: match item.when.is_empty() {
            true => vec![When::OnChange],
            false => item.when,
        },
        span: item.span,
        function,
        collect,
        program: Arc::clone(&program),
    });
    Ok(Invariants { all: all.collect() })
}

impl Invariants {
    /// Returns all invariants.
    pub fn iter(&self) -> std::slice::Iter<'_, Invariant> {
        self.all.iter()
    }

    /// Finds an invariant by name.
    pub fn get(&self, name: &str) -> Option<&Invariant> {
        self.iter().find(|invariant| invariant.name == name)
    }

    /// Sets when to evaluate the invariants that do not specify it.
    pub fn set_default_times(&mut self, when: &[When]) {
        for invariant in self.all.iter_mut().filter(|one| !one.says_when) {
            invariant.when = when.to_vec();
        }
    }

    /// Returns all times at which an invariant is evaluated.
    pub fn times(&self) -> impl Iterator<Item = u64> + '_ {
        let when = self.iter().flat_map(Invariant::when);
        when.filter_map(|when| match when {
            When::At { time_ns } => Some(*time_ns),
            _ => None,
        })
    }

    /// Returns the number of invariants.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns whether there are no invariants.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

impl<'a> IntoIterator for &'a Invariants {
    type Item = &'a Invariant;
    type IntoIter = std::slice::Iter<'a, Invariant>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Invariant {
    /// Returns the name of the invariant.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns when the invariant is evaluated; `OnChange` by default.
    pub fn when(&self) -> &[When] {
        &self.when
    }

    /// Returns the span of the invariant in the text, from its annotations to its closing brace.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Returns the location of the invariant's start.
    pub fn place(&self) -> SourceLocation {
        SourceLocation::of(&self.program.source, self.span)
    }
}
