//! Stops native threads that compute for long without a system call, so that time goes by for them too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How long a thread computes before it is stopped. It is the processor's time, not that of the wall: on a machine with
/// other work the same computation must not be stopped earlier.
const PATIENCE: Duration = Duration::from_millis(50);

/// Watches the thread that runs.
pub struct Watchdog {
    /// Real process and thread, a number that changes with every stretch (0 if nobody runs), and the stretch that was
    /// too long.
    watched: Arc<[AtomicU64; 4]>,
    over: Arc<AtomicBool>,
    stretches: u64,
    watcher: std::thread::Thread,
}

impl Watchdog {
    /// A watchdog that watches nobody yet.
    pub fn start() -> Watchdog {
        let watched = Arc::new([const { AtomicU64::new(0) }; 4]);
        let over = Arc::new(AtomicBool::new(false));
        let (seen, stop) = (watched.clone(), over.clone());
        let watcher = std::thread::spawn(move || {
            let (mut last, mut since) = (0, Duration::ZERO);
            while !stop.load(Ordering::Relaxed) {
                std::thread::park_timeout(PATIENCE);
                let [process, thread, stretch, long] = &*seen;
                let stretch = stretch.load(Ordering::Acquire);
                let process = process.load(Ordering::Relaxed) as i32;
                let used = processor_time(process);
                if stretch == 0 || stretch != last {
                    (last, since) = (stretch, used);
                    continue;
                }
                if used.saturating_sub(since) >= PATIENCE {
                    long.store(stretch, Ordering::Release);
                    let thread = thread.load(Ordering::Relaxed) as i32;
                    // SAFETY: three numbers; a thread that has ended meanwhile is no harm.
                    unsafe {
                        libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGSTOP);
                    }
                    last = 0;
                }
            }
        });
        Watchdog {
            watched,
            over,
            stretches: 0,
            watcher: watcher.thread().clone(),
        }
    }

    /// A thread begins to run.
    pub fn watch(&mut self, process: i32, thread: i32) {
        self.stretches += 1;
        self.watched[0].store(process as u64, Ordering::Relaxed);
        self.watched[1].store(thread as u64, Ordering::Relaxed);
        self.watched[2].store(self.stretches, Ordering::Release);
    }

    /// The stretch that has just ended was stopped by us. A stop that comes late, for a stretch that had ended by
    /// itself, is none.
    pub fn has_stopped_it(&self) -> bool {
        self.watched[3].load(Ordering::Acquire) == self.stretches
    }

    /// It has stopped.
    pub fn rest(&mut self) {
        self.watched[2].store(0, Ordering::Release);
    }
}

/// What a process has used of the processor; nothing if there is no such process.
fn processor_time(process: i32) -> Duration {
    // As `clock_getcpuclockid` makes it, which musl does not let a process that is not ours have.
    const SCHEDULED: i32 = 2;
    let clock = (!process << 3) | SCHEDULED;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel fills a time that lives on our stack.
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
