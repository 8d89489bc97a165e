//! Interactive replay: event by event, or in a debugger.

use anyhow::Result;
use everett::{BuildSpec, HOST, NativeReplay, Session, StopPoint, Viewer};
use std::ffi::OsString;
use std::io::{BufRead, Error, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How to watch a replay.
#[derive(clap::Args)]
pub struct InspectArgs {
    /// Print system calls to stderr, as strace does, each with the number of its event.
    #[arg(long)]
    pub strace: bool,
    /// Stop at the end, or when this event of a host has happened, and open gdb on the process that
    /// caused it. From there on its system calls are not answered: the next one raises SIGSYS. The
    /// host of a single program is called `host`.
    #[arg(
        long,
        value_name = "HOST[:EVENT]",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = HOST,
        value_parser = StopPoint::parse,
        conflicts_with_all = ["step", "pcap", "speed"]
    )]
    pub gdb: Option<StopPoint>,
    /// Go through the replay event by event: Enter for the next, b for the one before, a number to
    /// go there, g for gdb, q to quit.
    #[arg(long, conflicts_with_all = ["pcap", "speed"])]
    pub step: bool,
    /// Write the packets of internet sockets to this file, for Wireshark; for a world, to one file
    /// per host, with the name of the host appended.
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// `real`: replay in real time instead of as fast as possible.
    #[arg(long, value_name = "SPEED", value_parser = ["real"])]
    pub speed: Option<String>,
}

impl InspectArgs {
    /// Returns whether the options apply to a single trace only.
    pub fn is_about_one(&self) -> bool {
        self.gdb.is_some() || self.step || self.pcap.is_some() || self.speed.is_some()
    }

    /// Returns whether the replay prompts the user or opens a debugger.
    pub fn is_interactive(&self) -> bool {
        self.gdb.is_some() || self.step
    }

    /// Returns whether events must be logged.
    pub fn needs_log(&self) -> bool {
        self.strace || self.is_about_one()
    }
}

/// Opens a debugger in a replay, or steps through it. The exit code does not depend on the trace.
pub fn inspect(
    args: &InspectArgs,
    path: &Path,
    build: &BuildSpec,
    session: &Session,
) -> Result<()> {
    let replay = NativeReplay::open(path, build, session)?;
    match &args.gdb {
        Some(point) => replay.debug(point, &mut Terminal)?,
        None => replay.step(&mut Terminal)?,
    }
    Ok(())
}

/// The user at the terminal.
struct Terminal;

impl Viewer for Terminal {
    fn show(&mut self, line: &str) {
        println!("{line}");
    }

    fn ask(&mut self, prompt: &str) -> Option<String> {
        print!("{prompt}");
        let _ = std::io::stdout().flush();
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        matches!(read, Ok(count) if count > 0).then_some(line)
    }

    /// Runs gdb, or the debugger that EVERETT_GDB names.
    fn debug(&mut self, arguments: &[OsString]) -> std::io::Result<()> {
        // Leave keyboard interrupts to the debugger.
        crate::session::ignore_interrupts();
        let debugger = std::env::var_os("EVERETT_GDB").unwrap_or_else(|| "gdb".into());
        let status = Command::new(&debugger).args(arguments).status();
        let failed =
            |error| Error::other(format!("{} cannot be started: {error}", debugger.display()));
        status.map(drop).map_err(failed)
    }
}
