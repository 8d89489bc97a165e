//! Hardened builds of a program, for production: its own bitcode with some of many checks, each of
//! which can be kept or left out, and a runtime with bounded memory.
//!
//! `PROG.bc` is instrumented once ([`instrument`]): the program is separated from its libraries,
//! and the passes of AddressSanitizer and of bounds checking add a call or branch for each check
//! ([`Instrumented::atoms`]). [`activate`] writes the program with those that are kept, inlined,
//! and links it with the libraries that `PROG` has.

mod atoms;
mod build;
mod debug;
mod loops;
mod program;
mod rewrite;
mod text;
mod versions;

pub use atoms::{Atom, Kind};
pub use build::{
    Activation, Instrumentation, Instrumented, activate, instrument, open_instrumented,
};
pub use debug::Place;
pub use rewrite::{Dynamic, counters_size};
