// A message is decoded from symbolic bytes, and matched.
// run:
// paths: 6
// finding: panic 36
unsafe extern "C" {
    fn everett_make_symbolic(place: *mut u8, size: usize, name: *const u8);
}

fn symbolic<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // SAFETY: the array has that many bytes, and the name ends in a zero.
    unsafe { everett_make_symbolic(bytes.as_mut_ptr(), N, c"input".as_ptr().cast()) };
    bytes
}

#[derive(Debug, Clone, Copy)]
enum Message {
    Quit,
    Move { x: i8, y: i8 },
    Write(u8),
    Unknown,
}

fn decode([kind, a, b]: [u8; 3]) -> Message {
    match kind {
        0 => Message::Quit,
        1 => Message::Move { x: a as i8, y: b as i8 },
        2 => Message::Write(a),
        _ => Message::Unknown,
    }
}

pub fn main() {
    let code = match decode(symbolic()) {
        Message::Quit => 0,
        Message::Move { x: 0, y } if y < 0 => unreachable!("moved back"),
        Message::Move { .. } => 1,
        Message::Write(_) => 2,
        Message::Unknown => 3,
    };
    std::process::exit(code);
}
