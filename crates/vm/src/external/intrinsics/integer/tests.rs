//! Tests that compare each operation with Rust's arithmetic, and its implementation on terms with
//! the one on numbers.

use everett_ir::code::ValueType;
use proptest::prelude::*;

use super::{OPERATIONS, mask, signed};
use crate::testing::{Argument, Harness, bits, int, number};

/// Returns the number of integer operands, and whether the result has an overflow bit.
fn shape(name: &str) -> (usize, bool) {
    let operands = match name {
        "llvm.abs" | "llvm.ctpop" | "llvm.ctlz" | "llvm.cttz" | "llvm.bswap"
        | "llvm.bitreverse" => 1,
        "llvm.fshl" | "llvm.fshr" => 3,
        _ => 2,
    };
    (operands, name.ends_with("with.overflow"))
}

fn result_type(name: &str, width: u16) -> ValueType {
    let registers = width.div_ceil(64) + 1;
    if shape(name).1 {
        ValueType::Aggregate { registers }
    } else {
        ValueType::Int(width)
    }
}

/// Returns the value of the result, and the overflow bit if there is one.
fn split(name: &str, registers: &[u64]) -> (u128, u64) {
    match shape(name).1 {
        true => {
            let (last, value) = registers.split_last().expect("a bit");
            (number(value), *last)
        }
        false => (number(registers), 0),
    }
}

fn concrete(name: &str, width: u16, operands: &[u128]) -> (u128, u64) {
    let mut harness = Harness::new();
    let (count, _) = shape(name);
    let args: Vec<Argument> = operands[..count].iter().map(|x| int(width, *x)).collect();
    let results = harness.compute(&format!("{name}.i{width}"), &args, result_type(name, width));
    split(name, &bits(&results))
}

fn symbolic(name: &str, width: u16, operands: &[u128]) -> (u128, u64) {
    let mut harness = Harness::new();
    let (count, _) = shape(name);
    let mut args = Vec::new();
    for operand in &operands[..count] {
        let term = harness.symbolic_term(*operand, u32::from(width));
        let registers = harness.vm(|vm| vm.wide_value(term));
        args.push((ValueType::Int(width), registers.to_vec()));
    }
    let results = harness.compute(name, &args, result_type(name, width));
    assert!(
        results.iter().any(|value| value.term.is_some()),
        "{name} of unknown numbers is unknown"
    );
    let bits: Vec<u64> = results
        .iter()
        .map(|value| harness.eval_value(*value))
        .collect();
    split(name, &bits)
}

/// Returns the result of Rust's operations at width 32.
fn expected(name: &str, x: u32, y: u32, z: u32) -> (u128, u64) {
    let (a, b) = (x as i32, y as i32);
    let plain = |value: u32| (u128::from(value), 0);
    let signed = |value: i32| (u128::from(value as u32), 0);
    let pair = |(value, bit): (u32, bool)| (u128::from(value), u64::from(bit));
    let signed_pair = |(value, bit): (i32, bool)| pair((value as u32, bit));
    let order = |order: std::cmp::Ordering| signed(order as i32);
    match name {
        "llvm.abs" => signed(a.wrapping_abs()),
        "llvm.smax" => signed(a.max(b)),
        "llvm.smin" => signed(a.min(b)),
        "llvm.umax" => plain(x.max(y)),
        "llvm.umin" => plain(x.min(y)),
        "llvm.ctpop" => plain(x.count_ones()),
        "llvm.ctlz" => plain(x.leading_zeros()),
        "llvm.cttz" => plain(x.trailing_zeros()),
        "llvm.bswap" => plain(x.swap_bytes()),
        "llvm.bitreverse" => plain(x.reverse_bits()),
        "llvm.fshl" => {
            let both = u64::from(x) << 32 | u64::from(y);
            plain((both << (z % 32) >> 32) as u32)
        }
        "llvm.fshr" => {
            let both = u64::from(x) << 32 | u64::from(y);
            plain((both >> (z % 32)) as u32)
        }
        "llvm.sadd.sat" => signed(a.saturating_add(b)),
        "llvm.ssub.sat" => signed(a.saturating_sub(b)),
        "llvm.uadd.sat" => plain(x.saturating_add(y)),
        "llvm.usub.sat" => plain(x.saturating_sub(y)),
        "llvm.sshl.sat" => {
            let exact = i64::from(a) << (y % 32);
            signed(exact.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32)
        }
        "llvm.ushl.sat" => {
            let exact = u64::from(x) << (y % 32);
            plain(exact.min(u64::from(u32::MAX)) as u32)
        }
        "llvm.sadd.with.overflow" => signed_pair(a.overflowing_add(b)),
        "llvm.ssub.with.overflow" => signed_pair(a.overflowing_sub(b)),
        "llvm.smul.with.overflow" => signed_pair(a.overflowing_mul(b)),
        "llvm.uadd.with.overflow" => pair(x.overflowing_add(y)),
        "llvm.usub.with.overflow" => pair(x.overflowing_sub(y)),
        "llvm.umul.with.overflow" => pair(x.overflowing_mul(y)),
        "llvm.scmp" => order(a.cmp(&b)),
        "llvm.ucmp" => order(x.cmp(&y)),
        "llvm.ptrmask" => plain(x & y),
        _ => panic!("{name} has no test"),
    }
}

/// Reduces shift amounts below the width: larger ones are undefined.
fn tame(name: &str, operands: [u128; 3], width: u32) -> [u128; 3] {
    let [x, y, z] = operands.map(|operand| operand & mask(width));
    if name.ends_with("shl.sat") {
        return [x, y % u128::from(width), z];
    }
    [x, y, z]
}

/// Operands, with extreme values as likely as others.
fn operand() -> impl Strategy<Value = u128> {
    prop_oneof![
        any::<u128>(),
        (0u128..4),
        (0u128..4).prop_map(|x| u128::MAX - x),
        (0u32..128).prop_map(|bit| 1 << bit),
        (0u32..128).prop_map(|bit| (1u128 << bit) - 1),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn as_rust_computes(x in operand(), y in operand(), z in operand()) {
        for row in OPERATIONS {
            let [x, y, z] = tame(row.name, [x, y, z], 32);
            let expected = expected(row.name, x as u32, y as u32, z as u32);
            prop_assert_eq!(concrete(row.name, 32, &[x, y, z]), expected, "{}", row.name);
        }
    }

    #[test]
    fn terms_agree_with_numbers(
        x in operand(),
        y in operand(),
        z in operand(),
        width in prop::sample::select(vec![1u16, 7, 8, 16, 33, 64, 65, 80, 128]),
    ) {
        for row in OPERATIONS {
            if row.name == "llvm.bswap" && width % 16 != 0 {
                continue;
            }
            // A three-way comparison needs a result of at least two bits.
            if row.name.ends_with("cmp") && width == 1 {
                continue;
            }
            let operands = tame(row.name, [x, y, z], u32::from(width));
            let numbers = concrete(row.name, width, &operands);
            let terms = symbolic(row.name, width, &operands);
            prop_assert_eq!(terms, numbers, "{} at width {}", row.name, width);
        }
    }
}

#[test]
fn wide_overflow() {
    let least = 1u128 << 127;
    let (value, overflow) = concrete("llvm.smul.with.overflow", 128, &[least, u128::MAX, 0]);
    assert_eq!((value, overflow), (least, 1));
    let (value, overflow) = concrete("llvm.sadd.with.overflow", 65, &[mask(64), 1, 0]);
    assert_eq!((signed(65, value), overflow), (signed(65, 1 << 64), 1));
}
