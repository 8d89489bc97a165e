// Symbolic digits are parsed as a float by the library's own algorithm.
// build: -O
// run:
// finding: panic 23
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
    let [a, b] = symbolic::<2>();
    if !a.is_ascii_digit() || !b.is_ascii_digit() {
        return;
    }
    let text = [a, b'.', b];
    let value: f64 = std::str::from_utf8(&text).unwrap().parse().unwrap();
    assert!(value != 2.5, "two and a half");
}
