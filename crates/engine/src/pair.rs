//! Two builds of a program on the same input: a path runs the build under test to its end, then the
//! other build under the resulting path condition. Owns what the second run shares with the first,
//! and the comparison of their behaviour.
//!
//! The runs share inputs by name. A choice is identified by its site and by how often
//! that site was asked before: the second run repeats the choices of the first, and
//! explores choices that only it makes.

use everett_expr::{Arena, ExprId};
use everett_linux::{Bytes, ChangedFile, FileChange};
use everett_solver::Model;
use everett_vm::Value;
use std::collections::{BTreeMap, BTreeSet};

use crate::finding::PathEnding;
use crate::path::Path;
use crate::second::{Behaviour, Second};
use crate::trace::{Trace, TraceEnd, digest};

/// Evaluates a behaviour under a model of the inputs.
fn under(behaviour: &Behaviour, arena: &mut Arena, model: &Model) -> Shown {
    let status = behaviour.status.map(|status| match status.term {
        Some(term) => arena.eval(term, model, &mut Default::default()),
        None => status.bits,
    });
    let output = [0, 1].map(|at| behaviour.output[at].evaluate(arena, model));
    let end = TraceEnd {
        exit: status.map(|status| status as i32),
        output: [0, 1].map(|at| digest(&output[at])),
        ..behaviour.end.clone()
    };
    Shown { end, output }
}

/// A behaviour on concrete inputs.
struct Shown {
    end: TraceEnd,
    output: [Vec<u8>; 2],
}

impl Shown {
    /// Describes how the program ended.
    fn describe(&self) -> String {
        match &self.end {
            TraceEnd {
                finding: Some(kind),
                stack,
                ..
            } => {
                let own = crate::source::principal(stack).filter(|frame| frame.line != 0);
                let place = own.map(|at| format!(" in {} at {}:{}", at.function, at.file, at.line));
                format!("ends in {kind}{}", place.unwrap_or_default())
            }
            TraceEnd {
                signal: Some(signal),
                ..
            } => format!("is ended by signal {signal}"),
            TraceEnd {
                exit: Some(status), ..
            } => format!("exits with {status}"),
            _ => "waits for ever".to_owned(),
        }
    }
}

/// The condition under which two values differ; for several conditions, if any of them holds.
enum Differs {
    Never,
    Always,
    If(Vec<ExprId>),
}

impl Differs {
    fn or(self, other: Differs) -> Differs {
        match (self, other) {
            (Differs::Always, _) | (_, Differs::Always) => Differs::Always,
            (Differs::Never, other) | (other, Differs::Never) => other,
            (Differs::If(mut all), Differs::If(more)) => {
                all.extend(more);
                Differs::If(all)
            }
        }
    }

    fn unless_equal(arena: &mut Arena, one: ExprId, other: ExprId) -> Differs {
        let equal = arena.eq(one, other);
        let differ = arena.not(equal);
        match arena.as_const(differ) {
            Some(0) => Differs::Never,
            Some(_) => Differs::Always,
            None => Differs::If(vec![differ]),
        }
    }

    fn of_values(arena: &mut Arena, one: Value, other: Value) -> Differs {
        const STATUS_BITS: u32 = 8;
        let [one, other] = [one, other].map(|value| value.to_term(arena, STATUS_BITS));
        Differs::unless_equal(arena, one, other)
    }

    /// Compares two contents byte by byte.
    fn of_bytes(arena: &mut Arena, one: &Bytes, other: &Bytes) -> Differs {
        if one.len() != other.len() {
            return Differs::Always;
        }
        if one.is_same(other) {
            return Differs::Never;
        }
        let [one, other] = [one, other].map(|bytes| bytes.read(0, bytes.len()));
        let mut differs = Differs::Never;
        for at in 0..one.len() {
            let is_symbolic = one.has_symbolic(at, 1) || other.has_symbolic(at, 1);
            differs = match is_symbolic {
                false if one.bytes()[at] == other.bytes()[at] => differs,
                false => return Differs::Always,
                true => {
                    let (a, b) = (one.byte_term(arena, at), other.byte_term(arena, at));
                    differs.or(Differs::unless_equal(arena, a, b))
                }
            };
        }
        differs
    }

    /// Compares type and content of a file.
    fn of_files(arena: &mut Arena, one: &ChangedFile, other: &ChangedFile) -> Differs {
        let is_same = match (&one.what, &other.what) {
            (FileChange::File(one), FileChange::File(other)) => {
                return Differs::of_bytes(arena, one, other);
            }
            (FileChange::Link(one), FileChange::Link(other)) => one == other,
            (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
        };
        if is_same {
            Differs::Never
        } else {
            Differs::Always
        }
    }
}

/// The aspects in which two behaviours differ, each with its condition.
type Aspects = Vec<(String, Differs)>;

/// Compares two behaviours aspect by aspect. After a crash, only the end is compared.
fn aspects(arena: &mut Arena, new: &Behaviour, old: &Behaviour) -> Aspects {
    let is_same_end = match (&new.ending, &old.ending) {
        (PathEnding::Exit(_), PathEnding::Exit(_)) => true,
        (one, other) => one == other,
    };
    if !is_same_end {
        return vec![("the end".to_owned(), Differs::Always)];
    }
    if !new.is_orderly() {
        return Vec::new();
    }
    let mut all = Vec::new();
    if let (Some(one), Some(other)) = (new.status, old.status) {
        all.push((
            "the exit status".to_owned(),
            Differs::of_values(arena, one, other),
        ));
    }
    for (name, at) in [("standard output", 0), ("standard error", 1)] {
        let differs = Differs::of_bytes(arena, &new.output[at], &old.output[at]);
        all.push((name.to_owned(), differs));
    }
    let by_path = |files: &'_ [ChangedFile]| -> BTreeMap<Vec<u8>, ChangedFile> {
        files
            .iter()
            .map(|file| (file.path.clone(), file.clone()))
            .collect()
    };
    let (one, other) = (by_path(&new.files), by_path(&old.files));
    let paths: BTreeSet<&Vec<u8>> = one.keys().chain(other.keys()).collect();
    for path in paths {
        let name = format!("the file {}", String::from_utf8_lossy(path));
        match (one.get(path), other.get(path)) {
            (Some(one), Some(other)) => {
                if one.mode != other.mode {
                    let modes = format!("mode {:04o}, of the other {:04o}", one.mode, other.mode);
                    all.push((format!("{name} ({modes})"), Differs::Always));
                }
                all.push((name, Differs::of_files(arena, one, other)));
            }
            (one, other) => {
                let who = if one.is_some() {
                    "this build"
                } else {
                    "the other"
                };
                let what = one.or(other).map_or("", |file| how(&file.what));
                all.push((format!("{name} (only {who} {what} it)"), Differs::Always));
            }
        }
    }
    all
}

/// Says what a build has done to a file.
fn how(what: &FileChange) -> &'static str {
    match what {
        FileChange::Removed => "removes",
        _ => "makes or changes",
    }
}

/// Returns the condition under which two behaviours differ; `None` if they never do.
pub(crate) fn difference(arena: &mut Arena, new: &Behaviour, old: &Behaviour) -> Option<ExprId> {
    let all = aspects(arena, new, old).into_iter();
    match all.fold(Differs::Never, |all, (_, one)| all.or(one)) {
        Differs::Never => None,
        Differs::Always => Some(arena.bool_constant(true)),
        Differs::If(conditions) => {
            let mut any = arena.bool_constant(false);
            for condition in conditions {
                any = arena.or(any, condition);
            }
            Some(any)
        }
    }
}

/// An input on which two builds behave differently.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The aspects that differ, in words.
    pub aspects: Vec<String>,
    /// How the build under test ends, and how the other one does.
    pub ends: [String; 2],
    /// The trace of the build under test, and that of the other one. Inputs with the same name have
    /// the same bytes in both.
    pub traces: [Trace; 2],
    /// The standard output and standard error of each.
    pub output: [[Vec<u8>; 2]; 2],
}

impl Difference {
    /// The kind under which differences are counted among the findings.
    pub const KIND: &str = "difference";

    /// Returns the difference between two behaviours at the end of the second path, under its
    /// model.
    pub(crate) fn of(
        arena: &mut Arena,
        path: &Path,
        second: &Second,
        old: &Behaviour,
    ) -> Difference {
        let model = &path.model;
        let shown = [&*second.first, old].map(|one| under(one, arena, model));
        let holds =
            |arena: &Arena, term: ExprId| arena.eval(term, model, &mut Default::default()) != 0;
        let all = aspects(arena, &second.first, old).into_iter();
        let differing = all.filter(|(_, differs)| match differs {
            Differs::Never => false,
            Differs::Always => true,
            Differs::If(conditions) => conditions.iter().any(|it| holds(arena, *it)),
        });
        let aspects = differing.map(|(name, _)| name).collect();
        let whole = path.trace_under(model);
        let asked = Path {
            inputs: second.asked.clone(),
            ..Path::default()
        };
        let ends = [0, 1].map(|at| shown[at].describe());
        let [new, old] = shown;
        Difference {
            aspects,
            ends,
            traces: [
                Trace {
                    inputs: whole.inputs.iter().take(second.inputs).cloned().collect(),
                    choices: whole.choices.iter().take(second.choices).cloned().collect(),
                    end: Some(new.end),
                    ..Trace::default()
                },
                Trace {
                    inputs: asked.trace_under(model).inputs,
                    choices: whole.choices.iter().skip(second.choices).cloned().collect(),
                    end: Some(old.end),
                    ..Trace::default()
                },
            ],
            output: [new.output, old.output],
        }
    }
}
