//! Scheduling attributes. There is one processor, which stands for several: a thread that waits in a
//! loop for another one does not keep it from running. So real-time priorities count only among
//! threads that the program has bound to one processor; nice values are stored without effect.

use everett_vm::Value;
use triomphe::Arc;

use crate::capabilities::SYS_NICE;
use crate::errno::Errno;
use crate::kernel::{Answer, Kernel, Stop};
use crate::process::{RunState, TaskState};
use crate::table::ArgKind::{Int, Pointer};
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
];

const NO_EFFECT: &str = "stored without effect on scheduling";
const REAL_TIME: &str = "only has effect among threads bound to one processor";

const FIFO: u32 = 1;
const ROUND_ROBIN: u32 = 2;
const RESET_ON_FORK: u32 = 0x4000_0000;
/// Size of the largest mask of processors that is read, in bytes.
const MASK_SIZE: u64 = 128;

fn sched_yield(kernel: &mut Kernel<'_, '_>, _: &Call) -> Answer {
    kernel.host.schedule.yielded = true;
    kernel.host.schedule.quantum = 0;
    Ok(Value::ZERO)
}

impl Kernel<'_, '_> {
    /// The task with a tid; 0 is the calling one.
    fn task_or_self(&self, tid: i32) -> Result<usize, Errno> {
        match tid {
            0 => Ok(self.task),
            tid if tid < 0 => Err(Errno::EINVAL),
            tid => self.host.task_by_tid(tid as u32).ok_or(Errno::ESRCH),
        }
    }

    fn read_int(&mut self, address: u64) -> Result<i32, Stop> {
        let value = self.read_value(address, 4)?;
        Ok(self.vm.concretize(value)? as i32)
    }

    fn set_policy(&mut self, tid: i32, policy: u32, priority: i32) -> Answer {
        let task = self.task_or_self(tid)?;
        let fits = match policy & !RESET_ON_FORK {
            FIFO | ROUND_ROBIN => (1..=99).contains(&priority),
            0 | 3 | 5 => priority == 0,
            _ => false,
        };
        if !fits {
            return Err(Errno::EINVAL.into());
        }
        if matches!(policy & !RESET_ON_FORK, FIFO | ROUND_ROBIN) && !self.is_capable(SYS_NICE) {
            return Err(Errno::EPERM.into());
        }
        Arc::make_mut(&mut self.host.tasks[task]).policy = (policy, priority);
        let task = &self.host.tasks[task];
        if task.real_time_priority() > 0 && !task.pinned {
            self.refuse("sched_setscheduler", "a real-time scheduling policy");
        }
        Ok(Value::ZERO)
    }

    /// The tasks that `getpriority` and `setpriority` select.
    fn of_priority(&self, which: i32, who: i32) -> Result<Vec<usize>, Errno> {
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
        let tasks = self.host.tasks.iter().enumerate();
        let found: Vec<usize> = tasks
            .filter(|(_, task)| task.run_state != RunState::Ended && matches(task))
            .map(|(at, _)| at)
            .collect();
        if found.is_empty() {
            return Err(Errno::ESRCH);
        }
        Ok(found)
    }
}

fn getpriority(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let found = kernel.of_priority(call.int(0), call.int(1))?;
    let least = found.iter().map(|at| kernel.host.tasks[*at].nice).min();
    // The system call returns 20 minus the nice value, so that it is never negative.
    Ok(Value::concrete((20 - least.unwrap_or(0)) as u64))
}

fn setpriority(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let found = kernel.of_priority(call.int(0), call.int(1))?;
    let nice = call.int(2).clamp(-20, 19);
    let raises = |at: &usize| nice < kernel.host.tasks[*at].nice;
    if found.iter().any(raises) && !kernel.is_capable(SYS_NICE) {
        return Err(Errno::EACCES.into());
    }
    for at in found {
        Arc::make_mut(&mut kernel.host.tasks[at]).nice = nice;
    }
    Ok(Value::ZERO)
}

fn sched_setparam(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let priority = kernel.read_int(call.args[1])?;
    let task = kernel.task_or_self(call.int(0))?;
    let policy = kernel.host.tasks[task].policy.0;
    kernel.set_policy(call.int(0), policy, priority)
}

fn sched_getparam(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let task = kernel.task_or_self(call.int(0))?;
    let priority = kernel.host.tasks[task].policy.1;
    kernel.write_bytes(call.args[1], &priority.to_le_bytes())?;
    Ok(Value::ZERO)
}

fn sched_setscheduler(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let policy = u32::try_from(call.int(1)).map_err(|_| Errno::EINVAL)?;
    let priority = kernel.read_int(call.args[2])?;
    kernel.set_policy(call.int(0), policy, priority)
}

fn sched_getscheduler(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let task = kernel.task_or_self(call.int(0))?;
    let policy = kernel.host.tasks[task].policy.0;
    Ok(Value::concrete(u64::from(policy)))
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
    let interval = match kernel.host.tasks[task].policy.0 & !RESET_ON_FORK {
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
    let task = kernel.task_or_self(call.int(0))?;
    let mask = kernel.read_bytes(call.args[2], call.args[1].min(MASK_SIZE))?;
    if mask.first().is_none_or(|byte| byte & 1 == 0) {
        return Err(Errno::EINVAL.into());
    }
    let processors: u32 = mask.iter().map(|byte| byte.count_ones()).sum();
    Arc::make_mut(&mut kernel.host.tasks[task]).pinned = processors == 1;
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
