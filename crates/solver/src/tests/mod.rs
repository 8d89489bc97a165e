//! Random terms, and tests that go through several layers.

mod backward;
mod chain;
mod congruence;
mod enumerate;
mod factor;
mod float_ranges;
mod reduce;
mod smt;
mod translation;
mod waist;

use crate::Model;
use everett_expr::{
    Arena, ArrayId, BinaryOp, CompareOp, ExprId, FloatCompareOp, FloatFormat, FloatOp,
    FloatUnaryOp, RoundingMode,
};
use proptest::prelude::*;

/// One step of building a term: the operation, and which of the terms built so far to use.
#[derive(Clone, Debug)]
pub struct Step {
    operation: u8,
    operands: [u16; 3],
    width: u32,
    bits: u64,
}

pub fn steps(count: std::ops::Range<usize>, max_width: u32) -> impl Strategy<Value = Vec<Step>> {
    let bits = prop_oneof![
        0u64..4,
        any::<u64>(),
        (0u32..64).prop_map(|shift| 1 << shift)
    ];
    let step = (any::<u8>(), any::<[u16; 3]>(), 1..=max_width, bits);
    let step = step.prop_map(|(operation, operands, width, bits)| Step {
        operation,
        operands,
        width,
        bits,
    });
    prop::collection::vec(step, count)
}

/// Terms over a few symbolic bytes.
pub struct Terms {
    pub arena: Arena,
    pub array: ArrayId,
    pub bytes: u32,
    pub all: Vec<ExprId>,
}

impl Terms {
    pub fn new(bytes: u32) -> Terms {
        let mut arena = Arena::new();
        let array = arena.array(0, "input", bytes);
        let all = (0..bytes).map(|index| arena.read(array, index)).collect();
        Terms {
            arena,
            array,
            bytes,
            all,
        }
    }

    fn operand(&self, choice: u16) -> ExprId {
        // Recent terms are selected more often, so that terms get deep.
        let count = self.all.len();
        let back = usize::from(choice) % count.min(if choice & 1 == 0 { 4 } else { count });
        self.all[count - 1 - back]
    }

    fn resized(&mut self, choice: u16, width: u32) -> ExprId {
        let e = self.operand(choice);
        if choice & 2 == 0 {
            self.arena.zext_or_trunc(e, width)
        } else {
            self.arena.sext_or_trunc(e, width)
        }
    }

    /// Adds the term of a step.
    pub fn build(&mut self, step: &Step) -> ExprId {
        let [first, second, third] = step.operands;
        let width = step.width;
        let e = match step.operation % 30 {
            n @ 0..=12 => {
                let (a, b) = (self.resized(first, width), self.resized(second, width));
                self.arena.binary(BinaryOp::ALL[usize::from(n)], a, b)
            }
            n @ 13..=22 => {
                let a = self.resized(first, width);
                let b = if third & 1 == 0 {
                    self.arena.constant(width, step.bits)
                } else {
                    self.resized(second, width)
                };
                self.arena
                    .compare(CompareOp::ALL[usize::from(n - 13) / 2], a, b)
            }
            23 => self.ite(step),
            24 => {
                let (a, b) = (self.operand(first), self.operand(second));
                let joined = self.arena.concat(a, b);
                if self.arena.width(joined) > 128 {
                    a
                } else {
                    joined
                }
            }
            25 => {
                let e = self.operand(first);
                let have = self.arena.width(e);
                let low = u32::from(second) % have;
                self.arena
                    .extract(e, low, 1 + u32::from(third) % (have - low))
            }
            26 => {
                let e = self.operand(first);
                self.arena.not(e)
            }
            27 | 28 => self.select(step),
            _ => self.arena.constant(width, step.bits),
        };
        self.all.push(e);
        e
    }

    fn select(&mut self, step: &Step) -> ExprId {
        let [first, second, third] = step.operands;
        let e = self.operand(first);
        let index = match self.arena.width(e) {
            0..=64 => e,
            _ => self.arena.extract(e, 0, 64),
        };
        let (width, mix) = (step.width.min(64), step.bits | 1);
        let mask = u64::MAX >> (64 - width);
        let entry = |at: u64| (at + u64::from(third)).wrapping_mul(mix).rotate_left(11) & mask;
        let entries: Vec<u64> = (0..1 + u64::from(second % 300)).map(entry).collect();
        self.arena.select(width, &entries, index)
    }

    fn ite(&mut self, step: &Step) -> ExprId {
        let [first, second, third] = step.operands;
        let condition = self.resized(third, 1);
        let (a, b) = (
            self.resized(first, step.width),
            self.resized(second, step.width),
        );
        self.arena.ite(condition, a, b)
    }

    /// Adds a term with a float operation.
    pub fn build_float(&mut self, step: &Step) -> ExprId {
        let format =
            [FloatFormat::Half, FloatFormat::Single, FloatFormat::X87][step.bits as usize % 3];
        let (a, b) = (
            self.float(step.operands[0], format),
            self.float(step.operands[1], format),
        );
        let choice = usize::from(step.operands[2]);
        let e = match step.operation % 6 {
            0 => self
                .arena
                .float_binary(FloatOp::ALL[choice % 4], format, a, b),
            1 if choice % 6 == 0 => self.arena.float_unary(FloatUnaryOp::Sqrt, format, a),
            1 => {
                let mode = RoundingMode::ALL[choice % 5];
                self.arena
                    .float_unary(FloatUnaryOp::RoundToIntegral(mode), format, a)
            }
            2 => self
                .arena
                .float_compare(FloatCompareOp::ALL[choice % 4], format, a, b),
            3 => self
                .arena
                .float_convert(format, FloatFormat::ALL[choice % 4], a),
            4 => {
                let e = self.operand(step.operands[0]);
                self.arena.float_from_int(choice % 2 == 0, format, e)
            }
            _ => self
                .arena
                .float_to_int(choice % 2 == 0, format, a, step.width),
        };
        self.all.push(e);
        e
    }

    /// Returns a term of a float's width with interesting bits.
    fn float(&mut self, choice: u16, format: FloatFormat) -> ExprId {
        let e = self.operand(choice);
        let e = self.arena.zext_or_trunc(e, format.width());
        if choice & 4 == 0 {
            return e;
        }
        let special = [
            0x7c00u128,
            0xfc01,
            0x3c00,
            0x7f80_0000,
            0x3f80_0000,
            0xffff << 63,
            1 << 79,
        ];
        let special = special[usize::from(choice >> 3) % special.len()];
        let constant = self.arena.constant_u128(format.width(), special);
        self.arena.xor(e, constant)
    }

    /// Returns a condition that is built from the step's term.
    pub fn condition(&mut self, step: &Step) -> ExprId {
        let e = self.build(step);
        let width = self.arena.width(e);
        if width == 1 {
            return e;
        }
        let constant = self.arena.constant(width, step.bits);
        match step.operands[0] % 3 {
            0 => self.arena.eq(e, constant),
            1 => self.arena.ult(e, constant),
            _ => self.arena.ne(e, constant),
        }
    }

    pub fn model(&self, values: &[u8]) -> Model {
        let entries = values.iter().zip(0..self.bytes);
        Model::new().with(entries.map(|(&value, index)| (self.array, index, value)))
    }

    /// Returns conditions that fix all bytes to the model's values.
    pub fn fixed(&mut self, model: &Model) -> Vec<ExprId> {
        (0..self.bytes)
            .map(|index| {
                let byte = self.arena.read(self.array, index);
                let value = self
                    .arena
                    .constant(8, u64::from(model.get(self.array, index)));
                self.arena.eq(byte, value)
            })
            .collect()
    }
}
