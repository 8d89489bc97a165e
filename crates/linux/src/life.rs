//! Creation and exit of processes and threads, and `execve`.

use everett_vm::{
    Buffer, Bug, BugKind, ImageId, Memory, OnReturn, Surroundings, Thread, Value, Vm,
};
use triomphe::Arc;

use crate::boot::{self, FIRST_PID, reborrow};
use crate::errno::Errno;
use crate::host::{Ending, Host, HostExit, HostState};
use crate::kernel::{Kernel, Stop};
use crate::process::{Death, Doing, Life, ProcessState, TaskState};
use crate::signals::{IGNORE, SA_NOCLDWAIT, SIGCHLD, Signal};
use crate::table::Answer;

/// A task that a system call has created, and its process if that is new.
#[derive(Clone, Debug)]
pub struct Newborn {
    /// The process and its memory, unless the task joins an existing process.
    pub process: Option<(ProcessState, Memory)>,
    /// The kernel's state of the task.
    pub task: TaskState,
    /// Its frames and registers.
    pub thread: Thread,
}

/// Arguments of an `execve`, decoded.
#[derive(Clone, Debug, Default)]
pub struct Execution {
    /// The program.
    pub image: ImageId,
    /// Its name in `/proc` and in debuggers.
    pub name: Vec<u8>,
    /// Arguments, without their terminating NULs.
    pub args: Vec<Buffer>,
    /// Environment, without terminating NULs.
    pub env: Vec<Buffer>,
}

const CLONE_VM: u64 = 0x100;
const CLONE_VFORK: u64 = 0x4000;
const CLONE_PARENT: u64 = 0x8000;
const CLONE_THREAD: u64 = 0x1_0000;
const CLONE_SETTLS: u64 = 0x8_0000;
const CLONE_PARENT_SETTID: u64 = 0x10_0000;
const CLONE_CHILD_CLEARTID: u64 = 0x20_0000;
const CLONE_CHILD_SETTID: u64 = 0x100_0000;

/// Arguments of `clone`, `fork` and `vfork`.
#[derive(Copy, Clone, Debug, Default)]
pub struct Birth {
    /// `CLONE_` flags; the low byte is the exit signal.
    pub flags: u64,
    /// Where the child's tid is stored in the parent.
    pub parent_tid: u64,
    /// Where the child's tid is stored in the child, and cleared when it exits.
    pub child_tid: u64,
    /// Base of `%fs`.
    pub tls: u64,
    /// Function and argument that the child starts with; `None` continues at the parent's program counter.
    pub entry: Option<(u64, Value)>,
}

impl Birth {
    /// `vfork`: the parent is blocked until the child exits or calls `execve`. They do not share memory
    /// meanwhile: what POSIX allows a child of `vfork` to do cannot tell the difference.
    pub const VFORK: Birth = Birth {
        flags: CLONE_VM | CLONE_VFORK | SIGCHLD as u64,
        parent_tid: 0,
        child_tid: 0,
        tls: 0,
        entry: None,
    };
    /// `fork`.
    pub const FORK: Birth = Birth {
        flags: SIGCHLD as u64,
        ..Birth::VFORK
    };
}

impl Kernel<'_, '_> {
    /// Creates a thread or a process.
    pub fn give_birth(&mut self, birth: Birth) -> Answer {
        let is_thread = birth.flags & CLONE_THREAD != 0;
        let is_native = self.guest.is_some();
        let has_start = birth.entry.is_some() || is_native;
        if is_thread && (birth.flags & CLONE_VM == 0 || !has_start) {
            return Err(Errno::EINVAL.into());
        }
        let live = self.host.tasks_of(self.process().pid).count();
        if live >= everett_vm::MAX_STACKS as usize - 1 || self.host.tasks.len() >= MAX_TASKS {
            return Err(Errno::EAGAIN.into());
        }
        let stack = self.free_stack();
        let mut thread = match birth.entry {
            _ if is_native => Thread::new(stack),
            Some((function, argument)) => self.thread_at(function, argument, stack)?,
            None => {
                let mut thread = self.vm.thread.clone();
                Vm::finish_call_of(self.vm.image, &mut thread, &[Value::ZERO]);
                thread
            }
        };
        if birth.flags & CLONE_SETTLS != 0 {
            thread.fs_base = birth.tls;
        } else {
            thread.fs_base = self.vm.thread.fs_base;
        }
        if birth.flags & CLONE_PARENT_SETTID != 0 {
            self.check(birth.parent_tid, 4, true)?;
        }
        let tid = self.host.new_pid();
        let pid = if is_thread { self.process().pid } else { tid };
        let mut task = self.task().child(tid, pid);
        if is_thread {
            task.handlers.clear();
        }
        task.stack = match birth.entry {
            Some(_) => stack,
            None => self.task().stack,
        };
        if birth.flags & CLONE_CHILD_CLEARTID != 0 {
            task.clear_child_tid = birth.child_tid;
        }
        if birth.flags & CLONE_PARENT_SETTID != 0 {
            self.write_bytes(birth.parent_tid, &tid.to_le_bytes())?;
        }
        if is_thread {
            self.vm.thread_is_born(stack);
        }
        let process = (!is_thread).then(|| self.child_process(pid, birth));
        self.host.newborn.push(Newborn {
            process,
            task,
            thread,
        });
        Ok(Value::concrete(u64::from(tid)))
    }

    /// A thread that is about to call a function.
    fn thread_at(&mut self, function: u64, argument: Value, stack: u32) -> Result<Thread, Stop> {
        let Some(function) = self.vm.function_at(function) else {
            return Err(Bug::new(BugKind::InvalidCall, "a thread starts at no function").into());
        };
        let own = std::mem::replace(self.vm.thread, Thread::new(stack));
        let pushed = self
            .vm
            .push_frame(function, &[argument], None, OnReturn::Stop);
        let thread = std::mem::replace(self.vm.thread, own);
        pushed?;
        Ok(thread)
    }

    /// The lowest stack number that no live thread of the process uses.
    fn free_stack(&self) -> u32 {
        let used: Vec<u32> = self
            .host
            .tasks_of(self.process().pid)
            .map(|task| task.stack)
            .collect();
        (0..).find(|stack| !used.contains(stack)).unwrap_or(0)
    }

    fn child_process(&mut self, pid: u32, birth: Birth) -> (ProcessState, Memory) {
        let own = self.process();
        let parent = if birth.flags & CLONE_PARENT != 0 {
            own.parent
        } else {
            own.pid
        };
        let child = ProcessState {
            pid,
            parent,
            life: Life::Running,
            borrows_memory: birth.flags & CLONE_VFORK != 0,
            exit_signal: (birth.flags & 0xff) as i32,
            pending: Default::default(),
            news: None,
            has_executed: false,
            parent_death_signal: 0,
            is_subreaper: false,
            cpu_ns: 0,
            children_cpu_ns: 0,
            alarms: [None; 3],
            timers: Default::default(),
            descriptors: own.descriptors.inherited(),
            ..own.clone()
        };
        for (_, descriptor) in child.descriptors.iter() {
            self.host.files.retain(descriptor.description);
        }
        let mut memory = self.vm.memory.clone();
        self.host.inherit_files(&mut memory);
        if memory.has_views() || self.guest.is_some() {
            let own = self.process().pid;
            Arc::make_mut(&mut self.host.ipc).inherit(own, pid);
        }
        if birth.flags & CLONE_CHILD_SETTID != 0
            && let Some(object) = memory.object_at_mut(birth.child_tid, 4)
        {
            let offset = birth.child_tid - object.start;
            object.write_concrete(offset, &pid.to_le_bytes());
        }
        (child, memory)
    }

    /// How a thread or process ends when the thread's first function returns.
    pub(crate) fn thread_returned(&mut self, status: Value) -> Stop {
        let is_first = self.task().tid == self.task().pid;
        if is_first {
            Stop::Exit(Death::Exit(status))
        } else {
            Stop::ExitThread
        }
    }

    /// The running thread exits.
    pub(crate) fn end_thread(&mut self) {
        self.vm.commit();
        let others = self.host.tasks_of(self.process().pid).count() > 1;
        if !others {
            return self.end_process(Death::Exit(Value::ZERO));
        }
        self.release_robust_locks(self.task);
        self.clear_child_tid();
        while self.vm.pop_frame().is_some() {}
        for (_, address) in std::mem::take(&mut self.vm.thread.locals) {
            self.vm.memory.end_thread_local(address);
        }
        self.task_mut().doing = Doing::Ended;
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

    /// The running process exits.
    pub(crate) fn end_process(&mut self, death: Death) {
        self.vm.commit();
        let pid = self.process().pid;
        for task in 0..self.host.tasks.len() {
            if self.host.tasks[task].pid == pid {
                self.release_robust_locks(task);
            }
        }
        // As in Linux: the word is cleared only if another process shares the memory and could see it.
        if self.process().borrows_memory {
            self.clear_child_tid();
        }
        self.host.end_process(pid, death);
    }
}

/// The pid of init, which adopts orphans. It is not modelled as a process.
const INIT: u32 = 1;

/// The most threads that a host may have.
const MAX_TASKS: usize = 1024;

impl HostState {
    /// Exits a process: closes its files, reparents its children and notifies its parent.
    pub fn end_process(&mut self, pid: u32, death: Death) {
        for task in &mut self.tasks {
            if task.pid == pid && task.doing != Doing::Ended {
                Arc::make_mut(task).doing = Doing::Ended;
            }
        }
        let number = pid.wrapping_sub(FIRST_PID) as usize;
        if number < self.deaths.len() {
            Arc::make_mut(&mut self.deaths)[number] = Some(death);
        }
        self.remove_timers(pid, true);
        self.leave_ipc(pid);
        let Some(process) = self.process_by_pid_mut(pid) else {
            return;
        };
        process.life = Life::Zombie(death);
        process.borrows_memory = false;
        process.program_break = None;
        process.stopped = None;
        process.news = None;
        let (parent, exit_signal) = (process.parent, process.exit_signal);
        let descriptors = std::mem::take(&mut process.descriptors);
        for (_, descriptor) in descriptors.iter() {
            self.close(pid, descriptor.description);
        }
        // Tasks that wait for a file lock check again.
        self.lock_releases += 1;
        self.give_children_away(pid);
        let told = match self.process_by_pid(pid) {
            Some(process) if exit_signal != 0 => Some(Signal {
                number: exit_signal,
                ..HostState::signal_of_death(process, death)
            }),
            _ => None,
        };
        let is_first = self.processes.first().is_some_and(|first| first.pid == pid);
        if !self.parent_cares(parent)
            && !is_first
            && let Some(process) = self.process_by_pid_mut(pid)
        {
            process.life = Life::Gone;
        }
        if let Some(signal) = told {
            self.send(parent, signal);
        }
    }

    /// Whether the parent reaps its children with `wait`: false if it ignores SIGCHLD or has set
    /// `SA_NOCLDWAIT`.
    fn parent_cares(&self, parent: u32) -> bool {
        match self.process_by_pid(parent) {
            Some(parent) if matches!(parent.life, Life::Running) => {
                let action = parent.actions[SIGCHLD as usize - 1];
                action.handler != IGNORE && action.flags & SA_NOCLDWAIT == 0
            }
            _ => false,
        }
    }

    /// Reparents the children of an exiting process to the nearest subreaper, or to init.
    fn give_children_away(&mut self, pid: u32) {
        let heir = self.heir_of(pid);
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
            child.parent = heir;
            child.exit_signal = SIGCHLD;
            let (life, signal) = (child.life, child.parent_death_signal);
            match life {
                Life::Zombie(_) if heir == INIT => child.life = Life::Gone,
                Life::Zombie(death) => {
                    let signal = HostState::signal_of_death(child, death);
                    self.send(heir, signal);
                }
                Life::Running if signal != 0 => self.send_to_process(child_pid, signal),
                _ => {}
            }
        }
    }

    /// The pid of the process that adopts the children of `pid`: the nearest live subreaper among its
    /// ancestors, or init.
    fn heir_of(&self, pid: u32) -> u32 {
        let mut next = pid;
        while let Some(process) = self.process_by_pid(next) {
            next = process.parent;
            if let Some(ancestor) = self.process_by_pid(next)
                && ancestor.is_subreaper
                && matches!(ancestor.life, Life::Running)
            {
                return next;
            }
        }
        INIT
    }
}

impl Host {
    /// Adds tasks that the last system call created to the tables, and removes exited ones.
    pub(crate) fn settle(&mut self) {
        let mut unmapped = Vec::new();
        for (process, memory) in self.state.processes.iter().zip(&mut self.memories) {
            if memory.has_views() && !matches!(process.life, Life::Running) {
                unmapped.extend(memory.forget_views());
            }
        }
        for holder in unmapped {
            self.state.release(crate::files::DescriptionId(holder));
        }
        for newborn in std::mem::take(&mut self.state.newborn) {
            if let Some((process, memory)) = newborn.process {
                self.state.processes.push(Arc::new(process));
                self.memories.push(memory);
            }
            self.state.tasks.push(Arc::new(newborn.task));
            self.threads.push(Arc::new(newborn.thread));
        }
        let ended = |task: &Arc<TaskState>| task.doing == Doing::Ended;
        let gone = |process: &Arc<ProcessState>| matches!(process.life, Life::Gone);
        if self.state.tasks.iter().any(ended) {
            self.forget_tasks();
        }
        while let Some(at) = self.state.processes.iter().position(gone) {
            self.state.processes.remove(at);
            self.memories.remove(at);
        }
    }

    fn forget_tasks(&mut self) {
        let first = self.state.processes.first().map(|process| process.pid);
        let mut at = 0;
        while at < self.state.tasks.len() {
            let task = &self.state.tasks[at];
            // The last thread of the first process stays: it is inspected after the host has ended.
            let is_last_of_first =
                Some(task.pid) == first && !matches!(self.state.processes[0].life, Life::Running);
            if task.doing != Doing::Ended || is_last_of_first {
                at += 1;
                continue;
            }
            self.state.tasks.remove(at);
            self.threads.remove(at);
            let schedule = &mut self.state.schedule;
            if schedule.running > at {
                schedule.running -= 1;
            } else if schedule.running == at {
                // Round-robin continues with the task behind the removed one.
                schedule.running = at.saturating_sub(1);
                schedule.due = true;
            }
        }
        for (process, memory) in self.state.processes.iter().zip(&mut self.memories).skip(1) {
            if !matches!(process.life, Life::Running) {
                *memory = Memory::empty();
            }
        }
    }

    /// The running process replaces its program (`execve`).
    pub(crate) fn execute(
        &mut self,
        execution: Execution,
        around: &mut Surroundings<'_>,
    ) -> Result<(), HostExit> {
        let task = self.state.schedule.running;
        let Some(process) = self.process_index(task) else {
            return Err(HostExit::Ended(Ending::EndPath));
        };
        let (memory, mut thread) = boot::start(&execution, reborrow(around), &mut self.state)?;
        around.oracle.commit();
        thread.number = 0;
        let pid = self.state.processes[process].pid;
        self.state.become_program(process, task, &execution);
        self.state.detach_all(pid);
        let mut old = std::mem::replace(&mut self.memories[process], memory);
        for holder in old.forget_views() {
            self.state.release(crate::files::DescriptionId(holder));
        }
        self.threads[task] = Arc::new(thread);
        Ok(())
    }
}

impl HostState {
    /// Resets a process and its thread as `execve` does; the other threads of the process exit.
    pub(crate) fn become_program(&mut self, process: usize, task: usize, execution: &Execution) {
        let process = Arc::make_mut(&mut self.processes[process]);
        process.image = execution.image;
        let found = self.files.tree.lookup(process.cwd, &execution.name, true);
        process.executable = found.ok();
        process.execution = Arc::new(execution.clone());
        process.has_executed = true;
        process.timers = Default::default();
        process.borrows_memory = false;
        process.program_break = None;
        for action in Arc::make_mut(&mut process.actions) {
            if action.handler != IGNORE {
                *action = Default::default();
            }
        }
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
            name,
            ..TaskState::new(pid, pid)
        });
        for (at, other) in self.tasks.iter_mut().enumerate() {
            if other.pid == pid && at != task {
                Arc::make_mut(other).doing = Doing::Ended;
            }
        }
    }
}
