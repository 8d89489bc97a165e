//! Unwinds stacks by `.eh_frame`, which compilers and distributions leave in nearly all programs:
//! also through functions without frame pointers. Reads no files and no processes: tables and memory
//! are given.

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EhFrameOffset, LittleEndian, Register, RegisterRule,
    UnwindContext, UnwindSection,
};
use object::{Object, ObjectSection};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Register numbers of DWARF.
const FRAME_POINTER: u16 = 6;
const STACK_POINTER: u16 = 7;
const RETURN_ADDRESS: u16 = 16;
const REGISTERS: usize = 17;

/// The registers of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameRegisters([u64; REGISTERS]);

impl FrameRegisters {
    /// The registers of a stopped thread.
    pub fn of(r: &libc::user_regs_struct) -> FrameRegisters {
        FrameRegisters([
            r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11,
            r.r12, r.r13, r.r14, r.r15, r.rip,
        ])
    }

    /// The address that is executed, or to which a call returns.
    pub fn code(&self) -> u64 {
        self.0[usize::from(RETURN_ADDRESS)]
    }

    /// Replaces this address.
    pub fn set_code(&mut self, address: u64) {
        self.0[usize::from(RETURN_ADDRESS)] = address;
    }

    /// Returns the caller of a frame to whose begin the frame pointer leads, if it does.
    pub fn behind_frame_pointer(
        &self,
        mut word: impl FnMut(u64) -> Option<u64>,
    ) -> Option<FrameRegisters> {
        let [frame, stack] = [FRAME_POINTER, STACK_POINTER].map(|at| self.0[usize::from(at)]);
        if !frame.is_multiple_of(8) || frame < stack {
            return None;
        }
        let (next, back) = (word(frame)?, word(frame.checked_add(8)?)?);
        let mut caller = *self;
        caller.0[usize::from(FRAME_POINTER)] = next;
        caller.0[usize::from(STACK_POINTER)] = frame + 16;
        caller.set_code(back);
        Some(caller)
    }
}

/// The caller of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Caller {
    /// Its registers.
    Known(FrameRegisters),
    /// There is none: the frame is the outermost one.
    None,
    /// The tables do not describe the frame.
    Unknown,
}

/// The unwind tables of a program.
#[derive(Clone, Default, Debug)]
pub struct UnwindTables {
    frames: Vec<u8>,
    frames_at: u64,
    text_at: u64,
    /// The functions that are described, by their first address: the address after the last one,
    /// and where the description begins. Read when the first stack is.
    functions: OnceLock<BTreeMap<u64, (u64, usize)>>,
}

impl UnwindTables {
    /// Reads the tables of a program; those of a program without them describe nothing.
    pub fn of(file: &object::File) -> UnwindTables {
        let section = |name| file.section_by_name(name);
        let frames = section(".eh_frame");
        let data = frames.as_ref().and_then(|frames| frames.data().ok());
        UnwindTables {
            frames: data.map(<[u8]>::to_vec).unwrap_or_default(),
            frames_at: frames.as_ref().map_or(0, ObjectSection::address),
            text_at: section(".text").map_or(0, |text| text.address()),
            functions: OnceLock::new(),
        }
    }

    fn section(&self) -> EhFrame<gimli::EndianSlice<'_, LittleEndian>> {
        EhFrame::new(&self.frames, LittleEndian)
    }

    fn bases(&self) -> BaseAddresses {
        let bases = BaseAddresses::default();
        bases.set_eh_frame(self.frames_at).set_text(self.text_at)
    }

    fn read_functions(&self) -> BTreeMap<u64, (u64, usize)> {
        let (section, bases) = (self.section(), self.bases());
        let mut functions = BTreeMap::new();
        let mut entries = section.entries(&bases);
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(part) = entry else { continue };
            let Ok(fde) = part.parse(EhFrame::cie_from_offset) else {
                continue;
            };
            let begin = fde.initial_address();
            functions.insert(begin, (begin.saturating_add(fde.len()), fde.offset()));
        }
        functions
    }

    /// Returns the caller of a frame. `address` is where it is in the file: of the instruction that
    /// is executed, or of a call. `word` reads the memory of the process.
    pub fn caller(
        &self,
        address: u64,
        callee: &FrameRegisters,
        mut word: impl FnMut(u64) -> Option<u64>,
    ) -> Caller {
        let functions = self.functions.get_or_init(|| self.read_functions());
        let before = functions.range(..=address).next_back();
        let Some((_, (_, offset))) = before.filter(|(_, (end, _))| address < *end) else {
            return Caller::Unknown;
        };
        let (section, bases) = (self.section(), self.bases());
        let fde = section.fde_from_offset(&bases, EhFrameOffset(*offset), EhFrame::cie_from_offset);
        let mut context = UnwindContext::new();
        let row = match &fde {
            Ok(fde) => fde.unwind_info_for_address(&section, &bases, &mut context, address),
            Err(_) => return Caller::Unknown,
        };
        let Ok(row) = row else {
            return Caller::Unknown;
        };
        let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else {
            return Caller::Unknown;
        };
        let Some(base) = callee.0.get(usize::from(register.0)) else {
            return Caller::Unknown;
        };
        let frame = base.wrapping_add_signed(*offset);
        let mut caller = *callee;
        caller.0[usize::from(STACK_POINTER)] = frame;
        for number in 0..REGISTERS as u16 {
            let value = match row.register(Register(number)) {
                Some(RegisterRule::Offset(offset)) => word(frame.wrapping_add_signed(offset)),
                Some(RegisterRule::ValOffset(offset)) => Some(frame.wrapping_add_signed(offset)),
                // The outermost frame declares that it has no caller.
                Some(RegisterRule::Undefined) if number == RETURN_ADDRESS => return Caller::None,
                _ => continue,
            };
            match value {
                Some(value) => caller.0[usize::from(number)] = value,
                None => return Caller::Unknown,
            }
        }
        // Wrong tables must not make a stack endless.
        let is_further =
            caller.code() != callee.code() && frame > callee.0[usize::from(STACK_POINTER)];
        match is_further {
            true => Caller::Known(caller),
            false => Caller::None,
        }
    }
}
