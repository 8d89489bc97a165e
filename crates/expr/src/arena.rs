//! Storage of terms: one entry for each distinct term, found by hashing, with what is known about
//! it in flat arrays beside it. Owns no rewriting rules; those are in `simplify`.

use crate::facts::Facts;
use crate::limbs;
use crate::node::{ArrayId, ArrayInfo, ExprId, Node, Variable};
use crate::scalar;
use crate::support::SupportTable;
use std::collections::HashMap;

/// Terms of one worker. Equal terms have equal ids.
pub struct Arena {
    pub(crate) nodes: Vec<Node>,
    /// Width of each term; zero marks an entry on the free list.
    pub(crate) widths: Vec<u32>,
    pub(crate) facts: Vec<Facts>,
    pub(crate) supports: SupportTable,
    /// Open addressing over `nodes`: index + 1, zero where empty; length is a power of two.
    slots: Vec<u32>,
    live: usize,
    free: Vec<u32>,
    pub(crate) wide: WideTable,
    arrays: Vec<ArrayInfo>,
    array_ids: HashMap<ArrayInfo, ArrayId>,
    pub(crate) fuel: u32,
    pub(crate) depth: u32,
}

/// Values of constants of more than 64 bits.
#[derive(Default)]
pub(crate) struct WideTable {
    values: Vec<Box<[u64]>>,
    ids: HashMap<Box<[u64]>, u32>,
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

/// Mixes the bits of a node's parts; good enough for a table indexed by the high bits.
#[derive(Default)]
struct NodeHasher(u64);

impl std::hash::Hasher for NodeHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[inline]
fn hash(node: &Node, width: u32) -> u64 {
    use std::hash::{Hash, Hasher};
    let mut hasher = NodeHasher(u64::from(width));
    node.hash(&mut hasher);
    hasher.finish()
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
            nodes: Vec::new(),
            widths: Vec::new(),
            facts: Vec::new(),
            supports: SupportTable::new(),
            slots: vec![0; INITIAL_SLOTS],
            live: 0,
            free: Vec::new(),
            wide: WideTable::default(),
            arrays: Vec::new(),
            array_ids: HashMap::new(),
            fuel: 0,
            depth: 0,
        }
    }

    /// The array of this ordinal, name and size; the same three give the same id.
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

    /// What an array is called and how long it is.
    pub fn array_info(&self, array: ArrayId) -> &ArrayInfo {
        &self.arrays[array.index()]
    }

    /// All arrays, in the order in which they were made.
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

    /// A constant of at most 64 bits; higher bits are cut off.
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

    /// A constant of any width from limbs of 64 bits, least first; missing limbs are zero, higher
    /// bits are cut off.
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

    /// A constant of the width from 128 bits.
    pub fn constant_u128(&mut self, width: u32, bits: u128) -> ExprId {
        self.constant_limbs(width, &[bits as u64, (bits >> 64) as u64])
    }

    /// Truth or falsehood, at width 1.
    pub fn bool_constant(&mut self, value: bool) -> ExprId {
        self.constant(1, u64::from(value))
    }

    /// Number of bits of a term.
    #[inline]
    pub fn width(&self, e: ExprId) -> u32 {
        self.widths[e.index()]
    }

    /// The outermost operation of a term.
    #[inline]
    pub fn node(&self, e: ExprId) -> Node {
        self.nodes[e.index()]
    }

    /// The value of a constant of at most 64 bits.
    #[inline]
    pub fn as_const(&self, e: ExprId) -> Option<u64> {
        match self.nodes[e.index()] {
            Node::Constant { bits } => Some(bits),
            _ => None,
        }
    }

    /// The value of a constant of any width, least limb first.
    pub fn as_const_limbs(&self, e: ExprId) -> Option<&[u64]> {
        match &self.nodes[e.index()] {
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
        self.nodes[e.index()].is_constant()
    }

    /// Whether the term is the constant truth.
    pub fn is_true(&self, e: ExprId) -> bool {
        self.width(e) == 1 && self.as_const(e) == Some(1)
    }

    /// Whether the term is the constant falsehood.
    pub fn is_false(&self, e: ExprId) -> bool {
        self.width(e) == 1 && self.as_const(e) == Some(0)
    }

    /// The byte that a term is, where it is one.
    pub fn as_variable(&self, e: ExprId) -> Option<Variable> {
        match self.node(e) {
            Node::Read { array, index } => Some(Variable { array, index }),
            _ => None,
        }
    }

    /// Number of terms that are stored.
    pub fn node_count(&self) -> usize {
        self.live
    }

    /// One more than the highest index of a term: the length of arrays with one entry a term.
    pub fn index_bound(&self) -> usize {
        self.nodes.len()
    }

    /// Memory in use, approximately.
    pub fn memory_bytes(&self) -> usize {
        let entry = size_of::<Node>() + size_of::<u32>() + size_of::<Facts>();
        self.nodes.capacity() * entry
            + (self.slots.capacity() + self.free.capacity()) * size_of::<u32>()
            + self.wide.memory_bytes()
            + self.supports.memory_bytes()
    }

    /// The id of a node, storing it where it is new. The node must be simplified already.
    #[inline]
    pub(crate) fn intern(&mut self, node: Node, width: u32) -> ExprId {
        let slot_mask = self.slots.len() - 1;
        let mut position = hash(&node, width) as usize & slot_mask;
        loop {
            let entry = self.slots[position];
            if entry == 0 {
                return self.insert(position, node, width);
            }
            let index = entry as usize - 1;
            if self.nodes[index] == node && self.widths[index] == width {
                return ExprId::from_index(index);
            }
            position = (position + 1) & slot_mask;
        }
    }

    fn insert(&mut self, position: usize, node: Node, width: u32) -> ExprId {
        let facts = Facts::of(self, &node, width);
        if let Some(bits) = facts.single()
            && width <= 64
            && !node.is_constant()
        {
            return self.constant(width, bits);
        }
        let index = match self.free.pop() {
            Some(index) => {
                let index = index as usize;
                self.nodes[index] = node;
                self.widths[index] = width;
                self.facts[index] = facts;
                index
            }
            None => {
                self.nodes.push(node);
                self.widths.push(width);
                self.facts.push(facts);
                self.nodes.len() - 1
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
        for index in 0..self.nodes.len() {
            if self.widths[index] == 0 {
                continue;
            }
            let mut position = hash(&self.nodes[index], self.widths[index]) as usize & (length - 1);
            while self.slots[position] != 0 {
                position = (position + 1) & (length - 1);
            }
            self.slots[position] = index as u32 + 1;
        }
    }

    /// Frees all terms that none of the live ones is made of. Ids of the others stay as they are;
    /// freed ids will be used again. Returns the number of freed terms.
    pub fn sweep(&mut self, live: impl Iterator<Item = ExprId>) -> usize {
        let marked = self.mark(live);
        let mut freed = 0;
        for (index, &marked) in marked.iter().enumerate() {
            if !marked && self.widths[index] != 0 {
                self.widths[index] = 0;
                self.nodes[index] = Node::Constant { bits: 0 };
                freed += 1;
            }
        }
        // The lowest index on top, so that reuse fills the arrays from below.
        self.free.clear();
        self.free.extend(
            (0..self.nodes.len() as u32)
                .rev()
                .filter(|&i| !marked[i as usize]),
        );
        self.live -= freed;
        self.supports.retain(&marked);
        let mut used_wide = vec![false; self.wide.values.len()];
        for node in &self.nodes {
            if let Node::WideConstant { index } = node {
                used_wide[*index as usize] = true;
            }
        }
        self.wide.retain(&used_wide);
        self.rebuild_slots((self.live * 4).next_power_of_two().max(INITIAL_SLOTS));
        freed
    }

    fn mark(&self, live: impl Iterator<Item = ExprId>) -> Vec<bool> {
        let mut marked = vec![false; self.nodes.len()];
        let mut stack: Vec<ExprId> = live.collect();
        while let Some(e) = stack.pop() {
            if !std::mem::replace(&mut marked[e.index()], true) {
                stack.extend(self.node(e).children());
            }
        }
        marked
    }
}
