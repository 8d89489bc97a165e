//! Creation of processes and threads: `clone`, `fork` and `vfork`.

use everett_vm::{Bug, BugKind, Memory, OnReturn, Thread, Value, Vm};
use triomphe::Arc;

use crate::capabilities::{SYS_ADMIN, SYS_RESOURCE};
use crate::errno::Errno;
use crate::exec::reset_actions;
use crate::files::OpenFlags;
use crate::kernel::{Answer, Kernel, Stop};
use crate::limits::{PROCESSES, UNLIMITED};
use crate::objects::Object;
use crate::process::{ExitState, NewTask, ProcessState};
use crate::signals::SIGCHLD;

const CLONE_VM: u64 = 0x100;
const CLONE_PIDFD: u64 = 0x1000;
const CLONE_VFORK: u64 = 0x4000;
const CLONE_PARENT: u64 = 0x8000;
const CLONE_THREAD: u64 = 0x1_0000;
const CLONE_SETTLS: u64 = 0x8_0000;
const CLONE_PARENT_SETTID: u64 = 0x10_0000;
const CLONE_CHILD_CLEARTID: u64 = 0x20_0000;
const CLONE_CHILD_SETTID: u64 = 0x100_0000;
/// The child has the default actions for signals, unless it ignores them (`clone3`).
pub const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;

/// Arguments of `clone`, `fork` and `vfork`.
#[derive(Copy, Clone, Debug, Default)]
pub struct CloneArgs {
    /// `CLONE_` flags; the low byte is the exit signal.
    pub flags: u64,
    /// The address at which a pidfd of the child is stored in the parent.
    pub pidfd: u64,
    /// The address at which the child's tid is stored in the parent.
    pub parent_tid: u64,
    /// The address at which the child's tid is stored in the child, and cleared when the child
    /// exits.
    pub child_tid: u64,
    /// Base of `%fs`.
    pub tls: u64,
    /// Function and argument that the child starts with; `None` continues
    /// at the parent's program counter.
    pub entry: Option<(u64, Value)>,
}

impl CloneArgs {
    /// `vfork`: the parent is blocked until the child exits or calls
    /// `execve`; they share memory meanwhile.
    pub const VFORK: CloneArgs = CloneArgs {
        flags: CLONE_VM | CLONE_VFORK | SIGCHLD as u64,
        pidfd: 0,
        parent_tid: 0,
        child_tid: 0,
        tls: 0,
        entry: None,
    };
    /// `fork`.
    pub const FORK: CloneArgs = CloneArgs {
        flags: SIGCHLD as u64,
        ..CloneArgs::VFORK
    };

    /// Whether the child uses the memory of its parent.
    fn borrows_memory(&self) -> bool {
        const BOTH: u64 = CLONE_VM | CLONE_VFORK;
        self.flags & BOTH == BOTH
    }
}

impl Kernel<'_, '_> {
    /// Checks `RLIMIT_NPROC`: `EAGAIN` if the user already has that many processes and threads. The
    /// limit does not apply to root.
    fn check_process_limit(&self) -> Result<(), Errno> {
        let own = self.process();
        let (user, most) = (own.uid[0], own.limits.soft(PROCESSES));
        let is_exempt = user == 0 || self.is_capable(SYS_RESOURCE) || self.is_capable(SYS_ADMIN);
        if most == UNLIMITED || is_exempt {
            return Ok(());
        }
        let of_user = self.host.processes.iter().filter(|one| one.uid[0] == user);
        // A zombie counts until it is waited for.
        let all: usize = of_user
            .map(|one| self.host.tasks_of(one.pid).count().max(1))
            .sum();
        if all as u64 >= most {
            return Err(Errno::EAGAIN);
        }
        Ok(())
    }

    /// Fails with `EAGAIN` if there are as many tasks as the host or the process can have.
    fn check_task_limit(&mut self) -> Result<(), Errno> {
        let live = self.host.tasks_of(self.process().pid).count();
        let most = self.host.options.limits.tasks;
        let is_host_full = self.host.tasks.len() >= most;
        if live < everett_vm::MAX_STACKS as usize - 1 && !is_host_full {
            return Ok(());
        }
        self.host.reach_limit("max-processes");
        let warning = match is_host_full {
            true => {
                format!("there are no more than {most} processes and threads; see `max_processes`")
            }
            false => format!("a process has no more than {live} threads"),
        };
        self.host.warn(warning);
        Err(Errno::EAGAIN)
    }

    /// Returns the thread of a new task.
    fn cloned_thread(
        &mut self,
        args: &CloneArgs,
        stack: u32,
        borrows_memory: bool,
    ) -> Result<Thread, Stop> {
        let mut thread = match args.entry {
            _ if self.guest.is_some() => Thread::new(stack),
            Some((function, argument)) => self.thread_at(function, argument, stack)?,
            None => {
                let mut thread = self.vm.thread.clone();
                Vm::finish_call_of(self.vm.image, &mut thread, &[Value::ZERO]);
                thread
            }
        };
        let sets_locals = args.flags & CLONE_SETTLS != 0;
        if borrows_memory && !sets_locals {
            thread.locals = self.vm.thread.locals.clone();
        }
        thread.floats = self.vm.thread.floats;
        thread.fs_base = match sets_locals {
            true => args.tls,
            false => self.vm.thread.fs_base,
        };
        Ok(thread)
    }

    /// Creates a thread or a process.
    pub fn clone_task(&mut self, args: CloneArgs) -> Answer {
        let is_thread = args.flags & CLONE_THREAD != 0;
        let has_start = args.entry.is_some() || self.guest.is_some();
        if is_thread && (args.flags & CLONE_VM == 0 || !has_start) {
            return Err(Errno::EINVAL.into());
        }
        self.check_process_limit()?;
        self.check_task_limit()?;
        let stack = self.free_stack();
        let borrows_memory = !is_thread && args.borrows_memory();
        let thread = self.cloned_thread(&args, stack, borrows_memory)?;
        if args.flags & CLONE_PARENT_SETTID != 0 {
            self.check(args.parent_tid, 4, true)?;
        }
        if args.flags & CLONE_PIDFD != 0 {
            self.process().descriptors.free_from(0)?;
            self.check(args.pidfd, 4, true)?;
        }
        let tid = self.host.new_pid();
        let pid = if is_thread { self.process().pid } else { tid };
        let mut task = self.task().child(tid, pid);
        if is_thread {
            task.handlers.clear();
        }
        task.stack = match args.entry {
            Some(_) => stack,
            None => self.task().stack,
        };
        if args.flags & CLONE_CHILD_CLEARTID != 0 {
            task.clear_child_tid = args.child_tid;
        }
        if args.flags & CLONE_PARENT_SETTID != 0 {
            self.write_bytes(args.parent_tid, &tid.to_le_bytes())?;
        }
        if is_thread || borrows_memory && args.entry.is_some() {
            self.vm.record_thread_start(stack);
        }
        if borrows_memory && args.entry.is_none() {
            task.lent_slots = thread.slots.len();
        }
        let process = (!is_thread).then(|| self.child_process(pid, args));
        if args.flags & CLONE_PIDFD != 0 {
            // The child does not inherit it.
            let flags = OpenFlags::READ_WRITE | OpenFlags::CLOSE_ON_EXEC;
            let fd = self.open_new(Object::Process(pid), flags)?;
            self.write_bytes(args.pidfd, &fd.to_le_bytes())?;
        }
        self.host.new_tasks.push(NewTask {
            process,
            task,
            thread,
        });
        Ok(Value::concrete(u64::from(tid)))
    }

    /// A thread that is about to call a function.
    fn thread_at(&mut self, function: u64, argument: Value, stack: u32) -> Result<Thread, Stop> {
        let Some(function) = self.vm.function_at(function) else {
            return Err(Bug::new(
                BugKind::InvalidCall,
                "the start address of a thread is not a function",
            )
            .into());
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
            .tasks_in_memory_of(self.process().pid)
            .map(|task| task.stack)
            .collect();
        (0..).find(|stack| !used.contains(stack)).unwrap_or(0)
    }

    fn child_process(&mut self, pid: u32, args: CloneArgs) -> (ProcessState, Memory) {
        let own = self.process();
        let (parent, exit_signal) = match args.flags & CLONE_PARENT {
            0 => (own.pid, (args.flags & 0xff) as i32),
            _ => (own.parent, own.exit_signal),
        };
        let mut actions = own.actions.clone();
        if args.flags & CLONE_CLEAR_SIGHAND != 0 {
            reset_actions(&mut actions);
        }
        let child = ProcessState {
            pid,
            parent,
            exit_state: ExitState::Alive,
            borrows_memory: args.flags & CLONE_VFORK != 0,
            lender: args.borrows_memory().then(|| own.lender.unwrap_or(own.pid)),
            exit_signal,
            actions,
            pending: Default::default(),
            state_change: None,
            has_executed: false,
            parent_death_signal: 0,
            is_subreaper: false,
            cpu_ns: 0,
            children_cpu_ns: 0,
            most_memory: 0,
            children_most_memory: 0,
            waits: 0,
            children_waits: 0,
            locked_memory: Default::default(),
            alarms: [None; 3],
            timers: Default::default(),
            descriptors: own.descriptors.inherited(),
            ..own.clone()
        };
        for (_, descriptor) in child.descriptors.iter() {
            self.host.files.retain(descriptor.description);
        }
        if child.lender.is_some() {
            let is_set = args.flags & CLONE_CHILD_SETTID != 0;
            if is_set && self.check(args.child_tid, 4, true).is_ok() {
                // The child finds its tid there; an invalid address is ignored.
                let _ = self.write_bytes(args.child_tid, &pid.to_le_bytes());
            }
            return (child, Memory::empty());
        }
        let mut memory = self.vm.memory.clone();
        memory.apply_fork_advice();
        memory.reset_peak();
        self.host.inherit_views(&mut memory);
        if memory.has_views() || self.guest.is_some() {
            let own = self.process().pid;
            Arc::make_mut(&mut self.host.ipc).inherit(own, pid);
        }
        if args.flags & CLONE_CHILD_SETTID != 0
            && let Some(object) = memory.object_at_mut(args.child_tid, 4)
        {
            let offset = args.child_tid - object.start;
            object.write_concrete(offset, &pid.to_le_bytes());
        }
        (child, memory)
    }
}
