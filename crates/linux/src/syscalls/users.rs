//! User and group ids, process groups and sessions.

use everett_vm::Value;
use triomphe::Arc;

use crate::capabilities::{SETGID, SETUID, secure};
use crate::errno::Errno;
use crate::kernel::{Answer, Kernel};
use crate::process::{ExitState, ProcessState};
use crate::table::ArgKind::{Int, Pointer};
use crate::table::{Call, Row};

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new("getuid", 102, &[], &[], |kernel, _| {
        number(kernel.process().uid[0])
    }),
    Row::new("geteuid", 107, &[], &[], |kernel, _| {
        number(kernel.process().uid[1])
    }),
    Row::new("getgid", 104, &[], &[], |kernel, _| {
        number(kernel.process().gid[0])
    }),
    Row::new("getegid", 108, &[], &[], |kernel, _| {
        number(kernel.process().gid[1])
    }),
    Row::new("setuid", 105, &[Int], &[Errno::EPERM], |kernel, call| {
        set_one(kernel, call, user)
    }),
    Row::new("setgid", 106, &[Int], &[Errno::EPERM], |kernel, call| {
        set_one(kernel, call, group)
    }),
    Row::new(
        "setreuid",
        113,
        &[Int, Int],
        &[Errno::EPERM],
        |kernel, call| set_two(kernel, call, user),
    ),
    Row::new(
        "setregid",
        114,
        &[Int, Int],
        &[Errno::EPERM],
        |kernel, call| set_two(kernel, call, group),
    ),
    Row::new(
        "setresuid",
        117,
        &[Int, Int, Int],
        &[Errno::EPERM],
        |kernel, call| set_three(kernel, call, user),
    ),
    Row::new(
        "setresgid",
        119,
        &[Int, Int, Int],
        &[Errno::EPERM],
        |kernel, call| set_three(kernel, call, group),
    ),
    Row::new(
        "getresuid",
        118,
        &[Pointer, Pointer, Pointer],
        &[],
        |kernel, call| get_three(kernel, call, user),
    ),
    Row::new(
        "getresgid",
        120,
        &[Pointer, Pointer, Pointer],
        &[],
        |kernel, call| get_three(kernel, call, group),
    ),
    Row::new("setfsuid", 122, &[Int], &[], |kernel, call| {
        set_for_files(kernel, call, user)
    })
    .without("ids of single threads"),
    Row::new("setfsgid", 123, &[Int], &[], |kernel, call| {
        set_for_files(kernel, call, group)
    })
    .without("ids of single threads"),
    Row::new("getgroups", 115, &[Int, Pointer], &[], getgroups),
    Row::new(
        "setgroups",
        116,
        &[Int, Pointer],
        &[Errno::EPERM],
        setgroups,
    ),
    Row::new("getpgrp", 111, &[], &[], |kernel, _| {
        number(kernel.process().group)
    }),
    Row::new("getpgid", 121, &[Int], &[], |kernel, call| {
        number(kernel.process_or_self(call.int(0))?.group)
    }),
    Row::new("getsid", 124, &[Int], &[], |kernel, call| {
        number(kernel.process_or_self(call.int(0))?.session)
    }),
    Row::new("setpgid", 109, &[Int, Int], &[], setpgid),
    Row::new("setsid", 112, &[], &[], setsid),
];

/// Handles `setfsuid` and `setfsgid`: sets the id that file permission checks use, if the process
/// has it as another id or may set any. Returns the one before, also where nothing was set.
fn set_for_files(kernel: &mut Kernel<'_, '_>, call: &Call, select: IdSelector) -> Answer {
    let new = call.args[0] as u32;
    let may_set_any = kernel.may_set_ids(select);
    let at = usize::from(!kernel.is_of_users(select));
    let process = kernel.process_mut();
    let ids = *select(process);
    let old = process.file_ids[at].unwrap_or(ids[1]);
    if new != SAME && (may_set_any || ids.contains(&new) || new == old) {
        process.file_ids[at] = (new != ids[1]).then_some(new);
        if at == 0 && !process.has_secure_bit(secure::NO_FIXUP) {
            process.capabilities.follow_file_user(old, new);
        }
    }
    number(old)
}

fn number(number: u32) -> Answer {
    Ok(Value::concrete(u64::from(number)))
}

/// Real, effective and saved ids.
type Ids = [u32; 3];
/// Selects the user or group ids of a process.
type IdSelector = fn(&mut ProcessState) -> &mut Ids;

fn user(process: &mut ProcessState) -> &mut Ids {
    &mut process.uid
}

fn group(process: &mut ProcessState) -> &mut Ids {
    &mut process.gid
}

/// The argument that leaves an id unchanged.
const SAME: u32 = u32::MAX;

fn set_one(kernel: &mut Kernel<'_, '_>, call: &Call, select: IdSelector) -> Answer {
    let before = (kernel.process().uid, kernel.process().gid);
    let to = call.args[0] as u32;
    if to == SAME {
        return Err(Errno::EINVAL.into());
    }
    let may_all = kernel.may_set_ids(select);
    let ids = select(kernel.process_mut());
    match may_all {
        true => *ids = [to; 3],
        false if to == ids[0] || to == ids[2] => ids[1] = to,
        false => return Err(Errno::EPERM.into()),
    }
    kernel.follow_users(before, select);
    Ok(Value::ZERO)
}

fn set_two(kernel: &mut Kernel<'_, '_>, call: &Call, select: IdSelector) -> Answer {
    let before = (kernel.process().uid, kernel.process().gid);
    let (real, effective) = (call.args[0] as u32, call.args[1] as u32);
    let may_all = kernel.may_set_ids(select);
    let ids = select(kernel.process_mut());
    let old = *ids;
    let allowed = may_all
        || ([SAME, old[0], old[1]].contains(&real)
            && [SAME, old[0], old[1], old[2]].contains(&effective));
    if !allowed {
        return Err(Errno::EPERM.into());
    }
    if real != SAME {
        ids[0] = real;
    }
    if effective != SAME {
        ids[1] = effective;
    }
    if real != SAME || (effective != SAME && effective != old[0]) {
        ids[2] = ids[1];
    }
    kernel.follow_users(before, select);
    Ok(Value::ZERO)
}

fn set_three(kernel: &mut Kernel<'_, '_>, call: &Call, select: IdSelector) -> Answer {
    let before = (kernel.process().uid, kernel.process().gid);
    let may_all = kernel.may_set_ids(select);
    let ids = select(kernel.process_mut());
    let wanted = [0, 1, 2].map(|at| call.args[at] as u32);
    let old = *ids;
    let allowed = |to: &u32| may_all || *to == SAME || old.contains(to);
    if !wanted.iter().all(allowed) {
        return Err(Errno::EPERM.into());
    }
    for (number, to) in ids.iter_mut().zip(wanted) {
        if to != SAME {
            *number = to;
        }
    }
    kernel.follow_users(before, select);
    Ok(Value::ZERO)
}

fn get_three(kernel: &mut Kernel<'_, '_>, call: &Call, select: IdSelector) -> Answer {
    let ids = *select(kernel.process_mut());
    for address in &call.args[..3] {
        kernel.check(*address, 4, true)?;
    }
    for (address, number) in call.args.iter().zip(ids) {
        kernel.write_bytes(*address, &number.to_le_bytes())?;
    }
    Ok(Value::ZERO)
}

fn getgroups(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let groups = kernel.process().groups.clone();
    let room = usize::try_from(call.int(0)).map_err(|_| Errno::EINVAL)?;
    if room != 0 {
        if room < groups.len() {
            return Err(Errno::EINVAL.into());
        }
        let bytes: Vec<u8> = groups
            .iter()
            .flat_map(|group| group.to_le_bytes())
            .collect();
        kernel.write_bytes(call.args[1], &bytes)?;
    }
    Ok(Value::concrete(groups.len() as u64))
}

fn setgroups(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const MAX: i32 = 65536;
    if !kernel.is_capable(SETGID) {
        return Err(Errno::EPERM.into());
    }
    let count = call.int(0);
    if !(0..=MAX).contains(&count) {
        return Err(Errno::EINVAL.into());
    }
    let bytes = kernel.read_bytes(call.args[1], 4 * count as u64)?;
    let groups = bytes.as_chunks::<4>().0;
    let groups = groups.iter().map(|bytes| u32::from_le_bytes(*bytes));
    // The kernel keeps them in order, and tells them so.
    let mut groups: Vec<u32> = groups.collect();
    groups.sort_unstable();
    kernel.process_mut().groups = Arc::new(groups);
    Ok(Value::ZERO)
}

fn setpgid(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let own = kernel.process();
    let (own_pid, own_session) = (own.pid, own.session);
    let pid = match call.int(0) {
        0 => own_pid,
        pid => pid as u32,
    };
    let group = match call.int(1) {
        0 => pid,
        group => group as u32,
    };
    if (group as i32) < 0 {
        return Err(Errno::EINVAL.into());
    }
    let target = kernel.host.process_by_pid(pid);
    let target = target.filter(|target| !matches!(target.exit_state, ExitState::Reaped));
    let target = target.ok_or(Errno::ESRCH)?;
    if target.pid != own_pid {
        if target.parent != own_pid {
            return Err(Errno::ESRCH.into());
        }
        if target.session != own_session {
            return Err(Errno::EPERM.into());
        }
        if target.has_executed {
            return Err(Errno::EACCES.into());
        }
    }
    let joins_known = kernel
        .host
        .processes
        .iter()
        .any(|process| process.group == group && process.session == own_session);
    if target.session == target.pid || (group != pid && !joins_known) {
        return Err(Errno::EPERM.into());
    }
    if let Some(target) = kernel.host.process_by_pid_mut(pid) {
        target.group = group;
    }
    Ok(Value::ZERO)
}

fn setsid(kernel: &mut Kernel<'_, '_>, _: &Call) -> Answer {
    let pid = kernel.process().pid;
    let mut all = kernel.host.processes.iter();
    if all.any(|process| process.group == pid) {
        return Err(Errno::EPERM.into());
    }
    let process = kernel.process_mut();
    process.group = pid;
    process.session = pid;
    number(pid)
}

impl Kernel<'_, '_> {
    /// Whether the process may set the user or group ids to any number.
    fn may_set_ids(&mut self, select: IdSelector) -> bool {
        let is_of_users = self.is_of_users(select);
        self.is_capable(if is_of_users { SETUID } else { SETGID })
    }

    /// Whether these are the user ids, and not those of groups.
    fn is_of_users(&mut self, select: IdSelector) -> bool {
        let process = self.process_mut();
        let users: *const Ids = &process.uid;
        std::ptr::eq(select(process), users)
    }

    /// Updates the capabilities and the id for files after a change of user or group ids.
    fn follow_users(&mut self, (before, groups_before): (Ids, Ids), select: IdSelector) {
        let at = usize::from(!self.is_of_users(select));
        let process = self.process_mut();
        process.file_ids[at] = None;
        let keeps = process.has_secure_bit(secure::KEEP_CAPABILITIES);
        if !process.has_secure_bit(secure::NO_FIXUP) {
            process
                .capabilities
                .follow_users(before, process.uid, keeps);
        }
        if (process.uid[1], process.gid[1]) != (before[1], groups_before[1]) {
            // What its memory holds may not concern its new user.
            process.dumpable = 0;
            process.parent_death_signal = 0;
        }
    }

    /// The process with a pid; 0 is the calling one.
    pub fn process_or_self(&self, pid: i32) -> Result<&ProcessState, Errno> {
        if pid == 0 {
            return Ok(self.process());
        }
        let found = self.host.process_by_pid(pid as u32);
        let found = found.filter(|process| !matches!(process.exit_state, ExitState::Reaped));
        found.ok_or(Errno::ESRCH)
    }
}
