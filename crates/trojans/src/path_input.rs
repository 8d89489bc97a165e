//! Values of the other inputs with which a server path accepts a message.

use everett_expr::{Arena, ExprId, Variable};
use everett_solver::Model;
use std::collections::{BTreeMap, BTreeSet};

use crate::predicate::Message;

/// An input of a host, with the values of some of its bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathInput {
    /// The host.
    pub owner: String,
    /// The name of the input.
    pub name: String,
    /// The index among the inputs of the host.
    pub ordinal: u32,
    /// The size in bytes.
    pub size: u32,
    /// The known values, by offset.
    pub bytes: BTreeMap<u32, u8>,
}

impl PathInput {
    /// Writes the known values into the bytes of the input.
    pub fn set(&self, bytes: &mut [u8]) {
        for (at, value) in &self.bytes {
            if let Some(byte) = bytes.get_mut(*at as usize) {
                *byte = *value;
            }
        }
    }

    /// Returns the values that a model gives to the inputs of a path, except the message.
    pub(crate) fn of(
        arena: &mut Arena,
        model: &Model,
        path: &[ExprId],
        message: Message,
    ) -> Vec<PathInput> {
        let mut variables: BTreeSet<Variable> = BTreeSet::new();
        for term in path {
            variables.extend(arena.support(*term).variables());
        }
        let mut all: BTreeMap<(String, u32), PathInput> = BTreeMap::new();
        for variable in variables {
            let info = arena.array_info(variable.array);
            let name = info.name.strip_prefix("server/").unwrap_or(&info.name);
            let Some((owner, name)) = name.split_once(':') else {
                continue;
            };
            if variable.array == message.array {
                continue;
            }
            let bytes = model.bytes(variable.array, info.size);
            let of = all.entry((owner.to_owned(), info.ordinal));
            let input = of.or_insert_with(|| PathInput {
                owner: owner.to_owned(),
                name: name.to_owned(),
                ordinal: info.ordinal,
                size: info.size,
                bytes: BTreeMap::new(),
            });
            input
                .bytes
                .insert(variable.index, bytes[variable.index as usize]);
        }
        all.into_values().collect()
    }
}
