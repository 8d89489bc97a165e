//! Signals: sending them to oneself, what to do with them, and delivering them.

use everett_vm::{Bug, BugKind, OnReturn, Value};
use triomphe::Arc;

use crate::errno::Errno;
use crate::host::HostState;
use crate::kernel::{Kernel, Stop};
use crate::process::{Death, Doing, Life, ProcessState, SIGNALS, SignalAction, TaskState};
use crate::table::ArgKind::{Int, Pointer};
use crate::table::{Answer, Call, Row};
use crate::wait::Wait;

/// The family.
pub const ROWS: &[Row] = &[
    Row::new(
        "rt_sigaction",
        13,
        &[Int, Pointer, Pointer, Int],
        &[],
        rt_sigaction,
    )
    .without("registers in the context of a handler, SA_ONSTACK, SA_RESTART"),
    Row::new(
        "rt_sigprocmask",
        14,
        &[Int, Pointer, Pointer, Int],
        &[],
        rt_sigprocmask,
    ),
    Row::new("rt_sigpending", 127, &[Pointer, Int], &[], rt_sigpending),
    Row::new("sigaltstack", 131, &[Pointer, Pointer], &[], sigaltstack)
        .without("handlers do not run on it"),
    Row::new("kill", 62, &[Int, Int], &[], kill),
    Row::new("tkill", 200, &[Int, Int], &[], tkill),
    Row::new("tgkill", 234, &[Int, Int, Int], &[], tgkill),
];

pub const SIGILL: i32 = 4;
pub const SIGABRT: i32 = 6;
pub const SIGFPE: i32 = 8;
pub const SIGKILL: i32 = 9;
pub const SIGSEGV: i32 = 11;
pub const SIGPIPE: i32 = 13;
pub const SIGCHLD: i32 = 17;
pub const SIGSTOP: i32 = 19;
pub const DEFAULT: u64 = 0;
pub const IGNORE: u64 = 1;
/// SIGCHLD, SIGCONT, SIGURG, SIGWINCH: nothing happens by default.
const HARMLESS: &[i32] = &[17, 18, 23, 28];
/// SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU.
const STOPPING: &[i32] = &[19, 20, 21, 22];

pub const SA_NOCLDWAIT: u64 = 2;
const SA_SIGINFO: u64 = 4;
const SA_RESTART: u64 = 0x1000_0000;
const SA_NODEFER: u64 = 0x4000_0000;
const SA_RESETHAND: u64 = 0x8000_0000;

pub fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// SIGKILL and SIGSTOP cannot be blocked.
fn blockable(mask: u64) -> u64 {
    mask & !(bit(SIGKILL) | bit(SIGSTOP))
}

fn valid(signal: i32) -> Result<i32, Errno> {
    if (1..=SIGNALS as i32).contains(&signal) {
        Ok(signal)
    } else {
        Err(Errno::EINVAL)
    }
}

fn rt_sigaction(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let signal = valid(call.int(0))?;
    if call.args[3] != 8 {
        return Err(Errno::EINVAL.into());
    }
    let index = signal as usize - 1;
    let old = kernel.process().actions[index];
    let new = match call.args[1] {
        0 => None,
        _ if signal == SIGKILL || signal == SIGSTOP => return Err(Errno::EINVAL.into()),
        address => Some(SignalAction {
            handler: kernel.read_u64(address)?,
            flags: kernel.read_u64(address.wrapping_add(8))?,
            restorer: kernel.read_u64(address.wrapping_add(16))?,
            mask: kernel.read_u64(address.wrapping_add(24))?,
        }),
    };
    if call.args[2] != 0 {
        let words = [old.handler, old.flags, old.restorer, old.mask];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        kernel.write_bytes(call.args[2], &bytes)?;
    }
    if let Some(new) = new {
        Arc::make_mut(&mut kernel.process_mut().actions)[index] = new;
    }
    Ok(Value::ZERO)
}

fn rt_sigprocmask(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const BLOCK: i32 = 0;
    const UNBLOCK: i32 = 1;
    const SET: i32 = 2;
    if call.args[3] != 8 {
        return Err(Errno::EINVAL.into());
    }
    let old = kernel.task().blocked;
    let new = match call.args[1] {
        0 => old,
        address => {
            let mask = kernel.read_u64(address)?;
            match call.int(0) {
                BLOCK => old | mask,
                UNBLOCK => old & !mask,
                SET => mask,
                _ => return Err(Errno::EINVAL.into()),
            }
        }
    };
    if call.args[2] != 0 {
        kernel.write_bytes(call.args[2], &old.to_le_bytes())?;
    }
    kernel.task_mut().blocked = blockable(new);
    Ok(Value::ZERO)
}

fn rt_sigpending(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    if call.args[1] > 8 {
        return Err(Errno::EINVAL.into());
    }
    let pending = kernel.host.pending_signals(kernel.task());
    let pending = (pending & kernel.task().blocked).to_le_bytes();
    kernel.write_bytes(call.args[0], &pending[..call.args[1] as usize])?;
    Ok(Value::ZERO)
}

fn sigaltstack(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const DISABLE: u32 = 2;
    const MIN_SIZE: u64 = 2048;
    let old = kernel.task().alternate_stack;
    let new = match call.args[0] {
        0 => None,
        address => {
            let stack = kernel.read_u64(address)?;
            let flags = kernel.read_value(address.wrapping_add(8), 4)?;
            let flags = kernel.vm.concretize(flags)? as u32;
            let size = kernel.read_u64(address.wrapping_add(16))?;
            match flags & DISABLE {
                0 if size < MIN_SIZE => return Err(Errno::ENOMEM.into()),
                0 => Some((stack, 0, size)),
                _ => Some((0, DISABLE, 0)),
            }
        }
    };
    if call.args[1] != 0 {
        let words = [old.0, u64::from(old.1), old.2];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        kernel.write_bytes(call.args[1], &bytes)?;
    }
    if let Some(new) = new {
        kernel.task_mut().alternate_stack = new;
    }
    Ok(Value::ZERO)
}

fn kill(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let (target, signal) = (call.int(0), call.int(1));
    if signal != 0 {
        valid(signal)?;
    }
    let own = kernel.process();
    let (own_pid, own_group) = (own.pid, own.group);
    let targets: Vec<u32> = kernel
        .host
        .processes
        .iter()
        .filter(|process| match target {
            0 => process.group == own_group,
            -1 => process.pid != own_pid,
            pid if pid > 0 => process.pid == pid as u32,
            group => process.group == group.unsigned_abs(),
        })
        .filter(|process| !matches!(process.life, Life::Gone))
        .map(|process| process.pid)
        .collect();
    if targets.is_empty() {
        return Err(Errno::ESRCH.into());
    }
    if signal != 0 {
        for pid in targets {
            kernel.host.send_to_process(pid, signal);
        }
    }
    Ok(Value::ZERO)
}

fn tkill(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    if call.int(0) <= 0 {
        return Err(Errno::EINVAL.into());
    }
    kernel.send_to_thread(None, call.int(0) as u32, call.int(1))
}

fn tgkill(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    if call.int(0) <= 0 || call.int(1) <= 0 {
        return Err(Errno::EINVAL.into());
    }
    kernel.send_to_thread(Some(call.int(0) as u32), call.int(1) as u32, call.int(2))
}

/// The signal that native code would get where the model finds something wrong.
pub fn signal_of(bug: &Bug) -> i32 {
    match bug.kind {
        BugKind::Abort | BugKind::Assertion | BugKind::UncaughtException | BugKind::Panic => {
            SIGABRT
        }
        BugKind::DivisionByZero => SIGFPE,
        BugKind::Trap | BugKind::Unreachable => SIGILL,
        _ => SIGSEGV,
    }
}

impl HostState {
    /// Signals that were sent to a thread or to its process and that nobody has taken.
    pub fn pending_signals(&self, task: &TaskState) -> u64 {
        let process = self.process_by_pid(task.pid);
        task.pending | process.map_or(0, |process| process.pending)
    }

    /// A process does nothing when it gets this signal.
    fn ignores(process: &ProcessState, signal: i32) -> bool {
        match process.actions[signal as usize - 1].handler {
            IGNORE => true,
            DEFAULT => HARMLESS.contains(&signal),
            _ => false,
        }
    }

    /// Signals that the thread will take when it runs, and that do something.
    pub fn deliverable_signals(&self, task: &TaskState) -> u64 {
        let Some(process) = self.process_by_pid(task.pid) else {
            return 0;
        };
        let mut signals = (task.pending | process.pending) & !task.blocked;
        let mut left = signals;
        while left != 0 {
            let signal = left.trailing_zeros() as i32 + 1;
            left &= left - 1;
            if HostState::ignores(process, signal) {
                signals &= !bit(signal);
            }
        }
        signals
    }

    /// A signal ends the wait of this thread.
    pub fn has_deliverable_signal(&self, task: &TaskState) -> bool {
        self.deliverable_signals(task) != 0
    }

    /// Sends a signal to a process: any of its threads that does not block it takes it.
    pub fn send_to_process(&mut self, pid: u32, signal: i32) {
        if let Some(process) = self.process_by_pid_mut(pid)
            && matches!(process.life, Life::Running)
        {
            process.pending |= bit(signal);
        }
    }
}

impl Kernel<'_, '_> {
    fn send_to_thread(&mut self, pid: Option<u32>, tid: u32, signal: i32) -> Answer {
        if signal != 0 {
            valid(signal)?;
        }
        let mut tasks = self.host.tasks.iter_mut();
        let target = tasks.find(|task| {
            task.tid == tid && pid.is_none_or(|pid| pid == task.pid) && task.doing != Doing::Ended
        });
        let target = target.ok_or(Errno::ESRCH)?;
        if signal != 0 {
            Arc::make_mut(target).pending |= bit(signal);
        }
        Ok(Value::ZERO)
    }

    /// Sends a signal to the running thread. It is delivered when the system call is over.
    pub fn raise(&mut self, signal: i32) {
        self.task_mut().pending |= bit(signal);
    }

    /// The signal that ends a wait lets the system call go on.
    pub(crate) fn next_signal_restarts(&self, wait: &Wait) -> bool {
        let ready = self.host.deliverable_signals(self.task());
        if ready == 0 {
            return true;
        }
        let action = self.process().actions[ready.trailing_zeros() as usize];
        let has_handler = !matches!(action.handler, DEFAULT | IGNORE);
        wait.restarts && has_handler && action.flags & SA_RESTART != 0
    }

    /// Takes a signal that is pending and not blocked.
    fn take_signal(&mut self) -> Option<i32> {
        let ready = self.host.pending_signals(self.task()) & !self.task().blocked;
        if ready == 0 {
            return None;
        }
        let signal = ready.trailing_zeros() as i32 + 1;
        if self.task().pending & bit(signal) != 0 {
            self.task_mut().pending &= !bit(signal);
        } else {
            self.process_mut().pending &= !bit(signal);
        }
        Some(signal)
    }

    /// Delivers what is pending and not blocked: runs the handler, or does what is usual.
    pub fn deliver_signals(&mut self) -> Result<(), Stop> {
        while let Some(signal) = self.take_signal() {
            let action = self.process().actions[signal as usize - 1];
            match action.handler {
                IGNORE => {}
                DEFAULT if HARMLESS.contains(&signal) => {}
                DEFAULT if STOPPING.contains(&signal) => {
                    return Err(
                        self.unsupported(format!("the program stopped itself (signal {signal})"))
                    );
                }
                DEFAULT if signal == SIGABRT => {
                    let bug = Bug::new(BugKind::Abort, "the program aborted (SIGABRT)");
                    return Err(bug.into());
                }
                DEFAULT => return Err(Stop::Exit(Death::Signal(signal))),
                _ => self.run_handler(signal, action)?,
            }
        }
        Ok(())
    }

    /// Lets the thread execute a handler before it goes on.
    fn run_handler(&mut self, signal: i32, action: SignalAction) -> Result<(), Stop> {
        if self.guest.is_some() {
            self.inject(signal);
        }
        if self.guest.is_none() {
            self.call_handler(signal, action)?;
        }
        let task = self.task_mut();
        let restored = task.restored_mask.take().unwrap_or(task.blocked);
        task.handlers.push(restored);
        task.blocked |= blockable(action.mask);
        if action.flags & SA_NODEFER == 0 {
            task.blocked |= blockable(bit(signal));
        }
        if action.flags & SA_RESETHAND != 0 {
            Arc::make_mut(&mut self.process_mut().actions)[signal as usize - 1].handler = DEFAULT;
        }
        Ok(())
    }

    /// Pushes the frame of a handler.
    fn call_handler(&mut self, signal: i32, action: SignalAction) -> Result<(), Stop> {
        let Some(function) = self.vm.function_at(action.handler) else {
            let message = format!("the handler of signal {signal} is no function");
            return Err(Bug::new(BugKind::InvalidCall, message).into());
        };
        let args = [Value::concrete(signal as u64), Value::ZERO, Value::ZERO];
        self.vm.push_frame(function, &args, None, OnReturn::Stop)?;
        if action.flags & SA_SIGINFO != 0 {
            self.give_signal_information(signal)?;
        }
        Ok(())
    }

    /// Gives the handler that was just called its `siginfo` and `ucontext`, on its own stack.
    fn give_signal_information(&mut self, signal: i32) -> Result<(), Stop> {
        const INFORMATION_SIZE: u64 = 128;
        const CONTEXT_SIZE: u64 = 968;
        const SENT_BY_PROCESS: u32 = 0;
        let information = self.vm.push_slot(INFORMATION_SIZE, 16)?;
        let context = self.vm.push_slot(CONTEXT_SIZE, 16)?;
        let (pid, uid) = (self.process().pid, self.process().uid[0]);
        let words = [signal as u32, 0, SENT_BY_PROCESS, 0, pid, uid];
        self.write_bytes(information, &words.map(u32::to_le_bytes).concat())?;
        let Some(frame) = self.vm.thread.top() else {
            return Ok(());
        };
        let code = self.vm.image.code(frame.function);
        let parameters = code.map_or(0, |code| code.parameter_registers as usize);
        let base = frame.base as usize;
        for (at, address) in [(1, information), (2, context)] {
            if at < parameters {
                self.vm.thread.registers[base + at] = Value::concrete(address);
            }
        }
        Ok(())
    }

    /// A handler returned: what it blocked is free again.
    pub fn handler_returned(&mut self) -> Result<(), Stop> {
        if let Some(blocked) = self.task_mut().handlers.pop() {
            self.task_mut().blocked = blocked;
        }
        self.deliver_signals()
    }
}
