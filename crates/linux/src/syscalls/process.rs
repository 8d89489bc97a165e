//! Creation and exit of processes and threads.

use everett_vm::{Value, resize};

use crate::capabilities::SYS_ADMIN;
use crate::clone::{CLONE_CLEAR_SIGHAND, CloneArgs};
use crate::errno::Errno;
use crate::kernel::{Answer, Kernel, Stop};
use crate::process::ExitStatus;
use crate::table::ArgKind::{Flags, Int, Pointer, Symbolic};
use crate::table::property::ONE_THREAD;
use crate::table::{Call, Row};
use crate::wait::WaitCondition;

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new(
        "clone",
        56,
        &[Flags, Pointer, Pointer, Pointer, Pointer],
        &[Errno::EAGAIN, Errno::ENOMEM],
        clone,
    )
    .without(
        "namespaces, pidfds of threads, processes that share files or memory beyond CLONE_VFORK, \
         without being threads",
    ),
    Row::new(
        "clone3",
        435,
        &[Pointer, Int],
        &[Errno::EAGAIN, Errno::ENOMEM],
        clone3,
    )
    .without("threads, processes that share memory, stacks, pids, cgroups"),
    Row::new("fork", 57, &[], &[Errno::EAGAIN, Errno::ENOMEM], fork),
    Row::new("vfork", 58, &[], &[Errno::EAGAIN, Errno::ENOMEM], vfork),
    Row::new("exit", 60, &[Symbolic], &[], exit),
    Row::new("exit_group", 231, &[Symbolic], &[], exit_group),
    Row::new("arch_prctl", 158, &[Int, Pointer], &[], arch_prctl)
        .with(ONE_THREAD)
        .without("all but FS"),
    Row::new("set_tid_address", 218, &[Pointer], &[], set_tid_address).with(ONE_THREAD),
    Row::new("membarrier", 324, &[Int, Flags, Int], &[], membarrier).without("all but CMD_QUERY"),
];

/// Rejects flags of `clone` that are not known to be harmless, and combinations that Linux rejects.
/// The flags are 32 bits; the lowest byte is a signal.
fn check_clone_flags(flags: u64) -> Result<(), Errno> {
    const VM: u64 = 0x100;
    const SIGHAND: u64 = 0x800;
    const PIDFD: u64 = 0x1000;
    const THREAD: u64 = 0x1_0000;
    /// Not with `PIDFD`, which returns its descriptor through the argument of `PARENT_SETTID`.
    /// `THREAD` is not modelled with it.
    const NOT_WITH_PIDFD: u64 = DETACHED | PARENT_SETTID | THREAD;
    const DETACHED: u64 = 0x40_0000;
    const PARENT_SETTID: u64 = 0x10_0000;
    /// `VM`, `FS`, `FILES`, `SIGHAND`, `PIDFD`, `VFORK`, `PARENT`, `THREAD`, `SYSVSEM`, `SETTLS`,
    /// `PARENT_SETTID`, `CHILD_CLEARTID`, `CHILD_SETTID`; and flags without effect on this host,
    /// where nothing traces processes: `PTRACE`, `DETACHED`, `UNTRACED`, `IO`.
    const ALLOWED: u64 = 0x81fd_ffff;
    let flags = flags & 0xffff_ffff;
    let lacks = |flag: u64, needed: u64| flags & flag != 0 && flags & needed == 0;
    let is_wrong = flags & PIDFD != 0 && flags & NOT_WITH_PIDFD != 0;
    if is_wrong || lacks(SIGHAND, VM) || lacks(THREAD, SIGHAND) {
        return Err(Errno::EINVAL);
    }
    match flags & !ALLOWED {
        0 => Ok(()),
        _ => Err(Errno::EPERM),
    }
}

/// Names a feature that the flags of `clone` request and that the model rejects or ignores although
/// Linux supports it.
fn missed_clone_flags(flags: u64, may_isolate: bool) -> Option<&'static str> {
    const VM: u64 = 0x100;
    const FS: u64 = 0x200;
    const FILES: u64 = 0x400;
    const SIGHAND: u64 = 0x800;
    const PIDFD: u64 = 0x1000;
    const VFORK: u64 = 0x4000;
    const THREAD: u64 = 0x1_0000;
    /// `NEWNS`, `NEWCGROUP`, `NEWUTS`, `NEWIPC`, `NEWUSER`, `NEWPID`, `NEWNET`.
    const NAMESPACES: u64 = 0x7e02_0000;
    let is_thread = flags & THREAD != 0;
    if is_thread && flags & (VM | SIGHAND) != VM | SIGHAND {
        // Linux rejects this, too.
        None
    } else if flags & NAMESPACES != 0 {
        may_isolate.then_some("a namespace of clone")
    } else if is_thread && flags & PIDFD != 0 {
        Some("CLONE_PIDFD of a thread")
    } else if is_thread && flags & (FS | FILES) != FS | FILES {
        Some("a thread with its own files")
    } else if !is_thread && flags & (FS | FILES) != 0 {
        Some("a process that shares its files")
    } else if !is_thread && flags & (VM | VFORK) == VM {
        Some("a process that shares its memory")
    } else {
        None
    }
}

fn clone(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const NEW_USERS: u64 = 0x1000_0000;
    let may_isolate = kernel.is_capable(SYS_ADMIN) || call.args[0] & NEW_USERS != 0;
    if let Some(what) = missed_clone_flags(call.args[0], may_isolate) {
        kernel.refuse("clone", what);
    }
    check_clone_flags(call.args[0])?;
    let entry = match call.entry {
        None => None,
        Some((function, argument)) => Some((kernel.vm.concretize(function)?, argument)),
    };
    let args = CloneArgs {
        flags: call.args[0] & 0xffff_ffff,
        pidfd: call.args[2],
        parent_tid: call.args[2],
        child_tid: call.args[3],
        tls: call.args[4],
        entry,
    };
    kernel.create_task(args)
}

/// Creates a process. Other requests fail as on kernels that lack the call: programs then use
/// `clone`.
fn clone3(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const VM: u64 = 0x100;
    const FILE_SYSTEM: u64 = 0x200;
    const NEW_MOUNTS: u64 = 0x2_0000;
    const SIGHAND: u64 = 0x800;
    const PIDFD: u64 = 0x1000;
    const VFORK: u64 = 0x4000;
    const PARENT: u64 = 0x8000;
    const THREAD: u64 = 0x1_0000;
    const PARENT_SETTID: u64 = 0x10_0000;
    const DETACHED: u64 = 0x40_0000;
    /// `CLEAR_SIGHAND` and `INTO_CGROUP`: the flags that `clone` does not have.
    const NEW: u64 = CLONE_CLEAR_SIGHAND | 0x2_0000_0000;
    /// `PIDFD`, `VFORK` with `VM`, `PARENT`, `PARENT_SETTID`, `CHILD_CLEARTID`, `CHILD_SETTID`,
    /// `CLEAR_SIGHAND`; and flags without effect: `PTRACE`, `SYSVSEM`, `UNTRACED`, `IO`.
    const SUPPORTED: u64 = 0x1_81b4_f100;
    let [
        flags,
        pidfd,
        child_tid,
        parent_tid,
        signal,
        stack,
        stack_size,
        _,
        pids,
        pid_count,
        _,
    ] = kernel.read_clone_arguments(call.args[0], call.args[1])?;
    let has = |all: u64| flags & all == all;
    let is_wrong = (stack == 0) != (stack_size == 0)
        || (pids == 0) != (pid_count == 0)
        || flags & !(0xffff_ffff | NEW) != 0
        || flags & (DETACHED | 0x7f) != 0
        || has(SIGHAND | CLONE_CLEAR_SIGHAND)
        || flags & (SIGHAND | VM) == SIGHAND
        || flags & (THREAD | SIGHAND) == THREAD
        || has(NEW_MOUNTS | FILE_SYSTEM)
        || flags & (THREAD | PARENT) != 0 && signal != 0
        || has(PIDFD | PARENT_SETTID) && pidfd == parent_tid;
    if is_wrong || signal > 64 {
        return Err(Errno::EINVAL.into());
    }
    let shares = flags & (VM | VFORK) == VM;
    if flags & !SUPPORTED != 0 || shares || stack != 0 || pids != 0 {
        kernel.refuse("clone3", "clone3 of more than a process");
        return Err(Errno::ENOSYS.into());
    }
    kernel.create_task(CloneArgs {
        flags: flags | signal,
        pidfd,
        parent_tid,
        child_tid,
        tls: 0,
        entry: None,
    })
}

/// Number of words of the `struct clone_args` that the model knows.
const CLONE_WORDS: usize = 11;

fn fork(kernel: &mut Kernel<'_, '_>, _: &Call) -> Answer {
    kernel.create_task(CloneArgs::FORK)
}

fn vfork(kernel: &mut Kernel<'_, '_>, _: &Call) -> Answer {
    kernel.create_task(CloneArgs::VFORK)
}

fn exit(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let others = kernel.host.tasks_of(kernel.process().pid).count() > 1;
    if others {
        return Err(Stop::ExitThread);
    }
    exit_group(kernel, call)
}

fn exit_group(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let status = kernel.exit_status(call.raw[0]);
    let peak = kernel.vm.memory.peak_bytes();
    let process = kernel.process_mut();
    process.most_memory = process.most_memory.max(peak);
    Err(Stop::Exit(ExitStatus::Exit(status)))
}

impl Kernel<'_, '_> {
    /// Reads a `struct clone_args`. One of a newer kernel may be longer, if what we do not know of it
    /// is zero.
    fn read_clone_arguments(&mut self, at: u64, size: u64) -> Result<[u64; CLONE_WORDS], Stop> {
        const FIRST_SIZE: u64 = 64;
        const KNOWN: u64 = 8 * CLONE_WORDS as u64;
        const PAGE: u64 = 4096;
        if size > PAGE {
            return Err(Errno::E2BIG.into());
        }
        if size < FIRST_SIZE {
            return Err(Errno::EINVAL.into());
        }
        let more = size.saturating_sub(KNOWN);
        let rest = self.read_bytes(at.wrapping_add(KNOWN), more)?;
        if rest.iter().any(|byte| *byte != 0) {
            return Err(Errno::E2BIG.into());
        }
        let mut bytes = self.read_bytes(at, size.min(KNOWN))?;
        bytes.resize(KNOWN as usize, 0);
        let mut words = [0; CLONE_WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = bytes
                .first_chunk()
                .map_or(0, |bytes| u64::from_le_bytes(*bytes));
        }
        Ok(words)
    }

    /// Creates a process or thread; after `vfork`, blocks until the child exits or calls `execve`.
    fn create_task(&mut self, args: CloneArgs) -> Answer {
        const VFORK: u64 = 0x4000;
        if args.flags & VFORK == 0 {
            return self.clone_task(args);
        }
        // The first run creates the child; the second one finds that
        // it has exited or called `execve`.
        if let Some(child) = self.task_mut().vforked.take() {
            return Ok(Value::concrete(u64::from(child)));
        }
        let child = self.clone_task(args)?.bits as u32;
        self.task_mut().vforked = Some(child);
        Err(self.wait_restartable(WaitCondition::VforkDone(child), "vfork"))
    }

    /// The low 8 bits of an exit status.
    pub fn exit_status(&mut self, value: Value) -> Value {
        match value.term {
            None => Value::concrete(value.bits & 0xff),
            Some(term) => {
                let status = resize(self.vm.arena, term, 8);
                Value::of_term(self.vm.arena, status)
            }
        }
    }
}

fn arch_prctl(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const SET_FS: u64 = 0x1002;
    const GET_FS: u64 = 0x1003;
    match call.args[0] {
        SET_FS => kernel.vm.thread.fs_base = call.args[1],
        GET_FS => {
            let base = kernel.vm.thread.fs_base;
            kernel.write_bytes(call.args[1], &base.to_le_bytes())?;
        }
        // `SET_GS`, `GET_GS`, `GET_CPUID`, `SET_CPUID`. Libraries also try codes that few kernels
        // support.
        other @ (0x1001 | 0x1004 | 0x1011 | 0x1012) => {
            kernel.refuse("arch_prctl", format!("arch_prctl operation {other:#x}"));
            return Err(Errno::EINVAL.into());
        }
        _ => return Err(Errno::EINVAL.into()),
    }
    Ok(Value::ZERO)
}

fn set_tid_address(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.task_mut().clear_child_tid = call.args[0];
    Ok(Value::concrete(u64::from(kernel.task().tid)))
}

/// Offers no command, so that programs use their fallback.
fn membarrier(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    /// The last command that exists.
    const GET_REGISTRATIONS: u64 = 1 << 9;
    match call.args[0] {
        0 => Ok(Value::ZERO),
        command => {
            if command.is_power_of_two() && command <= GET_REGISTRATIONS {
                kernel.refuse("membarrier", format!("membarrier command {command}"));
            }
            Err(Errno::EINVAL.into())
        }
    }
}
