//! The event log of a native run: all actions of its threads and everything that they received, in
//! order. Two runs are equal only if their logs are.

use std::fmt::{Display, Formatter};

use everett_linux::TaskName;

/// Kinds of events.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// A thread was scheduled.
    Picked,
    /// The thread makes a system call; number and arguments follow.
    Call,
    /// The system call returns a result.
    Result,
    /// The thread runs the handler of a signal.
    Signal,
    /// The thread faulted; signal and address follow.
    Fault,
    /// The thread was created.
    Born,
    /// The thread executes another program.
    Executed,
    /// The thread was interrupted after a long computation.
    Computes,
}

/// An event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// The kind of the event.
    pub kind: EventKind,
    /// The thread.
    pub who: TaskName,
    /// Details: numbers, arguments, results.
    pub words: Box<[u64]>,
}

impl Display for Event {
    fn fmt(&self, to: &mut Formatter<'_>) -> std::fmt::Result {
        write!(to, "{}:{} {:?}", self.who.pid, self.who.tid, self.kind)?;
        self.words
            .iter()
            .try_for_each(|word| write!(to, " {word:#x}"))
    }
}

/// The event log, or only its digest.
#[derive(Default)]
pub struct EventLog {
    digest: u64,
    kept: Option<Vec<Event>>,
}

impl EventLog {
    /// Creates an empty log; `keeps` says whether events are kept besides the digest.
    pub fn new(keeps: bool) -> EventLog {
        EventLog {
            digest: 0xcbf2_9ce4_8422_2325,
            kept: keeps.then(Vec::new),
        }
    }

    /// Logs an event.
    pub fn note(&mut self, kind: EventKind, who: TaskName, words: &[u64]) {
        let head = [kind as u64, u64::from(who.pid) << 32 | u64::from(who.tid)];
        for word in head.iter().chain(words) {
            // Every step is a permutation, so every event affects the digest.
            self.digest = (self.digest ^ word)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(29);
        }
        if let Some(kept) = &mut self.kept {
            let words = words.into();
            kept.push(Event { kind, who, words });
        }
    }

    /// Returns the digest of all events: different logs have different digests.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Returns the events, if they were kept.
    pub fn events(self) -> Vec<Event> {
        self.kept.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHO: TaskName = TaskName { pid: 1, tid: 2 };

    fn digest_of(events: &[(EventKind, &[u64])]) -> u64 {
        let mut log = EventLog::new(true);
        for (kind, words) in events {
            log.note(*kind, WHO, words);
        }
        let digest = log.digest();
        assert_eq!(log.events().len(), events.len());
        digest
    }

    #[test]
    fn logs_that_differ_have_other_digests() {
        let base = digest_of(&[(EventKind::Picked, &[]), (EventKind::Call, &[1, 2])]);
        let others = [
            digest_of(&[(EventKind::Call, &[1, 2]), (EventKind::Picked, &[])]),
            digest_of(&[(EventKind::Picked, &[]), (EventKind::Call, &[2, 1])]),
            digest_of(&[(EventKind::Picked, &[]), (EventKind::Result, &[1, 2])]),
            digest_of(&[(EventKind::Picked, &[])]),
        ];
        assert!(others.iter().all(|other| *other != base));
        let again = digest_of(&[(EventKind::Picked, &[]), (EventKind::Call, &[1, 2])]);
        assert_eq!(again, base);
    }

    #[test]
    fn events_are_shown_with_their_thread() {
        let event = Event {
            kind: EventKind::Call,
            who: WHO,
            words: [1, 16].into(),
        };
        assert_eq!(event.to_string(), "1:2 Call 0x1 0x10");
    }
}
