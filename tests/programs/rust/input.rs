// Lines of standard input, parsed.
// exec:
// stdin: 12\n-7\nnot a number\n99999999999999999999\nlast
use std::io::{self, BufRead, Read};

pub fn main() {
    let mut first = String::new();
    let read = io::stdin().read_line(&mut first).unwrap();
    println!("{read} {:?}", first.trim_end());
    for line in io::stdin().lock().lines().take(3) {
        let line = line.unwrap();
        match line.parse::<i64>() {
            Ok(number) => println!("number {number}"),
            Err(error) => println!("{line:?}: {error}"),
        }
    }
    let mut rest = Vec::new();
    io::stdin().read_to_end(&mut rest).unwrap();
    println!("{rest:?}");
}
