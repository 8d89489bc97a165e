use everett_expr::CompareOp;
use everett_vm::ChoiceSite;

use super::*;
use crate::trace::TraceChoice;

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

/// Returns paths each of which forked from the one before, with one more choice.
fn forked(count: u32) -> Vec<State> {
    let mut states = vec![State::starting(Path::default())];
    for number in 1..count {
        let mut state = states.last().unwrap().clone();
        let path = &mut state.path;
        path.choices.push(TraceChoice {
            site: ChoiceSite::FileSize {
                name: number.to_string().into(),
            },
            alternatives: 3,
            picked: number % 3,
        });
        path.weight = Weight { halvings: number };
        path.answered = u64::from(number);
        states.push(state);
    }
    states
}

fn put(spill: &mut SpillFile, states: &[State]) -> Vec<SpillId> {
    spill.writer().put(states.iter(), &Arena::new()).unwrap()
}

fn trace(state: &State) -> Trace {
    state.path.pending_trace(&mut Sharing::default())
}

#[test]
fn states_are_there_after_opening_again() {
    let scratch = Scratch::new("again");
    let paths = forked(200);
    let (early, late) = paths.split_at(100);
    let mut spill = SpillFile::create(&scratch.0, 1 << 16).unwrap();
    let mut ids = put(&mut spill, early);
    let mut spill = SpillFile::open(&scratch.0, &[], 1 << 16).unwrap();
    ids.extend(put(&mut spill, late));
    for (id, path) in ids.iter().zip(&paths).rev() {
        assert_eq!(spill.get(*id).unwrap(), trace(path));
        assert_eq!(id.halvings, path.path.weight.halvings);
    }
}

#[test]
fn bundles_have_all_states_and_their_weight() {
    let scratch = Scratch::new("bundle");
    let mut spill = SpillFile::create(&scratch.0, 1 << 16).unwrap();
    let ids = put(&mut spill, &forked(6));
    let bundle = spill.writer().bundle(&ids[1..]).unwrap();
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
        put(&mut spill, part);
    }
    let whole: usize = paths
        .iter()
        .map(|path| serde_json::to_vec(&trace(path)).unwrap().len())
        .sum();
    assert!(
        spill.writer().end() * 20 < whole as u64,
        "{} of {whole}",
        spill.writer().end()
    );
}

#[test]
fn long_inputs_are_stored_as_differences() {
    const SIZE: u32 = 20_000;
    let scratch = Scratch::new("long");
    let mut arena = Arena::new();
    let array = arena.array(0, "stdin", SIZE);
    let mut states = vec![State::starting(Path::default())];
    states[0].path.inputs.push(crate::input::Input {
        name: "stdin".into(),
        array,
        size: SIZE,
    });
    for number in 1..300 {
        let mut state = states[number as usize - 1].clone();
        state.path.model.set(array, number * 61, 7);
        states.push(state);
    }
    let mut spill = SpillFile::create(&scratch.0, 1 << 16).unwrap();
    let ids = put(&mut spill, &states);
    for (id, state) in ids.iter().zip(&states) {
        assert_eq!(spill.get(*id).unwrap(), trace(state));
    }
    let whole = u64::from(SIZE) * 2 * states.len() as u64;
    assert!(
        spill.writer().end() * 10 < whole,
        "{}",
        spill.writer().end()
    );
}

#[test]
fn one_damaged_spot_of_a_file_with_a_copy_costs_nothing() {
    let [spill, file] = ["copied", "copy-1"].map(Scratch::new);
    let copy = Scratch(copy_of(&file.0));
    let states = forked(300);
    let mut writer = SpillWriter::create_twice(&file.0, 1, 1 << 16).unwrap();
    let ids = writer.put(states.iter(), &Arena::new()).unwrap();
    let bundle = writer.bundle(&ids).unwrap();
    drop(writer);
    let good = std::fs::read(&file.0).unwrap();
    assert_eq!(std::fs::read(&copy.0).unwrap(), good);
    for damaged in [&file, &copy] {
        for at in (0..good.len()).step_by(good.len() / 16) {
            let mut bytes = good.clone();
            let end = (at + 512).min(bytes.len());
            bytes[at..end].fill(0);
            std::fs::write(&damaged.0, &bytes).unwrap();
            let opened = SpillFile::open(&spill.0, std::slice::from_ref(&file.0), 1 << 16).unwrap();
            assert_eq!(opened.unbundle(&bundle).unwrap(), ids);
            for (id, state) in ids.iter().zip(&states).step_by(7) {
                assert_eq!(opened.get(*id).unwrap(), trace(state), "byte {at}");
            }
        }
        std::fs::write(&damaged.0, &good[..good.len() / 2]).unwrap();
        let opened = SpillFile::open(&spill.0, std::slice::from_ref(&file.0), 1 << 16).unwrap();
        assert_eq!(opened.get(ids[299]).unwrap(), trace(&states[299]));
        std::fs::write(&damaged.0, &good).unwrap();
    }
}

#[test]
fn a_damaged_file_is_an_error() {
    let scratch = Scratch::new("damaged");
    let paths = forked(50);
    let mut spill = SpillFile::create(&scratch.0, 1 << 16).unwrap();
    let ids = put(&mut spill, &paths);
    let (first, last) = (ids[0], ids[49]);
    for (offset, len) in [(0, u32::MAX), (u64::MAX, 9), (last.offset, last.len + 1)] {
        let wrong = SpillId {
            offset,
            len,
            ..first
        };
        assert!(spill.get(wrong).is_err());
    }
    // A flipped bit in the record of one state is detected, and damages no other state.
    let mut byte = [0];
    spill
        .writer
        .file
        .read_exact_at(&mut byte, last.offset + 20)
        .unwrap();
    let flipped = [byte[0] ^ 1];
    spill
        .writer
        .file
        .write_all_at(&flipped, last.offset + 20)
        .unwrap();
    assert!(spill.get(last).is_err());
    assert_eq!(spill.get(first).unwrap(), trace(&paths[0]));
    // A state stored as a difference from itself.
    let mut circle = Record {
        like: Some((ids[1], [0; LISTS])),
        lists: Lists::default(),
        pending: None,
        net: None,
    };
    let mut id = ids[1];
    for _ in 0..2 {
        circle.like = Some((id, [0; LISTS]));
        let mut bytes = serde_json::to_vec(&circle).unwrap();
        bytes.resize(ids[1].len as usize, b' ');
        id.check = checksum(&bytes);
        spill
            .writer
            .file
            .write_all_at(&bytes, ids[1].offset)
            .unwrap();
    }
    assert!(spill.get(id).is_err());
}

/// Writing each condition of each path would take quadratic time and space.
#[test]
fn paths_that_fork_off_share_their_conditions() {
    const LENGTH: u32 = 2000;
    let scratch = Scratch::new("conditions");
    let mut spill = SpillFile::create(&scratch.0, 1 << 20).unwrap();
    let (mut arena, mut path) = (Arena::new(), Path::default());
    let input = arena.array(0, "input", LENGTH);
    let limit = arena.constant(8, 100);
    let mut known = KnownConditions::default();
    let mut parts = Vec::new();
    for index in 0..LENGTH {
        let byte = arena.read(input, index);
        let is_less = arena.compare(CompareOp::Ult, byte, limit);
        path.constraints.add(&mut arena, is_less);
        let writer = spill.writer();
        parts = writer.put_conditions(&path, &arena, &mut known).unwrap();
    }
    assert!(spill.writer().end() < 1 << 20, "{}", spill.writer().end());
    spill.writer().flush().unwrap();
    let parts = parts.into_iter().map(|offset| {
        let part = spill.whole_block(0, offset).unwrap();
        everett_expr::codec::decode(&mut arena, &part).unwrap()
    });
    let conditions: Vec<ExprId> = parts.collect::<Vec<_>>().concat();
    assert_eq!(conditions, path.constraints.iter().collect::<Vec<_>>());
}
