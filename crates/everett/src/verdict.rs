//! The verdict of a native replay about a trace, and the build for which it holds. Must not know
//! how replays work.

use everett_toolchain::Checks;

/// The verdict of replaying a trace natively.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The replay ended as the trace says.
    Confirmed,
    /// The replay ended differently, with the reason.
    NotReproduced(String),
    /// The trace could not be replayed, with the reason.
    NotReplayable(String),
}

impl Verdict {
    /// Returns the name in `summary.json`.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Confirmed => "confirmed",
            Verdict::NotReproduced(_) => "not-reproduced",
            Verdict::NotReplayable(_) => "not-replayable",
        }
    }

    /// Returns why the trace was not confirmed.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Verdict::Confirmed => None,
            Verdict::NotReproduced(why) | Verdict::NotReplayable(why) => Some(why),
        }
    }
}

/// A build of the programs of a run: the plain one, or one with checks.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Build(pub(crate) Option<Checks>);

impl Build {
    /// Returns the name of the build in `summary.json`.
    pub(crate) fn name(self) -> &'static str {
        self.0.map_or("plain", Checks::name)
    }
}

impl std::fmt::Display for Build {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            None => f.write_str("the native program"),
            Some(checks) => write!(f, "its {checks}"),
        }
    }
}

/// The result of replaying a finding natively.
#[derive(Copy, Clone)]
pub(crate) enum Natively<'v> {
    /// The finding was not replayed, for this reason.
    NotTried(&'static str),
    /// The verdict, and the build that confirms it.
    Tried(&'v Verdict, Option<Build>),
}

impl std::fmt::Display for Natively<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Natively::NotTried(why) => write!(f, "not tried ({why})"),
            Natively::Tried(verdict, build) => {
                f.write_str(verdict.name())?;
                if let Some(build) = build {
                    write!(f, " on {build}")?;
                }
                verdict.reason().map_or(Ok(()), |why| write!(f, ": {why}"))
            }
        }
    }
}
