//! Intercepted functions: libc functions of the program that fault injection can make fail.
//!
//! Only calls from outside of the C library count: what a library function calls for its own work
//! is no business of the program.

use everett_ir::code::{ExternalId, ValueType};

use super::plain_name;
use crate::call_arguments::{ShownArgument, shown_arguments};
use crate::choice::ChoiceSite;
use crate::function_faults::{FailingFunction, FunctionFailure, STREAM_ERROR};
use crate::image::Intercepted;
use crate::thread::OnReturn;
use crate::value::Value;
use crate::vm::{Arguments, Done, Interrupt, Vm};

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
    /// Chooses whether a call fails. `shown` says what its arguments are, as far as they are concrete.
    pub fn choose_failure(
        &mut self,
        (site, alternatives): (&ChoiceSite, u32),
        shown: impl FnOnce() -> Vec<ShownArgument>,
        words: &[Value],
    ) -> Result<u32, Interrupt> {
        if self.oracle.wants_origin(site) {
            let arguments = self.shown_arguments(&shown(), words);
            let sites = self.stack().map(|stack| self.stacks.sites(stack));
            self.oracle
                .called_from(sites.unwrap_or_default(), arguments);
        }
        self.choose(site, alternatives)
    }

    /// Returns arguments as texts. Symbolic ones, and texts with symbolic bytes, are left out.
    fn shown_arguments(&mut self, shown: &[ShownArgument], words: &[Value]) -> Vec<String> {
        let known = shown.iter().zip(words);
        let known = known.filter_map(|(shown, word)| Some((*shown, word.as_concrete()?)));
        let (shown, words): (Vec<ShownArgument>, Vec<u64>) = known.unzip();
        let memory = &*self.memory;
        shown_arguments(&shown, words, |address, into| {
            memory.read_text(address, into)
        })
    }

    /// Asks the oracle whether a call fails.
    fn ask_function_fault(
        &mut self,
        args: &Arguments<'_>,
    ) -> Result<Option<(FailingFunction, FunctionFailure)>, Interrupt> {
        let functions = self.function_faults.functions.clone();
        let symbol = plain_name(args.name);
        let mut all = functions.iter();
        let Some(function) = all.find(|function| function.symbols.iter().any(|own| own == symbol))
        else {
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
