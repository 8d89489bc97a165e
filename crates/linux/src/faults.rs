//! Fault injection, in one place, for all system calls whose rows list errnos.
//!
//! The kernel executes a call first. Only if the call succeeds or blocks does the kernel ask the
//! oracle whether it fails instead; a failure then rolls back the effects. So no failure is
//! injected where the call fails anyway.

use everett_vm::StackId;
use std::borrow::Cow;

/// Index of a kind of call that fails at intervals.
pub(crate) const SENDS: usize = 0;
pub(crate) const SELECTS: usize = 1;

/// A failure that was injected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InjectedFailure {
    /// The call that failed, and how.
    pub what: Cow<'static, str>,
    /// The call stack; only explored programs have one.
    pub stack: Option<StackId>,
}

/// A direction on a descriptor, as in `cloud9.h`: reading.
pub const RD: u8 = 1;
/// Writing.
pub const WR: u8 = 2;

/// Failures injected on this path.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FaultState {
    /// Failures so far.
    pub used: u32,
    /// The failures, in order.
    pub injected: Vec<InjectedFailure>,
    /// Nesting depth of the fault regions that the program is in.
    pub regions: u32,
    /// The current call transfers fewer bytes than it could: at most this many.
    pub at_most: Option<u64>,
    /// The current call reports every descriptor as ready, whether it is or not.
    pub spurious: bool,
    /// Calls so far that fail at intervals: non-blocking sends, and `select`.
    pub counted: [u64; 2],
}

impl FaultState {
    /// Counts a failure.
    pub(crate) fn add(&mut self, what: impl Into<Cow<'static, str>>, stack: Option<StackId>) {
        self.used += 1;
        let what = what.into();
        self.injected.push(InjectedFailure { what, stack });
    }

    /// Counts a failed allocation.
    pub(crate) fn add_allocation(&mut self, stack: Option<StackId>) {
        self.add("malloc fails: ENOMEM", stack);
    }
}
