//! The log of a native run: everything that its threads did and were told, in order. Two runs are the same run only if
//! their logs are the same.

use std::fmt::{Display, Formatter};

use everett_linux::TaskName;

/// What happened.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A thread was picked.
    Picked,
    /// It makes a system call: number and arguments follow.
    Call,
    /// The system call has a result.
    Result,
    /// It runs the handler of a signal.
    Signal,
    /// It faulted: signal and address follow.
    Fault,
    /// It was made.
    Born,
    /// It executes another program.
    Executed,
    /// It computes for long.
    Computes,
}

/// One event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// What.
    pub kind: Kind,
    /// Which thread.
    pub who: TaskName,
    /// What belongs to it: numbers, arguments, results.
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

/// The log, or its digest alone.
#[derive(Default)]
pub struct EventLog {
    digest: u64,
    kept: Option<Vec<Event>>,
}

impl EventLog {
    /// An empty log; `keeps` says whether events are kept beside the digest.
    pub fn new(keeps: bool) -> EventLog {
        EventLog {
            digest: 0xcbf2_9ce4_8422_2325,
            kept: keeps.then(Vec::new),
        }
    }

    /// Something happened.
    pub fn note(&mut self, kind: Kind, who: TaskName, words: &[u64]) {
        let head = [kind as u64, u64::from(who.pid) << 32 | u64::from(who.tid)];
        for word in head.iter().chain(words) {
            // Every step is a permutation, so no event is forgotten.
            self.digest = (self.digest ^ word)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(29);
        }
        if let Some(kept) = &mut self.kept {
            let words = words.into();
            kept.push(Event { kind, who, words });
        }
    }

    /// A number that differs where logs differ.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// The events, if they were kept.
    pub fn events(self) -> Vec<Event> {
        self.kept.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHO: TaskName = TaskName { pid: 1, tid: 2 };

    fn digest_of(events: &[(Kind, &[u64])]) -> u64 {
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
        let base = digest_of(&[(Kind::Picked, &[]), (Kind::Call, &[1, 2])]);
        let others = [
            digest_of(&[(Kind::Call, &[1, 2]), (Kind::Picked, &[])]),
            digest_of(&[(Kind::Picked, &[]), (Kind::Call, &[2, 1])]),
            digest_of(&[(Kind::Picked, &[]), (Kind::Result, &[1, 2])]),
            digest_of(&[(Kind::Picked, &[])]),
        ];
        assert!(others.iter().all(|other| *other != base));
        let again = digest_of(&[(Kind::Picked, &[]), (Kind::Call, &[1, 2])]);
        assert_eq!(again, base);
    }

    #[test]
    fn events_are_shown_with_their_thread() {
        let event = Event {
            kind: Kind::Call,
            who: WHO,
            words: [1, 16].into(),
        };
        assert_eq!(event.to_string(), "1:2 Call 0x1 0x10");
    }
}
