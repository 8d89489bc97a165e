//! Waiting for descriptors.

use everett_vm::Value;

use crate::errno::Errno;
use crate::kernel::Kernel;
use crate::objects::event;
use crate::table::ArgKind::{Int, Pointer};
use crate::table::{Answer, Call, Row};
use crate::wait::{ALWAYS, Until};

/// The family.
pub const ROWS: &[Row] = &[
    Row::new("poll", 7, &[Pointer, Int, Int], &[Errno::EINTR], poll),
    Row::new(
        "ppoll",
        271,
        &[Pointer, Int, Pointer, Pointer, Int],
        &[Errno::EINTR],
        ppoll,
    )
    .without("the mask of signals"),
];

/// Most descriptors of one call.
const MOST: u64 = 1024;

fn poll(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let timeout = u64::try_from(call.int(2)).ok();
    let timeout = timeout.map(|milliseconds| milliseconds * 1_000_000);
    kernel.poll_descriptors(call.args[0], call.args[1], timeout)
}

fn ppoll(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let timeout = match call.args[2] {
        0 => None,
        address => Some(kernel.read_time(address)?),
    };
    kernel.poll_descriptors(call.args[0], call.args[1], timeout)
}

impl Kernel<'_, '_> {
    /// `timeout` is in nanoseconds; `None` waits for ever.
    fn poll_descriptors(&mut self, address: u64, count: u64, timeout: Option<u64>) -> Answer {
        if count > MOST {
            return Err(Errno::EINVAL.into());
        }
        let mut results = Vec::with_capacity(count as usize);
        let mut waits_for = Vec::new();
        for index in 0..count {
            let at = address.wrapping_add(8 * index);
            let entry = self.read_bytes(at, 8)?;
            let fd = i32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]);
            let events = u16::from_le_bytes([entry[4], entry[5]]);
            let ready = match self.process().descriptors.get(fd) {
                _ if fd < 0 => 0,
                Err(_) => event::INVALID,
                Ok(descriptor) => {
                    waits_for.push((descriptor.description, events));
                    self.host.readiness(descriptor.description) & (events | ALWAYS)
                }
            };
            self.check(at.wrapping_add(6), 2, true)?;
            results.push((at.wrapping_add(6), ready));
        }
        let ready = results.iter().filter(|result| result.1 != 0).count() as u64;
        if ready == 0 && timeout != Some(0) {
            let deadline = timeout.map(|ns| self.host.clock_ns.saturating_add(ns));
            self.wait(Until::Ready(waits_for), deadline, "poll")?;
        }
        for (address, events) in results {
            self.write_bytes(address, &events.to_le_bytes())?;
        }
        Ok(Value::concrete(ready))
    }
}
