//! The source of a scenario's files: the real disk, or a parcel with the files that another machine
//! read from its disk. With a parcel, nothing on this machine's disk is accessed.

use everett_linux::{Contents, FileSpec};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::error::{Context, Error, Result, bail};
use crate::layers::Mount;
use crate::parcel_file::{ParcelFile, file_spec, parcel_file};
use crate::session::Notices;

/// A source of files.
pub(crate) trait Disk {
    /// Returns whether the file exists.
    fn is_file(&self, path: &Path) -> bool;
    /// Returns whether the folder exists.
    fn is_folder(&self, path: &Path) -> bool;
    /// Reads a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// Returns the files of a mount.
    fn mounted(&self, mount: &Mount, notices: &Notices) -> Result<Vec<FileSpec>>;
    /// Returns the contents of a native program; `None` if it does not exist.
    fn program(&self, path: &Path, notices: &Notices) -> Result<Option<Contents>>;
}

/// The disk of this machine.
pub(crate) struct RealDisk;

impl Disk for RealDisk {
    fn is_file(&self, path: &Path) -> bool {
        path.is_file()
    }

    fn is_folder(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        everett_report::read_file(path)
    }

    fn mounted(&self, mount: &Mount, notices: &Notices) -> Result<Vec<FileSpec>> {
        mount.specs(notices)
    }

    fn program(&self, path: &Path, notices: &Notices) -> Result<Option<Contents>> {
        if !path.is_file() {
            return Ok(None);
        }
        let specs = Mount::same(path.to_owned()).specs(notices)?;
        Ok(specs.into_iter().next().map(|spec| spec.contents))
    }
}

/// The contents of a path; `B` is the type of the bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DiskContents<B> {
    /// A file that is never read.
    File,
    /// A file.
    Bytes(B),
    /// A folder.
    Folder,
    /// The files of a mount to this path of the guest.
    Mounted(Vec<u8>, Vec<ParcelFile<B>>),
}

/// A path that was accessed on a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskEntry<B> {
    /// The path, relative to the folder of the scenario file if it is below it.
    pub path: Vec<u8>,
    /// The contents of the path.
    pub contents: DiskContents<B>,
}

impl<B> DiskEntry<B> {
    /// Converts the bytes of the entry.
    pub fn try_map<C, E>(self, mut map: impl FnMut(B) -> Result<C, E>) -> Result<DiskEntry<C>, E> {
        let contents = match self.contents {
            DiskContents::File => DiskContents::File,
            DiskContents::Bytes(bytes) => DiskContents::Bytes(map(bytes)?),
            DiskContents::Folder => DiskContents::Folder,
            DiskContents::Mounted(to, files) => {
                let files = files.into_iter().map(|file| file.try_map(&mut map));
                DiskContents::Mounted(to, files.collect::<Result<_, E>>()?)
            }
        };
        let path = self.path;
        Ok(DiskEntry { path, contents })
    }
}

/// A path, and its mount point in the guest.
type MountedPath = (Vec<u8>, Option<Vec<u8>>);

/// The disk of this machine, with a record of all accesses.
pub(crate) struct Recording {
    /// The folder of the scenario file. Paths below it are recorded relative to it.
    folder: PathBuf,
    seen: RefCell<BTreeMap<MountedPath, DiskContents<Vec<u8>>>>,
}

impl Recording {
    /// Creates a recording without accesses. The scenario file is in this folder.
    pub(crate) fn below(folder: &Path) -> Recording {
        Recording {
            folder: folder.to_owned(),
            seen: RefCell::default(),
        }
    }

    /// Returns the path in the form in which a parcel stores it, which does not depend on where the
    /// scenario is submitted from.
    fn name(&self, path: &Path) -> Vec<u8> {
        let (path, folder) = (
            path.as_os_str().as_bytes(),
            self.folder.as_os_str().as_bytes(),
        );
        let below = path.strip_prefix(folder).filter(|_| !folder.is_empty());
        let name = below.and_then(|below| below.strip_prefix(b"/"));
        name.unwrap_or(path).to_vec()
    }

    fn note(&self, path: &Path, to: Option<&Path>, contents: DiskContents<Vec<u8>>) {
        let to = to.map(|to| to.as_os_str().as_bytes().to_vec());
        let (mut seen, place) = (self.seen.borrow_mut(), (self.name(path), to));
        // The file may have been read already.
        if contents != DiskContents::File || !seen.contains_key(&place) {
            seen.insert(place, contents);
        }
    }

    /// Returns the existing paths that were accessed, in order.
    pub(crate) fn into_entries(self) -> Vec<DiskEntry<Vec<u8>>> {
        let seen = self.seen.into_inner();
        let entries = seen
            .into_iter()
            .map(|((path, _), contents)| DiskEntry { path, contents });
        entries.collect()
    }
}

impl Disk for Recording {
    fn is_file(&self, path: &Path) -> bool {
        let is_file = path.is_file();
        if is_file {
            self.note(path, None, DiskContents::File);
        }
        is_file
    }

    fn is_folder(&self, path: &Path) -> bool {
        let is_folder = path.is_dir();
        if is_folder {
            self.note(path, None, DiskContents::Folder);
        }
        is_folder
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let bytes = everett_report::read_file(path)?;
        self.note(path, None, DiskContents::Bytes(bytes.clone()));
        Ok(bytes)
    }

    fn mounted(&self, mount: &Mount, notices: &Notices) -> Result<Vec<FileSpec>> {
        let specs = mount.specs(notices)?;
        let files = specs.iter().map(parcel_file).collect();
        let (from, to) = mount.ends();
        let contents = DiskContents::Mounted(to.as_os_str().as_bytes().to_vec(), files);
        self.note(from, Some(to), contents);
        Ok(specs)
    }

    fn program(&self, path: &Path, _: &Notices) -> Result<Option<Contents>> {
        if !path.is_file() {
            return Ok(None);
        }
        let bytes = self.read(path);
        let bytes = bytes.with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Some(Contents::Concrete(bytes.into())))
    }
}

/// The files that another machine accessed.
pub(crate) struct Packed<'p> {
    entries: BTreeMap<(PathBuf, Option<PathBuf>), &'p DiskContents<Vec<u8>>>,
}

impl<'p> Packed<'p> {
    /// Opens the files of a parcel, which is not trusted.
    pub(crate) fn of(entries: &'p [DiskEntry<Vec<u8>>]) -> Result<Packed<'p>> {
        let path = |bytes: &[u8]| PathBuf::from(std::ffi::OsString::from_vec(bytes.to_vec()));
        let mut known = BTreeMap::new();
        for entry in entries {
            let to = match &entry.contents {
                DiskContents::Mounted(to, _) => Some(path(to)),
                _ => None,
            };
            let key = (path(&entry.path), to);
            if known.insert(key, &entry.contents).is_some() {
                bail!(Invalid, "the job has a file twice");
            }
        }
        Ok(Packed { entries: known })
    }

    fn at(&self, path: &Path) -> Option<&DiskContents<Vec<u8>>> {
        let key = (path.to_owned(), None);
        self.entries.get(&key).copied()
    }
}

impl Disk for Packed<'_> {
    fn is_file(&self, path: &Path) -> bool {
        let contents = self.at(path);
        matches!(contents, Some(DiskContents::File | DiskContents::Bytes(_)))
    }

    fn is_folder(&self, path: &Path) -> bool {
        matches!(self.at(path), Some(DiskContents::Folder))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self.at(path) {
            Some(DiskContents::Bytes(bytes)) => Ok(bytes.clone()),
            _ => Err(io::Error::new(
                io::ErrorKind::NotFound,
                "the job does not have this file",
            )),
        }
    }

    fn mounted(&self, mount: &Mount, _: &Notices) -> Result<Vec<FileSpec>> {
        let (from, to) = mount.ends();
        match self.entries.get(&(from.to_owned(), Some(to.to_owned()))) {
            Some(DiskContents::Mounted(_, files)) => Ok(files.iter().map(file_spec).collect()),
            _ => Err(Error::Invalid(format!(
                "the job does not have {}",
                from.display()
            ))),
        }
    }

    fn program(&self, path: &Path, _: &Notices) -> Result<Option<Contents>> {
        Ok(match self.at(path) {
            Some(DiskContents::Bytes(bytes)) => Some(Contents::Concrete(bytes.clone().into())),
            _ => None,
        })
    }
}
