//! Decides whether a blocked task can continue: a pure function of the tables. The
//! conditions themselves are in `wait`.

use smallvec::SmallVec;

use crate::host::{Host, HostState};
use crate::process::{ExitState, RunState, TaskState};
use crate::wait::{ALWAYS, ChildSelector, Wait, WaitCondition, WakeSource};

/// The processes that are stopped or have pending signals. They are few, so that the scheduler
/// need not look up the process of each task.
pub struct Signalled {
    /// Their pids; `None` if they are many.
    pids: Option<SmallVec<[u32; FEW]>>,
}

/// The number of processes that [`Signalled`] lists.
const FEW: usize = 8;

impl Signalled {
    /// Whether the process may be one of them.
    #[inline]
    pub fn includes(&self, pid: u32) -> bool {
        self.pids.as_ref().is_none_or(|pids| pids.contains(&pid))
    }
}

impl HostState {
    /// The processes that are stopped or have pending signals.
    pub fn signalled(&self) -> Signalled {
        let mut pids = SmallVec::new();
        for process in &self.processes {
            if process.stopped.is_some() || process.pending.mask() != 0 {
                if pids.len() == FEW {
                    return Signalled { pids: None };
                }
                pids.push(process.pid);
            }
        }
        Signalled { pids: Some(pids) }
    }

    /// Whether the wait is over: its condition holds, or its deadline has passed.
    #[inline]
    pub fn wait_is_over(&self, task: &TaskState, wait: &Wait) -> bool {
        if let Some(at) = wait.deadline_ns
            && at <= self.time_of(wait.clock())
        {
            return true;
        }
        // Where many sleep, the scheduler asks this most of the time.
        !matches!(wait.condition, WaitCondition::Never) && self.holds(task, &wait.condition)
    }

    /// Whether the condition of a wait holds.
    fn holds(&self, task: &TaskState, condition: &WaitCondition) -> bool {
        match condition {
            WaitCondition::Never | WaitCondition::ProcessorTime(_) => false,
            WaitCondition::Futex(..) => task.woken,
            WaitCondition::Ready(files) => files.iter().any(|(id, events)| {
                self.readiness_for((task.pid, task.tid), *id) & (events | ALWAYS) != 0
            }),
            WaitCondition::CountAtMost(counter, most) => self.counts_at_most(*counter, *most),
            WaitCondition::Child(children) => self.has_waitable_child(task.pid, children),
            WaitCondition::VforkDone(pid) => self.process_by_pid(*pid).is_none_or(|child| {
                !child.borrows_memory || !matches!(child.exit_state, ExitState::Alive)
            }),
            WaitCondition::Signals(mask) => self.pending_signals(task) & mask != 0,
            WaitCondition::SignalTaken => !self.has_deliverable_signal(task),
            WaitCondition::LockReleased(count) => self.lock_releases != *count,
            WaitCondition::SocketSpace(socket) => self.has_room(*socket),
            WaitCondition::StreamBytes(socket) => self.has_stream_bytes(*socket),
            WaitCondition::Fifo(..) => task.woken,
            WaitCondition::Ipc(wait) => self.ipc.is_over(wait),
        }
    }

    /// Whether a selected child has changed its state, or no selected child is left.
    fn has_waitable_child(&self, parent: u32, wanted: &ChildSelector) -> bool {
        let mut children = self.processes.iter().filter(|child| {
            let is_gone = matches!(child.exit_state, ExitState::Reaped);
            child.parent == parent && !is_gone && wanted.include(child)
        });
        let mut any = false;
        let change = children.any(|child| {
            any = true;
            wanted.has_report_on(child)
        });
        change || !any
    }

    /// The most promising wake-up source among all blocked tasks.
    pub fn best_wake_source(&self) -> WakeSource {
        let signalled = self.signalled();
        let waits = self.tasks.iter().filter_map(|task| match &task.run_state {
            RunState::Ended => None,
            // A process outside the host may continue it.
            _ if signalled.includes(task.pid) && self.is_stopped(task) => {
                Some(WakeSource::External)
            }
            RunState::Waiting(wait) => Some(self.wake_source(wait)),
            RunState::Running => None,
        });
        waits.max().unwrap_or(WakeSource::None)
    }

    /// The source of the event that ends a wait when all other tasks are blocked too.
    pub fn wake_source(&self, wait: &Wait) -> WakeSource {
        match &wait.condition {
            WaitCondition::Ready(files) => {
                let sources = files
                    .iter()
                    .map(|(id, events)| self.wake_source_of(*id, *events));
                sources.max().unwrap_or(WakeSource::None)
            }
            WaitCondition::Signals(_) => WakeSource::External,
            // `pause` and similar calls: only a signal can end the wait.
            WaitCondition::Never if wait.deadline_ns.is_none() => WakeSource::External,
            _ => WakeSource::None,
        }
    }
}

impl Host {
    /// Whether a task of the host waits for an event from outside, not only for time to pass.
    pub fn awaits_others(&self) -> bool {
        self.state.best_wake_source() == WakeSource::External
    }
}
