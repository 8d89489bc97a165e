//! Circuits for float operations that are cheap and exact: comparisons, and conversions between
//! integers and floats and to wider floats. The results of all other operations are unconstrained in
//! the SAT instance.

use super::circuits::{Word, length};
use super::gates::{FALSE, Gates, TRUE};
use super::sat::{Backend, Lit};
use everett_expr::{FloatCompareOp, FloatFormat};

/// Returns the number of stored bits of the significand, and of the exponent. `None` for the x87
/// format, which has several encodings of a number.
fn layout(format: FloatFormat) -> Option<(usize, usize)> {
    match format {
        FloatFormat::Half => Some((10, 5)),
        FloatFormat::Single => Some((23, 8)),
        FloatFormat::Double => Some((52, 11)),
        FloatFormat::X87 => None,
    }
}

impl<B: Backend> Gates<B> {
    /// Returns the result of a comparison of floats, or `None` if there is no circuit for the
    /// format.
    pub fn compare_floats(
        &mut self,
        op: FloatCompareOp,
        format: FloatFormat,
        a: &[Lit],
        b: &[Lit],
    ) -> Option<Lit> {
        let (fraction, _) = layout(format)?;
        let (nan_a, nan_b) = (self.is_nan(fraction, a), self.is_nan(fraction, b));
        let unordered = self.or(nan_a, nan_b);
        if op == FloatCompareOp::Uno {
            return Some(unordered);
        }
        let (&sign_a, magnitude_a) = a.split_last()?;
        let (&sign_b, magnitude_b) = b.split_last()?;
        let (zero_a, zero_b) = (self.is_zero(magnitude_a), self.is_zero(magnitude_b));
        let zeros = self.and(zero_a, zero_b);
        let same_bits = self.equal(a, b);
        let same = self.or(zeros, same_bits);
        let holds = match op {
            FloatCompareOp::Oeq => same,
            _ => {
                let below = self.less(magnitude_a, magnitude_b, FALSE);
                let above = self.less(magnitude_b, magnitude_a, FALSE);
                let negative = self.mux(sign_b, above, -zeros);
                let positive = self.and(-sign_b, below);
                let less = self.mux(sign_a, negative, positive);
                match op {
                    FloatCompareOp::Ole => self.or(less, same),
                    _ => less,
                }
            }
        };
        Some(self.and(-unordered, holds))
    }

    fn is_nan(&mut self, fraction: usize, word: &[Lit]) -> Lit {
        let exponent = &word[fraction..word.len() - 1];
        let largest = self.and_all(&mut exponent.to_vec());
        let infinite = self.is_zero(&word[..fraction]);
        self.and(largest, -infinite)
    }

    /// Converts an integer to a float, rounded to nearest even; `None` if the format is too short for
    /// the largest integers, or has no circuit.
    pub fn float_from_integer(
        &mut self,
        signed: bool,
        format: FloatFormat,
        word: &[Lit],
    ) -> Option<Word> {
        let (fraction, exponent_bits) = layout(format)?;
        let sign = match word.last() {
            Some(&sign) if signed => sign,
            _ => FALSE,
        };
        // The magnitude of the least number needs one more bit.
        let mut significand = self.negate_if(sign, word);
        let size = length(&significand).max(fraction + 1);
        let bias = (1usize << (exponent_bits - 1)) - 1;
        if size > bias {
            return None;
        }
        significand.resize(size, FALSE);
        let not_zero = -self.is_zero(&significand);
        let (significand, shifted) = self.normalised(significand, exponent_bits);
        let exponent = self.sub(&number(bias + size - 1, exponent_bits), &shifted);
        let float = self.rounded(&significand, fraction, &exponent);
        let mut float: Word = float.iter().map(|&bit| self.and(bit, not_zero)).collect();
        float.push(sign);
        Some(float)
    }

    /// Shifts a word to the left until its highest bit is set. Returns it with the distance, as a
    /// word of this many bits. A zero is shifted as far as possible.
    fn normalised(&mut self, mut word: Word, distance_bits: usize) -> (Word, Word) {
        let top = word.len() - 1;
        let mut shifted: Word = Vec::new();
        for stage in (0..usize::BITS - top.leading_zeros()).rev() {
            let distance = 1 << stage;
            let is_low = self.is_zero(&word[top + 1 - distance..]);
            word = (0..=top)
                .map(|at| {
                    let from = at.checked_sub(distance).map_or(FALSE, |at| word[at]);
                    self.mux(is_low, from, word[at])
                })
                .collect();
            shifted.push(is_low);
        }
        shifted.reverse();
        shifted.resize(distance_bits, FALSE);
        (word, shifted)
    }

    /// Returns fraction and exponent of a number, whose highest bit is set, rounded to nearest even.
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

    /// Truncates a float towards zero to an integer. NaNs and values out of range give the integer
    /// in which only the sign bit is set.
    pub fn float_to_integer(
        &mut self,
        signed: bool,
        format: FloatFormat,
        float: &[Lit],
        width: usize,
    ) -> Option<Word> {
        let (fraction, exponent_bits) = layout(format)?;
        let (&sign, magnitude) = float.split_last()?;
        let exponent = &magnitude[fraction..];
        let bias = (1usize << (exponent_bits - 1)) - 1;
        let is_fraction = self.less(exponent, &number(bias, exponent_bits), FALSE);
        let mut is_out = self.and_all(&mut exponent.to_vec());
        if bias + width < 1 << exponent_bits {
            let end = number(bias + width, exponent_bits);
            let is_large = -self.less(exponent, &end, FALSE);
            is_out = self.or(is_out, is_large);
        }
        let distance = self.sub(exponent, &number(bias, exponent_bits));
        let mut shifted = magnitude[..fraction].to_vec();
        shifted.push(TRUE);
        shifted.resize(fraction + width, FALSE);
        let integer = self.shift_left(&shifted, &distance)[fraction..].to_vec();
        let excess = match signed {
            true => integer.last().copied().unwrap_or(FALSE),
            false => sign,
        };
        is_out = self.or(is_out, excess);
        let value = match signed {
            true => self.negate_if(sign, &integer),
            false => integer,
        };
        let mut indefinite = vec![FALSE; width];
        indefinite[width - 1] = TRUE;
        let value = self.mux_word(is_out, &indefinite, &value);
        Some(self.mux_word(is_fraction, &vec![FALSE; width], &value))
    }

    /// Converts a float to a wider format, which is exact.
    pub fn widened_float(
        &mut self,
        from: FloatFormat,
        to: FloatFormat,
        float: &[Lit],
    ) -> Option<Word> {
        let ((fraction, exponent_bits), (to_fraction, to_exponent_bits)) =
            (layout(from)?, layout(to)?);
        if to_fraction <= fraction {
            return None;
        }
        let (&sign, magnitude) = float.split_last()?;
        let exponent = &magnitude[fraction..];
        let is_subnormal = self.is_zero(exponent);
        let is_zero = self.is_zero(magnitude);
        let is_special = self.and_all(&mut exponent.to_vec());
        let is_nan = self.is_nan(fraction, float);
        let mut significand = magnitude[..fraction].to_vec();
        significand.push(-is_subnormal);
        let (significand, shifted) = self.normalised(significand, to_exponent_bits);
        // Subnormal numbers have the exponent of the smallest normal ones.
        let mut scale = exponent.to_vec();
        scale[0] = self.or(scale[0], is_subnormal);
        scale.resize(to_exponent_bits, FALSE);
        let bias = |bits: usize| (1usize << (bits - 1)) - 1;
        let more = number(
            bias(to_exponent_bits) - bias(exponent_bits),
            to_exponent_bits,
        );
        let scale = self.add(&scale, &more);
        let scale = self.sub(&scale, &shifted);
        let scale = self.mux_word(is_special, &vec![TRUE; to_exponent_bits], &scale);
        let mut wide = vec![FALSE; to_fraction - fraction];
        wide.extend_from_slice(&significand[..fraction]);
        // NaNs become quiet.
        let top = to_fraction - 1;
        wide[top] = self.or(wide[top], is_nan);
        wide.extend(scale);
        let mut wide: Word = wide.iter().map(|&bit| self.and(bit, -is_zero)).collect();
        wide.push(sign);
        Some(wide)
    }
}

/// Returns a constant.
fn number(value: usize, bits: usize) -> Word {
    let bit = |at| if value >> at & 1 == 1 { TRUE } else { FALSE };
    (0..bits).map(bit).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sat::Sat;
    use super::*;
    use everett_expr::float;

    fn constant(value: u64, bits: usize) -> Word {
        let bit = |at: usize| if value >> at & 1 == 1 { TRUE } else { FALSE };
        (0..bits).map(bit).collect()
    }

    /// Returns the value of a circuit whose inputs are constants, so that it folds to one.
    fn value(word: &[Lit]) -> u64 {
        let bit = |(at, &lit): (usize, &Lit)| {
            assert!(lit == TRUE || lit == FALSE, "a bit is not folded");
            u64::from(lit == TRUE) << at
        };
        word.iter().enumerate().map(bit).sum()
    }

    #[test]
    fn all_short_floats_are_converted() {
        let mut gates = Gates::<Sat>::new();
        for bits in 0..=u16::MAX {
            let word = constant(bits.into(), 16);
            for to in [FloatFormat::Single, FloatFormat::Double] {
                let wide = gates.widened_float(FloatFormat::Half, to, &word);
                let expected = float::convert(FloatFormat::Half, to, bits.into());
                let wide = wide.expect("the format is wider");
                assert_eq!(u128::from(value(&wide)), expected, "{bits:x}");
            }
            for (signed, width) in [(true, 7), (false, 8), (true, 32), (false, 64)] {
                let integer =
                    gates.float_to_integer(signed, FloatFormat::Half, &word, width as usize);
                let expected = float::to_int(signed, FloatFormat::Half, bits.into(), width)[0];
                let integer = integer.expect("the format has a circuit");
                assert_eq!(value(&integer), expected, "{bits:x} {signed} {width}");
            }
        }
    }

    #[test]
    fn integers_are_rounded() {
        let mut gates = Gates::<Sat>::new();
        let mut x = 1u64;
        for round in 0..20_000u32 {
            x = x.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(12345);
            let low = round % 7;
            // Ties and carries are rare among random numbers.
            let bits = [
                x,
                x >> (round % 64),
                !0 << low,
                (x | 1) << (63 - round % 40),
            ];
            let bits = bits[round as usize % 4];
            for (format, signed) in [
                (FloatFormat::Single, true),
                (FloatFormat::Single, false),
                (FloatFormat::Double, true),
                (FloatFormat::Double, false),
            ] {
                let word = constant(bits, 64);
                let float = gates.float_from_integer(signed, format, &word);
                let float = float.expect("the format is long enough");
                let expected = float::from_int(signed, format, 64, &[bits]);
                assert_eq!(u128::from(value(&float)), expected, "{bits:x} {signed}");
                let back = gates.float_to_integer(signed, format, &float, 64);
                let back = value(&back.expect("the format has a circuit"));
                assert_eq!(back, float::to_int(signed, format, expected, 64)[0]);
            }
        }
    }
}
