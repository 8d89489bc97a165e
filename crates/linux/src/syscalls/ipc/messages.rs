//! System V message queues: `msgget`, `msgsnd`, `msgrcv` and `msgctl`.

use everett_vm::{Buffer, Value};
use std::collections::VecDeque;

use super::{IPC_64, NO_WAIT, READ, REMOVE, SET, STATUS, WRITE, longs, set_permissions};
use crate::capabilities::SYS_RESOURCE;
use crate::errno::Errno;
use crate::ipc::{IpcWait, SysvMessage, SysvQueue};
use crate::kernel::{Answer, Kernel};
use crate::table::Call;
use crate::wait::WaitCondition;

/// Maximum size of a message.
const LARGEST: u64 = 8192;
/// Default capacity of a queue in bytes.
const CAPACITY: u64 = 16384;
/// Maximum number of queues of a host.
const MAX: usize = 32000;

pub(super) fn msgget(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let (key, flags) = (call.args[0] as u32, call.args[1]);
    let mut queues = kernel.host.ipc.queues.iter();
    let found = queues.find(|(_, queue)| queue.permissions.key == key);
    let found = found.map(|(id, queue)| (*id, queue.permissions));
    if let Some(id) = kernel.find_key(key, flags, found)? {
        return Ok(Value::concrete(u64::from(id)));
    }
    if kernel.host.ipc.queues.len() >= MAX {
        return Err(Errno::ENOSPC.into());
    }
    let queue = SysvQueue {
        permissions: kernel.new_permissions(key, flags),
        messages: VecDeque::new(),
        capacity: CAPACITY,
        times: [0, 0, kernel.host.wall_seconds()],
        pids: [0, 0],
    };
    let id = kernel.ipc().new_number();
    kernel.ipc().queues.insert(id, queue);
    Ok(Value::concrete(u64::from(id)))
}

pub(super) fn msgsnd(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let (id, address, len, flags) = (
        call.args[0] as u32,
        call.args[1],
        call.args[2],
        call.args[3],
    );
    let kind = kernel.read_u64(address)? as i64;
    if kind < 1 || len > LARGEST || (id as i32) < 0 {
        return Err(Errno::EINVAL.into());
    }
    let bytes = kernel.read_buffer(address.wrapping_add(8), len)?;
    let Some(queue) = kernel.host.ipc.queues.get(&id) else {
        return Err(kernel.gone(id));
    };
    kernel.allowed(&queue.permissions, WRITE)?;
    if !queue.has_room(len) {
        if flags & NO_WAIT != 0 {
            return Err(Errno::EAGAIN.into());
        }
        kernel.wait(
            WaitCondition::Ipc(IpcWait::QueueSpace(id, len)),
            None,
            "message queue",
        )?;
    }
    let (pid, now) = (kernel.process().pid, kernel.host.wall_seconds());
    if let Some(queue) = kernel.ipc().queues.get_mut(&id) {
        queue.messages.push_back(SysvMessage { kind, bytes });
        queue.times[0] = now;
        queue.pids[0] = pid;
    }
    Ok(Value::ZERO)
}

pub(super) fn msgrcv(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const NO_ERROR: u64 = 0o10000;
    const EXCEPT: u64 = 0o20000;
    const COPY: u64 = 0o40000;
    let [id, address, len, kind, flags, _] = call.args;
    let (id, kind) = (id as u32, kind as i64);
    if flags & COPY != 0 {
        kernel.refuse("msgrcv", "MSG_COPY");
    }
    if (id as i32) < 0 || (len as i64) < 0 || flags & COPY != 0 {
        return Err(Errno::EINVAL.into());
    }
    let except = flags & EXCEPT != 0;
    let Some(queue) = kernel.host.ipc.queues.get(&id) else {
        return Err(kernel.gone(id));
    };
    kernel.allowed(&queue.permissions, READ)?;
    let Some(at) = queue.find(kind, except) else {
        if flags & NO_WAIT != 0 {
            return Err(Errno::ENOMSG.into());
        }
        let wait = IpcWait::Message {
            queue: id,
            kind,
            except,
        };
        kernel.wait(WaitCondition::Ipc(wait), None, "message")?;
        return Err(Errno::ENOMSG.into());
    };
    let message = queue.messages[at].clone();
    let size = message.bytes.len() as u64;
    if size > len && flags & NO_ERROR == 0 {
        return Err(Errno::E2BIG.into());
    }
    let taken = size.min(len);
    let mut bytes = Buffer::zeroed(taken as usize);
    bytes.copy_from(0, &message.bytes, 0, taken as usize);
    kernel.check(address, 8, true)?;
    kernel.write_buffer(address.wrapping_add(8), &bytes)?;
    kernel.write_bytes(address, &message.kind.to_le_bytes())?;
    let (pid, now) = (kernel.process().pid, kernel.host.wall_seconds());
    if let Some(queue) = kernel.ipc().queues.get_mut(&id) {
        queue.messages.remove(at);
        queue.times[1] = now;
        queue.pids[1] = pid;
    }
    Ok(Value::concrete(taken))
}

pub(super) fn msgctl(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let (id, command, address) = (call.args[0] as u32, call.args[1] & !IPC_64, call.args[2]);
    kernel.refuse_tables("msgctl", command, &[11, 12, 13]);
    let queue = kernel.host.ipc.queues.get(&id).cloned();
    let queue = queue.ok_or(Errno::EINVAL)?;
    match command {
        STATUS => {
            kernel.allowed(&queue.permissions, READ)?;
            let mut bytes = queue.permissions.encode(queue.permissions.mode);
            bytes.extend(longs(&queue.times));
            let count = queue.messages.len() as u64;
            bytes.extend(longs(&[queue.bytes(), count, queue.capacity]));
            bytes.extend(queue.pids.iter().flat_map(|pid| pid.to_le_bytes()));
            bytes.extend(longs(&[0, 0]));
            kernel.write_bytes(address, &bytes)?;
        }
        SET => {
            const CAPACITY_OFFSET: u64 = 88;
            let new = kernel.read_permissions(address)?;
            let capacity = kernel.read_u64(address.wrapping_add(CAPACITY_OFFSET))?;
            kernel.owns(&queue.permissions)?;
            if capacity > CAPACITY && !kernel.is_capable(SYS_RESOURCE) {
                return Err(Errno::EPERM.into());
            }
            let now = kernel.host.wall_seconds();
            if let Some(queue) = kernel.ipc().queues.get_mut(&id) {
                set_permissions(&mut queue.permissions, new);
                queue.capacity = capacity;
                queue.times[2] = now;
            }
        }
        REMOVE => {
            kernel.owns(&queue.permissions)?;
            kernel.mark_waiters_removed(id);
            kernel.ipc().queues.remove(&id);
        }
        _ => return Err(Errno::EINVAL.into()),
    }
    Ok(Value::ZERO)
}
