//! Semantics of inline assembly instructions on general registers, flags and memory.

use everett_expr::{BinaryOp, ExprId, FloatFormat, FloatUnaryOp};

use super::super::environment::{known_flags, set_mxcsr};
use super::arithmetic::{difference, exact, product, sum};
use super::machine::{Flags, Location, Machine};
use super::parse::{Instruction, Operand};
use super::{bits, repeated, vectors, words, x87, x87_functions};
use crate::bug::Bug;
use crate::external::assembly::machine::condition;
use crate::external::assembly::parse::is_condition;
use crate::external::assembly::step::{
    Execute, Step, both, move_extended, operand, set_result_flags, single,
};
use crate::value::Value;
use crate::vm::{Interrupt, SystemCall};

const INSTRUCTIONS: &[(&str, Execute)] = &[
    ("nop", nothing),
    ("pause", nothing),
    ("mfence", nothing),
    ("lfence", nothing),
    ("sfence", nothing),
    ("clflush", nothing),
    ("clflushopt", nothing),
    ("clwb", nothing),
    ("prefetch", nothing),
    ("prefetcht0", nothing),
    ("prefetcht1", nothing),
    ("prefetcht2", nothing),
    ("prefetchnta", nothing),
    ("prefetchw", nothing),
    ("prefetchwt1", nothing),
    ("emms", nothing),
    ("endbr64", nothing),
    ("hlt", trap),
    ("ud2", trap),
    ("int3", trap),
    ("int", trap),
    ("syscall", system_call),
    ("mov", mov),
    ("movabs", mov),
    ("lea", lea),
    ("push", push),
    ("pop", pop),
    ("pushf", push_flags),
    ("pushfq", push_flags),
    ("xchg", xchg),
    ("xadd", xadd),
    ("cmpxchg", cmpxchg),
    ("cmpxchg8b", cmpxchg8b),
    ("cmpxchg16b", cmpxchg16b),
    ("add", add),
    ("adc", adc),
    ("sub", sub),
    ("sbb", sbb),
    ("cmp", cmp),
    ("and", and),
    ("or", or),
    ("xor", xor),
    ("test", test),
    ("not", not),
    ("neg", neg),
    ("inc", inc),
    ("dec", dec),
    ("movnti", mov),
    ("mul", mul),
    ("imul", imul),
    ("cpuid", cpuid),
    ("rdtsc", rdtsc),
    ("rdtscp", rdtsc),
    ("xgetbv", xgetbv),
    ("sqrtsd", sqrtsd),
    ("sqrtss", sqrtss),
    ("cvtsd2si", cvtsd2si),
    ("cvtss2si", cvtss2si),
    ("cvttsd2si", cvttsd2si),
    ("cvttss2si", cvttss2si),
    ("ldmxcsr", ldmxcsr),
    ("stmxcsr", stmxcsr),
];

/// Finds the semantics of a mnemonic, and the width that its suffix gives.
pub fn lookup(name: &str) -> Option<(Execute, Option<u32>)> {
    let find = |name: &str| {
        let rows = INSTRUCTIONS
            .iter()
            .chain(bits::INSTRUCTIONS)
            .chain(repeated::INSTRUCTIONS)
            .chain(vectors::INSTRUCTIONS)
            .chain(words::INSTRUCTIONS)
            .chain(x87::INSTRUCTIONS)
            .chain(x87_functions::INSTRUCTIONS);
        rows.into_iter().find(|row| row.0 == name).map(|row| row.1)
    };
    if let Some(execute) = find(name) {
        return Some((execute, None));
    }
    if let Some(code) = name.strip_prefix("set") {
        return is_condition(code).then_some((set as Execute, Some(8)));
    }
    if let Some(code) = name.strip_prefix("cmov") {
        let code = cmov_condition(code)?;
        return is_condition(code).then_some((cmov as Execute, None));
    }
    if extension(name).is_some() {
        return Some((extend as Execute, None));
    }
    let (base, suffix) = name.split_at_checked(name.len().checked_sub(1)?)?;
    Some((find(base)?, Some(suffix_width(suffix)?)))
}

fn suffix_width(suffix: &str) -> Option<u32> {
    match suffix {
        "b" => Some(8),
        "w" => Some(16),
        // Intel's string instructions end in `d`.
        "l" | "d" => Some(32),
        "q" => Some(64),
        _ => None,
    }
}

/// Returns whether an instruction may have a prefix that repeats it, or that changes nothing.
pub fn takes_repetition(i: &Instruction) -> bool {
    let is_string = |row: &&(&str, Execute)| i.name.starts_with(row.0);
    let repeats = i.operands.is_empty() && repeated::INSTRUCTIONS.iter().any(|row| is_string(&row));
    repeats || matches!(i.name.as_str(), "nop" | "ret")
}

/// Parses `movzbl` and similar mnemonics: whether to sign-extend, and both widths.
fn extension(name: &str) -> Option<(bool, u32, u32)> {
    let (signed, widths) = match name.strip_prefix("movz") {
        Some(widths) => (false, widths),
        None => (true, name.strip_prefix("movs")?),
    };
    let (from, to) = widths.split_at_checked(1)?;
    Some((signed, suffix_width(from)?, suffix_width(to)?))
}

fn nothing(_: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    Ok(())
}

fn trap(_: &mut Machine<'_, '_, '_>, instruction: &Instruction, _: Option<u32>) -> Step {
    Err(Bug::trap(&instruction.name).into())
}

fn system_call(m: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    const ARGUMENTS: [usize; 6] = [7, 6, 2, 10, 8, 9];
    let number = m.general(0);
    let number = Value::of_term(m.vm.arena, number);
    let args = ARGUMENTS.map(|register| {
        let term = m.general(register);
        Value::of_term(m.vm.arena, term)
    });
    Err(Interrupt::SystemCall(Box::new(SystemCall::new(
        number, args,
    ))))
}

fn mov(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let width = m.width(i, suffix)?;
    let (source, _) = m.locate(operand(m, i, 0)?)?;
    let (target, _) = m.locate(operand(m, i, 1)?)?;
    let value = m.read(source, width)?;
    m.write(target, value)
}

fn extend(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    let Some((signed, from, to)) = extension(&i.name) else {
        return Ok(());
    };
    let (source, _) = m.locate(operand(m, i, 0)?)?;
    let (target, _) = m.locate(operand(m, i, 1)?)?;
    move_extended(m, (source, from), (target, to), signed)
}

fn lea(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    let (source, _) = m.locate(operand(m, i, 0)?)?;
    let (target, _) = m.locate(operand(m, i, 1)?)?;
    let Location::Memory(pointer) = source else {
        return Err(m
            .args
            .unsupported("with the address of what is not in memory"));
    };
    let address = pointer.to_term(m.vm.arena, 64);
    m.write(target, address)
}

fn push(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    let (value, _) = single(m, i, Some(64))?;
    m.push(value);
    Ok(())
}

fn push_flags(m: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    // The interrupt flag and the reserved bit 1 are always set.
    let mut flags = m.vm.arena.constant(64, 0x202);
    let now = m.flags;
    let parity = condition(m, "p");
    for (bit, flag) in [
        (0, now.carry),
        (2, parity),
        (6, now.zero),
        (7, now.sign),
        (11, now.overflow),
    ] {
        let flag = m.vm.arena.zext(flag, 64);
        let by = m.vm.arena.constant(64, bit);
        let flag = m.vm.arena.shl(flag, by);
        flags = m.vm.arena.or(flags, flag);
    }
    m.push(flags);
    Ok(())
}

fn pop(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    let value = m.pop()?;
    let (target, _) = m.locate(operand(m, i, 0)?)?;
    m.write(target, value)
}

fn xchg(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let (source, _) = m.locate(operand(m, i, 0)?)?;
    let (a, b, target) = both(m, i, suffix)?;
    m.write(target, a)?;
    m.write(source, b)
}

fn xadd(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let (source, _) = m.locate(operand(m, i, 0)?)?;
    let (a, old, target) = both(m, i, suffix)?;
    let sum = sum(m, old, a, None);
    m.write(source, old)?;
    m.write(target, sum)
}

fn cmpxchg(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let (new, old, target) = both(m, i, suffix)?;
    let width = m.vm.arena.width(old);
    let expected = m.read(Location::General(0), width)?;
    difference(m, expected, old, None);
    let same = m.flags.zero;
    let value = m.vm.arena.ite(same, new, old);
    m.write(target, value)?;
    m.write(Location::General(0), old)
}

/// Compares and exchanges `width` bits, half of them in each register of a pair.
fn cmpxchg_pair(m: &mut Machine<'_, '_, '_>, i: &Instruction, width: u32) -> Step {
    let (target, _) = m.locate(operand(m, i, 0)?)?;
    let old = m.read(target, width)?;
    let half = width / 2;
    let pair = |m: &mut Machine<'_, '_, '_>, high, low| -> Result<ExprId, Interrupt> {
        let high = m.read(Location::General(high), half)?;
        let low = m.read(Location::General(low), half)?;
        Ok(m.vm.arena.concat(high, low))
    };
    let expected = pair(m, 2, 0)?;
    let new = pair(m, 1, 3)?;
    let same = m.vm.arena.eq(expected, old);
    m.flags.zero = same;
    let value = m.vm.arena.ite(same, new, old);
    m.write(target, value)?;
    let low = m.vm.arena.extract(old, 0, half);
    let high = m.vm.arena.extract(old, half, half);
    m.write(Location::General(0), low)?;
    m.write(Location::General(2), high)
}

fn cmpxchg8b(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    cmpxchg_pair(m, i, 64)
}

fn cmpxchg16b(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    cmpxchg_pair(m, i, 128)
}

fn add(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let (y, x, target) = both(m, i, suffix)?;
    let result = sum(m, x, y, None);
    m.write(target, result)
}

fn adc(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let (y, x, target) = both(m, i, suffix)?;
    let carry = m.flags.carry;
    let result = sum(m, x, y, Some(carry));
    m.write(target, result)
}

fn sub(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let (y, x, target) = both(m, i, suffix)?;
    let result = difference(m, x, y, None);
    m.write(target, result)
}

fn sbb(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let (y, x, target) = both(m, i, suffix)?;
    let carry = m.flags.carry;
    let result = difference(m, x, y, Some(carry));
    m.write(target, result)
}

fn cmp(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let (y, x, _) = both(m, i, suffix)?;
    difference(m, x, y, None);
    Ok(())
}

fn bitwise(m: &mut Machine<'_, '_, '_>, op: BinaryOp, x: ExprId, y: ExprId) -> ExprId {
    let result = m.vm.arena.binary(op, x, y);
    let clear = m.vm.arena.zero(1);
    m.flags = Flags {
        carry: clear,
        overflow: clear,
        ..m.flags
    };
    set_result_flags(m, result);
    result
}

fn and(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let (y, x, target) = both(m, i, suffix)?;
    let result = bitwise(m, BinaryOp::And, x, y);
    m.write(target, result)
}

/// Computes a bitwise or. `lock; orl $0,(%rsp)` is only a memory barrier, because there is no
/// machine stack to read.
fn or(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    if let [Operand::Immediate(0), Operand::At(address)] = &i.operands[..]
        && matches!(address.base.as_deref(), Some(Operand::Named(base)) if base.number == 4)
    {
        return Ok(());
    }
    let (y, x, target) = both(m, i, suffix)?;
    let result = bitwise(m, BinaryOp::Or, x, y);
    m.write(target, result)
}

fn xor(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let (y, x, target) = both(m, i, suffix)?;
    let result = bitwise(m, BinaryOp::Xor, x, y);
    m.write(target, result)
}

fn test(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let (y, x, _) = both(m, i, suffix)?;
    bitwise(m, BinaryOp::And, x, y);
    Ok(())
}

fn not(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let (x, target) = single(m, i, suffix)?;
    let result = m.vm.arena.not(x);
    m.write(target, result)
}

fn neg(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let (x, target) = single(m, i, suffix)?;
    let width = m.vm.arena.width(x);
    let zero = m.vm.arena.zero(width);
    let result = difference(m, zero, x, None);
    m.write(target, result)
}

/// Increments or decrements; the carry flag is unchanged.
fn step(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>, op: BinaryOp) -> Step {
    let (x, target) = single(m, i, suffix)?;
    let carry = m.flags.carry;
    let width = m.vm.arena.width(x);
    let one = m.vm.arena.constant(width, 1);
    let result = exact(m, op, x, one, None);
    m.flags.carry = carry;
    m.write(target, result)
}

fn inc(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    step(m, i, suffix, BinaryOp::Add)
}

fn dec(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    step(m, i, suffix, BinaryOp::Sub)
}

/// Computes the double-width product in two registers.
fn long_product(
    m: &mut Machine<'_, '_, '_>,
    i: &Instruction,
    suffix: Option<u32>,
    signed: bool,
) -> Step {
    let (y, _) = single(m, i, suffix)?;
    let width = m.vm.arena.width(y);
    let x = m.read(Location::General(0), width)?;
    let product = product(m, x, y, signed);
    if width == 8 {
        return m.write(Location::General(0), product);
    }
    let low = m.vm.arena.extract(product, 0, width);
    let high = m.vm.arena.extract(product, width, width);
    m.write(Location::General(0), low)?;
    m.write(Location::General(2), high)
}

fn mul(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    long_product(m, i, suffix, false)
}

fn imul(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    if i.operands.len() < 2 {
        return long_product(m, i, suffix, true);
    }
    let (y, mut x, mut target) = both(m, i, suffix)?;
    if let Some(third) = i.operands.get(2) {
        target = m.locate(third)?.0;
    } else {
        x = m.read(target, m.vm.arena.width(x))?;
    }
    let product = product(m, x, y, true);
    let width = m.vm.arena.width(x);
    let low = m.vm.arena.extract(product, 0, width);
    m.write(target, low)
}

/// Returns the condition in the mnemonic of a conditional move, which may end in a width suffix.
fn cmov_condition(code: &str) -> Option<&str> {
    if is_condition(code) {
        return Some(code);
    }
    let (base, suffix) = code.split_at_checked(code.len().checked_sub(1)?)?;
    suffix_width(suffix)?;
    Some(base)
}

fn set(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    let holds = condition(m, i.name.trim_start_matches("set"));
    let value = m.vm.arena.zext(holds, 8);
    let (target, _) = m.locate(operand(m, i, 0)?)?;
    m.write(target, value)
}

fn cmov(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let code = i.name.trim_start_matches("cmov");
    let code = cmov_condition(code).unwrap_or(code);
    let (x, old, target) = both(m, i, suffix)?;
    let holds = condition(m, code);
    let value = m.vm.arena.ite(holds, x, old);
    m.write(target, value)
}

fn write_words(m: &mut Machine<'_, '_, '_>, words: [(usize, u64); 4]) -> Step {
    for (register, word) in words {
        let word = m.vm.arena.constant(32, word);
        m.write(Location::General(register), word)?;
    }
    Ok(())
}

/// Returns the result of `cpuid` (eax, ebx, ecx, edx): a baseline x86-64, so that programs take
/// code paths without newer instructions.
pub fn processor(leaf: u64) -> [u64; 4] {
    // fpu, tsc, msr, cx8, cmov, clflush, mmx, fxsr, sse, sse2; cmpxchg16b.
    const FEATURES: u64 = 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 15 | 1 << 19 | 7 << 23 | 1 << 26;
    match leaf {
        0 => [1, 0x756e_6547, 0x6c65_746e, 0x4965_6e69],
        1 => [0x6f1, 8 << 8 | 1 << 16, 1 << 13, FEATURES],
        0x8000_0000 => [0x8000_0001, 0, 0, 0],
        0x8000_0001 => [0, 0, 1, 1 << 11 | 1 << 20 | 1 << 29],
        _ => [0; 4],
    }
}

fn cpuid(m: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    let leaf = m.read(Location::General(0), 32)?;
    let leaf = Value::of_term(m.vm.arena, leaf);
    let leaf = m.vm.concretize(leaf)?;
    let [a, b, c, d] = processor(leaf);
    write_words(m, [(0, a), (3, b), (1, c), (2, d)])
}

/// Reads the time stamp counter. Time is virtual, so that it is deterministic.
fn rdtsc(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    let time = m.vm.clock_ns;
    let words = [(0, time & 0xffff_ffff), (2, time >> 32)];
    for (register, word) in words {
        let word = m.vm.arena.constant(32, word);
        m.write(Location::General(register), word)?;
    }
    if i.name == "rdtscp" {
        let zero = m.vm.arena.zero(32);
        m.write(Location::General(1), zero)?;
    }
    Ok(())
}

fn xgetbv(m: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    for (register, word) in [(0, 3), (2, 0)] {
        let word = m.vm.arena.constant(32, word);
        m.write(Location::General(register), word)?;
    }
    Ok(())
}

fn square_root(m: &mut Machine<'_, '_, '_>, i: &Instruction, format: FloatFormat) -> Step {
    let (source, _) = m.locate(operand(m, i, 0)?)?;
    let (target, _) = m.locate(operand(m, i, 1)?)?;
    let x = m.read(source, format.width())?;
    let root = m.vm.float_unary_term(FloatUnaryOp::Sqrt, format, x)?;
    m.write(target, root)
}

fn sqrtsd(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    square_root(m, i, FloatFormat::Double)
}

fn sqrtss(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    square_root(m, i, FloatFormat::Single)
}

fn to_int(
    m: &mut Machine<'_, '_, '_>,
    i: &Instruction,
    suffix: Option<u32>,
    format: FloatFormat,
    round: bool,
) -> Step {
    let (source, _) = m.locate(operand(m, i, 0)?)?;
    let (target, known) = m.locate(operand(m, i, 1)?)?;
    let x = m.read(source, format.width())?;
    let mode = round.then(|| m.vm.float_rounding(format));
    let width = suffix.or(known).unwrap_or(64);
    let result = m.vm.float_to_int_term(format, mode, x, width);
    m.write(target, result)
}

fn cvtsd2si(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    to_int(m, i, suffix, FloatFormat::Double, true)
}

fn cvtss2si(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    to_int(m, i, suffix, FloatFormat::Single, true)
}

fn cvttsd2si(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    to_int(m, i, suffix, FloatFormat::Double, false)
}

fn cvttss2si(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    to_int(m, i, suffix, FloatFormat::Single, false)
}

fn ldmxcsr(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    let (source, _) = m.locate(operand(m, i, 0)?)?;
    let word = m.read(source, 32)?;
    let word = Value::of_term(m.vm.arena, word);
    let word = m.vm.concretize(word)?;
    set_mxcsr(m.vm, m.args, word)
}

fn stmxcsr(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    let (target, _) = m.locate(operand(m, i, 0)?)?;
    known_flags(m.vm, m.args)?;
    let word = m.vm.arena.constant(32, m.vm.thread.floats.mxcsr.into());
    m.write(target, word)
}
