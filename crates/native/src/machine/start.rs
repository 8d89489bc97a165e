//! Start and end of a native run.

use std::time::Duration;

use everett_linux::{Disk, FileChange, Host, Watch};
use everett_vm::made_bytes;

use super::*;
use crate::activity::Activity;
use crate::memory_account::MemoryAccount;
use crate::priorities::Order;
use crate::proc_reads;
use crate::sandbox::resident;
use crate::tracee::kill_all_tracees;
use crate::variables::Variables;
use crate::zygote::{self, Start};

impl<'c> NativeMachine<'c> {
    pub(crate) fn start(
        config: &'c NativeConfig,
        source: Source,
        watcher: &'c mut dyn Watcher,
    ) -> Result<NativeMachine<'c>, NativeError> {
        let account = MemoryAccount::alone();
        NativeMachine::with_oracle(config, NativeOracle::new(source), watcher, account)
    }

    /// Starts a machine with an oracle that has already answered questions.
    pub(crate) fn with_oracle(
        config: &'c NativeConfig,
        oracle: NativeOracle,
        watcher: &'c mut dyn Watcher,
        account: MemoryAccount,
    ) -> Result<NativeMachine<'c>, NativeError> {
        NativeMachine::begin(config, None, (Arena::new(), oracle), watcher, account)
    }

    /// Restarts a host that was switched off, with its disk. Earlier answers are kept.
    pub(crate) fn restart(mut self, disk: &Disk) -> Result<NativeMachine<'c>, NativeError> {
        self.kill_all();
        let NativeMachine {
            config,
            arena,
            oracle,
            watcher,
            calls,
            events,
            restarts,
            account,
            injected,
            line_coverage,
            ..
        } = self;
        let mut begun =
            NativeMachine::begin(config, Some(disk), (arena, oracle), watcher, account)?;
        begun.line_coverage.covered = line_coverage.covered;
        Ok(NativeMachine {
            calls,
            events,
            injected,
            restarts: restarts + 1,
            ..begun
        })
    }

    fn begin(
        config: &'c NativeConfig,
        disk: Option<&Disk>,
        (mut arena, mut oracle): (Arena, NativeOracle),
        watcher: &'c mut dyn Watcher,
        account: MemoryAccount,
    ) -> Result<NativeMachine<'c>, NativeError> {
        let mut booted = Booted::new(config, disk, &mut arena, &mut oracle)?;
        let channel = Channel::new()?;
        let started = Started::new(config, &mut booted, &mut oracle, &channel)?;
        let own = resident(nix::unistd::getpid());
        let counted = if config.counts_own_memory { own } else { 0 };
        Ok(NativeMachine {
            config,
            host: booted.host,
            images: booted.images,
            arena,
            oracle,
            stacks: booted.stacks,
            coverage: booted.coverage,
            options: booted.options,
            threads: started.threads,
            parked: BTreeMap::new(),
            allocators: started.allocators,
            heaps: BTreeMap::new(),
            watchdog: Watchdog::start(config.max_memory.saturating_sub(counted), account.clone()),
            account,
            memory_noted_at: Duration::ZERO,
            calls: 0,
            last_call: u64::MAX,
            asked: 0,
            shared_bound: 0,
            reserved: 0,
            own_memory: own - counted,
            made_when_checked: Cell::new(made_bytes()),
            own_when_checked: Cell::new(counted),
            shown: [0; 2],
            computing: None,
            long_computations: 0,
            watcher,
            reported: 0,
            events: EventLog::new(config.keeps_events),
            stack: NativeStack::default(),
            injected: Vec::new(),
            points_passed: 0,
            progress: Progress::default(),
            access_points: started.access_points,
            restarts: 0,
            arithmetic: started.arithmetic,
            jumps: started.jumps,
            panics: started.panics,
            replacements: started.replacements,
            failing: started.failing,
            line_coverage: started.line_coverage,
            races: started.races,
            channel,
            shared_files: SharedFiles::default(),
            activity: started.activity,
            measured: RefCell::default(),
            proc_reads_before: proc_reads::count(),
            shared_memory: SharedMemory::default(),
        })
    }

    /// Returns the option of the limit at which a run ended.
    fn limit_of(&self, end: &NativeEnd) -> Option<&'static str> {
        match end {
            NativeEnd::Limit(NativeLimit::Memory(_)) => Some("max-memory"),
            NativeEnd::Limit(NativeLimit::Time) => Some("max-time"),
            NativeEnd::Limit(NativeLimit::Files(_)) => Some("max-files"),
            NativeEnd::Hang if self.calls > self.config.max_calls => Some("max-calls"),
            _ => None,
        }
    }

    /// Ends the run and returns its result.
    pub(crate) fn finish_run(mut self, end: NativeEnd) -> Result<NativeRun, NativeError> {
        self.oracle.check_remaining_choices();
        if let Some(why) = self.oracle.beyond.take() {
            return Err(NativeError::NotReplayable(why));
        }
        let end = match self.oracle.diverged.take() {
            Some(why) => NativeEnd::Diverged(format!("{}: {why}", self.position())),
            None => end,
        };
        let output = [Stream::Stdout, Stream::Stderr].map(|stream| {
            let output = self.host.output(stream);
            output.evaluate(&mut self.arena, &self.oracle.inputs)
        });
        let files = match self.config.keeps_files {
            true => self.host.changed_files(),
            false => Vec::new(),
        };
        let files = files.into_iter().map(|file| {
            let bytes = match &file.what {
                FileChange::File(bytes) => bytes.evaluate(&mut self.arena, &self.oracle.inputs),
                _ => Vec::new(),
            };
            (file, bytes)
        });
        let files = files.collect();
        let others = self.config.host.others.len();
        let ends = (0..=others).map(|number| self.host.end_of(number));
        let processes = ends
            .map(|ending| Some(self.ended(HostExit::Ended(ending?))))
            .collect();
        let first_pid = self.config.host.options.first_pid;
        let booted = first_pid..=first_pid + others as u32;
        let has_crashed = matches!(end, NativeEnd::Signal { .. } | NativeEnd::Finding { .. });
        let crashed = self.host.running_task().filter(|_| has_crashed);
        let limits_hit = self.host.limits_hit().iter().copied();
        Ok(NativeRun {
            limits_hit: limits_hit.chain(self.limit_of(&end)).collect(),
            end,
            processes,
            output,
            files,
            stack: std::mem::take(&mut self.stack),
            is_of_child: crashed.is_some_and(|name| !booted.contains(&name.pid)),
            injected: std::mem::take(&mut self.injected),
            asked_from: self.oracle.asked_from.take().unwrap_or_default(),
            lines: std::mem::take(&mut self.line_coverage.covered),
            failures: {
                let failures = self.host.injected_failures().iter();
                failures.map(|one| one.what.to_string()).collect()
            },
            clock_ns: self.host.clock_ns(),
            calls: self.calls,
            proc_reads: proc_reads::count() - self.proc_reads_before,
            warnings: self.host.warnings().to_vec(),
            refusals: self.host.refusals().to_vec(),
            log: self.host.log().to_vec(),
            trace: self.oracle.trace(),
            survey: self.access_points.survey(),
            packets: self.packets(),
            digest: self.events.digest(),
            events: self.events.events(),
        })
    }
}

/// A host of the model that has booted, and the programs that its processes execute.
struct Booted {
    host: Host,
    images: Vec<Image>,
    stacks: StackTable,
    coverage: Coverage,
    options: VmOptions,
    /// What each process executes.
    executed: Vec<Executed>,
    /// Variables of the first program, with their values.
    values: Vec<(Watch, Vec<u8>)>,
}

/// A program, with its arguments and its environment.
struct Executed {
    image: ImageId,
    args: Vec<Vec<u8>>,
    env: Vec<Vec<u8>>,
}

impl Booted {
    fn new(
        config: &NativeConfig,
        disk: Option<&Disk>,
        arena: &mut Arena,
        oracle: &mut NativeOracle,
    ) -> Result<Booted, NativeError> {
        let images = config.programs.iter();
        let images: Result<Vec<Image>, _> =
            images.map(|_| Image::new(Program::default())).collect();
        let mut images = images.map_err(|error| NativeError::Boot(error.to_string()))?;
        Image::number_all(&mut images);
        let (mut stacks, mut coverage) = (StackTable::default(), Coverage::of(&images));
        let options = VmOptions::default();
        let around = &mut ExecContext {
            images: &images,
            arena,
            oracle,
            stacks: &mut stacks,
            coverage: &mut coverage,
            options: &options,
        };
        let booted = Host::boot_native(&config.host, disk, around);
        let (host, executions, values) = booted.map_err(|stop| match stop {
            Interrupt::Bug(bug) => NativeError::Boot(bug.message),
            other => NativeError::Boot(format!("{other:?}")),
        })?;
        let mut strings = |all: &[Buffer]| -> Vec<Vec<u8>> {
            let strings = all.iter();
            let strings = strings.map(|string| oracle.inputs.string(string, arena));
            strings.collect()
        };
        let executions = executions.iter();
        let executed = executions.map(|execution| Executed {
            image: execution.image,
            args: strings(&execution.args),
            env: strings(&execution.env),
        });
        let executed = executed.collect();
        let values = values.into_iter().map(|value| {
            let bytes = oracle.inputs.bytes(&value.bytes, arena);
            (value.data, bytes)
        });
        Ok(Booted {
            host,
            executed,
            values: values.collect(),
            images,
            stacks,
            coverage,
            options,
        })
    }
}

/// The native processes of a host, with what is watched in them.
#[derive(Default)]
struct Started {
    threads: BTreeMap<TaskName, NativeThread>,
    activity: Activity,
    allocators: Vec<Allocator>,
    replacements: Replacements,
    failing: FailingFunctions,
    line_coverage: LineCoverage,
    access_points: AccessPoints,
    arithmetic: Arithmetic,
    jumps: Jumps,
    panics: Panics,
    races: Races,
}

impl Started {
    fn new(
        config: &NativeConfig,
        booted: &mut Booted,
        oracle: &mut NativeOracle,
        channel: &Channel,
    ) -> Result<Started, NativeError> {
        let mut started = Started {
            allocators: config.allocators(oracle.source())?,
            ..Started::default()
        };
        if config.asks_about_allocations(oracle.source()) {
            oracle.sees_allocations = started.allocators.iter().all(Allocator::is_known);
        }
        oracle.is_at.clone_from(&config.is_at);
        if config.keeps_callers {
            oracle.asked_from.get_or_insert_default();
        }
        if let Some(random) = &config.random_schedule {
            oracle.schedule_by_priorities(random.surveys.unwrap_or(Order::Random));
        }
        let tasks = booted.host.alive();
        for (number, task) in (0..booted.executed.len()).zip(tasks) {
            let mut tracee = started.start(config, booted, (number, task), channel)?;
            let image = booted.executed[number].image;
            started.watch(config, oracle, image, &mut tracee)?;
            if started.threads.is_empty() {
                started.watch_first(config, oracle, booted, &mut tracee)?;
            }
            if let Some(lines) = config.coverable_lines(usize::from(image.0)) {
                started.line_coverage.watch(image, &lines, &mut tracee)?;
            }
            let native = NativeThread {
                loading: loading::begin(&mut tracee)?,
                tracee,
                image,
                pending: None,
                allocator_call: None,
                failing_call: None,
                held_write: None,
                halfway_at: None,
                preempted_at: None,
                has_initialised_tls: false,
            };
            started.threads.insert(task, native);
        }
        Ok(started)
    }

    /// Starts the program of a process, before its first instruction.
    fn start(
        &self,
        config: &NativeConfig,
        booted: &mut Booted,
        (number, task): (usize, TaskName),
        channel: &Channel,
    ) -> Result<Tracee, NativeError> {
        let executed = &booted.executed[number];
        let start = Start {
            program: &config.programs[usize::from(executed.image.0)],
            args: &executed.args,
            env: &executed.env,
            channel,
        };
        let mut tracee = zygote::start(&start, config.kind())?;
        tracee.activity = self.activity.clone();
        if let Err(error) = tracee.set_up_program(&booted.host.auxiliary_values(task.pid)) {
            kill_all_tracees(vec![tracee]);
            return Err(error.into());
        }
        Ok(tracee)
    }

    /// Sets the breakpoints that every program can have.
    fn watch(
        &mut self,
        config: &NativeConfig,
        oracle: &NativeOracle,
        image: ImageId,
        tracee: &mut Tracee,
    ) -> Result<(), NativeError> {
        let number = usize::from(image.0);
        if let Some(allocator) = self.allocators.get_mut(number) {
            allocator.watch(tracee, oracle.expects(BugKind::Leak))?;
        }
        if let Some(known) = config.known_program(number) {
            let functions = &config.host.options.faults.functions;
            self.failing.watch(image, functions, &known, tracee)?;
        }
        if let Some(functions) = config.replaced.get(number) {
            let program = &config.programs[number];
            self.replacements.watch(image, functions, program, tracee)?;
        }
        NativeMachine::set_checks(config, number, tracee);
        Ok(())
    }

    /// Sets the variables of the first program, and what is watched in it only.
    fn watch_first(
        &mut self,
        config: &NativeConfig,
        oracle: &NativeOracle,
        booted: &mut Booted,
        tracee: &mut Tracee,
    ) -> Result<(), NativeError> {
        let first = booted.executed.first().map_or(0, |first| first.image.0);
        let program = &config.programs[usize::from(first)];
        place_watches(&mut booted.host, program, tracee)?;
        set_variables(&booted.values, program, tracee)?;
        self.arithmetic = config.watch_arithmetic(oracle, tracee)?;
        self.jumps = config.watch_jumps(oracle, tracee)?;
        self.panics = config.watch_panics(oracle, tracee)?;
        self.races = config.watch_races(oracle, tracee)?;
        self.access_points = config.access_points(oracle, tracee)?;
        Ok(())
    }
}

/// Sets the variables of a program that has not executed anything yet.
fn set_variables(
    values: &[(Watch, Vec<u8>)],
    program: &std::path::Path,
    tracee: &mut Tracee,
) -> Result<(), NativeError> {
    if values.is_empty() {
        return Ok(());
    }
    let variables = Variables::of(program, tracee)?;
    for (data, bytes) in values {
        let address = variables.address(&data.symbol).ok_or_else(|| {
            let (program, symbol) = (program.display(), &data.symbol);
            NativeError::NotReplayable(format!("{program} has no variable {symbol}"))
        })?;
        tracee.poke(address.wrapping_add(data.offset), bytes);
    }
    Ok(())
}

/// Sets the addresses of watched variables.
fn place_watches(
    host: &mut Host,
    program: &std::path::Path,
    tracee: &Tracee,
) -> Result<(), NativeError> {
    if !host.is_watched() {
        return Ok(());
    }
    let variables = Variables::of(program, tracee)?;
    let placed = host.place_watches(|symbol| variables.address(symbol));
    placed.map_err(|symbol| {
        let program = program.display();
        NativeError::NotReplayable(format!("{program} has no variable {symbol}"))
    })
}
