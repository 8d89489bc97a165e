//! Options of sockets.

use everett_vm::Value;

use crate::errno::Errno;
use crate::kernel::Kernel;
use crate::table::ArgKind::{Fd, Int, Pointer};
use crate::table::{Answer, Call, Row};

/// The family.
pub const ROWS: &[Row] = &[
    Row::new(
        "setsockopt",
        54,
        &[Fd, Int, Int, Pointer, Int],
        &[],
        setsockopt,
    ),
    Row::new(
        "getsockopt",
        55,
        &[Fd, Int, Int, Pointer, Pointer],
        &[],
        getsockopt,
    ),
];

fn setsockopt(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let found = kernel.find_socket(call.int(0))?;
    let (level, name) = (call.args[1] as u32, call.args[2] as u32);
    let value = if call.args[4] >= 4 {
        kernel.read_bytes(call.args[3], 4)?
    } else {
        vec![0; 4]
    };
    let value = i32::from_le_bytes([value[0], value[1], value[2], value[3]]);
    let socket = kernel.socket_of(found.open())?;
    match (level, name) {
        (1, 2) => socket.options.reuse_address = value != 0,
        (1, 15) => socket.options.reuse_port = value != 0,
        (41, 26) => socket.options.only_v6 = value != 0,
        _ => {}
    }
    Ok(Value::ZERO)
}

fn getsockopt(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let found = kernel.find_socket(call.int(0))?;
    let (level, name) = (call.args[1] as u32, call.args[2] as u32);
    kernel.check(call.args[3], 4, true)?;
    let socket = kernel.socket_of(found.open())?;
    let value = match (level, name) {
        (1, 4) => socket.take_error().map_or(0, |errno| errno.0 as u32),
        (1, 3) => socket.kind.number(),
        (1, 7) => socket.options.send_buffer,
        (1, 8) => socket.options.receive_buffer,
        _ => return Err(Errno::ENOPROTOOPT.into()),
    };
    kernel.write_bytes(call.args[3], &value.to_le_bytes())?;
    kernel.write_bytes(call.args[4], &4u32.to_le_bytes())?;
    Ok(Value::ZERO)
}
