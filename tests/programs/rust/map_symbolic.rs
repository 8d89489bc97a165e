// A sorted map and a sort over symbolic keys hold their promises on every path.
// run:
use std::collections::BTreeMap;

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
    let mut bytes = symbolic::<3>();
    let mut map = BTreeMap::new();
    for (at, byte) in bytes.iter().enumerate() {
        map.insert(*byte, at);
    }
    bytes.sort();
    assert!(bytes.is_sorted());
    assert_eq!(map.first_key_value().map(|(key, _)| *key), Some(bytes[0]));
    assert!(map.len() <= 3);
}
