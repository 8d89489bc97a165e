//! Kernel objects behind descriptors, besides files of the tree: pipes, sockets and so on. Each
//! kind has one file with one table of its operations.

mod epoll;
mod event_counter;
mod inotify;
pub mod message_queue;
mod pipe;
mod process;
mod signal;
pub mod socket;
mod terminal;
mod timer;

use everett_expr::VisitTerms;
use everett_vm::Buffer;

use crate::errno::Errno;
use crate::files::{Description, OpenFlags, Target};
use crate::host::HostState;
use crate::ids::{DescriptionId, ObjectId};
use crate::kernel::{Answer, Kernel, Stop};
use crate::wait::{WaitCondition, WakeSource};

pub(crate) use crate::event;
pub use epoll::{EDGE, EXCLUSIVE, Epoll, WAKE_UP, Watchers, epoll, source};
pub use event_counter::EventCounter;
pub use inotify::{FileWatchers, Inotify, happened, inotify};
pub use pipe::{Pipe, pipe, pipe_mut};
pub use process::{REAPED, process_of};
pub use signal::signals as readable_signals;
pub use terminal::{SETTINGS_SIZE, Settings, Terminal, terminal, terminal_mut};
pub use timer::{TimerDescriptor, timer, timer_mut};

/// A kernel object.
#[derive(Clone, Debug)]
pub enum Object {
    /// A pipe or a FIFO.
    Pipe(Pipe),
    /// An eventfd.
    EventCounter(EventCounter),
    /// An epoll instance.
    Epoll(Epoll),
    /// A timerfd.
    Timer(TimerDescriptor),
    /// The master side of a pseudo-terminal (`/dev/ptmx`).
    Terminal(Box<Terminal>),
    /// The slave side of this pseudo-terminal.
    TerminalLine(ObjectId),
    /// A signalfd with this signal mask.
    Signals(u64),
    /// An inotify instance.
    Inotify(Inotify),
    /// A POSIX message queue.
    MessageQueue(message_queue::MessageQueue),
    /// A socket.
    Socket(Box<socket::Socket>),
    /// A pidfd of this process.
    Process(u32),
}

impl Object {
    /// The name in `/proc` of an object that has no inode number there.
    pub fn anonymous_name(&self) -> Option<&'static [u8]> {
        match self {
            Object::EventCounter(_) => Some(b"anon_inode:[eventfd]"),
            Object::Epoll(_) => Some(b"anon_inode:[eventpoll]"),
            Object::Timer(_) => Some(b"anon_inode:[timerfd]"),
            Object::Signals(_) => Some(b"anon_inode:[signalfd]"),
            Object::Inotify(_) => Some(b"anon_inode:inotify"),
            Object::Process(_) => Some(b"anon_inode:[pidfd]"),
            _ => None,
        }
    }
}

/// An object, and the open file description through which it is used.
#[derive(Copy, Clone, Debug)]
pub struct OpenObject<'d> {
    /// The object.
    pub object: ObjectId,
    /// The open file description.
    pub description: &'d Description,
    /// Id of the open file description.
    pub id: DescriptionId,
    /// The pid and tid of the caller.
    pub caller: (u32, u32),
}

/// Operations of a kind of object. Kinds start from the defaults in [`Operations::CLOSED`].
#[derive(Copy, Clone)]
pub struct Operations {
    /// Type bits of `stat`'s mode, and permissions.
    pub mode: u32,
    /// Reads and consumes at most this many bytes. Blocks with [`Kernel::wait_for`] if there are
    /// none yet.
    pub read: fn(&mut Kernel<'_, '_>, OpenObject<'_>, u64) -> Result<Buffer, Stop>,
    /// Writes bytes and returns the number written. This and every other operation that changes the
    /// readiness of an object announces it ([`HostState::announce`]).
    pub write: fn(&mut Kernel<'_, '_>, OpenObject<'_>, &[Buffer]) -> Result<u64, Stop>,
    /// A blocking write continues until everything is written.
    pub writes_whole: bool,
    /// `lseek` succeeds without effect.
    pub seeks: bool,
    /// Its current events of [`event`].
    pub readiness: fn(&HostState, OpenObject<'_>) -> u16,
    /// The source of these events when all threads of the host are blocked.
    pub wake_source: fn(&HostState, OpenObject<'_>, u16) -> WakeSource,
    /// Called at the last close of an open file description.
    pub close: fn(&mut HostState, OpenObject<'_>),
    /// `fcntl` commands specific to this kind.
    pub fcntl: fn(&mut Kernel<'_, '_>, OpenObject<'_>, i32, u64) -> Answer,
    /// `ioctl` requests specific to this kind; `ENOTTY` for unknown ones.
    pub ioctl: fn(&mut Kernel<'_, '_>, OpenObject<'_>, u64, u64) -> Answer,
    /// The most bytes that a read returns, whatever its count is.
    pub largest_read: u64,
    /// Bytes that can be read without blocking, for `FIONREAD`.
    pub available: fn(&HostState, OpenObject<'_>) -> Option<u64>,
    /// Visits all terms, so that the arena can mark live ones.
    pub for_each_term: fn(&Object, &mut dyn VisitTerms),
}

impl Operations {
    /// An object that can be neither read nor written, is never ready and holds nothing.
    pub const CLOSED: Operations = Operations {
        mode: 0o600,
        read: |_, _, _| Err(Errno::EINVAL.into()),
        write: |_, _, _| Err(Errno::EINVAL.into()),
        writes_whole: true,
        seeks: false,
        readiness: |_, _| 0,
        wake_source: |_, _, _| WakeSource::None,
        close: |host, open| host.objects.remove(open.object.0),
        fcntl: |_, _, _, _| Err(Errno::EINVAL.into()),
        ioctl: |_, _, _, _| Err(Errno::ENOTTY.into()),
        largest_read: u64::MAX,
        available: |_, _| None,
        for_each_term: |_, _| {},
    };
}

impl Object {
    /// The operations of its kind.
    pub fn operations(&self) -> &'static Operations {
        match self {
            Object::Pipe(_) => &pipe::OPERATIONS,
            Object::EventCounter(_) => &event_counter::OPERATIONS,
            Object::Epoll(_) => &epoll::OPERATIONS,
            Object::Timer(_) => &timer::OPERATIONS,
            Object::Terminal(_) => &terminal::OPERATIONS,
            Object::TerminalLine(_) => &terminal::LINE_OPERATIONS,
            Object::Signals(_) => &signal::OPERATIONS,
            Object::Inotify(_) => &inotify::OPERATIONS,
            Object::MessageQueue(_) => &message_queue::OPERATIONS,
            Object::Socket(_) => &socket::OPERATIONS,
            Object::Process(_) => &process::OPERATIONS,
        }
    }
}

impl HostState {
    /// The object behind an open file description, with its operations.
    pub fn open_object<'d>(
        &self,
        id: DescriptionId,
        description: &'d Description,
    ) -> Option<(OpenObject<'d>, &'static Operations)> {
        self.open_object_for(self.running(), id, description)
    }

    /// Pid and tid of the running thread.
    fn running(&self) -> (u32, u32) {
        let task = self.tasks.get(self.schedule.running);
        task.map_or((0, 0), |task| (task.pid, task.tid))
    }

    /// The object behind an open file description, as a thread other than the running one uses it.
    fn open_object_for<'d>(
        &self,
        caller: (u32, u32),
        id: DescriptionId,
        description: &'d Description,
    ) -> Option<(OpenObject<'d>, &'static Operations)> {
        let Target::Object(object) = description.target else {
            return None;
        };
        let operations = self.objects.get(object.0)?.operations();
        let open = OpenObject {
            object,
            description,
            id,
            caller,
        };
        Some((open, operations))
    }

    /// The current events of an open file.
    pub fn readiness(&self, id: DescriptionId) -> u16 {
        self.readiness_for(self.running(), id)
    }

    /// The current events of an open file, as a thread other than the running one sees them.
    pub fn readiness_for(&self, caller: (u32, u32), id: DescriptionId) -> u16 {
        const READ: u16 = event::IN | event::READ_NORMAL;
        const WRITE: u16 = event::OUT | event::WRITE_NORMAL;
        let Some(description) = self.files.description(id) else {
            return event::INVALID;
        };
        match description.target {
            _ if description.flags.has(OpenFlags::PATH) => event::INVALID,
            Target::Output(_) => WRITE,
            Target::Inode(id) => self.files.tree.get(id).polled.unwrap_or(READ | WRITE),
            Target::Stdin(number) if self.files.stdin(number).must_wait() => 0,
            Target::Stdin(_) => READ,
            Target::Object(_) if self.faults.spurious => READ,
            Target::Object(_) => match self.open_object_for(caller, id, description) {
                Some((open, operations)) => (operations.readiness)(self, open),
                None => event::INVALID,
            },
        }
    }

    /// The source of events of an open file when all threads of the host are blocked.
    pub fn wake_source_of(&self, id: DescriptionId, events: u16) -> WakeSource {
        let Some(description) = self.files.description(id) else {
            return WakeSource::None;
        };
        match description.target {
            Target::Stdin(_) => WakeSource::Stdin,
            _ => match self.open_object(id, description) {
                Some((open, operations)) => (operations.wake_source)(self, open, events),
                None => WakeSource::None,
            },
        }
    }

    /// Drops a reference to an open file description; the last one closes it. Descriptions in
    /// transit over it are released too, and those in transit over them. A loop does this, not
    /// recursion, since a program can make a chain of any length.
    pub fn release(&mut self, id: DescriptionId) {
        self.release_one(id);
        while let Some(id) = self.in_transit.pop() {
            self.release_one(id);
        }
    }

    fn release_one(&mut self, id: DescriptionId) {
        let Some(description) = self.files.release(id) else {
            return;
        };
        self.unwatch_closed(id, description.target);
        self.forget_asynchronous(id);
        if let Target::Inode(inode) = description.target {
            self.notify_close(inode, description.flags);
        }
        if let Some((open, operations)) = self.open_object(id, &description) {
            (operations.close)(self, open);
            if self.objects.get(open.object.0).is_none() {
                self.files.remove_pipe(open.object);
            }
        }
        if self.files.locks.release_description(id) {
            self.lock_releases += 1;
        }
    }

    /// Closes a descriptor of a process. This releases its record locks on the file, and its
    /// registration with a message queue, even if the process has other descriptors of it.
    pub fn close(&mut self, pid: u32, id: DescriptionId) {
        let target = self
            .files
            .description(id)
            .map(|description| description.target);
        if let Some(Target::Inode(inode)) = target
            && self.files.locks.release_process(pid, Some(inode))
        {
            self.lock_releases += 1;
        }
        if let Some(Target::Object(object)) = target {
            let queue = message_queue::queue_mut(self, object);
            let registered = queue.and_then(|queue| queue.registration);
            if registered.is_some_and(|other| other.pid == pid) {
                self.end_registration(object);
            }
        }
        self.release(id);
    }
}

impl Kernel<'_, '_> {
    /// Blocks until an open file has one of these events; `EAGAIN` if it is non-blocking.
    pub fn wait_for(&mut self, open: OpenObject<'_>, events: u16, what: &'static str) -> Stop {
        if open.description.flags.has(OpenFlags::NONBLOCK) {
            return Errno::EAGAIN.into();
        }
        self.wait_restartable(WaitCondition::Ready(vec![(open.id, events)]), what)
    }

    /// Opens a new descriptor for a new object.
    pub fn open_new(&mut self, object: Object, flags: u32) -> Result<i32, Stop> {
        let fd = self.process().descriptors.free_from(0)?;
        let object = ObjectId(self.host.objects.insert(object));
        self.install(fd, Description::new(Target::Object(object), flags));
        Ok(fd)
    }
}
