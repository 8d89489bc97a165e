//! `everett native`.

use anyhow::Result;
use everett::{Guest, NativeResult, NativeSpec, Stream, Watcher, numbered, parse_setting};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::num::NonZeroU32;
use std::path::PathBuf;

use crate::args::HostArgs;
use crate::commands::{Subcommand, code_of, code_of_guest};
use crate::display::{print, show_output};
use crate::flags::with_flags;
use crate::session::{notice, session, stoppable_session};

/// Arguments of `everett native`.
#[derive(clap::Args)]
pub struct NativeArgs {
    /// Seed of all choices: schedules and failures.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Run this many times, with this seed and the following ones, and report how the runs
    /// ended. By default, threads are scheduled at random before system calls; with --preempt
    /// atomics or memory also at accesses.
    #[arg(long, value_name = "N")]
    runs: Option<NonZeroU32>,
    /// With --runs and --preempt atomics or memory: depth of the random schedules (PCT). Threads
    /// are preempted at one random event less. Default: 3.
    #[arg(long, value_name = "N", requires = "runs")]
    depth: Option<NonZeroU32>,
    /// Folder for what many runs find; default: the next number below everett-out/.
    #[arg(long, value_name = "DIR", requires = "runs")]
    out: Option<PathBuf>,
    /// Print system calls to stderr, as strace does.
    #[arg(long)]
    strace: bool,
    /// Scenarios only: override a key of the scenario, such as host.server.args='["-p", "80"]'.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_setting)]
    settings: Vec<(String, String)>,
    /// The host of a single program.
    #[command(flatten)]
    host: HostArgs,
    /// The program and its arguments, or a scenario: a file that ends in .toml.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<OsString>,
}

/// Connects a native program to the standard streams of this process.
struct OurStreams;

impl Watcher for OurStreams {
    fn input(&mut self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; 65536];
        // A read error counts as end of file.
        let count = std::io::stdin().read(&mut bytes).unwrap_or(0);
        bytes.truncate(count);
        Some(bytes)
    }

    fn sees_output(&self) -> bool {
        true
    }

    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        // If the write fails, there is nobody to tell.
        let _ = match stream {
            Stream::Stdout => std::io::stdout()
                .write_all(bytes)
                .and_then(|()| std::io::stdout().flush()),
            Stream::Stderr => std::io::stderr().write_all(bytes),
        };
    }
}

/// If a single run of a program ends by itself, the exit code is the program's.
impl Subcommand for NativeArgs {
    fn run(&self) -> Result<u8> {
        let spec = NativeSpec {
            seed: self.seed,
            runs: self.runs,
            depth: self.depth,
            out: self.out.clone(),
            logs_calls: self.strace,
            settings: self.settings.clone(),
            host: self.host.spec.clone(),
            max_time: self.host.max_time,
            max_memory: self.host.max_memory,
            command: self.command.clone(),
        };
        // Many runs stop and keep their findings; a single run has nothing to write.
        let session = match self.runs {
            Some(_) => stoppable_session()?,
            None => session()?,
        };
        let result = everett::native(&spec, &session, &mut OurStreams)?;
        show(&result);
        result.notices().iter().for_each(|text| notice(text));
        Ok(match &result {
            NativeResult::Program(run) => code_of_guest(Guest::of_native(&run.end)),
            _ => code_of(result.conclusion()),
        })
    }
}

/// Shows logs and output of one run, or totals of many.
fn show(result: &NativeResult) {
    match result {
        NativeResult::Program(run) => {
            for (number, line) in (1..).zip(&run.log) {
                eprintln!("{}", numbered(number, line));
            }
        }
        NativeResult::World { run, .. } => {
            for (name, run) in &run.hosts {
                for line in &run.log {
                    eprintln!("{name} {line}");
                }
            }
            for (name, run) in &run.hosts {
                show_output(Some(name), &run.output);
            }
        }
        NativeResult::Many {
            folder,
            summary,
            findings,
            is_world,
        } => {
            let who = if *is_world { "" } else { "the program " };
            print(&summary.text(folder, *findings, who, with_flags));
        }
    }
}
