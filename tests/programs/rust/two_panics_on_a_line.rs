// Each call that can panic is a finding of its own, also where several are on one line.
// run:
// args: --sym-stdin 2
// finding: panic 15
// finding: panic 15
use std::io::Read;

fn even(byte: u8) -> Option<u8> {
    (byte % 2 == 0).then_some(byte / 2)
}

pub fn main() {
    let mut bytes = [0; 2];
    std::io::stdin().read_exact(&mut bytes).unwrap_or_default();
    let sum = u32::from(even(bytes[0]).expect("first")) + u32::from(even(bytes[1]).expect("second"));
    println!("{}", sum > 9);
}
