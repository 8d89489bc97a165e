//! The summary of an analysis, written as `summary.json`.

use everett_trojans::Kept;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The figures of a client.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ClientFigures {
    /// Its name.
    pub name: String,
    /// The number of paths on which it was explored, with those of the server that answers it.
    #[serde(default)]
    pub paths: u64,
    /// The number of messages over all paths.
    pub messages: u64,
    /// The number of distinct messages, as terms over the inputs.
    pub predicates: usize,
    /// Whether all of its paths were explored.
    pub explored: bool,
    /// Why not, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_off: Option<String>,
    /// The factor of the limits with which it was explored further, because there were classes
    /// while clients were cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raised: Option<u64>,
    /// How many of the distinct messages were found only with inputs pinned to what may give
    /// messages of a class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<usize>,
    /// Environment values of which only one was tried, and on which its messages depend.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
}

impl ClientFigures {
    /// Returns whether all messages that it can send are known.
    pub(super) fn is_known(&self) -> bool {
        self.explored && self.depends_on.is_empty()
    }
}

/// The figures of the server with messages of one length.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LengthFigures {
    /// The length.
    pub length: u32,
    /// The client that the message comes from.
    pub sender: String,
    /// The virtual time at which it is sent, if the world runs before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_ns: Option<u64>,
    /// The number of distinct client predicates of this length.
    pub predicates: usize,
    /// How many of them have inputs that could not be eliminated.
    pub open: usize,
    /// The number of accepting paths.
    pub accepting: u64,
    /// The number of rejecting paths.
    pub rejecting: u64,
    /// The number of states that were pruned because no Trojan message reaches them.
    pub pruned: u64,
    /// Whether all other paths were explored.
    pub explored: bool,
    /// Why not, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_off: Option<String>,
}

impl LengthFigures {
    /// Notes why states of the server may be missing, if so.
    pub(super) fn is_cut_off_by(&mut self, why: Option<&String>) {
        if let Some(why) = why {
            self.explored = false;
            self.cut_off.get_or_insert(why.clone());
        }
    }
}

/// Seconds that each phase took.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TrojanPhases {
    /// The exploration of the clients.
    pub clients: f64,
    /// The exploration of the server and the comparison.
    pub server: f64,
    /// The exploration of the server after it has accepted messages.
    #[serde(default)]
    pub afterwards: f64,
    /// The runs of native clients with random inputs.
    #[serde(default)]
    pub native_runs: f64,
    /// The confirmation with the native server.
    pub confirmation: f64,
    /// For each class, the seconds of server exploration before it was found.
    #[serde(default)]
    pub found: Vec<f64>,
}

/// How many client predicates server paths still had to be compared with.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeptFigures {
    /// The number of conditions of the paths.
    pub conditions: usize,
    /// The number of paths, including unfinished ones.
    pub paths: u64,
    /// The sum of the predicates of these paths.
    pub predicates: u64,
    /// The maximum of one path.
    pub most: usize,
}

/// The result of random runs of the native clients.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NativeRuns {
    /// The number of runs.
    pub runs: u64,
    /// The number of messages that count.
    pub messages: u64,
    /// The number of distinct messages.
    pub different: usize,
    /// Messages that no client sends according to the analysis.
    pub contradictions: Vec<Contradiction>,
    /// Why there were fewer runs than requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A message that a native client has sent although the analysis says that none does.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Contradiction {
    /// The name of the client.
    pub client: String,
    /// The message, in hexadecimal digits.
    pub message: String,
    /// The numbers of the classes that it belongs to.
    pub trojans: Vec<usize>,
}

/// A field of a message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TrojanField {
    /// The name.
    pub name: String,
    /// The offset of its first byte.
    pub offset: usize,
    /// Its bytes, in hexadecimal digits.
    pub bytes: String,
    /// The value as a number, if it fits one.
    pub value: Option<u64>,
    /// Whether the comparison with client messages ignores it.
    pub masked: bool,
}

/// The client message that is nearest to an example.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Nearest {
    /// The name of the client.
    pub client: String,
    /// The message, in hexadecimal digits.
    pub message: String,
    /// The fields in which it differs.
    pub differs: Vec<String>,
}

/// A class of messages that the server accepts and no client sends.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TrojanEntry {
    /// The number of the class, from 1.
    pub number: usize,
    /// The folder, relative to that of the results.
    pub dir: String,
    /// The length of the messages in bytes.
    pub length: u32,
    /// The clients from which the server accepts the messages.
    pub senders: Vec<String>,
    /// The virtual time at which the example is sent, if the world runs before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_ns: Option<u64>,
    /// An example message, in hexadecimal digits.
    pub example: String,
    /// The constraint that all messages of the class satisfy.
    pub constraint: String,
    /// The fields of the example.
    pub fields: Vec<TrojanField>,
    /// How the search showed that no client sends it: `exact` or `refined`.
    pub how: String,
    /// Whether all paths of the clients were explored.
    pub certain: bool,
    /// The result of sending the example to the native server.
    pub confirmed: String,
    /// Why the path accepts: `reply`, `call NAME`, `mark`, or a finding.
    pub why: String,
    /// The source file in which the server accepts.
    pub file: String,
    /// The line in the file.
    pub line: u32,
    /// The function.
    pub function: String,
    /// The group of the class.
    pub group: String,
    /// The nearest message that a client sends.
    pub nearest: Option<Nearest>,
    /// What the server would have to check, in terms of fields.
    pub fix_hint: String,
}

/// A finding that messages of classes reach, possibly after the server has accepted them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TrojanFinding {
    /// The number of the finding, from 1.
    pub number: usize,
    /// The folder, relative to that of the results.
    pub dir: String,
    /// The description.
    pub what: String,
    /// The source file of the finding.
    pub file: String,
    /// The line in the file.
    pub line: u32,
    /// The function.
    pub function: String,
    /// An example message that reaches it, in hexadecimal digits.
    pub example: String,
    /// The client that sends the example.
    pub sender: String,
    /// The numbers of the classes that contain the example.
    pub trojans: Vec<usize>,
    /// Whether it happens after the server has accepted the message.
    pub afterwards: bool,
    /// Whether no client message leads to it; `None` if that is not known.
    pub only: Option<bool>,
    /// The result of sending the example to the native server.
    pub confirmed: String,
}

/// Classes that differ from client messages in the same way.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TrojanGroup {
    /// The difference.
    pub name: String,
    /// The number of classes.
    pub classes: usize,
    /// The numbers of the classes.
    pub trojans: Vec<usize>,
}

/// The summary of an analysis.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TrojansSummary {
    /// Whether clients and server were explored completely, and nothing is undecided: there are no
    /// other Trojan messages.
    pub complete: bool,
    /// The name of the server.
    pub server: String,
    /// The figures of the clients.
    pub clients: Vec<ClientFigures>,
    /// The figures of the server, by the length of messages.
    pub lengths: Vec<LengthFigures>,
    /// Client predicates that server paths had to be compared with, by the number of conditions of
    /// the path.
    #[serde(default)]
    pub kept: Vec<KeptFigures>,
    /// Seconds of each phase.
    pub phases: TrojanPhases,
    /// The result of random runs of the native clients.
    #[serde(default)]
    pub native_runs: NativeRuns,
    /// The classes.
    pub trojans: Vec<TrojanEntry>,
    /// The groups of classes.
    pub groups: Vec<TrojanGroup>,
    /// Findings that messages of the classes reach.
    #[serde(default)]
    pub findings: Vec<TrojanFinding>,
    /// Why the exploration of the server after acceptance is incomplete, if it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub afterwards_cut_off: Vec<String>,
    /// Accepting paths that may have Trojan messages, and why that is undecided.
    pub undecided: Vec<String>,
}

impl TrojansSummary {
    /// Returns whether all messages that clients can send are known.
    pub(super) fn is_certain(&self) -> bool {
        let is_refuted = !self.native_runs.contradictions.is_empty();
        !is_refuted && self.clients.iter().all(ClientFigures::is_known)
    }

    pub(super) fn note_kept(&mut self, kept: &BTreeMap<usize, Kept>) {
        for (conditions, more) in kept {
            let found = self
                .kept
                .binary_search_by_key(conditions, |of| of.conditions);
            let at = found.unwrap_or_else(|at| {
                let none = KeptFigures {
                    conditions: *conditions,
                    paths: 0,
                    predicates: 0,
                    most: 0,
                };
                self.kept.insert(at, none);
                at
            });
            let of = &mut self.kept[at];
            of.paths += more.paths;
            of.predicates += more.predicates;
            of.most = of.most.max(more.most);
        }
    }

    pub(super) fn note_length(&mut self, figures: LengthFigures) {
        self.complete &= figures.explored;
        self.lengths.push(figures);
    }

    /// Puts the classes into groups.
    pub(super) fn group(&mut self) {
        let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for entry in &self.trojans {
            groups.entry(&entry.group).or_default().push(entry.number);
        }
        let groups = groups.into_iter().map(|(name, trojans)| TrojanGroup {
            name: name.to_owned(),
            classes: trojans.len(),
            trojans,
        });
        self.groups = groups.collect();
    }
}

#[cfg(test)]
mod tests {
    use crate::conclusion::Conclusion;
    use crate::trojans::TrojansResult;
    use serde_json::json;

    fn result(certain: &[bool], undecided: &[&str], is_interrupted: bool) -> TrojansResult {
        let classes = certain.iter().map(|certain| {
            json!({
                "number": 1, "dir": "", "length": 1, "senders": [], "example": "", "constraint": "",
                "fields": [], "how": "exact", "certain": certain, "confirmed": "", "why": "reply",
                "file": "", "line": 1, "function": "", "group": "", "nearest": null, "fix_hint": "",
            })
        });
        let summary = json!({
            "complete": false, "server": "", "clients": [], "lengths": [], "groups": [],
            "phases": {"clients": 0.0, "server": 0.0, "confirmation": 0.0},
            "trojans": classes.collect::<Vec<_>>(), "undecided": undecided,
        });
        TrojansResult {
            folder: std::path::PathBuf::new(),
            summary: serde_json::from_value(summary).expect("a summary"),
            is_interrupted,
        }
    }

    #[test]
    fn what_is_found_counts_before_an_interrupt_if_it_is_certain() {
        let cases: [(&[bool], &[&str], bool, Conclusion); 7] = [
            (&[], &[], false, Conclusion::Clean),
            (&[false], &["a path"], false, Conclusion::Findings),
            (&[], &["a path"], false, Conclusion::Failed),
            (&[], &[], true, Conclusion::Interrupted),
            (&[false], &[], true, Conclusion::Interrupted),
            (&[], &["a path"], true, Conclusion::Interrupted),
            (&[false, true], &[], true, Conclusion::Findings),
        ];
        for (certain, undecided, is_interrupted, expected) in cases {
            let result = result(certain, undecided, is_interrupted);
            assert_eq!(result.conclusion(), expected, "{certain:?} {undecided:?}");
        }
    }
}
