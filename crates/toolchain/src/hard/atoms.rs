//! Divides instrumentation into atoms: checks that can be kept or removed individually.

use std::collections::{BTreeSet, HashMap};

use super::debug::{Debug, DebugLocation};
use super::{loops, text};

/// The kind of check of an atom. The runtime has the same list.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// A read: red zones and freed memory.
    Read = 0,
    /// A write: red zones and freed memory.
    Write = 1,
    /// A copy or fill of a range.
    Copy = 2,
    /// A call of a C library function with a buffer.
    Call = 3,
    /// An access to an object whose size is known at the access, no matter how far outside.
    Bounds = 4,
    /// A check that the program was compiled with, such as one of UndefinedBehaviorSanitizer in
    /// trap mode.
    Trap = 5,
    /// An assertion of the program.
    Assertion = 6,
    /// Signed arithmetic that overflows.
    Overflow = 7,
    /// A log statement of the program.
    Log = 8,
    /// Red zones around the local variables of a function.
    Frame = 9,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Kind; 10] = [
        Kind::Read,
        Kind::Write,
        Kind::Copy,
        Kind::Call,
        Kind::Bounds,
        Kind::Trap,
        Kind::Assertion,
        Kind::Overflow,
        Kind::Log,
        Kind::Frame,
    ];

    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Copy => "copy",
            Kind::Call => "call",
            Kind::Bounds => "bounds",
            Kind::Trap => "trap",
            Kind::Assertion => "assertion",
            Kind::Overflow => "overflow",
            Kind::Log => "log",
            Kind::Frame => "frame",
        }
    }
}

/// One check.
#[derive(Clone, Debug, PartialEq)]
pub struct Atom {
    /// The kind of check.
    pub kind: Kind,
    /// The source location.
    pub place: DebugLocation,
    /// The symbol of the function of the program that contains the check.
    pub symbol: String,
    /// The number of enclosing loops.
    pub depth: u32,
    /// The callee, or the number of bytes accessed.
    pub detail: String,
}

/// The change to the line of an atom.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// A check that is a call: `@__asan_load4(` becomes
    /// `@everett_hard_load4(i32 SITE, `, or is dropped.
    Check,
    /// A copy or fill: without its check the operation itself remains.
    Copy,
    /// A call of the C library, which has a checked form.
    Call,
    /// A branch to a block that ends the program: the value of the condition that does not branch
    /// there, and the line of the call that ends the program, if that call can name this check.
    Guard { passes: bool, stop: Option<usize> },
    /// A call whose result is unused, so that it can be removed.
    Log,
    /// The head of a function.
    Frame,
}

/// A function of a module: its lines, including the head and the closing brace.
pub struct Function<'t> {
    /// The lines.
    pub lines: Vec<&'t str>,
    /// The symbol.
    pub symbol: &'t str,
    /// Whether the function has atoms. In other functions, bounds checks are disabled.
    pub is_checked: bool,
}

/// A piece of a module.
pub enum Part<'t> {
    /// A line outside functions.
    Line(&'t str),
    /// A function.
    Function(Function<'t>),
}

/// Information about a module that is not in its text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extra {
    /// Functions of the program that write logs.
    pub logs: BTreeSet<String>,
    /// Functions whose frames can get red zones.
    pub frames: BTreeSet<String>,
    /// Functions of the program that have the name of one of [`CALLS`].
    pub own: BTreeSet<String>,
}

/// Functions of the C library that have a checked form: name, result, parameters.
pub const CALLS: [(&str, &str, &str); 40] = [
    ("strlen", "i64", "ptr"),
    ("strcpy", "ptr", "ptr, ptr"),
    ("stpcpy", "ptr", "ptr, ptr"),
    ("strcat", "ptr", "ptr, ptr"),
    ("strncpy", "ptr", "ptr, ptr, i64"),
    ("strncat", "ptr", "ptr, ptr, i64"),
    ("strlcpy", "i64", "ptr, ptr, i64"),
    ("strdup", "ptr", "ptr"),
    ("memcmp", "i32", "ptr, ptr, i64"),
    ("bcmp", "i32", "ptr, ptr, i64"),
    ("wcscpy", "ptr", "ptr, ptr"),
    ("puts", "i32", "ptr"),
    ("fputs", "i32", "ptr, ptr"),
    ("read", "i64", "i32, ptr, i64"),
    ("pread", "i64", "i32, ptr, i64, i64"),
    ("readv", "i64", "i32, ptr, i32"),
    ("readlink", "i64", "ptr, ptr, i64"),
    ("recv", "i64", "i32, ptr, i64, i32"),
    ("recvmsg", "i64", "i32, ptr, i32"),
    ("recvfrom", "i64", "i32, ptr, i64, i32, ptr, ptr"),
    ("fread", "i64", "ptr, i64, i64, ptr"),
    ("fgets", "ptr", "ptr, i32, ptr"),
    ("gets", "ptr", "ptr"),
    ("getcwd", "ptr", "ptr, i64"),
    ("realpath", "ptr", "ptr, ptr"),
    ("write", "i64", "i32, ptr, i64"),
    ("writev", "i64", "i32, ptr, i32"),
    ("send", "i64", "i32, ptr, i64, i32"),
    ("sendto", "i64", "i32, ptr, i64, i32, ptr, i32"),
    ("sendmsg", "i64", "i32, ptr, i32"),
    ("fwrite", "i64", "ptr, i64, i64, ptr"),
    ("vsprintf", "i32", "ptr, ptr, ptr"),
    ("sprintf", "i32", "ptr, ptr, ..."),
    ("vsnprintf", "i32", "ptr, i64, ptr, ptr"),
    ("snprintf", "i32", "ptr, i64, ptr, ..."),
    ("scanf", "i32", "ptr, ..."),
    ("sscanf", "i32", "ptr, ptr, ..."),
    ("vsscanf", "i32", "ptr, ptr, ptr"),
    ("fscanf", "i32", "ptr, ptr, ..."),
    ("vfscanf", "i32", "ptr, ptr, ptr"),
];

/// The prefix of Everett's checks of arithmetic before they have a site.
pub const ARITHMETIC: &str = "everett_atom_";
/// The name of the program's own traps before they have a site.
pub const TRAPPED: &str = "everett_hard_trapped";

/// Splits a module into its parts.
pub fn parts(module: &str) -> Vec<Part<'_>> {
    let checked = checked_groups(module);
    let mut parts = Vec::new();
    let mut lines = module.lines();
    while let Some(line) = lines.next() {
        let head = text::head(line).filter(|_| line.starts_with("define "));
        let Some(head) = head else {
            parts.push(Part::Line(line));
            continue;
        };
        let mut all = vec![line];
        for line in lines.by_ref() {
            all.push(line);
            if line == "}" {
                break;
            }
        }
        let behind = &line[head.parameters.1..];
        let is_checked = behind.contains(" sanitize_address")
            || behind.split(' ').any(|word| checked.contains(word));
        parts.push(Part::Function(Function {
            lines: all,
            symbol: head.name,
            is_checked,
        }));
    }
    parts
}

/// Returns the functions of the program that have the name of one of [`CALLS`].
pub fn own_calls(module: &str) -> BTreeSet<String> {
    let heads = module.lines().filter(|line| line.starts_with("define "));
    let names = heads.filter_map(text::head).map(|head| head.name);
    names
        .filter(|name| CALLS.iter().any(|(call, _, _)| call == name))
        .map(str::to_owned)
        .collect()
}

/// Returns whether a call prints a string literal: that is never wrong, and there are many.
fn prints_literal(callee: &str, arguments: &str) -> bool {
    let first = arguments.split(',').next().unwrap_or_default();
    let name = first.rsplit(' ').next().unwrap_or_default();
    let is_literal = name.starts_with("@.str") || name.starts_with("@str.");
    matches!(callee, "puts" | "fputs") && is_literal
}

/// Returns the attribute groups of functions that have checks.
fn checked_groups(module: &str) -> BTreeSet<&str> {
    let groups = module
        .lines()
        .filter(|line| line.starts_with("attributes #"));
    groups
        .filter(|line| line.contains(" sanitize_address"))
        .filter_map(|line| line.split(' ').nth(1))
        .collect()
}

/// Returns all atoms of a module, in the order of its text.
pub fn atoms(module: &str, extra: &Extra) -> Vec<Atom> {
    let debug = Debug::read(module);
    let mut atoms = Vec::new();
    for part in parts(module) {
        if let Part::Function(function) = part
            && function.is_checked
        {
            let depths = function.depths();
            for (line, kind, mark) in function.marks(extra) {
                let text = function.lines[line];
                atoms.push(Atom {
                    kind,
                    place: function.place(line, &mark, &debug),
                    symbol: function.symbol.to_owned(),
                    depth: depths[line],
                    detail: detail(text, kind),
                });
            }
        }
    }
    atoms
}

fn detail(line: &str, kind: Kind) -> String {
    let callee = text::call(line).map(|call| call.callee).unwrap_or_default();
    match kind {
        Kind::Read => callee.trim_start_matches("__asan_load").to_owned(),
        Kind::Write => callee.trim_start_matches("__asan_store").to_owned(),
        Kind::Copy => callee.trim_start_matches("__asan_").to_owned(),
        Kind::Overflow => callee.trim_start_matches(ARITHMETIC).to_owned(),
        Kind::Call | Kind::Log => callee.to_owned(),
        Kind::Bounds | Kind::Trap | Kind::Assertion | Kind::Frame => String::new(),
    }
}

/// A block that ends the program.
#[derive(Copy, Clone)]
struct Failure {
    kind: Kind,
    /// The line of the call that ends the program.
    line: usize,
}

impl<'t> Function<'t> {
    /// Returns the lines with atoms, and the change to each.
    pub fn marks(&self, extra: &Extra) -> Vec<(usize, Kind, Mark)> {
        let failures = self.failures();
        let mut entries: HashMap<&str, usize> = HashMap::new();
        for branch in self.lines.iter().filter_map(|line| text::branch(line)) {
            for target in branch.targets {
                *entries.entry(target).or_default() += 1;
            }
        }
        let mut marks = Vec::new();
        if extra.frames.contains(self.symbol) {
            marks.push((0, Kind::Frame, Mark::Frame));
        }
        for (at, line) in self.lines.iter().enumerate().skip(1) {
            if let Some((kind, mark)) = self.call_mark(line, extra) {
                marks.push((at, kind, mark));
            } else if let Some(branch) = text::branch(line)
                && let [first, second] = branch.targets.map(|target| failures.get(target))
                && let (Some(failure), passes) = match (first, second) {
                    (Some(_), Some(_)) | (None, None) => (None, false),
                    (Some(failure), None) => (Some(failure), false),
                    (None, Some(failure)) => (Some(failure), true),
                }
            {
                let target = branch.targets[usize::from(passes)];
                let is_only = entries.get(target) == Some(&1) && failure.kind != Kind::Assertion;
                let stop = is_only.then_some(failure.line);
                marks.push((at, failure.kind, Mark::Guard { passes, stop }));
            }
        }
        marks
    }

    fn call_mark(&self, line: &str, extra: &Extra) -> Option<(Kind, Mark)> {
        let call = text::call(line)?;
        let own = call.callee.strip_prefix("__asan_");
        if let Some(own) = own {
            return match own {
                _ if own.starts_with("load") => Some((Kind::Read, Mark::Check)),
                _ if own.starts_with("store") => Some((Kind::Write, Mark::Check)),
                "memcpy" | "memmove" | "memset" => Some((Kind::Copy, Mark::Copy)),
                _ => None,
            };
        }
        if call.callee.starts_with(ARITHMETIC) {
            return Some((Kind::Overflow, Mark::Check));
        }
        if extra.logs.contains(call.callee) && self.is_unused(call.result) {
            return Some((Kind::Log, Mark::Log));
        }
        let is_checked = CALLS.iter().any(|(name, _, _)| *name == call.callee)
            && !extra.own.contains(call.callee)
            && !prints_literal(call.callee, &line[call.open..]);
        is_checked.then_some((Kind::Call, Mark::Call))
    }

    fn is_unused(&self, result: Option<&str>) -> bool {
        let Some(result) = result else { return true };
        let mentions = self
            .lines
            .iter()
            .filter(|line| text::mentions(line, result));
        mentions.count() == 1
    }

    /// Returns the blocks that end the program because of a check, by their labels.
    fn failures(&self) -> HashMap<&'t str, Failure> {
        let mut failures = HashMap::new();
        let mut block = None;
        let mut failure = None;
        for (at, line) in self.lines.iter().enumerate().skip(1) {
            if let Some(label) = text::label(line) {
                block = Some(label);
                failure = None;
            } else if let Some(call) = text::call(line) {
                let kind = match call.callee {
                    "llvm.ubsantrap" if line.contains("!nosanitize") => Some(Kind::Bounds),
                    TRAPPED => Some(Kind::Trap),
                    "__assert_fail" => Some(Kind::Assertion),
                    _ => None,
                };
                failure = kind.map(|kind| Failure { kind, line: at }).or(failure);
            } else if line.starts_with("  unreachable")
                && let (Some(block), Some(failure)) = (block, failure)
            {
                failures.insert(block, failure);
            }
        }
        failures
    }

    fn place(&self, line: usize, mark: &Mark, debug: &Debug) -> DebugLocation {
        let own = text::metadata(self.lines[line], "!dbg");
        let found = match mark {
            Mark::Frame => own.and_then(|number| debug.definition(number)),
            // The condition of a bounds check has no source location; the call that ends the
            // program has one.
            Mark::Guard {
                stop: Some(stop), ..
            } => text::metadata(self.lines[*stop], "!dbg").and_then(|number| debug.place(number)),
            _ => own.and_then(|number| debug.place(number)),
        };
        let whole =
            || text::metadata(self.lines[0], "!dbg").and_then(|number| debug.definition(number));
        found.or_else(whole).unwrap_or_default()
    }

    /// Returns the number of loops around each line.
    fn depths(&self) -> Vec<u32> {
        let mut blocks = vec![("", Vec::new())];
        let mut block_of = vec![0; self.lines.len()];
        for (at, line) in self.lines.iter().enumerate().skip(1) {
            match text::label(line) {
                Some(label) if at == 1 => blocks[0].0 = label,
                Some(label) => blocks.push((label, Vec::new())),
                None => {
                    let (_, targets) = blocks.last_mut().expect("there is an entry");
                    targets.extend(text::targets(line));
                }
            }
            block_of[at] = blocks.len() - 1;
        }
        let numbers: HashMap<&str, usize> = blocks
            .iter()
            .enumerate()
            .map(|(at, (label, _))| (*label, at))
            .collect();
        let successors: Vec<Vec<usize>> = blocks
            .iter()
            .map(|(_, targets)| {
                targets
                    .iter()
                    .filter_map(|to| numbers.get(to).copied())
                    .collect()
            })
            .collect();
        let depths = loops::depths(&successors);
        block_of.into_iter().map(|block| depths[block]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULE: &str = "\
define i32 @f(ptr %0) #0 !dbg !2 {
  %2 = ptrtoint ptr %0 to i64, !dbg !4
  call void @__asan_load4(i64 %2), !dbg !4
  br label %3
3:
  %4 = call i64 @strlen(ptr %0), !dbg !4
  call void @note(i32 1), !dbg !4
  %5 = call i32 @note(i32 2), !dbg !4
  %6 = icmp eq i32 %5, 0
  br i1 %6, label %7, label %3, !dbg !4
7:
  br i1 %6, label %8, label %9
8:
  call void @llvm.ubsantrap(i8 3), !dbg !4, !nosanitize !1
  unreachable
9:
  ret i32 0
}
define i32 @library(ptr %0) {
  call void @__asan_load4(i64 1)
  ret i32 0
}
attributes #0 = { nounwind sanitize_address }
!1 = !{}
!2 = distinct !DISubprogram(name: \"f\", scope: !3, file: !3, line: 3)
!3 = !DIFile(filename: \"a.c\", directory: \"/src\")
!4 = !DILocation(line: 7, column: 9, scope: !2)
";

    #[test]
    fn atoms_have_kinds_places_and_depths() {
        let extra = Extra {
            logs: ["note".to_owned()].into(),
            frames: ["f".to_owned()].into(),
            own: own_calls(MODULE),
        };
        let found = atoms(MODULE, &extra);
        let shown: Vec<(Kind, u32, u32)> = found
            .iter()
            .map(|atom| (atom.kind, atom.place.line, atom.depth))
            .collect();
        assert_eq!(
            shown,
            [
                (Kind::Frame, 3, 0),
                (Kind::Read, 7, 0),
                (Kind::Call, 7, 1),
                (Kind::Log, 7, 1),
                (Kind::Bounds, 7, 0),
            ]
        );
        assert_eq!(found[1].detail, "4");
        assert_eq!(found[2].place.file, "/src/a.c");
    }

    /// A program may define a function with the name of one of the C library: with other parameters,
    /// and to do something else.
    #[test]
    fn functions_of_the_program_are_not_those_of_the_library() {
        let own = "define internal i64 @strlen(ptr %0) {\n  ret i64 0\n}\n";
        let module = format!("{own}{MODULE}");
        let extra = Extra {
            own: own_calls(&module),
            ..Extra::default()
        };
        assert_eq!(extra.own, ["strlen".to_owned()].into());
        let found = atoms(&module, &extra);
        assert!(
            found.iter().all(|atom| atom.kind != Kind::Call),
            "{found:?}"
        );
        assert!(own_calls(MODULE).is_empty());
    }

    #[test]
    fn literals_are_printed_without_a_check() {
        let literal = "(ptr noundef nonnull dereferenceable(1) @.str.5)";
        assert!(prints_literal("puts", literal));
        assert!(prints_literal(
            "fputs",
            "(ptr nonnull @str.3, ptr noundef %7)"
        ));
        assert!(!prints_literal("puts", "(ptr noundef %3)"));
        assert!(!prints_literal("fputs", "(ptr @line, ptr @.str.3)"));
        assert!(!prints_literal("strlen", literal));
    }
}
