//! The command line of Everett: flags, messages and exit codes around the library.

#![allow(clippy::print_stderr, clippy::print_stdout)]

// First, because the others use its macros.
#[macro_use]
mod output;

mod allocator;
mod args;
mod broker;
mod commands;
mod display;
mod flags;
mod klee;
mod session;
mod step;

use clap::Parser;
use commands::{Command, Subcommand};
use everett_toolchain::Tool;
use std::ffi::OsString;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

/// Exit code: no findings.
const EXIT_CLEAN: u8 = 0;
/// Exit code: findings, or traces that do not end as recorded.
const EXIT_FINDINGS: u8 = 1;
/// Exit code: Everett could not do its work.
const EXIT_ERROR: u8 = 2;
/// Exit code: interrupted.
const EXIT_INTERRUPTED: u8 = 3;

/// Explores every world that a program can end up in.
#[derive(Parser)]
#[command(name = "everett", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    // Build tools get all arguments unchanged, even those that look like options of Everett.
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some((tool, args)) = build_tool(&words) {
        return report(
            everett_toolchain::run(tool, args, &session::notice)
                .map(|code| code as u8)
                .map_err(Into::into),
        );
    }
    let mut klee = None;
    let words = match everett::klee_command(&words) {
        None => words,
        Some(Ok(mut translated)) => {
            translated
                .notices
                .iter()
                .for_each(|text| session::notice(text));
            if let Err(error) = translated.link(&session::notice, &mut |text| eprint!("{text}")) {
                eprintln!("KLEE: ERROR: {error:#}");
                return ExitCode::from(EXIT_ERROR);
            }
            klee.insert(translated).words.clone()
        }
        Some(Err(error)) => return report(Err(anyhow::anyhow!(error))),
    };
    let parsed = Cli::parse_from(&words);
    let parsed = options_behind_scenario(&parsed, words).unwrap_or(parsed);
    report(parsed.command.run().map(|code| match &klee {
        Some(klee) => klee.exit_code(code),
        None => code,
    }))
}

/// Returns the build tool of a command line, by the name of the program (`everett-cc`) or by the
/// subcommand.
fn build_tool(words: &[OsString]) -> Option<(Tool, &[OsString])> {
    let (program, words) = words.split_first()?;
    if let Some(tool) = Tool::from_program(program.as_ref()) {
        return Some((tool, words));
    }
    let (subcommand, args) = words.split_first()?;
    Some((Tool::from_name(subcommand.to_str()?)?, args))
}

/// Parses options after a scenario. Words after a program are its arguments, but a scenario takes
/// none, so words there that look like options are Everett's.
fn options_behind_scenario(parsed: &Cli, mut words: Vec<OsString>) -> Option<Cli> {
    let command = parsed.command.command()?;
    let (scenario, behind) = command.split_first()?;
    let is_option = behind.first()?.as_encoded_bytes().starts_with(b"-");
    if !is_option || !everett::is_scenario(scenario.as_ref()) {
        return None;
    }
    let at = words.len().checked_sub(command.len())?;
    let scenario = words.remove(at);
    words.push(scenario.clone());
    let cli = Cli::parse_from(words);
    (cli.command.command()? == [scenario]).then_some(cli)
}

fn report(outcome: anyhow::Result<u8>) -> ExitCode {
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let text = everett::error_text(error.as_ref());
            match commands::is_about_a_search_file(&error) {
                true => session::quote(&text),
                false => session::notice(&text),
            }
            ExitCode::from(match session::is_interrupted() {
                true => EXIT_INTERRUPTED,
                false => EXIT_ERROR,
            })
        }
    }
}
