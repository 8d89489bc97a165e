//! Calls that need privileges, and that the model does not carry out for those who have them:
//! mounts, swap space, kernel modules, ports of the machine, debuggers, namespaces. Without the
//! privilege they fail as on Linux.

use everett_vm::Value;
use triomphe::Arc;

use super::paths::AT_FDCWD;
use crate::capabilities::{
    BPF, SYS_ADMIN, SYS_BOOT, SYS_MODULE, SYS_PACCT, SYS_PTRACE, SYS_RAWIO, SYS_TTY_CONFIG, SYSLOG,
};
use crate::errno::Errno;
use crate::files::ROOT;
use crate::kernel::{Answer, Kernel};
use crate::process::{INIT, ProcessState};
use crate::table::ArgKind::{Fd, Flags, Int, Path, Pointer};
use crate::table::{Call, Row};

/// What is missing of most of these calls.
const WITHOUT_PRIVILEGE: &str = "everything but its errors without the privilege for it";

/// The row of a call that checks nothing before the privilege.
macro_rules! privileged {
    ($name:literal, $number:literal, $args:expr, $capability:expr) => {
        Row::new($name, $number, $args, &[], |kernel, _| {
            kernel.expect_capable($capability)?;
            kernel.not_carried_out($name)
        })
        .without(WITHOUT_PRIVILEGE)
    };
}

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new("ptrace", 101, &[Int, Int, Pointer, Pointer], &[], ptrace)
        .without("everything but its errors for processes that may not be traced or are not"),
    Row::new("syslog", 103, &[Int, Pointer, Int], &[], syslog).without(WITHOUT_PRIVILEGE),
    Row::new("vhangup", 153, &[], &[], vhangup).without("a controlling terminal"),
    privileged!("pivot_root", 155, &[Path, Path], SYS_ADMIN),
    privileged!("acct", 163, &[Path], SYS_PACCT),
    Row::new(
        "mount",
        165,
        &[Pointer, Path, Pointer, Flags, Pointer],
        &[],
        mount,
    )
    .without(WITHOUT_PRIVILEGE),
    Row::new("umount2", 166, &[Path, Flags], &[], umount2).without(WITHOUT_PRIVILEGE),
    Row::new("swapon", 167, &[Path, Flags], &[], swapon).without(WITHOUT_PRIVILEGE),
    privileged!("swapoff", 168, &[Path], SYS_ADMIN),
    privileged!("reboot", 169, &[Int, Int, Int, Pointer], SYS_BOOT),
    Row::new("iopl", 172, &[Int], &[], iopl).without(WITHOUT_PRIVILEGE),
    Row::new("ioperm", 173, &[Int, Int, Int], &[], ioperm).without(WITHOUT_PRIVILEGE),
    privileged!("init_module", 175, &[Pointer, Int, Pointer], SYS_MODULE),
    privileged!("delete_module", 176, &[Pointer, Flags], SYS_MODULE),
    privileged!("kexec_load", 246, &[Pointer, Int, Pointer, Flags], SYS_BOOT),
    Row::new("unshare", 272, &[Flags], &[], unshare)
        .without("namespaces, files and working directories of single threads"),
    Row::new("setns", 308, &[Fd, Flags], &[], setns).without("namespaces"),
    privileged!("finit_module", 313, &[Fd, Pointer, Flags], SYS_MODULE),
    privileged!(
        "kexec_file_load",
        320,
        &[Fd, Fd, Int, Pointer, Flags],
        SYS_BOOT
    ),
    Row::new("bpf", 321, &[Int, Pointer, Int], &[], bpf).without(WITHOUT_PRIVILEGE),
    privileged!("move_mount", 429, &[Fd, Path, Fd, Path, Flags], SYS_ADMIN),
    privileged!("fsopen", 430, &[Pointer, Flags], SYS_ADMIN),
    privileged!("fsmount", 432, &[Fd, Flags, Flags], SYS_ADMIN),
    privileged!("fspick", 433, &[Fd, Path, Flags], SYS_ADMIN),
];

impl Kernel<'_, '_> {
    /// `EPERM` if the process lacks a capability.
    fn expect_capable(&self, capability: u32) -> Result<(), Errno> {
        match self.is_capable(capability) {
            true => Ok(()),
            false => Err(Errno::EPERM),
        }
    }

    /// Answers a call that Linux would carry out.
    fn not_carried_out(&mut self, name: &str) -> Answer {
        self.refuse(name, format!("system call {name}"));
        Err(Errno::ENOSYS.into())
    }

    /// Whether the process may trace another one and take its descriptors: it has the same users
    /// and groups and all its capabilities, or the privilege for it.
    pub(super) fn may_trace(&self, target: &ProcessState) -> bool {
        let own = self.process();
        let is_same = target.uid == [own.uid[0]; 3] && target.gid == [own.gid[0]; 3];
        let has_more = target.capabilities.permitted & !own.capabilities.permitted != 0;
        target.pid == own.pid
            || self.is_capable(SYS_PTRACE)
            || is_same && !has_more && target.dumpable == 1
    }
}

fn ptrace(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const TRACE_ME: u64 = 0;
    const ATTACH: u64 = 16;
    const SEIZE: u64 = 0x4206;
    let request = call.args[0];
    if request == TRACE_ME {
        return kernel.not_carried_out("ptrace");
    }
    let tid = call.args[1] as u32;
    let task = kernel.host.task_by_tid(tid);
    let pid = match task {
        Some(task) => kernel.host.tasks[task].pid,
        None if tid == INIT => INIT,
        None => return Err(Errno::ESRCH.into()),
    };
    if !matches!(request, ATTACH | SEIZE) {
        // Nobody traces it.
        return Err(Errno::ESRCH.into());
    }
    if request == SEIZE && call.args[2] != 0 {
        return Err(Errno::EIO.into());
    }
    let target = kernel.host.process_by_pid(pid).ok_or(Errno::ESRCH)?;
    if pid == kernel.process().pid || !kernel.may_trace(target) {
        return Err(Errno::EPERM.into());
    }
    kernel.not_carried_out("ptrace")
}

fn syslog(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const CLOSE: i32 = 0;
    const OPEN: i32 = 1;
    const LAST: i32 = 10;
    /// Reading the whole log, and its size.
    const FOR_ALL: [i32; 2] = [3, LAST];
    let action = call.int(0);
    let may = kernel.is_capable(SYSLOG) || kernel.is_capable(SYS_ADMIN);
    if !may && !FOR_ALL.contains(&action) {
        return Err(Errno::EPERM.into());
    }
    match action {
        CLOSE | OPEN => Ok(Value::ZERO),
        ..CLOSE | 11.. => Err(Errno::EINVAL.into()),
        _ => kernel.not_carried_out("syslog"),
    }
}

fn vhangup(kernel: &mut Kernel<'_, '_>, _: &Call) -> Answer {
    kernel.expect_capable(SYS_TTY_CONFIG)?;
    let session = kernel.process().session;
    match kernel.host.terminal_of_session(session) {
        Some(_) => kernel.not_carried_out("vhangup"),
        None => Ok(Value::ZERO),
    }
}

fn mount(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.find(AT_FDCWD, call.args[1], true)?;
    kernel.expect_capable(SYS_ADMIN)?;
    kernel.not_carried_out("mount")
}

fn umount2(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const KNOWN: u64 = 0xf;
    const NO_FOLLOW: u64 = 8;
    const MOUNTED: [&[u8]; 3] = [b"/", b"/proc", b"/dev/shm"];
    if call.args[1] & !KNOWN != 0 {
        return Err(Errno::EINVAL.into());
    }
    let id = kernel.find(AT_FDCWD, call.args[0], call.args[1] & NO_FOLLOW == 0)?;
    kernel.expect_capable(SYS_ADMIN)?;
    let tree = &kernel.host.files.tree;
    let is_mounted = |path: &&[u8]| tree.lookup(ROOT, path, true) == Ok(id);
    match MOUNTED.iter().any(is_mounted) {
        true => kernel.not_carried_out("umount2"),
        false => Err(Errno::EINVAL.into()),
    }
}

fn swapon(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const KNOWN: u64 = 0x7_ffff;
    if call.args[1] & 0xffff_ffff & !KNOWN != 0 {
        return Err(Errno::EINVAL.into());
    }
    kernel.expect_capable(SYS_ADMIN)?;
    kernel.not_carried_out("swapon")
}

/// The level is 0 at first, and anybody may set it to that.
fn iopl(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    match call.args[0] as u32 {
        0 => return Ok(Value::ZERO),
        1..=3 => kernel.expect_capable(SYS_RAWIO)?,
        _ => return Err(Errno::EINVAL.into()),
    }
    kernel.not_carried_out("iopl")
}

fn ioperm(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const PORTS: u64 = 1 << 16;
    let [from, count, on, ..] = call.args;
    let end = from.checked_add(count);
    if end.is_none_or(|end| end <= from || end > PORTS) {
        return Err(Errno::EINVAL.into());
    }
    if on as u32 == 0 {
        return Ok(Value::ZERO);
    }
    kernel.expect_capable(SYS_RAWIO)?;
    kernel.not_carried_out("ioperm")
}

/// Parts of a process that threads share, and namespaces. A process without threads shares nothing.
fn unshare(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const VM: u64 = 0x100;
    const FILE_SYSTEM: u64 = 0x200;
    const FILES: u64 = 0x400;
    const SIGHAND: u64 = 0x800;
    const THREAD: u64 = 0x1_0000;
    const UNDO: u64 = 0x4_0000;
    const NEW_IPC: u64 = 0x800_0000;
    const NEW_USERS: u64 = 0x1000_0000;
    const NAMESPACES: u64 = 0x7e02_0080;
    let flags = call.args[0];
    let known = VM | FILE_SYSTEM | FILES | SIGHAND | THREAD | UNDO | NAMESPACES;
    let pid = kernel.process().pid;
    let is_alone = kernel.host.tasks_of(pid).count() == 1;
    let needs_one = flags & (VM | SIGHAND | THREAD | NEW_USERS) != 0;
    if flags & !known != 0 || needs_one && !is_alone {
        return Err(Errno::EINVAL.into());
    }
    if flags & NAMESPACES != 0 {
        if flags & NEW_USERS == 0 {
            kernel.expect_capable(SYS_ADMIN)?;
        }
        kernel.refuse("unshare", "a namespace of unshare");
        return Err(Errno::EPERM.into());
    }
    if flags & (FILE_SYSTEM | FILES) != 0 && !is_alone {
        kernel.refuse("unshare", "a thread with its own files");
        return Err(Errno::ENOSYS.into());
    }
    if flags & (UNDO | NEW_IPC) != 0 {
        Arc::make_mut(&mut kernel.host.ipc).undo_all(pid);
    }
    Ok(Value::ZERO)
}

/// No descriptor is one of a namespace.
fn setns(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.description(call.int(0))?;
    if kernel.process_of_descriptor(call.int(0)).is_ok() && call.args[1] != 0 {
        kernel.expect_capable(SYS_ADMIN)?;
        return kernel.not_carried_out("setns");
    }
    Err(Errno::EINVAL.into())
}

fn bpf(kernel: &mut Kernel<'_, '_>, _: &Call) -> Answer {
    if !kernel.is_capable(BPF) {
        kernel.expect_capable(SYS_ADMIN)?;
    }
    kernel.not_carried_out("bpf")
}
