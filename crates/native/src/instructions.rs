//! Emulates instructions that would reveal the real machine, such as `cpuid` and `rdtsc`: these are
//! made to fault.

use crate::error::NativeError;
use crate::tracee::{Registers, Tracee};

const RDTSC: [u8; 2] = [0x0f, 0x31];
const RDTSCP: [u8; 3] = [0x0f, 0x01, 0xf9];
const CPUID: [u8; 2] = [0x0f, 0xa2];
const LOW: u64 = 0xffff_ffff;

/// Emulates `rdtsc` and `rdtscp` with the virtual clock, and `cpuid` with the vm's processor.
/// Returns `false` if the thread is at another instruction.
pub fn emulate(tracee: &mut Tracee, signal: i32, clock: u64) -> Result<bool, NativeError> {
    if signal != libc::SIGSEGV {
        return Ok(false);
    }
    let before = tracee.registers()?;
    let mut code = [0; 3];
    // The third byte may lie on an unmapped page.
    if !tracee.peek(before.rip, &mut code[..2]) {
        return Ok(false);
    }
    tracee.peek(before.rip + 2, &mut code[2..]);
    let Some(after) = executed(&before, code, clock) else {
        return Ok(false);
    };
    tracee.set_registers(after)?;
    Ok(true)
}

fn executed(before: &Registers, code: [u8; 3], clock: u64) -> Option<Registers> {
    let counted = Registers {
        rax: clock & LOW,
        rdx: clock >> 32,
        ..*before
    };
    let at = |len: usize| before.rip + len as u64;
    if code == RDTSCP {
        let (rip, rcx) = (at(RDTSCP.len()), 0);
        return Some(Registers {
            rip,
            rcx,
            ..counted
        });
    }
    match [code[0], code[1]] {
        RDTSC => Some(Registers {
            rip: at(RDTSC.len()),
            ..counted
        }),
        CPUID => {
            let [rax, rbx, rcx, rdx] = everett_vm::processor(before.rax & LOW);
            Some(Registers {
                rip: at(CPUID.len()),
                rax,
                rbx,
                rcx,
                rdx,
                ..*before
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registers() -> Registers {
        // SAFETY: registers are plain numbers.
        let zero: Registers = unsafe { std::mem::zeroed() };
        Registers {
            rip: 0x1000,
            rcx: 7,
            ..zero
        }
    }

    #[test]
    fn the_counter_is_the_virtual_clock() {
        let clock = 0x1_0000_0002;
        let after = executed(&registers(), [0x0f, 0x31, 0xf9], clock).expect("rdtsc");
        assert_eq!(
            (after.rip, after.rax, after.rdx, after.rcx),
            (0x1002, 2, 1, 7)
        );
        let after = executed(&registers(), RDTSCP, clock).expect("rdtscp");
        assert_eq!(
            (after.rip, after.rax, after.rdx, after.rcx),
            (0x1003, 2, 1, 0)
        );
    }

    #[test]
    fn the_processor_is_that_of_the_vm() {
        let after = executed(&registers(), [0x0f, 0xa2, 0], 0).expect("cpuid");
        assert_eq!(after.rip, 0x1002);
        assert_eq!(after.rbx, 0x756e_6547);
    }

    #[test]
    fn other_faults_are_faults() {
        assert!(executed(&registers(), [0x8b, 0x00, 0x00], 0).is_none());
    }
}
