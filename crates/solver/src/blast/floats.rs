//! The parts of floats, rounding, and comparisons, as exact circuits. Conversions and arithmetic
//! are in `float_conversions` and `float_arithmetic`.

use super::circuits::Word;
use super::gates::{FALSE, Gates, TRUE};
use super::sat::{Backend, Lit};
use everett_expr::{FloatCompareOp, FloatFormat, float};

/// Numbers of bits of a format.
#[derive(Clone, Copy)]
pub struct Layout {
    /// Bits of the significand behind the point.
    pub fraction: usize,
    pub exponent: usize,
    /// Whether the bit before the point is stored, too. Then some encodings are invalid.
    pub has_integer_bit: bool,
}

impl Layout {
    pub fn of(format: FloatFormat) -> Layout {
        let (fraction, exponent) = match format {
            FloatFormat::Half => (10, 5),
            FloatFormat::Single => (23, 8),
            FloatFormat::Double => (52, 11),
            FloatFormat::X87 => (63, 15),
        };
        Layout {
            fraction,
            exponent,
            has_integer_bit: format == FloatFormat::X87,
        }
    }

    pub fn bias(self) -> usize {
        (1 << (self.exponent - 1)) - 1
    }

    /// Returns the exponent of infinity.
    fn largest(self) -> usize {
        (1 << self.exponent) - 1
    }

    /// Returns exponent and significand of infinity, as they are stored.
    pub fn infinity(self) -> Word {
        let mut word = vec![FALSE; self.fraction];
        word.resize(
            word.len() + usize::from(self.has_integer_bit) + self.exponent,
            TRUE,
        );
        word
    }
}

/// The parts of a float.
pub struct Number {
    pub sign: Lit,
    /// The exponent; that of the smallest normal numbers for subnormal ones and zeros.
    pub exponent: Word,
    /// The significand with the bit before the point.
    pub significand: Word,
    /// Not a number, or an invalid encoding.
    pub is_nan: Lit,
    pub is_infinite: Lit,
    pub is_zero: Lit,
}

/// What is known of a number before it is rounded.
#[derive(Clone, Copy, PartialEq)]
pub enum Magnitude {
    /// It is zero or a normal number.
    Normal,
    /// It is a multiple of the least subnormal number.
    Exact,
    /// It can be anything.
    Any,
}

impl<B: Backend> Gates<B> {
    /// Divides a float into its parts.
    pub fn unpacked(&mut self, format: FloatFormat, word: &[Lit]) -> Number {
        let layout = Layout::of(format);
        let stored = layout.fraction + usize::from(layout.has_integer_bit);
        let (fraction, exponent) = (&word[..layout.fraction], &word[stored..word.len() - 1]);
        let is_least = self.is_zero(exponent);
        let is_largest = self.and_all(&mut exponent.to_vec());
        let is_whole = self.is_zero(fraction);
        let (special, no_fraction) = (is_largest, is_whole);
        let mut number = Number {
            sign: word[word.len() - 1],
            exponent: exponent.to_vec(),
            significand: fraction.to_vec(),
            is_nan: self.and(special, -no_fraction),
            is_infinite: self.and(special, no_fraction),
            is_zero: self.and(is_least, no_fraction),
        };
        let mut integer = -is_least;
        if layout.has_integer_bit {
            integer = word[layout.fraction];
            let is_invalid = self.and(-is_least, -integer);
            number.is_nan = self.or(number.is_nan, is_invalid);
            number.is_infinite = self.and(number.is_infinite, integer);
            number.is_zero = self.and(number.is_zero, -integer);
        }
        number.exponent[0] = self.or(number.exponent[0], is_least);
        number.significand.push(integer);
        number
    }

    /// Rounds a number to nearest even, and returns it as it is stored, without its sign. The
    /// exponent is that of the highest bit of the significand, as a signed number.
    pub fn packed(
        &mut self,
        format: FloatFormat,
        exponent: &[Lit],
        significand: &[Lit],
        magnitude: Magnitude,
    ) -> Word {
        let layout = Layout::of(format);
        // Shifting to the right leaves at least a bit for rounding and one for the rest.
        let size = layout.fraction + if magnitude == Magnitude::Any { 3 } else { 1 };
        let mut word = vec![FALSE; size.saturating_sub(significand.len())];
        word.extend_from_slice(significand);
        let (word, exponent, is_over) = match magnitude {
            Magnitude::Normal => {
                let (word, shifted) = self.normalised(word, exponent.len());
                let mut exponent = self.sub(exponent, &shifted);
                exponent.truncate(layout.exponent);
                (word, exponent, FALSE)
            }
            Magnitude::Exact | Magnitude::Any => {
                self.in_range(layout, exponent, word, magnitude == Magnitude::Any)
            }
        };
        let top = word[word.len() - 1];
        // A number whose highest bit is not set is subnormal, or zero.
        let exponent: Word = exponent.iter().map(|&bit| self.and(bit, top)).collect();
        let rounded = self.rounded(&word, layout.fraction, &exponent);
        let (fraction, exponent) = rounded.split_at(layout.fraction);
        let mut stored = fraction.to_vec();
        if layout.has_integer_bit {
            stored.push(-self.is_zero(exponent));
        }
        stored.extend_from_slice(exponent);
        self.mux_word(is_over, &layout.infinity(), &stored)
    }

    /// Shifts a significand to the left until its highest bit is set or the exponent is the least
    /// one, or to the right until the exponent is at least that one. Returns it with the exponent
    /// and whether that is too large.
    fn in_range(
        &mut self,
        layout: Layout,
        exponent: &[Lit],
        mut word: Word,
        can_be_below: bool,
    ) -> (Word, Word, Lit) {
        let above = self.sub(exponent, &number(1, exponent.len()));
        let (&is_below, above) = above.split_last().expect("an exponent has a sign");
        let mut room: Word = above.iter().map(|&bit| self.and(bit, -is_below)).collect();
        let top = word.len() - 1;
        for stage in (0..usize::BITS - top.leading_zeros()).rev() {
            let (distance, stage) = (1 << stage, stage as usize);
            let is_low = self.is_zero(&word[top + 1 - distance..]);
            let is_near = self.is_zero(&room[stage.min(room.len())..]);
            let shifts = self.and(is_low, -is_near);
            word = self.shifted_if(shifts, &word, distance);
            if stage < room.len() {
                // All bits set is -1.
                let rest = self.add(&room[stage..], &vec![shifts; room.len() - stage]);
                room.truncate(stage);
                room.extend(rest);
            }
        }
        if can_be_below {
            let distance: Word = above.iter().map(|&bit| self.and(bit, is_below)).collect();
            let mut distance = [distance, vec![is_below]].concat();
            distance = self.negate_if(TRUE, &distance);
            word = self.shifted_right(&word, &distance);
        }
        let most = number(layout.largest() - 1, room.len());
        let is_less = self.less(&room, &most, FALSE);
        let is_over = self.and(word[top], -is_less);
        let mut exponent = self.add(&room, &number(1, room.len()));
        exponent.resize(layout.exponent.max(exponent.len()), FALSE);
        exponent.truncate(layout.exponent);
        (word, exponent, is_over)
    }

    /// Shifts a word to the left by a distance if a condition holds.
    fn shifted_if(&mut self, condition: Lit, word: &[Lit], distance: usize) -> Word {
        let shifted = |at: usize| at.checked_sub(distance).map_or(FALSE, |at| word[at]);
        (0..word.len())
            .map(|at| self.mux(condition, shifted(at), word[at]))
            .collect()
    }

    /// Shifts a word to the left until its highest bit is set. Returns it with the distance, as a
    /// word of this many bits. A zero is shifted as far as possible.
    pub fn normalised(&mut self, mut word: Word, distance_bits: usize) -> (Word, Word) {
        let top = word.len() - 1;
        let mut shifted: Word = Vec::new();
        for stage in (0..usize::BITS - top.leading_zeros()).rev() {
            let distance = 1 << stage;
            let is_low = self.is_zero(&word[top + 1 - distance..]);
            word = self.shifted_if(is_low, &word, distance);
            shifted.push(is_low);
        }
        shifted.reverse();
        shifted.resize(distance_bits, FALSE);
        (word, shifted)
    }

    /// Shifts a word to the right. The lowest bit of the result is also set if a bit is lost.
    pub fn shifted_right(&mut self, word: &[Lit], distance: &[Lit]) -> Word {
        let stages = (usize::BITS - word.len().leading_zeros()) as usize;
        let (near, far) = distance.split_at(stages.min(distance.len()));
        let mut word = word.to_vec();
        let mut lost = FALSE;
        for (stage, &bit) in near.iter().enumerate() {
            let distance = (1 << stage).min(word.len());
            let is_clean = self.is_zero(&word[..distance]);
            let loses = self.and(bit, -is_clean);
            lost = self.or(lost, loses);
            word = (0..word.len())
                .map(|at| {
                    let from = word.get(at + distance).copied().unwrap_or(FALSE);
                    self.mux(bit, from, word[at])
                })
                .collect();
        }
        let is_near = self.is_zero(far);
        let is_clean = self.is_zero(&word);
        let loses = self.and(-is_near, -is_clean);
        lost = self.or(lost, loses);
        let mut word: Word = word.iter().map(|&bit| self.and(bit, is_near)).collect();
        word[0] = self.or(word[0], lost);
        word
    }

    /// Returns fraction and exponent of a number, whose highest bit is in the exponent, rounded to
    /// nearest even.
    fn rounded(&mut self, significand: &[Lit], fraction: usize, exponent: &[Lit]) -> Word {
        let below = significand.len() - 1 - fraction;
        let kept = &significand[below..significand.len() - 1];
        let float = [kept, exponent].concat();
        let Some((&half, rest)) = significand[..below].split_last() else {
            return float;
        };
        let is_tie = self.is_zero(rest);
        let is_even = -kept.first().copied().unwrap_or(FALSE);
        let stays = self.and(is_tie, is_even);
        let up = self.and(half, -stays);
        // A carry out of the fraction goes to the exponent, as it should.
        let mut one = vec![FALSE; float.len()];
        one[0] = up;
        self.add(&float, &one)
    }

    /// Returns the result of a comparison of floats.
    pub fn compare_floats(
        &mut self,
        op: FloatCompareOp,
        format: FloatFormat,
        a: &[Lit],
        b: &[Lit],
    ) -> Lit {
        let (a, b) = (self.unpacked(format, a), self.unpacked(format, b));
        let unordered = self.or(a.is_nan, b.is_nan);
        if op == FloatCompareOp::Uno {
            return unordered;
        }
        let zeros = self.and(a.is_zero, b.is_zero);
        let magnitude =
            |number: &Number| [number.significand.as_slice(), &number.exponent].concat();
        let (magnitude_a, magnitude_b) = (magnitude(&a), magnitude(&b));
        let same_magnitude = self.equal(&magnitude_a, &magnitude_b);
        let other_sign = self.xor(a.sign, b.sign);
        let same_bits = self.and(same_magnitude, -other_sign);
        let same = self.or(zeros, same_bits);
        let holds = match op {
            FloatCompareOp::Oeq => same,
            _ => {
                let below = self.less(&magnitude_a, &magnitude_b, FALSE);
                let above = self.less(&magnitude_b, &magnitude_a, FALSE);
                let negative = self.mux(b.sign, above, -zeros);
                let positive = self.and(-b.sign, below);
                let less = self.mux(a.sign, negative, positive);
                match op {
                    FloatCompareOp::Ole => self.or(less, same),
                    _ => less,
                }
            }
        };
        self.and(-unordered, holds)
    }

    /// Returns the NaN that an operation returns for a NaN operand.
    pub fn quiet_nan(&mut self, format: FloatFormat, word: &[Lit]) -> Word {
        let layout = Layout::of(format);
        let mut quiet = word.to_vec();
        quiet[layout.fraction - 1] = TRUE;
        if !layout.has_integer_bit {
            return quiet;
        }
        // An invalid encoding becomes the default NaN.
        let is_valid = self.and_all(&mut word[layout.fraction..word.len() - 1].to_vec());
        self.mux_word(is_valid, &quiet, &default_nan(format))
    }
}

/// Returns the NaN that an invalid operation returns.
pub fn default_nan(format: FloatFormat) -> Word {
    let bits = float::default_nan(format);
    let bit = |at| if bits >> at & 1 == 1 { TRUE } else { FALSE };
    (0..format.width()).map(bit).collect()
}

/// Returns a constant.
pub fn number(value: usize, bits: usize) -> Word {
    let bit = |at| match value.checked_shr(at as u32).unwrap_or(0) & 1 {
        1 => TRUE,
        _ => FALSE,
    };
    (0..bits).map(bit).collect()
}

#[cfg(test)]
pub mod tests {
    use super::super::sat::Sat;
    use super::*;

    pub fn constant(value: u128, bits: usize) -> Word {
        let bit = |at: usize| if value >> at & 1 == 1 { TRUE } else { FALSE };
        (0..bits).map(bit).collect()
    }

    /// Returns the value of a circuit whose inputs are constants, so that it folds to one.
    pub fn value(word: &[Lit]) -> u128 {
        let bit = |(at, &lit): (usize, &Lit)| {
            assert!(lit == TRUE || lit == FALSE, "a bit is not folded");
            u128::from(lit == TRUE) << at
        };
        word.iter().enumerate().map(bit).sum()
    }

    /// Returns floats of a format: random ones, and many with an exponent near that of one, at an
    /// end of the range, or with few bits set.
    pub fn interesting(format: FloatFormat, count: usize) -> impl Iterator<Item = u128> {
        let layout = Layout::of(format);
        let stored = layout.fraction + usize::from(layout.has_integer_bit);
        let mut state = 1u128;
        let mut next = move || {
            state = state.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645);
            state = state.wrapping_add(0x5851_f42d_4c95_7f2d_1405_7b7e_f767_814f);
            state ^ state >> 64
        };
        (0..count).map(move |round| {
            let mask = (1u128 << stored) - 1;
            let fraction = match round % 5 {
                0 => next() & mask,
                1 => 1 << (next() % stored as u128),
                2 => mask << (next() % (stored as u128 + 1)) & mask,
                3 => mask >> (next() % (stored as u128 + 1)),
                _ => next() & next() & mask,
            };
            let (bias, largest) = (layout.bias() as u128, layout.largest() as u128);
            let size = layout.fraction as u128;
            let exponent = match round / 5 % 5 {
                0 => next() % (largest + 1),
                1 => bias + next() % 8 - 4,
                2 => next() % 3,
                3 => largest - next() % 3,
                _ => (bias + next() % (2 * size)).saturating_sub(size) % (largest + 1),
            };
            // Most random numbers of the long format would be invalid without the bit.
            let is_odd = next().is_multiple_of(8) || exponent == 0;
            let integer = u128::from(layout.has_integer_bit && !is_odd) << layout.fraction;
            let sign = (next() & 1) << (format.width() - 1);
            sign | exponent << stored | fraction | integer
        })
    }

    #[test]
    fn floats_are_compared() {
        let mut gates = Gates::<Sat>::new();
        for format in FloatFormat::ALL {
            let all: Vec<u128> = interesting(format, 4000).collect();
            let others = all.iter().skip(1).chain([&0]);
            for (at, (&a, &other)) in all.iter().zip(others).enumerate() {
                let sign = 1 << (format.width() - 1);
                let b = [other, a, a ^ sign, a.wrapping_add(1) & (sign - 1)][at % 4];
                let word = |bits| constant(bits, format.width() as usize);
                for op in FloatCompareOp::ALL {
                    let holds = gates.compare_floats(op, format, &word(a), &word(b));
                    let expected = float::compare(op, format, a, b);
                    assert_eq!(holds == TRUE, expected, "{format:?} {op:?} {a:x} {b:x}");
                }
            }
        }
    }
}
