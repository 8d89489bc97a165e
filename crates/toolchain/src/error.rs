//! Errors of the toolchain; each message says what to do.

use std::io;
use std::path::PathBuf;

/// A failure of the toolchain itself. A failing compiler reports its own errors and returns its
/// exit code.
#[derive(Debug, thiserror::Error)]
pub enum ToolchainError {
    /// There is no folder for the cache.
    #[error(
        "no cache folder: none of EVERETT_CACHE, XDG_CACHE_HOME and HOME is set\n\
         set EVERETT_CACHE to a folder that can be written"
    )]
    NoCache,

    /// A file operation failed.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// The operation.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },

    /// A program could not be started.
    #[error("cannot start {}: {source}{}", program.display(), hint_of(hint))]
    Start {
        /// The program.
        program: PathBuf,
        /// The cause.
        source: io::Error,
        /// How to fix it.
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
        /// The package.
        package: &'static str,
        /// Its version.
        version: &'static str,
        /// The target folder.
        folder: PathBuf,
        /// The cause.
        reason: String,
        /// The environment variable.
        variable: &'static str,
        /// The program in the package.
        binary: &'static str,
    },

    /// A program of Everett's own could not be built.
    #[error("the program `{0}`, which belongs to Everett, cannot be built; the compiler says why")]
    OwnProgram(&'static str),

    /// The toolchain is not installed, and must not be installed now.
    #[error("the toolchain is not installed, which a run does not do: `everett confirm` does")]
    NotInstalled,

    /// Another program took too long.
    #[error("{} was not done after {seconds} s", program.display())]
    TooSlow {
        /// The program.
        program: PathBuf,
        /// The time limit in seconds.
        seconds: u64,
    },

    /// An environment variable names a program that does not exist.
    #[error("{variable} is set to {}, which is not a file", path.display())]
    NoSuchOverride {
        /// The environment variable.
        variable: &'static str,
        /// The path.
        path: PathBuf,
    },

    /// The libraries could not be built.
    #[error("cannot build {what} for programs under everett\n{reason}")]
    Sysroot {
        /// The library.
        what: &'static str,
        /// The cause.
        reason: String,
    },

    /// The native program was linked, but its bitcode was not.
    #[error("cannot write the bitcode of {}\n{reason}", program.display())]
    Bitcode {
        /// The program.
        program: PathBuf,
        /// The cause.
        reason: String,
    },

    /// An object could not be optimised for the native program.
    #[error("cannot optimise {} for the native program\n{reason}", object.display())]
    Optimise {
        /// The object or archive.
        object: PathBuf,
        /// The cause.
        reason: String,
    },

    /// The checked build could not be linked.
    #[error("cannot link the checked build of {}\n{reason}", program.display())]
    Checked {
        /// The program.
        program: PathBuf,
        /// The cause.
        reason: String,
    },

    /// A hardened build could not be made.
    #[error("cannot harden {}\n{reason}", program.display())]
    Hard {
        /// The program.
        program: PathBuf,
        /// The cause.
        reason: String,
    },

    /// Bitcode of a compiler cannot be made a program.
    #[error("{0}")]
    Object(String),

    /// The command line asks for something that is not supported.
    #[error("{0}")]
    Unsupported(String),

    /// A response file is malformed.
    #[error("response file {}: {reason}", path.display())]
    Response {
        /// The path.
        path: PathBuf,
        /// The cause.
        reason: &'static str,
    },

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

/// Adds the operation and the path to an I/O error.
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
