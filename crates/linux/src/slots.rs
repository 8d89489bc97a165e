//! A table with small integer keys. Cloning is O(1); clones share
//! entries until one of them changes.

use triomphe::Arc;

/// A table with small integer keys; free keys are reused, lowest first.
#[derive(Clone, Debug)]
pub struct Slots<T> {
    entries: Arc<Vec<Option<Arc<T>>>>,
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots {
            entries: Arc::new(Vec::new()),
        }
    }
}

impl<T: Clone> Slots<T> {
    /// Inserts a value under the lowest free key.
    pub fn insert(&mut self, thing: T) -> u32 {
        let entries = Arc::make_mut(&mut self.entries);
        let index = entries.iter().position(Option::is_none).unwrap_or_else(|| {
            entries.push(None);
            entries.len() - 1
        });
        entries[index] = Some(Arc::new(thing));
        index as u32
    }

    /// The value under a key.
    pub fn get(&self, number: u32) -> Option<&T> {
        self.entries.get(number as usize)?.as_deref()
    }

    /// The value under a key, for changing it.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        let entry = Arc::make_mut(&mut self.entries).get_mut(number as usize)?;
        entry.as_mut().map(Arc::make_mut)
    }

    /// Removes a value.
    pub fn remove(&mut self, number: u32) {
        if self.get(number).is_some() {
            Arc::make_mut(&mut self.entries)[number as usize] = None;
        }
    }

    /// All values, by key.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let entries = (0u32..).zip(self.entries.iter());
        entries.filter_map(|(number, entry)| Some((number, entry.as_deref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_part_ways_and_numbers_come_again() {
        let mut slots = Slots::default();
        let (a, b) = (slots.insert('a'), slots.insert('b'));
        let clone = slots.clone();
        slots.remove(a);
        *slots.get_mut(b).unwrap() = 'B';
        assert_eq!(slots.insert('c'), a);
        assert_eq!(slots.iter().collect::<Vec<_>>(), [(0, &'c'), (1, &'B')]);
        assert_eq!(clone.iter().collect::<Vec<_>>(), [(0, &'a'), (1, &'b')]);
    }
}
