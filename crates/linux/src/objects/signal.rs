//! Signal descriptors (`signalfd`).

use everett_vm::Buffer;

use super::{Object, OpenObject, Operations, event};
use crate::errno::Errno;
use crate::files::OpenFlags;
use crate::host::HostState;
use crate::ids::ObjectId;
use crate::kernel::{Kernel, Stop};
use crate::signals::{FIRST_QUEUED, SIGCHLD, Signal, bit, code};
use crate::wait::{WaitCondition, WakeSource};

/// Size of `struct signalfd_siginfo`.
const SIZE: usize = 128;

/// Operations of a signalfd.
pub const OPERATIONS: Operations = Operations {
    read,
    readiness,
    wake_source: |_, _, _| WakeSource::External,
    seeks: true,
    ..Operations::CLOSED
};

/// The signal mask of a signalfd, if it is one.
pub fn signals(host: &HostState, id: ObjectId) -> Option<u64> {
    match host.objects.get(id.0)? {
        Object::Signals(mask) => Some(*mask),
        _ => None,
    }
}

fn read(kernel: &mut Kernel<'_, '_>, open: OpenObject<'_>, wanted: u64) -> Result<Buffer, Stop> {
    let mask = signals(kernel.host, open.object).ok_or(Errno::EBADF)?;
    let most = wanted as usize / SIZE;
    if most == 0 {
        return Err(Errno::EINVAL.into());
    }
    if kernel.host.pending_signals(kernel.task()) & mask == 0 {
        if open.description.flags.has(OpenFlags::NONBLOCK) {
            return Err(Errno::EAGAIN.into());
        }
        return Err(kernel.wait_restartable(WaitCondition::Signals(mask), "read from a signalfd"));
    }
    let mut taken = Vec::new();
    while taken.len() < most
        && let Some(signal) = kernel.host.take_signal(kernel.task, mask)
    {
        let signal = kernel.store_overrun(signal);
        taken.push(kernel.described(&signal));
    }
    let mut bytes = Buffer::zeroed(taken.len() * SIZE);
    for (at, signal) in taken.iter().enumerate() {
        bytes.copy_from(at * SIZE, signal, 0, SIZE);
    }
    Ok(bytes)
}

fn readiness(host: &HostState, open: OpenObject<'_>) -> u16 {
    let mask = signals(host, open.object).unwrap_or(0);
    let (pid, tid) = open.caller;
    let process = host.process_by_pid(pid);
    let task = host.task_by_tid(tid).map(|at| &host.tasks[at]);
    let pending = process.map_or(0, |process| process.pending.mask())
        | task.map_or(0, |task| task.pending.mask());
    if pending & mask != 0 { event::IN } else { 0 }
}

impl Kernel<'_, '_> {
    /// Encodes a `struct signalfd_siginfo`.
    fn described(&mut self, signal: &Signal) -> Buffer {
        const PID: usize = 12;
        const UID: usize = 16;
        const TIMER: usize = 24;
        const OVERRUN: usize = 32;
        const STATUS: usize = 40;
        const INT: usize = 44;
        const POINTER: usize = 48;
        let mut bytes = Buffer::zeroed(SIZE);
        let mut put = |at: usize, word: u64| bytes.write(at, &(word as u32).to_le_bytes());
        let [first, second, _] = signal.words;
        put(0, signal.number as u64);
        put(8, signal.code as u64);
        let is_of_child = signal.number == SIGCHLD && signal.code > 0;
        match signal.code {
            code::TIMER => {
                put(TIMER, first);
                put(OVERRUN, first >> 32);
                put(INT, second);
                bytes.write(POINTER, &second.to_le_bytes());
            }
            _ if is_of_child => {
                put(PID, first);
                put(UID, first >> 32);
                put(STATUS, second);
            }
            _ => {
                put(PID, first);
                put(UID, first >> 32);
                if signal.code < 0 && signal.code != code::THREAD || signal.number >= FIRST_QUEUED {
                    put(INT, second);
                    bytes.write(POINTER, &second.to_le_bytes());
                }
            }
        }
        if let Some(status) = signal.status {
            bytes.store(STATUS, 1, status);
        }
        bytes
    }
}

impl HostState {
    /// Announces a sent signal to the epoll instances that watch a signalfd.
    pub fn announce_signal(&mut self, number: i32) {
        if self.watchers.is_empty() {
            return;
        }
        let objects = self.objects.iter();
        let concerned = objects.filter(|(_, object)| match object {
            Object::Signals(mask) => mask & bit(number) != 0,
            _ => false,
        });
        let concerned: Vec<u32> = concerned.map(|(id, _)| id).collect();
        for id in concerned {
            self.announce(ObjectId(id), event::IN);
        }
    }
}
