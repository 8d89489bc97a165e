//! The watchdog: interrupts native threads that compute for long without a system call, so that
//! virtual time passes for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use nix::unistd::Pid;

use crate::memory_account::MemoryAccount;
use crate::sandbox;

/// The time for which a thread may compute before it is interrupted. This is CPU time, not
/// wall-clock time: on a loaded machine the same computation must not be interrupted earlier.
pub const PATIENCE: Duration = Duration::from_millis(50);
/// The interval at which the memory of the running process is checked: a process can touch some
/// gigabytes a second.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Watches the running thread.
pub struct Watchdog {
    /// Real process and thread, a number that changes with every stretch (0 if no thread runs),
    /// and the stretch that was too long.
    watched: Arc<[AtomicU64; 4]>,
    /// The allowed growth of the running process's memory, and whether it was exceeded.
    memory: Arc<(AtomicU64, AtomicBool)>,
    over: Arc<AtomicBool>,
    stretches: u64,
    watcher: std::thread::Thread,
}

impl Watchdog {
    /// Starts a watchdog that watches no thread yet.
    pub fn start(max_memory: u64, account: MemoryAccount) -> Watchdog {
        let watched = Arc::new([const { AtomicU64::new(0) }; 4]);
        let over = Arc::new(AtomicBool::new(false));
        let memory = Arc::new((AtomicU64::new(max_memory), AtomicBool::new(false)));
        let (seen, stop, allowance) = (watched.clone(), over.clone(), memory.clone());
        let watcher = std::thread::spawn(move || {
            let (mut last, mut since) = (0, Duration::ZERO);
            // The process whose memory was checked last, and its memory when the allowance was set.
            let mut base = (0, 0, 0);
            while !stop.load(Ordering::Relaxed) {
                std::thread::park_timeout(POLL_INTERVAL);
                let [process, thread, stretch, long] = &*seen;
                let stretch = stretch.load(Ordering::Acquire);
                let process = process.load(Ordering::Relaxed) as i32;
                if stretch != 0 {
                    let may_grow = allowance.0.load(Ordering::Relaxed);
                    let resident = sandbox::resident(Pid::from_raw(process));
                    account.note_least(resident);
                    if (base.0, base.1) != (process, may_grow) {
                        base = (process, may_grow, resident);
                    }
                    if resident.saturating_sub(base.2) > may_grow
                        && !allowance.1.swap(true, Ordering::Relaxed)
                    {
                        interrupt(process, thread.load(Ordering::Relaxed) as i32);
                    }
                }
                // The thread may be stopped only for a moment, and then continue its stretch.
                if stretch == 0 {
                    continue;
                }
                let used = processor_time(process);
                if stretch != last {
                    (last, since) = (stretch, used);
                    continue;
                }
                if used.saturating_sub(since) >= PATIENCE {
                    long.store(stretch, Ordering::Release);
                    interrupt(process, thread.load(Ordering::Relaxed) as i32);
                    last = 0;
                }
            }
        });
        Watchdog {
            watched,
            memory,
            over,
            stretches: 0,
            watcher: watcher.thread().clone(),
        }
    }

    /// Starts a stretch of a thread that is about to run, unless it continues the last one: a call
    /// for which no time passes does not end a stretch.
    pub fn watch(&mut self, process: i32, thread: i32, continues: bool) {
        if !continues {
            self.stretches += 1;
        }
        self.watched[0].store(process as u64, Ordering::Relaxed);
        self.watched[1].store(thread as u64, Ordering::Relaxed);
        self.watched[2].store(self.stretches, Ordering::Release);
    }

    /// Returns whether the watchdog has interrupted the stretch that just ended. A late stop, for a
    /// stretch that had ended by itself, does not count.
    pub fn has_interrupted(&self) -> bool {
        self.watched[3].load(Ordering::Acquire) == self.stretches
    }

    /// Returns whether the memory of a process has grown by more than allowed since the last
    /// allowance.
    pub fn has_seen_much_memory(&self) -> bool {
        self.memory.1.load(Ordering::Relaxed)
    }

    /// Sets the allowed growth of the running process's memory from now on.
    pub fn allow(&self, bytes: u64) {
        self.memory.0.store(bytes, Ordering::Relaxed);
        self.memory.1.store(false, Ordering::Relaxed);
    }

    /// Ends the stretch of a thread that has stopped.
    pub fn stop_watching(&mut self) {
        self.watched[2].store(0, Ordering::Release);
    }
}

/// Stops a thread.
fn interrupt(process: i32, thread: i32) {
    // SAFETY: three numbers; a thread that has exited meanwhile is harmless.
    unsafe {
        libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGSTOP);
    }
}

/// Returns the CPU time of a process; zero if it does not exist.
pub(crate) fn processor_time(process: i32) -> Duration {
    // As `clock_getcpuclockid` computes it, which musl restricts to our own processes.
    const SCHEDULED: i32 = 2;
    let clock = (!process << 3) | SCHEDULED;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel fills a time on our stack.
    let failed = unsafe { libc::clock_gettime(clock, &mut time) } != 0;
    if failed || process == 0 {
        return Duration::ZERO;
    }
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.watcher.unpark();
    }
}
