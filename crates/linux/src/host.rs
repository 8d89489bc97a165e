//! A host: the kernel's tables ([`HostState`]), plus the memory and
//! threads of its processes ([`Host`]).

use everett_expr::VisitTerms;
use everett_vm::{CallSite, Memory, Thread};
use triomphe::Arc;

use crate::bytes::Output;
use crate::clock_rate::ClockRate;
use crate::config::HostOptions;
use crate::faults::FaultState;
use crate::files::Files;
use crate::guest::{Injected, MemoryChange};
use crate::ids::{DescriptionId, ObjectId};
use crate::objects::socket::Network;
use crate::objects::{FileWatchers, Object, Watchers, event};
use crate::outcome::{Ending, Stream};
use crate::process::{ExitStatus, INIT, Init, NewTask, ProcessState, RunState, TaskState};
use crate::schedule::Schedule;
use crate::slots::Slots;
use crate::timers::Timer;

/// Maximum number of warnings that a host keeps: a program can use new unsupported features without
/// end.
const MAX_WARNINGS: usize = 100;

/// Messages for the user about the run of a host. They are rare, so forks share one allocation.
#[derive(Clone, Debug, Default)]
pub struct Notices {
    /// Unsupported features that the program used, each once, in order.
    pub warnings: Vec<String>,
    /// Requests that the model refused although Linux would carry them out.
    pub refusals: Vec<crate::Refusal>,
    /// Limits that the program reached, each once, by the names of their options.
    pub limits_hit: Vec<&'static str>,
}

/// The kernel's tables: everything of a host except the memory and the frames of its programs.
#[derive(Clone, Debug)]
pub struct HostState {
    /// Virtual time since the host started, in nanoseconds.
    pub clock_ns: u64,
    /// How long the host had been up at its start; the monotonic clocks add this to the virtual
    /// time.
    pub uptime_ns: u64,
    /// Wall-clock time at boot, in nanoseconds since 1970.
    pub start_time_ns: u64,
    /// The rate of the wall clock and the other parameters of `adjtimex`.
    pub clock_rate: Arc<ClockRate>,
    /// Instructions executed so far.
    pub instructions: u64,
    /// Options set by the user.
    pub options: Arc<HostOptions>,
    /// Host name and domain name.
    pub names: (Arc<Vec<u8>>, Arc<Vec<u8>>),
    /// The file system and the open file descriptions.
    pub files: Files,
    /// Kernel objects behind descriptors: pipes, sockets, epoll instances and so on.
    pub objects: Slots<Object>,
    /// Epoll instances that watch an object.
    pub watchers: Watchers,
    /// Open files that signal their events.
    pub asynchronous: crate::host::Asynchronous,
    /// Inotify instances that watch a file.
    pub file_watchers: FileWatchers,
    /// Network addresses, routes and ports in use.
    pub network: Network,
    /// Bytes written to stdout and stderr.
    pub outputs: [Output; 2],
    /// Number of bytes written to them.
    pub printed: u64,
    /// Bytes written to files since the sizes of all files were last added up.
    pub uncounted_writes: u64,
    /// State of the random number generator.
    pub random: u64,
    /// Messages for the user about the run.
    pub notices: Arc<Notices>,
    /// Processes, by pid.
    pub processes: Vec<Arc<ProcessState>>,
    /// Process 1, which is not one of them.
    pub init: Arc<Init>,
    /// Tasks (threads) of all processes, by tid.
    pub tasks: Vec<Arc<TaskState>>,
    /// The next free pid or tid.
    pub next_pid: u32,
    /// A task or process has exited or was reaped, and the tables may still hold it.
    pub has_exits: bool,
    /// Some process has used the memory of the one that created it (`vfork`).
    pub has_lent_memory: bool,
    /// Tasks that the current system call has created and that are not in the tables yet.
    pub new_tasks: Vec<NewTask>,
    /// The scheduler's state.
    pub schedule: Schedule,
    /// System V IPC objects and names of POSIX message queues.
    pub ipc: Arc<crate::ipc::Ipc>,
    /// A process may have a limit on its processor time (`RLIMIT_CPU`).
    pub limits_processor_time: bool,
    /// Armed timers. They fire no matter which thread runs.
    pub timers: Slots<Timer>,
    /// Signals whose handlers the current native thread must run.
    pub injected: Vec<Injected>,
    /// Changes that the driver must make to the memory of a native process.
    pub memory_changes: Vec<MemoryChange>,
    /// Address space that the shared memory segments of native processes take so far.
    pub segment_bytes: u64,
    /// The current system call is not the program's own: it takes no time, is not a scheduling
    /// point and cannot be made to fail.
    pub internal_call: bool,
    /// Failures injected so far.
    pub faults: FaultState,
    /// The log of system calls, if enabled.
    pub log: Option<Arc<Vec<String>>>,
    /// The log of preemption points between system calls, if enabled.
    pub points: Option<Arc<Vec<crate::schedule::PreemptionPoint>>>,
    /// The log of packets, if enabled.
    pub packets: Option<Arc<Vec<crate::packets::Packet>>>,
    /// Open file descriptions that were in transit over a socket that is
    /// being closed; empty between calls.
    pub in_transit: Vec<DescriptionId>,
    /// File locks released so far.
    pub lock_releases: u64,
    /// Waits started so far.
    pub waits: u64,
    /// Exit statuses of the processes that the host booted with; `None` while a process runs.
    pub exit_statuses: Arc<Vec<Option<ExitStatus>>>,
    /// The network interface to the other hosts.
    pub wire: crate::packets::Wire,
    /// Data that programs expose to invariants, by state and key.
    pub exposed: ExposedData,
    /// The origins of exposed data, if writes to memory are logged.
    pub origins: Arc<Origins>,
    /// Variables that invariants read although no program exposes them.
    pub watches: Arc<Vec<crate::Watch>>,
    /// The declarations of the program about the world in which it becomes a host.
    pub setup: Arc<crate::Setup>,
}

/// Data that programs expose to invariants, by state and key.
pub type ExposedData = Arc<std::collections::BTreeMap<(String, String), Arc<everett_vm::Buffer>>>;

/// The origins of exposed data, by state and key.
pub type Origins = std::collections::BTreeMap<(String, String), Origin>;

/// The origin of exposed data.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Origin {
    /// The writes that set its bytes, in the order of addresses.
    pub written: Vec<everett_vm::StackId>,
    /// The call stack at which the program exposed the data, or at which the data was sampled.
    pub observed: Option<everett_vm::StackId>,
}

impl HostState {
    /// Wall-clock time in seconds.
    pub(crate) fn wall_seconds(&self) -> u64 {
        self.wall_clock_ns() / 1_000_000_000
    }

    /// Wall-clock time, in nanoseconds since 1970.
    pub(crate) fn wall_clock_ns(&self) -> u64 {
        self.wall_clock_at(self.clock_ns)
    }

    /// What the wall clock shows at this virtual time, in nanoseconds since 1970.
    pub(crate) fn wall_clock_at(&self, at_ns: u64) -> u64 {
        let right = self.start_time_ns.saturating_add(at_ns);
        right.saturating_add_signed(self.clock_rate.ahead_ns(at_ns))
    }

    /// The virtual time of the last tick.
    pub(crate) fn last_tick(&self) -> u64 {
        self.clock_rate.last_tick(self.clock_ns)
    }

    /// The virtual time at which the wall clock shows this time.
    pub(crate) fn when_wall_clock_shows(&self, time_ns: u64) -> u64 {
        self.clock_rate
            .when(time_ns.saturating_sub(self.start_time_ns))
    }

    /// The next 8 random bytes, from SplitMix64: every run draws the same sequence.
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

    /// Records a warning about an unsupported feature, once.
    pub fn warn(&mut self, warning: impl Into<String>) {
        let warning = warning.into();
        let known = &self.notices.warnings;
        if known.len() < MAX_WARNINGS && !known.contains(&warning) {
            Arc::make_mut(&mut self.notices).warnings.push(warning);
        }
    }

    /// Records that the program reached a limit, by the name of its option: from here on the
    /// program may behave differently than on a real machine.
    pub fn reach_limit(&mut self, limit: &'static str) {
        if !self.notices.limits_hit.contains(&limit) {
            Arc::make_mut(&mut self.notices).limits_hit.push(limit);
        }
    }

    /// Allocates a pid or tid.
    pub fn new_pid(&mut self) -> u32 {
        self.next_pid += 1;
        self.next_pid - 1
    }

    /// The process with this pid, zombies and init included.
    pub fn process_by_pid(&self, pid: u32) -> Option<&ProcessState> {
        match self.process_at(pid) {
            Some(at) => Some(&self.processes[at]),
            None => (pid == INIT).then_some(&self.init.process),
        }
    }

    /// The position of the process with this pid. Processes are in the order of their pids, unless
    /// the pids have wrapped around.
    fn process_at(&self, pid: u32) -> Option<usize> {
        let found = self
            .processes
            .binary_search_by_key(&pid, |process| process.pid);
        let by_search = || self.processes.iter().position(|process| process.pid == pid);
        found.ok().or_else(by_search)
    }

    /// The process with this pid, for changing it.
    pub fn process_by_pid_mut(&mut self, pid: u32) -> Option<&mut ProcessState> {
        match self.process_at(pid) {
            Some(at) => Some(Arc::make_mut(&mut self.processes[at])),
            None if pid == INIT => Some(&mut Arc::make_mut(&mut self.init).process),
            None => None,
        }
    }

    /// The tasks of a process that have not exited.
    pub fn tasks_of(&self, pid: u32) -> impl Iterator<Item = &TaskState> {
        let tasks = self.tasks.iter().map(|task| &**task);
        tasks.filter(move |task| task.pid == pid && !task.run_state.is_ended())
    }

    /// The pid of the process whose memory a process uses: usually its own.
    pub fn memory_owner(&self, pid: u32) -> u32 {
        let process = self.process_by_pid(pid);
        process.and_then(|process| process.lender).unwrap_or(pid)
    }

    /// The live tasks that use the memory of a process.
    pub fn tasks_in_memory_of(&self, pid: u32) -> impl Iterator<Item = &TaskState> {
        let owner = self.memory_owner(pid);
        let tasks = self.tasks.iter().map(|task| &**task);
        let live = tasks.filter(|task| !task.run_state.is_ended());
        // Most hosts lend no memory. They need not look at each of their processes.
        live.filter(move |task| match self.has_lent_memory {
            true => self.memory_owner(task.pid) == owner,
            false => task.pid == owner,
        })
    }
}

/// One step of SplitMix64.
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
    /// Index of a task's process in [`HostState::processes`].
    pub(crate) fn process_index(&self, task: usize) -> Option<usize> {
        self.state.process_at(self.state.tasks.get(task)?.pid)
    }

    /// The index of the memory that a process uses.
    pub(crate) fn memory_index(&self, process: usize) -> usize {
        let processes = &self.state.processes;
        let lender = processes.get(process).and_then(|process| process.lender);
        lender
            .and_then(|pid| self.state.process_at(pid))
            .unwrap_or(process)
    }

    /// Supplies bytes for a live stdin. No bytes mean end of file.
    pub fn supply_input(&mut self, bytes: &[u8]) {
        self.state.files.stdin_mut(0).supply(bytes);
        self.state.announce(ObjectId::STDIN, event::ALL);
    }

    /// Lines written to the log of system calls since the last call.
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

    /// Logged points between system calls at which another thread could have run.
    pub fn points(&self) -> &[crate::schedule::PreemptionPoint] {
        self.state.points.as_deref().map_or(&[], Vec::as_slice)
    }

    /// Files that differ from their state at boot.
    pub fn changed_files(&self) -> Vec<crate::files::ChangedFile> {
        self.state.files.changes()
    }

    /// Instructions executed so far.
    pub fn instructions(&self) -> u64 {
        self.state.instructions
    }

    /// Virtual time since boot, in nanoseconds.
    pub fn clock_ns(&self) -> u64 {
        self.state.clock_ns
    }

    /// How a process that the host booted with has ended, by its index; `None` while it runs.
    pub fn end_of(&self, number: usize) -> Option<Ending> {
        let exit_status = self.state.exit_statuses.get(number).copied().flatten();
        exit_status.map(Ending::from)
    }

    /// Bytes written to an output stream.
    pub fn output(&self, stream: Stream) -> &Output {
        &self.state.outputs[stream as usize]
    }

    /// Takes the bytes written to an output stream.
    pub fn take_output(&mut self, stream: Stream) -> Output {
        std::mem::take(&mut self.state.outputs[stream as usize])
    }

    /// Unsupported features that the program used, each once.
    pub fn warnings(&self) -> &[String] {
        &self.state.notices.warnings
    }

    /// Requests that the model refused although Linux would carry them out.
    pub fn refusals(&self) -> &[crate::Refusal] {
        &self.state.notices.refusals
    }

    /// Limits that the program reached, each once, by the names of their options.
    pub fn limits_hit(&self) -> &[&'static str] {
        &self.state.notices.limits_hit
    }

    /// Memory and threads of each process.
    pub fn processes(&self) -> impl Iterator<Item = (&Memory, Vec<&Thread>)> {
        let processes = self.state.processes.iter().enumerate();
        processes.map(|(at, process)| {
            let memory = &self.memories[self.memory_index(at)];
            let tasks = self.state.tasks.iter().zip(&self.threads);
            let threads = tasks.filter(|(task, _)| task.pid == process.pid);
            (memory, threads.map(|(_, thread)| &**thread).collect())
        })
    }

    /// The running thread.
    pub fn thread(&self) -> &Thread {
        &self.threads[self.state.schedule.running]
    }

    /// The program of the running thread.
    pub fn image(&self) -> everett_vm::ImageId {
        let process = self.process_index(self.state.schedule.running);
        process.map_or_else(Default::default, |at| self.state.processes[at].image)
    }

    /// The memory of the running process.
    pub fn memory(&self) -> &Memory {
        let process = self.process_index(self.state.schedule.running);
        &self.memories[self.memory_index(process.unwrap_or(0))]
    }

    /// The call stack of the running thread, innermost frame first.
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

    /// All threads that have not exited: the description (its name and what it waits for) and the
    /// call stack of each.
    pub fn threads(&self) -> Vec<(String, Vec<CallSite>)> {
        let mut threads = Vec::new();
        for (at, task) in self.state.tasks.iter().enumerate() {
            let run_state = match &task.run_state {
                RunState::Running => "runs".to_owned(),
                RunState::Waiting(wait) => format!("waits: {}", wait.what),
                RunState::Ended => continue,
            };
            let who = format!("process {}, thread {}: {run_state}", task.pid, task.tid);
            threads.push((who, self.stack_of(at)));
        }
        threads
    }

    /// Visits all terms, so that the arena can mark live ones.
    pub fn for_each_term(&self, visit: &mut dyn VisitTerms) {
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
        for exit_status in state.exit_statuses.iter().flatten() {
            if let ExitStatus::Exit(status) = exit_status {
                status.term.into_iter().for_each(|term| visit.term(term));
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
            bytes.terms().for_each(|term| visit.term(term));
        }
        state.setup.for_each_term(visit);
        state.wire.for_each_term(visit);
    }
}

/// Open files with `O_ASYNC`, each with the descriptor through which it was set. Cloning is O(1).
pub type Asynchronous = Arc<Vec<(DescriptionId, i32)>>;

/// A request that the model refused or ignored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The system call, or the function that the vm executes.
    pub call: String,
    /// The refused request.
    pub what: String,
    /// The call sites, innermost first; empty for native programs.
    pub sites: Vec<CallSite>,
    /// Number of occurrences on this path.
    pub count: u64,
}
