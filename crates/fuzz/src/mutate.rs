//! Mutations: single bits, bytes, numbers, truncation, splicing, and bits of whole records if the
//! format is known.

use std::collections::BTreeMap;

/// A random generator, deterministic in its seed.
pub struct Random(everett_engine::Random);

impl Random {
    /// Creates a generator with this seed.
    pub fn new(seed: u64) -> Random {
        Random(everett_engine::Random::new(seed))
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below a limit, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.number() % limit as u64) as usize
    }
}

/// Bit ranges of an input that belong together, by kind.
pub type Spans = BTreeMap<(u32, u32), Vec<(u64, u64)>>;

struct Seed {
    bytes: Vec<u8>,
    /// By kind of record, so that rare ones are mutated as often as common ones.
    spans: Vec<Vec<(u64, u64)>>,
}

/// Generates mutated inputs from seeds.
pub struct Mutator {
    random: Random,
    seeds: Vec<Seed>,
}

impl Mutator {
    /// Creates a mutator for these seeds; `spans` finds their records.
    pub fn new(seed: u64, seeds: &[Vec<u8>], spans: fn(&[u8]) -> Spans) -> Mutator {
        let seeds = seeds.iter().map(|bytes| Seed {
            bytes: bytes.clone(),
            spans: spans(bytes).into_values().collect(),
        });
        Mutator {
            random: Random::new(seed),
            seeds: seeds.collect(),
        }
    }

    /// The next input.
    pub fn input(&mut self) -> Vec<u8> {
        if self.seeds.is_empty() {
            let length = self.random.below(64);
            return (0..length).map(|_| self.random.number() as u8).collect();
        }
        let which = self.random.below(self.seeds.len());
        let mut bytes = self.seeds[which].bytes.clone();
        for _ in 0..=self.random.below(4) {
            self.damage(which, &mut bytes);
        }
        bytes
    }

    fn damage(&mut self, which: usize, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            bytes.push(self.random.number() as u8);
            return;
        }
        match self.random.below(16) {
            0..=2 => {
                let bit = self.random.below(bytes.len() * 8) as u64;
                flip(bytes, bit);
            }
            3 => {
                let at = self.random.below(bytes.len());
                bytes[at] = self.random.number() as u8;
            }
            4 => self.write_number(bytes),
            5 => {
                let length = self.random.below(bytes.len() + 1);
                bytes.truncate(length);
            }
            6 => self.splice(bytes),
            7 => self.remove(bytes),
            8 => self.repeat(bytes),
            _ => self.damage_record(which, bytes),
        }
    }

    /// Numbers that are likely to break arithmetic.
    fn write_number(&mut self, bytes: &mut [u8]) {
        const NUMBERS: [u64; 8] = [
            0,
            1,
            0x7f,
            0xff,
            0x7fff_ffff,
            0xffff_ffff,
            1 << 63,
            u64::MAX,
        ];
        let number = NUMBERS[self.random.below(NUMBERS.len())];
        let at = self.random.below(bytes.len());
        let size = (1 << self.random.below(4)).min(bytes.len() - at);
        bytes[at..at + size].copy_from_slice(&number.to_le_bytes()[..size]);
    }

    /// Inserts a piece of any seed into the input.
    fn splice(&mut self, bytes: &mut Vec<u8>) {
        let other = self.random.below(self.seeds.len());
        let length = self.seeds[other].bytes.len();
        if length == 0 {
            return;
        }
        let from = self.random.below(length);
        let size = self.random.below((length - from).min(256)) + 1;
        let piece = self.seeds[other].bytes[from..from + size].to_vec();
        let at = self.random.below(bytes.len());
        let end = match self.random.below(2) {
            0 => at,
            _ => (at + size).min(bytes.len()),
        };
        bytes.splice(at..end, piece);
    }

    fn remove(&mut self, bytes: &mut Vec<u8>) {
        let at = self.random.below(bytes.len());
        let size = self.random.below((bytes.len() - at).min(64)) + 1;
        bytes.drain(at..at + size);
    }

    fn repeat(&mut self, bytes: &mut Vec<u8>) {
        let at = self.random.below(bytes.len());
        let size = self.random.below((bytes.len() - at).min(64)) + 1;
        let piece = bytes[at..at + size].to_vec();
        bytes.splice(at..at, piece);
    }

    /// Mutates the bits of one record, or overwrites it with another of its kind.
    fn damage_record(&mut self, which: usize, bytes: &mut [u8]) {
        let kinds = self.seeds[which].spans.len();
        if kinds == 0 {
            let bit = self.random.below(bytes.len() * 8) as u64;
            return flip(bytes, bit);
        }
        let kind = self.random.below(kinds);
        let count = self.seeds[which].spans[kind].len();
        let (start, end) = self.seeds[which].spans[kind][self.random.below(count)];
        let size = end - start;
        if end > bytes.len() as u64 * 8 || size == 0 {
            return;
        }
        if self.random.below(4) == 0 {
            let (from, until) = self.seeds[which].spans[kind][self.random.below(count)];
            for at in 0..size.min(until - from) {
                let bit = bit_of(&self.seeds[which].bytes, from + at);
                if bit != bit_of(bytes, start + at) {
                    flip(bytes, start + at);
                }
            }
            return;
        }
        for _ in 0..=self.random.below(3) {
            flip(bytes, start + self.random.number() % size);
        }
    }
}

fn flip(bytes: &mut [u8], bit: u64) {
    bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
}

fn bit_of(bytes: &[u8], bit: u64) -> bool {
    bytes[(bit / 8) as usize] >> (bit % 8) & 1 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_inputs_and_no_input_is_the_seed_for_long() {
        let seeds = [b"one seed".to_vec(), b"another, longer seed".to_vec()];
        let none = |_: &[u8]| Spans::new();
        let mut a = Mutator::new(5, &seeds, none);
        let mut b = Mutator::new(5, &seeds, none);
        let inputs: Vec<_> = (0..200).map(|_| a.input()).collect();
        assert!(inputs.iter().all(|input| *input == b.input()));
        let changed = inputs.iter().filter(|input| !seeds.contains(input));
        assert!(changed.count() > 150);
    }

    #[test]
    fn records_are_damaged_in_their_bits_only() {
        let seeds = [vec![0u8; 64]];
        let spans = |_: &[u8]| Spans::from([((1, 2), vec![(8, 13), (100, 101)])]);
        let mut mutator = Mutator::new(1, &seeds, spans);
        for _ in 0..500 {
            let mut bytes = seeds[0].clone();
            mutator.damage_record(0, &mut bytes);
            let outside = (0..64 * 8).filter(|bit| !(8..13).contains(bit) && *bit != 100);
            assert!(outside.into_iter().all(|bit| !bit_of(&bytes, bit)));
        }
    }
}
