// Symbolic keys are inserted into a hash table, which asks for the hashes of both.
// build: -O
// run:
use std::collections::HashSet;

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
    let [a, b] = symbolic::<2>().map(|byte| byte & 3);
    let mut set = HashSet::new();
    set.insert(a);
    let fresh = set.insert(b);
    assert_eq!(fresh, a != b);
    assert!(set.contains(&a) && set.contains(&b));
    std::process::exit(set.len() as i32);
}
