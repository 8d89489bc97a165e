//! The calls of POSIX message queues: `mq_open`, `mq_timedsend`, `mq_timedreceive` and others.

use everett_vm::Value;
use triomphe::Arc;

use crate::capabilities::{DAC_OVERRIDE, FOWNER, SYS_RESOURCE};
use crate::errno::Errno;
use crate::files::{Description, OpenFlags, Target};
use crate::ids::{DescriptionId, ObjectId};
use crate::kernel::{Answer, Kernel, Stop};
use crate::limits::QUEUE_BYTES;
use crate::objects::message_queue::{
    Cookie, MessageQueue, QueuedMessage, Registration, queue, queue_mut,
};
use crate::objects::socket::Domain;
use crate::objects::{Object, event};
use crate::signals::{Signal, code, is_signal};
use crate::table::ArgKind::{Buffer, Fd, Flags, Int, Path, Pointer};
use crate::table::{Call, Row};
use crate::wait::WaitCondition;

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new(
        "mq_open",
        240,
        &[Path, Flags, Int, Pointer],
        &[Errno::EMFILE, Errno::ENFILE, Errno::ENOSPC],
        mq_open,
    )
    .fails_where(|_, args, errno| {
        errno != Errno::ENOSPC || args[1] as u32 & OpenFlags::CREATE != 0
    }),
    Row::new("mq_unlink", 241, &[Path], &[], mq_unlink),
    Row::new(
        "mq_timedsend",
        242,
        &[Fd, Buffer, Int, Int, Pointer],
        &[Errno::EINTR],
        mq_timedsend,
    ),
    Row::new(
        "mq_timedreceive",
        243,
        &[Fd, Buffer, Int, Pointer, Pointer],
        &[Errno::EINTR],
        mq_timedreceive,
    ),
    Row::new("mq_notify", 244, &[Fd, Pointer], &[], mq_notify),
    Row::new(
        "mq_getsetattr",
        245,
        &[Fd, Pointer, Pointer],
        &[],
        mq_getsetattr,
    ),
];

const DEFAULT_MOST: u64 = 10;
const DEFAULT_LARGEST: u64 = 8192;
/// The limit with `CAP_SYS_RESOURCE`.
const MAX: u64 = 65536;
const LARGEST: u64 = 16 << 20;
const MAX_PRIORITIES: u64 = 32768;
const NAME_MAX: usize = 255;
/// The wait description of blocked receivers, which distinguishes them from pollers.
const EMPTY: &str = "empty message queue";

/// Bytes of `struct mq_attr`.
const ATTRIBUTES: usize = 64;

fn mq_open(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let name = queue_name(kernel, call.args[0])?;
    let flags = call.args[1] as u32;
    let fd = kernel.process().descriptors.free_from(0)?;
    let found = kernel.host.ipc.names.get(&name).copied();
    let id = match found {
        Some(_) if flags & OpenFlags::CREATE != 0 && flags & OpenFlags::EXCLUSIVE != 0 => {
            return Err(Errno::EEXIST.into());
        }
        Some(id) => {
            kernel.may_open(id, flags)?;
            id
        }
        None if flags & OpenFlags::CREATE == 0 => return Err(Errno::ENOENT.into()),
        None => kernel.create_queue(name, call)?,
    };
    if let Some(queue) = queue_mut(kernel.host, id) {
        queue.open += 1;
    }
    let kept = 3 | OpenFlags::NONBLOCK | OpenFlags::CLOSE_ON_EXEC;
    let description = Description::new(Target::Object(id), flags & kept | OpenFlags::CLOSE_ON_EXEC);
    kernel.install(fd, description);
    Ok(Value::concrete(fd as u64))
}

fn mq_unlink(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let name = queue_name(kernel, call.args[0])?;
    let id = *kernel.host.ipc.names.get(&name).ok_or(Errno::ENOENT)?;
    let owner = queue(kernel.host, id).map(|queue| queue.uid);
    let who = kernel.fs_credentials();
    if !who.has(FOWNER) && owner != Some(who.uid) {
        return Err(Errno::EPERM.into());
    }
    Arc::make_mut(&mut kernel.host.ipc).names.remove(&name);
    if let Some(queue) = queue_mut(kernel.host, id) {
        queue.named = false;
    }
    kernel.host.destroy_unused_queue(id);
    Ok(Value::ZERO)
}

fn mq_timedsend(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let [_, address, len, priority, timeout, _] = call.args;
    let deadline = kernel.queue_deadline(timeout)?;
    if priority as u32 as u64 >= MAX_PRIORITIES {
        return Err(Errno::EINVAL.into());
    }
    let (id, open, flags) = kernel.queue_of(call.int(0))?;
    if !flags.writable() {
        return Err(Errno::EBADF.into());
    }
    let state = queue(kernel.host, id).ok_or(Errno::EBADF)?;
    if len > state.largest {
        return Err(Errno::EMSGSIZE.into());
    }
    let (is_full, was_empty) = (state.is_full(), state.messages.is_empty());
    let bytes = kernel.read_buffer(address, len)?;
    if is_full {
        return Err(kernel.wait_at_queue(open, flags, event::OUT, deadline, "full message queue"));
    }
    let now_ns = kernel.wall_clock_ns();
    if let Some(queue) = queue_mut(kernel.host, id) {
        let priority = priority as u32;
        queue.time_ns = now_ns;
        queue.push(QueuedMessage { priority, bytes });
    }
    if was_empty {
        kernel.notify_arrival(id);
    }
    kernel.host.announce(id, event::READING);
    Ok(Value::ZERO)
}

fn mq_timedreceive(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let [_, address, len, priority_address, timeout, _] = call.args;
    let deadline = kernel.queue_deadline(timeout)?;
    let (id, open, flags) = kernel.queue_of(call.int(0))?;
    if !flags.readable() {
        return Err(Errno::EBADF.into());
    }
    let state = queue(kernel.host, id).ok_or(Errno::EBADF)?;
    if len < state.largest {
        return Err(Errno::EMSGSIZE.into());
    }
    let Some(message) = state.messages.first().cloned() else {
        return Err(kernel.wait_at_queue(open, flags, event::IN, deadline, EMPTY));
    };
    if priority_address != 0 {
        kernel.check(priority_address, 4, true)?;
    }
    kernel.write_buffer(address, &message.bytes)?;
    if priority_address != 0 {
        kernel.write_bytes(priority_address, &message.priority.to_le_bytes())?;
    }
    let now_ns = kernel.wall_clock_ns();
    if let Some(queue) = queue_mut(kernel.host, id) {
        queue.time_ns = now_ns;
        queue.messages.remove(0);
    }
    kernel.host.announce(id, event::WRITING);
    Ok(Value::concrete(message.bytes.len() as u64))
}

fn mq_notify(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const SIGNAL: u32 = 0;
    const NONE: u32 = 1;
    const THREAD: u32 = 2;
    let pid = kernel.process().pid;
    let wanted = match call.args[1] {
        0 => None,
        address => {
            let value = kernel.read_cookie(address)?;
            let bytes = kernel.read_bytes(address.wrapping_add(8), 8)?;
            let field = |at: usize| {
                u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
            };
            let (signal, kind) = (field(0) as i32, field(4));
            let registration = Registration {
                pid,
                signal,
                value,
                cookie: None,
            };
            match kind {
                NONE => Some(Registration {
                    signal: 0,
                    ..registration
                }),
                SIGNAL if signal == 0 || is_signal(signal) => Some(registration),
                THREAD => {
                    let bytes = kernel.read_bytes(value, size_of::<Cookie>() as u64)?;
                    let cookie = bytes.first_chunk().copied().unwrap_or_default();
                    let socket = kernel.find_socket(signal)?;
                    if kernel.socket_of(socket.open())?.domain != Domain::Netlink {
                        return Err(Errno::EINVAL.into());
                    }
                    Some(Registration {
                        cookie: Some((socket.object, cookie)),
                        ..registration
                    })
                }
                _ => return Err(Errno::EINVAL.into()),
            }
        }
    };
    let (id, ..) = kernel.queue_of(call.int(0))?;
    let Some(queue) = queue_mut(kernel.host, id) else {
        return Err(Errno::EBADF.into());
    };
    match (wanted, queue.registration) {
        (Some(_), Some(_)) => return Err(Errno::EBUSY.into()),
        (Some(_), None) => queue.registration = wanted,
        (None, Some(other)) if other.pid == pid => kernel.host.end_registration(id),
        (None, _) => {}
    }
    Ok(Value::ZERO)
}

fn mq_getsetattr(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let [_, new, old, ..] = call.args;
    let (id, open, flags) = kernel.queue_of(call.int(0))?;
    let new = match new {
        0 => None,
        address => Some(kernel.read_u64(address)?),
    };
    let non_block = u64::from(OpenFlags::NONBLOCK);
    if new.is_some_and(|flags| flags & !non_block != 0) {
        return Err(Errno::EINVAL.into());
    }
    if old != 0 {
        let state = queue(kernel.host, id).ok_or(Errno::EBADF)?;
        let now = u64::from(flags.0) & non_block;
        let fields = [now, state.most, state.largest, state.messages.len() as u64];
        let mut bytes: Vec<u8> = fields
            .iter()
            .flat_map(|field| field.to_le_bytes())
            .collect();
        bytes.resize(ATTRIBUTES, 0);
        kernel.write_bytes(old, &bytes)?;
    }
    if let Some(new) = new
        && let Some(description) = kernel.host.files.description_mut(open)
    {
        description.flags.0 = flags.0 & !OpenFlags::NONBLOCK | new as u32;
    }
    Ok(Value::ZERO)
}

/// Reads the name of a queue. The C library has removed its slash.
fn queue_name(kernel: &mut Kernel<'_, '_>, address: u64) -> Result<Vec<u8>, Stop> {
    let name = kernel.read_path(address)?;
    match name.as_slice() {
        b"" => Err(Errno::ENOENT.into()),
        name if name.len() > NAME_MAX => Err(Errno::ENAMETOOLONG.into()),
        name if name.contains(&b'/') || matches!(name, b"." | b"..") => Err(Errno::EACCES.into()),
        _ => Ok(name),
    }
}

impl Kernel<'_, '_> {
    /// Whether the caller may open a queue with this access mode.
    fn may_open(&self, id: ObjectId, flags: u32) -> Result<(), Errno> {
        let Some(queue) = queue(self.host, id) else {
            return Err(Errno::ENOENT);
        };
        let who = self.fs_credentials();
        let wanted = match flags & 3 {
            0 => 0o4,
            OpenFlags::WRITE_ONLY => 0o2,
            _ => 0o6,
        };
        let shift = match () {
            () if who.uid == queue.uid => 6,
            () if who.is_in(queue.gid) => 3,
            () => 0,
        };
        if who.has(DAC_OVERRIDE) || queue.mode >> shift & wanted == wanted {
            Ok(())
        } else {
            Err(Errno::EACCES)
        }
    }

    fn create_queue(&mut self, name: Vec<u8>, call: &Call) -> Result<ObjectId, Stop> {
        let (mut most, mut largest) = (DEFAULT_MOST, DEFAULT_LARGEST);
        if call.args[3] != 0 {
            most = self.read_u64(call.args[3].wrapping_add(8))?;
            largest = self.read_u64(call.args[3].wrapping_add(16))?;
            let limits = match self.is_capable(SYS_RESOURCE) {
                true => (MAX, LARGEST),
                false => (DEFAULT_MOST, DEFAULT_LARGEST),
            };
            let fits = (1..=limits.0).contains(&most) && (1..=limits.1).contains(&largest);
            if !fits {
                return Err(Errno::EINVAL.into());
            }
        }
        let creator = self.process().uid[0];
        let of_user = self
            .host
            .objects
            .iter()
            .filter_map(|(_, object)| match object {
                Object::MessageQueue(queue) if queue.creator == creator => {
                    Some(MessageQueue::counted_bytes(queue.most, queue.largest))
                }
                _ => None,
            });
        let bytes = MessageQueue::counted_bytes(most, largest);
        let bytes = of_user.fold(bytes, u64::saturating_add);
        if bytes > self.process().limits.soft(QUEUE_BYTES) {
            return Err(Errno::EMFILE.into());
        }
        let queue = MessageQueue {
            messages: Vec::new(),
            most,
            largest,
            mode: call.args[2] as u32 & 0o777 & !self.process().umask,
            uid: self.process().uid[1],
            gid: self.process().gid[1],
            creator,
            time_ns: self.wall_clock_ns(),
            open: 0,
            named: true,
            registration: None,
        };
        let id = ObjectId(self.host.objects.insert(Object::MessageQueue(queue)));
        Arc::make_mut(&mut self.host.ipc).names.insert(name, id);
        Ok(id)
    }

    /// The message queue behind a descriptor.
    fn queue_of(&self, fd: i32) -> Result<(ObjectId, DescriptionId, OpenFlags), Errno> {
        let (descriptor, description) = self.description(fd)?;
        match description.target {
            Target::Object(id) if queue(self.host, id).is_some() => {
                Ok((id, descriptor.description, description.flags))
            }
            _ => Err(Errno::EBADF),
        }
    }

    /// Reads a deadline on the wall clock, and converts it to the virtual clock.
    fn queue_deadline(&mut self, address: u64) -> Result<Option<u64>, Stop> {
        if address == 0 {
            return Ok(None);
        }
        let at = self.read_time(address)?;
        Ok(Some(self.wall_deadline(at)))
    }

    fn wait_at_queue(
        &mut self,
        open: DescriptionId,
        flags: OpenFlags,
        events: u16,
        deadline: Option<u64>,
        what: &'static str,
    ) -> Stop {
        if flags.has(OpenFlags::NONBLOCK) {
            return Errno::EAGAIN.into();
        }
        let condition = WaitCondition::Ready(vec![(open, events)]);
        match deadline {
            None => self.wait_restartable(condition, what),
            Some(_) => match self.wait(condition, deadline, what) {
                Ok(()) => Errno::ETIMEDOUT.into(),
                Err(stop) => stop,
            },
        }
    }

    /// Notifies the registered process, once, that a message has arrived at an empty queue without
    /// a blocked receiver.
    fn notify_arrival(&mut self, id: ObjectId) {
        let is_awaited = self.host.is_awaited(id);
        let Some(queue) = queue_mut(self.host, id).filter(|_| !is_awaited) else {
            return;
        };
        let Some(registration) = queue.registration.take() else {
            return;
        };
        if registration.cookie.is_some() {
            self.host.notify_by_socket(registration);
        } else if registration.signal != 0 {
            let sent =
                Signal::from_process(registration.signal, code::MESSAGE_QUEUE, self.process());
            let signal = Signal {
                words: [sent.words[0], registration.value, 0],
                ..sent
            };
            self.host.send(registration.pid, signal);
        }
    }
}

impl crate::host::HostState {
    /// Whether a thread is blocked in a receive.
    fn is_awaited(&self, id: ObjectId) -> bool {
        self.tasks.iter().any(|task| {
            let crate::process::RunState::Waiting(wait) = &task.run_state else {
                return false;
            };
            let WaitCondition::Ready(files) = &wait.condition else {
                return false;
            };
            wait.what == EMPTY
                && files.iter().any(|(open, events)| {
                    let target = self.files.description(*open).map(|open| open.target);
                    events & event::IN != 0 && target == Some(Target::Object(id))
                })
        })
    }
}
