//! The arguments of system calls, by which a call is told from others with the same stack.

use everett_vm::ShownArgument;

use crate::syscalls::row;
use crate::table::ArgKind;

/// Returns what is shown of the arguments of a system call.
pub fn shown_arguments_of(number: u64) -> Vec<ShownArgument> {
    let shown = |argument: &ArgKind| match argument {
        ArgKind::Path => ShownArgument::Text,
        ArgKind::Fd => ShownArgument::Number,
        ArgKind::Int | ArgKind::Flags | ArgKind::Symbolic => ShownArgument::Size,
        ArgKind::Pointer | ArgKind::Buffer => ShownArgument::Address,
    };
    row(number).map_or(Vec::new(), |row| row.args.iter().map(shown).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use everett_vm::shown_arguments;

    const PAGE: u64 = 4096;
    const MAX_TEXT: usize = 200;

    #[test]
    fn arguments_are_texts_and_numbers_without_addresses() {
        // A text across the end of a page, and one that ends with the memory.
        let memory = |address: u64, into: &mut [u8]| {
            let bytes = b"/etc/\"x\"\n\xff\0";
            let last = address.saturating_add(into.len() as u64);
            if address < 2 * PAGE - 4 || last > 3 * PAGE {
                return false;
            }
            for (at, byte) in (address - (2 * PAGE - 4)..).zip(into) {
                *byte = bytes.get(at as usize).copied().unwrap_or(b'y');
            }
            true
        };
        let shown = shown_arguments_of(257);
        let words = |path| [(-100_i64) as u64, path, 0o2101, 0, 0, 0];
        let of = |path| shown_arguments(&shown, words(path), memory);
        assert_eq!(of(2 * PAGE - 4), ["-100", "/etc/?x???", "1089", "0"]);
        assert_eq!(of(8)[1], "NULL");
        assert_eq!(of(u64::MAX)[1], "NULL");
        assert_eq!(of(3 * PAGE - 3)[1], "yyy");
        assert_eq!(of(2 * PAGE + 100)[1], "y".repeat(MAX_TEXT));
        // The address of the buffer is left out.
        assert_eq!(
            shown_arguments(&shown_arguments_of(0), [3, 8, 5], memory),
            ["3", "5"]
        );
        assert!(shown_arguments_of(9999).is_empty());
    }
}
