//! What hosts show to invariants: now, and at every change before. A host's own list of changes is a part of its state, so a world,
//! which is a choice of one state a host, has been through all that these lists say, whatever the states shared.

use everett_expr::{Arena, ExprId};
use everett_invariant::{Byte, Exposed, Invariant, When, evaluate};
use everett_linux::ExposedData;
use everett_vm::Value;
use std::time::Duration;

use crate::list::SharedList;

/// What a host showed from some time on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Look {
    /// The time of its clock at the change.
    pub at_ns: u64,
    /// Everything that it showed then.
    pub data: ExposedData,
}

impl Look {
    /// The host is switched off.
    pub fn nothing(at_ns: u64) -> Look {
        let data = ExposedData::default();
        Look { at_ns, data }
    }
}

/// What a host showed, change after change.
pub type Looks = SharedList<Look>;

/// Everything that hosts have shown when a world is at its end.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Story {
    /// Change after change.
    pub looks: Looks,
    /// At the end.
    pub last: ExposedData,
}

/// What all hosts of a world showed after each change, in the order of their clocks and, at one time, of their numbers; the end comes
/// last.
pub fn moments(stories: &[&Story]) -> Vec<Vec<ExposedData>> {
    let mut changes: Vec<(u64, usize, &ExposedData)> = Vec::new();
    for (host, story) in stories.iter().enumerate() {
        let own = story.looks.iter();
        changes.extend(own.map(|look| (look.at_ns, host, &look.data)));
    }
    // Those of one host stay in their order.
    changes.sort_by_key(|(at_ns, host, _)| (*at_ns, *host));
    let mut now = vec![ExposedData::default(); stories.len()];
    let mut all = Vec::with_capacity(changes.len() + 1);
    for (_, host, data) in changes {
        now[host] = data.clone();
        all.push(now.clone());
    }
    let last: Vec<ExposedData> = stories.iter().map(|story| story.last.clone()).collect();
    if all.last() != Some(&last) {
        all.push(last);
    }
    all
}

/// What there is to say of an invariant that is broken when it is looked at for this reason.
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

/// What an invariant sees.
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

/// That an invariant held at none of these moments, as a term; and why it cannot be said of the last one. Before the end there may be
/// nothing yet that it could look at, so where it could not be evaluated it did not hold.
pub fn never_held(
    invariant: &Invariant,
    names: &[String],
    moments: &[Vec<ExposedData>],
    arena: &mut Arena,
) -> (ExprId, Vec<String>) {
    let mut never = arena.constant(1, 1);
    let mut failures = Vec::new();
    for (at, shown) in moments.iter().enumerate() {
        let is_last = at + 1 == moments.len();
        let view = view(names.iter().zip(shown), arena);
        let verdict = match evaluate(invariant, &view, arena) {
            Ok(verdict) => verdict,
            Err(error) if is_last => return (arena.constant(1, 0), vec![error.to_string()]),
            Err(_) => continue,
        };
        let mut held = verdict.holds;
        if !is_last {
            // What cannot be evaluated counts as true, which is right for the end alone.
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
    use std::collections::BTreeMap;

    fn shown(value: u8) -> ExposedData {
        let key = ("0".to_owned(), "x".to_owned());
        let bytes = Buffer::with_bytes(&[value], 1).into();
        ExposedData::new(BTreeMap::from([(key, bytes)]))
    }

    fn story(changes: &[(u64, u8)]) -> Story {
        let looks = changes.iter().map(|(at_ns, value)| Look {
            at_ns: *at_ns,
            data: shown(*value),
        });
        let last = changes
            .last()
            .map_or_else(ExposedData::default, |(_, value)| shown(*value));
        Story {
            looks: looks.collect(),
            last,
        }
    }

    fn values(moments: &[Vec<ExposedData>]) -> Vec<Vec<Option<u8>>> {
        let value = |data: &ExposedData| data.values().next().map(|bytes| bytes.bytes()[0]);
        let row = |row: &Vec<ExposedData>| row.iter().map(value).collect();
        moments.iter().map(row).collect()
    }

    #[test]
    fn changes_come_in_the_order_of_clocks() {
        let (one, other) = (story(&[(5, 1), (5, 2), (9, 3)]), story(&[(5, 7), (6, 8)]));
        let all = values(&moments(&[&one, &other]));
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
        assert_eq!(values(&moments(&[&story(&[])])), [[None]]);
    }

    #[test]
    fn what_held_once_is_enough() {
        let text = "eventually invariant two() { return sys.data(\"a\", 0, \"x\").int() == 2; }";
        let invariants = everett_invariant::parse(text).expect("it is right");
        let invariant = invariants.get("two").expect("it is there");
        let names = ["a".to_owned()];
        let mut arena = Arena::new();
        let mut never = |changes: &[(u64, u8)]| {
            let (term, failures) =
                never_held(invariant, &names, &moments(&[&story(changes)]), &mut arena);
            (arena.as_const(term), failures.len())
        };
        assert_eq!(never(&[(1, 1), (2, 2), (3, 3)]), (Some(0), 0));
        assert_eq!(never(&[(1, 1), (3, 3)]), (Some(1), 0));
        // There is nothing to look at, not even at the end.
        assert_eq!(never(&[]), (Some(0), 1));
    }
}
