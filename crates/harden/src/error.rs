//! The errors of this crate.

use std::path::PathBuf;

/// The result of an operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program could not be instrumented or linked.
    #[error(transparent)]
    Toolchain(#[from] everett_toolchain::ToolchainError),
    /// A file cannot be read or written.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// The operation that was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A file does not have the expected format.
    #[error("{}: {message}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// The description of the error.
        message: String,
    },
    /// The workload did not run.
    #[error("the workload {} {message}", command.display())]
    Workload {
        /// The command of the workload.
        command: PathBuf,
        /// The description of the error.
        message: String,
    },
    /// The request contradicts itself.
    #[error("{0}")]
    Usage(String),
}

/// Adds the operation and the file to an error.
pub(crate) trait FileContext<T> {
    fn context(self, what: &'static str, path: impl Into<PathBuf>) -> Result<T>;
}

impl<T> FileContext<T> for std::io::Result<T> {
    fn context(self, what: &'static str, path: impl Into<PathBuf>) -> Result<T> {
        self.map_err(|source| Error::File {
            what,
            path: path.into(),
            source,
        })
    }
}
