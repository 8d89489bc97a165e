//! The JSON files that one step writes and the next one reads.

use everett_toolchain::hard::Atom;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, FileContext, Result};

/// Returns the folder of a program's steps.
pub fn harden_folder(program: &Path) -> PathBuf {
    with_suffix(program, ".harden")
}

/// Returns the path of a program's hardened build.
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
/// Written by the toolchain.
pub(crate) const MODULE: &str = "instrumented.ll";
pub(crate) const SELECTION: &str = "selection.json";
pub(crate) const CURVE_CSV: &str = "curve.csv";
pub(crate) const CURVE_SVG: &str = "curve.svg";

/// A check, in the form in which files list it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AtomRecord {
    /// The number of the check: its position in the list.
    pub id: u32,
    /// The kind of check: `read`, `write`, `copy`, `call`, `bounds`, `trap`, `assertion`,
    /// `overflow`, `log`, `frame`.
    pub kind: String,
    /// The source file.
    pub file: String,
    /// The source line.
    pub line: u32,
    /// The function in the source.
    pub function: String,
    /// The function of the program, by its symbol. It differs from `function` if that was inlined.
    pub symbol: String,
    /// The number of loops around the check.
    pub depth: u32,
    /// The size of the access, or the called function.
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

/// `atoms.json`: the instrumentation, divided into atoms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AtomsFile {
    /// The average number of atoms for each source line that has any.
    pub granularity: f64,
    /// The checks.
    pub atoms: Vec<AtomRecord>,
}

/// CPU times of runs of the workload, in microseconds; the builds ran alternately.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Times of the program itself.
    pub baseline_us: Vec<u64>,
    /// Times of the hardened build without any check.
    pub none_us: Vec<u64>,
    /// Times of the hardened build with all checks.
    pub full_us: Vec<u64>,
}

/// Estimates of an atom's cost and benefit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimated {
    /// How often the atom ran in the workload; `null` without one.
    pub count: Option<u64>,
    /// The overhead that the atom causes, as a fraction of the baseline.
    pub cost: f64,
    /// The benefit of the atom, from 0 to 1.
    pub benefit: f64,
}

/// `estimates.json`: cost and benefit of each atom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EstimatesFile {
    /// Whether costs come from a workload. Otherwise they are estimated by the loops around checks.
    pub is_measured: bool,
    /// The times from which costs are computed.
    pub measured: Measured,
    /// The overhead that remains without any check.
    pub residual_overhead: f64,
    /// The overhead with all checks.
    pub overhead_full: f64,
    /// The fraction of the overhead that selection controls; 1 is all of it.
    pub elasticity: f64,
    /// The estimators of benefit, with their weights.
    pub estimators: Vec<(String, f64)>,
    /// Notes about what the estimates do not cover, such as the bounds of an exploration.
    pub notes: Vec<String>,
    /// The atoms, in the order of `atoms.json`.
    pub atoms: Vec<Estimated>,
}

/// `selection.json`: the atoms that are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SelectionFile {
    /// The maximum overhead, if the selection has a budget.
    pub budget: Option<f64>,
    /// The requested fraction of the benefit, if the selection has a goal.
    pub goal: Option<f64>,
    /// `greedy` or `exact`.
    pub method: String,
    /// The expected overhead, including the residual overhead.
    pub expected_overhead: f64,
    /// The fraction of all benefit that is kept.
    pub benefit: f64,
    /// The fraction of all benefit that the other method would keep, for comparison.
    pub benefit_other: f64,
    /// The numbers of the atoms that are kept.
    pub kept: Vec<u32>,
}

/// An atom in `PROG.hard.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HardAtom {
    /// The location and kind of the atom.
    #[serde(flatten)]
    pub atom: AtomRecord,
    /// The estimates of the atom.
    #[serde(flatten)]
    pub estimated: Estimated,
    /// Whether the atom is in the build.
    pub kept: bool,
}

/// Hot code that is not checked: a target for exploration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// The source file.
    pub file: String,
    /// The function.
    pub function: String,
    /// The lines with checks that are not in the build.
    pub lines: Vec<u32>,
    /// The cost of these checks.
    pub cost: f64,
}

/// A path-based atom of a build with dynamic activation: the checks of a function that run for some
/// requests only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathAtom {
    /// The source file.
    pub file: String,
    /// The function, which has two versions.
    pub function: String,
    /// Whether it handles a request, and so decides which versions run.
    pub is_entry: bool,
    /// The number of checks in both versions.
    pub always: usize,
    /// The number of checks in one version only.
    pub on_request: usize,
    /// The cost of these checks if all requests ran with them, as a fraction of the baseline.
    pub cost: f64,
    /// The sum of the benefits of these checks.
    pub benefit: f64,
}

/// `PROG.hard.json`: the contents of the build, and its cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HardFile {
    /// The number of atoms in the build.
    pub selected: usize,
    /// The maximum overhead.
    pub budget: Option<f64>,
    /// The requested fraction of the benefit.
    pub goal: Option<f64>,
    /// Whether overheads were measured, with a workload.
    pub is_measured: bool,
    /// The overhead that remains without any check.
    pub residual_overhead: f64,
    /// The overhead with all checks.
    pub overhead_full: f64,
    /// The overhead of this build: measured, or expected if there is no workload.
    pub overhead_selected: f64,
    /// Whether the overhead is within the budget.
    pub is_within_budget: bool,
    /// The fraction of all benefit that is kept.
    pub benefit: f64,
    /// The fraction of the overhead that selection controls.
    pub elasticity: f64,
    /// The average number of atoms for each source line that has any.
    pub granularity: f64,
    /// Times of the program, alternating with those of this build, in microseconds.
    pub baseline_us: Vec<u64>,
    /// Times of this build, in microseconds.
    pub selected_us: Vec<u64>,
    /// Notes about what the figures do not cover.
    pub notes: Vec<String>,
    /// Functions that decide for each request whether it runs with all checks.
    pub entries: Vec<String>,
    /// The functions in two versions, most expensive first; empty without entries.
    pub paths: Vec<PathAtom>,
    /// Hot code that is not checked, hottest first.
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
