// A vector of symbolic length, filled and summed in 128 bits.
// build: -O
// run:
// paths: 5
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
    let [length] = symbolic::<1>();
    let mut numbers: Vec<u128> = Vec::new();
    for n in 0..length.min(4) {
        numbers.push(u128::from(n) << 100);
    }
    let sum: u128 = numbers.iter().sum();
    std::process::exit((sum >> 100) as i32);
}
