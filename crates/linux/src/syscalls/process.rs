//! The life of processes and threads.

use everett_vm::{Buffer, Value, resize};

use crate::errno::Errno;
use crate::files::Node;
use crate::kernel::{Kernel, Stop};
use crate::life::{Birth, Execution};
use crate::process::{Death, Life};
use crate::table::ArgKind::{Fd, Flags, Int, Path, Pointer, Symbolic};
use crate::table::{Answer, Call, Row};
use crate::wait::Until;

/// The family.
pub const ROWS: &[Row] = &[
    Row::new(
        "clone",
        56,
        &[Flags, Pointer, Pointer, Pointer, Pointer],
        &[Errno::EAGAIN, Errno::ENOMEM],
        clone,
    )
    .without("name spaces, processes that share memory or files but are no threads"),
    Row::new("fork", 57, &[], &[Errno::EAGAIN, Errno::ENOMEM], fork),
    Row::new("vfork", 58, &[], &[Errno::EAGAIN, Errno::ENOMEM], vfork)
        .without("memory is not shared"),
    Row::new(
        "execve",
        59,
        &[Path, Pointer, Pointer],
        &[Errno::ENOMEM, Errno::EACCES],
        execve,
    )
    .without("programs that the run does not name"),
    Row::new("exit", 60, &[Symbolic], &[], exit),
    Row::new(
        "wait4",
        61,
        &[Int, Pointer, Flags, Pointer],
        &[Errno::EINTR],
        wait4,
    )
    .without("stopped children"),
    Row::new(
        "waitid",
        247,
        &[Int, Int, Pointer, Flags, Pointer],
        &[Errno::EINTR],
        waitid,
    )
    .without("stopped children, pidfds"),
    Row::new("exit_group", 231, &[Symbolic], &[], exit_group),
    Row::new("arch_prctl", 158, &[Int, Pointer], &[], arch_prctl).without("all but FS"),
    Row::new("set_tid_address", 218, &[Pointer], &[], set_tid_address),
    Row::new("sched_yield", 24, &[], &[], sched_yield),
    Row::new(
        "sched_getaffinity",
        204,
        &[Int, Int, Pointer],
        &[],
        sched_getaffinity,
    )
    .without("other processes"),
    Row::new(
        "sched_setaffinity",
        203,
        &[Int, Int, Pointer],
        &[],
        sched_setaffinity,
    )
    .without("there is one processor"),
    Row::new("prctl", 157, &[Int, Pointer, Int, Int, Int], &[], prctl).without(
        "all but PR_SET_NAME, PR_GET_NAME, PR_SET_PDEATHSIG, PR_GET_DUMPABLE, PR_SET_DUMPABLE",
    ),
    Row::new("membarrier", 324, &[Int, Flags, Int], &[], membarrier).without("all but CMD_QUERY"),
    Row::new(
        "execveat",
        322,
        &[Fd, Path, Pointer, Pointer, Flags],
        &[],
        execveat,
    )
    .without("paths that are relative to a descriptor"),
];

fn clone(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const UNSUPPORTED: u64 = 0x7e02_0000;
    if call.args[0] & UNSUPPORTED != 0 {
        return Err(Errno::EPERM.into());
    }
    let entry = match call.entry {
        None => None,
        Some((function, argument)) => Some((kernel.vm.concretize(function)?, argument)),
    };
    let birth = Birth {
        flags: call.args[0],
        parent_tid: call.args[2],
        child_tid: call.args[3],
        tls: call.args[4],
        entry,
    };
    kernel.born(birth)
}

fn fork(kernel: &mut Kernel<'_, '_>, _: &Call) -> Answer {
    kernel.born(Birth::FORK)
}

fn vfork(kernel: &mut Kernel<'_, '_>, _: &Call) -> Answer {
    kernel.born(Birth::VFORK)
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
    Err(Stop::Exit(Death::Exit(status)))
}

impl Kernel<'_, '_> {
    /// Makes a process or thread; after `vfork` waits until the child is on its own.
    fn born(&mut self, birth: Birth) -> Answer {
        const VFORK: u64 = 0x4000;
        if birth.flags & VFORK == 0 {
            return self.give_birth(birth);
        }
        // The first time it runs it makes the child, the second time the child is on its own.
        if let Some(child) = self.task_mut().vforked.take() {
            return Ok(Value::concrete(u64::from(child)));
        }
        let child = self.give_birth(birth)?.bits as u32;
        self.task_mut().vforked = Some(child);
        Err(self.wait_restartable(Until::ChildIsOnItsOwn(child), "vfork"))
    }

    /// The low 8 bits of what was given to `exit`.
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

/// Which children `wait` is about.
#[derive(Copy, Clone)]
enum Which {
    Any,
    Pid(u32),
    Group(u32),
}

impl Which {
    fn includes(self, child: &crate::process::ProcessState) -> bool {
        match self {
            Which::Any => true,
            Which::Pid(pid) => child.pid == pid,
            Which::Group(group) => child.group == group,
        }
    }
}

const WNOHANG: u64 = 1;

impl Kernel<'_, '_> {
    /// A child that has ended; `None` if there are only others and it shall not be waited for.
    fn dead_child(&mut self, which: Which, options: u64) -> Result<Option<(u32, Death)>, Stop> {
        let own = self.process().pid;
        let mut any = false;
        for child in &self.host.processes {
            if child.parent != own || !which.includes(child) {
                continue;
            }
            match child.life {
                Life::Zombie(death) => return Ok(Some((child.pid, death))),
                Life::Running => any = true,
                Life::Gone => {}
            }
        }
        if !any {
            return Err(Errno::ECHILD.into());
        }
        if options & WNOHANG != 0 {
            return Ok(None);
        }
        Err(self.wait_restartable(
            Until::Child(match which {
                Which::Any => None,
                Which::Pid(pid) => Some(pid),
                Which::Group(_) => None,
            }),
            "a child",
        ))
    }

    fn reap(&mut self, pid: u32) {
        if let Some(child) = self.host.process_by_pid_mut(pid) {
            child.life = Life::Gone;
        }
    }
}

fn wait4(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const KNOWN: u64 = 0xe000_000b;
    if call.args[2] & 0xffff_ffff & !KNOWN != 0 {
        return Err(Errno::EINVAL.into());
    }
    let which = match call.int(0) {
        -1 => Which::Any,
        0 => Which::Group(kernel.process().group),
        pid if pid > 0 => Which::Pid(pid as u32),
        i32::MIN => return Err(Errno::ESRCH.into()),
        group => Which::Group(group.unsigned_abs()),
    };
    let Some((pid, death)) = kernel.dead_child(which, call.args[2])? else {
        return Ok(Value::ZERO);
    };
    let status = match death {
        Death::Exit(status) => {
            let term = status.to_term(kernel.vm.arena, 8);
            let zero = kernel.vm.arena.zero(8);
            let low = kernel.vm.arena.concat(term, zero);
            let wide = resize(kernel.vm.arena, low, 32);
            Value::of_term(kernel.vm.arena, wide)
        }
        Death::Signal(signal) => Value::concrete(signal as u64),
    };
    if call.args[3] != 0 {
        kernel.check(call.args[3], 144, true)?;
    }
    if call.args[1] != 0 {
        let mut bytes = Buffer::zeroed(4);
        bytes.store(0, 4, status);
        kernel.write_buffer(call.args[1], &bytes)?;
    }
    if call.args[3] != 0 {
        kernel.write_bytes(call.args[3], &[0; 144])?;
    }
    kernel.reap(pid);
    Ok(Value::concrete(u64::from(pid)))
}

fn waitid(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const EXITED: u64 = 4;
    const NOWAIT: u64 = 0x100_0000;
    const CHILD_EXITED: u32 = 1;
    const CHILD_KILLED: u32 = 2;
    let which = match call.int(0) {
        0 => Which::Any,
        1 => Which::Pid(call.args[1] as u32),
        2 if call.args[1] == 0 => Which::Group(kernel.process().group),
        2 => Which::Group(call.args[1] as u32),
        _ => return Err(Errno::EINVAL.into()),
    };
    if call.args[3] & 0xe == 0 {
        return Err(Errno::EINVAL.into());
    }
    let options = call.args[3];
    let found = if options & EXITED != 0 {
        kernel.dead_child(which, options)?
    } else {
        None
    };
    let mut information = Buffer::zeroed(128);
    if let Some((pid, death)) = found {
        let (code, status) = match death {
            Death::Exit(status) => {
                let term = status.to_term(kernel.vm.arena, 8);
                let wide = resize(kernel.vm.arena, term, 32);
                (CHILD_EXITED, Value::of_term(kernel.vm.arena, wide))
            }
            Death::Signal(signal) => (CHILD_KILLED, Value::concrete(signal as u64)),
        };
        let words = [crate::syscalls::signals::SIGCHLD as u32, 0, code, 0, pid, 0];
        information.write(0, &words.map(u32::to_le_bytes).concat());
        information.store(24, 4, status);
    }
    if call.args[2] != 0 {
        kernel.write_buffer(call.args[2], &information)?;
    }
    if let Some((pid, _)) = found
        && options & NOWAIT == 0
    {
        kernel.reap(pid);
    }
    Ok(Value::ZERO)
}

fn execveat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.execute(call.args[1], call.args[2], call.args[3])
}

fn execve(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.execute(call.args[0], call.args[1], call.args[2])
}

/// Strings that one `execve` passes on.
const MAX_STRINGS: u64 = 65536;
/// Scripts whose interpreter is a script, and so on.
const MAX_INTERPRETERS: usize = 4;

impl Kernel<'_, '_> {
    fn execute(&mut self, path: u64, args: u64, env: u64) -> Answer {
        let mut path = self.read_path(path)?;
        let mut args = self.strings(args)?;
        let env = self.strings(env)?;
        for _ in 0..MAX_INTERPRETERS {
            let cwd = self.process().cwd;
            let id = self.resolve(cwd, &path, true)?;
            let inode = self.host.files.tree.get(id);
            if let Some(image) = inode.program {
                let execution = Execution {
                    image,
                    name: path,
                    args,
                    env,
                };
                return Err(Stop::Execute(Box::new(execution)));
            }
            let Node::Regular(bytes) = &inode.node else {
                return Err(Errno::EACCES.into());
            };
            if inode.mode & 0o111 == 0 {
                return Err(Errno::EACCES.into());
            }
            let line = bytes.read(0, 256);
            let Some((interpreter, argument)) = shebang(line.bytes()) else {
                let name = String::from_utf8_lossy(&path).into_owned();
                self.host
                    .warn(format!("execve of {name}, which is no program of the run"));
                return Err(Errno::ENOEXEC.into());
            };
            let text = |text: &[u8]| Buffer::with_bytes(text, text.len());
            let mut all = vec![text(&interpreter)];
            all.extend(argument.map(|argument| text(&argument)));
            all.push(text(&path));
            all.extend(args.into_iter().skip(1));
            args = all;
            path = interpreter;
        }
        Err(Errno::ELOOP.into())
    }

    /// An array of strings that ends with NULL, each without its NUL.
    fn strings(&mut self, array: u64) -> Result<Vec<Buffer>, Stop> {
        let mut strings = Vec::new();
        if array == 0 {
            return Ok(strings);
        }
        for index in 0..MAX_STRINGS {
            let address = self.read_u64(array.wrapping_add(8 * index))?;
            if address == 0 {
                return Ok(strings);
            }
            let len = self.string_len(address)?;
            strings.push(self.read_buffer(address, len)?);
        }
        Err(Errno::E2BIG.into())
    }

    /// Bytes of a string before its NUL. Symbolic ones are asked whether they are it.
    fn string_len(&mut self, address: u64) -> Result<u64, Stop> {
        let mut len = 0;
        loop {
            let byte = self.read_value(address.wrapping_add(len), 1)?;
            let term = byte.to_term(self.vm.arena, 8);
            let zero = self.vm.arena.zero(8);
            let is_end = self.vm.arena.eq(term, zero);
            if self.vm.decide_term(is_end)? {
                return Ok(len);
            }
            len += 1;
        }
    }
}

/// Interpreter and argument of a script.
fn shebang(start: &[u8]) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let line = start.strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next()?.trim_ascii();
    let cut = line.iter().position(|byte| byte.is_ascii_whitespace());
    let (interpreter, argument) = line.split_at(cut.unwrap_or(line.len()));
    let argument = argument.trim_ascii();
    let argument = (!argument.is_empty()).then(|| argument.to_vec());
    (!interpreter.is_empty()).then(|| (interpreter.to_vec(), argument))
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
        _ => return Err(Errno::EINVAL.into()),
    }
    Ok(Value::ZERO)
}

fn set_tid_address(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.task_mut().clear_child_tid = call.args[0];
    Ok(Value::concrete(u64::from(kernel.task().tid)))
}

fn sched_yield(kernel: &mut Kernel<'_, '_>, _: &Call) -> Answer {
    kernel.host.schedule.yielded = true;
    kernel.host.schedule.quantum = 0;
    Ok(Value::ZERO)
}

/// One processor.
fn sched_getaffinity(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let tid = call.int(0) as u32;
    if tid != 0 && !kernel.host.tasks.iter().any(|task| task.tid == tid) {
        return Err(Errno::ESRCH.into());
    }
    if call.args[1] < 8 || !call.args[1].is_multiple_of(8) {
        return Err(Errno::EINVAL.into());
    }
    kernel.write_bytes(call.args[2], &1u64.to_le_bytes())?;
    Ok(Value::concrete(8))
}

fn sched_setaffinity(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let tid = call.int(0) as u32;
    if tid != 0 && !kernel.host.tasks.iter().any(|task| task.tid == tid) {
        return Err(Errno::ESRCH.into());
    }
    let mask = kernel.read_bytes(call.args[2], call.args[1].min(1))?;
    match mask.first() {
        Some(byte) if byte & 1 != 0 => Ok(Value::ZERO),
        _ => Err(Errno::EINVAL.into()),
    }
}

fn prctl(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const SET_PDEATHSIG: u64 = 1;
    const GET_DUMPABLE: u64 = 3;
    const SET_DUMPABLE: u64 = 4;
    const SET_NAME: u64 = 15;
    const GET_NAME: u64 = 16;
    match call.args[0] {
        SET_PDEATHSIG | SET_DUMPABLE => {}
        GET_DUMPABLE => return Ok(Value::concrete(1)),
        SET_NAME => {
            let mut name = [0; 16];
            for (at, byte) in name.iter_mut().enumerate().take(15) {
                *byte = kernel.read_bytes(call.args[1].wrapping_add(at as u64), 1)?[0];
                if *byte == 0 {
                    break;
                }
            }
            kernel.task_mut().name = name;
        }
        GET_NAME => {
            let name = kernel.task().name;
            kernel.write_bytes(call.args[1], &name)?;
        }
        operation => {
            kernel
                .host
                .warn(format!("prctl operation {operation} is not modelled"));
            return Err(Errno::EINVAL.into());
        }
    }
    Ok(Value::ZERO)
}

/// No command is offered, so that programs take their other way.
fn membarrier(_: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    match call.args[0] {
        0 => Ok(Value::ZERO),
        _ => Err(Errno::EINVAL.into()),
    }
}
