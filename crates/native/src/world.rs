//! A host whose processes are native: picks threads as the model says, lets them run to their next system call, and
//! carries out on the real processes what the model decides.

mod births;
mod loading;
mod looking;
mod points;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use everett_engine::Trace;
use everett_expr::Arena;
use everett_ir::code::Program;
use everett_linux::{Errno, Host, HostConfig, HostExit, Packet, Served, Stream, TaskName};
use everett_vm::{
    Buffer, BugKind, Coverage, ExecContext, Image, ImageId, Interrupt, StackTable, SystemCall,
    Value, VmOptions,
};

use crate::allocations::{Allocator, Heap, Inside};
use crate::arithmetic::Arithmetic;
use crate::channel::Channel;
use crate::events::{Event, EventLog, Kind};
use crate::instructions::emulate;
use crate::jumps::Jumps;
use crate::oracle::{NativeOracle, Source};
use crate::place::NativeStack;
use crate::points::{Script, ScriptFinder};
use crate::races::Races;
use crate::sandbox::Pinned;
use crate::shared_files::SharedFiles;
use crate::tracee::{Stopped, Tracee};
use crate::watch::{Nobody, Watcher};
use crate::watchdog::Watchdog;
use points::Reached;

/// A native run could not be made.
#[derive(Debug, thiserror::Error)]
pub enum NativeError {
    /// The real machine refused something.
    #[error("the native program cannot be run: {0}")]
    Machine(#[from] std::io::Error),
    /// The host could not be started.
    #[error("the host cannot be started: {0}")]
    Boot(String),
    /// The program wants what cannot be done with a real process yet.
    #[error("{0}")]
    NotReplayable(String),
}

/// What a native run is told.
#[derive(Clone)]
pub struct NativeConfig {
    /// The host.
    pub host: HostConfig,
    /// The native programs, by number.
    pub programs: Vec<PathBuf>,
    /// Most system calls; a run with more is a hang.
    pub max_calls: u64,
    /// Most stretches of 50 ms without a system call; a run with more is a hang.
    pub max_long_computations: u32,
    /// The allocators of the programs, once they are known.
    pub known_allocators: OnceLock<Vec<Allocator>>,
    /// Keep all events.
    pub keeps_events: bool,
    /// Where threads take turns between system calls.
    pub script: Option<Script>,
    /// How that is found out for a trace.
    pub finder: Option<ScriptFinder>,
    /// Where a race is looked for: how many threads come to one of the accesses before one is held there.
    pub spared: u32,
}

/// How a native run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NativeEnd {
    /// The first process exited with this status.
    Exit(i32),
    /// A signal ended it: which, and where the program was.
    Signal {
        /// The signal.
        signal: i32,
        /// The program and the address in it, where real code faulted.
        place: Option<(PathBuf, u64)>,
    },
    /// The model found something: its kind and what it says.
    Finding {
        /// Kind.
        kind: String,
        /// For people.
        message: String,
    },
    /// All threads wait for what only the outside could send.
    Idle,
    /// Over the limit of system calls.
    Hang,
    /// The run parted from its trace.
    Diverged(String),
    /// Whoever watched it stopped it.
    Stopped,
    /// Its host was switched off for good.
    Off,
}

/// What came out of a native run.
pub struct NativeRun {
    /// How it ended.
    pub end: NativeEnd,
    /// How the processes that the host was started with have ended, those that have.
    pub processes: Vec<Option<NativeEnd>>,
    /// What was written to standard output and standard error.
    pub output: [Vec<u8>; 2],
    /// Where real code was at its end, if it did not end itself.
    pub stack: NativeStack,
    /// The time of its clock at the end.
    pub clock_ns: u64,
    /// System calls that were answered.
    pub calls: u64,
    /// The log of system calls, where the host keeps one.
    pub log: Vec<String>,
    /// What was chosen and which inputs were given, in order.
    pub trace: Trace,
    /// The log of packets, where the host keeps one.
    pub packets: Vec<SentPacket>,
    /// A number that differs where anything that happened differs.
    pub digest: u64,
    /// Everything that happened, where it is kept.
    pub events: Vec<Event>,
}

/// A packet, and its bytes under the inputs of the run.
pub type SentPacket = (Packet, Vec<u8>);

/// SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV.
const FAULTS: &[i32] = &[4, 5, 7, 8, 11];

/// A thread and the call at which it stands.
pub(crate) struct Native {
    pub tracee: Tracee,
    image: ImageId,
    /// The system call that it wants.
    pending: Option<Call>,
    /// The call of the allocator that it is in.
    pub(crate) inside: Option<Inside>,
    /// The program is being loaded: where it begins, and the byte that the breakpoint there stands for.
    loading: Option<(u64, u8)>,
    /// It has set up its own thread, which is the first thing that a libc does.
    pub(crate) has_begun: bool,
}

/// A system call that a thread wants.
#[derive(Copy, Clone)]
pub(crate) struct Call {
    pub number: u64,
    pub args: [u64; 6],
    /// It is made in the way of 32-bit programs; its number means something else.
    pub is_foreign: bool,
}

pub(crate) mod number;

/// Runs native programs under the model.
pub fn run(config: &NativeConfig, source: Source) -> Result<NativeRun, NativeError> {
    run_watched(config, source, &mut Nobody)
}

/// The same while somebody looks.
pub fn run_watched(
    config: &NativeConfig,
    source: Source,
    watcher: &mut dyn Watcher,
) -> Result<NativeRun, NativeError> {
    let _pinned = Pinned::here();
    let mut world = World::start(config, source, watcher)?;
    let end = world.run(config.max_calls);
    world.stand();
    world.kill_all();
    world.finish_run(end?)
}

pub(crate) struct World<'c> {
    config: &'c NativeConfig,
    pub host: Host,
    images: Vec<Image>,
    pub arena: Arena,
    pub oracle: NativeOracle,
    stacks: StackTable,
    coverage: Coverage,
    options: VmOptions,
    pub threads: BTreeMap<TaskName, Native>,
    /// First threads of processes that go on without them, by process.
    parked: BTreeMap<u32, Tracee>,
    /// The allocators of the programs, where they are watched.
    allocators: Vec<Allocator>,
    /// Memory of the processes, where allocators are watched.
    heaps: BTreeMap<u32, Heap>,
    watchdog: Watchdog,
    pub(crate) calls: u64,
    /// The number of the last one.
    last_call: u64,
    /// Bytes of memory that its processes have asked for in all.
    asked: u64,
    /// Times that a thread was stopped because it computed for long.
    long_computations: u32,
    watcher: &'c mut dyn Watcher,
    /// Events that it knows.
    told: usize,
    events: EventLog,
    /// Where real code was when it ended the run.
    stack: NativeStack,
    /// Points of the script that are behind us.
    points_passed: usize,
    /// How often the host was started before.
    restarts: u32,
    /// Arithmetic that is looked at, in the first program.
    arithmetic: Arithmetic,
    /// Jumps that are looked at, in the first program.
    jumps: Jumps,
    /// Accesses that race, in the first program.
    races: Races,
    /// How files come into processes.
    pub(crate) channel: Channel,
    /// Files that processes map.
    pub(crate) shared_files: SharedFiles,
}

/// How far a host has come.
pub(crate) enum Advance {
    /// To its end.
    Ended(NativeEnd),
    /// To where others have to know something.
    Paused(HostExit),
}

/// What the model needs around it; a macro because it borrows field by field.
macro_rules! around {
    ($world:expr) => {
        ExecContext {
            images: &$world.images,
            arena: &mut $world.arena,
            oracle: &mut $world.oracle,
            stacks: &mut $world.stacks,
            coverage: &mut $world.coverage,
            options: &$world.options,
        }
    };
}

mod mappings;
mod memory;
mod signals;
mod start;

use memory::AtAllocator;

impl<'c> World<'c> {
    fn run(&mut self, max_calls: u64) -> Result<NativeEnd, NativeError> {
        Ok(match self.advance(max_calls)? {
            Advance::Ended(end) => end,
            Advance::Paused(exit) => self.ended(exit),
        })
    }

    /// Runs until the host is at its end, or until others have to know something.
    pub(crate) fn advance(&mut self, max_calls: u64) -> Result<Advance, NativeError> {
        loop {
            if let Some(exit) = self.host.interruption() {
                return Ok(Advance::Paused(exit));
            }
            let due = self.host.must_choose();
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
                self.events.note(Kind::Picked, self.host.running(), &[]);
            }
            if self.oracle.diverged.is_some() {
                return Ok(Advance::Ended(NativeEnd::Idle));
            }
            if self.calls > max_calls {
                return Ok(Advance::Ended(NativeEnd::Hang));
            }
            if !self.tell() {
                return Ok(Advance::Ended(NativeEnd::Stopped));
            }
            let name = self.host.running();
            self.sync_files()?;
            let Some(native) = self.threads.get_mut(&name) else {
                let message = format!("thread {} of the model has no native thread", name.tid);
                return Err(NativeError::NotReplayable(message));
            };
            let served = self
                .host
                .resume_thread(&mut around!(self), &mut native.tracee);
            self.sync_files()?;
            if let Some(end) = self.carry_out(name, served)? {
                return Ok(Advance::Ended(end));
            }
            // The call that it waited for may have brought it to its horizon.
            if self.is_still_running(name)
                && self.host.interruption().is_none()
                && let Some(end) = self.step(name)?
            {
                return Ok(Advance::Ended(end));
            }
        }
    }

    /// The thread is there and nobody else has to be picked.
    fn is_still_running(&self, name: TaskName) -> bool {
        self.threads.contains_key(&name) && !self.host.must_choose() && self.host.running() == name
    }

    /// Lets a thread go to its next system call, if it does not stand at one, and answers it.
    fn step(&mut self, name: TaskName) -> Result<Option<NativeEnd>, NativeError> {
        loop {
            let Some(native) = self.threads.get_mut(&name) else {
                return Ok(None);
            };
            if native.pending.is_some() {
                break;
            }
            let (process, thread) = (native.tracee.process, native.tracee.thread);
            if !self.pass_points(name, false) {
                return Ok(None);
            }
            let mut stopped = match self.reach_point(name)? {
                Some(Reached::Point) => {
                    self.host.comes_to_point();
                    return Ok(None);
                }
                Some(Reached::Stopped(stopped)) => stopped,
                None => {
                    let Some(native) = self.threads.get_mut(&name) else {
                        return Ok(None);
                    };
                    self.watchdog.watch(process.as_raw(), thread.as_raw());
                    let stopped = native.tracee.run(None);
                    self.watchdog.rest();
                    stopped?
                }
            };
            if stopped == Stopped::Signal(libc::SIGTRAP) && self.has_loaded(name)? {
                continue;
            }
            if matches!(stopped, Stopped::Signal(libc::SIGTRAP | libc::SIGSEGV)) {
                match self.at_allocator(name)? {
                    AtAllocator::Not => {}
                    AtAllocator::GoesOn => continue,
                    AtAllocator::Stopped(again) => stopped = again,
                    AtAllocator::Waits => return Ok(None),
                    AtAllocator::Ends(end) => return Ok(Some(end)),
                }
            }
            let is_the_end = matches!(stopped, Stopped::Signal(by) if self.expects_fault(by));
            let Some(native) = self.threads.get_mut(&name) else {
                return Ok(None);
            };
            match stopped {
                // Nobody else stops a thread: a stop of the program itself is the model's affair.
                Stopped::Signal(libc::SIGSTOP) if !self.watchdog.has_stopped_it() => {}
                Stopped::Signal(libc::SIGSTOP) => {
                    self.long_computations += 1;
                    if self.long_computations > self.config.max_long_computations {
                        return Ok(Some(NativeEnd::Hang));
                    }
                    self.check_memory()?;
                    self.events.note(Kind::Computes, name, &[]);
                    self.host.time_goes_by();
                    return Ok(None);
                }
                Stopped::Call => native.pending = Some(native.tracee.wanted()?),
                Stopped::Signal(libc::SIGSYS) => native.pending = native.tracee.trapped()?,
                // Real signals that are not about what the thread executes are none of the program's.
                Stopped::Signal(number) if !FAULTS.contains(&number) => {}
                Stopped::Signal(number) => {
                    if emulate(&mut native.tracee, number, self.host.clock_ns())? {
                        self.calls += 1;
                        if self.calls > self.config.max_calls {
                            return Ok(Some(NativeEnd::Hang));
                        }
                        continue;
                    }
                    if !is_the_end && self.handles_fault(name, number)? {
                        continue;
                    }
                    return self.crashed(name, number);
                }
                Stopped::Gone => {
                    let message = "a native thread ended by itself".to_owned();
                    return Err(NativeError::NotReplayable(message));
                }
                Stopped::Born(_) | Stopped::Executed => {}
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

    /// Answers the system call at which a thread stands.
    fn answer(&mut self, name: TaskName) -> Result<Option<NativeEnd>, NativeError> {
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(None);
        };
        let Some(call) = native.pending else {
            return Ok(None);
        };
        self.calls += 1;
        self.last_call = call.number;
        self.check_memory_at_times()?;
        self.sync_files()?;
        if matches!(call.number, number::EXIT | number::EXIT_GROUP) {
            self.expect_loaded(name)?;
            let next = self.host.log().len() + 1;
            if !self.tell() || !self.watcher.leaves(next) {
                return Ok(Some(NativeEnd::Stopped));
            }
            if self.oracle.expects(BugKind::Leak)
                && let Some(end) = self.find_leaks(name)?
            {
                return Ok(Some(end));
            }
        }
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(None);
        };
        let [a, b, c, d, e, f] = call.args;
        self.events
            .note(Kind::Call, name, &[call.number, a, b, c, d, e, f]);
        if call.is_foreign {
            let result = Errno::ENOSYS.result();
            return self.carry_out(name, Served::Done(result, Vec::new()));
        }
        match call.number {
            number::RT_SIGRETURN => {
                native.tracee.leave_handler(call)?;
                native.pending = None;
                let served = self
                    .host
                    .handler_has_returned(&mut around!(self), &mut native.tracee);
                return self.carry_out(name, served);
            }
            number::MMAP
            | number::MUNMAP
            | number::MPROTECT
            | number::BRK
            | number::MREMAP
            | number::MINCORE
            | number::MADVISE
            | number::ARCH_PRCTL => {
                let served = self.memory_call(name, call)?;
                return self.carry_out(name, served);
            }
            number::OWN_REPORT => return self.reported(name, call),
            number::OWN_INPUT => {
                self.give_input(name, call);
                return self.carry_out(name, Served::Done(0, Vec::new()));
            }
            _ => {}
        }
        let wanted = SystemCall {
            number: Value::concrete(call.number),
            args: call.args.map(Value::concrete),
            entry: None,
            jump: None,
        };
        let (around, tracee) = (&mut around!(self), &mut native.tracee);
        let served = match native.loading {
            Some(_) => self.host.serve_aside(around, tracee, &wanted),
            None => self.host.serve(around, tracee, &wanted),
        };
        if native.tracee.violation.is_some() {
            return self.violated(name);
        }
        self.change_as_told(name)?;
        self.sync_files()?;
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(None);
        };
        if matches!(call.number, number::RT_SIGACTION | number::SIGALTSTACK)
            && matches!(served, Served::Done(0, _))
        {
            // Handlers are run by the real kernel, which has to know them.
            native.tracee.aside(call.number, call.args)?;
        }
        self.carry_out(name, served)
    }

    /// Carries out on the real processes what the model decided.
    fn carry_out(
        &mut self,
        name: TaskName,
        served: Served,
    ) -> Result<Option<NativeEnd>, NativeError> {
        match served {
            Served::Goes(signals) => self.inject(name, &signals)?,
            Served::Done(result, signals) => {
                self.finish(name, result)?;
                self.inject(name, &signals)?;
            }
            Served::Again(signals) => {
                if signals.is_empty() {
                    return self.answer(name);
                }
                self.inject(name, &signals)?;
            }
            Served::Waits | Served::Off => self.settle(name)?,
            Served::Executes(execution) => self.execute(name, &execution)?,
            Served::Exit(exit) => return Ok(Some(self.ended(exit))),
        }
        Ok(None)
    }

    /// The system call at which a thread stands has a result. Who is born by it is made really.
    fn finish(&mut self, name: TaskName, result: u64) -> Result<(), NativeError> {
        self.settle(name)?;
        if let Some(native) = self.threads.get_mut(&name)
            && native.pending.take().is_some()
        {
            native.tracee.answer(result)?;
            self.events.note(Kind::Result, name, &[result]);
        }
        Ok(())
    }
}
