//! The conclusion of an operation (clean, findings, failed, interrupted): one rule for exit codes
//! and for other front ends.

use everett_native::{NativeEnd, WorldRun};
use everett_vm::{BugKind, MOST_FRAMES, NativeSign};

use crate::summary::Summary;

/// The conclusion of an operation. If several apply, the first in the order findings, failed,
/// interrupted counts: a finding stays one, whatever else happened.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Conclusion {
    /// The operation did its work and found nothing.
    Clean,
    /// The operation found a bug in the program.
    Findings,
    /// The operation could not do its work, or not all of it, and not because of a limit of the
    /// user.
    Failed,
    /// The operation was interrupted.
    Interrupted,
}

/// Limits that are not options of the user: something is wrong with the setup, or unsupported.
const FAILURES: [&str; 7] = [
    "begin",
    "diverged",
    "invariant",
    "lost-state",
    "peers",
    "solver",
    "unsupported",
];

/// Returns whether a finding of this kind concerns Everett, not the program.
pub(crate) fn is_tool_limit(kind: &str) -> bool {
    BugKind::from_name(kind).is_some_and(BugKind::is_tool_limit)
}

impl Conclusion {
    /// Returns the conclusion of an operation of which these apply.
    pub fn new(has_findings: bool, has_failed: bool, is_interrupted: bool) -> Conclusion {
        match (has_findings, has_failed, is_interrupted) {
            (true, ..) => Conclusion::Findings,
            (_, true, _) => Conclusion::Failed,
            (.., true) => Conclusion::Interrupted,
            _ => Conclusion::Clean,
        }
    }
}

impl Summary {
    fn pairs_different(&self) -> u64 {
        let against = self.against.as_ref();
        against.map_or(0, |against| against.pairs_different)
    }

    /// Returns the conclusion of the search.
    pub fn conclusion(&self) -> Conclusion {
        // A path that the user's limit on nested calls has cut off is no failure.
        let findings = self.findings.iter().filter(|finding| {
            finding.kind != BugKind::Unsupported.name() || !finding.message.starts_with(MOST_FRAMES)
        });
        let kinds = findings.map(|finding| &finding.kind);
        let (ours, others): (Vec<_>, Vec<_>) = kinds.partition(|kind| is_tool_limit(kind));
        let mut limits = self.limits_hit.iter();
        let has_failed = limits.any(|limit| FAILURES.contains(&limit.as_str()));
        Conclusion::new(
            !others.is_empty() || self.pairs_different() > 0,
            has_failed || !ours.is_empty(),
            self.stopped == "asked",
        )
    }
}

/// Returns whether a run was ended by Everett, and not by the program or its bugs.
pub(crate) fn is_given_up(end: &NativeEnd) -> bool {
    match end {
        NativeEnd::Limit(_) | NativeEnd::Diverged(_) => true,
        NativeEnd::Finding { kind, .. } => is_tool_limit(kind),
        _ => false,
    }
}

/// Returns whether Everett could not do its work in a native run.
pub(crate) fn has_failed(seen: &WorldRun) -> bool {
    let mut ends = seen.hosts.values().map(|run| &run.end);
    !seen.unevaluated.is_empty() || ends.any(is_given_up)
}

/// How a program that runs once, concretely or natively, ends for its caller.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Guest {
    /// The program's own exit status.
    Exit(u8),
    /// This signal, or a finding that ends native code with this signal.
    Signal(i32),
    /// An end that only Everett distinguishes.
    Ours(Conclusion),
}

impl Guest {
    /// Returns the end of a program with a finding of this kind.
    pub fn of_kind(kind: BugKind) -> Guest {
        match kind.native_sign() {
            NativeSign::Signals([signal, ..]) => Guest::Signal(*signal),
            _ if kind.is_tool_limit() => Guest::Ours(Conclusion::Failed),
            _ => Guest::Ours(Conclusion::Findings),
        }
    }

    /// Returns the end of a native run.
    pub fn of_native(end: &NativeEnd) -> Guest {
        match end {
            NativeEnd::Exit(status) => Guest::Exit(*status as u8),
            NativeEnd::Signal { signal, .. } => Guest::Signal(*signal),
            NativeEnd::Finding { kind, .. } => match BugKind::from_name(kind) {
                Some(kind) => Guest::of_kind(kind),
                None => Guest::Ours(Conclusion::Findings),
            },
            NativeEnd::Hang => Guest::of_kind(BugKind::Hang),
            NativeEnd::Idle | NativeEnd::Off => Guest::Ours(Conclusion::Clean),
            NativeEnd::Limit(_) | NativeEnd::Diverged(_) => Guest::Ours(Conclusion::Failed),
            NativeEnd::Stopped => Guest::Ours(Conclusion::Interrupted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_ends_a_program_by_the_signal_of_the_kernel() {
        for (kind, signal) in [(BugKind::BeyondFile, 7), (BugKind::OutOfBounds, 11)] {
            assert_eq!(Guest::of_kind(kind), Guest::Signal(signal));
        }
    }

    #[test]
    fn the_first_of_findings_failures_and_interrupts_counts() {
        let cases = [
            ((false, false, false), Conclusion::Clean),
            ((true, true, true), Conclusion::Findings),
            ((false, true, true), Conclusion::Failed),
            ((false, false, true), Conclusion::Interrupted),
        ];
        for ((found, failed, interrupted), expected) in cases {
            assert_eq!(Conclusion::new(found, failed, interrupted), expected);
        }
    }

    #[test]
    fn a_guest_ends_the_same_whoever_runs_it() {
        let native = |kind: BugKind| {
            Guest::of_native(&NativeEnd::Finding {
                kind: kind.name().to_owned(),
                message: String::new(),
            })
        };
        for kind in BugKind::ALL {
            assert_eq!(native(*kind), Guest::of_kind(*kind), "{}", kind.name());
        }
        assert_eq!(
            Guest::of_kind(BugKind::Deadlock),
            Guest::Ours(Conclusion::Findings)
        );
        assert_eq!(
            Guest::of_kind(BugKind::Unsupported),
            Guest::Ours(Conclusion::Failed)
        );
    }
}
