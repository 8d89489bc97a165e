//! The compiler drivers: from source to a native static program and, beside it, `PROG.bc`, the
//! whole program with its libc as bitcode.
//!
//! This crate owns the pinned compiler package, the sysroot that is built with it, the compiler
//! drivers and the linker driver. It does not know how the bitcode is used.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod arguments;
mod cache;
mod checked;
mod compiled;
mod driver;
mod error;
pub mod hard;
mod install;
mod keep;
mod link;
mod own_programs;
mod process;
mod response;
mod roots;
mod rust;
mod sysroot;
mod traps;
mod wheel;

use std::ffi::OsString;

pub use checked::{BuildLimits, Checks, checked_build, checked_path};
pub use compiled::{ObjectBuild, Remark, link_object};
pub use error::ToolchainError;
pub use install::{install_tools, is_klee};
pub use keep::keeps_errors;
pub use own_programs::{meter, sender};
pub use wheel::{ensure_z3, ensure_zig};

/// Returns the folder with the sources of the libraries that programs are built with, if the
/// toolchain is installed.
pub fn library_sources() -> Option<std::path::PathBuf> {
    let sysroot = sysroot::Sysroot::installed().ok().flatten();
    sysroot.map(|sysroot| sysroot.sources())
}

/// Receives messages about steps that take long or may surprise the user: tools that are installed
/// first, libraries that are not found.
pub type Notify<'n> = &'n dyn Fn(&str);

/// One of the programs that `everett` replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// The C compiler, a drop-in for `clang`.
    Cc,
    /// The C++ compiler, a drop-in for `clang++`.
    Cxx,
    /// The archiver.
    Ar,
    /// The archive indexer.
    Ranlib,
    /// The linker, which the compilers and rustc call; it produces the program and its bitcode.
    Ld,
    /// `cargo`, configured so that every program that it links gets bitcode.
    Cargo,
    /// `rustc`, configured in the same way.
    Rustc,
}

impl Tool {
    /// The names that [`Tool::from_name`] accepts.
    pub const NAMES: [&str; 7] = ["cc", "c++", "ar", "ranlib", "ld", "cargo", "rustc"];

    /// Returns the tool for a subcommand of `everett`.
    pub fn from_name(name: &str) -> Option<Tool> {
        match name {
            "cc" => Some(Tool::Cc),
            "c++" => Some(Tool::Cxx),
            "ar" => Some(Tool::Ar),
            "ranlib" => Some(Tool::Ranlib),
            "ld" => Some(Tool::Ld),
            "cargo" => Some(Tool::Cargo),
            "rustc" => Some(Tool::Rustc),
            _ => None,
        }
    }

    /// Returns the subcommand of `everett` for the tool.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Cc => "cc",
            Tool::Cxx => "c++",
            Tool::Ar => "ar",
            Tool::Ranlib => "ranlib",
            Tool::Ld => "ld",
            Tool::Cargo => "cargo",
            Tool::Rustc => "rustc",
        }
    }
}

/// Runs a tool with the arguments after its name and returns its exit code.
///
/// The compilers call the linker through the running executable as `EXECUTABLE ld ARGUMENTS...`,
/// so an executable that calls this function must route all of [`Tool::NAMES`] to it.
pub fn run(tool: Tool, args: &[OsString], notify: Notify<'_>) -> Result<i32, ToolchainError> {
    match tool {
        Tool::Cc => driver::compile(driver::Language::C, args, notify),
        Tool::Cxx => driver::compile(driver::Language::Cxx, args, notify),
        Tool::Ar => driver::pass_through("ar", args, notify),
        Tool::Ranlib => driver::pass_through("ranlib", args, notify),
        Tool::Ld => link::link(args, notify),
        Tool::Cargo => rust::cargo(args, notify),
        Tool::Rustc => rust::rustc(args, notify),
    }
}
