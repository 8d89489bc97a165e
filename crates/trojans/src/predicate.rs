//! Encoded terms of what a client sends and what a server accepts. They
//! outlive the search that found them.

use everett_expr::codec::{self, DecodeError};
use everett_expr::{Arena, ArrayId, ArrayInfo, ExprId, Variable};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};

use crate::layout::Layout;

/// A message that a client sends on a path: its bytes and the condition of the path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Encoded {
    /// Bytes of the message.
    pub length: u32,
    /// The client.
    pub client: String,
    /// The terms: bytes first, then conditions.
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

    /// Decodes it. Its inputs get names of their own, so that no other
    /// predicate and no server shares them.
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

/// What of messages is not masked, with the conditions of their paths. Two sets are
/// equal where clients send the same.
pub fn unmasked<'s>(
    sent: impl IntoIterator<Item = &'s Encoded>,
    layout: &Layout,
) -> Result<BTreeSet<Encoded>, DecodeError> {
    let mut arena = Arena::new();
    let mut all = BTreeSet::new();
    for encoded in sent {
        let (bytes, conditions) = encoded.decode(&mut arena, 0)?;
        let masked = layout.masked(encoded.length);
        let kept = bytes.iter().zip(masked).filter(|(_, masked)| !masked);
        let kept: Vec<ExprId> = kept.map(|(byte, _)| *byte).collect();
        all.insert(Encoded {
            length: encoded.length,
            ..Encoded::of(&arena, &encoded.client, &kept, &conditions)
        });
    }
    Ok(all)
}

/// The message that a server receives: an array of symbolic bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Its bytes.
    pub array: ArrayId,
    /// How many.
    pub length: u32,
}

/// The name of the message among arrays.
const MESSAGE: &str = "message";
/// No path has so many inputs.
const ORDINAL: u32 = u32::MAX;

impl Message {
    /// The message of a length.
    pub fn of(arena: &mut Arena, length: u32) -> Message {
        let array = arena.array(ORDINAL, MESSAGE, length.max(1));
        Message { array, length }
    }
}

/// The condition of a path of a server, over the message that it receives and
/// over other inputs of the server.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct StoredPath {
    /// Bytes of the message.
    pub length: u32,
    terms: Vec<u8>,
    /// The input that the message is: its ordinal and name.
    input: (u32, String),
}

impl StoredPath {
    /// Encodes conditions over this input, which the server receives as its message.
    pub fn of(arena: &Arena, input: &ArrayInfo, conditions: &[ExprId]) -> StoredPath {
        StoredPath {
            length: input.size,
            terms: codec::encode(arena, conditions),
            input: (input.ordinal, input.name.clone()),
        }
    }

    /// Decodes it; the input becomes the message.
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

/// Terms over other arrays.
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
