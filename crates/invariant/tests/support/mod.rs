//! Worlds for tests: the same bytes as known and as symbolic data.

// Each test file uses only a part of it.
#![allow(dead_code)]

use everett_expr::{Arena, ArrayId, EvalScratch};
use everett_invariant::{Byte, EvalError, EvalErrorKind, Exposed, evaluate, parse};

/// Data of nodes: node, state, key, bytes.
pub type Rows<'a> = &'a [(&'a str, &'a str, &'a str, &'a [u8])];

/// A world that exposes rows; bytes selected by `symbolic` are read from an array, in order.
pub struct Shown {
    /// The exposed data.
    pub view: Exposed,
    /// The values of all bytes, by their index in the array.
    pub values: Vec<u8>,
}

/// Creates a world of rows.
pub fn world(
    nodes: &[&str],
    rows: Rows<'_>,
    arena: &mut Arena,
    symbolic: &dyn Fn(usize) -> bool,
) -> Shown {
    let values: Vec<u8> = rows.iter().flat_map(|row| row.3.iter().copied()).collect();
    let array = arena.array(0, "shown", values.len().max(1) as u32);
    let mut view = Exposed::new();
    for node in nodes {
        view.add_node(*node);
    }
    let mut at = 0;
    for (node, state, key, bytes) in rows {
        let mut data = Vec::new();
        for byte in *bytes {
            data.push(match symbolic(at) {
                true => Byte::Term(arena.read(array, at as u32)),
                false => Byte::Known(*byte),
            });
            at += 1;
        }
        let node = nodes.iter().position(|name| name == node).expect("a node");
        view.expose(node, state, key, data);
    }
    Shown { view, values }
}

/// Evaluates the first invariant of a text on known data.
pub fn known(source: &str, nodes: &[&str], rows: Rows<'_>) -> Result<bool, EvalError> {
    let mut arena = Arena::new();
    let shown = world(nodes, rows, &mut arena, &|_| false);
    let invariants = parse(source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    let invariant = invariants.iter().next().expect("an invariant");
    let terms = arena.node_count();
    let verdict = evaluate(invariant, &shown.view, &mut arena)?;
    assert!(verdict.failures.is_empty());
    assert!(arena.is_const(verdict.holds));
    // At most the constants true and false were created.
    assert!(arena.node_count() <= terms + 2, "known data makes terms");
    Ok(arena.is_true(verdict.holds))
}

/// Evaluates the first invariant of a text on symbolic data, for its actual values. `None` at a
/// limit.
pub fn symbolic(
    source: &str,
    nodes: &[&str],
    rows: Rows<'_>,
    which: &dyn Fn(usize) -> bool,
    others: &[Vec<u8>],
) -> Option<Vec<Result<bool, ()>>> {
    let mut arena = Arena::new();
    let shown = world(nodes, rows, &mut arena, which);
    let invariants = parse(source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    let invariant = invariants.iter().next().expect("an invariant");
    let verdict = match evaluate(invariant, &shown.view, &mut arena) {
        Ok(verdict) => verdict,
        Err(error) if error.kind == EvalErrorKind::Limit => return None,
        Err(_) => return Some(vec![Err(()); others.len() + 1]),
    };
    assert_eq!(arena.width(verdict.holds), 1);
    let mut results = Vec::new();
    let mut scratch = EvalScratch::new();
    for values in std::iter::once(&shown.values).chain(others) {
        let byte = |_: ArrayId, index: u32| values.get(index as usize).copied().unwrap_or(0);
        let failed = verdict.failures.iter();
        let failed = failed
            .filter(|f| arena.eval_bool(f.when, &byte, &mut scratch))
            .count();
        let holds = arena.eval_bool(verdict.holds, &byte, &mut scratch);
        assert!(holds || failed == 0, "what fails counts as holding");
        results.push(if failed > 0 { Err(()) } else { Ok(holds) });
    }
    Some(results)
}

/// Evaluates an invariant on known data and on the same data as symbolic bytes: the results must be
/// equal.
pub fn both(source: &str, nodes: &[&str], rows: Rows<'_>) -> Result<bool, EvalError> {
    let plain = known(source, nodes, rows);
    let results = symbolic(source, nodes, rows, &|_| true, &[]).expect("within the limits");
    assert_eq!(results[0], plain.clone().map_err(|_| ()), "{source}");
    plain
}
