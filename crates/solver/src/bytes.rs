//! Exact decisions for terms over a single byte, by tabulating the term for all 256 values.

use crate::lanes;
use everett_expr::{Arena, EvalScratch, ExprId, Node, Variable};
use rustc_hash::FxHashMap;

/// A set of byte values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ByteSet([u64; 4]);

impl ByteSet {
    pub const ALL: ByteSet = ByteSet([u64::MAX; 4]);

    pub fn intersection(self, other: ByteSet) -> ByteSet {
        ByteSet(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    pub fn is_empty(self) -> bool {
        self.0 == [0; 4]
    }

    /// Returns the values from 0 to `most`.
    pub fn up_to(most: u64) -> ByteSet {
        (0..=most.min(255) as u8).collect()
    }

    /// Returns how many values there are.
    pub fn len(self) -> u64 {
        self.0.iter().map(|limb| u64::from(limb.count_ones())).sum()
    }

    /// Returns the value with `rank` smaller ones; 0 if there are not so many values.
    pub fn nth(self, rank: u64) -> u8 {
        let mut rank = rank;
        for (at, &limb) in self.0.iter().enumerate() {
            let here = u64::from(limb.count_ones());
            if rank < here {
                let bit = match limb {
                    u64::MAX => rank,
                    _ => u64::from(
                        (0..rank)
                            .fold(limb, |left, _| left & (left - 1))
                            .trailing_zeros(),
                    ),
                };
                return (at as u64 * 64 + bit) as u8;
            }
            rank -= here;
        }
        0
    }

    /// Returns the values, ascending.
    pub fn iter(self) -> ByteValues {
        ByteValues(self)
    }

    /// Returns the least value of each class.
    pub fn one_of_each(self, classes: &Classes) -> ByteSet {
        let mut known = ByteSet([0; 4]);
        let mut first_of = |&value: &u8| {
            let class = classes[usize::from(value)];
            let is_new = !known.contains(class);
            known.insert(class);
            is_new
        };
        self.iter().filter(&mut first_of).collect()
    }

    pub fn contains(self, value: u8) -> bool {
        self.0[usize::from(value / 64)] >> (value % 64) & 1 == 1
    }

    fn insert(&mut self, value: u8) {
        self.0[usize::from(value / 64)] |= 1 << (value % 64);
    }

    pub fn first(self) -> Option<u8> {
        let limb = self.0.iter().position(|&limb| limb != 0)?;
        Some(limb as u8 * 64 + self.0[limb].trailing_zeros() as u8)
    }
}

/// The values of a set, ascending.
pub struct ByteValues(ByteSet);

impl Iterator for ByteValues {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        let first = self.0.first()?;
        let limb = &mut self.0.0[usize::from(first / 64)];
        *limb &= *limb - 1;
        Some(first)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.0.len() as usize;
        (left, Some(left))
    }
}

impl FromIterator<u8> for ByteSet {
    fn from_iter<I: IntoIterator<Item = u8>>(values: I) -> ByteSet {
        let mut set = ByteSet([0; 4]);
        values.into_iter().for_each(|value| set.insert(value));
        set
    }
}

/// The value of a term for each value of its byte.
pub type Column = [u64; 256];

/// The class of each value of a byte; classes are numbered in the order of their first values.
pub type Classes = [u8; 256];

/// All values are in one class.
pub const ONE_CLASS: Classes = [0; 256];

/// Returns the classes of values that are in one class in both.
pub fn refined(first: &Classes, second: &Classes) -> Classes {
    numbered(first.iter().zip(second))
}

/// Numbers the values of a byte by what they are in.
fn numbered<T: Eq + std::hash::Hash>(marks: impl Iterator<Item = T>) -> Classes {
    let mut numbers = FxHashMap::default();
    let mut classes = ONE_CLASS;
    for (class, mark) in classes.iter_mut().zip(marks) {
        let next = numbers.len() as u8;
        *class = *numbers.entry(mark).or_insert(next);
    }
    classes
}

/// Maximum size of a term that is tabulated; larger ones are left to the other layers.
const MAX_PARTS: usize = 512;

/// The number of values of a byte up to which large terms are evaluated, too.
const FEW: usize = 8;
/// Maximum number of terms in `few` and in `classes`; the maps are cleared beyond it.
const MAX_KEPT: usize = 1 << 18;
const MAX_CLASSES: usize = 1 << 14;

/// Values of terms for a few values of their byte, by term.
type FewColumns = FxHashMap<ExprId, [u64; FEW]>;

/// Truth tables of conditions, by term. Valid until terms are swept from the arena.
#[derive(Default)]
pub struct ByteTables {
    tables: FxHashMap<ExprId, Option<ByteSet>>,
    /// Values of terms by byte and by the values that the byte may still have. The queries of a
    /// path contain the same large terms again and again.
    few: FxHashMap<(Variable, [u64; 4]), FewColumns>,
    kept: usize,
    /// Values of a byte that a term does not distinguish, by term.
    classes: FxHashMap<ExprId, Option<Box<Classes>>>,
    /// Scratch space: the columns of the subterms.
    columns: Vec<Column>,
    column_of: FxHashMap<ExprId, usize>,
    stack: Vec<ExprId>,
    scratch: EvalScratch,
}

impl ByteTables {
    pub fn clear(&mut self) {
        self.tables.clear();
        self.few.clear();
        self.kept = 0;
        self.classes.clear();
    }

    /// Returns those of the allowed values of the byte for which the condition holds. The condition
    /// must depend on no other byte; `None` if it is too large, unless few values are allowed.
    pub fn among(
        &mut self,
        arena: &Arena,
        e: ExprId,
        variable: Variable,
        allowed: ByteSet,
    ) -> Option<ByteSet> {
        if let Some(table) = self.table(arena, e) {
            return Some(allowed.intersection(table));
        }
        (allowed.len() <= FEW as u64).then(|| self.few_among(arena, e, variable, allowed))
    }

    /// Like [`ByteTables::among`], for at most `FEW` values, and for terms of any size.
    pub fn few_among(
        &mut self,
        arena: &Arena,
        e: ExprId,
        variable: Variable,
        allowed: ByteSet,
    ) -> ByteSet {
        let values: Vec<u8> = allowed.iter().collect();
        let column = self.few_column(arena, e, variable, allowed, &values);
        let holds = |&(at, value): &(usize, u8)| match &column {
            Some(column) => column[at] != 0,
            None => arena.eval_bool(e, &|_, _| value, &mut self.scratch),
        };
        let held = values.iter().copied().enumerate().filter(holds);
        held.map(|(_, value)| value).collect()
    }

    /// Returns the value of a term for each of the values; `None` if a part is wide or a float.
    fn few_column(
        &mut self,
        arena: &Arena,
        root: ExprId,
        variable: Variable,
        allowed: ByteSet,
        values: &[u8],
    ) -> Option<[u64; FEW]> {
        if self.kept > MAX_KEPT {
            self.few.clear();
            self.kept = 0;
        }
        let columns = self.few.entry((variable, allowed.0)).or_default();
        self.stack.clear();
        self.stack.push(root);
        while let Some(&e) = self.stack.last() {
            let before = self.stack.len();
            if !columns.contains_key(&e) {
                let missing = |child: &ExprId| !columns.contains_key(child);
                self.stack.extend(arena.node(e).children().filter(missing));
                if self.stack.len() > before {
                    continue;
                }
                let column = few_of_node(arena, e, columns, values)?;
                columns.insert(e, column);
                self.kept += 1;
            }
            self.stack.pop();
        }
        columns.get(&root).copied()
    }

    /// Returns the values of the byte for which the condition holds. The condition must depend on
    /// no other byte; `None` if it is too large.
    pub fn table(&mut self, arena: &Arena, e: ExprId) -> Option<ByteSet> {
        if let Some(known) = self.tables.get(&e) {
            return *known;
        }
        let table = self.column(arena, e).map(|column| {
            let values = (0..=255u8).zip(column.iter());
            let held = values.filter(|(_, truth)| **truth != 0);
            held.map(|(value, _)| value).collect()
        });
        self.tables.insert(e, table);
        table
    }

    /// Returns the classes of values of the byte for which the term has the same value. The term
    /// must depend on no other byte; `None` if it is too large.
    pub fn classes(&mut self, arena: &Arena, e: ExprId) -> Option<&Classes> {
        if !self.classes.contains_key(&e) {
            if self.classes.len() >= MAX_CLASSES {
                self.classes.clear();
            }
            let column = self.column(arena, e);
            let classes = column.map(|column| Box::new(numbered(column.iter())));
            self.classes.insert(e, classes);
        }
        self.classes.get(&e)?.as_deref()
    }

    /// Returns the value of a term of at most 64 bits for each value of the single byte it depends
    /// on.
    pub fn column(&mut self, arena: &Arena, root: ExprId) -> Option<&Column> {
        self.columns.clear();
        self.column_of.clear();
        self.stack.clear();
        self.stack.push(root);
        while let Some(&e) = self.stack.last() {
            let before = self.stack.len();
            if !self.column_of.contains_key(&e) {
                let missing = |child: &ExprId| !self.column_of.contains_key(child);
                self.stack.extend(arena.node(e).children().filter(missing));
                if self.stack.len() > before {
                    continue;
                }
                if self.columns.len() >= MAX_PARTS {
                    return None;
                }
                match self.column_of_node(arena, e) {
                    Some(column) => self.columns.push(column),
                    None => return self.column_by_evaluation(arena, root),
                }
                self.column_of.insert(e, self.columns.len() - 1);
            }
            self.stack.pop();
        }
        self.columns.last()
    }

    /// Computes the column of a node from those of its operands; `None` for wide terms and floats.
    fn column_of_node(&self, arena: &Arena, e: ExprId) -> Option<Column> {
        let width = arena.width(e);
        if width > 64 {
            return None;
        }
        let node = arena.node(e);
        if let Node::Read { .. } = node {
            return Some(std::array::from_fn(|value| value as u64));
        }
        let (mut operands, mut last) = ([&[0; 256]; 3], 0);
        for (operand, child) in operands.iter_mut().zip(node.children()) {
            *operand = &self.columns[self.column_of[&child]];
            last = arena.width(child);
        }
        if let Node::Select { table, .. } = node {
            return Some(lanes::look_up(&arena.table(table).1, operands[0]));
        }
        lanes::apply(node, width, last, operands)
    }

    fn column_by_evaluation(&mut self, arena: &Arena, root: ExprId) -> Option<&Column> {
        if arena.width(root) > 64 {
            return None;
        }
        let scratch = &mut self.scratch;
        let column = std::array::from_fn(|value| arena.eval(root, &|_, _| value as u8, scratch));
        self.columns.push(column);
        self.columns.last()
    }
}

/// Computes the values of a node from those of its operands; `None` for wide terms and floats.
fn few_of_node(
    arena: &Arena,
    e: ExprId,
    columns: &FewColumns,
    values: &[u8],
) -> Option<[u64; FEW]> {
    let width = arena.width(e);
    if width > 64 {
        return None;
    }
    let node = arena.node(e);
    if let Node::Read { .. } = node {
        return Some(std::array::from_fn(|at| {
            values.get(at).copied().unwrap_or_default().into()
        }));
    }
    let (mut operands, mut last) = ([&[0; FEW]; 3], 0);
    for (operand, child) in operands.iter_mut().zip(node.children()) {
        *operand = &columns[&child];
        last = arena.width(child);
    }
    if let Node::Select { table, .. } = node {
        return Some(lanes::look_up(&arena.table(table).1, operands[0]));
    }
    lanes::apply(node, width, last, operands)
}

/// Returns the byte that a term depends on, if it is exactly one.
pub fn single_byte(arena: &Arena, e: ExprId) -> Option<Variable> {
    arena
        .single_byte_support(e)
        .map(|(array, index)| Variable { array, index })
}
