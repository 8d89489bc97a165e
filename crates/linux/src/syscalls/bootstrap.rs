//! Calls by which a program declares the world in which it becomes a host. They are not Linux
//! system calls: the functions of `netklee.h` make them. They return a C `int`: 0 or a negative
//! errno.

use everett_vm::{HYPERCALL_BASE, Value};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use triomphe::Arc;

use super::own::show;
use crate::config::Boot;
use crate::errno::Errno;
use crate::kernel::{Answer, Kernel, Stop};
use crate::setup::{Route, Setup, Subnet};
use crate::table::ArgKind::{Buffer, Int, Path};
use crate::table::{Call, Row};
use crate::wait::WaitCondition;

/// The index of the first of them among Everett's own calls.
pub const FIRST: usize = 32;

const fn number(at: usize) -> u32 {
    HYPERCALL_BASE + (FIRST + at) as u32
}

/// Rows of this family, in the order of their numbers.
pub const ROWS: &[Row] = &[
    Row::new(
        "klee_net_add_network",
        number(0),
        &[Path],
        &[],
        |kernel, call| as_int(add_network(kernel, call)),
    ),
    Row::new(
        "klee_net_add_router",
        number(1),
        &[Path],
        &[],
        |kernel, call| as_int(add_router(kernel, call)),
    ),
    Row::new(
        "klee_net_add_interface",
        number(2),
        &[Int, Path, Path],
        &[],
        |kernel, call| as_int(add_interface(kernel, call)),
    ),
    Row::new(
        "klee_net_add_ipv4_address",
        number(3),
        &[Int, Int, Int, Int, Path],
        &[],
        |kernel, call| as_int(add_ipv4_address(kernel, call)),
    ),
    Row::new(
        "klee_net_add_ipv6_address",
        number(4),
        &[Path, Int, Int, Int, Path],
        &[],
        |kernel, call| as_int(add_ipv6_address(kernel, call)),
    ),
    Row::new(
        "klee_net_add_ipv4_route",
        number(5),
        &[Int, Int, Int, Path],
        &[],
        |kernel, call| as_int(add_ipv4_route(kernel, call)),
    ),
    Row::new(
        "klee_net_add_ipv6_route",
        number(6),
        &[Path, Int, Path, Path],
        &[],
        |kernel, call| as_int(add_ipv6_route(kernel, call)),
    ),
    Row::new(
        "klee_net_host_setup",
        number(7),
        &[Path, Int, Int],
        &[],
        |kernel, call| as_int(host_setup(kernel, call)),
    ),
    Row::new(
        "klee_invariant_expose_data",
        number(8),
        &[Int, Path, Buffer, Int],
        &[],
        |kernel, call| as_int(expose_data(kernel, call)),
    ),
    Row::new(
        "klee_net_write_filesystem",
        number(9),
        &[],
        &[],
        |kernel, _| as_int(write_filesystem(kernel)),
    ),
];

/// Converts a result: errnos become return values; everything else stops the call.
fn as_int(done: Result<(), Stop>) -> Answer {
    match done {
        Ok(()) => Ok(Value::ZERO),
        Err(Stop::Errno(errno)) => Ok(Value::concrete(int(errno))),
        Err(stop) => Err(stop),
    }
}

/// A negative errno as an `int` in a register.
fn int(errno: Errno) -> u64 {
    errno.result() & u64::from(u32::MAX)
}

impl Kernel<'_, '_> {
    /// Adds a declaration.
    fn declare(
        &mut self,
        change: impl FnOnce(&mut Setup) -> Result<(), Errno>,
    ) -> Result<(), Stop> {
        let setup = Arc::make_mut(&mut self.host.setup);
        Ok(setup.declare().and_then(change)?)
    }

    /// Reads a name; `None` at address 0.
    fn optional_name(&mut self, address: u64) -> Result<Option<String>, Stop> {
        match address {
            0 => Ok(None),
            address => self.short_text(address).map(Some),
        }
    }

    /// Reads an IPv6 address in text form.
    fn ipv6_text(&mut self, address: u64) -> Result<IpAddr, Stop> {
        let text = self.short_text(address)?;
        let address = text.parse::<Ipv6Addr>().map_err(|_| Errno::EINVAL)?;
        Ok(address.into())
    }
}

/// Decodes an `in_addr_t`.
fn ipv4(argument: u64) -> IpAddr {
    Ipv4Addr::from((argument as u32).to_le_bytes()).into()
}

/// Truncates a length to 32 bits.
fn length(argument: u64) -> u64 {
    argument & u64::from(u32::MAX)
}

fn add_network(kernel: &mut Kernel<'_, '_>, call: &Call) -> Result<(), Stop> {
    let name = kernel.short_text(call.args[0])?;
    kernel.declare(|setup| setup.add_network(name))
}

fn add_router(kernel: &mut Kernel<'_, '_>, call: &Call) -> Result<(), Stop> {
    let name = kernel.short_text(call.args[0])?;
    kernel.declare(|setup| setup.add_router(name))
}

fn add_interface(kernel: &mut Kernel<'_, '_>, call: &Call) -> Result<(), Stop> {
    let network = kernel.short_text(call.args[1])?;
    let router = kernel.optional_name(call.args[2])?;
    kernel.declare(|setup| setup.add_interface(call.int(0), network, router.as_deref()))
}

fn add_ipv4_address(kernel: &mut Kernel<'_, '_>, call: &Call) -> Result<(), Stop> {
    const USUAL: u8 = 24;
    let subnet = Subnet::new(ipv4(call.args[0]), length(call.args[1]), USUAL)?;
    add_address(kernel, call, subnet)
}

fn add_ipv6_address(kernel: &mut Kernel<'_, '_>, call: &Call) -> Result<(), Stop> {
    const USUAL: u8 = 64;
    let address = kernel.ipv6_text(call.args[0])?;
    let subnet = Subnet::new(address, length(call.args[1]), USUAL)?;
    add_address(kernel, call, subnet)
}

fn add_address(kernel: &mut Kernel<'_, '_>, call: &Call, subnet: Subnet) -> Result<(), Stop> {
    let (interface, is_primary) = (call.int(2), call.int(3) != 0);
    let router = kernel.optional_name(call.args[4])?;
    kernel.declare(|setup| setup.add_address(subnet, interface, is_primary, router.as_deref()))
}

fn add_ipv4_route(kernel: &mut Kernel<'_, '_>, call: &Call) -> Result<(), Stop> {
    let to = ipv4(call.args[0]);
    add_route(kernel, call, to, ipv4(call.args[2]))
}

fn add_ipv6_route(kernel: &mut Kernel<'_, '_>, call: &Call) -> Result<(), Stop> {
    let to = match call.args[0] {
        0 => Ipv6Addr::UNSPECIFIED.into(),
        address => kernel.ipv6_text(address)?,
    };
    let via = kernel.ipv6_text(call.args[2])?;
    add_route(kernel, call, to, via)
}

fn add_route(
    kernel: &mut Kernel<'_, '_>,
    call: &Call,
    to: IpAddr,
    via: IpAddr,
) -> Result<(), Stop> {
    let bits = length(call.args[1]);
    if bits == 0 && !to.is_unspecified() {
        return Err(Errno::EINVAL.into());
    }
    let to = Subnet::new(to, bits, 0)?;
    let router = kernel.optional_name(call.args[3])?;
    kernel.declare(|setup| setup.add_route(Route { to, via }, router.as_deref()))
}

/// Declares the host. If its world is not built yet, the path stops here; in its world it continues
/// at its start time.
fn host_setup(kernel: &mut Kernel<'_, '_>, call: &Call) -> Result<(), Stop> {
    let name = kernel.short_text(call.args[0])?;
    // A host that has waited for its start time is already declared.
    let has_waited = kernel.task().deadline_ns.is_some();
    let boot = kernel.host.setup.boot().clone();
    if !has_waited {
        kernel.declare(|setup| setup.end(name.clone(), call.int(1) != 0, call.int(2)))?;
        kernel.host.names.0 = Arc::new(name.clone().into_bytes());
    }
    match boot {
        Boot::Standalone => Ok(()),
        Boot::StopAtSetup => Err(Stop::SetUp),
        Boot::Start(begin) if begin.name != name => Err(kernel.unsupported(format!(
            "the program declares host {name}, the scenario expects {}: the `begin` trace leads elsewhere",
            begin.name
        ))),
        Boot::Start(begin) => {
            if !has_waited {
                kernel.host.random ^= begin.random;
                // The host ran alone until now; from here on the horizon of its world applies.
                kernel.host.wire.reset_horizon();
                // The result if a signal interrupts the wait.
                kernel.task_mut().progress = int(Errno::EINTR);
            }
            kernel.wait(WaitCondition::Never, Some(begin.at_ns), "start of the host")
        }
    }
}

fn expose_data(kernel: &mut Kernel<'_, '_>, call: &Call) -> Result<(), Stop> {
    show(kernel, call.int(0).to_string(), &call.args[1..4])
}

fn write_filesystem(kernel: &mut Kernel<'_, '_>) -> Result<(), Stop> {
    let files = kernel.host.files.changes();
    Arc::make_mut(&mut kernel.host.setup).save(files);
    Ok(())
}
