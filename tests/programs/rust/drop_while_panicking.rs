// A second panic while the first one unwinds aborts, where the input asks for it.
// run: --panics main
// paths: 2
// finding: panic 29
// finding: panic 34
unsafe extern "C" {
    fn everett_make_symbolic(place: *mut u8, size: usize, name: *const u8);
}

fn symbolic<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // SAFETY: the array has that many bytes, and the name ends in a zero.
    unsafe { everett_make_symbolic(bytes.as_mut_ptr(), N, c"input".as_ptr().cast()) };
    bytes
}

struct Bomb(bool);

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0 {
            panic!("second");
        }
    }
}

pub fn main() {
    let [byte] = symbolic::<1>();
    let _ = std::panic::catch_unwind(|| {
        let _bomb = Bomb(byte == 9);
        panic!("caught");
    });
    let _bomb = Bomb(false);
    panic!("first");
}
