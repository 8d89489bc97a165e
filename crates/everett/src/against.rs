//! `explore`, also of a scenario against another one: explores two sets of builds, and replays each
//! world of either on the native programs of the other.

use everett_native::{NativeEnd, NativeRun, WorldRun};
use everett_report::Folder;
use everett_report::counted;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::error::{Result, bail};
use crate::events::{Event, Observer, Silent};
use crate::explore::{RunResult, explore as explore_one};
use crate::native_world::NativeWorld;
use crate::session::Session;
use crate::spec::{BuildSpec, RunSpec, is_scenario};
use crate::summary::{Comparison, DifferenceEntry};
use crate::trace::{WorldTrace, traces_below};
use crate::verdict::Verdict;

/// Folder of the exploration of the other scenario, below that of the run.
const OTHER: &str = "against";

/// Explores a program or a scenario. Findings and tests are written to the folder of the run.
pub fn explore(
    spec: &RunSpec,
    session: &Session,
    observer: &mut dyn Observer,
) -> Result<RunResult> {
    match &spec.against {
        Some(other) if spec.is_scenario() => explore_worlds(spec, other, session, observer),
        _ => explore_one(spec, session, observer),
    }
}

/// Explores two scenarios with the same hosts, and compares their worlds.
fn explore_worlds(
    spec: &RunSpec,
    other: &Path,
    session: &Session,
    observer: &mut dyn Observer,
) -> Result<RunResult> {
    if !is_scenario(other) {
        bail!(
            Usage,
            "{} is no scenario; a scenario is compared with another one, which names the other builds",
            other.display()
        );
    }
    let new = RunSpec {
        against: None,
        all_tests: true,
        // Data that only a selection depends on differs as well.
        fork_conditions: true,
        ..spec.clone()
    };
    let mut result = explore_one(&new, session, observer)?;
    let old = RunSpec {
        command: vec![other.as_os_str().to_owned()],
        out: Some(result.folder.join(OTHER)),
        ..new.clone()
    };
    let old_result = explore_one(&old, session, &mut Silent)?;
    let worlds = [&new, &old].map(|spec| NativeWorld::of(spec, &BuildSpec::default(), session));
    let [new_world, old_world] = worlds;
    let (new_world, old_world) = (new_world?, old_world?);
    let names = |world: &NativeWorld| -> Vec<String> {
        world.hosts.iter().map(|host| host.name.clone()).collect()
    };
    if names(&new_world) != names(&old_world) {
        bail!(Usage, "{} has other hosts", other.display());
    }
    let mut comparing = Comparing {
        folder: Folder::open(&result.folder)?,
        observer,
        reports_all: spec.all_findings,
        differences: Vec::new(),
        worlds_different: 0,
        left_out: 0,
    };
    comparing.replay_all(&result.folder, (&new_world, &old_world), false)?;
    comparing.replay_all(&old_result.folder, (&old_world, &new_world), true)?;
    if comparing.left_out > 0 {
        let left_out = comparing.left_out;
        let text = format!(
            "{} could not be compared natively",
            counted(left_out, "world")
        );
        comparing.observer.event(&Event::Warning(&text));
    }
    result.summary.against = Some(Comparison {
        // Each world was compared for one input only, which says nothing about the others.
        equivalent: false,
        pairs_different: comparing.worlds_different,
        differences: comparing.differences,
    });
    result.summary.write(&comparing.folder)?;
    if let Some(comparison) = &result.summary.against {
        comparing.observer.event(&Event::Compared { comparison });
    }
    Ok(result)
}

/// A comparison of worlds in progress.
struct Comparing<'c> {
    folder: Folder,
    observer: &'c mut dyn Observer,
    /// Whether all worlds that differ are reported, not only the first of those with the same
    /// difference.
    reports_all: bool,
    differences: Vec<DifferenceEntry>,
    worlds_different: u64,
    left_out: u64,
}

impl Comparing<'_> {
    /// Replays all worlds of a run on its own programs and on the others. `is_old` says that it is
    /// the run of the old builds.
    fn replay_all(
        &mut self,
        run: &Path,
        (own, other): (&NativeWorld, &NativeWorld),
        is_old: bool,
    ) -> Result<()> {
        let mut traces: Vec<PathBuf> = Vec::new();
        for part in ["findings", "tests"] {
            let folder = run.join(part);
            if folder.is_dir() {
                traces.extend(traces_below(&folder)?);
            }
        }
        for path in traces {
            let trace = WorldTrace::read(&path, false)?;
            if !trace.has_end() {
                continue;
            }
            let (one, two) = (own.replay(&trace)?, other.replay(&trace)?);
            let is_sound = one.verdict == Verdict::Confirmed;
            let (true, Some(seen), Some(others)) = (is_sound, &one.seen, &two.seen) else {
                self.left_out += 1;
                continue;
            };
            // Whichever run a world is from, the build under test comes first.
            let mut found = Aspects::default();
            if one.checks.is_none() && two.checks.is_none() {
                let [new, old] = if is_old {
                    [others, seen]
                } else {
                    [seen, others]
                };
                found.compare(new, old);
            } else if two.verdict != Verdict::Confirmed {
                let [own, other] = ["has it", "does not"].map(str::to_owned);
                let (new, old) = if is_old { (other, own) } else { (own, other) };
                found.add("the finding", new, old);
            }
            if !found.names.is_empty() {
                self.report(found, &path)?;
            }
        }
        Ok(())
    }

    fn report(&mut self, found: Aspects, path: &Path) -> Result<()> {
        self.worlds_different += 1;
        let [new, old] = found.ends;
        let is_alike = |entry: &DifferenceEntry| {
            entry.aspects == found.names && entry.new == new && entry.old == old
        };
        if !self.reports_all && self.differences.iter().any(is_alike) {
            return Ok(());
        }
        let dir = format!("differences/{:04}", self.differences.len() + 1);
        let entry = DifferenceEntry {
            aspects: found.names,
            new,
            old,
            dir: dir.clone(),
            confirmed: Some(Verdict::Confirmed.name().to_owned()),
            confirmed_reason: None,
        };
        let place = path.strip_prefix(self.folder.path()).unwrap_or(path);
        let mut text = format!("{}\n\nworld: {}\n", entry.text(), place.display());
        text.push_str(&found.details);
        self.folder
            .write(&format!("{dir}/difference.txt"), text.as_bytes())?;
        self.observer.event(&Event::WorldsDiffer { entry: &entry });
        self.differences.push(entry);
        Ok(())
    }
}

/// The differences of two runs of a world.
#[derive(Default)]
struct Aspects {
    names: Vec<String>,
    /// How the hosts that differ end, with the build under test and with the other one.
    ends: [String; 2],
    details: String,
}

impl Aspects {
    fn add(&mut self, name: &str, one: String, other: String) {
        self.names.push(name.to_owned());
        for (end, more) in self.ends.iter_mut().zip([one, other]) {
            if !end.is_empty() {
                end.push_str(", ");
            }
            end.push_str(&more);
        }
    }

    fn compare(&mut self, one: &WorldRun, other: &WorldRun) {
        for (name, run) in &one.hosts {
            if let Some(same) = other.hosts.get(name) {
                self.compare_host(name, run, same);
            }
        }
        let (sent, others) = (sent(one), sent(other));
        for pair in sent.keys().chain(others.keys()) {
            let name = format!("messages from {} to {}", pair.0, pair.1);
            let (mine, theirs) = (sent.get(pair), others.get(pair));
            if mine != theirs && !self.names.contains(&name) {
                let said = |list: Option<&Vec<String>>| list.cloned().unwrap_or_default();
                let (mine, theirs) = (said(mine), said(theirs));
                let at = (0..).find(|at| mine.get(*at) != theirs.get(*at));
                let at = at.unwrap_or(0);
                let show = |list: &[String]| match list.get(at) {
                    Some(what) => format!("sends {what}"),
                    None => format!("sends {} of them", list.len()),
                };
                self.add(&name, show(&mine), show(&theirs));
            }
        }
    }

    fn compare_host(&mut self, name: &str, one: &NativeRun, other: &NativeRun) {
        let ends = [one, other].map(|run| how_it_ends(&run.end));
        if ends[0] != ends[1] {
            let [mine, theirs] = ends;
            self.add(&format!("the end of {name}"), mine, theirs);
            return;
        }
        for (stream, at) in [("output", 0), ("error", 1)] {
            if one.output[at] != other.output[at] {
                let [mine, theirs] =
                    [one, other].map(|run| String::from_utf8_lossy(&run.output[at]).into_owned());
                let _ = writeln!(
                    self.details,
                    "\nstandard {stream} of {name}:\n{mine}\nand on the other build:\n{theirs}"
                );
                let aspect = format!("standard {stream} of {name}");
                self.add(
                    &aspect,
                    "prints one thing".to_owned(),
                    "prints another".to_owned(),
                );
            }
        }
    }
}

/// Describes how a host ends, without addresses, which differ between builds.
fn how_it_ends(end: &NativeEnd) -> String {
    match end {
        NativeEnd::Exit(status) => format!("exits with {status}"),
        NativeEnd::Signal { signal, .. } => format!("is ended by signal {signal}"),
        NativeEnd::Finding { kind, .. } => format!("ends in {kind}"),
        NativeEnd::Idle => "waits".to_owned(),
        NativeEnd::Hang => "does not end".to_owned(),
        NativeEnd::Limit(_) => "meets a limit".to_owned(),
        NativeEnd::Diverged(_) => "asks for something else".to_owned(),
        NativeEnd::Stopped => "was stopped".to_owned(),
        NativeEnd::Off => "was switched off".to_owned(),
    }
}

/// Returns the messages between hosts, by sender and receiver, in order.
fn sent(run: &WorldRun) -> BTreeMap<(&str, &str), Vec<String>> {
    let mut sent: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for message in &run.messages {
        if message.packet.is_some() {
            let pair = (message.from.as_str(), message.to.as_str());
            sent.entry(pair).or_default().push(message.what.clone());
        }
    }
    sent
}
