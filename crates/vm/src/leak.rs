//! Memory leaks: heap blocks that nothing references any more.
//!
//! The search is conservative: every word that looks like an address inside a block counts as a
//! reference, in memory, in registers and in symbolic terms.

use everett_expr::{Arena, ExprId};
use std::collections::{BTreeSet, HashSet};

use crate::bug::{Bug, BugKind, bytes};
use crate::memory::{Memory, Object, ObjectKind};
use crate::stacks::StackId;
use crate::thread::Thread;
use crate::value::Value;

/// A leaked heap block.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Leak {
    /// First address.
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
    /// Call stack of its allocation.
    pub allocated: Option<StackId>,
}

/// Finds the live heap blocks that are unreachable from globals, mappings, stacks and registers,
/// ordered by address.
pub fn leaked_blocks(memory: &Memory, threads: &[&Thread], arena: &Arena) -> Vec<Leak> {
    let mut search = Search {
        memory,
        arena,
        reached: BTreeSet::new(),
        pending: Vec::new(),
        terms: HashSet::new(),
    };
    for kind in [
        ObjectKind::Global,
        ObjectKind::Constant,
        ObjectKind::Mapping,
        ObjectKind::Kernel,
        ObjectKind::Fixed,
    ] {
        for object in memory.live_objects(kind) {
            search.object(object);
        }
    }
    for thread in threads {
        search.thread(thread);
    }
    while let Some(start) = search.pending.pop() {
        if let Some(object) = memory.near(start) {
            search.object(object);
        }
    }
    let mut leaks: Vec<Leak> = memory
        .live_objects(ObjectKind::Heap)
        .filter(|object| !search.reached.contains(&object.start))
        .map(|object| Leak {
            start: object.start,
            size: object.size,
            allocated: object.allocated,
        })
        .collect();
    leaks.sort_by_key(|leak| leak.start);
    leaks
}

/// Returns the finding for these blocks. Its message describes the first one.
pub fn leak_finding(leaks: &[Leak]) -> Option<Bug> {
    let first = leaks.first()?;
    let total: u64 = leaks.iter().map(|leak| leak.size).sum();
    let message = match leaks.len() {
        1 => format!(
            "a heap block of {} that nothing refers to was not freed",
            bytes(total)
        ),
        count => format!(
            "{count} heap blocks of {} together that nothing refers to were not freed; the first has {}",
            bytes(total),
            bytes(first.size)
        ),
    };
    Some(Bug {
        allocated: first.allocated,
        ..Bug::new(BugKind::Leak, message)
    })
}

struct Search<'a> {
    memory: &'a Memory,
    arena: &'a Arena,
    /// Start addresses of reachable heap blocks.
    reached: BTreeSet<u64>,
    /// Reachable blocks whose content is still to be scanned.
    pending: Vec<u64>,
    terms: HashSet<ExprId>,
}

impl Search<'_> {
    fn address(&mut self, address: u64) {
        // A pointer one past the last byte still references its block.
        let block = self
            .memory
            .object_at(address, 0)
            .filter(|object| object.kind == ObjectKind::Heap);
        if let Some(block) = block
            && self.reached.insert(block.start)
        {
            self.pending.push(block.start);
        }
    }

    fn value(&mut self, value: Value) {
        match value.term {
            None => self.address(value.bits),
            Some(term) => self.term(term),
        }
    }

    /// Scans the constants of a term, because they are the source of the addresses in it.
    fn term(&mut self, term: ExprId) {
        let mut stack = vec![term];
        while let Some(term) = stack.pop() {
            if !self.terms.insert(term) {
                continue;
            }
            match self.arena.as_const(term) {
                Some(bits) => self.address(bits),
                None => stack.extend(self.arena.node(term).children()),
            }
        }
    }

    fn thread(&mut self, thread: &Thread) {
        self.address(thread.fs_base);
        for value in &thread.registers {
            self.value(*value);
        }
        for frame in &thread.frames {
            self.value(frame.landing.0);
            for argument in frame.variadic.iter().flat_map(|all| all.arguments.iter()) {
                for value in &argument.values {
                    self.value(*value);
                }
            }
        }
        for slot in &thread.slots {
            if let Some(object) = self.memory.near(*slot) {
                self.object(object);
            }
        }
    }

    /// Scans the aligned words and the terms of an object.
    fn object(&mut self, object: &Object) {
        object.for_each_term(&mut |term| self.term(term));
        let skip = object.start.next_multiple_of(8) - object.start;
        if !object.is_live() || object.size < skip + 8 {
            return;
        }
        object.for_each_buffer(|_, buffer| {
            let bytes = buffer.bytes().get(skip as usize..).unwrap_or_default();
            for word in bytes.chunks_exact(8) {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(word);
                self.address(u64::from_le_bytes(bytes));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;

    fn leaks(harness: &Harness) -> Vec<u64> {
        let leaks = leaked_blocks(&harness.memory, &[&harness.thread], &harness.arena);
        leaks.into_iter().map(|leak| leak.start).collect()
    }

    fn point(harness: &mut Harness, from: u64, to: Value) {
        harness
            .memory
            .store(&mut harness.arena, from, 8, to)
            .unwrap();
    }

    #[test]
    fn what_nothing_refers_to_is_leaked() {
        let mut harness = Harness::new();
        let [a, b, c, d, e] = [(); 5].map(|()| harness.block(&[0; 40]));
        let global = harness
            .memory
            .allocate(16, 8, ObjectKind::Global)
            .unwrap()
            .start;
        let slot = harness.vm(|vm| vm.push_slot(8, 8).unwrap());
        // The global points into a, and a to the end of b; a register points to c; a stack slot to
        // d.
        point(&mut harness, global + 8, Value::concrete(a + 16));
        point(&mut harness, a + 32, Value::concrete(b + 40));
        harness.thread.registers.push(Value::concrete(c));
        point(&mut harness, slot, Value::concrete(d));
        point(&mut harness, e, Value::concrete(e));
        assert_eq!(leaks(&harness), [e]);
        harness.thread.registers.clear();
        assert_eq!(leaks(&harness), [c, e]);
        point(&mut harness, global + 8, Value::ZERO);
        assert_eq!(leaks(&harness), [a, b, c, e]);
        let found = leaked_blocks(&harness.memory, &[&harness.thread], &harness.arena);
        let bug = leak_finding(&found).unwrap();
        assert_eq!(bug.kind, BugKind::Leak);
        assert!(
            bug.message.contains("4 heap blocks of 160 bytes"),
            "{}",
            bug.message
        );
    }

    #[test]
    fn terms_refer_to_blocks_too() {
        let mut harness = Harness::new();
        let [a, b] = [(); 2].map(|()| harness.block(&[0; 8]));
        let which = harness.symbolic(1, 1).to_term(&mut harness.arena, 1);
        let [x, y] = [a, b].map(|block| harness.arena.constant(64, block));
        let either = harness.arena.ite(which, x, y);
        let global = harness
            .memory
            .allocate(8, 8, ObjectKind::Global)
            .unwrap()
            .start;
        assert_eq!(leaks(&harness), [a, b]);
        let either = Value::of_term(&harness.arena, either);
        point(&mut harness, global, either);
        assert!(leaks(&harness).is_empty());
        assert!(leak_finding(&[]).is_none());
    }
}
