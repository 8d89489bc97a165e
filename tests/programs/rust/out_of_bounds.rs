// Unsafe code that trusts an index.
// run:
// finding: out-of-bounds 22
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
    let [index] = symbolic::<1>();
    let numbers = vec![1u32, 2, 3, 4].into_boxed_slice();
    if index > 4 {
        return;
    }
    let start = numbers.as_ptr();
    let value = unsafe { *start.add(index as usize) };
    std::process::exit(value as i32);
}
