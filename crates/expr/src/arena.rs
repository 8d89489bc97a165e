//! The term arena: hash-consed storage with one entry per distinct term, and facts about it in
//! parallel flat arrays. It owns no rewriting rules; those are in `simplify`.

use crate::facts::Facts;
use crate::hash::{FastHasher, FastMap};
use crate::limbs;
use crate::node::{ArrayId, ArrayInfo, ExprId, Node, Variable};
use crate::scalar;
use crate::support::SupportTable;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};

/// The terms of one worker. Equal terms have equal ids.
pub struct Arena {
    pub(crate) entries: Vec<TermEntry>,
    pub(crate) facts: Vec<Facts>,
    pub(crate) supports: SupportTable,
    /// Open-addressing hash table over `entries`: index + 1, zero if empty; its length is a power
    /// of two.
    slots: Vec<u32>,
    live: usize,
    free: Vec<u32>,
    pub(crate) wide: WideTable,
    arrays: Vec<ArrayInfo>,
    array_ids: HashMap<ArrayInfo, ArrayId>,
    /// The fuel that each external constructor call starts with.
    pub(crate) rule_limit: u32,
    /// Rule applications left to the current call.
    pub(crate) fuel: u32,
    /// Nesting depth of constructors in the current call.
    pub(crate) depth: u32,
    /// Direct-mapped cache of simplification results, by the hash of the unsimplified node: the
    /// same terms are built again on every path that executes the same code.
    remembered: Box<[(TermEntry, ExprId)]>,
}

/// Values of constants of more than 64 bits.
#[derive(Default)]
pub(crate) struct WideTable {
    values: Vec<Box<[u64]>>,
    ids: FastMap<Box<[u64]>, u32>,
    free: Vec<u32>,
}

impl WideTable {
    fn intern(&mut self, value: &[u64]) -> u32 {
        if let Some(&id) = self.ids.get(value) {
            return id;
        }
        let value: Box<[u64]> = value.into();
        let id = match self.free.pop() {
            Some(id) => {
                self.values[id as usize] = value.clone();
                id
            }
            None => {
                self.values.push(value.clone());
                u32::try_from(self.values.len() - 1).expect("fewer than 2^32 wide constants")
            }
        };
        self.ids.insert(value, id);
        id
    }

    pub(crate) fn get(&self, id: u32) -> &[u64] {
        &self.values[id as usize]
    }

    fn retain(&mut self, used: &[bool]) {
        for (id, &used) in used.iter().enumerate() {
            if !used && self.ids.remove(&self.values[id]).is_some() {
                self.values[id] = Box::default();
                self.free.push(id as u32);
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        self.values
            .iter()
            .map(|value| 64 + 2 * 8 * value.len())
            .sum()
    }
}

/// One term: 24 bytes, so that a lookup touches one cache line besides the table.
#[derive(Copy, Clone)]
pub(crate) struct TermEntry {
    pub(crate) node: Node,
    /// Zero marks an entry on the free list.
    pub(crate) width: u32,
    hash: u32,
}

impl TermEntry {
    const NONE: TermEntry = TermEntry {
        node: Node::Constant { bits: 0 },
        width: 0,
        hash: 0,
    };
}

/// Default bound for the rule applications that one call of a constructor may cause.
const RULE_LIMIT: u32 = 256;

/// Size of the cache of simplification results; a power of two.
const REMEMBERED: usize = 1 << 12;

#[inline]
fn hash(node: &Node, width: u32) -> u32 {
    let mut hasher = FastHasher::default();
    width.hash(&mut hasher);
    node.hash(&mut hasher);
    hasher.finish() as u32
}

const INITIAL_SLOTS: usize = 1 << 10;

impl Default for Arena {
    fn default() -> Self {
        Self::new()
    }
}

impl Arena {
    /// An empty arena.
    pub fn new() -> Arena {
        Arena {
            entries: Vec::new(),
            facts: Vec::new(),
            supports: SupportTable::new(),
            slots: vec![0; INITIAL_SLOTS],
            live: 0,
            free: Vec::new(),
            wide: WideTable::default(),
            arrays: Vec::new(),
            array_ids: HashMap::new(),
            rule_limit: RULE_LIMIT,
            fuel: 0,
            depth: 0,
            remembered: vec![(TermEntry::NONE, ExprId::from_index(0)); REMEMBERED].into(),
        }
    }

    /// The array with this ordinal, name and size; the same three give the same id.
    pub fn array(&mut self, ordinal: u32, name: &str, size: u32) -> ArrayId {
        let info = ArrayInfo {
            ordinal,
            name: name.to_owned(),
            size,
        };
        if let Some(&id) = self.array_ids.get(&info) {
            return id;
        }
        let id = ArrayId(u32::try_from(self.arrays.len()).expect("fewer than 2^32 arrays"));
        self.arrays.push(info.clone());
        self.array_ids.insert(info, id);
        id
    }

    /// Name and size of an array.
    pub fn array_info(&self, array: ArrayId) -> &ArrayInfo {
        &self.arrays[array.index()]
    }

    /// All arrays, in order of creation.
    pub fn arrays(&self) -> impl Iterator<Item = (ArrayId, &ArrayInfo)> {
        self.arrays
            .iter()
            .enumerate()
            .map(|(i, info)| (ArrayId(i as u32), info))
    }

    /// A symbolic byte.
    ///
    /// # Panics
    /// If the index is not below the size of the array.
    pub fn read(&mut self, array: ArrayId, index: u32) -> ExprId {
        assert!(
            index < self.array_info(array).size,
            "read past the end of a symbolic array"
        );
        self.intern(Node::Read { array, index }, 8)
    }

    /// A constant of at most 64 bits; higher bits are truncated.
    #[inline]
    pub fn constant(&mut self, width: u32, bits: u64) -> ExprId {
        if width > 64 {
            let mut value = vec![0; limbs::count(width)];
            value[0] = bits;
            return self.constant_limbs(width, &value);
        }
        assert!(width > 0, "a term has at least one bit");
        self.intern(
            Node::Constant {
                bits: bits & scalar::mask(width),
            },
            width,
        )
    }

    /// A constant of any width from 64-bit limbs, least significant first; missing limbs are zero,
    /// higher bits are truncated.
    pub fn constant_limbs(&mut self, width: u32, value: &[u64]) -> ExprId {
        if width <= 64 {
            return self.constant(width, value.first().copied().unwrap_or(0));
        }
        let mut value = value.to_vec();
        value.resize(limbs::count(width), 0);
        limbs::truncate(width, &mut value);
        let index = self.wide.intern(&value);
        self.intern(Node::WideConstant { index }, width)
    }

    /// A constant of this width from 128 bits.
    pub fn constant_u128(&mut self, width: u32, bits: u128) -> ExprId {
        self.constant_limbs(width, &[bits as u64, (bits >> 64) as u64])
    }

    /// A boolean constant, of width 1.
    pub fn bool_constant(&mut self, value: bool) -> ExprId {
        self.constant(1, u64::from(value))
    }

    /// Width of a term in bits.
    #[inline]
    pub fn width(&self, e: ExprId) -> u32 {
        self.entries[e.index()].width
    }

    /// The outermost operation of a term.
    #[inline]
    pub fn node(&self, e: ExprId) -> Node {
        self.entries[e.index()].node
    }

    /// The value of a constant of at most 64 bits.
    #[inline]
    pub fn as_const(&self, e: ExprId) -> Option<u64> {
        match self.entries[e.index()].node {
            Node::Constant { bits } => Some(bits),
            _ => None,
        }
    }

    /// The value of a constant of any width, least significant limb first.
    pub fn as_const_limbs(&self, e: ExprId) -> Option<&[u64]> {
        match &self.entries[e.index()].node {
            Node::Constant { bits } => Some(std::slice::from_ref(bits)),
            Node::WideConstant { index } => Some(self.wide.get(*index)),
            _ => None,
        }
    }

    /// The low 128 bits of a constant of any width.
    pub fn as_const_u128(&self, e: ExprId) -> Option<u128> {
        self.as_const_limbs(e).map(limbs::to_u128)
    }

    /// Whether the term is a constant.
    #[inline]
    pub fn is_const(&self, e: ExprId) -> bool {
        self.entries[e.index()].node.is_constant()
    }

    /// Whether the term is constant true.
    pub fn is_true(&self, e: ExprId) -> bool {
        self.width(e) == 1 && self.as_const(e) == Some(1)
    }

    /// Whether the term is constant false.
    pub fn is_false(&self, e: ExprId) -> bool {
        self.width(e) == 1 && self.as_const(e) == Some(0)
    }

    /// The symbolic byte, if the term is one.
    pub fn as_variable(&self, e: ExprId) -> Option<Variable> {
        match self.node(e) {
            Node::Read { array, index } => Some(Variable { array, index }),
            _ => None,
        }
    }

    /// Number of stored terms.
    pub fn node_count(&self) -> usize {
        self.live
    }

    /// One more than the highest index of a term: the length of arrays with one entry per term.
    pub fn index_bound(&self) -> usize {
        self.entries.len()
    }

    /// Approximate memory use.
    pub fn memory_bytes(&self) -> usize {
        let entry = size_of::<TermEntry>() + size_of::<Facts>();
        self.entries.capacity() * entry
            + (self.slots.capacity() + self.free.capacity()) * size_of::<u32>()
            + self.wide.memory_bytes()
            + self.supports.memory_bytes()
    }

    /// The id of a stored node, or the slot where it would be.
    #[inline]
    fn find(&self, node: &Node, width: u32, hash: u32) -> Result<ExprId, usize> {
        let slot_mask = self.slots.len() - 1;
        let mut position = hash as usize & slot_mask;
        loop {
            let slot = self.slots[position];
            if slot == 0 {
                return Err(position);
            }
            let entry = &self.entries[slot as usize - 1];
            if entry.hash == hash && entry.width == width && entry.node == *node {
                return Ok(ExprId::from_index(slot as usize - 1));
            }
            position = (position + 1) & slot_mask;
        }
    }

    /// The cached simplification of a node, or else the hash by which it can be cached.
    #[inline]
    pub(crate) fn lookup(&self, node: &Node, width: u32) -> Result<ExprId, u32> {
        let hash = hash(node, width);
        if let Ok(found) = self.find(node, width, hash) {
            return Ok(found);
        }
        let (known, result) = &self.remembered[hash as usize & (REMEMBERED - 1)];
        if known.hash == hash && known.width == width && known.node == *node {
            return Ok(*result);
        }
        Err(hash)
    }

    /// Caches the simplification of a node.
    pub(crate) fn remember(&mut self, node: Node, width: u32, hash: u32, result: ExprId) {
        let entry = TermEntry { node, width, hash };
        self.remembered[hash as usize & (REMEMBERED - 1)] = (entry, result);
    }

    /// Clears the cache of simplifications, because ids or rules have changed.
    pub(crate) fn forget_remembered(&mut self) {
        self.remembered
            .fill((TermEntry::NONE, ExprId::from_index(0)));
    }

    /// Interns a node, which must already be simplified.
    #[inline]
    pub(crate) fn intern(&mut self, node: Node, width: u32) -> ExprId {
        let hash = hash(&node, width);
        match self.find(&node, width, hash) {
            Ok(e) => e,
            Err(position) => self.insert(position, TermEntry { node, width, hash }),
        }
    }

    fn insert(&mut self, position: usize, entry: TermEntry) -> ExprId {
        let TermEntry { node, width, .. } = entry;
        let facts = Facts::of(&node, width, |e| self.width(e), |e| self.facts[e.index()]);
        if let Some(bits) = facts.single()
            && width <= 64
            && !node.is_constant()
        {
            return self.constant(width, bits);
        }
        let index = match self.free.pop() {
            Some(index) => {
                let index = index as usize;
                self.entries[index] = entry;
                self.facts[index] = facts;
                index
            }
            None => {
                self.entries.push(entry);
                self.facts.push(facts);
                self.entries.len() - 1
            }
        };
        let id = ExprId::from_index(index);
        self.supports.insert(id, &node);
        self.slots[position] = index as u32 + 1;
        self.live += 1;
        if self.live * 2 > self.slots.len() {
            self.rebuild_slots(self.slots.len() * 2);
        }
        id
    }

    fn rebuild_slots(&mut self, length: usize) {
        self.slots.clear();
        self.slots.resize(length, 0);
        for (index, entry) in self.entries.iter().enumerate() {
            if entry.width == 0 {
                continue;
            }
            let mut position = entry.hash as usize & (length - 1);
            while self.slots[position] != 0 {
                position = (position + 1) & (length - 1);
            }
            self.slots[position] = index as u32 + 1;
        }
    }

    /// Frees all terms that are not reachable from the live ones. Ids of live terms do not change;
    /// freed ids are reused. Returns the number of freed terms.
    pub fn sweep(&mut self, live: impl Iterator<Item = ExprId>) -> usize {
        let marked = self.mark(live);
        let mut freed = 0;
        for (index, &marked) in marked.iter().enumerate() {
            let entry = &mut self.entries[index];
            if !marked && entry.width != 0 {
                entry.width = 0;
                entry.node = Node::Constant { bits: 0 };
                freed += 1;
            }
        }
        // The lowest index is on top, so that reuse fills the arrays from the start.
        self.free.clear();
        self.free.extend(
            (0..self.entries.len() as u32)
                .rev()
                .filter(|&i| !marked[i as usize]),
        );
        self.live -= freed;
        self.forget_remembered();
        self.supports.retain(&marked);
        let mut used_wide = vec![false; self.wide.values.len()];
        for entry in &self.entries {
            if let Node::WideConstant { index } = &entry.node {
                used_wide[*index as usize] = true;
            }
        }
        self.wide.retain(&used_wide);
        self.rebuild_slots((self.live * 4).next_power_of_two().max(INITIAL_SLOTS));
        freed
    }

    fn mark(&self, live: impl Iterator<Item = ExprId>) -> Vec<bool> {
        let mut marked = vec![false; self.entries.len()];
        let mut stack: Vec<ExprId> = live.collect();
        while let Some(e) = stack.pop() {
            if !std::mem::replace(&mut marked[e.index()], true) {
                stack.extend(self.node(e).children());
            }
        }
        marked
    }
}
