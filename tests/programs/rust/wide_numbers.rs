// 128-bit arithmetic on symbolic numbers: a product that must not overflow, and its quotient.
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
    let bytes = symbolic::<4>();
    let a = u128::from(u16::from_le_bytes([bytes[0], bytes[1]])) << 60;
    let b = u128::from(bytes[2]) + 1;
    let product = a.checked_mul(b).expect("it fits");
    if product == 0x1234 << 64 {
        std::process::exit(1);
    }
}
