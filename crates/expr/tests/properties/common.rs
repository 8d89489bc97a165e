//! Random straight-line programs over terms, run twice: through the simplifying constructors and
//! through plain arithmetic on `u128` that shares no code with the crate.

use everett_expr::{Arena, BinaryOp, CompareOp, ExprId};
use proptest::prelude::*;

/// Number of symbolic bytes.
pub const BYTES: usize = 4;

/// One step: an operator and raw numbers from which its operands are chosen.
#[derive(Clone, Debug)]
pub struct Step {
    pub op: u8,
    pub a: u8,
    pub b: u8,
    pub c: u8,
    pub width: u8,
    pub bits: u128,
}

fn mask(width: u32) -> u128 {
    if width == 128 {
        u128::MAX
    } else {
        (1 << width) - 1
    }
}

fn signed(width: u32, bits: u128) -> i128 {
    let shift = 128 - width;
    ((bits << shift) as i128) >> shift
}

/// A value computed without the crate.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Plain {
    pub width: u32,
    pub bits: u128,
}

impl Plain {
    fn new(width: u32, bits: u128) -> Plain {
        Plain {
            width,
            bits: bits & mask(width),
        }
    }

    fn cast(self, width: u32, sign: bool) -> Plain {
        if sign {
            Plain::new(width, signed(self.width, self.bits) as u128)
        } else {
            Plain::new(width, self.bits)
        }
    }
}

fn plain_binary(op: BinaryOp, x: Plain, y: Plain) -> Plain {
    let width = x.width;
    let (a, b) = (x.bits, y.bits);
    let (sa, sb) = (signed(width, a), signed(width, b));
    let in_range = b < u128::from(width);
    let bits = match op {
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::UDiv => a.checked_div(b).unwrap_or(u128::MAX),
        BinaryOp::URem => {
            if b == 0 {
                a
            } else {
                a % b
            }
        }
        BinaryOp::SDiv if b == 0 => {
            if sa < 0 {
                1
            } else {
                u128::MAX
            }
        }
        BinaryOp::SDiv => sa.wrapping_div(sb) as u128,
        BinaryOp::SRem if b == 0 => a,
        BinaryOp::SRem => sa.wrapping_rem(sb) as u128,
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Shl => {
            if in_range {
                a << b
            } else {
                0
            }
        }
        BinaryOp::LShr => {
            if in_range {
                a >> b
            } else {
                0
            }
        }
        BinaryOp::AShr => (sa >> if in_range { b } else { 127 }) as u128,
    };
    Plain::new(width, bits)
}

fn plain_compare(op: CompareOp, x: Plain, y: Plain) -> Plain {
    let (sa, sb) = (signed(x.width, x.bits), signed(y.width, y.bits));
    let truth = match op {
        CompareOp::Eq => x.bits == y.bits,
        CompareOp::Ult => x.bits < y.bits,
        CompareOp::Ule => x.bits <= y.bits,
        CompareOp::Slt => sa < sb,
        CompareOp::Sle => sa <= sb,
    };
    Plain::new(1, u128::from(truth))
}

/// What runs a program: terms or plain values.
pub trait Machine {
    type Value: Copy;
    fn width(&self, value: Self::Value) -> u32;
    fn constant(&mut self, width: u32, bits: u128) -> Self::Value;
    fn read(&mut self, index: u32) -> Self::Value;
    fn binary(&mut self, op: BinaryOp, a: Self::Value, b: Self::Value) -> Self::Value;
    fn compare(&mut self, op: CompareOp, a: Self::Value, b: Self::Value) -> Self::Value;
    fn not(&mut self, a: Self::Value) -> Self::Value;
    fn ite(&mut self, c: Self::Value, a: Self::Value, b: Self::Value) -> Self::Value;
    fn extract(&mut self, a: Self::Value, low: u32, width: u32) -> Self::Value;
    fn concat(&mut self, hi: Self::Value, lo: Self::Value) -> Self::Value;
    fn cast(&mut self, a: Self::Value, width: u32, sign: bool) -> Self::Value;
}

pub struct PlainMachine {
    pub bytes: [u8; BYTES],
}

impl Machine for PlainMachine {
    type Value = Plain;
    fn width(&self, value: Plain) -> u32 {
        value.width
    }
    fn constant(&mut self, width: u32, bits: u128) -> Plain {
        Plain::new(width, bits)
    }
    fn read(&mut self, index: u32) -> Plain {
        Plain::new(8, u128::from(self.bytes[index as usize]))
    }
    fn binary(&mut self, op: BinaryOp, a: Plain, b: Plain) -> Plain {
        plain_binary(op, a, b)
    }
    fn compare(&mut self, op: CompareOp, a: Plain, b: Plain) -> Plain {
        plain_compare(op, a, b)
    }
    fn not(&mut self, a: Plain) -> Plain {
        Plain::new(a.width, !a.bits)
    }
    fn ite(&mut self, c: Plain, a: Plain, b: Plain) -> Plain {
        if c.bits == 1 { a } else { b }
    }
    fn extract(&mut self, a: Plain, low: u32, width: u32) -> Plain {
        Plain::new(width, a.bits >> low)
    }
    fn concat(&mut self, hi: Plain, lo: Plain) -> Plain {
        Plain::new(hi.width + lo.width, hi.bits << lo.width | lo.bits)
    }
    fn cast(&mut self, a: Plain, width: u32, sign: bool) -> Plain {
        a.cast(width, sign)
    }
}

impl Machine for Arena {
    type Value = ExprId;
    fn width(&self, value: ExprId) -> u32 {
        Arena::width(self, value)
    }
    fn constant(&mut self, width: u32, bits: u128) -> ExprId {
        self.constant_u128(width, bits)
    }
    fn read(&mut self, index: u32) -> ExprId {
        let array = self.array(0, "input", BYTES as u32);
        Arena::read(self, array, index)
    }
    fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        Arena::binary(self, op, a, b)
    }
    fn compare(&mut self, op: CompareOp, a: ExprId, b: ExprId) -> ExprId {
        Arena::compare(self, op, a, b)
    }
    fn not(&mut self, a: ExprId) -> ExprId {
        Arena::not(self, a)
    }
    fn ite(&mut self, c: ExprId, a: ExprId, b: ExprId) -> ExprId {
        Arena::ite(self, c, a, b)
    }
    fn extract(&mut self, a: ExprId, low: u32, width: u32) -> ExprId {
        Arena::extract(self, a, low, width)
    }
    fn concat(&mut self, hi: ExprId, lo: ExprId) -> ExprId {
        Arena::concat(self, hi, lo)
    }
    fn cast(&mut self, a: ExprId, width: u32, sign: bool) -> ExprId {
        if sign {
            self.sext_or_trunc(a, width)
        } else {
            self.zext_or_trunc(a, width)
        }
    }
}

fn chosen_width(raw: u8) -> u32 {
    match raw {
        0..=40 => 8,
        41..=80 => 32,
        81..=100 => 64,
        101..=110 => 16,
        111..=120 => 1,
        _ => u32::from(raw) - 120,
    }
    .clamp(1, 128)
}

/// Constants that rules care about are likelier than others.
fn chosen_constant(width: u32, bits: u128) -> u128 {
    let small = (bits >> 8) & 0xff;
    match bits & 15 {
        0 => 0,
        1 => 1,
        2 => u128::MAX,
        3 | 4 => 1u128 << (small % u128::from(width)),
        5 | 6 => (1u128 << (small % u128::from(width))) - 1,
        7 => ((1u128 << (small % u128::from(width))) - 1) << ((bits >> 16) % 64),
        8..=10 => small,
        11 => small.wrapping_neg(),
        _ => bits >> 4,
    }
}

fn run_step<M: Machine>(machine: &mut M, values: &[M::Value], step: &Step) -> M::Value {
    let pick = |raw: u8| values[raw as usize % values.len()];
    let a = pick(step.a);
    let width = machine.width(a);
    let sign = step.bits >> 100 & 1 == 1;
    match step.op {
        0..=99 => {
            let op = BinaryOp::ALL[step.op as usize % BinaryOp::ALL.len()];
            let b = if step.c < 100 {
                machine.constant(width, chosen_constant(width, step.bits))
            } else {
                machine.cast(pick(step.b), width, sign)
            };
            if step.bits >> 101 & 7 == 0 {
                machine.binary(op, b, a)
            } else {
                machine.binary(op, a, b)
            }
        }
        100..=149 => {
            let op = CompareOp::ALL[step.op as usize % CompareOp::ALL.len()];
            let b = if step.c < 128 {
                machine.constant(width, chosen_constant(width, step.bits))
            } else {
                machine.cast(pick(step.b), width, sign)
            };
            if step.bits >> 101 & 3 == 0 {
                machine.compare(op, b, a)
            } else {
                machine.compare(op, a, b)
            }
        }
        150..=159 => machine.not(a),
        160..=179 => {
            let c = machine.cast(pick(step.c), 1, false);
            let b = machine.cast(pick(step.b), width, sign);
            machine.ite(c, a, b)
        }
        180..=199 => {
            let low = (step.bits % u128::from(width)) as u32;
            let kept = 1 + (step.bits >> 32) as u32 % (width - low);
            machine.extract(a, low, kept)
        }
        200..=219 => {
            let b = pick(step.b);
            if width + machine.width(b) > 128 {
                a
            } else {
                machine.concat(a, b)
            }
        }
        220..=244 => machine.cast(a, chosen_width(step.width), sign),
        245..=249 => {
            let width = chosen_width(step.width);
            machine.constant(width, chosen_constant(width, step.bits))
        }
        _ => machine.read(u32::from(step.b) % BYTES as u32),
    }
}

/// Runs a program; the first values are the symbolic bytes.
pub fn run<M: Machine>(machine: &mut M, steps: &[Step]) -> Vec<M::Value> {
    let mut values: Vec<M::Value> = (0..BYTES as u32).map(|index| machine.read(index)).collect();
    for step in steps {
        let value = run_step(machine, &values, step);
        values.push(value);
    }
    values
}

prop_compose! {
    pub fn step()(
        op in any::<u8>(), a in any::<u8>(), b in any::<u8>(), c in any::<u8>(),
        width in any::<u8>(), bits in any::<u128>(),
    ) -> Step {
        Step { op, a, b, c, width, bits }
    }
}

/// Programs of some steps.
pub fn program(steps: usize) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..steps)
}
