//! One thread at work: instructions, system calls, and what stops it.

use everett_vm::{Bug, BugKind, Exit, Interrupt, JumpTarget, SystemCall, Value};

use crate::errno::Errno;
use crate::host::{Ending, HostExit};
use crate::kernel::{Kernel, Stop};
use crate::life::Execution;
use crate::process::{Death, Doing};
use crate::table::Row;
use crate::wait::Wait;
use crate::{numbers, table};

/// What a system call costs on the virtual clock.
const SYSTEM_CALL_NS: u64 = 1000;

/// Why a thread stopped running.
pub(crate) enum Pause {
    /// It executed as much as it may.
    Budget,
    /// Another thread may run before it goes on.
    Point,
    /// It waits, or has ended.
    Off,
    /// It executes another program.
    Execute(Box<Execution>),
    /// The caller of the host must know.
    Exit(HostExit),
}

/// One thread at work for a while.
pub(crate) struct Slice<'k, 'v> {
    pub(crate) kernel: Kernel<'k, 'v>,
    /// Instructions of the vm that are counted already.
    counted: u64,
    /// The system call under way and its arguments, for the log.
    described: Option<(&'static str, String)>,
    /// The call takes no time: the native program may need more such calls, or fewer.
    unseen: bool,
    /// Result of the system call that was made last.
    pub(crate) result: Option<Value>,
}

impl<'k, 'v> Slice<'k, 'v> {
    pub(crate) fn new(kernel: Kernel<'k, 'v>) -> Slice<'k, 'v> {
        Slice {
            kernel,
            counted: 0,
            described: None,
            unseen: false,
            result: None,
        }
    }

    /// Runs for at most about `budget` instructions.
    pub(crate) fn run(mut self, budget: u64) -> Pause {
        if let Err(stop) = self.take_up()
            && let Some(pause) = self.stopped(stop)
        {
            return pause;
        }
        loop {
            let left = budget.saturating_sub(self.kernel.vm.instructions);
            let left = left.min(self.kernel.host.schedule.quantum);
            if left == 0 {
                return Pause::Budget;
            }
            let exit = self.execute(left);
            let stop = match exit {
                Exit::Budget => return Pause::Budget,
                Exit::Returned(values) => self.returned(values.first().copied()),
                Exit::Interrupted(Interrupt::SystemCall(call)) => self.system_call(&call),
                Exit::Interrupted(Interrupt::PreemptionPoint) => {
                    self.kernel.note_point();
                    Err(Stop::Point)
                }
                Exit::Interrupted(Interrupt::Bug(bug)) => self.fault(bug),
                Exit::Interrupted(interrupt) => Err(Stop::Interrupt(interrupt)),
            };
            if let Err(stop) = stop
                && let Some(pause) = self.stopped(stop)
            {
                return pause;
            }
            let host = &self.kernel.host;
            if !host.newborn.is_empty() || host.wire.interrupts(host.clock_ns) {
                // The thread goes on as one of several, or after other hosts.
                return Pause::Budget;
            }
        }
    }

    /// Lets the vm execute, and accounts for it.
    fn execute(&mut self, budget: u64) -> Exit {
        let faults = self.kernel.malloc_faults_left();
        self.kernel.vm.malloc_faults = faults;
        let exit = self.kernel.vm.run(budget);
        self.kernel.host.faults.used += faults - self.kernel.vm.malloc_faults;
        self.count();
        exit
    }

    /// Counts what the vm executed. It takes no time: the clock goes by what the kernel sees, so that it is the same
    /// for the native program, whose instructions are others.
    fn count(&mut self) {
        let new = self.kernel.vm.instructions - self.counted;
        self.counted += new;
        self.kernel.host.instructions += new;
        let quantum = &mut self.kernel.host.schedule.quantum;
        *quantum = quantum.saturating_sub(new);
    }

    /// An instruction cannot be executed: a handler may know what to do.
    fn fault(&mut self, bug: Box<Bug>) -> Result<(), Stop> {
        if self.kernel.deliver_fault(&bug)? {
            return Ok(());
        }
        Err(Stop::Interrupt(Interrupt::Bug(bug)))
    }

    /// Takes up a thread that waited, or to which a signal came while others ran.
    pub(crate) fn take_up(&mut self) -> Result<(), Stop> {
        let kernel = &mut self.kernel;
        let Doing::Waiting(wait) = &kernel.task().doing else {
            return kernel.deliver_signals();
        };
        let wait = wait.clone();
        if kernel.host.wait_is_over(kernel.task(), &wait) {
            // The system call runs again and finds what it waited for.
            kernel.task_mut().doing = Doing::Running;
            return Ok(());
        }
        let Some(restarts) = kernel.interruption(&wait)? else {
            // It goes on waiting.
            return Err(Stop::Point);
        };
        kernel.task_mut().doing = Doing::Running;
        if restarts {
            return kernel.deliver_signals();
        }
        kernel.write_remainder();
        let progress = kernel.task().progress;
        let result = match progress {
            0 => Errno::EINTR.result(),
            moved => moved,
        };
        self.finish(Value::concrete(result), None)
    }

    pub(crate) fn system_call(&mut self, call: &SystemCall) -> Result<(), Stop> {
        let number = self.kernel.vm.concretize(call.number)?;
        let is_aside = self.kernel.host.aside;
        self.unseen = is_aside || table::row(number).is_some_and(Row::is_about_memory);
        if !self.unseen && self.kernel.is_point() {
            return Err(Stop::Point);
        }
        let kernel = &mut self.kernel;
        if kernel.vm.memory.has_views() {
            kernel.host.publish_files(kernel.vm.memory);
        }
        if !self.unseen && (kernel.sees_changes() || kernel.must_stop(number)) {
            return Err(Stop::Ask);
        }
        let result = match table::row(number) {
            Some(row) => {
                if kernel.host.log.is_some() && !is_aside {
                    let arguments = kernel.describe_arguments(row, call);
                    self.described = Some((row.name, arguments));
                }
                kernel.dispatch_or_fail(row, call)
            }
            None => {
                kernel.host.warn(match numbers::name(number) {
                    Some(name) => format!("system call {name} is not modelled"),
                    None => format!("system call {number} is not modelled"),
                });
                Err(Errno::ENOSYS.into())
            }
        };
        if kernel.vm.memory.has_views() {
            kernel.host.take_over_files(kernel.vm.memory);
        }
        match result {
            Ok(value) => self.finish(value, call.jump),
            Err(Stop::Errno(errno)) => self.finish(Value::concrete(errno.result()), call.jump),
            Err(stop) => Err(stop),
        }
    }

    /// The system call is over. The thread goes on behind it, or where a jump leads.
    fn finish(&mut self, result: Value, jump: Option<JumpTarget>) -> Result<(), Stop> {
        let kernel = &mut self.kernel;
        kernel.vm.commit();
        let task = kernel.task_mut();
        task.deadline_ns = None;
        task.remainder = 0;
        task.progress = 0;
        task.woken = false;
        task.passed_preemption_point = false;
        task.fault_asked = false;
        task.stop_asked = false;
        // A handler that ends a wait runs with what the call let through; nothing else does.
        if result.bits != Errno::EINTR.result() {
            kernel.restore_mask();
        }
        if !self.unseen {
            kernel.host.clock_ns += SYSTEM_CALL_NS;
            let task = kernel.task_mut();
            task.cpu_ns += SYSTEM_CALL_NS;
            task.calls += 1;
            kernel.process_mut().cpu_ns += SYSTEM_CALL_NS;
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
            kernel.host.schedule.called();
        }
        if std::mem::take(&mut kernel.host.schedule.yielded) {
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

    /// What the caller must know, or `None` where the thread can go on.
    pub(crate) fn stopped(&mut self, stop: Stop) -> Option<Pause> {
        let kernel = &mut self.kernel;
        match stop {
            Stop::Interrupt(Interrupt::Suspend) => Some(Pause::Exit(HostExit::Suspended)),
            Stop::Interrupt(Interrupt::Bug(bug)) => self.crashed(bug),
            Stop::Interrupt(Interrupt::EndPath) => {
                Some(Pause::Exit(HostExit::Ended(Ending::EndPath)))
            }
            Stop::Interrupt(Interrupt::SystemCall(_) | Interrupt::PreemptionPoint)
            | Stop::Errno(_) => {
                let message = "a system call was made where none can be";
                let bug = Box::new(Bug::new(BugKind::Unsupported, message));
                Some(Pause::Exit(HostExit::Ended(Ending::Bug(bug))))
            }
            Stop::Point => {
                kernel.vm.commit();
                Some(Pause::Point)
            }
            Stop::Ask => {
                kernel.vm.commit();
                Some(Pause::Budget)
            }
            Stop::SetUp => Some(Pause::Exit(HostExit::Ended(Ending::SetUp))),
            Stop::Block(wait) => {
                self.block(*wait);
                Some(Pause::Off)
            }
            Stop::ExitThread => {
                self.log_unanswered();
                self.kernel.end_thread();
                Some(Pause::Off)
            }
            Stop::Exit(death) => {
                self.log_unanswered();
                self.kernel.end_process(death);
                Some(Pause::Off)
            }
            Stop::Execute(execution) => {
                self.log_unanswered();
                Some(Pause::Execute(execution))
            }
        }
    }

    /// A system call that never returns.
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
        // It goes on where it is when it is picked.
        task.passed_preemption_point = true;
        task.fault_asked = true;
        task.doing = Doing::Waiting(wait);
    }

    /// Something is wrong: the end of the host, or of a process where the host goes on without it.
    fn crashed(&mut self, bug: Box<Bug>) -> Option<Pause> {
        let kernel = &mut self.kernel;
        let is_first = kernel.process == 0;
        if kernel.host.options.crashes_end_all || is_first || bug.kind.is_tool_limit() {
            return Some(Pause::Exit(HostExit::Ended(Ending::Bug(bug))));
        }
        kernel.end_process(Death::Signal(crate::delivery::signal_of(&bug)));
        Some(Pause::Off)
    }
}
