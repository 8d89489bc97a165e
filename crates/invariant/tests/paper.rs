//! The invariants of the paper, verbatim, on the worlds it describes.

mod support;

use everett_expr::{Arena, EvalScratch};
use everett_invariant::{Byte, Exposed, When, evaluate, parse};
use support::both;

/// Listings 5 and 33.
const DECISIONS: &str = r#"invariant decisionConsistency(data[] d) : nodes, states, keys {
  return d.equalElements();
}

string[] nodes() {
  return sys.nodes();
}

int[] states(string node) {
  return int[1] ;
}

string[] keys(string node, int state) {
  return string["decision"];
}
"#;

const NODES: [&str; 3] = ["coordinator", "committer1", "committer2"];

#[test]
fn committers_that_decide_alike_keep_the_invariant() {
    let rows: support::Rows<'_> = &[
        ("committer1", "1", "decision", b"\x01\0\0\0"),
        ("committer2", "1", "decision", b"\x01\0\0\0"),
    ];
    assert_eq!(both(DECISIONS, &NODES, rows), Ok(true));
}

#[test]
fn committers_that_decide_differently_break_it() {
    let rows: support::Rows<'_> = &[
        ("committer1", "1", "decision", b"\x01\0\0\0"),
        ("committer2", "1", "decision", b"\0\0\0\0"),
    ];
    assert_eq!(both(DECISIONS, &NODES, rows), Ok(false));
}

#[test]
fn nodes_that_have_not_decided_yet_are_left_out() {
    assert_eq!(both(DECISIONS, &NODES, &[]), Ok(true));
    let one: support::Rows<'_> = &[("committer2", "1", "decision", b"\x01")];
    assert_eq!(both(DECISIONS, &NODES, one), Ok(true));
    // Data of other states is not requested.
    let rows: support::Rows<'_> = &[
        ("committer1", "1", "decision", b"\x01"),
        ("committer2", "2", "decision", b"\0"),
        ("committer2", "1", "vote", b"\0"),
    ];
    assert_eq!(both(DECISIONS, &NODES, rows), Ok(true));
}

#[test]
fn decisions_of_different_sizes_differ() {
    let rows: support::Rows<'_> = &[
        ("committer1", "1", "decision", b"\x01"),
        ("committer2", "1", "decision", b"\x01\0"),
    ];
    assert_eq!(both(DECISIONS, &NODES, rows), Ok(false));
}

#[test]
fn symbolic_decisions_are_consistent_exactly_where_they_are_equal() {
    let mut arena = Arena::new();
    let votes = arena.array(0, "votes", 2);
    let mut view = Exposed::new();
    for node in 0..2 {
        let number = view.add_node(format!("committer{node}"));
        let vote = arena.read(votes, node);
        view.expose(number, "1", "decision", vec![Byte::Term(vote)]);
    }
    let invariants = parse(DECISIONS).expect("the paper's invariant");
    let invariant = invariants.get("decisionConsistency").expect("its name");
    assert_eq!(invariant.when(), [When::OnChange]);
    let verdict = evaluate(invariant, &view, &mut arena).expect("a verdict");
    assert!(verdict.failures.is_empty() && !arena.is_const(verdict.holds));
    let mut scratch = EvalScratch::new();
    for (a, b) in [(0, 0), (0, 1), (1, 0), (7, 7)] {
        let values = |_: everett_expr::ArrayId, index: u32| [a, b][index as usize];
        let holds = arena.eval_bool(verdict.holds, &values, &mut scratch);
        assert_eq!(holds, a == b);
    }
}

/// §8.3: the working directory of a web server is the same before and after a request. States are
/// the phases.
#[test]
fn the_working_directory_is_kept_over_a_request() {
    let source = r#"
        invariant sameDirectory(data[] d) : servers, phases, keys { return d.equalElements(); }
        string[] servers() { return string["server"]; }
        int[] phases(string node) { return int[1, 2]; }
        string[] keys(string node, int phase) { return string["cwd"]; }
    "#;
    let nodes = ["client", "server"];
    let good: support::Rows<'_> = &[
        ("server", "1", "cwd", b"/srv"),
        ("server", "2", "cwd", b"/srv"),
    ];
    assert_eq!(both(source, &nodes, good), Ok(true));
    let bad: support::Rows<'_> = &[
        ("server", "1", "cwd", b"/srv"),
        ("server", "2", "cwd", b"/tmp"),
    ];
    assert_eq!(both(source, &nodes, bad), Ok(false));
}

/// Figure 15: one node with data for several states and keys; functions
/// are used by several invariants.
#[test]
fn functions_are_shared_between_invariants() {
    let source = r#"
        invariant sent(data[] d) : all, two, send { return d.size() == 2; }
        invariant received(data[] d) : all, two, receive { return d.size() == 1; }
        string[] all() { return sys.nodes(); }
        int[] two(string node) { return int[1, 2]; }
        string[] send(string node, int state) { return string["send"]; }
        string[] receive(string node, int state) { return string["recv"]; }
    "#;
    let mut view = Exposed::new();
    let a = view.add_node("A");
    view.expose_known(a, "1", "send", b"x");
    view.expose_known(a, "1", "recv", b"y");
    view.expose_known(a, "2", "send", b"z");
    let invariants = parse(source).expect("two invariants");
    assert_eq!(invariants.len(), 2);
    let mut arena = Arena::new();
    for invariant in &invariants {
        let verdict = evaluate(invariant, &view, &mut arena).expect("a verdict");
        assert!(arena.is_true(verdict.holds), "{}", invariant.name());
    }
}
