//! Everett's own calls, by which a program controls its host. They are not Linux system calls: the
//! functions of `everett.h` and `cloud9.h` make them.

use everett_vm::{HYPERCALL_BASE, Value};
use triomphe::Arc;

use crate::config::PreemptAt;
use crate::errno::Errno;
use crate::faults::{RD, WR};
use crate::kernel::{Answer, Kernel, Stop};
use crate::schedule::Scheduler;
use crate::table::ArgKind::{Buffer, Fd, Int, Path};
use crate::table::{Call, Row};

/// Rows of this family, in the order of their numbers.
pub const ROWS: &[Row] = &[
    Row::new("everett_faults_enable", HYPERCALL_BASE, &[], &[], enable),
    Row::new(
        "everett_faults_disable",
        HYPERCALL_BASE + 1,
        &[],
        &[],
        disable,
    ),
    Row::new(
        "everett_set_max_heap",
        HYPERCALL_BASE + 2,
        &[Int],
        &[],
        set_max_heap,
    ),
    Row::new(
        "everett_set_scheduler",
        HYPERCALL_BASE + 3,
        &[Int, Int],
        &[],
        set_scheduler,
    ),
    Row::new(
        "everett_symbolic_source",
        HYPERCALL_BASE + 4,
        &[Fd, Int],
        &[],
        symbolic_source,
    ),
    Row::new(
        "everett_fragment",
        HYPERCALL_BASE + 5,
        &[Fd, Int],
        &[],
        fragment,
    ),
    Row::new(
        "everett_inject",
        HYPERCALL_BASE + 6,
        &[Fd, Int],
        &[],
        inject,
    ),
    Row::new(
        "everett_expose",
        HYPERCALL_BASE + 7,
        &[Path, Path, Buffer, Int],
        &[],
        expose,
    ),
];

fn enable(kernel: &mut Kernel<'_, '_>, _: &Call) -> Answer {
    kernel.host.faults.regions += 1;
    Ok(Value::ZERO)
}

fn disable(kernel: &mut Kernel<'_, '_>, _: &Call) -> Answer {
    let regions = &mut kernel.host.faults.regions;
    *regions = regions.saturating_sub(1);
    Ok(Value::ZERO)
}

fn set_max_heap(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.process_mut().max_heap = call.args[0];
    kernel.vm.max_heap = call.args[0];
    Ok(Value::ZERO)
}

/// Policies are numbered as in [`SCHEDULERS`](crate::SCHEDULERS).
fn set_scheduler(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let kind = Scheduler::at(call.args[0], call.args[1]).ok_or(Errno::EINVAL)?;
    kernel.host.schedule.change(kind);
    if kernel.host.options.preempt_at == PreemptAt::Quantum {
        Arc::make_mut(&mut kernel.host.options).preempt_at = PreemptAt::Atomics;
    }
    Ok(Value::ZERO)
}

/// `SIO_SYMBOLIC` of `cloud9.h`; the other requests follow it.
const SIO_SYMBOLIC: u64 = 0x4556_0001;

impl Kernel<'_, '_> {
    /// Handles a request of `cloud9.h`; `None` if it is another one.
    pub fn own_ioctl(&mut self, fd: i32, request: u64, argument: u64) -> Option<Answer> {
        const IN_PIECES: u32 = u32::MAX;
        match request.checked_sub(SIO_SYMBOLIC)? {
            0 => Some(self.mark_reads(fd, argument, |open, on| {
                open.symbolic = if on { u64::MAX } else { 0 };
            })),
            1 => Some(self.mark_reads(fd, argument, |open, on| {
                open.fragments = Some(if on { IN_PIECES } else { 0 });
            })),
            2 if argument & !u64::from(RD | WR) != 0 => Some(Err(Errno::EINVAL.into())),
            2 => Some(self.mark(fd, |open| open.faults = Some(argument as u8))),
            _ => None,
        }
    }

    /// Marks a descriptor for `RD`, or removes the mark for 0. `WR` is refused, since written bytes
    /// do not change: the program can mark the descriptor that reads them.
    fn mark_reads(
        &mut self,
        fd: i32,
        directions: u64,
        set: impl FnOnce(&mut crate::files::Description, bool),
    ) -> Answer {
        if directions > u64::from(RD) {
            return Err(Errno::EINVAL.into());
        }
        self.mark(fd, |open| set(open, directions != 0))
    }

    fn mark(&mut self, fd: i32, set: impl FnOnce(&mut crate::files::Description)) -> Answer {
        let (descriptor, _) = self.description(fd)?;
        if let Some(open) = self.host.files.description_mut(descriptor.description) {
            set(open);
        }
        Ok(Value::ZERO)
    }
}

/// Makes the next bytes read from a descriptor symbolic.
fn symbolic_source(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.mark(call.int(0), |open| open.symbolic = call.args[1])
}

/// Makes bytes arrive at a descriptor in at most this many fragments; 0 does not fragment.
fn fragment(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.mark(call.int(0), |open| {
        open.fragments = Some(call.args[1] as u32)
    })
}

/// Enables or disables injected failures of calls on a descriptor.
fn inject(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let directions = if call.args[1] == 0 { 0 } else { RD | WR };
    kernel.mark(call.int(0), |open| open.faults = Some(directions))
}

/// Maximum length of a text, such as the name of a state or key of exposed data.
const MAX_NAME: u64 = 256;

/// Exposes data to invariants: its current value replaces earlier data under the same state and
/// key.
fn expose(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let state = kernel.short_text(call.args[0])?;
    show(kernel, state, &call.args[1..4])?;
    Ok(Value::ZERO)
}

/// Exposes data under a state: key, address and length.
pub fn show(kernel: &mut Kernel<'_, '_>, state: String, shown: &[u64]) -> Result<(), Stop> {
    let key = kernel.short_text(shown[0])?;
    let bytes = kernel.read_buffer(shown[1], shown[2])?;
    let name = (state, key);
    kernel.note_origin(&name, shown[1], shown[2]);
    kernel.host.wire.shown.push(name.clone());
    Arc::make_mut(&mut kernel.host.exposed).insert(name, Arc::new(bytes));
    kernel.host.wire.mark_exposed();
    Ok(())
}

impl Kernel<'_, '_> {
    /// Reads a short NUL-terminated text.
    pub(super) fn short_text(&mut self, address: u64) -> Result<String, Stop> {
        let mut name = Vec::new();
        for at in 0..MAX_NAME {
            match self.read_bytes(address.wrapping_add(at), 1)?.first() {
                Some(0) | None => break,
                Some(byte) => name.push(*byte),
            }
        }
        Ok(String::from_utf8_lossy(&name).into_owned())
    }
}
