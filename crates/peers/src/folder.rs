//! The folder of a stopped process as it was: its copies write there one after the other.

use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;
use tempfile::TempDir;

/// Saved contents of a folder.
pub struct SavedFolder(TempDir);

impl SavedFolder {
    /// Saves files, folders and links. Sockets and the like only need to stay where they are.
    pub fn of(folder: &Path) -> io::Result<SavedFolder> {
        let saved = tempfile::Builder::new()
            .prefix("everett-saved-")
            .tempdir()?;
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            save(&entry, &saved.path().join(entry.file_name()))?;
        }
        Ok(SavedFolder(saved))
    }

    /// Makes the contents of the folder what they were. Files stay the same ones, so that processes
    /// that have opened them see it.
    pub fn restore(&self, folder: &Path) -> io::Result<()> {
        restore(self.0.path(), folder)
    }
}

fn save(entry: &DirEntry, to: &Path) -> io::Result<()> {
    let there = entry.metadata()?;
    if there.is_dir() {
        fs::create_dir(to)?;
        for entry in fs::read_dir(entry.path())? {
            let entry = entry?;
            save(&entry, &to.join(entry.file_name()))?;
        }
        fs::set_permissions(to, there.permissions())
    } else if there.is_symlink() {
        symlink(fs::read_link(entry.path())?, to)
    } else if there.is_file() {
        fs::copy(entry.path(), to).map(|_| ())
    } else {
        Ok(())
    }
}

fn there(path: &Path) -> Option<Metadata> {
    fs::symlink_metadata(path).ok()
}

fn restore(saved: &Path, folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (now, before) = (entry.metadata()?, there(&saved.join(entry.file_name())));
        let is_kept = match before {
            Some(before) => before.file_type() == now.file_type(),
            // What was not saved: a socket that was there, or one of a copy, which does no harm.
            None => !now.is_file() && !now.is_dir() && !now.is_symlink(),
        };
        if !is_kept {
            match now.is_dir() {
                true => fs::remove_dir_all(entry.path())?,
                false => fs::remove_file(entry.path())?,
            }
        }
    }
    for entry in fs::read_dir(saved)? {
        let entry = entry?;
        let (from, to) = (entry.path(), folder.join(entry.file_name()));
        let (before, now) = (entry.metadata()?, there(&to));
        if before.is_dir() {
            if now.is_none() {
                fs::create_dir(&to)?;
            }
            restore(&from, &to)?;
            fs::set_permissions(&to, before.permissions())?;
        } else if before.is_symlink() {
            let target = fs::read_link(&from)?;
            if now.is_none() || fs::read_link(&to)? != target {
                let _ = fs::remove_file(&to);
                symlink(target, &to)?;
            }
        } else {
            let wanted = fs::read(&from)?;
            let is_same = now.is_some_and(|now| {
                now.len() == before.len() && now.permissions() == before.permissions()
            });
            if !is_same || fs::read(&to)? != wanted {
                // Not by another file: this one may be open.
                fs::write(&to, wanted)?;
                fs::set_permissions(&to, before.permissions())?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, Write};

    #[test]
    fn a_folder_becomes_what_it_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("data")).expect("made");
        for (name, text) in [("data/one", "1"), ("data/two", "2"), ("log", "started\n")] {
            fs::write(path(name), text).expect("written");
        }
        symlink("log", path("link")).expect("linked");
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).expect("bound");
        let mut log = fs::File::options()
            .read(true)
            .append(true)
            .open(path("log"))
            .expect("opened");
        let saved = SavedFolder::of(folder.path()).expect("saved");
        for _ in 0..2 {
            log.write_all(b"more\n").expect("written");
            fs::write(path("data/one"), "7").expect("written");
            fs::remove_file(path("data/two")).expect("removed");
            fs::create_dir_all(path("data/new/inner")).expect("made");
            fs::write(path("data/new/inner/file"), "").expect("written");
            fs::remove_file(path("link")).expect("removed");
            symlink("data", path("link")).expect("linked");
            saved.restore(folder.path()).expect("restored");
            for (name, text) in [("data/one", "1"), ("data/two", "2"), ("log", "started\n")] {
                assert_eq!(fs::read_to_string(path(name)).expect("a file"), text);
            }
            let names: usize = fs::read_dir(path("data")).expect("a folder").count();
            assert_eq!(names, 2);
            assert_eq!(
                fs::read_link(path("link")).expect("a link"),
                Path::new("log")
            );
            assert!(there(&path("socket")).is_some());
            let mut seen = String::new();
            log.rewind().expect("a file");
            log.read_to_string(&mut seen).expect("read");
            assert_eq!(seen, "started\n", "it is the file that was opened");
        }
        fs::remove_dir_all(path("data")).expect("removed");
        fs::create_dir(path("log2")).expect("made");
        saved.restore(folder.path()).expect("restored");
        assert!(path("data/one").is_file() && !path("log2").exists());
    }
}
