//! What can go wrong in the library, as an enum that callers can match on. Owns the words of errors; must not know who
//! shows them.

use std::path::PathBuf;

/// The result of an operation of the library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation could not be done. [`std::error::Error::source`] leads to the causes; printed one behind the other
/// they are a message for people.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What was being done when the source happened.
    #[error("{message}")]
    Context {
        /// What was being done.
        message: String,
        /// What happened.
        source: Box<Error>,
    },
    /// What is asked for contradicts itself, or cannot be had for runs of this kind.
    #[error("{0}")]
    Usage(String),
    /// A value is none of those that there can be.
    #[error("{0}")]
    Invalid(String),
    /// A program, its bitcode or its native build is not there or cannot be used.
    #[error("{0}")]
    Program(String),
    /// There is no run in this folder.
    #[error("{} is not the folder of a run", path.display())]
    NotARun {
        /// The folder.
        path: PathBuf,
        /// Why it could not be read, where that was tried.
        source: Option<std::io::Error>,
    },
    /// A trace lies in no folder of a run.
    #[error("{} is in no run's folder", .0.display())]
    InNoRun(PathBuf),
    /// A file of a run was changed by somebody else.
    #[error("{} is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<Error>,
    },
    /// A file was written by a newer version.
    #[error("{} was written by a newer version of Everett", .0.display())]
    TooNew(PathBuf),
    /// The run left nothing to explore.
    #[error("{} has nothing to go on with: the run is at its end", path.display())]
    NothingToResume {
        /// The folder of the run.
        path: PathBuf,
        /// Why its checkpoint could not be read.
        source: std::io::Error,
    },
    /// The program is not the one that was explored before.
    #[error("the program has changed since the run was stopped; start a new run")]
    ProgramChanged,
    /// There is no such trace, there are too many, or it does not end as it says.
    #[error("{0}")]
    Trace(String),
    /// A trace cannot become a script.
    #[error("{0}")]
    NotExportable(String),
    /// A program that boots a world boots none that can be explored.
    #[error("{0}")]
    Boot(String),
    /// What a scenario watches is not there.
    #[error("{0}")]
    Watch(String),
    /// The scenario is not in order.
    #[error("{} in the scenario\n{problems}", errors(problems.list.len()))]
    Scenario {
        /// What is wrong with it, with its places.
        problems: everett_scenario::Problems,
    },
    /// Invariants of a scenario cannot be read.
    #[error("the invariants of {place} cannot be used\n{message}")]
    Invariants {
        /// The check or file that they stand in.
        place: String,
        /// What is wrong with them.
        message: String,
    },
    /// Of the file system.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// Of a file in JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// Of the search.
    #[error(transparent)]
    Explorer(#[from] everett_engine::ExplorerError),
    /// Of native programs.
    #[error(transparent)]
    Native(#[from] everett_native::NativeError),
    /// Of the build tools.
    #[error(transparent)]
    Toolchain(#[from] everett_toolchain::ToolchainError),
    /// Of the bitcode.
    #[error(transparent)]
    Bitcode(#[from] everett_ir::FileError),
    /// Of the lowering of bitcode.
    #[error(transparent)]
    Lower(#[from] everett_ir::lower::LowerError),
    /// Of the image of a program.
    #[error(transparent)]
    Image(#[from] everett_vm::ImageError),
    /// Of a path to watched data.
    #[error(transparent)]
    Path(#[from] everett_ir::debug::PathError),
    /// Of the folder of a run.
    #[error(transparent)]
    Folder(#[from] everett_report::WriteError),
    /// Of text that is put together.
    #[error(transparent)]
    Format(#[from] std::fmt::Error),
}

fn errors(count: usize) -> String {
    match count {
        1 => "1 error".to_owned(),
        count => format!("{count} errors"),
    }
}

impl Error {
    /// What happened at first, without what was being done around it.
    pub fn root(&self) -> &Error {
        match self {
            Error::Context { source, .. } => source.root(),
            other => other,
        }
    }

    /// The error with its causes, in one line.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        text
    }
}

/// Says what was being done when something failed.
pub(crate) trait Context<T> {
    fn context(self, message: impl Into<String>) -> Result<T>;
    fn with_context(self, message: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<Error>> Context<T> for std::result::Result<T, E> {
    fn context(self, message: impl Into<String>) -> Result<T> {
        self.with_context(|| message.into())
    }

    fn with_context(self, message: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Error::Context {
            message: message(),
            source: Box::new(error.into()),
        })
    }
}

/// Returns an error of a kind, with a text for people.
macro_rules! bail {
    ($kind:ident, $($text:tt)+) => {
        return Err($crate::error::Error::$kind(format!($($text)+)))
    };
}
pub(crate) use bail;
