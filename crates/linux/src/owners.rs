//! Signals about open files: which process receives them (`F_SETOWN`), which signal is sent
//! (`F_SETSIG`), and when (`O_ASYNC`).

use everett_vm::Value;
use triomphe::Arc;

use crate::errno::Errno;
use crate::files::{OpenFlags, Owner, Receiver, Target};
use crate::host::HostState;
use crate::ids::{DescriptionId, ObjectId};
use crate::kernel::{Answer, Kernel};
use crate::objects::{Object, event, source};
use crate::process::{ExitState, ProcessState};
use crate::signals::{Signal, code, is_signal};

const SIGIO: i32 = 29;
/// The signal about urgent data.
pub const URGENT: i32 = 23;

/// Commands of `fcntl`.
pub const SET_OWNER: i32 = 8;
pub const GET_OWNER: i32 = 9;
pub const SET_SIGNAL: i32 = 10;
pub const GET_SIGNAL: i32 = 11;
pub const SET_TYPED_OWNER: i32 = 15;
pub const GET_TYPED_OWNER: i32 = 16;
pub const GET_OWNER_USERS: i32 = 17;

/// `si_code` and `si_band` of events.
fn described(events: u16) -> (i32, u64) {
    const POLL_IN: (i32, u64) = (1, 0x41);
    const POLL_OUT: (i32, u64) = (2, 0x304);
    const POLL_ERR: (i32, u64) = (4, 0x8);
    const POLL_PRI: (i32, u64) = (5, 0x82);
    const POLL_HUP: (i32, u64) = (6, 0x18);
    if events & event::HANG_UP != 0 {
        POLL_HUP
    } else if events & event::READING != 0 {
        POLL_IN
    } else if events & event::PRIORITY != 0 {
        POLL_PRI
    } else if events & event::ERROR != 0 {
        POLL_ERR
    } else {
        POLL_OUT
    }
}

impl HostState {
    /// Signals new events of an object to the owners of its files with `O_ASYNC`.
    pub(crate) fn signal_owners(&mut self, of: ObjectId, events: u16) {
        for (id, fd) in self.asynchronous.clone().iter() {
            let Some(description) = self.files.description(*id) else {
                continue;
            };
            let (flags, owner) = (description.flags, description.owner);
            let here = events & event::READING != 0 && flags.readable()
                || events & event::WRITING != 0 && flags.writable()
                || events & !(event::READING | event::WRITING) != 0;
            if source(description.target) != Some(of) || !here {
                continue;
            }
            // `events` may have changed; the signal reports the events that hold now.
            let holding = match events {
                event::ALL => self.readiness(*id),
                events => events,
            };
            if holding == 0 {
                continue;
            }
            let (reason, band) = described(holding);
            let signal = match owner.signal {
                0 => Signal::new(SIGIO, code::KERNEL),
                number => Signal {
                    words: [band, *fd as u32 as u64, 0],
                    ..Signal::new(number, reason)
                },
            };
            self.tell_owner(owner, signal);
        }
    }

    /// Sends a signal to the owners of all open files of an object, `O_ASYNC` or not.
    pub(crate) fn tell_owners(&mut self, of: ObjectId, number: i32) {
        for owner in self.files.owners_of(of) {
            self.tell_owner(owner, Signal::new(number, code::KERNEL));
        }
    }

    fn tell_owner(&mut self, owner: Owner, signal: Signal) {
        let is_receiver = |process: &ProcessState| match owner.receiver {
            Receiver::Process(pid) => process.pid == pid,
            Receiver::Group(group) => process.group == group,
            Receiver::Thread(tid) => self
                .task_by_tid(tid)
                .is_some_and(|at| self.tasks[at].pid == process.pid),
            Receiver::Nobody => false,
        };
        let alive = self.processes.iter().filter(|process| {
            matches!(process.exit_state, ExitState::Alive)
                && is_receiver(process)
                && owner.may_tell(process)
        });
        let pids: Vec<u32> = alive.map(|process| process.pid).collect();
        for pid in pids {
            match owner.receiver {
                Receiver::Thread(tid) => {
                    if let Some(at) = self.task_by_tid(tid) {
                        self.send_to_task(at, signal);
                    }
                }
                _ => {
                    self.send(pid, signal);
                }
            }
        }
    }

    /// Removes a closed file from the list of files with `O_ASYNC`.
    pub(crate) fn forget_asynchronous(&mut self, closed: DescriptionId) {
        if self.asynchronous.iter().any(|(id, _)| *id == closed) {
            Arc::make_mut(&mut self.asynchronous).retain(|(id, _)| *id != closed);
        }
    }

    /// Whether a file can send signals: pipes, sockets, terminals and inotify instances do.
    fn has_signals(&self, target: Target) -> bool {
        match target {
            Target::Stdin(_) | Target::Output(_) => true,
            Target::Inode(_) => false,
            Target::Object(id) => matches!(
                self.objects.get(id.0),
                Some(
                    Object::Pipe(_)
                        | Object::Socket(_)
                        | Object::Terminal(_)
                        | Object::TerminalLine(_)
                        | Object::Inotify(_)
                )
            ),
        }
    }
}

impl Kernel<'_, '_> {
    /// Sets or clears `O_ASYNC`. Returns whether the file supports it.
    pub(crate) fn set_asynchronous(&mut self, fd: i32, id: DescriptionId, on: bool) -> bool {
        let Some(description) = self.host.files.description_mut(id) else {
            return false;
        };
        let (target, flags) = (description.target, description.flags.0);
        if !self.host.has_signals(target) {
            return false;
        }
        self.host.forget_asynchronous(id);
        if on {
            Arc::make_mut(&mut self.host.asynchronous).push((id, fd));
        }
        if let Some(description) = self.host.files.description_mut(id) {
            let others = flags & !OpenFlags::ASYNC;
            description.flags = OpenFlags(others | if on { OpenFlags::ASYNC } else { 0 });
        }
        true
    }

    /// The commands of `fcntl` about owners.
    pub(crate) fn owner_command(
        &mut self,
        id: DescriptionId,
        command: i32,
        argument: u64,
    ) -> Answer {
        let owner = self.host.files.description(id).ok_or(Errno::EBADF)?.owner;
        let changed = match command {
            GET_OWNER => return Ok(Value::concrete(untyped(owner.receiver) as i64 as u64)),
            GET_SIGNAL => return Ok(Value::concrete(owner.signal as u64)),
            GET_TYPED_OWNER => {
                let (kind, number) = typed(owner.receiver);
                self.write_bytes(argument, &[kind, number].map(u32::to_le_bytes).concat())?;
                return Ok(Value::ZERO);
            }
            GET_OWNER_USERS => {
                self.write_bytes(argument, &owner.users.map(u32::to_le_bytes).concat())?;
                return Ok(Value::ZERO);
            }
            SET_SIGNAL => {
                let number = argument as i32;
                if number != 0 && !is_signal(number) {
                    return Err(Errno::EINVAL.into());
                }
                Owner {
                    signal: number,
                    ..owner
                }
            }
            _ => {
                let receiver = match command {
                    SET_OWNER => self.receiver(argument as i32)?,
                    _ => {
                        let words = self.read_u64(argument)?;
                        self.typed_receiver(words as u32, (words >> 32) as u32)?
                    }
                };
                self.owned_by(owner, receiver)
            }
        };
        if let Some(description) = self.host.files.description_mut(id) {
            description.owner = changed;
        }
        Ok(Value::ZERO)
    }

    /// Sets the owner of a file by a number: a pid, or a negative process group.
    pub(crate) fn set_owner(&mut self, id: DescriptionId, number: i32) -> Answer {
        let receiver = self.receiver(number)?;
        let owner = self.host.files.description(id).ok_or(Errno::EBADF)?.owner;
        let owner = self.owned_by(owner, receiver);
        if let Some(description) = self.host.files.description_mut(id) {
            description.owner = owner;
        }
        Ok(Value::ZERO)
    }

    /// The owner of a file as one number.
    pub(crate) fn owner(&self, id: DescriptionId) -> i32 {
        let description = self.host.files.description(id);
        description.map_or(0, |description| untyped(description.owner.receiver))
    }

    fn owned_by(&self, owner: Owner, receiver: Receiver) -> Owner {
        let [real, effective, _] = self.process().uid;
        Owner {
            receiver,
            users: [real, effective],
            ..owner
        }
    }

    fn receiver(&self, number: i32) -> Result<Receiver, Errno> {
        match number {
            0 => Ok(Receiver::Nobody),
            i32::MIN => Err(Errno::EINVAL),
            1.. => self.typed_receiver(1, number as u32),
            _ => self.typed_receiver(2, number.unsigned_abs()),
        }
    }

    /// Decodes a `struct f_owner_ex`.
    fn typed_receiver(&self, kind: u32, number: u32) -> Result<Receiver, Errno> {
        let has = |found: bool| if found { Ok(()) } else { Err(Errno::ESRCH) };
        let receiver = match kind {
            0 => Receiver::Thread(number),
            1 => Receiver::Process(number),
            2 => Receiver::Group(number),
            _ => return Err(Errno::EINVAL),
        };
        match receiver {
            _ if number == 0 => return Ok(Receiver::Nobody),
            Receiver::Thread(tid) => has(self.host.task_by_tid(tid).is_some())?,
            Receiver::Process(pid) => has(self.host.process_by_pid(pid).is_some())?,
            Receiver::Group(group) => {
                let mut all = self.host.processes.iter();
                has(all.any(|process| process.group == group))?;
            }
            Receiver::Nobody => {}
        }
        Ok(receiver)
    }
}

/// A receiver as `F_GETOWN_EX` reports it.
fn typed(receiver: Receiver) -> (u32, u32) {
    match receiver {
        Receiver::Nobody => (1, 0),
        Receiver::Thread(tid) => (0, tid),
        Receiver::Process(pid) => (1, pid),
        Receiver::Group(group) => (2, group),
    }
}

/// A receiver as `F_GETOWN` reports it.
fn untyped(receiver: Receiver) -> i32 {
    match receiver {
        Receiver::Group(group) => -(group as i32),
        other => typed(other).1 as i32,
    }
}

impl Owner {
    /// The owner of a file that was just opened.
    pub const NONE: Owner = Owner {
        receiver: Receiver::Nobody,
        signal: 0,
        users: [0; 2],
    };

    /// Whether the process that set the owner may send a signal to this process.
    pub(crate) fn may_tell(&self, target: &ProcessState) -> bool {
        let targets = [target.uid[0], target.uid[2]];
        self.users[1] == 0 || self.users.iter().any(|user| targets.contains(user))
    }
}
