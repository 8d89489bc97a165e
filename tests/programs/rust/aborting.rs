// With panic=abort a panic ends in SIGABRT, and nothing is dropped.
// build: -C panic=abort
// alone: few programs abort
// exec: now
// exec:
struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        println!("dropped");
    }
}

pub fn main() {
    let _guard = Guard;
    if std::env::args().len() > 1 {
        panic!("abort");
    }
    println!("calm");
}
