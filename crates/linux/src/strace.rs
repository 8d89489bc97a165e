//! The log of system calls, in the format of strace.

use std::fmt::Write;

use everett_vm::{Buffer, SystemCall, Value};

use crate::errno::Errno;
use crate::kernel::Kernel;
use crate::table::{ArgKind, Row, property};

/// Maximum number of bytes of a buffer or path that the log shows.
const SHOWN: u64 = 32;

impl Kernel<'_, '_> {
    /// Formats the arguments of a call before the call runs.
    pub(crate) fn describe_arguments(&mut self, row: &Row, call: &SystemCall) -> String {
        let mut text = String::new();
        for (at, kind) in row.args.iter().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            let value = call.args[at];
            let shown = match (kind, value.as_concrete()) {
                (_, None) => self.show(value),
                (ArgKind::Int | ArgKind::Symbolic, Some(bits)) => number(bits),
                (ArgKind::Fd, Some(bits)) => (bits as i32).to_string(),
                (ArgKind::Flags | ArgKind::Pointer, Some(0)) => "0".to_owned(),
                (ArgKind::Flags | ArgKind::Pointer, Some(bits)) => format!("{bits:#x}"),
                (ArgKind::Path, Some(address)) => self.string_at(address),
                (ArgKind::Buffer, Some(address)) => {
                    let len = call.args.get(at + 1).and_then(|len| len.as_concrete());
                    match row.has(property::SHOWS_INPUT) {
                        true => self.buffer_at(address, len.unwrap_or(0)),
                        false => format!("{address:#x}"),
                    }
                }
            };
            let _ = write!(text, "{separator}{shown}");
        }
        text
    }

    /// Formats a symbolic value.
    fn show(&self, value: Value) -> String {
        let term = value.term.map(|term| self.vm.arena.display(term));
        term.map_or_else(String::new, |term| format!("<{term}>"))
    }

    fn string_at(&mut self, address: u64) -> String {
        if let Some(guest) = &mut self.guest {
            let mut bytes = Vec::new();
            let mut byte = [0];
            while (bytes.len() as u64) < SHOWN * 8
                && guest.read(address.wrapping_add(bytes.len() as u64), &mut byte)
                && byte[0] != 0
            {
                bytes.push(byte[0]);
            }
            return quoted(&Buffer::with_bytes(&bytes, bytes.len()), bytes.len());
        }
        let object = self.vm.memory.object_at(address, 1);
        let Some(object) = object else {
            return format!("{address:#x}");
        };
        let len = (object.start + object.size - address).min(SHOWN * 8);
        let bytes = object.snapshot(address - object.start, len);
        let end =
            (0..bytes.len()).find(|at| !bytes.has_symbolic(*at, 1) && bytes.bytes()[*at] == 0);
        quoted(&bytes, end.unwrap_or(bytes.len()))
    }

    fn buffer_at(&mut self, address: u64, len: u64) -> String {
        let shown = len.min(SHOWN);
        let bytes = match &mut self.guest {
            Some(guest) => {
                let mut bytes = vec![0; shown as usize];
                let read = guest.read(address, &mut bytes);
                read.then(|| Buffer::with_bytes(&bytes, bytes.len()))
            }
            None => {
                let object = self.vm.memory.object_at(address, shown);
                object.map(|object| object.snapshot(address - object.start, shown))
            }
        };
        match bytes {
            Some(bytes) => {
                let more = if len > SHOWN { "..." } else { "" };
                format!("{}{more}", quoted(&bytes, bytes.len()))
            }
            None => format!("{address:#x}"),
        }
    }

    /// Logs a finished call.
    pub(crate) fn log_call(&mut self, name: &str, arguments: &str, result: Value) {
        let shown = match result.as_concrete() {
            None => self.show(result),
            Some(bits) if (bits as i64) < 0 && (bits as i64) > -4096 => {
                format!("-1 {}", Errno(-(bits as i64) as i32).name())
            }
            Some(bits) => number(bits),
        };
        self.log_line(&format!("{name}({arguments}) = {shown}"));
    }

    /// Logs a line, prefixed with time and thread.
    pub(crate) fn log_line(&mut self, what: &str) {
        let clock = self.host.clock_ns;
        let (seconds, micros) = (clock / 1_000_000_000, clock / 1000 % 1_000_000);
        let tid = self.task().tid;
        let line = format!("{seconds}.{micros:06} [{tid}] {what}");
        if let Some(log) = &mut self.host.log {
            triomphe::Arc::make_mut(log).push(line);
        }
    }
}

/// Formats small numbers in decimal, addresses in hexadecimal.
fn number(bits: u64) -> String {
    let signed = bits as i64;
    if (-4096..1 << 32).contains(&signed) {
        signed.to_string()
    } else {
        format!("{bits:#x}")
    }
}

/// Formats bytes as a C string; symbolic bytes appear as question marks in brackets.
fn quoted(bytes: &Buffer, len: usize) -> String {
    let mut text = String::from("\"");
    for at in 0..len {
        if bytes.has_symbolic(at, 1) {
            text.push_str("<?>");
            continue;
        }
        for shown in std::ascii::escape_default(bytes.bytes()[at]) {
            text.push(char::from(shown));
        }
    }
    text.push('"');
    text
}
