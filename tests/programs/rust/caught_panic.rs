// A panic that is caught is no finding; the program goes on.
// build:
// build: -O
// run: --panics main
// paths: 3 2
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
    let [byte] = symbolic::<1>();
    let result = std::panic::catch_unwind(|| {
        let _guard = vec![byte; 3];
        match byte {
            0 => panic!("zero"),
            1..=9 => 5,
            _ => 6,
        }
    });
    std::process::exit(result.unwrap_or(4));
}
