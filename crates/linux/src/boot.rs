//! Boots a host and starts programs: sets up memory, arguments, environment and the initial stack
//! block.

use everett_vm::{
    Buffer, Bug, BugKind, ChoiceSite, ExecContext, ImageId, Interrupt, Memory, ObjectKind,
    OnReturn, Thread, Value, Vm, is_within,
};
use triomphe::Arc;

use crate::bytes::{Bytes, input_bytes};
use crate::capabilities::Capabilities;
use crate::config::{Argument, HostConfig, Stdin, SymbolicVariable, Watch};
use crate::files::{
    ChangedFile, Description, Descriptor, Descriptors, Disk, Files, Input, OpenFlags, ROOT, Target,
};
use crate::host::{Host, HostState};
use crate::ids::InodeId;
use crate::kernel::reborrow;
use crate::layers;
use crate::objects::socket::Network;
use crate::outcome::Stream;
use crate::process::{
    Execution, ExitState, INIT, Init, NewIds, ProcessState, SignalAction, TaskState,
};
use crate::schedule::Schedule;
use crate::setup::Setup;
use crate::signals::{SA_NOCLDWAIT, SIGCHLD, SIGNALS};
use crate::slots::Slots;
use crate::symbolic_modes;

const AT_NULL: u64 = 0;
const AT_PAGESZ: u64 = 6;
pub(crate) const AT_UID: u64 = 11;
pub(crate) const AT_EUID: u64 = 12;
pub(crate) const AT_GID: u64 = 13;
pub(crate) const AT_EGID: u64 = 14;
const AT_HWCAP: u64 = 16;
const AT_CLKTCK: u64 = 17;
pub(crate) const AT_SECURE: u64 = 23;
const AT_RANDOM: u64 = 25;
const AT_EXECFN: u64 = 31;

impl Host {
    /// Boots a host: loads the program and sets up its arguments, environment and files. Returns
    /// [`Interrupt::Suspend`] if a question to the oracle has several answers: the caller then
    /// calls it again from scratch. A host that was switched off boots with its old disk.
    pub fn boot(
        config: &HostConfig,
        disk: Option<&Disk>,
        around: &mut ExecContext<'_>,
    ) -> Result<Host, Interrupt> {
        let (mut state, executions) = prepare(config, disk, around)?;
        let mut variables = variables(config, around)?;
        let (mut memories, mut threads) = (Vec::new(), Vec::new());
        for execution in &executions {
            let ids = NewIds::default();
            let (mut memory, thread) = start(execution, ids, reborrow(around), &mut state)?;
            for variable in variables.drain(..) {
                variable.store(&mut memory)?;
            }
            memories.push(memory);
            threads.push(Arc::new(thread));
        }
        around.oracle.commit();
        Ok(Host {
            memories,
            threads,
            state,
        })
    }
}

/// A variable of the first program and its value when the program starts.
pub struct StartValue {
    /// The variable, or a part of it.
    pub data: Watch,
    /// Its bytes.
    pub bytes: Buffer,
}

impl StartValue {
    fn store(&self, memory: &mut Memory) -> Result<(), Interrupt> {
        let address = self.data.address.wrapping_add(self.data.offset);
        let object = memory.object_at_mut(address, self.data.len);
        let object = object.ok_or_else(|| {
            let (_, name) = &self.data.name;
            let message = format!("the program has no variable {name} that can be written");
            Bug::new(BugKind::Unsupported, message)
        })?;
        object.write_buffer(address - object.start, &self.bytes);
        Ok(())
    }
}

/// The values of variables that are symbolic when the first program starts.
pub(crate) fn variables(
    config: &HostConfig,
    around: &mut ExecContext<'_>,
) -> Result<Vec<StartValue>, Interrupt> {
    let mut values = Vec::new();
    for SymbolicVariable { data, range } in &config.variables {
        let (_, name) = &data.name;
        let size = u32::try_from(data.len).unwrap_or(u32::MAX);
        let input = around.oracle.input(around.arena, name, size)?;
        if let Some(range) = range {
            let terms: Vec<_> = (0..size).map(|at| around.arena.read(input, at)).collect();
            let number = around.arena.concat_bytes(&terms);
            let condition = is_within(around.arena, number, *range);
            // Ranges that contain no number of this size were already rejected.
            around.oracle.assume(around.arena, condition)?;
        }
        values.push(StartValue {
            data: data.clone(),
            bytes: input_bytes(around.arena, input, 0, size),
        });
    }
    Ok(values)
}

/// The kernel's tables at boot, and the programs that the first processes execute.
pub(crate) fn prepare(
    config: &HostConfig,
    disk: Option<&Disk>,
    around: &mut ExecContext<'_>,
) -> Result<(HostState, Vec<Execution>), Interrupt> {
    let mut names = Names::default();
    let args = strings(&config.args, &mut names, around)?;
    let env = strings(&config.env, &mut names, around)?;
    let (mut files, cwd) = match disk {
        Some(disk) => {
            let files = disk.mount();
            let cwd = files.tree.lookup(ROOT, &config.cwd, true);
            (files, cwd.unwrap_or(ROOT))
        }
        None => layers::build_root(config, around)?,
    };
    let mut starting = vec![(config.image, args, env, cwd)];
    for other in &config.others {
        let made = files.tree.create_directories(ROOT, &other.cwd);
        let cwd = made.map_err(|errno| layers::refused(&other.cwd, errno))?;
        let args = strings(&other.args, &mut names, around)?;
        let env = strings(&other.env, &mut names, around)?;
        starting.push((other.image, args, env, cwd));
    }
    let mut executables = Vec::new();
    for (image, args, _, cwd) in &starting {
        let name = args.first().cloned();
        let name = name.unwrap_or_else(|| Buffer::zeroed(0));
        executables.push(layers::install_started(
            &name, *image, *cwd, config, &mut files,
        ));
    }
    if disk.is_none() {
        files.tree.start();
    }
    let others = config.others.iter().map(|other| &other.stdin);
    let stdins: Vec<&Stdin> = std::iter::once(&config.stdin).chain(others).collect();
    let inputs: Result<Vec<Input>, Interrupt> =
        stdins.iter().map(|given| stdin(given, around)).collect();
    files.feed(inputs?);
    if config.options.symbolic_file_modes && disk.is_none() {
        symbolic_modes::create(config, starting[0].3, &mut files, around)?;
    }
    let (mut processes, mut executions) = (Vec::new(), Vec::new());
    for ((image, args, env, cwd), file) in starting.into_iter().zip(executables) {
        let pid = config.options.first_pid + processes.len() as u32;
        let name = args.first().map(|name| name.bytes().to_vec());
        let execution = Execution {
            image,
            file,
            name: name.unwrap_or_default(),
            args,
            env,
        };
        let number = processes.len();
        let reads = number == 0 || *stdins[number] != Stdin::Empty;
        let descriptors = standard_streams(&mut files, reads.then_some(number as u16));
        processes.push(Arc::new(ProcessState {
            image,
            execution: Arc::new(execution.clone()),
            ..first_process(pid, cwd, descriptors)
        }));
        executions.push(execution);
    }
    Ok((first_state(config, files, processes), executions))
}

/// The state of a host that boots with these files and processes.
fn first_state(config: &HostConfig, files: Files, processes: Vec<Arc<ProcessState>>) -> HostState {
    let tasks = processes.iter().map(|process| process.pid);
    let tasks = tasks.map(|pid| Arc::new(TaskState::new(pid, pid)));
    let next_pid = config.options.first_pid + processes.len() as u32;
    let mut network = Network::new(config.addresses.clone(), config.routes.clone());
    network.skip_ports(config.options.skipped_ports);
    HostState {
        clock_ns: 0,
        uptime_ns: config.options.uptime_ns,
        start_time_ns: config.start_time_ns,
        clock_rate: Arc::default(),
        instructions: 0,
        names: (Arc::new(b"host".to_vec()), Arc::new(b"(none)".to_vec())),
        files,
        outputs: Default::default(),
        printed: 0,
        uncounted_writes: 0,
        random: config.random_seed,
        notices: Arc::default(),
        options: Arc::new(config.options.clone()),
        objects: Slots::default(),
        network,
        exit_statuses: Arc::new(vec![None; processes.len()]),
        tasks: tasks.collect(),
        processes,
        init: Arc::new(init()),
        next_pid,
        has_exits: false,
        has_lent_memory: false,
        new_tasks: Vec::new(),
        schedule: Schedule::new(config.options.scheduler),
        ipc: Default::default(),
        limits_processor_time: false,
        timers: Slots::default(),
        injected: Vec::new(),
        memory_changes: Vec::new(),
        segment_bytes: 0,
        internal_call: false,
        faults: Default::default(),
        log: config.options.logs_calls.then(Arc::default),
        points: config.options.logs_points.then(Arc::default),
        packets: config.options.logs_packets.then(Arc::default),
        watchers: Default::default(),
        asynchronous: Default::default(),
        file_watchers: Default::default(),
        in_transit: Vec::new(),
        lock_releases: 0,
        waits: 0,
        wire: crate::packets::Wire::new(config.is_networked()),
        exposed: Default::default(),
        origins: Default::default(),
        watches: Arc::new(config.watches.clone()),
        setup: Arc::new(crate::Setup::new(config.boot.clone())),
    }
}

/// A process that the host boots with.
fn first_process(pid: u32, cwd: InodeId, descriptors: Descriptors) -> ProcessState {
    ProcessState {
        pid,
        parent: 1,
        group: pid,
        session: pid,
        image: ImageId::default(),
        exit_state: ExitState::Alive,
        borrows_memory: false,
        lender: None,
        exit_signal: 0,
        uid: [0; 3],
        gid: [0; 3],
        umask: 0o022,
        cwd,
        root: ROOT,
        descriptors,
        actions: Arc::new([SignalAction::default(); SIGNALS]),
        max_heap: u64::MAX,
        pending: Default::default(),
        program_break: None,
        execution: Arc::default(),
        stopped: None,
        state_change: None,
        has_executed: true,
        groups: Arc::default(),
        file_ids: [None; 2],
        limits: Arc::default(),
        parent_death_signal: 0,
        is_subreaper: false,
        no_new_privileges: false,
        started_as: NewIds::default(),
        dumpable: 1,
        secure_bits: 0,
        locked_memory: Default::default(),
        capabilities: Capabilities::ROOT,
        out_of_memory: Default::default(),
        has_huge_pages: true,
        cpu_ns: 0,
        children_cpu_ns: 0,
        most_memory: 0,
        children_most_memory: 0,
        waits: 0,
        children_waits: 0,
        alarms: [None; 3],
        timers: Slots::default(),
    }
}

/// Process 1 at boot.
fn init() -> Init {
    let mut actions = [SignalAction::default(); SIGNALS];
    actions[SIGCHLD as usize - 1].flags = SA_NOCLDWAIT;
    let name = b"init";
    let mut task = TaskState::new(INIT, INIT);
    task.name = [0; 16];
    task.name[..name.len()].copy_from_slice(name);
    let execution = Execution {
        name: name.to_vec(),
        args: vec![Buffer::with_bytes(name, name.len())],
        ..Execution::default()
    };
    Init {
        process: ProcessState {
            parent: 0,
            actions: Arc::new(actions),
            execution: Arc::new(execution),
            ..first_process(INIT, ROOT, Descriptors::default())
        },
        task,
    }
}

/// Memory and first thread of a program at its start.
pub(crate) fn start(
    execution: &Execution,
    ids: NewIds,
    mut around: ExecContext<'_>,
    state: &mut HostState,
) -> Result<(Memory, Thread), Interrupt> {
    let mut memory = around.images[usize::from(execution.image.0)].initial_memory();
    let mut place_all = |strings: &[Buffer]| -> Result<Vec<u64>, Interrupt> {
        strings
            .iter()
            .map(|string| place_string(&mut memory, string))
            .collect()
    };
    let args = place_all(&execution.args)?;
    let env = place_all(&execution.env)?;
    let name = match execution.args.first() {
        // Most programs are named as they are called.
        Some(first) if first.is_concrete() && first.bytes() == execution.name => args[0],
        Some(first) if !first.is_concrete() => args[0],
        _ => {
            let name = Buffer::with_bytes(&execution.name, execution.name.len());
            place_string(&mut memory, &name)?
        }
    };
    let random = place(
        &mut memory,
        &Buffer::with_bytes(&state.random_bytes(16), 16),
    )?;
    let auxiliary = auxiliary(ids, random, name);
    let block = start_block(&args, &env, &auxiliary, &mut memory)?;
    let mut thread = Thread::new(0);
    enter(
        &mut around,
        execution.image,
        &mut memory,
        &mut thread,
        &block,
    )?;
    Ok((memory, thread))
}

/// Places a NUL-terminated string in an object of its own, so that an overrun is detected.
fn place_string(memory: &mut Memory, string: &Buffer) -> Result<u64, Interrupt> {
    let mut whole = Buffer::zeroed(string.len() + 1);
    whole.copy_from(0, string, 0, string.len());
    place(memory, &whole)
}

/// A generator of names for symbolic strings.
#[derive(Default)]
struct Names {
    arguments: u32,
}

impl Names {
    fn next(&mut self) -> String {
        self.arguments += 1;
        format!("arg{:02}", self.arguments - 1)
    }
}

/// The strings of a command line or environment, without NULs.
fn strings(
    arguments: &[Argument],
    names: &mut Names,
    around: &mut ExecContext<'_>,
) -> Result<Vec<Buffer>, Interrupt> {
    let mut strings = Vec::new();
    for argument in arguments {
        match argument {
            Argument::Concrete(bytes) => {
                strings.push(Buffer::with_bytes(bytes, bytes.len()));
            }
            Argument::Symbolic { max_len } => {
                let name = names.next();
                strings.push(symbolic_string(&[], &name, *max_len, around)?);
            }
            Argument::SymbolicMany { min, max, max_len } => {
                let alternatives = max.saturating_sub(*min).saturating_add(1);
                let more = if alternatives > 1 {
                    around
                        .oracle
                        .choose(&ChoiceSite::ArgumentCount, alternatives)?
                } else {
                    0
                };
                for _ in 0..min.saturating_add(more) {
                    let name = names.next();
                    strings.push(symbolic_string(&[], &name, *max_len, around)?);
                }
            }
            Argument::Prefixed {
                prefix,
                name,
                max_len,
            } => {
                strings.push(symbolic_string(prefix, name, *max_len, around)?);
            }
        }
    }
    Ok(strings)
}

/// A string of symbolic bytes, without its NUL. Its input array has one more byte, for the NUL.
fn symbolic_string(
    prefix: &[u8],
    name: &str,
    len: u32,
    around: &mut ExecContext<'_>,
) -> Result<Buffer, Interrupt> {
    let input = around
        .oracle
        .input(around.arena, name, len.saturating_add(1))?;
    let bytes = input_bytes(around.arena, input, 0, len);
    let mut whole = Buffer::with_bytes(prefix, prefix.len() + len as usize);
    whole.copy_from(prefix.len(), &bytes, 0, len as usize);
    Ok(whole)
}

/// Allocates a kernel object that holds these bytes.
fn place(memory: &mut Memory, bytes: &Buffer) -> Result<u64, Interrupt> {
    let object = memory
        .allocate(bytes.len() as u64, 16, ObjectKind::Kernel)
        .ok_or_else(|| Bug::new(BugKind::HugeAllocation, "arguments do not fit into memory"))?;
    object.write_buffer(0, bytes);
    Ok(object.start)
}

fn stdin(stdin: &Stdin, around: &mut ExecContext<'_>) -> Result<Input, Interrupt> {
    Ok(match stdin {
        Stdin::Empty => Input::default(),
        Stdin::Concrete(bytes) => Input::fixed(Bytes::from_concrete(bytes)),
        Stdin::Symbolic { size } => {
            let input = around.oracle.input(around.arena, "stdin", *size)?;
            Input::fixed(Bytes::from_input(around.arena, input, *size))
        }
        Stdin::Live => Input::live(),
    })
}

/// Descriptors 0 to 2. Descriptor 0 is `/dev/null` if the process has no input.
fn standard_streams(files: &mut Files, reads: Option<u16>) -> Descriptors {
    let mut descriptors = Descriptors::default();
    let nothing = files.tree.lookup(ROOT, b"/dev/null", true);
    let nothing = nothing.map_or(Target::Stdin(0), Target::Inode);
    let streams = [
        (reads.map_or(nothing, Target::Stdin), 0),
        (Target::Output(Stream::Stdout), OpenFlags::WRITE_ONLY),
        (Target::Output(Stream::Stderr), OpenFlags::WRITE_ONLY),
    ];
    for (fd, (target, flags)) in streams.into_iter().enumerate() {
        let description = files.open(Description::new(target, flags));
        descriptors.set(
            fd as i32,
            Some(Descriptor {
                description,
                close_on_exec: false,
            }),
        );
    }
    descriptors
}

/// Number of entries of the auxiliary vector.
pub(crate) const AUXILIARY: usize = 11;

/// The block that the kernel leaves on the stack of a new program.
struct StartBlock {
    /// `argc`, `argv`, NULL, `envp`, NULL, `auxv`.
    address: u64,
    argc: u64,
    argv: u64,
    envp: u64,
}

impl NewIds {
    /// The entry of the auxiliary vector with this key, if they decide it.
    pub fn entry(&self, key: u64) -> Option<u64> {
        let found = self.entries().into_iter().find(|entry| entry.0 == key);
        found.map(|entry| entry.1)
    }

    /// The entries of the auxiliary vector that they decide.
    fn entries(&self) -> [(u64, u64); 5] {
        [
            (AT_UID, self.uid[0].into()),
            (AT_EUID, self.uid[1].into()),
            (AT_GID, self.gid[0].into()),
            (AT_EGID, self.gid[1].into()),
            (AT_SECURE, self.is_secure.into()),
        ]
    }
}

/// The auxiliary vector of a program with these ids; `random` and `name` are addresses.
fn auxiliary(ids: NewIds, random: u64, name: u64) -> [(u64, u64); AUXILIARY] {
    let [user, effective_user, group, effective_group, is_secure] = ids.entries();
    [
        (AT_PAGESZ, 4096),
        user,
        effective_user,
        group,
        effective_group,
        is_secure,
        (AT_HWCAP, 0x0178_bfff),
        (AT_CLKTCK, 100),
        (AT_RANDOM, random),
        (AT_EXECFN, name),
        (AT_NULL, 0),
    ]
}

fn start_block(
    args: &[u64],
    env: &[u64],
    auxiliary: &[(u64, u64)],
    memory: &mut Memory,
) -> Result<StartBlock, Interrupt> {
    let mut words = vec![args.len() as u64];
    words.extend_from_slice(args);
    words.push(0);
    let env_at = words.len() as u64;
    words.extend_from_slice(env);
    words.push(0);
    words.extend(auxiliary.iter().flat_map(|(key, value)| [*key, *value]));
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let address = place(memory, &Buffer::with_bytes(&bytes, bytes.len()))?;
    Ok(StartBlock {
        address,
        argc: args.len() as u64,
        argv: address + 8,
        envp: address + 8 * env_at,
    })
}

/// Pushes the first frame: the entry of libc, or `main` itself if there is no libc.
fn enter(
    around: &mut ExecContext<'_>,
    image: ImageId,
    memory: &mut Memory,
    thread: &mut Thread,
    block: &StartBlock,
) -> Result<(), Interrupt> {
    let entered = &around.images[usize::from(image.0)];
    let program = entered.program();
    let has_code = |name: &str| {
        program
            .function(name)
            .filter(|id| entered.code(*id).is_some())
    };
    let (function, args) = if let Some(start) = has_code("_start_c") {
        (start, vec![block.address])
    } else if let Some(main) = has_code("main") {
        (main, vec![block.argc, block.argv, block.envp])
    } else {
        let message = "the program has neither _start_c nor main";
        return Err(Bug::new(BugKind::Unsupported, message).into());
    };
    let args: Vec<Value> = args.into_iter().map(Value::concrete).collect();
    let mut vm = Vm::new(reborrow(around), image, memory, thread);
    vm.push_frame(function, &args, None, OnReturn::Stop)
}

impl Host {
    /// Files with contents that are not durable, in order, with a path of each.
    pub fn unsynced(&self) -> Vec<(InodeId, Vec<u8>)> {
        self.state.files.unsynced()
    }

    /// The disk that the host has if it is switched off now. The files in `lost` lose what was not
    /// synchronised.
    pub fn disk(&self, lost: &[InodeId]) -> Disk {
        self.state.files.disk(lost)
    }
}

impl Host {
    /// The declarations that the program has made about its world.
    pub fn setup(&self) -> &Setup {
        &self.state.setup
    }

    /// The snapshot of files that the program asked to save.
    pub fn saved_files(&self) -> Option<&[ChangedFile]> {
        let saved = self.state.setup.saved.as_ref();
        saved.map(|files| files.as_slice())
    }
}
