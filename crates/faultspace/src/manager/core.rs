//! Core files: the memory and the registers of a thread that crashes, for debuggers. The tracer
//! writes them itself, since a machine may send its core files elsewhere.

use nix::unistd::Pid;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use super::memory::{Mapping, mappings};

/// Maximum number of bytes of memory in a core file. Large mappings are left out first.
const MAX_MEMORY: u64 = 16 << 20;
const PAGE: u64 = 4096;
const HEADER: u64 = 64;
const PROGRAM_HEADER: u64 = 56;
/// Types of notes.
const STATUS: u32 = 1;
const PROCESS: u32 = 3;
const AUXILIARY: u32 = 6;
/// Types of program headers.
const LOAD: u32 = 1;
const NOTE: u32 = 4;

/// A mapping of the process, as a part of the core file.
struct Part {
    begin: u64,
    end: u64,
    /// Flags of a program header: 4 for reading, 2 for writing, 1 for executing.
    flags: u32,
    /// How many of its bytes belong into the core file. Of code, which a debugger finds in the
    /// program's own files, only the page with headers.
    wanted: u64,
    /// Its bytes in the core file.
    bytes: Vec<u8>,
}

/// Returns the core file of a stopped thread that a signal is about to end.
pub(super) fn of(pid: Pid, registers: &libc::user_regs_struct, signal: i32) -> Option<Vec<u8>> {
    let id = pid.as_raw();
    let memory = File::open(format!("/proc/{id}/mem")).ok()?;
    let mut parts: Vec<Part> = mappings(id).iter().filter_map(part).collect();
    read(&mut parts, &memory);
    let notes = [
        note(STATUS, &status(id, registers, signal)),
        note(PROCESS, &process(id)),
        note(AUXILIARY, &fs::read(format!("/proc/{id}/auxv")).ok()?),
    ];
    Some(assemble(&notes.concat(), &parts))
}

fn part(mapping: &Mapping) -> Option<Part> {
    let (file, rights) = (&mapping.file, &mapping.rights);
    // The kernel's variables cannot be read by others.
    (!file.starts_with("[vvar") && file != "[vsyscall]").then_some(())?;
    let flag = |right: char, flag: u32| u32::from(rights.contains(right)) * flag;
    let is_code = file.starts_with('/') && rights.contains('x') && !rights.contains('w');
    Some(Part {
        begin: mapping.begin,
        end: mapping.end,
        flags: flag('r', 4) | flag('w', 2) | flag('x', 1),
        wanted: match is_code {
            true => PAGE * u64::from(mapping.offset == 0),
            false => mapping.end.saturating_sub(mapping.begin),
        },
        bytes: Vec::new(),
    })
}

/// Reads the memory of as many mappings as fit, the small ones first: those of the stack and of
/// variables.
fn read(mappings: &mut [Part], memory: &File) {
    let mut order: Vec<usize> = (0..mappings.len()).collect();
    order.sort_by_key(|at| mappings[*at].wanted);
    let mut left = MAX_MEMORY;
    for at in order {
        let mapping = &mut mappings[at];
        let size = mapping.wanted;
        if mapping.flags & 4 == 0 || size > left {
            continue;
        }
        let mut bytes = vec![0; size as usize];
        if memory.read_exact_at(&mut bytes, mapping.begin).is_ok() {
            mapping.bytes = bytes;
            left -= size;
        }
    }
}

/// Writes numbers at offsets of a structure.
fn structure(size: usize, fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; size];
    for (at, field) in fields {
        bytes[*at..*at + field.len()].copy_from_slice(field);
    }
    bytes
}

/// `struct elf_prstatus`.
fn status(id: i32, r: &libc::user_regs_struct, signal: i32) -> Vec<u8> {
    let registers = [
        r.r15, r.r14, r.r13, r.r12, r.rbp, r.rbx, r.r11, r.r10, r.r9, r.r8, r.rax, r.rcx, r.rdx,
        r.rsi, r.rdi, r.orig_rax, r.rip, r.cs, r.eflags, r.rsp, r.ss, r.fs_base, r.gs_base, r.ds,
        r.es, r.fs, r.gs,
    ];
    let registers: Vec<u8> = registers
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let number = signal.to_le_bytes();
    let fields: [(usize, &[u8]); 4] = [
        (0, &number),
        (12, &number[..2]),
        (32, &id.to_le_bytes()),
        (112, &registers),
    ];
    structure(336, &fields)
}

/// `struct elf_prpsinfo`.
fn process(id: i32) -> Vec<u8> {
    let name = fs::read(format!("/proc/{id}/comm")).unwrap_or_default();
    let mut words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    words.iter_mut().for_each(|byte| {
        if *byte == 0 {
            *byte = b' ';
        }
    });
    let name = name.trim_ascii_end();
    let fields: [(usize, &[u8]); 3] = [
        (24, &id.to_le_bytes()),
        (40, &name[..name.len().min(15)]),
        (56, &words[..words.len().min(79)]),
    ];
    structure(136, &fields)
}

fn note(kind: u32, bytes: &[u8]) -> Vec<u8> {
    let mut note = Vec::new();
    for number in [5, bytes.len() as u32, kind] {
        note.extend(number.to_le_bytes());
    }
    note.extend(b"CORE\0\0\0\0");
    note.extend(bytes);
    note.resize(note.len().next_multiple_of(4), 0);
    note
}

/// A program header: type, flags, offset, address, size in the file, size in memory.
fn program_header(kind: u32, flags: u32, fields: [u64; 4]) -> Vec<u8> {
    let [offset, address, in_file, in_memory] = fields;
    let mut header = Vec::new();
    header.extend(kind.to_le_bytes());
    header.extend(flags.to_le_bytes());
    let align = if kind == LOAD { PAGE } else { 4 };
    for number in [offset, address, 0, in_file, in_memory, align] {
        header.extend(number.to_le_bytes());
    }
    header
}

fn assemble(notes: &[u8], mappings: &[Part]) -> Vec<u8> {
    let count = mappings.len().min(usize::from(u16::MAX) - 2);
    let mappings = &mappings[..count];
    let notes_at = HEADER + PROGRAM_HEADER * (count as u64 + 1);
    let mut core = b"\x7fELF\x02\x01\x01".to_vec();
    core.resize(16, 0);
    // A core file for x86-64, version 1, without entry point.
    core.extend([4, 0, 62, 0, 1, 0, 0, 0]);
    for number in [0, HEADER, 0] {
        core.extend(number.to_le_bytes());
    }
    core.extend(0_u32.to_le_bytes());
    let programs = count as u16 + 1;
    for number in [HEADER as u16, PROGRAM_HEADER as u16, programs, 0, 0, 0] {
        core.extend(number.to_le_bytes());
    }
    let size = notes.len() as u64;
    core.extend(program_header(NOTE, 0, [notes_at, 0, size, 0]));
    let mut offset = (notes_at + size).next_multiple_of(PAGE);
    for mapping in mappings {
        let (in_file, in_memory) = (mapping.bytes.len() as u64, mapping.end - mapping.begin);
        let fields = [offset, mapping.begin, in_file, in_memory];
        core.extend(program_header(LOAD, mapping.flags, fields));
        offset += in_file;
    }
    core.extend(notes);
    core.resize(core.len().next_multiple_of(PAGE as usize), 0);
    for mapping in mappings {
        core.extend(&mapping.bytes);
    }
    core
}

/// Packs a core file as text of an answer.
pub(super) fn pack(core: &[u8]) -> String {
    let packed = miniz_oxide::deflate::compress_to_vec(core, 1);
    packed.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Unpacks a core file; `None` if the text is damaged.
pub(crate) fn unpack(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    let bytes = digits.map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    let bytes: Option<Vec<u8>> = bytes.collect();
    let most = 2 * MAX_MEMORY as usize;
    miniz_oxide::inflate::decompress_to_vec_with_limit(&bytes?, most).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Object, ObjectKind, ObjectSegment};

    #[test]
    fn a_core_file_is_an_elf_file_with_its_memory() {
        let mapping = |begin, bytes: Vec<u8>| Part {
            begin,
            end: begin + PAGE,
            flags: 6,
            wanted: bytes.len() as u64,
            bytes,
        };
        let mappings = [
            mapping(0x1000, Vec::new()),
            mapping(0x5000, vec![7; PAGE as usize]),
        ];
        let core = assemble(&note(STATUS, &[1, 2, 3]), &mappings);
        let file = object::File::parse(&*core).unwrap();
        assert_eq!(file.kind(), ObjectKind::Core);
        let segments: Vec<_> = file.segments().collect();
        assert_eq!((segments[1].address(), segments[1].size()), (0x5000, PAGE));
        assert_eq!(segments[1].data().unwrap(), [7; PAGE as usize]);
        assert_eq!(unpack(&pack(&core)), Some(core));
        assert_eq!(unpack("0x"), None);
    }
}
