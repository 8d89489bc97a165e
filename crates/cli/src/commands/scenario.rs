//! `everett scenario`.

use anyhow::{Context, Result};
use everett::counted;
use everett::{ScenarioSpec, parse_setting};
use std::path::PathBuf;

use crate::EXIT_CLEAN;
use crate::commands::Subcommand;
use crate::display::print;

/// Arguments of `everett scenario`.
#[derive(clap::Args)]
pub struct ScenarioArgs {
    #[command(subcommand)]
    command: ScenarioCommand,
}

/// What `everett scenario` does.
#[derive(clap::Subcommand)]
enum ScenarioCommand {
    /// Checks a scenario and reports its errors.
    Check(FileArgs),
    /// Prints a scenario with everything filled in that it leaves out: addresses, routes, defaults.
    Show(ShowArgs),
}

/// Selects a scenario.
#[derive(clap::Args)]
struct FileArgs {
    /// The scenario's file.
    file: PathBuf,
    /// Override a key of the scenario, e.g. host.server.args='["-p","80"]'.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_setting)]
    settings: Vec<(String, String)>,
}

impl FileArgs {
    fn spec(&self) -> ScenarioSpec {
        ScenarioSpec {
            file: self.file.clone(),
            settings: self.settings.clone(),
            sender: None,
        }
    }
}

/// Arguments of `everett scenario show`.
#[derive(clap::Args)]
struct ShowArgs {
    #[command(flatten)]
    scenario: FileArgs,
    /// Write a picture of the network for Graphviz.
    #[arg(long, value_name = "FILE")]
    dot: Option<PathBuf>,
    /// Write a picture of the network that browsers show.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

impl Subcommand for ScenarioArgs {
    fn run(&self) -> Result<u8> {
        match &self.command {
            ScenarioCommand::Check(args) => check(args),
            ScenarioCommand::Show(args) => show(args),
        }
    }
}

fn check(args: &FileArgs) -> Result<u8> {
    let scenario = everett::load_scenario(&args.spec())?;
    let topology = &scenario.topology;
    let all = [
        (topology.hosts().len(), "host"),
        (topology.networks().len(), "network"),
        (topology.routers().len(), "router"),
        (scenario.faults.list().len(), "fault"),
        (scenario.checks.len(), "check"),
    ];
    let parts = all.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, name)| counted(count, name)).collect();
    print(&format!(
        "{}: in order, {}",
        args.file.display(),
        parts.join(", ")
    ));
    Ok(EXIT_CLEAN)
}

fn show(args: &ShowArgs) -> Result<u8> {
    let scenario = everett::load_scenario(&args.scenario.spec())?;
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
