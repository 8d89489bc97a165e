//! Exit of threads and processes, reparenting of orphans, and removal
//! of exited tasks from the tables.

use everett_vm::{Memory, Value};
use triomphe::Arc;

use crate::host::{Host, HostState};
use crate::ipc::Segment;
use crate::kernel::{Kernel, Stop};
use crate::objects::{REAPED, event};
use crate::process::{Break, ExitState, ExitStatus, INIT, ProcessState, RunState, TaskState};
use crate::signals::{IGNORE, SA_NOCLDWAIT, SIGCHLD, Signal, code};

impl Kernel<'_, '_> {
    /// How a thread or process ends when the thread's first function returns.
    pub(crate) fn thread_returned(&mut self, status: Value) -> Stop {
        let is_first = self.task().tid == self.task().pid;
        if is_first {
            Stop::Exit(ExitStatus::Exit(status))
        } else {
            Stop::ExitThread
        }
    }

    /// The running thread exits.
    pub(crate) fn end_thread(&mut self) {
        self.vm.commit();
        let others = self.host.tasks_of(self.process().pid).count() > 1;
        if !others {
            return self.end_process(ExitStatus::Exit(Value::ZERO));
        }
        self.release_robust_locks(self.task);
        self.clear_child_tid();
        while self.vm.pop_frame().is_some() {}
        for (_, address) in std::mem::take(&mut self.vm.thread.locals) {
            self.vm.memory.end_thread_local(address);
        }
        self.task_mut().run_state = RunState::Ended;
        self.host.has_exits = true;
    }

    fn clear_child_tid(&mut self) {
        let address = self.task().clear_child_tid;
        if address == 0 || self.write_bytes(address, &[0; 4]).is_err() {
            return;
        }
        if let Ok(key) = self.futex_key(address) {
            self.host.wake(key, u32::MAX, 1);
        }
    }

    /// Pops the stack slots that a process has pushed since it borrowed the stack of another
    /// process.
    fn return_stack(&mut self) {
        let lent = self.task().lent_slots;
        while self.vm.thread.slots.len() > lent {
            self.vm.pop_slot();
        }
        if let Some(waits) = self.host.vfork_waiter(self.process().pid) {
            self.vm.memory.join_threads(waits, self.vm.thread.number);
        }
    }

    /// The running process exits.
    pub(crate) fn end_process(&mut self, exit_status: ExitStatus) {
        self.vm.commit();
        let pid = self.process().pid;
        for task in 0..self.host.tasks.len() {
            if self.host.tasks[task].pid == pid {
                self.release_robust_locks(task);
            }
        }
        // As in Linux: the word is cleared only if another process
        // shares the memory and could see it.
        if self.process().lender.is_some() {
            self.clear_child_tid();
            self.return_stack();
        }
        self.host.end_process(pid, exit_status);
    }
}

impl HostState {
    /// The stack of the thread that waits for a child of `vfork`.
    pub(crate) fn vfork_waiter(&self, child: u32) -> Option<u32> {
        let mut tasks = self.tasks.iter();
        let waits = tasks.find(|task| task.vforked == Some(child));
        waits.map(|task| task.stack)
    }

    /// Stores the final program break of a process in the process that owns its memory.
    pub(crate) fn return_break(&mut self, (lender, end): (Option<u32>, Option<Break>)) {
        if let Some(owner) = lender.and_then(|pid| self.process_by_pid_mut(pid)) {
            owner.program_break = end;
        }
    }

    /// Exits a process: closes its files, reparents its children and notifies its parent.
    pub fn end_process(&mut self, pid: u32, exit_status: ExitStatus) {
        self.has_exits = true;
        for task in &mut self.tasks {
            if task.pid == pid && !task.run_state.is_ended() {
                Arc::make_mut(task).run_state = RunState::Ended;
            }
        }
        let number = pid.wrapping_sub(self.options.first_pid) as usize;
        if number < self.exit_statuses.len() {
            Arc::make_mut(&mut self.exit_statuses)[number] = Some(exit_status);
        }
        self.remove_timers(pid, true);
        self.leave_ipc(pid);
        let Some(process) = self.process_by_pid_mut(pid) else {
            return;
        };
        process.exit_state = ExitState::Zombie(exit_status);
        process.borrows_memory = false;
        let memory = (process.lender.take(), process.program_break.take());
        process.stopped = None;
        process.state_change = None;
        let (parent, exit_signal) = (process.parent, process.exit_signal);
        let leads = process.session == pid;
        let descriptors = std::mem::take(&mut process.descriptors);
        // Nobody is left to observe that a standard stream is closed.
        let is_last = self.processes.len() == 1;
        for (_, descriptor) in descriptors.iter() {
            if !is_last || !self.files.is_standard_stream(descriptor.description) {
                self.close(pid, descriptor.description);
            }
        }
        self.return_break(memory);
        self.announce_exit(pid, event::READING);
        // Tasks that wait for a file lock check again.
        self.lock_releases += 1;
        if leads {
            self.give_up_terminal(pid, true);
        }
        if is_last {
            // Nobody is left to be continued, adopted or told.
            return;
        }
        let controlled = self.groups_controlled_by(pid);
        self.reparent_children(pid);
        self.continue_orphans(&controlled);
        let told = match self.process_by_pid(pid) {
            Some(process) if exit_signal != 0 => Some(Signal {
                number: exit_signal,
                ..HostState::signal_of_exit(process, exit_status)
            }),
            _ => None,
        };
        let is_first = self.processes.first().is_some_and(|first| first.pid == pid);
        if !self.parent_reaps(parent)
            && !is_first
            && let Some(process) = self.process_by_pid_mut(pid)
        {
            process.exit_state = ExitState::Reaped;
            self.announce_exit(pid, REAPED);
        }
        if let Some(signal) = told {
            self.send(parent, signal);
        }
    }

    /// Whether the parent reaps its children with `wait`: false if it ignores SIGCHLD or has set
    /// `SA_NOCLDWAIT`.
    fn parent_reaps(&self, parent: u32) -> bool {
        match self.process_by_pid(parent) {
            Some(parent) if matches!(parent.exit_state, ExitState::Alive) => {
                let action = parent.actions[SIGCHLD as usize - 1];
                action.handler != IGNORE && action.flags & SA_NOCLDWAIT == 0
            }
            _ => false,
        }
    }

    /// Reparents the children of an exiting process to the nearest subreaper, or to init.
    fn reparent_children(&mut self, pid: u32) {
        let reaper = self.reaper_of(pid);
        let sender = self.process_by_pid(pid).cloned();
        let children: Vec<u32> = self
            .processes
            .iter()
            .filter(|child| child.parent == pid)
            .map(|child| child.pid)
            .collect();
        for child_pid in children {
            let Some(child) = self.process_by_pid_mut(child_pid) else {
                continue;
            };
            child.parent = reaper;
            child.exit_signal = SIGCHLD;
            let (exit_state, signal) = (child.exit_state, child.parent_death_signal);
            match exit_state {
                ExitState::Zombie(_) if reaper == INIT => {
                    child.exit_state = ExitState::Reaped;
                    self.announce_exit(child_pid, REAPED);
                }
                ExitState::Zombie(exit_status) => {
                    let signal = HostState::signal_of_exit(child, exit_status);
                    self.send(reaper, signal);
                }
                ExitState::Alive if signal != 0 => {
                    // As if the parent had sent it.
                    if let Some(sender) = &sender {
                        let signal = Signal::from_process(signal, code::USER, sender);
                        self.send(child_pid, signal);
                    }
                }
                _ => {}
            }
        }
    }

    /// The pid of the process that adopts the children of `pid`: the nearest live
    /// subreaper among its ancestors, or init.
    fn reaper_of(&self, pid: u32) -> u32 {
        let mut next = pid;
        while let Some(process) = self.process_by_pid(next) {
            next = process.parent;
            if let Some(ancestor) = self.process_by_pid(next)
                && ancestor.is_subreaper
                && matches!(ancestor.exit_state, ExitState::Alive)
            {
                return next;
            }
        }
        INIT
    }
}

impl Host {
    /// Adds tasks that the last system call created to the tables, and removes exited ones.
    pub(crate) fn update_tasks(&mut self) {
        for new in std::mem::take(&mut self.state.new_tasks) {
            if let Some((process, memory)) = new.process {
                self.state.has_lent_memory |= process.lender.is_some();
                self.state.processes.push(Arc::new(process));
                self.memories.push(memory);
            }
            self.state.tasks.push(Arc::new(new.task));
            self.threads.push(Arc::new(new.thread));
        }
        if std::mem::take(&mut self.state.has_exits) {
            self.remove_exited();
        }
    }

    /// Removes exited tasks and reaped processes from the tables.
    fn remove_exited(&mut self) {
        self.hand_over_memory();
        for (at, memory) in self.memories.iter_mut().enumerate() {
            let is_alive = matches!(self.state.processes[at].exit_state, ExitState::Alive);
            if !is_alive && memory.has_views() {
                self.state.forget_views(memory);
            }
        }
        let ended = |task: &Arc<TaskState>| task.run_state.is_ended();
        let gone = |process: &Arc<ProcessState>| matches!(process.exit_state, ExitState::Reaped);
        if self.state.tasks.iter().any(ended) {
            self.remove_exited_tasks();
        }
        while let Some(at) = self.state.processes.iter().position(gone) {
            self.state.processes.remove(at);
            self.memories.remove(at);
        }
    }

    /// Hands the memory of exited processes over to the processes that still use it.
    fn hand_over_memory(&mut self) {
        let is_dead = |process: &ProcessState| !matches!(process.exit_state, ExitState::Alive);
        for at in 0..self.state.processes.len() {
            if is_dead(&self.state.processes[at]) {
                self.hand_over_memory_of(at);
            }
        }
    }

    /// Hands the memory of a process that exits or executes a program over to the processes that
    /// still use it.
    pub(crate) fn hand_over_memory_of(&mut self, at: usize) {
        let pid = self.state.processes[at].pid;
        let uses = |process: &Arc<ProcessState>| {
            process.lender == Some(pid) && matches!(process.exit_state, ExitState::Alive)
        };
        let Some(heir) = self.state.processes.iter().position(uses) else {
            return;
        };
        self.memories.swap(at, heir);
        let owner = self.state.processes[heir].pid;
        for process in &mut self.state.processes {
            if process.lender == Some(pid) {
                let process = Arc::make_mut(process);
                process.lender = (process.pid != owner).then_some(owner);
            }
        }
    }

    fn remove_exited_tasks(&mut self) {
        let first = self.state.processes.first().map(|process| process.pid);
        let mut at = 0;
        while at < self.state.tasks.len() {
            let task = &self.state.tasks[at];
            // The last thread of the first process stays: it is inspected after the host has ended.
            let is_last_of_first = Some(task.pid) == first
                && !matches!(self.state.processes[0].exit_state, ExitState::Alive);
            if !task.run_state.is_ended() || is_last_of_first {
                at += 1;
                continue;
            }
            self.state.tasks.remove(at);
            self.threads.remove(at);
            let schedule = &mut self.state.schedule;
            if schedule.running > at {
                schedule.running -= 1;
            } else if schedule.running == at {
                // Round-robin continues with the task after the removed one.
                schedule.running = at.saturating_sub(1);
                schedule.due = true;
            }
        }
        for (process, memory) in self.state.processes.iter().zip(&mut self.memories).skip(1) {
            if !matches!(process.exit_state, ExitState::Alive) {
                *memory = Memory::empty();
            }
        }
    }
}

impl HostState {
    /// Detaches all segments of a process and drops the record of its writes to mappings, for
    /// `execve` and exit.
    pub(crate) fn detach_all(&mut self, pid: u32) {
        self.files.dirty_pages.keep(pid, |_| false);
        let attached = self.ipc.attached.range((pid, 0)..=(pid, u64::MAX));
        let addresses: Vec<_> = attached.map(|(at, id)| (*at, *id)).collect();
        for (at, id) in addresses {
            let now = self.wall_seconds();
            let ipc = triomphe::Arc::make_mut(&mut self.ipc);
            ipc.attached.remove(&at);
            if let Some(segment) = ipc.segments.get_mut(&id) {
                segment.times[1] = now;
                segment.pids[1] = pid;
            }
            self.destroy_unused_segment(id);
        }
    }

    /// Releases the IPC resources of an exiting process.
    pub(crate) fn leave_ipc(&mut self, pid: u32) {
        self.detach_all(pid);
        let range = (pid, 0, 0)..=(pid, u32::MAX, u16::MAX);
        if self.ipc.undo.range(range).next().is_some() {
            triomphe::Arc::make_mut(&mut self.ipc).undo_all(pid);
        }
    }

    /// Destroys a removed segment once it is no longer attached.
    pub(crate) fn destroy_unused_segment(&mut self, id: u32) {
        let is_over = |segment: &Segment| segment.removed && self.ipc.attachments(id) == 0;
        if self.ipc.segments.get(&id).is_some_and(is_over)
            && let Some(segment) = triomphe::Arc::make_mut(&mut self.ipc).segments.remove(&id)
        {
            self.release(segment.holder);
        }
    }
}
