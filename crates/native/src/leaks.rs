//! Leak detection: finds blocks that are unreachable when a native program exits. The search is
//! conservative, like that of the model: every value that looks like an address in a block counts
//! as a reference.

use std::collections::BTreeSet;

use crate::allocations::{Allocator, Heap};
use crate::tracee::{Registers, Tracee};

/// Size of the area below a stack in which remains of returned functions are cleared.
const DEAD_STACK: u64 = 256 << 10;
/// The red zone below the stack pointer.
const RED_ZONE: u64 = 128;
/// Maximum size of a mapping that is searched.
const LARGEST: u64 = 1 << 30;

/// Clears the remains of returned functions below the stack, which do not count as references.
pub fn clear_dead_stack(tracee: &mut Tracee, registers: &Registers) {
    let end = registers.rsp;
    let page = 4096;
    let zeros = [0; 4096];
    let mut at = end;
    while at > end - DEAD_STACK {
        let start = (at - 1) & !(page - 1);
        if !tracee.poke(start, &zeros[..(at - start) as usize]) {
            break;
        }
        at = start;
    }
}

/// Returns the number and total size of unreachable blocks. `threads` are the registers of all
/// threads of the process, with whether a thread is the exiting one. Caller-saved registers of the
/// exiting thread are not roots.
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
        // Memory below the stack pointer of a thread is dead.
        let inside = |registers: &&Registers| (start..end).contains(&registers.rsp);
        let mut all = threads.iter().map(|thread| &thread.0);
        let start = match all.find(inside) {
            Some(registers) => (registers.rsp - RED_ZONE).max(start) & !7,
            None => start,
        };
        let mut bytes = vec![0; (end - start) as usize];
        if tracee.peek(start, &mut bytes) {
            search.roots(start, &bytes);
        }
    }
    while let Some((start, size)) = search.pending.pop() {
        let mut bytes = vec![0; size as usize];
        if tracee.peek(start, &mut bytes) {
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

    /// Visits root memory, without the heap blocks in it and the allocator's own data.
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

/// Returns the writable memory of the program.
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
