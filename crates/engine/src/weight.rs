//! The weight of a path in the search. The root weighs 1, and a fork halves the weight. The
//! finished, pending, unknown, pruned and excluded weights always sum to 1. Weights are powers of
//! two, so the sum is exact.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The weight `2^-halvings`.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct Weight {
    /// How often the weight of the root was halved.
    pub halvings: u32,
}

impl Weight {
    /// Returns the weight of each side of a fork.
    #[must_use]
    pub fn half(self) -> Weight {
        Weight {
            halvings: self.halvings + 1,
        }
    }
}

/// An exact sum of weights, at most 1.
#[derive(Clone, Eq, Debug, Default)]
pub struct WeightSum {
    /// The integer part.
    whole: bool,
    /// The bits after the binary point, 64 per word, most significant bit first.
    fraction: Vec<u64>,
}

impl PartialEq for WeightSum {
    fn eq(&self, other: &WeightSum) -> bool {
        let (short, long) = match self.fraction.len() <= other.fraction.len() {
            true => (&self.fraction, &other.fraction),
            false => (&other.fraction, &self.fraction),
        };
        // Carries leave zeros at the end.
        let rest = &long[short.len()..];
        let is_same = long.starts_with(short) && rest.iter().all(|word| *word == 0);
        self.whole == other.whole && is_same
    }
}

impl WeightSum {
    /// Adds a weight.
    pub fn add(&mut self, weight: Weight) {
        self.add_checked(weight);
    }

    /// Adds a weight. Returns `false` if the sum exceeds 1, which never happens in a correct
    /// search.
    pub fn add_checked(&mut self, weight: Weight) -> bool {
        let Some(position) = weight.halvings.checked_sub(1) else {
            let fits = self.is_zero();
            self.whole = true;
            return fits;
        };
        let mut word = position as usize / 64;
        if self.fraction.len() <= word {
            self.fraction.resize(word + 1, 0);
        }
        let (sum, mut carry) = self.fraction[word].overflowing_add(1 << (63 - position % 64));
        self.fraction[word] = sum;
        while carry {
            if word == 0 {
                let fits = !self.whole && self.fraction.iter().all(|word| *word == 0);
                self.whole = true;
                return fits;
            }
            word -= 1;
            (self.fraction[word], carry) = self.fraction[word].overflowing_add(1);
        }
        !self.whole
    }

    /// Adds another sum.
    pub fn add_sum(&mut self, other: &WeightSum) {
        self.add_sum_checked(other);
    }

    /// Adds another sum. Returns `false` if the sum exceeds 1.
    pub fn add_sum_checked(&mut self, other: &WeightSum) -> bool {
        let mut fits = true;
        for halvings in other.weights() {
            fits &= self.add_checked(Weight { halvings });
        }
        fits
    }

    /// Returns the weight of the whole search.
    pub fn one() -> WeightSum {
        WeightSum {
            whole: true,
            fraction: Vec::new(),
        }
    }

    /// Returns the exact product of two sums.
    #[must_use]
    pub fn times(&self, other: &WeightSum) -> WeightSum {
        let mut product = WeightSum::default();
        for halvings in self.weights() {
            for more in other.weights() {
                product.add(Weight {
                    halvings: halvings + more,
                });
            }
        }
        product
    }

    /// Returns the halvings of the weights that add up to the sum, each once.
    fn weights(&self) -> impl Iterator<Item = u32> + '_ {
        let bits = self.fraction.iter().zip(0u32..).flat_map(|(word, at)| {
            let set = (0..64).filter(move |bit| word >> (63 - bit) & 1 != 0);
            set.map(move |bit| at * 64 + bit + 1)
        });
        self.whole.then_some(0).into_iter().chain(bits)
    }

    /// Returns whether the sum is exactly 1.
    pub fn is_one(&self) -> bool {
        self.whole && self.fraction.iter().all(|word| *word == 0)
    }

    /// Returns whether the sum is exactly 0.
    pub fn is_zero(&self) -> bool {
        !self.whole && self.fraction.iter().all(|word| *word == 0)
    }

    /// Returns an approximation, for people.
    pub fn to_f64(&self) -> f64 {
        let mut sum = if self.whole { 1.0 } else { 0.0 };
        let mut scale = 1.0;
        for word in self.fraction.iter().take(2) {
            scale /= 18_446_744_073_709_551_616.0;
            sum += *word as f64 * scale;
        }
        sum
    }

    /// Returns the exact sum in hexadecimal digits, for checkpoints.
    pub fn to_hex(&self) -> String {
        let mut text = if self.whole { "1." } else { "0." }.to_owned();
        for word in &self.fraction {
            text.push_str(&format!("{word:016x}"));
        }
        text
    }

    /// Parses a sum in hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<WeightSum> {
        let (whole, digits) = text.split_once('.')?;
        let whole = match whole {
            "0" => false,
            "1" => true,
            _ => return None,
        };
        if digits.len() % 16 != 0 || !digits.is_ascii() {
            return None;
        }
        let word = |at| u64::from_str_radix(&digits[at..at + 16], 16).ok();
        let fraction = (0..digits.len())
            .step_by(16)
            .map(word)
            .collect::<Option<Vec<_>>>()?;
        Some(WeightSum { whole, fraction })
    }
}

impl Serialize for WeightSum {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.to_hex())
    }
}

impl<'d> Deserialize<'d> for WeightSum {
    fn deserialize<D: Deserializer<'d>>(from: D) -> Result<WeightSum, D::Error> {
        let text = String::deserialize(from)?;
        WeightSum::from_hex(&text).ok_or_else(|| D::Error::custom("a weight is not a number"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_sum_to_one_exactly() {
        let mut sum = WeightSum::default();
        for halvings in 1..=500 {
            sum.add(Weight { halvings });
            assert!(!sum.is_one());
        }
        sum.add(Weight { halvings: 500 });
        assert!(sum.is_one());
        assert_eq!(sum.to_f64(), 1.0);
    }

    #[test]
    fn more_than_one_is_noticed() {
        let half = Weight { halvings: 1 };
        let one = Weight { halvings: 0 };
        let mut sum = WeightSum::default();
        assert!(sum.add_checked(half) && sum.add_checked(half) && sum.is_one());
        assert_eq!(sum, WeightSum::one());
        for more in [half, one, Weight { halvings: 200 }] {
            assert!(!sum.clone().add_checked(more));
        }
        let mut sum = WeightSum::default();
        assert!(sum.add_checked(half) && !sum.clone().add_checked(one));
        assert!(sum.add_checked(Weight { halvings: 2 }) && !sum.add_checked(half));
    }

    #[test]
    fn text_keeps_the_sum() {
        let mut sum = WeightSum::default();
        for halvings in [1, 3, 64, 65, 130] {
            sum.add(Weight { halvings });
        }
        assert_eq!(WeightSum::from_hex(&sum.to_hex()), Some(sum.clone()));
        let mut twice = sum.clone();
        twice.add_sum(&WeightSum::default());
        assert_eq!(twice, sum);
        assert_eq!(WeightSum::from_hex("nonsense"), None);
    }
}
