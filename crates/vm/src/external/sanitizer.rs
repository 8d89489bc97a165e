//! Checks that clang adds with `-fsanitize=` and that fail: the functions that they call, which tell
//! more about the error than a trap. Their first argument describes the check; its layout is clang's.

use super::Operation;
use super::replaced;
use crate::bug::Bug;
use crate::value::Value;
use crate::vm::{Arguments, Done, Interrupt, Vm};

/// Offset of the type in the description of a check, behind file, line and column.
const TYPE: u64 = 16;
/// Offset of what follows the types, in the description of an access and of a conversion.
const ALIGNMENT: u64 = 24;
const CONVERSION: u64 = 32;
/// Kinds of types: integers, and those of any width.
const INTEGERS: [u64; 2] = [0, 2];

/// Defines the operations of this family by rows: the name of the check, and its handler. A check
/// after which the program could go on calls a function with another name.
macro_rules! checks {
    ($($name:literal: $handler:expr;)*) => {
        /// The operations of this family.
        pub const OPERATIONS: &[Operation] = &[$(
            replaced(concat!("__ubsan_handle_", $name), $handler),
            replaced(concat!("__ubsan_handle_", $name, "_abort"), $handler),
        )*];
    };
}

checks! {
    "add_overflow": arithmetic;
    "sub_overflow": arithmetic;
    "mul_overflow": arithmetic;
    "negate_overflow": arithmetic;
    "divrem_overflow": division;
    "type_mismatch_v1": access;
    "pointer_overflow": pointer_arithmetic;
    "implicit_conversion": conversion;
    "alignment_assumption": |_, _| failed("alignment-assumption");
    "shift_out_of_bounds": |_, _| failed("shift out of bounds");
    "out_of_bounds": |_, _| failed("out-of-bounds-index");
    "local_out_of_bounds": |_, _| failed("out-of-bounds-index");
    "builtin_unreachable": |_, _| failed("unreachable-call");
    "missing_return": |_, _| failed("missing-return");
    "vla_bound_not_positive": |_, _| failed("non-positive-vla-index");
    "float_cast_overflow": |_, _| failed("float-cast-overflow");
    "load_invalid_value": |_, _| failed("load invalid value");
    "invalid_builtin": |_, _| failed("invalid-builtin-use");
    "function_type_mismatch": |_, _| failed("function-type-mismatch");
    "nonnull_return_v1": |_, _| failed("invalid-null-return");
    "nullability_return_v1": |_, _| failed("invalid-null-return");
    "nonnull_arg": |_, _| failed("invalid-null-argument");
    "nullability_arg": |_, _| failed("invalid-null-argument");
}

fn failed(what: &str) -> Result<Done, Interrupt> {
    Err(Bug::failed_check(what).into())
}

impl Vm<'_> {
    /// Reads a number of the description of a check.
    fn described(&mut self, place: Value, offset: u64, bytes: usize) -> Result<u64, Interrupt> {
        let place = self.offset_pointer(place, offset);
        let number = self.load(place, bytes)?;
        self.concretize(number)
    }

    /// Reads the type of the operands of a check: its kind, and for an integer whether it is
    /// signed.
    fn described_type(&mut self, args: &Arguments<'_>) -> Result<(u64, bool), Interrupt> {
        let place = self.described(args.get(0), TYPE, 8)?;
        let kind = self.described(Value::concrete(place), 0, 2)?;
        let details = self.described(Value::concrete(place), 2, 2)?;
        Ok((kind, details & 1 != 0))
    }

    /// Decides whether some of these bits of a pointer are set.
    fn has_bits(&mut self, pointer: Value, bits: u64) -> Result<bool, Interrupt> {
        let pointer = pointer.to_term(self.arena, 64);
        let mask = self.arena.constant(64, bits);
        let rest = self.arena.and(pointer, mask);
        let has_some = self.arena.is_nonzero(rest);
        self.decide_term(has_some)
    }
}

fn arithmetic(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let (kind, is_signed) = vm.described_type(args)?;
    match is_signed && INTEGERS.contains(&kind) {
        true => failed("signed-integer-overflow"),
        false => failed("unsigned-integer-overflow"),
    }
}

fn division(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let (kind, _) = vm.described_type(args)?;
    match INTEGERS.contains(&kind) {
        true => failed("integer division overflow"),
        false => failed("float-divide-by-zero"),
    }
}

fn access(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let pointer = args.get(1);
    if !vm.has_bits(pointer, u64::MAX)? {
        return failed("null-pointer-use");
    }
    let alignment = vm.described(args.get(0), ALIGNMENT, 1)?;
    match vm.has_bits(pointer, (1 << alignment.min(63)) - 1)? {
        true => failed("misaligned-pointer-use"),
        false => failed("insufficient-object-size"),
    }
}

fn pointer_arithmetic(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let is_from_null = !vm.has_bits(args.get(1), u64::MAX)?;
    let is_null = !vm.has_bits(args.get(2), u64::MAX)?;
    match (is_from_null, is_null) {
        (true, true) => failed("nullptr-with-offset"),
        (true, false) => failed("nullptr-with-nonzero-offset"),
        (false, true) => failed("nullptr-after-nonzero-offset"),
        (false, false) => failed("pointer-overflow"),
    }
}

fn conversion(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    match vm.described(args.get(0), CONVERSION, 1)? {
        1 => failed("implicit-unsigned-integer-truncation"),
        3 => failed("implicit-integer-sign-change"),
        4 => failed("implicit-signed-integer-truncation-or-sign-change"),
        _ => failed("implicit-signed-integer-truncation"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bug::{BugKind, FAILED_CHECK};
    use crate::testing::Harness;

    /// Returns the description of a check of operands of this type.
    fn description(harness: &mut Harness, kind: u8, details: u8, rest: &[u8]) -> Value {
        let of_type = harness.block(&[kind, 0, details, 0, b'n', 0]);
        let mut bytes = vec![0; TYPE as usize];
        bytes.extend(of_type.to_le_bytes());
        bytes.extend(rest);
        Value::concrete(harness.block(&bytes))
    }

    fn text(harness: &mut Harness, name: &str, args: &[Value]) -> String {
        let done = harness.call(&format!("__ubsan_handle_{name}"), args);
        match done {
            Err(Interrupt::Bug(bug)) => {
                assert_eq!(bug.kind, BugKind::Trap);
                let text = bug.message.strip_prefix(FAILED_CHECK);
                text.expect("it is about a check").to_owned()
            }
            other => panic!("no finding: {other:?}"),
        }
    }

    #[test]
    fn checks_tell_their_operands_apart() {
        let mut harness = Harness::new();
        let signed = description(&mut harness, 0, 11, &[]);
        let unsigned = description(&mut harness, 0, 10, &[]);
        let float = description(&mut harness, 1, 32, &[]);
        for (name, operands, expected) in [
            ("add_overflow", signed, "signed-integer-overflow"),
            ("negate_overflow", unsigned, "unsigned-integer-overflow"),
            ("divrem_overflow", signed, "integer division overflow"),
            ("divrem_overflow_abort", float, "float-divide-by-zero"),
        ] {
            let args = [operands, Value::ZERO, Value::ZERO];
            assert_eq!(text(&mut harness, name, &args), expected);
        }
    }

    #[test]
    fn checks_tell_pointers_apart() {
        let mut harness = Harness::new();
        let access = description(&mut harness, 0, 11, &[2, 0]);
        let name = "type_mismatch_v1_abort";
        let mut pointers = [(0, "null-pointer-use"), (6, "misaligned-pointer-use")].to_vec();
        pointers.push((8, "insufficient-object-size"));
        for (pointer, expected) in pointers {
            let concrete = [access, Value::concrete(pointer)];
            assert_eq!(text(&mut harness, name, &concrete), expected);
            let symbolic = [access, harness.symbolic(pointer, 8)];
            assert_eq!(text(&mut harness, name, &symbolic), expected);
        }
        for (from, to, expected) in [
            (0, 0, "nullptr-with-offset"),
            (0, 4, "nullptr-with-nonzero-offset"),
            (4, 0, "nullptr-after-nonzero-offset"),
            (8, 4, "pointer-overflow"),
        ] {
            let args = [access, Value::concrete(from), Value::concrete(to)];
            assert_eq!(text(&mut harness, "pointer_overflow", &args), expected);
        }
    }

    #[test]
    fn checks_tell_conversions_apart() {
        let mut harness = Harness::new();
        for (kind, expected) in [
            (1, "implicit-unsigned-integer-truncation"),
            (2, "implicit-signed-integer-truncation"),
            (3, "implicit-integer-sign-change"),
        ] {
            let rest = [0, 0, 0, 0, 0, 0, 0, 0, kind];
            let place = description(&mut harness, 0, 11, &rest);
            let args = [place, Value::ZERO, Value::ZERO];
            assert_eq!(text(&mut harness, "implicit_conversion", &args), expected);
        }
    }
}
