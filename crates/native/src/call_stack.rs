//! Call stacks of native threads, symbolised with the debug information of the program.

use std::path::Path;

use addr2line::Loader;
use everett_ir::library::LibraryFolders;

use crate::allocations::AllocatorCall;
use crate::tracee::{Registers, Tracee};

/// A source location of a native call stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NativeFrame {
    /// The demangled function name.
    pub function: String,
    /// The file, as the compiler knew it; empty if unknown.
    pub file: String,
    /// The line; 0 if unknown.
    pub line: u32,
}

/// Call stack at the end of a native run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NativeStack {
    /// The location at which the thread stopped; inlined functions have frames of their own.
    pub innermost: Vec<NativeFrame>,
    /// The callers, as far as frame pointers lead.
    pub callers: Vec<NativeFrame>,
    /// Return addresses found on the stack, from any call: the fallback for code without frame
    /// pointers.
    pub nearby: Vec<NativeFrame>,
}

impl NativeStack {
    /// Moves the innermost frame outside of Rust's libraries to the front, behind the frame of the
    /// runtime function that was called last.
    pub fn put_user_first(&mut self) {
        let libraries = LibraryFolders::default();
        let frames = self.callers.iter().chain(&self.nearby);
        let runtime: Vec<&str> = self.innermost.iter().map(|one| one.folder()).collect();
        let user = frames
            .filter(|one| one.line != 0 && !libraries.contains(&one.file))
            .find(|one| !runtime.contains(&one.folder()));
        if let Some(user) = user.cloned() {
            self.innermost.insert(0, user);
        }
    }
}

/// Maximum number of callers that are followed.
const MAX_CALLERS: usize = 32;
/// Size of the address space.
const ADDRESSES: u64 = 1 << 47;
/// Number of words of the stack that are searched for return addresses.
pub const SEARCHED: u64 = 64;
/// Like [`SEARCHED`], for panics: Rust's runtime, which has no frame pointers, has frames between
/// the thread and the cause.
pub const SEARCHED_AT_PANIC: u64 = 512;

/// Code addresses of a call stack.
#[derive(Clone, Default, Debug)]
pub struct Addresses {
    at: u64,
    callers: Vec<u64>,
    nearby: Vec<u64>,
}

fn word(tracee: &mut Tracee, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    tracee
        .peek(address, &mut bytes)
        .then(|| u64::from_le_bytes(bytes))
}

/// Reads the call stack of a thread. `behind` is the return address of the instruction to blame, if
/// that is not the program counter; `allocator_call` is the current call into the allocator. The
/// last argument is the number of words of the stack that are searched for return addresses.
pub fn addresses(
    tracee: &mut Tracee,
    registers: &Registers,
    behind: Option<u64>,
    allocator_call: Option<AllocatorCall>,
    searched: u64,
) -> Addresses {
    let real =
        |back: u64| allocator_call.map_or(back, |allocator_call| allocator_call.real_return(back));
    let mut callers = Vec::new();
    let mut frame = registers.rbp;
    while callers.len() < MAX_CALLERS && frame.is_multiple_of(8) && frame >= registers.rsp {
        let (Some(next), Some(back)) = (word(tracee, frame), word(tracee, frame + 8)) else {
            break;
        };
        callers.push(real(back).wrapping_sub(1));
        if next <= frame || next >= ADDRESSES {
            break;
        }
        frame = next;
    }
    let words = (0..searched).map(|at| registers.rsp + 8 * at);
    let mut nearby: Vec<u64> = words.filter_map(|at| word(tracee, at)).map(real).collect();
    nearby.retain(|back| follows_call(tracee, *back));
    nearby.iter_mut().for_each(|back| *back -= 1);
    let at = match behind {
        None => registers.rip,
        Some(behind) => {
            let blamed = real(behind).wrapping_sub(1);
            // Frames of the runtime that reports are skipped.
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

/// Returns whether an address follows a call instruction.
fn follows_call(tracee: &mut Tracee, address: u64) -> bool {
    const CALL: u8 = 0xe8;
    const INDIRECT: u8 = 0xff;
    let mut code = [0; 7];
    if address < 4096 || !tracee.peek(address.wrapping_sub(7), &mut code) {
        return false;
    }
    let indirect = |at: usize| code[at] == INDIRECT && code[at + 1] >> 3 & 7 == 2;
    code[2] == CALL || indirect(5) || indirect(4) || indirect(1)
}

impl Addresses {
    /// Returns the source locations of the addresses in a program with this load bias.
    pub fn symbolise(&self, program: &Path, bias: u64) -> NativeStack {
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
    // Garbage on a stack may not be a code address, and the reader of debug information adds to its
    // argument.
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
    /// Returns whether the frame's function has this name, ignoring scope and parameters.
    pub fn is_in(&self, function: &str) -> bool {
        let plain = |name: &str| {
            let name = name.split(['(', '<']).next().unwrap_or_default();
            name.rsplit("::").next().unwrap_or_default().to_owned()
        };
        !function.is_empty()
            && (self.function == function || plain(&self.function) == plain(function))
    }

    /// Returns whether the frame's file has this name, in any directory.
    pub fn is_of(&self, file: &str) -> bool {
        Path::new(&self.file).file_name() == Path::new(file).file_name()
    }
}

impl NativeFrame {
    /// Returns the folder of the frame's file.
    fn folder(&self) -> &str {
        self.file.rsplit_once('/').map_or("", |(folder, _)| folder)
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
        assert_eq!(addresses.symbolise(&program, 0), NativeStack::default());
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
