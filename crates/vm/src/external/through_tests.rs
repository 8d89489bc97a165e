//! Tests that compare accesses and operations through symbolic pointers with the same operations on
//! an array of bytes.

use proptest::prelude::*;

use crate::bug::BugKind;
use crate::testing::Harness;
use crate::value::Value;

const SIZE: usize = 240;
/// A byte that was not found.
const ABSENT: u64 = u64::MAX;

/// A position in the block: an index, the distance between two elements, and an offset in the
/// element.
#[derive(Copy, Clone, Debug)]
struct BlockPosition {
    index: u8,
    step: u64,
    field: u64,
    is_symbolic: bool,
}

impl BlockPosition {
    fn offset(&self) -> usize {
        usize::from(self.index) * self.step as usize + self.field as usize
    }

    fn pointer(&self, harness: &mut Harness, block: u64) -> Value {
        if !self.is_symbolic {
            return Value::concrete(block + self.offset() as u64);
        }
        let index = harness.symbolic_term(self.index.into(), 8);
        let arena = &mut harness.arena;
        let index = arena.zext(index, 64);
        let step = arena.constant(64, self.step);
        let start = arena.constant(64, block + self.field);
        let offset = arena.binary(everett_expr::BinaryOp::Mul, index, step);
        let pointer = arena.add(offset, start);
        Value::of_term(arena, pointer)
    }
}

#[derive(Clone, Debug)]
enum Act {
    Store(BlockPosition, usize, u64),
    Load(BlockPosition, usize),
    Copy(BlockPosition, BlockPosition, usize, bool),
    Fill(BlockPosition, u8, usize),
    Compare(BlockPosition, BlockPosition, usize),
    CopyString(BlockPosition, BlockPosition),
    CompareStrings(BlockPosition, BlockPosition),
    Length(BlockPosition),
    /// With at most so many bytes.
    ShortLength(BlockPosition, usize),
    CopyField(BlockPosition, BlockPosition, usize),
    Append(BlockPosition, BlockPosition),
    AppendShort(BlockPosition, BlockPosition, usize),
    Find(BlockPosition, u8),
    FindLast(BlockPosition, u8),
    FindIn(BlockPosition, u8, usize),
}

fn place() -> impl Strategy<Value = BlockPosition> {
    let step = prop_oneof![Just(1u64), Just(4), Just(8), Just(12), Just(24)];
    (any::<u8>(), step, 0u64..12, prop::bool::weighted(0.8)).prop_map(
        |(index, step, field, is_symbolic)| BlockPosition {
            index: index % (SIZE as u64 / step) as u8,
            step,
            field,
            is_symbolic,
        },
    )
}

fn act() -> impl Strategy<Value = Act> {
    let len = prop_oneof![Just(1usize), Just(2), Just(4), Just(8)];
    prop_oneof![
        4 => (place(), len.clone(), any::<u64>()).prop_map(|(at, len, value)| Act::Store(at, len, value)),
        3 => (place(), len).prop_map(|(at, len)| Act::Load(at, len)),
        1 => (place(), place(), 0usize..30, any::<bool>()).prop_map(|(to, from, len, may)| Act::Copy(to, from, len, may)),
        1 => (place(), any::<u8>(), 0usize..30).prop_map(|(at, byte, len)| Act::Fill(at, byte, len)),
        1 => (place(), place(), 0usize..30).prop_map(|(a, b, len)| Act::Compare(a, b, len)),
        1 => (place(), place()).prop_map(|(to, from)| Act::CopyString(to, from)),
        1 => (place(), place()).prop_map(|(a, b)| Act::CompareStrings(a, b)),
        1 => place().prop_map(Act::Length),
        1 => (place(), 0usize..30).prop_map(|(at, limit)| Act::ShortLength(at, limit)),
        1 => (place(), place(), 0usize..30).prop_map(|(to, from, size)| Act::CopyField(to, from, size)),
        1 => (place(), place()).prop_map(|(to, from)| Act::Append(to, from)),
        1 => (place(), place(), 0usize..30).prop_map(|(to, from, limit)| Act::AppendShort(to, from, limit)),
        1 => (place(), wanted()).prop_map(|(at, byte)| Act::Find(at, byte)),
        1 => (place(), wanted()).prop_map(|(at, byte)| Act::FindLast(at, byte)),
        1 => (place(), wanted(), 0usize..30).prop_map(|(at, byte, limit)| Act::FindIn(at, byte, limit)),
    ]
}

fn wanted() -> impl Strategy<Value = u8> {
    prop_oneof![Just(0u8), 0x61u8..0x64]
}

/// The memory of the reference model.
struct Bytes(Vec<u8>);

impl Bytes {
    fn get(&self, at: usize, len: usize) -> Result<&[u8], BugKind> {
        self.0.get(at..at + len).ok_or(BugKind::OutOfBounds)
    }

    fn put(&mut self, at: usize, bytes: &[u8]) -> Result<(), BugKind> {
        self.get(at, bytes.len())?;
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn length(&self, at: usize) -> Result<usize, BugKind> {
        self.find(at, usize::MAX, &[0])
    }

    /// Returns the offset of the first of the wanted bytes, or `limit`.
    fn find(&self, at: usize, limit: usize, wanted: &[u8]) -> Result<usize, BugKind> {
        for offset in 0..limit {
            if wanted.contains(&self.get(at + offset, 1)?[0]) {
                return Ok(offset);
            }
        }
        Ok(limit)
    }

    /// Copies `len` bytes of a string of which `read` were read, and zeros up to `total`.
    fn put_string(
        &mut self,
        (to, total): (usize, usize),
        (from, read): (usize, usize),
        len: usize,
    ) -> Result<(), BugKind> {
        self.get(to, total)?;
        // A string of which nothing is read may be anywhere.
        let mut bytes = match len {
            0 => Vec::new(),
            _ => self.get(from, len)?.to_vec(),
        };
        if to < from + read && from < to + total {
            return Err(BugKind::OverlappingCopy);
        }
        bytes.resize(total, 0);
        self.put(to, &bytes)
    }

    fn append(&mut self, to: usize, from: usize, limit: usize) -> Result<(), BugKind> {
        let has = self.length(to)?;
        let len = self.find(from, limit, &[0])?;
        self.put_string(
            (to + has, len + 1),
            (from, limit.min(len.saturating_add(1))),
            len,
        )
    }

    fn copy(
        &mut self,
        to: usize,
        from: usize,
        len: usize,
        may_overlap: bool,
    ) -> Result<(), BugKind> {
        self.get(to, len)?;
        let bytes = self.get(from, len)?.to_vec();
        let overlap = to != from && to < from + len && from < to + len;
        if overlap && !may_overlap {
            return Err(BugKind::OverlappingCopy);
        }
        self.put(to, &bytes)
    }

    fn compare(&self, a: usize, b: usize, len: usize, strings: bool) -> Result<u64, BugKind> {
        for at in 0..len {
            let (x, y) = (self.get(a + at, 1)?[0], self.get(b + at, 1)?[0]);
            if x != y || (strings && x == 0) {
                return Ok(u64::from((i32::from(x) - i32::from(y)) as u32));
            }
        }
        Ok(0)
    }

    fn act(&mut self, act: &Act) -> Result<u64, BugKind> {
        match act {
            Act::Store(at, len, value) => self
                .put(at.offset(), &value.to_le_bytes()[..*len])
                .map(|()| 0),
            Act::Load(at, len) => {
                let mut bytes = [0; 8];
                bytes[..*len].copy_from_slice(self.get(at.offset(), *len)?);
                Ok(u64::from_le_bytes(bytes))
            }
            Act::Copy(to, from, len, may) if *len > 0 => self
                .copy(to.offset(), from.offset(), *len, *may)
                .map(|()| 0),
            Act::Fill(at, byte, len) if *len > 0 => {
                self.put(at.offset(), &vec![*byte; *len]).map(|()| 0)
            }
            Act::Copy(..) | Act::Fill(..) => Ok(0),
            Act::Compare(a, b, len) => {
                if *len > 0 {
                    self.get(a.offset(), *len)?;
                    self.get(b.offset(), *len)?;
                }
                self.compare(a.offset(), b.offset(), *len, false)
            }
            Act::CopyString(to, from) => {
                let len = self.length(from.offset())?;
                self.put_string((to.offset(), len + 1), (from.offset(), len + 1), len)
                    .map(|()| 0)
            }
            Act::CompareStrings(a, b) => self.compare(a.offset(), b.offset(), usize::MAX, true),
            Act::Length(at) => self.length(at.offset()).map(|len| len as u64),
            Act::ShortLength(at, limit) => {
                self.find(at.offset(), *limit, &[0]).map(|len| len as u64)
            }
            Act::CopyField(to, from, size) if *size > 0 => {
                self.get(to.offset(), *size)?;
                let len = self.find(from.offset(), *size, &[0])?;
                let read = (from.offset(), (*size).min(len + 1));
                self.put_string((to.offset(), *size), read, len).map(|()| 0)
            }
            Act::CopyField(..) => Ok(0),
            Act::Append(to, from) => self
                .append(to.offset(), from.offset(), usize::MAX)
                .map(|()| 0),
            Act::AppendShort(to, from, limit) => {
                self.append(to.offset(), from.offset(), *limit).map(|()| 0)
            }
            Act::Find(at, byte) => {
                let found = self.find(at.offset(), usize::MAX, &[*byte, 0])?;
                let is_it = self.0[at.offset() + found] == *byte;
                Ok(if is_it {
                    (at.offset() + found) as u64
                } else {
                    ABSENT
                })
            }
            Act::FindLast(at, byte) => {
                let end = at.offset() + self.length(at.offset())?;
                let string = &self.0[at.offset()..=end];
                let found = string.iter().rposition(|one| one == byte);
                Ok(found.map_or(ABSENT, |found| (at.offset() + found) as u64))
            }
            Act::FindIn(at, byte, limit) => {
                let found = self.find(at.offset(), *limit, &[*byte])?;
                Ok(if found < *limit {
                    (at.offset() + found) as u64
                } else {
                    ABSENT
                })
            }
        }
    }
}

fn perform(harness: &mut Harness, block: u64, act: &Act) -> Result<u64, BugKind> {
    let mut pointer = |place: &BlockPosition| place.pointer(harness, block);
    let len = |len: &usize| Value::concrete(*len as u64);
    let (name, args, is_address) = match act {
        Act::Store(at, len, value) => {
            let pointer = pointer(at);
            let value = harness.symbolic(*value & (u64::MAX >> (64 - 8 * len)), *len as u32);
            let done = harness.vm(|vm| vm.store(pointer, *len, value));
            return harness.outcome(done.map(|()| crate::vm::Done::Void));
        }
        Act::Load(at, len) => {
            let pointer = pointer(at);
            let done = harness.vm(|vm| vm.load(pointer, *len));
            return harness.outcome(done.map(crate::vm::Done::Value));
        }
        Act::Copy(to, from, bytes, may) => {
            let name = if *may { "memmove" } else { "memcpy" };
            (name, vec![pointer(to), pointer(from), len(bytes)], true)
        }
        Act::Fill(at, byte, bytes) => {
            let byte = Value::concrete(u64::from(*byte));
            ("memset", vec![pointer(at), byte, len(bytes)], true)
        }
        Act::Compare(a, b, bytes) => ("memcmp", vec![pointer(a), pointer(b), len(bytes)], false),
        Act::CopyString(to, from) => ("strcpy", vec![pointer(to), pointer(from)], true),
        Act::CompareStrings(a, b) => ("strcmp", vec![pointer(a), pointer(b)], false),
        Act::Length(at) => ("strlen", vec![pointer(at)], false),
        Act::ShortLength(at, limit) => ("strnlen", vec![pointer(at), len(limit)], false),
        Act::CopyField(to, from, size) => {
            ("strncpy", vec![pointer(to), pointer(from), len(size)], true)
        }
        Act::Append(to, from) => ("strcat", vec![pointer(to), pointer(from)], true),
        Act::AppendShort(to, from, limit) => (
            "strncat",
            vec![pointer(to), pointer(from), len(limit)],
            true,
        ),
        Act::Find(at, byte) => (
            "strchr",
            vec![pointer(at), Value::concrete(u64::from(*byte))],
            false,
        ),
        Act::FindLast(at, byte) => (
            "strrchr",
            vec![pointer(at), Value::concrete(u64::from(*byte))],
            false,
        ),
        Act::FindIn(at, byte, limit) => {
            let byte = Value::concrete(u64::from(*byte));
            ("memchr", vec![pointer(at), byte, len(limit)], false)
        }
    };
    let done = harness.call(name, &args);
    let result = harness.outcome(done)?;
    if is_address {
        assert_eq!(
            result,
            harness.eval_value(args[0]),
            "{name} returns its destination"
        );
        return Ok(0);
    }
    if matches!(act, Act::Find(..) | Act::FindLast(..) | Act::FindIn(..)) {
        return Ok(if result == 0 { ABSENT } else { result - block });
    }
    Ok(result)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn symbolic_pointers_act_as_concrete_ones(
        start in prop::collection::vec(prop_oneof![3 => 0x61u8..0x63, 1 => Just(0)], SIZE),
        blur in any::<u64>(),
        acts in prop::collection::vec(act(), 1..12),
    ) {
        let mut harness = Harness::new();
        let block = harness.block(&start);
        for at in (0..SIZE as u64).filter(|at| blur >> (at % 64) & 1 != 0) {
            harness.make_symbolic(block + at);
        }
        let mut reference = Bytes(start);
        for act in &acts {
            let (done, expected) = (perform(&mut harness, block, act), reference.act(act));
            prop_assert_eq!(done, expected, "{:?}", act);
            if done.is_err() {
                break;
            }
        }
        prop_assert_eq!(harness.bytes(block, SIZE), reference.0);
    }
}
