// An index from the input: a panic where it is too large. The message has one, two or three digits.
// build:
// build: -O
// run:
// paths: 4
// finding: panic 21
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
    let [index] = symbolic::<1>();
    let table = [10, 20, 30, 40];
    let value = table[index as usize];
    assert!(value >= 10);
}
