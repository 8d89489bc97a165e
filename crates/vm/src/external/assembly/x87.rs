//! x87 instructions in inline assembly. The constraints set up the x87 stack. A piece of assembly
//! may select another rounding mode through the control word, and that mode stays in force after
//! the piece. Other precisions and other exception masks are unsupported.

use everett_expr::{ExprId, FloatCompareOp, FloatFormat, FloatOp, FloatUnaryOp, RoundingMode};

use super::super::environment::{is_usual_control, masks_exceptions};
use super::machine::{EXTENDED, Location, Machine};
use super::parse::Instruction;
use crate::external::assembly::step::{Execute, Step, operand};
use crate::thread::{DEFAULT_X87_CONTROL, FloatEnvironment};
use crate::value::Value;
use crate::vm::Interrupt;

const X87: FloatFormat = FloatFormat::X87;

/// The instructions.
pub const INSTRUCTIONS: &[(&str, Execute)] = &[
    ("fwait", nothing),
    ("wait", nothing),
    ("fnclex", fnclex),
    ("fclex", fnclex),
    ("emms", nothing),
    ("fninit", fninit),
    ("finit", fninit),
    ("fldcw", fldcw),
    ("fnstcw", fnstcw),
    ("fstcw", fnstcw),
    ("fnstsw", fnstsw),
    ("fstsw", fnstsw),
    ("fsqrt", fsqrt),
    ("fabs", fabs),
    ("fchs", fchs),
    ("frndint", frndint),
    ("fprem", fprem),
    ("fprem1", fprem1),
    ("fistpll", fistpll),
    ("fistpq", fistpll),
    ("fistpl", fistpl),
    ("fistl", fistl),
    ("flds", flds),
    ("fldl", fldl),
    ("fldt", fldt),
    ("fstps", fstps),
    ("fstpl", fstpl),
    ("fstpt", fstpt),
    ("fxch", fxch),
];

fn nothing(_: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    Ok(())
}

fn fnclex(m: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    m.vm.thread.floats.x87_status = 0;
    m.status = m.vm.arena.zero(16);
    Ok(())
}

fn fninit(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    m.control = DEFAULT_X87_CONTROL;
    m.stack.clear();
    fnclex(m, i, suffix)
}

fn fldcw(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    let (source, _) = m.locate(operand(m, i, 0)?)?;
    let word = m.read(source, 16)?;
    let word = Value::of_term(m.vm.arena, word);
    let control = m.vm.concretize(word)? as u16;
    if !masks_exceptions(control) {
        return Err(m.args.unsupported("where it unmasks exceptions"));
    }
    m.control = control;
    Ok(())
}

/// Checks that precision and masks are the initial ones.
pub fn check_control(m: &Machine<'_, '_, '_>) -> Step {
    if !is_usual_control(m.control) {
        let why = "with another precision of the x87 than the default";
        return Err(m.args.unsupported(why));
    }
    Ok(())
}

fn fnstcw(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    let (target, _) = m.locate(operand(m, i, 0)?)?;
    let word = m.vm.arena.constant(16, u64::from(m.control));
    m.write(target, word)
}

fn fnstsw(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    let target = match i.operands.first() {
        Some(operand) => m.locate(operand)?.0,
        None => Location::General(0),
    };
    let status = m.status;
    m.write(target, status)
}

fn top(m: &mut Machine<'_, '_, '_>) -> Result<ExprId, Interrupt> {
    m.read(Location::Stack(0), EXTENDED)
}

fn set_top(m: &mut Machine<'_, '_, '_>, term: ExprId) -> Step {
    m.write(Location::Stack(0), term)
}

fn fsqrt(m: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    check_control(m)?;
    let x = top(m)?;
    let root = unary(m, FloatUnaryOp::Sqrt, x)?;
    set_top(m, root)
}

fn fabs(m: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    let x = top(m)?;
    let result = m.vm.arena.float_abs(X87, x);
    set_top(m, result)
}

fn fchs(m: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    let x = top(m)?;
    let result = m.vm.arena.float_neg(X87, x);
    set_top(m, result)
}

/// Returns the rounding mode that the control word sets.
fn rounding(m: &Machine<'_, '_, '_>) -> RoundingMode {
    let own = FloatEnvironment {
        x87_control: m.control,
        ..FloatEnvironment::default()
    };
    own.rounding(X87)
}

fn frndint(m: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    let x = top(m)?;
    let op = FloatUnaryOp::RoundToIntegral(rounding(m));
    let result = unary(m, op, x)?;
    set_top(m, result)
}

/// Runs a computation under the control word of the piece, and adds the exception flags that it
/// raises to the status word of the piece.
fn with_control<T>(
    m: &mut Machine<'_, '_, '_>,
    compute: impl FnOnce(&mut Machine<'_, '_, '_>) -> Result<T, Interrupt>,
) -> Result<T, Interrupt> {
    let control = m.vm.thread.floats.x87_control;
    m.vm.thread.floats.x87_control = m.control;
    let result = compute(m);
    m.vm.thread.floats.x87_control = control;
    let raised =
        m.vm.arena
            .constant(16, m.vm.thread.floats.x87_status.into());
    m.status = m.vm.arena.or(m.status, raised);
    result
}

fn unary(m: &mut Machine<'_, '_, '_>, op: FloatUnaryOp, x: ExprId) -> Result<ExprId, Interrupt> {
    with_control(m, |m| m.vm.float_unary_term(op, X87, x))
}

/// Computes `st(0)` modulo `st(1)`: the remainder replaces `st(0)`, and the low bits of the
/// quotient go to the status word.
fn remainder(m: &mut Machine<'_, '_, '_>, to_nearest: bool) -> Step {
    let x = top(m)?;
    let y = m.read(Location::Stack(1), EXTENDED)?;
    // The terms below raise no flags.
    m.status = m.vm.arena.zero(16);
    with_control(m, |m| {
        let numbers = [x, y].map(|term| m.vm.arena.as_const_u128(term));
        match numbers {
            [Some(x), Some(y)] => drop(m.vm.float_number(FloatOp::Rem, X87, x, y)),
            _ => m.vm.float_flags_unknown(),
        }
        Ok(())
    })?;
    let raised = m.status;
    let arena = &mut *m.vm.arena;
    let divisor = arena.float_abs(X87, y);
    // Products with powers of two are exact, and so are the differences below.
    let mut multiples = vec![divisor];
    for power in 0..3 {
        let multiple = arena.float_binary(FloatOp::Add, X87, multiples[power], multiples[power]);
        multiples.push(multiple);
    }
    let magnitude = arena.float_abs(X87, x);
    let mut rest = arena.float_binary(FloatOp::Rem, X87, magnitude, multiples[3]);
    let mut quotient = arena.zero(3);
    for power in (0..3).rev() {
        let multiple = multiples[power];
        let fits = arena.float_compare(FloatCompareOp::Ole, X87, multiple, rest);
        let less = arena.float_binary(FloatOp::Sub, X87, rest, multiple);
        rest = arena.ite(fits, less, rest);
        let one = arena.constant(3, 1 << power);
        let more = arena.add(quotient, one);
        quotient = arena.ite(fits, more, quotient);
    }
    if to_nearest {
        let missing = arena.float_binary(FloatOp::Sub, X87, divisor, rest);
        let above = arena.float_compare(FloatCompareOp::Olt, X87, missing, rest);
        let tie = arena.float_compare(FloatCompareOp::Oeq, X87, missing, rest);
        let odd = arena.extract(quotient, 0, 1);
        let odd_tie = arena.and(tie, odd);
        let up = arena.or(above, odd_tie);
        let one = arena.constant(3, 1);
        let more = arena.add(quotient, one);
        quotient = arena.ite(up, more, quotient);
        let below = arena.float_neg(X87, missing);
        rest = arena.ite(up, below, rest);
    }
    let negated = arena.float_neg(X87, rest);
    let sign = arena.extract(x, EXTENDED - 1, 1);
    let result = arena.ite(sign, negated, rest);
    let codes = quotient_status(m, quotient);
    m.status = m.vm.arena.or(codes, raised);
    set_top(m, result)
}

/// Converts the quotient to condition codes: its bits 0, 1 and 2 are C1, C3 and C0; C2 is clear
/// because the reduction is complete.
fn quotient_status(m: &mut Machine<'_, '_, '_>, quotient: ExprId) -> ExprId {
    let arena = &mut *m.vm.arena;
    let mut status = arena.zero(16);
    for (bit, position) in [(0, 9), (1, 14), (2, 8)] {
        let bit = arena.extract(quotient, bit, 1);
        let bit = arena.zext(bit, 16);
        let by = arena.constant(16, position);
        let bit = arena.shl(bit, by);
        status = arena.or(status, bit);
    }
    status
}

fn fprem(m: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    remainder(m, false)
}

fn fprem1(m: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    remainder(m, true)
}

fn store_int(m: &mut Machine<'_, '_, '_>, i: &Instruction, width: u32, pops: bool) -> Step {
    let (target, _) = m.locate(operand(m, i, 0)?)?;
    let x = top(m)?;
    let mode = Some(rounding(m));
    let result = with_control(m, |m| Ok(m.vm.float_to_int_term(X87, mode, x, width)))?;
    if pops {
        m.stack.remove(0);
    }
    m.write(target, result)
}

fn fistpll(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    store_int(m, i, 64, true)
}

fn fistpl(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    store_int(m, i, 32, true)
}

fn fistl(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    store_int(m, i, 32, false)
}

fn load(m: &mut Machine<'_, '_, '_>, i: &Instruction, format: FloatFormat) -> Step {
    let (source, _) = m.locate(operand(m, i, 0)?)?;
    let x = m.read(source, format.width())?;
    let x = m.vm.arena.float_convert(format, X87, x);
    m.stack.insert(0, x);
    Ok(())
}

fn flds(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    load(m, i, FloatFormat::Single)
}

fn fldl(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    load(m, i, FloatFormat::Double)
}

fn fldt(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    load(m, i, X87)
}

fn store(m: &mut Machine<'_, '_, '_>, i: &Instruction, format: FloatFormat) -> Step {
    let (target, _) = m.locate(operand(m, i, 0)?)?;
    if format != X87 {
        check_control(m)?;
        if rounding(m) != RoundingMode::NearestEven {
            return Err(m
                .args
                .unsupported("with another rounding mode of the x87 than to nearest"));
        }
    }
    let x = top(m)?;
    m.stack.remove(0);
    let x = m.vm.arena.float_convert(X87, format, x);
    m.write(target, x)
}

fn fstps(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    store(m, i, FloatFormat::Single)
}

fn fstpl(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    store(m, i, FloatFormat::Double)
}

fn fstpt(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    store(m, i, X87)
}

fn fxch(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    let other = match i.operands.first() {
        Some(operand) => m.locate(operand)?.0,
        None => Location::Stack(1),
    };
    let (x, y) = (top(m)?, m.read(other, EXTENDED)?);
    m.write(other, x)?;
    set_top(m, y)
}
