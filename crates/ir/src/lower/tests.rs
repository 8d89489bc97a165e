//! Lowers small hand-built modules and runs the code on a simple interpreter.

mod build;
mod constants;
mod intrinsics;
mod machine;
mod memory;
mod rounding;
mod values;
