//! Names of objects: the SHA-256 of their bytes.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use std::fmt;

/// SHA-256 of some bytes.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash([u8; 32]);

impl Hash {
    /// Returns the hash of bytes.
    pub fn of(bytes: &[u8]) -> Hash {
        Hash(Sha256::digest(bytes).into())
    }

    /// Returns the hash of several parts, each preceded by its length.
    pub fn of_parts(parts: &[&[u8]]) -> Hash {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Hash(hasher.finalize().into())
    }

    /// Parses 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Hash> {
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
        }
        Some(Hash(bytes))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'d> Deserialize<'d> for Hash {
    fn deserialize<D: Deserializer<'d>>(from: D) -> Result<Hash, D::Error> {
        let text = String::deserialize(from)?;
        Hash::parse(&text).ok_or_else(|| D::Error::custom("a hash has 64 hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_sha_256_and_survives_its_text() {
        let hash = Hash::of(b"abc");
        let text = hash.to_string();
        assert!(text.starts_with("ba7816bf8f01cfea") && text.ends_with("f20015ad"));
        assert_eq!(Hash::parse(&text), Some(hash));
        assert_eq!(Hash::parse(&text[1..]), None);
        assert_eq!(Hash::parse(&"é".repeat(32)), None);
        assert_ne!(
            Hash::of_parts(&[b"ab", b"c"]),
            Hash::of_parts(&[b"a", b"bc"])
        );
    }
}
