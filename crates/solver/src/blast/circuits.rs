//! Circuits for the word operators: adders, multipliers, dividers, shifters, comparators.
//!
//! Words are slices of literals, least significant bit first. Constant bits are literals too
//! ([`TRUE`], [`FALSE`]), so gates fold known bits and zero padding costs nothing.

use super::gates::{FALSE, Gates, TRUE};
use super::sat::{Backend, Division, Lit};

/// The bits of a word, least significant first.
pub type Word = Vec<Lit>;

fn is_constant(lit: Lit) -> bool {
    lit == TRUE || lit == FALSE
}

/// Returns the word as a constant, if all bits are known.
fn as_bools(word: &[Lit]) -> Option<Vec<bool>> {
    word.iter()
        .map(|&lit| is_constant(lit).then_some(lit == TRUE))
        .collect()
}

/// Returns the number of bits up to the highest one that is not known to be 0.
pub fn length(word: &[Lit]) -> usize {
    word.iter()
        .rposition(|&lit| lit != FALSE)
        .map_or(0, |at| at + 1)
}

/// Returns the number of bits that are not known to be 0.
pub fn open_bits(word: &[Lit]) -> usize {
    word.iter().filter(|&&lit| lit != FALSE).count()
}

/// Returns the complement of a word.
pub fn not_word(a: &[Lit]) -> Word {
    a.iter().map(|lit| -lit).collect()
}

impl<B: Backend> Gates<B> {
    pub fn fresh_word(&mut self, width: usize) -> Word {
        (0..width).map(|_| self.fresh()).collect()
    }

    pub fn and_word(&mut self, a: &[Lit], b: &[Lit]) -> Word {
        a.iter().zip(b).map(|(&x, &y)| self.and(x, y)).collect()
    }

    pub fn or_word(&mut self, a: &[Lit], b: &[Lit]) -> Word {
        a.iter().zip(b).map(|(&x, &y)| self.or(x, y)).collect()
    }

    pub fn xor_word(&mut self, a: &[Lit], b: &[Lit]) -> Word {
        a.iter().zip(b).map(|(&x, &y)| self.xor(x, y)).collect()
    }

    pub fn mux_word(&mut self, condition: Lit, yes: &[Lit], no: &[Lit]) -> Word {
        yes.iter()
            .zip(no)
            .map(|(&x, &y)| self.mux(condition, x, y))
            .collect()
    }

    /// Returns the entry at an index; the last one for indices past the end.
    pub fn select(&mut self, index: &[Lit], entries: &[u64], width: usize) -> Word {
        let constant = |entry: u64| {
            let bit = |at| if entry >> at & 1 == 1 { TRUE } else { FALSE };
            (0..width).map(bit).collect()
        };
        let Some((&top, below)) = index.split_last() else {
            return constant(entries[0]);
        };
        if entries.iter().all(|&entry| entry == entries[0]) {
            return constant(entries[0]);
        }
        let half = 1usize.checked_shl(below.len() as u32).unwrap_or(0);
        if half == 0 || entries.len() <= half {
            let low = self.select(below, entries, width);
            let past = constant(entries[entries.len() - 1]);
            return self.mux_word(top, &past, &low);
        }
        let low = self.select(below, &entries[..half], width);
        let high = self.select(below, &entries[half..], width);
        self.mux_word(top, &high, &low)
    }

    pub fn equal(&mut self, a: &[Lit], b: &[Lit]) -> Lit {
        let mut same: Vec<Lit> = a.iter().zip(b).map(|(&x, &y)| -self.xor(x, y)).collect();
        self.and_all(&mut same)
    }

    pub fn is_zero(&mut self, a: &[Lit]) -> Lit {
        self.and_all(&mut not_word(a))
    }

    /// Returns `a + b + carry` modulo the width, and the carry out.
    fn add_with_carry(&mut self, a: &[Lit], b: &[Lit], carry: Lit) -> (Word, Lit) {
        let mut carry = carry;
        let mut sum = Vec::with_capacity(a.len());
        for (&x, &y) in a.iter().zip(b) {
            let half = self.xor(x, y);
            sum.push(self.xor(half, carry));
            carry = self.majority(x, y, carry);
        }
        (sum, carry)
    }

    pub fn add(&mut self, a: &[Lit], b: &[Lit]) -> Word {
        self.add_modulo(a, b, FALSE)
    }

    pub fn sub(&mut self, a: &[Lit], b: &[Lit]) -> Word {
        self.add_modulo(a, &not_word(b), TRUE)
    }

    /// Like [`Gates::add_with_carry`], without the gate for the unused carry out.
    fn add_modulo(&mut self, a: &[Lit], b: &[Lit], carry: Lit) -> Word {
        let Some(top) = a.len().checked_sub(1) else {
            return Vec::new();
        };
        let (mut sum, carry) = self.add_with_carry(&a[..top], &b[..top], carry);
        let half = self.xor(a[top], b[top]);
        sum.push(self.xor(half, carry));
        sum
    }

    /// Returns `a - b` modulo the width, and whether `a >= b`.
    pub fn subtracted(&mut self, a: &[Lit], b: &[Lit]) -> (Word, Lit) {
        self.add_with_carry(a, &not_word(b), TRUE)
    }

    /// Returns `a + b`, or `a - b` if a condition holds.
    pub fn add_or_subtract(&mut self, a: &[Lit], b: &[Lit], subtracts: Lit) -> Word {
        let b: Word = b.iter().map(|&bit| self.xor(bit, subtracts)).collect();
        self.add_modulo(a, &b, subtracts)
    }

    /// Returns unsigned `a < b` if `or_equal` is [`FALSE`], `a <= b` if it is [`TRUE`].
    pub fn less(&mut self, a: &[Lit], b: &[Lit], or_equal: Lit) -> Lit {
        a.iter()
            .zip(b)
            .fold(or_equal, |borrow, (&x, &y)| self.majority(-x, y, borrow))
    }

    /// Returns the signed comparison, like [`Gates::less`] with the sign bits swapped.
    pub fn less_signed(&mut self, a: &[Lit], b: &[Lit], or_equal: Lit) -> Lit {
        let Some(top) = a.len().checked_sub(1) else {
            return or_equal;
        };
        let below = self.less(&a[..top], &b[..top], or_equal);
        self.majority(a[top], -b[top], below)
    }

    pub fn multiply(&mut self, a: &[Lit], b: &[Lit]) -> Word {
        // The product of short words is short.
        let width = a.len();
        let needed = (length(a) + length(b)).min(width);
        let (a, b) = (&a[..needed], &b[..needed]);
        let mut product = match (as_bools(a), as_bools(b)) {
            (_, Some(factor)) => self.multiply_constant(a, &factor),
            (Some(factor), _) => self.multiply_constant(b, &factor),
            // One row for each bit that is not known to be 0. A canonical order
            // makes both orders the same circuit.
            _ if (open_bits(b), a) <= (open_bits(a), b) => self.multiply_rows(a, b),
            _ => self.multiply_rows(b, a),
        };
        product.resize(width, FALSE);
        product
    }

    /// Returns the product as a sum of one shifted row for each bit of `b`.
    fn multiply_rows(&mut self, a: &[Lit], b: &[Lit]) -> Word {
        let width = a.len();
        let mut sum = vec![FALSE; width];
        for (shift, &bit) in b.iter().enumerate() {
            if bit == FALSE {
                continue;
            }
            let row: Word = a[..width - shift]
                .iter()
                .map(|&lit| self.and(lit, bit))
                .collect();
            let high = self.add(&sum[shift..], &row);
            sum.truncate(shift);
            sum.extend(high);
        }
        sum
    }

    /// Returns the product with a constant: a sum and difference of shifted copies, according to
    /// the non-adjacent form of the factor.
    fn multiply_constant(&mut self, a: &[Lit], factor: &[bool]) -> Word {
        let width = a.len();
        let mut sum = vec![FALSE; width];
        for (shift, digit) in non_adjacent_form(factor).into_iter().enumerate() {
            if digit == 0 {
                continue;
            }
            let row = &a[..width - shift];
            let high = if digit > 0 {
                self.add(&sum[shift..], row)
            } else {
                self.sub(&sum[shift..], row)
            };
            sum.truncate(shift);
            sum.extend(high);
        }
        sum
    }

    /// Returns quotient and remainder as fresh words, constrained by `a = quotient * b + remainder`
    /// without overflow and `remainder < b`. If `b` is zero, the quotient is all ones and the
    /// remainder is `a`. Bits that the lengths of `a` and `b` rule out are constants.
    pub fn divide(&mut self, a: &[Lit], b: &[Lit]) -> (Word, Word) {
        let width = a.len();
        let (dividend, divisor) = (length(a), length(b));
        let highest_one = b.iter().rposition(|&lit| lit == TRUE);
        let zero = self.is_zero(b);
        let quotient = self.fresh_word(dividend.saturating_sub(highest_one.unwrap_or(0)));
        let remainder = self.fresh_word(match highest_one {
            Some(_) => dividend.min(divisor),
            None => dividend,
        });
        for &bit in &quotient {
            self.clause(&[-zero, bit]);
        }
        let needed = dividend.max(divisor);
        let (a, b) = (&a[..needed], &b[..needed]);
        let padded = |word: &[Lit], width: usize| [word, &vec![FALSE; width - word.len()]].concat();
        match as_bools(b) {
            Some(factor) if highest_one.is_some() => {
                // With two more bits nothing overflows: the product is below 2^(needed + 1).
                let wide = needed + 2;
                let factor = [factor, vec![false; 2]].concat();
                let product = self.multiply_constant(&padded(&quotient, wide), &factor);
                let sum = self.add(&product, &padded(&remainder, wide));
                self.assert_equal(&sum, &padded(a, wide));
            }
            _ => self.divisor_rows(
                a,
                b,
                &padded(&quotient, needed),
                &padded(&remainder, needed),
            ),
        }
        let below = self.less(&padded(&remainder, needed), b, FALSE);
        self.clause(&[zero, below]);
        self.sat.add_division(Division {
            dividend: a.to_vec(),
            divisor: b.to_vec(),
            quotient: quotient.clone(),
            remainder: remainder.clone(),
        });
        let above = vec![zero; width - quotient.len()];
        ([quotient, above].concat(), padded(&remainder, width))
    }

    /// Asserts that two words are equal.
    fn assert_equal(&mut self, a: &[Lit], b: &[Lit]) {
        for (&have, &want) in a.iter().zip(b) {
            if have != want {
                self.clause(&[-have, want]);
                self.clause(&[have, -want]);
            }
        }
    }

    /// Asserts `quotient * b + remainder == a`, with no partial product and no carry past the
    /// width.
    fn divisor_rows(&mut self, a: &[Lit], b: &[Lit], quotient: &[Lit], remainder: &[Lit]) {
        let width = a.len();
        let mut sum = remainder.to_vec();
        for (shift, &bit) in b.iter().enumerate() {
            if bit == FALSE {
                continue;
            }
            for &high in &quotient[width - shift..] {
                self.clause(&[-bit, -high]);
            }
            let row: Word = quotient[..width - shift]
                .iter()
                .map(|&lit| self.and(lit, bit))
                .collect();
            let (high, carry) = self.add_with_carry(&sum[shift..], &row, FALSE);
            self.clause(&[-carry]);
            sum.truncate(shift);
            sum.extend(high);
        }
        self.assert_equal(&sum, a);
    }

    /// Returns the signed quotient and remainder, computed from the unsigned ones of the
    /// magnitudes.
    pub fn divide_signed(&mut self, a: &[Lit], b: &[Lit]) -> (Word, Word) {
        let (Some(&sign_a), Some(&sign_b)) = (a.last(), b.last()) else {
            return (Vec::new(), Vec::new());
        };
        let (positive_a, positive_b) = (self.magnitude(a, sign_a), self.magnitude(b, sign_b));
        let (quotient, remainder) = self.divide(&positive_a, &positive_b);
        let differ = self.xor(sign_a, sign_b);
        (
            self.negate_if(differ, &quotient),
            self.negate_if(sign_a, &remainder),
        )
    }

    fn magnitude(&mut self, a: &[Lit], sign: Lit) -> Word {
        self.negate_if(sign, a)
    }

    pub fn negate_if(&mut self, condition: Lit, a: &[Lit]) -> Word {
        if condition == FALSE {
            return a.to_vec();
        }
        let flipped: Word = a.iter().map(|&lit| self.xor(lit, condition)).collect();
        self.add_modulo(&flipped, &vec![FALSE; a.len()], condition)
    }

    pub fn shift_left(&mut self, a: &[Lit], amount: &[Lit]) -> Word {
        let reversed: Word = a.iter().rev().copied().collect();
        let mut shifted = self.shift_right(&reversed, amount, FALSE);
        shifted.reverse();
        shifted
    }

    /// Shifts right; `fill` is shifted in from above.
    pub fn shift_right(&mut self, a: &[Lit], amount: &[Lit], fill: Lit) -> Word {
        let width = a.len();
        let stages = usize::BITS as usize - (width.max(1) - 1).leading_zeros() as usize;
        let mut word = a.to_vec();
        for (stage, &bit) in amount.iter().take(stages).enumerate() {
            let distance = 1usize << stage;
            word = (0..width)
                .map(|i| {
                    let from = word.get(i + distance).copied().unwrap_or(fill);
                    self.mux(bit, from, word[i])
                })
                .collect();
        }
        if amount.len() > stages {
            let within = self.is_zero(&amount[stages..]);
            word = word
                .into_iter()
                .map(|lit| self.mux(within, lit, fill))
                .collect();
        }
        word
    }
}

/// Returns the non-adjacent form: digits -1, 0 and 1, least significant first, no two adjacent ones
/// non-zero. It needs the fewest rows. Digits past the width are dropped, because products are
/// taken modulo the width.
fn non_adjacent_form(factor: &[bool]) -> Vec<i8> {
    let mut digits = Vec::with_capacity(factor.len());
    let mut carry = false;
    for (i, &bit) in factor.iter().enumerate() {
        let next = factor.get(i + 1).copied().unwrap_or(false);
        let odd = bit != carry;
        digits.push(match (odd, next) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => -1,
        });
        // A remaining value of 2 or 3 (mod 4) carries.
        carry = (bit && carry) || (odd && next);
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::super::cdcl::Cdcl;
    use super::super::sat::{Sat, SatAnswer};
    use super::*;

    fn constant(value: u64, width: usize) -> Word {
        (0..width)
            .map(|i| if value >> i & 1 == 1 { TRUE } else { FALSE })
            .collect()
    }

    #[test]
    fn the_non_adjacent_form_has_the_same_value() {
        for value in 0..256i64 {
            let bits: Vec<bool> = (0..8).map(|i| value >> i & 1 == 1).collect();
            let digits = non_adjacent_form(&bits);
            let sum: i64 = digits
                .iter()
                .enumerate()
                .map(|(i, &d)| i64::from(d) << i)
                .sum();
            assert_eq!(sum.rem_euclid(256), value);
            assert!(digits.windows(2).all(|pair| pair[0] == 0 || pair[1] == 0));
        }
    }

    type Circuit<B> = fn(&mut Gates<B>, &[Lit], &[Lit]) -> Word;
    type Meaning = fn(u64, u64) -> u64;

    /// Tests the same circuit with both solvers.
    macro_rules! exhaustive {
        ($circuit:expr, $meaning:expr) => {
            exhaustive_with::<Sat>($circuit, $meaning);
            exhaustive_with::<Cdcl>($circuit, $meaning);
        };
    }

    /// Tests every pair of 4-bit inputs; the inputs are variables fixed by assumptions.
    fn exhaustive_with<B: Backend>(circuit: Circuit<B>, meaning: Meaning) {
        let mut gates = Gates::<B>::new();
        let a = gates.fresh_word(4);
        let b = gates.fresh_word(4);
        let out = circuit(&mut gates, &a, &b);
        for x in 0..16u64 {
            for y in 0..16u64 {
                let fix = |word: &[Lit], value: u64| -> Vec<Lit> {
                    let signed = |(i, &lit): (usize, &Lit)| {
                        if value >> i & 1 == 1 { lit } else { -lit }
                    };
                    word.iter().enumerate().map(signed).collect()
                };
                let assumptions = [fix(&a, x), fix(&b, y)].concat();
                assert_eq!(
                    gates.sat.solve(&assumptions, &out, &mut 100_000),
                    SatAnswer::Sat
                );
                let mut have = 0;
                for (i, &lit) in out.iter().enumerate() {
                    have |= u64::from(gates.sat.value(lit)) << i;
                }
                assert_eq!(have, meaning(x, y) & 15, "inputs {x} and {y}");
                let mut wrong: Vec<Lit> = fix(&out, have);
                let differs: Vec<Lit> = wrong.drain(..).map(|lit| -lit).collect();
                let selector = gates.fresh();
                gates.clause(&[&[-selector], differs.as_slice()].concat());
                let again = [assumptions, vec![selector]].concat();
                assert_eq!(
                    gates.sat.solve(&again, &[], &mut 100_000),
                    SatAnswer::Unsat,
                    "not unique"
                );
            }
        }
    }

    #[test]
    fn arithmetic() {
        exhaustive!(|g, a, b| g.add(a, b), |x, y| x + y);
        exhaustive!(|g, a, b| g.sub(a, b), |x, y| x.wrapping_sub(y));
        exhaustive!(|g, a, b| g.multiply(a, b), |x, y| x * y);
        exhaustive!(|g, a, _| g.multiply(a, &constant(11, 4)), |x, _| x * 11);
        exhaustive!(|g, a, _| g.negate_if(TRUE, a), |x, _| x.wrapping_neg());
    }

    #[test]
    fn division() {
        exhaustive!(|g, a, b| g.divide(a, b).0, |x, y| x
            .checked_div(y)
            .unwrap_or(15));
        exhaustive!(|g, a, b| g.divide(a, b).1, |x, y| x
            .checked_rem(y)
            .unwrap_or(x));
        exhaustive!(|g, a, _| g.divide(a, &constant(3, 4)).0, |x, _| x / 3);
        exhaustive!(|g, a, _| g.divide(a, &constant(3, 4)).1, |x, _| x % 3);
        exhaustive!(|g, a, _| g.divide(a, &constant(11, 4)).0, |x, _| x / 11);
        exhaustive!(|g, a, _| g.divide(a, &constant(0, 4)).0, |_, _| 15);
        exhaustive!(|g, a, _| g.divide(a, &constant(0, 4)).1, |x, _| x);
    }

    /// Words whose upper bits are known to be 0.
    #[test]
    fn short_words() {
        fn short(word: &[Lit], bits: usize) -> Word {
            [&word[..bits], &vec![FALSE; word.len() - bits]].concat()
        }
        exhaustive!(|g, a, b| g.multiply(&short(a, 2), &short(b, 1)), |x, y| (x
            & 3)
            * (y & 1));
        exhaustive!(|g, a, b| g.multiply(&short(a, 3), b), |x, y| (x & 7) * y);
        exhaustive!(|g, a, b| g.divide(&short(a, 2), b).0, |x, y| (x & 3)
            .checked_div(y)
            .unwrap_or(15));
        exhaustive!(|g, a, b| g.divide(&short(a, 2), b).1, |x, y| (x & 3)
            .checked_rem(y)
            .unwrap_or(x & 3));
        exhaustive!(|g, a, b| g.divide(a, &short(b, 2)).0, |x, y| x
            .checked_div(y & 3)
            .unwrap_or(15));
        exhaustive!(|g, a, b| g.divide(a, &short(b, 2)).1, |x, y| x
            .checked_rem(y & 3)
            .unwrap_or(x));
        exhaustive!(
            |g, a, _| g.divide(&short(a, 2), &constant(9, 4)).1,
            |x, _| x & 3
        );
    }

    #[test]
    fn shifts_and_comparisons() {
        exhaustive!(|g, a, b| g.shift_left(a, b), |x, y| x << y);
        exhaustive!(|g, a, b| g.shift_right(a, b, FALSE), |x, y| x >> y);
        exhaustive!(|g, a, b| vec![g.less(a, b, FALSE)], |x, y| u64::from(x < y));
        exhaustive!(|g, a, b| vec![g.less(a, b, TRUE)], |x, y| u64::from(x <= y));
        exhaustive!(
            |g, a, b| vec![g.less_signed(a, b, FALSE)],
            |x, y| u64::from(((x as i64) << 60) < ((y as i64) << 60))
        );
    }
}
