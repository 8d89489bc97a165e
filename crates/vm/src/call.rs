//! Calls: direct, through function pointers, and to built-in operations.

use everett_ir::address;
use everett_ir::code::{Body, ByValue, Call, Callee, Code, ExternalId, FunctionId, ValueType};
use smallvec::SmallVec;
use triomphe::Arc;

use crate::bug::{Bug, BugKind};
use crate::external::intercepted;
use crate::thread::OnReturn;
use crate::value::Value;
use crate::vm::{Arguments, Done, Handler, Interrupt, Vm};

impl<'a> Vm<'a> {
    /// Executes a call that the interpreter's fast path does not handle. Afterwards the top frame
    /// is the one in which execution continues.
    pub(crate) fn call(
        &mut self,
        call: &'a Call,
        args: SmallVec<[Value; 8]>,
        pointer: Option<Value>,
    ) -> Result<(), Interrupt> {
        match call.callee {
            Callee::Function(function) => self.call_function(function, call, args),
            Callee::External(id) => self.call_external(id, call, args),
            Callee::Assembly(index) => {
                let name = self.callee_name(call.callee);
                self.operate(Some(self.image.assembly(index)), name, call, args)
            }
            Callee::Pointer(_) => {
                let pointer =
                    self.concretize_function(pointer.unwrap_or(Value::ZERO), args.len())?;
                let Some(function) = self.function_at(pointer) else {
                    return Err(self.bad_pointer(pointer));
                };
                match &self.image.program().functions[function.0 as usize].body {
                    Body::Code(_) => self.call_function(function, call, args),
                    Body::External(id) => self.call_external(*id, call, args),
                }
            }
        }
    }

    /// Reads a word before the code of a function, where `-fsanitize=function` looks for its type.
    /// `None` if the program has no such check, or the pointer is another one. Functions that were
    /// compiled without the check have no type there.
    pub(crate) fn before_function(
        &mut self,
        pointer: Value,
        len: usize,
    ) -> Result<Option<u64>, Interrupt> {
        let program = self.image.program();
        if program.signatures.is_empty() || len != 4 {
            return Ok(None);
        }
        let count = program.functions.len();
        let code = address::function_address(0) - 8..address::function_address(count as u32);
        let address = match pointer.term.map(|term| self.arena.unsigned_range(term)) {
            None => pointer.bits,
            Some((low, high)) if code.contains(&low) && code.contains(&high) => {
                self.concretize(pointer)?
            }
            Some(_) => return Ok(None),
        };
        let known = address::before_function(address).filter(|(id, _)| (*id as usize) < count);
        Ok(known.map(|(id, word)| {
            let signature = program.signatures.get(&FunctionId(id));
            signature.map_or(0, |words| u64::from(words[word]))
        }))
    }

    /// Returns the function at an address.
    pub fn function_at(&self, address: u64) -> Option<FunctionId> {
        let id = address::function_at(address)?;
        ((id as usize) < self.image.program().functions.len()).then_some(FunctionId(id))
    }

    fn bad_pointer(&mut self, pointer: u64) -> Interrupt {
        let kind = if pointer < 0x10000 {
            BugKind::NullPointer
        } else {
            BugKind::InvalidCall
        };
        Bug::new(
            kind,
            format!("call of {pointer:#x}, which is not a function"),
        )
        .into()
    }

    /// Calls a function of the program with the arguments of a call site.
    pub(crate) fn call_function(
        &mut self,
        function: FunctionId,
        call: &Call,
        mut args: SmallVec<[Value; 8]>,
    ) -> Result<(), Interrupt> {
        let Some(code) = self.image.code(function) else {
            let name = &self.image.program().functions[function.0 as usize].name;
            return Err(Bug::new(BugKind::Unsupported, format!("call of {name}")).into());
        };
        if code.by_value.iter().any(|copy| is_in_registers(call, copy)) {
            return self.call_with_copies(function, code, call, &args);
        }
        for copy in &call.by_value {
            let at = register_of(call, copy.argument);
            let pointer = self.concretize(args[at])?;
            self.check_range(pointer, copy.size, false)?;
        }
        let mut variadic = code
            .variadic
            .then(|| Vm::gather_variadic(call, &args, code.parameter_registers as usize));
        self.push_frame(function, &args, None, OnReturn::Caller)?;
        for copy in &call.by_value {
            let at = register_of(call, copy.argument);
            let from = args[at].bits;
            let slot = self.push_slot(copy.size, u64::from(copy.align))?;
            self.copy_range(slot, from, copy.size);
            args[at] = Value::concrete(slot);
            let beyond = copy.argument.checked_sub(call.fixed);
            if at < code.parameter_registers as usize {
                let base = self.thread.top().map_or(0, |frame| frame.base as usize);
                self.thread.registers[base + at] = args[at];
            } else if let (Some(variadic), Some(beyond)) = (&mut variadic, beyond)
                && let Some(argument) = variadic.arguments.get_mut(beyond as usize)
            {
                argument.values = vec![args[at]];
            }
        }
        if let Some(frame) = self.thread.frames.last_mut() {
            frame.variadic = variadic.map(Arc::new);
        }
        Ok(())
    }

    /// Calls a function that expects pointers to copies in memory (`byval`) of values that the
    /// caller passes in registers. Compilers differ in how they represent a long double passed on
    /// the stack.
    fn call_with_copies(
        &mut self,
        function: FunctionId,
        code: &Code,
        call: &Call,
        args: &[Value],
    ) -> Result<(), Interrupt> {
        if !call.by_value.is_empty() || code.variadic {
            let message = "a call that copies some arguments on either side";
            return Err(Bug::new(BugKind::Unsupported, message).into());
        }
        let mut flat: SmallVec<[Value; 8]> = SmallVec::new();
        let mut copies = Vec::new();
        for (index, ty) in call.arg_types.iter().enumerate() {
            let first = register_of(call, index as u32);
            let registers = &args[first..first + ty.registers() as usize];
            let copy = code
                .by_value
                .iter()
                .find(|copy| copy.argument as usize == index && is_in_registers(call, copy));
            match copy {
                Some(copy) => {
                    copies.push((flat.len(), copy, registers));
                    flat.push(Value::ZERO);
                }
                None => flat.extend_from_slice(registers),
            }
        }
        self.push_frame(function, &flat, None, OnReturn::Caller)?;
        for (at, copy, registers) in copies {
            let slot = self.push_slot(copy.size, u64::from(copy.align))?;
            for (limb, value) in registers.iter().enumerate() {
                let offset = 8 * limb as u64;
                let len = copy.size.saturating_sub(offset).min(8);
                if len > 0 {
                    self.store(Value::concrete(slot + offset), len as usize, *value)?;
                }
            }
            let base = self.thread.top().map_or(0, |frame| frame.base as usize);
            if at < code.parameter_registers as usize {
                self.thread.registers[base + at] = Value::concrete(slot);
            }
        }
        Ok(())
    }

    fn call_external(
        &mut self,
        id: ExternalId,
        call: &'a Call,
        args: SmallVec<[Value; 8]>,
    ) -> Result<(), Interrupt> {
        let name = &self.image.program().externals[id.0 as usize];
        if self.image.intercepted(id).is_some() {
            let values = args;
            let done = intercepted(self, id, &Arguments { values, call, name })?;
            self.finish(done);
            return Ok(());
        }
        self.operate(self.image.external(id), name, call, args)
    }

    fn operate(
        &mut self,
        handler: Option<Handler>,
        name: &'a str,
        call: &'a Call,
        values: SmallVec<[Value; 8]>,
    ) -> Result<(), Interrupt> {
        let Some(handler) = handler else {
            let message = format!("call of {name}, which is not defined");
            return Err(Bug::new(BugKind::Unsupported, message).into());
        };
        let done = handler(self, &Arguments { values, call, name })?;
        self.finish(done);
        Ok(())
    }

    /// Completes the call of a built-in operation.
    pub(crate) fn finish(&mut self, done: Done) {
        match done {
            Done::Void => self.finish_call(&[]),
            Done::Value(value) => self.finish_call(&[value]),
            Done::Values(values) => self.finish_call(&values),
            Done::Moved => {}
        }
    }

    /// Copies between two checked ranges; they may overlap.
    pub fn copy_range(&mut self, to: u64, from: u64, len: u64) {
        if len == 0 {
            return;
        }
        let Some(source) = self.memory.object_at(from, len) else {
            return;
        };
        let from_offset = from - source.start;
        if self.memory.near(to).map(|target| target.start) == Some(source.start) {
            if let Some(object) = self.memory.object_at_mut(to, len) {
                let offset = to - object.start;
                object.copy_within(offset, from_offset, len);
            }
        } else {
            // The clone shares the content. It only ends the borrow of the memory.
            let source = source.clone();
            if let Some(target) = self.memory.object_at_mut(to, len) {
                let offset = to - target.start;
                target.copy_from(offset, &source, from_offset, len);
            }
        }
    }
}

/// Returns whether the caller passes a value in registers that the callee expects as a copy in
/// memory.
fn is_in_registers(call: &Call, copy: &ByValue) -> bool {
    let ty = call.arg_types.get(copy.argument as usize);
    ty.is_some_and(|ty| *ty != ValueType::Pointer)
}

/// Returns the first register of an argument.
fn register_of(call: &Call, argument: u32) -> usize {
    let before = call.arg_types.iter().take(argument as usize);
    before.map(|ty| ty.registers() as usize).sum()
}
