//! Operations of the vm: what a program calls by name but does not bring along, or what the vm does better.
//!
//! Each family has a file with one function for each operation and a table that names them. A new operation
//! is one function and one row; nothing else knows of it.

mod allocation;
mod api;
mod assembly;
mod bytes;
#[cfg(test)]
mod bytes_tests;
mod control;
mod environment;
mod exceptions;
mod intrinsics;
mod jumps;
mod long_double;
mod math;
mod scan;
mod strings;
mod variadic;
mod vectors;

pub use assembly::processor;

use everett_ir::code::Assembly;
use std::collections::HashMap;
use std::sync::LazyLock;

use crate::vm::{Arguments, Done, Interrupt, Vm};

/// Executes an operation: asks all it must ask, then changes what it changes, then says the result.
pub type Handler = for<'v, 'a, 'b> fn(&'v mut Vm<'a>, &'v Arguments<'b>) -> Result<Done, Interrupt>;

/// A row of a family's table.
pub struct Operation {
    /// The symbol. For LLVM intrinsics without the types at its end (`llvm.memcpy`).
    pub name: &'static str,
    /// What it does.
    pub handler: Handler,
    /// It stands in for the program's own definition too.
    pub replaces: bool,
}

/// An operation that is used only where the program has no definition.
const fn supplied(name: &'static str, handler: Handler) -> Operation {
    Operation {
        name,
        handler,
        replaces: false,
    }
}

/// An operation that stands in for the program's definition.
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
    jumps::OPERATIONS,
    long_double::OPERATIONS,
    math::OPERATIONS,
    strings::OPERATIONS,
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

/// The name under which an operation is listed: libc functions that are written in Zig have a path before
/// their name (`c.string.strlen`).
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
    // Intrinsics carry their types at the end: `llvm.memcpy.p0.p0.i64`.
    let mut rest = name.starts_with("llvm.").then_some(name)?;
    while let Some((shorter, _)) = rest.rsplit_once('.') {
        if let Some(row) = BY_NAME.get(shorter) {
            return Some(row);
        }
        rest = shorter;
    }
    None
}

/// The operation with this name.
pub fn resolve(name: &str) -> Option<Handler> {
    find(name).map(|row| row.handler)
}

/// Whether calls of this function go to the vm even where the program defines it.
pub fn is_replaced(name: &str) -> bool {
    find(name).is_some_and(|row| row.replaces)
}

/// The operation for a piece of inline assembly.
pub fn resolve_assembly(assembly: &Assembly) -> Option<Handler> {
    assembly::resolve(assembly)
}
