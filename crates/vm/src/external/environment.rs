//! The floating-point environment. The rounding mode is always to nearest. A program that sets
//! another mode or unmasks exceptions is not supported. Exception flags are not recorded.

use super::{Operation, supplied};
use crate::thread::DEFAULT_X87_CONTROL;
use crate::value::Value;
use crate::vm::{Arguments, Done, Interrupt, Vm};

/// The operations of this family.
pub const OPERATIONS: &[Operation] = &[
    supplied("feclearexcept", succeed),
    supplied("feraiseexcept", succeed),
    supplied("fetestexcept", succeed),
    supplied("fegetround", succeed),
    supplied("fesetround", set_rounding),
    supplied("__fesetround", set_rounding),
    supplied("fegetenv", get_environment),
    supplied("feholdexcept", get_environment),
    supplied("fesetenv", set_environment),
    supplied("feupdateenv", set_environment),
    supplied("__flt_rounds", nearest),
];

/// Size of `fenv_t`: the `fnstenv` image, then `mxcsr`.
const SIZE: u64 = 32;
/// The initial `MXCSR`: round to nearest, subnormals enabled, exceptions masked, no exception
/// flags.
pub const DEFAULT_MXCSR: u32 = 0x1f80;
/// The words of the initial environment.
const INITIAL: [u32; 8] = [
    0xffff_0000 | DEFAULT_X87_CONTROL as u32,
    0xffff_0000,
    0xffff_ffff,
    0,
    0,
    0,
    0,
    DEFAULT_MXCSR,
];
/// `FE_DFL_ENV`.
const DEFAULT_ENVIRONMENT: u64 = u64::MAX;

/// Whether arithmetic under this `MXCSR` is as under the initial one. Exception flags do not
/// matter.
pub fn is_usual_mxcsr(word: u64) -> bool {
    word & !0x3f == u64::from(DEFAULT_MXCSR)
}

/// Whether an x87 control word masks all exceptions.
pub fn masks_exceptions(control: u16) -> bool {
    control & 0x3f == 0x3f
}

/// Whether an x87 control word has the initial rounding mode, precision and masks.
pub fn is_usual_control(control: u16) -> bool {
    (control ^ DEFAULT_X87_CONTROL) & 0xf00 == 0 && masks_exceptions(control)
}

fn succeed(_: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    Ok(Done::Value(Value::ZERO))
}

/// `FLT_ROUNDS` of rounding to nearest.
fn nearest(_: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    Ok(Done::Value(Value::concrete(1)))
}

/// Returns an error for an invalid mode. The processor supports the other modes, so an error would
/// be wrong for them: they are unsupported.
fn set_rounding(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    const FAILED: u64 = 0xffff_ffff;
    match vm.concretize(args.get(0))? {
        0 => Ok(Done::Value(Value::ZERO)),
        0x400 | 0x800 | 0xc00 => Err(args.unsupported("for other modes than to nearest")),
        _ => Ok(Done::Value(Value::concrete(FAILED))),
    }
}

fn get_environment(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let ([to], _) = vm.ranges([(args.get(0), true)], Value::concrete(SIZE))?;
    let bytes: Vec<u8> = INITIAL.iter().flat_map(|word| word.to_le_bytes()).collect();
    if let Some(object) = vm.memory.object_at_mut(to, SIZE) {
        let offset = to - object.start;
        object.write_concrete(offset, &bytes);
    }
    Ok(Done::Value(Value::ZERO))
}

fn set_environment(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let from = vm.concretize(args.get(0))?;
    if from == DEFAULT_ENVIRONMENT {
        return Ok(Done::Value(Value::ZERO));
    }
    vm.check_range(from, SIZE, false)?;
    let control = vm.load(Value::concrete(from), 2)?;
    let control = vm.concretize(control)?;
    let mxcsr = vm.load(Value::concrete(from + 28), 4)?;
    let mxcsr = vm.concretize(mxcsr)?;
    if !is_usual_control(control as u16) || !is_usual_mxcsr(mxcsr) {
        return Err(args.unsupported("for another environment than the default"));
    }
    Ok(Done::Value(Value::ZERO))
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
        let other = harness.call_concrete("__fesetround", &[0x400]);
        assert_eq!(other, Err(BugKind::Unsupported));
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
        // Rounding, precision, masks.
        for control in [0x77f, 0xf7f, 0x27f, 0x37e] {
            assert_eq!(outcome(control, 0x1f80), Err(BugKind::Unsupported));
        }
        // Rounding, flushing to zero, subnormals as zero, masks.
        for mxcsr in [0x3f80, 0x9f80, 0x1fc0, 0x1f00] {
            assert_eq!(outcome(0x37f, mxcsr), Err(BugKind::Unsupported));
        }
    }
}
