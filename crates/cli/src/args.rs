//! Flags of runs, generated from the library's options, and the specs that they produce.

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use everett::{HostSpec, OPTIONS, ResumeSpec, RunOption, RunSpec, Scope, Takes, parse_time};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::broker::BrokerArgs;
use crate::display::Mode;

/// Creates the flag of an option.
fn flag(option: &'static RunOption) -> Arg {
    let text = option.text();
    let help = text.strip_suffix('.').unwrap_or(&text).to_owned();
    let arg = Arg::new(option.name).long(option.name).help(help);
    // Validate here, so that clap's error message names the flag.
    let checked = move |text: &str| -> Result<OsString, String> {
        option.set(&mut RunSpec::default(), text.as_ref())?;
        Ok(text.into())
    };
    let arg = match option.takes {
        Takes::Nothing => arg.action(ArgAction::SetTrue),
        Takes::Value(name) => arg.value_name(name).value_parser(checked),
        Takes::Path(name) => arg.value_name(name).value_parser(value_parser!(OsString)),
        Takes::Values(name) => arg
            .value_name(name)
            .value_parser(checked)
            .action(ArgAction::Append),
        Takes::List(name) => arg
            .value_name(name)
            .value_parser(checked)
            .value_delimiter(',')
            .action(ArgAction::Append),
    };
    let arg = match option.default {
        Some(default) => arg.default_value(default),
        None => arg,
    };
    match option.requires {
        Some(other) => arg.requires(other),
        None => arg,
    }
}

/// Applies the options of the command line to a spec.
fn read(
    options: impl Iterator<Item = &'static RunOption>,
    matches: &ArgMatches,
    spec: &mut RunSpec,
) -> Result<(), clap::Error> {
    let error = |text: String| clap::Error::raw(clap::error::ErrorKind::ValueValidation, text);
    for option in options {
        if matches.value_source(option.name) != Some(ValueSource::CommandLine) {
            continue;
        }
        if option.takes == Takes::Nothing {
            option.set(spec, "".as_ref()).map_err(error)?;
            continue;
        }
        for value in matches
            .get_many::<OsString>(option.name)
            .into_iter()
            .flatten()
        {
            option.set(spec, value).map_err(error)?;
        }
    }
    Ok(())
}

/// Returns the options of all commands that run one program: those of its host, and limits.
fn host_options() -> impl Iterator<Item = &'static RunOption> {
    const LIMITS: [&str; 2] = ["max-time", "max-memory"];
    let options = OPTIONS.iter();
    options.filter(|option| option.scope == Scope::Host || LIMITS.contains(&option.name))
}

/// Creates the flag of a command that runs a program once. Limits have another meaning than in a
/// search there.
fn host_flag(option: &'static RunOption) -> Arg {
    match option.name {
        "max-time" => flag(option)
            .help("End the program after this time, e.g. 90s, 10m, 2h")
            .default_value("1h"),
        "max-memory" => {
            flag(option).help("End the program when it needs more memory than this, e.g. 4G")
        }
        _ => flag(option),
    }
}

/// Output mode.
#[derive(clap::Args)]
struct TalkArgs {
    /// Print nothing but findings and errors.
    #[arg(long, short)]
    quiet: bool,
    /// Print events as lines of JSON.
    #[arg(long, conflicts_with = "quiet")]
    json: bool,
}

impl TalkArgs {
    fn mode(&self) -> Mode {
        match (self.quiet, self.json) {
            (true, _) => Mode::Quiet,
            (_, true) => Mode::Json,
            _ => Mode::Text,
        }
    }
}

/// The program to run.
#[derive(clap::Args)]
struct CommandArgs {
    /// The program that `everett cc` made (or its bitcode), then its arguments. Symbolic ones:
    /// --sym-arg N, --sym-args MIN MAX N, --sym-stdin N, --sym-files COUNT N, --sym-file NAME
    /// N or MIN-MAX, --sym-env NAME N. Of KLEE's runtime: --max-fail N, --fd-fail.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    command: Vec<OsString>,
}

/// Arguments of `everett run`.
pub struct RunArgs {
    pub spec: RunSpec,
    pub mode: Mode,
}

impl Args for RunArgs {
    fn augment_args(command: Command) -> Command {
        let command = command.args(OPTIONS.iter().map(flag));
        CommandArgs::augment_args(TalkArgs::augment_args(command))
    }

    fn augment_args_for_update(command: Command) -> Command {
        RunArgs::augment_args(command)
    }
}

impl FromArgMatches for RunArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<RunArgs, clap::Error> {
        let command = CommandArgs::from_arg_matches(matches)?.command;
        let mut spec = RunSpec::new(command);
        read(OPTIONS.iter(), matches, &mut spec)?;
        let mode = TalkArgs::from_arg_matches(matches)?.mode();
        Ok(RunArgs { spec, mode })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = RunArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Host options of commands that run one program.
pub struct HostArgs {
    pub spec: HostSpec,
    pub max_time: Option<Duration>,
    pub max_memory: Option<u64>,
}

impl Args for HostArgs {
    fn augment_args(command: Command) -> Command {
        command.args(host_options().map(host_flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        HostArgs::augment_args(command)
    }
}

impl FromArgMatches for HostArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<HostArgs, clap::Error> {
        let mut spec = RunSpec::default();
        read(host_options(), matches, &mut spec)?;
        Ok(HostArgs {
            spec: spec.host,
            max_time: spec.max_time,
            max_memory: spec.max_memory,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = HostArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Arguments of `everett resume`.
#[derive(clap::Args)]
pub struct ResumeArgs {
    /// Folder of the run that was stopped.
    dir: PathBuf,
    /// Finish within this time, counted from now, including writing the results.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    max_time: Option<Duration>,
    /// Stop when this many paths have ended, counted from the first start.
    #[arg(long, value_name = "N")]
    max_paths: Option<u64>,
    /// Stop after this many forks, counted from the first start.
    #[arg(long, value_name = "N")]
    max_forks: Option<u64>,
    /// Allow live peers of a scenario to be started and contacted.
    #[arg(long)]
    allow_live: bool,
    /// Hand the run over to the workers of a cluster.
    #[arg(long, conflicts_with_all = ["max_time", "allow_live"])]
    submit: bool,
    #[command(flatten)]
    pub broker: BrokerArgs,
    #[command(flatten)]
    talk: TalkArgs,
}

impl ResumeArgs {
    /// Returns whether a cluster continues the run.
    pub fn is_for_cluster(&self) -> bool {
        self.submit
    }

    pub fn mode(&self) -> Mode {
        self.talk.mode()
    }

    pub fn spec(&self) -> ResumeSpec {
        ResumeSpec {
            dir: self.dir.clone(),
            max_time: self.max_time,
            max_paths: self.max_paths,
            max_forks: self.max_forks,
            allow_live: self.allow_live,
        }
    }
}
