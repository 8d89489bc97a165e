//! A time slice of one thread: executes instructions and system calls until something stops it.

use everett_vm::{Bug, BugKind, ExecContext, Exit, Interrupt, JumpTarget, SystemCall, Value, Vm};
use triomphe::Arc;

use crate::errno::Errno;
use crate::guest::Guest;
use crate::host::Host;
use crate::kernel::{Kernel, Stop, reborrow};
use crate::outcome::{Ending, HostExit};
use crate::process::{Execution, ExitStatus, RunState, TaskState};
use crate::quota::NO_MEMORY;
use crate::table::{Row, property};
use crate::wait::Wait;
use crate::{numbers, syscalls};

/// Virtual time that a system call takes.
pub(crate) const SYSTEM_CALL_NS: u64 = 1000;

/// Why a time slice ended.
pub(crate) enum SliceEnd {
    /// The instruction budget is used up.
    Budget,
    /// A preemption point: another thread may run.
    Point,
    /// The thread is blocked or has exited.
    Off,
    /// The process calls `execve`.
    Execute(Box<Execution>),
    /// The driver of the host must act.
    Exit(HostExit),
}

/// A time slice of one thread.
pub(crate) struct TimeSlice<'k, 'v> {
    pub(crate) kernel: Kernel<'k, 'v>,
    /// Instructions of the vm that are already accounted for.
    counted: u64,
    /// Name and arguments of the current system call, for the log.
    described: Option<(&'static str, String)>,
    /// The call takes no virtual time: the native program may make more or fewer such calls.
    unseen: bool,
    /// Whether the call only reads a clock; `None` if it lets other threads run.
    reads_clock: Option<bool>,
    /// Result of the last system call.
    pub(crate) result: Option<Value>,
}

impl<'k, 'v> TimeSlice<'k, 'v> {
    pub(crate) fn new(kernel: Kernel<'k, 'v>) -> TimeSlice<'k, 'v> {
        TimeSlice {
            kernel,
            counted: 0,
            described: None,
            unseen: false,
            reads_clock: Some(false),
            result: None,
        }
    }

    /// Runs for at most about `budget` instructions.
    pub(crate) fn run(mut self, budget: u64) -> SliceEnd {
        let mapped_files = self.kernel.vm.memory.has_views();
        if let Err(stop) = self.resume()
            && let Some(pause) = self.handle_stop(stop)
        {
            return pause;
        }
        loop {
            let left = budget.saturating_sub(self.kernel.vm.instructions);
            let left = left.min(self.kernel.host.schedule.quantum);
            if left == 0 {
                return SliceEnd::Budget;
            }
            let exit = self.execute(left);
            let stop = match exit {
                Exit::Budget => return SliceEnd::Budget,
                Exit::Returned(values) => self.returned(values.first().copied()),
                Exit::Interrupted(Interrupt::SystemCall(call)) => self.system_call(&call),
                Exit::Interrupted(Interrupt::PreemptionPoint) => {
                    self.kernel.log_point();
                    Err(Stop::Point)
                }
                Exit::Interrupted(Interrupt::Bug(bug)) => self.fault(bug),
                Exit::Interrupted(interrupt) => Err(Stop::Interrupt(interrupt)),
            };
            if let Err(stop) = stop
                && let Some(pause) = self.handle_stop(stop)
            {
                return pause;
            }
            let host = &self.kernel.host;
            if !host.new_tasks.is_empty() || host.wire.interrupts(host.clock_ns) {
                // Continue later: other threads or hosts may run first.
                return SliceEnd::Budget;
            }
            if !mapped_files && self.kernel.vm.memory.has_views() {
                // Slices of processes that map files are short.
                return SliceEnd::Budget;
            }
        }
    }

    /// Lets the vm execute, and accounts for its instructions.
    fn execute(&mut self, budget: u64) -> Exit {
        let faults = self.kernel.malloc_faults_left();
        self.kernel.vm.malloc_faults = faults;
        self.kernel.set_function_faults();
        let exit = self.kernel.vm.run(budget);
        for stack in std::mem::take(&mut self.kernel.vm.failed_allocations) {
            self.kernel.host.faults.add_allocation(stack);
        }
        for (what, stack) in std::mem::take(&mut self.kernel.vm.function_faults.injected) {
            self.kernel.host.faults.add(what, stack);
        }
        self.kernel.take_declined();
        self.count();
        exit
    }

    /// Accounts for executed instructions. They take no virtual time by themselves: the clock
    /// advances at system calls and at the end of a time slice, so that it is the same for the
    /// native program, which executes other instructions.
    fn count(&mut self) {
        let new = self.kernel.vm.instructions - self.counted;
        self.counted += new;
        self.kernel.host.instructions += new;
        let quantum = &mut self.kernel.host.schedule.quantum;
        *quantum = quantum.saturating_sub(new);
    }

    /// An instruction faults: the program may have a signal handler for it.
    fn fault(&mut self, bug: Box<Bug>) -> Result<(), Stop> {
        if self.kernel.deliver_fault(&bug)? {
            return Ok(());
        }
        Err(Stop::Interrupt(Interrupt::Bug(bug)))
    }

    /// Continues a thread that was blocked, or that got a signal while others ran.
    pub(crate) fn resume(&mut self) -> Result<(), Stop> {
        let kernel = &mut self.kernel;
        let RunState::Waiting(wait) = &kernel.task().run_state else {
            return kernel.deliver_signals();
        };
        let wait = wait.clone();
        if kernel.host.wait_is_over(kernel.task(), &wait) {
            // The system call runs again and finds its condition fulfilled.
            kernel.task_mut().run_state = RunState::Running;
            return Ok(());
        }
        let Some(restarts) = kernel.interruption(&wait)? else {
            // The wait continues.
            return Err(Stop::Point);
        };
        kernel.task_mut().run_state = RunState::Running;
        if restarts {
            return kernel.deliver_signals();
        }
        kernel.write_remainder(&wait);
        let progress = kernel.task().progress;
        let result = match progress {
            0 => Errno::EINTR.result(),
            moved => moved,
        };
        self.finish(Value::concrete(result), None)
    }

    pub(crate) fn system_call(&mut self, call: &SystemCall) -> Result<(), Stop> {
        let number = self.kernel.vm.concretize(call.number)?;
        let is_aside = self.kernel.host.internal_call;
        let is_memory = |row: &Row| row.has(property::MEMORY);
        self.unseen = is_aside || syscalls::row(number).is_some_and(is_memory);
        self.reads_clock = syscalls::only_reads_clock(number);
        if !self.unseen && self.kernel.stop_at_point() {
            return Err(Stop::Point);
        }
        let kernel = &mut self.kernel;
        if kernel.vm.memory.has_views() {
            kernel.host.flush_views(kernel.vm.memory);
        }
        if !self.unseen && (kernel.sample_watches() || kernel.stop_before_call(number)) {
            return Err(Stop::Ask);
        }
        let result = match syscalls::row(number) {
            Some(row) => {
                if kernel.host.log.is_some() && !is_aside {
                    let arguments = kernel.describe_arguments(row, call);
                    self.described = Some((row.name, arguments));
                }
                kernel.dispatch_or_fail(row, call)
            }
            None => {
                match numbers::name(number) {
                    Some(name) if numbers::is_gone(name) => {}
                    Some(name) => kernel.refuse(name, format!("system call {name}")),
                    None => {
                        let unknown = format!("syscall {}", number as i64);
                        kernel.refuse(&unknown, unknown.clone());
                    }
                }
                Err(Errno::ENOSYS.into())
            }
        };
        if kernel.vm.memory.has_views() {
            kernel.host.refresh_views(kernel.vm.memory);
        }
        match result {
            Ok(value) => self.finish(value, call.jump),
            Err(Stop::Errno(errno)) => self.finish(Value::concrete(errno.result()), call.jump),
            Err(stop) => Err(stop),
        }
    }

    /// Completes the system call. The thread continues after it, or at the target of a jump.
    fn finish(&mut self, result: Value, jump: Option<JumpTarget>) -> Result<(), Stop> {
        let kernel = &mut self.kernel;
        kernel.vm.commit();
        let task = kernel.task_mut();
        task.deadline_ns = None;
        task.waits_for_wall_clock = false;
        task.remainder = 0;
        task.progress = 0;
        task.woken = false;
        task.passed_preemption_point = false;
        task.fault_asked = false;
        task.stop_asked = false;
        // A handler that interrupts a wait runs with the temporary signal mask of the call;
        // everything else restores the mask.
        if result.bits != Errno::EINTR.result() {
            kernel.restore_mask();
        }
        if !self.unseen {
            let took_ns = kernel.time_taken(self.reads_clock);
            // The clock saturates: a program that sleeps forever reaches the end of time.
            kernel.host.clock_ns = kernel.host.clock_ns.saturating_add(took_ns);
            kernel.vm.clock_ns = kernel.host.clock_ns;
            let task = kernel.task_mut();
            task.cpu_ns += took_ns;
            task.calls += 1;
            let peak = kernel.vm.memory.peak_bytes();
            let process = kernel.process_mut();
            process.cpu_ns += took_ns;
            process.most_memory = process.most_memory.max(peak);
        }
        if let Some((name, arguments)) = self.described.take() {
            kernel.log_call(name, &arguments, result);
        }
        match jump {
            Some(jump) => kernel.vm.unwind_to_jump(jump),
            None => kernel.vm.finish_call(&[result]),
        }
        self.result = Some(result);
        kernel.deliver_signals()?;
        kernel.restore_mask();
        if !self.unseen {
            kernel.host.schedule.count_call();
        }
        let yields = std::mem::take(&mut kernel.host.schedule.yielded);
        if yields || kernel.host.is_outranked(kernel.task) {
            return Err(Stop::Point);
        }
        Ok(())
    }

    /// The outermost frame, or that of a signal handler, returned.
    fn returned(&mut self, value: Option<Value>) -> Result<(), Stop> {
        if self.kernel.vm.thread.frames.is_empty() {
            let status = self.kernel.exit_status(value.unwrap_or(Value::ZERO));
            return Err(self.kernel.thread_returned(status));
        }
        self.kernel.handler_returned()
    }

    /// Handles a stop. Returns how the time slice ends, or `None` if the thread continues.
    pub(crate) fn handle_stop(&mut self, stop: Stop) -> Option<SliceEnd> {
        let kernel = &mut self.kernel;
        match stop {
            Stop::Interrupt(Interrupt::Suspend) => Some(SliceEnd::Exit(HostExit::Suspended)),
            Stop::Interrupt(Interrupt::Bug(bug)) => self.handle_bug(bug),
            Stop::Interrupt(Interrupt::EndPath) => {
                Some(SliceEnd::Exit(HostExit::Ended(Ending::EndPath)))
            }
            Stop::Interrupt(Interrupt::SystemCall(_) | Interrupt::PreemptionPoint)
            | Stop::Errno(_) => {
                let message = "system call at a point where none is possible";
                let bug = Box::new(Bug::new(BugKind::Unsupported, message));
                Some(SliceEnd::Exit(HostExit::Ended(Ending::Bug(bug))))
            }
            Stop::Point => {
                kernel.vm.commit();
                Some(SliceEnd::Point)
            }
            Stop::Ask => {
                kernel.vm.commit();
                Some(SliceEnd::Budget)
            }
            Stop::SetUp => Some(SliceEnd::Exit(HostExit::Ended(Ending::SetUp))),
            Stop::Block(wait) => {
                self.block(*wait);
                Some(SliceEnd::Off)
            }
            Stop::ExitThread => {
                self.log_unanswered();
                self.kernel.end_thread();
                Some(SliceEnd::Off)
            }
            Stop::Exit(exit_status) => {
                self.log_unanswered();
                self.kernel.end_process(exit_status);
                Some(SliceEnd::Off)
            }
            Stop::Execute(execution) => {
                self.log_unanswered();
                Some(SliceEnd::Execute(execution))
            }
        }
    }

    /// Logs a system call that never returns.
    fn log_unanswered(&mut self) {
        if let Some((name, arguments)) = self.described.take() {
            self.kernel.log_line(&format!("{name}({arguments}) = ?"));
        }
    }

    fn block(&mut self, wait: Wait) {
        let kernel = &mut self.kernel;
        kernel.vm.commit();
        kernel.host.waits += 1;
        let since = kernel.host.waits;
        let task = kernel.task_mut();
        task.deadline_ns = wait.deadline_ns;
        task.waiting_since = since;
        // The thread is not preempted again when it is picked.
        task.passed_preemption_point = true;
        task.fault_asked = true;
        task.run_state = RunState::Waiting(wait);
        task.waits += 1;
        kernel.process_mut().waits += 1;
    }

    /// Handles a bug: it ends the host, or only the process if the host continues without it.
    fn handle_bug(&mut self, mut bug: Box<Bug>) -> Option<SliceEnd> {
        let kernel = &mut self.kernel;
        if matches!(bug.kind, BugKind::Panic | BugKind::UncaughtException) {
            bug.message += &kernel.thread_for_message();
        }
        let is_first = kernel.process == 0;
        if kernel.host.options.crashes_end_all || is_first || bug.kind.is_tool_limit() {
            return Some(SliceEnd::Exit(HostExit::Ended(Ending::Bug(bug))));
        }
        kernel.end_process(ExitStatus::Signal(bug.native_signal()));
        Some(SliceEnd::Off)
    }
}

impl Kernel<'_, '_> {
    /// The running thread as an addition to a message; empty for the first thread of a process.
    fn thread_for_message(&self) -> String {
        let task = self.task();
        if task.tid == task.pid {
            return String::new();
        }
        let name = task.name.split(|byte| *byte == 0).next();
        let name = String::from_utf8_lossy(name.unwrap_or_default());
        format!(" (thread {} `{name}`)", task.tid)
    }
}

impl Host {
    /// Calls `work` with the running thread.
    pub(crate) fn with_running<T>(
        &mut self,
        around: &mut ExecContext<'_>,
        work: impl FnOnce(TimeSlice<'_, '_>) -> T,
    ) -> Option<T> {
        self.with_guest(around, None, work)
    }

    /// Calls `work` with the running thread, whose memory is in `guest` if it is native.
    pub(crate) fn with_guest<T>(
        &mut self,
        around: &mut ExecContext<'_>,
        guest: Option<&mut dyn Guest>,
        work: impl FnOnce(TimeSlice<'_, '_>) -> T,
    ) -> Option<T> {
        let task = self.state.schedule.running;
        let process = self.process_index(task)?;
        let image = self.state.processes[process].image;
        let memory_at = self.memory_index(process);
        let thread = Arc::make_mut(self.threads.get_mut(task)?);
        let memory = &mut self.memories[memory_at];
        let shares = memory.has_views();
        if shares {
            self.state.load_views(memory);
        }
        let mut vm = Vm::new(reborrow(around), image, memory, thread);
        let most = vm.max_heap;
        vm.max_heap = most.min(self.state.processes[process].max_heap);
        vm.max_address_space = self.state.processes[process].limits.address_space();
        vm.max_data = self.state.processes[process].limits.data();
        vm.max_stack = self.state.processes[process].limits.stack();
        vm.clock_ns = self.state.clock_ns;
        let pid = self.state.processes[process].pid;
        // A thread that waits for its `vfork` child does not run meanwhile.
        let runs = |task: &&TaskState| task.vforked.is_none();
        vm.alone = self.state.tasks_in_memory_of(pid).filter(runs).count() == 1;
        vm.points = self.state.points(vm.alone, shares);
        let kernel = Kernel {
            vm: &mut vm,
            task,
            process,
            guest: guest.map(|guest| guest as &mut dyn Guest),
            host: &mut self.state,
        };
        let result = work(TimeSlice::new(kernel));
        // Only the limit of the run is reported, not a limit that the program set for itself.
        if vm.reached_max_heap && vm.max_heap == most {
            self.state.reach_limit("max-heap");
            self.state.warn(NO_MEMORY);
        }
        let memory = &mut self.memories[memory_at];
        if memory.has_views() {
            self.state.store_views(memory);
        }
        Some(result)
    }
}
