//! The term arena: hash-consed storage with one entry per distinct term, and facts about it in
//! parallel flat arrays. It owns no rewriting rules; those are in `simplify`.

use crate::digest::{Content, digest_of_array};
use crate::facts::Facts;
use crate::hash::{FastMap, hash_words};
use crate::limbs;
use crate::node::{ArrayId, ArrayInfo, ExprId, Node, Variable};
use crate::scalar;
use crate::support::SupportTable;
use crate::table::Tables;
use std::collections::HashMap;

/// The terms of one worker. Equal terms have equal ids.
pub struct Arena {
    pub(crate) entries: Vec<ArenaEntry>,
    pub(crate) facts: Vec<Facts>,
    /// The number of rules that simplifying each term takes, where the result is known to be the
    /// term itself.
    costs: Vec<u16>,
    pub(crate) supports: SupportTable,
    /// Open-addressing hash table over `entries`: index + 1, zero if empty; its length is a power
    /// of two.
    slots: Vec<u32>,
    live: usize,
    free: Vec<u32>,
    pub(crate) wide: WideTable,
    pub(crate) tables: Tables,
    arrays: Vec<ArrayInfo>,
    array_digests: Vec<u64>,
    array_ids: HashMap<ArrayInfo, ArrayId>,
    /// The fuel that each external constructor call starts with.
    pub(crate) rule_limit: u32,
    /// Rule applications left to the current call.
    pub(crate) fuel: u32,
    /// Nesting depth of constructors in the current call.
    pub(crate) depth: u32,
    /// Recent results of external constructor calls, by the hash of the plain node: the same terms
    /// are built again on every path that executes the same code.
    remembered: Box<[Remembered]>,
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

/// One term: 32 bytes, so that a look-up touches one cache line besides the table.
#[derive(Copy, Clone)]
pub(crate) struct ArenaEntry {
    pub(crate) node: Node,
    /// A digest of the node and the width, by content.
    pub(crate) digest: u64,
    /// The width in the low 24 bits, zero in an entry on the free list; above it the height.
    width_and_height: u32,
    /// A hash of the node and the width, by the ids of operands. The bit above `HASH_BITS` says
    /// whether simplifying the node is known to return the node itself. A node without that bit may
    /// be stored because a rule built it or because fuel ran out.
    hash: u32,
}

/// All terms are narrower than this, like LLVM's integers.
const WIDTH_LIMIT: u32 = 1 << 24;

impl ArenaEntry {
    fn new(node: Node, width: u32, hash: u32, content: Content) -> ArenaEntry {
        assert!(width < WIDTH_LIMIT, "a term of too many bits");
        ArenaEntry {
            node,
            digest: content.digest,
            width_and_height: width | u32::from(content.height) << 24,
            hash,
        }
    }

    #[inline]
    pub(crate) fn width(&self) -> u32 {
        self.width_and_height % WIDTH_LIMIT
    }

    #[inline]
    pub(crate) fn content(&self) -> Content {
        Content {
            digest: self.digest,
            height: (self.width_and_height >> 24) as u8,
        }
    }

    #[inline(always)]
    fn is(&self, node: &Node, width: u32, hash: u32) -> bool {
        self.hash & HASH_BITS == hash && self.width() == width && self.node.is(node)
    }
}

const HASH_BITS: u32 = u32::MAX >> 1;
const SIMPLIFIED: u32 = !HASH_BITS;

/// The result of simplifying a node, and the number of rules that it took.
#[derive(Copy, Clone)]
struct Remembered {
    node: Node,
    /// The width of the node; zero marks an empty entry.
    width: u32,
    hash: u32,
    result: ExprId,
    cost: u32,
}

impl Remembered {
    const NONE: Remembered = Remembered {
        node: Node::Constant { bits: 0 },
        width: 0,
        hash: 0,
        result: ExprId::FIRST,
        cost: 0,
    };
}

/// Default limit of rule applications that one call of a constructor may cause.
const RULE_LIMIT: u32 = 256;

/// The cost of simplifying a node for which the fuel was not sufficient.
pub(crate) const EXHAUSTED: u32 = u32::MAX;

/// Number of remembered results of simplification; a power of two.
const REMEMBERED: usize = 1 << 12;

#[inline(always)]
pub(crate) fn hash(node: &Node, width: u32) -> u32 {
    let [first, second] = node.words();
    hash_words(first ^ u64::from(width) << 16, second) & HASH_BITS
}

const INITIAL_SLOTS: usize = 1 << 10;

impl Default for Arena {
    fn default() -> Self {
        Self::new()
    }
}

impl Arena {
    /// Creates an empty arena.
    pub fn new() -> Arena {
        Arena {
            entries: Vec::new(),
            facts: Vec::new(),
            costs: Vec::new(),
            supports: SupportTable::new(),
            slots: vec![0; INITIAL_SLOTS],
            live: 0,
            free: Vec::new(),
            wide: WideTable::default(),
            tables: Tables::default(),
            arrays: Vec::new(),
            array_digests: Vec::new(),
            array_ids: HashMap::new(),
            rule_limit: RULE_LIMIT,
            fuel: 0,
            depth: 0,
            remembered: vec![Remembered::NONE; REMEMBERED].into(),
        }
    }

    /// Returns the array with this ordinal, name and size; equal arguments give the same id.
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
        self.array_digests.push(digest_of_array(&info));
        self.arrays.push(info.clone());
        self.array_ids.insert(info, id);
        id
    }

    /// Returns name and size of an array.
    pub fn array_info(&self, array: ArrayId) -> &ArrayInfo {
        &self.arrays[array.index()]
    }

    pub(crate) fn array_digest(&self, array: ArrayId) -> u64 {
        self.array_digests[array.index()]
    }

    /// Returns all arrays, in the order of their creation.
    pub fn arrays(&self) -> impl Iterator<Item = (ArrayId, &ArrayInfo)> {
        self.arrays
            .iter()
            .enumerate()
            .map(|(i, info)| (ArrayId(i as u32), info))
    }

    /// Returns a symbolic byte.
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

    /// Returns a constant of at most 64 bits; higher bits are truncated.
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

    /// Returns a constant of any width from 64-bit limbs, least significant first; missing limbs
    /// are zero, higher bits are truncated.
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

    /// Returns a constant of this width from 128 bits.
    pub fn constant_u128(&mut self, width: u32, bits: u128) -> ExprId {
        self.constant_limbs(width, &[bits as u64, (bits >> 64) as u64])
    }

    /// Returns a boolean constant, of width 1.
    pub fn bool_constant(&mut self, value: bool) -> ExprId {
        self.constant(1, u64::from(value))
    }

    /// Returns the width of a term in bits.
    #[inline]
    pub fn width(&self, e: ExprId) -> u32 {
        self.entries[e.index()].width()
    }

    /// Returns the outermost operation of a term.
    #[inline]
    pub fn node(&self, e: ExprId) -> Node {
        self.entries[e.index()].node
    }

    /// Returns the value of a constant of at most 64 bits.
    #[inline]
    pub fn as_const(&self, e: ExprId) -> Option<u64> {
        match self.entries[e.index()].node {
            Node::Constant { bits } => Some(bits),
            _ => None,
        }
    }

    /// Returns the value of a constant of any width, least significant limb first.
    pub fn as_const_limbs(&self, e: ExprId) -> Option<&[u64]> {
        match &self.entries[e.index()].node {
            Node::Constant { bits } => Some(std::slice::from_ref(bits)),
            Node::WideConstant { index } => Some(self.wide.get(*index)),
            _ => None,
        }
    }

    /// Returns the low 128 bits of a constant of any width.
    pub fn as_const_u128(&self, e: ExprId) -> Option<u128> {
        self.as_const_limbs(e).map(limbs::to_u128)
    }

    /// Returns whether the term is a constant.
    #[inline]
    pub fn is_const(&self, e: ExprId) -> bool {
        self.entries[e.index()].node.is_constant()
    }

    /// Returns whether the term is constant true.
    pub fn is_true(&self, e: ExprId) -> bool {
        self.width(e) == 1 && self.as_const(e) == Some(1)
    }

    /// Returns whether the term is constant false.
    pub fn is_false(&self, e: ExprId) -> bool {
        self.width(e) == 1 && self.as_const(e) == Some(0)
    }

    /// Returns the symbolic byte, if the term is one.
    pub fn as_variable(&self, e: ExprId) -> Option<Variable> {
        match self.node(e) {
            Node::Read { array, index } => Some(Variable { array, index }),
            _ => None,
        }
    }

    /// Returns the number of stored terms.
    pub fn node_count(&self) -> usize {
        self.live
    }

    /// Returns one more than the highest index of a term: the length of arrays with one entry per
    /// term.
    pub fn index_bound(&self) -> usize {
        self.entries.len()
    }

    /// Returns the approximate memory use.
    pub fn memory_bytes(&self) -> usize {
        let entry = size_of::<ArenaEntry>() + size_of::<Facts>() + size_of::<u16>();
        self.entries.capacity() * entry
            + (self.slots.capacity() + self.free.capacity()) * size_of::<u32>()
            + self.wide.memory_bytes()
            + self.tables.memory_bytes()
            + self.supports.memory_bytes()
    }

    /// Returns the id of a stored node, or the slot for a new one.
    #[inline(always)]
    fn find(&self, node: &Node, width: u32, hash: u32) -> Result<ExprId, usize> {
        let slot_mask = self.slots.len() - 1;
        let mut position = hash as usize & slot_mask;
        loop {
            let slot = self.slots[position];
            if slot == 0 {
                return Err(position);
            }
            if self.entries[slot as usize - 1].is(node, width, hash) {
                return Ok(ExprId::from_index(slot as usize - 1));
            }
            position = (position + 1) & slot_mask;
        }
    }

    /// Returns the known result of simplifying a node, if the fuel of the current call suffices to
    /// simplify it. It consumes as much fuel as simplification, so that fuel runs out at the same
    /// point whether or not the result is known.
    #[inline(always)]
    pub(crate) fn known(&mut self, node: &Node, width: u32, hash: u32) -> Option<ExprId> {
        let (result, cost) = match self.find(node, width, hash) {
            Ok(e) if self.entries[e.index()].hash & SIMPLIFIED != 0 => {
                if self.depth == 0 {
                    return Some(e);
                }
                (e, u32::from(self.costs[e.index()]))
            }
            _ => {
                let known = &self.remembered[hash as usize & (REMEMBERED - 1)];
                if known.hash != hash || known.width != width || !known.node.is(node) {
                    return None;
                }
                (known.result, known.cost)
            }
        };
        if self.depth > 0 {
            self.fuel = self.fuel.checked_sub(cost)?;
        }
        Some(result)
    }

    /// Records the result of simplifying a node, and the number of rules that it took.
    #[inline(always)]
    pub(crate) fn remember(
        &mut self,
        node: &Node,
        width: u32,
        hash: u32,
        result: ExprId,
        cost: u32,
    ) {
        let entry = &mut self.entries[result.index()];
        if entry.is(node, width, hash) {
            entry.hash |= SIMPLIFIED;
            self.costs[result.index()] = u16::try_from(cost).unwrap_or(u16::MAX);
        } else if self.depth == 0 {
            self.remembered[hash as usize & (REMEMBERED - 1)] = Remembered {
                node: *node,
                width,
                hash,
                result,
                cost,
            };
        }
    }

    /// Forgets all results of simplification, because the rules have changed.
    pub(crate) fn forget_simplified(&mut self) {
        self.forget_remembered();
        for entry in &mut self.entries {
            entry.hash &= HASH_BITS;
        }
    }

    /// Forgets remembered results of simplification, because ids have changed.
    fn forget_remembered(&mut self) {
        self.remembered.fill(Remembered::NONE);
    }

    /// Returns the id of a node, and stores the node if it is new. The node must be simplified
    /// already.
    #[inline(always)]
    pub(crate) fn intern(&mut self, node: Node, width: u32) -> ExprId {
        let hash = hash(&node, width);
        match self.find(&node, width, hash) {
            Ok(e) => e,
            Err(position) => {
                let content = self.content_of(&node, width);
                self.insert(position, node, width, hash, content)
            }
        }
    }

    fn insert(
        &mut self,
        position: usize,
        node: Node,
        width: u32,
        hash: u32,
        content: Content,
    ) -> ExprId {
        let facts = match node {
            Node::Select { table, index } => {
                let (min, max) = self.unsigned_range(index);
                self.tables.get(table).facts_between(min, max)
            }
            _ => Facts::of(&node, width, |e| self.width(e), |e| self.facts[e.index()]),
        };
        if let Some(bits) = facts.single()
            && width <= 64
            && !node.is_constant()
        {
            return self.constant(width, bits);
        }
        let entry = ArenaEntry::new(node, width, hash, content);
        let index = match self.free.pop() {
            Some(index) => {
                let index = index as usize;
                self.entries[index] = entry;
                self.facts[index] = facts;
                self.costs[index] = 0;
                index
            }
            None => {
                self.entries.push(entry);
                self.facts.push(facts);
                self.costs.push(0);
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
            if entry.width() == 0 {
                continue;
            }
            let mut position = (entry.hash & HASH_BITS) as usize & (length - 1);
            while self.slots[position] != 0 {
                position = (position + 1) & (length - 1);
            }
            self.slots[position] = index as u32 + 1;
        }
    }

    /// Returns one more than the largest index of a term.
    pub(crate) fn bound(&self) -> usize {
        self.entries.len()
    }

    /// Frees all terms that are not marked. The subterms of a marked term must be marked as well.
    /// Returns the number of freed terms.
    pub(crate) fn free_unmarked(&mut self, marked: &[bool]) -> usize {
        let mut freed = 0;
        for (index, &marked) in marked.iter().enumerate() {
            let entry = &mut self.entries[index];
            if !marked && entry.width() != 0 {
                entry.width_and_height = 0;
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
        self.supports.retain(marked);
        let mut used_wide = vec![false; self.wide.values.len()];
        let mut used_tables = vec![false; self.tables.bound()];
        for entry in &self.entries {
            match entry.node {
                Node::WideConstant { index } => used_wide[index as usize] = true,
                Node::Select { table, .. } => used_tables[table.0 as usize] = true,
                _ => {}
            }
        }
        self.wide.retain(&used_wide);
        self.tables.retain(&used_tables);
        self.rebuild_slots((self.live * 4).next_power_of_two().max(INITIAL_SLOTS));
        freed
    }
}
