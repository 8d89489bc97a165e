//! Looking at a native run while it happens: event by event, and handing a process over to a debugger.

use std::path::PathBuf;

use everett_linux::TaskName;

use crate::tracee::{self, Tracee};

/// Somebody who looks at a native run. An event is a line of the log of system calls, which the host has to keep; they
/// are counted from 1.
pub trait Watcher {
    /// Something happened. `false` stops the run here.
    fn event(&mut self, _number: usize, _line: &str, _clock_ns: u64) -> bool {
        true
    }

    /// A process or thread is about to end, which will be the event of this number. `false` stops the run before.
    fn leaves(&mut self, _number: usize) -> bool {
        true
    }

    /// All wait for standard input, where that is the caller's. Nothing but an empty piece is its end.
    fn input(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// The run stands still, at its end or where it was stopped. What is left of its processes is there until this
    /// returns.
    fn stands(&mut self, _world: &mut Standing<'_>) {}
}

/// Nobody looks.
pub struct Nobody;

impl Watcher for Nobody {}

/// A native thread of a run that stands still.
pub(crate) struct StandingThread<'w> {
    pub name: TaskName,
    pub tracee: &'w mut Tracee,
    pub program: PathBuf,
    /// Number of the system call that it wants and that nobody has answered.
    pub wants: Option<u64>,
}

/// A run that stands still.
pub struct Standing<'w> {
    pub(crate) running: TaskName,
    pub(crate) threads: Vec<StandingThread<'w>>,
}

/// A process that belongs to a debugger now. It is stopped, and a system call is the last thing that it does: it gets
/// SIGSYS, as nobody answers it any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandedOver {
    /// The real process.
    pub process: i32,
    /// The real thread that ran last.
    pub thread: i32,
    /// What it executes.
    pub program: PathBuf,
}

impl Standing<'_> {
    /// Lets go of the process that ran last, or of any other if that is gone. Nothing is left if it gives nothing.
    pub fn hand_over(&mut self) -> std::io::Result<Option<HandedOver>> {
        let is_running = |thread: &StandingThread<'_>| thread.name == self.running;
        let of_process = |thread: &StandingThread<'_>| thread.name.pid == self.running.pid;
        let all = &self.threads;
        let at = all.iter().position(is_running);
        let at = at.or_else(|| all.iter().position(of_process));
        let Some(at) = at.or((!all.is_empty()).then_some(0)) else {
            return Ok(None);
        };
        let pid = self.threads[at].name.pid;
        let chosen = &mut self.threads[at];
        let handed = HandedOver {
            process: chosen.tracee.process.as_raw(),
            thread: chosen.tracee.thread.as_raw(),
            program: chosen.program.clone(),
        };
        tracee::confine(chosen.tracee)?;
        let own = self.threads.iter_mut();
        for thread in own.filter(|thread| thread.name.pid == pid) {
            if let Some(number) = thread.wants {
                thread.tracee.call_again(number)?;
            }
            thread.tracee.let_go()?;
        }
        wait_until_stopped(handed.process);
        Ok(Some(handed))
    }
}

/// A process that was told to stop does so when it is its turn; a debugger should find it stopped.
fn wait_until_stopped(process: i32) {
    const LOOKS: u32 = 1000;
    for _ in 0..LOOKS {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // The state stands behind the name, which is in brackets.
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
