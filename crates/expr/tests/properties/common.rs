//! Random straight-line programs over terms, executed twice: with the simplifying constructors, and
//! with plain `u128` arithmetic that shares no code with the crate.

use everett_expr::{Arena, BinaryOp, CompareOp, ExprId};
use proptest::prelude::*;

/// Number of symbolic bytes.
pub const BYTES: usize = 4;

/// One step: an operator, and raw numbers from which its operands are selected.
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

/// A value computed independently of the crate.
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

/// An interpreter for programs: on terms or on plain values.
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
    fn select(&mut self, width: u32, entries: &[u64], index: Self::Value) -> Self::Value;
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
    fn select(&mut self, width: u32, entries: &[u64], index: Plain) -> Plain {
        let at = index.bits.min(entries.len() as u128 - 1);
        Plain::new(width, u128::from(entries[at as usize]))
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
    fn select(&mut self, width: u32, entries: &[u64], index: ExprId) -> ExprId {
        Arena::select(self, width, entries, index)
    }
}

/// Executes a program by constant folding only.
pub struct FoldingMachine {
    pub arena: Arena,
    pub bytes: [u8; BYTES],
}

impl Machine for FoldingMachine {
    type Value = ExprId;
    fn width(&self, value: ExprId) -> u32 {
        self.arena.width(value)
    }
    fn constant(&mut self, width: u32, bits: u128) -> ExprId {
        self.arena.constant_u128(width, bits)
    }
    fn read(&mut self, index: u32) -> ExprId {
        self.arena
            .constant(8, u64::from(self.bytes[index as usize]))
    }
    fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        self.arena.binary(op, a, b)
    }
    fn compare(&mut self, op: CompareOp, a: ExprId, b: ExprId) -> ExprId {
        self.arena.compare(op, a, b)
    }
    fn not(&mut self, a: ExprId) -> ExprId {
        self.arena.not(a)
    }
    fn ite(&mut self, c: ExprId, a: ExprId, b: ExprId) -> ExprId {
        self.arena.ite(c, a, b)
    }
    fn extract(&mut self, a: ExprId, low: u32, width: u32) -> ExprId {
        self.arena.extract(a, low, width)
    }
    fn concat(&mut self, hi: ExprId, lo: ExprId) -> ExprId {
        self.arena.concat(hi, lo)
    }
    fn cast(&mut self, a: ExprId, width: u32, sign: bool) -> ExprId {
        Machine::cast(&mut self.arena, a, width, sign)
    }
    fn select(&mut self, width: u32, entries: &[u64], index: ExprId) -> ExprId {
        self.arena.select(width, entries, index)
    }
}

/// Continues with the values of a program at widths above 128.
pub fn run_wide<M: Machine>(machine: &mut M, values: &[M::Value], width: u32) -> Vec<M::Value> {
    let mut wide: Vec<M::Value> = Vec::new();
    for (i, pair) in values.windows(2).enumerate().take(8) {
        let hi = machine.cast(pair[0], 128, i % 2 == 0);
        let joined = machine.concat(hi, pair[1]);
        wide.push(machine.cast(joined, width, i % 3 == 0));
        wide.push(machine.cast(pair[0], width, i % 3 == 1));
        let bits = 1 << (7 * i) | u128::from(i % 2 == 0);
        wide.push(machine.constant(width, bits));
    }
    let mut results = wide.clone();
    for round in 0..2 * wide.len() {
        let (x, y) = (
            results[round * 5 % results.len()],
            wide[round * 7 % wide.len()],
        );
        let op = BinaryOp::ALL[round % BinaryOp::ALL.len()];
        let value = machine.binary(op, x, y);
        let inverse = if op == BinaryOp::Add {
            BinaryOp::Sub
        } else {
            BinaryOp::Add
        };
        let back = machine.binary(inverse, value, y);
        let small = machine.constant(width, 9 + round as u128);
        let shifted = machine.binary(BinaryOp::Shl, back, small);
        let negated = machine.not(value);
        let c = machine.compare(CompareOp::ALL[round % 5], x, shifted);
        let chosen = machine.ite(c, negated, shifted);
        let joined = split_and_join(machine, chosen, 64);
        let equal = machine.compare(CompareOp::Eq, joined, small);
        results.extend([value, back, shifted, joined]);
        results.push(machine.cast(equal, width, round % 2 == 0));
    }
    results
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

/// Constants that rules depend on are more likely than others.
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

/// The operands of one step, selected from the values so far.
struct Operands<'a, M: Machine> {
    values: &'a [M::Value],
    step: &'a Step,
}

impl<M: Machine> Operands<'_, M> {
    /// Recent values are more likely, so that terms become deep.
    fn pick(&self, raw: u8) -> M::Value {
        let recent = if raw < 150 {
            self.values.len().min(5)
        } else {
            self.values.len()
        };
        self.values[self.values.len() - 1 - raw as usize % recent]
    }

    /// Returns a value converted to a width.
    fn cast(&self, machine: &mut M, raw: u8, width: u32) -> M::Value {
        machine.cast(self.pick(raw), width, self.flag(0))
    }

    fn flag(&self, number: u32) -> bool {
        self.step.bits >> (100 + number) & 1 == 1
    }

    /// Returns one of several constants of the step.
    fn constant(&self, machine: &mut M, width: u32, number: u32) -> M::Value {
        machine.constant(
            width,
            chosen_constant(width, self.step.bits.rotate_right(number * 20)),
        )
    }

    fn other_or_constant(&self, machine: &mut M, width: u32) -> M::Value {
        if self.step.c < 120 {
            self.constant(machine, width, 0)
        } else {
            self.cast(machine, self.step.b, width)
        }
    }
}

fn run_step<M: Machine>(machine: &mut M, values: &[M::Value], step: &Step) -> M::Value {
    let operands = Operands::<M> { values, step };
    let a = operands.pick(step.a);
    let width = machine.width(a);
    let number = usize::from(step.op);
    match step.op {
        0..=79 => {
            let op = BinaryOp::ALL[number % BinaryOp::ALL.len()];
            let b = operands.other_or_constant(machine, width);
            let swap = operands.flag(1) && operands.flag(2);
            if swap {
                machine.binary(op, b, a)
            } else {
                machine.binary(op, a, b)
            }
        }
        80..=119 => {
            let op = CompareOp::ALL[number % CompareOp::ALL.len()];
            let b = operands.other_or_constant(machine, width);
            if operands.flag(1) {
                machine.compare(op, b, a)
            } else {
                machine.compare(op, a, b)
            }
        }
        120..=127 => machine.not(a),
        128..=143 => {
            let c = operands.cast(machine, step.c, 1);
            let b = operands.cast(machine, step.b, width);
            machine.ite(c, a, b)
        }
        144..=159 => {
            let low = (step.bits % u128::from(width)) as u32;
            let kept = 1 + (step.bits >> 32) as u32 % (width - low);
            machine.extract(a, low, kept)
        }
        160..=175 => {
            let b = operands.pick(step.b);
            if width + machine.width(b) > 128 {
                a
            } else {
                machine.concat(a, b)
            }
        }
        176..=187 => machine.cast(a, chosen_width(step.width), operands.flag(0)),
        196..=199 => operands.constant(machine, chosen_width(step.width), 0),
        188..=195 => select(machine, &operands, a),
        200..=203 => machine.read(u32::from(step.b) % BYTES as u32),
        _ => run_idiom(machine, &operands, a),
    }
}

/// Returns entries of a table, some of them like those of programs: sorted, equal, or with few
/// distinct values.
fn select<M: Machine>(machine: &mut M, operands: &Operands<'_, M>, a: M::Value) -> M::Value {
    let step = operands.step;
    let index = match machine.width(a) {
        0..=64 => a,
        _ => machine.extract(a, 0, 64),
    };
    let width = chosen_width(step.width).min(64);
    let (count, seed) = (1 + u64::from(step.b), step.bits as u64);
    let entry = |at: u64| match step.c % 4 {
        0 => at,
        1 => (at / 16).wrapping_mul(seed),
        2 => (at.wrapping_mul(seed) >> 7) & 3,
        _ => at.wrapping_mul(seed | 1).rotate_left(19) ^ seed,
    };
    let mask = u64::MAX >> (64 - width);
    let entries: Vec<u64> = (0..count).map(|at| entry(at) & mask).collect();
    machine.select(width, &entries, index)
}

/// Idioms that programs and memory use often, and for which there are rules.
fn run_idiom<M: Machine>(machine: &mut M, operands: &Operands<'_, M>, a: M::Value) -> M::Value {
    let step = operands.step;
    let width = machine.width(a);
    let binary = BinaryOp::ALL[usize::from(step.width) % BinaryOp::ALL.len()];
    let compare = CompareOp::ALL[usize::from(step.width) % CompareOp::ALL.len()];
    match step.op % 9 {
        0 => {
            let c = operands.cast(machine, step.c, 1);
            let x = operands.constant(machine, width, 0);
            let y = operands.constant(machine, width, 1);
            let choice = machine.ite(c, x, y);
            let b = operands.other_or_constant(machine, width);
            match step.b % 4 {
                0 => machine.binary(binary, choice, b),
                1 => machine.binary(binary, b, choice),
                2 => machine.compare(compare, choice, b),
                _ => machine.cast(choice, chosen_width(step.c), operands.flag(0)),
            }
        }
        1 => {
            let b = operands.other_or_constant(machine, width);
            let whole = machine.binary(binary, a, b);
            split_and_join(machine, whole, 1 + u32::from(step.c) % 9)
        }
        2 => {
            let wide = machine.cast(a, width.max(32), operands.flag(0));
            let width = machine.width(wide);
            let up = u128::from(step.b).wrapping_neg();
            let up = machine.constant(width, if operands.flag(1) { up } else { step.b.into() });
            let moved = machine.binary(BinaryOp::Add, wide, up);
            let limit = machine.constant(width, u128::from(step.c) * 2);
            machine.compare(compare, moved, limit)
        }
        3 => distribute(machine, operands, a),
        4 => {
            let c = operands.cast(machine, step.c, 1);
            let k = operands.constant(machine, width, 0);
            let b = operands.cast(machine, step.b, width);
            let (x, y) = (machine.binary(binary, a, k), machine.binary(binary, b, k));
            machine.ite(c, x, y)
        }
        5 => {
            let b = operands.cast(machine, step.b, width);
            let (x, y) = (machine.not(a), machine.not(b));
            machine.compare(compare, x, y)
        }
        6 => {
            let b = operands.cast(machine, step.b, width);
            let c = operands.cast(machine, step.c, width);
            let (x, y) = (machine.binary(binary, a, b), machine.binary(binary, a, c));
            machine.compare(compare, x, y)
        }
        7 => {
            let least = machine.constant(width, 1 << (width - 1));
            let near = machine.constant(width, u128::from(step.b % 5).wrapping_sub(2));
            let limit = machine.binary(BinaryOp::Add, least, near);
            if operands.flag(1) {
                machine.compare(compare, a, limit)
            } else {
                machine.compare(compare, limit, a)
            }
        }
        _ => {
            let b = operands.cast(machine, step.b, width);
            let mut sum = a;
            for number in 0..u32::from(step.c % 12) {
                let factor = operands.constant(machine, width, number % 5);
                let other = operands.cast(machine, step.b.wrapping_add(number as u8), width);
                let part = machine.binary(BinaryOp::Mul, other, factor);
                let op = if step.bits >> number & 1 == 1 {
                    BinaryOp::Add
                } else {
                    BinaryOp::Sub
                };
                sum = machine.binary(op, sum, part);
            }
            machine.binary(BinaryOp::Sub, sum, b)
        }
    }
}

/// Returns a word stored in pieces and loaded again.
fn split_and_join<M: Machine>(machine: &mut M, whole: M::Value, piece: u32) -> M::Value {
    let width = machine.width(whole);
    let kept = piece.min(width);
    let mut joined = machine.extract(whole, 0, kept);
    let mut low = kept;
    while low < width {
        let kept = piece.min(width - low);
        let part = machine.extract(whole, low, kept);
        joined = machine.concat(part, joined);
        low += kept;
    }
    joined
}

/// Compares `a · (b + c)` with `a · b + a · c`, equal or nearly equal.
fn distribute<M: Machine>(machine: &mut M, operands: &Operands<'_, M>, a: M::Value) -> M::Value {
    let width = machine.width(a);
    let b = operands.cast(machine, operands.step.b, width);
    let c = operands.cast(machine, operands.step.c, width);
    let op = if operands.flag(1) {
        BinaryOp::Add
    } else {
        BinaryOp::Sub
    };
    let inner = machine.binary(op, b, c);
    let left = machine.binary(BinaryOp::Mul, a, inner);
    let (ab, ac) = (
        machine.binary(BinaryOp::Mul, b, a),
        machine.binary(BinaryOp::Mul, c, a),
    );
    let right = machine.binary(op, ab, ac);
    let near = machine.constant(width, u128::from(operands.step.width % 2));
    let right = machine.binary(BinaryOp::Add, right, near);
    machine.compare(CompareOp::Eq, left, right)
}

/// Executes a program; the first values are the symbolic bytes.
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
