// Time goes on, and the environment can be changed.
// exec:
use std::time::{Duration, Instant, SystemTime};

pub fn main() {
    let start = Instant::now();
    std::thread::sleep(Duration::from_millis(20));
    println!("{}", start.elapsed() >= Duration::from_millis(20));
    println!("{}", SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).is_ok());
    println!("{:?}", Duration::new(3, 500_000_000).checked_sub(Duration::from_micros(1)));
    // SAFETY: there is one thread.
    unsafe { std::env::set_var("NAME", "value") };
    println!("{:?} {}", std::env::var("NAME"), std::env::vars().count());
    println!("{:?}", std::thread::current().name());
    println!("{}", std::process::id() > 0);
}
