//! Descriptors that tell of events: counters.

use everett_vm::Value;

use crate::errno::Errno;
use crate::files::OpenFlags;
use crate::kernel::Kernel;
use crate::objects::{EventCounter, Object};
use crate::table::ArgKind::{Flags, Int};
use crate::table::{Answer, Call, Row};

/// The family.
pub const ROWS: &[Row] = &[
    Row::new("eventfd", 284, &[Int], OPEN_ERRORS, eventfd),
    Row::new("eventfd2", 290, &[Int, Flags], OPEN_ERRORS, eventfd2),
];

const OPEN_ERRORS: &[Errno] = &[Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM];

fn eventfd(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.make_counter(call.args[0] as u32, 0)
}

fn eventfd2(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.make_counter(call.args[0] as u32, call.args[1] as u32)
}

impl Kernel<'_, '_> {
    fn make_counter(&mut self, count: u32, flags: u32) -> Answer {
        const SEMAPHORE: u32 = 1;
        if flags & !(SEMAPHORE | OpenFlags::CLOSE_ON_EXEC | OpenFlags::NONBLOCK) != 0 {
            return Err(Errno::EINVAL.into());
        }
        let counter = EventCounter {
            count: u64::from(count),
            is_semaphore: flags & SEMAPHORE != 0,
        };
        let flags = flags & !SEMAPHORE | OpenFlags::READ_WRITE;
        let fd = self.open_new(Object::EventCounter(counter), flags)?;
        Ok(Value::concrete(fd as u64))
    }
}
