//! Options of the host that one program runs on, shared by all operations that run one. Owns names and meanings of
//! these options; must not know how the command line supplies them.

use everett_linux::{FaultFilter, FaultOptions, HostConfig, HostOptions, PreemptAt, SchedulerKind};
use everett_vm::Image;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::bootstrap::absolute;
use crate::bootstrap::text::{list, quoted, quoted_path};
use crate::error::{Error, Result, bail};
use crate::layers::Mount;
use crate::load::{GuestProgram, guest_programs, load_all};
use crate::session::Session;

/// Options of a host.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostSpec {
    /// Another program that can be started by execve, at the path where it is here or at PATH.
    pub program: Vec<GuestProgram>,
    /// A file or folder of this disk that the program sees, at the same path or at GUESTPATH. What it writes
    /// there reaches only its own copy.
    pub ro: Vec<Mount>,
    /// Copies what lies in this folder into the program's working directory. Nothing is written back.
    pub files: Vec<Mount>,
    /// A file of this disk that the program finds at GUESTPATH.
    pub file: Vec<Mount>,
    /// The directory that the program starts in; made if it is not there.
    pub cwd: Option<PathBuf>,
    /// Which thread runs next: round-robin, exhaustive (all orders), bounded:N (all orders with at most N
    /// preemptions), random:SEED.
    pub scheduler: Option<String>,
    /// Where threads can be preempted: quantum, syscalls, atomics, memory.
    pub preempt: Option<String>,
    /// Let at most N system calls and allocations on a path fail, each in every way that its caller can tell apart.
    pub faults: u32,
    /// Only these failures: CALL, CALL:ERRNO, CALL:short, CALL:spurious, malloc.
    pub fault: Vec<String>,
    /// Failures only between everett_faults_enable and everett_faults_disable.
    pub fault_regions: bool,
    /// Failures only in processes that execute a program of this name.
    pub fault_program: Vec<String>,
    /// Let bytes of pipes and streams arrive in up to N pieces, in all ways.
    pub fragment: u32,
    /// Whether system calls are logged.
    #[serde(skip)]
    pub logs_calls: bool,
    /// Go on after the end of the first process until all processes have ended.
    pub wait_all: bool,
    /// Let handlers of SIGSEGV, SIGFPE and their like deal with faults; otherwise faults are findings though there
    /// is a handler.
    pub trust_handlers: bool,
}

/// The scheduler of this name.
pub fn scheduler(text: &str) -> Result<SchedulerKind, String> {
    let (name, number) = match text.split_once(':') {
        Some((name, number)) => (name, Some(number)),
        None => (text, None),
    };
    let number = number.map(|digits| {
        digits
            .parse::<u64>()
            .map_err(|_| format!("{digits:?} is no number"))
    });
    match (name, number.transpose()?) {
        ("round-robin", None) => Ok(SchedulerKind::RoundRobin),
        ("exhaustive", None) => Ok(SchedulerKind::Exhaustive),
        ("bounded", Some(most)) => Ok(SchedulerKind::Bounded(most.min(u32::MAX.into()) as u32)),
        ("random", Some(seed)) => Ok(SchedulerKind::Random(seed)),
        _ => Err(format!(
            "{text:?} is no scheduler; use round-robin, exhaustive, bounded:N or random:SEED"
        )),
    }
}

/// Checks the name of a scheduler.
pub fn parse_scheduler(text: &str) -> Result<String, String> {
    scheduler(text).map(|_| text.to_owned())
}

/// Where threads can be preempted.
pub fn preempt(text: &str) -> Result<PreemptAt, String> {
    match text {
        "quantum" => Ok(PreemptAt::Quantum),
        "syscalls" => Ok(PreemptAt::SystemCalls),
        "atomics" => Ok(PreemptAt::Atomics),
        "memory" => Ok(PreemptAt::Memory),
        _ => Err(format!(
            "{text:?} is no place of preemption; use quantum, syscalls, atomics or memory"
        )),
    }
}

/// Checks the name of a failure.
pub fn parse_fault(text: &str) -> Result<String, String> {
    let filter = FaultFilter::parse(text);
    let failure = filter.failure.as_deref();
    let known = match filter.call.as_str() {
        "malloc" => matches!(failure, None | Some("ENOMEM")),
        call => match everett_linux::rows().find(|row| row.name == call) {
            None => return Err(format!("{call:?} is no system call of the model")),
            Some(row) => failure.is_none_or(|name| {
                matches!(name, "short" | "spurious")
                    || row.errnos.iter().any(|errno| errno.name() == name)
            }),
        },
    };
    if known {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?} is no failure that can be injected"))
    }
}

/// Checks the name of a preemption mode.
pub fn parse_preempt(text: &str) -> Result<String, String> {
    preempt(text).map(|_| text.to_owned())
}

impl HostSpec {
    /// Loads the program and all others that it can start.
    pub(crate) fn load(&self, program: &Path, promote: bool) -> Result<Vec<Image>> {
        load_all(program, &self.program, promote)
    }

    /// The native programs; the one that the host starts with comes first.
    pub(crate) fn native_programs(&self, first: &Path) -> Vec<PathBuf> {
        let without_suffix = |program: &Path| match program.extension() {
            Some(extension) if extension == "bc" => program.with_extension(""),
            _ => program.to_owned(),
        };
        let others = self.program.iter().map(|other| other.file.as_path());
        let all = std::iter::once(first).chain(others);
        all.map(without_suffix).collect()
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

    /// Schedules threads at random unless the spec names a scheduler; every choice becomes part of the trace.
    pub(crate) fn schedule_at_random(&mut self) {
        self.scheduler.get_or_insert("exhaustive".to_owned());
        self.preempt.get_or_insert("syscalls".to_owned());
    }

    /// The keys of a scenario that give a host the same options.
    pub(crate) fn scenario_keys(&self) -> Result<String> {
        let mut text = String::new();
        let mut key = |name: &str, value: String| {
            if !matches!(value.as_str(), "[]" | "0" | "false") {
                text.push_str(&format!("{name} = {value}\n"));
            }
        };
        for program in &self.program {
            let file = quoted_path(&absolute(&program.file)?)?;
            key(&format!("programs.{}", quoted(&program.path)), file);
        }
        let (mut mounts, mut folders) = (Vec::new(), Vec::new());
        for (from, to) in self.ro.iter().map(Mount::ends) {
            let (from, to) = (from.as_os_str(), to.as_os_str());
            let ends = [from, to].join(OsStr::new("="));
            mounts.push(quoted_path(Path::new(&ends))?);
        }
        for (from, _) in self.files.iter().map(Mount::ends) {
            folders.push(quoted_path(from)?);
        }
        key("ro", list(mounts));
        key("files", list(folders));
        for (from, to) in self.file.iter().map(Mount::ends) {
            key(&format!("file.{}", quoted_path(to)?), quoted_path(from)?);
        }
        if let Some(cwd) = &self.cwd {
            key("cwd", quoted_path(cwd)?);
        }
        for (name, word) in [("scheduler", &self.scheduler), ("preempt", &self.preempt)] {
            if let Some(word) = word {
                key(name, quoted(word));
            }
        }
        let texts = |texts: &[String]| list(texts.iter().map(|text| quoted(text)));
        key("faults", self.faults.to_string());
        key("fault_calls", texts(&self.fault));
        key("fault_programs", texts(&self.fault_program));
        key("fault_regions", self.fault_regions.to_string());
        key("fragment", self.fragment.to_string());
        key("wait_all", self.wait_all.to_string());
        key("trust_handlers", self.trust_handlers.to_string());
        Ok(text)
    }

    /// Applies the options to a configuration.
    pub(crate) fn apply(&self, config: &mut HostConfig, session: &Session) -> Result<()> {
        config.programs = guest_programs(&self.program);
        let mut files = Vec::new();
        for mount in self.ro.iter().chain(&self.files).chain(&self.file) {
            files.extend(mount.specs(&session.notices)?);
        }
        // Symbolic files take precedence over those of the disk.
        config.files.splice(0..0, files);
        if let Some(cwd) = &self.cwd {
            config.cwd = cwd.as_os_str().as_bytes().to_vec();
        }
        let chosen = self.scheduler.as_deref().map(scheduler).transpose();
        let chosen = chosen.map_err(Error::Invalid)?.unwrap_or_default();
        let wanted = self.preempt.as_deref().map(preempt).transpose();
        let preempt_at = match wanted.map_err(Error::Invalid)? {
            Some(preempt_at) => preempt_at,
            None if chosen == SchedulerKind::RoundRobin => PreemptAt::Quantum,
            None => PreemptAt::Atomics,
        };
        config.options = HostOptions {
            scheduler: chosen,
            preempt_at,
            waits_for_all: self.wait_all,
            faults_to_handlers: self.trust_handlers || config.options.faults_to_handlers,
            logs_calls: self.logs_calls || config.options.logs_calls,
            faults: FaultOptions {
                most: self.faults,
                only: self
                    .fault
                    .iter()
                    .map(|text| FaultFilter::parse(text))
                    .collect(),
                in_regions: self.fault_regions,
                programs: self.fault_program.clone().into(),
                fragments: self.fragment,
            },
            ..config.options.clone()
        };
        Ok(())
    }
}
