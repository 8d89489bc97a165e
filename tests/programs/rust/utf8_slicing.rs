// A string is cut in the middle of a character for some inputs.
// build: -O
// run:
// paths: 4
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
    let [at] = symbolic::<1>();
    let text = "aé→";
    if at > 3 {
        return;
    }
    let head = &text[..at as usize];
    std::process::exit(head.len() as i32);
}
