//! The epoll calls: `epoll_create`, `epoll_ctl` and `epoll_wait` with their variants.

use everett_vm::Value;

use crate::errno::Errno;
use crate::files::{Description, OpenFlags, Target};
use crate::ids::{DescriptionId, ObjectId};
use crate::kernel::{Answer, Kernel, Stop};
use crate::objects::{EDGE, EXCLUSIVE, Epoll, Object, WAKE_UP, epoll, event};
use crate::table::ArgKind::{Fd, Flags, Int, Pointer};
use crate::table::property::ACQUIRES_ALL;
use crate::table::{Call, Row};
use crate::wait::WaitCondition;

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new("epoll_create", 213, &[Int], OPEN_ERRORS, epoll_create),
    Row::new("epoll_create1", 291, &[Flags], OPEN_ERRORS, epoll_create1),
    Row::new(
        "epoll_ctl",
        233,
        &[Fd, Int, Fd, Pointer],
        &[Errno::ENOMEM, Errno::ENOSPC],
        epoll_ctl,
    )
    .fails_where(|_, args, _| args[1] as i32 == ADD),
    Row::new(
        "epoll_wait",
        232,
        &[Fd, Pointer, Int, Int],
        &[Errno::EINTR],
        epoll_wait,
    )
    .with(ACQUIRES_ALL),
    Row::new(
        "epoll_pwait",
        281,
        &[Fd, Pointer, Int, Int, Pointer, Int],
        &[Errno::EINTR],
        epoll_pwait,
    )
    .with(ACQUIRES_ALL),
    Row::new(
        "epoll_pwait2",
        441,
        &[Fd, Pointer, Int, Pointer, Pointer, Int],
        &[Errno::EINTR],
        epoll_pwait2,
    )
    .with(ACQUIRES_ALL),
];

/// The operation of `epoll_ctl` that needs memory.
const ADD: i32 = 1;

const OPEN_ERRORS: &[Errno] = &[Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM];

/// Size of `struct epoll_event`, which has no padding on x86-64.
const EVENT_SIZE: usize = 12;

fn epoll_create(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    if call.int(0) <= 0 {
        return Err(Errno::EINVAL.into());
    }
    kernel.create_epoll(0)
}

fn epoll_create1(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let flags = call.args[0] as u32;
    if flags & !OpenFlags::CLOSE_ON_EXEC != 0 {
        return Err(Errno::EINVAL.into());
    }
    kernel.create_epoll(flags)
}

fn epoll_ctl(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const REMOVE: i32 = 2;
    const CHANGE: i32 = 3;
    let command = call.int(1);
    let (mut events, mut data) = (0, 0);
    if command != REMOVE {
        let bytes = kernel.read_value(call.args[3], 4)?;
        events = kernel.vm.concretize(bytes)? as u32;
        data = kernel.read_cookie(call.args[3].wrapping_add(4))?;
    }
    let (own, own_description) = kernel.description(call.int(0))?;
    let (descriptor, description) = kernel.description(call.int(2))?;
    let has_path = |description: &Description| description.flags.has(OpenFlags::PATH);
    if has_path(&own_description) || has_path(&description) {
        return Err(Errno::EBADF.into());
    }
    let source = kernel
        .host
        .watchable(description.target)
        .ok_or(Errno::EPERM)?;
    let Target::Object(id) = own_description.target else {
        return Err(Errno::EINVAL.into());
    };
    let set = epoll(kernel.host, id).ok_or(Errno::EINVAL)?;
    if own.description == descriptor.description {
        return Err(Errno::EINVAL.into());
    }
    let key = (descriptor.description, call.int(2));
    let old = set.watch(key).copied();
    let is_exclusive = events & EXCLUSIVE != 0;
    let nests = epoll(kernel.host, source).is_some();
    if is_exclusive && (command == CHANGE || nests || events & !EXCLUSIVE_ALLOWS != 0) {
        return Err(Errno::EINVAL.into());
    }
    match (command, old) {
        (ADD, Some(_)) => return Err(Errno::EEXIST.into()),
        (REMOVE | CHANGE, None) => return Err(Errno::ENOENT.into()),
        (ADD, None) => {
            if nests {
                kernel.host.can_nest(id, source)?;
            }
        }
        (REMOVE, Some(_)) => {
            kernel.host.unwatch(id, key);
            return Ok(Value::ZERO);
        }
        (CHANGE, Some(old)) if old.events & EXCLUSIVE == 0 => {}
        _ => return Err(Errno::EINVAL.into()),
    }
    // Errors and hang-ups are reported whether requested or not.
    let events = events | u32::from(event::ERROR | event::HANG_UP);
    kernel.host.watch(id, key, source, events, data);
    Ok(Value::ZERO)
}

/// Events that may be combined with `EPOLLEXCLUSIVE`.
const EXCLUSIVE_ALLOWS: u32 =
    EXCLUSIVE | EDGE | WAKE_UP | (event::IN | event::OUT | event::ERROR | event::HANG_UP) as u32;

fn epoll_wait(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.wait_for_watched(call, milliseconds(call.int(3)), None)
}

fn epoll_pwait(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let mask = kernel.read_mask(call.args[4], call.args[5])?;
    kernel.wait_for_watched(call, milliseconds(call.int(3)), mask)
}

fn epoll_pwait2(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let timeout = kernel.read_timeout(call.args[3])?;
    let mask = kernel.read_mask(call.args[4], call.args[5])?;
    kernel.wait_for_watched(call, timeout, mask)
}

/// A timeout in nanoseconds; `None` if it is negative.
fn milliseconds(timeout: i32) -> Option<u64> {
    let timeout = u64::try_from(timeout).ok()?;
    Some(timeout * 1_000_000)
}

impl Kernel<'_, '_> {
    fn create_epoll(&mut self, flags: u32) -> Answer {
        let set = Object::Epoll(Epoll::default());
        let fd = self.open_new(set, flags | OpenFlags::READ_WRITE)?;
        Ok(Value::concrete(fd as u64))
    }

    fn epoll_behind(&self, fd: i32) -> Result<(DescriptionId, ObjectId), Errno> {
        let (descriptor, description) = self.description(fd)?;
        match description.target {
            Target::Object(id) if epoll(self.host, id).is_some() => {
                Ok((descriptor.description, id))
            }
            _ => Err(Errno::EINVAL),
        }
    }

    /// Waits for events of the watched descriptors. `timeout` is in nanoseconds; `None` waits
    /// forever.
    fn wait_for_watched(&mut self, call: &Call, timeout: Option<u64>, mask: Option<u64>) -> Answer {
        let most = call.int(2);
        if most <= 0 || most > i32::MAX / EVENT_SIZE as i32 {
            return Err(Errno::EINVAL.into());
        }
        let (description, id) = self.epoll_behind(call.int(0))?;
        let reported = self.host.ready_events(id, most as usize);
        if reported.is_empty() {
            if timeout != Some(0) {
                let deadline = timeout.map(|ns| self.host.clock_ns.saturating_add(ns));
                let condition = WaitCondition::Ready(vec![(description, event::IN)]);
                self.wait_masked(condition, deadline, mask, "epoll_wait")?;
            }
            return Ok(Value::ZERO);
        }
        let mut bytes = Vec::with_capacity(EVENT_SIZE * reported.len());
        for reported in &reported {
            bytes.extend_from_slice(&u32::from(reported.events).to_le_bytes());
            bytes.extend_from_slice(&reported.data.to_le_bytes());
        }
        self.write_bytes(call.args[1], &bytes)?;
        self.host.mark_reported(id, &reported, most as usize);
        Ok(Value::concrete(reported.len() as u64))
    }

    /// Reads the temporary signal mask of a system call; `None` at address 0.
    pub fn read_mask(&mut self, address: u64, size: u64) -> Result<Option<u64>, Stop> {
        if address == 0 {
            return Ok(None);
        }
        if size != 8 {
            return Err(Errno::EINVAL.into());
        }
        Ok(Some(self.read_u64(address)?))
    }

    /// Reads a timeout, in nanoseconds; `None` at address 0.
    pub fn read_timeout(&mut self, address: u64) -> Result<Option<u64>, Stop> {
        match address {
            0 => Ok(None),
            address => Ok(Some(self.read_time(address)?)),
        }
    }
}
