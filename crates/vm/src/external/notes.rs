//! Functions of `klee/klee.h` by which a program says something to the user of a run. Natively they
//! have no effect.

use super::{Operation, replaced};
use crate::oracle::{Narrowed, Note};
use crate::value::{Value, signed};
use crate::vm::{Arguments, Done, Interrupt, Vm};

/// The operations of this family.
pub const OPERATIONS: &[Operation] = &[
    replaced("klee_warning", klee_warning),
    replaced("klee_warning_once", klee_warning_once),
    replaced("klee_print_expr", klee_print_expr),
    replaced("klee_print_range", klee_print_range),
    replaced("klee_stack_trace", klee_stack_trace),
];

impl Vm<'_> {
    /// Says something to the user, when the instruction has completed.
    pub(crate) fn note(&mut self, note: Note) {
        self.asks();
        self.oracle.note(note);
    }

    /// Returns a message with the name of the function that calls, as KLEE shows it.
    fn message_of_caller(&mut self, pointer: Value) -> Result<String, Interrupt> {
        let message = self.text(pointer)?;
        let functions = &self.image.program().functions;
        let frame = self.thread.frames.last();
        let name = frame.map(|frame| &*functions[frame.function.0 as usize].name);
        Ok(format!("{}: {message}", name.unwrap_or("?")))
    }

    /// Shows a value: symbolic ones as expressions in KLEE's notation, numbers as signed ones.
    fn shown(&self, value: Value, width: u32) -> String {
        match value.term {
            Some(term) => self.arena.kquery(term).to_string(),
            None => signed(value.bits, width.min(64)).to_string(),
        }
    }
}

fn klee_warning(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let message = vm.message_of_caller(args.get(0))?;
    vm.note(Note::Warning(message));
    Ok(Done::Void)
}

fn klee_warning_once(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let message = vm.message_of_caller(args.get(0))?;
    vm.note(Note::WarningOnce(message));
    Ok(Done::Void)
}

fn klee_print_expr(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let message = vm.text(args.get(0))?;
    let width = args.width(1);
    let values = args.values.iter().skip(1);
    let values: Vec<String> = values.map(|value| vm.shown(*value, width)).collect();
    let text = format!("{message}:{}", values.join(" "));
    vm.note(Note::Text(text));
    Ok(Done::Void)
}

/// Prints a value, and for a symbolic one the values that it can have. The range has no influence on
/// the path.
fn klee_print_range(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let message = vm.text(args.get(0))?;
    let (value, width) = (args.get(1), args.width(1));
    let range = match value.term {
        None => String::new(),
        Some(term) => {
            vm.asks();
            match vm.oracle.narrow(vm.arena, term, &|_| true)? {
                Narrowed::Value(value) => format!(" == {}", signed(value, width)),
                Narrowed::Range(least, most) if least == most => {
                    format!(" == {}", signed(least, width))
                }
                Narrowed::Range(least, most) => format!(" (in [{least}, {most}])"),
            }
        }
    };
    let text = format!("{message}:{}{range}", vm.shown(value, width));
    vm.note(Note::Text(text));
    Ok(Done::Void)
}

/// Prints the functions that are called, innermost first, with the registers of their arguments.
fn klee_stack_trace(vm: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    let program = vm.image.program();
    let mut lines = Vec::new();
    for frame in vm.thread.frames.iter().rev() {
        let Some(code) = vm.image.code(frame.function) else {
            continue;
        };
        let upto = (frame.pc as usize + 1).min(code.locations.len());
        let mut near = code.locations[..upto].iter().rev();
        let Some(location) = near.find_map(|location| *location) else {
            continue;
        };
        let place = program.location(location);
        let (file, line) = (program.string(place.file), place.line);
        let name = &program.functions[frame.function.0 as usize].name;
        let registers = vm.thread.registers.iter().skip(frame.base as usize);
        let registers = registers.take(code.parameter_registers as usize);
        let arguments: Vec<String> = registers
            .map(|value| match value.term {
                Some(_) => "symbolic".to_owned(),
                None => value.bits.to_string(),
            })
            .collect();
        let number = lines.len();
        let arguments = arguments.join(", ");
        lines.push(format!(
            "\t#{number} in {name}({arguments}) at {file}:{line}"
        ));
    }
    vm.note(Note::Text(lines.join("\n")));
    Ok(Done::Void)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;

    #[test]
    fn messages_name_the_values() {
        let mut harness = Harness::new();
        let name = Value::concrete(harness.block(b"n\0"));
        let minus_two = Value::concrete(-2i64 as u64);
        let symbolic = harness.symbolic(5, 8);
        for value in [minus_two, symbolic] {
            let done = harness.call("klee_print_expr", &[name, value]);
            assert_eq!(done, Ok(Done::Void));
        }
        assert_eq!(harness.world.notes[0], Note::Text("n:-2".to_owned()));
        let Note::Text(text) = &harness.world.notes[1] else {
            panic!("it is a text");
        };
        assert!(text.starts_with("n:") && text.len() > 2, "{text}");
        let done = harness.call("klee_print_range", &[name, symbolic]);
        assert_eq!(done, Ok(Done::Void));
        let done = harness.call("klee_warning", &[name]);
        assert_eq!(done, Ok(Done::Void));
        let warning = harness.world.notes.last();
        assert_eq!(warning, Some(&Note::Warning("?: n".to_owned())));
    }
}
