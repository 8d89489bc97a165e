//! `trojans.json`: the stored result of an analysis, from which `contains` later decides whether a
//! message is a Trojan message.

use everett_report::Folder;
use everett_report::counted;
use everett_solver::SolverConfig;
use everett_trojans::{Answer, Encoded, Layout, Search, SearchOptions, StoredPath};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

use super::summary::{LengthFigures, TrojansSummary};
use super::{Analysis, Class, not_set_up};
use crate::error::{Context, Error, Result, bail};

/// The name of the file.
const FILE: &str = "trojans.json";

/// The stored result.
#[derive(Serialize, Deserialize)]
struct Stored {
    layout: Layout,
    /// Whether all clients were explored completely.
    is_certain: bool,
    /// The analysed lengths, and whether the server was explored completely on them.
    lengths: Vec<(u32, bool)>,
    sent: Vec<Encoded>,
    /// Paths with Trojan messages.
    trojans: Vec<StoredPath>,
    /// Paths that may have Trojan messages.
    undecided: Vec<StoredPath>,
}

/// Whether a message is a Trojan message.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Contains {
    /// Yes: the server accepts it and no client sends it.
    Yes,
    /// No.
    No,
    /// The stored result does not decide it.
    Undecided,
}

/// Writes the result for later questions.
pub(super) fn write(
    analysis: &Analysis<'_>,
    folder: &Folder,
    sent: &[Encoded],
    classes: &[Class],
    summary: &TrojansSummary,
) -> Result<()> {
    let of = |wanted: fn(&Answer) -> bool| {
        let found = classes
            .iter()
            .filter(|class| wanted(&class.accepted.answer));
        let paths = found.flat_map(|class| class.also.iter().chain([&class.accepted.path]));
        paths.cloned().collect()
    };
    let lengths = summary.lengths.iter();
    let stored = Stored {
        layout: analysis.layout.clone(),
        is_certain: summary.is_certain(),
        lengths: explored(lengths),
        sent: sent.to_vec(),
        trojans: of(|answer| matches!(answer, Answer::Trojan(_))),
        undecided: of(|answer| matches!(answer, Answer::Undecided(_))),
    };
    Ok(folder.write(FILE, &serde_json::to_vec(&stored)?)?)
}

/// Returns each length, and whether the server was explored completely on it for each sender.
fn explored<'a>(figures: impl Iterator<Item = &'a LengthFigures>) -> Vec<(u32, bool)> {
    let mut lengths: BTreeMap<u32, bool> = BTreeMap::new();
    for one in figures {
        *lengths.entry(one.length).or_insert(true) &= one.explored;
    }
    lengths.into_iter().collect()
}

/// Decides whether a message is one of the Trojan messages that an analysis has found.
pub fn contains(folder: &Path, message: &[u8]) -> Result<Contains> {
    let file = folder.join(FILE);
    let text = everett_report::read_file(&file).with_context(|| {
        format!(
            "{} is not the folder of `everett trojans`",
            folder.display()
        )
    })?;
    let stored: Stored = serde_json::from_slice(&text).map_err(|error| Error::Damaged {
        path: file,
        source: Box::new(error.into()),
    })?;
    let length = message.len() as u32;
    let Some((_, is_explored)) = stored.lengths.iter().find(|(one, _)| *one == length) else {
        let lengths = stored.lengths.iter().map(|(one, _)| one);
        let (least, most) = (lengths.clone().min(), lengths.max());
        bail!(
            Usage,
            "the message has {}; those of {} to {} were analysed",
            counted(length, "byte"),
            least.unwrap_or(&0),
            most.unwrap_or(&0)
        );
    };
    let (solver, options) = (SolverConfig::default(), SearchOptions::default());
    let sent = &stored.sent;
    let mut search =
        Search::new(length, &stored.layout, sent, solver, options).map_err(not_set_up)?;
    let places = search.unmasked(message);
    match search.produced(message, &places) {
        Ok(Some(_)) => return Ok(Contains::No),
        Ok(None) => {}
        Err(_) => return Ok(Contains::Undecided),
    }
    let mut takes = |paths: &[StoredPath]| -> Option<bool> {
        let mut is_known = true;
        for path in paths.iter().filter(|path| path.length == length) {
            let terms = search.stored(path).ok()?;
            match search.takes(&terms, message) {
                Ok(true) => return Some(true),
                Ok(false) => {}
                Err(_) => is_known = false,
            }
        }
        is_known.then_some(false)
    };
    let is_trojan = takes(&stored.trojans);
    let is_undecided = takes(&stored.undecided);
    Ok(match (is_trojan, is_undecided) {
        (Some(true), _) if stored.is_certain => Contains::Yes,
        (Some(false), Some(false)) if *is_explored => Contains::No,
        _ => Contains::Undecided,
    })
}
