// Every way to panic ends the program with 101 once nobody catches it.
// build:
// build: -C opt-level=3 -C debug-assertions=on
// exec: unwrap
// exec: expect
// exec: index
// exec: slice
// exec: overflow
// exec: divide
// exec: utf8
// exec: borrow
// exec: unreachable
// exec: assert
// exec: any
// exec: alloc
// exec: drop
// exec: none
use std::cell::RefCell;

struct Guard(&'static str);

impl Drop for Guard {
    fn drop(&mut self) {
        println!("dropped {} (panicking: {})", self.0, std::thread::panicking());
    }
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("in a destructor");
    }
}

pub fn main() {
    let which = std::env::args().nth(1).unwrap_or_default();
    let _outer = Guard("outer");
    let numbers = vec![1, 2, 3];
    let length = which.len();
    let _inner = Guard("inner");
    match which.as_str() {
        "unwrap" => drop(None::<i32>.unwrap()),
        "expect" => drop("x".parse::<i32>().expect("a number")),
        "index" => println!("{}", numbers[length]),
        "slice" => println!("{:?}", &numbers[length..]),
        "overflow" => println!("{}", (length as u8 + 240) * 2),
        "divide" => println!("{}", 10 / (length - 6)),
        "utf8" => println!("{}", &"häß"[0..2]),
        "borrow" => {
            let cell = RefCell::new(1);
            let _first = cell.borrow_mut();
            let _second = cell.borrow_mut();
        }
        "unreachable" => unreachable!("not {}", which),
        "assert" => assert_eq!(length, 7, "lengths"),
        "any" => std::panic::panic_any(5),
        "alloc" => drop(Vec::<u64>::with_capacity(usize::MAX - length)),
        "drop" => drop(Bomb),
        _ => println!("no panic"),
    }
}
