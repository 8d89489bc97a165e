// A pointer that outlives its box on one path.
// run:
// paths: 2
// finding: use-after-free 21
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
    let [choice] = symbolic::<1>();
    let boxed = Box::new(7i32);
    let pointer: *const i32 = &*boxed;
    let kept = if choice % 2 == 0 { Some(boxed) } else { drop(boxed); None };
    let value = unsafe { *pointer };
    drop(kept);
    std::process::exit(value);
}
