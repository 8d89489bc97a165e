//! The arguments of a call as texts that are the same in all runs: paths, names and numbers. Addresses
//! are left out, because they differ between runs.

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
fn plain_text(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let is_odd = |c: char| c.is_control() || matches!(c, '"' | '\\' | char::REPLACEMENT_CHARACTER);
    let shown = |c: char| if is_odd(c) { '?' } else { c };
    text.chars().map(shown).collect()
}
