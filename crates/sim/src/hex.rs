//! Serialises bytes as hexadecimal digits, which are short and
//! readable. For `#[serde(with = "...")]`.

use serde::{Deserialize, Deserializer, Serializer, de::Error};

/// Writes bytes as digits.
pub fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = vec![0; bytes.len() * 2];
    for (digits, byte) in text.chunks_exact_mut(2).zip(bytes) {
        digits[0] = DIGITS[usize::from(byte >> 4)];
        digits[1] = DIGITS[usize::from(byte & 15)];
    }
    // Digits are text.
    to.serialize_str(&String::from_utf8(text).unwrap_or_default())
}

/// Reads bytes from digits.
pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(from)?;
    if text.len() % 2 != 0 || !text.is_ascii() {
        return Err(D::Error::custom(
            "bytes are written as pairs of hexadecimal digits",
        ));
    }
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).map_err(D::Error::custom);
    (0..text.len()).step_by(2).map(byte).collect()
}
