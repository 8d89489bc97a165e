//! Runs the user's workload with a build of the program, and measures the CPU time of that build
//! alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use everett_toolchain::meter;

use crate::error::{Error, FileContext, Result};

/// The environment variable with the program to run, which is also the first argument.
const PROGRAM_VARIABLE: &str = "EVERETT_PROGRAM";

/// A command that uses the program as it is used in production.
pub struct Workload {
    command: PathBuf,
    meter: PathBuf,
    /// The folder with stand-ins of programs, until this is dropped.
    folder: tempfile::TempDir,
}

impl Workload {
    /// Creates a workload, with the tool that measures it.
    pub fn new(command: &Path, notify: &dyn Fn(&str)) -> Result<Workload> {
        let command = match command.components().count() {
            // A name alone is searched for in `PATH`, as in a shell.
            1 => command.to_owned(),
            _ => std::path::absolute(command).context("find", command)?,
        };
        Ok(Workload {
            command,
            meter: meter(notify)?,
            folder: tempfile::tempdir().context("create a folder in", std::env::temp_dir())?,
        })
    }

    fn error(&self, message: impl Into<String>) -> Error {
        Error::Workload {
            command: self.command.clone(),
            message: message.into(),
        }
    }

    /// Runs the workload with a build of the program, and returns the CPU time of the build, in
    /// microseconds.
    pub fn run(&self, program: &Path, name: &Path) -> Result<u64> {
        // The stand-in has the name of the program, whichever build it runs.
        let name = name.file_name().unwrap_or(name.as_os_str());
        let stand_in = self.folder.path().join(name);
        let beside = |suffix: &str| crate::files::with_suffix(&stand_in, suffix);
        if !stand_in.exists() {
            fs::copy(&self.meter, &stand_in).context("write", &stand_in)?;
        }
        let program = std::path::absolute(program).context("find", program)?;
        fs::write(beside(".run"), program.as_os_str().as_encoded_bytes())
            .context("write", beside(".run"))?;
        fs::write(beside(".times"), "").context("write", beside(".times"))?;
        let done = Command::new(&self.command)
            .arg(&stand_in)
            .env(PROGRAM_VARIABLE, &stand_in)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .context("run", &self.command)?;
        if !done.success() {
            return Err(self.error(format!("failed with {}: {done}", program.display())));
        }
        let times = fs::read_to_string(beside(".times")).context("read", beside(".times"))?;
        let micros = times
            .lines()
            .filter_map(|line| line.split(' ').next()?.parse::<u64>().ok());
        match times.is_empty() {
            false => Ok(micros.sum()),
            true => Err(self.error(
                "did not run the program that its first argument names, or killed it with SIGKILL; \
                 end it with SIGTERM, and wait for it",
            )),
        }
    }
}
