//! The arguments of a call as texts that are the same in all runs: paths, names and numbers. Addresses
//! are left out, because they differ between runs.

use crate::syscalls::row;
use crate::table::ArgKind;

/// Maximum length of a text; the rest does not count.
const MAX_TEXT: usize = 200;
/// Memory may end behind a text, so a page is the most that can be read at once.
const PAGE: u64 = 4096;

/// What is shown of an argument.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ShownArgument {
    /// The text at an address.
    Text,
    /// A number of 32 bits, with sign.
    Number,
    /// A number of 64 bits.
    Size,
    /// Nothing: an address.
    Address,
}

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

/// Returns arguments as texts. `read` reads memory of the program, and returns whether it exists.
pub fn shown_arguments(
    shown: &[ShownArgument],
    words: impl IntoIterator<Item = u64>,
    mut read: impl FnMut(u64, &mut [u8]) -> bool,
) -> Vec<String> {
    let texts = shown.iter().zip(words).filter_map(|(shown, word)| {
        Some(match shown {
            ShownArgument::Text => text(word, &mut read),
            ShownArgument::Number => (word as i32).to_string(),
            ShownArgument::Size => (word as i64).to_string(),
            ShownArgument::Address => return None,
        })
    });
    texts.collect()
}

/// Returns the text at an address; `NULL` if there is none.
fn text(address: u64, read: &mut impl FnMut(u64, &mut [u8]) -> bool) -> String {
    let mut bytes = [0; MAX_TEXT];
    let mut length = 0;
    while length < MAX_TEXT {
        let Some(from) = address.checked_add(length as u64) else {
            break;
        };
        let end = MAX_TEXT.min(length + (PAGE - from % PAGE) as usize);
        if !read(from, &mut bytes[length..end]) {
            break;
        }
        if let Some(nul) = bytes[length..end].iter().position(|byte| *byte == 0) {
            return plain_text(&bytes[..length + nul]);
        }
        length = end;
    }
    match length {
        0 => "NULL".to_owned(),
        _ => plain_text(&bytes[..length]),
    }
}

/// Returns a text without quotes, backslashes and control characters.
pub fn plain_text(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let is_odd = |c: char| c.is_control() || matches!(c, '"' | '\\' | char::REPLACEMENT_CHARACTER);
    let shown = |c: char| if is_odd(c) { '?' } else { c };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
