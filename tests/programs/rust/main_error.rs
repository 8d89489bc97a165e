// A main function that returns an error exits with 1, which is no finding.
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

pub fn main() -> Result<(), String> {
    let [byte] = symbolic::<1>();
    if byte == 1 { Err("one".to_owned()) } else { Ok(()) }
}
