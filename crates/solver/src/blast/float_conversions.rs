//! Circuits for conversions between integers and floats, between formats, and to integral values.

use super::circuits::{Word, length};
use super::floats::{Layout, Magnitude, default_nan, number};
use super::gates::{FALSE, Gates, TRUE};
use super::sat::{Backend, Lit};
use everett_expr::{FloatFormat, RoundingMode};

impl<B: Backend> Gates<B> {
    /// Converts an integer to a float, rounded to nearest even.
    pub fn float_from_integer(&mut self, signed: bool, format: FloatFormat, word: &[Lit]) -> Word {
        let layout = Layout::of(format);
        let sign = match word.last() {
            Some(&sign) if signed => sign,
            _ => FALSE,
        };
        // The magnitude of the least number needs one more bit.
        let mut significand = self.negate_if(sign, word);
        let size = length(&significand).max(layout.fraction + 1);
        significand.resize(size, FALSE);
        let magnitude = match size <= layout.bias() {
            true => Magnitude::Normal,
            false => Magnitude::Exact,
        };
        let largest = layout.bias() + size;
        let bits = layout.exponent.max(largest.ilog2() as usize) + 2;
        let exponent = number(largest - 1, bits);
        let mut float = self.packed(format, &exponent, &significand, magnitude);
        float.push(sign);
        float
    }

    /// Truncates a float towards zero to an integer. NaNs and values out of range give the integer
    /// in which only the sign bit is set.
    pub fn float_to_integer(
        &mut self,
        signed: bool,
        format: FloatFormat,
        float: &[Lit],
        width: usize,
    ) -> Word {
        let layout = Layout::of(format);
        let parts = self.unpacked(format, float);
        let (bias, bits) = (layout.bias(), layout.exponent);
        let is_fraction = self.less(&parts.exponent, &number(bias, bits), FALSE);
        let mut is_out = self.or(parts.is_nan, parts.is_infinite);
        if bias + width < 1 << bits {
            let is_small = self.less(&parts.exponent, &number(bias + width, bits), FALSE);
            is_out = self.or(is_out, -is_small);
        }
        let distance = self.sub(&parts.exponent, &number(bias, bits));
        let mut shifted = parts.significand;
        shifted.resize(layout.fraction + width, FALSE);
        let integer = self.shift_left(&shifted, &distance)[layout.fraction..].to_vec();
        let excess = match signed {
            true => integer.last().copied().unwrap_or(FALSE),
            false => parts.sign,
        };
        is_out = self.or(is_out, excess);
        let value = match signed {
            true => self.negate_if(parts.sign, &integer),
            false => integer,
        };
        let mut indefinite = vec![FALSE; width];
        indefinite[width - 1] = TRUE;
        let is_fraction = self.and(is_fraction, -parts.is_nan);
        let value = self.mux_word(is_out, &indefinite, &value);
        self.mux_word(is_fraction, &vec![FALSE; width], &value)
    }

    /// Converts a float to another format, rounded to nearest even.
    pub fn converted_float(&mut self, from: FloatFormat, to: FloatFormat, float: &[Lit]) -> Word {
        if from == to {
            return float.to_vec();
        }
        let (source, target) = (Layout::of(from), Layout::of(to));
        let parts = self.unpacked(from, float);
        // Subnormal numbers of a format are normal in one with more bits for the exponent.
        let magnitude = match target.exponent > source.exponent {
            true => Magnitude::Normal,
            false => Magnitude::Any,
        };
        let bits = source.exponent.max(target.exponent) + 2;
        let mut exponent = parts.exponent.clone();
        exponent.resize(bits, FALSE);
        let exponent = match target.bias().checked_sub(source.bias()) {
            Some(more) => self.add(&exponent, &number(more, bits)),
            None => self.sub(&exponent, &number(source.bias() - target.bias(), bits)),
        };
        let stored = self.packed(to, &exponent, &parts.significand, magnitude);
        let mut stored = self.mux_word(parts.is_infinite, &target.infinity(), &stored);
        stored.push(parts.sign);
        let nan = self.converted_nan(from, to, float);
        self.mux_word(parts.is_nan, &nan, &stored)
    }

    /// Converts a NaN, which keeps its sign and the upper bits of its payload.
    fn converted_nan(&mut self, from: FloatFormat, to: FloatFormat, float: &[Lit]) -> Word {
        let quiet = self.quiet_nan(from, float);
        let (source, target) = (Layout::of(from).fraction, Layout::of(to).fraction);
        let mut nan = default_nan(to);
        for (at, payload) in nan[..target].iter_mut().enumerate() {
            let bit = (at + source).checked_sub(target);
            *payload = bit.map_or(FALSE, |bit| quiet[bit]);
        }
        let top = nan.len() - 1;
        nan[top] = quiet[quiet.len() - 1];
        nan
    }

    /// Rounds a float to an integral value.
    pub fn integral_float(
        &mut self,
        mode: RoundingMode,
        format: FloatFormat,
        float: &[Lit],
    ) -> Word {
        let layout = Layout::of(format);
        let parts = self.unpacked(format, float);
        let mut exponent = parts.exponent.clone();
        exponent.push(FALSE);
        let bits = exponent.len();
        // Numbers this large have no bits behind the point.
        let large = number(layout.bias() + layout.fraction, bits);
        let is_small = self.less(&exponent, &large, FALSE);
        let distance = self.sub(&large, &exponent);
        let wide = [&[FALSE; 2], parts.significand.as_slice()].concat();
        let shifted = self.shifted_right(&wide, &distance);
        let (rest, whole) = shifted.split_at(2);
        let is_inexact = self.or(rest[0], rest[1]);
        let up = match mode {
            RoundingMode::NearestEven => {
                let is_above = self.or(rest[0], whole[0]);
                self.and(rest[1], is_above)
            }
            RoundingMode::NearestAway => rest[1],
            RoundingMode::TowardZero => FALSE,
            RoundingMode::TowardPositive => self.and(is_inexact, -parts.sign),
            RoundingMode::TowardNegative => self.and(is_inexact, parts.sign),
        };
        let mut whole = whole.to_vec();
        whole.push(FALSE);
        let mut one = vec![FALSE; whole.len()];
        one[0] = up;
        let whole = self.add(&whole, &one);
        let exponent = number(layout.bias() + layout.fraction + 1, layout.exponent + 2);
        let rounded = self.packed(format, &exponent, &whole, Magnitude::Normal);
        let (&sign, stored) = float.split_last().expect("a float has a sign");
        let mut rounded = self.mux_word(is_small, &rounded, stored);
        rounded.push(sign);
        let nan = self.quiet_nan(format, float);
        self.mux_word(parts.is_nan, &nan, &rounded)
    }
}

#[cfg(test)]
mod tests {
    use super::super::floats::tests::{constant, interesting, value};
    use super::super::gates::Gates;
    use super::super::sat::Sat;
    use everett_expr::{FloatFormat, FloatUnaryOp, RoundingMode, float};

    #[test]
    fn all_short_floats_are_converted() {
        let mut gates = Gates::<Sat>::new();
        for bits in 0..=u16::MAX {
            let word = constant(bits.into(), 16);
            let to = FloatFormat::ALL[1 + usize::from(bits) % 3];
            let other = gates.converted_float(FloatFormat::Half, to, &word);
            let expected = float::convert(FloatFormat::Half, to, bits.into());
            assert_eq!(value(&other), expected, "{bits:x} {to:?}");
            for (signed, width) in [(true, 7), (false, 8), (true, 32), (false, 64)] {
                let integer =
                    gates.float_to_integer(signed, FloatFormat::Half, &word, width as usize);
                let expected = float::to_int(signed, FloatFormat::Half, bits.into(), width)[0];
                assert_eq!(
                    value(&integer),
                    expected.into(),
                    "{bits:x} {signed} {width}"
                );
            }
            let mode = RoundingMode::ALL[usize::from(bits) % 5];
            let whole = gates.integral_float(mode, FloatFormat::Half, &word);
            let op = FloatUnaryOp::RoundToIntegral(mode);
            let expected = float::unary(op, FloatFormat::Half, bits.into());
            assert_eq!(value(&whole), expected, "{bits:x} {mode:?}");
        }
    }

    #[test]
    fn floats_are_converted() {
        let mut gates = Gates::<Sat>::new();
        for from in FloatFormat::ALL {
            for bits in interesting(from, 3000) {
                let word = constant(bits, from.width() as usize);
                for to in FloatFormat::ALL {
                    let other = gates.converted_float(from, to, &word);
                    let expected = float::convert(from, to, bits);
                    assert_eq!(value(&other), expected, "{from:?} {bits:x} {to:?}");
                }
                for (signed, width) in [(true, 8), (false, 32), (true, 64)] {
                    let integer = gates.float_to_integer(signed, from, &word, width as usize);
                    let expected = float::to_int(signed, from, bits, width)[0];
                    assert_eq!(
                        value(&integer),
                        expected.into(),
                        "{from:?} {bits:x} {width}"
                    );
                }
                for mode in RoundingMode::ALL {
                    let whole = gates.integral_float(mode, from, &word);
                    let op = FloatUnaryOp::RoundToIntegral(mode);
                    let expected = float::unary(op, from, bits);
                    assert_eq!(value(&whole), expected, "{from:?} {bits:x} {mode:?}");
                }
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
            let format = FloatFormat::ALL[round as usize / 4 % 4];
            for signed in [true, false] {
                let word = constant(bits.into(), 64);
                let float = gates.float_from_integer(signed, format, &word);
                let expected = float::from_int(signed, format, 64, &[bits]);
                assert_eq!(value(&float), expected, "{bits:x} {signed} {format:?}");
                let back = gates.float_to_integer(signed, format, &float, 64);
                let expected = float::to_int(signed, format, expected, 64)[0];
                assert_eq!(value(&back), expected.into());
            }
        }
    }
}
