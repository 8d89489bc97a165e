//! Instructions that would tell a program about the real machine: they fault, and are answered here.

use everett_linux::Guest;

use crate::tracee::{Registers, Tracee};
use crate::world::NativeError;

/// Answers `rdtsc` and `rdtscp`, which fault, with the virtual clock.
pub fn emulate_counter(tracee: &mut Tracee, signal: i32, clock: u64) -> Result<bool, NativeError> {
    const SIGSEGV: i32 = 11;
    if signal != SIGSEGV {
        return Ok(false);
    }
    let registers = tracee.registers()?;
    let mut code = [0; 3];
    if !tracee.read(registers.rip, &mut code) {
        return Ok(false);
    }
    let len = match code {
        [0x0f, 0x31, _] => 2,
        [0x0f, 0x01, 0xf9] => 3,
        _ => return Ok(false),
    };
    tracee.set_registers(Registers {
        rip: registers.rip + len,
        rax: clock & 0xffff_ffff,
        rdx: clock >> 32,
        rcx: if len == 3 { 0 } else { registers.rcx },
        ..registers
    })?;
    Ok(true)
}
