//! The command line of Everett: flags, messages and exit codes around the library.

#![allow(clippy::print_stderr, clippy::print_stdout)]

mod args;
mod commands;
mod display;
mod session;
mod step;

use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Exit code: no findings.
const EXIT_CLEAN: u8 = 0;
/// Exit code: findings.
const EXIT_FINDINGS: u8 = 1;
/// Exit code: Everett itself failed.
const EXIT_ERROR: u8 = 2;

/// Explores every world that a program can end up in.
#[derive(Parser)]
#[command(name = "everett", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Explores a program on symbolic input and reports what is wrong with it.
    Run(Box<args::RunArgs>),
    /// Goes on with a run that was stopped.
    Resume(args::ResumeArgs),
    /// Follows the tests of a run again and says where each ends.
    Follow(commands::FollowArgs),
    /// Follows a trace again and prints its system calls as strace does.
    Strace(commands::FollowArgs),
    /// Replays traces on the native program under the same kernel model, and says whether they end the same.
    Replay(commands::ReplayArgs),
    /// Replays the findings of a run natively and notes which of them are confirmed.
    Confirm(commands::ConfirmArgs),
    /// Replays folders of traces as a regression suite, on the program or a newer build of it.
    Test(commands::TestArgs),
    /// Looks for a simpler trace that ends the same: fewer failures and preemptions, simpler inputs.
    Shrink(commands::ShrinkArgs),
    /// Writes a shell script that lets a finding happen again with nothing of Everett.
    Export(commands::ExportArgs),
    /// Runs native programs under the kernel model: the same seed, the same run.
    Native(commands::NativeArgs),
    /// Looks at scenario files: worlds of several hosts.
    #[command(subcommand)]
    Scenario(commands::ScenarioCommand),
    /// Runs a program concretely, as if it were started natively. Nothing is explored, nothing written.
    #[command(disable_help_flag = true)]
    Exec(commands::ExecArgs),
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
    /// Runs cargo so that programs come out with their bitcode.
    #[command(disable_help_flag = true)]
    Cargo(ToolArgs),
    /// Runs rustc so that a program comes out with its bitcode.
    #[command(disable_help_flag = true)]
    Rustc(ToolArgs),
}

/// Arguments passed unchanged to another program.
#[derive(clap::Args)]
struct ToolArgs {
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGS"
    )]
    args: Vec<OsString>,
}

fn main() -> ExitCode {
    // Build tools get all arguments unchanged, even those that look like options of Everett.
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(tool) = words
        .get(1)
        .and_then(|word| everett_toolchain::Tool::from_name(word.to_str()?))
    {
        return report(
            everett_toolchain::run(tool, &words[2..], &session::notice)
                .map(|code| code as u8)
                .map_err(Into::into),
        );
    }
    let parsed = Cli::parse();
    let parsed = options_behind_scenario(&parsed, words).unwrap_or(parsed);
    let outcome = match parsed.command {
        Command::Run(args) => commands::run(&args),
        Command::Resume(args) => commands::resume(&args),
        Command::Follow(args) => commands::follow(&args),
        Command::Strace(args) => commands::strace(&args),
        Command::Replay(args) => commands::replay(&args),
        Command::Confirm(args) => commands::confirm(&args),
        Command::Test(args) => commands::test(&args),
        Command::Shrink(args) => commands::shrink(&args),
        Command::Export(args) => commands::export(&args),
        Command::Native(args) => commands::native(&args),
        Command::Scenario(command) => commands::scenario(&command),
        Command::Exec(args) => commands::exec(&args),
        Command::Cc(_)
        | Command::Cxx(_)
        | Command::Ar(_)
        | Command::Ranlib(_)
        | Command::Cargo(_)
        | Command::Rustc(_) => unreachable!("build tools are handled before options are read"),
    };
    report(outcome)
}

/// Parses options after a scenario. Words after a program are its arguments, but a scenario takes none, so words there
/// that look like options are Everett's.
fn options_behind_scenario(parsed: &Cli, mut words: Vec<OsString>) -> Option<Cli> {
    let of = |cli: &Cli| match &cli.command {
        Command::Run(args) => Some(args.spec.command.clone()),
        Command::Native(args) => Some(args.command.clone()),
        _ => None,
    };
    let command = of(parsed)?;
    let (scenario, behind) = command.split_first()?;
    let is_option = behind.first()?.as_encoded_bytes().starts_with(b"-");
    if !is_option || !everett::is_scenario(scenario.as_ref()) {
        return None;
    }
    let at = words.len().checked_sub(command.len())?;
    let scenario = words.remove(at);
    words.push(scenario.clone());
    let cli = Cli::parse_from(words);
    (of(&cli)? == [scenario]).then_some(cli)
}

fn report(outcome: anyhow::Result<u8>) -> ExitCode {
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("everett: {error:#}");
            ExitCode::from(EXIT_ERROR)
        }
    }
}
