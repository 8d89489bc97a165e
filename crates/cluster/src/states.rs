//! Serialises the states of a job: pending traces of a program as a tree (`tree`), worlds as their
//! stored states. The input of the reader is untrusted.

use everett::{States, Worlds};
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

use crate::error::{Error, Result};
use crate::tree::{pack, sort, unpack};

const WORLDS: &[u8] = b"everett worlds 1\n";
const LEVEL: u8 = 6;
/// Maximum size of uncompressed worlds in bytes.
const MOST_BYTES: usize = 256 << 20;

/// Serialises states.
pub fn pack_states(states: &States) -> Result<Vec<u8>> {
    match states {
        States::Program(states) => Ok(pack(states)),
        States::Worlds(worlds) => {
            let text = serde_json::to_vec(worlds).map_err(everett::Error::from)?;
            let mut packed = WORLDS.to_vec();
            packed.extend(compress_to_vec_zlib(&text, LEVEL));
            Ok(packed)
        }
    }
}

/// Reads states from untrusted bytes.
pub fn unpack_states(packed: &[u8]) -> Result<States> {
    let Some(worlds) = packed.strip_prefix(WORLDS) else {
        return Ok(States::Program(unpack(packed)?));
    };
    let text = decompress_to_vec_zlib_with_limit(worlds, MOST_BYTES);
    let text = text.map_err(|_| Error::damaged("worlds that cannot be decompressed"))?;
    let worlds: Worlds = serde_json::from_slice(&text).map_err(Error::damaged)?;
    Ok(States::Worlds(Box::new(worlds)))
}

/// Sorts states into the order that serialises to the fewest bytes.
pub(crate) fn sort_states(states: &mut States) {
    if let States::Program(states) = states {
        sort(states);
    }
}

/// Divides the remaining states of a job into at most this number of parts; worlds are already in
/// parts.
pub(crate) fn divide(left: Vec<States>, most: usize) -> Vec<States> {
    let mut parts = Vec::new();
    for states in left {
        match states {
            States::Program(mut states) => {
                sort(&mut states);
                let size = states.len().div_ceil(most).max(1);
                let chunks = states.chunks(size);
                parts.extend(chunks.map(|part| States::Program(part.to_vec())));
            }
            worlds => parts.push(worlds),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_worlds_are_refused() {
        let packed = pack_states(&States::beginning(true)).expect("bytes");
        assert!(matches!(unpack_states(&packed), Ok(States::Worlds(_))));
        for end in 0..packed.len() {
            assert!(unpack_states(&packed[..end]).is_err(), "{end}");
        }
        let mut other = WORLDS.to_vec();
        other.extend(compress_to_vec_zlib(b"{\"part\": 3}", 1));
        assert!(unpack_states(&other).is_err());
    }

    #[test]
    fn little_does_not_become_much() {
        let much = vec![b' '; MOST_BYTES + 1];
        let mut packed = WORLDS.to_vec();
        packed.extend(compress_to_vec_zlib(&much, 9));
        assert!(packed.len() < 1 << 20 && unpack_states(&packed).is_err());
    }
}
