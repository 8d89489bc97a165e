//! Functions in two versions: one with all checks, and one with only the checks that are always
//! kept. Both share all data. Direct calls stay within a version; an indirect call reaches a
//! dispatcher, which selects the version by a flag of the thread. The entry points of requests have
//! a dispatcher that decides and sets the flag.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::atoms::Function;
use super::text;

/// A version of a function.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Version {
    /// With all checks.
    Checked,
    /// With only the checks that are always kept.
    Plain,
}

impl Version {
    fn suffix(self) -> &'static str {
        match self {
            Version::Checked => ".checked",
            Version::Plain => ".plain",
        }
    }
}

/// Returns whether a function can have two versions: a dispatcher must be able to pass on its
/// arguments, and labels whose address is taken can exist only once.
pub fn can_have_two(module: &str, function: &Function<'_>) -> bool {
    let head = function.lines[0];
    let Some(parsed) = text::head(head) else {
        return false;
    };
    let (open, close) = parsed.parameters;
    let has_labels = format!("blockaddress(@{},", function.symbol);
    !head[open..=close].contains("...")
        && !head.contains("available_externally")
        && function.symbol != "main"
        && !module.contains(&has_labels)
}

/// Returns a line of a version: direct calls stay within the version. The plain version has no
/// debug information, because a subprogram node can belong to one function only.
pub fn line_of(
    line: &str,
    version: Version,
    two: &BTreeSet<&str>,
    entries: &BTreeSet<String>,
) -> Option<String> {
    if version == Version::Plain && line.trim_start().starts_with("#dbg_") {
        return None;
    }
    let mut new = line.to_owned();
    if let Some((name, at, end)) = callee(line)
        && two.contains(name)
        && !entries.contains(name)
    {
        new = format!("{}{}{}", &line[..at], named(name, version), &line[end..]);
    }
    if version == Version::Plain {
        new = without_debug(&new);
    }
    Some(new)
}

/// Returns the head of a version.
pub fn head_of(line: &str, name: &str, version: Version) -> String {
    let Some(head) = text::head(line) else {
        return line.to_owned();
    };
    let before = super::program::without_linkage(&line["define ".len()..head.at]);
    let (open, close) = head.parameters;
    let mut behind = line[close + 1..].to_owned();
    if let Some(at) = behind.find(" comdat") {
        let rest = &behind[at + " comdat".len()..];
        let end = if rest.starts_with('(') {
            rest.find(')').map_or(0, |end| end + 1)
        } else {
            0
        };
        behind = format!("{}{}", &behind[..at], &rest[end..]);
    }
    let new = format!(
        "define internal {before}{}{}{behind}",
        named(name, version),
        &line[open..=close]
    );
    match version {
        Version::Checked => new,
        Version::Plain => without_debug(&new),
    }
}

fn named(name: &str, version: Version) -> String {
    format!("@\"{name}{}\"", version.suffix())
}

/// Returns the callee of a call or invoke: its name, and where the name begins and ends.
fn callee(line: &str) -> Option<(&str, usize, usize)> {
    if let Some(call) = text::call(line) {
        return Some((call.callee, call.at, call.open));
    }
    let at = line.find("invoke ").filter(|_| line.starts_with("  "))?;
    let at = at + line[at..].find('@')?;
    let (name, end) = text::symbol(line, at)?;
    line[end..].starts_with('(').then_some((name, at, end))
}

fn without_debug(line: &str) -> String {
    let Some(number) = text::metadata(line, "!dbg") else {
        return line.to_owned();
    };
    let with_comma = format!(", !dbg !{number}");
    match line.contains(&with_comma) {
        true => line.replacen(&with_comma, "", 1),
        false => line.replacen(&format!(" !dbg !{number}"), "", 1),
    }
}

/// Returns the dispatcher, which has the name of a function with two versions.
pub fn dispatcher(line: &str, name: &str, is_entry: bool, number: usize) -> String {
    let Some(head) = text::head(line) else {
        return String::new();
    };
    let (open, close) = head.parameters;
    let arguments = &line[open..=close];
    let result = super::program::without_linkage(&line["define ".len()..head.at]);
    let kind = last_type(result.trim_end());
    let comdat = if line[close..].contains(" comdat") {
        comdat(&line[close..])
    } else {
        ""
    };
    let mut text = format!("{} uwtable{comdat} {{\n", &line[..=close]);
    let tail = if is_entry { "call" } else { "musttail call" };
    if is_entry {
        text.push_str(&enter(&line[open + 1..close], number));
    } else {
        text.push_str("  %everett.level = load i32, ptr @everett_hard_level, align 4\n");
    }
    text.push_str("  %everett.on = icmp ne i32 %everett.level, 0\n");
    text.push_str("  br i1 %everett.on, label %everett.checked, label %everett.plain\n");
    for (label, version) in [("checked", Version::Checked), ("plain", Version::Plain)] {
        let _ = writeln!(text, "everett.{label}:");
        let target = named(name, version);
        let leave = if is_entry {
            "  call void @everett_hard_leave(ptr %everett.arguments)\n"
        } else {
            ""
        };
        let _ = match kind {
            "void" => write!(
                text,
                "  {tail} {result}{target}{arguments}\n{leave}  ret void\n"
            ),
            _ => write!(
                text,
                "  %everett.{label}.result = {tail} {result}{target}{arguments}\n{leave}  \
                 ret {kind} %everett.{label}.result\n"
            ),
        };
    }
    text.push_str("}\n");
    if is_entry {
        let name = text::constant(name);
        let _ = writeln!(
            text,
            "@everett_hard_entry.{number} = private unnamed_addr constant {name}"
        );
    }
    text
}

fn comdat(behind: &str) -> &str {
    let at = behind.find(" comdat").unwrap_or(0);
    let rest = &behind[at + " comdat".len()..];
    match rest.starts_with('(') {
        true => &behind[at..at + " comdat".len() + rest.find(')').map_or(0, |end| end + 1)],
        false => &behind[at..at + " comdat".len()],
    }
}

/// Maximum number of arguments that a decision sees.
const SEEN: usize = 6;

/// Returns the code that decides about a request. The arguments distinguish requests.
fn enter(parameters: &str, number: usize) -> String {
    let mut text = format!(
        "  %everett.arguments = alloca [{SEEN} x i64], align 16\n  \
         store [{SEEN} x i64] zeroinitializer, ptr %everett.arguments, align 16\n"
    );
    for (at, parameter) in split(parameters).into_iter().enumerate().take(SEEN) {
        let (Some(kind), Some(value)) = (parameter.split(' ').next(), parameter.rsplit(' ').next())
        else {
            continue;
        };
        let bits = kind
            .strip_prefix('i')
            .and_then(|bits| bits.parse::<u32>().ok());
        let wide = match (kind, bits) {
            ("ptr", _) => format!("ptrtoint ptr {value} to i64"),
            (_, Some(64)) => format!("add i64 {value}, 0"),
            (_, Some(bits)) if bits < 64 => format!("sext i{bits} {value} to i64"),
            _ => continue,
        };
        let _ = writeln!(
            text,
            "  %everett.wide.{at} = {wide}\n  \
             %everett.place.{at} = getelementptr i64, ptr %everett.arguments, i64 {at}\n  \
             store i64 %everett.wide.{at}, ptr %everett.place.{at}, align 8"
        );
    }
    let _ = writeln!(
        text,
        "  %everett.level = call i32 @everett_hard_enter(ptr @everett_hard_entry.{number}, ptr %everett.arguments)"
    );
    text
}

/// Splits parameters at commas that are not nested.
fn split(parameters: &str) -> Vec<&str> {
    let (mut depth, mut start) = (0_i32, 0);
    let mut found = Vec::new();
    for (at, byte) in parameters.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' | b'<' => depth += 1,
            b')' | b']' | b'}' | b'>' => depth -= 1,
            b',' if depth == 0 => {
                found.push(parameters[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    if !parameters[start..].trim().is_empty() {
        found.push(parameters[start..].trim());
    }
    found
}

/// Returns the type at the end of words.
fn last_type(words: &str) -> &str {
    let mut depth = 0_i32;
    for (at, byte) in words.bytes().enumerate().rev() {
        match byte {
            b')' | b']' | b'}' | b'>' => depth += 1,
            b'(' | b'[' | b'{' | b'<' => depth -= 1,
            b' ' if depth == 0 => return &words[at + 1..],
            _ => {}
        }
    }
    words
}

/// Declarations of the runtime functions that dispatchers need.
pub const DECLARATIONS: &str = "\
@everett_hard_level = external thread_local(localexec) global i32
declare i32 @everett_hard_enter(ptr, ptr)
declare void @everett_hard_leave(ptr)
";

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "define internal fastcc noundef range(i32 0, 5) i32 @f(ptr noundef captures(none) %0, i32 %1) \
                        unnamed_addr #3 !dbg !7 {";

    #[test]
    fn heads_get_versions() {
        assert_eq!(
            head_of(HEAD, "f", Version::Plain),
            "define internal fastcc noundef range(i32 0, 5) i32 @\"f.plain\"(ptr noundef captures(none) %0, i32 %1) \
             unnamed_addr #3 {"
        );
        let shared = "define linkonce_odr void @g() #1 comdat($x) personality ptr @p !dbg !7 {";
        assert_eq!(
            head_of(shared, "g", Version::Checked),
            "define internal void @\"g.checked\"() #1 personality ptr @p !dbg !7 {"
        );
        let made = dispatcher(shared, "g", false, 0);
        assert!(
            made.starts_with("define linkonce_odr void @g() uwtable comdat($x) {\n"),
            "{made}"
        );
        assert!(
            made.contains("  musttail call void @\"g.plain\"()\n  ret void\n"),
            "{made}"
        );
    }

    #[test]
    fn dispatchers_pass_on_arguments() {
        let made = dispatcher(HEAD, "f", true, 2);
        for expected in [
            "  %everett.wide.0 = ptrtoint ptr %0 to i64\n",
            "  %everett.wide.1 = sext i32 %1 to i64\n",
            "  %everett.checked.result = call fastcc noundef range(i32 0, 5) i32 @\"f.checked\"(ptr noundef \
             captures(none) %0, i32 %1)\n",
            "  ret i32 %everett.plain.result\n",
            "@everett_hard_entry.2 = private unnamed_addr constant [2 x i8] c\"f\\00\"\n",
        ] {
            assert!(made.contains(expected), "{expected}\n{made}");
        }
    }

    #[test]
    fn calls_stay_within_a_version() {
        let two = ["f", "g"].into();
        let entries = ["g".to_owned()].into();
        let line = |text, version| line_of(text, version, &two, &entries);
        assert_eq!(
            line(
                "  %1 = call i32 @f(ptr @g), !dbg !3, !tbaa !4",
                Version::Plain
            )
            .unwrap(),
            "  %1 = call i32 @\"f.plain\"(ptr @g), !tbaa !4"
        );
        assert_eq!(
            line(
                "  invoke void @f() to label %1 unwind label %2, !dbg !3",
                Version::Checked
            )
            .unwrap(),
            "  invoke void @\"f.checked\"() to label %1 unwind label %2, !dbg !3"
        );
        assert_eq!(
            line("  call void @g()", Version::Checked).unwrap(),
            "  call void @g()"
        );
        assert_eq!(
            line("    #dbg_value(i32 0, !1, !2, !3)", Version::Plain),
            None
        );
    }
}
