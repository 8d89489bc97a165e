//! System calls, one file a family. Each is one function with its row beside it.

mod descriptors;
mod identity;
mod input_output;
mod memory;
mod paths;
mod poll;
mod process;
mod signals;
mod time;

use crate::table::Row;

/// All families.
pub const FAMILIES: &[&[Row]] = &[
    descriptors::ROWS,
    identity::ROWS,
    input_output::ROWS,
    memory::ROWS,
    paths::ROWS,
    poll::ROWS,
    process::ROWS,
    signals::ROWS,
    time::ROWS,
];
