//! Observations: the data that hosts expose to invariants, and the history of that data.
//!
//! A host's observation log is part of its state. A world is a choice of one state per host, so
//! merging the logs by clock gives the history of that world, however worlds share states.

use everett_expr::{Arena, ExprId};
use everett_invariant::{Byte, Exposed, Invariant, View, When, evaluate};
use everett_linux::ExposedData;
use everett_vm::Value;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::list::SharedList;

/// The data that a host exposes from some time on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Observation {
    /// The host's clock at the change.
    pub at_ns: u64,
    /// All data that the host exposes from then on.
    pub data: ExposedData,
}

impl Observation {
    /// Creates the observation of a host that is powered off and exposes nothing.
    pub fn nothing(at_ns: u64) -> Observation {
        let data = ExposedData::default();
        Observation { at_ns, data }
    }
}

/// The observations of a host, in order.
pub type ObservationLog = SharedList<Observation>;

/// The history of the data that a host exposed, at the end of its world.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct History {
    /// Every change of the data.
    pub observations: ObservationLog,
    /// The data at the end.
    pub last: ExposedData,
}

/// Returns the data of all hosts after each change, in the order of clocks and, at equal times, of
/// host numbers; the end comes last.
pub fn timeline(histories: &[&History]) -> Vec<Vec<ExposedData>> {
    let mut changes: Vec<(u64, usize, &ExposedData)> = Vec::new();
    for (host, history) in histories.iter().enumerate() {
        let own = history.observations.iter();
        changes.extend(own.map(|one| (one.at_ns, host, &one.data)));
    }
    // The sort is stable: changes of one host keep their order.
    changes.sort_by_key(|(at_ns, host, _)| (*at_ns, *host));
    let mut now = vec![ExposedData::default(); histories.len()];
    let mut all = Vec::with_capacity(changes.len() + 1);
    for (_, host, data) in changes {
        now[host] = data.clone();
        all.push(now.clone());
    }
    let last: Vec<ExposedData> = histories
        .iter()
        .map(|history| history.last.clone())
        .collect();
    if all.last() != Some(&last) {
        all.push(last);
    }
    all
}

/// Returns the message of a finding: an invariant is broken when it is evaluated on this occasion.
pub fn broken_message(invariant: &Invariant, when: When) -> String {
    let name = invariant.name();
    match when {
        When::OnChange | When::AtEnd => format!("the invariant {name} does not hold"),
        When::At { time_ns } => {
            let seconds = Duration::from_nanos(time_ns).as_secs_f64();
            format!("the invariant {name} does not hold at {seconds} s")
        }
        When::Eventually => format!("the invariant {name} never held"),
    }
}

/// Returns the data of all hosts in the form that invariants read.
pub fn view<'d>(
    hosts: impl Iterator<Item = (&'d String, &'d ExposedData)>,
    arena: &mut Arena,
) -> Exposed {
    let mut view = Exposed::new();
    for (name, data) in hosts {
        let node = view.add_node(name.clone());
        for ((state, key), bytes) in data.iter() {
            let bytes = (0..bytes.len()).map(|at| {
                let value: Value = bytes.byte(arena, at);
                match value.term {
                    Some(term) => Byte::Term(term),
                    None => Byte::Known(value.bits as u8),
                }
            });
            view.expose(node, state, key, bytes.collect());
        }
    }
    view
}

/// Concrete data of a host, by state and key.
pub type KnownData = BTreeMap<(String, String), Vec<u8>>;

/// Returns the data that an invariant reads: number of the host, state and key.
pub fn read_by(
    invariant: &Invariant,
    names: &[String],
    shown: &[KnownData],
    arena: &mut Arena,
) -> BTreeSet<(usize, (String, String))> {
    let mut all = Exposed::new();
    for (name, data) in names.iter().zip(shown) {
        let node = all.add_node(name.clone());
        for ((state, key), bytes) in data {
            all.expose_known(node, state, key, bytes);
        }
    }
    let reads = RefCell::default();
    let view = Recording { all, reads };
    // An invariant that cannot be evaluated has read something, too.
    let _ = evaluate(invariant, &view, arena);
    view.reads.into_inner()
}

/// A view that records what is read.
struct Recording {
    all: Exposed,
    reads: RefCell<BTreeSet<(usize, (String, String))>>,
}

impl View for Recording {
    fn nodes(&self) -> Vec<String> {
        self.all.nodes()
    }

    fn exposed(&self, node: usize) -> Vec<(String, String)> {
        self.all.exposed(node)
    }

    fn data(&self, node: usize, state: &str, key: &str) -> Option<Cow<'_, [Byte]>> {
        let name = (state.to_owned(), key.to_owned());
        self.reads.borrow_mut().insert((node, name));
        self.all.data(node, state, key)
    }
}

/// Returns the condition that an invariant held at no point of a timeline, and the errors of
/// evaluating it at the last point. At earlier points, the data that it reads may not exist yet, so
/// an invariant that cannot be evaluated there did not hold.
pub fn never_held(
    invariant: &Invariant,
    names: &[String],
    timeline: &[Vec<ExposedData>],
    arena: &mut Arena,
) -> (ExprId, Vec<String>) {
    let mut never = arena.constant(1, 1);
    let mut failures = Vec::new();
    for (at, shown) in timeline.iter().enumerate() {
        let is_last = at + 1 == timeline.len();
        let view = view(names.iter().zip(shown), arena);
        let verdict = match evaluate(invariant, &view, arena) {
            Ok(verdict) => verdict,
            Err(error) if is_last => return (arena.constant(1, 0), vec![error.to_string()]),
            Err(_) => continue,
        };
        let mut held = verdict.holds;
        if !is_last {
            // An error counts as true, which is correct only for the last point.
            for failure in &verdict.failures {
                let defined = arena.not(failure.when);
                held = arena.and(held, defined);
            }
        } else {
            let errors = verdict.failures.iter();
            failures = errors.map(|failure| failure.error.to_string()).collect();
        }
        let other = arena.not(held);
        never = arena.and(never, other);
        if arena.as_const(never) == Some(0) {
            return (never, Vec::new());
        }
    }
    (never, failures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use everett_vm::Buffer;

    fn shown(value: u8) -> ExposedData {
        let key = ("0".to_owned(), "x".to_owned());
        let bytes = Buffer::with_bytes(&[value], 1).into();
        ExposedData::new(BTreeMap::from([(key, bytes)]))
    }

    fn history(changes: &[(u64, u8)]) -> History {
        let observations = changes.iter().map(|(at_ns, value)| Observation {
            at_ns: *at_ns,
            data: shown(*value),
        });
        let last = changes
            .last()
            .map_or_else(ExposedData::default, |(_, value)| shown(*value));
        History {
            observations: observations.collect(),
            last,
        }
    }

    fn values(timeline: &[Vec<ExposedData>]) -> Vec<Vec<Option<u8>>> {
        let value = |data: &ExposedData| data.values().next().map(|bytes| bytes.bytes()[0]);
        let row = |row: &Vec<ExposedData>| row.iter().map(value).collect();
        timeline.iter().map(row).collect()
    }

    #[test]
    fn changes_come_in_the_order_of_clocks() {
        let (one, other) = (
            history(&[(5, 1), (5, 2), (9, 3)]),
            history(&[(5, 7), (6, 8)]),
        );
        let all = values(&timeline(&[&one, &other]));
        assert_eq!(
            all,
            [
                [Some(1), None],
                [Some(2), None],
                [Some(2), Some(7)],
                [Some(2), Some(8)],
                [Some(3), Some(8)],
            ]
        );
        assert_eq!(values(&timeline(&[&history(&[])])), [[None]]);
    }

    #[test]
    fn what_is_read_is_known() {
        let text = "invariant same() { return sys.data(\"a\", 0, \"x\").int() == \
                    sys.data(\"b\", 0, \"x\").int(); }";
        let invariants = everett_invariant::parse(text).expect("it is right");
        let invariant = invariants.get("same").expect("it is there");
        let names = ["a".to_owned(), "b".to_owned()];
        let name = |key: &str| ("0".to_owned(), key.to_owned());
        let data = |value| BTreeMap::from([(name("x"), vec![value]), (name("y"), vec![9])]);
        let read = read_by(invariant, &names, &[data(1), data(2)], &mut Arena::new());
        assert_eq!(read, BTreeSet::from([(0, name("x")), (1, name("x"))]));
    }

    #[test]
    fn what_held_once_is_enough() {
        let text = "eventually invariant two() { return sys.data(\"a\", 0, \"x\").int() == 2; }";
        let invariants = everett_invariant::parse(text).expect("it is right");
        let invariant = invariants.get("two").expect("it is there");
        let names = ["a".to_owned()];
        let mut arena = Arena::new();
        let mut never = |changes: &[(u64, u8)]| {
            let (term, failures) = never_held(
                invariant,
                &names,
                &timeline(&[&history(changes)]),
                &mut arena,
            );
            (arena.as_const(term), failures.len())
        };
        assert_eq!(never(&[(1, 1), (2, 2), (3, 3)]), (Some(0), 0));
        assert_eq!(never(&[(1, 1), (3, 3)]), (Some(1), 0));
        // No data exists, not even at the end.
        assert_eq!(never(&[]), (Some(0), 1));
    }
}
