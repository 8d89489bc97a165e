//! The floating-point environment: rounding modes and exception flags of SSE and of the x87, as the
//! C library sets and reads them. A program that unmasks exceptions, flushes subnormals to zero or
//! reduces the precision of the x87 is not supported.

use everett_expr::environment::flag;
use everett_expr::{FloatFormat, RoundingMode};
use everett_ir::code::Program;

use super::{Operation, plain_name, supplied};
use crate::thread::{DEFAULT_MXCSR, DEFAULT_X87_CONTROL, FloatEnvironment};
use crate::value::Value;
use crate::vm::{Arguments, Done, Interrupt, Vm};

/// The operations of this family.
pub const OPERATIONS: &[Operation] = &[
    supplied("feclearexcept", clear_exceptions),
    supplied("feraiseexcept", raise_exceptions),
    supplied("fetestexcept", test_exceptions),
    supplied("fegetround", get_rounding),
    supplied("fesetround", set_rounding),
    supplied("__fesetround", set_rounding),
    supplied("fegetenv", get_environment),
    supplied("feholdexcept", hold_exceptions),
    supplied("fesetenv", set_environment),
    supplied("feupdateenv", update_environment),
    supplied("__flt_rounds", flt_rounds),
    supplied("llvm.get.rounding", flt_rounds),
];

/// Other operations and instructions that set or read the environment.
const OTHERS: [&str; 2] = ["llvm.x86.sse.stmxcsr", "llvm.x86.sse.ldmxcsr"];
const INSTRUCTIONS: [&str; 5] = ["mxcsr", "fldcw", "stsw", "stenv", "fldenv"];

/// Size of `fenv_t`: the `fnstenv` image, then `mxcsr`.
const SIZE: u64 = 32;
/// Offsets of the x87 status word and of `mxcsr` in `fenv_t`.
const STATUS_AT: u64 = 4;
const MXCSR_AT: u64 = 28;
/// `FE_DFL_ENV`.
const DEFAULT_ENVIRONMENT: u64 = u64::MAX;
/// The rounding modes in the x87 control word.
const ROUNDING: u64 = 0xc00;

/// Returns whether a program can set rounding modes or read exception flags.
pub fn is_used(program: &Program) -> bool {
    let is_listed = |name: &String| {
        let name = plain_name(name);
        OPERATIONS.iter().any(|row| row.name == name) || OTHERS.contains(&name)
    };
    let mut templates = program.assembly.iter().map(|piece| &piece.template);
    program.externals.iter().any(is_listed)
        || templates.any(|text| INSTRUCTIONS.iter().any(|name| text.contains(name)))
}

/// Returns whether arithmetic is supported under this `MXCSR`: any rounding mode and exception
/// flags.
fn is_supported_mxcsr(word: u64) -> bool {
    word & !0x603f == u64::from(DEFAULT_MXCSR)
}

/// Returns whether an x87 control word masks all exceptions.
pub fn masks_exceptions(control: u16) -> bool {
    control & 0x3f == 0x3f
}

/// Returns whether an x87 control word has the initial precision and masks.
pub fn is_usual_control(control: u16) -> bool {
    (control ^ DEFAULT_X87_CONTROL) & 0x300 == 0 && masks_exceptions(control)
}

/// Sets `MXCSR`.
pub fn set_mxcsr(vm: &mut Vm<'_>, args: &Arguments<'_>, word: u64) -> Result<(), Interrupt> {
    if !is_supported_mxcsr(word) {
        return Err(args.unsupported("of a word that unmasks exceptions or changes subnormals"));
    }
    vm.thread.floats.mxcsr = word as u32;
    Ok(())
}

/// Checks that all exception flags are known.
pub fn known_flags(vm: &Vm<'_>, args: &Arguments<'_>) -> Result<(), Interrupt> {
    if vm.thread.floats.unknown {
        return Err(args.unsupported(
            "after operations on symbolic values, whose exception flags are not tracked",
        ));
    }
    Ok(())
}

/// Returns the flags in an argument.
fn flags_in(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<u16, Interrupt> {
    Ok(vm.concretize(args.get(0))? as u16 & flag::ALL)
}

fn success() -> Result<Done, Interrupt> {
    Ok(Done::Value(Value::ZERO))
}

fn clear(floats: &mut FloatEnvironment, flags: u16) {
    let raised = floats.x87_status & flag::ALL;
    if raised & flags != 0 {
        floats.x87_status = 0;
    }
    // The x87 cannot clear single flags, so this moves the other flags to `mxcsr`.
    let all = floats.mxcsr | u32::from(raised);
    if all & u32::from(flags) != 0 {
        floats.mxcsr = all & !u32::from(flags);
    }
    if flags == flag::ALL {
        floats.unknown = false;
    }
}

fn clear_exceptions(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let flags = flags_in(vm, args)?;
    clear(&mut vm.thread.floats, flags);
    success()
}

fn raise_exceptions(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let flags = flags_in(vm, args)?;
    vm.thread.floats.raise(FloatFormat::Double, flags);
    success()
}

fn raised(floats: &FloatEnvironment) -> u16 {
    (floats.mxcsr as u16 | floats.x87_status) & flag::ALL
}

fn test_exceptions(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let flags = flags_in(vm, args)?;
    let raised = raised(&vm.thread.floats) & flags;
    // A flag that is raised stays raised, even if other flags are unknown.
    if raised != flags {
        known_flags(vm, args)?;
    }
    Ok(Done::Value(Value::concrete(raised.into())))
}

fn get_rounding(vm: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    let mode = u64::from(vm.thread.floats.mxcsr) >> 3 & ROUNDING;
    Ok(Done::Value(Value::concrete(mode)))
}

/// Returns the value of `FLT_ROUNDS`.
fn flt_rounds(vm: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    let number = match vm.float_rounding(FloatFormat::Double) {
        RoundingMode::TowardZero => 0,
        RoundingMode::TowardPositive => 2,
        RoundingMode::TowardNegative => 3,
        _ => 1,
    };
    Ok(Done::Value(Value::concrete(number)))
}

/// Sets the rounding mode; returns an error for an invalid one.
fn set_rounding(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    const FAILED: u64 = 0xffff_ffff;
    let mode = vm.concretize(args.get(0))?;
    if mode & !ROUNDING != 0 {
        return Ok(Done::Value(Value::concrete(FAILED)));
    }
    let floats = &mut vm.thread.floats;
    floats.x87_control = floats.x87_control & !(ROUNDING as u16) | mode as u16;
    floats.mxcsr = floats.mxcsr & !0x6000 | (mode as u32) << 3;
    success()
}

/// Stores the environment. The address fields of the last x87 instruction are zero.
fn get_environment(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    known_flags(vm, args)?;
    let ([to], _) = vm.ranges([(args.get(0), true)], Value::concrete(SIZE))?;
    let floats = vm.thread.floats;
    let words = [
        0xffff_0000 | u32::from(floats.x87_control),
        0xffff_0000 | u32::from(floats.x87_status),
        0xffff_ffff,
        0,
        0,
        0,
        0,
        floats.mxcsr,
    ];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    if let Some(object) = vm.memory.object_at_mut(to, SIZE) {
        let offset = to - object.start;
        object.write_concrete(offset, &bytes);
    }
    success()
}

fn hold_exceptions(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    get_environment(vm, args)?;
    clear(&mut vm.thread.floats, flag::ALL);
    success()
}

fn set_environment(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let from = vm.concretize(args.get(0))?;
    if from == DEFAULT_ENVIRONMENT {
        vm.thread.floats = FloatEnvironment::default();
        return success();
    }
    vm.check_range(from, SIZE, false)?;
    let mut word = |at: u64, bytes: usize| {
        let word = vm.load(Value::concrete(from + at), bytes)?;
        vm.concretize(word)
    };
    let (control, status, mxcsr) = (word(0, 2)?, word(STATUS_AT, 2)?, word(MXCSR_AT, 4)?);
    if !is_usual_control(control as u16) || !is_supported_mxcsr(mxcsr) {
        return Err(
            args.unsupported("for an environment with other masks, precision or subnormals")
        );
    }
    vm.thread.floats = FloatEnvironment {
        mxcsr: mxcsr as u32,
        x87_control: control as u16,
        x87_status: status as u16 & flag::ALL,
        unknown: false,
    };
    success()
}

/// Restores an environment and keeps the flags that are already raised.
fn update_environment(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    known_flags(vm, args)?;
    let raised = raised(&vm.thread.floats);
    set_environment(vm, args)?;
    vm.thread.floats.raise(FloatFormat::Double, raised);
    success()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bug::BugKind;
    use crate::testing::Harness;

    #[test]
    fn the_environment_is_what_a_thread_starts_with() {
        let mut harness = Harness::new();
        let place = harness.block(&[0; 32]);
        assert_eq!(harness.call_concrete("fegetenv", &[place]), Ok(0));
        assert_eq!(harness.bytes(place, 2), [0x7f, 0x03]);
        assert_eq!(harness.bytes(place + 28, 4), [0x80, 0x1f, 0, 0]);
        assert_eq!(harness.call_concrete("fesetenv", &[place]), Ok(0));
        assert_eq!(harness.call_concrete("fesetenv", &[u64::MAX]), Ok(0));
        assert_eq!(harness.call_concrete("fegetround", &[]), Ok(0));
        assert_eq!(harness.call_concrete("fesetround", &[0]), Ok(0));
        assert_eq!(harness.call_concrete("fesetround", &[1]), Ok(0xffff_ffff));
        assert_eq!(harness.call_concrete("__fesetround", &[0x400]), Ok(0));
        assert_eq!(harness.call_concrete("fegetround", &[]), Ok(0x400));
        assert_eq!(harness.call_concrete("__flt_rounds", &[]), Ok(3));
        assert_eq!(harness.call_concrete("fesetround", &[0]), Ok(0));
    }

    #[test]
    fn flags_stay_until_they_are_cleared() {
        let mut harness = Harness::new();
        assert_eq!(harness.call_concrete("feraiseexcept", &[0x24]), Ok(0));
        assert_eq!(harness.call_concrete("fetestexcept", &[0x3f]), Ok(0x24));
        assert_eq!(harness.call_concrete("feclearexcept", &[0x04]), Ok(0));
        assert_eq!(harness.call_concrete("fetestexcept", &[0x3f]), Ok(0x20));
        let place = harness.block(&[0; 32]);
        assert_eq!(harness.call_concrete("feholdexcept", &[place]), Ok(0));
        assert_eq!(harness.call_concrete("fetestexcept", &[0x3f]), Ok(0));
        assert_eq!(harness.call_concrete("feraiseexcept", &[0x01]), Ok(0));
        assert_eq!(harness.call_concrete("feupdateenv", &[place]), Ok(0));
        assert_eq!(harness.call_concrete("fetestexcept", &[0x3f]), Ok(0x21));
    }

    #[test]
    fn other_environments_are_not_supported() {
        let outcome = |control: u16, mxcsr: u32| {
            let mut harness = Harness::new();
            let place = harness.block(&[0; 32]);
            harness.call_concrete("fegetenv", &[place])?;
            for (at, size, word) in [(0, 2, u32::from(control)), (28, 4, mxcsr)] {
                harness
                    .memory
                    .store(
                        &mut harness.arena,
                        place + at,
                        size,
                        Value::concrete(word.into()),
                    )
                    .expect("it is in the block");
            }
            harness.call_concrete("fesetenv", &[place])
        };
        let flags_raised = outcome(0x37f, 0x1fbf);
        assert_eq!(flags_raised, Ok(0));
        assert_eq!(outcome(0x77f, 0x3f80), Ok(0), "another rounding mode");
        // Precision, masks.
        for control in [0x27f, 0x37e] {
            assert_eq!(outcome(control, 0x1f80), Err(BugKind::Unsupported));
        }
        // Flushing to zero, subnormals as zero, masks.
        for mxcsr in [0x9f80, 0x1fc0, 0x1f00] {
            assert_eq!(outcome(0x37f, mxcsr), Err(BugKind::Unsupported));
        }
    }
}
