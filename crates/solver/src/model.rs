//! Models: concrete values of the symbolic arrays.

use crate::persistent::ByteMap;
use everett_expr::{ArrayId, Assignment, Variable};
use std::fmt;

/// A value for every symbolic byte. Cheap to clone; bytes never set are 0.
#[derive(Clone, Default)]
pub struct Model {
    bytes: ByteMap<u8>,
}

impl Model {
    /// Creates the model in which all bytes are 0.
    pub fn new() -> Model {
        Model::default()
    }

    /// Returns the value of a byte.
    pub fn get(&self, array: ArrayId, index: u32) -> u8 {
        self.bytes.get(Variable { array, index })
    }

    /// Sets the value of a byte.
    pub fn set(&mut self, array: ArrayId, index: u32, value: u8) {
        self.bytes.set(Variable { array, index }, value);
    }

    /// Returns a copy of this model with some bytes changed.
    pub fn with(&self, changes: impl IntoIterator<Item = (ArrayId, u32, u8)>) -> Model {
        let mut model = self.clone();
        for (array, index, value) in changes {
            model.set(array, index, value);
        }
        model
    }

    /// Returns the first `size` bytes of an array.
    pub fn bytes(&self, array: ArrayId, size: u32) -> Vec<u8> {
        self.bytes.first(array, size)
    }

    /// Returns whether two arrays always share their storage.
    pub fn share_storage(one: ArrayId, other: ArrayId) -> bool {
        ByteMap::<u8>::share_storage(one, other)
    }

    /// Returns an identifier of the storage of an array's bytes. While two models are alive, equal
    /// identifiers mean that they agree on the array.
    pub fn storage_of(&self, array: ArrayId) -> usize {
        self.bytes.storage_of(array)
    }

    /// Returns the non-zero bytes, by array and index.
    pub fn iter(&self) -> impl Iterator<Item = (ArrayId, u32, u8)> + '_ {
        self.bytes
            .iter()
            .map(|(variable, value)| (variable.array, variable.index, value))
    }

    pub(crate) fn value(&self, variable: Variable) -> u8 {
        self.bytes.get(variable)
    }

    pub(crate) fn same_storage(&self, other: &Model) -> bool {
        self.bytes.same_storage(&other.bytes)
    }
}

impl Assignment for Model {
    fn byte(&self, array: ArrayId, index: u32) -> u8 {
        self.get(array, index)
    }
}

impl PartialEq for Model {
    fn eq(&self, other: &Model) -> bool {
        self.same_storage(other) || self.iter().eq(other.iter())
    }
}

impl Eq for Model {}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self
            .iter()
            .map(|(array, index, value)| ((array.index(), index), value));
        f.debug_map().entries(entries).finish()
    }
}
