//! Reads the arguments of a call from the memory of the process that makes it.

use everett_linux::{
    ShownArgument, shown_arguments, shown_arguments_of, shown_arguments_of_function,
};
use nix::unistd::Pid;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Returns the arguments of a libc function; they are in memory at an address.
pub(super) fn of_function_at(pid: Pid, function: &str, address: u64) -> Vec<String> {
    let shown = shown_arguments_of_function(function);
    let mut bytes = [0; 48];
    match memory(pid) {
        Some(memory) if !shown.is_empty() && memory.read_exact_at(&mut bytes, address).is_ok() => {
            let words = bytes.chunks_exact(8);
            let words = words.map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
            texts(&memory, &shown, words)
        }
        _ => Vec::new(),
    }
}

/// Returns the arguments of a system call.
pub(super) fn of_registers(pid: Pid, registers: &libc::user_regs_struct) -> Vec<String> {
    let r = registers;
    let words = [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9];
    let shown = shown_arguments_of(r.orig_rax);
    memory(pid).map_or(Vec::new(), |memory| {
        texts(&memory, &shown, words.into_iter())
    })
}

fn memory(pid: Pid) -> Option<File> {
    File::open(format!("/proc/{pid}/mem")).ok()
}

fn texts(memory: &File, shown: &[ShownArgument], words: impl Iterator<Item = u64>) -> Vec<String> {
    shown_arguments(shown, words, |address, into| {
        memory.read_exact_at(into, address).is_ok()
    })
}
