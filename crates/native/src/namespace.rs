//! The PID namespace of native processes, if the machine allows one: when its first process dies,
//! the kernel kills all others. Everett traces the first process, which never runs, so the
//! namespace dies with Everett at the latest.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::sandbox::SandboxKind;
use crate::tracee::{Tracee, kill_all_tracees};

/// The namespaces in which a process is spawned.
#[derive(Copy, Clone)]
pub enum SpawnNamespace<'n> {
    /// Everett's own namespaces.
    Here,
    /// A new PID namespace, of which it is the first process.
    New {
        /// Whether there is a new user namespace, too, which needs no privileges.
        with_user: bool,
    },
    /// An existing namespace.
    Inside(&'n Namespace),
}

/// A PID namespace.
pub struct Namespace {
    /// The first process of the namespace.
    first: Option<Tracee>,
    pid: File,
    /// The user namespace, if the namespace has its own.
    user: Option<File>,
}

impl Namespace {
    /// Creates a namespace; `None` if the machine refuses.
    pub fn new(channel: &OwnedFd, kind: SandboxKind) -> Option<Namespace> {
        let make = |with_user| Namespace::make(channel, kind, with_user).ok();
        make(false).or_else(|| make(true))
    }

    fn make(channel: &OwnedFd, kind: SandboxKind, with_user: bool) -> io::Result<Namespace> {
        let first = Tracee::spawn(channel, kind, SpawnNamespace::New { with_user })?;
        let process = first.process;
        let open = |name: &str| File::open(format!("/proc/{process}/ns/{name}"));
        let opened = (open("pid"), with_user.then(|| open("user")).transpose());
        match opened {
            (Ok(pid), Ok(user)) => Ok(Namespace {
                first: Some(first),
                pid,
                user,
            }),
            (Err(error), _) | (_, Err(error)) => {
                kill_all_tracees(vec![first]);
                Err(error)
            }
        }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        kill_all_tracees(self.first.take().into_iter().collect());
    }
}

/// The action of a new process that enters its namespaces: plain numbers, for use between `fork`
/// and `exec`.
#[derive(Copy, Clone)]
pub enum Entrance {
    /// No action.
    Stay,
    /// Creates namespaces (`unshare`).
    Make(libc::c_int),
    /// Joins namespaces (`setns`), the user namespace first, if there is one.
    Join(Option<RawFd>, RawFd),
}

impl SpawnNamespace<'_> {
    /// Returns the action by which a process enters these namespaces.
    pub fn entrance(&self) -> Entrance {
        match self {
            SpawnNamespace::Here => Entrance::Stay,
            SpawnNamespace::New { with_user: false } => Entrance::Make(libc::CLONE_NEWPID),
            SpawnNamespace::New { with_user: true } => {
                Entrance::Make(libc::CLONE_NEWPID | libc::CLONE_NEWUSER)
            }
            SpawnNamespace::Inside(namespace) => {
                let user = namespace.user.as_ref().map(AsRawFd::as_raw_fd);
                Entrance::Join(user, namespace.pid.as_raw_fd())
            }
        }
    }
}

impl Entrance {
    /// Enters the namespaces. Only children of a process that joins a PID namespace are in it, so
    /// the calling process is replaced by a sibling, whose pid it writes to `report`. Makes only
    /// calls that are allowed between `fork` and `exec`.
    pub fn enter(self, report: RawFd) -> io::Result<()> {
        let done = match self {
            Entrance::Stay => return Ok(()),
            // SAFETY: numbers only; the process has one thread.
            Entrance::Make(kinds) => unsafe { libc::unshare(kinds) == 0 },
            // SAFETY: as above; the descriptors are open.
            Entrance::Join(user, pid) => unsafe {
                user.is_none_or(|user| libc::setns(user, libc::CLONE_NEWUSER) == 0)
                    && libc::setns(pid, libc::CLONE_NEWPID) == 0
            },
        };
        if !done {
            return Err(io::Error::last_os_error());
        }
        const FLAGS: libc::c_long = (libc::CLONE_PARENT | libc::SIGCHLD) as libc::c_long;
        // SAFETY: a fork with another parent. The original writes four bytes of its stack and ends.
        unsafe {
            match libc::syscall(libc::SYS_clone, FLAGS, 0, 0, 0, 0) {
                0 => Ok(()),
                pid if pid > 0 => {
                    let pid = pid as i32;
                    libc::write(report, (&raw const pid).cast(), size_of_val(&pid));
                    libc::_exit(0)
                }
                _ => Err(io::Error::last_os_error()),
            }
        }
    }
}
