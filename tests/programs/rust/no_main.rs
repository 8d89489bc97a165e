// A program without the runtime: main is a C function, and a panic in it cannot unwind.
// alone: it has no main of its own
// run: --panics main
// paths: 2
// finding: panic 20
#![no_main]

unsafe extern "C" {
    fn everett_make_symbolic(place: *mut u8, size: usize, name: *const u8);
}

fn symbolic<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // SAFETY: the array has that many bytes, and the name ends in a zero.
    unsafe { everett_make_symbolic(bytes.as_mut_ptr(), N, c"input".as_ptr().cast()) };
    bytes
}

#[unsafe(no_mangle)]
extern "C" fn main() -> i32 {
    let [byte] = symbolic::<1>();
    assert!(byte != 99, "not this");
    0
}
