//! The benefit of an atom: the likelihood of an error at its location. Several estimators
//! contribute; the benefit is their weighted mean. An estimator is one struct here, and one row in
//! `estimators` in `steps`.

use everett_report::LineCoverage;
use std::collections::BTreeMap;

use crate::cost::weight_ns;
use crate::files::{AtomRecord, Estimated};

/// An estimator that judges atoms by one kind of evidence.
pub trait Estimator {
    /// Returns the name of the estimator, as used for weights.
    fn name(&self) -> &'static str;

    /// Returns the benefit from 0 to 1, or `None` if there is no evidence.
    fn benefit(&self, atom: &AtomRecord, count: Option<u64>) -> Option<f64>;

    /// Returns notes about what the evidence does not cover.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Minimum benefit of an atom: all evidence is bounded, so no atom is worthless.
const LEAST: f64 = 0.02;
/// The benefit of an atom about which nothing is known.
const UNKNOWN: f64 = 0.5;

/// Returns the weighted mean of the estimators' benefits.
pub fn combined(
    estimators: &[(Box<dyn Estimator>, f64)],
    atom: &AtomRecord,
    count: Option<u64>,
) -> f64 {
    let (mut sum, mut weights) = (0.0, 0.0);
    for (estimator, weight) in estimators {
        if let Some(benefit) = estimator.benefit(atom, count) {
            sum += weight * benefit.clamp(0.0, 1.0);
            weights += weight;
        }
    }
    let mean = if weights > 0.0 {
        sum / weights
    } else {
        UNKNOWN
    };
    mean.max(LEAST)
}

/// Adds to the benefit of each frame that of the accesses that need it: overflows of locals are seen
/// in the red zones of the function only. Accesses that run more often than the function is called
/// do not count, because they are selected after its frame or not at all.
pub fn add_what_frames_serve(atoms: &[AtomRecord], estimated: &mut [Estimated]) {
    const ACCESSES: [&str; 4] = ["read", "write", "copy", "call"];
    let runs = |at: usize| estimated[at].cost / weight_ns(&atoms[at].kind);
    let mut accesses: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for (at, atom) in atoms.iter().enumerate() {
        if ACCESSES.contains(&atom.kind.as_str()) {
            let access = (runs(at), estimated[at].benefit);
            accesses.entry(&atom.symbol).or_default().push(access);
        }
    }
    let served = atoms.iter().enumerate().map(|(at, atom)| {
        let own = accesses.get(atom.symbol.as_str());
        let own = own.filter(|_| atom.kind == "frame").into_iter().flatten();
        // The same number of runs is computed from different costs.
        let most = runs(at) * 1.001;
        own.filter(|(runs, _)| *runs <= most)
            .map(|(_, benefit)| benefit)
            .sum()
    });
    let served: Vec<f64> = served.collect();
    for (one, served) in estimated.iter_mut().zip(served) {
        one.benefit += served;
    }
}

/// An estimator by execution counts: code that runs rarely is tested rarely.
pub struct Rare;

impl Estimator for Rare {
    fn name(&self) -> &'static str {
        "rare"
    }

    fn benefit(&self, _: &AtomRecord, count: Option<u64>) -> Option<f64> {
        count.map(|count| 1.0 / (1.0 + (1.0 + count as f64).log10()))
    }
}

/// The version-control history of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileHistory {
    /// The time of the last change, in seconds since 1970.
    pub last_change: u64,
    /// Number of changes that were fixes.
    pub fixes: u32,
}

/// An estimator by history: files that were changed recently or fixed often have more errors.
pub struct History {
    /// The histories of files by path.
    pub files: BTreeMap<String, FileHistory>,
}

impl Estimator for History {
    fn name(&self) -> &'static str {
        "history"
    }

    fn benefit(&self, atom: &AtomRecord, _: Option<u64>) -> Option<f64> {
        let file = self.files.get(&atom.file)?;
        let changes = self.files.values().map(|file| file.last_change);
        let (oldest, newest) = (changes.clone().min()?, changes.max()?);
        let most = self.files.values().map(|file| file.fixes).max()?.max(1);
        let age = match newest > oldest {
            true => (file.last_change - oldest) as f64 / (newest - oldest) as f64,
            false => 0.5,
        };
        Some(0.5 * age + 0.5 * f64::from(file.fixes) / f64::from(most))
    }
}

/// An estimator by the popularity of functions over a code base, from a survey: functions that few
/// programs call are tested little.
pub struct Popularity {
    /// Number of calls of each function.
    pub calls: BTreeMap<String, u64>,
}

impl Popularity {
    /// Creates the estimator from the configurations of a survey: `name(any, CONSTANT)`, with their
    /// number of occurrences.
    pub fn new(configurations: &BTreeMap<String, u64>) -> Popularity {
        let mut calls = BTreeMap::new();
        for (configuration, count) in configurations {
            let name = configuration.split('(').next().unwrap_or_default();
            *calls.entry(name.to_owned()).or_default() += count;
        }
        Popularity { calls }
    }
}

impl Estimator for Popularity {
    fn name(&self) -> &'static str {
        "popularity"
    }

    /// Returns the benefit by popularity. Functions that are not in the survey are not part of the
    /// API, and are left to other estimators.
    fn benefit(&self, atom: &AtomRecord, _: Option<u64>) -> Option<f64> {
        let calls = self.calls.get(&atom.function)?;
        Some(1.0 / (1.0 + (1.0 + *calls as f64).log10()))
    }
}

/// An estimator by explorations with Everett. A check that a complete exploration reached, and that
/// failed on none of its paths, loses most of its benefit; a check in code that was never reached
/// has the most.
pub struct Explored {
    /// The lines that runs executed, all together.
    pub coverage: LineCoverage,
    /// The lines that complete runs executed.
    pub complete: LineCoverage,
    /// Files and lines with findings.
    pub findings: Vec<(String, u32)>,
    /// The bounds of the explorations.
    pub bounds: Vec<String>,
}

impl Estimator for Explored {
    fn name(&self) -> &'static str {
        "explored"
    }

    fn benefit(&self, atom: &AtomRecord, _: Option<u64>) -> Option<f64> {
        let is_here =
            |(file, line): &(String, u32)| *line == atom.line && is_same(file, &atom.file);
        if self.findings.iter().any(is_here) {
            return Some(1.0);
        }
        Some(match executed(&self.complete, atom) {
            Some(true) => 0.05,
            _ => match executed(&self.coverage, atom) {
                Some(true) => 0.5,
                Some(false) | None => 1.0,
            },
        })
    }

    fn notes(&self) -> Vec<String> {
        self.bounds.clone()
    }
}

/// Returns whether a line was executed, if it is known at all.
fn executed(coverage: &LineCoverage, atom: &AtomRecord) -> Option<bool> {
    let mut files = coverage.files();
    let (_, file) = files.find(|(name, _)| is_same(name, &atom.file))?;
    file.lines.get(&atom.line).copied()
}

/// Returns whether two paths name the same file: some paths in debug information are relative to
/// the folder of a build.
fn is_same(one: &str, other: &str) -> bool {
    let ends = |long: &str, short: &str| {
        long.strip_suffix(short)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    ends(one, other) || ends(other, one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select::{Aim, Item, Method, select};

    fn atom(function: &str, file: &str, line: u32) -> AtomRecord {
        AtomRecord {
            id: 0,
            kind: "read".to_owned(),
            file: file.to_owned(),
            line,
            function: function.to_owned(),
            symbol: function.to_owned(),
            depth: 0,
            detail: String::new(),
        }
    }

    #[test]
    fn what_runs_rarely_is_worth_more() {
        let benefit = |count| Rare.benefit(&atom("f", "a.c", 1), Some(count)).unwrap();
        assert_eq!(benefit(0), 1.0);
        assert!(benefit(1) > benefit(1000) && benefit(1000) > benefit(1_000_000));
        assert_eq!(Rare.benefit(&atom("f", "a.c", 1), None), None);
    }

    #[test]
    fn frames_come_before_other_checks_that_cost_little() {
        let of = |kind: &str, symbol: &str, count: u64| {
            let record = AtomRecord {
                kind: kind.to_owned(),
                ..atom(symbol, "a.c", 1)
            };
            let estimated = Estimated {
                count: Some(count),
                cost: weight_ns(kind) * count as f64,
                benefit: combined(&[(Box::new(Rare), 1.0)], &record, Some(count)),
            };
            (record, estimated)
        };
        // A function that was called four times has code that never ran, and a loop; it shares a name
        // with no other one.
        let (atoms, mut estimated): (Vec<_>, Vec<_>) = [
            of("frame", "handle", 4),
            of("call", "handle", 0),
            of("write", "handle", 0),
            of("read", "handle", 4),
            of("read", "handle", 4000),
            of("read", "main", 4),
            of("frame", "main", 1),
        ]
        .into_iter()
        .unzip();
        let before: Vec<f64> = estimated.iter().map(|one| one.benefit).collect();
        add_what_frames_serve(&atoms, &mut estimated);
        let wanted = before[0] + before[1] + before[2] + before[3];
        assert!((estimated[0].benefit - wanted).abs() < 1e-9);
        let same = |at: usize| estimated[at].benefit == before[at];
        assert!((1..6).all(same) && same(6));
        let items: Vec<Item> = estimated
            .iter()
            .map(|one| Item {
                cost: one.cost,
                benefit: one.benefit,
            })
            .collect();
        // The budget is enough for the frame, or for the reads that run as often.
        let kept = select(&items, Aim::Budget(12.5), Method::Greedy);
        assert!(kept[0] && kept[1] && kept[2] && !kept[3], "{kept:?}");
    }

    #[test]
    fn changed_and_fixed_files_are_worth_more() {
        let file = |last_change, fixes| FileHistory { last_change, fixes };
        let files = [
            ("/a.c", file(100, 9)),
            ("/b.c", file(50, 3)),
            ("/c.c", file(0, 0)),
        ];
        let history = History {
            files: files.map(|(name, file)| (name.to_owned(), file)).into(),
        };
        let benefit = |name| history.benefit(&atom("f", name, 1), None);
        assert_eq!((benefit("/a.c"), benefit("/c.c")), (Some(1.0), Some(0.0)));
        assert!(benefit("/b.c") < benefit("/a.c"));
        assert_eq!(benefit("/d.c"), None);
    }

    #[test]
    fn unpopular_functions_are_worth_more() {
        let counts = [
            ("open(any, O_RDONLY)", 500),
            ("open(any, any)", 499),
            ("rare(any)", 0),
        ];
        let counts = counts.map(|(name, count)| (name.to_owned(), count)).into();
        let popularity = Popularity::new(&counts);
        assert_eq!(popularity.calls["open"], 999);
        let benefit = |name| popularity.benefit(&atom(name, "a.c", 1), None);
        assert_eq!(benefit("open"), Some(0.25));
        assert_eq!((benefit("rare"), benefit("other")), (Some(1.0), None));
    }

    #[test]
    fn what_was_explored_completely_is_worth_little_but_not_nothing() {
        let mut complete = LineCoverage::default();
        complete.add("/src/a.c", 1, "f", true);
        complete.add("/src/a.c", 2, "f", false);
        complete.add("/src/a.c", 3, "f", true);
        let mut coverage = complete.clone();
        coverage.add("/src/b.c", 1, "g", true);
        let explored = Explored {
            coverage,
            complete,
            findings: vec![("/src/a.c".to_owned(), 3)],
            bounds: Vec::new(),
        };
        let benefit = |file, line| explored.benefit(&atom("f", file, line), None).unwrap();
        assert!(benefit("/src/a.c", 1) < 0.1 && benefit("a.c", 1) < 0.1);
        assert_eq!(benefit("/src/a.c", 2), 1.0);
        assert_eq!(benefit("/src/a.c", 3), 1.0);
        assert_eq!(benefit("/src/b.c", 1), 0.5);
        assert_eq!(benefit("/src/c.c", 1), 1.0);
        assert_eq!(benefit("/src/xa.c", 1), 1.0);
        let all: Vec<(Box<dyn Estimator>, f64)> = vec![(Box::new(explored), 1.0)];
        assert!(combined(&all, &atom("f", "/src/a.c", 1), None) >= LEAST);
        assert_eq!(combined(&[], &atom("f", "/src/a.c", 1), None), UNKNOWN);
    }
}
