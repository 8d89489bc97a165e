//! Expectations: how the processes of a host must end. Anything else is a finding.

use everett_vm::BugKind;

/// How a process must end.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Expects {
    /// It must exit, with this status or any.
    Exit(Option<i32>),
    /// A signal must end it, this one or any.
    Signal(Option<i32>),
    /// It must not end.
    Running,
}

impl Expects {
    /// Returns whether a process that this signal kills ends as expected.
    pub fn is_signal(self, signal: i32) -> bool {
        matches!(self, Expects::Signal(wanted) if wanted.is_none_or(|wanted| wanted == signal))
    }
}

impl std::fmt::Display for Expects {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Expects::Exit(Some(status)) => write!(to, "end with {status}"),
            Expects::Exit(None) => to.write_str("exit"),
            Expects::Signal(Some(signal)) => write!(to, "be ended by signal {signal}"),
            Expects::Signal(None) => to.write_str("be ended by a signal"),
            Expects::Running => to.write_str("go on"),
        }
    }
}

/// How one of the processes that a host starts must end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expected {
    /// The number of the process; 0 is the host's first process.
    pub number: usize,
    /// The name of the process.
    pub process: String,
    /// How the process must end.
    pub ends: Expects,
}

impl Expected {
    /// Returns the process in messages: the host itself, or one of its further processes.
    fn who(&self) -> String {
        match self.number {
            0 => "it".to_owned(),
            _ => format!("process {}", self.process),
        }
    }

    /// Returns the finding for a process that is blocked forever instead of having ended.
    pub fn waits_for_ever(&self) -> (BugKind, String) {
        let message = format!("{} waits for ever, and should {}", self.who(), self.ends);
        (BugKind::Deadlock, message)
    }

    /// Returns the finding for a process that has ended in another way.
    pub fn ends_otherwise(&self) -> (BugKind, String) {
        let message = format!("{} does not {} as expected", self.who(), self.ends);
        (BugKind::Expectation, message)
    }
}

/// Returns how the first process must end.
pub fn first_expects(all: &[Expected]) -> Option<Expects> {
    let first = all.iter().find(|expected| expected.number == 0);
    first.map(|expected| expected.ends)
}
