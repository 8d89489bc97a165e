//! Call stacks of native threads, symbolised with the debug information of the program.

use std::path::Path;

use addr2line::Loader;
use everett_ir::library::LibraryFolders;

use crate::allocations::AllocatorCall;
use crate::tracee::{Registers, Tracee};
use crate::unwind::{Caller, FrameRegisters, UnwindTables};

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

/// Where a call is made, and with what.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CallOrigin {
    /// The call stack.
    pub stack: NativeStack,
    /// The arguments, without addresses.
    pub arguments: Vec<String>,
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

/// Reads a word of a process.
fn word(tracee: &Tracee, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    tracee
        .peek(address, &mut bytes)
        .then(|| u64::from_le_bytes(bytes))
}

/// The stack of a stopped thread.
pub struct ThreadStack<'t> {
    /// The process.
    pub tracee: &'t Tracee,
    /// Its registers.
    pub registers: Registers,
    /// The unwind tables of its program.
    pub tables: &'t UnwindTables,
    /// The load bias of its program.
    pub bias: u64,
    /// The current call into the allocator, which hides a return address.
    pub allocator_call: Option<AllocatorCall>,
    /// Another return address that is hidden: what stands on the stack instead, and the address.
    pub hidden: Option<(u64, u64)>,
}

impl ThreadStack<'_> {
    fn real(&self, back: u64) -> u64 {
        let call = self.allocator_call.as_ref();
        let back = call.map_or(back, |call| call.real_return(back));
        match self.hidden {
            Some((instead, hidden)) if instead == back => hidden,
            _ => back,
        }
    }

    /// Returns the return addresses of the callers, innermost first: by the unwind tables, and where
    /// these describe nothing, by frame pointers.
    pub fn callers(&self) -> Vec<u64> {
        let mut frame = FrameRegisters::of(&self.registers);
        let mut callers = Vec::new();
        while callers.len() < MAX_CALLERS {
            // A return address follows the call, which may be the last instruction of its function.
            let at = frame.code().wrapping_sub(u64::from(!callers.is_empty()));
            let word = |address| word(self.tracee, address);
            let caller = self.tables.caller(at.wrapping_sub(self.bias), &frame, word);
            let next = match caller {
                Caller::Known(caller) => Some(caller),
                Caller::None => None,
                Caller::Unknown => frame.behind_frame_pointer(word),
            };
            let Some(mut next) = next else { break };
            let back = self.real(next.code());
            if !(1..ADDRESSES).contains(&back) {
                break;
            }
            next.set_code(back);
            callers.push(back);
            frame = next;
        }
        callers
    }

    /// Reads the call stack. `behind` is the return address of the instruction to blame, if that is
    /// not the program counter. The last argument is the number of words of the stack that are
    /// searched for return addresses.
    pub fn addresses(&self, behind: Option<u64>, searched: u64) -> Addresses {
        let mut callers = self.callers();
        callers.iter_mut().for_each(|back| *back -= 1);
        let words = (0..searched).map(|at| self.registers.rsp + 8 * at);
        let nearby = words.filter_map(|at| word(self.tracee, at));
        let mut nearby: Vec<u64> = nearby.map(|back| self.real(back)).collect();
        nearby.retain(|back| follows_call(self.tracee, *back));
        nearby.iter_mut().for_each(|back| *back -= 1);
        let at = match behind {
            None => self.registers.rip,
            Some(behind) => {
                let blamed = self.real(behind).wrapping_sub(1);
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
}

/// Returns whether an address follows a call instruction.
fn follows_call(tracee: &Tracee, address: u64) -> bool {
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
    /// Returns the source locations of the addresses in a program with this load bias; `frames`
    /// finds those of an address in the file.
    pub fn symbolise(
        &self,
        bias: u64,
        mut frames: impl FnMut(u64) -> Vec<NativeFrame>,
    ) -> NativeStack {
        let mut places = |addresses: &[u64]| -> Vec<NativeFrame> {
            let own = addresses.iter().map(|at| at.wrapping_sub(bias));
            own.flat_map(&mut frames).collect()
        };
        NativeStack {
            innermost: places(&[self.at]),
            callers: places(&self.callers),
            nearby: places(&self.nearby),
        }
    }
}

/// Returns the source locations of an address in a file, those of inlined functions first.
pub fn frames_at(loader: &Loader, address: u64) -> Vec<NativeFrame> {
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
        let loader = Loader::new(&program).unwrap();
        let stack = addresses.symbolise(0, |address| frames_at(&loader, address));
        assert_eq!(stack, NativeStack::default());
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
