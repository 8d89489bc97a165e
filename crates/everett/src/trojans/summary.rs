//! The summary of an analysis, written as `summary.json`.

use everett_trojans::Kept;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What was seen of a client.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ClientFigures {
    /// Its name.
    pub name: String,
    /// Paths that sent a message, each message counted.
    pub messages: u64,
    /// Different ones, as terms over the inputs.
    pub predicates: usize,
    /// All of its paths were explored.
    pub explored: bool,
    /// Why not, otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_off: Option<String>,
    /// It was explored further with limits so many times higher, because classes were found while
    /// clients were cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raised: Option<u64>,
    /// So many of the different messages were found only with its inputs pinned to what may give
    /// messages of a class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<usize>,
    /// Values that it does not choose, of which one each was tried, and
    /// which what it sends depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
}

impl ClientFigures {
    /// All that it can send is known.
    pub(super) fn is_known(&self) -> bool {
        self.explored && self.depends_on.is_empty()
    }
}

/// What was seen of the server with messages of one length.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LengthFigures {
    /// The length.
    pub length: u32,
    /// The client that the message comes from.
    pub sender: String,
    /// Different things that clients send in messages of this length.
    pub predicates: usize,
    /// Those among them whose inputs could not be eliminated.
    pub open: usize,
    /// Paths that accept.
    pub accepting: u64,
    /// Paths that reject.
    pub rejecting: u64,
    /// States that were pruned because no Trojan message reaches them.
    pub pruned: u64,
    /// All other paths were explored.
    pub explored: bool,
    /// Why not, otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_off: Option<String>,
}

/// Seconds that each phase took.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TrojanPhases {
    /// Exploring the clients.
    pub clients: f64,
    /// Exploring the server and comparing.
    pub server: f64,
    /// Exploring what the server does with messages after it has accepted them.
    #[serde(default)]
    pub afterwards: f64,
    /// Running the native clients with random inputs.
    #[serde(default)]
    pub native_runs: f64,
    /// Sending messages to the native server.
    pub confirmation: f64,
    /// After how many seconds with the server each class was found.
    #[serde(default)]
    pub found: Vec<f64>,
}

/// How many kinds of client messages paths of the server still had to be compared with.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeptFigures {
    /// How many conditions the paths have.
    pub conditions: usize,
    /// How many paths, also those that were not at their end.
    pub paths: u64,
    /// Kinds of messages of all of these paths together.
    pub predicates: u64,
    /// The most of one path.
    pub most: usize,
}

/// What random runs of the native clients showed.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NativeRuns {
    /// How many runs.
    pub runs: u64,
    /// How many messages were sent in them that count.
    pub messages: u64,
    /// How many different ones.
    pub different: usize,
    /// Messages that no client sends, as the analysis says.
    pub contradictions: Vec<Contradiction>,
    /// Why there were not as many runs as wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A message that a native client has sent although the analysis says that none does.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Contradiction {
    /// The client.
    pub client: String,
    /// The message, in hexadecimal digits.
    pub message: String,
    /// The numbers of the classes that it belongs to.
    pub trojans: Vec<usize>,
}

/// A field of a message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TrojanField {
    /// Its name.
    pub name: String,
    /// Where it begins.
    pub offset: usize,
    /// Its bytes, in hexadecimal digits.
    pub bytes: String,
    /// Its value as a number, if it is short enough.
    pub value: Option<u64>,
    /// Clients may differ in it.
    pub masked: bool,
}

/// The message of a client that is nearest to an example.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Nearest {
    /// The client.
    pub client: String,
    /// The message, in hexadecimal digits.
    pub message: String,
    /// The fields in which it differs.
    pub differs: Vec<String>,
}

/// A class of messages that the server accepts and no client sends.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TrojanEntry {
    /// Its number, from 1.
    pub number: usize,
    /// Its folder, relative to that of the results.
    pub dir: String,
    /// Bytes of the message.
    pub length: u32,
    /// The clients from which the server accepts it.
    pub senders: Vec<String>,
    /// A message, in hexadecimal digits.
    pub example: String,
    /// What holds of all messages of the class.
    pub constraint: String,
    /// The fields of the example.
    pub fields: Vec<TrojanField>,
    /// How it was shown that no client sends it: `exact` or `refined`.
    pub how: String,
    /// All paths of the clients were explored.
    pub certain: bool,
    /// What sending the example to the native server showed.
    pub confirmed: String,
    /// Why the path accepts: `reply`, `call NAME`, `mark`, or a finding.
    pub why: String,
    /// Where the server accepts it.
    pub file: String,
    /// The line there.
    pub line: u32,
    /// The function there.
    pub function: String,
    /// The group that it belongs to.
    pub group: String,
    /// The nearest message that a client sends.
    pub nearest: Option<Nearest>,
    /// What the server would have to check, in terms of fields.
    pub fix_hint: String,
}

/// A finding that messages of classes lead to, also after the server has accepted them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TrojanFinding {
    /// Its number, from 1.
    pub number: usize,
    /// Its folder, relative to that of the results.
    pub dir: String,
    /// What it is.
    pub what: String,
    /// Where it happens.
    pub file: String,
    /// The line there.
    pub line: u32,
    /// The function there.
    pub function: String,
    /// A message that leads to it, in hexadecimal digits.
    pub example: String,
    /// The client that the example comes from.
    pub sender: String,
    /// The numbers of the classes that the example belongs to.
    pub trojans: Vec<usize>,
    /// It happens after the server has accepted the message.
    pub afterwards: bool,
    /// No message of a client leads to it; `None` if that is not known.
    pub only: Option<bool>,
    /// What sending the example to the native server showed.
    pub confirmed: String,
}

/// Classes that differ from what clients send in the same way.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TrojanGroup {
    /// In which way.
    pub name: String,
    /// How many classes.
    pub classes: usize,
    /// The numbers of the classes.
    pub trojans: Vec<usize>,
}

/// The summary of an analysis.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TrojansSummary {
    /// Clients and server were explored to their ends, and nothing is undecided:
    /// there are no other Trojan messages.
    pub complete: bool,
    /// The server.
    pub server: String,
    /// The clients.
    pub clients: Vec<ClientFigures>,
    /// The server, by the length of messages.
    pub lengths: Vec<LengthFigures>,
    /// Kinds of client messages that paths of the server had to be compared with, by the number of
    /// conditions of the path.
    #[serde(default)]
    pub kept: Vec<KeptFigures>,
    /// Seconds of each phase.
    pub phases: TrojanPhases,
    /// What random runs of the native clients showed.
    #[serde(default)]
    pub native_runs: NativeRuns,
    /// The classes.
    pub trojans: Vec<TrojanEntry>,
    /// The classes in groups.
    pub groups: Vec<TrojanGroup>,
    /// Findings that messages of the classes lead to.
    #[serde(default)]
    pub findings: Vec<TrojanFinding>,
    /// Why not all that the server does after it has accepted a message was explored, if it was
    /// not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub afterwards_cut_off: Vec<String>,
    /// Accepting paths of which it is not known whether they have Trojan messages, and why.
    pub undecided: Vec<String>,
}

impl TrojansSummary {
    /// All that clients can send is known.
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
