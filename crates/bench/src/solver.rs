//! The second set of programs, which need the solver most, and their queries: which layer answers
//! what in which time, beside CaDiCaL alone and the installed SMT solvers.

use anyhow::{Context, Result, bail};
use everett_expr::{Arena, ExprId, codec};
use everett_solver::{
    Clock, Constraints, Model, SmtSolver, Solver, SolverConfig, Verdict, cadical_alone,
};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::Bench;

/// The programs, with the number of their paths.
const PROGRAMS: &[(&str, u64)] = &[
    ("20_square_mod", 2),
    ("21_long_double", 5),
    ("22_header_name", 2),
    ("23_fnv", 13),
    ("24_grid", 5),
    ("25_table_write", 12),
    ("26_hash_table", 12),
    ("27_base64", 256),
    ("28_utf8", 183),
    ("29_json", 253),
    ("30_checksums", 3),
    ("31_qsort", 24),
    ("32_edit_distance", 98),
    ("33_sscanf", 35),
    ("34_strtol", 205),
    ("35_division", 16),
    ("36_mixing", 3),
    ("37_floats", 5),
    ("38_large_table", 3),
    ("39_two_tables", 3),
    ("40_huge_table", 2),
    ("41_counters", 12),
    ("42_huge_writes", 3),
    ("43_long_number", 445),
    ("44_float_sums", 5),
    ("45_square_word", 2),
    ("46_divisors", 7),
];
/// Maximum number of queries of one program that are measured.
const MOST_QUERIES: usize = 15;
/// Limit of conflicts of CaDiCaL alone, and of seconds of an SMT solver, for one query.
const CONFLICTS: u32 = 20_000;
const SMT_SECONDS: u64 = 5;

/// A query of the corpus.
struct Case {
    script: PathBuf,
    terms: Vec<u8>,
    /// The layer that answered the query in the run.
    layer: String,
    taken: Duration,
    status: String,
}

/// Time and number of the queries that were answered.
#[derive(Default)]
struct Total {
    answered: u64,
    time: Duration,
    slowest: Duration,
}

impl Total {
    fn add(&mut self, taken: Duration) {
        self.answered += 1;
        self.time += taken;
        self.slowest = self.slowest.max(taken);
    }

    fn row(&self, name: &str, of: usize) -> String {
        format!(
            "| {name} | {} of {of} | {:.3} | {:.1} |\n",
            self.answered,
            self.time.as_secs_f64(),
            self.slowest.as_secs_f64() * 1e3
        )
    }
}

impl Bench {
    /// Measures the second set of programs and its queries.
    pub(crate) fn solver(&self, text: &mut String) -> Result<()> {
        writeln!(
            text,
            "| program | paths | everett s | queries | SAT | SMT | solver s |\n|---|---|---|---|---|---|---|"
        )?;
        let mut corpus = Vec::new();
        for &(program, paths) in PROGRAMS {
            self.build(program, "-O0")?;
            let run = self.explore(program, &["--search", "dfs", "--no-tests"])?;
            let summary = &run.summary;
            let found = summary["paths"]["completed"].as_u64();
            if found != Some(paths) || summary["complete"] != true {
                bail!("{program}: {found:?} paths instead of {paths}");
            }
            writeln!(
                text,
                "| {program} | {paths} | {:.3} | {} | {} | {} | {:.3} |",
                run.seconds,
                summary["queries"],
                summary["queries_sat"],
                summary["queries_smt"],
                summary["solver_seconds"].as_f64().unwrap_or(0.0),
            )?;
            let folder = self.work.join(format!("queries-{program}"));
            let log = folder.to_string_lossy().into_owned();
            self.explore(
                program,
                &["--search", "dfs", "--no-tests", "--log-queries", &log],
            )?;
            corpus.extend(cases(&folder)?);
        }
        corpus_table(&corpus, text)
    }
}

/// Writes the table of each layer and each solver on all queries.
fn corpus_table(corpus: &[Case], text: &mut String) -> Result<()> {
    let mut layers: BTreeMap<&str, Total> = BTreeMap::new();
    for case in corpus {
        layers.entry(&case.layer).or_default().add(case.taken);
    }
    writeln!(
        text,
        "\n| solver | answered | seconds | slowest ms |\n|---|---|---|---|"
    )?;
    let (mut chain, mut plain) = (Total::default(), Total::default());
    for case in corpus {
        check(case, "the chain", chain_alone(case)?, &mut chain)?;
        check(case, "CaDiCaL", plain_alone(case)?, &mut plain)?;
    }
    text.push_str(&chain.row("the chain, each query alone", corpus.len()));
    for (layer, total) in layers {
        text.push_str(&total.row(&format!("in the run: {layer}"), corpus.len()));
    }
    text.push_str(&plain.row("CaDiCaL alone", corpus.len()));
    for solver in SmtSolver::ALL {
        let name = solver.name;
        let Some(program) = program_of(solver) else {
            writeln!(text, "| {name} | not installed | – | – |")?;
            continue;
        };
        let mut total = Total::default();
        for case in corpus {
            let answer = process(&program, solver.file_arguments, case)?;
            check(case, name, answer, &mut total)?;
        }
        text.push_str(&total.row(name, corpus.len()));
    }
    Ok(())
}

/// Counts an answer; an answer that contradicts the run is an error.
fn check(
    case: &Case,
    who: &str,
    answer: (Option<bool>, Duration),
    total: &mut Total,
) -> Result<()> {
    let (Some(is_sat), taken) = answer else {
        return Ok(());
    };
    let said = if is_sat { "sat" } else { "unsat" };
    if case.status != "unknown" && case.status != said {
        bail!(
            "{}: {who} says {said}, the run {}",
            case.script.display(),
            case.status
        );
    }
    total.add(taken);
    Ok(())
}

/// Returns the queries that a run wrote.
fn cases(folder: &Path) -> Result<Vec<Case>> {
    let mut scripts: Vec<PathBuf> = std::fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    scripts.retain(|path| path.extension().is_some_and(|it| it == "smt2"));
    scripts.sort();
    scripts.truncate(MOST_QUERIES);
    scripts.into_iter().map(case).collect()
}

fn case(script: PathBuf) -> Result<Case> {
    let text = std::fs::read_to_string(&script)?;
    let mut lines = text.lines();
    let head = lines.next().and_then(|line| line.strip_prefix("; "));
    let (layer, time) = head
        .and_then(|head| head.split_once(", "))
        .context("a query says who answered it")?;
    let microseconds = time.trim_end_matches(" us").parse()?;
    let status = lines.next().unwrap_or_default();
    let status = status.trim_start_matches("(set-info :status ");
    Ok(Case {
        terms: std::fs::read(script.with_extension("terms"))?,
        layer: layer.to_owned(),
        taken: Duration::from_micros(microseconds),
        status: status.trim_end_matches(')').to_owned(),
        script,
    })
}

fn decoded(case: &Case) -> Result<(Arena, Vec<ExprId>)> {
    let mut arena = Arena::new();
    let terms = codec::decode(&mut arena, &case.terms)?;
    Ok((arena, terms))
}

/// Measures the chain on the last term, under the others.
fn chain_alone(case: &Case) -> Result<(Option<bool>, Duration)> {
    let (mut arena, mut terms) = decoded(case)?;
    let condition = terms.pop().context("a query has a condition")?;
    let mut solver = Solver::new(SolverConfig {
        clock: Clock::start(),
        ..SolverConfig::default()
    })?;
    let mut constraints = Constraints::new();
    let mut model = Model::new();
    for e in terms {
        match solver.check(&mut arena, &constraints, &model, e) {
            Verdict::Sat(found) => model = found,
            _ => return Ok((None, Duration::ZERO)),
        }
        constraints.add(&mut arena, e);
    }
    solver.forget();
    let start = Instant::now();
    let verdict = solver.check(&mut arena, &constraints, &model, condition);
    let taken = start.elapsed();
    let answer = match verdict {
        Verdict::Sat(_) => Some(true),
        Verdict::Unsat => Some(false),
        Verdict::Unknown(_) => None,
    };
    Ok((answer, taken))
}

fn plain_alone(case: &Case) -> Result<(Option<bool>, Duration)> {
    let (arena, terms) = decoded(case)?;
    let start = Instant::now();
    let answer = cadical_alone(&arena, &terms, CONFLICTS);
    Ok((answer, start.elapsed()))
}

/// Returns the program of a solver: that of the variable `EVERETT_Z3` (or with another name), or
/// the one on the search path. `None` if it does not start.
fn program_of(solver: &SmtSolver) -> Option<OsString> {
    let variable = format!("EVERETT_{}", solver.name.to_uppercase());
    let program = std::env::var_os(variable).unwrap_or_else(|| solver.name.into());
    let asked = Command::new(&program).arg("--version").output();
    asked.is_ok().then_some(program)
}

/// Measures an SMT solver on the script, including its start.
fn process(program: &OsStr, arguments: &[&str], case: &Case) -> Result<(Option<bool>, Duration)> {
    let start = Instant::now();
    let output = Command::new("timeout")
        .arg(SMT_SECONDS.to_string())
        .arg(program)
        .args(arguments)
        .arg(&case.script)
        .stdin(Stdio::null())
        .output()?;
    let answer = match String::from_utf8_lossy(&output.stdout).trim() {
        "sat" => Some(true),
        "unsat" => Some(false),
        _ => None,
    };
    Ok((answer, start.elapsed()))
}
