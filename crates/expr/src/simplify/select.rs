//! Selection from tables of constants: the constructor, and rules that
//! fold operations into the table.

use crate::arena::Arena;
use crate::node::{CompareOp, ExprId, Node, TableId};
use crate::scalar;
use std::sync::Arc;

impl Arena {
    /// Returns the entry (of at most 64 bits) at an index. Indices past the end give the last
    /// entry.
    ///
    /// # Panics
    /// If there is no entry, or if the index has more than 64 bits.
    pub fn select(&mut self, width: u32, entries: &[u64], index: ExprId) -> ExprId {
        assert!(width <= 64 && self.width(index) <= 64 && !entries.is_empty());
        let last = entries.len() as u64 - 1;
        let (min, max) = self.unsigned_range(index);
        let differing = u64::BITS - (min ^ max).leading_zeros();
        // All values share the bits above these, so only the entries that they select are kept, and
        // only the bits below index them.
        let base = min & u64::MAX.checked_shl(differing).unwrap_or(0);
        if differing == 0 || base >= last {
            return self.constant(width, entries[base.min(last) as usize]);
        }
        let kept = &entries[base as usize..=max.min(last) as usize];
        if kept.iter().all(|&entry| entry == kept[0]) {
            return self.constant(width, kept[0]);
        }
        let index = self.extract(index, 0, differing);
        if let Some(composed) = self.composed(width, kept, index) {
            return composed;
        }
        if max - base < kept.len() as u64 && (0..).zip(kept).all(|(at, &entry)| at == entry) {
            return self.resized(index, width);
        }
        let table = self.tables.intern(width, kept);
        self.intern(Node::Select { table, index }, width)
    }

    /// Returns the entry of a table of this arena.
    pub(crate) fn select_from(&mut self, table: TableId, index: ExprId) -> ExprId {
        let (width, entries) = self.table(table);
        self.select(width, &entries, index)
    }

    /// Stores a selection without simplifying it.
    pub(crate) fn plain_select(&mut self, width: u32, entries: &[u64], index: ExprId) -> ExprId {
        let table = self.tables.intern(width, entries);
        self.intern(Node::Select { table, index }, width)
    }

    /// Returns width and entries of a table.
    pub fn table(&self, table: TableId) -> (u32, Arc<[u64]>) {
        let table = self.tables.get(table);
        (table.width, table.entries.clone())
    }

    fn resized(&mut self, e: ExprId, width: u32) -> ExprId {
        if self.width(e) >= width {
            self.extract(e, 0, width)
        } else {
            self.zext(e, width)
        }
    }

    /// Simplifies a table that is indexed by an entry of another table to a single table.
    fn composed(&mut self, width: u32, entries: &[u64], index: ExprId) -> Option<ExprId> {
        let Node::Select { table, index } = self.node(index) else {
            return None;
        };
        let last = entries.len() - 1;
        let (_, inner) = self.table(table);
        let entry = |&at: &u64| entries[usize::try_from(at).map_or(last, |at| at.min(last))];
        let entries: Vec<u64> = inner.iter().map(entry).collect();
        Some(self.select(width, &entries, index))
    }

    /// Simplifies bits of an entry to an entry of the table of these bits.
    pub(super) fn extract_selected(
        &mut self,
        table: TableId,
        index: ExprId,
        low: u32,
        width: u32,
    ) -> ExprId {
        let (_, entries) = self.table(table);
        let bits = |entry: &u64| entry >> low & scalar::mask(width);
        let entries: Vec<u64> = entries.iter().map(bits).collect();
        self.select(width, &entries, index)
    }

    /// Simplifies the comparison of an entry with a constant: to a comparison of the index if the
    /// entries for which it holds are contiguous, else to a table of truth values.
    pub(super) fn compare_selected(
        &mut self,
        op: CompareOp,
        a: ExprId,
        b: ExprId,
    ) -> Option<ExprId> {
        let (table, index, constant, swapped) = match (self.node(a), self.node(b)) {
            (Node::Select { table, index }, Node::Constant { bits }) => (table, index, bits, false),
            (Node::Constant { bits }, Node::Select { table, index }) => (table, index, bits, true),
            _ => return None,
        };
        let (width, entries) = self.table(table);
        let truth = |&entry: &u64| {
            u64::from(match swapped {
                false => scalar::compare(op, width, entry, constant),
                true => scalar::compare(op, width, constant, entry),
            })
        };
        let truths: Vec<u64> = entries.iter().map(truth).collect();
        let first = truths.iter().position(|&truth| truth == 1);
        let last = truths.iter().rposition(|&truth| truth == 1);
        let (Some(first), Some(last)) = (first, last) else {
            return Some(self.bool_constant(false));
        };
        let index_width = self.width(index);
        if truths[first..=last].contains(&0) {
            return Some(self.select(1, &truths, index));
        }
        let low = self.constant(index_width, first as u64);
        let high = self.constant(index_width, last as u64);
        // Indices past the end have the last entry.
        let open = last + 1 == truths.len();
        Some(match (first == 0, open) {
            (_, true) => self.ule(low, index),
            (true, false) => self.ule(index, high),
            (false, false) if first == last => self.eq(index, low),
            (false, false) => {
                let (above, below) = (self.ule(low, index), self.ule(index, high));
                self.and(above, below)
            }
        })
    }
}
