//! Inline assembly. The vm recognises frequent pieces of the libc by their text; it parses and
//! interprets all others.

mod arithmetic;
mod bits;
mod execute;
mod flow;
mod machine;
mod parse;
mod repeated;
mod step;
mod vectors;
mod words;
mod x87;
mod x87_functions;

pub use execute::processor;

use everett_ir::code::{Assembly, AtomicOp, Callee};

use self::machine::Machine;
use self::parse::OperandHome;
use super::intrinsics::done;
use crate::bug::{Bug, BugKind};
use crate::value::Value;
use crate::vm::{Arguments, Done, Handler, Interrupt, SystemCall, Vm};

/// A template, its constraints, and the handler.
type Row = (&'static str, &'static str, Handler);

/// Assembly that is executed often.
const FREQUENT: &[Row] = &[
    ("syscall", "={ax},{ax}", system_call),
    ("syscall", "={ax},{ax},{di}", system_call),
    ("syscall", "={ax},{ax},{di},{si}", system_call),
    ("syscall", "={ax},{ax},{di},{si},{dx}", system_call),
    ("syscall", "={ax},{ax},{di},{si},{dx},{r10}", system_call),
    (
        "syscall",
        "={ax},{ax},{di},{si},{dx},{r10},{r8}",
        system_call,
    ),
    (
        "syscall",
        "={ax},{ax},{di},{si},{dx},{r10},{r8},{r9}",
        system_call,
    ),
    ("mov %fs:0,$0", "=r", thread_pointer),
    (
        "lock ; cmpxchg $3, $1",
        "={ax},=*m,{ax},r",
        compare_exchange,
    ),
    ("xchg $0, $1", "=r,=*m,0", exchange),
    ("lock ; xadd $0, $1", "=r,=*m,0", fetch_add),
    ("lock ; incl $0", "=*m,*m", increment),
    ("lock ; decl $0", "=*m,*m", decrement),
    ("mov $1, $0 ; lock ; orl $$0,(%rsp)", "=*m,r", store),
    ("pause", "", nothing),
    ("", "", nothing),
    ("", "=r,0", first),
];

/// Finds the handler of a piece of inline assembly.
pub fn resolve(assembly: &Assembly) -> Handler {
    let template = assembly.template.trim();
    let codes = assembly.constraints.split(',');
    let operands: Vec<&str> = codes.filter(|code| !code.starts_with('~')).collect();
    let operands = operands.join(",");
    let known = FREQUENT
        .iter()
        .find(|row| row.0 == template && row.1 == operands);
    known.map_or(interpret, |row| row.2)
}

/// Interprets assembly instruction by instruction.
fn interpret(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let Callee::Assembly(index) = args.call.callee else {
        return Err(args.unsupported("as inline assembly"));
    };
    let assembly = vm.image.program().assembly.get(index as usize);
    let assembly = assembly.ok_or_else(|| args.unsupported("as inline assembly"))?;
    let constraints = parse::constraints(&assembly.constraints)
        .ok_or_else(|| unknown(args, "these constraints"))?;
    let template =
        parse::template(&assembly.template, assembly.intel).map_err(|line| unknown(args, &line))?;
    let mut machine = Machine::new(vm, args, assembly, &constraints)?;
    let exit = flow::run(&mut machine, &template)?;
    x87::check_control(&machine)?;
    let mut results = machine.finish(assembly, &constraints)?;
    let branches = constraints
        .iter()
        .any(|constraint| matches!(constraint.home, OperandHome::Target(_)));
    if branches {
        results.push(Value::concrete(exit));
    }
    Ok(match results.len() {
        0 => Done::Void,
        _ => done(results),
    })
}

/// Returns the finding for assembly with something that is not supported.
fn unknown(args: &Arguments<'_>, what: &str) -> Interrupt {
    let message = format!(
        "inline assembly that is not supported, because of {what}: {:?}",
        args.name
    );
    Bug::new(BugKind::Unsupported, message).into()
}

/// Barriers and hints.
fn nothing(_: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    Ok(Done::Void)
}

/// Returns the operand: an optimisation barrier for a value.
fn first(_: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    Ok(done(args.operand(0)))
}

/// Executes `syscall`: the first operand is the number, and the arguments follow in order.
fn system_call(_: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let call = SystemCall::new(args.get(0), std::array::from_fn(|at| args.get(at + 1)));
    Err(Interrupt::SystemCall(Box::new(call)))
}

/// Returns the thread pointer, which is stored at the base of `%fs`.
fn thread_pointer(vm: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    let base = vm.thread.fs_base;
    let value = vm.load(Value::concrete(base), 8)?;
    Ok(Done::Value(value))
}

/// Returns the size of the register that is exchanged with memory.
fn bytes(args: &Arguments<'_>) -> u8 {
    (args.width(1) / 8).clamp(1, 8) as u8
}

fn compare_exchange(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let (expected, new) = ([args.get(1)], [args.get(2)]);
    let results = vm.compare_exchange(bytes(args), args.get(0), &expected, &new)?;
    Ok(Done::Value(results[0]))
}

fn exchange(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let old = vm.atomic_update(AtomicOp::Exchange, bytes(args), args.get(0), args.get(1))?;
    Ok(Done::Value(old))
}

fn fetch_add(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let old = vm.atomic_update(AtomicOp::Add, bytes(args), args.get(0), args.get(1))?;
    Ok(Done::Value(old))
}

fn increment(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    vm.atomic_update(AtomicOp::Add, 4, args.get(0), Value::concrete(1))?;
    Ok(Done::Void)
}

fn decrement(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    vm.atomic_update(AtomicOp::Sub, 4, args.get(0), Value::concrete(1))?;
    Ok(Done::Void)
}

fn store(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    vm.store(args.get(0), usize::from(bytes(args)), args.get(1))?;
    Ok(Done::Void)
}

#[cfg(test)]
mod tests;
