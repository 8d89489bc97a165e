//! The invariants in the manual and in the examples can be parsed.

use everett_invariant::parse;

#[test]
fn the_examples_of_the_manual_are_invariants() {
    let text = include_str!("../../../docs/invariants.md");
    let blocks: Vec<&str> = text.split("```minvariant\n").skip(1).collect();
    assert!(blocks.len() >= 4);
    for block in blocks {
        let source = block.split("```").next().expect("a block");
        let invariants = parse(source).unwrap_or_else(|error| panic!("{error}"));
        assert!(!invariants.is_empty(), "{source}");
    }
}

#[test]
fn the_invariants_of_the_examples_are_read() {
    let source = include_str!("../../../examples/two-phase-commit/decisions.minv");
    let invariants = parse(source).unwrap_or_else(|error| panic!("{error}"));
    assert!(invariants.get("decisionConsistency").is_some());
}
