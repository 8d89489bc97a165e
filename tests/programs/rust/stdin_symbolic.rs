// Lines of symbolic standard input, counted.
// run:
// args: --sym-stdin 2
// finding: panic 12
use std::io::BufRead;

pub fn main() {
    let mut count = 0;
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap_or_default();
        count += 1;
        assert!(line != "!", "line {}", count);
    }
    std::process::exit(count);
}
