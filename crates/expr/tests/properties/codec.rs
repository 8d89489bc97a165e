//! The decoder on bytes that no encoder wrote.

use crate::common::{program, run};
use everett_expr::{
    Arena, FloatCompareOp, FloatFormat, FloatOp, FloatUnaryOp, RoundingMode, codec,
};
use proptest::prelude::*;

proptest! {
    #[test]
    fn arbitrary_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut arena = Arena::new();
        if let Err(error) = codec::decode(&mut arena, &bytes) {
            prop_assert!(error.offset <= bytes.len());
        }
    }

    /// Bytes with a valid header reach further.
    #[test]
    fn arbitrary_nodes_are_refused_or_read(nodes in prop::collection::vec(0u8..40, 0..400)) {
        let mut bytes = vec![1, 1, 0, 8, 1, b'x', 60];
        bytes.extend(nodes);
        let mut arena = Arena::new();
        let _ = codec::decode(&mut arena, &bytes);
    }

    #[test]
    fn changed_bytes_are_refused_or_read(
        steps in program(24),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut arena = Arena::new();
        let terms = run(&mut arena, &steps);
        let mut bytes = codec::encode(&arena, &terms);
        for (position, value) in changes {
            let position = position.index(bytes.len());
            bytes[position] = value;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let mut other = Arena::new();
        if let Ok(terms) = codec::decode(&mut other, &bytes) {
            // Decoded terms can be encoded and decoded again.
            let again = codec::encode(&other, &terms);
            prop_assert!(codec::decode(&mut other, &again).is_ok());
        }
    }

    #[test]
    fn truncated_bytes_are_refused(steps in program(24), cut in any::<prop::sample::Index>()) {
        let mut arena = Arena::new();
        let terms = run(&mut arena, &steps);
        let bytes = codec::encode(&arena, &terms);
        let cut = cut.index(bytes.len());
        let error = codec::decode(&mut Arena::new(), &bytes[..cut]).unwrap_err();
        prop_assert!(error.offset <= cut);
    }
}

#[test]
fn floats_and_names_survive() {
    let mut arena = Arena::new();
    let array = arena.array(7, "naïve \"name\"", 16);
    let bytes: Vec<_> = (0..16).map(|index| arena.read(array, index)).collect();
    let single = arena.concat_bytes(&bytes[..4]);
    let double = arena.concat_bytes(&bytes[..8]);
    let x87 = arena.concat_bytes(&bytes[..10]);
    let half = arena.concat_bytes(&bytes[..2]);
    let rounded = FloatUnaryOp::RoundToIntegral(RoundingMode::TowardNegative);
    let terms = vec![
        arena.float_binary(FloatOp::Div, FloatFormat::Double, double, double),
        arena.float_unary(FloatUnaryOp::Sqrt, FloatFormat::X87, x87),
        arena.float_unary(rounded, FloatFormat::Half, half),
        arena.float_compare(FloatCompareOp::Olt, FloatFormat::Single, single, single),
        arena.float_convert(FloatFormat::Single, FloatFormat::X87, single),
        arena.float_from_int(true, FloatFormat::Single, double),
        arena.float_to_int(false, FloatFormat::Double, double, 96),
    ];
    let encoded = codec::encode(&arena, &terms);
    assert_eq!(codec::decode(&mut arena, &encoded).unwrap(), terms);
    let mut other = Arena::new();
    let moved = codec::decode(&mut other, &encoded).unwrap();
    assert_eq!(codec::encode(&other, &moved), encoded);
    for (&term, &moved) in terms.iter().zip(&moved) {
        assert_eq!(
            arena.display(term).to_string(),
            other.display(moved).to_string()
        );
    }
}

#[test]
fn errors_say_where() {
    let mut arena = Arena::new();
    let error = codec::decode(&mut arena, &[]).unwrap_err();
    assert_eq!((error.offset, error.reason), (0, "the end came too early"));
    let error = codec::decode(&mut arena, &[9]).unwrap_err();
    assert_eq!((error.offset, error.reason), (1, "an unknown version"));
    assert_eq!(
        error.to_string(),
        "terms cannot be read at byte 1: an unknown version"
    );
}
