// A RefCell is borrowed twice on one path, in a callback.
// run:
// paths: 2
// finding: panic 23
use std::cell::RefCell;
use std::rc::Rc;

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
    let log: Rc<RefCell<Vec<u8>>> = Rc::default();
    let inner = Rc::clone(&log);
    let callback = move |byte: u8| inner.borrow_mut().push(byte);
    let mut held = log.borrow_mut();
    held.push(1);
    if byte == 0x7f {
        callback(byte);
    }
}
