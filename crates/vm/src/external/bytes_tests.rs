//! Tests that compare byte and string operations with reference loops, on concrete and symbolic
//! data, inside objects and at their bounds.

use everett_expr::{Arena, ArrayId, ExprId};
use everett_ir::code::{Call, Callee, ExternalId, ValueType};
use proptest::prelude::*;

use crate::bug::BugKind;
use crate::choice::ChoiceSite;
use crate::external::resolve;
use crate::memory::ObjectKind;
use crate::oracle::{Oracle, Suspend};
use crate::testing::Harness;
use crate::value::Value;
use crate::vm::{Arguments, ExecContext, Interrupt, Vm};

/// A process with two blocks. The flags say which bytes are symbolic.
struct Pair {
    harness: Harness,
    a: u64,
    b: u64,
}

fn pair(a: &[u8], b: &[u8], blur: u64) -> Pair {
    let mut harness = Harness::new();
    let (start_a, start_b) = (harness.block(a), harness.block(b));
    for at in 0..a.len() as u64 {
        if blur >> (at % 32) & 1 != 0 {
            harness.make_symbolic(start_a + at);
        }
    }
    for at in 0..b.len() as u64 {
        if blur >> (32 + at % 32) & 1 != 0 {
            harness.make_symbolic(start_b + at);
        }
    }
    Pair {
        harness,
        a: start_a,
        b: start_b,
    }
}

/// Returns the length of the string in a block; `None` if it is not terminated.
fn length(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == 0)
}

/// Generates the content of a block from few byte values, so that equal bytes and zeros are
/// frequent.
fn text() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(
        prop_oneof![6 => 0x61u8..0x64, 1 => Just(0), 1 => any::<u8>()],
        1..24,
    )
}

fn difference(a: &[u8], b: &[u8], limit: usize, strings: bool) -> Option<u64> {
    for at in 0..limit {
        let (x, y) = (*a.get(at)?, *b.get(at)?);
        if x != y || (strings && x == 0) {
            return Some(u64::from((i32::from(x) - i32::from(y)) as u32));
        }
    }
    Some(0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn copies(a in text(), b in text(), blur in any::<u64>(), at in 0usize..24, len in 0usize..24) {
        let Pair { mut harness, a: to, b: from } = pair(&a, &b, blur);
        let done = harness.call_concrete("memcpy", &[to + at as u64, from, len as u64]);
        if len > b.len() || (len > 0 && at + len > a.len()) {
            prop_assert_eq!(done, Err(BugKind::OutOfBounds));
            prop_assert_eq!(harness.bytes(to, a.len()), a);
            return Ok(());
        }
        prop_assert_eq!(done, Ok(to + at as u64));
        let mut expected = a.clone();
        if len > 0 {
            expected[at..at + len].copy_from_slice(&b[..len]);
        }
        prop_assert_eq!(harness.bytes(to, a.len()), expected);
        prop_assert_eq!(harness.world.questions, 0);
    }

    #[test]
    fn moves(a in text(), blur in any::<u64>(), to in 0usize..24, from in 0usize..24, len in 0usize..24) {
        let len = len % (a.len() + 1);
        let (to, from) = (to % (a.len() - len + 1), from % (a.len() - len + 1));
        let Pair { mut harness, a: start, .. } = pair(&a, &[], blur);
        let args = [start + to as u64, start + from as u64, len as u64];
        let overlap = to != from && to < from + len && from < to + len;
        if overlap {
            prop_assert_eq!(harness.call_concrete("memcpy", &args), Err(BugKind::OverlappingCopy));
        }
        prop_assert_eq!(harness.call_concrete("memmove", &args), Ok(args[0]));
        let mut expected = a.clone();
        expected.copy_within(from..from + len, to);
        prop_assert_eq!(harness.bytes(start, a.len()), expected);
    }

    #[test]
    fn compares(a in text(), b in text(), blur in any::<u64>(), len in 0usize..26) {
        let Pair { mut harness, a: x, b: y } = pair(&a, &b, blur);
        let done = harness.call_concrete("memcmp", &[x, y, len as u64]);
        if len > a.len() || len > b.len() {
            prop_assert_eq!(done, Err(BugKind::OutOfBounds));
        } else {
            prop_assert_eq!(done.ok(), difference(&a, &b, len, false));
        }
        prop_assert_eq!(harness.world.questions, 0);
    }

    #[test]
    fn compares_strings(a in text(), b in text(), blur in any::<u64>(), len in 0usize..26) {
        let Pair { mut harness, a: x, b: y } = pair(&a, &b, blur);
        let done = harness.call_concrete("strcmp", &[x, y]);
        match difference(&a, &b, usize::MAX, true) {
            Some(value) => prop_assert_eq!(done, Ok(value)),
            None => prop_assert_eq!(done, Err(BugKind::OutOfBounds)),
        }
        prop_assert!(harness.world.questions <= 1);
        let done = harness.call_concrete("strncmp", &[x, y, len as u64]);
        match difference(&a, &b, len, true) {
            Some(value) => prop_assert_eq!(done, Ok(value)),
            None => prop_assert_eq!(done, Err(BugKind::OutOfBounds)),
        }
    }

    #[test]
    fn finds(a in text(), blur in any::<u64>(), wanted in 0x60u8..0x64, symbolic in any::<bool>(), limit in 0usize..26) {
        let Pair { mut harness, a: start, .. } = pair(&a, &[], blur);
        let byte = match symbolic {
            true => harness.symbolic(u64::from(wanted), 4),
            false => Value::concrete(u64::from(wanted) | 0x100),
        };
        let at = |position: Option<usize>| position.map_or(0, |at| start + at as u64);
        let place = Value::concrete(start);
        let first = a.iter().take(limit).position(|byte| *byte == wanted);
        let done = harness.call("memchr", &[place, byte, Value::concrete(limit as u64)]);
        let expected = match first {
            None if limit > a.len() => Err(BugKind::OutOfBounds),
            found => Ok(at(found)),
        };
        prop_assert_eq!(harness.outcome(done), expected);
        if limit <= a.len() {
            let last = a[..limit].iter().rposition(|byte| *byte == wanted);
            let done = harness.call("memrchr", &[place, byte, Value::concrete(limit as u64)]);
            prop_assert_eq!(harness.outcome(done), Ok(at(last)));
        }
        let stop = a.iter().position(|byte| *byte == wanted || *byte == 0);
        let none = Err(BugKind::OutOfBounds);
        let done = harness.call("strchrnul", &[place, byte]);
        prop_assert_eq!(harness.outcome(done), stop.map(|stop| at(Some(stop))).ok_or(BugKind::OutOfBounds));
        let done = harness.call("strchr", &[place, byte]);
        prop_assert_eq!(harness.outcome(done), match stop {
            None => none,
            Some(stop) if a[stop] == wanted => Ok(at(Some(stop))),
            Some(_) => Ok(0),
        });
        let done = harness.call("strrchr", &[place, byte]);
        prop_assert_eq!(harness.outcome(done), match length(&a) {
            None => none,
            Some(end) => Ok(at(a[..=end].iter().rposition(|byte| *byte == wanted))),
        });
    }

    #[test]
    fn measures(a in text(), blur in any::<u64>(), limit in 0u64..30, symbolic in any::<bool>()) {
        let Pair { mut harness, a: start, .. } = pair(&a, &[], blur);
        let end = length(&a).map(|len| len as u64);
        prop_assert_eq!(harness.call_concrete("strlen", &[start]), end.ok_or(BugKind::OutOfBounds));
        let bound = if symbolic { harness.symbolic(limit, 8) } else { Value::concrete(limit) };
        let done = harness.call("strnlen", &[Value::concrete(start), bound]);
        let expected = match end {
            Some(end) => Ok(end.min(limit)),
            None if limit <= a.len() as u64 => Ok(limit),
            None => Err(BugKind::OutOfBounds),
        };
        prop_assert_eq!(harness.outcome(done), expected);
    }

    #[test]
    fn copies_strings(a in text(), b in text(), blur in any::<u64>(), n in 0usize..26, symbolic in any::<bool>()) {
        for name in ["strcpy", "stpcpy", "strncpy", "stpncpy", "strcat", "strncat", "strlcpy", "strlcat"] {
            let Pair { mut harness, a: to, b: from } = pair(&a, &b, blur);
            let bound = if symbolic { harness.symbolic(n as u64, 8) } else { Value::concrete(n as u64) };
            let done = harness.call(name, &[Value::concrete(to), Value::concrete(from), bound]);
            let done = harness.outcome(done);
            match model(name, &a, &b, n) {
                Some((content, result)) => {
                    let result = if result.1 { to + result.0 } else { result.0 };
                    prop_assert_eq!(done, Ok(result), "{}", name);
                    prop_assert_eq!(harness.bytes(to, a.len()), content, "{}", name);
                }
                None => {
                    prop_assert_eq!(done, Err(BugKind::OutOfBounds), "{}", name);
                    prop_assert_eq!(harness.bytes(to, a.len()), a.clone(), "{}", name);
                }
            }
        }
    }

    #[test]
    fn memccpy_copies_up_to_the_byte(a in text(), b in text(), blur in any::<u64>(), n in 0usize..26) {
        let Pair { mut harness, a: to, b: from } = pair(&a, &b, blur);
        let done = harness.call_concrete("memccpy", &[to, from, 0x62, n as u64]);
        let found = b.iter().take(n).position(|byte| *byte == 0x62);
        let len = found.map_or(n, |at| at + 1);
        if len > b.len() || len > a.len() {
            prop_assert_eq!(done, Err(BugKind::OutOfBounds));
        } else {
            prop_assert_eq!(done, Ok(found.map_or(0, |_| to + len as u64)));
            let mut expected = a.clone();
            expected[..len].copy_from_slice(&b[..len]);
            prop_assert_eq!(harness.bytes(to, a.len()), expected);
        }
    }

    #[test]
    fn a_symbolic_length_is_bounded(a in text(), b in text(), len in any::<u64>(), small in 0u64..30, large in any::<bool>()) {
        let Pair { mut harness, a: to, b: from } = pair(&a, &b, 0);
        let len = if large { len } else { small };
        let value = harness.symbolic(len, 8);
        let done = harness.call("memcpy", &[Value::concrete(to), Value::concrete(from), value]);
        let fits = len <= a.len().min(b.len()) as u64;
        prop_assert_eq!(harness.outcome(done), if fits { Ok(to) } else { Err(BugKind::OutOfBounds) });
        if fits {
            let mut expected = a.clone();
            expected[..len as usize].copy_from_slice(&b[..len as usize]);
            prop_assert_eq!(harness.bytes(to, a.len()), expected);
        }
    }
}

/// Reference model of a C function: the content of its destination afterwards, and its result (an
/// offset in the destination if the flag is set). `None` if it leaves an object.
fn model(name: &str, a: &[u8], b: &[u8], n: usize) -> Option<(Vec<u8>, (u64, bool))> {
    let mut to = a.to_vec();
    let bounded = |bytes: &[u8], n: usize| match length(bytes) {
        Some(len) => Some(len.min(n)),
        None => (n <= bytes.len()).then_some(n),
    };
    let cut = |at: usize, len: usize| b[..len].get(at).copied().unwrap_or(0);
    let mut put = |at: usize, byte: u8| to.get_mut(at).map(|place| *place = byte);
    let result = match name {
        "strcpy" | "stpcpy" => {
            let len = length(b)?;
            for (at, byte) in b[..=len].iter().enumerate() {
                put(at, *byte)?;
            }
            (if name == "stpcpy" { len } else { 0 }, true)
        }
        "strncpy" | "stpncpy" => {
            if n > a.len() {
                return None;
            }
            let len = bounded(b, n)?;
            for at in 0..n {
                put(at, cut(at, len))?;
            }
            (if name == "stpncpy" { len } else { 0 }, true)
        }
        "strcat" | "strncat" => {
            let has = length(a)?;
            let len = if name == "strcat" {
                length(b)?
            } else {
                bounded(b, n)?
            };
            for at in 0..=len {
                put(has + at, cut(at, len))?;
            }
            (0, true)
        }
        "strlcpy" | "strlcat" => {
            let has = if name == "strlcat" { bounded(a, n)? } else { 0 };
            let len = length(b)?;
            if has < n {
                let kept = len.min(n - has - 1);
                for at in 0..=kept {
                    put(has + at, cut(at, kept))?;
                }
            }
            (has + len, false)
        }
        other => panic!("{other} has no model"),
    };
    Some((to, (result.0 as u64, result.1)))
}

#[test]
fn large_copies_share_pages_and_stay_apart() {
    let mut harness = Harness::new();
    let bytes: Vec<u8> = (0..20_000u32).map(|at| (at * 7 % 251) as u8).collect();
    let from = harness.block(&bytes);
    let to = harness.block(&vec![0xee; 20_000]);
    harness.make_symbolic(from + 9000);
    assert_eq!(harness.call_concrete("memcpy", &[to, from, 19_999]), Ok(to));
    let mut expected = bytes.clone();
    expected[19_999] = 0xee;
    assert_eq!(harness.bytes(to, 20_000), expected);
    // A write to one side is not visible on the other.
    assert_eq!(
        harness.call_concrete("memset", &[to + 4090, 1, 5000]),
        Ok(to + 4090)
    );
    assert_eq!(harness.bytes(from, 20_000), bytes);
    // Unaligned, across page boundaries.
    assert_eq!(
        harness.call_concrete("memmove", &[from + 5, from + 4000, 12_000]),
        Ok(from + 5)
    );
    let mut expected = bytes.clone();
    expected.copy_within(4000..16_000, 5);
    assert_eq!(harness.bytes(from, 20_000), expected);
}

#[test]
fn untouched_pages_read_as_zeros() {
    let mut harness = Harness::new();
    let size = 3 * 4096 + 100;
    let start = harness
        .memory
        .allocate(size, 16, ObjectKind::Heap)
        .unwrap()
        .start;
    assert_eq!(harness.call_concrete("memchr", &[start, 1, size]), Ok(0));
    assert_eq!(
        harness.call_concrete("memchr", &[start, 1, size + 1]),
        Err(BugKind::OutOfBounds)
    );
    assert_eq!(
        harness.call_concrete("memset", &[start, 0x61, size]),
        Ok(start)
    );
    assert_eq!(
        harness.call_concrete("strlen", &[start]),
        Err(BugKind::OutOfBounds)
    );
    assert_eq!(
        harness.call_concrete("bzero", &[start + size - 1, 1]),
        Ok(0)
    );
    assert_eq!(harness.call_concrete("strlen", &[start]), Ok(size - 1));
}

#[test]
fn nothing_is_done_behind_the_last_byte() {
    let mut harness = Harness::new();
    let (a, b) = (harness.block(&[1; 8192]), harness.block(&[2; 8192]));
    let (end_a, end_b) = (a + 8192, b + 8192);
    assert_eq!(
        harness.call_concrete("memcpy", &[end_a, end_b, 0]),
        Ok(end_a)
    );
    assert_eq!(
        harness.call_concrete("memmove", &[end_a, end_a, 0]),
        Ok(end_a)
    );
    assert_eq!(harness.call_concrete("memset", &[end_a, 1, 0]), Ok(end_a));
    assert_eq!(harness.call_concrete("memcmp", &[end_a, end_b, 0]), Ok(0));
    assert_eq!(harness.call_concrete("memchr", &[end_a, 1, 0]), Ok(0));
    assert_eq!(harness.call_concrete("memrchr", &[end_a, 1, 0]), Ok(0));
    assert_eq!(
        harness.call_concrete("strncpy", &[end_a, end_b, 0]),
        Ok(end_a)
    );
    assert_eq!(harness.call_concrete("strncmp", &[end_a, end_b, 0]), Ok(0));
    assert_eq!(harness.call_concrete("strnlen", &[end_a, 0]), Ok(0));
}

#[test]
fn memset_writes_symbolic_bytes() {
    let mut harness = Harness::new();
    let to = harness.block(&[9; 8]);
    let byte = harness.symbolic(0x1234, 4);
    let args = [Value::concrete(to + 1), byte, Value::concrete(5)];
    assert!(harness.call("memset", &args).is_ok());
    assert_eq!(
        harness.bytes(to, 8),
        [9, 0x34, 0x34, 0x34, 0x34, 0x34, 9, 9]
    );
}

#[test]
fn misuse_is_named() {
    let mut harness = Harness::new();
    let freed = harness.block(b"text\0");
    harness.memory.free(freed, ObjectKind::Heap, None).unwrap();
    let constant = harness
        .memory
        .allocate(5, 1, ObjectKind::Constant)
        .unwrap()
        .start;
    let text = harness.block(b"text\0and more");
    assert_eq!(
        harness.call_concrete("strlen", &[0]),
        Err(BugKind::NullPointer)
    );
    assert_eq!(
        harness.call_concrete("strlen", &[freed]),
        Err(BugKind::UseAfterFree)
    );
    assert_eq!(
        harness.call_concrete("strlen", &[0x1234_5678]),
        Err(BugKind::WildPointer)
    );
    assert_eq!(
        harness.call_concrete("strcpy", &[constant, text]),
        Err(BugKind::ReadOnlyWrite)
    );
    assert_eq!(
        harness.call_concrete("strcat", &[text, text]),
        Err(BugKind::OverlappingCopy)
    );
    assert_eq!(
        harness.call_concrete("memcpy", &[0, text, 1]),
        Err(BugKind::NullPointer)
    );
    assert_eq!(harness.call_concrete("memcpy", &[0, 0, 0]), Ok(0));
    assert_eq!(harness.call_concrete("memcmp", &[0, 0, 0]), Ok(0));
}

#[test]
fn a_symbolic_pointer_is_checked_once_and_then_known() {
    let mut harness = Harness::new();
    let text = harness.block(b"abcdef\0");
    let at = |harness: &mut Harness, offset: u64| {
        let offset = harness.symbolic(offset, 8);
        let start = Value::concrete(text).to_term(&mut harness.arena, 64);
        let offset = offset.to_term(&mut harness.arena, 64);
        let sum = harness.arena.add(start, offset);
        Value::of_term(&harness.arena, sum)
    };
    let inside = at(&mut harness, 2);
    let done = harness.call("strlen", &[inside]);
    assert_eq!(harness.outcome(done), Ok(4));
    let outside = at(&mut harness, 7);
    let done = harness.call("strlen", &[outside]);
    assert_eq!(harness.outcome(done), Err(BugKind::OutOfBounds));
}

#[test]
fn strings_in_blocks_of_symbolic_size_end_with_them() {
    for (size, kind) in [(3u64, Err(BugKind::OutOfBounds)), (4, Ok(3))] {
        let mut harness = Harness::new();
        let text = harness.block(b"abc\0");
        let other = harness.block(b"abc\0");
        let size = harness.symbolic(size, 8);
        harness.memory.object_at_mut(text, 0).unwrap().size_term = size.term;
        assert_eq!(harness.call_concrete("strlen", &[text]), kind);
        assert_eq!(
            harness.call_concrete("strcmp", &[text, other]),
            kind.map(|_| 0)
        );
        assert_eq!(harness.call_concrete("strncmp", &[text, other, 3]), Ok(0));
    }
}

#[test]
fn questions_come_before_changes() {
    /// Suspends at the question with this number.
    struct Stop(usize);
    impl Oracle for Stop {
        fn branch(&mut self, _: &mut Arena, _: ExprId) -> Result<bool, Suspend> {
            self.0 = self.0.checked_sub(1).ok_or(Suspend)?;
            Ok(false)
        }
        fn concretize(&mut self, _: &mut Arena, _: ExprId) -> Result<u64, Suspend> {
            Err(Suspend)
        }
        fn choose(&mut self, _: &ChoiceSite, _: u32) -> Result<u32, Suspend> {
            Err(Suspend)
        }
        fn assume(&mut self, _: &mut Arena, _: ExprId) -> Result<bool, Suspend> {
            Err(Suspend)
        }
        fn input(&mut self, _: &mut Arena, _: &str, _: u32) -> Result<ArrayId, Suspend> {
            Err(Suspend)
        }
        fn prefer(&mut self, _: &mut Arena, _: ExprId) {}
        fn commit(&mut self) {}
    }
    for name in [
        "strcpy", "strncpy", "strcat", "strlcpy", "strlcat", "strncat",
    ] {
        for questions in 0..3 {
            let Pair { mut harness, a, b } = pair(b"ab\0defgh", b"xyz\0", u64::MAX);
            let mut stop = Stop(questions);
            let done = {
                let call = Call {
                    callee: Callee::External(ExternalId(0)),
                    args: Vec::new(),
                    arg_types: vec![ValueType::Int(64); 3],
                    fixed: 3,
                    by_value: Vec::new(),
                    dst: 0,
                    result: ValueType::Pointer,
                    unwind: None,
                };
                let handler = resolve(name).unwrap();
                let context = ExecContext {
                    images: std::slice::from_ref(&harness.image),
                    arena: &mut harness.arena,
                    oracle: &mut stop,
                    stacks: &mut harness.stacks,
                    coverage: &mut harness.coverage,
                    options: &harness.options,
                };
                let mut vm = Vm::new(
                    context,
                    crate::stacks::ImageId::default(),
                    &mut harness.memory,
                    &mut harness.thread,
                );
                let values = [a, b, 4].map(Value::concrete).into_iter().collect();
                handler(
                    &mut vm,
                    &Arguments {
                        values,
                        call: &call,
                        name,
                    },
                )
            };
            assert!(matches!(done, Err(Interrupt::Suspend)), "{name}: {done:?}");
            assert_eq!(harness.bytes(a, 8), b"ab\0defgh");
        }
    }
}
