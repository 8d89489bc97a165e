//! Events and results in two forms that front ends share: lines of JSON for programs, and text for
//! people.

use everett_engine::{Finding, principal};
use everett_report::{LineCoverage, Outcome, counted};
use everett_vm::BugKind;
use std::num::NonZeroU32;
use std::path::Path;

use crate::events::{Event, Progress, WorldProgress};
use crate::repeat::Repeats;
use crate::summary::{Comparison, DifferenceEntry, ResumeFrom, Summary, WorldFigures};
use crate::trace::Ending;
use crate::verdict::Verdict;

/// Maximum number of names of a list that are shown.
const MOST_SHOWN: usize = 10;

/// Formats an event as a line of JSON, if it is of interest to programs that follow a search.
pub fn json_line(event: &Event<'_>) -> Option<String> {
    let value = match event {
        Event::Progress(progress) => progress_json(progress),
        Event::Finding {
            number, finding, ..
        } => finding_json(*number, finding),
        Event::Difference { entry, .. } | Event::WorldsDiffer { entry } => difference_json(entry),
        Event::Warning(text) => serde_json::json!({ "event": "warning", "message": text }),
        Event::Finished { summary, .. } => return Some(end_json(summary)),
        _ => return None,
    };
    Some(value.to_string())
}

fn finding_json(number: u64, finding: &Finding) -> serde_json::Value {
    let place = principal(&finding.stack);
    let (file, line) = place.map_or(("?", 0), |place| (place.file.as_str(), place.line));
    serde_json::json!({
        "event": "finding", "number": number, "kind": finding.kind.name(),
        "message": finding.message, "file": file, "line": line,
    })
}

fn difference_json(entry: &DifferenceEntry) -> serde_json::Value {
    serde_json::json!({
        "event": "difference", "aspects": entry.aspects, "new": entry.new, "old": entry.old,
        "dir": entry.dir,
    })
}

/// Formats the last event of a run. It is built as text, because a JSON value cannot hold numbers
/// of worlds above 64 bits.
fn end_json(summary: &Summary) -> String {
    let summary = serde_json::to_string(summary).unwrap_or_else(|_| "null".to_owned());
    format!("{{\"event\":\"end\",\"summary\":{summary}}}")
}

fn progress_json(progress: &Progress) -> serde_json::Value {
    let seconds = progress.elapsed.as_secs_f64();
    let Progress {
        states,
        findings,
        instructions,
        ..
    } = progress;
    match &progress.world {
        None => serde_json::json!({
            "event": "progress", "seconds": seconds, "paths": progress.paths,
            "states": states, "findings": findings, "instructions": instructions,
        }),
        Some(WorldProgress {
            virtual_ns,
            dstates,
        }) => serde_json::json!({
            "event": "progress", "seconds": seconds, "virtual_seconds": *virtual_ns as f64 / 1e9,
            "states": states, "dstates": dstates, "findings": findings,
            "instructions": instructions,
        }),
    }
}

/// Formats an event as text for people, of one or several lines; `None` if it has none. Progress,
/// ends of searches and output of programs have texts of their own ([`progress_text`],
/// [`summary_text`], [`prefixed`]). `named` replaces the fields of specs in a message, which are in
/// backticks, by the names that the user knows.
pub fn event_text(event: &Event<'_>, named: impl Fn(&str) -> String) -> Option<String> {
    Some(match event {
        Event::Finding {
            number, finding, ..
        } => finding_text(*number, finding, named),
        Event::Difference { entry, .. } | Event::WorldsDiffer { entry } => {
            format!("difference: {}\n    {}", entry.text(), entry.dir)
        }
        Event::Compared { comparison } => named(&comparison_text(comparison)),
        Event::Confirming { entry, findings } => {
            format!("confirming {} of {findings} natively", entry.dir)
        }
        Event::DifferenceReplayed { entry, verdict } => {
            named(&format!("{}: {}", entry.dir, verdict_text(verdict)))
        }
        Event::FindingReplayed { entry, verdict } => {
            verdict.reason()?;
            named(&format!("{}: {}", entry.dir, verdict_text(verdict)))
        }
        Event::FindingsReplayed {
            confirmed,
            findings,
        } => format!("{confirmed} of {findings} findings confirmed natively"),
        Event::Followed { path, ending } => followed_text(path, ending)?,
        Event::Calls { path, of, lines } => {
            let path = (*of > 1).then(|| format!("{}:", path.display()));
            let lines: Vec<String> = path.into_iter().chain(lines.iter().cloned()).collect();
            return (!lines.is_empty()).then(|| lines.join("\n"));
        }
        Event::Step {
            host, number, line, ..
        } => match host {
            Some(host) => numbered(*number, &format!("{host} {line}")),
            None => numbered(*number, line),
        },
        Event::Repeated {
            path,
            times,
            repeats,
        } => repeated_text(path, *times, repeats),
        Event::Captured {
            host,
            file,
            packets,
        } => match host {
            None => format!("{} in {}", counted(packets, "packet"), file.display()),
            Some(host) => format!("packets of {host} are in {}", file.display()),
        },
        Event::Replayed { path, verdict } => {
            format!("{}: {}", path.display(), named(&verdict_text(verdict)))
        }
        Event::Tested { path, outcome } => named(&tested_text(path, outcome)),
        Event::Trojan(entry) => entry.found_text(),
        _ => return None,
    })
}

fn finding_text(number: u64, finding: &Finding, named: impl Fn(&str) -> String) -> String {
    // Messages of all other kinds can quote the program, and must stay unchanged.
    let message = match finding.kind.name() == BugKind::Unsupported.name() {
        true => named(&finding.message),
        false => finding.message.clone(),
    };
    // If all hosts are off, there is no place.
    let place = principal(&finding.stack).map_or(String::new(), |place| {
        let (function, file, line) = (&place.function, &place.file, place.line);
        format!("in {function} at {file}:{line}    ")
    });
    let kind = finding.kind.name();
    format!("{kind}: {message}\n    {place}findings/{number:04}")
}

fn verdict_text(verdict: &Verdict) -> String {
    match verdict.reason() {
        None => verdict.name().to_owned(),
        Some(why) => format!("{}: {why}", verdict.name()),
    }
}

fn followed_text(path: &Path, ending: &Ending) -> Option<String> {
    let path = path.display();
    Some(match ending {
        Ending::Path { expected, seen } => format!("{path}: expected {expected:?}, seen {seen:?}"),
        Ending::Finding { expected, seen } => {
            format!("{path}: it ends differently\n    expected {expected:?}, seen {seen:?}")
        }
        Ending::World {
            expected,
            seen,
            wrong,
        } => format!(
            "{path}: it ends differently\n    expected {expected:?}, seen {seen:?} {wrong:?}"
        ),
        _ => return None,
    })
}

fn repeated_text(path: &Path, times: NonZeroU32, repeats: &Repeats) -> String {
    let path = path.display();
    let text = format!(
        "{path}: {}, {} with another log than the first, which has {}",
        counted(times, "run"),
        repeats.others,
        counted(repeats.events, "event")
    );
    match &repeats.difference {
        Some(difference) => format!("{text}\n{path}: {difference}"),
        None => text,
    }
}

fn tested_text(path: &Path, outcome: &Outcome) -> String {
    let path = path.display();
    match outcome {
        Outcome::Passed => format!("ok        {path}"),
        Outcome::Failed(why) => format!("FAILED    {path}: {why}"),
        Outcome::Error(why) => format!("DIVERGED  {path}: {why}"),
        Outcome::Skipped(why) => format!("skipped   {path}: {why}"),
    }
}

/// Formats an event of a replay with its number.
pub fn numbered(number: usize, line: &str) -> String {
    format!("{number:>6} {line}")
}

/// Puts the name of a host before each line of its output.
pub fn prefixed(host: &str, output: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for line in output.split_inclusive(|byte| *byte == b'\n') {
        text.extend_from_slice(format!("{host}: ").as_bytes());
        text.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            text.push(b'\n');
        }
    }
    text
}

/// Formats coverage as lines of text, by file and function.
pub fn coverage_text(coverage: &LineCoverage) -> String {
    let share = |(hit, all): (usize, usize)| {
        let percent = 100.0 * hit as f64 / all.max(1) as f64;
        format!("{hit} of {all} ({percent:.1} %)")
    };
    let totals = |name: &str, [lines, functions, branches]: [(usize, usize); 3]| {
        let (lines, functions, branches) = (share(lines), share(functions), share(branches));
        format!("{name}: lines {lines}, functions {functions}, branches {branches}")
    };
    let mut text = Vec::new();
    for (name, file) in coverage.files() {
        let figures = [file.totals(), file.function_totals(), file.branch_totals()];
        text.push(totals(name, figures));
        let mut functions: Vec<_> = file.functions.iter().collect();
        functions.sort_by_key(|(_, function)| function.line);
        for (name, function) in functions {
            let lines = match function.executed {
                true => share(file.lines_of(name)),
                false => "not executed".to_owned(),
            };
            text.push(format!("    {:>6} {name}: {lines}", function.line));
        }
    }
    let all = [
        coverage.totals(),
        coverage.function_totals(),
        coverage.branch_totals(),
    ];
    text.push(totals("all", all));
    text.join("\n")
}

/// Formats the progress of a search as a line.
pub fn progress_text(progress: &Progress) -> String {
    let seconds = progress.elapsed.as_secs_f64();
    let rate = short(progress.instructions_per_second);
    let states = counted(progress.states, "state");
    let findings = counted(progress.findings, "finding");
    match &progress.world {
        None => {
            let (covered, all) = (progress.segments_covered, progress.segments.max(1));
            format!(
                "{seconds:>6.1} s  {}  {states}  {:.1} % covered  {findings}  {rate}/s  solver {:.0} %",
                counted(progress.paths, "path"),
                100.0 * covered as f64 / all as f64,
                100.0 * progress.solver_time.as_secs_f64() / seconds.max(1e-9),
            )
        }
        Some(world) => format!(
            "{seconds:>6.1} s  virtual time {:.3} s  {states}  {}  {findings}  {rate}/s",
            world.virtual_ns as f64 / 1e9,
            counted(world.dstates, "dstate"),
        ),
    }
}

/// Formats the summary of a search as lines of text; `folder` contains its results.
pub fn summary_text(summary: &Summary, folder: &Path) -> String {
    let mut lines = Vec::new();
    lines.push(totals(summary));
    if let Some(against) = &summary.against {
        lines.push(comparison_text(against));
    }
    let limits = summary.limits_hit.join(", ");
    if !limits.is_empty() {
        lines.push(format!("limits reached: {limits}"));
    }
    if !summary.unsupported.is_empty() {
        lines.push(format!(
            "unsupported: {} that Linux would fulfil, refused or ignored (see summary.json)",
            counted(summary.unsupported.len(), "request")
        ));
    }
    if let Some(stalled) = summary.world.as_ref().and_then(stalled_text) {
        lines.push(stalled);
    }
    lines.extend(never_fired_text(&summary.faults_never_fired));
    let pending = summary.program.as_ref().map_or(0, |it| it.states_pending);
    if pending > 0 {
        let how = match summary.resume_from {
            Some(ResumeFrom::EarlierCheckpoint) => "continue from an earlier checkpoint",
            Some(ResumeFrom::Beginning) => "start again",
            _ => "continue",
        };
        lines.push(format!(
            "{} left; {how} with: everett resume {}",
            counted(pending, "state"),
            folder.display()
        ));
    }
    lines.join("\n")
}

/// Formats faults that never fired as a line of text.
pub fn never_fired_text(never: &[String]) -> Option<String> {
    let shown = never[..never.len().min(MOST_SHOWN)].join(", ");
    let more = never.len().saturating_sub(MOST_SHOWN);
    let more = (more > 0).then(|| format!(" and {more} more"));
    let more = more.unwrap_or_default();
    (!never.is_empty()).then(|| format!("faults that never fired: {shown}{more}"))
}

fn completeness(complete: bool) -> &'static str {
    match complete {
        true => "complete",
        false => "not complete",
    }
}

fn totals(summary: &Summary) -> String {
    let complete = completeness(summary.complete);
    let findings = counted(summary.findings.len(), "finding");
    let instructions = counted(summary.instructions, "instruction");
    let seconds = summary.wall_seconds;
    let ran = match &summary.cluster {
        // The time is that of gathering the results, not of the workers.
        Some(_) => format!("{instructions} of workers, gathered in {seconds:.2} s"),
        None => {
            let rate = short(summary.instructions as f64 / seconds.max(1e-9));
            format!("{instructions} ({rate}/s), {seconds:.2} s")
        }
    };
    match &summary.world {
        None => format!(
            "{complete}: {} ({} partial), {findings}, {ran}, {} of {} lines covered",
            counted(summary.paths.completed + summary.paths.partial, "path"),
            summary.paths.partial,
            summary.coverage.lines_covered,
            summary.coverage.lines,
        ),
        Some(world) => format!(
            "{complete}: {} of {} ({}), {findings}, {}, {ran}",
            counted(world.worlds, "world"),
            counted(world.states_total, "state"),
            world.mapping,
            counted(world.packets, "packet"),
        ),
    }
}

/// Formats the result of the comparison of two builds.
pub fn comparison_text(against: &Comparison) -> String {
    match (against.equivalent, against.pairs_different) {
        (true, _) => "equivalent: the builds do the same on all inputs".to_owned(),
        (false, 0) => {
            "no difference of the builds was found, but not all inputs were explored".to_owned()
        }
        (false, pairs) => format!(
            "{} of the builds, on {} of paths",
            counted(against.differences.len(), "difference"),
            counted(pairs, "pair")
        ),
    }
}

/// Describes worlds in which hosts wait forever that end in other worlds, or in which all hosts
/// wait. A server that waits in all worlds does not count.
fn stalled_text(world: &WorldFigures) -> Option<String> {
    let WorldFigures {
        worlds,
        worlds_stalled,
        worlds_deadlocked,
        hosts_stalled,
        ends_checked,
        ..
    } = world;
    if hosts_stalled.is_empty() && *worlds_deadlocked == 0 {
        return None;
    }
    let hosts = match hosts_stalled.join(", ") {
        hosts if hosts.is_empty() => String::new(),
        hosts => format!("; hosts that end in other worlds: {hosts}"),
    };
    let hint = match ends_checked {
        true => "",
        false => " (`check_deadlocks` makes that a finding)",
    };
    Some(format!(
        "stalled: a host waits for ever in {worlds_stalled} of {worlds} worlds, all hosts in {worlds_deadlocked}\
         {hosts}{hint}"
    ))
}

/// Formats a number with a unit.
fn short(number: f64) -> String {
    match number {
        n if n >= 1e9 => format!("{:.1} G", n / 1e9),
        n if n >= 1e6 => format!("{:.1} M", n / 1e6),
        n if n >= 1e3 => format!("{:.1} k", n / 1e3),
        n => format!("{n:.0}"),
    }
}
