//! The one currency: what made a path what it is. A test, a finding, a state put away and a unit of work are
//! all traces.

use serde::{Deserialize, Serialize};

/// Values for one symbolic input.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TraceInput {
    /// Its name.
    pub name: String,
    /// Its bytes.
    #[serde(with = "hex")]
    pub bytes: Vec<u8>,
}

/// A choice that is not data.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TraceChoice {
    /// What was chosen.
    pub site: String,
    /// Among how many.
    pub alternatives: u32,
    /// Which.
    pub picked: u32,
}

/// Where a state that is not at its end stands.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Pending {
    /// Questions that were answered.
    pub answered: u64,
    /// Values of the next question that other states have taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<u64>,
    /// Its weight is 1 halved this often.
    pub halvings: u32,
    /// Forks on the way.
    pub depth: u32,
}

/// What made a path what it is.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Trace {
    /// Values for the symbolic inputs, in the order of their making.
    pub inputs: Vec<TraceInput>,
    /// Choices, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<TraceChoice>,
    /// Where it stands, if it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Pending>,
}

/// Bytes as hexadecimal digits, which people can read and which are short.
mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        to.serialize_str(&text)
    }

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
}
