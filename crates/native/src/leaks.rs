//! Blocks of native programs that nothing refers to at their end. The search is conservative, as the model's: whatever
//! looks like an address inside a block counts as a reference to it.

use std::collections::BTreeSet;

use crate::allocations::{Allocator, Heap};
use crate::tracee::{Registers, Tracee};

/// How far below a stack old frames are looked for.
const DEAD_STACK: u64 = 256 << 10;
/// Below the stack, functions that call nobody keep what they need.
const RED_ZONE: u64 = 128;
/// Larger mappings are no program's data.
const LARGEST: u64 = 1 << 30;

/// Clears what functions that have returned left below the stack: it refers to nothing any more.
pub fn clear_dead_stack(tracee: &mut Tracee, registers: &Registers) {
    let end = registers.rsp;
    let page = 4096;
    let zeros = [0; 4096];
    let mut at = end;
    while at > end - DEAD_STACK {
        let start = (at - 1) & !(page - 1);
        if !tracee.put(start, &zeros[..(at - start) as usize]) {
            break;
        }
        at = start;
    }
}

/// How many blocks, and how many bytes of them, nothing refers to. `threads` are the registers of all threads of the
/// process, and whether it is the one that ends it: what a function has in registers that are not kept for its caller
/// is left over there.
pub fn leaked(
    tracee: &mut Tracee,
    (heap, allocator): (&Heap, &Allocator),
    threads: &[(Registers, bool)],
) -> std::io::Result<(usize, u64)> {
    let mut search = Search {
        heap,
        allocator,
        reached: BTreeSet::new(),
        pending: Vec::new(),
    };
    for (registers, ends) in threads {
        let kept = kept_for_callers(registers);
        let others = own_values(registers).into_iter().filter(|_| !ends);
        kept.into_iter()
            .chain(others)
            .for_each(|value| search.word(value));
    }
    for (start, end) in data_of(tracee)? {
        // What lies below the stack of a thread is dead.
        let inside = |registers: &&Registers| (start..end).contains(&registers.rsp);
        let mut all = threads.iter().map(|thread| &thread.0);
        let start = match all.find(inside) {
            Some(registers) => (registers.rsp - RED_ZONE).max(start) & !7,
            None => start,
        };
        let mut bytes = vec![0; (end - start) as usize];
        if tracee.look(start, &mut bytes) {
            search.roots(start, &bytes);
        }
    }
    while let Some((start, size)) = search.pending.pop() {
        let mut bytes = vec![0; size as usize];
        if tracee.look(start, &mut bytes) {
            for value in words(&bytes) {
                search.word(value);
            }
        }
    }
    let lost = heap
        .blocks()
        .filter(|block| !search.reached.contains(&block.0));
    Ok(lost.fold((0, 0), |(count, bytes), block| (count + 1, bytes + block.1)))
}

struct Search<'h> {
    heap: &'h Heap,
    allocator: &'h Allocator,
    reached: BTreeSet<u64>,
    pending: Vec<(u64, u64)>,
}

impl Search<'_> {
    fn word(&mut self, value: u64) {
        if let Some((start, size)) = self.heap.block_at(value)
            && self.reached.insert(start)
        {
            self.pending.push((start, size));
        }
    }

    /// Memory from which everything is reached, but for blocks in it, live ones and others, and the allocator's own.
    fn roots(&mut self, start: u64, bytes: &[u8]) {
        for (at, value) in (start..).step_by(8).zip(words(bytes)) {
            if value != 0 && !self.heap.had_block_at(at) && !self.allocator.keeps(at) {
                self.word(value);
            }
        }
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let word = |chunk: &[u8]| u64::from_le_bytes(chunk.try_into().unwrap_or_default());
    bytes.chunks_exact(8).map(word)
}

fn kept_for_callers(r: &Registers) -> [u64; 6] {
    [r.rbx, r.rbp, r.r12, r.r13, r.r14, r.r15]
}

fn own_values(r: &Registers) -> [u64; 9] {
    [r.rax, r.rcx, r.rdx, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11]
}

/// Memory that the program can write to.
fn data_of(tracee: &Tracee) -> std::io::Result<Vec<(u64, u64)>> {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", tracee.process))?;
    let range = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let start = u64::from_str_radix(start, 16).ok()?;
        let end = u64::from_str_radix(end, 16).ok()?;
        (rest.starts_with("rw") && end - start <= LARGEST).then_some((start, end))
    };
    Ok(maps.lines().filter_map(range).collect())
}
