//! Fires expired timers and disarms them. The timers themselves are in `timers`.

use triomphe::Arc;

use crate::host::HostState;
use crate::kernel::Kernel;
use crate::limits::{Limit, PROCESSOR_TIME, UNLIMITED};
use crate::process::{ExitState, ProcessState, RunState};
use crate::signals::{SIGALRM, SIGKILL, SIGPROF, SIGVTALRM, SIGXCPU, Signal, code};
use crate::timers::{Notice, TimeBase, Timer, TimerAction};

/// Signals of the three timers of `setitimer`.
const ALARMS: [i32; 3] = [SIGALRM, SIGVTALRM, SIGPROF];

/// The processor time at which a process that is alive reaches a limit.
fn processor_time_of(process: &ProcessState, which: impl FnOnce(Limit) -> u64) -> Option<u64> {
    const SECOND: u64 = 1_000_000_000;
    let limit = process.limits.get(PROCESSOR_TIME).map(which);
    let limit = limit.filter(|limit| *limit != UNLIMITED);
    let is_alive = matches!(process.exit_state, ExitState::Alive);
    limit
        .filter(|_| is_alive)
        .map(|seconds| seconds.saturating_mul(SECOND))
}

impl HostState {
    /// Current time of a clock.
    pub fn time_of(&self, base: TimeBase) -> u64 {
        match base {
            TimeBase::Host => self.clock_ns,
            TimeBase::Process(pid) => self.process_by_pid(pid).map_or(0, |found| found.cpu_ns),
            TimeBase::Thread(tid) => {
                let mut tasks = self.tasks.iter();
                tasks
                    .find(|task| task.tid == tid)
                    .map_or(0, |task| task.cpu_ns)
            }
        }
    }

    /// The time that a clock other than the wall clock shows.
    pub fn shown(&self, base: TimeBase) -> u64 {
        let since_boot = match base {
            TimeBase::Host => self.uptime_ns,
            TimeBase::Process(_) | TimeBase::Thread(_) => 0,
        };
        self.time_of(base).saturating_add(since_boot)
    }

    /// The time on a base at which its clock shows this time.
    pub fn base_time_of(&self, base: TimeBase, shown_ns: u64) -> u64 {
        match base {
            TimeBase::Host => shown_ns.saturating_sub(self.uptime_ns),
            TimeBase::Process(_) | TimeBase::Thread(_) => shown_ns,
        }
    }

    /// When the next timer expires whose clock advances while no thread runs.
    pub fn next_timer(&self) -> Option<u64> {
        let timers = self.timers.iter().map(|(_, timer)| timer);
        let steady = timers.filter(|timer| timer.base == TimeBase::Host);
        steady.map(|timer| timer.at_ns).min()
    }

    /// The shortest processor time after which a timer or a sleep on a clock of processor time can
    /// end.
    pub fn processor_time_left(&self) -> Option<u64> {
        let timers = self.timers.iter().map(|(_, timer)| timer);
        let others = timers.filter(|timer| timer.base != TimeBase::Host);
        let timers = others.map(|timer| (timer.base, timer.at_ns));
        let sleeps = self.tasks.iter().filter_map(|task| match &task.run_state {
            RunState::Waiting(wait) if wait.clock() != TimeBase::Host => {
                Some((wait.clock(), wait.deadline_ns?))
            }
            _ => None,
        });
        let ends = timers.chain(sleeps);
        let left = ends.map(|(base, at_ns)| at_ns.saturating_sub(self.time_of(base)));
        let limited = self.processes.iter().filter_map(|process| {
            let until_ns = processor_time_of(process, |limit| limit.soft.min(limit.hard))?;
            Some(until_ns.saturating_sub(process.cpu_ns))
        });
        match self.limits_processor_time {
            true => left.chain(limited).min(),
            false => left.min(),
        }
    }

    /// Enforces `RLIMIT_CPU`: SIGXCPU in each second from the soft limit on, SIGKILL at the hard one.
    fn enforce_processor_time(&mut self) {
        for at in 0..self.processes.len() {
            let process = &self.processes[at];
            let pid = process.pid;
            let is_over = |of: fn(Limit) -> u64| {
                let until_ns = processor_time_of(process, of);
                until_ns.is_some_and(|until_ns| process.cpu_ns >= until_ns)
            };
            let (over_hard, over_soft) = (is_over(|limit| limit.hard), is_over(|limit| limit.soft));
            if over_hard {
                self.send_to_process(pid, SIGKILL);
            } else if over_soft && let Some(process) = self.process_by_pid_mut(pid) {
                let limits = Arc::make_mut(&mut process.limits);
                if let Some(old) = limits.get(PROCESSOR_TIME) {
                    let soft = old.soft.saturating_add(1);
                    limits.set(PROCESSOR_TIME, Limit { soft, ..old });
                }
                self.send_to_process(pid, SIGXCPU);
            }
        }
    }

    /// Fires all timers that have expired.
    pub fn fire_timers(&mut self) {
        if self.limits_processor_time {
            self.enforce_processor_time();
        }
        loop {
            let due = self.timers.iter().filter(|(_, timer)| {
                let now = self.time_of(timer.base);
                timer.at_ns <= now
            });
            let Some((number, timer)) = due.min_by_key(|(_, timer)| timer.at_ns) else {
                return;
            };
            let mut timer = *timer;
            let now = self.time_of(timer.base);
            let missed = (now - timer.at_ns).checked_div(timer.interval_ns);
            let missed = missed.unwrap_or(0);
            let on = missed.saturating_add(1).checked_mul(timer.interval_ns);
            let next = on.and_then(|on| timer.at_ns.checked_add(on));
            match next.filter(|next| *next > timer.at_ns) {
                Some(next) => {
                    if let Some(timer) = self.timers.get_mut(number) {
                        timer.at_ns = next;
                    }
                }
                // A one-shot timer, or its next expiration is beyond the end of time.
                None => {
                    self.timers.remove(number);
                    timer.interval_ns = 0;
                }
            }
            self.fire(timer, missed);
        }
    }

    fn fire(&mut self, timer: Timer, missed: u64) {
        match timer.action {
            TimerAction::Alarm { pid, which } => {
                if timer.interval_ns == 0
                    && let Some(process) = self.process_by_pid_mut(pid)
                {
                    process.alarms[which] = None;
                }
                self.send_to_process(pid, ALARMS[which]);
            }
            TimerAction::Descriptor { object } => self.fire_descriptor(object, missed),
            TimerAction::Posix { pid, timer: number } => {
                let is_once = timer.interval_ns == 0;
                self.fire_posix(pid, number, is_once, missed);
            }
        }
    }

    fn fire_posix(&mut self, pid: u32, number: u32, is_once: bool, missed: u64) {
        let Some(process) = self.process_by_pid_mut(pid) else {
            return;
        };
        let Some(timer) = process.timers.get_mut(number) else {
            return;
        };
        if is_once {
            timer.running = None;
        }
        let (notice, unseen) = (timer.notice, timer.unseen);
        let signal = Signal {
            words: [u64::from(number), timer.value, 0],
            ..Signal::new(timer.signal, code::TIMER)
        };
        let of_this = |sent: &Signal| {
            sent.code == code::TIMER && sent.number == signal.number && sent.words == signal.words
        };
        // A pending signal of this timer also counts for this expiration.
        let is_pending = match notice {
            Notice::None => return,
            Notice::Process => process.pending.find_mut(of_this).is_some(),
            Notice::Thread(tid) => match self.task_by_tid(tid) {
                None => return,
                Some(at) => {
                    let task = Arc::make_mut(&mut self.tasks[at]);
                    task.pending.find_mut(of_this).is_some()
                }
            },
        };
        let unseen = match is_pending {
            true => unseen.saturating_add(missed).saturating_add(1),
            false => missed,
        };
        if let Some(process) = self.process_by_pid_mut(pid)
            && let Some(timer) = process.timers.get_mut(number)
        {
            timer.unseen = unseen;
        }
        if is_pending {
            return;
        }
        match notice {
            Notice::Thread(tid) => {
                if let Some(at) = self.task_by_tid(tid) {
                    self.send_to_task(at, signal);
                }
            }
            _ => {
                self.send(pid, signal);
            }
        }
    }

    /// Disarms the timers of a process: all when it exits, those of `timer_create` at `execve`.
    pub fn remove_timers(&mut self, pid: u32, with_alarms: bool) {
        let of_process: Vec<u32> = self
            .timers
            .iter()
            .filter(|(_, timer)| match timer.action {
                TimerAction::Alarm { pid: owner, .. } => owner == pid && with_alarms,
                TimerAction::Posix { pid: owner, .. } => owner == pid,
                TimerAction::Descriptor { .. } => false,
            })
            .map(|(number, _)| number)
            .collect();
        for number in of_process {
            self.timers.remove(number);
        }
    }
}

impl Kernel<'_, '_> {
    /// Stores the overrun count in a timer signal that is being taken.
    pub fn store_overrun(&mut self, mut signal: Signal) -> Signal {
        if signal.code != code::TIMER {
            return signal;
        }
        let number = signal.words[0] as u32;
        if let Some(timer) = self.process_mut().timers.get_mut(number) {
            timer.overrun = std::mem::take(&mut timer.unseen).min(i32::MAX as u64);
            signal.words[0] |= timer.overrun << 32;
        }
        signal
    }
}
