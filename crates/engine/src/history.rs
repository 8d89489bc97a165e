//! The digest of a state's history: its forks and what it received. States of a host with equal
//! history and path condition behave the same, so SDS merges them.

use everett_expr::Digest128;
use serde::{Deserialize, Serialize};
use std::hash::{Hash, Hasher};

/// A digest of the history of a state of a world: its host, the sides of its forks, what it
/// received and when. The history and the path condition determine what a host does. The digest
/// depends on contents only, so it is the same on every run.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct HistoryDigest(#[serde(with = "digits")] u128);

impl HistoryDigest {
    /// Returns the digest of the history with one more event.
    pub fn then(self, event: &impl Hash) -> HistoryDigest {
        let mut hasher = EventHasher(Digest128::new().then_u128(self.0));
        event.hash(&mut hasher);
        HistoryDigest(hasher.0.finish())
    }
}

/// Serialises a digest as hexadecimal digits: not every JSON reader supports numbers that large.
pub(crate) mod digits {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(digest: &u128, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{digest:032x}"))
    }

    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<u128, D::Error> {
        u128::from_str_radix(&String::deserialize(from)?, 16).map_err(D::Error::custom)
    }
}

/// Hashes an event into a digest. Unlike the hashers of the standard library, it never changes.
struct EventHasher(Digest128);

impl Hasher for EventHasher {
    fn finish(&self) -> u64 {
        self.0.finish() as u64
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = self.0.then_bytes(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histories_are_the_same_on_every_run() {
        let start = HistoryDigest::default();
        let one = start.then(&1u64).then(&"this side");
        assert_eq!(one, start.then(&1u64).then(&"this side"));
        assert_ne!(one, start.then(&"this side").then(&1u64));
        assert_ne!(one, start.then(&1u64).then(&"the other side"));
        assert_eq!(one.0, EXPECTED);
    }

    /// A value that must never change, because checkpoints contain such digests.
    const EXPECTED: u128 = 183_726_881_022_231_805_991_772_727_860_436_597_944;
}
