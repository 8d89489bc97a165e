//! Pseudo-terminals with a line discipline.
//!
//! The master side (`/dev/ptmx`) is an object that holds all state; the slave side (`/dev/pts/N`)
//! is another object that refers to it.

use everett_vm::{Buffer, Value};
use std::collections::VecDeque;

use super::{Object, OpenObject, Operations, event};
use crate::bytes::join;
use crate::errno::Errno;
use crate::files::OpenFlags;
use crate::host::HostState;
use crate::ids::ObjectId;
use crate::kernel::{Kernel, Stop};
use crate::queue::ByteQueue;
use crate::signals::{SIGTTIN, SIGTTOU};
use crate::wait::WaitCondition;

/// Maximum number of output bytes that wait for the master side.
const MAX_OUTPUT: u64 = 65536;
/// Maximum length of one line, and of all pending input.
const MAX_INPUT: u64 = 4095;
/// Size of the kernel's `struct termios`.
pub const SETTINGS_SIZE: usize = 36;

const SIGINT: i32 = 2;
const SIGQUIT: i32 = 3;
const SIGTSTP: i32 = 20;

/// Input, output and local flags of `termios`.
mod flag {
    pub const IGNORE_RETURN: u32 = 0o200;
    pub const RETURN_TO_NEWLINE: u32 = 0o400;
    pub const NEWLINE_TO_RETURN: u32 = 0o100;
    pub const PROCESS: u32 = 0o1;
    pub const NEWLINE_TO_BOTH: u32 = 0o4;
    pub const SIGNALS: u32 = 0o1;
    pub const CANONICAL: u32 = 0o2;
    pub const ECHO: u32 = 0o10;
    pub const ECHO_ERASE: u32 = 0o20;
    pub const ECHO_KILL: u32 = 0o40;
    pub const ECHO_NEWLINE: u32 = 0o100;
    pub const NO_FLUSH: u32 = 0o200;
    pub const ECHO_CONTROL: u32 = 0o1000;
    pub const STOPS_OUTPUT: u32 = 0o400;
    pub const ECHO_KILL_ERASE: u32 = 0o4000;
    pub const EXTENDED: u32 = 0o100_000;
    pub const STOP_AND_START: u32 = 0o2000;
    pub const START_BY_ANY: u32 = 0o4000;
}

/// Indices of the special characters.
mod character {
    pub const INTERRUPT: usize = 0;
    pub const QUIT: usize = 1;
    pub const ERASE: usize = 2;
    pub const KILL: usize = 3;
    pub const END: usize = 4;
    pub const TIME: usize = 5;
    pub const MINIMUM: usize = 6;
    pub const START: usize = 8;
    pub const STOP: usize = 9;
    pub const SUSPEND: usize = 10;
    pub const END_OF_LINE: usize = 11;
    pub const REPRINT: usize = 12;
    pub const ERASE_WORD: usize = 14;
    pub const LITERAL_NEXT: usize = 15;
}

/// Status bits that the master side reads in packet mode (`TIOCPKT`).
mod packet {
    pub const INPUT_FLUSHED: u8 = 1;
    pub const OUTPUT_FLUSHED: u8 = 2;
    pub const STOPPED: u8 = 4;
    pub const STARTED: u8 = 8;
    pub const NO_STOP: u8 = 16;
    pub const DO_STOP: u8 = 32;
}

/// Terminal settings (`struct termios`).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    input: u32,
    output: u32,
    control: u32,
    local: u32,
    discipline: u8,
    characters: [u8; 19],
}

impl Settings {
    /// The settings of a terminal that nobody has changed.
    pub const INITIAL: Settings = Settings {
        input: 0o2400,
        output: 0o5,
        control: 0o277,
        local: 0o105073,
        discipline: 0,
        characters: [
            3, 28, 127, 21, 4, 0, 1, 0, 17, 19, 26, 0, 18, 15, 23, 22, 0, 0, 0,
        ],
    };

    /// Encodes them.
    pub fn to_bytes(self) -> Vec<u8> {
        let flags = [self.input, self.output, self.control, self.local];
        let mut bytes: Vec<u8> = flags.iter().flat_map(|flag| flag.to_le_bytes()).collect();
        bytes.push(self.discipline);
        bytes.extend_from_slice(&self.characters);
        bytes
    }

    /// Decodes them.
    pub fn from_bytes(bytes: &[u8]) -> Option<Settings> {
        let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(4 * at..)?.first_chunk()?));
        Some(Settings {
            input: word(0)?,
            output: word(1)?,
            control: word(2)?,
            local: word(3)?,
            discipline: *bytes.get(16)?,
            characters: *bytes.get(17..)?.first_chunk()?,
        })
    }

    fn is_canonical(&self) -> bool {
        self.local & flag::CANONICAL != 0
    }

    fn is(&self, byte: u8, which: usize) -> bool {
        byte != 0 && self.characters[which] == byte
    }

    /// Like `is`, for characters that only count with `IEXTEN`.
    fn is_extended(&self, byte: u8, which: usize) -> bool {
        self.local & flag::EXTENDED != 0 && self.is(byte, which)
    }

    /// Minimum number of bytes and the time in tenths of a second of a read that is not canonical.
    fn minimum_and_time(&self) -> (u64, u64) {
        let [minimum, time] = [character::MINIMUM, character::TIME].map(|at| self.characters[at]);
        (minimum.into(), time.into())
    }

    /// Whether the usual characters stop and start the output.
    fn has_usual_stop(&self) -> bool {
        self.input & flag::STOP_AND_START != 0
            && self.characters[character::START] == 17
            && self.characters[character::STOP] == 19
    }
}

/// A pseudo-terminal.
#[derive(Clone, Debug)]
pub struct Terminal {
    /// The N of `/dev/pts/N`.
    pub number: u32,
    /// The slave side.
    pub line: ObjectId,
    /// The slave side is locked (`unlockpt`).
    pub is_locked: bool,
    /// Terminal settings.
    pub settings: Settings,
    /// Window size: rows, columns, and the same in pixels.
    pub window: [u16; 4],
    /// The session that it controls.
    pub session: Option<u32>,
    /// The foreground process group.
    pub foreground: u32,
    /// The master side is open.
    is_held: bool,
    /// Open file descriptions of the slave side.
    users: u32,
    /// The slave side was opened at least once.
    was_used: bool,
    /// Input that can be read.
    input: ByteQueue,
    /// Lengths of the lines in it; the last may be incomplete.
    lines: VecDeque<u64>,
    /// The line being edited.
    typed: Vec<Value>,
    /// The next character of it has no special meaning.
    is_literal: bool,
    /// Output.
    output: ByteQueue,
    /// Output of the slave side has to wait.
    is_stopped: bool,
    /// The status that the master side has not read, if it is in packet mode.
    packets: Option<u8>,
}

impl Terminal {
    /// A new pseudo-terminal whose slave side is not open.
    pub fn new(number: u32, line: ObjectId) -> Terminal {
        Terminal {
            number,
            line,
            is_locked: true,
            settings: Settings::INITIAL,
            window: [0; 4],
            session: None,
            foreground: 0,
            is_held: true,
            users: 0,
            was_used: false,
            input: ByteQueue::default(),
            lines: VecDeque::new(),
            typed: Vec::new(),
            is_literal: false,
            output: ByteQueue::default(),
            is_stopped: false,
            packets: None,
        }
    }

    /// Whether the master side is closed.
    pub fn is_hung_up(&self) -> bool {
        !self.is_held
    }

    /// Records that the slave side is opened.
    pub fn add_user(&mut self) {
        self.users += 1;
        self.was_used = true;
    }

    /// Changes the settings: pending input becomes readable, or a separate line.
    pub fn set(&mut self, settings: Settings) {
        if self.settings.is_canonical() != settings.is_canonical() {
            let typed = std::mem::take(&mut self.typed);
            self.accept(&typed);
        }
        let has = settings.has_usual_stop();
        if self.settings.has_usual_stop() != has {
            self.report([packet::NO_STOP, packet::DO_STOP][usize::from(has)]);
        }
        let stops = flag::STOP_AND_START;
        if self.settings.input & stops != 0 && settings.input & stops == 0 {
            self.stop(false);
        }
        self.settings = settings;
    }

    /// Stops or restarts the output of the slave side.
    pub fn stop(&mut self, is_stopped: bool) {
        if self.is_stopped != is_stopped {
            self.is_stopped = is_stopped;
            let (new, old) = match is_stopped {
                true => (packet::STOPPED, packet::STARTED),
                false => (packet::STARTED, packet::STOPPED),
            };
            self.packets = self.packets.map(|status| status & !old);
            self.report(new);
        }
    }

    /// Sends the other side the character that stops or starts its output.
    pub fn send_stop(&mut self, stops: bool) {
        let which = [character::START, character::STOP][usize::from(stops)];
        let byte = self.settings.characters[which];
        if byte != 0 {
            self.print(&text(&[byte]));
        }
    }

    /// Turns packet mode on or off.
    pub fn use_packets(&mut self, is_on: bool) {
        self.packets = is_on.then(|| self.packets.unwrap_or_default());
    }

    fn report(&mut self, status: u8) {
        self.packets = self.packets.map(|old| old | status);
    }

    fn has_status(&self) -> bool {
        self.packets.is_some_and(|status| status != 0)
    }

    /// Discards unread input or output.
    pub fn flush(&mut self, input: bool, output: bool) {
        if input {
            self.input = ByteQueue::default();
            self.lines.clear();
            self.typed.clear();
            self.report(packet::INPUT_FLUSHED);
        }
        if output {
            self.output = ByteQueue::default();
            self.report(packet::OUTPUT_FLUSHED);
        }
    }

    /// Number of bytes that a read of the slave side returns.
    pub fn readable(&self) -> u64 {
        self.input.len()
    }

    fn has_input(&self) -> bool {
        if self.settings.is_canonical() {
            return !self.lines.is_empty();
        }
        let (minimum, time) = self.settings.minimum_and_time();
        let minimum = if time == 0 { minimum.max(1) } else { 1 };
        self.input.len() >= minimum
    }

    fn accept(&mut self, bytes: &[Value]) {
        self.input.append(&[buffer(bytes)], bytes.len() as u64);
        if !bytes.is_empty() || self.settings.is_canonical() {
            self.lines.push_back(bytes.len() as u64);
        }
    }

    fn take_input(&mut self, wanted: u64) -> Buffer {
        if !self.settings.is_canonical() {
            self.lines.clear();
            return self.input.take(wanted);
        }
        let Some(line) = self.lines.front_mut() else {
            return Buffer::zeroed(0);
        };
        let len = wanted.min(*line);
        *line -= len;
        if *line == 0 {
            self.lines.pop_front();
        }
        self.input.take(len)
    }

    /// Outputs bytes, processed as the settings require.
    fn print(&mut self, bytes: &[Value]) {
        let mut printed = Vec::with_capacity(bytes.len());
        let both = flag::PROCESS | flag::NEWLINE_TO_BOTH;
        for byte in bytes {
            if self.settings.output & both == both && is_byte(*byte, b'\n') {
                printed.push(Value::concrete(u64::from(b'\r')));
            }
            printed.push(*byte);
        }
        self.output
            .append(&[buffer(&printed)], printed.len() as u64);
    }

    fn echo(&mut self, byte: Value) {
        let local = self.settings.local;
        let is_newline = is_byte(byte, b'\n');
        let shows_newline =
            is_newline && local & flag::CANONICAL != 0 && local & flag::ECHO_NEWLINE != 0;
        if local & flag::ECHO == 0 && !shows_newline {
            return;
        }
        match byte.as_concrete() {
            Some(bits @ (0..=31 | 127))
                if local & flag::ECHO_CONTROL != 0 && bits != 9 && bits != 10 =>
            {
                self.print(&text(&[b'^', bits as u8 ^ 0x40]));
            }
            _ => self.print(&[byte]),
        }
    }

    /// Erases the last character of the line being edited.
    fn erase(&mut self) -> bool {
        let Some(gone) = self.typed.pop() else {
            return false;
        };
        let local = self.settings.local;
        if local & flag::ECHO != 0 && local & flag::ECHO_ERASE != 0 {
            let is_control = matches!(gone.as_concrete(), Some(0..=31 | 127));
            let columns = if is_control { 2 } else { 1 };
            for _ in 0..columns {
                self.print(&text(b"\x08 \x08"));
            }
        }
        true
    }

    /// Processes an input character. Returns the signal that it sends.
    fn type_byte(&mut self, byte: Value) -> Option<i32> {
        let settings = self.settings;
        let Some(bits) = byte.as_concrete() else {
            self.insert(byte);
            return None;
        };
        let mut bits = bits as u8;
        if std::mem::take(&mut self.is_literal) {
            match bits {
                b'\n' if settings.local & flag::ECHO_CONTROL != 0 => {
                    self.print(&text(b"^J"));
                    self.typed.push(byte);
                }
                _ => self.insert(byte),
            }
            return None;
        }
        if settings.input & flag::STOP_AND_START != 0 {
            for (which, stops) in [(character::START, false), (character::STOP, true)] {
                if settings.is(bits, which) {
                    self.stop(stops);
                    return None;
                }
            }
            if settings.input & flag::START_BY_ANY != 0 {
                self.stop(false);
            }
        }
        if settings.local & flag::SIGNALS != 0
            && let Some(signal) = signal_of(&settings, bits)
        {
            if settings.local & flag::NO_FLUSH == 0 {
                self.flush(true, true);
            }
            self.echo(Value::concrete(u64::from(bits)));
            return Some(signal);
        }
        match bits {
            b'\r' if settings.input & flag::IGNORE_RETURN != 0 => return None,
            b'\r' if settings.input & flag::RETURN_TO_NEWLINE != 0 => bits = b'\n',
            b'\n' if settings.input & flag::NEWLINE_TO_RETURN != 0 => bits = b'\r',
            _ => {}
        }
        let byte = Value::concrete(u64::from(bits));
        if !settings.is_canonical() {
            self.insert(byte);
        } else if settings.is(bits, character::ERASE) {
            self.erase();
        } else if settings.is(bits, character::KILL) {
            self.kill_line(byte);
        } else if settings.is_extended(bits, character::ERASE_WORD) {
            self.erase_word();
        } else if settings.is_extended(bits, character::LITERAL_NEXT) {
            self.is_literal = true;
            if settings.local & flag::ECHO != 0 && settings.local & flag::ECHO_CONTROL != 0 {
                self.print(&text(b"^\x08"));
            }
        } else if settings.is_extended(bits, character::REPRINT) && settings.local & flag::ECHO != 0
        {
            self.echo(byte);
            self.print(&text(b"\n"));
            for typed in self.typed.clone() {
                self.echo(typed);
            }
        } else if settings.is(bits, character::END) {
            let typed = std::mem::take(&mut self.typed);
            self.accept(&typed);
        } else if bits == b'\n' || settings.is(bits, character::END_OF_LINE) {
            self.echo(byte);
            let mut typed = std::mem::take(&mut self.typed);
            typed.push(byte);
            self.accept(&typed);
        } else {
            self.insert(byte);
        }
        None
    }

    /// Erases the last word of the line being edited, and what is behind it.
    fn erase_word(&mut self) {
        let mut in_word = false;
        while let Some(last) = self.typed.last() {
            let is_part = last
                .as_concrete()
                .is_none_or(|bits| (bits as u8).is_ascii_alphanumeric() || bits as u8 == b'_');
            if in_word && !is_part {
                break;
            }
            in_word |= is_part;
            self.erase();
        }
    }

    fn kill_line(&mut self, byte: Value) {
        let local = self.settings.local;
        if local & flag::ECHO_KILL_ERASE != 0 && local & flag::ECHO_ERASE != 0 {
            while self.erase() {}
            return;
        }
        self.typed.clear();
        self.echo(byte);
        if local & flag::ECHO_KILL != 0 {
            self.print(&text(b"\n"));
        }
    }

    fn insert(&mut self, byte: Value) {
        if self.input.len() + self.typed.len() as u64 >= MAX_INPUT {
            return;
        }
        self.echo(byte);
        if self.settings.is_canonical() {
            self.typed.push(byte);
        } else {
            self.accept(&[byte]);
        }
    }
}

fn signal_of(settings: &Settings, byte: u8) -> Option<i32> {
    let signals = [
        (character::INTERRUPT, SIGINT),
        (character::QUIT, SIGQUIT),
        (character::SUSPEND, SIGTSTP),
    ];
    let found = signals.iter().find(|(which, _)| settings.is(byte, *which));
    found.map(|(_, signal)| *signal)
}

fn is_byte(value: Value, byte: u8) -> bool {
    value.as_concrete() == Some(u64::from(byte))
}

fn text(bytes: &[u8]) -> Vec<Value> {
    let values = bytes.iter().map(|byte| Value::concrete(u64::from(*byte)));
    values.collect()
}

fn buffer(bytes: &[Value]) -> Buffer {
    let mut buffer = Buffer::zeroed(bytes.len());
    for (at, byte) in bytes.iter().enumerate() {
        buffer.store(at, 1, *byte);
    }
    buffer
}

/// Operations of the master side.
pub const OPERATIONS: Operations = Operations {
    mode: 0o020_600,
    read: read_output,
    write: type_input,
    readiness: holder_readiness,
    close: close_holder,
    ioctl: |kernel, open, request, argument| {
        kernel.terminal_request(open.object, true, request, argument)
    },
    available: |host, open| {
        terminal(host, open.object).map(|terminal| {
            let status = u64::from(terminal.packets.is_some());
            terminal.output.len() + status
        })
    },
    for_each_term: |object, visit| {
        if let Object::Terminal(terminal) = object {
            terminal.input.for_each_term(visit);
            terminal.output.for_each_term(visit);
            let typed = terminal.typed.iter().filter_map(|byte| byte.term);
            typed.for_each(|term| visit.term(term));
        }
    },
    ..Operations::CLOSED
};

/// Operations of the slave side.
pub const LINE_OPERATIONS: Operations = Operations {
    mode: 0o020_620,
    read: read_input,
    write: print_output,
    readiness: line_readiness,
    close: close_line,
    ioctl: |kernel, open, request, argument| {
        let id = holder(kernel.host, open.object).ok_or(Errno::EIO)?;
        kernel.terminal_request(id, false, request, argument)
    },
    available: |host, open| {
        let terminal = terminal(host, holder(host, open.object)?)?;
        match terminal.settings.is_canonical() {
            true => Some(terminal.lines.iter().sum()),
            false => Some(terminal.readable()),
        }
    },
    ..Operations::CLOSED
};

/// The terminal with this id, if it is one.
pub fn terminal(host: &HostState, id: ObjectId) -> Option<&Terminal> {
    match host.objects.get(id.0)? {
        Object::Terminal(terminal) => Some(terminal),
        _ => None,
    }
}

/// The terminal with this id, for changing it.
pub fn terminal_mut(host: &mut HostState, id: ObjectId) -> Option<&mut Terminal> {
    match host.objects.get_mut(id.0)? {
        Object::Terminal(terminal) => Some(terminal),
        _ => None,
    }
}

/// The master side of a slave side.
pub fn holder(host: &HostState, line: ObjectId) -> Option<ObjectId> {
    match host.objects.get(line.0)? {
        Object::TerminalLine(terminal) => Some(*terminal),
        _ => None,
    }
}

fn read_output(
    kernel: &mut Kernel<'_, '_>,
    open: OpenObject<'_>,
    wanted: u64,
) -> Result<Buffer, Stop> {
    let terminal = terminal_mut(kernel.host, open.object).ok_or(Errno::EBADF)?;
    if wanted == 0 {
        return Ok(Buffer::zeroed(0));
    }
    if let Some(status @ 1..) = terminal.packets {
        terminal.packets = Some(0);
        return Ok(Buffer::with_bytes(&[status], 1));
    }
    if terminal.output.is_empty() {
        if terminal.was_used && terminal.users == 0 {
            return Err(Errno::EIO.into());
        }
        return Err(kernel.wait_for(open, event::IN, "read from a terminal"));
    }
    let is_packet = terminal.packets.is_some();
    let wanted = wanted - u64::from(is_packet);
    let (line, bytes) = (terminal.line, terminal.output.take(wanted));
    kernel.host.announce(line, event::WRITING);
    Ok(match is_packet {
        true => join(vec![Buffer::zeroed(1), bytes]),
        false => bytes,
    })
}

fn type_input(
    kernel: &mut Kernel<'_, '_>,
    open: OpenObject<'_>,
    parts: &[Buffer],
) -> Result<u64, Stop> {
    let mut typed = Vec::new();
    for part in parts {
        typed.extend((0..part.len()).map(|at| part.byte(kernel.vm.arena, at)));
    }
    let terminal = terminal_mut(kernel.host, open.object).ok_or(Errno::EBADF)?;
    let mut signals = Vec::new();
    for byte in &typed {
        signals.extend(terminal.type_byte(*byte));
    }
    let (line, foreground) = (terminal.line, terminal.foreground);
    for signal in signals {
        kernel.host.send_to_group(foreground, signal);
    }
    kernel.host.announce(line, event::READING | event::WRITING);
    kernel
        .host
        .announce(open.object, event::READING | event::PRIORITY);
    Ok(typed.len() as u64)
}

fn holder_readiness(host: &HostState, open: OpenObject<'_>) -> u16 {
    let Some(terminal) = terminal(host, open.object) else {
        return event::INVALID;
    };
    let mut events = event::WRITING;
    if !terminal.output.is_empty() || terminal.has_status() {
        events |= event::READING;
    }
    if terminal.has_status() {
        events |= event::PRIORITY;
    }
    if terminal.was_used && terminal.users == 0 {
        events |= event::HANG_UP;
    }
    events
}

fn close_holder(host: &mut HostState, open: OpenObject<'_>) {
    let Some(terminal) = terminal_mut(host, open.object) else {
        return;
    };
    terminal.is_held = false;
    let (line, users) = (terminal.line, terminal.users);
    let number = terminal.number;
    host.remove_line(number);
    host.hang_up(open.object);
    if users == 0 {
        host.objects.remove(line.0);
        host.objects.remove(open.object.0);
        return;
    }
    host.announce(line, event::ALL);
}

fn read_input(
    kernel: &mut Kernel<'_, '_>,
    open: OpenObject<'_>,
    wanted: u64,
) -> Result<Buffer, Stop> {
    let id = holder(kernel.host, open.object).ok_or(Errno::EIO)?;
    kernel.check_foreground(id, SIGTTIN)?;
    let terminal = terminal_mut(kernel.host, id).ok_or(Errno::EIO)?;
    if wanted == 0 {
        return Ok(Buffer::zeroed(0));
    }
    let (minimum, time) = terminal.settings.minimum_and_time();
    let there = terminal.input.len();
    if terminal.settings.is_canonical() {
        if terminal.has_input() {
            return Ok(terminal.take_input(wanted));
        }
    } else if there >= wanted.min(minimum.max(1)) || !terminal.is_held {
        return Ok(terminal.take_input(wanted));
    }
    let is_canonical = terminal.settings.is_canonical();
    if !terminal.is_held {
        return Ok(Buffer::zeroed(0));
    }
    if !is_canonical && minimum == 0 && time == 0 {
        return Ok(Buffer::zeroed(0));
    }
    let is_timed = !is_canonical && time > 0 && (minimum == 0 || there > 0);
    if !is_timed || open.description.flags.has(OpenFlags::NONBLOCK) {
        let left = !is_canonical && there > 0 && open.description.flags.has(OpenFlags::NONBLOCK);
        return match terminal_mut(kernel.host, id) {
            Some(terminal) if left => Ok(terminal.take_input(wanted)),
            _ => Err(kernel.wait_for(open, event::IN, "read from a terminal")),
        };
    }
    // The time starts with the first byte if more than one is wanted.
    const TENTH_NS: u64 = 100_000_000;
    let until_ns = kernel.host.clock_ns.saturating_add(time * TENTH_NS);
    let condition = match minimum {
        0 => WaitCondition::Ready(vec![(open.id, event::IN)]),
        _ => WaitCondition::Never,
    };
    kernel.wait(condition, Some(until_ns), "read from a terminal")?;
    let terminal = terminal_mut(kernel.host, id).ok_or(Errno::EIO)?;
    Ok(terminal.take_input(wanted))
}

fn print_output(
    kernel: &mut Kernel<'_, '_>,
    open: OpenObject<'_>,
    parts: &[Buffer],
) -> Result<u64, Stop> {
    let id = holder(kernel.host, open.object).ok_or(Errno::EIO)?;
    let local = terminal(kernel.host, id).map_or(0, |terminal| terminal.settings.local);
    if local & flag::STOPS_OUTPUT != 0 {
        kernel.check_foreground(id, SIGTTOU)?;
    }
    let mut printed = Vec::new();
    for part in parts {
        printed.extend((0..part.len()).map(|at| part.byte(kernel.vm.arena, at)));
    }
    let terminal = terminal_mut(kernel.host, id).ok_or(Errno::EIO)?;
    if !terminal.is_held {
        return Err(Errno::EIO.into());
    }
    let room = MAX_OUTPUT.saturating_sub(terminal.output.len()) as usize;
    if (room == 0 || terminal.is_stopped) && !printed.is_empty() {
        return Err(kernel.wait_for(open, event::OUT, "write to a terminal"));
    }
    printed.truncate(room);
    terminal.print(&printed);
    kernel.host.announce(id, event::READING);
    Ok(printed.len() as u64)
}

fn line_readiness(host: &HostState, open: OpenObject<'_>) -> u16 {
    let terminal = holder(host, open.object).and_then(|id| terminal(host, id));
    let Some(terminal) = terminal else {
        return event::INVALID;
    };
    let mut events = 0;
    if terminal.has_input() {
        events |= event::READING;
    }
    if terminal.output.len() < MAX_OUTPUT && !terminal.is_stopped {
        events |= event::WRITING;
    }
    if !terminal.is_held {
        events |= event::READING | event::ERROR | event::HANG_UP;
    }
    events
}

fn close_line(host: &mut HostState, open: OpenObject<'_>) {
    let Some(id) = holder(host, open.object) else {
        return;
    };
    let Some(terminal) = terminal_mut(host, id) else {
        return;
    };
    terminal.users = terminal.users.saturating_sub(1);
    if terminal.users > 0 {
        return;
    }
    if terminal.is_held {
        host.announce(id, event::ALL);
    } else {
        host.objects.remove(open.object.0);
        host.objects.remove(id.0);
    }
}
