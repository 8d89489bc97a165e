//! Writes a module with some of its atoms: checks that are kept get their site, others are removed.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::Kind;
use super::atoms::{Atom, CALLS, Extra, Function, Mark, Part, TRAPPED, parts};
use super::text;
use super::versions::{self, Version};

/// The treatment of the atoms.
#[derive(Copy, Clone)]
pub enum Choice<'c> {
    /// Atoms with `true` are kept.
    Kept(&'c [bool]),
    /// No atom is kept; each counts its executions, in a file.
    Counted(&'c str),
    /// Atoms with `true` are kept; the others are in a second version of their function, for some
    /// requests.
    Versions(&'c [bool], &'c Dynamic),
}

/// The parameters by which a program decides between versions of its functions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dynamic {
    /// Functions that each handle a request.
    pub entries: BTreeSet<String>,
    /// The allowed overhead, in thousandths.
    pub budget: u32,
    /// The overhead of a request with all checks, in thousandths.
    pub slowdown: u32,
}

/// Returns the module with the chosen atoms.
pub fn rewrite<'c>(
    module: &'c str,
    extra: &Extra,
    atoms: &'c [Atom],
    choice: Choice<'c>,
) -> String {
    let mut writer = Writer::new(atoms, choice);
    writer.text.reserve(module.len() + module.len() / 8);
    let parts = parts(module);
    let two = writer.with_two_versions(module, &parts, extra);
    writer.instrumented = instrumented(&parts);
    for part in &parts {
        match part {
            Part::Line(line) => writer.line(line),
            Part::Function(function) if function.is_checked => {
                writer.checked(function, &function.marks(extra), &two);
            }
            Part::Function(function) => writer.unchecked(function),
        }
    }
    debug_assert_eq!(writer.next, atoms.len());
    writer.tables();
    writer.text
}

/// Returns the functions that [`rewrite`] writes in two versions.
pub fn doubled(
    module: &str,
    extra: &Extra,
    atoms: &[Atom],
    choice: Choice<'_>,
) -> BTreeSet<String> {
    let writer = Writer::new(atoms, choice);
    let two = writer.with_two_versions(module, &parts(module), extra);
    two.into_iter().map(str::to_owned).collect()
}

/// The call that the instrumentation writes before calls that do not return.
const LEAVES: &str = "__asan_handle_no_return";

/// Functions of the C library that end the process, or jump by the runtime's own version.
const KEEPING_FRAMES: [&str; 9] = [
    "_Exit",
    "__assert_fail",
    "_exit",
    "_longjmp",
    "abort",
    "exit",
    "longjmp",
    "quick_exit",
    "siglongjmp",
];

/// Returns the instrumented functions that leave the stack by calls only.
fn instrumented<'t>(parts: &[Part<'t>]) -> BTreeSet<&'t str> {
    let functions = parts.iter().filter_map(|part| match part {
        Part::Function(function) => Some(function),
        Part::Line(_) => None,
    });
    functions
        .filter(|function| {
            function.is_checked && !function.lines.iter().any(|line| line.contains(" asm "))
        })
        .map(|function| function.symbol)
        .collect()
}

/// A line of a function with an atom.
type Marked = (usize, Kind, Mark);

struct Writer<'c> {
    text: String,
    atoms: &'c [Atom],
    choice: Choice<'c>,
    /// The atoms that have a site.
    sites: Vec<usize>,
    /// The site of each atom.
    site_of: Vec<Option<usize>>,
    /// The next atom.
    next: usize,
    /// Functions that clear the shadow of the stack themselves before they leave it.
    instrumented: BTreeSet<&'c str>,
}

/// The decisions about the checks of a function.
struct Decided {
    /// The lines that change, with their new texts; empty for none.
    changed: Vec<Option<String>>,
    /// Atoms, with the lines at which they are counted.
    atoms: Vec<(usize, usize)>,
    /// The atom that is counted at the entry.
    counted_entry: Option<usize>,
}

impl<'c> Writer<'c> {
    fn new(atoms: &'c [Atom], choice: Choice<'c>) -> Writer<'c> {
        Writer {
            text: String::new(),
            atoms,
            choice,
            sites: Vec::new(),
            site_of: vec![None; atoms.len()],
            next: 0,
            instrumented: BTreeSet::new(),
        }
    }

    fn push(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn line(&mut self, line: &str) {
        if line.starts_with("attributes #") {
            // Functions whose frames get red zones receive the attribute again individually.
            self.push(&line.replace(" sanitize_address", ""));
        } else if line.contains("!\"nosanitize_address\"") {
            // The name says that no further instrumentation is needed; frames are instrumented at
            // the link.
            self.push(&line.replace("nosanitize_address", "everett_instrumented"));
        } else {
            self.push(line);
        }
    }

    /// Returns whether an atom is kept in a version of its function.
    fn is_kept(&self, atom: usize, version: Option<Version>) -> bool {
        match self.choice {
            Choice::Kept(kept) => kept.get(atom).copied().unwrap_or(false),
            Choice::Counted(_) => false,
            Choice::Versions(kept, _) => {
                version == Some(Version::Checked) || kept.get(atom).copied().unwrap_or(false)
            }
        }
    }

    /// Returns the functions with two versions: entry points, and functions with a check that is
    /// not always kept.
    fn with_two_versions<'t>(
        &self,
        module: &str,
        parts: &[Part<'t>],
        extra: &Extra,
    ) -> BTreeSet<&'t str> {
        let mut two = BTreeSet::new();
        let Choice::Versions(_, dynamic) = self.choice else {
            return two;
        };
        let mut first = 0;
        for part in parts {
            let Part::Function(function) = part else {
                continue;
            };
            if !function.is_checked {
                continue;
            }
            let count = function.marks(extra).len();
            let differs = (first..first + count).any(|atom| !self.is_kept(atom, None));
            let is_entry = dynamic.entries.contains(function.symbol);
            if (differs || is_entry) && versions::can_have_two(module, function) {
                two.insert(function.symbol);
            }
            first += count;
        }
        two
    }

    /// Writes a function with atoms, in one or two versions.
    fn checked(&mut self, function: &Function<'_>, marks: &[Marked], two: &BTreeSet<&str>) {
        let Choice::Versions(_, dynamic) = self.choice else {
            self.function(function, marks, None);
            self.next += marks.len();
            return;
        };
        if !two.contains(function.symbol) {
            self.function(function, marks, None);
            self.next += marks.len();
            return;
        }
        for version in [Version::Checked, Version::Plain] {
            let start = self.text.len();
            self.function(function, marks, Some(version));
            let written = self.text.split_off(start);
            for (at, line) in written.lines().enumerate() {
                let new = match at {
                    0 => Some(versions::head_of(line, function.symbol, version)),
                    _ => versions::line_of(line, version, two, &dynamic.entries),
                };
                if let Some(new) = new {
                    self.push(&new);
                }
            }
        }
        let is_entry = dynamic.entries.contains(function.symbol);
        let number = self.next;
        let dispatcher = versions::dispatcher(function.lines[0], function.symbol, is_entry, number);
        self.text.push_str(&dispatcher);
        self.next += marks.len();
    }

    /// Returns the site of an atom; the versions of a function share it.
    fn site(&mut self, atom: usize) -> usize {
        *self.site_of[atom].get_or_insert_with(|| {
            self.sites.push(atom);
            self.sites.len() - 1
        })
    }

    /// Writes the counter of an atom if atoms are counted.
    fn count(&mut self, atom: usize, line: &str) {
        if matches!(self.choice, Choice::Counted(_)) {
            let debug = text::debug_suffix(line);
            let _ = writeln!(
                self.text,
                "  call void @everett_hard_count(i32 {atom}){debug}"
            );
        }
    }

    fn function(&mut self, function: &Function<'_>, marks: &[Marked], version: Option<Version>) {
        // A guard changes a line of another block, so all decisions come before the first line is
        // written.
        let mut decided = self.decide(function, marks, version);
        if decided.changed[0].is_none() {
            decided.changed[0] = Some(head(function.lines[0], false));
        }
        self.keep_frames(function, &mut decided.changed);
        self.write(function, decided);
    }

    /// Decides which checks of a function stay, and changes their lines.
    fn decide(
        &mut self,
        function: &Function<'_>,
        marks: &[Marked],
        version: Option<Version>,
    ) -> Decided {
        let mut changed: Vec<Option<String>> = vec![None; function.lines.len()];
        let (mut atoms, mut counted_entry) = (Vec::new(), None);
        for (atom, (at, kind, mark)) in (self.next..).zip(marks) {
            let is_kept = self.is_kept(atom, version);
            let site = is_kept.then(|| self.site(atom));
            atoms.push((*at, atom));
            let line = function.lines[*at];
            changed[*at] = Some(match mark {
                Mark::Frame => {
                    counted_entry = Some(atom);
                    head(line, site.is_some())
                }
                Mark::Check => match site {
                    Some(site) => checked(line, site),
                    None => String::new(),
                },
                Mark::Copy => match site {
                    Some(site) => checked(line, site),
                    None => line.replacen("@__asan_", "@everett_plain_", 1),
                },
                Mark::Call => match site {
                    Some(site) => checked(line, site),
                    None => line.to_owned(),
                },
                Mark::Log => match site {
                    Some(_) => line.to_owned(),
                    None => left_out(line),
                },
                Mark::Guard { passes, stop } => match site {
                    Some(site) => {
                        if let Some(stop) = stop {
                            changed[*stop] = Some(stopping(function.lines[*stop], site));
                        }
                        line.to_owned()
                    }
                    // A profile includes the program's own assertions.
                    None if matches!(self.choice, Choice::Counted(_)) && *kind != Kind::Bounds => {
                        line.to_owned()
                    }
                    None => passing(line, *passes),
                },
            });
        }
        Decided {
            changed,
            atoms,
            counted_entry,
        }
    }

    /// Lets jumps keep the red zones of frames that go on after them.
    fn keep_frames(&self, function: &Function<'_>, changed: &mut [Option<String>]) {
        for (at, line) in function.lines.iter().enumerate() {
            if text::call(line).is_some_and(|call| call.callee == LEAVES)
                && let Some(next) = self.keeping_frames(&function.lines, at + 1)
            {
                changed[at] = Some(String::new());
                // The instrumentation of frames at the link would add it again.
                let call = changed[next].take();
                let call = call.unwrap_or_else(|| function.lines[next].to_owned());
                changed[next] = Some(format!("{call}, !nosanitize !{{}}"));
            }
        }
    }

    /// Writes the lines of a function, and counts its atoms in a profile.
    fn write(&mut self, function: &Function<'_>, decided: Decided) {
        let mut decisions = decided.atoms.into_iter().peekable();
        let entry = usize::from(
            function
                .lines
                .get(1)
                .is_some_and(|line| text::label(line).is_some()),
        );
        for (at, line) in function.lines.iter().enumerate() {
            while let Some((_, atom)) = decisions.next_if(|(line, _)| *line == at) {
                if at > 0 {
                    self.count(atom, line);
                }
            }
            match &decided.changed[at] {
                Some(new) if new.is_empty() => {}
                Some(new) => self.push(new),
                None => self.push(line),
            }
            if at == entry
                && let Some(atom) = decided.counted_entry
            {
                let debug = first_place(function);
                self.count(atom, &debug);
            }
        }
    }

    /// Returns the next call if it leaves no frame of the stack, or clears their shadow itself, up to
    /// where it goes. The frames of functions that go on after a jump keep their red zones.
    fn keeping_frames(&self, lines: &[&str], from: usize) -> Option<usize> {
        let next = (from..lines.len()).find(|at| !lines[*at].contains("#dbg_"))?;
        let callee = text::call(lines[next])?.callee;
        (KEEPING_FRAMES.contains(&callee) || self.instrumented.contains(callee)).then_some(next)
    }

    /// Writes a function without atoms: bounds checks in it are disabled.
    fn unchecked(&mut self, function: &Function<'_>) {
        let marks = function.marks(&Extra::default());
        for (at, line) in function.lines.iter().enumerate() {
            let guard = marks.iter().find_map(|(marked, kind, mark)| match mark {
                Mark::Guard { passes, .. } if *marked == at && *kind == Kind::Bounds => {
                    Some(*passes)
                }
                _ => None,
            });
            match guard {
                Some(passes) => self.push(&passing(line, passes)),
                None => self.push(line),
            }
        }
    }

    /// Writes the table of sites, and the declarations of the runtime.
    fn tables(&mut self) {
        let mut texts: Vec<&str> = Vec::new();
        let atoms = self.atoms;
        for site in &self.sites {
            let place = &atoms[*site].place;
            texts.extend([place.file.as_str(), place.function.as_str()]);
        }
        texts.sort_unstable();
        texts.dedup();
        for (number, text) in texts.iter().enumerate() {
            let constant = text::constant(text);
            let _ = writeln!(
                self.text,
                "@everett_hard_text.{number} = private unnamed_addr constant {constant}"
            );
        }
        let number = |text: &str| texts.binary_search(&text).unwrap_or_default();
        let rows: Vec<String> = self
            .sites
            .iter()
            .map(|site| {
                let atom = &atoms[*site];
                format!(
                    "{{ ptr, ptr, i32, i32 }} {{ ptr @everett_hard_text.{}, ptr @everett_hard_text.{}, \
                     i32 {}, i32 {} }}",
                    number(&atom.place.file),
                    number(&atom.place.function),
                    atom.place.line,
                    atom.kind as u32
                )
            })
            .collect();
        let _ = writeln!(
            self.text,
            "@everett_hard_sites = constant [{} x {{ ptr, ptr, i32, i32 }}] [{}]",
            rows.len(),
            rows.join(", ")
        );
        if let Choice::Counted(path) = self.choice {
            let size = counters_size(self.atoms.len());
            let path = text::constant(path);
            let _ = writeln!(self.text, "@everett_hard_profile = constant {path}");
            let _ = writeln!(
                self.text,
                "@everett_hard_profile_size = constant i64 {size}"
            );
        }
        if let Choice::Versions(_, dynamic) = self.choice {
            self.text.push_str(versions::DECLARATIONS);
            for (name, value) in [("budget", dynamic.budget), ("slowdown", dynamic.slowdown)] {
                let _ = writeln!(self.text, "@everett_hard_{name} = constant i32 {value}");
            }
        }
        self.text.push_str(&declarations());
    }
}

/// Returns the size of the file of counters.
pub fn counters_size(atoms: usize) -> u64 {
    (atoms.max(1) as u64 * 8).next_multiple_of(4096)
}

/// Returns the head of a function, with or without red zones in its frame.
fn head(line: &str, is_kept: bool) -> String {
    let plain = line.replacen(" sanitize_address", "", 1);
    let Some(head) = text::head(&plain).filter(|_| is_kept) else {
        return plain;
    };
    let close = head.parameters.1;
    let mut at = close + 1;
    for word in [" unnamed_addr", " local_unnamed_addr"] {
        if plain[at..].starts_with(word) {
            at += word.len();
        }
    }
    format!("{} sanitize_address{}", &plain[..at], &plain[at..])
}

/// Returns the call of a check, with its site as the first argument.
fn checked(line: &str, site: usize) -> String {
    let Some(call) = text::call(line) else {
        return line.to_owned();
    };
    let own = ["__asan_", super::atoms::ARITHMETIC];
    let name = own
        .iter()
        .find_map(|prefix| call.callee.strip_prefix(prefix))
        .unwrap_or(call.callee);
    // A call of a variadic function contains the type of the function.
    let mut before = line[..call.at].to_owned();
    if let Some(at) = before
        .strip_suffix(", ...) ")
        .and_then(|_| before.rfind('('))
    {
        before.insert_str(at + 1, "i32, ");
    }
    let arguments = &line[call.open + 1..];
    let comma = if arguments.starts_with(')') { "" } else { ", " };
    format!("{before}@everett_hard_{name}(i32 {site}{comma}{arguments}")
}

/// Returns the replacement of a removed log statement, whose result is unused.
fn left_out(line: &str) -> String {
    let Some(result) = text::call(line).and_then(|call| call.result) else {
        return String::new();
    };
    // LLVM numbers values consecutively, so the number must stay in use.
    format!("  {result} = freeze i32 0")
}

/// Returns a branch that always passes its check.
fn passing(line: &str, passes: bool) -> String {
    match text::branch(line) {
        Some(branch) => {
            let (start, end) = branch.condition;
            format!("{}{passes}{}", &line[..start], &line[end..])
        }
        None => line.to_owned(),
    }
}

/// Returns the call that ends the program, with the site of the check.
fn stopping(line: &str, site: usize) -> String {
    let debug = text::debug_suffix(line);
    format!("  call void @everett_hard_stop(i32 {site}){debug}")
}

/// Returns the first line that has a debug location; the counter code at the entry of the function
/// takes that location.
fn first_place(function: &Function<'_>) -> String {
    let found = function.lines[1..].iter().find(|line| {
        line.starts_with("  ") && !line.contains("#dbg_") && text::metadata(line, "!dbg").is_some()
    });
    found.map(|line| line.to_string()).unwrap_or_default()
}

/// Returns the declarations of the runtime for rewritten modules.
fn declarations() -> String {
    let mut text = String::new();
    for access in ["load", "store"] {
        for size in ["1", "2", "4", "8", "16"] {
            let _ = writeln!(text, "declare void @everett_hard_{access}{size}(i32, i64)");
        }
        let _ = writeln!(text, "declare void @everett_hard_{access}N(i32, i64, i64)");
    }
    for operation in ["add", "sub", "mul"] {
        for bits in [32, 64] {
            let _ = writeln!(
                text,
                "declare void @everett_hard_{operation}{bits}(i32, i{bits}, i{bits})"
            );
        }
    }
    for (name, types) in [
        ("memcpy", "ptr, ptr, i64"),
        ("memmove", "ptr, ptr, i64"),
        ("memset", "ptr, i32, i64"),
    ] {
        let _ = writeln!(text, "declare ptr @everett_hard_{name}(i32, {types})");
        let _ = writeln!(text, "declare ptr @everett_plain_{name}({types})");
    }
    for (name, result, types) in CALLS {
        let _ = writeln!(text, "declare {result} @everett_hard_{name}(i32, {types})");
    }
    text.push_str("declare void @everett_hard_count(i32)\n");
    text.push_str("declare void @everett_hard_stop(i32) noreturn cold\n");
    text
}

/// Prepares the text of a program for instrumentation: its own traps get a name, and signed
/// arithmetic in unoptimised code gets checks. (Optimisers compute values that are never used, and
/// those may overflow.)
pub fn prepare(module: &str) -> String {
    let unoptimised: Vec<&str> = module
        .lines()
        .filter(|line| line.starts_with("attributes #") && line.contains(" optnone"))
        .filter_map(|line| line.split(' ').nth(1))
        .collect();
    let mut text = String::with_capacity(module.len());
    let (mut is_checked, mut is_unoptimised) = (false, false);
    let mut used = Vec::new();
    for line in module.lines() {
        if let Some(head) = text::head(line) {
            let behind = &line[head.parameters.1..];
            is_checked = behind.contains(" sanitize_address");
            is_unoptimised = behind.split(' ').any(|word| unoptimised.contains(&word));
        }
        if is_checked
            && is_unoptimised
            && let Some((name, check)) = arithmetic(line)
        {
            used.push(name);
            text.push_str(&check);
        }
        match is_checked.then(|| failed_check(line)).flatten() {
            Some(failed) => text.push_str(&failed),
            None => text.push_str(line),
        }
        text.push('\n');
    }
    used.sort_unstable();
    used.dedup();
    for name in used {
        let bits = &name[name.len() - 2..];
        let _ = writeln!(text, "declare void @{name}(i{bits}, i{bits})");
    }
    let _ = writeln!(text, "declare void @{TRAPPED}(i8) noreturn");
    text
}

/// Returns the call in which a check of the program's own build ends, with Everett's name: a trap, or
/// a function of the undefined behaviour sanitizer.
fn failed_check(line: &str) -> Option<String> {
    let call = text::call(line)?;
    if call.callee == "llvm.ubsantrap" {
        return Some(line.replacen("@llvm.ubsantrap(", &format!("@{TRAPPED}("), 1));
    }
    call.callee.strip_prefix("__ubsan_handle_")?;
    let close = text::close_of(line, call.open)?;
    let (before, behind) = (&line[..call.at], &line[close + 1..]);
    Some(format!("{before}@{TRAPPED}(i8 0){behind}"))
}

/// Returns the check before signed arithmetic, with its name.
fn arithmetic(line: &str) -> Option<(String, String)> {
    let (_, operation) = line.strip_prefix("  %")?.split_once(" = ")?;
    let (name, rest) = operation.split_once(" nsw i")?;
    if !["add", "sub", "mul"].contains(&name) {
        return None;
    }
    let (bits, operands) = rest.split_once(' ')?;
    if !["32", "64"].contains(&bits) {
        return None;
    }
    let operands = operands.split(", !").next()?;
    let (first, second) = operands.split_once(", ")?;
    let name = format!("{}{name}{bits}", super::atoms::ARITHMETIC);
    let debug = text::debug_suffix(line);
    let check = format!("  call void @{name}(i{bits} {first}, i{bits} {second}){debug}\n");
    Some((name, check))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hard::atoms::atoms;

    const MODULE: &str = "\
define i32 @f(ptr %0) unnamed_addr #0 !dbg !2 {
  %2 = ptrtoint ptr %0 to i64, !dbg !4
  call void @__asan_load4(i64 %2), !dbg !4
  %3 = call ptr @__asan_memcpy(ptr %0, ptr %0, i64 9), !dbg !4
  %4 = call i32 (ptr, ptr, ...) @sprintf(ptr %0, ptr %0, i32 1), !dbg !4
  br i1 %6, label %8, label %9
8:
  call void @llvm.ubsantrap(i8 3), !dbg !4, !nosanitize !1
  unreachable
9:
  ret i32 0
}
attributes #0 = { nounwind sanitize_address \"x\" }
!2 = distinct !DISubprogram(name: \"f\", scope: !3, file: !3, line: 3)
!3 = !DIFile(filename: \"a.c\", directory: \"/src\")
!4 = !DILocation(line: 7, column: 9, scope: !2)
";

    fn made(choice: Choice<'_>) -> Vec<String> {
        let extra = Extra {
            frames: ["f".to_owned()].into(),
            ..Extra::default()
        };
        let atoms = atoms(MODULE, &extra);
        assert_eq!(atoms.len(), 5);
        let text = rewrite(MODULE, &extra, &atoms, choice);
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn kept_atoms_get_sites() {
        let lines = made(Choice::Kept(&[true; 5]));
        for expected in [
            "define i32 @f(ptr %0) unnamed_addr sanitize_address #0 !dbg !2 {",
            "  call void @everett_hard_load4(i32 1, i64 %2), !dbg !4",
            "  %3 = call ptr @everett_hard_memcpy(i32 2, ptr %0, ptr %0, i64 9), !dbg !4",
            "  %4 = call i32 (i32, ptr, ptr, ...) @everett_hard_sprintf(i32 3, ptr %0, ptr %0, i32 1), !dbg !4",
            "  br i1 %6, label %8, label %9",
            "  call void @everett_hard_stop(i32 4), !dbg !4",
            "attributes #0 = { nounwind \"x\" }",
        ] {
            assert!(lines.iter().any(|line| line == expected), "{expected}");
        }
    }

    #[test]
    fn other_atoms_leave_nothing() {
        let lines = made(Choice::Kept(&[false; 5]));
        for expected in [
            "define i32 @f(ptr %0) unnamed_addr #0 !dbg !2 {",
            "  %3 = call ptr @everett_plain_memcpy(ptr %0, ptr %0, i64 9), !dbg !4",
            "  %4 = call i32 (ptr, ptr, ...) @sprintf(ptr %0, ptr %0, i32 1), !dbg !4",
            "  br i1 false, label %8, label %9",
        ] {
            assert!(lines.iter().any(|line| line == expected), "{expected}");
        }
        assert!(
            !lines
                .iter()
                .any(|line| line.contains("call void @") && line.contains("everett_hard"))
        );
    }

    #[test]
    fn counted_atoms_count() {
        let lines = made(Choice::Counted("/p"));
        let counts = lines
            .iter()
            .filter(|line| line.starts_with("  call void @everett_hard_count("));
        assert_eq!(counts.count(), 5);
        assert!(
            lines
                .iter()
                .any(|line| line == "@everett_hard_profile = constant [3 x i8] c\"/p\\00\"")
        );
    }

    #[test]
    fn arithmetic_is_checked_where_nothing_was_optimised() {
        let module = "\
define i32 @f(i32 %0) sanitize_address #0 {
  %2 = add nsw i32 %0, 7, !dbg !4
  ret i32 %2
}
define i32 @g(i32 %0) sanitize_address #1 {
  %2 = add nsw i32 %0, 7, !dbg !4
  ret i32 %2
}
attributes #0 = { noinline optnone }
attributes #1 = { noinline }
";
        let text = prepare(module);
        let check = "  call void @everett_atom_add32(i32 %0, i32 7), !dbg !4\n  %2 = add nsw";
        assert_eq!(text.matches(check).count(), 1, "{text}");
    }

    #[test]
    fn checks_of_the_build_get_a_name() {
        for (line, expected) in [
            (
                "  call void @llvm.ubsantrap(i8 3) #5, !dbg !4, !nosanitize !1",
                "  call void @everett_hard_trapped(i8 3) #5, !dbg !4, !nosanitize !1",
            ),
            (
                "  call void @__ubsan_handle_out_of_bounds_abort(ptr align 8 dereferenceable(32) @1, i64 %2) #5, !dbg !4",
                "  call void @everett_hard_trapped(i8 0) #5, !dbg !4",
            ),
        ] {
            assert_eq!(failed_check(line).as_deref(), Some(expected));
        }
        let declared = "declare void @__ubsan_handle_out_of_bounds_abort(ptr, i64)";
        assert_eq!(failed_check(declared), None);
        assert_eq!(failed_check("  call void @f(i8 3), !dbg !4"), None);
    }
}
