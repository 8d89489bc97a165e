//! Inline assembly, recognised by its template.

use everett_ir::code::Assembly;

use super::Handler;
use crate::value::Value;
use crate::vm::{Arguments, Done, Interrupt, SystemCall, Vm};

/// A template and what it does. Templates are compared without white space at their ends.
type Row = (&'static str, Handler);

const TEMPLATES: &[Row] = &[
    ("", nothing),
    ("syscall", system_call),
    ("mov %fs:0,$0", thread_pointer),
    ("mov %fs:0, $0", thread_pointer),
    ("pause", nothing),
];

/// The operation for a piece of inline assembly.
pub fn resolve(assembly: &Assembly) -> Option<Handler> {
    let template = assembly.template.trim();
    TEMPLATES
        .iter()
        .find(|row| row.0 == template)
        .map(|row| row.1)
}

/// Barriers and hints; an operand that is tied to the result passes through.
fn nothing(_: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    match args.call.result.registers() {
        0 => Ok(Done::Void),
        count => Ok(Done::Values(
            (0..count as usize).map(|at| args.get(at)).collect(),
        )),
    }
}

/// `syscall`: the number is the first operand, arguments follow in order.
fn system_call(_: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let mut values = [Value::ZERO; 6];
    for (at, value) in values.iter_mut().enumerate() {
        *value = args.get(at + 1);
    }
    let call = SystemCall {
        number: args.get(0),
        args: values,
    };
    Err(Interrupt::SystemCall(Box::new(call)))
}

/// The thread's own pointer, which lies at the base of `%fs`.
fn thread_pointer(vm: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    let base = vm.thread.fs_base;
    let value = vm.load(Value::concrete(base), 8)?;
    Ok(Done::Value(value))
}
