//! `prctl`, resource limits and `personality`.

use everett_vm::Value;
use triomphe::Arc;

use crate::capabilities::{SETPCAP, SYS_RESOURCE, secure};
use crate::errno::Errno;
use crate::kernel::{Answer, Kernel, Stop};
use crate::limits::{DESCRIPTORS, Limit, PROCESSOR_TIME, UNLIMITED};
use crate::signals::is_signal;
use crate::table::ArgKind::{Int, Pointer};
use crate::table::property::ONE_THREAD;
use crate::table::{Call, Row};

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new("getrlimit", 97, &[Int, Pointer], &[], getrlimit),
    Row::new("setrlimit", 160, &[Int, Pointer], &[], setrlimit).without(ENFORCED),
    Row::new(
        "prlimit64",
        302,
        &[Int, Int, Pointer, Pointer],
        &[],
        prlimit64,
    )
    .without(ENFORCED),
    Row::new("prctl", 157, &[Int, Pointer, Int, Int, Int], &[], prctl)
        .with(ONE_THREAD)
        .without("seccomp filters, PR_SET_MM, speculation control, pointer authentication"),
    Row::new("personality", 135, &[Int], &[], personality).without("everything but queries"),
];

const ENFORCED: &str = "RLIMIT_RTTIME is not enforced";

fn getrlimit(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let limit = kernel.process().limits.get(resource(call.args[0]));
    let limit = limit.ok_or(Errno::EINVAL)?;
    kernel.write_limit(call.args[1], limit)?;
    Ok(Value::ZERO)
}

fn setrlimit(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let to = kernel.read_limit(call.args[1])?;
    let pid = kernel.process().pid;
    kernel.set_limit(pid, resource(call.args[0]), to)?;
    Ok(Value::ZERO)
}

fn prlimit64(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let resource = resource(call.args[1]);
    let new = match call.args[2] {
        0 => None,
        address => Some(kernel.read_limit(address)?),
    };
    let target = kernel.process_or_self(call.int(0))?;
    let pid = target.pid;
    let old = target.limits.get(resource).ok_or(Errno::EINVAL)?;
    let own = kernel.process();
    let same_user = target.uid == [own.uid[0]; 3] && target.gid == [own.gid[0]; 3];
    if pid != own.pid && !same_user && !kernel.is_capable(SYS_RESOURCE) {
        return Err(Errno::EPERM.into());
    }
    if call.args[3] != 0 {
        kernel.check(call.args[3], 16, true)?;
    }
    if let Some(new) = new {
        kernel.set_limit(pid, resource, new)?;
    }
    if call.args[3] != 0 {
        kernel.write_limit(call.args[3], old)?;
    }
    Ok(Value::ZERO)
}

fn resource(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl Kernel<'_, '_> {
    fn read_limit(&mut self, address: u64) -> Result<Limit, Stop> {
        let soft = self.read_u64(address)?;
        let hard = self.read_u64(address.wrapping_add(8))?;
        Ok(Limit { soft, hard })
    }

    fn write_limit(&mut self, address: u64, limit: Limit) -> Result<(), Stop> {
        let words = [limit.soft, limit.hard];
        self.write_bytes(address, &words.map(u64::to_le_bytes).concat())
    }

    fn set_limit(&mut self, pid: u32, resource: usize, to: Limit) -> Result<(), Stop> {
        /// Maximum number of descriptors that any process may have.
        const MAX_DESCRIPTORS: u64 = 1 << 20;
        /// Real-time processor time, a limit that is stored but not enforced.
        const NOT_ENFORCED: usize = 15;
        let may_raise = self.is_capable(SYS_RESOURCE);
        let process = self.host.process_by_pid_mut(pid).ok_or(Errno::ESRCH)?;
        let old = process.limits.get(resource).ok_or(Errno::EINVAL)?;
        if to.soft > to.hard {
            return Err(Errno::EINVAL.into());
        }
        let is_too_many = resource == DESCRIPTORS && to.hard > MAX_DESCRIPTORS;
        if is_too_many || (to.hard > old.hard && !may_raise) {
            return Err(Errno::EPERM.into());
        }
        Arc::make_mut(&mut process.limits).set(resource, to);
        if resource == DESCRIPTORS {
            process.descriptors.set_limit(to.soft);
        }
        if pid == self.process().pid {
            self.vm.max_address_space = self.process().limits.address_space();
            self.vm.max_data = self.process().limits.data();
            self.vm.max_stack = self.process().limits.stack();
        }
        self.host.limits_processor_time |= resource == PROCESSOR_TIME && to.soft != UNLIMITED;
        if to.soft < old.soft && resource == NOT_ENFORCED {
            self.refuse("setrlimit", format!("resource limit {resource}"));
        }
        Ok(())
    }

    /// Maximum size of a file that the process may write.
    pub fn file_size_limit(&self) -> Option<u64> {
        let limit = self.process().limits.soft(crate::limits::FILE_SIZE);
        (limit != UNLIMITED).then_some(limit)
    }
}

fn prctl(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const SET_PDEATHSIG: u64 = 1;
    const SET_SECUREBITS: u64 = 28;
    const GET_PDEATHSIG: u64 = 2;
    const GET_DUMPABLE: u64 = 3;
    const SET_DUMPABLE: u64 = 4;
    const GET_KEEPCAPS: u64 = 7;
    const SET_KEEPCAPS: u64 = 8;
    const SET_NAME: u64 = 15;
    const GET_NAME: u64 = 16;
    const GET_SECCOMP: u64 = 21;
    const SET_TIMERSLACK: u64 = 29;
    const GET_TIMERSLACK: u64 = 30;
    const SET_CHILD_SUBREAPER: u64 = 36;
    const GET_CHILD_SUBREAPER: u64 = 37;
    const SET_NO_NEW_PRIVS: u64 = 38;
    const GET_NO_NEW_PRIVS: u64 = 39;
    const GET_UNALIGNED: u64 = 5;
    const SET_UNALIGNED: u64 = 6;
    const GET_FPEMU: u64 = 9;
    const SET_FPEMU: u64 = 10;
    const GET_FPEXC: u64 = 11;
    const SET_FPEXC: u64 = 12;
    const GET_TIMING: u64 = 13;
    const SET_TIMING: u64 = 14;
    const GET_ENDIAN: u64 = 19;
    const SET_ENDIAN: u64 = 20;
    const READ_BOUNDING: u64 = 23;
    const DROP_BOUNDING: u64 = 24;
    const GET_TSC: u64 = 25;
    const SET_TSC: u64 = 26;
    const TSC_ENABLED: u64 = 1;
    const GET_MEMORY_FAILURES: u64 = 34;
    const MEMORY_FAILURES_BY_DEFAULT: u64 = 2;
    const GET_SPECULATION: u64 = 52;
    /// The highest kind of speculation that can be asked for.
    const LAST_SPECULATION: u64 = 2;
    const GET_IO_FLUSHER: u64 = 58;
    const GET_SECUREBITS: u64 = 27;
    const EVENTS_OFF: u64 = 31;
    const EVENTS_ON: u64 = 32;
    const GET_TID_ADDRESS: u64 = 40;
    const SET_THP_DISABLE: u64 = 41;
    const GET_THP_DISABLE: u64 = 42;
    const AMBIENT: u64 = 47;
    const SET_PTRACER: u64 = 0x5961_6d61;
    const SET_VMA: u64 = 0x5356_4d41;
    const DEFAULT_SLACK_NS: u64 = 50_000;
    let value = call.args[1];
    let told = |kernel: &mut Kernel<'_, '_>, value: i32| {
        kernel.write_bytes(call.args[1], &value.to_le_bytes())?;
        Ok(Value::ZERO)
    };
    match call.args[0] {
        SET_PDEATHSIG => {
            let signal = value as i32;
            if value > 64 || (signal != 0 && !is_signal(signal)) {
                return Err(Errno::EINVAL.into());
            }
            kernel.process_mut().parent_death_signal = signal;
        }
        GET_PDEATHSIG => {
            let signal = kernel.process().parent_death_signal;
            return told(kernel, signal);
        }
        GET_DUMPABLE => return Ok(Value::concrete(kernel.process().dumpable.into())),
        SET_DUMPABLE if value > 1 => return Err(Errno::EINVAL.into()),
        SET_DUMPABLE => kernel.process_mut().dumpable = value as u32,
        GET_KEEPCAPS => {
            let keeps = kernel.process().has_secure_bit(secure::KEEP_CAPABILITIES);
            return Ok(Value::concrete(keeps.into()));
        }
        SET_KEEPCAPS if value > 1 => return Err(Errno::EINVAL.into()),
        SET_KEEPCAPS
            if kernel
                .process()
                .has_secure_bit(secure::KEEP_CAPABILITIES << 1) =>
        {
            return Err(Errno::EPERM.into());
        }
        SET_KEEPCAPS => {
            let process = kernel.process_mut();
            process.secure_bits &= !secure::KEEP_CAPABILITIES;
            if value != 0 {
                process.secure_bits |= secure::KEEP_CAPABILITIES;
            }
        }
        SET_NAME => {
            let name = kernel.read_name(value)?;
            kernel.task_mut().name = name;
        }
        GET_NAME => {
            let name = kernel.task().name;
            kernel.write_bytes(value, &name)?;
        }
        GET_SECUREBITS => return Ok(Value::concrete(kernel.process().secure_bits.into())),
        SET_SECUREBITS => kernel.set_secure_bits(value)?,
        GET_SECCOMP | GET_TIMING | EVENTS_OFF | EVENTS_ON => {}
        SET_TIMING if value != 0 => return Err(Errno::EINVAL.into()),
        SET_TIMING => {}
        SET_TIMERSLACK => {
            let slack = if value as i64 <= 0 {
                DEFAULT_SLACK_NS
            } else {
                value
            };
            kernel.task_mut().timer_slack_ns = slack;
        }
        GET_TIMERSLACK => return Ok(Value::concrete(kernel.task().timer_slack_ns)),
        SET_THP_DISABLE if call.args[2..5] != [0; 3] => return Err(Errno::EINVAL.into()),
        SET_THP_DISABLE => kernel.process_mut().has_huge_pages = value == 0,
        GET_THP_DISABLE if call.args[1..5] != [0; 4] => return Err(Errno::EINVAL.into()),
        GET_THP_DISABLE => return Ok(Value::concrete((!kernel.process().has_huge_pages).into())),
        READ_BOUNDING => return kernel.bounding_set(value, false),
        DROP_BOUNDING => return kernel.bounding_set(value, true),
        AMBIENT if call.args[3..5] != [0; 2] => return Err(Errno::EINVAL.into()),
        AMBIENT => return kernel.ambient_set(value, call.args[2]),
        GET_TID_ADDRESS => {
            let address = kernel.task().clear_child_tid;
            kernel.write_bytes(value, &address.to_le_bytes())?;
        }
        GET_TSC => return told(kernel, 1),
        SET_TSC if value == TSC_ENABLED => {}
        GET_MEMORY_FAILURES if call.args[1..5] == [0; 4] => {
            return Ok(Value::concrete(MEMORY_FAILURES_BY_DEFAULT));
        }
        GET_SPECULATION if call.args[2..5] != [0; 3] => return Err(Errno::EINVAL.into()),
        GET_SPECULATION if value > LAST_SPECULATION => return Err(Errno::ENODEV.into()),
        GET_IO_FLUSHER if !kernel.is_capable(SYS_RESOURCE) => return Err(Errno::EPERM.into()),
        GET_IO_FLUSHER if call.args[1..5] == [0; 4] => {}
        // Only debuggers and `/proc` would see the effect.
        SET_PTRACER | SET_VMA => {}
        // Only other processors support these.
        GET_UNALIGNED | SET_UNALIGNED | GET_ENDIAN | SET_ENDIAN | GET_FPEMU | SET_FPEMU
        | GET_FPEXC | SET_FPEXC => {
            return Err(Errno::EINVAL.into());
        }
        SET_CHILD_SUBREAPER => kernel.process_mut().is_subreaper = value != 0,
        GET_CHILD_SUBREAPER => {
            let is = i32::from(kernel.process().is_subreaper);
            return told(kernel, is);
        }
        SET_NO_NEW_PRIVS | GET_NO_NEW_PRIVS if call.args[2..5] != [0; 3] => {
            return Err(Errno::EINVAL.into());
        }
        SET_NO_NEW_PRIVS if value != 1 => return Err(Errno::EINVAL.into()),
        SET_NO_NEW_PRIVS => kernel.process_mut().no_new_privileges = true,
        GET_NO_NEW_PRIVS if value != 0 => return Err(Errno::EINVAL.into()),
        GET_NO_NEW_PRIVS => {
            return Ok(Value::concrete(kernel.process().no_new_privileges.into()));
        }
        operation => {
            kernel.refuse("prctl", format!("prctl operation {operation}"));
            return Err(Errno::EINVAL.into());
        }
    }
    Ok(Value::ZERO)
}

impl Kernel<'_, '_> {
    /// `PR_SET_SECUREBITS`: `EPERM` if a locked bit would change or lose its lock.
    fn set_secure_bits(&mut self, to: u64) -> Result<(), Errno> {
        let old = u64::from(self.process().secure_bits);
        let locked = (old & secure::LOCKS) >> 1;
        let is_wrong = locked & (old ^ to) != 0
            || old & secure::LOCKS & !to != 0
            || to & !(secure::LOCKS | secure::LOCKS >> 1) != 0;
        if is_wrong || !self.is_capable(SETPCAP) {
            return Err(Errno::EPERM);
        }
        self.process_mut().secure_bits = to as u32;
        Ok(())
    }

    /// Reads a thread name, at most 15 bytes.
    fn read_name(&mut self, address: u64) -> Result<[u8; 16], Stop> {
        let mut name = [0; 16];
        for (at, byte) in name.iter_mut().enumerate().take(15) {
            *byte = self.read_bytes(address.wrapping_add(at as u64), 1)?[0];
            if *byte == 0 {
                break;
            }
        }
        Ok(name)
    }
}

fn personality(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const ASK: u32 = u32::MAX;
    match call.args[0] as u32 {
        0 | ASK => Ok(Value::ZERO),
        other => {
            kernel.refuse("personality", format!("personality {other:#x}"));
            Err(Errno::EINVAL.into())
        }
    }
}
