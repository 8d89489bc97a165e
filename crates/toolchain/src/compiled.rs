//! Bitcode that a compiler wrote and no linker has seen, as KLEE loads it: the entry and the
//! functions that are replaced are named when it is linked. Owns these changes, on LLVM's textual
//! form.

use regex::Regex;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::Notify;
use crate::driver::{self, Language};
use crate::error::{IoContext, ToolchainError};
use crate::hard::text;
use crate::process::BuildTime;
use crate::sysroot::Sysroot;
use crate::traps;

/// The function of the C library that every linked program has.
const START: &str = "_start_c";
/// What the headers of glibc make of calls.
const GLIBC_C: &str = include_str!("../runtime/glibc.c");
/// The name of a `main` that is not the entry.
const OTHER_MAIN: &str = "everett.main";

/// How bitcode becomes a program, beside its own `main`.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct ObjectBuild {
    /// The function that is called instead of `main`.
    pub entry: Option<String>,
    /// Functions that are replaced, as `NAME:REPLACEMENT`; the name may be a pattern.
    pub replaced: Vec<String>,
    /// Libraries and objects to link with.
    pub libraries: Vec<OsString>,
}

/// What is said about a build that succeeds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Remark {
    /// What was done.
    Done(String),
    /// What was not done.
    Warning(String),
}

/// Links bitcode into a program beside it, `NAME.linked`. Returns its path, or `None` if the bitcode
/// is that of a linked program.
pub fn link_object(
    bitcode: &Path,
    build: &ObjectBuild,
    notify: Notify<'_>,
    remark: &mut dyn FnMut(Remark),
) -> Result<Option<PathBuf>, ToolchainError> {
    if build.entry.as_deref() == Some("") {
        return failed("entry-point cannot be empty");
    }
    let work = tempfile::tempdir().context("create", "a temporary folder")?;
    let readable = work.path().join("object.ll");
    let sysroot = Sysroot::open(notify)?;
    let time = BuildTime::from_now(None);
    traps::convert(&sysroot, bitcode, (&readable, "-S"), &time).map_err(|error| match error {
        ToolchainError::Checked { reason, .. } => {
            ToolchainError::Object(format!("cannot read {}\n{reason}", bitcode.display()))
        }
        other => other,
    })?;
    let source = fs::read_to_string(&readable).context("read", &readable)?;
    let mut module = Module::new(&source);
    if module.function(START).is_some_and(|it| it.is_defined) {
        return Ok(None);
    }
    for pair in &build.replaced {
        module.replace(pair, remark)?;
    }
    module.enter(build.entry.as_deref().unwrap_or("main"))?;
    let is_cxx = module.mentions("__gxx_personality_v0") || source.contains("@_Z");
    fs::write(&readable, module.lines.join("\n") + "\n").context("write", &readable)?;
    let language = if is_cxx { Language::Cxx } else { Language::C };
    let program = bitcode.with_extension("linked");
    let done = link(language, &readable, &program, build, notify)?;
    let said = String::from_utf8_lossy(&done.stderr);
    if !done.status.success() {
        return failed(&format!("cannot link {}\n{said}", bitcode.display()));
    }
    for name in said.lines().filter_map(undefined) {
        remark(Remark::Warning(format!(
            "undefined reference to function: {name}"
        )));
    }
    Ok(Some(program))
}

/// Returns the symbol of which the linker says that it is not defined.
fn undefined(line: &str) -> Option<&str> {
    let (_, name) = line.split_once("warning: undefined symbol: ")?;
    Some(name.trim())
}

/// Links a module with the libraries. As in KLEE, a function that is nowhere is an error of the path
/// that calls it.
fn link(
    language: Language,
    module: &Path,
    program: &Path,
    build: &ObjectBuild,
    notify: Notify<'_>,
) -> Result<Output, ToolchainError> {
    let glibc = module.with_file_name("glibc.c");
    fs::write(&glibc, GLIBC_C).context("write", &glibc)?;
    let mut args: Vec<OsString> = vec!["-w".into(), "-o".into(), program.into()];
    // A C++ compiler would take the last one for C++.
    args.extend([module.into(), "-x".into(), "c".into(), glibc.into()]);
    args.extend(["-x", "none"].map(OsString::from));
    // Reports tell libraries by their paths.
    let folder = module.parent().unwrap_or(Path::new("/")).display();
    args.push(format!("-fdebug-prefix-map={folder}=/everett/runtime").into());
    args.push("-Wl,--warn-unresolved-symbols,--no-demangle".into());
    args.extend(build.libraries.iter().cloned());
    driver::compile_captured(language, &args, notify)
}

fn failed<T>(why: &str) -> Result<T, ToolchainError> {
    Err(ToolchainError::Object(why.to_owned()))
}

/// A function, or an alias of one.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Function {
    name: String,
    is_defined: bool,
    result: String,
    parameters: Vec<String>,
    is_variadic: bool,
}

impl Function {
    fn new(name: &str, is_defined: bool, result: &str, list: &str) -> Function {
        let mut parameters: Vec<String> = parts(list)
            .map(|parameter| first_type(parameter).to_owned())
            .collect();
        let is_variadic = parameters.last().is_some_and(|last| last == "...");
        parameters.truncate(parameters.len() - usize::from(is_variadic));
        Function {
            name: name.to_owned(),
            is_defined,
            result: last_type(result).to_owned(),
            parameters,
            is_variadic,
        }
    }

    /// Reads the function that a line of a module defines or declares.
    fn of(line: &str) -> Option<Function> {
        if let Some(head) = text::head(line) {
            let (open, close) = head.parameters;
            let list = &line[open + 1..close];
            let is_defined = line.starts_with("define ");
            return Some(Function::new(head.name, is_defined, &line[..head.at], list));
        }
        let (name, _) = text::symbol(line, 0)?;
        let (_, behind) = line.split_once(" alias ")?;
        let open = behind.find('(')?;
        let close = text::close_of(behind, open)?;
        let list = &behind[open + 1..close];
        Some(Function::new(name, true, &behind[..open], list))
    }

    /// Returns in what the type of another function differs.
    fn difference(&self, other: &Function) -> Option<&'static str> {
        if self.result != other.result {
            Some("return type differs")
        } else if self.is_variadic != other.is_variadic {
            Some("one has varargs while the other does not")
        } else if self.parameters.len() != other.parameters.len() {
            Some("number of parameters differs")
        } else if self.parameters != other.parameters {
            Some("parameter types differ")
        } else {
            None
        }
    }
}

/// The parts of a list, which commas separate.
fn parts(list: &str) -> impl Iterator<Item = &str> {
    let (mut depth, mut from) = (0_i32, 0);
    let mut ends = Vec::new();
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' | b'<' => depth += 1,
            b')' | b']' | b'}' | b'>' => depth -= 1,
            b',' if depth == 0 => ends.push(at),
            _ => {}
        }
    }
    ends.push(list.len());
    let parts = ends.into_iter().map(move |end| {
        let part = &list[from..end];
        from = end + 1;
        part.trim()
    });
    parts.filter(|part| !part.is_empty())
}

/// The type at the start of a text.
fn first_type(text: &str) -> &str {
    let mut depth = 0_i32;
    let end = text.char_indices().find(|(_, letter)| {
        match *letter {
            '[' | '{' | '<' => depth += 1,
            ']' | '}' | '>' => depth -= 1,
            _ => {}
        }
        depth == 0 && *letter == ' '
    });
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

/// The type at the end of a text.
fn last_type(text: &str) -> &str {
    let text = text.trim_end();
    let mut depth = 0_i32;
    let start = text.char_indices().rev().find(|(_, letter)| {
        match *letter {
            ']' | '}' | '>' => depth += 1,
            '[' | '{' | '<' => depth -= 1,
            _ => {}
        }
        depth == 0 && *letter == ' '
    });
    &text[start.map_or(0, |(at, _)| at + 1)..]
}

/// Writes the name of a global.
fn spelled(name: &str) -> String {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-$._".contains(&byte);
    match name.bytes().all(is_part) {
        true => format!("@{name}"),
        false => format!("@\"{name}\""),
    }
}

/// Renames a global in a line from a position on.
fn renamed(line: &str, mut from: usize, (old, new): (&str, &str)) -> String {
    let mut result = line[..from].to_owned();
    let mut is_quoted = false;
    while let Some(byte) = line.as_bytes().get(from) {
        let symbol = match byte {
            b'@' if !is_quoted => text::symbol(line, from),
            _ => None,
        };
        let end = match symbol {
            Some((name, end)) if name == old => {
                result.push_str(&spelled(new));
                from = end;
                continue;
            }
            Some((_, end)) => end,
            None => {
                is_quoted ^= *byte == b'"';
                let mut rest = line[from..].char_indices().skip(1);
                let next = rest.find(|(_, letter)| ['@', '"'].contains(letter));
                next.map_or(line.len(), |(next, _)| from + next)
            }
        };
        result.push_str(&line[from..end]);
        from = end;
    }
    result
}

/// The text of a module.
struct Module {
    lines: Vec<String>,
    functions: Vec<Function>,
}

impl Module {
    fn new(text: &str) -> Module {
        Module {
            lines: text.lines().map(str::to_owned).collect(),
            functions: text.lines().filter_map(Function::of).collect(),
        }
    }

    fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.name == name)
    }

    fn mentions(&self, name: &str) -> bool {
        let name = spelled(name);
        self.lines.iter().any(|line| text::mentions(line, &name))
    }

    /// Replaces functions as KLEE's `--function-alias` does.
    fn replace(
        &mut self,
        pair: &str,
        remark: &mut dyn FnMut(Remark),
    ) -> Result<(), ToolchainError> {
        let error = |what: &str| failed(&format!("function-alias: {what}"));
        let Some((pattern, with)) = pair.rsplit_once(':') else {
            return error("no replacement given");
        };
        if pattern.is_empty() {
            return error("name or pattern cannot be empty");
        }
        if with.is_empty() {
            return error("replacement cannot be empty");
        }
        if pattern == with {
            return error(&format!("@{pattern} cannot replace itself"));
        }
        let Some(replacement) = self.function(with).cloned() else {
            return error(&format!("replacement function @{with} could not be found"));
        };
        let none = format!("no (replacable) match for '{pattern}' found");
        if let Some(function) = self.function(pattern).cloned() {
            if !self.is_replaced(&function, &replacement, remark) {
                return error(&none);
            }
            remark(Remark::Done(format!(
                "function-alias: replaced @{pattern} with @{with}"
            )));
            return Ok(());
        }
        let whole = match Regex::new(&format!("^(?:{pattern})$")) {
            Ok(whole) => whole,
            Err(why) => return error(&format!("'{pattern}' is not a valid regex: {why}")),
        };
        let matches = |function: &&Function| whole.is_match(&function.name);
        let matching: Vec<Function> = self.functions.iter().filter(matches).cloned().collect();
        let mut is_found = false;
        for function in matching {
            let name = &function.name;
            if name == with {
                remark(Remark::Warning(format!(
                    "function-alias: do not replace @{name} (matching '{pattern}') with @{with}: \
                     cannot replace itself"
                )));
            } else if self.is_replaced(&function, &replacement, remark) {
                is_found = true;
                remark(Remark::Done(format!(
                    "function-alias: replaced @{name} (matching '{pattern}') with @{with}"
                )));
            }
        }
        match is_found {
            true => Ok(()),
            false => error(&none),
        }
    }

    /// Replaces a function by one of the same type. Returns whether the type is the same.
    fn is_replaced(
        &mut self,
        function: &Function,
        with: &Function,
        remark: &mut dyn FnMut(Remark),
    ) -> bool {
        let (name, new) = (&*function.name, &*with.name);
        if let Some(difference) = function.difference(with) {
            remark(Remark::Warning(format!(
                "function-alias: @{name} could not be replaced with @{new}: {difference}"
            )));
            return false;
        }
        let unused = format!("{name}.replaced");
        for line in &mut self.lines {
            let is_own = Function::of(line).filter(|own| own.name == name);
            *line = match is_own {
                // Nothing refers to it any more.
                Some(own) if own.is_defined => renamed(line, 0, (name, &unused)),
                Some(_) => continue,
                None => renamed(line, 0, (name, new)),
            };
        }
        true
    }

    /// Makes a function the entry.
    fn enter(&mut self, entry: &str) -> Result<(), ToolchainError> {
        let Some(function) = self.function(entry).filter(|it| it.is_defined).cloned() else {
            return failed(&format!("Entry function '{entry}' not found in module."));
        };
        if entry == "main" {
            return Ok(());
        }
        for line in &mut self.lines {
            *line = renamed(line, 0, ("main", OTHER_MAIN));
        }
        let given = [("i32", "i32 %0"), ("ptr", "ptr %1"), ("ptr", "ptr %2")];
        let mut given = given.into_iter();
        let arguments = function.parameters.iter().map(|of| match given.next() {
            Some((same, argument)) if same == of => argument.to_owned(),
            _ => format!("{of} zeroinitializer"),
        });
        let arguments: Vec<String> = arguments.collect();
        let mut types = function.parameters.clone();
        types.extend(function.is_variadic.then(|| "...".to_owned()));
        let call = format!(
            "call {} ({}) {}({})",
            function.result,
            types.join(", "),
            spelled(entry),
            arguments.join(", ")
        );
        let (result, code) = match &*function.result {
            "void" => ("", "0"),
            "i32" => ("%4 = ", "%4"),
            _ => ("%4 = ", "0"),
        };
        self.lines.push(format!(
            "define i32 @main(i32 %0, ptr %1, ptr %2) {{\n  {result}{call}\n  ret i32 {code}\n}}"
        ));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULE: &str = "\
@text = private constant [8 x i8] c\"a @one \\00\"
@other = dso_local alias i16 (i16), ptr @short
define dso_local i32 @one(i32 noundef %0) #0 !dbg !2 {
  ret i32 %0
}
define dso_local i32 @onemore(i32 noundef %0) #0 {
  %2 = call i32 @one(i32 %0)
  ret i32 %2
}
define dso_local signext i16 @short(i16 noundef signext %0) {
  ret i16 %0
}
declare void @exit(i32 noundef)
declare i32 @printf(ptr noundef, ...)
define dso_local void @end(i32 noundef %0) {
  call void @exit(i32 1)
  ret void
}
define { ptr, i64 } @pair(<2 x float> %0, ptr byval({ i64, i8 }) align 8 %1) {
}
define dso_local i32 @main() {
}";

    fn replace(module: &mut Module, pair: &str) -> (Result<(), String>, Vec<String>) {
        let mut said = Vec::new();
        let done = module.replace(pair, &mut |remark| {
            said.push(match remark {
                Remark::Done(text) => text,
                Remark::Warning(text) => format!("warning: {text}"),
            });
        });
        (done.map_err(|error| error.to_string()), said)
    }

    #[test]
    fn types_of_functions_are_read() {
        let module = Module::new(MODULE);
        let pair = module.function("pair").unwrap();
        assert_eq!(pair.result, "{ ptr, i64 }");
        assert_eq!(pair.parameters, ["<2 x float>", "ptr"]);
        let printf = module.function("printf").unwrap();
        assert!(printf.is_variadic && !printf.is_defined);
        assert_eq!(printf.parameters, ["ptr"]);
        let other = module.function("other").unwrap();
        assert_eq!(
            (&*other.result, &*other.parameters),
            ("i16", &["i16".to_owned()][..])
        );
        assert_eq!(other.difference(module.function("short").unwrap()), None);
        let one = module.function("one").unwrap();
        assert_eq!(one.difference(other), Some("return type differs"));
        let end = module.function("end").unwrap();
        assert_eq!(end.difference(module.function("exit").unwrap()), None);
    }

    #[test]
    fn functions_are_replaced() {
        let mut module = Module::new(MODULE);
        let (done, said) = replace(&mut module, "exit:end");
        assert_eq!(done, Ok(()));
        assert_eq!(said, ["function-alias: replaced @exit with @end"]);
        let text = module.lines.join("\n");
        assert!(text.contains("call void @end(i32 1)"), "{text}");
        assert!(text.contains("declare void @exit(i32 noundef)"), "{text}");
        let (done, said) = replace(&mut module, "one.*:onemore");
        assert_eq!(done, Ok(()));
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[1].ends_with("cannot replace itself"), "{said:?}");
        let text = module.lines.join("\n");
        assert!(
            text.contains("define dso_local i32 @one.replaced(i32"),
            "{text}"
        );
        assert!(text.contains("%2 = call i32 @onemore(i32 %0)"), "{text}");
        assert!(text.contains("a @one "), "{text}");
    }

    #[test]
    fn what_cannot_be_replaced_is_said() {
        for (pair, expected) in [
            (":one", "function-alias: name or pattern cannot be empty"),
            ("one:", "function-alias: replacement cannot be empty"),
            ("one:one", "function-alias: @one cannot replace itself"),
            (
                "one:two",
                "function-alias: replacement function @two could not be found",
            ),
            (
                "x.*:one",
                "function-alias: no (replacable) match for 'x.*' found",
            ),
            (
                "one:short",
                "function-alias: no (replacable) match for 'one' found",
            ),
        ] {
            let (done, said) = replace(&mut Module::new(MODULE), pair);
            assert_eq!(done, Err(expected.to_owned()));
            assert_eq!(said.len(), usize::from(pair == "one:short"), "{said:?}");
        }
    }

    #[test]
    fn another_function_is_the_entry() {
        let mut module = Module::new(MODULE);
        module.enter("pair").unwrap();
        let text = module.lines.join("\n");
        let call = "%4 = call { ptr, i64 } (<2 x float>, ptr) \
                    @pair(<2 x float> zeroinitializer, ptr %1)\n  ret i32 0";
        assert!(text.contains(call), "{text}");
        assert!(
            text.contains("define dso_local i32 @everett.main()"),
            "{text}"
        );
        let mut module = Module::new(MODULE);
        module.enter("one").unwrap();
        let text = module.lines.join("\n");
        assert!(
            text.contains("%4 = call i32 (i32) @one(i32 %0)\n  ret i32 %4"),
            "{text}"
        );
        let missing = Module::new(MODULE).enter("printf").unwrap_err();
        let expected = "Entry function 'printf' not found in module.";
        assert_eq!(missing.to_string(), expected);
    }
}
