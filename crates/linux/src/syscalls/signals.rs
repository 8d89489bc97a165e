//! Signals: sending, actions, masks and waiting.

use everett_vm::Value;
use triomphe::Arc;

use crate::capabilities::KILL;
use crate::delivery::{AUTO_DISARM, INFORMATION_SIZE, NO_STACK, ON_STACK};
use crate::errno::Errno;
use crate::kernel::{Answer, Kernel, Stop};
use crate::process::{ExitState, INIT, ProcessState, SignalAction};
use crate::signals::{SIGCONT, SIGKILL, SIGSTOP, Signal, bit, blockable, code, is_signal};
use crate::table::ArgKind::{Int, Pointer};
use crate::table::property::{ONE_THREAD, SIGNALS};
use crate::table::{Call, Row};
use crate::wait::WaitCondition;

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new(
        "rt_sigaction",
        13,
        &[Int, Pointer, Pointer, Int],
        &[],
        rt_sigaction,
    )
    .without("general registers in the context of a handler"),
    Row::new(
        "rt_sigprocmask",
        14,
        &[Int, Pointer, Pointer, Int],
        &[],
        rt_sigprocmask,
    )
    .with(ONE_THREAD),
    Row::new("rt_sigreturn", 15, &[], &[], rt_sigreturn)
        .with(ONE_THREAD)
        .without("calls outside of a signal handler"),
    Row::new("pause", 34, &[], &[], pause).with(SIGNALS),
    Row::new("kill", 62, &[Int, Int], &[], kill).with(SIGNALS),
    Row::new("rt_sigpending", 127, &[Pointer, Int], &[], rt_sigpending),
    Row::new(
        "rt_sigtimedwait",
        128,
        &[Pointer, Pointer, Pointer, Int],
        &[Errno::EINTR],
        rt_sigtimedwait,
    )
    .with(SIGNALS),
    Row::new(
        "rt_sigqueueinfo",
        129,
        &[Int, Int, Pointer],
        &[Errno::EAGAIN],
        rt_sigqueueinfo,
    )
    .with(SIGNALS),
    Row::new("rt_sigsuspend", 130, &[Pointer, Int], &[], rt_sigsuspend).with(SIGNALS),
    Row::new("sigaltstack", 131, &[Pointer, Pointer], &[], sigaltstack)
        .with(ONE_THREAD)
        .without("an overrun of a variable that is on it is found only where it leaves the stack"),
    Row::new("tkill", 200, &[Int, Int], &[], tkill).with(SIGNALS),
    Row::new("tgkill", 234, &[Int, Int, Int], &[], tgkill).with(SIGNALS),
    Row::new(
        "rt_tgsigqueueinfo",
        297,
        &[Int, Int, Int, Pointer],
        &[Errno::EAGAIN],
        rt_tgsigqueueinfo,
    )
    .with(SIGNALS),
];

/// Size of a signal mask.
const MASK_SIZE: u64 = 8;

fn valid(signal: i32) -> Result<i32, Errno> {
    if is_signal(signal) {
        Ok(signal)
    } else {
        Err(Errno::EINVAL)
    }
}

/// A valid signal number, or 0, which only checks permissions.
fn valid_or_none(signal: i32) -> Result<i32, Errno> {
    if signal == 0 { Ok(0) } else { valid(signal) }
}

fn rt_sigaction(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    if call.args[3] != MASK_SIZE {
        return Err(Errno::EINVAL.into());
    }
    let signal = valid(call.int(0))?;
    let index = signal as usize - 1;
    let old = kernel.process().actions[index];
    let new = match call.args[1] {
        0 => None,
        _ if signal == SIGKILL || signal == SIGSTOP => return Err(Errno::EINVAL.into()),
        address => Some(SignalAction {
            handler: kernel.read_u64(address)?,
            flags: kernel.read_u64(address.wrapping_add(8))?,
            restorer: kernel.read_u64(address.wrapping_add(16))?,
            mask: blockable(kernel.read_u64(address.wrapping_add(24))?),
        }),
    };
    if call.args[2] != 0 {
        let words = [old.handler, old.flags, old.restorer, old.mask];
        kernel.write_bytes(call.args[2], &words.map(u64::to_le_bytes).concat())?;
    }
    if let Some(new) = new {
        Arc::make_mut(&mut kernel.process_mut().actions)[index] = new;
        if kernel.process().ignores(signal) {
            let pid = kernel.process().pid;
            kernel.host.discard_signals(pid, bit(signal));
        }
    }
    Ok(Value::ZERO)
}

fn rt_sigprocmask(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const BLOCK: i32 = 0;
    const UNBLOCK: i32 = 1;
    const SET: i32 = 2;
    if call.args[3] != MASK_SIZE {
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

/// Never needed: the vm keeps signal frames itself.
fn rt_sigreturn(kernel: &mut Kernel<'_, '_>, _: &Call) -> Answer {
    Err(kernel.unsupported("rt_sigreturn outside of a signal handler"))
}

fn rt_sigpending(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    if call.args[1] > MASK_SIZE {
        return Err(Errno::EINVAL.into());
    }
    let pending = kernel.host.pending_signals(kernel.task());
    let pending = (pending & kernel.task().blocked).to_le_bytes();
    kernel.write_bytes(call.args[0], &pending[..call.args[1] as usize])?;
    Ok(Value::ZERO)
}

fn pause(kernel: &mut Kernel<'_, '_>, _: &Call) -> Answer {
    kernel.wait(WaitCondition::Never, None, "pause")?;
    Err(Errno::EINTR.into())
}

fn rt_sigsuspend(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    if call.args[1] != MASK_SIZE {
        return Err(Errno::EINVAL.into());
    }
    let mask = kernel.read_u64(call.args[0])?;
    kernel.wait_masked(WaitCondition::Never, None, Some(mask), "sigsuspend")?;
    Err(Errno::EINTR.into())
}

fn rt_sigtimedwait(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    if call.args[3] != MASK_SIZE {
        return Err(Errno::EINVAL.into());
    }
    let wanted = blockable(kernel.read_u64(call.args[0])?);
    let deadline = match call.args[2] {
        0 => None,
        timeout => {
            let time = kernel.read_time(timeout)?;
            Some(kernel.host.clock_ns.saturating_add(time))
        }
    };
    if kernel.host.pending_signals(kernel.task()) & wanted == 0 {
        kernel.wait(WaitCondition::Signals(wanted), deadline, "a signal")?;
        return Err(Errno::EAGAIN.into());
    }
    if call.args[1] != 0 {
        kernel.check(call.args[1], INFORMATION_SIZE as u64, true)?;
    }
    let Some(signal) = kernel.host.take_signal(kernel.task, wanted) else {
        return Err(Errno::EAGAIN.into());
    };
    let signal = kernel.store_overrun(signal);
    if call.args[1] != 0 {
        let information = kernel.signal_information(&signal);
        kernel.write_buffer(call.args[1], &information)?;
    }
    Ok(Value::concrete(signal.number as u64))
}

fn sigaltstack(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const MIN_SIZE: u64 = 2048;
    let (start, flags, size) = kernel.task().alternate_stack;
    let is_on_it = kernel.is_on_alternate_stack();
    let new = match call.args[0] {
        0 => None,
        address => {
            let start = kernel.read_u64(address)?;
            let flags = kernel.read_value(address.wrapping_add(8), 4)?;
            let flags = kernel.vm.concretize(flags)? as u32;
            let size = kernel.read_u64(address.wrapping_add(16))?;
            if is_on_it {
                return Err(Errno::EPERM.into());
            }
            match flags & !AUTO_DISARM {
                NO_STACK => Some((0, NO_STACK, 0)),
                0 | ON_STACK if size < MIN_SIZE => return Err(Errno::ENOMEM.into()),
                0 | ON_STACK => Some((start, flags & AUTO_DISARM, size)),
                _ => return Err(Errno::EINVAL.into()),
            }
        }
    };
    if call.args[1] != 0 {
        let flags = flags | if is_on_it { ON_STACK } else { 0 };
        let words = [start, u64::from(flags), size];
        kernel.write_bytes(call.args[1], &words.map(u64::to_le_bytes).concat())?;
    }
    if let Some(new) = new {
        kernel.task_mut().alternate_stack = new;
    }
    Ok(Value::ZERO)
}

fn kill(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let target = call.int(0);
    let number = valid_or_none(call.int(1))?;
    let own = kernel.process();
    let signal = Signal::from_process(number, code::USER, own);
    let (own_pid, own_group) = (own.pid, own.group);
    if target == i32::MIN {
        return Err(Errno::ESRCH.into());
    }
    let all = kernel.host.processes.iter().map(|process| &**process);
    // Only its own pid selects init.
    let init = Some(&kernel.host.init.process).filter(|init| target == init.pid as i32);
    let targets: Vec<u32> = all
        .chain(init)
        .filter(|process| match target {
            0 => process.group == own_group,
            -1 => process.pid != own_pid,
            pid if pid > 0 => process.pid == pid as u32,
            group => process.group == group.unsigned_abs(),
        })
        .filter(|process| !matches!(process.exit_state, ExitState::Reaped))
        .map(|process| process.pid)
        .collect();
    if targets.is_empty() {
        return Err(Errno::ESRCH.into());
    }
    let mut allowed = targets;
    allowed.retain(|pid| kernel.may_signal(*pid, number));
    if allowed.is_empty() {
        return Err(Errno::EPERM.into());
    }
    for pid in allowed {
        if number != 0 {
            kernel.host.send(pid, signal);
        }
    }
    Ok(Value::ZERO)
}

fn tkill(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    if call.int(0) <= 0 {
        return Err(Errno::EINVAL.into());
    }
    let signal = kernel.thread_signal(call.int(1))?;
    kernel.send_to_thread(None, call.int(0) as u32, signal)
}

fn tgkill(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    if call.int(0) <= 0 || call.int(1) <= 0 {
        return Err(Errno::EINVAL.into());
    }
    let signal = kernel.thread_signal(call.int(2))?;
    kernel.send_to_thread(Some(call.int(0) as u32), call.int(1) as u32, signal)
}

fn rt_sigqueueinfo(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let pid = call.int(0) as u32;
    let signal = kernel.read_signal(call.int(1), call.args[2], pid)?;
    let known = kernel.host.process_by_pid(pid);
    if known.is_none_or(|process| matches!(process.exit_state, ExitState::Reaped)) {
        return Err(Errno::ESRCH.into());
    }
    if !kernel.may_signal(pid, signal.number) {
        return Err(Errno::EPERM.into());
    }
    if signal.number != 0 && !kernel.host.send(pid, signal) {
        return Err(Errno::EAGAIN.into());
    }
    Ok(Value::ZERO)
}

fn rt_tgsigqueueinfo(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    if call.int(0) <= 0 || call.int(1) <= 0 {
        return Err(Errno::EINVAL.into());
    }
    let pid = call.int(0) as u32;
    let signal = kernel.read_signal(call.int(2), call.args[3], pid)?;
    kernel.send_to_thread(Some(pid), call.int(1) as u32, signal)
}

impl ProcessState {
    /// Whether this process may send this signal to another process.
    fn may_signal(&self, target: &ProcessState, signal: i32) -> bool {
        let [real, effective, _] = self.uid;
        let [target_real, _, target_saved] = target.uid;
        self.capabilities.has(KILL)
            || self.pid == target.pid
            || [real, effective]
                .iter()
                .any(|user| [target_real, target_saved].contains(user))
            || (signal == SIGCONT && self.session == target.session)
    }
}

impl Kernel<'_, '_> {
    /// Whether the calling process may send this signal to another.
    pub fn may_signal(&self, pid: u32, signal: i32) -> bool {
        let target = self.host.process_by_pid(pid);
        target.is_none_or(|target| self.process().may_signal(target, signal))
    }

    fn thread_signal(&self, number: i32) -> Result<Signal, Errno> {
        let number = valid_or_none(number)?;
        Ok(Signal::from_process(number, code::THREAD, self.process()))
    }

    /// Reads a `siginfo_t` that a process supplies.
    pub fn read_signal(&mut self, number: i32, address: u64, to: u32) -> Result<Signal, Stop> {
        let bytes = self.read_bytes(address, INFORMATION_SIZE as u64)?;
        let number = valid_or_none(number)?;
        let word = |at: usize| {
            let bytes = bytes[at..at + 8].first_chunk();
            bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        let code = word(8) as i32;
        // A process may not forge the kernel's codes, except to itself.
        if (code >= 0 || code == code::THREAD) && to != self.process().pid {
            return Err(Errno::EPERM.into());
        }
        Ok(Signal {
            words: [16, 24, 32].map(word),
            ..Signal::new(number, code)
        })
    }

    fn send_to_thread(&mut self, pid: Option<u32>, tid: u32, signal: Signal) -> Answer {
        let target = self.host.task_by_tid(tid);
        if target.is_none() && tid == INIT && pid.is_none_or(|pid| pid == INIT) {
            return match self.may_signal(INIT, signal.number) {
                true => Ok(Value::ZERO),
                false => Err(Errno::EPERM.into()),
            };
        }
        let target = target.filter(|at| pid.is_none_or(|pid| pid == self.host.tasks[*at].pid));
        let target = target.ok_or(Errno::ESRCH)?;
        if !self.may_signal(self.host.tasks[target].pid, signal.number) {
            return Err(Errno::EPERM.into());
        }
        if signal.number != 0 && !self.host.send_to_task(target, signal) {
            return Err(Errno::EAGAIN.into());
        }
        Ok(Value::ZERO)
    }

    /// Sends a signal to the running thread. It is delivered when the system call returns.
    pub fn raise(&mut self, signal: i32) {
        let signal = Signal::from_process(signal, code::USER, self.process());
        self.host.send_to_task(self.task, signal);
    }
}
