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
    codes
        .filter(|code| !code.starts_with('~'))
        .map(constraint)
        .collect()
}

fn constraint(code: &str) -> Option<Constraint> {
    let output = code.starts_with('=');
    let code = code.trim_start_matches(['=', '&', '%', '+']);
    if code.starts_with('!') {
        return None;
    }
    let home = if code.starts_with('*') {
        OperandHome::Memory
    } else if let Some(name) = code.strip_prefix('{') {
        let name = name.strip_suffix('}')?;
        if let Some(condition) = name.strip_prefix("@cc") {
            let home = OperandHome::Condition(condition.to_owned());
            return (output && is_condition(condition)).then_some(Constraint { output, home });
        }
        match (register(name), stack_register(name)) {
            (Some(register), _) => OperandHome::General(register.number),
            (None, Some(position)) => OperandHome::Stack(position),
            (None, None) if name.starts_with("xmm") => OperandHome::Anywhere,
            (None, None) => return None,
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

/// An operand of an instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operand {
    /// An operand of the template, and the width given by its modifier.
    Argument(usize, Option<u32>),
    /// A register by name.
    Named(Register),
    /// An immediate.
    Immediate(u64),
    /// Memory at a displacement from a pointer in a template operand or register.
    At(i64, Box<Operand>),
    /// The word at `%fs:0`.
    ThreadBase,
    /// A register of the x87 stack.
    Stack(usize),
}

/// An instruction. Operands are in AT&T order: the destination is last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instruction {
    /// The mnemonic, including its width suffix.
    pub name: String,
    /// The operands.
    pub operands: Vec<Operand>,
}

/// Marks references to operands of the template.
const REFERENCE: char = '\u{1}';

/// Parses the instructions of a template. `None` if it is not supported.
pub fn template(text: &str) -> Option<Vec<Instruction>> {
    let text = expand(text)?;
    let mut instructions = Vec::new();
    let mut intel = false;
    for line in text.split(['\n', ';']) {
        let mut line = line.trim();
        for prefix in ["lock", "rep", "repz", "data16"] {
            if line == prefix {
                line = "";
            } else if let Some(rest) = line.strip_prefix(prefix)
                && rest.starts_with(char::is_whitespace)
            {
                line = rest.trim_start();
            }
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let pieces = pieces(rest);
        intel |= pieces.iter().any(|piece| register(piece).is_some());
        let operands: Option<Vec<Operand>> = pieces.iter().map(|piece| operand(piece)).collect();
        instructions.push(Instruction {
            name: name.to_ascii_lowercase(),
            operands: operands?,
        });
    }
    if intel {
        instructions
            .iter_mut()
            .for_each(|instruction| instruction.operands.reverse());
    }
    Some(instructions)
}

/// Selects the AT&T variant of each dialect alternative, and marks operand references.
fn expand(text: &str) -> Option<String> {
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
            '(' => {}
            '|' => skipping = true,
            ')' => skipping = false,
            '$' => piece.push('$'),
            '{' => {
                let end = rest.find('}')?;
                piece = format!("{REFERENCE}{}{REFERENCE}", &rest[1..end]);
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

/// Splits operands at commas that are not inside parentheses.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
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

fn operand(text: &str) -> Option<Operand> {
    let text = text.trim();
    if let Some(rest) = text.strip_prefix(REFERENCE)
        && let Some((inside, "")) = rest.split_once(REFERENCE)
    {
        return reference(inside);
    }
    if let Some(rest) = text.strip_prefix('$') {
        return integer(rest).map(|number| Operand::Immediate(number as u64));
    }
    if matches!(text, "%fs:0" | "%fs:(0)" | "%fs:0x0") {
        return Some(Operand::ThreadBase);
    }
    let name = text.strip_prefix('%').unwrap_or(text);
    if let Some(register) = register(name) {
        return Some(Operand::Named(register));
    }
    if let Some(position) = stack_register(name) {
        return Some(Operand::Stack(position));
    }
    if let Some(inside) = text.strip_suffix(')') {
        let (distance, base) = inside.split_once('(')?;
        let distance = match distance.trim() {
            "" => 0,
            text => integer(text)?,
        };
        let base = operand(base)?;
        let is_pointer = matches!(base, Operand::Argument(..) | Operand::Named(_));
        return is_pointer.then(|| Operand::At(distance, Box::new(base)));
    }
    // Immediates without `$` occur only in the Intel dialect.
    integer(text).map(|number| Operand::Immediate(number as u64))
}

fn reference(inside: &str) -> Option<Operand> {
    let (number, modifier) = match inside.split_once(':') {
        Some((number, modifier)) => (number, Some(modifier)),
        None => (inside, None),
    };
    let width = match modifier {
        None | Some("P" | "c" | "n" | "a" | "") => None,
        Some("b") => Some(8),
        Some("w") => Some(16),
        Some("k" | "e") => Some(32),
        Some("q" | "r") => Some(64),
        Some(_) => return None,
    };
    Some(Operand::Argument(number.parse().ok()?, width))
}

fn integer(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let number = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
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
    "be", "na", "l", "nge", "ge", "nl", "g", "nle", "le", "ng",
];

pub fn is_condition(code: &str) -> bool {
    CONDITIONS.contains(&code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_are_found() {
        let found = constraints("={ax},=*m,{ax},r,~{memory},~{dirflag}").expect("known");
        assert_eq!(found.len(), 4);
        assert_eq!(
            found[0],
            Constraint {
                output: true,
                home: OperandHome::General(0)
            }
        );
        assert_eq!(
            found[1],
            Constraint {
                output: true,
                home: OperandHome::Memory
            }
        );
        assert_eq!(
            found[3],
            Constraint {
                output: false,
                home: OperandHome::Anywhere
            }
        );
        let found = constraints("=r,=&r,0,rme,%1,rme").expect("known");
        assert_eq!(found[4].home, OperandHome::Tied(1));
        assert_eq!(
            constraints("={st},={ax},{st(1)},0").expect("known")[2].home,
            OperandHome::Stack(1)
        );
        assert_eq!(constraints("r,!i"), None);
    }

    #[test]
    fn templates_are_taken_apart() {
        let found = template("lock ; cmpxchg $3, $1").expect("known");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].name, "cmpxchg");
        assert_eq!(
            found[0].operands,
            [Operand::Argument(3, None), Operand::Argument(1, None)]
        );
        let found = template("mov $1, $0 ; lock ; orl $$0,(%rsp)").expect("known");
        assert_eq!(found[1].operands[0], Operand::Immediate(0));
        assert!(matches!(found[1].operands[1], Operand::At(0, _)));
        let found = template("  xchg$(q$|$)  $(%$|$)rbx,${1:q}\n  cpuid").expect("known");
        assert_eq!(found[0].name, "xchgq");
        assert_eq!(
            found[0].operands[0],
            Operand::Named(Register {
                number: 3,
                width: 64
            })
        );
        assert_eq!(found[0].operands[1], Operand::Argument(1, Some(64)));
        // The Intel dialect has the reverse operand order.
        let found = template("mov ${0:q}, rbx\ncpuid").expect("known");
        assert_eq!(found[0].operands[1], Operand::Argument(0, Some(64)));
        assert_eq!(template("mov 3(%rax,%rbx,2), $0"), None);
        assert_eq!(template("jmp 1f"), None);
    }
}
