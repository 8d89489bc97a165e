//! A readable listing of lowered functions.

use std::fmt::Write;

use crate::code::{Body, Callee, Code, FunctionId, Inst, Operand, Program};

/// Returns the code of a function, one instruction per line.
pub fn print(program: &Program, id: FunctionId) -> String {
    let mut out = String::new();
    let Some(function) = program.functions.get(id.0 as usize) else {
        return out;
    };
    match &function.body {
        Body::External(external) => {
            let name = program
                .externals
                .get(external.0 as usize)
                .map_or("", String::as_str);
            let _ = writeln!(out, "{}: operation {name}", function.name);
        }
        Body::Code(code) => {
            let _ = writeln!(
                out,
                "{}: {} registers, {} of them parameters",
                function.name, code.registers, code.parameter_registers
            );
            for (pc, inst) in code.instructions.iter().enumerate() {
                let line = line_of(program, code, pc);
                let _ = writeln!(out, "{pc:5}  {}{line}", describe(program, code, inst));
            }
        }
    }
    out
}

fn line_of(program: &Program, code: &Code, pc: usize) -> String {
    match code.locations.get(pc).copied().flatten() {
        Some(id) if (id.0 as usize) < program.locations.len() => {
            format!("  ; line {}", program.location(id).line)
        }
        _ => String::new(),
    }
}

fn describe(program: &Program, code: &Code, inst: &Inst) -> String {
    let text = with_operands(code, &format!("{inst:?}"));
    let detail = match inst {
        Inst::Call { call } => describe_call(program, code, *call),
        Inst::Switch { table, .. } => code
            .switches
            .get(*table as usize)
            .map(|table| format!("{table:?}")),
        Inst::Branch { target, .. } | Inst::CompareBranch { target, .. } => code
            .branches
            .get(*target as usize)
            .map(|targets| format!("{targets:?}")),
        Inst::Return {
            values: (start, count),
        } => {
            let range = *start as usize..(*start as usize).saturating_add(*count as usize);
            code.operands.get(range).map(|list| operands(code, list))
        }
        Inst::Unsupported { what } => code.unsupported.get(*what as usize).cloned(),
        _ => None,
    };
    match detail {
        Some(detail) => format!("{text}  {detail}"),
        None => text,
    }
}

fn describe_call(program: &Program, code: &Code, call: u32) -> Option<String> {
    let call = code.calls.get(call as usize)?;
    let callee = match call.callee {
        Callee::Function(id) => program.functions.get(id.0 as usize)?.name.clone(),
        Callee::External(id) => format!("operation {}", program.externals.get(id.0 as usize)?),
        Callee::Assembly(index) => format!("asm {:?}", program.assembly.get(index as usize)?),
        Callee::Pointer(operand) => format!("*{}", operand_text(code, operand)),
    };
    let unwind = match call.unwind {
        Some(pad) => format!(" unwind {:?}", code.landing_pads.get(pad as usize)),
        None => String::new(),
    };
    let args = operands(code, &call.args);
    Some(format!(
        "r{} = {callee}({args}): {:?}{unwind}",
        call.dst, call.result
    ))
}

fn operands(code: &Code, list: &[Operand]) -> String {
    let texts: Vec<String> = list
        .iter()
        .map(|operand| operand_text(code, *operand))
        .collect();
    texts.join(", ")
}

fn operand_text(code: &Code, operand: Operand) -> String {
    match (operand.as_register(), operand.as_constant()) {
        (Some(register), _) => format!("r{register}"),
        (_, Some(index)) => match code.constants.get(index as usize) {
            Some(word) if *word < 1 << 16 => format!("{word}"),
            Some(word) => format!("{word:#x}"),
            None => format!("constant {index}?"),
        },
        (None, None) => String::new(),
    }
}

/// Replaces the raw form of operands by register names and values.
fn with_operands(code: &Code, text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("Operand(") {
        out.push_str(before);
        let Some((raw, after)) = after.split_once(')') else {
            break;
        };
        let raw: u32 = raw.parse().unwrap_or(0);
        let operand = if raw >> 31 == 0 {
            Operand::register(raw)
        } else {
            Operand::constant(raw & (u32::MAX >> 1))
        };
        out.push_str(&operand_text(code, operand));
        rest = after;
    }
    out.push_str(rest);
    out
}
