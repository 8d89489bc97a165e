//! The program representation: reads LLVM bitcode, links modules and lowers them to compact
//! bytecode.
//!
//! This crate knows nothing of execution, memory or solvers.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod address;
pub mod bitstream;
pub mod code;
pub mod debug;
pub mod library;
pub mod link;
pub mod lower;
pub mod module;
mod reader;
pub mod unchecked;

use std::path::{Path, PathBuf};

pub use bitstream::ReadError;
pub use module::Module;
pub use reader::read_modules;

/// Why a file cannot be read as a module.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file itself cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system error.
        source: std::io::Error,
    },
    /// The content cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error and its position.
        source: ReadError,
    },
}

/// Reads the module in a bitcode file.
pub fn read_file(path: impl AsRef<Path>) -> Result<Module, FileError> {
    let path = path.as_ref();
    let read = || {
        // Reading a pipe or a device may never end.
        match std::fs::metadata(path)?.is_file() {
            true => std::fs::read(path),
            false => Err(std::io::Error::new(
                std::io::ErrorKind::InvalidInput,
                "it is not a regular file",
            )),
        }
    };
    let bytes = read().map_err(|source| FileError::Io {
        path: path.to_owned(),
        source,
    })?;
    Module::read(&bytes).map_err(|source| FileError::Read {
        path: path.to_owned(),
        source,
    })
}
