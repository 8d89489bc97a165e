//! Functions of native programs that are not executed: a breakpoint at the entry makes a thread
//! return at once, with a number from the model.

use std::collections::BTreeMap;
use std::path::Path;

use everett_vm::{ImageId, Replaced};
use object::{Object, ObjectSymbol, SymbolKind};

use crate::error::NativeError;
use crate::tracee::{Registers, Tracee};

/// The `int3` instruction.
const BREAKPOINT: u8 = 0xcc;

/// Replaced functions, by program and address.
#[derive(Clone, Default, Debug)]
pub struct Replacements {
    entries: BTreeMap<(ImageId, u64), Replaced>,
}

impl Replacements {
    /// Sets breakpoints in a program that has not executed anything yet.
    pub fn watch(
        &mut self,
        image: ImageId,
        functions: &[Replaced],
        program: &Path,
        tracee: &mut Tracee,
    ) -> Result<(), NativeError> {
        if functions.is_empty() {
            return Ok(());
        }
        let bytes = std::fs::read(program)?;
        let not_replaced = |name: &str| {
            let program = program.display();
            let message = format!("{program} has no function {name} of its own to replace");
            NativeError::NotReplayable(message)
        };
        let file = object::File::parse(&*bytes).map_err(|_| not_replaced(&functions[0].name))?;
        let bias = tracee.start_address()?.wrapping_sub(file.entry());
        for function in functions {
            let symbols = file.symbols().filter(|symbol| {
                symbol.kind() == SymbolKind::Text
                    && !symbol.is_undefined()
                    && symbol.name().is_ok_and(|name| name == function.symbol)
            });
            let mut is_found = false;
            for symbol in symbols {
                is_found = true;
                let address = symbol.address().wrapping_add(bias);
                tracee.poke(address, &[BREAKPOINT]);
                self.entries.insert((image, address), function.clone());
            }
            if !is_found {
                return Err(not_replaced(&function.name));
            }
        }
        Ok(())
    }

    /// Returns the function at whose entry a thread has stopped, and its registers.
    pub fn reached(
        &self,
        image: ImageId,
        tracee: &Tracee,
    ) -> std::io::Result<Option<(&Replaced, Registers)>> {
        if self.entries.is_empty() {
            return Ok(None);
        }
        let registers = tracee.registers()?;
        let function = self.entries.get(&(image, registers.rip.wrapping_sub(1)));
        Ok(function.map(|function| (function, registers)))
    }
}

/// Computes the number that a function returns from the bytes of an input. Random bytes may be
/// outside of the range.
pub fn number(function: &Replaced, bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    let count = bytes.len().min(8);
    whole[..count].copy_from_slice(&bytes[..count]);
    let mask = u64::MAX >> (64 - 8 * count.max(1));
    let (low, range) = (
        function.low as u64,
        function.high.wrapping_sub(function.low) as u64,
    );
    let distance = u64::from_le_bytes(whole).wrapping_sub(low) & mask;
    let distance = match range.checked_add(1) {
        Some(count) if distance > range => distance % count,
        _ => distance,
    };
    // Registers have all 64 bits, as after an extension by the sign of the range.
    low.wrapping_add(distance)
}

/// Returns from a function that a thread has just entered.
pub fn leave(tracee: &mut Tracee, mut registers: Registers, value: u64) -> std::io::Result<()> {
    let mut back = [0; 8];
    tracee.peek(registers.rsp, &mut back);
    registers.rip = u64::from_le_bytes(back);
    registers.rsp = registers.rsp.wrapping_add(8);
    registers.rax = value;
    tracee.set_registers(registers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn returning(low: i64, high: i64, bytes: u32) -> Replaced {
        Replaced {
            symbol: "f".to_owned(),
            name: "f".to_owned(),
            low,
            high,
            bytes,
        }
    }

    #[test]
    fn numbers_stay_in_their_range() {
        let cases = [
            (returning(-3, 4, 2), vec![0xfe, 0xff], -2i64 as u64),
            (returning(0, 65_535, 2), vec![0xfe, 0xff], 0xfffe),
            (returning(10, 12, 1), vec![13], 10),
            (returning(i64::MIN, i64::MAX, 8), vec![0xff; 8], u64::MAX),
        ];
        for (function, bytes, expected) in cases {
            assert_eq!(number(&function, &bytes), expected, "{bytes:?}");
        }
    }
}
