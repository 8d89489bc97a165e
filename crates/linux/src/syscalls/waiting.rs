//! Waiting for state changes of children, and reaping them.

use everett_vm::{Buffer, Value, resize};

use crate::errno::Errno;
use crate::kernel::{Answer, Kernel, Stop};
use crate::objects::REAPED;
use crate::process::{ExitState, ExitStatus, ProcessState, StateChange};
use crate::signals::{SIGCHLD, SIGCONT, code};
use crate::syscalls::identity::{USAGE_SIZE, Usage};
use crate::table::ArgKind::{Flags, Int, Pointer};
use crate::table::{Call, Row};
use crate::wait::{ChildFilter, ChildSelector, WaitCondition};

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new(
        "wait4",
        61,
        &[Int, Pointer, Flags, Pointer],
        &[Errno::EINTR],
        wait4,
    )
    .without(USAGE),
    Row::new(
        "waitid",
        247,
        &[Int, Int, Pointer, Flags, Pointer],
        &[Errno::EINTR],
        waitid,
    )
    .without(USAGE),
];

const USAGE: &str = "all of rusage but times, memory, page faults and voluntary switches";

const NO_HANG: u64 = 1;
const STOPPED: u64 = 2;
const EXITED: u64 = 4;
const CONTINUED: u64 = 8;
const NO_WAIT: u64 = 0x100_0000;
const NO_THREAD: u64 = 0x2000_0000;
const ALL: u64 = 0x4000_0000;
const CLONE: u64 = 0x8000_0000;

/// A state change of a child, as `wait` reports it.
#[derive(Copy, Clone)]
enum Report {
    Exit(ExitStatus),
    Change(StateChange),
}

impl ChildSelector {
    /// Whether a child is selected.
    pub fn include(&self, child: &ProcessState) -> bool {
        let is_clone = child.exit_signal != SIGCHLD;
        let is_wanted = self.options & ALL != 0 || is_clone == (self.options & CLONE != 0);
        is_wanted
            && match self.which {
                ChildFilter::Any => true,
                ChildFilter::Pid(pid) => child.pid == pid,
                ChildFilter::Group(group) => child.group == group,
            }
    }

    /// Whether a child has a state change that the options ask for.
    pub fn has_report_on(&self, child: &ProcessState) -> bool {
        self.report_of(child).is_some()
    }

    fn report_of(&self, child: &ProcessState) -> Option<Report> {
        let wants = |kind: u64| self.options & kind != 0;
        match (child.exit_state, child.state_change) {
            (ExitState::Zombie(exit_status), _) if wants(EXITED) => Some(Report::Exit(exit_status)),
            (ExitState::Alive, Some(change @ StateChange::Stopped(_))) if wants(STOPPED) => {
                Some(Report::Change(change))
            }
            (ExitState::Alive, Some(StateChange::Continued)) if wants(CONTINUED) => {
                Some(Report::Change(StateChange::Continued))
            }
            _ => None,
        }
    }
}

fn wait4(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const KNOWN: u64 = NO_HANG | STOPPED | CONTINUED | NO_THREAD | ALL | CLONE;
    let options = call.args[2] & 0xffff_ffff;
    if options & !KNOWN != 0 {
        return Err(Errno::EINVAL.into());
    }
    let which = match call.int(0) {
        -1 => ChildFilter::Any,
        0 => ChildFilter::Group(kernel.process().group),
        pid if pid > 0 => ChildFilter::Pid(pid as u32),
        i32::MIN => return Err(Errno::ESRCH.into()),
        group => ChildFilter::Group(group.unsigned_abs()),
    };
    let options = options | EXITED;
    let Some((pid, report)) = kernel.report(ChildSelector { which, options })? else {
        return Ok(Value::ZERO);
    };
    let status = match report {
        Report::Exit(ExitStatus::Exit(status)) => {
            let term = status.to_term(kernel.vm.arena, 8);
            let zero = kernel.vm.arena.zero(8);
            let low = kernel.vm.arena.concat(term, zero);
            let wide = resize(kernel.vm.arena, low, 32);
            Value::of_term(kernel.vm.arena, wide)
        }
        Report::Exit(ExitStatus::Signal(signal)) => Value::concrete(signal as u64),
        Report::Change(StateChange::Stopped(signal)) => {
            Value::concrete((signal as u64) << 8 | 0x7f)
        }
        Report::Change(StateChange::Continued) => Value::concrete(0xffff),
    };
    if call.args[3] != 0 {
        kernel.check(call.args[3], USAGE_SIZE, true)?;
    }
    if call.args[1] != 0 {
        let mut bytes = Buffer::zeroed(4);
        bytes.store(0, 4, status);
        kernel.write_buffer(call.args[1], &bytes)?;
    }
    kernel.write_usage_of_child(pid, call.args[3])?;
    kernel.note_report(pid, report);
    Ok(Value::concrete(u64::from(pid)))
}

fn waitid(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const KINDS: u64 = EXITED | STOPPED | CONTINUED;
    const KNOWN: u64 = KINDS | NO_HANG | NO_WAIT | NO_THREAD | ALL | CLONE;
    let options = call.args[3] & 0xffff_ffff;
    if options & !KNOWN != 0 || options & KINDS == 0 {
        return Err(Errno::EINVAL.into());
    }
    let id = call.int(1);
    const DESCRIPTOR: i32 = 3;
    let which = match call.int(0) {
        0 => ChildFilter::Any,
        1 if id > 0 => ChildFilter::Pid(id as u32),
        2 if id == 0 => ChildFilter::Group(kernel.process().group),
        2 if id > 0 => ChildFilter::Group(id as u32),
        DESCRIPTOR if id >= 0 => ChildFilter::Pid(kernel.process_of_descriptor(id)?),
        _ => return Err(Errno::EINVAL.into()),
    };
    let is_nonblocking =
        call.int(0) == DESCRIPTOR && options & NO_HANG == 0 && kernel.is_nonblocking(id);
    let hang = if is_nonblocking { NO_HANG } else { 0 };
    let options = options | hang;
    let found = kernel.report(ChildSelector { which, options })?;
    if found.is_none() && is_nonblocking {
        return Err(Errno::EAGAIN.into());
    }
    if call.args[2] != 0 {
        kernel.check(call.args[2], 128, true)?;
    }
    let mut head = [0u32; 3];
    let mut tail = Buffer::zeroed(12);
    if let Some((pid, report)) = found {
        let (code, status) = match report {
            Report::Exit(ExitStatus::Exit(status)) => {
                let term = status.to_term(kernel.vm.arena, 8);
                let wide = resize(kernel.vm.arena, term, 32);
                (code::CHILD_EXITED, Value::of_term(kernel.vm.arena, wide))
            }
            Report::Exit(ExitStatus::Signal(signal)) => {
                (code::CHILD_KILLED, Value::concrete(signal as u64))
            }
            Report::Change(StateChange::Stopped(signal)) => {
                (code::CHILD_STOPPED, Value::concrete(signal as u64))
            }
            Report::Change(StateChange::Continued) => {
                (code::CHILD_CONTINUED, Value::concrete(SIGCONT as u64))
            }
        };
        head = [SIGCHLD as u32, 0, code as u32];
        let child = kernel.host.process_by_pid(pid);
        let user = child.map_or(0, |child| child.uid[0]);
        tail.write(0, &[pid, user].map(u32::to_le_bytes).concat());
        tail.store(8, 4, status);
    }
    if call.args[2] != 0 {
        kernel.write_bytes(call.args[2], &head.map(u32::to_le_bytes).concat())?;
        kernel.write_buffer(call.args[2] + 16, &tail)?;
    }
    if let Some((pid, report)) = found {
        kernel.write_usage_of_child(pid, call.args[4])?;
        if options & NO_WAIT == 0 {
            kernel.note_report(pid, report);
        }
    }
    Ok(Value::ZERO)
}

impl Kernel<'_, '_> {
    /// A child with a state change to report; `None` if there is none yet and `WNOHANG` is set.
    fn report(&mut self, children: ChildSelector) -> Result<Option<(u32, Report)>, Stop> {
        let own = self.process().pid;
        let mut any = false;
        for child in &self.host.processes {
            let is_gone = matches!(child.exit_state, ExitState::Reaped);
            if child.parent != own || is_gone || !children.include(child) {
                continue;
            }
            any = true;
            if let Some(report) = children.report_of(child) {
                return Ok(Some((child.pid, report)));
            }
        }
        if !any {
            return Err(Errno::ECHILD.into());
        }
        if children.options & NO_HANG != 0 {
            return Ok(None);
        }
        Err(self.wait_restartable(WaitCondition::Child(children), "a child"))
    }

    /// Marks a state change as reported; reaps a zombie.
    fn note_report(&mut self, pid: u32, report: Report) {
        let Some(child) = self.host.process_by_pid_mut(pid) else {
            return;
        };
        match report {
            Report::Change(_) => child.state_change = None,
            Report::Exit(_) => {
                child.exit_state = ExitState::Reaped;
                let used = child.cpu_ns.saturating_add(child.children_cpu_ns);
                let most = child.most_memory.max(child.children_most_memory).max(1);
                let waits = child.waits.saturating_add(child.children_waits);
                self.host.has_exits = true;
                self.host.announce_exit(pid, REAPED);
                let own = self.process_mut();
                own.children_cpu_ns = own.children_cpu_ns.saturating_add(used);
                own.children_most_memory = own.children_most_memory.max(most);
                own.children_waits = own.children_waits.saturating_add(waits);
            }
        }
    }

    fn write_usage_of_child(&mut self, pid: u32, address: u64) -> Result<(), Stop> {
        if address == 0 {
            return Ok(());
        }
        let child = self.host.process_by_pid(pid);
        let used = Usage {
            cpu_ns: child.map_or(0, |child| child.cpu_ns),
            memory: child.map(|child| child.most_memory.max(child.children_most_memory)),
            waits: child.map_or(0, |child| child.waits),
        };
        self.write_bytes(address, &used.to_bytes())
    }
}
