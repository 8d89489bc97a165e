//! Stacks of threads at an injection point, unwound with `.eh_frame`, which all distributions leave
//! in their binaries. Frames are the same in each run: the file, and the function with an offset or
//! the offset in the file.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, LittleEndian, Register, RegisterRule, UnwindContext,
    UnwindSection,
};
use nix::unistd::Pid;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::memory::mappings;

/// Maximum number of frames.
const MAX_FRAMES: usize = 24;
/// Register numbers of DWARF.
const STACK_POINTER: u16 = 7;
const RETURN_ADDRESS: u16 = 16;
const REGISTERS: usize = 17;

/// A file with code.
struct Module {
    name: String,
    /// File offset, size and address of each segment.
    segments: Vec<(u64, u64, u64)>,
    frames: Vec<u8>,
    frames_at: u64,
    text_at: u64,
    /// Functions by address: size and name.
    functions: BTreeMap<u64, (u64, String)>,
}

impl Module {
    fn read(path: &str) -> Option<Module> {
        let bytes = fs::read(path).ok()?;
        let file = object::File::parse(&*bytes).ok()?;
        let segments = file.segments().map(|segment| {
            let (offset, size) = segment.file_range();
            (offset, size, segment.address())
        });
        let frames = file.section_by_name(".eh_frame");
        let symbols = file.symbols().chain(file.dynamic_symbols());
        let functions =
            symbols.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.address() != 0);
        let named = functions.filter_map(|symbol| {
            let name = symbol.name().ok()?.to_owned();
            Some((symbol.address(), (symbol.size(), name)))
        });
        let last = Path::new(path).file_name()?;
        Some(Module {
            name: last.to_string_lossy().into_owned(),
            segments: segments.collect(),
            frames_at: frames.as_ref().map_or(0, ObjectSection::address),
            frames: frames
                .and_then(|frames| frames.data().ok().map(<[u8]>::to_vec))
                .unwrap_or_default(),
            text_at: file
                .section_by_name(".text")
                .map_or(0, |text| text.address()),
            functions: named.collect(),
        })
    }

    /// Returns the address for an offset in the file.
    fn address(&self, place: u64) -> Option<u64> {
        let found = self
            .segments
            .iter()
            .find(|(begin, size, _)| (*begin..begin + size).contains(&place));
        found.map(|(begin, _, address)| place - begin + address)
    }

    fn describe(&self, address: u64) -> String {
        let before = self.functions.range(..=address).next_back();
        match before.filter(|(at, (size, _))| address < **at + (*size).max(1)) {
            Some((at, (_, name))) => format!("{}!{name}+{:#x}", self.name, address - at),
            None => format!("{}+{address:#x}", self.name),
        }
    }
}

/// A frame of a stack.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    /// The file with its code.
    pub file: String,
    /// The address in the file, of the call if it is not the innermost frame.
    pub address: u64,
    /// The file, and the function with an offset or the address.
    pub text: String,
}

/// Unwinds stacks. Files are read once.
#[derive(Default)]
pub(super) struct Unwinder {
    modules: BTreeMap<String, Option<Module>>,
}

impl Unwinder {
    /// Returns the stack of a stopped thread, innermost frame first.
    pub(super) fn stack(&mut self, pid: Pid, registers: &libc::user_regs_struct) -> Vec<Frame> {
        let r = registers;
        let mut values = [
            r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11,
            r.r12, r.r13, r.r14, r.r15, r.rip,
        ];
        let pid = pid.as_raw();
        let Ok(memory) = File::open(format!("/proc/{pid}/mem")) else {
            return Vec::new();
        };
        let mut mappings = mappings(pid);
        mappings.retain(|mapping| mapping.rights.contains('x'));
        let mut frames: Vec<Frame> = Vec::new();
        while frames.len() < MAX_FRAMES {
            // A return address follows the call, which may be the last instruction of its function.
            let is_first = frames.is_empty();
            let at = values[usize::from(RETURN_ADDRESS)].wrapping_sub(u64::from(!is_first));
            let mut mappings = mappings.iter();
            let Some(mapping) = mappings.find(|one| (one.begin..one.end).contains(&at)) else {
                break;
            };
            // Inside the namespaces, the same path leads to the same file.
            let module = self
                .modules
                .entry(mapping.file.clone())
                .or_insert_with(|| Module::read(&mapping.file));
            let file = mapping.file.clone();
            let Some(module) = module else {
                frames.push(Frame {
                    text: file.clone(),
                    file,
                    address: 0,
                });
                break;
            };
            let Some(address) = module.address(at - mapping.begin + mapping.offset) else {
                break;
            };
            frames.push(Frame {
                text: module.describe(address),
                file,
                address,
            });
            if !unwind(module, address, &mut values, &memory) {
                break;
            }
        }
        frames
    }
}

/// Returns the texts of frames.
pub(super) fn texts(frames: &[Frame]) -> Vec<String> {
    frames.iter().map(|frame| frame.text.clone()).collect()
}

/// Unwinds to the caller. Returns `false` if it is not known.
fn unwind(module: &Module, address: u64, values: &mut [u64; REGISTERS], memory: &File) -> bool {
    let section = EhFrame::new(&module.frames, LittleEndian);
    let bases = BaseAddresses::default()
        .set_eh_frame(module.frames_at)
        .set_text(module.text_at);
    let mut context = UnwindContext::new();
    let found =
        section.unwind_info_for_address(&bases, &mut context, address, EhFrame::cie_from_offset);
    let Ok(row) = found else {
        return false;
    };
    let word = |at: u64| {
        let mut bytes = [0; 8];
        memory
            .read_exact_at(&mut bytes, at)
            .ok()
            .map(|()| u64::from_le_bytes(bytes))
    };
    let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else {
        return false;
    };
    let Some(base) = values.get(usize::from(register.0)) else {
        return false;
    };
    let frame = base.wrapping_add_signed(*offset);
    let mut callers = *values;
    callers[usize::from(STACK_POINTER)] = frame;
    for number in 0..REGISTERS as u16 {
        let value = match row.register(Register(number)) {
            Some(RegisterRule::Offset(offset)) => word(frame.wrapping_add_signed(offset)),
            Some(RegisterRule::ValOffset(offset)) => Some(frame.wrapping_add_signed(offset)),
            // The outermost frame declares that it has no caller.
            Some(RegisterRule::Undefined) if number == RETURN_ADDRESS => return false,
            _ => continue,
        };
        match value {
            Some(value) => callers[usize::from(number)] = value,
            None => return false,
        }
    }
    let is_further = callers[usize::from(RETURN_ADDRESS)] != values[usize::from(RETURN_ADDRESS)]
        && frame > values[usize::from(STACK_POINTER)];
    *values = callers;
    is_further
}
