//! The errors of the library, as an enum that callers can match on. Owns the error messages; must
//! not know how they are displayed. A message names a field of a spec in backticks, `like_this`; a
//! front end may replace it by the name that its users know, such as a flag.

use everett_report::counted;
use std::path::PathBuf;

/// The result of an operation of the library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation failed. [`std::error::Error::source`] leads to the causes; the messages, joined
/// in order, are readable for users.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The context in which the source error occurred.
    #[error("{message}")]
    Context {
        /// What the operation was doing.
        message: String,
        /// The source error.
        source: Box<Error>,
    },
    /// A field of a spec is set that does not apply to this kind of run.
    #[error("`{field}` {message}")]
    NotApplicable {
        /// The field of the spec, as named in `args.json`.
        field: &'static str,
        /// The purpose of the field, or the reason why it cannot be used.
        message: String,
    },
    /// The request contradicts itself or is not supported for this kind of run.
    #[error("{0}")]
    Usage(String),
    /// A value of a spec is not possible; see [`RunSpec::check`](crate::RunSpec::check).
    #[error("`{field}`: {message}")]
    InvalidValue {
        /// The field of the spec, as named in `args.json`.
        field: &'static str,
        /// The reason why the value is not possible.
        message: String,
    },
    /// Data is not valid.
    #[error("{0}")]
    Invalid(String),
    /// A program, its bitcode or its native build is missing or unusable.
    #[error("{0}")]
    Program(String),
    /// The folder is not the folder of a run.
    #[error("{} is not the folder of a run", path.display())]
    NotARun {
        /// The folder.
        path: PathBuf,
        /// Why it could not be read, if reading was attempted.
        source: Option<std::io::Error>,
    },
    /// A trace is not inside the folder of a run.
    #[error("{} is not in the folder of a run", .0.display())]
    InNoRun(PathBuf),
    /// A file of a run is damaged.
    #[error("{} is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: Box<Error>,
    },
    /// A file was written by a newer version.
    #[error("{} was written by a newer version of Everett", .0.display())]
    TooNew(PathBuf),
    /// The run has nothing left to explore.
    #[error("{} has nothing to resume: the run has ended", path.display())]
    NothingToResume {
        /// The folder of the run.
        path: PathBuf,
    },
    /// The program differs from the one that was explored.
    #[error("the program has changed since the run was stopped; start a new run")]
    ProgramChanged,
    /// A trace is missing, ambiguous, or does not end as it says.
    #[error("{0}")]
    Trace(String),
    /// A trace cannot be exported as a script.
    #[error("{0}")]
    NotExportable(String),
    /// A program that boots a world does not boot one that can be explored.
    #[error("{0}")]
    Boot(String),
    /// The data that a scenario watches does not exist.
    #[error("{0}")]
    Watch(String),
    /// The scenario has errors.
    #[error("{} in the scenario\n{problems}", counted(problems.list.len(), "error"))]
    Scenario {
        /// The errors, with their locations.
        problems: everett_scenario::Problems,
    },
    /// The invariants of a scenario cannot be parsed.
    #[error("the invariants of {place} cannot be used\n{message}")]
    Invariants {
        /// The check or file that contains them.
        place: String,
        /// The description of the error.
        message: String,
    },
    /// An I/O error.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// An error in a JSON file.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// An error of the explorer.
    #[error(transparent)]
    Explorer(#[from] everett_engine::ExplorerError),
    /// An error of a native run.
    #[error(transparent)]
    Native(#[from] everett_native::NativeError),
    /// An error of the toolchain.
    #[error(transparent)]
    Toolchain(#[from] everett_toolchain::ToolchainError),
    /// An error in reading bitcode.
    #[error(transparent)]
    Bitcode(#[from] everett_ir::FileError),
    /// An error in lowering bitcode.
    #[error(transparent)]
    Lower(#[from] everett_ir::lower::LowerError),
    /// An error in building the image of a program.
    #[error(transparent)]
    Image(#[from] everett_vm::ImageError),
    /// An error in a path to watched data.
    #[error(transparent)]
    Path(#[from] everett_ir::debug::PathError),
    /// An error in writing to the folder of a run.
    #[error(transparent)]
    Folder(#[from] everett_report::WriteError),
    /// An error in formatting text.
    #[error(transparent)]
    Format(#[from] std::fmt::Error),
}

impl Error {
    pub(crate) fn not_applicable(field: &'static str, message: &str) -> Error {
        let message = message.to_owned();
        Error::NotApplicable { field, message }
    }

    /// Returns the innermost error, without the context around it.
    pub fn root(&self) -> &Error {
        match self {
            Error::Context { source, .. } => source.root(),
            other => other,
        }
    }

    /// Returns the error and its causes, on one line.
    pub fn chain(&self) -> String {
        error_text(self)
    }
}

/// Returns an error and its causes, on one line. A cause that an error has in its own text is not
/// repeated.
pub fn error_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// Adds context to an error: what the operation was doing.
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

/// Returns from the function with an error of a kind and a formatted message.
macro_rules! bail {
    ($kind:ident, $($text:tt)+) => {
        return Err($crate::error::Error::$kind(format!($($text)+)))
    };
}
pub(crate) use bail;
