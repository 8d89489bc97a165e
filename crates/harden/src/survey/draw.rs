//! The results of a survey: the distribution of popularity as a plot, and the popularity of a call
//! as C code.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::{Constants, Survey};
use crate::curve::svg_head;

/// A row of the figure: the shares with at most this popularity.
struct Row {
    popularity: u64,
    configurations: f64,
    calls: f64,
    vulnerabilities: f64,
}

fn rows(survey: &Survey) -> Vec<Row> {
    let holes: Vec<u64> = survey
        .vulnerabilities
        .iter()
        .map(|configuration| {
            survey
                .configurations
                .get(configuration)
                .copied()
                .unwrap_or(0)
        })
        .collect();
    let counts: Vec<u64> = survey.configurations.values().copied().collect();
    let mut steps: BTreeSet<u64> = counts.iter().chain(&holes).copied().collect();
    steps.insert(0);
    let part = |some: u64, all: u64| some as f64 / all.max(1) as f64;
    steps
        .into_iter()
        .map(|popularity| {
            let below =
                |values: &[u64]| values.iter().filter(|one| **one <= popularity).count() as u64;
            let calls: u64 = counts.iter().filter(|one| **one <= popularity).sum();
            Row {
                popularity,
                configurations: part(below(&counts), counts.len() as u64),
                calls: part(calls, survey.calls()),
                vulnerabilities: part(below(&holes), holes.len() as u64),
            }
        })
        .collect()
}

/// Returns the shares of configurations, calls and vulnerabilities with at most each popularity, as
/// CSV.
pub fn figure_csv(survey: &Survey) -> String {
    let mut text = String::from("popularity,configurations,calls,vulnerabilities\n");
    for row in rows(survey) {
        let _ = writeln!(
            text,
            "{},{:.6},{:.6},{:.6}",
            row.popularity, row.configurations, row.calls, row.vulnerabilities
        );
    }
    text
}

/// Draws the shares of [`figure_csv`]; popularity has a logarithmic scale.
pub fn figure_svg(survey: &Survey) -> String {
    const LEFT: f64 = 60.0;
    const TOP: f64 = 20.0;
    const WIDTH: f64 = 560.0;
    const HEIGHT: f64 = 300.0;
    let rows = rows(survey);
    let scale = |popularity: u64| (1.0 + popularity as f64).log10();
    let most = rows
        .last()
        .map_or(1.0, |row| scale(row.popularity).max(1.0));
    let x = |popularity: u64| LEFT + WIDTH * scale(popularity) / most;
    let y = |part: f64| TOP + HEIGHT * (1.0 - part);
    let mut out = svg_head(LEFT + WIDTH + 30.0, TOP + HEIGHT + 50.0);
    for step in 0..=4_u8 {
        let part = f64::from(step) / 4.0;
        let _ = writeln!(
            out,
            "<line x1=\"{LEFT}\" y1=\"{0:.1}\" x2=\"{1:.1}\" y2=\"{0:.1}\" stroke=\"#ddd\"/>\n\
             <text x=\"{2:.1}\" y=\"{3:.1}\" text-anchor=\"end\">{4:.0}%</text>",
            y(part),
            LEFT + WIDTH,
            LEFT - 6.0,
            y(part) + 4.0,
            part * 100.0
        );
    }
    let mut power = 1_u64;
    while scale(power) <= most {
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{power}</text>",
            x(power),
            TOP + HEIGHT + 16.0
        );
        power = power.saturating_mul(10);
    }
    type Value = fn(&Row) -> f64;
    let curves: [(&str, &str, Value); 3] = [
        ("configurations", "#2a8a3a", |row| row.configurations),
        ("calls", "#2456b8", |row| row.calls),
        ("vulnerabilities", "#c05a00", |row| row.vulnerabilities),
    ];
    for (number, (name, colour, value)) in curves.iter().enumerate() {
        let points: Vec<String> = rows
            .iter()
            .map(|row| format!("{:.1},{:.1}", x(row.popularity), y(value(row))))
            .collect();
        let _ = writeln!(
            out,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\">{name}</text>",
            points.join(" "),
            LEFT + 10.0 + 110.0 * number as f64,
            TOP + HEIGHT + 36.0
        );
    }
    out.push_str("</svg>\n");
    out
}

/// Returns a function in C that returns how popular a system call with given arguments is.
pub fn popularity_c(survey: &Survey, constants: &Constants) -> String {
    let mut calls: BTreeMap<&str, Vec<(Vec<&str>, u64)>> = BTreeMap::new();
    let mut headers = BTreeSet::new();
    for (configuration, count) in &survey.configurations {
        let Some((name, rest)) = configuration.split_once('(') else {
            continue;
        };
        let arguments: Vec<&str> = rest.trim_end_matches(')').split(", ").collect();
        for constant in arguments.iter().flat_map(|argument| argument.split('|')) {
            headers.extend(constants.header(constant));
        }
        calls.entry(name).or_default().push((arguments, *count));
    }
    let mut text = format!(
        "// How often a system call is made with constants like these, in {} calls of {} source files.\n",
        survey.calls(),
        survey.files
    );
    text.push_str("#include <sys/syscall.h>\n");
    for header in headers {
        let _ = writeln!(text, "#include <{header}>");
    }
    text.push_str("\nunsigned long everett_popularity(long number, const long *arguments) {\n  switch (number) {\n");
    for (name, mut configurations) in calls {
        let named = |arguments: &[&str]| arguments.iter().filter(|one| is_named(one)).count();
        configurations
            .sort_by_key(|(arguments, count)| (std::cmp::Reverse(named(arguments)), *count));
        let _ = writeln!(text, "#ifdef SYS_{name}\n  case SYS_{name}:");
        let mut other = 0;
        for (arguments, count) in configurations {
            let conditions: Vec<String> = arguments
                .iter()
                .enumerate()
                .filter(|(_, argument)| is_named(argument))
                .map(|(at, argument)| match argument.contains('|') {
                    true => format!("arguments[{at}] == ({argument})"),
                    false => format!("arguments[{at}] == {argument}"),
                })
                .collect();
            match conditions.is_empty() {
                true => other += count,
                false => {
                    let _ = writeln!(text, "    if ({}) return {count};", conditions.join(" && "));
                }
            }
        }
        let _ = writeln!(text, "    return {other};\n#endif");
    }
    text.push_str("  default:\n    return 0;\n  }\n}\n");
    text
}

fn is_named(argument: &&str) -> bool {
    !argument.is_empty() && **argument != *"any"
}
