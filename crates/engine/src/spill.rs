//! The spill file: states that wait on disk, so that they take no memory.
//!
//! States have most of their way in common, and a way may have thousands of inputs and choices. So the blocks of their lists
//! are written once, and a state is a list of blocks, stored as its difference from the state that was spilled before it.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path as FilePath;
use std::sync::Arc;

use crate::path::{Path, Sharing};
use crate::trace::{Pending, Trace, TraceChoice, TraceInput};
use crate::weight::{Weight, WeightSum};
use everett_sim::SharedList;

/// Longest chain of states stored as differences: so many are read for one at most.
const LONGEST_CHAIN: u32 = 16;
/// Size of the write buffer.
const BUFFER: usize = 1 << 18;
/// Far more forks than a path has: adding up weights takes a bit for each.
const MOST_HALVINGS: u32 = 1 << 24;
/// Bytes of a block's length.
const LENGTH: u64 = 4;

/// A state on the spill.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SpillId {
    offset: u64,
    len: u32,
    /// The weight of the state is 1 halved this often.
    pub halvings: u32,
}

/// Spilled states listed together: where there are millions, even their positions take memory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Bundle {
    offset: u64,
    len: u32,
    /// How many.
    pub count: u32,
    /// The sum of their weights, in hexadecimal digits.
    weight: String,
}

impl Bundle {
    /// The sum of their weights, if that is a number.
    pub fn weight(&self) -> Option<WeightSum> {
        WeightSum::from_hex(&self.weight)
    }
}

/// A state as it is written.
#[derive(Serialize, Deserialize)]
struct Record {
    /// The state that has the first blocks in common with it, and how many of each list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    like: Option<(SpillId, usize, usize)>,
    /// Where the other blocks are.
    inputs: Vec<u64>,
    choices: Vec<u64>,
    pending: Option<Pending>,
}

/// The state that was spilled last.
struct Last {
    id: SpillId,
    chain: u32,
    inputs: Vec<u64>,
    choices: Vec<u64>,
}

/// The spill file. It only grows, so positions in a checkpoint stay valid.
pub struct SpillFile {
    file: File,
    /// Length of what is in the file.
    written: u64,
    /// What comes after it.
    buffer: Vec<u8>,
    known: Known,
    last: Option<Last>,
}

impl SpillFile {
    /// An empty spill file that uses about so much memory for its index.
    pub fn create(path: &FilePath, memory: u64) -> io::Result<SpillFile> {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)?;
        Ok(SpillFile::with(file, 0, memory))
    }

    /// The spill file of an earlier run.
    pub fn open(path: &FilePath, memory: u64) -> io::Result<SpillFile> {
        let file = File::options().read(true).write(true).open(path)?;
        let written = file.metadata()?.len();
        Ok(SpillFile::with(file, written, memory))
    }

    fn with(file: File, written: u64, memory: u64) -> SpillFile {
        SpillFile {
            file,
            written,
            buffer: Vec::new(),
            known: Known::new(memory),
            last: None,
        }
    }

    /// Spills states, all of them or none.
    pub fn put<'p>(&mut self, paths: impl Iterator<Item = &'p Path>) -> io::Result<Vec<SpillId>> {
        let mut sharing = Sharing::default();
        let mut places = Places::default();
        let ids = paths.map(|path| self.put_trace(path.pending_trace(&mut sharing), &mut places));
        let ids = ids.collect::<io::Result<Vec<_>>>();
        let written = self.flush();
        if ids.is_err() || written.is_err() {
            // Nothing may refer to what did not get into the file.
            self.buffer.clear();
            self.known.clear();
            self.last = None;
        }
        written.and(ids)
    }

    fn put_trace(&mut self, trace: Trace, places: &mut Places) -> io::Result<SpillId> {
        let inputs = self.put_blocks(&trace.inputs, &mut places.inputs)?;
        let choices = self.put_blocks(&trace.choices, &mut places.choices)?;
        let halvings = trace.pending.as_ref().map_or(0, |pending| pending.halvings);
        let mut record = Record {
            like: None,
            inputs,
            choices,
            pending: trace.pending,
        };
        let mut chain = 0;
        let whole = if let Some(last) = self.last.as_ref().filter(|at| at.chain < LONGEST_CHAIN) {
            let common = [
                in_common(&last.inputs, &record.inputs),
                in_common(&last.choices, &record.choices),
            ];
            chain = last.chain + 1;
            record.like = Some((last.id, common[0], common[1]));
            let whole = (record.inputs.clone(), record.choices.clone());
            record.inputs.drain(..common[0]);
            record.choices.drain(..common[1]);
            Some(whole)
        } else {
            None
        };
        let bytes = serde_json::to_vec(&record)?;
        let id = SpillId {
            offset: self.end(),
            len: length(&bytes)?,
            halvings,
        };
        self.append(&bytes)?;
        let (inputs, choices) = whole.unwrap_or((record.inputs, record.choices));
        self.last = Some(Last {
            id,
            chain,
            inputs,
            choices,
        });
        Ok(id)
    }

    /// Notes states that are on the spill.
    pub fn bundle(&mut self, states: &[SpillId]) -> io::Result<Bundle> {
        let mut weight = WeightSum::default();
        for state in states {
            weight.add(Weight {
                halvings: state.halvings,
            });
        }
        let bytes = serde_json::to_vec(states)?;
        let bundle = Bundle {
            offset: self.end(),
            len: length(&bytes)?,
            count: states.len() as u32,
            weight: weight.to_hex(),
        };
        self.append(&bytes)?;
        self.flush()?;
        Ok(bundle)
    }

    /// The states of a bundle.
    pub fn unbundle(&self, bundle: &Bundle) -> io::Result<Vec<SpillId>> {
        let states: Vec<SpillId> = self.parse(bundle.offset, bundle.len)?;
        let is_wrong = |state: &SpillId| state.halvings > MOST_HALVINGS;
        if states.len() != bundle.count as usize || states.iter().any(is_wrong) {
            return Err(damaged());
        }
        Ok(states)
    }

    /// The offsets of a list's blocks; new ones are written.
    fn put_blocks<T: Serialize>(
        &mut self,
        list: &SharedList<T>,
        places: &mut Blocks<T>,
    ) -> io::Result<Vec<u64>> {
        let mut offsets = Vec::with_capacity(list.len().div_ceil(everett_sim::BLOCK));
        for block in list.blocks() {
            let key = Arc::as_ptr(block) as usize;
            let offset = match places.get(&key) {
                Some((offset, _)) => *offset,
                None => {
                    let offset = self.put_block(&serde_json::to_vec(&**block)?)?;
                    places.insert(key, (offset, block.clone()));
                    offset
                }
            };
            offsets.push(offset);
        }
        Ok(offsets)
    }

    fn put_block(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let digest = digest(bytes);
        if let Some(offset) = self.known.get(digest) {
            return Ok(offset);
        }
        let offset = self.end();
        self.append(&length(bytes)?.to_le_bytes())?;
        self.append(bytes)?;
        self.known.set(digest, offset);
        Ok(offset)
    }

    fn end(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes what was collected.
    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.buffer, self.written)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// The trace that leads to a spilled state.
    pub fn get(&self, id: SpillId) -> io::Result<Trace> {
        let record: Record = self.parse(id.offset, id.len)?;
        let (inputs, choices) = self.lists(&record, 0)?;
        Ok(Trace {
            inputs: self.list(&inputs)?,
            choices: self.list(&choices)?,
            pending: record.pending,
            end: None,
        })
    }

    /// Where all blocks of a state are.
    fn lists(&self, record: &Record, depth: u32) -> io::Result<(Vec<u64>, Vec<u64>)> {
        let Some((like, inputs, choices)) = record.like else {
            return Ok((record.inputs.clone(), record.choices.clone()));
        };
        if depth > LONGEST_CHAIN {
            return Err(damaged());
        }
        let (all_inputs, all_choices) =
            self.lists(&self.parse(like.offset, like.len)?, depth + 1)?;
        let joined = |all: Vec<u64>, common: usize, own: &[u64]| {
            let shared = all.get(..common).ok_or_else(damaged)?;
            Ok::<_, io::Error>([shared, own].concat())
        };
        Ok((
            joined(all_inputs, inputs, &record.inputs)?,
            joined(all_choices, choices, &record.choices)?,
        ))
    }

    fn list<T: DeserializeOwned>(&self, offsets: &[u64]) -> io::Result<SharedList<T>> {
        let block = |offset: &u64| {
            let mut length = [0; LENGTH as usize];
            self.read_at(*offset, &mut length)?;
            let start = offset.checked_add(LENGTH).ok_or_else(damaged)?;
            Ok::<_, io::Error>(Arc::new(self.parse(start, u32::from_le_bytes(length))?))
        };
        let blocks = offsets.iter().map(block).collect::<io::Result<Vec<_>>>()?;
        SharedList::from_blocks(blocks).ok_or_else(damaged)
    }

    fn parse<T: DeserializeOwned>(&self, offset: u64, len: u32) -> io::Result<T> {
        // Numbers from a file may be anything.
        let end = offset.checked_add(u64::from(len));
        if end.is_none_or(|end| end > self.written) {
            return Err(damaged());
        }
        let mut bytes = vec![0; len as usize];
        self.read_at(offset, &mut bytes)?;
        Ok(serde_json::from_slice(&bytes)?)
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset)
    }
}

/// Offsets of blocks by digest, so that equal blocks are written once. It never grows: a new block takes
/// the place of another one.
struct Known {
    /// Digest, and place counted from 1; 0 is nothing, so that what is not used takes no memory.
    slots: Vec<(u128, u64)>,
}

impl Known {
    const NOTHING: (u128, u64) = (0, 0);
    const MOST_MEMORY: u64 = 64 << 20;

    fn new(memory: u64) -> Known {
        let count = memory.min(Known::MOST_MEMORY) as usize / size_of::<(u128, u64)>();
        Known {
            slots: vec![Known::NOTHING; count.max(1)],
        }
    }

    fn slot(&mut self, digest: u128) -> &mut (u128, u64) {
        let at = digest % self.slots.len() as u128;
        &mut self.slots[at as usize]
    }

    fn get(&mut self, digest: u128) -> Option<u64> {
        let slot = *self.slot(digest);
        let place = slot.1.checked_sub(1)?;
        (slot.0 == digest).then_some(place)
    }

    fn set(&mut self, digest: u128, offset: u64) {
        *self.slot(digest) = (digest, offset + 1);
    }

    fn clear(&mut self) {
        self.slots.fill(Known::NOTHING);
    }
}

/// Offsets of blocks that are spilled together, by their address in memory; they are held, so none of them moves.
type Blocks<T> = HashMap<usize, (u64, Arc<Vec<T>>)>;

#[derive(Default)]
struct Places {
    inputs: Blocks<TraceInput>,
    choices: Blocks<TraceChoice>,
}

fn in_common(one: &[u64], other: &[u64]) -> usize {
    let pairs = one.iter().zip(other);
    pairs.take_while(|(one, other)| one == other).count()
}

fn length(bytes: &[u8]) -> io::Result<u32> {
    u32::try_from(bytes.len()).map_err(|_| ErrorKind::FileTooLarge.into())
}

fn damaged() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the file of states is damaged")
}

/// Two digests of 64 bits: blocks of a run never have the same by chance.
fn digest(bytes: &[u8]) -> u128 {
    let half = |first: u8| {
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(first);
        hasher.write(bytes);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use everett_vm::ChoiceSite;

    struct Scratch(std::path::PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let file = format!("everett-spill-{name}-{}", std::process::id());
            Scratch(std::env::temp_dir().join(file))
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            std::fs::remove_file(&self.0).unwrap();
        }
    }

    /// Paths that forked one from another, a choice each.
    fn forked(count: u32) -> Vec<Path> {
        let mut paths = vec![Path::default()];
        for number in 1..count {
            let mut path = paths.last().unwrap().clone();
            path.choices.push(TraceChoice {
                site: ChoiceSite::FileSize {
                    name: number.to_string().into(),
                },
                alternatives: 3,
                picked: number % 3,
            });
            path.weight = Weight { halvings: number };
            path.answered = u64::from(number);
            paths.push(path);
        }
        paths
    }

    fn trace(path: &Path) -> Trace {
        path.pending_trace(&mut Sharing::default())
    }

    #[test]
    fn states_are_there_after_opening_again() {
        let scratch = Scratch::new("again");
        let paths = forked(200);
        let (early, late) = paths.split_at(100);
        let mut spill = SpillFile::create(&scratch.0, 1 << 16).unwrap();
        let mut ids = spill.put(early.iter()).unwrap();
        let mut spill = SpillFile::open(&scratch.0, 1 << 16).unwrap();
        ids.extend(spill.put(late.iter()).unwrap());
        for (id, path) in ids.iter().zip(&paths).rev() {
            assert_eq!(spill.get(*id).unwrap(), trace(path));
            assert_eq!(id.halvings, path.weight.halvings);
        }
    }

    #[test]
    fn bundles_have_all_states_and_their_weight() {
        let scratch = Scratch::new("bundle");
        let mut spill = SpillFile::create(&scratch.0, 1 << 16).unwrap();
        let ids = spill.put(forked(6).iter()).unwrap();
        let bundle = spill.bundle(&ids[1..]).unwrap();
        assert_eq!(spill.unbundle(&bundle).unwrap(), ids[1..]);
        assert_eq!(bundle.weight().unwrap().to_f64(), 1.0 - 1.0 / 32.0);
        for wrong in [
            Bundle {
                count: 4,
                ..bundle.clone()
            },
            Bundle {
                offset: u64::MAX,
                ..bundle.clone()
            },
        ] {
            assert!(spill.unbundle(&wrong).is_err());
        }
    }

    #[test]
    fn what_states_have_in_common_is_written_once() {
        let scratch = Scratch::new("once");
        let paths = forked(2000);
        let mut spill = SpillFile::create(&scratch.0, 1 << 16).unwrap();
        for part in paths.chunks(100) {
            spill.put(part.iter()).unwrap();
        }
        let whole: usize = paths
            .iter()
            .map(|path| serde_json::to_vec(&trace(path)).unwrap().len())
            .sum();
        assert!(
            spill.end() * 20 < whole as u64,
            "{} of {whole}",
            spill.end()
        );
    }

    #[test]
    fn a_damaged_file_is_an_error() {
        let scratch = Scratch::new("damaged");
        let paths = forked(50);
        let mut spill = SpillFile::create(&scratch.0, 1 << 16).unwrap();
        let ids = spill.put(paths.iter()).unwrap();
        let (first, last) = (ids[0], ids[49]);
        for (offset, len) in [(0, u32::MAX), (u64::MAX, 9), (last.offset, last.len + 1)] {
            let wrong = SpillId {
                offset,
                len,
                ..first
            };
            assert!(spill.get(wrong).is_err());
        }
        // A state stored as a difference from itself.
        let circle = Record {
            like: Some((ids[1], 0, 0)),
            inputs: Vec::new(),
            choices: Vec::new(),
            pending: None,
        };
        let mut bytes = serde_json::to_vec(&circle).unwrap();
        bytes.resize(ids[1].len as usize, b' ');
        spill.file.write_all_at(&bytes, ids[1].offset).unwrap();
        assert!(spill.get(ids[1]).is_err());
    }
}
