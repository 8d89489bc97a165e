//! Small persistent containers: cloning is O(1), writing copies one chunk and the list of chunks.
//!
//! Forked states share nearly everything, so both containers keep their cells in chunks behind `Arc`.

use everett_expr::{ArrayId, Variable};
use std::sync::Arc;

const BYTES_PER_CHUNK: u32 = 64;
const ITEMS_PER_CHUNK: usize = 32;

#[derive(Clone)]
struct ByteChunk<T> {
    array: ArrayId,
    number: u32,
    cells: Arc<[T; BYTES_PER_CHUNK as usize]>,
}

/// One value for each byte of the symbolic arrays; values not set are the default.
#[derive(Clone)]
pub struct ByteMap<T> {
    /// Sorted by array, then number.
    chunks: Arc<Vec<ByteChunk<T>>>,
}

impl<T> Default for ByteMap<T> {
    fn default() -> Self {
        ByteMap {
            chunks: Arc::default(),
        }
    }
}

impl<T: Copy + Default + PartialEq> ByteMap<T> {
    fn find(&self, array: ArrayId, number: u32) -> Result<usize, usize> {
        self.chunks
            .binary_search_by_key(&(array, number), |chunk| (chunk.array, chunk.number))
    }

    pub fn get(&self, variable: Variable) -> T {
        match self.find(variable.array, variable.index / BYTES_PER_CHUNK) {
            Ok(at) => self.chunks[at].cells[(variable.index % BYTES_PER_CHUNK) as usize],
            Err(_) => T::default(),
        }
    }

    pub fn set(&mut self, variable: Variable, value: T) {
        let number = variable.index / BYTES_PER_CHUNK;
        let offset = (variable.index % BYTES_PER_CHUNK) as usize;
        match self.find(variable.array, number) {
            Ok(at) if self.chunks[at].cells[offset] == value => {}
            Ok(at) => Arc::make_mut(&mut Arc::make_mut(&mut self.chunks)[at].cells)[offset] = value,
            Err(_) if value == T::default() => {}
            Err(at) => {
                let mut cells = [T::default(); BYTES_PER_CHUNK as usize];
                cells[offset] = value;
                let chunk = ByteChunk {
                    array: variable.array,
                    number,
                    cells: Arc::new(cells),
                };
                Arc::make_mut(&mut self.chunks).insert(at, chunk);
            }
        }
    }

    /// The cells that differ from the default, by array and index.
    pub fn iter(&self) -> impl Iterator<Item = (Variable, T)> + '_ {
        self.chunks.iter().flat_map(|chunk| {
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
        Arc::ptr_eq(&self.chunks, &other.chunks)
    }
}

/// A growing list.
#[derive(Clone)]
pub struct List<T> {
    /// All full but the last.
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
            Some(chunk) if chunk.len() < ITEMS_PER_CHUNK => Arc::make_mut(chunk).push(item),
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
