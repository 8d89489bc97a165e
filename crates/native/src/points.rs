//! Points between system calls at which threads took turns, and where they lie in native code.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use everett_engine::Trace;
use everett_linux::TaskName;
use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, OpAccess, Register};
use object::Object;

/// A point at which another thread could have run, as the vm came to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Point {
    /// The thread that ran.
    pub task: TaskName,
    /// System calls that it had made.
    pub calls: u64,
    /// Another thread did run.
    pub switches: bool,
    /// File and line of the access before which it stood.
    pub place: (String, u32),
    /// Points on the same line that it had passed since it made a system call or went on behind a switch.
    pub ordinal: u32,
}

/// All points of a trace, in order, and what else was found out about them.
#[derive(Clone, Default)]
pub struct Script {
    /// The points.
    pub points: Vec<Point>,
    /// For some points: so many accesses later, or earlier. Native code need not have the same accesses as the vm.
    pub shifts: BTreeMap<usize, i32>,
    /// They are those of a host that was started so often before.
    pub restarts: u32,
    /// Where lines lie in the programs, once that is known.
    pub lines: Arc<OnceLock<Vec<Lines>>>,
}

/// Finds the points of a trace; nothing where it has none.
pub type ScriptFinder = Arc<dyn Fn(&Trace) -> Option<Script> + Send + Sync>;

/// Addresses of a line, as pairs of start and end.
pub type Ranges = Vec<(u64, u64)>;

/// Where lines lie in a native program.
#[derive(Default)]
pub struct Lines {
    /// By the name of the file, without its folder, and the line.
    ranges: BTreeMap<(String, u32), Ranges>,
    /// Where the program begins, as the file has it.
    entry: u64,
}

/// The last part of a path.
fn name_of(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

impl Lines {
    /// Those of a program; none if it has no debug information.
    pub fn of(program: &Path) -> Lines {
        Lines::read(program).unwrap_or_default()
    }

    fn read(program: &Path) -> Option<Lines> {
        let bytes = std::fs::read(program).ok()?;
        let entry = object::File::parse(&*bytes).ok()?.entry();
        let loader = addr2line::Loader::new(program).ok()?;
        let mut ranges: BTreeMap<(String, u32), Ranges> = BTreeMap::new();
        for (start, len, location) in loader.find_location_range(0, u64::MAX).ok()? {
            let (Some(file), Some(line)) = (location.file, location.line) else {
                continue;
            };
            let place = (name_of(file).to_owned(), line);
            ranges
                .entry(place)
                .or_default()
                .push((start, start.checked_add(len)?));
        }
        Some(Lines { ranges, entry })
    }

    /// The addresses of a line in a process whose program begins at `start`.
    pub fn find(&self, place: &(String, u32), start: u64) -> Ranges {
        let bias = start.wrapping_sub(self.entry);
        let known = self.ranges.get(&(name_of(&place.0).to_owned(), place.1));
        let moved = |(from, to): &(u64, u64)| (from.wrapping_add(bias), to.wrapping_add(bias));
        known.into_iter().flatten().map(moved).collect()
    }
}

/// What an instruction does, as far as points are concerned.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Does {
    /// It reads or writes memory that is not that of its own frame.
    pub reaches_memory: bool,
    /// It is a call: where that returns to.
    pub returns_to: Option<u64>,
}

/// Looks at the instruction at an address.
pub fn look_at(code: &[u8], address: u64) -> Does {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let instruction = decoder.decode();
    if instruction.is_invalid() {
        return Does::default();
    }
    let mut factory = InstructionInfoFactory::new();
    let used = factory.info(&instruction).used_memory();
    let is_own = |base: Register| matches!(base, Register::RSP | Register::RBP);
    let mut others = used.iter().filter(|memory| {
        memory.access() != OpAccess::NoMemAccess
            && memory.segment() != Register::FS
            && !is_own(memory.base())
    });
    let is_call = matches!(
        instruction.flow_control(),
        FlowControl::Call | FlowControl::IndirectCall
    );
    Does {
        reaches_memory: !is_call && others.next().is_some(),
        returns_to: is_call.then(|| instruction.next_ip()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_told_from_the_rest() {
        let reaches = |code: &[u8]| look_at(code, 0x1000).reaches_memory;
        // mov eax, [rip+0x10]; mov [rax], ecx; lock xadd [rdi], eax
        assert!(reaches(&[0x8b, 0x05, 0x10, 0, 0, 0]));
        assert!(reaches(&[0x89, 0x08]));
        assert!(reaches(&[0xf0, 0x0f, 0xc1, 0x07]));
        // mov eax, [rbp-4]; lea rax, [rip+0]; add eax, 1; push rbp; ret
        assert!(!reaches(&[0x8b, 0x45, 0xfc]));
        assert!(!reaches(&[0x48, 0x8d, 0x05, 0, 0, 0, 0]));
        assert!(!reaches(&[0x83, 0xc0, 0x01]));
        assert!(!reaches(&[0x55]));
        assert!(!reaches(&[0xc3]));
        let call = look_at(&[0xe8, 0, 0, 0, 0], 0x1000);
        assert_eq!(call.returns_to, Some(0x1005));
    }
}
