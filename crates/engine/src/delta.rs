//! Delta encoding for the spill file: stores a block of bytes as its difference from an earlier
//! block.

/// Granularity in which runs of different bytes are found.
const RUN: usize = 8;

/// A large block that is stored as it is.
pub struct Base {
    /// The offset of the block in the file.
    pub offset: u64,
    /// The bytes of the block.
    pub bytes: Vec<u8>,
}

impl Base {
    /// Encodes a block as its difference from this one: the offset of this one, and for each run of
    /// different bytes its position, its length and the bytes. Returns `None` if that would not be
    /// much shorter.
    pub fn delta(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        if bytes.len() != self.bytes.len() {
            return None;
        }
        let mut delta = self.offset.to_le_bytes().to_vec();
        let mut at = 0;
        while let Some(next) = first_difference(&self.bytes[at..], &bytes[at..]) {
            let start = at + next;
            let pairs = self.bytes[start..]
                .chunks(RUN)
                .zip(bytes[start..].chunks(RUN));
            let run: usize = pairs
                .take_while(|(one, other)| one != other)
                .map(|(_, other)| other.len())
                .sum();
            delta.extend((start as u32).to_le_bytes());
            delta.extend((run as u32).to_le_bytes());
            delta.extend(&bytes[start..start + run]);
            if delta.len() > bytes.len() / 8 {
                return None;
            }
            at = start + run;
        }
        Some(delta)
    }
}

/// Returns the position at which two slices first differ.
fn first_difference(one: &[u8], other: &[u8]) -> Option<usize> {
    const STEP: usize = 256;
    let (mut left, mut right) = (one.chunks(STEP), other.chunks(STEP));
    let chunk = left
        .by_ref()
        .zip(right.by_ref())
        .position(|(a, b)| a != b)?;
    let from = chunk * STEP;
    let mut pairs = one[from..].iter().zip(&other[from..]);
    pairs.position(|(a, b)| a != b).map(|at| from + at)
}

/// Applies a delta, without its first 8 bytes, to its base. Returns `None` if it is damaged.
pub fn apply_delta(base: &mut [u8], mut runs: &[u8]) -> Option<()> {
    while !runs.is_empty() {
        let (start, rest) = runs.split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk()?;
        let [start, len] = [*start, *len].map(|number| u32::from_le_bytes(number) as usize);
        let (bytes, rest) = rest.split_at_checked(len)?;
        let end = start.checked_add(len)?;
        let target = base.get_mut(start..end)?;
        target.copy_from_slice(bytes);
        runs = rest;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_lead_to_the_same_block() {
        let bytes = vec![b'0'; 1000];
        let base = Base { offset: 7, bytes };
        for places in [&[][..], &[0], &[3, 4, 500, 999], &[255, 256, 257]] {
            let mut block = base.bytes.clone();
            places.iter().for_each(|at| block[*at] = b'1');
            let delta = base.delta(&block).expect("it is short");
            let (offset, runs) = delta.split_first_chunk().expect("an offset");
            assert_eq!(u64::from_le_bytes(*offset), 7);
            let mut again = base.bytes.clone();
            apply_delta(&mut again, runs).expect("it is whole");
            assert_eq!(again, block);
        }
        assert!(base.delta(&[b'1'; 1000]).is_none());
        assert!(base.delta(&[b'0'; 999]).is_none());
    }

    #[test]
    fn runs_outside_of_a_block_are_damaged() {
        let mut block = vec![0; 8];
        for runs in [
            &[9, 0, 0, 0, 1, 0, 0, 0, 5][..],
            &[1, 0, 0, 0, 9, 0, 0, 0, 5],
            &[1],
        ] {
            assert!(apply_delta(&mut block, runs).is_none());
        }
    }
}
