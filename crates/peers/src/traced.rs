//! A stopped process that makes system calls for us.

use nix::errno::Errno;
use nix::libc::{self, user_regs_struct};
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The instruction of a system call.
const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// Errors inside the kernel that say that an interrupted system call is to be made again.
const RESTARTS: std::ops::RangeInclusive<i64> = -516..=-512;

/// A stopped process with one thread. It is killed when this thread ends.
pub struct Traced {
    /// The process.
    pub pid: Pid,
    /// The registers with which it goes on, at the system call that the stop has interrupted.
    registers: user_regs_struct,
    /// The address of an instruction for system calls.
    instruction: u64,
}

impl Traced {
    /// Stops a process.
    pub fn stop(pid: Pid) -> Result<Traced, String> {
        let failed = |error: Errno| format!("it cannot be stopped: {error}");
        let options = Options::PTRACE_O_TRACESYSGOOD
            | Options::PTRACE_O_TRACEFORK
            | Options::PTRACE_O_TRACECLONE
            | Options::PTRACE_O_EXITKILL;
        ptrace::seize(pid, options).map_err(failed)?;
        ptrace::interrupt(pid).map_err(failed)?;
        loop {
            match wait(pid)? {
                WaitStatus::PtraceEvent(_, _, libc::PTRACE_EVENT_STOP) => break,
                WaitStatus::Stopped(_, signal) => ptrace::cont(pid, signal).map_err(failed)?,
                _ => ptrace::cont(pid, None).map_err(failed)?,
            }
        }
        let registers = ptrace::getregs(pid).map_err(failed)?;
        Ok(Traced {
            pid,
            registers: again(registers),
            instruction: instruction_of(pid)?,
        })
    }

    /// Makes the process make a system call. Returns the result, and the process that was created.
    pub fn call(&self, number: i64, arguments: [u64; 5]) -> Result<(i64, Option<Pid>), String> {
        let failed = |error: Errno| format!("it cannot make a system call: {error}");
        let [rdi, rsi, rdx, r10, r8] = arguments;
        let registers = user_regs_struct {
            rip: self.instruction,
            rax: number as u64,
            orig_rax: u64::MAX,
            rdi,
            rsi,
            rdx,
            r10,
            r8,
            ..self.registers
        };
        ptrace::setregs(self.pid, registers).map_err(failed)?;
        let (mut stops, mut created) = (0, None);
        while stops < 2 {
            ptrace::syscall(self.pid, None).map_err(failed)?;
            match wait(self.pid)? {
                WaitStatus::PtraceSyscall(_) => stops += 1,
                WaitStatus::PtraceEvent(
                    _,
                    _,
                    libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_CLONE,
                ) => {
                    let pid = ptrace::getevent(self.pid).map_err(failed)?;
                    created = Some(Pid::from_raw(pid as i32));
                }
                _ => {}
            }
        }
        let result = ptrace::getregs(self.pid).map_err(failed)?.rax;
        ptrace::setregs(self.pid, self.registers).map_err(failed)?;
        Ok((result as i64, created))
    }

    /// Returns the process that a call of this one has created, which is stopped like this one.
    pub fn created(&self, pid: Pid) -> Result<Traced, String> {
        while !matches!(
            wait(pid)?,
            WaitStatus::PtraceEvent(_, _, libc::PTRACE_EVENT_STOP)
        ) {
            ptrace::cont(pid, None).map_err(|error| error.to_string())?;
        }
        Ok(Traced { pid, ..*self })
    }

    /// Lets the process go on where it was stopped.
    pub fn release(self) -> Result<Pid, String> {
        let failed = |error: Errno| format!("its copy cannot go on: {error}");
        ptrace::setregs(self.pid, self.registers).map_err(failed)?;
        ptrace::detach(self.pid, None).map_err(failed)?;
        Ok(self.pid)
    }

    /// Returns memory below the stack, which the process does not use.
    pub fn scratch(&self) -> u64 {
        /// More than functions use below the stack pointer without moving it.
        const BELOW: u64 = 1024;
        (self.registers.rsp - BELOW) & !15
    }

    /// Ends the process.
    pub fn end(self) -> Result<(), String> {
        let killed = kill(self.pid, Signal::SIGKILL);
        killed.map_err(|error| format!("it cannot be ended: {error}"))?;
        while wait(self.pid).is_ok() {}
        Ok(())
    }

    /// Writes memory of the process.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), String> {
        let memory = File::options()
            .write(true)
            .open(format!("/proc/{}/mem", self.pid));
        let written = memory.and_then(|memory| memory.write_all_at(bytes, address));
        written.map_err(|error| format!("its memory cannot be written: {error}"))
    }

    /// Reads memory of the process.
    pub fn read<const SIZE: usize>(&self, address: u64) -> Result<[u8; SIZE], String> {
        let mut bytes = [0; SIZE];
        let memory = File::open(format!("/proc/{}/mem", self.pid));
        let read = memory.and_then(|memory| memory.read_exact_at(&mut bytes, address));
        read.map_err(|error| format!("its memory cannot be read: {error}"))?;
        Ok(bytes)
    }
}

fn wait(pid: Pid) -> Result<WaitStatus, String> {
    match waitpid(pid, Some(WaitPidFlag::__WALL)) {
        Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) => Err("it has ended".to_owned()),
        Ok(status) => Ok(status),
        Err(error) => Err(format!("it cannot be waited for: {error}")),
    }
}

/// Returns the registers with which an interrupted system call is made again, also one that would
/// fail where a signal has come: none has.
fn again(registers: user_regs_struct) -> user_regs_struct {
    let result = registers.rax as i64;
    let is_in_call = registers.orig_rax as i64 >= 0;
    let is_interrupted = RESTARTS.contains(&result) || result == -i64::from(libc::EINTR);
    if !is_in_call || !is_interrupted {
        return registers;
    }
    user_regs_struct {
        rip: registers.rip - SYSCALL.len() as u64,
        rax: registers.orig_rax,
        orig_rax: u64::MAX,
        ..registers
    }
}

/// Returns the address of an instruction for system calls: the kernel's own page of code has one.
fn instruction_of(pid: Pid) -> Result<u64, String> {
    let missing = || "it has no code of the kernel (vdso)".to_owned();
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let line = maps.lines().find(|line| line.ends_with("[vdso]"));
    let range = line.and_then(|line| line.split(' ').next()?.split_once('-'));
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = range
        .and_then(|(start, end)| Some((number(start)?, number(end)?)))
        .ok_or_else(missing)?;
    let mut code = vec![0; (end - start) as usize];
    let memory = File::open(format!("/proc/{pid}/mem"));
    let read = memory.and_then(|memory| memory.read_exact_at(&mut code, start));
    read.map_err(|error| format!("its memory cannot be read: {error}"))?;
    let at = code.windows(SYSCALL.len()).position(|pair| pair == SYSCALL);
    at.map(|at| start + at as u64).ok_or_else(missing)
}
