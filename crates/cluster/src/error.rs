//! The errors of the crate.

use std::path::PathBuf;

/// The result of an operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The broker cannot be reached, or refuses an operation.
    #[error("the broker: {0}")]
    Broker(String),
    /// Data from the broker is damaged or not valid.
    #[error("what the broker has is damaged: {0}")]
    Damaged(String),
    /// The run belongs to another build of Everett.
    #[error(
        "the run was submitted by {theirs}, and this is {ours}: all workers of a run must be the same build"
    )]
    OtherBuild {
        /// The build that submitted the run.
        theirs: String,
        /// This build.
        ours: String,
    },
    /// A worker does not accept the run: nobody whom it accepts has signed it.
    #[error("the run is not accepted: {0}")]
    NotAccepted(String),
    /// There is no such run at the broker.
    #[error("the broker has no run {0}")]
    NoRun(String),
    /// The folder is not that of a submitted run.
    #[error("{} is not the folder of a run that was submitted to a cluster", .0.display())]
    NotSubmitted(PathBuf),
    /// The program differs from the one that was submitted.
    #[error("the program has changed since it was submitted; submit it again")]
    ProgramChanged,
    /// The weights of a run do not sum to 1.
    #[error("the accounts of the run do not add up: {0}")]
    Unbalanced(String),
    /// The request contradicts itself.
    #[error("{0}")]
    Usage(String),
    /// An error of the library.
    #[error(transparent)]
    Everett(#[from] everett::Error),
    /// An error of a file.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl Error {
    /// Creates an error of a broker.
    pub(crate) fn broker(error: impl std::fmt::Display) -> Error {
        let mut text = error.to_string();
        // A NATS server stops answering such requests when its disk is full.
        if text.contains("jetstream request timed out") {
            text += ": has the server JetStream, and is there room on its disk? It may have to be restarted then";
        }
        if text.contains("no stream found") || text.contains("resource does not exist") {
            text += ": this user may not do that, or no worker has prepared the server yet";
        }
        if text.contains("password missing") {
            text += ": EVERETT_BROKER_TOKEN or EVERETT_BROKER_TOKEN_FILE gives it";
        }
        Error::Broker(text)
    }

    /// Creates an error about damaged data.
    pub(crate) fn damaged(what: impl std::fmt::Display) -> Error {
        Error::Damaged(what.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_may_be_wrong() {
        let told = Error::broker("jetstream request timed out").to_string();
        assert!(told.contains("room on its disk"), "{told}");
        let told = Error::broker("invalid configuration: password missing").to_string();
        assert!(told.contains("EVERETT_BROKER_TOKEN"), "{told}");
        assert_eq!(Error::broker("refused").to_string(), "the broker: refused");
    }
}
