//! The table of system calls: one row for each, kept beside its handler in its family's file.
//!
//! Dispatch, decoding of arguments and the page of what is modelled derive from the rows.

use std::sync::LazyLock;

use everett_vm::Value;

use crate::errno::Errno;
use crate::kernel::{Kernel, Stop};
use crate::syscalls;

/// What an argument is. All but [`ArgKind::Symbolic`] are made concrete before the handler runs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ArgKind {
    /// A number that decides what happens.
    Int,
    /// A number that is passed on as it is, term or not.
    Symbolic,
    /// A set of flags.
    Flags,
    /// A file descriptor.
    Fd,
    /// An address.
    Pointer,
    /// The address of bytes that keep their terms.
    Buffer,
    /// The address of a path.
    Path,
}

/// Arguments of a system call under way.
pub struct Call {
    /// As the program passed them.
    pub raw: [Value; 6],
    /// Concrete, where the row says so.
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

/// What a handler says: the result, or why there is none.
pub type Answer = Result<Value, Stop>;

/// Executes a system call: asks all it must ask, then changes what it changes, then says the result. It runs
/// again from the start where an answer was missing or where it had to wait.
pub type Handler = for<'k, 'v> fn(&mut Kernel<'k, 'v>, &Call) -> Answer;

/// A system call.
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// Its number on x86-64.
    pub number: u32,
    /// What its arguments are.
    pub args: &'static [ArgKind],
    /// Errors that can be injected.
    pub errnos: &'static [Errno],
    /// What of it is not modelled; empty if nothing is missing.
    pub missing: &'static str,
    /// What it does.
    pub handler: Handler,
}

impl Row {
    /// A system call that is modelled whole.
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
            missing: "",
            handler,
        }
    }

    /// It takes bytes from the program: its buffer is worth showing before it.
    pub fn reads_buffer(&self) -> bool {
        matches!(self.name, "write" | "pwrite64" | "sendto")
    }

    /// It manages memory. The vm's own allocator makes no such calls, that of a native libc does.
    pub fn is_about_memory(&self) -> bool {
        matches!(
            self.name,
            "mmap" | "munmap" | "mprotect" | "brk" | "mremap" | "madvise"
        )
    }

    /// Says what is not modelled.
    pub const fn without(mut self, missing: &'static str) -> Row {
        self.missing = missing;
        self
    }
}

/// Numbers end here.
pub const NUMBERS: usize = 471;

static BY_NUMBER: LazyLock<[Option<&'static Row>; NUMBERS]> = LazyLock::new(|| {
    let mut table = [None; NUMBERS];
    for row in rows() {
        if let Some(entry) = table.get_mut(row.number as usize) {
            *entry = Some(row);
        }
    }
    table
});

/// All system calls that are modelled.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    syscalls::FAMILIES.iter().flat_map(|family| family.iter())
}

/// The row with this number.
pub fn row(number: u64) -> Option<&'static Row> {
    let number = usize::try_from(number).ok()?;
    if let Some(own) = number.checked_sub(everett_vm::HYPERCALL_BASE as usize) {
        let own_or_bootstrap = syscalls::own::ROWS.get(own);
        return own_or_bootstrap.or_else(|| {
            syscalls::bootstrap::ROWS.get(own.checked_sub(syscalls::bootstrap::FIRST)?)
        });
    }
    BY_NUMBER.get(number).copied().flatten()
}
