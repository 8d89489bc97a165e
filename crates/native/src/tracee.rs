//! A native thread that stops at every system call. All `unsafe` code of the crate that controls threads is
//! here and below: what `nix` does not offer.

mod handlers;

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;

use everett_linux::Guest;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::sandbox::{self, SandboxKind};
use crate::shadow;

/// Registers of a native thread.
pub type Registers = libc::user_regs_struct;

/// Why a native thread stopped.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Stopped {
    /// At the entry of a system call, which was not executed.
    Call,
    /// Before the delivery of a real signal.
    Signal(i32),
    /// It has created a thread or a process.
    Created(Pid),
    /// It has executed another program.
    Executed,
    /// It has exited.
    Gone,
}

/// A system call that a thread is about to make.
#[derive(Copy, Clone)]
pub(crate) struct Call {
    pub number: u64,
    pub args: [u64; 6],
    /// It uses the 32-bit calling convention, so its number has another meaning.
    pub is_foreign: bool,
}

/// Position of a thread relative to a system call.
enum Side {
    Entry,
    Exit,
}

/// `struct ptrace_syscall_info`.
#[repr(C)]
#[derive(Default)]
struct Information {
    kind: u8,
    arch: u32,
    place: [u64; 2],
    /// Number and arguments.
    words: [u64; 7],
}

/// One native thread.
pub struct Tracee {
    /// The real thread.
    pub thread: Pid,
    /// The real process.
    pub process: Pid,
    /// Its descriptor of the channel.
    pub channel: u64,
    memory: Arc<File>,
    /// It executes a checked build, whose memory has a shadow.
    pub is_checked: bool,
    /// It executes a checked build that tracks initialisation.
    pub tracks_initialisation: bool,
    /// The first poisoned address that the kernel wrote to, and the kind of error.
    pub violation: Option<(u64, &'static str)>,
    /// It may share memory with other processes.
    pub shares: bool,
    /// The signal mask that the last returned handler restores.
    mask_of_frame: Option<u64>,
}

/// Accesses by the kernel, which respect page protection.
impl Guest for Tracee {
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        let here = (into.as_mut_ptr().cast(), into.len());
        // SAFETY: the buffer is ours, and of the given length.
        match unsafe { transfer(libc::process_vm_readv, self.process, address, here) } {
            Some(done) => done,
            None => self.peek(address, into),
        }
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> bool {
        if self.is_checked && self.violation.is_none() {
            self.violation = shadow::first_poisoned(&self.memory, address, bytes.len());
        }
        if self.tracks_initialisation {
            shadow::mark_initialised(&self.memory, address, bytes.len());
        }
        let here = (bytes.as_ptr().cast_mut().cast(), bytes.len());
        // SAFETY: the bytes are only read, and of the given length.
        match unsafe { transfer(libc::process_vm_writev, self.process, address, here) } {
            Some(done) => done,
            None => self.poke(address, bytes),
        }
    }

    fn can_write(&mut self, address: u64) -> bool {
        // All threads are stopped: nobody sees that the byte is written again.
        let mut byte = [0];
        let here = (byte.as_mut_ptr().cast(), byte.len());
        // SAFETY: the byte is ours.
        Guest::read(self, address, &mut byte)
            && unsafe { transfer(libc::process_vm_writev, self.process, address, here) }
                .unwrap_or(true)
    }

    fn is_mapped(&mut self, address: u64) -> bool {
        self.peek(address, &mut [0])
    }

    fn stack_pointer(&mut self) -> u64 {
        self.registers().map_or(0, |registers| registers.rsp)
    }

    fn restored_mask(&mut self) -> Option<u64> {
        self.mask_of_frame.take()
    }

    fn shared_file_offset(&mut self, address: u64) -> Option<(u64, u64)> {
        if !self.shares {
            return None;
        }
        let mappings = mappings_of(self.process).ok()?;
        let at = |mapping: &&RealMapping| (mapping.start..mapping.end).contains(&address);
        let mapping = mappings.iter().find(at).filter(|m| m.is_shared)?;
        Some((mapping.inode, mapping.offset + (address - mapping.start)))
    }
}

/// `process_vm_readv` or `process_vm_writev`.
type Transfer = unsafe extern "C" fn(
    libc::pid_t,
    *const libc::iovec,
    libc::c_ulong,
    *const libc::iovec,
    libc::c_ulong,
    libc::c_ulong,
) -> libc::ssize_t;

/// Copies bytes between us and a process. Returns whether everything was copied; `None` if the machine lacks
/// the call.
///
/// # Safety
/// The local bytes must be valid, and ours to read or write.
unsafe fn transfer(
    call: Transfer,
    process: Pid,
    address: u64,
    here: (*mut libc::c_void, usize),
) -> Option<bool> {
    let (iov_base, iov_len) = here;
    let here = libc::iovec { iov_base, iov_len };
    let there = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len,
    };
    // SAFETY: the caller guarantees the local side; the remote side is an address of another process.
    let moved = unsafe { call(process.as_raw(), &here, 1, &there, 1, 0) };
    let refused = || std::io::Error::last_os_error().raw_os_error();
    match moved < 0 && matches!(refused(), Some(libc::ENOSYS | libc::EPERM)) {
        true => None,
        false => Some(moved as usize == iov_len),
    }
}

/// A mapping of a real process.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RealMapping {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// It is readable and writable.
    pub is_data: bool,
    /// It is shared.
    pub is_shared: bool,
    /// Offset in its file.
    pub offset: u64,
    /// Inode number of the file; 0 if it has none.
    pub inode: u64,
}

impl RealMapping {
    /// Parses a line of `/proc/PID/maps`.
    fn parse(line: &str) -> Option<RealMapping> {
        let mut words = line.split_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let rights = words.next()?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let offset = number(words.next()?)?;
        let inode = words.nth(1)?.parse().ok()?;
        Some(RealMapping {
            start: number(start)?,
            end: number(end)?,
            is_data: rights.starts_with("rw"),
            is_shared: rights.ends_with('s'),
            offset,
            inode,
        })
    }
}

/// The mappings of a real process.
pub fn mappings_of(process: Pid) -> std::io::Result<Vec<RealMapping>> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps"))?;
    Ok(maps.lines().filter_map(RealMapping::parse).collect())
}

/// An unnamed file in memory (`memfd_create`).
pub fn memory_file() -> std::io::Result<File> {
    // SAFETY: the name is a constant; the descriptor is new and only ours.
    unsafe {
        let number = libc::memfd_create(c"everett".as_ptr(), libc::MFD_CLOEXEC);
        match number < 0 {
            true => Err(std::io::Error::last_os_error()),
            false => Ok(File::from_raw_fd(number)),
        }
    }
}

/// Auxiliary vector entries: `AT_IGNORE`, and those that are changed.
const AT_IGNORE: u64 = 1;
const AT_ENTRY: u64 = 9;
/// Entries that the model sets for every program.
const AT_FIXED: [(u64, u64); 6] = [
    (11, 0),
    (12, 0),
    (13, 0),
    (14, 0),
    (16, 0x0178_bfff),
    (23, 0),
];
/// Entries that the model does not have: processor features, its name, restartable sequences.
const AT_HIDDEN: [u64; 6] = [15, 24, 26, 27, 28, 29];
const AT_EXECFN: u64 = 31;
const AT_RANDOM: u64 = 25;
const AT_SYSINFO_EHDR: u64 = 33;

fn open_memory(process: Pid) -> std::io::Result<Arc<File>> {
    let path = format!("/proc/{process}/mem");
    let file = File::options().read(true).write(true).open(path)?;
    Ok(Arc::new(file))
}

impl Tracee {
    /// Spawns a process in the sandbox, which inherits one end of a channel. It has not executed an
    /// instruction yet. Its program is our own, which always exists: within the sandbox, a failure to execute
    /// another one could not be reported.
    pub fn spawn(channel: &OwnedFd, kind: SandboxKind) -> std::io::Result<Tracee> {
        let channel = channel.as_raw_fd();
        let mut command = Command::new("/proc/self/exe");
        command
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // SAFETY: only async-signal-safe calls between fork and exec, none of which touches memory of the
        // parent.
        unsafe {
            command.pre_exec(move || {
                libc::fcntl(channel, libc::F_SETFD, 0);
                ptrace::traceme()?;
                sandbox::confine(kind)
            });
        }
        let child = command.spawn()?;
        let thread = Pid::from_raw(child.id() as i32);
        if !matches!(waitpid(thread, None)?, WaitStatus::Stopped(..)) {
            return Err(std::io::Error::other("cannot create a native process"));
        }
        let options = Options::PTRACE_O_TRACESYSGOOD
            | Options::PTRACE_O_TRACECLONE
            | Options::PTRACE_O_TRACEFORK
            | Options::PTRACE_O_TRACEVFORK
            | Options::PTRACE_O_TRACEEXEC
            | Options::PTRACE_O_EXITKILL;
        ptrace::setoptions(thread, options)?;
        Ok(Tracee {
            thread,
            process: thread,
            channel: channel as u64,
            memory: open_memory(thread)?,
            is_checked: false,
            tracks_initialisation: false,
            violation: None,
            shares: false,
            mask_of_frame: None,
        })
    }

    /// The tracee of a thread or process that this one has created; waits until it has stopped.
    pub fn child(&self, thread: Pid, is_thread: bool) -> std::io::Result<Tracee> {
        waitpid(thread, Some(WaitPidFlag::__WALL))?;
        let process = if is_thread { self.process } else { thread };
        let memory = if is_thread {
            self.memory.clone()
        } else {
            open_memory(process)?
        };
        Ok(Tracee {
            thread,
            process,
            channel: self.channel,
            memory,
            is_checked: self.is_checked,
            tracks_initialisation: self.tracks_initialisation,
            violation: None,
            shares: self.shares,
            mask_of_frame: None,
        })
    }

    /// Reads its memory on our behalf, ignoring page protection.
    pub fn peek(&self, address: u64, into: &mut [u8]) -> bool {
        self.memory.read_exact_at(into, address).is_ok()
    }

    /// Writes its memory on our behalf, ignoring page protection.
    pub fn poke(&mut self, address: u64, bytes: &[u8]) -> bool {
        self.memory.write_all_at(bytes, address).is_ok()
    }

    /// The address of some of its data, which can be borrowed while it is stopped.
    pub fn data_address(&self) -> std::io::Result<u64> {
        let mappings = mappings_of(self.process)?;
        let own = mappings.iter().find(|m| m.is_data && !m.is_shared);
        own.map(|mapping| mapping.start)
            .ok_or_else(|| std::io::Error::other("a process has no writable memory to borrow"))
    }

    /// Hides details of the real machine at program start, and supplies the model's random bytes.
    pub fn mask_auxv(&mut self, random: &[u8]) -> std::io::Result<()> {
        self.memory = open_memory(self.process)?;
        let mut at = self.registers()?.rsp;
        let word = |tracee: &mut Tracee, at: u64| {
            let mut bytes = [0; 8];
            tracee.peek(at, &mut bytes);
            u64::from_le_bytes(bytes)
        };
        let name = word(self, at + 8);
        at += 8 * (word(self, at) + 2);
        while word(self, at) != 0 {
            at += 8;
        }
        at += 8;
        loop {
            let (key, value) = (word(self, at), word(self, at + 8));
            match key {
                0 => break,
                _ if key == AT_SYSINFO_EHDR || AT_HIDDEN.contains(&key) => {
                    self.poke(at, &AT_IGNORE.to_le_bytes());
                }
                AT_EXECFN => {
                    self.poke(at + 8, &name.to_le_bytes());
                }
                AT_RANDOM => {
                    self.poke(value, random);
                }
                _ => {
                    if let Some((_, same)) = AT_FIXED.iter().find(|same| same.0 == key) {
                        self.poke(at + 8, &same.to_le_bytes());
                    }
                }
            }
            at += 16;
        }
        // Makes `cpuid` fault, if the processor supports that.
        const ARCH_PRCTL: u64 = 158;
        const SET_CPUID: u64 = 0x1012;
        self.inject_anywhere(ARCH_PRCTL, [SET_CPUID, 0, 0, 0, 0, 0])?;
        Ok(())
    }

    /// Places a system call instruction at its program counter, and the thread behind it, as if it had made
    /// the call. Returns the original registers.
    pub fn move_to_call(&mut self) -> std::io::Result<Registers> {
        const SYSCALL: [u8; 2] = [0x0f, 0x05];
        let before = self.registers()?;
        self.poke(before.rip, &SYSCALL);
        let rip = before.rip + SYSCALL.len() as u64;
        self.set_registers(Registers { rip, ..before })?;
        Ok(before)
    }

    /// Executes a real system call although the thread is not stopped at one. Everything is restored.
    pub fn inject_anywhere(&mut self, number: u64, args: [u64; 6]) -> std::io::Result<u64> {
        let mut code = [0; 2];
        self.peek(self.registers()?.rip, &mut code);
        let before = self.move_to_call()?;
        let result = self.inject_call(number, args);
        self.poke(before.rip, &code);
        self.set_registers(before)?;
        Ok(result?.0)
    }

    /// The system call that it is stopped at.
    pub(crate) fn current_call(&self) -> std::io::Result<Call> {
        const ARCH_X86_64: u32 = 0xc000_003e;
        let information = self.information();
        let number = information.words[0];
        Ok(Call {
            number,
            args: information.words[1..].try_into().unwrap_or_default(),
            is_foreign: information.arch != ARCH_X86_64,
        })
    }

    /// The vsyscall at which the seccomp filter trapped it.
    pub(crate) fn trapped_vsyscall(&self) -> std::io::Result<Option<Call>> {
        const SECCOMP: i32 = 1;
        let information = ptrace::getsiginfo(self.thread)?;
        if information.si_code != SECCOMP {
            return Ok(None);
        }
        // SAFETY: `siginfo_t` is plain data of 128 bytes; the call number follows the address.
        let number = unsafe { (&raw const information).cast::<u32>().add(6).read() };
        let registers = self.registers()?;
        Ok(Some(Call {
            number: u64::from(number),
            args: [registers.rdi, registers.rsi, registers.rdx, 0, 0, 0],
            is_foreign: false,
        }))
    }

    /// Entry point of its program.
    pub fn start_address(&self) -> std::io::Result<u64> {
        let vector = std::fs::read(format!("/proc/{}/auxv", self.process))?;
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        let mut entries = vector.chunks_exact(16).map(|entry| entry.split_at(8));
        let entry = entries.find(|(key, _)| word(key) == AT_ENTRY);
        Ok(entry.map_or(0, |(_, value)| word(value)))
    }

    /// Executes one instruction.
    pub fn step(&mut self) -> std::io::Result<Stopped> {
        loop {
            ptrace::step(self.thread, None)?;
            let stopped = self.wait()?;
            // A stop by the watchdog may be late.
            if stopped != Stopped::Signal(libc::SIGSTOP) {
                return Ok(stopped);
            }
        }
    }

    /// Executes one instruction; a system call is not executed but stops it.
    pub fn step_emulated(&mut self) -> std::io::Result<Stopped> {
        const PTRACE_SYSEMU_SINGLESTEP: libc::c_uint = 32;
        loop {
            self.resume(PTRACE_SYSEMU_SINGLESTEP, 0)?;
            let stopped = self.wait()?;
            if stopped != Stopped::Signal(libc::SIGSTOP) {
                return Ok(stopped);
            }
        }
    }

    /// Reads its registers.
    pub fn registers(&self) -> std::io::Result<Registers> {
        Ok(ptrace::getregs(self.thread)?)
    }

    /// Sets its registers.
    pub fn set_registers(&self, registers: Registers) -> std::io::Result<()> {
        Ok(ptrace::setregs(self.thread, registers)?)
    }

    /// Runs it to its next system call, which is not executed, or to an earlier stop.
    pub fn run(&mut self, signal: Option<i32>) -> std::io::Result<Stopped> {
        self.resume(libc::PTRACE_SYSEMU, signal.unwrap_or(0))?;
        self.wait()
    }

    /// Resumes it with a signal of any number (real-time signals have no names).
    fn resume(&self, way: libc::c_uint, signal: i32) -> std::io::Result<()> {
        // SAFETY: numbers only.
        let failed = unsafe { libc::ptrace(way, self.thread.as_raw(), 0, signal) != 0 };
        match failed {
            true => Err(std::io::Error::last_os_error()),
            false => Ok(()),
        }
    }

    fn wait(&mut self) -> std::io::Result<Stopped> {
        const CALL: i32 = libc::SIGTRAP | 0x80;
        let mut status = 0;
        // SAFETY: the status lives on our stack.
        while unsafe { libc::waitpid(self.thread.as_raw(), &mut status, libc::__WALL) } < 0 {
            let error = std::io::Error::last_os_error();
            if error.kind() != std::io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        if !libc::WIFSTOPPED(status) {
            return Ok(Stopped::Gone);
        }
        Ok(match (status >> 16, libc::WSTOPSIG(status)) {
            (0, CALL) => Stopped::Call,
            (0, signal) => Stopped::Signal(signal),
            (libc::PTRACE_EVENT_EXEC, _) => Stopped::Executed,
            _ => {
                let child = ptrace::getevent(self.thread)?;
                Stopped::Created(Pid::from_raw(child as i32))
            }
        })
    }

    /// Executes a real system call instead of the one that the thread is stopped at. Returns the result and
    /// the new thread or process, if any; registers are as the real kernel left them.
    pub fn inject_call(
        &mut self,
        number: u64,
        args: [u64; 6],
    ) -> std::io::Result<(u64, Option<Pid>)> {
        let before = self.registers()?;
        let [rdi, rsi, rdx, r10, r8, r9] = args;
        self.set_registers(Registers {
            rip: before.rip - 2,
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
        let mut created = None;
        let mut entered = false;
        loop {
            ptrace::syscall(self.thread, None)?;
            if entered && number == crate::call_numbers::EXECVE {
                self.wait_for_either()?;
            }
            match self.wait()? {
                // The suppressed call has an exit stop of its own.
                Stopped::Call => match self.call_stop_side() {
                    Side::Entry => entered = true,
                    Side::Exit if entered => break,
                    Side::Exit => {}
                },
                Stopped::Created(child) => created = Some(child),
                Stopped::Executed => {}
                Stopped::Signal(_) => {}
                Stopped::Gone => return Ok((0, created)),
            }
        }
        Ok((self.registers()?.rax, created))
    }

    /// After `execve`, waits for a stop of this thread or, if it succeeded, of the main thread, whose tid it
    /// takes over.
    fn wait_for_either(&mut self) -> std::io::Result<()> {
        const PAUSE: std::time::Duration = std::time::Duration::from_micros(100);
        while self.thread != self.process {
            let has_stopped = |thread: Pid| {
                let looks = WaitPidFlag::__WALL | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
                let id = nix::sys::wait::Id::Pid(thread);
                let events = looks | WaitPidFlag::WSTOPPED | WaitPidFlag::WEXITED;
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

    /// Information about the current system call.
    fn information(&self) -> Information {
        const PTRACE_GET_SYSCALL_INFO: libc::c_uint = 0x420e;
        let mut information = Information::default();
        // SAFETY: the kernel writes at most as many bytes as given, which are plain numbers.
        unsafe {
            libc::ptrace(
                PTRACE_GET_SYSCALL_INFO,
                self.thread.as_raw(),
                size_of::<Information>(),
                &raw mut information,
            );
        }
        information
    }

    /// Whether it is stopped at the entry or the exit of a system call.
    fn call_stop_side(&self) -> Side {
        const ENTRY: u8 = 1;
        match self.information().kind {
            ENTRY => Side::Entry,
            _ => Side::Exit,
        }
    }

    /// As [`Tracee::inject_call`], then restores all registers.
    pub fn inject_call_preserving(&mut self, number: u64, args: [u64; 6]) -> std::io::Result<u64> {
        let before = self.registers()?;
        let (result, _) = self.inject_call(number, args)?;
        let after = self.registers()?;
        // The TLS base is kept: it is what `arch_prctl` is called for.
        self.set_registers(Registers {
            fs_base: after.fs_base,
            gs_base: after.gs_base,
            ..before
        })?;
        Ok(result)
    }

    /// Sets the result of the system call that it is stopped at.
    pub fn answer(&self, result: u64) -> std::io::Result<()> {
        const RAX: usize = std::mem::offset_of!(Registers, rax);
        // SAFETY: two numbers. No other register changes.
        let failed =
            unsafe { libc::ptrace(libc::PTRACE_POKEUSER, self.thread.as_raw(), RAX, result) != 0 };
        if failed {
            return Err(std::io::Error::last_os_error());
        }
        Ok(())
    }

    /// Restarts the system call that it is stopped at.
    pub fn call_again(&self, number: u64) -> std::io::Result<()> {
        let registers = self.registers()?;
        self.set_registers(Registers {
            rip: registers.rip - 2,
            rax: number,
            orig_rax: u64::MAX,
            ..registers
        })
    }

    /// Detaches from it; it stays stopped.
    pub fn detach(&self) -> std::io::Result<()> {
        Ok(ptrace::detach(self.thread, Signal::SIGSTOP)?)
    }
}

/// Makes every system call of a process and its threads raise SIGSYS from now on: it cannot reach the real
/// machine once it is no longer traced.
pub fn confine(tracee: &mut Tracee) -> std::io::Result<()> {
    const PRCTL: u64 = 157;
    const SECCOMP: u64 = 317;
    const SET_PTRACER: u64 = 0x5961_6d61;
    const NO_NEW_PRIVILEGES: u64 = 38;
    const SET_FILTER: u64 = 1;
    const ALL_THREADS: u64 = 1;
    const RETURN: u16 = 6;
    const TRAP: u32 = 0x0003_0000;
    // The thread need not be stopped at a system call, nor have a valid stack: borrows some code and some
    // data.
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", tracee.process))?;
    let first = |rights: &str| {
        let line = maps.lines().find(|line| line.contains(rights))?;
        u64::from_str_radix(line.split('-').next()?, 16).ok()
    };
    let (Some(code), Some(data)) = (first(" r-xp "), first(" rw-p ")) else {
        return Err(std::io::Error::other(
            "a process has no writable memory to borrow",
        ));
    };
    let mut filter = Vec::new();
    filter.extend_from_slice(&1u64.to_le_bytes());
    filter.extend_from_slice(&(data + 16).to_le_bytes());
    filter.extend_from_slice(&RETURN.to_le_bytes());
    filter.extend_from_slice(&[0, 0]);
    filter.extend_from_slice(&TRAP.to_le_bytes());
    let mut kept = ([0; 2], vec![0; filter.len()]);
    tracee.peek(code, &mut kept.0);
    tracee.peek(data, &mut kept.1);
    tracee.poke(code, &[0x0f, 0x05]);
    tracee.poke(data, &filter);
    let before = tracee.registers()?;
    let mut call = |number: u64, args: [u64; 6]| {
        tracee.set_registers(Registers {
            rip: code + 2,
            ..before
        })?;
        Ok::<u64, std::io::Error>(tracee.inject_call(number, args)?.0)
    };
    // Lets debuggers attach where otherwise only parents may.
    call(PRCTL, [SET_PTRACER, u64::MAX, 0, 0, 0, 0])?;
    call(PRCTL, [NO_NEW_PRIVILEGES, 1, 0, 0, 0, 0])?;
    let refused = call(SECCOMP, [SET_FILTER, ALL_THREADS, data, 0, 0, 0])?;
    tracee.poke(code, &kept.0);
    tracee.poke(data, &kept.1);
    tracee.set_registers(Registers {
        orig_rax: u64::MAX,
        ..before
    })?;
    if refused != 0 {
        return Err(std::io::Error::other(
            "the real kernel refuses to install a seccomp filter",
        ));
    }
    Ok(())
}

/// Kills the processes of these threads, which must be all of their threads.
pub fn kill_all_tracees(mut tracees: Vec<Tracee>) {
    for tracee in &tracees {
        let _ = nix::sys::signal::kill(tracee.process, Signal::SIGKILL);
    }
    // The exit of a main thread is reported only when all other threads are gone.
    tracees.sort_by_key(|tracee| tracee.thread == tracee.process);
    for tracee in &tracees {
        let flags = Some(WaitPidFlag::__WALL);
        while let Ok(status) = waitpid(tracee.thread, flags) {
            if matches!(status, WaitStatus::Exited(..) | WaitStatus::Signaled(..)) {
                break;
            }
            // It was about to stop for another reason.
            let _ = ptrace::cont(tracee.thread, None);
        }
    }
}
