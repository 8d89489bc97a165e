//! Flags about the host that programs run on, the same for all commands that run one.

use anyhow::Result;
use everett_linux::{FaultFilter, FaultOptions, HostConfig, HostOptions, PreemptAt, SchedulerKind};
use everett_vm::Image;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::bootstrap::absolute;
use crate::bootstrap_text::{list, quoted, quoted_path};
use crate::layers::Mount;
use crate::load::{GuestProgram, guest_programs, load_all};

/// What a host is told.
#[derive(clap::Args, Clone, Debug, Default, Serialize, Deserialize)]
pub struct HostArgs {
    /// Another program that can be started by execve, at the path where it is here or at PATH.
    #[arg(long, value_name = "[PATH=]PROGRAM", value_parser = GuestProgram::parse)]
    #[serde(default)]
    program: Vec<GuestProgram>,
    /// A file or folder of this disk that the program sees, at the same path or at GUESTPATH. What it writes
    /// there reaches only its own copy.
    #[arg(long, value_name = "PATH[=GUESTPATH]", value_parser = Mount::parse)]
    #[serde(default)]
    ro: Vec<Mount>,
    /// Copies what lies in this folder into the program's working directory. Nothing is written back.
    #[arg(long, value_name = "DIR", value_parser = Mount::parse_folder)]
    #[serde(default)]
    files: Vec<Mount>,
    /// A file of this disk that the program finds at GUESTPATH.
    #[arg(long, value_name = "GUESTPATH=FILE", value_parser = Mount::parse_file)]
    #[serde(default)]
    file: Vec<Mount>,
    /// The directory that the program starts in; made if it is not there.
    #[arg(long, value_name = "DIR")]
    #[serde(default)]
    cwd: Option<PathBuf>,
    /// Which thread runs next: round-robin, exhaustive (all orders), bounded:N (all orders with at most N
    /// preemptions), random:SEED.
    #[arg(long, value_name = "NAME", value_parser = parse_scheduler)]
    #[serde(default)]
    scheduler: Option<String>,
    /// Where threads can be preempted: quantum, syscalls, atomics, memory.
    #[arg(long, value_name = "WHERE", value_parser = parse_preempt)]
    #[serde(default)]
    preempt: Option<String>,
    /// Let at most N system calls and allocations on a path fail, each in every way that its caller can tell apart.
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[serde(default)]
    faults: u32,
    /// Only these failures: CALL, CALL:ERRNO, CALL:short, CALL:spurious, malloc.
    #[arg(long, value_name = "CALL[:ERRNO]", value_delimiter = ',', requires = "faults", value_parser = parse_fault)]
    #[serde(default)]
    fault: Vec<String>,
    /// Failures only between everett_faults_enable and everett_faults_disable.
    #[arg(long, requires = "faults")]
    #[serde(default)]
    fault_regions: bool,
    /// Failures only in processes that execute a program of this name.
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "faults")]
    #[serde(default)]
    fault_program: Vec<String>,
    /// Let bytes of pipes and streams arrive in up to N pieces, in all ways.
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[serde(default)]
    fragment: u32,
    #[arg(skip)]
    #[serde(skip)]
    logs_calls: bool,
    /// Go on after the end of the first process until all processes have ended.
    #[arg(long)]
    #[serde(default)]
    wait_all: bool,
    /// Let handlers of SIGSEGV, SIGFPE and their like deal with faults; otherwise faults are findings though there
    /// is a handler.
    #[arg(long)]
    #[serde(default)]
    trust_handlers: bool,
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

/// Refuses failures that nothing can have.
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

pub fn parse_preempt(text: &str) -> Result<String, String> {
    preempt(text).map(|_| text.to_owned())
}

impl HostArgs {
    /// Loads the program and all others that it can start.
    pub fn load(&self, program: &Path, promote: bool) -> Result<Vec<Image>> {
        load_all(program, &self.program, promote)
    }

    /// The native programs, the first one first.
    pub fn native_programs(&self, first: &Path) -> Vec<PathBuf> {
        let without_suffix = |program: &Path| match program.extension() {
            Some(extension) if extension == "bc" => program.with_extension(""),
            _ => program.to_owned(),
        };
        let others = self.program.iter().map(|other| other.file.as_path());
        let all = std::iter::once(first).chain(others);
        all.map(without_suffix).collect()
    }

    /// Puts another build in the place of the program that the guest finds there.
    pub fn replace(&mut self, path: &str, file: &Path) -> Result<()> {
        let mut programs = self.program.iter_mut();
        let Some(program) = programs.find(|program| program.path == path) else {
            anyhow::bail!("the run has no program {path}");
        };
        program.file = file.to_owned();
        Ok(())
    }

    /// Where nothing else is asked for, threads take turns at random: every choice is one of the trace.
    pub fn schedule_at_random(&mut self) {
        self.scheduler.get_or_insert("exhaustive".to_owned());
        self.preempt.get_or_insert("syscalls".to_owned());
    }

    /// System calls are to be logged.
    pub fn log_calls(&mut self) {
        self.logs_calls = true;
    }

    /// What a scenario says of a host that is told the same.
    pub fn scenario_keys(&self) -> Result<String> {
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

    /// Puts what was told into a configuration.
    pub fn apply(&self, config: &mut HostConfig) -> Result<()> {
        config.programs = guest_programs(&self.program);
        let mut files = Vec::new();
        for mount in self.ro.iter().chain(&self.files).chain(&self.file) {
            files.extend(mount.specs()?);
        }
        // What is symbolic lies above what is on the disk.
        config.files.splice(0..0, files);
        if let Some(cwd) = &self.cwd {
            config.cwd = cwd.as_os_str().as_bytes().to_vec();
        }
        let chosen = self.scheduler.as_deref().map(scheduler).transpose();
        let chosen = chosen.map_err(anyhow::Error::msg)?.unwrap_or_default();
        let wanted = self.preempt.as_deref().map(preempt).transpose();
        let preempt_at = match wanted.map_err(anyhow::Error::msg)? {
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
