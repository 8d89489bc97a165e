// Functions of the C library call back into Rust, and panics cross frames of C where that is allowed.
// build:
// build: -O
// exec:
use std::ffi::{CStr, CString, c_char, c_int, c_void};

unsafe extern "C" {
    fn strlen(text: *const c_char) -> usize;
    fn snprintf(buffer: *mut c_char, size: usize, format: *const c_char, ...) -> c_int;
    fn getenv(name: *const c_char) -> *const c_char;
}

unsafe extern "C-unwind" {
    fn qsort(
        base: *mut c_void,
        count: usize,
        size: usize,
        compare: extern "C-unwind" fn(*const c_void, *const c_void) -> c_int,
    );
}

extern "C-unwind" fn compare(a: *const c_void, b: *const c_void) -> c_int {
    // SAFETY: qsort passes elements of the array.
    let (a, b) = unsafe { (*a.cast::<i32>(), *b.cast::<i32>()) };
    assert!(a != 666 && b != 666, "evil");
    a.cmp(&b) as c_int
}

fn sort(numbers: &mut [i32]) {
    // SAFETY: the slice has as many elements of that size.
    unsafe { qsort(numbers.as_mut_ptr().cast(), numbers.len(), 4, compare) };
}

pub fn main() {
    let mut numbers = [5, -3, 9, 0, 2];
    sort(&mut numbers);
    println!("{numbers:?}");
    let result = std::panic::catch_unwind(|| sort(&mut [1, 666, 2]));
    println!("{:?}", result.unwrap_err().downcast_ref::<&str>());
    let text = CString::new("C string").unwrap();
    let mut buffer = [0u8; 64];
    // SAFETY: the strings end in zeros and the buffer has the size that is told.
    unsafe {
        println!("{} {}", strlen(text.as_ptr()), getenv(c"NOT_SET".as_ptr()).is_null());
        let length = snprintf(buffer.as_mut_ptr().cast(), 64, c"%d|%5.2f|%s|%c".as_ptr(), 42, 2.5f64, text.as_ptr(), 65);
        println!("{length} {:?}", CStr::from_bytes_until_nul(&buffer));
    }
}
