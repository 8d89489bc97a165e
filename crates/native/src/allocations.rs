//! Allocations of native programs: breakpoints at the entries of the allocator say when memory is asked for, so that
//! the model can let a request fail and count what is in use. Only calls from outside the allocator count, as in the
//! model, which has no inside.

use std::collections::BTreeMap;
use std::path::Path;

use object::{Object, ObjectSymbol, SymbolKind};

use crate::tracee::{Registers, Stopped, Tracee};

/// What makes the processor stop.
const BREAKPOINT: u8 = 0xcc;
/// `push %rbp`, with which most functions begin.
const PUSH_RBP: u8 = 0x55;
/// Where the allocator returns to while it is watched: nothing is ever mapped there.
const RETURN: u64 = 0xe00;
/// So much memory no allocator has: the request fails by itself, as it does where memory is exhausted.
const TOO_MUCH: u64 = 1 << 62;
/// There are not so many addresses: requests for more fail without being asked about.
const ADDRESSES: u64 = 1 << 47;

/// Where a function of the allocator has its arguments, by their numbers.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Shape {
    /// A size.
    Size(usize),
    /// A number of elements and the size of one.
    Product(usize, usize),
    /// An alignment, and a size behind it; the alignment is at least so much.
    Aligned(usize, u64),
    /// Memory is given back.
    Free,
    /// The program ends.
    Exit,
}

/// The family at which the model asks, by name. Where the first argument is a block, it is given back.
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

/// The one that writes the block to where its first argument points, and returns an error.
const POSIX_MEMALIGN: &str = "posix_memalign";

/// The function by which a program bounds its memory.
const BOUNDS: &str = "everett_set_max_heap";

/// How the functions of the runtime of checked builds begin.
const RUNTIME: [&str; 2] = ["__asan_", "everett_checked_"];

/// Where a checked build begins.
const CHECKED: &str = "everett_checked_start";
/// The same for a build that knows what was written.
const INITIALISED: &str = "everett_initialised_start";

/// What allocators keep for themselves begins with one of these names.
const OWN_DATA: [&str; 3] = [
    "heap.SmpAllocator.",
    "heap.PageAllocator.",
    "__malloc_context",
];

/// Where the allocator of a program is.
#[derive(Clone, Default, Debug)]
pub struct Allocator {
    /// What is called there and the byte that the breakpoint stands for, by address in the file.
    entries: BTreeMap<u64, (usize, u8)>,
    /// Where the file says that the program begins.
    entry: u64,
    /// How far from the addresses in the file the program lies in memory.
    bias: u64,
    /// The program bounds its memory: all blocks have to be known.
    bounds: bool,
    /// The program is a checked build.
    pub is_checked: bool,
    /// The program is a checked build that knows what was written.
    pub knows_written: bool,
    /// What the allocator keeps for itself, by addresses in the file.
    own_data: Vec<(u64, u64)>,
    /// Where the runtime of a checked build lies in the file: from its first function to the start of its last.
    runtime: Option<(u64, u64)>,
}

/// A call that the allocator has not returned from.
#[derive(Copy, Clone, Debug)]
pub struct Inside {
    /// Where it returns to.
    back: u64,
    /// Bytes that were asked for.
    bytes: u64,
    /// The block that is given back where the call succeeds.
    old: u64,
    /// Where the new block is written to, if it is not returned.
    place: Option<u64>,
    /// It only gives a block back.
    frees: bool,
}

/// Memory that a process has.
#[derive(Clone, Default, Debug)]
pub struct Heap {
    blocks: BTreeMap<u64, u64>,
    /// Blocks that were given back, as long as nothing else lies where they were.
    freed: BTreeMap<u64, u64>,
    /// Bytes in all blocks.
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

    /// All blocks, with their sizes.
    pub fn blocks(&self) -> impl Iterator<Item = (u64, u64)> {
        self.blocks.iter().map(|(start, size)| (*start, *size))
    }

    /// The block that an address is in, or behind: the end of a block is an address of it too.
    pub fn block_at(&self, address: u64) -> Option<(u64, u64)> {
        let (start, size) = self.blocks.range(..=address).next_back()?;
        (address - start <= *size).then_some((*start, *size))
    }

    /// A block is or was there.
    pub fn had_block_at(&self, address: u64) -> bool {
        let holds = |blocks: &BTreeMap<u64, u64>| {
            let nearest = blocks.range(..=address).next_back();
            nearest.is_some_and(|(start, size)| address - start < *size)
        };
        holds(&self.blocks) || holds(&self.freed)
    }
}

/// A request of a program for memory.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// For so many bytes.
    Bytes(u64),
    /// One that fails by itself, or gives memory back: nobody is asked.
    Other,
}

impl Allocator {
    /// The allocator of a program, by its table of symbols. Empty where the program does not have it in itself.
    pub fn of(program: &Path) -> std::io::Result<Allocator> {
        let bytes = std::fs::read(program)?;
        // What is no program of its own, such as a script, has no allocator.
        let Ok(file) = object::File::parse(&*bytes) else {
            return Ok(Allocator::default());
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
            allocator.knows_written |= name == INITIALISED;
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
        Ok(allocator)
    }

    /// The program asks for memory in a way that can be seen.
    pub fn is_known(&self) -> bool {
        !self.entries.is_empty()
    }

    /// The program can say how much memory it may have: all blocks have to be known from the start.
    pub fn bounds_memory(&self) -> bool {
        self.bounds
    }

    /// How far from the addresses in its file the program of a thread lies.
    pub fn bias_of(&self, tracee: &Tracee) -> std::io::Result<u64> {
        Ok(tracee.start_address()?.wrapping_sub(self.entry))
    }

    /// Puts breakpoints into a program that has not executed anything yet; `knows_all` also where blocks are given
    /// back and where the program ends.
    pub fn watch(&mut self, tracee: &mut Tracee, knows_all: bool) -> std::io::Result<()> {
        self.bias = self.bias_of(tracee)?;
        let bounds = self.bounds || knows_all;
        // Who gives memory back is of interest only where it is counted.
        self.entries
            .retain(|_, (function, _)| match FUNCTIONS[*function].1 {
                Shape::Free => bounds,
                Shape::Exit => knows_all,
                _ => true,
            });
        for (address, (_, original)) in &mut self.entries {
            let address = address.wrapping_add(self.bias);
            let mut byte = [0];
            tracee.look(address, &mut byte);
            *original = byte[0];
            tracee.put(address, &[BREAKPOINT]);
        }
        Ok(())
    }

    /// An address is in what the allocator keeps for itself: that refers to free memory, which may begin where a block ends.
    pub fn keeps(&self, address: u64) -> bool {
        let address = address.wrapping_sub(self.bias);
        let mut own = self.own_data.iter();
        own.any(|(start, end)| (*start..*end).contains(&address))
    }

    /// An address is in the runtime of a checked build.
    pub fn is_in_runtime(&self, address: u64) -> bool {
        let address = address.wrapping_sub(self.bias);
        self.is_checked
            && self
                .runtime
                .is_some_and(|(first, last)| (first..=last).contains(&address))
    }

    /// The function at whose entry a thread stopped.
    pub fn stopped_at(&self, registers: &Registers) -> Option<Stop> {
        let address = registers.rip.wrapping_sub(1);
        let (function, original) = *self.entries.get(&address.wrapping_sub(self.bias))?;
        Some(Stop {
            address,
            function,
            original,
        })
    }
}

/// The program is a build that checks every access to memory.
pub fn is_checked_build(program: &Path) -> bool {
    Allocator::of(program).is_ok_and(|allocator| allocator.is_checked)
}

/// The name of a function. Linkers put a number behind names that they have twice.
fn without_number(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((plain, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => plain,
        _ => name,
    }
}

/// A thread at the entry of a function of the allocator.
#[derive(Copy, Clone, Debug)]
pub struct Stop {
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

impl Stop {
    /// What is asked for.
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

    /// The program ends.
    pub fn is_end(&self) -> bool {
        FUNCTIONS[self.function].1 == Shape::Exit
    }

    /// Lets the request fail: it is made one that no allocator can meet.
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

    /// Lets the thread go in, and stop again when it comes out.
    pub fn enter(&self, tracee: &mut Tracee, registers: &Registers, request: Request) -> Inside {
        let mut back = [0; 8];
        tracee.look(registers.rsp, &mut back);
        tracee.put(registers.rsp, &RETURN.to_le_bytes());
        let (name, shape, gives_back) = FUNCTIONS[self.function];
        Inside {
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

    /// Executes the instruction that the breakpoint stands for.
    pub fn step_over(
        &self,
        tracee: &mut Tracee,
        mut registers: Registers,
    ) -> std::io::Result<Stopped> {
        let pushed = registers.rsp - 8;
        if self.original == PUSH_RBP && tracee.put(pushed, &registers.rbp.to_le_bytes()) {
            registers.rsp = pushed;
            tracee.set_registers(registers)?;
            return Ok(Stopped::Signal(libc::SIGTRAP));
        }
        registers.rip = self.address;
        tracee.set_registers(registers)?;
        tracee.put(self.address, &[self.original]);
        let stopped = tracee.step();
        tracee.put(self.address, &[BREAKPOINT]);
        stopped
    }
}

impl Inside {
    /// Whether a thread comes out of the allocator.
    pub fn has_returned(registers: &Registers) -> bool {
        registers.rip == RETURN
    }

    /// Where a call really returns to, if it seems to return to this address.
    pub fn real_return(&self, back: u64) -> u64 {
        if back == RETURN { self.back } else { back }
    }

    /// Lets the thread go on behind the call.
    pub fn leave(self, tracee: &mut Tracee, heap: &mut Heap) -> std::io::Result<()> {
        let mut registers = tracee.registers()?;
        registers.rip = self.back;
        let block = match self.place {
            None => registers.rax,
            Some(place) if registers.rax == 0 => {
                let mut block = [0; 8];
                tracee.look(place, &mut block);
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

    fn stop(name: &str) -> Stop {
        let function = FUNCTIONS.iter().position(|function| function.0 == name);
        Stop {
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
