//! Writes files in the background, so that the search waits neither for the disk nor for producing
//! the content.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::folder::{Folder, WriteError};

/// Maximum number of queued jobs; beyond it, the search waits.
const WAITING: usize = 1024;
/// Number of threads. The system serialises the creation of entries in one folder, so more would
/// not help.
const THREADS: usize = 2;

/// Maximum disk space for files that could not be written and are kept for later: a part of the
/// reserve of the folder, which must also have room for the summary and for findings.
const MOST_UNWRITTEN: usize = 1 << 18;
/// The size of a disk block; a file occupies whole blocks.
const BLOCK: usize = 4096;

/// A file: its name relative to the folder, and its content.
pub type NamedFile = (String, Vec<u8>);

/// The number of jobs that are not done, and a signal when it decreases.
type Waiting = (Mutex<usize>, Condvar);

/// A job that produces files.
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
    unwritten: Arc<Mutex<Unwritten>>,
}

/// Files that could not be written.
#[derive(Debug, Default)]
pub struct Unwritten {
    /// The first files that could not be written, as many as are worth keeping.
    pub files: Vec<NamedFile>,
    /// Number of further files, or of jobs that would have produced some, that were dropped.
    pub dropped: u64,
}

impl Unwritten {
    fn keep(&mut self, file: NamedFile) {
        let space = |file: &NamedFile| file.1.len().next_multiple_of(BLOCK);
        let kept: usize = self.files.iter().map(space).sum();
        match kept + space(&file) <= MOST_UNWRITTEN {
            true => self.files.push(file),
            false => self.dropped += 1,
        }
    }

    /// Keeps the files of a job, like [`Unwritten::keep`]. The job is not run if its files would
    /// not be kept.
    fn keep_made(&mut self, make: impl FnOnce() -> Vec<NamedFile>) {
        match self.dropped {
            0 => make().into_iter().for_each(|file| self.keep(file)),
            _ => self.dropped += 1,
        }
    }
}

impl Writer {
    /// Creates a writer for a folder.
    pub fn new(folder: Folder) -> Writer {
        let (sender, receiver) = sync_channel(WAITING);
        let jobs = Arc::new(Mutex::new(receiver));
        let failed = Arc::new(AtomicBool::new(false));
        let unwritten = Arc::new(Mutex::new(Unwritten::default()));
        let thread = |_| {
            let (folder, jobs, failed) = (folder.clone(), jobs.clone(), failed.clone());
            let unwritten = unwritten.clone();
            std::thread::spawn(move || write_all(&folder, &jobs, &failed, &unwritten))
        };
        Writer {
            sender: Some(sender),
            threads: (0..THREADS).map(thread).collect(),
            waiting: Arc::default(),
            failed,
            unwritten,
        }
    }

    /// Takes the files that could not be written since the last call. The caller writes them if
    /// there is space now.
    pub fn take_unwritten(&self) -> Unwritten {
        std::mem::take(&mut *lock(&self.unwritten))
    }

    /// Queues a file. Returns `false` if writing has already failed.
    pub fn write(&self, name: String, bytes: Vec<u8>) -> bool {
        self.write_made(move || vec![(name, bytes)])
    }

    /// Queues a job that produces files. Returns `false` if writing has already failed.
    pub fn write_made(&self, make: impl FnOnce() -> Vec<NamedFile> + Send + 'static) -> bool {
        if self.has_failed() {
            lock(&self.unwritten).keep_made(make);
            return false;
        }
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

    /// Returns whether writing has failed.
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes the files of jobs. After the first failure nothing more is written: on a full disk,
/// trying again for every test does not help. Queued files are kept. The threads still take jobs,
/// since `flush` waits for all of them.
fn write_all(
    folder: &Folder,
    jobs: &Mutex<Receiver<Job>>,
    failed: &AtomicBool,
    unwritten: &Mutex<Unwritten>,
) -> Option<WriteError> {
    let mut failure = None;
    loop {
        let Ok(Job { make, _counted }) = lock(jobs).recv() else {
            return failure;
        };
        if failed.load(Ordering::Acquire) {
            lock(unwritten).keep_made(make);
            continue;
        }
        let mut files = make().into_iter();
        while let Some((name, bytes)) = files.next() {
            if let Err(error) = folder.write(&name, &bytes) {
                failed.store(true, Ordering::Release);
                failure.get_or_insert(error);
                let mut unwritten = lock(unwritten);
                unwritten.keep((name, bytes));
                files.by_ref().for_each(|file| unwritten.keep(file));
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

    /// The thread that fails does not wait for another one that waits for the next job, which may
    /// never come.
    #[test]
    fn a_failure_does_not_stop_whoever_flushes() {
        let root = std::env::temp_dir().join(format!("everett-writer-stop-{}", std::process::id()));
        let folder = Folder::open(&root).unwrap();
        folder.write("file", b"").unwrap();
        for number in 1..200 {
            let writer = Writer::new(folder.clone());
            for at in 0..number % 4 {
                writer.write(format!("file/below{at}"), vec![7]);
                writer.flush();
            }
            writer.write("file/last".to_owned(), Vec::new());
            writer.flush();
            assert!(writer.has_failed());
            let kept = writer.take_unwritten();
            assert_eq!((kept.files.len(), kept.dropped), (number % 4 + 1, 0));
            assert!(writer.finish().is_err());
        }
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
