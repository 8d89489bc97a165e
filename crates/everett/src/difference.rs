//! Compares two builds of a program (`--against`): adds the other build to the search, writes
//! differences as files and as entries of the summary, and replays them natively on both builds.

use everett_engine::{Difference, ExplorerConfig, Trace};
use everett_linux::{FileChange, HostConfig};
use everett_native::NativeRun;
use everett_report::NamedFile;
use everett_vm::{Image, ImageId};
use std::fmt::Write;
use std::path::Path;

use crate::error::Result;
use crate::events::Event;
use crate::finding::{ktest, readable};
use crate::load::OtherBuild;
use crate::native_world::NativeWorld;
use crate::record::{Recorder, in_folder};
use crate::spec::{BuildSpec, RunSpec};
use crate::summary::DifferenceEntry;
use crate::trace::{AGAINST, Differing, HOST, WorldTrace, read_trace};
use crate::verdict::Verdict;

/// Begins the line that says whether a difference is confirmed.
const NATIVELY: &str = "natively: ";

/// The description of a difference, for people.
const TEXT: &str = "difference.txt";

/// The trace of the build under test.
const NEW: &str = "input.trace";

/// Adds the programs of another build to those of a run. Returns the host of the other build, which
/// differs in its programs only.
pub(crate) fn add_build(
    spec: &RunSpec,
    other: &Path,
    config: &ExplorerConfig,
    images: &mut Vec<Image>,
) -> Result<Box<HostConfig>> {
    let first = u16::try_from(images.len()).unwrap_or(u16::MAX);
    images.extend(spec.on(&[build(other)])?.load()?);
    Image::number_all(images);
    let mut host = config.hosts[0].config.clone();
    host.image = ImageId(first);
    // Both builds are the same file to the guest, as in native runs of the other build.
    host.program_contents.extend_from_within(..);
    for program in &mut host.programs {
        program.image.0 += first;
    }
    Ok(Box::new(host))
}

fn build(file: &Path) -> OtherBuild {
    OtherBuild {
        path: None,
        file: file.to_owned(),
    }
}

/// Describes the input, the choices and the output of both builds, for people.
fn describe(entry: &DifferenceEntry, difference: &Difference) -> String {
    let mut text = format!("{}\n{NATIVELY}not tried\n", entry.text());
    let [new, old] = &difference.traces;
    text.push_str("\ninputs:\n");
    for input in new.inputs.iter() {
        let _ = writeln!(text, "    {} = {}", input.name, readable(&input.bytes));
    }
    let is_known = |name: &str| new.inputs.iter().any(|input| *input.name == *name);
    for input in old.inputs.iter().filter(|input| !is_known(&input.name)) {
        let bytes = readable(&input.bytes);
        let _ = writeln!(
            text,
            "    {} = {bytes} (of the other build only)",
            input.name
        );
    }
    for (name, trace) in [("this build", new), ("the other", old)] {
        let choices = trace.choices.iter().filter(|choice| choice.picked > 0);
        for choice in choices {
            let _ = writeln!(text, "    {name}: {}", choice.describe());
        }
    }
    for (stream, at) in [("stdout", 0), ("stderr", 1)] {
        for (name, output) in ["this build", "the other"].iter().zip(&difference.output) {
            if !output[at].is_empty() {
                let bytes = String::from_utf8_lossy(&output[at]);
                let _ = writeln!(text, "\n{stream} of {name}:\n{bytes}");
            }
        }
    }
    text
}

impl Recorder<'_> {
    /// Writes a difference that the search has found.
    pub(crate) fn record_difference(&mut self, difference: &Difference) {
        let number = self.differences.len();
        let [new, old] = difference.ends.clone();
        let entry = DifferenceEntry {
            aspects: difference.aspects.clone(),
            new,
            old,
            dir: format!("differences/{:04}", number + 1),
            confirmed: None,
            confirmed_reason: None,
        };
        let text = describe(&entry, difference);
        let json = |trace: &Trace| WorldTrace::of_program(trace.clone()).to_json();
        let files: Vec<NamedFile> = vec![
            (TEXT.to_owned(), text.clone().into_bytes()),
            (NEW.to_owned(), json(&difference.traces[0])),
            (AGAINST.to_owned(), json(&difference.traces[1])),
            (
                "input.ktest".to_owned(),
                ktest(&self.spec.words(), &difference.traces[0]),
            ),
        ];
        let dir = entry.dir.clone();
        self.write(move || in_folder(&dir, files));
        let event = Event::Difference {
            entry: &entry,
            difference,
        };
        self.observer.event(&event);
        self.differing
            .push((number, difference.traces.clone(), text));
        self.differences.push(entry);
    }

    /// Loads the differences of a stopped run, and schedules those for replay that were not
    /// replayed yet.
    pub(crate) fn take_up_differences(&mut self, entries: &[DifferenceEntry]) {
        self.differences = entries.to_vec();
        let open = entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.confirmed.is_none());
        for (number, entry) in open {
            let dir = self.folder.path().join(&entry.dir);
            let read = |name: &str| read_trace(&dir.join(name)).ok();
            let text = everett_report::read_file(&dir.join(TEXT)).unwrap_or_default();
            if let (Some(new), Some(old)) = (read(NEW), read(AGAINST)) {
                let text = String::from_utf8_lossy(&text).into_owned();
                self.differing.push((number, [new, old], text));
            }
        }
    }

    /// Replays the differences natively, each on both builds.
    pub(crate) fn work_on_differences(&mut self) {
        let Some(other) = self.spec.against.clone() else {
            return;
        };
        if self.spec.no_confirm || self.differing.is_empty() {
            return;
        }
        let native = |on| {
            let build = BuildSpec { on, checked: false };
            let mut world = NativeWorld::of(self.spec, &build, self.session)?;
            for host in &mut world.hosts {
                host.config.keeps_files = true;
            }
            Ok(world)
        };
        let worlds: Result<Vec<NativeWorld>> = [Vec::new(), vec![build(&other)]]
            .into_iter()
            .map(native)
            .collect();
        let worlds = match worlds {
            Ok(worlds) => worlds,
            Err(error) => {
                return self.warn(&format!("no difference is confirmed: {}", error.chain()));
            }
        };
        for (number, traces, text) in std::mem::take(&mut self.differing) {
            let limit = self.spec.max_time;
            if limit.is_some_and(|limit| self.session.now() >= limit) {
                return self.warn("there is no time to confirm all differences");
            }
            let verdict = confirm(&worlds, &traces, &self.differences[number]);
            let text = with_verdict(&text, &verdict).into_bytes();
            let dir = self.differences[number].dir.clone();
            self.write(move || in_folder(&dir, vec![(TEXT.to_owned(), text)]));
            let entry = &mut self.differences[number];
            entry.confirmed = Some(verdict.name().to_owned());
            entry.confirmed_reason = verdict.reason().map(str::to_owned);
            self.observer.event(&Event::DifferenceReplayed {
                entry,
                verdict: &verdict,
            });
        }
    }
}

/// Returns the description of a difference with what its replay has shown.
fn with_verdict(text: &str, verdict: &Verdict) -> String {
    let reason = verdict
        .reason()
        .map_or_else(String::new, |why| format!(": {why}"));
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if let Some(line) = lines.iter_mut().find(|line| line.starts_with(NATIVELY)) {
        *line = format!("{NATIVELY}{}{reason}", verdict.name());
    }
    lines.join("\n") + "\n"
}

/// Replays a difference. It is confirmed if each build ends natively as its trace says, and the
/// remaining difference is visible.
fn confirm(worlds: &[NativeWorld], traces: &Differing, entry: &DifferenceEntry) -> Verdict {
    let mut runs = Vec::new();
    for ((world, trace), name) in worlds
        .iter()
        .zip(traces)
        .zip(["this build", "the other build"])
    {
        let named = |why: &str| format!("{name}: {why}");
        let replayed = match world.replay(&WorldTrace::of_program(trace.clone())) {
            Ok(replayed) => replayed,
            Err(error) => return Verdict::NotReplayable(named(&error.chain())),
        };
        match replayed.verdict {
            Verdict::Confirmed => {}
            Verdict::NotReproduced(why) => return Verdict::NotReproduced(named(&why)),
            Verdict::NotReplayable(why) => return Verdict::NotReplayable(named(&why)),
        }
        let seen = replayed.seen.and_then(|mut seen| seen.hosts.remove(HOST));
        runs.extend(seen);
    }
    match runs.as_slice() {
        _ if entry.is_seen_at_end() => Verdict::Confirmed,
        [new, old] if left(new) != left(old) => Verdict::Confirmed,
        _ => Verdict::NotReproduced("both builds leave the same files behind".to_owned()),
    }
}

/// A file that a run left behind: path, mode, kind and target, contents.
type Left<'r> = (&'r [u8], u32, u8, &'r [u8], &'r [u8]);

fn left(run: &NativeRun) -> Vec<Left<'_>> {
    let files = run.files.iter();
    let each = files.map(|(file, bytes)| {
        let (kind, target) = match &file.what {
            FileChange::File(_) => (0, &[][..]),
            FileChange::Directory => (1, &[][..]),
            FileChange::Link(target) => (2, target.as_slice()),
            FileChange::Special => (3, &[][..]),
            FileChange::Removed => (4, &[][..]),
        };
        (
            file.path.as_slice(),
            file.mode,
            kind,
            target,
            bytes.as_slice(),
        )
    });
    each.collect()
}
