// A program in folders that are named like those of std: each of its panics is a finding, at its own line.
// alone: its folder is what is tested
// run:
// args: --sym-arg 1
// paths: 13
// finding: panic 12
// finding: panic 16
// finding: panic 20
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
