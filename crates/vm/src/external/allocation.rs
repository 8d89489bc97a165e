//! malloc and its family, and the Rust allocator's entry points that forward to them.

use everett_expr::ExprId;

use super::{Operation, replaced};
use crate::bug::{Bug, BugKind};
use crate::call_arguments::ShownArgument;
use crate::choice::ChoiceSite;
use crate::memory::ObjectKind;
use crate::oracle::Note;
use crate::value::Value;
use crate::vm::{Arguments, Done, Interrupt, Vm};

/// Alignment of malloc results.
const MALLOC_ALIGN: u64 = 16;

/// Size of the user address space.
const ADDRESSES: u64 = 1 << 47;

/// Size of allocations that KLEE warns of.
const LARGE: u64 = 10 << 20;
/// Factor between successive bounds that are tried for a symbolic size.
const SIZE_STEP: u64 = 16;
/// Offset of musl's `errno` in the block that `%fs` points to.
const ERRNO_OFFSET: u64 = 52;
const ENOMEM: u64 = 12;
const EINVAL: u64 = 22;

/// The operations of this family.
pub const OPERATIONS: &[Operation] = &[
    replaced("malloc", malloc),
    replaced("calloc", calloc),
    replaced("realloc", realloc),
    replaced("reallocarray", reallocarray),
    replaced("free", free),
    replaced("aligned_alloc", aligned_alloc),
    replaced("memalign", aligned_alloc),
    replaced("__libc_memalign", aligned_alloc),
    replaced("posix_memalign", posix_memalign),
    replaced("valloc", valloc),
    replaced("malloc_usable_size", malloc_usable_size),
    // musl's internal names, called from within the libc.
    replaced("__libc_malloc", malloc),
    replaced("__libc_malloc_impl", malloc),
    replaced("__libc_calloc", calloc),
    replaced("__libc_realloc", realloc),
    replaced("__libc_free", free),
    replaced("__simple_malloc", malloc),
];

impl Vm<'_> {
    /// Finds an upper bound for a symbolic size, and the size term if it stays symbolic. Tests
    /// bounds in coarse steps, starting with the user's limit. All sizes over `limit` are one path,
    /// with the bound `u64::MAX`.
    pub(crate) fn bound_size(
        &mut self,
        size: ExprId,
        limit: u64,
    ) -> Result<(u64, Option<ExprId>), Interrupt> {
        if let Some(size) = self.arena.as_const(size) {
            return Ok((size, None));
        }
        let (_, max) = self.arena.unsigned_range(size);
        let mut bound = self.options.max_symbolic_size.clamp(1, limit.max(1));
        loop {
            if max <= bound {
                return Ok((max, Some(size)));
            }
            let bound_term = self.arena.constant(64, bound);
            let fits = self.arena.ule(size, bound_term);
            if self.decide_term(fits)? {
                return Ok((bound, Some(size)));
            }
            if bound >= limit {
                return Ok((u64::MAX, None));
            }
            bound = bound.saturating_mul(SIZE_STEP).min(limit);
        }
    }

    /// Allocates a heap block, or returns null if memory is exhausted. All queries to the oracle
    /// come before the first change.
    fn heap_block(&mut self, size: Value, align: u64) -> Result<Value, Interrupt> {
        let limit = self.options.max_allocation;
        let (bytes, size_term) = match size.term {
            // Larger than the address space: programs request this to provoke a failure.
            None if size.bits >= ADDRESSES => return Ok(self.exhausted()),
            None => (size.bits, None),
            Some(_) => {
                let size = size.to_term(self.arena, 64);
                self.bound_size(size, limit)?
            }
        };
        if bytes > limit {
            let message = match size.term {
                None => format!("allocation of {}", crate::bug::bytes(bytes)),
                Some(_) => format!(
                    "allocation of a symbolic size of more than {}",
                    crate::bug::bytes(limit)
                ),
            };
            return Err(Bug::new(BugKind::HugeAllocation, message).into());
        }
        if self.malloc_faults > 0 && self.choose_allocation_fault(size)? {
            self.malloc_faults -= 1;
            self.function_faults.left = self.function_faults.left.saturating_sub(1);
            let stack = self.stack();
            self.failed_allocations.push(stack);
            return Ok(self.exhausted());
        }
        if self.memory.heap_bytes().saturating_add(bytes) > self.max_heap {
            self.reached_max_heap = true;
            return Ok(self.exhausted());
        }
        if self.memory.address_space().saturating_add(bytes) > self.max_address_space
            || self.memory.data_bytes().saturating_add(bytes) > self.max_data
        {
            return Ok(self.exhausted());
        }
        if bytes > LARGE && size_term.is_none() {
            let size = crate::bug::bytes(bytes);
            let note = format!("Large memory allocation ({size}). KLEE may run out of memory.");
            self.note(Note::WarningOnce(note));
        }
        let stack = self.stack();
        match self.memory.allocate(bytes, align, ObjectKind::Heap) {
            Some(object) => {
                object.allocated = stack;
                object.size_term = size_term;
                let start = object.start;
                self.mark_uninitialised(start, 0);
                Ok(Value::concrete(start))
            }
            None => Ok(self.exhausted()),
        }
    }

    /// Asks the oracle whether an allocation fails.
    fn choose_allocation_fault(&mut self, size: Value) -> Result<bool, Interrupt> {
        let shown = || vec![ShownArgument::Size];
        let picked = self.choose_failure((&ChoiceSite::AllocationFault, 2), shown, &[size])?;
        Ok(picked == 1)
    }

    /// Returns null and sets `errno`.
    fn exhausted(&mut self) -> Value {
        self.set_errno(ENOMEM);
        Value::ZERO
    }

    /// Sets musl's `errno` of the running thread, if the program has one.
    pub(crate) fn set_errno(&mut self, error: u64) {
        if self
            .image
            .program()
            .symbols
            .contains_key("__errno_location")
        {
            let place = self.thread.fs_base.wrapping_add(ERRNO_OFFSET);
            // A thread without a thread-local block has no errno.
            let _ = self
                .memory
                .store(self.arena, place, 4, Value::concrete(error));
        }
    }

    /// Returns `a * b` as a size, or `None` if the product overflows.
    fn size_product(&mut self, a: Value, b: Value) -> Result<Option<Value>, Interrupt> {
        if let (Some(a), Some(b)) = (a.as_concrete(), b.as_concrete()) {
            return Ok(a.checked_mul(b).map(Value::concrete));
        }
        let x = a.to_term(self.arena, 64);
        let y = b.to_term(self.arena, 64);
        let overflow = self.overflows(everett_ir::code::IntOp::Mul, 64, false, x, y);
        if self.decide_term(overflow)? {
            return Ok(None);
        }
        let product = self.arena.mul(x, y);
        Ok(Some(Value::of_term(self.arena, product)))
    }

    fn release(&mut self, pointer: u64) -> Result<(), Interrupt> {
        if pointer == 0 {
            return Ok(());
        }
        let stack = self.stack();
        Ok(self.memory.free(pointer, ObjectKind::Heap, stack)?)
    }
}

fn malloc(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    vm.heap_block(args.get(0), MALLOC_ALIGN).map(Done::Value)
}

fn calloc(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    match vm.size_product(args.get(0), args.get(1))? {
        Some(size) => {
            let block = vm.heap_block(size, MALLOC_ALIGN)?;
            let is_marked = vm.options.check_uninitialised || vm.options.symbolic_memory;
            if is_marked && let Some(object) = vm.memory.object_at_mut(block.bits, 0) {
                object.fill(0, object.size, 0);
            }
            Ok(Done::Value(block))
        }
        None => Ok(Done::Value(vm.exhausted())),
    }
}

fn realloc(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let old = vm.concretize(args.get(0))?;
    reallocate(vm, old, args.get(1)).map(Done::Value)
}

fn reallocarray(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let old = vm.concretize(args.get(0))?;
    match vm.size_product(args.get(1), args.get(2))? {
        Some(size) => reallocate(vm, old, size).map(Done::Value),
        None => Ok(Done::Value(vm.exhausted())),
    }
}

fn reallocate(vm: &mut Vm<'_>, old: u64, size: Value) -> Result<Value, Interrupt> {
    if old == 0 {
        return vm.heap_block(size, MALLOC_ALIGN);
    }
    let old_size = match vm.memory.near(old) {
        Some(object)
            if object.start == old && object.kind == ObjectKind::Heap && object.is_live() =>
        {
            object.size
        }
        // The finding is the same as for `free`.
        _ => {
            vm.release(old)?;
            0
        }
    };
    let new = vm.heap_block(size, MALLOC_ALIGN)?;
    if new.bits != 0 {
        let new_size = vm.memory.near(new.bits).map_or(0, |object| object.size);
        vm.copy_range(new.bits, old, old_size.min(new_size));
        vm.release(old)?;
    }
    Ok(new)
}

fn free(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let pointer = vm.concretize(args.get(0))?;
    vm.release(pointer)?;
    Ok(Done::Void)
}

fn aligned_alloc(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let align = vm.concretize(args.get(0))?;
    if !align.is_power_of_two() {
        vm.set_errno(EINVAL);
        return Ok(Done::Value(Value::ZERO));
    }
    vm.heap_block(args.get(1), align.max(MALLOC_ALIGN))
        .map(Done::Value)
}

fn posix_memalign(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let align = vm.concretize(args.get(1))?;
    if !align.is_power_of_two() || align < 8 {
        return Ok(Done::Value(Value::concrete(EINVAL)));
    }
    let ([place], _) = vm.ranges([(args.get(0), true)], Value::concrete(8))?;
    let block = vm.heap_block(args.get(2), align.max(MALLOC_ALIGN))?;
    if block.bits == 0 {
        return Ok(Done::Value(Value::concrete(ENOMEM)));
    }
    if let Some(object) = vm.memory.object_at_mut(place, 8) {
        let offset = place - object.start;
        object.write_concrete(offset, &block.bits.to_le_bytes());
    }
    Ok(Done::Value(Value::ZERO))
}

fn valloc(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    vm.heap_block(args.get(0), 4096).map(Done::Value)
}

fn malloc_usable_size(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let pointer = vm.concretize(args.get(0))?;
    let size = vm
        .memory
        .near(pointer)
        .filter(|object| object.start == pointer && object.is_live());
    Ok(Done::Value(Value::concrete(
        size.map_or(0, |object| object.size),
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;

    #[test]
    fn blocks_are_apart_aligned_and_zero() {
        let mut harness = Harness::new();
        let none = harness.call_concrete("malloc", &[0]).unwrap();
        let other = harness.call_concrete("malloc", &[0]).unwrap();
        assert!(none != 0 && other != 0 && none != other);
        assert_eq!(harness.call_concrete("free", &[none]), Ok(0));
        let block = harness.call_concrete("calloc", &[3, 5]).unwrap();
        assert_eq!(harness.bytes(block, 15), [0; 15]);
        assert_eq!(block % 16, 0);
        assert_eq!(
            harness.call_concrete("malloc_usable_size", &[block]),
            Ok(15)
        );
        for align in [32, 4096, 1 << 21] {
            let block = harness
                .call_concrete("aligned_alloc", &[align, 100])
                .unwrap();
            assert_eq!(block % align, 0);
        }
        assert_eq!(harness.call_concrete("aligned_alloc", &[24, 100]), Ok(0));
        assert_eq!(harness.call_concrete("memalign", &[1 << 60, 100]), Ok(0));
    }

    #[test]
    fn sizes_that_overflow_give_null_and_huge_ones_are_found() {
        let mut harness = Harness::new();
        assert_eq!(harness.call_concrete("calloc", &[1 << 40, 1 << 40]), Ok(0));
        assert_eq!(harness.call_concrete("malloc", &[u64::MAX]), Ok(0));
        assert_eq!(harness.call_concrete("malloc", &[1 << 47]), Ok(0));
        let huge = harness.call_concrete("malloc", &[1 << 40]);
        assert_eq!(huge, Err(BugKind::HugeAllocation));
        harness.options.max_heap = 100;
        assert_eq!(harness.call_concrete("malloc", &[101]), Ok(0));
        let block = harness.call_concrete("malloc", &[60]).unwrap();
        assert_ne!(block, 0);
        assert_eq!(harness.call_concrete("malloc", &[60]), Ok(0));
        // The old block is unchanged.
        assert_eq!(
            harness.call_concrete("reallocarray", &[block, 1 << 40, 1 << 40]),
            Ok(0)
        );
        assert_eq!(harness.call_concrete("free", &[block]), Ok(0));
    }

    #[test]
    fn large_blocks_are_said() {
        let mut harness = Harness::new();
        assert!(harness.call_concrete("malloc", &[LARGE]).is_ok());
        assert_eq!(harness.world.notes, []);
        let block = harness.call_concrete("malloc", &[(1 << 32) + 1]).unwrap();
        assert_ne!(block, 0);
        let note = "Large memory allocation (4294967297 bytes). KLEE may run out of memory.";
        assert_eq!(harness.world.notes, [Note::WarningOnce(note.to_owned())]);
        let last = Value::concrete(block + (1 << 32));
        harness
            .vm(|vm| vm.store(last, 1, Value::concrete(42)))
            .unwrap();
        assert_eq!(harness.byte(block + (1 << 32)), 42);
    }

    #[test]
    fn realloc_keeps_the_bytes() {
        let mut harness = Harness::new();
        let old = harness.block(b"abcdef");
        harness.make_symbolic(old + 1);
        let new = harness.call_concrete("realloc", &[old, 10]).unwrap();
        assert_eq!(harness.bytes(new, 10), b"abcdef\0\0\0\0");
        assert_eq!(
            harness.call_concrete("free", &[old]),
            Err(BugKind::DoubleFree)
        );
        let shorter = harness.call_concrete("realloc", &[new, 3]).unwrap();
        assert_eq!(harness.bytes(shorter, 3), b"abc");
        let empty = harness.call_concrete("realloc", &[shorter, 0]).unwrap();
        assert_ne!(empty, 0);
        let fresh = harness.call_concrete("realloc", &[0, 4]).unwrap();
        assert_eq!(harness.bytes(fresh, 4), [0; 4]);
        assert_eq!(
            harness.call_concrete("realloc", &[fresh + 1, 4]),
            Err(BugKind::InvalidFree)
        );
        assert_eq!(harness.call_concrete("free", &[0]), Ok(0));
    }

    #[test]
    fn posix_memalign_says_what_is_wrong() {
        let mut harness = Harness::new();
        let place = harness.block(&[0; 8]);
        assert_eq!(
            harness.call_concrete("posix_memalign", &[place, 12, 8]),
            Ok(EINVAL)
        );
        assert_eq!(
            harness.call_concrete("posix_memalign", &[place, 64, 8]),
            Ok(0)
        );
        let block = harness
            .memory
            .load(&mut harness.arena, place, 8)
            .unwrap()
            .bits;
        assert!(block != 0 && block.is_multiple_of(64));
        assert_eq!(
            harness.call_concrete("posix_memalign", &[0, 64, 8]),
            Err(BugKind::NullPointer)
        );
    }

    #[test]
    fn symbolic_sizes_stay_symbolic() {
        for (bytes, extent) in [(10u64, 4096), (5000, 16 * 4096), (1 << 30, 1 << 32)] {
            let mut harness = Harness::new();
            let size = harness.symbolic(bytes, 8);
            let done = harness.call("malloc", &[size]);
            let block = harness.outcome(done).unwrap();
            let object = harness.memory.near(block).unwrap();
            assert_eq!(object.size, extent);
            assert_eq!(object.size_term, size.term);
            let last = harness.vm(|vm| vm.load(Value::concrete(block + bytes - 1), 1));
            assert!(last.is_ok());
            let outside = harness.vm(|vm| vm.load(Value::concrete(block + bytes), 1));
            assert!(matches!(outside, Err(Interrupt::Bug(_))));
        }
        let mut harness = Harness::new();
        let size = harness.symbolic(1 << 50, 8);
        let done = harness.call("malloc", &[size]);
        assert_eq!(harness.outcome(done), Err(BugKind::HugeAllocation));
        assert!(harness.world.questions < 10);
    }
}
