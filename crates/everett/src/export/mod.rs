//! `export`: writes a shell script that reproduces a finding without Everett.

mod netns;
mod programs;

use everett_engine::{Trace, TraceChoice, TraceEnd, TraceInput};
use everett_linux::{Argument, Contents, FileSpec, HostConfig, Stdin, is_mode, is_unusual_mode};
use everett_report::KTest;
use everett_toolchain::Checks;
use everett_vm::ChoiceSite;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::compare::signals_of;
use crate::config::{explorer_config, program_host};
use crate::error::{Context, Result, bail};
use crate::export::programs::place;
use crate::native_world::{NativeWorld, Replayed};
use crate::session::Session;
use crate::spec::{BuildSpec, RunSpec};
use crate::trace::{HOST, WorldTrace, one_trace, read_trace, run_of};

/// The trace to export.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ExportSpec {
    /// The folder of a finding, or a trace.
    pub path: PathBuf,
    /// Whether the trace must be one of a world, whose network the script builds with namespaces.
    pub netns: bool,
}

impl ExportSpec {
    /// Creates a spec for a finding, or a trace.
    pub fn new(path: impl Into<PathBuf>) -> ExportSpec {
        ExportSpec {
            path: path.into(),
            ..ExportSpec::default()
        }
    }
}

/// A shell script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Script {
    /// The text of the script.
    pub text: String,
}

impl Script {
    /// Writes the script to an executable file, or to a device as it is.
    pub fn write(&self, file: &Path) -> Result<()> {
        let cannot_write = || format!("cannot write {}", file.display());
        std::fs::write(file, &self.text).with_context(cannot_write)?;
        if !file.is_file() {
            return Ok(());
        }
        let permissions = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(file, permissions).with_context(cannot_write)
    }
}

/// Maximum size of contents that are printed; longer ones are written in base64.
const LONGEST_PRINTED: usize = 300;

/// Exports a finding as a script.
pub fn export(spec: &ExportSpec, session: &Session) -> Result<Script> {
    let path = one_trace(&spec.path)?;
    let run = RunSpec::of(&run_of(&path)?)?;
    if run.replaces {
        bail!(
            Usage,
            "{} is a trace of programs with functions that were replaced, which a script cannot do",
            path.display()
        );
    }
    let text = if run.is_scenario() {
        netns::script(&run, session, &path)
    } else if spec.netns {
        bail!(
            Usage,
            "{} is a trace of one program; export it without netns",
            path.display()
        )
    } else {
        let trace = read_trace(&path)?;
        let host = program_host(explorer_config(&run, session)?);
        let title = title_of(&path, &trace);
        script(&run, &host, &trace, &title, session)
    };
    let text = text.with_context(|| format!("{} cannot be exported", path.display()))?;
    Ok(Script { text })
}

/// Returns a one-line title of the finding.
fn title_of(path: &Path, trace: &Trace) -> String {
    let beside = path.with_file_name("finding.txt");
    let text = match path.ends_with("finding.trace") {
        true => everett_report::read_text(&beside).unwrap_or_default(),
        false => String::new(),
    };
    let mut lines = text.lines().map(str::to_owned);
    match (lines.next(), lines.next()) {
        (Some(what), Some(place)) if place.starts_with("in ") => format!("{what}\n# {place}"),
        (Some(what), _) => what,
        _ => match &trace.end {
            Some(TraceEnd {
                exit: Some(status), ..
            }) => format!("the program exits with {status}"),
            _ => "a path of the program".to_owned(),
        },
    }
}

/// Refuses traces with choices that only Everett can reproduce.
fn forbid_deviations(trace: &Trace) -> Result<()> {
    let deviates = |choice: &&TraceChoice| choice.picked > 0 && !choice.site.is_about_inputs();
    if let Some(choice) = trace.choices.iter().find(deviates) {
        let why = if choice.site.is_fault() {
            format!(
                "it needs a failure that is injected ({})",
                choice.describe()
            )
        } else if choice.site == ChoiceSite::StreamPiece {
            "it needs bytes that arrive in pieces".to_owned()
        } else if let ChoiceSite::FileTimes { .. } = choice.site {
            format!("it needs files with other times ({})", choice.describe())
        } else {
            format!(
                "it needs a certain order of threads ({})",
                choice.describe()
            )
        };
        bail!(
            NotExportable,
            "{why}; a shell cannot make that happen, `everett replay` can"
        );
    }
    let is_unusual = |input: &&TraceInput| is_unusual_mode(&input.name, &input.bytes);
    if let Some(input) = trace.inputs.iter().find(is_unusual) {
        bail!(
            NotExportable,
            "it needs a file of another kind or with other permissions ({}); a shell cannot make that happen, \
             `everett replay` can",
            input.name
        );
    }
    let end = trace.end.as_ref();
    if end.is_some_and(|end| end.finding.as_deref() == Some("data-race")) {
        bail!(NotExportable, "a race of threads shows in no single run");
    }
    Ok(())
}

/// Inputs and choices of a trace, returned in the order in which the host requests them at its
/// start.
pub(crate) struct Given {
    inputs: Vec<TraceInput>,
    choices: BTreeMap<ChoiceSite, VecDeque<u32>>,
}

impl Given {
    /// Returns the inputs and choices of a trace.
    pub(crate) fn of(trace: &Trace) -> Given {
        let mut choices: BTreeMap<ChoiceSite, VecDeque<u32>> = BTreeMap::new();
        for choice in trace.choices.iter() {
            let queue = choices.entry(choice.site.clone()).or_default();
            queue.push_back(choice.picked);
        }
        Given {
            inputs: trace.inputs.iter().cloned().collect(),
            choices,
        }
    }

    fn choice(&mut self, site: &ChoiceSite) -> u32 {
        let queue = self.choices.get_mut(site);
        queue.and_then(VecDeque::pop_front).unwrap_or(0)
    }

    /// Returns the next input with a name. If a name is requested again, its inputs have a number
    /// appended to the name.
    pub(crate) fn input(&mut self, name: &str) -> Result<Vec<u8>> {
        let is_same = |input: &TraceInput| match input.name.strip_prefix(name) {
            Some("") => true,
            Some(rest) => rest.strip_prefix('_').is_some_and(|digits| {
                !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
            }),
            None => false,
        };
        match self.inputs.iter().position(is_same) {
            Some(at) => Ok(self.inputs.remove(at).bytes),
            None => bail!(NotExportable, "the trace has no input {name}"),
        }
    }

    /// Returns the bytes that a process reads from standard input.
    fn stdin(&mut self, stdin: &Stdin) -> Result<Vec<u8>> {
        Ok(match stdin {
            Stdin::Symbolic { .. } => self.input("stdin")?,
            Stdin::Concrete(bytes) => bytes.to_vec(),
            Stdin::Empty | Stdin::Live => Vec::new(),
        })
    }

    /// Returns the inputs that the program requests by its own calls, as a file that its native
    /// build reads; `None` if there are none.
    pub(crate) fn rest(&self, words: Vec<String>) -> Option<Vec<u8>> {
        // Packets come from other hosts, and modes from the file system.
        let is_own = |input: &&TraceInput| &*input.name != "packet" && !is_mode(&input.name);
        let inputs = self.inputs.iter().filter(is_own);
        let test = KTest {
            args: words,
            objects: inputs
                .map(|input| (input.name.to_string(), input.bytes.clone()))
                .collect(),
        };
        (!test.objects.is_empty()).then(|| test.to_bytes())
    }

    /// Returns a string: the bytes of an input up to the first NUL.
    fn string(&mut self, name: &str, most: u32) -> Result<Vec<u8>> {
        let mut bytes = self.input(name)?;
        bytes.truncate(most as usize);
        let end = bytes.iter().position(|byte| *byte == 0);
        bytes.truncate(end.unwrap_or(bytes.len()));
        Ok(bytes)
    }

    /// Returns the strings of the command line or the environment, in the order in which the host
    /// creates them.
    pub(crate) fn strings(
        &mut self,
        arguments: &[Argument],
        numbers: &mut u32,
    ) -> Result<Vec<Vec<u8>>> {
        let mut strings = Vec::new();
        let mut next = || {
            *numbers += 1;
            format!("arg{:02}", *numbers - 1)
        };
        for argument in arguments {
            match argument {
                Argument::Concrete(bytes) => strings.push(bytes.clone()),
                Argument::Symbolic { max_len } => strings.push(self.string(&next(), *max_len)?),
                Argument::SymbolicMany { min, max, max_len } => {
                    let more = match max > min {
                        true => self.choice(&ChoiceSite::ArgumentCount),
                        false => 0,
                    };
                    for _ in 0..min.saturating_add(more) {
                        strings.push(self.string(&next(), *max_len)?);
                    }
                }
                Argument::Prefixed {
                    prefix,
                    name,
                    max_len,
                } => {
                    let value = self.string(name, *max_len)?;
                    strings.push([prefix.as_slice(), &value].concat());
                }
            }
        }
        Ok(strings)
    }

    /// Returns the initial contents of a regular file.
    fn contents(&mut self, spec: &FileSpec) -> Result<Vec<u8>> {
        let name = spec.path.rsplit(|byte| *byte == b'/').next();
        let name = String::from_utf8_lossy(name.unwrap_or_default()).into_owned();
        let input = format!("{name}-data");
        Ok(match &spec.contents {
            Contents::Concrete(bytes) => bytes.to_vec(),
            Contents::Shared(source) => source.bytes().to_vec(),
            Contents::Symbolic { .. } => self.input(&input)?,
            Contents::SymbolicBetween { least, most } => {
                let more = match least < most {
                    true => self.choice(&ChoiceSite::FileSize { name: name.into() }),
                    false => 0,
                };
                let mut bytes = self.input(&input)?;
                bytes.truncate(least.saturating_add(more) as usize);
                bytes
            }
            Contents::Directory | Contents::Link(_) => Vec::new(),
        })
    }
}

/// Returns a path of a guest relative to the program's start directory; `None` if it is elsewhere.
fn below_start(path: &[u8], cwd: &[u8]) -> Option<Vec<u8>> {
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    let start = Path::new(std::ffi::OsStr::from_bytes(cwd));
    let path = match path.is_absolute() {
        true if cwd == b"/" => return None,
        true => path.strip_prefix(start).ok()?,
        false => path,
    };
    let mut parts = path.components();
    let inside = parts.all(|part| matches!(part, std::path::Component::Normal(_)));
    inside.then(|| path.as_os_str().as_bytes().to_vec())
}

/// Returns whether the real machine has the same file at the same path.
fn is_here(spec: &FileSpec, contents: &[u8]) -> bool {
    let path = Path::new(std::ffi::OsStr::from_bytes(&spec.path));
    match &spec.contents {
        Contents::Directory => path.is_dir(),
        Contents::Link(target) => {
            std::fs::read_link(path).is_ok_and(|seen| seen.as_os_str().as_bytes() == &target[..])
        }
        _ => std::fs::read(path).is_ok_and(|seen| seen == contents),
    }
}

/// Returns the whole script.
fn script(
    run: &RunSpec,
    host: &HostConfig,
    trace: &Trace,
    title: &str,
    session: &Session,
) -> Result<String> {
    forbid_deviations(trace)?;
    let world = NativeWorld::of(run, &BuildSpec::default(), session)?;
    let replayed = world.replay(&WorldTrace::of_program(trace.clone()))?;
    let program = build_of(&run.native_programs()[0], &replayed)?;
    let mut text = String::from("#!/bin/sh\n");
    let _ = writeln!(text, "# {title}");
    text.push_str("# Written by `everett export`; needs nothing of it. Another build of the program can be given as\n");
    let _ = writeln!(text, "# the first argument. {EXIT_CODES}");
    let _ = writeln!(text, "# {}", confirmed_by(&replayed));
    text.push_str("LC_ALL=C\nexport LC_ALL\n");
    let _ = writeln!(
        text,
        "program=${{1:-{}}}",
        word(program.as_os_str().as_bytes())
    );
    text.push_str("case $program in /*) ;; *) program=$PWD/$program ;; esac\n");
    text.push_str("[ -x \"$program\" ] || { echo \"there is no program $program\"; exit 2; }\n");
    text.push_str(
        "folder=$(mktemp -d) || exit 2\ntrap 'rm -rf \"$folder\"' EXIT\ntrap 'exit 3' INT TERM\n",
    );
    text.push_str("mkdir \"$folder/cwd\" && cd \"$folder/cwd\" || exit 2\n");
    let start = HostStart {
        host,
        trace,
        folder: "$folder",
        program: "\"$program\"",
        words: run.words(),
    };
    let checks = replayed.confirming_checks();
    place(host, &run.native_programs(), checks, &mut text)?;
    start.write(host.files.iter(), &mut text)?;
    let mut sign = Sign::of(trace.end.as_ref(), replayed.confirming_checks());
    let run = replayed.seen.as_ref().and_then(|seen| seen.hosts.get(HOST));
    if sign.message.is_none() && run.is_some_and(|run| run.is_of_child) {
        // The shell sees how the first process ends.
        sign.is_survivable = true;
    }
    finish(&mut text, &sign);
    Ok(text)
}

/// A description of the exit codes of scripts.
pub(crate) const EXIT_CODES: &str = "Exit code 1: it happened, 0: it did not, 2: that cannot be said, or the script failed, 3: interrupted.";

/// Returns the build of a program on which a replay was decided, as an absolute path.
pub(crate) fn build_of(program: &Path, replayed: &Replayed) -> Result<PathBuf> {
    let program = match replayed.confirming_checks() {
        Some(checks) => everett_toolchain::checked_path(program, checks),
        None => program.to_owned(),
    };
    Ok(std::path::absolute(program)?)
}

/// Describes what confirms a finding, in a line.
pub(crate) fn confirmed_by(replayed: &Replayed) -> String {
    match (replayed.confirmed_on(), replayed.verdict.reason()) {
        (Some(build), _) => format!("Confirmed on {build}."),
        (None, why) => {
            let why = why.unwrap_or_default().replace('\n', " ");
            format!("NOT confirmed: {why}")
        }
    }
}

/// The start of a host's program in a script.
pub(crate) struct HostStart<'s> {
    /// The host.
    pub host: &'s HostConfig,
    /// The inputs and choices of the host.
    pub trace: &'s Trace,
    /// The folder for standard input and for inputs that the program requests.
    pub folder: &'s str,
    /// The program, as a word of the shell.
    pub program: &'s str,
    /// The command line in the file of inputs.
    pub words: Vec<String>,
}

impl HostStart<'_> {
    /// Creates files and inputs, and sets the positional parameters to the program with its
    /// arguments and environment. Returns the start parameters of further processes of the host.
    pub(crate) fn write<'f>(
        self,
        files: impl Iterator<Item = &'f FileSpec>,
        text: &mut String,
    ) -> Result<Vec<ProcessStart>> {
        let (host, folder) = (self.host, self.folder);
        let mut given = Given::of(self.trace);
        let mut numbers = 0;
        // The host creates its inputs in this order.
        let args = given.strings(&host.args, &mut numbers)?;
        let env = given.strings(&host.env, &mut numbers)?;
        let mut others = Vec::new();
        for other in &host.others {
            others.push(ProcessStart {
                args: given.strings(&other.args, &mut numbers)?,
                env: given.strings(&other.env, &mut numbers)?,
                stdin: Vec::new(),
            });
        }
        let stdin = given.stdin(&host.stdin)?;
        for (start, other) in others.iter_mut().zip(&host.others) {
            start.stdin = given.stdin(&other.stdin)?;
        }
        for spec in files {
            write_file(text, spec, host, &mut given)?;
        }
        write_contents(text, &stdin, &format!("\"{folder}/stdin\""));
        text.push_str("set -- env -i\n");
        for variable in &env {
            add_word(text, variable);
        }
        if let Some(test) = given.rest(self.words) {
            write_contents(text, &test, &format!("\"{folder}/inputs.ktest\""));
            let _ = writeln!(text, "set -- \"$@\" \"EVERETT_TEST={folder}/inputs.ktest\"");
        }
        let _ = writeln!(text, "set -- \"$@\" {}", self.program);
        for arg in args.iter().skip(1) {
            add_word(text, arg);
        }
        Ok(others)
    }
}

/// The start parameters of a further process of a host.
pub(crate) struct ProcessStart {
    /// The command line of the process, program name first.
    pub args: Vec<Vec<u8>>,
    /// The environment of the process.
    pub env: Vec<Vec<u8>>,
    /// The bytes that the process reads from standard input.
    pub stdin: Vec<u8>,
}

/// The exit status that `timeout` reports for a program that does not end.
const NEVER_ENDS: i32 = 124;
/// The exit statuses of checked builds at an error: SIGABRT of the runtime, and traps.
const CHECKED: [i32; 3] = [134, 132, 133];

/// A pattern of the message that the runtime of checked builds prints at an error.
const CHECKED_MESSAGE: &str = "^everett: .* at address .*, by the instruction before ";

/// The signs by which a shell recognises that the finding occurred.
pub(crate) struct Sign {
    /// The exit statuses that show the finding.
    pub statuses: Vec<i32>,
    /// A basic regular expression for `grep` of a line of standard error that shows the finding,
    /// with a description.
    pub message: Option<(String, &'static str)>,
    /// Whether programs can continue as if nothing had happened, even on checked builds.
    pub is_survivable: bool,
}

/// Findings that programs can survive: Everett detects them with breakpoints.
const SURVIVABLE: [&str; 3] = ["overflow", "undefined-shift", "bad-jump"];

impl Sign {
    /// Returns the signs of this end of a path, on a build with these checks.
    pub(crate) fn of(end: Option<&TraceEnd>, checks: Option<Checks>) -> Sign {
        let finding = end.and_then(|end| end.finding.as_deref());
        let never_ends =
            matches!(finding, Some("hang" | "deadlock")) || end.is_some_and(|end| end.idle);
        let mut statuses = match (finding, end) {
            _ if never_ends => vec![NEVER_ENDS],
            (Some(kind), _) => {
                let signals = signals_of(kind).unwrap_or_default().iter();
                signals.map(|signal| 128 + signal).collect()
            }
            (None, Some(end)) => {
                let signal = end.signal.map(|signal| 128 + signal);
                end.exit.or(signal).into_iter().collect()
            }
            (None, None) => Vec::new(),
        };
        let is_checked = checks.is_some_and(|checks| checks != Checks::Nothing);
        if is_checked && finding.is_some() {
            statuses.extend(CHECKED);
            statuses.sort_unstable();
            statuses.dedup();
        }
        // A panic of a thread does not end the program, and an error of a child does not end its
        // parent, so their messages are the sign.
        let message = match finding {
            Some("panic") => Some((panic_message(end), "a panic")),
            Some(_) if is_checked => {
                Some((CHECKED_MESSAGE.to_owned(), "an error that was checked"))
            }
            _ => None,
        };
        Sign {
            statuses,
            message,
            is_survivable: finding.is_some_and(|kind| SURVIVABLE.contains(&kind)),
        }
    }

    /// Returns whether a shell cannot recognise the finding.
    pub(crate) fn is_unseen(&self) -> bool {
        self.statuses.is_empty() && self.message.is_none()
    }

    /// Writes the commands that decide whether the finding occurred, by `$status` and the file of
    /// standard error.
    pub(crate) fn write(&self, subject: &str, stderr: &str, text: &mut String) {
        let patterns: Vec<String> = self.statuses.iter().map(i32::to_string).collect();
        if !patterns.is_empty() {
            let _ = writeln!(
                text,
                "case $status in\n{}) echo \"it happened: {subject}exit status $status\"; exit 1 ;;\nesac",
                patterns.join(" | ")
            );
        }
        if let Some((message, what)) = &self.message {
            let _ = writeln!(
                text,
                "if grep -q {} \"{stderr}\"; then echo \"it happened: {subject}{what}\"; exit 1; fi",
                word(message.as_bytes())
            );
        }
        if self.is_survivable {
            let _ = writeln!(
                text,
                "echo \"{subject}exit status $status, which does not say whether it happened\"\nexit 2"
            );
            return;
        }
        let wanted = match &self.message {
            Some((_, "a panic")) => "a panic there".to_owned(),
            _ => patterns.join(" or "),
        };
        let _ = writeln!(
            text,
            "echo \"it did not happen: {subject}exit status $status, not {wanted}\"\nexit 0"
        );
    }
}

/// Returns a pattern of the message that Rust prints at a panic, at one of the locations of a
/// stack: which of them it names depends on which callers the panic blames. The location may be
/// missing if none of them is in the user's code.
fn panic_message(end: Option<&TraceEnd>) -> String {
    let frames = end.map_or(&[][..], |end| &end.stack);
    let is_whole = frames.iter().any(|frame| !frame.is_library());
    let known = frames.iter().filter(|frame| is_whole && frame.line != 0);
    let places = known.map(|frame| {
        let file = frame.file.rsplit('/').next().unwrap_or_default();
        format!("{}:{}:", file.replace('.', "\\."), frame.line)
    });
    let places: Vec<String> = places.collect();
    match places.is_empty() {
        true => "panicked at".to_owned(),
        false => format!("panicked at .*\\({}\\)", places.join("\\|")),
    }
}

/// Writes the commands that run the program and check how it ends.
fn finish(text: &mut String, sign: &Sign) {
    if sign.statuses == [NEVER_ENDS] {
        text.push_str("set -- timeout 10 \"$@\"\n");
    }
    text.push_str(
        "\"$@\" < \"$folder/stdin\" 2> \"$folder/stderr\"\nstatus=$?\ncat \"$folder/stderr\" >&2\n",
    );
    if sign.is_unseen() {
        text.push_str(
            "# The exit status says nothing about it: native code continues unaffected.\n",
        );
        text.push_str(
            "echo \"exit status $status, which does not say whether it happened\"\nexit 2\n",
        );
        return;
    }
    sign.write("", "$folder/stderr", text);
}

/// Writes the commands that create a file of the host.
pub(crate) fn write_file(
    text: &mut String,
    spec: &FileSpec,
    host: &HostConfig,
    given: &mut Given,
) -> Result<()> {
    let contents = given.contents(spec)?;
    let Some(path) = below_start(&spec.path, &host.cwd) else {
        let shown = String::from_utf8_lossy(&spec.path).into_owned();
        if is_here(spec, &contents) {
            let _ = writeln!(
                text,
                "# The program finds {shown} as it was on the machine of the run."
            );
            return Ok(());
        }
        bail!(
            NotExportable,
            "the program finds {shown} at a place that a script should not write to"
        );
    };
    let path = word(&path);
    match &spec.contents {
        Contents::Directory => {
            let _ = writeln!(text, "mkdir -p -- {path}");
            return Ok(());
        }
        Contents::Link(target) => {
            let _ = writeln!(text, "ln -s -- {} {path}", word(target));
            return Ok(());
        }
        _ => {}
    }
    let _ = writeln!(text, "mkdir -p -- \"$(dirname -- {path})\"");
    write_contents(text, &contents, &path);
    if spec.mode & 0o7777 != 0o644 {
        let _ = writeln!(text, "chmod {:o} -- {path}", spec.mode & 0o7777);
    }
    Ok(())
}

/// Writes the command that stores bytes in a file, whose name is a shell word.
pub(crate) fn write_contents(text: &mut String, bytes: &[u8], file: &str) {
    if bytes.len() <= LONGEST_PRINTED {
        let _ = writeln!(text, "printf '{}' > {file}", octal(bytes));
        return;
    }
    let _ = writeln!(text, "base64 -d > {file} <<'END'");
    for line in base64(bytes).as_bytes().chunks(76) {
        let _ = writeln!(text, "{}", String::from_utf8_lossy(line));
    }
    text.push_str("END\n");
}

/// Writes the command that appends a word to the positional parameters.
pub(crate) fn add_word(text: &mut String, bytes: &[u8]) {
    let plain = bytes.iter().all(|byte| matches!(byte, b' '..=b'~'));
    let _ = if plain {
        writeln!(text, "set -- \"$@\" {}", word(bytes))
    } else {
        // Command substitution strips trailing newlines.
        let printed = octal(bytes);
        writeln!(
            text,
            "word=$(printf '{printed}.')\nset -- \"$@\" \"${{word%.}}\""
        )
    };
}

/// Quotes bytes as a shell word.
fn word(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Encodes bytes for the first argument of `printf`, in single quotes.
fn octal(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        let _ = match byte {
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b' '
            | b'.'
            | b','
            | b'/'
            | b'_'
            | b'-'
            | b'='
            | b':' => write!(text, "{}", char::from(*byte)),
            b'\n' => write!(text, "\\n"),
            _ => write!(text, "\\{byte:03o}"),
        };
    }
    // `printf` would take a leading dash for an option.
    match text.strip_prefix('-') {
        Some(rest) => format!("\\055{rest}"),
        None => text,
    }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            text.push(if digit <= group.len() {
                char::from(DIGITS[(bits >> (18 - 6 * digit) & 63) as usize])
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        let cases = ["", "f", "fo", "foo", "foob", "fooba", "foobar"];
        let encoded = [
            "", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy",
        ];
        for (plain, expected) in cases.into_iter().zip(encoded) {
            assert_eq!(base64(plain.as_bytes()), expected);
        }
        assert_eq!(base64(&[0xff, 0xfe, 0xfd]), "//79");
    }

    #[test]
    fn words_and_bytes_come_through_the_shell() {
        let all: Vec<u8> = (1..=255).chain(*b"'\"$\\%x\n\n").collect();
        let mut script = String::from("set --\n");
        add_word(&mut script, &all);
        add_word(&mut script, b"it's $HOME `x` \"y\"");
        add_word(&mut script, b"-n\n");
        script.push_str("printf '%s|' \"$@\"\n");
        let output = std::process::Command::new("sh")
            .arg("-c")
            .arg(&script)
            .env("LC_ALL", "C")
            .output()
            .expect("a shell");
        let expected = [&all[..], b"|it's $HOME `x` \"y\"|-n\n|"].concat();
        assert_eq!(output.stdout, expected);
    }
}
