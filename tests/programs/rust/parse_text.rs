// A parser over symbolic text whose error handling forgot a case.
// run:
// finding: panic 32
// finding: panic 30
unsafe extern "C" {
    fn everett_make_symbolic(place: *mut u8, size: usize, name: *const u8);
}

fn symbolic<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // SAFETY: the array has that many bytes, and the name ends in a zero.
    unsafe { everett_make_symbolic(bytes.as_mut_ptr(), N, c"input".as_ptr().cast()) };
    bytes
}

fn parse(text: &str) -> Result<i32, std::num::ParseIntError> {
    let (sign, digits) = match text.as_bytes() {
        [b'-', ..] => (-1, &text[1..]),
        _ => (1, text),
    };
    let number: i32 = digits.parse()?;
    Ok(sign * number)
}

pub fn main() {
    let bytes = symbolic::<2>();
    if !bytes.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-' || *byte == 0xc3) {
        return;
    }
    let text = std::str::from_utf8(&bytes).unwrap();
    let number = parse(text).unwrap_or(0);
    assert_ne!(number, -7, "not this one");
}
