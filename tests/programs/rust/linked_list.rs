// An unsafe linked list whose removal forgets to unlink the tail.
// run:
// finding: use-after-free 33
use std::ptr;

unsafe extern "C" {
    fn everett_make_symbolic(place: *mut u8, size: usize, name: *const u8);
}

fn symbolic<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // SAFETY: the array has that many bytes, and the name ends in a zero.
    unsafe { everett_make_symbolic(bytes.as_mut_ptr(), N, c"input".as_ptr().cast()) };
    bytes
}

struct Node {
    value: u8,
    next: *mut Node,
}

struct Queue {
    head: *mut Node,
    tail: *mut Node,
}

impl Queue {
    fn push(&mut self, value: u8) {
        let node = Box::into_raw(Box::new(Node { value, next: ptr::null_mut() }));
        if self.head.is_null() {
            self.head = node;
        } else {
            unsafe { (*self.tail).next = node };
        }
        self.tail = node;
    }

    fn pop_value(&mut self, value: u8) -> bool {
        let mut link: *mut *mut Node = &mut self.head;
        unsafe {
            while !(*link).is_null() {
                if (**link).value == value {
                    let node = Box::from_raw(*link);
                    *link = node.next;
                    return true;
                }
                link = &mut (**link).next;
            }
        }
        false
    }
}

pub fn main() {
    let [value] = symbolic::<1>();
    let mut queue = Queue { head: ptr::null_mut(), tail: ptr::null_mut() };
    queue.push(1);
    queue.push(2);
    queue.push(3);
    let removed = queue.pop_value(value);
    queue.push(4);
    std::process::exit(removed.into());
}
