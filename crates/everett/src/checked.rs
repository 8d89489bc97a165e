//! JSON files with a checksum as their last field, so that damage is detected.

use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes an object with an additional last field, the checksum of everything before it.
pub(crate) fn write_checked(path: &Path, object: &impl Serialize) -> io::Result<()> {
    let mut file = Checked {
        to: BufWriter::new(File::create(path)?),
        hash: FNV_START,
        last: None,
    };
    serde_json::to_writer(&mut file, object)?;
    // The last byte, which is held back, is the closing brace.
    write!(file.to, "{CHECK}{:016x}{CHECK_END}", file.hash)?;
    file.to.into_inner()?;
    Ok(())
}

const CHECK: &str = r#","check":""#;
const CHECK_END: &str = "\"}";
/// Number of digits of the checksum.
const CHECK_DIGITS: usize = 16;
/// The initial value of FNV-1a.
const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// A writer that passes on all bytes except the last, and computes their checksum.
struct Checked<W> {
    to: W,
    hash: u64,
    last: Option<u8>,
}

impl<W: Write> Write for Checked<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some((last, first)) = bytes.split_last() else {
            return Ok(0);
        };
        let before = self.last.replace(*last);
        for part in [before.as_slice(), first] {
            self.to.write_all(part)?;
            self.hash = fnv(self.hash, part);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Returns whether a file has the checksum that it was written with, or none.
pub(crate) fn is_as_written(text: &[u8]) -> bool {
    let check = || {
        let text = text.strip_suffix(CHECK_END.as_bytes())?;
        let (text, digits) = text.split_at_checked(text.len().checked_sub(CHECK_DIGITS)?)?;
        Some((text.strip_suffix(CHECK.as_bytes())?, digits))
    };
    check().is_none_or(|(text, digits)| {
        let hash = format!("{:016x}", fnv(FNV_START, text));
        hash.as_bytes() == digits
    })
}
