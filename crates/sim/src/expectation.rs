//! Expectations: how the processes of a host must end. Anything else is a finding.

use everett_vm::BugKind;

/// How a process must end.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Expects {
    /// With this status, or any.
    Exit(Option<i32>),
    /// By this signal, or any.
    Signal(Option<i32>),
    /// Not at all.
    Running,
}

impl Expects {
    /// Whether a process that this signal kills ends as expected.
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
    /// Its number; 0 is the host's first process.
    pub number: usize,
    /// Its name.
    pub process: String,
    /// How it must end.
    pub ends: Expects,
}

impl Expected {
    /// The process in messages: the host itself, or one of its further processes.
    fn who(&self) -> String {
        match self.number {
            0 => "it".to_owned(),
            _ => format!("process {}", self.process),
        }
    }

    /// The finding if it is blocked forever instead of having ended.
    pub fn waits_for_ever(&self) -> (BugKind, String) {
        let message = format!("{} waits for ever, and should {}", self.who(), self.ends);
        (BugKind::Deadlock, message)
    }

    /// The finding if it has ended in another way.
    pub fn ends_otherwise(&self) -> (BugKind, String) {
        let message = format!("{} does not {} as expected", self.who(), self.ends);
        (BugKind::Expectation, message)
    }
}

/// How the first process must end.
pub fn first_expects(all: &[Expected]) -> Option<Expects> {
    let first = all.iter().find(|expected| expected.number == 0);
    first.map(|expected| expected.ends)
}
