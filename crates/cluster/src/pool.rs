//! The worker pool of one machine: a thread for each worker, and the folder for their spilled
//! states.

use everett::Session;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::connect::{Secrets, connect};
use crate::error::{Error, Result};
use crate::metrics::Metrics;
use crate::run::Build;
use crate::sign::Submitters;
use crate::worker::{Worker, WorkerSpec, WorkerStep};

/// Prefix of the names of folders for spilled states.
const SCRATCH: &str = "everett-worker-";

/// Workers of one machine that join a broker.
#[derive(Clone)]
pub struct PoolSpec {
    /// The address of the broker.
    pub url: String,
    /// Secrets of the broker.
    pub secrets: Secrets,
    /// This build.
    pub build: Build,
    /// The name of the machine; several workers have numbers appended to it.
    pub name: String,
    /// The number of workers.
    pub count: u64,
    /// Memory limit of the process, beyond which states are spilled; by default that of the run.
    pub max_memory: Option<u64>,
    /// The time without a heartbeat after which a worker's job is handed out again.
    pub lease: Duration,
    /// The time that a worker waits for a job before it leaves; by default it never leaves.
    pub idle: Option<Duration>,
    /// Whose runs the workers accept; by default all.
    pub accept: Option<Submitters>,
}

/// A function that receives the name of a worker and its last step; `None` if it has just started.
pub type WorkerObserver<'t> = dyn Fn(&str, Option<&WorkerStep>) + Sync + 't;

/// A folder for spilled states, which is removed when this value is dropped. It is locked, so that
/// other processes can distinguish it from the folder of a process that was killed.
struct Scratch {
    path: PathBuf,
    lock: File,
}

impl Scratch {
    fn new(folder: &Path) -> Result<Scratch> {
        remove_abandoned(folder);
        let path = folder.join(format!("{SCRATCH}{}", std::process::id()));
        // Until it is locked, another process that starts may consider it abandoned.
        for _ in 0..100 {
            std::fs::create_dir_all(&path)?;
            let Ok(lock) = File::open(&path) else {
                continue;
            };
            match lock.try_lock() {
                Ok(()) if path.exists() => return Ok(Scratch { path, lock }),
                Ok(()) | Err(TryLockError::WouldBlock) => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
        }
        Err(Error::Usage(format!("{} is in use", path.display())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
        let _ = self.lock.unlock();
    }
}

/// Removes folders of processes that were killed. Folders of other users stay, because they cannot
/// be removed.
fn remove_abandoned(folder: &Path) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|name| {
            let number = name.strip_prefix(SCRATCH);
            number.is_some_and(|number| number.parse::<u32>().is_ok())
        });
        // Workers do not create links to folders.
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_ours || !is_folder {
            continue;
        }
        let path = entry.path();
        // The lock is held until the folder is gone: its process may be about to take it.
        let Ok(lock) = File::open(&path) else {
            continue;
        };
        if lock.try_lock().is_ok() {
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

/// Runs workers until the stop flag is set or they have been idle long enough. If one fails, the
/// others stop and return their results so far.
pub fn run_workers(
    spec: &PoolSpec,
    session: &Session,
    metrics: &Metrics,
    tell: &WorkerObserver<'_>,
) -> Result<()> {
    let scratch = Scratch::new(&std::env::temp_dir())?;
    let one = |number: u64| -> Result<()> {
        let name = match spec.count {
            1 => spec.name.clone(),
            _ => format!("{}-{number}", spec.name),
        };
        let folder = scratch.path.join(number.to_string());
        std::fs::create_dir_all(&folder)?;
        let broker = connect(&spec.url, &spec.secrets, Some(spec.lease))?;
        let worker = WorkerSpec {
            name: name.clone(),
            build: spec.build.clone(),
            max_memory: spec.max_memory,
            scratch: Some(folder),
            idle: spec.idle,
            accept: spec.accept.clone(),
        };
        tell(&name, None);
        metrics.count_worker();
        let worked = Worker::new(worker, session).run(&Mutex::new(broker), &mut |did| {
            metrics.count(did);
            tell(&name, Some(did));
        });
        metrics.discount_worker();
        worked
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=spec.count.max(1))
            .map(|number| {
                let one = &one;
                scope.spawn(move || {
                    let worked = one(number);
                    if worked.is_err() {
                        session.stop.store(true, Ordering::SeqCst);
                    }
                    worked
                })
            })
            .collect();
        let ends = threads.into_iter().map(|thread| match thread.join() {
            Ok(worked) => worked,
            Err(_) => Err(Error::Usage("a worker panicked".to_owned())),
        });
        ends.collect::<Result<Vec<()>>>()
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_killed_processes_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["everett-worker-1", "everett-worker-x", "other"] {
            std::fs::create_dir_all(folder.path().join(name).join("1")).unwrap();
        }
        let used = folder.path().join("everett-worker-2");
        std::fs::create_dir(&used).unwrap();
        let lock = File::open(&used).unwrap();
        lock.try_lock().unwrap();
        let scratch = Scratch::new(folder.path()).unwrap();
        let exists = |name: &str| folder.path().join(name).exists();
        assert!(!exists("everett-worker-1") && exists("everett-worker-2"));
        assert!(exists("everett-worker-x") && exists("other"));
        let path = scratch.path.clone();
        assert!(path.exists());
        drop(scratch);
        assert!(!path.exists());
    }
}
