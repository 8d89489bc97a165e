//! Serialises pending traces as a compressed tree: traces are sorted, and each is stored as its
//! difference from the previous one. The input of the reader is untrusted.

use everett::{Pending, Trace, TraceChoice, TraceInput};
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use std::collections::BTreeMap;

use crate::error::{Error, Result};

const MAGIC: &[u8] = b"everett states 1\n";
const LEVEL: u8 = 6;
/// Maximum size of an uncompressed job in bytes.
const MOST_BYTES: usize = 256 << 20;
/// Maximum number of choices and bytes of inputs in the states of a job, with common prefixes
/// counted each time.
const MOST_CONTENTS: usize = 256 << 20;
/// Maximum number of forks of a path. The sum of weights has as many digits.
const MOST_HALVINGS: u32 = 1 << 20;

/// Sorts traces so that neighbours have the longest common prefixes.
pub(crate) fn sort(traces: &mut [Trace]) {
    fn choices(trace: &Trace) -> impl Iterator<Item = (&impl Ord, u32, u32)> {
        let choices = trace.choices.iter();
        choices.map(|choice| (&choice.site, choice.picked, choice.alternatives))
    }
    fn inputs(trace: &Trace) -> impl Iterator<Item = (&str, &[u8])> {
        let inputs = trace.inputs.iter();
        inputs.map(|input| (&*input.name, &input.bytes[..]))
    }
    let position = |trace: &Trace| {
        let pending = trace.pending.as_ref();
        pending.map(|pending| (pending.answered, pending.excluded.clone()))
    };
    traces.sort_by(|a, b| {
        let by_choices = choices(a).cmp(choices(b));
        let by_inputs = || inputs(a).cmp(inputs(b));
        by_choices
            .then_with(by_inputs)
            .then_with(|| position(a).cmp(&position(b)))
    });
}

/// Serialises states, in this order.
pub fn pack(traces: &[Trace]) -> Vec<u8> {
    let mut texts = Texts::default();
    let mut body = Vec::new();
    let empty = Trace::default();
    let mut before = &empty;
    for trace in traces {
        write_choices(&mut body, &mut texts, before, trace);
        write_inputs(&mut body, &mut texts, before, trace);
        let pending = trace.pending.clone().unwrap_or_default();
        write_number(&mut body, pending.answered);
        write_number(&mut body, u64::from(pending.halvings));
        write_number(&mut body, u64::from(pending.depth));
        write_number(&mut body, pending.instructions);
        write_number(&mut body, pending.excluded.len() as u64);
        for value in pending.excluded {
            write_number(&mut body, value);
        }
        write_number(&mut body, pending.merges.len() as u64);
        for at in pending.merges {
            write_number(&mut body, at);
        }
        before = trace;
    }
    let mut all = Vec::new();
    write_number(&mut all, texts.list.len() as u64);
    for text in &texts.list {
        write_bytes(&mut all, text.as_bytes());
    }
    write_number(&mut all, traces.len() as u64);
    all.extend(body);
    let mut packed = MAGIC.to_vec();
    packed.extend(compress_to_vec_zlib(&all, LEVEL));
    packed
}

/// Reads states from untrusted bytes.
pub fn unpack(packed: &[u8]) -> Result<Vec<Trace>> {
    let states = packed.strip_prefix(MAGIC);
    let states = states.ok_or_else(|| Error::damaged("these are not states"))?;
    let all = decompress_to_vec_zlib_with_limit(states, MOST_BYTES);
    let all = all.map_err(|_| Error::damaged("states that cannot be decompressed"))?;
    let mut reader = Reader {
        left: &all,
        contents: 0,
    };
    let states = reader.states();
    let states = states.ok_or_else(|| Error::damaged("states that end in the middle"))?;
    match reader.left {
        [] => Ok(states),
        _ => Err(Error::damaged("states with something behind them")),
    }
}

/// Names of inputs and texts of choices, each stored once.
#[derive(Default)]
struct Texts {
    numbers: BTreeMap<String, u64>,
    list: Vec<String>,
}

impl Texts {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.list.len() as u64;
        self.numbers.insert(text.to_owned(), number);
        self.list.push(text.to_owned());
        number
    }
}

fn write_number(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

fn write_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    write_number(to, bytes.len() as u64);
    to.extend(bytes);
}

fn common<T: PartialEq>(a: impl IntoIterator<Item = T>, b: impl IntoIterator<Item = T>) -> usize {
    let pairs = a.into_iter().zip(b);
    pairs.take_while(|(a, b)| a == b).count()
}

fn write_choices(to: &mut Vec<u8>, texts: &mut Texts, before: &Trace, trace: &Trace) {
    let shared = common(before.choices.iter(), trace.choices.iter());
    write_number(to, shared as u64);
    write_number(to, (trace.choices.len() - shared) as u64);
    for choice in trace.choices.iter().skip(shared) {
        write_number(to, texts.number(&choice.site.to_string()));
        write_number(to, u64::from(choice.alternatives));
        write_number(to, u64::from(choice.picked));
    }
}

fn write_inputs(to: &mut Vec<u8>, texts: &mut Texts, before: &Trace, trace: &Trace) {
    let shared = common(before.inputs.iter(), trace.inputs.iter());
    write_number(to, shared as u64);
    write_number(to, (trace.inputs.len() - shared) as u64);
    for (at, input) in trace.inputs.iter().enumerate().skip(shared) {
        write_number(to, texts.number(&input.name));
        let there = before.inputs.get(at).map_or(&[][..], |input| &input.bytes);
        let start = common(there, &input.bytes);
        write_number(to, start as u64);
        write_bytes(to, &input.bytes[start..]);
    }
}

/// A reader of the output of [`pack`]. Its methods return `None` for anything else.
struct Reader<'b> {
    left: &'b [u8],
    /// Number of choices and bytes of inputs read so far.
    contents: usize,
}

impl<'b> Reader<'b> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, left) = self.left.split_first()?;
            self.left = left;
            let bits = u64::from(byte & 0x7f);
            if (bits << shift) >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    fn size(&mut self) -> Option<usize> {
        self.number()?.try_into().ok()
    }

    /// Returns the number of the following items, each of which takes at least one byte.
    fn count(&mut self) -> Option<usize> {
        self.size().filter(|count| *count <= self.left.len())
    }

    fn bytes(&mut self) -> Option<&'b [u8]> {
        let count = self.size()?;
        let (bytes, left) = self.left.split_at_checked(count)?;
        self.left = left;
        Some(bytes)
    }

    /// Adds the contents of a trace to the total, so that a small input cannot expand without
    /// limit.
    fn add_contents(&mut self, count: usize) -> Option<()> {
        self.contents = self.contents.checked_add(count)?;
        (self.contents <= MOST_CONTENTS).then_some(())
    }

    fn states(&mut self) -> Option<Vec<Trace>> {
        let count = self.count()?;
        let mut texts = Vec::with_capacity(count);
        for _ in 0..count {
            texts.push(std::str::from_utf8(self.bytes()?).ok()?);
        }
        let count = self.count()?;
        let mut states: Vec<Trace> = Vec::with_capacity(count.min(1 << 16));
        for _ in 0..count {
            let empty = Trace::default();
            let before = states.last().unwrap_or(&empty);
            let choices = self.choices(&texts, before)?;
            let inputs = self.inputs(&texts, before)?;
            let pending = self.pending()?;
            states.push(Trace {
                inputs: inputs.into_iter().collect(),
                choices: choices.into_iter().collect(),
                pending: Some(pending),
                ..Trace::default()
            });
        }
        Some(states)
    }

    fn choices(&mut self, texts: &[&str], before: &Trace) -> Option<Vec<TraceChoice>> {
        let (shared, count) = (self.size()?, self.count()?);
        self.add_contents(shared.checked_add(count)?)?;
        let mut choices: Vec<_> = before.choices.iter().take(shared).cloned().collect();
        if choices.len() < shared {
            return None;
        }
        for _ in 0..count {
            let site = texts.get(self.size()?)?.parse().ok()?;
            let (alternatives, picked) = (self.small()?, self.small()?);
            if picked >= alternatives {
                return None;
            }
            choices.push(TraceChoice {
                site,
                alternatives,
                picked,
            });
        }
        Some(choices)
    }

    fn inputs(&mut self, texts: &[&str], before: &Trace) -> Option<Vec<TraceInput>> {
        let (shared, count) = (self.size()?, self.count()?);
        let mut inputs: Vec<_> = before.inputs.iter().take(shared).cloned().collect();
        if inputs.len() < shared {
            return None;
        }
        for input in &inputs {
            self.add_contents(1 + input.bytes.len())?;
        }
        for at in shared..shared.checked_add(count)? {
            let name = *texts.get(self.size()?)?;
            let start = self.size()?;
            let there = before.inputs.get(at).map_or(&[][..], |input| &input.bytes);
            let mut bytes = there.get(..start)?.to_vec();
            bytes.extend(self.bytes()?);
            self.add_contents(1 + bytes.len())?;
            inputs.push(TraceInput {
                name: name.into(),
                bytes,
            });
        }
        Some(inputs)
    }

    fn pending(&mut self) -> Option<Pending> {
        let answered = self.number()?;
        let halvings = self.small()?;
        let (depth, instructions) = (self.small()?, self.number()?);
        // Counters may grow from there.
        let is_possible = halvings <= MOST_HALVINGS
            && depth <= u32::MAX / 2
            && instructions <= u64::MAX / 2
            && answered <= u64::MAX / 2;
        let excluded = self.numbers()?;
        let merges = self.numbers()?;
        is_possible.then_some(Pending {
            answered,
            excluded,
            halvings,
            depth,
            instructions,
            // Nobody hears of the output of a job, and a job has no seeds.
            printed: [0; 2],
            notes: 0,
            seeds: Vec::new(),
            merges,
        })
    }

    fn numbers(&mut self) -> Option<Vec<u64>> {
        let count = self.count()?;
        self.add_contents(count)?;
        (0..count).map(|_| self.number()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states() -> Vec<Trace> {
        let state = |number: u32| Trace {
            inputs: [
                ("stdin", vec![7, number as u8, 9]),
                ("arg0", vec![number as u8; 2]),
            ]
            .into_iter()
            .map(|(name, bytes)| TraceInput {
                name: name.into(),
                bytes,
            })
            .collect(),
            choices: (0..number % 5)
                .map(|at| TraceChoice {
                    site: "fault:read:EIO,EINTR".parse().expect("a site"),
                    alternatives: 3,
                    picked: (number + at) % 3,
                })
                .collect(),
            pending: Some(Pending {
                answered: u64::from(number) << 30,
                excluded: vec![u64::MAX; number as usize % 3],
                halvings: number,
                depth: number,
                instructions: 1 << 40,
                printed: [0; 2],
                notes: 0,
                seeds: Vec::new(),
                merges: vec![7; number as usize % 2],
            }),
            ..Trace::default()
        };
        (0..40).map(state).collect()
    }

    #[test]
    fn states_come_back() {
        let mut states = states();
        sort(&mut states);
        let packed = pack(&states);
        assert_eq!(unpack(&packed).expect("states"), states);
        let plain = serde_json::to_vec(&states).expect("text").len();
        assert!(packed.len() * 8 < plain, "{} of {plain}", packed.len());
        let mut again = states.clone();
        again.reverse();
        sort(&mut again);
        assert_eq!(pack(&again), packed);
        assert_eq!(unpack(&pack(&[])).expect("nothing"), []);
    }

    /// The bytes of a job are untrusted.
    #[test]
    fn damaged_states_are_refused() {
        let packed = pack(&states());
        for end in 0..packed.len() {
            assert!(unpack(&packed[..end]).is_err(), "{end}");
        }
        // The checksum of the compressed bytes is no protection: an attacker can write it, too.
        let (_, compressed) = packed.split_at(MAGIC.len());
        let plain = decompress_to_vec_zlib_with_limit(compressed, MOST_BYTES).expect("bytes");
        for at in 0..plain.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut other = plain.clone();
                other[at] ^= flip;
                let mut bytes = MAGIC.to_vec();
                bytes.extend(compress_to_vec_zlib(&other, 1));
                // The bytes are either refused or valid states: nothing panics, and nothing grows
                // without limit.
                if let Ok(states) = unpack(&bytes) {
                    assert!(states.len() <= plain.len());
                }
            }
        }
    }

    #[test]
    fn little_does_not_become_much() {
        // A long input, and then states that have only a common prefix with the previous one.
        let mut plain = Vec::new();
        write_number(&mut plain, 1);
        write_bytes(&mut plain, b"x");
        write_number(&mut plain, 1 << 16);
        let mut state = |shared: u64, bytes: Option<&[u8]>| {
            plain.extend([0, 0]);
            write_number(&mut plain, shared);
            write_number(&mut plain, u64::from(bytes.is_some()));
            if let Some(bytes) = bytes {
                plain.extend([0, 0]);
                write_bytes(&mut plain, bytes);
            }
            plain.extend([0, 20, 20, 0, 0]);
        };
        state(0, Some(&[0; 1 << 20]));
        (1..1 << 16).for_each(|_| state(1, None));
        let mut bytes = MAGIC.to_vec();
        bytes.extend(compress_to_vec_zlib(&plain, 6));
        assert!(unpack(&bytes).is_err());
    }
}
