// With `--panics main`, only panics that end the program are findings.
// run: --panics main
// args: --sym-stdin 1
// paths: 4
// finding: panic 28
use std::io::Read;
use std::panic;
use std::thread;
use std::time::Duration;

pub fn main() {
    let mut byte = [0u8; 1];
    if std::io::stdin().read_exact(&mut byte).is_err() {
        return;
    }
    match byte[0] {
        0 => {
            drop(thread::spawn(move || panic!("in a thread")));
            thread::sleep(Duration::from_millis(5));
        }
        1 => {
            let caught = panic::catch_unwind(|| panic!("caught"));
            assert!(caught.is_err());
        }
        2 => {
            let caught = panic::catch_unwind(|| panic!("before"));
            if caught.is_err() {
                panic!("after");
            }
        }
        _ => {}
    }
}
