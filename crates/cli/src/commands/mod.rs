//! The subcommands, one file each: flags become a spec, then a call of the library, then an exit
//! code. A new subcommand is one file here, and one row in [`subcommands!`].

mod cluster;
mod confirm;
mod coverage;
mod exec;
mod export;
mod fault_nodes;
mod faults;
mod follow;
mod harden;
mod install_tools;
mod native;
mod pause;
mod replay;
mod run;
mod scenario;
mod shrink;
mod submit;
mod test;
mod trojans;

pub use faults::is_about_a_search_file;

use anyhow::Result;
use everett::{BuildSpec, Conclusion, Guest, OtherBuild};
use std::ffi::OsString;

use crate::{EXIT_CLEAN, EXIT_ERROR, EXIT_FINDINGS, EXIT_INTERRUPTED};

/// A subcommand with its arguments.
pub trait Subcommand {
    /// Executes it and returns the exit code.
    fn run(&self) -> Result<u8>;
}

/// Defines [`Command`] from rows: help text, attributes, name and type of the arguments.
macro_rules! subcommands {
    ($($(#[$attribute:meta])* $name:ident($arguments:ty),)*) => {
        /// The subcommands of Everett.
        #[derive(clap::Subcommand)]
        pub enum Command {
            $($(#[$attribute])* $name(Box<$arguments>),)*
        }

        impl Subcommand for Command {
            fn run(&self) -> Result<u8> {
                match self {
                    $(Command::$name(arguments) => arguments.run(),)*
                }
            }
        }
    };
}

subcommands! {
    /// Explores a program on symbolic input and reports what is wrong with it.
    Run(crate::args::RunArgs),
    /// Continues a run that was stopped.
    Resume(crate::args::ResumeArgs),
    /// Re-executes the tests of a run and reports where each ends.
    Follow(follow::FollowArgs),
    /// Re-executes a trace and prints its system calls as strace does.
    Strace(follow::StraceArgs),
    /// Replays traces on the native program under the same kernel model, and
    /// reports whether they end the same.
    Replay(replay::ReplayArgs),
    /// Replays the findings of a run natively and records which of them are confirmed.
    Confirm(confirm::ConfirmArgs),
    /// Replays folders of traces as a regression suite, on the program or a newer build of it.
    Test(test::TestArgs),
    /// Shows the coverage of one or several runs together, by file and function.
    Coverage(coverage::CoverageArgs),
    /// Searches for a simpler trace that ends the same: fewer failures
    /// and preemptions, simpler inputs.
    Shrink(shrink::ShrinkArgs),
    /// Writes a shell script that reproduces a finding without Everett.
    Export(export::ExportArgs),
    /// Runs native programs under the kernel model. The seed determines the run.
    Native(native::NativeArgs),
    /// Looks for messages that a server accepts and none of its clients sends.
    Trojans(trojans::TrojansArgs),
    /// Searches the faults that can hit a program for those that hurt most.
    Faults(faults::FaultsArgs),
    /// Starts a broker for searches on several machines.
    Cluster(cluster::ClusterArgs),
    /// Joins a cluster and explores jobs of its runs.
    Worker(cluster::WorkerArgs),
    /// Submits a run to a cluster. Takes the arguments of `run`.
    Submit(submit::SubmitArgs),
    /// Shows the status of a submitted run, or of all, and checks that nothing of it is lost.
    Status(submit::StatusArgs),
    /// Shows the status of a submitted run until it ends.
    Watch(submit::WatchArgs),
    /// Writes the results of a submitted run so far into its folder, as `run` would.
    Results(submit::ResultsArgs),
    /// Pauses a submitted run: workers hand back what they hold of it, and go on with others.
    Pause(pause::PauseArgs),
    /// Lets a paused run go on, on the same or on other workers.
    Unpause(pause::UnpauseArgs),
    /// Cancels a submitted run. The results so far are kept, unless it is removed.
    Cancel(submit::CancelArgs),
    /// Builds a program for production with as many checks as fit into a stated overhead.
    Harden(harden::HardenArgs),
    /// Checks and prints scenario files, which describe worlds of several hosts.
    Scenario(scenario::ScenarioArgs),
    /// Runs a program concretely, as if it were started natively.
    /// Explores nothing and writes no results.
    Exec(exec::ExecArgs),
    /// Creates everett-cc, everett-c++, everett-ar, everett-ranlib,
    /// everett-klee and a toolchain file for CMake in a folder.
    InstallTools(install_tools::InstallToolsArgs),
    /// Compiles and links C: a drop-in for clang that makes PROG and PROG.bc.
    #[command(disable_help_flag = true)]
    Cc(ToolArgs),
    /// Compiles and links C++.
    #[command(name = "c++", visible_alias = "cxx", disable_help_flag = true)]
    Cxx(ToolArgs),
    /// Makes archives of bitcode.
    #[command(disable_help_flag = true)]
    Ar(ToolArgs),
    /// Indexes archives of bitcode.
    #[command(disable_help_flag = true)]
    Ranlib(ToolArgs),
    /// Runs cargo so that programs are built with their bitcode.
    #[command(disable_help_flag = true)]
    Cargo(ToolArgs),
    /// Runs rustc so that a program is built with its bitcode.
    #[command(disable_help_flag = true)]
    Rustc(ToolArgs),
}

impl Command {
    /// Returns the program or scenario and the words after it, for subcommands that run one.
    pub fn command(&self) -> Option<&[OsString]> {
        match self {
            Command::Run(args) => Some(&args.spec.command),
            Command::Native(args) => Some(&args.command),
            _ => None,
        }
    }
}

/// Arguments passed unchanged to another program.
#[derive(clap::Args)]
pub struct ToolArgs {
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGS"
    )]
    args: Vec<OsString>,
}

impl Subcommand for ToolArgs {
    fn run(&self) -> Result<u8> {
        unreachable!("build tools are handled before options are read")
    }
}

/// Returns the exit code of commands that check traces: 0 if all end as recorded.
fn exit_code(is_clean: bool) -> u8 {
    match is_clean {
        true => EXIT_CLEAN,
        false => EXIT_FINDINGS,
    }
}

/// Returns the exit code for the conclusion of an operation.
fn code_of(conclusion: Conclusion) -> u8 {
    match conclusion {
        Conclusion::Clean => EXIT_CLEAN,
        Conclusion::Findings => EXIT_FINDINGS,
        Conclusion::Failed => EXIT_ERROR,
        Conclusion::Interrupted => EXIT_INTERRUPTED,
    }
}

/// Returns the exit code for a program that runs once: its own, that of shells for signals, or
/// Everett's.
fn code_of_guest(guest: Guest) -> u8 {
    match guest {
        Guest::Exit(status) => status,
        Guest::Signal(signal) => 128 + signal as u8,
        Guest::Ours(conclusion) => code_of(conclusion),
    }
}

/// Selects the build of the program to replay traces on.
#[derive(clap::Args)]
pub struct BuildArgs {
    /// Replay on this native program instead of the one that was explored: another build of the
    /// same source, or a newer one. PATH selects the program of the run to replace, by its path in
    /// the guest (`--program`) or, for a world, by the host or group of hosts.
    #[arg(long, value_name = "[PATH=]PROGRAM", value_parser = OtherBuild::parse)]
    on: Vec<OtherBuild>,
    /// Replay on the builds that check every memory access, even
    /// where a finding does not need them.
    #[arg(long)]
    checked: bool,
}

impl BuildArgs {
    fn spec(&self) -> BuildSpec {
        BuildSpec {
            on: self.on.clone(),
            checked: self.checked,
        }
    }
}
