//! Opening pseudo-terminals, and their `ioctl` requests.

use everett_vm::Value;

use crate::errno::Errno;
use crate::files::{Description, Device, Inode, InodeKind, OpenFlags, ROOT, Target};
use crate::host::HostState;
use crate::ids::{InodeId, ObjectId};
use crate::kernel::{Answer, Kernel, Stop};
use crate::objects::{Object, SETTINGS_SIZE, Settings, Terminal, event, terminal, terminal_mut};
use crate::signals::SIGTTOU;

/// Maximum number of terminals of a host.
const MAX: u32 = 4096;
const SIGWINCH: i32 = 28;

/// Request numbers.
mod request {
    pub const GET_SETTINGS: u64 = 0x5401;
    pub const SET_SETTINGS: u64 = 0x5402;
    pub const SET_SETTINGS_DRAINED: u64 = 0x5403;
    pub const SET_SETTINGS_FLUSHED: u64 = 0x5404;
    pub const SEND_BREAK: u64 = 0x5409;
    pub const FLOW: u64 = 0x540a;
    pub const FLUSH: u64 = 0x540b;
    pub const CONTROL: u64 = 0x540e;
    pub const GET_FOREGROUND: u64 = 0x540f;
    pub const SET_FOREGROUND: u64 = 0x5410;
    pub const OUTPUT_LEFT: u64 = 0x5411;
    pub const GET_WINDOW: u64 = 0x5413;
    pub const SET_WINDOW: u64 = 0x5414;
    pub const PACKETS: u64 = 0x5420;
    pub const GIVE_UP: u64 = 0x5422;
    pub const GET_SESSION: u64 = 0x5429;
    pub const SEND_BREAK_POSIX: u64 = 0x5425;
    pub const OPEN_LINE: u64 = 0x5441;
    pub const GET_NUMBER: u64 = 0x8004_5430;
    pub const LOCK: u64 = 0x4004_5431;
    pub const GET_LOCK: u64 = 0x8004_5439;

    /// Whether processes in the background must not make the request.
    pub fn of_the_foreground(request: u64) -> bool {
        matches!(
            request,
            SET_SETTINGS
                | SET_SETTINGS_DRAINED
                | SET_SETTINGS_FLUSHED
                | SEND_BREAK
                | SEND_BREAK_POSIX
                | FLOW
                | FLUSH
                | SET_FOREGROUND
        )
    }
}

impl HostState {
    /// The directory `/dev/pts`.
    fn lines(&self) -> Option<InodeId> {
        self.files.tree.lookup(ROOT, b"/dev/pts", true).ok()
    }

    fn terminal_with_number(&self, number: u32) -> Option<ObjectId> {
        let mut objects = self.objects.iter();
        let found = objects.find(|(_, object)| match object {
            Object::Terminal(terminal) => terminal.number == number,
            _ => false,
        });
        found.map(|(id, _)| ObjectId(id))
    }

    /// Removes the name of a terminal.
    pub fn remove_line(&mut self, number: u32) {
        let line = self.terminal_with_number(number);
        let line = line
            .and_then(|id| terminal(self, id))
            .map(|terminal| terminal.line);
        if let Some(line) = line {
            self.files.remove_pipe(line);
        }
        if let Some(directory) = self.lines() {
            let name = number.to_string();
            if let Some(id) = self.files.tree.remove(directory, name.as_bytes()) {
                self.files.free_if_unused(id);
            }
        }
    }
}

impl Kernel<'_, '_> {
    /// Opens `/dev/ptmx`, which creates a terminal.
    pub fn open_terminal(&mut self) -> Result<Target, Stop> {
        let free = |number: &u32| self.host.terminal_with_number(*number).is_none();
        let number = (0..MAX).find(free).ok_or(Errno::ENOSPC)?;
        let directory = self.host.lines().ok_or(Errno::ENOENT)?;
        let now_ns = self.wall_clock_ns();
        // Each side refers to the other.
        let line = ObjectId(self.host.objects.insert(Object::TerminalLine(ObjectId(0))));
        let terminal = Box::new(Terminal::new(number, line));
        let id = ObjectId(self.host.objects.insert(Object::Terminal(terminal)));
        if let Some(object) = self.host.objects.get_mut(line.0) {
            *object = Object::TerminalLine(id);
        }
        let inode = Inode::new(InodeKind::Device(Device::Line(number)), 0o620, now_ns);
        let name = number.to_string();
        let inode = self.host.files.tree.add(directory, name.as_bytes(), inode);
        self.host.files.set_pipe(inode, line);
        Ok(Target::Object(id))
    }

    /// Opens `/dev/pts/N`.
    pub fn open_line(&mut self, number: u32, flags: OpenFlags) -> Result<Target, Stop> {
        let id = self.host.terminal_with_number(number).ok_or(Errno::EIO)?;
        let (pid, session, group) = {
            let process = self.process();
            (process.pid, process.session, process.group)
        };
        let leads_without = session == pid && self.host.terminal_of_session(session).is_none();
        let terminal = terminal_mut(self.host, id).ok_or(Errno::EIO)?;
        if terminal.is_locked {
            return Err(Errno::EIO.into());
        }
        terminal.add_user();
        if leads_without && terminal.session.is_none() && !flags.has(OpenFlags::TERMINAL) {
            terminal.session = Some(session);
            terminal.foreground = group;
        }
        Ok(Target::Object(terminal.line))
    }

    /// Opens `/dev/tty`: the controlling terminal of the session.
    pub fn open_controlling_terminal(&mut self) -> Result<Target, Stop> {
        let session = self.process().session;
        let id = self.host.terminal_of_session(session).ok_or(Errno::ENXIO)?;
        let terminal = terminal_mut(self.host, id).ok_or(Errno::ENXIO)?;
        terminal.add_user();
        Ok(Target::Object(terminal.line))
    }

    /// Answers an `ioctl` request to a file that is a terminal, whatever else it is. Its settings
    /// cannot be changed.
    pub fn answer_as_terminal(&mut self, request: u64, argument: u64) -> Answer {
        match request {
            request::GET_SETTINGS => {
                self.write_bytes(argument, &Settings::INITIAL.to_bytes())?;
            }
            request::GET_WINDOW => self.write_bytes(argument, &[0; 8])?,
            request::SET_SETTINGS
            | request::SET_SETTINGS_DRAINED
            | request::SET_SETTINGS_FLUSHED => {}
            _ => return Err(Errno::ENOTTY.into()),
        }
        Ok(Value::ZERO)
    }

    /// Handles an `ioctl` request to the master or slave side.
    pub fn terminal_request(
        &mut self,
        id: ObjectId,
        is_holder: bool,
        request: u64,
        argument: u64,
    ) -> Answer {
        if !is_holder && terminal(self.host, id).is_none_or(Terminal::is_hung_up) {
            return match request {
                request::SET_FOREGROUND => Err(Errno::ENOTTY.into()),
                _ => Err(Errno::EIO.into()),
            };
        }
        if request::of_the_foreground(request) {
            let checked = self.check_foreground(id, SIGTTOU);
            checked.map_err(|stop| match stop {
                Stop::Errno(Errno::EIO) if request == request::SET_FOREGROUND => {
                    Errno::ENOTTY.into()
                }
                stop => stop,
            })?;
        }
        let state = terminal(self.host, id).ok_or(Errno::EIO)?;
        match request {
            request::GET_SETTINGS => {
                let bytes = state.settings.to_bytes();
                self.write_bytes(argument, &bytes)?;
            }
            request::SET_SETTINGS
            | request::SET_SETTINGS_DRAINED
            | request::SET_SETTINGS_FLUSHED => {
                let bytes = self.read_bytes(argument, SETTINGS_SIZE as u64)?;
                let settings = Settings::from_bytes(&bytes).ok_or(Errno::EFAULT)?;
                if let Some(terminal) = terminal_mut(self.host, id) {
                    terminal.flush(request == request::SET_SETTINGS_FLUSHED, false);
                    terminal.set(settings);
                }
            }
            request::GET_WINDOW => {
                let bytes = state.window.map(u16::to_le_bytes).concat();
                self.write_bytes(argument, &bytes)?;
            }
            request::SET_WINDOW => self.set_window(id, argument)?,
            request::FLUSH => self.flush_terminal(id, argument)?,
            request::FLOW => self.control_flow(id, argument)?,
            request::PACKETS if is_holder => {
                let value = self.read_value(argument, 4)?;
                let value = self.vm.concretize(value)?;
                if let Some(terminal) = terminal_mut(self.host, id) {
                    terminal.use_packets(value != 0);
                }
            }
            request::SEND_BREAK | request::SEND_BREAK_POSIX => {}
            request::OUTPUT_LEFT => self.write_bytes(argument, &[0; 4])?,
            request::GET_NUMBER | request::LOCK | request::GET_LOCK | request::OPEN_LINE
                if is_holder =>
            {
                return self.holder_request(id, request, argument);
            }
            _ => return self.session_request(id, is_holder, request, argument),
        }
        Ok(Value::ZERO)
    }

    /// `TCFLSH`: drops what was typed, what is shown, or both.
    fn flush_terminal(&mut self, id: ObjectId, argument: u64) -> Result<(), Errno> {
        let (input, output) = match argument {
            0 => (true, false),
            1 => (false, true),
            2 => (true, true),
            _ => return Err(Errno::EINVAL),
        };
        if let Some(terminal) = terminal_mut(self.host, id) {
            terminal.flush(input, output);
        }
        self.host.announce(id, event::READING | event::PRIORITY);
        Ok(())
    }

    /// `TCXONC`: stops or continues the output, or asks the other side to.
    fn control_flow(&mut self, id: ObjectId, argument: u64) -> Result<(), Errno> {
        let terminal = terminal_mut(self.host, id).ok_or(Errno::EIO)?;
        let line = terminal.line;
        match argument {
            0 | 1 => terminal.stop(argument == 0),
            2 | 3 => terminal.send_stop(argument == 2),
            _ => return Err(Errno::EINVAL),
        }
        self.host.announce(line, event::WRITING);
        self.host.announce(id, event::READING | event::PRIORITY);
        Ok(())
    }

    fn set_window(&mut self, id: ObjectId, argument: u64) -> Result<(), Stop> {
        let bytes = self.read_bytes(argument, 8)?;
        let size = |at: usize| u16::from_le_bytes([bytes[2 * at], bytes[2 * at + 1]]);
        let window = [size(0), size(1), size(2), size(3)];
        let terminal = terminal_mut(self.host, id).ok_or(Errno::EIO)?;
        if std::mem::replace(&mut terminal.window, window) != window {
            let foreground = terminal.foreground;
            self.host.send_to_group(foreground, SIGWINCH);
        }
        Ok(())
    }

    fn holder_request(&mut self, id: ObjectId, request: u64, argument: u64) -> Answer {
        let state = terminal(self.host, id).ok_or(Errno::EIO)?;
        let (number, is_locked) = (state.number, state.is_locked);
        match request {
            request::GET_NUMBER => self.write_bytes(argument, &number.to_le_bytes())?,
            request::GET_LOCK => {
                self.write_bytes(argument, &u32::from(is_locked).to_le_bytes())?;
            }
            request::LOCK => {
                let value = self.read_value(argument, 4)?;
                let value = self.vm.concretize(value)?;
                if let Some(terminal) = terminal_mut(self.host, id) {
                    terminal.is_locked = value != 0;
                }
            }
            _ => {
                let fd = self.process().descriptors.free_from(0)?;
                let flags = argument as u32;
                let target = self.open_line(number, OpenFlags(flags))?;
                self.install(fd, Description::new(target, flags & !OpenFlags::TERMINAL));
                return Ok(Value::concrete(fd as u64));
            }
        }
        Ok(Value::ZERO)
    }

    /// Handles requests about sessions and process groups.
    fn session_request(
        &mut self,
        id: ObjectId,
        is_holder: bool,
        request: u64,
        argument: u64,
    ) -> Answer {
        let (pid, session, group) = {
            let process = self.process();
            (process.pid, process.session, process.group)
        };
        let state = terminal(self.host, id).ok_or(Errno::EIO)?;
        let (owner, foreground) = (state.session, state.foreground);
        let is_own = owner == Some(session);
        match request {
            request::CONTROL => {
                if is_own && session == pid {
                    return Ok(Value::ZERO);
                }
                if session != pid
                    || self.host.terminal_of_session(session).is_some()
                    || owner.is_some()
                {
                    return Err(Errno::EPERM.into());
                }
                if let Some(terminal) = terminal_mut(self.host, id) {
                    terminal.session = Some(session);
                    terminal.foreground = group;
                }
            }
            request::GIVE_UP if is_own => {
                if session == pid {
                    self.host.give_up_terminal(session, false);
                }
            }
            request::GET_FOREGROUND if is_own || is_holder => {
                self.write_bytes(argument, &foreground.to_le_bytes())?;
            }
            request::GET_SESSION if is_own || is_holder => {
                let session = owner.ok_or(Errno::ENOTTY)?;
                self.write_bytes(argument, &session.to_le_bytes())?;
            }
            request::SET_FOREGROUND if is_own => {
                let value = self.read_value(argument, 4)?;
                let wanted = self.vm.concretize(value)? as u32;
                if wanted as i32 <= 0 {
                    return Err(Errno::EINVAL.into());
                }
                let mut members = self.host.processes.iter();
                let member = members.find(|process| process.group == wanted);
                match member {
                    None => return Err(Errno::ESRCH.into()),
                    Some(member) if member.session != session => return Err(Errno::EPERM.into()),
                    Some(_) => {}
                }
                if let Some(terminal) = terminal_mut(self.host, id) {
                    terminal.foreground = wanted;
                }
            }
            // The caller is not in the terminal's session, or does not use the master side.
            request::GIVE_UP
            | request::GET_FOREGROUND
            | request::GET_SESSION
            | request::SET_FOREGROUND
            | request::PACKETS
            | request::GET_NUMBER
            | request::LOCK
            | request::GET_LOCK
            | request::OPEN_LINE => return Err(Errno::ENOTTY.into()),
            _ => {
                let what = format!("ioctl request {request:#x} of a terminal");
                self.refuse("ioctl", what);
                return Err(Errno::ENOTTY.into());
            }
        }
        Ok(Value::ZERO)
    }
}
