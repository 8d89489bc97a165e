//! A native thread that stops at every system call. All `unsafe` code of the crate that controls
//! threads is in this module and its submodules: operations that `nix` does not offer.

mod handlers;
mod inject;
mod start;

pub use inject::confine;

use std::fs::File;
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use everett_linux::{Guest, GuestMapping};
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::activity::Activity;
use crate::{proc_reads, shadow};

/// Registers of a native thread.
pub type Registers = libc::user_regs_struct;

/// The ptrace request that executes one instruction, but no system call. A plain single step would
/// make a real call, because the guest decides which instruction is at an address.
const PTRACE_SYSEMU_SINGLESTEP: libc::c_uint = 32;

/// Why a native thread stopped.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Stopped {
    /// The thread is at the entry of a system call, which was not executed.
    Call,
    /// The thread is about to receive a real signal.
    Signal(i32),
    /// The thread has created a thread or a process.
    Created(Pid),
    /// The thread has executed another program.
    Executed,
    /// The thread has exited.
    Gone,
}

/// A system call that a thread is about to make.
#[derive(Copy, Clone)]
pub(crate) struct Call {
    pub number: u64,
    pub args: [u64; 6],
    /// Whether the call uses the 32-bit calling convention, so that its number has another meaning.
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
    /// Number and arguments of the call.
    words: [u64; 7],
}

/// One native thread.
pub struct Tracee {
    /// The real thread.
    pub thread: Pid,
    /// The real process.
    pub process: Pid,
    /// The thread's descriptor of the channel.
    pub channel: u64,
    memory: Arc<File>,
    /// Whether the thread executes a checked build, whose memory has a shadow.
    pub is_checked: bool,
    /// Whether the thread executes a checked build that tracks initialisation.
    pub tracks_initialisation: bool,
    /// The first poisoned address that the kernel wrote to, and the kind of error.
    pub violation: Option<(u64, &'static str)>,
    /// Whether the process may share memory with other processes.
    pub shares: bool,
    /// The signal mask that the last returned handler restores.
    mask_of_frame: Option<u64>,
    /// Whether `cpuid` faults, so that it can be emulated.
    pub faults_at_cpuid: bool,
    /// The processes that have run, of all tracees of a machine.
    pub activity: Activity,
}

/// Memory accesses of the kernel, which respect page protection.
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
        self.activity.note(self.process);
        let here = (bytes.as_ptr().cast_mut().cast(), bytes.len());
        // SAFETY: the bytes are only read, and of the given length.
        match unsafe { transfer(libc::process_vm_writev, self.process, address, here) } {
            Some(done) => done,
            None => self.is_writable(address, bytes.len()) && self.poke(address, bytes),
        }
    }

    fn can_write(&mut self, address: u64) -> bool {
        // All threads are stopped: no thread sees that the byte is written again.
        let mut byte = [0];
        let here = (byte.as_mut_ptr().cast(), byte.len());
        // SAFETY: the byte is ours.
        Guest::read(self, address, &mut byte)
            && unsafe { transfer(libc::process_vm_writev, self.process, address, here) }
                .unwrap_or_else(|| self.is_writable(address, 1))
    }

    fn is_mapped(&mut self, address: u64) -> bool {
        // Behind the end of a mapped file there is nothing to read.
        let is_there = |mapping: &RealMapping| (mapping.start..mapping.end).contains(&address);
        self.peek(address, &mut [0])
            || mappings_of(self.process).is_ok_and(|mappings| mappings.iter().any(is_there))
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

    fn mappings(&mut self) -> Vec<GuestMapping> {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.process));
        let maps = maps.unwrap_or_default();
        maps.lines().filter_map(guest_mapping).collect()
    }

    fn auxiliary_vector(&mut self) -> Vec<u8> {
        std::fs::read(format!("/proc/{}/auxv", self.process)).unwrap_or_default()
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

/// Copies bytes between Everett and a process. Returns whether everything was copied; `None` if the
/// machine lacks the call.
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
    // SAFETY: the caller guarantees the local side; the remote side
    // is an address of another process.
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
    /// First address behind the mapping.
    pub end: u64,
    /// Whether the mapping is readable and writable.
    pub is_data: bool,
    /// Whether the mapping is shared.
    pub is_shared: bool,
    /// Whether it is the stack that the process started with.
    pub is_stack: bool,
    /// Offset of the mapping in its file.
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
            is_stack: line.ends_with("[stack]"),
            offset,
            inode,
        })
    }
}

/// Parses a line of `/proc/PID/maps` for the program: names of files are those of the real machine,
/// which it does not see.
fn guest_mapping(line: &str) -> Option<GuestMapping> {
    let mut words = line.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let rights = words.next()?.to_owned();
    let number = |text| u64::from_str_radix(text, 16).ok();
    let offset = number(words.next()?)?;
    let name = words.nth(2).filter(|name| name.starts_with('['));
    Some(GuestMapping {
        start: number(start)?,
        end: number(end)?,
        rights,
        offset,
        name: name.unwrap_or_default().to_owned(),
    })
}

/// Returns the mappings of a real process.
pub fn mappings_of(process: Pid) -> std::io::Result<Vec<RealMapping>> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps"))?;
    let mappings: Vec<_> = maps.lines().filter_map(RealMapping::parse).collect();
    proc_reads::add(mappings.len());
    Ok(mappings)
}

/// Creates an unnamed file in memory (`memfd_create`).
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

fn open_memory(process: Pid) -> std::io::Result<Arc<File>> {
    let path = format!("/proc/{process}/mem");
    let file = File::options().read(true).write(true).open(path)?;
    Ok(Arc::new(file))
}

impl Tracee {
    /// Returns the tracee of a thread or process that this one has created; waits until it has
    /// stopped.
    pub fn child(&self, thread: Pid, is_thread: bool) -> std::io::Result<Tracee> {
        waitpid(thread, Some(WaitPidFlag::__WALL))?;
        let process = if is_thread { self.process } else { thread };
        self.activity.note(process);
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
            faults_at_cpuid: self.faults_at_cpuid,
            activity: self.activity.clone(),
        })
    }

    /// Returns whether the process's own mappings allow writing to a range, for machines where the
    /// real kernel does not check that.
    fn is_writable(&self, address: u64, len: usize) -> bool {
        let Some(end) = address.checked_add(len as u64) else {
            return false;
        };
        let mappings = mappings_of(self.process).unwrap_or_default();
        let mut at = address;
        for mapping in mappings.iter().filter(|mapping| mapping.is_data) {
            if (mapping.start..mapping.end).contains(&at) {
                at = mapping.end;
            }
        }
        at >= end
    }

    /// Reads the memory of the process, ignoring page protection.
    pub fn peek(&self, address: u64, into: &mut [u8]) -> bool {
        self.memory.read_exact_at(into, address).is_ok()
    }

    /// Writes the memory of the process, ignoring page protection.
    pub fn poke(&mut self, address: u64, bytes: &[u8]) -> bool {
        self.activity.note(self.process);
        self.memory.write_all_at(bytes, address).is_ok()
    }

    /// Returns the system call at which the thread is stopped.
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

    /// Returns the vsyscall at which the seccomp filter trapped the thread.
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

    /// Executes one instruction; a system call is not executed but stops the thread.
    pub fn step(&mut self) -> std::io::Result<Stopped> {
        loop {
            self.resume(PTRACE_SYSEMU_SINGLESTEP, 0)?;
            let stopped = self.wait()?;
            // A stop by the watchdog may arrive late.
            if stopped != Stopped::Signal(libc::SIGSTOP) {
                return Ok(stopped);
            }
        }
    }

    /// Reads the registers of the thread.
    pub fn registers(&self) -> std::io::Result<Registers> {
        Ok(ptrace::getregs(self.thread)?)
    }

    /// Sets the registers of the thread.
    pub fn set_registers(&self, registers: Registers) -> std::io::Result<()> {
        match ptrace::setregs(self.thread, registers) {
            Err(Errno::EIO) => Ok(self.set_registers_but_bases(registers)?),
            done => Ok(done?),
        }
    }

    /// Sets the registers except the bases of segments. A program can set the bases to any address
    /// (`wrgsbase`), but the kernel refuses to set an address in its own half, even if nothing
    /// changes.
    fn set_registers_but_bases(&self, registers: Registers) -> nix::Result<()> {
        let r = registers;
        let before = ptrace::getregs(self.thread)?;
        if (r.fs_base, r.gs_base) != (before.fs_base, before.gs_base) {
            return Err(Errno::EIO);
        }
        // In the order of `user_regs_struct`, up to the stack segment.
        let words = [
            r.r15, r.r14, r.r13, r.r12, r.rbp, r.rbx, r.r11, r.r10, r.r9, r.r8, r.rax, r.rcx,
            r.rdx, r.rsi, r.rdi, r.orig_rax, r.rip, r.cs, r.eflags, r.rsp, r.ss,
        ];
        for (index, word) in words.into_iter().enumerate() {
            let place = std::ptr::without_provenance_mut(index * size_of::<u64>());
            ptrace::write_user(self.thread, place, word as libc::c_long)?;
        }
        Ok(())
    }

    /// Runs the thread to its next system call, which is not executed, or to an earlier stop.
    pub fn run(&mut self, signal: Option<i32>) -> std::io::Result<Stopped> {
        self.resume(libc::PTRACE_SYSEMU, signal.unwrap_or(0))?;
        self.wait()
    }

    /// Resumes the thread with a signal of any number (real-time signals have no names).
    fn resume(&self, way: libc::c_uint, signal: i32) -> std::io::Result<()> {
        self.activity.note(self.process);
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

    /// Returns information about the current system call.
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

    /// Returns whether the thread is stopped at the entry or the exit of a system call.
    fn call_stop_side(&self) -> Side {
        const ENTRY: u8 = 1;
        match self.information().kind {
            ENTRY => Side::Entry,
            _ => Side::Exit,
        }
    }

    /// Sets the result of the system call at which the thread is stopped.
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

    /// Restarts the system call at which the thread is stopped.
    pub fn call_again(&self, number: u64) -> std::io::Result<()> {
        let registers = self.registers()?;
        self.set_registers(Registers {
            rip: registers.rip.wrapping_sub(2),
            rax: number,
            orig_rax: u64::MAX,
            ..registers
        })
    }

    /// Detaches from the thread, which stays stopped.
    pub fn detach(&self) -> std::io::Result<()> {
        Ok(ptrace::detach(self.thread, Signal::SIGSTOP)?)
    }
}

/// Kills the processes of these threads, which must be all of their threads.
pub fn kill_all_tracees(mut tracees: Vec<Tracee>) {
    for tracee in &tracees {
        let _ = nix::sys::signal::kill(tracee.process, Signal::SIGKILL);
    }
    // Other processes of ours may not have been reaped, and a namespace ends only after them: do
    // not wait for that.
    if std::thread::panicking() {
        return;
    }
    // The exit of a main thread is reported only when all other threads are gone.
    tracees.sort_by_key(|tracee| tracee.thread == tracee.process);
    for tracee in &tracees {
        let flags = Some(WaitPidFlag::__WALL);
        while let Ok(status) = waitpid(tracee.thread, flags) {
            if matches!(status, WaitStatus::Exited(..) | WaitStatus::Signaled(..)) {
                break;
            }
            // The thread was about to stop for another reason.
            let _ = ptrace::cont(tracee.thread, None);
        }
    }
}
