//! The spill file: states that are stored on disk, so that they use no memory.
//!
//! States share most of their paths, and a path may have thousands of inputs and choices. So the
//! blocks of these lists are written once. A state is a list of blocks, stored as its difference
//! from the state that was spilled before it. A large block that differs little from an earlier
//! one, such as a long input, is stored as a delta.

mod known;

use everett_expr::{Arena, Digest128, ExprId};
use everett_sim::{Received, SharedList, StoredReceived};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use crate::delta::{Base, apply_delta};
use crate::path::{Path, Sharing};
use crate::state::State;
use crate::trace::{Pending, Trace, TraceInput};
use crate::weight::{Weight, WeightSum};
use crate::world::stored::{
    ConditionPart, ForeignInputs, StoredConditions, StoredNet, StoredWorldState, condition_parts,
};

pub use known::Places;
use known::{Blocks, Known, KnownConditions};

/// Maximum number of states in a [`Bundle`] and in a batch of a checkpoint.
pub const BUNDLE: usize = 256;
/// Maximum length of a chain of records stored as differences, and so the number of records that
/// are read to restore a state.
const LONGEST_CHAIN: u32 = 16;
/// Size of the write buffer.
const BUFFER: usize = 1 << 18;
/// Maximum number of halvings that is accepted, far more than a path has forks: a sum of weights
/// takes a bit for each.
const MOST_HALVINGS: u32 = 1 << 24;
/// Size of a block's length and checksum in bytes.
const HEADER: u64 = 8;

/// Flag in the length of a block: the block is stored as a delta from another one.
const DELTA: u32 = 1 << 31;
/// Minimum size of blocks that deltas refer to.
const LARGE: usize = 1 << 10;
/// Maximum number of blocks that a block is compared with.
const MOST_BASES: usize = 4;

/// The position of a state in the spill file.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SpillId {
    /// The number of the file: 0 is that of the run, others belong to checkpoints that it was
    /// resumed from.
    #[serde(default, skip_serializing_if = "is_first")]
    file: u16,
    offset: u64,
    len: u32,
    /// The checksum of the record.
    check: u32,
    /// The weight of the state is 1 halved this often.
    pub halvings: u32,
}

impl SpillId {
    /// Returns the number of the file, and the offset of the state in it.
    pub fn place(&self) -> (u16, u64) {
        (self.file, self.offset)
    }
}

fn is_first(file: &u16) -> bool {
    *file == 0
}

/// A list of spilled states, which is itself in the spill file: for millions of states, even their
/// positions would take much memory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Bundle {
    #[serde(default, skip_serializing_if = "is_first")]
    file: u16,
    offset: u64,
    len: u32,
    /// The checksum of the list.
    check: u32,
    /// The number of states.
    pub count: u32,
    /// The sum of their weights, in hexadecimal digits.
    weight: String,
}

impl Bundle {
    /// Returns the number of the file, and the offset of the list in it.
    pub fn place(&self) -> (u16, u64) {
        (self.file, self.offset)
    }

    /// Returns the sum of the states' weights, unless its text is damaged.
    pub fn weight(&self) -> Option<WeightSum> {
        WeightSum::from_hex(&self.weight)
    }
}

/// A state as it is written to the file.
#[derive(Serialize, Deserialize)]
struct Record {
    /// The state with which it has its first blocks in common, and how many of each list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    like: Option<(SpillId, [usize; LISTS])>,
    /// The offsets of the other blocks: inputs, choices, what was received, answers of live peers,
    /// and the path condition.
    lists: Lists,
    pending: Option<Pending>,
    /// The part of a state of a world that is no list, and the offset of the inputs of other hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    net: Option<(StoredNet, u64)>,
}

/// The number of lists of blocks that a state has.
const LISTS: usize = 5;
/// The offsets of the blocks of each list.
type Lists = [Vec<u64>; LISTS];

/// The state that was spilled last, from which the next one is stored as a difference.
struct Last {
    id: SpillId,
    /// The number of records before it in its chain of differences.
    chain: u32,
    lists: Lists,
}

/// Writes states to a file. The file only grows, so positions in a checkpoint stay valid.
pub struct SpillWriter {
    file: File,
    /// A copy of the file, if there is one: states share blocks, so one damaged block may cost many
    /// states.
    copy: Option<File>,
    /// The number of the file.
    number: u16,
    /// The length of the file.
    written: u64,
    /// Data that is to be appended to the file.
    buffer: Vec<u8>,
    /// Offsets of blocks by digest.
    known: Known,
    /// The state that was spilled last.
    last: Option<Last>,
    /// Large blocks as candidates for the base of a delta, the newest last.
    bases: Vec<Base>,
}

/// The spill file of a run, and those of checkpoints that it was resumed from.
pub struct SpillFile {
    writer: SpillWriter,
    /// Files of checkpoints, in the order of their numbers.
    older: Vec<Older>,
}

/// A file and its length.
type Source = (File, u64);

/// The file of a checkpoint, and its copy if there is one.
struct Older {
    file: Source,
    copy: Option<Source>,
}

impl Older {
    /// Opens a file and its copy. It is enough if one of them can be opened.
    fn open(path: &FilePath) -> io::Result<Older> {
        let open = |path: &FilePath| {
            let file = File::open(path)?;
            let len = file.metadata()?.len();
            Ok::<_, io::Error>((file, len))
        };
        match (open(path), open(&copy_of(path))) {
            (Ok(file), copy) => Ok(Older {
                file,
                copy: copy.ok(),
            }),
            (Err(_), Ok(file)) => Ok(Older { file, copy: None }),
            (Err(error), Err(_)) => Err(error),
        }
    }
}

/// Returns the path of the copy of a checkpoint's file.
pub fn copy_of(path: &FilePath) -> PathBuf {
    path.with_extension("copy")
}

impl SpillFile {
    /// Creates an empty spill file that uses about `memory` bytes for its index.
    pub fn create(path: &FilePath, memory: u64) -> io::Result<SpillFile> {
        Ok(SpillFile {
            writer: SpillWriter::create(path, 0, memory)?,
            older: Vec::new(),
        })
    }

    /// Opens the spill file of an earlier run, and the files of its checkpoints.
    pub fn open(path: &FilePath, older: &[PathBuf], memory: u64) -> io::Result<SpillFile> {
        // A run that was stopped before it spilled anything has no file.
        let options = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        let file = options?;
        let written = file.metadata()?.len();
        Ok(SpillFile {
            writer: SpillWriter::with(file, 0, written, memory),
            older: older
                .iter()
                .map(|path| Older::open(path))
                .collect::<io::Result<_>>()?,
        })
    }

    /// Returns the number for the file of the next checkpoint.
    pub fn next_number(&self) -> u16 {
        self.older.len() as u16 + 1
    }

    /// Returns the writer for new states.
    pub fn writer(&mut self) -> &mut SpillWriter {
        &mut self.writer
    }

    /// Waits until everything is on disk.
    pub fn sync(&self) -> io::Result<()> {
        self.writer.file.sync_data()
    }

    /// Reads from a file or, if it is damaged, from its copy.
    fn read_from<T>(
        &self,
        number: u16,
        read: impl Fn(&File, u64) -> io::Result<T>,
    ) -> io::Result<T> {
        let Some(at) = usize::from(number).checked_sub(1) else {
            return read(&self.writer.file, self.writer.written);
        };
        let older = self.older.get(at).ok_or_else(damaged)?;
        match (read(&older.file.0, older.file.1), &older.copy) {
            (Err(_), Some((file, len))) => read(file, *len),
            (result, _) => result,
        }
    }
}

impl SpillWriter {
    /// Creates an empty file with this number that uses about `memory` bytes for its index.
    pub fn create(path: &FilePath, number: u16, memory: u64) -> io::Result<SpillWriter> {
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(true);
        Ok(SpillWriter::with(options.open(path)?, number, 0, memory))
    }

    /// Creates an empty file with a copy beside it.
    pub fn create_twice(path: &FilePath, number: u16, memory: u64) -> io::Result<SpillWriter> {
        let mut writer = SpillWriter::create(path, number, memory)?;
        writer.copy = File::create(copy_of(path)).ok();
        Ok(writer)
    }

    fn with(file: File, number: u16, written: u64, memory: u64) -> SpillWriter {
        SpillWriter {
            file,
            copy: None,
            number,
            written,
            buffer: Vec::new(),
            known: Known::new(memory),
            last: None,
            bases: Vec::new(),
        }
    }

    /// Waits until everything is on disk, also in the copy.
    pub fn sync(&self) -> io::Result<()> {
        if let Some(copy) = &self.copy {
            copy.sync_data()?;
        }
        self.file.sync_data()
    }

    /// Spills these states, all or none, and returns their positions.
    pub fn put<'p>(
        &mut self,
        states: impl Iterator<Item = &'p State>,
        arena: &Arena,
    ) -> io::Result<Vec<SpillId>> {
        self.put_more(states, arena, &mut Places::default())
    }

    /// Spills these states, all or none. Parts that they share with states in `places` are not
    /// written again.
    pub fn put_more<'p>(
        &mut self,
        states: impl Iterator<Item = &'p State>,
        arena: &Arena,
        places: &mut Places,
    ) -> io::Result<Vec<SpillId>> {
        let mut sharing = Sharing::default();
        let ids = states.map(|state| self.put_state(state, arena, &mut sharing, places));
        let ids = ids.collect::<io::Result<Vec<_>>>();
        self.complete(ids)
    }

    /// Spills states of worlds that come from another search, all or none.
    pub fn put_stored<'s>(
        &mut self,
        states: impl Iterator<Item = &'s StoredWorldState>,
    ) -> io::Result<Vec<SpillId>> {
        let ids = states.map(|state| self.put_stored_state(state));
        let ids = ids.collect::<io::Result<Vec<_>>>();
        self.complete(ids)
    }

    /// Writes the buffer. If that or `ids` failed, forgets all blocks, because none may refer to
    /// what is not in the file.
    fn complete(&mut self, ids: io::Result<Vec<SpillId>>) -> io::Result<Vec<SpillId>> {
        let written = self.flush();
        if ids.is_err() || written.is_err() {
            self.buffer.clear();
            self.known.clear();
            self.last = None;
            self.bases.clear();
        }
        written.and(ids)
    }

    /// Writes the blocks and the record of a state that comes from another search.
    fn put_stored_state(&mut self, state: &StoredWorldState) -> io::Result<SpillId> {
        let mut places = Places::default();
        let received = state.received.iter();
        let received = received.map(|part| self.put_block(&as_json(part)?));
        let received = received.collect::<io::Result<Vec<_>>>()?;
        let conditions = state.conditions.parts.iter();
        let conditions = conditions.map(|part| self.put_block(&part.0));
        let conditions = conditions.collect::<io::Result<Vec<_>>>()?;
        let lists = [
            self.put_blocks(&state.trace.inputs, &mut places.inputs, as_inputs)?,
            self.put_blocks(&state.trace.choices, &mut places.choices, as_json)?,
            received,
            self.put_blocks(&state.trace.answers, &mut places.answers, as_json)?,
            conditions,
        ];
        let foreign = self.put_block(&as_json(&state.conditions.foreign)?)?;
        let record = Record {
            like: None,
            lists,
            pending: state.trace.pending.clone(),
            net: Some((state.net.clone(), foreign)),
        };
        self.put_record(record, state.weight.halvings)
    }

    /// Writes the blocks and the record of a state, except those blocks that are in the file.
    fn put_state<'p>(
        &mut self,
        state: &'p State,
        arena: &Arena,
        sharing: &mut Sharing<'p>,
        places: &mut Places,
    ) -> io::Result<SpillId> {
        let trace = state.path.pending_trace(sharing);
        let mut lists = [
            self.put_blocks(&trace.inputs, &mut places.inputs, as_inputs)?,
            self.put_blocks(&trace.choices, &mut places.choices, as_json)?,
            Vec::new(),
            self.put_blocks(&trace.answers, &mut places.answers, as_json)?,
            Vec::new(),
        ];
        let mut stored = None;
        if let Some(net) = &state.net {
            let store = |items: &Vec<Received>| as_json(&StoredReceived::new(items, arena));
            lists[2] = self.put_blocks(&net.received, &mut places.received, store)?;
            lists[4] = self.put_conditions(&state.path, arena, &mut places.conditions)?;
            let foreign = as_json(&ForeignInputs::of(&state.path, arena))?;
            stored = Some((StoredNet::of(state), self.put_block(&foreign)?));
        }
        let record = Record {
            like: None,
            lists,
            pending: trace.pending,
            net: stored,
        };
        self.put_record(record, state.path.weight.halvings)
    }

    /// Returns the offsets of the parts of a path condition, and writes those that are new.
    fn put_conditions(
        &mut self,
        path: &Path,
        arena: &Arena,
        known: &mut KnownConditions,
    ) -> io::Result<Vec<u64>> {
        let conditions: Vec<ExprId> = path.constraints.iter().collect();
        let parts = condition_parts(&conditions).map(|part| match known.places.get(part) {
            Some(offset) => Ok(*offset),
            None => {
                let offset = self.put_block(&ConditionPart::of(part, arena).0)?;
                known.add(part, offset);
                Ok(offset)
            }
        });
        parts.collect()
    }

    /// Writes a record, as its difference from the last one.
    fn put_record(&mut self, mut record: Record, halvings: u32) -> io::Result<SpillId> {
        let whole = record.lists.clone();
        let mut chain = 0;
        if let Some(last) = self.last.as_ref().filter(|at| at.chain < LONGEST_CHAIN) {
            let common = std::array::from_fn(|at| in_common(&last.lists[at], &record.lists[at]));
            chain = last.chain + 1;
            record.like = Some((last.id, common));
            for (list, common) in record.lists.iter_mut().zip(common) {
                list.drain(..common);
            }
        }
        let bytes = serde_json::to_vec(&record)?;
        let id = SpillId {
            file: self.number,
            offset: self.end(),
            len: length(&bytes)?,
            check: checksum(&bytes),
            halvings,
        };
        self.append(&bytes)?;
        self.last = Some(Last {
            id,
            chain,
            lists: whole,
        });
        Ok(id)
    }

    /// Writes a list of spilled states.
    pub fn bundle(&mut self, states: &[SpillId]) -> io::Result<Bundle> {
        let mut weight = WeightSum::default();
        for state in states {
            weight.add(Weight {
                halvings: state.halvings,
            });
        }
        let bytes = serde_json::to_vec(states)?;
        let bundle = Bundle {
            file: self.number,
            offset: self.end(),
            len: length(&bytes)?,
            check: checksum(&bytes),
            count: states.len() as u32,
            weight: weight.to_hex(),
        };
        self.append(&bytes)?;
        self.flush()?;
        Ok(bundle)
    }

    /// Returns the offsets of a list's blocks, and writes those that are new.
    fn put_blocks<T>(
        &mut self,
        list: &SharedList<T>,
        places: &mut Blocks<T>,
        store: impl Fn(&Vec<T>) -> io::Result<Vec<u8>>,
    ) -> io::Result<Vec<u64>> {
        let mut offsets = Vec::with_capacity(list.len().div_ceil(everett_sim::BLOCK));
        for block in list.blocks() {
            let key = Arc::as_ptr(block) as usize;
            let offset = match places.get(&key) {
                Some((offset, _)) => *offset,
                None => {
                    let offset = self.put_block(&store(block)?)?;
                    places.insert(key, (offset, block.clone()));
                    offset
                }
            };
            offsets.push(offset);
        }
        Ok(offsets)
    }

    /// Writes a block, unless the file has it, and returns its offset.
    fn put_block(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let delta = self.bases.iter().rev().find_map(|base| base.delta(bytes));
        let is_whole = delta.is_none();
        // A delta identifies a block as well as its bytes do, and is much shorter to hash.
        let digest = digest(delta.as_deref().unwrap_or(bytes));
        if let Some(offset) = self.known.get(digest) {
            return Ok(offset);
        }
        let offset = self.end();
        let flag = if is_whole { 0 } else { DELTA };
        let stored = delta.as_deref().unwrap_or(bytes);
        self.append(&(length(stored)? | flag).to_le_bytes())?;
        self.append(&checksum(stored).to_le_bytes())?;
        self.append(stored)?;
        self.known.set(digest, offset);
        if is_whole && bytes.len() >= LARGE {
            if self.bases.len() == MOST_BASES {
                self.bases.remove(0);
            }
            let bytes = bytes.to_vec();
            self.bases.push(Base { offset, bytes });
        }
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

    /// Writes the buffer to the file and its copy.
    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.buffer, self.written)?;
        let copy = self.copy.as_ref();
        if copy.is_some_and(|copy| copy.write_all_at(&self.buffer, self.written).is_err()) {
            // The disk may be full: what is in the copy is still correct.
            self.copy = None;
        }
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

impl SpillFile {
    /// Reads the states of a bundle.
    pub fn unbundle(&self, bundle: &Bundle) -> io::Result<Vec<SpillId>> {
        let states: Vec<SpillId> =
            self.parse(bundle.file, bundle.offset, bundle.len, bundle.check)?;
        let is_wrong = |state: &SpillId| state.halvings > MOST_HALVINGS;
        if states.len() != bundle.count as usize || states.iter().any(is_wrong) {
            return Err(damaged());
        }
        Ok(states)
    }

    /// Reads the trace that leads to a spilled state of a program.
    pub fn get(&self, id: SpillId) -> io::Result<Trace> {
        let record = self.record(id)?;
        self.trace(id.file, &self.lists(&record, 0)?, record.pending)
    }

    /// Reads a spilled state of a world.
    pub fn get_of_world(&self, id: SpillId) -> io::Result<StoredWorldState> {
        let mut record = self.record(id)?;
        let lists = self.lists(&record, 0)?;
        let (net, foreign) = record.net.take().ok_or_else(damaged)?;
        let parts = lists[4].iter();
        let parts = parts.map(|offset| self.whole_block(id.file, *offset).map(ConditionPart));
        let received = lists[2].iter().map(|offset| self.block(id.file, *offset));
        Ok(StoredWorldState {
            weight: Weight {
                halvings: id.halvings,
            },
            net,
            received: received.collect::<io::Result<Vec<_>>>()?,
            conditions: StoredConditions {
                parts: parts.collect::<io::Result<Vec<_>>>()?,
                foreign: self.block(id.file, foreign)?,
            },
            trace: self.trace(id.file, &lists, record.pending)?,
        })
    }

    fn trace(&self, file: u16, lists: &Lists, pending: Option<Pending>) -> io::Result<Trace> {
        Ok(Trace {
            inputs: self.list(file, &lists[0], inputs_from)?,
            choices: self.list(file, &lists[1], from_json)?,
            answers: self.list(file, &lists[3], from_json)?,
            pending,
            ..Trace::default()
        })
    }

    fn record(&self, id: SpillId) -> io::Result<Record> {
        self.parse(id.file, id.offset, id.len, id.check)
    }

    /// Returns the offsets of all blocks of a state, following the chain of differences.
    fn lists(&self, record: &Record, depth: u32) -> io::Result<Lists> {
        let Some((like, common)) = &record.like else {
            return Ok(record.lists.clone());
        };
        if depth > LONGEST_CHAIN {
            return Err(damaged());
        }
        let mut lists = self.lists(&self.record(*like)?, depth + 1)?;
        for (at, list) in lists.iter_mut().enumerate() {
            if common[at] > list.len() {
                return Err(damaged());
            }
            list.truncate(common[at]);
            list.extend(&record.lists[at]);
        }
        Ok(lists)
    }

    fn list<T>(
        &self,
        file: u16,
        offsets: &[u64],
        read: impl Fn(&[u8]) -> io::Result<Vec<T>>,
    ) -> io::Result<SharedList<T>> {
        let block = |offset: &u64| Ok(Arc::new(read(&self.whole_block(file, *offset)?)?));
        let blocks = offsets.iter().map(block).collect::<io::Result<Vec<_>>>()?;
        SharedList::from_blocks(blocks).ok_or_else(damaged)
    }

    fn block<T: DeserializeOwned>(&self, file: u16, offset: u64) -> io::Result<T> {
        from_json(&self.whole_block(file, offset)?)
    }

    /// Reads a block, and applies it to its base if it is a delta.
    fn whole_block(&self, file: u16, offset: u64) -> io::Result<Vec<u8>> {
        let (bytes, is_delta) = self.stored_block(file, offset)?;
        if !is_delta {
            return Ok(bytes);
        }
        let (base, runs) = bytes.split_first_chunk().ok_or_else(damaged)?;
        let (mut whole, is_delta) = self.stored_block(file, u64::from_le_bytes(*base))?;
        if is_delta {
            return Err(damaged());
        }
        apply_delta(&mut whole, runs).ok_or_else(damaged)?;
        Ok(whole)
    }

    /// Reads a block as it is stored, and whether it is a delta.
    fn stored_block(&self, file: u16, offset: u64) -> io::Result<(Vec<u8>, bool)> {
        self.read_from(file, |source, written| {
            let mut header = [[0; 4]; 2];
            source.read_exact_at(header.as_flattened_mut(), offset)?;
            let [len, check] = header.map(u32::from_le_bytes);
            let start = offset.checked_add(HEADER).ok_or_else(damaged)?;
            let bytes = read_checked((source, written), start, len & !DELTA, check)?;
            Ok((bytes, len & DELTA != 0))
        })
    }

    /// Reads a record or a list and checks its checksum.
    fn parse<T: DeserializeOwned>(
        &self,
        file: u16,
        offset: u64,
        len: u32,
        check: u32,
    ) -> io::Result<T> {
        self.read_from(file, |source, written| {
            let bytes = read_checked((source, written), offset, len, check)?;
            Ok(serde_json::from_slice(&bytes)?)
        })
    }
}

/// Reads bytes within the file and checks their checksum.
fn read_checked(
    (source, written): (&File, u64),
    offset: u64,
    len: u32,
    check: u32,
) -> io::Result<Vec<u8>> {
    // The numbers come from a file, which may be damaged.
    let end = offset.checked_add(u64::from(len));
    if end.is_none_or(|end| end > written) {
        return Err(damaged());
    }
    let mut bytes = vec![0; len as usize];
    source.read_exact_at(&mut bytes, offset)?;
    if checksum(&bytes) != check {
        return Err(damaged());
    }
    Ok(bytes)
}

fn as_json<T: Serialize + ?Sized>(value: &T) -> io::Result<Vec<u8>> {
    Ok(serde_json::to_vec(value)?)
}

fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    Ok(serde_json::from_slice(bytes)?)
}

/// Encodes inputs: the length of a JSON list of names and sizes, that list, and the bytes of all
/// inputs. Long inputs as JSON would take most of the time of spilling.
fn as_inputs(inputs: &Vec<TraceInput>) -> io::Result<Vec<u8>> {
    let sizes = inputs.iter().map(|input| (&*input.name, input.bytes.len()));
    let sizes = as_json(&sizes.collect::<Vec<_>>())?;
    let len = inputs.iter().map(|input| input.bytes.len()).sum::<usize>();
    let mut bytes = Vec::with_capacity(4 + sizes.len() + len);
    bytes.extend(length(&sizes)?.to_le_bytes());
    bytes.extend(sizes);
    for input in inputs {
        bytes.extend(&input.bytes);
    }
    Ok(bytes)
}

/// Decodes the inputs that `as_inputs` encoded.
fn inputs_from(bytes: &[u8]) -> io::Result<Vec<TraceInput>> {
    let (len, rest) = bytes.split_first_chunk().ok_or_else(damaged)?;
    let sizes = rest.split_at_checked(u32::from_le_bytes(*len) as usize);
    let (sizes, mut rest) = sizes.ok_or_else(damaged)?;
    let sizes: Vec<(String, usize)> = from_json(sizes)?;
    let inputs = sizes.into_iter().map(|(name, size)| {
        let (bytes, after) = rest.split_at_checked(size).ok_or_else(damaged)?;
        rest = after;
        Ok(TraceInput {
            name: name.into(),
            bytes: bytes.to_vec(),
        })
    });
    inputs.collect()
}

/// Returns the length of the common prefix of two lists.
fn in_common(one: &[u64], other: &[u64]) -> usize {
    let pairs = one.iter().zip(other);
    pairs.take_while(|(one, other)| one == other).count()
}

fn length(bytes: &[u8]) -> io::Result<u32> {
    let len = u32::try_from(bytes.len()).ok();
    let len = len.filter(|len| len & DELTA == 0);
    len.ok_or_else(|| ErrorKind::FileTooLarge.into())
}

fn damaged() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the file of states is damaged")
}

/// Returns the checksum by which damaged bytes are detected.
fn checksum(bytes: &[u8]) -> u32 {
    Digest128::new().then_bytes(bytes).finish() as u32
}

/// Returns a digest of a block that is wide enough to have no accidental collisions in a run.
fn digest(bytes: &[u8]) -> u128 {
    Digest128::new().then_bytes(bytes).finish()
}

#[cfg(test)]
mod tests;
