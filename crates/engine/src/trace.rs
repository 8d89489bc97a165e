//! Traces: the inputs and choices that determine a path. A test, a finding, a spilled state
//! and a unit of work are all traces.

use everett_vm::ChoiceSite;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use crate::source::SourceFrame;
use everett_sim::SharedList;

/// Values for one symbolic input.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TraceInput {
    /// The name of the input.
    #[serde(with = "shared_text")]
    pub name: Arc<str>,
    /// The bytes of the input.
    #[serde(with = "everett_sim::hex")]
    pub bytes: Vec<u8>,
}

/// An answer of a live peer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TraceAnswer {
    /// The digest of all earlier events, which identifies the question.
    #[serde(with = "crate::history::digits")]
    pub question: u128,
    /// The encoded answer.
    #[serde(with = "shared_bytes")]
    pub bytes: Arc<[u8]>,
}

/// A choice that is not data.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TraceChoice {
    /// The site of the choice, which says what was chosen.
    #[serde(with = "site_text")]
    pub site: ChoiceSite,
    /// Number of alternatives.
    pub alternatives: u32,
    /// The alternative that was picked.
    pub picked: u32,
}

impl TraceChoice {
    /// Describes the picked alternative, for people.
    pub fn describe(&self) -> String {
        self.site.describe(self.picked, self.alternatives)
    }
}

/// A point between two system calls of a native thread at which another thread could run.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NativePoint {
    /// The process that ran.
    pub pid: u32,
    /// The thread that ran.
    pub tid: u32,
    /// The address of the instruction that it was about to execute, in the file of the first
    /// program.
    pub address: u64,
    /// How often the thread had been there before.
    pub passed: u64,
    /// Whether the thread has read but not yet written, at an instruction that reads and writes
    /// memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub halfway: bool,
}

/// The position of a state that has not ended.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Pending {
    /// The number of questions that were answered.
    pub answered: u64,
    /// Values of the next question that other states have taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<u64>,
    /// The weight of the state, as the number of halvings of 1.
    pub halvings: u32,
    /// The number of forks on the path.
    pub depth: u32,
    /// The number of instructions that are already counted, also those after the last question.
    #[serde(default)]
    pub instructions: u64,
    /// The number of bytes of standard output and standard error that the listener has heard of.
    #[serde(default, skip_serializing_if = "nothing_printed")]
    pub printed: [u64; 2],
    /// The number of notes of the program (`klee_warning`) that the listener has heard of.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub notes: u64,
    /// The numbers of the seeds that take this way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<u32>,
    /// Where paths were merged into the state: for each region, the number of questions that were
    /// answered when the program opened it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merges: Vec<u64>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn nothing_printed(printed: &[u64; 2]) -> bool {
    *printed == [0; 2]
}

/// How the path of a trace ended, to compare it when the trace is followed again.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TraceEnd {
    /// The exit status of the program, if it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// The signal that ended the program, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The kind of the finding that the path ended in, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
    /// Whether all threads were blocked on events from outside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idle: bool,
    /// Whether the host was powered off for good.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub off: bool,
    /// The stack at the end, innermost frame first, if the path ended in a finding.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<SourceFrame>,
    /// The stack of the other thread of a data race, innermost frame first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub races_with: Vec<SourceFrame>,
    /// Digests of standard output and standard error.
    pub output: [String; 2],
}

/// Describes an input: its name and its size.
pub fn input_of(name: &str, bytes: usize) -> String {
    let unit = if bytes == 1 { "byte" } else { "bytes" };
    format!("input {name} of {bytes} {unit}")
}

/// Returns whether an input in a trace was requested by this name. In traces, a name that was used
/// before has a number appended.
pub fn is_named(in_trace: &str, asked: &str) -> bool {
    match in_trace.strip_prefix(asked) {
        Some("") => true,
        Some(rest) => rest.strip_prefix('_').is_some_and(|digits| {
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        }),
        None => false,
    }
}

/// Returns the length and FNV-1a digest of bytes: enough to detect differences, and short enough
/// for every test.
pub fn digest(bytes: &[u8]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    format!("{}:{hash:016x}", bytes.len())
}

/// The inputs and choices that determine a path.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Trace {
    /// The values of the symbolic inputs, in the order in which they were made.
    pub inputs: SharedList<TraceInput>,
    /// Choices, in order.
    #[serde(default, skip_serializing_if = "SharedList::is_empty")]
    pub choices: SharedList<TraceChoice>,
    /// The answers of the live peer that this host represents, in order.
    #[serde(default, skip_serializing_if = "SharedList::is_empty")]
    pub answers: SharedList<TraceAnswer>,
    /// Points between system calls at which a native run chose a thread, in order. Only traces of
    /// native runs have them, because bitcode has other instructions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub native_points: Vec<NativePoint>,
    /// The position of a state that has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Pending>,
    /// How the path ended, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<TraceEnd>,
}

/// Serialises names, which all traces of a path's inputs share.
mod shared_text {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::sync::Arc;

    pub fn serialize<S: Serializer>(text: &Arc<str>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(text)
    }

    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Arc<str>, D::Error> {
        Ok(String::deserialize(from)?.into())
    }
}

/// Serialises shared bytes as hexadecimal digits.
mod shared_bytes {
    use serde::{Deserializer, Serializer};
    use std::sync::Arc;

    pub fn serialize<S: Serializer>(bytes: &Arc<[u8]>, to: S) -> Result<S::Ok, S::Error> {
        everett_sim::hex::serialize(bytes, to)
    }

    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Arc<[u8]>, D::Error> {
        Ok(everett_sim::hex::deserialize(from)?.into())
    }
}

impl Trace {
    /// Returns the answer to a question; the answer at index `next` is tried first.
    pub fn answer(&self, question: u128, next: usize) -> Option<&Arc<[u8]>> {
        let is_it = |answer: &&TraceAnswer| answer.question == question;
        let expected = self.answers.get(next).filter(is_it);
        let found = expected.or_else(|| self.answers.iter().find(is_it));
        found.map(|answer| &answer.bytes)
    }
}

/// Serialises choice sites as their text.
mod site_text {
    use everett_vm::ChoiceSite;
    use serde::de::{Deserializer, Error, Visitor};
    use serde::ser::Serializer;

    pub fn serialize<S: Serializer>(site: &ChoiceSite, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(site)
    }

    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<ChoiceSite, D::Error> {
        from.deserialize_str(Text)
    }

    /// Parses the text without copying it: states are read from disk by the thousand.
    struct Text;

    impl Visitor<'_> for Text {
        type Value = ChoiceSite;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("the text of a choice site")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<ChoiceSite, E> {
            text.parse().map_err(E::custom)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_written_as_text() {
        let choice = TraceChoice {
            site: ChoiceSite::CallFault {
                call: "read".into(),
                failures: ["EIO", "EINTR"].into_iter().collect(),
            },
            alternatives: 3,
            picked: 2,
        };
        let text = r#"{"site":"fault:read:EIO,EINTR","alternatives":3,"picked":2}"#;
        assert_eq!(serde_json::to_string(&choice).unwrap(), text);
        assert_eq!(serde_json::from_str::<TraceChoice>(text).unwrap(), choice);
        assert_eq!(choice.describe(), "read fails: EINTR");
    }

    #[test]
    fn unknown_choices_are_refused() {
        let text = r#"{"site":"weather","alternatives":3,"picked":2}"#;
        let error = serde_json::from_str::<TraceChoice>(text).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("\"weather\" is not a choice"), "{message}");
    }
}
