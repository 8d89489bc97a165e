//! `everett scenario`: says what a scenario file means, or what is wrong with it.

use anyhow::{Context, Result};
use everett_engine::SEARCHERS;
use everett_scenario::{NameContext, NameKind, Scenario};
use std::path::{Path, PathBuf};

use crate::EXIT_CLEAN;
use crate::host_args::{parse_fault, parse_preempt, parse_scheduler};

/// What `everett scenario` does.
#[derive(clap::Subcommand)]
pub enum ScenarioCommand {
    /// Says whether a scenario is in order, and what is wrong with it.
    Check(ScenarioArgs),
    /// Prints a scenario with everything that it leaves out: addresses, routes, defaults.
    Show(ShowArgs),
}

/// Which scenario.
#[derive(clap::Args, Clone, Debug)]
pub struct ScenarioArgs {
    /// The scenario's file.
    pub file: PathBuf,
    /// Stands above what the file says, e.g. host.server.args='["-p","80"]'.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_setting)]
    pub settings: Vec<(String, String)>,
}

/// What `everett scenario show` is told.
#[derive(clap::Args)]
pub struct ShowArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Write a picture of the network for Graphviz.
    #[arg(long, value_name = "FILE")]
    dot: Option<PathBuf>,
    /// Write a picture of the network that browsers show.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// `KEY=VALUE`, where the key may have parts in quotes.
pub fn parse_setting(text: &str) -> Result<(String, String), String> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '=') if at > 0 => {
                return Ok((text[..at].to_owned(), text[at + 1..].to_owned()));
            }
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
    }
    Err("a setting is given as KEY=VALUE, such as host.server.count=3".to_owned())
}

/// The disk, and the names that the rooms below know.
pub struct Here;

impl NameContext for Here {
    fn is_file(&self, path: &Path) -> bool {
        path.is_file()
    }

    fn is_folder(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn check(&self, kind: NameKind, name: &str) -> Result<(), String> {
        match kind {
            NameKind::Scheduler => parse_scheduler(name).map(|_| ()),
            NameKind::Preempt => parse_preempt(name).map(|_| ()),
            NameKind::Failure => parse_fault(name).map(|_| ()),
            NameKind::Call => {
                let is_known = everett_linux::rows().any(|row| row.name == name);
                let message = || format!("{name:?} is no system call of the model");
                is_known.then_some(()).ok_or_else(message)
            }
            NameKind::Watched => everett_invariant::FieldPath::parse(name)
                .map(|_| ())
                .map_err(|error| error.to_string()),
            NameKind::Invariant => everett_invariant::parse(name)
                .map(|_| ())
                .map_err(|error| error.to_string()),
            NameKind::Searcher => {
                let names: Vec<&str> = SEARCHERS.iter().map(|row| row.name).collect();
                let is_known = names.contains(&name);
                let message =
                    || format!("{name:?} is no searcher; there are: {}", names.join(", "));
                is_known.then_some(()).ok_or_else(message)
            }
        }
    }
}

/// Reads a scenario.
pub fn load(args: &ScenarioArgs) -> Result<Scenario> {
    let scenario = everett_scenario::load(&args.file, &args.settings, &Here);
    scenario.map_err(|problems| {
        let count = problems.list.len();
        let errors = if count == 1 { "error" } else { "errors" };
        anyhow::anyhow!("{count} {errors} in the scenario\n{problems}")
    })
}

/// Runs one of the commands.
pub fn scenario(command: &ScenarioCommand) -> Result<u8> {
    match command {
        ScenarioCommand::Check(args) => check(args),
        ScenarioCommand::Show(args) => show(args),
    }
}

fn check(args: &ScenarioArgs) -> Result<u8> {
    let scenario = load(args)?;
    let topology = &scenario.topology;
    let counted = [
        (topology.hosts().len(), "host"),
        (topology.networks().len(), "network"),
        (topology.routers().len(), "router"),
        (scenario.faults.list().len(), "fault"),
        (scenario.checks.len(), "check"),
    ];
    let parts = counted.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts
        .map(|(count, name)| format!("{count} {name}{}", if *count == 1 { "" } else { "s" }))
        .collect();
    println!("{}: in order, {}", args.file.display(), parts.join(", "));
    Ok(EXIT_CLEAN)
}

fn show(args: &ShowArgs) -> Result<u8> {
    let scenario = load(&args.scenario)?;
    let pictures = [
        (&args.dot, everett_net::dot as fn(&_) -> String),
        (&args.svg, everett_net::svg),
    ];
    for (file, draw) in pictures {
        if let Some(file) = file {
            std::fs::write(file, draw(&scenario.topology))
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
    }
    print!("{}", everett_scenario::show(&scenario));
    Ok(EXIT_CLEAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_a_key_and_a_value() {
        let is = |text: &str, key: &str, value: &str| {
            let wanted = Ok((key.to_owned(), value.to_owned()));
            assert_eq!(parse_setting(text), wanted);
        };
        is("a.b=1", "a.b", "1");
        is("a.b=x=y", "a.b", "x=y");
        is("a.\"b=c\".d=", "a.\"b=c\".d", "");
        for bad in ["", "a", "=1", "\"a=1"] {
            assert!(parse_setting(bad).is_err(), "{bad}");
        }
    }
}
