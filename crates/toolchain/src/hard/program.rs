//! Separates a program from its libraries, which are one module in `PROG.bc`. The definitions of
//! the libraries become declarations, and the hardened build is linked with the same machine code
//! of the libraries as `PROG`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use object::read::archive::ArchiveFile;
use object::{Object, ObjectSymbol};

use super::debug::Debug;
use super::text;
use crate::error::{IoContext, ToolchainError};

/// The source path of Everett's own functions in debug information.
const OWN_SOURCES: &str = "/everett/runtime";

/// The function that a program may define for the runtime to call.
const DECISION: &str = "everett_decide";

/// The names that libraries define, and the location of their sources.
pub struct Libraries {
    /// The names that the machine code of the libraries defines.
    pub names: BTreeSet<String>,
    /// The folder of the compiler package's libraries.
    pub sources: String,
}

impl Libraries {
    /// Reads the names that archives and objects define.
    pub fn read(files: &[PathBuf], sources: &Path) -> Result<Libraries, ToolchainError> {
        let mut names = BTreeSet::new();
        for path in files.iter().filter(|path| path.is_file()) {
            let bytes = fs::read(path).context("read", path)?;
            names.extend(defined(&bytes));
        }
        Ok(Libraries {
            names,
            sources: sources.display().to_string(),
        })
    }

    fn is_library_file(&self, file: &str) -> bool {
        file.starts_with(&self.sources) || file.starts_with(OWN_SOURCES)
    }

    /// Returns whether the code of a file gets checks. Templates of the C++ library are compiled
    /// into the program and are part of it; the standard library of Rust is not.
    fn is_checked_file(&self, file: &str) -> bool {
        let Some(inside) = file.strip_prefix(&self.sources) else {
            return !file.starts_with(OWN_SOURCES) && !file.starts_with("/rustc/");
        };
        inside.starts_with("/libcxx/")
    }
}

fn defined(bytes: &[u8]) -> Vec<String> {
    if let Ok(archive) = ArchiveFile::parse(bytes) {
        let symbols = archive.symbols().ok().flatten().into_iter().flatten();
        return symbols
            .flatten()
            .map(|symbol| String::from_utf8_lossy(symbol.name()).into_owned())
            .collect();
    }
    let Ok(file) = object::File::parse(bytes) else {
        return Vec::new();
    };
    file.symbols()
        .filter(|symbol| symbol.is_global() && !symbol.is_undefined())
        .filter_map(|symbol| symbol.name().ok().map(str::to_owned))
        .collect()
}

/// The origin of the definition of a name.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Origin {
    Program,
    Library,
}

/// A module without its libraries.
pub struct Separated {
    /// The text. Functions that get checks have the attribute `sanitize_address`.
    pub text: String,
    /// Number of functions that get checks.
    pub functions: usize,
}

/// Words for linkage and visibility, which declarations do not have.
const LINKAGE: [&str; 14] = [
    "internal",
    "private",
    "weak",
    "weak_odr",
    "linkonce",
    "linkonce_odr",
    "available_externally",
    "common",
    "external",
    "extern_weak",
    "hidden",
    "protected",
    "dso_local",
    "dso_preemptable",
];

/// Turns the definitions of libraries into declarations, and marks the functions that get checks.
pub fn separate(module: &str, libraries: &Libraries) -> Separated {
    let debug = Debug::read(module);
    let origins = origins(module, libraries, &debug);
    let mut text = String::with_capacity(module.len());
    let mut functions = 0;
    let mut skipping = false;
    for line in module.lines() {
        if skipping {
            skipping = line != "}";
            continue;
        }
        let new = if let Some(head) = text::head(line).filter(|_| line.starts_with("define ")) {
            let is_named = libraries.names.contains(head.name);
            let is_library = origins.get(head.name) == Some(&Origin::Library);
            if is_named && is_library {
                skipping = true;
                Some(declaration(line, &head))
            } else {
                let place =
                    text::metadata(line, "!dbg").and_then(|number| debug.definition(number));
                let checked = place.is_some_and(|place| libraries.is_checked_file(&place.file));
                functions += usize::from(checked);
                let is_seen = is_named || head.name == DECISION;
                Some(definition(line, &head, is_seen, checked && !is_library))
            }
        } else if line.starts_with('@') {
            variable(line, libraries, &origins)
        } else {
            None
        };
        text.push_str(new.as_deref().unwrap_or(line));
        text.push('\n');
    }
    Separated { text, functions }
}

/// Returns the origin of each function and variable.
fn origins(module: &str, libraries: &Libraries, debug: &Debug) -> BTreeMap<String, Origin> {
    let mut origins = BTreeMap::new();
    let mut aliases = Vec::new();
    for line in module.lines() {
        let name = match text::head(line) {
            Some(head) if line.starts_with("define ") => head.name,
            Some(_) => continue,
            None => match text::symbol(line, 0) {
                Some((name, _)) => name,
                None => continue,
            },
        };
        if let Some(target) = alias_target(line) {
            aliases.push((name, target));
            continue;
        }
        let place = text::metadata(line, "!dbg").and_then(|number| debug.definition(number));
        // A function without debug information belongs to the compiler's runtime. A variable
        // without it belongs to a library only if a library defines its name.
        let origin = match place {
            Some(place) if !libraries.is_library_file(&place.file) => Origin::Program,
            Some(_) => Origin::Library,
            None if libraries.names.contains(name) || line.starts_with("define ") => {
                Origin::Library
            }
            None => Origin::Program,
        };
        origins.insert(name.to_owned(), origin);
    }
    for (name, target) in aliases {
        let origin = origins.get(target).copied().unwrap_or(Origin::Library);
        origins.insert(name.to_owned(), origin);
    }
    origins
}

/// Returns the target of an alias.
fn alias_target(line: &str) -> Option<&str> {
    if !line.starts_with('@') || !line.contains(" alias ") {
        return None;
    }
    let at = line.rfind(" @")? + 1;
    text::symbol(line, at).map(|(name, _)| name)
}

/// Returns the declaration of a function that a library defines.
fn declaration(line: &str, head: &text::Head<'_>) -> String {
    let before = without_linkage(&line["define ".len()..head.at]);
    let (_, close) = head.parameters;
    let group = line[close..]
        .split(' ')
        .find(|word| word.len() > 1 && word.starts_with('#'));
    let group = group.map(|group| format!(" {group}")).unwrap_or_default();
    format!("declare {before}{}{group}", &line[head.at..=close])
}

/// Returns the words before a function's name, without those of its linkage.
pub fn without_linkage(words: &str) -> String {
    let kept = words.split_inclusive(' ');
    kept.filter(|word| !LINKAGE.contains(&word.trim_end()))
        .collect()
}

/// Returns the definition of a function of the program. A function that a library also defines
/// replaces the library's, so it must be externally visible.
fn definition(line: &str, head: &text::Head<'_>, is_seen: bool, checked: bool) -> String {
    let (_, close) = head.parameters;
    let (mut before, mut behind) = (line[..=close].to_owned(), &line[close + 1..]);
    if is_seen {
        before = before.replacen("define internal ", "define ", 1);
    }
    for word in [" unnamed_addr", " local_unnamed_addr"] {
        if let Some(rest) = behind.strip_prefix(word) {
            before.push_str(word);
            behind = rest;
        }
    }
    let mark = if checked { " sanitize_address" } else { "" };
    format!("{before}{mark}{behind}")
}

/// Returns the new text of a variable or alias, if it changes.
fn variable(
    line: &str,
    libraries: &Libraries,
    origins: &BTreeMap<String, Origin>,
) -> Option<String> {
    let (name, behind) = text::symbol(line, 0)?;
    let is_named = libraries.names.contains(name);
    let is_library = origins.get(name) == Some(&Origin::Library);
    if name.starts_with("llvm.") {
        return None;
    }
    if let Some(target) = alias_target(line) {
        let target_is_declared =
            libraries.names.contains(target) && origins.get(target) == Some(&Origin::Library);
        if !(is_library && (is_named || target_is_declared)) {
            return None;
        }
        let (_, of) = line.split_once(" alias ")?;
        let typed = &of[..of.rfind(", ptr @")?];
        return Some(match typed.find('(') {
            Some(at) => format!(
                "declare {}{}{}",
                &typed[..at],
                &line[..behind],
                &typed[at..]
            ),
            None => format!("{} = external global {typed}", &line[..behind]),
        });
    }
    if !is_named {
        return None;
    }
    let words = line.get(behind..)?.strip_prefix(" = ")?;
    if !is_library {
        return words
            .strip_prefix("internal ")
            .map(|words| format!("{} = {words}", &line[..behind]));
    }
    let (storage, rest) = match (words.split_once("global "), words.split_once("constant ")) {
        (Some((before, rest)), Some((other, _))) if before.len() < other.len() => {
            (format!("{before}global "), rest)
        }
        (_, Some((before, rest))) => (format!("{before}constant "), rest),
        (Some((before, rest)), None) => (format!("{before}global "), rest),
        (None, None) => return None,
    };
    let storage: String = without_linkage(&storage)
        .replace("local_unnamed_addr ", "")
        .replace("unnamed_addr ", "");
    Some(format!(
        "{} = external {storage}{}",
        &line[..behind],
        first_type(rest)?
    ))
}

/// Returns the type at the beginning of a text.
fn first_type(text: &str) -> Option<&str> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' | b'{' | b'<' | b'(' => depth += 1,
            b']' | b'}' | b'>' | b')' => depth = depth.checked_sub(1)?,
            b' ' | b',' if depth == 0 => return Some(&text[..at]),
            _ => {}
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULE: &str = "\
@table = internal global [10 x i32] zeroinitializer, align 16, !dbg !10
@stdout = internal constant ptr @__stdout_FILE, align 8, !dbg !12
@atoi = internal alias i32 (ptr), ptr @c.stdlib.atoi
@environ = internal alias ptr, ptr @__environ
@__environ = internal global ptr null, align 8, !dbg !12
define internal i32 @c.stdlib.atoi(ptr %0) unnamed_addr #4 !dbg !2 {
  ret i32 0
}
define internal noundef i32 @printf(ptr noalias noundef %0, ...) #17 !dbg !2 {
  ret i32 0
}
define internal fastcc i32 @get(i32 noundef %0) unnamed_addr #9 !dbg !4 {
  ret i32 0
}
define internal void @free(ptr %0) #9 !dbg !4 {
  ret void
}
!1 = !DIFile(filename: \"std/x.zig\", directory: \"/pkg/lib\")
!2 = distinct !DISubprogram(name: \"f\", scope: !1, file: !1, line: 3)
!3 = !DIFile(filename: \"a.c\", directory: \"/src\")
!4 = distinct !DISubprogram(name: \"get\", scope: !3, file: !3, line: 3)
!10 = !DIGlobalVariableExpression(var: !11, expr: !DIExpression())
!11 = distinct !DIGlobalVariable(name: \"table\", scope: !3, file: !3, line: 1)
!12 = !DIGlobalVariableExpression(var: !13, expr: !DIExpression())
!13 = distinct !DIGlobalVariable(name: \"stdout\", scope: !1, file: !1, line: 1)
";

    #[test]
    fn libraries_become_declarations() {
        let names = ["atoi", "printf", "stdout", "environ", "__environ", "free"];
        let libraries = Libraries {
            names: names.map(str::to_owned).into(),
            sources: "/pkg/lib".to_owned(),
        };
        let made = separate(MODULE, &libraries);
        let has = |line: &str| made.text.lines().any(|found| found == line);
        assert!(has(
            "@table = internal global [10 x i32] zeroinitializer, align 16, !dbg !10"
        ));
        assert!(has("@stdout = external constant ptr"), "{}", made.text);
        assert!(has("declare i32 @atoi(ptr)"));
        assert!(has("@environ = external global ptr"));
        assert!(has("@__environ = external global ptr"));
        assert!(has(
            "declare noundef i32 @printf(ptr noalias noundef %0, ...) #17"
        ));
        let get = "define internal fastcc i32 @get(i32 noundef %0) unnamed_addr sanitize_address #9 !dbg !4 {";
        assert!(has(get), "{}", made.text);
        // The program's own version replaces the library's.
        assert!(has(
            "define void @free(ptr %0) sanitize_address #9 !dbg !4 {"
        ));
        assert!(!made.text.contains("internal noundef"));
        assert_eq!(made.functions, 2);
    }
}
