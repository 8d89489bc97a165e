//! Serialises bytes as hexadecimal digits, which are short and readable. For `#[serde(with =
//! "...")]`.

use serde::{Deserialize, Deserializer, Serializer, de::Error};

/// Serialises bytes as digits.
pub fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    let mut text = Vec::new();
    append(bytes, &mut text);
    // Digits are always valid text.
    to.serialize_str(&String::from_utf8(text).unwrap_or_default())
}

/// Appends the digits of bytes to a text.
pub fn append(bytes: &[u8], text: &mut Vec<u8>) {
    // There is no table, so that the compiler can vectorise the loop.
    let digit = |number: u8| number + b'0' + u8::from(number > 9) * (b'a' - b'9' - 1);
    let start = text.len();
    text.resize(start + bytes.len() * 2, 0);
    for (digits, byte) in text[start..].chunks_exact_mut(2).zip(bytes) {
        digits[0] = digit(byte >> 4);
        digits[1] = digit(byte & 15);
    }
}

/// Deserialises bytes from digits.
pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(from)?;
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let bytes = pairs.iter().map(|[high, low]| {
        let byte = digit(*high)? << 4 | digit(*low)?;
        Some(byte as u8)
    });
    let bytes: Option<Vec<u8>> = bytes.collect();
    bytes
        .filter(|_| rest.is_empty())
        .ok_or_else(|| D::Error::custom("bytes are written as pairs of hexadecimal digits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_have_their_digits() {
        let bytes: Vec<u8> = (0..=255).collect();
        let mut text = b"x".to_vec();
        append(&bytes, &mut text);
        let expected: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(String::from_utf8(text), Ok(format!("x{expected}")));
    }
}
