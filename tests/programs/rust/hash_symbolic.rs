// A hash table with the standard hasher and a symbolic key.
// run:
// finding: panic 24
use std::collections::HashMap;

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
    let [key] = symbolic::<1>();
    let table = HashMap::from([(1u8, "one"), (2, "two")]);
    if key > 3 {
        return;
    }
    match table.get(&key) {
        Some(name) => assert_ne!(*name, "two"),
        None => std::process::exit(1),
    }
}
