//! Inputs of a client with which it may send a message of a class: conditions that guide the
//! exploration of a client that was cut off.

use everett_engine::StateView;
use everett_expr::codec::{self, DecodeError};
use everett_expr::{Arena, ExprId};
use everett_solver::Verdict;
use std::collections::BTreeSet;

use crate::layout::Layout;
use crate::predicate::{Encoded, Message, StoredPath};

/// Different terms of a byte, beyond which nothing is said about it.
const MOST_TERMS: usize = 16;

/// A condition on the inputs of a client: with them its message belongs to a class, if it makes each
/// byte of it as on some path that was explored. Other paths may make them in other ways, so what
/// contradicts the condition may still send a message of the class.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Pin {
    terms: Vec<u8>,
}

impl Pin {
    /// The condition for a class, as far as these messages of a client tell: those of the same
    /// length, or all if there is none. Bytes that are masked can be anything, and so can those
    /// that are constants in all messages: other paths may have others. `None` if nothing is said.
    pub fn of(
        class: &StoredPath,
        sent: &BTreeSet<Encoded>,
        layout: &Layout,
    ) -> Result<Option<Pin>, DecodeError> {
        let mut arena = Arena::new();
        let message = Message::of(&mut arena, class.length);
        let mut terms = made_of(&mut arena, sent, class.length)?;
        let masked = masked_anywhere(layout, class.length);
        let mut conditions = class.decode(&mut arena, message)?;
        let before = conditions.len();
        for (at, terms) in terms.iter_mut().enumerate() {
            let is_constant = |term: &ExprId| arena.as_const(*term).is_some();
            if masked[at] || terms.len() > MOST_TERMS || terms.iter().all(is_constant) {
                continue;
            }
            let byte = arena.read(message.array, at as u32);
            let is_made: Vec<ExprId> = terms.iter().map(|term| arena.eq(byte, *term)).collect();
            conditions.push(arena.any(&is_made));
        }
        let is_pinned = conditions.len() > before;
        Ok(is_pinned.then(|| Pin {
            terms: codec::encode(&arena, &conditions),
        }))
    }

    /// Whether a state's inputs can be so; `true` if that is not known.
    pub(crate) fn is_possible(&self, view: &mut StateView<'_, '_>) -> bool {
        let Ok(terms) = codec::decode(view.arena(), &self.terms) else {
            return true;
        };
        let condition = view.arena().all(&terms);
        view.check(condition) != Verdict::Unsat
    }
}

/// What each byte of a message is made of: the different terms of messages of this length, or of all
/// messages if there is none.
fn made_of(
    arena: &mut Arena,
    sent: &BTreeSet<Encoded>,
    length: u32,
) -> Result<Vec<Vec<ExprId>>, DecodeError> {
    let mut all: Vec<Vec<ExprId>> = vec![Vec::new(); length as usize];
    let has_length = sent.iter().any(|one| one.length == length);
    for one in sent
        .iter()
        .filter(|one| !has_length || one.length == length)
    {
        for (terms, term) in all.iter_mut().zip(one.terms(arena)?) {
            if terms.len() <= MOST_TERMS && !terms.contains(&term) {
                terms.push(term);
            }
        }
    }
    Ok(all)
}

/// Which bytes of messages are masked in some of them.
fn masked_anywhere(layout: &Layout, length: u32) -> Vec<bool> {
    let mut all = vec![false; length as usize];
    for shape in layout.shapes(length).iter().flatten() {
        for (masked, of_shape) in all.iter_mut().zip(&shape.masked) {
            *masked |= of_shape;
        }
    }
    all
}
