//! Finds instructions that reveal the real machine and that the processor cannot trap. These can
//! only be reported.

use std::path::Path;

use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};

/// Returns the names of instructions in a program whose results are those of the real machine.
pub fn revealing_instructions(program: &Path) -> Vec<&'static str> {
    let Ok(bytes) = std::fs::read(program) else {
        return Vec::new();
    };
    let Ok(object) = object::File::parse(&*bytes) else {
        return Vec::new();
    };
    let mut functions: Vec<(u64, u64)> = object
        .symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
        .map(|symbol| (symbol.address(), symbol.size()))
        .collect();
    functions.sort_unstable();
    let traps_cpuid = can_trap_cpuid();
    let mut names = Vec::new();
    let texts = object.sections();
    for section in texts.filter(|section| section.kind() == SectionKind::Text) {
        let code = section.data().unwrap_or_default();
        find(code, section.address(), &functions, &mut names);
    }
    names.retain(|name| *name != CPUID || !traps_cpuid);
    names.sort_unstable();
    names.dedup();
    names
}

const CPUID: &str = "cpuid";

/// Returns whether bytes can be the opcode of a revealing instruction.
fn is_candidate(bytes: &[u8]) -> bool {
    // `rdrand`, `rdseed` and `rdpid` of a register; `cpuid`.
    matches!(bytes, [0x0f, 0xc7, 0xf0..=0xff, ..] | [0x0f, 0xa2, ..]) || is_common(bytes)
}

/// Returns whether bytes can be the opcode of a revealing instruction and often occur within
/// others: `lsl`, which reads the number of the processor from a segment, and `xbegin`, which fails
/// when the real kernel interrupts.
fn is_common(bytes: &[u8]) -> bool {
    matches!(bytes, [0x0f, 0x03, ..] | [0xc7, 0xf8, ..])
}

/// Finds revealing instructions in code at an address. The function around a candidate is decoded
/// from its start, since the bytes can be part of other instructions.
fn find(code: &[u8], start: u64, functions: &[(u64, u64)], names: &mut Vec<&'static str>) {
    for at in (0..code.len()).filter(|at| is_candidate(&code[*at..])) {
        let address = start + at as u64;
        let behind = functions.partition_point(|(from, _)| *from <= address);
        let around = functions[..behind].last();
        let around = around.filter(|(from, size)| *from >= start && address < from + size);
        if around.is_none() && is_common(&code[at..]) {
            continue;
        }
        let from = around.map_or(address, |(from, _)| *from);
        let part = &code[(from - start) as usize..];
        let mut decoder = Decoder::with_ip(64, part, from, DecoderOptions::NONE);
        while decoder.can_decode() && decoder.ip() <= address {
            match decoder.decode().mnemonic() {
                Mnemonic::Rdrand => names.push("rdrand"),
                Mnemonic::Rdseed => names.push("rdseed"),
                Mnemonic::Rdpid => names.push("rdpid"),
                Mnemonic::Cpuid => names.push(CPUID),
                Mnemonic::Lsl => names.push("lsl"),
                Mnemonic::Xbegin => names.push("xbegin"),
                _ => {}
            }
        }
    }
}

/// Returns whether the processor can trap `cpuid`.
fn can_trap_cpuid() -> bool {
    const ARCH_SET_CPUID: libc::c_int = 0x1012;
    // SAFETY: numbers only; 1 leaves the instruction as it is.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_SET_CPUID, 1) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(code: &[u8], functions: &[(u64, u64)]) -> Vec<&'static str> {
        let mut names = Vec::new();
        find(code, 0x1000, functions, &mut names);
        // Some bytes of one instruction can be taken for another.
        names.dedup();
        names
    }

    #[test]
    fn instructions_are_told_from_bytes_of_others() {
        let rdrand = [0x90, 0x48, 0x0f, 0xc7, 0xf0, 0xc3];
        assert_eq!(names(&rdrand, &[(0x1000, 6)]), ["rdrand"]);
        assert_eq!(names(&rdrand, &[]), ["rdrand"]);
        let rdpid = [0xf3, 0x0f, 0xc7, 0xf8];
        assert_eq!(names(&rdpid, &[(0x1000, 4)]), ["rdpid"]);
        assert_eq!(names(&[0x0f, 0xc7, 0xf8], &[]), ["rdseed"]);
        assert_eq!(names(&[0x0f, 0xa2], &[]), ["cpuid"]);
        let lsl = [0x48, 0x0f, 0x03, 0xc1];
        assert_eq!(names(&lsl, &[(0x1000, 4)]), ["lsl"]);
        assert_eq!(names(&lsl, &[]), Vec::<&str>::new());
        let xbegin = [0xc7, 0xf8, 0, 0, 0, 0];
        assert_eq!(names(&xbegin, &[(0x1000, 6)]), ["xbegin"]);
        // jmp +15; add eax, [rax]
        let jump = [0xeb, 0x0f, 0x03, 0x00];
        assert_eq!(names(&jump, &[(0x1000, 4)]), Vec::<&str>::new());
        // mov eax, 0xf0c70f90; cmpxchg8b [rdi]
        let others = [0xb8, 0x90, 0x0f, 0xc7, 0xf0, 0x0f, 0xc7, 0x0f];
        assert_eq!(names(&others, &[(0x1000, 8)]), Vec::<&str>::new());
    }
}
