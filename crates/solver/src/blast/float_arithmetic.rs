//! Circuits for sums, differences, products, quotients and square roots of floats.

use super::circuits::{Word, open_bits};
use super::floats::{Layout, Magnitude, Number, default_nan, number};
use super::gates::{FALSE, Gates, TRUE};
use super::sat::{Backend, Lit};
use everett_expr::{FloatFormat, FloatOp};

/// Maximum number of bits of a division: evaluation takes it as a number.
const MAX_DIVIDEND: usize = 128;

/// What an operation returns where no operand is NaN: a sign, and exponent and significand as they
/// are stored.
struct Outcome {
    is_invalid: Lit,
    is_infinite: Lit,
    sign: Lit,
    stored: Word,
}

impl<B: Backend> Gates<B> {
    /// Returns the result of an operation; `None` if there is no circuit for it, or only one that
    /// is too large for this solver.
    pub fn float_binary(
        &mut self,
        op: FloatOp,
        format: FloatFormat,
        a: &[Lit],
        b: &[Lit],
    ) -> Option<Word> {
        let (x, y) = (self.unpacked(format, a), self.unpacked(format, b));
        let outcome = match op {
            FloatOp::Add => self.sum(format, &x, &y, y.sign),
            FloatOp::Sub => self.sum(format, &x, &y, -y.sign),
            FloatOp::Mul => self.product(format, &x, &y)?,
            FloatOp::Div => self.quotient(format, &x, &y)?,
            FloatOp::Rem => return None,
        };
        let infinity = Layout::of(format).infinity();
        let mut float = self.mux_word(outcome.is_infinite, &infinity, &outcome.stored);
        float.push(outcome.sign);
        let float = self.mux_word(outcome.is_invalid, &default_nan(format), &float);
        let is_nan = self.or(x.is_nan, y.is_nan);
        if is_nan == FALSE {
            return Some(float);
        }
        let nan = self.nan_of_two(format, (a, x.is_nan), (b, y.is_nan));
        Some(self.mux_word(is_nan, &nan, &float))
    }

    fn sum(&mut self, format: FloatFormat, a: &Number, b: &Number, b_sign: Lit) -> Outcome {
        let magnitude = |it: &Number| [it.significand.as_slice(), &it.exponent].concat();
        let swaps = self.less(&magnitude(a), &magnitude(b), FALSE);
        let exponent = self.mux_word(swaps, &b.exponent, &a.exponent);
        let other_exponent = self.mux_word(swaps, &a.exponent, &b.exponent);
        let large = self.mux_word(swaps, &b.significand, &a.significand);
        let small = self.mux_word(swaps, &a.significand, &b.significand);
        let sign = self.mux(swaps, b_sign, a.sign);
        // Three bits more are enough for rounding: the last one stands for all below it.
        let distance = self.sub(&exponent, &other_exponent);
        let small = [&[FALSE; 3], small.as_slice()].concat();
        let mut small = self.shifted_right(&small, &distance);
        let mut large = [&[FALSE; 3], large.as_slice()].concat();
        for word in [&mut small, &mut large] {
            word.push(FALSE);
        }
        let differ = self.xor(a.sign, b_sign);
        let total = self.add_or_subtract(&large, &small, differ);
        let mut top = exponent;
        top.extend([FALSE; 2]);
        let top = self.add(&top, &number(1, top.len()));
        let stored = self.packed(format, &top, &total, Magnitude::Exact);
        // A difference of equal numbers is a positive zero.
        let is_zero = self.is_zero(&total);
        let both = self.and(a.sign, b_sign);
        let infinite = self.and(a.is_infinite, b.is_infinite);
        Outcome {
            is_invalid: self.and(infinite, differ),
            is_infinite: self.or(a.is_infinite, b.is_infinite),
            sign: self.mux(is_zero, both, sign),
            stored,
        }
    }

    fn product(&mut self, format: FloatFormat, a: &Number, b: &Number) -> Option<Outcome> {
        let layout = Layout::of(format);
        if open_bits(&a.significand) * open_bits(&b.significand) > B::MAX_FLOAT_PRODUCT {
            return None;
        }
        let wide = |word: &[Lit]| [word, &vec![FALSE; word.len()]].concat();
        let product = self.multiply(&wide(&a.significand), &wide(&b.significand));
        // The highest bit of the product is worth two.
        let exponent = self.exponents(layout, a, b, false);
        let bias = number(layout.bias() - 1, exponent.len());
        let exponent = self.sub(&exponent, &bias);
        let zero_a = self.and(a.is_zero, b.is_infinite);
        let zero_b = self.and(b.is_zero, a.is_infinite);
        Some(Outcome {
            is_invalid: self.or(zero_a, zero_b),
            is_infinite: self.or(a.is_infinite, b.is_infinite),
            sign: self.xor(a.sign, b.sign),
            stored: self.packed(format, &exponent, &product, Magnitude::Any),
        })
    }

    fn quotient(&mut self, format: FloatFormat, a: &Number, b: &Number) -> Option<Outcome> {
        let layout = Layout::of(format);
        let bits = layout.exponent + 2;
        let (dividend, shifted_a) = self.normalised(a.significand.clone(), bits);
        let (divisor, shifted_b) = self.normalised(b.significand.clone(), bits);
        // Bits of the divisor that are known to be 0 need not be divided by.
        let zeros = divisor.iter().take_while(|&&bit| bit == FALSE).count();
        let zeros = zeros.min(layout.fraction);
        let more = layout.fraction + 2 - zeros;
        let size = dividend.len() + more;
        let work = open_bits(&divisor) * size;
        if work > B::MAX_FLOAT_PRODUCT || size > MAX_DIVIDEND {
            return None;
        }
        let dividend = [vec![FALSE; more], dividend].concat();
        let mut divisor = divisor[zeros..].to_vec();
        divisor.resize(size, FALSE);
        let (quotient, remainder) = self.divide(&dividend, &divisor);
        let is_exact = self.is_zero(&remainder);
        // The quotient of normalised numbers is between a half and two.
        let mut significand = vec![-is_exact];
        significand.extend_from_slice(&quotient[..layout.fraction + 3]);
        let exponent = self.exponents(layout, a, b, true);
        let exponent = self.sub(&exponent, &shifted_a);
        let exponent = self.add(&exponent, &shifted_b);
        let exponent = self.add(&exponent, &number(layout.bias(), bits));
        let stored = self.packed(format, &exponent, &significand, Magnitude::Any);
        let is_zero = self.or(a.is_zero, b.is_infinite);
        let stored = stored.iter().map(|&bit| self.and(bit, -is_zero));
        let stored = stored.collect();
        let zeros = self.and(a.is_zero, b.is_zero);
        let infinite = self.and(a.is_infinite, b.is_infinite);
        Some(Outcome {
            is_invalid: self.or(zeros, infinite),
            is_infinite: self.or(a.is_infinite, b.is_zero),
            sign: self.xor(a.sign, b.sign),
            stored,
        })
    }

    /// Returns the square root; `None` if the circuit is too large for this solver.
    pub fn float_root(&mut self, format: FloatFormat, float: &[Lit]) -> Option<Word> {
        let layout = Layout::of(format);
        let bits = layout.exponent + 2;
        if (layout.fraction + 2).pow(2) > B::MAX_FLOAT_PRODUCT {
            return None;
        }
        let parts = self.unpacked(format, float);
        let (significand, shifted) = self.normalised(parts.significand, bits);
        let mut exponent = parts.exponent;
        exponent.resize(bits, FALSE);
        let exponent = self.sub(&exponent, &shifted);
        let exponent = self.sub(&exponent, &number(layout.bias(), bits));
        // The exponent must be even: if it is not, the significand is doubled.
        let is_odd = exponent[0];
        let mut half = exponent[1..].to_vec();
        half.push(half[half.len() - 1]);
        let half = self.add(&half, &number(layout.bias(), bits));
        let single = [significand.as_slice(), &[FALSE]].concat();
        let double = [&[FALSE], significand.as_slice()].concat();
        let mut radicand = vec![FALSE; layout.fraction + 2];
        radicand.extend(self.mux_word(is_odd, &double, &single));
        let (mut root, is_exact) = self.integer_root(&radicand);
        // That of a number from one to four, where it is used.
        root[layout.fraction + 1] = TRUE;
        let root = [&[-is_exact], root.as_slice()].concat();
        let root = self.packed(format, &half, &root, Magnitude::Normal);
        // Zeros and positive infinity are their own roots.
        let positive_infinity = self.and(parts.is_infinite, -parts.sign);
        let is_same = self.or(parts.is_zero, positive_infinity);
        let (&sign, stored) = float.split_last()?;
        let mut root = self.mux_word(is_same, stored, &root);
        root.push(sign);
        let is_invalid = self.and(sign, -parts.is_zero);
        let root = self.mux_word(is_invalid, &default_nan(format), &root);
        let nan = self.quiet_nan(format, float);
        Some(self.mux_word(parts.is_nan, &nan, &root))
    }

    /// Returns the root of an integer with an even number of bits, rounded down, and whether it is
    /// exact. Digit by digit, as by hand.
    fn integer_root(&mut self, radicand: &[Lit]) -> (Word, Lit) {
        let (mut root, mut rest) = (Word::new(), Word::new());
        for pair in radicand.chunks(2).rev() {
            let mut left = [pair, rest.as_slice()].concat();
            let mut trial = [&[TRUE, FALSE], root.as_slice()].concat();
            let needed = trial.len();
            left.resize(needed.max(left.len()), FALSE);
            trial.resize(left.len(), FALSE);
            let (difference, fits) = self.subtracted(&left, &trial);
            rest = self.mux_word(fits, &difference, &left);
            // The rest is at most twice the root.
            rest.truncate(needed);
            root.insert(0, fits);
        }
        let is_exact = self.is_zero(&rest);
        (root, is_exact)
    }

    /// Returns the sum or the difference of two exponents, as a signed number.
    fn exponents(&mut self, layout: Layout, a: &Number, b: &Number, subtracts: bool) -> Word {
        let wide = |word: &Word| [word.as_slice(), &[FALSE; 2]].concat();
        debug_assert_eq!(a.exponent.len(), layout.exponent);
        let (a, b) = (wide(&a.exponent), wide(&b.exponent));
        match subtracts {
            true => self.sub(&a, &b),
            false => self.add(&a, &b),
        }
    }

    /// Returns the NaN that results if at least one operand is NaN.
    fn nan_of_two(
        &mut self,
        format: FloatFormat,
        (a, a_is_nan): (&[Lit], Lit),
        (b, b_is_nan): (&[Lit], Lit),
    ) -> Word {
        let (from_a, from_b) = (self.quiet_nan(format, a), self.quiet_nan(format, b));
        let mut takes_a = a_is_nan;
        if format == FloatFormat::X87 {
            // The quiet one, then the larger significand, then the positive one.
            let quiet = Layout::of(format).fraction - 1;
            let (quiet_a, quiet_b) = (a[quiet], b[quiet]);
            let (bits_a, bits_b) = (&a[..quiet + 2], &b[..quiet + 2]);
            let is_above = self.less(bits_b, bits_a, FALSE);
            let is_same = self.equal(bits_a, bits_b);
            let is_first = self.less(&from_a, &from_b, TRUE);
            let larger = self.mux(is_same, is_first, is_above);
            let differ = self.xor(quiet_a, quiet_b);
            let chosen = self.mux(differ, quiet_a, larger);
            takes_a = self.mux(b_is_nan, chosen, TRUE);
            takes_a = self.and(takes_a, a_is_nan);
        }
        self.mux_word(takes_a, &from_a, &from_b)
    }
}

#[cfg(test)]
mod tests {
    use super::super::floats::tests::{constant, interesting, value};
    use super::super::gates::{FALSE, Gates, TRUE};
    use super::super::sat::{Backend, Sat, SatAnswer};
    use everett_expr::{FloatFormat, FloatOp, FloatUnaryOp, float};

    #[test]
    fn arithmetic_agrees_with_evaluation() {
        let mut gates = Gates::<Sat>::new();
        for format in FloatFormat::ALL {
            let all: Vec<u128> = interesting(format, 4000).collect();
            let others = all.iter().skip(7).chain([&0; 7]);
            for (at, (&a, &other)) in all.iter().zip(others).enumerate() {
                let sign = 1 << (format.width() - 1);
                let b = [other, other, a ^ sign, other ^ a & sign][at % 4];
                let word = |bits| constant(bits, format.width() as usize);
                for op in [FloatOp::Add, FloatOp::Sub, FloatOp::Mul] {
                    let float = gates.float_binary(op, format, &word(a), &word(b));
                    let float = float.expect("there is a circuit");
                    let expected = float::binary(op, format, a, b);
                    assert_eq!(value(&float), expected, "{format:?} {op:?} {a:x} {b:x}");
                }
            }
        }
    }

    #[test]
    fn roots_agree_with_evaluation() {
        let mut gates = Gates::<Sat>::new();
        for format in FloatFormat::ALL {
            for bits in interesting(format, 1500) {
                let sign = 1 << (format.width() - 1);
                for bits in [bits & !sign, bits] {
                    let word = constant(bits, format.width() as usize);
                    let root = gates.float_root(format, &word);
                    let expected = float::unary(FloatUnaryOp::Sqrt, format, bits);
                    let root = root.expect("there is a circuit");
                    assert_eq!(value(&root), expected, "{format:?} {bits:x}");
                }
            }
        }
    }

    /// A quotient is not folded, because it is defined by a product.
    #[test]
    fn quotients_agree_with_evaluation() {
        for format in [FloatFormat::Half, FloatFormat::Single, FloatFormat::Double] {
            let all: Vec<u128> = interesting(format, 40).collect();
            let others = all.iter().skip(7).chain([&0; 7]);
            for (&a, &b) in all.iter().zip(others) {
                let mut gates = Gates::<Sat>::new();
                let word = |bits| constant(bits, format.width() as usize);
                let float = gates.float_binary(FloatOp::Div, format, &word(a), &word(b));
                let float = float.expect("there is a circuit");
                let answer = gates.sat.solve(&[], &[], &mut 100_000);
                assert_eq!(answer, SatAnswer::Sat);
                let bits = float.iter().enumerate();
                let found: u128 = bits
                    .map(|(at, &lit)| u128::from(gates.sat.value(lit)) << at)
                    .sum();
                let expected = float::binary(FloatOp::Div, format, a, b);
                assert_eq!(found, expected, "{format:?} {a:x} {b:x}");
                let differs: Vec<_> = float
                    .iter()
                    .enumerate()
                    .map(|(at, &lit)| if found >> at & 1 == 1 { -lit } else { lit })
                    .filter(|&lit| lit != FALSE)
                    .collect();
                assert!(!differs.contains(&TRUE));
                gates.clause(&differs);
                let answer = gates.sat.solve(&[], &[], &mut 100_000);
                assert_eq!(answer, SatAnswer::Unsat, "{format:?} {a:x} {b:x}");
            }
        }
    }

    /// Long doubles are divided by numbers with few bits.
    #[test]
    fn long_quotients_are_exact() {
        let mut gates = Gates::<Sat>::new();
        let (long, double) = (FloatFormat::X87, FloatFormat::Double);
        for (a, b) in [(1234.0f64, 1000.0f64), (7.0, 10.0), (0.0, 100.0)] {
            let [a, b] = [a, b].map(|it| float::convert(double, long, it.to_bits().into()));
            let word = |bits| constant(bits, 80);
            let float = gates.float_binary(FloatOp::Div, long, &word(a), &word(b));
            let float = float.expect("there is a circuit");
            assert_eq!(gates.sat.solve(&[], &[], &mut 100_000), SatAnswer::Sat);
            let bits = float.iter().enumerate();
            let found: u128 = bits
                .map(|(at, &lit)| u128::from(gates.sat.value(lit)) << at)
                .sum();
            assert_eq!(found, float::binary(FloatOp::Div, long, a, b));
        }
    }
}
