//! What can go wrong in the toolchain, said so that the reader knows what to do.

use std::io;
use std::path::PathBuf;

/// A failure of the toolchain itself; a failing compiler reports for itself and returns its code.
#[derive(Debug, thiserror::Error)]
pub enum ToolchainError {
    /// The user has no folder where a cache could be.
    #[error(
        "no cache folder: none of EVERETT_CACHE, XDG_CACHE_HOME and HOME is set\n\
         set EVERETT_CACHE to a folder that can be written"
    )]
    NoCache,

    /// A file operation failed.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },

    /// A program could not be started.
    #[error("cannot start {}: {source}{}", program.display(), hint_of(hint))]
    Start {
        program: PathBuf,
        source: io::Error,
        hint: &'static str,
    },

    /// A package could not be installed.
    #[error(
        "cannot install {package} {version} into {}\n{reason}\n\
         everett installs it once from the Python package index with `python3 -m pip`; \
         try again with a network connection, or set {variable} to the path of an existing {binary}",
        folder.display()
    )]
    Install {
        package: &'static str,
        version: &'static str,
        folder: PathBuf,
        reason: String,
        variable: &'static str,
        binary: &'static str,
    },

    /// An environment variable names a program that is not there.
    #[error("{variable} is set to {}, which is not a file", path.display())]
    NoSuchOverride {
        variable: &'static str,
        path: PathBuf,
    },

    /// The libraries could not be built.
    #[error("cannot build {what} for programs under everett\n{reason}")]
    Sysroot { what: &'static str, reason: String },

    /// The native program was linked, its bitcode was not.
    #[error("cannot write the bitcode of {}\n{reason}", program.display())]
    Bitcode { program: PathBuf, reason: String },

    /// The checked build could not be linked.
    #[error("cannot link the checked build of {}\n{reason}", program.display())]
    Checked { program: PathBuf, reason: String },

    /// The command line asks for something that is not supported.
    #[error("{0}")]
    Unsupported(String),

    /// A response file is malformed.
    #[error("response file {}: {reason}", path.display())]
    Response { path: PathBuf, reason: &'static str },

    /// Rust is missing or lacks the target.
    #[error("{0}")]
    Rust(String),
}

fn hint_of(hint: &str) -> String {
    if hint.is_empty() {
        String::new()
    } else {
        format!("\n{hint}")
    }
}

/// Adds to an I/O error what was being done to which path.
pub(crate) trait IoContext<T> {
    fn context(self, what: &'static str, path: impl Into<PathBuf>) -> Result<T, ToolchainError>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn context(self, what: &'static str, path: impl Into<PathBuf>) -> Result<T, ToolchainError> {
        self.map_err(|source| ToolchainError::Io {
            what,
            path: path.into(),
            source,
        })
    }
}
