//! The errors of this crate.

use std::path::{Path, PathBuf};

use crate::space::SpaceError;

/// The result of an operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The description of a fault space is wrong.
    #[error("{file}:{error}")]
    Space {
        /// The file with the description.
        file: String,
        /// The error, with line and column.
        error: SpaceError,
    },
    /// The file that describes a search is wrong.
    #[error("{file}:{line}:{column}: {message}")]
    Config {
        /// The file.
        file: String,
        /// The line of the error, from 1.
        line: usize,
        /// The column of the error, from 1.
        column: usize,
        /// The description of the error.
        message: String,
    },
    /// A file cannot be read or written.
    #[error("{what} {}", path.display())]
    File {
        /// The attempted operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The request is contradictory, or cannot be served.
    #[error("{0}")]
    Usage(String),
    /// A command of the user fails without any fault.
    #[error("{0}")]
    Setup(String),
    /// A manager process could not do its work.
    #[error("the manager of a test failed: {0}")]
    Manager(String),
    /// Results cannot be written.
    #[error(transparent)]
    Write(#[from] everett_report::WriteError),
    /// A file of results is damaged.
    #[error("{} is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: serde_json::Error,
    },
    /// An operation of the library failed.
    #[error(transparent)]
    Library(#[from] everett::Error),
}

impl Error {
    /// Returns a function that makes an error for a file that cannot be read.
    pub(crate) fn reading(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
        move |source| Error::File {
            what: "cannot read",
            path: path.to_owned(),
            source,
        }
    }

    /// Returns a function that makes an error for a file that cannot be written.
    pub(crate) fn writing(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
        move |source| Error::File {
            what: "cannot write",
            path: path.to_owned(),
            source,
        }
    }
}
