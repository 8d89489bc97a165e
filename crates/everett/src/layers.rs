//! Mounts files of the real disk in the guest. They are read on the guest's first access and never
//! written: the guest writes to its own copy.

use everett_linux::{ByteSource, Contents, FileSpec};
use serde::{Deserialize, Serialize};
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::error::{Context, Result, bail};
use crate::session::Notices;

/// A file or folder of the real disk, and its path in the guest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mount {
    /// The absolute path on the real disk.
    from: PathBuf,
    /// The path in the guest.
    to: PathBuf,
}

impl Mount {
    /// Maps a file or folder of the real disk to a path in the guest.
    pub fn new(from: &Path, to: &Path) -> Mount {
        Mount {
            from: from.to_owned(),
            to: to.to_owned(),
        }
    }

    /// Parses `PATH` or `PATH=GUESTPATH`.
    pub fn parse(text: &str) -> Result<Mount, String> {
        let (from, to) = match text.split_once('=') {
            Some((from, to)) => (from, Some(to)),
            None => (text, None),
        };
        let from = absolute(from)?;
        let to = match to {
            Some("") => return Err("a folder is given as PATH or PATH=GUESTPATH".to_owned()),
            Some(to) => PathBuf::from(to),
            None => from.clone(),
        };
        Ok(Mount { from, to })
    }

    /// Maps a file or folder to the same path in the guest.
    pub fn same(path: PathBuf) -> Mount {
        Mount {
            from: path.clone(),
            to: path,
        }
    }

    /// Returns the path on the real disk, and the path in the guest.
    pub fn ends(&self) -> (&Path, &Path) {
        (&self.from, &self.to)
    }

    /// Parses `GUESTPATH=FILE`.
    pub fn parse_file(text: &str) -> Result<Mount, String> {
        match text.split_once('=') {
            Some((to, from)) if !to.is_empty() && !from.is_empty() => Ok(Mount {
                from: absolute(from)?,
                to: PathBuf::from(to),
            }),
            _ => Err("a file is given as GUESTPATH=FILE".to_owned()),
        }
    }

    /// Parses a folder whose files appear in the guest's start directory.
    pub fn parse_folder(text: &str) -> Result<Mount, String> {
        Ok(Mount {
            from: absolute(text)?,
            to: PathBuf::new(),
        })
    }

    /// Returns all files and folders of the mount, in an order that does not depend on the disk.
    pub(crate) fn specs(&self, notices: &Notices) -> Result<Vec<FileSpec>> {
        let metadata = std::fs::metadata(&self.from)
            .with_context(|| format!("cannot read {}", self.from.display()))?;
        let mut specs = Vec::new();
        if metadata.is_dir() {
            if !self.to.as_os_str().is_empty() {
                specs.push(spec(&self.to, Contents::Directory, &metadata));
            }
            let all = Folder {
                device: metadata.dev(),
                notices,
            };
            all.add(&self.from, &self.to, &mut specs)?;
        } else if metadata.is_file() && self.to.as_os_str().is_empty() {
            bail!(
                Invalid,
                "{} is not a folder; `file` gives a single file a path in the guest",
                self.from.display()
            );
        } else if metadata.is_file() {
            specs.push(file(&self.from, &self.to, &metadata, notices));
        } else {
            bail!(
                Invalid,
                "{} is neither a file nor a folder",
                self.from.display()
            );
        }
        Ok(specs)
    }
}

fn absolute(path: &str) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("{path:?}: {error}"))
}

fn spec(path: &Path, contents: Contents, metadata: &Metadata) -> FileSpec {
    let modified_ns = metadata
        .mtime()
        .checked_mul(1_000_000_000)
        .and_then(|ns| u64::try_from(ns.checked_add(metadata.mtime_nsec())?).ok());
    FileSpec {
        owner: (metadata.uid(), metadata.gid()),
        modified_ns,
        ..FileSpec::new(
            path.as_os_str().as_bytes(),
            contents,
            metadata.mode() & 0o7777,
        )
    }
}

fn file(from: &Path, to: &Path, metadata: &Metadata, notices: &Notices) -> FileSpec {
    let source = DiskFile {
        path: from.to_owned(),
        len: metadata.len(),
        bytes: OnceLock::new(),
        notices: notices.clone(),
    };
    spec(to, Contents::Shared(Arc::new(source)), metadata)
}

/// A walk over the folders of one file system; it skips others such as `/proc`.
struct Folder<'w> {
    device: u64,
    notices: &'w Notices,
}

impl Folder<'_> {
    /// Adds the contents of a folder, except those of other file systems.
    fn add(&self, from: &Path, to: &Path, specs: &mut Vec<FileSpec>) -> Result<()> {
        let cannot_read = || format!("cannot read {}", from.display());
        let listed: std::io::Result<Vec<_>> = std::fs::read_dir(from)
            .with_context(cannot_read)?
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect();
        let mut names = listed.with_context(cannot_read)?;
        names.sort();
        for name in names {
            let (here, there) = (from.join(&name), to.join(&name));
            let cannot_read = || format!("cannot read {}", here.display());
            let metadata = std::fs::symlink_metadata(&here).with_context(cannot_read)?;
            if metadata.is_symlink() {
                let target = std::fs::read_link(&here).with_context(cannot_read)?;
                let contents = Contents::Link(target.as_os_str().as_bytes().to_vec());
                specs.push(spec(&there, contents, &metadata));
            } else if metadata.is_dir() && metadata.dev() == self.device {
                specs.push(spec(&there, Contents::Directory, &metadata));
                self.add(&here, &there, specs)?;
            } else if metadata.is_file() {
                specs.push(file(&here, &there, &metadata, self.notices));
            }
        }
        Ok(())
    }
}

/// A file of the disk, read on first access.
#[derive(Debug)]
struct DiskFile {
    path: PathBuf,
    len: u64,
    bytes: OnceLock<Vec<u8>>,
    /// Receives the notice if the file cannot be read.
    notices: Notices,
}

impl ByteSource for DiskFile {
    fn len(&self) -> u64 {
        self.len
    }

    fn bytes(&self) -> &[u8] {
        self.bytes
            .get_or_init(|| match everett_report::read_file(&self.path) {
                Ok(bytes) => bytes,
                Err(error) => {
                    let path = self.path.display();
                    self.notices.tell(&format!("cannot read {path}: {error}"));
                    Vec::new()
                }
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_listed_with_its_links_and_read_when_it_is_asked_for() {
        let dir = std::env::temp_dir().join(format!("everett-layers-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("inner")).unwrap();
        std::fs::write(dir.join("inner/file"), "before").unwrap();
        let _ = std::os::unix::fs::symlink("inner/file", dir.join("link"));
        let mount = Mount::parse(&format!("{}=/there", dir.display())).unwrap();
        let specs = mount.specs(&Notices::default()).unwrap();
        let paths: Vec<_> = specs
            .iter()
            .map(|spec| String::from_utf8_lossy(&spec.path).into_owned())
            .collect();
        assert_eq!(
            paths,
            ["/there", "/there/inner", "/there/inner/file", "/there/link"]
        );
        std::fs::write(dir.join("inner/file"), "after!").unwrap();
        let Contents::Shared(source) = &specs[2].contents else {
            panic!("{:?}", specs[2]);
        };
        assert_eq!((source.len(), source.bytes()), (6, &b"after!"[..]));
        assert!(matches!(&specs[3].contents, Contents::Link(target) if target == b"inner/file"));
        std::fs::remove_dir_all(&dir).unwrap();
        assert!(mount.specs(&Notices::default()).is_err());
        assert!(Mount::parse_file("/etc/x").is_err());
        assert!(Mount::parse("a=").is_err());
    }
}
