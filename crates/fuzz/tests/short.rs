//! Every target for a short time: nothing breaks, and both valid and invalid input occurs.

use everett_fuzz::{TARGETS, Target, fuzz, target, try_input};
use std::time::Duration;

#[test]
fn no_target_breaks() {
    for target in TARGETS {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "{} has seeds", target.name);
        match fuzz(target, &seeds, 1, Duration::from_millis(1500)) {
            Ok(tally) => {
                assert!(
                    tally.accepted >= seeds.len() as u64,
                    "{}: {tally:?}",
                    target.name
                );
                assert!(tally.refused > 0, "{}: {tally:?}", target.name);
            }
            Err(failure) => panic!("{}: {}", target.name, failure.reason),
        }
    }
}

#[test]
fn bitcode_has_records_to_damage() {
    let reader = target("reader").expect("the reader");
    for seed in (reader.seeds)() {
        assert!((reader.spans)(&seed).len() > 20);
    }
}

#[test]
fn a_panic_is_a_failure_with_its_input() {
    let fragile = Target {
        run: |input| {
            assert!(input.len() < 9, "too long");
            input.is_empty()
        },
        ..*target("ktest").expect("a target")
    };
    assert!(matches!(try_input(&fragile, b""), Ok(true)));
    let failure = fuzz(
        &fragile,
        &[b"12345678".to_vec()],
        3,
        Duration::from_secs(20),
    );
    let failure = failure.expect_err("it breaks");
    assert!(failure.input.len() >= 9);
    assert!(failure.reason.contains("too long"));
}
