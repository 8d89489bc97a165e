//! Waiting for descriptors.

use everett_vm::Value;

use crate::errno::Errno;
use crate::files::Target;
use crate::kernel::{Kernel, Stop};
use crate::table::ArgKind::{Int, Pointer};
use crate::table::{Answer, Call, Row};

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

const POLLIN: u16 = 0x1;
const POLLOUT: u16 = 0x4;
const POLLNVAL: u16 = 0x20;
const POLLRDNORM: u16 = 0x40;
const POLLWRNORM: u16 = 0x100;
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
        let mut waits_for_input = false;
        for index in 0..count {
            let at = address.wrapping_add(8 * index);
            let entry = self.read_bytes(at, 8)?;
            let fd = i32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]);
            let events = u16::from_le_bytes([entry[4], entry[5]]);
            let ready = if fd < 0 {
                0
            } else {
                self.ready(fd, events, &mut waits_for_input)
            };
            self.check(at.wrapping_add(6), 2, true)?;
            results.push((at.wrapping_add(6), ready));
        }
        let ready = results.iter().filter(|result| result.1 != 0).count() as u64;
        if ready == 0 && timeout != Some(0) {
            match timeout {
                // Time stands still while a live input is waited for.
                _ if waits_for_input => return Err(Stop::NeedsInput),
                None => return Err(Stop::Block(None, "poll")),
                Some(ns) => self.wait_until(self.host.clock_ns.saturating_add(ns), "poll")?,
            }
        }
        for (address, events) in results {
            self.write_bytes(address, &events.to_le_bytes())?;
        }
        Ok(Value::concrete(ready))
    }

    /// Which of these events a descriptor has.
    fn ready(&self, fd: i32, events: u16, waits_for_input: &mut bool) -> u16 {
        const READ: u16 = POLLIN | POLLRDNORM;
        const WRITE: u16 = POLLOUT | POLLWRNORM;
        let Ok((_, description)) = self.description(fd) else {
            return POLLNVAL;
        };
        match description.target {
            Target::Output(_) => events & WRITE,
            Target::Inode(_) => events & (READ | WRITE),
            Target::Stdin if self.host.files.stdin.must_wait() => {
                *waits_for_input |= events & READ != 0;
                0
            }
            Target::Stdin => events & READ,
        }
    }
}
