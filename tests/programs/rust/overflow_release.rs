// Arithmetic wraps in release builds.
// build: -O
// run:
// paths: 2
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
    if b != 3 {
        return;
    }
    let product = a * b;
    std::process::exit(i32::from(product == 2));
}
