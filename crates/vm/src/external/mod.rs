//! Built-in operations: functions that a program calls but does not define, and functions that the
//! vm replaces.
//!
//! Each family is one file with a function per operation and a table of rows. To add an operation,
//! add one function and one row; CONTRIBUTING.md names the operations that need more.

mod allocation;
mod api;
mod assembly;
mod bytes;
#[cfg(test)]
mod bytes_tests;
mod control;
mod environment;
mod exceptions;
mod failing;
mod intrinsics;
mod jumps;
mod long_double;
mod math;
mod notes;
mod replacement;
mod resolve;
mod sanitizer;
mod scan;
mod strings;
mod subobjects;
mod through;
#[cfg(test)]
mod through_tests;
mod variadic;
mod vectors;

pub use api::{CHECK_MEMORY_ACCESS, MAKE_SYMBOLIC, MISSING_ARGUMENTS, SYMBOLIC_TEXT, TEXT};
pub use assembly::processor;
pub(crate) use failing::intercepted;
pub use replacement::is_within;

use everett_ir::code::{Assembly, Program};
use std::collections::HashMap;
use std::sync::LazyLock;

use crate::vm::Handler;

/// A row of a family's table.
pub struct Operation {
    /// The symbol; for an LLVM intrinsic, its name without type suffixes (`llvm.memcpy`).
    pub name: &'static str,
    /// The implementation.
    pub handler: Handler,
    /// Whether it replaces the program's own definition.
    pub replaces: bool,
}

/// Creates an operation that is used only if the program has no definition.
const fn supplied(name: &'static str, handler: Handler) -> Operation {
    Operation {
        name,
        handler,
        replaces: false,
    }
}

/// Creates an operation that replaces the program's definition.
const fn replaced(name: &'static str, handler: Handler) -> Operation {
    Operation {
        name,
        handler,
        replaces: true,
    }
}

/// All families.
const FAMILIES: &[&[Operation]] = &[
    allocation::OPERATIONS,
    api::OPERATIONS,
    bytes::OPERATIONS,
    control::OPERATIONS,
    environment::OPERATIONS,
    exceptions::OPERATIONS,
    intrinsics::OPERATIONS,
    intrinsics::integer::OPERATIONS,
    intrinsics::memory::OPERATIONS,
    intrinsics::x86::OPERATIONS,
    intrinsics::x86_bits::OPERATIONS,
    jumps::OPERATIONS,
    long_double::OPERATIONS,
    math::OPERATIONS,
    notes::OPERATIONS,
    sanitizer::OPERATIONS,
    strings::OPERATIONS,
    subobjects::OPERATIONS,
    variadic::OPERATIONS,
    vectors::OPERATIONS,
];

static BY_NAME: LazyLock<HashMap<&'static str, &'static Operation>> = LazyLock::new(|| {
    FAMILIES
        .iter()
        .flat_map(|family| family.iter())
        .map(|row| (row.name, row))
        .collect()
});

/// Returns whether a function has one of these names, whatever it is written in.
pub fn is_named(symbol: &str, is_meant: impl Fn(&str) -> bool) -> bool {
    is_meant(plain_name(symbol))
}

/// Returns the symbol as the tables list it: libc functions that are written in Zig have a
/// namespace prefix (`c.string.strlen`).
fn plain_name(name: &str) -> &str {
    match name.strip_prefix("c.") {
        Some(path) => path.rsplit('.').next().unwrap_or(path),
        None => name,
    }
}

fn find(name: &str) -> Option<&'static Operation> {
    let name = plain_name(name);
    if let Some(row) = BY_NAME.get(name) {
        return Some(row);
    }
    // Intrinsics have type suffixes: `llvm.memcpy.p0.p0.i64`.
    let mut rest = name.starts_with("llvm.").then_some(name)?;
    while let Some((shorter, _)) = rest.rsplit_once('.') {
        if let Some(row) = BY_NAME.get(shorter) {
            return Some(row);
        }
        rest = shorter;
    }
    None
}

/// Finds the operation with this name.
pub fn resolve(name: &str) -> Option<Handler> {
    find(name).map(|row| row.handler)
}

/// Returns whether calls of this function go to the vm even if the program defines it.
pub fn is_replaced(name: &str) -> bool {
    find(name).is_some_and(|row| row.replaces)
}

/// Returns whether a program can set rounding modes or read exception flags.
pub fn uses_float_environment(program: &Program) -> bool {
    environment::is_used(program)
}

/// Finds the operation for a piece of inline assembly.
pub fn resolve_assembly(assembly: &Assembly) -> Handler {
    assembly::resolve(assembly)
}
