//! Copies of a stopped process. A peer that takes long to start is started once and stopped when it
//! is ready, before its first connection; each fresh instance is a copy, by a `fork` that the
//! stopped process is made to do.
//!
//! A copy shares the kernel's side of open files with the stopped process. So one copy runs at a
//! time, and these files, and the peer's folder, are made what they were before the next one. What
//! cannot be copied or made so again is refused: other threads, children, shared memory, timers,
//! connections.

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::folder::SavedFolder;
use crate::held::{Held, held_files, is_readable, open_by, reset};
use crate::traced::Traced;

/// A stopped process, of which copies are made.
pub struct Snapshot {
    stopped: Traced,
    files: Vec<Held>,
    folder: SavedFolder,
    /// The number of the process in its namespace. Programs keep their number, so that copies have
    /// the same one.
    number: u32,
    /// Where the kernel tells that a thread has ended.
    clear_at: u64,
}

/// A running copy of a stopped process. It is killed when this value is dropped.
pub struct Copied {
    pid: Pid,
    /// Becomes readable when the process ends.
    ended: OwnedFd,
}

impl Snapshot {
    /// Stops a process that is ready. Fails with the reason if copies of it would not be right.
    pub fn take(pid: Pid, folder: &Path) -> Result<Snapshot, String> {
        let ready = Traced::stop(pid)?;
        refuse_what_is_not_copied(&ready)?;
        let files = held_files(pid)?;
        let folder = SavedFolder::of(folder);
        let folder = folder.map_err(|error| format!("its folder cannot be saved: {error}"))?;
        let (number, _) = ready.call(libc::SYS_getpid, [0; 5])?;
        if number == i64::from(pid.as_raw()) {
            return Err(
                "its copies would have other process numbers where Everett may not make PID namespaces (as root)"
                    .to_owned(),
            );
        }
        let clear_at = clear_at(&ready)?;
        // Copies get the number of the process, so it is itself replaced by a copy, which stays stopped.
        let flags = (libc::CLONE_PARENT | libc::SIGCHLD) as u64;
        let (result, created) = ready.call(libc::SYS_clone, [flags, 0, 0, 0, 0])?;
        let stopped = ready.created(created.ok_or_else(|| not_copied(result))?)?;
        ready.end()?;
        Ok(Snapshot {
            stopped,
            files,
            folder,
            number: number as u32,
            clear_at,
        })
    }

    /// Makes a copy of the process, which runs. No other copy may run.
    pub fn copy(&self, folder: &Path) -> Result<Copied, String> {
        let restored = self.folder.restore(folder);
        restored.map_err(|error| format!("its folder cannot be restored: {error}"))?;
        reset(self.stopped.pid, &self.files)?;
        let copy = self.stopped.created(self.clone()?)?;
        // It dies with this thread as the stopped process does, and is killed with its children.
        let kill = libc::SIGKILL as u64;
        copy.call(
            libc::SYS_prctl,
            [libc::PR_SET_PDEATHSIG as u64, kill, 0, 0, 0],
        )?;
        copy.call(libc::SYS_setpgid, [0; 5])?;
        let ended = open_by(libc::SYS_pidfd_open, copy.pid.as_raw(), 0);
        let ended = ended.map_err(|error| format!("its copy cannot be watched: {error}"))?;
        let pid = copy.release()?;
        Ok(Copied { pid, ended })
    }

    /// Makes the stopped process create a process with the number of the first one.
    fn clone(&self) -> Result<Pid, String> {
        let until = Instant::now() + END;
        let at = self.stopped.scratch();
        let number_at = at + 128;
        // `struct clone_args`: flags, pidfd, child_tid, parent_tid, exit_signal, stack, its size, tls, set_tid, its
        // size, cgroup.
        let flags = (libc::CLONE_PARENT | libc::CLONE_CHILD_CLEARTID) as u64;
        let arguments = [flags, 0, self.clear_at, 0, 0, 0, 0, 0, number_at, 1, 0];
        let bytes: Vec<u8> = arguments
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        self.stopped.write(at, &bytes)?;
        self.stopped.write(number_at, &self.number.to_ne_bytes())?;
        loop {
            let size = bytes.len() as u64;
            match self.stopped.call(libc::SYS_clone3, [at, size, 0, 0, 0])? {
                (_, Some(pid)) => return Ok(pid),
                // The one before has ended, but its number is not free yet.
                (result, None) if result == -i64::from(libc::EEXIST) && Instant::now() < until => {
                    std::thread::sleep(POLL_INTERVAL);
                }
                (result, None) => return Err(not_copied(result)),
            }
        }
    }
}

/// Real time within which the kernel ends processes that are killed.
const END: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_micros(200);

impl Copied {
    /// Returns whether the process has ended.
    pub fn has_ended(&self) -> bool {
        is_readable(&self.ended)
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        let until = Instant::now() + END;
        let _ = killpg(self.pid, Signal::SIGKILL);
        let _ = kill(self.pid, Signal::SIGKILL);
        // What it had open is closed when all processes of its group have ended.
        while killpg(self.pid, None) != Err(Errno::ESRCH) && Instant::now() < until {
            let _ = waitpid(self.pid, Some(WaitPidFlag::WNOHANG));
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

fn cause(result: i64) -> io::Error {
    io::Error::from_raw_os_error(-result as i32)
}

fn not_copied(result: i64) -> String {
    format!("the kernel does not copy it: {}", cause(result))
}

/// Returns the address where the kernel tells that a thread has ended.
fn clear_at(stopped: &Traced) -> Result<u64, String> {
    let scratch = stopped.scratch();
    let get = [libc::PR_GET_TID_ADDRESS as u64, scratch, 0, 0, 0];
    match stopped.call(libc::SYS_prctl, get)? {
        (0, _) => Ok(u64::from_ne_bytes(stopped.read(scratch)?)),
        (result, _) => Err(format!("its thread cannot be copied: {}", cause(result))),
    }
}

/// Fails with the reason if a copy of a process would lack something.
fn refuse_what_is_not_copied(stopped: &Traced) -> Result<(), String> {
    let pid = stopped.pid;
    let text = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/{name}"));
        text.map_err(|error| format!("{name} of its process cannot be read: {error}"))
    };
    let tasks =
        std::fs::read_dir(format!("/proc/{pid}/task")).map_err(|error| error.to_string())?;
    let threads = tasks.count();
    if threads > 1 {
        return Err(format!(
            "it has {threads} threads, of which a copy would have one"
        ));
    }
    if !text(&format!("task/{pid}/children"))?.trim().is_empty() {
        return Err("it has children, which would not be copied".to_owned());
    }
    let maps = text("maps")?;
    let is_shared = |line: &&str| {
        line.split(' ')
            .nth(1)
            .is_some_and(|rights| rights == "rw-s")
    };
    if let Some(line) = maps.lines().find(is_shared) {
        let name = line.split_whitespace().nth(5).unwrap_or("memory");
        return Err(format!("it shares {name} in memory with its copies"));
    }
    let has_timer = (0..3).map(|which| {
        let scratch = stopped.scratch();
        let (result, _) = stopped.call(libc::SYS_getitimer, [which, scratch, 0, 0, 0])?;
        Ok(result != 0 || stopped.read::<32>(scratch)? != [0; 32])
    });
    let has_timer = has_timer.collect::<Result<Vec<bool>, String>>()?;
    if has_timer.contains(&true) || !text("timers")?.trim().is_empty() {
        return Err("it has a timer, which would not be copied".to_owned());
    }
    Ok(())
}
