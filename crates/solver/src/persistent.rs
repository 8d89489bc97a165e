//! Small persistent containers: a clone is O(1), a write copies one chunk and the path to it.
//!
//! Forked states share nearly everything, so both containers keep their cells in chunks behind
//! `Arc`.

use everett_expr::{ArrayId, Variable};
use std::sync::Arc;

const BYTES_PER_CHUNK: u32 = 64;
const ARRAYS_PER_LEAF: usize = 16;
const ITEMS_PER_CHUNK: usize = 32;

#[derive(Clone)]
struct ByteChunk<T> {
    array: ArrayId,
    number: u32,
    cells: Arc<[T; BYTES_PER_CHUNK as usize]>,
}

/// The chunks of adjacent arrays.
#[derive(Clone)]
struct Leaf<T> {
    /// Index of the leaf: the array index divided by the number of arrays per leaf.
    number: usize,
    /// The chunks, sorted by array, then number.
    chunks: Vec<ByteChunk<T>>,
}

/// A value for each byte of the symbolic arrays; values not set are the default.
///
/// A path may have thousands of arrays, so a write copies the list of leaves and one leaf, not a
/// list of all arrays.
#[derive(Clone)]
pub struct ByteMap<T> {
    /// The leaves, sorted by number.
    leaves: Arc<Vec<Arc<Leaf<T>>>>,
}

impl<T> Default for ByteMap<T> {
    fn default() -> Self {
        ByteMap {
            leaves: Arc::default(),
        }
    }
}

impl<T> ByteMap<T> {
    fn find_leaf(&self, array: ArrayId) -> Result<usize, usize> {
        let number = array.index() / ARRAYS_PER_LEAF;
        // Usually there are no gaps.
        match self.leaves.get(number) {
            Some(leaf) if leaf.number == number => Ok(number),
            _ => self
                .leaves
                .binary_search_by_key(&number, |leaf| leaf.number),
        }
    }

    /// Returns whether two arrays always share their storage.
    pub fn share_storage(one: ArrayId, other: ArrayId) -> bool {
        one.index() / ARRAYS_PER_LEAF == other.index() / ARRAYS_PER_LEAF
    }

    /// Returns an identifier of the storage of an array's values. While two maps are alive, equal
    /// identifiers mean that they agree on the array.
    pub fn storage_of(&self, array: ArrayId) -> usize {
        match self.find_leaf(array) {
            Ok(at) => Arc::as_ptr(&self.leaves[at]) as usize,
            Err(_) => 0,
        }
    }
}

impl<T> Leaf<T> {
    fn find(&self, array: ArrayId, number: u32) -> Result<usize, usize> {
        // Usually each array of the leaf has one chunk.
        let usual = array.index() % ARRAYS_PER_LEAF;
        if let Some(chunk) = self.chunks.get(usual)
            && (chunk.array, chunk.number) == (array, number)
        {
            return Ok(usual);
        }
        self.chunks
            .binary_search_by_key(&(array, number), |chunk| (chunk.array, chunk.number))
    }
}

impl<T: Copy + Default + PartialEq> ByteMap<T> {
    pub fn get(&self, variable: Variable) -> T {
        let Ok(leaf) = self.find_leaf(variable.array) else {
            return T::default();
        };
        let leaf = &self.leaves[leaf];
        match leaf.find(variable.array, variable.index / BYTES_PER_CHUNK) {
            Ok(at) => leaf.chunks[at].cells[(variable.index % BYTES_PER_CHUNK) as usize],
            Err(_) => T::default(),
        }
    }

    /// Returns the first cells of an array. This is much faster than to look up each of them.
    pub fn first(&self, array: ArrayId, size: u32) -> Vec<T> {
        let mut cells = vec![T::default(); size as usize];
        let Ok(leaf) = self.find_leaf(array) else {
            return cells;
        };
        let chunks = &self.leaves[leaf].chunks;
        let start = chunks.partition_point(|chunk| chunk.array < array);
        let own = chunks[start..]
            .iter()
            .take_while(|chunk| chunk.array == array);
        for chunk in own {
            let from = chunk.number as usize * BYTES_PER_CHUNK as usize;
            for (cell, value) in cells.iter_mut().skip(from).zip(chunk.cells.iter()) {
                *cell = *value;
            }
        }
        cells
    }

    pub fn set(&mut self, variable: Variable, value: T) {
        if self.get(variable) == value {
            return;
        }
        let number = variable.index / BYTES_PER_CHUNK;
        let offset = (variable.index % BYTES_PER_CHUNK) as usize;
        let found = self.find_leaf(variable.array);
        let leaves = Arc::make_mut(&mut self.leaves);
        let at = found.unwrap_or_else(|at| {
            let number = variable.array.index() / ARRAYS_PER_LEAF;
            let chunks = Vec::new();
            leaves.insert(at, Arc::new(Leaf { number, chunks }));
            at
        });
        let leaf = Arc::make_mut(&mut leaves[at]);
        match leaf.find(variable.array, number) {
            Ok(at) => Arc::make_mut(&mut leaf.chunks[at].cells)[offset] = value,
            Err(at) => {
                let mut cells = [T::default(); BYTES_PER_CHUNK as usize];
                cells[offset] = value;
                let chunk = ByteChunk {
                    array: variable.array,
                    number,
                    cells: Arc::new(cells),
                };
                leaf.chunks.insert(at, chunk);
            }
        }
    }

    /// Returns the cells that differ from the default, by array and index.
    pub fn iter(&self) -> impl Iterator<Item = (Variable, T)> + '_ {
        let chunks = self.leaves.iter().flat_map(|leaf| leaf.chunks.iter());
        chunks.flat_map(|chunk| {
            let first = chunk.number * BYTES_PER_CHUNK;
            chunk
                .cells
                .iter()
                .zip(first..)
                .filter_map(|(&value, index)| {
                    (value != T::default()).then_some((
                        Variable {
                            array: chunk.array,
                            index,
                        },
                        value,
                    ))
                })
        })
    }

    pub fn same_storage(&self, other: &ByteMap<T>) -> bool {
        Arc::ptr_eq(&self.leaves, &other.leaves)
    }
}

/// An append-only list.
#[derive(Clone)]
pub struct List<T> {
    /// The chunks; all are full except the last.
    chunks: Vec<Arc<Vec<T>>>,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        List { chunks: Vec::new() }
    }
}

impl<T: Clone> List<T> {
    pub fn len(&self) -> usize {
        let last = self.chunks.last().map_or(0, |chunk| chunk.len());
        self.chunks.len().saturating_sub(1) * ITEMS_PER_CHUNK + last
    }

    pub fn push(&mut self, item: T) {
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < ITEMS_PER_CHUNK => match Arc::get_mut(chunk) {
                Some(own) => own.push(item),
                None => {
                    let room = (chunk.len() + 4).min(ITEMS_PER_CHUNK);
                    let mut own = Vec::with_capacity(room);
                    own.extend_from_slice(chunk);
                    own.push(item);
                    *chunk = Arc::new(own);
                }
            },
            _ => self.chunks.push(Arc::new(vec![item])),
        }
    }

    pub fn get(&self, at: usize) -> Option<&T> {
        self.chunks
            .get(at / ITEMS_PER_CHUNK)?
            .get(at % ITEMS_PER_CHUNK)
    }

    pub fn set(&mut self, at: usize, item: T) {
        Arc::make_mut(&mut self.chunks[at / ITEMS_PER_CHUNK])[at % ITEMS_PER_CHUNK] = item;
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> + '_ {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everett_expr::Arena;

    #[test]
    fn maps_share_the_storage_of_what_is_the_same() {
        let mut arena = Arena::new();
        let arrays: Vec<_> = (0..100).map(|at| arena.array(at, "x", 200)).collect();
        let at = |array, index| Variable { array, index };
        let mut one = ByteMap::default();
        for array in arrays.iter().rev().step_by(3) {
            one.set(at(*array, 199), array.index() as u8 + 1);
        }
        let mut other = one.clone();
        other.set(at(arrays[50], 7), 9);
        other.set(at(arrays[51], 8), 0);
        assert_eq!(one.get(at(arrays[50], 7)), 0);
        assert_eq!(other.get(at(arrays[50], 7)), 9);
        assert_eq!(one.get(at(arrays[99], 199)), 100);
        assert_eq!((one.iter().count(), other.iter().count()), (34, 35));
        for (array, size) in [
            (arrays[50], 200),
            (arrays[50], 5),
            (arrays[99], 200),
            (arrays[1], 3),
        ] {
            let all: Vec<u8> = (0..size).map(|index| other.get(at(array, index))).collect();
            assert_eq!(other.first(array, size), all);
        }
        let arrays_of: Vec<_> = other.iter().map(|(variable, _)| variable.array).collect();
        assert!(arrays_of.is_sorted());
        let shared = |array: &ArrayId| one.storage_of(*array) == other.storage_of(*array);
        assert!(shared(&arrays[0]) && shared(&arrays[99]) && !shared(&arrays[50]));
        assert!(arrays.iter().filter(|array| !shared(array)).count() <= ARRAYS_PER_LEAF);
    }

    #[test]
    fn lists_share_until_written() {
        let mut one = List::default();
        for i in 0..100 {
            one.push(i);
        }
        let mut other = one.clone();
        other.set(40, 1000);
        other.push(100);
        assert_eq!((one.len(), other.len()), (100, 101));
        assert_eq!((one.get(40), other.get(40)), (Some(&40), Some(&1000)));
        assert_eq!(one.get(100), None);
        assert!(one.iter().copied().eq(0..100));
    }
}
