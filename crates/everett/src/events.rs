//! Events that operations report while they run. Owns the kinds of events and the observer trait;
//! must not know how events are displayed.

use everett_engine::{Difference, Finding, PathEnd, Trace};
use everett_report::Outcome;
use everett_vm::Note;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use crate::finding::FindingEntry;
use crate::repeat::Repeats;
use crate::seeds::SeedFile;
use crate::summary::{Comparison, DifferenceEntry, Summary};
use crate::trace::Ending;
use crate::trojans::summary::TrojanEntry;
use crate::verdict::Verdict;

/// An event of an operation.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'e> {
    /// A search began; its results go to this folder.
    Started {
        /// The folder.
        folder: &'e Path,
    },
    /// Periodic progress of a search; see [`Observer::progress_interval`].
    Progress(&'e Progress),
    /// A path of a program has printed something ([`RunSpec::klee_messages`](crate::RunSpec)).
    Printed {
        /// Standard output and standard error, since the path was heard of last.
        output: &'e [Vec<u8>; 2],
    },
    /// A path of a program has something to say to the user (`klee_warning`), as
    /// [`Event::Printed`].
    Noted {
        /// What it says.
        notes: &'e [Note],
    },
    /// The path of a seed begins ([`RunSpec::seeds_apart`](crate::RunSpec)).
    Seed(&'e SeedFile),
    /// A path of a program ended.
    PathDone(&'e PathEnd),
    /// A world ended; the traces of its hosts, by name.
    WorldDone(&'e BTreeMap<String, Trace>),
    /// A test was written.
    Test {
        /// The common prefix of its file names, relative to the folder of the run.
        name: &'e str,
    },
    /// A search reported a finding.
    Finding {
        /// The number of the finding, from 1.
        number: u64,
        /// The finding's entry in the summary.
        entry: &'e FindingEntry,
        /// The complete finding.
        finding: &'e Finding,
    },
    /// Two builds behave differently on an input ([`RunSpec::against`](crate::RunSpec)).
    Difference {
        /// The difference's entry in the summary.
        entry: &'e DifferenceEntry,
        /// The complete difference.
        difference: &'e Difference,
    },
    /// A difference was replayed on both native builds.
    DifferenceReplayed {
        /// The difference's entry in the summary.
        entry: &'e DifferenceEntry,
        /// The verdict.
        verdict: &'e Verdict,
    },
    /// The native programs of two scenarios behave differently in a world.
    WorldsDiffer {
        /// The difference's entry in the summary.
        entry: &'e DifferenceEntry,
    },
    /// All worlds of two scenarios were compared.
    Compared {
        /// The result of the comparison.
        comparison: &'e Comparison,
    },
    /// A finding is being replayed natively. This takes long if a checked build must be made first.
    Confirming {
        /// The finding's entry in the summary.
        entry: &'e FindingEntry,
        /// The number of findings.
        findings: usize,
    },
    /// A finding was replayed natively.
    FindingReplayed {
        /// The finding's entry in the summary.
        entry: &'e FindingEntry,
        /// The verdict.
        verdict: &'e Verdict,
    },
    /// All findings were replayed natively.
    FindingsReplayed {
        /// Number of confirmed findings.
        confirmed: usize,
        /// Number of findings.
        findings: usize,
    },
    /// A class of messages was found that a server accepts and no client sends.
    Trojan(&'e TrojanEntry),
    /// A phase of an analysis begins.
    Phase(&'e str),
    /// A limit truncated the search.
    LimitHit(&'e str),
    /// A warning for the user.
    Warning(&'e str),
    /// A search ended; its results are about to be written.
    Finished {
        /// The summary of the run.
        summary: &'e Summary,
        /// The folder of the run.
        folder: &'e Path,
    },
    /// A trace was followed in the engine.
    Followed {
        /// The trace.
        path: &'e Path,
        /// How the trace ended.
        ending: &'e Ending,
    },
    /// The system calls of a followed trace, in the format of strace.
    Calls {
        /// The trace.
        path: &'e Path,
        /// Number of traces that are followed.
        of: usize,
        /// One line per call.
        lines: &'e [String],
    },
    /// An event of a native replay occurred.
    Step {
        /// The host, if there are several.
        host: Option<&'e str>,
        /// The number of the event on its host, from 1.
        number: usize,
        /// The event, in the format of strace.
        line: &'e str,
        /// The time on the clock of the host.
        clock_ns: u64,
    },
    /// A trace was replayed several times.
    Repeated {
        /// The trace.
        path: &'e Path,
        /// Number of runs.
        times: NonZeroU32,
        /// How the runs compare.
        repeats: &'e Repeats,
    },
    /// The packets of a replay were written.
    Captured {
        /// The host, if there are several.
        host: Option<&'e str>,
        /// The pcap file.
        file: &'e Path,
        /// Number of packets.
        packets: usize,
    },
    /// The output of a native program.
    Output {
        /// The host, if there are several.
        host: Option<&'e str>,
        /// Standard output and standard error.
        streams: &'e [Vec<u8>; 2],
    },
    /// A trace was replayed natively.
    Replayed {
        /// The trace.
        path: &'e Path,
        /// The verdict.
        verdict: &'e Verdict,
    },
    /// A trace of a regression suite was replayed.
    Tested {
        /// The trace.
        path: &'e Path,
        /// The outcome.
        outcome: &'e Outcome,
    },
}

/// The progress of a search.
#[derive(Clone, PartialEq, Debug)]
pub struct Progress {
    /// Time since the search began.
    pub elapsed: Duration,
    /// Paths that ended.
    pub paths: u64,
    /// Number of states.
    pub states: usize,
    /// Number of findings so far.
    pub findings: usize,
    /// Instructions executed so far.
    pub instructions: u64,
    /// Instructions per second since the last progress event.
    pub instructions_per_second: f64,
    /// Time spent in solvers so far.
    pub solver_time: Duration,
    /// Number of executed code segments.
    pub segments_covered: usize,
    /// Number of all code segments.
    pub segments: usize,
    /// Progress of the world, if a scenario is explored.
    pub world: Option<WorldProgress>,
}

/// The progress of a search of worlds.
#[derive(Clone, PartialEq, Debug)]
pub struct WorldProgress {
    /// The smallest clock of all states.
    pub virtual_ns: u64,
    /// Number of dstates: groups of states of different hosts that form worlds.
    pub dstates: usize,
}

/// Receives the events of an operation.
pub trait Observer {
    /// Handles an event.
    fn event(&mut self, event: &Event<'_>);

    /// Returns the interval between progress events; `None` disables them at no cost.
    fn progress_interval(&self) -> Option<Duration> {
        None
    }
}

/// An observer that ignores all events.
#[derive(Copy, Clone, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn event(&mut self, _: &Event<'_>) {}
}

impl<F: FnMut(&Event<'_>)> Observer for F {
    fn event(&mut self, event: &Event<'_>) {
        self(event);
    }
}

/// Decides when progress is due and measures the instruction rate.
pub(crate) struct Meter {
    interval: Option<Duration>,
    next: Duration,
    last: (Duration, u64),
}

impl Meter {
    /// Creates a meter with the interval of an observer.
    pub(crate) fn of(observer: &dyn Observer) -> Meter {
        let interval = observer.progress_interval();
        Meter {
            interval,
            next: interval.unwrap_or_default(),
            last: (Duration::ZERO, 0),
        }
    }

    /// Returns the current time, if progress is due.
    pub(crate) fn due(&mut self, now: impl FnOnce() -> Duration) -> Option<Duration> {
        let interval = self.interval?;
        let now = now();
        if now < self.next {
            return None;
        }
        self.next = now + interval;
        Some(now)
    }

    /// Returns the instructions per second since the last call.
    pub(crate) fn rate(&mut self, now: Duration, instructions: u64) -> f64 {
        let seconds = now.saturating_sub(self.last.0).as_secs_f64().max(1e-9);
        let rate = instructions.saturating_sub(self.last.1) as f64 / seconds;
        self.last = (now, instructions);
        rate
    }
}
