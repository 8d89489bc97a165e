//! Flags about the host that programs run on, the same for all commands that run one.

use anyhow::Result;
use everett_linux::{HostConfig, HostOptions, PreemptAt, SchedulerKind};
use everett_vm::Image;
use serde::{Deserialize, Serialize};
use std::path::Path;

use crate::load::{GuestProgram, guest_programs, load_all};

/// What a host is told.
#[derive(clap::Args, Clone, Debug, Default, Serialize, Deserialize)]
pub struct HostArgs {
    /// Another program that can be started by execve, at the path where it is here or at PATH.
    #[arg(long, value_name = "[PATH=]PROGRAM", value_parser = GuestProgram::parse)]
    #[serde(default)]
    program: Vec<GuestProgram>,
    /// Which thread runs next: round-robin, exhaustive (all orders), bounded:N (all orders with at most N
    /// preemptions), random:SEED.
    #[arg(long, value_name = "NAME", value_parser = parse_scheduler)]
    #[serde(default)]
    scheduler: Option<String>,
    /// Where threads can be preempted: quantum, syscalls, atomics, memory.
    #[arg(long, value_name = "WHERE", value_parser = parse_preempt)]
    #[serde(default)]
    preempt: Option<String>,
    /// Go on after the end of the first process until all processes have ended.
    #[arg(long)]
    #[serde(default)]
    wait_all: bool,
}

/// The scheduler of this name.
fn scheduler(text: &str) -> Result<SchedulerKind, String> {
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

fn parse_scheduler(text: &str) -> Result<String, String> {
    scheduler(text).map(|_| text.to_owned())
}

/// Where threads can be preempted.
fn preempt(text: &str) -> Result<PreemptAt, String> {
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

fn parse_preempt(text: &str) -> Result<String, String> {
    preempt(text).map(|_| text.to_owned())
}

impl HostArgs {
    /// Loads the program and all others that it can start.
    pub fn load(&self, program: &Path, promote: bool) -> Result<Vec<Image>> {
        load_all(program, &self.program, promote)
    }

    /// Puts what was told into a configuration.
    pub fn apply(&self, config: &mut HostConfig) -> Result<()> {
        config.programs = guest_programs(&self.program);
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
            ..config.options
        };
        Ok(())
    }
}
