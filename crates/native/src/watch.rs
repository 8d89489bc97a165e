//! Watchers of a native run: they see it event by event, and can hand a process over to a debugger.

use std::path::PathBuf;

use everett_linux::{Stream, TaskName};

use crate::tracee::{self, Tracee};

/// A watcher of a native run. An event is a line of the log of system calls, which must be
/// enabled; events are counted from 1.
pub trait Watcher {
    /// Handles an event. Returning `false` stops the run here.
    fn event(&mut self, _number: usize, _line: &str, _clock_ns: u64) -> bool {
        true
    }

    /// Called when a process or thread is about to exit, which will be the event of this number.
    /// Returning `false` stops the run before.
    fn before_exit(&mut self, _number: usize) -> bool {
        true
    }

    /// Called when all threads wait for a live standard input. An empty result is its end; `None`
    /// supplies nothing and ends the run.
    fn input(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// Returns whether the watcher receives output as it is written.
    fn sees_output(&self) -> bool {
        false
    }

    /// Handles output that a process has written to standard output or standard error.
    fn output(&mut self, _stream: Stream, _bytes: &[u8]) {}

    /// Called when the run is stopped, at its end or earlier. Its remaining processes exist until
    /// this returns.
    fn stopped(&mut self, _world: &mut StoppedRun<'_>) {}
}

/// A watcher that ignores everything.
pub struct NoWatcher;

impl Watcher for NoWatcher {}

/// A native thread of a stopped run.
pub(crate) struct StoppedThread<'w> {
    pub name: TaskName,
    pub tracee: &'w mut Tracee,
    pub program: PathBuf,
    /// The system call at which the thread is stopped, not answered yet.
    pub pending_call: Option<u64>,
}

/// A stopped run.
pub struct StoppedRun<'w> {
    pub(crate) running: TaskName,
    pub(crate) threads: Vec<StoppedThread<'w>>,
}

/// A process that was handed over to a debugger. It is stopped; its next system call raises SIGSYS,
/// since it is no longer traced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DetachedProcess {
    /// The real process.
    pub process: i32,
    /// The real thread that ran last.
    pub thread: i32,
    /// The program that the process executes.
    pub program: PathBuf,
}

impl StoppedRun<'_> {
    /// Detaches from the process that ran last, or from another one if that has exited. `None` if
    /// no process is left.
    pub fn detach(&mut self) -> std::io::Result<Option<DetachedProcess>> {
        let is_running = |thread: &StoppedThread<'_>| thread.name == self.running;
        let of_process = |thread: &StoppedThread<'_>| thread.name.pid == self.running.pid;
        let all = &self.threads;
        let at = all.iter().position(is_running);
        let at = at.or_else(|| all.iter().position(of_process));
        let Some(at) = at.or((!all.is_empty()).then_some(0)) else {
            return Ok(None);
        };
        let pid = self.threads[at].name.pid;
        let chosen = &mut self.threads[at];
        let handed = DetachedProcess {
            process: chosen.tracee.process.as_raw(),
            thread: chosen.tracee.thread.as_raw(),
            program: chosen.program.clone(),
        };
        tracee::confine(chosen.tracee)?;
        let own = self.threads.iter_mut();
        for thread in own.filter(|thread| thread.name.pid == pid) {
            if let Some(number) = thread.pending_call {
                thread.tracee.call_again(number)?;
            }
            thread.tracee.detach()?;
        }
        wait_until_stopped(handed.process);
        Ok(Some(handed))
    }
}

/// Waits until a process has stopped: a stop signal takes effect when it is scheduled, and a
/// debugger should find it stopped.
fn wait_until_stopped(process: i32) {
    const LOOKS: u32 = 1000;
    for _ in 0..LOOKS {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // The state follows the name, which is in parentheses.
        let state = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.chars().next());
        if matches!(state, None | Some('T' | 'Z' | 'X')) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}
