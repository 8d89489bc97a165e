//! Preemption points between system calls, and where they lie in native code.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use everett_linux::TaskName;
use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, OpAccess, Register};
use object::Object;

/// A preemption point of a trace, as the vm passed it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScriptPoint {
    /// The thread that ran.
    pub task: TaskName,
    /// System calls that it had made before.
    pub calls: u64,
    /// Another thread ran here.
    pub switches: bool,
    /// File and line of the access that it was about to make.
    pub place: (String, u32),
    /// Points on the same line that it had passed since its last system call or switch.
    pub ordinal: u32,
}

/// All preemption points of a trace, in order, and what is known about them.
#[derive(Clone, Default)]
pub struct Script {
    /// The points.
    pub points: Vec<ScriptPoint>,
    /// Shifts of points by a number of accesses: native code need not have the same accesses as the vm.
    pub shifts: BTreeMap<usize, i32>,
    /// How often the host had been restarted when they were passed.
    pub restarts: u32,
    /// Line tables of the programs, once they are known.
    pub lines: Arc<OnceLock<Vec<Lines>>>,
}

/// Addresses of a line, as pairs of start and end.
pub type Ranges = Vec<(u64, u64)>;

/// Line table of a native program.
#[derive(Default)]
pub struct Lines {
    /// By file name, without directory, and line.
    ranges: BTreeMap<(String, u32), Ranges>,
    /// Entry point in the file.
    entry: u64,
}

/// The last part of a path.
fn name_of(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

impl Lines {
    /// The line table of a program; empty if it has no debug information.
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

    /// The addresses of a line in a process whose program starts at `start`.
    pub fn find(&self, place: &(String, u32), start: u64) -> Ranges {
        let bias = start.wrapping_sub(self.entry);
        let known = self.ranges.get(&(name_of(&place.0).to_owned(), place.1));
        let moved = |(from, to): &(u64, u64)| (from.wrapping_add(bias), to.wrapping_add(bias));
        known.into_iter().flatten().map(moved).collect()
    }
}

/// Effects of an instruction that matter for preemption points.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct InstructionEffects {
    /// It accesses memory outside of its own frame.
    pub reaches_memory: bool,
    /// Return address, if it is a call.
    pub returns_to: Option<u64>,
}

/// Decodes the instruction at an address.
pub fn decode(code: &[u8], address: u64) -> InstructionEffects {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let instruction = decoder.decode();
    if instruction.is_invalid() {
        return InstructionEffects::default();
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
    InstructionEffects {
        reaches_memory: !is_call && others.next().is_some(),
        returns_to: is_call.then(|| instruction.next_ip()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_told_from_the_rest() {
        let reaches = |code: &[u8]| decode(code, 0x1000).reaches_memory;
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
        let call = decode(&[0xe8, 0, 0, 0, 0], 0x1000);
        assert_eq!(call.returns_to, Some(0x1005));
    }
}
