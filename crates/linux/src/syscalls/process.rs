//! The life of processes and threads.

use everett_vm::{Value, resize};

use crate::errno::Errno;
use crate::host::Ending;
use crate::kernel::{Kernel, Stop};
use crate::table::ArgKind::{Flags, Int, Pointer, Symbolic};
use crate::table::{Answer, Call, Row};

/// The family.
pub const ROWS: &[Row] = &[
    Row::new("exit", 60, &[Symbolic], &[], exit).without("several threads"),
    Row::new("exit_group", 231, &[Symbolic], &[], exit),
    Row::new("arch_prctl", 158, &[Int, Pointer], &[], arch_prctl).without("all but FS"),
    Row::new("set_tid_address", 218, &[Pointer], &[], set_tid_address),
    Row::new(
        "set_robust_list",
        273,
        &[Pointer, Int],
        &[],
        set_robust_list,
    ),
    Row::new("sched_yield", 24, &[], &[], sched_yield),
    Row::new(
        "sched_getaffinity",
        204,
        &[Int, Int, Pointer],
        &[],
        sched_getaffinity,
    )
    .without("other processes"),
    Row::new(
        "futex",
        202,
        &[Pointer, Flags, Symbolic, Pointer, Pointer, Int],
        &[],
        futex,
    )
    .without("several threads, requeueing, priority inheritance"),
    Row::new("prctl", 157, &[Int, Pointer, Int, Int, Int], &[], prctl).without(
        "all but PR_SET_NAME, PR_GET_NAME, PR_SET_PDEATHSIG, PR_GET_DUMPABLE, PR_SET_DUMPABLE",
    ),
    Row::new("membarrier", 324, &[Int, Flags, Int], &[], membarrier).without("all but CMD_QUERY"),
];

fn exit(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let status = kernel.exit_status(call.raw[0]);
    Err(Stop::End(Ending::Exit(status)))
}

impl Kernel<'_, '_> {
    /// The low 8 bits of what was given to `exit`.
    pub fn exit_status(&mut self, value: Value) -> Value {
        match value.term {
            None => Value::concrete(value.bits & 0xff),
            Some(term) => {
                let status = resize(self.vm.arena, term, 8);
                Value::of_term(self.vm.arena, status)
            }
        }
    }
}

fn arch_prctl(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const SET_FS: u64 = 0x1002;
    const GET_FS: u64 = 0x1003;
    match call.args[0] {
        SET_FS => kernel.vm.thread.fs_base = call.args[1],
        GET_FS => {
            let base = kernel.vm.thread.fs_base;
            kernel.write_bytes(call.args[1], &base.to_le_bytes())?;
        }
        _ => return Err(Errno::EINVAL.into()),
    }
    Ok(Value::ZERO)
}

fn set_tid_address(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.task.clear_child_tid = call.args[0];
    Ok(Value::concrete(u64::from(kernel.task.tid)))
}

fn set_robust_list(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const HEAD_SIZE: u64 = 24;
    if call.args[1] != HEAD_SIZE {
        return Err(Errno::EINVAL.into());
    }
    kernel.task.robust_list = (call.args[0], call.args[1]);
    Ok(Value::ZERO)
}

fn sched_yield(_: &mut Kernel<'_, '_>, _: &Call) -> Answer {
    Ok(Value::ZERO)
}

/// One processor.
fn sched_getaffinity(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let pid = call.int(0) as u32;
    if pid != 0 && pid != kernel.process.pid && pid != kernel.task.tid {
        return Err(Errno::ESRCH.into());
    }
    if call.args[1] < 8 || !call.args[1].is_multiple_of(8) {
        return Err(Errno::EINVAL.into());
    }
    kernel.write_bytes(call.args[2], &1u64.to_le_bytes())?;
    Ok(Value::concrete(8))
}

fn futex(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const WAIT: u64 = 0;
    const WAKE: u64 = 1;
    const REQUEUE: u64 = 3;
    const CMP_REQUEUE: u64 = 4;
    const WAKE_OP: u64 = 5;
    const WAIT_BITSET: u64 = 9;
    const WAKE_BITSET: u64 = 10;
    const PRIVATE: u64 = 128;
    const CLOCK_REALTIME: u64 = 256;
    let operation = call.args[1] & !(PRIVATE | CLOCK_REALTIME);
    match operation {
        WAIT | WAIT_BITSET => {
            if !call.args[0].is_multiple_of(4) {
                return Err(Errno::EINVAL.into());
            }
            let now = kernel.host.clock_ns;
            let deadline = match call.args[3] {
                0 => None,
                timeout if operation == WAIT => {
                    Some(now.saturating_add(kernel.read_time(timeout)?))
                }
                timeout if call.args[1] & CLOCK_REALTIME != 0 => {
                    let at = kernel.read_time(timeout)?;
                    Some(at.saturating_sub(kernel.host.start_time_ns))
                }
                timeout => Some(kernel.read_time(timeout)?),
            };
            let held = kernel
                .read_value(call.args[0], 4)?
                .to_term(kernel.vm.arena, 32);
            let expected = call.raw[2].to_term(kernel.vm.arena, 32);
            let same = kernel.vm.arena.eq(held, expected);
            if !kernel.vm.decide_term(same)? {
                return Err(Errno::EAGAIN.into());
            }
            match deadline {
                None => Err(Stop::Block(None, "futex")),
                Some(deadline) => {
                    kernel.wait_until(deadline, "futex")?;
                    Err(Errno::ETIMEDOUT.into())
                }
            }
        }
        // Nobody else is there to be woken.
        WAKE | WAKE_BITSET | REQUEUE | CMP_REQUEUE | WAKE_OP => Ok(Value::ZERO),
        _ => Err(Errno::ENOSYS.into()),
    }
}

fn prctl(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const SET_PDEATHSIG: u64 = 1;
    const GET_DUMPABLE: u64 = 3;
    const SET_DUMPABLE: u64 = 4;
    const SET_NAME: u64 = 15;
    const GET_NAME: u64 = 16;
    match call.args[0] {
        SET_PDEATHSIG | SET_DUMPABLE => {}
        GET_DUMPABLE => return Ok(Value::concrete(1)),
        SET_NAME => {
            let mut name = [0; 16];
            for (at, byte) in name.iter_mut().enumerate().take(15) {
                *byte = kernel.read_bytes(call.args[1].wrapping_add(at as u64), 1)?[0];
                if *byte == 0 {
                    break;
                }
            }
            kernel.process.name = name;
        }
        GET_NAME => {
            let name = kernel.process.name;
            kernel.write_bytes(call.args[1], &name)?;
        }
        operation => {
            kernel
                .host
                .warn(format!("prctl operation {operation} is not modelled"));
            return Err(Errno::EINVAL.into());
        }
    }
    Ok(Value::ZERO)
}

/// No command is offered, so that programs take their other way.
fn membarrier(_: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    match call.args[0] {
        0 => Ok(Value::ZERO),
        _ => Err(Errno::EINVAL.into()),
    }
}
