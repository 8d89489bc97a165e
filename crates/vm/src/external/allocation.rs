//! malloc and its family, and the Rust allocator's entry points that end in them.

use everett_expr::ExprId;

use super::{Operation, replaced};
use crate::bug::{Bug, BugKind};
use crate::memory::ObjectKind;
use crate::value::Value;
use crate::vm::{Arguments, Done, Interrupt, Vm};

/// Alignment of what malloc returns.
const MALLOC_ALIGN: u64 = 16;

/// The family.
pub const OPERATIONS: &[Operation] = &[
    replaced("malloc", malloc),
    replaced("calloc", calloc),
    replaced("realloc", realloc),
    replaced("reallocarray", reallocarray),
    replaced("free", free),
    replaced("aligned_alloc", aligned_alloc),
    replaced("memalign", aligned_alloc),
    replaced("posix_memalign", posix_memalign),
    replaced("valloc", valloc),
    replaced("malloc_usable_size", malloc_usable_size),
    // musl's own names for the same, called from inside the libc.
    replaced("__libc_malloc", malloc),
    replaced("__libc_malloc_impl", malloc),
    replaced("__libc_calloc", calloc),
    replaced("__libc_realloc", realloc),
    replaced("__libc_free", free),
    replaced("__simple_malloc", malloc),
];

impl Vm<'_> {
    /// An upper bound for a symbolic size, and the size where it stays symbolic. Sizes over the bound that the
    /// user set are not explored as such: the path goes on with those up to it, and another with one larger.
    pub(crate) fn bound_size(&mut self, size: ExprId) -> Result<(u64, Option<ExprId>), Interrupt> {
        if let Some(size) = self.arena.as_const(size) {
            return Ok((size, None));
        }
        let (_, max) = self.arena.unsigned_range(size);
        if max <= self.options.max_symbolic_size {
            return Ok((max, Some(size)));
        }
        let bound = self.arena.constant(64, self.options.max_symbolic_size);
        let fits = self.arena.ule(size, bound);
        if self.decide_term(fits)? {
            return Ok((self.options.max_symbolic_size, Some(size)));
        }
        Ok((
            self.concretize(Value {
                bits: 0,
                term: Some(size),
            })?,
            None,
        ))
    }

    /// A heap block, or null where memory is exhausted.
    fn heap_block(&mut self, size: Value, align: u64) -> Result<Value, Interrupt> {
        let (bytes, size_term) = match size.term {
            None => (size.bits, None),
            Some(term) => self.bound_size(term)?,
        };
        if bytes > self.options.max_allocation {
            let message = format!("allocation of {bytes} bytes");
            return Err(Bug::new(BugKind::HugeAllocation, message).into());
        }
        if self.memory.heap_bytes().saturating_add(bytes) > self.options.max_heap {
            return Ok(Value::ZERO);
        }
        let stack = self.stack();
        match self.memory.allocate(bytes, align, ObjectKind::Heap) {
            Some(object) => {
                object.allocated = stack;
                object.size_term = size_term;
                Ok(Value::concrete(object.start))
            }
            None => Ok(Value::ZERO),
        }
    }

    /// `a * b` as a size, or `None` where it overflows.
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
        Some(size) => vm.heap_block(size, MALLOC_ALIGN).map(Done::Value),
        None => Ok(Done::Value(Value::ZERO)),
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
        None => Ok(Done::Value(Value::ZERO)),
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
        // The finding is that of free.
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
        return Ok(Done::Value(Value::ZERO));
    }
    vm.heap_block(args.get(1), align.max(MALLOC_ALIGN))
        .map(Done::Value)
}

fn posix_memalign(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    const EINVAL: u64 = 22;
    const ENOMEM: u64 = 12;
    let align = vm.concretize(args.get(1))?;
    if !align.is_power_of_two() || align < 8 {
        return Ok(Done::Value(Value::concrete(EINVAL)));
    }
    let place = vm.concretize(args.get(0))?;
    vm.check_range(place, 8, true)?;
    let block = vm.heap_block(args.get(2), align.max(MALLOC_ALIGN))?;
    if block.bits == 0 {
        return Ok(Done::Value(Value::concrete(ENOMEM)));
    }
    vm.store(Value::concrete(place), 8, block)?;
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
