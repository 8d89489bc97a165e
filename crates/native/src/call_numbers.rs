//! Numbers of the system calls that the native driver executes on the real processes.

pub const MMAP: u64 = 9;
pub const MPROTECT: u64 = 10;
pub const MUNMAP: u64 = 11;
pub const BRK: u64 = 12;
pub const RT_SIGACTION: u64 = 13;
pub const RT_SIGRETURN: u64 = 15;
pub const SCHED_YIELD: u64 = 24;
pub const MREMAP: u64 = 25;
pub const MINCORE: u64 = 27;
pub const MADVISE: u64 = 28;
pub const SHMAT: u64 = 30;
pub const CLONE: u64 = 56;
pub const FORK: u64 = 57;
pub const VFORK: u64 = 58;
pub const CLONE3: u64 = 435;
pub const EXECVE: u64 = 59;
pub const EXIT: u64 = 60;
pub const SIGALTSTACK: u64 = 131;
pub const GETRUSAGE: u64 = 98;
pub const SETRLIMIT: u64 = 160;
pub const PRLIMIT64: u64 = 302;
pub const FUTEX: u64 = 202;
pub const EXIT_GROUP: u64 = 231;
pub const ARCH_PRCTL: u64 = 158;
/// Everett's own call for a symbolic input: name, address, size.
pub const OWN_INPUT: u64 = everett_vm::HYPERCALL_BASE as u64 + 100;
/// Everett's own call by which a checked build reports a bug: kind, address, and return address.
pub const OWN_REPORT: u64 = everett_vm::HYPERCALL_BASE as u64 + 101;
