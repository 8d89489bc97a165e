//! The recording of a peer: its answers by question, in memory and in the folder of the run.

use everett_sim::{HostAct, PeerAct, hex, position_after};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The file of recordings in the folder of a run.
pub const RECORDING: &str = "peers.jsonl";
/// The file beside it with what is too long for a line.
const LONG_BYTES: &str = "peers.bytes";
/// Maximum number of bytes that a line has as digits.
const MAX_IN_LINE: usize = 1 << 12;

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
    events: InLine,
    answer: InLine,
}

/// Bytes in a line: as digits, or their place and number in the file of long ones.
#[derive(Deserialize)]
#[serde(untagged)]
enum InLine {
    Digits(#[serde(deserialize_with = "hex::deserialize")] Vec<u8>),
    Place(u64, u64),
}

/// The acts of hosts that led to an answer, encoded. They are needed only where a fresh instance is
/// brought to a position, so that long ones stay in the file.
pub enum Events {
    /// The bytes.
    Here(Box<[u8]>),
    /// The file, and the place and number of the bytes there.
    There(Arc<File>, u64, usize),
}

impl Events {
    fn len(&self) -> usize {
        match self {
            Events::Here(bytes) => bytes.len(),
            Events::There(_, _, size) => *size,
        }
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> io::Result<Cow<'_, [u8]>> {
        match self {
            Events::Here(bytes) => Ok(Cow::Borrowed(bytes)),
            Events::There(file, at, size) => {
                let mut bytes = vec![0; *size];
                file.read_exact_at(&mut bytes, *at)?;
                Ok(Cow::Owned(bytes))
            }
        }
    }
}

/// A question with its answer.
pub struct RecordingEntry {
    /// The digest of the question.
    pub id: u128,
    /// The position of the peer before the question.
    pub after: u128,
    /// The acts of hosts since that position.
    pub events: Events,
    /// The answer of the peer.
    pub act: PeerAct,
    /// The encoded answer.
    pub answer: Arc<[u8]>,
}

impl RecordingEntry {
    /// Returns the acts of hosts since the position before the question.
    pub fn acts(&self) -> Result<Vec<HostAct>, String> {
        let bytes = self.events.bytes();
        let bytes = bytes.map_err(|error| format!("its recording cannot be read: {error}"))?;
        HostAct::decode(&bytes).ok_or_else(|| "its recording is damaged".to_owned())
    }
}

/// The file to which recordings of all peers are appended.
#[derive(Default)]
pub struct Journal(Mutex<Option<Appended>>);

/// The open files, and the memory of the last line, which is used again.
struct Appended {
    file: File,
    line: Vec<u8>,
    long: Arc<File>,
    /// The size of the file of long bytes.
    end: u64,
}

impl Appended {
    /// Writes bytes that are too long for a line. Returns their place.
    fn put(&mut self, bytes: &[u8]) -> io::Result<Option<u64>> {
        if bytes.len() <= MAX_IN_LINE {
            return Ok(None);
        }
        let at = self.end;
        self.long.write_all_at(bytes, at)?;
        self.end += bytes.len() as u64;
        Ok(Some(at))
    }
}

impl Journal {
    /// Opens the file, to which all subsequent answers are appended.
    pub fn open(&self, folder: &Path) -> Result<(), RecordingError> {
        let path = folder.join(RECORDING);
        let file = open_whole(&path).map_err(|error| RecordingError {
            file: path,
            message: error.to_string(),
        })?;
        let long = folder.join(LONG_BYTES);
        let (long, end) = open_long(&long).map_err(|error| RecordingError {
            file: long,
            message: error.to_string(),
        })?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Appended {
            file,
            line: Vec::new(),
            long,
            end,
        });
        Ok(())
    }

    /// Writes an answer. Returns where the acts are, for the recording in memory.
    pub fn note(
        &self,
        peer: &str,
        (id, after): (u128, u128),
        events: &[u8],
        answer: &[u8],
    ) -> io::Result<Events> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = open.as_mut() else {
            return Ok(Events::Here(events.into()));
        };
        // First what the line refers to.
        let places = (open.put(events)?, open.put(answer)?);
        let line = &mut open.line;
        line.clear();
        line.extend_from_slice(b"{\"peer\":");
        serde_json::to_writer(&mut *line, peer)?;
        write!(
            line,
            ",\"id\":\"{id:032x}\",\"after\":\"{after:032x}\",\"events\":"
        )?;
        append(line, events, places.0)?;
        line.extend_from_slice(b",\"answer\":");
        append(line, answer, places.1)?;
        line.extend_from_slice(b"}\n");
        // A single write, so that a line is complete or missing, unless the machine crashes.
        open.file.write_all(line)?;
        Ok(match places.0 {
            Some(at) => Events::There(open.long.clone(), at, events.len()),
            None => Events::Here(events.into()),
        })
    }
}

/// Appends bytes to a line, as digits or by their place.
fn append(line: &mut Vec<u8>, bytes: &[u8], place: Option<u64>) -> io::Result<()> {
    if let Some(at) = place {
        return write!(line, "[{at},{}]", bytes.len());
    }
    line.push(b'"');
    hex::append(bytes, line);
    line.push(b'"');
    Ok(())
}

/// Opens the file of long bytes, and returns its size. What no line refers to stays unused.
fn open_long(path: &Path) -> io::Result<(Arc<File>, u64)> {
    let mut options = File::options();
    let file = options.create(true).read(true).write(true).truncate(false);
    let file = file.open(path)?;
    let end = file.metadata()?.len();
    Ok((Arc::new(file), end))
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
    pub fn add(&mut self, id: u128, after: u128, events: Events, answer: &Arc<[u8]>) -> bool {
        if self.entries.contains_key(&id) {
            return false;
        }
        let is_whole = match &events {
            Events::Here(bytes) => HostAct::is_encoded(bytes),
            // Looked at when it is read again.
            Events::There(..) => true,
        };
        let Some(act) = PeerAct::decode(answer).filter(|_| is_whole) else {
            return false;
        };
        self.bytes += (events.len() + answer.len()) as u64;
        self.leads.insert(position_after(id, answer), id);
        let answer = answer.clone();
        let entry = RecordingEntry {
            id,
            after,
            events,
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

/// Reads the recordings of a run; a run without live peers has none. The last line may be torn.
pub fn read(
    folder: &Path,
    mut each: impl FnMut(&str, u128, u128, Events, Arc<[u8]>),
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
    let long = File::open(folder.join(LONG_BYTES)).ok().map(Arc::new);
    let mut torn = None;
    for (number, line) in BufReader::new(file).split(b'\n').enumerate() {
        let line = line.map_err(|error| wrong(error.to_string()))?;
        if let Some(message) = torn.take() {
            return Err(wrong(message));
        }
        let whole = serde_json::from_slice::<Line>(&line).map_err(|error| error.to_string());
        let whole = whole.and_then(|line| {
            let events = events_of(line.events, long.as_ref())?;
            let answer = events_of(line.answer, long.as_ref())?;
            let answer = answer.bytes().map_err(|error| error.to_string())?;
            Ok((line.peer, line.id, line.after, events, answer.into()))
        });
        match whole {
            Ok((peer, id, after, events, answer)) => each(&peer, id, after, events, answer),
            Err(error) => torn = Some(format!("line {} is damaged: {error}", number + 1)),
        }
    }
    Ok(())
}

/// Returns the bytes that a line has or refers to.
fn events_of(bytes: InLine, long: Option<&Arc<File>>) -> Result<Events, String> {
    let missing = || format!("{LONG_BYTES} does not have its bytes");
    match bytes {
        InLine::Digits(bytes) => Ok(Events::Here(bytes.into())),
        InLine::Place(at, size) => {
            let long = long.ok_or_else(missing)?;
            let there = long.metadata().map_err(|error| error.to_string())?.len();
            let is_there = at.checked_add(size).is_some_and(|end| end <= there);
            let size = usize::try_from(size).ok().filter(|_| is_there);
            Ok(Events::There(long.clone(), at, size.ok_or_else(missing)?))
        }
    }
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
        let events = || Events::Here(HostAct::encode(&acts).into());
        let id = question_id(0, &HostAct::encode(&acts), 0);
        let answer: Arc<[u8]> = PeerAct::Accept(0).encode().into();
        assert!(recording.add(id, 0, events(), &answer));
        assert!(!recording.add(id, 0, events(), &answer));
        let here = position_after(id, &answer);
        let way = recording.way_to(here).expect("it is known");
        assert_eq!(way.len(), 1);
        assert_eq!(way[0].act, PeerAct::Accept(0));
        assert_eq!(recording.way_to(0).map(|way| way.len()), Some(0));
        assert!(recording.way_to(here ^ 1).is_none());
        let damaged = Events::Here([9].into());
        assert!(!recording.add(id ^ 1, 0, damaged, &answer), "damaged acts");
    }

    #[test]
    fn what_is_noted_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = Journal::default();
        journal.open(folder.path()).expect("opened");
        let (peer, places) = ("a \"db\"\n\u{e4}", (u128::MAX, 1));
        let (events, answer): (Vec<u8>, &[u8]) = ((0..=255).collect(), &[0x0a, 0xf9]);
        // What is long is in another file.
        let long: Vec<u8> = (0..100_000_u32).map(|at| (at >> 5) as u8).collect();
        for (events, answer) in [(&events[..], answer), (&long, answer), (&events, &long)] {
            let kept = journal.note(peer, places, events, answer).expect("written");
            assert_eq!(&*kept.bytes().expect("read"), events);
        }
        let mut seen = 0;
        let each = |name: &str, id, after, acts: Events, act: Arc<[u8]>| {
            assert_eq!((name, (id, after)), (peer, places));
            let wanted = [(&events[..], answer), (&long, answer), (&events, &long)];
            assert_eq!((&*acts.bytes().expect("read"), &*act), wanted[seen]);
            seen += 1;
        };
        read(folder.path(), each).expect("whole");
        assert_eq!(seen, 3);
        let size = |name: &str| {
            std::fs::metadata(folder.path().join(name))
                .expect("a file")
                .len()
        };
        assert_eq!(size(LONG_BYTES), 200_000);
        assert!(size(RECORDING) < 2000);
        // A file that lost its end is no recording.
        let long = File::options()
            .write(true)
            .open(folder.path().join(LONG_BYTES));
        long.expect("opened").set_len(150_000).expect("cut");
        journal
            .note(peer, places, &events, answer)
            .expect("written");
        assert!(lines(folder.path()).is_err());
    }

    #[test]
    fn a_torn_last_line_is_left_out_and_any_other_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(lines(folder.path()).expect("none").is_empty());
        let journal = Journal::default();
        journal.open(folder.path()).expect("opened");
        journal.note("db", (1, 0), &[], &[1]).expect("written");
        journal.note("db", (2, 1), &[], &[1]).expect("written");
        assert_eq!(lines(folder.path()).expect("whole").len(), 2);
        let path = folder.path().join(RECORDING);
        let mut text = std::fs::read(&path).expect("read");
        text.truncate(text.len() - 5);
        std::fs::write(&path, &text).expect("written");
        assert_eq!(lines(folder.path()).expect("torn").len(), 1);
        journal.open(folder.path()).expect("opened again");
        journal.note("db", (3, 1), &[], &[1]).expect("written");
        assert_eq!(lines(folder.path()).expect("mended").len(), 2);
        text.extend_from_slice(b"\n{}\n");
        std::fs::write(&path, &text).expect("written");
        assert!(lines(folder.path()).is_err());
    }
}
