//! The cost of an atom: how often it runs, times the cost of one check of its kind.
//!
//! The cost of checks is calibrated on the program itself: the run time of the build with all
//! checks, less that of the build without checks, is divided among the atoms by count and kind.

use crate::files::{AtomRecord, Measured};

/// Returns the cost of one check of a kind, in nanoseconds, before calibration. If times were
/// measured, only the ratios matter.
pub fn weight_ns(kind: &str) -> f64 {
    match kind {
        "copy" => 6.0,
        "call" => 10.0,
        "frame" => 3.0,
        "log" => 300.0,
        "bounds" | "trap" | "assertion" | "overflow" => 0.4,
        _ => 0.7,
    }
}

/// Assumed number of iterations of each loop around a check, if there is no workload.
const TURNS: f64 = 10.0;
/// Assumed overhead of all checks together, if there is no workload.
const GUESSED_OVERHEAD: f64 = 1.0;

/// Costs of all atoms, and the overheads from which they are computed.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// The cost of each atom, as a fraction of the baseline.
    pub costs: Vec<f64>,
    /// The overhead without any check.
    pub residual: f64,
    /// The overhead with all checks.
    pub full: f64,
}

impl Costs {
    /// Returns the fraction of the overhead that selection controls.
    pub fn elasticity(&self) -> f64 {
        match self.full > 0.0 {
            true => ((self.full - self.residual.max(0.0)) / self.full).clamp(0.0, 1.0),
            false => 1.0,
        }
    }
}

/// Returns the median of numbers.
pub fn median(values: &[u64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle] as f64),
        _ => Some((sorted[middle - 1] + sorted[middle]) as f64 / 2.0),
    }
}

/// Returns the overhead of a build over the baseline. The builds ran alternately, so each run is
/// compared with its neighbour.
pub fn overhead(baseline: &[u64], other: &[u64]) -> Option<f64> {
    let mut ratios: Vec<f64> = baseline
        .iter()
        .zip(other)
        .filter(|(base, _)| **base > 0)
        .map(|(base, other)| *other as f64 / *base as f64)
        .collect();
    ratios.sort_by(f64::total_cmp);
    let middle = ratios.len() / 2;
    match ratios.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(ratios[middle] - 1.0),
        _ => Some((ratios[middle - 1] + ratios[middle]) / 2.0 - 1.0),
    }
}

/// Computes costs from a workload: counts of each atom, and times.
pub fn measured(atoms: &[AtomRecord], counts: &[u64], times: &Measured) -> Option<Costs> {
    let residual = overhead(&times.baseline_us, &times.none_us)?;
    let full = overhead(&times.baseline_us, &times.full_us)?;
    let work: Vec<f64> = atoms
        .iter()
        .zip(counts)
        .map(|(atom, count)| weight_ns(&atom.kind) * *count as f64)
        .collect();
    let all: f64 = work.iter().sum();
    let expected = all / (median(&times.baseline_us)? * 1000.0);
    // If the overhead is too small to be measured, checks still have their usual cost.
    let elastic = (full - residual).max(expected / 4.0);
    let scale = if all > 0.0 { elastic / all } else { 0.0 };
    Some(Costs {
        costs: work.iter().map(|work| work * scale).collect(),
        residual,
        full,
    })
}

/// Estimates costs by the loops around checks.
pub fn guessed(atoms: &[AtomRecord]) -> Costs {
    let work: Vec<f64> = atoms
        .iter()
        .map(|atom| weight_ns(&atom.kind) * TURNS.powi(atom.depth.min(6) as i32))
        .collect();
    let all: f64 = work.iter().sum();
    let scale = if all > 0.0 {
        GUESSED_OVERHEAD / all
    } else {
        0.0
    };
    Costs {
        costs: work.iter().map(|work| work * scale).collect(),
        residual: 0.0,
        full: GUESSED_OVERHEAD,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn atom(kind: &str, depth: u32) -> AtomRecord {
        AtomRecord {
            id: 0,
            kind: kind.to_owned(),
            file: String::new(),
            line: 1,
            function: String::new(),
            symbol: String::new(),
            depth,
            detail: String::new(),
        }
    }

    #[test]
    fn costs_sum_up_to_what_was_measured() {
        let atoms = [
            atom("read", 0),
            atom("write", 0),
            atom("copy", 0),
            atom("read", 0),
        ];
        let times = Measured {
            baseline_us: vec![1000, 1100, 1000],
            none_us: vec![1020, 1122, 1020],
            full_us: vec![1520, 1672, 1520],
        };
        let costs = measured(&atoms, &[1000, 500, 100, 0], &times).unwrap();
        assert!((costs.residual - 0.02).abs() < 1e-9 && (costs.full - 0.52).abs() < 1e-9);
        assert!((costs.costs.iter().sum::<f64>() - 0.5).abs() < 1e-9);
        assert_eq!(costs.costs[0], 2.0 * costs.costs[1]);
        assert_eq!(costs.costs[3], 0.0);
        assert!((costs.elasticity() - 0.5 / 0.52).abs() < 1e-9);
    }

    #[test]
    fn noise_does_not_make_checks_free() {
        let atoms = [atom("read", 0)];
        let times = Measured {
            baseline_us: vec![1000],
            none_us: vec![1010],
            full_us: vec![990],
        };
        let costs = measured(&atoms, &[1_000_000], &times).unwrap();
        assert!(costs.costs[0] > 0.1);
        assert_eq!(measured(&atoms, &[1], &Measured::default()), None);
    }

    #[test]
    fn deep_loops_are_guessed_to_be_hot() {
        let costs = guessed(&[atom("read", 0), atom("read", 2)]);
        assert!((costs.costs[1] / costs.costs[0] - 100.0).abs() < 1e-6);
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[5, 1, 9]), Some(5.0));
        assert_eq!(median(&[5, 1, 9, 7]), Some(6.0));
        assert_eq!(median(&[]), None);
        let seen = overhead(&[100, 200], &[110, 240]).unwrap();
        assert!((seen - 0.15).abs() < 1e-9);
    }
}
