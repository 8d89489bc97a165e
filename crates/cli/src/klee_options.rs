//! KLEE's options, for scripts that are written around it: with `--klee-messages`, those before the
//! program are translated to options of `everett run`. Owns KLEE's names and meanings of options.

use everett::{BugKind, Takes};
use std::ffi::{OsStr, OsString};

/// What an option of KLEE means.
enum Meaning {
    /// A switch: these options.
    Switch(&'static [&'static str]),
    /// An option with a value: that option, and what its value is here.
    Value(&'static str, fn(&str) -> Result<String, String>),
    /// The same as what every run does.
    Always,
    /// It tells KLEE how to work: it is ignored, and a notice says so. Whether it has a value can
    /// be told only from `=`, or from this.
    Ignored { takes_value: bool },
}

use Meaning::{Always, Ignored, Switch, Value};

const SWITCH_OF_KLEE: Meaning = Ignored { takes_value: false };
const VALUE_OF_KLEE: Meaning = Ignored { takes_value: true };

/// KLEE's options. Those that have the same name and meaning in both are not listed.
const OPTIONS: &[(&str, Meaning)] = &[
    ("allow-seed-extension", Always),
    ("allow-seed-truncation", Always),
    ("check-div-zero", Always),
    ("check-overshift", Always),
    ("libcxx", Always),
    ("named-seed-matching", Always),
    ("posix-runtime", Always),
    ("ubsan-runtime", Always),
    ("use-merge", Always),
    ("zero-seed-extension", Always),
    ("emit-all-errors", Switch(&["--all-findings"])),
    ("exit-on-error", Switch(&["--stop-at=all"])),
    ("exit-on-error-type", Value("--stop-at", kinds)),
    ("libc", Value("", nothing)),
    ("max-instructions", Value("--max-total-instructions", same)),
    ("max-memory", Value("--max-memory", megabytes)),
    ("max-solver-time", Value("--solver-time", time)),
    ("max-tests", Value("--max-paths", same)),
    ("max-time", Value("--max-time", time)),
    (
        "only-output-states-covering-new",
        Switch(&["--only-new-tests"]),
    ),
    ("only-replay-seeds", Switch(&["--only-seeds"])),
    ("only-seed", Switch(&["--only-seeds"])),
    ("output-dir", Value("--out", same)),
    ("replay-ktest-dir", Value("--only-seeds --seeds", same)),
    ("replay-ktest-file", Value("--only-seeds --seeds", same)),
    ("run-in-dir", Value("--files", same)),
    ("search", Value("--search", searchers)),
    ("seed-dir", Value("--seeds", same)),
    ("seed-file", Value("--seeds", same)),
    ("write-no-tests", Switch(&["--no-tests"])),
    ("batch-instructions", VALUE_OF_KLEE),
    ("batch-time", VALUE_OF_KLEE),
    ("const-array-opt", SWITCH_OF_KLEE),
    ("disable-inlining", SWITCH_OF_KLEE),
    ("dump-states-on-halt", SWITCH_OF_KLEE),
    ("disable-verify", SWITCH_OF_KLEE),
    ("external-calls", VALUE_OF_KLEE),
    ("kdalloc", SWITCH_OF_KLEE),
    ("kdalloc-quarantine", VALUE_OF_KLEE),
    ("klee-call-optimisation", SWITCH_OF_KLEE),
    ("log-timed-out-queries", SWITCH_OF_KLEE),
    ("max-memory-inhibit", SWITCH_OF_KLEE),
    ("max-stack-frames", VALUE_OF_KLEE),
    ("max-static-cpfork-pct", VALUE_OF_KLEE),
    ("max-static-cpsolve-pct", VALUE_OF_KLEE),
    ("max-static-fork-pct", VALUE_OF_KLEE),
    ("max-static-pct-check-delay", VALUE_OF_KLEE),
    ("max-static-solve-pct", VALUE_OF_KLEE),
    ("max-sym-array-size", VALUE_OF_KLEE),
    ("optimize", SWITCH_OF_KLEE),
    ("optimize-array", VALUE_OF_KLEE),
    ("output-istats", SWITCH_OF_KLEE),
    ("output-module", SWITCH_OF_KLEE),
    ("output-source", SWITCH_OF_KLEE),
    ("output-stats", SWITCH_OF_KLEE),
    ("rewrite-equalities", SWITCH_OF_KLEE),
    ("simplify-sym-indices", SWITCH_OF_KLEE),
    ("solver-backend", VALUE_OF_KLEE),
    ("solver-optimize-divides", SWITCH_OF_KLEE),
    ("stats-commit-after", VALUE_OF_KLEE),
    ("stats-write-after-instructions", VALUE_OF_KLEE),
    ("stats-write-interval", VALUE_OF_KLEE),
    ("stp-optimize-divides", SWITCH_OF_KLEE),
    ("switch-type", VALUE_OF_KLEE),
    ("track-instruction-time", SWITCH_OF_KLEE),
    ("use-batching-search", SWITCH_OF_KLEE),
    ("use-branch-cache", SWITCH_OF_KLEE),
    ("use-cex-cache", SWITCH_OF_KLEE),
    ("use-forked-solver", SWITCH_OF_KLEE),
    ("use-incomplete-merge", SWITCH_OF_KLEE),
    ("use-independent-solver", SWITCH_OF_KLEE),
    ("use-iterative-deepening-time-search", VALUE_OF_KLEE),
    ("use-query-log", VALUE_OF_KLEE),
    ("verify-each", SWITCH_OF_KLEE),
    ("warn-all-external-symbols", SWITCH_OF_KLEE),
    ("warnings-only-to-file", SWITCH_OF_KLEE),
    ("watchdog", SWITCH_OF_KLEE),
    ("write-cov", SWITCH_OF_KLEE),
    ("write-cvcs", SWITCH_OF_KLEE),
    ("write-kqueries", SWITCH_OF_KLEE),
    ("write-paths", SWITCH_OF_KLEE),
    ("write-smt2s", SWITCH_OF_KLEE),
    ("write-sym-paths", SWITCH_OF_KLEE),
];

/// Options of the command line that are not about the run.
const TALK: &[&str] = &["quiet", "json", "help", "version"];

fn same(value: &str) -> Result<String, String> {
    Ok(value.to_owned())
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
pub struct Translated {
    /// The words.
    pub words: Vec<OsString>,
    /// What the user should know.
    pub notices: Vec<String>,
}

/// Translates KLEE's options in the words of a command line: those after `run`, before the program,
/// if `--klee-messages` is among them. `None` if nothing is to be translated.
pub fn translate(words: &[OsString]) -> Option<Result<Translated, String>> {
    let (subcommand, rest) = words.get(1..)?.split_first()?;
    if subcommand != "run" {
        return None;
    }
    let mut line = Line {
        rest: rest.iter(),
        words: words[..2].to_vec(),
        ignored: Vec::new(),
        is_klee: false,
    };
    match line.read() {
        Ok(()) if !line.is_klee => None,
        Err(_) if !line.is_klee => None,
        Err(error) => Some(Err(error)),
        Ok(()) => {
            let names = line.ignored.join(", ");
            let notice = format!("how KLEE works has no meaning here; ignored: {names}");
            let has_ignored = !line.ignored.is_empty();
            Some(Ok(Translated {
                words: line.words,
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
        let option = everett::option(name);
        if option.is_none() && !TALK.contains(&name) {
            return Err(format!(
                "--{name} is no option of `everett run`, nor one of KLEE's that it knows"
            ));
        }
        if let (Some("true" | "false"), Some(Takes::Nothing)) = (value, option.map(|it| it.takes)) {
            if value == Some("true") {
                self.words.push(format!("--{name}").into());
            }
            return Ok(());
        }
        let value = value.map_or_else(String::new, |value| format!("={value}"));
        self.words.push(format!("--{name}{value}").into());
        let takes_word =
            value.is_empty() && option.is_some_and(|option| option.takes != Takes::Nothing);
        if takes_word {
            self.words.extend(self.rest.next().cloned());
        }
        Ok(())
    }

    fn translated(
        &mut self,
        name: &str,
        meaning: &Meaning,
        value: Option<&str>,
    ) -> Result<(), String> {
        match meaning {
            Always => {}
            Switch(options) if value != Some("false") => {
                self.words.extend(options.iter().map(OsString::from));
            }
            Switch(_) => {}
            Value(options, of) => {
                let mut next = || self.rest.next().map(|word| word.to_string_lossy());
                let value = match value {
                    Some(value) => value.to_owned(),
                    None => next()
                        .ok_or_else(|| format!("--{name} needs a value"))?
                        .into_owned(),
                };
                let value = of(&value).map_err(|error| format!("--{name}: {error}"))?;
                self.words
                    .extend(options.split_whitespace().map(OsString::from));
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

    fn translated(line: &str) -> Option<Result<(String, Vec<String>), String>> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let done = translate(&words)?;
        Some(done.map(|done| {
            let words: Vec<_> = done
                .words
                .iter()
                .map(|word| word.to_string_lossy())
                .collect();
            (words.join(" "), done.notices)
        }))
    }

    #[test]
    fn options_of_klee_are_translated_before_the_program() {
        let line = "everett run --klee-messages -output-dir=o --max-time 10 -max-memory=500 \
                    --search=nurs:covnew --exit-on-error -write-no-tests=false --libc=uclibc \
                    --max-depth=3 --workers 2 ./prog --max-time 3 -libc=x";
        let expected = "everett run --klee-messages --out o --max-time 10s --max-memory 500M \
                        --search coverage --stop-at=all --max-depth=3 --workers 2 ./prog \
                        --max-time 3 -libc=x";
        assert_eq!(
            translated(line),
            Some(Ok((expected.to_owned(), Vec::new())))
        );
    }

    #[test]
    fn what_is_ignored_is_said() {
        let line = "everett run --klee-messages --optimize --switch-type simple ./prog";
        let (words, notices) = translated(line)
            .expect("it is KLEE's")
            .expect("it is known");
        assert_eq!(words, "everett run --klee-messages ./prog");
        assert_eq!(notices.len(), 1);
        assert!(
            notices[0].ends_with("--optimize, --switch-type"),
            "{notices:?}"
        );
    }

    #[test]
    fn only_lines_with_messages_of_klee_are_translated() {
        assert_eq!(
            translated("everett run --max-time 10 ./prog --klee-messages"),
            None
        );
        assert_eq!(translated("everett test --klee-messages"), None);
        let unknown = translated("everett run --klee-messages --no-such-option ./prog");
        let error = unknown.expect("it is KLEE's").expect_err("it is refused");
        assert!(error.starts_with("--no-such-option"), "{error}");
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
