//! Intercepted functions: libc functions of the program that fault injection can make fail.
//!
//! Only calls from outside of the C library count: what a library function calls for its own work
//! is no business of the program.

use everett_ir::code::{ExternalId, FunctionId, ValueType};
use std::sync::Arc;

use super::plain_name;
use crate::call_arguments::ShownArgument;
use crate::choice::{ChoiceSite, FaultNames};
use crate::stacks::StackId;
use crate::thread::OnReturn;
use crate::value::Value;
use crate::vm::{Arguments, Done, Handler, Interrupt, Vm};

/// The bit of musl's `FILE` that says that an error has occurred, in the first word.
pub const STREAM_ERROR: u64 = 32;

/// A libc function that can fail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailingFunction {
    /// The name, followed by `()`.
    pub name: String,
    /// The symbols by which programs call it.
    pub symbols: Vec<String>,
    /// Its failures.
    pub failures: Vec<FunctionFailure>,
    /// The argument whose error indicator a failure sets: a stream.
    pub stream: Option<usize>,
    /// Whether it does its work even if it fails.
    pub is_done: bool,
    /// What its arguments are.
    pub arguments: Vec<ShownArgument>,
}

/// A failure of a libc function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FunctionFailure {
    /// The name: an errno, or `=VALUE`, or both of them.
    pub name: String,
    /// The errno that it sets, if it sets one.
    pub errno: Option<u32>,
    /// The return value.
    pub value: i64,
}

impl FailingFunction {
    /// Returns the site of the choice whether a call fails.
    pub fn site(&self) -> ChoiceSite {
        let names = self.failures.iter().map(|failure| failure.name.as_str());
        ChoiceSite::CallFault {
            call: self.name.clone().into(),
            failures: names.collect::<FaultNames>(),
        }
    }

    /// Returns whether programs call it by this symbol.
    fn has_symbol(&self, symbol: &str) -> bool {
        let symbol = plain_name(symbol);
        self.symbols.iter().any(|own| own == symbol)
    }
}

/// The functions that can fail in a process.
#[derive(Clone, Default, Debug)]
pub struct FunctionFaults {
    /// The functions.
    pub functions: Arc<[FailingFunction]>,
    /// Number of failures that may still be injected.
    pub left: u32,
    /// The failures since they were last taken, each with its call stack.
    pub injected: Vec<(String, Option<StackId>)>,
}

/// What the vm does if an intercepted call does not fail.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Intercepted {
    /// It executes the program's own definition.
    Definition(FunctionId),
    /// It executes its own operation.
    Operation(Handler),
}

/// Executes a call of an intercepted function.
pub(crate) fn intercepted(
    vm: &mut Vm<'_>,
    id: ExternalId,
    args: &Arguments<'_>,
) -> Result<Done, Interrupt> {
    let failure = match vm.function_faults.left {
        0 => None,
        _ => vm.ask_function_fault(args)?,
    };
    let instead = vm.image.intercepted(id);
    let Some((function, failure)) = failure else {
        return match instead {
            Some(Intercepted::Operation(handler)) => handler(vm, args),
            Some(Intercepted::Definition(definition)) => {
                vm.call_function(definition, args.call, args.values.clone())?;
                Ok(Done::Moved)
            }
            None => Ok(Done::Void),
        };
    };
    vm.function_faults.left -= 1;
    vm.malloc_faults = vm.malloc_faults.saturating_sub(1);
    let what = format!("{} fails: {}", function.name, failure.name);
    let stack = vm.stack();
    vm.function_faults.injected.push((what, stack));
    if let Some(stream) = function.stream {
        vm.mark_stream(args.get(stream));
    }
    if function.is_done
        && let Some(Intercepted::Definition(definition)) = instead
    {
        vm.call_function(definition, args.call, args.values.clone())?;
        if let Some(frame) = vm.thread.frames.last_mut() {
            frame.on_return = OnReturn::Fails {
                errno: failure.errno.unwrap_or(0) as u16,
                value: failure.value as i32,
            };
        }
        return Ok(Done::Moved);
    }
    Ok(vm.fail_call(failure.errno, failure.value, args.call.result))
}

impl Vm<'_> {
    /// Asks the oracle whether a call fails.
    fn ask_function_fault(
        &mut self,
        args: &Arguments<'_>,
    ) -> Result<Option<(FailingFunction, FunctionFailure)>, Interrupt> {
        let functions = self.function_faults.functions.clone();
        let mut all = functions.iter();
        let Some(function) = all.find(|function| function.has_symbol(args.name)) else {
            return Ok(None);
        };
        if self.is_in_library() {
            return Ok(None);
        }
        let alternatives = 1 + function.failures.len() as u32;
        let site = function.site();
        let shown = || function.arguments.clone();
        let picked = self.choose_failure((&site, alternatives), shown, &args.values)?;
        let failure = (picked as usize).checked_sub(1);
        let failure = failure.and_then(|at| function.failures.get(at));
        Ok(failure.map(|failure| (function.clone(), failure.clone())))
    }

    /// Sets `errno`, and returns the result of a call that fails.
    pub(crate) fn fail_call(&mut self, errno: Option<u32>, value: i64, result: ValueType) -> Done {
        if let Some(errno) = errno {
            self.set_errno(errno.into());
        }
        match result {
            ValueType::Void => Done::Void,
            ValueType::Int(width) => {
                let mask = u64::MAX >> (64 - u32::from(width).clamp(1, 64));
                Done::Value(Value::concrete(value as u64 & mask))
            }
            _ => Done::Value(Value::concrete(value as u64)),
        }
    }

    /// Lets a function that has returned fail.
    pub(crate) fn fail_on_return(&mut self, errno: u16, value: i32) {
        let result = self
            .current_call()
            .map_or(ValueType::Void, |call| call.result);
        let errno = (errno != 0).then_some(errno.into());
        let done = self.fail_call(errno, value.into(), result);
        self.finish(done);
    }

    /// Sets the error indicator of a stream.
    fn mark_stream(&mut self, stream: Value) {
        if stream.term.is_some() || stream.bits == 0 {
            return;
        }
        let Some(flags) = self.memory.load(self.arena, stream.bits, 4).ok() else {
            return;
        };
        if flags.term.is_none() {
            let flags = Value::concrete(flags.bits | STREAM_ERROR);
            // A stream that cannot be written is one that the program made up.
            let _ = self.memory.store(self.arena, stream.bits, 4, flags);
        }
    }
}
