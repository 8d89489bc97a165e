//! The output folder of a run: `everett-out/0001`, …, with `everett-out/latest` linking to the
//! newest.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A failed write.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct WriteError {
    /// The path.
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

/// The folder of a run.
#[derive(Clone, Debug)]
pub struct Folder {
    root: PathBuf,
}

impl Folder {
    /// Creates a folder at this path. It must not contain a run.
    pub fn create(path: &Path) -> Result<Folder, WriteError> {
        if path.join("summary.json").exists() {
            let source = io::Error::new(io::ErrorKind::AlreadyExists, "it holds an earlier run");
            return Err(WriteError {
                path: path.to_owned(),
                source,
            });
        }
        Folder::open(path)
    }

    /// Opens the folder at this path; creates it if needed.
    pub fn open(path: &Path) -> Result<Folder, WriteError> {
        for part in ["findings", "tests"] {
            let path = path.join(part);
            fs::create_dir_all(&path).map_err(failed(&path))?;
        }
        Ok(Folder {
            root: path.to_owned(),
        })
    }

    /// Creates the next numbered folder below `parent`, and links `parent/latest` to it.
    pub fn next(parent: &Path) -> Result<Folder, WriteError> {
        fs::create_dir_all(parent).map_err(failed(parent))?;
        let taken = fs::read_dir(parent).map_err(failed(parent))?;
        let numbers =
            taken.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        let mut number = numbers.max().unwrap_or(0) + 1;
        loop {
            let path = parent.join(format!("{number:04}"));
            match fs::create_dir(&path) {
                Ok(()) => {
                    let folder = Folder::open(&path)?;
                    folder.point_latest(parent, &format!("{number:04}"))?;
                    return Ok(folder);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(failed(&path)(error)),
            }
        }
    }

    /// Replaces the link atomically, so that it is always valid.
    fn point_latest(&self, parent: &Path, name: &str) -> Result<(), WriteError> {
        let link = parent.join("latest");
        let fresh = parent.join(format!(".latest-{}", std::process::id()));
        std::os::unix::fs::symlink(name, &fresh).map_err(failed(&fresh))?;
        fs::rename(&fresh, &link).map_err(failed(&link))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Writes a file in it.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), WriteError> {
        let path = self.root.join(name);
        match fs::write(&path, bytes) {
            // Most files go into existing folders; only the first file of a new folder pays for
            // creating it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Some(parent) = path.parent() {
                    fs::create_dir_all(parent).map_err(failed(parent))?;
                }
                fs::write(&path, bytes).map_err(failed(&path))
            }
            written => written.map_err(failed(&path)),
        }
    }
}
