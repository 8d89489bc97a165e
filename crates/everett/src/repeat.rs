//! Repeats native runs of one trace, and compares their event logs: all must be equal.

use everett_native::{Event, NativeRun, WorldRun};

use crate::error::Result;

/// The result of repeated runs of one trace.
#[derive(Clone, Debug)]
pub struct Repeats {
    /// Number of events of the first run.
    pub events: usize,
    /// Number of runs whose log differs from that of the first one.
    pub others: u32,
    /// The first difference.
    pub difference: Option<String>,
}

impl Repeats {
    /// Returns whether all runs were equal.
    pub fn are_same(&self) -> bool {
        self.difference.is_none()
    }
}

/// Runs a trace this many times and compares the event logs of all hosts.
pub(crate) fn repeat(
    run: impl Fn() -> Result<WorldRun>,
    times: u32,
    is_program: bool,
) -> Result<Repeats> {
    let first = run()?;
    let mut repeats = Repeats {
        events: first.hosts.values().map(|host| host.events.len()).sum(),
        others: 0,
        difference: None,
    };
    for _ in 1..times {
        let seen = run()?;
        let hosts = first.hosts.iter().zip(&seen.hosts);
        let mut others = hosts.filter(|(first, seen)| is_other(first.1, seen.1));
        let difference = match others.next() {
            Some(((name, first), (_, seen))) => {
                let difference = difference(&first.events, &seen.events);
                match is_program {
                    true => difference,
                    false => format!("host {name}: {difference}"),
                }
            }
            None if seen.broken != first.broken => "other invariants hold".to_owned(),
            None => continue,
        };
        repeats.others += 1;
        repeats.difference.get_or_insert(difference);
    }
    Ok(repeats)
}

fn is_other(first: &NativeRun, seen: &NativeRun) -> bool {
    seen.digest != first.digest || seen.end != first.end || seen.output != first.output
}

/// Describes the first difference between two logs.
fn difference(first: &[Event], other: &[Event]) -> String {
    let show = |event: Option<&Event>| event.map_or("the end".to_owned(), Event::to_string);
    let longest = first.len().max(other.len());
    match (0..longest).find(|at| first.get(*at) != other.get(*at)) {
        Some(at) => {
            let (one, another) = (show(first.get(at)), show(other.get(at)));
            format!("event {at} is {one} and {another}")
        }
        None => "the ends or outputs differ".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everett_linux::TaskName;
    use everett_native::EventKind;

    fn event(result: u64) -> Event {
        Event {
            kind: EventKind::Result,
            who: TaskName { pid: 1, tid: 1 },
            words: [result].into(),
        }
    }

    #[test]
    fn the_first_difference_is_told() {
        let first = [event(1), event(2), event(3)];
        let other = [event(1), event(4), event(3)];
        let told = difference(&first, &other);
        assert_eq!(told, "event 1 is 1:1 Result 0x2 and 1:1 Result 0x4");
        let told = difference(&first, &first[..2]);
        assert_eq!(told, "event 2 is 1:1 Result 0x3 and the end");
    }
}
