//! Stacks of threads at an injection point, unwound with `.eh_frame`, which all distributions leave
//! in their binaries. Frames are the same in each run: the file, and the function with an offset or
//! the offset in the file.

use everett_native::{Caller, FrameRegisters, UnwindTables};
use nix::unistd::Pid;
use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::memory::mappings;

/// Maximum number of frames.
const MAX_FRAMES: usize = 24;
/// A file with code.
struct Module {
    name: String,
    /// File offset, size and address of each segment.
    segments: Vec<(u64, u64, u64)>,
    tables: UnwindTables,
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
            tables: UnwindTables::of(&file),
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
        let mut frame = FrameRegisters::of(registers);
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
            let at = frame.code().wrapping_sub(u64::from(!is_first));
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
            let word = |at: u64| {
                let mut bytes = [0; 8];
                let read = memory.read_exact_at(&mut bytes, at);
                read.ok().map(|()| u64::from_le_bytes(bytes))
            };
            match module.tables.caller(address, &frame, word) {
                Caller::Known(caller) => frame = caller,
                Caller::None | Caller::Unknown => break,
            }
        }
        frames
    }
}

/// Returns the texts of frames.
pub(super) fn texts(frames: &[Frame]) -> Vec<String> {
    frames.iter().map(|frame| frame.text.clone()).collect()
}
