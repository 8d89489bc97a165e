// Every panic is a finding at its own place: in a thread, in a named thread, and where the program catches it. Unwinding
// on purpose (resume_unwind) is none.
// build:
// build: -O
// run:
// args: --sym-stdin 1
// paths: 5
// finding: panic 24
// finding: panic 30
// finding: panic 34
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
            // Nobody looks at the result.
            drop(thread::spawn(move || panic!("in a thread")));
            thread::sleep(Duration::from_millis(5));
        }
        1 => {
            let builder = thread::Builder::new().name("worker".to_owned());
            let none: Option<u8> = None;
            let joined = builder.spawn(move || none.unwrap()).map(|thread| thread.join().is_err());
            assert!(joined.is_ok());
        }
        2 => {
            let caught = panic::catch_unwind(|| panic!("caught"));
            assert!(caught.is_err());
        }
        3 => {
            let caught = panic::catch_unwind(|| panic::resume_unwind(Box::new(7u8)));
            assert!(caught.is_err());
        }
        _ => {}
    }
}
