//! Injected system calls: real calls that a native thread makes on Everett's behalf, from the gate.
//! Their arguments are checked at the entry of the call, before the kernel acts.

use std::io;
use std::time::Duration;

use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus};
use nix::unistd::Pid;

use super::{Registers, Side, Stopped, Tracee};
use crate::call_numbers::{EXECVE, MMAP};
use crate::gate;

/// Segments of 64-bit code, which must be set because a guest can switch to 32-bit code.
const CODE_64: u64 = 0x33;
const DATA_64: u64 = 0x2b;
/// The trap flag, by which a program single-steps itself.
const TRAP_FLAG: u64 = 0x100;
/// Maximum number of signals that may arrive before a call is entered. More of them mean that its
/// instruction faults.
const MAX_SIGNALS: u32 = 64;

/// A system call to inject.
struct Injected {
    number: u64,
    args: [u64; 6],
    /// Address of the call's instruction.
    at: u64,
}

impl Tracee {
    /// Executes a real system call instead of the one that the thread is stopped at. Returns the
    /// result and the new thread or process, if any; registers are as the real kernel left them.
    pub fn inject_call(&mut self, number: u64, args: [u64; 6]) -> io::Result<(u64, Option<Pid>)> {
        self.inject_call_at(gate::GATE, number, args)
    }

    /// Like [`Tracee::inject_call`], from another instruction, if there is no gate yet.
    pub fn inject_call_at(
        &mut self,
        at: u64,
        number: u64,
        args: [u64; 6],
    ) -> io::Result<(u64, Option<Pid>)> {
        self.activity.note(self.process);
        let before = self.registers()?;
        let [rdi, rsi, rdx, r10, r8, r9] = args;
        self.set_registers(Registers {
            rip: at,
            cs: CODE_64,
            ss: DATA_64,
            eflags: before.eflags & !TRAP_FLAG,
            rax: number,
            orig_rax: u64::MAX,
            rdi,
            rsi,
            rdx,
            r10,
            r8,
            r9,
            ..before
        })?;
        let injected = Injected { number, args, at };
        let mut created = None;
        let mut entered = false;
        let mut signals = 0;
        loop {
            ptrace::syscall(self.thread, None)?;
            if entered && number == EXECVE {
                self.wait_for_either()?;
            }
            match self.wait()? {
                // The suppressed call has an exit stop of its own.
                Stopped::Call => match self.call_stop_side() {
                    Side::Entry if entered => return Err(self.kill_hijacked(&injected)),
                    Side::Entry => {
                        self.verify(&injected)?;
                        entered = true;
                    }
                    Side::Exit if entered => break,
                    Side::Exit => {}
                },
                Stopped::Created(child) => created = Some(child),
                Stopped::Executed => {}
                Stopped::Signal(_) if entered => {}
                Stopped::Signal(_) => {
                    signals += 1;
                    if signals > MAX_SIGNALS {
                        return Err(self.kill_hijacked(&injected));
                    }
                }
                Stopped::Gone => return Ok((0, created)),
            }
        }
        Ok((self.registers()?.rax, created))
    }

    /// Executes a program instead of the call at which the thread is stopped; returns the result of
    /// `execve`. A program that was just written may be busy for a moment: a process that another
    /// thread is starting has copies of all descriptors of ours until its own `execve`, including
    /// the one through which the program was written.
    pub fn inject_exec(&mut self, args: [u64; 6]) -> io::Result<u64> {
        const BUSY: i64 = -(libc::ETXTBSY as i64);
        const PAUSE: Duration = Duration::from_millis(5);
        const PAUSES: u32 = 2000;
        for _ in 0..PAUSES {
            match self.inject_call(EXECVE, args)?.0 as i64 {
                BUSY => std::thread::sleep(PAUSE),
                result => return Ok(result as u64),
            }
        }
        Ok(BUSY as u64)
    }

    /// Checks that the call that the process enters is the injected one; kills the process
    /// otherwise.
    fn verify(&self, injected: &Injected) -> io::Result<()> {
        const ARCH_X86_64: u32 = 0xc000_003e;
        const SYSCALL_SIZE: u64 = 2;
        let information = self.information();
        let words = information.words;
        let is_same = information.arch == ARCH_X86_64
            && information.place[0] == injected.at + SYSCALL_SIZE
            && words[0] == injected.number
            && words[1..] == injected.args;
        match is_same {
            true => Ok(()),
            false => Err(self.kill_hijacked(injected)),
        }
    }

    /// Kills a process that does something other than the injected call. A call that it has entered
    /// is not made: a dying process leaves the entry without it.
    fn kill_hijacked(&self, injected: &Injected) -> io::Error {
        let _ = nix::sys::signal::kill(self.process, Signal::SIGKILL);
        let number = injected.number;
        io::Error::other(format!(
            "it replaced an injected system call ({number}) by something else, so it was killed"
        ))
    }

    /// Like [`Tracee::inject_call`], but restores all registers afterwards.
    pub fn inject_call_preserving(&mut self, number: u64, args: [u64; 6]) -> io::Result<u64> {
        let before = self.registers()?;
        let (result, _) = self.inject_call(number, args)?;
        let after = self.registers()?;
        // The TLS base is kept, because setting it is the purpose of `arch_prctl`.
        self.set_registers(Registers {
            fs_base: after.fs_base,
            gs_base: after.gs_base,
            ..before
        })?;
        Ok(result)
    }

    /// Maps private memory of a given size.
    pub fn map_room(&mut self, size: u64) -> io::Result<u64> {
        const READ_AND_WRITE: u64 = 3;
        const PRIVATE_ANONYMOUS: u64 = 0x22;
        let args = [0, size, READ_AND_WRITE, PRIVATE_ANONYMOUS, u64::MAX, 0];
        match self.inject_call_preserving(MMAP, args)? as i64 {
            error @ -4095..0 => Err(io::Error::from_raw_os_error(-error as i32)),
            room => Ok(room as u64),
        }
    }

    /// After `execve`, waits for a stop of this thread or, if it succeeded, of the main
    /// thread, whose tid it takes over.
    fn wait_for_either(&mut self) -> io::Result<()> {
        const PAUSE: std::time::Duration = std::time::Duration::from_micros(100);
        while self.thread != self.process {
            let has_stopped = |thread: Pid| {
                let without_reaping =
                    WaitPidFlag::__WALL | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
                let id = nix::sys::wait::Id::Pid(thread);
                let events = without_reaping | WaitPidFlag::WSTOPPED | WaitPidFlag::WEXITED;
                let status = nix::sys::wait::waitid(id, events);
                status.is_ok_and(|status| status != WaitStatus::StillAlive)
            };
            if has_stopped(self.process) {
                self.thread = self.process;
            } else if has_stopped(self.thread) {
                return Ok(());
            } else {
                std::thread::sleep(PAUSE);
            }
        }
        Ok(())
    }
}

/// Makes every system call of a process and its threads raise SIGSYS from now on, so that it cannot
/// reach the real machine once it is no longer traced.
pub fn confine(tracee: &mut Tracee) -> io::Result<()> {
    const PRCTL: u64 = 157;
    const SET_PTRACER: u64 = 0x5961_6d61;
    const RETURN: u16 = 6;
    const TRAP: u32 = 0x0003_0000;
    let before = tracee.registers()?;
    // Lets debuggers attach where otherwise only parents may.
    tracee.inject_call(PRCTL, [SET_PTRACER, u64::MAX, 0, 0, 0, 0])?;
    let filter = [libc::sock_filter {
        code: RETURN,
        jt: 0,
        jf: 0,
        k: TRAP,
    }];
    tracee.install_filter(&filter)?;
    tracee.set_registers(Registers {
        orig_rax: u64::MAX,
        ..before
    })
}

impl Tracee {
    /// Installs a seccomp filter for all threads of the process.
    pub fn install_filter(&mut self, filter: &[libc::sock_filter]) -> io::Result<()> {
        const SECCOMP: u64 = 317;
        const SET_FILTER: u64 = 1;
        const ALL_THREADS: u64 = 1;
        const HEADER: u64 = 16;
        let mut program = Vec::new();
        program.extend_from_slice(&(filter.len() as u64).to_le_bytes());
        program.extend_from_slice(&(gate::SCRATCH + HEADER).to_le_bytes());
        for step in filter {
            program.extend_from_slice(&step.code.to_le_bytes());
            program.extend_from_slice(&[step.jt, step.jf]);
            program.extend_from_slice(&step.k.to_le_bytes());
        }
        let args = [SET_FILTER, ALL_THREADS, gate::SCRATCH, 0, 0, 0];
        if !self.poke(gate::SCRATCH, &program) || self.inject_call(SECCOMP, args)?.0 != 0 {
            let message = "the real kernel refuses to install a seccomp filter";
            return Err(io::Error::other(message));
        }
        Ok(())
    }
}
