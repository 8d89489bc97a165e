//! x87 instructions in inline assembly that compute functions, load constants, and do arithmetic and
//! comparisons. Functions that are not exactly defined are computed by the processor, on numbers
//! only.

use std::arch::asm;

use everett_expr::{ExprId, FloatCompareOp, FloatFormat, FloatOp};

use super::machine::{EXTENDED, Location, Machine};
use super::parse::Instruction;
use super::step::{Execute, Step, operand};
use super::vectors::set_comparison;
use super::x87::check_control;
use crate::vm::Interrupt;

const X87: FloatFormat = FloatFormat::X87;

/// The instructions.
pub const INSTRUCTIONS: &[(&str, Execute)] = &[
    ("fsin", |m, _, _| angle(m, Function::Sin)),
    ("fcos", |m, _, _| angle(m, Function::Cos)),
    ("fsincos", |m, _, _| angle(m, Function::SinCos)),
    ("fptan", |m, _, _| angle(m, Function::Tan)),
    ("f2xm1", |m, _, _| unary(m, Function::Exp)),
    ("fxtract", |m, _, _| unary(m, Function::Extract)),
    ("fpatan", |m, _, _| binary(m, Function::Atan, true)),
    ("fyl2x", |m, _, _| binary(m, Function::Log, true)),
    ("fyl2xp1", |m, _, _| binary(m, Function::LogPlusOne, true)),
    ("fscale", |m, _, _| binary(m, Function::Scale, false)),
    ("fldz", |m, _, _| constant(m, 0)),
    ("fld1", |m, _, _| constant(m, 0x3fff_8000_0000_0000_0000)),
    ("fldpi", |m, _, _| constant(m, 0x4000_c90f_daa2_2168_c235)),
    ("fldl2e", |m, _, _| constant(m, 0x3fff_b8aa_3b29_5c17_f0bc)),
    ("fldl2t", |m, _, _| constant(m, 0x4000_d49a_784b_cd1b_8afe)),
    ("fldlg2", |m, _, _| constant(m, 0x3ffd_9a20_9a84_fbcf_f799)),
    ("fldln2", |m, _, _| constant(m, 0x3ffe_b172_17f7_d1cf_79ac)),
    ("fadd", |m, i, s| arithmetic(m, i, s, FloatOp::Add, false)),
    ("fmul", |m, i, s| arithmetic(m, i, s, FloatOp::Mul, false)),
    ("fsub", |m, i, s| arithmetic(m, i, s, FloatOp::Sub, false)),
    ("fsubr", |m, i, s| arithmetic(m, i, s, FloatOp::Sub, true)),
    ("fdiv", |m, i, s| arithmetic(m, i, s, FloatOp::Div, false)),
    ("fdivr", |m, i, s| arithmetic(m, i, s, FloatOp::Div, true)),
    ("faddp", |m, i, _| popping(m, i, FloatOp::Add, false)),
    ("fmulp", |m, i, _| popping(m, i, FloatOp::Mul, false)),
    ("fsubp", |m, i, _| popping(m, i, FloatOp::Sub, false)),
    ("fsubrp", |m, i, _| popping(m, i, FloatOp::Sub, true)),
    ("fdivp", |m, i, _| popping(m, i, FloatOp::Div, false)),
    ("fdivrp", |m, i, _| popping(m, i, FloatOp::Div, true)),
    ("fadds", |m, i, _| {
        with_memory(m, i, FloatFormat::Single, FloatOp::Add, false)
    }),
    ("faddl", |m, i, _| {
        with_memory(m, i, FloatFormat::Double, FloatOp::Add, false)
    }),
    ("fmuls", |m, i, _| {
        with_memory(m, i, FloatFormat::Single, FloatOp::Mul, false)
    }),
    ("fmull", |m, i, _| {
        with_memory(m, i, FloatFormat::Double, FloatOp::Mul, false)
    }),
    ("fsubs", |m, i, _| {
        with_memory(m, i, FloatFormat::Single, FloatOp::Sub, false)
    }),
    ("fsubl", |m, i, _| {
        with_memory(m, i, FloatFormat::Double, FloatOp::Sub, false)
    }),
    ("fdivs", |m, i, _| {
        with_memory(m, i, FloatFormat::Single, FloatOp::Div, false)
    }),
    ("fdivl", |m, i, _| {
        with_memory(m, i, FloatFormat::Double, FloatOp::Div, false)
    }),
    ("filds", |m, i, _| load_int(m, i, 16)),
    ("fildl", |m, i, _| load_int(m, i, 32)),
    ("fildll", |m, i, _| load_int(m, i, 64)),
    ("fildq", |m, i, _| load_int(m, i, 64)),
    ("fld", load_register),
    ("fst", |m, i, _| store_register(m, i, 0)),
    ("fstp", |m, i, _| store_register(m, i, 1)),
    ("fcomi", |m, i, _| compare(m, i, 0)),
    ("fcomip", |m, i, _| compare(m, i, 1)),
    ("fucomi", |m, i, _| compare(m, i, 0)),
    ("fucomip", |m, i, _| compare(m, i, 1)),
    ("fcom", |m, i, _| compare_status(m, i, 0)),
    ("fcomp", |m, i, _| compare_status(m, i, 1)),
    ("fcompp", |m, i, _| compare_status(m, i, 2)),
    ("fucom", |m, i, _| compare_status(m, i, 0)),
    ("fucomp", |m, i, _| compare_status(m, i, 1)),
    ("fucompp", |m, i, _| compare_status(m, i, 2)),
    ("ftst", ftst),
];

/// A function that the processor computes.
#[derive(Copy, Clone)]
enum Function {
    Sin,
    Cos,
    SinCos,
    Tan,
    Exp,
    Extract,
    Atan,
    Log,
    LogPlusOne,
    Scale,
}

/// Executes an instruction on `st(0)` and `st(1)`, stores the two top registers, and empties the
/// stack.
macro_rules! execute {
    ($instruction:literal, $results:literal, $x:expr, $y:expr) => {{
        let (x, y): ([u8; 16], [u8; 16]) = ($x.to_le_bytes(), $y.to_le_bytes());
        let (mut first, mut second) = ([0u8; 16], [0u8; 16]);
        // SAFETY: reads 10 bytes each from two arrays of 16, writes 10 bytes each to two others,
        // and leaves the register stack as empty as it was: the last piece frees what is left.
        unsafe {
            asm!(
                "fld tbyte ptr [{y}]", "fld tbyte ptr [{x}]", $instruction,
                "fstp tbyte ptr [{first}]", "fstp tbyte ptr [{second}]", $results,
                x = in(reg) &x, y = in(reg) &y,
                first = in(reg) &mut first, second = in(reg) &mut second,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
            );
        }
        (u128::from_le_bytes(first), u128::from_le_bytes(second))
    }};
}

/// Computes a function of `x` (`st(0)`) and `y` (`st(1)`): the two top registers afterwards.
fn compute(function: Function, x: u128, y: u128) -> (u128, u128) {
    match function {
        Function::Sin => execute!("fsin", "", x, y),
        Function::Cos => execute!("fcos", "", x, y),
        Function::SinCos => execute!("fsincos", "fstp st(0)", x, y),
        Function::Tan => execute!("fptan", "fstp st(0)", x, y),
        Function::Exp => execute!("f2xm1", "", x, y),
        Function::Extract => execute!("fxtract", "fstp st(0)", x, y),
        Function::Atan => execute!("fpatan\nfldz\nfxch st(1)", "", x, y),
        Function::Log => execute!("fyl2x\nfldz\nfxch st(1)", "", x, y),
        Function::LogPlusOne => execute!("fyl2xp1\nfldz\nfxch st(1)", "", x, y),
        Function::Scale => execute!("fscale", "", x, y),
    }
}

/// Returns the number in a register of the stack.
fn number(m: &mut Machine<'_, '_, '_>, position: usize) -> Result<u128, Interrupt> {
    check_control(m)?;
    let term = m.read(Location::Stack(position), EXTENDED)?;
    let number = m.vm.arena.as_const_u128(term);
    number.ok_or_else(|| {
        m.args
            .unsupported("on symbolic values, as a function of the x87")
    })
}

fn set(m: &mut Machine<'_, '_, '_>, position: usize, number: u128) -> Step {
    let term = m.vm.arena.constant_u128(EXTENDED, number);
    m.write(Location::Stack(position), term)
}

fn constant(m: &mut Machine<'_, '_, '_>, number: u128) -> Step {
    let term = m.vm.arena.constant_u128(EXTENDED, number);
    m.stack.insert(0, term);
    Ok(())
}

/// Computes a function of an angle. C2 tells that it is too large, and then nothing changes.
fn angle(m: &mut Machine<'_, '_, '_>, function: Function) -> Step {
    /// The exponent of 2^63, with its bias.
    const TOO_LARGE: u128 = 0x3fff + 63;
    const C2: u64 = 1 << 10;
    let x = number(m, 0)?;
    let exponent = x >> 64 & 0x7fff;
    let is_large = (TOO_LARGE..0x7fff).contains(&exponent);
    let bit = m.vm.arena.constant(16, C2);
    m.status = if is_large {
        m.vm.arena.or(m.status, bit)
    } else {
        let others = m.vm.arena.not(bit);
        m.vm.arena.and(m.status, others)
    };
    if is_large {
        return Ok(());
    }
    m.vm.float_flags_unknown();
    let (first, second) = compute(function, x, 0);
    match function {
        Function::SinCos | Function::Tan => {
            set(m, 0, second)?;
            constant(m, first)
        }
        _ => set(m, 0, first),
    }
}

fn unary(m: &mut Machine<'_, '_, '_>, function: Function) -> Step {
    let x = number(m, 0)?;
    m.vm.float_flags_unknown();
    let (first, second) = compute(function, x, 0);
    if let Function::Extract = function {
        set(m, 0, second)?;
        return constant(m, first);
    }
    set(m, 0, first)
}

/// Computes a function of two registers, which may take one off the stack.
fn binary(m: &mut Machine<'_, '_, '_>, function: Function, pops: bool) -> Step {
    let (x, y) = (number(m, 0)?, number(m, 1)?);
    m.vm.float_flags_unknown();
    let (result, _) = compute(function, x, y);
    if pops {
        m.stack.remove(0);
    }
    set(m, 0, result)
}

/// Computes `old op source` in a register of the stack, or reversed. With AT&T's names, the order is
/// reversed where the destination is not the top.
fn combine(
    m: &mut Machine<'_, '_, '_>,
    source: Location,
    target: Location,
    op: FloatOp,
    reversed: bool,
) -> Step {
    check_control(m)?;
    let x = m.read(target, EXTENDED)?;
    let y = m.read(source, EXTENDED)?;
    let swaps = reversed != (target != Location::Stack(0));
    let (x, y) = if swaps { (y, x) } else { (x, y) };
    let result = m.vm.float_term(op, X87, x, y)?;
    m.write(target, result)
}

fn arithmetic(
    m: &mut Machine<'_, '_, '_>,
    i: &Instruction,
    _: Option<u32>,
    op: FloatOp,
    reversed: bool,
) -> Step {
    match &i.operands[..] {
        [] => popping(m, i, op, reversed),
        [source] => {
            let (source, _) = m.locate(source)?;
            combine(m, source, Location::Stack(0), op, reversed)
        }
        _ => {
            let (source, _) = m.locate(operand(m, i, 0)?)?;
            let (target, _) = m.locate(operand(m, i, 1)?)?;
            combine(m, source, target, op, reversed)
        }
    }
}

/// Computes into another register than the top, and takes the top off the stack.
fn popping(m: &mut Machine<'_, '_, '_>, i: &Instruction, op: FloatOp, reversed: bool) -> Step {
    let target = match i.operands.last() {
        Some(operand) => m.locate(operand)?.0,
        None => Location::Stack(1),
    };
    combine(m, Location::Stack(0), target, op, reversed)?;
    m.stack.remove(0);
    Ok(())
}

fn with_memory(
    m: &mut Machine<'_, '_, '_>,
    i: &Instruction,
    format: FloatFormat,
    op: FloatOp,
    reversed: bool,
) -> Step {
    check_control(m)?;
    let (source, _) = m.locate(operand(m, i, 0)?)?;
    let y = m.read(source, format.width())?;
    let y = m.vm.arena.float_convert(format, X87, y);
    let x = m.read(Location::Stack(0), EXTENDED)?;
    let (x, y) = if reversed { (y, x) } else { (x, y) };
    let result = m.vm.float_term(op, X87, x, y)?;
    m.write(Location::Stack(0), result)
}

fn load_int(m: &mut Machine<'_, '_, '_>, i: &Instruction, width: u32) -> Step {
    let (source, _) = m.locate(operand(m, i, 0)?)?;
    let x = m.read(source, width)?;
    let x = m.vm.arena.float_from_int(true, X87, x);
    m.stack.insert(0, x);
    Ok(())
}

fn load_register(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    let (source, _) = m.locate(operand(m, i, 0)?)?;
    let x = m.read(source, EXTENDED)?;
    m.stack.insert(0, x);
    Ok(())
}

fn pop(m: &mut Machine<'_, '_, '_>, count: usize) {
    let count = count.min(m.stack.len());
    m.stack.drain(..count);
}

fn store_register(m: &mut Machine<'_, '_, '_>, i: &Instruction, pops: usize) -> Step {
    let (target, _) = m.locate(operand(m, i, 0)?)?;
    let x = m.read(Location::Stack(0), EXTENDED)?;
    m.write(target, x)?;
    pop(m, pops);
    Ok(())
}

/// Returns the top and the other operand of a comparison.
fn compared(m: &mut Machine<'_, '_, '_>, i: &Instruction) -> Result<(ExprId, ExprId), Interrupt> {
    let other = match i.operands.first() {
        Some(operand) => m.locate(operand)?.0,
        None => Location::Stack(1),
    };
    let x = m.read(Location::Stack(0), EXTENDED)?;
    Ok((x, m.read(other, EXTENDED)?))
}

fn compare(m: &mut Machine<'_, '_, '_>, i: &Instruction, pops: usize) -> Step {
    let (x, y) = compared(m, i)?;
    set_comparison(m, X87, x, y)?;
    pop(m, pops);
    Ok(())
}

/// Sets the condition codes of the status word as a comparison says: C0 for less, C3 for equal, and
/// C2 with both for unordered.
fn set_codes(m: &mut Machine<'_, '_, '_>, x: ExprId, y: ExprId) {
    m.vm.float_flags_unknown();
    let arena = &mut *m.vm.arena;
    let less = arena.float_compare(FloatCompareOp::Olt, X87, x, y);
    let same = arena.float_compare(FloatCompareOp::Oeq, X87, x, y);
    let unordered = arena.float_compare(FloatCompareOp::Uno, X87, x, y);
    let less = arena.or(less, unordered);
    let same = arena.or(same, unordered);
    let others = arena.constant(16, !0x4500);
    let mut status = arena.and(m.status, others);
    for (bit, at) in [(less, 8), (unordered, 10), (same, 14)] {
        let bit = arena.zext(bit, 16);
        let by = arena.constant(16, at);
        let bit = arena.shl(bit, by);
        status = arena.or(status, bit);
    }
    m.status = status;
}

fn compare_status(m: &mut Machine<'_, '_, '_>, i: &Instruction, pops: usize) -> Step {
    let (x, y) = compared(m, i)?;
    set_codes(m, x, y);
    pop(m, pops);
    Ok(())
}

fn ftst(m: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    let x = m.read(Location::Stack(0), EXTENDED)?;
    let zero = m.vm.arena.zero(EXTENDED);
    set_codes(m, x, zero);
    Ok(())
}
