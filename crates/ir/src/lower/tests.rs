//! Lowers small modules that are put together here, and runs the code on a plain interpreter.

mod build;
mod constants;
mod machine;
mod memory;
mod rounding;
mod values;
