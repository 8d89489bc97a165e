//! Signals: masks, default actions, and the queues of pending signals. `signal_sending` sends and
//! dequeues them.

use everett_expr::VisitTerms;
use everett_vm::Value;

pub const SIGHUP: i32 = 1;
pub const SIGILL: i32 = 4;
pub const SIGTRAP: i32 = 5;
pub const SIGABRT: i32 = 6;
pub const SIGBUS: i32 = 7;
pub const SIGFPE: i32 = 8;
pub const SIGKILL: i32 = 9;
pub const SIGSEGV: i32 = 11;
pub const SIGPIPE: i32 = 13;
pub const SIGALRM: i32 = 14;
pub const SIGCHLD: i32 = 17;
pub const SIGCONT: i32 = 18;
pub const SIGSTOP: i32 = 19;
pub const SIGTTIN: i32 = 21;
pub const SIGTTOU: i32 = 22;
pub const SIGXCPU: i32 = 24;
pub const SIGXFSZ: i32 = 25;
pub const SIGVTALRM: i32 = 26;
pub const SIGPROF: i32 = 27;
pub const SIGSYS: i32 = 31;
/// `SIGRTMIN` of the kernel: signals from here on are queued.
pub const FIRST_QUEUED: i32 = 32;

/// `SIG_DFL`.
pub const DEFAULT: u64 = 0;
/// `SIG_IGN`.
pub const IGNORE: u64 = 1;

pub const SA_NOCLDSTOP: u64 = 1;
pub const SA_NOCLDWAIT: u64 = 2;

/// SIGCHLD, SIGCONT, SIGURG, SIGWINCH: the default action is to ignore them.
pub(crate) const IGNORED_BY_DEFAULT: u64 = bit(17) | bit(18) | bit(23) | bit(28);
/// SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU: the default action is to stop the process.
pub const STOPPING: u64 = bit(19) | bit(20) | bit(21) | bit(22);
/// Signals that instructions raise, which are delivered first.
const SYNCHRONOUS: u64 =
    bit(SIGSEGV) | bit(SIGBUS) | bit(SIGILL) | bit(SIGTRAP) | bit(SIGFPE) | bit(SIGSYS);

/// Origin of a signal: `si_code`.
pub mod code {
    pub const USER: i32 = 0;
    pub const KERNEL: i32 = 0x80;
    pub const TIMER: i32 = -2;
    pub const MESSAGE_QUEUE: i32 = -3;
    pub const THREAD: i32 = -6;
    pub const CHILD_EXITED: i32 = 1;
    pub const CHILD_KILLED: i32 = 2;
    pub const CHILD_STOPPED: i32 = 5;
    pub const CHILD_CONTINUED: i32 = 6;
}

/// The bit of a signal in a mask.
pub const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Removes SIGKILL and SIGSTOP from a mask: they cannot be blocked.
pub fn blockable(mask: u64) -> u64 {
    mask & !(bit(SIGKILL) | bit(SIGSTOP))
}

/// Whether it is a valid signal number.
pub fn is_signal(number: i32) -> bool {
    (1..=SIGNALS as i32).contains(&number)
}

/// A sent signal.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Signal {
    /// The signal number.
    pub number: i32,
    /// Its origin, one of [`code`].
    pub code: i32,
    /// Contents of `siginfo_t` from byte 16 on: sender and value, an
    /// address, or a child and its status.
    pub words: [u64; 3],
    /// Exit status of a child, 8 bits, which may be symbolic: the low half of the second word.
    pub status: Option<Value>,
}

impl Signal {
    /// A signal without further information.
    pub fn new(number: i32, code: i32) -> Signal {
        Signal {
            number,
            code,
            words: [0; 3],
            status: None,
        }
    }

    /// The signal without its information: there was no room for that in the queue of the user.
    pub fn without_entry(self) -> Signal {
        Signal::new(self.number, code::USER)
    }

    /// Whether it has no entry in the queue of its user.
    fn is_without_entry(&self) -> bool {
        self.code == code::USER && self.words == [0; 3]
    }

    /// Whether a timer of `timer_create` with this number has sent it.
    pub fn is_of_timer(&self, number: u32) -> bool {
        self.code == code::TIMER && self.words[0] as u32 == number
    }
}

/// Pending signals of a thread or process.
#[derive(Clone, Debug, Default)]
pub struct Pending {
    /// Set of the signals in the queue.
    mask: u64,
    queue: Vec<Signal>,
}

/// Maximum number of queued signals, whatever `RLIMIT_SIGPENDING` is.
const MAX_QUEUED: usize = 1 << 16;

impl Pending {
    /// The set of pending signals.
    pub fn mask(&self) -> u64 {
        self.mask
    }

    /// Adds a signal. A signal below [`FIRST_QUEUED`] that is already pending is not added again.
    /// Returns whether there was space.
    pub fn add(&mut self, signal: Signal) -> bool {
        let is_known = self.mask & bit(signal.number) != 0;
        if is_known && (signal.number < FIRST_QUEUED || signal.is_without_entry()) {
            return true;
        }
        if self.queue.len() >= MAX_QUEUED {
            return false;
        }
        self.mask |= bit(signal.number);
        self.queue.push(signal);
        true
    }

    /// Signals that count for `RLIMIT_SIGPENDING`. Those of timers count with their timers.
    pub fn counted(&self) -> usize {
        let counts = |signal: &&Signal| signal.code != code::TIMER && !signal.is_without_entry();
        self.queue.iter().filter(counts).count()
    }

    /// Discards these signals.
    pub fn forget(&mut self, signals: u64) {
        if self.mask & signals != 0 {
            self.queue
                .retain(|signal| bit(signal.number) & signals == 0);
            self.mask &= !signals;
        }
    }

    /// The next signal among these.
    pub fn next(&self, wanted: u64) -> Option<i32> {
        let there = self.mask & wanted;
        let first = match there & SYNCHRONOUS {
            0 => there,
            urgent => urgent,
        };
        (first != 0).then(|| first.trailing_zeros() as i32 + 1)
    }

    /// Takes the next signal among these: synchronous signals first, then the lowest number, then
    /// the oldest.
    pub fn take(&mut self, wanted: u64) -> Option<Signal> {
        let number = self.next(wanted)?;
        let at = self
            .queue
            .iter()
            .position(|signal| signal.number == number)?;
        let signal = self.queue.remove(at);
        if !self.queue.iter().any(|other| other.number == number) {
            self.mask &= !bit(number);
        }
        Some(signal)
    }

    /// A pending signal that matches, for changing it.
    pub fn find_mut(&mut self, mut wanted: impl FnMut(&Signal) -> bool) -> Option<&mut Signal> {
        self.queue.iter_mut().find(|signal| wanted(signal))
    }

    /// Removes the pending signals that match.
    pub fn remove(&mut self, unwanted: impl Fn(&Signal) -> bool) {
        self.queue.retain(|signal| !unwanted(signal));
        self.mask = self
            .queue
            .iter()
            .fold(0, |mask, signal| mask | bit(signal.number));
    }

    /// Visits all terms, so that the arena can mark live ones.
    pub fn for_each_term(&self, visit: &mut dyn VisitTerms) {
        let statuses = self.queue.iter().filter_map(|signal| signal.status);
        statuses
            .filter_map(|status| status.term)
            .for_each(|term| visit.term(term));
    }
}

/// Number of signals.
pub const SIGNALS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(number: i32, value: u64) -> Signal {
        Signal {
            words: [value, 0, 0],
            ..Signal::new(number, code::USER)
        }
    }

    #[test]
    fn only_late_numbers_are_queued() {
        let mut pending = Pending::default();
        for value in 0..3 {
            pending.add(sent(10, value));
            pending.add(sent(40, value));
        }
        let values: Vec<_> =
            std::iter::from_fn(|| pending.take(u64::MAX).map(|s| (s.number, s.words[0]))).collect();
        assert_eq!(values, [(10, 0), (40, 0), (40, 1), (40, 2)]);
        assert_eq!(pending.mask(), 0);
    }

    #[test]
    fn the_lowest_comes_first_but_faults_come_before() {
        let mut pending = Pending::default();
        for number in [40, 2, 35, SIGSEGV] {
            pending.add(sent(number, 0));
        }
        assert_eq!(pending.next(u64::MAX), Some(SIGSEGV));
        assert_eq!(pending.next(!bit(SIGSEGV)), Some(2));
        pending.forget(bit(2) | bit(SIGSEGV));
        assert_eq!(pending.take(u64::MAX).map(|signal| signal.number), Some(35));
        assert!(pending.take(bit(7)).is_none());
    }
}
