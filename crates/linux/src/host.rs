//! A host: its processes, its kernel tables, and the loop that runs them.

use everett_expr::ExprId;
use everett_vm::{
    Bug, BugKind, CallSite, Exit, Interrupt, Memory, Surroundings, SystemCall, Thread, Value, Vm,
};

use crate::boot::reborrow;
use crate::bytes::Output;
use crate::errno::Errno;
use crate::files::Files;
use crate::kernel::{Kernel, Stop};
use crate::process::Process;
use crate::{numbers, table};

/// What a system call costs on the virtual clock.
const SYSTEM_CALL_NS: u64 = 1000;

/// Warnings that are kept: a program can ask for ever new things that do not exist.
const MAX_WARNINGS: usize = 100;

/// Streams that are collected.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Stream {
    /// Descriptor 1.
    Stdout,
    /// Descriptor 2.
    Stderr,
}

/// How a host ended.
#[derive(Clone, PartialEq, Debug)]
pub enum Ending {
    /// The program exited with this status, 8 bits, which may be symbolic.
    Exit(Value),
    /// A signal killed it.
    Signal(i32),
    /// Something is wrong.
    Bug(Box<Bug>),
    /// The program asked that this path ends, without a finding.
    EndPath,
}

/// Why [`Host::run`] came back.
#[derive(Clone, PartialEq, Debug)]
pub enum HostExit {
    /// About as many instructions as were allowed have been executed.
    Budget,
    /// A question has several answers; run again when it is decided.
    Suspended,
    /// The program reads from a live stdin: [`Host::supply_input`], then run again.
    NeedsInput,
    /// The host is at its end.
    Ended(Ending),
}

/// What of a host belongs to no single process.
#[derive(Clone, Debug)]
pub struct HostState {
    /// Virtual time since the start, in nanoseconds.
    pub clock_ns: u64,
    /// Time of the wall clock at the start, in nanoseconds since 1970.
    pub start_time_ns: u64,
    /// Executed instructions.
    pub instructions: u64,
    /// Files and open files.
    pub files: Files,
    /// What was written to stdout and stderr.
    pub outputs: [Output; 2],
    /// Where the random bytes are.
    pub random: u64,
    /// What the program wanted that is not modelled, each once, in order.
    pub warnings: Vec<String>,
}

impl HostState {
    /// The next 8 random bytes: SplitMix64, so that every run draws the same.
    pub fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Random bytes.
    pub fn random_bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len.next_multiple_of(8));
        while bytes.len() < len {
            bytes.extend_from_slice(&self.next_random().to_le_bytes());
        }
        bytes.truncate(len);
        bytes
    }

    /// Remembers what is not modelled, once.
    pub fn warn(&mut self, warning: impl Into<String>) {
        let warning = warning.into();
        if self.warnings.len() < MAX_WARNINGS && !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

/// A host. Cloning it forks it.
#[derive(Clone, Debug)]
pub struct Host {
    pub(crate) processes: Vec<Process>,
    /// The process and thread that run.
    pub(crate) running: (usize, usize),
    pub(crate) state: HostState,
}

impl Host {
    /// Runs until something stops it or about `budget` instructions were executed.
    pub fn run(&mut self, around: Surroundings<'_>, budget: u64) -> HostExit {
        let exit = self.with_running(around, |slice| slice.run(budget));
        exit.unwrap_or(HostExit::Ended(Ending::EndPath))
    }

    /// Works on the thread that runs.
    pub(crate) fn with_running<T>(
        &mut self,
        mut around: Surroundings<'_>,
        work: impl FnOnce(Slice<'_, '_>) -> T,
    ) -> Option<T> {
        let (process, task) = self.running;
        let process = self.processes.get_mut(process)?;
        let task = process.tasks.get_mut(task)?;
        let mut vm = Vm::new(reborrow(&mut around), &mut process.memory, &mut task.thread);
        let kernel = Kernel {
            vm: &mut vm,
            task: &mut task.state,
            process: &mut process.state,
            host: &mut self.state,
        };
        Some(work(Slice { kernel, counted: 0 }))
    }

    /// Bytes for a live stdin; none mean that it is at its end.
    pub fn supply_input(&mut self, bytes: &[u8]) {
        self.state.files.stdin.supply(bytes);
    }

    /// Instructions executed so far.
    pub fn instructions(&self) -> u64 {
        self.state.instructions
    }

    /// Virtual time since the start, in nanoseconds.
    pub fn clock_ns(&self) -> u64 {
        self.state.clock_ns
    }

    /// What was written to a stream.
    pub fn output(&self, stream: Stream) -> &Output {
        &self.state.outputs[stream as usize]
    }

    /// What the program wanted that is not modelled, each once.
    pub fn warnings(&self) -> &[String] {
        &self.state.warnings
    }

    /// The processes.
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// The thread that runs.
    pub fn thread(&self) -> &Thread {
        &self.processes[self.running.0].tasks[self.running.1].thread
    }

    /// The memory of the process that runs.
    pub fn memory(&self) -> &Memory {
        &self.processes[self.running.0].memory
    }

    /// The call stack of the thread that runs, innermost first.
    pub fn stack(&self) -> Vec<CallSite> {
        let site = |frame: &everett_vm::Frame| CallSite {
            function: frame.function,
            pc: frame.pc,
        };
        self.thread().frames.iter().rev().map(site).collect()
    }

    /// All terms, for marking what is alive.
    pub fn for_each_term(&self, visit: &mut dyn FnMut(ExprId)) {
        for process in &self.processes {
            process.for_each_term(visit);
        }
        self.state.files.for_each_term(visit);
        for output in &self.state.outputs {
            output.for_each_term(visit);
        }
    }
}

/// One thread at work for a while.
pub(crate) struct Slice<'k, 'v> {
    pub(crate) kernel: Kernel<'k, 'v>,
    /// Instructions of the vm that are on the host's clock already.
    counted: u64,
}

impl Slice<'_, '_> {
    fn run(mut self, budget: u64) -> HostExit {
        loop {
            let left = budget.saturating_sub(self.kernel.vm.instructions);
            if left == 0 {
                return HostExit::Budget;
            }
            let exit = self.kernel.vm.run(left);
            self.count();
            let stop = match exit {
                Exit::Budget => return HostExit::Budget,
                Exit::Returned(values) => self.returned(values.first().copied()),
                Exit::Interrupted(Interrupt::SystemCall(call)) => self.system_call(&call),
                Exit::Interrupted(interrupt) => Err(Stop::Interrupt(interrupt)),
            };
            if let Err(stop) = stop
                && let Some(exit) = self.stopped(stop)
            {
                return exit;
            }
        }
    }

    /// Puts what the vm executed on the host's clock.
    fn count(&mut self) {
        let new = self.kernel.vm.instructions - self.counted;
        self.counted += new;
        self.kernel.host.instructions += new;
        self.kernel.host.clock_ns += new;
    }

    fn system_call(&mut self, call: &SystemCall) -> Result<(), Stop> {
        let kernel = &mut self.kernel;
        let number = kernel.vm.concretize(call.number)?;
        let result = match table::row(number) {
            Some(row) => kernel.dispatch(row, call.args),
            None => {
                kernel.host.warn(match numbers::name(number) {
                    Some(name) => format!("system call {name} is not modelled"),
                    None => format!("system call {number} is not modelled"),
                });
                Err(Errno::ENOSYS.into())
            }
        };
        let result = match result {
            Ok(value) => value,
            Err(Stop::Errno(errno)) => Value::concrete(errno.result()),
            Err(stop) => return Err(stop),
        };
        kernel.vm.commit();
        kernel.task.deadline_ns = None;
        kernel.host.clock_ns += SYSTEM_CALL_NS;
        kernel.vm.finish_call(&[result]);
        kernel.deliver_signals()
    }

    /// The outermost frame, or that of a signal handler, returned.
    fn returned(&mut self, value: Option<Value>) -> Result<(), Stop> {
        if self.kernel.vm.thread.frames.is_empty() {
            let status = self.kernel.exit_status(value.unwrap_or(Value::ZERO));
            return Err(Stop::End(Ending::Exit(status)));
        }
        self.kernel.handler_returned()
    }

    /// What the caller must know, or `None` where the thread can go on.
    fn stopped(&mut self, stop: Stop) -> Option<HostExit> {
        let ending = match stop {
            Stop::Interrupt(Interrupt::Suspend) => return Some(HostExit::Suspended),
            Stop::NeedsInput => {
                self.kernel.vm.commit();
                return Some(HostExit::NeedsInput);
            }
            Stop::Interrupt(Interrupt::Bug(bug)) => Ending::Bug(bug),
            Stop::Interrupt(Interrupt::EndPath) => Ending::EndPath,
            Stop::Interrupt(Interrupt::SystemCall(_)) | Stop::Errno(_) => {
                let message = "a system call was made where none can be";
                Ending::Bug(Box::new(Bug::new(BugKind::Unsupported, message)))
            }
            Stop::End(ending) => ending,
            // It is the only thread: time jumps to where it goes on.
            Stop::Block(Some(deadline), _) => {
                self.kernel.vm.commit();
                self.kernel.task.deadline_ns = Some(deadline);
                let clock = &mut self.kernel.host.clock_ns;
                *clock = deadline.max(*clock);
                return None;
            }
            Stop::Block(None, what) => {
                let message = format!("the only thread waits for ever ({what})");
                Ending::Bug(Box::new(Bug::new(BugKind::Deadlock, message)))
            }
        };
        Some(HostExit::Ended(ending))
    }
}
