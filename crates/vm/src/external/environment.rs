//! The floating-point environment. Rounding is to nearest, always; exceptions are not recorded.

use super::{Operation, supplied};
use crate::bug::{Bug, BugKind};
use crate::value::Value;
use crate::vm::{Arguments, Done, Interrupt, Vm};

/// The family.
pub const OPERATIONS: &[Operation] = &[
    supplied("feclearexcept", succeed),
    supplied("feraiseexcept", succeed),
    supplied("fetestexcept", succeed),
    supplied("fegetround", succeed),
    supplied("fesetround", set_round),
    supplied("__fesetround", set_round),
    supplied("fegetenv", get_environment),
    supplied("feholdexcept", get_environment),
    supplied("fesetenv", set_environment),
    supplied("feupdateenv", set_environment),
    supplied("__flt_rounds", nearest),
];

/// Size of `fenv_t`: what `fnstenv` writes, then `mxcsr`.
const SIZE: u64 = 32;
/// Words of the environment as a thread starts with it.
const INITIAL: [u32; 8] = [0xffff_037f, 0xffff_0000, 0xffff_ffff, 0, 0, 0, 0, 0x1f80];
/// `FE_DFL_ENV`.
const DEFAULT_ENVIRONMENT: u64 = u64::MAX;

fn succeed(_: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    Ok(Done::Value(Value::ZERO))
}

/// `FLT_ROUNDS` of rounding to nearest.
fn nearest(_: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    Ok(Done::Value(Value::concrete(1)))
}

/// A mode that cannot be set is refused, as C allows it.
fn set_round(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let mode = vm.concretize(args.get(0))?;
    Ok(Done::Value(Value::concrete(u64::from(mode != 0))))
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
    if control >> 10 & 3 != 0 || mxcsr >> 13 & 3 != 0 {
        let message = "a floating-point environment that does not round to nearest";
        return Err(Bug::new(BugKind::Unsupported, message).into());
    }
    Ok(Done::Value(Value::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Lab;

    #[test]
    fn the_environment_is_what_a_thread_starts_with() {
        let mut lab = Lab::new();
        let place = lab.block(&[0; 32]);
        assert_eq!(lab.ask("fegetenv", &[place]), Ok(0));
        assert_eq!(lab.bytes(place, 2), [0x7f, 0x03]);
        assert_eq!(lab.bytes(place + 28, 4), [0x80, 0x1f, 0, 0]);
        assert_eq!(lab.ask("fesetenv", &[place]), Ok(0));
        assert_eq!(lab.ask("fesetenv", &[u64::MAX]), Ok(0));
        assert_eq!(lab.ask("fegetround", &[]), Ok(0));
        assert_eq!(lab.ask("fesetround", &[0]), Ok(0));
        assert_ne!(lab.ask("__fesetround", &[0x400]), Ok(0));
        lab.memory
            .store(&mut lab.arena, place, 2, Value::concrete(0x77f))
            .unwrap();
        assert_eq!(lab.ask("fesetenv", &[place]), Err(BugKind::Unsupported));
    }
}
