//! Scans C source: constants that headers define, and calls with the constants in their arguments.

use std::collections::{BTreeMap, BTreeSet};

/// The constants of an API, by the header that defines them.
#[derive(Clone, Debug, Default)]
pub struct Constants {
    headers: BTreeMap<String, String>,
    calls: BTreeSet<String>,
}

impl Constants {
    /// Adds the constants of a header.
    pub fn add(&mut self, header: &str, text: &str) {
        for line in text.lines() {
            let Some(definition) = line.trim_start().strip_prefix('#') else {
                continue;
            };
            let mut words = definition.split_whitespace();
            let (Some("define"), Some(name), Some(_)) = (words.next(), words.next(), words.next())
            else {
                continue;
            };
            if let Some(call) = name.strip_prefix("__NR_").or(name.strip_prefix("SYS_")) {
                self.calls.insert(call.to_owned());
            } else if is_constant(name) {
                let known = self.headers.entry(name.to_owned());
                known.or_insert_with(|| header.to_owned());
            }
        }
    }

    /// Returns the system calls that the headers number.
    pub fn system_calls(&self) -> impl Iterator<Item = &str> {
        self.calls.iter().map(String::as_str)
    }

    /// Returns the header that defines a constant.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// Returns whether a name is that of a constant: in capitals. `NULL` says nothing.
fn is_constant(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    name.len() > 2 && !name.starts_with('_') && name.bytes().all(is_part) && name != "NULL"
}

/// Words before a call that are not types.
const STATEMENTS: [&str; 6] = ["return", "else", "do", "case", "goto", "in"];

/// Returns the configurations of all calls in a source, in their order.
pub fn configurations(
    source: &str,
    functions: &BTreeSet<String>,
    constants: &Constants,
) -> Vec<String> {
    let text = without_comments(source);
    let bytes = text.as_bytes();
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !is_part(bytes[at]) {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && is_part(bytes[at]) {
            at += 1;
        }
        let name = &text[start..at];
        let gap = bytes[at..]
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
        let open = at + gap;
        if bytes.get(open) != Some(&b'(') || !functions.contains(name) {
            continue;
        }
        if is_called(text[..start].trim_end())
            && let Some(arguments) = arguments(&text, open)
        {
            found.push(configuration(name, &arguments, constants));
        }
    }
    found
}

/// Returns whether a name after this text is called: it is neither declared nor a member of a
/// structure.
fn is_called(before: &str) -> bool {
    if before.ends_with("->") || before.ends_with('.') {
        return false;
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    // `char *open(` is a declaration, `a * open(` a product. Both are rare, but products are rarer.
    let plain = before.trim_end_matches('*').trim_end();
    let word = plain.rsplit(|c| !is_word(c)).next().unwrap_or_default();
    let is_name = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    !is_name || STATEMENTS.contains(&word)
}

/// Returns the arguments between parentheses.
fn arguments(text: &str, open: usize) -> Option<Vec<&str>> {
    let mut depth = 0;
    let mut start = open + 1;
    let mut found = Vec::new();
    for (at, byte) in text.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth -= 1;
                if depth == 0 {
                    let last = text[start..at].trim();
                    if !last.is_empty() || !found.is_empty() {
                        found.push(last);
                    }
                    return Some(found);
                }
            }
            b',' if depth == 1 => {
                found.push(text[start..at].trim());
                start = at + 1;
            }
            b';' => return None,
            _ => {}
        }
    }
    None
}

fn configuration(name: &str, arguments: &[&str], constants: &Constants) -> String {
    let shown: Vec<String> = arguments
        .iter()
        .map(|argument| {
            let mut parts: Vec<&str> = argument
                .split('|')
                .map(|part| part.trim_matches([' ', '(', ')', '\n', '\t']))
                .collect();
            let all = parts.iter().all(|part| constants.header(part).is_some());
            parts.sort_unstable();
            match all {
                true => parts.join("|"),
                false => "any".to_owned(),
            }
        })
        .collect();
    format!("{name}({})", shown.join(", "))
}

/// Removes comments from a source, and empties literals.
fn without_comments(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut text = String::with_capacity(source.len());
    let mut at = 0;
    while at < bytes.len() {
        let rest = &source[at..];
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.find("*/").map_or(rest.len(), |end| end + 4)
        } else if rest.starts_with(['"', '\'']) {
            literal(rest.as_bytes())
        } else {
            0
        };
        if skipped > 0 {
            // A literal is an argument, and comments separate words.
            text.push(if rest.starts_with('/') { ' ' } else { '0' });
            at += skipped;
        } else {
            let next = rest.chars().next().unwrap_or(' ');
            text.push(next);
            at += next.len_utf8();
        }
    }
    text
}

/// Returns the length of a literal with its quotes; it ends with its line.
fn literal(bytes: &[u8]) -> usize {
    let quote = bytes[0];
    let mut at = 1;
    while at < bytes.len() && bytes[at] != quote && bytes[at] != b'\n' {
        at += if bytes[at] == b'\\' && bytes.get(at + 1).is_some_and(u8::is_ascii) {
            2
        } else {
            1
        };
    }
    (at + 1).min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(source: &str) -> Vec<String> {
        let mut constants = Constants::default();
        constants.add(
            "a.h",
            "#define AF_INET 2\n# define SOCK_RAW 3\n#define NULL 0\n#define _X 1\n",
        );
        let functions = ["socket", "open", "f"].map(str::to_owned).into();
        configurations(source, &functions, &constants)
    }

    #[test]
    fn calls_become_configurations() {
        assert_eq!(
            found("s = socket(AF_INET, SOCK_RAW | 0, x);"),
            ["socket(AF_INET, any, any)"]
        );
        assert_eq!(
            found("socket (AF_INET,\n (SOCK_RAW), g(1, 2))"),
            ["socket(AF_INET, SOCK_RAW, any)"]
        );
        assert_eq!(
            found("open(\"),;\", ',', f())"),
            ["open(any, any, any)", "f()"]
        );
        assert_eq!(found("return open(NULL);"), ["open(any)"]);
        assert_eq!(
            found("x->open(a); y.open(b); reopen(c); open_it(d);"),
            Vec::<String>::new()
        );
        assert_eq!(
            found("int open(const char *p); char *open(x);"),
            Vec::<String>::new()
        );
        assert_eq!(found("/* open(a) */ // open(b)\n"), Vec::<String>::new());
        assert_eq!(found("open(a"), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn any_text_is_read(source in "[a-z(){},|;/*\"'\\\\\n ä]{0,60}") {
            let _ = found(&source);
        }
    }
}
