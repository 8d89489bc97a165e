//! Encoded client predicates and server paths. They outlive the exploration that found them,
//! because they hold no terms of its arena.

use everett_expr::codec::{self, DecodeError};
use everett_expr::{Arena, ArrayId, ArrayInfo, ExprId, Variable};
use everett_solver::{Constraints, Model, Solver, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};

use crate::domain::domains;
use crate::layout::Layout;

/// A client predicate: the bytes of a message that a client sends on a path, and the path
/// condition.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Encoded {
    /// The length of the message in bytes.
    pub length: u32,
    /// The name of the client.
    pub client: String,
    /// The encoded terms: bytes first, then conditions.
    terms: Vec<u8>,
}

impl Encoded {
    /// Encodes a message.
    pub fn of(arena: &Arena, client: &str, bytes: &[ExprId], conditions: &[ExprId]) -> Encoded {
        let roots: Vec<ExprId> = bytes.iter().chain(conditions).copied().collect();
        Encoded {
            length: bytes.len() as u32,
            client: client.to_owned(),
            terms: codec::encode(arena, &roots),
        }
    }

    /// Returns the bytes, over inputs with the client's own names.
    pub(crate) fn terms(&self, arena: &mut Arena) -> Result<Vec<ExprId>, DecodeError> {
        let mut terms = codec::decode(arena, &self.terms)?;
        terms.truncate(self.length as usize);
        Ok(terms)
    }

    /// Decodes bytes and conditions. The inputs get unique names, so that no other predicate and no
    /// server shares them.
    pub(crate) fn decode(
        &self,
        arena: &mut Arena,
        number: usize,
    ) -> Result<(Vec<ExprId>, Vec<ExprId>), DecodeError> {
        let terms = codec::decode(arena, &self.terms)?;
        let terms = renamed(arena, &terms, |arena, info| {
            arena.array(info.ordinal, &format!("{number}/{}", info.name), info.size)
        });
        let (bytes, conditions) = terms.split_at(self.length as usize);
        Ok((bytes.to_vec(), conditions.to_vec()))
    }
}

/// Substitutes inputs that the conditions fix to one value. Where a path has decided a length, this
/// removes what the client wrote for other lengths.
pub(crate) fn pinned(arena: &mut Arena, bytes: &[ExprId], conditions: &[ExprId]) -> Vec<ExprId> {
    let mut inputs: BTreeSet<Variable> = BTreeSet::new();
    for condition in conditions {
        if let [input] = arena.support(*condition).variables() {
            inputs.insert(*input);
        }
    }
    let inputs: Vec<Variable> = inputs.into_iter().collect();
    let domains = domains(arena, &inputs, conditions);
    let mut values: HashMap<ExprId, ExprId> = HashMap::new();
    for (input, domain) in inputs.iter().zip(&domains) {
        if let [value] = domain[..] {
            let read = arena.read(input.array, input.index);
            values.insert(read, arena.constant(8, u64::from(value)));
        }
    }
    let bytes = bytes.iter();
    bytes.map(|byte| arena.substitute(*byte, &values)).collect()
}

/// Returns the unmasked bytes of messages, with their path conditions. Two sets are equal if the
/// clients send the same messages.
pub fn unmasked<'s>(
    sent: impl IntoIterator<Item = &'s Encoded>,
    layout: &Layout,
    solver: &mut Solver,
) -> Result<BTreeSet<Encoded>, DecodeError> {
    let mut arena = Arena::new();
    let mut all = BTreeSet::new();
    for encoded in sent {
        let (bytes, conditions) = encoded.decode(&mut arena, 0)?;
        // If there are too many shapes, the whole message is compared.
        let shapes = layout.shapes(encoded.length).unwrap_or_default();
        let bytes = match shapes.len() > 1 {
            true => pinned(&mut arena, &bytes, &conditions),
            false => bytes,
        };
        for shape in &shapes {
            let kept = bytes.iter().zip(&shape.masked);
            let kept = kept.filter(|(_, masked)| !**masked);
            let kept: Vec<ExprId> = kept.map(|(byte, _)| *byte).collect();
            let of_shape = shape.conditions(&mut arena, &bytes);
            let conditions = [&conditions[..], &of_shape].concat();
            if shapes.len() > 1 && !can_hold(&mut arena, solver, &conditions) {
                continue;
            }
            all.insert(Encoded {
                length: encoded.length,
                ..Encoded::of(&arena, &encoded.client, &kept, &conditions)
            });
        }
        if shapes.is_empty() {
            all.insert(encoded.clone());
        }
    }
    Ok(all)
}

/// Returns whether conditions can hold together; `true` if that is not known.
fn can_hold(arena: &mut Arena, solver: &mut Solver, conditions: &[ExprId]) -> bool {
    let (mut constraints, mut model) = (Constraints::new(), Model::new());
    for condition in conditions {
        match solver.check(arena, &constraints, &model, *condition) {
            Verdict::Sat(found) => model = found,
            Verdict::Unsat => return false,
            Verdict::Unknown(_) => return true,
        }
        constraints.add(arena, *condition);
    }
    true
}

/// The message that a server receives: an array of symbolic bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// The array of its bytes.
    pub array: ArrayId,
    /// The length in bytes.
    pub length: u32,
}

/// The name of the message's array.
const MESSAGE: &str = "message";
/// The ordinal of the message's array. No path has that many inputs.
const ORDINAL: u32 = u32::MAX;

impl Message {
    /// Creates the message of a length.
    pub fn of(arena: &mut Arena, length: u32) -> Message {
        let array = arena.array(ORDINAL, MESSAGE, length.max(1));
        Message { array, length }
    }
}

/// The condition of a server path, over the received message and over other inputs of the server.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct StoredPath {
    /// The length of the message in bytes.
    pub length: u32,
    terms: Vec<u8>,
    /// The input that holds the message: its ordinal and name.
    input: (u32, String),
}

impl StoredPath {
    /// Encodes conditions. `input` holds the message that the server receives.
    pub fn of(arena: &Arena, input: &ArrayInfo, conditions: &[ExprId]) -> StoredPath {
        StoredPath {
            length: input.size,
            terms: codec::encode(arena, conditions),
            input: (input.ordinal, input.name.clone()),
        }
    }

    /// Decodes the conditions; the input becomes the message.
    pub(crate) fn decode(
        &self,
        arena: &mut Arena,
        message: Message,
    ) -> Result<Vec<ExprId>, DecodeError> {
        let terms = codec::decode(arena, &self.terms)?;
        Ok(renamed(arena, &terms, |arena, info| {
            match info.ordinal == self.input.0 && info.name == self.input.1 {
                true => message.array,
                false => arena.array(info.ordinal, &format!("server/{}", info.name), info.size),
            }
        }))
    }
}

/// Replaces the arrays that terms read.
fn renamed(
    arena: &mut Arena,
    terms: &[ExprId],
    mut name: impl FnMut(&mut Arena, &ArrayInfo) -> ArrayId,
) -> Vec<ExprId> {
    let mut variables: BTreeSet<Variable> = BTreeSet::new();
    for term in terms {
        variables.extend(arena.support(*term).variables());
    }
    let mut map: HashMap<ExprId, ExprId> = HashMap::new();
    for variable in variables {
        let info = arena.array_info(variable.array).clone();
        let array = name(arena, &info);
        let (old, new) = (
            arena.read(variable.array, variable.index),
            arena.read(array, variable.index),
        );
        map.insert(old, new);
    }
    terms
        .iter()
        .map(|term| arena.substitute(*term, &map))
        .collect()
}
