//! Pictures and reports of a search: the map of the space, curves over the runs, JUnit, and a table
//! as text.

use everett_report::counted;
use everett_report::{Curve, Folder, Outcome as TestOutcome, Panel, TestCase, junit, plot};
use std::collections::BTreeMap;
use std::fmt::Write;

use crate::error::Result;
use crate::results::{Curves, FaultSummary, Outcome};
use crate::settings::SearchConfig;
use crate::space::Space;

/// Maximum number of cells on a side of the map.
const MAX_SIDE: u64 = 200;
const CELL: u64 = 12;
const MARGIN: u64 = 150;

/// Writes all of them.
pub(crate) fn write(
    folder: &Folder,
    config: &SearchConfig,
    space: &Space,
    summary: &FaultSummary,
    curves: &Curves,
) -> Result<()> {
    folder.write("results.txt", table(summary).as_bytes())?;
    folder.write(
        "junit.xml",
        junit(&config.injector, &cases(summary, &curves.seconds)).as_bytes(),
    )?;
    folder.write("map.svg", map(space, summary).as_bytes())?;
    folder.write("curves.svg", curves_of(space, curves).as_bytes())?;
    Ok(())
}

fn cases(summary: &FaultSummary, seconds: &[f64]) -> Vec<TestCase> {
    let case = |result: &crate::results::ScenarioResult| {
        let why = format!("{}: {}", result.outcome, result.why.join(", "));
        TestCase {
            name: result.scenario.clone(),
            class: result.name.clone(),
            // Names are the numbers of scenarios, from 1.
            seconds: result
                .name
                .parse::<usize>()
                .ok()
                .and_then(|number| seconds.get(number.checked_sub(1)?).copied())
                .unwrap_or(0.0),
            outcome: match result.outcome {
                Outcome::Passed if summary.is_without_injection() => {
                    TestOutcome::Skipped("no fault was injected".to_owned())
                }
                Outcome::Passed => TestOutcome::Passed,
                Outcome::Error => TestOutcome::Error(why),
                _ => TestOutcome::Failed(why),
            },
        }
    };
    summary.results.iter().map(case).collect()
}

/// Returns the failures as text, worst first.
fn table(summary: &FaultSummary) -> String {
    let mut text = format!(
        "{} of {} scenarios, {} in {} ({} search, seed {}, injector {})\n\
         {}, {}, {:.2} s; tests of scenarios {:.2} s, processor {:.2} s\n\n\
         name    impact  precision  relevance  cluster  outcome       scenario\n",
        summary.scenarios_run,
        summary.scenarios_total,
        counted(summary.failures, "failure"),
        counted(summary.clusters, "cluster"),
        summary.search,
        summary.seed,
        summary.injector,
        counted(summary.jobs, "job"),
        counted(summary.other_runs, "other run"),
        summary.wall_seconds,
        summary.test_seconds,
        summary.processor_seconds
    );
    for result in summary
        .results
        .iter()
        .filter(|result| result.outcome.is_failure())
    {
        let precision = match result.precision {
            Some(precision) => format!("{precision:.3}"),
            None if result.repeats == "always the same" => "always".to_owned(),
            None => "-".to_owned(),
        };
        let mark = if result.is_representative { "*" } else { " " };
        let cluster = result
            .cluster
            .map(|number| format!("{number}{mark}"))
            .unwrap_or_default();
        let _ = writeln!(
            text,
            "{}  {:>6.2}  {precision:>9}  {:>9.3}  {cluster:>7}  {:<12}  {} ({})",
            result.name,
            result.impact,
            result.relevance,
            result.outcome.to_string(),
            result.scenario,
            result.why.join(", ")
        );
    }
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Draws the map of the first subspace: its two longest axes, and the maximum impact at each place.
fn map(space: &Space, summary: &FaultSummary) -> String {
    let axes = &space.subspaces()[0].axes;
    let mut order: Vec<usize> = (0..axes.len())
        .filter(|axis| axes[*axis].values.len() <= MAX_SIDE)
        .collect();
    order.sort_by_key(|axis| (std::cmp::Reverse(axes[*axis].values.len()), *axis));
    let (across, down) = (order.first().copied(), order.get(1).copied());
    let count = |axis: Option<usize>| axis.map_or(1, |axis| axes[axis].values.len());
    let mut worst: BTreeMap<(u64, u64), f64> = BTreeMap::new();
    for result in &summary.results {
        let point = space.point(result.position);
        if point.subspace == 0 {
            let at = |axis: Option<usize>| axis.map_or(0, |axis| point.indices[axis]);
            let cell = worst.entry((at(across), at(down))).or_default();
            *cell = cell.max(result.impact);
        }
    }
    let most = worst
        .values()
        .copied()
        .fold(0.0, f64::max)
        .max(f64::MIN_POSITIVE);
    let (width, height) = (
        MARGIN + count(across) * CELL + 10,
        MARGIN + count(down) * CELL + 10,
    );
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"9\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for ((x, y), impact) in &worst {
        // Gray without impact, darker with more impact; scenarios that were not run stay white.
        let shade = 220.0 - 220.0 * impact / most;
        let _ = writeln!(
            svg,
            "<rect x=\"{}\" y=\"{}\" width=\"{CELL}\" height=\"{CELL}\" \
             fill=\"rgb({shade:.0},{shade:.0},{shade:.0})\"/>",
            MARGIN + x * CELL,
            MARGIN + y * CELL
        );
    }
    for (axis, is_across) in [(across, true), (down, false)] {
        let Some(axis) = axis.map(|axis| &axes[axis]) else {
            continue;
        };
        for index in 0..axis.values.len() {
            let text = escaped(&axis.values.get(index).to_string());
            let along = MARGIN + index * CELL + 9;
            let _ = match is_across {
                true => writeln!(
                    svg,
                    "<text transform=\"translate({along},{}) rotate(-90)\">{text}</text>",
                    MARGIN - 4
                ),
                false => writeln!(
                    svg,
                    "<text x=\"{}\" y=\"{along}\" text-anchor=\"end\">{text}</text>",
                    MARGIN - 4
                ),
            };
        }
        let name = escaped(&axis.name);
        let _ = match is_across {
            true => writeln!(
                svg,
                "<text x=\"{MARGIN}\" y=\"12\" font-size=\"12\">{name} →</text>"
            ),
            false => writeln!(
                svg,
                "<text x=\"4\" y=\"{}\" font-size=\"12\">{name} ↓</text>",
                MARGIN - 10
            ),
        };
    }
    svg + "</svg>\n"
}

fn curves_of(space: &Space, curves: &Curves) -> String {
    let runs: Vec<f64> = (0..curves.failures.len()).map(|run| run as f64).collect();
    let curve = |name: &str, values: Vec<f64>| Curve {
        name: name.to_owned(),
        values,
    };
    let mut panels = vec![
        Panel {
            title: "failures over runs".to_owned(),
            curves: vec![curve("failures", curves.failures.clone())],
        },
        Panel {
            title: "impact of each run".to_owned(),
            curves: vec![curve("impact", curves.impact.clone())],
        },
    ];
    let of_axis = |(at, (_, name)): (usize, &(usize, String))| {
        let values = curves
            .sensitivity
            .iter()
            .map(|all| all.get(at).copied().unwrap_or(0.0));
        curve(name, values.collect())
    };
    if curves.sensitivity.iter().any(|all| !all.is_empty()) {
        panels.push(Panel {
            title: "sensitivity of axes over runs".to_owned(),
            curves: space.names().iter().enumerate().map(of_axis).collect(),
        });
    }
    plot(&runs, &panels)
}
