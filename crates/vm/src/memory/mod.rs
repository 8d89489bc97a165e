//! The memory of a process: objects, found by address, each checked at every access.
//!
//! A memory is a value: cloning is O(1), and clones share what neither has written since.

mod buffer;
mod mapping;
mod object;
mod region;
mod table;

pub use buffer::{Buffer, PAGE};
pub use mapping::{BREAK_END, BREAK_START, Mapping, Placement};
pub use object::{Object, ObjectKind, join_bytes};
pub use region::{Backing, FileView, MappingTraits, Pages, Protection};

use everett_expr::{Arena, ExprId};
use everett_ir::address::{CLASS_COUNT, Slot, class_for, slots_in};
use everett_ir::code::Program;
use triomphe::Arc;

use crate::bug::{Bug, BugKind, bytes};
use crate::races::Races;
use crate::stacks::StackId;
use crate::value::Value;
use table::Table;

/// Threads that can have stacks of their own in one process.
pub const MAX_STACKS: u32 = 256;

/// Why an access is refused.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct AccessFault {
    /// The address.
    pub address: u64,
    /// How many bytes were wanted.
    pub len: u64,
    /// It was a write.
    pub write: bool,
}

#[derive(Clone, Debug)]
struct Tables {
    /// Globals, heap blocks, mappings, by class.
    shared: [Table; CLASS_COUNT],
    /// Stack slots, by thread and class.
    stacks: Vec<[Table; CLASS_COUNT]>,
    /// Mappings below and above all slots.
    outside: [Option<Object>; 2],
}

/// The memory of a process.
#[derive(Clone, Debug)]
pub struct Memory {
    tables: Arc<Tables>,
    /// Bytes in live heap blocks and mappings.
    heap_bytes: u64,
    /// Addresses of objects that map files.
    viewers: Vec<u64>,
    /// New mappings above the slots are made below this address.
    lowest: u64,
    /// Accesses of threads, where races are looked for.
    pub(crate) races: Arc<Races>,
}

fn no_tables() -> [Table; CLASS_COUNT] {
    std::array::from_fn(|_| Table::default())
}

/// Stack slots lie in the upper half of a class, split between the threads.
fn stack_slots_per_thread(class: u32) -> u32 {
    (slots_in(class) / 2 / u64::from(MAX_STACKS)).max(1) as u32
}

fn first_stack_slot(class: u32) -> u32 {
    (slots_in(class) / 2) as u32
}

/// Where a slot's object is kept: which thread's stack (or `None`), and its number there.
#[inline(always)]
fn locate(slot: Slot) -> (Option<usize>, u32) {
    let first = first_stack_slot(slot.class);
    if slot.index < first {
        return (None, slot.index);
    }
    let per_thread = stack_slots_per_thread(slot.class);
    let within = slot.index - first;
    (Some((within / per_thread) as usize), within % per_thread)
}

impl Memory {
    /// The memory of a program that was just loaded.
    pub fn new(program: &Program) -> Memory {
        let mut shared = no_tables();
        for global in &program.globals {
            let Some(slot) = Slot::of(global.address) else {
                continue;
            };
            let kind = if global.constant {
                ObjectKind::Constant
            } else {
                ObjectKind::Global
            };
            let object = Object::with_bytes(global.address, global.size, kind, &global.bytes);
            shared[slot.class as usize].set(slot.index, object);
        }
        for (class, used) in program.slots_used.iter().enumerate().take(CLASS_COUNT) {
            shared[class].next = *used;
        }
        Memory {
            tables: Arc::new(Tables {
                shared,
                stacks: Vec::new(),
                outside: [None, None],
            }),
            heap_bytes: 0,
            viewers: Vec::new(),
            lowest: mapping::TOP,
            races: Arc::new(Races::default()),
        }
    }

    /// A memory without anything in it.
    pub fn empty() -> Memory {
        Memory {
            tables: Arc::new(Tables {
                shared: no_tables(),
                stacks: Vec::new(),
                outside: [None, None],
            }),
            heap_bytes: 0,
            viewers: Vec::new(),
            lowest: mapping::TOP,
            races: Arc::new(Races::default()),
        }
    }

    /// Ends the life of a thread-local global.
    pub fn end_thread_local(&mut self, start: u64) {
        if let Some(object) = self.near_mut(start) {
            object.kill(None);
        }
    }

    /// Bytes in live heap blocks and mappings.
    pub fn heap_bytes(&self) -> u64 {
        self.heap_bytes
    }

    #[inline(always)]
    fn table(&self, stack: Option<usize>, class: u32) -> Option<&Table> {
        match stack {
            None => Some(&self.tables.shared[class as usize]),
            Some(thread) => self
                .tables
                .stacks
                .get(thread)
                .map(|tables| &tables[class as usize]),
        }
    }

    #[inline(always)]
    fn table_mut(&mut self, stack: Option<usize>, class: u32) -> Option<&mut Table> {
        let tables = Arc::make_mut(&mut self.tables);
        match stack {
            None => Some(&mut tables.shared[class as usize]),
            Some(thread) => tables
                .stacks
                .get_mut(thread)
                .map(|tables| &mut tables[class as usize]),
        }
    }

    /// The object in whose slot this address lies, dead or alive; the address may be outside its bounds.
    #[inline(always)]
    pub fn near(&self, address: u64) -> Option<&Object> {
        let Some(slot) = Slot::of(address) else {
            return self.outside(address);
        };
        let (stack, index) = locate(slot);
        self.table(stack, slot.class)?.get(index)
    }

    #[inline(always)]
    fn near_mut(&mut self, address: u64) -> Option<&mut Object> {
        let Some(slot) = Slot::of(address) else {
            return self.outside_mut(address);
        };
        let (stack, index) = locate(slot);
        self.table_mut(stack, slot.class)?.get_mut(index)
    }

    /// The live object that holds these bytes.
    #[inline(always)]
    pub fn object_at(&self, address: u64, len: u64) -> Option<&Object> {
        let object = self.near(address)?;
        let inside = address.wrapping_sub(object.start);
        (inside <= object.size && len <= object.size - inside && object.allows(inside, len, false))
            .then_some(object)
    }

    /// The same for writing; `None` also where it cannot be written.
    #[inline(always)]
    pub fn object_at_mut(&mut self, address: u64, len: u64) -> Option<&mut Object> {
        let object = self.near_mut(address)?;
        let inside = address.wrapping_sub(object.start);
        (inside <= object.size
            && len <= object.size - inside
            && object.kind != ObjectKind::Constant
            && object.allows(inside, len, true))
        .then_some(object)
    }

    /// Makes an object that lives until it is freed. `None` if no address can be had.
    pub fn allocate(&mut self, size: u64, align: u64, kind: ObjectKind) -> Option<&mut Object> {
        let class = class_for(size, align)?;
        let table = self.table_mut(None, class)?;
        // Mappings at addresses that were asked for may be ahead.
        while table.get(table.next).is_some() {
            table.next += 1;
        }
        let index = table.next;
        if index >= first_stack_slot(class) {
            return None;
        }
        table.next += 1;
        let start = Slot { class, index }.start(align);
        table.set(index, Object::zeroed(start, size, kind));
        if matches!(kind, ObjectKind::Heap | ObjectKind::Mapping) {
            self.heap_bytes += size;
        }
        self.near_mut(start)
    }

    /// Makes a stack slot of a thread. `None` if its stack is full.
    pub fn push_stack(&mut self, thread: u32, size: u64, align: u64) -> Option<u64> {
        let class = class_for(size, align)?;
        let tables = Arc::make_mut(&mut self.tables);
        while tables.stacks.len() <= thread as usize {
            tables.stacks.push(no_tables());
        }
        let table = &mut tables.stacks[thread as usize][class as usize];
        let per_thread = stack_slots_per_thread(class);
        if thread >= MAX_STACKS || table.next >= per_thread {
            return None;
        }
        let index = table.next;
        table.next += 1;
        let slot = Slot {
            class,
            index: first_stack_slot(class) + thread * per_thread + index,
        };
        let start = slot.start(align);
        table.set(index, Object::zeroed(start, size, ObjectKind::Stack));
        Some(start)
    }

    /// The thread in whose stack an address lies.
    pub fn stack_of(&self, address: u64) -> Option<u32> {
        let (stack, _) = locate(Slot::of(address)?);
        stack.map(|thread| thread as u32)
    }

    /// Ends the life of the stack slot at `start` and tells its size; slots die in the reverse order of
    /// their making.
    pub fn pop_stack(&mut self, start: u64) -> u64 {
        let Some(slot) = Slot::of(start) else {
            return 0;
        };
        let (stack, index) = locate(slot);
        let Some(table) = self.table_mut(stack, slot.class) else {
            return 0;
        };
        table.next = index;
        match table.get_mut(index) {
            Some(object) => {
                object.kill(None);
                object.size
            }
            None => 0,
        }
    }

    /// Ends the life of a heap block or mapping that starts here.
    pub fn free(&mut self, start: u64, kind: ObjectKind, by: Option<StackId>) -> Result<(), Bug> {
        match self.near(start) {
            Some(object) if object.start == start && object.kind == kind && object.is_live() => {
                self.heap_bytes -= object.counted_bytes();
                if let Some(object) = self.near_mut(start) {
                    object.kill(by);
                }
                Ok(())
            }
            near => Err(bad_free(near, start, kind)),
        }
    }

    /// Reads `len` (1 to 8) bytes.
    #[inline(always)]
    pub fn load(&self, arena: &mut Arena, address: u64, len: usize) -> Result<Value, AccessFault> {
        match self.object_at(address, len as u64) {
            Some(object) if object.size_term.is_none() => {
                Ok(object.load(arena, address - object.start, len))
            }
            _ => Err(AccessFault {
                address,
                len: len as u64,
                write: false,
            }),
        }
    }

    /// Writes `len` (1 to 8) bytes. A term must be `8 * len` bits wide.
    #[inline(always)]
    pub fn store(
        &mut self,
        arena: &mut Arena,
        address: u64,
        len: usize,
        value: Value,
    ) -> Result<(), AccessFault> {
        match self.object_at_mut(address, len as u64) {
            Some(object) if object.size_term.is_none() => {
                let offset = address - object.start;
                object.store(arena, offset, len, value);
                Ok(())
            }
            _ => Err(AccessFault {
                address,
                len: len as u64,
                write: true,
            }),
        }
    }

    /// What is wrong with an access that faulted, for people.
    pub fn explain(&self, fault: AccessFault) -> Bug {
        let AccessFault {
            address,
            len,
            write,
        } = fault;
        let verb = if write { "write" } else { "read" };
        if address < 0x10000 {
            let message = format!(
                "{verb} of {} at null pointer (address {address:#x})",
                bytes(len)
            );
            return Bug::new(BugKind::NullPointer, message).at(address);
        }
        let Some(object) = self.near(address) else {
            let message = format!(
                "{verb} of {} at address {address:#x}, where nothing is",
                bytes(len)
            );
            return Bug::new(BugKind::WildPointer, message).at(address);
        };
        if object.region().is_some() {
            return mapping::explain(object, fault);
        }
        let size = object.size;
        let what = object.kind.noun();
        let at = position(object, address);
        let inside = object.object_range().contains(&address) || size == 0;
        let kind = match (object.is_live(), object.kind) {
            (false, ObjectKind::Stack) => BugKind::UseAfterReturn,
            (false, _) => BugKind::UseAfterFree,
            (true, ObjectKind::Constant) if write && inside => BugKind::ReadOnlyWrite,
            (true, _) => BugKind::OutOfBounds,
        };
        // What was unmapped and what is constant is guarded by the processor too.
        let faults = match kind {
            BugKind::ReadOnlyWrite => true,
            BugKind::UseAfterFree => object.kind == ObjectKind::Mapping,
            _ => false,
        };
        let dead = if object.is_live() {
            ""
        } else {
            " that is no longer there"
        };
        let message = format!(
            "{verb} of {} {at} a {what} of {}{dead}",
            bytes(len),
            bytes(size)
        );
        Bug {
            kind,
            message,
            allocated: object.allocated,
            freed: object.freed,
            other: None,
            address: faults.then_some(address),
        }
    }

    /// All live objects of a kind, by address.
    pub fn live_objects(&self, kind: ObjectKind) -> impl Iterator<Item = &Object> {
        let tables = self.tables.shared.iter();
        tables
            .flat_map(|table| table.iter())
            .chain(self.tables.outside.iter().flatten())
            .filter(move |object| object.kind == kind && object.is_live())
    }

    /// Start and size of all live objects that an access of `len` bytes to an address from `min` to `max` can be
    /// inside of, by address.
    pub fn live_between(&self, min: u64, max: u64, len: u64) -> Vec<(u64, u64)> {
        let stacks = self.tables.stacks.iter().flat_map(|tables| tables.iter());
        let tables = self.tables.shared.iter().chain(stacks);
        let objects = tables
            .flat_map(|table| table.iter())
            .chain(self.tables.outside.iter().flatten())
            .filter(|object| object.is_live());
        let mut objects: Vec<(u64, u64)> = objects
            .flat_map(mapping::stretches)
            .filter(|(_, size)| *size >= len)
            .filter(|(start, size)| *start <= max && start + (size - len) >= min)
            .collect();
        objects.sort_unstable();
        objects
    }

    /// All terms in memory, for marking what is alive.
    pub fn for_each_term(&self, visit: &mut dyn FnMut(ExprId)) {
        let stacks = self.tables.stacks.iter().flat_map(|tables| tables.iter());
        for table in self.tables.shared.iter().chain(stacks) {
            for object in table.iter() {
                object.for_each_term(visit);
            }
        }
        for object in self.tables.outside.iter().flatten() {
            object.for_each_term(visit);
        }
    }
}

impl Object {
    fn object_range(&self) -> std::ops::Range<u64> {
        self.start..self.start + self.size
    }
}

/// "at offset 3 of", "2 bytes before", "at the end of": for messages.
fn position(object: &Object, address: u64) -> String {
    let end = object.start + object.size;
    if address < object.start {
        format!("{} before", bytes(object.start - address))
    } else if address >= end {
        format!("{} past the end of", bytes(address - end))
    } else {
        format!("at offset {} of", address - object.start)
    }
}

fn bad_free(near: Option<&Object>, start: u64, kind: ObjectKind) -> Bug {
    let Some(object) = near else {
        let message = format!("free of address {start:#x}, which was never allocated");
        return Bug::new(BugKind::InvalidFree, message);
    };
    let (bug, message) = if object.kind != kind {
        (
            BugKind::InvalidFree,
            format!("free of a {}", object.kind.noun()),
        )
    } else if !object.is_live() {
        (
            BugKind::DoubleFree,
            format!("second free of a {} of {}", kind.noun(), bytes(object.size)),
        )
    } else {
        let at = position(object, start);
        (
            BugKind::InvalidFree,
            format!(
                "free of a pointer {at} a {} of {}",
                kind.noun(),
                bytes(object.size)
            ),
        )
    };
    Bug {
        kind: bug,
        message,
        allocated: object.allocated,
        freed: object.freed,
        other: None,
        address: None,
    }
}
