//! Hardened builds of a program, for production: its own bitcode with checks that can be kept or
//! removed individually, and a runtime with bounded memory.
//!
//! [`instrument`] instruments `PROG.bc` once: it separates the program from its libraries, and the
//! passes of AddressSanitizer and of bounds checking add a call or branch for each check
//! ([`Instrumented::atoms`]). [`activate`] writes the program with the checks that are kept,
//! inlined, and links it with the libraries of `PROG`.

mod atoms;
mod build;
mod debug;
mod loops;
mod program;
mod rewrite;
pub(crate) mod text;
mod versions;

pub use atoms::{Atom, Kind};
pub use build::{
    Activation, Instrumentation, Instrumented, activate, doubled, instrument, open_instrumented,
};
pub use debug::DebugLocation;
pub use rewrite::{Dynamic, counters_size};
