//! Running other programs and passing on their exit codes.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

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

/// As [`capture`], but ends the command when its time is over.
pub fn capture_within(
    command: &mut Command,
    time: Option<Duration>,
) -> Result<Output, ToolchainError> {
    const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let start = Instant::now();
    let mut child = command
        .spawn()
        .map_err(|source| start_error(command, source, ""))?;
    // Both are read to their ends while it runs: it would wait for a reader.
    let (stdout, stderr) = (read(child.stdout.take()), read(child.stderr.take()));
    let waited = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Ok(status),
            Err(source) => break Err(start_error(command, source, "")),
            Ok(None) => {}
        }
        if time.is_some_and(|time| start.elapsed() >= time) {
            let _ = child.kill();
            let _ = child.wait();
            break Err(ToolchainError::TooSlow {
                program: PathBuf::from(command.get_program()),
                seconds: time.unwrap_or_default().as_secs(),
            });
        }
        std::thread::sleep(BETWEEN_LOOKS);
    };
    let status = waited?;
    Ok(Output {
        status,
        stdout: stdout.join().unwrap_or_default(),
        stderr: stderr.join().unwrap_or_default(),
    })
}

/// Reads a stream to its end, in a thread.
fn read(stream: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            // What could be read is better than nothing.
            let _ = stream.read_to_end(&mut bytes);
        }
        bytes
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_its_time() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        // More than a pipe holds.
        let long = "head -c 300000 /dev/zero; echo wrong >&2; exit 3";
        let done = capture_within(&mut shell(long), None).unwrap();
        assert_eq!((done.status.code(), done.stdout.len()), (Some(3), 300_000));
        assert_eq!(done.stderr, b"wrong\n");
        let time = Some(Duration::ZERO);
        let error = capture_within(&mut shell("exec sleep 100"), time).unwrap_err();
        assert!(
            error.to_string().contains("was not done after 0 s"),
            "{error}"
        );
    }
}
