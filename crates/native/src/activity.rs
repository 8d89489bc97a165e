//! Which native processes have run: the memory of the others need not be looked at again.

use std::cell::RefCell;
use std::rc::Rc;

use nix::unistd::Pid;

/// The processes of a machine that have run, or whose memory was written, since someone looked.
/// The memory of the others is as it was.
#[derive(Clone, Default)]
pub struct Activity {
    ran: Rc<RefCell<Ran>>,
}

/// What [`Activity`] records.
#[derive(Default)]
struct Ran {
    /// Whether a process has run since files were synchronised.
    has_run: bool,
    /// The processes that have run since memory was measured, perhaps more than once.
    processes: Vec<Pid>,
}

impl Activity {
    /// Records that a process runs, or that its memory is written.
    pub fn note(&self, process: Pid) {
        let mut ran = self.ran.borrow_mut();
        ran.has_run = true;
        if ran.processes.last() != Some(&process) {
            ran.processes.push(process);
        }
    }

    /// Returns whether a process has run since [`Activity::clear`].
    pub fn has_run(&self) -> bool {
        self.ran.borrow().has_run
    }

    /// Forgets that processes have run.
    pub fn clear(&self) {
        self.ran.borrow_mut().has_run = false;
    }

    /// Takes the processes that have run since the last call.
    pub fn take(&self) -> Vec<Pid> {
        std::mem::take(&mut self.ran.borrow_mut().processes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_questions_are_answered_apart() {
        let activity = Activity::default();
        assert!(!activity.has_run() && activity.take().is_empty());
        let [one, other] = [1, 2].map(Pid::from_raw);
        for process in [one, one, other] {
            activity.clone().note(process);
        }
        activity.clear();
        assert!(!activity.has_run());
        assert_eq!(activity.take(), [one, other]);
        activity.note(one);
        assert_eq!(activity.take(), [one]);
        assert!(activity.has_run());
    }
}
