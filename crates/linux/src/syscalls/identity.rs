//! Who and where one is: numbers, names, limits, usage.

use everett_vm::Value;

use crate::errno::Errno;
use crate::files::MAX_DESCRIPTORS;
use crate::kernel::Kernel;
use crate::table::ArgKind::{Buffer, Flags, Int, Pointer};
use crate::table::{Answer, Call, Row};

/// The family.
pub const ROWS: &[Row] = &[
    Row::new("getpid", 39, &[], &[], getpid),
    Row::new("gettid", 186, &[], &[], gettid),
    Row::new("getppid", 110, &[], &[], getppid),
    Row::new("getpgrp", 111, &[], &[], getpid),
    Row::new("getpgid", 121, &[Int], &[], own_group).without("other processes"),
    Row::new("getsid", 124, &[Int], &[], own_group).without("other processes"),
    Row::new("getuid", 102, &[], &[], getuid),
    Row::new("geteuid", 107, &[], &[], getuid),
    Row::new("getgid", 104, &[], &[], getgid),
    Row::new("getegid", 108, &[], &[], getgid),
    Row::new("getgroups", 115, &[Int, Pointer], &[], getgroups),
    Row::new("uname", 63, &[Pointer], &[], uname),
    Row::new("sysinfo", 99, &[Pointer], &[], sysinfo),
    Row::new(
        "getrandom",
        318,
        &[Buffer, Int, Flags],
        &[Errno::EINTR],
        getrandom,
    ),
    Row::new("getrlimit", 97, &[Int, Pointer], &[], getrlimit),
    Row::new("setrlimit", 160, &[Int, Pointer], &[], setrlimit).without("limits do not change"),
    Row::new(
        "prlimit64",
        302,
        &[Int, Int, Pointer, Pointer],
        &[],
        prlimit64,
    )
    .without("limits do not change, other processes"),
    Row::new("getrusage", 98, &[Int, Pointer], &[], getrusage).without("all but times"),
    Row::new("getcpu", 309, &[Pointer, Pointer, Pointer], &[], getcpu),
];

fn number(number: u32) -> Answer {
    Ok(Value::concrete(u64::from(number)))
}

fn getpid(kernel: &mut Kernel<'_, '_>, _: &Call) -> Answer {
    number(kernel.process().pid)
}

fn gettid(kernel: &mut Kernel<'_, '_>, _: &Call) -> Answer {
    number(kernel.task().tid)
}

fn getppid(kernel: &mut Kernel<'_, '_>, _: &Call) -> Answer {
    number(kernel.process().parent)
}

fn own_group(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    match call.int(0) {
        0 => number(kernel.process().pid),
        pid if pid == kernel.process().pid as i32 => number(kernel.process().pid),
        _ => Err(Errno::ESRCH.into()),
    }
}

fn getuid(kernel: &mut Kernel<'_, '_>, _: &Call) -> Answer {
    number(kernel.process().uid[0])
}

fn getgid(kernel: &mut Kernel<'_, '_>, _: &Call) -> Answer {
    number(kernel.process().gid[0])
}

fn getgroups(_: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    if call.int(0) < 0 {
        Err(Errno::EINVAL.into())
    } else {
        Ok(Value::ZERO)
    }
}

fn uname(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const FIELD: usize = 65;
    let fields = ["Linux", "host", "6.1.0", "#1 SMP", "x86_64", "(none)"];
    let mut bytes = Vec::with_capacity(FIELD * fields.len());
    for (at, field) in fields.iter().enumerate() {
        bytes.extend_from_slice(field.as_bytes());
        bytes.resize(FIELD * (at + 1), 0);
    }
    kernel.write_bytes(call.args[0], &bytes)?;
    Ok(Value::ZERO)
}

fn sysinfo(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const MEMORY: u64 = 8 << 30;
    let uptime = kernel.host.clock_ns / 1_000_000_000;
    let mut bytes = Vec::with_capacity(112);
    // Uptime, three loads, total, free, shared, buffers, swap total, swap free.
    for word in [uptime, 0, 0, 0, MEMORY, MEMORY / 2, 0, 0, 0, 0] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.extend_from_slice(&1u16.to_le_bytes());
    bytes.resize(104, 0);
    bytes.extend_from_slice(&1u32.to_le_bytes());
    bytes.resize(112, 0);
    kernel.write_bytes(call.args[0], &bytes)?;
    Ok(Value::ZERO)
}

fn getrandom(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const KNOWN: u64 = 7;
    const MOST: u64 = 1 << 24;
    if call.args[2] & !KNOWN != 0 {
        return Err(Errno::EINVAL.into());
    }
    let len = call.args[1].min(MOST);
    kernel.check(call.args[0], len, true)?;
    let bytes = kernel.host.random_bytes(len as usize);
    kernel.write_bytes(call.args[0], &bytes)?;
    Ok(Value::concrete(len))
}

const UNLIMITED: u64 = u64::MAX;

/// Soft and hard limit of a resource.
fn limit(resource: u64) -> Result<[u64; 2], Errno> {
    const STACK: u64 = 3;
    const CORE: u64 = 4;
    const FILES: u64 = 7;
    const RESOURCES: u64 = 16;
    match resource {
        STACK => Ok([8 << 20, UNLIMITED]),
        CORE => Ok([0, UNLIMITED]),
        FILES => Ok([MAX_DESCRIPTORS as u64; 2]),
        _ if resource < RESOURCES => Ok([UNLIMITED; 2]),
        _ => Err(Errno::EINVAL),
    }
}

fn getrlimit(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let bytes = limit(call.args[0])?.map(u64::to_le_bytes).concat();
    kernel.write_bytes(call.args[1], &bytes)?;
    Ok(Value::ZERO)
}

fn setrlimit(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    limit(call.args[0])?;
    kernel.check(call.args[1], 16, false)?;
    Ok(Value::ZERO)
}

fn prlimit64(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let pid = call.int(0) as u32;
    if pid != 0 && pid != kernel.process().pid {
        return Err(Errno::ESRCH.into());
    }
    let bytes = limit(call.args[1])?.map(u64::to_le_bytes).concat();
    if call.args[2] != 0 {
        kernel.check(call.args[2], 16, false)?;
    }
    if call.args[3] != 0 {
        kernel.write_bytes(call.args[3], &bytes)?;
    }
    Ok(Value::ZERO)
}

fn getrusage(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    if !matches!(call.int(0), -1..=1) {
        return Err(Errno::EINVAL.into());
    }
    let clock = kernel.host.clock_ns;
    let mut bytes = Vec::with_capacity(144);
    bytes.extend_from_slice(&(clock / 1_000_000_000).to_le_bytes());
    bytes.extend_from_slice(&(clock / 1000 % 1_000_000).to_le_bytes());
    bytes.resize(144, 0);
    kernel.write_bytes(call.args[1], &bytes)?;
    Ok(Value::ZERO)
}

fn getcpu(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    for address in [call.args[0], call.args[1]] {
        if address != 0 {
            kernel.write_bytes(address, &0u32.to_le_bytes())?;
        }
    }
    Ok(Value::ZERO)
}
