//! The frontier: the states that are still to be explored, and the tree of forks whose leaves they
//! are.

use everett_linux::ExposedData;
use smallvec::SmallVec;
use std::collections::HashSet;

use crate::history::HistoryDigest;
use crate::random::Random;
use crate::spill::SpillId;
use crate::state::{Identity, State};
use crate::weight::Weight;

pub use crate::mapping::MemberId as StateId;

/// Where a state of the frontier is.
pub enum Stored {
    /// In memory.
    Live(Box<State>),
    /// In the spill file.
    Spilled(Spilled),
    /// Taken out to be executed.
    Running,
}

/// A state in the spill file.
#[derive(Clone)]
pub struct Spilled {
    /// The position of the state in the spill file.
    pub at: SpillId,
    /// The data about a state of a world that the search needs while the state is not in memory.
    pub net: Option<Box<SpilledNet>>,
}

/// The data about a spilled state of a world that the search needs without rematerialising it.
#[derive(Clone)]
pub struct SpilledNet {
    /// The digest of the state's history.
    pub history: HistoryDigest,
    /// The key under which equal states are merged.
    pub identity: Identity,
    /// Whether the state was the first to execute some code.
    pub covered_new: bool,
    /// Whether the host is on, and its programs have not ended.
    pub is_waiting: bool,
    /// A digest of the answers that led to the state.
    pub answers: u64,
    /// The data that the host exposes; `None` if it is only known after the state is
    /// rematerialised.
    pub exposed: Option<ExposedData>,
}

impl Spilled {
    /// Creates the entry for a spilled state of a program.
    pub fn of_program(at: SpillId) -> Spilled {
        Spilled { at, net: None }
    }

    /// Creates the entry for a state that was just spilled.
    pub fn of(at: SpillId, state: &State) -> Spilled {
        let net = Spilled::net_of(state);
        Spilled { at, net }
    }

    /// Returns the data about a state of a world that the search needs while the state is not in
    /// memory.
    pub fn net_of(state: &State) -> Option<Box<SpilledNet>> {
        state.net.as_ref().map(|net| {
            Box::new(SpilledNet {
                history: net.history,
                identity: Identity::of(state),
                covered_new: state.covered_new,
                is_waiting: state.is_waiting(),
                answers: state.answers(),
                exposed: Some(net.sim.exposed(state.host.as_ref())),
            })
        })
    }
}

/// Properties of a state by which searchers order it.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct StateInfo {
    /// The number of forks on the state's path.
    pub depth: u32,
    /// The number of segments to the nearest one that was never executed; `u32::MAX` if none can be
    /// reached.
    pub distance: u32,
    /// The number of instructions since the state covered something new.
    pub since_new: u64,
    /// The number of faults injected on the state's path.
    pub faults: u32,
    /// The number of preemptions on the state's path.
    pub preemptions: u32,
}

/// The entry of a state.
struct FrontierEntry {
    /// Where the state is.
    stored: Stored,
    /// The leaf of the state in the tree of forks.
    leaf: u32,
    /// Properties by which searchers order the state.
    info: StateInfo,
    weight: Weight,
    /// How often each fault that is bounded per world has happened on the state's host.
    used: FaultUse,
}

/// A node of the tree of forks.
#[derive(Copy, Clone)]
struct ForkNode {
    parent: u32,
    /// The two children of a fork, or `[state, LEAF]` for a leaf.
    children: [u32; 2],
    /// The number of instructions before the fork; 0 for a leaf, or if it is not known.
    instructions: u64,
}

/// No node.
const NONE: u32 = u32::MAX;
/// Marks a leaf, in place of its second child.
const LEAF: u32 = u32::MAX - 1;

/// The states that are still to be explored.
pub struct Frontier {
    entries: Vec<Option<FrontierEntry>>,
    free_entries: Vec<u32>,
    /// Whether ids of removed states are reused. In worlds they are not, because a smaller id means
    /// an older state.
    reuse_ids: bool,
    /// The tree of forks; unused nodes are in `free_nodes`.
    nodes: Vec<ForkNode>,
    free_nodes: Vec<u32>,
    root: u32,
    len: usize,
    spilled: usize,
}

impl Default for Frontier {
    fn default() -> Frontier {
        Frontier {
            entries: Vec::new(),
            free_entries: Vec::new(),
            reuse_ids: true,
            nodes: Vec::new(),
            free_nodes: Vec::new(),
            root: NONE,
            len: 0,
            spilled: 0,
        }
    }
}

fn stored_weight(stored: &Stored) -> Option<Weight> {
    match stored {
        Stored::Live(state) => Some(state.path.weight),
        Stored::Spilled(spilled) => Some(Weight {
            halvings: spilled.at.halvings,
        }),
        Stored::Running => None,
    }
}

impl Frontier {
    /// Creates a frontier for worlds: ids are in the order of creation.
    pub fn of_worlds() -> Frontier {
        Frontier {
            reuse_ids: false,
            ..Frontier::default()
        }
    }

    /// Returns the number of states.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether no state is left.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of states in the spill file.
    pub fn spilled(&self) -> usize {
        self.spilled
    }

    /// Adds a node to the tree of forks, and returns its index.
    fn new_node(&mut self, node: ForkNode) -> u32 {
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

    /// Adds an entry for a state whose leaf this is, and returns its id.
    fn new_entry(&mut self, stored: Stored, leaf: u32, info: StateInfo) -> StateId {
        self.len += 1;
        if matches!(stored, Stored::Spilled(_)) {
            self.spilled += 1;
        }
        let weight = stored_weight(&stored).unwrap_or_default();
        let entry = Some(FrontierEntry {
            stored,
            leaf,
            info,
            weight,
            used: FaultUse::default(),
        });
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

    /// Adds a state that is not a child of another one in the frontier.
    pub fn add_root(&mut self, stored: Stored, info: StateInfo) -> StateId {
        let (id, leaf) = self.new_leaf(stored, info);
        self.add_top(leaf);
        id
    }

    /// Adds states as a balanced tree, as if they had forked evenly from one state.
    pub fn add_roots(&mut self, states: Vec<Stored>) -> Vec<StateId> {
        let mut ids = Vec::with_capacity(states.len());
        let mut level = Vec::with_capacity(states.len());
        for stored in states {
            let (id, leaf) = self.new_leaf(stored, StateInfo::default());
            ids.push(id);
            level.push(leaf);
        }
        while level.len() > 1 {
            // An odd state is moved up from the front: at the end, two that are left over would be
            // picked much more often.
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
        let leaf = self.new_node(ForkNode {
            parent: NONE,
            children: [NONE, LEAF],
            instructions: 0,
        });
        let id = self.new_entry(stored, leaf, info);
        self.nodes[leaf as usize].children[0] = id.0;
        (id, leaf)
    }

    /// Adds a fork above two nodes of the tree.
    fn join(&mut self, one: u32, other: u32) -> u32 {
        let top = self.new_node(ForkNode {
            parent: NONE,
            children: [one, other],
            instructions: 0,
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

    /// Adds the second child of a fork; `parent` continues as the first.
    pub fn add_child(&mut self, parent: StateId, stored: Stored, info: StateInfo) -> StateId {
        let Some(node) = self.entry(parent).map(|entry| entry.leaf) else {
            return self.add_root(stored, info);
        };
        let first = self.new_node(ForkNode {
            parent: node,
            children: [parent.0, LEAF],
            instructions: 0,
        });
        let second = self.new_node(ForkNode {
            parent: node,
            children: [NONE, LEAF],
            instructions: 0,
        });
        let instructions = match &stored {
            Stored::Live(state) => state.instructions(),
            Stored::Spilled(_) | Stored::Running => 0,
        };
        let id = self.new_entry(stored, second, info);
        self.nodes[second as usize].children[0] = id.0;
        let fork = &mut self.nodes[node as usize];
        (fork.children, fork.instructions) = ([first, second], instructions);
        if let Some(entry) = self.entry_mut(parent) {
            entry.leaf = first;
            let used = entry.used.clone();
            self.set_used(id, used);
        }
        id
    }

    fn entry(&self, id: StateId) -> Option<&FrontierEntry> {
        self.entries.get(id.0 as usize)?.as_ref()
    }

    fn entry_mut(&mut self, id: StateId) -> Option<&mut FrontierEntry> {
        self.entries.get_mut(id.0 as usize)?.as_mut()
    }

    /// Returns the properties by which searchers order a state.
    pub fn info(&self, id: StateId) -> StateInfo {
        self.entry(id)
            .map_or_else(StateInfo::default, |entry| entry.info)
    }

    /// Updates the properties by which searchers order a state.
    pub fn set_info(&mut self, id: StateId, info: StateInfo) {
        if let Some(entry) = self.entry_mut(id) {
            entry.info = info;
        }
    }

    /// Takes a state out for execution; its id stays reserved.
    pub fn take(&mut self, id: StateId) -> Option<Stored> {
        let entry = self.entry_mut(id)?;
        let stored = std::mem::replace(&mut entry.stored, Stored::Running);
        if matches!(stored, Stored::Spilled(_)) {
            self.spilled -= 1;
        }
        Some(stored)
    }

    /// Returns a state, in memory or spilled.
    pub fn get(&self, id: StateId) -> Option<&Stored> {
        let entry = self.entries.get(id.0 as usize)?;
        entry.as_ref().map(|entry| &entry.stored)
    }

    /// Returns whether a state is being executed.
    pub fn is_running(&self, id: StateId) -> bool {
        matches!(self.get(id), Some(Stored::Running))
    }

    /// Returns a state, if it is in memory.
    pub fn live(&self, id: StateId) -> Option<&State> {
        match self.get(id)? {
            Stored::Live(state) => Some(state),
            Stored::Spilled(_) | Stored::Running => None,
        }
    }

    /// Returns the data about a state of a world, if the state is spilled.
    pub fn spilled_net(&self, id: StateId) -> Option<&SpilledNet> {
        match self.get(id)? {
            Stored::Spilled(spilled) => spilled.net.as_deref(),
            Stored::Live(_) | Stored::Running => None,
        }
    }

    /// Returns the history of a state of a world, unless the state is being executed.
    pub fn history(&self, id: StateId) -> Option<HistoryDigest> {
        let live = self.live(id).map(|state| state.net().history);
        live.or_else(|| Some(self.spilled_net(id)?.history))
    }

    /// Returns a digest of the answers that led to a state of a world, unless the state is being
    /// executed.
    pub fn answers(&self, id: StateId) -> Option<u64> {
        let live = self.live(id).map(State::answers);
        live.or_else(|| Some(self.spilled_net(id)?.answers))
    }

    /// Returns whether a state of a world was the first to execute some code.
    pub fn covered_new(&self, id: StateId) -> bool {
        let spilled = self.spilled_net(id);
        self.live(id).is_some_and(|state| state.covered_new)
            || spilled.is_some_and(|net| net.covered_new)
    }

    /// Returns whether the programs of a quiescent state of a world are blocked forever instead of
    /// having ended.
    pub fn is_waiting(&self, id: StateId) -> bool {
        let spilled = self.spilled_net(id);
        self.live(id).is_some_and(State::is_waiting) || spilled.is_some_and(|net| net.is_waiting)
    }

    /// Marks the new coverage of a state of a world as covered by a test.
    pub fn clear_covered_new(&mut self, id: StateId) {
        match self.entry_mut(id).map(|entry| &mut entry.stored) {
            Some(Stored::Live(state)) => state.covered_new = false,
            Some(Stored::Spilled(spilled)) => {
                if let Some(net) = &mut spilled.net {
                    net.covered_new = false;
                }
            }
            Some(Stored::Running) | None => {}
        }
    }

    /// Returns the weight of a state.
    pub fn weight(&self, id: StateId) -> Weight {
        self.entry(id)
            .map_or_else(Weight::default, |entry| entry.weight)
    }

    /// Updates the weight of a state that is being executed.
    pub fn set_weight(&mut self, id: StateId, weight: Weight) {
        if let Some(entry) = self.entry_mut(id) {
            entry.weight = weight;
        }
    }

    /// Returns how often each fault that is bounded per world has happened on a state's host.
    pub fn used(&self, id: StateId) -> &[u32] {
        self.entry(id).map_or(&[], |entry| &entry.used)
    }

    /// Updates how often each fault that is bounded per world has happened on a state's host.
    pub fn set_used(&mut self, id: StateId, used: FaultUse) {
        if let Some(entry) = self.entry_mut(id) {
            entry.used = used;
        }
    }

    /// Adds a copy of a state that is not being executed.
    pub fn copy(&mut self, id: StateId) -> Option<StateId> {
        let stored = match self.get(id)? {
            Stored::Live(state) => {
                let mut copy = state.clone();
                copy.covered_new = false;
                Stored::Live(copy)
            }
            Stored::Spilled(spilled) => {
                let mut copy = spilled.clone();
                if let Some(net) = &mut copy.net {
                    net.covered_new = false;
                }
                Stored::Spilled(copy)
            }
            Stored::Running => return None,
        };
        let info = self.info(id);
        Some(self.add_child(id, stored, info))
    }

    /// Puts a state back that was taken out.
    pub fn put(&mut self, id: StateId, stored: Stored) {
        if matches!(stored, Stored::Spilled(_)) {
            self.spilled += 1;
        }
        let weight = stored_weight(&stored);
        if let Some(entry) = self.entry_mut(id) {
            entry.weight = weight.unwrap_or(entry.weight);
            entry.stored = stored;
        }
    }

    /// Removes a state that has ended; its fork is contracted.
    pub fn remove(&mut self, id: StateId) {
        let Some(entry) = self.entries.get_mut(id.0 as usize).and_then(Option::take) else {
            return;
        };
        self.len -= 1;
        if matches!(entry.stored, Stored::Spilled(_)) {
            self.spilled -= 1;
        }
        if self.reuse_ids {
            self.free_entries.push(id.0);
        }
        let leaf = entry.leaf;
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

    /// Returns the leaf at the end of a random walk from the root.
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

    /// Returns all states in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (StateId, &Stored)> {
        self.iter_from(StateId(0))
    }

    /// Returns the states of a subtree of forks with at most this number of states, but not many
    /// less: they have a long part of their paths in common.
    pub fn subtree(&self, most: usize) -> Vec<StateId> {
        let counts = self.count_leaves();
        let mut node = self.root;
        while node != NONE && counts[node as usize] as usize > most {
            let [one, other] = self.nodes[node as usize].children;
            if other == LEAF {
                return Vec::new();
            }
            let is_larger = counts[other as usize] > counts[one as usize];
            node = if is_larger { other } else { one };
        }
        let below = self.nodes_below(node).into_iter();
        let children = below.map(|node| self.nodes[node as usize].children);
        let leaves = children.filter(|children| children[1] == LEAF);
        leaves.map(|children| StateId(children[0])).collect()
    }

    /// Returns a node and all nodes below it, each before its children.
    fn nodes_below(&self, top: u32) -> Vec<u32> {
        let mut below: Vec<u32> = (top != NONE).then_some(top).into_iter().collect();
        let mut next = 0;
        while let Some(node) = below.get(next) {
            let children = self.nodes[*node as usize].children;
            if children[1] != LEAF {
                below.extend(children);
            }
            next += 1;
        }
        below
    }

    /// Returns the number of states below each node of the tree of forks.
    fn count_leaves(&self) -> Vec<u32> {
        let mut counts = vec![0; self.nodes.len()];
        for node in self.nodes_below(self.root).into_iter().rev() {
            let children = self.nodes[node as usize].children;
            counts[node as usize] = match children[1] {
                LEAF => 1,
                other => counts[children[0] as usize] + counts[other as usize],
            };
        }
        counts
    }

    /// Returns the number of instructions of the paths to these states, of parts that several have
    /// in common once. A spilled state has to be rematerialised anyway, and does not count.
    pub fn instructions_to(&self, states: &[StateId]) -> u64 {
        let mut marked = HashSet::new();
        let own = |id: &StateId| {
            let entry = self.entry(*id)?;
            let Stored::Live(state) = &entry.stored else {
                return None;
            };
            let mut node = entry.leaf;
            while node != NONE && marked.insert(node) {
                node = self.nodes[node as usize].parent;
            }
            let common = self.nodes.get(node as usize);
            let common = common.map_or(0, |node| node.instructions);
            Some(state.instructions().saturating_sub(common))
        };
        states.iter().filter_map(own).sum()
    }

    /// Sets the number of instructions before the fork whose second child this state is.
    pub fn set_forked_at(&mut self, child: StateId, instructions: u64) {
        let leaf = self.entry(child).map_or(NONE, |entry| entry.leaf);
        let parent = self.nodes.get(leaf as usize).map(|node| node.parent);
        if let Some(node) = parent.and_then(|parent| self.nodes.get_mut(parent as usize)) {
            node.instructions = instructions;
        }
    }

    /// Returns the weights of all states that are not being executed.
    pub fn weights(&self) -> impl Iterator<Item = (StateId, Weight)> {
        let entries = self.entries.iter().enumerate();
        let entries = entries.filter_map(|(at, entry)| Some((StateId(at as u32), entry.as_ref()?)));
        entries.filter_map(|(id, entry)| match entry.stored {
            Stored::Running => None,
            Stored::Live(_) | Stored::Spilled(_) => Some((id, entry.weight)),
        })
    }

    /// Returns all states in the order of their ids, starting at an id.
    pub fn iter_from(&self, first: StateId) -> impl Iterator<Item = (StateId, &Stored)> {
        let entries = self.entries.iter().enumerate().skip(first.0 as usize);
        entries.filter_map(|(at, entry)| Some((StateId(at as u32), &entry.as_ref()?.stored)))
    }
}

/// How often each bounded fault has happened, in the order of the bounds; missing counts are 0.
pub type FaultUse = SmallVec<[u32; 2]>;

#[cfg(test)]
mod tests {
    use super::*;

    fn spill_id(halvings: u32) -> SpillId {
        let fields = serde_json::json!({"offset": 0, "len": 0, "check": 0, "halvings": halvings});
        serde_json::from_value(fields).unwrap()
    }

    #[test]
    fn a_subtree_has_at_most_so_many_states_and_not_many_less() {
        let mut frontier = Frontier::default();
        let stored = |number| Stored::Spilled(Spilled::of_program(spill_id(number)));
        let mut last = frontier.add_root(stored(0), StateInfo::default());
        // One side of each fork forks again.
        for number in 1..10 {
            last = frontier.add_child(last, stored(number), StateInfo::default());
        }
        let sizes = [0, 1, 2, 5, 9, 10, 99].map(|most| frontier.subtree(most).len());
        assert_eq!(sizes, [0, 1, 2, 5, 9, 10, 10]);
        let deepest = frontier.subtree(2);
        assert!(deepest.contains(&last), "{deepest:?}");
        assert!(Frontier::default().subtree(3).is_empty());
    }

    #[test]
    fn states_that_come_together_are_found_alike_often() {
        const STATES: u32 = 32;
        let mut frontier = Frontier::default();
        let spilled = (0..STATES).map(spill_id).map(Spilled::of_program);
        let ids = frontier.add_roots(spilled.map(Stored::Spilled).collect());
        assert_eq!((frontier.len(), frontier.spilled()), (32, 32));
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
                matches!(frontier.take(id), Some(Stored::Spilled(it)) if it.at == spill_id(number as u32))
            );
            frontier.remove(id);
        }
        assert!(frontier.is_empty());
        assert_eq!(frontier.random_leaf(&mut random), None);
    }
}
