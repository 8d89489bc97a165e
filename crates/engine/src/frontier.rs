//! The states that are still to be explored, and the tree of forks that they hang on.

use crate::path::Path;
use crate::random::Random;
use crate::shelf::ShelfId;
use crate::state::State;

/// A state of the frontier. Numbers of states that ended are used again.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StateId(pub u32);

/// What is kept of a state.
pub enum Stored {
    /// All of it.
    Live(Box<State>),
    /// The way to make it again.
    Away(ShelfId),
    /// It is being executed.
    Running,
}

impl Stored {
    /// How it came to be, if that is in memory.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Stored::Live(state) => Some(&state.path),
            Stored::Away(_) | Stored::Running => None,
        }
    }
}

/// What searchers go by.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct StateInfo {
    /// Forks on its way.
    pub depth: u32,
    /// Segments to the nearest one that was never executed; `u32::MAX` if none can be reached.
    pub distance: u32,
    /// Instructions since it covered something new.
    pub since_new: u64,
    /// Faults injected on its way.
    pub faults: u32,
    /// Preemptions on its way.
    pub preemptions: u32,
}

struct Entry {
    stored: Stored,
    node: u32,
    info: StateInfo,
}

#[derive(Copy, Clone)]
struct Node {
    parent: u32,
    /// Two children of a fork, or `[state, LEAF]`.
    children: [u32; 2],
}

const NONE: u32 = u32::MAX;
const LEAF: u32 = u32::MAX - 1;

/// The states that are still to be explored.
pub struct Frontier {
    entries: Vec<Option<Entry>>,
    free_entries: Vec<u32>,
    nodes: Vec<Node>,
    free_nodes: Vec<u32>,
    root: u32,
    len: usize,
    away: usize,
}

impl Default for Frontier {
    fn default() -> Frontier {
        Frontier {
            entries: Vec::new(),
            free_entries: Vec::new(),
            nodes: Vec::new(),
            free_nodes: Vec::new(),
            root: NONE,
            len: 0,
            away: 0,
        }
    }
}

impl Frontier {
    /// How many states there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Nothing is left.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many of them are put away.
    pub fn away(&self) -> usize {
        self.away
    }

    fn new_node(&mut self, node: Node) -> u32 {
        match self.free_nodes.pop() {
            Some(index) => {
                self.nodes[index as usize] = node;
                index
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        }
    }

    fn new_entry(&mut self, stored: Stored, node: u32, info: StateInfo) -> StateId {
        self.len += 1;
        if matches!(stored, Stored::Away(_)) {
            self.away += 1;
        }
        let entry = Some(Entry { stored, node, info });
        match self.free_entries.pop() {
            Some(index) => {
                self.entries[index as usize] = entry;
                StateId(index)
            }
            None => {
                self.entries.push(entry);
                StateId(self.entries.len() as u32 - 1)
            }
        }
    }

    /// Adds a state that is no child of another one here: beside all that is there.
    pub fn add_root(&mut self, stored: Stored, info: StateInfo) -> StateId {
        let (id, leaf) = self.new_leaf(stored, info);
        self.add_top(leaf);
        id
    }

    /// Adds states that were put away, as if they had forked evenly from one.
    pub fn add_roots(&mut self, places: Vec<ShelfId>) -> Vec<StateId> {
        let mut ids = Vec::with_capacity(places.len());
        let mut level = Vec::with_capacity(places.len());
        for place in places {
            let (id, leaf) = self.new_leaf(Stored::Away(place), StateInfo::default());
            ids.push(id);
            level.push(leaf);
        }
        while level.len() > 1 {
            // Two states that are left over at the end would come before all others.
            let turn = level.len() % 2;
            let mut next: Vec<u32> = level.drain(..turn).collect();
            let pairs = level.chunks_exact(2);
            next.extend(pairs.map(|pair| self.join(pair[0], pair[1])));
            level = next;
        }
        level.into_iter().for_each(|top| self.add_top(top));
        ids
    }

    fn new_leaf(&mut self, stored: Stored, info: StateInfo) -> (StateId, u32) {
        let leaf = self.new_node(Node {
            parent: NONE,
            children: [NONE, LEAF],
        });
        let id = self.new_entry(stored, leaf, info);
        self.nodes[leaf as usize].children[0] = id.0;
        (id, leaf)
    }

    fn join(&mut self, one: u32, other: u32) -> u32 {
        let top = self.new_node(Node {
            parent: NONE,
            children: [one, other],
        });
        self.nodes[one as usize].parent = top;
        self.nodes[other as usize].parent = top;
        top
    }

    fn add_top(&mut self, node: u32) {
        self.root = match self.root {
            NONE => node,
            old => self.join(old, node),
        };
    }

    /// Adds the second child of a fork of `parent`, which goes on as the first.
    pub fn add_child(&mut self, parent: StateId, stored: Stored, info: StateInfo) -> StateId {
        let Some(node) = self.entry(parent).map(|entry| entry.node) else {
            return self.add_root(stored, info);
        };
        let first = self.new_node(Node {
            parent: node,
            children: [parent.0, LEAF],
        });
        let second = self.new_node(Node {
            parent: node,
            children: [NONE, LEAF],
        });
        let id = self.new_entry(stored, second, info);
        self.nodes[second as usize].children[0] = id.0;
        self.nodes[node as usize].children = [first, second];
        if let Some(entry) = self.entry_mut(parent) {
            entry.node = first;
        }
        id
    }

    fn entry(&self, id: StateId) -> Option<&Entry> {
        self.entries.get(id.0 as usize)?.as_ref()
    }

    fn entry_mut(&mut self, id: StateId) -> Option<&mut Entry> {
        self.entries.get_mut(id.0 as usize)?.as_mut()
    }

    /// What searchers go by.
    pub fn info(&self, id: StateId) -> StateInfo {
        self.entry(id)
            .map_or_else(StateInfo::default, |entry| entry.info)
    }

    /// Renews what searchers go by.
    pub fn set_info(&mut self, id: StateId, info: StateInfo) {
        if let Some(entry) = self.entry_mut(id) {
            entry.info = info;
        }
    }

    /// Takes a state out for execution; its place is kept.
    pub fn take(&mut self, id: StateId) -> Option<Stored> {
        let entry = self.entry_mut(id)?;
        let stored = std::mem::replace(&mut entry.stored, Stored::Running);
        if matches!(stored, Stored::Away(_)) {
            self.away -= 1;
        }
        Some(stored)
    }

    /// A state, where it is.
    pub fn get(&self, id: StateId) -> Option<&Stored> {
        let entry = self.entries.get(id.0 as usize)?;
        entry.as_ref().map(|entry| &entry.stored)
    }

    /// Puts a state back.
    pub fn put(&mut self, id: StateId, stored: Stored) {
        if matches!(stored, Stored::Away(_)) {
            self.away += 1;
        }
        if let Some(entry) = self.entry_mut(id) {
            entry.stored = stored;
        }
    }

    /// Removes a state that has ended; its fork is contracted.
    pub fn remove(&mut self, id: StateId) {
        let Some(entry) = self.entries.get_mut(id.0 as usize).and_then(Option::take) else {
            return;
        };
        self.len -= 1;
        if matches!(entry.stored, Stored::Away(_)) {
            self.away -= 1;
        }
        self.free_entries.push(id.0);
        let leaf = entry.node;
        let parent = self.nodes[leaf as usize].parent;
        self.free_nodes.push(leaf);
        if parent == NONE {
            self.root = NONE;
            return;
        }
        let children = self.nodes[parent as usize].children;
        let sibling = if children[0] == leaf {
            children[1]
        } else {
            children[0]
        };
        let above = self.nodes[parent as usize].parent;
        self.free_nodes.push(parent);
        self.nodes[sibling as usize].parent = above;
        if above == NONE {
            self.root = sibling;
        } else {
            let slots = &mut self.nodes[above as usize].children;
            let slot = usize::from(slots[0] != parent);
            slots[slot] = sibling;
        }
    }

    /// The leaf at the end of a random walk from the root.
    pub fn random_leaf(&self, random: &mut Random) -> Option<StateId> {
        if self.root == NONE {
            return None;
        }
        let mut node = self.root;
        let (mut bits, mut left) = (0, 0);
        loop {
            let children = self.nodes[node as usize].children;
            if children[1] == LEAF {
                return Some(StateId(children[0]));
            }
            if left == 0 {
                (bits, left) = (random.next_u64(), 64);
            }
            node = children[(bits & 1) as usize];
            bits >>= 1;
            left -= 1;
        }
    }

    /// All states by number.
    pub fn iter(&self) -> impl Iterator<Item = (StateId, &Stored)> {
        self.iter_from(StateId(0))
    }

    /// The same, beginning with the state of this number.
    pub fn iter_from(&self, first: StateId) -> impl Iterator<Item = (StateId, &Stored)> {
        let entries = self.entries.iter().enumerate().skip(first.0 as usize);
        entries.filter_map(|(at, entry)| Some((StateId(at as u32), &entry.as_ref()?.stored)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shelf_id(halvings: u32) -> ShelfId {
        serde_json::from_value(serde_json::json!({"offset": 0, "len": 0, "halvings": halvings}))
            .unwrap()
    }

    #[test]
    fn states_that_come_together_are_found_alike_often() {
        const STATES: u32 = 32;
        let mut frontier = Frontier::default();
        let ids = frontier.add_roots((0..STATES).map(shelf_id).collect());
        assert_eq!((frontier.len(), frontier.away()), (32, 32));
        let mut random = Random::new(1);
        let mut found = vec![0; STATES as usize];
        for _ in 0..STATES * 100 {
            let id = frontier.random_leaf(&mut random).unwrap();
            found[id.0 as usize] += 1;
        }
        assert!(
            found.iter().all(|times| (20..=250).contains(times)),
            "{found:?}"
        );
        for (number, id) in ids.into_iter().enumerate() {
            assert!(
                matches!(frontier.take(id), Some(Stored::Away(at)) if at == shelf_id(number as u32))
            );
            frontier.remove(id);
        }
        assert!(frontier.is_empty());
        assert_eq!(frontier.random_leaf(&mut random), None);
    }
}
