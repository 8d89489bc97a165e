//! Process ids, system names, random numbers and resource usage.

use everett_vm::Value;
use triomphe::Arc;

use crate::bytes::input_bytes;
use crate::capabilities::SYS_ADMIN;
use crate::errno::Errno;
use crate::kernel::{Answer, Kernel, Stop};
use crate::table::ArgKind::{Buffer, Flags, Int, Pointer};
use crate::table::property::ONE_THREAD;
use crate::table::{Call, Row};
use crate::timers::TimeBase;
use crate::transfers::IoRange;

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new("getpid", 39, &[], &[], getpid).with(ONE_THREAD),
    Row::new("gettid", 186, &[], &[], gettid).with(ONE_THREAD),
    Row::new("getppid", 110, &[], &[], getppid),
    Row::new("uname", 63, &[Pointer], &[], uname),
    Row::new("sethostname", 170, &[Buffer, Int], &[], |kernel, call| {
        let name = new_name(kernel, call)?;
        kernel.host.names.0 = Arc::new(name);
        Ok(Value::ZERO)
    }),
    Row::new("setdomainname", 171, &[Buffer, Int], &[], |kernel, call| {
        let name = new_name(kernel, call)?;
        kernel.host.names.1 = Arc::new(name);
        Ok(Value::ZERO)
    }),
    Row::new("sysinfo", 99, &[Pointer], &[], sysinfo),
    Row::new("getrandom", 318, &[Buffer, Int, Flags], &[], getrandom),
    Row::new("getrusage", 98, &[Int, Pointer], &[], getrusage)
        .without("all but times, memory, page faults and voluntary switches"),
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

fn uname(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const FIELD: usize = 65;
    let (host, domain) = kernel.host.names.clone();
    let fields: [&[u8]; 6] = [b"Linux", &host, b"6.1.0", b"#1 SMP", b"x86_64", &domain];
    let mut bytes = Vec::with_capacity(FIELD * fields.len());
    for (at, field) in fields.iter().enumerate() {
        bytes.extend_from_slice(field);
        bytes.resize(FIELD * (at + 1), 0);
    }
    kernel.write_bytes(call.args[0], &bytes)?;
    Ok(Value::ZERO)
}

/// Reads a new host or domain name.
fn new_name(kernel: &mut Kernel<'_, '_>, call: &Call) -> Result<Vec<u8>, Stop> {
    const LONGEST: i32 = 64;
    if !kernel.is_capable(SYS_ADMIN) {
        return Err(Errno::EPERM.into());
    }
    if !(0..=LONGEST).contains(&call.int(1)) {
        return Err(Errno::EINVAL.into());
    }
    kernel.read_bytes(call.args[0], call.int(1) as u64)
}

fn sysinfo(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const MEMORY: u64 = 8 << 30;
    let uptime = kernel.host.shown(TimeBase::Host) / 1_000_000_000;
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
    const MAX: u64 = 1 << 24;
    /// `GRND_RANDOM` and `GRND_INSECURE`, which contradict each other.
    const CONTRARY: u64 = 6;
    if call.args[2] & !KNOWN != 0 || call.args[2] & CONTRARY == CONTRARY {
        return Err(Errno::EINVAL.into());
    }
    let len = call.args[1].min(MAX);
    let range = IoRange {
        address: call.args[0],
        len,
    };
    let len = kernel.accessible(&[range], len, true)?;
    let bytes = kernel.draw(len as usize)?;
    kernel.write_buffer(call.args[0], &bytes)?;
    Ok(Value::concrete(len))
}

impl Kernel<'_, '_> {
    /// Draws random bytes.
    pub(crate) fn draw(&mut self, len: usize) -> Result<everett_vm::Buffer, Stop> {
        if self.host.options.symbolic_draws && len > 0 {
            let input = self.vm.input("random", len as u32)?;
            return Ok(input_bytes(self.vm.arena, input, 0, len as u32));
        }
        let bytes = self.host.random_bytes(len);
        Ok(everett_vm::Buffer::with_bytes(&bytes, len))
    }
}

/// Size of a `struct rusage`.
pub const USAGE_SIZE: u64 = 144;

/// Resources that a process, its children or a thread has used.
#[derive(Copy, Clone, Debug)]
pub struct Usage {
    /// CPU time.
    pub cpu_ns: u64,
    /// Maximum bytes of blocks and mappings; `None` if there was no process.
    pub memory: Option<u64>,
    /// Number of times that threads have waited.
    pub waits: u64,
}

impl Usage {
    /// Encodes a `struct rusage`. All pages are resident, and each was touched once.
    pub fn to_bytes(self) -> Vec<u8> {
        /// What a small static program takes without blocks and mappings.
        const OWN_MEMORY: u64 = 1 << 20;
        const MAX_RESIDENT_AT: usize = 32;
        const MINOR_FAULTS_AT: usize = 64;
        const VOLUNTARY_AT: usize = 128;
        let words = [self.cpu_ns / 1_000_000_000, self.cpu_ns / 1000 % 1_000_000];
        let mut bytes = words.map(u64::to_le_bytes).concat();
        bytes.resize(USAGE_SIZE as usize, 0);
        let memory = self.memory.map_or(0, |memory| memory + OWN_MEMORY);
        for (at, word) in [
            (MAX_RESIDENT_AT, memory / 1024),
            (MINOR_FAULTS_AT, memory / 4096),
            (VOLUNTARY_AT, self.waits),
        ] {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

fn getrusage(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const OWN: i32 = 0;
    const CHILDREN: i32 = -1;
    const THREAD: i32 = 1;
    let process = kernel.process();
    let peak = kernel.vm.memory.peak_bytes();
    let own = Usage {
        cpu_ns: process.cpu_ns,
        memory: Some(process.most_memory.max(peak)),
        waits: process.waits,
    };
    let used = match call.int(0) {
        OWN => own,
        CHILDREN => Usage {
            cpu_ns: process.children_cpu_ns,
            memory: Some(process.children_most_memory).filter(|most| *most > 0),
            waits: process.children_waits,
        },
        THREAD => Usage {
            cpu_ns: kernel.task().cpu_ns,
            waits: kernel.task().waits,
            ..own
        },
        _ => return Err(Errno::EINVAL.into()),
    };
    kernel.write_bytes(call.args[1], &used.to_bytes())?;
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
