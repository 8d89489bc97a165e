//! Running other programs and passing on their exit codes.

use std::path::PathBuf;
use std::process::{Command, ExitStatus, Output};

use crate::error::ToolchainError;

/// Runs a command with inherited streams and returns its exit code as a shell would.
pub fn run(command: &mut Command, hint: &'static str) -> Result<i32, ToolchainError> {
    let status = command
        .status()
        .map_err(|source| start_error(command, source, hint))?;
    Ok(code_of(status))
}

/// Runs a command and returns its output.
pub fn capture(command: &mut Command, hint: &'static str) -> Result<Output, ToolchainError> {
    command
        .output()
        .map_err(|source| start_error(command, source, hint))
}

fn start_error(command: &Command, source: std::io::Error, hint: &'static str) -> ToolchainError {
    ToolchainError::Start {
        program: PathBuf::from(command.get_program()),
        source,
        hint,
    }
}

fn code_of(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(1)
}
