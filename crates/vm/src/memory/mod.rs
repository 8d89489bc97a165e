//! The memory of a process: objects found by address, with every access bounds-checked.
//!
//! A memory is a value: a clone is O(1) and shares everything that neither side has written since.

mod buffer;
mod fixed;
mod journal;
mod mapping;
mod merging;
mod object;
mod region;
mod table;

pub(crate) use buffer::MEMORY_OF_SYMBOLIC;
pub use buffer::{Buffer, PAGE, made_bytes};
pub use journal::{JournaledWrites, SymbolicWrite};
pub use mapping::{BREAK_END, BREAK_START, Mapping, Placement};
pub use merging::Merge;
pub use object::{Object, ObjectKind, join_bytes};
pub use region::{Backing, FileView, MappingTraits, OnFork, Pages, Protection, WrittenPages};

use everett_expr::{Arena, VisitTerms};
use everett_ir::address::{CLASS_COUNT, Slot, class_for, slots_in};
use everett_ir::code::Program;
use triomphe::Arc;

use crate::bug::{Bug, BugKind, bytes};
use crate::races::Races;
use crate::stacks::StackId;
use crate::value::Value;
use crate::writes::WriteLog;
use table::Table;

/// Maximum number of threads with their own stacks in one process.
pub const MAX_STACKS: u32 = 256;

/// Number of popped stack slots of a size class whose addresses are not reused yet: a pointer into
/// a frame that has returned must not point into the next one.
const STACK_QUARANTINE: u32 = 64;

/// An access that the memory denies.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct AccessFault {
    /// The address.
    pub address: u64,
    /// Number of bytes accessed.
    pub len: u64,
    /// Whether the access is a write.
    pub write: bool,
}

#[derive(Clone, Debug)]
struct Tables {
    /// Globals, heap blocks and mappings, by size class.
    shared: [Table; CLASS_COUNT],
    /// Stack slots, by thread and size class.
    stacks: Vec<[Table; CLASS_COUNT]>,
    /// Mappings below and above all slots.
    outside: [Option<Object>; 2],
    /// Objects at addresses that the program chose, outside of all slots, ordered by address.
    fixed: Vec<Object>,
}

impl Tables {
    /// Returns the objects outside of all slots.
    fn others(&self) -> impl Iterator<Item = &Object> {
        self.outside.iter().flatten().chain(&self.fixed)
    }
}

/// The memory of a process.
#[derive(Clone, Debug)]
pub struct Memory {
    tables: Arc<Tables>,
    /// Total size of live heap blocks and mappings.
    heap_bytes: u64,
    /// The largest value that it ever had.
    peak_bytes: u64,
    /// Bytes of mappings that do not count as memory in use: reservations and files.
    reserved_bytes: u64,
    /// Bytes of heap blocks and of private writable mappings.
    data_bytes: u64,
    /// Number of runs of mapped pages with individual attributes.
    runs: u64,
    /// Addresses of the objects that map files.
    viewers: Vec<u64>,
    /// Ranges that may have pages which children do not get, or not as they are.
    fork_advice: Vec<(u64, u64)>,
    /// The address below which new mappings above the slots are placed.
    lowest: u64,
    /// Number of times that new memory was made symbolic.
    pub(crate) unwritten: u32,
    /// The access history for race detection.
    pub(crate) races: Arc<Races>,
    /// The last write to each byte, if writes are logged.
    pub writes: Arc<WriteLog>,
}

fn no_tables() -> [Table; CLASS_COUNT] {
    std::array::from_fn(|_| Table::default())
}

/// Returns the number of stack slots per thread in a size class. Stack slots occupy the upper half
/// of a size class, divided among the threads.
fn stack_slots_per_thread(class: u32) -> u32 {
    (slots_in(class) / 2 / u64::from(MAX_STACKS)).max(1) as u32
}

fn first_stack_slot(class: u32) -> u32 {
    (slots_in(class) / 2) as u32
}

/// Returns the table that contains a slot (the thread of a stack, or `None`) and the index of the
/// slot there.
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
    /// Creates the initial memory of a program.
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
                fixed: Vec::new(),
            }),
            heap_bytes: 0,
            peak_bytes: 0,
            reserved_bytes: 0,
            data_bytes: 0,
            runs: 0,
            viewers: Vec::new(),
            fork_advice: Vec::new(),
            lowest: mapping::TOP,
            unwritten: 0,
            races: Arc::new(Races::default()),
            writes: Arc::new(WriteLog::default()),
        }
    }

    /// Creates an empty memory.
    pub fn empty() -> Memory {
        Memory {
            tables: Arc::new(Tables {
                shared: no_tables(),
                stacks: Vec::new(),
                outside: [None, None],
                fixed: Vec::new(),
            }),
            heap_bytes: 0,
            peak_bytes: 0,
            reserved_bytes: 0,
            data_bytes: 0,
            runs: 0,
            viewers: Vec::new(),
            fork_advice: Vec::new(),
            lowest: mapping::TOP,
            unwritten: 0,
            races: Arc::new(Races::default()),
            writes: Arc::new(WriteLog::default()),
        }
    }

    /// Ends the lifetime of a thread-local global.
    pub fn end_thread_local(&mut self, start: u64) {
        if let Some(object) = self.near_mut(start) {
            object.kill(None);
        }
    }

    /// Total size of live heap blocks and mappings.
    pub fn heap_bytes(&self) -> u64 {
        self.heap_bytes
    }

    /// Returns the largest total size that live heap blocks and mappings ever had.
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes.max(self.heap_bytes)
    }

    /// Starts to look for the largest total size anew, in the memory of a new process.
    pub fn reset_peak(&mut self) {
        self.peak_bytes = 0;
    }

    /// Returns whether neither this memory nor `copy`, its clone, was written since the clone was
    /// made.
    pub fn is_unchanged_since(&self, copy: &Memory) -> bool {
        Arc::ptr_eq(&self.tables, &copy.tables)
    }

    /// Returns the number of bytes of the address space that blocks and mappings take.
    pub fn address_space(&self) -> u64 {
        self.heap_bytes + self.reserved_bytes
    }

    /// Returns the number of bytes that heap blocks and private writable mappings take.
    pub fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    /// Returns the number of runs of mapped pages with individual attributes. Private memory that
    /// never had other attributes does not count, because a kernel joins such mappings.
    pub fn mapped_runs(&self) -> u64 {
        self.runs
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

    /// Returns the object whose slot contains this address, dead or alive; the address may be out
    /// of its bounds.
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

    /// Returns the live object that contains these bytes.
    #[inline(always)]
    pub fn object_at(&self, address: u64, len: u64) -> Option<&Object> {
        let object = self.near(address)?;
        let inside = address.wrapping_sub(object.start);
        (inside <= object.size && len <= object.size - inside && object.allows(inside, len, false))
            .then_some(object)
    }

    /// Returns the live object that contains these bytes, for writing; `None` also if it is not
    /// writable.
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

    /// Allocates an object that lives until it is freed. Returns `None` if the address space is
    /// exhausted.
    pub fn allocate(&mut self, size: u64, align: u64, kind: ObjectKind) -> Option<&mut Object> {
        let class = class_for(size, align)?;
        let table = self.table_mut(None, class)?;
        // Mappings at requested addresses may already occupy the next slots.
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
            self.data_bytes += size;
        }
        self.near_mut(start)
    }

    /// Orders all operations of a thread that has ended before the next operations of the thread
    /// that joined it.
    pub fn join_threads(&mut self, thread: u32, ended: u32) {
        if thread != ended {
            Arc::make_mut(&mut self.races).join(thread, ended);
        }
    }

    /// Allocates a stack slot of a thread. Returns `None` if its stack is full.
    pub fn push_stack(&mut self, thread: u32, size: u64, align: u64) -> Option<u64> {
        let class = class_for(size, align)?;
        let tables = Arc::make_mut(&mut self.tables);
        while tables.stacks.len() <= thread as usize {
            tables.stacks.push(no_tables());
        }
        let table = &mut tables.stacks[thread as usize][class as usize];
        let per_thread = stack_slots_per_thread(class);
        if table.retired >= STACK_QUARANTINE || table.next >= per_thread / 2 {
            table.reuse_popped();
        }
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

    /// Returns the thread whose stack contains an address.
    pub fn stack_of(&self, address: u64) -> Option<u32> {
        let (stack, _) = locate(Slot::of(address)?);
        stack.map(|thread| thread as u32)
    }

    /// Ends the lifetime of the stack slot at `start` and returns its size. Slots are popped in
    /// reverse order of allocation.
    pub fn pop_stack(&mut self, start: u64) -> u64 {
        let Some(slot) = Slot::of(start) else {
            return 0;
        };
        let (stack, index) = locate(slot);
        let Some(table) = self.table_mut(stack, slot.class) else {
            return 0;
        };
        table.retired += 1;
        match table.get_mut(index) {
            Some(object) => {
                object.kill(None);
                object.size
            }
            None => 0,
        }
    }

    /// Ends the scope of the variable in the stack slot at `start`: the variable is dead until its
    /// scope begins again.
    pub fn end_scope(&mut self, start: u64) {
        if let Some(slot) = self.stack_slot_mut(start) {
            slot.end_scope();
        }
    }

    /// Begins the scope of the variable in the stack slot at `start`; returns `false` if the scope
    /// had not ended.
    pub fn begin_scope(&mut self, start: u64) -> bool {
        self.stack_slot_mut(start).is_some_and(Object::begin_scope)
    }

    /// Returns the stack slot at `start`. A slot on an alternate stack is part of another object.
    fn stack_slot_mut(&mut self, start: u64) -> Option<&mut Object> {
        let is_its =
            |object: &&mut Object| object.start == start && object.kind == ObjectKind::Stack;
        self.near_mut(start).filter(is_its)
    }

    /// Frees the heap block or mapping that starts here.
    pub fn free(&mut self, start: u64, kind: ObjectKind, by: Option<StackId>) -> Result<(), Bug> {
        match self.near(start) {
            Some(object) if object.start == start && object.kind == kind && object.is_live() => {
                let footprint = object.footprint();
                self.peak_bytes = self.peak_bytes();
                self.heap_bytes -= footprint.counted;
                self.data_bytes -= footprint.data;
                if let Some(object) = self.near_mut(start) {
                    object.kill(by);
                }
                Ok(())
            }
            near => Err(bad_free(near, start, kind)),
        }
    }

    /// Reads a text up to its NUL. Bytes behind it are 0, and symbolic bytes a control character.
    /// Returns `false` if there is no memory.
    pub fn read_text(&self, address: u64, into: &mut [u8]) -> bool {
        const SYMBOLIC: u8 = 1;
        into.fill(0);
        let mut byte = Vec::with_capacity(1);
        for (offset, place) in (0..).zip(&mut *into) {
            let at = address.saturating_add(offset);
            let Some(object) = self.object_at(at, 1) else {
                return offset > 0;
            };
            byte.clear();
            let is_concrete = object.read_concrete(at - object.start, 1, &mut byte);
            *place = if is_concrete { byte[0] } else { SYMBOLIC };
            if *place == 0 {
                break;
            }
        }
        true
    }

    /// Loads `len` (1 to 8) bytes.
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

    /// Stores `len` (1 to 8) bytes. A term must be `8 * len` bits wide.
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

    /// Returns the finding for an access that faulted.
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
            (false, ObjectKind::Stack) if object.has_ended() => BugKind::UseAfterScope,
            (false, ObjectKind::Stack | ObjectKind::Arguments) => BugKind::UseAfterReturn,
            (true, ObjectKind::Arguments) if !write => BugKind::MissingArgument,
            (false, _) => BugKind::UseAfterFree,
            (true, ObjectKind::Constant) if write && inside => BugKind::ReadOnlyWrite,
            (true, _) => BugKind::OutOfBounds,
        };
        // Unmapped and constant memory also faults natively.
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
        let message = match kind {
            BugKind::MissingArgument => "va_arg behind the last argument".to_owned(),
            _ => format!(
                "{verb} of {} {at} a {what} of {}{dead}",
                bytes(len),
                bytes(size)
            ),
        };
        Bug {
            allocated: object.allocated,
            freed: object.freed,
            address: faults.then_some(address),
            ..Bug::new(kind, message)
        }
    }

    /// Returns all live objects of a kind, ordered by address.
    pub fn live_objects(&self, kind: ObjectKind) -> impl Iterator<Item = &Object> {
        let tables = self.tables.shared.iter();
        tables
            .flat_map(|table| table.iter())
            .chain(self.tables.others())
            .filter(move |object| object.kind == kind && object.is_live())
    }

    /// Returns the start and size of all live objects that can contain an access of `len` bytes at
    /// an address from `min` to `max`, ordered by address.
    pub fn live_between(&self, min: u64, max: u64, len: u64) -> Vec<(u64, u64)> {
        let stacks = self.tables.stacks.iter().flat_map(|tables| tables.iter());
        let tables = self.tables.shared.iter().chain(stacks);
        let objects = tables
            .flat_map(|table| table.iter())
            .chain(self.tables.others())
            .filter(|object| object.is_live());
        let mut objects: Vec<(u64, u64)> = objects
            .flat_map(mapping::stretches)
            .filter(|(_, size)| *size >= len)
            .filter(|(start, size)| *start <= max && start + (size - len) >= min)
            .collect();
        objects.sort_unstable();
        objects
    }

    /// Visits all terms in memory, as roots for garbage collection.
    pub fn for_each_term(&self, visit: &mut dyn VisitTerms) {
        let stacks = self.tables.stacks.iter().flat_map(|tables| tables.iter());
        for table in self.tables.shared.iter().chain(stacks) {
            for object in table.iter() {
                object.for_each_term(visit);
                object.for_each_journal_term(visit);
            }
        }
        for object in self.tables.others() {
            object.for_each_term(visit);
            object.for_each_journal_term(visit);
        }
    }
}

impl Object {
    fn object_range(&self) -> std::ops::Range<u64> {
        self.start..self.start + self.size
    }
}

/// Describes an address relative to an object ("at offset 3 of", "2 bytes before", "at the end
/// of").
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
        allocated: object.allocated,
        freed: object.freed,
        ..Bug::new(bug, message)
    }
}
