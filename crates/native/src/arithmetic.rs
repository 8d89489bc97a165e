//! Detection of undefined arithmetic in native code: breakpoints at the instructions of a line
//! check whether a sum or product overflows, or a shift exceeds the width.

use std::collections::BTreeMap;
use std::path::Path;

use addr2line::Loader;
use everett_vm::BugKind;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, Register};
use object::{Object, ObjectSection};

use crate::call_stack::NativeFrame;
use crate::tracee::{Registers, Stopped, Tracee};

const BREAKPOINT: u8 = 0xcc;
/// The overflow flag.
const OVERFLOW: u64 = 0x800;

/// Watched instructions.
#[derive(Clone, Default, Debug)]
pub struct Arithmetic {
    points: BTreeMap<u64, WatchedInstruction>,
    kind: Option<BugKind>,
}

#[derive(Copy, Clone, Debug)]
struct WatchedInstruction {
    original: u8,
    /// Width of the shifted value; 0 for sums and products.
    width: u64,
}

impl Arithmetic {
    /// Finds the instructions of a line at which a finding of this kind can occur.
    pub fn of(program: &Path, file: &str, line: u32, kind: BugKind) -> Arithmetic {
        let mut found = Arithmetic {
            points: BTreeMap::new(),
            kind: Some(kind),
        };
        let (Ok(loader), Ok(bytes)) = (Loader::new(program), std::fs::read(program)) else {
            return found;
        };
        let Ok(object) = object::File::parse(&*bytes) else {
            return found;
        };
        let Some(text) = object.section_by_name(".text") else {
            return found;
        };
        let (start, end) = (text.address(), text.address() + text.size());
        let (Ok(code), Ok(ranges)) = (text.data(), loader.find_location_range(start, end)) else {
            return found;
        };
        for (from, len, location) in ranges {
            let place = NativeFrame {
                function: String::new(),
                file: location.file.unwrap_or_default().to_owned(),
                line: location.line.unwrap_or(0),
            };
            let at = (from - start) as usize;
            let Some(part) = code.get(at..at + len as usize) else {
                continue;
            };
            if place.line == line && place.is_of(file) {
                found.decode(part, from);
            }
        }
        found
    }

    fn decode(&mut self, code: &[u8], address: u64) {
        for instruction in &mut Decoder::with_ip(64, code, address, DecoderOptions::NONE) {
            let width = match self.kind {
                Some(BugKind::UndefinedShift) => shifted_bits(&instruction),
                _ => computes(&instruction).then_some(0),
            };
            if let Some(width) = width {
                let point = WatchedInstruction { original: 0, width };
                self.points.insert(instruction.ip(), point);
            }
        }
    }

    /// Sets breakpoints in a program that has not executed anything yet.
    pub fn watch(&mut self, tracee: &mut Tracee, bias: u64) {
        let points = std::mem::take(&mut self.points);
        for (address, mut point) in points {
            let address = address.wrapping_add(bias);
            let mut byte = [0];
            tracee.peek(address, &mut byte);
            point.original = byte[0];
            tracee.poke(address, &[BREAKPOINT]);
            self.points.insert(address, point);
        }
    }

    /// Handles a stopped thread: if it is at a watched instruction, executes it and returns how the
    /// thread stopped after it, and whether the finding occurred. `None` if it is elsewhere.
    pub fn execute(&self, tracee: &mut Tracee) -> std::io::Result<Option<(Stopped, bool)>> {
        let registers = tracee.registers()?;
        let address = registers.rip.wrapping_sub(1);
        let Some(point) = self.points.get(&address) else {
            return Ok(None);
        };
        tracee.set_registers(Registers {
            rip: address,
            ..registers
        })?;
        let too_far = point.width != 0 && registers.rcx & 0xff >= point.width;
        tracee.poke(address, &[point.original]);
        let stopped = tracee.step();
        tracee.poke(address, &[BREAKPOINT]);
        let overflows = point.width == 0 && tracee.registers()?.eflags & OVERFLOW != 0;
        Ok(Some((stopped?, too_far || overflows)))
    }

    /// Returns the kind of finding that is watched for.
    pub fn kind(&self) -> Option<BugKind> {
        self.kind
    }
}

/// Returns the width of the value that an instruction shifts by a variable amount.
fn shifted_bits(instruction: &Instruction) -> Option<u64> {
    let shifts = matches!(
        instruction.mnemonic(),
        Mnemonic::Shl | Mnemonic::Sal | Mnemonic::Shr | Mnemonic::Sar
    );
    (shifts && instruction.op1_register() == Register::CL).then(|| {
        match instruction.op0_register() {
            Register::None => 8 * instruction.memory_size().size() as u64,
            register => 8 * register.size() as u64,
        }
    })
}

/// Returns whether the result of an instruction may overflow.
fn computes(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Add
            | Mnemonic::Sub
            | Mnemonic::Imul
            | Mnemonic::Inc
            | Mnemonic::Dec
            | Mnemonic::Neg
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(kind: BugKind, code: &[u8]) -> Vec<(u64, u64)> {
        let mut arithmetic = Arithmetic {
            kind: Some(kind),
            ..Arithmetic::default()
        };
        arithmetic.decode(code, 0x1000);
        let points = arithmetic.points.iter();
        points.map(|(at, point)| (*at, point.width)).collect()
    }

    #[test]
    fn shifts_and_sums_are_told_apart() {
        // mov %edi,%eax; shl %cl,%eax; sar %cl,%rdx; shl $3,%eax; add %edi,%eax
        let code = [
            0x89, 0xf8, 0xd3, 0xe0, 0x48, 0xd3, 0xfa, 0xc1, 0xe0, 0x03, 0x01, 0xf8,
        ];
        assert_eq!(
            points(BugKind::UndefinedShift, &code),
            [(0x1002, 32), (0x1004, 64)]
        );
        assert_eq!(points(BugKind::Overflow, &code), [(0x100a, 0)]);
    }
}
