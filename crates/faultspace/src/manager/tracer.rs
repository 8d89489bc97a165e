//! Traces all processes of a test with ptrace: knows their programs, counts and fails their system
//! calls, and detects crashes.

use everett::joined_arguments;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::WaitStatus;
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::path::Path;

use super::call_arguments::{of_function_at, of_registers};
use super::sites::{Sites, identity, outside_injector};
use super::stack::{Unwinder, texts};
use super::{Crash, Injected, SiteOfCall};
use crate::injector::preload::ASK_TRACER;
use crate::injector::{CallFault, Site, is_shell};
use everett_linux::functions::FUNCTIONS;

/// A process: its program and its own counts of calls.
#[derive(Clone, Default)]
struct Process {
    /// The names of its program: file, process name, first argument. Empty before its first `exec`.
    names: Vec<String>,
    /// For each fault, the number of matching calls so far.
    counts: Vec<u64>,
    /// The stack of the signal that ends it.
    crashed_at: Vec<String>,
}

/// A thread.
struct Task {
    process: i32,
    /// The result that replaces that of the current call.
    result: Option<i64>,
}

/// The tracer of a test.
#[derive(Default)]
pub(super) struct Tracer {
    faults: Vec<CallFault>,
    programs: Vec<String>,
    tasks: BTreeMap<i32, Task>,
    processes: BTreeMap<i32, Process>,
    /// Whether signals to untraced processes are refused, because no namespace hides these.
    pub guards: bool,
    /// Faults that happened.
    pub injected: Vec<Injected>,
    /// Processes that crashed.
    pub crashes: Vec<Crash>,
    /// If set, calls are counted by program and call, and none fails.
    pub calls: Option<BTreeMap<String, u64>>,
    /// Faults of a preloaded library, which asks for their call sites.
    pub asked: Vec<CallFault>,
    /// If set, calls are counted for each call site.
    pub observed: Option<BTreeMap<SiteOfCall, BTreeMap<i32, u64>>>,
    /// The core file of the first crash.
    pub core: Option<Vec<u8>>,
    unwinder: Unwinder,
    sites: Sites,
}

/// The question of the preloaded library by which it counts the site of a call.
const COUNT_SITE: i64 = -1;

/// System calls that send signals: `kill`, `tkill`, `tgkill`, `rt_sigqueueinfo`.
pub(super) const SIGNALLING: [u32; 4] = [62, 200, 234, 129];

/// Maximum number of reported faults.
const MAX_REPORTS: usize = 100;

/// Signals by which programs crash, in contrast to those by which others kill them.
const CRASHES: &[Signal] = &[
    Signal::SIGSEGV,
    Signal::SIGABRT,
    Signal::SIGBUS,
    Signal::SIGFPE,
    Signal::SIGILL,
    Signal::SIGSYS,
    Signal::SIGTRAP,
];

/// Returns whether a signal is a crash of the program.
pub(super) fn is_crash(signal: i32) -> bool {
    CRASHES.iter().any(|crash| *crash as i32 == signal)
}

impl Tracer {
    pub(super) fn new(faults: &[CallFault], programs: &[String]) -> Tracer {
        Tracer {
            faults: faults.to_vec(),
            programs: programs.to_vec(),
            ..Tracer::default()
        }
    }

    /// Begins to trace a child that has stopped itself. The child and its descendants die with the
    /// manager.
    pub(super) fn seize(&mut self, child: Pid) -> nix::Result<()> {
        let options = Options::PTRACE_O_TRACECLONE
            | Options::PTRACE_O_TRACEFORK
            | Options::PTRACE_O_TRACEVFORK
            | Options::PTRACE_O_TRACEEXEC
            | Options::PTRACE_O_TRACESECCOMP
            | Options::PTRACE_O_TRACESYSGOOD
            | Options::PTRACE_O_EXITKILL;
        ptrace::seize(child, options)?;
        let process = child.as_raw();
        self.tasks.insert(
            process,
            Task {
                process,
                result: None,
            },
        );
        self.processes.insert(process, Process::default());
        Ok(())
    }

    /// Stops the injection.
    pub(super) fn stop_injecting(&mut self) {
        self.faults.clear();
        self.asked.clear();
        self.observed = None;
    }

    /// Returns the number of live threads.
    pub(super) fn alive(&self) -> usize {
        self.tasks.len()
    }

    /// Returns the live processes.
    pub(super) fn processes(&self) -> impl Iterator<Item = i32> + '_ {
        self.processes.keys().copied()
    }

    /// Handles an event, and resumes the thread.
    pub(super) fn handle(&mut self, status: WaitStatus) {
        match status {
            WaitStatus::Exited(pid, _) => self.remove(pid, None),
            WaitStatus::Signaled(pid, signal, _) => self.remove(pid, Some(signal)),
            WaitStatus::Stopped(pid, signal) => {
                self.task(pid);
                if CRASHES.contains(&signal) && !is_caught(pid.as_raw(), signal) {
                    self.note_crash(pid, signal);
                }
                let _ = ptrace::cont(pid, signal);
            }
            WaitStatus::PtraceSyscall(pid) => self.in_call(pid),
            WaitStatus::PtraceEvent(pid, signal, event) => self.event(pid, signal, event),
            _ => {}
        }
    }

    fn event(&mut self, pid: Pid, signal: Signal, event: i32) {
        self.task(pid);
        match event {
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                if let Ok(new) = ptrace::getevent(pid) {
                    self.born(new as i32, self.tasks[&pid.as_raw()].process);
                }
            }
            libc::PTRACE_EVENT_EXEC => self.executed(pid),
            libc::PTRACE_EVENT_SECCOMP => return self.before_call(pid),
            libc::PTRACE_EVENT_STOP if signal != Signal::SIGTRAP => {
                // A group stop lasts until a signal ends it.
                // SAFETY: the thread is stopped and traced by this process.
                unsafe { libc::ptrace(libc::PTRACE_LISTEN, pid.as_raw(), 0, 0) };
                return;
            }
            _ => {}
        }
        let _ = ptrace::cont(pid, None);
    }

    /// Registers a thread that is not yet known: it may stop before its parent reports it.
    fn task(&mut self, pid: Pid) {
        if !self.tasks.contains_key(&pid.as_raw()) {
            let parent = status_field(pid.as_raw(), "PPid:").unwrap_or(0);
            self.born(pid.as_raw(), parent);
        }
    }

    fn born(&mut self, pid: i32, parent: i32) {
        let process = status_field(pid, "Tgid:").unwrap_or(pid);
        let heir = Process {
            names: self
                .processes
                .get(&parent)
                .map(|parent| parent.names.clone())
                .unwrap_or_default(),
            ..Process::default()
        };
        self.processes.entry(process).or_insert(heir);
        self.tasks.entry(pid).or_insert(Task {
            process,
            result: None,
        });
    }

    /// Handles `exec`: the process counts from the start.
    fn executed(&mut self, pid: Pid) {
        let process = pid.as_raw();
        // The other threads are gone, and the remaining one has the id of the process.
        self.tasks.retain(|_, task| task.process != process);
        self.tasks.insert(
            process,
            Task {
                process,
                result: None,
            },
        );
        let names = names(process);
        self.processes.insert(
            process,
            Process {
                names,
                ..Process::default()
            },
        );
    }

    fn remove(&mut self, pid: Pid, signal: Option<Signal>) {
        self.tasks.remove(&pid.as_raw());
        if let Some(process) = self.processes.remove(&pid.as_raw())
            && let Some(signal) = signal
            && CRASHES.contains(&signal)
        {
            self.crashes.push(Crash {
                program: process.names.first().cloned().unwrap_or_default(),
                signal: signal as i32,
                stack: process.crashed_at,
            });
        }
    }

    /// Keeps the stack of a thread that a signal is about to end, and the first core file.
    fn note_crash(&mut self, pid: Pid, signal: Signal) {
        let Ok(registers) = ptrace::getregs(pid) else {
            return;
        };
        let stack = texts(&self.unwinder.stack(pid, &registers));
        let process = self.tasks.get(&pid.as_raw()).map(|task| task.process);
        if let Some(process) = process.and_then(|process| self.processes.get_mut(&process)) {
            process.crashed_at = stack;
        }
        if self.core.is_none() {
            self.core = super::core::of(pid, &registers, signal as i32);
        }
    }

    /// Returns whether faults apply to a process.
    fn is_meant(&self, process: &Process) -> bool {
        match self.programs.is_empty() {
            true => process.names.first().is_some_and(|name| !is_shell(name)),
            false => process
                .names
                .iter()
                .any(|name| self.programs.contains(name)),
        }
    }

    /// Returns whether a call sends a signal to processes outside of this test.
    fn is_foreign_signal(&self, registers: &libc::user_regs_struct) -> bool {
        let is_signalling = SIGNALLING
            .iter()
            .any(|call| u64::from(*call) == registers.orig_rax);
        let target = registers.rdi as i32;
        let is_own = match target {
            // The process group of the sender, which belongs to this test.
            0 => true,
            -1 => false,
            group if group < 0 => self.has_group(group.saturating_neg()),
            pid => self.processes.contains_key(&pid) || self.tasks.contains_key(&pid),
        };
        self.guards && is_signalling && !is_own
    }

    /// Returns whether a process group belongs to this test, also if its leader has exited. Each
    /// command has its own session, and a group has processes of one session only, so that one
    /// process of the test in it is enough.
    fn has_group(&self, group: i32) -> bool {
        let is_in = |pid: &i32| {
            let found = nix::unistd::getpgid(Some(Pid::from_raw(*pid)));
            found.is_ok_and(|found| found.as_raw() == group)
        };
        self.processes.keys().any(is_in)
    }

    /// Handles a thread that is about to make a trapped system call.
    fn before_call(&mut self, pid: Pid) {
        if let Ok(mut registers) = ptrace::getregs(pid)
            && self.is_foreign_signal(&registers)
        {
            registers.orig_rax = u64::MAX;
            registers.rax = -i64::from(libc::EPERM) as u64;
            let _ = ptrace::setregs(pid, registers);
            let _ = ptrace::cont(pid, None);
            return;
        }
        if let Ok(mut registers) = ptrace::getregs(pid)
            && registers.orig_rax == u64::from(ASK_TRACER)
        {
            let answer = self.answer(pid, &registers);
            registers.orig_rax = u64::MAX;
            registers.rax = u64::from(answer);
            let _ = ptrace::setregs(pid, registers);
            let _ = ptrace::cont(pid, None);
            return;
        }
        if let Some(mut registers) = ptrace::getregs(pid).ok()
            && let Some((fault, number)) = self.due(pid, &registers)
        {
            let fault = &self.faults[fault];
            // A program that retries forever fails forever; the first faults are enough.
            if self.injected.len() < MAX_REPORTS {
                self.injected.push(Injected {
                    program: self.program(pid),
                    function: fault.function.clone(),
                    number,
                    stack: texts(&self.unwinder.stack(pid, &registers)),
                    arguments: joined_arguments(&of_registers(pid, &registers)),
                });
            }
            let result = fault.result();
            if fault.happens_too() {
                if let Some(task) = self.tasks.get_mut(&pid.as_raw()) {
                    task.result = Some(result);
                }
                let _ = ptrace::syscall(pid, None);
                return;
            }
            // No call has this number: the kernel skips it and keeps the result.
            registers.orig_rax = u64::MAX;
            registers.rax = result as u64;
            let _ = ptrace::setregs(pid, registers);
        }
        let _ = ptrace::cont(pid, None);
    }

    fn program(&self, pid: Pid) -> String {
        let process = self.tasks.get(&pid.as_raw()).map(|task| task.process);
        let process = process.and_then(|process| self.processes.get(&process));
        process
            .and_then(|process| process.names.first().cloned())
            .unwrap_or_default()
    }

    /// Answers the preloaded library: whether the site of a fault is on the stack. Other questions
    /// are to count the site of a call, and to note a fault.
    fn answer(&mut self, pid: Pid, registers: &libc::user_regs_struct) -> bool {
        if let Ok(number) = usize::try_from(registers.rdi as i64) {
            let Some(fault) = self.asked.get(number) else {
                return false;
            };
            let Some(site) = fault.site.clone() else {
                return false;
            };
            let arguments = match site.arguments {
                Some(_) => of_function_at(pid, &fault.function, registers.rsi),
                None => Vec::new(),
            };
            return self.is_called_from(pid, registers, &site, &arguments);
        }
        let Some(function) = FUNCTIONS.get(registers.rsi as usize) else {
            return false;
        };
        if registers.rdi as i64 == COUNT_SITE {
            let arguments = of_function_at(pid, function.name, registers.rdx);
            self.observe(pid, registers, function.name, &arguments);
            return false;
        }
        if self.injected.len() < MAX_REPORTS {
            let frames = self.unwinder.stack(pid, registers);
            self.injected.push(Injected {
                program: self.program(pid),
                function: function.name.to_owned(),
                number: registers.rdx,
                stack: texts(outside_injector(&frames)),
                arguments: joined_arguments(&of_function_at(pid, function.name, registers.r10)),
            });
        }
        true
    }

    fn is_called_from(
        &mut self,
        pid: Pid,
        registers: &libc::user_regs_struct,
        site: &Site,
        arguments: &[String],
    ) -> bool {
        // Stacks are slower to read than arguments.
        let has_stack = site.callsite.is_some() || site.stack.is_some();
        let frames = match has_stack {
            true => self.unwinder.stack(pid, registers),
            false => Vec::new(),
        };
        self.sites.matches(site, &frames, arguments)
    }

    /// Counts the site of a call, if that was requested.
    fn observe(
        &mut self,
        pid: Pid,
        registers: &libc::user_regs_struct,
        function: &str,
        arguments: &[String],
    ) {
        let process = self.tasks.get(&pid.as_raw()).map(|task| task.process);
        if let (Some(observed), Some(process)) = (&mut self.observed, process) {
            let frames = self.unwinder.stack(pid, registers);
            let Some(site) = self.sites.name(&frames) else {
                return;
            };
            let call = SiteOfCall {
                function: function.to_owned(),
                site,
                stack: identity(&frames),
                arguments: joined_arguments(arguments),
            };
            *observed
                .entry(call)
                .or_default()
                .entry(process)
                .or_default() += 1;
        }
    }

    /// Returns the fault that hits a call, and the number of the call.
    fn due(&mut self, pid: Pid, registers: &libc::user_regs_struct) -> Option<(usize, u64)> {
        let call = registers.orig_rax;
        let process = self.tasks.get(&pid.as_raw())?.process;
        let is_meant = self.is_meant(self.processes.get(&process)?);
        if !is_meant {
            return None;
        }
        if let Some(calls) = &mut self.calls {
            let name = everett_linux::row(call).map(|row| row.name)?;
            let program = self.processes.get(&process)?.names.first()?;
            *calls
                .entry(format!("{program} {name} {process}"))
                .or_default() += 1;
            if self.observed.is_some() {
                let arguments = of_registers(pid, registers);
                self.observe(pid, registers, name, &arguments);
            }
            return None;
        }
        let mut due = None;
        for at in 0..self.faults.len() {
            let fault = &self.faults[at];
            if fault.call.map(u64::from) != Some(call) {
                continue;
            }
            let site = fault.site.clone();
            if let Some(site) = site {
                let arguments = of_registers(pid, registers);
                if !self.is_called_from(pid, registers, &site, &arguments) {
                    continue;
                }
            }
            let counts = &mut self.processes.get_mut(&process)?.counts;
            counts.resize(self.faults.len(), 0);
            counts[at] += 1;
            if self.faults[at].hits(counts[at]) && due.is_none() {
                due = Some((at, counts[at]));
            }
        }
        due
    }

    /// Handles the exit from a call whose result is replaced.
    fn in_call(&mut self, pid: Pid) {
        let task = self.tasks.get_mut(&pid.as_raw());
        if let Some(result) = task.and_then(|task| task.result.take())
            && let Ok(mut registers) = ptrace::getregs(pid)
        {
            registers.rax = result as u64;
            let _ = ptrace::setregs(pid, registers);
        }
        let _ = ptrace::cont(pid, None);
    }
}

/// Returns a field of `/proc/PID/status`.
fn status_text(pid: i32, name: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().to_owned())
}

/// Returns a number from `/proc/PID/status`.
fn status_field(pid: i32, name: &str) -> Option<i32> {
    status_text(pid, name)?.parse().ok()
}

/// Returns whether a process has a handler for a signal, or ignores it.
fn is_caught(pid: i32, signal: Signal) -> bool {
    let is_in = |name: &str| {
        let mask = status_text(pid, name).and_then(|mask| u64::from_str_radix(&mask, 16).ok());
        mask.is_some_and(|mask| mask >> (signal as i32 - 1) & 1 == 1)
    };
    is_in("SigCgt:") || is_in("SigIgn:")
}

/// Returns the names of the program that a process executes.
fn names(pid: i32) -> Vec<String> {
    let last = |path: &Path| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    let file = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let first = words.split(|byte| *byte == 0).next().unwrap_or_default();
    let first = String::from_utf8_lossy(first).into_owned();
    let own = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let own = own.trim_end().to_owned();
    let mut names: Vec<String> = file.as_deref().and_then(last).into_iter().collect();
    names.extend(last(Path::new(&first)));
    names.push(own);
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    fn sleeper(group: i32) -> Child {
        let mut command = Command::new("sleep");
        command.arg("100").process_group(group).spawn().unwrap()
    }

    fn is_refused(tracer: &Tracer, target: i32) -> bool {
        // SAFETY: all bytes of registers may be 0.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        registers.orig_rax = u64::from(SIGNALLING[0]);
        registers.rdi = target as u32 as u64;
        tracer.is_foreign_signal(&registers)
    }

    #[test]
    fn a_group_of_the_test_gets_signals_after_its_leader_has_exited() {
        let mut tracer = Tracer::new(&[], &[]);
        tracer.guards = true;
        let mut leader = sleeper(0);
        let group = leader.id() as i32;
        let (mut member, mut foreign) = (sleeper(group), sleeper(0));
        tracer.born(group, 0);
        tracer.born(member.id() as i32, 0);
        assert!(!is_refused(&tracer, -group));
        leader.kill().unwrap();
        tracer.remove(Pid::from_raw(group), None);
        let with_member = is_refused(&tracer, -group);
        // Only processes of the test that are still there make a group one of the test.
        let of_others = is_refused(&tracer, -(foreign.id() as i32));
        let (all, alone) = (is_refused(&tracer, -1), is_refused(&tracer, group));
        tracer.remove(Pid::from_raw(member.id() as i32), None);
        let without_member = is_refused(&tracer, -group);
        for child in [&mut member, &mut foreign] {
            child.kill().unwrap();
        }
        for child in [&mut leader, &mut member, &mut foreign] {
            child.wait().unwrap();
        }
        assert!(!with_member);
        assert!(of_others && all && alone && without_member);
    }
}
