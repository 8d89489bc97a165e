// A program in folders that are named like those of std: each of its panics is a finding, at its own line.
// run:
// args: --sym-arg 1
// paths: 13
// finding: panic 11
// finding: panic 15
// finding: panic 19
use std::env;

fn lower(c: u8) {
    if c == b'a' { panic!("lower"); }
}

fn upper(c: u8) {
    if c == b'A' { panic!("upper"); }
}

fn main() {
    let arg = env::args().nth(1).unwrap_or_default();
    let c = arg.bytes().next().unwrap_or(0);
    lower(c);
    upper(c);
}
