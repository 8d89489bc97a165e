//! The JSON files that one step writes and the next one reads.

use everett_toolchain::hard::Atom;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, FileContext, Result};

/// The folder of a program's steps.
pub fn harden_folder(program: &Path) -> PathBuf {
    with_suffix(program, ".harden")
}

/// The hardened build of a program.
pub fn hard_path(program: &Path) -> PathBuf {
    with_suffix(program, ".hard")
}

pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

pub(crate) const ATOMS: &str = "atoms.json";
pub(crate) const ESTIMATES: &str = "estimates.json";
pub(crate) const SELECTION: &str = "selection.json";
pub(crate) const CURVE_CSV: &str = "curve.csv";
pub(crate) const CURVE_SVG: &str = "curve.svg";

/// A check, as it is listed in files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AtomRecord {
    /// Its number: its place in the list.
    pub id: u32,
    /// What it checks: `read`, `write`, `copy`, `call`, `bounds`, `trap`,
    /// `assertion`, `overflow`, `log`, `frame`.
    pub kind: String,
    /// The source file.
    pub file: String,
    /// The line.
    pub line: u32,
    /// The function in the source.
    pub function: String,
    /// The function of the program, by its symbol: another one where the source's was inlined.
    pub symbol: String,
    /// The number of loops around it.
    pub depth: u32,
    /// The size of the access, or what is called.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

impl AtomRecord {
    pub(crate) fn new(id: usize, atom: &Atom) -> AtomRecord {
        AtomRecord {
            id: id as u32,
            kind: atom.kind.name().to_owned(),
            file: atom.place.file.clone(),
            line: atom.place.line,
            function: atom.place.function.clone(),
            symbol: atom.symbol.clone(),
            depth: atom.depth,
            detail: atom.detail.clone(),
        }
    }
}

/// `atoms.json`: how the instrumentation is divided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AtomsFile {
    /// How many instructions of the source lines have a check, on average:
    /// atoms for each line that has any.
    pub granularity: f64,
    /// The checks.
    pub atoms: Vec<AtomRecord>,
}

/// Processor times of runs of the workload, in microseconds; the runs took turns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Of the program itself.
    pub baseline_us: Vec<u64>,
    /// Of the hardened build without any check.
    pub none_us: Vec<u64>,
    /// Of the hardened build with all checks.
    pub full_us: Vec<u64>,
}

/// What is known of an atom's worth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimated {
    /// How often it ran in the workload; `null` without one.
    pub count: Option<u64>,
    /// The overhead that it causes, as a part of the baseline.
    pub cost: f64,
    /// Its benefit, from 0 to 1.
    pub benefit: f64,
}

/// `estimates.json`: cost and benefit of each atom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EstimatesFile {
    /// Whether costs come from a workload. Otherwise they are a guess by loops around checks.
    pub is_measured: bool,
    /// The times that costs come from.
    pub measured: Measured,
    /// The overhead that stays when all checks are left out.
    pub residual_overhead: f64,
    /// The overhead with all checks.
    pub overhead_full: f64,
    /// The part of the overhead that selection controls: 1 is all of it.
    pub elasticity: f64,
    /// The estimators of benefit, with their weights.
    pub estimators: Vec<(String, f64)>,
    /// What estimates do not speak of, such as the bounds of an exploration.
    pub notes: Vec<String>,
    /// The atoms, in the order of `atoms.json`.
    pub atoms: Vec<Estimated>,
}

/// `selection.json`: which atoms are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SelectionFile {
    /// The overhead that was allowed, if that is what was asked.
    pub budget: Option<f64>,
    /// The part of the benefit that was asked for, if that is what was.
    pub goal: Option<f64>,
    /// `greedy` or `exact`.
    pub method: String,
    /// The expected overhead, with what stays without checks.
    pub expected_overhead: f64,
    /// The part of all benefit that is kept.
    pub benefit: f64,
    /// The same of the other method, for comparison.
    pub benefit_other: f64,
    /// The numbers of the atoms that are kept.
    pub kept: Vec<u32>,
}

/// An atom in `PROG.hard.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HardAtom {
    /// Where and what it is.
    #[serde(flatten)]
    pub atom: AtomRecord,
    /// Its worth.
    #[serde(flatten)]
    pub estimated: Estimated,
    /// Whether it is in the build.
    pub kept: bool,
}

/// Hot code that is left unchecked: what exploration should look at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// The source file.
    pub file: String,
    /// The function.
    pub function: String,
    /// The lines with checks that are left out.
    pub lines: Vec<u32>,
    /// What these checks would cost.
    pub cost: f64,
}

/// `PROG.hard.json`: what is in the build, and what it costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HardFile {
    /// How many atoms are in the build.
    pub selected: usize,
    /// The overhead that was allowed.
    pub budget: Option<f64>,
    /// The part of the benefit that was asked for.
    pub goal: Option<f64>,
    /// Whether overheads were measured, with a workload.
    pub is_measured: bool,
    /// The overhead that stays when all checks are left out.
    pub residual_overhead: f64,
    /// The overhead with all checks.
    pub overhead_full: f64,
    /// The overhead of this build: measured, or expected where there is no workload.
    pub overhead_selected: f64,
    /// Whether that is within the budget.
    pub is_within_budget: bool,
    /// The part of all benefit that is kept.
    pub benefit: f64,
    /// The part of the overhead that selection controls.
    pub elasticity: f64,
    /// Atoms for each line of source that has any.
    pub granularity: f64,
    /// Times of the program and of this build, in turns, in microseconds.
    pub baseline_us: Vec<u64>,
    /// Likewise.
    pub selected_us: Vec<u64>,
    /// What the figures do not speak of.
    pub notes: Vec<String>,
    /// Functions that decide for each request whether it runs with all checks.
    pub entries: Vec<String>,
    /// Hot code that is left unchecked, hottest first.
    pub targets: Vec<Target>,
    /// The atoms.
    pub atoms: Vec<HardAtom>,
}

pub(crate) fn read<T: for<'d> Deserialize<'d>>(path: &Path) -> Result<T> {
    let bytes = everett_report::read_file(path).context("read", path)?;
    serde_json::from_slice(&bytes).map_err(|error| Error::Form {
        path: path.to_owned(),
        message: error.to_string(),
    })
}

pub(crate) fn write<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(|error| Error::Form {
        path: path.to_owned(),
        message: error.to_string(),
    })?;
    bytes.push(b'\n');
    fs::write(path, bytes).context("write", path)
}
