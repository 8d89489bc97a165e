//! What can be open besides files of the tree: pipes, sockets and their like. One file a kind, each with one
//! table of what can be done with it.

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

use everett_expr::ExprId;
use everett_vm::Buffer;

pub use epoll::{EDGE, EXCLUSIVE, Epoll, WAKE_UP, Watchers, epoll, source};
pub use event_counter::EventCounter;
pub use inotify::{FileWatchers, Inotify, happened, inotify};
pub use pipe::{Pipe, pipe, pipe_mut};
pub use process::process_of;
pub use signal::signals as readable_signals;
pub use terminal::{SETTINGS_SIZE, Settings, Terminal, terminal, terminal_mut};
pub use timer::{TimerDescriptor, timer, timer_mut};

use crate::errno::Errno;
use crate::files::{Description, DescriptionId, Target};
use crate::host::HostState;
use crate::kernel::{Kernel, Stop};
use crate::table::Answer;
use crate::wait::{Hope, Until};

/// Number of an object on its host.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ObjectId(pub u32);

impl ObjectId {
    /// Stands for the host's standard input where events are announced.
    pub const STDIN: ObjectId = ObjectId(u32::MAX);
}

/// What is open.
#[derive(Clone, Debug)]
pub enum Object {
    /// A pipe or a FIFO.
    Pipe(Pipe),
    /// An eventfd.
    EventCounter(EventCounter),
    /// A set of descriptors that are watched.
    Epoll(Epoll),
    /// A timer that is read.
    Timer(TimerDescriptor),
    /// A pseudo-terminal, the side of `/dev/ptmx`.
    Terminal(Box<Terminal>),
    /// The other side of this pseudo-terminal.
    TerminalLine(ObjectId),
    /// Signals that are read.
    Signals(u64),
    /// What happens to files.
    Inotify(Inotify),
    /// A POSIX message queue.
    MessageQueue(message_queue::MessageQueue),
    /// A socket.
    Socket(Box<socket::Socket>),
    /// A process, by its number.
    Process(u32),
}

/// Events of `poll`.
pub mod event {
    pub const IN: u16 = 0x1;
    pub const PRIORITY: u16 = 0x2;
    pub const OUT: u16 = 0x4;
    pub const ERROR: u16 = 0x8;
    pub const HANG_UP: u16 = 0x10;
    pub const INVALID: u16 = 0x20;
    pub const READ_NORMAL: u16 = 0x40;
    pub const READ_BAND: u16 = 0x80;
    pub const WRITE_NORMAL: u16 = 0x100;
    pub const WRITE_BAND: u16 = 0x200;
    pub const READ_HANG_UP: u16 = 0x2000;
    /// There is something to read.
    pub const READING: u16 = IN | READ_NORMAL;
    /// There is room to write.
    pub const WRITING: u16 = OUT | WRITE_NORMAL;
    /// All that there are, for ends that change everything.
    pub const ALL: u16 = 0xffff;
}

/// An object and the open file through which it is used.
#[derive(Copy, Clone, Debug)]
pub struct Open<'d> {
    /// The object.
    pub object: ObjectId,
    /// The open file.
    pub description: &'d Description,
    /// Its number.
    pub id: DescriptionId,
    /// Process and thread that use it.
    pub asker: (u32, u32),
}

/// What can be done with a kind of object. All but [`Operations::CLOSED`]'s defaults are its own.
#[derive(Copy, Clone)]
pub struct Operations {
    /// Type bits of `stat`'s mode, and permissions.
    pub mode: u32,
    /// The next bytes, at most so many; they are gone when the handler has ended. Blocks with
    /// [`Kernel::wait_for`] where there are none yet.
    pub read: fn(&mut Kernel<'_, '_>, Open<'_>, u64) -> Result<Buffer, Stop>,
    /// Takes bytes, and says how many it took. Whoever changes what an object is ready for announces it
    /// ([`HostState::announce`]), here as in all others.
    pub write: fn(&mut Kernel<'_, '_>, Open<'_>, &[Buffer]) -> Result<u64, Stop>,
    /// A write that blocks goes on until all is written.
    pub writes_whole: bool,
    /// `lseek` succeeds, and does nothing.
    pub seeks: bool,
    /// All events of [`event`] that it has now.
    pub readiness: fn(&HostState, Open<'_>) -> u16,
    /// Where these events can come from when all threads of the host wait.
    pub hope: fn(&HostState, Open<'_>, u16) -> Hope,
    /// The last descriptor of this open file is gone.
    pub close: fn(&mut HostState, Open<'_>),
    /// Requests of `fcntl` that not all open files have.
    pub fcntl: fn(&mut Kernel<'_, '_>, Open<'_>, i32, u64) -> Answer,
    /// Requests of `ioctl` that not all open files have; `ENOTTY` for those that it does not have either.
    pub ioctl: fn(&mut Kernel<'_, '_>, Open<'_>, u64, u64) -> Answer,
    /// Bytes that can be read without waiting, for `FIONREAD`.
    pub available: fn(&HostState, Open<'_>) -> Option<u64>,
    /// Terms in it, for marking what is alive.
    pub for_each_term: fn(&Object, &mut dyn FnMut(ExprId)),
}

impl Operations {
    /// An object that can neither be read nor written, is never ready, and holds nothing.
    pub const CLOSED: Operations = Operations {
        mode: 0o600,
        read: |_, _, _| Err(Errno::EINVAL.into()),
        write: |_, _, _| Err(Errno::EINVAL.into()),
        writes_whole: true,
        seeks: false,
        readiness: |_, _| 0,
        hope: |_, _, _| Hope::None,
        close: |host, open| host.objects.remove(open.object.0),
        fcntl: |_, _, _, _| Err(Errno::EINVAL.into()),
        ioctl: |_, _, _, _| Err(Errno::ENOTTY.into()),
        available: |_, _| None,
        for_each_term: |_, _| {},
    };
}

impl Object {
    /// What can be done with it.
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
    /// An open file that is an object, with what can be done with it.
    pub fn open_object<'d>(
        &self,
        id: DescriptionId,
        description: &'d Description,
    ) -> Option<(Open<'d>, &'static Operations)> {
        self.open_object_for(self.running(), id, description)
    }

    /// Process and thread that run.
    fn running(&self) -> (u32, u32) {
        let task = self.tasks.get(self.schedule.running);
        task.map_or((0, 0), |task| (task.pid, task.tid))
    }

    /// The same for another thread than the one that runs.
    fn open_object_for<'d>(
        &self,
        asker: (u32, u32),
        id: DescriptionId,
        description: &'d Description,
    ) -> Option<(Open<'d>, &'static Operations)> {
        let Target::Object(object) = description.target else {
            return None;
        };
        let operations = self.objects.get(object.0)?.operations();
        let open = Open {
            object,
            description,
            id,
            asker,
        };
        Some((open, operations))
    }

    /// All events that an open file has now.
    pub fn readiness(&self, id: DescriptionId) -> u16 {
        self.readiness_for(self.running(), id)
    }

    /// The same for another thread than the one that runs.
    pub fn readiness_for(&self, asker: (u32, u32), id: DescriptionId) -> u16 {
        const READ: u16 = event::IN | event::READ_NORMAL;
        const WRITE: u16 = event::OUT | event::WRITE_NORMAL;
        let Some(description) = self.files.description(id) else {
            return event::INVALID;
        };
        match description.target {
            Target::Output(_) => WRITE,
            Target::Inode(_) => READ | WRITE,
            Target::Stdin(number) if self.files.stdin(number).must_wait() => 0,
            Target::Stdin(_) => READ,
            Target::Object(_) if self.faults.spurious => READ,
            Target::Object(_) => match self.open_object_for(asker, id, description) {
                Some((open, operations)) => (operations.readiness)(self, open),
                None => event::INVALID,
            },
        }
    }

    /// Where events of an open file can come from.
    pub fn hope_of(&self, id: DescriptionId, events: u16) -> Hope {
        let Some(description) = self.files.description(id) else {
            return Hope::None;
        };
        match description.target {
            Target::Stdin(_) => Hope::Input,
            _ => match self.open_object(id, description) {
                Some((open, operations)) => (operations.hope)(self, open, events),
                None => Hope::None,
            },
        }
    }

    /// One descriptor less refers to an open file; the last one closes it.
    pub fn release(&mut self, id: DescriptionId) {
        let Some(description) = self.files.release(id) else {
            return;
        };
        self.unwatch_closed(id, description.target);
        if let Target::Inode(inode) = description.target {
            self.notify_close(inode, description.flags);
        }
        if let Some((open, operations)) = self.open_object(id, &description) {
            (operations.close)(self, open);
            if self.objects.get(open.object.0).is_none() {
                self.files.forget_pipe(open.object);
            }
        }
        if self.files.locks.release_description(id) {
            self.lock_releases += 1;
        }
    }

    /// A process closes one of its descriptors, and with it loses its locks on the file.
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
        self.release(id);
    }
}

impl Kernel<'_, '_> {
    /// Waits for events of an open file: `EAGAIN` where it does not block.
    pub fn wait_for(&mut self, open: Open<'_>, events: u16, what: &'static str) -> Stop {
        if open
            .description
            .flags
            .has(crate::files::OpenFlags::NONBLOCK)
        {
            return Errno::EAGAIN.into();
        }
        self.wait_restartable(Until::Ready(vec![(open.id, events)]), what)
    }

    /// A new descriptor for a new object.
    pub fn open_new(&mut self, object: Object, flags: u32) -> Result<i32, Stop> {
        let fd = self.process().descriptors.free_from(0)?;
        let object = ObjectId(self.host.objects.insert(object));
        self.install(fd, Description::new(Target::Object(object), flags));
        Ok(fd)
    }
}
