//! KLEE's messages and files for a run (`--klee-messages`), for scripts written around KLEE: its
//! message texts, file name suffixes, `info`, `run.stats`, `messages.txt` and `warnings.txt`. The
//! files are beside Everett's own. Owns KLEE's names for things; must not know how they are
//! displayed.

use everett_engine::{Finding, FrameArgument, PathEnd, PathEnding, SourceFrame, principal};
use everett_report::{Cell, Column, NamedFile, database_of_one_row};
use everett_vm::{
    ABS_OF_LEAST, BugKind, CHECK_MEMORY_ACCESS, FAILED_CHECK, MAKE_SYMBOLIC, MISSING_ARGUMENTS,
    MOST_FRAMES, Note, SYMBOLIC_TEXT, TEXT,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use crate::seeds::SeedFile;
use crate::summary::Summary;

/// Returns KLEE's name of a finding: the suffix of its file, and the text. The row of the kind has
/// it, unless it depends on the message.
fn name_of(kind: BugKind, message: &str) -> (String, String) {
    use BugKind::*;
    let (ending, text) = match kind {
        _ if message.starts_with(MAKE_SYMBOLIC) => match kind {
            OutOfBounds => ("user", "Wrong size given to klee_make_symbolic"),
            ReadOnlyWrite => ("user", "cannot make readonly object symbolic"),
            Unsupported => ("exec", message),
            _ => ("ptr", "memory error: invalid pointer: make_symbolic"),
        },
        _ if message.starts_with(TEXT) => (
            "user",
            "Invalid string pointer passed to one of the klee_ functions",
        ),
        _ if matches!(message, SYMBOLIC_TEXT | MISSING_ARGUMENTS) => ("user", message),
        _ if message == ABS_OF_LEAST => ("exec", message),
        _ if message.starts_with(CHECK_MEMORY_ACCESS) => {
            ("ptr", "check_memory_access: memory error")
        }
        // KLEE has the arguments of the program in a global.
        InvalidFree
            if matches!(
                message,
                "free of a global" | "free of a constant global" | "free of a kernel-made block"
            ) =>
        {
            ("free", "free of global")
        }
        InvalidFree if message == "free of a stack slot" => ("free", "free of alloca"),
        Assertion => return ("assert.err".to_owned(), assertion_text(message)),
        UserReport => return user_report(message),
        // KLEE's own library reports this with an ending that has no `.err`.
        InvalidAssumption if message.starts_with("the range of ") => {
            return ("user".to_owned(), "invalid range".to_owned());
        }
        InvalidAssumption => ("user", message),
        BadJump if message.ends_with("which is not a label") => {
            ("exec", "indirectbr: illegal label address")
        }
        // The C++ library prints this, and KLEE's as well.
        UncaughtException => {
            let text = message.strip_prefix("an ").unwrap_or(message);
            return ("abort.err".to_owned(), format!("terminating due to {text}"));
        }
        Trap => match (failed_check(message), sanitizer_check(message)) {
            (Some(check), _) => check,
            (None, Some((_, ending, text))) => (*ending, *text),
            (None, None) => (kind.name(), message),
        },
        // It is no error, but the path is not followed further.
        Unsupported if message.starts_with(MOST_FRAMES) => {
            return ("early".to_owned(), format!("{MOST_FRAMES}."));
        }
        Unsupported => match undefined_function(message) {
            Some(name) => {
                let text = format!("failed external call: {name}");
                return ("external.err".to_owned(), text);
            }
            None => ("exec", message),
        },
        // KLEE does not detect the others.
        other => other.klee_name().unwrap_or((other.name(), message)),
    };
    (format!("{ending}.err"), text.to_owned())
}

/// Returns the function whose call ends a path because it is defined nowhere.
fn undefined_function(message: &str) -> Option<&str> {
    let rest = message.strip_prefix("call of ")?;
    rest.strip_suffix(", which is not defined")
}

/// Returns the suffix and the text of a check of the build that failed. The texts are those of
/// KLEE's runtime for the undefined behaviour sanitizer.
fn failed_check(message: &str) -> Option<(&'static str, &str)> {
    let text = message.strip_prefix(FAILED_CHECK)?;
    let ending = match text {
        "float-divide-by-zero" => "div",
        "invalid-builtin-use" => "invalid_builtin_use",
        "implicit-signed-integer-truncation" | "implicit-unsigned-integer-truncation" => {
            "implicit_truncation"
        }
        "unreachable-call" => "unreachable_call",
        "missing-return" => "missing_return",
        "load invalid value" => "invalid_load",
        "function-type-mismatch" => "function_type_mismatch",
        "invalid-null-return" | "invalid-null-argument" => "nullable_attribute",
        "integer division overflow" | "shift out of bounds" | "float-cast-overflow" => "overflow",
        _ if text.ends_with("-integer-overflow") => "overflow",
        _ if text.starts_with("implicit-") => "implicit_conversion",
        // Pointers, alignments, indices and sizes.
        _ => "ptr",
    };
    Some((ending, text))
}

/// Clang's reasons for traps of the undefined behaviour sanitizer, with the suffixes and texts of
/// KLEE's runtime for it, for builds with `-fsanitize-trap`. Clang's reason does not tell several of
/// KLEE's texts apart for conversions, pointers, and overflow in a negation; the usual one is given.
const SANITIZER_CHECKS: &[(&str, &str, &str)] = &[
    (
        "Alignment assumption violated",
        "ptr",
        "alignment-assumption",
    ),
    (
        "Alignment, null, or object-size error",
        "ptr",
        "null-pointer-use",
    ),
    ("Array index out of bounds", "ptr", "out-of-bounds-index"),
    ("Local out of bounds", "ptr", "out-of-bounds-index"),
    (
        "Loaded an invalid or uninitialized value",
        "invalid_load",
        "load invalid value",
    ),
    (
        "Invalid use of builtin function",
        "invalid_builtin_use",
        "invalid-builtin-use",
    ),
    (
        "Floating-point to integer conversion overflowed",
        "overflow",
        "float-cast-overflow",
    ),
    (
        "Integer divide or remainder overflowed",
        "overflow",
        "integer division overflow",
    ),
    (
        "Function called with mismatched signature",
        "function_type_mismatch",
        "function-type-mismatch",
    ),
    (
        "Implicit integer conversion overflowed",
        "implicit_truncation",
        "implicit-signed-integer-truncation",
    ),
    (
        "Passing null",
        "nullable_attribute",
        "invalid-null-argument",
    ),
    (
        "Returning null",
        "nullable_attribute",
        "invalid-null-return",
    ),
    (
        "Pointer arithmetic overflowed bounds",
        "ptr",
        "pointer-overflow",
    ),
    (
        "Execution reached the end of a value-returning function",
        "missing_return",
        "missing-return",
    ),
    (
        "Shift exponent is too large",
        "overflow",
        "shift out of bounds",
    ),
    ("unsigned integer", "overflow", "unsigned-integer-overflow"),
    ("signed integer", "overflow", "signed-integer-overflow"),
    ("Integer ", "overflow", "signed-integer-overflow"),
    (
        "_builtin_unreachable()",
        "unreachable_call",
        "unreachable-call",
    ),
    (
        "Variable length array bound evaluates to non-positive",
        "ptr",
        "non-positive-vla-index",
    ),
];

/// Returns the row of the check that trapped, if it is one of the undefined behaviour sanitizer.
fn sanitizer_check(message: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    let (_, reason) = message.split_once("(Undefined Behavior Sanitizer: ")?;
    SANITIZER_CHECKS
        .iter()
        .find(|(start, ..)| reason.starts_with(start))
}

/// Returns KLEE's text, which contains the expression only.
fn assertion_text(message: &str) -> String {
    let inner = message.strip_prefix("assertion `");
    let expression = inner.and_then(|inner| Some(inner.rsplit_once("' failed in ")?.0));
    format!("ASSERTION FAIL: {}", expression.unwrap_or(message))
}

/// Returns the suffix and the text that were passed to `klee_report_error`.
fn user_report(message: &str) -> (String, String) {
    let given = message
        .rsplit_once(" at ")
        .and_then(|(rest, _)| rest.strip_suffix(')')?.rsplit_once(" ("));
    match given {
        Some((text, ending)) if !ending.contains('/') => (ending.to_owned(), text.to_owned()),
        _ => ("report_error.err".to_owned(), message.to_owned()),
    }
}

/// Returns the text that KLEE prints about a finding, and writes to `messages.txt`.
fn klee_messages(finding: &Finding) -> String {
    let (_, text) = name_of(finding.kind, &finding.message);
    if finding.kind == BugKind::Unsupported && finding.message.starts_with(MOST_FRAMES) {
        return klee_warning(&text);
    }
    let error = match principal(&finding.stack).filter(|place| place.line > 0) {
        Some(place) => format!("KLEE: ERROR: {}:{}: {text}", place.file, place.line),
        None => format!("KLEE: ERROR: (location information missing) {text}"),
    };
    format!("{error}\nKLEE: NOTE: now ignoring this error at this location\n")
}

/// Findings that KLEE reports: it has one name for several kinds of memory errors, and reports an
/// error once at a location.
#[derive(Default)]
pub struct KleeFindings {
    /// The kind of the first finding with this place and text.
    kinds: BTreeMap<(String, u32), BugKind>,
    /// The text about the last one.
    last: String,
}

impl KleeFindings {
    /// Returns KLEE's text about a finding, if KLEE would report it.
    pub fn report(&mut self, finding: &Finding) -> Option<String> {
        let message = klee_messages(finding);
        let column = principal(&finding.stack).map_or(0, |place| place.column);
        let kind = self.kinds.entry((message.clone(), column));
        if *kind.or_insert(finding.kind) != finding.kind {
            return None;
        }
        let (_, text) = name_of(finding.kind, &finding.message);
        self.last = error_text(finding, &text);
        Some(message)
    }

    /// Returns KLEE's text about a run that the last finding has ended.
    pub fn exiting(&self) -> String {
        format!("EXITING ON ERROR:\n{}", self.last)
    }
}

/// Returns the text that KLEE prints about a warning, and writes to `warnings.txt`.
pub fn klee_warning(text: &str) -> String {
    format!("KLEE: WARNING: {text}\n")
}

/// Returns the text that KLEE prints when it begins to replay a test.
pub fn klee_replaying(test: &SeedFile) -> String {
    let SeedFile {
        path,
        bytes,
        number,
        count,
    } = test;
    let path = path.display();
    format!("KLEE: replaying: {path} ({bytes} bytes) ({number}/{count})")
}

/// What programs say to the user, as KLEE prints it: some of it once.
#[derive(Default)]
pub struct KleeNotes {
    said: BTreeSet<String>,
}

impl KleeNotes {
    /// Returns KLEE's text, unless it is to be shown once and was shown before.
    pub fn text(&mut self, note: &Note) -> Option<String> {
        match note {
            Note::Warning(text) => Some(klee_warning(text)),
            Note::WarningOnce(text) => {
                let is_new = self.said.insert(text.clone());
                is_new.then(|| format!("KLEE: WARNING ONCE: {text}\n"))
            }
            Note::Text(text) => Some(format!("{text}\n")),
        }
    }
}

/// Returns whether KLEE would count a path that is completed here as partially completed, because
/// it ended in an error. What cuts a path off is counted as such in both.
pub fn klee_is_error(end: &PathEnd) -> bool {
    let is_cut = |kind: BugKind| kind.is_tool_limit() || kind == BugKind::Hang;
    match end.ending {
        PathEnding::Bug(kind) => !is_cut(kind),
        PathEnding::Signal(_) => true,
        _ => false,
    }
}

/// Returns the text that KLEE prints at the end, which is also the end of `info`. `errors` is the
/// number of paths that ended in errors.
pub fn klee_done(summary: &Summary, errors: u64, tests: u64) -> String {
    let completed = summary.paths.completed.saturating_sub(errors);
    let pending = summary
        .program
        .as_ref()
        .map_or(0, |it| it.states_pending as u64);
    let partial = summary.paths.completed + summary.paths.partial - completed + pending;
    format!(
        "\nKLEE: done: total instructions = {}\nKLEE: done: completed paths = {}\n\
         KLEE: done: partially completed paths = {}\nKLEE: done: generated tests = {tests}\n",
        summary.instructions, completed, partial,
    )
}

/// Returns the number of tests in KLEE's format in a folder.
pub fn klee_tests(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let number = |name: String| {
        name.strip_prefix("test")?
            .strip_suffix(".ktest")?
            .parse()
            .ok()
    };
    names.filter_map(number).max().unwrap_or(0)
}

/// Returns the arguments of a frame as KLEE shows them, with the names that the bitcode has. A
/// function that is inlined is not among those that have arguments.
fn arguments_of<'a>(
    function: &str,
    known: &mut (impl Iterator<Item = &'a (String, Vec<FrameArgument>)> + Clone),
) -> String {
    let mut rest = known.clone();
    let Some((_, values)) = rest.find(|(name, _)| name == function) else {
        return String::new();
    };
    *known = rest;
    let shown = values.iter().map(|FrameArgument { name, value }| {
        let value = value.map_or("symbolic".to_owned(), |value| value.to_string());
        match &**name {
            "" => value,
            name => format!("{name}={value}"),
        }
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// Returns the text of an `.err` file.
fn error_text(finding: &Finding, text: &str) -> String {
    let mut out = format!("Error: {text}\n");
    if let Some(place) = principal(&finding.stack).filter(|place| place.line > 0) {
        let _ = writeln!(out, "File: {}\nLine: {}", place.file, place.line);
    }
    out.push_str("Stack: \n");
    let own = |frame: &&SourceFrame| frame.line > 0;
    let mut known = finding.arguments.iter();
    for (number, frame) in finding.stack.iter().filter(own).enumerate() {
        let arguments = arguments_of(&frame.function, &mut known);
        // KLEE shows lines of its assembly file here, which does not exist.
        let SourceFrame {
            function,
            file,
            line,
            ..
        } = frame;
        let _ = writeln!(
            out,
            "\t#{number}{:08} in {function}({arguments}) at {file}:{line}",
            0
        );
    }
    let _ = writeln!(
        out,
        "Info: \n\t{}: {}",
        finding.kind.name(),
        finding.message
    );
    out
}

/// KLEE's classes of ends of paths, as its table of statistics calls them.
const CLASSES: [&str; 8] = [
    "TerminationExit",
    "TerminationEarly",
    "TerminationSolverError",
    "TerminationProgramError",
    "TerminationUserError",
    "TerminationExecutionError",
    "TerminationEarlyAlgorithm",
    "TerminationEarlyUser",
];

/// Positions in [`CLASSES`].
#[derive(Copy, Clone)]
enum Class {
    Exit,
    Early,
    Solver,
    Program,
    User,
    Execution,
    Algorithm,
    Silent,
}

/// Returns the class of an end of a path. Errors that are known already are told by their kinds.
fn class_of(end: &PathEnding, ending: Option<&str>) -> Class {
    match (end, ending) {
        (PathEnding::Silent, _) => Class::Silent,
        (PathEnding::Cut(_) | PathEnding::Bug(BugKind::Hang), _) => Class::Early,
        (PathEnding::Bug(_), Some("early")) => Class::Early,
        (PathEnding::Bug(_), Some("solver.err")) => Class::Solver,
        (PathEnding::Bug(_), Some("user.err" | "user")) => Class::User,
        (PathEnding::Bug(_), Some("exec.err" | "external.err")) => Class::Execution,
        (PathEnding::Bug(BugKind::SolverGaveUp), None) => Class::Solver,
        (PathEnding::Bug(BugKind::InvalidAssumption), None) => Class::User,
        (PathEnding::Bug(BugKind::Unsupported | BugKind::InvalidCall), None) => Class::Execution,
        (PathEnding::Bug(_) | PathEnding::Signal(_), _) => Class::Program,
        (PathEnding::Exit(_) | PathEnding::Idle | PathEnding::Off, _) => Class::Exit,
    }
}

/// KLEE's files of one run.
#[derive(Default)]
pub(crate) struct KleeFiles {
    tests: u64,
    /// Number of paths that ended in errors.
    errors: u64,
    classes: [u64; CLASSES.len()],
    messages: String,
    reported: KleeFindings,
    warnings: String,
    notes: KleeNotes,
    /// The error in which the current path ends.
    error: Option<KleeError>,
}

/// An error in which a path ends: suffix and text of its file.
pub(crate) type KleeError = (String, String);

impl KleeFiles {
    /// Creates the files of a run, which may continue in a folder that it has written to before.
    pub(crate) fn of(folder: &Path) -> KleeFiles {
        let read = |name: &str| {
            let text = everett_report::read_file(&folder.join(name)).unwrap_or_default();
            String::from_utf8_lossy(&text).into_owned()
        };
        KleeFiles {
            tests: klee_tests(folder),
            errors: 0,
            classes: Default::default(),
            messages: read("messages.txt"),
            reported: KleeFindings::default(),
            warnings: read("warnings.txt"),
            notes: KleeNotes::default(),
            error: None,
        }
    }

    /// Records a new finding in which the current path ends.
    pub(crate) fn finding(&mut self, finding: &Finding) {
        let Some(message) = self.reported.report(finding) else {
            return;
        };
        self.messages.push_str(&message);
        let (ending, text) = name_of(finding.kind, &finding.message);
        self.error = Some((ending, error_text(finding, &text)));
    }

    /// Records the warnings among what a program says to the user.
    pub(crate) fn note(&mut self, notes: &[Note]) {
        for note in notes {
            let text = self.notes.text(note);
            if !matches!(note, Note::Text(_)) {
                self.warnings.extend(text);
            }
        }
    }

    /// Counts a path that has ended, and returns the error in which it did, if that is a new one.
    pub(crate) fn count(&mut self, end: &PathEnd) -> Option<KleeError> {
        let error = self.error.take();
        self.errors += u64::from(klee_is_error(end));
        let ending = error.as_ref().map(|(ending, _)| &**ending);
        self.classes[class_of(&end.ending, ending) as usize] += 1;
        error
    }

    /// Returns the files of the test of a path that has ended. As in KLEE, known errors have none.
    pub(crate) fn path(
        &mut self,
        end: &PathEnd,
        error: Option<KleeError>,
        test: Vec<u8>,
    ) -> Vec<NamedFile> {
        let has_error = matches!(end.ending, PathEnding::Bug(_) | PathEnding::Signal(_));
        if has_error && error.is_none() {
            return Vec::new();
        }
        self.tests += 1;
        let stem = format!("test{:06}", self.tests);
        let error = error.map(|(ending, text)| (format!("{stem}.{ending}"), text.into_bytes()));
        std::iter::once((format!("{stem}.ktest"), test))
            .chain(error)
            .collect()
    }

    /// Returns the files of the test of a path that a limit has stopped.
    pub(crate) fn halted(&mut self, test: Vec<u8>) -> [NamedFile; 2] {
        self.tests += 1;
        let stem = format!("test{:06}", self.tests);
        let why = "Execution halting.\n".to_owned().into_bytes();
        [
            (format!("{stem}.ktest"), test),
            (format!("{stem}.early"), why),
        ]
    }

    /// Returns the columns of KLEE's table of statistics about ends of paths. States that are left
    /// end early.
    fn ends(&self, summary: &Summary) -> Vec<Column> {
        let mut counts = self.classes;
        if let Some(program) = &summary.program {
            counts[Class::Early as usize] += program.states_pending as u64;
            counts[Class::Algorithm as usize] += program.paths_merged;
        }
        let columns = CLASSES.into_iter().zip(counts);
        columns
            .map(|(name, count)| (name, integer(count)))
            .collect()
    }

    /// Returns the files that are written at the end of the run.
    pub(crate) fn finish(mut self, summary: &Summary, command: &[String]) -> Vec<NamedFile> {
        self.warnings
            .extend(summary.warnings.iter().map(|text| klee_warning(text)));
        let seconds = summary.wall_seconds as u64;
        let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let info = format!(
            "{}\nElapsed: {hours:02}:{minutes:02}:{rest:02}\nKLEE: done: explored paths = {}\n\
             KLEE: done: total queries = {}\n{}",
            command.join(" "),
            summary.forks + 1,
            summary.queries,
            klee_done(summary, self.errors, self.tests),
        );
        let mut columns = columns(summary);
        columns.extend(self.ends(summary));
        let stats = database_of_one_row("stats", &columns);
        let mut files = vec![
            ("messages.txt".to_owned(), self.messages.into_bytes()),
            ("warnings.txt".to_owned(), self.warnings.into_bytes()),
            ("info".to_owned(), info.into_bytes()),
        ];
        files.extend(stats.map(|stats| ("run.stats".to_owned(), stats)));
        files
    }
}

fn integer(number: u64) -> Cell {
    Cell::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Returns the columns of KLEE's table of statistics but for those about ends of paths. Everett does
/// not measure those that are 0.
fn columns(summary: &Summary) -> Vec<Column> {
    let microseconds = |seconds: f64| integer((seconds * 1e6) as u64);
    let program = summary.program.as_ref();
    let cached = program.map_or(0, |program| program.queries_cached);
    let solved = summary.queries.saturating_sub(cached);
    let coverage = &summary.coverage;
    let uncovered = coverage.instructions - coverage.instructions_covered;
    let states = program.map_or(0, |program| program.states_pending as u64);
    let mut columns = vec![
        ("Instructions", integer(summary.instructions)),
        ("FullBranches", integer(0)),
        ("PartialBranches", integer(0)),
        ("NumBranches", integer(0)),
        ("UserTime", Cell::Real(summary.wall_seconds)),
        ("NumStates", integer(states)),
        ("MallocUsage", integer(summary.memory_peak_bytes)),
        ("Queries", integer(summary.queries)),
        ("SolverQueries", integer(solved)),
        ("NumQueryConstructs", integer(0)),
        ("WallTime", Cell::Real(summary.wall_seconds)),
        (
            "CoveredInstructions",
            integer(coverage.instructions_covered),
        ),
        ("UncoveredInstructions", integer(uncovered)),
        ("QueryTime", microseconds(summary.solver_seconds)),
        ("SolverTime", microseconds(summary.solver_seconds)),
    ];
    const UNKNOWN: &[&str] = &[
        "CexCacheTime",
        "ForkTime",
        "ResolveTime",
        "QueryCacheMisses",
        "QueryCacheHits",
        "QueryCexCacheMisses",
        "QueryCexCacheHits",
        "InhibitedForks",
        "ExternalCalls",
        "Allocations",
    ];
    columns.extend(UNKNOWN.iter().map(|name| (*name, integer(0))));
    columns.push(("States", integer(summary.forks + 1)));
    columns.push(("ArrayHashTime", integer(0)));
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_paths_have_classes() {
        let bug = PathEnding::Bug(BugKind::Unsupported);
        for (end, ending, class) in [
            (PathEnding::Exit(3), None, "TerminationExit"),
            (PathEnding::Silent, None, "TerminationEarlyUser"),
            (bug.clone(), Some("early"), "TerminationEarly"),
            (
                bug.clone(),
                Some("external.err"),
                "TerminationExecutionError",
            ),
            (bug, None, "TerminationExecutionError"),
            (
                PathEnding::Bug(BugKind::InvalidCall),
                Some("user.err"),
                "TerminationUserError",
            ),
            (
                PathEnding::Bug(BugKind::Abort),
                None,
                "TerminationProgramError",
            ),
        ] {
            assert_eq!(CLASSES[class_of(&end, ending) as usize], class);
        }
    }

    #[test]
    fn findings_have_the_endings_and_texts_of_klee() {
        for (kind, message, ending, text) in [
            (
                BugKind::OutOfBounds,
                "read",
                "ptr.err",
                "memory error: out of bound pointer",
            ),
            (
                BugKind::NullPointer,
                "read",
                "ptr.err",
                "memory error: null page access",
            ),
            (
                BugKind::InvalidFree,
                "free of a stack slot",
                "free.err",
                "free of alloca",
            ),
            (
                BugKind::InvalidFree,
                "free of a kernel-made block",
                "free.err",
                "free of global",
            ),
            (BugKind::DivisionByZero, "", "div.err", "divide by zero"),
            (
                BugKind::Assertion,
                "assertion `a['x'] == 1' failed in main at a.c:7",
                "assert.err",
                "ASSERTION FAIL: a['x'] == 1",
            ),
            (
                BugKind::UserReport,
                "no (good) luck (my.err) at b.c:3",
                "my.err",
                "no (good) luck",
            ),
            (
                BugKind::UserReport,
                "only a message",
                "report_error.err",
                "only a message",
            ),
            (
                BugKind::OutOfBounds,
                "make_symbolic: write of 8 bytes",
                "user.err",
                "Wrong size given to klee_make_symbolic",
            ),
            (
                BugKind::NullPointer,
                "make_symbolic: write",
                "ptr.err",
                "memory error: invalid pointer: make_symbolic",
            ),
            (
                BugKind::OutOfBounds,
                "klee_check_memory_access: read of 5 bytes",
                "ptr.err",
                "check_memory_access: memory error",
            ),
            (
                BugKind::UncaughtException,
                "an uncaught exception of type std::logic_error",
                "abort.err",
                "terminating due to uncaught exception of type std::logic_error",
            ),
            (BugKind::Leak, "7 bytes", "leak.err", "7 bytes"),
            (
                BugKind::Unsupported,
                "call of there, which is not defined",
                "external.err",
                "failed external call: there",
            ),
        ] {
            let expected = (ending.to_owned(), text.to_owned());
            assert_eq!(name_of(kind, message), expected, "{message}");
        }
    }
}
