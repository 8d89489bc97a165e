//! `futex`, and the robust lists of locks that a thread releases when it exits.

use everett_vm::Value;
use std::cmp::Reverse;
use triomphe::Arc;

use crate::errno::Errno;
use crate::host::HostState;
use crate::kernel::{Answer, Kernel, Stop};
use crate::process::RunState;
use crate::table::ArgKind::{Flags, Int, Pointer, Symbolic};
use crate::table::property::ONE_THREAD;
use crate::table::{Call, Row};
use crate::timers::TimeBase;
use crate::wait::{FutexKey, WaitCondition};

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new(
        "futex",
        202,
        &[Pointer, Flags, Symbolic, Pointer, Pointer, Symbolic],
        &[],
        futex,
    )
    .without("priority inheritance of FUTEX_LOCK_PI"),
    Row::new(
        "set_robust_list",
        273,
        &[Pointer, Int],
        &[],
        set_robust_list,
    )
    .with(ONE_THREAD),
    Row::new(
        "get_robust_list",
        274,
        &[Int, Pointer, Pointer],
        &[],
        get_robust_list,
    )
    .without("other threads"),
];

const WAIT: u64 = 0;
const WAKE: u64 = 1;
const REQUEUE: u64 = 3;
const CMP_REQUEUE: u64 = 4;
const WAKE_OP: u64 = 5;
const LOCK_PI: u64 = 6;
const UNLOCK_PI: u64 = 7;
const TRYLOCK_PI: u64 = 8;
const WAIT_BITSET: u64 = 9;
const WAKE_BITSET: u64 = 10;
const PRIVATE: u64 = 128;
const CLOCK_REALTIME: u64 = 256;

/// `FUTEX_WAITERS`: other threads wait for the lock.
const WAITERS: u32 = 0x8000_0000;
/// `FUTEX_OWNER_DIED`.
const OWNER_DIED: u32 = 0x4000_0000;
const OWNER: u32 = 0x3fff_ffff;

/// Maximum number of entries of a robust list that are processed: the program may have built a
/// cycle.
const MAX_ROBUST: usize = 2048;

fn futex(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let operation = call.args[1] & !(PRIVATE | CLOCK_REALTIME);
    if !call.args[0].is_multiple_of(4) {
        return Err(Errno::EINVAL.into());
    }
    let key = kernel.futex_key(call.args[0])?;
    match operation {
        WAIT | WAIT_BITSET => {
            let mask = match operation {
                WAIT => u32::MAX,
                _ => kernel.vm.concretize(call.raw[5])? as u32,
            };
            if mask == 0 {
                return Err(Errno::EINVAL.into());
            }
            kernel.futex_wait(call, key, mask, operation == WAIT)
        }
        WAKE | WAKE_BITSET => {
            let mask = match operation {
                WAKE => u32::MAX,
                _ => kernel.vm.concretize(call.raw[5])? as u32,
            };
            let most = kernel.vm.concretize(call.raw[2])? as u32;
            Ok(count(kernel.host.wake(key, mask, most)))
        }
        REQUEUE | CMP_REQUEUE => {
            if operation == CMP_REQUEUE && !kernel.holds(call.args[0], call.raw[5])? {
                return Err(Errno::EAGAIN.into());
            }
            let most = kernel.vm.concretize(call.raw[2])? as u32;
            let to = kernel.futex_key(call.args[4])?;
            let woken = kernel.host.wake(key, u32::MAX, most);
            let moved = kernel.host.requeue(key, to, call.args[3] as u32);
            Ok(count(if operation == REQUEUE {
                woken
            } else {
                woken + moved
            }))
        }
        WAKE_OP => kernel.futex_wake_op(call, key),
        LOCK_PI | TRYLOCK_PI => kernel.futex_lock(call, key, operation == TRYLOCK_PI),
        UNLOCK_PI => kernel.futex_unlock(call, key),
        operation => {
            kernel.refuse("futex", format!("futex operation {operation}"));
            Err(Errno::ENOSYS.into())
        }
    }
}

/// The low 32 bits.
fn narrow(arena: &mut everett_expr::Arena, value: Value) -> everett_expr::ExprId {
    match value.term {
        None => arena.constant(32, value.bits & 0xffff_ffff),
        Some(term) => everett_vm::resize(arena, term, 32),
    }
}

fn count(count: u32) -> Value {
    Value::concrete(u64::from(count))
}

fn set_robust_list(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const HEAD_SIZE: u64 = 24;
    if call.args[1] != HEAD_SIZE {
        return Err(Errno::EINVAL.into());
    }
    kernel.task_mut().robust_list = (call.args[0], call.args[1]);
    Ok(Value::ZERO)
}

fn get_robust_list(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let tid = call.int(0) as u32;
    if tid != 0 && tid != kernel.task().tid {
        if kernel.host.tasks.iter().any(|task| task.tid == tid) {
            kernel.refuse("get_robust_list", "get_robust_list of another thread");
        }
        return Err(Errno::ESRCH.into());
    }
    let (head, len) = kernel.task().robust_list;
    kernel.check(call.args[1], 8, true)?;
    kernel.write_bytes(call.args[2], &len.to_le_bytes())?;
    kernel.write_bytes(call.args[1], &head.to_le_bytes())?;
    Ok(Value::ZERO)
}

impl Kernel<'_, '_> {
    /// The identity of the futex at an address.
    pub fn futex_key(&mut self, address: u64) -> Result<FutexKey, Stop> {
        self.check(address, 4, false)?;
        let shared = match &mut self.guest {
            Some(guest) => guest.shared_file_offset(address),
            None => {
                let place = self.vm.memory.shared_file_offset(address);
                place.map(|(inode, offset)| (u64::from(inode), offset))
            }
        };
        if let Some((inode, offset)) = shared {
            return Ok(FutexKey::Shared { inode, offset });
        }
        let pid = self.process().pid;
        Ok(FutexKey::Private { pid, address })
    }

    /// Whether the word at an address has this value.
    fn holds(&mut self, address: u64, value: Value) -> Result<bool, Stop> {
        let held = self.read_value(address, 4)?.to_term(self.vm.arena, 32);
        let value = narrow(self.vm.arena, value);
        let same = self.vm.arena.eq(held, value);
        Ok(self.vm.decide_term(same)?)
    }

    fn futex_wait(&mut self, call: &Call, key: FutexKey, mask: u32, relative: bool) -> Answer {
        if self.task().woken {
            return Ok(Value::ZERO);
        }
        let now = self.host.clock_ns;
        let deadline = match call.args[3] {
            0 => None,
            timeout if relative => Some(now.saturating_add(self.read_time(timeout)?)),
            timeout => Some(self.futex_deadline(call, timeout)?),
        };
        let is_over = self.task().deadline_ns.is_some_and(|at| at <= now);
        if !is_over && !self.holds(call.args[0], call.raw[2])? {
            return Err(Errno::EAGAIN.into());
        }
        if deadline.is_none() {
            return Err(self.wait_restartable(WaitCondition::Futex(key, mask), "futex"));
        }
        self.wait(WaitCondition::Futex(key, mask), deadline, "futex")?;
        Err(Errno::ETIMEDOUT.into())
    }

    /// Reads an absolute timeout on the clock that the call names.
    fn futex_deadline(&mut self, call: &Call, timeout: u64) -> Result<u64, Stop> {
        let at = self.read_time(timeout)?;
        let wall = call.args[1] & CLOCK_REALTIME != 0;
        Ok(match wall {
            true => self.wall_deadline(at),
            false => self.host.base_time_of(TimeBase::Host, at),
        })
    }

    fn read_word(&mut self, address: u64) -> Result<u32, Stop> {
        let value = self.read_value(address, 4)?;
        Ok(self.vm.concretize(value)? as u32)
    }

    /// `FUTEX_WAKE_OP`: changes the second word, wakes waiters of the first, and those of the
    /// second if its old value passes the comparison.
    fn futex_wake_op(&mut self, call: &Call, key: FutexKey) -> Answer {
        let encoded = self.vm.concretize(call.raw[5])? as u32;
        let most = self.vm.concretize(call.raw[2])? as u32;
        let (operation, comparison) = (encoded >> 28 & 7, encoded >> 24 & 0xf);
        let sign_extended = |bits: u32| ((bits << 20) as i32) >> 20;
        let mut argument = sign_extended(encoded >> 12 & 0xfff) as u32;
        if encoded >> 31 != 0 {
            argument = 1u32.wrapping_shl(argument);
        }
        let compared = sign_extended(encoded & 0xfff);
        let second = self.futex_key(call.args[4])?;
        let old = self.read_word(call.args[4])?;
        let new = match operation {
            0 => argument,
            1 => old.wrapping_add(argument),
            2 => old | argument,
            3 => old & !argument,
            4 => old ^ argument,
            _ => return Err(Errno::ENOSYS.into()),
        };
        let old_signed = old as i32;
        let also = match comparison {
            0 => old_signed == compared,
            1 => old_signed != compared,
            2 => old_signed < compared,
            3 => old_signed <= compared,
            4 => old_signed > compared,
            5 => old_signed >= compared,
            _ => return Err(Errno::ENOSYS.into()),
        };
        self.write_bytes(call.args[4], &new.to_le_bytes())?;
        let mut woken = self.host.wake(key, u32::MAX, most);
        if also {
            woken += self.host.wake(second, u32::MAX, call.args[3] as u32);
        }
        Ok(count(woken))
    }

    /// `FUTEX_LOCK_PI`: takes a lock whose word holds the tid of its owner.
    fn futex_lock(&mut self, call: &Call, key: FutexKey, only_try: bool) -> Answer {
        let tid = self.task().tid;
        let word = self.read_word(call.args[0])?;
        if word & OWNER == 0 {
            let new = word & (WAITERS | OWNER_DIED) | tid;
            self.write_bytes(call.args[0], &new.to_le_bytes())?;
            return Ok(Value::ZERO);
        }
        if word & OWNER == tid {
            return Err(Errno::EDEADLK.into());
        }
        if only_try {
            return Err(Errno::EAGAIN.into());
        }
        self.write_bytes(call.args[0], &(word | WAITERS).to_le_bytes())?;
        let deadline = match call.args[3] {
            0 => None,
            timeout => {
                let at = self.read_time(timeout)?;
                Some(self.wall_deadline(at))
            }
        };
        // A woken thread tries again.
        self.task_mut().woken = false;
        self.wait(WaitCondition::Futex(key, u32::MAX), deadline, "futex lock")?;
        Err(Errno::ETIMEDOUT.into())
    }

    fn futex_unlock(&mut self, call: &Call, key: FutexKey) -> Answer {
        let word = self.read_word(call.args[0])?;
        if word & OWNER != self.task().tid {
            return Err(Errno::EPERM.into());
        }
        self.write_bytes(call.args[0], &[0; 4])?;
        self.host.wake(key, u32::MAX, u32::MAX);
        Ok(Value::ZERO)
    }

    /// Releases the robust locks of an exiting thread: marks the locks on its list and wakes a
    /// waiter of each.
    pub(crate) fn release_robust_locks(&mut self, task: usize) {
        const OFFSET: u64 = 8;
        const PENDING: u64 = 16;
        let (head, owner) = (
            self.host.tasks[task].robust_list.0,
            self.host.tasks[task].tid,
        );
        if head == 0 {
            return;
        }
        let (Ok(mut entry), Ok(offset), Ok(pending)) = (
            self.read_u64(head),
            self.read_u64(head.wrapping_add(OFFSET)),
            self.read_u64(head.wrapping_add(PENDING)),
        ) else {
            return;
        };
        for _ in 0..MAX_ROBUST {
            if entry == head || entry == 0 {
                break;
            }
            self.release_robust_lock(entry.wrapping_add(offset), owner);
            let Ok(next) = self.read_u64(entry) else {
                break;
            };
            entry = next;
        }
        if pending != 0 {
            self.release_robust_lock(pending.wrapping_add(offset), owner);
        }
    }

    fn release_robust_lock(&mut self, address: u64, owner: u32) {
        let Ok(word) = self.read_word(address) else {
            return;
        };
        if word & OWNER != owner & OWNER {
            return;
        }
        let marked = word & WAITERS | OWNER_DIED;
        if self.write_bytes(address, &marked.to_le_bytes()).is_ok()
            && let Ok(key) = self.futex_key(address)
        {
            self.host.wake(key, u32::MAX, 1);
        }
    }
}

impl HostState {
    /// Wakes at most `most` threads at a futex, and returns how many: those with the highest
    /// real-time priority first, then those that wait longest.
    pub fn wake(&mut self, key: FutexKey, mask: u32, most: u32) -> u32 {
        let mut woken = 0;
        while woken < most
            && let Some(at) =
                self.first_waiting(|task_key, bits| task_key == key && bits & mask != 0)
        {
            Arc::make_mut(&mut self.tasks[at]).woken = true;
            woken += 1;
        }
        woken
    }

    /// Moves at most `most` waiting threads to another futex, and returns how many.
    fn requeue(&mut self, from: FutexKey, to: FutexKey, most: u32) -> u32 {
        let mut moved = 0;
        while moved < most
            && from != to
            && let Some(at) = self.first_waiting(|key, _| key == from)
        {
            if let RunState::Waiting(wait) = &mut Arc::make_mut(&mut self.tasks[at]).run_state
                && let WaitCondition::Futex(key, _) = &mut wait.condition
            {
                *key = to;
            }
            moved += 1;
        }
        moved
    }

    fn first_waiting(&self, wanted: impl Fn(FutexKey, u32) -> bool) -> Option<usize> {
        let waiting = self.tasks.iter().enumerate().filter(|(_, task)| {
            let RunState::Waiting(wait) = &task.run_state else {
                return false;
            };
            match wait.condition {
                WaitCondition::Futex(key, bits) => !task.woken && wanted(key, bits),
                _ => false,
            }
        });
        let first = waiting.min_by_key(|(_, task)| {
            let priority = Reverse(task.real_time_priority());
            (priority, task.waiting_since)
        });
        first.map(|(at, _)| at)
    }
}
