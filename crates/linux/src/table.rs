//! The system call table: one row for each call, next to its handler in the file of its family.
//!
//! Dispatch, argument decoding, fault injection, the strace log and the documentation page are
//! derived from the rows.

use everett_vm::{SystemCall, Value};

use crate::errno::Errno;
use crate::kernel::{Answer, Kernel, Stop};

/// Type of an argument. All but [`ArgKind::Symbolic`] are concretized before the handler runs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ArgKind {
    /// A number that selects behaviour.
    Int,
    /// A number that may stay symbolic.
    Symbolic,
    /// A set of flags.
    Flags,
    /// A file descriptor.
    Fd,
    /// An address.
    Pointer,
    /// The address of bytes that may be symbolic.
    Buffer,
    /// The address of a path.
    Path,
}

/// Decoded arguments of a system call.
pub struct Call {
    /// Arguments as the program passed them.
    pub raw: [Value; 6],
    /// Concrete arguments, where the row requires them.
    pub args: [u64; 6],
    /// Function and argument with which a new thread starts.
    pub entry: Option<(Value, Value)>,
}

impl Call {
    /// An argument that is an `int`.
    pub fn int(&self, index: usize) -> i32 {
        self.args[index] as i32
    }
}

/// A handler of a system call. It asks the oracle everything first, then changes the tables, then
/// returns the result. It runs again from the start after a question without an answer or a wait.
pub type Handler = for<'k, 'v> fn(&mut Kernel<'k, 'v>, &Call) -> Answer;

/// Whether Linux can fail a call with these arguments with this errno.
pub type CanFail = fn(&Kernel<'_, '_>, &[u64; 6], Errno) -> bool;

/// Properties of system calls, as bits.
pub mod property {
    /// Reads, and can transfer fewer bytes than possible.
    pub const READS: u16 = 1;
    /// Writes, and can transfer fewer bytes than possible.
    pub const WRITES: u16 = 1 << 1;
    /// Waits for descriptors, and can wake up spuriously.
    pub const POLLS: u16 = 1 << 2;
    /// Is a form of `select`, which can fail at intervals.
    pub const SELECTS: u16 = 1 << 3;
    /// Closes a descriptor even if it fails.
    pub const CLOSES: u16 = 1 << 4;
    /// Acquires from every object, since it may report an event of any.
    pub const ACQUIRES_ALL: u16 = 1 << 5;
    /// Acquires from and releases to other threads without a descriptor.
    pub const SIGNALS: u16 = 1 << 6;
    /// Gets bytes of the program: its buffer is logged before the call.
    pub const SHOWS_INPUT: u16 = 1 << 7;
    /// Manages memory. The vm's own allocator makes no such calls, but that of a native libc does.
    pub const MEMORY: u16 = 1 << 8;
    /// Only reads a clock.
    pub const READS_CLOCK: u16 = 1 << 9;
    /// Yields the processor. Polling loops combine it with readings of a clock.
    pub const YIELDS: u16 = 1 << 10;
    /// Concerns only the memory map or the state of the thread that makes it.
    pub const ONE_THREAD: u16 = 1 << 11;
    /// Transfers several messages, each of them whole.
    pub const MESSAGES: u16 = 1 << 12;
}

/// A row of the system call table.
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// Its number on x86-64.
    pub number: u32,
    /// Types of its arguments.
    pub args: &'static [ArgKind],
    /// Errnos that can be injected.
    pub errnos: &'static [Errno],
    /// Selects the errnos with which a call with these arguments can fail.
    pub can_fail: CanFail,
    /// The bits of [`property`].
    pub properties: u16,
    /// What is not modelled; empty if the call is complete.
    pub missing: &'static str,
    /// Its implementation.
    pub handler: Handler,
}

impl Row {
    /// A system call that is modelled completely.
    pub const fn new(
        name: &'static str,
        number: u32,
        args: &'static [ArgKind],
        errnos: &'static [Errno],
        handler: Handler,
    ) -> Row {
        Row {
            name,
            number,
            args,
            errnos,
            can_fail: |_, _, _| true,
            properties: 0,
            missing: "",
            handler,
        }
    }

    /// Adds bits of [`property`].
    pub const fn with(mut self, properties: u16) -> Row {
        self.properties |= properties;
        self
    }

    /// Whether it has one of these bits of [`property`].
    pub fn has(&self, properties: u16) -> bool {
        self.properties & properties != 0
    }

    /// Restricts the errnos by command, flags or kind of descriptor.
    pub const fn fails_where(mut self, can_fail: CanFail) -> Row {
        self.can_fail = can_fail;
        self
    }

    /// Documents what is not modelled.
    pub const fn without(mut self, missing: &'static str) -> Row {
        self.missing = missing;
        self
    }
}

impl Kernel<'_, '_> {
    /// Concretizes the arguments that the row requires to be concrete, then calls the handler.
    pub fn dispatch(&mut self, row: &Row, call: &SystemCall) -> Result<Value, Stop> {
        let raw = call.args;
        let args = self.concrete_arguments(row, call)?;
        let entry = call.entry;
        let ordering = self.ordering_of(row, &args);
        let answer = (row.handler)(self, &Call { raw, args, entry });
        if answer.is_ok() {
            self.order_threads(&ordering);
        }
        answer
    }

    /// The arguments that the row requires to be concrete; the others are 0.
    pub(crate) fn concrete_arguments(
        &mut self,
        row: &Row,
        call: &SystemCall,
    ) -> Result<[u64; 6], Stop> {
        let mut args = [0; 6];
        for (index, kind) in row.args.iter().enumerate().take(args.len()) {
            if *kind != ArgKind::Symbolic {
                args[index] = self.vm.concretize(call.args[index])?;
            }
        }
        Ok(args)
    }
}
