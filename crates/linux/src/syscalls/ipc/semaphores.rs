//! System V semaphore sets: `semget`, `semop` and `semctl`.

use everett_vm::Value;

use super::{IPC_64, NO_WAIT, READ, REMOVE, SET, STATUS, WRITE, longs, set_permissions};
use crate::errno::Errno;
use crate::host::HostState;
use crate::ipc::{Attempt, IpcWait, Operation, SEMAPHORE_MAX, Semaphore, SemaphoreSet};
use crate::kernel::{Answer, Kernel, Stop};
use crate::process::RunState;
use crate::table::Call;
use crate::wait::WaitCondition;

/// Maximum number of semaphores of a set.
const MAX_SEMAPHORES: u64 = 32000;
/// Maximum number of operations of a call.
const MAX_OPERATIONS: u64 = 500;
/// Maximum number of sets of a host.
const MAX_SETS: usize = 32000;

const UNDO: u16 = 0x1000;

const GET_PID: u64 = 11;
const GET_VALUE: u64 = 12;
const GET_ALL: u64 = 13;
const GET_WAITING: u64 = 14;
const GET_WAITING_FOR_ZERO: u64 = 15;
const SET_VALUE: u64 = 16;
const SET_ALL: u64 = 17;

pub(super) fn semget(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let (key, count, flags) = (call.args[0] as u32, call.args[1] as u32, call.args[2]);
    if u64::from(count) > MAX_SEMAPHORES {
        return Err(Errno::EINVAL.into());
    }
    let mut sets = kernel.host.ipc.sets.iter();
    let found = sets.find(|(_, set)| set.permissions.key == key);
    let found = found.map(|(id, set)| (*id, set.permissions));
    if let Some(id) = kernel.find_key(key, flags, found)? {
        if kernel.host.ipc.sets[&id].semaphores.len() < count as usize {
            return Err(Errno::EINVAL.into());
        }
        return Ok(Value::concrete(u64::from(id)));
    }
    if count == 0 {
        return Err(Errno::EINVAL.into());
    }
    if kernel.host.ipc.sets.len() >= MAX_SETS {
        return Err(Errno::ENOSPC.into());
    }
    let set = SemaphoreSet {
        permissions: kernel.new_permissions(key, flags),
        semaphores: vec![Semaphore::default(); count as usize],
        times: [0, kernel.host.wall_seconds()],
    };
    let id = kernel.ipc().new_number();
    kernel.ipc().sets.insert(id, set);
    Ok(Value::concrete(u64::from(id)))
}

pub(super) fn semop(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    operate(kernel, call, 0)
}

pub(super) fn semtimedop(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    operate(kernel, call, call.args[3])
}

fn operate(kernel: &mut Kernel<'_, '_>, call: &Call, timeout: u64) -> Answer {
    let (id, address, count) = (call.args[0] as u32, call.args[1], call.args[2]);
    if count == 0 || (id as i32) < 0 {
        return Err(Errno::EINVAL.into());
    }
    if count > MAX_OPERATIONS {
        return Err(Errno::E2BIG.into());
    }
    let mut operations = Vec::with_capacity(count as usize);
    for index in 0..count {
        let at = address.wrapping_add(6 * index);
        let bytes = kernel.read_bytes(at, 6)?;
        let field = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        operations.push(Operation {
            number: field(0),
            change: field(2) as i16,
            flags: field(4),
        });
    }
    let deadline = match timeout {
        0 => None,
        address => Some(
            kernel
                .host
                .clock_ns
                .saturating_add(kernel.read_time(address)?),
        ),
    };
    let Some(set) = kernel.host.ipc.sets.get(&id) else {
        return Err(kernel.gone(id));
    };
    let changes = operations.iter().any(|operation| operation.change != 0);
    let numbers = operations
        .iter()
        .map(|operation| usize::from(operation.number));
    if numbers
        .max()
        .is_some_and(|most| most >= set.semaphores.len())
    {
        return Err(Errno::EFBIG.into());
    }
    kernel.allowed(&set.permissions, if changes { WRITE } else { READ })?;
    match set.attempt(&operations) {
        Attempt::TooLarge => Err(Errno::ERANGE.into()),
        Attempt::Waits(at) if u64::from(operations[at].flags) & NO_WAIT != 0 => {
            Err(Errno::EAGAIN.into())
        }
        Attempt::Waits(_) => {
            let condition = WaitCondition::Ipc(IpcWait::Semaphores(id, operations));
            kernel.wait(condition, deadline, "semaphore")?;
            Err(Errno::EAGAIN.into())
        }
        Attempt::Done(values) => kernel.commit_operations(id, &operations, &values),
    }
}

impl Kernel<'_, '_> {
    fn commit_operations(&mut self, id: u32, operations: &[Operation], values: &[u16]) -> Answer {
        let pid = self.process().pid;
        let now = self.host.wall_seconds();
        let ipc = self.ipc();
        for operation in operations {
            if operation.flags & UNDO != 0 && operation.change != 0 {
                let entry = ipc.undo.entry((pid, id, operation.number)).or_default();
                *entry -= i32::from(operation.change);
            }
        }
        if let Some(set) = ipc.sets.get_mut(&id) {
            for (one, value) in set.semaphores.iter_mut().zip(values) {
                one.value = *value;
            }
            for operation in operations {
                set.semaphores[usize::from(operation.number)].pid = pid;
            }
            set.times[0] = now;
        }
        Ok(Value::ZERO)
    }

    fn set_values(&mut self, id: u32, first: usize, values: &[u16]) {
        let pid = self.process().pid;
        let now = self.host.wall_seconds();
        let ipc = self.ipc();
        let Some(set) = ipc.sets.get_mut(&id) else {
            return;
        };
        for (at, value) in values.iter().enumerate() {
            set.semaphores[first + at] = Semaphore { value: *value, pid };
        }
        set.times[1] = now;
        let changed = first..first + values.len();
        ipc.undo
            .retain(|(_, set, number), _| *set != id || !changed.contains(&usize::from(*number)));
    }
}

impl HostState {
    /// Number of threads that wait for a semaphore to become zero, or to increase.
    fn waiting_at(&self, id: u32, number: u16, for_zero: bool) -> u64 {
        let waiting = self.tasks.iter().filter(|task| {
            let RunState::Waiting(wait) = &task.run_state else {
                return false;
            };
            let WaitCondition::Ipc(IpcWait::Semaphores(set, operations)) = &wait.condition else {
                return false;
            };
            let found = self.ipc.sets.get(set).filter(|_| *set == id);
            let Some(Attempt::Waits(at)) = found.map(|set| set.attempt(operations)) else {
                return false;
            };
            let operation = operations[at];
            operation.number == number && (operation.change == 0) == for_zero
        });
        waiting.count() as u64
    }
}

pub(super) fn semctl(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let (id, number, command) = (
        call.args[0] as u32,
        call.args[1] as usize,
        call.args[2] & !IPC_64,
    );
    kernel.refuse_tables("semctl", command, &[18, 19, 20]);
    if (id as i32) < 0 {
        return Err(Errno::EINVAL.into());
    }
    let set = kernel.host.ipc.sets.get(&id).ok_or(Errno::EINVAL)?.clone();
    let one = || set.semaphores.get(number).copied().ok_or(Errno::EINVAL);
    let value = match command {
        REMOVE => {
            kernel.owns(&set.permissions)?;
            kernel.mark_waiters_removed(id);
            kernel.ipc().sets.remove(&id);
            kernel.ipc().undo.retain(|(_, set, _), _| *set != id);
            0
        }
        STATUS | SET | GET_ALL | SET_ALL => return whole_set(kernel, call, id, &set),
        GET_VALUE | GET_PID | GET_WAITING | GET_WAITING_FOR_ZERO => {
            kernel.allowed(&set.permissions, READ)?;
            let one = one()?;
            match command {
                GET_VALUE => u64::from(one.value),
                GET_PID => u64::from(one.pid),
                _ => {
                    let for_zero = command == GET_WAITING_FOR_ZERO;
                    kernel.host.waiting_at(id, number as u16, for_zero)
                }
            }
        }
        SET_VALUE => {
            // The argument is a union; only its low 32 bits belong to the number.
            let value = kernel.vm.low_bits(call.raw[3], 32);
            let value = kernel.vm.concretize(value)? as i32;
            if !(0..=SEMAPHORE_MAX).contains(&value) {
                return Err(Errno::ERANGE.into());
            }
            one()?;
            kernel.allowed(&set.permissions, WRITE)?;
            kernel.set_values(id, number, &[value as u16]);
            0
        }
        _ => return Err(Errno::EINVAL.into()),
    };
    Ok(Value::concrete(value))
}

/// Handles the commands that take a pointer.
fn whole_set(kernel: &mut Kernel<'_, '_>, call: &Call, id: u32, set: &SemaphoreSet) -> Answer {
    let address = kernel.vm.concretize(call.raw[3]).map_err(Stop::from)?;
    match call.args[2] & !IPC_64 {
        STATUS => {
            kernel.allowed(&set.permissions, READ)?;
            let mut bytes = set.permissions.encode(set.permissions.mode);
            let count = set.semaphores.len() as u64;
            bytes.extend(longs(&[set.times[0], 0, set.times[1], 0, count, 0, 0]));
            kernel.write_bytes(address, &bytes)?;
        }
        SET => {
            let new = kernel.read_permissions(address)?;
            kernel.owns(&set.permissions)?;
            let now = kernel.host.wall_seconds();
            if let Some(set) = kernel.ipc().sets.get_mut(&id) {
                set_permissions(&mut set.permissions, new);
                set.times[1] = now;
            }
        }
        GET_ALL => {
            kernel.allowed(&set.permissions, READ)?;
            let values = set.semaphores.iter();
            let bytes: Vec<u8> = values.flat_map(|one| one.value.to_le_bytes()).collect();
            kernel.write_bytes(address, &bytes)?;
        }
        _ => {
            kernel.allowed(&set.permissions, WRITE)?;
            let bytes = kernel.read_bytes(address, 2 * set.semaphores.len() as u64)?;
            let pairs = bytes.chunks_exact(2);
            let values: Vec<u16> = pairs
                .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
                .collect();
            if values.iter().any(|value| i32::from(*value) > SEMAPHORE_MAX) {
                return Err(Errno::ERANGE.into());
            }
            kernel.set_values(id, 0, &values);
        }
    }
    Ok(Value::ZERO)
}
