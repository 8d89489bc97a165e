//! The interface for native processes: the kernel model answers their system calls and accesses
//! their memory through [`Guest`]. Frames and registers belong to the native driver.

use everett_vm::{
    ChoiceSite, ExecContext, FunctionFailure, Interrupt, Memory, SystemCall, Thread, Value,
};
use triomphe::Arc;

use crate::boot::{self, StartValue};
use crate::capabilities::IPC_LOCK;
use crate::dispatch::{SliceEnd, TimeSlice};
use crate::files::Disk;
use crate::guest::{Guest, Injected};
use crate::host::Host;
use crate::kernel::{Kernel, Stop};
use crate::limits::{ADDRESS_SPACE, LOCKED_MEMORY, UNLIMITED};
use crate::outcome::{Ending, HostExit};
use crate::process::NewIds;
use crate::process::{Execution, RunState, TaskName};
use crate::quota::NO_MEMORY;
use crate::signals::{Signal, bit};
use crate::{Errno, HostConfig, syscalls};

/// Outcome of a system call, or of resuming a thread.
#[derive(Debug)]
pub enum CallOutcome {
    /// The thread continues, after the handlers of these signals.
    Continue(Vec<Injected>),
    /// The call returns this result; the thread continues after the handlers of these signals.
    Done(u64, Vec<Injected>),
    /// The call blocks: make it again when the thread is picked again.
    Blocked,
    /// The call restarts after the handlers of these signals.
    Restart(Vec<Injected>),
    /// The thread or its process has exited.
    Exited,
    /// The process calls `execve`.
    Exec(Box<Execution>),
    /// The host has ended, or cannot continue.
    Exit(HostExit),
}

/// Entries of the auxiliary vector that the model decides.
#[derive(Clone, Debug)]
pub struct AuxiliaryValues {
    /// `AT_RANDOM`: the bytes.
    pub random: Vec<u8>,
    /// `AT_UID`, `AT_EUID`, `AT_GID`, `AT_EGID` and `AT_SECURE`.
    pub ids: NewIds,
    /// `AT_EXECFN`: the path of the program.
    pub name: Vec<u8>,
}

/// Memory that a process has mapped natively, and what it asks for, in bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct MemoryRequest {
    /// What it has mapped.
    pub mapped: u64,
    /// The part of it that is private and writable, without the stack.
    pub data: u64,
    /// What it asks for.
    pub more: u64,
    /// What will be private and writable in addition.
    pub more_data: u64,
    /// It will be locked.
    pub is_locked: bool,
    /// It is for the heap that ends at the program break.
    pub is_break: bool,
}

impl Kernel<'_, '_> {
    /// Makes the native thread run the handler of a signal.
    pub(crate) fn inject(&mut self, signal: &Signal, mask: u64) {
        let [first, second, third] = signal.words;
        let status = signal.status.and_then(|status| status.as_concrete());
        let second = status.map_or(second, |status| second & !0xff | status & 0xff);
        self.host.injected.push(Injected {
            signal: signal.number,
            code: signal.code,
            words: [first, second, third],
            mask,
        });
    }
}

impl Host {
    /// Boots a host whose processes are native. Also returns the programs to
    /// execute, in the order of its tasks.
    pub fn boot_native(
        config: &HostConfig,
        disk: Option<&Disk>,
        around: &mut ExecContext<'_>,
    ) -> Result<(Host, Vec<Execution>, Vec<StartValue>), Interrupt> {
        let (state, executions) = boot::prepare(config, disk, around)?;
        let variables = boot::variables(config, around)?;
        around.oracle.commit();
        let host = Host {
            memories: executions.iter().map(|_| Memory::empty()).collect(),
            threads: executions
                .iter()
                .map(|_| Arc::new(Thread::new(0)))
                .collect(),
            state,
        };
        Ok((host, executions, variables))
    }

    /// The running task.
    pub fn running(&self) -> TaskName {
        let task = &self.state.tasks[self.state.schedule.running];
        TaskName {
            pid: task.pid,
            tid: task.tid,
        }
    }

    /// The running task, if it has not exited.
    pub fn running_task(&self) -> Option<TaskName> {
        let is_there = self.state.schedule.running < self.state.tasks.len();
        is_there.then(|| self.running())
    }

    /// Number of threads that have not exited.
    pub fn thread_count(&self) -> usize {
        self.state.tasks.len()
    }

    /// The tasks that have not exited.
    pub fn alive(&self) -> Vec<TaskName> {
        let tasks = self.state.tasks.iter();
        let alive = tasks.filter(|task| task.run_state != RunState::Ended);
        let name = |task: &Arc<crate::process::TaskState>| TaskName {
            pid: task.pid,
            tid: task.tid,
        };
        alive.map(name).collect()
    }

    /// Picks the thread that runs next, if one must be picked. Returns
    /// `Some` if no thread is runnable.
    pub fn choose_thread(&mut self, around: &mut ExecContext<'_>) -> Option<HostExit> {
        if !self.state.schedule.due {
            return None;
        }
        self.pick(around)
            .unwrap_or_else(|interrupt| Some(interrupt.into()))
    }

    /// Resumes the thread that was picked.
    pub fn resume_thread(
        &mut self,
        around: &mut ExecContext<'_>,
        guest: &mut dyn Guest,
    ) -> CallOutcome {
        let waited = {
            let task = &self.state.tasks[self.state.schedule.running];
            matches!(task.run_state, RunState::Waiting(_))
        };
        self.native_step(around, guest, waited, |slice| slice.resume())
    }

    /// Executes a system call of the running thread.
    pub fn serve(
        &mut self,
        around: &mut ExecContext<'_>,
        guest: &mut dyn Guest,
        call: &SystemCall,
    ) -> CallOutcome {
        self.native_step(around, guest, true, |slice| slice.system_call(call))
    }

    /// Executes a system call that is not the program's own, such as one of its loader: it takes no
    /// time, is not a scheduling point, cannot be made to fail and is not logged.
    pub fn serve_internal(
        &mut self,
        around: &mut ExecContext<'_>,
        guest: &mut dyn Guest,
        call: &SystemCall,
    ) -> CallOutcome {
        self.state.internal_call = true;
        let served = self.serve(around, guest, call);
        self.state.internal_call = false;
        served
    }

    /// Returns from a signal handler.
    pub fn return_from_handler(
        &mut self,
        around: &mut ExecContext<'_>,
        guest: &mut dyn Guest,
    ) -> CallOutcome {
        self.native_step(around, guest, false, |slice| {
            slice.kernel.handler_returned()
        })
    }

    fn native_step(
        &mut self,
        around: &mut ExecContext<'_>,
        guest: &mut dyn Guest,
        in_call: bool,
        step: impl FnOnce(&mut TimeSlice<'_, '_>) -> Result<(), Stop>,
    ) -> CallOutcome {
        let stepped = self.with_guest(around, Some(guest), |mut slice| {
            let stop = step(&mut slice);
            let result = slice.result.take();
            let pause = stop.err().and_then(|stop| slice.handle_stop(stop));
            (result, pause)
        });
        let Some((result, pause)) = stepped else {
            return CallOutcome::Exit(HostExit::Ended(Ending::EndPath));
        };
        let signals = std::mem::take(&mut self.state.injected);
        let result = result.map(|value: Value| value.bits);
        match pause {
            None if in_call && result.is_none() => CallOutcome::Restart(signals),
            None | Some(SliceEnd::Budget) => match result {
                Some(result) => CallOutcome::Done(result, signals),
                None => CallOutcome::Continue(signals),
            },
            Some(SliceEnd::Point) => {
                self.state.schedule.due = true;
                match result {
                    Some(result) => CallOutcome::Done(result, signals),
                    None => CallOutcome::Blocked,
                }
            }
            Some(SliceEnd::Off) => {
                self.state.schedule.due = true;
                let task = &self.state.tasks[self.state.schedule.running];
                match task.run_state {
                    RunState::Ended => CallOutcome::Exited,
                    _ => CallOutcome::Blocked,
                }
            }
            Some(SliceEnd::Execute(execution)) => CallOutcome::Exec(execution),
            Some(SliceEnd::Exit(exit)) => CallOutcome::Exit(exit),
        }
    }

    /// Adds new tasks to the tables and removes exited ones. Returns the new ones, in order.
    pub fn update_native_tasks(&mut self) -> Vec<TaskName> {
        let name = |new: &crate::process::NewTask| TaskName {
            pid: new.task.pid,
            tid: new.task.tid,
        };
        let create_task = self.state.new_tasks.iter().map(name).collect();
        self.update_tasks();
        create_task
    }

    /// Updates the tables after the running process has replaced its program (`execve`).
    pub fn complete_exec(&mut self, execution: &Execution) {
        let task = self.state.schedule.running;
        if let Some(process) = self.process_index(task) {
            self.state.reset_for_exec(process, task, execution);
        }
    }

    /// Records that a signal of the real kernel has killed a native process.
    pub fn mark_killed(&mut self, pid: u32, signal: i32) {
        self.state
            .end_process(pid, crate::process::ExitStatus::Signal(signal));
        self.state.schedule.due = true;
    }

    /// Holds this thread back until the next call of `hold`; `None` holds none back. A thread must
    /// be picked afterwards.
    pub fn hold(&mut self, tid: Option<u32>) {
        self.state.schedule.held = tid;
        self.state.schedule.due = true;
    }

    /// Puts the running thread at a preemption point.
    pub fn reach_preemption_point(&mut self) {
        self.state.schedule.due = true;
    }

    /// Number of system calls that the running thread has made, without memory management.
    pub fn calls_made(&self) -> u64 {
        self.state.tasks[self.state.schedule.running].calls
    }

    /// Whether a thread must be picked before one continues.
    pub fn needs_scheduling(&self) -> bool {
        self.state.schedule.due
    }

    /// Whether this is the process that the host booted with.
    pub fn is_first(&self, pid: u32) -> bool {
        let first = self.state.processes.first();
        first.is_some_and(|first| first.pid == pid)
    }

    /// Handles a signal that an instruction of the running thread raises. `None` if the signal
    /// kills the process: it has no handler, or is blocked.
    pub fn fault(
        &mut self,
        around: &mut ExecContext<'_>,
        guest: &mut dyn Guest,
        (number, code, words): (i32, i32, [u64; 3]),
    ) -> Option<CallOutcome> {
        let task = &self.state.tasks[self.state.schedule.running];
        let action = self.state.process_by_pid(task.pid)?.actions[number as usize - 1];
        if action.handler <= 1 || task.blocked & bit(number) != 0 {
            return None;
        }
        let signal = Signal {
            words,
            ..Signal::new(number, code)
        };
        Some(self.native_step(around, guest, false, |slice| {
            slice.kernel.run_handler(&signal, action, None)
        }))
    }

    /// Asks the oracle whether an allocation of the running thread fails.
    pub fn ask_allocation_fault(&mut self, around: &mut ExecContext<'_>) -> bool {
        let failed = self.with_guest(around, None, |slice| {
            if slice.kernel.malloc_faults_left() == 0 {
                return false;
            }
            let picked = slice.kernel.vm.choose(&ChoiceSite::AllocationFault, 2);
            let fails = matches!(picked, Ok(1));
            if fails {
                slice.kernel.host.faults.add_allocation(None);
            }
            fails
        });
        failed.unwrap_or(false)
    }

    /// Asks the oracle whether a call of a libc function by the running thread fails. The function is
    /// one of [`FaultOptions::functions`](crate::FaultOptions::functions).
    pub fn ask_function_fault(
        &mut self,
        around: &mut ExecContext<'_>,
        function: usize,
    ) -> Option<FunctionFailure> {
        self.with_guest(around, None, |mut slice| {
            slice.kernel.ask_function_fault(function)
        })?
    }

    /// Asks the oracle whether a memory management call of the running thread fails; the native
    /// kernel carries out such calls.
    pub fn ask_memory_call_fault(
        &mut self,
        around: &mut ExecContext<'_>,
        number: u64,
    ) -> Option<Errno> {
        let row = syscalls::row(number)?;
        self.with_guest(around, None, |mut slice| {
            slice.kernel.ask_memory_call_fault(row)
        })?
    }

    /// Records a call through the interface of 32-bit programs, which the model does not support.
    pub fn refuse_foreign_call(&mut self, number: u64) {
        self.state
            .note_refusal("int 0x80", &format!("int 0x80 with {number}"));
    }

    /// Records that a process got no memory because of the limit of its run.
    pub fn refuse_memory(&mut self) {
        self.state.reach_limit("max-memory");
        self.state.warn(NO_MEMORY);
    }

    /// Records that a process could not map memory because of a bound that no option changes.
    pub fn refuse_mapping(&mut self, what: &str) {
        self.state.note_refusal("mmap", what);
    }

    /// Maximum bytes that a process may have allocated.
    pub fn max_heap(&self, pid: u32) -> u64 {
        let process = self.state.process_by_pid(pid);
        process.map_or(u64::MAX, |process| process.max_heap)
    }

    /// Notes how much memory a process has had.
    pub fn note_memory(&mut self, pid: u32, bytes: u64) {
        if let Some(process) = self.state.process_by_pid_mut(pid) {
            process.most_memory = process.most_memory.max(bytes);
        }
    }

    /// Maximum bytes of the stack of the first thread of a process.
    pub fn stack_limit(&self, pid: u32) -> u64 {
        let process = self.state.process_by_pid(pid);
        process.map_or(u64::MAX, |process| process.limits.stack())
    }

    /// The error if the limits of a process refuse it more memory.
    pub fn refuses_memory(&self, pid: u32, request: &MemoryRequest) -> Option<Errno> {
        let MemoryRequest {
            mapped,
            data,
            more,
            more_data,
            ..
        } = *request;
        let process = self.state.process_by_pid(pid)?;
        let is_locked = request.is_locked || process.locked_memory.future;
        if is_locked && !process.capabilities.has(IPC_LOCK) {
            let limit = process.limits.soft(LOCKED_MEMORY);
            if limit == 0 {
                return Some(Errno::EPERM);
            }
            if process.locked_memory.bytes().saturating_add(more) > limit {
                return Some(Errno::EAGAIN);
            }
        }
        let is_too_much = |bytes: u64, more: u64, limit: u64| {
            more > 0 && limit != UNLIMITED && bytes.saturating_add(more) > limit
        };
        let limits = &process.limits;
        let is_refused = is_too_much(mapped, more, limits.soft(ADDRESS_SPACE))
            || is_too_much(data, more_data, limits.all_data())
            || request.is_break && limits.forbids_break();
        is_refused.then_some(Errno::ENOMEM)
    }

    /// Whether a process uses the memory of the one that created it.
    pub fn borrows_memory(&self, pid: u32) -> bool {
        let process = self.state.process_by_pid(pid);
        process.is_some_and(|process| process.lender.is_some())
    }

    /// Whether a process has a limit that `refuses_memory` checks.
    pub fn limits_memory(&self, pid: u32) -> bool {
        let process = self.state.process_by_pid(pid);
        process.is_some_and(|process| {
            process.limits.soft(ADDRESS_SPACE) != UNLIMITED
                || process.limits.soft(LOCKED_MEMORY) != UNLIMITED
                || process.limits.all_data() != UNLIMITED
                || process.limits.forbids_break()
        })
    }

    /// Whether a process has locked a part of a range.
    pub fn is_memory_locked(&self, pid: u32, start: u64, end: u64) -> bool {
        let process = self.state.process_by_pid(pid);
        process.is_some_and(|process| {
            let locked = &process.locked_memory;
            !locked.all && locked.overlaps(start, end)
        })
    }

    /// Records that a process has unmapped memory natively.
    pub fn unlock_mapped(&mut self, pid: u32, start: u64, size: u64) {
        if let Some(process) = self.state.process_by_pid_mut(pid) {
            let end = start.saturating_add(size.next_multiple_of(everett_vm::PAGE as u64));
            process.locked_memory.unlock(start, end);
        }
    }

    /// Records that a process has mapped memory natively; it is locked if the call or `mlockall`
    /// says so.
    pub fn lock_mapped(&mut self, pid: u32, start: u64, size: u64, is_locked: bool) {
        if let Some(process) = self.state.process_by_pid_mut(pid)
            && (is_locked || process.locked_memory.future)
        {
            process
                .locked_memory
                .lock(start, start.saturating_add(size));
        }
    }

    /// What a program of this process finds in its auxiliary vector.
    pub fn auxiliary_values(&mut self, pid: u32) -> AuxiliaryValues {
        let random = self.state.random_bytes(16);
        let process = self.state.process_by_pid(pid);
        AuxiliaryValues {
            random,
            ids: process.map_or_else(Default::default, |process| process.started_as),
            name: process.map_or_else(Vec::new, |process| process.execution.name.clone()),
        }
    }

    /// Ends the time slice of a native thread that has computed for this long without system calls.
    pub fn end_time_slice(&mut self, computed_ns: u64) {
        self.state.end_long_slice(computed_ns);
    }
}
