//! Writes files in the background, so that the search waits neither for the disk nor for producing
//! the content.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::folder::{Folder, WriteError};

/// Maximal number of queued jobs; beyond it the search waits.
const WAITING: usize = 1024;
/// Number of threads. The system serialises the creation of entries in one folder, so more would
/// not help.
const THREADS: usize = 2;

/// A file: its name relative to the folder, and its content.
pub type NamedFile = (String, Vec<u8>);

/// Jobs that are not done, and a signal when there are fewer.
type Waiting = (Mutex<usize>, Condvar);

/// Produces files.
struct Job {
    make: Box<dyn FnOnce() -> Vec<NamedFile> + Send>,
    _counted: Counted,
}

/// Counts a job until it is done, or dropped because writing has failed.
struct Counted(Arc<Waiting>);

impl Counted {
    fn new(waiting: &Arc<Waiting>) -> Counted {
        *waiting.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Counted(waiting.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let (count, changed) = &*self.0;
        *count.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        changed.notify_all();
    }
}

/// Threads that write files into a folder.
pub struct Writer {
    sender: Option<SyncSender<Job>>,
    threads: Vec<JoinHandle<Option<WriteError>>>,
    waiting: Arc<Waiting>,
    failed: Arc<AtomicBool>,
}

impl Writer {
    /// A writer for a folder.
    pub fn new(folder: Folder) -> Writer {
        let (sender, receiver) = sync_channel(WAITING);
        // All threads end when one does, because they share the receiver.
        let jobs = Arc::new(Mutex::new(Some(receiver)));
        let failed = Arc::new(AtomicBool::new(false));
        let thread = |_| {
            let (folder, jobs, failed) = (folder.clone(), jobs.clone(), failed.clone());
            std::thread::spawn(move || write_all(&folder, &jobs, &failed))
        };
        Writer {
            sender: Some(sender),
            threads: (0..THREADS).map(thread).collect(),
            waiting: Arc::default(),
            failed,
        }
    }

    /// Queues a file. Returns `false` if writing has already failed.
    pub fn write(&self, name: String, bytes: Vec<u8>) -> bool {
        self.write_made(move || vec![(name, bytes)])
    }

    /// Queues a job that produces files. Returns `false` if writing has already failed.
    pub fn write_made(&self, make: impl FnOnce() -> Vec<NamedFile> + Send + 'static) -> bool {
        let job = Job {
            make: Box::new(make),
            _counted: Counted::new(&self.waiting),
        };
        let sender = self.sender.as_ref();
        sender.is_some_and(|sender| sender.send(job).is_ok())
    }

    /// Waits until everything that was queued so far is written, or writing has failed.
    pub fn flush(&self) {
        let (count, changed) = &*self.waiting;
        let mut count = count.lock().unwrap_or_else(PoisonError::into_inner);
        while *count > 0 {
            count = changed.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether writing has failed.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Waits until everything is written; returns an error that occurred, if any.
    pub fn finish(mut self) -> Result<(), WriteError> {
        self.sender = None;
        let threads = std::mem::take(&mut self.threads);
        let ends: Vec<_> = threads.into_iter().map(JoinHandle::join).collect();
        let failure = ends.into_iter().find_map(|end| end.ok().flatten());
        failure.map_or(Ok(()), Err)
    }
}

/// Stops at the first failure: on a full disk, trying again for every test does not help.
fn write_all(
    folder: &Folder,
    jobs: &Mutex<Option<Receiver<Job>>>,
    failed: &AtomicBool,
) -> Option<WriteError> {
    let lock = || jobs.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let job = lock().as_ref()?.recv().ok()?;
        let Job { make, _counted } = job;
        for (name, bytes) in make() {
            if let Err(error) = folder.write(&name, &bytes) {
                failed.store(true, Ordering::Release);
                *lock() = None;
                return Some(error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_there_when_it_has_finished() {
        let root = std::env::temp_dir().join(format!("everett-writer-{}", std::process::id()));
        let writer = Writer::new(Folder::open(&root).unwrap());
        for number in 0..5000 {
            assert!(writer.write(format!("tests/{number}"), vec![number as u8]));
        }
        writer.flush();
        assert_eq!(std::fs::read_dir(root.join("tests")).unwrap().count(), 5000);
        writer.finish().unwrap();
        assert_eq!(
            std::fs::read(root.join("tests/4999")).unwrap(),
            [4999u32 as u8]
        );
        assert_eq!(std::fs::read_dir(root.join("tests")).unwrap().count(), 5000);
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn the_first_failure_is_told() {
        let root = std::env::temp_dir().join(format!("everett-writer-bad-{}", std::process::id()));
        let folder = Folder::open(&root).unwrap();
        folder.write("file", b"").unwrap();
        let writer = Writer::new(folder);
        writer.write("file/below".to_owned(), Vec::new());
        let error = writer.finish().unwrap_err();
        assert!(error.to_string().contains("file/below"), "{error}");
        std::fs::remove_dir_all(&root).unwrap();
    }
}
