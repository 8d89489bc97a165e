//! The recording of a peer: its answers by question, in memory and in the folder of the run.

use everett_sim::{HostAct, PeerAct, hex, position_after};
use serde::Deserialize;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The file of recordings in the folder of a run.
pub const RECORDING: &str = "peers.jsonl";

/// Why a recording cannot be read or written.
#[derive(Debug)]
pub struct RecordingError {
    /// The file.
    pub file: PathBuf,
    /// The description of the error.
    pub message: String,
}

impl std::fmt::Display for RecordingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.message)
    }
}

impl std::error::Error for RecordingError {}

/// A question with its answer, as a line of the file.
#[derive(Deserialize)]
struct Line {
    peer: String,
    #[serde(deserialize_with = "digits::deserialize")]
    id: u128,
    #[serde(deserialize_with = "digits::deserialize")]
    after: u128,
    #[serde(deserialize_with = "hex::deserialize")]
    events: Vec<u8>,
    #[serde(deserialize_with = "hex::deserialize")]
    answer: Vec<u8>,
}

/// A question with its answer.
pub struct RecordingEntry {
    /// The digest of the question.
    pub id: u128,
    /// The position of the peer before the question.
    pub after: u128,
    /// The acts of hosts since that position, encoded: they are needed only where a fresh instance
    /// is brought to a position.
    pub events: Box<[u8]>,
    /// The answer of the peer.
    pub act: PeerAct,
    /// The encoded answer.
    pub answer: Arc<[u8]>,
}

impl RecordingEntry {
    /// Returns the acts of hosts since the position before the question.
    pub fn acts(&self) -> Vec<HostAct> {
        HostAct::decode(&self.events).unwrap_or_default()
    }
}

/// The file to which recordings of all peers are appended.
#[derive(Default)]
pub struct Journal(Mutex<Option<Appended>>);

/// An open file, and the memory of its last line, which is used again.
struct Appended {
    file: File,
    line: Vec<u8>,
}

/// Maximum size of a line whose memory is kept.
const MAX_KEPT: usize = 16 << 20;

impl Journal {
    /// Opens the file, to which all subsequent answers are appended.
    pub fn open(&self, folder: &Path) -> Result<(), RecordingError> {
        let path = folder.join(RECORDING);
        let file = open_whole(&path).map_err(|error| RecordingError {
            file: path,
            message: error.to_string(),
        })?;
        let line = Vec::new();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Appended { file, line });
        Ok(())
    }

    fn write(&self, line: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> io::Result<()> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = open.as_mut() else {
            return Ok(());
        };
        open.line.clear();
        line(&mut open.line)?;
        // A single write, so that a line is complete or missing, unless the machine crashes.
        open.file.write_all(&open.line)?;
        if open.line.capacity() > MAX_KEPT {
            open.line = Vec::new();
        }
        Ok(())
    }
}

/// Serialises a [`Line`]. Lines can be long, so digits are written directly, without the search for
/// characters to escape.
fn append_line(
    text: &mut Vec<u8>,
    peer: &str,
    (id, after): (u128, u128),
    events: &[u8],
    answer: &[u8],
) -> io::Result<()> {
    text.reserve(256 + 2 * (events.len() + answer.len()));
    text.extend_from_slice(b"{\"peer\":");
    serde_json::to_writer(&mut *text, peer)?;
    write!(
        text,
        ",\"id\":\"{id:032x}\",\"after\":\"{after:032x}\",\"events\":\""
    )?;
    hex::append(events, text);
    text.extend_from_slice(b"\",\"answer\":\"");
    hex::append(answer, text);
    text.extend_from_slice(b"\"}\n");
    Ok(())
}

/// Opens the file for appending, and removes the torn line that a killed run left at its end.
fn open_whole(path: &Path) -> io::Result<File> {
    let mut file = File::options()
        .create(true)
        .read(true)
        .append(true)
        .open(path)?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    let whole = text.iter().rposition(|byte| *byte == b'\n');
    file.set_len(whole.map_or(0, |at| at as u64 + 1))?;
    Ok(file)
}

/// The recording of a peer.
#[derive(Default)]
pub struct Recording {
    /// Answers by question.
    entries: HashMap<u128, Arc<RecordingEntry>>,
    /// The question whose answer led to each position.
    leads: HashMap<u128, u128>,
    /// Size of the recording in bytes.
    pub bytes: u64,
}

impl Recording {
    /// Returns the answer to a question.
    pub fn get(&self, id: u128) -> Option<&Arc<RecordingEntry>> {
        self.entries.get(&id)
    }

    /// Returns the number of answers.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds an answer. Returns `false` if it is known or damaged.
    pub fn add(&mut self, id: u128, after: u128, events: &[u8], answer: &Arc<[u8]>) -> bool {
        if self.entries.contains_key(&id) {
            return false;
        }
        let Some(act) = PeerAct::decode(answer).filter(|_| HostAct::is_encoded(events)) else {
            return false;
        };
        self.bytes += (events.len() + answer.len()) as u64;
        self.leads.insert(position_after(id, answer), id);
        let answer = answer.clone();
        let entry = RecordingEntry {
            id,
            after,
            events: events.into(),
            act,
            answer,
        };
        self.entries.insert(id, Arc::new(entry));
        true
    }

    /// Returns all answers, in the order of their questions' digests.
    pub fn in_order(&self) -> impl Iterator<Item = (u128, &RecordingEntry)> {
        let mut all: Vec<&Arc<RecordingEntry>> = self.entries.values().collect();
        all.sort_by_key(|entry| entry.id);
        all.into_iter().map(|entry| (entry.id, &**entry))
    }

    /// Returns the answers that lead from the start to a position; `None` if the position is
    /// unknown.
    pub fn way_to(&self, position: u128) -> Option<Vec<Arc<RecordingEntry>>> {
        let mut way = Vec::new();
        let mut at = position;
        while at != 0 {
            let entry = self.entries.get(self.leads.get(&at)?)?;
            at = entry.after;
            way.push(entry.clone());
        }
        way.reverse();
        Some(way)
    }
}

/// Writes an answer to the journal.
pub fn note(
    journal: &Journal,
    peer: &str,
    places: (u128, u128),
    events: &[u8],
    answer: &[u8],
) -> io::Result<()> {
    journal.write(|text| append_line(text, peer, places, events, answer))
}

/// Reads the recordings of a run; a run without live peers has none. The last line may be torn.
pub fn read(
    folder: &Path,
    mut each: impl FnMut(&str, u128, u128, &[u8], Arc<[u8]>),
) -> Result<(), RecordingError> {
    let path = folder.join(RECORDING);
    let wrong = |message: String| RecordingError {
        file: path.clone(),
        message,
    };
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(wrong(error.to_string())),
    };
    let mut torn = None;
    for (number, line) in BufReader::new(file).split(b'\n').enumerate() {
        let line = line.map_err(|error| wrong(error.to_string()))?;
        if let Some(message) = torn.take() {
            return Err(wrong(message));
        }
        match serde_json::from_slice::<Line>(&line) {
            Ok(line) => each(
                &line.peer,
                line.id,
                line.after,
                &line.events,
                line.answer.into(),
            ),
            Err(error) => torn = Some(format!("line {} is damaged: {error}", number + 1)),
        }
    }
    Ok(())
}

/// Digests as hexadecimal digits.
mod digits {
    use serde::{Deserialize, Deserializer, de::Error};

    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<u128, D::Error> {
        u128::from_str_radix(&String::deserialize(from)?, 16).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everett_sim::question_id;

    fn lines(folder: &Path) -> Result<Vec<(String, u128)>, RecordingError> {
        let mut all = Vec::new();
        read(folder, |peer, id, _, _, _| all.push((peer.to_owned(), id)))?;
        Ok(all)
    }

    #[test]
    fn a_recording_leads_from_its_start_to_where_a_peer_stands() {
        let mut recording = Recording::default();
        let acts = [HostAct::Open(0)];
        let id = question_id(0, &HostAct::encode(&acts), 0);
        let answer: Arc<[u8]> = PeerAct::Accept(0).encode().into();
        assert!(recording.add(id, 0, &HostAct::encode(&acts), &answer));
        assert!(!recording.add(id, 0, &HostAct::encode(&acts), &answer));
        let here = position_after(id, &answer);
        let way = recording.way_to(here).expect("it is known");
        assert_eq!(way.len(), 1);
        assert_eq!(way[0].act, PeerAct::Accept(0));
        assert_eq!(recording.way_to(0).map(|way| way.len()), Some(0));
        assert!(recording.way_to(here ^ 1).is_none());
        assert!(!recording.add(id ^ 1, 0, &[9], &answer), "damaged acts");
    }

    #[test]
    fn what_is_noted_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = Journal::default();
        journal.open(folder.path()).expect("opened");
        let (peer, places) = ("a \"db\"\n\u{e4}", (u128::MAX, 1));
        let (events, answer): (Vec<u8>, &[u8]) = ((0..=255).collect(), &[0x0a, 0xf9]);
        note(&journal, peer, places, &events, answer).expect("written");
        let mut seen = 0;
        let each = |name: &str, id, after, acts: &[u8], act: Arc<[u8]>| {
            assert_eq!((name, (id, after)), (peer, places));
            assert_eq!((acts, &*act), (&*events, answer));
            seen += 1;
        };
        read(folder.path(), each).expect("whole");
        assert_eq!(seen, 1);
    }

    #[test]
    fn a_torn_last_line_is_left_out_and_any_other_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(lines(folder.path()).expect("none").is_empty());
        let journal = Journal::default();
        journal.open(folder.path()).expect("opened");
        note(&journal, "db", (1, 0), &[], &[1]).expect("written");
        note(&journal, "db", (2, 1), &[], &[1]).expect("written");
        assert_eq!(lines(folder.path()).expect("whole").len(), 2);
        let path = folder.path().join(RECORDING);
        let mut text = std::fs::read(&path).expect("read");
        text.truncate(text.len() - 5);
        std::fs::write(&path, &text).expect("written");
        assert_eq!(lines(folder.path()).expect("torn").len(), 1);
        journal.open(folder.path()).expect("opened again");
        note(&journal, "db", (3, 1), &[], &[1]).expect("written");
        assert_eq!(lines(folder.path()).expect("mended").len(), 2);
        text.extend_from_slice(b"\n{}\n");
        std::fs::write(&path, &text).expect("written");
        assert!(lines(folder.path()).is_err());
    }
}
