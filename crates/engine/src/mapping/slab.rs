//! Dense containers for the table: a slab, which reuses indices, and a map from
//! state ids, which are never reused.

use std::ops::{Index, IndexMut};

use super::MemberId;

/// Values by index. The index of a removed value is reused for the next one, so nothing may be
/// ordered by it.
#[derive(Clone, Debug)]
pub(super) struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// Adds a value and returns its index.
    pub fn insert(&mut self, value: T) -> u32 {
        if let Some(at) = self.free.pop() {
            self.entries[at as usize] = Some(value);
            return at;
        }
        self.entries.push(Some(value));
        self.entries.len() as u32 - 1
    }

    /// Removes the value at an index, and returns it.
    pub fn remove(&mut self, at: u32) -> Option<T> {
        let removed = self.entries.get_mut(at as usize)?.take();
        if removed.is_some() {
            self.free.push(at);
        }
        removed
    }

    /// Returns the value at an index, if there is one.
    pub fn get(&self, at: u32) -> Option<&T> {
        self.entries.get(at as usize)?.as_ref()
    }

    /// Returns indices and values, in the order of the indices.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let all = self.entries.iter().zip(0..);
        all.filter_map(|(entry, at)| Some((at, entry.as_ref()?)))
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, at: u32) -> &T {
        self.entries[at as usize].as_ref().expect("an index in use")
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, at: u32) -> &mut T {
        self.entries[at as usize].as_mut().expect("an index in use")
    }
}

/// Number of entries of a page of a [`MemberMap`].
const PAGE: usize = 32;

#[derive(Clone, Debug)]
struct Page<T> {
    entries: [Option<T>; PAGE],
    used: usize,
}

/// Values by state. Ids of states only grow, so the map is an array of pages: a lookup is two
/// loads, iteration is in the order of ids, and a page without states takes no memory.
#[derive(Clone, Debug)]
pub(super) struct MemberMap<T> {
    pages: Vec<Option<Box<Page<T>>>>,
}

impl<T> Default for MemberMap<T> {
    fn default() -> MemberMap<T> {
        MemberMap { pages: Vec::new() }
    }
}

/// Returns the page of a state, and its position in the page.
fn split(id: MemberId) -> (usize, usize) {
    (id.0 as usize / PAGE, id.0 as usize % PAGE)
}

impl<T> MemberMap<T> {
    /// Returns the value of a state.
    pub fn get(&self, id: MemberId) -> Option<&T> {
        let (page, at) = split(id);
        self.pages.get(page)?.as_ref()?.entries[at].as_ref()
    }

    /// Returns the value of a state, to change it.
    pub fn get_mut(&mut self, id: MemberId) -> Option<&mut T> {
        let (page, at) = split(id);
        self.pages.get_mut(page)?.as_mut()?.entries[at].as_mut()
    }

    /// Sets the value of a state, and returns the previous one.
    pub fn insert(&mut self, id: MemberId, value: T) -> Option<T> {
        let (page, at) = split(id);
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, || None);
        }
        let page = self.pages[page].get_or_insert_with(|| {
            Box::new(Page {
                entries: [const { None }; PAGE],
                used: 0,
            })
        });
        let before = page.entries[at].replace(value);
        if before.is_none() {
            page.used += 1;
        }
        before
    }

    /// Removes the value of a state, and returns it.
    pub fn remove(&mut self, id: MemberId) -> Option<T> {
        let (number, at) = split(id);
        let page = self.pages.get_mut(number)?.as_mut()?;
        let removed = page.entries[at].take()?;
        page.used -= 1;
        if page.used == 0 {
            self.pages[number] = None;
        }
        Some(removed)
    }

    /// Returns states and their values, in the order of ids.
    pub fn iter(&self) -> impl Iterator<Item = (MemberId, &T)> {
        let pages = self.pages.iter().zip(0u32..);
        let pages = pages.filter_map(|(page, number)| Some((page.as_ref()?, number)));
        pages.flat_map(|(page, number)| {
            let entries = page.entries.iter().zip(number * PAGE as u32..);
            entries.filter_map(|(entry, id)| Some((MemberId(id), entry.as_ref()?)))
        })
    }
}

impl<T> Index<MemberId> for MemberMap<T> {
    type Output = T;

    fn index(&self, id: MemberId) -> &T {
        self.get(id).expect("a state of the map")
    }
}

impl<T> IndexMut<MemberId> for MemberMap<T> {
    fn index_mut(&mut self, id: MemberId) -> &mut T {
        self.get_mut(id).expect("a state of the map")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slab_reuses_indices() {
        let mut slab = Slab::default();
        let indices = ["a", "b", "c"].map(|value| slab.insert(value));
        assert_eq!(indices, [0, 1, 2]);
        assert_eq!(slab.remove(1), Some("b"));
        assert_eq!((slab.remove(1), slab.get(1), slab.len()), (None, None, 2));
        assert_eq!(slab.insert("d"), 1);
        let all: Vec<_> = slab.iter().collect();
        assert_eq!(all, [(0, &"a"), (1, &"d"), (2, &"c")]);
    }

    #[test]
    fn a_map_gives_pages_back() {
        let mut map = MemberMap::default();
        for id in [70, 3, 400] {
            assert_eq!(map.insert(MemberId(id), id), None);
        }
        assert_eq!(map.insert(MemberId(3), 4), Some(3));
        assert_eq!(map.get(MemberId(4)), None);
        let ids: Vec<u32> = map.iter().map(|(id, _)| id.0).collect();
        assert_eq!(ids, [3, 70, 400]);
        assert_eq!(map.remove(MemberId(70)), Some(70));
        assert_eq!(map.remove(MemberId(70)), None);
        assert!(map.pages[2].is_none());
        map[MemberId(400)] += 1;
        assert_eq!(map[MemberId(400)], 401);
    }
}
