//! `everett native`.

use anyhow::Result;
use everett::{
    Guest, NativeEnd, NativeResult, NativeRun, NativeSpec, NativeSummary, Stream, Watcher,
    WorldRun, Wrong, parse_setting,
};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use crate::args::HostArgs;
use crate::commands::{Subcommand, code_of, code_of_guest};
use crate::display::{numbered, print, show_output};
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
        match &result {
            NativeResult::Program(run) => return Ok(native_ended(run)),
            NativeResult::World {
                run,
                wrong,
                warning,
                faults_never_fired,
            } => {
                world_ended(run, wrong.as_ref());
                let never = everett::never_fired_text(faults_never_fired);
                warning.iter().chain(&never).for_each(|text| notice(text));
            }
            NativeResult::Many {
                folder,
                summary,
                findings,
                is_world,
            } => {
                let who = if *is_world { "" } else { "the program " };
                native_summary(summary, folder, *findings, who);
            }
        }
        Ok(code_of(result.conclusion()))
    }
}

/// Returns the warnings of a host's kernel model.
fn notes(run: &NativeRun) -> impl Iterator<Item = String> + '_ {
    let refusals = run.refusals.iter();
    let refused = refusals.map(|one| format!("{} is not modelled", one.what));
    run.warnings.iter().cloned().chain(refused)
}

fn native_ended(run: &NativeRun) -> u8 {
    for (number, line) in (1..).zip(&run.log) {
        eprintln!("{}", numbered(number, line));
    }
    for note in notes(run) {
        notice(&note);
    }
    if !matches!(run.end, NativeEnd::Exit(_)) {
        notice(&format!("the program {}", everett::describe_end(run)));
    }
    code_of_guest(Guest::of_native(&run.end))
}

fn world_ended(run: &WorldRun, wrong: Option<&Wrong>) {
    for (name, run) in &run.hosts {
        for line in &run.log {
            eprintln!("{name} {line}");
        }
    }
    for (name, run) in &run.hosts {
        show_output(Some(name), &run.output);
    }
    for (name, run) in &run.hosts {
        for note in notes(run) {
            notice(&format!("host {name}: {note}"));
        }
    }
    if let Some(wrong) = wrong {
        notice(&format!(
            "host {}: {}: {}",
            wrong.host, wrong.kind, wrong.message
        ));
    }
    for (name, run) in &run.hosts {
        if let NativeEnd::Limit(_) | NativeEnd::Diverged(_) = run.end {
            notice(&format!("host {name} {}", everett::describe_end(run)));
        }
    }
    for why in &run.unevaluated {
        notice(&format!("an invariant could not be evaluated: {why}"));
    }
    if run.is_cut {
        notice("the world is cut off at its limit of virtual time");
    }
}

/// Prints how many runs ended in which way; `who` is the subject of the sentence.
fn native_summary(summary: &NativeSummary, folder: &Path, findings: u32, who: &str) {
    print(&summary.text(folder, findings, who, with_flags));
    for warning in &summary.warnings {
        notice(warning);
    }
    for one in &summary.unsupported {
        let host = one.host.as_ref().map(|host| format!("host {host}: "));
        let host = host.unwrap_or_default();
        notice(&format!("{host}{} is not modelled", one.what));
    }
}
