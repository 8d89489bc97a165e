//! The start of native processes: how they enter the sandbox, and what they see of the real
//! machine.

use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::sys::ptrace::{self, Options};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use everett_linux::AuxiliaryValues;

use super::{RealMapping, Tracee, open_memory};
use crate::activity::Activity;
use crate::call_numbers::MUNMAP;
use crate::gate;
use crate::namespace::{Entrance, SpawnNamespace};
use crate::sandbox::{self, SandboxKind};

/// Entries of the auxiliary vector: `AT_IGNORE`, and those that are changed.
const AT_IGNORE: u64 = 1;
const AT_ENTRY: u64 = 9;
/// Entries that the model sets for every program.
const AT_FIXED: [(u64, u64); 1] = [(16, 0x0178_bfff)];
/// Entries that the model does not have: processor features, platform name, restartable sequences.
const AT_HIDDEN: [u64; 6] = [15, 24, 26, 27, 28, 29];
const AT_EXECFN: u64 = 31;
const AT_RANDOM: u64 = 25;
const AT_SYSINFO_EHDR: u64 = 33;

impl Tracee {
    /// Spawns a process in the sandbox, which inherits one end of a channel. It has not executed an
    /// instruction yet. Its program is Everett itself, which always exists: within the sandbox, a
    /// failure to execute another one could not be reported.
    pub fn spawn(
        channel: &OwnedFd,
        kind: SandboxKind,
        place: SpawnNamespace<'_>,
    ) -> io::Result<Tracee> {
        let channel = channel.as_raw_fd();
        let (entrance, filter) = (place.entrance(), sandbox::filter());
        let (mut reader, report) = io::pipe()?;
        let mut command = Command::new("/proc/self/exe");
        command
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let to = report.as_raw_fd();
        // SAFETY: only async-signal-safe calls between fork and exec, none of
        // which touches memory of the parent.
        unsafe {
            command.pre_exec(move || {
                entrance.enter(to)?;
                // A group of its own, so that all that descends from it can be killed at once.
                libc::setpgid(0, 0);
                close_on_exec(channel);
                ptrace::traceme()?;
                sandbox::confine(kind, &filter)
            });
        }
        let mut child = command.spawn()?;
        drop(report);
        let thread = match entrance {
            Entrance::Stay => child.id() as i32,
            _ => {
                let mut pid = [0; 4];
                child.wait()?;
                reader.read_exact(&mut pid)?;
                i32::from_ne_bytes(pid)
            }
        };
        let thread = Pid::from_raw(thread);
        if !matches!(waitpid(thread, None)?, WaitStatus::Stopped(..)) {
            return Err(io::Error::other("cannot create a native process"));
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
            faults_at_cpuid: false,
            activity: Activity::default(),
        })
    }

    /// Sets up a program that has not executed an instruction: creates the gate, hides details of
    /// the real machine, and supplies the model's random bytes.
    pub fn set_up_program(&mut self, values: &AuxiliaryValues) -> io::Result<()> {
        self.memory = open_memory(self.process)?;
        gate::install(self)?;
        self.unmap_clock()?;
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
                    let at_name = self.place_name(value, name, &values.name);
                    self.poke(at + 8, &at_name.to_le_bytes());
                }
                AT_RANDOM => {
                    self.poke(value, &values.random);
                }
                _ => {
                    let fixed = AT_FIXED.iter().find(|same| same.0 == key);
                    let decided = values.ids.entry(key).or(fixed.map(|same| same.1));
                    if let Some(decided) = decided {
                        self.poke(at + 8, &decided.to_le_bytes());
                    }
                }
            }
            at += 16;
        }
        // Makes `cpuid` fault, if the processor supports that.
        const ARCH_PRCTL: u64 = 158;
        const SET_CPUID: u64 = 0x1012;
        self.faults_at_cpuid =
            self.inject_call_preserving(ARCH_PRCTL, [SET_CPUID, 0, 0, 0, 0, 0])? == 0;
        Ok(())
    }

    /// The address of the program's name: that of its first argument if it is the same, or of the
    /// real path, which the name replaces if it is not longer.
    fn place_name(&mut self, real: u64, argument: u64, name: &[u8]) -> u64 {
        let with_end = [name, &[0]].concat();
        let mut there = vec![0; with_end.len()];
        let is_same = argument != 0 && self.peek(argument, &mut there) && there == with_end;
        // The path of a replaced program has as much room, and its name is not known otherwise.
        let has_room = !is_same && self.peek(real, &mut there) && !there[..name.len()].contains(&0);
        match has_room && self.poke(real, &with_end) {
            true => real,
            false => argument,
        }
    }

    /// Unmaps the vDSO and its data, which show the real time.
    fn unmap_clock(&mut self) -> io::Result<()> {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.process))?;
        for line in maps.lines() {
            let is_clock = line.ends_with("[vdso]") || line.contains("[vvar");
            let Some(mapping) = RealMapping::parse(line).filter(|_| is_clock) else {
                continue;
            };
            let args = [mapping.start, mapping.end - mapping.start, 0, 0, 0, 0];
            if self.inject_call_preserving(MUNMAP, args)? != 0 {
                let message = "the real kernel does not let go of its clock page";
                return Err(io::Error::other(message));
            }
        }
        Ok(())
    }

    /// Returns the entry point of the process's program.
    pub fn start_address(&self) -> io::Result<u64> {
        let vector = std::fs::read(format!("/proc/{}/auxv", self.process))?;
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        let mut entries = vector.chunks_exact(16).map(|entry| entry.split_at(8));
        let entry = entries.find(|(key, _)| word(key) == AT_ENTRY);
        Ok(entry.map_or(0, |(_, value)| word(value)))
    }
}

/// Marks all descriptors except the standard streams and one other to be closed at `exec`: the
/// guest must not inherit what our caller left open.
fn close_on_exec(kept: RawFd) {
    const FIRST: libc::c_uint = 3;
    const CLOSE_RANGE_CLOEXEC: libc::c_uint = 4;
    // SAFETY: numbers only. Where the call does not exist, descriptors of
    // ours are closed at `exec` anyway.
    unsafe {
        libc::syscall(
            libc::SYS_close_range,
            FIRST,
            libc::c_uint::MAX,
            CLOSE_RANGE_CLOEXEC,
        );
        libc::fcntl(kept, libc::F_SETFD, 0);
    }
}
