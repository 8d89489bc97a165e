//! Signals: sending them to oneself, what to do with them, and delivering them.

use everett_vm::{Bug, BugKind, OnReturn, Value};
use triomphe::Arc;

use crate::errno::Errno;
use crate::host::Ending;
use crate::kernel::{Kernel, Stop};
use crate::process::{SIGNALS, SignalAction};
use crate::table::ArgKind::{Int, Pointer};
use crate::table::{Answer, Call, Row};

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
    Row::new("kill", 62, &[Int, Int], &[], kill).without("other processes"),
    Row::new("tkill", 200, &[Int, Int], &[], tkill).without("other threads"),
    Row::new("tgkill", 234, &[Int, Int, Int], &[], tgkill).without("other threads"),
];

const SIGABRT: i32 = 6;
const SIGKILL: i32 = 9;
const SIGSTOP: i32 = 19;
const DEFAULT: u64 = 0;
const IGNORE: u64 = 1;
/// SIGCHLD, SIGCONT, SIGURG, SIGWINCH: nothing happens by default.
const HARMLESS: &[i32] = &[17, 18, 23, 28];
/// SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU.
const STOPPING: &[i32] = &[19, 20, 21, 22];

const SA_SIGINFO: u64 = 4;
const SA_NODEFER: u64 = 0x4000_0000;
const SA_RESETHAND: u64 = 0x8000_0000;

fn bit(signal: i32) -> u64 {
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
    let old = kernel.process.actions[index];
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
        Arc::make_mut(&mut kernel.process.actions)[index] = new;
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
    let old = kernel.task.blocked;
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
    kernel.task.blocked = blockable(new);
    Ok(Value::ZERO)
}

fn rt_sigpending(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    if call.args[1] > 8 {
        return Err(Errno::EINVAL.into());
    }
    let pending = kernel.task.pending.to_le_bytes();
    kernel.write_bytes(call.args[0], &pending[..call.args[1] as usize])?;
    Ok(Value::ZERO)
}

fn sigaltstack(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const DISABLE: u32 = 2;
    const MIN_SIZE: u64 = 2048;
    let old = kernel.task.alternate_stack;
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
        kernel.task.alternate_stack = new;
    }
    Ok(Value::ZERO)
}

fn kill(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let own = kernel.process.pid as i32;
    // The process is alone in its group and session.
    let is_own = |pid: i32| pid == own || pid == 0 || pid == -own;
    if !is_own(call.int(0)) {
        return Err(Errno::ESRCH.into());
    }
    kernel.send(call.int(1))
}

fn tkill(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    if call.int(0) <= 0 {
        return Err(Errno::EINVAL.into());
    }
    if call.int(0) != kernel.task.tid as i32 {
        return Err(Errno::ESRCH.into());
    }
    kernel.send(call.int(1))
}

fn tgkill(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    if call.int(0) <= 0 || call.int(1) <= 0 {
        return Err(Errno::EINVAL.into());
    }
    if call.int(0) != kernel.process.pid as i32 || call.int(1) != kernel.task.tid as i32 {
        return Err(Errno::ESRCH.into());
    }
    kernel.send(call.int(2))
}

impl Kernel<'_, '_> {
    /// Sends a signal to the running thread. It is delivered when the system call is over.
    fn send(&mut self, signal: i32) -> Answer {
        if signal != 0 {
            self.task.pending |= bit(valid(signal)?);
        }
        Ok(Value::ZERO)
    }

    /// Delivers what is pending and not blocked: runs the handler, or does what is usual.
    pub fn deliver_signals(&mut self) -> Result<(), Stop> {
        loop {
            let ready = self.task.pending & !self.task.blocked;
            if ready == 0 {
                return Ok(());
            }
            let signal = ready.trailing_zeros() as i32 + 1;
            let action = self.process.actions[signal as usize - 1];
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
                    return Err(Stop::End(Ending::Bug(Box::new(bug))));
                }
                DEFAULT => return Err(Stop::End(Ending::Signal(signal))),
                _ => self.run_handler(signal, action)?,
            }
            self.task.pending &= !bit(signal);
        }
    }

    /// Lets the thread execute a handler before it goes on.
    fn run_handler(&mut self, signal: i32, action: SignalAction) -> Result<(), Stop> {
        let Some(function) = self.vm.function_at(action.handler) else {
            let message = format!("the handler of signal {signal} is no function");
            return Err(Bug::new(BugKind::InvalidCall, message).into());
        };
        let args = [Value::concrete(signal as u64), Value::ZERO, Value::ZERO];
        self.vm.push_frame(function, &args, None, OnReturn::Stop)?;
        if action.flags & SA_SIGINFO != 0 {
            self.give_signal_information(signal)?;
        }
        self.task.handlers.push(self.task.blocked);
        self.task.blocked |= blockable(action.mask);
        if action.flags & SA_NODEFER == 0 {
            self.task.blocked |= blockable(bit(signal));
        }
        if action.flags & SA_RESETHAND != 0 {
            Arc::make_mut(&mut self.process.actions)[signal as usize - 1].handler = DEFAULT;
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
        let (pid, uid) = (self.process.pid, self.process.uid);
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
        if let Some(blocked) = self.task.handlers.pop() {
            self.task.blocked = blocked;
        }
        self.deliver_signals()
    }
}
