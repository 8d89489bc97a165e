//! Preemption points: instructions before which a thread yields so that other threads may run
//! first.
//!
//! The interpreter loop is instantiated twice, with and without these checks, so a program without
//! preemption points has no overhead.

use everett_ir::code::{Call, Callee};
use triomphe::Arc;

use crate::memory::ObjectKind;
use crate::value::Value;
use crate::vm::{Interrupt, PreemptionPoints, Vm};

/// An access that an instruction is about to make.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Access {
    /// The address.
    pub pointer: Value,
    /// Number of bytes.
    pub len: u64,
    /// Whether the access is a write.
    pub write: bool,
    /// Whether the access is atomic.
    pub atomic: bool,
    /// Whether the kernel performs the access for the program.
    pub by_kernel: bool,
}

impl Vm<'_> {
    /// Returns whether the loop that checks every access is needed.
    pub(crate) fn is_watched(&self) -> bool {
        self.points != PreemptionPoints::None || self.records_accesses()
    }

    /// Returns whether accesses are recorded, for race detection or in the write log.
    pub(crate) fn records_accesses(&self) -> bool {
        self.checks_races() || self.options.log_writes
    }

    /// Yields once before an access that is a preemption point.
    #[inline(never)]
    pub(crate) fn watch(&mut self, access: Access) -> Result<(), Interrupt> {
        let is_point = match self.points {
            PreemptionPoints::None => false,
            PreemptionPoints::Atomics => access.atomic && self.others_reach(access.pointer),
            PreemptionPoints::Memory => {
                (access.atomic || self.is_shared(access.pointer))
                    && self.others_reach(access.pointer)
            }
        };
        if is_point && !self.thread.passed_preemption_point {
            self.thread.passed_preemption_point = true;
            return Err(Interrupt::PreemptionPoint);
        }
        if self.checks_races() {
            self.check_race(access)?;
        }
        if self.options.log_writes && access.write && access.pointer.term.is_none() {
            self.log_write(access.pointer.bits, access.len);
        }
        Ok(())
    }

    /// Yields once before a call of a built-in operation that accesses shared memory through its
    /// arguments.
    #[inline(never)]
    pub(crate) fn watch_call(&mut self, call: &Call, args: &[Value]) -> Result<(), Interrupt> {
        let is_point = match call.callee {
            Callee::Assembly(index) => {
                let others = args.first().is_some_and(|first| self.others_reach(*first));
                let atomic = self.is_atomic(index) && others;
                atomic || self.points == PreemptionPoints::Memory && self.reaches_shared(args)
            }
            Callee::External(_) => {
                self.points == PreemptionPoints::Memory && self.reaches_shared(args)
            }
            Callee::Function(function) => {
                let is_operation = self.image.code(function).is_none();
                is_operation && self.points == PreemptionPoints::Memory && self.reaches_shared(args)
            }
            Callee::Pointer(_) => false,
        };
        if is_point && !self.thread.passed_preemption_point {
            self.thread.passed_preemption_point = true;
            return Err(Interrupt::PreemptionPoint);
        }
        if let Callee::Assembly(index) = call.callee
            && self.checks_races()
            && self.is_atomic(index)
            && let Some(pointer) = args.first()
        {
            self.check_race(Access {
                pointer: *pointer,
                len: 1,
                write: true,
                atomic: true,
                by_kernel: false,
            })?;
        }
        Ok(())
    }

    /// Returns whether a piece of inline assembly is an atomic access.
    fn is_atomic(&self, assembly: u32) -> bool {
        let assembly = self.image.program().assembly.get(assembly as usize);
        assembly.is_some_and(|assembly| {
            let template = assembly.template.as_str();
            template.contains("lock") || template.trim_start().starts_with("xchg")
        })
    }

    /// Returns whether an argument points to shared memory. System calls are preemption points
    /// themselves, so they do not count.
    fn reaches_shared(&self, args: &[Value]) -> bool {
        args.iter()
            .any(|arg| arg.term.is_none() && self.is_shared(*arg) && self.others_reach(*arg))
    }

    /// Returns whether other threads can reach the memory. If the process has only one thread, this
    /// is memory that processes share.
    fn others_reach(&self, pointer: Value) -> bool {
        let shared = |address| self.memory.shared_file_offset(address).is_some();
        !self.alone || pointer.term.is_some() || shared(pointer.bits)
    }

    /// Returns whether several threads can reach the memory: everything except constants, the
    /// thread's own stack and thread-local memory.
    fn is_shared(&self, pointer: Value) -> bool {
        let address = match pointer.term {
            None => pointer.bits,
            Some(term) => match self.constant_part(term, 8) {
                Some(address) => address,
                None => return true,
            },
        };
        let Some(object) = self.memory.near(address) else {
            return false;
        };
        match object.kind {
            ObjectKind::Constant => false,
            ObjectKind::Stack | ObjectKind::Arguments => {
                self.memory.stack_of(address) != Some(self.thread.number)
            }
            _ => {
                let inside = address.wrapping_sub(object.start);
                let (offset, size) = object.extent(inside).unwrap_or((0, object.size));
                !self.is_own(object.start + offset, size)
            }
        }
    }

    /// Returns whether this is a thread-local variable of the thread, or the block that `%fs`
    /// points to.
    fn is_own(&self, start: u64, size: u64) -> bool {
        self.thread.fs_base.wrapping_sub(start) < size
            || self.thread.locals.iter().any(|local| local.1 == start)
    }
}

impl Vm<'_> {
    /// Logs that the running instruction writes these bytes.
    #[cold]
    pub(crate) fn log_write(&mut self, address: u64, len: u64) {
        let stack = self.stack();
        Arc::make_mut(&mut self.memory.writes).record(address, len, stack);
    }
}
