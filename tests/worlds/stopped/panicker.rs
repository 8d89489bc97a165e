//! Panics in a thread, while the program goes on.

use std::thread;
use std::time::Duration;

fn main() {
    if std::env::args().len() > 0 {
        drop(thread::spawn(|| panic!("boom")));
    }
    thread::sleep(Duration::from_millis(50));
}
