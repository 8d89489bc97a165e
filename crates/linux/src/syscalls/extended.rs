//! Extended attributes: no file has any, and none can be set.

use everett_vm::Value;

use super::paths::AT_FDCWD;
use crate::errno::Errno;
use crate::kernel::{Answer, Kernel};
use crate::table::ArgKind::{Buffer, Fd, Flags, Int, Path};
use crate::table::{Call, Row};

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new("setxattr", 188, &[Path, Path, Buffer, Int, Flags], &[], set).without(NONE),
    Row::new(
        "lsetxattr",
        189,
        &[Path, Path, Buffer, Int, Flags],
        &[],
        set_of_link,
    )
    .without(NONE),
    Row::new(
        "fsetxattr",
        190,
        &[Fd, Path, Buffer, Int, Flags],
        &[],
        set_of_open,
    )
    .without(NONE),
    Row::new("getxattr", 191, &[Path, Path, Buffer, Int], &[], get).without(NONE),
    Row::new(
        "lgetxattr",
        192,
        &[Path, Path, Buffer, Int],
        &[],
        get_of_link,
    )
    .without(NONE),
    Row::new("fgetxattr", 193, &[Fd, Path, Buffer, Int], &[], get_of_open).without(NONE),
    Row::new("listxattr", 194, &[Path, Buffer, Int], &[], list).without(NONE),
    Row::new("llistxattr", 195, &[Path, Buffer, Int], &[], list_of_link).without(NONE),
    Row::new("flistxattr", 196, &[Fd, Buffer, Int], &[], list_of_open).without(NONE),
    Row::new("removexattr", 197, &[Path, Path], &[], get).without(NONE),
    Row::new("lremovexattr", 198, &[Path, Path], &[], get_of_link).without(NONE),
    Row::new("fremovexattr", 199, &[Fd, Path], &[], get_of_open).without(NONE),
];

const NONE: &str = "no file has extended attributes";
/// The refused feature.
const NAMED: &str = "extended attributes";

fn set(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.find(AT_FDCWD, call.args[0], true)?;
    kernel.refuse("setxattr", NAMED);
    Err(Errno::EOPNOTSUPP.into())
}

fn set_of_link(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.find(AT_FDCWD, call.args[0], false)?;
    kernel.refuse("lsetxattr", NAMED);
    Err(Errno::EOPNOTSUPP.into())
}

fn set_of_open(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.usable(call.int(0))?;
    kernel.refuse("fsetxattr", NAMED);
    Err(Errno::EOPNOTSUPP.into())
}

fn get(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.find(AT_FDCWD, call.args[0], true)?;
    Err(Errno::ENODATA.into())
}

fn get_of_link(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.find(AT_FDCWD, call.args[0], false)?;
    Err(Errno::ENODATA.into())
}

fn get_of_open(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.usable(call.int(0))?;
    Err(Errno::ENODATA.into())
}

fn list(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.find(AT_FDCWD, call.args[0], true)?;
    Ok(Value::ZERO)
}

fn list_of_link(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.find(AT_FDCWD, call.args[0], false)?;
    Ok(Value::ZERO)
}

fn list_of_open(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.usable(call.int(0))?;
    Ok(Value::ZERO)
}
