//! Reads the arguments of a call from the memory of the process that makes it.

use nix::unistd::Pid;
use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::injector::arguments::{Kind, of_function, of_system_call, plain};

/// Maximum length of a text argument; the rest does not count.
const MOST_BYTES: usize = 200;

/// Returns the arguments of a libc function; they are in memory at an address.
pub(super) fn of_function_at(pid: Pid, function: &str, address: u64) -> Vec<String> {
    let kinds = of_function(function);
    let mut bytes = [0; 48];
    match memory(pid) {
        Some(memory) if !kinds.is_empty() && memory.read_exact_at(&mut bytes, address).is_ok() => {
            let words = bytes.chunks_exact(8);
            let words = words.map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
            texts(&memory, &kinds, words)
        }
        _ => Vec::new(),
    }
}

/// Returns the arguments of a system call.
pub(super) fn of_registers(pid: Pid, registers: &libc::user_regs_struct) -> Vec<String> {
    let r = registers;
    let words = [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9];
    let kinds = of_system_call(r.orig_rax);
    memory(pid).map_or(Vec::new(), |memory| {
        texts(&memory, &kinds, words.into_iter())
    })
}

fn memory(pid: Pid) -> Option<File> {
    File::open(format!("/proc/{pid}/mem")).ok()
}

fn texts(memory: &File, kinds: &[Kind], words: impl Iterator<Item = u64>) -> Vec<String> {
    let shown = kinds.iter().zip(words).filter_map(|(kind, word)| {
        Some(match kind {
            Kind::Text => text(memory, word),
            Kind::Number => (word as i32).to_string(),
            Kind::Size => (word as i64).to_string(),
            Kind::Address => return None,
        })
    });
    shown.collect()
}

/// Returns the text at an address; `NULL` if there is none.
fn text(memory: &File, address: u64) -> String {
    let mut bytes = [0; MOST_BYTES];
    let mut length = 0;
    while length < MOST_BYTES {
        // Memory may end behind the text, so a page is the most that can be read at once.
        let page = 4096 - (address as usize + length) % 4096;
        let end = MOST_BYTES.min(length + page);
        let Ok(read) = memory.read_at(&mut bytes[length..end], address + length as u64) else {
            break;
        };
        let part = &bytes[length..length + read];
        if let Some(nul) = part.iter().position(|byte| *byte == 0) {
            return plain(&bytes[..length + nul]);
        }
        if read == 0 {
            break;
        }
        length += read;
    }
    match length {
        0 => "NULL".to_owned(),
        _ => plain(&bytes[..length]),
    }
}
