//! Merging of two memories with the same objects: bytes that differ become if-then-else terms.

use everett_expr::{Arena, ExprId};
use triomphe::Arc;

use super::buffer::{Buffer, PAGE};
use super::object::{Content, Object};
use super::table::Table;
use super::{Memory, Tables, no_tables};
use crate::value::Value;

/// The merge of two states into one.
pub struct Merge<'a> {
    /// The arena of the terms of both states.
    pub arena: &'a mut Arena,
    /// The condition under which the merged state is the second one; otherwise it is the first.
    pub second: ExprId,
}

impl Merge<'_> {
    /// Merges the values of a register.
    pub fn value(&mut self, first: Value, second: Value) -> Value {
        if first == second {
            return first;
        }
        // The width of a register that is concrete in both states is unknown: an instruction takes
        // as many bits as it reads.
        let widths = [first, second].map(|value| match value.term {
            Some(term) => self.arena.width(term),
            None => 1,
        });
        let fits = |value: Value, width: u32| width == 64 || value.bits >> width == 0;
        let width = match (first.term, second.term) {
            (None, None) => 64,
            _ => widths[0].max(widths[1]),
        };
        let width = match fits(first, width) && fits(second, width) {
            true => width,
            false => 64,
        };
        let (first, second) = (
            first.to_term(self.arena, width),
            second.to_term(self.arena, width),
        );
        let term = self.arena.ite(self.second, second, first);
        Value::of_term(self.arena, term)
    }

    fn buffer(&mut self, first: &Arc<Buffer>, second: &Arc<Buffer>) -> Option<Arc<Buffer>> {
        if Arc::ptr_eq(first, second) || first == second {
            return Some(first.clone());
        }
        let len = first.len();
        if len != second.len() {
            return None;
        }
        let mut merged = Buffer::clone(first);
        let mut at = 0;
        while at < len {
            // A term in memory stays whole if it is whole in both.
            let width = first.width_at(at).max(second.width_at(at)).min(len - at);
            let one = first.load(self.arena, at, width);
            let other = second.load(self.arena, at, width);
            if one != other {
                let bits = 8 * width as u32;
                let (one, other) = (
                    one.to_term(self.arena, bits),
                    other.to_term(self.arena, bits),
                );
                let term = self.arena.ite(self.second, other, one);
                merged.store(at, width, Value::of_term(self.arena, term));
            }
            at += width;
        }
        Some(Arc::new(merged))
    }

    fn page(
        &mut self,
        first: Option<&Arc<Buffer>>,
        second: Option<&Arc<Buffer>>,
    ) -> Option<Option<Arc<Buffer>>> {
        let zeros = |one: Option<&Arc<Buffer>>| match one {
            Some(page) => page.clone(),
            None => Arc::new(Buffer::zeroed(PAGE)),
        };
        match (first, second) {
            (None, None) => Some(None),
            _ => self.buffer(&zeros(first), &zeros(second)).map(Some),
        }
    }

    fn content(&mut self, first: &Content, second: &Content) -> Option<Content> {
        Some(match (first, second) {
            (Content::One(one), Content::One(other)) => Content::One(self.buffer(one, other)?),
            (Content::Pages(one), Content::Pages(other)) => {
                if Arc::ptr_eq(one, other) {
                    return Some(first.clone());
                }
                let pairs = one.iter().zip(other.iter());
                let pages: Option<Vec<_>> = pairs
                    .map(|(one, other)| self.page(one.as_ref(), other.as_ref()))
                    .collect();
                Content::Pages(Arc::new(pages?))
            }
            (Content::Region(one), Content::Region(other)) if Arc::ptr_eq(one, other) => {
                first.clone()
            }
            (Content::Ended(one), Content::Ended(other)) => {
                Content::Ended(self.buffer(one, other)?)
            }
            (Content::EndedPages(one), Content::EndedPages(other)) if Arc::ptr_eq(one, other) => {
                Content::EndedPages(one.clone())
            }
            (Content::UnmappedRun, Content::UnmappedRun) => Content::UnmappedRun,
            _ => return None,
        })
    }

    fn object(&mut self, first: &Object, second: &Object) -> Option<Object> {
        let is_same = first.start == second.start
            && first.size == second.size
            && first.size_term == second.size_term
            && first.kind == second.kind;
        if !is_same {
            return None;
        }
        let content = self.content(&first.content, &second.content)?;
        // The stacks of allocation and deallocation appear only in reports, so those of the first
        // object serve for both.
        Some(Object {
            content,
            journal: None,
            ..first.clone()
        })
    }

    fn place(&mut self, first: &mut Option<Object>, second: &Option<Object>) -> Option<()> {
        match (&mut *first, second) {
            (None, None) => Some(()),
            (Some(one), Some(other)) => {
                *one = self.object(one, other)?;
                Some(())
            }
            _ => None,
        }
    }

    /// Merges the objects of a table below an index into the first table; the objects above are
    /// dead in both.
    fn table(&mut self, first: &mut Table, second: &Table, below: u32) -> Option<()> {
        if first.next != second.next {
            return None;
        }
        for index in first.differing(second) {
            if index >= below {
                continue;
            }
            let is_stack = below < u32::MAX;
            let is_popped = |one: Option<&Object>| one.is_none_or(Object::is_popped);
            match (first.get(index), second.get(index)) {
                (one, other) if is_stack && is_popped(one) && is_popped(other) => {}
                (Some(one), Some(other)) => {
                    let merged = self.object(one, other)?;
                    first.set(index, merged);
                }
                _ => return None,
            }
        }
        Some(())
    }

    fn tables(&mut self, first: &Tables, second: &Tables) -> Option<Tables> {
        let mut merged = first.clone();
        for (one, other) in merged.shared.iter_mut().zip(&second.shared) {
            self.table(one, other, u32::MAX)?;
        }
        let stacks = merged.stacks.len().max(second.stacks.len());
        merged.stacks.resize_with(stacks, no_tables);
        let none = no_tables();
        for (at, tables) in merged.stacks.iter_mut().enumerate() {
            let others = second.stacks.get(at).unwrap_or(&none);
            for (one, other) in tables.iter_mut().zip(others) {
                one.reuse_popped();
                let mut other = other.clone();
                other.reuse_popped();
                let live = one.next;
                self.table(one, &other, live)?;
            }
        }
        for (one, other) in merged.outside.iter_mut().zip(&second.outside) {
            self.place(one, other)?;
        }
        if merged.fixed.len() != second.fixed.len() {
            return None;
        }
        for (one, other) in merged.fixed.iter_mut().zip(&second.fixed) {
            *one = self.object(one, other)?;
        }
        Some(merged)
    }

    /// Merges two memories; `None` if they do not have the same objects.
    pub fn memory(&mut self, first: &Memory, second: &Memory) -> Option<Memory> {
        let is_same = first.heap_bytes == second.heap_bytes
            && first.reserved_bytes == second.reserved_bytes
            && first.data_bytes == second.data_bytes
            && first.runs == second.runs
            && first.viewers.is_empty()
            && second.viewers.is_empty()
            && first.lowest == second.lowest
            && first.unwritten == second.unwritten
            && Arc::ptr_eq(&first.races, &second.races)
            && Arc::ptr_eq(&first.writes, &second.writes);
        if !is_same {
            return None;
        }
        let tables = match Arc::ptr_eq(&first.tables, &second.tables) {
            true => first.tables.clone(),
            false => Arc::new(self.tables(&first.tables, &second.tables)?),
        };
        Some(Memory {
            tables,
            peak_bytes: first.peak_bytes.max(second.peak_bytes),
            ..first.clone()
        })
    }
}
