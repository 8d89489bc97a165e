//! What operations tell while they go on. Owns the kinds of events and who listens to them; must not know how they are
//! shown.

use everett_engine::{Finding, PathEnd, Trace};
use everett_report::Outcome;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use crate::follow::Ending;
use crate::record::FindingEntry;
use crate::repeat::Repeats;
use crate::replay::Verdict;
use crate::summary::RunSummary;

/// Something that happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'e> {
    /// A search began; its results go to this folder.
    Started {
        /// The folder.
        folder: &'e Path,
    },
    /// How far a search is, now and then: see [`Observer::progress_interval`].
    Progress(&'e Progress),
    /// A path of a program ended.
    PathDone(&'e PathEnd),
    /// A world came to its end; what led to it, by the names of hosts.
    WorldDone(&'e BTreeMap<String, Trace>),
    /// A test was written.
    Test {
        /// Its files begin with this name, below the folder of the run.
        name: &'e str,
    },
    /// A search found something.
    Finding {
        /// Its number, from 1.
        number: u64,
        /// As the summary lists it.
        entry: &'e FindingEntry,
        /// All that is known of it.
        finding: &'e Finding,
    },
    /// A finding was tried natively.
    FindingReplayed {
        /// As the summary lists it.
        entry: &'e FindingEntry,
        /// What became of it.
        verdict: &'e Verdict,
    },
    /// All findings were tried natively.
    FindingsReplayed {
        /// How many are confirmed.
        confirmed: usize,
        /// Of how many.
        findings: usize,
    },
    /// A limit cut something off.
    LimitHit(&'e str),
    /// The user should know this.
    Warning(&'e str),
    /// A search is over and its results are about to be written.
    Finished {
        /// What it found, counted and covered.
        summary: &'e RunSummary,
        /// The folder of its results.
        folder: &'e Path,
    },
    /// A trace was followed in the engine.
    Followed {
        /// The trace.
        path: &'e Path,
        /// How it ended.
        ending: &'e Ending,
    },
    /// System calls of a trace that was followed, in the form of strace.
    Calls {
        /// The trace.
        path: &'e Path,
        /// It is one of this many.
        of: usize,
        /// A line for each call.
        lines: &'e [String],
    },
    /// An event of a native replay happened just now.
    Step {
        /// The host, where there are several.
        host: Option<&'e str>,
        /// Its number on the host, from 1.
        number: usize,
        /// The event, in the form of strace.
        line: &'e str,
        /// When, by the clock of the host.
        clock_ns: u64,
    },
    /// A trace was replayed several times.
    Repeated {
        /// The trace.
        path: &'e Path,
        /// How often.
        times: NonZeroU32,
        /// Whether all runs were the same.
        repeats: &'e Repeats,
    },
    /// Packets of a replay were written.
    Captured {
        /// The host, where there are several.
        host: Option<&'e str>,
        /// Where to.
        file: &'e Path,
        /// How many they are.
        packets: usize,
    },
    /// What a native program wrote.
    Output {
        /// The host, where there are several.
        host: Option<&'e str>,
        /// Standard output and standard error.
        streams: &'e [Vec<u8>; 2],
    },
    /// A trace was replayed natively.
    Replayed {
        /// The trace.
        path: &'e Path,
        /// Whether it happened again.
        verdict: &'e Verdict,
    },
    /// A trace of a regression suite was tried.
    Tested {
        /// The trace.
        path: &'e Path,
        /// What came of it.
        outcome: &'e Outcome,
    },
}

/// How far a search is.
#[derive(Clone, PartialEq, Debug)]
pub struct Progress {
    /// Time since the search began.
    pub elapsed: Duration,
    /// Paths that ended.
    pub paths: u64,
    /// States that there are.
    pub states: usize,
    /// Findings so far.
    pub findings: usize,
    /// Instructions executed so far.
    pub instructions: u64,
    /// Instructions a second, since progress was told before.
    pub instructions_per_second: f64,
    /// Time in solvers so far.
    pub solver_time: Duration,
    /// Segments of code that were executed.
    pub segments_covered: usize,
    /// All segments.
    pub segments: usize,
    /// What there is of worlds, where a scenario is explored.
    pub world: Option<WorldProgress>,
}

/// How far a search of worlds is.
#[derive(Clone, PartialEq, Debug)]
pub struct WorldProgress {
    /// The least clock of all states.
    pub virtual_ns: u64,
    /// Groups of states that belong together.
    pub dstates: usize,
}

/// Listens to what an operation tells.
pub trait Observer {
    /// Something happened.
    fn event(&mut self, event: &Event<'_>);

    /// How often progress is wanted; never, unless said otherwise. To ask costs nothing then.
    fn progress_interval(&self) -> Option<Duration> {
        None
    }
}

/// Listens to nothing.
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

/// Says when progress is due, and how fast it is.
pub(crate) struct Meter {
    interval: Option<Duration>,
    next: Duration,
    last: (Duration, u64),
}

impl Meter {
    /// For an observer.
    pub(crate) fn of(observer: &dyn Observer) -> Meter {
        let interval = observer.progress_interval();
        Meter {
            interval,
            next: interval.unwrap_or_default(),
            last: (Duration::ZERO, 0),
        }
    }

    /// The time, if progress is due.
    pub(crate) fn due(&mut self, now: impl FnOnce() -> Duration) -> Option<Duration> {
        let interval = self.interval?;
        let now = now();
        if now < self.next {
            return None;
        }
        self.next = now + interval;
        Some(now)
    }

    /// Instructions a second since the last time.
    pub(crate) fn rate(&mut self, now: Duration, instructions: u64) -> f64 {
        let seconds = now.saturating_sub(self.last.0).as_secs_f64().max(1e-9);
        let rate = instructions.saturating_sub(self.last.1) as f64 / seconds;
        self.last = (now, instructions);
        rate
    }
}
