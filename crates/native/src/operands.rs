//! Memory operands of native instructions: the memory that an instruction accesses, and whether
//! other threads can reach it.

use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register,
    UsedMemory,
};

use crate::tracee::{Registers, Stopped, Tracee};

/// Maximum length of an instruction in bytes.
pub const LONGEST: usize = 15;

/// A memory operand of an instruction.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct MemoryOperand {
    /// First address of the operand.
    pub start: u64,
    /// First address behind the operand.
    pub end: u64,
    /// Whether the operand is written.
    pub writes: bool,
}

/// How often an instruction accesses memory that other threads can reach.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Accesses {
    /// Not at all.
    #[default]
    None,
    /// Once, or atomically.
    Once,
    /// Reads, then writes: on a machine with several processors, others can write in between.
    ReadThenWrite,
}

/// Decodes the instruction at an address; `None` if there is none.
pub fn instruction_at(code: &[u8], address: u64) -> Option<Instruction> {
    let instruction = Decoder::with_ip(64, code, address, DecoderOptions::NONE).decode();
    (!instruction.is_invalid()).then_some(instruction)
}

/// Returns whether memory is the thread's own: its frame or its thread-local storage. If `rbp` is
/// not a frame pointer, it points to a structure, whose fields lie behind it.
fn is_own(memory: &UsedMemory) -> bool {
    let is_frame = match memory.base() {
        Register::RSP => true,
        Register::RBP => (memory.displacement() as i64) < 0,
        _ => false,
    };
    is_frame || memory.segment() == Register::FS
}

/// Returns whether an instruction makes its accesses in one step.
pub fn is_atomic(instruction: &Instruction) -> bool {
    instruction.has_lock_prefix() || instruction.mnemonic() == Mnemonic::Xchg
}

/// Returns how often an instruction accesses memory that other threads can reach. Calls do not
/// count: they only read the addresses of functions.
pub fn shared_accesses(instruction: &Instruction) -> Accesses {
    let mut factory = InstructionInfoFactory::new();
    let used = factory.info(instruction).used_memory();
    let is_call = instruction.is_call_near_indirect() || instruction.is_call_far_indirect();
    let shared = used
        .iter()
        .filter(|memory| memory.access() != OpAccess::NoMemAccess && !is_own(memory) && !is_call);
    let is_atomic = is_atomic(instruction);
    let both = |memory: &&UsedMemory| {
        matches!(
            memory.access(),
            OpAccess::ReadWrite | OpAccess::ReadCondWrite
        )
    };
    let mut accesses = Accesses::None;
    for memory in shared {
        if both(&memory) && !is_atomic {
            return Accesses::ReadThenWrite;
        }
        accesses = Accesses::Once;
    }
    accesses
}

/// Returns the memory operands of an instruction, given the registers.
pub fn memory_operands(instruction: &Instruction, registers: &Registers) -> Vec<MemoryOperand> {
    let mut factory = InstructionInfoFactory::new();
    let used = factory.info(instruction).used_memory();
    let touch = |memory: &UsedMemory| {
        let start = memory.virtual_address(0, |register, _, _| value_of(register, registers))?;
        Some(MemoryOperand {
            start,
            end: start.checked_add(memory.memory_size().size() as u64)?,
            writes: !matches!(memory.access(), OpAccess::Read | OpAccess::CondRead),
        })
    };
    let accessed = used
        .iter()
        .filter(|memory| memory.access() != OpAccess::NoMemAccess);
    accessed.filter_map(touch).collect()
}

fn value_of(register: Register, r: &Registers) -> Option<u64> {
    Some(match register {
        Register::RAX => r.rax,
        Register::RBX => r.rbx,
        Register::RCX => r.rcx,
        Register::RDX => r.rdx,
        Register::RSI => r.rsi,
        Register::RDI => r.rdi,
        Register::RBP => r.rbp,
        Register::RSP => r.rsp,
        Register::R8 => r.r8,
        Register::R9 => r.r9,
        Register::R10 => r.r10,
        Register::R11 => r.r11,
        Register::R12 => r.r12,
        Register::R13 => r.r13,
        Register::R14 => r.r14,
        Register::R15 => r.r15,
        Register::FS => r.fs_base,
        Register::GS => r.gs_base,
        Register::CS | Register::DS | Register::ES | Register::SS => 0,
        _ => return None,
    })
}

/// The pending write of an instruction that reads and writes, after its read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HeldWrite(Vec<(u64, Vec<u8>)>);

impl HeldWrite {
    /// Performs the write.
    pub fn complete(self, tracee: &mut Tracee) {
        for (address, bytes) in self.0 {
            tracee.poke(address, &bytes);
        }
    }
}

/// Executes an instruction that reads and writes, except for its write: computes the result from
/// the current memory and keeps it. A processor does that with an instruction that has no `lock`
/// prefix.
pub fn execute_without_write(
    tracee: &mut Tracee,
    instruction: &Instruction,
) -> std::io::Result<(Stopped, HeldWrite)> {
    let operands = memory_operands(instruction, &tracee.registers()?);
    let written = operands.iter().filter(|operand| operand.writes);
    let before: Vec<(u64, Vec<u8>)> = written
        .filter_map(|operand| {
            let mut bytes = vec![0; (operand.end - operand.start) as usize];
            let is_there = tracee.peek(operand.start, &mut bytes);
            is_there.then_some((operand.start, bytes))
        })
        .collect();
    let stopped = tracee.step()?;
    let mut held = HeldWrite::default();
    if stopped != Stopped::Signal(libc::SIGTRAP) {
        return Ok((stopped, held));
    }
    for (address, old) in before {
        let mut new = vec![0; old.len()];
        if tracee.peek(address, &mut new) {
            tracee.poke(address, &old);
            held.0.push((address, new));
        }
    }
    Ok((stopped, held))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(code: &[u8]) -> Instruction {
        instruction_at(code, 0x1000).expect("an instruction")
    }

    #[test]
    fn accesses_are_told_from_the_rest() {
        let accesses = |code: &[u8]| shared_accesses(&decode(code));
        // mov eax, [rip+0x10]; mov [rax], ecx; lock xadd [rdi], eax;
        // xchg [rdi], eax; mov [rbp+8], eax
        assert_eq!(accesses(&[0x8b, 0x05, 0x10, 0, 0, 0]), Accesses::Once);
        assert_eq!(accesses(&[0x89, 0x08]), Accesses::Once);
        assert_eq!(accesses(&[0xf0, 0x0f, 0xc1, 0x07]), Accesses::Once);
        assert_eq!(accesses(&[0x87, 0x07]), Accesses::Once);
        assert_eq!(accesses(&[0x89, 0x45, 0x08]), Accesses::Once);
        // add dword [rip+0x10], 3; inc dword [rax]
        let add = [0x83, 0x05, 0x10, 0, 0, 0, 3];
        assert_eq!(accesses(&add), Accesses::ReadThenWrite);
        assert_eq!(accesses(&[0xff, 0x00]), Accesses::ReadThenWrite);
        // mov eax, [rbp-4]; lea rax, [rip+0]; add eax, 1; push rbp;
        // ret; mov rax, fs:[0]; call [rax]
        assert_eq!(accesses(&[0x8b, 0x45, 0xfc]), Accesses::None);
        assert_eq!(accesses(&[0x48, 0x8d, 0x05, 0, 0, 0, 0]), Accesses::None);
        assert_eq!(accesses(&[0x83, 0xc0, 0x01]), Accesses::None);
        assert_eq!(accesses(&[0x55]), Accesses::None);
        assert_eq!(accesses(&[0xc3]), Accesses::None);
        let own = [0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0];
        assert_eq!(accesses(&own), Accesses::None);
        assert_eq!(accesses(&[0xff, 0x10]), Accesses::None);
    }

    #[test]
    fn operands_have_their_addresses() {
        // SAFETY: registers are plain numbers.
        let mut registers: Registers = unsafe { std::mem::zeroed() };
        registers.rax = 0x5000;
        // mov ecx, [rax]; mov eax, [rip+0x10], which lies behind the instruction
        let read = memory_operands(&decode(&[0x8b, 0x08]), &registers);
        assert_eq!((read[0].start, read[0].end), (0x5000, 0x5004));
        let relative = memory_operands(&decode(&[0x8b, 0x05, 0x10, 0, 0, 0]), &registers);
        assert_eq!(relative[0].start, 0x1016);
    }
}
