//! Writes findings: entries of the summary, readable descriptions, and the files beside them.

use everett_engine::{
    Finding, ShownValue, SourceFrame, Trace, TraceChoice, WorldFinding, principal,
};
use everett_linux::{ChangedFile, FileChange};
use everett_report::counted;
use everett_report::{KTest, NamedFile};
use everett_vm::ChoiceSite;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use crate::verdict::Natively;

/// Maximum number of library functions that are named around the user's own.
const MAX_FOLDED: usize = 6;
/// Maximum length of a guest path whose file is written.
const MAX_PATH: usize = 1000;

/// A finding in the form in which `summary.json` lists it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FindingEntry {
    /// The kind of the finding.
    pub kind: String,
    /// A one-line description.
    pub message: String,
    /// The source file.
    pub file: String,
    /// The source line.
    pub line: u32,
    /// The function.
    pub function: String,
    /// The host on which it occurred.
    pub host: String,
    /// The folder of the finding, relative to the folder of the run.
    pub dir: String,
    /// A digest of the answers on the path of its host. Unlike the number of the folder and the
    /// inputs, it is the same in every run that finds this path.
    #[serde(default)]
    pub digest: String,
    /// The verdict of the native replay: `confirmed`, `not-reproduced` or
    /// `not-replayable`; `null` if it was not replayed.
    #[serde(default)]
    pub confirmed: Option<String>,
    /// The reason why the finding was not confirmed.
    #[serde(default)]
    pub confirmed_reason: Option<String>,
    /// The build on which it was confirmed: `plain`, or the checks of the build: `memory`,
    /// `bounds`, `initialised`; or `unoptimised`, which has no checks.
    #[serde(default)]
    pub confirmed_on: Option<String>,
}

impl FindingEntry {
    /// Creates an entry for a finding that was not replayed yet.
    pub fn of(found: &WorldFinding, dir: String) -> FindingEntry {
        let finding = &found.finding;
        let place = principal(&finding.stack).cloned().unwrap_or_default();
        FindingEntry {
            kind: finding.kind.name().to_owned(),
            message: finding.message.clone(),
            file: place.file,
            line: place.line,
            function: place.function,
            host: found.host.clone(),
            dir,
            digest: format!("{:016x}", finding.digest),
            confirmed: None,
            confirmed_reason: None,
            confirmed_on: None,
        }
    }

    /// Returns what findings are ordered by in lists: their contents. Workers find them in any
    /// order.
    pub(crate) fn order(&self) -> impl Ord + use<> {
        let place = (self.kind.clone(), self.file.clone(), self.line);
        let whose = (self.function.clone(), self.host.clone());
        (place, whose, self.digest.clone(), self.message.clone())
    }
}

/// Returns the files that describe a finding, besides its trace. `original` names the file of its
/// trace before shrinking.
pub(crate) fn finding_files(
    found: &WorldFinding,
    original: Option<&str>,
    natively: Natively<'_>,
) -> Vec<NamedFile> {
    let finding = &found.finding;
    let place = principal(&finding.stack).cloned().unwrap_or_default();
    let json = serde_json::json!({
        "kind": finding.kind.name(), "message": finding.message, "file": place.file, "line": place.line,
        "function": place.function, "host": found.host, "stack": finding.stack,
        "allocated": finding.allocated, "freed": finding.freed, "threads": finding.threads,
        "instructions": finding.instructions, "clock_ns": finding.clock_ns,
        "failures": finding.failures, "values": finding.values, "natively": natively.to_string(),
    });
    let json = serde_json::to_vec_pretty(&json).unwrap_or_default();
    let text = describe(finding, original, natively) + &others(&found.traces, &found.host);
    vec![
        ("finding.txt".to_owned(), text.into_bytes()),
        ("finding.json".to_owned(), json),
    ]
}

/// Describes the inputs and choices of all hosts except the one of the finding.
pub(crate) fn others(traces: &BTreeMap<String, Trace>, but: &str) -> String {
    let mut text = String::new();
    for (name, trace) in traces {
        if name == but {
            continue;
        }
        let inputs = trace.inputs.iter();
        let mut lines: Vec<String> = inputs
            .map(|input| format!("{} = {}", input.name, readable(&input.bytes)))
            .collect();
        let choices = trace.choices.iter().filter(|choice| choice.picked > 0);
        lines.extend(choices.map(|choice| choice.describe()));
        if !lines.is_empty() {
            text.push_str(&format!("\nhost {name}:\n    {}\n", lines.join("\n    ")));
        }
    }
    text
}

/// Returns a test in the `.ktest` format of KLEE.
pub(crate) fn ktest(command: &[String], trace: &Trace) -> Vec<u8> {
    let inputs = trace.inputs.iter();
    let objects = inputs.map(|input| (input.name.to_string(), input.bytes.clone()));
    KTest {
        args: command.to_vec(),
        objects: objects.collect(),
    }
    .to_bytes()
}

/// Returns the files that a path changed: a list of all changes, and below `folder` the contents of
/// created or modified files.
pub(crate) fn written_files(folder: &str, files: &[(ChangedFile, Vec<u8>)]) -> Vec<NamedFile> {
    if files.is_empty() {
        return Vec::new();
    }
    let (mut list, mut written) = (String::new(), Vec::new());
    for (file, bytes) in files {
        let (path, mode) = (readable_path(&file.path), file.mode);
        let _ = match &file.what {
            FileChange::File(_) => writeln!(
                list,
                "file {mode:04o} {path} ({})",
                counted(bytes.len(), "byte")
            ),
            FileChange::Directory => writeln!(list, "directory {mode:04o} {path}"),
            FileChange::Link(target) => writeln!(list, "link {path} -> {}", readable_path(target)),
            FileChange::Special => writeln!(list, "special {mode:04o} {path}"),
            FileChange::Removed => writeln!(list, "removed {path}"),
        };
        // The file system of the machine does not allow longer paths; such files are only listed.
        if let FileChange::File(_) = file.what
            && path.len() < MAX_PATH
        {
            written.push((format!("{folder}{path}"), bytes.clone()));
        }
    }
    written.push((format!("{folder}.txt"), list.into_bytes()));
    written
}

/// Returns a guest path as a path on this machine, with non-printable bytes escaped.
fn readable_path(path: &[u8]) -> String {
    let escaped = path.iter().map(|byte| match byte {
        b'%' | 0..=0x20 | 0x7f.. => format!("%{byte:02X}"),
        _ => char::from(*byte).to_string(),
    });
    escaped.collect()
}

/// Formats a location.
fn place_text(frame: &SourceFrame) -> String {
    match frame.line {
        0 => frame.function.clone(),
        line => format!("{} at {}:{line}", frame.function, frame.file),
    }
}

/// Returns the name of a function without the types that it is instantiated with.
fn without_types(name: &str) -> &str {
    match name.find('<') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

/// Formats a stack, one line per frame. It begins with the innermost frame of the user's code and
/// ends with the outermost; library frames below and above these are folded into one line each.
pub(crate) fn stack_text(frames: &[SourceFrame], indent: &str) -> String {
    let is_own = |frame: &SourceFrame| !frame.is_library() && frame.line != 0;
    let first = frames.iter().position(is_own).unwrap_or(0);
    let end = frames.iter().rposition(is_own);
    let end = end.map_or(frames.len(), |last| last + 1);
    let mut text = String::new();
    for (number, frame) in frames.iter().enumerate().take(end).skip(first) {
        let _ = writeln!(text, "{indent}#{number} {}", place_text(frame));
    }
    let mut fold = |title: &str, frames: &mut dyn Iterator<Item = &SourceFrame>| {
        let mut names: Vec<&str> = frames.map(|frame| without_types(&frame.function)).collect();
        if names.len() > MAX_FOLDED {
            names.splice(MAX_FOLDED - 1..names.len() - 1, ["…"]);
        }
        if !names.is_empty() {
            let _ = writeln!(text, "{indent}{title} {}", names.join(", "));
        }
    };
    fold("calls, in libraries:", &mut frames[..first].iter().rev());
    fold("called, in libraries, by:", &mut frames[end..].iter());
    text
}

/// Describes the values that a broken invariant has read, host by host, and the lines that set
/// them.
fn values_text(values: &[ShownValue]) -> String {
    let mut text = String::new();
    for value in values {
        let _ = writeln!(
            text,
            "    {}: {} of state {} = {}",
            value.host,
            value.key,
            value.state,
            readable(&value.bytes)
        );
        let line = |text: &mut String, how: &str, stack: &[SourceFrame]| {
            if let Some(place) = principal(stack) {
                let _ = writeln!(text, "        {how} in {}", place_text(place));
            }
        };
        for stack in &value.written {
            line(&mut text, "set", stack);
        }
        line(&mut text, "seen", &value.observed);
    }
    text
}

/// Describes the choices of a trace that are not the default, with the stacks of injected failures.
fn choices_text(trace: &Trace, failures: &[(String, Vec<SourceFrame>)]) -> String {
    let picked = || trace.choices.iter().filter(|choice| choice.picked > 0);
    let is_failure = |choice: &&TraceChoice| {
        choice.site.failing_call().is_some() || choice.site == ChoiceSite::AllocationFault
    };
    // A host that was restarted knows only the failures since then.
    let unknown = picked()
        .filter(is_failure)
        .count()
        .saturating_sub(failures.len());
    let mut known = failures.iter();
    let (mut text, mut number) = (String::new(), 0);
    for choice in picked() {
        let _ = writeln!(text, "    {}", choice.describe());
        if is_failure(&choice) {
            number += 1;
            let failure = (number > unknown).then(|| known.next()).flatten();
            if let Some((_, stack)) = failure {
                text.push_str(&stack_text(stack, "        "));
            }
        }
    }
    text
}

/// Describes a finding: kind, location with source, stacks and inputs.
fn describe(finding: &Finding, original: Option<&str>, natively: Natively<'_>) -> String {
    let mut text = format!("{}: {}\n", finding.kind.name(), finding.message);
    let place = principal(&finding.stack);
    if let Some(place) = place {
        let _ = writeln!(text, "in {}", place_text(place));
    }
    let _ = writeln!(text, "natively: {natively}\n");
    text.extend(place.map(excerpt));
    if !finding.values.is_empty() {
        let _ = writeln!(text, "values:\n{}", values_text(&finding.values));
    }
    let mut stack = |title: &str, frames: &[SourceFrame]| {
        if !frames.is_empty() {
            let _ = writeln!(text, "{title}:\n{}", stack_text(frames, "    "));
        }
    };
    stack("stack", &finding.stack);
    stack("allocated", &finding.allocated);
    stack("freed", &finding.freed);
    for (who, frames) in &finding.threads {
        stack(who, frames);
    }
    let choices = choices_text(&finding.trace, &finding.failures);
    if !finding.trace.inputs.is_empty() || !choices.is_empty() || original.is_some() {
        text.push_str("inputs:\n");
    }
    for input in finding.trace.inputs.iter() {
        let _ = writeln!(text, "    {} = {}", input.name, readable(&input.bytes));
    }
    text.push_str(&choices);
    if let Some(original) = original {
        let _ = writeln!(text, "    (made simpler; as it was found: {original})");
    }
    for (name, bytes) in ["stdout", "stderr"].iter().zip(&finding.output) {
        if !bytes.is_empty() {
            let _ = writeln!(text, "\n{name}:\n{}", String::from_utf8_lossy(bytes));
        }
    }
    text
}

/// Returns the source lines around a location; empty if the file cannot be read.
fn excerpt(place: &SourceFrame) -> String {
    let Ok(source) = everett_report::read_file(Path::new(&place.file)) else {
        return String::new();
    };
    let source = String::from_utf8_lossy(&source);
    let line = place.line as usize;
    let first = line.saturating_sub(3).max(1);
    let mut text = String::new();
    for (number, content) in source
        .lines()
        .enumerate()
        .skip(first - 1)
        .take(line + 3 - first)
    {
        let mark = if number + 1 == line { '>' } else { ' ' };
        let _ = writeln!(text, "  {mark} {:>5} | {content}", number + 1);
    }
    text.push('\n');
    text
}

/// Formats bytes for people: as a string and in hexadecimal, and as an integer if the length
/// allows.
pub(crate) fn readable(bytes: &[u8]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x} ")).collect();
    let string: String = bytes
        .iter()
        .flat_map(|byte| std::ascii::escape_default(*byte))
        .map(char::from)
        .collect();
    let mut text = format!("\"{string}\"");
    let number = match bytes.len() {
        1 => Some(i64::from(bytes[0] as i8)),
        2 => Some(i64::from(i16::from_le_bytes([bytes[0], bytes[1]]))),
        4 => Some(i64::from(i32::from_le_bytes([
            bytes[0], bytes[1], bytes[2], bytes[3],
        ]))),
        8 => bytes.try_into().ok().map(i64::from_le_bytes),
        _ => None,
    };
    let _ = write!(text, "  hex {}", hex.trim_end());
    if let Some(number) = number {
        let _ = write!(text, "  integer {number}");
    }
    text
}
