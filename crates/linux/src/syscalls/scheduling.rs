//! Scheduling attributes. There is one processor, which stands for several: a thread that waits in a
//! loop for another one does not keep it from running. So real-time priorities count only among
//! threads that the program has bound to one processor; nice values are stored without effect.

use everett_vm::Value;
use triomphe::Arc;

use crate::capabilities::SYS_NICE;
use crate::errno::Errno;
use crate::kernel::{Answer, Kernel, Stop};
use crate::limits::{NICE, REAL_TIME_PRIORITY};
use crate::process::{INIT, RunState, TaskState};
use crate::table::ArgKind::{Flags, Int, Pointer};
use crate::table::property::{ONE_THREAD, YIELDS};
use crate::table::{Call, Row};

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new("sched_yield", 24, &[], &[], sched_yield).with(YIELDS),
    Row::new("getpriority", 140, &[Int, Int], &[], getpriority),
    Row::new("setpriority", 141, &[Int, Int, Int], &[], setpriority).without(NO_EFFECT),
    Row::new("sched_setparam", 142, &[Int, Pointer], &[], sched_setparam).without(REAL_TIME),
    Row::new("sched_getparam", 143, &[Int, Pointer], &[], sched_getparam),
    Row::new(
        "sched_setscheduler",
        144,
        &[Int, Int, Pointer],
        &[],
        sched_setscheduler,
    )
    .without(REAL_TIME),
    Row::new("sched_getscheduler", 145, &[Int], &[], sched_getscheduler),
    Row::new("sched_get_priority_max", 146, &[Int], &[], |_, call| {
        priority_bound(call, 99)
    }),
    Row::new("sched_get_priority_min", 147, &[Int], &[], |_, call| {
        priority_bound(call, 1)
    }),
    Row::new(
        "sched_rr_get_interval",
        148,
        &[Int, Pointer],
        &[],
        sched_rr_get_interval,
    ),
    Row::new(
        "sched_setaffinity",
        203,
        &[Int, Int, Pointer],
        &[],
        sched_setaffinity,
    )
    .without("there is one processor"),
    Row::new(
        "sched_getaffinity",
        204,
        &[Int, Int, Pointer],
        &[],
        sched_getaffinity,
    )
    .with(ONE_THREAD),
    Row::new(
        "sched_setattr",
        314,
        &[Int, Pointer, Flags],
        &[],
        sched_setattr,
    )
    .without(REAL_TIME),
    Row::new(
        "sched_getattr",
        315,
        &[Int, Pointer, Int, Flags],
        &[],
        sched_getattr,
    ),
];

const NO_EFFECT: &str = "stored without effect on scheduling";
const REAL_TIME: &str = "only has effect among threads bound to one processor";

const FIFO: u32 = 1;
const ROUND_ROBIN: u32 = 2;
const BATCH: u32 = 3;
const IDLE: u32 = 5;
const DEADLINE: u32 = 6;
const RESET_ON_FORK: u32 = 0x4000_0000;
/// Size of the largest mask of processors that is read, in bytes.
const MASK_SIZE: u64 = 128;
const PAGE_SIZE: u64 = 4096;

fn sched_yield(kernel: &mut Kernel<'_, '_>, _: &Call) -> Answer {
    kernel.host.schedule.yielded = true;
    kernel.host.schedule.quantum = 0;
    Ok(Value::ZERO)
}

/// A task that a call names.
#[derive(Copy, Clone)]
enum Named {
    /// By its index.
    Task(usize),
    /// The thread of process 1.
    Init,
}

impl Kernel<'_, '_> {
    /// The task with a tid; 0 is the calling one.
    fn task_or_self(&self, tid: i32) -> Result<Named, Errno> {
        match tid {
            0 => Ok(Named::Task(self.task)),
            tid if tid < 0 => Err(Errno::EINVAL),
            tid => match self.host.task_by_tid(tid as u32) {
                Some(at) => Ok(Named::Task(at)),
                None if tid as u32 == INIT => Ok(Named::Init),
                None => Err(Errno::ESRCH),
            },
        }
    }

    fn named(&self, which: Named) -> &TaskState {
        match which {
            Named::Task(at) => &self.host.tasks[at],
            Named::Init => &self.host.init.task,
        }
    }

    fn named_mut(&mut self, which: Named) -> &mut TaskState {
        match which {
            Named::Task(at) => Arc::make_mut(&mut self.host.tasks[at]),
            Named::Init => &mut Arc::make_mut(&mut self.host.init).task,
        }
    }

    /// Whether the process is of the user of a task, or may change how the tasks of others are
    /// scheduled.
    fn may_schedule(&self, which: Named) -> bool {
        let own = self.process().uid[1];
        let process = self.host.process_by_pid(self.named(which).pid);
        let is_same = process.is_some_and(|process| process.uid[..2].contains(&own));
        is_same || self.is_capable(SYS_NICE)
    }

    fn read_int(&mut self, address: u64) -> Result<i32, Stop> {
        let value = self.read_value(address, 4)?;
        Ok(self.vm.concretize(value)? as i32)
    }

    /// A limit of the process of a task.
    fn limit_of(&self, which: Named, resource: usize) -> u64 {
        let process = self.host.process_by_pid(self.named(which).pid);
        process.map_or(0, |process| process.limits.soft(resource))
    }

    /// Whether `RLIMIT_NICE` allows a task this nice value.
    fn limit_allows_nice(&self, which: Named, nice: i32) -> bool {
        (20 - nice) as u64 <= self.limit_of(which, NICE)
    }

    /// Whether the limits of a task allow it this policy and priority without a privilege.
    fn limits_allow(&self, which: Named, policy: u32, priority: i32) -> bool {
        let task = self.named(which);
        let kind = policy & !RESET_ON_FORK;
        let (old, old_priority) = (task.policy.0 & !RESET_ON_FORK, task.real_time_priority());
        if matches!(kind, FIFO | ROUND_ROBIN) {
            let limit = self.limit_of(which, REAL_TIME_PRIORITY);
            let is_new = kind != old && limit == 0;
            if is_new || priority > old_priority && priority as u64 > limit {
                return false;
            }
        }
        let leaves_idle = old == IDLE && kind != IDLE;
        let keeps_reset = task.policy.0 & RESET_ON_FORK == 0 || policy & RESET_ON_FORK != 0;
        keeps_reset && (!leaves_idle || self.limit_allows_nice(which, task.nice))
    }

    fn set_policy(&mut self, which: Named, policy: u32, priority: i32) -> Answer {
        let fits = match policy & !RESET_ON_FORK {
            FIFO | ROUND_ROBIN => (1..=99).contains(&priority),
            0 | BATCH | IDLE => priority == 0,
            _ => false,
        };
        if !fits {
            return Err(Errno::EINVAL.into());
        }
        let is_allowed = self.may_schedule(which) && self.limits_allow(which, policy, priority);
        if !is_allowed && !self.is_capable(SYS_NICE) {
            return Err(Errno::EPERM.into());
        }
        let task = self.named_mut(which);
        task.policy = (policy, priority);
        if task.real_time_priority() > 0 && !task.pinned {
            self.refuse("sched_setscheduler", "a real-time scheduling policy");
        }
        Ok(Value::ZERO)
    }

    /// The tasks that `getpriority` and `setpriority` select.
    fn of_priority(&self, which: i32, who: i32) -> Result<Vec<Named>, Errno> {
        const PROCESS: i32 = 0;
        const GROUP: i32 = 1;
        const USER: i32 = 2;
        let own = self.process();
        let who = who as u32;
        let matches = |task: &TaskState| {
            let Some(process) = self.host.process_by_pid(task.pid) else {
                return false;
            };
            match which {
                PROCESS if who == 0 => task.tid == self.task().tid,
                PROCESS => task.tid == who,
                GROUP if who == 0 => process.group == own.group,
                GROUP => process.group == who,
                _ if who == 0 => process.uid[0] == own.uid[0],
                _ => process.uid[0] == who,
            }
        };
        if !matches!(which, PROCESS | GROUP | USER) {
            return Err(Errno::EINVAL);
        }
        let lives = |at: &usize| self.host.tasks[*at].run_state != RunState::Ended;
        let tasks = (0..self.host.tasks.len()).filter(lives).map(Named::Task);
        let all = std::iter::once(Named::Init).chain(tasks);
        let found: Vec<Named> = all.filter(|one| matches(self.named(*one))).collect();
        if found.is_empty() {
            return Err(Errno::ESRCH);
        }
        Ok(found)
    }

    /// Sets the nice value of a task.
    fn set_nice(&mut self, which: Named, nice: i32) -> Result<(), Errno> {
        if !self.may_schedule(which) {
            return Err(Errno::EPERM);
        }
        let raises = nice < self.named(which).nice;
        if raises && !self.limit_allows_nice(which, nice) && !self.is_capable(SYS_NICE) {
            return Err(Errno::EACCES);
        }
        self.named_mut(which).nice = nice;
        Ok(())
    }
}

fn getpriority(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let found = kernel.of_priority(call.int(0), call.int(1))?;
    let least = found.iter().map(|one| kernel.named(*one).nice).min();
    // The system call returns 20 minus the nice value, so that it is never negative.
    Ok(Value::concrete((20 - least.unwrap_or(0)) as u64))
}

/// Sets the nice values of all that it may; the last failure is the result.
fn setpriority(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let found = kernel.of_priority(call.int(0), call.int(1))?;
    let nice = call.int(2).clamp(-20, 19);
    let mut result = Ok(Value::ZERO);
    for one in found {
        if let Err(errno) = kernel.set_nice(one, nice) {
            result = Err(errno.into());
        }
    }
    result
}

fn sched_setparam(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let priority = kernel.read_int(call.args[1])?;
    let task = kernel.task_or_self(call.int(0))?;
    let policy = kernel.named(task).policy.0;
    kernel.set_policy(task, policy, priority)
}

fn sched_getparam(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let task = kernel.task_or_self(call.int(0))?;
    let priority = kernel.named(task).policy.1;
    kernel.write_bytes(call.args[1], &priority.to_le_bytes())?;
    Ok(Value::ZERO)
}

fn sched_setscheduler(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let policy = u32::try_from(call.int(1)).map_err(|_| Errno::EINVAL)?;
    let priority = kernel.read_int(call.args[2])?;
    let task = kernel.task_or_self(call.int(0))?;
    kernel.set_policy(task, policy, priority)
}

fn sched_getscheduler(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let task = kernel.task_or_self(call.int(0))?;
    let policy = kernel.named(task).policy.0;
    Ok(Value::concrete(u64::from(policy)))
}

/// Sizes of a `struct sched_attr`: the first version, and all that the model knows.
const FIRST_ATTRIBUTES: u64 = 48;
const ATTRIBUTES: u64 = 56;
/// `SCHED_FLAG_RESET_ON_FORK`, and all flags of `sched_setattr`.
const RESET_FLAG: u64 = 1;
const ATTRIBUTE_FLAGS: u64 = 0x7f;

fn sched_getattr(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let [_, address, room, flags, ..] = call.args;
    let room = room & 0xffff_ffff;
    let is_wrong = address == 0 || call.int(0) < 0 || flags as u32 != 0;
    if is_wrong || !(FIRST_ATTRIBUTES..=PAGE_SIZE).contains(&room) {
        return Err(Errno::EINVAL.into());
    }
    let which = kernel.task_or_self(call.int(0))?;
    let task = kernel.named(which);
    let (policy, priority) = task.policy;
    let resets = u64::from(policy & RESET_ON_FORK != 0);
    let kind = policy & !RESET_ON_FORK;
    let size = room.min(ATTRIBUTES);
    let nice = match kind {
        FIFO | ROUND_ROBIN => 0,
        _ => task.nice as u32,
    };
    let mut bytes = [size as u32, kind].map(u32::to_le_bytes).concat();
    bytes.extend_from_slice(&(resets * RESET_FLAG).to_le_bytes());
    bytes.extend_from_slice(&[nice, priority as u32].map(u32::to_le_bytes).concat());
    bytes.resize(size as usize, 0);
    kernel.write_bytes(address, &bytes)?;
    Ok(Value::ZERO)
}

fn sched_setattr(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let address = call.args[1];
    if address == 0 || call.int(0) < 0 || call.args[2] as u32 != 0 {
        return Err(Errno::EINVAL.into());
    }
    let size = match kernel.read_int(address)? as u32 {
        0 => FIRST_ATTRIBUTES,
        size => u64::from(size),
    };
    if !(FIRST_ATTRIBUTES..=PAGE_SIZE).contains(&size) {
        kernel.write_bytes(address, &(ATTRIBUTES as u32).to_le_bytes())?;
        return Err(Errno::E2BIG.into());
    }
    let mut bytes = kernel.read_bytes(address, size)?;
    let is_known = bytes
        .iter()
        .skip(ATTRIBUTES as usize)
        .all(|byte| *byte == 0);
    if !is_known {
        kernel.write_bytes(address, &(ATTRIBUTES as u32).to_le_bytes())?;
        return Err(Errno::E2BIG.into());
    }
    bytes.resize(ATTRIBUTES as usize, 0);
    let word = |at: usize| {
        let word = bytes[at..].first_chunk();
        word.map_or(0, |word| u32::from_le_bytes(*word))
    };
    let (policy, nice, priority) = (word(4), word(16) as i32, word(20) as i32);
    let flags = u64::from(word(8)) | u64::from(word(12)) << 32;
    let which = kernel.task_or_self(call.int(0))?;
    if (policy as i32) < 0 || flags & !ATTRIBUTE_FLAGS != 0 {
        return Err(Errno::EINVAL.into());
    }
    if policy == DEADLINE || flags & !RESET_FLAG != 0 {
        if policy == DEADLINE && !kernel.is_capable(SYS_NICE) {
            return Err(Errno::EPERM.into());
        }
        kernel.refuse(
            "sched_setattr",
            format!("policy {policy} with flags {flags:#x}"),
        );
        return Err(Errno::EINVAL.into());
    }
    let resets = if flags & RESET_FLAG != 0 {
        RESET_ON_FORK
    } else {
        0
    };
    let is_fair = matches!(policy, 0 | BATCH);
    let nice = nice.clamp(-20, 19);
    if is_fair && nice < kernel.named(which).nice {
        let may = kernel.limit_allows_nice(which, nice) || kernel.is_capable(SYS_NICE);
        may.then_some(()).ok_or(Errno::EPERM)?;
    }
    kernel.set_policy(which, policy | resets, priority)?;
    if is_fair {
        kernel.named_mut(which).nice = nice;
    }
    Ok(Value::ZERO)
}

fn priority_bound(call: &Call, of_real_time: u64) -> Answer {
    match call.int(0) {
        1 | 2 => Ok(Value::concrete(of_real_time)),
        0 | 3 | 5 | 6 => Ok(Value::ZERO),
        _ => Err(Errno::EINVAL.into()),
    }
}

fn sched_rr_get_interval(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const MILLISECOND: u64 = 1_000_000;
    let task = kernel.task_or_self(call.int(0))?;
    let interval = match kernel.named(task).policy.0 & !RESET_ON_FORK {
        FIFO => 0,
        ROUND_ROBIN => 100 * MILLISECOND,
        _ => 4 * MILLISECOND,
    };
    kernel.write_bytes(call.args[1], &super::time::timespec(interval))?;
    Ok(Value::ZERO)
}

/// There is one processor.
fn sched_getaffinity(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.task_or_self(call.int(0))?;
    if call.args[1] < 8 || !call.args[1].is_multiple_of(8) {
        return Err(Errno::EINVAL.into());
    }
    kernel.write_bytes(call.args[2], &1u64.to_le_bytes())?;
    Ok(Value::concrete(8))
}

fn sched_setaffinity(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let mask = kernel.read_bytes(call.args[2], call.args[1].min(MASK_SIZE))?;
    let task = kernel.task_or_self(call.int(0))?;
    if !kernel.may_schedule(task) {
        return Err(Errno::EPERM.into());
    }
    if mask.first().is_none_or(|byte| byte & 1 == 0) {
        return Err(Errno::EINVAL.into());
    }
    let processors: u32 = mask.iter().map(|byte| byte.count_ones()).sum();
    kernel.named_mut(task).pinned = processors == 1;
    Ok(Value::ZERO)
}

impl TaskState {
    /// Its real-time priority; 0 if its policy is another one.
    pub fn real_time_priority(&self) -> i32 {
        match self.policy.0 & !RESET_ON_FORK {
            FIFO | ROUND_ROBIN => self.policy.1,
            _ => 0,
        }
    }
}
