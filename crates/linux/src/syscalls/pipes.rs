//! `pipe` and `pipe2`.

use everett_vm::Value;

use crate::errno::Errno;
use crate::files::{Description, OpenFlags, Target};
use crate::ids::ObjectId;
use crate::kernel::{Answer, Kernel};
use crate::objects::{Object, Pipe};
use crate::table::ArgKind::{Flags, Pointer};
use crate::table::{Call, Row};

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new(
        "pipe",
        22,
        &[Pointer],
        &[Errno::EMFILE, Errno::ENFILE],
        pipe,
    ),
    Row::new(
        "pipe2",
        293,
        &[Pointer, Flags],
        &[Errno::EMFILE, Errno::ENFILE],
        pipe2,
    ),
];

fn pipe(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.create_pipe(call.args[0], 0)
}

fn pipe2(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let flags = call.args[1] as u32;
    if flags & !(OpenFlags::CLOSE_ON_EXEC | OpenFlags::NONBLOCK | OpenFlags::DIRECT) != 0 {
        return Err(Errno::EINVAL.into());
    }
    kernel.create_pipe(call.args[0], flags)
}

impl Kernel<'_, '_> {
    fn create_pipe(&mut self, address: u64, flags: u32) -> Answer {
        let reader = self.process().descriptors.free_from(0)?;
        let writer = self.process().descriptors.free_from(reader + 1)?;
        let fds = [reader, writer].map(i32::to_le_bytes).concat();
        self.write_bytes(address, &fds)?;
        let pipe = ObjectId(self.host.objects.insert(Object::Pipe(Pipe::new())));
        // Only the write end makes packets.
        let ends = [
            (reader, flags & !OpenFlags::DIRECT),
            (writer, flags | OpenFlags::WRITE_ONLY),
        ];
        for (fd, flags) in ends {
            self.install(fd, Description::new(Target::Object(pipe), flags));
        }
        Ok(Value::ZERO)
    }
}
