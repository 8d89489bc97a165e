//! Allocations of native programs. Breakpoints at the entry points of the allocator intercept
//! requests, so that the model can make one fail and account for memory in use. Only calls from
//! outside the allocator count, as in the model.

use std::collections::BTreeMap;
use std::path::Path;

use object::{Object, ObjectSymbol, SymbolKind};

use crate::tracee::{Registers, Stopped, Tracee};

/// The `int3` instruction.
const BREAKPOINT: u8 = 0xcc;
/// `push %rbp`, with which most functions start.
const PUSH_RBP: u8 = 0x55;
/// The return address of intercepted calls, which is never mapped.
const RETURN: u64 = 0xe00;
/// A size that no allocator can provide: a request for it fails as if memory were exhausted.
const TOO_MUCH: u64 = 1 << 62;
/// Size of the address space: larger requests fail without a question to the oracle.
const ADDRESSES: u64 = 1 << 47;

/// The arguments of an allocator function, by position.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Shape {
    /// A size.
    Size(usize),
    /// An element count and an element size.
    Product(usize, usize),
    /// An alignment, followed by a size; the alignment is at least this much.
    Aligned(usize, u64),
    /// The function frees a block.
    Free,
    /// The function exits the program.
    Exit,
}

/// Allocator functions, by name. The flag says that the first argument is a block that is freed.
const FUNCTIONS: &[(&str, Shape, bool)] = &[
    ("malloc", Shape::Size(0), false),
    ("__libc_malloc", Shape::Size(0), false),
    ("__libc_malloc_impl", Shape::Size(0), false),
    ("__simple_malloc", Shape::Size(0), false),
    ("valloc", Shape::Size(0), false),
    ("calloc", Shape::Product(0, 1), false),
    ("__libc_calloc", Shape::Product(0, 1), false),
    ("realloc", Shape::Size(1), true),
    ("__libc_realloc", Shape::Size(1), true),
    ("reallocarray", Shape::Product(1, 2), true),
    ("aligned_alloc", Shape::Aligned(0, 1), false),
    ("memalign", Shape::Aligned(0, 1), false),
    ("__libc_memalign", Shape::Aligned(0, 1), false),
    (POSIX_MEMALIGN, Shape::Aligned(1, 8), false),
    ("free", Shape::Free, true),
    ("__libc_free", Shape::Free, true),
    ("exit", Shape::Exit, false),
];

/// The function that stores the block where its first argument points, and returns an error number.
const POSIX_MEMALIGN: &str = "posix_memalign";

/// The function by which a program limits its memory.
const BOUNDS: &str = "everett_set_max_heap";

/// Prefixes of the runtime functions of checked builds.
const RUNTIME: [&str; 2] = ["__asan_", "everett_checked_"];

/// Entry point of a checked build.
const CHECKED: &str = "everett_checked_start";
/// Entry point of a build that tracks initialisation.
const INITIALISED: &str = "everett_initialised_start";

/// Prefixes of the allocators' own data.
const OWN_DATA: [&str; 3] = [
    "heap.SmpAllocator.",
    "heap.PageAllocator.",
    "__malloc_context",
];

/// The allocator of a program.
#[derive(Clone, Default, Debug)]
pub struct Allocator {
    /// The function and the byte that the breakpoint replaces, by address in the file.
    entries: BTreeMap<u64, (usize, u8)>,
    /// Entry point in the file.
    entry: u64,
    /// Load bias: distance between addresses in memory and in the file.
    bias: u64,
    /// Whether the program limits its memory, so that all blocks must be tracked.
    bounds: bool,
    /// Whether the program is a checked build.
    pub is_checked: bool,
    /// Whether the program is a checked build that tracks initialisation.
    pub tracks_initialisation: bool,
    /// The allocator's own data, by addresses in the file.
    own_data: Vec<(u64, u64)>,
    /// The range of the runtime of a checked build in the file, from its first function to the
    /// start of its last.
    runtime: Option<(u64, u64)>,
}

/// A call into the allocator that has not returned yet.
#[derive(Copy, Clone, Debug)]
pub struct AllocatorCall {
    /// The return address of the call.
    back: u64,
    /// Requested bytes.
    bytes: u64,
    /// The block that is freed if the call succeeds.
    old: u64,
    /// The address at which the new block is stored, if it is not returned.
    place: Option<u64>,
    /// Whether the call only frees a block.
    frees: bool,
}

/// The heap blocks of a process.
#[derive(Clone, Default, Debug)]
pub struct Heap {
    blocks: BTreeMap<u64, u64>,
    /// Freed blocks whose addresses have not been reused.
    freed: BTreeMap<u64, u64>,
    /// Total size of all blocks.
    pub bytes: u64,
}

impl Heap {
    fn add(&mut self, block: u64, bytes: u64) {
        self.remove(block);
        self.freed.remove(&block);
        self.blocks.insert(block, bytes);
        self.bytes += bytes;
    }

    fn remove(&mut self, block: u64) {
        if let Some(bytes) = self.blocks.remove(&block) {
            self.bytes -= bytes;
            self.freed.insert(block, bytes);
        }
    }

    /// Returns all blocks, with their sizes.
    pub fn blocks(&self) -> impl Iterator<Item = (u64, u64)> {
        self.blocks.iter().map(|(start, size)| (*start, *size))
    }

    /// Returns the block that contains an address; the end of a block counts as part of it.
    pub fn block_at(&self, address: u64) -> Option<(u64, u64)> {
        let (start, size) = self.blocks.range(..=address).next_back()?;
        (address - start <= *size).then_some((*start, *size))
    }

    /// Returns whether a block is or was at an address.
    pub fn had_block_at(&self, address: u64) -> bool {
        let holds = |blocks: &BTreeMap<u64, u64>| {
            let nearest = blocks.range(..=address).next_back();
            nearest.is_some_and(|(start, size)| address - start < *size)
        };
        holds(&self.blocks) || holds(&self.freed)
    }
}

/// A memory request of a program.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// A request for this many bytes.
    Bytes(u64),
    /// A request that fails by itself, or that frees memory: the oracle is not asked.
    Other,
}

impl Allocator {
    /// Finds the allocator of a program in the symbol table of its file, which is given as bytes.
    /// Empty if the program does not contain an allocator.
    pub fn of(bytes: &[u8]) -> Allocator {
        // A file that is no ELF program, such as a script, has no allocator.
        let Ok(file) = object::File::parse(bytes) else {
            return Allocator::default();
        };
        let mut allocator = Allocator {
            entry: file.entry(),
            ..Allocator::default()
        };
        for symbol in file.symbols() {
            let Ok(name) = symbol.name() else { continue };
            if symbol.kind() == SymbolKind::Data && OWN_DATA.iter().any(|own| name.starts_with(own))
            {
                let start = symbol.address();
                allocator.own_data.push((start, start + symbol.size()));
            }
            if symbol.kind() != SymbolKind::Text || symbol.is_undefined() {
                continue;
            }
            allocator.bounds |= name == BOUNDS;
            allocator.is_checked |= name == CHECKED;
            allocator.tracks_initialisation |= name == INITIALISED;
            if RUNTIME.iter().any(|prefix| name.starts_with(prefix)) {
                let at = symbol.address();
                let (first, last) = allocator.runtime.unwrap_or((at, at));
                allocator.runtime = Some((first.min(at), last.max(at)));
            }
            let name = without_number(name);
            if let Some(at) = FUNCTIONS.iter().position(|function| function.0 == name) {
                allocator.entries.entry(symbol.address()).or_insert((at, 0));
            }
        }
        allocator
    }

    /// Returns whether requests of the program can be intercepted.
    pub fn is_known(&self) -> bool {
        !self.entries.is_empty()
    }

    /// Returns whether the program can limit its memory: all blocks must be tracked from the start.
    pub fn bounds_memory(&self) -> bool {
        self.bounds
    }

    /// Returns the load bias of a thread's program.
    pub fn bias_of(&self, tracee: &Tracee) -> std::io::Result<u64> {
        Ok(tracee.start_address()?.wrapping_sub(self.entry))
    }

    /// Sets breakpoints in a program that has not executed anything yet; with `knows_all` also at
    /// functions that free blocks and where the program exits.
    pub fn watch(&mut self, tracee: &mut Tracee, knows_all: bool) -> std::io::Result<()> {
        self.bias = self.bias_of(tracee)?;
        let bounds = self.bounds || knows_all;
        // Functions that free memory matter only if blocks are tracked.
        self.entries
            .retain(|_, (function, _)| match FUNCTIONS[*function].1 {
                Shape::Free => bounds,
                Shape::Exit => knows_all,
                _ => true,
            });
        for (address, (_, original)) in &mut self.entries {
            let address = address.wrapping_add(self.bias);
            let mut byte = [0];
            tracee.peek(address, &mut byte);
            *original = byte[0];
            tracee.poke(address, &[BREAKPOINT]);
        }
        Ok(())
    }

    /// Returns whether an address is in the allocator's own data, which refers to free memory
    /// that may start where a block ends.
    pub fn keeps(&self, address: u64) -> bool {
        let address = address.wrapping_sub(self.bias);
        let mut own = self.own_data.iter();
        own.any(|(start, end)| (*start..*end).contains(&address))
    }

    /// Returns whether an address is in the runtime of a checked build.
    pub fn is_in_runtime(&self, address: u64) -> bool {
        let address = address.wrapping_sub(self.bias);
        self.is_checked
            && self
                .runtime
                .is_some_and(|(first, last)| (first..=last).contains(&address))
    }

    /// Returns the function at whose entry a thread stopped.
    pub fn stopped_at(&self, registers: &Registers) -> Option<AllocatorEntry> {
        let address = registers.rip.wrapping_sub(1);
        let (function, original) = *self.entries.get(&address.wrapping_sub(self.bias))?;
        Some(AllocatorEntry {
            address,
            function,
            original,
        })
    }
}

/// Returns whether a program is a checked build, which checks every memory access.
pub fn is_checked_build(program: &Path) -> bool {
    std::fs::read(program).is_ok_and(|bytes| Allocator::of(&bytes).is_checked)
}

/// Returns the name of a function, without the suffix that linkers append to duplicates.
fn without_number(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((plain, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => plain,
        _ => name,
    }
}

/// A thread at the entry of an allocator function.
#[derive(Copy, Clone, Debug)]
pub struct AllocatorEntry {
    address: u64,
    function: usize,
    original: u8,
}

fn argument(registers: &mut Registers, number: usize) -> &mut u64 {
    match number {
        0 => &mut registers.rdi,
        1 => &mut registers.rsi,
        _ => &mut registers.rdx,
    }
}

impl AllocatorEntry {
    /// Returns the address of the entry.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the memory request.
    pub fn request(&self, registers: &Registers) -> Request {
        let mut registers = *registers;
        let mut value = |number| *argument(&mut registers, number);
        let bytes = match FUNCTIONS[self.function].1 {
            Shape::Size(at) => Some(value(at)),
            Shape::Product(count, size) => value(count).checked_mul(value(size)),
            Shape::Aligned(align, least) => {
                let (align, size) = (value(align), value(align + 1));
                (align.is_power_of_two() && align >= least).then_some(size)
            }
            Shape::Free | Shape::Exit => None,
        };
        match bytes {
            Some(bytes) if bytes < ADDRESSES => Request::Bytes(bytes),
            _ => Request::Other,
        }
    }

    /// Returns whether the program exits.
    pub fn is_end(&self) -> bool {
        FUNCTIONS[self.function].1 == Shape::Exit
    }

    /// Makes the request fail: it becomes one that no allocator can satisfy.
    pub fn fail(&self, registers: &mut Registers) {
        match FUNCTIONS[self.function].1 {
            Shape::Size(at) => *argument(registers, at) = TOO_MUCH,
            Shape::Product(count, size) => {
                *argument(registers, count) = TOO_MUCH;
                *argument(registers, size) = 1;
            }
            Shape::Aligned(align, _) => *argument(registers, align + 1) = TOO_MUCH,
            Shape::Free | Shape::Exit => {}
        }
    }

    /// Lets the thread enter, and stop again when it returns.
    pub fn enter(
        &self,
        tracee: &mut Tracee,
        registers: &Registers,
        request: Request,
    ) -> AllocatorCall {
        let mut back = [0; 8];
        tracee.peek(registers.rsp, &mut back);
        tracee.poke(registers.rsp, &RETURN.to_le_bytes());
        let (name, shape, gives_back) = FUNCTIONS[self.function];
        AllocatorCall {
            back: u64::from_le_bytes(back),
            bytes: match request {
                Request::Bytes(bytes) => bytes,
                Request::Other => 0,
            },
            old: if gives_back { registers.rdi } else { 0 },
            place: (name == POSIX_MEMALIGN).then_some(registers.rdi),
            frees: shape == Shape::Free,
        }
    }

    /// Executes the instruction that the breakpoint replaces.
    pub fn step_over(&self, tracee: &mut Tracee, registers: Registers) -> std::io::Result<Stopped> {
        step_over(tracee, registers, (self.address, self.original))
    }
}

/// Executes the first instruction of a function, which a breakpoint replaces: its address, and the
/// byte that was there.
pub(crate) fn step_over(
    tracee: &mut Tracee,
    mut registers: Registers,
    (address, original): (u64, u8),
) -> std::io::Result<Stopped> {
    let pushed = registers.rsp - 8;
    if original == PUSH_RBP && tracee.poke(pushed, &registers.rbp.to_le_bytes()) {
        registers.rsp = pushed;
        tracee.set_registers(registers)?;
        return Ok(Stopped::Signal(libc::SIGTRAP));
    }
    registers.rip = address;
    tracee.set_registers(registers)?;
    tracee.poke(address, &[original]);
    let stopped = tracee.step();
    tracee.poke(address, &[BREAKPOINT]);
    stopped
}

impl AllocatorCall {
    /// Returns whether a thread has returned from the allocator.
    pub fn has_returned(registers: &Registers) -> bool {
        registers.rip == RETURN
    }

    /// Returns the real return address, if the given one is that of an intercepted call.
    pub fn real_return(&self, back: u64) -> u64 {
        if back == RETURN { self.back } else { back }
    }

    /// Completes the call and lets the thread continue behind it.
    pub fn leave(self, tracee: &mut Tracee, heap: &mut Heap) -> std::io::Result<()> {
        let mut registers = tracee.registers()?;
        registers.rip = self.back;
        let block = match self.place {
            None => registers.rax,
            Some(place) if registers.rax == 0 => {
                let mut block = [0; 8];
                tracee.peek(place, &mut block);
                u64::from_le_bytes(block)
            }
            Some(_) => 0,
        };
        if block != 0 || self.frees {
            heap.remove(self.old);
        }
        if block != 0 && !self.frees {
            heap.add(block, self.bytes);
        }
        tracee.set_registers(registers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stop(name: &str) -> AllocatorEntry {
        let function = FUNCTIONS.iter().position(|function| function.0 == name);
        AllocatorEntry {
            address: 0,
            function: function.unwrap(),
            original: PUSH_RBP,
        }
    }

    fn called_with(first: u64, second: u64, third: u64) -> Registers {
        // SAFETY: registers are plain numbers.
        let registers: Registers = unsafe { std::mem::zeroed() };
        Registers {
            rdi: first,
            rsi: second,
            rdx: third,
            ..registers
        }
    }

    #[test]
    fn requests_are_read_from_the_arguments() {
        for (name, arguments, expected) in [
            ("malloc", (7, 9, 9), Request::Bytes(7)),
            ("malloc", (ADDRESSES, 0, 0), Request::Other),
            ("calloc", (3, 5, 9), Request::Bytes(15)),
            ("calloc", (u64::MAX, 2, 9), Request::Other),
            ("realloc", (1, 5, 9), Request::Bytes(5)),
            ("reallocarray", (1, 5, 9), Request::Bytes(45)),
            ("aligned_alloc", (64, 5, 9), Request::Bytes(5)),
            ("aligned_alloc", (63, 5, 9), Request::Other),
            ("posix_memalign", (1, 64, 9), Request::Bytes(9)),
            ("posix_memalign", (1, 4, 9), Request::Other),
            ("free", (1, 0, 0), Request::Other),
        ] {
            let registers = called_with(arguments.0, arguments.1, arguments.2);
            assert_eq!(stop(name).request(&registers), expected, "{name}");
        }
    }

    #[test]
    fn a_request_that_is_to_fail_asks_for_too_much() {
        for (name, _, _) in FUNCTIONS.iter().take_while(|f| f.1 != Shape::Free) {
            let mut registers = called_with(64, 64, 64);
            stop(name).fail(&mut registers);
            assert_eq!(stop(name).request(&registers), Request::Other, "{name}");
        }
    }

    #[test]
    fn blocks_are_counted_while_they_are_there() {
        let mut heap = Heap::default();
        heap.add(100, 10);
        heap.add(200, 20);
        heap.remove(100);
        heap.remove(100);
        assert_eq!(heap.bytes, 20);
        heap.add(200, 5);
        assert_eq!(heap.bytes, 5);
    }
}
