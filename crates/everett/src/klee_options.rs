//! KLEE's options, for scripts that are written around it: with `--klee-messages`, those before the
//! program are translated to options of `everett run`, and bitcode that a compiler wrote is linked.
//! Owns KLEE's names and meanings of options; must not know how a command line is parsed.

use everett_toolchain::{Notify, ObjectBuild, Remark, link_object};
use everett_vm::BugKind;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::error::{Result, bail};
use crate::klee::klee_warning;
use crate::options::{Takes, option};

/// What an option of KLEE means.
enum Meaning {
    /// A switch: these options of a run, without hyphens.
    Switch(&'static [&'static str]),
    /// An option with a value: the options, of which the last has a value, and what that is here.
    Value(&'static str, fn(&str) -> Result<String, String>),
    /// A file, and the words that stand for what is in it.
    File(fn(&str) -> Result<Vec<String>, String>),
    /// The same as what every run does.
    Always,
    /// The same as what every run does; without it, this option.
    Unless(&'static str),
    /// It says how the bitcode is linked.
    Build(fn(&mut ObjectBuild, String)),
    /// It means something that a run cannot do: the way out.
    Refused(&'static str),
    /// It tells KLEE how to work: it is ignored, and a notice says so. Whether it has a value can
    /// be told only from `=`, or from this.
    Ignored { takes_value: bool },
}

use Meaning::{Always, Build, File, Ignored, Refused, Switch, Unless, Value};

const SWITCH_OF_KLEE: Meaning = Ignored { takes_value: false };
const VALUE_OF_KLEE: Meaning = Ignored { takes_value: true };

/// KLEE's options. Those that have the same name and meaning in both are not listed.
const OPTIONS: &[(&str, Meaning)] = &[
    ("allow-seed-extension", Always),
    ("allow-seed-truncation", Always),
    ("check-div-zero", Always),
    ("check-overshift", Unless("no-check-shifts")),
    ("libcxx", Always),
    ("named-seed-matching", Always),
    ("ubsan-runtime", Always),
    ("use-merge", Always),
    ("zero-seed-extension", Always),
    ("entry-point", Build(|build, name| build.entry = Some(name))),
    (
        "function-alias",
        Build(|build, pair| build.replaced.push(pair)),
    ),
    (
        "link-llvm-lib",
        Build(|build, library| build.libraries.push(library.into())),
    ),
    ("emit-all-errors", Switch(&["all-findings"])),
    ("env-file", File(variables)),
    ("exit-on-error", Switch(&["stop-at=all"])),
    ("exit-on-error-type", Value("stop-at", kinds)),
    ("libc", Value("", nothing)),
    ("max-instructions", Value("max-total-instructions", same)),
    ("max-memory", Value("max-memory", megabytes)),
    ("max-solver-time", Value("solver-time", time)),
    ("max-tests", Value("max-paths", same)),
    ("max-time", Value("max-time", time)),
    (
        "only-output-states-covering-new",
        Switch(&["only-new-tests"]),
    ),
    ("only-replay-seeds", Switch(&["only-seeds"])),
    ("only-seed", Switch(&["only-seeds"])),
    ("output-dir", Value("out", same)),
    ("rng-initial-seed", Value("seed", same)),
    ("posix-runtime", Switch(&["sym-file-modes"])),
    (
        "replay-ktest-dir",
        Value("only-seeds seeds-apart seeds", same),
    ),
    (
        "replay-ktest-file",
        Value("only-seeds seeds-apart seeds", same),
    ),
    ("run-in-dir", Value("files", same)),
    ("search", Value("search", searchers)),
    ("seed-dir", Value("seeds", same)),
    ("seed-file", Value("seeds", same)),
    ("write-no-tests", Switch(&["no-tests"])),
    (
        "replay-path",
        Refused("files of paths are not written; replay the path's test (--replay-ktest-file)"),
    ),
    ("always-output-seeds", SWITCH_OF_KLEE),
    ("array-value-ratio", VALUE_OF_KLEE),
    ("array-value-symb-ratio", VALUE_OF_KLEE),
    ("batch-instructions", VALUE_OF_KLEE),
    ("batch-time", VALUE_OF_KLEE),
    ("cex-cache-superset", SWITCH_OF_KLEE),
    ("cex-cache-try-all", SWITCH_OF_KLEE),
    ("compress-exec-tree", SWITCH_OF_KLEE),
    ("compress-query-log", SWITCH_OF_KLEE),
    ("const-array-opt", SWITCH_OF_KLEE),
    ("debug-assignment-validating-solver", SWITCH_OF_KLEE),
    ("debug-cex-cache-check-binding", SWITCH_OF_KLEE),
    ("debug-check-for-implied-values", SWITCH_OF_KLEE),
    ("debug-compress-instructions", SWITCH_OF_KLEE),
    ("debug-crosscheck-core-solver", VALUE_OF_KLEE),
    ("debug-dump-stp-queries", SWITCH_OF_KLEE),
    ("debug-log-incomplete-merge", SWITCH_OF_KLEE),
    ("debug-log-merge", SWITCH_OF_KLEE),
    ("debug-log-state-merge", SWITCH_OF_KLEE),
    ("debug-print-escaping-functions", SWITCH_OF_KLEE),
    ("debug-print-instructions", VALUE_OF_KLEE),
    ("debug-validate-solver", SWITCH_OF_KLEE),
    ("debug-z3-dump-queries", VALUE_OF_KLEE),
    ("debug-z3-log-api-interaction", VALUE_OF_KLEE),
    ("debug-z3-validate-models", SWITCH_OF_KLEE),
    ("debug-z3-verbosity", VALUE_OF_KLEE),
    ("disable-inlining", SWITCH_OF_KLEE),
    ("disable-internalize", SWITCH_OF_KLEE),
    ("disable-verify", SWITCH_OF_KLEE),
    ("dump-states-on-halt", SWITCH_OF_KLEE),
    ("equality-substitution", SWITCH_OF_KLEE),
    ("exec-tree-batch-size", VALUE_OF_KLEE),
    ("external-call-warnings", VALUE_OF_KLEE),
    ("external-calls", VALUE_OF_KLEE),
    ("ignore-stp-failures", SWITCH_OF_KLEE),
    ("istats-write-after-instructions", VALUE_OF_KLEE),
    ("istats-write-interval", VALUE_OF_KLEE),
    ("kdalloc", SWITCH_OF_KLEE),
    ("kdalloc-constants-size", VALUE_OF_KLEE),
    ("kdalloc-constants-start-address", VALUE_OF_KLEE),
    ("kdalloc-external-page-threshold", VALUE_OF_KLEE),
    ("kdalloc-globals-size", VALUE_OF_KLEE),
    ("kdalloc-globals-start-address", VALUE_OF_KLEE),
    ("kdalloc-heap-size", VALUE_OF_KLEE),
    ("kdalloc-heap-start-address", VALUE_OF_KLEE),
    ("kdalloc-mark-as-unneeded", SWITCH_OF_KLEE),
    ("kdalloc-quarantine", VALUE_OF_KLEE),
    ("kdalloc-stack-size", VALUE_OF_KLEE),
    ("kdalloc-stack-start-address", VALUE_OF_KLEE),
    ("klee-call-optimisation", SWITCH_OF_KLEE),
    ("log-partial-queries-early", SWITCH_OF_KLEE),
    ("log-timed-out-queries", SWITCH_OF_KLEE),
    ("max-memory-inhibit", SWITCH_OF_KLEE),
    ("max-sym-array-size", VALUE_OF_KLEE),
    ("metasmt-backend", VALUE_OF_KLEE),
    ("min-query-time-to-log", VALUE_OF_KLEE),
    ("optimize", SWITCH_OF_KLEE),
    ("optimize-array", VALUE_OF_KLEE),
    ("output-istats", SWITCH_OF_KLEE),
    ("output-module", SWITCH_OF_KLEE),
    ("output-source", SWITCH_OF_KLEE),
    ("output-stats", SWITCH_OF_KLEE),
    ("pc-all-const-widths", SWITCH_OF_KLEE),
    ("pc-all-widths", SWITCH_OF_KLEE),
    ("pc-multibyte-reads", SWITCH_OF_KLEE),
    ("pc-prefix-width", VALUE_OF_KLEE),
    ("pc-width-as-arg", SWITCH_OF_KLEE),
    ("readable-posix-inputs", SWITCH_OF_KLEE),
    ("rewrite-equalities", SWITCH_OF_KLEE),
    ("runtime-build", VALUE_OF_KLEE),
    ("seed-time", VALUE_OF_KLEE),
    ("simplify-sym-indices", SWITCH_OF_KLEE),
    ("single-object-resolution", SWITCH_OF_KLEE),
    ("smtlib-abbreviation-mode", VALUE_OF_KLEE),
    ("smtlib-display-constants", VALUE_OF_KLEE),
    ("smtlib-human-readable", SWITCH_OF_KLEE),
    ("solver-backend", VALUE_OF_KLEE),
    ("solver-optimize-divides", SWITCH_OF_KLEE),
    ("stats-commit-after", VALUE_OF_KLEE),
    ("stats-write-after-instructions", VALUE_OF_KLEE),
    ("stats-write-interval", VALUE_OF_KLEE),
    ("stp-optimize-divides", SWITCH_OF_KLEE),
    ("stp-sat-solver", VALUE_OF_KLEE),
    ("strip-all", SWITCH_OF_KLEE),
    ("strip-debug", SWITCH_OF_KLEE),
    ("switch-type", VALUE_OF_KLEE),
    ("timer-interval", VALUE_OF_KLEE),
    ("track-instruction-time", SWITCH_OF_KLEE),
    ("uncovered-update-interval", VALUE_OF_KLEE),
    ("use-batching-search", SWITCH_OF_KLEE),
    ("use-branch-cache", SWITCH_OF_KLEE),
    ("use-call-paths", SWITCH_OF_KLEE),
    ("use-cex-cache", SWITCH_OF_KLEE),
    ("use-constant-arrays", SWITCH_OF_KLEE),
    ("use-construct-hash-stp", SWITCH_OF_KLEE),
    ("use-construct-hash-z3", SWITCH_OF_KLEE),
    ("use-fast-cex-solver", SWITCH_OF_KLEE),
    ("use-forked-solver", SWITCH_OF_KLEE),
    ("use-incomplete-merge", SWITCH_OF_KLEE),
    ("use-independent-solver", SWITCH_OF_KLEE),
    ("use-iterative-deepening-time-search", SWITCH_OF_KLEE),
    ("use-query-log", VALUE_OF_KLEE),
    ("use-visitor-hash", SWITCH_OF_KLEE),
    ("verify-each", SWITCH_OF_KLEE),
    ("warn-all-external-symbols", SWITCH_OF_KLEE),
    ("warnings-only-to-file", SWITCH_OF_KLEE),
    ("watchdog", SWITCH_OF_KLEE),
    ("write-cov", SWITCH_OF_KLEE),
    ("write-cvcs", SWITCH_OF_KLEE),
    ("write-exec-tree", SWITCH_OF_KLEE),
    ("write-kqueries", SWITCH_OF_KLEE),
    ("write-paths", SWITCH_OF_KLEE),
    ("write-smt2s", SWITCH_OF_KLEE),
    ("write-sym-paths", SWITCH_OF_KLEE),
    ("write-test-info", SWITCH_OF_KLEE),
    ("write-xml-tests", SWITCH_OF_KLEE),
    ("xml-metadata-programfile", VALUE_OF_KLEE),
    ("xml-metadata-programhash", VALUE_OF_KLEE),
];

/// Options of the command line that are not about the run.
const TALK: &[&str] = &["quiet", "json", "help", "version"];

fn same(value: &str) -> Result<String, String> {
    Ok(value.to_owned())
}

/// An option of `everett run` as it stands on the command line.
fn written(option: &str) -> String {
    format!("--{option}")
}

/// The variables in a file as `env` prints them.
fn variables(file: &str) -> Result<Vec<String>, String> {
    let text = everett_report::read_text(Path::new(file));
    let text = text.map_err(|error| format!("cannot read {file}: {error}"))?;
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty());
    Ok(lines.map(|line| written(&format!("env={line}"))).collect())
}

/// For a value that says what every run has.
fn nothing(_: &str) -> Result<String, String> {
    Ok(String::new())
}

/// A time of KLEE: a number of seconds, or numbers with units such as `1h30min`.
fn time(value: &str) -> Result<String, String> {
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    Ok(match is_number {
        true => format!("{value}s"),
        false => value.replace("min", "m"),
    })
}

/// KLEE's limit on memory has no unit.
fn megabytes(value: &str) -> Result<String, String> {
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    Ok(match is_number {
        true => format!("{value}M"),
        false => value.to_owned(),
    })
}

/// Searchers that weigh states randomly, by how near uncovered code is or otherwise (`nurs:`),
/// become the one that does it by coverage. The order of states does not change what a complete run
/// finds.
fn searchers(value: &str) -> Result<String, String> {
    let name = |name: &str| match name.starts_with("nurs:") {
        true => "coverage".to_owned(),
        false => name.to_owned(),
    };
    let names: Vec<String> = value.split(',').map(name).collect();
    Ok(names.join(","))
}

/// Kinds of findings that KLEE has one name for, which is also the ending of its files.
fn kinds(value: &str) -> Result<String, String> {
    let ending = match value {
        "BadVectorAccess" => "ptr",
        "ReadOnly" => "read_only",
        "ReportError" | "User" => return Ok("user-report,invalid-assumption".to_owned()),
        "Assert" => return Ok("assertion".to_owned()),
        "Free" => return Ok("invalid-free,double-free".to_owned()),
        name => &name.to_lowercase(),
    };
    let has_ending = |kind: &&BugKind| kind.klee_name().is_some_and(|(name, _)| name == ending);
    let names = BugKind::ALL.iter().filter(has_ending);
    let names: Vec<&str> = names.map(|kind| kind.name()).collect();
    match names.is_empty() {
        true => Err(format!("`{value}` is no kind of errors that Everett finds")),
        false => Ok(names.join(",")),
    }
}

/// An option as it is written: with one hyphen or two, and its value if `=` precedes that.
fn option_of(word: &OsStr) -> Option<(&str, Option<&str>)> {
    let rest = word.to_str()?.strip_prefix('-')?;
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    // A single letter is an option of Everett.
    let (name, value) = match rest.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (rest, None),
    };
    (name.len() > 1).then_some((name, value))
}

/// A command line of `everett run`, with KLEE's options translated.
pub struct KleeCommand {
    /// The words.
    pub words: Vec<OsString>,
    /// What the user should know.
    pub notices: Vec<String>,
    ends_as_klee: bool,
    /// Where the program is among the words.
    program: Option<usize>,
    build: ObjectBuild,
}

impl KleeCommand {
    /// Returns the exit code for one of a run that has ended. KLEE ends with 0 after errors, also
    /// those of its own, unless it was told to stop at one; only the program of its name does so.
    pub fn exit_code(&self, code: u8) -> u8 {
        let words = self.words.iter().take(self.program.unwrap_or_default());
        let mut words = words.filter_map(|word| word.to_str());
        let stops = words.any(|word| word == written("stop-at=all"));
        match code {
            1 | 2 if self.ends_as_klee && !stops => 0,
            code => code,
        }
    }

    /// Links the program if it is bitcode that was not linked yet. `said` gets what KLEE says about
    /// that.
    pub fn link(&mut self, notify: Notify<'_>, said: &mut dyn FnMut(&str)) -> Result<()> {
        let program = self.program.and_then(|at| self.words.get_mut(at));
        let Some(program) = program else {
            return Ok(());
        };
        let file = Path::new(&*program);
        let mut remark = |remark: Remark| match remark {
            Remark::Done(text) => said(&format!("KLEE: {text}\n")),
            Remark::Warning(text) => said(&klee_warning(&text)),
        };
        let linked = match is_bitcode_alone(file) {
            true => link_object(file, &self.build, notify, &mut remark)?,
            false => None,
        };
        match linked {
            Some(linked) => *program = linked.into(),
            None if self.build == ObjectBuild::default() => {}
            None => bail!(
                Usage,
                "{} is linked: entry points, aliases of functions and libraries belong to the build",
                file.display()
            ),
        }
        Ok(())
    }
}

/// Returns whether a file is bitcode, or its textual form, without a native program beside it.
fn is_bitcode_alone(file: &Path) -> bool {
    let ending = file.extension().and_then(OsStr::to_str);
    matches!(ending, Some("bc" | "ll")) && file.is_file() && !file.with_extension("").exists()
}

/// Translates KLEE's options in the words of a command line: those after `run`, before the program,
/// if `--klee-messages` is among them or the program that was called has KLEE's name. `None` if
/// nothing is to be translated.
pub fn klee_command(words: &[OsString]) -> Option<Result<KleeCommand, String>> {
    let (called, rest) = words.split_first()?;
    if everett_toolchain::is_klee(Path::new(called)) {
        let mut line = vec![
            called.clone(),
            "run".into(),
            written("klee-messages").into(),
        ];
        line.extend_from_slice(rest);
        return Some(translate(&line)?.map(|command| KleeCommand {
            ends_as_klee: true,
            ..command
        }));
    }
    translate(words)
}

fn translate(words: &[OsString]) -> Option<Result<KleeCommand, String>> {
    let (subcommand, rest) = words.get(1..)?.split_first()?;
    if subcommand != "run" {
        return None;
    }
    let mut line = Line {
        rest: rest.iter(),
        words: words[..2].to_vec(),
        ignored: Vec::new(),
        is_klee: false,
        program: None,
        build: ObjectBuild::default(),
    };
    match line.read() {
        Ok(()) if !line.is_klee => None,
        Err(_) if !line.is_klee => None,
        Err(error) => Some(Err(error)),
        Ok(()) => {
            let names = line.ignored.join(", ");
            let notice = format!("how KLEE works has no meaning here; ignored: {names}");
            let has_ignored = !line.ignored.is_empty();
            Some(Ok(KleeCommand {
                words: line.words,
                ends_as_klee: false,
                program: line.program,
                build: line.build,
                notices: has_ignored.then_some(notice).into_iter().collect(),
            }))
        }
    }
}

struct Line<'w> {
    rest: std::slice::Iter<'w, OsString>,
    words: Vec<OsString>,
    ignored: Vec<String>,
    /// Whether `--klee-messages` was among the words.
    is_klee: bool,
    program: Option<usize>,
    build: ObjectBuild,
}

impl Line<'_> {
    fn read(&mut self) -> Result<(), String> {
        while let Some(word) = self.rest.next() {
            let Some((name, value)) = option_of(word) else {
                self.words.push(word.clone());
                if word.as_encoded_bytes().starts_with(b"-") && word != "--" {
                    continue;
                }
                // The program and its arguments.
                self.program = Some(self.words.len() - 1 + usize::from(word == "--"));
                self.words.extend(self.rest.by_ref().cloned());
                return Ok(());
            };
            self.is_klee |= name == "klee-messages";
            match OPTIONS.iter().find(|(known, _)| *known == name) {
                Some((_, meaning)) => self.translated(name, meaning, value)?,
                None => self.own(name, value)?,
            }
        }
        Ok(())
    }

    /// Adds an option of Everett, which KLEE may have, too.
    fn own(&mut self, name: &str, value: Option<&str>) -> Result<(), String> {
        let known = option(name);
        if known.is_none() && !TALK.contains(&name) {
            return Err(format!(
                "--{name} is no option of `everett run`, nor one of KLEE's that it knows"
            ));
        }
        if let (Some("true" | "false"), Some(Takes::Nothing)) = (value, known.map(|it| it.takes)) {
            if value == Some("true") {
                self.words.push(format!("--{name}").into());
            }
            return Ok(());
        }
        let value = value.map_or_else(String::new, |value| format!("={value}"));
        self.words.push(format!("--{name}{value}").into());
        let takes_word =
            value.is_empty() && known.is_some_and(|known| known.takes != Takes::Nothing);
        if takes_word {
            self.words.extend(self.rest.next().cloned());
        }
        Ok(())
    }

    /// Returns the value of an option, which can be the next word.
    fn value_of(&mut self, name: &str, value: Option<&str>) -> Result<String, String> {
        match (value, self.rest.as_slice().first()) {
            (Some(value), _) => Ok(value.to_owned()),
            (None, Some(word)) => {
                self.rest.next();
                Ok(word.to_string_lossy().into_owned())
            }
            (None, None) => Err(format!("--{name} needs a value")),
        }
    }

    fn translated(
        &mut self,
        name: &str,
        meaning: &Meaning,
        value: Option<&str>,
    ) -> Result<(), String> {
        match meaning {
            Always | Unless(_) if value != Some("false") => {}
            Always => self.ignored.push(format!("--{name}=false")),
            Unless(option) => self.words.push(format!("--{option}").into()),
            File(read) => {
                let file = self.value_of(name, value)?;
                let words = read(&file).map_err(|error| format!("--{name}: {error}"))?;
                self.words.extend(words.into_iter().map(OsString::from));
            }
            Build(say) => {
                let value = self.value_of(name, value)?;
                say(&mut self.build, value);
            }
            Refused(why) => return Err(format!("--{name}: {why}")),
            Switch(options) if value != Some("false") => {
                let flags = options.iter().map(|option| format!("--{option}").into());
                self.words.extend(flags);
            }
            Switch(_) => {}
            Value(options, of) => {
                let value = self.value_of(name, value)?;
                let value = of(&value).map_err(|error| format!("--{name}: {error}"))?;
                let names = options.split_whitespace();
                let flags = names.map(|option| format!("--{option}").into());
                self.words.extend(flags);
                if !options.is_empty() {
                    self.words.push(value.into());
                }
            }
            Ignored { takes_value } => {
                if *takes_value && value.is_none() {
                    self.rest.next();
                }
                self.ignored.push(format!("--{name}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Options have one hyphen here, and two in the command.
    fn translated(line: &str) -> Option<Result<(String, Vec<String>), String>> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let done = klee_command(&words)?;
        Some(done.map(|done| {
            let words: Vec<_> = done
                .words
                .iter()
                .map(|word| word.to_string_lossy())
                .collect();
            (words.join(" ").replace(" --", " -"), done.notices)
        }))
    }

    #[test]
    fn options_of_klee_are_translated_before_the_program() {
        let line = "everett run -klee-messages -output-dir=o -max-time 10 -max-memory=500 \
                    -search=nurs:covnew -exit-on-error -write-no-tests=false -libc=uclibc \
                    -max-depth=3 -workers 2 ./prog -max-time 3 -libc=x";
        let expected = "everett run -klee-messages -out o -max-time 10s -max-memory 500M \
                        -search coverage -stop-at=all -max-depth=3 -workers 2 ./prog \
                        -max-time 3 -libc=x";
        assert_eq!(
            translated(line),
            Some(Ok((expected.to_owned(), Vec::new())))
        );
    }

    #[test]
    fn what_is_ignored_is_said() {
        let line = "everett run -klee-messages -optimize -switch-type simple ./prog";
        let (words, notices) = translated(line)
            .expect("it is KLEE's")
            .expect("it is known");
        assert_eq!(words, "everett run -klee-messages ./prog");
        assert_eq!(notices.len(), 1);
        assert!(
            notices[0].ends_with("--optimize, --switch-type"),
            "{notices:?}"
        );
    }

    #[test]
    fn only_lines_with_messages_of_klee_are_translated() {
        assert_eq!(
            translated("everett run -max-time 10 ./prog -klee-messages"),
            None
        );
        assert_eq!(translated("everett test -klee-messages"), None);
        let unknown = translated("everett run -klee-messages -no-such-option ./prog");
        let error = unknown.expect("it is KLEE's").expect_err("it is refused");
        assert!(error.starts_with("--no-such-option"), "{error}");
    }

    #[test]
    fn a_program_of_the_name_of_klee_is_one() {
        for (line, code) in [
            ("/bin/klee -max-depth=3 ./prog -x", 0),
            ("everett-klee -exit-on-error-type=Assert ./prog", 0),
            ("everett-klee -exit-on-error ./prog", 1),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let done = klee_command(&words).expect("it is KLEE's");
            let done = done.expect("it is known");
            assert_eq!(done.words[1..3], ["run", &*written("klee-messages")]);
            assert_eq!(done.exit_code(1), code, "{line}");
            assert_eq!(done.exit_code(2), 2 * code, "{line}");
            assert_eq!(done.exit_code(3), 3, "{line}");
        }
        assert_eq!(translated("/bin/klee-stats x"), None);
    }

    #[test]
    fn a_check_that_is_off_is_off_or_said_to_be_on() {
        let line = "everett run -klee-messages -check-overshift=false -check-div-zero=false ./prog";
        let (words, notices) = translated(line)
            .expect("it is KLEE's")
            .expect("it is known");
        assert_eq!(words, "everett run -klee-messages -no-check-shifts ./prog");
        assert!(
            notices[0].ends_with("--check-div-zero=false"),
            "{notices:?}"
        );
    }

    #[test]
    fn what_belongs_to_the_build_is_kept_for_it() {
        let line = "everett run -klee-messages -entry-point=f -function-alias a:b -- x.bc 1";
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let done = klee_command(&words).expect("it is KLEE's");
        let mut done = done.expect("it is known");
        assert_eq!(
            done.program.map(|at| done.words[at].clone()),
            Some("x.bc".into())
        );
        assert_eq!(done.build.entry.as_deref(), Some("f"));
        assert_eq!(done.build.replaced, ["a:b"]);
        // There is no such file.
        let refused = done.link(&|_| {}, &mut |_| {});
        let refused = refused.expect_err("it is no bitcode").to_string();
        assert!(refused.contains("belong to the build"), "{refused}");
    }

    #[test]
    fn types_of_errors_are_kinds_of_findings() {
        assert_eq!(kinds("Assert").as_deref(), Ok("assertion"));
        assert!(
            kinds("Ptr")
                .expect("it is known")
                .contains("out-of-bounds,")
        );
        assert!(kinds("Nonsense").is_err());
    }
}
