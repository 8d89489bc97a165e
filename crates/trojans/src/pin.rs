//! Pins: conditions on client inputs under which the client may send a message of a class of Trojan
//! messages. They guide the exploration of a client that was cut off.

use everett_engine::StateView;
use everett_expr::codec::{self, DecodeError};
use everett_expr::{Arena, ExprId};
use everett_solver::Verdict;
use std::collections::BTreeSet;

use crate::layout::Layout;
use crate::predicate::{Encoded, Message, StoredPath};

/// Maximum number of distinct terms for a byte; with more, the byte is unconstrained.
const MOST_TERMS: usize = 16;

/// A condition on the inputs of a client. Under it, the client sends a message of the class,
/// provided that it computes each byte as some explored path does. Other paths may compute bytes in
/// other ways, so inputs that contradict the condition may still give a message of the class.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Pin {
    terms: Vec<u8>,
}

impl Pin {
    /// Returns the condition for a class, derived from the client's messages of the same length, or
    /// from all if there are none. Masked bytes are unconstrained, and so are bytes that are
    /// constants in all messages, because other paths may send other constants. `None` if no byte
    /// is constrained.
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

    /// Returns whether a state's inputs can satisfy the condition; `true` if that is not known.
    pub(crate) fn is_possible(&self, view: &mut StateView<'_, '_>) -> bool {
        let Ok(terms) = codec::decode(view.arena(), &self.terms) else {
            return true;
        };
        let condition = view.arena().all(&terms);
        view.check(condition) != Verdict::Unsat
    }
}

/// Returns the distinct terms of each byte in messages of this length, or in all messages if there
/// are none.
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

/// Returns which bytes are masked in some shape of the message.
fn masked_anywhere(layout: &Layout, length: u32) -> Vec<bool> {
    let mut all = vec![false; length as usize];
    for shape in layout.shapes(length).iter().flatten() {
        for (masked, of_shape) in all.iter_mut().zip(&shape.masked) {
            *masked |= of_shape;
        }
    }
    all
}
