//! Parses the output of `llvm-dis`, and normalises its lines to the form of the printer.

use std::collections::HashMap;

/// A function as `llvm-dis` prints it.
pub struct TextFunction {
    pub name: String,
    pub head: Vec<String>,
    /// Tokens of each instruction, with the number of its `!dbg` node.
    pub lines: Vec<(Vec<String>, Option<u64>)>,
    pub blocks: usize,
}

/// A whole module.
#[derive(Default)]
pub struct TextModule {
    pub functions: Vec<TextFunction>,
    /// Tokens of global variables and aliases, by name.
    pub globals: Vec<(String, Vec<String>)>,
    pub aliases: usize,
    pub metadata: HashMap<u64, String>,
}

impl TextModule {
    pub fn parse(text: &str) -> Self {
        let mut module = Self::default();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if line.starts_with("define ") {
                module.functions.push(parse_function(line, &mut lines));
            } else if line.starts_with('@') {
                let tokens = tokens(strip_comment(line));
                if tokens
                    .iter()
                    .any(|token| token == "alias" || token == "ifunc")
                {
                    module.aliases += 1;
                } else {
                    module.globals.push((tokens[0].clone(), tokens));
                }
            } else if let Some(rest) = line.strip_prefix('!')
                && let Some((number, node)) = rest.split_once(" = ")
                && let Ok(number) = number.parse()
            {
                module.metadata.insert(number, node.to_owned());
            }
        }
        module
    }

    /// Returns the value of a field of a metadata node.
    pub fn field<'a>(&'a self, node: u64, name: &str) -> Option<&'a str> {
        let text = self.metadata.get(&node)?;
        let mut from = 0;
        loop {
            let at = from + text[from..].find(name)?;
            let boundary = text[..at].ends_with(['(', ' ']);
            if boundary && text[at + name.len()..].starts_with(": ") {
                let rest = &text[at + name.len() + 2..];
                let end = match rest.strip_prefix('"') {
                    Some(inner) => inner.find('"')? + 2,
                    None => rest.find([',', ')']).unwrap_or(rest.len()),
                };
                return Some(&rest[..end]);
            }
            from = at + name.len();
        }
    }

    fn reference(&self, node: u64, name: &str) -> Option<u64> {
        self.field(node, name)?.strip_prefix('!')?.parse().ok()
    }

    /// Returns line, column, function and file, innermost inlined call first.
    pub fn location(&self, node: u64) -> Vec<(u32, u32, String, String)> {
        let mut chain = Vec::new();
        let mut next = Some(node);
        while let Some(node) = next {
            let number = |name| {
                self.field(node, name)
                    .and_then(|text| text.parse().ok())
                    .unwrap_or(0)
            };
            let (line, column) = (number("line"), number("column"));
            let mut scope = self.reference(node, "scope");
            let mut file = scope.and_then(|scope| self.reference(scope, "file"));
            while let Some(block) = scope
                && self.metadata[&block].contains("!DILexicalBlock")
            {
                scope = self.reference(block, "scope");
                file = file.or_else(|| scope.and_then(|scope| self.reference(scope, "file")));
            }
            let text = |node: Option<u64>, name| {
                let text = node
                    .and_then(|node| self.field(node, name))
                    .unwrap_or("\"\"");
                text.trim_matches('"')
                    .replace("\\22", "\"")
                    .replace("\\\\", "\\")
            };
            chain.push((line, column, text(scope, "name"), text(file, "filename")));
            next = self.reference(node, "inlinedAt");
        }
        chain
    }
}

fn parse_function<'a>(head: &str, lines: &mut impl Iterator<Item = &'a str>) -> TextFunction {
    let head_tokens = tokens(strip_comment(head));
    let name_at = head_tokens
        .iter()
        .position(|token| token.starts_with('@'))
        .expect("name");
    let mut raw: Vec<String> = Vec::new();
    for line in lines {
        if line == "}" {
            break;
        }
        let line = strip_comment(line).trim_end();
        if line.is_empty() || line.trim_start().starts_with("#dbg_") {
            continue;
        }
        let continued = line.starts_with("   ") || line.starts_with("  ]");
        match raw.last_mut() {
            Some(last) if continued => {
                last.push(' ');
                last.push_str(line.trim());
            }
            _ => raw.push(line.to_owned()),
        }
    }
    let mut names = Names::default();
    for name in parameter_names(&head_tokens, name_at) {
        names.define(&name);
    }
    if raw.first().is_none_or(|line| line.starts_with(' ')) {
        names.define(&format!("%{}", names.unnamed));
    }
    for line in &raw {
        if let Some(label) = line.strip_suffix(':').filter(|line| !line.starts_with(' ')) {
            names.define(&format!("%{label}"));
        } else if let Some((result, _)) = line.trim_start().split_once(" = ")
            && result.starts_with('%')
        {
            names.define(result);
        }
    }
    let labels = raw.iter().filter(|line| !line.starts_with(' ')).count();
    let implicit_entry = usize::from(raw.first().is_some_and(|line| line.starts_with(' ')));
    let lines = raw
        .iter()
        .filter(|line| line.starts_with(' '))
        .map(|line| instruction(line, &names))
        .collect();
    TextFunction {
        name: head_tokens[name_at].clone(),
        head: head_tokens,
        lines,
        blocks: labels + implicit_entry,
    }
}

/// Local names and their numbers in order of definition.
#[derive(Default)]
struct Names {
    numbers: HashMap<String, usize>,
    unnamed: usize,
}

impl Names {
    fn define(&mut self, name: &str) {
        if name[1..].bytes().all(|byte| byte.is_ascii_digit()) {
            self.unnamed += 1;
        }
        let number = self.numbers.len();
        self.numbers.insert(name.to_owned(), number);
    }
}

fn parameter_names(head: &[String], name_at: usize) -> Vec<String> {
    let mut depth = 0;
    let mut names = Vec::new();
    let mut last = "";
    for token in &head[name_at + 1..] {
        let closes = token == ")" && depth == 1;
        if (token == "," && depth == 1) || closes {
            if last.starts_with('%') {
                names.push(last.to_owned());
            }
            if closes {
                break;
            }
        }
        match token.as_str() {
            "(" | "{" | "[" | "<" => depth += 1,
            ")" | "}" | "]" | ">" => depth -= 1,
            _ => {}
        }
        last = token;
    }
    names
}

/// Strips a comment, respecting quotes.
fn strip_comment(line: &str) -> &str {
    let mut quoted = false;
    for (at, c) in line.char_indices() {
        match c {
            '"' => quoted = !quoted,
            ';' if !quoted => return line[..at].trim_end(),
            _ => {}
        }
    }
    line
}

pub fn tokens(line: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                word.push('"');
                for c in chars.by_ref() {
                    word.push(c);
                    if c == '"' {
                        break;
                    }
                }
            }
            c if c.is_alphanumeric() || "%@#!._$-+\\:".contains(c) => word.push(c),
            c => {
                if !word.is_empty() {
                    tokens.push(std::mem::take(&mut word));
                }
                if !c.is_whitespace() {
                    tokens.push(c.to_string());
                }
            }
        }
    }
    if !word.is_empty() {
        tokens.push(word);
    }
    for token in &mut tokens {
        // Floats are written in decimal if that is exact; the printer writes only bits.
        if token.contains(".")
            && token.contains('e')
            && token.starts_with(|c: char| c.is_ascii_digit() || c == '-')
            && let Ok(value) = token.parse::<f64>()
        {
            *token = format!("0x{:X}", value.to_bits());
        }
        // The reader drops the prefix that keeps a name from being mangled.
        if token.starts_with("@\"\\01") {
            *token = format!("@{}", token[5..].trim_end_matches('"'));
        }
    }
    tokens
}

/// Drops the `inrange` of an address, which the reader does not keep. With it, LLVM does not fold
/// an address plus 0.
pub fn without_inrange(tokens: &[String]) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at] != "inrange" {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        at = skip_parentheses(tokens, at + 1);
        let end = skip_parentheses(tokens, at);
        if let [.., base, comma, _, zero, _] = &tokens[at..end]
            && comma == ","
            && zero == "0"
        {
            let start = kept.iter().rposition(|token| token == "getelementptr");
            kept.truncate(start.unwrap_or(kept.len()));
            kept.push(base.clone());
            at = end;
        }
    }
    kept
}

const ATTRIBUTES: &[&str] = &[
    "noundef",
    "nonnull",
    "signext",
    "zeroext",
    "inreg",
    "noalias",
    "nocapture",
    "captures",
    "readonly",
    "writeonly",
    "readnone",
    "returned",
    "immarg",
    "nofree",
    "nest",
    "dereferenceable",
    "dereferenceable_or_null",
    "range",
    "initializes",
    "nofpclass",
    "allocalign",
    "allocptr",
    "swiftself",
    "swifterror",
    "dead_on_unwind",
    "dead_on_return",
    "writable",
    "noext",
    "alignstack",
];

const FAST_MATH: &[&str] = &[
    "fast", "reassoc", "nnan", "ninf", "nsz", "arcp", "contract", "afn",
];

/// Returns the tokens of an instruction without those that the printer omits, and its `!dbg` node.
fn instruction(line: &str, names: &Names) -> (Vec<String>, Option<u64>) {
    let all = without_inrange(&tokens(line));
    let opcode_at = if all.get(1).is_some_and(|token| token == "=") {
        2
    } else {
        0
    };
    let opcode = all[opcode_at].as_str();
    let call = matches!(
        opcode,
        "call" | "tail" | "musttail" | "notail" | "invoke" | "callbr"
    );
    let merges = matches!(opcode, "select" | "phi");
    let mut kept: Vec<String> = Vec::new();
    let mut location = None;
    let mut at = 0;
    while at < all.len() {
        let token = all[at].as_str();
        let previous = kept.last().map_or("", |token| token.as_str());
        if token.starts_with('!') && previous == "," {
            if token == "!dbg" {
                location = all[at + 1].trim_start_matches('!').parse().ok();
            }
            kept.pop();
            at += 2;
            continue;
        }
        if token == "metadata" && call {
            kept.push("metadata".into());
            at = skip_argument(&all, at + 1);
            continue;
        }
        let dropped = token.starts_with('#')
            || (call && ATTRIBUTES.contains(&token))
            || (merges && FAST_MATH.contains(&token));
        if dropped {
            at = skip_parentheses(&all, at + 1);
            continue;
        }
        if token == "align" && previous != "," {
            at += if all[at + 1] == "(" { 4 } else { 2 };
            continue;
        }
        match names.numbers.get(token) {
            Some(number) => kept.push(format!("%{number}")),
            None => kept.push(token.to_owned()),
        }
        at += 1;
    }
    (kept, location)
}

fn skip_parentheses(tokens: &[String], at: usize) -> usize {
    if tokens.get(at).is_none_or(|token| token != "(") {
        return at;
    }
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        match token.as_str() {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    tokens.len()
}

fn skip_argument(tokens: &[String], mut at: usize) -> usize {
    while at < tokens.len() && tokens[at] != "," && tokens[at] != ")" {
        at = if tokens[at] == "(" {
            skip_parentheses(tokens, at)
        } else {
            at + 1
        };
    }
    at
}
