//! Process descriptors: `pidfd_open`, `pidfd_send_signal` and `pidfd_getfd`.

use everett_vm::Value;

use crate::errno::Errno;
use crate::files::{Descriptor, OpenFlags};
use crate::kernel::{Answer, Kernel, Stop};
use crate::objects::{Object, process_of};
use crate::process::ExitState;
use crate::signals::{Signal, code, is_signal};
use crate::table::ArgKind::{Fd, Flags, Int, Pointer};
use crate::table::property::SIGNALS;
use crate::table::{Call, Row};

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new(
        "pidfd_open",
        434,
        &[Int, Flags],
        &[Errno::EMFILE],
        pidfd_open,
    )
    .without("threads"),
    Row::new(
        "pidfd_send_signal",
        424,
        &[Fd, Int, Pointer, Flags],
        &[],
        pidfd_send_signal,
    )
    .with(SIGNALS),
    Row::new(
        "pidfd_getfd",
        438,
        &[Fd, Int, Flags],
        &[Errno::EMFILE],
        pidfd_getfd,
    ),
];

fn pidfd_open(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    /// `PIDFD_THREAD`, which is `O_EXCL`.
    const THREAD: u32 = 0o200;
    let flags = call.args[1] as u32;
    if flags & THREAD != 0 {
        kernel.refuse("pidfd_open", "PIDFD_THREAD");
    }
    if flags & !OpenFlags::NONBLOCK != 0 || call.int(0) <= 0 {
        return Err(Errno::EINVAL.into());
    }
    let pid = kernel.process_or_self(call.int(0))?.pid;
    let flags = flags | OpenFlags::READ_WRITE | OpenFlags::CLOSE_ON_EXEC;
    let fd = kernel.open_new(Object::Process(pid), flags)?;
    Ok(Value::concrete(fd as u64))
}

fn pidfd_send_signal(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    if call.args[3] != 0 {
        kernel.refuse("pidfd_send_signal", "flags of pidfd_send_signal");
        return Err(Errno::EINVAL.into());
    }
    let pid = kernel.process_of_descriptor(call.int(0))?;
    let number = call.int(1);
    if number != 0 && !is_signal(number) {
        return Err(Errno::EINVAL.into());
    }
    let signal = match call.args[2] {
        0 => Signal::from_process(number, code::USER, kernel.process()),
        address => {
            let signal = kernel.read_signal(number, address, pid)?;
            let described = kernel.read_value(address, 4)?;
            if kernel.vm.concretize(described)? as i32 != number {
                return Err(Errno::EINVAL.into());
            }
            signal
        }
    };
    let target = kernel.host.process_by_pid(pid);
    if target.is_none_or(|target| matches!(target.exit_state, ExitState::Reaped)) {
        return Err(Errno::ESRCH.into());
    }
    if !kernel.may_signal(pid, number) {
        return Err(Errno::EPERM.into());
    }
    if number != 0 {
        kernel.host.send(pid, signal);
    }
    Ok(Value::ZERO)
}

/// Duplicates a descriptor of another process.
fn pidfd_getfd(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    if call.args[2] != 0 {
        return Err(Errno::EINVAL.into());
    }
    let pid = kernel.process_of_descriptor(call.int(0))?;
    let target = kernel.host.process_by_pid(pid);
    let target = target.filter(|one| matches!(one.exit_state, ExitState::Alive));
    let target = target.ok_or(Errno::ESRCH)?;
    if !kernel.may_trace(target) {
        return Err(Errno::EPERM.into());
    }
    let descriptor = target.descriptors.get(call.int(1))?;
    let fd = kernel.process().descriptors.free_from(0)?;
    kernel.host.files.retain(descriptor.description);
    let copy = Descriptor {
        close_on_exec: true,
        ..descriptor
    };
    kernel.process_mut().descriptors.set(fd, Some(copy));
    Ok(Value::concrete(fd as u64))
}

impl Kernel<'_, '_> {
    /// The pid behind a pidfd.
    pub fn process_of_descriptor(&mut self, fd: i32) -> Result<u32, Stop> {
        let (descriptor, description) = self.description(fd)?;
        let open = self.host.open_object(descriptor.description, &description);
        let pid = open.and_then(|(open, _)| process_of(self.host, open));
        Ok(pid.ok_or(Errno::EBADF)?)
    }
}
