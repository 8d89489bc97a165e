// Output, arguments, the environment and an exit code.
// exec: one two
use std::io::Write;

pub fn main() {
    println!("hello, world");
    let args: Vec<String> = std::env::args().skip(1).collect();
    println!("{args:?} {:?}", std::env::var("NOT_SET"));
    eprintln!("to the error stream");
    print!("no newline");
    std::io::stdout().flush().unwrap();
    std::process::exit(args.len() as i32);
}
