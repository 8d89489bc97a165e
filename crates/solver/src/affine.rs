//! Maps that are affine over bits: exclusive ors, shifts, rotations and the like.

/// Returns a number of `width` bits whose image is `target`; `None` if there is none. `random`
/// chooses among several.
pub fn preimage(
    width: u32,
    image: impl Fn(u64) -> Option<u64>,
    target: u64,
    random: u64,
) -> Option<u64> {
    let zero = image(0)?;
    // Images of bits by their highest bit, and what they are images of.
    let mut basis = [(0u64, 0u64); 64];
    let mut found = 0;
    for bit in 0..width {
        let (image, from) = reduced(&basis, image(1 << bit)? ^ zero, 1 << bit);
        match image.checked_ilog2() {
            Some(highest) => basis[highest as usize] = (image, from),
            // The image of these bits is that of 0.
            None if random >> bit & 1 == 1 => found ^= from,
            None => {}
        }
    }
    let (left, from) = reduced(&basis, target ^ zero, 0);
    (left == 0).then_some(found ^ from)
}

/// Removes the highest bits of an image that the basis can remove.
fn reduced(basis: &[(u64, u64); 64], mut image: u64, mut from: u64) -> (u64, u64) {
    for highest in (0..64).rev() {
        let (other, of) = basis[highest];
        if image >> highest & 1 == 1 && other != 0 {
            image ^= other;
            from ^= of;
        }
    }
    (image, from)
}

#[cfg(test)]
mod tests {
    use super::preimage;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn preimages_have_the_image(x: u32, shift in 1u32..32, mask: u32, random: u64) {
            let x = u64::from(x);
            let image = |x: u64| Some(x ^ x >> shift);
            let mixed = x ^ x >> shift;
            prop_assert_eq!(preimage(32, image, mixed, random), Some(x));
            let image = |x: u64| Some((x ^ x << shift) & u64::from(mask));
            let mixed = (x ^ x << shift) & u64::from(mask);
            let found = preimage(32, image, mixed, random);
            prop_assert_eq!(found.and_then(image), Some(mixed));
        }
    }

    #[test]
    fn there_is_no_preimage_outside_of_the_image() {
        assert_eq!(preimage(8, |x| Some(x << 1), 1, 0), None);
    }
}
