// A protocol over symbolic events with a transition that was forgotten.
// run:
// finding: panic 47
unsafe extern "C" {
    fn everett_make_symbolic(place: *mut u8, size: usize, name: *const u8);
}

fn symbolic<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // SAFETY: the array has that many bytes, and the name ends in a zero.
    unsafe { everett_make_symbolic(bytes.as_mut_ptr(), N, c"input".as_ptr().cast()) };
    bytes
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Closed,
    Opening { tries: u8 },
    Open,
    Failed,
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Connect,
    Accept,
    Refuse,
    Close,
}

fn event(byte: u8) -> Option<Event> {
    Some(match byte {
        b'c' => Event::Connect,
        b'a' => Event::Accept,
        b'r' => Event::Refuse,
        b'x' => Event::Close,
        _ => return None,
    })
}

fn step(state: State, event: Event) -> State {
    match (state, event) {
        (State::Closed, Event::Connect) => State::Opening { tries: 1 },
        (State::Opening { .. }, Event::Accept) => State::Open,
        (State::Opening { tries: 2 }, Event::Refuse) => State::Failed,
        (State::Opening { tries }, Event::Refuse) => State::Opening { tries: tries + 1 },
        (State::Open, Event::Connect) => unreachable!("already open"),
        (_, Event::Close) => State::Closed,
        (state, _) => state,
    }
}

pub fn main() {
    let mut state = State::Closed;
    for byte in symbolic::<3>() {
        match event(byte) {
            Some(event) => state = step(state, event),
            None => std::process::exit(1),
        }
    }
    std::process::exit(if state == State::Failed { 2 } else { 0 });
}
