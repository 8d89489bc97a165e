// Sorting of symbolic bytes by the library's networks, at the highest level.
// build: -O
// run:
unsafe extern "C" {
    fn everett_make_symbolic(place: *mut u8, size: usize, name: *const u8);
}

fn symbolic<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // SAFETY: the array has that many bytes, and the name ends in a zero.
    unsafe { everett_make_symbolic(bytes.as_mut_ptr(), N, c"input".as_ptr().cast()) };
    bytes
}

pub fn main() {
    let input = symbolic::<3>();
    let mut sorted = input;
    sorted.sort_unstable();
    assert!(sorted[0] <= sorted[1] && sorted[1] <= sorted[2]);
    assert!(input.iter().all(|byte| sorted.contains(byte)));
}
