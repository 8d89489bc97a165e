//! Parser for templates and constraints of inline assembly.

/// A general register.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Register {
    /// The number of the register in the processor's encoding.
    pub number: usize,
    /// The width of the named part.
    pub width: u32,
}

/// The location of a template operand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OperandHome {
    /// In this register.
    General(usize),
    /// In a register of the compiler's choice, or an immediate.
    Anywhere,
    /// In memory; the argument is its address.
    Memory,
    /// In this register of the x87 stack.
    Stack(usize),
    /// In this vector register.
    Vector(usize),
    /// A label outside of the template: this one in the list of targets.
    Target(usize),
    /// In the same location as another operand.
    Tied(usize),
    /// In the flags: whether this condition holds afterwards (`=@ccc`).
    Condition(String),
}

/// One operand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Constraint {
    /// Whether the operand is an output.
    pub output: bool,
    /// The location of the operand.
    pub home: OperandHome,
}

/// Parses the operands of a constraint string, without clobbers. `None` if it is not supported.
pub fn constraints(text: &str) -> Option<Vec<Constraint>> {
    let codes = text.split(',').filter(|code| !code.is_empty());
    let mut constraints: Vec<Constraint> = codes
        .filter(|code| !code.starts_with('~'))
        .map(constraint)
        .collect::<Option<_>>()?;
    let mut targets = 0;
    for constraint in &mut constraints {
        if let OperandHome::Target(number) = &mut constraint.home {
            *number = targets;
            targets += 1;
        }
    }
    Some(constraints)
}

fn constraint(code: &str) -> Option<Constraint> {
    let output = code.starts_with('=');
    let code = code.trim_start_matches(['=', '&', '%', '+']);
    let home = if code.starts_with('!') {
        OperandHome::Target(0)
    } else if code.starts_with('*') {
        OperandHome::Memory
    } else if let Some(name) = code.strip_prefix('{') {
        let name = name.strip_suffix('}')?;
        if let Some(condition) = name.strip_prefix("@cc") {
            let home = OperandHome::Condition(condition.to_owned());
            return (output && is_condition(condition)).then_some(Constraint { output, home });
        }
        if let Some(register) = register(name) {
            OperandHome::General(register.number)
        } else if let Some(position) = stack_register(name) {
            OperandHome::Stack(position)
        } else {
            OperandHome::Vector(vector_register(name)?)
        }
    } else if let Ok(operand) = code.parse() {
        OperandHome::Tied(operand)
    } else {
        match code {
            "t" => OperandHome::Stack(0),
            "u" => OperandHome::Stack(1),
            _ => OperandHome::Anywhere,
        }
    };
    Some(Constraint { output, home })
}

const REGISTERS: [[&str; 4]; 16] = [
    ["rax", "eax", "ax", "al"],
    ["rcx", "ecx", "cx", "cl"],
    ["rdx", "edx", "dx", "dl"],
    ["rbx", "ebx", "bx", "bl"],
    ["rsp", "esp", "sp", "spl"],
    ["rbp", "ebp", "bp", "bpl"],
    ["rsi", "esi", "si", "sil"],
    ["rdi", "edi", "di", "dil"],
    ["r8", "r8d", "r8w", "r8b"],
    ["r9", "r9d", "r9w", "r9b"],
    ["r10", "r10d", "r10w", "r10b"],
    ["r11", "r11d", "r11w", "r11b"],
    ["r12", "r12d", "r12w", "r12b"],
    ["r13", "r13d", "r13w", "r13b"],
    ["r14", "r14d", "r14w", "r14b"],
    ["r15", "r15d", "r15w", "r15b"],
];

/// Returns the general register with this name.
pub fn register(name: &str) -> Option<Register> {
    REGISTERS.iter().enumerate().find_map(|(number, names)| {
        let at = names.iter().position(|candidate| *candidate == name)?;
        let width = [64, 32, 16, 8][at];
        Some(Register { number, width })
    })
}

fn stack_register(name: &str) -> Option<usize> {
    if name == "st" {
        return Some(0);
    }
    name.strip_prefix("st(")?.strip_suffix(')')?.parse().ok()
}

fn vector_register(name: &str) -> Option<usize> {
    let number: usize = name.strip_prefix("xmm")?.parse().ok()?;
    (number < 16).then_some(number)
}

/// An operand of an instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operand {
    /// An operand of the template, and the width given by its modifier.
    Argument(usize, Option<u32>),
    /// Bits 8 to 15 of an operand of the template.
    HighArgument(usize),
    /// A register by name.
    Named(Register),
    /// Bits 8 to 15 of a register: `%ah`.
    High(usize),
    /// A vector register.
    Vector(usize),
    /// An immediate.
    Immediate(u64),
    /// Memory.
    At(Address),
    /// A register of the x87 stack.
    Stack(usize),
    /// A label of the template.
    Label(String),
}

/// A memory operand.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Address {
    /// Whether it is relative to the thread pointer.
    pub thread: bool,
    /// The displacement, and an immediate operand of the template that is added to it.
    pub distance: i64,
    /// An operand of the template that is part of the displacement.
    pub distance_argument: Option<usize>,
    /// The base: a register, or an operand of the template that is in memory or in a register.
    pub base: Option<Box<Operand>>,
    /// The index and its factor.
    pub index: Option<(Box<Operand>, u64)>,
}

/// The repetition that a prefix asks for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Repeat {
    /// `rep` or `repe`: while the count is not zero, and for comparisons while they are equal.
    WhileEqual,
    /// `repne`.
    WhileDifferent,
}

/// An instruction. Operands are in AT&T order: the destination is last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instruction {
    /// The mnemonic, including its width suffix.
    pub name: String,
    /// The prefix that repeats it.
    pub repeat: Option<Repeat>,
    /// The operands.
    pub operands: Vec<Operand>,
}

/// The instructions of a template.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Template {
    /// The instructions.
    pub instructions: Vec<Instruction>,
    /// The labels, each with the number of the instruction behind it.
    pub labels: Vec<(String, usize)>,
}

impl Template {
    /// Returns the position of the label that an instruction names: `1b` and `1f` are the nearest
    /// label `1` before and after it.
    pub fn find(&self, name: &str, from: usize) -> Option<usize> {
        let named = |name| self.labels.iter().filter(move |label| label.0 == name);
        let number = name.get(..name.len().checked_sub(1)?)?;
        let is_local = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let found = if is_local && name.ends_with('b') {
            named(number).rfind(|label| label.1 <= from)
        } else if is_local && name.ends_with('f') {
            named(number).find(|label| label.1 > from)
        } else {
            named(name).next()
        };
        found.map(|label| label.1)
    }
}

/// Marks references to operands of the template.
const REFERENCE: char = '\u{1}';

/// Parses the instructions of a template. What is not understood is returned as the error.
pub fn template(text: &str, mut intel: bool) -> Result<Template, String> {
    let text = expand(text, intel).ok_or("a template with unknown references")?;
    let mut result = Template::default();
    let mut repeat = None;
    let text = without_comments(&text);
    for line in text.split(['\n', ';']) {
        let mut line = line.trim();
        while let Some((label, rest)) = label(line) {
            result
                .labels
                .push((label.to_owned(), result.instructions.len()));
            line = rest.trim_start();
        }
        while let Some((prefix, rest)) = prefix(line) {
            repeat = prefix.or(repeat);
            line = rest.trim_start();
        }
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match name {
            ".intel_syntax" => intel = true,
            ".att_syntax" => intel = false,
            _ => {}
        }
        if name.is_empty() || IGNORED.contains(&name) {
            continue;
        }
        let operands: Option<Vec<Operand>> = pieces(rest)
            .iter()
            .map(|piece| operand(piece, intel))
            .collect();
        let mut operands = operands.ok_or_else(|| plain(line))?;
        if intel {
            operands.reverse();
        }
        let mut name = name.to_ascii_lowercase();
        // With a prefix, these are other instructions on processors that have them.
        for (scan, count) in [("bsf", "tzcnt"), ("bsr", "lzcnt")] {
            if let Some(suffix) = name.strip_prefix(scan)
                && repeat == Some(Repeat::WhileEqual)
            {
                name = format!("{count}{suffix}");
                repeat = None;
            }
        }
        result.instructions.push(Instruction {
            name,
            repeat: repeat.take(),
            operands,
        });
    }
    Ok(result)
}

/// Directives that change nothing about what is executed.
const IGNORED: &[&str] = &[
    ".p2align",
    ".align",
    ".balign",
    ".intel_syntax",
    ".att_syntax",
];

/// Prefixes, with the repetition that they ask for.
const PREFIXES: &[(&str, Option<Repeat>)] = &[
    ("lock", None),
    ("data16", None),
    ("notrack", None),
    ("bnd", None),
    ("rex64", None),
    ("rep", Some(Repeat::WhileEqual)),
    ("repe", Some(Repeat::WhileEqual)),
    ("repz", Some(Repeat::WhileEqual)),
    ("repne", Some(Repeat::WhileDifferent)),
    ("repnz", Some(Repeat::WhileDifferent)),
];

/// Splits off a prefix.
fn prefix(line: &str) -> Option<(Option<Repeat>, &str)> {
    PREFIXES.iter().find_map(|(name, repeat)| {
        let rest = line.strip_prefix(name)?;
        let ends = rest.is_empty() || rest.starts_with(char::is_whitespace);
        ends.then_some((*repeat, rest))
    })
}

/// Splits off a label.
fn label(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.split_once(':')?;
    let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$');
    (!name.is_empty() && name.chars().all(letters)).then_some((name, rest))
}

/// Removes comments: from `#` or `//` to the end of the line, and between `/*` and `*/`.
fn without_comments(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/*") {
        result.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    result.push_str(rest);
    let lines = result.lines().map(|line| {
        let end = line.find('#').into_iter().chain(line.find("//")).min();
        &line[..end.unwrap_or(line.len())]
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns an instruction as it was written, with its references to operands.
fn plain(line: &str) -> String {
    let mut inside = false;
    let letters = line.chars().map(|letter| {
        if letter == REFERENCE {
            inside = !inside;
            if inside { "%" } else { "" }.to_owned()
        } else {
            letter.to_string()
        }
    });
    letters.collect()
}

/// Selects the variant of the dialect in each alternative, marks operand references, and replaces
/// `${:uid}` (`%=`).
fn expand(text: &str, intel: bool) -> Option<String> {
    let mut result = String::new();
    let mut rest = text;
    let mut skipping = false;
    while let Some(at) = rest.find('$') {
        if !skipping {
            result.push_str(&rest[..at]);
        }
        rest = &rest[at + 1..];
        let first = rest.chars().next()?;
        let mut used = first.len_utf8();
        let mut piece = String::new();
        match first {
            '(' => skipping = intel,
            '|' => skipping = !intel,
            ')' => skipping = false,
            '$' => piece.push('$'),
            '{' => {
                let end = rest.find('}')?;
                piece = match &rest[1..end] {
                    ":uid" => "0".to_owned(),
                    inside => format!("{REFERENCE}{inside}{REFERENCE}"),
                };
                used = end + 1;
            }
            _ => {
                used = rest
                    .find(|digit: char| !digit.is_ascii_digit())
                    .unwrap_or(rest.len());
                if used == 0 {
                    return None;
                }
                piece = format!("{REFERENCE}{}{REFERENCE}", &rest[..used]);
            }
        }
        if !skipping {
            result.push_str(&piece);
        }
        rest = &rest[used..];
    }
    if !skipping {
        result.push_str(rest);
    }
    Some(result)
}

/// Splits operands at commas that are not inside parentheses or brackets.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                pieces.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    if !last.is_empty() {
        pieces.push(last);
    }
    pieces
}

fn operand(text: &str, intel: bool) -> Option<Operand> {
    let text = text.trim();
    let text = text.strip_prefix('*').unwrap_or(text);
    if let Some(inside) = whole_reference(text) {
        return reference(inside);
    }
    if let Some(rest) = text.strip_prefix('$') {
        return integer(rest).map(|number| Operand::Immediate(number as u64));
    }
    let name = text.strip_prefix('%').unwrap_or(text);
    if let Some(named) = named(name) {
        return Some(named);
    }
    if intel {
        if let Some(address) = intel_address(text) {
            return Some(Operand::At(address));
        }
        if let Some(number) = integer(text) {
            return Some(Operand::Immediate(number as u64));
        }
    } else if let Some(address) = address(text) {
        return Some(Operand::At(address));
    }
    let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$');
    (!text.is_empty() && text.chars().all(letters)).then(|| Operand::Label(text.to_owned()))
}

/// Returns the inside of a reference that is the whole text.
fn whole_reference(text: &str) -> Option<&str> {
    let (inside, rest) = text.strip_prefix(REFERENCE)?.split_once(REFERENCE)?;
    rest.is_empty().then_some(inside)
}

fn named(name: &str) -> Option<Operand> {
    if let Some(register) = register(name) {
        return Some(Operand::Named(register));
    }
    if let Some(position) = stack_register(name) {
        return Some(Operand::Stack(position));
    }
    if let Some(high) = ["ah", "ch", "dh", "bh"]
        .iter()
        .position(|high| *high == name)
    {
        return Some(Operand::High(high));
    }
    vector_register(name).map(Operand::Vector)
}

/// Parses `%fs:8+$1(base,index,scale)`, in which every part may be missing.
fn address(text: &str) -> Option<Address> {
    let mut address = Address::default();
    let mut rest = text;
    if let Some(inside) = rest.strip_prefix("%fs:") {
        address.thread = true;
        rest = inside;
    }
    let (mut distance, inside) = match rest.strip_suffix(')').and_then(|rest| rest.split_once('('))
    {
        Some((distance, inside)) => (distance, Some(inside)),
        None => (rest, None),
    };
    match inside {
        // `%fs:(0)`
        Some(inside) if integer(inside.trim()).is_some() => distance = inside,
        Some(inside) => {
            let parts = pieces(inside);
            let part = |at: usize| parts.get(at).copied().filter(|part| !part.is_empty());
            if let Some(base) = part(0) {
                address.base = Some(Box::new(place(base)?));
            }
            if let Some(index) = part(1) {
                let scale = part(2).map_or(Some(1), integer)?;
                address.index = Some((Box::new(place(index)?), scale as u64));
            }
        }
        None => {}
    }
    for (negative, term) in terms(distance) {
        add_distance(&mut address, negative, term, inside.is_some())?;
    }
    let known = address.thread || address.base.is_some() || address.index.is_some();
    known.then_some(address)
}

/// Adds a term of the displacement. A reference to an operand in memory is the base where there is
/// no other.
fn add_distance(address: &mut Address, negative: bool, term: &str, has_base: bool) -> Option<()> {
    if let Some(number) = integer(term) {
        let signed = if negative { -number } else { number };
        address.distance = address.distance.wrapping_add(signed);
        return Some(());
    }
    let Operand::Argument(index, _) = reference(whole_reference(term)?)? else {
        return None;
    };
    if negative {
        return None;
    }
    if has_base {
        address.distance_argument = Some(index);
    } else if address.base.is_none() {
        address.base = Some(Box::new(Operand::Argument(index, None)));
    } else {
        return None;
    }
    Some(())
}

/// Returns the signed terms of a sum. A number may stand directly before a reference: `8$1`.
fn terms(sum: &str) -> Vec<(bool, &str)> {
    let mut terms = Vec::new();
    let (mut negative, mut start, mut inside) = (false, 0, false);
    let mut end = |start: usize, at: usize, negative: bool| {
        let term = sum[start..at].trim();
        if !term.is_empty() {
            terms.push((negative, term));
        }
    };
    for (at, letter) in sum.char_indices() {
        match letter {
            REFERENCE => {
                if !inside && !sum[..at].ends_with('*') {
                    end(start, at, negative);
                    (start, negative) = (at, negative && start == at);
                }
                inside = !inside;
            }
            '+' | '-' if !inside => {
                end(start, at, negative);
                (start, negative) = (at + 1, letter == '-');
            }
            _ => {}
        }
    }
    end(start, sum.len(), negative);
    terms
}

/// Parses a register, or an operand of the template, that is part of an address.
fn place(text: &str) -> Option<Operand> {
    let text = text.trim();
    if let Some(inside) = whole_reference(text) {
        return reference(inside);
    }
    register(text.strip_prefix('%').unwrap_or(text)).map(Operand::Named)
}

/// Parses `qword ptr [base + 4*index - 8]`.
fn intel_address(text: &str) -> Option<Address> {
    let text = match text.to_ascii_lowercase().find(" ptr ") {
        Some(at) => text[at + 5..].trim_start(),
        None => text,
    };
    let mut address = Address::default();
    let text = match text.strip_prefix("fs:") {
        Some(rest) => {
            address.thread = true;
            rest
        }
        None => text,
    };
    let inside = text.strip_prefix('[')?.strip_suffix(']')?;
    for (negative, term) in terms(inside) {
        if let Some(number) = integer(term) {
            let signed = if negative { -number } else { number };
            address.distance = address.distance.wrapping_add(signed);
            continue;
        }
        let (term, scale) = match term.split_once('*') {
            Some((a, b)) => match integer(a.trim()) {
                Some(scale) => (b, Some(scale as u64)),
                None => (a, Some(integer(b.trim())? as u64)),
            },
            None => (term, None),
        };
        let part = Box::new(place(term).filter(|_| !negative)?);
        if scale.is_none() && address.base.is_none() {
            address.base = Some(part);
        } else if address.index.is_none() {
            address.index = Some((part, scale.unwrap_or(1)));
        } else {
            return None;
        }
    }
    Some(address)
}

fn reference(inside: &str) -> Option<Operand> {
    let (number, modifier) = match inside.split_once(':') {
        Some((number, modifier)) => (number, Some(modifier)),
        None => (inside, None),
    };
    let index = number.parse().ok()?;
    let width = match modifier {
        None | Some("P" | "c" | "n" | "a" | "l" | "x" | "") => None,
        Some("b") => Some(8),
        Some("h") => return Some(Operand::HighArgument(index)),
        Some("w") => Some(16),
        Some("k" | "e") => Some(32),
        Some("q" | "r") => Some(64),
        // The upper half of a pair of words in memory.
        Some("H") => {
            return Some(Operand::At(Address {
                distance: 8,
                base: Some(Box::new(Operand::Argument(index, None))),
                ..Address::default()
            }));
        }
        Some(_) => return None,
    };
    Some(Operand::Argument(index, width))
}

fn integer(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let number = match lower.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None if digits.len() > 1 && digits.starts_with('0') => {
            u64::from_str_radix(digits, 8).ok()?
        }
        None => digits.parse().ok()?,
    } as i64;
    Some(if negative {
        number.wrapping_neg()
    } else {
        number
    })
}

const CONDITIONS: &[&str] = &[
    "e", "z", "ne", "nz", "c", "b", "nae", "nc", "ae", "nb", "s", "ns", "o", "no", "a", "nbe",
    "be", "na", "l", "nge", "ge", "nl", "g", "nle", "le", "ng", "p", "pe", "np", "po",
];

pub fn is_condition(code: &str) -> bool {
    CONDITIONS.contains(&code)
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
