//! Timers of a host that do something when they fire, whoever runs.

use crate::host::HostState;

/// What happens when a timer fires.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// A process gets a signal.
    Signal {
        /// The process.
        pid: u32,
        /// The signal.
        signal: i32,
    },
}

/// A timer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Timer {
    /// When it fires next, on the virtual clock.
    pub at_ns: u64,
    /// Time between firings; 0 fires once.
    pub interval_ns: u64,
    /// What happens.
    pub action: Action,
}

impl HostState {
    /// When the next timer fires.
    pub fn next_timer(&self) -> Option<u64> {
        self.timers.iter().map(|(_, timer)| timer.at_ns).min()
    }

    /// Lets all timers fire whose time has come.
    pub fn fire_timers(&mut self) {
        loop {
            let due = self
                .timers
                .iter()
                .filter(|(_, timer)| timer.at_ns <= self.clock_ns);
            let Some((number, timer)) = due.min_by_key(|(_, timer)| timer.at_ns) else {
                return;
            };
            let timer = *timer;
            match timer.interval_ns {
                0 => self.timers.remove(number),
                interval => {
                    // Firings that nobody could see are not counted one by one.
                    let missed = (self.clock_ns - timer.at_ns) / interval;
                    if let Some(timer) = self.timers.get_mut(number) {
                        timer.at_ns += (missed + 1) * interval;
                    }
                }
            }
            match timer.action {
                Action::Signal { pid, signal } => self.send_to_process(pid, signal),
            }
        }
    }
}
