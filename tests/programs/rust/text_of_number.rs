// The text of a symbolic number reads back as the number; its length makes the paths.
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
    let [byte] = symbolic::<1>();
    let number = byte as i8;
    let text = format!("{number}");
    assert_eq!(text.parse(), Ok(number));
    assert_eq!(format!("{byte:#04x}").len(), 4);
    std::process::exit(text.len() as i32);
}
