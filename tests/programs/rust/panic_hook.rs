// A panic hook of the program runs before the finding is reported; a panic with a value has no message.
// run:
// paths: 3
// finding: panic 21
// finding: panic 22
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
    std::panic::set_hook(Box::new(|info| println!("hook: {:?}", info.location().map(|l| l.line()))));
    match byte {
        0 => std::panic::panic_any(17u64),
        1 => panic!("text {}", byte),
        _ => {}
    }
}
