//! The five steps of `everett harden`, and all of them together.

use everett_toolchain::hard::{self, Activation, Dynamic, Instrumentation, Instrumented};
use everett_toolchain::{BuildLimits, Checks, checked_build};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::benefit::{Estimator, History, Popularity, Rare, add_what_frames_serve, combined};
use crate::cost::{self, Costs};
use crate::curve;
use crate::error::{Error, FileContext, Result};
use crate::files::{
    self, AtomRecord, AtomsFile, Estimated, EstimatesFile, HardAtom, HardFile, Measured, PathAtom,
    SelectionFile, Target,
};
use crate::history::history;
use crate::runs::explored;
use crate::select::{Aim, Item, Method, select, totals};
use crate::survey;
use crate::workload::Workload;

/// The program to instrument.
#[derive(Clone, Debug, Default)]
pub struct InstrumentSpec {
    /// The program, with `PROGRAM.bc` beside it.
    pub program: PathBuf,
    /// Functions of the program that write logs.
    pub logs: Vec<String>,
}

/// The sources of estimates.
#[derive(Clone, Debug, Default)]
pub struct EstimateSpec {
    /// The program.
    pub program: PathBuf,
    /// A command that uses the program. Its first argument is the path of a build.
    pub workload: Option<PathBuf>,
    /// Number of runs of the workload with each build.
    pub rounds: u32,
    /// A folder in a git repository, whose history is used.
    pub history: Option<PathBuf>,
    /// A file of `everett harden survey` with the popularity of functions.
    pub popularity: Option<PathBuf>,
    /// Folders of explorations.
    pub runs: Vec<PathBuf>,
    /// Weights of estimators; the default is 1.
    pub weights: BTreeMap<String, f64>,
}

/// The selection.
#[derive(Clone, Debug)]
pub struct SelectSpec {
    /// The program.
    pub program: PathBuf,
    /// A maximum overhead, including the residual overhead; or a fraction of all benefit.
    pub aim: Aim,
    /// The method of selection.
    pub method: Method,
}

/// The build to create.
#[derive(Clone, Debug)]
pub struct ActivateSpec {
    /// The program.
    pub program: PathBuf,
    /// The path of the hardened build; by default beside the program, with `.hard`.
    pub output: Option<PathBuf>,
    /// A command with which the build is measured.
    pub workload: Option<PathBuf>,
    /// Number of runs of the command.
    pub rounds: u32,
    /// Functions that handle a request each. If there are any, checks that are not selected run for
    /// some requests.
    pub entries: Vec<String>,
}

/// The parameters of all steps.
#[derive(Clone, Debug)]
pub struct HardenSpec {
    /// Functions of the program that write logs.
    pub logs: Vec<String>,
    /// The sources of estimates, with the program and the workload of all steps.
    pub estimate: EstimateSpec,
    /// The aim of the selection.
    pub aim: Aim,
    /// The method of selection.
    pub method: Method,
    /// The path of the hardened build.
    pub output: Option<PathBuf>,
    /// Functions that handle a request each.
    pub entries: Vec<String>,
}

/// A callback for operations that take long.
pub type Notify<'n> = &'n dyn Fn(&str);

/// Maximum number of further selections if the overhead of the build is larger than expected.
const TRIES: u32 = 4;
/// The part of a budget that checks get in any case.
const LEAST_PART: f64 = 0.01;
/// Maximum number of functions that are listed for exploration.
const TARGETS: usize = 20;

/// Step 1: instruments the program.
pub fn instrument(spec: &InstrumentSpec, notify: Notify<'_>) -> Result<Instrumented> {
    let options = Instrumentation {
        logs: spec.logs.clone(),
    };
    check_files(&spec.program)?;
    let folder = files::harden_folder(&spec.program);
    Ok(hard::instrument(&spec.program, &folder, &options, notify)?)
}

/// Refuses a program without bitcode, and files that cannot be read.
fn check_files(program: &Path) -> Result<()> {
    let bitcode = files::with_suffix(program, ".bc");
    if !bitcode.exists() {
        let message = "there is no such file; build the program with `everett cc -g`".to_owned();
        return Err(Error::Form {
            path: bitcode,
            message,
        });
    }
    for path in [program.to_owned(), bitcode] {
        // The tools that read it would wait forever.
        if std::fs::metadata(&path).is_ok_and(|metadata| !metadata.is_file()) {
            let message = "it is not a regular file".to_owned();
            return Err(Error::Form { path, message });
        }
    }
    Ok(())
}

/// Builds `PROGRAM.msan`, which stops at decisions on uninitialised memory. It is a build of its
/// own: its shadow of memory and that of the other checks exclude each other.
pub fn initialised(program: &Path, notify: Notify<'_>) -> Result<PathBuf> {
    check_files(program)?;
    Ok(checked_build(
        program,
        Checks::Initialised,
        BuildLimits::NONE,
        notify,
    )?)
}

/// Step 2: divides the instrumentation into atoms.
pub fn divide(program: &Path) -> Result<AtomsFile> {
    let folder = files::harden_folder(program);
    check_order(program, files::MODULE)?;
    divide_module(&hard::open_instrumented(&folder)?, &folder)
}

fn divide_module(instrumented: &Instrumented, folder: &Path) -> Result<AtomsFile> {
    let atoms: Vec<AtomRecord> = instrumented
        .atoms
        .iter()
        .enumerate()
        .map(|(id, atom)| AtomRecord::new(id, atom))
        .collect();
    let mut lines: Vec<(&str, u32)> = atoms
        .iter()
        .map(|atom| (atom.file.as_str(), atom.line))
        .collect();
    lines.sort_unstable();
    lines.dedup();
    let granularity = atoms.len() as f64 / lines.len().max(1) as f64;
    let file = AtomsFile { granularity, atoms };
    files::write(&folder.join(files::ATOMS), &file)?;
    Ok(file)
}

/// Step 3: estimates cost and benefit of each atom.
pub fn estimate(spec: &EstimateSpec, notify: Notify<'_>) -> Result<EstimatesFile> {
    let folder = files::harden_folder(&spec.program);
    check_order(&spec.program, files::ATOMS)?;
    let instrumented = hard::open_instrumented(&folder)?;
    let atoms: AtomsFile = files::read(&folder.join(files::ATOMS))?;
    estimate_module(spec, &instrumented, &atoms, &folder, notify)
}

fn estimate_module(
    spec: &EstimateSpec,
    instrumented: &Instrumented,
    atoms: &AtomsFile,
    folder: &Path,
    notify: Notify<'_>,
) -> Result<EstimatesFile> {
    check_current(instrumented, atoms, folder)?;
    let (counts, measured) = match &spec.workload {
        Some(command) => {
            let workload = Workload::new(command, notify)?;
            let (counts, measured) = profile(spec, &workload, instrumented, folder, notify)?;
            (Some(counts), measured)
        }
        None => (None, Measured::default()),
    };
    let costs = match &counts {
        Some(counts) => cost::measured(&atoms.atoms, counts, &measured).ok_or_else(|| {
            Error::Usage("the workload takes no processor time that could be measured".to_owned())
        })?,
        None => cost::guessed(&atoms.atoms),
    };
    let estimators = estimators(spec)?;
    let file = EstimatesFile {
        is_measured: counts.is_some(),
        measured,
        residual_overhead: costs.residual,
        overhead_full: costs.full,
        elasticity: costs.elasticity(),
        estimators: estimators
            .iter()
            .map(|(estimator, weight)| (estimator.name().to_owned(), *weight))
            .collect(),
        notes: notes(&estimators, counts.is_some()),
        atoms: estimated(&atoms.atoms, &costs, counts.as_deref(), &estimators),
    };
    files::write(&folder.join(files::ESTIMATES), &file)?;
    Ok(file)
}

fn notes(estimators: &[(Box<dyn Estimator>, f64)], is_measured: bool) -> Vec<String> {
    let mut notes: Vec<String> = estimators.iter().flat_map(|(one, _)| one.notes()).collect();
    if !is_measured {
        notes.push(
            "no workload: costs are guessed by the loops around checks, overheads are not measured"
                .to_owned(),
        );
    }
    notes
}

fn estimated(
    atoms: &[AtomRecord],
    costs: &Costs,
    counts: Option<&[u64]>,
    estimators: &[(Box<dyn Estimator>, f64)],
) -> Vec<Estimated> {
    let all = atoms.iter().zip(&costs.costs).enumerate();
    let estimated = all.map(|(at, (atom, cost))| {
        let count = counts.map(|counts| counts[at]);
        Estimated {
            count,
            cost: *cost,
            benefit: combined(estimators, atom, count),
        }
    });
    let mut estimated: Vec<Estimated> = estimated.collect();
    add_what_frames_serve(atoms, &mut estimated);
    estimated
}

/// Returns the estimators for which there is evidence.
fn estimators(spec: &EstimateSpec) -> Result<Vec<(Box<dyn Estimator>, f64)>> {
    let mut estimators: Vec<Box<dyn Estimator>> = Vec::new();
    if spec.workload.is_some() {
        estimators.push(Box::new(Rare));
    }
    if let Some(folder) = &spec.history {
        let files = history(folder)?;
        estimators.push(Box::new(History { files }));
    }
    if let Some(file) = &spec.popularity {
        estimators.push(Box::new(Popularity::new(&survey::read(file)?)));
    }
    if !spec.runs.is_empty() {
        estimators.push(Box::new(explored(&spec.runs)?));
    }
    let known = ["rare", "history", "popularity", "explored"];
    if let Some(unknown) = spec
        .weights
        .keys()
        .find(|name| !known.contains(&name.as_str()))
    {
        return Err(Error::Usage(format!(
            "there is no estimator {unknown}; there are {}",
            known.join(", ")
        )));
    }
    let is_wrong = |weight: &&f64| !weight.is_finite() || **weight < 0.0;
    if let Some(wrong) = spec.weights.values().find(is_wrong) {
        return Err(Error::Usage(format!("{wrong} is not a weight")));
    }
    let weighted = estimators.into_iter().map(|estimator| {
        let weight = spec.weights.get(estimator.name()).copied().unwrap_or(1.0);
        (estimator, weight)
    });
    Ok(weighted.collect())
}

/// Counts atoms in the workload, and measures the builds without and with all checks.
fn profile(
    spec: &EstimateSpec,
    workload: &Workload,
    instrumented: &Instrumented,
    folder: &Path,
    notify: Notify<'_>,
) -> Result<(Vec<u64>, Measured)> {
    let atoms = instrumented.atoms.len();
    let path = |name: &str| {
        let path = folder.join(name);
        std::path::absolute(&path).context("find", path)
    };
    let (counters, counted) = (path("counters")?, path("counted")?);
    let empty = vec![0; hard::counters_size(atoms) as usize];
    fs::write(&counters, empty).context("write", &counters)?;
    hard::activate(
        instrumented,
        Activation::Counted(&counters),
        &counted,
        notify,
    )?;
    notify("counting checks in the workload");
    workload.run(&counted, &spec.program)?;
    let bytes = fs::read(&counters).context("read", &counters)?;
    let counts = bytes
        .chunks_exact(8)
        .take(atoms)
        .map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
        .collect();
    let (none, full) = (path("none")?, path("full")?);
    hard::activate(
        instrumented,
        Activation::Kept(&vec![false; atoms]),
        &none,
        notify,
    )?;
    hard::activate(
        instrumented,
        Activation::Kept(&vec![true; atoms]),
        &full,
        notify,
    )?;
    notify("measuring the workload without and with all checks");
    let mut measured = Measured::default();
    for _ in 0..spec.rounds.max(1) {
        measured
            .baseline_us
            .push(workload.run(&spec.program, &spec.program)?);
        measured.none_us.push(workload.run(&none, &spec.program)?);
        measured.full_us.push(workload.run(&full, &spec.program)?);
    }
    Ok((counts, measured))
}

/// Step 4: selects atoms, and draws the trade-off curve of other selections.
pub fn choose(spec: &SelectSpec) -> Result<SelectionFile> {
    spec.aim.check().map_err(Error::Usage)?;
    let folder = files::harden_folder(&spec.program);
    check_order(&spec.program, files::ESTIMATES)?;
    let estimates: EstimatesFile = files::read(&folder.join(files::ESTIMATES))?;
    choose_from(spec, &estimates, 1.0, &folder)
}

/// Selects with costs that are multiplied by a factor.
fn choose_from(
    spec: &SelectSpec,
    estimates: &EstimatesFile,
    factor: f64,
    folder: &Path,
) -> Result<SelectionFile> {
    let items: Vec<Item> = estimates
        .atoms
        .iter()
        .map(|atom| Item {
            cost: atom.cost * factor,
            benefit: atom.benefit,
        })
        .collect();
    let residual = estimates.residual_overhead.max(0.0);
    let aim = match spec.aim {
        // Also if the runtime alone takes the budget, what costs next to nothing is kept.
        Aim::Budget(budget) => Aim::Budget((budget - residual).max(budget * LEAST_PART)),
        goal => goal,
    };
    let all: f64 = items.iter().map(|item| item.benefit).sum();
    let part = |benefit: f64| if all > 0.0 { benefit / all } else { 1.0 };
    let kept = select(&items, aim, spec.method);
    let other = match spec.method {
        Method::Greedy => Method::Exact,
        Method::Exact => Method::Greedy,
    };
    let (sum, rival) = (
        totals(&items, &kept),
        totals(&items, &select(&items, aim, other)),
    );
    let expected = residual + sum.cost;
    let points = curve::curve(&items, residual);
    let chosen = curve::Point {
        benefit: part(sum.benefit),
        overhead: expected,
        atoms: kept.iter().filter(|kept| **kept).count(),
    };
    for (name, text) in [
        (files::CURVE_CSV, curve::csv(&points)),
        (files::CURVE_SVG, curve::svg(&points, chosen)),
    ] {
        fs::write(folder.join(name), text).context("write", folder.join(name))?;
    }
    let numbers = kept.iter().zip(0..).filter(|(kept, _)| **kept);
    let file = SelectionFile {
        budget: match spec.aim {
            Aim::Budget(budget) => Some(budget),
            Aim::Goal(_) => None,
        },
        goal: match spec.aim {
            Aim::Budget(_) => None,
            Aim::Goal(goal) => Some(goal),
        },
        method: match spec.method {
            Method::Greedy => "greedy".to_owned(),
            Method::Exact => "exact".to_owned(),
        },
        expected_overhead: expected,
        benefit: part(sum.benefit),
        benefit_other: part(rival.benefit),
        kept: numbers.map(|(_, number)| number).collect(),
    };
    files::write(&folder.join(files::SELECTION), &file)?;
    Ok(file)
}

/// Step 5: builds the program with the selected atoms, and measures it if there is a workload.
pub fn activate(spec: &ActivateSpec, notify: Notify<'_>) -> Result<HardFile> {
    let folder = files::harden_folder(&spec.program);
    check_order(&spec.program, files::SELECTION)?;
    let instrumented = hard::open_instrumented(&folder)?;
    let atoms: AtomsFile = files::read(&folder.join(files::ATOMS))?;
    let estimates: EstimatesFile = files::read(&folder.join(files::ESTIMATES))?;
    let selection: SelectionFile = files::read(&folder.join(files::SELECTION))?;
    let workload = match &spec.workload {
        Some(command) => Some(Workload::new(command, notify)?),
        None => None,
    };
    check_current(&instrumented, &atoms, &folder)?;
    let build = Build {
        spec,
        instrumented: &instrumented,
        atoms: &atoms,
        estimates: &estimates,
        workload: workload.as_ref(),
    };
    build.activate(&selection, notify)
}

/// Refuses steps that were done before the one that they build on was done again, up to the one that
/// wrote this file. Files that are missing are reported by the reader.
fn check_order(program: &Path, last: &str) -> Result<()> {
    let folder = files::harden_folder(program);
    let steps = [
        (files::MODULE, "instrument"),
        (files::ATOMS, "atoms"),
        (files::ESTIMATES, "estimate"),
        (files::SELECTION, "select"),
    ];
    let mut before = files::with_suffix(program, ".bc");
    for (name, step) in steps {
        let path = folder.join(name);
        let time = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
        if let (Some(old), Some(new)) = (time(&path), time(&before))
            && old < new
        {
            let message = format!(
                "is older than {}; run `everett harden {step}` again",
                before.display()
            );
            return Err(Error::Form { path, message });
        }
        if name == last {
            break;
        }
        before = path;
    }
    Ok(())
}

/// Refuses files of another build of the program.
fn check_current(instrumented: &Instrumented, atoms: &AtomsFile, folder: &Path) -> Result<()> {
    match instrumented.atoms.len() == atoms.atoms.len() {
        true => Ok(()),
        false => Err(Error::Form {
            path: folder.join(files::ATOMS),
            message: "is about another build; run `everett harden atoms` again".to_owned(),
        }),
    }
}

/// A build of selected atoms.
struct Build<'b> {
    spec: &'b ActivateSpec,
    instrumented: &'b Instrumented,
    atoms: &'b AtomsFile,
    estimates: &'b EstimatesFile,
    workload: Option<&'b Workload>,
}

impl Build<'_> {
    fn activate(&self, selection: &SelectionFile, notify: Notify<'_>) -> Result<HardFile> {
        let program = &self.spec.program;
        let output = match &self.spec.output {
            Some(output) => output.clone(),
            None => files::hard_path(program),
        };
        let mut kept = vec![false; self.atoms.atoms.len()];
        for number in &selection.kept {
            if let Some(kept) = kept.get_mut(*number as usize) {
                *kept = true;
            }
        }
        let dynamic = self.dynamic(selection);
        let activation = match self.spec.entries.is_empty() {
            true => Activation::Kept(&kept),
            false => Activation::Versions(&kept, &dynamic),
        };
        hard::activate(self.instrumented, activation, &output, notify)?;
        let (mut baseline, mut selected) = (Vec::new(), Vec::new());
        if let Some(workload) = self.workload {
            notify("measuring the hardened build");
            for _ in 0..self.spec.rounds.max(1) {
                baseline.push(workload.run(program, program)?);
                selected.push(workload.run(&output, program)?);
            }
        }
        let overhead = cost::overhead(&baseline, &selected);
        let mut file = self.describe(selection, &kept, overhead, [baseline, selected]);
        if !self.spec.entries.is_empty() {
            let doubled = hard::doubled(self.instrumented, &kept, &dynamic);
            file.paths = path_atoms(&file.atoms, &doubled, &dynamic.entries);
        }
        files::write(&files::with_suffix(&output, ".json"), &file)?;
        Ok(file)
    }

    /// Returns how the program decides about requests: by the budget that the static selection
    /// leaves.
    fn dynamic(&self, selection: &SelectionFile) -> Dynamic {
        let permille = |part: f64| (part.clamp(0.0, 1000.0) * 1000.0).round() as u32;
        let left = selection.budget.map_or(f64::INFINITY, |budget| {
            budget - selection.expected_overhead.min(budget)
        });
        Dynamic {
            entries: self.spec.entries.iter().cloned().collect(),
            budget: permille(left),
            slowdown: permille(self.estimates.overhead_full - selection.expected_overhead),
        }
    }

    fn describe(
        &self,
        selection: &SelectionFile,
        kept: &[bool],
        overhead: Option<f64>,
        [baseline_us, selected_us]: [Vec<u64>; 2],
    ) -> HardFile {
        let estimates = self.estimates;
        let all = self.atoms.atoms.iter().zip(&estimates.atoms).zip(kept);
        let atoms: Vec<HardAtom> = all
            .map(|((atom, estimated), kept)| HardAtom {
                atom: atom.clone(),
                estimated: estimated.clone(),
                kept: *kept,
            })
            .collect();
        let overhead_selected = overhead.unwrap_or(selection.expected_overhead);
        HardFile {
            selected: selection.kept.len(),
            budget: selection.budget,
            goal: selection.goal,
            is_measured: overhead.is_some(),
            residual_overhead: estimates.residual_overhead,
            overhead_full: estimates.overhead_full,
            overhead_selected,
            is_within_budget: selection
                .budget
                .is_none_or(|most| overhead_selected <= most),
            benefit: selection.benefit,
            elasticity: estimates.elasticity,
            granularity: self.atoms.granularity,
            baseline_us,
            selected_us,
            notes: estimates.notes.clone(),
            entries: self.spec.entries.clone(),
            paths: Vec::new(),
            targets: targets(&atoms),
            atoms,
        }
    }
}

/// Returns the path-based atoms: what functions with two versions have in one of them only.
fn path_atoms(
    atoms: &[HardAtom],
    doubled: &BTreeSet<String>,
    entries: &BTreeSet<String>,
) -> Vec<PathAtom> {
    let mut paths: BTreeMap<&str, PathAtom> = BTreeMap::new();
    for atom in atoms {
        let record = &atom.atom;
        if !doubled.contains(&record.symbol) {
            continue;
        }
        let path = paths.entry(&record.symbol).or_insert_with(|| PathAtom {
            file: record.file.clone(),
            function: record.symbol.clone(),
            is_entry: entries.contains(&record.symbol),
            always: 0,
            on_request: 0,
            cost: 0.0,
            benefit: 0.0,
        });
        match atom.kept {
            true => path.always += 1,
            false => {
                path.on_request += 1;
                path.cost += atom.estimated.cost;
                path.benefit += atom.estimated.benefit;
            }
        }
    }
    let mut paths: Vec<PathAtom> = paths.into_values().collect();
    paths.sort_by(|a, b| b.cost.total_cmp(&a.cost));
    paths
}

/// Returns the functions whose dropped checks are the most expensive: hot code without checks in
/// production.
fn targets(atoms: &[HardAtom]) -> Vec<Target> {
    let mut functions: BTreeMap<(&str, &str), Target> = BTreeMap::new();
    for atom in atoms.iter().filter(|atom| !atom.kept) {
        let record = &atom.atom;
        let target = functions
            .entry((&record.file, &record.function))
            .or_insert_with(|| Target {
                file: record.file.clone(),
                function: record.function.clone(),
                lines: Vec::new(),
                cost: 0.0,
            });
        target.cost += atom.estimated.cost;
        target.lines.push(record.line);
    }
    let mut targets: Vec<Target> = functions.into_values().collect();
    for target in &mut targets {
        target.lines.sort_unstable();
        target.lines.dedup();
    }
    targets.sort_by(|a, b| b.cost.total_cmp(&a.cost));
    targets.truncate(TARGETS);
    targets
}

/// Performs all steps. If the overhead of the build is larger than expected, corrects costs and
/// selects atoms again.
pub fn harden(spec: &HardenSpec, notify: Notify<'_>) -> Result<HardFile> {
    spec.aim.check().map_err(Error::Usage)?;
    let program = &spec.estimate.program;
    let folder = files::harden_folder(program);
    let instrumented = instrument(
        &InstrumentSpec {
            program: program.clone(),
            logs: spec.logs.clone(),
        },
        notify,
    )?;
    let atoms = divide_module(&instrumented, &folder)?;
    let estimates = estimate_module(&spec.estimate, &instrumented, &atoms, &folder, notify)?;
    let workload = match &spec.estimate.workload {
        Some(command) => Some(Workload::new(command, notify)?),
        None => None,
    };
    let build = Build {
        spec: &ActivateSpec {
            program: program.clone(),
            output: spec.output.clone(),
            workload: spec.estimate.workload.clone(),
            rounds: spec.estimate.rounds,
            entries: spec.entries.clone(),
        },
        instrumented: &instrumented,
        atoms: &atoms,
        estimates: &estimates,
        workload: workload.as_ref(),
    };
    let select_spec = SelectSpec {
        program: program.clone(),
        aim: spec.aim,
        method: spec.method,
    };
    let mut factor = 1.0;
    let mut tries = 0;
    loop {
        let selection = choose_from(&select_spec, &estimates, factor, &folder)?;
        let made = build.activate(&selection, notify)?;
        tries += 1;
        let elastic = selection.expected_overhead - estimates.residual_overhead.max(0.0);
        let is_lost = selection
            .budget
            .is_some_and(|budget| estimates.residual_overhead >= budget);
        if made.is_within_budget || tries == TRIES || elastic <= 0.0 || is_lost {
            return Ok(made);
        }
        let seen = made.overhead_selected - estimates.residual_overhead.max(0.0);
        factor *= (seen / elastic).clamp(1.25, 8.0);
        notify("the build takes more than expected: selecting again");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn atom(function: &str, line: u32, cost: f64, kept: bool) -> HardAtom {
        HardAtom {
            atom: AtomRecord {
                id: line,
                kind: "read".to_owned(),
                file: "a.c".to_owned(),
                line,
                function: function.to_owned(),
                symbol: function.to_owned(),
                depth: 0,
                detail: String::new(),
            },
            estimated: Estimated {
                count: None,
                cost,
                benefit: 1.0,
            },
            kept,
        }
    }

    #[test]
    fn functions_in_two_versions_are_atoms_of_paths() {
        let atoms = [
            atom("f", 4, 0.1, false),
            atom("f", 5, 0.1, true),
            atom("g", 9, 0.3, false),
            atom("h", 1, 9.0, true),
        ];
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let found = path_atoms(&atoms, &names(&["f", "g"]), &names(&["f"]));
        let seen: Vec<_> = found
            .iter()
            .map(|path| {
                (
                    path.function.as_str(),
                    path.is_entry,
                    path.always,
                    path.on_request,
                )
            })
            .collect();
        assert_eq!(seen, [("g", false, 0, 1), ("f", true, 1, 1)]);
        assert!((found[0].cost - 0.3).abs() < 1e-9 && (found[1].benefit - 1.0).abs() < 1e-9);
    }

    #[test]
    fn hot_code_without_checks_is_a_target() {
        let atoms = [
            atom("f", 4, 0.1, false),
            atom("f", 3, 0.1, false),
            atom("f", 3, 0.1, false),
            atom("g", 9, 0.2, false),
            atom("h", 1, 9.0, true),
        ];
        let found = targets(&atoms);
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[0].function.as_str(), &found[0].lines[..]),
            ("f", &[3, 4][..])
        );
    }
}
