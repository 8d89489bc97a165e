//! Circuits for float operations that are cheap and exact: comparisons, and conversions of integers
//! that need no rounding. The results of all other operations are unconstrained in the SAT
//! instance.

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

    /// Converts an integer to a float; `None` if it may have to be rounded.
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
        if length(&significand) > fraction + 1 {
            return None;
        }
        significand.resize(fraction + 1, FALSE);
        let not_zero = -self.is_zero(&significand);
        let mut shifted: Word = Vec::new();
        for stage in (0..usize::BITS - fraction.leading_zeros()).rev() {
            let distance = 1 << stage;
            let top = &significand[fraction + 1 - distance..];
            let is_low = self.is_zero(top);
            significand = (0..=fraction)
                .map(|at| {
                    let from = at.checked_sub(distance).map_or(FALSE, |at| significand[at]);
                    self.mux(is_low, from, significand[at])
                })
                .collect();
            shifted.push(is_low);
        }
        shifted.reverse();
        shifted.resize(exponent_bits, FALSE);
        let bias = (1usize << (exponent_bits - 1)) - 1;
        let largest: Word = (0..exponent_bits)
            .map(|at| {
                if (bias + fraction) >> at & 1 == 1 {
                    TRUE
                } else {
                    FALSE
                }
            })
            .collect();
        let exponent = self.sub(&largest, &shifted);
        let mut float = significand[..fraction].to_vec();
        for bit in exponent {
            float.push(self.and(bit, not_zero));
        }
        float.push(sign);
        Some(float)
    }
}
