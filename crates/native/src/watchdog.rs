//! Stops native threads that compute for long without a system call, so that time goes by for them too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How long a thread computes before it is stopped.
const PATIENCE: Duration = Duration::from_millis(50);

/// Watches the thread that runs.
pub struct Watchdog {
    /// Real process and thread, and a number that changes with every stretch; 0 if nobody runs.
    watched: Arc<[AtomicU64; 3]>,
    over: Arc<AtomicBool>,
    stretches: u64,
}

impl Watchdog {
    /// A watchdog that watches nobody yet.
    pub fn start() -> Watchdog {
        let watched = Arc::new([const { AtomicU64::new(0) }; 3]);
        let over = Arc::new(AtomicBool::new(false));
        let (seen, stop) = (watched.clone(), over.clone());
        std::thread::spawn(move || {
            let mut last = 0;
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(PATIENCE);
                let [process, thread, stretch] = &*seen;
                let stretch = stretch.load(Ordering::Acquire);
                if stretch != 0 && stretch == last {
                    let process = process.load(Ordering::Relaxed) as i32;
                    let thread = thread.load(Ordering::Relaxed) as i32;
                    // SAFETY: three numbers; a thread that has ended meanwhile is no harm.
                    unsafe {
                        libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGSTOP);
                    }
                }
                last = stretch;
            }
        });
        Watchdog {
            watched,
            over,
            stretches: 0,
        }
    }

    /// A thread begins to run.
    pub fn watch(&mut self, process: i32, thread: i32) {
        self.stretches += 1;
        self.watched[0].store(process as u64, Ordering::Relaxed);
        self.watched[1].store(thread as u64, Ordering::Relaxed);
        self.watched[2].store(self.stretches, Ordering::Release);
    }

    /// It has stopped.
    pub fn rest(&mut self) {
        self.watched[2].store(0, Ordering::Release);
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}
