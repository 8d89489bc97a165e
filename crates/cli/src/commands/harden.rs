//! `everett harden`.

use anyhow::{Context, Result, bail};
use everett::counted;
use everett_harden::select::{Aim, Method};
use everett_harden::{
    ActivateSpec, EstimateSpec, HardFile, HardenSpec, InstrumentSpec, SelectSpec, SurveySpec,
    activate, choose, divide, estimate, hard_path, harden, harden_folder, initialised, instrument,
    survey,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::commands::Subcommand;
use crate::display::print;
use crate::session::{notice, session};
use crate::{EXIT_CLEAN, EXIT_FINDINGS};

/// Arguments of `everett harden`.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct HardenArgs {
    #[command(subcommand)]
    command: Option<HardenCommand>,
    #[command(flatten)]
    all: AllArgs,
}

/// The steps, one by one.
#[derive(clap::Subcommand)]
enum HardenCommand {
    /// Step 1: adds all checks to the program's bitcode. Writes PROG.harden/instrumented.ll.
    Instrument(InstrumentArgs),
    /// Step 2: lists the checks that can be kept or left out. Writes PROG.harden/atoms.json.
    Atoms(ProgramArgs),
    /// Step 3: estimates cost and benefit of each check. Writes PROG.harden/estimates.json.
    Estimate(EstimateArgs),
    /// Step 4: selects checks. Writes PROG.harden/selection.json, curve.csv and curve.svg.
    Select(SelectArgs),
    /// Step 5: builds the program with the selected checks. Writes PROG.hard and PROG.hard.json.
    Activate(ActivateArgs),
    /// Builds PROG.msan, which stops at decisions on uninitialised memory. It is a build of its own,
    /// for tests: it shares no memory layout with PROG.hard.
    Initialised(ProgramArgs),
    /// Counts how popular the configurations of an API are in source trees, for --popularity.
    Survey(SurveyArgs),
}

#[derive(clap::Args)]
struct ProgramArgs {
    /// The program, with PROG.bc beside it.
    #[arg(value_name = "PROG")]
    program: PathBuf,
}

#[derive(clap::Args)]
struct InstrumentArgs {
    #[command(flatten)]
    instrumented: InstrumentedArgs,
    #[command(flatten)]
    program: ProgramArgs,
}

#[derive(clap::Args)]
struct InstrumentedArgs {
    /// Calls of this function of the program write a log, and can be left out like checks.
    #[arg(long, value_name = "FUNCTION")]
    log: Vec<String>,
}

#[derive(clap::Args)]
struct WorkloadArgs {
    /// A command that uses the program as it is used in production. It gets the path of a build as
    /// its first argument and in EVERETT_PROGRAM. Without one, costs are guessed.
    #[arg(long, value_name = "COMMAND")]
    workload: Option<PathBuf>,
    /// How often the workload is run with each build; builds take turns.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
}

#[derive(clap::Args)]
struct EvidenceArgs {
    /// A folder in a git repository: files that were changed recently
    /// or fixed often get more checks.
    #[arg(long, value_name = "DIR")]
    history: Option<PathBuf>,
    /// Results of `everett harden survey`: unpopular functions get more checks.
    #[arg(long, value_name = "DIR")]
    popularity: Option<PathBuf>,
    /// The folder of an exploration: what it has explored completely gets fewer checks.
    #[arg(long, value_name = "DIR")]
    explored: Vec<PathBuf>,
    /// The weight of an estimator of benefit: rare, history, popularity, explored; default: 1.
    #[arg(long, value_name = "NAME=WEIGHT", value_parser = parse_weight)]
    weight: Vec<(String, f64)>,
}

#[derive(clap::Args)]
struct AimArgs {
    /// The overhead that is allowed, over PROG itself.
    #[arg(long, value_name = "PERCENT", value_parser = parse_part, conflicts_with = "goal")]
    budget: Option<f64>,
    /// Instead of a budget: this part of all benefit, for the least overhead.
    #[arg(long, value_name = "PERCENT", value_parser = parse_part)]
    goal: Option<f64>,
    /// Select by dynamic programming instead of greedily.
    #[arg(long)]
    exact: bool,
}

#[derive(clap::Args)]
struct AllArgs {
    #[command(flatten)]
    aim: AimArgs,
    #[command(flatten)]
    workload: WorkloadArgs,
    #[command(flatten)]
    evidence: EvidenceArgs,
    #[command(flatten)]
    instrumented: InstrumentedArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// The program, with PROG.bc beside it.
    #[arg(value_name = "PROG")]
    program: Option<PathBuf>,
}

#[derive(clap::Args)]
struct OutputArgs {
    /// The hardened build; default: PROG.hard.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// A function of the program that handles a request. Checks that are not selected are in a
    /// second version of the functions, which runs for as many requests as the budget allows.
    #[arg(long, value_name = "FUNCTION")]
    entry: Vec<String>,
}

#[derive(clap::Args)]
struct EstimateArgs {
    #[command(flatten)]
    workload: WorkloadArgs,
    #[command(flatten)]
    evidence: EvidenceArgs,
    #[command(flatten)]
    program: ProgramArgs,
}

#[derive(clap::Args)]
struct SelectArgs {
    #[command(flatten)]
    aim: AimArgs,
    #[command(flatten)]
    program: ProgramArgs,
}

#[derive(clap::Args)]
struct ActivateArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    workload: WorkloadArgs,
    #[command(flatten)]
    program: ProgramArgs,
}

#[derive(clap::Args)]
struct SurveyArgs {
    /// A folder of headers with the constants of the API; default: /usr/include.
    #[arg(long, value_name = "DIR")]
    headers: Vec<PathBuf>,
    /// A function of the API; default: all system calls that the headers number.
    #[arg(long, value_name = "NAME")]
    function: Vec<String>,
    /// A file with the configurations of known vulnerabilities, one on each line, for the figure.
    #[arg(long, value_name = "FILE")]
    vulnerabilities: Option<PathBuf>,
    /// Folder for the results.
    #[arg(long, value_name = "DIR", default_value = "survey")]
    out: PathBuf,
    /// Source trees.
    #[arg(required = true, value_name = "DIR")]
    sources: Vec<PathBuf>,
}

/// Parses a percentage as a fraction.
fn parse_part(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    match number.trim().parse::<f64>() {
        Ok(percent) if percent >= 0.0 && percent.is_finite() => Ok(percent / 100.0),
        _ => Err("a number of per cent is wanted, such as 10%".to_owned()),
    }
}

fn parse_weight(text: &str) -> Result<(String, f64), String> {
    let (name, weight) = text.split_once('=').ok_or("NAME=WEIGHT is wanted")?;
    match weight.parse::<f64>() {
        Ok(weight) if weight >= 0.0 && weight.is_finite() => Ok((name.to_owned(), weight)),
        _ => Err(format!("{weight} is not a weight")),
    }
}

impl AimArgs {
    fn aim(&self) -> Result<Aim> {
        match (self.budget, self.goal) {
            (Some(budget), _) => Ok(Aim::Budget(budget)),
            (None, Some(goal)) => Ok(Aim::Goal(goal)),
            (None, None) => {
                bail!("how much may it cost? --budget 10%, or --goal 90% of the benefit")
            }
        }
    }

    fn method(&self) -> Method {
        match self.exact {
            true => Method::Exact,
            false => Method::Greedy,
        }
    }
}

fn estimate_spec(program: &Path, workload: &WorkloadArgs, evidence: &EvidenceArgs) -> EstimateSpec {
    EstimateSpec {
        program: program.to_owned(),
        workload: workload.workload.clone(),
        rounds: workload.rounds,
        history: evidence.history.clone(),
        popularity: evidence.popularity.clone(),
        runs: evidence.explored.clone(),
        weights: evidence.weight.iter().cloned().collect::<BTreeMap<_, _>>(),
    }
}

impl Subcommand for HardenArgs {
    fn run(&self) -> Result<u8> {
        let _session = session()?;
        match &self.command {
            Some(command) => command.run(),
            None => self.all.run(),
        }
    }
}

impl AllArgs {
    fn run(&self) -> Result<u8> {
        let program = self.program.as_ref().context("PROG is missing")?;
        let spec = HardenSpec {
            logs: self.instrumented.log.clone(),
            estimate: estimate_spec(program, &self.workload, &self.evidence),
            aim: self.aim.aim()?,
            method: self.aim.method(),
            output: self.output.output.clone(),
            entries: self.output.entry.clone(),
        };
        let made = harden(&spec, &notice)?;
        print_hard(&made, program, self.output.output.as_deref());
        Ok(code_of(&made))
    }
}

impl HardenCommand {
    fn run(&self) -> Result<u8> {
        match self {
            HardenCommand::Instrument(args) => {
                let spec = InstrumentSpec {
                    program: args.program.program.clone(),
                    logs: args.instrumented.log.clone(),
                };
                let made = instrument(&spec, &notice)?;
                let folder = harden_folder(&spec.program);
                print(&format!(
                    "{}: {} checks",
                    folder.join("instrumented.ll").display(),
                    made.atoms.len()
                ));
            }
            HardenCommand::Atoms(args) => print(&divide(&args.program)?.to_string()),
            HardenCommand::Estimate(args) => {
                let spec = estimate_spec(&args.program.program, &args.workload, &args.evidence);
                let made = estimate(&spec, &notice)?;
                print(&made.to_string());
                print_notes(&made.notes);
            }
            HardenCommand::Select(args) => {
                let spec = SelectSpec {
                    program: args.program.program.clone(),
                    aim: args.aim.aim()?,
                    method: args.aim.method(),
                };
                print(&choose(&spec)?.to_string());
            }
            HardenCommand::Activate(args) => {
                let spec = ActivateSpec {
                    program: args.program.program.clone(),
                    output: args.output.output.clone(),
                    workload: args.workload.workload.clone(),
                    rounds: args.workload.rounds,
                    entries: args.output.entry.clone(),
                };
                let made = activate(&spec, &notice)?;
                print_hard(&made, &spec.program, spec.output.as_deref());
                return Ok(code_of(&made));
            }
            HardenCommand::Initialised(args) => {
                let made = initialised(&args.program, &notice)?;
                print(&format!(
                    "{}: stops at decisions on uninitialised memory; for tests, not for production",
                    made.display()
                ));
            }
            HardenCommand::Survey(args) => run_survey(args)?,
        }
        Ok(EXIT_CLEAN)
    }
}

/// Returns the exit code. A build that exceeds its budget exists, but is not what was requested.
fn code_of(made: &HardFile) -> u8 {
    match made.is_within_budget {
        true => EXIT_CLEAN,
        false => EXIT_FINDINGS,
    }
}

fn print_notes(notes: &[String]) {
    for note in notes {
        notice(&format!("note: {note}"));
    }
}

fn print_hard(made: &HardFile, program: &Path, output: Option<&Path>) {
    let output = output.map_or_else(|| hard_path(program), Path::to_owned);
    print(&made.text(&output));
    print_notes(&made.notes);
    if let Some(why) = made.excess() {
        notice(&format!("the budget is exceeded: {why}"));
    }
}

fn run_survey(args: &SurveyArgs) -> Result<()> {
    let headers = match args.headers.is_empty() {
        true => vec![PathBuf::from("/usr/include")],
        false => args.headers.clone(),
    };
    let spec = SurveySpec {
        sources: args.sources.clone(),
        headers,
        functions: args.function.clone(),
        vulnerabilities: args.vulnerabilities.clone(),
        out: args.out.clone(),
    };
    let found = survey(&spec)?;
    let mut popular: Vec<(&String, &u64)> = found.configurations.iter().collect();
    popular.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    for (configuration, count) in popular.iter().take(10) {
        print(&format!("{count:>8} {configuration}"));
    }
    print(&format!(
        "{} in {}, {}; results: {}",
        counted(found.calls(), "call"),
        counted(found.files, "file"),
        counted(found.configurations.len(), "configuration"),
        args.out.display()
    ));
    Ok(())
}
