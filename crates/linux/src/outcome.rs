//! Why a host stops running: it pauses, or it has ended.

use everett_vm::{Bug, Interrupt, Value};

/// How a host ended.
#[derive(Clone, PartialEq, Debug)]
pub enum Ending {
    /// The program exited with this status, 8 bits, which may be symbolic.
    Exit(Value),
    /// A signal killed it.
    Signal(i32),
    /// The program has a bug.
    Bug(Box<Bug>),
    /// The program asked to end this path without a finding.
    EndPath,
    /// All threads wait for external events, and none will arrive.
    Idle,
    /// The program has declared a host of a world under construction
    /// ([`crate::Boot::StopAtSetup`]).
    SetUp,
}

/// Why [`Host::run`](crate::Host::run) returned.
#[derive(Clone, PartialEq, Debug)]
pub enum HostExit {
    /// The instruction budget is used up, with a small tolerance.
    Budget,
    /// A question to the oracle has several answers; run again once it is answered.
    Suspended,
    /// The program reads from a live stdin: call [`Host::supply_input`](crate::Host::supply_input), then run again.
    NeedsInput,
    /// There are packets for other hosts: call [`Host::take_sent`](crate::Host::take_sent), then run again.
    Sent,
    /// The clock has reached the horizon.
    Horizon,
    /// Exposed data, which invariants read, has changed.
    Exposed,
    /// A thread is about to make this system call: call
    /// [`Host::take_call`](crate::Host::take_call), then run again or stop.
    AtCall(&'static str),
    /// No thread can run before this time, which is beyond the horizon, or before a packet arrives.
    Waits(Option<u64>),
    /// The host has ended.
    Ended(Ending),
}

impl From<Interrupt> for HostExit {
    /// Converts an interrupt that occurred outside of any program.
    fn from(interrupt: Interrupt) -> HostExit {
        match interrupt {
            Interrupt::Suspend => HostExit::Suspended,
            Interrupt::Bug(bug) => HostExit::Ended(Ending::Bug(bug)),
            _ => HostExit::Ended(Ending::EndPath),
        }
    }
}

/// Output streams that the host collects.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Stream {
    /// Descriptor 1.
    Stdout,
    /// Descriptor 2.
    Stderr,
}
