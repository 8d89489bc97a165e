//! An append-only list whose copies share their common prefix: a path may have thousands of inputs,
//! and every fork copies the list.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// Number of items of a block. A write copies at most one block and the list of blocks.
pub const BLOCK: usize = 16;

/// A growing list. A clone is O(1).
#[derive(Clone)]
pub struct SharedList<T> {
    /// The full blocks, of `BLOCK` items each.
    full: Arc<Vec<Arc<Vec<T>>>>,
    /// The last block, with fewer items.
    last: Arc<Vec<T>>,
}

impl<T> SharedList<T> {
    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.full.len() * BLOCK + self.last.len()
    }

    /// Returns whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the item at a position.
    pub fn get(&self, at: usize) -> Option<&T> {
        self.full
            .get(at / BLOCK)
            .unwrap_or(&self.last)
            .get(at.checked_sub(self.first_of_block(at))?)
    }

    fn first_of_block(&self, at: usize) -> usize {
        (at / BLOCK).min(self.full.len()) * BLOCK
    }

    /// Returns all items.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.blocks().flat_map(|block| block.iter())
    }

    /// Returns the blocks that copies share; all but the last have `BLOCK` items.
    pub fn blocks(&self) -> impl Iterator<Item = &Arc<Vec<T>>> {
        let last = (!self.last.is_empty()).then_some(&self.last);
        self.full.iter().chain(last)
    }

    /// Returns one of the blocks.
    pub fn block(&self, at: usize) -> Option<&Arc<Vec<T>>> {
        let last = (at == self.full.len() && !self.last.is_empty()).then_some(&self.last);
        self.full.get(at).or(last)
    }

    /// Creates a list from these blocks; `None` if they are not as [`SharedList::blocks`] returns
    /// them.
    pub fn from_blocks(mut blocks: Vec<Arc<Vec<T>>>) -> Option<SharedList<T>> {
        let last = match blocks.last() {
            Some(last) if last.len() < BLOCK => blocks.pop().unwrap_or_default(),
            _ => Arc::default(),
        };
        let are_full = blocks.iter().all(|block| block.len() == BLOCK);
        are_full.then(|| SharedList {
            full: Arc::new(blocks),
            last,
        })
    }
}

impl<T: Clone> SharedList<T> {
    /// Adds an item at the end.
    pub fn push(&mut self, item: T) {
        Arc::make_mut(&mut self.last).push(item);
        if self.last.len() == BLOCK {
            Arc::make_mut(&mut self.full).push(std::mem::take(&mut self.last));
        }
    }
}

impl<T> Default for SharedList<T> {
    fn default() -> Self {
        SharedList {
            full: Arc::default(),
            last: Arc::default(),
        }
    }
}

impl<T: Clone> FromIterator<T> for SharedList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut list = SharedList::default();
        for item in items {
            list.push(item);
        }
        list
    }
}

impl<T: PartialEq> PartialEq for SharedList<T> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<T: Eq> Eq for SharedList<T> {}

impl<T: fmt::Debug> fmt::Debug for SharedList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Serialize> Serialize for SharedList<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter())
    }
}

impl<'d, T: Clone + Deserialize<'d>> Deserialize<'d> for SharedList<T> {
    fn deserialize<D: Deserializer<'d>>(from: D) -> Result<Self, D::Error> {
        Ok(Vec::deserialize(from)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_all_lengths_are_what_was_pushed() {
        for len in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK, 5 * BLOCK + 7] {
            let list: SharedList<usize> = (0..len).collect();
            assert_eq!(list.len(), len);
            assert!(list.iter().copied().eq(0..len));
            assert!((0..len).all(|at| list.get(at) == Some(&at)));
            assert_eq!(list.get(len), None);
            assert_eq!(list.get(len + BLOCK), None);
            assert_eq!(list.get(usize::MAX), None);
            let json = serde_json::to_string(&list).expect("JSON");
            let plain: Vec<usize> = serde_json::from_str(&json).expect("a plain list");
            assert_eq!(plain.len(), len);
            assert_eq!(
                serde_json::from_str::<SharedList<usize>>(&json).ok(),
                Some(list.clone())
            );
            assert!((0..=len).map_while(|at| list.block(at)).eq(list.blocks()));
            let blocks = list.blocks().cloned().collect();
            assert_eq!(SharedList::from_blocks(blocks), Some(list));
        }
    }

    #[test]
    fn copies_share_all_but_what_was_pushed() {
        let one: SharedList<usize> = (0..10 * BLOCK + 3).collect();
        let mut other = one.clone();
        other.push(1000);
        assert_eq!(one.len() + 1, other.len());
        let pairs = one.blocks().zip(other.blocks());
        assert_eq!(pairs.filter(|(a, b)| Arc::ptr_eq(a, b)).count(), 10);
        assert_eq!(one.get(10 * BLOCK + 3), None);
    }

    #[test]
    fn blocks_that_no_list_has_are_refused() {
        let blocks = |sizes: &[usize]| sizes.iter().map(|size| Arc::new(vec![0; *size])).collect();
        assert!(SharedList::<u8>::from_blocks(blocks(&[BLOCK, 3, BLOCK])).is_none());
        assert!(SharedList::<u8>::from_blocks(blocks(&[BLOCK + 1])).is_none());
        assert!(SharedList::<u8>::from_blocks(blocks(&[3, 3])).is_none());
    }
}
