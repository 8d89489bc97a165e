//! `execve`: a process replaces its program.

use everett_vm::ExecContext;
use triomphe::Arc;

use crate::boot;
use crate::capabilities::secure;
use crate::host::{Host, HostState};
use crate::kernel::reborrow;
use crate::outcome::{Ending, HostExit};
use crate::process::{Execution, NewIds, ProcessState, RunState, SignalAction, TaskState};
use crate::signals::{IGNORE, SIGNALS};

impl HostState {
    /// The users and groups of a process after it has executed a file: those of the file if it says
    /// so, unless the process has given up that.
    fn ids_after_exec(&self, process: &ProcessState, execution: &Execution) -> NewIds {
        const SET_UID: u32 = 0o4000;
        const SET_GID: u32 = 0o2010;
        let (mut user, mut group) = (process.uid[1], process.gid[1]);
        if let Some(file) = execution.file.filter(|_| !process.no_new_privileges) {
            let inode = self.files.tree.get(file);
            if inode.mode & SET_UID != 0 {
                user = inode.uid;
            }
            if inode.mode & SET_GID == SET_GID {
                group = inode.gid;
            }
        }
        let (uid, gid) = (process.uid[0], process.gid[0]);
        let mut capabilities = process.capabilities;
        capabilities.follow_exec([uid, user, user], process.secure_bits);
        let grew = capabilities.permitted & !capabilities.ambient != 0;
        NewIds {
            uid: [uid, user, user],
            gid: [gid, group, group],
            is_secure: (user, group) != (uid, gid) || uid != 0 && grew,
        }
    }
}

impl Host {
    /// The running process replaces its program (`execve`).
    pub(crate) fn execute(
        &mut self,
        execution: Execution,
        around: &mut ExecContext<'_>,
    ) -> Result<(), HostExit> {
        let task = self.state.schedule.running;
        let Some(process) = self.process_index(task) else {
            return Err(HostExit::Ended(Ending::EndPath));
        };
        let ids = self
            .state
            .ids_after_exec(&self.state.processes[process], &execution);
        let (memory, mut thread) = boot::start(&execution, ids, reborrow(around), &mut self.state)?;
        around.oracle.commit();
        thread.number = 0;
        let pid = self.state.processes[process].pid;
        self.leave_memory(process, task);
        self.state.reset_for_exec(process, task, &execution);
        self.state.detach_all(pid);
        let mut old = std::mem::replace(&mut self.memories[process], memory);
        self.state.forget_views(&mut old);
        self.threads[task] = Arc::new(thread);
        Ok(())
    }
}

impl Host {
    /// Detaches a process that executes a program from the memory that it shares with others.
    fn leave_memory(&mut self, process: usize, task: usize) {
        let at = self.memory_index(process);
        if at == process {
            return self.hand_over_memory_of(process);
        }
        let lent = self.state.tasks[task].lent_slots;
        let thread = &self.threads[task];
        for (number, slot) in thread.slots.iter().enumerate().skip(lent).rev() {
            if thread.place_of(number).is_none() {
                self.memories[at].pop_stack(*slot);
            }
        }
        let pid = self.state.processes[process].pid;
        if let Some(waits) = self.state.vfork_waiter(pid) {
            self.memories[at].join_threads(waits, thread.number);
        }
    }
}

/// Sets the default actions for signals, except for those that are ignored.
pub(crate) fn reset_actions(actions: &mut Arc<[SignalAction; SIGNALS]>) {
    for action in Arc::make_mut(actions) {
        if action.handler != IGNORE {
            *action = Default::default();
        }
    }
}

impl HostState {
    /// Resets a process and its thread as `execve` does; the other threads of the process exit.
    pub(crate) fn reset_for_exec(&mut self, process: usize, task: usize, execution: &Execution) {
        let ids = self.ids_after_exec(&self.processes[process], execution);
        let process = Arc::make_mut(&mut self.processes[process]);
        (process.uid, process.gid) = (ids.uid, ids.gid);
        process.file_ids = [None; 2];
        process.started_as = ids;
        // Debuggers may look at a program with the privileges of its user only.
        process.dumpable = u32::from(ids.uid[0] == ids.uid[1] && ids.gid[0] == ids.gid[1]);
        if ids.is_secure {
            process.parent_death_signal = 0;
        }
        process.image = execution.image;
        process.execution = Arc::new(execution.clone());
        process.has_executed = true;
        process.secure_bits &= !secure::KEEP_CAPABILITIES;
        process.most_memory = 0;
        process.locked_memory = Default::default();
        let secure_bits = process.secure_bits;
        process.capabilities.follow_exec(process.uid, secure_bits);
        process.timers = Default::default();
        process.borrows_memory = false;
        let memory = (process.lender.take(), process.program_break.take());
        reset_actions(&mut process.actions);
        let pid = process.pid;
        let closed: Vec<_> = process
            .descriptors
            .iter()
            .filter(|(_, descriptor)| descriptor.close_on_exec)
            .collect();
        for (fd, _) in &closed {
            process.descriptors.set(*fd, None);
        }
        for (_, descriptor) in closed {
            self.close(pid, descriptor.description);
        }
        self.return_break(memory);
        self.remove_timers(pid, false);
        let old = &self.tasks[task];
        let mut name = [0; 16];
        let base = execution.name.rsplit(|byte| *byte == b'/').next();
        for (to, from) in name
            .iter_mut()
            .zip(base.unwrap_or_default().iter().take(15))
        {
            *to = *from;
        }
        self.tasks[task] = Arc::new(TaskState {
            blocked: old.blocked,
            pending: old.pending.clone(),
            cpu_ns: old.cpu_ns,
            nice: old.nice,
            policy: old.policy,
            pinned: old.pinned,
            timer_slack_ns: old.timer_slack_ns,
            name,
            ..TaskState::new(pid, pid)
        });
        for (at, other) in self.tasks.iter_mut().enumerate() {
            if other.pid == pid && at != task {
                Arc::make_mut(other).run_state = RunState::Ended;
                self.has_exits = true;
            }
        }
    }
}
