//! Options of the host of a single program, shared by all operations that run one. Owns names and
//! meanings of these options; must not know how the command line supplies them.

use everett_linux::{
    Argument, FaultFilter, FaultOptions, FileSpec, GuestLimits, HostConfig, HostOptions, PreemptAt,
    Scheduler, Stdin, functions,
};
use everett_vm::Image;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::disk::RealDisk;
use crate::error::{Error, Result, bail};
use crate::layers::Mount;
use crate::load::{GuestProgram, Lowering, guest_programs, load_all, native_of, program_contents};
use crate::session::Session;

/// Options of a host.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostSpec {
    /// The complete environment of the program, as `NAME=VALUE`.
    pub env: Vec<String>,
    /// Other programs that the guest can execute, at their paths on this machine or at other paths.
    pub program: Vec<GuestProgram>,
    /// Files or folders of this disk that are mounted in the guest, at the same path or at another
    /// one. The guest writes to its own copy.
    pub ro: Vec<Mount>,
    /// Folders whose contents are copied into the program's working directory. Nothing is written
    /// back.
    pub files: Vec<Mount>,
    /// Files of this disk that are mounted at a path of the guest.
    pub file: Vec<Mount>,
    /// Working directory of the program; created if it does not exist.
    pub cwd: Option<PathBuf>,
    /// The scheduler of threads: round-robin, exhaustive (all orders), bounded:N (all orders with
    /// at most N preemptions), random:SEED.
    pub scheduler: Option<String>,
    /// Where threads can be preempted: quantum, syscalls, atomics, memory.
    pub preempt: Option<String>,
    /// Maximum number of injected failures of system calls and allocations per path. Each failure
    /// occurs with every result that its caller can distinguish.
    pub faults: u32,
    /// The failures to inject: CALL, CALL:ERRNO, CALL:short, CALL:spurious, malloc; all if empty.
    pub fault: Vec<String>,
    /// Whether failures are injected only between everett_faults_enable and everett_faults_disable.
    pub fault_regions: bool,
    /// Names of programs: failures are injected only in processes that execute one of them.
    pub fault_program: Vec<String>,
    /// Maximum number of pieces in which the bytes of pipes and streams are delivered, split in all
    /// ways.
    pub fragment: u32,
    /// The interval at which sends of a non-blocking socket fail with `EAGAIN`; 0 for none.
    pub socket_block_interval: u32,
    /// The interval at which `select` fails, alternately with `EINTR` and `ENOMEM`; 0 for none.
    pub select_fail_interval: u32,
    /// Whether unchanged files have symbolic times: their own, old and future ones.
    pub sym_file_times: bool,
    /// Whether the modes of symbolic files and streams are symbolic.
    pub sym_file_modes: bool,
    /// Whether system calls are logged.
    #[serde(skip)]
    pub logs_calls: bool,
    /// Whether the run continues after the first process has exited, until all processes have.
    pub wait_all: bool,
    /// Whether handlers of SIGSEGV, SIGFPE and similar signals handle faults. By default, a fault
    /// is a finding even if there is a handler.
    pub trust_handlers: bool,
    /// Maximum number of bytes of output; a program that prints more is terminated.
    pub max_output: Option<u64>,
    /// Maximum total size of files; writes beyond it fail with `ENOSPC`.
    pub max_files: Option<u64>,
    /// Maximum number of threads of all processes.
    pub max_processes: Option<usize>,
    /// Maximum number of system calls of a native run; a run with more is a hang.
    pub max_calls: Option<u64>,
    /// Uptime of the host when it starts.
    pub uptime: Option<Duration>,
}

/// Checks the name of a scheduler.
pub fn parse_scheduler(text: &str) -> Result<String, String> {
    Scheduler::parse(text).map(|_| text.to_owned())
}

/// Parses where threads can be preempted.
fn preempt(text: &str) -> Result<PreemptAt, String> {
    let found = PreemptAt::ALL.iter().find(|(name, _)| *name == text);
    let names = || PreemptAt::ALL.map(|(name, _)| name).join(", ");
    let unknown = || format!("{text:?} is not a preemption point; there are: {}", names());
    found.map(|(_, at)| *at).ok_or_else(unknown)
}

/// Checks the name of a failure.
pub fn parse_fault(text: &str) -> Result<String, String> {
    let filter = FaultFilter::parse(text);
    let failure = filter.failure.as_deref();
    let mut rows = everett_linux::rows();
    let known = match filter.call.as_str() {
        FaultFilter::ANY => failure.is_none_or(|name| {
            matches!(name, "short" | "spurious")
                || rows.any(|row| row.errnos.iter().any(|errno| errno.name() == name))
        }),
        "malloc" => matches!(failure, None | Some("ENOMEM")),
        "*()" => failure.is_none(),
        call if call.ends_with(functions::CALLED) => match functions::called(call) {
            None => return Err(format!("{call:?} is not a libc function that can fail")),
            Some(function) => failure.is_none_or(|name| function.failure(name).is_some()),
        },
        call => match rows.find(|row| row.name == call) {
            None => return Err(format!("{call:?} is not a system call of the model")),
            Some(row) => failure.is_none_or(|name| {
                matches!(name, "short" | "spurious")
                    || row.errnos.iter().any(|errno| errno.name() == name)
            }),
        },
    };
    if known {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?} is not a failure that can be injected"))
    }
}

/// Checks the name of a preemption mode.
pub fn parse_preempt(text: &str) -> Result<String, String> {
    preempt(text).map(|_| text.to_owned())
}

impl HostSpec {
    /// Loads the program and all others that it can start.
    pub(crate) fn load(&self, program: &Path, lowering: Lowering) -> Result<Vec<Image>> {
        load_all(program, &self.program, lowering)
    }

    /// Returns the native programs; the one with which the host starts comes first.
    pub(crate) fn native_programs(&self, first: &Path) -> Vec<PathBuf> {
        let others = self.program.iter().map(|other| other.file.as_path());
        let all = std::iter::once(first).chain(others);
        all.map(native_of).collect()
    }

    /// Returns the environment of the program, which does not inherit Everett's.
    pub(crate) fn environment(&self) -> Vec<Argument> {
        let variables = self.env.iter();
        let variable = |text: &String| Argument::Concrete(text.as_bytes().to_vec());
        variables.map(variable).collect()
    }

    /// Replaces the program at a guest path by another build.
    pub(crate) fn replace(&mut self, path: &str, file: &Path) -> Result<()> {
        let mut programs = self.program.iter_mut();
        let Some(program) = programs.find(|program| program.path == path) else {
            bail!(Usage, "the run has no program {path}");
        };
        program.file = file.to_owned();
        Ok(())
    }

    /// Schedules threads at random unless the spec names a scheduler; every
    /// choice becomes part of the trace.
    pub(crate) fn schedule_at_random(&mut self) {
        self.scheduler.get_or_insert("exhaustive".to_owned());
        self.preempt.get_or_insert("syscalls".to_owned());
    }

    /// Returns the host of a program that runs as on Linux: it reads the real standard input,
    /// faults go to signal handlers, and the crash of a child does not end its parent.
    pub(crate) fn live(
        &self,
        command: &[OsString],
        logs_calls: bool,
        session: &Session,
    ) -> Result<HostConfig> {
        let word = |word: &OsString| Argument::Concrete(word.as_bytes().to_vec());
        let mut config = HostConfig {
            args: command.iter().map(word).collect(),
            env: self.environment(),
            stdin: Stdin::Live,
            ..HostConfig::default()
        };
        config.options.logs_calls = logs_calls;
        config.options.crashes_end_all = false;
        config.options.faults_to_handlers = true;
        self.apply(&mut config, session)?;
        let program = command.first().map(Path::new).unwrap_or(Path::new(""));
        let programs = self.native_programs(program);
        config.program_contents = program_contents(&RealDisk, &programs, &session.notices)?;
        Ok(config)
    }

    /// Returns the files of the disk that the guest sees.
    pub(crate) fn mounted(&self, session: &Session) -> Result<Vec<FileSpec>> {
        let mut files = Vec::new();
        for mount in self.ro.iter().chain(&self.files).chain(&self.file) {
            files.extend(mount.specs(&session.notices)?);
        }
        Ok(files)
    }

    /// Applies the options to a configuration.
    pub(crate) fn apply(&self, config: &mut HostConfig, session: &Session) -> Result<()> {
        config.programs = guest_programs(&self.program);
        // Symbolic files take precedence over files of the disk.
        config.files.splice(0..0, self.mounted(session)?);
        if let Some(cwd) = &self.cwd {
            config.cwd = cwd.as_os_str().as_bytes().to_vec();
        }
        self.apply_options(&mut config.options)
    }

    /// Returns whether libc functions may fail.
    pub(crate) fn fails_functions(&self) -> bool {
        let is_function =
            |text: &String| FaultFilter::parse(text).call.ends_with(functions::CALLED);
        self.fault.iter().any(is_function)
    }

    /// Returns which failures are injected: those of the options, or else those that the program's
    /// arguments ask for.
    fn failures(&self, options: &HostOptions) -> Arc<[FaultFilter]> {
        if self.faults == 0 && self.fault.is_empty() {
            return options.faults.only.clone();
        }
        let named = self.fault.iter();
        named.map(|text| FaultFilter::parse(text)).collect()
    }

    /// Applies the options except those about programs and files.
    pub(crate) fn apply_options(&self, options: &mut HostOptions) -> Result<()> {
        let chosen = self.scheduler.as_deref().map(Scheduler::parse).transpose();
        let chosen = chosen.map_err(Error::Invalid)?.unwrap_or_default();
        let wanted = self.preempt.as_deref().map(preempt).transpose();
        let preempt_at = match wanted.map_err(Error::Invalid)? {
            Some(preempt_at) => preempt_at,
            None if !chosen.preempts() => PreemptAt::Quantum,
            None => PreemptAt::Atomics,
        };
        *options = HostOptions {
            scheduler: chosen,
            preempt_at,
            waits_for_all: self.wait_all,
            symbolic_file_times: self.sym_file_times,
            symbolic_file_modes: self.sym_file_modes,
            faults_to_handlers: self.trust_handlers || options.faults_to_handlers,
            logs_calls: self.logs_calls || options.logs_calls,
            limits: GuestLimits {
                output: self.max_output.unwrap_or(options.limits.output),
                files: self.max_files.unwrap_or(options.limits.files),
                tasks: self.max_processes.unwrap_or(options.limits.tasks),
                calls: self.max_calls.unwrap_or(options.limits.calls),
            },
            uptime_ns: self.uptime.map_or(options.uptime_ns, |uptime| {
                u64::try_from(uptime.as_nanos()).unwrap_or(u64::MAX / 2)
            }),
            faults: FaultOptions {
                most: self.faults.max(options.faults.most),
                in_regions: self.fault_regions,
                programs: self.fault_program.clone().into(),
                fragments: self.fragment,
                block_interval: self.socket_block_interval,
                select_interval: self.select_fail_interval,
                ..FaultOptions::default()
            }
            .with_filters(self.failures(options)),
            ..options.clone()
        };
        Ok(())
    }
}
