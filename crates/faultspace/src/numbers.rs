//! The random number generator of a search; the seed determines all numbers.

/// A generator of pseudorandom numbers (SplitMix64).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// Creates the generator of a seed.
    pub fn new(seed: u64) -> Numbers {
        Numbers(seed)
    }

    /// Returns the next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        // The bias of the multiplication is below 2^-32 for all spaces that can be searched.
        ((u128::from(self.next_u64()) * u128::from(end)) >> 64) as u64
    }

    /// Returns a number from 0 (included) to 1 (excluded).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a number of the normal distribution with mean 0 and deviation 1.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Returns an index, with probabilities proportional to weights. `None` if they sum to 0.
    pub fn weighted(&mut self, weights: impl Iterator<Item = f64> + Clone) -> Option<usize> {
        let total: f64 = weights.clone().sum();
        if total.is_nan() || total <= 0.0 {
            return None;
        }
        let mut rest = self.unit() * total;
        let mut last = None;
        for (at, weight) in weights.enumerate().filter(|(_, weight)| *weight > 0.0) {
            last = Some(at);
            if rest < weight {
                break;
            }
            rest -= weight;
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_distribution_that_they_should() {
        let mut numbers = Numbers::new(1);
        let draws: Vec<f64> = (0..20_000).map(|_| numbers.normal()).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!(
            mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05,
            "{mean} {variance}"
        );
        let mut counts = [0; 3];
        for _ in 0..3000 {
            counts[numbers.weighted([1.0, 0.0, 2.0].into_iter()).unwrap()] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!((900..1100).contains(&counts[0]), "{counts:?}");
        assert_eq!(numbers.weighted([0.0].into_iter()), None);
    }
}
