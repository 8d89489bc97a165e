//! Digests by content: of terms, and of any data that is fed to a [`Digest128`]. They depend on no
//! id, address or random seed, so they are the same in every arena, on every run and on every
//! machine. They are not cryptographic, because the input is not adversarial.

use crate::node::ArrayInfo;

const START_64: u64 = 0x2545_f491_4f6c_dd1d;
const FACTOR_64: u64 = 0x9e37_79b9_7f4a_7c15;
const LAST_FACTOR_64: u64 = 0xbf58_476d_1ce4_e5b9;
const START_128: u128 = 0x243f_6a88_85a3_08d3_1319_8a2e_0370_7344;
const FACTOR_128: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;

/// A digest of 128 bits of a sequence of words and bytes, for histories of states.
///
/// The value is stable: the same calls give the same digest on every run, machine and
/// version of the compiler. Sequences that differ in one word never collide; all others do
/// with the chance of random numbers.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Digest128(u128);

impl Default for Digest128 {
    fn default() -> Self {
        Self::new()
    }
}

impl Digest128 {
    /// Creates the digest of an empty sequence.
    pub const fn new() -> Digest128 {
        Digest128(START_128)
    }

    /// Appends a number.
    #[must_use]
    #[inline]
    pub const fn then_u64(self, word: u64) -> Digest128 {
        // For a fixed word, this permutes the states, so different states stay different.
        let mixed = (self.0 ^ word as u128).wrapping_mul(FACTOR_128);
        Digest128(mixed ^ mixed >> 64)
    }

    /// Appends a number of 128 bits, such as another digest.
    #[must_use]
    pub const fn then_u128(self, word: u128) -> Digest128 {
        self.then_u64(word as u64).then_u64((word >> 64) as u64)
    }

    /// Appends the number of bytes and then the bytes, so that `ab`, `c` differs from `a`, `bc`. An
    /// empty slice is the same as the number zero.
    #[must_use]
    pub fn then_bytes(self, bytes: &[u8]) -> Digest128 {
        let (words, rest) = bytes.as_chunks::<8>();
        let start = self.then_u64(bytes.len() as u64);
        let digest = words.iter().fold(start, |digest, word| {
            digest.then_u64(u64::from_le_bytes(*word))
        });
        match rest {
            [] => digest,
            rest => {
                let mut last = [0; 8];
                last[..rest.len()].copy_from_slice(rest);
                digest.then_u64(u64::from_le_bytes(last))
            }
        }
    }

    /// Returns the digest of the whole sequence.
    pub const fn finish(self) -> u128 {
        // Twice, so that the last word reaches all bits.
        self.then_u64(0).then_u64(0).0
    }
}

/// Properties of a term that depend on its content only, not on its id.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Content {
    /// A digest of the node and the width.
    pub(crate) digest: u64,
    /// The maximum nesting depth of operators, up to a limit.
    pub(crate) height: u8,
}

/// The height of constants, above all others, so that they go last among operands.
const CONSTANT_HEIGHT: u8 = u8::MAX;
const MAX_HEIGHT: u8 = u8::MAX - 1;

/// The content of a term while it is computed.
#[derive(Copy, Clone)]
pub(crate) struct Builder {
    pub(crate) state: u64,
    pub(crate) height: u8,
}

impl Builder {
    #[inline(always)]
    pub(crate) fn new(tag: u8, width: u32) -> Builder {
        let start = Builder {
            state: START_64,
            height: 0,
        };
        start.then(u64::from(tag) | u64::from(width) << 32)
    }

    #[inline(always)]
    pub(crate) fn then(self, word: u64) -> Builder {
        // For a fixed word, this permutes the states, so different states stay different.
        let mixed = (self.state ^ word).wrapping_mul(FACTOR_64);
        Builder {
            state: mixed ^ mixed >> 32,
            ..self
        }
    }

    #[inline(always)]
    pub(crate) fn then_operand(self, content: Content) -> Builder {
        // Constants do not count: their height wraps around to zero.
        let height = content.height.wrapping_add(1).min(MAX_HEIGHT);
        Builder {
            height: self.height.max(height),
            ..self.then(content.digest)
        }
    }

    #[inline(always)]
    pub(crate) fn finish(self) -> Content {
        let mixed = self.state.wrapping_mul(LAST_FACTOR_64);
        Content {
            digest: mixed ^ mixed >> 29,
            height: self.height,
        }
    }

    pub(crate) fn finish_constant(self) -> Content {
        Content {
            height: CONSTANT_HEIGHT,
            ..self.finish()
        }
    }
}

/// Returns the digest of an array: of its ordinal, name and size.
pub(crate) fn digest_of_array(info: &ArrayInfo) -> u64 {
    let numbers = u64::from(info.ordinal) << 32 | u64::from(info.size);
    let digest = Digest128::new().then_u64(numbers);
    digest.then_bytes(info.name.as_bytes()).finish() as u64
}

/// Maximum number of operands followed to find a symbolic byte of a term.
pub(crate) const MAX_STEPS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Arena;
    use crate::node::ExprId;
    use crate::node::{FloatFormat, FloatUnaryOp};

    /// Digests are stored in checkpoints and sent to other machines, so their values must not
    /// change.
    #[test]
    fn digests_are_what_they_always_were() {
        assert_eq!(
            Digest128::new().finish(),
            0xe578_066e_d490_91b8_f1a3_da5d_0859_896e
        );
        assert_eq!(
            Digest128::new().then_u64(1).finish(),
            0x845c_00b4_5202_3f59_96c9_76fa_54cc_8755
        );
        assert_eq!(
            Digest128::new().then_u128(1 << 64 | 2).finish(),
            0xad47_06d6_565c_917e_e75f_43a9_6ddf_4eb0
        );
        assert_eq!(
            Digest128::new().then_bytes(b"").finish(),
            0x5619_5e87_9c8e_6ecf_8731_5b41_8357_d069
        );
        assert_eq!(
            Digest128::new().then_bytes(b"nine bytes").finish(),
            0x2433_e8fb_6281_dae6_7c18_03b2_b7ea_c717
        );
    }

    #[test]
    fn digests_tell_sequences_apart() {
        let pieces = |pieces: &[&[u8]]| {
            let digest = pieces
                .iter()
                .fold(Digest128::new(), |digest, piece| digest.then_bytes(piece));
            digest.finish()
        };
        let mut digests = vec![
            pieces(&[]),
            pieces(&[b""]),
            pieces(&[b"", b""]),
            pieces(&[b"ab", b"c"]),
            pieces(&[b"a", b"bc"]),
            pieces(&[b"abc"]),
            pieces(&[b"abc\0"]),
            pieces(&[b"abcdefgh"]),
            pieces(&[b"abcdefgh\0"]),
            Digest128::new().then_u64(1).finish(),
            Digest128::new().then_u64(1).then_u64(0).finish(),
        ];
        let count = digests.len();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), count);
        let differing = digests
            .windows(2)
            .map(|pair| (pair[0] ^ pair[1]).count_ones());
        // Sorted neighbours share high bits, but about half of all bits differ.
        assert!(differing.min().is_some_and(|bits| bits > 32));
    }

    #[test]
    fn terms_have_the_digests_that_they_always_had() {
        let mut arena = Arena::new();
        // Ids differ from those of an arena with nothing else.
        let other = arena.array(9, "other", 9);
        for index in 0..9 {
            arena.read(other, index);
        }
        let array = arena.array(3, "input", 16);
        let bytes: Vec<ExprId> = (0..10).map(|index| arena.read(array, index)).collect();
        let word = arena.concat_bytes(&bytes[..4]);
        let limit = arena.constant(32, 77);
        let sum = arena.add(word, limit);
        let wide = arena.constant_u128(80, 1 << 70 | 5);
        let float = arena.concat_bytes(&bytes);
        let root = arena.float_unary(FloatUnaryOp::Sqrt, FloatFormat::X87, float);
        let digests = [bytes[0], word, limit, sum, wide, root].map(|e| arena.digest(e));
        assert_eq!(
            digests,
            [
                0x5ddc_552f_86e1_0e01,
                0x65f8_8ffe_475a_b79e,
                0x37b1_c81f_3e4d_666b,
                0x5bc6_bd95_6f8a_1471,
                0x2195_4a02_b5fc_8830,
                0xfde6_5e5c_b736_0920
            ]
        );
    }

    #[test]
    fn arrays_are_told_apart_by_ordinal_name_and_size() {
        let mut arena = Arena::new();
        let arrays = [(0, "a", 8), (1, "a", 8), (0, "b", 8), (0, "a", 9)];
        let bytes = arrays.map(|(ordinal, name, size)| {
            let array = arena.array(ordinal, name, size);
            arena.read(array, 3)
        });
        let mut digests: Vec<u64> = bytes.iter().map(|&e| arena.digest(e)).collect();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), arrays.len());
    }

    #[test]
    fn digests_survive_sweeping() {
        let mut arena = Arena::new();
        let array = arena.array(0, "input", 64);
        let byte = arena.read(array, 1);
        let sum = arena.add(byte, byte);
        let before = arena.digest(sum);
        let swept = arena.read(array, 2);
        let swept_digest = arena.digest(swept);
        arena.sweep([sum].into_iter());
        let reused = (3..64).map(|index| arena.read(array, index));
        let reused = reused.into_iter().find(|&e| e == swept);
        let reused = reused.expect("ids are reused");
        assert_ne!(arena.digest(reused), swept_digest);
        let again = arena.read(array, 2);
        assert_eq!(
            (arena.digest(sum), arena.digest(again)),
            (before, swept_digest)
        );
    }

    #[test]
    fn growing_sums_begin_with_the_sum_before() {
        let mut arena = Arena::new();
        let array = arena.array(0, "input", 8);
        let mut sum = arena.zero(32);
        for index in 0..8 {
            let byte = arena.read(array, index);
            let word = arena.zext(byte, 32);
            sum = arena.add(sum, word);
        }
        // A byte, its word and a sum each, but for the first sum.
        let expected = 8 + 8 + 7 + 1;
        assert_eq!(arena.node_count(), expected);
    }
}
