//! The output folder of a run: `everett-out/0001`, …, with `everett-out/latest` linking to the
//! newest.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A failed write.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}", path.display())]
pub struct WriteError {
    /// The path of the file.
    pub path: PathBuf,
    /// The cause.
    pub source: io::Error,
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> WriteError + '_ {
    move |source| WriteError {
        path: path.to_owned(),
        source,
    }
}

/// Maximum size of a file that is read as a whole.
const MOST_BYTES: u64 = 2 << 30;

/// Reads a file that a user names, or a file of a run. It may come from anybody: other kinds of
/// files, such as pipes or devices, could block or never end.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    /// Prevents that opening a pipe waits for its other end.
    const O_NONBLOCK: i32 = 0o4000;
    let refuse = |kind, why| Err(io::Error::new(kind, why));
    // Opening a device may already change something.
    if !fs::metadata(path)?.is_file() {
        return refuse(io::ErrorKind::InvalidInput, "it is not a regular file");
    }
    let mut options = File::options();
    let file = options.read(true).custom_flags(O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return refuse(io::ErrorKind::InvalidInput, "it is not a regular file");
    }
    let mut bytes = Vec::new();
    if metadata.len() <= MOST_BYTES {
        bytes.reserve_exact(metadata.len() as usize);
        file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    }
    match metadata.len().max(bytes.len() as u64) > MOST_BYTES {
        true => refuse(io::ErrorKind::FileTooLarge, "it is larger than 2 GiB"),
        false => Ok(bytes),
    }
}

/// Reads a text file, like [`read_file`].
pub fn read_text(path: &Path) -> io::Result<String> {
    let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    String::from_utf8(read_file(path)?).map_err(invalid)
}

/// Disk space that is reserved for the end of a run, in bytes: summary and findings are small.
const RESERVE: usize = 1 << 20;

/// The folder of a run. Only one process can use it at a time. The system releases it when that
/// process ends, in whatever way.
#[derive(Clone, Debug)]
pub struct Folder {
    root: PathBuf,
    _lock: Arc<Lock>,
    /// A file without a name that occupies disk space.
    reserve: Arc<Mutex<Option<File>>>,
}

/// The lock of a folder. It is unlocked explicitly, and not only closed: a process that another
/// thread is just starting has a copy of the descriptor until its `exec`, and a lock lasts as long
/// as any copy is open.
#[derive(Debug)]
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // If this fails, the end of the process releases the lock.
        let _ = self.0.unlock();
    }
}

/// Locks a folder.
fn lock(path: &Path) -> Result<Lock, WriteError> {
    let folder = Lock(File::open(path).map_err(failed(path))?);
    match folder.0.try_lock() {
        Ok(()) => Ok(folder),
        Err(TryLockError::WouldBlock) => {
            let source =
                io::Error::new(io::ErrorKind::ResourceBusy, "another run is writing to it");
            Err(failed(path)(source))
        }
        // Some network file systems have no locks; the run matters more than the lock.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(folder),
        Err(TryLockError::Error(error)) => Err(failed(path)(error)),
    }
}

/// Occupies disk space until the returned file is closed.
fn reserve(folder: &Path) -> Result<File, WriteError> {
    let path = folder.join(format!(".reserve-{}", std::process::id()));
    let mut file = File::create(&path).map_err(failed(&path))?;
    // A file without a name does not outlive the process.
    fs::remove_file(&path).map_err(failed(&path))?;
    // Zeros are written, because a hole occupies no space.
    static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
    for _ in 0..RESERVE / ZEROS.len() {
        file.write_all(&ZEROS).map_err(failed(folder))?;
    }
    Ok(file)
}

/// How numbered folders are named.
#[derive(Copy, Clone, Debug)]
pub struct Series {
    prefix: &'static str,
    /// The least number of digits.
    digits: usize,
    first: u32,
    /// The name of the link to the newest folder.
    newest: &'static str,
}

impl Series {
    /// `0001` and `latest`.
    pub const RUNS: Series = Series {
        prefix: "",
        digits: 4,
        first: 1,
        newest: "latest",
    };
    /// Those of KLEE: `klee-out-0` and `klee-last`.
    pub const KLEE: Series = Series {
        prefix: "klee-out-",
        digits: 1,
        first: 0,
        newest: "klee-last",
    };
}

impl Folder {
    /// Creates a folder at this path. It must not contain a run.
    pub fn create(path: &Path) -> Result<Folder, WriteError> {
        let folder = Folder::open(path)?;
        // A run that was submitted to a cluster has no summary before its results are fetched.
        let marks = ["summary.json", "cluster.json"];
        if marks.iter().any(|name| path.join(name).exists()) {
            let source = io::Error::new(io::ErrorKind::AlreadyExists, "it holds an earlier run");
            return Err(WriteError {
                path: path.to_owned(),
                source,
            });
        }
        Ok(folder)
    }

    /// Opens the folder at this path; creates it if needed. It must not be in use.
    pub fn open(path: &Path) -> Result<Folder, WriteError> {
        fs::create_dir_all(path).map_err(failed(path))?;
        let lock = lock(path)?;
        for part in ["findings", "tests"] {
            let path = path.join(part);
            fs::create_dir_all(&path).map_err(failed(&path))?;
        }
        Ok(Folder {
            root: path.to_owned(),
            _lock: Arc::new(lock),
            // If there is no space for the reserve, the run may still fit.
            reserve: Arc::new(Mutex::new(reserve(path).ok())),
        })
    }

    /// Frees the disk space that was reserved for the end.
    pub fn free_reserve(&self) {
        self.reserve
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }

    /// Creates the next numbered folder below `parent`, and links the newest of the series to it.
    pub fn next(parent: &Path, series: Series) -> Result<Folder, WriteError> {
        fs::create_dir_all(parent).map_err(failed(parent))?;
        let taken = fs::read_dir(parent).map_err(failed(parent))?;
        let number_of = |entry: io::Result<fs::DirEntry>| {
            let name = entry.ok()?.file_name();
            let digits = name.to_str()?.strip_prefix(series.prefix)?;
            digits.parse::<u32>().ok()
        };
        let last = taken.filter_map(number_of).max();
        let mut number = last.map_or(series.first, |last| last + 1);
        loop {
            let name = format!("{}{number:0width$}", series.prefix, width = series.digits);
            let path = parent.join(&name);
            match fs::create_dir(&path) {
                Ok(()) => {
                    let folder = Folder::open(&path)?;
                    folder.point_newest(&parent.join(series.newest), &name)?;
                    return Ok(folder);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(failed(&path)(error)),
            }
        }
    }

    /// Replaces the link atomically, so that it is always valid.
    fn point_newest(&self, link: &Path, name: &str) -> Result<(), WriteError> {
        let fresh = link.with_file_name(format!(".newest-{}", std::process::id()));
        std::os::unix::fs::symlink(name, &fresh).map_err(failed(&fresh))?;
        fs::rename(&fresh, link).map_err(failed(link))
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Writes a file into the folder.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), WriteError> {
        let path = self.root.join(name);
        let written = Folder::try_write(&path, bytes);
        if written.is_err() {
            // A partial file must not be taken for a complete one.
            let _ = fs::remove_file(&path);
        }
        written
    }

    fn try_write(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
        match fs::write(path, bytes) {
            // Most files go into existing folders; only the first file of a new folder pays for
            // creating it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Some(parent) = path.parent() {
                    fs::create_dir_all(parent).map_err(failed(parent))?;
                }
                fs::write(path, bytes).map_err(failed(path))
            }
            written => written.map_err(failed(path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_folder_has_one_user_and_a_reserve() {
        let root = std::env::temp_dir().join(format!("everett-folder-{}", std::process::id()));
        let folder = Folder::create(&root).unwrap();
        let error = Folder::open(&root).unwrap_err().source.to_string();
        assert!(error.ends_with("another run is writing to it"), "{error}");
        {
            let reserve = folder.reserve.lock().unwrap();
            let metadata = reserve.as_ref().unwrap().metadata().unwrap();
            assert_eq!((metadata.len(), metadata.nlink()), (RESERVE as u64, 0));
        }
        folder.free_reserve();
        assert!(folder.reserve.lock().unwrap().is_none());
        let names = fs::read_dir(&root).unwrap().count();
        assert_eq!(names, 2, "findings and tests");
        let inherited = folder._lock.0.try_clone().unwrap();
        drop(folder);
        let folder = Folder::open(&root).unwrap();
        drop(inherited);
        folder.write("summary.json", b"{}").unwrap();
        drop(folder);
        let error = Folder::create(&root).unwrap_err().source.to_string();
        assert!(error.ends_with("it holds an earlier run"), "{error}");
        fs::remove_dir_all(&root).unwrap();
    }
}
