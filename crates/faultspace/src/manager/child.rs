//! Starts a command of a test, stopped, so that it can be traced from its first instruction.

use nix::sys::signal::{SigSet, SigmaskHow, Signal, raise, sigprocmask};
use nix::unistd::{
    ForkResult, Pid, chdir, dup2_stderr, dup2_stdin, dup2_stdout, execvpe, fork, setsid,
};
use std::ffi::CString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

/// A command and its environment.
pub(super) struct Start<'s> {
    /// The program and its arguments.
    pub words: &'s [String],
    /// The whole environment.
    pub env: &'s [(String, String)],
    /// The working folder.
    pub folder: &'s Path,
    /// Standard output and error output.
    pub streams: [&'s OwnedFd; 2],
    /// The system calls that trap to the tracer.
    pub traps: &'s [u32],
}

/// The exit code of a child that could not execute its program.
pub(super) const NOT_STARTED: i32 = 127;

/// Starts a command in its own session. The child stops itself before it executes the program.
pub(super) fn start(start: &Start<'_>) -> nix::Result<Pid> {
    let text = |word: &String| CString::new(word.replace('\0', "")).unwrap_or_default();
    let words: Vec<CString> = start.words.iter().map(text).collect();
    let env: Vec<CString> = start
        .env
        .iter()
        .map(|(name, value)| text(&format!("{name}={value}")))
        .collect();
    // SAFETY: a manager has one thread, so the child may do anything.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Ok(child),
        ForkResult::Child => {
            let why = execute(start, &words, &env);
            let text = format!("everett: cannot start {}: {why}\n", start.words.join(" "));
            let _ = nix::unistd::write(start.streams[1], text.as_bytes());
            // SAFETY: ends the child without running the manager's exit handlers.
            unsafe { libc::_exit(NOT_STARTED) }
        }
    }
}

fn execute(start: &Start<'_>, words: &[CString], env: &[CString]) -> nix::errno::Errno {
    let done = || -> nix::Result<std::convert::Infallible> {
        setsid()?;
        chdir(start.folder)?;
        let nothing = File::open("/dev/null").map_err(|_| nix::errno::Errno::ENOENT)?;
        dup2_stdin(&nothing)?;
        dup2_stdout(start.streams[0])?;
        dup2_stderr(start.streams[1])?;
        let _ = nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_CORE, 0, 0);
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
        raise(Signal::SIGSTOP)?;
        if !start.traps.is_empty() {
            trap(start.traps)?;
        }
        execvpe(&words[0], words, env)
    };
    match done() {
        Ok(never) => match never {},
        Err(error) => error,
    }
}

/// Installs a filter, so that the kernel notifies the tracer before these system calls.
fn trap(calls: &[u32]) -> nix::Result<()> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const JUMP_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let code = |code: u16, k: u32, jt: u8, jf: u8| libc::sock_filter { code, jt, jf, k };
    // Load the number of the call; each comparison is followed by its own return.
    let mut filter = vec![code(LOAD, 0, 0, 0)];
    for call in calls {
        filter.push(code(JUMP_EQUAL, *call, 0, 1));
        filter.push(code(RETURN, libc::SECCOMP_RET_TRACE, 0, 0));
    }
    filter.push(code(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0));
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    nix::sys::prctl::set_no_new_privs()?;
    // SAFETY: the program and its filter live until the call returns.
    let done = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        )
    };
    nix::errno::Errno::result(done).map(drop)
}
