//! The test API: the functions of `everett.h`, `klee/klee.h` and `netklee.h`, and the way in which
//! assertions and aborts end a path.

use everett_expr::{ArrayId, ExprId};

use super::{Operation, replaced, supplied};
use crate::bug::{Bug, BugKind};
use crate::oracle::Note;
use crate::value::Value;
use crate::vm::{Arguments, Done, HYPERCALL_BASE, Interrupt, SystemCall, Vm};

/// Maximum length of a name or message read from the program.
const MAX_TEXT: usize = 4096;

/// The operations of this family.
pub const OPERATIONS: &[Operation] = &[
    replaced("everett_make_symbolic", make_symbolic),
    replaced("everett_assume", everett_assume),
    replaced("everett_range", everett_range),
    replaced("everett_choose", everett_choose),
    replaced("everett_expose", everett_expose),
    replaced("everett_is_symbolic", is_symbolic),
    replaced("everett_report", everett_report),
    replaced("everett_silent_exit", silent_exit),
    replaced("everett_prefer", everett_prefer),
    replaced("everett_assert", everett_assert),
    replaced("everett_faults_enable", own_call::<0>),
    replaced("everett_faults_disable", own_call::<1>),
    replaced("everett_set_max_heap", own_call::<2>),
    replaced("everett_set_scheduler", own_call::<3>),
    replaced("everett_symbolic_source", own_call::<4>),
    replaced("everett_fragment", own_call::<5>),
    replaced("everett_inject", own_call::<6>),
    replaced("klee_net_add_network", own_call::<32>),
    replaced("klee_net_add_router", own_call::<33>),
    replaced("klee_net_add_interface", own_call::<34>),
    replaced("klee_net_add_ipv4_address", own_call::<35>),
    replaced("klee_net_add_ipv6_address", own_call::<36>),
    replaced("klee_net_add_ipv4_route", own_call::<37>),
    replaced("klee_net_add_ipv6_route", own_call::<38>),
    replaced("klee_net_host_setup", own_call::<39>),
    replaced("klee_invariant_expose_data", klee_invariant_expose_data),
    replaced("klee_net_write_filesystem", own_call::<41>),
    replaced("klee_make_symbolic", make_symbolic),
    replaced("klee_assume", klee_assume),
    replaced("klee_range", klee_range),
    replaced("klee_int", klee_int),
    replaced("klee_choose", klee_choose),
    replaced("klee_is_symbolic", is_symbolic),
    replaced("klee_is_replay", zero),
    replaced("klee_get_errno", zero),
    // Everett's library has it, too.
    supplied("klee_silent_exit", silent_exit),
    replaced("klee_abort", klee_abort),
    replaced("klee_report_error", klee_report_error),
    replaced("klee_prefer_cex", klee_prefer),
    replaced("klee_posix_prefer_cex", klee_prefer),
    replaced("klee_get_valuef", one_value),
    replaced("klee_get_valued", one_value),
    replaced("klee_get_valuel", one_value),
    replaced("klee_get_valuell", one_value),
    replaced("klee_get_value_i32", one_value),
    replaced("klee_get_value_i64", one_value),
    replaced("klee_get_obj_size", klee_get_obj_size),
    replaced("klee_check_memory_access", klee_check_memory_access),
    replaced("klee_define_fixed_object", klee_define_fixed_object),
    replaced("klee_alias_function", unsupported),
    replaced("klee_set_forking", klee_set_forking),
    replaced("klee_open_merge", klee_open_merge),
    replaced("klee_close_merge", klee_close_merge),
    // A hint, which does not influence the path.
    replaced("klee_mark_global", nothing),
    replaced("__assert_fail", assert_fail),
    replaced("abort", abort),
];

/// Forwards a call about the host to the kernel model, as a hypercall.
fn own_call<const NUMBER: u32>(_: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let number = Value::concrete(u64::from(HYPERCALL_BASE + NUMBER));
    let call = SystemCall::new(number, std::array::from_fn(|at| args.get(at)));
    Err(Interrupt::SystemCall(Box::new(call)))
}

impl Vm<'_> {
    /// Reads a string argument for messages; empty for null.
    pub(super) fn text(&mut self, pointer: Value) -> Result<String, Interrupt> {
        // A choice among texts is explored; a pointer that can be anything would mean all of memory.
        let range = pointer.term.map(|term| self.arena.unsigned_range(term));
        if range == Some((0, u64::MAX)) {
            return Err(Bug::new(BugKind::Unsupported, SYMBOLIC_TEXT).into());
        }
        let address = self.concretize(pointer)?;
        if address == 0 {
            return Ok(String::new());
        }
        within(TEXT, self.check_range(address, 1, false))?;
        let text = self.read_string(address, MAX_TEXT);
        let mut rest = (0..MAX_TEXT as u64).map(|at| address + at);
        let end = rest.find(|&at| {
            let is_outside = self.memory.object_at(at, 1).is_none();
            is_outside || self.byte_at(at).as_concrete() == Some(0)
        });
        if end.is_some_and(|end| self.memory.object_at(end, 1).is_none()) {
            let note = "String not terminated by \\0 passed to one of the klee_ functions";
            self.note(Note::WarningOnce(note.to_owned()));
        }
        Ok(text)
    }

    /// Reads the name of an input.
    fn input_name(&mut self, pointer: Value) -> Result<String, Interrupt> {
        let name = self.text(pointer)?;
        Ok(if name.is_empty() {
            let note = "klee_make_symbolic: renamed empty name to \"unnamed\"";
            self.note(Note::Warning(note.to_owned()));
            "unnamed".to_owned()
        } else {
            name
        })
    }

    /// Creates a symbolic input.
    pub fn input(&mut self, name: &str, size: u32) -> Result<ArrayId, Interrupt> {
        self.asked = true;
        Ok(self.oracle.input(self.arena, name, size)?)
    }

    /// Creates an input and returns its bytes.
    fn input_bytes(&mut self, name: &str, size: u32) -> Result<Vec<ExprId>, Interrupt> {
        let array = self.input(name, size)?;
        Ok((0..size).map(|at| self.arena.read(array, at)).collect())
    }

    /// Creates an input and returns it as one number.
    pub(super) fn input_number(&mut self, name: &str, bytes: u32) -> Result<ExprId, Interrupt> {
        let bytes = self.input_bytes(name, bytes)?;
        Ok(self.arena.concat_bytes(&bytes))
    }

    /// Adds the condition to the path condition; ends the path if it is infeasible.
    pub(super) fn assume(&mut self, condition: ExprId) -> Result<(), Interrupt> {
        let holds = match self.arena.as_const(condition) {
            Some(bit) => bit != 0,
            None => {
                self.asks();
                self.oracle.assume(self.arena, condition)?
            }
        };
        if holds {
            Ok(())
        } else {
            Err(Interrupt::EndPath)
        }
    }

    /// Returns an argument as a condition: whether it is nonzero.
    fn condition(&mut self, args: &Arguments<'_>, index: usize) -> ExprId {
        let width = args.width(index);
        let term = args.get(index).to_term(self.arena, width);
        self.arena.is_nonzero(term)
    }

    /// Creates a symbolic number with `low <= number < high`, signed.
    fn number_between(
        &mut self,
        name: &str,
        bytes: u32,
        (low, high): (Value, Value),
    ) -> Result<Value, Interrupt> {
        let width = 8 * bytes;
        let low = low.to_term(self.arena, width);
        let high = high.to_term(self.arena, width);
        let some = self.arena.slt(low, high);
        if !self.decide_term(some)? {
            let message = format!("the range of {name} is empty");
            return Err(Bug::new(BugKind::InvalidAssumption, message).into());
        }
        let number = self.input_number(name, bytes)?;
        let from = self.arena.sle(low, number);
        let to = self.arena.slt(number, high);
        let inside = self.arena.and(from, to);
        self.assume(inside)?;
        Ok(Value::of_term(self.arena, number))
    }
}

/// Begins the messages about a text that a function of the API was given.
pub const TEXT: &str = "a text for the interface: ";
/// The message about a text at an address that depends on data.
pub const SYMBOLIC_TEXT: &str = "Symbolic string pointer passed to one of the klee_ functions";
/// The message about a call without all arguments.
pub const MISSING_ARGUMENTS: &str =
    "Incorrect number of arguments to klee_make_symbolic(void*, size_t, char*)";
/// The message about a part of an object that is made symbolic, where that is an error.
pub const WRONG_SIZE: &str = "Wrong size given to klee_make_symbolic";
/// The message about a pointer into an object that is made symbolic, where that is an error.
pub const NOT_THE_START: &str = "make_symbolic: the pointer is not that of an object's start";
/// Begins the messages about what a function of the API was given.
pub const MAKE_SYMBOLIC: &str = "make_symbolic: ";
/// The same for `klee_check_memory_access`.
pub const CHECK_MEMORY_ACCESS: &str = "klee_check_memory_access: ";

/// Names the function of the API in which a finding is.
fn within<T>(name: &str, done: Result<T, Interrupt>) -> Result<T, Interrupt> {
    done.map_err(|interrupt| match interrupt {
        Interrupt::Bug(mut bug) => {
            bug.message.insert_str(0, name);
            Interrupt::Bug(bug)
        }
        other => other,
    })
}

/// Reports a range that is not an object, as KLEE does. What has a symbolic size is left alone.
fn expect_whole_object(vm: &Vm<'_>, address: u64, size: u64) -> Result<(), Interrupt> {
    let message = match vm.memory.object_at(address, size) {
        Some(object) if object.size_term.is_some() => return Ok(()),
        Some(object) if object.start != address => NOT_THE_START,
        Some(object) if object.size != size => WRONG_SIZE,
        _ => return Ok(()),
    };
    Err(Bug::new(BugKind::InvalidAssumption, message).into())
}

fn make_symbolic(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    if args.values.len() < 3 {
        return Err(Bug::new(BugKind::InvalidCall, MISSING_ARGUMENTS).into());
    }
    let ranges = vm.ranges([(args.get(0), true)], args.get(1));
    let ([address], size) = within(MAKE_SYMBOLIC, ranges)?;
    if vm.options.as_klee && args.name.starts_with("klee_") {
        expect_whole_object(vm, address, size)?;
    }
    let Ok(size) = u32::try_from(size) else {
        let message =
            format!("Symbolic objects larger than 4 GiB are not allowed (requested {size} bytes).");
        return Err(Bug::new(BugKind::Unsupported, message).into());
    };
    vm.need_room_for_input(u64::from(size))?;
    let name = vm.input_name(args.get(2))?;
    let bytes = vm.input_bytes(&name, size)?;
    if let Some(object) = vm.memory.object_at_mut(address, u64::from(size)) {
        let offset = address - object.start;
        for (at, byte) in (offset..).zip(bytes) {
            let byte = Value::of_term(vm.arena, byte);
            object.store(vm.arena, at, 1, byte);
        }
    }
    Ok(Done::Void)
}

fn everett_assume(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let condition = vm.condition(args, 0);
    vm.assume(condition).map(|()| Done::Void)
}

/// Assumes a condition. As in KLEE, an assumption that is false for all inputs is an error of the
/// harness.
fn klee_assume(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let condition = vm.condition(args, 0);
    match vm.assume(condition) {
        Err(Interrupt::EndPath)
            if vm.arena.is_false(condition) || vm.oracle.is_excluded(vm.arena, condition) =>
        {
            // Of a condition that was decided while it was computed, one side is false.
            if vm.options.silent_assume || vm.options.fork_conditions {
                return Err(Interrupt::EndPath);
            }
            let message = "invalid klee_assume call (provably false)";
            Err(Bug::new(BugKind::InvalidAssumption, message).into())
        }
        done => done.map(|()| Done::Void),
    }
}

fn everett_range(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let name = vm.input_name(args.get(2))?;
    vm.number_between(&name, 8, (args.get(0), args.get(1)))
        .map(Done::Value)
}

fn klee_range(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let (low, high) = (args.get(0), args.get(1));
    // A range of one value creates no input: test files do not contain it.
    if let (Some(low), Some(high)) = (low.as_concrete(), high.as_concrete())
        && (low as u32).wrapping_add(1) == high as u32
    {
        return Ok(Done::Value(Value::concrete(low)));
    }
    let name = vm.input_name(args.get(2))?;
    vm.number_between(&name, 4, (low, high)).map(Done::Value)
}

fn klee_int(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let name = vm.input_name(args.get(0))?;
    let number = vm.input_number(&name, 4)?;
    Ok(Done::Value(Value::of_term(vm.arena, number)))
}

/// Creates a symbolic number below an unsigned bound.
fn number_below(vm: &mut Vm<'_>, name: &str, bytes: u32, bound: Value) -> Result<Value, Interrupt> {
    let bound = bound.to_term(vm.arena, 8 * bytes);
    let some = vm.arena.is_nonzero(bound);
    if !vm.decide_term(some)? {
        let message = format!("{name} has no alternatives");
        return Err(Bug::new(BugKind::InvalidAssumption, message).into());
    }
    let number = vm.input_number(name, bytes)?;
    let below = vm.arena.ult(number, bound);
    vm.assume(below)?;
    Ok(Value::of_term(vm.arena, number))
}

/// Makes a choice. The choice is an ordinary input, so that test files contain it in order, but the
/// vm forks one path per value here.
fn everett_choose(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let name = vm.input_name(args.get(1))?;
    let number = number_below(vm, &name, 4, args.get(0))?;
    let number = vm.concretize(number)?;
    Ok(Done::Value(Value::concrete(number)))
}

fn klee_choose(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    number_below(vm, "klee_choose", 8, args.get(0)).map(Done::Value)
}

/// Checks that the exposed data is readable. The kernel model keeps it for invariants over hosts.
fn everett_expose(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    vm.text(args.get(0))?;
    vm.text(args.get(1))?;
    vm.ranges([(args.get(2), false)], args.get(3))?;
    own_call::<7>(vm, args)
}

/// Exposes a state that is a number.
fn klee_invariant_expose_data(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    vm.text(args.get(1))?;
    vm.ranges([(args.get(2), false)], args.get(3))?;
    own_call::<40>(vm, args)
}

fn is_symbolic(_: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let symbolic = args.get(0).term.is_some();
    Ok(Done::Value(Value::concrete(u64::from(symbolic))))
}

fn zero(_: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    Ok(Done::Value(Value::ZERO))
}

fn nothing(_: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    Ok(Done::Void)
}

fn unsupported(_: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let message = format!("{} is not supported", args.name);
    Err(Bug::new(BugKind::Unsupported, message).into())
}

fn silent_exit(_: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    Err(Interrupt::EndPath)
}

fn everett_report(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let message = vm.text(args.get(0))?;
    Err(Bug::new(BugKind::UserReport, message).into())
}

fn klee_report_error(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let file = vm.text(args.get(0))?;
    let line = vm.concretize(args.get(1))?;
    let message = vm.text(args.get(2))?;
    let suffix = vm.text(args.get(3))?;
    let message = format!("{message} ({suffix}) at {file}:{line}");
    Err(Bug::new(BugKind::UserReport, message).into())
}

fn klee_abort(_: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    Err(Bug::new(BugKind::Abort, "klee_abort was called").into())
}

fn abort(_: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    Err(Bug::new(BugKind::Abort, "abort was called").into())
}

fn assert_fail(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let expression = vm.text(args.get(0))?;
    let file = vm.text(args.get(1))?;
    let line = vm.concretize(args.get(2))?;
    let function = vm.text(args.get(3))?;
    let message = format!("assertion `{expression}' failed in {function} at {file}:{line}");
    Err(Bug::new(BugKind::Assertion, message).into())
}

fn everett_assert(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let condition = vm.condition(args, 0);
    if vm.decide_term(condition)? {
        return Ok(Done::Void);
    }
    Err(Bug::new(BugKind::Assertion, "everett_assert does not hold").into())
}

fn prefer(vm: &mut Vm<'_>, args: &Arguments<'_>, index: usize) -> Result<Done, Interrupt> {
    let condition = vm.condition(args, index);
    if vm.arena.as_const(condition).is_none() {
        vm.oracle.prefer(vm.arena, condition);
    }
    Ok(Done::Void)
}

fn everett_prefer(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    prefer(vm, args, 0)
}

fn klee_prefer(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    prefer(vm, args, 1)
}

/// Concretises a value. KLEE continues with one of several values; here each value is a path, so
/// that no value is lost.
fn one_value(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let value = vm.concretize(args.get(0))?;
    Ok(Done::Value(Value::concrete(value)))
}

fn klee_get_obj_size(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let address = vm.concretize(args.get(0))?;
    match vm.memory.object_at(address, 0) {
        Some(object) => Ok(Done::Value(Value {
            bits: object.size_term.map_or(object.size, |_| 0),
            term: object.size_term,
        })),
        None => Err(vm.fault(address, 1, false)),
    }
}

/// Places an object at an address of the program's choice.
fn klee_define_fixed_object(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let start = vm.concretize(args.get(0))?;
    let size = vm.concretize(args.get(1))?;
    let by = vm.stack();
    vm.memory.place(start, size, by).map_err(|why| {
        let message = format!("klee_define_fixed_object of {size} bytes at {start:#x}: {why}");
        Bug::new(BugKind::Unsupported, message)
    })?;
    Ok(Done::Void)
}

/// Disables or re-enables forks on data for this path.
fn klee_set_forking(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let on = vm.concretize(args.get(0))?;
    vm.oracle.set_forking(on != 0);
    Ok(Done::Void)
}

/// Opens a merge region: paths that fork from here on are merged at [`klee_close_merge`].
fn klee_open_merge(vm: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    vm.asks();
    vm.oracle.open_merge()?;
    Ok(Done::Void)
}

fn klee_close_merge(vm: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    vm.asks();
    vm.oracle.close_merge()?;
    Ok(Done::Void)
}

fn klee_check_memory_access(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let ranges = vm.ranges([(args.get(0), false)], args.get(1));
    within(CHECK_MEMORY_ACCESS, ranges).map(|_| Done::Void)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;

    fn text(harness: &mut Harness, text: &str) -> Value {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        Value::concrete(harness.block(&bytes))
    }

    fn finding(done: Result<Done, Interrupt>) -> (BugKind, String) {
        match done {
            Err(Interrupt::Bug(bug)) => (bug.kind, bug.message),
            other => panic!("no finding: {other:?}"),
        }
    }

    #[test]
    fn bytes_become_symbolic_where_they_are_asked_for() {
        let mut harness = Harness::new();
        let block = harness.block(&[1, 2, 3, 4, 5, 6]);
        let name = text(&mut harness, "packet");
        let at = Value::concrete(block + 1);
        let done = harness.call("klee_make_symbolic", &[at, Value::concrete(4), name]);
        assert_eq!(done, Ok(Done::Void));
        assert_eq!(harness.world.inputs, [("packet".to_owned(), 4)]);
        let array = harness.arena.array(0, "packet", 4);
        for index in 0..4 {
            let byte = harness
                .memory
                .load(&mut harness.arena, block + 1 + index, 1)
                .unwrap();
            let expected = harness.arena.read(array, index as u32);
            assert_eq!(byte.term, Some(expected));
        }
        assert_eq!(harness.byte(block), 1);
        assert_eq!(harness.byte(block + 5), 6);
        let too_long = [at, Value::concrete(6), name];
        let done = harness.call("everett_make_symbolic", &too_long);
        assert_eq!(finding(done).0, BugKind::OutOfBounds);
        assert_eq!(harness.world.inputs.len(), 1);
        let nameless = [at, Value::concrete(1), Value::ZERO];
        assert!(harness.call("everett_make_symbolic", &nameless).is_ok());
        assert_eq!(harness.world.inputs[1].0, "unnamed");
    }

    #[test]
    fn assumptions_end_paths_on_which_they_do_not_hold() {
        let mut harness = Harness::new();
        let (no, yes) = (harness.symbolic(0, 8), harness.symbolic(5, 8));
        for name in ["everett_assume", "klee_assume"] {
            assert_eq!(harness.call(name, &[yes]), Ok(Done::Void));
            assert_eq!(harness.call(name, &[no]), Err(Interrupt::EndPath));
            assert_eq!(
                harness.call(name, &[Value::concrete(1 << 40)]),
                Ok(Done::Void)
            );
        }
        let never = harness.call("everett_assume", &[Value::ZERO]);
        assert_eq!(never, Err(Interrupt::EndPath));
        let never = harness.call("klee_assume", &[Value::ZERO]);
        assert_eq!(finding(never).0, BugKind::InvalidAssumption);
    }

    #[test]
    fn numbers_are_inputs_in_a_range() {
        let mut harness = Harness::new();
        let name = text(&mut harness, "n");
        let minus_three = Value::concrete(-3i64 as u64);
        let done = harness.call("everett_range", &[minus_three, Value::concrete(4), name]);
        assert_eq!(harness.outcome(done), Ok(0));
        let done = harness.call(
            "everett_range",
            &[Value::concrete(1), Value::concrete(4), name],
        );
        // The model gives zero, which is out of range.
        assert_eq!(done, Err(Interrupt::EndPath));
        let done = harness.call(
            "klee_range",
            &[Value::concrete(4), Value::concrete(4), name],
        );
        assert_eq!(finding(done).0, BugKind::InvalidAssumption);
        let done = harness.call(
            "klee_range",
            &[Value::concrete(4), Value::concrete(5), name],
        );
        assert_eq!(done, Ok(Done::Value(Value::concrete(4))));
        let done = harness.call("klee_int", &[name]);
        assert!(matches!(done, Ok(Done::Value(Value { term: Some(_), .. }))));
        let sizes: Vec<u32> = harness.world.inputs.iter().map(|input| input.1).collect();
        assert_eq!(sizes, [8, 8, 4]);
    }

    #[test]
    fn a_choice_is_one_value_here_and_symbolic_for_klee() {
        let mut harness = Harness::new();
        let name = text(&mut harness, "which");
        let done = harness.call("everett_choose", &[Value::concrete(3), name]);
        assert_eq!(done, Ok(Done::Value(Value::ZERO)));
        assert_eq!(harness.world.questions, 1);
        let done = harness.call("klee_choose", &[Value::concrete(3)]);
        assert!(matches!(done, Ok(Done::Value(Value { term: Some(_), .. }))));
        let done = harness.call("everett_choose", &[Value::ZERO, name]);
        assert_eq!(finding(done).0, BugKind::InvalidAssumption);
    }

    #[test]
    fn ends_of_paths_say_why() {
        let mut harness = Harness::new();
        let (expression, file, function) = (
            text(&mut harness, "x > 0"),
            text(&mut harness, "a.c"),
            text(&mut harness, "f"),
        );
        let line = Value::concrete(12);
        let done = harness.call("__assert_fail", &[expression, file, line, function]);
        let message = "assertion `x > 0' failed in f at a.c:12".to_owned();
        assert_eq!(finding(done), (BugKind::Assertion, message));
        let done = harness.call("klee_report_error", &[file, line, expression, function]);
        let message = "x > 0 (f) at a.c:12".to_owned();
        assert_eq!(finding(done), (BugKind::UserReport, message));
        assert_eq!(finding(harness.call("abort", &[])).0, BugKind::Abort);
        assert_eq!(finding(harness.call("everett_report", &[file])).1, "a.c");
        let condition = harness.symbolic(0, 8);
        let done = harness.call("everett_assert", &[condition]);
        assert_eq!(finding(done).0, BugKind::Assertion);
        let done = harness.call("klee_silent_exit", &[Value::ZERO]);
        assert_eq!(done, Err(Interrupt::EndPath));
    }

    #[test]
    fn values_and_objects_can_be_looked_at() {
        let mut harness = Harness::new();
        let value = harness.symbolic(77, 4);
        let done = harness.call("klee_is_symbolic", &[value]);
        assert_eq!(harness.outcome(done), Ok(1));
        assert_eq!(harness.call_concrete("everett_is_symbolic", &[5]), Ok(0));
        let done = harness.call("klee_get_value_i32", &[value]);
        assert_eq!(done, Ok(Done::Value(Value::concrete(77))));
        let block = harness.block(&[0; 24]);
        assert_eq!(harness.call_concrete("klee_get_obj_size", &[block]), Ok(24));
        assert_eq!(
            harness.call_concrete("klee_get_obj_size", &[0]),
            Err(BugKind::NullPointer)
        );
        assert_eq!(
            harness.call_concrete("klee_check_memory_access", &[block, 24]),
            Ok(0)
        );
        let outside = harness.call_concrete("klee_check_memory_access", &[block, 25]);
        assert_eq!(outside, Err(BugKind::OutOfBounds));
        let fixed = harness.call_concrete("klee_define_fixed_object", &[4096, 1]);
        assert_eq!(fixed, Ok(0));
        let size = harness.call_concrete("klee_get_obj_size", &[4096]);
        assert_eq!(size, Ok(1));
        let again = harness.call_concrete("klee_define_fixed_object", &[4096, 1]);
        assert_eq!(again, Err(BugKind::Unsupported));
        assert!(
            harness
                .call("klee_prefer_cex", &[Value::ZERO, value])
                .is_ok()
        );
        assert_eq!(harness.world.preferred.len(), 1);
    }
}
