//! Errors of native runs.

/// Why a native run failed.
#[derive(Debug, thiserror::Error)]
pub enum NativeError {
    /// An operation of the real machine failed.
    #[error("an operation of the machine failed: {0}")]
    Machine(#[from] std::io::Error),
    /// The host could not boot.
    #[error("the host cannot be started: {0}")]
    Boot(String),
    /// The program needs something that native runs do not support yet.
    #[error("{0}")]
    NotReplayable(String),
}
