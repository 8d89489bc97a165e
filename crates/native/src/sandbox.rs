//! The sandbox of native processes. The first line of defence is ptrace: every system call
//! stops and is answered by the model. The sandbox catches what does not stop: calls without a
//! tracer, vsyscalls, unlimited memory.

use std::io;
use std::os::unix::fs::FileExt;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::Pid;

use crate::{gate, proc_reads};

/// Default limit of the resident memory of all processes of a run.
pub const MAX_MEMORY: u64 = 4 << 30;
/// Maximum size of private memory that a process only reserves (`MAP_NORESERVE`). Untouched memory
/// costs nothing, and touched memory is counted.
pub const MAX_RESERVED: u64 = 1 << 40;
/// Maximum size of private memory that is not only reserved: the model and real machines refuse
/// blocks that are larger than their memory.
pub const MAX_PROMISED: u64 = 16 << 30;
const STACK: u64 = 8 << 20;
/// The most that a program may raise it to.
const MAX_STACK: u64 = 256 << 20;

/// System calls that are carried out on real processes with any arguments; see `call_numbers`. With
/// `recvmsg`, processes receive files that represent those of the model, over the only socket that
/// they have.
const CARRIED_OUT: [u32; 15] = [3, 9, 10, 11, 12, 13, 15, 25, 27, 28, 47, 59, 60, 131, 317];
/// Calls that are carried out with one of these first arguments only.
const RESTRICTED: [(u32, &[u32]); 3] = [
    (
        56,
        &[
            0,
            SET_TLS as u32,
            SIBLING as u32,
            BORROWER as u32,
            (BORROWER | SET_TLS) as u32,
            THREAD as u32,
            (THREAD | SET_TLS) as u32,
        ],
    ),
    // `PR_SET_PTRACER`.
    (157, &[0x5961_6d61]),
    // `ARCH_SET_GS`, `ARCH_SET_FS`, `ARCH_GET_FS`, `ARCH_GET_GS`, `ARCH_SET_CPUID`.
    (158, &[0x1001, 0x1002, 0x1003, 0x1004, 0x1012]),
];

/// Flags of `clone` for a thread: `CLONE_VM`, `FS`, `FILES`, `SIGHAND`, `THREAD` and `SYSVSEM`.
pub const THREAD: u64 = 0x100 | 0x200 | 0x400 | 0x800 | 0x1_0000 | 0x4_0000;
/// `CLONE_VM`: a process that uses the memory of its parent, which waits.
pub const BORROWER: u64 = 0x100;
/// `CLONE_SETTLS`.
pub const SET_TLS: u64 = 0x8_0000;
/// `CLONE_PARENT`.
pub const SIBLING: u64 = 0x8000;

const LOAD_WORD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;
const ARCH_X86_64: u32 = 0xc000_003e;
const AT_NUMBER: u32 = 0;
const AT_ARCH: u32 = 4;
const AT_PLACE: u32 = 8;
const AT_ARGUMENT: u32 = 16;
/// Distance from the lower half of a word to the upper one.
const UPPER: u32 = 4;
const KILL_PROCESS: u32 = 0x8000_0000;
const TRAP: u32 = 0x0003_0000;
const ALLOW: u32 = 0x7fff_0000;

const fn step(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

/// Returns the seccomp filter: calls that are carried out pass, all others raise SIGSYS; 32-bit
/// calls, and calls with arguments that we never use, kill the process.
pub fn filter() -> Vec<libc::sock_filter> {
    let mut filter = vec![
        step(LOAD_WORD, 0, 0, AT_ARCH),
        step(JUMP_IF_EQUAL, 1, 0, ARCH_X86_64),
        step(RETURN, 0, 0, KILL_PROCESS),
        step(LOAD_WORD, 0, 0, AT_NUMBER),
    ];
    for number in CARRIED_OUT {
        filter.push(step(JUMP_IF_EQUAL, 0, 1, number));
        filter.push(step(RETURN, 0, 0, ALLOW));
    }
    for (number, arguments) in RESTRICTED {
        let tests = arguments.len() as u8;
        filter.push(step(JUMP_IF_EQUAL, 0, tests + 6, number));
        filter.push(step(LOAD_WORD, 0, 0, AT_ARGUMENT + UPPER));
        filter.push(step(JUMP_IF_EQUAL, 1, 0, 0));
        filter.push(step(RETURN, 0, 0, KILL_PROCESS));
        filter.push(step(LOAD_WORD, 0, 0, AT_ARGUMENT));
        for (argument, left) in arguments.iter().zip((0..tests).rev()) {
            filter.push(step(JUMP_IF_EQUAL, left + 1, 0, *argument));
        }
        filter.push(step(RETURN, 0, 0, KILL_PROCESS));
        filter.push(step(RETURN, 0, 0, ALLOW));
    }
    filter.push(step(RETURN, 0, 0, TRAP));
    filter
}

/// Returns the filter of processes that have a gate: calls pass only from there, except the `mmap`
/// that creates the gate of a new program.
pub fn gate_filter() -> Vec<libc::sock_filter> {
    const MMAP: u32 = 9;
    vec![
        step(LOAD_WORD, 0, 0, AT_NUMBER),
        step(JUMP_IF_EQUAL, 4, 0, MMAP),
        step(LOAD_WORD, 0, 0, AT_PLACE + UPPER),
        step(JUMP_IF_EQUAL, 0, 3, (gate::BEHIND >> 32) as u32),
        step(LOAD_WORD, 0, 0, AT_PLACE),
        step(JUMP_IF_EQUAL, 0, 1, gate::BEHIND as u32),
        step(RETURN, 0, 0, ALLOW),
        step(RETURN, 0, 0, TRAP),
    ]
}

/// Sandbox variants.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SandboxKind {
    /// The address space is limited.
    LimitedMemory,
    /// The address space is unlimited: a checked build reserves a shadow of it, most of which it
    /// never uses.
    FullAddressSpace,
}

/// Applies the sandbox to the calling process, which is about to execute a native program. Makes
/// only calls that are allowed between `fork` and `exec`.
pub fn confine(kind: SandboxKind, filter: &[libc::sock_filter]) -> io::Result<()> {
    const NO_RANDOM_ADDRESSES: libc::c_ulong = 0x004_0000;
    if kind == SandboxKind::LimitedMemory {
        limit(Resource::RLIMIT_DATA, MAX_RESERVED)?;
    }
    limit_stack()?;
    limit(Resource::RLIMIT_CORE, 0)?;
    limit(Resource::RLIMIT_MEMLOCK, 0)?;
    let filter = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: numbers, and a filter that lives as long as the call.
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

/// Sets the limit at the start. The model may raise it later.
fn limit_stack() -> io::Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_STACK)?;
    Ok(setrlimit(
        Resource::RLIMIT_STACK,
        STACK.min(hard),
        hard.min(MAX_STACK),
    )?)
}

/// Sets the limit of the stack of a process that runs in the sandbox.
pub fn limit_stack_of(process: Pid, most: u64) -> io::Result<()> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    let (process, null) = (process.as_raw(), std::ptr::null_mut());
    // SAFETY: the structure lives as long as the calls.
    let failed = unsafe {
        libc::prlimit(process, libc::RLIMIT_STACK, null, &raw mut limit) != 0 || {
            limit.rlim_cur = most.min(limit.rlim_max);
            libc::prlimit(process, libc::RLIMIT_STACK, &raw const limit, null) != 0
        }
    };
    match failed {
        true => Err(io::Error::last_os_error()),
        false => Ok(()),
    }
}

fn limit(resource: Resource, most: u64) -> io::Result<()> {
    Ok(setrlimit(resource, most, most)?)
}

/// Returns the memory of a process in bytes: resident pages and page tables. Reading untouched
/// memory needs tables only: a byte in every 2 MiB takes a page of them each.
pub fn resident(process: Pid) -> u64 {
    let [pages, tables] = status(process, ["VmRSS:", "VmPTE:"]);
    pages.saturating_add(tables)
}

/// Like [`resident`], without pages of files in memory, which processes share.
pub fn unshared(process: Pid) -> u64 {
    let [pages, shared, tables] = status(process, ["VmRSS:", "RssShmem:", "VmPTE:"]);
    pages.saturating_sub(shared).saturating_add(tables)
}

/// Returns the size of the private memory that a process has mapped, touched or not.
pub fn private_memory(process: Pid) -> u64 {
    let [bytes] = status(process, ["VmData:"]);
    bytes
}

/// Room for the status of a process: one read is much faster than many small ones.
const STATUS: usize = 4096;

/// Returns sizes from the status of a process, in bytes.
/// Returns the most memory that a process ever had resident, in whole MiB: a few pages more or less
/// depend on the machine.
pub fn peak(process: Pid) -> u64 {
    let [peak] = status(process, ["VmHWM:"]);
    peak & !((1 << 20) - 1)
}

fn status<const N: usize>(process: Pid, names: [&str; N]) -> [u64; N] {
    proc_reads::add(1);
    let mut text = [0; STATUS];
    let read = std::fs::File::open(format!("/proc/{process}/status"))
        .and_then(|file| file.read_at(&mut text, 0));
    let text = String::from_utf8_lossy(&text[..read.unwrap_or(0)]);
    let kib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    names.map(|name| kib(name).unwrap_or(0).saturating_mul(1024))
}

/// Pins a thread of Everett and its children to one processor: switching between a native thread
/// and its tracer is much slower across two. Dropping it restores the affinity.
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

/// Sets the affinity of a process to that of this thread.
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

    /// Executes a filter as the kernel does: `data` has number,
    /// architecture, place and first argument.
    fn verdict(filter: &[libc::sock_filter], (arch, number, place, argument): Data) -> u32 {
        let halves = |word: u64| [word as u32, (word >> 32) as u32];
        let ([place, upper_place], [low, high]) = (halves(place), halves(argument));
        let data = [number, arch, place, upper_place, low, high];
        let (mut at, mut word) = (0, 0);
        loop {
            let step = filter[at];
            at += 1;
            match step.code {
                LOAD_WORD => word = data[step.k as usize / 4],
                JUMP_IF_EQUAL => at += usize::from(if word == step.k { step.jt } else { step.jf }),
                _ => return step.k,
            }
        }
    }

    /// Architecture, number, address behind the instruction, first argument.
    type Data = (u32, u32, u64, u64);

    #[test]
    fn only_what_is_carried_out_passes() {
        let filter = filter();
        let of = |arch, number| verdict(&filter, (arch, number, gate::BEHIND, 0));
        for number in 0..500 {
            let expected = match number {
                56 => ALLOW,
                157 | 158 => KILL_PROCESS,
                number if CARRIED_OUT.contains(&number) => ALLOW,
                _ => TRAP,
            };
            assert_eq!(of(ARCH_X86_64, number), expected, "{number}");
            assert_eq!(of(0x4000_0003, number), KILL_PROCESS, "{number}");
            assert_eq!(of(ARCH_X86_64, number | 0x4000_0000), TRAP, "{number}");
        }
    }

    #[test]
    fn only_known_kinds_of_children_are_made() {
        let filter = filter();
        let clone = |flags| verdict(&filter, (ARCH_X86_64, 56, gate::BEHIND, flags));
        for bit in 0..64 {
            let flag = 1u64 << bit;
            let expected = match flag {
                SET_TLS | SIBLING | BORROWER => ALLOW,
                _ => KILL_PROCESS,
            };
            assert_eq!(clone(flag), expected, "{flag:#x}");
            if flag != SET_TLS && THREAD & flag == 0 {
                assert_eq!(clone(THREAD | flag), KILL_PROCESS, "{flag:#x}");
            }
        }
        assert_eq!(clone(THREAD | SET_TLS), ALLOW);
        assert_eq!(clone(BORROWER | SET_TLS), ALLOW);
        assert_eq!(clone(BORROWER | SIBLING), KILL_PROCESS);
    }

    #[test]
    fn calls_pass_only_from_the_gate() {
        let filter = gate_filter();
        let from = |place, number| verdict(&filter, (ARCH_X86_64, number, place, 0));
        for number in (0..500).filter(|number| *number != 9) {
            assert_eq!(from(gate::BEHIND, number), ALLOW);
            for place in [
                0,
                gate::GATE,
                gate::BEHIND & 0xffff_ffff,
                gate::BEHIND + (1 << 32),
            ] {
                assert_eq!(from(place, number), TRAP, "{place:#x} {number}");
            }
        }
        assert_eq!(from(0x1000, 9), ALLOW);
    }

    #[test]
    fn memory_in_use_is_seen() {
        assert!(resident(nix::unistd::getpid()) > 1 << 20);
        assert_eq!(resident(Pid::from_raw(i32::MAX)), 0);
    }
}
