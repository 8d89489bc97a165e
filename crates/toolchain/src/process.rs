//! Runs other programs and passes on their exit codes.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
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

/// The time limit of all steps of a build together.
#[derive(Copy, Clone, Debug)]
pub struct BuildTime {
    start: Instant,
    most: Option<Duration>,
}

impl BuildTime {
    /// Starts a time limit now.
    pub fn from_now(most: Option<Duration>) -> BuildTime {
        let start = Instant::now();
        BuildTime { start, most }
    }

    /// Repeats an attempt until it succeeds or the time is over.
    pub fn wait_for<T>(
        &self,
        what: &Path,
        mut attempt: impl FnMut() -> Result<Option<T>, ToolchainError>,
    ) -> Result<T, ToolchainError> {
        const POLL_INTERVAL: Duration = Duration::from_millis(10);
        loop {
            if let Some(done) = attempt()? {
                return Ok(done);
            }
            if let Some(most) = self.most.filter(|most| self.start.elapsed() >= *most) {
                return Err(ToolchainError::TooSlow {
                    program: what.to_owned(),
                    seconds: most.as_secs(),
                });
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Runs a command like [`capture`], but ends it when the time is over.
pub fn capture_within(command: &mut Command, time: &BuildTime) -> Result<Output, ToolchainError> {
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(|source| start_error(command, source, ""))?;
    // Both streams are read while the command runs; otherwise it would block on a full pipe.
    let (stdout, stderr) = (read(child.stdout.take()), read(child.stderr.take()));
    let status = status_within(command, &mut child, time)?;
    Ok(Output {
        status,
        stdout: stdout.join().unwrap_or_default(),
        stderr: stderr.join().unwrap_or_default(),
    })
}

/// Waits for a command, and ends it when the time is over.
pub fn status_within(
    command: &Command,
    child: &mut Child,
    time: &BuildTime,
) -> Result<ExitStatus, ToolchainError> {
    let program = PathBuf::from(command.get_program());
    let status = time.wait_for(&program, || {
        child
            .try_wait()
            .map_err(|source| start_error(command, source, ""))
    });
    if status.is_err() {
        let _ = child.kill();
        let _ = child.wait();
    }
    status
}

/// Reads a stream to its end, in a thread.
fn read(stream: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            // Partial output is better than none.
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
        let done = capture_within(&mut shell(long), &BuildTime::from_now(None)).unwrap();
        assert_eq!((done.status.code(), done.stdout.len()), (Some(3), 300_000));
        assert_eq!(done.stderr, b"wrong\n");
        let time = BuildTime::from_now(Some(Duration::ZERO));
        let error = capture_within(&mut shell("exec sleep 100"), &time).unwrap_err();
        assert!(
            error.to_string().contains("was not done after 0 s"),
            "{error}"
        );
    }
}
