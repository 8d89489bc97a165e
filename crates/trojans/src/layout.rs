//! The fields of a message, and which of its bytes are masked.

use serde::{Deserialize, Serialize};

/// A field of a message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Where it begins.
    pub offset: u32,
    /// Bytes that it has; `None` for all up to the end of the message.
    pub size: Option<u32>,
    /// It is a number with its least significant byte first.
    pub little_endian: bool,
    /// The field whose length it says.
    pub length_of: Option<String>,
    /// It is a string, which ends at its first NUL.
    #[serde(default)]
    pub is_string: bool,
    /// Whether clients and server may differ in it.
    pub masked: bool,
}

impl Field {
    /// The bytes of the field in a message of a length.
    pub fn range(&self, length: u32) -> std::ops::Range<usize> {
        let from = self.offset.min(length);
        let to = match self.size {
            Some(size) => self.offset.saturating_add(size).min(length),
            None => length,
        };
        from as usize..to as usize
    }

    /// Its value in a message, if it is short enough for a number.
    pub fn number(&self, message: &[u8]) -> Option<u64> {
        let bytes = &message[self.range(message.len() as u32)];
        if bytes.is_empty() || bytes.len() > 8 {
            return None;
        }
        let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        Some(match self.little_endian {
            true => bytes.iter().rev().fold(0, join),
            false => bytes.iter().fold(0, join),
        })
    }
}

/// The fields of a message. Bytes of no field are fields of their own.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Layout {
    /// The fields that have names.
    pub fields: Vec<Field>,
}

impl Layout {
    /// Which bytes of a message of a length are masked.
    pub fn masked(&self, length: u32) -> Vec<bool> {
        let mut masked = vec![false; length as usize];
        for field in self.fields.iter().filter(|field| field.masked) {
            masked[field.range(length)].fill(true);
        }
        masked
    }

    /// All fields of a message of a length that are not masked: those
    /// with names, and bytes of no field.
    pub fn unmasked(&self, length: u32) -> Vec<(String, std::ops::Range<usize>)> {
        let mut all = Vec::new();
        let mut covered = vec![false; length as usize];
        for field in &self.fields {
            let range = field.range(length);
            covered[range.clone()].fill(true);
            if !field.masked && !range.is_empty() {
                all.push((field.name.clone(), range));
            }
        }
        for (at, _) in covered.iter().enumerate().filter(|(_, covered)| !**covered) {
            all.push((format!("byte {at}"), at..at + 1));
        }
        all.sort_by_key(|(_, range)| range.start);
        all
    }
}
