//! Where a native thread stands in its source: its stack of calls, read through the debug information of the program.

use std::path::Path;

use addr2line::Loader;

use crate::allocations::Inside;
use crate::tracee::{Registers, Tracee};

/// A place in the source of a native program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NativeFrame {
    /// The function, as people write it.
    pub function: String,
    /// The file, as the compiler knew it; empty where it is not known.
    pub file: String,
    /// The line; 0 where it is not known.
    pub line: u32,
}

/// Where a native run ended.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NativeStack {
    /// Where the thread stood; functions that were inlined there have frames of their own.
    pub innermost: Vec<NativeFrame>,
    /// Who called, as far as frames are linked.
    pub callers: Vec<NativeFrame>,
    /// Behind which calls the addresses on the stack lie, whoever put them there: code that links no frames leaves these.
    pub nearby: Vec<NativeFrame>,
}

/// Most callers that are looked at.
const MOST_CALLERS: usize = 32;
/// Bytes that a process can address.
const ADDRESSES: u64 = 1 << 47;
/// Words of the stack that are searched for addresses of code.
const SEARCHED: usize = 64;

/// Addresses of code that a thread has come through.
#[derive(Clone, Default, Debug)]
pub struct Addresses {
    at: u64,
    callers: Vec<u64>,
    nearby: Vec<u64>,
}

fn word(tracee: &mut Tracee, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    tracee
        .look(address, &mut bytes)
        .then(|| u64::from_le_bytes(bytes))
}

/// Reads the stack of a thread. `behind` is the address behind the instruction that is to blame, where that is not
/// the one at which the thread stands; `inside` is the call of the allocator that it is in.
pub fn addresses(
    tracee: &mut Tracee,
    registers: &Registers,
    behind: Option<u64>,
    inside: Option<Inside>,
) -> Addresses {
    let real = |back: u64| inside.map_or(back, |inside| inside.real_return(back));
    let mut callers = Vec::new();
    let mut frame = registers.rbp;
    while callers.len() < MOST_CALLERS && frame.is_multiple_of(8) && frame >= registers.rsp {
        let (Some(next), Some(back)) = (word(tracee, frame), word(tracee, frame + 8)) else {
            break;
        };
        callers.push(real(back).wrapping_sub(1));
        if next <= frame || next >= ADDRESSES {
            break;
        }
        frame = next;
    }
    let words = (0..SEARCHED as u64).map(|at| registers.rsp + 8 * at);
    let mut nearby: Vec<u64> = words.filter_map(|at| word(tracee, at)).map(real).collect();
    nearby.retain(|back| follows_call(tracee, *back));
    nearby.iter_mut().for_each(|back| *back -= 1);
    let at = match behind {
        None => registers.rip,
        Some(behind) => {
            let blamed = real(behind).wrapping_sub(1);
            // What the runtime did to report is of no interest.
            if let Some(own) = callers.iter().position(|caller| *caller == blamed) {
                callers.drain(..=own);
            }
            blamed
        }
    };
    Addresses {
        at,
        callers,
        nearby,
    }
}

/// An address that a call returns to.
fn follows_call(tracee: &mut Tracee, address: u64) -> bool {
    const CALL: u8 = 0xe8;
    const INDIRECT: u8 = 0xff;
    let mut code = [0; 7];
    if address < 4096 || !tracee.look(address.wrapping_sub(7), &mut code) {
        return false;
    }
    let indirect = |at: usize| code[at] == INDIRECT && code[at + 1] >> 3 & 7 == 2;
    code[2] == CALL || indirect(5) || indirect(4) || indirect(1)
}

impl Addresses {
    /// The places in the source of a program that lies so far from the addresses in its file.
    pub fn places(&self, program: &Path, bias: u64) -> NativeStack {
        let Ok(loader) = Loader::new(program) else {
            return NativeStack::default();
        };
        let places = |addresses: &[u64]| -> Vec<NativeFrame> {
            let frames = addresses
                .iter()
                .map(|address| frames_at(&loader, address.wrapping_sub(bias)));
            frames.flatten().collect()
        };
        NativeStack {
            innermost: places(&[self.at]),
            callers: places(&self.callers),
            nearby: places(&self.nearby),
        }
    }
}

fn frames_at(loader: &Loader, address: u64) -> Vec<NativeFrame> {
    let mut found = Vec::new();
    // Garbage on a stack is no address of code, and the reader of debug information adds to what it is given.
    if address >= ADDRESSES {
        return found;
    }
    let Ok(mut frames) = loader.find_frames(address) else {
        return found;
    };
    while let Ok(Some(frame)) = frames.next() {
        let function = frame.function.as_ref();
        let name = function.and_then(|function| function.demangle().ok().map(String::from));
        let location = frame.location.as_ref();
        found.push(NativeFrame {
            function: name.unwrap_or_default(),
            file: location.and_then(|l| l.file).unwrap_or_default().to_owned(),
            line: location.and_then(|l| l.line).unwrap_or(0),
        });
    }
    found
}

impl NativeFrame {
    /// It is in a function of that name, whatever it belongs to and whatever its arguments are.
    pub fn is_in(&self, function: &str) -> bool {
        let plain = |name: &str| {
            let name = name.split(['(', '<']).next().unwrap_or_default();
            name.rsplit("::").next().unwrap_or_default().to_owned()
        };
        !function.is_empty()
            && (self.function == function || plain(&self.function) == plain(function))
    }

    /// It is in a file of that name, in whatever folder.
    pub fn is_of(&self, file: &str) -> bool {
        Path::new(&self.file).file_name() == Path::new(file).file_name()
    }
}

impl std::fmt::Display for NativeFrame {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "in {}", self.function)?;
        match (self.file.as_str(), self.line) {
            ("", _) | (_, 0) => Ok(()),
            (file, line) => write!(to, " at {file}:{line}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn garbage_is_nowhere() {
        let program = std::env::current_exe().unwrap();
        let addresses = Addresses {
            at: u64::MAX,
            callers: vec![u64::MAX, 1 << 47],
            nearby: Vec::new(),
        };
        assert_eq!(addresses.places(&program, 0), NativeStack::default());
    }

    #[test]
    fn functions_are_the_same_under_their_short_and_long_names() {
        let frame = NativeFrame {
            function: "outer::inner(int, char*)".to_owned(),
            file: "/src/some/file.cc".to_owned(),
            line: 7,
        };
        assert!(frame.is_in("inner"));
        assert!(!frame.is_in("outer"));
        assert!(!frame.is_in(""));
        assert!(frame.is_of("file.cc"));
        assert!(!frame.is_of("other.cc"));
        assert_eq!(
            frame.to_string(),
            "in outer::inner(int, char*) at /src/some/file.cc:7"
        );
    }
}
