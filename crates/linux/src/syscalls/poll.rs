//! `poll` and `select`.

use everett_vm::Value;

use crate::errno::Errno;
use crate::ids::DescriptionId;
use crate::kernel::{Answer, Kernel, Stop};
use crate::limits::DESCRIPTORS;
use crate::objects::event;
use crate::process::TaskState;
use crate::signals::{SIGKILL, SIGSTOP, bit};
use crate::table::ArgKind::{Int, Pointer};
use crate::table::property::{ACQUIRES_ALL, POLLS, SELECTS};
use crate::table::{Call, Row};
use crate::wait::{ALWAYS, WaitCondition};

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new("poll", 7, &[Pointer, Int, Int], POLL_ERRORS, poll).with(POLLS | ACQUIRES_ALL),
    Row::new(
        "ppoll",
        271,
        &[Pointer, Int, Pointer, Pointer, Int],
        POLL_ERRORS,
        ppoll,
    )
    .with(POLLS | ACQUIRES_ALL),
    Row::new(
        "select",
        23,
        &[Int, Pointer, Pointer, Pointer, Pointer],
        POLL_ERRORS,
        select,
    )
    .with(POLLS | SELECTS | ACQUIRES_ALL),
    Row::new(
        "pselect6",
        270,
        &[Int, Pointer, Pointer, Pointer, Pointer, Pointer],
        POLL_ERRORS,
        pselect6,
    )
    .with(POLLS | SELECTS | ACQUIRES_ALL),
];

const POLL_ERRORS: &[Errno] = &[Errno::EINTR, Errno::ENOMEM];

fn poll(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let timeout = u64::try_from(call.int(2)).ok();
    let timeout = timeout.map(|milliseconds| milliseconds * 1_000_000);
    kernel.poll_descriptors(call.args[0], call.args[1] as u32, timeout, None)
}

fn ppoll(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let timeout = kernel.read_timeout(call.args[2])?;
    let mask = kernel.read_mask(call.args[3], call.args[4])?;
    let deadline = kernel.deadline(timeout);
    let polled = kernel.poll_descriptors(call.args[0], call.args[1] as u32, timeout, mask)?;
    kernel.write_time_left(call.args[2], deadline, 1)?;
    Ok(polled)
}

fn select(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const MICROSECOND: u64 = 1000;
    let timeout = match call.args[4] {
        0 => None,
        address => {
            let seconds = kernel.read_u64(address)? as i64;
            let micros = kernel.read_u64(address.wrapping_add(8))? as i64;
            let total = seconds.saturating_mul(1_000_000).saturating_add(micros);
            if seconds < 0 || micros < 0 {
                return Err(Errno::EINVAL.into());
            }
            Some((total as u64).saturating_mul(MICROSECOND))
        }
    };
    kernel.select_descriptors(call, timeout, None, MICROSECOND)
}

fn pselect6(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let timeout = kernel.read_timeout(call.args[4])?;
    let mask = match call.args[5] {
        0 => None,
        address => {
            let mask = kernel.read_u64(address)?;
            let size = kernel.read_u64(address.wrapping_add(8))?;
            kernel.read_mask(mask, size)?
        }
    };
    kernel.select_descriptors(call, timeout, mask, 1)
}

/// The sets of `select`, each with the events that put a descriptor into it.
const SETS: [u16; 3] = [
    event::IN | event::READ_NORMAL | event::READ_BAND | event::HANG_UP | event::ERROR,
    event::OUT | event::WRITE_NORMAL | event::WRITE_BAND | event::ERROR,
    event::PRIORITY,
];

impl Kernel<'_, '_> {
    /// Polls descriptors. `timeout` is in nanoseconds; `None` waits forever.
    fn poll_descriptors(
        &mut self,
        address: u64,
        count: u32,
        timeout: Option<u64>,
        mask: Option<u64>,
    ) -> Answer {
        if u64::from(count) > self.process().limits.soft(DESCRIPTORS) {
            return Err(Errno::EINVAL.into());
        }
        let mut entries = self.read_bytes(address, 8 * u64::from(count))?;
        self.check(address, entries.len() as u64, true)?;
        let mut waits_for = Vec::new();
        let mut ready = 0;
        for entry in entries.chunks_exact_mut(8) {
            let fd = i32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]);
            let events = u16::from_le_bytes([entry[4], entry[5]]);
            let happened = match self.process().descriptors.get(fd) {
                _ if fd < 0 => 0,
                Err(_) => event::INVALID,
                Ok(descriptor) => {
                    waits_for.push((descriptor.description, events));
                    let known = events | ALWAYS | event::INVALID;
                    self.host.readiness(descriptor.description) & known
                }
            };
            entry[6..].copy_from_slice(&happened.to_le_bytes());
            ready += u64::from(happened != 0);
        }
        let waited = match ready {
            0 => self.wait_for_descriptors(waits_for, timeout, mask, "poll"),
            _ => Ok(()),
        };
        // Empty events are stored even if a signal interrupts the wait.
        self.write_bytes(address, &entries)?;
        waited?;
        Ok(Value::concrete(ready))
    }

    /// Blocks until one of the open files has an event. `Ok` once the timeout has passed.
    fn wait_for_descriptors(
        &mut self,
        files: Vec<(DescriptionId, u16)>,
        timeout: Option<u64>,
        mask: Option<u64>,
        what: &'static str,
    ) -> Result<(), Stop> {
        if timeout != Some(0) {
            let deadline = self.deadline(timeout);
            return self.wait_masked(WaitCondition::Ready(files), deadline, mask, what);
        }
        // Signals that only the temporary mask admits interrupt the call even if it does not block.
        if let Some(mask) = mask {
            let mut task = TaskState::clone(self.task());
            task.blocked = mask;
            if self.host.has_deliverable_signal(&task) {
                self.set_temporary_mask(mask);
                return Err(Errno::EINTR.into());
            }
        }
        Ok(())
    }

    /// The deadline of a timeout on the virtual clock.
    fn deadline(&self, timeout: Option<u64>) -> Option<u64> {
        let new = self.host.clock_ns.saturating_add(timeout?);
        Some(self.task().deadline_ns.unwrap_or(new))
    }

    /// Stores the remaining time, in seconds and units of `unit_ns` nanoseconds.
    fn write_time_left(
        &mut self,
        address: u64,
        deadline: Option<u64>,
        unit_ns: u64,
    ) -> Result<(), Stop> {
        const SECOND: u64 = 1_000_000_000;
        let Some(deadline) = deadline else {
            return Ok(());
        };
        let left = deadline.saturating_sub(self.host.clock_ns);
        let words = [left / SECOND, left % SECOND / unit_ns];
        match self.write_bytes(address, &words.map(u64::to_le_bytes).concat()) {
            // A bad address is ignored.
            Err(Stop::Errno(_)) => Ok(()),
            other => other,
        }
    }

    fn select_descriptors(
        &mut self,
        call: &Call,
        timeout: Option<u64>,
        mask: Option<u64>,
        unit_ns: u64,
    ) -> Answer {
        let count = call.int(0);
        if count < 0 {
            return Err(Errno::EINVAL.into());
        }
        // Bits beyond the descriptor table are ignored and left unchanged.
        let count = (count as u64).min(self.process().descriptors.table_size());
        let len = count.div_ceil(64) * 8;
        let mut sets = Vec::with_capacity(SETS.len());
        for address in &call.args[1..=SETS.len()] {
            sets.push(match address {
                0 => None,
                address => {
                    self.check(*address, len, true)?;
                    Some(self.read_bytes(*address, len)?)
                }
            });
        }
        let deadline = self.deadline(timeout);
        let (ready, results, waits_for) = self.look_at_sets(count, &sets)?;
        if ready == 0 {
            self.wait_for_descriptors(waits_for, timeout, mask, "select")?;
        }
        for (address, result) in call.args[1..].iter().zip(results) {
            if *address != 0 {
                self.write_bytes(*address, &result)?;
            }
        }
        self.write_time_left(call.args[4], deadline, unit_ns)?;
        Ok(Value::concrete(ready))
    }

    /// The number of bits in the result, the result sets, and the events to wait for if there are
    /// none.
    #[allow(clippy::type_complexity)]
    fn look_at_sets(
        &self,
        count: u64,
        sets: &[Option<Vec<u8>>],
    ) -> Result<(u64, Vec<Vec<u8>>, Vec<(DescriptionId, u16)>), Errno> {
        let len = count.div_ceil(64) as usize * 8;
        let mut results = vec![vec![0; len]; sets.len()];
        let (mut ready, mut waits_for) = (0, Vec::new());
        for fd in 0..count as usize {
            let (byte, bit) = (fd / 8, 1 << (fd % 8));
            let is_in = |set: &Option<Vec<u8>>| set.as_ref().is_some_and(|s| s[byte] & bit != 0);
            if !sets.iter().any(is_in) {
                continue;
            }
            let description = self.process().descriptors.get(fd as i32)?.description;
            let happened = self.host.readiness(description);
            let mut wanted = 0;
            for (at, set) in sets.iter().enumerate() {
                if is_in(set) {
                    wanted |= SETS[at];
                    if happened & (SETS[at] | event::INVALID) != 0 {
                        results[at][byte] |= bit;
                        ready += 1;
                    }
                }
            }
            waits_for.push((description, wanted));
        }
        Ok((ready, results, waits_for))
    }

    /// Blocks with a temporary signal mask.
    pub fn wait_masked(
        &mut self,
        condition: WaitCondition,
        deadline_ns: Option<u64>,
        mask: Option<u64>,
        what: &'static str,
    ) -> Result<(), Stop> {
        let waited = self.wait(condition, deadline_ns, what);
        if let (Err(Stop::Block(_)), Some(mask)) = (&waited, mask) {
            self.set_temporary_mask(mask);
        }
        waited
    }

    /// Replaces the signal mask until the system call is over.
    pub fn set_temporary_mask(&mut self, mask: u64) {
        let task = self.task_mut();
        if task.restored_mask.is_none() {
            task.restored_mask = Some(task.blocked);
            task.blocked = mask & !(bit(SIGKILL) | bit(SIGSTOP));
        }
    }
}
