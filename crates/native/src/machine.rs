//! A native machine: a host whose processes are native. It schedules threads as the model decides,
//! runs them to their next system call, and applies the model's decisions to the real processes.

mod accesses;
mod loading;
mod points;
mod tasks;
mod watching;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use everett_engine::Trace;
use everett_expr::Arena;
use everett_ir::code::Program;
use everett_linux::{
    CallOutcome, ChangedFile, Host, HostConfig, HostExit, Packet, Refusal, Stream, TaskName,
};
use everett_vm::{
    Buffer, BugKind, Coverage, ExecContext, Image, ImageId, Interrupt, Replaced, StackTable,
    VmOptions,
};
use nix::unistd::Pid;

use crate::accesses::{AccessPoints, RandomSchedule, Survey};
use crate::activity::Activity;
use crate::allocations::{Allocator, AllocatorCall, Heap};
use crate::arithmetic::Arithmetic;
use crate::call_numbers;
use crate::call_stack::{CallOrigin, NativeStack};
use crate::channel::Channel;
use crate::error::NativeError;
use crate::events::{Event, EventKind, EventLog};
use crate::failing::{FailingCall, FailingFunctions};
use crate::instructions::emulate;
use crate::jumps::Jumps;
use crate::known::KnownPrograms;
use crate::line_coverage::{LineCoverage, SourceLine};
use crate::memory_account::MemoryAccount;
use crate::operands::HeldWrite;
use crate::oracle::{IsAt, NativeOracle, Source};
use crate::panics::Panics;
use crate::points::Script;
use crate::races::Races;
use crate::replacements::Replacements;
use crate::sandbox::Pinned;
use crate::shared_files::SharedFiles;
use crate::shared_memory::SharedMemory;
use crate::tracee::{Call, Stopped, Tracee};
use crate::watch::{NoWatcher, Watcher};
use crate::watchdog::{PATIENCE, Watchdog};
use points::{Progress, Reached};

/// Configuration of a native run.
#[derive(Clone)]
pub struct NativeConfig {
    /// Configuration of the host.
    pub host: HostConfig,
    /// The native programs, by image number.
    pub programs: Vec<PathBuf>,
    /// Maximum number of system calls; a run with more is a hang.
    pub max_calls: u64,
    /// Maximum number of stretches of 50 ms without a system call; a run with more is a hang.
    pub max_long_computations: u32,
    /// Maximum resident memory of all processes and of the model's data for them.
    pub max_memory: u64,
    /// Whether Everett's own memory counts as a whole, instead of its growth since the start of the
    /// run.
    pub counts_own_memory: bool,
    /// Returns whether the time of the run is over.
    pub deadline: Option<Deadline>,
    /// Facts about the programs from their files.
    pub known: KnownPrograms,
    /// Whether all events are kept, not only their digest.
    pub keeps_events: bool,
    /// Whether the files that the run leaves behind are kept.
    pub keeps_files: bool,
    /// Preemptions between system calls that are replayed.
    pub script: Option<Script>,
    /// Whether panics of Rust programs are findings even without a trace that ends with one.
    pub finds_panics: bool,
    /// If set, threads are preempted at memory accesses, at random.
    pub random_schedule: Option<RandomSchedule>,
    /// When reproducing a data race: the number of threads that pass one of the accesses before one
    /// is held there.
    pub race_skips: u32,
    /// Functions that are not executed, by image number.
    pub replaced: Vec<Vec<Replaced>>,
    /// Count the source lines that are executed.
    pub counts_lines: bool,
    /// Returns whether a call comes from the call site of a planned fault.
    pub is_at: Option<IsAt>,
    /// Whether the stacks and arguments of all calls that can fail are kept.
    pub keeps_callers: bool,
}

/// A function that returns whether the time of a run is over: this crate has no clock.
pub type Deadline = Arc<dyn Fn() -> bool + Send + Sync>;

/// How a native run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NativeEnd {
    /// The first process exited with this status.
    Exit(i32),
    /// A signal killed the first process.
    Signal {
        /// The signal.
        signal: i32,
        /// The program and the address in it, if real code faulted.
        place: Option<(PathBuf, u64)>,
    },
    /// The model reported a finding.
    Finding {
        /// Kind of the bug.
        kind: String,
        /// Description for people.
        message: String,
    },
    /// All threads wait for external events.
    Idle,
    /// A limit on system calls or computation was exceeded.
    Hang,
    /// A limit on the resources of the machine was reached.
    Limit(NativeLimit),
    /// The run diverged from its trace.
    Diverged(String),
    /// The watcher stopped the run.
    Stopped,
    /// The host was switched off for good.
    Off,
}

/// A limit on the resources of the machine that a native run may use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NativeLimit {
    /// The run uses more memory than this number of bytes.
    Memory(u64),
    /// The run takes longer than it may.
    Time,
    /// The files of the run are full; names the limit.
    Files(String),
}

impl NativeLimit {
    /// Returns a description without the option that changes the limit: that depends on whose limit
    /// it is.
    pub fn what(&self) -> String {
        match self {
            NativeLimit::Memory(most) => format!("uses more memory than {} MiB", most >> 20),
            NativeLimit::Time => "takes longer than it may".to_owned(),
            NativeLimit::Files(message) => {
                let end = message.find("; see").unwrap_or(message.len());
                message[..end].to_owned()
            }
        }
    }
}

impl std::fmt::Display for NativeLimit {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NativeLimit::Memory(_) => write!(to, "{}; see `max_memory`", self.what()),
            NativeLimit::Time => write!(to, "{}; see `max_time`", self.what()),
            NativeLimit::Files(message) => to.write_str(message),
        }
    }
}

/// Result of a native run.
pub struct NativeRun {
    /// How the run ended.
    pub end: NativeEnd,
    /// How each process that the host booted with ended; `None` if it is still running.
    pub processes: Vec<Option<NativeEnd>>,
    /// Bytes written to standard output and standard error.
    pub output: [Vec<u8>; 2],
    /// Files that the run changed, with their contents, if they are kept.
    pub files: Vec<(ChangedFile, Vec<u8>)>,
    /// The call stack of real code that ended the run, if any.
    pub stack: NativeStack,
    /// Whether the run ended by a crash or a finding of a process other than those that the host
    /// booted with, which may continue as if nothing had happened.
    pub is_of_child: bool,
    /// The calls and allocations that planned faults hit, in order.
    pub injected: Vec<CallOrigin>,
    /// The calls of choices about failures of calls, by the number of the choice, if they are
    /// kept.
    pub asked_from: BTreeMap<usize, CallOrigin>,
    /// The source lines that were executed, if they are counted.
    pub lines: BTreeSet<SourceLine>,
    /// Descriptions of injected failures of calls and allocations, in the model's words.
    pub failures: BTreeSet<String>,
    /// Virtual time at the end.
    pub clock_ns: u64,
    /// Number of system calls answered.
    pub calls: u64,
    /// Number of mappings and statuses of real processes that were read: the part of the work that
    /// does not depend on calls alone.
    pub proc_reads: u64,
    /// Warnings of the model.
    pub warnings: Vec<String>,
    /// Limits of Everett that the run reached, by the names of their options. The program continued
    /// differently than on a real machine, or was ended.
    pub limits_hit: BTreeSet<&'static str>,
    /// Operations that the model refused or ignored although Linux would do them.
    pub refusals: Vec<Refusal>,
    /// The log of system calls, if enabled.
    pub log: Vec<String>,
    /// The choices made and inputs supplied, in order.
    pub trace: Trace,
    /// The observations about accesses of threads, if the run was a survey.
    pub survey: Option<Survey>,
    /// The log of packets, if enabled.
    pub packets: Vec<SentPacket>,
    /// Digest of all events: different runs have different digests.
    pub digest: u64,
    /// All events, if they are kept.
    pub events: Vec<Event>,
}

/// A packet with its bytes under the inputs of the run.
pub type SentPacket = (Packet, Vec<u8>);

/// The signals of faults: SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV.
const FAULTS: &[i32] = &[4, 5, 7, 8, 11];

/// A native thread, and the call at which it is stopped.
pub(crate) struct NativeThread {
    pub tracee: Tracee,
    image: ImageId,
    /// The system call that the thread is about to make.
    pending: Option<Call>,
    /// The current call of the thread into the allocator.
    pub(crate) allocator_call: Option<AllocatorCall>,
    /// The current call of a function that fails when it returns.
    failing_call: Option<FailingCall>,
    /// While the program is being loaded: the entry point, and the byte that the breakpoint there
    /// replaces.
    loading: Option<(u64, u8)>,
    /// The pending write of an instruction that reads and writes, if the thread was preempted
    /// between the two.
    held_write: Option<HeldWrite>,
    /// The address of that instruction.
    halfway_at: Option<u64>,
    /// The address of the access before which the thread was preempted.
    preempted_at: Option<u64>,
    /// Whether the thread has set up thread-local storage, which is the first action of a libc.
    pub(crate) has_initialised_tls: bool,
}

/// Runs native programs under the model.
pub fn run(config: &NativeConfig, source: Source) -> Result<NativeRun, NativeError> {
    run_watched(config, source, &mut NoWatcher)
}

/// Runs native programs under the model, with a watcher.
pub fn run_watched(
    config: &NativeConfig,
    source: Source,
    watcher: &mut dyn Watcher,
) -> Result<NativeRun, NativeError> {
    let _pinned = Pinned::here();
    let mut machine = NativeMachine::start(config, source, watcher)?;
    let end = machine.run(config.max_calls);
    machine.show_output();
    machine.show_stopped();
    machine.kill_all();
    machine.finish_run(end?)
}

pub(crate) struct NativeMachine<'c> {
    config: &'c NativeConfig,
    pub host: Host,
    images: Vec<Image>,
    pub arena: Arena,
    pub oracle: NativeOracle,
    stacks: StackTable,
    coverage: Coverage,
    options: VmOptions,
    pub threads: BTreeMap<TaskName, NativeThread>,
    /// Main threads that have exited while their process continues, by pid.
    parked: BTreeMap<u32, Tracee>,
    /// The allocators of the programs, if they are watched.
    allocators: Vec<Allocator>,
    /// Heap blocks of the processes, if allocators are watched.
    heaps: BTreeMap<u32, Heap>,
    watchdog: Watchdog,
    /// The memory of this host's processes and of those of other hosts.
    account: MemoryAccount,
    /// The CPU time of the processes when their memory was last recorded.
    memory_noted_at: Duration,
    pub(crate) calls: u64,
    /// Number of the last system call.
    last_call: u64,
    /// Total size of memory that the processes have requested.
    asked: u64,
    /// The part of it that is only reserved.
    reserved: u64,
    /// Upper bound of the memory that a process shares with others.
    shared_bound: u64,
    /// Everett's own resident memory that does not count.
    own_memory: u64,
    /// Total allocations of the model at the last memory check.
    made_when_checked: Cell<u64>,
    /// Everett's own memory that counts, at the last memory check.
    own_when_checked: Cell<u64>,
    /// Number of bytes of standard output and standard error that the watcher has seen.
    shown: [u64; 2],
    /// The thread whose last call was about memory, for which no time passes.
    computing: Option<TaskName>,
    /// Number of times that a thread was interrupted because it computed for long.
    long_computations: u32,
    watcher: &'c mut dyn Watcher,
    /// Number of events that the watcher has seen.
    reported: usize,
    events: EventLog,
    /// The call stack of real code that ended the run.
    stack: NativeStack,
    /// The calls that planned faults hit.
    injected: Vec<CallOrigin>,
    /// Number of points of the script that were passed.
    points_passed: usize,
    /// The progress of the running thread towards the next point.
    progress: Progress,
    /// Accesses at which threads are preempted by a random schedule or by a trace of one.
    access_points: AccessPoints,
    /// Number of restarts of the host.
    restarts: u32,
    /// Watched arithmetic, in the first program.
    arithmetic: Arithmetic,
    /// Watched jumps, in the first program.
    jumps: Jumps,
    panics: Panics,
    /// Functions that are not executed.
    replacements: Replacements,
    failing: FailingFunctions,
    /// Lines that are covered, if they are counted.
    line_coverage: LineCoverage,
    /// Watched racing accesses, in the first program.
    races: Races,
    /// Passes files into processes.
    pub(crate) channel: Channel,
    /// Files of the model that processes map.
    pub(crate) shared_files: SharedFiles,
    /// Memory that processes share.
    shared_memory: SharedMemory,
    /// The processes that have run.
    activity: Activity,
    /// The memory of each real process, without what it shares, when it was last measured.
    measured: RefCell<BTreeMap<Pid, u64>>,
    /// Number of reads in `/proc` before the run.
    proc_reads_before: u64,
}

/// The result of running a host.
pub(crate) enum Advance {
    /// The host ran to its end.
    Ended(NativeEnd),
    /// The host ran to an event that the driver must handle.
    Paused(HostExit),
}

/// Whether a thread goes on, or another one may run, or how the run ends.
type Flow = ControlFlow<Option<NativeEnd>>;

fn goes_on_unless(end: Option<NativeEnd>) -> Flow {
    match end {
        Some(end) => Flow::Break(Some(end)),
        None => Flow::Continue(()),
    }
}

/// The execution context of the model; a macro, because it borrows field by field.
macro_rules! around {
    ($machine:expr) => {
        ExecContext {
            images: &$machine.images,
            arena: &mut $machine.arena,
            oracle: &mut $machine.oracle,
            stacks: &mut $machine.stacks,
            coverage: &mut $machine.coverage,
            options: &$machine.options,
        }
    };
}

mod answers;
mod breakpoints;
mod mappings;
mod signals;
mod start;

use breakpoints::AtAllocator;

impl<'c> NativeMachine<'c> {
    fn run(&mut self, max_calls: u64) -> Result<NativeEnd, NativeError> {
        Ok(match self.advance(max_calls)? {
            Advance::Ended(end) => end,
            Advance::Paused(exit) => self.ended(exit),
        })
    }

    /// Runs until the host ends or the driver must act.
    pub(crate) fn advance(&mut self, max_calls: u64) -> Result<Advance, NativeError> {
        loop {
            if let Some(exit) = self.host.interruption() {
                return Ok(Advance::Paused(exit));
            }
            let due = self.host.needs_scheduling();
            if let Some(exit) = self.host.choose_thread(&mut around!(self)) {
                if self.races.release() {
                    self.host.hold(None);
                    continue;
                }
                if matches!(exit, HostExit::NeedsInput)
                    && let Some(bytes) = self.watcher.input()
                {
                    self.host.supply_input(&bytes);
                    continue;
                }
                return Ok(match exit {
                    HostExit::Waits(_) => Advance::Paused(exit),
                    exit => Advance::Ended(self.ended(exit)),
                });
            }
            if due {
                self.events
                    .note(EventKind::Picked, self.host.running(), &[]);
            }
            if self.oracle.diverged.is_some() {
                return Ok(Advance::Ended(NativeEnd::Idle));
            }
            if self.calls > max_calls {
                return Ok(Advance::Ended(NativeEnd::Hang));
            }
            self.show_output();
            if !self.report_events() {
                return Ok(Advance::Ended(NativeEnd::Stopped));
            }
            let name = self.host.running();
            if let Some(end) = self.check_mapped_files() {
                return Ok(Advance::Ended(end));
            }
            self.sync_files()?;
            self.note_origin(name, None)?;
            let Some(native) = self.threads.get_mut(&name) else {
                let message = format!("thread {} of the model has no native thread", name.tid);
                return Err(NativeError::NotReplayable(message));
            };
            let served = self
                .host
                .resume_thread(&mut around!(self), &mut native.tracee);
            self.note_injected(name, None)?;
            self.sync_files()?;
            if let Some(end) = self.apply_outcome(name, served)? {
                return Ok(Advance::Ended(end));
            }
            // The completed wait may have moved the clock to the horizon.
            if self.is_still_running(name)
                && self.host.interruption().is_none()
                && let Some(end) = self.step(name)?
            {
                return Ok(Advance::Ended(end));
            }
        }
    }

    /// Returns whether the thread exists and needs no new scheduling decision.
    fn is_still_running(&self, name: TaskName) -> bool {
        self.threads.contains_key(&name)
            && !self.host.needs_scheduling()
            && self.host.running() == name
    }

    /// Runs a thread to its next system call, unless it is already stopped at one, and answers the
    /// call.
    fn step(&mut self, name: TaskName) -> Result<Option<NativeEnd>, NativeError> {
        loop {
            let Some(native) = self.threads.get_mut(&name) else {
                return Ok(None);
            };
            if let Some(held) = native.held_write.take() {
                held.complete(&mut native.tracee);
            }
            if native.pending.is_some() {
                break;
            }
            if let ControlFlow::Break(end) = self.run_to_stop(name)? {
                return Ok(end);
            }
        }
        let call = self.threads.get(&name).and_then(|native| native.pending);
        if let Some(call) = call
            && !self.is_loading(name)
            && !self.pass_points_before_call(name, call.number)
        {
            return Ok(None);
        }
        self.answer(name)
    }

    /// Runs a thread until it stops, and handles the stop. Breaks if another thread may run now, or
    /// if the run ends.
    fn run_to_stop(&mut self, name: TaskName) -> Result<Flow, NativeError> {
        self.update_access_points(name);
        if !self.threads.contains_key(&name) || !self.pass_points(name, false) {
            return Ok(Flow::Break(None));
        }
        let mut stopped = match self.reach_point(name)? {
            Some(Reached::Point) => {
                self.host.reach_preemption_point();
                return Ok(Flow::Break(None));
            }
            Some(Reached::Stopped(stopped)) => stopped,
            None => {
                let Some(native) = self.threads.get_mut(&name) else {
                    return Ok(Flow::Break(None));
                };
                let (process, thread) = (native.tracee.process, native.tracee.thread);
                let continues = self.computing.take() == Some(name);
                self.watchdog
                    .watch(process.as_raw(), thread.as_raw(), continues);
                let stopped = native.tracee.run(None);
                self.watchdog.stop_watching();
                stopped?
            }
        };
        if stopped == Stopped::Signal(libc::SIGTRAP) && self.finish_loading(name)? {
            return Ok(Flow::Continue(()));
        }
        if matches!(stopped, Stopped::Signal(libc::SIGTRAP | libc::SIGSEGV)) {
            match self.at_allocator(name)? {
                AtAllocator::Not => {}
                AtAllocator::GoesOn => return Ok(Flow::Continue(())),
                AtAllocator::Stopped(again) => stopped = again,
                AtAllocator::Waits => return Ok(Flow::Break(None)),
                AtAllocator::Ends(end) => return Ok(Flow::Break(Some(end))),
            }
        }
        self.handle_stop(name, stopped)
    }

    /// Handles the stop of a thread at something else than a breakpoint.
    fn handle_stop(&mut self, name: TaskName, stopped: Stopped) -> Result<Flow, NativeError> {
        let is_the_end = matches!(stopped, Stopped::Signal(by) if self.expects_fault(by));
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(Flow::Break(None));
        };
        match stopped {
            Stopped::Signal(libc::SIGSTOP) if self.watchdog.has_seen_much_memory() => {
                return Ok(goes_on_unless(self.check_limits()));
            }
            // Only the watchdog stops threads; stop signals of the
            // program are handled by the model.
            Stopped::Signal(libc::SIGSTOP) if !self.watchdog.has_interrupted() => {}
            Stopped::Signal(libc::SIGSTOP) => return Ok(Flow::Break(self.end_time_slice(name))),
            Stopped::Call => {
                let call = native.tracee.current_call()?;
                native.pending = Some(call);
                self.count_call_event(name, call.number);
            }
            Stopped::Signal(libc::SIGSYS) => native.pending = native.tracee.trapped_vsyscall()?,
            // Real signals that no instruction of the thread has caused do not concern the
            // program.
            Stopped::Signal(number) if !FAULTS.contains(&number) => {}
            Stopped::Signal(number) => {
                if emulate(&mut native.tracee, number, self.host.clock_ns())? {
                    self.calls += 1;
                    if self.calls > self.config.max_calls {
                        return Ok(Flow::Break(Some(NativeEnd::Hang)));
                    }
                    return Ok(goes_on_unless(self.check_limits_periodically()));
                }
                if is_the_end || !self.run_fault_handler(name, number)? {
                    return Ok(Flow::Break(self.crashed(name, number)?));
                }
            }
            Stopped::Gone => {
                let message = "a native thread exited by itself".to_owned();
                return Err(NativeError::NotReplayable(message));
            }
            Stopped::Created(_) | Stopped::Executed => {}
        }
        Ok(Flow::Continue(()))
    }

    /// Ends the time slice of a thread that the watchdog has interrupted.
    fn end_time_slice(&mut self, name: TaskName) -> Option<NativeEnd> {
        self.long_computations += 1;
        if self.long_computations > self.config.max_long_computations {
            return Some(NativeEnd::Hang);
        }
        if let Some(end) = self.check_limits() {
            return Some(end);
        }
        self.events.note(EventKind::Computes, name, &[]);
        self.lower_priority(name);
        self.host.end_time_slice(PATIENCE.as_nanos() as u64);
        None
    }

    /// Applies a decision of the model to the real processes.
    fn apply_outcome(
        &mut self,
        name: TaskName,
        served: CallOutcome,
    ) -> Result<Option<NativeEnd>, NativeError> {
        match served {
            CallOutcome::Continue(signals) => return self.inject(name, &signals),
            CallOutcome::Done(result, signals) => {
                self.finish(name, result)?;
                return self.inject(name, &signals);
            }
            CallOutcome::Restart(signals) => {
                if signals.is_empty() {
                    return self.answer(name);
                }
                return self.inject(name, &signals);
            }
            CallOutcome::Blocked | CallOutcome::Exited => self.update_tasks(name)?,
            CallOutcome::Exec(execution) => self.execute(name, &execution)?,
            CallOutcome::Exit(exit) => return Ok(Some(self.ended(exit))),
        }
        Ok(None)
    }

    /// Completes the system call at which a thread is stopped. Creates the real tasks of those that
    /// it created in the model.
    fn finish(&mut self, name: TaskName, result: u64) -> Result<(), NativeError> {
        self.update_tasks(name)?;
        if let Some(native) = self.threads.get_mut(&name)
            && native.pending.take().is_some()
        {
            native.tracee.answer(result)?;
            self.events.note(EventKind::Result, name, &[result]);
        }
        Ok(())
    }
}
