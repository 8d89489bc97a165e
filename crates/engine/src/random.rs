//! A small pseudo-random generator; the seed determines all numbers.

use everett_linux::split_mix;

/// The SplitMix64 generator.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Creates the generator with this seed.
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// Returns the next number.
    pub fn next_u64(&mut self) -> u64 {
        split_mix(&mut self.state)
    }

    /// Returns a number in `0.0 .. 1.0`.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}
