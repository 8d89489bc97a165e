//! A host: its processes and their threads, and the kernel's tables.

use everett_expr::ExprId;
use everett_vm::{Bug, CallSite, ExecContext, Interrupt, Memory, Thread, Value, Vm};
use triomphe::Arc;

use crate::boot::reborrow;
use crate::bytes::Output;
use crate::config::HostOptions;
use crate::dispatch::Slice;
use crate::faults::FaultState;
use crate::files::Files;
use crate::kernel::Kernel;
use crate::life::Newborn;
use crate::native::{Guest, Injected};
use crate::native_files::MemoryChange;
use crate::objects::socket::Network;
use crate::objects::{FileWatchers, Object, ObjectId, Watchers, event};
use crate::process::{Death, Doing, ProcessState, TaskState};
use crate::schedule::Schedule;
use crate::slots::Slots;
use crate::timers::Timer;

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
    /// All threads wait for what only the outside could send, and nothing will come.
    Idle,
    /// It is set up as a host of a world that is to be made ([`crate::Boot::Stops`]).
    SetUp,
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
    /// There is something for other hosts: [`Host::take_sent`], then run again.
    Sent,
    /// It has come to its horizon.
    Horizon,
    /// Data that checks look at has changed.
    Exposed,
    /// This system call is about to be made: [`Host::take_call`], then run again, or not.
    AtCall(&'static str),
    /// Nobody can run before this time, which is beyond the horizon, or before something arrives.
    Waits(Option<u64>),
    /// The host is at its end.
    Ended(Ending),
}

impl From<Interrupt> for HostExit {
    /// What an interrupt of something that is no program means for the host.
    fn from(interrupt: Interrupt) -> HostExit {
        match interrupt {
            Interrupt::Suspend => HostExit::Suspended,
            Interrupt::Bug(bug) => HostExit::Ended(Ending::Bug(bug)),
            _ => HostExit::Ended(Ending::EndPath),
        }
    }
}

/// The kernel's tables: all of a host but the memory and the frames of its programs.
#[derive(Clone, Debug)]
pub struct HostState {
    /// Virtual time since the start, in nanoseconds.
    pub clock_ns: u64,
    /// Time of the wall clock at the start, in nanoseconds since 1970.
    pub start_time_ns: u64,
    /// Executed instructions.
    pub instructions: u64,
    /// What the user can set.
    pub options: HostOptions,
    /// Names of the host and of its domain.
    pub names: (Arc<Vec<u8>>, Arc<Vec<u8>>),
    /// Files and open files.
    pub files: Files,
    /// Pipes, sockets and their like.
    pub objects: Slots<Object>,
    /// Who watches them.
    pub watchers: Watchers,
    /// Who watches files.
    pub file_watchers: FileWatchers,
    /// Addresses and ports.
    pub network: Network,
    /// What was written to stdout and stderr.
    pub outputs: [Output; 2],
    /// Where the random bytes are.
    pub random: u64,
    /// What the program wanted that is not modelled, each once, in order.
    pub warnings: Arc<Vec<String>>,
    /// Processes, by number.
    pub processes: Vec<Arc<ProcessState>>,
    /// Threads of all processes, by number.
    pub tasks: Vec<Arc<TaskState>>,
    /// Number of the next process or thread.
    pub next_pid: u32,
    /// Processes and threads that the system call under way has made.
    pub newborn: Vec<Newborn>,
    /// Who runs.
    pub schedule: Schedule,
    /// What processes have in common beside files.
    pub ipc: Arc<crate::ipc::Ipc>,
    /// Timers that fire whoever runs.
    pub timers: Slots<Timer>,
    /// Signals whose handlers a native thread is to run.
    pub injected: Vec<Injected>,
    /// What is to be done to the memory of a native process.
    pub memory_changes: Vec<MemoryChange>,
    /// Addresses that shared memory of native processes took.
    pub segment_bytes: u64,
    /// The system call under way is not the program's own: it takes no time, is no turn and does not fail.
    pub aside: bool,
    /// Failures that were injected.
    pub faults: FaultState,
    /// The log of system calls.
    pub log: Option<Arc<Vec<String>>>,
    /// The log of points between system calls.
    pub points: Option<Arc<Vec<crate::schedule::Passed>>>,
    /// The log of packets.
    pub packets: Option<Arc<Vec<crate::packets::Packet>>>,
    /// Locks on files that were released so far.
    pub lock_releases: u64,
    /// Waits that began so far.
    pub waits: u64,
    /// How the processes that the host was started with have ended, those that have.
    pub deaths: Arc<Vec<Option<Death>>>,
    /// What goes to other hosts.
    pub wire: crate::wire::Wire,
    /// Data that programs show to checks, by state and key.
    pub exposed: ExposedData,
    /// Data that is looked at though nobody shows it.
    pub watches: Arc<Vec<crate::Watch>>,
    /// What was declared of the world that it is to be a host of.
    pub setup: Arc<crate::Setup>,
}

/// Data that programs show to checks, by state and key.
pub type ExposedData = Arc<std::collections::BTreeMap<(String, String), Arc<everett_vm::Buffer>>>;

impl HostState {
    /// The next 8 random bytes: SplitMix64, so that every run draws the same.
    pub fn next_random(&mut self) -> u64 {
        split_mix(&mut self.random)
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
            Arc::make_mut(&mut self.warnings).push(warning);
        }
    }

    /// A number for a new process or thread.
    pub fn new_pid(&mut self) -> u32 {
        self.next_pid += 1;
        self.next_pid - 1
    }

    /// A process, dead or alive.
    pub fn process_by_pid(&self, pid: u32) -> Option<&ProcessState> {
        let found = self.processes.iter().find(|process| process.pid == pid);
        found.map(|process| &**process)
    }

    /// The same for changing it.
    pub fn process_by_pid_mut(&mut self, pid: u32) -> Option<&mut ProcessState> {
        let mut all = self.processes.iter_mut();
        all.find(|process| process.pid == pid).map(Arc::make_mut)
    }

    /// The threads of a process that have not ended.
    pub fn tasks_of(&self, pid: u32) -> impl Iterator<Item = &TaskState> {
        let tasks = self.tasks.iter().map(|task| &**task);
        tasks.filter(move |task| task.pid == pid && task.doing != Doing::Ended)
    }
}

/// A step of SplitMix64.
pub fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A host. Cloning it forks it.
#[derive(Clone, Debug)]
pub struct Host {
    /// Memory of each process, in the order of [`HostState::processes`].
    pub(crate) memories: Vec<Memory>,
    /// Frames and registers of each thread, in the order of [`HostState::tasks`].
    pub(crate) threads: Vec<Arc<Thread>>,
    pub(crate) state: HostState,
}

impl Host {
    /// Works on the thread that runs.
    pub(crate) fn with_running<T>(
        &mut self,
        around: &mut ExecContext<'_>,
        work: impl FnOnce(Slice<'_, '_>) -> T,
    ) -> Option<T> {
        self.with_guest(around, None, work)
    }

    /// The same for a thread whose memory may be native.
    pub(crate) fn with_guest<T>(
        &mut self,
        around: &mut ExecContext<'_>,
        guest: Option<&mut dyn Guest>,
        work: impl FnOnce(Slice<'_, '_>) -> T,
    ) -> Option<T> {
        let task = self.state.schedule.running;
        let process = self.process_index(task)?;
        let image = self.state.processes[process].image;
        let thread = Arc::make_mut(self.threads.get_mut(task)?);
        let memory = &mut self.memories[process];
        let shares = memory.has_views();
        if shares {
            self.state.show_files(memory);
        }
        let mut vm = Vm::new(reborrow(around), image, memory, thread);
        vm.max_heap = vm.max_heap.min(self.state.processes[process].max_heap);
        let pid = self.state.processes[process].pid;
        vm.alone = self.state.tasks_of(pid).count() == 1;
        vm.points = self.state.points(vm.alone, shares);
        let kernel = Kernel {
            vm: &mut vm,
            task,
            process,
            guest: guest.map(|guest| guest as &mut dyn Guest),
            host: &mut self.state,
        };
        let result = work(Slice::new(kernel));
        let memory = &mut self.memories[process];
        if memory.has_views() {
            self.state.put_back_files(memory);
        }
        Some(result)
    }

    /// Where the process of a thread is.
    pub(crate) fn process_index(&self, task: usize) -> Option<usize> {
        let pid = self.state.tasks.get(task)?.pid;
        let processes = &self.state.processes;
        processes.iter().position(|process| process.pid == pid)
    }

    /// Bytes for a live stdin; none mean that it is at its end.
    pub fn supply_input(&mut self, bytes: &[u8]) {
        self.state.files.stdin_mut(0).supply(bytes);
        self.state.announce(ObjectId::STDIN, event::ALL);
    }

    /// Lines of the log of system calls that were written since the last time.
    pub fn take_log(&mut self) -> Vec<String> {
        match &mut self.state.log {
            Some(log) => std::mem::take(Arc::make_mut(log)),
            None => Vec::new(),
        }
    }

    /// The log of system calls.
    pub fn log(&self) -> &[String] {
        self.state.log.as_deref().map_or(&[], Vec::as_slice)
    }

    /// PreemptionPoints between system calls at which another thread could have run, where they are logged.
    pub fn points(&self) -> &[crate::schedule::Passed] {
        self.state.points.as_deref().map_or(&[], Vec::as_slice)
    }

    /// Files that are not as they were at the start.
    pub fn left_files(&self) -> Vec<crate::files::LeftFile> {
        self.state.files.left()
    }

    /// Instructions executed so far.
    pub fn instructions(&self) -> u64 {
        self.state.instructions
    }

    /// Virtual time since the start, in nanoseconds.
    pub fn clock_ns(&self) -> u64 {
        self.state.clock_ns
    }

    /// How a process that the host was started with has ended, by its number; `None` where it has not.
    pub fn end_of(&self, number: usize) -> Option<Ending> {
        let death = self.state.deaths.get(number).copied().flatten();
        death.map(Ending::from)
    }

    /// What was written to a stream.
    pub fn output(&self, stream: Stream) -> &Output {
        &self.state.outputs[stream as usize]
    }

    /// What the program wanted that is not modelled, each once.
    pub fn warnings(&self) -> &[String] {
        &self.state.warnings
    }

    /// Memory and threads of each process.
    pub fn processes(&self) -> impl Iterator<Item = (&Memory, Vec<&Thread>)> {
        let processes = self.state.processes.iter().zip(&self.memories);
        processes.map(|(process, memory)| {
            let tasks = self.state.tasks.iter().zip(&self.threads);
            let threads = tasks.filter(|(task, _)| task.pid == process.pid);
            (memory, threads.map(|(_, thread)| &**thread).collect())
        })
    }

    /// The thread that runs.
    pub fn thread(&self) -> &Thread {
        &self.threads[self.state.schedule.running]
    }

    /// The program that runs.
    pub fn image(&self) -> everett_vm::ImageId {
        let process = self.process_index(self.state.schedule.running);
        process.map_or_else(Default::default, |at| self.state.processes[at].image)
    }

    /// The memory of the process that runs.
    pub fn memory(&self) -> &Memory {
        &self.memories[self.process_index(self.state.schedule.running).unwrap_or(0)]
    }

    /// The call stack of the thread that runs, innermost first.
    pub fn stack(&self) -> Vec<CallSite> {
        self.stack_of(self.state.schedule.running)
    }

    fn stack_of(&self, task: usize) -> Vec<CallSite> {
        let process = self.process_index(task);
        let image = process.map_or_else(Default::default, |at| self.state.processes[at].image);
        let site = |frame: &everett_vm::Frame| CallSite {
            image,
            function: frame.function,
            pc: frame.pc,
        };
        let frames = self.threads[task].frames.iter().rev();
        frames.map(site).collect()
    }

    /// All threads that have not ended: who they are and what they wait for, and their stacks.
    pub fn threads(&self) -> Vec<(String, Vec<CallSite>)> {
        let mut threads = Vec::new();
        for (at, task) in self.state.tasks.iter().enumerate() {
            let doing = match &task.doing {
                Doing::Running => "runs".to_owned(),
                Doing::Waiting(wait) => format!("waits: {}", wait.what),
                Doing::Ended => continue,
            };
            let who = format!("process {}, thread {}: {doing}", task.pid, task.tid);
            threads.push((who, self.stack_of(at)));
        }
        threads
    }

    /// All terms, for marking what is alive.
    pub fn for_each_term(&self, visit: &mut dyn FnMut(ExprId)) {
        for memory in &self.memories {
            memory.for_each_term(visit);
        }
        for thread in &self.threads {
            thread.for_each_term(visit);
        }
        let state = &self.state;
        for process in &state.processes {
            process.for_each_term(visit);
        }
        for death in state.deaths.iter().flatten() {
            if let Death::Exit(status) = death {
                status.term.into_iter().for_each(&mut *visit);
            }
        }
        state.files.for_each_term(visit);
        state.ipc.for_each_term(visit);
        for (_, object) in state.objects.iter() {
            (object.operations().for_each_term)(object, visit);
        }
        for output in &state.outputs {
            output.for_each_term(visit);
        }
        for bytes in state.exposed.values() {
            bytes.terms().for_each(&mut *visit);
        }
        state.setup.for_each_term(visit);
    }
}
