//! Timers of a host: `setitimer`, `timer_create` and `timerfd`.

use crate::ids::ObjectId;

/// What happens when a timer expires.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum TimerAction {
    /// A timer of `setitimer`: send its signal.
    Alarm {
        /// The process.
        pid: u32,
        /// Which of its three timers.
        which: usize,
    },
    /// A `timerfd`: count the expiration.
    Descriptor {
        /// The timer object.
        object: ObjectId,
    },
    /// A timer of `timer_create`: notify as configured.
    Posix {
        /// The process.
        pid: u32,
        /// Id of the timer.
        timer: u32,
    },
}

/// The clock of a timer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum TimeBase {
    /// The virtual clock of the host.
    Host,
    /// CPU time of a process.
    Process(u32),
    /// CPU time of a thread.
    Thread(u32),
}

/// An armed timer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Timer {
    /// The clock.
    pub base: TimeBase,
    /// When it expires next.
    pub at_ns: u64,
    /// Period; 0 is a one-shot timer.
    pub interval_ns: u64,
    /// It expires at a time of the wall clock, and moves when the wall clock is set.
    pub on_wall_clock: bool,
    /// What happens when it expires.
    pub action: TimerAction,
}

/// How a timer of `timer_create` notifies its process (`sigev_notify`).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// Not at all.
    None,
    /// By a signal to the process.
    Process,
    /// By a signal to the thread with this tid.
    Thread(u32),
}

/// A timer of `timer_create`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PosixTimer {
    /// The clock that it was created with.
    pub clock: i32,
    /// How it notifies.
    pub notice: Notice,
    /// The signal to send.
    pub signal: i32,
    /// `sigev_value`, passed along with the signal.
    pub value: u64,
    /// Key in [`HostState::timers`] while it is armed.
    pub running: Option<u32>,
    /// Period.
    pub interval_ns: u64,
    /// Expirations since the signal that is still pending was sent.
    pub unseen: u64,
    /// Overrun count of the last signal taken.
    pub overrun: u64,
}
