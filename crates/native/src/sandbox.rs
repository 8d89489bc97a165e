//! The sandbox of native processes. The first line of defence is ptrace: every system call stops and is
//! answered by the model. The sandbox catches what does not stop: calls without a tracer, vsyscalls,
//! unlimited memory.

use std::io;

use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::Pid;

/// Resident memory up to which a process gets more.
pub const MAX_MEMORY: u64 = 2 << 30;
/// The most resident memory of all processes of a run.
pub const MAX_RESIDENT: u64 = 4 << 30;
/// The largest address space of a process for private memory; the same again for shared memory.
pub const MAX_MAPPED: u64 = 16 << 30;
const STACK: u64 = 8 << 20;

/// System calls that are carried out on real processes; see `call_numbers`. With `recvmsg` they receive
/// files that stand for those of the model, over the only socket that they have.
const CARRIED_OUT: [u32; 18] = [
    3, 9, 10, 11, 12, 13, 15, 25, 27, 28, 47, 56, 59, 60, 131, 157, 158, 317,
];

const LOAD_WORD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;
const ARCH_X86_64: u32 = 0xc000_003e;
const AT_NUMBER: u32 = 0;
const AT_ARCH: u32 = 4;
const KILL_PROCESS: u32 = 0x8000_0000;
const TRAP: u32 = 0x0003_0000;
const ALLOW: u32 = 0x7fff_0000;

const fn step(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

/// The seccomp filter: calls that are carried out pass, all others raise SIGSYS; 32-bit calls kill the
/// process.
const FILTER: [libc::sock_filter; CARRIED_OUT.len() + 6] = {
    let last = CARRIED_OUT.len() + 5;
    let mut filter = [step(RETURN, 0, 0, ALLOW); CARRIED_OUT.len() + 6];
    filter[0] = step(LOAD_WORD, 0, 0, AT_ARCH);
    filter[1] = step(JUMP_IF_EQUAL, 1, 0, ARCH_X86_64);
    filter[2] = step(RETURN, 0, 0, KILL_PROCESS);
    filter[3] = step(LOAD_WORD, 0, 0, AT_NUMBER);
    let mut at = 0;
    while at < CARRIED_OUT.len() {
        let to_last = last - (4 + at) - 1;
        filter[4 + at] = step(JUMP_IF_EQUAL, to_last as u8, 0, CARRIED_OUT[at]);
        at += 1;
    }
    filter[last - 1] = step(RETURN, 0, 0, TRAP);
    filter
};

/// Sandbox variants.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SandboxKind {
    /// The address space is limited.
    LimitedMemory,
    /// The address space is unlimited: a checked build reserves a shadow of it, most of which it never uses.
    FullAddressSpace,
}

/// Applies the sandbox to the calling process, which is about to execute a native program. Makes only calls
/// that are allowed between `fork` and `exec`.
pub fn confine(kind: SandboxKind) -> io::Result<()> {
    const NO_RANDOM_ADDRESSES: libc::c_ulong = 0x004_0000;
    if kind == SandboxKind::LimitedMemory {
        limit(Resource::RLIMIT_DATA, MAX_MAPPED)?;
    }
    limit(Resource::RLIMIT_STACK, STACK)?;
    limit(Resource::RLIMIT_CORE, 0)?;
    limit(Resource::RLIMIT_MEMLOCK, 0)?;
    let filter = libc::sock_fprog {
        len: FILTER.len() as u16,
        filter: FILTER.as_ptr().cast_mut(),
    };
    // SAFETY: numbers, and a filter that is a constant of the program.
    let refused = unsafe {
        libc::personality(NO_RANDOM_ADDRESSES);
        // The time-stamp counter is not the virtual clock: reading it faults and is emulated.
        libc::prctl(libc::PR_SET_TSC, libc::PR_TSC_SIGSEGV);
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &filter) != 0
    };
    if refused {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn limit(resource: Resource, most: u64) -> io::Result<()> {
    Ok(setrlimit(resource, most, most)?)
}

/// Resident memory of a process in bytes.
pub fn resident(process: Pid) -> u64 {
    const PAGE: u64 = 4096;
    let text = std::fs::read_to_string(format!("/proc/{process}/statm")).unwrap_or_default();
    let pages = text.split(' ').nth(1);
    let pages = pages.and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0u64).saturating_mul(PAGE)
}

/// Pins a thread of ours and its children to one processor: switching between a native thread and us is much
/// slower across two. Dropping it restores the affinity.
pub struct Pinned {
    before: Option<libc::cpu_set_t>,
}

impl Pinned {
    /// Pins to the current processor.
    pub fn here() -> Pinned {
        // SAFETY: sets are plain bits on our stack; 0 means this thread.
        unsafe {
            let size = size_of::<libc::cpu_set_t>();
            let mut before: libc::cpu_set_t = std::mem::zeroed();
            let here = libc::sched_getcpu();
            if here < 0 || libc::sched_getaffinity(0, size, &mut before) != 0 {
                return Pinned { before: None };
            }
            let mut only: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(here as usize, &mut only);
            let pinned = libc::sched_setaffinity(0, size, &only) == 0;
            Pinned {
                before: pinned.then_some(before),
            }
        }
    }
}

/// Gives a process the affinity of this thread.
pub fn share_affinity(process: Pid) {
    // SAFETY: a set is plain bits on our stack; 0 means this thread. A failure costs only speed.
    unsafe {
        let size = size_of::<libc::cpu_set_t>();
        let mut here: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size, &mut here) == 0 {
            libc::sched_setaffinity(process.as_raw(), size, &here);
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // SAFETY: as above.
            unsafe {
                libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), before);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Executes the filter as the kernel does.
    fn verdict(arch: u32, number: u32) -> u32 {
        let (mut at, mut word) = (0, 0);
        loop {
            let step = FILTER[at];
            at += 1;
            match step.code {
                LOAD_WORD => word = if step.k == AT_ARCH { arch } else { number },
                JUMP_IF_EQUAL => at += usize::from(if word == step.k { step.jt } else { step.jf }),
                _ => return step.k,
            }
        }
    }

    #[test]
    fn only_what_is_carried_out_passes() {
        for number in 0..500 {
            let expected = match CARRIED_OUT.contains(&number) {
                true => ALLOW,
                false => TRAP,
            };
            assert_eq!(verdict(ARCH_X86_64, number), expected, "{number}");
            assert_eq!(verdict(0x4000_0003, number), KILL_PROCESS, "{number}");
            assert_eq!(verdict(ARCH_X86_64, number | 0x4000_0000), TRAP, "{number}");
        }
    }

    #[test]
    fn memory_in_use_is_seen() {
        assert!(resident(nix::unistd::getpid()) > 1 << 20);
        assert_eq!(resident(Pid::from_raw(i32::MAX)), 0);
    }
}
