//! The interface of the unwinder. A program's own unwinder reads tables that exist only in machine
//! code; the vm instead unwinds by the clauses of landing pads.

use super::{Operation, replaced};
use crate::thread::OnReturn;
use crate::value::Value;
use crate::vm::{Arguments, Declined, Done, Interrupt, Vm};

/// The operations of this family.
pub const OPERATIONS: &[Operation] = &[
    replaced("_Unwind_RaiseException", raise_exception),
    replaced("_Unwind_Resume_or_Rethrow", raise_exception),
    replaced("_Unwind_Resume", resume),
    replaced("_Unwind_DeleteException", delete_exception),
    replaced("_Unwind_Backtrace", backtrace),
    // Only personality functions call these, and the vm never calls a personality function.
    replaced("_Unwind_GetIP", unknown),
    replaced("_Unwind_GetIPInfo", unknown),
    replaced("_Unwind_GetGR", unknown),
    replaced("_Unwind_GetCFA", unknown),
    replaced("_Unwind_GetRegionStart", unknown),
    replaced("_Unwind_GetLanguageSpecificData", unknown),
    replaced("_Unwind_GetTextRelBase", unknown),
    replaced("_Unwind_GetDataRelBase", unknown),
    replaced("_Unwind_FindEnclosingFunction", unknown),
    replaced("_Unwind_SetGR", nothing),
    replaced("_Unwind_SetIP", nothing),
];

/// `_URC_END_OF_STACK`.
const END_OF_STACK: u64 = 5;
/// `_URC_FOREIGN_EXCEPTION_CAUGHT`.
const FOREIGN_EXCEPTION_CAUGHT: u64 = 1;
/// Offset of `exception_cleanup` in `_Unwind_Exception`.
const EXCEPTION_CLEANUP: u64 = 8;

fn unknown(_: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    Ok(Done::Value(Value::ZERO))
}

fn nothing(_: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    Ok(Done::Void)
}

fn raise_exception(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let exception = vm.concretize(args.get(0))?;
    vm.raise(exception)
}

fn resume(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    vm.resume_unwinding(args.get(0))?;
    Ok(Done::Moved)
}

/// Calls the exception's cleanup function, if it has one.
fn delete_exception(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let exception = vm.concretize(args.get(0))?;
    let place = Value::concrete(exception.wrapping_add(EXCEPTION_CLEANUP));
    let cleanup = vm.load(place, 8)?;
    let cleanup = vm.concretize(cleanup)?;
    if cleanup == 0 {
        return Ok(Done::Void);
    }
    let Some(function) = vm.function_at(cleanup) else {
        return Err(args.unsupported("for an exception whose clean-up is not a function"));
    };
    let values = [FOREIGN_EXCEPTION_CAUGHT, exception].map(Value::concrete);
    vm.push_frame(function, &values, None, OnReturn::Caller)?;
    Ok(Done::Moved)
}

/// Reports an empty stack and records this as [`Declined`]: there are no machine frames that a
/// callback could inspect.
fn backtrace(vm: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    let sites = vm.innermost_sites();
    vm.declined.push(Declined {
        call: "_Unwind_Backtrace",
        what: "a backtrace (it is empty)",
        sites,
    });
    Ok(Done::Value(Value::concrete(END_OF_STACK)))
}
