use super::*;
use crate::manager::{Crash, Output};
use crate::results::Isolation;

fn seen(test: Ended) -> Seen {
    Seen {
        start_failure: None,
        test,
        cleanup_failure: None,
        output: Default::default(),
        injected: Vec::new(),
        crashes: Vec::new(),
        files: BTreeMap::new(),
        coverage: Vec::new(),
        measured: None,
        isolation: Isolation::Namespaces,
        seconds: 0.0,
        calls: BTreeMap::new(),
        sites: Vec::new(),
        core: None,
        wrong: None,
        stuck: BTreeSet::new(),
        world: Default::default(),
    }
}

fn printing(text: &str) -> Seen {
    let mut seen = seen(Ended::Exit(0));
    seen.output[0] = Output {
        text: text.to_owned(),
        bytes: text.len() as u64,
        digest: crate::manager::digest(text.as_bytes()),
    };
    seen
}

#[test]
fn names_and_output_of_the_system_cannot_reach_terminals_and_scripts() {
    assert_eq!(
        one_line("file x\nrm -rf \x1b[31m\u{85}é differs"),
        "file x?rm -rf ?[31m?é differs"
    );
    assert_eq!(one_line(&"x".repeat(5000)).len(), 303);
    let mut seen = seen(Ended::Exit(1));
    seen.files.insert("x\ntouch y".to_owned(), "1".to_owned());
    let weights = Impact {
        files: 1.0,
        ..Impact::default()
    };
    let without = printing("");
    let measured = measure(&weights, &seen, Some(&without), &BTreeSet::new());
    assert_eq!(measured.why, ["exit 1", "file x?touch y differs"]);
}

fn shown(weights: &Impact, with: &Seen, without: &Seen) -> (Outcome, f64) {
    let measured = measure(weights, with, Some(without), &BTreeSet::new());
    (measured.outcome, measured.impact)
}

#[test]
fn ends_are_weighed() {
    let (weights, usual) = (Impact::default(), seen(Ended::Exit(0)));
    assert_eq!(
        shown(&weights, &seen(Ended::Exit(0)), &usual),
        (Outcome::Passed, 0.0)
    );
    assert_eq!(
        shown(&weights, &seen(Ended::Exit(3)), &usual),
        (Outcome::Failed, 5.0)
    );
    assert_eq!(
        shown(&weights, &seen(Ended::Timeout), &usual),
        (Outcome::Hung, 10.0)
    );
    assert_eq!(
        shown(&weights, &seen(Ended::Signal(11)), &usual),
        (Outcome::Crashed, 20.0)
    );
    let mut crashed = seen(Ended::Exit(1));
    crashed.crashes.push(Crash {
        program: "x".to_owned(),
        signal: 6,
        stack: Vec::new(),
    });
    assert_eq!(shown(&weights, &crashed, &usual), (Outcome::Crashed, 25.0));
    // A crash that also happens without faults is not an effect of them.
    assert_eq!(
        shown(&weights, &crashed, &crashed.clone()),
        (Outcome::Passed, 0.0)
    );
}

#[test]
fn a_crash_stays_one_where_an_invariant_does_not_hold_either() {
    let (weights, usual) = (Impact::default(), seen(Ended::Exit(0)));
    let mut wrong = seen(Ended::Exit(1));
    wrong.wrong = Some("server: invariant: x = 1".to_owned());
    assert_eq!(shown(&weights, &wrong, &usual), (Outcome::Failed, 20.0));
    wrong.test = Ended::Signal(11);
    wrong.crashes.push(Crash {
        program: "server".to_owned(),
        signal: 11,
        stack: Vec::new(),
    });
    assert_eq!(shown(&weights, &wrong, &usual), (Outcome::Crashed, 40.0));
}

#[test]
fn differences_count_where_they_have_a_weight() {
    let usual = printing("latency: 10\nthroughput=100\n");
    let slow = printing("latency: 30\nthroughput=50\n");
    let weights = Impact {
        output: 2.0,
        latency: 1.0,
        ..Impact::default()
    };
    assert_eq!(
        shown(&weights, &slow, &usual),
        (Outcome::Differs, 2.0 + 2.0 + 1.0)
    );
    assert_eq!(
        shown(&Impact::default(), &slow, &usual),
        (Outcome::Passed, 0.0)
    );
    let weights = Impact {
        latency: 1.0,
        failure: Some(3.0),
        ..Impact::default()
    };
    assert_eq!(shown(&weights, &slow, &usual), (Outcome::Harmful, 3.0));
    let mut files = seen(Ended::Exit(0));
    files.files.insert("a/b.log".to_owned(), "1".to_owned());
    let weights = Impact {
        files: 4.0,
        ..Impact::default()
    };
    assert_eq!(
        shown(&weights, &files, &seen(Ended::Exit(0))),
        (Outcome::Differs, 4.0)
    );
    let weights = Impact {
        ignore: vec!["a/*.log".to_owned()],
        ..weights
    };
    assert_eq!(
        shown(&weights, &files, &seen(Ended::Exit(0))),
        (Outcome::Passed, 0.0)
    );
    let weights = Impact {
        log: 7.0,
        log_pattern: Some("through".to_owned()),
        ..Impact::default()
    };
    assert_eq!(shown(&weights, &slow, &usual).1, 7.0);
}

#[test]
fn new_lines_count_once_and_a_script_decides_alone() {
    let weights = Impact {
        coverage: 1.0,
        ..Impact::default()
    };
    let mut run = seen(Ended::Exit(1));
    run.coverage = vec!["a.c:1".to_owned(), "a.c:2".to_owned()];
    let covered = BTreeSet::from(["a.c:1".to_owned()]);
    let measured = measure(&weights, &run, None, &covered);
    assert_eq!((measured.impact, measured.repeatable), (6.0, 5.0));
    assert_eq!(measured.new_lines, ["a.c:2"]);
    run.measured = Some("42.5\n".to_owned());
    assert_eq!(measure(&weights, &run, None, &covered).impact, 42.5);
    run.measured = Some("what".to_owned());
    assert_eq!(measure(&weights, &run, None, &covered).impact, 0.0);
}

#[test]
fn relevance_is_that_of_the_most_specific_entry() {
    let model = [
        ("malloc", 0.4),
        ("file", 0.5),
        ("errno EIO", 0.1),
        ("default", 0.01),
    ];
    let model: BTreeMap<String, f64> = model
        .iter()
        .map(|(name, share)| (name.to_string(), *share))
        .collect();
    let of = |text: &str| relevance(&model, &Scenario::parse(text).unwrap());
    assert_eq!(of("function malloc errno ENOMEM"), 0.4);
    assert_eq!(of("function read errno EINTR"), 0.5);
    assert_eq!(of("function read errno EIO"), 0.1);
    assert_eq!(of("function fork"), 0.01);
    assert_eq!(of("function malloc and function read"), 0.2);
    assert_eq!(
        relevance(&BTreeMap::new(), &Scenario::parse("a b").unwrap()),
        1.0
    );
}

#[test]
fn hosts_of_worlds_print_latencies_and_wait() {
    let of_world = |text: &str| Seen {
        isolation: Isolation::Model,
        ..printing(text)
    };
    let weights = Impact {
        latency: 1.0,
        ..Impact::default()
    };
    let (usual, slow) = (
        of_world("client: latency 2\n"),
        of_world("client: latency 6\n"),
    );
    assert_eq!(shown(&weights, &slow, &usual), (Outcome::Passed, 2.0));
    let mut stuck = of_world("client: latency 2\n");
    stuck.stuck.insert("server".to_owned());
    assert_eq!(shown(&weights, &stuck, &usual), (Outcome::Hung, 10.0));
    // It also waits without faults.
    assert_eq!(shown(&weights, &stuck, &stuck), (Outcome::Passed, 0.0));
}
